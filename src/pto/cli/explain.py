"""`pto explain CODE...`: print the catalogue entries of diagnostic codes, each with a program that has the
error, its output, and the mended program."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from ..diag import did_you_mean
from ..isa.errors import CATALOGUE, CatalogueEntry, recipe
from .common import FAILED, OK, CommandParser
from .error_programs import example

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
        shown = [{**e.as_dict(), **example(e.code)} for e in found]
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
    shown = example(e.code)
    if "program" not in shown:
        return text + "".join(f"\n\nNo program: {why}." for why in shown.values())
    return (
        f"{text}\n\nA program with this error:\n\n{_numbered(shown['program'])}\n\n"
        f"$ {shown['command']}\n{shown['output']}\n\nMended:\n\n{shown['change']}"
    )


def _numbered(program: str) -> str:
    """Return a program with the numbers of its lines; a line `--- NAME` begins a file."""
    lines, n = [], 0
    for line in program.splitlines():
        n = 0 if line.startswith("--- ") else n + 1
        lines.append(f"  {n:4} {line}" if n else f"  {line}")
    return "\n".join(lines)
