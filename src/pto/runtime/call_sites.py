"""Source locations of the submissions of a C++ orchestration: the function, and the calls that lead to it.

The task runtime keeps the return addresses of each submission, as offsets in the library (`CallChain`). A
library for checks is compiled with line tables and without inlining, so that the addresses name every
function.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..engine.cpp.lines import Line
from ..engine.cpp.places import LibraryPlaces


class _Offsets(LibraryPlaces):
    """Source locations of offsets in a library; the library need not be loaded any more."""

    def line(self, address: int) -> Line | None:
        return self._lines.at(address - 1)


def call_sites(sites: Sequence[str], chains: Sequence[Sequence[int]], library: str) -> list[str]:
    """Return `file:line` of each submission. If a function that submits is called by another one, name both:
    `graph.cpp:9 in add, called at graph.cpp:30 in entry`."""
    places = _Offsets(library)

    @cache
    def called(site: str, chain: tuple[int, ...]) -> str:
        of = [(name, at) for name, at in places.functions(chain) if not at.source.name.startswith("/usr/")]
        if len(of) < 2:
            return site
        submits, by = of[0]
        callers = (f", called at {at.source.name}:{at.line} in {name}" for name, at in of[1:])
        return f"{by.source.name}:{site.rpartition(':')[2]} in {submits}" + "".join(callers)

    found = [called(site, tuple(chain)) for site, chain in zip(sites, chains, strict=False)]
    return [*found, *sites[len(found) :]]
