"""`pto explain CODE`: the catalogue entry of a diagnostic code."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from ..diag import did_you_mean
from ..isa.errors import CATALOGUE, recipe
from .common import FAILED, OK, Parser

_EXAMPLES = """\
  pto explain SA-0353
  pto explain --list
"""


def main(arguments: Sequence[str]) -> int:
    p = Parser("pto explain", "What a diagnostic code means and how to fix it.", _EXAMPLES)
    p.add_argument("code", nargs="?", help="a code such as SA-0353 or PTO-E0207")
    p.add_argument("--list", action="store_true", help="all codes with their titles")
    p.add_argument("--json", action="store_true", help="as JSON")
    options = p.parse_args(arguments)
    if options.list or not options.code:
        entries = list(CATALOGUE.values())
        print(
            json.dumps([e.as_dict() for e in entries], indent=2)
            if options.json
            else "\n".join(f"{e.code:<10} {e.title}" for e in entries)
        )
        return OK
    code = options.code.upper()
    family, _, number = code.partition("-")
    if number.isdigit():  # sa-352 is SA-0352
        code = f"{family}-{number:0>4}"
    found = CATALOGUE.get(code) or CATALOGUE.get(f"PTO-{code}") or CATALOGUE.get(f"PTO-E{code:0>4}")
    found = found or (recipe(code) if code.startswith("FIX-") else None)
    if found is None:
        hint = did_you_mean(code, CATALOGUE) or "pto explain --list shows all"
        print(f"pto explain: unknown code '{options.code}'; {hint}", file=sys.stderr)
        return FAILED
    print(
        json.dumps(found.as_dict(), indent=2)
        if options.json
        else f"{found.code}: {found.title}\n\n{found.explain}\n{found.fix}"
        + (f" ({found.recipe})" if found.recipe else "")
    )
    return OK
