"""Mode registers: the words that configuration instructions leave."""

from __future__ import annotations

import numpy as np
import pytest

from pto.engine.memory import ConvFields, Pointer
from pto.ir.attrs import BoolAttr

from . import programs
from .moving import attribute, run
from .rows import Array, Case, every_plan

ROWS = (
    "setfmatrix", "set_img2col_rpt", "set_img2col_padding", "set_quant_scalar", "set_quant_vector", "sethf32mode",
    "settf32mode", "set_ffts",
)  # fmt: skip

FIELDS = ConvFields(
    pads=(1, 2, 3, 4), fmap=(33, 70), pad_value=-1, repeat_stride=0x1234, repeat_time=0x56, repeat_mode=1,
    dst_stride=0x789A, dst_position=0xBCDE,
)  # fmt: skip


def cases(name: str) -> list[Case]:
    return [Case(p) for p in every_plan(name)]


@pytest.mark.parametrize("mode", ["FMATRIX_A_MANUAL", "FMATRIX_B_MANUAL", "FMATRIX_A_AUTO", "FMATRIX_B_AUTO"])
def test_convolution_registers(mode: str) -> None:
    words = {
        "setfmatrix": ("FMATRIX", {i: 0x04030201_0021_0046 for i in ("cpu", "a2a3", "a5")}),
        "set_img2col_rpt": (
            "IMG2COL_RPT",
            {"cpu": 0xBCDE_789A_01_56_1234, "a5": 0xBCDE_789A_01_56_1234, "a2a3": 0x01_56_1234},
        ),
        "set_img2col_padding": ("IMG2COL_PADDING", {i: 0xBC00 for i in ("cpu", "a2a3", "a5")}),
    }
    for name, (register, want) in words.items():
        for case in cases(name):
            case.args["src"].fields = FIELDS
            attribute(case, "fmatrix_mode", mode)
            run(case)
            if mode.endswith("AUTO"):
                assert case.core.registers == {}
            else:
                assert case.core.registers == {f"{register}_{mode[8]}": want[case.isa]}


def test_feature_map_of_the_tile() -> None:
    case = cases("setfmatrix")[0]
    dims = case.args["src"].dims
    case.run()
    assert case.core.registers["FMATRIX_A"] == dims[3] | dims[2] << 16


@pytest.mark.parametrize(
    ("dtype", "bits", "value", "want"),
    [("i8", 8, -1, 0xFFFF), ("u8", 8, 0x21, 0x2121), ("f32", 32, 1.0, 0x3F800000)],
)
def test_pad_value_of_other_types(dtype: str, bits: int, value: float, want: int) -> None:
    case = cases("set_img2col_padding")[0]
    case.args["src"].dtype, case.args["src"].bits = dtype, bits
    case.args["src"].fields = ConvFields(pad_value=value)
    case.run()
    assert case.core.registers["IMG2COL_PADDING_A"] == want


@pytest.mark.parametrize(
    ("out_type", "sign"), [("i8", 1), ("u8", 0), ("f16", 0), ("bf16", 0), ("i16", 0), (None, 0)]
)
def test_quant_scalar(out_type: str | None, sign: int) -> None:
    for case in cases("set_quant_scalar"):
        case.args["preQuantScalar"] = -0.75
        if out_type:
            attribute(case, "out_type", out_type)
        run(case)
        attribute(case, "id", 3)
        case.args["preQuantScalar"] = 1.0
        run(case)
        word = 0xBF400000 | sign << 46
        assert case.core.registers == {"QUANT_SCALAR_0": word, "QUANT_SCALAR_3": 0x3F800000 | sign << 46}


def test_quant_vector_names_the_tile() -> None:
    for case in cases("set_quant_vector"):
        run(case)
        kept = case.core.registers["QUANT_VECTOR_0"]
        tile = case.tile("fpTile")
        assert (kept.address, kept.buffer) == (tile.address, tile.buffer)
        tile.address = 1 << 10  # what happens to the handle later does not matter
        assert kept.address != tile.address


