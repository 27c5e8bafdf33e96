"""The undefined bytes of buffers, and their origins.

Every on-chip buffer has an `UndefinedShadow`: two arrays of its size. In one, an undefined byte is 0xFF. The
other has for each byte the number of an origin: why it is undefined, and the origin that it was computed
from. A shadow also has a set of regions that are known as defined, because a loop comes back to the same
regions. Only `define` can make bytes undefined again, and then clears the set.

Global memory counts as defined, except for tensors of a graph, whose shadow outlives a launch (`unwritten`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np

from ...diag import Diagnostic
from ...ir.core import Operation
from ...ir.facts import function_of
from ...ir.types import PtrType
from ..access import Place, first_bytes, start_of
from ..elements import Array
from ..memory import Buffer, Pointer, Tile
from ..region import Region, load_at, store_at
from ..watch import Event, WatchedCore, WatchedLaunch
from .reports import Reports

#: The origin number of bytes that were never written.
NEVER = 1
#: The last origin number, which all further origins share.
LAST = 254

#: `Array.any` with one call less.
_any = np.logical_or.reduce

#: The reason why an element is undefined.
UNWRITTEN = "which was never written"
NO_TASK = "which no task has written before"
OUTSIDE = "outside its valid region"
SCRATCH = "which is scratch of this instruction"
PADDING = "which this instruction leaves unspecified"
FREED = "which is given back to the producer here"
#: Help for a pointer to unwritten data, for vector instructions and for copies.
_UNWRITTEN_LANES = (
    "write what %{name} points to before it is read, or keep the lanes behind the end of the data out of the "
    "result: a mask of pto.plt, or pto.vsel"
)
_UNWRITTEN_BYTES = "write what %{name} points to before it is read, for example by pto.mte_gm_ub or pto.vsts"
_UNWRITTEN_SUM = (
    "first K step: pto.tmatmul, which does not read %{name}; pto.tmatmul.acc adds to what the one before left"
)
_HELP = {
    UNWRITTEN: "write %{name} before it is read, for example by pto.tload or pto.texpands",
    NO_TASK: "let a task write it first, and order the two",
    OUTSIDE: "read only what is valid: narrow the valid region of the destination, or widen that of %{name} "
    "where it is written",
    SCRATCH: "the contents of a scratch operand are lost: give the instruction another tile, or write "
    "%{name} again",
    PADDING: "give the tile a pad value (pad = zero, min or max), or read only its valid region",
    FREED: "read the tile before pto.tfree gives its slot back",
}


class Origin:
    """The origin of undefined elements: an operand of an instruction, and the origin of that operand."""

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
        self.name = name  # as messages show it: %tile
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


class Origins:
    """Origins by number."""

    def __init__(self) -> None:
        #: The first two are for bytes that are defined, and for those that were never written.
        self.all: list[Origin | None] = [None, None]
        self._numbers: dict[object, int] = {}

    def number(self, origin: Origin) -> int:
        """Return the number of an origin; equal origins share a number. A result of a loop that depends on
        itself keeps its first origin, so that chains do not grow with the iterations."""
        before = origin.parent
        while before is not None:
            if (before.op, before.name) == (origin.op, origin.name):
                origin = before
            before = before.parent
        key = (origin.op, origin.name, origin.kind, origin.parent)
        found = self._numbers.get(key)
        if found is None:
            if len(self.all) <= LAST:
                self.all.append(origin)
            found = self._numbers[key] = len(self.all) - 1
        return found

    def __len__(self) -> int:
        return len(self._numbers)


class ByteShadow(Protocol):
    """The undefined bytes of a buffer."""

    #: True if a store of undefined data is not reported: the buffer is on-chip, or is a tensor between tasks.
    holds: bool

    def mask(self, region: Region) -> Array | None:
        """Return a mask of the undefined elements of a region; None if all are defined."""
        ...

    def mask_at(self, place: Place, at: Array) -> Array | None:
        """Return the same for elements at offsets from a place."""
        ...

    def define(self, place: Place, where: Region | Array, taint: Array | None, origin: Origin | None) -> None:
        """Mark a written region, or element offsets, as defined, except for elements in `taint`."""
        ...

    def origin(self, byte: int) -> Origin | None:
        """Return the origin of an undefined byte; None if it was never written."""
        ...


class UndefinedShadow:
    """The undefined bytes of a buffer, as arrays."""

    __slots__ = ("holds", "known", "numbers", "origins", "undefined")

    def __init__(self, undefined: Array, numbers: Array, origins: Origins) -> None:
        self.undefined = undefined
        self.numbers = numbers
        self.origins = origins
        self.known: set[Any] | None = set()
        self.holds = True

    def part(self, where: slice, holds: bool) -> UndefinedShadow:
        """Return the shadow of a part, on the same arrays. It remembers no regions, because other parts
        change the arrays, too."""
        found = UndefinedShadow(self.undefined[where], self.numbers[where], self.origins)
        found.known, found.holds = None, holds
        return found

    def mask(self, region: Region) -> Array | None:
        if self.known is not None and region.key in self.known:
            return None
        marks = region.load(self.undefined, _unsigned(region.bits))
        if _any(marks, axis=None):
            return marks != 0
        self._remember(region)
        return None

    def mask_at(self, place: Place, at: Array) -> Array | None:
        base, bits, nibble = start_of(place)
        marks = load_at(self.undefined, base, at, bits, _unsigned(bits), nibble)
        return marks != 0 if _any(marks, axis=None) else None

    def define(self, place: Place, where: Region | Array, taint: Array | None, origin: Origin | None) -> None:
        bits = where.bits if isinstance(where, Region) else start_of(place)[1]
        kind = _unsigned(bits)
        if taint is None:
            if isinstance(where, Region):
                if self.known is not None and where.key in self.known:
                    return
                self._remember(where)
            cells = where.view(self.undefined, kind) if isinstance(where, Region) else None
            if cells is not None:
                cells[...] = 0
            else:
                _put(self.undefined, place, where, np.zeros(_shape(where), kind))
            return
        if self.known is not None:
            self.known.clear()
        number = self.origins.number(origin) if origin is not None else NEVER
        ones = np.array(-1, np.int64).astype(kind)
        _put(self.undefined, place, where, np.where(taint, ones, np.zeros_like(ones)))
        if bits < 8:
            self.numbers[first_bytes(place, where)[taint]] = number
        else:
            numbers = np.frombuffer(bytes([number]) * (bits // 8), kind)[0]
            _put(self.numbers, place, where, np.where(taint, numbers, np.zeros_like(numbers)))

    def origin(self, byte: int) -> Origin | None:
        return self.origins.all[int(self.numbers[byte])]

    def _remember(self, region: Region) -> None:
        if self.known is None:
            return
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
        self.known.add(region.key)


def unwritten(buffer: Buffer, shadow: ByteShadow) -> None:
    """Give global memory a shadow for a launch, because it is undefined or may hold undefined data."""
    buffer.shadows["undef"] = shadow


#: The number of regions of a buffer that are kept as known to be defined.
_MOST_KNOWN = 1024


class Undefined:
    def __init__(self, launch: WatchedLaunch, reports: Reports) -> None:
        self.launch = launch
        self.reports = reports
        self.origins = Origins()

    # -- shadows ---------------------------------------------------------------------------------------

    def shadow(self, buffer: Buffer) -> ByteShadow | None:
        """Return the shadow of a buffer. Memory that comes from outside, such as global memory, counts as
        defined (None), except after `unwritten`."""
        found = buffer.shadows.get("undef")
        if buffer.given:
            return found
        size = buffer.data.size
        if found is None or found.undefined.size < size:
            undefined, numbers = np.empty(size, np.uint8), np.empty(size, np.uint8)
            undefined.fill(0xFF)  # faster than `np.full` for registers
            numbers.fill(NEVER)
            made = UndefinedShadow(undefined, numbers, self.origins)
            if found is not None:
                undefined[: found.undefined.size], numbers[: found.numbers.size] = (
                    found.undefined,
                    found.numbers,
                )
                made.known = found.known
            found = buffer.shadows["undef"] = made
        return found

    def mask(self, place: Place, region: Region) -> Array | None:
        """Return a mask of the undefined elements of a region; None if all are defined."""
        shadow = self.shadow(place.buffer)
        found = shadow.mask(region) if shadow is not None else None
        if isinstance(place, Tile):
            r, c = region.first
            rows, cols = region.rows.size, region.cols.size
            if r + rows > place.v_row or c + cols > place.v_col:
                found = np.zeros((rows, cols), bool) if found is None else found
                found[max(0, place.v_row - r) :, :] = True
                found[:, max(0, place.v_col - c) :] = True
                if not found.any():
                    return None
        return found

    def mask_at(self, place: Place, at: Array) -> Array | None:
        shadow = self.shadow(place.buffer)
        return shadow.mask_at(place, at) if shadow is not None else None

    def define(
        self, place: Place, where: Region | Array, taint: Array | None = None, origin: Origin | None = None
    ) -> None:
        """Mark a written region, or element offsets, as defined, except for elements in `taint`."""
        shadow = self.shadow(place.buffer)
        if shadow is not None:
            shadow.define(place, where, taint, origin)

    # -- origins ---------------------------------------------------------------------------------------

    def origin(self, event: Event, place: Place, where: Any, mask: Array) -> Origin:
        """Return the origin of the first undefined element of a load."""
        first = np.unravel_index(int(np.argmax(mask)), mask.shape)
        element: tuple[int, int] | None = None
        if isinstance(where, Region) and mask.ndim == 2:
            r, c = int(first[0]) + where.first[0], int(first[1]) + where.first[1]
            element = (r, c)
            if isinstance(place, Tile) and (r >= place.v_row or c >= place.v_col):
                why = f"{OUTSIDE} of {place.v_row} x {place.v_col}"
                return Origin(event.op, name_of(place), element, OUTSIDE, why)
        elif isinstance(place, Tile) and not isinstance(where, Region):
            element = place.element_at(int(where[first]))
        name = name_of(place)
        home = place.home if isinstance(place, Pointer) else None
        if home is not None:  # the instruction counts lanes, the message counts elements of the tile
            byte = int(first_bytes(place, where)[first]) - home.low
            element, name = home.tile.element_at(byte * 8 // home.tile.bits) or element, f"%{home.name}"
        shadow = self.shadow(place.buffer)
        assert shadow is not None
        parent = shadow.origin(int(first_bytes(place, where)[first]))
        if parent is None:
            return Origin(event.op, name, element, NO_TASK if place.buffer.given else UNWRITTEN)
        return Origin(event.op, name, element, parent.kind, "which is undefined", parent)

    def report(self, core: WatchedCore, op: Operation, origin: Origin, what: str) -> None:
        """Report a use; the notes lead from its operand back to the first undefined data."""
        first = origin.first
        made = _declaration(self.launch, first) if first.kind in (UNWRITTEN, OUTSIDE) else None
        d = core.diagnostic(
            op,
            "PTO-E2203",
            f"{what}; it reads {origin.text()}" if origin.op is op else what,
            help=_help(first, made).replace("%{name}", first.name or "the tile"),
        )
        way(origin if origin.op is not op else origin.parent, d)
        if made is not None:
            d.notes.append((f"{first.name} is made here", self.launch.span(made)))
        self.reports.add(("undef", op, first.op, first.name), d)


def way(origin: Origin | None, d: Diagnostic) -> None:
    """Add notes that lead from an origin back to the first undefined data."""
    noted: set[tuple[Operation, str]] = set()  # a loop repeats the same instruction
    while origin is not None and len(noted) < 8:
        op, text = origin.op, origin.text()
        if op is not None and (op, text) not in noted:
            noted.add((op, text))
            name = op.row.name if op.row else op.name
            reads = ":" if origin.kind in (SCRATCH, PADDING, FREED) and origin.parent is None else " reads"
            d.notes.append((f"{name}{reads} {text}", op.loc.head if op.loc is not None else None))
        origin = origin.parent


def name_of(place: Place) -> str:
    return f"%{place.name}" if place.name else place.buffer.name


def _help(origin: Origin, made: Operation | None) -> str:
    if origin.kind == UNWRITTEN and made is not None and isinstance(made.results[0].type, PtrType):
        row = origin.op.row if origin.op is not None else None
        return _UNWRITTEN_LANES if row is not None and row.scope == "vec" else _UNWRITTEN_BYTES
    if origin.kind == UNWRITTEN and made is not None and getattr(made.results[0].type, "loc", "") == "acc":
        return _UNWRITTEN_SUM
    return _HELP[origin.kind]


def _declaration(launch: WatchedLaunch, origin: Origin) -> Operation | None:
    """Return the operation that made the tile: in the function that reads it, else in another one."""
    scopes: list[Operation] = [launch.module.op]
    function = function_of(origin.op) if origin.op is not None else None
    if function is not None:
        scopes.insert(0, function)
    name = origin.name.removeprefix("%")
    made = (op for scope in scopes for op in scope.walk() if any(r.name == name for r in op.results))
    return next(made, None)


@cache
def _unsigned(bits: int) -> np.dtype[np.generic]:
    return np.dtype(f"u{max(8, bits) // 8}")


def _shape(where: Region | Array) -> tuple[int, ...]:
    return where.shape


def _put(data: Array, place: Place, where: Region | Array, values: Array) -> None:
    if isinstance(where, Region):
        where.store(data, values)
    else:
        base, bits, nibble = start_of(place)
        store_at(data, base, where, bits, values, nibble)
