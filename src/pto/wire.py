"""Messages between processes: typed fields of bounded size, read without trusting the sender.

    data = pack("is", 3, "text")
    unpack("is", data, "rank 1")  # -> (3, "text")

A field is `i` (a signed integer of 8 bytes), `u` (an unsigned one), `s` (text, UTF-8) or `b` (bytes). Text
and bytes begin with their size. A reader names the fields it expects; any other message is PTO-E2423. On a
stream, the size of a message comes before it (`framed`, `receive`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from .diag import Diagnostic, DiagnosticError

#: Maximum size of a message without arrays.
SHORT = 1 << 20
_NUMBERS = {"i": struct.Struct("<q"), "u": struct.Struct("<Q")}
_SIZE = _NUMBERS["u"]
#: Bytes per read. Memory use grows with the data that has arrived, not with the announced size.
_PIECE = 1 << 20


def refused(sender: str, why: str) -> DiagnosticError:
    """Return the error for an unreadable message."""
    return DiagnosticError([
        Diagnostic("PTO-E2423", f"cannot read a message from {sender}: {why}",
                   help="run the same version of pto in all processes of a launch")
    ])  # fmt: skip


def pack(kinds: str, *fields: int | str | bytes) -> bytes:
    """Encode fields, a letter of `kinds` for each."""
    parts: list[bytes] = []
    for kind, field in zip(kinds, fields, strict=True):
        if isinstance(field, int):
            parts.append(_NUMBERS[kind].pack(field))
            continue
        data = field.encode("utf-8", "replace") if isinstance(field, str) else field
        parts += _SIZE.pack(len(data)), data
    return b"".join(parts)


def unpack(kinds: str, data: bytes, sender: str = "another process") -> tuple[Any, ...]:
    """Decode the fields of a message; refuse a message with other fields, or with bytes after them."""
    fields: list[int | str | bytes] = []
    at = 0
    for kind in kinds:
        if len(data) - at < 8:
            raise refused(sender, f"expected {len(kinds)} fields, got {len(fields)}")
        (number,) = _NUMBERS.get(kind, _SIZE).unpack_from(data, at)
        at += 8
        if kind in _NUMBERS:
            fields.append(number)
            continue
        if number > len(data) - at:
            raise refused(sender, f"expected a field of {number} bytes, got {len(data) - at}")
        field = data[at : at + number]
        at += number
        try:
            fields.append(field.decode() if kind == "s" else field)
        except UnicodeDecodeError:
            raise refused(sender, "expected text in UTF-8") from None
    if at != len(data):
        raise refused(sender, f"expected {at} bytes, got {len(data)}")
    return tuple(fields)


def framed(data: bytes) -> bytes:
    """Return a message as it is sent over a stream."""
    return _SIZE.pack(len(data)) + data


def receive(read: Callable[[int], bytes], most: int, sender: str = "another process") -> bytes:
    """Read a message of at most `most` bytes. `read(n)` returns 1 to n bytes, or none at the end of the
    stream. Raise EOFError if the stream ends inside the message."""
    (size,) = _SIZE.unpack(_exactly(read, _SIZE.size))
    if size > most:
        raise refused(sender, f"expected at most {most} bytes, got {size}")
    return _exactly(read, size)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = read(min(_PIECE, size - len(found)))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)
