"""Calls without compiled functions: their conditions, and their operations.

A call that no pack has is performed by the executor of its instruction (`engine/native/generic.py`), which
needs the operation itself and the slots of its values in the frame: the name of the call has neither.
`always_compiled` names the instructions that cannot be performed this way, so that every pack has their
calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..ir.core import Operation, Value
from ..ir.facts import divides, in_global
from ..isa.row import Row


class CallOrigin(NamedTuple):
    """The operation of a call, and the slots of its values in the frame. `operands` are those of the call,
    which takes a tile, view or pointer for a memref. A value that the call does not need may have no slot."""

    op: Operation
    operands: tuple[Value, ...]
    places: tuple[int | None, ...]
    results: tuple[int | None, ...]


#: For each code of an image, the operations of its calls, by the first word of the call.
Origins = list[dict[int, CallOrigin]]


#: Effects on state of the machine: pipes and cores, mode registers, handles, control flow.
_OF_THE_MACHINE = frozenset(("sync", "config", "alias", "alloc", "control"))
#: Values whose contents only the machine has.
_STATES = frozenset((
    "conv_tile", "pipe", "async_session", "async_event", "prefetch_async_context", "event", "eventid_array",
))  # fmt: skip
#: Instructions of FIFOs that move elements: the machine waits for the entry, and the executor moves them.
_MOVING = frozenset(("tpush", "tpop"))
#: Instructions that need the machine for reasons outside of their rows: they read the identity of their core,
#: return the address of a tile or of the buffer of a FIFO, end the program, or loop by counts in registers of
#: the core.
_OTHERS = frozenset((
    "get_block_idx", "get_block_num", "get_subblock_idx", "get_subblock_num", "tile_buf_addr",
    "import_reserved_buffer", "trap", "copy_gm_to_ubuf", "copy_ubuf_to_gm", "copy_gm_to_cbuf",
))  # fmt: skip


def always_compiled(row: Row) -> bool:
    """Return True if the calls of an instruction need compiled functions.

    The executor of the reference engine can perform the others. These include vector instructions that set
    hidden registers (AR, SQZN), which executors find in the core.
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
    """Return True if an operation may update elements of global memory: by its own attribute, or by the
    control register in a program with these calls."""
    row = op.row
    if row is None or not any(in_global(v.type) for v in op.operands):
        return False
    said = [str(op.attr(a.name)) for a in row.attrs if "atomic" in f"{a.name} {a.kind}".lower()]
    if any("none" not in word.lower() for word in said):
        return True
    return row.set in ("scalar", "cube") and any("set_atomic" in name or "set_ctrl" in name for name in calls)
