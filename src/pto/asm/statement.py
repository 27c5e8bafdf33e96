"""What has been read of one statement, before it is an operation."""

from __future__ import annotations

from ..ir.attrs import Attribute
from ..ir.core import Region, Value
from ..ir.types import Type

Names = list[tuple[str, int, int]]  # result name, count, token index


class Statement:
    """What a format has read so far."""

    __slots__ = ("attrs", "regions", "result_types", "types", "values")

    def __init__(self) -> None:
        self.values: dict[str, list[tuple[Value, int]]] = {}
        self.types: dict[str, list[tuple[Type, int]]] = {}
        self.attrs: dict[str, Attribute] = {}
        self.regions: dict[str, Region] = {}
        self.result_types: list[Type] = []
