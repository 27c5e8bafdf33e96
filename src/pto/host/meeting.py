"""Under another launcher (mpiexec): which rank this process is, and the files that it shares with the others.

The first rank makes them and hands them to the others over a socket without a place in the file system, whose
name they know: it is made of the user, of what has started them all, and of how many they are.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..diag import Diagnostic, DiagnosticError
from ..isa.record import Record

#: Variables that launchers set: rank and number of ranks.
_LAUNCHERS = (("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
#: Variables in which they say how many of them are on this machine.
_HERE = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")
#: Seconds that the ranks have to find each other.
PATIENCE = 30.0
_RANK, _SIZE = struct.Struct("<I"), struct.Struct("<Q")


class Place(Record):
    """A rank among others that another launcher has started."""

    rank: int
    ranks: int
    name: str  # of the meeting
    spread: bool = False  # over several machines


def placed(environment: Mapping[str, str]) -> Place | None:
    """Where this process stands; None where nobody but us starts ranks. A launcher of one is nobody."""
    for rank, ranks in _LAUNCHERS:
        if environment.get(rank, "").isdigit() and environment.get(ranks, "1") not in ("", "0", "1"):
            name = f"\0pto-ranks-{os.getuid()}-{os.getppid()}-{environment[ranks]}"
            here = [environment[name] for name in _HERE if environment.get(name, "").isdigit()]
            spread = bool(here) and int(here[0]) < int(environment[ranks])
            return Place(int(environment[rank]), int(environment[ranks]), name, spread)
    return None


def is_alone(environment: Mapping[str, str]) -> bool:
    """Whether a launcher has started this process and no other."""
    return any(environment.get(rank) == "0" and environment.get(ranks) == "1" for rank, ranks in _LAUNCHERS)


def agreed(place: Place | None, ranks: int | None, way_out: str) -> Place | None:
    """A place among as many ranks as are asked for, if any number is."""
    if place is not None and ranks not in (None, place.ranks):
        raise DiagnosticError([
            Diagnostic("PTO-E2422", f"{ranks} ranks are asked for, but another launcher has started "
                       f"{place.ranks}", help=way_out)
        ])  # fmt: skip
    return place


class Meeting:
    """The ranks that another launcher has started, as one of them sees them: each has a line to the first."""

    far = None  # all of them are here

    def __init__(self, place: Place) -> None:
        self.rank, self.ranks = place.rank, place.ranks
        self.first = place.rank == 0
        self.check: Callable[[], None] = lambda: None  # a line that breaks tells
        end = time.monotonic() + PATIENCE
        #: By rank; only the first has one to every other.
        self._lines = _accepted(place, end) if place.rank == 0 else {0: _connected(place, end)}

    def share(self, make: Callable[[], int]) -> int:
        """A file that the first rank makes, for all of them."""
        if self.rank == 0:
            file = make()
            for rank, line in self._lines.items():
                with _lost(rank):
                    socket.send_fds(line, [b"f"], [file])
            return file
        with _lost(0):
            _, (file,), _, _ = socket.recv_fds(self._lines[0], 1, 1)
        return file

    def all(self, mine: bytes) -> list[bytes]:
        """What every rank says, by rank, once all have said it."""
        if self.rank == 0:
            said = [mine, *(_received(rank, self._lines[rank]) for rank in range(1, self.ranks))]
            for rank, line in self._lines.items():
                for text in said:
                    _send(rank, line, text)
            return said
        _send(0, self._lines[0], mine)
        return [_received(0, self._lines[0]) for _ in range(self.ranks)]


def _accepted(place: Place, end: float) -> dict[int, socket.socket]:
    lines: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(place.name)
        listening.listen(place.ranks)
        while len(lines) < place.ranks - 1:
            listening.settimeout(max(0.1, end - time.monotonic()))
            try:
                other, _address = listening.accept()
            except TimeoutError:
                raise _alone(place) from None
            other.settimeout(None)
            lines[_RANK.unpack(other.recv(_RANK.size, socket.MSG_WAITALL))[0]] = other
    return dict(sorted(lines.items()))


def _connected(place: Place, end: float) -> socket.socket:
    while True:
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            asking.connect(place.name)
            asking.sendall(_RANK.pack(place.rank))
            return asking
        except ConnectionRefusedError:  # the first rank is not there yet
            asking.close()
            if time.monotonic() > end:
                raise _alone(place) from None
            time.sleep(0.02)


def _send(rank: int, line: socket.socket, text: bytes) -> None:
    with _lost(rank):
        line.sendall(_SIZE.pack(len(text)) + text)


def _received(rank: int, line: socket.socket) -> bytes:
    with _lost(rank):
        (size,) = _SIZE.unpack(line.recv(_SIZE.size, socket.MSG_WAITALL))
        text = line.recv(size, socket.MSG_WAITALL) if size else b""
        if len(text) != size:
            raise EOFError
    return text


@contextmanager
def _lost(rank: int) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, ValueError, struct.error):
        raise DiagnosticError([
            Diagnostic("PTO-E2422", f"rank {rank} has left before the others", help="see what that rank says")
        ]) from None  # fmt: skip


def _alone(place: Place) -> DiagnosticError:
    return DiagnosticError([
        Diagnostic("PTO-E2422", f"rank {place.rank} of {place.ranks} met nobody within {PATIENCE:g} s",
                   help="all ranks of a machine have to be started by one launcher")
    ])  # fmt: skip
