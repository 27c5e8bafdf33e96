"""Dry runs: all instructions are issued, flags and FIFOs work, but no pipe computes or moves data. Loads and
stores are still checked against the bounds of their arrays.

A timeline needs only the instructions of a launch and the waits between them. These do not depend on data,
unless the program reads a scalar from a tile, or tests a signal in global memory.
"""

from __future__ import annotations

from ...diag import Diagnostic
from ...ir.core import Module, Operation
from ...ir.multi_tiles import name_in_messages
from ..memory import MemoryFault, Tile, View
from .instr import Instr
from .load_store import global_side, inferred_layout, laid_out, loaded

#: The tile of a transfer, and its view of global memory.
_SIDES = {"load": ("dst", "src"), "store": ("src", "dst")}


def stays_within(i: Instr) -> None:
    """Perform an instruction of a dry run: only raise a fault for a transfer that leaves its array."""
    sides = _SIDES.get(i.op.row.algorithm) if i.op.row is not None else None
    if sides is None:
        return
    tile, view = i.arg(sides[0]), i.arg(sides[1])
    if isinstance(tile, Tile) and isinstance(view, View) and all(tile.valid):
        layout = inferred_layout(view, tile)
        loads = sides[0] == "dst"
        found = laid_out(i, "src", layout) if loads else global_side(i, "dst", tile.valid, layout)
        low, high = found.region(*(loaded(i, tile, found) if loads else tile.valid)).bounds
        if low < 0 or high > found.buffer.limit:
            raise MemoryFault(found.buffer, low, high)


def depends_on_data(module: Module) -> Diagnostic | None:
    """Return why a program has no dry run: the first instruction with a scalar result from memory."""
    for op in module.walk():
        if _reads(op):
            return Diagnostic(
                "PTO-E2408",
                f"{name_in_messages(op)}: a dry run computes no data, but this instruction reads a scalar "
                "from memory",
                op.loc.head if op.loc is not None else None,
                help="run it with its data: leave out dry",
            )
    return None


def _reads(op: Operation) -> bool:
    row = op.row
    if row is None:
        return False
    if row.family == "signal":
        return True
    # results of vecscope instructions are registers; in a dry run they do not become scalars
    return bool(op.results) and row.effect == "memory" and row.set not in ("vector", "predicate")
