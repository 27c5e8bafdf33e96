"""Task graphs of several ranks: kernels that reach each other's windows, runs side by side, one that is stuck."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pto import runtime
from pto.diag import DiagnosticError
from pto.runtime import host_graph
from pto.runtime.host_graph import HostGraph

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
    """Submit a task that waits for another rank, and one that needs its result."""
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
    with pytest.raises(ValueError, match="expected arguments for 2 ranks, got 1"):
        world.run(exchange, [args(0)])
    with pytest.raises(DiagnosticError, match="unsupported seed"):
        world.run(exchange, args, seed=3)
    other = runtime.ranks(2).window(1)
    with pytest.raises(DiagnosticError, match="expected a window of these ranks"):
        world.run(exchange, [[other]] * 2)


def test_a_host_gives_its_ranks_one_thing_after_another(tmp_path: Path) -> None:
    """A group that exchanges, a sum of both on one rank, and a call that needs the sum."""
    world, args, outs = world_of(2)
    total, said = np.zeros((1, 8), np.int32), []
    add = runtime.kernel(lambda x, y, z: np.add(x, y, out=z), "in in out", name="add")

    def steps(host: Any) -> None:
        host.submit_group(exchange, args)
        host.submit(lambda rt, *a: rt.submit(add, *a), *outs, total, rank=1, reads=outs)
        host.call(lambda x: said.append(x.copy()), total)
        assert not said and not total.any()
        host.wait()
        assert said[0].tolist() == [[402] * 8]
        host.submit(lambda rt, x, y: rt.submit(DOUBLE, x, y), total, outs[0], rank=0)

    done = world.host(steps, block_dim=3, record=True)
    assert outs[0].tolist() == [[804] * 8]
    assert [sorted(one.runs) for one in done] == [[0, 1], [1], [0]]
    done.save_trace(str(tmp_path / "host.json"))
    events = json.loads((tmp_path / "host.json").read_text())["traceEvents"]
    names = {e["args"]["name"].partition(":")[0] for e in events if e["name"] == "process_name"}
    assert {"rank 0, exchange", "rank 1, exchange", "rank 0, <lambda>"} <= names


def test_tasks_of_a_host_wait_for_what_they_share() -> None:
    graph = HostGraph(after_readers=True)
    said: list[str] = []

    def add(name: str, reads: list[tuple[int, int]], writes: list[tuple[int, int]]) -> Any:
        return graph.add(name, [len(graph.nodes)], [lambda *_: said.append(name)], reads, writes)

    a = add("a", [], [(0, 8)])
    b, c = add("b", [(0, 4)], []), add("c", [(4, 8)], [(16, 20)])
    d = add("d", [], [(0, 2)])  # b has read the old content
    e = add("e", [(8, 8), (20, 24)], [])  # nothing of the others
    assert [n.waits_for for n in (a, b, c, d, e)] == [set(), {0}, {0}, {0, 1}, set()]
    graph.run()
    assert sorted(said) == list("abcde") and said.index("d") > said.index("b") > said.index("a")


def test_a_member_of_a_group_frees_its_rank() -> None:
    """The task after it runs while others of the group wait for that."""
    released, seen = threading.Event(), []
    graph = HostGraph()
    graph.add("group", [0, 1], [lambda *_: None, lambda *_: seen.append(released.wait(60))], [], [])
    graph.add("behind", [0], [lambda *_: released.set()], [], [])
    graph.run()
    assert seen == [True]


def test_what_a_host_cannot_do() -> None:
    world, args, _ = world_of(2)
    with pytest.raises(DiagnosticError, match="unknown rank 2: there are 2 ranks"):
        world.host(lambda host: host.submit(exchange, rank=2))
    with pytest.raises(DiagnosticError, match="expected each rank once"):
        world.host(lambda host: host.submit_group(exchange, args, ranks=[0, 0]))
    with pytest.raises(DiagnosticError) as e:
        world.host(lambda host: host.submit(exchange, *args(0), rank=0), block_dim=3)
    assert e.value.diagnostics[0].code == "PTO-E2624"
    assert e.value.diagnostics[0].message.startswith("rank 0: ")


def test_a_task_that_waits_for_a_signal_holds_no_core() -> None:
    """Both ranks have one core of each kind, and as many tasks that wait as they have signals."""
    world = runtime.ranks(2, window_bytes=1 << 16)
    count = 6
    data, signals = world.window((count, 8), "i32"), world.window((count, 1), "i32")
    outs = [np.zeros((count, 8), np.int32) for _ in range(2)]

    def send(there: Any, flag: Any, value: int) -> None:
        there[:] = value
        flag[:] = 1

    put = runtime.kernel(send, "inout inout scalar", name="put")

    def orchestrate(rt: Any, rank: int, out: Any) -> None:
        for n in range(count):  # those that wait come first
            rt.wait_for(signals[rank][n], 1, gives=[data[rank][n : n + 1]])
            rt.submit(DOUBLE, data[rank][n : n + 1], out[n : n + 1])
        for n in range(count):
            rt.submit(put, data[1 - rank][n : n + 1], signals[1 - rank][n], 10 * rank + n)

    runs = world.run(orchestrate, lambda rank: [rank, outs[rank]], block_dim=1, record=True)
    for rank in range(2):
        assert outs[rank][:, 0].tolist() == [2 * (10 * (1 - rank) + n) for n in range(count)]
        waits = runs[rank].records.tasks
        waits = waits[waits["func_id"] == -1]
        assert len(waits) == count and (waits["core"] == -1).all() and (waits["start"] <= waits["end"]).all()


def test_a_signal_that_nobody_sends() -> None:
    world = runtime.ranks(2, window_bytes=1 << 16)
    signal = world.window(1, "i32")

    def orchestrate(rt: Any, rank: int) -> None:
        rt.wait_for(signal[rank], 3)

    with pytest.raises(DiagnosticError) as e:
        world.run(orchestrate, lambda rank: [rank], block_dim=1)
    told = e.value.diagnostics[0]
    assert told.code == "PTO-E2624" and "waits for a signal >= 3 (holds 0)" in told.message, told.message

    def wrong(rt: Any, *_: Any) -> None:
        rt.wait_for(np.zeros(2, np.int32), 1)

    with pytest.raises(DiagnosticError, match="a signal of one element"):
        world.run(wrong, lambda rank: [])


def test_arrows_between_ranks(tmp_path: Path) -> None:
    """From the task that put data and a signal into the window of another rank to the one that waited there."""
    world, args, _ = world_of(2)
    runs = world.run(exchange, args, block_dim=3, record=True)
    runs.save_trace(str(tmp_path / "ranks.json"))
    events = json.loads((tmp_path / "ranks.json").read_text())["traceEvents"]
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    arrows = [e for e in events if e["name"] in ("signal", "data")]
    ends = {(named[e["pid"]][:6], e["ph"]) for e in arrows}
    assert len(arrows) == 4 and ends == {("rank 0", "s"), ("rank 1", "f"), ("rank 1", "s"), ("rank 0", "f")}
    for tail, head in zip(arrows[::2], arrows[1::2], strict=True):
        assert tail["id"] == head["id"] and tail["ts"] <= head["ts"]
        bars = [e for e in events if e.get("cat") == "event" and e["pid"] == head["pid"]]
        (bar,) = [b for b in bars if b["tid"] == head["tid"] and b["ts"] <= head["ts"] <= b["ts"] + b["dur"]]
        assert bar["name"].startswith("01_hello")


def test_tasks_that_start_together_join_the_group_before_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the first one, which waits for the others, is alone in its group: a deadlock."""
    events: list[str] = []

    class Company:
        def join(self) -> int:
            events.append("join")
            return len(events)

        def leave(self, member: int) -> None: ...

    class Thread(threading.Thread):
        def start(self) -> None:
            events.append("start")
            super().start()

    monkeypatch.setattr(host_graph, "extension", lambda: SimpleNamespace(Company=Company))
    monkeypatch.setattr(threading, "Thread", Thread)
    graph = HostGraph()
    for rank in range(3):
        graph.add("t", [rank], [lambda company, member: None], (), ())
    graph.run()
    assert events == ["join"] * 3 + ["start"] * 3
