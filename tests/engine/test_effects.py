"""The effects that rows declare are those of the engine: the replaced part of a destination."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from tests.sampling import some

from pto import isa
from pto.engine.memory import MemoryFault, Tile
from pto.engine.reference.instr import IllegalInstruction, Instr, Place, Port, start_of
from pto.engine.reference.registry import find
from pto.engine.region import Region, store_at
from pto.ir.types import TileBufType, Type
from pto.isa.row import Row
from pto.witness.plan import Plan, plans

from .rows import FILL, Array, Case, is_legal


class Stores(Port):
    """Marks the bytes of one space that are stored and not declared undefined."""

    def __init__(self, size: int, space: str) -> None:
        self.space = space
        self.marks = np.zeros(size, np.uint8)

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        super().store(i, place, region, codes)
        if place.buffer.space == self.space:
            region.store(self.marks, _ones(codes))

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        super().store_at(i, place, at, codes)
        if place.buffer.space == self.space:
            base, bits, nibble = start_of(place)
            store_at(self.marks, base, at, bits, _ones(codes), nibble)

    def undefine(self, i: Instr, place: Place, region: Region) -> None:
        if place.buffer.space == self.space:
            region.store(self.marks, np.zeros(region.shape, f"u{max(8, region.bits) // 8}"))


def _ones(codes: Array) -> Array:
    return np.full(codes.shape, ~np.uint64(0)).astype(f"u{codes.dtype.itemsize}")


def _smaller(plan: Plan, rows: int, cols: int) -> Plan:
    """The plan with that many rows and columns less in the valid regions of its tiles."""

    def less(type: Type) -> Type:
        if not isinstance(type, TileBufType):
            return type
        v_row = type.v_row - rows if type.v_row == type.rows > 1 else type.v_row
        v_col = type.v_col - cols if type.v_col == type.cols > 1 else type.v_col
        return type.replace(v_row=v_row, v_col=v_col)

    return plan.replace(operands={name: tuple(map(less, types)) for name, types in plan.operands.items()})


def _replaced(case: Case, fill: int) -> Array | None:
    """Return the elements of the storage of dst that a run on such bytes stores to; None if it fails."""
    dst: Tile = case.args["dst"]
    port = Stores(dst.buffer.data.size, dst.buffer.space)
    for buffer in case.core.buffers.values():
        buffer.data[:] = fill
    execute = find(case.row)
    assert execute is not None
    instr = Instr(case.op, case.args, case.core, "V")
    instr.port = port
    try:
        with np.errstate(all="ignore"):
            execute(instr)
    except (IllegalInstruction, MemoryFault, ValueError, IndexError):
        return None  # these bytes are not indices
    return dst.region(*dst.shape).load(port.marks, f"u{max(8, dst.bits) // 8}") != 0


def _expected(writes: str, dst: Tile) -> Array:
    found = np.zeros(dst.shape, bool)
    sizes = {"all": dst.shape, "valid": dst.valid, "row0": (1, dst.v_col), "column0": (dst.v_row, 1)}
    rows, cols = sizes[writes]
    found[:rows, :cols] = True
    return found


def _some(row: Row) -> Iterator[Plan]:
    """For every form in every column, a plan as it is and one with smaller valid regions."""
    for column in some(row.isas, 4):
        seen: set[tuple[str, ...]] = set()
        for plan in plans(row, column):
            if tuple(plan.operands) not in seen:
                seen.add(tuple(plan.operands))
                yield plan
                yield from islice(
                    filter(is_legal, (_smaller(plan, *less) for less in ((1, 1), (1, 0), (0, 1)))), 1
                )


def disagreements(row: Row) -> list[str]:
    """Return the runs of a row that replace another part of dst than `writes` declares."""
    found: list[str] = []
    runs = partial = whole = 0
    for plan in _some(row):
        for fill in (0, FILL):
            case = Case(plan)
            dst = case.args.get("dst")
            replaced = _replaced(case, fill) if isinstance(dst, Tile) else None
            if replaced is None:
                continue
            runs += 1
            partial += dst.valid != dst.shape
            whole += dst.valid != dst.shape and bool(replaced.all())
            says_part = row.writes == "part" or row.part_with in plan.operands
            if not says_part and not (replaced == _expected(row.writes, dst)).all():
                said = f"{row.name} on {plan.isa}, {' '.join(plan.operands)}: {int(replaced.sum())} elements"
                found.append(f"{said} of {dst.shape}, valid {dst.valid}, not {row.writes!r}")
    if row.writes == "part" and partial and whole == partial:
        found.append(f"{row.name} writes all of dst, not 'part'")
    return found if runs else [f"{row.name}: no run"]


def _rows() -> list[Row]:
    """Rows with a destination that may be replaced."""
    return [
        row
        for row in isa.rows()
        if row.effect == "memory"
        and any(o.name == "dst" and o.role == "out" and "tile" in o.kinds for o in row.operands)
        and find(row) is not None
    ]


def test_rows_replace_what_they_say() -> None:
    rows = _rows()
    assert len(rows) > 120
    wrong = [text for row in rows for text in disagreements(row)]
    assert not wrong, "\n".join(wrong)


def test_a_wrong_row_is_found() -> None:
    """Also a row that declares less than its effect."""
    tadd, pairs, trowsum = (isa.row(name) for name in ("tadd", "tpairreducesum", "trowsum"))
    assert tadd is not None and pairs is not None and trowsum is not None
    assert disagreements(tadd.replace(writes="all"))
    assert disagreements(pairs.replace(writes="valid")) and disagreements(pairs.replace(writes="part"))
    assert disagreements(trowsum.replace(writes="row0"))
