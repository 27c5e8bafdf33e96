"""Convolution tiles: unfolded feature maps, changes of layout and fractal windows, index by index."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.asm.type_text import parse_type
from pto.engine import elements
from pto.engine.memory import ConvFields, ConvTile
from pto.engine.reference.instr import IllegalInstruction
from pto.isa import encoding
from pto.isa.dtypes import DTYPES

from .moving import chosen_plans, known_plans, run, same_codes, scramble, stored
from .rows import Array, Case, Doubles, every_plan

ROWS = ("timg2col",)


def conv_tile(
    case: Case, name: str, loc: str, dims: tuple[int, ...], dtype: str, layout: str, address: int
) -> Array:
    """Replace an operand by a convolution tile of random elements; gives their codes as an array of `dims`."""
    text = "x".join(str(d) for d in dims)
    type_ = parse_type(f"!pto.conv_tile<{loc}, {text}x{DTYPES[dtype].mlir}, {layout}>")
    made = case.args[name] = ConvTile(type_, case.core.buffers[loc], address, name)
    made.buffer.grow(address + made.size)
    scramble(case, name)
    return contents(made)


def contents(tile: ConvTile) -> Array:
    data = tile.buffer.data[tile.address : tile.address + tile.size]
    return stored(data, tile.dtype).reshape(tile.dims)


# --- img2col ----------------------------------------------------------------------------------------------


def unfolded(src: Array, f: ConvFields, m: int, k: int) -> int | None:
    """Element (m, k) of the matrix; None where it lies outside the feature map. src is [N, D, C1, H, W, C0]."""
    n_, d_, c1_, h_, w_, c0_ = src.shape
    (fh, fw), (dh, dw), (sh, sw) = f.filter, f.dilation, f.stride
    left, right, top, bottom = f.pads
    out_h = (h_ + top + bottom - dh * (fh - 1) - 1) // sh + 1
    out_w = (w_ + left + right - dw * (fw - 1) - 1) // sw + 1
    n, m = m // (d_ * out_h * out_w), m % (d_ * out_h * out_w)
    d, m = m // (out_h * out_w), m % (out_h * out_w)
    oh, ow = m // out_w, m % out_w
    c1, c0, kk = k // (c0_ * fh * fw), k % c0_, k % (c0_ * fh * fw) // c0_
    ih, iw = oh * sh + kk // fw * dh - top, ow * sw + kk % fw * dw - left
    if n < n_ and c1 < c1_ and 0 <= ih < h_ and 0 <= iw < w_:
        return int(src[n, d, c1, ih, iw, c0])
    return None


FIELDS = [
    ConvFields(),
    ConvFields(filter=(3, 3), pads=(1, 1, 1, 1), pad_value=-3),
    ConvFields(filter=(2, 3), stride=(2, 1), dilation=(1, 2), pads=(0, 2, 1, 0), pad_value=7),
    ConvFields(filter=(1, 5), stride=(3, 2), pads=(4, 0, 0, 3), pad_value=1.5),
]


def check(case: Case, src: Array, f: ConvFields, start: tuple[int, int], valid: tuple[int, int]) -> None:
    dst = case.tile("dst")
    case.args["src"].fields = f
    dst.v_row, dst.v_col = valid
    case.args["posM"], case.args["posK"] = start
    scramble(case, "dst")
    want = case.get("dst")
    run(case, "dst")
    pad = encoding.encode(DTYPES[dst.dtype], f.pad_value)
    for r in range(valid[0]):
        for c in range(valid[1]):
            found = unfolded(src, f, start[0] + r, start[1] + c)
            want[r, c] = pad if found is None else found
    assert same_codes(case.get("dst"), want, dst.dtype), (case.isa, dst, f, start, valid)


def test_timg2col() -> None:
    for n, plan in enumerate(chosen_plans("timg2col")):
        case = Case(plan, n)
        dtype, bits = case.tile("dst").dtype, case.tile("dst").bits
        c0 = 256 // bits
        dims = (2, 2, 4, 5, c0)
        src = conv_tile(case, "src", "mat", dims, dtype, "NC1HWC0", 64).reshape(2, 1, 2, 4, 5, c0)
        rows, cols = case.tile("dst").shape
        valid = ((rows, cols), (rows - 3, cols - 5), (1, cols), (rows, 1), (0, cols))[n % 5]
        start = ((0, 0), (7, 0), (0, c0), (38, 3 * c0 + 2))[n % 4]
        check(case, src, FIELDS[n % len(FIELDS)], start, valid)


def test_timg2col_of_volumes() -> None:
    plans = [p for p in chosen_plans("timg2col") if str(p.operands["dst"][0].dtype) == "f16"]
    for n, plan in enumerate(plans):
        case = Case(plan, n)
        src = conv_tile(case, "src", "mat", (2, 3, 2, 3, 4, 16), "f16", "NDC1HWC0", 64)
        for f, start in product(FIELDS[:3], ((0, 0), (25, 16))):
            check(case, src, f, start, (16, 50))


def test_absent_positions_are_zero() -> None:
    plan = next(p for p in every_plan("timg2col") if "posM" not in p.operands)
    case = Case(plan)
    case.args["src"].fields = FIELDS[1]
    scramble(case, "src")
    first = dict(case.args)
    case.run()
    got = case.get("dst")
    case.args = {**first, "posM": 0, "posK": 0}
    case.run()
    assert (case.get("dst") == got).all()


def test_a_filter_larger_than_the_map_is_refused() -> None:
    case = Case(chosen_plans("timg2col")[0])
    case.args["src"].fields = ConvFields(filter=(40, 1))
    with pytest.raises(IllegalInstruction, match="expects a filter that fits"):
        case.run()


@examples(60)
@given(st.tuples(st.integers(1, 3), st.integers(1, 3)), st.tuples(st.integers(1, 3), st.integers(1, 3)),
       st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(*[st.integers(0, 3)] * 4),
       st.tuples(st.integers(0, 90), st.integers(0, 90)), st.tuples(st.integers(0, 16), st.integers(0, 32)))  # fmt: skip
def test_any_geometry(filter: Any, stride: Any, dilation: Any, pads: Any, start: Any, valid: Any) -> None:
    plan = next(
        p for p in known_plans("timg2col") if p.isa == "a5" and str(p.operands["dst"][0].dtype) == "i16"
    )
    case = Case(plan)
    src = conv_tile(case, "src", "mat", (2, 2, 5, 6, 16), "i16", "NC1HWC0", 64).reshape(2, 1, 2, 5, 6, 16)
    check(
        case,
        src,
        ConvFields(pads=pads, filter=filter, dilation=dilation, stride=stride, pad_value=9),
        start,
        valid,
    )


def test_a_shadow_run_unfolds_too() -> None:
    plan = next(
        p for p in known_plans("timg2col") if p.isa == "a5" and str(p.operands["dst"][0].dtype) == "f16"
    )
    got = []
    for port in (None, Doubles()):
        case = Case(plan)
        src = case.args["src"]
        src.fields = FIELDS[1]
        codes = elements.encode("f16", np.arange(prod(src.dims), dtype=np.float64) % 100)
        src.buffer.data[src.address : src.address + src.size] = codes.view(np.uint8)
        if port:
            case.core.port = port
        case.run()
        got.append(case.get("dst"))
    assert (got[0] == got[1]).all()


# --- changes of layout ------------------------------------------------------------------------------------


def transposed(src_layout: str, dst_layout: str, src: Array, dst: Array) -> None:
    """Fill `dst` from `src`, index by index; tails of blocks are left alone."""
    c0 = dst.shape[-1]
    for index in np.ndindex(*src.shape):
        value = src[index]
        pair = (src_layout, dst_layout)
        if pair == ("NCHW", "NC1HWC0"):
            n, c, h, w = index
            dst[n, c // c0, h, w, c % c0] = value
        elif pair == ("GNCHW", "GNC1HWC0"):
            g, n, c, h, w = index
            dst[g, n, c // c0, h, w, c % c0] = value
        elif pair == ("NC1HWC0", "NCHW"):
            n, c1, h, w, c = index
            if c1 * src.shape[4] + c < dst.shape[1]:
                dst[n, c1 * src.shape[4] + c, h, w] = value
        elif pair == ("NC1HWC0", "FRACTAL_Z"):
            n, c1, h, w, c = index
            dst[(c1 * src.shape[2] + h) * src.shape[3] + w, n // 16, n % 16, c] = value
        elif pair == ("GNC1HWC0", "FRACTAL_Z"):
            g, n, c1, h, w, c = index
            _, _, c1_, h_, w_, _ = src.shape
            dst[g * c1_ * h_ * w_ + c1 * h_ * w_ + h * w_ + w, n // 16, n % 16, c] = value
        else:
            n, c, d, h, w = index
            c1_ = -(-src.shape[1] // c0)
            dst[((d * c1_ + c // c0) * src.shape[3] + h) * src.shape[4] + w, n // 16, n % 16, c % c0] = value


PAIRS = [
    ("NCHW", (2, 20, 3, 4), "NC1HWC0", (2, 2, 3, 4, 16)),
    ("NCHW", (2, 7, 3, 2), "NC1HWC0", (2, 2, 3, 2, 4)),
    ("GNCHW", (2, 3, 20, 2, 3), "GNC1HWC0", (2, 3, 2, 2, 3, 16)),
    ("NC1HWC0", (2, 2, 3, 4, 16), "NCHW", (2, 20, 3, 4)),
    ("NC1HWC0", (19, 2, 2, 3, 16), "FRACTAL_Z", (12, 2, 16, 16)),
    ("GNC1HWC0", (2, 5, 2, 2, 3, 16), "FRACTAL_Z", (24, 1, 16, 16)),
    ("NCDHW", (17, 20, 2, 3, 2), "FRACTAL_Z_3D", (24, 2, 16, 16)),
]


@pytest.mark.parametrize(("layout", "dims", "to", "dst_dims"), PAIRS, ids=lambda v: str(v).replace(" ", ""))
def test_ttrans_of_convolution_tiles(
    layout: str, dims: tuple[int, ...], to: str, dst_dims: tuple[int, ...]
) -> None:
    plan = next(
        p for p in known_plans("ttrans") if p.isa == "cpu" and str(p.operands["src"][0].dtype) == "f16"
    )
    case = Case(plan)
    src = conv_tile(case, "src", "vec", dims, "f16", layout, 0)
    want = conv_tile(case, "dst", "vec", dst_dims, "f16", to, 1 << 17)
    run(case, "dst")
    transposed(layout, to, src, want)
    assert (contents(case.args["dst"]) == want).all()


def test_an_unknown_pair_of_layouts_is_refused() -> None:
    case = Case(next(p for p in known_plans("ttrans") if p.isa == "cpu"))
    conv_tile(case, "src", "vec", (1, 16, 2, 2), "f16", "NCHW", 0)
    conv_tile(case, "dst", "vec", (1, 16, 2, 2), "f16", "NCHW", 4096)
    with pytest.raises(IllegalInstruction, match="known pair of convolution layouts, got NCHW to NCHW"):
        case.run()


# --- fractal windows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dims", "layout"),
    [((8, 5, 16, 16), "FRACTAL_Z"), ((8, 5, 16, 16), "FRACTAL_Z_3D"), ((2, 2, 2, 80, 16), "FRACTAL_Z")],
)
def test_fractal_windows(dims: tuple[int, ...], layout: str) -> None:
    """Rows are k = (block, c0), columns are n; the window starts at whole blocks."""
    for name, starts in (("textract", [(0, 0), (16, 32), (64, 16)]), ("tmov", [(0, 0)])):
        plan = next(
            p for p in known_plans(name)
            if p.isa == "cpu" and p.operands["dst"][0].loc in ("right", "left")
            and str(p.operands["dst"][0].dtype) == "f16"
        )  # fmt: skip
        for start, valid in product(starts, ((64, 48), (33, 41), (0, 3))):
            right = plan.operands["dst"][0].replace(
                loc="right", rows=64, cols=64, v_row=64, v_col=64, blayout="row_major", slayout="col_major"
            )
            case = Case(plan.replace(operands={**plan.operands, "dst": (right,)}))
            src = conv_tile(case, "src", "mat", dims, "f16", layout, 0).reshape(8, 80, 16)
            dst = case.tile("dst")
            dst.v_row, dst.v_col = valid
            if name == "textract":
                case.args["indexRow"], case.args["indexCol"] = start
            want = case.get("dst")
            run(case, "dst")
            for k in range(valid[0]):
                for n in range(valid[1]):
                    want[k, n] = src[start[0] // 16 + k // 16, start[1] + n, k % 16]
            assert (case.get("dst") == want).all()


def test_other_convolution_tiles_have_no_windows() -> None:
    plan = next(p for p in known_plans("textract") if p.isa == "cpu")
    case = Case(plan)
    conv_tile(case, "src", "mat", (1, 2, 4, 4, 16), "f16", "NC1HWC0", 0)
    with pytest.raises(IllegalInstruction, match="FRACTAL_Z or FRACTAL_Z_3D, got NC1HWC0"):
        case.run()
