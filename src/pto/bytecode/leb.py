"""Read and write bytes: LEB128, little-endian integers, and a reader that fails with a code and a byte
offset.

LEB128 numbers are written in their shortest form, and no other form is accepted. The reader accepts at most
64 bits.
"""

from __future__ import annotations

from typing import NoReturn

from ..diag import Diagnostic, DiagnosticError, Source, Span

_LONGEST = 10  # bytes of a 64-bit LEB128 number


def write_uleb(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_sleb(out: bytearray, value: int) -> None:
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)


class Reader:
    """A window `at..end` of a file. `what` names it in messages."""

    __slots__ = ("at", "data", "end", "source", "what")

    def __init__(self, data: bytes, source: Source, what: str, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.source = source
        self.what = what
        self.at = at
        self.end = len(data) if end is None else end

    def fail(self, code: str, message: str, at: int | None = None, **more: str) -> NoReturn:
        fail(self.source, code, message, self.at if at is None else at, **more)

    def take(self, count: int) -> bytes:
        if count > self.end - self.at:
            left = self.end - self.at
            self.fail("PTO-E1205", f"{self.what} ends here: expected {count} more bytes, got {left}")
        self.at += count
        return self.data[self.at - count : self.at]

    def u8(self) -> int:
        at = self.at
        if at >= self.end:
            self.fail("PTO-E1205", f"{self.what} ends here: expected one more byte")
        self.at = at + 1
        return self.data[at]

    def u16(self) -> int:
        return int.from_bytes(self.take(2), "little")

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def uleb(self) -> int:
        at = self.at
        if at < self.end and self.data[at] < 0x80:  # fast path for nearly all numbers of a file
            self.at = at + 1
            return self.data[at]
        return self._leb(signed=False)

    def sleb(self) -> int:
        return self._leb(signed=True)

    def _leb(self, signed: bool) -> int:
        start = self.at
        value, shift, byte, previous = 0, 0, 0x80, 0
        while byte & 0x80:
            if self.at - start == _LONGEST:
                self.fail("PTO-E1206", "LEB128 number is longer than 64 bits", start)
            previous, byte = byte, self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
        if signed:
            value -= (byte & 0x40) << (shift - 6)
            fits = -(1 << 63) <= value < 1 << 63
            padded = shift > 7 and (byte, previous & 0x40) in ((0x00, 0x00), (0x7F, 0x40))
        else:
            fits = value < 1 << 64
            padded = shift > 7 and byte == 0
        if not fits:
            self.fail("PTO-E1206", "LEB128 number is longer than 64 bits", start)
        if padded:
            self.fail("PTO-E1206", "LEB128 number is not in its shortest form", start)
        return value

    def count(self, of: str, size: int = 1) -> int:
        """Read a count of items of at least `size` bytes each; refuse a count that exceeds the rest of the
        window."""
        start = self.at
        value = self.uleb()
        if value * size > self.end - self.at:
            self.fail(
                "PTO-E1209", f"{value} {of} do not fit in the rest of {self.what}", start,
                expected=f"at most {(self.end - self.at) // size}", got=str(value),
            )  # fmt: skip
        return value

    def index(self, of: str, size: int, first: int = 0) -> int:
        """Read an id of a table of `size` entries whose ids begin at `first`."""
        start = self.at
        value = self.uleb()
        if not first <= value < first + size:
            known = f"{first} .. {first + size - 1}" if size else "no id: the table is empty"
            self.fail("PTO-E1208", f"{of} id {value} is out of range", start, expected=known, got=str(value))
        return value

    def finish(self) -> None:
        if self.at != self.end:
            self.fail("PTO-E1210", f"unexpected {self.end - self.at} bytes at the end of {self.what}")


def fail(source: Source, code: str, message: str, at: int, **more: str) -> NoReturn:
    """Raise an error for a file. A bytecode file counts as one line, so the column is the byte offset plus
    one."""
    span = Span(source, at, at + 1)
    raise DiagnosticError([Diagnostic(code, f"byte {at} (0x{at:x}): {message}", span, **more)])  # type: ignore[arg-type]
