"""Read the traces of whole programs, which ranks write to files of their launcher (native/host/trace.hpp).

`events` yields the launches of a rank, each with its memory at the start and the records of its cores, and
the barriers of all hosts. Kernels are found in the program itself (`HostProgram`): its addresses are the same
in every rank, and records name its constants by address.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator

import numpy as np

from ..diag import Diagnostic, DiagnosticError
from ..engine.elements import Array
from ..image.elf import DYNSYM, BadElf, Elf
from ..isa.record import Record

_ARRAY, _MEMORY, _WINDOW, _LAUNCH, _RECORDS, _ENDED, _BARRIER = range(1, 8)
#: Kind and size before a message, and the checksum after it.
_HEAD, _SUM = struct.Struct("<QQ"), struct.Struct("<Q")
_KINDS = ("mix", "cube", "vector")
#: ELF constants: a segment with contents, and a program with fixed addresses.
_LOADED, _FIXED = 1, 2

#: A window: its group, and its rank in the group.
WindowName = tuple[int, int]
#: Memory of a rank: its name and its address.
PieceName = tuple[str, int]


class MemoryPiece(Record):
    """Memory that a kernel may access; `window` is None for private memory of the rank."""

    address: int
    size: int
    name: str
    window: WindowName | None
    own: bool

    @property
    def key(self) -> PieceName:
        """Return the identity of this memory within the rank."""
        return self.name, self.address


class HostWrite(Record):
    """Bytes that the host of a rank wrote to a window."""

    window: WindowName
    offset: int
    data: bytes


class RankLaunch:
    """A launch of a rank."""

    def __init__(
        self,
        name: str,
        blocks: int,
        vectors: int,
        pieces: list[MemoryPiece],
        contents: dict[PieceName, Array],
    ) -> None:
        #: The target that the program was built for.
        self.target, _, self.kernel = name.partition(" ")
        self.blocks = blocks
        #: Cores of a block: kind and sub-block.
        self.cores = [("cube", 0), *(("vector", n) for n in range(vectors))] if vectors else [("mix", 0)]
        self.pieces = pieces
        #: Memory of the rank when the launch began, by its key.
        self.contents = contents
        #: Writes of the host to windows, since the previous launch or barrier.
        self.host_writes: list[HostWrite] = []
        self._records: dict[tuple[int, str, int], list[bytes]] = {}
        #: Status (0 done, 1 failed, 2 stuck), text and return addresses of a launch that has ended.
        self.status: int | None = None
        self.text = ""
        self.frames: tuple[int, ...] = ()

    def add(self, block: int, core: int, records: bytes) -> None:
        """Add records of a core."""
        self._records.setdefault((block, _KINDS[core & 0xFF], core >> 8), []).append(records)

    def words(self, block: int, kind: str, sub: int) -> list[int]:
        """Return the records of a core."""
        return memoryview(b"".join(self._records.get((block, kind, sub), ()))).cast("Q").tolist()


class HostProgram:
    """A traced program."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as f:
            data = f.read()
        try:
            elf = Elf(data)
            if elf.kind != _FIXED or all(s.name != "pto_host_trace" for s in elf.symbols(DYNSYM)):
                raise BadElf("it is not traced")
        except BadElf:
            raise DiagnosticError([
                Diagnostic("PTO-E2405", f"cannot trace '{path}': built without traced calls",
                           help="give its C++ sources, or build it again: pto ranks --sanitize all -o FILE")
            ]) from None  # fmt: skip
        self.path = path
        segments = [s for s in elf.segments if s[0] == _LOADED]
        first = min(s[3] for s in segments)
        self._image = mmap.mmap(-1, max(s[3] + s[6] for s in segments) - first)
        for _, _, offset, address, _, size, _, _ in segments:
            self._image[address - first : address - first + size] = data[offset : offset + size]
        #: Distance from an address in the program to the same bytes in this process.
        self.shift = np.frombuffer(self._image, np.uint8).ctypes.data - first


