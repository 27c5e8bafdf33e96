"""Replacement of distributed programs: compiled host programs (`pto.language.distributed`), and workers that
run them repeatedly."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...language.distributed import DistributedConfig
from ...language.graphs.serial import SharedWindows
from ...language.programs import arguments
from ...language.programs.compiled import Compiled
from ...language.programs.config import RunConfig
from .refused import refuse
from .worker import ChipWorker, DeviceTensor, RegistrationHandle, StackedDeviceTensor

Callbacks = Mapping[str, Callable[[list[Any]], Any]]


class _OfAHost(type):
    """Metaclass for `isinstance`: instances are the compiled programs that start work on ranks."""

    def __instancecheck__(cls, made: object) -> bool:
        source = made.lowered.source if isinstance(made, Compiled) else None
        return source is not None and source[0].kind == "host"


class DistributedCompiledProgram(metaclass=_OfAHost):
    """A program of several ranks, made by `pypto.ir.compile`."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise refuse(
            "DistributedCompiledProgram", "pypto.ir.compile(program, distributed_config=..) makes one"
        )

    @classmethod
    def from_dir(cls, *_: object, **__: object) -> object:
        raise refuse("DistributedCompiledProgram.from_dir", "compile the program again: f.compile(..)")


class DistributedRunHandle:
    """A submitted run, which has already ended. `result()` raises its error."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    @property
    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> None:
        if self._error is not None:
            raise self._error

    def wait(self, timeout: float | None = None) -> None:
        """Return at once, because the run has already ended."""


class _Runtime:
    """Replacement of the runtime of a worker: it counts allocations of windows."""

    def __init__(self) -> None:
        self.windows: list[SharedWindows] = []

    @property
    def _next_alloc_id(self) -> int:
        return sum(w.made for w in self.windows)


class DistributedWorker(ChipWorker):
    """Worker for the distributed programs of its constructor. All of them share the tensors of the worker.
    With `persistent`, the runs of a program also share its windows."""

    level = 3

    def __init__(
        self, compiled: Any, config: RunConfig | None = None, *, persistent: bool = False,
        reset_persistent_windows: bool | None = None, callbacks: Callbacks | None = None,
        sub_worker_overrides: Callbacks | None = None, inherited_host_tensors: Sequence[Any] | None = None,
        startup_timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(config)
        if reset_persistent_windows and not persistent:
            raise ValueError("DistributedWorker: reset_persistent_windows=True requires persistent=True")
        if sub_worker_overrides is not None:
            warnings.warn("sub_worker_overrides is now called callbacks", DeprecationWarning, stacklevel=2)
            callbacks = {**sub_worker_overrides, **(callbacks or {})}
        programs = list(compiled) if isinstance(compiled, Sequence) else [compiled]
        if not programs:
            raise ValueError("DistributedWorker: expected at least one compiled program")
        self._w = _Runtime()
        self._inherited_host_tensors = tuple(inherited_host_tensors or ())
        self._programs: dict[int, tuple[Compiled, Compiled]] = {}
        for program in programs:
            if not isinstance(program, Compiled):
                raise TypeError(
                    f"DistributedWorker: expected a compiled program, got a {type(program).__name__}"
                )
            bound = _bound(program, callbacks or {})
            kept = SharedWindows(reset_persistent_windows is not False) if persistent else None
            self._w.windows += [kept] if kept is not None else []
            self._programs[id(program)] = program, program.prepared(bound, kept)
        unknown = set(callbacks or {}) - {n for p in programs for n in p.sub_workers}
        if unknown:
            have = sorted(n for p in programs for n in p.sub_workers)
            raise ValueError(f"unknown sub-workers {sorted(unknown)} in callbacks: expected some of {have}")
        self._world = max(p.lowered.world for p in programs)

    # ---- programs ----

    def __call__(self, *args: object, config: RunConfig | None = None) -> object:
        """Run the only program of the worker."""
        if len(self._programs) > 1:
            raise TypeError("worker(*args) is ambiguous with several programs: worker.run(compiled, *args)")
        ((program, _),) = self._programs.values()
        return self.run(program, *args, config=config)

    def _known(self, compiled: object) -> Compiled:
        if id(compiled) not in self._programs:
            raise ValueError("unknown program: DistributedWorker runs only the programs of its constructor")
        return self._programs[id(compiled)][1]

    def register(self, compiled: Any) -> RegistrationHandle:
        self._require_ready("register")
        self._known(compiled)
        return super().register(compiled)

    def run(self, compiled: object, *args: object, config: object = None) -> object:
        self._require_ready("run")
        return self._known(compiled)(*args, config=config)

    def submit(self, compiled: object, *args: object, config: object = None) -> DistributedRunHandle:
        """Run a program. Its error is raised when the result is requested."""
        self._require_ready("submit")
        program = self._known(compiled)
        try:
            program(*args, config=config)
        except Exception as e:
            return DistributedRunHandle(e)
        return DistributedRunHandle(None)

    # ---- memory ----

    def alloc_stacked_tensor(
        self, host: Any, *, worker_ids: Sequence[int] | None = None
    ) -> StackedDeviceTensor:
        """Keep an array with one part per rank as its first dimension; `worker_ids` are the ranks of the
        parts."""
        self._require_ready("alloc_stacked_tensor")
        source = arguments.as_numpy(host)
        if source.ndim < 2 or not len(source):
            raise ValueError(
                f"alloc_stacked_tensor: expected an array with one part per rank, got shape {source.shape}"
            )
        ids = list(range(len(source))) if worker_ids is None else [int(w) for w in worker_ids]
        if len(ids) != len(source) or len(set(ids)) != len(ids):
            raise ValueError(f"expected {len(source)} different worker_ids, one per part, got {ids}")
        if any(not 0 <= w < self._world for w in ids):
            raise ValueError(f"expected worker_ids from 0 to {self._world - 1}, got {ids}")
        memory = np.array(source)
        shards = [DeviceTensor(part.ctypes.data, part.shape, host.dtype, buffer=part) for part in memory]
        self._owned_tensors.update((s.data_ptr, s) for s in shards)
        return StackedDeviceTensor(shards, memory.shape, ids)

    def free_stacked_tensor(self, stacked: StackedDeviceTensor) -> None:
        for shard in stacked.shards:
            self.free_tensor(shard)

    def copy_stacked_from(self, stacked: StackedDeviceTensor, host: object) -> None:
        """Copy a kept array back to a host array."""
        target = arguments.as_numpy(host)
        if target.shape != stacked.shape:
            raise ValueError(f"expected an array of shape {stacked.shape}, got {target.shape}")
        target[...] = stacked.memory

    def release_inherited_host_tensor_refs(self) -> None:
        self._inherited_host_tensors = ()

    def committed_device_memory(self, worker_id: int = 0) -> int:
        """Return the number of bytes that the worker keeps."""
        return sum(t.nbytes for t in self._owned_tensors.values()) + sum(
            b.nbytes for b in self._buffers.values()
        )


def _bound(program: Compiled, callbacks: Callbacks) -> Callbacks:
    """Return the callbacks for the Python tasks of a program."""
    mine = {name: f for name, f in callbacks.items() if name in program.sub_workers}
    for name, function in mine.items():
        if not callable(function):
            raise TypeError(f"expected a function as callback for SubWorker '{name}', got {function!r}")
    missing = sorted(n for n, needed in program.sub_workers.items() if needed and n not in mine)
    if missing:
        raise ValueError(f"SubWorkers {missing} have no body: give it in callbacks={{..}}")
    return mine


def prepare(
    compiled: Compiled, config: RunConfig | None = None, *, extra_compiled: Sequence[Compiled] = (),
    **options: Any,
) -> DistributedWorker:  # fmt: skip
    """Return a worker that runs a program, and further programs, repeatedly."""
    return DistributedWorker([compiled, *extra_compiled], config, **options)


Compiled.prepare = prepare  # type: ignore[method-assign]


def _tensor_from_continuous(arg: object) -> object:
    """Return an argument of a callback as a torch tensor."""
    from ...language.graphs.python_tasks import as_torch

    return as_torch(arg) if isinstance(arg, np.ndarray) else arg


__all__ = [
    "DistributedCompiledProgram",
    "DistributedConfig",
    "DistributedRunHandle",
    "DistributedWorker",
]
