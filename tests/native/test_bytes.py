"""Integer instructions on bytes: all 65536 pairs of operands (all 256 of a single one), on both engines. With a scalar
operand, the ordinary run takes some scalars.

The reference engine and the headers have to agree with each other, and both with the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sampling import some

from pto import isa
from pto.engine.memory import Tile
from pto.ir.types import TileBufType
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan, plans

from ..engine.rows import Array, Case
from .instructions import COMPILER, Unit, difference
from .test_headers_core import FAST, _call

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")


def quotient(x: Array, y: Array) -> Array:
    """Towards zero; by zero it is 0."""
    size = np.abs(x) // np.where(y == 0, 1, np.abs(y))
    return np.where(y == 0, 0, np.where((x < 0) == (y < 0), size, -size))


def floored(x: Array, y: Array) -> Array:
    return np.where(y == 0, 0, np.mod(x, np.where(y == 0, 1, y)))


def power(x: Array, y: Array) -> Array:
    """Low bits; of a negative exponent the whole part of a fraction."""
    pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
    found = [pow(a, b, 256) if b >= 0 else a**-b if a in (1, -1) else 0 for a, b in pairs]
    return np.array(found).reshape(x.shape)


def cast_power(x: Array, y: Array) -> Array:
    """Convert a double to an integer: numbers out of range of i32 have no low bits."""
    found = np.rint(np.power(x.astype(np.float64), y))  # NumPy's is good to one unit: whole, or a half
    return np.where(np.abs(found) < 2.0**31, found, 0).astype(np.int64)


#: Of numbers as 64-bit integers; results keep their low bits.
MEANING: dict[str, Callable[..., Array]] = {
    "tadd": np.add, "tsub": np.subtract, "tmul": np.multiply, "tdiv": quotient, "tmax": np.maximum,
    "tmin": np.minimum, "tand": np.bitwise_and, "tor": np.bitwise_or, "txor": np.bitwise_xor,
    "tshl": np.left_shift, "tshr": np.right_shift, "trem": floored,
    "tfmod": lambda x, y: np.where(y == 0, 0, x - y * quotient(x, y)), "tsubrelu": lambda x, y: np.maximum(x - y, 0),
    "tprelu": lambda x, y: np.where(x > 0, x, x * y), "tpow": power, "tpows": cast_power, "tabs": np.abs,
    "tnot": np.invert, "trelu": lambda x: np.maximum(x, 0), "tneg": np.negative,
}  # fmt: skip
SCALAR = tuple(
    f"{n}s" for n in "tadd tsub tmul tdiv tmax tmin tand tor txor tshl tshr trem tfmod tpow".split()
)


def entries() -> Iterator[Plan]:
    """Both types of every row in the column that has them all, with room for the operands."""
    for name in (*(n for n in MEANING if n != "tpows"), *SCALAR):
        row = isa.row(name)
        assert row is not None
        for plan in plans(row, "cpu"):
            tiled = [
                t
                for n, types in plan.operands.items()
                for t in types
                if isinstance(t, TileBufType) and n != "tmp"
            ]
            if {str(t.dtype) for t in tiled} & {"i8", "u8"} and len({t.dtype for t in tiled}) == 1:
                rows = 256 if len(tiled) == 3 else 1
                operands: dict[str, Any] = {
                    n: tuple(t.replace(rows=rows, cols=256, v_row=rows, v_col=256) if isinstance(t, TileBufType) else t for t in types)
                    for n, types in plan.operands.items()
                }  # fmt: skip
                yield plan.replace(operands=operands)


def numbers(case: Case, name: str) -> Array:
    codes = case.get(name)
    return codes.view(np.int8 if DTYPES[case.args[name].dtype].kind == "i" else np.uint8).astype(np.int64)


def cases(plan: Plan) -> Iterator[tuple[Case, Array]]:
    """Every operand or pair of operands, and what becomes of them."""
    case, name = Case(plan), plan.row.name
    sources = [
        o.name
        for o in plan.row.operands
        if o.role in ("in", "inout") and o.name in case.args and o.name != "tmp"
    ]
    meaning = MEANING[name if name in MEANING else name[:-1]]
    every = np.arange(256, dtype=np.uint8).reshape(1, 256)
    shifts = name.startswith("tsh")
    tiled = [n for n in sources if isinstance(case.args[n], Tile)]
    case.set(tiled[0], np.repeat(every.T, 256, 1) if len(tiled) == 2 else every)
    if len(tiled) == len(sources):
        if len(tiled) == 2:
            case.set(tiled[1], np.repeat(every % 8 if shifts else every, 256, 0))
        yield case, meaning(*(numbers(case, n) for n in tiled))
        return
    scalar = next(n for n in sources if n not in tiled)
    scalars = np.unique(numbers(case, tiled[0])).tolist()[: 8 if shifts else 256]
    for value in sorted({*some(scalars, 16), *scalars[127:130], scalars[-1]}):
        if shifts:
            value %= 8
        case.args[scalar] = value
        case.set("dst", np.full((1, 256), 0x5A))
        x = [numbers(case, n) if n in tiled else np.full((1, 256), value) for n in sources]
        untouched = value == 0 and name in ("trems", "tfmods")
        yield case, numbers(case, "dst") if untouched else meaning(*x)


def test_every_pair(tmp_path: Path) -> None:
    made = [(plan, _call(plan)) for plan in entries()]
    assert len(made) > 60
    unit = Unit("cpu", made, tmp_path, ["ops/calls.hpp"], FAST)
    for k, (plan, call) in enumerate(made):
        with np.errstate(all="ignore"):
            for case, want in cases(plan):
                where = (
                    call,
                    case.args["dst"].dtype,
                    [v for v in case.args.values() if not isinstance(v, Tile)],
                )
                assert difference(unit, k, case) is None, where
                np.testing.assert_array_equal(case.get("dst"), want.astype(np.uint8), str(where))


def test_a_remainder_by_zero_leaves_dst_as_it_is(tmp_path: Path) -> None:
    """By a scalar; if the divisors are a tile, integers become 0 and floats NaN."""
    made = [
        (plan, _call(plan))
        for name in ("trems", "tfmods")
        for plan in plans(isa.row(name), "cpu")  # type: ignore[arg-type]
        if str(plan.operands["dst"][0].dtype) in ("f32", "f16", "i32", "u64")  # type: ignore[union-attr]
    ]
    assert len(made) == 8
    unit = Unit("cpu", made, tmp_path, ["ops/calls.hpp"], FAST)
    for k, (plan, call) in enumerate(made):
        case = Case(plan)
        case.random("src")
        before = case.random("dst")
        for zero in (0.0, -0.0) if DTYPES[case.args["dst"].dtype].is_float else (0,):
            case.args["scalar"] = zero
            assert difference(unit, k, case) is None, (call, case.args["dst"].dtype)
            np.testing.assert_array_equal(case.get("dst"), before)
