"""Counterexamples: a launch with the values of a candidate, and what the sanitizers report there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from math import prod
from time import monotonic
from typing import Any

import numpy as np

from ..diag import Diagnostic, DiagnosticError
from ..engine.memory import array_of, stored_shape
from ..engine.watch import Watcher
from ..ir.core import Operation
from ..ir.facts import SPMD
from ..ir.types import MemRefType, PtrType, ScalarType, ViewType
from ..symbolic.solver import Model
from ..symbolic.terms import Int, Term, replaced, symbols, value_of
from .context import ProofContext
from .findings import PROPERTIES, Candidate

#: Limits of a replay: bytes of arrays, seconds, steps.
_MOST_BYTES = 1 << 30
_SECONDS = 20.0
_STEPS = 3_000_000
#: Most launches per property.
_MOST_LAUNCHES = 6
_RULE = re.compile(r"(SA|PA|CA|FIX)-\w+$|PTO-E03\d\d$")


@dataclass
class Launchables:
    """Arguments of a launch. Arrays hold zeros: a refutation depends only on shapes and numbers."""

    args: list[Any]
    texts: list[str]
    blocks: int
    subblocks: int | None
    values: dict[str, int]


@dataclass
class Counterexample:
    """Values that break a property, and the report of a sanitizer that shows it."""

    candidate: Candidate
    launch: Launchables
    report: Diagnostic


def arguments(context: ProofContext, model: Model, least: int = 1) -> Launchables | None:
    """Return the arguments of a launch with the values of a model, with at least `least` elements behind each
    pointer; None if the arrays are too large."""

    def value(x: Int) -> int:
        return int(value_of(x, {s: model.get(s, s.low or 0) for s in symbols(x)}))

    # an array holds what all blocks need
    blocks = value(context.blocks)
    last = {
        t: n - 1
        for t, n in ((context.block, blocks), (context.subblock, context.subblocks))
        if isinstance(t, Term)
    }

    args: list[Any] = []
    texts: list[str] = []
    total = 0
    for a in context.args:
        if a.name in SPMD:
            continue
        found: Any = context.argument(a)
        type = a.type
        if isinstance(type, PtrType | ViewType | MemRefType):
            size: Int | None = context.sizes.get(a)
            if context.launch is not None:
                size = context.launch.sizes.get(a.index)
            if isinstance(type, PtrType) and size is not None:
                shape = [max(1, value(size))]
            elif isinstance(type, PtrType):
                needed = context.needs.get(a, {"": 1}).values()
                shape = [max(least, *(value(replaced(n, last)) for n in needed))]
            else:
                shape = [value(d) for d in getattr(found, "dims", ()) or [d or 1 for d in type.dims]]
            dtype = str(type.dtype)
            total += prod(shape) * np.dtype(array_of(dtype)).itemsize
            if total > _MOST_BYTES or min(shape, default=0) < 0:
                return None
            args.append(np.zeros(stored_shape(shape, dtype), array_of(dtype)))
            texts.append(f"{dtype}:{'x'.join(map(str, shape))}")
        elif isinstance(type, ScalarType) and type.is_float:
            args.append(1.0)
            texts.append("1.0")
        elif isinstance(found, Term | int):
            args.append(value(found))
            texts.append(str(args[-1]))
        else:
            return None
    values = {name: value(p) for name, p in context.parameters.items()}
    return Launchables(args, texts, blocks, context.given_subblocks, values)


def confirmed(
    context: ProofContext, prop: str, candidates: list[Candidate]
) -> tuple[Counterexample | None, list[str]]:
    """Return a candidate that a run confirms at its operation or at the partner; else the values that were
    tried."""
    places = {place for c in candidates for place in _places(context, prop, c)}
    tried: list[str] = []
    free = context.launch.free if context.launch is not None else frozenset[Term]()
    for c in candidates[:_MOST_LAUNCHES]:
        if free and not free.isdisjoint(frozenset().union(*map(symbols, c.facts))):
            tried.append(f"{c.why}: perhaps for some number that the caller computes")
            continue
        if monotonic() > context.solver.deadline:
            tried.append(f"{c.why}: no time is left for a run")
            continue
        launch = arguments(context, c.model)
        if launch is None:
            tried.append(f"{c.why}: its arrays are too large for a run")
            continue
        for report in reports(context, launch, PROPERTIES[prop][0]):
            if is_of(prop, report.code) and not places.isdisjoint(_lines(report)):
                return Counterexample(c, launch, report), tried
        shown = ", ".join(f"{n} = {v}" for n, v in launch.values.items())
        tried.append(f"{c.why}: perhaps for {shown or 'every launch'}, where a run reports nothing")
    return None, tried


def is_of(prop: str, code: str) -> bool:
    return code in PROPERTIES[prop][1] or (prop == "bounds" and _RULE.match(code) is not None)


def reports(
    context: ProofContext, launch: Launchables, sanitizer: str, seed: int | None = None,
    watchers: Sequence[Watcher] = (),
) -> list[Diagnostic]:  # fmt: skip
    """Return the errors of a launch under one sanitizer, because several hide reports of each other."""
    left = max(0.1, min(_SECONDS, context.solver.deadline - monotonic()))
    try:
        result = context.kernel.run(
            *launch.args, blocks=launch.blocks, subblocks=launch.subblocks, sanitize=sanitizer, schedule=seed,
            timeout=left, max_steps=_STEPS, out=StringIO(), watchers=watchers,
        )  # fmt: skip
    except DiagnosticError as e:
        return e.diagnostics
    return [d for d in result.diagnostics if d.severity == "error"]


def _places(context: ProofContext, prop: str, c: Candidate) -> Iterable[tuple[str, int]]:
    ops = [c.op, *([c.other] if c.other is not None else [])]
    if prop == "bounds":  # a window is also reported where it is used
        ops += _users(context, c.op)
    for op in ops:
        if op.loc is not None:
            yield op.loc.source.name, op.loc.line


def _lines(report: Diagnostic) -> set[tuple[str, int]]:
    spans = [report.span, *(span for _, span in report.notes)]
    return {(s.source.name, s.line) for s in spans if s is not None}


def _users(context: ProofContext, op: Operation) -> list[Operation]:
    """Return the instructions that use the result of an operation, also through windows and names."""
    names, found = set(op.results), list[Operation]()
    for o in context.module.walk():
        if not names.isdisjoint(o.operands):
            found.append(o)
            names |= set(o.results)
    return found
