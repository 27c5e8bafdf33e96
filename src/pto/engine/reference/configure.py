"""Mode registers of a core. They change no data; instructions issued later read them as `i.registers`.

    FMATRIX_A, FMATRIX_B            feature map of img2col, as one 64-bit word
    IMG2COL_RPT_A, .._B             its repeat settings, a word
    IMG2COL_PADDING_A, .._B         its value outside the feature map, a bit pattern
    QUANT_SCALAR_n, QUANT_VECTOR_n  quantisation word, or tile of words, of FIFO n
    hf32, tf32                      rounding of f32 matrix operands; None if off
    CTRL                            control word: `isa/ctrl.py` has its bits and its reset value
    FFTS                            address of the cross-core flags

A register is missing until an instruction sets it.
"""

from __future__ import annotations

import numpy as np

from ...isa import ctrl
from .. import elements
from ..memory import ConvTile, View
from . import fixpipe
from .instr import Instr
from .registry import executor


def _conv_register(i: Instr, name: str, word: int) -> None:
    """Set register A or B; in the automatic modes timg2col does it."""
    which, _, how = str(i.attr("fmatrix_mode")).removeprefix("FMATRIX_").partition("_")
    if how == "MANUAL":
        i.core.registers[f"{name}_{which}"] = word


@executor("feature map")
def setfmatrix(i: Instr) -> None:
    src: ConvTile = i.arg("src")
    dims = src.dims if src.layout.endswith("C0") else (*src.dims, 1)
    height, width = (f or d for f, d in zip(src.fields.fmap, dims[-3:-1], strict=True))
    i.require(height > 0 and width > 0, f"expects a feature map that is not empty, got {height}x{width}")
    word = width & 0xFFFF | (height & 0xFFFF) << 16
    for n, pad in enumerate(src.fields.pads):
        word |= (pad & 0xFF) << (32 + 8 * n)
    _conv_register(i, "FMATRIX", word)


@executor("window repetition")
def set_img2col_rpt(i: Instr) -> None:
    f = i.arg("src").fields
    word = f.repeat_stride & 0xFFFF | (f.repeat_time & 0xFF) << 16 | (f.repeat_mode & 0xFF) << 24
    if i.isa != "a2a3":
        word |= (f.dst_stride & 0xFFFF) << 32 | (f.dst_position & 0xFFFF) << 48
    _conv_register(i, "IMG2COL_RPT", word)


@executor("window padding")
def set_img2col_padding(i: Instr) -> None:
    src: ConvTile = i.arg("src")
    code = int(elements.encode(src.dtype, np.array([src.fields.pad_value], np.float64))[0])
    _conv_register(i, "IMG2COL_PADDING", code | code << 8 if src.bits <= 8 else code)


@executor("quantisation scalar")
def set_quant_scalar(i: Instr) -> None:
    # Without an output type the sign bit stays 0.
    word = fixpipe.scalar_word(i.arg("preQuantScalar"), i.attr("out_type"))
    i.core.registers[f"QUANT_SCALAR_{i.attr('id')}"] = word


@executor("quantisation vector")
def set_quant_vector(i: Instr) -> None:
    i.core.registers[f"QUANT_VECTOR_{i.attr('id')}"] = i.tile("fpTile").copy()


def _rounding(i: Instr) -> str | None:
    return str(i.attr("mode")).removeprefix("CAST_") if i.attr("enable") else None


@executor("rounding mode")
def set_rounding(i: Instr) -> None:
    registers = i.core.registers
    rounding = registers[i.kind] = _rounding(i)
    if i.kind == "hf32":
        return
    word = ctrl.with_field(i.control, (ctrl.TF32, 1), rounding is not None)
    if rounding is not None:
        word = ctrl.with_field(word, (ctrl.TF32_AWAY, 1), rounding == "ROUND")
    registers["CTRL"] = word


@executor("control register")
def control_register(i: Instr) -> int | None:
    if i.kind == "set":
        i.core.registers["CTRL"] = int(i.arg("value")) & (1 << 64) - 1
        return None
    return i.control - (1 << 64) * (i.control >> 63)  # an i64


@executor("atomic updates")
def set_atomic(i: Instr) -> None:
    field, numbers = ctrl.TYPE_FIELD, ctrl.TYPES
    if i.kind in ctrl.OPERATIONS:
        field, numbers = ctrl.OPERATION_FIELD, ctrl.OPERATIONS
    i.core.registers["CTRL"] = ctrl.with_field(i.control, field, numbers[i.kind])


@executor("flag base")
def set_ffts(i: Instr) -> None:
    place = i.arg("ffts")
    i.core.registers["FFTS"] = (place.pointer if isinstance(place, View) else place).address
