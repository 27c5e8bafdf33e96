"""Replacement of the harness of public tests (`harness.core.*`): cases, their tensors, and their runner.

    class TestAdd(PTOTestCase):
        def get_name(self): return "add"
        def define_tensors(self): return [TensorSpec("a", [16, 64], DataType.FP32, torch.randn), ...]
        def get_program(self): return AddProgram
        def compute_expected(self, tensors, params=None): tensors["c"][:] = tensors["a"] + tensors["b"]

    def test_add(test_runner): assert test_runner.run(TestAdd()).passed

The tests' own conftest.py has the fixtures; without one, `plugin.py` has them.
"""

from __future__ import annotations

import importlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from ...diag import DiagnosticError, render
from ...language.programs.config import RunConfig
from .backend import BackendType
from .ir import MemoryPlanner, OptimizationStrategy
from .runtime import RunResult
from .specs import ScalarSpec, made

SIM_PLATFORM_IDS = ("a2a3sim", "a5sim")
ONBOARD_PLATFORM_IDS = ("a2a3", "a5")
ALL_PLATFORM_IDS = (*SIM_PLATFORM_IDS, *ONBOARD_PLATFORM_IDS)
PLATFORMS = [pytest.param(p, id=p) for p in ALL_PLATFORM_IDS]
SIM_PLATFORMS = [pytest.param(p, id=p) for p in SIM_PLATFORM_IDS]
ONBOARD_PLATFORMS = [pytest.param(p, id=p) for p in ONBOARD_PLATFORM_IDS]


def platform_to_backend(platform: str) -> BackendType:
    if platform not in ALL_PLATFORM_IDS:
        raise ValueError(f"unknown platform '{platform}', expected one of {', '.join(ALL_PLATFORM_IDS)}")
    return BackendType.Ascend950 if platform.startswith("a5") else BackendType.Ascend910B


#: Element types with another name in torch, or carried in a type with the same bits.
_CARRIED = {
    "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "uint32": "int32", "uint16": "int16",
    "fp8e4m3fn": "float8_e4m3fn", "fp8e8m0": "float8_e8m0fnu", "fp4": "float4_e2m1fn_x2",
}  # fmt: skip


class DataType(Enum):
    """Element types of the tensors of a case."""

    BF16 = "bf16"
    FP32 = "fp32"
    FP16 = "fp16"
    FP8E4M3FN = "fp8e4m3fn"
    FP8E8M0 = "fp8e8m0"
    FP4 = "fp4"
    INT32 = "int32"
    UINT32 = "uint32"
    INT16 = "int16"
    UINT16 = "uint16"
    INT8 = "int8"
    UINT8 = "uint8"
    INT64 = "int64"
    BOOL = "bool"

    @property
    def torch_dtype(self) -> Any:
        """The torch element type."""
        name = _CARRIED.get(self.value, self.value)
        found = getattr(_library(), name, None)
        if found is None:
            raise ValueError(f"unknown element type of torch: {name}")
        return found


def _library() -> Any:
    """Import torch. The real pypto imports it, so some tests do not import it themselves."""
    return importlib.import_module("torch")


@dataclass
class TensorSpec:
    """A tensor of a case. `init_value` is None (zeros), a number, an array, or a function that makes an
    array."""

    name: str
    shape: list[int]
    dtype: DataType
    init_value: object = None
    is_output: bool = False


class PTOTestCase(ABC):
    """A program, its tensors, and their expected values."""

    __test__ = False

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        platform: str | None = None,
        backend_type: BackendType | None = None,
        strategy: object = None,
        memory_planner: MemoryPlanner | None = None,
        enable_pypto_l0c_double_buffer: bool | None = None,
    ) -> None:
        self.config = config or RunConfig()
        self._override_platform = platform
        self._override_backend = backend_type
        self._override_strategy = strategy
        self._override_memory_planner = memory_planner
        self._override_enable_pypto_l0c_double_buffer = enable_pypto_l0c_double_buffer
        self._tensor_specs: list[TensorSpec] | None = None
        self._scalar_specs: list[ScalarSpec] | None = None

    @abstractmethod
    def get_name(self) -> str: ...

    @abstractmethod
    def define_tensors(self) -> list[TensorSpec]: ...

    @abstractmethod
    def get_program(self) -> Any: ...

    @abstractmethod
    def compute_expected(
        self, tensors: Mapping[str, Any], params: Mapping[str, object] | None = None
    ) -> None: ...

    def define_scalars(self) -> list[ScalarSpec]:
        return []

    def get_strategy(self) -> object:
        return self._override_strategy or OptimizationStrategy.Default

    def get_memory_planner(self) -> MemoryPlanner | None:
        return self._override_memory_planner

    def get_enable_pypto_l0c_double_buffer(self) -> bool | None:
        return self._override_enable_pypto_l0c_double_buffer

    def get_platform(self) -> str | None:
        return self._override_platform

    def get_backend_type(self) -> BackendType:
        if self._override_platform is not None:
            return platform_to_backend(self._override_platform)
        return self._override_backend or BackendType.Ascend910B

    @property
    def tensor_specs(self) -> list[TensorSpec]:
        if self._tensor_specs is None:
            self._tensor_specs = self.define_tensors()
        return self._tensor_specs

    @property
    def scalar_specs(self) -> list[ScalarSpec]:
        if self._scalar_specs is None:
            self._scalar_specs = self.define_scalars()
        return self._scalar_specs


