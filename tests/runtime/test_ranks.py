"""Task graphs of several ranks: kernels that reach each other's windows, runs side by side, one that is stuck."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto import runtime
from pto.diag import DiagnosticError

EXAMPLES = Path(__file__).parents[2] / "examples" / "ranks"
HELLO = runtime.kernel(str(EXAMPLES / "01_hello.pto"), "inout inout in out")
DOUBLE = runtime.kernel(lambda x, y: np.multiply(x, 2, out=y), "in out", name="double")


def world_of(count: int) -> tuple[Any, Any, list[Any]]:
    """Ranks, what gives their arguments, and their outputs."""
    world = runtime.ranks(count, window_bytes=1 << 16)
    data, signal = world.window((1, 8), "i32"), world.window(1, "i32")
    outs = [np.zeros((1, 8), np.int32) for _ in range(count)]
    return world, lambda rank: [data, signal, world.context, outs[rank]], outs


def exchange(rt: Any, data: Any, signal: Any, context: Any, out: Any) -> None:
    """A task that waits for another rank, and one that needs what it got."""
    with rt.scope():
        got = rt.tensor((1, 8), "i32")
        rt.submit(HELLO, data, signal, context, got)
        rt.submit(DOUBLE, got, out)


def test_tasks_of_two_ranks_exchange(tmp_path: Path) -> None:
    world, args, outs = world_of(2)
    runs = world.run(exchange, args, block_dim=3, record=True)
    assert [out.tolist() for out in outs] == [[[202] * 8], [[200] * 8]]
    assert [run.stats["tasks"] for run in runs] == [2, 2]
    runs.save_trace(str(tmp_path / "ranks.json"))
    events = json.loads((tmp_path / "ranks.json").read_text())["traceEvents"]
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    for rank in range(2):
        mine = {pid for pid, name in named.items() if name.startswith(f"rank {rank}: ")}
        tasks = [e for e in events if e.get("cat") == "event" and e["pid"] in mine]
        assert {e["name"].partition("(")[0] for e in tasks} >= {"01_hello", "double"}
    assert len(named) % 2 == 0


def test_a_rank_that_waits_in_vain_is_told() -> None:
    """The other one ends without its task."""
    world, args, _ = world_of(2)

    def one_only(rt: Any, rank: int, *rest: Any) -> None:
        if rank == 0:
            exchange(rt, *rest)

    with pytest.raises(DiagnosticError) as e:
        world.run(one_only, lambda rank: [rank, *args(rank)], block_dim=3)
    (told,) = e.value.diagnostics
    assert told.code == "PTO-E2624" and told.message.startswith("rank 0: ")
    assert "waits for" in told.message


def test_who_fails_is_named_and_not_those_that_wait_for_it() -> None:
    world, args, _ = world_of(2)
    wrong = runtime.kernel(lambda x: x[5], "in", name="wrong")

    def orchestrate(rt: Any, rank: int, *rest: Any) -> None:
        if rank == 1:
            rt.submit(wrong, np.zeros(1, np.int32))
        else:
            exchange(rt, *rest)

    with pytest.raises(DiagnosticError) as e:
        world.run(orchestrate, lambda rank: [rank, *args(rank)], block_dim=3)
    assert all(d.message.startswith("rank 1: ") and "wrong" in d.message for d in e.value.diagnostics)

    def raises(rt: Any, *_: Any) -> None:
        raise ZeroDivisionError("of the orchestration")

    with pytest.raises(ZeroDivisionError, match="of the orchestration"):
        world.run(raises, args)


def test_what_cannot_be() -> None:
    world, args, _ = world_of(2)
    with pytest.raises(ValueError, match="arguments for 1 ranks, but there are 2"):
        world.run(exchange, [args(0)])
    with pytest.raises(DiagnosticError, match="no order that a seed decides"):
        world.run(exchange, args, seed=3)
    other = runtime.ranks(2).window(1)
    with pytest.raises(DiagnosticError, match="a window of other ranks"):
        world.run(exchange, [[other]] * 2)
