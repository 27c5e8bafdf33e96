"""A program as objects. `asm` and `bytecode` build them; all other stages read them."""

from typing import TYPE_CHECKING, Any

from .attrs import (
    ArrayAttr,
    Attribute,
    BoolAttr,
    DenseArrayAttr,
    DictAttr,
    EnumAttr,
    FloatAttr,
    IntAttr,
    OpaqueAttr,
    StrAttr,
    SymbolAttr,
    TypeAttr,
    UnitAttr,
)
from .core import Block, Module, Operation, Region, Successor, Value, constant_of, replace_uses, uses
from .types import (
    EventIdArrayType,
    FunctionType,
    MaskType,
    MemRefType,
    OpaqueType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    TokenType,
    Type,
    ViewType,
    VRegType,
)

if TYPE_CHECKING:
    from .builder import Builder

__all__ = [
    "ArrayAttr", "Attribute", "Block", "BoolAttr", "Builder", "DenseArrayAttr", "DictAttr", "EnumAttr",
    "EventIdArrayType", "FloatAttr", "FunctionType", "IntAttr", "MaskType", "MemRefType", "Module",
    "OpaqueAttr", "OpaqueType", "Operation", "PtrType", "Region", "ScalarType", "ShapedType", "StrAttr",
    "Successor", "SymbolAttr", "TileBufType", "TokenType", "Type", "TypeAttr", "UnitAttr", "VRegType",
    "Value", "ViewType", "constant_of", "replace_uses", "uses",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the builder for programs written in Python: the assembler does not need it."""
    if name != "Builder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .builder import Builder

    return Builder
