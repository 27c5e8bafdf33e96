"""Programs of several ranks: `import pto.language.distributed as pld`.

A function of the host (`@pl.jit.host`) makes windows and calls a function per rank, `device=r`. On the cores,
`pld.DistributedTensor` parameters are windows of the rank itself; windows of other ranks are accessed by
remote loads and stores, puts and gets, signals and collectives. All ranks run in one graph of tasks, in this
process.
"""

from __future__ import annotations

from typing import Any

from .enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from .operators import OPERATORS, Namespace
from .programs.config import DistributedConfig
from .types import Annotation, CommCtx, Tensor

CommCtxType = CommCtx
tensor, tile, system = (Namespace(f"pld.{level}") for level in ("tensor", "tile", "system"))


class DistributedTensor(Tensor):
    """A window of every rank, seen from this rank."""

    @classmethod
    def _annotation(cls, items: tuple[Any, ...]) -> Annotation:
        return super()._annotation(items).replace(distributed=True)


def __getattr__(name: str) -> Any:
    if f"pld.{name}" in OPERATORS:
        return OPERATORS[f"pld.{name}"]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    """List the names that programs use."""
    own = (n.removeprefix("pld.") for n in OPERATORS if n.startswith("pld.") and n.count(".") == 1)
    return sorted({*__all__, *own})


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
