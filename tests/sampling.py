"""Samples of exhaustive tests: `make test` checks some cases of each, `make matrix` (PTO_TEST_MATRIX=1) checks all.

some(cases, 4)                       # a quarter of the cases, spread evenly; every case in `make matrix`
some(cases, 4, by=lambda c: c.row)   # at least one case of every row
@matrix                              # a test that only `make matrix` runs
@examples(80)                        # as `hypothesis.settings(max_examples=80)`, or a quarter of that
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

#: True if every case is checked.
EVERY = os.environ.get("PTO_TEST_MATRIX") == "1"

#: Marks a test whose cases ordinary tests sample, or whose faults ordinary tests find: say which.
matrix = pytest.mark.matrix


def some(cases: Iterable[T], share: int, by: Callable[[T], Hashable] = lambda _: None) -> list[T]:
    """Return one of `share` cases of each group, at least one; successive groups start at different cases."""
    found = list(cases)
    if EVERY:
        return found
    groups = defaultdict[Hashable, list[int]](list)
    for place, case in enumerate(found):
        groups[by(case)].append(place)
    chosen = [
        group[(first + k * share) % len(group)]
        for first, group in enumerate(groups.values())
        for k in range(max(1, len(group) // share))
    ]
    return [found[place] for place in sorted(set(chosen))]


def examples(count: int) -> settings:
    """The settings of a property test: `count` examples in `make matrix`, a quarter of them in `make test`."""
    return settings(max_examples=count if EVERY else -(-count // 4))
