"""What stands for `pypto.language.distributed` (`pld`): the names, until programs of several ranks run here.

A file that uses them can be imported, and what it holds for one device runs. A function that uses them is
refused when it is compiled, in its own lines.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from ...language.enums import AtomicType
from ...language.operators.core import Operator
from ...language.problems import UNSUPPORTED, fail
from ...language.types import Tensor
from .refused import refuse

_WHY = "programs of several ranks do not run here yet"
_HELP = "run what it does on one rank"


class NotifyOp(enum.Enum):
    Set = 0
    AtomicAdd = 1


class WaitCmp(enum.Enum):
    Eq = 0
    Ge = 1


class ReduceOp(enum.Enum):
    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


class DistributedTensor(Tensor):
    """A window of every rank, as the local rank sees it."""


class CommCtx:
    """Who is who among ranks."""


CommCtxType = CommCtx


def _word(name: str) -> Operator:
    """A function of several ranks: an operator that no program may use."""

    def refused(build: Any, *args: Any, **kwargs: Any) -> Any:
        fail(UNSUPPORTED, f"pld.{name}: {_WHY}", build.place, help=_HELP)

    return Operator(name, refused)


class _Words:
    """`pld.tensor`, `pld.tile` and `pld.system`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Operator:
        if name.startswith("_"):
            raise AttributeError(name)
        return _word(f"{self._name}.{name}")


alloc_window_buffer = _word("alloc_window_buffer")
get_comm_ctx = _word("get_comm_ctx")
nranks = _word("nranks")
rank = _word("rank")
remote_load = _word("remote_load")
remote_store = _word("remote_store")
window = _word("window")
world_size = _word("world_size")
system, tensor, tile = _Words("system"), _Words("tensor"), _Words("tile")


@dataclass
class DistributedConfig:
    """Which devices take part."""

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = "tensormap_and_ringbuffer"
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        if not self.device_ids or len(set(self.device_ids)) != len(self.device_ids):
            raise ValueError(f"device_ids names each device once, and at least one; got {self.device_ids}")


class DistributedCompiledProgram:
    """A program of several ranks; nothing is one yet."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise refuse("DistributedCompiledProgram", _HELP)

    @classmethod
    def from_dir(cls, *_: Any, **__: Any) -> Any:
        raise refuse("DistributedCompiledProgram.from_dir", _HELP)


class DistributedWorker(DistributedCompiledProgram):
    """Who runs one."""


__all__ = [
    "AtomicType",
    "CommCtx",
    "CommCtxType",
    "DistributedTensor",
    "NotifyOp",
    "ReduceOp",
    "WaitCmp",
    "alloc_window_buffer",
    "get_comm_ctx",
    "nranks",
    "rank",
    "remote_load",
    "remote_store",
    "system",
    "tensor",
    "tile",
    "window",
    "world_size",
]
