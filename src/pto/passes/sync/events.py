"""Event ids: eight per pair of pipes, a few of them reserved.

Two flags of the same pipes that are set at the same time need different ids; so do a flag that is set during
a call and the flags of the called function. A flag takes an unused id if there is one, else the lowest id
that is free from its set to its wait. A flag of the next iteration is set once more at the start of the
program and waited for once more at its end, so it keeps its id throughout.
If a pair runs out of ids:

1. its carried flags are set and drained around their outermost loop, then around their own;
2. overlapping flags are merged: set after the later and waited for before the earlier of them;
3. a flag is waited for right after it is set;
4. a barrier of all pipes replaces the wait.
"""

from __future__ import annotations

from ...isa.machine import EVENT_IDS
from .flags import Barrier, Flag, Flags, Wait
from .linear import BLOCKS, LOOP, CoreProgram, Seq, Step

IDS = EVENT_IDS
#: Pairs of pipes whose last id is reserved.
RESERVED = frozenset((("V", "S"), ("S", "V"), ("MTE2", "V")))

#: Pairs of pipes whose first two ids are used inside instructions that move data between ranks.
TAKEN = frozenset((("MTE2", "MTE3"), ("MTE3", "MTE2")))

#: Order within a step: waits before it, initial sets before it, then sets after it, final waits after it.
_WAIT, _PRIME, _SET, _DRAIN = range(4)
Interval = tuple[int, int]
#: By id, the intervals of its flags; None for flags of a called function.
Taken = dict[int, list[tuple[Interval, Flag | None]]]
_FUNCTION, _OUTERMOST, _OWN, _SHARED = range(4)


def number(seq: Seq, at: int = 0) -> int:
    """Number all steps in program order."""
    for step in seq.steps:
        step.begin = at
        at += 1
        for inner in step.seqs:
            at = number(inner, at)
        step.end = at
        at += 1
    return at


class Events:
    """Assigns ids to the flags of a program."""

    def __init__(self, program: CoreProgram, flags: Flags, ids: int = IDS) -> None:
        self.program = program
        self.flags = flags
        self.ids = ids
        #: Numbers of merged, narrowed and replaced flags, for statistics.
        self.merged = self.narrowed = self.spilled = 0

    def run(self) -> None:
        number(self.program.root)
        pairs: dict[tuple[int, int], list[Flag]] = {}
        for flag in self._ordered(self.program.root):
            pairs.setdefault((flag.src, flag.dst), []).append(flag)
        # blocks that branch to each other have no common start and end
        modes = (_FUNCTION, _OUTERMOST, _OWN, _SHARED)[
            any(s.kind == BLOCKS for s in self.program.root.steps) :
        ]
        for pair, flags in pairs.items():
            for mode in modes:
                if self._assign(pair, flags, mode):
                    break

    def _ordered(self, seq: Seq) -> list[Flag]:
        """Return the flags in the order of their waits."""
        found: list[Flag] = []
        for step in seq.steps:
            found += [item.flag for item in step.before if isinstance(item, Wait)]
            for inner in step.seqs:
                found += self._ordered(inner)
        return found

    def _available(self, pair: tuple[int, int]) -> list[int]:
        names = self.program.pipes[pair[0]], self.program.pipes[pair[1]]
        first = 0 if self.program.several < 0 or names not in TAKEN else 2
        return list(range(first, self.ids - (names in RESERVED)))

    def _assign(self, pair: tuple[int, int], flags: list[Flag], mode: int) -> bool:
        """Try to assign ids to the flags of a pair of pipes; the last mode always succeeds."""
        taken: Taken = {n: self._elsewhere((*pair, n)) for n in self._available(pair)}
        if mode == _SHARED:
            flags = self._share(flags)
        for flag in flags:
            flag.prime_at = _around(flag, mode)
            if self._take(flag, taken):
                continue
            if mode != _SHARED:
                return False
            self._make_room(flag, taken)
        return True

    def _elsewhere(self, flag: tuple[int, int, int]) -> list[tuple[Interval, Flag | None]]:
        """Return the intervals in which called functions use a flag."""
        program = self.program
        return [
            ((4 * c.begin + _PRIME, 4 * c.end + _SET - 1), None)
            for c in program.calls
            if program.uses(c, flag)
        ]

    def _take(self, flag: Flag, taken: Taken) -> bool:
        wanted = _interval(flag)
        found = next((n for n, users in taken.items() if not users), -1)
        if found < 0:
            found = next((n for n, users in taken.items() if _free(wanted, users)), -1)
        if found < 0:
            return False
        flag.id = found
        taken[found].append((wanted, flag))
        return True

    def _share(self, flags: list[Flag]) -> list[Flag]:
        """Merge all flags that a loop carries between two pipes into one."""
        kept: list[Flag] = []
        by_loop: dict[Step, Flag] = {}
        for flag in flags:
            other = by_loop.get(flag.loop) if flag.loop is not None else None
            if other is None:
                kept.append(flag)
                if flag.loop is not None:
                    by_loop[flag.loop] = flag
                continue
            # flags are in the order of their waits: the first wait is the earliest
            last = max(flag.set_at, other.set_at, key=lambda s: s.end)
            self.flags.drop(flag, other)
            self.flags.move_set(other, last)
            self.merged += 1
        return kept

    def _make_room(self, flag: Flag, taken: Taken) -> None:
        wanted = _interval(flag)
        if flag.loop is None:
            others = [
                (n, i, other)
                for n, users in taken.items()
                for i, (interval, other) in enumerate(users)
                if other is not None
                and other.loop is None
                and other.set_at.seq is flag.set_at.seq
                and _meet(wanted, interval)
            ]
            if others:  # keep the earlier wait and the later set
                n, i, other = max(others, key=lambda o: o[2].set_at.end)
                if flag.set_at.end > other.set_at.end:
                    self.flags.move_set(other, flag.set_at)
                    taken[n][i] = _interval(other), other
                self.flags.drop(flag, other)
                self.merged += 1
                return
            following = flag.set_at.seq.steps[flag.set_at.at + 1]
            if following is not flag.wait_at:
                self.flags.move_wait(flag, following)
                self.narrowed += 1
                if self._take(flag, taken):
                    return
        flag.wait_at.before.append(Barrier(-1, flag.steps[0]))
        self.flags.drop(flag)
        self.spilled += 1


def _interval(flag: Flag) -> Interval:
    """Return the interval in which a flag may be set."""
    if flag.loop is None:
        return 4 * flag.set_at.end + _SET, 4 * flag.wait_at.begin + _WAIT
    if flag.prime_at is None:
        return -1, 1 << 60
    return 4 * flag.prime_at.begin + _PRIME, 4 * flag.prime_at.end + _DRAIN


def _meet(a: Interval, b: Interval) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _free(wanted: Interval, users: list[tuple[Interval, Flag | None]]) -> bool:
    """Return True if an interval is disjoint from the users of an id; the latest users are tried first."""
    return not any(_meet(wanted, interval) for interval, _ in reversed(users))


def _around(flag: Flag, mode: int) -> Step | None:
    """Return the loop around which a carried flag is set and drained."""
    if flag.loop is None or mode == _FUNCTION:
        return None
    found = flag.loop
    owner = found.seq.owner if mode == _OUTERMOST else None
    while owner is not None:
        if owner.kind == LOOP:
            found = owner
        owner = owner.seq.owner
    return found
