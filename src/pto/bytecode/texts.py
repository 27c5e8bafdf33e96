"""Convert types and attribute dictionaries to and from the texts that bytecode stores.

The texts are those of the printer of PTOAS: sorted keys, 64-bit integers with their type, explicit defaults
(`format.IMPLIED`), comparison predicates as numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from ..asm.cursor import Fail, Report
from ..asm.generic import FLAGS
from ..asm.lexer import EOF
from ..asm.parser import Parser
from ..diag import Source
from ..ir.attrs import (
    ArrayAttr,
    Attribute,
    BoolAttr,
    DenseArrayAttr,
    DictAttr,
    EnumAttr,
    IntAttr,
    OpaqueAttr,
    StrAttr,
    UnitAttr,
    key_text,
)
from ..ir.core import Operation
from ..ir.types import I32, I64, Type
from ..isa.row import Attr, Row
from .format import IMPLIED, SEGMENTS, written_segments

T = TypeVar("T")


class BadText(Exception):
    """A malformed text; the message has the reason."""


@lru_cache(4096)  # programs of one batch share most types
def parse_type(text: str) -> Type:
    return _whole(text, Parser.type)


def parse_dict(text: str) -> dict[str, Attribute]:
    return _whole(text, Parser.dictionary)


def _whole(text: str, read: Callable[[Parser], T]) -> T:
    reader = Parser(Source("", text))
    try:
        if reader.diagnostics:
            raise BadText(reader.diagnostics[0].message)
        found = read(reader)
    except Fail as e:
        raise BadText(e.message) from None
    except Report as e:
        raise BadText(e.diagnostic.message) from None
    if reader.t[reader.i] != EOF:
        raise BadText(f"unexpected {reader.shown()} at the end")
    return found


# ------------------------------------------------------------------------------------------------ writing


def dict_text(items: dict[str, Attribute]) -> str:
    """Return a dictionary in the spelling of PTOAS; empty for an empty dictionary."""
    if not items:
        return ""
    parts = (
        key_text(k) if isinstance(v, UnitAttr) else f"{key_text(k)} = {_value(v)}"
        for k, v in sorted(items.items())
    )
    return "{" + ", ".join(parts) + "}"


def _value(value: Attribute, typed: bool = True) -> str:
    if isinstance(value, IntAttr) and value.type == I64 and typed:
        return f"{value.value} : i64"
    if isinstance(value, DictAttr):
        return dict_text(value.items) or "{}"
    if isinstance(value, ArrayAttr):  # 64-bit elements are written without their type
        return f"[{', '.join(_value(i, typed=False) for i in value.items)}]"
    return str(value)


def op_attrs(op: Operation, without: str = "") -> dict[str, Attribute]:
    """Return the attributes of an operation as in bytecode: in generic form, with implied defaults."""
    row = op.row
    if row is None or row.dialect == "cf":  # operand groups of branches are stored with their successors
        return op.attrs
    out = {k: _generic(row, k, v) for k, v in op.attrs.items() if k != without}
    for attr in implied(row):
        if attr.name not in out:
            out[attr.name] = default(attr)
    if row.has_segments and op.segments is not None:
        sizes = written_segments(row, op.segments)
        if sizes is not None:
            out[SEGMENTS] = DenseArrayAttr("i32", sizes)
    return out


def _generic(row: Row, key: str, value: Attribute) -> Attribute:
    attr = row.attr_index.get(key)
    if attr is None or not isinstance(value, StrAttr):
        return value
    if key == "predicate" and value.value in attr.choices:
        return IntAttr(attr.choices.index(value.value), I64)
    if key in FLAGS:
        return OpaqueAttr(f"#arith.{FLAGS[key]}<{value.value}>")
    return value


def implied(row: Row) -> list[Attr]:
    """Return the attributes that are written even if the program leaves them out."""
    named = IMPLIED.get(row.name, ())
    return [a for a in row.attrs if a.name in named or (a.name in FLAGS and a.default == "none")]


def default(attr: Attr) -> Attribute:
    """Return the default value of an implied attribute."""
    if attr.name in FLAGS:
        return OpaqueAttr(f"#arith.{FLAGS[attr.name]}<{attr.default}>")
    if attr.kind == "bool":
        return BoolAttr(attr.default)
    if attr.kind == "int":
        return IntAttr(attr.default, I32)
    return EnumAttr(attr.kind, attr.default)
