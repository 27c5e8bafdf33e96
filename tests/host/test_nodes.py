"""Ranks on several nodes, which one machine stands for: a node is named by a variable, and between ranks of
different nodes everything goes over TCP. The instructions are in tests/engine/test_rank_matrix.py."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from .launching import start

EXAMPLES = Path(__file__).parents[2] / "examples" / "ranks"
RUN = (sys.executable, "-m", "pto.cli.main", "run")
ARGS = ["--", "window:i32:1x8", "window:i32:1", "context"]


def run(count: int, *command: str, nodes: int = 2, **more: str) -> list[tuple[int, str, str]]:
    """Return status and output of each of so many ranks, of which neighbours are on different nodes."""
    others = {name: lambda _, value=value: value for name, value in more.items()}
    return start(count, *command, PTO_NODE=lambda rank: rank % nodes, **others)


def program(name: str) -> tuple[str, ...]:
    return sys.executable, "-m", "tests.host.node_programs", name


@pytest.fixture
def hello() -> str:
    return str(EXAMPLES / "01_hello.pto")


def test_the_first_rank_has_what_all_of_them_made(hello: str, tmp_path: Path) -> None:
    saved, window = tmp_path / "y.npy", tmp_path / "w.npy"
    args = ["--", f"window:i32:1x8={window}", *ARGS[2:], f"i32:1x8={saved}"]
    first, second = run(2, *RUN, hello, "--ranks", "2", *args)
    assert first[0] == 0 and "2 ranks of 1 block" in first[1] and first[2] == ""
    assert second == (0, "", "")
    assert (np.load(saved) == [[[101] * 8], [[100] * 8]]).all()
    assert (np.load(window) == [[[101] * 8], [[100] * 8]]).all()


@pytest.mark.parametrize(("name", "ranks", "nodes"), [("order", 4, 2), ("ring", 3, 3), ("mixed", 2, 2)])
def test_programs(name: str, ranks: int, nodes: int) -> None:
    for status, _, said in run(ranks, *program(name), nodes=nodes):
        assert status == 0, said


def test_ranks_that_are_stuck_are_told(hello: str, tmp_path: Path) -> None:
    """All wait, and no message is on its way: that is found out, not guessed after a time."""
    stuck = tmp_path / "stuck.pto"
    stuck.write_text(Path(hello).read_text().replace("wait_cmp ge", "wait_cmp gt"))
    for status, _, said in run(2, *RUN, str(stuck), "--ranks", "2", *ARGS, "i32:1x8"):
        assert status == 1 and "PTO-E2104" in said and "rank 1: waits for a signal" in said


def test_a_rank_that_dies_is_told() -> None:
    """One of the others is on its node."""
    *others, last = run(3, *program("dies"))
    assert last[0] == -9
    for status, said, _ in others:
        assert status == 4 and said.startswith("PTO-E2422 rank ") and "has left before the others" in said


def test_what_is_not_to_be_had_is_told() -> None:
    for status, said, _ in run(2, *program("threads")):
        assert status == 0 and "expected one thread for each rank on several machines, got threads=2" in said
    # A launcher that says that ranks are on other machines needs its MPI.
    code = "import sys; sys.modules['mpi4py'] = None; import pto; pto.launched_ranks()"
    for status, _, said in run(2, sys.executable, "-c", code, MPI_LOCALNRANKS="1"):
        assert status == 1 and "PTO-E2422" in said and "mpi4py, which ranks on several machines need" in said
