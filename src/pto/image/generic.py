"""Calls that need no function of their own: which they are, and the operations that they come from.

A call that no pack has is performed by the executor of its instruction (`engine/native/generic.py`), which
needs the operation itself and the places of its values in the frame: the name of the call says neither.
`always_compiled` names the instructions that have no such way, so that every pack has their calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..ir.core import Operation, Value
from ..ir.facts import divides, in_global
from ..isa.row import Row


class CallOrigin(NamedTuple):
    """The operation of a call, and where its values lie in the frame. `operands` are those of the call, which
    takes a tile, view or pointer for a memref. A value that the call does not need may have no place."""

    op: Operation
    operands: tuple[Value, ...]
    places: tuple[int | None, ...]
    results: tuple[int | None, ...]


#: Of each code of an image, the operations of its calls, by the first word of the call.
Origins = list[dict[int, CallOrigin]]


#: Effects on what only the machine has: pipes and cores, mode registers, handles, the flow of control.
_OF_THE_MACHINE = frozenset(("sync", "config", "alias", "alloc", "control"))
#: Values whose contents only the machine has.
_STATES = frozenset((
    "conv_tile", "pipe", "async_session", "async_event", "prefetch_async_context", "event", "eventid_array",
))  # fmt: skip
#: Instructions of FIFOs that move elements: the machine waits for the entry, and the executor moves them.
_MOVING = frozenset(("tpush", "tpop"))
#: What the facts of a row do not say: instructions that ask which core they run on, that give the address of
#: a tile or of the buffer of a FIFO, that end the program, and copies whose loops are registers of the core.
_OTHERS = frozenset((
    "get_block_idx", "get_block_num", "get_subblock_idx", "get_subblock_num", "tile_buf_addr",
    "import_reserved_buffer", "trap", "copy_gm_to_ubuf", "copy_ubuf_to_gm", "copy_gm_to_cbuf",
))  # fmt: skip


def always_compiled(row: Row) -> bool:
    """Return True if the calls of an instruction need compiled functions.

    The others may be performed by the executor of the reference engine instead. Vector instructions that
    set hidden registers (AR, SQZN) are among these: executors find them in the core.
    """
    if row.name in _MOVING:
        return False
    if row.effect in _OF_THE_MACHINE and (row.effect, row.set) != ("config", "vector"):
        return True
    values = (*row.operands, *row.results)
    return (
        bool(row.order or row.fifo)
        or row.name in _OTHERS
        or divides(row)
        or any(_STATES.issuperset(value.kinds) for value in values)
    )


def updates_memory(op: Operation, calls: Iterable[str]) -> bool:
    """Return True if an operation may update elements of global memory: as it says itself, or as the control
    register says in a program with these calls."""
    row = op.row
    if row is None or not any(in_global(v.type) for v in op.operands):
        return False
    said = [str(op.attr(a.name)) for a in row.attrs if "atomic" in f"{a.name} {a.kind}".lower()]
    if any("none" not in word.lower() for word in said):
        return True
    return row.set in ("scalar", "cube") and any("set_atomic" in name or "set_ctrl" in name for name in calls)
