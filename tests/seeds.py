"""Seeds of tests that make random programs of their own: the same in every run, others in every round of `make fuzz`.

A test marked `seeded` draws its seeds through `seeds`; `tests/fuzz/rounds.py` runs it like a property test.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Seed of the round; 0 in ordinary runs.
fuzz_round = 0


def seeds(usual: Iterable[int]) -> list[int]:
    """These seeds, or those that stand for them in this round."""
    return [seed + (fuzz_round << 20) for seed in usual]
