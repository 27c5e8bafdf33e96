"""Sanitizer overlap: reports a read of a tile after another tile has overwritten part of it.

An `alloc_tile` or `tassign` places a storage; tiles cut or reshaped from it belong to the same storage. Each
storage has the bytes that it wrote, and those of them that another storage has written since. Only storages
that share bytes with others are compared.

Compilers give one buffer several names, each with its own `alloc_tile` on the same bytes: for an update in
place, a value carried by a loop, a result of an `if`. Two names that are used in this way are united into one
storage.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ...diag import Diagnostic
from ...ir.core import Operation
from ...verifier.overlap import handed_on, share_bytes
from ..access import Access, Place
from ..elements import Array
from ..memory import Pointer, Storage, Tile
from ..region import Region
from ..watch import INSTRUCTION, Event
from .sanitizer import Sanitizer

#: Algorithms that process elements in order, also if source and destination overlap.
_ORDERLY = ("convert", "move", "window")
#: The number of rivals that a storage distinguishes; further rivals share the last number.
MOST = 255


class StorageContent:
    """The contents of a storage: the bytes that it wrote (`mine`), and, for each byte that was overwritten
    later, the number of the rival that wrote it (`lost`).
    """

    __slots__ = (
        "by", "last", "lost", "mine", "pending", "read", "rivals", "some", "storage", "turn", "views",
        "writer",
    )  # fmt: skip

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.mine = np.zeros(storage.size, np.uint8)
        self.lost = np.zeros(storage.size, np.uint8)
        self.some = False  # are any bytes lost
        self.writer: Operation | None = None
        self.rivals: list[StorageContent] = []
        self.views: list[StorageContent] = []  # storages of another tile kind on exactly the same bytes
        #: By number: the rival, the instruction that overwrote the bytes, and the instruction before it.
        self.by: dict[int, tuple[StorageContent, Operation, Operation]] = {}
        self.last: Any = None  # the region written last
        self.turn = 0  # the number of its last write, among all writes
        self.read = False  # has an instruction read it under its own name
        #: Reports about bytes that it overwrote, which are made only if an instruction reads it.
        self.pending: list[tuple[Any, Diagnostic]] = []

    def twin_of(self, other: StorageContent) -> bool:
        """Return whether both are the same bytes, as the same kind of tile."""
        a, b = self.storage, other.storage
        return (a.low, a.size) == (b.low, b.size) and a.kind == b.kind

    def cells(self, table: Array, region: Region) -> Array | None:
        """Return the elements of a region in a table of bytes; None if they leave it or are irregular."""
        here = Region(region.base - self.storage.low, region.rows, region.cols, region.bits, region.nibble)
        try:
            return here.view(table, f"u{region.bits // 8}") if region.bits >= 8 else None
        except IndexError:
            return None

    def bytes(self, access: Access) -> Array:
        """Return the bytes of an access inside the storage, counted from its start."""
        at = access.bytes() - self.storage.low
        return at[(at >= 0) & (at < self.storage.size)]


class Overlap(Sanitizer):
    wants = (INSTRUCTION,)
    turn = 0

    def started(self, event: Event) -> None:
        self.unspecified: list[Access] = []

    def left_undefined(self, event: Event, access: Access) -> None:
        self.unspecified.append(access)

    def loaded(self, event: Event, access: Access, data: Array) -> None:
        held = self._held(access)
        if held is not None and held.last is None and held.rivals:
            held = _meant(access, held)
        if held is None:
            return
        held.read = True
        if held.pending:
            for key, pending in held.pending:
                self.reports.add(key, pending)
            held.pending.clear()
        if held.some:
            self._read(event, access, held)

    def finished(self, event: Event) -> None:
        """Record the writes of an instruction when it ends, because an instruction reads before it writes."""
        for access in event.accesses:
            if access.write and access.space != "gm" and not _delivered(event, access):
                held = self._held(access)
                if held is not None and not any(_same(access, other) for other in self.unspecified):
                    self._write(event, access, held)

    def _held(self, access: Access) -> StorageContent | None:
        place = access.place
        storage = storage_of(place)
        if storage is None:
            return None
        known: dict[Storage, StorageContent] | None = place.buffer.shadows.get("overlap")
        if known is None:
            known = place.buffer.shadows["overlap"] = {}
        found = known.get(storage)
        return found if found is not None else _introduce(known, storage)

    # -- writes ----------------------------------------------------------------------------------------

    def _write(self, event: Event, access: Access, held: StorageContent) -> None:
        held.writer = event.op
        self.turn += 1
        held.turn = self.turn
        region = access.region
        if not held.rivals or not any(rival.last is not None for rival in held.rivals):
            key = None if region is None else region.key
            if key is None or held.last != key or held.some or any(view.some for view in held.views):
                self._keep(access, held)
                held.last = key or ()
            return
        held = self._handed_on(event, access, self._reads_too(event, access, held))
        written = np.zeros(held.storage.size, np.uint8)
        _fill(held, written, access, 1)
        for rival in held.rivals:
            if rival.last is not None:
                _lose(rival, held, written, event.op)
        self._keep(access, held)
        held.last = ()

    def _reads_too(self, event: Event, access: Access, held: StorageContent) -> StorageContent:
        """Handle an instruction that reads bytes which it writes under another name: unite the two names of
        an update in place, and report all other overlaps."""
        for other in event.accesses:
            if other.write or other.space == "gm":
                continue
            read = self._held(other)
            if read in held.views and in_step(event, access, other):
                held = _meant(access, held)  # an update in place, read as another kind of tile
                continue
            if read not in held.rivals:
                continue
            assert read is not None
            if staged(event.op):
                continue
            if in_step(event, access, other):
                if read.twin_of(held):
                    held = _unite(access, read, held)
                continue
            shared = np.intersect1d(access.bytes(), other.bytes())
            if shared.size:
                mine, theirs = read.storage, held.storage
                d = event.core.diagnostic(
                    event.op,
                    "PTO-E2210",
                    f"writes %{theirs.name} over a part of %{mine.name} that it reads: they share bytes "
                    f"{in_hex(int(shared.min()), int(shared.max()) + 1)} of {access.place.buffer.name}",
                    help=apart(mine, theirs),
                )
                self.reports.add(("overlap", event.op, mine.op, theirs.op), d)
        return held

    def _handed_on(self, event: Event, access: Access, held: StorageContent) -> StorageContent:
        """Unite a tile that is handed on, to the next iteration or out of a branch, with the tile of the
        enclosing block that was written last on the same bytes."""
        into = held.storage.op
        around = [r for r in held.rivals if r.last is not None and r.twin_of(held)]
        around = [r for r in around if handed_on(event.op, into, r.storage.op)]
        return _unite(access, max(around, key=lambda r: r.turn), held) if around else held

    def _keep(self, access: Access, held: StorageContent) -> None:
        _fill(held, held.mine, access, 0xFF)
        for view in (held, *held.views):
            if view.some:
                _fill(view, view.lost, access, 0)
                view.some = bool(view.lost.any())

    # -- reads -----------------------------------------------------------------------------------------

    def _read(self, event: Event, access: Access, held: StorageContent) -> None:
        region = access.region
        cells = held.cells(held.lost, region) if region is not None else None
        if cells is not None and not cells.any():
            return
        at = held.bytes(access)
        found = held.lost[at]
        if not found.any():
            return
        number = int(found[found != 0][0])
        shared = at[found == number] + held.storage.low
        other, over, before = held.by[number]
        mine, theirs = held.storage, other.storage
        d = event.core.diagnostic(
            event.op,
            "PTO-E2210",
            f"reads %{mine.name} after %{theirs.name} has overwritten part of it: they share bytes "
            f"{in_hex(int(shared.min()), int(shared.max()) + 1)} of {access.place.buffer.name}",
            help=apart(mine, theirs) + f", or read %{mine.name} before %{theirs.name} is written",
        )
        d.notes.append((f"{_name(before)} writes %{mine.name}", self.launch.span(before)))
        d.notes.append((f"{_name(over)} writes %{theirs.name} over it", self.launch.span(over)))
        key = ("overlap", event.op, mine.op, theirs.op)
        if not other.read and other.twin_of(held) and self.launch.stands_inside(theirs.op, mine.op):
            # The tile may leave its block without an operation that shows it (`handed_on`): wait for a read.
            other.pending.append((key, d))
        else:
            self.reports.add(key, d)


def _introduce(known: dict[Storage, StorageContent], storage: Storage) -> StorageContent:
    """Add a new storage, and link it with those that it shares bytes with."""
    new = known[storage] = StorageContent(storage)
    for other in dict.fromkeys(known.values()):
        if other is new:
            continue
        if share_bytes(storage, other.storage):
            new.rivals.append(other)
            other.rivals.append(new)
        elif (storage.low, storage.size) == (other.storage.low, other.storage.size):
            new.views.append(other)
            other.views.append(new)
    return new


def _meant(access: Access, held: StorageContent) -> StorageContent:
    """Unite a storage that was never written under its own name with the storage that wrote the same bytes
    last.
    """
    twins = [rival for rival in held.rivals if rival.last is not None and rival.twin_of(held)]
    return _unite(access, max(twins, key=lambda twin: twin.turn), held) if twins else held


def _unite(access: Access, one: StorageContent, other: StorageContent) -> StorageContent:
    """Unite two storages into one with the contents of both."""
    known: dict[Storage, StorageContent] = access.place.buffer.shadows["overlap"]
    for storage, held in known.items():
        if held is other:
            known[storage] = one
    one.mine |= other.mine
    one.rivals += [rival for rival in other.rivals if rival is not one and rival not in one.rivals]
    for rival in other.rivals:
        if rival is not one:  # the list of `one` keeps `other`, which is not used any more
            _replace(rival.rivals, other, one)  # a number is an index into this list
    one.views += [view for view in other.views if view not in one.views]
    for view in other.views:
        _replace(view.views, other, one)
    if other.turn > one.turn:
        one.turn, one.writer = other.turn, other.writer
    if other.last is not None:
        one.last = ()
    one.lost[other.mine != 0] = 0
    one.some = bool(one.lost.any())
    other.last = None
    return one


def _replace(all: list[StorageContent], old: StorageContent, new: StorageContent) -> None:
    """Replace an entry of a list, if the list has it."""
    if old in all:
        all[all.index(old)] = new


def staged(op: Operation) -> bool:
    """Return whether an instruction builds its whole result in scratch first, as merges of lists build it."""
    return op.row is not None and op.row.algorithm == "merge" and op.get("tmp") is not None


def in_step(event: Event, written: Access, read: Access) -> bool:
    """Return whether an instruction never overwrites elements that it still has to read.

    This holds on the same elements, if the row allows work in place. It also holds for copies, conversions
    and comparisons from the same byte on to elements that are not wider, and for a fold of rows onto the
    first row.
    """
    a, b, row = written.region, read.region, event.op.row
    if a is None or b is None or row is None or not all(x.size for x in (a.rows, a.cols, b.rows, b.cols)):
        return False
    free = row.in_place_on and event.core.profile.isa not in row.in_place_on
    orderly = row.algorithm in _ORDERLY or row.over == "fold rows" or row.packed == "dst"
    if row.in_place in ("", "none") and not free and not orderly:
        return False
    both = [(x, y, min(x.size, y.size)) for x, y in ((a.rows, b.rows), (a.cols, b.cols))]
    ahead = [x.offsets[:n] * a.bits - y.offsets[:n] * b.bits for x, y, n in both]
    start = (a.base - b.base) * 8 + int(ahead[0][0]) + int(ahead[1][0])
    aligned = not start and all(int(lead.max()) <= int(lead[0]) for lead in ahead)
    return aligned or (row.in_place not in ("", "none") and _read_first(a, b))


def _read_first(written: Region, read: Region) -> bool:
    """Return whether an instruction that works row by row has read each element before it overwrites it."""
    shape = written.rows.size, written.cols.size
    if shape != (read.rows.size, read.cols.size) or written.bits != read.bits or read.bits < 8:
        return False
    size = read.bits // 8
    to, of = (r.base + np.add.outer(r.rows.offsets, r.cols.offsets).ravel() * size for r in (written, read))
    if (to[0] - of[0]) % size:  # the elements are not aligned with each other
        return False
    _, write, turn = np.intersect1d(to, of, return_indices=True)
    return bool((turn <= write).all())


def _fill(held: StorageContent, table: Array, access: Access, value: int) -> None:
    region = access.region
    cells = held.cells(table, region) if region is not None else None
    if cells is None:
        table[held.bytes(access)] = value
    else:
        cells[...] = 0 if not value else np.frombuffer(bytes([value]) * cells.itemsize, cells.dtype)[0]


def _lose(rival: StorageContent, held: StorageContent, written: Array, op: Operation) -> None:
    """Mark bytes of a storage that another one has overwritten."""
    a, b = rival.storage, held.storage
    low, high = max(a.low, b.low), min(a.low + a.size, b.low + b.size)
    hit = (rival.mine[low - a.low : high - a.low] != 0) & (written[low - b.low : high - b.low] != 0)
    if not hit.any() or rival.writer is None:
        return
    number = min(rival.rivals.index(held) + 1, MOST)
    rival.lost[low - a.low : high - a.low][hit] = number
    rival.by[number] = held, op, rival.writer
    rival.some = True


def _same(access: Access, other: Access) -> bool:
    a, b = access.region, other.region
    return (
        a is not None and b is not None and access.place.buffer is other.place.buffer
        and (a.base, a.rows, a.cols) == (b.base, b.rows, b.cols)
    )  # fmt: skip


def _name(op: Operation) -> str:
    return op.row.name if op.row is not None else op.name


def in_hex(low: int, high: int) -> str:
    """Return a range of bytes as memory maps show it, including the last byte."""
    return f"{low:#x}-{high - 1:#x}"


def apart(a: Storage, b: Storage) -> str:
    """Return the help for two tiles that share bytes."""
    return (
        f"%{a.name} takes {in_hex(a.low, a.low + a.size)} and %{b.name} {in_hex(b.low, b.low + b.size)}: "
        "give one of them another address"
    )


def _delivered(event: Event, access: Access) -> bool:
    """Return whether a write goes to another core, which has its own names for the data."""
    place, core = access.place, cast("Any", event.core)
    return isinstance(place, Tile) and place.buffer is not core.buffers.get(place.loc, place.buffer)


def storage_of(place: Place) -> Storage | None:
    """Return the storage that a place belongs to; None if the program did not place it."""
    if isinstance(place, Tile):
        return place.storage
    return place.home.storage if isinstance(place, Pointer) and place.home is not None else None