class TestRunner:
    """Runner of cases: compile, run, compare. `config` has the options of the session."""

    __test__ = False

    def __init__(self, config: RunConfig | None = None, *_: object, **__: object) -> None:
        self.config = config or RunConfig()

    def run(self, case: PTOTestCase) -> RunResult:
        begin = time.perf_counter()
        try:
            error = self._run(case)
        except DiagnosticError as e:
            error = render(e.diagnostics)
        return RunResult(error is None, case.get_name(), error, time.perf_counter() - begin)

    def _platform(self, case: PTOTestCase) -> str:
        said = case.get_platform()
        if said:
            return said
        if case.get_backend_type() is BackendType.Ascend950:
            return "a5sim"
        return self.config.platform

    def _run(self, case: PTOTestCase) -> str | None:
        """Run a case, and return the error of the result, or None."""
        config = RunConfig(platform=self._platform(case))
        compiled = case.get_program().compile(config=config)
        if self.config.codegen_only or case.config.codegen_only:
            compiled.lowered.verify()
            return None
        library = _library()
        specs = case.tensor_specs
        tensors = {
            s.name: _contiguous(made(s.shape, s.dtype.torch_dtype, s.init_value, library)) for s in specs
        }
        params = {s.name: s.value for s in case.scalar_specs}
        expected = {name: t.clone() for name, t in tensors.items()}
        values = {**tensors, **params}
        names = [n for n in compiled.param_names if n in values]
        ordered = [values[n] for n in names] if len(names) == len(values) else list(values.values())
        compiled(*ordered, config=config)
        case.compute_expected(expected, params)
        for s in specs:
            if s.is_output:
                wrong = _unlike(library, tensors[s.name], expected[s.name], case.config)
                if wrong:
                    return f"'{s.name}': {wrong}"
        return None


def _contiguous(t: Any) -> Any:
    return t.contiguous() if hasattr(t, "contiguous") else t


def _unlike(library: Any, got: Any, want: Any, config: RunConfig) -> str:
    """Return the difference of two tensors beyond the tolerance of a case, or an empty text. An expected NaN
    matches any value."""
    if got.is_floating_point():
        got, want = got.to(library.float64), want.to(library.float64)
    bad = ~(library.isclose(got, want, rtol=config.rtol, atol=config.atol) | library.isnan(want))
    count = int(bad.sum())
    if not count:
        return ""
    where = [int(i) for i in bad.nonzero()[0]]
    return (
        f"{count} of {bad.numel()} elements differ by more than rtol={config.rtol}, atol={config.atol}; "
        f"at {where}: expected {want[bad][0].item()}, got {got[bad][0].item()}"
    )


# ---- names that a conftest.py of the tests imports ----


def is_hardware_available() -> bool:
    """Return True, because devices are simulated."""
    return True


def get_simpler_root() -> Path:
    """Return a folder that does not exist, because simpler is not needed."""
    return Path(__file__).parent / "none"


get_simpler_python_path = get_simpler_scripts_path = get_simpler_root
_last_device: dict[str, Any] = {"value": None}


def _cache_key(case: PTOTestCase, resolved_platform: str | None = None, **_: object) -> str:
    return f"{case.get_name()}@{resolved_platform or case.get_platform()}@{case.get_memory_planner()}"


def start_pipeline(*_: object, **__: object) -> None:
    """Do nothing: cases are compiled when they run."""


def shutdown_pipeline() -> None:
    """Do nothing, because cases have no pipeline."""


def configure_inline_task_submit(*_: object, **__: object) -> None:
    """Do nothing, because devices have no queue."""


def execution_summary_lines() -> list[str]:
    return []


__all__ = [
    "ALL_PLATFORM_IDS",
    "ONBOARD_PLATFORMS",
    "ONBOARD_PLATFORM_IDS",
    "PLATFORMS",
    "SIM_PLATFORMS",
    "SIM_PLATFORM_IDS",
    "DataType",
    "PTOTestCase",
    "RunConfig",
    "RunResult",
    "ScalarSpec",
    "TensorSpec",
    "TestRunner",
    "platform_to_backend",
]
