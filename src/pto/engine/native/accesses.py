"""The accesses of an instruction to memory, for the screens of the machine (native/vm/screen.hpp).

The machine asks once for each instruction and each shape of its operands. The executor of the reference
engine then runs on the operands, without storing results: once on their data, and twice on other data. Its
loads and stores are those that sanitizers observe. If they depend on the data, the machine asks each time.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ctypes import memmove, string_at
from typing import Any, NamedTuple

import numpy as np

from ...ir.core import Operation
from ...ir.types import MaskType
from ...isa.dtypes import DTYPES
from ...isa.format import FormatGroup, Item, Lit, Var
from ...isa.profiles import Profile
from ...isa.row import Row
from ..access import Access, start_of
from ..elements import Array, NumpyType
from ..memory import ConvTile, Home, Pointer, Tile, View
from ..reference import registry
from ..reference.instr import IllegalInstruction, Instr, Port
from ..reference.watched import scratch_of
from ..region import Region
from ..registers import SPECIAL, Align, Register, is_register, maker
from ..sanitize.clock import ordered
from ..sanitize.overlap import in_step, staged
from ..sanitize.race_access import APART, ATOMIC, meets
from ..watch import Event
from .frames import address_of, reader
from .generic import PERFORMED, TOUCHED, GenericCalls, failed
from .generic_core import HIDDEN, GenericCore
from .packs import library

#: `pto_screen_access`: offset, rows, width, pitch, in_step, operand, use, flags, format, 0.
ACCESS = struct.Struct("<4qQI4B")
#: `pto_screen_pattern`.
_PATTERN = struct.Struct("<2Qq4B4B4B4x")
_NO_SCALE = -1 << 63
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
    """An operand of an instruction: its name in the row, whether it belongs to a list, its value and slot,
    and the slot beside it: for a register its facts (`RegisterFacts`), for an on-chip
    pointer the number of its storage."""

    name: str
    variadic: bool
    value: Any
    slot: int
    facts: int = 0


#: The offset of the granule of a mask in its facts.
_GRANULE = 16


def subscripts(row: Row) -> dict[str, str]:
    """Return the pointer operands of a row by the operands that its text has as their subscripts."""
    found: dict[str, str] = {}
    for items in row.formats:
        flat = list(_flat(items))
        for place, left, index, right in zip(flat, flat[1:], flat[2:], flat[3:], strict=False):
            if isinstance(place, Var) and isinstance(index, Var) and (left, right) == (Lit("["), Lit("]")):
                found[index.name] = place.name
    return found


def _flat(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, FormatGroup):
            yield from _flat(item.items)
        else:
            yield item


class SiteAccesses:
    """The accesses of one instruction of a program."""

    def __init__(
        self,
        op: Operation,
        operands: Sequence[SiteOperand],
        profile: Profile,
        asks: Asks | None,
        subscript: str = "",
        moved: int = 0,
    ) -> None:
        """`asks` checks rules about values of the run. `subscript` names an operand that may move the pointer
        with the number `moved`."""
        row = op.row
        assert row is not None
        execute = registry.find(row)
        assert execute is not None
        self.op, self._execute = op, execute
        self._reads = [(o, reader(o.value, profile, False)) for o in operands]
        self._masks = [o.name for o in operands if isinstance(o.value.type, MaskType)]
        self._made = [(declared.name, maker(v.type, v.name)) for declared, v
                      in zip(row.results, op.results, strict=False) if is_register(v.type)]  # fmt: skip
        self._subscript, self._moved = subscript, moved
        self._scale: int | None = None if subscript else 0  # bytes per unit; None: not known
        self._each = False
        self._profile, self._asks = profile, asks
        self._kept: list[object] = []
        self.calls: GenericCalls | None = None

    def perform(self, call: int, words: tuple[int, ...]) -> bytes:
        assert self.calls is not None
        core = self.calls.core(words)
        args: dict[str, Any] = {}
        values: list[Any] = []
        for n, (operand, read) in enumerate(self._reads):
            value = read(core, words[0] + operand.slot)
            if isinstance(value, Pointer):
                value.name = str(n)  # pointers that are made of it share its name
                if operand.facts:
                    value.home = _home(core, value, words[0] + operand.facts)
            elif isinstance(value, Register) and operand.facts:
                value.granule = int.from_bytes(string_at(words[0] + operand.facts + _GRANULE, 4), "little")
            values.append(value)
            if operand.variadic:
                args.setdefault(operand.name, []).append(value)
            else:
                args[operand.name] = value
        try:
            if self._asks is not None:
                self._asks(args)
            pattern, packed = self._packed(core, args, values)
        except (Undecided, IllegalInstruction) as why:
            return failed(call, f"suspicion: {why}")
        data = ctypes.create_string_buffer(b"".join(packed), ACCESS.size * max(1, len(packed)))
        made = ctypes.create_string_buffer(pattern(len(packed), ctypes.addressof(data)))
        if self._each:
            self._kept.clear()
        self._kept += [data, made]
        memmove(call + TOUCHED, struct.pack("<Q", ctypes.addressof(made)), 8)
        return PERFORMED

    def _packed(
        self, core: GenericCore, args: dict[str, Any], values: list[Any]
    ) -> tuple[Callable[[int, int], bytes], list[bytes]]:
        """Return a function that makes the pattern of its length and address, and the accesses."""
        first = self._seen(core, args, None)
        if not self._each:
            self._each = any(_depends(first, self._other(core, args, n)) for n in (0, 1))
        if self._subscript:
            self._find_scale(core, args, first)
        kind = ATOMIC if first.atomic else meets(self.op)
        if kind not in (APART, ATOMIC):
            raise Undecided(self.op.name)
        bases = [start_of(v)[0] if isinstance(v, _Places) else 0 for v in values]
        if self._subscript and self._scale:
            bases[self._moved] += args[self._subscript] * self._scale
        packed = _described(self.op, core, first.uses, values, bases, kind == ATOMIC)
        facts = self._facts(first)
        return lambda count, at: _PATTERN.pack(count, at, *facts), packed

    def _facts(self, seen: _Seen) -> tuple[int, ...]:
        scale = _NO_SCALE if self._scale is None else self._scale
        registers = [seen.args[name] for name, _ in self._made]
        partial = any(not isinstance(r, Align) and r.lanes != seen.lanes.get(r.name, 0) for r in registers)
        pending = [r.pending if isinstance(r, Align) and r.kind == "store" else 0 for r in registers]
        several = [(n + [0] * 4)[:4] for n in ([r.granule for r in registers], pending)]
        return (scale, self._each, partial, seen.reads, seen.writes, *several[0], *several[1])

    def _find_scale(self, core: GenericCore, args: dict[str, Any], first: _Seen) -> None:
        """Find the bytes by which a unit of the subscript moves all accesses, or check the bytes found
        before."""
        known, found = self._scale, set[int | None]()
        name = self._subscript
        for move in _MOVES:
            other = self._other(core, {**args, name: args[name] + move}, None)
            shift = _shift(first, other) if other is not None else None
            if other is not None:
                found.add(None if shift is None or shift % move else shift // move)
        scale = found.pop() if len(found) == 1 else None
        if self._kept and known != scale:
            raise Undecided(f"accesses of {self.op.name} that do not follow its subscript")
        self._scale = scale

    def _other(self, core: GenericCore, args: dict[str, Any], other: int | None) -> _Seen | None:
        """Return the accesses with other data or operands; None if these are illegal."""
        try:
            return self._seen(core, args, other)
        except Undecided:
            return None

    def _seen(self, core: GenericCore, args: dict[str, Any], other: int | None) -> _Seen:
        """Run the executor on the data in memory, or on other data; return its accesses."""
        args = dict(args) | {name: new() for name, new in self._made}
        made = {id(args[name]) for name, _ in self._made}
        port = _AccessPort(other, made, {id(args[name]) for name in self._masks})
        i = Instr(self.op, args, core, "S")
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
            core.special.clear()
        row = self.op.row
        assert row is not None
        if (port.reads or port.writes) and not (row.scope == "vec" and ordered(self._profile.isa, "V")):
            raise Undecided("a special register")
        uses = port.uses + [_AccessUse(a, _SCRATCH) for a in scratch_of(i, row.scratch_on(self._profile.isa))]
        return _Seen(uses, event.atomic, args, port.lanes, port.reads, port.writes)


_Places = Tile | View | Pointer | ConvTile

#: Units by which a subscript is moved for a test, which keep the alignment of addresses.
_MOVES = (64, -64, 512, -512, 4096, -4096)


class _Seen(NamedTuple):
    """The accesses of an execution: to memory, to special registers (one bit each), and the lanes of register
    operands that were written."""

    uses: list[_AccessUse]
    atomic: bool
    args: dict[str, Any]
    lanes: dict[str, int]
    reads: int
    writes: int


def _depends(first: _Seen, other: _Seen | None) -> bool:
    return other is None or _facts(first.uses) != _facts(other.uses)


def _shift(first: _Seen, other: _Seen) -> int | None:
    """Return the bytes by which all accesses of an execution have moved; None if they differ otherwise."""
    a, b = first.uses, other.uses
    if len(a) != len(b) or not a:
        return None
    moved = {_start(two.access) - _start(one.access) for one, two in zip(a, b, strict=True)}
    same = all(_facts([one], True) == _facts([two], True) for one, two in zip(a, b, strict=True))
    return moved.pop() if same and len(moved) == 1 else None


def _start(access: Access) -> int:
    return access.region.base if access.region is not None else start_of(access.place)[0]


class _AccessUse(NamedTuple):
    access: Access
    use: int


class _Silent:
    def write(self, text: str) -> None: ...


class _AccessPort(Port):
    """Access to memory that notes loads and stores, and stores nothing. Masks are part of the shape of an
    instruction, so they keep their contents."""

    def __init__(self, other: int | None, results: set[int], masks: set[int]) -> None:
        self.uses: list[_AccessUse] = []
        self.lanes: dict[str, int] = {}
        self.reads = self.writes = 0
        self._results, self._masks = results, masks
        self._random = None if other is None else np.random.default_rng(other)

    def _note(self, place: Any, region: Region | None, at: Array | None, use: int) -> None:
        if not isinstance(place, Register):
            self.uses.append(_AccessUse(Access(place, region, at, use != _READ), use))
        elif place.space == SPECIAL:
            bit = 1 << HIDDEN[place.name] // 8
            self.reads |= bit if use == _READ else 0
            self.writes |= bit if use != _READ else 0
        elif use == _WRITE and region is not None and id(place) in self._results:
            self.lanes[place.name] = self.lanes.get(place.name, 0) + region.cols.size
        elif use != _READ:
            raise Undecided("a register")

    def _other(self, place: Any, found: Array) -> Array:
        if self._random is None or id(place) in self._masks:
            return np.array(found)
        raw = self._random.integers(0, 256, found.size * found.dtype.itemsize, np.uint8)
        return raw.view(found.dtype).reshape(found.shape)

    def load(self, i: Instr, place: Any, region: Region, dtype: Any) -> Array:
        self._note(place, region, None, _READ)
        return self._other(place, Port.load(self, i, place, region, dtype))

    def load_at(self, i: Instr, place: Any, at: Array, dtype: NumpyType) -> Array:
        self._note(place, None, np.array(at), _READ)
        return self._other(place, Port.load_at(self, i, place, at, dtype))

    def store(self, i: Instr, place: Any, region: Region, codes: Array) -> None:
        self._note(place, region, None, _WRITE)

    def store_at(self, i: Instr, place: Any, at: Array, codes: Array) -> None:
        self._note(place, None, np.array(at), _WRITE)

    def undefine(self, i: Instr, place: Any, region: Region) -> None:
        self._note(place, region, None, _LEFT)

    def other_granularity(self, i: Instr, mask: Register, size: int) -> None:
        raise Undecided("a mask of another granularity")

    def indexed(self, i: Instr, operand: str, index: Array, inside: Array, of: Any, extent: str) -> None:
        raise Undecided("an index")


def _facts(uses: Sequence[_AccessUse], anywhere: bool = False) -> list[Any]:
    """Return accesses in a form that can be compared; `anywhere` leaves out where they start."""
    found: list[Any] = []
    for access, use in uses:
        start = () if anywhere else (start_of(access.place), access.place.name)
        where = access.region
        if where is not None:
            key: Any = (() if anywhere else where.base, where.bits, where.nibble, where.first,
                        where.rows.offsets.tobytes(), where.cols.offsets.tobytes())  # fmt: skip
        else:
            assert access.at is not None
            key = access.at.shape, access.at.tobytes()
        found.append((use, id(access.place.buffer.data), start, key))
    return found


def _described(
    op: Operation,
    core: GenericCore,
    uses: Sequence[_AccessUse],
    values: Sequence[Any],
    bases: Sequence[int],
    atomic: bool,
) -> list[bytes]:
    """Return the accesses of an instruction, relative to its operands, which begin at `bases`."""
    event = Event(core, "S", op)
    if staged(op):
        raise Undecided(op.name)
    pieces = [_pieces(use.access) for use in uses]
    reads = [(use.access, many) for use, many in zip(uses, pieces, strict=True) if use.use == _READ]
    left = [use.access for use in uses if use.use == _LEFT]
    found: list[bytes] = []
    for (access, use), many in zip(uses, pieces, strict=True):
        operand = _operand(access, values)
        base, place = bases[operand], access.place
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
                near = isinstance(access.place, Pointer) or isinstance(other.place, Pointer)
                if not near and _shares(access, other) and in_step(event, access, other):
                    steps |= sum(bit << n for n in range(len(parts)))
                bit <<= len(parts)
        dtype = place.dtype
        form = _FORMATS.get(dtype, _OTHER_FORMAT if DTYPES[dtype].is_float else 0)
        for low, rows, width, pitch in many:
            found.append(ACCESS.pack(low - base, rows, width, pitch, steps & (1 << 64) - 1, operand, use,
                                     flags, form, 0))  # fmt: skip
    return found


def _home(core: GenericCore, pointer: Pointer, storage: int) -> Home | None:
    """Return the bytes of the tile that an on-chip pointer was made from; None if there is none."""
    number = int.from_bytes(string_at(storage, 4), "little")
    if not number:
        return None
    found = (ctypes.c_uint64 * 2)()
    library().raw("pto_screen_home")(ctypes.c_uint32(number), found)
    low = found[0] - address_of(pointer.buffer)
    return Home(low, low + found[1], pointer.name, None)


def _operand(access: Access, values: Sequence[Any]) -> int:
    """Return the number of the operand that an access belongs to."""
    if isinstance(access.place, Pointer) and access.place.name:
        return int(access.place.name)
    places = [(n, v) for n, v in enumerate(values) if isinstance(v, _Places)]
    found = [n for n, v in places if v is access.place] or [
        n for n, v in places if v.buffer.data is access.place.buffer.data
    ]
    if not found:
        raise Undecided("memory of no operand")
    return found[0]


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
