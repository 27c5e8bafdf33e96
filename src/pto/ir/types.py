"""Types of PTO values. Immutable, compared by value; the facts for legality rules are properties.

A dynamic dimension is `None`. `kind` is the operand class of `pto.isa.row.KINDS`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from ..isa import dtypes, tile
from ..isa.dtypes import DType
from ..isa.record import Record

Dims = tuple[int | None, ...]


class ElemName(str):
    """Name of an element type, for rules.

    A signless integer (`i32` in text) may stand for the signed or the unsigned dtype, so it equals both
    plain names; two element types are equal only if they are the same type.
    """

    signless: bool

    def __new__(cls, name: str, signless: bool = False) -> ElemName:
        self = super().__new__(cls, name)
        self.signless = signless
        return self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ElemName):
            return str.__eq__(self, other) and self.signless == other.signless
        if isinstance(other, str):
            return str.__eq__(self, other) or (self.signless and other == "u" + self[1:])
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class Type(Record):
    """Base of all types."""

    kind: ClassVar[str] = "any"

    @cached_property
    def type(self) -> str:
        """Return the type as text; printed programs repeat few types often."""
        return self.text_of()

    if TYPE_CHECKING:

        def text_of(self) -> str: ...

    def __str__(self) -> str:
        return self.type


def _dim(d: int | None) -> str:
    return "?" if d is None else str(d)


def dims_text(dims: Dims) -> str:
    return "".join(f"{_dim(d)}x" for d in dims)


class ScalarType(Type):
    """Integer, float or index. `text` is the spelling; `dtype` is None for index and odd widths.

    `!pto.f4E1M2x2` is a pair of 4-bit floats in a byte: the unit of pointers and of register lanes. Its
    `dtype` is that of the floats, its `bits` are those of the pair.
    """

    text: str

    def text_of(self) -> str:
        return self.text

    @cached_property
    def info(self) -> DType | None:
        return dtypes.SPELLINGS.get(self.text.removeprefix("!pto.").lower())

    @cached_property
    def pairs(self) -> bool:
        """Return True for two elements in a byte."""
        return self.text.startswith("!pto.") and self.text.endswith("x2")

    @cached_property
    def counted(self) -> str:
        """Return the dtype of the units of pointers and lanes: whole bytes for pairs."""
        return "u8" if self.pairs else str(self.dtype)

    @cached_property
    def kind(self) -> str:  # type: ignore[override]
        return "index" if self.text == "index" else "scalar"

    @cached_property
    def dtype(self) -> ElemName | None:
        if self.info is None:
            return None
        return ElemName(self.info.name, signless=self.info.kind == "i" and self.text[0] == "i")

    @cached_property
    def bits(self) -> int | None:
        if self.info is not None:
            return 8 if self.pairs else self.info.bits
        digits = self.text.lstrip("siuf")
        return int(digits) if digits.isdigit() else None

    @cached_property
    def bytes(self) -> float | None:
        return None if self.bits is None else self.bits / 8

    @property
    def is_float(self) -> bool:
        return self.info is not None and self.info.is_float

    @property
    def is_int(self) -> bool:
        return not self.is_float and self.text != "index"


def in_pairs(info: DType) -> ScalarType:
    """Return the type for pairs of a 4-bit float: `!pto.f4E1M2x2`."""
    return ScalarType(f"!pto.{info.mlir.removesuffix('FN')}x2")


INDEX = ScalarType("index")
I1, I32, I64 = ScalarType("i1"), ScalarType("i32"), ScalarType("i64")


class _Elements(Type):
    """Shared facts of types that hold elements."""

    elem: ScalarType

    @property
    def dtype(self) -> ElemName | None:
        return self.elem.dtype

    @property
    def bits(self) -> int | None:
        return self.elem.bits

    @property
    def bytes(self) -> float | None:
        return self.elem.bytes


class TileBufType(_Elements):
    """An on-chip tile: location, static shape, valid region and layout."""

    loc: str
    rows: int
    cols: int
    v_row: int | None
    v_col: int | None
    blayout: str = "row_major"
    slayout: str = "none_box"
    fractal: int = 512
    pad: int = 0
    compact: str = "null"

    kind = "tile"

    def text_of(self) -> str:
        out = f"!pto.tile_buf<{self.loc}, {self.rows}x{self.cols}x{self.elem}"
        if (self.v_row, self.v_col) != (self.rows, self.cols):
            out += f", valid={_dim(self.v_row)}x{_dim(self.v_col)}"
        if self.blayout != "row_major":
            out += f", blayout={self.blayout}"
        if self.slayout != "none_box":
            out += f", slayout={self.slayout}"
        if self.fractal != 512:
            out += f", fractal={self.fractal}"
        if self.pad:
            out += f", pad={self.pad}"
        if self.compact != "null":
            out += f", compact={tile.COMPACT_MODES.index(self.compact)}"
        return out + ">"

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.cols

    @property
    def valid(self) -> tuple[int, int] | None:
        """Return both valid dimensions, if both are static."""
        return None if self.v_row is None or self.v_col is None else (self.v_row, self.v_col)

    @property
    def dyn_row(self) -> bool:
        return self.v_row is None

    @property
    def dyn_col(self) -> bool:
        return self.v_col is None

    @cached_property
    def layout(self) -> str:
        return tile.LAYOUTS[self.blayout, self.slayout]

    @property
    def boxed(self) -> bool:
        return self.slayout != "none_box"

    @cached_property
    def box(self) -> tuple[int, int]:
        return tile.inner_box(self.bits or 8, self.slayout, self.fractal)

    @cached_property
    def size(self) -> int:
        return tile.size_bytes(self.rows, self.cols, self.bits or 8)

    @cached_property
    def row_bytes(self) -> float:
        return self.cols * (self.bits or 8) / 8


#: Range of the number of slots of a tile.
SLOTS = (2, 16)


class MultiTileBufType(Type):
    """A number of tiles of one type that follow each other."""

    slot: TileBufType
    count: int

    kind = "multi_tile"

    def text_of(self) -> str:
        return (
            f"!pto.multi_tile_buf<{str(self.slot).removeprefix('!pto.tile_buf<')[:-1]}, count={self.count}>"
        )

    @property
    def grows_down(self) -> bool:
        """Return True if its tiles are one below the other in a tile that holds them all."""
        return self.slot.blayout == "row_major"

    @cached_property
    def whole(self) -> TileBufType:
        """Return a tile that holds them all."""
        rows = self.slot.rows * (self.count if self.grows_down else 1)
        cols = self.slot.cols * (1 if self.grows_down else self.count)
        return self.slot.replace(rows=rows, cols=cols, v_row=rows, v_col=cols)


class ConvTileType(_Elements):
    """A convolution tile; its layout names its dimensions (NC1HWC0, FRACTAL_Z, ...)."""

    loc: str
    dims: Dims
    layout: str

    kind = "conv_tile"

    def text_of(self) -> str:
        return f"!pto.conv_tile<{self.loc}, {dims_text(self.dims)}{self.elem}, {self.layout}>"

    @property
    def rank(self) -> int:
        return len(self.dims)


class ViewType(_Elements):
    """A view of global memory: `tensor_view` (strided descriptor) or `partition_tensor_view` (window)."""

    dims: Dims
    name: str = "partition_tensor_view"

    def text_of(self) -> str:
        return f"!pto.{self.name}<{dims_text(self.dims)}{self.elem}>"

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "tensor_view" if self.name == "tensor_view" else "view"

    @property
    def rank(self) -> int:
        return len(self.dims)

    @cached_property
    def elems(self) -> int | None:
        return _product(self.dims)

    @property
    def space(self) -> str:
        return "gm"


def _product(dims: Dims) -> int | None:
    total = 1
    for d in dims:
        if d is None:
            return None
        total *= d
    return total


class PtrType(_Elements):
    """`!pto.ptr<T>` (global memory) or `!pto.ptr<T, space>`."""

    space: str = "gm"
    kind = "ptr"

    def text_of(self) -> str:
        return f"!pto.ptr<{self.elem}>" if self.space == "gm" else f"!pto.ptr<{self.elem}, {self.space}>"


class VRegType(_Elements):
    """A 256-byte vector register."""

    lanes: int
    kind = "vreg"

    def text_of(self) -> str:
        return f"!pto.vreg<{self.lanes}x{self.elem}>"


class MaskType(Type):
    """A predicate mask; `gran` is b8, b16, b32 or None for the untyped view."""

    gran: str | None = None
    kind = "mask"

    def text_of(self) -> str:
        return f"!pto.mask<{self.gran}>" if self.gran else "!pto.mask"


class MemRefType(_Elements):
    """A builtin memref. `layout` is its layout attribute as written, `space` an address space name."""

    dims: Dims
    layout_text: str = ""
    space: str = ""

    def text_of(self) -> str:
        layout = f", {self.layout_text}" if self.layout_text else ""
        space = f", #pto.address_space<{self.space}>" if self.space else ""
        return f"memref<{dims_text(self.dims)}{self.elem}{layout}{space}>"

    @property
    def local(self) -> bool:
        return self.space not in ("", "gm", "zero")

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "memref"

    @property
    def rank(self) -> int:
        return len(self.dims)

    @cached_property
    def elems(self) -> int | None:
        return _product(self.dims)

    @property
    def loc(self) -> str | None:
        return self.space if self.local else None


class ShapedType(_Elements):
    """A builtin vector or tensor."""

    dims: Dims
    name: str = "vector"

    def text_of(self) -> str:
        return f"{self.name}<{dims_text(self.dims)}{self.elem}>"

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.name

    @property
    def rank(self) -> int:
        return len(self.dims)


class EventIdArrayType(Type):
    count: int
    kind = "eventid_array"

    def text_of(self) -> str:
        return f"!pto.eventid_array<{self.count}>"


class LocalArrayType(_Elements):
    """Scalars on the stack of a core, by index."""

    dims: tuple[int, ...]
    kind = "local_array"

    @property
    def rank(self) -> int:
        return len(self.dims)

    def text_of(self) -> str:
        return f"!pto.local_array<{dims_text(self.dims)}{self.elem}>"


class TokenType(Type):
    """A parameterless `!pto` type: align, pipe, event, async_session, async_event, ..."""

    name: str
    params: str = ""

    def text_of(self) -> str:
        return f"!pto.{self.name}<{self.params}>" if self.params else f"!pto.{self.name}"

    @property
    def kind(self) -> str:  # type: ignore[override]
        return _TOKEN_KINDS.get(self.name, self.name)


_TOKEN_KINDS = {"tpipe": "pipe", "record_event": "event"}


class FunctionType(Type):
    inputs: tuple[Type, ...]
    results: tuple[Type, ...]
    kind = "function"

    def text_of(self) -> str:
        ins = ", ".join(str(t) for t in self.inputs)
        outs = ", ".join(str(t) for t in self.results)
        one = len(self.results) == 1 and not isinstance(self.results[0], FunctionType)
        return f"({ins}) -> {outs if one else f'({outs})'}"


class OpaqueType(Type):
    """A type of an unknown dialect; kept as text."""

    text: str

    def text_of(self) -> str:
        return self.text


class ErrorType(Type):
    """The type of a value whose definition was already reported."""

    kind = "error"

    def text_of(self) -> str:
        return "<error>"


ERROR = ErrorType()
