"""DMA copies between global memory, UB and L1: bursts of bytes with strides, loops and padding.

The older `copy_*` forms take their loops from registers, the grouped `mte_*` forms have them as operands.
Run-time values have to satisfy the rules that the verifier checks for constants: they fit their fields, and
rows do not overlap.
"""

from __future__ import annotations

import math

import numpy as np

from ...ir.types import ScalarType
from ...isa import ctrl, encoding
from ...isa.dtypes import DTYPES
from ...isa.tables.dma import BURST_BITS
from .. import elements
from ..elements import Array
from ..memory import MemoryFault, Pointer, array_of
from .instr import IllegalInstruction, Instr, misaligned
from .load_store import ATOMIC_TYPES, combined
from .registry import executor

#: (count, source stride, destination stride), in bytes.
Loop = tuple[int, int, int]

#: The number of bytes that one copy may write, more than any on-chip buffer has, so that a wrong count ends
#: the program before it exhausts the memory of this computer.
LARGEST = 1 << 26

#: Widths of fields in bits: a length or count of bursts between on-chip buffers, the count of a loop, a
#: stride in UB, a stride in GM.
_BURST, COUNT_BITS, UB_BITS, GM_BITS = 16, 21, 21, 40


def _field(i: Instr, name: str, bits: int, value: int | None = None) -> int:
    """Return an operand, which has to fit an unsigned field."""
    found = int(i.arg(name) if value is None else value)
    if not 0 <= found < 1 << bits:
        long = name == "len_burst" and found > 0
        raise IllegalInstruction(
            f"expects {name} to fit {bits} bits without a sign, got {found}",
            "copy it as several bursts: n_burst of them, a stride apart" if long else "",
        )
    return found


def _aligned(i: Instr, *pointers: Pointer) -> None:
    """Stop if a copy on hardware does not start at a 32-byte block of an on-chip buffer."""
    for p in pointers:
        if i.core.profile.behaviour.aligned_copies and p.buffer.space != "gm" and p.offset % 32:
            raise misaligned("an on-chip address", p, 32)


# --- the copy ---------------------------------------------------------------------------------------------


def _starts(loops: list[Loop], side: int) -> Array:
    """Return the offsets of the bursts on one side (1: source, 2: destination), in the order of copying."""
    at = np.zeros(1, np.intp)
    for loop in loops:  # outermost first
        at = (at[:, None] + np.arange(loop[0], dtype=np.intp) * loop[side]).ravel()
    return at


def _inside(pointer: Pointer, loops: list[Loop], side: int, length: int) -> None:
    """Raise a fault for a copy that leaves its buffer, before arrays of offsets are made, because wrong
    counts may be large.
    """
    end = pointer.offset + sum((loop[0] - 1) * loop[side] for loop in loops) + length
    if length and (pointer.offset < 0 or end > pointer.buffer.data.size):
        raise MemoryFault(pointer.buffer, pointer.offset, end)


