"""Packing: addresses for items that live at some steps, in a buffer of some capacity.

Items that conflict (they have common steps) must not share bytes. The problem is NP-hard, so `pack` tries
several methods, the cheap and readable ones first: first fit in the given order, then other orders and best
fit, then orders that move items without room to the front, then, for few items, a search. It fails only if
all of them do.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence

Spans = list[tuple[int, int]]

#: Limits: rounds that move an item without room to the front; items and placements of the search.
_ROUNDS = 48
_SEARCHED_ITEMS, _SEARCHED_STATES = 18, 4000


class Item:
    """An item to place: `size` bytes at a multiple of `align`, at the steps of `spans`.

    At the steps of `below` it conflicts only with items that have these steps in their `spans`. `fixed` is a
    given address.
    """

    __slots__ = ("align", "below", "fixed", "size", "spans")

    def __init__(
        self, size: int, align: int, spans: Spans, fixed: int | None = None, below: Spans | None = None
    ) -> None:
        self.size = size
        self.align = align
        self.spans = spans
        self.fixed = fixed
        self.below = below or []

    @property
    def length(self) -> int:
        return sum(b - a + 1 for a, b in self.spans)


def conflicts(items: Sequence[Item]) -> list[int]:
    """Return for each item the set (as bits) of the items with a common step, without itself."""
    events = [(a, b, n, False) for n, item in enumerate(items) for a, b in item.spans]
    events += [(a, b, n, True) for n, item in enumerate(items) for a, b in item.below]
    events.sort()
    found = [0] * len(items)
    active: list[tuple[int, int, bool]] = []  # last step, number, below
    for first, last, n, below in events:
        if active and active[0][0] < first:
            active = [entry for entry in active if entry[0] >= first]
        bit = 1 << n
        for _, m, other in active:
            if not (below and other):
                found[n] |= 1 << m
                found[m] |= bit
        insort(active, (last, n, below))
    return [m & ~(1 << n) for n, m in enumerate(found)]


def load(items: Sequence[Item]) -> tuple[int, int]:
    """Return the most bytes that are occupied at one step, and the first such step; `below` does not
    count."""
    change: dict[int, int] = {}
    for item in items:
        for a, b in item.spans:
            change[a] = change.get(a, 0) + item.size
            change[b + 1] = change.get(b + 1, 0) - item.size
    most = now = at = 0
    for step in sorted(change):
        now += change[step]
        if now > most:
            most, at = now, step
    return most, at


def place(
    items: Sequence[Item], clash: Sequence[int], order: Sequence[int], capacity: int, best: bool = False
) -> tuple[list[int], int]:
    """Choose addresses in order, each the lowest free one (or the tightest gap). Return them and the item
    that did not fit, or -1.
    """
    found = [-1] * len(items)
    placed = 0
    for n, item in enumerate(items):
        if item.fixed is not None:
            found[n] = item.fixed
            placed |= 1 << n
    for n in order:
        item = items[n]
        if item.fixed is not None:
            continue
        size, align = item.size, item.align
        busy: list[tuple[int, int]] = []
        mask = clash[n] & placed
        while mask:
            low = mask & -mask
            m = low.bit_length() - 1
            busy.append((found[m], found[m] + items[m].size))
            mask ^= low
        busy.sort()
        at = 0
        choice, slack = -1, capacity + 1
        for low, high in busy:
            if low - at >= size:
                if not best:
                    choice = at
                    break
                if low - at - size < slack:
                    choice, slack = at, low - at - size
            if high > at:
                at = -(-high // align) * align
        else:
            if choice < 0 and at + size <= capacity:
                choice = at
        if choice < 0:
            return found, n
        found[n] = choice
        placed |= 1 << n
    return found, -1


def _orders(items: Sequence[Item], clash: Sequence[int]) -> Iterator[list[int]]:
    """Yield orders to try after the given one."""
    numbers = [n for n, item in enumerate(items) if item.fixed is None]
    lengths = [item.length for item in items]
    first = [item.spans[0][0] if item.spans else 0 for item in items]
    yield sorted(numbers, key=lambda n: -items[n].size)
    yield sorted(numbers, key=lambda n: (-lengths[n], -items[n].size))
    yield sorted(numbers, key=lambda n: -items[n].size * lengths[n])
    yield sorted(numbers, key=lambda n: (first[n], -items[n].size))
    yield sorted(numbers, key=lambda n: -clash[n].bit_count() * items[n].size)
    yield sorted(numbers, key=lambda n: -(items[n].spans[-1][1] if items[n].spans else 0))


def pack(
    items: Sequence[Item], clash: Sequence[int], order: Sequence[int], capacity: int, thorough: bool = True
) -> list[int] | None:
    """Return an address for each item, or None if no method fits the capacity."""
    found, failed = place(items, clash, order, capacity)
    if failed < 0:
        return found
    ways = [(list(order), True)]
    for other in _orders(items, clash):
        ways += [(other, False), (other, True)]
    if not thorough:
        ways = ways[:3]
    for other, best in ways:
        found, failed = place(items, clash, other, capacity, best)
        if failed < 0:
            return found
    if not thorough:
        return None
    return _promote(items, clash, capacity) or _search(items, clash, capacity)


def _promote(items: Sequence[Item], clash: Sequence[int], capacity: int) -> list[int] | None:
    """Retry with the item that did not fit moved to the front."""
    rounds = max(4, min(_ROUNDS, 40000 // (len(items) + 1)))
    for start in (next(_orders(items, clash)), [n for n, item in enumerate(items) if item.fixed is None]):
        order, seen = start, set[tuple[int, ...]]()
        for _ in range(rounds):
            found, failed = place(items, clash, order, capacity)
            if failed < 0:
                return found
            order = [failed, *(n for n in order if n != failed)]
            if tuple(order) in seen:
                break
            seen.add(tuple(order))
    return None


def _search(items: Sequence[Item], clash: Sequence[int], capacity: int) -> list[int] | None:
    """Search all placements next to other items, largest items first, up to a limit."""
    loose = [n for n, item in enumerate(items) if item.fixed is None]
    if len(loose) > _SEARCHED_ITEMS:
        return None
    order = sorted(loose, key=lambda n: (-items[n].size, items[n].spans[:1]))
    found = [-1 if item.fixed is None else item.fixed for item in items]
    left = _SEARCHED_STATES

    def step(depth: int) -> bool:
        nonlocal left
        if depth == len(order):
            return True
        n = order[depth]
        size, align = items[n].size, items[n].align
        near = [
            (found[m], found[m] + items[m].size)
            for m in range(len(items))
            if clash[n] >> m & 1 and found[m] >= 0
        ]
        spots = sorted({0, *(-(-high // align) * align for _, high in near)})
        for at in spots:
            left -= 1
            if left < 0:
                return False
            if at + size <= capacity and not any(low < at + size and at < high for low, high in near):
                found[n] = at
                if step(depth + 1):
                    return True
                found[n] = -1
        return False

    return found if step(0) else None


def smallest(items: Sequence[Item], clash: Sequence[int], order: Sequence[int], least: int) -> int:
    """Return the least capacity that some method needs; `least` is the peak of the occupied bytes."""
    if pack(items, clash, order, least) is not None:
        return least
    best = sum(item.size + item.align for item in items) + max((i.fixed or 0 for i in items), default=0)
    for other in (list(order), *_orders(items, clash)):
        for tight in (False, True):
            found, _ = place(items, clash, other, best, tight)
            best = min(best, top(items, found) if min(found, default=0) >= 0 else best)
    for _ in range(_ROUNDS):
        found = _promote(items, clash, best - 1)
        if found is None:
            break
        best = top(items, found)
    return best


def top(items: Sequence[Item], addresses: Sequence[int]) -> int:
    """Return the end of the highest item."""
    return max((a + item.size for a, item in zip(addresses, items, strict=True)), default=0)
