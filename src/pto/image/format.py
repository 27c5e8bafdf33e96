"""The image of a program: flat lists of instructions without addresses, one for each kind of core.

An instruction is one word, with its opcode in the low 24 bits and its length in words in the high 8, and the
words of its operands: offsets of values in the frame of the core, targets of jumps (indices of words),
numbers. Opcodes from `CALL` on call a function, by its index in `calls`. docs/image.md describes the rest.

`from_bytes` checks everything except the meaning of the words, which `check` does.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..bytecode.leb import Reader
from ..diag import Source
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

#: Limits of an image.
MOST_FRAME = 1 << 24
MOST_FRAMES = 1 << 26  # of all images of a listing, because a few digits can request a large frame
MOST_WORDS = 1 << 26


class ImageCode(Record):
    """The code of one kind of core."""

    kind: str  # cube, vector or mix
    words: tuple[int, ...]
    frame: bytes  # the initial content of the frame: constants and zeros
    # for each argument: its offset in the frame, and 1 for a view or 0 for a word
    arguments: tuple[tuple[int, int], ...]
    # for each instruction with a location: its first word, and the location
    places: tuple[tuple[int, int], ...]


class ImageFunction(Record):
    """A function for a launch: its name, and the names and types of its arguments."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    place: int = -1  # its source location


class Image(Record):
    """A kernel: the code of its cores, and the functions of the library that they call, by name.

    In a file it also has the data of a launch. In a file, a place is the number of an operation of the
    program, in the order of `Module.walk`. In memory, a place is a mark of `Module.mark`.
    """

    name: str
    target: str
    calls: tuple[str, ...]
    codes: tuple[ImageCode, ...]
    # one function, or one for the cube core and one for the vector cores
    functions: tuple[ImageFunction, ...] = ()
    dealt: tuple[int, ...] = ()  # arguments with a separate part for every block
    subblocks: int = 1  # vector cores of a mixed kernel
    capacity: tuple[tuple[str, int], ...] = ()  # bytes of memories that differ from the target


def call_of(word: int) -> int:
    """Return the number of the call of an instruction, by its first word; negative for other instructions."""
    return (word & 0xFFFFFF) - CALL


def to_bytes(image: Image) -> bytes:
    parts = [MAGIC, struct.pack("<I", VERSION), _text(image.name), _text(image.target)]
    parts.append(struct.pack("<I", len(image.capacity)))
    parts += [_text(name) + struct.pack("<Q", size) for name, size in image.capacity]
    parts.append(struct.pack("<I", len(image.functions)))
    for function in image.functions:
        parts += [_text(function.name), struct.pack("<I", function.place & 0xFFFFFFFF)]
        parts.append(struct.pack("<I", len(function.parameters)))
        parts += [_text(text) for parameter in function.parameters for text in parameter]
    parts += [_words(image.dealt), struct.pack("<I", image.subblocks)]
    parts.append(struct.pack("<I", len(image.calls)))
    parts += map(_text, image.calls)
    parts.append(struct.pack("<I", len(image.codes)))
    for code in image.codes:
        parts += [_text(code.kind), _words(code.words), struct.pack("<I", len(code.frame)), code.frame]
        parts.append(_words([n for pair in code.arguments for n in pair]))
        parts.append(_words([n & 0xFFFFFFFF for pair in code.places for n in pair]))
    return b"".join(parts)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")  # `listing` rejects other surrogates
    return struct.pack("<I", len(data)) + data


def _words(words: Sequence[int]) -> bytes:
    return struct.pack(f"<I{len(words)}I", len(words), *words)


class Read(Record):
    """An image that was read: its end, and the first word of each code."""

    image: Image
    end: int
    words: tuple[int, ...]


class ImageReader(Reader):
    """Reads counts and texts of 32 bits."""

    __slots__ = ()

    def many(self, of: str, size: int, most: int = 1 << 32) -> int:
        """Read a count of items that take at least `size` bytes each."""
        start = self.at
        value = self.u32()
        most = min(most, (self.end - self.at) // size)
        if value > most:
            self.fail(
                "PTO-E1209", f"{value} {of} cannot be in {self.what}", start, expected=f"at most {most}",
                got=str(value), help="the file is cut or damaged: make it again with ptoas",
            )  # fmt: skip
        return value

    def text(self, of: str) -> str:
        raw = self.take(self.many(f"bytes of {of}", 1))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as e:
            self.fail("PTO-E1207", f"{of} is not UTF-8", self.at - len(raw) + e.start)

    def words(self, of: str, most: int = MOST_WORDS) -> tuple[int, ...]:
        count = self.many(of, 4, most)
        return struct.unpack(f"<{count}I", self.take(4 * count))

    def pairs(self, of: str) -> tuple[tuple[int, int], ...]:
        start = self.at
        found = self.words(of)
        if len(found) % 2:
            self.fail("PTO-E1214", f"expected pairs of {of}", start, got=f"{len(found)} numbers")
        return tuple(zip(found[::2], found[1::2], strict=True))


def from_bytes(data: bytes, name: str = "<image>", at: int = 0, end: int | None = None) -> Read:
    """Return the image that begins at a byte; raise `DiagnosticError` with a byte offset. Bytes after the
    image are not read: see `sole`."""
    r = ImageReader(data, Source(name, ""), "the image", at, end)
    if data[at : at + len(MAGIC)] != MAGIC or r.end - at < len(MAGIC):
        r.fail("PTO-E1221", "not an image", expected=repr(MAGIC)[1:],
               help="ptoas FILE -o FILE.elf makes one")  # fmt: skip
    r.at += len(MAGIC)
    version = r.u32()
    if version != VERSION:
        r.fail("PTO-E1222", f"unsupported version {version}", r.at - 4, expected=f"version {VERSION}",
               got=str(version), help="assemble it again, or use the release that made it")  # fmt: skip
    kernel, target = r.text("a name"), r.text("a target")
    capacity = tuple((r.text("a memory"), int.from_bytes(r.take(8), "little"))
                     for _ in range(r.many("memories", 12)))  # fmt: skip
    functions = tuple(_function(r) for _ in range(r.many("functions", 12, 2)))
    dealt, subblocks = r.words("arguments that are dealt out"), r.u32()
    calls = tuple(r.text("a call") for _ in range(r.many("calls", 4)))
    codes: list[ImageCode] = []
    starts: list[int] = []
    for _ in range(r.many("codes", 20, 2)):
        kind = r.text("a kind of core")
        starts.append(r.at + 4)
        words = r.words("words")
        frame = r.take(r.many("bytes of a frame", 1, MOST_FRAME))
        arguments, places = r.pairs("arguments"), r.pairs("places")
        codes.append(ImageCode(kind, words, frame, arguments, places))
    image = Image(kernel, target, calls, tuple(codes), functions, dealt, subblocks, capacity)
    return Read(image, r.at, tuple(starts))


def _function(r: ImageReader) -> ImageFunction:
    name, place = r.text("a name"), r.u32()
    parameters = tuple((r.text("a name"), r.text("a type")) for _ in range(r.many("parameters", 8)))
    return ImageFunction(name, parameters, _signed(place))


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def sole(data: bytes, name: str = "<image>") -> Read:
    """Return the only image of some bytes; reject bytes after it."""
    found = from_bytes(data, name)
    ImageReader(data, Source(name, ""), "the image", found.end).finish()
    return found
