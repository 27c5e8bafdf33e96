"""The kind of core of a function, inferred without a declaration in the program."""

from __future__ import annotations

import pytest
from tests.each import together

import pto

from .running import compiled

VEC = "!pto.tile_buf<vec, 16x16xf32>"
LEFT = "!pto.tile_buf<left, 16x16xf16, slayout=row_major>"
RIGHT = "!pto.tile_buf<right, 16x16xf16, slayout=col_major>"
ACC = "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>"

VECTOR = f"%t = pto.alloc_tile : {VEC}\npto.texp ins(%t : {VEC}) outs(%t : {VEC})"
CUBE = f"""%l = pto.alloc_tile : {LEFT}
%r = pto.alloc_tile : {RIGHT}
%a = pto.alloc_tile : {ACC}
pto.tmatmul ins(%l, %r : {LEFT}, {RIGHT}) outs(%a : {ACC})"""


def module(**functions: str) -> str:
    """Functions by name; `name: attributes | body`."""
    parts: list[str] = []
    for name, text in functions.items():
        kind, _, body = text.rpartition("|")
        given = f"attributes {{pto.kernel_kind = #pto.kernel_kind<{kind.strip()}>}}" if kind else ""
        parts.append(f"func.func @{name}() {given} {{\n{body}\nreturn\n}}")
    return "module {\n" + "\n".join(parts) + "\n}\n"


def call(name: str) -> str:
    return f"func.call @{name}() : () -> ()"


def kinds(source: str) -> dict[str, str]:
    ctx, problems = compiled(source, "kernel-kind")
    assert problems == []
    assert pto.to_text(ctx.module) == pto.to_text(pto.parse(source)), "nothing is written into the program"
    return ctx.kinds


@together(
    ("body", "expected"),
    [
        ("cube | ", "cube"), ("vector | ", "vector"), (VECTOR, "vector"), (CUBE, "cube"),
        (f"{CUBE}\n{VECTOR}", "mix"), ("", "mix"),
        ("pto.section.vector {\n}", "vector"), ("pto.section.cube {\n}\npto.section.vector {\n}", "mix"),
        (f"pto.section.cube {{\n}}\n{VECTOR}", "mix"),
    ],
)  # fmt: skip
def test_by_attribute_section_and_instructions(body: str, expected: str) -> None:
    assert kinds(module(f=body)) == {"f": expected}


def test_instructions_deep_inside_count() -> None:
    body = f"""%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %c1 step %c1 {{
      {VECTOR}
    }}"""
    assert kinds(module(f=body)) == {"f": "vector"}


def test_what_is_called_counts() -> None:
    found = kinds(module(top=call("middle"), middle=call("low"), low=CUBE))
    assert found == {"top": "cube", "middle": "cube", "low": "cube"}


def test_an_entry_that_calls_both_halves_is_mixed() -> None:
    found = kinds(module(k=f"{call('a')}\n{call('b')}", a=f"cube | {CUBE}", b=f"vector | {VECTOR}"))
    assert found == {"k": "mix", "a": "cube", "b": "vector"}


def test_a_call_inside_a_section_says_nothing_of_the_caller() -> None:
    body = f"pto.section.cube {{\n{call('a')}\n}}"
    assert kinds(module(k=body, a=CUBE)) == {"k": "cube", "a": "cube"}
    assert kinds(module(k=body, a=f"{CUBE}\n{VECTOR}")) == {"k": "cube", "a": "mix"}


def test_helpers_follow_their_callers() -> None:
    """A helper that both kinds call belongs to neither."""
    found = kinds(module(a=f"cube | {call('only')}\n{call('shared')}", b=f"vector | {call('shared')}",
                         only=call("below"), shared="", below=""))  # fmt: skip
    assert found == {"a": "cube", "b": "vector", "only": "cube", "shared": "mix", "below": "cube"}


def test_vector_code_called_from_a_cube_kernel() -> None:
    source = module(k=f"cube | {call('helper')}", helper=VECTOR)
    _, (found,) = compiled(source, "kernel-kind")
    assert found.code == "PTO-E1003"
    assert "cannot call '@helper' in cube code: it runs on a vector core" in found.message
    assert found.notes[0][0] == "defined here"


@pytest.mark.parametrize(
    "source",
    [
        module(k=f"cube | {call('helper')}", helper=f"vector | {VECTOR}"),  # an empty call on a cube core
        module(k=f"cube | {call('helper')}", helper=f"{VECTOR}\n{CUBE}"),
        module(k=f"cube | {call('helper')}", helper=""),
        module(k=f"pto.section.vector {{\n{call('helper')}\n}}", helper=VECTOR),
    ],
)
def test_calls_that_are_right(source: str) -> None:
    assert compiled(source, "kernel-kind")[1] == []
