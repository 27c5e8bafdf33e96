"""Combinations of partially valid tiles, element by element."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import together
from tests.sampling import examples

from pto.engine.reference.instr import Port
from pto.isa import encoding
from pto.isa.dtypes import DTYPES

from .rows import Case, Doubles, assert_codes, mixed_codes, sampled_plans

COMBINE: dict[str, Any] = {
    "tpartadd": operator.add, "tpartmul": operator.mul,
    "tpartmax": lambda x, y: y if y > x else x, "tpartmin": lambda x, y: y if y < x else x,
}  # fmt: skip
ARG: dict[str, Any] = {"tpartargmax": operator.gt, "tpartargmin": operator.lt}
ROWS = (*COMBINE, *ARG)
Shape = tuple[int, int]
#: Valid regions of dst, src0 and src1.
REGIONS: tuple[tuple[Shape, Shape, Shape], ...] = (
    ((16, 64), (16, 64), (16, 64)),
    ((16, 64), (16, 64), (5, 37)),
    ((16, 37), (3, 37), (16, 37)),
    ((13, 7), (13, 2), (13, 7)),
    ((9, 9), (4, 9), (9, 3)),
    ((9, 9), (2, 3), (5, 6)),
    ((5, 5), (0, 5), (5, 0)),
    ((5, 37), (16, 64), (1, 64)),
    ((1, 64), (1, 1), (1, 64)),
    ((16, 1), (16, 1), (7, 1)),
    ((0, 64), (0, 64), (0, 64)),
    ((16, 0), (16, 0), (16, 0)),
)


def inside(shape: Shape, r: int, c: int) -> bool:
    return r < shape[0] and c < shape[1]


def value(dtype: str, code: Any) -> float | int:
    return encoding.decode(dtype, int(code))


def stored(dtype: str, v: float | int) -> int:
    """One operation in f32, rounded to the element type."""
    if isinstance(v, float):
        with np.errstate(all="ignore"):
            v = float(np.float32(v))
    return encoding.encode(dtype, v)


def check(case: Case, dst: Shape, src0: Shape, src1: Shape) -> None:
    name = case.row.name
    kinds = ("Val", "Idx") if name in ARG else ("",)
    codes: dict[str, Any] = {}
    for kind in kinds:
        for operand, valid in (("dst", dst), ("src0", src0), ("src1", src1)):
            t = case.args[operand + kind]
            codes[operand + kind] = mixed_codes(case.rng, t.dtype, t.shape)
            case.set(operand + kind, codes[operand + kind], valid)
    first = kinds[0]
    equal = case.rng.integers(0, 2, codes["src0" + first].shape) == 1  # half of the values tie
    codes["src1" + first][equal] = codes["src0" + first][equal]
    case.set("src1" + first, codes["src1" + first])
    want = {k: v.copy() for k, v in codes.items()}
    dtype = case.args["dst" + first].dtype
    for r in range(dst[0]):
        for c in range(dst[1]):
            in0, in1 = inside(src0, r, c), inside(src1, r, c)
            x, y = (value(dtype, codes[s + first][r, c]) for s in ("src0", "src1"))
            for kind in kinds:
                a, b = codes["src0" + kind][r, c], codes["src1" + kind][r, c]
                if in0 and in1:
                    out = (a if ARG[name](x, y) else b) if name in ARG else stored(dtype, COMBINE[name](x, y))
                else:
                    out = a if in0 else b if in1 else 0
                want["dst" + kind][r, c] = out
    case.run()
    for operand, expected in want.items():
        assert_codes(case.args[operand].dtype, case.get(operand), expected, (name, operand, dst, src0, src1))


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    for k, plan in enumerate(sampled_plans(name)):
        check(Case(plan, k), *REGIONS[k % len(REGIONS)])


@together("name", ROWS)
@together("regions", REGIONS)
def test_regions(name: str, regions: tuple[Shape, Shape, Shape]) -> None:
    check(Case(sampled_plans(name)[0], 9), *regions)


@pytest.mark.parametrize("name", ROWS)
def test_copies_keep_every_bit(name: str) -> None:
    """A NaN that is only copied keeps its payload."""
    for plan in sampled_plans(name):
        case = Case(plan)
        src, dst = ("src0", "dst") if name in COMBINE else ("src0Val", "dstVal")
        t = case.args[src]
        if not DTYPES[t.dtype].nan:
            continue
        codes = np.full(t.shape, encoding.NAN_CODES[t.dtype] + 3, np.uint64)
        case.set(src, codes)
        case.args[src.replace("src0", "src1")].v_row = 0
        case.run()
        assert (case.get(dst) == codes).all()


@pytest.mark.parametrize("name", ROWS)
def test_shadow_run(name: str) -> None:
    for plan in sampled_plans(name):
        cases = Case(plan, 4), Case(plan, 4)
        cases[1].core.port = Doubles()
        out = "dst" if name in COMBINE else "dstVal"
        for case in cases:
            for n, t in case.args.items():
                case.random(n)
                t.v_row = 5 if n.startswith("src0") else 16
            case.run()
        assert (cases[0].get(out) == cases[1].get(out)).all()


class Undefined(Port):
    """Remembers which elements of dst are called unspecified."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, int]] = []

    def undefine(self, i: Any, place: Any, region: Any) -> None:
        for r in region.rows.offsets // place.cols:
            self.parts += [(int(r), int(c)) for c in region.cols.offsets]


@pytest.mark.parametrize("regions", REGIONS)
def test_what_no_source_covers_is_unspecified(regions: tuple[Shape, Shape, Shape]) -> None:
    for column in ("a5", "cpu"):
        case = Case(next(p for p in sampled_plans("tpartadd") if p.isa == column))
        case.core.port = port = Undefined()
        for name, (rows, cols) in zip(("dst", "src0", "src1"), regions, strict=True):
            case.tile(name).v_row, case.tile(name).v_col = rows, cols
        case.run()
        (rows, cols), *sources = regions
        want = {(r, c) for r in range(rows) for c in range(cols) if not any(inside(s, r, c) for s in sources)}
        assert len(set(port.parts)) == len(port.parts)
        assert set(port.parts) == want


@examples(80)
@given(st.data())
def test_any_codes(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ROWS))
    plan = data.draw(st.sampled_from(sampled_plans(name)))
    shape = st.tuples(st.integers(0, 16), st.integers(0, 20))
    check(Case(plan, data.draw(st.integers(0, 2**32))), *(data.draw(shape) for _ in range(3)))
