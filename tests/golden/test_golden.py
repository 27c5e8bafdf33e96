"""One-file golden tests: a program, command lines of the tools, and their output.

    // RUN: ptoas %s --emit=ssa        one or more; each may be followed by its exit status
    // EXIT: 1                         (default 0)
    module { ... }
    // STDOUT:                         of the first RUN; `// STDOUT 2:` is the second's
    //| line of output
    // STDERR:
    //| line of output

`%s` is the program without its expectations, under the file's own name, so that locations do not depend on
expectations; `< %s` feeds it to standard input. Python and text have `#` in place of `//`. A file may hold a folder
(`pto.cli.error_programs`). With a line `// VARIES`, the output has texts of compilers or of this machine: then only the
code that the file is named after is expected. `pytest tests/golden --rebase` rewrites the expectations.
"""

from __future__ import annotations

import difflib
import io
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pto import knobs
from pto.cli import error_programs

_HERE = Path(__file__).parent
_CASES = sorted({*_HERE.rglob("*.pto"), *(_HERE / "errors").glob("*.*")})
_SECTION = re.compile(r"(?://|#) (STDOUT|STDERR)(?: (\d+))?:$")
_REPORTED = re.compile(r"\[((?:PTO-E|SA-|PA-|CA-)\d{4})\]")


@dataclass
class Run:
    command: str
    status: int = 0
    stdout: list[str] = field(default_factory=list)  # as expectation lines
    stderr: list[str] = field(default_factory=list)


@dataclass
class Case:
    program: str
    runs: list[Run]

    @property
    def mark(self) -> str:
        """The beginning of a comment."""
        return "#" if self.program.startswith("#") else "//"


def read_case(text: str) -> Case:
    """Split a file into its program (RUN and EXIT lines included) and the expected runs."""
    lines = text.split("\n")
    end = next((i for i, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    case = Case("\n".join(lines[:end]), [])
    for line in lines[:end]:
        if line.startswith(f"{case.mark} RUN: "):
            case.runs.append(Run(line.partition(" RUN: ")[2]))
        elif line.startswith(f"{case.mark} EXIT: "):
            case.runs[-1].status = int(line.partition(" EXIT: ")[2])
        elif line and not line.startswith(case.mark):
            break
    current: list[str] = []
    for line in lines[end:]:
        m = _SECTION.match(line)
        if m:
            run = case.runs[int(m[2] or 1) - 1]
            current = run.stdout if m[1] == "STDOUT" else run.stderr
        elif line:
            ours = line.removeprefix(case.mark)
            assert ours != line and ours[0] in "|\\", f"neither a section nor an expected line: {line!r}"
            current.append(ours)
    return case


def write_case(case: Case) -> str:
    out = [case.program if case.program.endswith("\n") else case.program + "\n"]
    for number, run in enumerate(case.runs, 1):
        for name, expected in (("STDOUT", run.stdout), ("STDERR", run.stderr)):
            if expected:
                out.append(f"{case.mark} {name}{f' {number}' if number > 1 else ''}:\n")
                out += [f"{case.mark}{line}\n" for line in expected]
    return "".join(out)


def as_lines(text: str) -> list[str]:
    """Output as expectation lines."""
    if not text:
        return []
    *lines, last = text.split("\n")
    shown = [f"| {line}" if line else "|" for line in lines]
    return shown if not last else [*shown, f"| {last}", "\\ no newline at the end"]


def execute(run: Run, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in-process, in the folder of the program."""
    command, _, given = run.command.replace("%s", name).partition(" < ")
    if given:
        stdin = io.TextIOWrapper(io.BytesIO(Path(given).read_bytes()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stdin)
    capsys.readouterr()
    status = error_programs.perform(command)
    out, err = capsys.readouterr()
    return Run(run.command, status, as_lines(out), as_lines(err))


def difference(case: Case, found: Case) -> str:
    pairs = (
        (f"{run.command} (exit {run.status})", *run.stdout, *run.stderr)
        for side in (case, found)
        for run in side.runs
    )
    sides = list(pairs)
    half = len(case.runs)
    expected = [line for run in sides[:half] for line in run]
    got = [line for run in sides[half:] for line in run]
    return "\n".join(difflib.unified_diff(expected, got, "expected", "got", lineterm="", n=3))


@pytest.mark.parametrize("path", _CASES, ids=[str(p.relative_to(_HERE)) for p in _CASES])
def test_golden(
    path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    text = path.read_bytes().decode()
    case = read_case(text)
    assert case.runs, "no RUN line"
    monkeypatch.chdir(tmp_path)
    error_programs.read(text, path.name).write()
    with knobs.override(PTO_COLOR="never"):
        found = Case(case.program, [execute(run, path.name, capsys, monkeypatch) for run in case.runs])
    statuses = [run.status for run in found.runs]
    if f"\n{case.mark} VARIES\n" in case.program:
        assert statuses == [run.status for run in case.runs], found.runs
        reported = {code for run in found.runs for code in _REPORTED.findall("".join(run.stderr))}
        assert reported == {path.name.partition("_")[0]}
        return
    if request.config.getoption("--rebase"):
        assert statuses == [run.status for run in case.runs], "the exit status is stated by hand: // EXIT: n"
        path.write_bytes(write_case(found).encode())
        return
    assert found == case, f"\n{difference(case, found)}\nif this is right: pytest {path} --rebase"


def test_there_are_cases() -> None:
    assert _CASES, "no golden files found"


def test_expectations_round_trip() -> None:
    """Rebasing a file that is already right changes nothing."""
    text = (
        "// RUN: ptoas %s\n// RUN: ptoas %s --emit=asm\n// EXIT: 1\nx\n// STDOUT:\n//| a\n//|\n//| b\n"
        "// STDERR:\n//| e\n// STDOUT 2:\n//| c\n//\\ no newline at the end\n"
    )
    case = read_case(text)
    assert write_case(case) == text
    assert [run.status for run in case.runs] == [0, 1]
    assert case.runs[0].stdout == as_lines("a\n\nb\n") and case.runs[1].stdout == as_lines("c")


def test_a_difference_is_shown() -> None:
    right = read_case("// RUN: ptoas %s\nx\n// STDOUT:\n//| a\n//| b\n")
    wrong = read_case("// RUN: ptoas %s\nx\n// STDOUT:\n//| a\n//| c\n")
    shown = difference(right, wrong)
    assert "-| b" in shown and "+| c" in shown
