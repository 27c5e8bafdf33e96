"""Costs of instructions as data: expressions over operands and attributes, each with its evidence.

    Cost("tadd tsub", "2 * reps(dst) + masked(dst)", "25", MEASURED, "single instructions on a device")

The expressions are those of rules (`isa/rules.py`), with the functions below and the parameters of the
machine (`isa/timing.py`) by name. An instruction occupies its pipe for `busy` cycles, and its result is
available `after` cycles later. A single instruction costs both; an instruction after others of its pipe costs
only `busy`. All cores that move bytes along a `path` of global memory share its bandwidth.

    charge("tadd", MACHINES["a2a3"], dst=tile("f32", 64, 64)).cycles    # -> 153.0

Rows without an entry are charged by their pipe, and marked as guesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..record import Record
from ..row import Row
from ..rules import Unknown, evaluate, holds
from ..timing import Machine
from . import a2a3, a5, shared
from .entry import DERIVED, FITTED, GUESSED, MEASURED, PATHS, READS, WRITES, Cost
from .shapes import FUNCTIONS, Shape, tile, view

__all__ = [
    "DERIVED", "FITTED", "FUNCTIONS", "GUESSED", "MEASURED", "NOTHING", "PATHS", "READS", "WRITES", "Charge",
    "Cost", "Shape", "charge", "charged", "costs_of", "tile", "view",
]  # fmt: skip


@cache
def _tables(isa: str) -> dict[str, tuple[Cost, ...]]:
    found: dict[str, tuple[Cost, ...]] = {}
    for table in ((a5.COSTS if isa == "a5" else a2a3.COSTS), shared.COSTS):
        for cost in table:
            for name in cost.names.split():
                found[name] = (*found.get(name, ()), cost)
    return found


def costs_of(row: Row, isa: str) -> tuple[Cost, ...]:
    """Return the entries of a row in a column, in order. The last entry applies if no earlier one does."""
    pipes = row.pipe if isinstance(row.pipe, str) else row.pipe[-1][1]
    own = _tables("a5" if isa == "a5" else "a2a3").get(row.name, ())
    if own and not own[-1].when:
        return own
    usual = shared.BY_PIPE.get(pipes.removeprefix("PIPE_"), shared.BY_PIPE["S"])
    return (*own, usual.replace(names=row.name))


class Charge(Record):
    """Cost of one instruction."""

    busy: float
    after: float
    evidence: str
    path: str = ""
    bytes: float = 0.0
    flops: float = 0.0

    @property
    def cycles(self) -> float:
        return self.busy + self.after


NOTHING = Charge(0.0, 0.0, DERIVED)


#: Operands in entries for many rows, which a row may lack.
_NAMED = ["dst", "src", "src0", "tile"]


def charged(row: Row, machine: Machine, args: Mapping[str, Any]) -> Charge:
    """Return the cost of an instruction with these operands and attributes."""
    missing = dict.fromkeys(_NAMED + [o.name for o in row.operands] + [a.name for a in row.attrs])
    env = {**missing, **machine.values, **FUNCTIONS, **args, "isa": machine.isa}
    for cost in costs_of(row, machine.isa):
        if cost.when and not holds(cost.when, env):
            continue
        try:
            busy, after = float(evaluate(cost.busy, env)), float(evaluate(cost.after, env))
            moved = float(evaluate(cost.bytes, env)) if cost.bytes else 0.0
            flops = float(evaluate(cost.flops, env)) if cost.flops else 0.0
        except (Unknown, AttributeError):
            continue  # an operand of the entry is missing
        return Charge(max(busy, 0.0), max(after, 0.0), cost.evidence, cost.path, moved, flops)
    return Charge(machine.issue, 0.0, GUESSED)


def charge(name: str, machine: Machine, **args: Any) -> Charge:
    """Return the cost of an instruction by the name of its row."""
    from .. import row  # the table is read on first use

    found = row(name)
    if found is None:
        raise ValueError(f"unknown instruction {name!r}")
    return charged(found, machine, args)
