"""Walk of a kernel along all paths, with terms for values and one state per path.

Loops are followed until no new state appears at their head (`CountedLoop`, `State.shape`). An operation is
followed only if there is a handler for its kind; any other one raises `CannotFollow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import lcm
from typing import Any

from ..engine.reference.sync import pipe_name
from ..engine.sanitize.clock import Clock
from ..ir.core import LOWERED_VECSCOPE, Block, Operation, Region, Value, constant_of
from ..ir.facts import pipe_of
from ..ir.types import TileBufType
from ..isa import meaning
from ..isa.kinds import pipe_of_kind
from ..isa.machine import EVENT_IDS, SECTIONS, TOKENS
from ..symbolic.terms import (
    NEVER,
    Term,
    Truth,
    as_truth,
    both,
    eq,
    is_integer,
    is_truth,
    mod,
    negated,
    parts,
    symbol,
)
from ..symbolic.terms import high as highest
from ..symbolic.terms import low as lowest
from . import descriptors, extents, pointers, writes
from .context import ProofContext, WalkedCore
from .findings import ACCESSES, CannotFollow, Reason
from .order import LANES, AccessOrder, ids
from .rules import TooMany, violations
from .scalars import NoTerm, compute, is_number
from .state import CountedLoop, PlainCore, State, TermAccess
from .values import MEMORY, Opaque, TileTerm

MOST_STATES = 200  # states of a loop
MOST_PATHS = 64
MOST_CALLS = 16
#: Families of instructions that work on registers alone, in a vecscope.
_REGISTERS = (
    "unary", "binary", "vec-scalar", "conversion", "materialization", "predicate-generation",
    "predicate-algebra", "compare-select", "reduction",
)  # fmt: skip
#: The largest period of a loop whose iterations are distinguished by remainders.
MOST_PERIOD = 8


class ProofWalk(WalkedCore):
    """The walk of one function on one kind of core."""

    def __init__(self, context: ProofContext, kind: str, function: Operation) -> None:
        super().__init__(context, kind)
        self.function = function
        self.core: Any = PlainCore(kind)
        self.order = AccessOrder(context, self.core)
        #: Tiles that instructions may change: they belong to the state of a loop.
        self._changing = any(_changes_tile(op) for op in context.module.walk())

    def run(self) -> None:
        s = State(Clock(self.profile.isa))
        block = self.function.regions[0].blocks[0]
        for a in block.args:
            s.env[a] = self.context.argument(a)
        for end in self.region(self.function, self.function.regions[0], [s]):
            self.order.left_set(end)

    # -- control flow ----------------------------------------------------------------------------------

    def region(self, owner: Operation, region: Region, states: list[State]) -> list[State]:
        if len(region.blocks) != 1:
            raise CannotFollow(owner, "branches between blocks are not followed")
        return self.block(region.blocks[0], states)

    def block(self, block: Block, states: list[State]) -> list[State]:
        for op in block.ops:
            found: list[State] = []
            for s in states:
                found += self.operation(op, s)
            states = self.joined(found) if len(found) > 1 else found
            if len(states) > MOST_PATHS:
                raise CannotFollow(op, f"more than {MOST_PATHS} paths lead here")
        return states

    def shape(self, s: State, carried: Iterable[Value], facts: bool = True) -> tuple[Any, ...]:
        changing = [v for v in s.env.values() if self._changing and isinstance(v, TileTerm)]
        return (*s.shape(self.core, carried, facts), tuple(changing))

    def joined(self, states: list[State]) -> list[State]:
        """Return one state for equal ones; keep only the common facts of states that differ in facts."""
        found: dict[Any, list[State]] = {}
        for s in states:
            equal = found.setdefault(self.shape(s, (), facts=False), [])
            first = next((e for e in equal if _same_values(e, s)), None)
            if first is None:
                equal.append(s)
            else:
                common = set(s.facts)
                first.contents.meet(s.contents)
                first.facts = tuple(f for f in first.facts if f in common)
        return [s for equal in found.values() for s in equal]

    def operation(self, op: Operation, s: State) -> list[State]:
        self.solver.check_time()
        control = _CONTROL.get(op.name)
        if control is not None:
            return control(self, op, s)
        if op.name in SECTIONS:
            if self.kind not in (SECTIONS[op.name], "mix"):
                return [s]
            return self.region(op, op.regions[0], [s])
        row = op.row
        if row is None:
            raise CannotFollow(op, "is not an instruction")
        if row.set == "scalar" and (row.expr or row.dialect in ("arith", "math")):
            self.scalar(op, s)
        elif op.name in descriptors.HANDLERS:
            descriptors.HANDLERS[op.name](self, op, s)
        elif row.order in ("set", "wait", "get", "release"):
            return self.flag(op, s)
        elif row.order == "barrier":
            self.order.barrier(s, pipe_of(op, self.profile))
        elif row.opens == "vec":
            return self.vecscope(op, s)
        elif row.order == "fence":
            self.order.fence(s, str(op.attr("barrier_type")))
        elif row.effect == "pure" and row.family in _REGISTERS and self.order.inside:
            self.registers(op, s)
        elif pointers.follow(self, self.order, op, s):
            pass
        elif (
            row.effect == "config"
            and not row.keeps
            and not any(isinstance(v.type, MEMORY) for v in op.operands)
        ):
            pass
        elif row.effect == "config" and row.keeps:
            self.skip(op, "later instructions use its operands", ACCESSES, s)
        elif row.effect == "memory" and row.set == "tile":
            self.memory(op, s)
        elif op.name == "pto.tsync" and op.attr("op") is not None:
            self.order.barrier(s, pipe_of_kind(str(op.attr("op")), self.profile.isa))
        elif not row.uses_contents and row.effect == "io" and not op.results:
            pass
        elif row.effect == "sync" and row.family == "cache":
            pass
        elif row.element_at:
            self.element(op, s)
        elif row.effect in ("memory", "io") and not row.fifo and row.set != "comm" and not op.regions:
            self.skip(op, "its accesses are not followed", ACCESSES, s)
        else:
            raise CannotFollow(op, "is not followed")
        return [s] if NEVER not in s.facts else []

    def vecscope(self, op: Operation, s: State) -> list[State]:
        if "V" in self.context.overlapping:
            self.skip(op, "a vecscope is not followed", ACCESSES, s)
            return [s]
        before, kept = dict(s.env), s.copy()
        self.order.inside, s.contents.registers = True, True
        try:
            ends = self.region(op, op.regions[0], [s])
        except CannotFollow as e:
            self.context.findings.note(e.reason, ACCESSES)
            ends = [kept]
        self.order.inside = False
        for e in ends:
            _leave(e, before, {})
            e.live = {p: found for p, found in e.live.items() if p not in LANES}
        return ends

    def registers(self, op: Operation, s: State) -> None:
        """Follow an instruction that works on registers alone."""
        names = {declared.name: s.env[v] for declared, v in op.named() if not declared.variadic}
        numbers = any(is_number(v.type) and constant_of(v) is None for v in op.operands)
        if op.row is not None and op.row.family == "reduction" and numbers:
            raise CannotFollow(op, "its numbers are not followed")
        self.rules(op, s, names)
        for r in op.results:
            s.env[r] = self.unknown(r, s)

    def section(self, op: Operation, s: State) -> list[State]:
        return self.region(op, op.regions[0], [s])

    def leave(self, op: Operation, s: State) -> list[State]:
        return [s]

    def branch(self, op: Operation, s: State) -> list[State]:
        condition = s.env[op.operands[0]]
        if not is_truth(condition):
            raise CannotFollow(op, "its condition is not followed")
        out: list[State] = []
        for n, fact in enumerate((condition, negated(condition))):
            if fact is False or (fact is not True and not self.solver.possible([*s.here, fact])):
                continue
            new = s.copy()
            new.learn(fact)
            region = op.regions[n] if n < len(op.regions) and op.regions[n].blocks else None
            for e in self.region(op, region, [new]) if region is not None else [new]:
                results = region.blocks[0].ops[-1].operands if op.results and region is not None else ()
                _leave(e, s.env, dict(zip(op.results, (e.env[v] for v in results), strict=True)))
                out.append(e)
        return out

    def call(self, op: Operation, s: State) -> list[State]:
        function = self.context.module.function(str(op.attr("callee")))
        if function is None or not function.regions[0].blocks:
            raise CannotFollow(op, "calls a function without a body")
        if len(s.calls) > MOST_CALLS:
            raise CannotFollow(op, "calls are nested too deep")
        kind = str(function.attr("pto.kernel_kind"))
        if kind in ("cube", "vector") and self.kind not in (kind, "mix"):
            for r in op.results:
                s.env[r] = self.unknown(r, s)
            return [s]
        block, before, calls = function.regions[0].blocks[0], dict(s.env), s.calls
        s.env.update(zip(block.args, [s.env[v] for v in op.operands], strict=True))
        s.calls = (*s.calls, op)
        ends = self.region(op, function.regions[0], [s])
        for e in ends:
            e.calls = calls
            results = [e.env[v] for v in block.ops[-1].operands] if op.results else []
            _leave(e, before, dict(zip(op.results, results, strict=True)))
        return ends

    def loop(self, op: Operation, s: State) -> list[State]:
        if LOWERED_VECSCOPE in op.attrs:
            self.skip(op, "a vecscope is not followed", ACCESSES, s)
            return [s]
        low, high, step = (s.env[v] for v in op.operands[:3])
        if "unsignedCmp" in op.attrs or not all(map(is_integer, (low, high, step))):
            raise CannotFollow(op, "its bounds are not followed")
        self.claim(op, s)(step > 0, "the step of the loop is not positive")
        if NEVER in s.facts:
            return []
        most = _most_trips(low, high, step)  # part of the name, because terms with equal names are equal
        counter = op.regions[0].blocks[0].args[0].name
        name = self._names.setdefault((op, s.calls, most), f"{counter}#{len(self._names)}")
        k = symbol(name, 0, most, s.loops[-1].k if s.loops else "core")
        loop = CountedLoop(op, k, low, high, step)
        body = op.regions[0].blocks[0]
        counted = _counted(body)
        while True:
            try:
                return self._loop(op, s.copy(), loop, counted)
            except _NotLinear as e:
                counted = {a: by for a, by in counted.items() if a is not e.value}

    def _loop(self, op: Operation, s: State, loop: CountedLoop, counted: dict[Value, Value]) -> list[State]:
        body = op.regions[0].blocks[0]
        carried, ends = body.args[1:], body.ops[-1]
        starts = dict(zip(carried, (s.env[v] for v in op.operands[3:]), strict=True))
        period, k = _period(op, s), loop.k
        out: list[State] = []
        if self.solver.possible([*s.here, loop.high <= loop.low]):  # no iteration
            none = s.copy()
            none.learn(loop.high <= loop.low)
            none.env.update(zip(op.results, starts.values(), strict=True))
            out.append(none)
        deltas: dict[Value, Any] = {}
        for a, by in counted.items():
            delta = s.env.get(by, constant_of(by))
            if not all(map(is_integer, (starts[a], delta))):
                raise _NotLinear(a)
            deltas[a] = delta
        before = dict(s.env)
        s.env.update(starts)
        tracked = [a for a in carried if a not in counted]
        seen: set[Any] = set()
        waiting = [(s, 0)]
        while waiting:
            head, number = waiting.pop(0)
            if number:
                self.order.settle(head)
            key = (number > 0, number % period, self.shape(head, tracked), head.contents.shape)
            if key in seen:
                continue
            seen.add(key)
            self.context.states += 1
            if len(seen) > MOST_STATES:
                raise CannotFollow(op, f"the loop has more than {MOST_STATES} states")
            now = head.copy()
            now.loops = (*head.loops, loop)
            first: Truth = eq(k, 0) if number == 0 else k >= 1
            now.rounds[k] = (first, eq(mod(k, period), number % period))
            now.residues[k] = (period, number % period)
            if not self.solver.possible(now.here):
                continue
            now.env[body.args[0]] = loop.at(k)
            for a, delta in deltas.items():
                now.env[a] = starts[a] + delta * k
            for e in self.block(body, [now]):
                values = [e.env[v] for v in ends.operands]
                for a, v in zip(carried, values, strict=True):
                    if a in deltas and v != starts[a] + deltas[a] * (k + 1):
                        raise _NotLinear(a)
                here = e.here
                more = loop.at(k + 1) < loop.high
                if self.solver.possible([*here, more]):
                    n = self._ended(e.copy(), loop, False, before, dict(zip(carried, values, strict=True)))
                    waiting.append((n, number + 1))
                if self.solver.possible([*here, negated(more)]):
                    after = self._ended(e, loop, True, before, dict(zip(op.results, values, strict=True)))
                    after.learn(loop.low < loop.high)
                    self.order.settle(after)
                    out.append(after)
        return self.joined(out)

    def _ended(
        self, s: State, loop: CountedLoop, ends: bool, before: dict[Value, Any], values: dict[Value, Any]
    ) -> State:
        """Return the state after an iteration. Values of the iteration are known only if they do not depend
        on the counter."""
        s.loops = s.loops[:-1]
        s.rounds.pop(loop.k, None)
        s.residues.pop(loop.k, None)
        gone = {loop.k}
        s.facts = tuple(f for f in s.facts if not _depends(f, gone))
        s.aged(loop, ends, self.order.inside)
        s.contents.aged(loop.k, ends, lambda x: _depends(x, gone))
        within = None if ends else loop
        for target, v in values.items():
            if _depends(v, gone):
                values[target] = self.unknown(target, s, f"%{target.name} is of another iteration", within)
        _leave(s, before, values)
        if self._changing:
            for v, x in s.env.items():
                if isinstance(x, TileTerm) and _depends(x, gone):
                    s.env[v] = Opaque(v.op, f"%{v.name} is a tile of another iteration")
        return s

    # -- instructions ----------------------------------------------------------------------------------

    def scalar(self, op: Operation, s: State) -> None:
        if len(op.results) == 1 and (known := constant_of(op.results[0])) is not None:
            s.env[op.result] = as_truth(int(known)) if str(op.result.type) == "i1" else known
            return
        try:
            operands = [s.env[v] for v in op.operands]
            if not all(is_integer(x) or is_truth(x) for x in operands):
                raise NoTerm("its operands are not followed")
            found = compute(op, operands, self.holds(s), self.claim(op, s), self.remainder(s))
        except NoTerm:
            found = [self.unknown(r, s) for r in op.results]
        s.env.update(zip(op.results, found, strict=True))

    def remainder(self, s: State) -> Callable[[Any, int], int | None]:
        """Return a function that computes remainders that follow from the iterations of loops."""

        def known(x: Any, by: int) -> int | None:
            constant, factors = parts(x)
            for monomial, n in factors.items():
                if n % by == 0:
                    continue
                if len(monomial) != 1 or monomial[0] not in s.residues:
                    return None
                period, rest = s.residues[monomial[0]]
                if n * period % by:
                    return None
                constant += n * rest
            return constant % by

        return known

    def flag(self, op: Operation, s: State) -> list[State]:
        """Follow the set or wait of a flag, and the get or release of a buffer token."""
        row = op.row
        assert row is not None
        token = row.order in ("get", "release")
        count, name = (TOKENS, "buf_id") if token else (EVENT_IDS, "event_id")
        number: Any = next(
            (self.value(op, s, n) for n in (name, f"{name}_dyn") if n in row.operand_index), None
        )
        if number is None:
            number = int("".join(c for c in str(op.attr(name)) if c.isdigit()) or 0)
        if not is_integer(number):
            raise CannotFollow(op, "its id is not followed")
        self.claim(op, s)(both(number >= 0, number < count), f"the id is outside 0..{count - 1}")
        names = ("op_type", "pipe") if token else ("src_pipe", "src_op")
        source = next(pipe_name(op.attr(n)) for n in names if op.attr(n) is not None)
        target = next((pipe_name(op.attr(n)) for n in ("dst_pipe", "dst_op") if op.attr(n) is not None), "")
        out: list[State] = []
        for n, condition in ids(number, count):
            if condition is False or not self.solver.possible([*s.here, condition]):
                continue
            new = s if condition is True else s.copy()
            new.learn(condition)
            if row.order == "set":
                self.order.set_flag(op, new, (source, target, n))
            elif row.order == "release":
                self.order.release_token(op, new, source, n)
            elif token and not self.order.get_token(op, new, source, n):
                continue
            elif not token and not self.order.wait_flag(op, new, (source, target, n)):
                continue
            out.append(new)
        return out

    def grid_barrier(self, op: Operation, s: State) -> list[State]:
        """Follow a barrier of all cores. It must be outside of loops and branches, so that all blocks arrive
        there."""
        kinds = {"aiv_only": ("vector", "mix"), "aic_only": ("cube", "mix")}
        takes_part = self.kind in kinds.get(str(op.attr("core_type")), ("vector", "cube", "mix"))
        if op.parent is not self.function.regions[0].blocks[0] or self.context.mixed or op.operands:
            why = "a barrier in a loop, in a branch or of several kinds of core is not followed"
            raise CannotFollow(op, why)
        if takes_part:
            s.clock.barrier_all(self.core)
            s.phase += 1
        return [s]

    def memory(self, op: Operation, s: State) -> None:
        row = op.row
        assert row is not None
        args: dict[str, Any] = {}
        for declared, value in op.named():
            if declared.variadic:
                args.setdefault(declared.name, []).append(s.env[value])
            else:
                args[declared.name] = s.env[value]
        self.rules(op, s, args)
        for why, props in extents.check(self, op, s, args):
            self.context.findings.note(Reason(op, why), props)
        if NEVER in s.facts:
            return
        accesses = self.accesses(op, s)
        pipe = "S" if op.results else pipe_of(op, self.profile)
        if accesses is not None:
            self.order.access(op, s, pipe, accesses)
            writes.follow(self, op, s, args)
        for r in op.results:
            s.env[r] = self.unknown(r, s)

    def element(self, op: Operation, s: State) -> None:
        """Follow an access to one element."""
        row = op.row
        assert row is not None
        declared, value = next((d, v) for d, v in op.named() if isinstance(v.type, MEMORY))
        x, index = s.env[value], self.value(op, s, row.element_at)
        place = extents.element(self, op, s, x, index)
        if place is None or self.order.inside:
            self.skip(op, f"the element of %{value.name} is not followed", ACCESSES, s)
            return
        both_ways = [w for w in (False, True) if (declared.role != "in") == w]
        accesses = tuple(TermAccess(place, w, extents.atomic(op)) for w in both_ways)
        self.order.access(op, s, "S", accesses)
        writes.follow(self, op, s, {})
        for r in op.results:
            s.env[r] = self.unknown(r, s)

    def rules(self, op: Operation, s: State, args: dict[str, Any]) -> None:
        try:
            for rule, condition in violations(
                op, self.profile, args, lambda p: self.solver.possible([*s.here, *p])
            ):
                # a run with sanitizers goes on behind it, so it may not be assumed from here on
                why = rule.msg or f"breaks the rule {rule.expr}"
                self.context.violated("bounds", op, [*s.here, condition], why)
        except TooMany:
            self.context.findings.note(Reason(op, "its rules are too many"), ("bounds",))

    def accesses(self, op: Operation, s: State) -> tuple[TermAccess, ...] | None:
        """Return the accesses of an instruction; None if they are not followed."""
        row = op.row
        assert row is not None
        atomic = extents.atomic(op)
        found: list[TermAccess] = []
        for declared, value in op.named():
            if not isinstance(value.type, MEMORY):
                continue
            x = s.env[value]
            place = getattr(x, "place", None) if not isinstance(x, TileTerm) or x.low is not None else None
            if place is None:
                why = x.why if isinstance(x, Opaque) else f"the bytes of %{value.name} are not known"
                self.context.findings.note(Reason(op, why), ACCESSES)
                return None
            if isinstance(value.type, TileBufType) and self.context.mixed:
                if value.type.loc == ("vec" if self.kind == "cube" else "mat"):
                    self.context.findings.note(Reason(op, "it moves data to another core"), ACCESSES)
                    return None
            for write in (False, True):
                if declared.writes if write else declared.reads:
                    chain = extents.chain(op, declared.name, x, write)
                    found.append(TermAccess(place, write, atomic, chain))
        return tuple(found)


class _NotLinear(Exception):
    """A carried value of a loop that does not grow by the same number each time."""

    def __init__(self, value: Value) -> None:
        super().__init__(value.name)
        self.value = value


def _depends(x: object, counters: set[Term]) -> bool:
    """Return whether a value depends on counters, or on unknown numbers of their iterations."""
    symbols = getattr(x, "symbols", frozenset())
    for t in symbols:
        while isinstance(t, Term):
            if t in counters:
                return True
            t = t.args[1] if t.kind in ("symbol", "truth") else None
    return False


def _leave(s: State, before: dict[Value, Any], results: dict[Value, Any]) -> None:
    """Drop the values that a region has defined, except its results."""
    s.env = {v: s.env[v] for v in before}
    s.env.update(results)


def _same_values(a: State, b: State) -> bool:
    """Return whether all values that both states have are equal."""
    other = b.env
    return all(v not in other or x is other[v] or x == other[v] for v, x in a.env.items())


def _changes_tile(op: Operation) -> bool:
    return op.name == "pto.set_validshape" or (op.row is not None and bool(op.row.rebinds))


def _most_trips(low: Any, high: Any, step: Any) -> int | None:
    first, last, least = lowest(low), highest(high), lowest(step)
    if first is None or last is None or least is None:
        return None
    return max(0, last - first - 1) // max(1, least)


def _counted(body: Block) -> dict[Value, Value]:
    """Return the values that a loop carries and increases: each with its increment."""
    found: dict[Value, Value] = {}
    for a, v in zip(body.args[1:], body.ops[-1].operands, strict=True):
        op = v.op
        if op is not None and op.row is not None and op.row.expr == "lhs + rhs" and a in op.operands:
            by = op.operands[1] if op.operands[0] is a else op.operands[0]
            if by is not a:
                found[a] = by
    return found


def _period(op: Operation, s: State) -> int:
    """Return a number of iterations after which remainders in the body of a loop repeat."""
    period = 1
    for inner in op.walk():
        row = inner.row
        if row is None or row.set != "scalar" or not row.expr or len(inner.operands) != 2:
            continue
        expression = next(iter(meaning.assigned(row.expr).values()))
        if meaning.uses(expression, "rem", "mod", "bit_and"):
            by = constant_of(inner.operands[1])
            if isinstance(by, int) and by > 0:
                by = by + 1 if meaning.uses(expression, "bit_and") else by
                if lcm(period, by) <= MOST_PERIOD:
                    period = lcm(period, by)
    return period


_CONTROL: dict[str, Callable[[ProofWalk, Operation, State], list[State]]] = {
    "scf.for": ProofWalk.loop,
    "scf.if": ProofWalk.branch,
    "scf.yield": ProofWalk.leave,
    "scf.execute_region": ProofWalk.section,
    "func.call": ProofWalk.call,
    "pto.syncall": ProofWalk.grid_barrier,
    "func.return": ProofWalk.leave,
}
