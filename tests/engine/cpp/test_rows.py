"""Every executable row with a C++ spelling: engines cpp and native against the reference engine, byte for byte.

`make matrix` compiles every plan of `some_plans`, optimised as the engines do it. The ordinary run compiles one or
two of each row, without optimisation; together they show all columns, element types and layouts.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.sampling import EVERY, some

from pto import isa
from pto.engine import elements
from pto.engine.memory import Tile, View
from pto.engine.reference.registry import find
from pto.ir.types import MemRefType, PtrType, ScalarType, TileBufType, ViewType
from pto.isa.dtypes import DTYPES
from pto.isa.profiles import ISAS
from pto.isa.row import Row
from pto.witness.plan import Plan

from ..rows import (
    FILL,
    Case,
    column_plans,
    is_legal,
    layout_variants,
    mixed_codes,
    random_codes,
    some_plans,
    special_codes,
)  # fmt: skip
from .rows_bench import Compiled, Outcome, compiled, reference, unequal

#: Rows that this bench cannot call, and who tests them instead.
ELSEWHERE: dict[str, str] = {}

Fill = Callable[[Case, np.random.Generator], None]
#: Contents that an instruction demands, where any bits will not do.
FILLS: dict[str, Fill] = {}

#: Plans that once differed, by their text: the ordinary run has them, too.
ONCE: dict[str, str] = {
    "tlrelu": "xi8",  # an infinite slope
    "trowsum": "dst=!pto.tile_buf<vec, 16x64xf32, valid=16x1, blayout=col_major>",  # nothing to add
    "tconcat": "dst=!pto.tile_buf<vec, 16x64xf32, blayout=col_major>",  # past the valid region
    "tmov": "dst=!pto.tile_buf<vec, 16x32xui8> tmp=",  # scratch that decides
    "tstore": "src=!pto.tile_buf<vec, 16x64xf32> dst=!pto.partition_tensor_view<16x64xf32> preQuantScalar",
}  # fmt: skip

VALID: tuple[tuple[int, int] | None, ...] = (None, (5, 37), (1, 64), (16, 1), (0, 64), (16, 0))


def executable() -> list[Row]:
    """Rows that both engines are to run, apart from scalar code and control flow."""
    return [
        r
        for r in isa.rows()
        if r.dialect == "pto" and r.effect == "memory" and r.cpp and r.set in ("tile", "ptoas")
        and find(r) is not None and r.name not in ELSEWHERE
    ]  # fmt: skip


@cache
def chosen(name: str) -> list[Plan]:
    """Return all types of all columns and every layout of a row in `make matrix`. Else return one plan (of some
    rows in another layout), and a second plan of every other row that no formula defines (`test_meanings` checks formulas on all their types)."""
    row = isa.row(name)
    assert row is not None
    first = zlib.crc32(name.encode())  # rows of a family show different columns, types and layouts
    shown = (v for p in column_plans(name, "cpu") if name in ONCE for v in (p, *layout_variants(p)))
    once = [p for p in shown if ONCE[name] in _shown(p) and is_legal(p)][:1]
    if EVERY:
        every = [*(p for column in row.isas for p in column_plans(name, column)), *some_plans(name)]
        found = [p for p in every if _callable(p)]
    else:
        found = []
        for k in range(1 if row.expr or first % 2 else 2):
            column = row.isas[(first + k) % len(row.isas)]
            plans = [p for p in column_plans(name, column) if _callable(p)]
            for plan in plans[first // 3 % max(1, len(plans)) :][:1]:
                # A view without a layout is legal with more tiles than its C++ type is.
                views = any(isinstance(t, ViewType) for types in plan.operands.values() for t in types)
                variants = layout_variants(plan) if not views and first % 5 == 0 else ()
                layouts = [plan, *(p for p in variants if is_legal(p) and _callable(p))]
                found.append(layouts[(first + k) % len(layouts)])
    return list({repr(p): p for p in found + once}.values())


def _callable(plan: Plan) -> bool:
    """Return True if the operands can be passed from outside: tiles, views, pointers and numbers. The layout
    of a Left tile is the target's, so none without boxes exists. The C++ of tquant has no exponents in ZZ
    order for groups along rows; the tests of the emitter have that refusal."""
    known = (TileBufType, ViewType, PtrType, MemRefType, ScalarType)
    found = [t for types in plan.operands.values() for t in types]
    flat = any(isinstance(t, TileBufType) and t.loc == "left" and not t.boxed for t in found)
    by_rows = "exp_zz" in plan.operands and str(plan.attrs.get("grp_axis")) == "0"
    return all(isinstance(t, known) for t in found) and not flat and not by_rows


def fill(case: Case, rng: np.random.Generator, kind: int, special: int | None) -> None:
    """Contents of all operands: numbers of modest size (kind 0), special ones and any bits among them (1), or
    combinations of special ones only (2); scalars of modest size, or one of the special ones."""
    number = -1
    for name, held in case.args.items():
        for at, value in enumerate(held if isinstance(held, list) else [held]):
            if isinstance(value, Tile | View):
                shape = value.shape if isinstance(value, Tile) else _view_shape(value)
                number += 1
                if kind == 2:
                    codes = combined_codes(number, value.dtype, shape)
                else:
                    codes = (mixed_codes if kind else random_codes)(rng, value.dtype, shape)
                if isinstance(value, Tile):
                    value.region(*shape).store(value.buffer.data, codes)
                else:
                    flat = np.ascontiguousarray(codes).view(np.uint8).ravel()
                    value.buffer.data[: flat.size] = flat[: value.buffer.data.size]
            elif isinstance(value, int | float) and (name, at) not in case.plan.constants:
                type = case.plan.operands[name][at]
                if isinstance(type, ScalarType):
                    made = _scalar(type, rng, special)
                    if isinstance(held, list):
                        held[at] = made
                    else:
                        case.args[name] = made
    special = FILLS.get(case.row.name)
    if special is not None:
        special(case, rng)


def combined_codes(number: int, dtype: str, shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Special values in such an order that operands with other numbers meet all combinations."""
    special = np.array(list(dict.fromkeys(special_codes(dtype))), np.uint64).astype(
        elements.code_dtype(dtype)
    )
    at = np.arange(shape[0] * shape[1]).reshape(shape)
    return special[at // len(special) ** number % len(special)]


#: Scalars worth meeting; they are those of a 16-bit type at most, which every wider one has, too.
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0**-14, -(2.0**-24), 65504.0, -65504.0, np.inf, -np.inf, np.nan)
WHOLE = (0, 1, -1, 7, 8, 16, 31, 32, 64, 127, -128)


