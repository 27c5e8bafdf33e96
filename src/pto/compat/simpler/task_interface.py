"""Replacement of `simpler.task_interface`: arguments, configurations, callables, domains."""

from __future__ import annotations

import ctypes
import enum
import importlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .buffers import AccessMode, AddressSpace, BackendKind, Buffer, Tensor, host_range
from .callables import ChipCallable, CoreCallable
from .directions import ArgDirection
from .dtypes import DataType, dtype_of, get_element_size
from .refused import refuse

_WORD = (1 << 64) - 1


class TensorArgType(enum.Enum):
    """Use of a tensor by a task, which determines its dependencies."""

    INPUT = 0
    OUTPUT = 1
    INOUT = 2
    OUTPUT_EXISTING = 3
    NO_DEP = 4

    @property
    def reads(self) -> bool:
        return self in (TensorArgType.INPUT, TensorArgType.INOUT)

    @property
    def writes(self) -> bool:
        return self in (TensorArgType.OUTPUT, TensorArgType.INOUT, TensorArgType.OUTPUT_EXISTING)


class ChipTensor(Tensor):
    """A tensor by its address."""

    @staticmethod
    def make(
        data: int, shapes: Iterable[int], dtype: DataType, child_memory: bool = False, **_: object
    ) -> Tensor:
        shapes = tuple(int(n) for n in shapes)
        kind = BackendKind.DEVICE_MALLOC if child_memory else BackendKind.FORK_SHM
        size = dtype.nbytes
        for n in shapes:
            size *= n
        return Tensor(Buffer(int(data), size, None, kind), 0, shapes, dtype)


def as_tensor(value: Any) -> Tensor:
    """Return an argument as a Tensor: a Tensor unchanged, or a view of the host memory of an array."""
    if isinstance(value, Tensor):
        return value
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        raise TypeError(f"expected a Tensor or an array, got {type(value).__name__}")
    try:
        dtype = dtype_of(value.dtype)
    except KeyError:
        raise ValueError(f"unknown element type {value.dtype}") from None
    base, nbytes, owner = host_range(value, "add_tensor")
    shape = tuple(int(n) for n in value.shape) or (1,)
    return Tensor(Buffer(base, max(nbytes, 1), owner, BackendKind.FORK_SHM), 0, shape, dtype)


