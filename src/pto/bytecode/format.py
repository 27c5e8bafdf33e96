"""PTO-BC v0 as data: sections, and the encoding of each operation in the stream.

Opcode numbers, variants, results and regions are those of the instruction table. This module has the facts
that belong to v0: counted operands, immediates, the operand groups of PTOAS, and the default attributes that
the printer of PTOAS shows. All other operations of the table are written as generic operations, with name,
types and operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..isa import row, rows
from ..isa.row import Row

MAGIC = b"PTOBC\0"
VERSION = 0

STRINGS, TYPES, ATTRS, CONSTS, MODULE, DEBUG, EXTRA = 0x01, 0x02, 0x03, 0x04, 0x06, 0x07, 0x7F
SECTION_NAMES = {
    STRINGS: "STRINGS", TYPES: "TYPES", ATTRS: "ATTRS", CONSTS: "CONSTPOOL", MODULE: "MODULE",
    DEBUG: "DEBUGINFO", EXTRA: "EXTRA",
}  # fmt: skip
REQUIRED = (STRINGS, TYPES, ATTRS, CONSTS, MODULE)

#: Readers that do not know the EXTRA section skip it. The EXTRA section of pto starts with this tag, and
#: contains module-level operations other than functions, which v0 cannot encode.
EXTRA_TAG = b"pto\x01"

GENERIC = 0xFFFF
INDEX_WIDTH = 64

#: Attribute with the branch targets of a generic operation, as (block, argument count) pairs.
SUCCESSORS = "ptobc.successors"
SEGMENTS = "operandSegmentSizes"

#: Constant pool tags.
INT, FLOAT, INDEX_VECTOR, WIDE_INT = 1, 2, 3, 4
MAX_INT_BITS = 4096  # wider constants are written as attribute text

#: Operand modes.
FIXED, BY_VARIANT, COUNTED, SEGMENTED, MASK = range(5)

#: Immediate kinds.
NO_IMMEDIATE, PREDICATE, EVENT, CONSTANT, VIEW, PARTITION, VALID_MASK = 0, 1, 2, 5, 6, 7, 8

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")

_LAST = {0x0: 0x0006, 0x1: 0x107D, 0x2: 0x2008, 0x4: 0x4002, 0x6: 0x6001}  # last v0 number of each range

#: Operations with a written operand count.
_COUNTED = frozenset(
    "scf.yield subset tgather tmrgsort tquant trowexpanddiv trowexpandexpdif trowexpandmax trowexpandmin "
    "trowexpandmul trowexpandsub trsqrt tsort32 tstore tsync".split()
)
_IMMEDIATES = {
    "arith.cmpi": PREDICATE, "record_event": EVENT, "wait_event": EVENT, "arith.constant": CONSTANT,
    "make_tensor_view": VIEW, "partition_view": PARTITION, "alloc_tile": VALID_MASK,
}  # fmt: skip
#: Operand counts that include operands which are optional in the table.
_FIXED = {
    "tcolsum": 3, "tprelu": 4, "trem": 4, "trems": 4, "tscatter": 3, "tsel": 5, "tsels": 5, "txor": 4,
    "txors": 4,
}  # fmt: skip
#: Operations with a number in the table of PTOAS but not in its dialect, so that its reader cannot build
#: them.
_UNREADABLE = frozenset(
    "timg2col set_img2col_padding set_img2col_rpt setfmatrix sethf32mode settf32mode tstore_fp".split()
)
#: Operand counts of the two mode registers, which are attributes in the table.
_MODE_OPERANDS = {"sethf32mode": 2, "settf32mode": 2}

#: Operand groups in `operandSegmentSizes` of PTOAS: the number of our groups per group of PTOAS, or () if
#: PTOAS writes no groups. Further groups must be empty.
FOLDS: dict[str, tuple[int, ...]] = {
    "textract": (), "tquant": (), "tmov": (1, 1, 1, 1), "tgather": (1, 1, 1, 1, 1, 1),
    "tmrgsort": (4, 1, 1, 1, 1),
}  # fmt: skip

#: Attributes that are written with their default if the program leaves them out.
IMPLIED: dict[str, tuple[str, ...]] = {
    "tstore": ("atomicType", "reluPreMode", "stPhase"), "tmov": ("reluPreMode",), "mgather": ("gatherOob",),
    "mscatter": ("scatterAtomicOp", "scatterOob"), "tci": ("descending",), "ttri": ("upperOrLower",),
    "tcmps": ("cmpMode",), "tcvt": ("rmode",), "trandom": ("rounds",), "tmrgsort": ("exhausted",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BytecodeOp:
    """One operation of the v0 table."""

    row: Row
    mode: int  # operand mode
    count: int  # operands in mode FIXED and BY_VARIANT, leading operands in mode SEGMENTED
    immediate: int
    results: int  # types listed in the stream
    readable: bool  # by the reader of PTOAS


def _op(r: Row) -> BytecodeOp:
    immediate = _IMMEDIATES.get(r.name, NO_IMMEDIATE)
    required = sum(not o.optional and not o.variadic for o in r.operands)
    if immediate in (VIEW, PARTITION):
        mode = SEGMENTED
    elif immediate == VALID_MASK:
        mode = MASK
    elif r.name in _COUNTED:
        mode = COUNTED
    elif r.variant is not None and r.operands:
        mode = BY_VARIANT
    else:
        mode = FIXED
    count = _MODE_OPERANDS.get(r.name, _FIXED.get(r.name, required))
    results = sum(not o.variadic for o in r.results)
    return BytecodeOp(r, mode, count, immediate, results, r.name not in _UNREADABLE)


@cache
def table() -> dict[tuple[int, int | None], BytecodeOp]:
    """Return (opcode, variant) -> operation, for every number that v0 defines."""
    found: dict[tuple[int, int | None], BytecodeOp] = {}
    for r in rows():
        if r.opcode <= _LAST.get(r.opcode >> 12, -1) and r.name != "func.func":
            found[r.opcode, r.variant] = _op(r)
    return found


@cache
def variants() -> frozenset[int]:
    """Return the opcodes that are followed by a variant byte."""
    return frozenset(opcode for opcode, variant in table() if variant is not None)


@cache
def by_name() -> dict[str, BytecodeOp]:
    return {op.row.full_name: op for op in table().values()}


def spread(r: Row, count: int) -> tuple[int, ...] | None:
    """Return the group sizes of `count` operands without explicit sizes: optional groups are filled from the
    left."""
    spare = count - sum(not o.optional and not o.variadic for o in r.operands)
    out: list[int] = []
    for o in r.operands:
        if o.variadic:
            out.append(max(spare, 0))
            spare = min(spare, 0)
        elif o.optional:
            out.append(int(spare > 0))
            spare -= spare > 0
        else:
            out.append(1)
    return tuple(out) if spare == 0 else None


def written_segments(r: Row, groups: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the group sizes to write for an operation, or None if its operand count determines them."""
    fold = FOLDS.get(r.name)
    if fold is None:
        several = sum(o.optional or o.variadic for o in r.operands) > 1
        return groups if several else None
    if not fold:
        return None if spread(r, sum(groups)) == groups else groups
    if any(groups[sum(fold) :]):
        return groups
    out: list[int] = []
    at = 0
    for width in fold:
        out.append(sum(groups[at : at + width]))
        at += width
    return tuple(out)


def read_segments(r: Row, sizes: tuple[int, ...] | None, count: int) -> tuple[int, ...] | None:
    """Return the sizes of our groups for the sizes in a file, or None if they do not match the row."""
    if sizes is None:
        return spread(r, count)
    fold = FOLDS.get(r.name)
    if fold and len(sizes) == len(fold) != len(r.operands):
        out: list[int] = []
        for size, width in zip(sizes, fold, strict=True):
            if not 0 <= size <= width:
                return None
            out.extend([1] * size + [0] * (width - size))
        sizes = tuple(out)
    sizes += (0,) * (len(r.operands) - len(sizes))  # trailing groups that an older writer did not have
    fits = len(sizes) == len(r.operands) and sum(sizes) == count
    for size, o in zip(sizes, r.operands, strict=False):
        fits = fits and size >= 0 and (o.variadic or size <= 1) and (o.optional or o.variadic or size == 1)
    return sizes if fits else None


def known(name: str) -> Row | None:
    """Return the row of an operation name, which always includes the dialect."""
    found = row(name)
    return found if found is not None and name.startswith(found.dialect + ".") else None
