"""Workers in this process: a chip (level 2), or a node with several chips (level 3)."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ...engine import journal
from .buffers import BackendKind, Buffer, Tensor, host_range
from .callables import CallableHandle, ChipCallable, platform_of, runtime_of
from .chip import Chip, Libraries
from .dtypes import DataType
from .orchestrator import Orchestrator
from .refused import REFUSED, refuse
from .task_interface import CallConfig, TaskArgs, as_tensor

_NUMBERS = itertools.count()


class RunHandle:
    """A running or finished run."""

    def __init__(self, body: Callable[[], None]) -> None:
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(body,), daemon=True)
        self._thread.start()

    def _run(self, body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as e:
            self._failure = e

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the run has not ended within {timeout} s")
        if self._failure is not None:
            raise self._failure

    result = wait


class Worker:
    """A worker: `register` callables, `init`, `run` them, `close`."""

    def __init__(
        self,
        level: int = 2,
        *,
        platform: str = "a2a3sim",
        runtime: str = "tensormap_and_ringbuffer",
        device_id: int = 0,
        device_ids: Sequence[int] | None = None,
        num_sub_workers: int = 0,
        enable_sdma: bool = False,  # no effect: copies are complete when a call returns
        **others: object,
    ) -> None:
        if int(level) not in (2, 3):
            raise refuse(
                f"expected Worker(level=2) for a chip or level=3 for a node, got {int(level)}",
                "for several nodes, start several processes: mpiexec with pto ranks",
            )
        self.level, self.platform, self.runtime = int(level), platform_of(platform), runtime_of(runtime)
        if not platform.endswith("sim"):
            journal.note("device", platform)
        self.device_id = device_id
        self.device_ids = list(device_ids) if device_ids is not None else [device_id]
        if self.level == 3 and len(set(self.device_ids)) != len(self.device_ids):
            raise ValueError(f"expected different device_ids, got {self.device_ids}")
        self.num_sub_workers = num_sub_workers
        libraries = Libraries() if self.level == 3 else None
        self.chips = [Chip(i, libraries) for i in range(len(self.device_ids))]
        self.initialized = self._closed = False
        self._lock = threading.RLock()
        self._orchestrator: Orchestrator | None = None
        self._loaded: set[CallableHandle] = set()

    # ---- life ----

    def init(self, *_: object, **__: object) -> None:
        if self._closed:
            raise RuntimeError("the worker has been closed")
        self.initialized = True

    def close(self) -> None:
        self._closed = True
        self.initialized = False

    def __enter__(self) -> Worker:
        self.init()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _need(self, api: str) -> None:
        if not self.initialized:
            raise RuntimeError(
                f"{api}: the worker {'has been closed' if self._closed else 'needs init() first'}"
            )

    # ---- callables ----

    def register(self, target: object, *, workers: object = None) -> CallableHandle:
        if not isinstance(target, ChipCallable) and not callable(target):
            raise TypeError(f"register: expected a ChipCallable or a function, got {type(target).__name__}")
        if isinstance(target, CallableHandle):
            raise TypeError("register: expected a callable, got a handle")
        return CallableHandle(target, self, next(_NUMBERS))

    def unregister(self, handle: CallableHandle) -> None:
        self.resolve(handle, "unregister")
        handle.unregistered = True

    def resolve(self, handle: object, api: str) -> Any:
        if not isinstance(handle, CallableHandle):
            raise TypeError(f"{api}: expected a handle from register, got {type(handle).__name__}")
        if handle.worker is not self:
            raise ValueError(f"{api}: {handle} belongs to another worker")
        if handle.unregistered:
            raise RuntimeError(f"{api}: {handle} has been unregistered")
        return handle.target

    def check_chip(self, number: object, api: str) -> None:
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{api}: expected the number of a worker, got {number!r}")
        if not 0 <= number < len(self.chips):
            raise ValueError(f"{api}: unknown worker {number}: device_ids has {len(self.chips)}")

    # ---- runs ----

    def run(self, callable: object, args: object = None, config: CallConfig | None = None) -> None:
        self._need("run")
        with self._lock:
            self._run(callable, args, config)

    def submit(self, callable: object, args: object = None, config: CallConfig | None = None) -> RunHandle:
        self._need("submit")
        return RunHandle(lambda: self.run(callable, args, config))

    def _run(self, target: Any, args: Any, config: CallConfig | None) -> None:
        if self.level == 2:
            found = self.resolve(target, "run")
            if not isinstance(found, ChipCallable):
                raise TypeError(f"run: expected the handle of a ChipCallable at level 2, got {found!r}")
            if args is not None and not isinstance(args, TaskArgs):
                raise TypeError(f"run: expected TaskArgs, got {type(args).__name__}")
            self.chips[0].run(found, args, config)
            self._loaded.add(target)
            return
        function = self.resolve(target, "run") if isinstance(target, CallableHandle) else target
        orchestrator = Orchestrator(self)
        self._orchestrator = orchestrator
        try:
            function(orchestrator, args, config if config is not None else CallConfig())
            orchestrator.flush()
        finally:
            self._orchestrator = None
            orchestrator.close()

    @property
    def live_domains(self) -> dict[str, object]:
        return dict(self._orchestrator.live_domains) if self._orchestrator is not None else {}

    @property
    def aicpu_dlopen_count(self) -> int:
        """Number of callables that have run at least once, for runtimes in which devices load
        orchestrations."""
        return len(self._loaded) if self.runtime != "host_build_graph" else 0

    @property
    def host_dlopen_count(self) -> int:
        """The same number, for runtimes in which hosts load orchestrations."""
        return len(self._loaded) - self.aicpu_dlopen_count

    # ---- memory ----

    def malloc(self, size: int, worker_id: int = 0) -> Buffer:
        self.check_chip(worker_id, "malloc")
        return Buffer.made(int(size), BackendKind.DEVICE_MALLOC, worker_id)

    def alloc_child_tensor(self, worker_id: int, shapes: Sequence[int], dtype: DataType) -> Buffer:
        return self.malloc(_nbytes(shapes, dtype), worker_id)

    def alloc_shared_tensor(self, shapes: Sequence[int], dtype: DataType) -> Buffer:
        return Buffer.made(_nbytes(shapes, dtype))

    def create_buffer(self, nbytes: int) -> Buffer:
        return Buffer.made(int(nbytes))

    def free(self, handle: Buffer) -> None:
        if handle.closed:
            raise ValueError("cannot free the buffer twice")
        handle.close()

    release_buffer = free

    def make_tensor_arg(
        self, tensor: object, shapes: Sequence[int] | None = None, dtype: object = None, *,
        strides: Sequence[int] | None = None,
    ) -> Tensor:  # fmt: skip
        found = as_tensor(tensor)
        if shapes is None and dtype is None:
            return found
        given = found.dtype if dtype is None else DataType(getattr(dtype, "value", dtype))
        return found.buffer.tensor(shapes if shapes is not None else found.shapes, given, strides)

    def copy_to(self, dst: Buffer, src: object) -> None:
        base, nbytes, kept = host_range(src, "copy_to")
        _copy(dst.base, dst, base, nbytes, "copy_to")
        del kept

    def copy_from(self, dst: object, src: Buffer) -> None:
        base, nbytes, kept = host_range(dst, "copy_from")
        _copy(base, src, src.base, nbytes, "copy_from")
        del kept

    def committed_device_memory(self, worker_id: int = 0) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("remote_", "add_")):
            raise refuse(
                f"Worker.{name}: a worker has only its own chips",
                "for several nodes, start several processes: mpiexec with pto ranks",
            )
        raise AttributeError(f"Worker has no attribute '{name}'; see `pto explain {REFUSED}`")


def _nbytes(shapes: Sequence[int], dtype: DataType) -> int:
    size = DataType(getattr(dtype, "value", dtype)).nbytes
    for n in shapes:
        size *= int(n)
    return size


def _copy(to: int, buffer: Buffer, source: int, nbytes: int, api: str) -> None:
    if buffer.closed:
        raise ValueError(f"{api}: the buffer has been freed")
    if nbytes > buffer.nbytes:
        raise ValueError(
            f"{api}: expected at most {buffer.nbytes} bytes, the size of the buffer, got {nbytes}"
        )
    ctypes.memmove(to, source, nbytes)


class ChipWorker:
    """A chip, with the interface of simpler's ChipWorker."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def init(self, device_id: int = 0, bins: Any = None, **_: object) -> None:
        bins = (
            bins
            if bins is not None
            else SimpleNamespace(platform="a2a3sim", runtime="tensormap_and_ringbuffer")
        )
        self._worker = Worker(2, platform=bins.platform, runtime=bins.runtime, device_id=device_id)
        self._worker.init()

    @property
    def _there(self) -> Worker:
        if self._worker is None:
            raise RuntimeError("ChipWorker: missing init()")
        return self._worker

    def register_callable(self, callable: ChipCallable) -> CallableHandle:
        return self._there.register(callable)

    def unregister_callable(self, handle: CallableHandle) -> None:
        self._there.unregister(handle)

    def run(self, handle: CallableHandle, args: object = None, config: CallConfig | None = None) -> None:
        self._there.run(handle, args, config)

    def finalize(self) -> None:
        self._there.close()


def __getattr__(name: str) -> Any:
    if name.startswith(("Remote", "Mpi", "MAILBOX", "_")) and not name.startswith("__"):
        raise refuse(
            f"simpler.worker.{name}: chips are not processes here, and have no mailboxes",
            "for several nodes, start several processes: mpiexec with pto ranks",
        )
    raise AttributeError(f"module 'simpler.worker' has no attribute '{name}'")
