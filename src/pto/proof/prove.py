"""Entry of proofs: verdicts for the properties of a kernel, for all values of its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import lcm
from pathlib import Path
from time import monotonic
from typing import Any

from ..diag import Diagnostic, DiagnosticError
from ..engine.launch import kernel as launched
from ..engine.reference.kernel import ReferenceKernel
from ..ir.assumptions import Assumption, assumptions_of
from ..ir.core import Module, constant_of
from ..ir.types import MemRefType, PtrType, ViewType
from ..shown import Shown
from ..symbolic.solver import OutOfTime, Solver
from ..symbolic.terms import Truth, as_truth, is_truth
from .blocks import across
from .context import LARGEST, MOST_BLOCKS, MOST_SIZE, LaunchFacts, Parameters, ProofContext
from .findings import EVERY, PROPERTIES, CannotFollow, ProofFindings, Reason
from .finite import decide
from .replay import Counterexample, confirmed
from .scalars import NoTerm, Scalars
from .walk import ProofWalk

PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"


@dataclass
class Verdict:
    """The verdict on one property: `reasons` say why it is unknown."""

    prop: str
    verdict: str
    reasons: list[Diagnostic] = field(default_factory=list)
    counterexample: Counterexample | None = None

    @property
    def ok(self) -> bool:
        return self.verdict == PROVED


@dataclass
class Proof(Shown):
    """Verdicts on a kernel, and everything that they assume."""

    name: str
    verdicts: dict[str, Verdict]
    assumptions: list[str]
    seconds: float
    questions: int
    states: int
    context: ProofContext = field(repr=False)

    @property
    def ok(self) -> bool:
        """Return True if all properties are proved."""
        return all(v.ok for v in self.verdicts.values())

    @property
    def verdict(self) -> str:
        """Return the verdict on all properties together."""
        return together(v.verdict for v in self.verdicts.values())

    @property
    def lines(self) -> list[str]:
        """Return the verdicts as text."""
        found: list[str] = []
        for verdict in (PROVED, REFUTED, UNKNOWN):
            names = [v.prop for v in self.verdicts.values() if v.verdict == verdict]
            if names:
                found.append(f"@{self.name}: {verdict}: {', '.join(names)}")
        if self.assumptions:
            found.append("  for " + "; ".join(self.assumptions))
        return found

    @property
    def notes(self) -> list[Diagnostic]:
        """Return the reasons of unknown properties, each once."""
        found: dict[Any, tuple[Diagnostic, list[str]]] = {}
        for v in self.verdicts.values():
            for d in v.reasons:
                why = d.message.partition(": ")[2]
                place = None if d.span is None else (d.span.source.name, d.span.start)
                found.setdefault((place, why), (d, []))[1].append(v.prop)
        return [
            Diagnostic(d.code, f"{', '.join(props)} not proved: {why}", d.span, d.severity)
            for (_, why), (d, props) in found.items()
        ]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return the reports of counterexamples, and the reasons of unknown properties."""
        reports = [v.counterexample.report for v in self.verdicts.values() if v.counterexample is not None]
        return [*reports, *self.notes]

    def __getitem__(self, prop: str) -> Verdict:
        return self.verdicts[prop]


def together(verdicts: Iterable[str]) -> str:
    """Return the verdict on several properties or kernels."""
    found = set(verdicts)
    return REFUTED if REFUTED in found else UNKNOWN if UNKNOWN in found else PROVED


def prove(
    program: Module | ReferenceKernel | str | Path,
    *,
    assume: Sequence[str] = (),
    entry: str | None = None,
    target: Any = None,
    properties: Iterable[str] = EVERY,
    timeout: float = 60.0,
    subblocks: int | None = None,
    parameters: Parameters | None = None,
    launch: LaunchFacts | None = None,
) -> Proof:
    """Prove properties of a kernel for all values of its parameters, or find values that break them.
    `subblocks` is the number of vector cores of a mixed kernel, as in a launch. With `launch`, its arguments
    have values in terms of the `parameters` of its caller."""
    started = monotonic()
    wanted = tuple(properties)
    for prop in [w for w in wanted if w not in PROPERTIES]:
        raise ValueError(f"unknown property {prop!r}: expected {', '.join(EVERY)}")
    solver = Solver(started + timeout)  # first, because nothing can be done without z3
    found: Any = program
    if not isinstance(program, ReferenceKernel):
        found = launched(program, entry, target=target, engine="reference")
    assert isinstance(found, ReferenceKernel)
    given = [*assumptions_of(found.functions), *map(Assumption, assume)]
    findings = ProofFindings(wanted)
    context = ProofContext(found, solver, findings, parameters or parameters_for(given), launch, subblocks)
    for function in context.functions:
        for a in function.regions[0].blocks[0].args:
            context.argument(a)
    try:
        for fact in launch.facts if launch is not None else ():
            solver.assume(fact)
        _assumed(context, given)
        _walk(context, findings)
    except OutOfTime:
        findings.note(Reason(None, f"the proof takes more than {timeout:g} seconds"), EVERY)
    verdicts = {prop: _verdict(context, findings, prop) for prop in wanted}
    open_ones = [p for p, v in verdicts.items() if v.verdict == UNKNOWN]
    if open_ones:
        for prop, found_by_run in decide(context, open_ones, started + timeout).items():
            verdicts[prop] = Verdict(prop, PROVED if found_by_run is None else REFUTED, [], found_by_run)
    ordered = "pipes" not in findings.unknown and all(c.prop != "pipes" for c in findings.candidates.values())
    if not (verdicts["pipes"].ok if "pipes" in verdicts else ordered):
        reason = Reason(None, "it holds in the order of the program, and races may change the order")
        for prop in [p for p in ("undef", "overlap") if p in verdicts and verdicts[p].ok]:
            verdicts[prop] = Verdict(prop, UNKNOWN, [_diagnostic(context, prop, reason)])
    return Proof(
        found.name, verdicts, _assumptions_text(context, given), monotonic() - started, solver.questions,
        context.states, context,
    )  # fmt: skip


