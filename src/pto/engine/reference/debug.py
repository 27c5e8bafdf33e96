"""What a program shows: print, tprint; and trap, which ends it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...isa.dtypes import DTYPES
from ..elements import Array
from ..memory import View
from .instr import IllegalInstruction, Instr
from .registry import executor

_FORMAT = re.compile(r"Width(\d+)_Precision(\d+)")


class Trap(IllegalInstruction):
    """pto.trap was executed."""

    code = "PTO-E2105"


@executor("tprint")
def tprint(i: Instr) -> None:
    """A line `TPRINT RxC`, then one line per row."""
    source = i.arg("src")
    if isinstance(source, View):
        dims = (1, 1, *source.dims)
        shape = int(np.prod(dims[:-1])), dims[-1]
        values = i.values(source, shape)
    else:
        shape = source.valid
        values = i.values(source, shape)
    i.core.out.write(matrix_text(values, source.dtype, str(i.attr("print_format") or "")))


def matrix_text(values: Array, dtype: str, print_format: str) -> str:
    m = _FORMAT.search(print_format)
    width, precision = (int(m[1]), int(m[2])) if m else (8, 4)
    show = _float_text if DTYPES[dtype].is_float else _int_text
    rows = [" ".join(show(v, width, precision, DTYPES[dtype].bits) for v in row) for row in values.tolist()]
    return "\n".join([f"TPRINT {values.shape[0]}x{values.shape[1]}", *rows]) + "\n"


def _float_text(value: float, width: int, precision: int, bits: int) -> str:
    return f"{value:{width}.{precision}f}"


def _int_text(value: int, width: int, precision: int, bits: int) -> str:
    return str(value) if bits == 8 else f"{value:{width}d}"


@executor("print")
def print_scalar(i: Instr) -> None:
    """`format` is a printf format; what does not fit it is printed as it is."""
    value: Any = i.arg("scalar")
    text = str(i.attr("format") or "%f")
    text = text.replace("\\n", "\n").replace("\\t", "\t")
    conversion = re.search(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?([diouxXeEfFgGc])", text)
    if conversion is None:
        i.core.out.write(text)
        return
    number = int(value) if conversion[1] in "diouxXc" else float(value)
    clean = re.sub(r"hh|h|ll|l|z", "", conversion[0])
    i.core.out.write(text.replace(conversion[0], clean % number, 1))


@executor("trap")
def trap(i: Instr) -> None:
    raise Trap("the program trapped")
