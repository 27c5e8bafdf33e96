"""Kernels with few launches: each is run under the sanitizers instead of proved.

The reports of a sanitizer do not depend on the order of the pipes. So if the accesses of a kernel do not
depend on data, one run decides a launch.
"""

from __future__ import annotations

from itertools import product
from math import prod
from time import monotonic

from ..engine.reference.dry import depends_on_data
from ..engine.sanitize.reports import Reports
from ..engine.sanitize.undef import Undef
from ..ir.core import Operation, Value
from ..ir.types import PtrType, ScalarType
from ..symbolic.solver import Model
from ..symbolic.terms import NEVER, Term, symbols, value_of
from .context import ProofContext
from .findings import PROPERTIES, Candidate
from .replay import Counterexample, arguments, is_of, reports

#: Limits: launches, and elements of an array behind a pointer of unknown extent.
_MOST = 64
_ELEMENTS = 1 << 16
#: Families of vector and predicate instructions whose accesses do not depend on lanes.
_VECTOR = (
    "unary", "binary", "vec-scalar", "conversion", "materialization", "predicate-generation",
    "predicate-algebra",
)  # fmt: skip
_LOADS = ("load lanes", "store lanes", "load blocks", "store blocks", "load strided", "store strided",
          "load two registers", "store two registers")  # fmt: skip
#: Algorithms of other instructions whose accesses depend on data.
_BY_DATA = ("gather", "gather blocks", "scatter", "gather from memory", "scatter to memory", "merge",
            "concatenation", "merge lists", "merge status")  # fmt: skip


def is_fixed(context: ProofContext) -> bool:
    """Return whether the accesses of a kernel depend on its parameters alone."""
    return depends_on_data(context.module) is None and not any(map(_uses_data, context.module.walk()))


def _uses_data(op: Operation) -> bool:
    row = op.row
    if row is None or row.set == "comm":
        return True
    kind = row.algorithm.partition(":")[0]
    if row.set in ("vector", "predicate"):
        folds = row.family == "reduction" and bool(row.expr)
        return kind not in _LOADS and row.family not in _VECTOR and not folds
    if row.set == "scalar" and any(_is_float(v) for v in op.operands):
        return not all(_is_float(r) for r in op.results)  # a branch on a number that a launch chooses
    return kind in _BY_DATA


def _is_float(value: Value) -> bool:
    return isinstance(value.type, ScalarType) and value.type.is_float


def launches(context: ProofContext) -> list[Model] | None:
    """Return the values of all launches; None if there are too many."""
    terms = list(context.parameters.values())
    if context.launch is not None:
        if context.launch.free:
            return None
        terms += [v for v in (*context.launch.values, context.launch.blocks) if isinstance(v, Term)]
    free = list(dict.fromkeys(s for t in terms for s in t.symbols))
    ranges = [range(s.low or 0, s.high + 1) if s.high is not None else None for s in free]
    known = [r for r in ranges if r is not None]
    if len(known) < len(ranges) or prod(r.stop - r.start for r in known) > _MOST:
        return None
    models = (dict(zip(free, values, strict=True)) for values in product(*known))
    return [m for m in models if all(_holds(context, m, fact) for fact in context.solver.axioms)]


def _holds(context: ProofContext, model: Model, fact: object) -> bool:
    if fact is NEVER or symbols(fact) - model.keys():
        return fact is not NEVER
    return bool(value_of(fact, model))  # type: ignore[arg-type]


def decide(context: ProofContext, wanted: list[str], deadline: float) -> dict[str, Counterexample | None]:
    """Run all launches; return the properties that this decides, with a counterexample if there is one."""
    every = launches(context)
    if every is None or not is_fixed(context):
        return {}
    pointers = [a for a in context.args if isinstance(a.type, PtrType) and a not in context.sizes]
    if context.launch is not None:
        pointers = [a for a in pointers if context.launch.sizes.get(a.index) is None]
    if pointers and context.launch is not None:  # the caller decides how much memory is there
        wanted = [p for p in wanted if p != "bounds"]
    left = {prop: True for prop in wanted}  # True for properties without an error so far
    found: dict[str, Counterexample | None] = {}
    op = context.functions[0]
    started = monotonic()
    for n, model in enumerate(every):
        launch = arguments(context, model, _ELEMENTS)
        late = monotonic() + (monotonic() - started) / max(1, n) * (len(every) - n) > deadline
        if launch is None or late:
            return {p: c for p, c in found.items() if c is not None}
        for sanitizer in {PROPERTIES[p][0] for p in wanted}:
            undef = Undef(Reports())  # zeros may hide a use of undefined data: no operand may be undefined
            watchers = [undef] if sanitizer == "undef" else []
            errors = [d for seed in (None, 1) for d in reports(context, launch, sanitizer, seed, watchers)]
            for prop in [p for p in wanted if PROPERTIES[p][0] == sanitizer]:
                report = next((d for d in errors if is_of(prop, d.code)), None)
                if report is not None and not (pointers and report.code == "PTO-E2101") and prop not in found:
                    why = "a run of this launch has a report"
                    found[prop] = Counterexample(Candidate(prop, op, None, why, [], model), launch, report)
                left[prop] = left[prop] and not errors and not undef.followed
    for a in pointers if left.get("bounds") else ():
        context.needs.setdefault(a, {})[""] = _ELEMENTS
    return {p: found.get(p) for p in wanted if p in found or left[p]}
