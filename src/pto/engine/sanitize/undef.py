"""Undefined elements: storage nobody wrote, lanes outside a valid region, and all that is computed from them.

Beside every on-chip buffer lies a shadow of the same size: 0xFF where a byte is undefined. What an
instruction makes of undefined elements is found by running it again with other values in their place: result
elements that change are undefined too. So no instruction needs a rule of its own, and an undefined lane that
does not matter (not chosen by a select, dropped by a copy) is not reported. Reports come at the first
observable use: a store to global memory, a branch, an address.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.core import Operation
from ...ir.types import PtrType, ScalarType
from ...isa.dtypes import DTYPES
from ..elements import Array, code_dtype
from ..memory import Buffer, MemoryFault, Pointer, Tile
from ..reference.instr import IllegalInstruction, Instr, Place, Port, start_of
from ..region import Region, load_at, store_at
from .reports import Reports

if TYPE_CHECKING:
    from ..reference.state import CoreState

#: Origin number of bytes nobody wrote.
NEVER = 1
#: The last origin number; it stands for all that find no room.
LAST = 254

#: Why an element is undefined, and what to do about it.
UNWRITTEN = "which nobody wrote"
OUTSIDE = "outside its valid region"
SCRATCH = "which is scratch of this instruction"
PADDING = "which this instruction leaves unspecified"
FREED = "which is given back to the producer here"
#: Help where a pointer leads to what nobody wrote: for vector instructions, and for copies.
_UNWRITTEN_LANES = (
    "write what %{name} points to before it is read, or keep the lanes behind the end of the data out of the "
    "result: a mask of pto.plt, or pto.vsel"
)
_UNWRITTEN_BYTES = "write what %{name} points to before it is read, for example by pto.mte_gm_ub or pto.vsts"
_HELP = {
    UNWRITTEN: "write %{name} before it is read, for example by pto.tload or pto.texpands",
    OUTSIDE: "read only what is valid: narrow the valid region of the destination, or widen that of %{name} "
    "where it is written",
    SCRATCH: "the contents of a scratch operand are lost: give the instruction another tile, or write "
    "%{name} again",
    PADDING: "give the tile a pad value (pad = zero, min or max), or read only its valid region",
    FREED: "read the tile before pto.tfree gives its slot back",
}


class Origin:
    """Where undefined elements come from: an operand read by an instruction, and the origin before that."""

    __slots__ = ("element", "kind", "name", "op", "parent", "why")

    def __init__(
        self,
        op: Operation | None,
        name: str,
        element: tuple[int, int] | None,
        kind: str,
        why: str = "",
        parent: Origin | None = None,
    ) -> None:
        self.op = op
        self.name = name  # in words: %tile
        self.element = element
        self.kind = kind
        self.why = why or kind
        self.parent = parent

    def text(self) -> str:
        at = f"element ({self.element[0]}, {self.element[1]}) of " if self.element is not None else ""
        return f"{at}{self.name or 'an operand'}, {self.why}"

    @property
    def first(self) -> Origin:
        found = self
        while found.parent is not None:
            found = found.parent
        return found


class Load:
    """A load: its data, and which of its elements are undefined (None where none is)."""

    __slots__ = ("data", "mask", "place", "where")

    def __init__(self, place: Place, where: Any, data: Array, mask: Array | None) -> None:
        self.place = place
        self.where = where  # a region, or element offsets
        self.data = data
        self.mask = mask


class Undefined:
    def __init__(self, reports: Reports) -> None:
        self.reports = reports
        self.origins: list[Origin | None] = [None, None]
        self._numbers: dict[Any, int] = {}

    # -- shadows ---------------------------------------------------------------------------------------

    def shadow(self, buffer: Buffer) -> tuple[Array, Array] | None:
        """(undefined bytes, origin numbers) of an on-chip buffer; global memory is taken as defined."""
        if buffer.space == "gm":
            return None
        found = buffer.shadows.get("undef")
        size = buffer.data.size
        if found is None or found[0].size < size:
            undefined, origin = np.full(size, 0xFF, np.uint8), np.full(size, NEVER, np.uint8)
            if found is not None:
                undefined[: found[0].size], origin[: found[1].size] = found
            found = buffer.shadows["undef"] = undefined, origin
        return found

    def mask(self, place: Place, region: Region) -> Array | None:
        """Which elements of a region are undefined; None where none is."""
        found: Array | None = None
        shadow = self.shadow(place.buffer)
        if shadow is not None:
            marks = region.load(shadow[0], _unsigned(region.bits))
            if marks.any():
                found = marks != 0
        if isinstance(place, Tile):
            (r, c), (rows, cols) = region.first, region.shape
            if r + rows > place.v_row or c + cols > place.v_col:
                found = np.zeros((rows, cols), bool) if found is None else found
                found[max(0, place.v_row - r) :, :] = True
                found[:, max(0, place.v_col - c) :] = True
                if not found.any():
                    return None
        return found

    def mask_at(self, place: Place, at: Array) -> Array | None:
        shadow = self.shadow(place.buffer)
        if shadow is None:
            return None
        base, bits, nibble = start_of(place)
        marks = load_at(shadow[0], base, at, bits, _unsigned(bits), nibble)
        return marks != 0 if marks.any() else None

    def define(self, place: Place, where: Any, taint: Array | None = None, origin: int = NEVER) -> None:
        """Mark what was written, a region or element offsets: defined, but for the elements of `taint`."""
        shadow = self.shadow(place.buffer)
        if shadow is None:
            return
        bits = where.bits if isinstance(where, Region) else start_of(place)[1]
        kind = _unsigned(bits)
        if taint is None:
            cells = where.view(shadow[0], kind) if isinstance(where, Region) else None
            if cells is not None:
                cells[...] = 0
            else:
                _put(shadow[0], place, where, np.zeros(_shape(where), kind))
            return
        ones = np.array(-1, np.int64).astype(kind)
        _put(shadow[0], place, where, np.where(taint, ones, np.zeros_like(ones)))
        if bits < 8:
            shadow[1][_first_bytes(place, where)[taint]] = origin
        else:
            numbers = np.frombuffer(bytes([origin]) * (bits // 8), kind)[0]
            _put(shadow[1], place, where, np.where(taint, numbers, np.zeros_like(numbers)))

    # -- origins ---------------------------------------------------------------------------------------

    def origin(self, i: Instr, load: Load) -> Origin:
        """Where the first undefined element of a load comes from."""
        mask, place = load.mask, load.place
        assert mask is not None
        first = np.unravel_index(int(np.argmax(mask)), mask.shape)
        element: tuple[int, int] | None = None
        if isinstance(load.where, Region) and mask.ndim == 2:
            r, c = int(first[0]) + load.where.first[0], int(first[1]) + load.where.first[1]
            element = (r, c)
            if isinstance(place, Tile) and (r >= place.v_row or c >= place.v_col):
                why = f"{OUTSIDE} of {place.v_row} x {place.v_col}"
                return Origin(i.op, name_of(place), element, OUTSIDE, why)
        shadow = self.shadow(place.buffer)
        assert shadow is not None
        parent = self.origins[int(shadow[1][_first_bytes(place, load.where)[first]])]
        if parent is None:
            return Origin(i.op, name_of(place), element, UNWRITTEN)
        return Origin(i.op, name_of(place), element, parent.kind, "which is undefined", parent)

    def number(self, origin: Origin) -> int:
        """A number for the origin shadow; origins that say the same share one."""
        key = (origin.op, origin.name, origin.kind, origin.parent)
        found = self._numbers.get(key)
        if found is None:
            if len(self.origins) <= LAST:
                self.origins.append(origin)
            found = self._numbers[key] = len(self.origins) - 1
        return found

    def report(self, core: CoreState, op: Operation, origin: Origin, what: str) -> None:
        """Report a use; the notes lead from what it reads back to where that was first undefined."""
        first = origin.first
        made = _declaration(core, first) if first.kind in (UNWRITTEN, OUTSIDE) else None
        d = core.diagnostic(
            op,
            "PTO-E2203",
            f"{what}; it reads {origin.text()}" if origin.op is op else what,
            help=_help(first, made).replace("%{name}", first.name or "the tile"),
        )
        at: Origin | None = origin if origin.op is not op else origin.parent
        said: set[tuple[Operation, str]] = set()  # a loop comes by the same instruction again and again
        while at is not None and len(said) < 8:
            if at.op is not None and (at.op, at.text()) not in said:
                said.add((at.op, at.text()))
                name = at.op.row.name if at.op.row else at.op.name
                reads = ":" if at.kind in (SCRATCH, PADDING, FREED) and at.parent is None else " reads"
                d.notes.append((f"{name}{reads} {at.text()}", core.grid.span(at.op)))
            at = at.parent
        if made is not None:
            d.notes.append((f"{first.name} is made here", core.grid.span(made)))
        self.reports.add(("undef", op, first.op, first.name), d)


def name_of(place: Place) -> str:
    return f"%{place.name}" if place.name else place.buffer.name


def _help(origin: Origin, made: Operation | None) -> str:
    if origin.kind == UNWRITTEN and made is not None and isinstance(made.results[0].type, PtrType):
        row = origin.op.row if origin.op is not None else None
        return _UNWRITTEN_LANES if row is not None and row.scope == "vec" else _UNWRITTEN_BYTES
    return _HELP[origin.kind]


def _declaration(core: CoreState, origin: Origin) -> Operation | None:
    """What made the tile: in the function that reads it, else in another one."""
    scopes: list[Operation] = [core.grid.program.module.op]
    op = origin.op
    while op is not None and op.parent is not None and op.parent.parent is not None:
        op = op.parent.parent.parent
        if op is not None and op.name == "func.func":
            scopes.insert(0, op)
    name = origin.name.removeprefix("%")
    made = (op for scope in scopes for op in scope.walk() if any(r.name == name for r in op.results))
    return next(made, None)


def _unsigned(bits: int) -> np.dtype[Any]:
    return np.dtype(f"u{max(8, bits) // 8}")


def _shape(where: Any) -> tuple[int, ...]:
    return where.shape


def _put(data: Array, place: Place, where: Any, values: Array) -> None:
    if isinstance(where, Region):
        where.store(data, values)
    else:
        base, bits, nibble = start_of(place)
        store_at(data, base, where, bits, values, nibble)


def _first_bytes(place: Place, where: Any) -> Array:
    """The first byte of every element."""
    if isinstance(where, Region):
        at = where.rows.offsets[:, None] + where.cols.offsets[None, :]
        return where.base + (at + where.nibble) * where.bits // 8
    base, bits, nibble = start_of(place)
    return base + (where + nibble) * bits // 8


# -- running an instruction again --------------------------------------------------------------------------


#: Values put in place of undefined elements, as codes: for floats a NaN and two large numbers of either sign.
def patterns(dtype: str) -> tuple[int, int, int]:
    d = DTYPES[dtype]
    ones = (1 << d.bits) - 1
    if not d.is_float or d.bits < 8 or d.kind == "e":
        return 0x5A5A5A5A5A5A5A5A & ones, 0xA5A5A5A5A5A5A5A5 & ones, 1
    large = {"f32": 0x7E000000, "f16": 0x7800, "bf16": 0x7E00, "f64": 0x7E00 << 48}.get(dtype, ones >> 2)
    return ones >> 1, large, large | 1 << (d.bits - 1)


def scalars(type: Any, value: Any) -> tuple[Any, Any, Any]:
    """Values put in place of an undefined scalar. Those that may be sizes or offsets stay small."""
    if not isinstance(type, ScalarType) or type.is_float:
        large = 3e4 if str(type) == "f16" else 1e30
        return math.nan, large, -large
    bits = type.bits or 64
    if bits >= 64:
        return value + 1, value + 17, 0 if value else 5
    half = 1 << (bits - 1)
    return tuple((v + half) % (2 * half) - half for v in (value + 1, 0x5A5A5A5A, 0xA5A5A5A5))  # type: ignore[return-value]


class Moved(Exception):
    """An instruction that runs again touches other memory than before."""


class Replay(Port):
    """Gives recorded loads again with other values for undefined elements, and keeps what is stored."""

    def __init__(self, loads: list[Load], groups: list[int], which: int) -> None:
        self.loads = iter(zip(loads, groups, strict=True))
        self.which = which
        self.stores: list[tuple[Place, Any, Array]] = []

    def _next(self, place: Place, where: Any) -> Array:
        load, group = next(self.loads, (None, 0))
        if load is None or not same_bytes(load.place, load.where, place, where):
            raise Moved
        data = np.array(load.data)
        if load.mask is not None:
            codes = data.view(code_dtype(load.place.dtype)) if data.dtype.kind != "u" else data
            pattern = patterns(load.place.dtype)[(self.which + group) % 3]
            codes[load.mask] = np.array(pattern, np.uint64).astype(codes.dtype)
        return data

    def load(self, i: Instr, place: Place, region: Region, dtype: Any) -> Array:
        return self._next(place, region)

    def load_at(self, i: Instr, place: Place, at: Array, dtype: Any) -> Array:
        return self._next(place, at)

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        self.stores.append((place, region, np.array(codes)))

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        self.stores.append((place, at, np.array(codes)))


def same_bytes(place: Place, where: Any, other: Place, there: Any) -> bool:
    if place.buffer is not other.buffer:
        return False
    if isinstance(where, Region) and isinstance(there, Region):
        return (
            (where.base, where.nibble, where.shape) == (there.base, there.nibble, there.shape)
            and np.array_equal(where.rows.offsets, there.rows.offsets)
            and np.array_equal(where.cols.offsets, there.cols.offsets)
        )
    if isinstance(where, Region) or isinstance(there, Region):
        return False
    return start_of(place) == start_of(other) and np.array_equal(where, there)


class Dependence:
    """What of an instruction depends on undefined data: elements per store, its result, its addresses."""

    def __init__(self, stores: list[tuple[Place, Any, Array]]) -> None:
        self.taints = [np.zeros(np.shape(codes), bool) for _, _, codes in stores]
        self.address = False
        self.result = False


def dependence(
    i: Instr,
    execute: Callable[[Instr], Any],
    loads: list[Load],
    stores: list[tuple[Place, Any, Array]],
    result: Any,
) -> Dependence:
    """Run the instruction again with other values for what is undefined, and see what changes."""
    found = Dependence(stores)
    port, args = i.port, i.args
    groups = _groups(loads)
    for which in range(3):
        again = Replay(loads, groups, which)
        i.port, i.args = again, _other_scalars(i, args, which)
        try:
            other = execute(i)
        except (IllegalInstruction, MemoryFault, Moved, IndexError, ValueError, OverflowError, MemoryError):
            found.address = True
            continue
        finally:
            i.port, i.args = port, args
        found.result |= not _same(result, other)
        if len(again.stores) != len(stores):
            found.address = True
            continue
        for n, (one, two) in enumerate(zip(stores, again.stores, strict=True)):
            if not same_bytes(*one[:2], *two[:2]):
                found.address = True
            elif one[2].shape == two[2].shape:
                found.taints[n] |= _bits(one[2]) != _bits(two[2])
            else:
                found.taints[n][...] = True
    return found


def _groups(loads: list[Load]) -> list[int]:
    """Loads of the same bytes get the same values, others do not: the difference of two undefined tiles is
    undefined, that of one and itself is not."""
    out: list[int] = []
    for n, load in enumerate(loads):
        same = (m for m in range(n) if same_bytes(load.place, load.where, loads[m].place, loads[m].where))
        out.append(next((out[m] for m in same), max(out, default=-1) + 1))
    return out


def _other_scalars(i: Instr, args: dict[str, Any], which: int) -> dict[str, Any]:
    if not i.poison:
        return args
    changed = dict(args)
    for (name, n), _ in i.poison.items():
        if n is None:
            value = i.op.get(name)
            changed[name] = scalars(value.type if value is not None else None, args[name])[which]
        else:
            changed[name] = list(changed[name])
            changed[name][n] = scalars(i.op.group(name)[n].type, args[name][n])[which]
    return changed


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))  # type: ignore[reportUnknownArgumentType]
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return (a.buffer, a.offset) == (b.buffer, b.offset)
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _bits(codes: Array) -> Array:
    codes = np.ascontiguousarray(codes)
    return codes if codes.dtype.kind == "u" else codes.view(f"u{codes.dtype.itemsize}")
