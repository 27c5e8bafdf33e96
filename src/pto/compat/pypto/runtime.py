"""Replacement of `pypto.runtime`: compile and run programs, from memory and from folders."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...language.programs import folder
from ...language.programs.callable import CallableProgram
from ...language.programs.config import RunConfig
from . import ir
from .distributed import DistributedRunHandle, DistributedWorker, _tensor_from_continuous  # noqa: F401
from .refused import missing, refuse
from .specs import ScalarSpec, TensorSpec
from .worker import ChipWorker, DeviceTensor, RegistrationHandle, StackedDeviceTensor, Worker

_SWIMLANE_FULL_LEVEL = _SWIMLANE_MAX_LEVEL = 4
_SWIMLANE_CLI_HELP = "records of tasks, 0 to 4."


@dataclass
class RunResult:
    """Result of a run: `passed` is True if its outputs have the expected values."""

    __test__ = False

    passed: bool
    test_name: str | None = None
    error: str | None = None
    execution_time: float | None = None
    profile: object = None

    def __str__(self) -> str:
        word = "PASS" if self.passed else "FAIL"
        named = f"{word}: {self.test_name}" if self.test_name else word
        why = f" - {self.error}" if self.error and not self.passed else ""
        return named + why + (f" ({self.execution_time:.2f}s)" if self.execution_time else "")


@dataclass(frozen=True)
class _DfxOpts:
    """Records that a run writes."""

    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False

    def any(self) -> bool:
        return any(vars(self).values())

    @classmethod
    def from_run_config(cls, config: RunConfig) -> _DfxOpts:
        return cls(**{name: getattr(config, name) for name in cls.__dataclass_fields__})


def run(program: object, *tensors: object, config: RunConfig | None = None) -> CallableProgram:
    """Compile a program, and run it if tensors are given. The returned program can be called again."""
    config = config or RunConfig()
    made = ir.compile(
        program, config.save_kernels_dir, dump_passes=config.dump_passes, platform=config.platform
    )
    if tensors and not config.codegen_only:
        made(*tensors, config=config)
    return made


def compile_program(program: Any, work_dir: str | os.PathLike[str], **options: Any) -> None:
    """Write a program to a folder."""
    ir.compile(program, work_dir, **options)


def execute_compiled(
    work_dir: str | os.PathLike[str],
    args: Sequence[object],
    *,
    platform: str = "a2a3sim",
    device_id: int = 0,
    dfx: _DfxOpts | None = None,
    level: int = 2,
    aicpu_thread_num: int | None = None,
    analyze_auto_scopes_for_deps: bool = False,
) -> None:
    """Run a program from a folder. If this process has compiled it and the folder is unchanged, the program
    in memory runs."""
    config = RunConfig(platform=platform, **(vars(dfx) if dfx is not None else {}))
    program: CallableProgram = folder.live(Path(work_dir)) or folder.load(work_dir)
    program(*args, config=config)


def configure_log(level: object = None, *_: object, **__: object) -> None:
    """Accept a log level without effect; PTO_LOG_LEVEL sets the level of the task runtime."""
    _log_level[0] = level


_log_level: list[object] = ["warn"]


def log_level() -> object:
    return _log_level[0]


current_level = log_level


def ensure_pto_isa_root(*_: object, **__: object) -> str:
    """Return the folder of this package's headers instead of those of pto-isa."""
    return str(pto_isa_include_dir().parent)


def pto_isa_include_dir() -> Path:
    from ...engine.cpp import compiler

    return compiler.include_dir()


def rebuild_kernel_cpp_from_pto(work_dir: object, **_: object) -> list[Path]:
    """Do nothing: folders contain `.pto`, and changed files are compiled when they run."""
    return []


def invalidate_binary_cache(work_dir: object, **_: object) -> None:
    """Do nothing: the cache is keyed by content."""


# ---- time ----


@dataclass
class BenchmarkStats:
    """Wall time of runs on the simulator, in microseconds, which differs from the time of a device."""

    device_wall_us: list[float] = field(default_factory=list)
    host_wall_us: list[float] = field(default_factory=list)
    rounds: int = 0
    warmup: int = 0
    invocations: list[object] = field(default_factory=list)
    rounds_dispatches: list[object] = field(default_factory=list)
    fallback_flattened: bool = False
    unstable_dispatch_slots: bool = False

    @property
    def samples(self) -> list[float]:
        return self.device_wall_us

    @property
    def all_zero_device(self) -> bool:
        return bool(self.device_wall_us) and not any(self.device_wall_us)

    def per_round(self, metric: str = "device") -> list[float]:
        return list(self.host_wall_us if metric == "host" else self.device_wall_us)

    def per_rank(self, metric: str = "device") -> dict[int, list[float]]:
        return {0: self.per_round(metric)}

    def _over(self, function: Callable[[list[float]], float]) -> float:
        return float(function(self.device_wall_us)) if self.device_wall_us else 0.0

    device_us_min = device_wall_us_min = property(lambda self: self._over(min))
    device_us_max = device_wall_us_max = property(lambda self: self._over(max))
    device_us_mean = device_wall_us_mean = property(lambda self: self._over(statistics.fmean))
    device_us_median = device_wall_us_median = property(lambda self: self._over(statistics.median))
    device_us_stdev = device_wall_us_stdev = property(
        lambda self: self._over(statistics.stdev) if len(self.device_wall_us) > 1 else 0.0
    )

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds on the simulator, in us: min={self.device_us_min:.1f} "
            f"median={self.device_us_median:.1f} mean={self.device_us_mean:.1f} max={self.device_us_max:.1f}"
        )


def benchmark(
    compiled: CallableProgram, args: Sequence[object], *, rounds: int = 100, warmup: int = 3, **_: object
) -> BenchmarkStats:
    """Measure the duration of runs on this host."""
    if rounds < 1 or warmup < 0:
        raise ValueError(f"expected rounds from 1 and warmup from 0, got {rounds} and {warmup}")
    if not isinstance(compiled, CallableProgram):
        raise refuse(f"benchmark of a {type(compiled).__name__}", "give the result of f.compile(...)")
    stats = BenchmarkStats(rounds=rounds, warmup=warmup)
    for n in range(warmup + rounds):
        begin = time.perf_counter()
        compiled(*args)
        if n >= warmup:
            stats.device_wall_us.append((time.perf_counter() - begin) * 1e6)
    stats.host_wall_us = list(stats.device_wall_us)
    return stats


def __getattr__(name: str) -> Any:
    return missing("pypto.runtime", name)


__all__ = [
    "BenchmarkStats",
    "ChipWorker",
    "DeviceTensor",
    "DistributedRunHandle",
    "DistributedWorker",
    "RegistrationHandle",
    "RunConfig",
    "RunResult",
    "ScalarSpec",
    "StackedDeviceTensor",
    "TensorSpec",
    "Worker",
    "benchmark",
    "compile_program",
    "configure_log",
    "ensure_pto_isa_root",
    "execute_compiled",
    "log_level",
    "pto_isa_include_dir",
    "run",
]
