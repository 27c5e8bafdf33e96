"""Ranks that another launcher has started on several machines (nodes).

What they have to say to each other before and after a launch they say over the launcher's MPI, or where they
are all on one machine, which then stands for several, over the meeting there. Ranks of one node meet on it
and share files; ranks of different nodes have a connection to each other.
"""

from __future__ import annotations

import atexit
import os
import pickle
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from .. import knobs
from ..diag import Diagnostic, DiagnosticError
from ..engine.compiled.nodes import Far
from .meeting import PATIENCE, Meeting, Place

_SECRET = 16


class Everyone(Protocol):
    """All ranks, as one of them sees them."""

    rank: int
    ranks: int
    #: Raises where one of them has left, once that can be known.
    check: Callable[[], None]

    def all(self, mine: bytes) -> list[bytes]:
        """What every rank says, by rank, once all have said it."""
        ...


class Mpi:
    """All ranks by the MPI of their launcher.

    MPI knows nothing of a rank that ends before the others want something of it: so who waits looks whether
    its connections still stand, and one that has found that they do not ends all: MPI would wait for ever.
    """

    def __init__(self, place: Place) -> None:
        try:
            from mpi4py import MPI  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise DiagnosticError([
                Diagnostic("PTO-E2422", "the ranks are on several machines, which needs mpi4py",
                           help="install pto[mpi], built for the MPI whose mpiexec starts the ranks")
            ]) from None  # fmt: skip
        self._world: Any = MPI.COMM_WORLD
        self._byte: Any = MPI.BYTE
        self._alone = False
        self.check: Callable[[], None] = lambda: None
        atexit.register(self._end)
        self.rank, self.ranks = int(self._world.rank), int(self._world.size)
        if (self.rank, self.ranks) != (place.rank, place.ranks):
            raise DiagnosticError([
                Diagnostic("PTO-E2422", f"the launcher says rank {place.rank} of {place.ranks}, but mpi4py "
                           f"says rank {self.rank} of {self.ranks}",
                           help="mpi4py has to be built for the MPI whose mpiexec starts the ranks")
            ])  # fmt: skip

    def all(self, mine: bytes) -> list[bytes]:
        sizes = np.empty(self.ranks, np.int64)
        self._finish(self._world.Iallgather(np.array([len(mine)], np.int64), sizes))
        starts = np.cumsum(sizes) - sizes
        said = bytearray(int(sizes.sum()))
        into = [said, (sizes.tolist(), starts.tolist()), self._byte]
        self._finish(self._world.Iallgatherv([mine, self._byte], into))
        return [
            bytes(said[start : start + size])
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]

    def _finish(self, request: Any) -> None:
        looks = 0
        while not request.Test():
            looks += 1
            time.sleep(0 if looks < 1000 else 0.001)
            if looks % 100 == 0:
                try:
                    self.check()
                except DiagnosticError:
                    self._alone = True
                    raise

    def _end(self) -> None:
        if self._alone:
            sys.stdout.flush()
            sys.stderr.flush()
            self._world.Abort(1)


class Nodes:
    """The ranks of all nodes."""

    def __init__(self, everyone: Everyone, names: Sequence[str]) -> None:
        self.rank, self.ranks = everyone.rank, everyone.ranks
        self._everyone = everyone
        #: The node of each rank, by its first one.
        self.nodes = [names.index(name) for name in names]
        near = [rank for rank, node in enumerate(self.nodes) if node == self.nodes[self.rank]]
        self.first = self.rank == near[0]
        secret = everyone.all(os.urandom(_SECRET) if self.rank == 0 else b"")[0]
        place = Place(near.index(self.rank), len(near), f"\0pto-node-{secret.hex()}-{near[0]}")
        self._near = Meeting(place) if len(near) > 1 else None
        self.far = Far(self.rank, self._connected(secret, one_machine(names)))
        everyone.check = self.far.check
        atexit.register(self.far.close)  # before MPI waits for the others to end

    def share(self, make: Callable[[], int]) -> int:
        """A file that the first rank of the node makes, for all of them."""
        return make() if self._near is None else self._near.share(make)

    def all(self, mine: bytes) -> list[bytes]:
        return self._everyone.all(mine)

    def _connected(self, secret: bytes, alone: bool) -> list[int | None]:
        """A socket to every rank of another node: who has the higher number calls."""
        far = [rank for rank, node in enumerate(self.nodes) if node != self.nodes[self.rank]]
        own = "127.0.0.1" if alone else knobs.get("PTO_NODE_ADDRESS") or socket.gethostname()
        end = time.monotonic() + PATIENCE
        lines: dict[int, socket.socket] = {}
        with socket.create_server(("127.0.0.1" if alone else "", 0), backlog=self.ranks) as listening:
            said = self.all(pickle.dumps((own, listening.getsockname()[1])))
            try:
                for rank in far:
                    if rank < self.rank:
                        line = socket.create_connection(pickle.loads(said[rank]), _left(end))
                        line.sendall(secret + self.rank.to_bytes(4, "little"))
                        lines[rank] = line
                while len(lines) < len(far):
                    listening.settimeout(_left(end))
                    line, _ = listening.accept()
                    line.settimeout(_left(end))
                    hello = line.recv(_SECRET + 4, socket.MSG_WAITALL)
                    rank = int.from_bytes(hello[_SECRET:], "little")
                    if hello[:_SECRET] == secret and rank in far and rank not in lines:
                        lines[rank] = line
                    else:  # a stranger
                        line.close()
            except OSError as problem:
                missing = ", ".join(str(rank) for rank in far if rank not in lines)
                raise DiagnosticError([
                    Diagnostic("PTO-E2422", f"rank {self.rank} has no connection to rank {missing}: "
                               f"{problem}",
                               help="every machine has to be reached by its host name, or by what "
                               "PTO_NODE_ADDRESS says there")
                ]) from None  # fmt: skip
        for line in lines.values():
            line.settimeout(None)
        return [lines[rank].detach() if rank in lines else None for rank in range(self.ranks)]


def _left(end: float) -> float:
    return max(0.1, end - time.monotonic())


def own_name() -> str:
    """The name of the node of this process: that of its machine, and what stands for one of several."""
    return f"{socket.gethostname()}\n{knobs.get('PTO_NODE')}"


def one_machine(names: Sequence[str]) -> bool:
    return len({name.partition("\n")[0] for name in names}) == 1
