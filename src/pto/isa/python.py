"""Tile instructions as Python functions: their names, parameters and results.

Most signatures follow from the row. `tadd(src0, src1, dst)` is `add(lhs, rhs)`, and `trowsum(src, tmp, dst)`
is `row_sum(x, tmp_tile=None)`. An instruction that adds to its destination, such as `taxpy(src, scalar,
dst)`, takes the previous value of the destination first: `axpy(acc, lhs, rhs)`. Other signatures are in `py`
of the row, as "NAME param .. -> result ..":

    "row_argmax x:src tmp_tile:tmp -> column(x):i32"          param:operand; shape(of):element type
    "tri diagonal shape dtype=i32 upper:upperOrLower=0 -> new(shape, dtype)"
    "dequant x:src scale offset -> like(x):scale"             the element type of a parameter
    "-"                                                       none: the language has it by hand

A shape is one of SHAPES. `?` marks an optional parameter, `=` a parameter with a default. Scratch is always
optional, because the language allocates missing scratch. A parameter that is neither an operand nor an
attribute describes the result. ` | ` separates several functions of one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from . import row as find_row
from . import rows
from .record import Record
from .row import Operand, Row

#: Shapes of results, relative to the named parameters.
SHAPES: dict[str, str] = {
    "like": "a tile like it",
    "column": "a column, one element per row",
    "row": "a row, one element per column",
    "union": "the larger extents of both",
    "bits": "a truth value per element",
    "beside": "as many rows, and the columns of both",
    "new": "a tile of that shape and element type",
    "records": "8 bytes per element: its value and its index",
    "blocks": "32 bytes per element",
    "bins": "256 columns",
}

#: Words of mnemonics, longest first -> their Python spelling.
_WORDS = (
    ("rowexpand", "row_expand"), ("colexpand", "col_expand"), ("rowarg", "row_arg"), ("colarg", "col_arg"),
    ("row", "row_"), ("col", "col_"), ("part", "part_"),
)  # fmt: skip
_NAMES = {
    "max": "maximum",
    "min": "minimum",
    "maxs": "maximums",
    "mins": "minimums",
    "and": "and_",
    "or": "or_",
    "not": "not_",
}
_PARAMS = {
    "src": "x",
    "src0": "lhs",
    "src1": "rhs",
    "src2": "rhs2",
    "tmp": "tmp",
    "base": "lhs",
    "exp": "rhs",
}
#: Parameter names of an instruction with a number: the number comes second, another tile third.
_WITH_NUMBER = {"src": "lhs", "src0": "lhs", "scalar": "rhs", "src1": "rhs2"}


class Parameter(Record):
    name: str
    operand: str  # operand or attribute of the row; empty if it describes the result
    optional: bool = False
    scratch: bool = False
    default: Any = None


class Result(Record):
    """Result of a function: `shape` relative to the parameters `of`. `dtype` is an element type, or a
    parameter that has or is one; if empty, the type of the first parameter."""

    shape: str
    of: tuple[str, ...]
    dtype: str = ""


class Signature(Record):
    """A function and its row. `acc` is the parameter for the previous value of the destination."""

    name: str
    row: Row
    params: tuple[Parameter, ...]
    results: tuple[Result, ...]
    acc: str = ""

    @property
    def outs(self) -> tuple[str, ...]:
        """The operands that become its results."""
        return tuple(o.name for o in self.row.outs if not o.optional)[: len(self.results)]

    @property
    def of(self) -> tuple[str, ...]:
        return self.results[0].of

    @property
    def shape(self) -> str:
        return self.results[0].shape

    def param(self, name: str) -> Parameter:
        return next(p for p in self.params if p.name == name)


def python_name(mnemonic: str) -> str:
    """Return the Python name of a mnemonic: `row_expand_add` for `trowexpandadd`."""
    stem = mnemonic.removeprefix("t")
    for word, spelled in _WORDS:
        if stem.startswith(word):
            rest = stem[len(word) :]
            return spelled.rstrip("_") + (f"_{rest}" if rest else "")
    return _NAMES.get(stem, stem)


_TEXT = re.compile(r"(\w+)((?: [\w:.?=]+)*) ->((?: \w+\([\w, ]*\)(?::\w+)?)+)$")
_RESULT = re.compile(r" (\w+)\(([\w, ]*)\)(?::(\w+))?")


def functions_of(row: Row) -> tuple[Signature, ...]:
    """Return the functions of a row."""
    if row.set != "tile" or row.py == "-":
        return ()
    if row.py:
        return tuple(_written(row, text) for text in row.py.split(" | "))
    found = _derived(row)
    return () if found is None else (found,)


def _written(row: Row, text: str) -> Signature:
    found = _TEXT.match(text)
    if not found:
        raise ValueError(f"{row.name}: py={text!r}")
    name, words, given = found.groups()
    results = tuple(Result(s, tuple(of.split(", ")), dtype) for s, of, dtype in _RESULT.findall(given))
    params = tuple(_parameter(row, word) for word in words.split())
    for result in results:
        for used in result.of:
            if result.shape not in SHAPES or used not in [p.name for p in params]:
                raise ValueError(f"{row.name}: py={text!r}: no {result.shape} of {used}")
    return Signature(name, row, params, results, _held(row, params))


def _parameter(row: Row, word: str) -> Parameter:
    text, _, default = word.partition("=")
    name, _, operand = text.rstrip("?").partition(":")
    if not operand and (name in row.operand_index or name in row.attr_index):
        operand = name
    declared = row.operands[row.operand_index[operand]] if operand in row.operand_index else None
    if operand and declared is None and operand not in row.attr_index:
        raise ValueError(f"{row.name}: py={row.py!r}: no operand {operand!r}")
    scratch = declared is not None and declared.role == "tmp"
    optional = text.endswith("?") or scratch or bool(default)
    return Parameter(name, operand, optional, scratch, int(default) if default.isdigit() else default or None)


def _held(row: Row, params: tuple[Parameter, ...]) -> str:
    """Return the parameter for the previous value of the destination."""
    changed = [o.name for o in row.operands if o.role == "inout"]
    return next((p.name for p in params if p.operand in changed), "")


_KINDS = ("tile", "scalar", "int", "float", "tile|scalar", "scalar|tile")


def _derived(row: Row) -> Signature | None:
    """Derive the signature of a row whose operands are tiles and numbers, with one destination."""
    if not row.expr or len(row.outs) != 1 or any(o.kind not in _KINDS for o in row.operands):
        return None
    names = {**_PARAMS, **(_WITH_NUMBER if any(o.name == "scalar" for o in row.operands) else {})}
    if row.over.startswith("fold"):
        names["tmp"] = "tmp_tile"

    def parameter(o: Operand) -> Parameter:
        name = "acc" if o.role == "inout" else names.get(o.name, o.name)
        return Parameter(name, o.name, o.optional or o.role == "tmp", o.role == "tmp")

    def place(o: Operand) -> int:
        return 0 if o.role == "inout" else 2 if o.role == "tmp" or o.optional else 1

    params = tuple(parameter(o) for o in sorted(row.operands, key=place) if o.role != "out")
    tiles = [p.name for p in params if not p.scratch and _kind(row, p).startswith("tile")]
    if not tiles:
        return None
    if row.over == "parts":
        return Signature(python_name(row.name), row, params, (Result("union", tuple(tiles)),))
    shape = {"column0": "column", "row0": "row"}.get(row.writes, "like")
    return Signature(python_name(row.name), row, params, (Result(shape, (tiles[0],)),), _held(row, params))


def _kind(row: Row, p: Parameter) -> str:
    return row.operands[row.operand_index[p.operand]].kind


class Signatures(Mapping[str, Signature]):
    """Functions by name. The row of a function is loaded at its first use."""

    def __init__(self) -> None:
        from .python_names import NAMES  # generated: `index`

        self.row_names: Mapping[str, str] = NAMES
        self._made: dict[str, Signature] = {}

    def __getitem__(self, name: str) -> Signature:
        if name not in self._made:
            row = find_row(self.row_names[name])
            assert row is not None, self.row_names[name]
            self._made.update({s.name: s for s in functions_of(row) if self.row_names[s.name] == row.name})
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self.row_names

    def __iter__(self) -> Iterator[str]:
        return iter(self.row_names)

    def __len__(self) -> int:
        return len(self.row_names)


@cache
def signatures() -> Signatures:
    """Return every function by its name."""
    return Signatures()


#: Kinds of operands, and ranges of expressions, of functions of registers.
_LANE_KINDS = ("vreg", "mask", "scalar", "int")
_LANE_RANGES = ("", "fold lanes", "fold groups")


def on_registers(row: Row) -> bool:
    """Return True if a function of registers (`pl.micro`) can be derived from a row."""
    if (
        row.set != "vector"
        or not row.expr
        or row.over not in _LANE_RANGES
        or len(row.results) != 1
        or row.store
    ):
        return False
    if any(a.required and a.name != "cmp_mode" for a in row.attrs):
        return False
    kinds = [o.kind for o in row.operands]
    return (
        kinds[:1] == ["vreg"]
        and all(k in _LANE_KINDS for k in kinds)
        and row.results[0].kind in ("vreg", "mask")
    )


def index() -> str:
    """Return the text of python_names.py: the row of each function, so that rows are loaded on first use."""
    names = {s.name: row.name for row in rows() for s in functions_of(row)}
    functions = "".join(f'    "{name}": "{row}",\n' for name, row in sorted(names.items()))
    micro = "".join(f'    "{row.name}",\n' for row in rows() if on_registers(row))
    return (
        '"""Instructions of the Python functions. Generated by `python -m pto.codegen`: do not edit."""\n\n'
        "from __future__ import annotations\n\n"
        f"NAMES: dict[str, str] = {{\n{functions}}}\n"
        f"#: Vector instructions that are functions of `pl.micro`.\nMICRO: tuple[str, ...] = (\n{micro})\n"
    )
