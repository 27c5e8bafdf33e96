"""Mode registers: the words that configuration instructions leave."""

from __future__ import annotations

import pytest

from pto.engine.memory import ConvFields, Pointer
from pto.ir.attrs import BoolAttr

from .moving import attribute, run
from .rows import Case, every_plan

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
