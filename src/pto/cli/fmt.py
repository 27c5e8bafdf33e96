"""`pto fmt`: rewrite programs in canonical form, comments and paragraphs kept."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

from ..asm import parse_source, to_text
from ..diag import Diagnostic, has_errors
from .common import FAILED, OK, Parser, add_diagnostics, add_target, read_input, show, write_output

_EXAMPLES = """\
  pto fmt k.pto            rewrite in place
  pto fmt --check *.pto    exit 1 if a file is not in canonical form
  pto fmt --diff k.pto     show what would change
  pto fmt - < k.pto        standard input to standard output
"""


def main(arguments: Sequence[str]) -> int:
    description = (
        "Rewrite programs in canonical form. Comments stay; type and attribute aliases are written out."
    )
    p = Parser("pto fmt", description, _EXAMPLES)
    p.add_argument(
        "inputs", nargs="+", metavar="FILE", help="program text; '-' for standard input to standard output"
    )
    p.add_argument("--check", action="store_true", help="change nothing, exit 1 if something would change")
    p.add_argument("--diff", action="store_true", help="change nothing, print the differences")
    add_target(p)
    add_diagnostics(p)
    options = p.parse_args(arguments)
    found: list[Diagnostic] = []
    changed: list[str] = []
    for path in options.inputs:
        source, problems = read_input(path)
        text = None
        if source is not None:
            module, problems = parse_source(source)
            text = to_text(module, comments=True) if module is not None else None
        found.extend(problems)
        if source is None or text is None:
            continue
        if text != source.text:
            changed.append(path)
        if options.diff:
            sys.stdout.writelines(
                difflib.unified_diff(source.text.splitlines(True), text.splitlines(True), path, path)
            )
        elif path == "-":
            found.extend(write_output("-", text.encode()))
        elif text != source.text and not options.check:
            found.extend(write_output(path, text.encode()))
            print(f"{path}: rewritten")
    if options.check and changed:
        print("\n".join(f"{path}: not in canonical form" for path in changed), file=sys.stderr)
    show(found, options.diagnostics)
    return FAILED if has_errors(found) or (changed and (options.check or options.diff)) else OK