def parameters_for(given: Sequence[Assumption]) -> Parameters:
    """Return parameters with the ranges of assumptions."""
    return Parameters(_limits(given), _multiples(given), {n for one in given for n in one.names})


def _limits(given: Sequence[Assumption]) -> dict[str, tuple[int, int]]:
    """Return the ranges of parameters that assumptions give."""
    found: dict[str, tuple[int, int]] = {}
    for one in given:
        for name, (low, high) in one.limits().items():
            usual = (
                (1, MOST_BLOCKS)
                if name == "blocks"
                else (0, MOST_SIZE if name.endswith(".size") else LARGEST)
            )
            a, b = found.get(name, usual)
            low = a if low is None else low if a == usual[0] else max(a, low)
            high = b if high is None else high if b == usual[1] else min(b, high)
            found[name] = (low, max(low, high))
    return found


def _multiples(given: Sequence[Assumption]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in given:
        for name, by in one.multiples().items():
            found[name] = lcm(found.get(name, 1), by)
    return found


def _assumed(context: ProofContext, given: list[Assumption]) -> None:
    solver = context.solver
    for one in given:
        one.check_names(context.parameters)
        facts: list[Truth] = []
        holds, claim = partial(solver.implied, ()), lambda fact, _, facts=facts: facts.append(fact)
        try:
            known = Scalars(64, holds, claim, lambda x, by: None).known
            condition = as_truth(one.evaluate(context.parameters, known))
        except NoTerm as e:
            raise one.wrong(f"it is not followed: {e}") from None
        for fact in (*facts, condition):
            solver.assume(fact)
    if solver.model(()) is False:
        texts = ", ".join(f"'{one.text}'" for one in given)
        message = f"no values satisfy the assumptions {texts}"
        raise DiagnosticError([Diagnostic("PTO-E2441", message, help="correct one of them")])


def _walk(context: ProofContext, findings: ProofFindings) -> None:
    ops = (op for op in context.module.walk() if op.row is not None and op.row.set == "comm")
    ranks = next(ops, None)
    if ranks is not None:
        findings.note(Reason(ranks, "instructions between ranks are not followed"), EVERY)
        return
    for kind, function in context.roles:
        try:
            ProofWalk(context, kind, function).run()
        except CannotFollow as e:
            findings.note(e.reason, e.props)
    across(context)


def suggested(proof: Proof, assume: Sequence[str], timeout: float = 10.0) -> list[str]:
    """Return conditions under which bounds hold that some values break: each parameter is a multiple of a
    constant of the program, or at least that."""
    context, end = proof.context, monotonic() + timeout
    names = [n for n, p in context.parameters.items() if n != "blocks" and not is_truth(p)]
    every = {constant_of(r) for op in context.module.walk() for r in op.results if str(r.type) == "index"}
    sizes = sorted(n for n in every if isinstance(n, int) and 1 < n <= LARGEST)

    def hold(conditions: list[str]) -> bool:
        left, given = end - monotonic(), [*assume, *conditions]
        try:
            return left > 0 and prove(context.kernel, assume=given, properties=("bounds",), timeout=left).ok
        except DiagnosticError:  # no values are left
            return False

    for form in ("{} >= 1", *(f"{{}} {how}" for n in sizes for how in (f"% {n} == 0", f">= {n}"))):
        found = [form.format(name) for name in names]
        if found and hold(found):
            for one in [*found]:
                rest = [c for c in found if c != one]
                found = rest if rest and hold(rest) else found
            return found
    return []


def _verdict(context: ProofContext, findings: ProofFindings, prop: str) -> Verdict:
    candidates = [c for c in findings.candidates.values() if c.prop == prop]
    reasons = list(findings.unknown.get(prop, {}))
    if candidates:
        found, tried = confirmed(context, prop, candidates)
        if found is not None:
            return Verdict(prop, REFUTED, [], found)
        reasons += [Reason(c.op, text) for c, text in zip(candidates, tried, strict=False)]
    if reasons:
        notes = {(r.op.loc if r.op is not None else None, r.why): r for r in reasons}
        return Verdict(prop, UNKNOWN, [_diagnostic(context, prop, r) for r in notes.values()])
    return Verdict(prop, PROVED)


def _diagnostic(context: ProofContext, prop: str, reason: Reason) -> Diagnostic:
    op = reason.op
    name = "" if op is None else f"{op.row.name if op.row is not None else op.name}: "
    span = context.module.span(op).head if op is not None else None
    return Diagnostic("PTO-E2442", f"{prop} not proved: {name}{reason.why}", span, "note")


def _assumptions_text(context: ProofContext, given: list[Assumption]) -> list[str]:
    """Return the assumptions of a proof as text."""
    said = [one.text for one in given]
    if context.mixed and context.given_subblocks:
        said.append(f"{context.given_subblocks} vector core{'s' * (context.given_subblocks > 1)} per block")
    for name, (low, high) in context.ranges.items():
        said.append(f"{low} <= {name} <= {high}")
    for root, ends in context.needs.items():
        if isinstance(root.type, PtrType) and context.launch is None and root not in context.sizes:
            texts = ["all" if text == "all" else repr(end) for text, end in ends.items()]
            said.append(f"%{root.name} holds {' and '.join(texts)} elements")
    if sum(isinstance(a.type, PtrType | ViewType | MemRefType) for a in context.args) > 1:
        said.append("arrays do not overlap")
    return list(dict.fromkeys(said))
