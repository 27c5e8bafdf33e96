"""Detect reductions that count padding: compute with the padding as the rows of the operators specify.

    t = pl.fillpad(pl.load(..., valid_shape=[m, n]), pl.PadValue.min)     -inf, beside any numbers
    e = pl.exp(pl.sub(t, 2.0))                                            0, beside any numbers
    s = pl.row_sum(e)                                                     a + 0 = a: not counted

Sample numbers stand for unknown data, and the padding goes through the same operators beside them. A
reduction counts the padding if it changes the fold of some of these numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...diag import Diagnostic
from ...engine.reference.meaning import Numbers, compiled
from ...isa.meaning import attributes, read
from ...isa.python import Signature, signatures
from ..enums import PadValue
from ..ir import Function, Op, Value, is_shaped
from ..problems import PADDING

Array = Any
_NUMBERS = {PadValue.zero: 0.0, PadValue.min: -np.inf, PadValue.max: np.inf}
#: Sample data: both signs, no special values.
_DATA = np.array([0.7, -1.3, 2.9, -0.4, 1.6])
#: Operators that keep the values of elements.
_KEEP = ("slice", "reshape", "cast", "set_validshape")
#: Rows that are expressions of one element of each operand.
_ELEMENTWISE = ("", "row", "columns", "parts", "row 0", "column 0")


def counted(function: Function) -> Iterator[Diagnostic]:
    """Yield warnings for the reductions of a function that count padding."""
    for op in function.walk():
        folds = _fold(op.name)
        if folds is None:
            continue
        value = next(iter(op.args.values()))
        for source in _pads(value, set()):
            pad = source.args["pad_value"]
            if pad not in _NUMBERS or not _changes(folds, value, source, pad):
                continue
            better = next((p for p in _NUMBERS if not _changes(folds, value, source, p)), None)
            way = f"pad with pl.PadValue.{better.name}, or " if better is not None else ""
            found = Diagnostic(
                PADDING, f"{op.name} counts the padding, which is {pad.name}", op.loc, "warning",
                help=f"{way}reduce before padding",
            )  # fmt: skip
            found.notes.append(("padded here", source.loc))
            yield found


def _fold(name: str) -> str | None:
    """Return the step of a reduction as an expression of `acc` and `src`."""
    known = signatures()
    row = known[name].row if name in known else None
    if row is None or not row.over.startswith("fold"):
        return None
    if not row.expr and row.algorithm.startswith(
        "index of extreme"
    ):  # by the rule of the corresponding maximum or minimum
        row = known[name.replace("arg", "")].row
    return str(row.expr) if row.expr else None


def _pads(value: object, seen: set[Value]) -> Iterator[Op]:
    """Yield the padding operations that a value depends on."""
    if not isinstance(value, Value) or value.op is None or value in seen:
        return
    seen.add(value)
    op = value.op
    if op.name.startswith("fillpad"):
        source = next(iter(op.args.values()))
        if is_shaped(source) and source.type.valid is not None:
            yield op
        return
    if op.name in _KEEP or _elementwise(op.name) is not None:
        for arg in op.args.values():
            yield from _pads(arg, seen)


def _elementwise(name: str) -> Signature | None:
    signature = signatures().get(name)
    if signature is None or not signature.row.expr or signature.row.over not in _ELEMENTWISE or signature.acc:
        return None
    return None if attributes(read(signature.row.expr)) else signature


def _changes(fold: str, value: Value, source: Op, pad: Any) -> bool:
    """Return True if padding changes the fold of the sample data."""
    folded = compiled(fold)
    with np.errstate(all="ignore"):
        of = _Computed(source, _NUMBERS[pad])
        padding, data = of.value(value)
        if data is None or padding is data:
            return False
        return bool((folded(_WIDE, {"acc": data, "src": padding}) != data).any())


class _Wide:
    """An instruction that computes with numbers without rounding."""

    exact = False

    def round(self, values: Array, dtype: str) -> Array:
        return values


_WIDE = Numbers(_Wide(), "f32")  # type: ignore[arg-type]


class _Computed:
    """The value of the padding at an operation, and sample data beside it. The two are the same object if the
    padding does not reach the value."""

    def __init__(self, source: Op, pad: float) -> None:
        self.source = source
        self.pad = np.full_like(_DATA, pad)
        self.known: dict[Value, tuple[Array, Array]] = {}

    def value(self, x: Any) -> tuple[Array, Array]:
        if isinstance(x, bool | int | float):
            same = np.full_like(_DATA, float(x))
            return same, same
        if x not in self.known:
            self.known[x] = self._of(x)
        return self.known[x]

    def _of(self, x: Value) -> tuple[Array, Array]:
        unknown = np.roll(_DATA, len(self.known))
        op = x.op
        if op is None:
            return unknown, unknown
        if op is self.source:
            return self.pad, unknown
        if op.name in _KEEP:
            return self.value(next(iter(op.args.values())))
        signature = _elementwise(op.name)
        if signature is None:
            return unknown, unknown
        meaning = compiled(str(signature.row.expr))
        given = {p.operand: op.args.get(p.name) for p in signature.params}
        if any(given.get(name) is None for name in meaning.names):
            return unknown, unknown
        values = {name: self.value(given[name]) for name in meaning.names}
        data = meaning(_WIDE, {name: v[1] for name, v in values.items()})
        if all(v[0] is v[1] for v in values.values()):
            return data, data
        return meaning(_WIDE, {name: v[0] for name, v in values.items()}), data
