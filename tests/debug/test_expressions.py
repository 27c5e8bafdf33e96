"""Expressions of the debugger: their meaning, and the errors of meaningless ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import each

from pto.engine.debug.expressions import DEEPEST, LONGEST, Expression, ExpressionError, Index

NAMES = {"i": 7, "x": 2.5, "t": 3}


def read(index: Index) -> Any:
    if index.name not in NAMES:
        raise ExpressionError(f"no %{index.name}")
    return NAMES[index.name]


def test_values() -> None:
    def check(text: str, value: Any) -> None:
        assert Expression(text).compute(read) == value

    each(check, [
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("-%i + 1", -6), ("%i % 4", 3), ("i // 2", 3), ("i / 2", 3.5),
        ("0x10", 16), ("1e3", 1000.0), (".5", 0.5), ("%i > 3 and %x < 3", 1), ("%i > 3 && !(%x < 3)", 0),
        ("not 0 or 1 / 0", 1), ("%i == 7", 1), ("!!3", 1), ("true + true", 2), ("--3", 3), ("%t[0, 1]", 3),
        ("7 - 2 - 1", 4), ("%i != 7 || %i >= 7", 1),
    ])  # fmt: skip


def test_names_alone_have_their_indices() -> None:
    assert Expression("%t").index == Index("t", ())
    found = Expression(" %t[0:4, :] ").index
    assert found is not None and [tuple(s) for s in found.slices] == [(0, 4, False), (None, None, False)]
    assert [Expression(t).index for t in ("(%t)", "-%t", "%t + 1", "1")] == [None] * 4
    assert Expression("$block").index == Index("$block", ())


def test_what_is_wrong_is_said() -> None:
    def check(text: str, why: str) -> None:
        with pytest.raises(ExpressionError, match=why):
            Expression(text).compute(read)

    each(check, [
        ("", "empty"), ("1 +", "the end"), ("(1", "expected '\\)'"), ("1 2", "after the expression"), ("#", "cannot use"),
        ("%t[", "an index"), ("%t[1.5]", "whole number"), ("%t[1", "expected '\\]'"), ("1 / 0", "by zero"),
        ("1 % 0", "by zero"), ("%none", "no %none"), ("and", "a name or a number"),
        ("(" * (DEEPEST + 1) + "1", "nested"), ("1" * (LONGEST + 1), "characters"),
        ("*".join(["9" * 90] * 10), "too large"),
    ])  # fmt: skip


def test_a_tile_is_no_number() -> None:
    with pytest.raises(ExpressionError, match="element of a tile"):
        Expression("%t + 1").compute(lambda index: np.zeros(3))


_WORDS = st.sampled_from(
    [*"+-*/%()[],:<>!", "%i", "%x", "and", "or", "not", "1", "2.5", "0x", "==", " ", "&&", "%"]
)


@given(st.one_of(st.text(max_size=60), st.lists(_WORDS, max_size=30).map("".join)))
def test_any_text_is_answered(text: str) -> None:
    try:
        found = Expression(text).compute(read)
    except ExpressionError as e:
        assert str(e)
    else:
        assert isinstance(found, int | float) and (found == found or math.isnan(found))
