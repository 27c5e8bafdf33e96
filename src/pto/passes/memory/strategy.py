"""Addresses in one buffer, with as little sharing as possible.

If two tiles share bytes, the second one waits for the first. Sharing is tried in the order of its cost, see
`SHARING`: none if there is room; then tiles that only computation accesses; then also tiles of transfers in
different loops, or in none; then all tiles with disjoint lifetimes. If there is still no room, a tile may
also use the bytes of another one while that one is empty between two of its values, and results may be
written in place of an operand. The chosen plan uses the whole buffer. Few tiles are placed so that waits are
short (see `spread`). With many tiles, shared bytes stay unused for as many steps as possible.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.core import Operation
from ...ir.facts import pipe_of
from ..aliases import AllocatedStorage
from ..liveness import Liveness, joined
from ..pipeline import PassContext
from .accumulate import Accumulators
from .in_place import merge
from .pack import Item, conflicts, load, pack, place
from .spread import MOST, TRANSFERS, Waits, spread

#: The kinds of sharing, in the order of attempts.
SHARING = {
    "none": "no bytes are shared",
    "computed": "tiles with disjoint lifetimes share bytes, except tiles of transfers",
    "outside loops": "tiles with disjoint lifetimes share bytes, except tiles of transfers in one loop",
    "lives": "tiles with disjoint lifetimes share bytes",
    "gaps": "tiles share bytes also while others are empty between two values",
    "in place": "results are also written in place of an operand that is dead afterwards",
}

#: Kinds of sharing that keep some tiles apart although their lifetimes are disjoint.
_APART = ("computed", "outside loops")

#: Storages with one address, by their indices in `Planner.used`.
Groups = list[list[int]]

#: Numbers of steps for which shared bytes stay unused before the next tile, the largest first.
_RESTS = (64, 24, 8, 3, 2, 1)


class Planner:
    """The planning of one buffer, for functions that call each other."""

    def __init__(
        self,
        ctx: PassContext,
        live: Liveness,
        loc: str,
        storages: list[AllocatedStorage],
        accumulators: Accumulators,
    ) -> None:
        self.ctx = ctx
        self.live = live
        self.loc = loc
        self.capacity = ctx.profile.capacity[loc]
        self.storages = storages
        self.used = [s for s in storages if s.spans]
        self.groups: Groups = accumulators.groups([s.bit for s in self.used])
        #: The target's own scratch, and the steps that use it.
        self.hidden: list[Item] = []
        own = ctx.profile.own_tmp
        if loc == "vec" and live.hidden and own is not None and sum(own) <= self.capacity:
            at, size = own
            self.hidden.append(Item(size, 1, joined([(n, n) for n in live.hidden]), fixed=at))
        self.sharing = "none"
        self.addresses: dict[AllocatedStorage, int] = {}
        #: Functions of each launch: those that a function without callers reaches. Launches never overlap in
        #: time.
        self._launches: list[set[Operation]] = []
        if len({s.function for s in self.used}) > 1:
            called = {f for _, f in live.calls}
            self._launches = [set(live.reach(f)) for f in live.ranges if f not in called]
        self._marks: dict[int, int] | None = None

    def solve(self) -> bool:
        """Find addresses; return False if they do not fit."""
        found = self._apart(self.groups)
        if found is None:
            found = self._shared()
        if found is None:
            return False
        for group, address in zip(self.groups, found, strict=True):
            for n in group:
                self.addresses[self.used[n]] = address
        self.addresses.update({s: 0 for s in self.storages if not s.spans})  # unused tiles conflict with none
        return True

    def items(self, groups: Groups, exact: bool) -> list[Item]:
        """Return the items to place: each group with the steps at which one of its storages is occupied."""
        out: list[Item] = []
        for group in groups:
            first = self.used[group[0]]
            spans, below, size = first.spans, first.below, first.footprint
            if len(group) > 1:
                spans = joined([span for n in group for span in self.used[n].spans])
                below = joined([span for n in group for span in self.used[n].below])
                size = max(self.used[n].footprint for n in group)
            out.append(Item(size, first.align, spans if exact else self.live.hull(spans), below=below))
        return out

    def least(self) -> tuple[list[Item], Groups]:
        """Return the items to place with all kinds of sharing, and the storages of each item."""
        groups = merge(self.live, self.used, self.groups, self.ctx.profile) or self.groups
        return [*self.items(groups, True), *self.hidden], groups

    # -- without sharing -------------------------------------------------------------------------------

    def _apart(self, groups: Groups) -> list[int] | None:
        """Return adjacent addresses without sharing, if there is room."""
        items = self.items(groups, True)
        if not self._launches:
            at, found = 0, list[int]()
            for item in items:
                at = -(-at // item.align) * item.align
                found.append(at)
                at += item.size
            room = min([self.capacity, *[h.fixed for h in self.hidden if h.fixed is not None]])
            return found if at <= room else None
        hidden = sum(1 << len(items) + n for n in range(len(self.hidden)))
        clash = [mask & ~(1 << n) | hidden for n, mask in enumerate(self._together(groups))]
        clash += [(1 << len(items)) - 1 for _ in self.hidden]
        found, failed = place([*items, *self.hidden], clash, range(len(items)), self.capacity)
        return found[: len(items)] if failed < 0 else None

    # -- with sharing ----------------------------------------------------------------------------------

    def _shared(self) -> list[int] | None:
        order = self._order()
        whole = self.items(self.groups, False)
        for self.sharing in ("computed", "outside loops", "lives"):
            found = self._share(whole, self.groups, order)
            if found is not None:
                if len(whole) > MOST:
                    return self._rest(whole, order) or found
                return self._spread(whole, order, found)
        exact = self.items(self.groups, True)
        if any(a.spans != b.spans for a, b in zip(whole, exact, strict=True)):
            self.sharing = "gaps"
            found = self._share(exact, self.groups, order)
            if found is not None:
                return self._spread(exact, order, found)
        self.sharing = "in place"
        groups = merge(self.live, self.used, self.groups, self.ctx.profile)
        if groups is None:
            return None
        rank = {n: k for k, g in enumerate(order) for n in self.groups[g]}
        order = sorted(range(len(groups)), key=lambda g: min(rank[n] for n in groups[g]))
        self.groups = groups
        exact = self.items(groups, True)
        found = self._share(exact, groups, order)
        return None if found is None else self._spread(exact, order, found)

    def _share(
        self, items: list[Item], groups: Groups, order: list[int], thorough: bool = True
    ) -> list[int] | None:
        """Return addresses under the present kind of sharing."""
        everything = [*items, *self.hidden]
        if self.load(everything, groups)[0] > self.capacity:
            return None
        clash = self._conflicts(items)
        if clash is None:
            return None
        thorough = thorough and self.sharing not in _APART
        found = pack(everything, clash, order, self.capacity, thorough)
        return None if found is None else found[: len(items)]

    def _conflicts(self, items: list[Item]) -> list[int] | None:
        """Return for each item, and for hidden scratch, its conflicts; None if the items cannot all fit."""
        clash = conflicts([*items, *self.hidden])
        return None if self.sharing in _APART and not self._keep_apart(items, clash) else clash

    def _spread(self, items: list[Item], order: list[int], found: list[int]) -> list[int]:
        """Spread the same tiles over the whole buffer, by waits."""
        clash = self._conflicts(items) if len(items) <= MOST else None
        if clash is None:
            return found
        costs = Waits(self.live, self.used, self.groups, self.ctx.profile).matrix(clash)
        known = [*found, *(h.fixed or 0 for h in self.hidden)]
        return spread([*items, *self.hidden], costs, order, known, self.capacity)[: len(items)]

    def _rest(self, whole: list[Item], order: list[int]) -> list[int] | None:
        """Leave bytes unused for some steps, if there is room, so that the next tile there need not wait."""
        end = len(self.live.steps) - 1
        for rest in _RESTS:
            items = [
                Item(i.size, i.align, joined([(a, min(b + rest, end)) for a, b in i.spans]), below=i.below)
                for i in whole
            ]
            found = self._share(items, self.groups, order, thorough=False)
            if found is not None:
                return found
        return None

    def load(self, items: list[Item], groups: Groups) -> tuple[int, int]:
        """Return the largest number of bytes in use at one step, including the live bytes of callers, and
        that step.
        """
        if not self.live.calls:
            return load(items)
        most = (0, 0)
        kept = self._kept(items, groups)
        for function, (first, end) in self.live.ranges.items():
            inside: list[Item] = []
            for item in items:
                spans = [(max(a, first), min(b, end - 1)) for a, b in item.spans if first <= b and a < end]
                inside.append(Item(item.size, 1, spans))
            here, step = load(inside)
            most = max(most, (here + kept.get(function, 0), step))
        return most

    def _kept(self, items: list[Item], groups: Groups) -> dict[Operation, int]:
        """Return the largest number of live bytes of the callers of a function while it runs."""
        live = self.live
        where: list[tuple[Operation, int, Operation]] = []  # caller, its live bytes, callee
        for step, callee in live.calls:
            caller = next(f for f, (a, b) in live.ranges.items() if a <= step < b)
            there = live.occupied(step)
            keeps = [any(there >> self.used[n].bit & 1 and self.used[n].below for n in g) for g in groups]
            where.append((caller, sum(items[n].size for n, yes in enumerate(keeps) if yes), callee))
        kept: dict[Operation, int] = {}
        for _ in live.ranges:  # calls are at most this deep
            for caller, own, callee in where:
                kept[callee] = max(kept.get(callee, 0), kept.get(caller, 0) + own)
        return kept

    def _together(self, groups: Groups) -> list[int]:
        """Return for each group of storages the groups (as bits) that may be in use in the same launch."""
        out = [0] * len(groups)
        for launch in self._launches:
            inside = [n for n, g in enumerate(groups) if self._in(g, launch)]
            mask = sum(1 << n for n in inside)
            for n in inside:
                out[n] |= mask
        return out

    def _in(self, group: list[int], launch: set[Operation]) -> bool:
        return any(self.used[n].function in launch for n in group)

    # -- tiles of transfers ----------------------------------------------------------------------------

    def _order(self) -> list[int]:
        """Return the order of groups: tiles of transfers first, tiles of the scalar unit last, else by first
        write."""
        numbers = range(len(self.groups))
        if self.loc != "vec":
            return list(numbers)
        touched = self._touched()
        reserved = [any(self.used[n].reserved for n in g) for g in self.groups]
        return sorted(numbers, key=lambda n: (reserved[n], not touched[n] & ~1, touched[n] & 1, n))

    def _touched(self) -> list[int]:
        """Return for each group: bit 0 if the scalar unit accesses it, bit 1 for a transfer, others for its
        loops."""
        if self._marks is None:
            live = self.live
            marks = self._marks = {s.bit: 0 for s in self.used}
            mine = sum(1 << bit for bit in marks)
            for step, op in enumerate(live.steps):
                mask = (live.reads[step] | live.writes[step]) & mine
                if not mask:
                    continue
                pipe = pipe_of(op, self.ctx.profile)
                mark = 1 if pipe == "S" else 2 | (4 << live.loops[step] if live.loops[step] >= 0 else 0)
                if pipe == "S" or pipe in TRANSFERS:
                    for s in live.aliases.members(mask):
                        marks[s.bit] |= mark
        out: list[int] = []
        for group in self.groups:
            mark = 0
            for n in group:
                mark |= self._marks[self.used[n].bit]
            out.append(mark)
        return out

    def _keep_apart(self, items: list[Item], clash: list[int]) -> bool:
        """Add conflicts between groups of transfers (in the same loop); return False if they cannot fit."""
        by_loop: dict[int, int] = {}
        for n, mark in enumerate(self._touched()):
            if mark & 2:
                for loop in _bits(mark >> 2) if self.sharing == "outside loops" else (0,):
                    by_loop[loop] = by_loop.get(loop, 0) | 1 << n
        for mask in by_loop.values():
            if sum(items[n].size for n in _bits(mask)) > self.capacity:
                return False
            for n in _bits(mask):
                clash[n] |= mask & ~(1 << n)
        return True


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
