"""Virtual time: traces are the same on any number of host threads, keep every order, and beat no bound; what takes how
long is what tables, functions and overheads say; values are computed as ever."""

from __future__ import annotations

import csv
import json
import random
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto import runtime
from pto.diag import DiagnosticError
from pto.perf.analysis import Analysis
from pto.perf.bounds import SchedulerLoad, bounds
from pto.perf.records import Records
from pto.perf.tables import table
from pto.runtime.durations import Durations, TaskInfo, mean_durations
from pto.runtime.folder import load
from pto.runtime.overheads import OVERHEADS, read_machine
from pto.runtime.runner import Runner, RunnerOptions
from pto.runtime.virtual import Virtual

from ..sampling import EVERY
from ..seeds import seeds
from .header_build import COMPILER

EXAMPLES = Path(__file__).parents[2] / "examples"
THREADS = (1, 2, 8)
NOTHING = dict.fromkeys((o.name for o in OVERHEADS), 0) | {"poll": 1}

add = runtime.kernel(lambda a, b, out: np.add(a, b, out=out), "in in out", name="add")
count = runtime.kernel(lambda n: np.add(n, 1, out=n), "inout", name="count")
spare = runtime.kernel(lambda n: np.add(n, 1, out=n), "inout", core="aic", name="spare")


def trace(records: Records) -> bytes:
    """Everything of a run that has a time."""
    return b"".join(getattr(records, name).tobytes() for name in ("tasks", "edges", "phases", "counters"))


def virtual(orchestrate: Any, *args: Any, **given: Any) -> runtime.Run:
    given = {"durations": {"add": 3.0, "count": 5.0, "spare": 7.0}, "record": True, **given}
    return runtime.run(orchestrate, *args, virtual_time=True, **given)


def pairs(rt: Any, a: Any, out: Any) -> None:
    for i in range(len(out)):
        with rt.scope():
            between = rt.tensor(a.shape)
            rt.submit(add, a, a, between)
            rt.submit(add, between, a, out[i])


# -- the same everywhere -------------------------------------------------------------------------------------


def test_traces_are_the_same_on_any_number_of_threads() -> None:
    a = np.ones((4, 4), np.float32)
    found = set()
    for threads in THREADS:
        out = np.zeros((16, 4, 4), np.float32)
        run = virtual(pairs, a, out, block_dim=2, threads=threads)
        assert (out == 3).all()
        assert not run.records.check() and run.records.virtual
        found.add((trace(run.records), run.summary(), run.stats["virtual_ns"]))
    assert len(found) == 1


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_paged_attention_of_208_tasks_is_the_same_on_any_number_of_threads() -> None:
    folder = load(str(EXAMPLES / "runtime/batch_paged_attention"))
    us = {"QK": 12, "SF": 9, "PV": 11, "UP": 4, "AIV_HUB": 1}
    runner = Runner(folder, RunnerOptions(profiling=True, virtual_time=Virtual(us)))
    runner.compile()
    (params,) = folder.golden.choose("CaseBatch256")
    found = set()
    for threads in THREADS:
        runner.options = runner.options.replace(threads=threads)
        result = runner.run(params)
        assert result.ok, [str(p) for p in result.problems]
        found.add(trace(result.records))
        assert not result.records.check()
        spent = result.records.tasks["end"] - result.records.tasks["start"]
        names = [result.records.name(int(f)) for f in result.records.tasks["func_id"]]
        assert spent.tolist() == [1000 * us[name] for name in names]
    assert len(found) == 1 and len(result.records.tasks) == 208
    held = bounds(Analysis(result.records))
    assert held.makespan > held.least == max(held.chain, 48 * (12 + 11) * 1000 / 24)


