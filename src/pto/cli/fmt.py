"""`pto fmt`: format programs; the form, aliases and comments stay."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..asm import format_source
from ..diag import Diagnostic, has_errors, visible
from .common import (
    FAILED,
    OK,
    CommandParser,
    add_diagnostics,
    difference,
    read_input,
    say,
    show,
    tell,
    write_output,
)

_EXAMPLES = """\
  pto fmt k.pto            rewrite in place
  pto fmt --check *.pto    exit with 1 if a file is not formatted
  pto fmt --diff k.pto     show what would change
  pto fmt - < k.pto        standard input to standard output
"""


def main(arguments: Sequence[str]) -> int:
    description = (
        "Format programs: one statement per line, indented by its depth. The form of the text, its\n"
        "aliases, comments, locations and line breaks inside a statement stay."
    )
    p = CommandParser("pto fmt", description, _EXAMPLES)
    p.add_argument(
        "inputs", nargs="+", metavar="FILE", help="program text; '-' for standard input to standard output"
    )
    p.add_argument(
        "--check", action="store_true", help="exit with 1 if a file would change, and change nothing"
    )
    p.add_argument("--diff", action="store_true", help="print the differences, and change nothing")
    add_diagnostics(p)
    options = p.parse_args(arguments)
    found: list[Diagnostic] = []
    changed: list[str] = []
    for path in options.inputs:
        source, problems = read_input(path)
        text = None
        if source is not None:
            text, problems = format_source(source)
        found.extend(problems)
        if source is None or text is None:
            continue
        if text != source.text:
            changed.append(path)
        if options.diff:
            sys.stdout.writelines(difference(path, source.text, text))
        elif options.check:
            continue
        elif path == "-":
            found.extend(write_output("-", text.encode()))
        elif text != source.text:
            found.extend(write_output(path, text.encode()))
            tell(f"{path}: rewritten")
    if options.check and changed:
        say("".join(f"{visible(path)}: not formatted\n" for path in changed))
    show(found, options.diagnostics)
    return FAILED if has_errors(found) or (changed and (options.check or options.diff)) else OK
