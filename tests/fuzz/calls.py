"""Images of one call of the virtual machine, with operands of an attacker: pointers to anywhere, sizes that wrap, tiles
that are larger than their memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from random import Random

import numpy as np

from pto.image.every_call import calls_of
from pto.image.format import CALL, END, Image, ImageCode, ImageFunction
from pto.image.lower import is_call
from pto.image.operands import kind_of, operands_of, size_of
from pto.isa import rows
from pto.isa.dtypes import DTYPES
from pto.isa.machine import MEMORIES
from pto.isa.profiles import ISAS
from pto.witness.plan import plans
from pto.witness.programs import build

_DECLARED = re.compile(r"([^;&]+)& a\d+; ")
_TILE = re.compile(
    r"OpenTile<TileType::(\w+), ([\w:]+), BLayout::(\w+), SLayout::(\w+), \d+, \d+, CompactMode::\w+>"
)
_SPACES = {m.tile_type: n for n, m in enumerate(MEMORIES.values())}
_FORMS = (
    "RowMajor NoneBox", "ColMajor NoneBox", "ColMajor RowMajor", "RowMajor ColMajor", "RowMajor RowMajor", "ColMajor ColMajor",
)  # fmt: skip
_BITS = {d.cpp: d.bits for d in DTYPES.values()}
_EDGES = (
    0, 1, 2, 8, 31, 32, 255, 4096, 65535, 1 << 16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 32,
)  # fmt: skip


class Builder:
    """The words and the frame of an image."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.words: list[int] = []
        self.frame = bytearray(64)

    def call(self, name: str, *operands: int) -> None:
        if name not in self.calls:
            self.calls.append(name)
        self.words += [CALL + self.calls.index(name) | len(operands) + 1 << 24, *operands]

    def room(self, size: int, align: int = 8) -> int:
        self.frame += bytes(-len(self.frame) % align)
        self.frame += bytes(size)
        return len(self.frame) - size

    def number(self, value: int) -> int:
        return self._put((value % (1 << 64)).to_bytes(8, "little"))

    def _put(self, data: bytes) -> int:
        at = self.room(len(data))
        self.frame[at : at + len(data)] = data
        return at

    def tile(self, rows: int, cols: int, valid: tuple[int, int], address: int, space: int = 0, form: int = 0, bits: int = 32) -> int:  # fmt: skip
        """A tile of which only a part need lie in the memory where it is placed."""
        at = self.room(40)
        self.call("vm.tile", at, rows, cols, *(self.number(min(n, 8)) for n in valid))
        box = (16, max(1, 256 // bits)) if form > 1 else (1, 1)
        self.call("vm.assign", at, self.number(address), 8, space, form, *box, bits, 0)
        self.call("vm.valid", at, rows, cols, *map(self.number, valid))
        return at

    def view(self, pointer: int, sizes: Sequence[int], strides: Sequence[int], at: int = -1) -> int:
        at = at if at >= 0 else self.room(88)
        self.call("vm.view", at, self.number(pointer), len(sizes), *map(self.number, (*sizes, *strides)))
        return at

    def image(self, target: str = "a5", kind: str = "mix", subblocks: int = 2, arguments: int = 1) -> Image:
        """The image; its arguments are pointers and numbers that nothing uses."""
        given = tuple((self.room(8), 0) for _ in range(arguments))
        code = ImageCode(kind, (*self.words, END | 1 << 24), bytes(self.frame), given, ())
        types = ("!pto.ptr<f32>", "!pto.ptr<f32>", "i64")[:arguments]
        function = ImageFunction("k", tuple((f"x{n}", type) for n, type in enumerate(types)))
        return Image("k", target, tuple(self.calls), (code,), (function,), (), subblocks)


@cache
def _named() -> tuple[str, ...]:
    """The instructions that may be calls; those of numbers have no others for operands."""
    return tuple(r.full_name for r in rows() if r.dialect not in ("arith", "math"))


def chosen(data: bytes, r: Random, others: Sequence[bytes]) -> bytes:
    """The name of an instruction and a seed."""
    return f"{r.choice(_named())} {r.getrandbits(32)}".encode()


def made(data: bytes, array: np.ndarray, elsewhere: int) -> Image | None:
    """The image of an input, whose views lie in an array or elsewhere; None where an instruction makes no call."""
    name, _, seed = data.decode("utf-8", "replace").partition(" ")
    r, known = Random(seed), {row.full_name: row for row in rows()}
    isa = r.choice(ISAS)
    found = list(plans(known[name], isa)) if name in known and is_call(known[name]) else []
    if not found:
        return None
    calls = [call for call in calls_of(build(r.choice(found)), known[name], isa) if operands_of(call)]
    return _Call(r.choice(calls), r, array.ctypes.data, elsewhere).image() if calls else None


class _Call:
    def __init__(self, name: str, r: Random, inside: int, elsewhere: int) -> None:
        self.name, self.r, self.inside, self.elsewhere = name, r, inside, elsewhere
        self.b = Builder()
        #: Whether pointers, numbers, tiles are those of an attacker.
        self.pointers, self.numbers, self.tiles = r.choice(
            ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 1, 1))
        )

    def image(self) -> Image:
        operands = [self._operand(m[1]) for m in _DECLARED.finditer(self.name)]
        self.b.call(self.name, *operands)
        r = self.r
        return self.b.image(
            r.choice(("a2a3", "a5", "cpu")), r.choice(("mix", "cube", "vector")), r.choice((1, 2))
        )

    def _pointer(self) -> int:
        return self.r.choice(
            (self.elsewhere, self.elsewhere + self.r.randrange(4096), 0x5A5A_5A5A_0000, 2**64 - 64, 0, 64, 0x2FFE0, 1 << 22)
        )  # fmt: skip

    def _number(self) -> int:
        return self.r.choice((*_EDGES, self.r.getrandbits(64), self.r.getrandbits(16), self.r.getrandbits(8)))

    def _operand(self, type: str) -> int:
        kind, r, b = kind_of(type), self.r, self.b
        if kind == "word" and type.endswith("*"):
            return b.number(self._pointer() if self.pointers else r.choice((0, 32, 1024, self.inside)))
        if kind == "word":
            return b.number(self._number() if self.numbers else r.choice((0, 1, 2, 8, 16, 32)))
        if kind == "tile":
            return self._tile(type)
        if kind == "view":
            return self._view()
        if kind == "group":
            count = r.choice((1, 2))
            first = b.room(88 * count)
            for n in range(count):
                self._view(first + 88 * n)
            at = b.room(16)
            b.call("vm.group", at, first, count, r.randrange(count))
            return at
        if kind == "pipe":
            at = b.room(128)
            memory = b.number(r.choice((0, self.inside, self._pointer())))
            buffers = [b.number(r.choice((0, 4096, self._number()))) for _ in range(2)]
            b.call(
                "vm.pipe", at, memory, *buffers, r.choice((0, 2, 65535)), r.choice((1, 2, 3)),
                r.choice((1024, 4096, 8, 0)), r.choice((1, 2, 8, 0)), r.choice((0, 1, 2, 100)), r.choice((0, 1)),
            )  # fmt: skip
            return at
        if kind.startswith("conv"):
            at, bits = b.room(128), int(kind[4:])
            sizes = [r.choice((1, 2, 4, 16)) for _ in range(type.count("-1"))]
            b.call("vm.conv", at, len(sizes), *sizes, bits)
            b.call("vm.conv_at", at, b.number(0), 1, bits)
            return at
        size, align = size_of(kind)
        at = b.room(max(size, 8), align)
        if kind == "text":
            b.frame[at : at + 3] = b"%d\0"
        elif kind.startswith("events"):
            for n in range(at, at + size, 4):
                b.frame[n : n + 4] = r.choice((0, 7, 8, 255, 2**31, 2**32 - 1)).to_bytes(4, "little")
        return at

    def _tile(self, type: str) -> int:
        r, found = self.r, _TILE.fullmatch(type)
        if found is None:
            return self.b.room(40)
        rows, cols = r.choice((1, 2, 8, 16, 32, 64)), r.choice((1, 8, 16, 32, 64, 128))
        if self.tiles and r.random() < 0.5:
            rows, cols = r.choice(((1, 1 << 19), (1 << 19, 1), (1024, 512), (65536, 8), (8, 65536)))
        valid = r.choice((rows, rows, 1, 0, min(rows, 16))), r.choice((cols, cols, 1, 0, min(cols, 16)))
        form = _FORMS.index(f"{found[3]} {found[4]}")
        address = r.choice((0, 0, 0x1000, 0x4000, 0x7F00, 0xFE00))
        return self.b.tile(rows, cols, valid, address, _SPACES.get(found[1], 0), form, _BITS.get(found[2], 8))

    def _view(self, at: int = -1) -> int:
        r = self.r
        pointer = self._pointer() if self.pointers and r.random() < 0.6 else self.inside + r.choice((0, 4096))
        wild = 0.3 if self.numbers else 0.0
        # large tensors in one place would only take long
        sizes = [r.choice((1, 1, 2, 8, 16)) if r.random() >= wild else self._number() for _ in range(5)]
        strides = [r.choice((1, 16, 64, 256)) if r.random() >= wild else self._number() | 1 for _ in range(5)]
        return self.b.view(pointer, sizes, strides, at)
