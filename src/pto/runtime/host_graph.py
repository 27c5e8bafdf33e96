"""Graphs over ranks: tasks that occupy one or several ranks, and calls that occupy none.

Tasks are collected, and started by `run`. A rank runs one task at a time, in submission order; members of a
group start together. A reader waits for the last writer of its memory. Ranks that run at the same time form a
run group (native/runtime/exec/run_groups.hpp): a kernel that waits for another rank is stuck only if all
ranks of the group are stuck.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .extension import extension

#: The addresses of the first byte and after the last byte.
Bytes = tuple[int, int]

#: A member of a task: called with its run group, and its number in the group.
Body = Callable[[Any, int], object]


class HostNode:
    """A task, or several tasks that start together. `places` are the ranks that it needs; None for Python."""

    def __init__(
        self, number: int, name: str, places: tuple[int, ...] | None, bodies: Sequence[Body]
    ) -> None:
        self.number, self.name, self.places, self.bodies = number, name, places, bodies
        self.waits_for: set[int] = set()
        self.left = len(bodies)
        self.failed = False
        self.state = "waiting"  # running, done, failed


class HostGraph:
    """Tasks in submission order, with their dependencies. With `after_readers`, a writer also waits for
    earlier readers and writers of its memory."""

    def __init__(self, after_readers: bool = False) -> None:
        self.nodes: list[HostNode] = []
        self.after_readers = after_readers
        self._ended = 0  # number of nodes that have run
        # Begin, end and task of each access, in submission order.
        self._written: list[tuple[int, int, int]] = []
        self._read: list[tuple[int, int, int]] = []

    def add(
        self,
        name: str,
        places: Sequence[int] | None,
        bodies: Sequence[Body],
        reads: Iterable[Bytes],
        writes: Iterable[Bytes],
    ) -> HostNode:
        node = HostNode(len(self.nodes), name, None if places is None else tuple(places), bodies)
        reads, writes = ([b for b in those if b[0] < b[1]] for those in (reads, writes))
        for begin, end in reads:
            node.waits_for |= self._writers(begin, end)
        if self.after_readers:
            for begin, end in writes:
                node.waits_for |= self._writers(begin, end)
                node.waits_for |= {n for low, high, n in self._read if low < end and begin < high}
            self._read += [(*part, node.number) for part in reads]
        self._written += [(*part, node.number) for part in writes]
        self.nodes.append(node)
        return node

    def _writers(self, begin: int, end: int) -> set[int]:
        found: set[int] = set()
        for low, high, number in reversed(self._written):
            if low < end and begin < high:
                found.add(number)
                if low <= begin and end <= high:
                    break  # earlier writes are overwritten
        return found

    def run(self) -> None:
        """Run the tasks added since the last call; raise the first failure."""
        nodes = self.nodes[self._ended :]
        self._ended = len(self.nodes)
        if nodes:
            _Going(nodes).run()


class _Going:
    """The execution of nodes, each when its dependencies are done and its ranks are free."""

    def __init__(self, nodes: list[HostNode]) -> None:
        self.nodes = nodes
        self._known = {n.number: n for n in nodes}
        self._busy: set[int] = set()  # ranks
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
        """Start every node that can start. All of them join the run group before the first one runs, and a
        node that ends starts its successors before it leaves: to wait for one of them is no deadlock.
        """
        reserved: set[int] = set()
        starting: list[tuple[HostNode, int, int]] = []
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
            starting += [(node, at, self._company.join()) for at in range(len(node.bodies))]
        for member in starting:
            threading.Thread(target=self._member, args=member, daemon=True).start()

    def _member(self, node: HostNode, at: int, member: int) -> None:
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
            if node.places is not None:  # this rank is free; other ranks of the task may still run
                self._busy.discard(node.places[at])
            self._start()
            self._company.leave(member)
            self._lock.notify_all()
