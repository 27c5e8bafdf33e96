"""Legal places of operations: vecscopes, core sections and kernel kinds, linear use of alignment state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.context import Context
from ..ir.core import LOWERED_VECSCOPE, Operation, Region, Value, entry_mark, uses
from ..ir.facts import LOOPS, enclosing
from ..ir.types import MaskType, TileBufType, TokenType, Type, VRegType
from ..isa.machine import SECTIONS


def check_scopes(context: Context) -> None:
    for func in context.module.functions:
        if entry_mark(func) and func.regions[0].blocks:
            _carried(context, func, func.regions[0].blocks[0].args)
        kind = func.attr("pto.kernel_kind")
        for region in func.regions:
            for block in region.blocks:
                for op in block.ops:
                    _walk(context, op, None, kind if kind in ("cube", "vector") else None, func)
        _alignment(context, func)


def _walk(
    context: Context, op: Operation, scope: Operation | None, core: str | None, func: Operation
) -> None:
    row = op.row
    if row is not None and row.dialect == "pto":
        if row.scope == "vec" and scope is None:
            context.report(
                op,
                "PTO-E1001",
                "must be inside a vecscope",
                expected="pto.vecscope { ... }",
                got="the function body",
                help="wrap the vector code in pto.vecscope { ... }",
            )
        elif row.scope == "tile" and scope is not None and not row.opens:
            d = context.report(
                op,
                "PTO-E1002",
                "must not be inside a vecscope",
                help="move it before or after the vecscope" + _instead(op),
            )
            d.notes.append(("the vecscope begins here", context.span(scope)))
        if row.core and core and row.core != core:
            context.report(
                op,
                "PTO-E1003",
                f"runs on a {row.core} core, not in {core} code",
                expected=f"{row.core} section or kernel",
                got=core,
                help=f"put it into pto.section.{row.core} {{ ... }}",
            )
    inner_scope, inner_core = scope, core
    if (op.row is not None and op.row.opens == "vec") or LOWERED_VECSCOPE in op.attrs:
        if scope is not None:
            d = context.report(op, "PTO-E1004", "cannot nest vecscopes", help="close the outer one first")
            d.notes.append(("the outer vecscope", context.span(scope)))
        inner_scope = op
        if op.name == "pto.strict_vecscope":
            _captures(context, op)
            _arguments(context, op)
    elif op.name in SECTIONS:
        section = SECTIONS[op.name]
        if core is not None and core != section:
            context.report(
                op, "PTO-E1003", f"cannot put a {section} section into {core} code", help="move it out"
            )
        inner_core = section
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                _walk(context, child, inner_scope, inner_core, func)
    if inner_scope is op:
        _escapes(context, op)
    elif inner_scope is None and row is not None and row.dialect == "scf":
        _carried(context, op, op.results)


def _instead(op: Operation) -> str:
    """Return the equivalent inside a vecscope."""
    if any(isinstance(v.type, TileBufType) for v in op.operands):
        return "; pto.tile_buf_addr gives the tile's address"
    if op.row is not None and op.row.effect == "sync":
        return "; inside, pto.mem_bar orders loads and stores"
    return ""


def _vector_state(type: Type) -> bool:
    return isinstance(type, VRegType | MaskType) or (isinstance(type, TokenType) and type.name == "align")


def _escapes(context: Context, scope: Operation) -> None:
    for result in scope.results:
        if _vector_state(result.type):
            context.report(
                scope, "PTO-E1005", f"cannot return a {result.type} from its vecscope", at=result,
                help="store it to the vector tile buffer",
            )  # fmt: skip


def _carried(context: Context, op: Operation, values: Sequence[Value]) -> None:
    """Report vector state outside a vecscope: as an argument or result of outer control flow."""
    for value in values:
        if _vector_state(value.type):
            context.report(
                op,
                "PTO-E1005",
                f"cannot use a value of type {value.type} outside a vecscope",
                at=value,
                help="pass it through the vector tile buffer",
            )


def _arguments(context: Context, scope: Operation) -> None:
    """Compare the block arguments of a strict_vecscope with the passed operands."""
    have = tuple(v.type for v in scope.operands)
    for block in scope.regions[0].blocks[:1]:
        want = tuple(a.type for a in block.args)
        if want != have:
            context.report(
                scope,
                "PTO-E0213",
                "mismatched block arguments",
                expected=", ".join(map(str, have)) or "no arguments",
                got=", ".join(map(str, want)) or "no arguments",
            )


def _captures(context: Context, scope: Operation) -> None:
    inside: set[Value] = set()
    for op in scope.walk():
        inside.update(op.results)
        for region in op.regions:
            for block in region.blocks:
                inside.update(block.args)
    for op in scope.walk():
        if op is scope:
            continue
        for value in op.operands:
            if value not in inside:
                context.report(
                    op, "PTO-E1006", f"strict_vecscope captures '%{value.name}' implicitly", at=value,
                    help="pass it as an operand: pto.strict_vecscope(%x) { ^bb0(%y: T): ... }",
                )  # fmt: skip


def _alignment(context: Context, func: Operation) -> None:
    """Check that alignment state is used exactly once, and that load and store streams do not mix."""
    if not any(_is_align(r) for op in func.walk() for r in op.results):
        return
    for region in func.regions:
        for value, users in uses(region).items():
            if not _is_align(value):
                continue
            real = [op for op, _ in users]
            for op in real:
                loop = _loop_between(op, value)
                if loop is not None:
                    d = context.report(
                        op,
                        "PTO-E1007",
                        f"alignment state '%{value.name}' is used again in every iteration",
                        at=value,
                        help="carry it with iter_args",
                    )
                    d.notes.append(("in this loop", context.span(loop)))
            clash = next(
                ((a, b) for k, a in enumerate(real) for b in real[k + 1 :] if not _exclusive(a, b)), None
            )
            if clash is not None:
                d = context.report(
                    clash[1],
                    "PTO-E1007",
                    f"alignment state '%{value.name}' is used twice",
                    at=value,
                    help="use the new state that the operation returns",
                )
                d.notes.append(("first used here", context.span(clash[0])))
            made = value.op
            for op in real:
                if made is None or op.row is None:
                    continue
                loads = op.name == "pto.vldus"
                if loads and made.name == "pto.init_align":
                    d = context.report(
                        op,
                        "PTO-E1008",
                        "expected vldas at the start of a load stream, got init_align",
                        at=value,
                    )
                    context.note_definition(d, value)
                elif not loads and made.name in ("pto.vldas", "pto.vldus") and op.row.dialect == "pto":
                    d = context.report(
                        op,
                        "PTO-E1008",
                        "expected init_align at the start of a store stream, got vldas",
                        at=value,
                    )
                    context.note_definition(d, value)


def _loop_between(op: Operation, value: Value) -> Operation | None:
    """Return a loop that holds a use of a value but not its definition."""
    home = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    block = op.parent
    while block is not None and block is not home:
        outer = block.outer
        if outer is not None and outer.name in LOOPS:
            return outer
        block = outer.parent if outer is not None else None
    return None


def _exclusive(a: Operation, b: Operation) -> bool:
    """Return True if two operations are on different branches of one operation: only one of them runs."""
    above = dict(_regions_around(a))
    return any(op in above and above[op] is not region for op, region in _regions_around(b))


def _regions_around(op: Operation) -> Iterator[tuple[Operation, Region]]:
    for inner in enclosing(op):
        outer = inner.outer
        if outer is not None and inner.parent is not None and inner.parent.parent is not None:
            yield outer, inner.parent.parent


def _is_align(value: Value) -> bool:
    return isinstance(value.type, TokenType) and value.type.name == "align"
