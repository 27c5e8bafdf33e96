"""Common parts of the tests of loads, stores and moves: runs that check all memory, and conversions of one
code.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pto.engine import elements
from pto.engine.memory import ConvTile, Tile, View
from pto.engine.reference.instr import Instr
from pto.engine.reference.registry import find
from pto.ir.attrs import Attribute, EnumAttr, IntAttr, StrAttr
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from .rows import Array, Case, every_plan, is_legal, layout_variants, sample


@cache
def chosen_plans(name: str) -> list[Plan]:
    return sample(known_plans(name))


@cache
def known_plans(name: str) -> list[Plan]:
    """Every column with every choice of operands, locations and element types, and in every column the
    layouts of each choice of locations for one of its element types."""
    groups: dict[Any, dict[Any, Plan]] = {}
    for plan in every_plan(name, layouts=False):
        types = [(n, t[0]) for n, t in plan.operands.items()]
        where = (plan.isa, *((n, getattr(t, "loc", "")) for n, t in types), str(plan.attrs))
        groups.setdefault(where, {})[tuple(str(getattr(t, "dtype", "")) for _, t in types)] = plan
    found: list[Plan] = []
    for n, group in enumerate(groups.values()):
        found += group.values()
        found += filter(is_legal, layout_variants(list(group.values())[5 * n % len(group)]))
    return found


def run(case: Case, *outs: str) -> Any:
    """Run a case; no byte of any operand's buffer may change but those of `outs`."""
    places = [p for p in case.args.values() if isinstance(p, Tile | View | ConvTile)]
    buffers = list({id(p.buffer): p.buffer for p in places}.values())
    before = [b.data.copy() for b in buffers]
    execute = find(case.row)
    assert execute is not None, f"{case.row.name} has no executor"
    with np.errstate(all="ignore"):
        result = execute(Instr(case.op, case.args, case.core, "V"))
    for old, buffer in zip(before, buffers, strict=True):
        changed = old != buffer.data
        for name in outs:
            place = case.args[name]
            if place.buffer is buffer:
                changed[bytes_of(place)] = False
        at = np.flatnonzero(changed)
        assert not at.size, f"{case.row.name} changed byte {at[0]} of {buffer.name}, outside {outs}"
    return result


def bytes_of(place: Any) -> Array:
    if isinstance(place, Tile):
        return place.region(*place.shape).byte_offsets()
    if isinstance(place, View):
        return place.whole().byte_offsets()
    return np.arange(place.address, place.address + place.size)


def attribute(case: Case, name: str, value: Any) -> None:
    """Give the operation of a case an attribute."""
    kind = case.row.attr_index[name].kind
    made: Attribute = (
        StrAttr(value) if kind == "str" else IntAttr(value) if kind == "int" else EnumAttr(kind, value)
    )
    case.op.attrs = {**case.op.attrs, name: made}  # empty ones are shared


def stored(buffer_bytes: Array, dtype: str) -> Array:
    """All elements in a run of bytes, as codes."""
    bits = DTYPES[dtype].bits
    if bits == 4:
        return np.stack([buffer_bytes & 0xF, buffer_bytes >> 4], axis=1).ravel()
    whole = buffer_bytes.size // (bits // 8) * (bits // 8)
    return buffer_bytes[:whole].copy().view(elements.code_dtype(dtype))


def scramble(case: Case, *names: str) -> None:
    """Any bits at all in the storage of operands."""
    for name in names:
        place = case.args[name]
        at = bytes_of(place)
        place.buffer.data[at] = case.rng.integers(0, 256, len(at), np.uint8)


def converted(codes: Array, src: str, dst: str) -> Array:
    """Every code converted by the scalar definition: nearest even, truncation to integers."""
    mode = "NONE"
    out = [encoding.convert(int(c), DTYPES[src], DTYPES[dst], mode, False) for c in codes.ravel()]
    return np.array(out, np.uint64).astype(elements.code_dtype(dst)).reshape(codes.shape)


def is_nan(code: int, dtype: str) -> bool:
    value = encoding.decode(DTYPES[dtype], code)
    return value != value


def same_codes(got: Array, want: Array, dtype: str) -> bool:
    """Equal but for the bits of NaN."""
    if DTYPES[dtype].is_float and DTYPES[dtype].nan:
        nan = np.isnan(elements.decode(dtype, got)) & np.isnan(elements.decode(dtype, want))
        return bool(((got == want) | nan).all())
    return bool((got == want).all())
