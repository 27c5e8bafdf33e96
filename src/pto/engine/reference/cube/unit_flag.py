"""Unit flags, which pass a matrix in L0C from a product to the fix-pipe without a flag between their pipes.

Every matrix in L0C is free or published. A `mad` with a unit flag waits until its matrix is free, and with
`check_and_set` publishes it. A write-back with a unit flag waits until the matrix is published, and with
`check_and_clear` frees it. The waits are items of the pipes M and FIX, like waits for flags.

Calls on tiles have phases instead (`phased`): such a call waits for the last one of the other pipe on its
tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....ir.core import Operation
from ...watch import GIVE
from ..core import Core, QueueItem, queued
from ..instr import Instr
from .matrix import M0, N0, up


def used(op: Operation) -> bool:
    return op.row is not None and "unit_flag" in op.row.attr_index and op.attr("unit_flag") is not None


def issue(core: Core, i: Instr, execute: Callable[[Instr], object]) -> None:
    """Issue an instruction between its check and, if it has one, its change of the flag."""
    product = i.pipe == "M"
    at = i.arg("dst" if product else "src").offset
    end = at + 4 * up(int(i.arg("m")), M0) * up(int(i.arg("n")), N0)
    core.enqueue(i.pipe, UnitFlagCheck(i.op, at, product))
    core.issue(i, execute)
    if i.attr("unit_flag") != "check_only":
        core.enqueue(i.pipe, Change(i.op, at, product, end))


def phased(op: Operation) -> bool:
    """Return whether an instruction on tiles hands over its accumulator by unit flags."""
    names = [n for n in ("phase", "stPhase") if op.row is not None and n in op.row.attr_index]
    return any(op.attr(n) is not None and str(op.attr(n)) != "unspecified" for n in names)


def issue_phased(core: Core, i: Instr, execute: Callable[[Instr], object]) -> None:
    """Issue an instruction on tiles after the last one of the other pipe on the same accumulator."""
    product = i.pipe == "M"
    tile = i.arg("dst" if product else "src")
    if i.pipe not in ("M", "FIX") or getattr(tile, "loc", "") != "acc":
        core.issue(i, execute)
        return
    other = core.handed.get(("FIX" if product else "M", tile.address))
    if other is not None:
        core.enqueue(i.pipe, Follow(i.op, other))
    core.issue(i, execute)
    done = core.handed[i.pipe, tile.address] = Over(i.op, tile.address)
    core.enqueue(i.pipe, done)


class Over(QueueItem):
    """Marks the end of the work of a pipe on an accumulator."""

    __slots__ = ("given", "is_over")
    what, kind = GIVE, "unit flag"

    def __init__(self, op: Operation, at: int | None) -> None:
        super().__init__(op, at)
        self.given: Any = None
        self.is_over = False

    def perform(self, core: Core, pipe: str) -> None:
        self.given = core.give(self.event, "unit flag", self.key)
        self.is_over = True


class Follow(QueueItem):
    """Waits for the work of the other pipe on an accumulator."""

    __slots__ = ("other",)
    kind = "unit flag"

    def __init__(self, op: Operation, other: Over) -> None:
        super().__init__(op, other.key)
        self.other = other

    def ready(self, core: Core, pipe: str) -> bool:
        return self.other.is_over

    def take(self, core: Core, pipe: str) -> Sequence[Any]:
        return () if self.other.given is None else (self.other.given,)

    def waits_for(self, core: Core, pipe: str) -> str:
        return f"the unit flag of the accumulator at address {self.other.key} of L0C"

    def provider(self, core: Core) -> tuple[Core, str] | None:
        return queued([core], lambda item: item is self.other)


class UnitFlagCheck(QueueItem):
    """Waits until a matrix is free for a product, or published for a write-back."""

    __slots__ = ("at", "product")
    kind = "unit flag"
    unprovided = ", which no mad publishes"

    def __init__(self, op: Operation, at: int, product: bool) -> None:
        super().__init__(op, at)
        self.at = at
        self.product = product

    def ready(self, core: Core, pipe: str) -> bool:
        return (_matrix(core, self.at) in core.published) != self.product

    def take(self, core: Core, pipe: str) -> Sequence[Any]:
        given = core.freed.get(self.at) if self.product else core.published[_matrix(core, self.at)][1]
        return () if given is None else (given,)  # a matrix is free at first

    def waits_for(self, core: Core, pipe: str) -> str:
        return f"the matrix at address {self.at} of L0C to be {'free' if self.product else 'complete'}"

    def provider(self, core: Core) -> tuple[Core, str] | None:
        return queued([core], lambda item: isinstance(item, Change) and item.product != self.product)


class Change(QueueItem):
    """Publishes or frees a matrix."""

    __slots__ = ("at", "end", "product")
    what, kind = GIVE, "unit flag"

    def __init__(self, op: Operation, at: int, product: bool, end: int) -> None:
        super().__init__(op, at)
        self.at = at
        self.end = end
        self.product = product

    def perform(self, core: Core, pipe: str) -> None:
        at = self.at if self.product else _matrix(core, self.at)
        given = core.give(self.event, "unit flag", at)
        if self.product:
            core.published[at] = self.end, given
        else:
            core.published.pop(at, None)
            core.freed[at] = given


def _matrix(core: Core, at: int) -> int:
    """Return the address of the published matrix that contains an address; else the address itself."""
    return next((first for first, (end, _) in core.published.items() if first <= at < end), at)
