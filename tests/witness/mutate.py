"""Variants of a witness: all plans that differ from it in one point. Each legality rule must refuse one of
them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pto.ir.attrs import ArrayAttr, Attribute, IntAttr
from pto.ir.types import (
    ConvTileType,
    EventIdArrayType,
    MaskType,
    MemRefType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    Type,
    ViewType,
    VRegType,
)  # fmt: skip
from pto.isa.dtypes import DTYPES
from pto.isa.enums import ENUMS
from pto.isa.machine import POINTER_SPACES
from pto.isa.profiles import LOCATIONS
from pto.isa.row import Operand
from pto.isa.tile import COMPACT_MODES, FRACTALS, LAYOUTS
from pto.witness.plan import Plan, make_attribute, operand_types, with_element

_SCALARS = tuple(dict.fromkeys(("index", *(d.mlir for d in DTYPES.values()))))
_NUMBERS = (
    0,
    -1,
    1,
    2,
    3,
    5,
    7,
    8,
    16,
    17,
    31,
    32,
    64,
    128,
    256,
    512,
    1024,
    4096,
    1 << 16,
    1 << 21,
    1 << 40,
    1 << 62,
)
_MANY = 9  # more values than any variadic operand may have

Mutant = tuple[str, Plan]


def variants(made: Plan, names: Collection[str] | None = None) -> Iterator[Mutant]:
    """Yield each plan with one change. With `names`, change only these operands, results and attributes."""
    row = made.row
    for declared in row.operands:
        if names is None or declared.name in names:
            yield from _operand(made, declared)
    for declared in row.results:
        if names is None or declared.name in names:
            yield from _result(made, declared)
    for attr in row.attrs:
        if names is None or attr.name in names:
            yield from _attribute(made, attr.name)


# ------------------------------------------------------------------------------------------------ operands


def _operand(made: Plan, declared: Operand) -> Iterator[Mutant]:
    name = declared.name
    types = made.operands.get(name, ())
    for at, type in enumerate(types):
        for what, other in _types(type, made, declared):
            changed = (*types[:at], other, *types[at + 1 :])
            yield f"{name}: {what}", made.replace(operands={**made.operands, name: changed})
        if isinstance(type, ScalarType) and not type.is_float:
            for number in _NUMBERS:
                yield f"{name} = {number}", made.replace(constants={**made.constants, (name, at): number})
        if isinstance(type, ViewType):
            for layout in ENUMS["layout"].values:
                yield f"{name}: {layout} layout", made.replace(layouts={**made.layouts, name: layout})
    yield from _presence(made, declared, types)


def _presence(made: Plan, declared: Operand, types: tuple[Type, ...]) -> Iterator[Mutant]:
    """Yield plans that drop the operand, add it, or change the number of its values."""
    name = declared.name
    if types and (declared.optional or declared.variadic):
        rest = {n: t for n, t in made.operands.items() if n != name}
        yield f"no {name}", made.replace(operands=rest)
    if not types and (declared.optional or declared.variadic):
        types = operand_types(made.row, made.isa, declared, None, {"": _some_dtype(made)})
        yield f"with {name}", made.replace(operands=_ordered(made, name, types))
    if declared.variadic:
        for count in {1, len(types) - 1, len(types) + 1, _MANY} - {0}:
            some = tuple(types[i % len(types)] for i in range(count))
            yield f"{count} values for {name}", made.replace(operands=_ordered(made, name, some))


def _ordered(made: Plan, name: str, types: tuple[Type, ...]) -> dict[str, tuple[Type, ...]]:
    given = {**made.operands, name: types}
    return {o.name: given[o.name] for o in made.row.operands if o.name in given}


def _some_dtype(made: Plan) -> str:
    """Return an element type for an added operand, preferably of an operand in the dtype list of the row."""
    given = {**made.operands, **made.results}
    named = [*made.row.dtype_of, *(n for c in made.row.combos for n in c.operands)]
    for types in (*(given[n] for n in named if n in given), *given.values()):
        for type in types:
            dtype = getattr(type, "dtype", None)
            if dtype is not None:
                return str(dtype)
    return "f32"


def _result(made: Plan, declared: Operand) -> Iterator[Mutant]:
    types = made.results.get(declared.name, ())
    if not types and declared.optional:
        added = operand_types(made.row, made.isa, declared, None, {"": _some_dtype(made)})
        given = {**made.results, declared.name: added}
        ordered = {r.name: given[r.name] for r in made.row.results if r.name in given}
        yield f"with {declared.name}", made.replace(results=ordered)
    for at, type in enumerate(types):
        for what, other in _types(type, made, declared):
            changed = (*types[:at], other, *types[at + 1 :])
            yield f"{declared.name}: {what}", made.replace(results={**made.results, declared.name: changed})


# --------------------------------------------------------------------------------------------------- types


def _types(type: Type, made: Plan, declared: Operand) -> Iterator[tuple[str, Type]]:
    """Yield types that differ from `type` in one point, and one type of every other kind that the operand may
    have."""
    for dtype in DTYPES if hasattr(type, "elem") else ():
        if str(type.dtype) != dtype:  # type: ignore[attr-defined]
            yield f"elements {dtype}", with_element(type, dtype)
    if isinstance(type, TileBufType):
        yield from _tiles(type)
    elif isinstance(type, ViewType | MemRefType | ShapedType):
        yield from _dims(type)
    elif isinstance(type, ConvTileType):
        yield from ((f"in {loc}", type.replace(loc=loc)) for loc in ("vec", "acc"))
        yield "layout FRACTAL_Z", type.replace(layout="FRACTAL_Z")
    elif isinstance(type, VRegType):
        yield f"{type.lanes * 2} lanes", type.replace(lanes=type.lanes * 2)
    elif isinstance(type, PtrType):
        yield from ((f"in {s}", type.replace(space=s)) for s in POINTER_SPACES if s != type.space)
    elif isinstance(type, MaskType):
        yield from ((f"granularity {g}", MaskType(g)) for g in ("b8", "b16", "b32", None) if g != type.gran)
    elif isinstance(type, ScalarType):
        yield from ((f"of type {s}", ScalarType(s)) for s in _SCALARS if s != type.text)
    elif isinstance(type, EventIdArrayType):
        yield from ((f"{n} ids", EventIdArrayType(n)) for n in (1, 8, 9, 64))
    for kind in declared.kinds:
        if kind != type.kind:
            alone = declared.replace(kind=kind, variadic=False)
            yield f"a {kind}", operand_types(made.row, made.isa, alone, None, {"": _some_dtype(made)})[0]


def _tiles(t: TileBufType) -> Iterator[tuple[str, TileBufType]]:
    for loc in LOCATIONS:
        if loc != t.loc:
            yield f"in {loc}", t.replace(loc=loc)
    for blayout, slayout in LAYOUTS:
        if (blayout, slayout) != (t.blayout, t.slayout):
            yield f"{blayout}/{slayout}", t.replace(blayout=blayout, slayout=slayout)
    for rows in _sizes(t.rows):
        yield f"{rows} rows", t.replace(rows=rows)
        yield f"{rows} valid rows of {rows}", t.replace(rows=rows, v_row=rows)
    for cols in _sizes(t.cols):
        yield f"{cols} columns", t.replace(cols=cols)
        yield f"{cols} valid columns of {cols}", t.replace(cols=cols, v_col=cols)
    for v_row in (0, 1, t.rows - 1, t.rows // 2, t.rows + 1, None):
        yield f"{v_row} valid rows", t.replace(v_row=v_row)
    for v_col in (0, 1, t.cols - 1, t.cols // 2, t.cols + 1, None):
        yield f"{v_col} valid columns", t.replace(v_col=v_col)
    for fractal in FRACTALS:
        yield f"fractal {fractal}", t.replace(fractal=fractal)
    for pad in range(4):
        yield f"pad {pad}", t.replace(pad=pad)
    for compact in COMPACT_MODES:
        yield f"compact {compact}", t.replace(compact=compact)


def _sizes(n: int) -> tuple[int, ...]:
    return tuple(
        s for s in dict.fromkeys((n * 2, n // 2, n + 1, n - 1, 1, 8, n + 16, 4096, 65536)) if s not in (0, n)
    )


def _dims(t: ViewType | MemRefType | ShapedType) -> Iterator[tuple[str, Type]]:
    for at, dim in enumerate(t.dims):
        for size in (*_sizes(dim or 16), 1 << 30, 0, None):
            yield f"dimension {at} = {size}", t.replace(dims=(*t.dims[:at], size, *t.dims[at + 1 :]))
    for rank in (1, 2, 3, 5, 6):
        dims = (1,) * (rank - len(t.dims)) + t.dims[-rank:]
        yield f"rank {rank}", t.replace(dims=dims)
    yield f"rank {len(t.dims) + 1}", t.replace(dims=(2, *t.dims))
    if isinstance(t, ViewType):
        other = "tensor_view" if t.name == "partition_tensor_view" else "partition_tensor_view"
        yield f"a {other}", t.replace(name=other)
    if isinstance(t, MemRefType):
        for space in ("gm", "vec", "mat", "acc", ""):
            yield f"in {space or 'no space'}", t.replace(space=space)


# ---------------------------------------------------------------------------------------------- attributes


def _attribute(made: Plan, name: str) -> Iterator[Mutant]:
    attr = made.row.attr_index[name]
    present = made.attrs.get(name)
    if present is not None:
        yield f"no {name}", made.replace(attrs={n: v for n, v in made.attrs.items() if n != name})
    values: list[Attribute] = [make_attribute(attr, v) for v in attr.domain]
    if attr.kind == "int" and not attr.domain:
        values = [IntAttr(n) for n in _NUMBERS]
    elif isinstance(present, ArrayAttr):
        values = list(_arrays(present))
    elif attr.kind == "ints":
        values = [make_attribute(attr, text) for text in ("[0]", "[-1]", "[1, 1]")]
    elif attr.kind in ("unit", "float") or (attr.kind == "str" and not attr.domain):
        values = [make_attribute(attr, {"unit": True, "float": 2.5, "str": "other"}[attr.kind])]
    for value in values:
        if value != present:
            yield f"{name} = {value}", made.replace(attrs={**made.attrs, name: value})


def _arrays(array: ArrayAttr) -> Iterator[ArrayAttr]:
    for at, item in enumerate(array.items):
        for number in {0, -1, item.value * 2, item.value // 2, item.value + 1, item.value - 1}:
            yield ArrayAttr((*array.items[:at], IntAttr(number), *array.items[at + 1 :]))
    yield ArrayAttr((*array.items, IntAttr(1)))
    yield ArrayAttr(array.items[:-1])
