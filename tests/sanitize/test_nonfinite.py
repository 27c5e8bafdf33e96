"""Sanitizer nan: what it reports, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto

_HEAD = """!tile = !pto.tile_buf<vec, 16x64xf32>
!narrow = !pto.tile_buf<vec, 16x64xf32, valid=16x60>
!padded = !pto.tile_buf<vec, 16x64xf32, pad=min>
!view = !pto.tensor_view<16x64xf32>
!part = !pto.tensor_view<16x60xf32>
func.func @k(%x: !view, %n: !part, %s: f32, %y: !view) attributes {pto.entry} {
  %one = arith.constant 1.0 : f32
  %a = pto.alloc_tile : !tile
  %b = pto.alloc_tile : !tile
  %c = pto.alloc_tile : !tile
"""
_TAIL = "  pto.tstore ins(%c : !tile) outs(%y : !view)\n  return\n}\n"
_LOAD = "  pto.tload ins(%x : !view) outs(%a : !tile)\n"
_EXP = "  pto.texp ins(%a : !tile) outs(%b : !tile)\n"
_COPY = "  pto.tadds ins(%b, %one : !tile, f32) outs(%c : !tile)\n"


def found(body: str, x: Any = 1.0, s: float = 0.0) -> list[tuple[str, str]]:
    """Severities and the instructions that the reports name."""
    given = np.ones((16, 64), np.float32)
    given[3, 5] = x
    args = given, np.ones((16, 60), np.float32), s, np.zeros((16, 64), np.float32)
    kernel = pto.kernel(pto.parse(_HEAD + body + _TAIL), engine="reference")
    return [(d.severity, d.message.partition(":")[0]) for d in kernel.run(*args, sanitize="nan").diagnostics]


def test_an_infinity_is_a_warning_and_keeps_its_origin() -> None:
    assert found(_LOAD + _EXP + _COPY, 200.0) == [("warning", "texp")]


def test_a_nan_is_an_error_although_another_element_was_nan_before() -> None:
    """Element by element: the argument has a NaN, and the logarithm makes another one."""
    log = "  pto.tlog ins(%a : !tile) outs(%b : !tile)\n"
    assert found(_LOAD + log + _COPY, -1.0) == [("error", "tlog")]
    assert found(_LOAD + log + _COPY, np.nan) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_arguments_and_scalars_hold_is_no_finding(value: float) -> None:
    assert found(_LOAD + "  pto.tadds ins(%a, %one : !tile, f32) outs(%c : !tile)\n", value) == []
    assert found("  pto.texpands ins(%s : f32) outs(%b : !tile)\n" + _COPY, s=value) == []


def test_what_is_not_stored_is_no_finding() -> None:
    """The minimum with 1 drops the infinity."""
    drop = "  pto.tmins ins(%b, %one : !tile, f32) outs(%c : !tile)\n"
    assert found(_LOAD + _EXP + drop, 200.0) == []


def test_a_copy_that_overwrites_an_origin_ends_it() -> None:
    again = "  pto.texpands ins(%one : f32) outs(%b : !tile)\n"
    assert found(_LOAD + _EXP + again + _COPY, 200.0) == []


def test_padding_is_no_finding() -> None:
    """Behind 60 columns the tile is filled with -inf, and stored."""
    text = (
        _HEAD
        + """  %p = pto.alloc_tile : !narrow
  %q = pto.alloc_tile : !padded
  pto.tload ins(%n : !part) outs(%p : !narrow)
  pto.tfillpad ins(%p : !narrow) outs(%q : !padded)
  pto.tstore ins(%q : !padded) outs(%y : !view)
  return
}
"""
    )
    y = np.zeros((16, 64), np.float32)
    args = np.ones_like(y), np.ones((16, 60), np.float32), 0.0, y
    result = pto.kernel(pto.parse(text), engine="reference").run(*args, sanitize="nan")
    assert result.diagnostics == [] and (y[:, 60:] == -np.inf).all()
