"""Names for programs that import pypto, in this process."""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto.language as pl
import pto.language.distributed as pld
from pto.compat.pypto import finder
from pto.compat.pypto.modules import MODULES
from pto.diag import DiagnosticError
from pto.language.programs import folder

N = pl.dynamic("N")


@pl.program
class Scaled:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, a: pl.Tensor[[N, 64], pl.FP32], by: pl.Scalar[pl.FP32], times: pl.Scalar[pl.INT32],
        out: pl.Out[pl.Tensor[[N, 64], pl.FP32]],
    ) -> pl.Tensor[[N, 64], pl.FP32]:  # fmt: skip
        rows = pl.load(a, [0, 0], [16, 64])
        mask: pl.Tile[[16, 32], pl.UINT8] = pl.tile.cmps(rows, -1.0, cmp_type=4)
        t = pl.mul(pl.sel(mask, rows, pl.neg(rows)), by)
        for _ in pl.range(times):
            t = pl.add(t, 1.0)
        return pl.store(t, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, by: pl.Scalar[pl.FP32], a: pl.Tensor[[N, 64], pl.FP32], times: pl.Scalar[pl.INT32],
        out: pl.Out[pl.Tensor[[N, 64], pl.FP32]],
    ) -> pl.Tensor[[N, 64], pl.FP32]:  # fmt: skip
        out = self.kernel(a, by, times, out)
        return out


A = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)


@pytest.fixture
def pypto(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`pypto`, for the time of a test."""
    before = finder.installed()
    finder.install(shadow=True)
    yield importlib.import_module("pypto")
    if not before:
        finder.uninstall()


def test_modules(pypto: Any) -> None:
    """Every module that has a name is one of ours, and is left as it was."""
    for name, ours in MODULES.items():
        if name.startswith("pypto"):
            module = importlib.import_module(name)
            assert (
                module is sys.modules[ours] and module.__spec__ is not None and module.__spec__.name == ours
            )
    from pypto import ir  # pyright: ignore[reportMissingImports]
    from pypto.language import FP32  # pyright: ignore[reportMissingImports]
    from pypto.runtime import RunConfig  # pyright: ignore[reportMissingImports]

    assert FP32 is pl.FP32 is pypto.DT_FP32 is ir.FP32 is pypto.DataType.FP32 and RunConfig is pl.RunConfig
    for module in ("pypto", "pypto.ir", "pypto.runtime", "pypto.backend", "pypto.debug"):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = importlib.import_module(module).nothing


def test_e3102_modules_that_nothing_stands_for(pypto: Any) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"\[PTO-E3102\].*'pypto\.frontend'.*another project"):
        importlib.import_module("pypto.frontend")
    with pytest.raises(ModuleNotFoundError, match=r"\[PTO-E3102\].*did you mean 'pypto\.runtime'"):
        importlib.import_module("pypto.runtimes")


def test_e3103_names_that_are_refused(pypto: Any) -> None:
    from pypto.ir import PassManager  # pyright: ignore[reportMissingImports]
    from pypto.ir.distributed_compiled_program import (  # pyright: ignore[reportMissingImports]
        DistributedCompiledProgram,
        DistributedConfig,
    )

    for use in (
        PassManager,
        lambda: PassManager.get_strategy(),
        pypto.passes.l0_tile_chooser.L0TileConfig,
        DistributedCompiledProgram,
        lambda: pypto.ir.compile(3),
    ):
        with pytest.raises(DiagnosticError) as caught:
            use()
        assert caught.value.diagnostics[0].code == "PTO-E3103"
    with pytest.raises(ValueError, match="at least one device in device_ids, each once, got"):
        DistributedConfig(device_ids=[0, 0])


def test_programs_as_scripts(pypto: Any) -> None:
    """The text of `torch_codegen` is executed as it is, in a namespace of its own, and works in place."""
    import pypto.language as pl  # pyright: ignore[reportMissingImports]
    from pypto.debug import torch_codegen  # pyright: ignore[reportMissingImports]

    @pl.program
    class Twice:
        @pl.function(type=pl.FunctionType.InCore)
        def add(self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
            """Says \"two\" of \'x\'."""
            return pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), pl.load(x, [0, 0], [16, 64])), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
            y = self.add(x, y)
            return y

    @pl.function
    def half(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        return pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 0.5), [0, 0], y)

    for node, name, times in ((Twice, "main", 2), (Twice, "add", 2), (half, "half", 0.5)):
        names: dict[str, Any] = {}
        exec(torch_codegen(node, check_shapes=True), names)
        x, y = np.arange(1024, dtype=np.float32).reshape(16, 64), np.zeros((16, 64), np.float32)
        assert names[name](x, y) is y
        np.testing.assert_array_equal(y, x * np.float32(times))
        with pytest.raises(DiagnosticError, match=r"shape of 'x' of \w+ does not match"):
            names[name](x[:8], y)


