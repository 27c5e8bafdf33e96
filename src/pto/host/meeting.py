"""Ranks on one machine that another launcher (mpiexec) has started: the rank of this process, and files that
the first rank shares with all ranks.

The ranks meet at a Unix socket in a folder that only this user can enter: `pto` in XDG_RUNTIME_DIR, else
`pto-UID` in the folder of temporary files. The name of the socket contains the process of the launcher and
the number of ranks. The first rank removes the socket when all ranks have arrived, and also removes sockets
of ranks that were killed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from .. import knobs, wire
from ..diag import Diagnostic, DiagnosticError
from ..isa.record import Record
from .handshake import admitted, introduce, is_own_user, left, stranger

#: Environment variables of launchers: rank and number of ranks.
_LAUNCHERS = (("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
#: Environment variables of launchers: number of ranks on this machine.
_HERE = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")
#: Seconds for the ranks to find each other.
PATIENCE = 30.0
#: Seconds between two attempts of a rank to reach the first rank.
_PAUSE = 0.02


class RankPlace(Record):
    """A rank among ranks that another launcher has started."""

    rank: int
    ranks: int
    name: str  # name of the socket
    spread: bool = False  # True for ranks on several machines


def placed(environment: Mapping[str, str]) -> RankPlace | None:
    """Return the rank of this process; None if no other launcher started it, or if the launcher started only
    one rank."""
    for rank, ranks in _LAUNCHERS:
        if environment.get(rank, "").isdigit() and environment.get(ranks, "1") not in ("", "0", "1"):
            name = f"ranks-{os.getppid()}-{_started(os.getppid())}-{environment[ranks]}"
            here = [environment[name] for name in _HERE if environment.get(name, "").isdigit()]
            spread = bool(here) and int(here[0]) < int(environment[ranks])
            return RankPlace(int(environment[rank]), int(environment[ranks]), name, spread)
    return None


def _started(process: int) -> int:
    """Return the start time of a process in ticks of the system, because process ids are reused."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as f:
            return int(f.read().rpartition(")")[2].split()[19])
    except OSError:  # a process of another user may be hidden
        return 0


def is_alone(environment: Mapping[str, str]) -> bool:
    """Return True if a launcher has started this process and no other."""
    return any(environment.get(rank) == "0" and environment.get(ranks) == "1" for rank, ranks in _LAUNCHERS)


def agreed(place: RankPlace | None, ranks: int | None, way_out: str) -> RankPlace | None:
    """Return the place; raise an error if it contradicts the requested number of ranks."""
    if place is not None and ranks not in (None, place.ranks):
        raise DiagnosticError([
            Diagnostic("PTO-E2422", f"expected {place.ranks} ranks, as another launcher has started, got "
                       f"{ranks}", help=way_out)
        ])  # fmt: skip
    return place


class Meeting:
    """The ranks that another launcher has started, from the view of one rank. Each rank has a connection to
    the first."""

    far = None  # all ranks are on this machine

    def __init__(self, place: RankPlace, secret: bytes = b"") -> None:
        self.rank, self.ranks = place.rank, place.ranks
        self.first = place.rank == 0
        self.check: Callable[[], None] = lambda: None  # a broken connection raises an error when it is used
        end = time.monotonic() + PATIENCE
        with _entered() as folder:
            #: Rank -> connection. Only the first rank has a connection to every other rank.
            self._lines = (
                _gathered(folder, place, secret, end)
                if self.first
                else {0: _connected(folder, place, secret, end)}
            )

    def share(self, make: Callable[[], int]) -> int:
        """Return a file that the first rank makes for all ranks."""
        if self.rank == 0:
            file = make()
            for rank, line in self._lines.items():
                with _lost(rank):
                    socket.send_fds(line, [b"f"], [file])
            return file
        with _lost(0):
            _, (file,), _, _ = socket.recv_fds(self._lines[0], 1, 1)
        os.set_inheritable(file, False)
        return file

    def all(self, mine: bytes, most: int = wire.SHORT) -> list[bytes]:
        """Exchange messages: return the message of each rank after all ranks have sent theirs. Refuse a
        message of more than `most` bytes."""
        if self.rank == 0:
            said = [mine, *(_received(rank, self._lines[rank], most) for rank in range(1, self.ranks))]
            for rank, line in self._lines.items():
                for data in said:
                    _send(rank, line, data)
            return said
        _send(0, self._lines[0], mine)
        return [_received(0, self._lines[0], most) for _ in range(self.ranks)]


