"""Dry runs: everything is issued, flags and FIFOs work, but no pipe computes or moves anything. Loads and
stores are looked at all the same: they stay within their arrays.

What a timeline needs of a launch is which instructions there are and who waits for whom. That follows without
tiles unless a scalar is read out of one, or a signal of global memory is looked at.
"""

from __future__ import annotations

from ...diag import Diagnostic
from ...ir.core import Module, Operation
from ...ir.multi_tiles import told_as
from ..memory import MemoryFault, Tile, View
from .instr import Instr
from .load_store import global_side, inferred_layout, laid_out, loaded

#: The tile of a transfer, and its view of global memory.
_SIDES = {"load": ("dst", "src"), "store": ("src", "dst")}


def stays_within(i: Instr) -> None:
    """What a pipe performs of an instruction: a transfer that leaves its array is a fault."""
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
    """Why a program cannot run dry: the first instruction whose scalar result is what memory holds."""
    for op in module.walk():
        if _reads(op):
            return Diagnostic(
                "PTO-E2408",
                f"{told_as(op)}: a dry run computes no tiles, and this reads what memory holds",
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
    # instructions of vecscopes have registers as results, which a dry run never makes scalars of
    return bool(op.results) and row.effect == "memory" and row.set not in ("vector", "predicate")