def test_configurations_and_words(pypto: Any) -> None:
    from pypto.backend import BackendType  # pyright: ignore[reportMissingImports]

    runtime = importlib.import_module("pypto.runtime")
    assert BackendType.Ascend910B_PTO is BackendType.Ascend910B_CCE is BackendType.Ascend910B
    assert pl.RunConfig(platform="a5").backend_type is BackendType.Ascend950
    with pytest.warns(DeprecationWarning, match="enable_chip_swimlane"):
        config = pl.RunConfig(enable_l2_swimlane=True)
    assert config.enable_chip_swimlane == 4 and config.save_kernels
    assert dataclasses.replace(config, platform="a5sim").enable_chip_swimlane == 4
    assert runtime._DfxOpts.from_run_config(config).any()
    (die,) = pypto.backend.Backend910B.instance().soc.die_counts
    ((cluster, clusters),) = die.cluster_counts.items()
    cores = {core.core_type: n * clusters for core, n in cluster.core_counts.items()}
    assert cores == {pypto.ir.CoreType.CUBE: 24, pypto.ir.CoreType.VECTOR: 48}
    assert pypto.ir.OptimizationStrategy.PTOAS is pypto.ir.OptimizationStrategy.Default
    pypto.set_log_level(pypto.LogLevel.INFO)
    assert pypto.get_log_level() == pypto.LogLevel.INFO


def test_programs_without_arguments(pypto: Any, kept_place: Path) -> None:
    """Declarations of parameters are enough: numbers stay numbers, and folders run with nothing else."""
    runtime = importlib.import_module("pypto.runtime")
    place = kept_place
    compiled = pypto.ir.compile(Scaled, output_dir=place, platform="a2a3sim")
    assert isinstance(compiled, pypto.ir.CompiledProgram) and compiled.platform == "a2a3sim"
    assert compiled.param_names == ["by", "a", "times", "out"] and compiled.output_indices == [3]
    assert compiled.output_dir == place and (place / "debug" / "run.py").is_file()
    want = A * 2.5 + 3
    np.testing.assert_array_equal(compiled(2.5, A, 3), want)
    for live in (True, False):
        if not live:
            folder._live.clear()
        out = np.zeros_like(A)
        runtime.execute_compiled(
            place, [ctypes.c_float(2.5), A, ctypes.c_int32(3), out], platform="a2a3", device_id=0
        )
        np.testing.assert_array_equal(out, want)
    out = np.zeros_like(A)
    pictured = pl.RunConfig(enable_chip_swimlane=True)
    compiled(2.5, A, 3, out, config=pictured)
    for name in ("chip_swimlane_records.json", "swimlane.html", "deps.dot"):
        assert (place / "dfx_outputs" / name).is_file(), name
    assert runtime.run(Scaled, 2.5, A, 1, out)[("main")].has_return
    np.testing.assert_array_equal(out, A * 2.5 + 1)
    with pytest.raises(DiagnosticError, match="shape of 'out' of main does not match"):
        compiled(2.5, A, 3, np.zeros((16, 32), np.float32))
    taller = np.zeros((32, 64), np.float32)  # N is not one extent, and nothing asks for it
    compiled(2.5, A, 3, taller)
    np.testing.assert_array_equal(taller, np.concatenate([want, 0 * A]))
    assert "def kernel(" in pypto.ir.compile(Scaled.lower()).lowered.as_python()
    assert len(runtime.benchmark(compiled, [2.5, A, 3, out], rounds=2, warmup=1).samples) == 2


def test_workers(pypto: Any) -> None:
    runtime = importlib.import_module("pypto.runtime")
    compiled = pypto.ir.compile(Scaled)
    with runtime.ChipWorker(config=pl.RunConfig()) as worker:
        handle = worker.register(compiled)
        kept = worker.alloc_tensor((16, 64), np.float32, init=A)
        out = worker.alloc_tensor((16, 64), np.float32)
        handle(1.0, kept, 1, out)
        back = np.zeros_like(A)
        worker.copy_from(back.ctypes.data, out.data_ptr, out.nbytes)
        np.testing.assert_array_equal(back, A + 1)
        assert worker.register(compiled) is handle and worker.aicpu_dlopen_count == 1
        with pytest.raises(ValueError, match="not memory of this worker"):
            worker.copy_to(out.data_ptr, back.ctypes.data, out.nbytes + 1)
    with pytest.raises(RuntimeError, match="not registered"):
        handle(1.0, kept, 1, out)


@pl.program
class OfRanks:
    """Every run adds to a window of the next rank; its content is reported to every listener."""

    @pl.function(type=pl.FunctionType.InCore)
    def add(self, x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]], data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]], signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]):  # fmt: skip
        pld.tensor.put(data, 1 - pld.rank(pld.get_comm_ctx(data)), x, atomic=pl.AtomicType.Add)
        pld.tensor.barrier(signal)
        y[:, :] = data[:, :]

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def told(y: pl.Tensor[[2, 1, 64], pl.FP32]): ...  # noqa: N805

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[2, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, 64], pl.FP32]]):
        places, signals = pld.alloc_window_buffer(64 * 4), pld.alloc_window_buffer(8)
        for r in pl.range(2):
            data, signal = (
                pld.window(places, [1, 64], dtype=pl.FP32),
                pld.window(signals, [2, 1], dtype=pl.INT32),
            )
            self.add(x[r], y[r], data, signal, device=r)
        self.told(y)


