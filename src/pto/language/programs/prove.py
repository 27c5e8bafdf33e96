"""Proofs of the kernels of a program, for all values that its orchestration gives them.

The orchestration is followed once with symbols: extents are parameters, the counter of a loop is any number
of its range, and a number that cannot be followed is any number of its type. Each task is a launch of its
kernel with these values; `proof` then proves the kernel.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from ...diag import Diagnostic, DiagnosticError, render
from ...ir.assumptions import Assumption
from ...isa.scalars import bounds
from ...proof.context import LARGEST, LaunchFacts, Parameters
from ...proof.findings import EVERY
from ...proof.prove import PROVED, REFUTED, UNKNOWN, Proof, parameters_for, prove, together
from ...symbolic.solver import Model, Solver
from ...symbolic.terms import (
    Term,
    Truth,
    as_truth,
    both,
    either,
    eq,
    floordiv,
    greatest,
    is_int,
    is_truth,
    least,
    low,
    mod,
    negated,
    symbol,
    symbols,
    truth,
    value_of,
)
from ..ir import Function, Op, ScalarType, TensorType, Value
from .callable import zeros

if TYPE_CHECKING:
    from ..dtypes import DataType
    from .compiled import Compiled

_PATHS = 16  # the most launches of one kernel
_MOST_ELEMENTS = 1 << 26  # the most elements of an array of a run


@dataclass
class ProgramProof:
    """The proofs of all kernels of a program, by name: one for each task that its orchestration makes."""

    name: str
    proofs: dict[str, list[Proof]] = field(default_factory=dict)
    #: Errors of a run with values that make a window leave its tensor.
    refuted: list[Diagnostic] = field(default_factory=list)
    #: Parts of the orchestration that cannot be followed; if there are any, no kernel is proved.
    unknown: list[Diagnostic] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        found = [p.verdict for proofs in self.proofs.values() for p in proofs]
        return together([*found, *([UNKNOWN] if self.unknown else []), *([REFUTED] if self.refuted else [])])

    @property
    def ok(self) -> bool:
        return self.verdict == PROVED

    def __getitem__(self, kernel: str) -> list[Proof]:
        return self.proofs[kernel]

    def __str__(self) -> str:
        texts = [str(p) for proofs in self.proofs.values() for p in proofs]
        shown = [*self.refuted, *self.unknown]
        return "\n".join([*texts, *([render(shown)] if shown else [])])


def prove_program(
    made: Compiled, assume: Sequence[str] = (), properties: Sequence[str] = EVERY, timeout: float = 60.0
) -> ProgramProof:
    """Prove the kernels of a program, or find values that break them."""
    assume = [*(one.text for one in made.assumed), *assume]
    parameters = parameters_for([Assumption(text) for text in assume])
    done, entry = made.lowered, made.entry
    found = ProgramProof(entry.name)
    tasks = _Tasks(made, found, parameters)
    tasks.run(entry)
    for name, launches in tasks.launches.items():
        module = done.modules.get(name)
        if module is None:
            found.unknown.append(_note(f"unknown kernel '{name}' of this program", entry.loc))
            continue
        for launch in launches:
            proof = prove(
                module, assume=assume, entry=name, target=done.profile, properties=properties,
                timeout=timeout, parameters=parameters, launch=launch,
            )  # fmt: skip
            found.proofs.setdefault(name, []).append(proof)
    return found


def _note(text: str, loc: Any) -> Diagnostic:
    return Diagnostic("PTO-E2442", f"not proved: {text}", loc, "note")


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "min": least,
    "max": greatest, "eq": eq, "ne": lambda a, b: negated(eq(a, b)), "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


class _Tasks:
    """Follows an orchestration, and collects the launches of its kernels."""

    def __init__(self, made: Compiled, found: ProgramProof, parameters: Parameters) -> None:
        self.made, self.found, self.parameters = made, found, parameters
        self.solver = Solver(float("inf"))
        self.env: dict[Value, Any] = {}
        self.facts: list[Truth] = []
        self.launches: dict[str, list[LaunchFacts]] = {}
        self.free: set[Term] = set()  # numbers that are not followed
        self.names = 0

    def run(self, entry: Function) -> None:
        for value in entry.body.args:
            if isinstance(value.type, ScalarType):
                self.env[value] = self.parameter(value)
        if entry.kind != "orchestration":  # a kernel of its own
            self.launches[entry.name] = [LaunchFacts([self.env.get(v) for v in entry.body.args], [])]
            return
        self.block(entry.body.ops)

    def parameter(self, value: Value) -> Any:
        dtype = value.type.dtype
        if dtype.is_float:
            return None
        if dtype.name == "BOOL":
            return truth(value.name)
        return self.parameters.parameter(value.name, 0, min(LARGEST, bounds(_type(dtype))[1]))

    def fresh(self, value: Value) -> Any:
        """Return any number of the type of a value."""
        if not isinstance(value.type, ScalarType) or value.type.dtype.is_float:
            return None
        self.names += 1
        name = f"{value.name or 'v'}?{self.names}"
        dtype = value.type.dtype
        found = truth(name) if dtype.name == "BOOL" else symbol(name, *bounds(_type(dtype)))
        self.free.add(found)
        return found

    def number(self, x: object) -> Any:
        if isinstance(x, Value):
            return self.env.get(x)
        return x if isinstance(x, bool) or is_int(x) else None

    def block(self, ops: Sequence[Op]) -> None:
        for op in ops:
            handler = getattr(self, f"_{op.name}", None)
            if op.name.startswith("scalar."):
                self.env[op.result] = self.scalar(op)
            elif handler is not None:
                handler(op)
            else:
                for block in op.blocks:
                    self.block(block.ops)
            for r in op.results:
                if r not in self.env:
                    self.env[r] = self.fresh(r)

    def scalar(self, op: Op) -> Any:
        name = op.name.removeprefix("scalar.")
        args = [self.number(a) for k, a in op.args.items() if k != "dtype"]
        if any(a is None for a in args) or op.result.type.dtype.is_float:
            return self.fresh(op.result)
        if name in ("and", "or", "not"):
            truths: list[Truth] = [as_truth(a) for a in args]
            return negated(truths[0]) if name == "not" else (both if name == "and" else either)(*truths)
        if any(is_truth(a) for a in args):
            return self.fresh(op.result)
        if name == "cast":
            return args[0] if not is_truth(args[0]) else self.fresh(op.result)
        if name == "neg":
            return -args[0]
        if name in ("floordiv", "mod") and (low(args[1]) or 0) > 0:
            return (floordiv if name == "floordiv" else mod)(*args)
        return _BINARY[name](*args) if name in _BINARY else self.fresh(op.result)

    def _const(self, op: Op) -> None:
        self.env[op.result] = self.number(op.args["value"])

    def _for(self, op: Op) -> None:
        block = op.blocks[0]
        start, stop, step = (self.number(op.args[k]) for k in ("start", "stop", "step"))
        counter, before = block.args[0], len(self.facts)
        for a in block.args[1:]:
            self.env[a] = self.fresh(a)
        if start is None or stop is None or step is None or (low(step) or 0) <= 0:
            self.env[counter] = self.fresh(counter)
        else:
            self.names += 1
            known = is_int(start) and is_int(stop) and is_int(step)
            most = max(0, (stop - start - 1) // step) if known else LARGEST
            self.env[counter] = found = start + step * symbol(f"{counter.name}#{self.names}", 0, most)
            self.facts.append(found < stop)
            if isinstance(found, Term):
                self.parameters.known.setdefault(counter.name, found)
        self.block(block.ops)
        del self.facts[before:]

    def _if(self, op: Op) -> None:
        condition = self.number(op.args["cond"])
        for n, block in enumerate(op.blocks):
            before = len(self.facts)
            if condition is not None:
                self.facts.append(as_truth(condition) if n == 0 else negated(as_truth(condition)))
            self.block(block.ops)
            del self.facts[before:]

    def _slice(self, op: Op) -> None:
        """Check that the window stays in its tensor."""
        x = op.args["x"].type
        assert isinstance(x, TensorType)
        for d, (n, at, of) in enumerate(zip(op.args["shape"], op.args["offset"], x.shape, strict=False)):
            size, first, whole = (self.number(v) for v in (n, at, of))
            if size is None or first is None or whole is None:
                self.found.unknown.append(_note(f"dimension {d} of a window is not followed", op.loc))
                continue
            outside = both(size > 0, either(first < 0, first + size > whole))
            small = [p <= 100 for p in self.parameters.known.values()]
            model = self.solver.model([*self.facts, outside, *small]) or self.solver.model(
                [*self.facts, outside]
            )
            if model is False:
                continue
            text = f"dimension {d} of a window may leave its tensor"
            if model is None or isinstance(model, bool):
                self.found.unknown.append(_note(text, op.loc))
            else:
                self._run(model, op, text)

    def _run(self, model: Model, op: Op, text: str) -> None:
        """Run the program for values that let a window leave its tensor."""
        values = {n: int(value_of(p, {s: model.get(s, s.low or 0) for s in p.symbols}))
                  for n, p in self.parameters.known.items()}  # fmt: skip
        args: list[object] = []
        for p in self.made.params:
            shape = [values.get(d, 1) if isinstance(d, str) else d for d in p.shape or ()]
            array = p.shape is not None and p.dtype is not None and prod(shape) <= _MOST_ELEMENTS
            args.append(zeros(shape, p.dtype) if array and p.dtype is not None else values.get(p.name, 1))
        text += f" for {', '.join(f'{n} = {v}' for n, v in values.items())}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                errors = [d for d in self.made.run(args, sanitize="oob").diagnostics if d.severity == "error"]
        except DiagnosticError as e:
            errors = e.diagnostics
        except (TypeError, ValueError):
            errors = []
        for d in errors:
            places = [d.span, *(span for _, span in d.notes)]
            if op.loc is not None and any(span is not None and span.line == op.loc.line for span in places):
                if all(d.message != other.message for other in self.found.refuted):
                    d.notes.append((text, op.loc))
                    self.found.refuted.append(d)
                return
        self.found.unknown.append(_note(f"{text}: a run with these values reports nothing", op.loc))

    def _call(self, op: Op) -> None:
        callee: Function = op.args["callee"]
        arrays = [isinstance(getattr(a, "type", None), TensorType) for a in op.args["args"]]
        values = [None if x else self.number(a) for x, a in zip(arrays, op.args["args"], strict=True)]
        blocks: Any = self.number(op.args.get("core_num") or 1)
        launches = self.launches.setdefault(callee.name, [])
        if len(launches) == _PATHS:
            self.found.unknown.append(_note(f"'{callee.name}' has more than {_PATHS} launches", op.loc))
        elif blocks is None or callee.kind not in ("incore", "aic", "aiv", "mixed"):
            self.found.unknown.append(_note(f"the task '{callee.name}' is not followed", op.loc))
        else:
            sizes = {n: self.elements(a) for n, a in enumerate(op.args["args"]) if arrays[n]}
            free = frozenset(self.free) & frozenset().union(*map(symbols, (*values, *self.facts)))
            launches.append(LaunchFacts(values, list(self.facts), blocks, sizes, free))

    def elements(self, array: Value) -> Any:
        """Return the number of elements from the first to the last one of an array, or of a part of one; None
        if it is not known."""
        made = array.op
        part = made is not None and made.name == "slice"
        whole: Value = made.args["x"] if made is not None and part else array
        if (whole.op is None or whole.op.name != "create_tensor") and whole not in self.made.entry.body.args:
            return None
        extents = [self.number(d) for d in whole.type.shape]  # type: ignore[union-attr]
        sizes = [self.number(d) for d in made.args["shape"]] if made is not None and part else extents
        if None in (*extents, *sizes) or len(sizes) != len(extents):
            return None
        return 1 + sum((n - 1) * prod(extents[at + 1 :]) for at, n in enumerate(sizes))


def _type(dtype: DataType) -> str:
    """Return the integer type of a scalar in a kernel."""
    return "index" if dtype.name == "INDEX" else str(dtype.isa)
