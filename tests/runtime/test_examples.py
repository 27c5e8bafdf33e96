"""Every example of the task runtime, with every runtime that it has a configuration for.

Examples and their golden functions are read as users run them: `pto runtime run FOLDER`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sampling import some

from pto import knobs
from pto.cli.runtime import main
from pto.runtime import folder as folders
from pto.runtime.runner import CaseResult, Runner, RunnerOptions

ROOT = Path(__file__).parents[2] / "examples" / "runtime"

#: Cases that are run of each example; large ones only with the runtime that the example is for.
CASES = {
    "vector_dag": ("Default", "Small"),
    "bgemm": ("Small",),
    "matmul_exp": ("Default",),
    "paged_attention": ("Case1", "CaseHeads"),
    "batch_paged_attention": ("Case1", "CaseVarSeq"),
}
GRAPHS = ("host_build_graph", "aicpu_build_graph")
FOLDERS = [p.parent.relative_to(ROOT) for p in sorted(ROOT.glob("*/*/kernel_config.py"))]


def _folder(path: Path) -> folders.Folder:
    return folders.load(str(ROOT / (path.parent if path.name == "kernels" else path)))


def _run(path: str, case: str, **options: Any) -> CaseResult:
    folder = _folder(Path(path))
    runner = Runner(folder, RunnerOptions(profiling=True, **options))
    runner.compile()
    return runner.run(folder.golden.choose(case)[0])


def _tasks(result: CaseResult) -> Counter[str]:
    records = result.records
    return Counter(records.names[f] for f in records.tasks["func_id"].tolist())


def test_every_example_is_run() -> None:
    """Issue: three runtimes where they apply; batch paged attention is for the ring buffers only."""
    wanted = {Path(name) / "kernels" for name in CASES}
    wanted |= {Path(name) / graph for name in CASES if name != "batch_paged_attention" for graph in GRAPHS}
    assert set(FOLDERS) == wanted


# One example of each runtime, each another one; the other tests run those that are left.
@pytest.mark.parametrize("path", some(FOLDERS, 4, by=lambda path: path.name), ids=str)
def test_an_example_passes(path: Path) -> None:
    folder = _folder(path)
    assert folder.config.runtime == (path.name if path.name in GRAPHS else "tensormap_and_ringbuffer")
    runner = Runner(folder)
    runner.compile()
    for case in CASES[path.parent.name]:
        result = runner.run(folder.golden.choose(case)[0])
        assert result.ok and not result.problems, [str(p) for p in result.problems]


def test_the_command_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace, page = tmp_path / "trace.json", tmp_path / "run.html"
    arguments = ["run", str(ROOT / "vector_dag"), "--summary", "--trace", str(trace), "--swimlane", str(page)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "TEST PASSED (1 case)"
    assert "5 tasks, 6 dependencies, 3 functions" in printed
    assert trace.stat().st_size > 1000 and page.stat().st_size > 10_000


# -- the graphs are the documented ones ----------------------------------------------------------------------


def test_batch_256_is_208_tasks() -> None:
    """Orchestration example: 16 chunks of 13 tasks, a hub and four for each of three blocks."""
    result = _run("batch_paged_attention", "CaseBatch256")
    assert result.ok, [str(p) for p in result.problems]
    assert _tasks(result) == {"AIV_HUB": 16, "QK": 48, "SF": 48, "PV": 48, "UP": 48}
    edges = {(e["pred"], e["succ"]) for e in result.records.edges}
    for chunk in range(16):
        hub = 13 * chunk
        mine = {(a - hub, b - hub) for a, b in edges if hub <= a < hub + 13}
        chain = {(n, n + 1) for block in range(3) for n in range(4 * block + 1, 4 * block + 4)}
        weights = {(4 * block + 2, 4 * block + 4) for block in range(3)}  # m and l of SF, for UP
        ups = {(0, 4), (4, 8), (8, 12)}
        assert chain | weights | ups <= mine
        assert mine - chain - weights - ups <= {(0, 8), (0, 12), (4, 12)}  # the hub made the accumulators
    assert not any(a // 13 != b // 13 for a, b in edges)


@pytest.mark.parametrize("blocks", [1, 24])
def test_a_window_of_16_is_enough_for_208_tasks(blocks: int) -> None:
    """Back-pressure: slots are used again 13 times; a scope of 13 tasks fits."""
    with knobs.override(PTO2_RING_TASK_WINDOW="16"):
        result = _run("batch_paged_attention", "CaseBatch256", block_dim=blocks)
    assert result.ok, [str(p) for p in result.problems]
    stats = result.records.stats
    assert stats["tasks"] == 208 and stats["task_window_peak"] <= 15


def test_a_window_of_8_is_not() -> None:
    with knobs.override(PTO2_RING_TASK_WINDOW="8"):
        result = _run("batch_paged_attention", "CaseBatch256")
    (problem,) = result.problems
    assert problem.code == "PTO-E2620" and "batch_paged_attention.cpp" in problem.message


def test_lengths_of_the_environment() -> None:
    """Environment variables: PA_CASE and PA_SEQ_LEN."""
    with knobs.override(PA_CASE="CaseVarSeq", PA_SEQ_LEN="5,70"):
        folder = _folder(Path("batch_paged_attention"))
        (params,) = folder.golden.choose()
        runner = Runner(folder, RunnerOptions(profiling=True))
        runner.compile()
        result = runner.run(params)
    assert result.name == "CaseVarSeq" and result.ok
    assert _tasks(result)["UP"] == 2 * 2 * 5  # tiles of heads, chunks, blocks of 70 keys


def test_bgemm_runs_products_side_by_side_and_sums_in_order() -> None:
    result = _run("bgemm", "Small")
    assert _tasks(result) == {"gemm": 6, "add": 6}
    names = [result.records.names[f] for f in result.records.tasks["func_id"].tolist()]
    edges = [(names[e["pred"]], names[e["succ"]]) for e in result.records.edges]
    assert Counter(edges) == {("gemm", "add"): 6, ("add", "add"): 4}


@pytest.mark.parametrize("runtime", ["host_build_graph", "aicpu_build_graph"])
def test_tasks_of_a_graph_come_from_the_orchestration(runtime: str) -> None:
    """Not from the helper that adds them."""
    result = _run(f"bgemm/{runtime}", "Small")
    assert result.ok
    assert {Path(site.rpartition(":")[0]).name for site in result.records.sites} == {"bgemm_graph.cpp"}


@pytest.mark.parametrize("seed", some(range(4), 2))
def test_any_order_gives_the_same_bits(seed: int) -> None:
    """The order that the graphs leave open does not change a result."""
    for name in ("vector_dag", "batch_paged_attention"):
        runs = [_run(name, CASES[name][0], seed=s) for s in (seed, seed + 100)]
        assert all(r.ok for r in runs)
        assert [c.max_abs for c in runs[0].comparisons] == [c.max_abs for c in runs[1].comparisons]


# -- golden is right -----------------------------------------------------------------------------------------


def test_golden_of_the_vector_graph() -> None:
    """Section 1 of the examples: 2 and 3 give 47."""
    golden = _folder(Path("vector_dag")).golden
    tensors = {"a": np.full(4, 2, "f4"), "b": np.full(4, 3, "f4"), "f": np.zeros(4, "f4")}
    golden.file.get("compute_golden")(tensors, {})
    assert tensors["f"].tolist() == [47.0] * 4


def test_golden_of_attention_is_a_mean_where_scores_are_equal() -> None:
    golden = _folder(Path("paged_attention")).golden
    params = {"batch": 1, "num_heads": 2, "head_dim": 16, "context_len": 17}
    tensors = {n: v for n, v in golden.file.get("generate_inputs")(params) if isinstance(v, np.ndarray)}
    tensors["query"][:] = 0
    golden.file.get("compute_golden")(tensors, params)
    table, values = tensors["block_table"][0], tensors["value_cache"].astype(np.float64)
    mean = (values[table[0]].sum(axis=0) + values[table[1], 0]) / 17
    assert np.allclose(tensors["out"][0], mean, atol=1e-6)


# -- Python --------------------------------------------------------------------------------------------------


def _script(name: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "python" / name), *arguments],
        capture_output=True, text=True, timeout=600, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_three_kernels(tmp_path: Path) -> None:
    lines = _script("three_kernels.py", str(tmp_path))
    assert lines[:2] == ["24 tasks, 16 dependencies", "equal to NumPy: True"]
    assert {p.name for p in tmp_path.iterdir()} == {"trace.json", "run.html"}


def test_cluster_pipe() -> None:
    """In-cluster function groups: data goes from the cube task to the vector task through TPUSH and TPOP."""
    lines = _script("cluster_pipe.py")
    assert lines[0].startswith("24 tasks, 12 dependencies") and lines[1] == "equal to NumPy: True"


def test_troubles() -> None:
    lines = _script("troubles.py")
    text = "\n".join(lines)
    assert "Flow Control Deadlock" in text and "PTO2_RING_TASK_WINDOW=32" in text
    assert sum(line.startswith("WAR: task 2 ") for line in lines) == 1
    assert "with track_war: 0 hazards, out is 21" in lines
    orders = [line for line in lines if " with seed " in line]
    assert [o.split()[2] for o in orders] == ["21", "42"]
    assert all(o.split()[2] == o.split()[-1] for o in orders)