@contextmanager
def _entered() -> Iterator[int]:
    """Open the folder of the sockets, and make it if it is missing. Refuse a folder that another user could
    enter. Sockets are accessed through the descriptor, so the checked folder is the folder that is used."""
    path = _folder()
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        raise _unsafe(path, os.strerror(problem.errno or 0).lower()) from None
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid():
            raise _unsafe(path, f"it belongs to user {found.st_uid}")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise _unsafe(path, f"other users may enter it: its mode is {stat.S_IMODE(found.st_mode):o}")
        yield folder
    finally:
        os.close(folder)


def _folder() -> str:
    given = knobs.get("XDG_RUNTIME_DIR")
    with suppress(OSError):
        if given and os.stat(given).st_uid == os.geteuid():
            return os.path.join(given, "pto")
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"pto-{os.geteuid()}")


def _unsafe(path: str, why: str) -> DiagnosticError:
    return stranger(
        f"cannot meet the other ranks in '{path}': {why}",
        f"remove '{path}', or chmod 700 it if it is yours, or set XDG_RUNTIME_DIR to a folder of your own",
    )


def _path(folder: int, name: str) -> str:
    return f"/proc/self/fd/{folder}/{name}"  # short enough for a socket address, for every folder


def _gathered(folder: int, place: RankPlace, secret: bytes, end: float) -> dict[int, socket.socket]:
    others = range(1, place.ranks)
    with _bound(folder, place, end) as listening:
        try:
            lines = admitted(listening, 0, others, secret, end)
        finally:
            with _locked(folder):
                _remove(folder, place.name)
    if len(lines) < len(others):
        raise _alone(place)
    return lines


def _bound(folder: int, place: RankPlace, end: float) -> socket.socket:
    while True:
        with _locked(folder):
            _sweep(folder)
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listening.bind(_path(folder, place.name))
                listening.listen(place.ranks)
                return listening
            except OSError as problem:
                listening.close()
                if problem.errno != errno.EADDRINUSE:
                    raise
        if time.monotonic() > end:  # another launch of the same launcher still uses the socket
            raise _alone(place)
        time.sleep(_PAUSE)


@contextmanager
def _locked(folder: int) -> Iterator[None]:
    """Lock the folder, so that only one process at a time adds or removes sockets."""
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def _sweep(folder: int) -> None:
    """Remove sockets without a listening process."""
    for name in os.listdir(folder):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.setblocking(False)
            try:
                asking.connect(_path(folder, name))
            except ConnectionRefusedError:
                _remove(folder, name)
            except OSError:  # a busy listener
                continue


def _remove(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):  # the user has removed it
        if stat.S_ISSOCK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)


def _connected(folder: int, place: RankPlace, secret: bytes, end: float) -> socket.socket:
    while True:
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            asking.settimeout(left(end))
            asking.connect(_path(folder, place.name))
            if not is_own_user(asking):
                raise stranger(
                    f"the socket '{place.name}' of the ranks belongs to another user", "remove that socket"
                )
            introduce(asking, place.rank, 0, secret, end)
            return asking
        except TimeoutError:
            asking.close()
            raise _alone(place) from None
        except (OSError, EOFError):  # the first rank has not started yet, or belongs to another launch
            asking.close()
            time.sleep(_PAUSE)
        except BaseException:
            asking.close()
            raise


def _send(rank: int, line: socket.socket, data: bytes) -> None:
    with _lost(rank):
        line.sendall(wire.framed(data))


def _received(rank: int, line: socket.socket, most: int) -> bytes:
    with _lost(rank):
        return wire.receive(line.recv, most, f"rank {rank}")


@contextmanager
def _lost(rank: int) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, ValueError):
        raise DiagnosticError([
            Diagnostic("PTO-E2422", f"rank {rank} has left before the others", help="see what that rank says")
        ]) from None  # fmt: skip


def _alone(place: RankPlace) -> DiagnosticError:
    return DiagnosticError([
        Diagnostic("PTO-E2422",
                   f"rank {place.rank} of {place.ranks} did not meet the others within {PATIENCE:g} s",
                   help="start all ranks of a machine with one launcher")
    ])  # fmt: skip
