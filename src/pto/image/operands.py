"""Operands of instructions: the one table for the check of an image, `pto objdump`, the assembler of listings
and docs/image.md.

An operand is an offset in the frame of a value of some kind, or a number, or a word to jump to. The operands
of the machine's instructions and own calls are listed here. Those of other calls have C++ types in the names
of the calls.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache

from ..isa.dtypes import DTYPES
from ..isa.enums import ENUMS
from ..isa.machine import MEMORIES
from ..isa.record import Record
from .format import COPY, END, ENTER, EQUAL, JUMP, NEXT, UNLESS

#: Values in the frame: kind -> bytes and alignment. `text` extends to its first zero byte.
VALUES: dict[str, tuple[int, int]] = {
    "word": (8, 8),  # numbers, pointers, enumerations
    "tile": (40, 8),
    "view": (88, 8),
    "pipe": (128, 8),
    "register": (256, 64),
    "mask": (32, 8),
    "stream": (64, 8),
    "group": (16, 8),  # a group of tensors: offset and number of their views
    "text": (1, 8),
}

#: Values of variable size, and their alignment. The kind includes numbers of the instruction (`sized`): bytes
#: of an array, bits of an element of a convolution tile, numbers of an event array.
SIZED = {"array": 8, "conv": 8, "events": 8}
_CONV = 128

#: Numbers: kind -> allowed values.
NUMBERS: dict[str, range | tuple[int, ...]] = {
    "width": (1, 2, 4, 8),  # bytes of an integer
    "bits": (4, 8, 16, 32, 64),  # bits of an element
    "rank": range(1, 6),
    "depth": range(1, 126),  # dimensions of an array or convolution tile; limit: 254 operands per instruction
    "length": range(1, 1 << 31),  # length of a dimension
    "members": range(1, 255),
    "extent": range(1 << 31),  # rows or columns of a tile
    "step": range(1 << 31),  # elements from one row or column to the next
    "box": range(1, 1 << 16),
    "form": range(6),  # layout, as `Form` of core/tile.hpp
    "space": range(len(MEMORIES)),
    "compact": range(len(ENUMS["compact_mode"].values)),
    "flag": range(2),
    "dimensions": range(1 << 5),  # a bit for each dimension that is kept
    "id": range(1 << 16),
    "directions": range(1, 4),
    "count": range(1 << 31),
    "bytes": range(1 << 31),
}


class ImageOperand(Record):
    """An operand. `kind` is one of VALUES, SIZED or NUMBERS, or `target` (a word to jump to), `place` (bytes
    of any kind) or `views` (adjacent, as many as `members`)."""

    name: str
    kind: str
    times: str = ""  # the operand with the repeat count


def _operands(text: str) -> tuple[ImageOperand, ...]:
    return tuple(
        ImageOperand(name, *kind.split("*"))
        for name, _, kind in (word.partition(":") for word in text.replace("LIE", _LIE).split())
    )


#: The layout of a tile.
_LIE = "space:space form:form box_rows:box box_columns:box bits:bits compact:compact"

#: Instructions by their opcodes.
INSTRUCTIONS = {
    opcode: _operands(text)
    for opcode, text in {
        END: "",
        JUMP: "to:target",
        UNLESS: "condition:word to:target",
        ENTER: "width:width counter:word bound:word past:target",
        NEXT: "width:width counter:word bound:word step:word again:target",
        COPY: "to:place from:place size:bytes",
        EQUAL: "width:width value:word other:word to:target",
    }.items()
}

#: Calls of the machine's own functions (native/vm/vm.cpp), by their names.
OWN = {
    name: _operands(text)
    for name, text in {
        "vm.view": "result:view pointer:word rank:rank sizes:word*rank strides:word*rank",
        "vm.part": "result:view source:view bits:bits rank:rank offsets:word*rank sizes:word*rank",
        "vm.dim": "result:word source:view rank:rank dimension:word",
        "vm.stride": "result:word source:view rank:rank dimension:word",
        "vm.tile": "result:tile rows:extent columns:extent valid_rows:word valid_columns:word",
        "vm.valid": "tile:tile rows:extent columns:extent valid_rows:word valid_columns:word",
        "vm.same": "result:tile source:tile rows:extent columns:extent valid_rows:word valid_columns:word "
        "alike:flag",
        "vm.assign": "tile:tile address:word width:width LIE",
        "vm.window": "result:tile source:tile row:word column:word width:width line:extent LIE",
        "vm.subset": "result:tile source:tile rows:extent columns:extent height:extent breadth:extent "
        "valid_rows:word valid_columns:word row:word column:word width:width down:step across:step bits:bits "
        "line:extent",
        "vm.cut": "result:view source:view bits:bits rank:rank kept:dimensions offsets:word*rank "
        "sizes:word*rank steps:word*rank",
        "vm.element": "result:word source:view rank:rank indices:word*rank",
        "vm.tile_of": "result:tile source:view rank:rank columns:flag",
        "vm.rows": "result:turned source:tile bits:bits",
        "vm.back": "result:tile source:turned bits:bits",
        "vm.pointer": "result:word address:word width:width space:space",
        "vm.add": "result:word pointer:word offset:word width:width bits:bits",
        "vm.pipe": "result:pipe memory:word first:word second:word id:id directions:directions "
        "slot_size:bytes slots:count local_slots:count unsplit:flag",
        "vm.step": "step:word width:width",
        "vm.divisor": "value:word",
        "vm.first": "result:word",
        "vm.owe": "notes:flag",
        "vm.settle": "all:flag",
        "vm.forget": "tile:tile size:bytes",
        "vm.lent": "missing:word tile:tile home:tile source:view bits:bits",
        "vm.lend": "",
        "vm.obey": "result:word",
        "vm.control": "value:word",
        "vm.get": "result:word array:array width:width rank:depth sizes:length*rank indices:word*rank",
        "vm.set": "value:word array:array width:width rank:depth sizes:length*rank indices:word*rank",
        "vm.group": "result:group tensors:views members:members root:id",
        "vm.conv": "result:conv rank:depth sizes:length*rank bits:bits",
        "vm.conv_at": "tile:conv address:word space:space bits:bits",
    }.items()
}  # fmt: skip

#: A tile that `vm.rows` made lives until `vm.back`; the call in between takes it as a tile.
VALUES["turned"] = VALUES["tile"]

_DECLARED = re.compile(r"([^;&]+)& a(\d+); ")
_PLACE = re.compile(r"& a\d+; ")
_EVENTS = re.compile(r"PTOAS_EventIdArray<(\d{1,4})>")
_CONV_TILE = re.compile(
    r"ConvTile<TileType::\w+, ([\w:]+), 0, pto::Layout::\w+, ConvTileShape<-1(?:, -1){0,5}>>"
)
_POINTER = re.compile(r"(?:__\w+__ )?[\w:]+\*")
#: Types of C++ by their beginnings, and their kinds; `<` means that parameters follow.
_TYPES = {
    "OpenTile<": "tile", "OpenView<": "view", "OpenPipe": "pipe", "vector_bool": "mask",
    "vector_align": "stream", "pto::comm::AsyncSession": "stream", "pto::comm::AsyncEvent": "stream",
    "pto::PrefetchAsyncContext": "stream", "pto::comm::ParallelGroup<": "group",
    "pto::MrgSortExecutedNumList": "word", "char": "text",
}  # fmt: skip


@cache
def _words() -> frozenset[str]:
    """Return the types of C++ that are one word in the frame: numbers and enumerations."""
    enums = (e.cpp.rpartition("::")[0] for e in ENUMS.values() if "::" in e.cpp)
    return frozenset((*(d.cpp for d in DTYPES.values()), *enums, "bool", "unsigned", "int64_t", "uint64_t"))


def kind_of(type: str) -> str:
    """Return the kind of a value of a C++ type; "" if the machine has no such values."""
    if type in _words() or _POINTER.fullmatch(type):
        return "word"
    head = type.partition("<")
    found = _TYPES.get(head[0] + head[1])
    if found is not None:
        return found if not head[1] or type.endswith(">") else ""
    if type.startswith("vector_") and type.removeprefix("vector_").isalnum():
        return "register"
    if m := _CONV_TILE.fullmatch(type):
        bits = _bits().get(m[1])
        return _conv(bits) if bits else ""
    m = _EVENTS.fullmatch(type)
    return f"events{m[1]}" if m and int(m[1]) <= 1024 else ""


@cache
def _bits() -> dict[str, int]:
    """Return the bits of element types by their names in C++."""
    return {d.cpp: d.bits for d in DTYPES.values()}


def _conv(bits: int) -> str:
    """Return the kind of convolution tiles of an element type; types below a byte count as a byte."""
    return f"conv{max(8, bits)}"


def sized(kind: str, operands: Sequence[ImageOperand], words: Sequence[int]) -> str:
    """Return the kind of an operand of an instruction, with its size from numbers of the instruction."""
    if kind not in SIZED:
        return kind
    numbers = [(o.name, word) for o, word in zip(operands, words, strict=True) if o.kind in NUMBERS]
    named = dict(numbers)
    if kind == "conv":
        return _conv(named["bits"])
    elements = math.prod(word for name, word in numbers if name == "sizes")
    return f"array{max(8, elements * named['width'])}"


def size_of(kind: str) -> tuple[int, int]:
    """Return bytes and alignment of a value of a kind."""
    stem = kind.rstrip("0123456789")
    if stem not in SIZED:
        return VALUES[kind]
    size = int(kind[len(stem) :])
    return {"array": size, "conv": _CONV, "events": max(8, 4 * size)}[stem], SIZED[stem]


@cache
def operands_of(call: str) -> tuple[ImageOperand, ...] | None:
    """Return the operands of a call by its name; None if the name is invalid."""
    if call.startswith("vm."):
        return OWN.get(call)
    found: list[ImageOperand] = []
    at = 0
    while (declared := _DECLARED.match(call, at)) is not None:
        kind = kind_of(declared[1])
        if not kind or int(declared[2]) != len(found):
            return None
        found.append(ImageOperand(f"a{len(found)}", kind))
        at = declared.end()
    return tuple(found) if len(found) < 255 and not _PLACE.search(call, at) else None


def spread(operands: tuple[ImageOperand, ...], words: tuple[int, ...]) -> list[ImageOperand] | None:
    """Return the operand of each word; None if there are too few or too many words."""
    found: list[ImageOperand] = []
    numbers: dict[str, int] = {}
    for operand in operands:
        many = numbers.get(operand.times, 0) if operand.times else 1
        if operand.kind in ("rank", "depth") and len(found) < len(words):
            numbers[operand.name] = min(words[len(found)], 255)  # larger numbers are rejected by `check`
        found += [operand] * many
    return found if len(found) == len(words) else None
