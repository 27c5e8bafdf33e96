"""Emission of a function: its values, and the views, tiles and numbers that all operations need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ...diag import Span
from ...ir import Builder
from ...ir.attrs import ArrayAttr, EnumAttr, IntAttr
from ...ir.core import Block as PtoBlock
from ...ir.core import Operation, Region
from ...ir.core import Value as PtoValue
from ...ir.types import I64, INDEX, ScalarType, TileBufType, ViewType
from ...ir.types import Type as PtoType
from ...isa.profiles import Profile
from ...isa.scalars import bounds, fit
from ...isa.tile import inner_box
from ..dtypes import INDEX as INDEX_DTYPE
from ..dtypes import DataType
from ..ir import (
    Block,
    Dim,
    Function,
    MaskType,
    Number,
    Op,
    TensorType,
    TileType,
    Value,
    VectorType,
    index,
    scalar_type,
)
from ..operators.memory import SCALES
from ..problems import UNSUPPORTED, fail
from .types import element, number, tile_type, two_dimensions

#: Operations whose result is a part, or an alias, of an operand's storage.
NAMES_STORAGE = ("slice", "reshape", "set_validshape", "reinterpret_view", "tile.transpose_view")


#: A number: a constant, a scalar of the function, or an emitted scalar.
Amount: TypeAlias = "int | Value | PtoValue"


class TensorRef:
    """A tensor: a view of its memory, and its offsets in the view. `axes` are the dimensions of the view that
    the tensor has; the others have one element."""

    def __init__(
        self,
        ptr: PtoValue,
        view: PtoValue,
        dims: Sequence[Amount],
        strides: Sequence[Amount],
        axes: list[int],
        merged: bool,
    ) -> None:
        self.ptr = ptr
        self.view = view
        self.dims = dims
        self.strides = strides
        self.offsets: list[Amount] = [0] * len(dims)
        self.axes = axes
        self.merged = merged  # leading dimensions of the view are merged into rows

    def part(self, offsets: list[Amount], axes: list[int]) -> TensorRef:
        """Return a window of the tensor."""
        made = TensorRef(self.ptr, self.view, self.dims, self.strides, axes, self.merged)
        made.offsets = offsets
        return made


class Emission:
    """A function that is being emitted. Subclasses emit its operations."""

    def __init__(self, function: Function, profile: Profile) -> None:
        self.function = function
        self.profile = profile
        self.values: dict[Value, PtoValue] = {}
        self.tensors: dict[Value, TensorRef] = {}
        self.targets: dict[Value, PtoValue] = {}  # tiles that values are to be computed into
        self.constants: dict[tuple[str, str], PtoValue] = {}
        self.build: Builder
        self.entry: PtoBlock
        self.uses: dict[Value, int] = {}
        self.changed: set[Value] = set()  # tiles that are written after they were made
        self.loc: Span | None = None

    def op(self, op: Op) -> None:
        raise NotImplementedError  # implemented by `Emitter`

    def block(self, block: Block) -> None:
        raise NotImplementedError  # implemented by `Micros`

    def place(self, span: Span | None) -> None:
        self.loc = span
        self.build.at(span)

    # ---- numbers ----

    def constant(self, value: float, type: ScalarType) -> PtoValue:
        """Return a literal, made once at the beginning of the function."""
        key = (repr(value), type.text)
        found = self.constants.get(key)
        if found is None:
            block, self.build.block = self.build.block, self.entry
            found = self.build.constant(value, type)
            self.build.block = block
            op = self.entry.ops.pop()
            self.entry.ops.insert(len(self.constants), op)
            found.name = f"c{value}" if isinstance(value, int) and value >= 0 else ""
            self.constants[key] = found
        return found

    def number(self, arg: Number, want: DataType | None = None) -> PtoValue:
        """Return a scalar, converted to the wanted type."""
        if isinstance(arg, Value):
            found = self.values[arg]
            if isinstance(arg.type, VectorType | MaskType):
                return found
            return found if want is None else self.cast(found, arg.type.dtype, want)
        dtype = want or scalar_type(arg)
        assert dtype is not None
        return self.literal(arg, number(dtype))

    def index(self, arg: Dim) -> PtoValue:
        return self.number(arg, INDEX_DTYPE)

    def literal(self, value: float, type: ScalarType) -> PtoValue:
        """Return a literal, emitted once per function, at its beginning."""
        if type.is_float:
            return self.constant(float(value), type)
        if type.text == "i1":
            return self.constant(int(bool(value)), type)
        number, (least, most) = int(value), bounds(type.text)
        if not least <= number <= most - least:  # neither a signed nor an unsigned number of this type
            number = int(fit(type.text)(number))
        return self.constant(number, type)

    def cast(self, value: PtoValue, have: DataType, want: DataType) -> PtoValue:
        """Convert a number to another type."""
        a, b = number(have), number(want)
        if a == b:
            return value
        unsigned = have.is_unsigned or have.isa == "i1"
        if "index" in (a.text, b.text) and not a.is_float and not b.is_float:
            return self.build.op(
                "arith.index_castui" if unsigned else "arith.index_cast", [b], src=value
            ).result
        if a.text == "index":
            value, a = self.build.op("arith.index_cast", [I64], src=value).result, I64
        if b.text == "index":
            whole = self.build.op("arith.fptosi", [I64], src=value).result
            return self.build.op("arith.index_cast", [b], src=whole).result
        if a.is_float and b.is_float:
            name = "arith.extf" if (b.bits or 0) > (a.bits or 0) else "arith.truncf"
        elif a.is_float:
            name = "arith.fptoui" if want.is_unsigned else "arith.fptosi"
        elif b.is_float:
            name = "arith.uitofp" if unsigned else "arith.sitofp"
        elif (b.bits or 0) > (a.bits or 0):
            name = "arith.extui" if unsigned else "arith.extsi"
        else:
            name = "arith.trunci"
        return self.build.op(name, [b], src=value).result

    # ---- memory ----

    def _view(self, ptr: PtoValue, type: TensorType) -> TensorRef:
        """Return a view of a whole tensor. A tensor of one dimension is a row; a tensor of one column is
        column-major."""
        dims = list(type.shape) if type.rank > 1 else [1, *type.shape]
        strides = list(type.strides) if type.strides is not None else None
        if strides is not None and type.rank == 1:
            strides = [dims[1], *strides]
        if strides is None:
            strides = self._dense(dims)
        attrs = {}
        all_strides = strides
        axes = list(range(len(dims))) if type.rank > 1 else [1]
        all_dims, merged = dims, index.known(dims[-1]) == 1 and len(dims) > 2 and type.strides is None
        if merged:  # a column with leading dimensions: rows are contiguous
            rows: Amount = 1
            for d in dims[:-1]:
                rows = self._times(rows, d)
            dims = [rows, 1]
        # a column that is a window of a matrix has strided rows
        if _known(dims[-1]) == 1 and (type.strides is None or _known(strides[-2]) == 1):
            attrs["layout"] = EnumAttr("layout", "dn")
            if type.strides is None:
                strides = [*([] if merged else strides[:-2]), 1, dims[-2]]
        view_type = ViewType(element(type.dtype), tuple(_known(d) for d in dims), "tensor_view")
        view = self.build.op(
            "pto.make_tensor_view", [view_type], attrs, ptr=ptr, shape=[self._index(d) for d in dims],
            strides=[self._index(s) for s in strides],
        ).result  # fmt: skip
        view.name = f"{ptr.name}_view"
        return TensorRef(ptr, view, all_dims, all_strides, axes, merged)

    def _dense(self, dims: Sequence[Amount]) -> list[Amount]:
        out: list[Amount] = [1]
        for d in reversed(dims[1:]):
            out.append(self._times(out[-1], d))
        return list(reversed(out))

    def _times(self, a: Amount, b: Amount) -> Amount:
        if not isinstance(a, Value | PtoValue) and not isinstance(b, Value | PtoValue):
            return a * b
        for one, other in ((a, b), (b, a)):
            if isinstance(one, int) and one == 1:
                return other
        lhs, rhs = (x if isinstance(x, PtoValue) else self.index(x) for x in (a, b))
        return self.build.op("arith.muli", [INDEX], lhs=lhs, rhs=rhs).result

    def _plus(self, a: Amount, b: Amount) -> Amount:
        if not isinstance(a, Value | PtoValue) and not isinstance(b, Value | PtoValue):
            return a + b
        for one, other in ((a, b), (b, a)):
            if isinstance(one, int) and one == 0:
                return other
        lhs, rhs = (x if isinstance(x, PtoValue) else self.index(x) for x in (a, b))
        return self.build.op("arith.addi", [INDEX], lhs=lhs, rhs=rhs).result

    def window(
        self, tensor: Value, offsets: Sequence[Amount], sizes: Sequence[Amount], turned: bool = False
    ) -> PtoValue:
        """Return a window of a tensor as a partition of its view; with `turned`, transposed."""
        if tensor not in self.tensors:
            fail(UNSUPPORTED, "cannot take the address of a reshaped window of a tensor", self.loc,
                 help="use it as it is, without pl.load, or reshape the whole tensor")  # fmt: skip
        ref = self.tensors[tensor]
        if tensor.type.layout in SCALES:
            return self.boxes(tensor, offsets, sizes)
        at = list(ref.offsets)
        extent: list[Amount] = [1] * len(ref.dims)
        for axis, o, n in zip(ref.axes[-len(offsets) :], offsets, sizes, strict=True):
            at[axis] = self._plus(at[axis], o)
            extent[axis] = n
        if ref.merged:
            at, extent = self._merged(ref, at, extent)
        view = ref.view
        if turned:
            view, at, extent = self._turned(ref), _swapped(at), _swapped(extent)
        dims = tuple(_known(d) for d in extent)
        type = ViewType(element(tensor.type.dtype), dims)
        return self.build.op(
            "pto.partition_view", [type], source=view, offsets=[self._index(o) for o in at],
            sizes=[self._index(n) for n in extent],
        ).result  # fmt: skip

    def _turned(self, ref: TensorRef) -> PtoValue:
        """Return a transposed view of the same memory."""
        dims, strides = _swapped(ref.dims), _swapped(ref.strides)
        elem: Any = ref.view.type
        type = ViewType(elem.elem, tuple(_known(d) for d in dims), "tensor_view")
        return self.build.op(
            "pto.make_tensor_view", [type], {"layout": EnumAttr("layout", "dn")}, ptr=ref.ptr,
            shape=[self._index(d) for d in dims], strides=[self._index(s) for s in strides],
        ).result  # fmt: skip

    def _merged(
        self, ref: TensorRef, at: list[Amount], extent: list[Amount]
    ) -> tuple[list[Amount], list[Amount]]:
        """Return the offset and size of a window of columns as rows, with the leading dimensions merged."""
        row: Amount = 0
        rows: Amount = 1
        for n, o, size in zip(ref.dims[:-1], at[:-1], extent[:-1], strict=True):
            row = self._plus(self._times(row, n), o)
            if rows != 1 and _known(n) != _known(size):
                fail(UNSUPPORTED, "cannot use a window of columns whose rows are not contiguous", self.loc,
                     help="use the window of one page at a time")  # fmt: skip
            rows = self._times(rows, size)
        return [row, at[-1]], [rows, extent[-1]]

    def _index(self, x: Amount) -> PtoValue:
        return x if isinstance(x, PtoValue) else self.index(x)

    # ---- tiles ----

    def alloc(self, type: TileType, name: str = "", pad: int = 0) -> PtoValue:
        """Allocate a tile."""
        made = tile_type(type, self.profile, pad)
        rows, cols = self._extents(type)
        operands: dict[str, PtoValue] = {}
        if made.v_row is None and rows is not None:
            operands["valid_row"] = rows
        if made.v_col is None and cols is not None:
            operands["valid_col"] = cols
        value = self.build.op("pto.alloc_tile", [made], None, **operands).result
        value.name = name
        return value

    def _extents(self, type: TileType) -> tuple[PtoValue | None, PtoValue | None]:
        rows: Amount = 1
        known = [index.known(d) for d in type.extent]
        for d, k in zip(type.extent[:-1], known[:-1], strict=True):
            rows = self._times(rows, k if k is not None else d)
        last = type.extent[-1]
        return (
            None if isinstance(rows, int) else self._index(rows),
            None if known[-1] is not None else self.index(last),
        )

    def result(self, value: Value, pad: int = 0) -> PtoValue:
        """Return the tile that a value is computed into."""
        found = self.targets.pop(value, None)
        if found is None:
            found = self.alloc(value.type, value.name or named(value), pad)
        self.values[value] = found
        return found

    def last_use(self, value: Value, op: Op) -> bool:
        """Return True if a tile of this block is not used after an operation of the block."""
        return self.uses.get(value, 0) == 1 and defined_beside(value, op)

    def copy(self, source: PtoValue, target: PtoValue, span: Span | None) -> None:
        if isinstance(source.type, TileBufType) and source.type.loc not in ("vec", "mat"):
            fail(
                UNSUPPORTED,
                f"cannot copy a tile in {source.type.loc}, and its old value is still used",
                span,
                help="move uses of the old value before the new one is computed, or store it",
            )
        self.build.op("pto.tmov", src=source, dst=target)

    def boxes(self, tensor: Value, offsets: Sequence[Amount], sizes: Sequence[Amount]) -> PtoValue:
        """Return a window of scales: boxes of 16 rows (columns of a right operand), one after another."""
        t, ref = tensor.type, self.tensors[tensor]
        dims = [n for d in t.shape if (n := index.known(d)) is not None]
        extents = [n for d in sizes if (n := _known(d)) is not None]
        if len(dims) != t.rank or len(extents) != len(sizes) or t.strides is not None:
            fail(UNSUPPORTED, "cannot load a window of scales with dynamic extents", self.loc, got=t)
        places = [self._plus(o, p) for o, p in zip(ref.offsets, offsets, strict=True)]
        if t.layout == "MX_B_NN":
            dims, extents, places = dims[::-1], extents[::-1], places[::-1]
        (long, wide), (rows, cols) = dims, extents
        shape, strides = [1, long // 16, wide // 2, 16, 2], [long * wide, 16 * wide, 32, 2, 1]
        view = self.build.op(
            "pto.make_tensor_view", [ViewType(element(t.dtype), tuple(shape), "tensor_view")],
            {"layout": EnumAttr("layout", t.layout.lower())}, ptr=ref.ptr,
            shape=[self.index(d) for d in shape], strides=[self.index(s) for s in strides],
        ).result  # fmt: skip
        at = [0, self._over(places[0], 16), self._over(places[1], 2), 0, 0]
        part = [1, rows // 16, cols // 2, 16, 2]
        return self.build.op(
            "pto.partition_view", [ViewType(element(t.dtype), tuple(part))], source=view,
            offsets=[self._index(o) for o in at], sizes=[self.index(n) for n in part],
        ).result  # fmt: skip

    def _over(self, a: Amount, by: int) -> Amount:
        if isinstance(a, int):
            return a // by
        return self.build.op("arith.divsi", [INDEX], lhs=self._index(a), rhs=self.index(by)).result

    def window_of(self, x: Value, t: TileType, offset: Sequence[Amount]) -> PtoValue:
        """Return the part of a tile that begins at a row and a column."""
        source = self.values[x]
        base: Any = source.type
        rows, cols = two_dimensions([index.known(d) for d in t.shape])
        if base.slayout != "none_box":  # whole boxes
            box = inner_box(t.dtype.bits, base.slayout, base.fractal)
            rows, cols = (-(-n // b) * b for n, b in zip((rows, cols), box, strict=True))
        made = tile_type(t, self.profile).replace(
            rows=rows, cols=cols, blayout=base.blayout, slayout=base.slayout, fractal=base.fractal
        )
        operands: dict[str, PtoValue] = {}
        if made.v_row is None or made.v_col is None:
            r, c = self._extents(t)
            operands["valid_row"] = r if r is not None else self.index(made.v_row or 0)
            operands["valid_col"] = c if c is not None else self.index(made.v_col or 0)
        at = [self._index(o) for o in offset]
        sizes = ArrayAttr((IntAttr(rows), IntAttr(cols)))
        return self.build.op(
            "pto.subview", [made], {"sizes": sizes}, source=source, offsets=at, **operands
        ).result

    def flat(self, x: Value, offset: Sequence[Amount]) -> tuple[Amount, Amount]:
        """Return the row and column of a place in a tile; leading dimensions are merged into rows."""
        row: Amount = 0
        dims = (1, *x.type.shape)[-len(offset) :] if len(offset) > 1 else (1,)
        at = list(offset) if len(offset) > 1 else [0, *offset]
        for o, n in zip(at[:-1], (*dims[:-1],), strict=False):
            row = self._plus(self._times(row, index.known(n) or 1), o)
        return row, at[-1]

    def _pointer(self, x: Value) -> PtoValue:
        return self.tensors[x].ptr

    def _flat(self, x: Value, at: Sequence[Amount]) -> PtoValue:
        """Return the number of an element in memory, given an index per dimension or a row-major element
        number."""
        offsets: list[Amount]
        if isinstance(x.type, TensorType):
            ref = self.tensors[x]
            strides, axes = ref.strides, ref.axes
            offsets = list(ref.offsets)
        else:
            t: Any = self.values[x].type
            offsets = [0, 0]
            strides, axes = self._dense([t.rows, t.cols]), [0, 1]
        if len(at) == 1 and len(axes) > 1:
            at = self._unflattened(at[0], list(x.type.shape)[-len(axes) :])
        for axis, o in zip(axes[-len(at) :], at, strict=True):
            offsets[axis] = self._plus(offsets[axis], o)
        total: Amount = 0
        for o, s in zip(offsets, strides, strict=True):
            total = self._plus(total, self._times(o, s))
        return self._index(total)

    def _unflattened(self, number: Amount, shape: Sequence[Dim]) -> list[Amount]:
        """Return the indices of a row-major element number."""
        out: list[Amount] = []
        for n in reversed(shape[1:]):
            if isinstance(number, int) and isinstance(n, int):
                number, rest = divmod(number, n)
            else:
                lhs, rhs = self._index(number), self._index(n)
                number = self.build.op("arith.divsi", [INDEX], lhs=lhs, rhs=rhs).result
                rest = self.build.op("arith.remsi", [INDEX], lhs=lhs, rhs=rhs).result
            out.append(rest)
        return [number, *reversed(out)]

    def contiguous(self, x: Value) -> PtoValue | None:
        """Return the address of a tensor with contiguous elements; None for other tensors."""
        ref = self.tensors[x]
        run: Amount = 1
        for axis, n in reversed(list(zip(ref.axes, x.type.shape, strict=True))):
            if index.known(n) != 1:
                stride = ref.strides[axis]
                if isinstance(stride, PtoValue) or isinstance(run, PtoValue) or not index.same(stride, run):
                    return None
            run = self._times(run, n)
        if all(isinstance(o, int) and o == 0 for o in ref.offsets):
            return ref.ptr
        return self.build.op(
            "pto.addptr", [ref.ptr.type], ptr=ref.ptr, offset=self._flat(x, [0] * len(ref.axes))
        ).result

    # ---- blocks ----

    def _structure(
        self, name: str, results: Sequence[PtoType], regions: int, **operands: PtoValue | list[PtoValue]
    ) -> tuple[Operation, list[PtoBlock]]:
        op = self.build.op(name, results, None, **operands)
        op.regions = [Region(op) for _ in range(regions)]
        return op, [r.add_block() for r in op.regions]


def named(value: Value) -> str:
    """Return a name for an unnamed tile: the operation that computes it."""
    return "" if value.op is None else value.op.name.rpartition(".")[2].rstrip("_")


def _swapped(dims: Sequence[Amount]) -> list[Amount]:
    return [*dims[:-2], dims[-1], dims[-2]]


def _known(d: Amount) -> int | None:
    return None if isinstance(d, PtoValue) else index.known(d)


def defined_beside(value: Value, op: Op) -> bool:
    """Return True if a value is made in the block of an operation, in storage of its own."""
    made = value.op
    return made is not None and made.parent is op.parent and made.name not in NAMES_STORAGE
