"""The image of a program: what every kind of core executes, as flat lists without addresses.

An instruction is one word, its opcode in the low 24 bits and its length in words in the high 8, and the words
of its operands: offsets of values in the frame of the core, targets of jumps (indices of words), numbers.
Opcodes from `CALL` on call a function, by its place in `calls`. docs/image.md describes the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

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
