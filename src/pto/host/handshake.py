"""The handshake of two processes of a launch: each proves to the other that it belongs to the launch.

    caller -> listener   its rank and a nonce
    listener -> caller   a nonce, and the listener's proof
    caller -> listener   the caller's proof
    listener -> caller   a byte: the caller is in

A proof is an HMAC of both ranks and both nonces under the secret of the launch, so an impostor cannot use it
again. The secret is empty for processes that have only a Unix socket in common; there both sides ask the
system for the user of the other. A listener reads at most 60 bytes from a caller that has not proven itself,
and serves all callers at once, so that a silent one does not delay the others.
"""

from __future__ import annotations

import hmac
import os
import selectors
import socket
import struct
import time
from collections.abc import Collection

from ..diag import Diagnostic, DiagnosticError

_MAGIC = b"pto-rank"
_NONCE, _PROOF = 16, 32
_HELLO = struct.Struct(f"<{len(_MAGIC)}sI{_NONCE}s")
_IN = b"\x01"
#: Seconds that a caller has to complete the handshake. A delayed caller connects again.
_GUEST_SECONDS = 5.0
#: Maximum number of unfinished handshakes; a further caller replaces the oldest.
_MOST_GUESTS = 128
_CREDENTIALS = struct.Struct("iII")  # process, user, group


def is_own_user(line: socket.socket) -> bool:
    """Check whether the process at the other end of a Unix socket runs as this user."""
    data = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(data)[1] == os.geteuid()


def stranger(what: str, help: str) -> DiagnosticError:
    """Return the error for a process that does not belong to the launch, or may not belong to it."""
    return DiagnosticError([Diagnostic("PTO-E2423", what, help=help)])


def _proof(secret: bytes, role: bytes, caller: int, listener: int, nonces: bytes) -> bytes:
    return hmac.digest(secret, role + struct.pack("<II", caller, listener) + nonces, "sha256")


class _Guest:
    """A caller in the middle of its handshake."""

    def __init__(self, line: socket.socket, own: int, secret: bytes) -> None:
        self.line, self.own, self.secret = line, own, secret
        self.end = time.monotonic() + _GUEST_SECONDS
        self.rank = -1
        self._proven = False
        self._data = bytearray()
        self._want = b""  # the expected proof

    def goes_on(self) -> bool:
        """Read the data that has arrived. Return False if the handshake is over."""
        size = _PROOF if self._want else _HELLO.size
        try:
            data = self.line.recv(size - len(self._data))
            self._data += data
            if len(self._data) < size:
                return bool(data)
            if self._want:
                self._proven = hmac.compare_digest(self._data, self._want)
                return False
            return self._answers()
        except BlockingIOError:
            return True
        except OSError:
            return False

    def lets_in(self) -> bool:
        """Admit the caller if it has proven that it belongs to the launch. Return True if it was admitted."""
        if not self._proven:
            return False
        try:
            self.line.setblocking(True)
            self.line.sendall(_IN)
        except OSError:
            return False
        return True

    def _answers(self) -> bool:
        magic, self.rank, theirs = _HELLO.unpack(self._data)
        if magic != _MAGIC:
            return False
        self._data.clear()
        own = os.urandom(_NONCE)
        self._want = _proof(self.secret, b"caller", self.rank, self.own, theirs + own)
        answer = own + _proof(self.secret, b"listener", self.rank, self.own, theirs + own)
        return self.line.send(answer) == len(answer)


def admitted(
    listening: socket.socket, own: int, others: Collection[int], secret: bytes, end: float
) -> dict[int, socket.socket]:
    """Accept connections until each of the other ranks has proven itself, or until `end`. Return one
    connection per admitted rank. Refuse every other caller: a caller without a proof, with an unknown rank,
    or with a rank that was already admitted."""
    lines: dict[int, socket.socket] = {}
    guests: dict[socket.socket, _Guest] = {}  # in order of arrival
    listening.setblocking(False)
    with selectors.DefaultSelector() as waiting:
        waiting.register(listening, selectors.EVENT_READ)

        def leave(line: socket.socket) -> _Guest:
            waiting.unregister(line)
            return guests.pop(line)

        try:
            while len(lines) < len(others) and time.monotonic() < end:
                soonest = min([end, *(guest.end for guest in guests.values())])
                for key, _ in waiting.select(max(0.0, soonest - time.monotonic())):
                    line = key.fileobj
                    assert isinstance(line, socket.socket)
                    if line is listening:
                        caller = _accepted(listening)
                        if caller is not None:
                            guests[caller] = _Guest(caller, own, secret)
                            waiting.register(caller, selectors.EVENT_READ)
                    elif not guests[line].goes_on():
                        guest = leave(line)
                        if guest.rank in others and guest.rank not in lines and guest.lets_in():
                            lines[guest.rank] = line
                        else:
                            line.close()
                for line in [line for line, guest in guests.items() if guest.end <= time.monotonic()]:
                    leave(line).line.close()
                while len(guests) > _MOST_GUESTS:
                    leave(next(iter(guests))).line.close()
        finally:
            for line in guests:
                line.close()
    return dict(sorted(lines.items()))


def _accepted(listening: socket.socket) -> socket.socket | None:
    try:
        line, _ = listening.accept()
    except OSError:  # the caller has closed the connection
        return None
    if line.family == socket.AF_UNIX and not is_own_user(line):
        line.close()
        return None
    line.setblocking(False)
    return line


def introduce(line: socket.socket, own: int, other: int, secret: bytes, end: float) -> None:
    """Do the handshake as the caller, with the listener of rank `other`. Raise EOFError if the listener
    refuses."""
    nonce = os.urandom(_NONCE)
    line.settimeout(left(end))
    line.sendall(_HELLO.pack(_MAGIC, own, nonce))
    answer = _exactly(line, _NONCE + _PROOF, end)
    nonces = nonce + answer[:_NONCE]
    if not hmac.compare_digest(answer[_NONCE:], _proof(secret, b"listener", own, other, nonces)):
        raise stranger(
            f"the process that answers as rank {other} does not belong to the launch",
            "see which process listens there; run the same version of pto in all processes of a launch",
        )
    line.sendall(_proof(secret, b"caller", own, other, nonces))
    if _exactly(line, len(_IN), end) != _IN:
        raise EOFError
    line.settimeout(None)


def _exactly(line: socket.socket, size: int, end: float) -> bytes:
    data = b""
    while len(data) < size:
        line.settimeout(left(end))
        more = line.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def left(end: float) -> float:
    """Return the seconds until `end`; raise TimeoutError if `end` has passed."""
    found = end - time.monotonic()
    if found <= 0:
        raise TimeoutError("timed out")
    return found
