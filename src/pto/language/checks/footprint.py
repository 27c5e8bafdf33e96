"""Check the global memory of tasks byte by byte: independence of iterations, complete outputs, uninitialized
reads.

A `Footprint` observes every launch of a run. Iterations of `pl.parallel` and blocks of `pl.spmd` are the
*parties* of a claim of independence: a byte that one party writes must not be accessed by another.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...diag import Diagnostic, Span
from ...engine.access import Access
from ...engine.sanitize.undefined_bytes import Origins, UndefinedShadow, unwritten, way
from ...engine.watch import Event, WatchedLaunch, Watcher
from ...ir.core import Operation
from ..problems import CLAIM, HOLES

Array = Any
#: Marks of a byte, besides party + _FIRST. A new table is zeros, so that only pages in use take memory.
_NOBODY, _SEVERAL, _FIRST = range(3)


class RunArray:
    """An array of a run."""

    def __init__(self, name: str, array: Array, output: bool, made: bool = False) -> None:
        self.name = name
        self.array = array
        self.output = output
        self.address: int = array.__array_interface__["data"][0]
        self.written = np.zeros(array.nbytes, bool)
        #: The undefined bytes of a tensor that the program makes.
        self.undefined: UndefinedShadow | None = None
        if made:
            fresh = np.full(array.nbytes, 0xFF, np.uint8)
            self.undefined = UndefinedShadow(fresh, np.zeros(array.nbytes, np.uint8), Origins())

    def element(self, byte: int) -> str:
        """Return the element with a byte, as an index expression."""
        index = np.unravel_index(byte // self.array.itemsize, self.array.shape)
        return f"{self.name}[{', '.join(map(str, index))}]"


class Claim:
    """A loop or a task whose parties are declared independent."""

    def __init__(self, what: str, span: Span | None) -> None:
        self.what = what  # "iteration" or "block"
        self.span = span
        self.party = 0
        #: The mark of the writer and that of the reader of each byte.
        self.touched: dict[RunArray, tuple[Array, ...]] = {}
        self.found = False


class Footprint(Watcher):
    def __init__(self, memories: list[RunArray], strict_undef: bool = False) -> None:
        """`strict_undef`: no tensor may hold undefined data, not even one that no task reads."""
        self.memories = memories  # arguments: few, and they may overlap
        self._strict = strict_undef
        self._made: list[RunArray] = []  # tensors that the program makes: many, disjoint, by address
        self._starts: list[int] = []
        self.claims: list[Claim] = []
        self.diagnostics: list[Diagnostic] = []

    def _at(self, address: int) -> list[RunArray]:
        """Return the arrays that contain an address."""
        number = bisect(self._starts, address)
        near = [*self.memories, *self._made[max(number - 1, 0) : number]]
        return [m for m in near if m.address <= address < m.address + m.written.size]

    def _parts(self, array: Array) -> Iterator[tuple[RunArray, slice]]:
        """Return the memories that contain an array, and its position in them."""
        start = array.__array_interface__["data"][0]
        for memory in self._at(start):
            yield memory, slice(start - memory.address, start - memory.address + array.nbytes)

    @contextmanager
    def claim(self, what: str, span: Span | None) -> Iterator[Claim]:
        """Observe the parties of a claim inside the `with` statement; `party` is the number of the current
        one."""
        made = Claim(what, span)
        self.claims.append(made)
        try:
            yield made
        finally:
            self.claims.remove(made)

    @contextmanager
    def claimed(self, claims: list[tuple[Claim, int]]) -> Iterator[None]:
        """Run a postponed task under the claims that were active when the task was submitted."""
        parties = [(c, c.party) for c in self.claims]
        for claim, party in claims:
            claim.party = party
        try:
            with self.with_claims([c for c, _ in claims]):
                yield
        finally:
            for claim, party in parties:
                claim.party = party

    @contextmanager
    def with_claims(self, claims: list[Claim]) -> Iterator[None]:
        """Replace the active claims inside the `with` statement, for example by those of another rank."""
        now, self.claims = self.claims, claims
        try:
            yield
        finally:
            self.claims = now

    def made(self, name: str, array: Array) -> None:
        """Register a tensor that the program makes, without contents."""
        if not array.nbytes:
            return
        memory = RunArray(name, array, False, True)
        number = bisect(self._starts, memory.address)
        self._starts.insert(number, memory.address)
        self._made.insert(number, memory)

    def wrote(self, array: Array) -> None:
        """Record a write of a whole array without an event: by the orchestrator, or by C++."""
        for memory, part in self._parts(array):
            memory.written[part] = True
            if memory.undefined is not None:
                memory.undefined.undefined[part] = 0

    def filled(self, array: Array) -> None:
        """Record that a whole array is written, without an event. Undefined data that was stored stays
        undefined.
        """
        for memory, part in self._parts(array):
            memory.written[part] = True
            if memory.undefined is not None:
                memory.undefined.undefined[part][memory.undefined.numbers[part] == 0] = 0

    def reads(self, array: Array, span: Span | None) -> None:
        """Check an element that the orchestrator reads."""
        for memory, part in self._parts(array):
            if memory.undefined is None or not memory.undefined.undefined[part].any():
                continue
            origin, element = memory.undefined.origin(part.start), memory.element(part.start)
            if origin is None:
                self.diagnostics.append(Diagnostic(
                    "PTO-E2203", f"{element} is read before it is written", span,
                    help=f"let a task write it first: pass '{memory.name}' to it as pl.Out",
                ))  # fmt: skip
            else:
                d = Diagnostic("PTO-E2203", f"cannot read {element}: its value is undefined", span)
                way(origin, d)
                self.diagnostics.append(d)

    # ---- events ----

    def launch_started(self, launch: WatchedLaunch) -> None:
        for buffer in launch.gm.buffers:
            for memory, part in self._parts(buffer.data):
                if memory.undefined is not None:
                    unwritten(buffer, memory.undefined.part(part, not self._strict))

    def finished(self, event: Event) -> None:
        for access in event.accesses:
            if access.space == "gm":
                self._touch(access, event)

    def _touch(self, access: Access, event: Event) -> None:
        low, high = access.bounds
        start = access.place.buffer.data.__array_interface__["data"][0]
        memories = self._at(start + low) if low < high else []
        if not memories:
            return
        memory = memories[0]
        start -= memory.address
        if access.write:
            (written,), at = _entries(access, start, memory.written)
            written[at] = True
        if event.op.attr("atomicType") not in (None, "atomic_none"):
            return
        for claim in self.claims:
            if claim.what == "block":
                claim.party = event.core.block
            self._check(claim, memory, access, start, event)

    def follow(self, touched: Array, ops: Sequence[Operation]) -> bool:
        """Record the accesses of a launch that the screens of engine native decided: rows of bytes of memory.
        Return False at the first access that has to be reported; the launch is then observed again."""
        atomic = [op.attr("atomicType") not in (None, "atomic_none") for op in ops]
        for low, rows, width, pitch, site, block, write, _ in touched.tolist():
            memories = self._at(low)
            if not memories:
                continue
            start, undefined = low - memories[0].address, memories[0].undefined

            def part(of: Array, at: int = start, shape: Any = (rows, width), step: int = pitch) -> Array:
                return np.ndarray(shape, of.dtype, of, at * of.itemsize, (step * of.itemsize, of.itemsize))

            if write:
                part(memories[0].written)[...] = True
                if undefined is not None:
                    part(undefined.undefined)[...] = 0
            elif undefined is not None and part(undefined.undefined).any():
                return False
            for claim in self.claims if not atomic[site] else ():
                if claim.what == "block":
                    claim.party = block
                wrote, read = map(part, self._marks(claim, memories[0]))
                if _others(claim, wrote, read, ..., write).any():
                    return False
                _mark(claim, wrote, read, ..., write)
        return True

    def _check(self, claim: Claim, memory: RunArray, access: Access, start: int, event: Event) -> None:
        tables, write = self._marks(claim, memory), access.write
        (wrote, read), at = _entries(access, start, *tables)
        others = _others(claim, wrote, read, at, write)
        if others.any() and not claim.found:
            claim.found = True
            byte = int((access.bytes() + start)[others.ravel()].min())
            writer, reader = (int(t[byte]) for t in tables)
            self._report(claim, memory, byte, write, writer, reader, event)
        _mark(claim, wrote, read, at, write)

    def _marks(self, claim: Claim, memory: RunArray) -> tuple[Array, ...]:
        if memory not in claim.touched:
            claim.touched[memory] = tuple(np.zeros((2, memory.written.size), np.int32))
        return claim.touched[memory]

    def _report(
        self, claim: Claim, memory: RunArray, byte: int, write: bool, writer: int, reader: int, event: Event
    ) -> None:
        did = "writes" if write else "reads"
        other = writer if writer not in (_NOBODY, claim.party + _FIRST) else reader
        how = "writes" if other == writer else "reads"
        who = f"{claim.what} {other - _FIRST}" if other >= _FIRST else "another"
        found = Diagnostic(
            CLAIM,
            f"{claim.what} {claim.party} {did} {memory.element(byte)}, which {who} {how}",
            event.op.loc,
            help="independent iterations and blocks run in any order, or at the same time",
        )
        found.notes.append(("declared independent here", claim.span))
        self.diagnostics.append(found)

    # ---- the end of a run ----

    def holes(self, spans: dict[str, Span | None]) -> None:
        """Report outputs that are not written completely."""
        for memory in self.memories:
            if not memory.output or memory.written.all() or not memory.written.size:
                continue
            item = memory.array.itemsize
            missing = ~memory.written.reshape(-1, item).all(axis=1)
            first = int(np.argmax(missing))
            self.diagnostics.append(
                Diagnostic(
                    HOLES,
                    f"{int(missing.sum())} of {missing.size} elements of output '{memory.name}' are "
                    f"never written, "
                    f"the first is {memory.element(first * item)}",
                    spans.get(memory.name),
                    "warning",
                    help="write all elements, or pass pl.InOut: other elements are undefined after the run",
                )
            )


def _entries(access: Access, start: int, *tables: Array) -> tuple[Sequence[Array], Any]:
    """Return tables with an entry per byte, and an index of the accessed bytes; the accessed memory begins at
    entry `start`. If the bytes of each row are contiguous, the tables are these entries, in place."""
    rows = [access.region.marks(t, start) for t in tables] if access.region is not None else []
    found = [r for r in rows if r is not None]
    return (found, ...) if found else (tables, np.asarray(access.bytes() + start, np.int64))


def _others(claim: Claim, wrote: Array, read: Array, at: Any, write: bool) -> Array:
    """Return which bytes that the current party accesses are used by another party."""
    me = claim.party + _FIRST
    others = (wrote[at] != _NOBODY) & (wrote[at] != me)
    if write:
        others |= (read[at] != _NOBODY) & (read[at] != me)
    return others


def _mark(claim: Claim, wrote: Array, read: Array, at: Any, write: bool) -> None:
    me = claim.party + _FIRST
    if write:
        wrote[at] = me
    else:
        read[at] = np.where((read[at] == _NOBODY) | (read[at] == me), me, _SEVERAL)
