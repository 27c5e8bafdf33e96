"""Names for programs that import simpler: orchestrations with ChipTaskArgs, and chips in this process."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from pto import knobs
from pto.compat.simpler import finder
from pto.compat.simpler.modules import MODULES
from pto.diag import DiagnosticError
from pto.engine import journal
from pto.runtime.compile import CHIP, form_of

HERE = Path(__file__).parent / "chips"
A = np.arange(64, dtype=np.float32).reshape(8, 8)
B = 100 * A


@pytest.fixture
def simpler() -> Iterator[Any]:
    """`simpler`, for the time of a test."""
    before = finder.installed()
    finder.install(shadow=True)
    yield importlib.import_module("simpler")
    if not before:
        finder.uninstall()


def chip(
    simpler: Any, orchestration: str, kernels: list[tuple[str, str]], entry: str = "", config: str = ""
) -> Any:
    """A callable of sources of this folder; of kernels their names and cores."""
    interface, setup = simpler.task_interface, importlib.import_module("simpler_setup")
    compiler = setup.KernelCompiler(platform="a2a3sim")
    children = []
    for number, (name, core) in enumerate(kernels):
        source = compiler.compile_incore(HERE / "kernels" / f"{name}.cpp", core_type=core)
        children.append((number, interface.CoreCallable.build(signature=[], binary=source)))
    direction = interface.ArgDirection
    out = [direction.OUT, direction.INOUT]
    return interface.ChipCallable.build(
        signature=[direction.IN, direction.IN, direction.INOUT] if not entry else out,
        func_name=entry or "aicpu_orchestration_entry",
        config_name=config,
        binary=compiler.compile_orchestration("tensormap_and_ringbuffer", HERE / f"{orchestration}.cpp"),
        children=children,
    )


def graph(simpler: Any) -> Any:
    return chip(simpler, "graph", [("add", "aiv"), ("where", "aic"), ("where", "aiv")])


def run(simpler: Any, which: int, watched: str = "warn") -> Any:
    """Return `out` after a scenario of graph.cpp."""
    out, events = launched(simpler, which, graph(simpler), watched)
    assert not [d for e in events for d in e.diagnostics]  # edges order all that tasks say they use
    return out


def launched(simpler: Any, which: int, made: Any, watched: str) -> tuple[Any, list[Any]]:
    out = np.zeros_like(A)
    args = simpler.task_interface.TaskArgs()
    for tensor in (A, B, out):
        args.add_tensor(tensor)
    args.add_scalar(which)
    events: list[Any] = []
    with journal.listening(events.append), knobs.override(PTO_SANITIZE=watched):
        with simpler.Worker(level=2, platform="a2a3sim") as worker:
            worker.run(worker.register(made), args)
    return out, events


def test_modules(simpler: Any) -> None:
    for name, ours in MODULES.items():
        assert importlib.import_module(name) is sys.modules[ours]
    setup = importlib.import_module("simpler_setup")
    assert callable(setup.scene_test) and setup.parallel_scheduler is importlib.import_module(
        "simpler_setup.parallel_scheduler"
    )
    from simpler_setup.scene_test import scene_test  # pyright: ignore[reportMissingImports]

    assert scene_test is setup.scene_test


def test_a_chip(simpler: Any) -> None:
    out = run(simpler, 0)
    assert (
        np.array_equal(out[0], 101 * (A[1] + A[2])) and np.array_equal(out[1], 2 * A[1]) and not out[2:].any()
    )


@pytest.mark.parametrize(
    "names",
    [
        {"CoreTaskArgs": "L0TaskArgs", "ChipTaskArgs": "L2TaskArgs"},
        {"CoreTaskArgs": "Arg", "ChipTaskArgs": "ChipStorageTaskArgs", ".ref()": ""},
    ],
    ids=["L2TaskArgs", "ChipStorageTaskArgs"],
)
def test_a_chip_by_earlier_names(
    simpler: Any, names: dict[str, str], kept_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources from before ChipTensor: `Tensor` has `buffer.addr` and `start_offset`."""
    shutil.copytree(HERE, kept_place / "chips", dirs_exist_ok=True)
    for path in (kept_place / "chips").rglob("*.cpp"):
        text = path.read_text(encoding="utf-8").replace("ChipTensor", "Tensor")
        for name, earlier in names.items():
            text = text.replace(name, earlier)
        if "ChipStorageTaskArgs" in text:
            text = re.sub(r"given\.tensor\(\d\)", r"from_tensor_arg(\g<0>)", text)
        path.write_text(text, encoding="utf-8")
    assert form_of(str(kept_place / "chips" / "graph.cpp")) == CHIP
    monkeypatch.setattr(sys.modules[__name__], "HERE", kept_place / "chips")
    test_a_chip(simpler)


