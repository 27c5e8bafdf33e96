"""Rewrite tiles of 4-bit floats whose columns count pairs as tiles whose columns count elements.

    pto.tcvt ins(%p : !pto.tile_buf<vec, 16x32x!pto.f4E2M1x2>) outs(%x : !pto.tile_buf<vec, 16x64xbf16>)
means
    pto.tcvt ins(%p : !pto.tile_buf<vec, 16x64xf4E2M1FN>) outs(%x : !pto.tile_buf<vec, 16x64xbf16>)

For such tiles in vec, the vendor assembler counts bytes of two elements along the axis that the layout packs.
Views of global memory count elements. The conversions of such a program identify it: their other side has
twice as many columns. The verifier and the driver work on the form with elements.
"""

from __future__ import annotations

from ..isa import row as find_row
from .attrs import ArrayAttr, Attribute, IntAttr, TypeAttr
from .clone import clone
from .core import Block, Module, Operation, Value, constant_of
from .types import INDEX, FunctionType, TileBufType, Type

#: Operands that count rows, and columns, of the tile that is another operand or the result.
_COUNTS: dict[str, tuple[str, str, str]] = {
    "pto.alloc_tile": ("", "valid_row", "valid_col"),
    "pto.set_validshape": ("source", "valid_row", "valid_col"),
    "pto.textract": ("src", "indexRow", "indexCol"),
    "pto.tinsert": ("dst", "indexRow", "indexCol"),
    "pto.subview": ("source", "valid_row", "valid_col"),
}


def logical_tiles(module: Module) -> Module:
    """Return the program with tiles that count elements: the given one if all do, else a copy."""
    if not any(op.name == "pto.tcvt" and _pairs(op) for op in module.walk()):
        return module
    made = clone(module)
    blocks = [block for op in made.walk() for region in op.regions for block in region.blocks]
    for block in blocks:
        for value in (*block.args, *(r for op in block.ops for r in op.results)):
            value.type = _doubled(value.type)
    for op in made.walk():
        if (type := op.attrs.get("function_type")) is not None:
            op.attrs["function_type"] = TypeAttr(_function(type.value))
    for block in blocks:
        for op in list(block.ops):
            if op.name in _COUNTS:
                _count_elements(block, op)
    return made


def _pairs(op: Operation) -> bool:
    """Return True if a conversion shows that one of its tiles counts pairs."""
    src, dst = (op.group(name)[0].type for name in ("src", "dst"))
    if not isinstance(src, TileBufType) or not isinstance(dst, TileBufType):
        return False
    return any(
        _is_packed(a) and not _is_packed(b) and a.shape != b.shape and _shape(a) == b.shape
        for a, b in ((src, dst), (dst, src))
    )


def _is_packed(type: Type) -> bool:
    return isinstance(type, TileBufType) and type.loc == "vec" and type.bits == 4 and type.elem.is_float


def _axis(type: TileBufType) -> int:
    """Return the dimension whose neighbors share a byte."""
    return 0 if type.blayout == "col_major" else 1


def _shape(type: TileBufType) -> tuple[int, int]:
    rows, cols = type.shape
    return (2 * rows, cols) if _axis(type) == 0 else (rows, 2 * cols)


def _doubled(type: Type) -> Type:
    if not isinstance(type, TileBufType) or not _is_packed(type):
        return type
    rows, cols = _shape(type)
    v_row, v_col = type.v_row, type.v_col
    if _axis(type) == 0:
        v_row = None if v_row is None else 2 * v_row
    else:
        v_col = None if v_col is None else 2 * v_col
    return type.replace(rows=rows, cols=cols, v_row=v_row, v_col=v_col)


def _function(type: FunctionType) -> FunctionType:
    inputs, results = (tuple(map(_doubled, types)) for types in (type.inputs, type.results))
    return type.replace(inputs=inputs, results=results)


def _count_elements(block: Block, op: Operation) -> None:
    """Double the numbers of an operation that counts the elements of such a tile."""
    source, *names = _COUNTS[op.name]
    type = (op.group(source)[0] if source else op.results[0]).type
    if not isinstance(type, TileBufType) or not _is_packed(type):
        return
    axis = _axis(type)
    declared = [d.name for d, _ in op.named()]
    places = [n for n, name in enumerate(declared) if name == names[axis]]
    if op.name == "pto.subview":
        places.append(declared.index("offsets") + axis)
        sizes = [int(n) * (2 if n_axis == axis else 1) for n_axis, n in enumerate(op.attr("sizes"))]
        op.attrs["sizes"] = ArrayAttr(tuple(IntAttr(n) for n in sizes))
    for at in places:  # by position: a value may count rows and columns
        op.operands[at] = _twice(block, op, op.operands[at])


def _twice(block: Block, at: Operation, value: Value) -> Value:
    known = constant_of(value)
    if isinstance(known, int):
        return _insert(block, at, "arith.constant", [], 2 * known).result
    two = _insert(block, at, "arith.constant", [], 2)
    return _insert(block, at, "arith.muli", [value, two.result]).result


def _insert(
    block: Block, at: Operation, name: str, operands: list[Value], number: int | None = None
) -> Operation:
    attrs: dict[str, Attribute] = {} if number is None else {"value": IntAttr(number, INDEX)}
    made = Operation(name, find_row(name), operands, (INDEX,), attrs, None, at.loc)
    made.parent = block
    block.ops.insert(next(n for n, op in enumerate(block.ops) if op is at), made)
    return made
