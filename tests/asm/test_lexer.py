"""Tokens: their start and end, types as one token however deep they nest, text that is not a token."""

from __future__ import annotations

import pytest
from tests.each import together

from pto.asm.lexer import tokenize
from pto.diag import Source


def tokens(text: str) -> list[str]:
    found, errors = tokenize(Source("t", text))
    assert not errors
    assert [text[at : at + len(t)] for at, t in zip(found.starts, found.texts, strict=True)] == found.texts
    return found.texts[:-1]


@together("depth", range(1, 6))
@together("head", ["!pto.x", "#pto.x", "memref"])
def test_a_nested_type_is_one_token(head: str, depth: int) -> None:
    inner = "".join(f"a{i}<" for i in range(depth - 1))
    one = f'{head}<{inner}i32, () -> f32, ">"{">" * depth}'
    assert tokens(f"%v : {one}, f32") == ["%v", ":", one, ",", "f32"]


def test_deeper_nesting_is_no_single_token() -> None:
    assert tokens("!a<b<c<d<e<f<g>>>>>>")[:3] == ["!a", "<", "b"]


def test_white_space_and_comments_are_dropped() -> None:
    assert tokens('\n // one "\n a = 1 // two\r\n\t"//" ->\n // three \n\n ') == ["a", "=", "1", '"//"', "->"]


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ('a "b\nc', "PTO-E0102", 2),
        ('"a\\"', "PTO-E0102", 0),
        ("a ~ b", "PTO-E0101", 2),
        ("% a", "PTO-E0101", 0),
    ],
)
def test_what_is_no_token(text: str, code: str, at: int) -> None:
    found, errors = tokenize(Source("t", text))
    assert [(d.code, d.span.start) for d in errors if d.span] == [(code, at)]
    assert "~" not in found.texts and "%" not in found.texts


def test_blanks_at_the_end_take_no_time() -> None:
    assert tokens("a" + " \n" * 500_000) == ["a"]