def test_a_large_graph_is_the_same_on_any_number_of_threads() -> None:
    """Eight chains, of which every hundredth task waits for all others; kernels take their time and do nothing.
    `make matrix` has 100,000 tasks, others a fifth of them."""
    scopes = 1000 if EVERY else 200
    data = np.zeros((8, 4), np.int64)

    def orchestrate(rt: Any) -> None:
        rows = [rt.external(row) for row in data]
        for n in range(scopes):
            with rt.scope():
                for i in range(99):
                    rt.submit(spare if i % 3 == 0 else count, rows[(i + n) % 8])
                rt.submit(count, rt.external(data))

    found = set()
    for threads in THREADS:
        run = virtual(
            orchestrate,
            threads=threads,
            compute=False,
            task_window=1024,
            durations={"count": 50, "spare": 70},
        )
        found.add(trace(run.records))
    assert len(found) == 1 and run.stats["tasks"] == 100 * scopes and not data.any()
    assert run.stats["blocked"]["task_ring"] > 0 and run.stats["task_window_peak"] == 1023
    held = bounds(Analysis(run.records))
    assert held.makespan >= held.least


def random_graph(seed: int) -> Any:
    """An orchestration and its options: chains, joins, scopes, blocks, both kinds of cores."""
    draw = random.Random(seed)
    cells = np.zeros((6, 2), np.int64)
    wide = runtime.kernel(lambda n, blocks, block: None, "in", name="wide")
    plan = [
        [(draw.randrange(4), draw.randrange(6)) for _ in range(draw.randrange(1, 12))]
        for _ in range(draw.randrange(1, 8))
    ]

    def orchestrate(rt: Any) -> None:
        rows = [rt.external(row) for row in cells]
        for scope in plan:
            with rt.scope():
                for what, row in scope:
                    if what == 3:
                        rt.submit(wide, rows[row], blocks=1 + row, sync_start=row % 2 == 0)
                    else:
                        rt.submit((count, spare, count)[what], rt.external(cells) if what == 2 else rows[row])

    us = {"count": draw.uniform(0, 9), "spare": draw.uniform(0, 9), "wide": draw.uniform(0, 9)}
    given = {"block_dim": draw.randrange(3, 6), "schedulers": draw.randrange(1, 5), "durations": us,
             "task_window": draw.choice((16, 64))}  # fmt: skip
    return orchestrate, given, cells


@pytest.mark.seeded
def test_no_schedule_beats_its_bounds() -> None:
    """And every order is kept, and the same program has the same trace."""
    for seed in seeds(range(25)):
        hold(seed)


def hold(seed: int) -> None:
    found = set()
    for threads in (1, 3):
        orchestrate, given, cells = random_graph(seed)
        run = virtual(orchestrate, threads=threads, track_war=True, **given)
        records = run.records
        assert not records.check(), seed
        held = bounds(Analysis(records))
        assert held.makespan >= held.least
        t = records.tasks
        for core in np.unique(t["core"][t["core"] >= 0]):
            mine = np.sort(t[t["core"] == core], order="start")
            assert (mine["dispatch"][1:] >= mine["finish"][:-1]).all(), "a core has one task at a time"
        for task in np.unique(t["task_id"][t["func_id"] == 2]):
            blocks = t[t["task_id"] == task]
            if len(blocks) % 2 == 1:  # even rows: they start together
                assert len(set(blocks["start"].tolist())) == 1
        found.add((trace(records), cells.tobytes()))
    assert len(found) == 1, seed


# -- what takes how long -------------------------------------------------------------------------------------


def test_without_overheads_only_kernels_take_time() -> None:
    """A scheduler still has rounds, of a nanosecond for each core that works."""
    a, out = np.ones(4, np.float32), np.zeros((1, 4), np.float32)
    run = virtual(pairs, a, out, machine=NOTHING, durations={"add": 1000.0})
    assert 2_000_000 <= run.stats["virtual_ns"] < 2_000_100


