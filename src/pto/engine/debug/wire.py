"""Messages of the Debug Adapter Protocol on a stream: headers, then JSON.

Malformed messages are reported, and reading continues after them if possible: a stream never makes a reader
raise, wait for a length that is not given, or keep more than `LARGEST` bytes.
"""

from __future__ import annotations

import json
import threading
from typing import BinaryIO, NamedTuple

#: Limits for a message and its headers, in bytes.
LARGEST = 1 << 24
LONGEST_HEADERS = 1 << 14


class Bad(NamedTuple):
    """A malformed message; `last` if nothing can follow."""

    why: str
    last: bool = False


def read(stream: BinaryIO | Bounded) -> dict[str, object] | Bad | None:
    """Return the next message; None at the end of the stream."""
    headers = _headers(stream)
    if headers is None or isinstance(headers, Bad):
        return headers
    text = headers.get("content-length", "")
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        return Bad(
            f"a message without a length: Content-Length is {text!r}"
            if text
            else "a message without Content-Length"
        )
    size = int(text)
    if size > LARGEST:
        return Bad(f"expected a message of at most {LARGEST} bytes, got {size}", last=True)
    body = stream.read(size)
    if len(body) < size:
        return Bad(f"the stream ended within a message: {len(body)} of {size} bytes", last=True)
    try:
        found = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as e:
        return Bad(f"cannot read a message as JSON: {e}"[:200])
    if not isinstance(found, dict):
        return Bad(f"expected a message that is a JSON object, got {type(found).__name__}")
    return found


def _headers(stream: BinaryIO | Bounded) -> dict[str, str] | Bad | None:
    found: dict[str, str] = {}
    size = 0
    while True:
        line = stream.readline(LONGEST_HEADERS)
        size += len(line)
        if not line:
            return None if not size else Bad("the stream ended within headers", last=True)
        if size > LONGEST_HEADERS:
            return Bad(f"headers of more than {LONGEST_HEADERS} bytes", last=True)
        text = line.decode("latin-1").strip()
        if not text:
            if found:
                return found
            if size > 2:
                return Bad("headers without a name")
            size = 0  # an empty line between messages
            continue
        name, colon, value = text.partition(":")
        if colon:
            found[name.strip().lower()] = value.strip()


class Bounded:
    """A stream that ends after a number of bytes."""

    def __init__(self, stream: BinaryIO, left: int) -> None:
        self._stream, self._left = stream, left

    def readline(self, most: int) -> bytes:
        line = self._stream.readline(min(most, self._left))
        self._left -= len(line)
        return line

    def read(self, size: int) -> bytes:
        if size > self._left:
            return b""
        self._left -= size
        return self._stream.read(size)


class Sender:
    """Writes numbered messages; from several threads."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._last = 0
        self.gone = False

    def send(self, kind: str, **fields: object) -> None:
        with self._lock:
            self._last += 1
            body = json.dumps({"seq": self._last, "type": kind, **fields}, allow_nan=False).encode()
            if self.gone:
                return
            try:
                self._stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                self._stream.flush()
            except (OSError, ValueError):  # the client has closed the stream
                self.gone = True

    def event(self, name: str, **body: object) -> None:
        self.send("event", event=name, body=body)
