"""Affine maps: text to tree and back, by MLIR's grammar; xDSL is the second opinion."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each import each, together

import pto
from pto.asm import FORMS, to_text
from pto.asm.affine_text import AffineTextError, parse_affine_map
from pto.diag import DiagnosticError
from pto.ir.affine import AffineMapAttr, evaluate

#: Source text, and printed text.
SPELLINGS = {
    "affine_map<() -> ()>": None,
    "affine_map<(d0, d1)[s0] -> (d0 * 4 + s0 floordiv 3 - 1)>": None,
    "affine_map<(i, j)[n] -> (-i - (j - n) * 2, i - -3)>": "affine_map<(d0, d1)[s0] -> (-d0 - (d1 - s0) * 2, d0 + 3)>",
    "affine_map<(row.0, _x$)[]->(row.0 mod 0x10)>": "affine_map<(d0, d1) -> (d0 mod 16)>",
    "affine_map<(d1, d0) -> (d1)>": "affine_map<(d0, d1) -> (d0)>",
    "affine_map<(a) -> (a - (a + (3 - a)))>": "affine_map<(d0) -> (d0 - (d0 + (3 - d0)))>",
    "affine_map<(a)[s] -> (a * s floordiv 2 ceildiv s)>": "affine_map<(d0)[s0] -> (((d0 * s0) floordiv 2) ceildiv s0)>",
    "affine_map<(a) // a comment\n -> (-a * 2)>": "affine_map<(d0) -> ((-d0) * 2)>",
    "affine_map<(a) -> (9223372036854775807 - a)>": "affine_map<(d0) -> (9223372036854775807 - d0)>",
}
#: Source texts that are not maps: the part at the caret, and the message.
REFUSED = {
    'affine_map<()[s0=(1).get("system")] -> (s0)>': ("=", "expected ']'"),
    "affine_map<(d0) -> (d0.real)>": ("d0.real", "unknown dimension or symbol 'd0.real'"),
    "affine_map<(d0) -> (__import__)>": ("__import__", "unknown dimension or symbol '__import__'"),
    "affine_map<(d0) -> (d0 ** 2)>": ("*", "expected an expression"),
    "affine_map<(d0) -> (d0 / 2)>": ("/", "expected ')'"),
    "affine_map<(d0) -> (d0 if d0 else 1)>": ("if", "expected ')'"),
    "affine_map<(d0, d0) -> (d0)>": ("d0", "'d0' is defined twice"),
    "affine_map<(d0)[d0] -> (d0)>": ("d0", "'d0' is defined twice"),
    "affine_map<(mod) -> (1)>": ("mod", "expected the name of a dimension or symbol"),
    "affine_map<(é) -> (1)>": ("é", "expected the name of a dimension or symbol"),
    "affine_map<(d0) -> (²)>": ("²", "expected an expression"),
    "affine_map<(d0) -> (d0,)>": (")", "expected an expression"),
    "affine_map<(d0,) -> (d0)>": (")", "expected the name"),
    "affine_map<(d0) -> (d0)> x": ("x", "expected the end of the map"),
    "affine_map<(d0) -> d0>": ("d0", "expected '('"),
    "affine_map<(a, b) -> (a * b)>": ("*", "cannot multiply dimensions"),
    "affine_map<(a)[s] -> (s floordiv a)>": ("floordiv", "cannot floordiv by a dimension"),
    "affine_map<(a) -> (9223372036854775808)>": ("9223372036854775808", "does not fit in 64 bits"),
    f"affine_map<(a) -> ({'9' * 20_000})>": ("9" * 20_000, "does not fit in 64 bits"),
    f"affine_map<(a) -> ({'(' * 20_000})>": ("(", "nests deeper than 100 levels"),
    f"affine_map<(a) -> ({'-' * 20_000}a)>": ("-", "nests deeper than 100 levels"),
    f"affine_map<(a) -> (a{' + a' * 20_000})>": ("+", "nests deeper than 100 levels"),
}  # fmt: skip


@together(("text", "printed"), SPELLINGS.items())
def test_maps_are_read_and_printed(text: str, printed: str | None) -> None:
    found = parse_affine_map(text)
    assert str(found) == (printed or text)
    assert parse_affine_map(str(found)) == found


@together(("text", "wanted"), REFUSED.items())
def test_what_is_no_map_is_refused_in_its_place(text: str, wanted: tuple[str, str]) -> None:
    with pytest.raises(AffineTextError) as caught:
        parse_affine_map(text)
    assert text[slice(*caught.value.part)] == wanted[0] and wanted[1] in caught.value.message


def _expressions(leaves: list[str]) -> st.SearchStrategy[str]:
    constants = st.integers(-9, 9).map(str)
    positive = st.integers(1, 9).map(str)
    return st.recursive(
        st.sampled_from(leaves) | constants,
        lambda e: (
            st.tuples(e, st.sampled_from(" + | - ".split("|")), e).map("".join)
            | st.tuples(e, st.just(" * "), constants).map(lambda t: f"({t[0]}){t[1]}{t[2]}")
            | st.tuples(e, st.sampled_from(("floordiv", "ceildiv", "mod")), positive).map(
                lambda t: f"({t[0]}) {t[1]} {t[2]}"
            )
            | e.map(lambda t: f"-({t})")
        ),
        max_leaves=8,
    )


@given(text=_expressions(["d0", "d1", "s0"]), at=st.tuples(*[st.integers(-100, 100)] * 3))
@settings(max_examples=150)
def test_xdsl_computes_the_same(text: str, at: tuple[int, int, int]) -> None:
    pytest.importorskip("xdsl", reason="xdsl is a development dependency")
    from xdsl.context import Context
    from xdsl.parser import Parser

    found = parse_affine_map(f"affine_map<(d0, d1)[s0] -> ({text})>")
    assert parse_affine_map(str(found)) == found
    theirs = Parser(Context(), str(found)).parse_attribute().data  # type: ignore[attr-defined]
    assert list(theirs.eval(at[:2], at[2:])) == [evaluate(found.results[0], at)]


def _program(line: str, layout: str = "") -> str:
    return f"""module {{
  func.func @k(%a: index, %b: index, %m: memref<4x8xf32{layout}>) attributes {{my.map = affine_map<(i) -> (i * 2)>}} {{
    {line}
    return
  }}
}}
"""


def test_every_form_and_bytecode_give_the_map_back() -> None:
    text = _program(
        "%x = affine.apply affine_map<(row)[n] -> (row floordiv n - 3)>(%a)[%b] {kept = affine_map<(i) -> (i)>}",
        ", affine_map<(i, j) -> (j, i)>",
    )
    first = pto.parse(text)
    for form in FORMS:
        again = pto.parse(to_text(first, form))
        assert to_text(again) == to_text(first), form
    assert to_text(pto.from_bytecode(pto.to_bytecode(first, debuginfo=True))) == to_text(first)
    (apply,) = (op for op in first.functions[0].walk() if op.name == "affine.apply")
    assert isinstance(apply.attrs["map"], AffineMapAttr) and isinstance(apply.attrs["kept"], AffineMapAttr)
    printed = to_text(first)
    assert (
        "affine.apply affine_map<(d0)[s0] -> (d0 floordiv s0 - 3)>(%a)[%b] {kept = affine_map<(d0) -> (d0)>}"
        in printed
    )
    assert "memref<4x8xf32, affine_map<(d0, d1) -> (d1, d0)>>" in printed


def test_an_operation_and_its_map_must_agree() -> None:
    wrong = {
        "%x = affine.apply affine_map<(i) -> (i)>()": "expected 1 dimension operand, got 0",
        "%x = affine.apply affine_map<(i)[s] -> (i)>(%a, %b)": "expected 1 dimension operand, got 2",
        "%x = affine.apply affine_map<(i)[s] -> (i)>(%a)": "expected 1 symbol operand, got 0",
        "%x = affine.apply affine_map<(i) -> (i, i)>(%a)": "expected a map with one result, got 2",
        "%x = affine.apply affine_map<() -> ()>()": "expected a map with one result, got 0",
        "%x = affine.apply affine_map<(i) -> (i mod 0)>(%a)": "cannot compute mod by 0",
        "%x = affine.apply affine_map<(i) -> (i ceildiv -4)>(%a)": "cannot compute ceildiv by -4",
        '%x = affine.apply "affine_map<(i) -> (i)>"(%a)': "expected an affine_map",
        '%x = "affine.apply"(%a) {map = affine_map<(i, j) -> (i)>} : (index) -> index': "expected 2 operands",
        '%x = "affine.apply"(%a) {map = "affine_map<(i) -> (i)>"} : (index) -> index': "expected an affine_map",
    }  # fmt: skip

    def refused(line: str, message: str) -> None:
        with pytest.raises(DiagnosticError, match=message):
            pto.parse(_program(line))

    each(refused, wrong.items())
    with pytest.raises(DiagnosticError, match="expected a map of 2 dimensions as the layout, got 1"):
        pto.parse(_program("", ", affine_map<(i) -> (i)>"))