class HostBarrier:
    """A barrier of the hosts of all ranks, or the end of a rank."""

    def __init__(self, host_writes: list[HostWrite]) -> None:
        #: Writes of the host to windows since the last launch.
        self.host_writes = host_writes


class Truncated(Exception):
    """A trace that ends in the middle of a message: the rank was killed, or a disk is full."""


def _damaged(at: int, size: int) -> DiagnosticError:
    message = f"the trace of a rank is damaged: wrong checksum of the message at byte {at} of {size}"
    help = (
        "build the program again with this version of pto; if the error persists, check the disk of the "
        "temporary files (TMPDIR)"
    )
    return DiagnosticError([Diagnostic("PTO-E2424", message, help=help)])


def _messages(file: int) -> Iterator[tuple[int, bytes]]:
    """Yield kinds and contents of messages."""
    size = os.fstat(file).st_size
    if not size:
        return
    with mmap.mmap(file, size, prot=mmap.PROT_READ) as data:
        at = 0
        while at < size:
            begin = at + _HEAD.size
            kind, count = _HEAD.unpack_from(data, at) if begin <= size else (0, size)
            end = begin + count
            if end + _SUM.size > size:
                raise Truncated
            if zlib.adler32(data[at:end]) != _SUM.unpack_from(data, end)[0]:
                raise _damaged(at, size)
            yield kind, data[begin:end]
            at = end + _SUM.size


def events(file: int, ranks: int) -> Iterator[RankLaunch | HostBarrier]:
    """Yield the launches and barriers in the trace of a rank. Raise `Truncated` at the end of a trace that
    ends in the middle of a message."""
    contents: dict[PieceName, Array] = {}
    pieces: list[MemoryPiece] = []
    writes: list[HostWrite] = []
    launch: RankLaunch | None = None
    messages = _messages(file)
    truncated = False
    while True:
        try:
            kind, data = next(messages)
        except StopIteration:
            break
        except Truncated:
            truncated = True
            break
        if launch is not None and kind not in (_RECORDS, _ENDED):
            yield launch
            launch = None
        if kind == _ARRAY:
            address, bytes_, group, rank, own = struct.unpack_from("<5Q", data)
            name = data[40:].decode("utf-8", "replace")
            window = (group, rank) if group else None
            pieces.append(MemoryPiece(address, bytes_, name, window, bool(own)))
        elif kind == _MEMORY:
            _write(contents, pieces, struct.unpack_from("<Q", data)[0], data[8:])
        elif kind == _WINDOW:
            group, rank, offset = struct.unpack_from("<3Q", data)
            writes.append(HostWrite((group, rank), offset, data[24:]))
        elif kind == _LAUNCH:
            blocks, vectors = struct.unpack_from("<QQ", data)
            name = data[16:].decode("utf-8", "replace")
            held = {p.key: contents[p.key].copy() for p in pieces if p.key in contents}
            launch = RankLaunch(name, blocks, vectors, pieces, held)
            launch.host_writes, writes, pieces = writes, [], []
        elif kind == _RECORDS and launch is not None:
            block, core = struct.unpack_from("<QQ", data)
            launch.add(block, core, data[16:])
        elif kind == _ENDED and launch is not None:
            launch.status, *frames = struct.unpack_from("<13Q", data)
            launch.frames = tuple(a for a in frames if a)
            launch.text = data[104:].decode("utf-8", "replace")
            yield launch
            launch = None
        elif kind == _BARRIER and struct.unpack_from("<Q", data)[0] == ranks:
            yield HostBarrier(writes)
            writes = []
    if launch is not None:
        yield launch
    if truncated:
        raise Truncated


def _write(contents: dict[PieceName, Array], pieces: list[MemoryPiece], address: int, data: bytes) -> None:
    """Update the contents of memory of a rank."""
    piece = next(p for p in pieces if p.window is None and p.address <= address < p.address + p.size)
    held = contents.get(piece.key)
    if held is None or held.size != piece.size:
        held = contents[piece.key] = np.zeros(piece.size, np.uint8)
    offset = address - piece.address
    held[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
