"""Checks of tiles of several slots: the valid region must be known, and slot numbers must be in range."""

from __future__ import annotations

from ..ir.context import Context
from ..ir.core import Operation, constant_of
from ..ir.kinds import kind_matches
from ..ir.multi_tiles import ALLOC, GET
from ..ir.types import MultiTileBufType


def check_slots(context: Context) -> bool:
    """Return True if each use of such a tile fits its type; the checks of rows report other uses."""
    found = False
    for op in context.module.walk():
        if op.name == ALLOC:
            _allocated(context, op)
        elif op.name == GET:
            _taken(context, op)
        else:
            continue
        found = True
    return not found or all(_fits(op) for op in context.module.walk())


def _fits(op: Operation) -> bool:
    """Return True if an operation that takes slots gets a tile with slots, and any other operation a single
    tile.
    """
    if op.row is None or not (
        op.name == GET or any(isinstance(v.type, MultiTileBufType) for v in op.operands)
    ):
        return True
    return all(kind_matches(declared, value.type) for declared, value in op.named())


def _allocated(context: Context, op: Operation) -> None:
    type = op.result.type
    if not isinstance(type, MultiTileBufType):
        return
    for name, extent in (("valid_row", type.slot.v_row), ("valid_col", type.slot.v_col)):
        given = bool(op.group(name))
        if given == (extent is None):
            continue
        if given:
            message = f"{name} operand must be absent because the valid region of a slot is static"
        else:
            message = f"{name} operand is required because the valid region of a slot is ?"
        context.report(op, "PTO-E0401", message, help=f"give {name} exactly where the type has a ?")


def _taken(context: Context, op: Operation) -> None:
    source, slot = op.operands
    of = source.type
    if not isinstance(of, MultiTileBufType):
        return
    if op.result.type != of.slot:
        context.report(
            op, "PTO-E0301", "slot type does not match the source", expected=str(of.slot),
            got=str(op.result.type), help="the result type is that of a slot, without the count",
        )  # fmt: skip
    if of.slot.valid is None and (source.op is None or source.op.name != ALLOC):
        context.report(
            op, "PTO-E0401", f"unknown valid region of the slots of %{source.name}", at=source,
            expected="the result of alloc_multi_tile, or a valid region without ? in the type",
            got=str(of), help="take slots from alloc_multi_tile directly",
        )  # fmt: skip
    number = constant_of(slot)
    if isinstance(number, int) and not 0 <= number < of.count:
        context.report(
            op, "PTO-E2204", f"slot {number} is out of range: %{source.name} has {of.count} slots", at=slot,
            expected=f"0 to {of.count - 1}", got=str(number), help="count slots from 0 on",
        )  # fmt: skip
