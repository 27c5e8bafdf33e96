"""Ways to spoil a binary file: numbers, counts, offsets and texts of PTO-BC, ELF, images, `.npy` and `.npz`.

Every mutation knows the form of its file and keeps the rest of it right, so that damage gets past the first check.
Pure functions of a `Random`.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Sequence
from random import Random

from pto.bytecode import format
from pto.bytecode.leb import write_uleb

from . import fragments

_EDGES = (
    0,
    1,
    2,
    3,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 62,
    (1 << 64) - 1,
)


def edge(r: Random, size: int, near: int = 0) -> bytes:
    """A number of some bytes at an end of a range: of numbers, or of a file."""
    value = r.choice((*_EDGES, near, near - 1, near + 1, near // 2, r.getrandbits(8 * size)))
    return (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def damaged(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    """Bytes changed, left out, put in, moved, doubled, or taken from another file."""
    out = bytearray(data or b"\0")
    for _ in range(r.choice((1, 1, 1, 2, 5))):
        at = r.randrange(len(out) + 1)
        act = r.randrange(9)
        if act == 0:
            out[at : at + 1] = bytes([out[at] ^ 1 << r.randrange(8)]) if at < len(out) else b"\xff"
        elif act in (1, 2):
            size = r.choice((1, 2, 4, 4, 8))
            at -= at % size if r.random() < 0.5 else 0
            out[at : at + size] = edge(r, size, len(out))
        elif act == 3:
            del out[at : at + r.choice((1, 2, 4, 8, 16, 300))]
        elif act == 4:
            out[at:at] = r.randbytes(r.randrange(1, 9))
        elif act == 5:
            other = r.randrange(len(out) + 1)
            out[at : at + 8] = out[other : other + 8]
        elif act == 6:
            del out[at:]
        elif act == 7:
            out[at:at] = out[at : at + r.choice((1, 4, 16, 64))] * r.choice((1, 2, 40))
        elif others:
            other = r.choice(others)
            out[at:] = other[r.randrange(len(other) + 1) :]
    return bytes(out)


# -- PTO-BC ---------------------------------------------------------------------------------------------------


def _uleb(value: int) -> bytes:
    out = bytearray()
    write_uleb(out, value)
    return bytes(out)


def _sections(data: bytes) -> list[tuple[int, bytes]]:
    found, at = list[tuple[int, bytes]](), 14
    while at + 5 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 5], "little")
        found.append((data[at], data[at + 5 : at + 5 + size]))
        at += 5 + size
    return found


def _joined(sections: Sequence[tuple[int, bytes]]) -> bytes:
    payload = b"".join(bytes([number]) + len(data).to_bytes(4, "little") + data for number, data in sections)
    return format.MAGIC + bytes(4) + len(payload).to_bytes(4, "little") + payload


def _strings(section: bytes) -> list[bytes]:
    """The texts of a section, of a file that is well-formed."""
    at, found = 0, list[bytes]()

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (section[at] & 0x7F) << shift
            shift += 7
            at += 1
            if section[at - 1] < 0x80:
                return value

    for _ in range(number()):
        size = number()
        found.append(section[at : at + size])
        at += size
    return found


def _leb(data: bytes, r: Random) -> bytes:
    """Another number in place of a byte: overlong, too wide, or at an end of a range."""
    if not data:
        return data
    at = r.randrange(len(data))
    value = r.choice((
        b"\x80" * r.randrange(1, 11) + b"\0", b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x7f", b"\xff" * r.randrange(1, 12),
        _uleb(r.choice(_EDGES)), bytes([r.choice((0, 1, 2, 3, 4, 5, 7, 0x10, 0x20, 0x40, 0x7F))]), b"",
    ))  # fmt: skip
    return data[:at] + value + data[at + r.choice((0, 1, 1, 1, 1)) :]


def bytecode(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    """Return a file of bytecode with changed sections or contents; their sizes mostly right."""
    kind = r.randrange(8)
    if kind == 0:
        return damaged(data, r, others)
    sections = _sections(data)
    if kind == 1:
        whole = damaged(data, r)
        return whole[:10] + max(0, len(whole) - 14).to_bytes(4, "little") + whole[14:]
    at = r.randrange(len(sections))
    if kind == 2:
        act = r.randrange(4)
        if act == 0:
            del sections[at]
        elif act == 1:
            sections.insert(at, r.choice(sections))
        elif act == 2:
            sections[at] = r.randrange(9), sections[at][1]
        else:
            sections[at] = sections[at][0], r.choice(_sections(r.choice(others or (data,))))[1]
        return _joined(sections)
    if kind in (3, 4):
        texts = _strings(sections[0][1])
        for _ in range(r.choice((1, 1, 3))):
            pieces = (fragments.type, fragments.dictionary, fragments.string, fragments.attribute)
            piece = r.choice((*pieces, fragments.symbol, lambda r: r.choice(fragments.PATHS)))(r)
            if texts:
                texts[r.randrange(len(texts))] = piece.encode("utf-8", "surrogatepass")
        table = b"".join(_uleb(len(t)) + t for t in texts)
        sections[0] = sections[0][0], _uleb(len(texts) + r.choice((0, 0, 0, 1, -1, 1 << 20))) + table
        return _joined(sections)
    at = r.choice((at, len(sections) - 1, 4 if len(sections) > 4 else at))
    for _ in range(r.choice((1, 1, 2))):
        sections[at] = sections[at][0], (_leb if r.random() < 0.7 else damaged)(sections[at][1], r)
    return _joined(sections)


# -- ELF ------------------------------------------------------------------------------------------------------

#: Offset and size of the fields of the header, and of an entry of the tables of sections and segments.
_HEADER = (
    (4, 1),
    (5, 1),
    (16, 2),
    (18, 2),
    (32, 8),
    (40, 8),
    (52, 2),
    (54, 2),
    (56, 2),
    (58, 2),
    (60, 2),
    (62, 2),
)
_SECTION = ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8))
_SEGMENT = ((0, 4), (8, 8), (32, 8), (40, 8))


def elf(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    """Return an ELF file with changed fields of its header, its sections or its segments, or contents of a
    section."""
    kind = r.randrange(5)
    if kind == 0 or len(data) < 64:
        return damaged(data, r, others)
    out = bytearray(data)
    table, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    for _ in range(r.choice((1, 1, 2))):
        field, size = r.choice(_HEADER)
        if kind in (1, 2) and count:
            number = r.randrange(count)
            field, size = r.choice(_SECTION)
            field += table + 64 * number
            if kind == 2:  # inside of the section
                begin, length = struct.unpack_from("<QQ", data, table + 64 * number + 24)
                if length >= 8 and begin + length <= len(data):
                    field, size = begin + r.randrange(length - 4), r.choice((1, 4, 4, 8))
        elif kind == 3 and (segments := struct.unpack_from("<H", data, 56)[0]):
            field, size = r.choice(_SEGMENT)
            field += struct.unpack_from("<Q", data, 32)[0] + 56 * r.randrange(segments)
        out[field : field + size] = edge(r, size, r.choice((len(out), field)))
    return bytes(out)


# -- arrays ---------------------------------------------------------------------------------------------------

_DESCRS = (
    "'<f4'", "'>f4'", "'|O'", "'|V3'", "'|V2'", "'<U99999999'", "'<M8[ns]'", "'<c16'", "'|b1'", "'<f2'", "'|S0'", "'<i8'", "None", "5",
    "[('a', '<f4'), ('b', '|O')]", "[('a', '<f4', (99999999999,))]", "('<f4', (2,))", "''", "'<f4' * 10**9", "{'a': 1}", "'|V0'", "()",
)  # fmt: skip
_SHAPES = (
    "(2, 3)", "()", "(0,)", "(-1,)", "(1000000000000,)", "(9223372036854775807,)", "(99999999999999999999,)", "(2**40,)", "(1 << 60,)",
    "(-2, -3)", "(0, 1000000000000)", "[2, 3]", "6", "(2.0,)", "('a',)", "(True,)", "(None,)", "(65536, 65536, 65536, 65536)", "(1,) * 33", "(3,)",
)  # fmt: skip
_PAYLOADS = (
    "(" * 300,
    "-" * 4000,
    "[" * 5000,
    "'" * 3,
    "\n" * 50,
    "\0",
    "é",
    "1" * 5000,
    "lambda: 0",
    "x" * 9990,
    '"""',
    "{**{}}",
    "1L",
    "(1L,)",
)


