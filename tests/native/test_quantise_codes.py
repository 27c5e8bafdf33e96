"""Quantisation of every number of 16 bits and of hard f32, and back from every byte: headers against reference.

In groups (the MX schemes, HiFloat4), the codes are laid out in groups three ways: neighbours together (every number is about the largest of its group),
codes of few binades together, and one of each size (small numbers beside the largest). The ordinary run takes some
of the tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.sampling import some

from pto.ir.attrs import StrAttr
from pto.isa.dtypes import DTYPES
from pto.isa.encoding import encode
from pto.witness.plan import Plan

from ..engine.conversions import table
from ..engine.rows import Array, Case, element_type, every_plan
from .instructions import COMPILER, Unit, difference
from .test_headers_core import FAST
from .test_headers_irregular import attr, quantise_call

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def plans() -> list[Plan]:
    """Return plans of the cpu column, groups along columns: every scheme, algorithm and source."""
    found: dict[object, Plan] = {}
    for name in ("tquant", "tquant_hif4"):
        for p in every_plan(name, layouts=False):
            by_columns = "exp" in p.operands and "exp_zz" not in p.operands and attr(p, "grp_axis", 1) == 1
            if p.isa != "cpu" or not by_columns:
                continue
            for alg in ("OCP", "NV") if name == "tquant" else ("OCP",):
                made = p.replace(attrs={**p.attrs, "scale_alg": StrAttr(alg)}) if name == "tquant" else p
                found.setdefault((name, str(attr(p, "quant_type")), element_type(p, "src"), alg), made)
    return list(found.values())


def whole_tiles(codes: Array, shape: tuple[int, int]) -> Array:
    """Codes in tiles, the last one filled up."""
    count = -(-codes.size // (shape[0] * shape[1]))
    return np.resize(codes, count * shape[0] * shape[1]).reshape(-1, *shape)


def tiles(dtype: str, shape: tuple[int, int]) -> Iterator[Array]:
    """Every code of the table of a type, three times."""
    codes = table(dtype).ravel()
    for apart in (1, 1 << (DTYPES[dtype].man - 3), codes.size // 32):
        grouped = codes.reshape(-1, 32, min(apart, codes.size // 32)).transpose(0, 2, 1)
        yield from whole_tiles(grouped.ravel(), shape)


def test_every_code_in_groups(tmp_path: Path) -> None:
    entries = [(p, quantise_call(p)) for p in plans()]
    assert len(entries) == 13
    unit = Unit("cpu", entries, tmp_path, ["ops/calls.hpp"], FAST)
    for number, (p, call) in enumerate(entries):
        for codes in some(tiles(element_type(p, "src"), Case(p).tile("src").shape), 6):
            case = Case(p)
            case.set("src", codes)
            assert difference(unit, number, case) is None, (call, element_type(p, "src"), hex(codes[0, 0]))


def singles() -> list[Plan]:
    """Return plans of the cpu column: to bytes by a scale, and back."""
    found = {}
    for name in ("tquant", "tdequant"):
        for p in every_plan(name, layouts=False):
            if p.isa == "cpu" and "exp" not in p.operands:
                types = tuple(element_type(p, n) for n in ("src", "dst"))
                found.setdefault((name, types, "offset" in p.operands), p)
    return list(found.values())


def test_every_code_by_a_scale(tmp_path: Path) -> None:
    entries = [
        (p, quantise_call(p) if p.row.name == "tquant" else "TDEQUANT(dst, src, scale, offset)")
        for p in singles()
    ]
    assert len(entries) >= 8
    unit = Unit("cpu", entries, tmp_path, ["ops/calls.hpp"], FAST)
    for number, (p, call) in enumerate(entries):
        case = Case(p)
        for codes in some(whole_tiles(table(element_type(p, "src")).ravel(), case.tile("src").shape), 6):
            case.set("src", codes)
            for scale, offset in ((1.0, 0.0), (0.5, 3.0), (-3.0, -2.5)):
                for name, value in (("fp", scale), ("scale", scale), ("offset", offset)):
                    if name in case.args:
                        t = case.tile(name)
                        case.set(name, np.full(t.shape, encode(t.dtype, value)))
                assert difference(unit, number, case) is None, (call, element_type(p, "src"), scale, offset)
                if call.startswith("TQUANT") and scale == 1 and "offset" not in case.args:
                    x = codes.view(np.float32)
                    want = np.clip(np.rint(np.where(np.isnan(x), np.float32(0), x)), -128, 127)
                    np.testing.assert_array_equal(case.get("dst").view(np.int8), want)
