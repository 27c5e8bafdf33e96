"""The body of a function: its return and synchronization tail, the guards of cube and vector code, calls."""

from __future__ import annotations

from ...ir.core import Operation
from ...ir.facts import makes_fifo
from ...ir.types import TileBufType, ViewType
from .control import basic_blocks
from .function import CAST, CppFunction, handles
from .spelling import identifier
from .unit import Unit
from .views import open_view

_MACRO = {"cube": "__DAV_CUBE__", "vector": "__DAV_VEC__"}
_TAIL_MODES = {"mte3-to-s-event0": "kSetWaitMte3ToSEvent0"}


def body(f: CppFunction) -> None:
    """Emit the lines between the constants and the closing brace."""
    kind = str(f.op.attr("pto.kernel_kind") or "")
    guarded = kind in _MACRO
    if guarded:
        _open_guard(f, kind, f.op)
    blocks = f.op.regions[0].blocks
    if len(blocks) > 1:
        basic_blocks(f, f.op.regions[0])
    else:
        f.block(blocks[0])
    last = blocks[-1].ops[-1] if blocks[-1].ops else None
    if last is None or last.name != "func.return":  # every path leaves before the end
        last = None
    if last is not None and _inside(last):
        last = None
    if guarded and last is not None and last.operands:  # the value exists only inside the guard
        _return(f, last)
        last = None
    if guarded:
        _close_guard(f, kind, f.op)
        if f.op.attrs["function_type"].value.results:
            f.line("return {};")
    if last is not None:
        f.here = last.loc
        _return(f, last)


@handles("func.return")
def _on_return(f: CppFunction, op: Operation) -> None:
    region = op.parent.parent if op.parent else None
    if region is None or region.blocks[-1] is not op.parent or _inside(op):
        _return(f, op)  # the last one is printed after the guards


def _inside(op: Operation) -> bool:
    """Return True if a return has a value that is in scope only inside the braces of its block."""
    region = op.parent.parent if op.parent else None
    return bool(op.operands) and region is not None and len(region.blocks) > 1


def _return(f: CppFunction, op: Operation) -> None:
    if f.tail is not None:
        hint = str(f.tail.attrs["pto.auto_tail"].value)
        mode = _TAIL_MODES.get(hint.replace("_", "-").removeprefix("setwait-"), "kBarrierAll")
        f.line(f"ptoas_auto_sync_tail(PTOAutoSyncTailMode::{mode});")
        f.tail = None
    if not op.operands:
        f.line("return;")
        return
    value = op.operands[0]
    f.line(f"return {open_view(f, value) if isinstance(value.type, ViewType) else f.text(value)};")


# -- guards -------------------------------------------------------------------------------------------------


def first_vector_core_only(unit: Unit, function: Operation, owner: Operation) -> bool:
    """Guard a FIFO without a split on A5: the first vector core serves it."""
    if not unit.a5 or any(op.row is not None and op.row.lanes for op in owner.walk()):
        return False
    return any(makes_fifo(op) and op.attr("nosplit") for op in function.walk())


def _open_guard(f: CppFunction, kind: str, owner: Operation) -> None:
    f.lines.append("")
    f.marks.append(None)
    f.line(f"#if defined({_MACRO[kind]})")
    if kind == "vector":
        f.line("set_mask_norm();")
        f.line("set_vector_mask(-1, -1);")
        if first_vector_core_only(f.unit, f.op, owner):
            f.line("if (get_subblockid() == 0) {")
            f.open()


def _close_guard(f: CppFunction, kind: str, owner: Operation) -> None:
    if kind == "vector" and first_vector_core_only(f.unit, f.op, owner):
        f.close()
        f.line("}")
    f.line(f"#endif // {_MACRO[kind]}")
    f.lines.append("")
    f.marks.append(None)


@handles("pto.section.cube", "pto.section.vector")
def _section(f: CppFunction, op: Operation) -> None:
    kind = op.name.rpartition(".")[2]
    _open_guard(f, kind, op)
    f.block(op.regions[0].blocks[0])
    _close_guard(f, kind, op)


@handles("func.call")
def _call(f: CppFunction, op: Operation) -> None:
    arguments: list[str] = []
    for value in op.operands:
        if isinstance(value.type, ViewType):
            token = f.token()
            f.line(f"{f.types(value.type)} {token} = {open_view(f, value)};")
            arguments.append(token)
        else:
            arguments.append(f.text(value))
    text = f"{identifier(str(op.attr('callee')))}({', '.join(arguments)})"
    if op.results and f.count.get(op.results[0]):
        f.declare(op.results[0], f.types(op.results[0].type), text)
    else:
        f.line(f"{text};")


@handles("builtin.unrealized_conversion_cast")
def _cast(f: CppFunction, op: Operation) -> None:
    for source, result in zip(op.operands, op.results, strict=False):
        if isinstance(result.type, TileBufType | ViewType) or f.types(source.type) == f.types(result.type):
            f.name(result, *f.known[source])
        else:
            f.define(result, f"({f.types(result.type)}) {f.unary(source)}", CAST)
