"""Graphs over chips: what an orchestration of a node submits, and how it is run.

Tasks are collected while the function runs and started when it returns, or asks for data: nothing that it
does can tell the difference, and an error in it leaves nothing behind. Each chip runs one task at a time;
members of a group begin together. Chips that run at the same time keep company
(native/runtime/exec/company.hpp): a kernel that waits for another rank is stuck only when all of them are.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...runtime.extension import extension
from .buffers import BackendKind, Buffer, MappedArgs, Tensor
from .callables import ChipCallable
from .domains import allocate
from .dtypes import DataType
from .refused import refuse
from .task_interface import CallConfig, CommBufferSpec, CommDomainHandle, TaskArgs

if TYPE_CHECKING:
    from .worker import Worker


class _Node:
    """A task, or several that begin together. `places` are the chips that it needs; None: it is Python."""

    def __init__(
        self, number: int, name: str, places: tuple[int, ...] | None, bodies: list[Callable[..., object]]
    ) -> None:
        self.number, self.name, self.places, self.bodies = number, name, places, bodies
        self.waits_for: set[int] = set()
        self.left = len(bodies)
        self.failed = False
        self.state = "waiting"  # running, done, failed


class Orchestrator:
    """What a function that a worker of level 3 runs is given."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._nodes: list[_Node] = []
        self._ended = 0  # nodes that have been run
        self._written: list[tuple[int, int, int]] = []  # from, to, by which task; the last one last
        self._domains: list[CommDomainHandle] = []
        self.live_domains: dict[str, CommDomainHandle] = {}

    # ---- tasks ----

    def submit_next_level(
        self, callable_handle: Any, args: TaskArgs, config: CallConfig | None = None, *, worker: int
    ) -> None:
        self._submit_chips(callable_handle, [args], config, [worker], "submit_next_level")

    def submit_next_level_group(
        self,
        callable_handle: Any,
        args_list: Sequence[TaskArgs],
        config: CallConfig | None = None,
        *,
        workers: Sequence[int],
    ) -> None:
        if len(workers) != len(args_list):
            raise ValueError(f"{len(args_list)} arguments for {len(workers)} workers")
        if len(set(workers)) != len(workers):
            raise ValueError(f"workers names one twice: {list(workers)}")
        self._submit_chips(callable_handle, list(args_list), config, list(workers), "submit_next_level_group")

    def _submit_chips(
        self, handle: Any, args: list[TaskArgs], config: CallConfig | None, workers: list[int], api: str
    ) -> None:
        target = self._worker.resolve(handle, api)
        if not isinstance(target, ChipCallable):
            raise TypeError(
                f"{api} takes the handle of a ChipCallable, got that of {target!r}; submit_sub runs Python"
            )
        for place in workers:
            self._worker.check_chip(place, api)
        bodies: list[Callable[..., object]] = []
        for given, place in zip(args, workers, strict=True):
            self._check_owners(given, place, api)
            bodies.append(_chip_body(self._worker.chips[place], target, given, config))
        self._add(_Node(len(self._nodes), target.name, tuple(workers), bodies), args)

    def _check_owners(self, args: TaskArgs, place: int, api: str) -> None:
        for i, tensor in enumerate(args.tensors):
            kind = tensor.buffer.backend_kind
            if (
                kind in (BackendKind.VMM_WINDOW, BackendKind.DEVICE_MALLOC)
                and tensor.buffer.owner_worker_id != place
            ):
                raise ValueError(
                    f"{api}: argument {i} is memory of worker {tensor.buffer.owner_worker_id}, "
                    f"and the task is for worker {place}"
                )

    def submit_sub(self, callable_handle: Any, args: TaskArgs | None = None) -> None:
        self.submit_sub_group(callable_handle, [args if args is not None else TaskArgs()])

    def submit_sub_group(self, callable_handle: Any, args_list: Sequence[TaskArgs]) -> None:
        function = self._worker.resolve(callable_handle, "submit_sub")
        if isinstance(function, ChipCallable) or not callable(function):
            raise TypeError(f"submit_sub takes the handle of a Python function, got that of {function!r}")

        def body(given: TaskArgs) -> Callable[..., object]:
            return lambda company, member: function(MappedArgs(given.tensors, given.scalars))

        name = getattr(function, "__name__", "sub")
        self._add(_Node(len(self._nodes), name, None, [body(a) for a in args_list]), list(args_list))

    def _add(self, node: _Node, args: list[TaskArgs]) -> None:
        """Edges as tensors say: who reads waits for who wrote last. Windows order nothing: signals do."""
        for given in args:
            for tensor, tag in zip(given.tensors, given.tags, strict=True):
                if tag.reads and not tensor.buffer.is_window:
                    node.waits_for |= self._writers(tensor)
        for given in args:
            for tensor, tag in zip(given.tensors, given.tags, strict=True):
                if tag.writes and not tensor.buffer.is_window and tensor.nbytes:
                    self._written.append((tensor.address, tensor.address + tensor.nbytes, node.number))
        self._nodes.append(node)

    def _writers(self, tensor: Tensor) -> set[int]:
        begin, end = tensor.address, tensor.address + tensor.nbytes
        found: set[int] = set()
        for low, high, number in reversed(self._written):
            if low < end and begin < high:
                found.add(number)
                if low <= begin and end <= high:
                    break  # what was there before is gone
        return found

    # ---- memory ----

    def allocate_domain(
        self, *, name: str, workers: Sequence[int], window_size: int, buffers: Sequence[CommBufferSpec] = ()
    ) -> CommDomainHandle:
        members = tuple(int(w) for w in workers)
        for place in members:
            self._worker.check_chip(place, "allocate_domain")
        if name in self.live_domains:
            raise ValueError(f"a domain '{name}' is there already")
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

    def free(self, handle: Buffer, *_: Any) -> None:
        self.flush()
        self._worker.free(handle)

    def copy_to(self, dst: Buffer, src: Any) -> None:
        self.flush()
        self._worker.copy_to(dst, src)

    def copy_from(self, dst: Any, src: Buffer) -> None:
        self.flush()
        self._worker.copy_from(dst, src)

    # ---- scopes: memory here is not taken back before the end ----

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
                f"orch.{name}: there is one node, and orchestrations of chips do not talk to it "
                f"while they run",
                "allocate_domain makes windows for the chips of this worker",
            )
        raise AttributeError(f"an orchestrator has no '{name}'")

    # ---- running ----

    def flush(self) -> None:
        """Run what has been submitted."""
        nodes = self._nodes[self._ended :]
        self._ended = len(self._nodes)
        if nodes:
            _Graph(nodes).run()

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