def _scalar(type: ScalarType, rng: np.random.Generator, special: int | None) -> float | int:
    if special is not None:
        return SPECIAL[special] if type.is_float else WHOLE[special]
    return float(np.float16(rng.standard_normal())) if type.is_float else int(rng.integers(1, 8))


def runs(case: Case) -> list[tuple[tuple[int, int] | None, int, int | None]]:
    """Valid regions with the kind of their contents; of an expression also special values, with every special
    scalar where it computes with one."""
    found: list[tuple[tuple[int, int] | None, int, int | None]] = [
        (v, k % 2, None) for k, v in enumerate(VALID)
    ]
    if case.row.expr:
        scalars = any(isinstance(t, ScalarType) for types in case.plan.operands.values() for t in types)
        found += [(None, 2, k) for k in some(range(len(SPECIAL)), 5)] if scalars else [(None, 2, None)]
    return found


def _view_shape(view: View) -> tuple[int, int]:
    size = view.buffer.data.size * 8 // DTYPES[view.dtype].bits
    return (1, size)


def differences(found: list[Plan], column: str) -> list[str]:
    """Return the differences between the engines over all runs of some plans."""
    out: list[str] = []
    for one in compiled(found, column):
        out += _compare(one)
    return out


def _compare(one: Compiled) -> Iterator[str]:
    case = one.case
    compared, refusal = 0, ""
    for run, (valid, kind, special) in enumerate(runs(case)):
        rng = np.random.default_rng(run)
        for t, whole in one.tiles:
            t.v_row, t.v_col = whole if valid is None else (min(whole[0], valid[0]), min(whole[1], valid[1]))
        memory = [*one.on_chip.values(), *one.gm]
        for data in memory:
            data[:] = FILL
        fill(case, rng, kind, special)
        one.settle()
        before = [data.copy() for data in memory]
        refused = reference(case)
        if refused:  # these shapes or contents
            refusal = refused
            continue
        compared += 1
        want = Outcome(one)
        for engine in one.engines:
            for data, kept in zip(memory, before, strict=True):
                data[:] = kept
            scalars = {n: v for n, v in case.args.items() if isinstance(v, int | float)}
            where = f"{engine}: {case.row.name} {case.isa} {_shown(one.plan)} valid {valid} {scalars or ''}"
            problem = one.run(engine) or _unlike(one, want)
            if problem:
                yield f"{where}: {problem}"
    if not compared:
        yield f"{case.row.name} {case.isa} {_shown(one.plan)}: nothing compared, {refusal}"


def _shown(plan: Plan) -> str:
    tiles = [f"{n}={t[0]}" for n, t in plan.operands.items() if t]
    attrs = [f"{k}={v}" for k, v in plan.attrs.items()]
    return " ".join((*tiles, *attrs))


def _unlike(one: Compiled, want: Outcome) -> str:
    case, got = one.case, Outcome(one)
    for name, (dtype, codes) in want.tiles.items():
        mine = got.tiles[name][1]
        if (mine == codes).all():
            continue
        differ = unequal(dtype, mine, codes)
        if differ.any():
            r, c = (int(k) for k in np.argwhere(differ)[0])
            pair = [elements.decode(dtype, x[r : r + 1, c : c + 1]).item() for x in (mine, codes)]
            return f"{name}[{r}, {c}] is {pair[0]!r}, reference {pair[1]!r}; {differ.sum()} differ"
        place = case.args[name]
        place.region(*codes.shape).store(place.buffer.data, codes)  # NaN by NaN: the rest must be equal
    rest = Outcome(one)
    for loc, data in want.on_chip.items():
        if not np.array_equal(rest.on_chip[loc], data):
            at = int(np.argmax(rest.on_chip[loc] != data))
            return f"{loc} byte {at} outside the operands was written"
    for i, data in enumerate(want.gm):
        if not np.array_equal(rest.gm[i], data):
            at = int(np.argmax(rest.gm[i] != data))
            return f"global memory {i} differs from byte {at} on: {rest.gm[i][at]} for {data[at]}"
    return ""


PARTS = 24 if EVERY else 1


@pytest.mark.parametrize("column", ISAS)
@pytest.mark.parametrize("part", range(PARTS))
def test_rows(part: int, column: str) -> None:
    """One library for many rows: reading the headers takes as long as compiling a dozen of them."""
    found = [p for r in executable()[part::PARTS] for p in chosen(r.name) if p.isa == column]
    assert differences(found, column) == []
