"""Context of a proof: the kernel, its parameters as symbols, the solver and the findings."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..engine.reference.kernel import ReferenceKernel
from ..ir.core import Module, Operation, Value
from ..ir.facts import SPMD
from ..ir.types import MemRefType, PtrType, ScalarType, ViewType
from ..isa.machine import OVERLAPPING_PIPES
from ..isa.scalars import bounds, width
from ..symbolic.solver import Model, Solver
from ..symbolic.terms import (
    NEVER,
    Int,
    Term,
    Truth,
    floordiv,
    high,
    is_int,
    low,
    negated,
    parts,
    replaced,
    symbol,
    symbols,
    truth,
)
from .findings import Candidate, ProofFindings, Reason
from .scalars import is_number
from .state import CountedLoop, State
from .values import Opaque, PointerTerm, TermPlace, ViewTerm

#: Limits of parameters, unless assumptions give others.
LARGEST = 1 << 20
MOST_BLOCKS = 64
MOST_SIZE = 1 << 32  # elements of an array
#: Limits of parameters and blocks, tried one after the other: small values make a short counterexample.
_SMALL = ((2, 1), (64, 4), (300, 8), (3000, 16))


@dataclass(frozen=True)
class GlobalAccess:
    """An access to global memory in any iteration; `facts` do not depend on a particular iteration."""

    op: Operation
    place: TermPlace
    write: bool
    atomic: int
    facts: tuple[Truth, ...]
    loops: tuple[CountedLoop, ...]
    core: str
    phase: int  # the number of grid barriers before it


class Parameters:
    """Symbols for parameters, within the `limits` and as `multiples` that assumptions give; `named` are the
    parameters that assumptions name."""

    def __init__(
        self, limits: Mapping[str, tuple[int, int]], multiples: Mapping[str, int], named: Container[str] = ()
    ) -> None:
        self.limits, self.multiples, self.named = limits, multiples, named
        #: Parameters by the names that assumptions use, and their ranges.
        self.known: dict[str, Term] = {}
        self.ranges: dict[str, tuple[int, int]] = {}

    def parameter(self, name: str, low: int = 0, high: int = LARGEST) -> Term:
        found = self.known.get(name)
        if found is None:
            low, high = self.ranges[name] = self.limits.get(name, (low, high))
            by = self.multiples.get(name, 1)
            found = symbol(name, low, high)
            if by > 1:  # a factor and a number: this keeps terms simple
                multiple = symbol(f"({name} / {by})", -(-low // by), high // by) * by
                found = multiple if isinstance(multiple, Term) else found
            self.known[name] = found
        return found


@dataclass
class LaunchFacts:
    """The values that a caller gives to a kernel, and facts about them. None stands for an array, and for a
    number without restrictions. `sizes` are the elements of arrays, None if they are not known. `free` are
    numbers of the caller that are not followed: they may never have the values that a proof takes."""

    values: list[Int | Truth | None]
    facts: list[Truth]
    blocks: Int = 1
    sizes: dict[int, Int | None] = field(default_factory=dict)
    free: frozenset[Term] = frozenset()


class ProofContext:
    def __init__(
        self, kernel: ReferenceKernel, solver: Solver, findings: ProofFindings, given: Parameters,
        launch: LaunchFacts | None = None, subblocks: int | None = None,
    ) -> None:  # fmt: skip
        self.kernel, self.solver, self.findings = kernel, solver, findings
        self.given, self.launch = given, launch
        self.parameters, self.ranges = given.known, given.ranges
        self.module: Module = kernel.prepared
        self.profile = kernel.profile
        self.overlapping = OVERLAPPING_PIPES[self.profile.isa]
        self.mixed = len(kernel.roles) > 1
        #: Arguments of all functions -> those of the first function, because both functions of a mixed kernel
        #: get the same values.
        self.roots: dict[Value, Value] = {}
        self.functions = [_prepared(self.module, f) for f in kernel.functions]
        self.args = self.functions[0].regions[0].blocks[0].args
        first = [a for a in self.args if a.name not in SPMD]
        for function in self.functions:
            mine = [a for a in function.regions[0].blocks[0].args if a.name not in SPMD]
            self.roots.update(zip(mine, first, strict=False))
        self.blocks: Int = 1
        self.block: Int = 0
        if _asks_blocks(kernel):
            self.blocks = given.parameter("blocks", 1, MOST_BLOCKS) if launch is None else launch.blocks
            self.block = symbol("block#", 0, (high(self.blocks) or MOST_BLOCKS) - 1)
            solver.assume(self.block < self.blocks)
        vectors = sum(kind == "vector" for kind, _, _ in kernel.roles)
        self.given_subblocks = subblocks
        self.subblocks = min(max(1, vectors), subblocks or kernel.subblocks)
        self.subblock: Int = 0
        if self.mixed and (subblocks or kernel.subblocks) > 1:
            self.subblock = symbol("subblock#", 0, (subblocks or kernel.subblocks) - 1)
        #: Kinds of core and their functions: the second vector core has a symbol for its number.
        self.roles = list(dict.fromkeys((kind, _prepared(self.module, f)) for kind, _, f in kernel.roles))
        self.accesses: dict[object, GlobalAccess] = {}
        #: By argument: the ends of views, as numbers of elements that its array has to hold.
        self.needs: dict[Value, dict[str, Int]] = {}
        #: The parameters of the kernel, in the order of the arguments.
        self.arguments: dict[Value, object] = {}
        self.states = 0  # states of loops that were followed
        #: The elements of arrays that assumptions name: accesses have to stay below.
        names = {a: f"{a.name}.size" for a in self.args if isinstance(a.type, PtrType)}
        self.sizes: dict[Value, Term] = {
            a: given.parameter(name, 0, MOST_SIZE) for a, name in names.items() if name in given.named
        }

    # -- parameters ------------------------------------------------------------------------------------

    def argument(self, value: Value) -> object:
        """Return the value of an argument of the kernel."""
        value = self.roots.get(value, value)
        found = self.arguments.get(value)
        if found is None:
            found = self.arguments[value] = self._argument(value)
        return found

    def _argument(self, value: Value) -> object:
        type, name = value.type, value.name
        if self.launch is not None and name not in SPMD:
            known = self.launch.values[value.index] if value.index < len(self.launch.values) else None
            if known is not None:
                return known
        if name in SPMD:
            return (self.block, self.blocks, self.subblock)[SPMD.index(name)]
        root = self.roots.get(value, value)
        # `blocks` is already the name of the number of blocks of the launch
        name = root.name if root.name != "blocks" else "%blocks"
        if isinstance(type, PtrType) and type.space == "gm" and type.elem.bits:
            return PointerTerm(root, 0, type.elem.bits)
        if isinstance(type, ViewType) and type.bits:
            names = [f"{name}.shape[{n}]" for n in range(len(type.dims))]
            pairs = zip(type.dims, names, strict=True)
            dims = tuple(d if d is not None else self.given.parameter(n) for d, n in pairs)
            return self.whole(root, dims, dense(dims), type.bits)
        if isinstance(type, MemRefType) and not type.local and not type.layout_text and type.bits:
            if None not in type.dims:
                dims = tuple(d or 0 for d in type.dims)
                return self.whole(root, dims, dense(dims), type.bits)
        if isinstance(type, ScalarType) and width(str(type)) is not None:
            if str(type) == "i1":
                self.parameters[name] = found = truth(name)
                return found
            return self.given.parameter(name, 0, min(LARGEST, bounds(str(type))[1]))
        return Opaque(None, f"%{name} is an argument that is not followed")

    def whole(
        self, root: Value, dims: tuple[Int, ...], strides: tuple[Int, ...], bits: int, base: Int = 0,
        layout: str = "", nested: bool = True, rising: bool = True,
    ) -> ViewTerm:  # fmt: skip
        view = ViewTerm(root, base, bits, dims, strides, (0,) * len(dims), dims, layout, nested, rising)
        self.need(view)
        return view

    def need(self, view: ViewTerm) -> None:
        """Record how many elements the array of a view has to hold."""
        last = sum(((n - 1) * s for n, s in zip(view.dims, view.strides, strict=True)), 0)
        self._note_end(view.root, floordiv(view.base * 8, view.bits) + last + 1, view.bits)

    def holds_bytes(self, root: Value, end: Int, loops: Iterable[CountedLoop] = ()) -> bool:
        """Record that an array has to hold the bytes up to `end` in every iteration. Return False if `end`
        does not depend on the launch alone."""
        for loop in reversed([*loops]):
            if _rises(end, loop.k) and is_int(loop.step) and loop.step > 0:  # type: ignore[operator]
                last = floordiv(loop.high - loop.low - 1, loop.step)
                end = replaced(end, {loop.k: last})  # type: ignore[assignment]
        if any(len(t.args) == 2 and t.args[1] is not None for t in symbols(end)):
            return False
        bits = getattr(root.type, "bits", 8) or 8
        self._note_end(root, -floordiv(-end * 8, bits), bits)
        return True

    def _note_end(self, root: Value, end: Int, bits: int) -> None:
        """Record that an array has to hold this number of elements of `bits` bits."""
        own = getattr(root.type, "bits", bits) or bits
        if own != bits:
            end = -floordiv(-end * bits, own)
        # True if the end depends on an iteration, or on data
        loose = any(t.args[1] is not None for t in symbols(end))
        self.needs.setdefault(root, {})["all" if loose else repr(end)] = LARGEST if loose else end

    # -- candidates ------------------------------------------------------------------------------------

    def violated(
        self, prop: str, op: Operation, facts: Iterable[Truth], why: str, other: Operation | None = None
    ) -> bool:
        """Look for values that break a property, under the given facts; return whether there may be such
        values."""
        facts = [f for f in facts if f is not True]
        if (prop, op, other) in self.findings.candidates:
            return True
        found = self.solver.model(facts)
        if found is False:
            return False
        if prop not in self.findings.wanted:
            self.findings.note(Reason(op, why), (prop,))
            return True
        if found is None:
            self.findings.note(Reason(op, f"the solver gave up: {why}"), (prop,))
            return True
        assert not isinstance(found, bool)
        self.findings.add(Candidate(prop, op, other, why, facts, self.smaller(facts, found)))
        return True

    def smaller(self, facts: list[Truth], found: Model) -> Model:
        """Return a model with small parameters if there is one."""
        for most, blocks in _SMALL:
            numbers = [(n, p) for n, p in self.parameters.items() if p.kind != "truth"]
            limits = [p <= max(p.low or 0, blocks if n == "blocks" else most) for n, p in numbers]
            small = self.solver.model([*facts, *limits], 1.0)
            if small is not None and not isinstance(small, bool):
                return small
        return found


class WalkedCore:
    """The part of a walk that handlers of instructions use: the kind of core, and facts of its states."""

    def __init__(self, context: ProofContext, kind: str) -> None:
        self.context, self.kind = context, kind
        self.solver, self.profile = context.solver, context.profile
        self._names: dict[object, str] = {}

    def holds(self, s: State) -> Callable[[Truth], bool]:
        return lambda fact: self.solver.implied(s.here, fact)

    def claim(self, op: Operation, s: State, prop: str = "bounds") -> Callable[[Truth, str], None]:
        """Return a function that checks a condition of a run. After the check the condition holds, because
        otherwise the run stops or a sanitizer reports it."""

        def check(condition: Truth, why: str) -> None:
            if condition is not True and self.context.violated(prop, op, [*s.here, negated(condition)], why):
                s.learn(condition)
                if condition is False:
                    s.facts = (*s.facts, NEVER)

        return check

    def unknown(self, value: Value, s: State, why: str = "", loop: CountedLoop | None = None) -> Any:
        """Return an unknown value of the type of a result. Its value differs between iterations of the
        innermost loop, or of `loop`."""
        if not is_number(value.type):
            return Opaque(value.op, why or f"%{value.name} is not followed")
        key = (value, s.calls)
        name = self._names.setdefault(key, f"?{value.name}.{self.kind}.{len(self._names)}")
        scope = loop.k if loop is not None else s.loops[-1].k if s.loops else "core"
        if str(value.type) == "i1":
            return truth(name, scope)
        return symbol(name, *bounds(str(value.type)), scope)

    def skip(self, op: Operation, why: str, props: tuple[str, ...], s: State) -> None:
        """Go on after an operation that some properties depend on."""
        self.context.findings.note(Reason(op, why), props)
        for r in op.results:
            s.env[r] = self.unknown(r, s)

    def value(self, op: Operation, s: State, name: str) -> Any:
        found = op.get(name)
        return None if found is None else s.env[found]


def _rises(x: Int, k: Term) -> bool:
    """Return whether a number is a sum of terms that rise with `k`, or do not depend on it."""
    for monomial, n in parts(x)[1].items():
        with_k = [a for a in monomial if k in a.symbols]
        if with_k and (with_k != [k] or n < 0 or any(e is None or e < 0 for e in map(low, monomial))):
            return False
    return True


def dense(dims: tuple[Int, ...]) -> tuple[Int, ...]:
    strides: list[Int] = [1]
    for d in reversed(dims[1:]):
        strides.insert(0, strides[0] * d)
    return tuple(strides[: len(dims)])


def _prepared(module: Module, function: Operation) -> Operation:
    """Return the function of the program that runs: with addresses and flags."""
    found = module.function(str(function.attr("sym_name")))
    assert found is not None
    return found


def _asks_blocks(kernel: ReferenceKernel) -> bool:
    """Return whether a program reads the number of its block; other programs run as one block."""
    if kernel.dealt:
        return True
    names = {a.name for f in kernel.functions for a in f.regions[0].blocks[0].args}
    names |= {op.name for op in kernel.prepared.walk()}
    return not names.isdisjoint(("pto.get_block_idx", "pto.get_block_num", *SPMD[:2]))
