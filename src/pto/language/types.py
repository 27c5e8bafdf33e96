"""Annotations of the language: `pl.Tensor[[M, N], pl.FP32]`, `pl.Out[...]`, `pl.Scalar[pl.INT32]`.

Annotations are read, never instantiated. A bare `pl.Tensor` takes shape and element type from the argument.
"""

from __future__ import annotations

from typing import Any

from ..isa.record import Record
from .dtypes import INT64, TASK_ID, DataType
from .enums import MemorySpace, TensorLayout
from .ir import (
    IN,
    INOUT,
    OUT,
    ArrayType,
    DistributedTensorType,
    HandleType,
    ScalarType,
    TensorType,
    TileType,
    Type,
)


class DynVar:
    """An extent that a call decides: `M = pl.dynamic("M")`. Equal names are the same extent. `M * 2` and `M +
    1` are extents, too; M follows from their values.
    """

    __slots__ = ("base", "name", "plus", "times")

    def __init__(self, name: str, base: str = "", times: int = 1, plus: int = 0) -> None:
        self.name = name
        self.base = base or name
        self.times = times
        self.plus = plus

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DynVar) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"pl.dynamic({self.name!r})"

    def _made(self, times: int, plus: int) -> DynVar:
        if (times, plus) == (1, 0):
            return DynVar(self.base)
        more = f"_times_{times}" if times != 1 else ""
        more += f"_{'plus' if plus > 0 else 'less'}_{abs(plus)}" if plus else ""
        return DynVar(f"{self.base}{more}", self.base, times, plus)

    def __mul__(self, n: int) -> DynVar:
        return self._made(self.times * n, self.plus * n) if isinstance(n, int) and n > 0 else NotImplemented

    def __add__(self, n: int) -> DynVar:
        return self._made(self.times, self.plus + n) if isinstance(n, int) else NotImplemented

    def __sub__(self, n: int) -> DynVar:
        return self + -n if isinstance(n, int) else NotImplemented

    __rmul__, __radd__ = __mul__, __add__

    def of(self, base: int) -> int:
        """Return the value of the extent for a value of its base."""
        return base * self.times + self.plus

    def solved(self, n: int) -> int | None:
        """Return the value of the base for an extent of `n`; None if it is not a whole number."""
        found, rest = divmod(n - self.plus, self.times)
        return found if not rest and found >= 0 else None


def dynamic(name: str) -> DynVar:
    return DynVar(name)


class Annotation(Record):
    """An annotation. `kind`: tensor, tile, scalar, array, tuple, handle. `distributed`: every rank has
    one."""

    kind: str
    shape: tuple[Any, ...] | None = None
    dtype: DataType | None = None
    extras: tuple[Any, ...] = ()
    direction: str = IN
    distributed: bool = False

    @property
    def layout(self) -> str:
        """Return the memory layout of a tensor."""
        said = [e.layout if isinstance(e, TensorView) else e for e in self.extras]
        return next((e.name for e in said if isinstance(e, TensorLayout)), "ND")


class TensorView(Record):
    """Properties of a tensor besides its shape: strides and valid extents."""

    stride: Any = None
    layout: Any = None
    valid_shape: Any = None
    pad: Any = None


class MemRef:
    """Named memory for a tile: `pl.Tile[shape, dtype, l0c[i % 2], pl.Mem.Acc]` with `l0c =
    pl.MemRef(slots=2)`. It has no effect, because the tools place tiles."""

    def __init__(self, *where: object, slots: int = 1, **_: object) -> None:
        self.slots = slots

    def __getitem__(self, slot: object) -> MemRef:
        if isinstance(slot, int) and not 0 <= slot < self.slots:
            raise IndexError(f"slot {slot} is out of range: {self.slots} slots")
        return self


class Ptr:
    """The type of named memory of a program: `m: pl.Ptr = pl.tile.alloc(..)`, `places: pl.Ptr =
    pld.alloc_window_buffer(..)`."""


class CommCtx:
    """The communication context of ranks: `ctx: pld.CommCtx = pld.get_comm_ctx(data)`."""


#: Types of opaque handles.
HANDLES = {Ptr: "pl.Ptr", CommCtx: "pld.CommCtx"}


