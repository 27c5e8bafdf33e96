"""Check a program text, as `pto check` and the language server do.

    checked = check_source(Source("k.pto", text), "a5")
    checked.diagnostics, checked.ok

The tokens and the program stay available after errors, as far as the parser has read the text.
"""

from __future__ import annotations

from collections.abc import Callable

from .asm import locate, read_source
from .asm.lexer import Tokens, tokenize
from .asm.parser import Parser
from .diag import Diagnostic, Source, has_errors
from .driver import Lowered, Options, lowered
from .ir.core import Module, Operation
from .isa.profiles import Profile
from .isa.record import Record
from .reading import foreign

#: The target of a program, or a function that chooses it for a program; None if the program names its target.
Target = str | Profile | None
ChooseTarget = Callable[[Module], Target]
#: Severity of tiles that overwrite each other.
OVERLAPS = "error"


class Checked(Record):
    """A text that was checked. If an operation declares a location in another file, `ranges` has its position
    in this text.
    """

    source: Source
    diagnostics: list[Diagnostic]
    tokens: Tokens
    module: Module | None = None  # without the statements that have errors
    ranges: dict[Operation, tuple[int, int]] = {}  # noqa: RUF012
    done: Lowered | None = None  # if the text can be parsed
    parser: Parser | None = None

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)


def check_source(source: Source, target: Target | ChooseTarget = None, level: str = "") -> Checked:
    """Check syntax, structure, legality on the target, tile memory and overlaps, and the balance of flags."""
    if other := foreign(source):
        return Checked(source, [other], tokenize(source)[0])
    parser, module = read_source(source)
    ranges = {op: (op.start, op.end) for op, _ in parser.located}
    if has_errors(parser.diagnostics):
        return Checked(source, parser.diagnostics, parser.tokens, module, ranges, parser=parser)
    locate(parser)
    wanted = Options(level=level, overlaps=OVERLAPS, passes="never")
    done = lowered(module, target(module) if callable(target) else target, wanted)
    return finished(parser, module, done, ranges)


def finished(
    parser: Parser, module: Module, done: Lowered, ranges: dict[Operation, tuple[int, int]]
) -> Checked:
    """Return a verified text, with the warnings that concern the whole program."""
    source, found = parser.source, [*parser.diagnostics, *done.diagnostics]
    if not has_errors(found):
        found += [*no_function(source.name, module), *_not_emitted(done.module, done.profile)]
    return Checked(source, found, parser.tokens, module, ranges, done, parser)


def no_function(name: str, module: Module) -> list[Diagnostic]:
    """Return a warning if a program has no function."""
    if module.functions:
        return []
    help = "put its instructions into a func.func"
    return [Diagnostic("PTO-E0219", f"{name}: the program has no function", severity="warning", help=help)]


def _not_emitted(module: Module, profile: Profile) -> list[Diagnostic]:
    """Return a warning if a program is legal, because engines emulate it, but `ptoas` cannot emit it."""
    scope = next((op for op in module.walk() if op.row is not None and op.row.opens == "vec"), None)
    if scope is None or profile.isa != "a2a3":
        return []
    from .codegen.cpp.unit import no_registers  # costly, and seldom needed

    message, help = no_registers(profile)
    name = scope.row.name if scope.row is not None else scope.name
    place = module.span(scope).head
    return [Diagnostic("PTO-E1301", f"{name}: {message}; engines emulate it", place, "warning", help=help)]
