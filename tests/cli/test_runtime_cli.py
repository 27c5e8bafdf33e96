"""`pto runtime run`: its output, its files and its exit status, on an engine that stands for the task runtime."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pto.cli.main import main as pto
from pto.perf.records import Records
from pto.perf.tables import table
from pto.runtime import runner

#: One kernel, quick to compile: y[i] = x[i] + 1.
KERNEL = """\
#include <cstdint>
extern "C" void kernel_entry(int64_t* args) {
  for (int64_t i = 0; i < args[2]; ++i) reinterpret_cast<float*>(args[1])[i] = reinterpret_cast<float*>(args[0])[i] + 1;
}
"""
CONFIG = """\
KERNELS = [{"func_id": 0, "source": "inc.cpp", "core_type": "aiv", "name": "increment"}]
ORCHESTRATION = {"source": "o.cpp", "function_name": "go"}
"""
GOLDEN = """\
import ctypes
import numpy as np
ALL_CASES = {"One": {"n": 4}, "Two": {"n": 9}}
DEFAULT_CASE = "One"
def generate_inputs(params):
    n = params["n"]
    return [("x", np.arange(n, dtype=np.float32)), ("out_y", np.zeros(n, np.float32)), ("n", ctypes.c_int64(n))]
def compute_golden(tensors, params):
    tensors["out_y"][:] = tensors["x"] + 1
