"""The parts of one statement, before it becomes an operation."""

from __future__ import annotations

from ..ir.attrs import Attribute, EnumAttr, StrAttr
from ..ir.core import Region, Value
from ..ir.types import Type
from ..isa.enums import ENUMS, same_enum
from ..isa.row import Attr, Row

Names = list[tuple[str, int, int]]  # result name, count, token index


class Statement:
    """The parts that a format has read so far."""

    __slots__ = ("attrs", "regions", "result_types", "types", "values")

    def __init__(self) -> None:
        self.values: dict[str, list[tuple[Value, int]]] = {}
        self.types: dict[str, list[tuple[Type, int]]] = {}
        self.attrs: dict[str, Attribute] = {}
        self.regions: dict[str, Region] = {}
        self.result_types: list[Type] = []


def settle(row: Row, attrs: dict[str, Attribute]) -> None:
    """Replace names and values of attributes by those of the table. The verifier reports unknown ones."""
    for attr in row.attrs:
        if attr.alias in attrs and attr.name not in attrs:
            attrs[attr.name] = attrs.pop(attr.alias)
        found = attrs.get(attr.name)
        if found is not None:
            attrs[attr.name] = _settled(attr, found)


def _settled(attr: Attr, found: Attribute) -> Attribute:
    if isinstance(found, EnumAttr):
        values = ENUMS.get(attr.kind)
        if values is not None and found.value not in values.values and same_enum(found.enum, attr.kind):
            value = values.canonical(found.value)
            return EnumAttr(attr.kind, value) if value is not None else found
    elif isinstance(found, StrAttr) and attr.kind == "str" and found.value not in attr.choices:
        low = found.value.lower()
        return next((StrAttr(c) for c in attr.choices if c.lower() == low), found)
    return found
