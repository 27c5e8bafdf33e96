"""Order of instructions in a walk: flags, barriers and accesses, with the clocks of the sanitizers.

Every access is compared with the earlier accesses that do not happen before it: one question per pair of
instructions. `live` in a state has the instructions that a later one may conflict with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..engine.sanitize.clock import agent_pipe, knows, learn_of
from ..engine.sanitize.race import CHAINED
from ..engine.sanitize.race_access import hazard
from ..engine.sanitize.vecscope import orders
from ..ir.core import Operation, Value
from ..ir.facts import in_global, pipe_of, storage_source
from ..isa.machine import LAST_PIPE, LOCATION_OF, PIPES
from ..symbolic.terms import (
    NEVER,
    Int,
    Term,
    Truth,
    both,
    either,
    eq,
    floordiv,
    mod,
    negated,
    replaced,
    symbol,
    symbols,
    truth,
)
from .context import GlobalAccess, ProofContext
from .findings import EVERY, Reason
from .state import CountedLoop, Instance, State, TermAccess
from .values import MEMORY, changed, meet

#: Keys of buffer tokens among the flags of a state.
_HELD, _FREE = "held", "free"
#: Vector loads and stores of a vecscope, as pipes of their own.
LANES = ("VLD", "VST")


class AccessOrder:
    """The order of one core."""

    def __init__(self, context: ProofContext, core: Any) -> None:
        self.context: ProofContext = context
        self.core: Any = core
        self._touching = _touching(context)
        self.inside = False  # in a vecscope

    # -- synchronization -------------------------------------------------------------------------------

    def begin(self, s: State, pipe: str) -> None:
        """Order an operation of a pipe after the events that the scalar unit has waited for."""
        s.clock.resume(self.core, pipe, s.clock.stalled(self.core, pipe))

    def barrier(self, s: State, pipe: str) -> None:
        if pipe == "ALL":
            s.clock.barrier_all(self.core)
        elif pipe and pipe != "S":  # the scalar unit is in order
            self.begin(s, pipe)
            s.clock.barrier(self.core, pipe)

    def set_flag(self, op: Operation, s: State, flag: tuple[str, str, int]) -> None:
        source, target, number = flag
        raised = s.flags.get(flag, ())
        self.begin(s, source)
        if raised:
            why = f"sets flag {source} -> {target}, id {number}, which is set already"
            if self.context.violated("flags", op, s.here, why):
                return  # keep the older token, which orders less
        s.flags[flag] = (*raised, (s.clock.release(self.core, source), op))

    def wait_flag(self, op: Operation, s: State, flag: tuple[str, str, int]) -> bool:
        """Take the token of a flag; return False if the flag is not set."""
        source, target, number = flag
        self.begin(s, target)
        raised = s.flags.get(flag, ())
        if not raised:
            why = f"waits for flag {source} -> {target}, id {number}, which is not set before"
            return self._stuck(op, s, why)
        s.flags[flag] = raised[1:]
        s.clock.acquire(self.core, target, raised[0][0])
        return True

    def _stuck(self, op: Operation, s: State, why: str) -> bool:
        if self.context.solver.possible(s.here):
            self.context.violated("flags", op, s.here, why)
            reason = "cannot follow a path after a wait without an earlier set"
            self.context.findings.note(Reason(op, reason), EVERY)
        return False

    def get_token(self, op: Operation, s: State, pipe: str, number: int) -> bool:
        """Take a buffer token; return False if it is held. The last release of the token is like a flag."""
        if any(s.flags.get((_HELD, other, number)) for other in PIPES):
            return self._stuck(op, s, f"takes buffer token {number}, which is held")
        self.begin(s, pipe)
        for token, _ in s.flags.pop((_FREE, "", number), ()):
            s.clock.acquire(self.core, pipe, token)
        s.flags[_HELD, pipe, number] = (([], op),)
        return True

    def release_token(self, op: Operation, s: State, pipe: str, number: int) -> None:
        self.begin(s, pipe)
        if not s.flags.pop((_HELD, pipe, number), ()):
            why = f"releases buffer token {number}, which it does not hold"
            self.context.violated("flags", op, s.here, why)
        else:
            s.flags[_FREE, "", number] = ((s.clock.release(self.core, pipe), op),)

    def left_set(self, s: State) -> None:
        """Look for flags that are set, and tokens that are held, at the end."""
        for (source, target, number), raised in s.flags.items():
            if raised and source != _FREE:
                why = f"flag {source} -> {target}, id {number} is still set at the end"
                if source == _HELD:
                    why = f"PIPE_{target} still holds buffer token {number} at the end"
                self.context.violated("flags", raised[0][1], s.here, why)

    # -- accesses --------------------------------------------------------------------------------------

    def access(self, op: Operation, s: State, pipe: str, accesses: tuple[TermAccess, ...]) -> None:
        """Issue an instruction: compare it with earlier instructions, and keep it for later ones."""
        if NEVER in s.facts:  # the run has stopped
            return
        if pipe == "ALL":  # it begins when all pipes have drained
            s.clock.barrier_all(self.core)
            pipe = LAST_PIPE
        pipe = agent_pipe(pipe)
        self.begin(s, pipe)
        self._issue(op, s, pipe, accesses, [p for p in s.live if p not in LANES])
        for a in accesses:
            if isinstance(a.place.root, Value):
                if (size := self.context.sizes.get(a.place.root)) is not None:
                    leaves = a.place.high > floordiv(size * (a.place.root.type.bits or 8), 8)  # type: ignore[attr-defined]
                    why = f"the access leaves %{a.place.root.name}"
                    self.context.violated("bounds", op, [*s.here, *a.place.some, leaves], why)
                facts = tuple(s.anytime)
                key = (op, self.core.name, s.phase, a, frozenset(facts))
                made = GlobalAccess(op, a.place, a.write, a.atomic, facts, s.loops, self.core.name, s.phase)
                self.context.accesses.setdefault(key, made)

    def lane(self, op: Operation, s: State, access: TermAccess) -> None:
        """Compare a load or store of a vecscope with the earlier ones of the other kind."""
        if self.context.profile.behaviour.late_stores and NEVER not in s.facts:
            self._issue(op, s, LANES[access.write], (access,), [LANES[not access.write]])

    def fence(self, s: State, kind: str) -> None:
        """Order loads and stores of a vecscope."""
        for first, second in orders(kind):
            if first in LANES and second in LANES:
                s.clock.acquire(self.core, second, s.clock.release(self.core, first))

    def _issue(
        self, op: Operation, s: State, pipe: str, accesses: tuple[TermAccess, ...], others: list[str]
    ) -> None:
        agent, event, know = s.clock.instruction(self.core, pipe)
        for other in others:
            theirs = s.clock.agent(self.core, other)
            for old in s.live.get(other, ()):
                if (theirs, old.event) != (agent, event) and not knows(know, theirs, old.event):
                    if other == "VLD" and _computed_from(op, s, old):
                        continue
                    if self._race(op, s, pipe, accesses, old):  # report once: they are ordered from here on
                        learn_of(know, theirs, old.event)
                        learn_of(s.clock.know[agent], theirs, old.event)
        guard = tuple(s.facts)
        for loop in s.loops:
            if loop.k in s.residues:
                period, rest = s.residues[loop.k]
                fact = eq(mod(loop.k, period), rest)
                guard = (*guard, fact) if isinstance(fact, Term) else guard
        ident = (op, accesses, frozenset(guard))
        ages = (("age", 0),) * len(s.loops)
        s.live.setdefault(pipe, []).append(Instance(op, pipe, accesses, guard, s.loops, ages, ident, event))

    def _race(
        self, op: Operation, s: State, pipe: str, accesses: tuple[TermAccess, ...], old: Instance
    ) -> bool:
        pairs = [
            (a, b)
            for a in accesses
            for b in old.accesses
            if (a.write or b.write) and not (a.atomic and b.atomic)
            and (a.place.root is b.place.root or a.place.root == b.place.root)
        ]  # fmt: skip
        if not pairs:
            return False
        values, facts = earlier(s, old)
        change: Callable[[Any], Any] = lambda x: replaced(x, values)  # noqa: E731
        shared: list[Truth] = []
        kinds: dict[str, None] = {}
        for a, b in pairs:
            place = changed(b.place, change) if values else b.place
            condition = meet(a.place, place)
            reads_on = pipe == old.pipe and b.write and not a.write
            if condition is not False and reads_on and a.chain and b.chain:
                chain = tuple(map(change, b.chain))
                condition = both(condition, negated(_chained(a.chain, chain)))  # type: ignore[arg-type]
            if condition is not False:
                shared.append(condition)
                kinds[hazard(a.write, b.write)] = None
        if not shared:
            return False
        guard: list[Any] = [change(f) for f in old.guard]
        # the earlier one first, because it depends on no fact about this one
        why = f"{'/'.join(kinds)} race: PIPE_{pipe} against PIPE_{old.pipe}{self._line(old.op)}"
        return self.context.violated("pipes", op, [*s.here, *facts, *guard, either(*shared)], why, old.op)

    def _line(self, op: Operation) -> str:
        return f" at line {op.loc.line}" if op.loc is not None else ""

    def settle(self, s: State) -> None:
        """Forget instructions that are ordered before all instructions that may conflict with them."""
        for pipe, found in s.live.items():
            agent = s.clock.agent(self.core, pipe)
            s.live[pipe] = [i for i in found if not self._known(s, i, pipe, agent)]

    def _known(self, s: State, i: Instance, pipe: str, agent: int) -> bool:
        stalls = s.clock.stalls.get(self.core, [])
        if knows(stalls, agent, i.event):
            return True
        if pipe in LANES:
            other = LANES[pipe == "VLD"]
            return knows(s.clock.know[s.clock.agent(self.core, other)], agent, i.event)
        meeting: set[str] = set()
        for a in i.accesses:
            root = a.place.root
            if not isinstance(root, Value | str):
                return False
            for key in (root, None) if isinstance(root, Value) else (root,):
                meeting |= self._touching.get((key, True), set())
                if a.write:
                    meeting |= self._touching.get((key, False), set())
        others = meeting if pipe in self.context.overlapping else meeting - {pipe}
        return all(knows(s.clock.know[s.clock.agent(self.core, o)], agent, i.event) for o in others)


def _computed_from(op: Operation, s: State, old: Instance) -> bool:
    """Return whether a stored register was computed from what a load has loaded, in the present iteration of
    the loops around both, and in all iterations of a loop that gives the register."""
    shared = [age for loop, age in zip(old.loops, old.ages, strict=True) if loop in s.loops]
    return old.op in _sources(op.operands) and all(age == ("age", 0) for age in shared)


def _sources(values: Iterable[Value]) -> dict[Operation | Value, None]:
    """Return the instructions that registers come from, and the values that loops carry to them."""
    found: dict[Operation | Value, None] = {}
    waiting = list(values)
    while waiting:
        v = waiting.pop()
        if v.op is None:
            found[v] = None
        elif v.op.name == "scf.for":
            body, n = v.op.regions[0].blocks[0], v.op.results.index(v)
            inside = _sources([body.ops[-1].operands[n]])
            if body.args[1 + n] in inside:  # it adds up all iterations
                found |= inside
        elif v.op not in found and v.op.row is not None and v.op.row.set in ("vector", "predicate"):
            found[v.op] = None
            waiting += v.op.operands
    return found


def _chained(a: tuple[Int, Int, Truth], b: tuple[Int, Int, Truth]) -> Truth:
    """Return the condition under which a vector instruction may follow another one without a barrier."""
    return both(eq(a[0], b[0]), eq(a[1], b[1]), a[2], b[2], a[1] - a[0] >= CHAINED)


def earlier(s: State, old: Instance) -> tuple[dict[Term, Int | Truth], list[Truth]]:
    """Return the symbols of an earlier instruction whose values differ from the present ones, and facts about
    them."""
    values: dict[Term, Int | Truth] = {}
    facts: list[Truth] = []
    for loop, (how, age) in zip(old.loops, old.ages, strict=True):
        if how == "age" and age == 0 and not values:
            continue
        k = symbol(f"{loop.k.text}'", 0, loop.k.high)
        low, high, step = (replaced(x, values) for x in (loop.low, loop.high, loop.step))
        if how == "age":
            facts.append(eq(k, loop.k - age))
        elif how == "old":
            facts.append(k <= loop.k - age)
        elif how == "end":
            facts.append(low + step * (k + age + 1) >= high)  # type: ignore[operator]
            facts.append(low + step * (k + age) < high)  # type: ignore[operator]
        facts.append(low + step * k < high)  # type: ignore[operator]
        values[loop.k] = k
    if values:
        values |= _other_unknowns(symbols((old.accesses, old.guard)), values)
    return values, facts


def _other_unknowns(used: Iterable[Term], values: dict[Term, Int | Truth]) -> dict[Term, Int | Truth]:
    """Return copies of unknown numbers that an iteration with other counters has."""
    found: dict[Term, Int | Truth] = {}
    for t in used:
        scope = t.args[1]
        if isinstance(scope, Term) and scope in values and t not in values:
            found[t] = _renamed(t)
    return found


def _renamed(t: Term) -> Term:
    return truth(f"{t.text}'") if t.kind == "truth" else symbol(f"{t.text}'", t.low, t.high)


def elsewhere(
    loops: Iterable[CountedLoop], used: Iterable[Term], block: Int, subblock: Int
) -> dict[Term, Int | Truth]:
    """Return the symbols of an access on another core, with other values than on this one."""
    values: dict[Term, Int | Truth] = {loop.k: symbol(f"{loop.k.text}'", 0, loop.k.high) for loop in loops}
    values |= _other_unknowns(used, values)
    for t in (block, subblock):
        if isinstance(t, Term):
            values[t] = _renamed(t)
    # unknown numbers outside loops differ between cores, too
    for t in used:
        if t.kind in ("symbol", "truth") and len(t.args) == 2 and t.args[1] == "core":
            values[t] = _renamed(t)
    return values


def root_of(value: Value) -> Value | str | None:
    """Return the buffer or the argument that a value lies in; None if any argument may be meant."""
    if not in_global(value.type):
        found = getattr(value.type, "loc", None) or getattr(value.type, "space", "")
        return LOCATION_OF.get(found, found)
    while value.op is not None:
        source = storage_source(value.op)
        if source is None:
            return None
        value = source
    owner = value.owner
    outer = None if isinstance(owner, Operation) else owner.outer
    return value if outer is not None and outer.name == "func.func" else None


def _touching(context: ProofContext) -> dict[tuple[Any, bool], set[str]]:
    """Return the pipes whose instructions read, or write, each buffer and argument."""
    found: dict[tuple[Any, bool], set[str]] = {}
    for op in context.module.walk():
        row = op.row
        if row is None or not row.uses_contents:
            continue
        pipe = agent_pipe(pipe_of(op, context.profile))
        pipe = LAST_PIPE if pipe_of(op, context.profile) == "ALL" else pipe
        pipes = {pipe, "S"} if op.results else {pipe}
        for declared, value in op.named():
            if isinstance(value.type, MEMORY):
                root = root_of(value)
                keys = [context.roots.get(root)] if isinstance(root, Value) else [root]
                if isinstance(root, str) and not root:
                    keys = [None]
                for key in keys:
                    for write in (False, True):
                        if declared.writes if write else declared.reads:
                            found.setdefault((key, write), set()).update(pipes)
    # instructions with an unknown argument meet all of them
    return found


def ids(number: Int, count: int) -> Iterable[tuple[int, Truth]]:
    """Return the possible values of an id below `count`, each with its condition."""
    for n in [number] if isinstance(number, int) else range(count):
        yield n, eq(number, n)
