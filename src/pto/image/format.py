"""The image of a program: what every kind of core executes, as flat lists without addresses.

An instruction is one word, its opcode in the low 24 bits and its length in words in the high 8, and the words
of its operands: offsets of values in the frame of the core, targets of jumps (indices of words), numbers.
Opcodes from `CALL` on call a function, by its place in `calls`. docs/image.md describes the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NoReturn

from ..diag import Diagnostic, DiagnosticError
from ..isa.record import Record

MAGIC = b"PTOIMAGE"
VERSION = 1

#: Opcodes; from CALL on they are calls.
END, JUMP, UNLESS, ENTER, NEXT, COPY, EQUAL = range(7)
CALL = 16
NAMES = {
    END: "end",
    JUMP: "jump",
    UNLESS: "unless",
    ENTER: "enter",
    NEXT: "next",
    COPY: "copy",
    EQUAL: "equal",
}
KINDS = ("mix", "cube", "vector")


class Code(Record):
    """What one kind of core executes."""

    kind: str  # cube, vector or mix
    words: tuple[int, ...]
    frame: bytes  # as it is when a core begins: constants, and zeros
    arguments: tuple[tuple[int, int], ...]  # offset in the frame, and 1 for a view or 0 for a word
    places: tuple[
        tuple[int, int], ...
    ]  # index of the first word of an instruction, and its place in the source


class Image(Record):
    """A kernel: what its cores execute, and the functions of the library that they call, by name."""

    name: str
    target: str
    calls: tuple[str, ...]
    codes: tuple[Code, ...]


def to_bytes(image: Image) -> bytes:
    parts = [MAGIC, struct.pack("<I", VERSION), _text(image.name), _text(image.target)]
    parts.append(struct.pack("<I", len(image.calls)))
    parts += map(_text, image.calls)
    parts.append(struct.pack("<I", len(image.codes)))
    for code in image.codes:
        parts += [_text(code.kind), _words(code.words), struct.pack("<I", len(code.frame)), code.frame]
        parts.append(_words([n for pair in code.arguments for n in pair]))
        parts.append(_words([n & 0xFFFFFFFF for pair in code.places for n in pair]))
    return b"".join(parts)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack("<I", len(data)) + data


def _words(words: Sequence[int]) -> bytes:
    return struct.pack(f"<I{len(words)}I", len(words), *words)


class Read(Record):
    """An image that was read, and where it ends."""

    image: Image
    end: int


def from_bytes(data: bytes, name: str = "<image>", at: int = 0) -> Read:
    """The image that begins at a byte; raises `DiagnosticError` where there is none."""
    r = _Reader(data, name, at)
    if r.take(len(MAGIC)) != MAGIC:
        r.fail("this is no image")
    version = r.number()
    if version != VERSION:
        r.fail(f"an image of version {version}, where {VERSION} is known")
    kernel, target = r.text(), r.text()
    calls = tuple(r.text() for _ in range(r.count(4)))
    codes = tuple(_code(r) for _ in range(r.count(20)))
    return Read(Image(kernel, target, calls, codes), r.at)


def _code(r: _Reader) -> Code:
    kind, words, frame = r.text(), r.words(), r.take(r.count(1))
    arguments, places = r.words(), r.words()
    if kind not in KINDS or len(arguments) % 2 or len(places) % 2:
        r.fail("an image that is damaged")
    marks = [n - (1 << 32) if n >> 31 else n for n in places[1::2]]
    return Code(
        kind, words, frame, tuple(zip(arguments[::2], arguments[1::2], strict=True)),
        tuple(zip(places[::2], marks, strict=True)),
    )  # fmt: skip


class _Reader:
    """Reads what `to_bytes` wrote; counts are held against what is left."""

    def __init__(self, data: bytes, name: str, at: int) -> None:
        self.data, self.name, self.at = data, name, at

    def fail(self, why: str) -> NoReturn:
        raise DiagnosticError([
            Diagnostic("PTO-E2405", f"'{self.name}' holds {why}, at byte {self.at}",
                       help="make it again, with ptoas of this release")
        ])  # fmt: skip

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            self.fail("an image that is cut")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def count(self, size: int) -> int:
        """How many follow, each of at least so many bytes."""
        number = self.number()
        if number * size > len(self.data) - self.at:
            self.fail("an image that is cut")
        return number

    def text(self) -> str:
        return self.take(self.count(1)).decode("utf-8", "surrogateescape")

    def words(self) -> tuple[int, ...]:
        count = self.count(4)
        return struct.unpack(f"<{count}I", self.take(4 * count))
