"""Every communication instruction, element type, number of ranks and root against NumPy, bit for bit, on every way
to launch ranks. `PTO_TEST_MATRIX=1` (make matrix) has all of them, with every shape and compiled C++ too; the ordinary
run takes half of the element types on engine reference."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from tests.host.launching import start
from tests.sampling import EVERY, some

import pto

from .native.without_pack import compile_calls
from .rank_cases import COLLECTIVES, COUNTS, INSTRUCTIONS, SHAPES, Case, cases

CASES = list(cases(EVERY))


def check(case: Case, engine: str, world: Any = None, **options: Any) -> None:
    kernel = pto.kernel(pto.parse(case.text), engine=engine)
    for got, want in zip(case.run(kernel, world, **options), case.expected(), strict=True):
        assert got.tobytes() == want.tobytes(), (case, engine, options)


def quick(case: Case) -> bool:
    """A call on a group is compiled for each of its sizes, which takes time."""
    return EVERY or case.instruction not in COLLECTIVES or case.dtype == "f32"


def test_the_cases_meet_everything() -> None:
    assert {c.instruction for c in CASES} == set(INSTRUCTIONS)
    assert {c.ranks for c in CASES} == set(COUNTS) and {c.shape for c in CASES} == set(SHAPES)
    assert {c.root for c in CASES} == set(range(8))


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_reference(instruction: str) -> None:
    """And silent under all checks."""
    for case in some((case for case in CASES if case.instruction == instruction), 2):
        check(case, "reference", sanitize="all")


@pytest.mark.parametrize("engine", ["native", *(["cpp"] if EVERY else [])])
def test_one_process_and_several(engine: str) -> None:
    met: set[str] = set()
    chosen = list(filter(quick, CASES))
    if engine == "native":
        compile_calls(pto.parse(case.text) for case in chosen)
    for case in chosen:
        check(case, engine)
        if EVERY or (case.instruction not in met and len(met) < 6):  # processes take their time to start
            check(case, engine, processes=True)
            met.add(case.instruction)


def start_all(ranks: int, what: str, **more: Any) -> None:
    """Run the cases of so many ranks as their launcher."""
    command = sys.executable, "-m", "tests.engine.test_rank_matrix", what
    ended = start(ranks, *command, launcher=ranks % 2, timeout=3000, **more)
    assert [status for status, *_ in ended] == [0] * ranks, ended
    assert all(int(said) >= 7 for _, said, _ in ended), ended


@pytest.mark.parametrize("ranks", COUNTS[1:] if EVERY else (2,))
def test_another_launcher(ranks: int) -> None:
    start_all(ranks, "some")


@pytest.mark.parametrize("ranks", COUNTS[1:] if EVERY else (3,))
def test_several_nodes(ranks: int) -> None:
    """Ranks side by side are on different nodes; with more than two, some of a node are among them."""
    start_all(ranks, "all", PTO_NODE=lambda rank: rank % 2)


def launched(what: str) -> int:
    """Run as a rank: the cases of so many ranks, or all cases on so many."""
    ranks = pto.launched_ranks(1 << 16).ranks
    known = list(filter(quick, CASES))
    if what == "all":
        shown = some(known, 6, by=lambda c: c.instruction)
        mine = [replace(case, ranks=ranks, root=case.root % ranks) for case in shown]
    else:
        mine = some([case for case in known if case.ranks == ranks], 2, by=lambda c: c.instruction)
    compile_calls(pto.parse(case.text) for case in mine)
    for case in dict.fromkeys(mine):
        check(case, "native", pto.launched_ranks(1 << 16))
    return len(mine)


if __name__ == "__main__":
    print(launched(sys.argv[1]))