def npy_header(r: Random) -> str:
    """The text of a header: a dictionary, mostly."""
    if r.random() < 0.15:
        return r.choice((*fragments.CODE, *_PAYLOADS)).replace("\\n", "\n")
    descr = r.choice(_DESCRS) if r.random() < 0.6 else "'<f4'"
    shape = r.choice(_SHAPES) if r.random() < 0.6 else "(2, 3)"
    order = r.choice(("False", "True", "None", "0", "'x'")) if r.random() < 0.3 else "False"
    items = [f"'descr': {descr}", f"'fortran_order': {order}", f"'shape': {shape}"]
    if r.random() < 0.15:
        items[r.randrange(3)] = r.choice(
            ("", "'more': 1", f"'descr': {r.choice(fragments.CODE)}", r.choice(_PAYLOADS))
        )
    return "{" + ", ".join(items) + ", }"


def npy(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    """An array file with another header, another length of it, or too many or too few elements."""
    if r.random() < 0.2:
        return damaged(data, r, others)
    text = npy_header(r).encode("utf-8", "surrogatepass")
    version = r.choice((1, 1, 1, 2, 3, 9))
    text += b" " * r.choice((0, 1, 63)) + b"\n" * r.choice((1, 1, 1, 0))
    size = len(text) if r.random() < 0.9 else r.choice((0, 1, len(text) - 1, 10001, 65535, (1 << 32) - 1))
    head = (size & 0xFFFF).to_bytes(2, "little") if version == 1 else size.to_bytes(4, "little")
    return (
        b"\x93NUMPY"
        + bytes([version, r.choice((0, 0, 0, 1))])
        + head
        + text
        + bytes(r.choice((24, 24, 24, 0, 12, 1, 300)))
    )


def npz(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    """An archive of arrays: members changed, left out, doubled, or claimed to be larger than they are."""
    if r.random() < 0.3:
        return damaged(data, r, others)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            content = old.read(name)
            act = r.randrange(12)
            if act == 0:
                content = npy(content, r)
            elif act == 1:
                content = damaged(content, r)
            elif act == 2:
                name = r.choice((name + "x", "../pwned.npy", "x", "meta.npy", "tasks"))
            elif act == 3:
                continue
            if name not in new.namelist():  # Python warns of it
                new.writestr(name, content)
    made = bytearray(out.getvalue())
    at = made.rfind(b"PK\x01\x02")
    if (
        at >= 0 and r.random() < 0.3
    ):  # of the last member in the list of all: compression, flags, sizes, offset
        field, size = r.choice(((8, 2), (10, 2), (20, 4), (24, 4), (28, 2), (42, 4)))
        made[at + field : at + field + size] = edge(r, size, len(made))
    return bytes(made)
