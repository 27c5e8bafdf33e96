"""`RunConfig`: how a call is compiled and run, in the words of the field's configurations."""

from __future__ import annotations

from typing import Any

from ..isa.profiles import ALIASES, PROFILES, Profile
from .arguments import refuse

#: Platforms: devices and their simulators are the same to us.
_PLATFORMS = {"a2a3sim": "a2a3", "a2a3": "a2a3", "a5sim": "a5", "a5": "a5"}

_DEFAULTS: dict[str, Any] = {
    "platform": "a2a3sim", "device_id": 0, "rtol": 1e-5, "atol": 1e-5, "strategy": None, "backend_type": None,
    "dump_passes": False, "save_kernels": False, "save_kernels_dir": None, "codegen_only": False,
    "enable_chip_swimlane": 0, "enable_dump_args": 0, "enable_pmu": 0, "enable_dep_gen": False,
    "enable_scope_stats": False, "compile_profiling": False, "golden_data_dir": None, "aicpu_thread_num": None,
    "ring_task_window": None, "ring_heap": None, "ring_dep_pool": None, "memory_planner": None,
    "distributed_config": None, "dump_ptoas_passes": False, "diagnostic_phase": None,
    "disabled_diagnostics": None, "analyze_auto_scopes_for_deps": False,
}  # fmt: skip
_OLD = {"enable_l2_swimlane": "enable_chip_swimlane"}


class RunConfig:
    """`platform` says which machine is simulated: a2a3sim or a5sim; a device means its simulator."""

    def __init__(self, **given: Any) -> None:
        given = {_OLD.get(k, k): v for k, v in given.items()}
        unknown = sorted(set(given) - set(_DEFAULTS))
        if unknown:
            from ..diag import did_you_mean

            raise TypeError(
                f"RunConfig has no '{unknown[0]}'; {did_you_mean(unknown[0], _DEFAULTS)}".rstrip("; ")
            )
        self.__dict__.update({**_DEFAULTS, **given})
        if self.platform not in (*_PLATFORMS, *ALIASES):
            raise refuse(f"no platform {self.platform!r}", expected=", ".join((*_PLATFORMS, *PROFILES)))

    platform: str

    def __repr__(self) -> str:
        changed = {k: v for k, v in self.__dict__.items() if v != _DEFAULTS.get(k)}
        return f"RunConfig({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


def profile_of(config: Any = None, target: str | None = None) -> Profile:
    """The machine that a configuration, or a target by itself, names."""
    wanted = target or getattr(config, "platform", "a2a3")
    wanted = _PLATFORMS.get(wanted, wanted)
    if wanted not in ALIASES:
        raise refuse(f"no target {wanted!r}", expected=", ".join(ALIASES))
    return PROFILES[ALIASES[wanted]]
