"""Scalar operations on integers from the table: each row with all types it takes, and numbers at the ends of ranges.

`CASES` walks the table, so a new row is tested without a line here. Programs are in the generic form.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pto
from pto import isa
from pto.ir.core import Operation, folded
from pto.isa.row import Row
from pto.isa.scalars import bounds, width
from pto.verifier import verify

TYPES = ("i1", "i8", "i16", "i32", "i64", "index", "ui8", "ui16", "ui32", "ui64")
_INTEGERS = {"int", "i1", "i64", "i32", "index", "scalar"}


def rows() -> list[Row]:
    """Rows that compute integers of integers, and touch nothing."""
    return [
        r for r in isa.rows()
        if r.set == "scalar" and r.effect == "pure" and r.operands and (r.expr or r.name == "arith.bitcast")
        and all(_INTEGERS & set(x.kinds) for x in (*r.operands, *r.results))
    ]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An operation with its types; `op` takes arguments of a function."""

    row: Row
    attributes: str
    types: tuple[str, ...]
    results: tuple[str, ...]
    op: Operation

    @property
    def name(self) -> str:
        return f"{self.row.name}{self.attributes} {self.types} -> {self.results}"

    def line(self, results: list[str], operands: list[str]) -> str:
        types = f"({', '.join(self.types)}) -> ({', '.join(self.results)})"
        operation = f'"{self.row.full_name}"({", ".join(operands)}){self.attributes} : {types}'
        return f"{', '.join(results)} = {operation}"

    def fold(self, numbers: tuple[int, ...]) -> tuple[int | float, ...] | None:
        return folded(self.op, numbers)


def _case(row: Row, attributes: str, types: tuple[str, ...], results: tuple[str, ...]) -> Case | None:
    """A case that is legal."""
    names = [f"%a{n}" for n in range(len(types))]
    made = Case(row, attributes, types, results, Operation(row.full_name, row, []))
    line = made.line([f"%r{n}" for n in range(len(results))], names)
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    try:
        module = pto.parse(f"func.func @f({arguments}) {{\n  {line}\n  return\n}}\n")
    except pto.DiagnosticError:
        return None
    if any(d.severity == "error" for d in verify(module)):
        return None
    return replace(made, op=next(op for op in module.walk() if op.row is row))


@cache
def cases() -> list[Case]:
    found: list[Case | None] = []
    for row in rows():
        attributes = [f" {{predicate = {n} : i64}}" for n in range(10)] if row.name == "arith.cmpi" else [""]
        given = [(t,) * len(row.operands) for t in TYPES]
        if row.name == "arith.select":
            given = [("i1", t, t) for t in TYPES]
        if "i64" in row.operands[0].kinds:
            given = [("i64",) * len(row.operands)]
        for types, text in itertools.product(dict.fromkeys(given), attributes):
            if len(row.results) > 1:
                second = "i1" if row.name == "arith.addui_extended" else types[-1]
                found.append(_case(row, text, types, (types[-1], second)))
            elif not row.infer and len(row.operands) == 1:
                found += [
                    _case(row, text, types, (t,)) for t in TYPES if "index" not in (*types, t) or row.expr
                ]
            else:
                found.append(_case(row, text, types, ("i1" if attributes[1:] else types[-1],)))
    return [case for case in found if case is not None]


@cache
def edges(type: str) -> tuple[int, ...]:
    """Numbers at the ends of a type, around 0 and around its width."""
    bits, (least, most) = width(type) or 64, bounds(type)
    numbers = (
        0,
        1,
        -1,
        3,
        least,
        least + 1,
        most,
        most - 1,
        bits - 1,
        bits,
        1 << bits // 2,
        -(1 << bits // 2),
    )
    return tuple(dict.fromkeys(n for n in numbers if least <= n <= most))


def operands(case: Case) -> list[tuple[int, ...]]:
    """Numbers that a legal program may give to an operation."""
    found = itertools.product(*map(edges, case.types))
    return [n for n in found if not case.row.name.startswith("sbitset") or 0 <= n[1] < 64]


def undefined(case: Case, numbers: tuple[int, ...]) -> bool:
    """Return True if the notes of a row leave a result open: formulated once more, without its expression."""
    name, bits = case.row.name.removeprefix("arith."), width(case.types[0]) or 64
    if name.startswith("sh"):
        return not 0 <= numbers[1] < bits
    if "div" not in name and "rem" not in name:
        return False
    overflow = numbers == ((1, 1) if bits == 1 else (-1 << (bits - 1), -1)) and not name.endswith("ui")
    return numbers[1] == 0 or overflow


def to_word(value: str, type: str, word: str) -> str:
    """A number as an i64, of which unsigned ones have the bits."""
    if type in ("i64", "ui64"):
        return f'{word} = "arith.bitcast"({value}) : ({type}) -> i64'
    name = "index_cast" if type == "index" else "extui" if type[0] == "u" or type == "i1" else "extsi"
    return f'{word} = "arith.{name}"({value}) : ({type}) -> i64'


def of_word(word: str, type: str, value: str) -> str:
    """The low bits of an i64 as a number."""
    if type in ("i64", "ui64"):
        return f'{value} = "arith.bitcast"({word}) : (i64) -> {type}'
    return f'{value} = "arith.{"index_cast" if type == "index" else "trunci"}"({word}) : (i64) -> {type}'


def as_words(numbers: Any) -> list[int]:
    """Numbers of any type as an i64 holds them."""
    return [(int(n) + (1 << 63) & (1 << 64) - 1) - (1 << 63) for n in numbers]
