"""Records: the tables, their files, and refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.perf.records import Records
from pto.perf.tables import FIELDS, PHASES, dtype, table
from pto.runtime import kernel, run

from .schedule import simulate


def _same(a: Records, b: Records) -> None:
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert (a.names, a.sites, a.stats) == (b.names, b.sites, b.stats)


@pytest.mark.parametrize("suffix", ["npz", "json"])
@pytest.mark.parametrize("tasks", [0, 1, 60])
def test_a_file_brings_back_the_records(tmp_path: Path, suffix: str, tasks: int) -> None:
    records = simulate(tasks).records if tasks else Records()
    path = records.save(tmp_path / f"run.{suffix}")
    _same(Records.load(path), records)


def test_numpy_numbers_in_the_statistics_are_written(tmp_path: Path) -> None:
    records = Records(stats={"spins": np.int64(7), "ring": {"peak": np.int32(3)}})
    for suffix in ("npz", "json"):
        assert Records.load(records.save(tmp_path / f"s.{suffix}")).stats == {"spins": 7, "ring": {"peak": 3}}


def test_peaks_are_those_of_the_engine() -> None:
    """Counters are taken between what changes them: the engine has seen more, and is believed."""
    x = np.zeros(4, np.float32)
    add = kernel(lambda x: np.add(x, 1, out=x), "inout", name="add")
    done = run(lambda rt: [rt.submit(add, x) for _ in range(5)], block_dim=1, record=True)
    stats = done.stats
    assert (done.records.peak(0), done.records.peak(2)) == (stats["task_window_peak"], stats["dep_pool_peak"])
    assert f"dep pool {stats['dep_pool_peak']}, tensormap entries {stats['tensormap_peak']}" in done.summary()
    assert Records().peak(0) is None


def test_phase_ids() -> None:
    """Section 8, AicpuPhaseId: schedulers 0..3, orchestrator 16..24 in this order."""
    steps = ("sync", "alloc", "params", "lookup", "heap", "insert", "fanin", "finalize", "scope_end")
    expected = {0: "complete", 1: "dispatch", 2: "scan", 3: "idle"}
    assert expected | {16 + n: f"orch_{step}" for n, step in enumerate(steps)} == PHASES


def test_simulated_runs_are_valid() -> None:
    for seed in range(5):
        assert not simulate(80, seed=seed).records.check()


def _changed(field: str, row: int, value: int, of: str = "tasks") -> Records:
    records = simulate(40).records
    getattr(records, of)[field][row] = value
    return records


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (_changed("task_id", 3, 4), "task 4 is recorded 2 times"),
        (_changed("core_type", 3, 2), "unknown core_type of task 3: 2"),
        (_changed("core", 3, -1), "unknown core of task 3: -1"),
        (_changed("end", 3, 5), "task 3 ends before it starts"),
        (_changed("kind", 0, 9, "edges"), "unknown kind of dependency 9"),
        (_changed("phase", 0, 7, "phases"), "unknown phase 7"),
        (_changed("end", 2, 0, "phases"), "a phase ends before it starts"),
        (_changed("which", 0, 6, "counters"), "unknown counter 6"),
        (_changed("succ", 0, int(simulate(40).records.edges["pred"][0]), "edges"), "depends on itself"),
    ],
)
def test_e2802_contradictions(records: Records, words: str) -> None:
    errors = [d.message for d in records.check() if d.severity == "error"]
    assert any(words in message for message in errors), errors
    assert {d.code for d in records.check()} == {"PTO-E2802"}


def test_blocks_have_a_row_each_and_only_one() -> None:
    tasks = table("tasks", {"task_id": [4, 4], "block": [0, 1], "start": [0, 0], "end": [1, 1]})
    assert not Records(tasks).check()
    assert [Records(tasks).label(t) for t in tasks] == ["Func_0(4)[0]", "Func_0(4)[1]"]
    tasks["block"] = 1
    assert "task 4, block 1, is recorded 2 times" in Records(tasks).check()[0].message


def test_every_block_of_a_dependency_counts() -> None:
    """Task 1 starts when one block of task 0 has ended, the other has not."""
    tasks = table(
        "tasks", {"task_id": [0, 0, 1], "block": [0, 1, -1], "start": [0, 0, 60], "end": [50, 90, 99]}
    )
    records = Records(tasks, table("edges", {"pred": [0], "succ": [1]}))
    assert "0 ends at 90 ns" in next(d.message for d in records.check() if d.severity == "error")
    records.tasks["start"][2] = 90
    assert not records.check()
    records.tasks["end"][0] = -1  # a block that never ended
    assert "0 ends never" in next(d.message for d in records.check() if d.severity == "error")


def test_a_dependency_that_was_not_kept_is_found() -> None:
    records = simulate(40).records
    edge = records.edges[3]
    pred, succ = records.rows([edge["pred"], edge["succ"]])
    assert not records.check()
    records.tasks["end"][pred] = records.tasks["start"][succ] + 1
    message = next(d.message for d in records.check() if d.severity == "error")
    assert "was violated" in message and f"{edge['pred']} -> {edge['succ']}" in message


def test_times_out_of_order_are_a_warning() -> None:
    records = _changed("dispatch", 5, 10**12)
    found = records.check()
    assert {d.severity for d in found} == {"warning"}
    assert any("task 5" in d.message and "dispatch" in d.message for d in found)


def test_an_edge_to_an_unknown_task_is_a_warning() -> None:
    assert [d.severity for d in _changed("pred", 0, 12345, "edges").check()] == ["warning"]


def test_tasks_that_did_not_run_are_no_contradiction() -> None:
    records = Records(
        table("tasks", {"task_id": [0, 1], "core": [-1, -1]}), table("edges", {"pred": [0], "succ": [1]})
    )
    assert not records.check()
    assert not records.ran.any()


def test_rows_of_tasks_in_any_order() -> None:
    tasks = table("tasks", {"task_id": [40, 7, 1 << 40]})
    assert Records(tasks).rows([1 << 40, 8, 7, 40]).tolist() == [2, -1, 1, 0]
    assert Records().rows([3]).tolist() == [-1]


@pytest.mark.parametrize("block_dim", [1, 2, 24])
def test_blocks_are_those_said_or_seen(block_dim: int) -> None:
    records = simulate(400, block_dim, width=300).records
    assert records.block_dim == block_dim
    del records.stats["block_dim"]
    seen = set(records.tasks["core"].tolist())
    assert seen == set(range(3 * block_dim))
    assert records.block_dim == block_dim


def test_blocks_of_a_run_on_vector_cores_alone() -> None:
    for blocks in (1, 3, 24):
        cores = range(blocks, 3 * blocks)
        assert (
            Records(
                table("tasks", {"task_id": cores, "core": cores, "core_type": [1] * len(cores)})
            ).block_dim
            == blocks
        )


def test_foreign_layout_is_converted_and_a_missing_field_named() -> None:
    swapped = np.zeros(
        2, np.dtype([("kind", "i4"), ("arg", "i8"), ("succ", "i4"), ("pred", "i4"), ("more", "f4")])
    )
    swapped["succ"] = (5, 6)
    records = Records(edges=swapped)
    assert records.edges.dtype == dtype("edges") and records.edges["succ"].tolist() == [5, 6]
    with pytest.raises(DiagnosticError, match=r"missing field 'value' in table 'counters'"):
        Records(counters=np.zeros(1, np.dtype([("time", "i8"), ("which", "i1")])))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "Expecting value"),
        (b"[1, 2]", "expected a JSON object"),
        (b"{}", "expected records in format"),
        (b'{"format": "pto-runtime-records", "version": 99}', "expected version 1, got 99"),
        (b'{"format": "pto-runtime-records", "version": 1, "tasks": [1]}', "expected a table of columns in 'tasks'"),
        (b'{"format": "pto-runtime-records", "version": 1, "tasks": {"task_id": [1], "core": [1, 2]}}', "differ in length"),
        (b'{"format": "pto-runtime-records", "version": 1, "edges": {"from": [1]}}', "unknown column 'from'"),
        (b'{"format": "pto-runtime-records", "version": 1, "edges": {"pred": ["x"]}}', "invalid literal"),
        (b'{"version": 3, "tasks": []}', "expected version 1 or 2"),
        (b'{"version": 2, "tasks": [{"task_id": 1}]}', "missing field 'func_id'"),
        (b"PK\x03\x04 no zip", "not a zip file"),
        (b"\xff\xfe\x00", "decode"),
    ],
)  # fmt: skip
def test_e2801_unreadable(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(DiagnosticError) as caught:
        Records.load(path)
    (problem,) = caught.value.diagnostics
    assert problem.code == "PTO-E2801" and str(path) in problem.message and words in problem.message


class _Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_broken_npz_files(tmp_path: Path) -> None:
    """Cut anywhere, a file is refused with a diagnostic, and so is one with an object array."""
    path = simulate(30).records.save(tmp_path / "run.npz")
    data = path.read_bytes()
    for cut in range(2, len(data), max(1, len(data) // 40)):
        path.write_bytes(data[:cut])
        with pytest.raises(DiagnosticError, match="PTO-E2801"):
            Records.load(path)
    spoilt = tmp_path / "made by a file that was read"
    evil = np.array([_Evil(spoilt)], dtype=object)
    np.savez(path, meta=evil, **{name: np.zeros(0, dtype(name)) for name in FIELDS})
    with pytest.raises(DiagnosticError, match="PTO-E2801"):
        Records.load(path)
    assert not spoilt.exists()


def test_files_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="PTO-E0001"):
        Records.load(tmp_path / "none.npz")
    with pytest.raises(DiagnosticError, match="PTO-E0002"):
        Records().save(tmp_path / "no" / "folder.npz")
    with pytest.raises(DiagnosticError, match="PTO-E2801"):
        Records().save(tmp_path / "run.txt")


def test_json_is_columns_of_plain_numbers(tmp_path: Path) -> None:
    data = json.loads(simulate(5).records.save(tmp_path / "r.json").read_text())
    assert data["tasks"]["task_id"] == [0, 1, 2, 3, 4]
    assert set(data["tasks"]) == {field for field, _ in FIELDS["tasks"]}


def test_numpy_is_not_imported_with_the_modules() -> None:
    code = (
        "import sys, pto.perf.records, pto.perf.trace, pto.perf.swimlane_json, pto.perf.analysis, pto.perf.hazards,"
        " pto.perf.explorer.tasks, pto.perf.task_graph, pto.perf.summary\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
