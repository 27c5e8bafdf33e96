"""State of a walk: values, facts, and the instructions that later ones may conflict with.

An `Instance` stands for one execution of an instruction, in an iteration that is relative to the current
iterations of its loops. States at the head of a loop are compared by their `shape`, which is equal for states
that differ only by a shift of iterations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..engine.sanitize.clock import Clock, Token
from ..ir.core import Operation, Value
from ..symbolic.terms import Int, Term, Truth
from .contents import Contents
from .values import TermPlace

#: Number of latest iterations of a loop that are distinguished.
KEPT = 3

#: Iteration of an instance. `age` n: n iterations before the current one; `old`: any earlier iteration. For a
#: loop that has ended, `end` n: n iterations before the last one; `before`: any earlier iteration.
Age = tuple[str, int]


@dataclass(frozen=True)
class CountedLoop:
    """An active loop: its counter `k` has `low + step * k` as induction variable."""

    op: Operation
    k: Term
    low: Int
    high: Int
    step: Int

    def at(self, k: Int) -> Int:
        return self.low + self.step * k


@dataclass(frozen=True)
class TermAccess:
    place: TermPlace
    write: bool
    atomic: int
    #: For a vector instruction that works in order: the first byte, the end, and whether the instruction
    #: accesses all bytes between them.
    chain: tuple[Int, Int, Truth] | None = None


@dataclass(frozen=True)
class Instance:
    op: Operation
    pipe: str
    accesses: tuple[TermAccess, ...]
    guard: tuple[Term, ...]  # conditions under which the program reaches it
    loops: tuple[CountedLoop, ...]
    ages: tuple[Age, ...]  # per loop
    ident: tuple[object, ...]  # operation, accesses and guard
    event: int  # its number in the clock

    @property
    def key(self) -> tuple[Any, ...]:
        return self.ident, self.ages


class PlainCore:
    """A core of a proof, as the clock for happens-before sees it: only a name."""

    def __init__(self, name: str) -> None:
        self.name = name


class State:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.env: dict[Value, Any] = {}
        self.facts: tuple[Term, ...] = ()  # conditions of the path that the walk follows
        self.phase = 0  # the number of grid barriers so far
        self.loops: tuple[CountedLoop, ...] = ()
        self.calls: tuple[Operation, ...] = ()
        self.rounds: dict[Term, tuple[Truth, ...]] = {}  # by counter: facts of the current iteration
        #: By counter: a period and the remainder of the present iteration.
        self.residues: dict[Term, tuple[int, int]] = {}
        self.live: dict[str, list[Instance]] = {}  # by pipe, oldest first
        #: By flag: the tokens of its sets that no wait has taken, oldest first.
        self.flags: dict[tuple[str, str, int], tuple[tuple[Token, Operation], ...]] = {}
        self.contents = Contents()

    def copy(self) -> State:
        new = State(self.clock.copy())
        new.env, new.facts, new.rounds = dict(self.env), self.facts, dict(self.rounds)
        new.phase, new.loops, new.calls = self.phase, self.loops, self.calls
        new.residues = dict(self.residues)
        new.live, new.flags = {p: list(found) for p, found in self.live.items()}, dict(self.flags)
        new.contents = self.contents.copy()
        return new

    @property
    def here(self) -> list[Truth]:
        """Return all facts at this point."""
        rounds = (f for loop in self.loops for f in self.rounds.get(loop.k, ()))
        return [*self.anytime, *(f for f in rounds if f is not True)]

    @property
    def anytime(self) -> list[Truth]:
        """Return the facts at this point that hold in every iteration."""
        loops = (f for loop in self.loops for f in (loop.at(loop.k) < loop.high, loop.step > 0))
        return [*self.facts, *(f for f in loops if f is not True)]

    def learn(self, fact: Truth) -> None:
        """Add a fact of the path."""
        if isinstance(fact, Term) and fact not in self.facts:
            parts = fact.args if fact.kind == "and" else (fact,)
            self.facts += tuple(p for p in parts if p not in self.facts)  # type: ignore[misc]

    def shape(self, core: Any, carried: Iterable[Value], facts: bool = True) -> tuple[Any, ...]:
        agents = [(p, self.clock.agent(core, p), found) for p, found in sorted(self.live.items()) if found]

        def known(token: Iterable[int]) -> tuple[int, ...]:
            times = list(token)
            return tuple(
                sum(i.event <= times[agent] for i in found) if agent < len(times) else 0
                for _, agent, found in agents
            )

        pipes = sorted(self.clock.agents.items(), key=lambda item: item[0][1])
        return (
            tuple((p, tuple(i.key for i in found)) for p, _, found in agents),
            tuple((pipe, k) for (_, pipe), a in pipes if any(k := known(self.clock.know[a]))),
            known(self.clock.stalls.get(core, ())),
            tuple(
                sorted((flag, *(known(t) for t, _ in found)) for flag, found in self.flags.items() if found)
            ),
            tuple(self.env.get(v) for v in carried),
            tuple(sorted(f.text for f in self.facts)) if facts else (),
        )

    def aged(self, loop: CountedLoop, ends: bool, alike: bool) -> None:
        """End an iteration of a loop, or the loop itself. `alike`: nothing in the loop orders its iterations,
        so that earlier ones are not distinguished."""
        for pipe, found in self.live.items():
            kept: dict[Any, Instance] = {}
            for i in found:
                if loop in i.loops:
                    at = i.loops.index(loop)
                    i = replace(i, ages=(*i.ages[:at], _older(i.ages[at], ends, alike), *i.ages[at + 1 :]))
                kept.pop(i.key, None)  # keep the latest of equal instances, because it is ordered last
                kept[i.key] = i
            self.live[pipe] = list(kept.values())


def _older(age: Age, ends: bool, alike: bool) -> Age:
    how, n = age
    if how in ("end", "before"):
        return age
    if alike:
        return ("before", 0) if ends else ("old", 1)
    if ends:
        return ("end", n) if how == "age" else ("before", 0)
    return ("age", n + 1) if how == "age" and n < KEPT else ("old", min(n, KEPT) + 1)