def test_e2605_a_chip_without_its_entry(simpler: Any) -> None:
    """The source has an entry of the usual name, and the callable names another."""
    with pytest.raises(DiagnosticError, match=r"PTO-E2605.*missing function 'other_entry'"):
        launched(simpler, 0, chip(simpler, "graph", [("add", "aiv")], "other_entry"), "warn")


def test_what_a_worker_has_loaded(simpler: Any) -> None:
    """A callable is loaded when it first runs; by a device, or by the host, as set in the runtime."""
    args = simpler.task_interface.TaskArgs()
    for tensor in (A, B, np.zeros_like(A)):
        args.add_tensor(tensor)
    args.add_scalar(0)
    for runtime, there in (("tensormap_and_ringbuffer", (1, 0)), ("host_build_graph", (0, 1))):
        with simpler.Worker(level=2, platform="a2a3sim", runtime=runtime) as worker:
            handle = worker.register(graph(simpler))
            assert (worker.aicpu_dlopen_count, worker.host_dlopen_count) == (0, 0)
            for _ in range(2):
                worker.run(handle, args)
                assert (worker.aicpu_dlopen_count, worker.host_dlopen_count) == there


def test_levels_of_messages(simpler: Any) -> None:
    logs = importlib.import_module("simpler_setup.log_config")
    found = [
        logs.parse_level(level) for level in ("debug", "Info", "timing", "warn", "error", "null", "no", 7)
    ]
    assert found == [10, 20, 25, 30, 40, 60, 25, 7] and logs.LOG_LEVEL_CHOICES[2] == logs.DEFAULT_LOG_LEVEL
    before = simpler.get_logger().level
    logs.configure_logging(21)  # of the levels that there are, the next one
    assert simpler.get_current_config() == 25
    logs.configure_logging(before)