def test_workers_of_several_ranks(pypto: Any) -> None:
    from pypto.runtime import DistributedWorker  # pyright: ignore[reportMissingImports]

    ranks = pld.DistributedConfig(device_ids=[0, 1])
    compiled = pypto.ir.compile(OfRanks, platform="a2a3sim", distributed_config=ranks)
    assert OfRanks.get_function("told").requires_runtime_binding
    x, y, seen = np.random.rand(2, 1, 64).astype(np.float32), np.zeros((2, 1, 64), np.float32), []
    calls = {"told": lambda args: seen.append(args[0].copy())}
    with compiled.prepare(persistent=True, reset_persistent_windows=False, callbacks=calls) as worker:
        kept = worker.alloc_stacked_tensor(x, worker_ids=[1, 0])
        for _ in range(2):
            worker(kept, y)
        assert worker._w._next_alloc_id == 1  # windows are made once, and keep their content
        worker.submit(compiled, kept, y).result()
        np.testing.assert_array_equal(seen, [x[::-1] * n for n in np.float32([1, 2, 3])])
        back = np.zeros_like(x)
        worker.copy_stacked_from(kept, back)
        np.testing.assert_array_equal(back, x)
        assert kept[1].shape == (1, 64) and kept.worker_ids == (1, 0) and len(worker._owned_tensors) == 2
        with pytest.raises(ValueError, match="0 to 1"):
            worker.alloc_stacked_tensor(x, worker_ids=[1, 2])
    assert not worker._owned_tensors
    with pytest.raises(RuntimeError, match="called after close"):
        worker.register(compiled)
    for wrong, options, words in (
        (ValueError, {}, r"\['told'\] have no body"),
        (ValueError, {"callbacks": {**calls, "others": print}}, "unknown sub-workers"),
        (TypeError, {"callbacks": {"told": 3}}, "expected a function as callback"),
    ):
        with pytest.raises(wrong, match=words):
            compiled.prepare(**options)
    with DistributedWorker([compiled, compiled.prepared({})], callbacks=calls) as several:
        with pytest.raises(TypeError, match="ambiguous"):
            several(x, y)
        several.run(compiled, x, y)  # with windows of its own
        np.testing.assert_array_equal(y, x[::-1])


def test_descriptions_of_arguments(pypto: Any) -> None:
    from pypto.runtime import ScalarSpec, TensorSpec  # pyright: ignore[reportMissingImports]

    for value, want in ((None, 0), (2.0, 2), (np.ones, 1), (A[:2, :2], A[:2, :2])):
        np.testing.assert_array_equal(
            TensorSpec("a", [2, 2], np.dtype("float32"), value).create_tensor(), want
        )
    with pytest.raises(ValueError, match="unknown ctype 'half'"):
        ScalarSpec("n", 1, "half")


def test_a_harness_of_somebody_else_is_left_alone(
    pypto: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "__init__.py").write_text("OWN = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.import_module("harness").OWN


def test_functions_say_what_they_are(pypto: Any) -> None:
    """Also one of a text that does not import the language."""
    text = """
@pl.function(type=pl.FunctionType.InCore)
def double(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
    return pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], out)
"""
    double = pl.parse(text)
    assert (double.name, double.params, len(double.return_types)) == ("double", ["x", "out"], 1)
    assert "def double(" in double.as_python()
    kinds = {"kernel": pl.FunctionType.InCore, "main": pl.FunctionType.Orchestration}
    assert {n: f.func_type for n, f in Scaled.functions.items()} == kinds
    assert {n: f.func_type for n, f in Scaled.lower().functions.items()} == kinds


@pl.program
class Pair:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[16, 64], pl.FP32],
        by: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        return pl.store(pl.mul(pl.load(a, [0, 0], [16, 64]), by), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def double(
        self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        return self.kernel(a, 2.0, out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def triple(
        self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        return self.kernel(a, 3.0, out)


def test_several_orchestrations(pypto: Any, tmp_path: Path) -> None:
    pair = pypto.ir.compile(Pair, output_dir=tmp_path)
    assert pair.orchestration_names == ["double", "triple"] and isinstance(pair, pypto.ir.CompiledProgram)
    np.testing.assert_array_equal(pair["double"](A), A * 2)
    np.testing.assert_array_equal(pair.triple(A), A * 3)
    assert pair["triple"].output_dir == tmp_path / "next_levels" / "triple"
    assert [p.name for p in (tmp_path / "next_levels/double/kernels").rglob("*.pto")] == ["kernel.pto"]
    with pytest.raises(TypeError, match="select one explicitly: double, triple"):
        pair(A)
    with pytest.raises(KeyError, match="expected one of double, triple"):
        _ = pair["half"]