"""

Run = Callable[..., tuple[int, str, str]]


class _Engine:
    configs: list[dict[str, Any]] = []  # noqa: RUF012
    short = 0

    def __init__(self, config: dict[str, Any]) -> None:
        _Engine.configs.append(config)

    def add_kernel(self, func_id: int, name: str, core_type: str, path: str) -> None:
        self.path = path

    def add_function(self, *what: Any) -> None:
        raise AssertionError("no function here")

    def run_orchestration(self, path: str, entry: str, args: list[int]) -> Records:
        slots = (ctypes.c_int64 * 3)(args[0], args[1], args[2] - self.short)
        ctypes.CDLL(self.path).pto2_kernel(slots, None)
        times = {
            name: [at] for at, name in enumerate(("submit", "ready", "dispatch", "start", "end", "finish"))
        }
        return Records(
            tasks=table("tasks", {"task_id": [0], "core": [1], "core_type": [1], **times}),
            names={0: "increment"},
        )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ of all tests, so that it is compiled once."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "inc.cpp").write_text(KERNEL)
    (folder / "o.cpp").write_text('extern "C" int go() { return 0; }\n')
    return folder


@pytest.fixture
def run(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """Call the tool on a small folder; files are written beside it."""
    monkeypatch.setattr(runner, "make_engine", _Engine)
    monkeypatch.setattr(_Engine, "configs", [])
    monkeypatch.setattr(_Engine, "short", 0)
    monkeypatch.chdir(tmp_path)
    config = CONFIG.replace('"source": "', f'"source": r"{sources}/')
    files = {"kernels/kernel_config.py": config, "golden.py": GOLDEN}
    for name, text in files.items():
        path = tmp_path / "case" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            status = pto(["runtime", "run", *arguments])
        except SystemExit as e:
            status = int(e.code or 0)
        out, err = capfd.readouterr()
        return status, out, err

    return call


def test_the_device_is_simulated(run: Run) -> None:
    out = run("case", "-p", "a2a3")[1]
    assert out.startswith("case: host_build_graph on simulated a2a3, 24 blocks, libraries: ")


def test_a_folder_that_passes(run: Run) -> None:
    status, out, err = run("case")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("case: host_build_graph on a2a3sim, 24 blocks, libraries: ")
    assert lines[2].split()[:5] == ["One", "out_y", "4", "float32", "4/4"] and lines[2].endswith("PASS")
    assert lines[-1] == "TEST PASSED (1 case)"
    assert run("case")[1].splitlines()[0].endswith("libraries: 2 from the cache")


def test_all_cases_and_options_reach_the_engine(run: Run) -> None:
    options = (
        "--all",
        "--block-dim",
        "3",
        "--threads",
        "2",
        "--aicpu-threads",
        "4",
        "-p",
        "a5sim",
        "--seed",
        "7",
    )
    status, out, _ = run("case", *options, "-r", "aicpu_build_graph")
    assert status == 0 and "TEST PASSED (2 cases)" in out
    config = _Engine.configs[1]
    wanted = {"runtime": "aicpu_build_graph", "platform": "a5sim", "block_dim": 3, "aicpu_thread_num": 4,
              "threads": 2, "seed": 7, "profiling": False}  # fmt: skip
    assert {key: config[key] for key in wanted} == wanted


def test_a_folder_that_fails(run: Run) -> None:
    _Engine.short = 1
    status, out, err = run("case", "--case", "Two")
    assert status == 1 and out.splitlines()[-1] == "TEST FAILED: Two"
    assert "error[PTO-E2606]: case Two: output 'out_y' does not match golden: 1 of 9 elements differ" in err
    assert "expected: 9 at [8]" in err and "got: 0" in err
    status, out, err = run("case", "--case", "Two", "--diagnostics=json", "--silent")
    assert (status, out) == (1, "") and json.loads(err)[0]["code"] == "PTO-E2606"


def test_folder_given_in_parts_and_milestones(run: Run) -> None:
    """Section 6.3: -k and -g, and the lines that -v prints."""
    status, out, _ = run("-k", "case/kernels", "-g", "case/golden.py", "-p", "a2a3sim", "-d", "0", "-v")
    assert status == 0
    for line in ("[INFO] === Building Runtime: host_build_graph (platform: a2a3sim) ===", "[INFO] Compiled 1 kernel(s)",
                 "[INFO] === Case 1/1: {'name': 'One', 'n': 4} ===", "[INFO] === Generating Inputs ===",
                 "[INFO] Inputs: ['x']", "[INFO] Outputs: ['out_y']", "[INFO] === Launching Runtime ===",
                 "[INFO] Launch completed successfully", "[INFO] === Comparing Results ===",
                 "[INFO] Comparing out_y: shape=(4,), dtype=float32", "[INFO]   out_y: PASS (4/4 elements matched)",
                 "[INFO] === Case 1/1 Passed ==="):  # fmt: skip
        assert line in out.splitlines(), line


def test_files_of_a_run(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("case", "--trace", "t.json", "--swimlane", "s.html", "--graph", "g.dot", "--summary",
                         "--enable-profiling")  # fmt: skip
    assert status == 0 and _Engine.configs[0]["profiling"] is True
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert "<html" in (tmp_path / "s.html").read_text() and "digraph" in (tmp_path / "g.dot").read_text()
    assert "increment" in out
    assert [p.name[:14] for p in (tmp_path / "outputs").iterdir()] == ["perf_swimlane_"]


def test_each_case_has_its_own_files(run: Run, tmp_path: Path) -> None:
    assert run("case", "--all", "--trace", "t.json")[0] == 0
    assert sorted(p.name for p in tmp_path.glob("*.json")) == ["t_One.json", "t_Two.json"]


def test_a_file_that_cannot_be_written(run: Run) -> None:
    status, _, err = run("case", "--trace", "no/such/t.json")
    assert status == 1 and "error[PTO-E0002]" in err


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ((), 2, "missing DIR"),
        (("nowhere",), 1, "error[PTO-E2601]"),
        (("case", "--case", "Three"), 1, "available: One, Two"),
        (("case", "--case", "One", "--all"), 2, "not allowed with"),
        (("case", "-r", "other"), 1, "unknown runtime 'other'"),
        (("case", "--block-dim", "25"), 2, "expected a number from 1 to 24"),
        (("case", "--platform", "a9"), 2, "invalid choice"),
        (("case", "--sumary"), 2, "unrecognized arguments: --sumary; did you mean '--summary'"),
        (("case", "--sumary"), 2, "try 'pto runtime run --help'"),
    ],
)
def test_what_is_wrong(run: Run, arguments: tuple[str, ...], status: int, words: str) -> None:
    found, _, err = run(*arguments)
    assert found == status and words in err and "Traceback" not in err


def test_a_kernel_that_does_not_compile(run: Run, tmp_path: Path, sources: Path) -> None:
    (tmp_path / "case/kernels/inc.cpp").write_text(KERNEL.replace("+ 1", "+ one"))
    config = tmp_path / "case/kernels/kernel_config.py"
    config.write_text(CONFIG.replace('"o.cpp"', f'r"{sources / "o.cpp"}"'))
    status, out, err = run("case")
    assert status == 1 and "inc.cpp:3:" in err and "error[PTO-E2402]" in err and "TEST FAILED" in out


def test_cases_have_files_whatever_they_are_called(run: Run) -> None:
    golden = Path("case/golden.py")
    golden.write_text(golden.read_text().replace('"Two"', '"a/b c"'))
    assert run("case", "--all", "--trace", "t.json")[0] == 0
    assert {p.name for p in Path().glob("t*.json")} == {"t_One.json", "t_a_b_c.json"}


def test_a_file_that_cannot_be_written_hides_no_result(run: Run) -> None:
    status, out, err = run("case", "--trace", "missing/t.json")
    assert status == 1 and "PTO-E0002" in err and "4/4" in out


def test_e2621_an_option_that_a_graph_with_explicit_edges_does_not_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = Path(__file__).parents[2] / "examples" / "runtime" / "vector_dag" / "host_build_graph"
    assert pto(["runtime", "run", str(folder), "--track-war"]) == 1
    shown = capsys.readouterr().err
    assert (
        "PTO-E2621]: cannot use --track-war: edges of host_build_graph are explicit" in shown
        and "help:" in shown
    )
