"""The ways to run programs under sanitizers (doors), and the corpora of planted faults that each of them runs.

`python -m tests.sanitize.doors` prints the matrix: by corpus and door the number of faults that are reported at the
same lines, and a reason for each fault that is reported in another way, or not at all.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tests.each import each
from tests.sampling import some

from pto.diag import Diagnostic

ROOT = Path(__file__).parents[2]

#: Every way to run something.
DOORS = (
    ".run", "PTO_SANITIZE", "pto python", "pto run", "pto debug", "runtime.run", "host_build_graph",
    "aicpu_build_graph", "Compiled.load", "pto runtime run", "pto ranks",
)  # fmt: skip

#: The code of a report, and its place: a line, or a file and the text of a line.
Found = set[tuple[Any, ...]]


class Differs(NamedTuple):
    """A fault that a door reports in another way: the reason, and the codes that it reports (None: any)."""

    why: str
    codes: frozenset[str] | None = None


class Door(NamedTuple):
    """A way to run the programs of a corpus, one by one or `at_once`. `make test` runs one of `share` programs."""

    finds: Callable[..., Any]  # of a fault: Found; at once: of several faults, a mapping to Found
    differs: Mapping[str, Differs] = {}
    share: int = 1
    at_once: bool = False
    lines: bool = True  # False: lines are those of files that the corpus does not have


class Corpus(NamedTuple):
    """Programs with a planted fault each, by name. A door that no program can use is a reason."""

    name: str
    faults: Sequence[str]
    expected: Callable[[str], Found]
    doors: Mapping[str, Door | str]

    def check(self, door: str) -> None:
        """Run a share of the programs, and compare their reports with the planted faults."""
        opened = self.doors[door]
        assert isinstance(opened, Door), opened
        faults = some(self.faults, opened.share)
        found = opened.finds(faults) if opened.at_once else {}
        each(lambda fault: self._compare(opened, fault, found), faults)

    def _compare(self, door: Door, fault: str, known: Mapping[str, Found]) -> None:
        expected, found = self.expected(fault), known[fault] if door.at_once else door.finds(fault)
        assert expected, "nothing is said to be wrong with it"
        other, codes = door.differs.get(fault), {code for code, *_ in found}
        if other is None:
            assert (found == expected) if door.lines else codes == {code for code, *_ in expected}, found
        else:
            assert found != expected, f"it is found: {other.why}?"
            assert other.codes is None or codes == other.codes, (other.why, found)


def differing(why: str, faults: Iterable[str], *codes: str) -> dict[str, Differs]:
    return dict.fromkeys(faults, Differs(why, frozenset(codes) if codes else None))


# -- reports -------------------------------------------------------------------------------------------------

#: The source location of the later task of a hazard.
_TASK = re.compile(r"task \d+ \([\w ]+\) at (\S+?):(\d+)")
_REPORT = re.compile(
    r"^(?:\S+?:(\d+):\d+: |\w+: )?(error|warning)\[([A-Z]+(?:-[A-Z]*)?\d+)\](.*)", re.MULTILINE
)


def place(code: str, line: int | None, message: str = "") -> tuple[str, int]:
    m = _TASK.search(message) if code == "PTO-E2611" else None
    return code, int(m[2]) if m else line or 0


def places(found: Iterable[Diagnostic], severities: str = "error") -> Found:
    """Codes and lines of reports."""
    return {
        place(d.code, d.span.place[0] if d.span is not None else 0, d.message)
        for d in found
        if d.severity in severities
    }


def of_json(text: str, severities: str = "error") -> Found:
    found = json.loads(text or "[]")
    return {place(d["code"], d.get("line"), d["message"]) for d in found if d["severity"] in severities}


def of_text(text: str, severities: str = "error") -> Found:
    found = _REPORT.findall(text)
    return {place(code, int(line or 0), message) for line, word, code, message in found if word in severities}


def scripted(code: str, *words: str, environment: bool = False) -> dict[str, str]:
    """Run a script by `pto python`, or by Python with PTO_SANITIZE. It begins each program with a line `== NAME`
    on stderr; return the output by program."""
    python = ["-m", "pto.cli.main", "python", "--sanitize", "all"] if not environment else []
    env = {**os.environ, "PYTHONPATH": str(ROOT), **({"PTO_SANITIZE": "all"} if environment else {})}
    command = [sys.executable, *python, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, check=False)
    assert done.returncode in (0, not environment), done.stderr  # 0: errors are handled
    return {name: text for name, _, text in (p.partition("\n") for p in done.stderr.split("== ")[1:])}


# -- the matrix ----------------------------------------------------------------------------------------------

#: The modules of the corpora, and their names there.
_CORPORA = (
    ("kernel_doors", "PROGRAMS"),
    ("kernel_doors", "CPP"),
    ("language_doors", "PYTHON"),
    ("graph_doors", "GRAPHS"),
    ("rank_doors", "RANKS"),
)


def corpora() -> list[Corpus]:
    return [getattr(import_module(f"tests.sanitize.{module}"), name) for module, name in _CORPORA]


def gaps(corpus: Corpus) -> list[str]:
    """Return the cells without a reason: doors that are missing, and differences of no program."""
    missing = [door for door in DOORS if not corpus.doors.get(door)]
    missing += [f"unknown door {name}" for name in corpus.doors if name not in DOORS]
    for name, door in corpus.doors.items():
        for fault, other in door.differs.items() if isinstance(door, Door) else ():
            if fault not in corpus.faults or not other.why:
                missing.append(f"{name}: {fault}: no program, or no reason")
    return missing


def table() -> str:
    """Return the matrix as text."""
    lines: list[str] = []
    cells = {"the same": 0, "another way": 0, "closed": 0}
    for corpus in corpora():
        lines.append(f"{corpus.name} ({len(corpus.faults)})")
        for name in DOORS:
            door = corpus.doors[name]
            if isinstance(door, str):
                cells["closed"] += 1
                lines.append(f"  {name:18} -    {door}")
                continue
            same = len(corpus.faults) - len(door.differs)
            cells["the same"] += same
            cells["another way"] += len(door.differs)
            lines.append(f"  {name:18} {same:<4} the same{'' if door.lines else ' (codes)'}")
            reasons: dict[Differs, list[str]] = {}
            for fault, other in door.differs.items():
                reasons.setdefault(other, []).append(fault)
            for other, faults in reasons.items():
                codes = "" if not other.codes else f" ({', '.join(sorted(other.codes))})"
                lines.append(f"  {'':18} {len(faults):<4} {other.why}{codes}: {', '.join(faults)}")
    total = f"{cells['the same']} programs by doors the same, {cells['another way']} in another way; "
    return "\n".join([*lines, f"{total}{cells['closed']} doors closed"])


if __name__ == "__main__":
    print(table())