def copy_bursts(
    i: Instr,
    source: Pointer,
    target: Pointer,
    length: int,
    loops: list[Loop],
    pad: bytes = b"",
    left: int = 0,
    behind: int = 0,
) -> None:
    """Copy bursts of `length` bytes. With `pad`, the bytes of an element, `left` bytes of padding come before
    each burst and `behind` bytes after it. A row is written as a whole: if rows overlap, the later one stays.
    """
    if not all(loop[0] for loop in loops):
        return
    row = left + length + behind
    _inside(source, loops, 1, length)
    _inside(target, loops, 2, row)
    loops = [loop for loop in loops if any(loop[1:])] or [(1, 0, 0)]  # strides of 0 copy the same bytes again
    total = row * math.prod(loop[0] for loop in loops)
    i.require(total <= LARGEST, f"expects to write at most {LARGEST} bytes, got {total}")
    unit = _unit(source, target, length, loops)
    dtype = target.dtype if unit > 1 else "u8"
    at, to = (_starts(loops, side) // unit for side in (1, 2))
    inside = at[:, None] + np.arange(length // unit, dtype=np.intp)
    data = i.raw_at(_as(source, dtype), inside) if length else np.empty(inside.shape, array_of(dtype))
    if pad:
        fill = _fill(i, pad, row, dtype)
        before, after = fill[: left // unit], fill[(left + length) // unit :]
        data = np.hstack([np.tile(before, (at.size, 1)), data, np.tile(after, (at.size, 1))])
    if data.size:
        i.store_raw_at(_as(target, dtype), to[:, None] + np.arange(row // unit, dtype=np.intp), data)


def _unit(source: Pointer, target: Pointer, length: int, loops: list[Loop]) -> int:
    """Return the unit of a copy in bytes: an element if no burst splits one, so that shadow values move with
    the elements; else a single byte.
    """
    size = DTYPES[target.dtype].bits // 8
    steps = [length, *(n for loop in loops for n in loop[1:])]
    whole = size > 1 and source.dtype == target.dtype and not any(n % size for n in steps)
    return size if whole else 1


def _as(pointer: Pointer, dtype: str) -> Pointer:
    return pointer.at(pointer.offset, dtype)


def _fill(i: Instr, pad: bytes, row: int, dtype: str) -> Array:
    """Return a row of pad elements."""
    size = max(8, DTYPES[dtype].bits) // 8
    codes = np.frombuffer((pad * (row // len(pad) + 1))[: row // size * size], elements.code_dtype(dtype))
    if not i.exact and DTYPES[dtype].is_float:
        return elements.decode(dtype, codes, np.float64)
    return codes.view(array_of(dtype))


def _pattern(i: Instr) -> bytes:
    """Return the bytes of the pad value, which has its own type; a 4-bit value fills a byte."""
    value, operand = i.arg("pad_value"), i.op.get("pad_value")
    assert operand is not None and isinstance(operand.type, ScalarType)
    d = operand.type.info
    assert d is not None
    code = encoding.encode(d, value) if d.is_float else int(value) & ((1 << d.bits) - 1)
    return (code | code << 4 if d.bits == 4 else code).to_bytes(max(8, d.bits) // 8, "little")


# --- grouped forms ----------------------------------------------------------------------------------------


def _nest(i: Instr, source_bits: int, target_bits: int, outer: list[Loop]) -> tuple[int, list[Loop]]:
    """Return the length of a burst, and the loops, outermost first."""
    length, count = (_field(i, name, BURST_BITS[i.isa]) for name in ("len_burst", "n_burst"))
    strides = _field(i, "src_stride", source_bits), _field(i, "dst_stride", target_bits)
    return length, [*outer, (count, *strides)]


def loop_clauses(i: Instr, source_bits: int, target_bits: int) -> list[Loop]:
    """Return the loop clauses of a grouped form, outermost first."""
    widths = (COUNT_BITS, source_bits, target_bits)
    flat = [_field(i, "loop", widths[n % 3], v) for n, v in enumerate(i.arg("loop") or [])]
    return [(flat[n], flat[n + 1], flat[n + 2]) for n in range(0, len(flat), 3)][::-1]


def _rows_apart(i: Instr, length: int, loops: list[Loop]) -> None:
    count, _, stride = loops[-1]
    i.require(
        count <= 1 or stride >= length,
        f"expects dst_stride to be at least len_burst, got {stride} < {length}",
    )


@executor("copy in")
def mte_gm_ub(i: Instr) -> None:
    source, target = i.arg("gm_src"), i.arg("ub_dst")
    length, loops = _nest(i, GM_BITS, UB_BITS, loop_clauses(i, GM_BITS, UB_BITS))
    _rows_apart(i, length, loops)
    _aligned(i, target)
    if not i.has("pad_value"):
        copy_bursts(i, source, target, length, loops)
        return
    stride = loops[-1][2]
    i.require(
        not i.core.profile.behaviour.aligned_copies or stride % 32 == 0,
        f"expects dst_stride to be a multiple of 32 bytes, got {stride}",
    )
    pad = _pattern(i)
    left, right = (_padding(i, name, target.dtype) for name in ("left_padding", "right_padding"))
    copy_bursts(i, source, target, length, loops, pad, left, max(stride - left - length, right))


def _padding(i: Instr, name: str, dtype: str) -> int:
    """Return a count of pad elements as a number of bytes."""
    count = _field(i, name, 8) * DTYPES[dtype].bits if i.has(name) else 0
    i.require(count % 8 == 0, f"expects {name} to fill whole bytes, got {i.arg(name)} elements of {dtype}")
    return count // 8


@executor("copy out")
def mte_ub_gm(i: Instr) -> None:
    length, loops = _nest(i, UB_BITS, GM_BITS, loop_clauses(i, UB_BITS, GM_BITS))
    _aligned(i, i.arg("ub_src"))
    _bursts_out(i, i.arg("ub_src"), i.arg("gm_dst"), length, loops)


def _bursts_out(i: Instr, source: Pointer, target: Pointer, length: int, loops: list[Loop]) -> None:
    """Copy bursts into global memory, or, if the control register says so, update it atomically."""
    update = ctrl.update(i.control)
    if update is None:
        copy_bursts(i, source, target, length, loops)
        return
    kind, operation = update
    dtype = ATOMIC_TYPES[kind]
    size = DTYPES[dtype].bits // 8
    steps = [n for loop in loops if loop[0] > 1 for n in loop[1:]]
    i.require(
        not any(n % size for n in (length, source.offset, target.offset, *steps)),
        f"expects bursts of whole elements of the atomic type {kind}, got len_burst {length}, addresses "
        f"{source.offset} and {target.offset}, strides {', '.join(map(str, steps))}",
    )
    i.is_atomic()
    if not length or not all(loop[0] for loop in loops):
        return
    _inside(source, loops, 1, length)
    _inside(target, loops, 2, length)
    total = length * math.prod(loop[0] for loop in loops)
    i.require(total <= LARGEST, f"expects to write at most {LARGEST} bytes, got {total}")
    at, to = (_starts(loops, side) // size for side in (1, 2))
    inside = np.arange(length // size, dtype=np.intp)
    new = i.values_at(_as(source, dtype), at[:, None] + inside)
    place = _as(target, dtype)
    apart = np.unique(to)
    if apart.size == to.size and (np.diff(apart) >= inside.size).all():
        there = to[:, None] + inside
        i.store_at(place, there, combined(operation, i.values_at(place, there), new))
        return
    for first, numbers in zip(to.tolist(), new, strict=True):  # bursts overlap: one after another
        there = first + inside
        i.store_at(place, there, combined(operation, i.values_at(place, there), numbers))


@executor("copy between buffers")
def between_buffers(i: Instr) -> None:
    """Copy bursts; lengths and gaps count blocks of 32 bytes, and a gap is the space between two bursts."""
    assert i.op.row is not None
    old = i.kind.startswith("strides")
    source, target = (i.arg(operand.name) for operand in i.op.row.operands[:2])
    length, count = _field(i, "len_burst", _BURST), _field(i, "n_burst", _BURST)
    s = _field(i, "src_stride" if old else "src_gap", 16)
    t = _field(i, "dst_stride" if old else "dst_gap", 16)
    _aligned(i, source, target)
    if i.kind.endswith("to L1"):
        target = _shared(i, target)
    copy_bursts(i, source, target, length * 32, [(count, (length + s) * 32, (length + t) * 32)])


def _shared(i: Instr, target: Pointer) -> Pointer:
    """Return the pointer of a vector core into L1 as a pointer into the L1 of its cube core."""
    cores = i.core.cluster.cores if i.core.cluster is not None else []
    cubes = [c for c in cores if c.kind == "cube"] if i.core.kind == "vector" else []
    if not cubes or target.buffer is not i.core.buffers["mat"]:
        return target
    return Pointer(cubes[0].buffers["mat"], target.offset, target.dtype, target.name)


# --- forms under registers --------------------------------------------------------------------------------


@executor("copy loops")
def set_loop(i: Instr) -> None:
    """Set a loop register; copies issued before keep a copy of the old registers (see `Instr.frozen`)."""
    what, _, way = i.kind.rpartition("_")
    if way == "outtol1":  # one word
        low, high = (COUNT_BITS, COUNT_BITS) if what == "loop_size" else (GM_BITS, UB_BITS)
        word = int(i.arg("word"))
        parts = word & (1 << low) - 1, word >> low & (1 << high) - 1
        i.core.registers[f"{what}_{way}"] = parts
        return
    strides = (GM_BITS, UB_BITS) if way == "outtoub" else (UB_BITS, GM_BITS)
    widths = (COUNT_BITS, COUNT_BITS) if what == "loop_size" else strides
    first, second = (_field(i, n, w, v) for (n, v), w in zip(i.args.items(), widths, strict=True))
    i.core.registers[f"{what}_{way}"] = first, second


def register_loops(i: Instr, way: str) -> list[Loop]:
    """Return the loops of the registers: loop 2 (outer) and loop 1, with one iteration if never set."""
    r = i.registers
    inner, outer = r.get(f"loop_size_{way}", (1, 1))
    return [
        (outer, *r.get(f"loop2_stride_{way}", (0, 0))),
        (inner, *r.get(f"loop1_stride_{way}", (0, 0))),
    ]


def _rows_aligned(i: Instr, name: str, loops: list[Loop], side: int) -> None:
    """Stop if, on hardware, a row in UB does not start at a block of 32 bytes."""
    count, stride = loops[-1][0], loops[-1][side]
    i.require(
        not i.core.profile.behaviour.aligned_copies or count <= 1 or stride % 32 == 0,
        f"expects {name} to be a multiple of 32 bytes, got {stride}",
    )


@executor("copy in by registers")
def copy_gm_to_ubuf(i: Instr) -> None:
    target = i.arg("ub_dst")
    length, loops = _nest(i, GM_BITS, UB_BITS, register_loops(i, "outtoub"))
    _rows_apart(i, length, loops)
    _rows_aligned(i, "dst_stride", loops, 2)
    _aligned(i, target)
    # No instruction of the table sets the pad value register, so it is 0. The left and right counts of this
    # form have no defined effect.
    pad = b"\0" if i.arg("data_select_bit") else b""
    behind = max(loops[-1][2] - length, 0) if pad else 0
    copy_bursts(i, i.arg("gm_src"), target, length, loops, pad, 0, behind)


@executor("copy out by registers")
def copy_ubuf_to_gm(i: Instr) -> None:
    length, loops = _nest(i, UB_BITS, GM_BITS, register_loops(i, "ubtoout"))
    _rows_aligned(i, "src_stride", loops, 1)
    i.require(int(i.arg("reserved")) == 0, f"expects reserved to be 0, got {i.arg('reserved')}")
    _aligned(i, i.arg("ub_src"))
    _bursts_out(i, i.arg("ub_src"), i.arg("gm_dst"), length, loops)
