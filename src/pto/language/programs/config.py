"""`RunConfig`: the options of compilation and runs, with pypto's field names."""

from __future__ import annotations

import os
import warnings
from dataclasses import InitVar, dataclass, field

from ...engine import journal
from ...isa.profiles import ALIASES, PROFILES, Profile
from ..enums import BackendType
from .arguments import refuse

#: Platform -> machine to simulate. Runs on devices are simulated, too.
_PLATFORMS = {"a2a3sim": "a2a3", "a2a3": "a2a3", "a5sim": "a5", "a5": "a5"}
#: Platforms that are devices.
DEVICES = ("a2a3", "a5")


@dataclass
class RunConfig:
    """Options of a call. `platform` is the simulated machine, a2a3sim or a5sim; a device selects its
    simulator."""

    platform: str = "a2a3sim"
    device_id: int = 0
    rtol: float = 1e-5
    atol: float = 1e-5
    strategy: object = None
    backend_type: BackendType | None = None
    dump_passes: bool = False
    save_kernels: bool = False
    save_kernels_dir: str | os.PathLike[str] | None = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    compile_profiling: bool = False
    golden_data_dir: object = None
    aicpu_thread_num: int | None = None
    ring_task_window: object = None
    ring_heap: object = None
    ring_dep_pool: object = None
    memory_planner: object = None
    distributed_config: DistributedConfig | None = None
    dump_ptoas_passes: bool = False
    diagnostic_phase: object = None
    disabled_diagnostics: object = None
    analyze_auto_scopes_for_deps: bool = False
    enable_pypto_l0c_double_buffer: object = None
    enable_l2_swimlane: InitVar[int | None] = None  # the former name

    def __post_init__(self, enable_l2_swimlane: int | None) -> None:
        if self.platform not in (*_PLATFORMS, *ALIASES):
            raise refuse(
                f"unknown platform {self.platform!r}",
                expected=", ".join(dict.fromkeys((*_PLATFORMS, *PROFILES))),
            )
        if enable_l2_swimlane is not None:
            warnings.warn("enable_l2_swimlane is called enable_chip_swimlane", DeprecationWarning, 3)
            self.enable_chip_swimlane = enable_l2_swimlane
        a5 = self.platform.startswith("a5")
        self.backend_type = BackendType.Ascend950 if a5 else BackendType.Ascend910B
        self.enable_chip_swimlane = 4 if self.enable_chip_swimlane is True else int(self.enable_chip_swimlane)
        self.save_kernels = self.save_kernels or self.any_dfx_enabled()
        if self.platform in DEVICES:
            journal.note("device", self.platform)

    def any_dfx_enabled(self) -> bool:
        """Return True if a run writes records."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args
            or self.enable_pmu
            or self.enable_dep_gen
            or self.enable_scope_stats
        )


def platform_of(config: object) -> str:
    """Return the platform that a configuration names."""
    return getattr(config, "platform", "") or ""


def world_of(config: object = None) -> int:
    """Return the number of ranks of a configuration."""
    return len(getattr(getattr(config, "distributed_config", None), "device_ids", (0,)))


def profile_of(config: object = None, target: str | None = None) -> Profile:
    """Return the profile of the machine that a configuration or target names."""
    wanted = target or getattr(config, "platform", "a2a3")
    wanted = _PLATFORMS.get(wanted, wanted)
    if wanted not in ALIASES:
        raise refuse(f"unknown target {wanted!r}", expected=", ".join(ALIASES))
    return PROFILES[ALIASES[wanted]]


@dataclass
class DistributedConfig:
    """The devices of a program, one per rank."""

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: object = None
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        if not self.device_ids or len(set(self.device_ids)) != len(self.device_ids):
            raise ValueError(f"expected at least one device in device_ids, each once, got {self.device_ids}")
