"""Ranks of a kernel that another launcher has started: its settings are in their environment, so a test is
one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import pto
from pto.diag import DiagnosticError

from .launching import LAUNCHERS, start

EXAMPLES = Path(__file__).parents[2] / "examples" / "ranks"
RUN = (sys.executable, "-m", "pto.cli.main", "run")
ARGS = ["--", "window:i32:1x8", "window:i32:1", "context"]


@pytest.fixture
def hello() -> str:
    return str(EXAMPLES / "01_hello.pto")


def test_the_first_rank_has_what_all_of_them_made(hello: str, tmp_path: Path) -> None:
    saved = tmp_path / "y.npy"
    (first, second) = start(2, *RUN, hello, "--ranks", "2", *ARGS, f"i32:1x8={saved}")
    assert first[0] == 0 and "2 ranks of 1 block" in first[1] and first[2] == ""
    assert second == (0, "", "")
    assert (np.load(saved) == [[[101] * 8], [[100] * 8]]).all()


def test_what_is_wrong_is_told(hello: str, tmp_path: Path) -> None:
    for status, _, said in start(3, *RUN, hello, "--ranks", "2", *ARGS, "i32:1x8"):
        assert status == 1 and "expected 3 ranks, as another launcher has started, got 2" in said
    for status, _, said in start(2, *RUN, hello, "--ranks", "2", "--sanitize", "all", *ARGS, "i32:1x8"):
        assert status == 1 and "PTO-E2403" in said
    stuck = tmp_path / "stuck.pto"
    stuck.write_text(Path(hello).read_text().replace("wait_cmp ge", "wait_cmp gt"))
    for status, _, said in start(2, *RUN, str(stuck), "--ranks", "2", *ARGS, "i32:1x8"):
        assert status == 1 and "PTO-E2104" in said and "rank 1: waits for a signal" in said
    with pytest.raises(DiagnosticError, match="no launcher has set it"):
        pto.launched_ranks()


_LEAVES = """
import os, numpy, pto
world = pto.launched_ranks(1 << 16)
if world.member.rank == 1:
    os._exit(9)
data, signal, y = world.window((1, 8), "i32"), world.window(1, "i32"), numpy.zeros((1, 8), "i4")
world.run(pto.kernel(pto.parse({hello!r})), [[data, signal, world.context, y]] * 2)
"""


def test_a_rank_that_leaves_is_told(hello: str) -> None:
    first, second = start(2, sys.executable, "-c", _LEAVES.format(hello=hello))
    assert second[0] == 9
    assert first[0] == 1 and "rank 1 has left before the others" in first[2]


def test_a_launcher_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs started with `mpiexec -n 1` are a world of one rank; programs without a launcher get an
    error."""
    for rank, ranks in LAUNCHERS:
        monkeypatch.delenv(rank, raising=False)
        monkeypatch.delenv(ranks, raising=False)
    with pytest.raises(DiagnosticError, match="no launcher has set it"):
        pto.launched_ranks()
    for rank, ranks in LAUNCHERS:
        with monkeypatch.context() as given:
            given.setenv(rank, "0")
            given.setenv(ranks, "1")
            assert pto.launched_ranks().ranks == 1
