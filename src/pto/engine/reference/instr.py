"""One instruction that a pipe executes, with its operand values and its access to memory.

An executor is a function of an `Instr`. It reads its operands, computes with NumPy, and stores:

    def execute(i: Instr) -> None:
        rows, cols = i.valid("dst")
        x, y = i.values("src0", (rows, cols)), i.values("src1", (rows, cols))
        i.store("dst", x + y)

It touches memory only through these methods. So one executor serves the plain run, the sanitizers (which
watch or replay it) and the float64 shadow run (in which `values` and `raw` give float64 and `round` does
nothing). Two rules follow. Read everything before the first store, because sources may share memory with the
destination. Keep no state outside the instruction: read mode registers from `i.registers`; only instructions
of the scalar unit that set them change `i.core.registers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.core import Operation
from ...isa import ctrl
from ...isa.algorithms import kind_of
from ...isa.dtypes import DTYPES
from .. import elements
from ..access import Place, start_of
from ..elements import Array, NumpyType
from ..memory import Buffer, ConvTile, MemoryFault, Pointer, Tile, View, array_of
from ..region import Region, load_at, store_at
from ..registers import Register
from .state import CoreState

Shape = tuple[int, int]


class IllegalInstruction(Exception):
    """An error that only a run can detect; the core adds the source location."""

    code = "PTO-E2102"

    def __init__(self, message: str, help: str = "", buffer: Buffer | None = None) -> None:
        super().__init__(message)
        self.help = help
        self.expected = self.got = ""
        #: For a wrong address: notes show the origin of the pointers into this buffer.
        self.buffer = buffer


def misaligned(what: str, at: Pointer, align: int, other: str = "") -> IllegalInstruction:
    """Return the error for an address that is not a multiple of `align` bytes. `other` names an instruction
    that takes any address.
    """
    low = at.offset // align * align
    return IllegalInstruction(
        f"expects {what} that is a multiple of {align} bytes, got {at.offset}",
        f"the nearest are {low} and {low + align}{other}",
        at.buffer,
    )


class Port:
    """Access to memory. Subclasses watch it, replay it, or keep a shadow beside it."""

    #: Values are the elements themselves; False in a float64 shadow run.
    exact = True
    #: Register accesses bypass the port, since observers are absent.
    plain = False

    def load(self, i: Instr, place: Place, region: Region, dtype: NumpyType) -> Array:
        try:
            return region.load(place.buffer.data, dtype)
        except IndexError:
            raise MemoryFault(place.buffer, *region.bounds) from None

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        writable(place.buffer)
        try:
            region.store(place.buffer.data, codes)
        except IndexError:
            raise MemoryFault(place.buffer, *region.bounds) from None

    def load_at(self, i: Instr, place: Place, at: Array, dtype: NumpyType) -> Array:
        base, bits, nibble = start_of(place)
        try:
            return load_at(place.buffer.data, base, at, bits, dtype, nibble)
        except IndexError:
            raise fault_at(place.buffer, base, at, bits) from None

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        writable(place.buffer)
        base, bits, nibble = start_of(place)
        try:
            store_at(place.buffer.data, base, at, bits, codes, nibble)
        except IndexError:
            raise fault_at(place.buffer, base, at, bits) from None

    def undefine(self, i: Instr, place: Place, region: Region) -> None:
        """Report that the contents of a region are unspecified from here on."""

    def other_granularity(self, i: Instr, mask: Register, size: int) -> None:
        """Report a mask that is used for elements of `size` bytes, but was made for other elements."""

    def indexed(self, i: Instr, operand: str, index: Array, inside: Array, of: Place, extent: str) -> None:
        """Report indices of an operand outside the valid region of a place."""


class Plain(Port):
    """Access to memory of a run without observers."""

    plain = True


def writable(buffer: Buffer) -> None:
    if not buffer.data.flags.writeable:
        raise IllegalInstruction(f"writes to {buffer.name}, which was given as a read-only array")


def fault_at(buffer: Buffer, base: int, at: Array, bits: int) -> MemoryFault:
    return MemoryFault(buffer, base + int(at.min()) * bits // 8, base + (int(at.max()) + 1) * bits // 8)


#: The number of elements that an instruction may access at once, so that a wrong count ends the program
#: before it exhausts the memory of this computer.
LARGEST = 1 << 28


class Instr:
    """An operation with the values of its operands. `args` maps the names of present operands to values
    (lists for variadic operands)."""

    __slots__ = ("args", "core", "event", "op", "pipe", "poison", "port", "registers")

    def __init__(self, op: Operation, args: dict[str, Any], core: CoreState, pipe: str) -> None:
        self.op = op
        self.args = args
        self.core = core
        self.pipe = pipe
        self.port: Port = core.port
        #: Mode registers as they were when the instruction was issued.
        self.registers: Mapping[str, Any] = core.registers
        self.event: Any = None  # see `watch.Event`; only with observers
        #: Origins of undefined scalar operands, by name and index in the list, if these are tracked.
        self.poison: dict[tuple[str, int | None], object] = {}

    # -- facts ------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        assert self.op.row is not None
        return self.op.row.name

    @property
    def kind(self) -> str:
        """The kind of the algorithm that the row names."""
        assert self.op.row is not None
        return kind_of(self.op.row)[1]

    @property
    def control(self) -> int:
        """The control register at the issue of the instruction; see `isa/ctrl.py`."""
        return self.registers.get("CTRL", ctrl.RESET)

    def is_atomic(self) -> None:
        """Report that the stores are atomic updates, because a register makes them so."""
        if self.event is not None:
            self.event.atomic = True

    @property
    def isa(self) -> str:
        """Legality column of the profile: cpu, a2a3 or a5."""
        return self.core.profile.isa

    def has(self, name: str) -> bool:
        return name in self.args

    def arg(self, name: str) -> Any:
        """Return the value of an operand: Tile, View, Pointer, int, float, a list of them; None if absent."""
        return self.args.get(name)

    def tile(self, name: str) -> Tile:
        found = self.args[name]
        assert isinstance(found, Tile), f"{self.name}: {name} is {found!r}"
        return found

    def attr(self, name: str) -> Any:
        """Return the Python value of an attribute, or its declared default."""
        return self.op.attr(name)

    def chosen(self, name: str) -> str:
        """Return an attribute that selects the computation; the default is the first of its domain."""
        found = self.op.attr(name)
        if found is not None:
            return str(found)
        assert self.op.row is not None
        return str(self.op.row.attr_index[name].domain[0])

    def valid(self, name: str) -> Shape:
        """Return the valid rows and columns of a tile operand."""
        found = self.args[name]
        return found.v_row, found.v_col

    def dtype(self, name: str) -> str:
        return self.args[name].dtype

    def require(self, condition: bool, message: str) -> None:
        """Stop the program if a condition of the ISA does not hold."""
        if not condition:
            raise IllegalInstruction(message)

    @property
    def exact(self) -> bool:
        """False in a float64 shadow run, which rounds nothing."""
        return self.port.exact

    # -- reading ----------------------------------------------------------------------------------------

    def values(self, name: str | Place, shape: Shape | None = None, at: Shape = (0, 0)) -> Array:
        """Return elements as numbers: float32 (float64 for f64), or the integer type; `shape` defaults to the
        valid region. `name` may also be a place itself."""
        place, region = self._region(name, shape, at)
        return self.decoded(place.dtype, self.port.load(self, place, region, array_of(place.dtype)))

    def raw(self, name: str | Place, shape: Shape | None = None, at: Shape = (0, 0)) -> Array:
        """Return elements to be moved, with their bit patterns, not to be computed with."""
        place = self.args[name] if isinstance(name, str) else name
        if isinstance(place, Pointer) and shape is not None:
            found = self._packed(place, shape)
            if found is not None:
                return found
        _, region = self._region(place, shape, at)
        return self.port.load(self, place, region, array_of(place.dtype))

    def joined(self, parts: Sequence[tuple[str, int]], cols: int) -> Array:
        """Return rows of `cols` elements to be moved, from pointers to one type: (name of a pointer, number
        of its rows), one after another."""
        if self.port.plain:
            found: list[Array] = []
            dtype = array_of(self.args[parts[0][0]].dtype)
            width = cols * dtype.itemsize
            for name, rows in parts:
                place = self.args[name]
                stop = place.offset + rows * width
                if place.offset < 0 or stop > place.buffer.data.size:
                    break
                found.append(place.buffer.data[place.offset : stop])
            else:
                return np.concatenate(found).view(dtype).reshape(-1, cols)
        return np.concatenate([self.raw(name, (rows, cols)) for name, rows in parts])

    def bits(self, name: str | Place, shape: Shape | None = None, at: Shape = (0, 0)) -> Array:
        """Return bit patterns as unsigned integers (4-bit elements one per byte); no shadow follows them."""
        place = self.args[name] if isinstance(name, str) else name
        if isinstance(place, Pointer) and shape is not None:
            packed = self._packed(place, shape)
            if packed is not None:
                return packed.view(elements.code_dtype(place.dtype))
        _, region = self._region(place, shape, at)
        found = self.port.load(self, place, region, elements.code_dtype(place.dtype))
        return found if found.dtype.kind == "u" else self.encoded(found, place.dtype)

    def values_at(self, name: str | Place, at: Array) -> Array:
        """Return elements as numbers, at element offsets from the start of the storage."""
        place = self._place(name)
        return self.decoded(place.dtype, self.port.load_at(self, place, at, array_of(place.dtype)))

    def raw_at(self, name: str | Place, at: Array) -> Array:
        """Return elements to be moved, at element offsets from the start of the storage."""
        place = self._place(name)
        return self.port.load_at(self, place, at, array_of(place.dtype))

    def blocks_at(self, place: Pointer, starts: Array, size: int) -> Array:
        """Return elements to be moved, in blocks of `size` bytes at byte offsets that are multiples of it."""
        dtype, base, data = array_of(place.dtype), place.offset, place.buffer.data
        if self.port.plain and starts.size and base >= 0 and base + max(starts.tolist()) + size <= data.size:
            blocks = np.ndarray(((data.size - base) // size, size), np.uint8, data, base)
            return blocks.take(starts // size, 0).reshape(-1).view(dtype)
        at = starts[:, None] // dtype.itemsize + np.arange(size // dtype.itemsize, dtype=np.intp)
        return self.raw_at(place, at).reshape(-1)

    # -- writing ----------------------------------------------------------------------------------------

    def store(
        self,
        name: str | Place,
        values: Array,
        at: Shape = (0, 0),
        mode: str = "NONE",
        saturate: bool = False,
        nan: str = "max",
    ) -> None:
        """Round numbers to the element type and write them from element `at` on."""
        place, region = self._region(name, (values.shape[0], values.shape[1]), at)
        self.port.store(self, place, region, self.encoded(values, place.dtype, mode, saturate, nan))

    def store_raw(self, name: str | Place, codes: Array, at: Shape = (0, 0)) -> None:
        """Write elements from `raw` or `bits`, or bit patterns of the right width."""
        place = self.args[name] if isinstance(name, str) else name
        if isinstance(place, Pointer):
            found = self._packed(place, codes.shape)
            if found is not None and found.flags.writeable:
                found.view(codes.dtype)[...] = codes
                return
        _, region = self._region(place, (codes.shape[0], codes.shape[1]), at)
        self.port.store(self, place, region, codes)

    def store_at(self, name: str | Place, at: Array, values: Array) -> None:
        """Round numbers and write them at element offsets; if an offset repeats, the last number is kept."""
        place = self._place(name)
        self.port.store_at(self, place, at, self.encoded(values, place.dtype))

    def store_raw_at(self, name: str | Place, at: Array, codes: Array) -> None:
        self.port.store_at(self, self._place(name), at, codes)

    def undefine(self, name: str | Place, shape: Shape, at: Shape = (0, 0)) -> None:
        """Report that a rectangle is unspecified after this instruction, although bytes were written."""
        place, region = self._region(name, shape, at)
        self.port.undefine(self, place, region)

    def indexed(self, operand: str, index: Array, inside: Array, of: Place, extent: str) -> None:
        """Report the indices of an operand that are not `inside` the valid region of a place; messages show
        the region as `extent`."""
        if not inside.all():
            self.port.indexed(self, operand, index, inside, of, extent)

    def index_elements(self, operand: str, index: Array, of: Tile, cols: int) -> None:
        """Report invalid indices that count the elements of a tile row by row, `cols` to a row."""
        if not self.port.plain:
            r, c = np.divmod(index, cols)
            inside = (index >= 0) & (r < of.v_row) & (c < of.v_col)
            self.indexed(operand, index, inside, of, valid_extent(of))

    # -- numbers ----------------------------------------------------------------------------------------

    def encoded(
        self, values: Array, dtype: str, mode: str = "NONE", saturate: bool = False, nan: str = "max"
    ) -> Array:
        """Return numbers as elements of a type, in the array type of `array_of` (float64 in a shadow run)."""
        target, given = array_of(dtype), values.dtype
        if dtype in _HALVES and values.ndim == 1 and given.char in "fd" and self.port.exact:
            return elements.encode_row(dtype, values, mode, saturate, nan).view(target)
        if not self.port.exact and DTYPES[dtype].is_float:
            return np.asarray(values, np.float64)
        if given == target and (dtype in _PLAIN or target.itemsize >= 4):
            return values  # except s4: its codes are bytes, which could also be other numbers
        if given == _F64:
            if target == _F32 and not saturate and mode in ("NONE", "RINT"):
                return values.astype(np.float32)
        elif given.kind in "iu":
            if target.kind in "iu" and not saturate and dtype in _PLAIN:
                return values.astype(target)  # wraps
        elif given != _F32:
            values = values.astype(np.uint8 if given.kind == "b" else np.float32)
        codes = elements.encode(dtype, values, mode, saturate, nan)
        return codes.view(target) if codes.dtype.itemsize == target.itemsize else codes.astype(target)

    def round(self, values: Array, dtype: str, mode: str = "NONE") -> Array:
        """Round numbers to those of a type; the result is numbers again. Does nothing in a shadow run."""
        if not self.port.exact or not DTYPES[dtype].is_float:
            return values
        codes = self.encoded(values, dtype, mode)
        if dtype == "f16" and codes.ndim == 1:
            return codes.astype(np.float32)  # there is only one NaN, which NumPy decodes identically
        return self.decoded(dtype, codes)

    def decoded(self, dtype: str, found: Array) -> Array:
        """Return elements from `raw` as numbers."""
        if found.dtype.char in "fd" or (dtype in _PLAIN and found.dtype.kind in "iu"):
            return found
        if found.dtype == _BF16 and found.size <= _FEW:
            return found.astype(np.float32)
        if not found.flags.c_contiguous:
            found = np.ascontiguousarray(found)
        return elements.decode(dtype, found.view(elements.code_dtype(dtype)))

    # -- places -----------------------------------------------------------------------------------------

    def _place(self, name: str | Place) -> Place:
        return self.args[name] if isinstance(name, str) else name

    def _packed(self, place: Pointer, shape: tuple[int, ...]) -> Array | None:
        """Return rows of elements at a pointer as a view of the buffer; None with observers, or if some are
        outside the buffer."""
        if not self.port.plain:
            return None
        (rows, cols), dtype, data = shape, array_of(place.dtype), place.buffer.data
        steps = place.spacing(cols)
        if steps is None or rows <= 0 or cols <= 0 or rows * cols > LARGEST or DTYPES[place.dtype].bits < 8:
            return None
        down, across = steps
        item, start = dtype.itemsize, place.offset
        stop = start + ((rows - 1) * down + (cols - 1) * across + 1) * item
        if start < 0 or down < 0 or across < 0 or stop > data.size:
            return None
        return np.ndarray(shape, dtype, data, start, (down * item, across * item))

    def _region(self, name: str | Place, shape: Shape | None, at: Shape) -> tuple[Place, Region]:
        place: Any = self.args[name] if isinstance(name, str) else name
        rows, cols = (place.v_row, place.v_col) if shape is None else shape
        if rows * cols > LARGEST:
            raise IllegalInstruction(
                f"reaches for {rows * cols} elements of {place.name or place.buffer.name}"
            )
        if at == (0, 0):
            return place, place.region(rows, cols)
        return place, place.region(rows, cols, at[0], at[1])

    def frozen(self) -> Instr:
        """Copy operand descriptors and mode registers, so that later changes have no effect."""
        self.registers = dict(self.core.registers)
        self.args = {k: _copied(v) for k, v in self.args.items()}
        return self


def valid_extent(tile: Tile) -> str:
    """Return the text for the valid region of a tile."""
    part = "" if tile.valid == tile.shape else f" of {tile.rows} x {tile.cols}"
    return f"of which {tile.v_row} x {tile.v_col}{part} elements are valid"


_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_HALVES, _BF16 = ("f16", "bf16"), elements.ARRAY_DTYPES["bf16"]
#: Up to this number of elements, NumPy is faster than the compiled loops.
_FEW = 256
_PLAIN = frozenset(n for n, t in elements.ARRAY_DTYPES.items() if t.kind in "iu")


def _copied(value: object) -> Any:
    if isinstance(value, Tile | View | ConvTile):
        return value.copy()
    if isinstance(value, list):
        return [_copied(v) for v in value]  # type: ignore[reportUnknownVariableType]
    return value
