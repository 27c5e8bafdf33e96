"""The instructions print and tprint, which show values, and trap, which ends the program."""

from __future__ import annotations

import math
import re
from typing import Any

from ...ir.printf import conversion
from ...isa import tile as tiles
from ...isa.dtypes import DTYPES
from ...isa.view import matrix_shape
from ..elements import Array
from ..memory import Tile, View
from .instr import IllegalInstruction, Instr
from .registry import executor
from .scalars import bits_of

_FORMAT = re.compile(r"Width(\d+)_Precision(\d+)")


class Trap(IllegalInstruction):
    """pto.trap was executed."""

    code = "PTO-E2105"


# --- tiles and views --------------------------------------------------------------------------------------


@executor("print tile")
def tprint(i: Instr) -> None:
    """Print a line `TPRINT RxC`, then one line per row."""
    source: Tile | View = i.arg("src")
    values = i.values(source, source.valid) if isinstance(source, Tile) else _view_values(i, source)
    i.core.out.write(matrix_text(values, source.dtype, str(i.attr("print_format") or "")))


def _view_values(i: Instr, view: View) -> Array:
    """Return a view as the matrix of its layout; in index order if the layout has none."""
    if len(view.dims) > 5:
        raise IllegalInstruction(f"expects a view of at most 5 dimensions, got {len(view.dims)}")
    extents, c0 = view.dims5[0], tiles.block_elements(view.bits)
    try:
        shape = matrix_shape(view.effective_layout(), extents, c0)
    except KeyError:
        view = view.copy()
        view.layout = "ND"
        shape = matrix_shape("ND", extents)
    return i.values(view, shape)


def matrix_text(values: Array, dtype: str, print_format: str) -> str:
    m = _FORMAT.search(print_format)
    width, precision = (int(m[1]), int(m[2])) if m else (8, 4)
    form = f"{width}.{precision}f" if DTYPES[dtype].is_float else f"{width}d"
    rows = [" ".join([format(v, form) for v in row]) for row in values.tolist()]
    return "\n".join([f"TPRINT {values.shape[0]}x{values.shape[1]}", *rows]) + "\n"


# --- scalars ----------------------------------------------------------------------------------------------


@executor("print scalar")
def print_scalar(i: Instr) -> None:
    """Print a scalar: the first conversion of the printf `format` takes it, further ones are text."""
    scalar = i.op.get("scalar")
    assert scalar is not None
    text = str(i.attr("format") or "%f").replace("\\n", "\n").replace("\\t", "\t")
    i.core.out.write(formatted(text, i.arg("scalar"), bits_of(scalar.type)))


def formatted(text: str, value: Any, bits: int) -> str:
    """Return a text with a value of `bits` bits in it. If the conversion does not fit the kind of the value,
    the value decides: a float is never truncated to an integer."""
    taken = False

    def replace(found: re.Match[str]) -> str:
        nonlocal taken
        if found[0] == "%%":
            return "%"
        if taken:
            return found[0]
        taken = True
        return _converted(found, value, bits)

    return conversion().sub(replace, text)


def _converted(found: re.Match[str], value: Any, bits: int) -> str:
    flags, width, precision = found["flags"], found["width"], found["precision"] or ""
    kind = found["kind"]
    if isinstance(value, float) and kind not in "eEfFgG":
        kind, precision = "f", ""
    elif isinstance(value, int) and kind in "aA":
        kind, value = "f", float(value)
    if kind in "eEfFgG":
        if not math.isfinite(value):
            flags = flags.replace("0", "")
        return f"%{flags}{width}{precision}{kind}" % float(value)
    number = int(value)
    if kind == "c":
        return f"%{flags.replace('0', '')}{width}s" % chr(number & 0xFF)
    if kind in "sp":
        return f"%{flags.replace('0', '')}{width}s" % str(number)
    return _integer(flags, width, precision, kind, number, {"h": 16, "hh": 8}.get(found["length"]), bits)


def _integer(
    flags: str, width: str, precision: str, kind: str, value: int, short: int | None, bits: int
) -> str:
    """Return an integer as C's printf shows it; Python's `%` differs in signs, `#o` and precisions."""
    sign = ""
    if kind in "di":
        if short is not None:
            half = 1 << (short - 1)
            value = (value + half) % (2 * half) - half
        sign = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
    else:  # a small integer becomes one of 32 bits first
        value &= (1 << (short or max(32, bits))) - 1
    digits = format(abs(value), kind if kind in "oxX" else "d")
    if precision:
        least = int(precision[1:] or 0)
        digits = digits.zfill(least) if value or least else ""
    if "#" in flags and kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    elif "#" in flags and kind in "xX" and value:
        sign = "0" + kind
    size = int(width or 0)
    if "-" in flags:
        return (sign + digits).ljust(size)
    if "0" in flags and not precision:
        digits = digits.zfill(size - len(sign))
    return (sign + digits).rjust(size)


@executor("trap")
def trap(i: Instr) -> None:
    raise Trap("the program trapped")