def test_overheads_are_those_of_the_machine(tmp_path: Path) -> None:
    a, out = np.ones(4, np.float32), np.zeros((1, 4), np.float32)
    first = virtual(pairs, a, out, machine=NOTHING | {"head": 500, "cold_head": 700, "seen_by_core": 100})
    t = first.records.tasks
    assert (t["start"] - t["dispatch"]).tolist() == [800, 800] or (t["start"] - t["dispatch"]).tolist() == [
        800,
        600,
    ]
    file = tmp_path / "my.toml"
    file.write_text("lat_gm_in = 260\n[runtime]\ncompletion = 5000\nclock_mhz = 1000\n")
    machine = read_machine(file)
    assert machine.costs["completion"] == 5000 and machine.clock_mhz == 1000 and machine.costs["poll"] == 100
    slow = virtual(pairs, a, out, machine=str(file), durations={"add": {"cycles": 3000}})
    fast = virtual(pairs, a, out)
    tail = slow.records.tasks["finish"] - slow.records.tasks["end"]
    assert tail.min() >= 5000 and slow.stats["virtual_ns"] >= fast.stats["virtual_ns"] + 2 * 4800
    assert (slow.records.tasks["end"] - slow.records.tasks["start"]).tolist() == [3000, 3000]
    assert "my.toml" in slow.summary()


def test_an_orchestrator_waits_in_virtual_time() -> None:
    """With a window for one task at a time the makespan is the sum of all tasks; with a large one they overlap."""
    cells = np.zeros((32, 1), np.int64)

    def orchestrate(rt: Any) -> None:
        for row in cells:
            with rt.scope():
                rt.submit(count, row)

    spans = {}
    for window in (4, 64):
        run = virtual(orchestrate, task_window=window, durations={"count": 100.0})
        spans[window] = run.stats["virtual_ns"]
        held = run.records.tasks
        for when in held["submit"]:  # submitted and not finished: in the window
            assert ((held["submit"] < when) & (held["finish"] > when)).sum() <= window - 1
    assert spans[4] > 32 * 100_000 / 3 > spans[64]


def test_more_cores_are_cores() -> None:
    """24 blocks are 24 blocks, whatever the host has."""
    cells = np.zeros((48, 1), np.int64)

    def orchestrate(rt: Any) -> None:
        for row in cells:
            rt.submit(count, row)

    rows = runtime.what_if(orchestrate, durations={"count": 1000.0}, block_dim=[1, 8, 24])
    assert [r.option for r in rows] == ["", "block_dim", "block_dim", "block_dim"]
    assert [round(r.makespan_us / 1000) for r in rows] == [1, 24, 3, 1]
    assert all(r.makespan_us >= r.bound_us for r in rows)
    assert rows[1].bound_us == 24_000


def test_a_function_is_asked_once_for_each_kind_of_task() -> None:
    asked: list[TaskInfo] = []

    def us(task: TaskInfo) -> float:
        asked.append(task)
        return task.args[0][0][0] * 2.0 + task.block

    scaled = runtime.kernel(lambda x, n, blocks=1, block=0: None, "in scalar", name="scaled")

    def orchestrate(rt: Any, x: Any, y: Any) -> None:
        for _ in range(3):
            rt.submit(scaled, x, 7)
            rt.submit(scaled, y, 7)
        rt.submit(scaled, y, 9, blocks=2)

    x, y = np.zeros((4, 8), np.float32), np.zeros((16, 2), np.int32)
    run = virtual(orchestrate, x, y, durations=us)
    assert [(t.name, t.core, t.args, t.block, t.blocks) for t in asked] == [
        ("scaled", "aiv", (((4, 8), "float32"), 7), 0, 1),
        ("scaled", "aiv", (((16, 2), "int32"), 7), 0, 1),
        ("scaled", "aiv", (((16, 2), "int32"), 9), 0, 2),
        ("scaled", "aiv", (((16, 2), "int32"), 9), 1, 2),
    ]
    t = run.records.tasks
    assert (t["end"] - t["start"]).tolist() == [8000, 32000] * 3 + [32000, 33000]


