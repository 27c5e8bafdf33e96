"""What stands for `pypto.backend`: the machine that is simulated."""

from __future__ import annotations

from typing import Any

from ...language.enums import BackendType
from .refused import missing

_chosen: list[BackendType | None] = [None]


class PartialCodegenError(RuntimeError):
    """Never raised: a program is compiled whole, or a diagnostic says why not."""


def set_backend_type(backend: BackendType) -> None:
    """What `ir.compile` means where it is not told."""
    _chosen[0] = BackendType(backend)


def get_backend_type() -> BackendType:
    return _chosen[0] or BackendType.Ascend910B


def is_backend_configured() -> bool:
    return _chosen[0] is not None


def reset_for_testing() -> None:
    _chosen[0] = None


def platform_of(backend: BackendType | None) -> str:
    """The simulator of a machine."""
    return "a5sim" if (backend or get_backend_type()) is BackendType.Ascend950 else "a2a3sim"


def __getattr__(name: str) -> Any:
    return missing("pypto.backend", name)