class TaskArgs:
    """The arguments of a task: tensors, each with its use, then scalars."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.tags: list[TensorArgType] = []
        self.scalars: list[int] = []

    def add_tensor(self, tensor: object, tag: TensorArgType = TensorArgType.INPUT) -> None:
        if self.scalars:
            raise ValueError("cannot add a tensor after a scalar: call add_tensor before add_scalar")
        self.tensors.append(as_tensor(tensor))
        self.tags.append(TensorArgType(tag))

    def add_scalar(self, value: object) -> None:
        self.scalars.append(scalar_to_uint64(value))

    def tensor_count(self) -> int:
        return len(self.tensors)

    def scalar_count(self) -> int:
        return len(self.scalars)

    def tensor(self, i: int) -> Tensor:
        return self.tensors[i]

    def tag(self, i: int) -> TensorArgType:
        return self.tags[i]

    def scalar(self, i: int) -> int:
        return self.scalars[i]

    def clear(self) -> None:
        self.__init__()

    def __len__(self) -> int:
        return len(self.tensors) + len(self.scalars)


ChipStorageTaskArgs = TaskArgs


def scalar_to_uint64(value: Any) -> int:
    """Return the bits of a number: 32 bits of a float, 64 bits of a double."""
    if isinstance(value, ctypes.c_float):
        return struct.unpack("<I", struct.pack("<f", value.value))[0]
    if isinstance(value, ctypes.c_double):
        return struct.unpack("<Q", struct.pack("<d", value.value))[0]
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    if isinstance(value, float):
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if hasattr(value, "__index__"):
        return int(value.__index__()) & _WORD
    raise TypeError(f"expected a number as scalar, got {type(value).__name__}")


#: Number of rings of a device.
RINGS = 4


@dataclass
class RuntimeEnv:
    """Sizes of rings; 0 selects the default. A device has one ring for each of the first depths of scopes. A
    list has the size of each ring, and a number is the size of every ring. The simulator has one ring of the
    total size."""

    ring_task_window: object = 0
    ring_heap: object = 0
    ring_dep_pool: object = 0

    def sizes(self) -> dict[str, int]:
        found = {}
        for name, option in (
            ("ring_task_window", "task_window"),
            ("ring_heap", "heap"),
            ("ring_dep_pool", "dep_pool"),
        ):
            given = getattr(self, name)
            each = list(map(int, given)) if isinstance(given, list | tuple) else [int(given or 0)] * RINGS
            size = sum(each) if all(each) else 0
            if size and option == "task_window":
                size = 1 << (size - 1).bit_length()
            if size:
                found[option] = size
        return found


@dataclass
class CallConfig:
    """Options of a run. Records are not written here, but by `pto runtime run`."""

    aicpu_thread_num: int = 0
    block_dim: int = 0
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    output_prefix: str = ""
    runtime_env: RuntimeEnv = field(default_factory=RuntimeEnv)

    def validate(self) -> None:
        asked = [
            name
            for name in (
                "enable_chip_swimlane",
                "enable_dump_args",
                "enable_pmu",
                "enable_dep_gen",
                "enable_scope_stats",
            )
            if getattr(self, name)
        ]
        if asked:
            raise refuse(
                f"CallConfig.{asked[0]}: runs do not write records in that format",
                "use pto runtime run --swimlane, --trace, --graph or --summary",
            )


@dataclass
class CommBufferSpec:
    """A part of every window of a domain, after the previous part."""

    name: str
    dtype: str
    count: int
    nbytes: int
    load_from_host: bool = False
    store_to_host: bool = False


@dataclass
class ChipDomainContext:
    """A domain from the view of one member. `device_ctx` is the address of the structure for kernels: rank,
    size and windows (platform_comm/comm_context.h)."""

    name: str
    domain_rank: int
    domain_size: int
    device_ctx: int
    local_window_base: int
    actual_window_size: int
    buffers: dict[str, Buffer]


class CommDomainHandle:
    """A domain for the duration of a `with` block; its memory exists until the end of the run."""

    def __init__(
        self,
        name: str,
        workers: tuple[int, ...],
        contexts: dict[int, ChipDomainContext],
        number: int,
        release: Any,
    ) -> None:
        self.name, self.workers, self.contexts, self.allocation_id = name, workers, contexts, number
        self.released = self.freed = False
        self._release = release

    def __getitem__(self, worker: int) -> ChipDomainContext:
        if self.released:
            raise RuntimeError(f"domain '{self.name}' has been released")
        return self.contexts[worker]

    def release(self) -> None:
        if not self.released:
            self.released = True
            self._release(self)

    def __enter__(self) -> CommDomainHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def __getattr__(name: str) -> Any:
    if name.startswith(("Remote", "GlobalComm", "Mpi")):
        raise refuse(
            f"{name}: cannot simulate workers on other machines",
            "use mpiexec with pto ranks for programs with several processes",
        )
    if name == "ChipWorker":
        # a late import, because that module imports this one
        return importlib.import_module(f"{__package__}.worker").ChipWorker
    raise AttributeError(f"module 'simpler.task_interface' has no attribute '{name}'")


__all__ = [
    "AccessMode",
    "AddressSpace",
    "ArgDirection",
    "BackendKind",
    "Buffer",
    "CallConfig",
    "ChipCallable",
    "ChipDomainContext",
    "ChipStorageTaskArgs",
    "ChipTensor",
    "CommBufferSpec",
    "CommDomainHandle",
    "CoreCallable",
    "DataType",
    "RuntimeEnv",
    "TaskArgs",
    "Tensor",
    "TensorArgType",
    "get_element_size",
    "scalar_to_uint64",
]