def test_tables_are_files_of_several_kinds(tmp_path: Path) -> None:
    a, out = np.ones(4, np.float32), np.zeros((2, 4), np.float32)
    (tmp_path / "us.csv").write_text("# of a device\nkernel,us,cycles\nadd,2.5,\nother,,1850\n")
    (tmp_path / "us.toml").write_text("[durations]\nadd = {cycles = 4625}\n")
    recorded = virtual(pairs, a, out, durations={"add": 2.5}).records
    recorded.save(tmp_path / "run.npz")
    assert mean_durations(recorded) == {"add": 2.5}
    for name in ("us.csv", "us.toml", "run.npz"):
        run = virtual(pairs, a, out, durations=tmp_path / name)
        assert set((run.records.tasks["end"] - run.records.tasks["start"]).tolist()) == {2500}, name
        assert name in run.summary()


def test_tasks_that_wait_for_one_another_end_together() -> None:
    """A FIFO between two tasks of a cluster, and the halves of a mixed task: a half that waits ends when it got all."""
    module = runpy.run_path(str(EXAMPLES / "runtime/python/cluster_pipe.py"))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, 6, 16, 16)) / 4).astype(np.float16)
    found = set()
    for threads in THREADS:
        y = np.zeros((6, 16, 16), np.float32)
        run = virtual(
            module["orchestrate"],
            a,
            b,
            y,
            block_dim=3,
            threads=threads,
            durations={"product": 6, "exponent": 4},
        )
        assert np.allclose(y, np.exp(a.astype(np.float32) @ b.astype(np.float32)), rtol=1e-5)
        found.add(trace(run.records))
    assert len(found) == 1

    (x, w, bias, _, slots, rows), expected = runpy.run_path(str(EXAMPLES / "kernels/reference.py"))[
        "mixed_fifo"
    ](rng)
    mixed = runtime.kernel(EXAMPLES / "kernels/mixed_fifo.pto", "in in in out inout scalar", core="mixed")
    y = np.zeros((rows, 64), np.float32)
    run = virtual(
        lambda rt: rt.submit(mixed, x, w, bias, y, slots, rows, blocks=2),
        durations={"mixed_fifo_aic": 20, "mixed_fifo_aiv": 5},
    )
    assert np.allclose(y, expected[3], rtol=1e-5, atol=1e-5)
    for block in (0, 1):
        t = run.records.tasks[run.records.tasks["block"] == block]
        assert len(t) == 3 and t["end"].max() - t["start"].min() >= 20_000
        assert t["end"][t["core_type"] == 1].max() >= t["end"][t["core_type"] == 0].max(), (
            "they get all of it"
        )


def test_the_cost_model_knows_programs(tmp_path: Path) -> None:
    """A kernel in PTO takes the time of its timeline; a machine of half the clock takes twice as long."""
    program = runtime.kernel(EXAMPLES / "01_vec_add.pto", "in in out", name="vec_add")
    a, out = np.ones((3, 64, 128), np.float32), np.zeros((3, 64, 128), np.float32)

    def orchestrate(rt: Any) -> None:
        for i in range(3):
            rt.submit(program, a[i], a[i], out[i])

    spent = {}
    (tmp_path / "slow.toml").write_text('machine = "a2a3"\nmhz = 925\n[runtime]\nclock_mhz = 925\n')
    for machine in (None, tmp_path / "slow.toml"):
        t = virtual(orchestrate, durations=None, machine=machine).records.tasks
        assert (out == 2).all() and len({int(n) for n in t["end"] - t["start"]}) == 1
        spent[machine] = int(t["end"][0] - t["start"][0])
    fast, slow = spent.values()
    assert fast > 100 and abs(slow - 2 * fast) <= 2


@pytest.mark.parametrize("which", ["host_build_graph", "aicpu_build_graph"])
def test_graphs_with_explicit_edges(which: str) -> None:
    def build(rt: Any, x: Any, out: Any) -> None:
        between = rt.tensor(x.shape)
        first, second = rt.add_task(add, x, x, between), rt.add_task(add, between, x, out)
        rt.add_successor(first, second)
        if which == "aicpu_build_graph":
            rt.publish_task(first)
            rt.publish_task(second)

    found = set()
    for threads in THREADS:
        x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
        run = virtual(build, x, out, runtime=which, threads=threads, durations=lambda task: 4.0)
        assert (out == 3).all() and not run.records.check()
        found.add(trace(run.records))
    assert len(found) == 1
    submit = run.records.tasks["submit"].tolist()
    assert submit == [0, 0] if which == "host_build_graph" else 0 < submit[0] < submit[1]


