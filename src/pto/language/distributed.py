"""Programs of several ranks: `import pto.language.distributed as pld`.

A function of the host (`@pl.jit.host`) makes windows and calls a function per rank, `device=r`. On the cores,
`pld.DistributedTensor` parameters are windows of the rank itself; windows of other ranks are accessed by
remote loads and stores, puts and gets, signals and collectives. All ranks run in one graph of tasks, in this
process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from .operators import OPERATORS, Namespace
from .types import Annotation, CommCtx, Tensor

CommCtxType = CommCtx
tensor, tile, system = (Namespace(f"pld.{level}") for level in ("tensor", "tile", "system"))


class DistributedTensor(Tensor):
    """A window of every rank, seen from this rank."""

    @classmethod
    def _annotation(cls, items: tuple[Any, ...]) -> Annotation:
        return super()._annotation(items).replace(distributed=True)


@dataclass
class DistributedConfig:
    """The devices of a program, one per rank."""

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: Any = None
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        if not self.device_ids or len(set(self.device_ids)) != len(self.device_ids):
            raise ValueError(f"expected at least one device in device_ids, each once, got {self.device_ids}")


def __getattr__(name: str) -> Any:
    if f"pld.{name}" in OPERATORS:
        return OPERATORS[f"pld.{name}"]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = [
    "AtomicType",
    "CommCtx",
    "CommCtxType",
    "DistributedConfig",
    "DistributedTensor",
    "NotifyOp",
    "ReduceOp",
    "WaitCmp",
    "system",
    "tensor",
    "tile",
]
