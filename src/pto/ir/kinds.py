"""Types of each operand kind of the table."""

from __future__ import annotations

from ..isa.row import Operand
from .types import ERROR, MemRefType, ScalarType, ShapedType, TileBufType, Type, ViewType


def kind_matches(declared: Operand, type: Type) -> bool:
    """Return True if a type is of one of the declared kinds; types cache the results."""
    facts = type.__dict__
    known: dict[str, bool] | None = facts.get("_fits")
    if known is None:
        known = facts["_fits"] = {}
    found = known.get(declared.kind)
    if found is None:
        found = known[declared.kind] = any(_is_kind(k, type) for k in declared.kinds)
    return found


def _is_kind(kind: str, type: Type) -> bool:
    if kind == "any" or type is ERROR:
        return True
    if isinstance(type, TileBufType):
        return kind in ("tile", "conv_tile")
    if isinstance(type, MemRefType):
        return kind == "memref" or (kind in ("view", "tensor_view") and not type.local) or kind == "tile"
    if isinstance(type, ViewType):
        return kind == "view" or (kind == "tensor_view" and type.name == "tensor_view")
    if isinstance(type, ScalarType):
        if kind == "scalar":
            return type.text != "index"
        if kind == "int":
            return not type.is_float
        if kind == "float":
            return type.is_float
        return kind == type.text
    if isinstance(type, ShapedType):
        return kind == type.name
    return type.kind == kind
