"""tcvt in all layouts and regions, its defaults, and values by hand; `test_conversion_codes` has every code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.isa import encoding
from pto.isa.dtypes import ROUND_MODES
from pto.witness.plan import Plan, make_attribute, plan

from .conversions import PAIRS, ROW, SATURATION, converted, saturates
from .rows import VALID, Case, Doubles, assert_codes, mixed_codes, sampled_plans

ROWS = ("tcvt",)


def with_modes(made: Plan, mode: str, saturation: str | None) -> Plan:
    attrs = {"rmode": make_attribute(ROW.attr_index["rmode"], mode)}
    if saturation:
        attrs["sat_mode"] = make_attribute(ROW.attr_index["sat_mode"], saturation)
    return made.replace(attrs=attrs)


def check(case: Case, valid: tuple[int, int], mode: str, asked: str | None) -> None:
    src, dst = case.args["src"], case.args["dst"]
    codes = {n: mixed_codes(case.rng, case.args[n].dtype, case.args[n].shape) for n in case.args}
    for name, made in codes.items():
        case.set(name, made, valid if name != "tmp" else None)
    saturate = saturates(case.isa, src.dtype, dst.dtype, asked)
    known: dict[int, int] = {}
    want = codes["dst"].copy()
    for r in range(valid[0]):
        for c in range(valid[1]):
            code = int(codes["src"][r, c])
            if code not in known:
                known[code] = converted(src.dtype, dst.dtype, code, mode, saturate, case.isa)
            want[r, c] = known[code]
    case.run()
    what = (src.dtype, dst.dtype, mode, asked, case.isa, valid)
    assert_codes(dst.dtype, case.get("dst"), want, what)
    for name in codes:
        assert name == "dst" or (case.get(name) == codes[name]).all(), what


def test_layouts_and_regions() -> None:
    seen: set[Any] = set()
    for k, made in enumerate(sampled_plans("tcvt")):
        tiles: Any = [made.operands[n][0] for n in ("src", "dst")]
        layouts = tuple((t.layout, t.bits) for t in tiles)
        if layouts in seen:
            continue
        seen.add(layouts)
        check(Case(with_modes(made, "ROUND", "ON"), k), VALID[k % len(VALID)], "ROUND", "ON")
    for valid in VALID:
        for k, pair in enumerate(
            (("f32", "f16"), ("f16", "s4"), ("s4", "f16"), ("bf16", "f4e2m1"), ("i32", "i16"))
        ):
            made = plan(ROW, "cpu", {"src": pair[0], "dst": pair[1], "": pair[0]})
            check(Case(with_modes(made, "RINT", "OFF"), k), valid, "RINT", "OFF")


@pytest.mark.parametrize(
    "pair,mode,asked,x,want",
    [
        ("f32->i16", "RINT", "OFF", 70000.0, 4464),
        ("f32->i16", "RINT", "OFF", math.nan, 0),
        ("f32->i32", "RINT", "OFF", math.inf, -(2**31)),
        ("f32->i32", "RINT", "ON", math.nan, 2**31 - 1),
        ("f32->u8", "TRUNC", "OFF", 511.9, 255),
        ("f32->u8", "TRUNC", "ON", -3.0, 0),
        ("f32->f16", "RINT", "ON", 65520.0, 65504.0),
        ("f32->f16", "RINT", "ON", math.nan, 65504.0),
        ("f32->f16", "RINT", "ON", -math.inf, -65504.0),
        ("f32->f16", "RINT", "OFF", 65520.0, math.inf),
        ("f32->f8e4m3", "RINT", "ON", 1e6, 448.0),
        ("f32->f8e5m2", "RINT", "OFF", 1e6, math.inf),
        ("f32->f4e1m2", "RINT", "OFF", 9.0, 1.75),
        ("f16->f32", "RINT", "ON", math.inf, math.inf),
        ("f32->f32", "FLOOR", "OFF", -2.5, -3.0),
        ("f32->f32", "NONE", "OFF", -2.5, -2.5),
        ("i64->f32", "RINT", "OFF", 2**54 + 2**30 + 1, 18014398509481984.0),
        ("i32->i16", "RINT", "OFF", 70000, 4464),
        ("i32->i16", "RINT", "ON", 70000, 32767),
        ("i8->u8", "RINT", "ON", -1, 0),
        ("i8->u16", "RINT", "OFF", -1, 65535),
        ("f32->i32", "ODD", "OFF", 2.5, 3),
        ("f32->i32", "ODD", "OFF", -1.5, -1),
        ("f32->i32", "RINT", "OFF", 2.5, 2),
        ("f32->i32", "ROUND", "OFF", -2.5, -3),
    ],
)
def test_known_values(pair: str, mode: str, asked: str, x: float, want: float) -> None:
    src, dst = pair.split("->")
    case = Case(with_modes(plan(ROW, "cpu", {"src": src, "dst": dst, "": src}), mode, asked))
    case.set("src", np.full((16, 64), encoding.encode(src, x), np.uint64))
    case.run()
    assert encoding.decode(dst, int(case.get("dst")[0, 0])) == want


@pytest.mark.parametrize("column,default", [("cpu", 4464), ("a2a3", 4464), ("a5", 4464)])
def test_default_saturation(column: str, default: int) -> None:
    """f32 to i16 wraps everywhere; f32 to i32 saturates on hardware only."""
    for dst, x, want in (("i16", 70000.0, default), ("i32", 3e9, -(2**31) if column == "cpu" else 2**31 - 1)):
        case = Case(plan(ROW, column, {"src": "f32", "dst": dst, "": "f32"}).replace(attrs={}))
        case.set("src", np.full((16, 64), encoding.encode("f32", x), np.uint64))
        case.run()
        assert encoding.decode(dst, int(case.get("dst")[0, 0])) == want


def test_shadow_run() -> None:
    for column, src, dst in PAIRS:
        cases = [Case(plan(ROW, column, {"src": src, "dst": dst, "": src}), 4) for _ in range(2)]
        cases[1].core.port = Doubles()
        ones = cases[0].rng.integers(0, 2, (16, 64)) == 1
        for case in cases:
            case.set("src", np.where(ones, encoding.encode(src, 1), 0))
            case.run()
        assert (cases[0].get("dst") == cases[1].get("dst")).all(), (column, src, dst)


@examples(25)
@given(st.data())
def test_any_region(data: st.DataObject) -> None:
    column, src, dst = data.draw(st.sampled_from(PAIRS))
    mode, asked = data.draw(st.sampled_from(ROUND_MODES)), data.draw(st.sampled_from(SATURATION))
    made = plan(ROW, column, {"src": src, "dst": dst, "": src})
    valid = data.draw(st.tuples(st.integers(0, 16), st.integers(0, 12)))
    check(Case(with_modes(made, mode, asked), data.draw(st.integers(0, 2**32))), valid, mode, asked)
