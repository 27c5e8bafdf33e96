"""Spread few tiles over a whole buffer, so that tiles that share bytes wait least.

Two tiles that share bytes cost a wait: the instruction that fills the second one waits for the last use of
the first. The wait is cheap if both run on one pipe, which keeps its order anyway, or far apart in time. It
is expensive for a transfer, which should run ahead of the computation. In a loop the first tile of the next
iteration also waits for the second one. `spread` looks for addresses with the least sum of these costs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from ...ir.facts import pipe_of
from ...isa.profiles import Profile
from ..aliases import AllocatedStorage
from ..liveness import Liveness
from .pack import Item

#: The most items that are placed by cost; more items take too long.
MOST = 32

TRANSFERS = ("MTE1", "MTE2", "MTE3", "FIX")

#: The cost of a wait of one step: of a transfer, of another pipe; and the factor in a loop.
_TRANSFER, _OTHER, _LOOP = 256, 128, 4

#: Passes over all items that move each item to a better address.
_SWEEPS = 3

#: More than all waits together, for items that must not share bytes.
_NEVER = 1 << 40


class Waits:
    """The steps and pipes of uses of storages, and the cost if two groups of storages share bytes."""

    def __init__(
        self, live: Liveness, used: Sequence[AllocatedStorage], groups: list[list[int]], target: Profile
    ) -> None:
        group = {used[n].bit: g for g, members in enumerate(groups) for n in members}
        mine = sum(1 << bit for bit in group)
        #: By group: the first step with its pipe, and the last step on each pipe.
        self._first: list[tuple[int, str]] = [(-1, "")] * len(groups)
        self._last: list[dict[str, int]] = [{} for _ in groups]
        self._loops: dict[int, tuple[int, int]] = {}
        for step, op in enumerate(live.steps):
            loop = live.loops[step]
            if loop >= 0:
                self._loops[loop] = (self._loops.get(loop, (step, step))[0], step)
            mask = (live.reads[step] | live.writes[step]) & mine
            if mask:
                pipe = pipe_of(op, target) or "S"
                for g in {group[s.bit] for s in live.aliases.members(mask)}:
                    if self._first[g][0] < 0:
                        self._first[g] = (step, pipe)
                    self._last[g][pipe] = step
        self._ranges = [live.ranges[used[members[0]].function] for members in groups]

    def matrix(self, clash: Sequence[int]) -> list[list[int]]:
        """Return the cost of each pair of groups; fixed items come after the groups."""
        count = len(self._first)
        out = [[_NEVER if mask >> m & 1 else 0 for m in range(len(clash))] for mask in clash]
        for n in range(count):
            for m in range(n):
                if not out[n][m]:
                    out[n][m] = out[m][n] = self.cost(n, m)
        return out

    def cost(self, a: int, b: int) -> int:
        if self._ranges[a] != self._ranges[b] or not self._last[a] or not self._last[b]:
            return 1  # the groups are in different functions, or the other end of a FIFO uses one
        if self._first[b] < self._first[a]:
            a, b = b, a
        start, end = self._first[a][0], max(self._last[b].values())
        turns = [high - low + 1 for low, high in self._loops.values() if low <= start and end <= high]
        once = self._wait(a, b, 0)
        return (once + self._wait(b, a, min(turns))) * _LOOP if turns else once

    def _wait(self, a: int, b: int, turn: int) -> int:
        """Return the cost of filling b, `turn` steps later, after the last use of a."""
        step, pipe = self._first[b]
        most = 1
        for other, last in self._last[a].items():
            if other != pipe:
                most = max(most, (_TRANSFER if pipe in TRANSFERS else _OTHER) // max(1, step + turn - last))
        return most


def spread(
    items: Sequence[Item],
    costs: Sequence[Sequence[int]],
    order: Sequence[int],
    known: Sequence[int],
    capacity: int,
) -> list[int]:
    """Return the cheapest addresses among those tried, which include the `known` ones."""
    by_size = sorted(order, key=lambda n: -items[n].size)
    plans = [list(known)]
    for way in [list(order)] if by_size == list(order) else [list(order), by_size]:
        found = [-1 if item.fixed is None else item.fixed for item in items]
        if all(_move(items, costs, found, n, capacity) for n in way):
            plans.append(found)
    best = min(plans, key=lambda found: _total(items, costs, found))
    for _ in range(_SWEEPS):  # move one item at a time
        moved = list(best)
        for n in order:
            _move(items, costs, moved, n, capacity)
        if _total(items, costs, moved) >= _total(items, costs, best):
            break
        best = moved
    return best


def _move(
    items: Sequence[Item], costs: Sequence[Sequence[int]], found: list[int], n: int, capacity: int
) -> bool:
    """Move an item to the lowest address with the least cost; return False if it conflicts everywhere."""
    size, align, cost = items[n].size, items[n].align, costs[n]
    others = [m for m, at in enumerate(found) if at >= 0 and m != n]
    starts = sorted((found[m], cost[m]) for m in others)
    ends = sorted((found[m] + items[m].size, cost[m]) for m in others)
    before = list(accumulate((c for _, c in starts), initial=0))  # prefix sums of costs by start
    over = list(accumulate((c for _, c in ends), initial=0))
    spots = {0, (capacity - size) // align * align, *(-(-end // align) * align for end, _ in ends), found[n]}
    best = (_NEVER, 0)
    for at in sorted(spots):
        if 0 <= at <= capacity - size:
            here = before[bisect_left(starts, (at + size, -1))] - over[bisect_left(ends, (at + 1, -1))]
            best = min(best, (here, at))
    if best[0] >= _NEVER:
        return False
    found[n] = best[1]
    return True


def _total(items: Sequence[Item], costs: Sequence[Sequence[int]], found: Sequence[int]) -> int:
    """Return the cost of all pairs that share bytes."""
    order = sorted(range(len(items)), key=lambda n: found[n])
    total = 0
    for k, n in enumerate(order):
        end = found[n] + items[n].size
        for m in order[k + 1 :]:
            if found[m] >= end:
                break
            total += costs[n][m]
    return total
