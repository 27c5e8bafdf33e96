"""Results in place: a destination that takes the storage of an operand that is dead afterwards.

An instruction whose row allows it (`in_place`) may write its destination over a source with its last use
there, if both are tiles of one type, so that elements keep their positions. `merge` joins such tiles into
groups with one address; scratch operands never share with a destination.
"""

from __future__ import annotations

from ...ir.core import Operation, Value
from ...isa.profiles import Profile
from ..aliases import AllocatedStorage
from ..liveness import Liveness, Spans


def merge(
    live: Liveness, storages: list[AllocatedStorage], groups: list[list[int]], profile: Profile
) -> list[list[int]] | None:
    """Return larger groups of storages with one address each; None if no group can grow."""
    number = {s.bit: n for n, s in enumerate(storages)}
    allowed: dict[tuple[int, int], set[int]] = {}
    for step, op in enumerate(live.steps):
        for a, b in _pairs(live, op, step, profile.isa):
            if a in number and b in number and a != b:
                allowed.setdefault((number[a], number[b]), set()).add(step)
    group = {n: g for g in map(list, groups) for n in g}
    grown = False
    for (a, b), _ in sorted(allowed.items(), key=lambda pair: min(pair[1])):
        if group[a] is group[b] or storages[a].footprint != storages[b].footprint:
            continue
        pairs = [(m, n) for m in group[a] for n in group[b]]
        steps = [allowed.get((m, n), set()) | allowed.get((n, m), set()) for m, n in pairs]
        if any(_in_the_way(storages[m], storages[n], at) for (m, n), at in zip(pairs, steps, strict=True)):
            continue
        group[a].extend(group[b])
        for n in group[b]:
            group[n] = group[a]
        grown = True
    return [group[n] for n in range(len(storages)) if group[n][0] == n] if grown else None


def _in_the_way(a: AllocatedStorage, b: AllocatedStorage, allowed: set[int]) -> bool:
    """Return True if two storages need separate bytes; storages of a callee always need other bytes than
    those of the caller.
    """
    return (
        _meet(a.spans, b.spans, allowed) or _meet(a.below, b.spans, set()) or _meet(a.spans, b.below, set())
    )


def _meet(a: Spans, b: Spans, allowed: set[int]) -> bool:
    """Return True if two storages are occupied at a common step at which they may not share."""
    m = n = 0
    while m < len(a) and n < len(b):
        low, high = max(a[m][0], b[n][0]), min(a[m][1], b[n][1])
        if low <= high and (low != high or low not in allowed):
            return True
        if a[m][1] <= b[n][1]:
            m += 1
        else:
            n += 1
    return False


def _pairs(live: Liveness, op: Operation, step: int, isa: str) -> list[tuple[int, int]]:
    """Return the (source, destination) storages that may share at an instruction."""
    row = op.row
    if row is None or not row.in_place:
        return []
    free = row.in_place == "any" or (bool(row.in_place_on) and isa not in row.in_place_on)
    names = row.in_place.split()
    outs = [v for o, v in op.named() if o.role == "out"]
    target = _alone(live, outs[0]) if len(outs) == 1 else -1
    if target < 0:
        return []
    barred = live.after[step]  # storages that are live after it, or read by other operands
    sources: list[Value] = []
    for declared, value in op.named():
        if declared.role == "in" and (free or declared.name in names) and value.type == outs[0].type:
            sources.append(value)
        elif declared.role != "out":
            barred |= live.aliases.of(value)
    found = [_alone(live, value) for value in sources]
    return [(source, target) for source in found if source >= 0 and not barred >> source & 1]


def _alone(live: Liveness, value: Value) -> int:
    """Return the only storage that a value covers, or -1."""
    mask = live.aliases.of(value)
    if not mask or mask & (mask - 1):
        return -1
    storage = live.aliases.storages[mask.bit_length() - 1]
    return storage.bit if storage.value.type == value.type else -1
