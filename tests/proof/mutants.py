"""Mutants of programs: lines that order something removed, numbers changed by one; and sampled launches.

A verdict "proved" on a mutant is wrong if some launch within its assumptions has a report of that property.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pto
from pto.ir.core import Module
from pto.proof.context import ProofContext
from pto.proof.findings import PROPERTIES
from pto.proof.prove import Proof, prove
from pto.proof.replay import arguments, is_of, reports
from pto.symbolic.terms import Term, eq, value_of

_ORDERS = re.compile(r"^\s*pto\.(set_flag|wait_flag|barrier|mem_bar|get_buf|rls_buf|sync\.|set_cross|wait_)")
_NUMBER = re.compile(r"(arith\.constant )(\d+)( : (?:index|i64|i32))")
_COMPARE = re.compile(r"(arith\.cmpi )(s|u)(lt|le|gt|ge),")
_TURNED = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
_SWAPPED = (
    ("arith.addi", "arith.subi"), ("arith.subi", "arith.addi"), ("arith.minsi", "arith.maxsi"),
    ("arith.maxsi", "arith.minsi"), ("arith.muli", "arith.addi"), ("arith.divsi", "arith.ceildivsi"),
    ("arith.remui", "arith.divui"),
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    line: int
    change: str
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """Yield every mutant of a program."""
    lines = text.splitlines()
    for n, line in enumerate(lines):
        changed: list[tuple[str, str]] = []
        if _ORDERS.match(line):
            changed.append(("removed", ""))
        if m := _NUMBER.search(line):
            number = int(m[2])
            changed += [
                (f"{number} -> {new}", line[: m.start(2)] + str(new) + line[m.end(2) :])
                for new in (number + 1, number - 1)
                if new >= 0
            ]
        if m := _COMPARE.search(line):
            changed.append((f"{m[3]} -> {_TURNED[m[3]]}", line.replace(m[2] + m[3], m[2] + _TURNED[m[3]])))
        for old, new in _SWAPPED:
            if f"{old} " in line:
                changed.append((f"{old} -> {new}", line.replace(f"{old} ", f"{new} ")))
        for what, new in changed:
            yield Mutant(n + 1, what, "\n".join([*lines[:n], new, *lines[n + 1 :]]) + "\n")


def launches(
    module: Module, assume: tuple[str, ...] = (), count: int = 12, seed: int = 1, least: int = 1
) -> Iterator[set[str]]:
    """Run launches with random small parameters and schedules within the assumptions; yield the properties that each breaks."""
    from pto.engine.launch import kernel
    from pto.engine.reference.kernel import ReferenceKernel
    from pto.ir.assumptions import Assumption, assumptions_of

    made = kernel(module, engine="reference")
    assert isinstance(made, ReferenceKernel)
    # a proof that stops after the walk: it has the extents that the arrays need
    found = prove(made, assume=assume, properties=())
    context: ProofContext = found.context
    context.solver.deadline = float("inf")
    given = [*assumptions_of(made.functions), *map(Assumption, assume)]
    rng = random.Random(seed)
    tried: set[tuple[object, ...]] = set()
    for n in range(count * 20):
        most = rng.choice((2, 5, 17, 40, 70, 150))
        limits: dict[Term, tuple[int, int]] = {}
        for name, p in context.parameters.items():
            for s in p.symbols:
                low, high = s.low or 0, s.high if s.high is not None else 1
                top = {"blocks": 4}.get(name, most if s is p else max(1, most // 16))
                limits[s] = low, max(low, min(high, top))
        values = {s: rng.randint(*ends) for s, ends in limits.items()}
        named = {name: int(value_of(p, values)) for name, p in context.parameters.items()}
        if not all(one.holds(named) for one in given):  # keep one number, and ask for the others
            kept, number = rng.choice([*values.items()])
            found_by_solver = context.solver.model([eq(kept, number)])
            if not isinstance(found_by_solver, Mapping):
                continue
            values = {s: int(found_by_solver.get(s, values[s])) for s in values}
            if any(x > 40 * limits[s][1] + 4096 for s, x in values.items()):
                continue
            named = {name: int(value_of(p, values)) for name, p in context.parameters.items()}
        schedule = rng.choice((None, rng.randrange(1000)))
        key = (*named.values(), *((schedule,) if n > 2 * count or not named else ()))
        if key in tried or not all(one.holds(named) for one in given):
            continue
        tried.add(key)
        launch = arguments(context, values, least)
        if launch is None:
            continue
        codes = {d.code for name, _ in PROPERTIES.values() for d in reports(context, launch, name, schedule)}
        yield {prop for prop in PROPERTIES for code in codes if is_of(prop, code)}
        if len(tried) == (count if named else min(count, 10)):
            break


def launches_of(text: str, proof: Proof, assume: tuple[str, ...] = (), count: int = 12) -> Iterator[set[str]]:
    """Run launches of a program within the assumptions of a proof; yield the properties that each breaks."""
    least = 1 << 16 if any(a.endswith("holds 65536 elements") for a in proof.assumptions) else 1
    yield from launches(pto.parse(text), assume, count, least=least)


def missed(text: str, proof: Proof, assume: tuple[str, ...] = (), count: int = 12) -> set[str]:
    """Return the properties that a proof calls proved and a launch breaks."""
    proved = {v.prop for v in proof.verdicts.values() if v.ok}
    found = launches_of(text, proof, assume, count) if proved else ()
    return set[str]().union(*found) & proved
