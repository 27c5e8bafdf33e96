"""Follows one flag or buffer token through the structured control flow of a function, on one kind of core.

The state is a set of *worlds*: the holder of the flag or token, and the branch conditions. Worlds of
contradicting conditions never meet, so `if c {set} ... if c {wait}` is balanced, and so is a wait that skips
the first iteration. A loop body is walked for the first iteration, for the second, and then until no new
world appears. Calls are walked in place. An operation is *wrong* where it fails in every world that reaches
it, and *doubtful* where it fails in some. Results of loops and calls are cached, so that the time for nested
loops is linear in their depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..ir.core import Block, Operation, Region
from ..isa.machine import SECTIONS
from .conditions import FIRST, LAST, Fact, condition_of, depends_on, equals, runs, trip_count

_MOST_WORLDS = 16
_MOST_ROUNDS = 8
_MOST_STEPS, _MOST_DEPTH = 100_000, 100  # larger programs are left to the simulator


class BalanceState(NamedTuple):
    holder: Operation | None  # the operation that set the flag or took the token
    facts: frozenset[Fact]


Worlds = list[BalanceState]


class _TooLarge(Exception):
    """A program with too many nested loops and calls to be followed."""


class Failure(NamedTuple):
    op: Operation | None  # None for the end of the function
    holder: Operation | None
    certain: bool
    loop: Operation | None = None  # for failures that begin with the second iteration of this loop
    split: Operation | None = None  # for doubtful failures: the branch or loop where the worlds separate


class Walk:
    """Walks a function. `takes` has the operations, with True for operations that take. `relevant` has these
    operations and the operations around them.
    """

    def __init__(
        self, takes: dict[Operation, bool], relevant: set[Operation], bodies: dict[str, Operation], core: str
    ) -> None:
        self.takes = takes
        self.relevant = relevant
        self.bodies = bodies
        self.core = core
        self.failures: list[Failure] = []
        self.doubts: list[Failure] = []
        self.repeating: list[Operation] = []
        self.origin: dict[object, Operation] = {}
        self.steps = 0
        self.depth = 0
        self.known: dict[tuple[Operation, tuple[BalanceState, ...]], Worlds] = {}
        self.asked: dict[Operation, set[object]] = {}

    def function(self, func: Operation) -> list[Failure]:
        """Return every certain failure, or else the first doubtful failure, because the others follow from
        it.
        """
        try:
            self.fails(None, self.region(func.regions[0], [BalanceState(None, frozenset())]))
        except _TooLarge:
            return []
        return self.failures or self.doubts[:1]

    def region(self, region: Region, worlds: Worlds) -> Worlds:
        self.depth += 1
        self.steps += 1
        if self.depth > _MOST_DEPTH or self.steps > _MOST_STEPS:
            raise _TooLarge
        for block in region.blocks:
            worlds = self.block(block, worlds)
        self.depth -= 1
        return worlds

    def block(self, block: Block, worlds: Worlds) -> Worlds:
        for op in block.ops:
            if op not in self.relevant or not worlds:
                continue
            if op in self.takes:
                self.fails(op, worlds)
                worlds = join(BalanceState(op if self.takes[op] else None, w.facts) for w in worlds)
            elif op.name == "scf.if":
                worlds = self.branches(op, worlds)
            elif op.name == "scf.index_switch":
                worlds = self.switch(op, worlds)
            elif op.name == "scf.for":
                worlds = self.once(op, worlds, self.counted)
            elif op.name == "scf.while":
                worlds = self.once(op, worlds, self.conditional)
            elif op.name == "func.call":
                callee = self.bodies[str(op.attr("callee"))]
                if runs_on(callee, self.core):
                    worlds = self.once(callee, worlds, self.called)
            elif SECTIONS.get(op.name, self.core) == self.core:
                for region in op.regions:
                    worlds = self.region(region, worlds)
        return worlds

    def called(self, callee: Operation, worlds: Worlds) -> Worlds:
        return forget(self.region(callee.regions[0], worlds), callee)

    def once(self, op: Operation, worlds: Worlds, walk: Callable[[Operation, Worlds], Worlds]) -> Worlds:
        """Walk a loop or callee, at most once for the same worlds; return the resulting worlds.

        Facts that all worlds share and the operation does not test are set aside during the walk. A second
        walk would find no other failures than the first.
        """
        shared: frozenset[Fact] = worlds[0].facts
        for world in worlds[1:]:
            shared &= world.facts
        if shared:
            asked = self.conditions(op)
            shared = frozenset(f for f in shared if f[0] not in asked)
        given = [BalanceState(w.holder, w.facts - shared) for w in worlds]
        key = op, tuple(given)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = walk(op, given)
        return [BalanceState(w.holder, w.facts | shared) for w in found]

    def conditions(self, op: Operation) -> set[object]:
        """Return keys of all facts that a walk of an operation may test."""
        found = self.asked.get(op)
        if found is None:
            found = self.asked[op] = set()
            for inner in op.walk():
                if inner not in self.relevant and inner is not op:
                    continue
                if inner.name == "scf.if":
                    found.add(condition_of(inner.operands[0])[0])
                elif inner.name == "scf.index_switch":
                    found.update(equals(inner.operands[0], int(n))[0] for n in inner.attr("cases"))
                elif inner.name == "scf.for":
                    found.update((runs(inner)[0], (FIRST, inner), (LAST, inner)))
                elif inner.name == "scf.while":
                    found.add(condition_of(inner.regions[0].blocks[0].ops[-1].operands[0])[0])
                elif inner.name == "func.call":
                    found |= self.conditions(self.bodies[str(inner.attr("callee"))])
        return found

    def branches(self, op: Operation, worlds: Worlds) -> Worlds:
        key, truth = condition_of(op.operands[0])
        self.origin.setdefault(key, op)
        outcomes: Worlds = []
        for region, taken in zip(op.regions, (truth, not truth), strict=True):
            outcomes += self.region(region, assume(worlds, (key, taken)))
        return join(outcomes)

    def switch(self, op: Operation, worlds: Worlds) -> Worlds:
        default, *cases = op.regions
        outcomes: Worlds = []
        for number, region in zip(op.attr("cases"), cases, strict=True):
            key, _ = equals(op.operands[0], int(number))
            self.origin.setdefault(key, op)
            outcomes += self.region(region, assume(worlds, (key, True)))
            worlds = assume(worlds, (key, False))
        return join(outcomes + self.region(default, worlds))

    def counted(self, op: Operation, worlds: Worlds) -> Worlds:
        """Walk scf.for: no iteration, or a first one, others, and a last one."""
        trips = trip_count(op)
        if trips == 0:
            return worlds
        key, truth = runs(op)
        self.origin.setdefault(key, op)
        skipped = [] if trips else assume(worlds, (key, not truth))
        entered = worlds if trips else assume(worlds, (key, truth))

        def iteration(state: Worlds, number: int) -> tuple[Worlds, Worlds]:
            state = self.region(op.regions[0], assume(state, ((FIRST, op), number == 1)))
            again = [] if number == trips else assume(state, ((LAST, op), False))
            done = [] if trips and number < min(trips, 3) else assume(state, ((LAST, op), True))
            return forget(again, op), forget(done, op)

        return join(skipped + self.repeat(op, entered, iteration))

    def conditional(self, op: Operation, worlds: Worlds) -> Worlds:
        """Walk scf.while: before, then (after, before) as often as the condition holds."""
        before, after = op.regions
        key, truth = condition_of(before.blocks[0].ops[-1].operands[0])

        def decide(state: Worlds) -> tuple[Worlds, Worlds]:
            state = self.region(before, state)
            again, done = (assume(state, (key, holds)) for holds in (truth, not truth))
            return forget(again, op), forget(done, op)

        def iteration(state: Worlds, number: int) -> tuple[Worlds, Worlds]:
            state = self.region(after, state)
            self.repeating.append(op)  # `before` has run once already
            result = decide(state)
            self.repeating.pop()
            return result

        again, done = decide(worlds)
        return join(done + self.repeat(op, again, iteration))

    def repeat(
        self, op: Operation, worlds: Worlds, iteration: Callable[[Worlds, int], tuple[Worlds, Worlds]]
    ) -> Worlds:
        """Return the worlds at the end of a loop. The third and later iterations are walked as one."""
        again, done = iteration(worlds, 1)
        self.repeating.append(op)
        head, left = iteration(again, 2) if again else ([], [])
        done += left
        for number in range(_MOST_ROUNDS + 2):
            if not head:
                break
            again, left = iteration(head, 3)
            done += left
            wider = join(head + again)
            if number >= _MOST_ROUNDS:
                wider = [BalanceState(w.holder, frozenset()) for w in wider]
            if _shape(wider) == _shape(head):
                break
            head = wider
        self.repeating.pop()
        return join(done)

    def fails(self, op: Operation | None, worlds: Worlds) -> None:
        """Record the worlds in which an operation (or the end) meets the wrong state."""
        wrong_if_held = op is None or self.takes[op]
        bad = [w for w in worlds if (w.holder is not None) == wrong_if_held]
        good = [w for w in worlds if (w.holder is not None) != wrong_if_held]
        if not bad:
            return
        if good:
            holder = next(w.holder for w in (*bad, *good) if w.holder is not None)
            self.doubts.append(Failure(op, holder, False, split=self.parting(bad, good)))
            return
        if any(f.loop is not None or f.op is op for f in self.failures):
            return  # the failure follows from a loop that cannot be balanced, or repeats in another iteration
        loop = self.repeating[-1] if self.repeating and op is not None else None
        holder = max((w.holder for w in bad if w.holder is not None), key=lambda h: h.order, default=None)
        self.failures.append(Failure(op, holder, True, loop))

    def parting(self, bad: Worlds, good: Worlds) -> Operation | None:
        """Return the branch or loop whose condition separates the bad worlds from the good ones."""
        known = {fact for w in good for fact in w.facts}
        keys = {key for w in bad for key, truth in w.facts if (key, not truth) in known}
        origins = [self.origin[key] for key in keys if key in self.origin]
        return min(origins, key=lambda op: op.order, default=None)


def runs_on(func: Operation, core: str) -> bool:
    return not core or func.attr("pto.kernel_kind") in (None, core)


def assume(worlds: Worlds, fact: Fact) -> Worlds:
    """Return the worlds in which a fact can hold. The key None is a condition that is constantly true."""
    key, truth = fact
    if key is None:
        return worlds if truth else []
    return [BalanceState(w.holder, w.facts | {fact}) for w in worlds if (key, not truth) not in w.facts]


def forget(worlds: Worlds, scope: Operation) -> Worlds:
    """Drop facts about values computed inside a loop or callee: the next execution computes other values."""
    if not any(w.facts for w in worlds):
        return join(worlds)
    return join(
        BalanceState(w.holder, frozenset(f for f in w.facts if not depends_on(f[0], scope))) for w in worlds
    )


def join(worlds: Iterable[BalanceState]) -> Worlds:
    """Simplify worlds: `x and c` with `x and not c` is `x`, and `x` covers `x and c`."""
    given = list(worlds)
    if len(given) < 2:
        return given
    result: Worlds = []
    for held in (False, True):
        todo = [w for w in given if (w.holder is not None) == held]
        kept: Worlds = []
        while todo:
            world = todo.pop(0)
            if any(k.facts <= world.facts for k in kept):
                continue
            twin = next((k for k in kept if _opposite(k.facts, world.facts)), None)
            kept = [k for k in kept if k is not twin and not world.facts <= k.facts]
            if twin is not None:
                todo.insert(0, BalanceState(world.holder, twin.facts & world.facts))
            else:
                kept.append(world)
        if len(kept) > _MOST_WORLDS:
            common = kept[0].facts
            for world in kept[1:]:
                common &= world.facts
            kept = [BalanceState(kept[0].holder, common)]
        result += kept
    return result


def _opposite(a: frozenset[Fact], b: frozenset[Fact]) -> bool:
    left = a ^ b
    return len(left) == 2 and len({key for key, _ in left}) == 1


def _shape(worlds: Worlds) -> set[tuple[bool, frozenset[Fact]]]:
    return {(w.holder is not None, w.facts) for w in worlds}
