"""A program as objects. Built by `asm` and `bytecode`, read by everything above."""

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
from .builder import Builder
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

__all__ = [
    "ArrayAttr", "Attribute", "Block", "BoolAttr", "Builder", "DenseArrayAttr", "DictAttr", "EnumAttr",
    "EventIdArrayType", "FloatAttr", "FunctionType", "IntAttr", "MaskType", "MemRefType", "Module",
    "OpaqueAttr", "OpaqueType", "Operation", "PtrType", "Region", "ScalarType", "ShapedType", "StrAttr",
    "Successor", "SymbolAttr", "TileBufType", "TokenType", "Type", "TypeAttr", "UnitAttr", "VRegType",
    "Value", "ViewType", "constant_of", "replace_uses", "uses",
]  # fmt: skip