class TileView(Record):
    """Properties of a tile besides its shape."""

    valid_shape: Any = None
    stride: Any = None
    start_offset: object = None
    blayout: Any = None
    slayout: Any = None
    fractal: object = None
    pad: Any = None
    compact: object = None
    transposed: bool = False
    flat: bool = False
    scales: str = ""


class Unset:
    """The value of a name before a loop that sets it; it must not be read."""

    def __repr__(self) -> str:
        return "pl.UNSET"


UNSET = Unset()


class _Kind(type):
    """A class that is a type by itself, and with shape and element type in brackets."""

    kind: str

    def __getitem__(cls, items: object) -> Annotation:
        items = items if isinstance(items, tuple) else (items,)
        return cls._annotation(items)  # type: ignore[attr-defined]

    def __repr__(cls) -> str:
        return f"pl.{cls.__name__}"


class Tensor(metaclass=_Kind):
    """An array in global memory: `pl.Tensor[[rows, cols], pl.FP32]`."""

    kind = "tensor"

    @classmethod
    def _annotation(cls, items: tuple[Any, ...]) -> Annotation:
        shape, dtype, *extras = items
        shape = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
        return Annotation(cls.kind, shape, dtype, tuple(extras))


class Tile(Tensor):
    """An array in the memory of a core."""

    kind = "tile"


class Scalar(metaclass=_Kind):
    """A number: `pl.Scalar[pl.INT32]`."""

    kind = "scalar"

    @classmethod
    def _annotation(cls, items: tuple[Any, ...]) -> Annotation:
        return Annotation("scalar", None, items[0])


class Array(metaclass=_Kind):
    """Numbers or task ids on the stack: `pl.Array[4, pl.TASK_ID]`."""

    kind = "array"

    @classmethod
    def _annotation(cls, items: tuple[Any, ...]) -> Annotation:
        return Annotation("array", (items[0],), items[1])


class Tuple(metaclass=_Kind):
    """Several results: `-> pl.Tuple[pl.Tensor, pl.Tensor]`."""

    kind = "tuple"

    @classmethod
    def _annotation(cls, items: tuple[Any, ...]) -> Annotation:
        return Annotation("tuple", None, None, items)


class _Directed(metaclass=_Kind):
    direction = IN
    kind = "tensor"

    @classmethod
    def _annotation(cls, items: tuple[Any, ...]) -> Annotation:
        found = annotation(items[0])
        assert found is not None, "the type of a parameter"
        return found.replace(direction=cls.direction)


class Out(_Directed):
    """A parameter that is written and not read before: `pl.Out[pl.Tensor]`."""

    direction = OUT


class InOut(_Directed):
    """A parameter that is read and written."""

    direction = INOUT


TaskId = Annotation("scalar", None, TASK_ID)


def annotation(given: object) -> Annotation | None:
    """Return an annotation; None for types outside of the language."""
    if isinstance(given, Annotation):
        return given
    if isinstance(given, DataType):
        return Annotation("scalar", None, given)
    if given in (int, float, bool):
        return Annotation("scalar", extras=(given,))
    if isinstance(given, type) and given in HANDLES:
        return Annotation("handle", None, INT64, (HANDLES[given],))
    if isinstance(given, _Kind):
        return Annotation(given.kind, direction=getattr(given, "direction", IN))
    return None


def written_type(said: Annotation) -> Type:
    """Return the type of a complete annotation, with all extents."""
    dtype = said.dtype
    assert dtype is not None
    if said.kind == "scalar":
        return ScalarType(dtype)
    if said.kind == "handle":
        return HandleType(dtype, *said.extras)
    shape: tuple[Any, ...] = tuple(said.shape or ())
    if said.kind == "array":
        return ArrayType(dtype, shape[0])
    views = [e for e in said.extras if isinstance(e, TensorView | TileView)]
    view = views[0] if views else TileView()
    valid = None if view.valid_shape is None else tuple(view.valid_shape)
    if said.kind == "tile":
        spaces = [e.isa for e in said.extras if isinstance(e, MemorySpace)]
        more = {n: getattr(view, n) for n in TileType._fields[4:]}
        return TileType(dtype, shape, valid, spaces[0] if spaces else "", **more)
    strides = None if view.stride is None else tuple(view.stride)
    made = DistributedTensorType if said.distributed else TensorType
    return made(dtype, shape, valid, strides, said.layout)