class _Graph:
    """Nodes that are run, each when its own turn has come."""

    def __init__(self, nodes: list[_Node]) -> None:
        self.nodes = nodes
        self._known = {n.number: n for n in nodes}
        self._busy: set[int] = set()  # chips
        self._lock = threading.Condition()
        self._company = extension().Company()
        self._failures: list[BaseException] = []

    def run(self) -> None:
        with self._lock:
            self._start()
            while not all(n.state in ("done", "failed") for n in self.nodes):
                self._lock.wait()
        if self._failures:
            raise self._failures[0]

    def _start(self) -> None:
        """Begin all that can; who ends one begins the next before it goes, so that others see them all."""
        reserved: set[int] = set()
        for node in self.nodes:
            if node.state != "waiting":
                continue
            before = [self._known[n] for n in node.waits_for if n in self._known]
            if any(n.state == "failed" for n in before):
                node.state = "failed"
                continue
            if any(n.state != "done" for n in before):
                continue
            places = set(node.places or ())
            if places & (self._busy | reserved):
                reserved |= places  # in the order in which they were submitted
                continue
            node.state = "running"
            self._busy |= places
            members = [self._company.join() for _ in node.bodies]
            for at, member in enumerate(members):
                threading.Thread(target=self._member, args=(node, at, member), daemon=True).start()

    def _member(self, node: _Node, at: int, member: int) -> None:
        failure: BaseException | None = None
        try:
            node.bodies[at](self._company, member)
        except BaseException as e:
            failure = e
        with self._lock:
            if failure is not None:
                self._failures.append(failure)
                node.failed = True
            node.left -= 1
            if node.left == 0:
                node.state = "failed" if node.failed else "done"
            if node.places is not None:  # the chip is free, though others of the group may go on
                self._busy.discard(node.places[at])
            self._start()
            self._company.leave(member)
            self._lock.notify_all()
