"""Looking for C++ whose variables have any names: `%` is a variable, `%x` the same one everywhere it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from tests.sampling import EVERY

import pto
from pto.isa.row import Row
from pto.witness.plan import Plan, dtype_choices, forms, plans_of

#: Variables of values that the passes add have names.
_VARIABLE = r"(?:v\d+|c\d+_\w+|pipe)"


def emit(program: str, target: str = "a3", **options: Any) -> str:
    """The C++ of a program, from its text, with variables v1, v2, ... and without source locations."""
    module = pto.parse(program)
    for op in module.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value.name = ""
    return re.sub(r"  // <\w+>:\d+$", "", pto.emit_cpp(module, target=target, **options), flags=re.M)


def body(text: str, name: str = "k") -> str:
    """A function of emitted C++, from its signature to its closing brace."""
    m = re.search(rf"^[\w ]+ {name}\(.*?^}}$", text, re.MULTILINE | re.DOTALL)
    assert m is not None, text
    return m[0]


def in_order(text: str, *patterns: str) -> dict[str, str]:
    """Assert that lines like the patterns follow one another; return the values of the named variables."""
    bound: dict[str, str] = {}
    at = 0
    for pattern in patterns:
        m = re.compile(_regex(pattern, bound)).search(text, at)
        assert m is not None, f"no {pattern!r} with {bound} after:\n{text[:at][-300:]}\n--- in\n{text}"
        bound.update({k: v for k, v in m.groupdict().items() if v is not None})
        at = m.end()
    return bound


def has(text: str, pattern: str) -> bool:
    return re.search(_regex(pattern, {}), text) is not None


def _regex(pattern: str, bound: dict[str, str]) -> str:
    out: list[str] = []
    at = 0
    named: set[str] = set()
    for m in re.finditer(r"%(\w*)", pattern):
        out.append(re.escape(pattern[at : m.start()]))
        name = m[1]
        if not name:
            out.append(rf"{_VARIABLE}\b")
        elif name in bound:
            out.append(re.escape(bound[name]) + r"\b")
        elif name in named:
            out.append(rf"(?P={name})\b")
        else:
            named.add(name)
            out.append(rf"(?P<{name}>{_VARIABLE})\b")
        at = m.end()
    out.append(re.escape(pattern[at:]))
    return "".join(out).replace(r"\ ...\ ", ".*?").replace(r"\.\.\.", ".*?")


def tile(loc: str, elem: str, rows: int, cols: int, **other: Any) -> str:
    """Spelling of a tile type; the valid region is the shape unless given."""
    blayout, slayout = other.get("blayout", "RowMajor"), other.get("slayout", "NoneBox")
    return (
        f"Tile<TileType::{loc}, {elem}, {rows}, {cols}, BLayout::{blayout}, {other.get('v_row', rows)}, "
        f"{other.get('v_col', cols)}, SLayout::{slayout}, {other.get('fractal', 512)}, "
        f"PadValue::{other.get('pad', 'Null')}, CompactMode::{other.get('compact', 'Null')}>"
    )


# -- programs over a window of 16 x 16 elements

TILE = "!pto.tile_buf<vec, 16x16xf32>"
WINDOW = "!pto.partition_tensor_view<16x16xf32>"
HEAD = """\
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index"""


def window(name: str, pointer: str) -> str:
    """A 16 x 16 window of a pointer."""
    return f"""\
  %{name}_v = pto.make_tensor_view %{pointer}, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
  %{name} = pto.partition_view %{name}_v, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> {WINDOW}"""


def witnesses(row: Row, isa: str) -> Iterator[Plan]:
    """The legal plans of an instruction; in `make test` one of each form, forms with different element types."""
    choices = list(dtype_choices(row, isa))
    for n, form in enumerate(forms(row)):
        first = n % len(choices)
        found = (p for c in choices[first:] + choices[:first] for p in plans_of(row, isa, form, c))
        yield from islice(found, None if EVERY else 1)
