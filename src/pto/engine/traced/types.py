"""Types of operands in records (pto/core/trace.hpp), and the words of records that only identify things."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from ...ir.types import (
    ConvTileType,
    MaskType,
    PtrType,
    ScalarType,
    TileBufType,
    TokenType,
    Type,
    ViewType,
    VRegType,
)
from ...isa.dtypes import NUMBERS
from ...isa.enums import ENUMS
from ...isa.machine import MEMORIES
from ...isa.record import Record
from ...isa.tile import COMPACT_MODES

LOCATIONS = tuple(MEMORIES)
LAYOUTS = tuple(ENUMS["layout"].values)
#: Element types by their numbers in C++.
ELEMENTS = tuple(sorted(NUMBERS, key=lambda name: NUMBERS[name]))
#: The number of return addresses in a record, and the offset of its numbers of operands.
FRAMES = 5
COUNTS = 2 + FRAMES


class _RawType(ctypes.Structure):
    """`TracedType` of trace.hpp."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("words", ctypes.c_int32),
        ("facts", ctypes.c_int32 * 9),
        ("pad", ctypes.c_uint64),
        ("dims", ctypes.c_int64 * 6),
    )


NUMBER, TILE, TENSOR, POINTER, CONV, OBJECT, PIPE, VECTOR, MASK, GROUP = range(10)
#: The largest number of members of a group in a record.
MEMBERS = 64


class Kind(Record):
    """The kind of an operand: the type of its value, and the number of its words in a record."""

    kind: int
    dtype: str  # empty for none
    words: int
    type: Type | None
    layout: str = ""
    facts: tuple[int, ...] = ()
    id: int = 0  # unique for each type


def kind_at(address: int) -> Kind:
    """Return a kind from its description in the kernel."""
    raw = _RawType.from_address(address)
    dtype = ELEMENTS[raw.dtype] if raw.dtype >= 0 else ""
    elem = ScalarType(dtype or "u8")
    facts = list(raw.facts)
    made: Type | None = None
    layout = ""
    if raw.kind == TILE:
        loc, rows, cols, v_row, v_col, blayout, slayout, fractal, compact = facts
        made = TileBufType(
            elem, LOCATIONS[loc], rows, cols, None if v_row < 0 else v_row, None if v_col < 0 else v_col,
            tuple(ENUMS["blayout"].values)[blayout], tuple(ENUMS["slayout"].values)[slayout], fractal,
            raw.pad, COMPACT_MODES[compact],
        )  # fmt: skip
    elif raw.kind == CONV:
        dims = tuple(None if d < 0 else d for d in list(raw.dims)[: facts[2]])
        made = ConvTileType(elem, LOCATIONS[facts[0]], dims, LAYOUTS[facts[1]].upper())
    elif raw.kind in (TENSOR, GROUP):
        made = ViewType(elem, tuple(None if d < 0 else d for d in list(raw.dims)[:5]))
        layout = LAYOUTS[facts[0]].upper()
    elif raw.kind == POINTER:
        made = PtrType(elem)
    elif raw.kind == NUMBER:
        made = elem
    elif raw.kind == PIPE:
        made = TokenType("tpipe")
    elif raw.kind == VECTOR:
        made = VRegType(elem, facts[0])
    elif raw.kind == MASK:
        made = MaskType()
    return Kind(raw.kind, dtype, raw.words, made, layout, tuple(facts), address)


class IdentityWords(NamedTuple):
    """The positions of words in records that only identify things."""

    objects: list[int]  # addresses of objects in C++
    addresses: list[int]  # addresses of global memory
    contents: list[int]  # contents of registers
    forms: set[int]  # addresses of the texts of calls


#: By the types of a call: their number; the offsets of such words in its values; and those of pointers, which
#: have an address of global memory if their space is not on chip.
Layouts = dict[tuple[int, ...], tuple[int, list[int], list[int], list[int], list[int]]]


def names(words: Sequence[int], known: Layouts) -> IdentityWords:
    """Return the words that only identify things in the records of a core. `known` is a cache for one
    library."""
    found = IdentityWords([], [], [], set())
    objects, addresses, contents, forms = found
    at = 0
    while at < len(words):
        count = words[at + COUNTS]
        first = at + COUNTS + 1 + (count >> 32)  # the types, which come before the values
        types = tuple(words[first : first + (count & 0xFFFFFFFF)])
        layout = known.get(types)
        if layout is None:
            layout = known[types] = _names_of(types)
        first += layout[0]
        objects += [first + n for n in layout[1]]
        addresses += [first + n for n in layout[2]]
        addresses += [first + n + 1 for n in layout[3] if words[first + n] >= len(LOCATIONS)]
        contents += [first + n for n in layout[4]]
        forms.add(words[at + 1])
        at += words[at]
    return found


def _names_of(types: Sequence[int]) -> tuple[int, list[int], list[int], list[int], list[int]]:
    objects: list[int] = []
    addresses: list[int] = []
    pointers: list[int] = []
    contents: list[int] = []
    at = 0
    for address in types:
        raw = _RawType.from_address(address)
        if raw.kind == POINTER:
            pointers.append(at)
        elif raw.kind in (TILE, CONV):
            objects.append(at + 1)
        elif raw.kind in (VECTOR, MASK):
            objects.append(at)
            contents += range(at + 1, at + raw.words)
        elif raw.kind == GROUP:
            addresses += range(at, at + raw.words, raw.words // MEMBERS)
        elif raw.kind in (TENSOR, PIPE):
            addresses.append(at)
        elif raw.kind == OBJECT:
            objects.append(at)
        at += raw.words
    return len(types), objects, addresses, pointers, contents
