"""Properties, and the results of a walk: candidates for a refutation, and reasons why nothing can be said."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.core import Operation
from ..symbolic.solver import Model
from ..symbolic.terms import Truth

#: Property -> the sanitizer that reports violations of it, and the codes of these reports.
PROPERTIES: dict[str, tuple[str, tuple[str, ...]]] = {
    # windows stay in views and tiles, tiles in buffers, and sizes keep the rules of instructions
    "bounds": ("oob", (*(f"PTO-E2{n}" for n in (101, 102, 204, 209, 211)), "SA-0353", "SA-0354")),
    # no wait is stuck, no flag is set twice or left set, and tokens are taken and released in pairs
    "flags": ("sync", (*(f"PTO-E080{n}" for n in (3, 4, 5, 6, 7)), "PTO-E2104")),
    # no race between the pipes and cores of a block, and none inside a vecscope
    "pipes": ("race", ("PTO-E2201", "PTO-E2206")),
    # no race between blocks
    "blocks": ("race", ("PTO-E2202",)),
    # no result depends on data that was never written
    "undef": ("undef", ("PTO-E2203",)),
    # no tile is read after another one has overwritten part of it
    "overlap": ("overlap", ("PTO-E2210",)),
}
ACCESSES = ("bounds", "pipes", "blocks", "undef", "overlap")
EVERY = tuple(PROPERTIES)


@dataclass
class Candidate:
    """Values that may break a property at an operation, perhaps together with another one."""

    prop: str
    op: Operation
    other: Operation | None
    why: str
    facts: list[Truth]
    model: Model


@dataclass(frozen=True)
class Reason:
    """Reason why nothing can be said about a property."""

    op: Operation | None
    why: str


class CannotFollow(Exception):
    """An operation that the proof cannot follow, and the properties that depend on it."""

    def __init__(self, op: Operation, why: str, props: tuple[str, ...] = EVERY) -> None:
        super().__init__(why)
        self.reason, self.props = Reason(op, why), props


@dataclass
class ProofFindings:
    wanted: tuple[str, ...]
    candidates: dict[tuple[str, Operation, Operation | None], Candidate] = field(default_factory=dict)
    unknown: dict[str, dict[Reason, None]] = field(default_factory=dict)

    def note(self, reason: Reason, props: tuple[str, ...]) -> None:
        for prop in props:
            self.unknown.setdefault(prop, {})[reason] = None

    def add(self, found: Candidate) -> None:
        self.candidates.setdefault((found.prop, found.op, found.other), found)