def test_hf32() -> None:
    for case in cases("sethf32mode"):
        run(case)
        assert case.core.registers == {"hf32": "ROUND"}
        case.op.attrs = {"enable": BoolAttr(False)}
        run(case)
        assert case.core.registers == {"hf32": None}


def test_tf32() -> None:
    for case in cases("settf32mode"):
        case.core.registers["CTRL"] = 1 << 48
        run(case)
        assert case.core.registers == {"tf32": "ROUND", "CTRL": 0b111 << 46}
        attribute(case, "mode", "CAST_RINT")
        run(case)
        assert case.core.registers == {"tf32": "RINT", "CTRL": 0b101 << 46}
        case.op.attrs = {"enable": BoolAttr(False)}
        run(case)
        assert case.core.registers == {"tf32": None, "CTRL": 0b100 << 46}


def test_ffts() -> None:
    for case in cases("set_ffts"):
        place = case.args["ffts"]
        run(case)
        assert case.core.registers["FFTS"] == place.buffer.base
        case.args["ffts"] = Pointer(place.buffer, 64, "i64")
        run(case)
        assert case.core.registers["FFTS"] == place.buffer.base + 64


PRODUCT = """
!mat = !pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>
!left = !pto.tile_buf<left, 16x16xf32, slayout=row_major>
!right = !pto.tile_buf<right, 16x16xf32, slayout=col_major>
!acc = !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
!view = !pto.tensor_view<16x16xf32>
!window = !pto.partition_tensor_view<16x16xf32>
module attributes {{pto.target_arch = "a3"}} {{
  func.func @k(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %y: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %at0 = arith.constant 0 : i64
    %at1 = arith.constant 1024 : i64
    %va = pto.make_tensor_view %a, shape = [%c16, %c16], strides = [%c16, %c1] : !view
    %vb = pto.make_tensor_view %b, shape = [%c16, %c16], strides = [%c16, %c1] : !view
    %vy = pto.make_tensor_view %y, shape = [%c16, %c16], strides = [%c16, %c1] : !view
    %pa = pto.partition_view %va, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !window
    %pb = pto.partition_view %vb, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !window
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !window
    %ma = pto.alloc_tile addr = %at0 : !mat
    %mb = pto.alloc_tile addr = %at1 : !mat
    %l = pto.alloc_tile addr = %at0 : !left
    %r = pto.alloc_tile addr = %at0 : !right
    %acc = pto.alloc_tile addr = %at0 : !acc
    pto.tload ins(%pa : !window) outs(%ma : !mat)
    pto.tload ins(%pb : !window) outs(%mb : !mat)
    pto.set_flag[<PIPE_MTE2>, <PIPE_MTE1>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_MTE1>, <EVENT_ID0>]
    pto.tmov ins(%ma : !mat) outs(%l : !left)
    pto.tmov ins(%mb : !mat) outs(%r : !right)
    pto.set_flag[<PIPE_MTE1>, <PIPE_M>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE1>, <PIPE_M>, <EVENT_ID0>]
    pto.{name} {{enable = {enable}}}
    pto.tmatmul ins(%l, %r : !left, !right) outs(%acc : !acc)
    pto.{name} {{enable = false}}
    pto.set_flag[<PIPE_M>, <PIPE_FIX>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_M>, <PIPE_FIX>, <EVENT_ID0>]
    pto.tstore ins(%acc : !acc) outs(%py : !window)
    return
  }}
}}
"""


@pytest.mark.parametrize("name", ["sethf32mode", "settf32mode"])
def test_modes_hold_for_what_was_issued_under_them(name: str) -> None:
    """Also where the matrix pipe comes to it only after the mode was switched off again."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((16, 16)).astype(np.float32) for _ in "ab")

    def product(enable: str, schedule: int | None = None) -> Array:
        y = np.zeros((16, 16), np.float32)
        assert programs.run(PRODUCT.format(name=name, enable=enable), a, b, y, schedule=schedule).ok
        return y

    rounded = product("true")
    assert not np.array_equal(rounded, product("false"))
    assert all(np.array_equal(product("true", seed), rounded) for seed in range(10))
