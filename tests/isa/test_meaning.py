"""Expressions of rows: parsing, the errors of bad ones, and that every backend has the operations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import together

from pto import isa
from pto.codegen import intrinsics
from pto.engine.reference import meaning as arrays
from pto.engine.reference.registry import find
from pto.engine.reference.scalars import REAL
from pto.isa import meaning
from pto.isa.audit import problems
from pto.isa.meaning import OPERATIONS, Apply, BadMeaning, Constant, Name, assigned, names, read
from pto.isa.row import Attr, Family
from pto.isa.scalars import WHOLE

X, Y = Name("x"), Name("y")


def test_read() -> None:
    assert read("where(x < y, -1, x)") == Apply(
        "where", (Apply("less", (X, Y)), Apply("neg", (Constant(1),)), X)
    )
    assert read("x & y | ~x") == Apply("bit_or", (Apply("bit_and", (X, Y)), Apply("bit_not", (X,))))
    assert assigned("low = x * y; high = mul_high(x, y)") == {
        "low": read("x * y"),
        "high": read("mul_high(x, y)"),
    }
    assert assigned("x == y") == {"": Apply("equal", (X, Y))}
    assert names(read("x + y * x")) == ("x", "y")
    assert read("x < y or x > y or y == y") == read("(x < y or x > y) or y == y")
    chosen = read("compare(mode, x, y)")
    assert meaning.attributes(chosen) == ("mode",) and names(chosen) == ("x", "y")
    assert meaning.decided(chosen, {"mode": "le"}) == read("x <= y")
    assert meaning.moved(read("where(z, x, y)")) == ("x", "y")
    assert meaning.moved(read("where(x < y, x, y)")) == meaning.moved(read("-x")) == ()


@together(
    ("text", "said"),
    [
        ("x +", "cannot parse expression"),
        ("softplus(x)", "unknown operation 'softplus'"),
        ("add(x, y)", "unknown operation 'add'"),
        ("exp(x, y)", "'exp': expected 1 arguments, got 2"),
        ("where(x, y)", "'where': expected 3 arguments, got 2"),
        ("x + 1.5", "cannot use '1.5'"),
        ("x if y else x", "in an expression"),
        ("x.dtype", "in an expression"),
        ("exp(x=y)", "in an expression"),
        ("not x", "in an expression"),
        ("True", "in an expression"),
    ],
)
def test_bad(text: str, said: str) -> None:
    with pytest.raises(BadMeaning, match=said):
        read(text)


LEAVES = st.one_of(st.sampled_from([X, Y]), st.integers(0, 99).map(Constant))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.sampled_from(list(OPERATIONS.values())).flatmap(
        lambda o: st.tuples(*[inner] * o.arity).map(lambda args: Apply(o.name, args))
    ),
    max_leaves=12,
)


def spelled(operation: str, *args: str) -> str:
    o = OPERATIONS[operation]
    if not o.sign:
        return f"{operation}({', '.join(args)})"
    return f"({o.sign}{args[0]})" if o.arity == 1 else f"({args[0]} {o.sign} {args[1]})"


@given(TREES)
def test_what_the_signs_say_is_read(tree: meaning.Expression) -> None:
    assert read(meaning.fold(tree, str, str, spelled)) == tree


def test_every_operation_is_documented() -> None:
    for o in OPERATIONS.values():
        assert o.doc.endswith("."), o
        assert o.gives in meaning.GIVES, o


def backends(row: isa.Row) -> list[dict[str, Any]]:
    if row.set == "scalar":
        return [REAL if any(o.kind == "float" for o in row.operands) else WHOLE]
    spelled = row.set == "tile" and row.cpp and not row.over and not any(f.written for f in row.forms)
    return [arrays.OPERATIONS, *([intrinsics._SPELLED] if spelled else [])]


def meanings(row: isa.Row, expression: meaning.Expression) -> list[meaning.Expression]:
    """An expression under every value of the attribute that decides it."""
    deciding = meaning.attributes(expression)
    if not deciding:
        return [expression]
    (name,) = deciding
    return [meaning.decided(expression, {name: value}) for value in row.attr_index[name].domain]


REGULAR = [r for r in isa.rows() if r.expr]


def test_every_backend_knows_the_operations_of_its_rows() -> None:
    assert len(REGULAR) > 200
    for row in REGULAR:
        for text in (row.expr, *row.expr_on.values()):
            for expression in assigned(text).values():
                for decided in meanings(row, expression):
                    assert all(not meaning.unknown(b, decided) for b in backends(row)), row
        assert row.set == "scalar" or find(row) is not None, row


def test_no_backend_has_an_operation_that_is_none() -> None:
    for backend in (arrays.OPERATIONS, intrinsics._SPELLED, REAL, WHOLE):
        assert set(backend) <= set(OPERATIONS)


@together(
    ("own", "said"),
    [
        ({"expr": "softplus(src)"}, "unknown operation 'softplus'"),
        ({"expr": "src + other"}, "names other"),
        ({"expr": "src + dst"}, "names dst"),
        ({"expr": "src", "over": "diagonals"}, "unknown range 'diagonals'"),
        ({"expr": "src", "store": "later"}, "unknown store 'later'"),
        ({"expr": "src", "start": "0"}, "start without a fold"),
        ({"expr": "src", "writes": "part"}, "wrong writes 'part'"),
        ({"expr": "acc + src", "over": "fold rows"}, "fold without a start"),
        ({"expr": "src", "skip": "src =="}, "cannot parse expression"),
        ({"expr": "src", "expr_on": {"a9": "src"}}, "unknown legality column or element type 'a9'"),
        ({"expr": "src", "expr_on": {"a5 f17": "src"}}, "unknown legality column or element type 'f17'"),
        ({"expr": "src", "packed": "mask"}, "packed names no operand mask"),
        (
            {"expr": "acc + src", "over": "fold rows", "start": "most", "writes": "row0"},
            "unknown start 'most'",
        ),
        ({"expr": "compare(mode, src, src)"}, "unknown attribute 'mode'"),
        (
            {"expr": "compare(mode, src, src)", "attrs": Attr("mode", "str", choices=("eq", "near"))},
            "missing 'near' of 'mode' in 'compare'",
        ),
        ({"meaning": "sorted"}, "neither an expression nor an algorithm"),
        ({"expr": "src", "algorithm": "sort blocks"}, "an expression and an algorithm"),
        ({"algorithm": "sort tiles"}, "unknown algorithm 'sort tiles'"),
        ({"algorithm": "index of extreme: middle"}, "unknown kind 'middle' of algorithm 'index of extreme'"),
        ({"meaning": ""}, "no meaning"),
    ],
)
def test_the_audit_finds_bad_meanings(own: dict[str, Any], said: str) -> None:
    family = Family(
        "new", "tile", doc="A row.", operands="src dst:out", pipe="V", in_place="any", writes="valid", cpp="T()",
        cpu="f32", a2a3="f32", a5="f32",
    )  # fmt: skip
    assert problems(family("tfine", opcode=1, expr="exp(src)")) == []
    found = problems(family("tbad", opcode=1, **own))
    assert any(said in p for p in found), found
