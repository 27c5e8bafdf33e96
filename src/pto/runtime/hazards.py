"""Accesses of a run that nothing orders: the outcome of the graph depends on the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..diag import Diagnostic

_KINDS = {1: "WAW", 2: "WAR", 4: "scope"}


class Hazard:
    """Two tasks that touch the same memory, with nothing that orders them."""

    def __init__(self, kind: str, earlier: int, later: int, arg: int, places: tuple[str, str]) -> None:
        self.kind = kind
        self.earlier = earlier
        self.later = later
        self.arg = arg
        self.places = places

    def __str__(self) -> str:
        where, there = (f" at {p}" if p else "" for p in self.places)
        if self.kind == "scope":
            return (
                f"task {self.later}{there} reads, as parameter {self.arg}, memory whose scope has ended: "
                "it may have been given to another task"
            )
        what = "reads" if self.kind == "WAR" else "writes"
        does = "reads" if self.kind == "RAW" else "writes"
        return (
            f"{self.kind}: task {self.later}{there} {does}, as parameter {self.arg}, what task "
            f"{self.earlier}{where} {what}, and nothing orders the two"
        )


def problems(hazards: Sequence[Hazard]) -> list[Diagnostic]:
    """For those who read diagnostics: one for each pair of places, however often it is met."""
    groups: dict[tuple[Any, ...], list[Hazard]] = {}
    for h in hazards:
        groups.setdefault((h.kind, h.arg, h.places), []).append(h)
    out: list[Diagnostic] = []
    for first, *others in groups.values():
        help = "give the later task a fresh tensor, make the earlier one INOUT, or run with --track-war"
        if first.kind == "scope":
            help = "submit the reader inside the scope, or make the tensor before it"
        d = Diagnostic("PTO-E2611", str(first), severity="warning", help=help)
        if others:
            d.notes.append((f"seen {len(others) + 1} times; this is the first", None))
        out.append(d)
    return out


def hazards_of(run: Any) -> list[Hazard]:
    """What a native run found; nothing unless it was told to look."""
    found = run.hazards()
    sites = run.records()["sites"] if found else []

    def place(task: int) -> str:
        return sites[task] if 0 <= task < len(sites) else ""

    return [Hazard(_KINDS[k], a, b, arg, (place(a), place(b))) for k, a, b, arg in found]
