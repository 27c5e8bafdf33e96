"""`pto check`: verify programs and their flags, without a run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from ..asm import parse_source
from ..diag import Diagnostic, has_errors, visible
from ..driver import Options, lowered
from ..ir.core import Module
from ..isa.profiles import Profile
from ..verifier import LEVELS
from .common import (
    FAILED,
    OK,
    CommandParser,
    add_capacity,
    add_diagnostics,
    add_target,
    no_function,
    read_input,
    show,
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
    add_capacity(p)
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
    show(found, options.diagnostics)
    return FAILED if has_errors(found) else OK


def check(path: str, options: Namespace) -> tuple[list[Diagnostic], str]:
    """Return the diagnostics of one file and, if it has no errors, a one-line summary."""
    source, problems = read_input(path)
    if source is None:
        return problems, ""
    module, problems = parse_source(source)
    if module is None:
        return problems, ""
    profile = target(options, module)
    wanted = Options(level=options.pto_level or "", overlaps="error", passes="never")
    done = lowered(module, profile, wanted)
    problems = problems + done.diagnostics
    if has_errors(problems):
        return problems, ""
    problems += [*no_function(source.name, module), *_not_emitted(done.module, done.profile)]
    functions = len(module.functions)
    operations = sum(1 for _ in module.walk()) - 1
    return (
        problems,
        f"{visible(source.name)}: ok ({functions} function{'s' * (functions != 1)}, {operations} operations, "
        f"target {done.profile.name})",
    )


def _not_emitted(module: Module, profile: Profile) -> list[Diagnostic]:
    """Return a warning if a program is legal, because engines emulate it, but `ptoas` cannot emit it."""
    scope = next((op for op in module.walk() if op.row is not None and op.row.opens == "vec"), None)
    if scope is None or profile.isa != "a2a3":
        return []
    from ..codegen.cpp.unit import no_registers  # costly, and seldom needed

    message, help = no_registers(profile)
    name = scope.row.name if scope.row is not None else scope.name
    place = module.span(scope).head
    return [Diagnostic("PTO-E1301", f"{name}: {message}; engines emulate it", place, "warning", help=help)]
