"""Programs of several ranks: `import pto.language.distributed as pld`.

A function of the host (`@pl.jit.host`) makes windows and gives each rank its work, `device=r`; on the cores,
`pld.DistributedTensor` parameters are windows of this rank, and those of others are reached with remote loads
and stores, puts and gets, signals and collectives. All ranks run in one graph of tasks, in this process.
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
    """A window of every rank, as this rank sees it."""

    @classmethod
    def _annotation(cls, items: tuple[Any, ...]) -> Annotation:
        return super()._annotation(items).replace(distributed=True)


@dataclass
class DistributedConfig:
    """Which devices take part: as many ranks as there are."""

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: Any = None
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        if not self.device_ids or len(set(self.device_ids)) != len(self.device_ids):
            raise ValueError(f"device_ids names each device once, and at least one; got {self.device_ids}")


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