# -- reports -------------------------------------------------------------------------------------------------


def test_overhead_of_schedulers() -> None:
    """Idle core and ready task: from 10 to 14 for AIV, from 20 to 23 for AIC; the run lasts from 2 to 40."""
    tasks = table("tasks", {
        "task_id": [0, 1, 2], "func_id": [0, 0, 0], "core": [1, 1, 0], "core_type": [1, 1, 0], "submit": [0, 0, 0],
        "ready": [0, 12, 21], "dispatch": [0, 14, 23], "start": [2, 15, 24], "end": [10, 20, 40], "finish": [11, 21, 40],
    })  # fmt: skip
    edges = table("edges", {"pred": [0, 1], "succ": [1, 2]})
    found = SchedulerLoad(Analysis(Records(tasks, edges, stats={"block_dim": 1, "virtual_ns": 40}))).shares
    assert found == {"aic": 3 / 38, "aiv": 4 / 38, "all": 0.0, "any": 7 / 38}


def test_pages_say_whose_times_they_show(tmp_path: Path) -> None:
    a, out = np.ones(4, np.float32), np.zeros((2, 4), np.float32)
    here, there = runtime.run(pairs, a, out, record=True), virtual(pairs, a, out)
    for run, says, other in (
        (here, "times of this host", "virtual time"),
        (there, "virtual time", "times of this host"),
        (there, "Durations of kernels: a table.", "times of this host"),
    ):
        run.save_swimlane(str(tmp_path / "run.html"))
        run.save_trace(str(tmp_path / "run.json"))
        page = (tmp_path / "run.html").read_text(encoding="utf-8")
        head = page.partition("</header>")[0]
        assert says in head and other not in head
        events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
        counters = {e["name"] for e in events if e["ph"] == "C"}
        assert ({"oh_aiv_idle", "oh_aiv_ready", "oh_aiv_overhead", "oh_has_overhead"} <= counters) == (
            run is there
        )
    assert "of virtual time" in there.summary() and "no schedule is shorter" in there.summary()
    assert "no schedule is shorter" not in here.summary()
    assert "us of virtual time" in virtual(pairs, a, out, record=False).summary()


def test_a_failure_is_the_first_in_virtual_time() -> None:
    """Whatever thread meets one first: task 1 ends before task 0."""

    def fail(n: Any) -> None:
        raise ValueError(f"cell {n[0]}")

    slow, fast = (runtime.kernel(fail, "in", name=name) for name in ("slow", "fast"))
    cells = np.arange(2, dtype=np.int64)

    def orchestrate(rt: Any) -> None:
        rt.submit(slow, cells[0:1])
        rt.submit(fast, cells[1:2])

    for threads in THREADS:
        with pytest.raises(DiagnosticError, match="task 1 \\(fast"):
            virtual(orchestrate, threads=threads, durations={"slow": 100, "fast": 1})


def test_what_cannot_be() -> None:
    a, out = np.ones(4, np.float32), np.zeros((2, 4), np.float32)
    with pytest.raises(DiagnosticError, match="missing duration of kernel add") as error:
        virtual(pairs, a, out, durations={"other": 1})
    assert error.value.diagnostics[0].code == "PTO-E2626"
    with pytest.raises(DiagnosticError, match="missing duration of kernel add"):
        virtual(pairs, a, out, durations=lambda task: None)
    for given, message in (
        ({"durations": {"add": -1}}, "expected microseconds, got -1"),
        ({"durations": {"add": "long"}}, "expected microseconds, got 'long'"),
        ({"durations": "no.txt"}, "unknown format of a table of durations: 'no.txt'"),
        ({"machine": {"poll": -1}}, "expected a non-negative number for poll"),
        ({"machine": {"polls": 1}}, "unknown overhead 'polls'"),
        ({"machine": "a9"}, "unknown machine 'a9'"),
        ({"seed": 3}, "unsupported seed in virtual time"),
    ):
        with pytest.raises(DiagnosticError, match=message):
            virtual(pairs, a, out, **given)
    with pytest.raises(DiagnosticError, match="cannot use durations in real time"):
        runtime.run(pairs, a, out, durations={"add": 1})
    with pytest.raises(DiagnosticError, match="cannot use compute=False in real time"):
        runtime.run(pairs, a, out, compute=False)


