"""Ranks that another launcher has started on several machines (nodes).

Before and after a launch, ranks exchange messages over the MPI of the launcher. If all ranks are on one
machine that stands for several, they exchange messages over its Unix socket instead. Ranks of one node share
files. Ranks of different nodes have a connection to each other; at its start, both prove that they know the
secret that rank 0 has sent to all ranks (handshake.py).
"""

from __future__ import annotations

import atexit
import hmac
import ipaddress
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from .. import knobs, wire
from ..diag import Diagnostic, DiagnosticError
from ..engine.compiled.nodes import Far
from .handshake import admitted, introduce, left
from .meeting import PATIENCE, Meeting, RankPlace

_SECRET = 32


class Everyone(Protocol):
    """All ranks, from the view of one rank."""

    rank: int
    ranks: int
    #: Raises an error if a rank is known to have left.
    check: Callable[[], None]

    def all(self, mine: bytes, most: int = wire.SHORT) -> list[bytes]:
        """Exchange messages: return the message of each rank after all ranks have sent theirs. Refuse a
        message of more than `most` bytes."""
        ...


class Mpi:
    """All ranks, through the MPI of their launcher.

    MPI does not report a rank that ends before another rank communicates with it. So a waiting rank checks
    its connections, and aborts all ranks if a connection is broken; MPI itself would wait forever.
    """

    def __init__(self, place: RankPlace) -> None:
        try:
            from mpi4py import MPI  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise DiagnosticError([
                Diagnostic("PTO-E2422", "missing mpi4py, which ranks on several machines need",
                           help="install mpi4py, built for the MPI whose mpiexec starts the ranks")
            ]) from None  # fmt: skip
        self._world: Any = MPI.COMM_WORLD
        self._byte: Any = MPI.BYTE
        self._alone = False
        self.check: Callable[[], None] = lambda: None
        atexit.register(self._end)
        self.rank, self.ranks = int(self._world.rank), int(self._world.size)
        if (self.rank, self.ranks) != (place.rank, place.ranks):
            raise DiagnosticError([
                Diagnostic("PTO-E2422", f"expected rank {place.rank} of {place.ranks}, as the launcher has "
                           f"set, got rank {self.rank} of {self.ranks} from mpi4py",
                           help="build mpi4py for the MPI whose mpiexec starts the ranks")
            ])  # fmt: skip

    def all(self, mine: bytes, most: int = wire.SHORT) -> list[bytes]:
        sizes = np.empty(self.ranks, np.int64)
        self._finish(self._world.Iallgather(np.array([len(mine)], np.int64), sizes))
        for rank, size in enumerate(sizes.tolist()):
            if not 0 <= size <= most:
                raise wire.refused(f"rank {rank}", f"expected at most {most} bytes, got {size}")
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
        #: The node of each rank, as the number of the first rank there.
        self.nodes = [names.index(name) for name in names]
        near = [rank for rank, node in enumerate(self.nodes) if node == self.nodes[self.rank]]
        self.first = self.rank == near[0]
        secret = everyone.all(os.urandom(_SECRET) if self.rank == 0 else b"")[0]
        if len(secret) != _SECRET:
            raise wire.refused("rank 0", f"expected {_SECRET} bytes, got {len(secret)}")
        # derived from the secret, because other users may see the name
        meeting = hmac.digest(secret, b"meeting", "sha256").hex()[:32]
        place = RankPlace(near.index(self.rank), len(near), f"node-{meeting}-{near[0]}")
        self._near = Meeting(place, secret) if len(near) > 1 else None
        self.far = Far(self.rank, self._connected(secret, one_machine(names)))
        everyone.check = self.far.check
        atexit.register(self.far.close)  # before MPI waits for the others to end

    def share(self, make: Callable[[], int]) -> int:
        """Return a file that the first rank of the node makes for all ranks of the node."""
        return make() if self._near is None else self._near.share(make)

    def all(self, mine: bytes, most: int = wire.SHORT) -> list[bytes]:
        return self._everyone.all(mine, most)

    def _connected(self, secret: bytes, alone: bool) -> list[int | None]:
        """Return a socket to every rank of another node. The rank with the higher number connects to the
        other."""
        far = [rank for rank, node in enumerate(self.nodes) if node != self.nodes[self.rank]]
        end = time.monotonic() + PATIENCE
        lines: dict[int, socket.socket] = {}
        with _listening(alone, self.ranks) as listening:
            host, port = listening.getsockname()[:2]
            said = self.all(wire.pack("su", host, port))
            why = "it did not call"
            try:
                for rank in far:
                    if rank < self.rank:
                        lines[rank] = _called(address(said[rank], rank), self.rank, rank, secret, end)
                higher = [rank for rank in far if rank > self.rank]
                lines |= admitted(listening, self.rank, higher, secret, end)
            except OSError as problem:
                why = str(problem)
        missing = ", ".join(str(rank) for rank in far if rank not in lines)
        if missing:
            raise DiagnosticError([
                Diagnostic("PTO-E2422", f"rank {self.rank} has no connection to rank {missing}: {why}",
                           help="make every machine reachable at the address of its host name, or set "
                           "PTO_NODE_ADDRESS on each machine to a reachable address")
            ])  # fmt: skip
        return [lines[rank].detach() if rank in lines else None for rank in range(self.ranks)]


def _listening(alone: bool, ranks: int) -> socket.socket:
    """Listen only at the address at which other nodes reach this node."""
    given = "127.0.0.1" if alone else knobs.get("PTO_NODE_ADDRESS")
    name = given or socket.gethostname()
    why = "it has no address that other machines can reach"
    try:
        for family, _, _, _, at in socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM):
            found = ipaddress.ip_address(at[0])
            if not (found.is_unspecified or (not given and (found.is_loopback or found.is_link_local))):
                return socket.create_server(at, family=family, backlog=ranks)
    except OSError as problem:
        known = problem.errno is not None and problem.errno > 0  # errors of name resolution are negative
        why = os.strerror(problem.errno or 0).lower() if known else str(problem.strerror).lower()
    raise DiagnosticError([
        Diagnostic("PTO-E2422", f"cannot listen for other machines at '{name}': {why}",
                   help="set PTO_NODE_ADDRESS to an address of this machine that other machines can reach")
    ])  # fmt: skip


def address(data: bytes, rank: int) -> tuple[str, int]:
    """Decode the address at which a rank listens."""
    host, port = wire.unpack("su", data, f"rank {rank}")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise wire.refused(f"rank {rank}", f"expected an address, got {host[:64]!r}") from None
    if not 0 < port < 1 << 16:
        raise wire.refused(f"rank {rank}", f"expected a port, got {port}")
    return host, port


def _called(at: tuple[str, int], own: int, other: int, secret: bytes, end: float) -> socket.socket:
    while True:
        line = socket.create_connection(at, left(end))
        try:
            introduce(line, own, other, secret, end)
            return line
        except (EOFError, ConnectionError):  # the listener has closed the connection after its time limit
            line.close()
        except BaseException:
            line.close()
            raise


def own_name() -> str:
    """Return the name of the node of this process: the host name, and PTO_NODE, which makes one machine stand
    for several."""
    return f"{socket.gethostname()}\n{knobs.get('PTO_NODE')}"


def one_machine(names: Sequence[str]) -> bool:
    return len({name.partition("\n")[0] for name in names}) == 1
