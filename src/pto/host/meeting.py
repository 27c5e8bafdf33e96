"""Under another launcher (mpiexec): which rank this process is, and the file that it shares with the others.

The first rank makes it and hands it to the others over a socket without a place in the file system, whose
name they know: it is made of the user, of what has started them all, and of how many they are.
"""

from __future__ import annotations

import array
import os
import socket
import time
from collections.abc import Mapping

from ..diag import Diagnostic, DiagnosticError
from ..engine.compiled.group import make
from ..isa.record import Record

#: Variables that launchers set: rank and number of ranks.
_LAUNCHERS = (("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
#: Seconds that the ranks have to find each other.
PATIENCE = 30.0


class Place(Record):
    """A rank among others that another launcher has started."""

    rank: int
    ranks: int
    name: str  # of the meeting


def placed(environment: Mapping[str, str]) -> Place | None:
    """Where this process stands; None where nobody but us starts ranks. A launcher of one is nobody."""
    for rank, ranks in _LAUNCHERS:
        if environment.get(rank, "").isdigit() and environment.get(ranks, "1") not in ("", "0", "1"):
            name = f"\0pto-ranks-{os.getuid()}-{os.getppid()}-{environment[ranks]}"
            return Place(int(environment[rank]), int(environment[ranks]), name)
    return None


def shared_file(place: Place) -> int:
    """The file of the group: made by the first rank, and given to the others."""
    end = time.monotonic() + PATIENCE
    if place.rank == 0:
        file = make(place.ranks)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(place.name)
            listening.listen(place.ranks)
            for _ in range(place.ranks - 1):
                listening.settimeout(max(0.1, end - time.monotonic()))
                try:
                    other, _address = listening.accept()
                except TimeoutError:
                    raise _alone(place) from None
                with other:
                    other.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
        return file
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            try:
                asking.connect(place.name)
                _text, sent, *_ = asking.recvmsg(1, socket.CMSG_LEN(4))
                return array.array("i", sent[0][2])[0]
            except (ConnectionRefusedError, IndexError):  # the first rank is not there yet
                if time.monotonic() > end:
                    raise _alone(place) from None
                time.sleep(0.02)


def _alone(place: Place) -> DiagnosticError:
    return DiagnosticError([
        Diagnostic("PTO-E2422", f"rank {place.rank} of {place.ranks} met nobody within {PATIENCE:g} s",
                   help="all ranks have to be on one machine, started by one launcher")
    ])  # fmt: skip
