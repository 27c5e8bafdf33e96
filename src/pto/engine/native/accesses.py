"""The accesses of an instruction to memory, for the screens of the machine (native/vm/screen.hpp).

The machine asks once for each instruction and each shape of its operands. The executor of the reference
engine then runs on the operands, without storing results: once on their data, and twice on other data. Its
loads and stores are those that sanitizers observe. If they depend on the data, the instruction is left to the
reference engine.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from ctypes import memmove
from typing import Any, NamedTuple

import numpy as np

from ...ir.core import Operation
from ...isa.dtypes import DTYPES
from ...isa.profiles import Profile
from ..access import Access, start_of
from ..elements import Array
from ..memory import ConvTile, Pointer, Tile, View
from ..reference import registry
from ..reference.instr import IllegalInstruction, Instr, Port
from ..reference.watched import scratch_of
from ..region import Region
from ..registers import Register
from ..sanitize.overlap import in_step, staged
from ..sanitize.race_access import APART, ATOMIC, meets
from ..watch import Event
from .frames import reader
from .generic import PERFORMED, TOUCHED, GenericCalls, failed
from .generic_core import GenericCore

#: `pto_screen_access`: offset, rows, width, pitch, in_step, operand, use, flags, format, 0.
ACCESS = struct.Struct("<4qQI4B")
_PATTERN = struct.Struct("<2Q")
_READ, _WRITE, _LEFT, _SCRATCH = range(4)
_ATOMIC, _WHOLE, _UNKNOWN, _GLOBAL, _UNSPECIFIED = 1, 2, 4, 8, 16
_FORMATS = {"f16": 1, "bf16": 2, "f32": 3, "f64": 4}
_OTHER_FORMAT = 5
#: With more pieces than this, an access is left to the reference engine.
_MOST = 512


#: Checks the operands of an instruction, by name.
Asks = Callable[[Mapping[str, Any]], None]


class Undecided(Exception):
    """An instruction that the screens cannot judge, with the reason."""


class SiteOperand(NamedTuple):
    """An operand of an instruction: its name in the row, whether it belongs to a list, its value and slot."""

    name: str
    variadic: bool
    value: Any
    slot: int


class SiteAccesses:
    """The accesses of one instruction of a program."""

    def __init__(
        self, op: Operation, operands: Sequence[SiteOperand], profile: Profile, asks: Asks | None
    ) -> None:
        """`asks` checks rules about values of the run."""
        row = op.row
        assert row is not None
        execute = registry.find(row)
        assert execute is not None
        self.op, self._execute = op, execute
        self._reads = [(o.name, o.variadic, o.slot, reader(o.value, profile, False)) for o in operands]
        self._profile, self._asks = profile, asks
        self._kept: list[object] = []
        self.calls: GenericCalls | None = None

    def perform(self, call: int, words: tuple[int, ...]) -> bytes:
        assert self.calls is not None
        core = self.calls.core(words)
        args: dict[str, Any] = {}
        values: list[Any] = []
        for name, variadic, slot, read in self._reads:
            value = read(core, words[0] + slot)
            values.append(value)
            if variadic:
                args.setdefault(name, []).append(value)
            else:
                args[name] = value
        try:
            if self._asks is not None:
                self._asks(args)
            packed = self._packed(core, args, values)
        except (Undecided, IllegalInstruction) as why:
            return failed(call, f"suspicion: {why}")
        data = ctypes.create_string_buffer(b"".join(packed), ACCESS.size * max(1, len(packed)))
        pattern = ctypes.create_string_buffer(_PATTERN.pack(len(packed), ctypes.addressof(data)))
        self._kept += [data, pattern]
        memmove(call + TOUCHED, struct.pack("<Q", ctypes.addressof(pattern)), 8)
        return PERFORMED

    def _packed(self, core: GenericCore, args: dict[str, Any], values: list[Any]) -> list[bytes]:
        seen = [self._seen(core, args, other) for other in (None, 0, 1)]
        first, atomic = seen[0]
        if any(_facts(first) != _facts(found) for found, _ in seen[1:]):
            raise Undecided(f"accesses of {self.op.name} that depend on data")
        kind = ATOMIC if atomic else meets(self.op)
        if kind not in (APART, ATOMIC):
            raise Undecided(self.op.name)
        return _described(self.op, core, first, values, kind == ATOMIC)

    def _seen(
        self, core: GenericCore, args: dict[str, Any], other: int | None
    ) -> tuple[list[_AccessUse], bool]:
        """Run the executor on the data in memory, or on other data; return its accesses."""
        port = _AccessPort(other)
        i = Instr(self.op, dict(args), core, "S")
        i.port = port
        event = i.event = Event(core, "S", self.op)
        plain, core.port = core.port, port
        out, core.out = core.out, _Silent()
        try:
            with np.errstate(all="ignore"):
                self._execute(i)
        except Exception as e:  # the launch itself, or the reference engine, reports the problem
            raise Undecided(f"{self.op.name}: {e}") from None
        finally:
            core.port, core.out = plain, out
        row = self.op.row
        assert row is not None
        uses = port.uses + [_AccessUse(a, _SCRATCH) for a in scratch_of(i, row.scratch_on(self._profile.isa))]
        return uses, event.atomic


class _AccessUse(NamedTuple):
    access: Access
    use: int


class _Silent:
    def write(self, text: str) -> None: ...


class _AccessPort(Port):
    """Access to memory that notes loads and stores, and stores nothing."""

    def __init__(self, other: int | None) -> None:
        self.uses: list[_AccessUse] = []
        self._random = None if other is None else np.random.default_rng(other)

    def _note(self, place: Any, region: Region | None, at: Array | None, use: int) -> None:
        if isinstance(place, Register):
            raise Undecided("a register")
        self.uses.append(_AccessUse(Access(place, region, at, use != _READ), use))

    def _other(self, found: Array) -> Array:
        if self._random is None:
            return np.array(found)
        raw = self._random.integers(0, 256, found.size * found.dtype.itemsize, np.uint8)
        return raw.view(found.dtype).reshape(found.shape)

    def load(self, i: Instr, place: Any, region: Region, dtype: Any) -> Array:
        self._note(place, region, None, _READ)
        return self._other(Port.load(self, i, place, region, dtype))

    def load_at(self, i: Instr, place: Any, at: Array, dtype: object) -> Array:
        self._note(place, None, np.array(at), _READ)
        return self._other(Port.load_at(self, i, place, at, dtype))

    def store(self, i: Instr, place: Any, region: Region, codes: Array) -> None:
        self._note(place, region, None, _WRITE)

    def store_at(self, i: Instr, place: Any, at: Array, codes: Array) -> None:
        self._note(place, None, np.array(at), _WRITE)

    def undefine(self, i: Instr, place: Any, region: Region) -> None:
        self._note(place, region, None, _LEFT)

    def indexed(self, i: Instr, operand: str, index: Array, inside: Array, of: Any, extent: str) -> None:
        raise Undecided("an index")


def _facts(uses: Sequence[_AccessUse]) -> list[Any]:
    """Return accesses in a form that can be compared."""
    found: list[Any] = []
    for access, use in uses:
        start = start_of(access.place)
        where = access.region
        if where is not None:
            key: Any = (where.base, where.bits, where.nibble, where.first, where.rows.offsets.tobytes(),
                        where.cols.offsets.tobytes())  # fmt: skip
        else:
            assert access.at is not None
            key = access.at.shape, access.at.tobytes()
        found.append((use, id(access.place.buffer.data), start, access.place.name, key))
    return found


def _described(
    op: Operation, core: GenericCore, uses: Sequence[_AccessUse], values: Sequence[Any], atomic: bool
) -> list[bytes]:
    """Return the accesses of an instruction, relative to its operands."""
    event = Event(core, "S", op)
    if staged(op):
        raise Undecided(op.name)
    pieces = [_pieces(use.access) for use in uses]
    reads = [(use.access, many) for use, many in zip(uses, pieces, strict=True) if use.use == _READ]
    left = [use.access for use in uses if use.use == _LEFT]
    found: list[bytes] = []
    for (access, use), many in zip(uses, pieces, strict=True):
        operand, base = _operand(access, values)
        place = access.place
        flags = (_ATOMIC if atomic else 0) | (_WHOLE if len(many) == 1 else 0)
        if place.buffer.space == "gm":
            flags |= _GLOBAL
        elif place.buffer is not core.buffers[place.buffer.space]:
            raise Undecided("memory of another core")
        if use == _READ and _outside_valid(access):
            flags |= _UNKNOWN
        if use == _WRITE and any(_same(access, other) for other in left):
            flags |= _UNSPECIFIED
        steps, bit = 0, 1
        if use in (_WRITE, _SCRATCH):
            for other, parts in reads:
                if _shares(access, other) and in_step(event, access, other):
                    steps |= sum(bit << n for n in range(len(parts)))
                bit <<= len(parts)
        dtype = place.dtype
        form = _FORMATS.get(dtype, _OTHER_FORMAT if DTYPES[dtype].is_float else 0)
        for low, rows, width, pitch in many:
            found.append(ACCESS.pack(low - base, rows, width, pitch, steps & (1 << 64) - 1, operand, use,
                                     flags, form, 0))  # fmt: skip
    return found


def _operand(access: Access, values: Sequence[Any]) -> tuple[int, int]:
    """Return the operand that an access belongs to, and the first byte of the operand in its buffer."""
    places = [(n, v) for n, v in enumerate(values) if isinstance(v, Tile | View | Pointer | ConvTile)]
    found = [(n, v) for n, v in places if v is access.place] or [
        (n, v) for n, v in places if v.buffer.data is access.place.buffer.data
    ]
    if not found:
        raise Undecided("memory of no operand")
    n, value = found[0]
    return n, start_of(value)[0]


def _outside_valid(access: Access) -> bool:
    tile, region = access.place, access.region
    if not isinstance(tile, Tile) or region is None or not all(region.shape):
        return False
    (r, c), (rows, cols) = region.first, region.shape
    return r + rows > tile.v_row or c + cols > tile.v_col


def _same(access: Access, other: Access) -> bool:
    a, b = access.region, other.region
    return a is not None and b is not None and access.place.buffer is other.place.buffer and a.key == b.key


def _shares(a: Access, b: Access) -> bool:
    (low, high), (first, last) = a.bounds, b.bounds
    return a.place.buffer is b.place.buffer and a.space != "gm" and low < last and first < high


def _pieces(access: Access) -> list[tuple[int, int, int, int]]:
    """Return the bytes of an access as rows at even distances: first byte, rows, width, pitch."""
    region = access.region
    if region is not None:
        rows, cols = region.shape
        if not rows or not cols:
            return []
        low, high = region.bounds
        if region.bits < 8 and region.nibble:
            raise Undecided("half a byte")
        if region.dense:
            return [(low, 1, high - low, high - low)]
        if region.bits >= 8:
            item = region.bits // 8
            for lines, line in ((region.rows, region.cols), (region.cols, region.rows)):
                width = line.size * item
                if line.stride == 1 and lines.stride is not None and lines.stride * item >= width:
                    return [(low, lines.size, width, lines.stride * item)]
        elif not region.whole_bytes:
            raise Undecided("half a byte")
    elif DTYPES[access.place.dtype].bits < 8:
        raise Undecided("half a byte")
    return _runs(np.unique(access.bytes()))


def _runs(at: Array) -> list[tuple[int, int, int, int]]:
    """Return sorted bytes as rows at even distances."""
    if not at.size:
        return []
    cuts = np.flatnonzero(np.diff(at) != 1) + 1
    starts = at[np.concatenate([[0], cuts])]
    widths = np.diff(np.concatenate([[0], cuts, [at.size]]))
    found: list[tuple[int, int, int, int]] = []
    n, count = 0, len(starts)
    while n < count:
        width = int(widths[n])
        pitch = int(starts[n + 1] - starts[n]) if n + 1 < count else width
        last = n
        while last + 1 < count and widths[last + 1] == width and starts[last + 1] - starts[last] == pitch:
            last += 1
        rows = last - n + 1
        found.append((int(starts[n]), rows, width, pitch if rows > 1 else width))
        n = last + 1
        if len(found) > _MOST:
            raise Undecided("scattered accesses")
    return found
