"""`pto explain CODE...`: print the catalogue entries of diagnostic codes, each with a program that has the
error, its output, and the mended program."""

from __future__ import annotations

import difflib
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..diag import did_you_mean
from ..isa.errors import CATALOGUE, CatalogueEntry, recipe
from .common import FAILED, OK, CommandParser

_EXAMPLES = """\
  pto explain SA-0353
  pto explain PTO-E0803 PTO-E0804
  pto explain --list
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser("pto explain", "Explain diagnostic codes and how to fix the problems.", _EXAMPLES)
    p.add_argument("codes", nargs="*", metavar="CODE", help="a code such as SA-0353 or PTO-E0207")
    p.add_argument("--list", action="store_true", help="list all codes with their titles")
    p.add_argument("--json", action="store_true", help="print JSON")
    options = p.parse_args(arguments)
    if options.list or not options.codes:
        entries = list(CATALOGUE.values())
        print(
            json.dumps([e.as_dict() for e in entries], indent=2)
            if options.json
            else "\n".join(f"{e.code:<10} {e.title}" for e in entries)
        )
        return OK
    asked = [(given, _entry(given)) for given in dict.fromkeys(options.codes)]
    found = list({e.code: e for _, e in asked if e is not None}.values())  # a code has several spellings
    if options.json and found:
        shown = [{**e.as_dict(), **_example(e.code)} for e in found]
        print(json.dumps(shown if len(asked) > 1 else shown[0], indent=2))
    elif found:
        print("\n\n".join(map(_text, found)))
    for given, e in asked:
        if e is None:
            hint = did_you_mean(given.upper(), CATALOGUE) or "pto explain --list shows all"
            print(f"pto explain: unknown code '{given}'; {hint}", file=sys.stderr)
    return OK if all(e is not None for _, e in asked) else FAILED


def _entry(given: str) -> CatalogueEntry | None:
    code = given.upper()
    family, _, number = code.partition("-")
    if number.isdigit():  # sa-352 is SA-0352
        code = f"{family}-{number:0>4}"
    found = CATALOGUE.get(code) or CATALOGUE.get(f"PTO-{code}") or CATALOGUE.get(f"PTO-E{code:0>4}")
    return found or (recipe(code) if code.startswith("FIX-") else None)


def _text(e: CatalogueEntry) -> str:
    recipe = f" ({e.recipe})" if e.recipe else ""
    text = f"{e.code}: {e.title}\n\n{e.explain}\n{e.fix}{recipe}"
    example = _example(e.code)
    if not example:
        return text
    program = example["program"].splitlines()
    numbered = "\n".join(f"  {n:4} {line}" for n, line in enumerate(program, 1))
    return (
        f"{text}\n\nA program with this error:\n\n{numbered}\n\n"
        f"$ {example['command']}\n{example['output']}\n\nMended:\n\n{example['change']}"
    )


def _example(code: str) -> dict[str, str]:
    """Return a program with an error, the command that reports it, the output, and the change that mends it;
    empty if there is none. The programs are tests: their folders, or a copy in the package."""
    for wrong, right in _pairs(code):
        (command, program), (better, mended) = _parts(wrong, code), _parts(right, code)
        lines = [f"  {line}" for line in [*difflib.unified_diff(program, mended, lineterm="", n=1)][2:]]
        lines += [f"$ {better}"] * (better != command)
        output = _run(command, program) if command and lines else ""
        if code in output:
            return {
                "program": "\n".join(program), "command": command, "output": output.rstrip(),
                "change": "\n".join(lines),
            }  # fmt: skip
    return {}


def _pairs(code: str) -> Iterator[tuple[Path, Path]]:
    """Yield programs with an error, and the mended programs."""
    package = Path(__file__).parents[1]
    tests = package.parent.parent / "tests"
    copy = package / "errors"
    for wrong in sorted((copy if copy.exists() else tests / "golden/errors").glob(f"{code}_*.pto")):
        right = wrong.with_name(f"{wrong.stem}_ok.pto")
        if right.exists():
            yield wrong, right
    for wrong in sorted((copy if copy.exists() else tests / "sanitize/programs").glob("*.bad.pto")):
        if code in wrong.read_text(encoding="utf-8").partition("\n!")[0]:
            yield wrong, wrong.with_name(wrong.name.replace(".bad.", ".good."))


def _parts(path: Path, code: str) -> tuple[str, list[str]]:
    """Return the command of a test, and the lines of its program."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r"^// RUN: (.*)\n", text, re.M)
    run = found[1] if found is not None else ""
    if path.name.endswith((".bad.pto", ".good.pto")):
        words = run.split()
        options = [w for w in words if "=" in w]
        check = re.search(rf"^// CHECK: (\w+) {code}", text, re.M)
        watched = f" --sanitize {check[1]}" if check is not None and check[1] != "run" else ""
        if any(not o.startswith("blocks=") for o in options):
            return "", []
        launch = "".join(f" --{o.replace('=', ' ')}" for o in options)
        arguments = " ".join(w for w in words if w not in options)
        run = f"pto run k.pto -q{watched}{launch} -- {arguments}"
    program = re.split(r"^// STD(?:OUT|ERR):\n", text, maxsplit=1, flags=re.M)[0]
    return run.replace("%s", "k.pto"), [s for s in program.splitlines() if not s.startswith("// ")]


def _run(command: str, program: Sequence[str]) -> str:
    """Return the messages of a command about a program in k.pto."""
    tool, *arguments = shlex.split(command)
    module = "ptoas" if tool == "ptoas" else "main"
    code = f"import sys; from pto.cli.{module} import main; sys.exit(main(sys.argv[1:]))"
    with tempfile.TemporaryDirectory(prefix="pto-explain-") as folder:
        Path(folder, "k.pto").write_text("\n".join(program) + "\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=folder, stdin=subprocess.DEVNULL,
            capture_output=True, encoding="utf-8", errors="replace", check=False,
        )  # fmt: skip
    return done.stderr