def test_tables_that_make_no_sense(tmp_path: Path) -> None:
    for text, message in (
        ("kernel,us\nadd,\n", "a line lacks its kernel, or both us and cycles"),
        ("kernel,us\nadd,x\n", "expected a number for us of add, got 'x'"),
    ):
        (tmp_path / "us.csv").write_text(text)
        with pytest.raises(DiagnosticError, match=message) as error:
            Durations(tmp_path / "us.csv")
        assert error.value.diagnostics[0].code == "PTO-E2627"
    (tmp_path / "us.toml").write_text("add = 1\n")
    with pytest.raises(DiagnosticError, match=r"missing table \[durations\]"):
        Durations(tmp_path / "us.toml")


def test_nothing_is_read_that_was_not_computed() -> None:
    cell = np.zeros(1, np.int64)

    def reads(rt: Any) -> None:
        rt.submit(count, cell)
        rt.read(rt.external(cell), 0)

    def decides(rt: Any) -> None:
        rt.submit(count, cell, predicate=(cell, 0, ">", 0))

    for orchestrate in (reads, decides):
        virtual(orchestrate)
        with pytest.raises(DiagnosticError, match="kernels are not executed"):
            virtual(orchestrate, compute=False)


def test_an_element_is_read_when_its_writer_has_ended() -> None:
    cell, late = np.zeros(1, np.int64), np.zeros(1, np.int64)

    def orchestrate(rt: Any) -> None:
        rt.submit(count, cell)
        assert rt.read(rt.external(cell), 0) == 1
        rt.submit(count, late)

    t = virtual(orchestrate, durations={"count": 500.0}).records.tasks
    assert t["submit"][1] >= t["end"][0] >= 500_000


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from pto.cli.runtime import main

    folder = str(EXAMPLES / "runtime/vector_dag")
    with (tmp_path / "us.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("kernel", "us"), ("add", 3), ("add_scalar", 2), ("mul", 4)])
    assert main(["run", folder, "--virtual-time", "--durations", str(tmp_path / "us.csv"),
                 "--what-if", "block_dim=1,2", "--what-if", "schedulers=1..2", "--what-if", "window=16"]) == 0  # fmt: skip
    printed = capsys.readouterr().out
    assert "of virtual time" in printed and "16384/16384" in printed
    cells = [line.split()[0] for line in printed.partition("what if")[2].splitlines()[2:7]]
    assert cells == ["block_dim=1", "block_dim=2", "schedulers=1", "schedulers=2", "task_window=16"]
    assert main(["run", folder, "--virtual-time", "--measure", "--no-compute"]) == 0
    printed = capsys.readouterr().out
    assert "this host's own times" in printed and "not computed" in printed
    for arguments, message in (
        (["--virtual-time", "--no-compute"], "missing duration of kernel add_scalar"),
        (["--durations", "x.csv"], "--durations needs --virtual-time"),
        (["--virtual-time", "--seed", "1"], "cannot combine --virtual-time with --seed"),
        (["--virtual-time", "--what-if", "blocks"], "expected an option and numbers"),
        (["--virtual-time", "--what-if", "colour=1"], "unknown option 'colour'"),
        (
            ["--virtual-time", "--measure", "--durations", "x.csv"],
            "cannot combine --durations with --measure",
        ),
    ):
        assert main(["run", folder, *arguments]) == 1
        assert message in capsys.readouterr().err
