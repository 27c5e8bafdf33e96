"""Graphs over chips: tasks that the orchestration of a node submits, and their execution.

Tasks are collected while the function runs, and started (runtime/host_graph.py) when it returns or requests
data. The function cannot observe the difference, and an error in it leaves no running tasks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ...runtime.host_graph import HostGraph
from .buffers import BackendKind, Buffer, MappedArgs
from .callables import ChipCallable
from .domains import allocate
from .dtypes import DataType
from .refused import refuse
from .task_interface import CallConfig, CommBufferSpec, CommDomainHandle, TaskArgs


class Chips(Protocol):
    """Interface of a worker for an orchestration."""

    chips: list[Any]

    def resolve(self, handle: object, api: str) -> object: ...
    def check_chip(self, number: object, api: str) -> None: ...
    def malloc(self, size: int, worker_id: int = 0) -> Buffer: ...
    def alloc_child_tensor(self, worker_id: int, shapes: Sequence[int], dtype: DataType) -> Buffer: ...
    def alloc_shared_tensor(self, shapes: Sequence[int], dtype: DataType) -> Buffer: ...
    def free(self, handle: Buffer) -> None: ...
    def copy_to(self, dst: Buffer, src: object) -> None: ...
    def copy_from(self, dst: object, src: Buffer) -> None: ...


class Orchestrator:
    """Argument of a function that a worker of level 3 runs."""

    def __init__(self, worker: Chips) -> None:
        self._worker = worker
        self._graph = HostGraph()
        self._domains: list[CommDomainHandle] = []
        self.live_domains: dict[str, CommDomainHandle] = {}

    # ---- tasks ----

    def submit_next_level(
        self, callable_handle: object, args: TaskArgs, config: CallConfig | None = None, *, worker: int
    ) -> None:
        self._submit_chips(callable_handle, [args], config, [worker], "submit_next_level")

    def submit_next_level_group(
        self,
        callable_handle: object,
        args_list: Sequence[TaskArgs],
        config: CallConfig | None = None,
        *,
        workers: Sequence[int],
    ) -> None:
        if len(workers) != len(args_list):
            raise ValueError(f"expected {len(workers)} arguments, one per worker, got {len(args_list)}")
        if len(set(workers)) != len(workers):
            raise ValueError(f"expected different workers, got {list(workers)}")
        self._submit_chips(callable_handle, list(args_list), config, list(workers), "submit_next_level_group")

    def _submit_chips(
        self, handle: object, args: list[TaskArgs], config: CallConfig | None, workers: list[int], api: str
    ) -> None:
        target = self._worker.resolve(handle, api)
        if not isinstance(target, ChipCallable):
            raise TypeError(
                f"{api}: expected the handle of a ChipCallable, got {target!r}; submit_sub runs Python"
            )
        for place in workers:
            self._worker.check_chip(place, api)
        bodies: list[Callable[..., object]] = []
        for given, place in zip(args, workers, strict=True):
            self._check_owners(given, place, api)
            bodies.append(_chip_body(self._worker.chips[place], target, given, config))
        self._add(target.name, workers, bodies, args)

    def _check_owners(self, args: TaskArgs, place: int, api: str) -> None:
        for i, tensor in enumerate(args.tensors):
            kind = tensor.buffer.backend_kind
            if (
                kind in (BackendKind.VMM_WINDOW, BackendKind.DEVICE_MALLOC)
                and tensor.buffer.owner_worker_id != place
            ):
                raise ValueError(
                    f"{api}: expected memory of worker {place} as argument {i}, "
                    f"got memory of worker {tensor.buffer.owner_worker_id}"
                )

    def submit_sub(self, callable_handle: object, args: TaskArgs | None = None) -> None:
        self.submit_sub_group(callable_handle, [args if args is not None else TaskArgs()])

    def submit_sub_group(self, callable_handle: object, args_list: Sequence[TaskArgs]) -> None:
        function = self._worker.resolve(callable_handle, "submit_sub")
        if isinstance(function, ChipCallable) or not callable(function):
            raise TypeError(f"submit_sub: expected the handle of a Python function, got {function!r}")

        def body(given: TaskArgs) -> Callable[..., object]:
            return lambda company, member: function(MappedArgs(given.tensors, given.scalars))

        name = getattr(function, "__name__", "sub")
        self._add(name, None, [body(a) for a in args_list], list(args_list))

    def _add(
        self, name: str, places: list[int] | None, bodies: list[Callable[..., object]], args: list[TaskArgs]
    ) -> None:
        """Add a task with the edges of its tensors. Windows have no edges; signals order them."""
        used = [
            ((tensor.address, tensor.address + tensor.nbytes), tag)
            for given in args
            for tensor, tag in zip(given.tensors, given.tags, strict=True)
            if not tensor.buffer.is_window
        ]
        self._graph.add(
            name, places, bodies, [b for b, tag in used if tag.reads], [b for b, tag in used if tag.writes]
        )

    # ---- memory ----

    def allocate_domain(
        self, *, name: str, workers: Sequence[int], window_size: int, buffers: Sequence[CommBufferSpec] = ()
    ) -> CommDomainHandle:
        members = tuple(int(w) for w in workers)
        for place in members:
            self._worker.check_chip(place, "allocate_domain")
        if name in self.live_domains:
            raise ValueError(f"domain '{name}' already exists")
        handle = allocate(
            str(name), members, int(window_size), list(buffers), len(self._domains), self._released
        )
        self._domains.append(handle)
        self.live_domains[handle.name] = handle
        return handle

    def _released(self, handle: CommDomainHandle) -> None:
        self.live_domains.pop(handle.name, None)

    def release_domain(self, handle: CommDomainHandle) -> None:
        handle.release()

    def alloc(self, shape: Sequence[int], dtype: DataType) -> Buffer:
        return self._worker.alloc_shared_tensor(tuple(shape), dtype)

    def alloc_child_tensor(self, worker_id: int, shapes: Sequence[int], dtype: DataType) -> Buffer:
        return self._worker.alloc_child_tensor(worker_id, tuple(shapes), dtype)

    def malloc(self, worker_id: int, size: int) -> Buffer:
        return self._worker.malloc(size, worker_id)

    def free(self, handle: Buffer, *_: object) -> None:
        self.flush()
        self._worker.free(handle)

    def copy_to(self, dst: Buffer, src: object) -> None:
        self.flush()
        self._worker.copy_to(dst, src)

    def copy_from(self, dst: object, src: Buffer) -> None:
        self.flush()
        self._worker.copy_from(dst, src)

    # ---- scopes: memory is not freed before the end ----

    def scope_begin(self) -> None:
        pass

    def scope_end(self) -> None:
        pass

    @contextlib.contextmanager
    def scope(self) -> Iterator[Orchestrator]:
        yield self

    def __getattr__(self, name: str) -> Any:
        if "global_domain" in name or name.startswith("create_worker_chip"):
            raise refuse(
                f"orch.{name}: there is only one node, and orchestrations cannot communicate with it "
                f"during a run",
                "use allocate_domain for windows of the chips of this worker",
            )
        raise AttributeError(f"Orchestrator has no attribute '{name}'")

    # ---- running ----

    def flush(self) -> None:
        """Run all submitted tasks."""
        self._graph.run()

    def close(self) -> None:
        for handle in self._domains:
            handle.released = handle.freed = True
            for context in handle.contexts.values():
                for buffer in context.buffers.values():
                    buffer.close()


def _chip_body(
    chip: Any, target: ChipCallable, args: TaskArgs, config: CallConfig | None
) -> Callable[..., object]:
    return lambda company, member: chip.run(target, args, config, company, member)
