"""`RunConfig`: how a call is compiled and run, in the words of the field's configurations."""

from __future__ import annotations

import warnings
from dataclasses import InitVar, dataclass
from typing import Any

from ..engine import journal
from ..isa.profiles import ALIASES, PROFILES, Profile
from .arguments import refuse
from .enums import BackendType

#: Platforms: devices and their simulators are the same to us.
_PLATFORMS = {"a2a3sim": "a2a3", "a2a3": "a2a3", "a5sim": "a5", "a5": "a5"}
#: Those that are devices.
DEVICES = ("a2a3", "a5")


@dataclass
class RunConfig:
    """`platform` says which machine is simulated: a2a3sim or a5sim; a device means its simulator."""

    platform: str = "a2a3sim"
    device_id: int = 0
    rtol: float = 1e-5
    atol: float = 1e-5
    strategy: Any = None
    backend_type: Any = None
    dump_passes: bool = False
    save_kernels: bool = False
    save_kernels_dir: Any = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    compile_profiling: bool = False
    golden_data_dir: Any = None
    aicpu_thread_num: int | None = None
    ring_task_window: Any = None
    ring_heap: Any = None
    ring_dep_pool: Any = None
    memory_planner: Any = None
    distributed_config: Any = None
    dump_ptoas_passes: bool = False
    diagnostic_phase: Any = None
    disabled_diagnostics: Any = None
    analyze_auto_scopes_for_deps: bool = False
    enable_pypto_l0c_double_buffer: Any = None
    enable_l2_swimlane: InitVar[Any] = None  # as it was called before

    def __post_init__(self, enable_l2_swimlane: Any) -> None:
        if self.platform not in (*_PLATFORMS, *ALIASES):
            raise refuse(
                f"no platform {self.platform!r}", expected=", ".join(dict.fromkeys((*_PLATFORMS, *PROFILES)))
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
        """Whether a run leaves records behind."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args
            or self.enable_pmu
            or self.enable_dep_gen
            or self.enable_scope_stats
        )


def platform_of(config: Any) -> str:
    """The platform that a configuration names."""
    return getattr(config, "platform", "") or ""


def world_of(config: Any = None) -> int:
    """How many ranks a configuration names."""
    return len(getattr(getattr(config, "distributed_config", None), "device_ids", (0,)))


def profile_of(config: Any = None, target: str | None = None) -> Profile:
    """The machine that a configuration, or a target by itself, names."""
    wanted = target or getattr(config, "platform", "a2a3")
    wanted = _PLATFORMS.get(wanted, wanted)
    if wanted not in ALIASES:
        raise refuse(f"no target {wanted!r}", expected=", ".join(ALIASES))
    return PROFILES[ALIASES[wanted]]
