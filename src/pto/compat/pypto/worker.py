"""Replacement of the worker of one chip: it runs programs, and keeps arrays between runs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...engine.elements import ARRAY_DTYPES
from ...language.programs import arguments
from ...language.programs.callable import CallableProgram
from ...language.programs.config import RunConfig
from .refused import refuse


class DeviceTensor:
    """An array that a worker keeps: `data_ptr`, `shape`, and `dtype` as requested."""

    def __init__(self, data_ptr: int, shape: Sequence[int], dtype: object, *, buffer: Any = None) -> None:
        if buffer is None:
            raise refuse("DeviceTensor of a bare address", "use worker.alloc_tensor(shape, dtype)")
        self.data_ptr = data_ptr
        self.shape = tuple(shape)
        self.dtype = dtype
        self.memory = buffer

    @property
    def nbytes(self) -> int:
        return int(self.memory.nbytes)

    def __repr__(self) -> str:
        return f"DeviceTensor(data_ptr=0x{self.data_ptr:x}, shape={self.shape}, dtype={self.dtype})"


class StackedDeviceTensor:
    """An array that a worker keeps, with one part per rank; `worker.alloc_stacked_tensor` makes it."""

    def __init__(
        self, shards: Sequence[DeviceTensor], full_shape: Sequence[int], worker_ids: Sequence[int]
    ) -> None:
        self.shards = tuple(shards)
        self.full_shape = self.shape = tuple(full_shape)
        self.worker_ids = tuple(worker_ids)
        if len(self.shape) < 2 or not self.shape[0]:
            raise ValueError(f"StackedDeviceTensor: expected one part per rank, got shape {self.shape}")
        if len(self.shards) != self.shape[0] or len(set(self.worker_ids)) != self.shape[0]:
            raise ValueError(
                f"StackedDeviceTensor of {self.shape}: expected {self.shape[0]} shards on different workers, "
                f"got {len(self.shards)} shards, worker_ids {self.worker_ids}"
            )
        for i, shard in enumerate(self.shards):
            if not isinstance(shard, DeviceTensor):
                raise TypeError(f"shard {i}: expected a DeviceTensor, got a {type(shard).__name__}")
            if shard.shape != self.shape[1:] or shard.dtype != self.shards[0].dtype:
                raise ValueError(
                    f"shard {i}: expected shape {self.shape[1:]} of {self.shards[0].dtype}, "
                    f"got {shard.shape} of {shard.dtype}"
                )

    @property
    def dtype(self) -> Any:
        return self.shards[0].dtype

    @property
    def memory(self) -> Any:
        """The whole array, as programs access it."""
        whole = self.shards[0].memory.base
        if whole is None or whole.shape != self.shape:
            raise refuse("StackedDeviceTensor of separate tensors", "use worker.alloc_stacked_tensor(array)")
        return whole

    def __getitem__(self, index: Any) -> DeviceTensor:
        first = index[0] if isinstance(index, tuple) else index
        return self.shards[first.start if isinstance(first, slice) else first]


class RegistrationHandle:
    """A program that is registered at a worker: `handle(*args)` runs it."""

    def __init__(self, worker: ChipWorker, compiled: CallableProgram, cid: int) -> None:
        self._worker = worker
        self.compiled = compiled
        self.cid = cid
        self.closed = False

    def __call__(self, *args: object, config: object = None) -> object:
        if self.closed:
            raise RuntimeError(f"cannot run {self.compiled.name}: it is not registered")
        return self._worker.run(self.compiled, *args, config=config)

    def unregister(self) -> None:
        self.closed = True

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()


class Worker:
    """Base class of workers."""


class ChipWorker(Worker):
    """A chip: `with ChipWorker(config=RunConfig()) as w: w.run(compiled, *args)`."""

    level = 2

    def __init__(
        self, config: RunConfig | None = None, *, runtime: str = "tensormap_and_ringbuffer", **_: object
    ) -> None:
        self._config = config or RunConfig()
        self.runtime = runtime
        self.initialized = True
        self._handles: dict[int, RegistrationHandle] = {}
        self._owned_tensors: dict[int, DeviceTensor] = {}
        self._buffers: dict[int, Any] = {}

    @property
    def platform(self) -> str:
        return self._config.platform

    @property
    def device_id(self) -> int:
        return self._config.device_id

    @property
    def aicpu_dlopen_count(self) -> int:
        """Number of registered programs."""
        return len(self._handles)

    host_dlopen_count = aicpu_dlopen_count

    def init(self) -> None:
        self.initialized = True

    def _require_ready(self, what: str) -> None:
        if not self.initialized:
            raise RuntimeError(f"{what}() called after close()")

    # ---- programs ----

    def register(self, compiled: CallableProgram) -> RegistrationHandle:
        self._require_ready("register")
        found = self._handles.get(id(compiled))
        if found is None or found.closed:
            found = self._handles[id(compiled)] = RegistrationHandle(self, compiled, len(self._handles))
        return found

    def run(self, compiled: CallableProgram, *args: object, config: object = None) -> object:
        self._require_ready("run")
        self.register(compiled)
        return compiled(*args, config=config)

    # ---- memory ----

    def alloc_tensor(
        self, shape: Sequence[int], dtype: object, init: object = None, *, worker_id: int = 0
    ) -> DeviceTensor:
        self._require_ready("alloc_tensor")
        name = arguments.dtype_name(dtype)
        if name not in arguments.NAMES:
            raise arguments.refuse(f"unknown element type {dtype}", expected=", ".join(arguments.NAMES))
        memory = np.zeros(tuple(shape), ARRAY_DTYPES[arguments.NAMES[name]])
        if init is not None:
            memory[...] = arguments.as_numpy(init).reshape(memory.shape)
        made = DeviceTensor(memory.ctypes.data, shape, dtype, buffer=memory)
        self._owned_tensors[made.data_ptr] = made
        return made

    def free_tensor(self, t: DeviceTensor, *, worker_id: int = 0) -> None:
        if self._owned_tensors.pop(t.data_ptr, None) is None:
            raise ValueError(f"cannot free {t}: it does not belong to this worker")

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        memory = np.zeros(nbytes, np.uint8)
        self._buffers[memory.ctypes.data] = memory
        return memory.ctypes.data

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        if self._buffers.pop(ptr, None) is None:
            raise ValueError(f"cannot free 0x{ptr:x}: it is not memory of this worker")

    def _check(self, ptr: int, nbytes: int) -> None:
        """Refuse a range of addresses that is not in memory of this worker."""
        known = {p: t.nbytes for p, t in self._owned_tensors.items()}
        known.update((p, b.nbytes) for p, b in self._buffers.items())
        if not any(p <= ptr and ptr + nbytes <= p + n for p, n in known.items()):
            raise ValueError(f"cannot access {nbytes} bytes at 0x{ptr:x}: not memory of this worker")

    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        self._check(dst_dev_ptr, nbytes)
        ctypes.memmove(dst_dev_ptr, src_host_ptr, nbytes)

    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        self._check(src_dev_ptr, nbytes)
        ctypes.memmove(dst_host_ptr, src_dev_ptr, nbytes)

    def close(self) -> None:
        self.initialized = False
        self._owned_tensors.clear()
        self._buffers.clear()
        for handle in self._handles.values():
            handle.closed = True

    def __enter__(self) -> ChipWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
