"""Tile instructions as functions of Python: their names, parameters and what they return.

Most follow from the row. `tadd(src0, src1, dst)` is `add(lhs, rhs)`, `trowsum(src, tmp, dst)` is
`row_sum(x, tmp_tile=None)`. A row says what does not follow in `py`, "NAME param:operand .. -> shape":

    "matmul lhs rhs -> product(lhs, rhs)"       shape is one of SHAPES, of parameters
    "-"                                         no function of its own: sugar of the language covers it

`?` marks a parameter that may be left out. Scratch always may be: it is made where it is missing.
"""

from __future__ import annotations

import re
from functools import cache

from . import rows
from .record import Record
from .row import Row

#: What a function returns, of the parameters that it names.
SHAPES: dict[str, str] = {
    "like": "a tile like it",
    "column": "a column, one element per row",
    "row": "a row, one element per column",
    "product": "as many rows as the first, as many columns as the second",
    "bits": "a bit per element",
    "beside": "as many rows, and the columns of both",
}

#: Words of mnemonics, longest first, and what they are in Python.
_WORDS = (
    ("rowexpand", "row_expand"), ("colexpand", "col_expand"), ("rowarg", "row_arg"), ("colarg", "col_arg"),
    ("row", "row_"), ("col", "col_"), ("part", "part_"),
)  # fmt: skip
_NAMES = {
    "max": "maximum", "min": "minimum", "maxs": "maximums", "mins": "minimums", "and": "and_", "or": "or_", "not": "not_",
    "cvt": "cast", "trans": "transpose",
}  # fmt: skip
_PARAMS = {"src": "x", "src0": "lhs", "src1": "rhs", "tmp": "tmp_tile"}


class Parameter(Record):
    name: str
    operand: str  # of the row, or an attribute of it
    optional: bool = False
    scratch: bool = False


class Signature(Record):
    """A function: `row` does it, `shape` of `of` is what it returns."""

    name: str
    row: Row
    params: tuple[Parameter, ...]
    shape: str
    of: tuple[str, ...]


def python_name(mnemonic: str) -> str:
    """`trowexpandadd` is `row_expand_add`."""
    stem = mnemonic.removeprefix("t")
    for word, spelled in _WORDS:
        if stem.startswith(word):
            rest = stem[len(word) :]
            return spelled.rstrip("_") + (f"_{rest}" if rest else "")
    return _NAMES.get(stem, stem)


_TEXT = re.compile(r"(\w+)((?: [\w:.?]+)*) -> (\w+)\(([\w, ]*)\)$")


def signature(row: Row) -> Signature | None:
    """The function of a row; None where it has none."""
    if row.set != "tile" or row.py == "-":
        return None
    if row.py:
        found = _TEXT.match(row.py)
        if not found:
            raise ValueError(f"{row.name}: py={row.py!r}")
        name, words, shape, of = found.groups()
        params = tuple(_parameter(row, word) for word in words.split())
        return Signature(name, row, params, shape, tuple(of.split(", ")))
    return _derived(row)


def _parameter(row: Row, word: str) -> Parameter:
    name, _, operand = word.rstrip("?").partition(":")
    operand = operand or name
    declared = row.operands[row.operand_index[operand]] if operand in row.operand_index else None
    if declared is None and operand not in row.attr_index:
        raise ValueError(f"{row.name}: py={row.py!r}: no operand {operand!r}")
    scratch = declared is not None and declared.role == "tmp"
    return Parameter(name, operand, word.endswith("?") or scratch, scratch)


def _derived(row: Row) -> Signature | None:
    """What follows from operands that are tiles and numbers, the last of them the destination."""
    outs = [o for o in row.operands if o.role == "out"]
    if not row.expr or len(outs) != 1 or any(o.role == "inout" for o in row.operands):
        return None
    if any(
        o.kind not in ("tile", "scalar", "int", "float", "tile|scalar", "scalar|tile") for o in row.operands
    ):
        return None
    params = tuple(
        Parameter(_PARAMS.get(o.name, o.name), o.name, o.optional or o.role == "tmp", o.role == "tmp")
        for o in sorted(row.operands, key=lambda o: o.role == "tmp" or o.optional)
        if o.role != "out"
    )
    first = next(
        (p for p in params if row.operands[row.operand_index[p.operand]].kind.startswith("tile")), None
    )
    if first is None:
        return None
    shape = {"column0": "column", "row0": "row"}.get(row.writes, "like")
    return Signature(python_name(row.name), row, params, shape, (first.name,))


@cache
def signatures() -> dict[str, Signature]:
    """Every function by its name."""
    found = (signature(row) for row in rows())
    return {s.name: s for s in found if s is not None}
