"""`pto check`: verify programs and their flags, without a run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from ..checking import check_source
from ..diag import Diagnostic, visible
from ..verifier import LEVELS
from .common import (
    CommandParser,
    add_diagnostics,
    add_target,
    ended,
    read_input,
    target,
    tell,
)

_EXAMPLES = """\
  pto check k.pto
  pto check --arch a5 kernels/*.pto
  pto check k.pto --diagnostics=json
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto check",
        "Verify programs: syntax, structure, legality on the target, tile memory and overlaps, flag balance.",
        _EXAMPLES,
    )
    p.add_argument("inputs", nargs="+", metavar="FILE", help="program text; '-' for standard input")
    add_target(p)
    p.add_argument(
        "--pto-level",
        choices=LEVELS,
        type=str.lower,
        help="level, as for ptoas (default: the level of the program text)",
    )
    p.add_argument("-q", "--quiet", action="store_true", help="print problems only")
    add_diagnostics(p)
    options = p.parse_args(arguments)
    found: list[Diagnostic] = []
    for path in options.inputs:
        problems, summary = check(path, options)
        found.extend(problems)
        if summary and not options.quiet and options.diagnostics == "text":
            tell(summary)
    return ended(found, options)


def check(path: str, options: Namespace) -> tuple[list[Diagnostic], str]:
    """Return the diagnostics of one file and, if it has no errors, a one-line summary."""
    source, problems = read_input(path)
    if source is None:
        return problems, ""
    found = check_source(source, lambda module: target(options, module), options.pto_level or "")
    done = found.done
    if done is None or not found.ok:
        return found.diagnostics, ""
    functions = len(done.module.functions)
    operations = sum(1 for _ in done.module.walk()) - 1
    return (
        found.diagnostics,
        f"{visible(source.name)}: ok ({functions} function{'s' * (functions != 1)}, {operations} operations, "
        f"target {done.profile.name})",
    )
