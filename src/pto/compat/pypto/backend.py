"""Replacement of `pypto.backend`: the simulated machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from ...language.enums import BackendType
from ...runtime.options import MAX_BLOCK_DIM
from .refused import missing

_chosen: list[BackendType | None] = [None]


class CoreType(Enum):
    CUBE = 0
    VECTOR = 1


class PartialCodegenError(RuntimeError):
    """Never raised: a program is compiled completely, or a diagnostic gives the reason."""


def set_backend_type(backend: BackendType) -> None:
    """Set the default backend of `ir.compile`."""
    _chosen[0] = BackendType(backend)


def get_backend_type() -> BackendType:
    return _chosen[0] or BackendType.Ascend910B


def is_backend_configured() -> bool:
    return _chosen[0] is not None


def reset_for_testing() -> None:
    _chosen[0] = None


def platform_of(backend: BackendType | None) -> str:
    """Return the simulator of a machine."""
    return "a5sim" if (backend or get_backend_type()) is BackendType.Ascend950 else "a2a3sim"


@dataclass(frozen=True)
class Core:
    core_type: CoreType


class Counts:
    """Number of each part of a component of a machine."""

    def __init__(self, word: str, parts: dict[object, int]) -> None:
        setattr(self, f"{word}_counts", parts)


class Backend910B:
    """A2/A3 as pypto describes it: clusters of a cube core and two vector cores."""

    def __init__(self) -> None:
        cluster = Counts("core", {Core(CoreType.CUBE): 1, Core(CoreType.VECTOR): 2})
        self.soc = Counts("die", {Counts("cluster", {cluster: MAX_BLOCK_DIM}): 1})

    @staticmethod
    @cache
    def instance() -> Backend910B:
        return Backend910B()


def __getattr__(name: str) -> Any:
    return missing("pypto.backend", name)
