"""Order of tasks by `explain` before a run, compared with the findings of a run of the graph.

`explain` names pairs of calls that are certainly unordered. It does not name pairs that only a run can
decide. So a run must find every pair that `explain` names, if both calls were made; and it must find no pair
that `explain` takes for ordered or for apart. If several calls wait for one another and all overwrite data of
an earlier call, `explain` names the first: the same order is missing for the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from pto.language.checks.touched_bytes import met
from pto.language.graphs.graph import CallGraph, Edge, Site
from pto.language.graphs.tasks import with_windows
from pto.language.programs import compiled
from pto.language.programs.compiled import Compiled


class Compared(NamedTuple):
    """A graph that was run: pairs of lines, the earlier call first."""

    name: str
    explained: frozenset[tuple[int, int]]  # unordered for certain
    found: frozenset[tuple[int, int]]  # unordered in a run
    wrong: tuple[str, ...]


def compare(program: Compiled, values: list[Any]) -> Compared:
    """Run a graph on copies of its arguments, and compare."""
    graph = CallGraph(program.entry)
    run = program.execute(program._copied(values), check_hazards=True)
    functions = program.lowered.functions
    hazards = [h for h in compiled.hazards(run, functions) if h.kind in ("RAW", "WAR", "WAW")]
    exact = not any(f.kind in ("python", "extern") for f in functions.values())
    if hazards and exact and not with_windows(program.program.functions):
        hazards = list(met(hazards, program, program._copied(values)))
    tracked = {line(s) for s in graph.sites if s.tracked}
    pairs = frozenset((number(h.places[0]), number(h.places[1])) for h in hazards)
    found = frozenset(p for p in pairs if p[0] in tracked and p[1] in tracked)
    possible = {lines(e) for e in graph.edges if e.kind == "overwrites"}
    ran = {number(site) for site in run.records.sites}
    named = frozenset(lines(e) for e in graph.hazards())
    waits = {lines(e) for e in graph.edges if e.kind == "waits"}
    implied = {(a, c) for a, b in found & possible for c in reached(b, waits)}
    wrong = [
        f"a run finds lines {a} and {b} unordered, explain does not"
        for a, b in sorted(found - possible - implied)
    ]
    wrong += [
        f"explain finds lines {a} and {b} unordered, a run does not"
        for a, b in sorted(named - found)
        if {a, b} <= ran
    ]
    return Compared(program.name, named, found, tuple(wrong))


def reached(start: int, pairs: set[tuple[int, int]]) -> set[int]:
    """The lines that come after one by pairs of lines."""
    found: set[int] = set()
    todo = [start]
    while todo:
        at = todo.pop()
        more = {b for a, b in pairs if a == at} - found
        found |= more
        todo += more
    return found


def line(site: Site) -> int:
    return site.op.loc.line if site.op.loc is not None else 0


def lines(e: Edge) -> tuple[int, int]:
    return line(e.earlier), line(e.later)


def number(place: str) -> int:
    """Return the line of a source location: FILE:LINE, possibly with callers after it."""
    last = place.partition(",")[0].partition(" ")[0].rpartition(":")[2]
    return int(last) if last.isdigit() else 0


@contextmanager
def comparing(into: list[Compared]) -> Iterator[None]:
    """Compare every graph that is launched in this time, the first time it is."""
    seen: set[int] = set()
    with pytest.MonkeyPatch.context() as patch:
        for how in ("launch", "run", "execute"):
            own = getattr(Compiled, how)

            def launched(
                self: Compiled, values: list[Any], *args: Any, own: Any = own, **options: Any
            ) -> Any:
                if self.is_graph and id(self) not in seen:
                    seen.add(id(self))
                    into.append(compare(self, values))
                return own(self, values, *args, **options)

            patch.setattr(Compiled, how, launched)
        yield