def test_kernels_under_watch(simpler: Any, kept_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pto python --sanitize all`: C++ kernels are checked, too; some of them must be inlined."""
    shutil.copytree(HERE, kept_place / "chips", dirs_exist_ok=True)
    path = kept_place / "chips" / "kernels" / "add.cpp"
    text = path.read_text(encoding="utf-8")
    inlined = text.replace(
        'extern "C" __aicore__ void', 'extern "C" __aicore__ __attribute__((always_inline)) void'
    )
    flag = "  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
    assert inlined != text and flag in text
    monkeypatch.setattr(sys.modules[__name__], "HERE", kept_place / "chips")
    path.write_text(inlined, encoding="utf-8")
    run(simpler, 0, "all")
    path.write_text(inlined.replace(flag, "\n"), encoding="utf-8")
    _, events = launched(simpler, 0, graph(simpler), "race")
    (found,) = [d for e in events for d in e.diagnostics if d.code == "PTO-E2201"]
    place = found.span
    assert (
        place is not None
        and place.source.name == str(path)
        and "TADD(ta, ta, tb);" in text.splitlines()[place.line - 1]
    )
    assert found.severity == "error" and "in task " in found.message and "(add)" in found.message


def test_explicit_edges(simpler: Any) -> None:
    out = run(simpler, 1)
    assert np.array_equal(out[0], A[0] + 2 * B[0])
    assert out[1, 0] == -1 and np.array_equal(out[1, 1:], (A[0] + 3 * B[0])[1:])
    assert np.array_equal(run(simpler, 2)[0], 3 * A[0])


def test_mixed_kernels_in_blocks(simpler: Any) -> None:
    assert run(simpler, 3).ravel()[:7].tolist() == [200, 200, 200, 201, 201, 201, 0]


@pytest.mark.parametrize("which, code, text", [
    (10, -5, "tensors come before scalars"),
    (11, -201, "view: dimension 0: offset 7 and shape 2 do not fit in 8"),
    (12, -9, "no more than 3"),
    (13, -201, "tensor 3 of an orchestration that was given 3"),
    (14, -5, "expected at least 1 block"),
    (15, -5, "a task has at most 32767 cores, those of all its blocks"),
])  # fmt: skip
def test_wrong_orchestrations(simpler: Any, which: int, code: int, text: str) -> None:
    with pytest.raises(RuntimeError, match=f"run failed with code {code}: .*{text}") as caught:
        run(simpler, which)
    assert isinstance(caught.value, DiagnosticError) and "graph.cpp" in str(caught.value)


def test_in_does_not_come_back(simpler: Any) -> None:
    """A run works on copies: `a` is IN, so writes to it do not come back."""
    interface = simpler.task_interface
    built = chip(simpler, "graph", [("add", "aiv"), ("where", "aic"), ("where", "aiv")])
    args, out = interface.TaskArgs(), np.zeros_like(A)
    for tensor in (out, B, out):
        args.add_tensor(tensor)
    args.add_scalar(3)
    built.signature = [interface.ArgDirection.IN] * 3
    events: list[Any] = []
    with journal.listening(events.append), simpler.Worker(level=2) as worker:
        worker.run(worker.register(built), args)
    assert not out.any()
    (found,) = [d for e in events for d in e.diagnostics]
    assert found.code == "PTO-E2607" and "write to argument 2, which is IN" in found.message


def exchange(simpler: Any, ranks: int, how: int = 0) -> list[float]:
    interface = simpler.task_interface
    built = chip(simpler, "exchange", [("exchange", "aiv")], "exchange", "exchange_config")
    outs = [np.zeros(1, np.float32) for _ in range(ranks)]
    heard: list[float] = []
    given = {"device_ids": list(range(ranks)), "num_sub_workers": 1, "enable_sdma": how == 3}
    with simpler.Worker(level=3, **given) as worker:
        handle = worker.register(built)
        listener = worker.register(
            lambda args: heard.extend(np.frombuffer(a.buffer, np.float32)[0] for a in args)
        )

        def orchestrate(orch: Any, _args: Any, config: Any) -> None:
            part = interface.CommBufferSpec(name="cells", dtype="float32", count=2, nbytes=8)
            with orch.allocate_domain(
                name="ring", workers=range(ranks), window_size=4096, buffers=[part]
            ) as domain:
                given = []
                for i in range(ranks):
                    args = interface.TaskArgs()
                    args.add_tensor(outs[i], interface.TensorArgType.OUTPUT_EXISTING)
                    cells = domain[i].buffers["cells"].tensor((2,), interface.DataType.FLOAT32)
                    args.add_tensor(cells, interface.TensorArgType.INOUT)
                    args.add_scalar(domain[i].device_ctx)
                    args.add_scalar(how)
                    given.append(args)
                orch.submit_next_level_group(handle, given, config, workers=list(range(ranks)))
            after = interface.TaskArgs()
            for out in outs:
                after.add_tensor(out, interface.TensorArgType.INPUT)
            orch.submit_sub(listener, after)

        worker.run(orchestrate)
    assert heard == [float(out[0]) for out in outs]
    return heard


@pytest.mark.parametrize("how", [0, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_ranks_with_a_window(simpler: Any, ranks: int, how: int) -> None:
    """Every rank has the data of the one before it; a task of Python comes after all of them."""
    assert exchange(simpler, ranks, how) == [10 + (r - 1) % ranks for r in range(ranks)]


def test_ranks_under_watch(simpler: Any) -> None:
    """A wait that has ended is over, although the checks of a chip see no signal of another."""
    events: list[Any] = []
    with journal.listening(events.append), knobs.override(PTO_SANITIZE="all"):
        assert exchange(simpler, 2) == [11, 10]
    assert not [d for e in events for d in e.diagnostics]


def test_ranks_that_wait_for_nobody(simpler: Any) -> None:
    """One rank that waits goes on waiting while others may come; when all wait, that is reported."""
    with pytest.raises(RuntimeError, match="no core can go on") as caught:
        exchange(simpler, 2, how=1)
    assert isinstance(caught.value, DiagnosticError) and caught.value.diagnostics[0].code == "PTO-E2624"


def test_wrong_graphs_of_chips(simpler: Any) -> None:
    interface = simpler.task_interface
    spec = interface.CommBufferSpec("cells", "float32", 2, 8)

    def run(orchestrate: Any) -> None:
        with simpler.Worker(level=3, device_ids=[0, 1]) as worker:
            handle = worker.register(lambda args: None)
            worker.run(lambda orch, args, config: orchestrate(orch, worker, handle))

    for orchestrate, error, text in (
        (lambda o, w, h: o.allocate_domain(name="d", workers=[0], window_size=4, buffers=[spec]), ValueError,
         "buffers need 8 bytes, window_size is 4"),
        (lambda o, w, h: o.allocate_domain(name="d", workers=[0, 2], window_size=8), ValueError, "unknown worker 2"),
        (lambda o, w, h: o.allocate_domain(name="d", workers=[0, 0], window_size=8), ValueError, "different workers"),
        (lambda o, w, h: o.allocate_domain(name="d", workers=[0], window_size=8)[1], KeyError, "1"),
        (lambda o, w, h: o.submit_next_level(h, interface.TaskArgs(), worker=0), TypeError, "ChipCallable"),
        (lambda o, w, h: o.submit_sub(3), TypeError, "expected a handle from register"),
        (lambda o, w, h: o.submit_next_level_group(h, [], workers=[0]), ValueError, "expected 1 arguments, one per worker, got 0"),
        (lambda o, w, h: o.copy_to(w.malloc(4), np.zeros(8, np.float32)), ValueError, "expected at most 4 bytes, the size of the buffer, got 32"),
        (lambda o, w, h: o.submit_sub(w.register(lambda args: 1 / 0)), ZeroDivisionError, "division"),
        (lambda o, w, h: o.create_worker_chip_queue(), DiagnosticError, "PTO-E3106"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            run(orchestrate)


def test_copies_and_orders_of_python_tasks(simpler: Any) -> None:
    interface, said = simpler.task_interface, []
    host, back = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)

    def orchestrate(orch: Any, args: Any, config: Any) -> None:
        buffer = orch.alloc_child_tensor(1, (4,), interface.DataType.FLOAT32)
        shared = orch.alloc((4,), interface.DataType.FLOAT32)
        orch.copy_to(buffer, host)
        for number, tag in enumerate(("OUTPUT_EXISTING", "INPUT", "INOUT", "INPUT")):
            args = interface.TaskArgs()
            args.add_tensor(shared.tensor((4,), interface.DataType.FLOAT32), interface.TensorArgType[tag])
            args.add_scalar(number)
            orch.submit_sub(handle, args)
        orch.copy_from(back, buffer)
        assert said == [0, 1, 2, 3]  # an access to data runs the submitted tasks

    with simpler.Worker(level=3, device_ids=[4, 7], num_sub_workers=1) as worker:
        handle = worker.register(lambda args: said.append(args.scalar(0)))
        worker.run(orchestrate)
    assert np.array_equal(back, host)


def test_scene(
    simpler: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scene test as a script."""
    setup = importlib.import_module("simpler_setup")
    way = simpler.task_interface.ArgDirection

    @setup.scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestGraph(setup.SceneTestCase):
        CALLABLE: ClassVar[Any] = {
            "orchestration": {"source": "chips/graph.cpp", "function_name": "aicpu_orchestration_entry",
                              "signature": [way.IN, way.IN, way.OUT]},
            "incores": [
                {"func_id": n, "source": f"chips/kernels/{name}.cpp", "core_type": core}
                for n, (name, core) in enumerate([("add", "aiv"), ("where", "aic"), ("where", "aiv")])
            ],
        }  # fmt: skip
        CASES: ClassVar[Any] = [
            {"name": "right", "platforms": ["a2a3sim"], "params": {"by": 101}, "config": {"block_dim": 3}},
            {"name": "wrong", "platforms": ["a2a3sim"], "params": {"by": 102}, "manual": ["a2a3sim"]},
        ]

        def generate_args(self, params: Any) -> Any:
            tensors = [setup.TensorArg(n, v) for n, v in (("a", A), ("b", B), ("out", np.zeros_like(A)))]
            return setup.TaskArgsBuilder(*tensors, setup.Scalar("which", ctypes.c_int64(0)))

        def compute_golden(self, args: Any, params: Any) -> None:
            args.out[0], args.out[1] = params["by"] * (A[1] + A[2]), 2 * A[1]

    assert setup.Tensor is setup.TensorArg  # an earlier name
    assert setup.make_tensor_arg(A).shapes == setup.make_tensor_arg(None, A).shapes == A.shape
    assert TestGraph()._build_config({"block_dim": 3}).block_dim == 3
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "TestGraph", TestGraph, raising=False)
    for words, status, text in (
        (["-p", "a2a3sim", "--rounds", "2"], 0, "PASS TestGraph::right"),
        (
            ["-p", "a2a3sim", "--manual", "include"],
            1,
            "8 of 64 elements differ, the first is 0: 2424.0, expected 2448",
        ),
        (["-p", "a2a3sim", "--manual", "include", "--case", "TestGraph::right"], 0, "1 passed, 0 failed"),
    ):
        monkeypatch.setattr(sys, "argv", ["script", *words])
        with pytest.raises(SystemExit) as ended:
            setup.SceneTestCase.run_module(__name__)
        assert ended.value.code == status and text in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["script", "-p", "a5sim"])
    with pytest.raises(DiagnosticError, match=r"PTO-E3107.*cannot find a case for platform a5sim") as caught:
        setup.SceneTestCase.run_module(__name__)
    assert "TestGraph::right" in caught.value.diagnostics[0].help


def test_scene_of_a_node(
    simpler: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same for several chips: an orchestration in Python, callables by name, one of them Python."""
    setup, interface = importlib.import_module("simpler_setup"), simpler.task_interface
    way, seen = interface.ArgDirection, []
    from simpler_setup.scene_test import _rehosted_ref_for  # pyright: ignore[reportMissingImports]

    def orchestrate(orch: Any, callables: Any, args: Any, config: Any) -> None:
        part = interface.CommBufferSpec(name="cells", dtype="float32", count=2, nbytes=8)
        with orch.allocate_domain(name="d", workers=[0, 1], window_size=64, buffers=[part]) as domain:
            given = []
            for i in range(2):
                one = interface.TaskArgs()
                out = _rehosted_ref_for(args, getattr(args, f"out_{i}"))
                one.add_tensor(out, interface.TensorArgType.OUTPUT_EXISTING)
                cells = domain[i].buffers["cells"].tensor((2,), interface.DataType.FLOAT32)
                one.add_tensor(cells, interface.TensorArgType.INOUT)
                one.add_scalar(domain[i].device_ctx)
                one.add_scalar(0)
                given.append(callables.keep(one))
            orch.submit_next_level_group(callables.swap, given, config, workers=[0, 1])
        orch.submit_sub(callables.tell)

    @setup.scene_test(level=3, runtime="tensormap_and_ringbuffer")
    class TestSwap(setup.SceneTestCase):
        CALLABLE: ClassVar[Any] = {
            "orchestration": orchestrate,
            "callables": [
                {
                    "name": "swap",
                    "orchestration": {
                        "source": "chips/exchange.cpp",
                        "function_name": "exchange",
                        "config_name": "exchange_config",
                        "signature": [way.OUT, way.INOUT],
                    },
                    "incores": [{"func_id": 0, "source": "chips/kernels/exchange.cpp", "core_type": "aiv"}],
                },
                {"name": "tell", "callable": lambda args: seen.append(len(args))},
            ],
        }
        CASES: ClassVar[Any] = [
            {"name": "two", "platforms": ["a2a3sim"], "config": {"device_count": 2, "num_sub_workers": 1}}
        ]

        def generate_args(self, params: Any) -> Any:
            return setup.TaskArgsBuilder(
                *(setup.TensorArg(f"out_{i}", np.zeros(1, np.float32)) for i in range(2))
            )

        def compute_golden(self, args: Any, params: Any) -> None:
            args.out_0[0], args.out_1[0] = 11, 10

    monkeypatch.setattr(sys.modules[__name__], "TestSwap", TestSwap, raising=False)
    for devices, status, text in (
        ("0-1", 0, "PASS TestSwap::two"),
        ("3", 1, "expected 2 devices, got 1 from -d"),
    ):
        monkeypatch.setattr(sys, "argv", ["script", "-p", "a2a3sim", "-d", devices])
        with pytest.raises(SystemExit) as ended:
            setup.SceneTestCase.run_module(__name__)
        assert ended.value.code == status and text in capsys.readouterr().out
    assert seen == [0]


def test_e3105_modules_that_nothing_stands_for(
    simpler: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"\[PTO-E3105\].*other machines are not simulated"):
        importlib.import_module("simpler.remote_l3_session")
    with pytest.raises(ModuleNotFoundError, match=r"\[PTO-E3105\].*run the program there"):
        importlib.import_module("simpler_setup.goldens.sums")
    (tmp_path / "simpler_setup" / "goldens").mkdir(parents=True)
    for name, text in (("__init__", ""), ("sums", "ANSWER = 42")):
        (tmp_path / "simpler_setup" / "goldens" / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert importlib.import_module("simpler_setup.goldens.sums").ANSWER == 42


def test_e3106_what_is_not_here(simpler: Any) -> None:
    interface, setup = simpler.task_interface, importlib.import_module("simpler_setup")
    worker = simpler.Worker(level=2)
    for use in (
        lambda: simpler.Worker(level=4),
        lambda: simpler.Worker(level=2, platform="b7"),
        lambda: interface.CoreCallable.build(signature=[], binary=b"\x7fELF"),
        lambda: setup.KernelCompiler("a2a3sim").compile_orchestration("aicpu_build_graph", "x.cpp"),
        lambda: interface.CallConfig(enable_dep_gen=True).validate(),
        lambda: worker.add_remote_worker(),
        lambda: importlib.import_module("simpler.worker").RemoteWorkerSpec,
    ):
        with pytest.raises(DiagnosticError) as caught:
            use()
        assert caught.value.diagnostics[0].code == "PTO-E3106" and caught.value.diagnostics[0].help
    with pytest.raises(RuntimeError, match=r"needs init\(\) first"):
        worker.run(None)


def test_one_ring_is_as_large_as_all_of_a_device(simpler: Any) -> None:
    """A device has one for each of four depths of scopes; a number is the size of each."""
    env = simpler.task_interface.CallConfig().runtime_env
    assert env.sizes() == {}
    env.ring_heap, env.ring_task_window = 4 << 20, 64
    assert env.sizes() == {"heap": 16 << 20, "task_window": 256}
    env.ring_heap, env.ring_task_window = [1 << 20, 2 << 20, 3 << 20, 4 << 20], [0, 64, 64, 64]
    assert env.sizes() == {"heap": 10 << 20}  # 0 is the default of a ring


@pytest.mark.parametrize(
    ("capture", "shown"), [("fd", ["found by sanitizers", "k.cpp:1:1: a race"]), ("no", [])]
)
def test_findings_of_tests_that_pass(monkeypatch: pytest.MonkeyPatch, capture: str, shown: list[str]) -> None:
    """pytest captures their output, unless an option disables that."""
    from pto.compat.pypto import plugin, session

    said: list[str] = []
    reporter = SimpleNamespace(section=said.append, write_line=said.append)
    one = session.ProgramListener()
    one.texts.append("k.cpp:1:1: a race")
    monkeypatch.setattr(session, "listening", [one])
    plugin.pytest_terminal_summary(reporter, SimpleNamespace(getoption=lambda name: capture))
    assert said == shown
