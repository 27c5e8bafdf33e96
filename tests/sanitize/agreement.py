"""Do the screens of engine native suspect every program that the sanitizers of the reference engine report? Random
programs on both:

    python -m tests.sanitize.agreement 20000 --jobs 16 --seed 0
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import Pool
from typing import Any, NamedTuple

import numpy as np

import pto
from pto.engine.native.screened import CheckedLaunches
from pto.engine.reference.kernel import ReferenceKernel

from . import random_cores, random_tiles, random_vectors

#: One sanitizer at a time, so that none hides what another misses.
SELECTIONS = ("race", "undef", "overlap", "oob,sync,nan")


class Source(NamedTuple):
    """Makes random programs: the first legal one from a seed on, with its arguments and options."""

    program: Callable[[int], str]
    arrays: Callable[[], list[Any]]
    options: Callable[[int], dict[str, Any]]


def _tiles() -> list[Any]:
    rng = np.random.default_rng(3)
    return [rng.integers(1, 9, (64, 64)).astype(np.float32) for _ in "xyz"]


def _vectors() -> list[Any]:
    rng = np.random.default_rng(3)
    return [rng.integers(1, 9, 1024).astype(np.float32) for _ in "xy"]


def _cores() -> list[Any]:
    rng = np.random.default_rng(3)
    x = rng.integers(1, 3, (16, 16)).astype(np.float16)
    return [x, *(rng.integers(1, 9, (64, 16)).astype(np.float32) for _ in "pq")]


SOURCES = {
    "tiles": Source(random_tiles.program, _tiles, lambda seed: {"blocks": 1 + seed % 3 // 2}),
    "vectors": Source(random_vectors.program, _vectors, lambda seed: {}),
    "cores": Source(
        random_cores.program, _cores, lambda seed: {"blocks": 1 + seed % 2, "subblocks": 1 + seed // 2 % 2}
    ),
}


def screen(text: str) -> CheckedLaunches:
    return CheckedLaunches(ReferenceKernel(pto.parse(text), None, None, True))


def told(result: Any) -> list[str]:
    return [d.render() if hasattr(d, "render") else str(d) for d in result.diagnostics]


def reason_of(
    checked: CheckedLaunches, names: str, arrays: Callable[[], list[Any]], equal: bool = True, **options: Any
) -> tuple[str, bool]:
    """Run a program on both; return the reason of the second run, and whether there are findings. `equal`: the
    results are compared, too."""
    mine, theirs = arrays(), arrays()
    result = checked.run(*mine, sanitize=names, **options)
    wanted = checked.reference.run(*theirs, sanitize=names, **options)
    assert checked.reason or not wanted.diagnostics, f"{names}: not suspected: {told(wanted)}"
    assert told(result) == told(wanted), f"{names}: {told(result)} and {told(wanted)}"
    for a, b in zip(mine, theirs, strict=True):
        assert not equal or np.array_equal(a, b), f"{names}: other results"
    return checked.reason, bool(wanted.diagnostics)


def reasons(kind: str, seed: int) -> Iterator[tuple[str, str, bool]]:
    """Run the random program of a seed under each selection; yield the selection, the reason of the second run
    without its operands, and whether there are findings."""
    source = SOURCES[kind]
    texts = (source.program(seed + (n << 40)) for n in range(100))
    text = next(text for text in texts if not pto.verify(pto.parse(text)))
    checked, races = screen(text), False
    assert checked.kernel is not None, f"no screens\n{text}"
    for names in SELECTIONS:
        try:
            # cores that race take turns in another order on the other engine
            why, found = reason_of(checked, names, source.arrays, not races, **source.options(seed))
        except AssertionError as e:
            raise AssertionError(f"{e}\n{text}") from None
        races |= names == "race" and bool(why)
        yield names, re.sub(r".*suspicion: | \(.*|.*is stuck.*", "", why), found


def _judged(case: tuple[str, int]) -> tuple[Counter[tuple[str, ...]], str]:
    counts: Counter[tuple[str, ...]] = Counter()
    try:
        for names, why, found in reasons(*case):
            counts[names, "reported" if found else "suspected" if why else "decided"] += 1
    except Exception as e:  # every program is to be judged
        return counts, f"{case[0]}, seed {case[1]}: {type(e).__name__}: {e}"
    return counts, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", type=int, help="number of programs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    kinds = list(SOURCES)
    cases = [(kinds[n % len(kinds)], n) for n in range(given.seed, given.seed + given.count)]
    counts: Counter[tuple[str, ...]] = Counter()
    failed = 0
    with Pool(given.jobs) as pool:
        for more, problem in pool.imap_unordered(_judged, cases, 16):
            counts += more
            failed += bool(problem)
            if problem and failed <= 10:
                print(problem, flush=True)
    print(f"{given.count} programs, {failed} fail")
    for names in SELECTIONS:
        parts = [f"{counts[names, what]} {what}" for what in ("decided", "suspected", "reported")]
        print(f"  {names:14} {', '.join(parts)}")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
