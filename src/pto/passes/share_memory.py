"""Addresses in one buffer, with as little sharing as will do.

Bytes that two tiles share make the second one wait for the first, so sharing goes from cheap to dear, see
`SHARING`: nothing at all where there is room; then tiles that only computation touches; then also those that
transfers of different loops, or of none, touch; then all whose lives do not meet. Of these the plan is taken
in which bytes rest longest before the next tile uses them. If lives leave no room, a tile may also be used
while another one holds nothing between two of its values, and results may be written in place of an operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.core import Operation
from ..isa.profiles import HIDDEN_SCRATCH_OF_A2A3
from ..verify.context import pipe_of
from .aliases import Storage
from .allocate import Item, conflicts, load, pack, place
from .in_place import merge
from .liveness import Liveness, joined
from .pipeline import PassContext

#: How a buffer came to fit, in the order in which it is tried.
SHARING = {
    "none": "no bytes are shared",
    "computed": "tiles share bytes when their lives do not meet, except those that transfers touch",
    "outside loops": "tiles share bytes when their lives do not meet, except those of one loop's transfers",
    "lives": "tiles share bytes when their lives do not meet",
    "gaps": "tiles share bytes also while others wait for their next value",
    "in place": "results also take the place of an operand that is not needed any more",
}

_TRANSFERS = ("MTE1", "MTE2", "MTE3", "FIX")

#: Storages with one address, by their numbers.
Groups = list[list[int]]

#: Steps for which shared bytes rest before the next tile uses them, the most first.
_RESTS = (64, 24, 8, 3, 1)


class Planner:
    """One buffer of functions that call each other."""

    def __init__(self, ctx: PassContext, live: Liveness, loc: str, storages: list[Storage]) -> None:
        self.ctx = ctx
        self.live = live
        self.loc = loc
        self.capacity = ctx.profile.capacity[loc]
        self.storages = storages
        self.used = [s for s in storages if s.spans]
        #: What the target itself uses: (address, size) and the steps at which it does.
        self.hidden: list[Item] = []
        at, size = HIDDEN_SCRATCH_OF_A2A3
        if loc == "vec" and live.hidden and at + size <= self.capacity:
            self.hidden.append(Item(size, 1, joined([(n, n) for n in live.hidden]), fixed=at))
        self.sharing = "none"
        self.addresses: dict[Storage, int] = {}
        #: Functions of each launch: what one that nobody calls leads to. Launches do not meet.
        self._launches: list[set[Operation]] = []
        if len({s.function for s in self.used}) > 1:
            called = {f for _, f in live.calls}
            self._launches = [set(live.reach(f)) for f in live.ranges if f not in called]
        self._transfers: list[int] | None = None  # by item: bits of the loops of the transfers that touch it

    def solve(self) -> bool:
        """Find addresses; False where they do not fit."""
        found = self._apart()
        if found is None:
            found = self._shared()
        if found is None:
            return False
        self.addresses = dict(zip(self.used, found, strict=True))
        self.addresses.update({s: 0 for s in self.storages if not s.spans})  # of no use, so in nobody's way
        return True

    def items(self, exact: bool) -> list[Item]:
        return [Item(s.footprint, s.align, s.spans if exact else self.live.hull(s.spans)) for s in self.used]

    def _apart(self) -> list[int] | None:
        """One after the other, if there is room."""
        functions = {s.function for s in self.used}
        if len(functions) <= 1:
            at, found = 0, list[int]()
            for s in self.used:
                at = -(-at // s.align) * s.align
                found.append(at)
                at += s.footprint
            room = min([self.capacity, *[h.fixed for h in self.hidden if h.fixed is not None]])
            return found if at <= room else None
        items = self.items(False)
        clash = [mask & ~(1 << n) for n, mask in enumerate(self._together(_alone(items)))]
        found, failed = place(
            [*items, *self.hidden], _with_fixed(items, self.hidden, clash), range(len(items)), self.capacity
        )
        return found[: len(items)] if failed < 0 else None

    def _together(self, groups: Groups) -> list[int]:
        """For each group of storages the groups (as bits) that may be in use in the same launch."""
        out = [0] * len(groups)
        for launch in self._launches:
            inside = [n for n, g in enumerate(groups) if any(self.used[m].function in launch for m in g)]
            mask = sum(1 << n for n in inside)
            for n in inside:
                out[n] |= mask
        return out

    def clashes(self, items: list[Item], groups: Groups) -> list[int]:
        """Conflicts of groups of storages, then of what the target uses itself."""
        found = conflicts(items)
        if self._launches:
            rest = (1 << len(items)) - (1 << len(groups))
            for n, mask in enumerate(self._together(groups)):
                found[n] &= mask | rest
        return found

    def load(self, items: list[Item], groups: Groups) -> tuple[int, int]:
        """The most bytes in use at one step of a launch, and the step."""
        rest = items[len(groups) :]
        most = (0, 0)
        for launch in self._launches or [None]:
            inside = [
                items[n]
                for n, g in enumerate(groups)
                if launch is None or any(self.used[m].function in launch for m in g)
            ]
            most = max(most, load([*inside, *rest]))
        return most

    def _shared(self) -> list[int] | None:
        order = self._order()
        whole = self.items(False)
        for self.sharing in ("computed", "outside loops", "lives"):
            found = self._share(whole, order)
            if found is not None:
                return self._spread(found, order)
        exact = self.items(True)
        if any(a.spans != b.spans for a, b in zip(whole, exact, strict=True)):
            self.sharing = "gaps"
            found = self._share(exact, order)
            if found is not None:
                return found
        self.sharing = "in place"
        groups = merge(self.live, self.used, self.ctx.profile)
        if groups is None:
            return None
        group_of = {n: k for k, g in enumerate(groups) for n in g}
        found = self._share(_joint(groups, exact), list(dict.fromkeys(group_of[n] for n in order)), groups)
        return None if found is None else [found[group_of[n]] for n in range(len(exact))]

    def _share(
        self, items: list[Item], order: Sequence[int], groups: Groups | None = None, thorough: bool = True
    ) -> list[int] | None:
        """Addresses under the present rule of sharing, of storages or of groups of them."""
        groups = groups or _alone(items)
        everything = [*items, *self.hidden]
        if self.load(everything, groups)[0] > self.capacity:
            return None
        clash = self.clashes(everything, groups)
        apart = self.sharing in ("computed", "outside loops")
        if apart and not self._keep_apart(items, clash):
            return None
        found = pack(everything, clash, order, self.capacity, thorough and not apart)
        return None if found is None else found[: len(items)]

    def _spread(self, found: list[int], order: list[int]) -> list[int]:
        """Leave bytes unused for as long as there is room, so that the next tile there need not wait."""
        end = len(self.live.steps) - 1
        whole = self.items(False)
        for rest in _RESTS:
            items = [
                Item(i.size, i.align, joined([(a, min(b + rest, end)) for a, b in i.spans])) for i in whole
            ]
            better = self._share(items, order, thorough=False)
            if better is not None:
                return better
        return found

    def least(self) -> tuple[list[Item], Groups]:
        """What is left to place when all means of sharing are used, and the storages of each item."""
        exact = self.items(True)
        groups = merge(self.live, self.used, self.ctx.profile) or _alone(exact)
        return [*_joint(groups, exact), *self.hidden], groups

    def _order(self) -> list[int]:
        """First what transfers touch, last what the scalar unit touches; else as first written."""
        numbers = range(len(self.used))
        if self.loc != "vec":
            return list(numbers)
        touched = self._touched()
        return sorted(numbers, key=lambda n: (self.used[n].reserved, not touched[n] & ~1, touched[n] & 1, n))

    def _touched(self) -> list[int]:
        """Of each storage: bit 0 if the scalar unit touches it, bit 1 if a transfer, others for its loops."""
        if self._transfers is None:
            bits: dict[int, int] = {s.bit: 0 for s in self.used}
            mine = sum(1 << b for b in bits)
            live = self.live
            for step, op in enumerate(live.steps):
                mask = (live.reads[step] | live.writes[step]) & mine
                if not mask:
                    continue
                pipe = pipe_of(op, self.ctx.profile)
                mark = 1 if pipe == "S" else 2 | (4 << live.loops[step] if live.loops[step] >= 0 else 0)
                if pipe == "S" or pipe in _TRANSFERS:
                    for s in live.aliases.members(mask):
                        bits[s.bit] |= mark
            self._transfers = [bits[s.bit] for s in self.used]
        return self._transfers

    def _keep_apart(self, items: list[Item], clash: list[int]) -> bool:
        """Add conflicts between storages that transfers touch (in the same loop); False if hopeless."""
        touched = self._touched()
        groups: dict[int, int] = {}
        for n, t in enumerate(touched):
            if t & 2:
                for loop in _bits(t >> 2) if self.sharing == "outside loops" else (0,):
                    groups[loop] = groups.get(loop, 0) | 1 << n
        for mask in groups.values():
            if sum(items[n].size for n in _bits(mask)) > self.capacity:
                return False
            for n in _bits(mask):
                clash[n] |= mask & ~(1 << n)
        return True


def _alone(items: list[Item]) -> Groups:
    return [[n] for n in range(len(items))]


def _with_fixed(items: list[Item], fixed: list[Item], clash: list[int]) -> list[int]:
    """Conflicts of items that keep clear of all fixed ones."""
    mask = sum(1 << len(items) + n for n in range(len(fixed)))
    return [m | mask for m in clash] + [(1 << len(items)) - 1 for _ in fixed]


def _joint(groups: Groups, items: list[Item]) -> list[Item]:
    """One item for each group."""
    return [
        Item(items[g[0]].size, items[g[0]].align, joined([span for n in g for span in items[n].spans]))
        for g in groups
    ]


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
