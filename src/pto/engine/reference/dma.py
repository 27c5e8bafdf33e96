"""DMA copies between global memory, UB and L1: bursts of bytes with strides, loops and padding.

The older `copy_*` forms take their loops from registers, the grouped `mte_*` forms carry them.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ...isa.dtypes import DTYPES
from ..elements import Array
from ..memory import Pointer
from .instr import Instr
from .registry import executor

#: (count, source stride, destination stride), in bytes.
Loop = tuple[int, int, int]


def _bytes(pointer: Pointer) -> Pointer:
    return Pointer(pointer.buffer, pointer.offset, "u8", pointer.name)


def _starts(loops: list[Loop]) -> tuple[Array, Array]:
    """Offsets of every burst in source and destination, in the order they are copied."""
    source, target = [0], [0]
    for count, s, t in loops:  # outermost first
        source = [a + n * s for a, n in product(source, range(max(0, count)))]
        target = [a + n * t for a, n in product(target, range(max(0, count)))]
    return np.array(source, np.intp), np.array(target, np.intp)


def _copy(
    i: Instr, source: Pointer, target: Pointer, length: int, loops: list[Loop], pad: Array | None = None
) -> None:
    """Copy bursts; with `pad`, bytes of the destination row behind the burst get the repeated pattern."""
    at, to = _starts(loops)
    if not at.size or length < 0:
        return
    inside = np.arange(length, dtype=np.intp)
    data = i.raw_at(_bytes(source), (at[:, None] + inside)) if length else np.empty((at.size, 0), np.uint8)
    place = _bytes(target)
    if pad is not None:
        row = loops[-1][2]
        if row > length:
            fill = np.resize(pad, row)[length:]
            behind = np.arange(length, row, dtype=np.intp)
            i.store_raw_at(place, to[:, None] + behind, np.broadcast_to(fill, (to.size, row - length)).copy())
    if length:
        i.store_raw_at(place, to[:, None] + inside, data)


def _clauses(i: Instr) -> list[Loop]:
    """Loop clauses of a grouped form, outermost first."""
    flat = [int(v) for v in i.arg("loop") or []]
    loops = [(flat[n], flat[n + 1], flat[n + 2]) for n in range(0, len(flat), 3)]
    return loops[::-1]


def _pattern(value: Any, dtype: str) -> Array:
    from ...isa import encoding

    d = DTYPES[dtype]
    code = encoding.encode(d, value) if d.is_float else int(value) & ((1 << d.bits) - 1)
    return np.frombuffer(int(code).to_bytes(max(1, d.bits // 8), "little"), np.uint8)


@executor("mte_gm_ub")
def mte_gm_ub(i: Instr) -> None:
    source, target = i.arg("gm_src"), i.arg("ub_dst")
    length = int(i.arg("len_burst"))
    loops = [*_clauses(i), (int(i.arg("n_burst")), int(i.arg("src_stride")), int(i.arg("dst_stride")))]
    pad = _pattern(i.arg("pad_value"), target.dtype) if i.has("pad_value") else None
    left, right = int(i.arg("left_padding") or 0), int(i.arg("right_padding") or 0)
    if pad is not None and (left or right):
        _copy_padded(i, source, target, length, loops, pad, left, right)
    else:
        _copy(i, source, target, length, loops, pad)


def _copy_padded(
    i: Instr,
    source: Pointer,
    target: Pointer,
    length: int,
    loops: list[Loop],
    pad: Array,
    left: int,
    right: int,
) -> None:
    """Pad elements before and after each burst, which moves right by the left ones."""
    at, to = _starts(loops)
    size = len(pad)
    data = i.raw_at(_bytes(source), at[:, None] + np.arange(length, dtype=np.intp))
    before = np.broadcast_to(np.resize(pad, left * size), (at.size, left * size))
    row = max(loops[-1][2] - left * size - length, right * size)
    after = np.broadcast_to(np.resize(pad, row), (at.size, row))
    whole = np.concatenate([before, data, after], axis=1)
    i.store_raw_at(_bytes(target), to[:, None] + np.arange(whole.shape[1], dtype=np.intp), whole)


@executor("mte_ub_gm")
def mte_ub_gm(i: Instr) -> None:
    loops = [*_clauses(i), (int(i.arg("n_burst")), int(i.arg("src_stride")), int(i.arg("dst_stride")))]
    _copy(i, i.arg("ub_src"), i.arg("gm_dst"), int(i.arg("len_burst")), loops)


def _registers(i: Instr, way: str) -> list[Loop]:
    """Loop 2 (outer) and loop 1 of the registers, (1, 0, 0) where never set."""
    r = i.core.registers
    inner, outer = r.get(f"loop size {way}", (1, 1))
    return [(outer, *r.get(f"loop2 stride {way}", (0, 0))), (inner, *r.get(f"loop1 stride {way}", (0, 0)))]


@executor("copy_gm_to_ubuf")
def copy_gm_to_ubuf(i: Instr) -> None:
    target = i.arg("ub_dst")
    loops = [*i.arg("registers"), (int(i.arg("n_burst")), int(i.arg("src_stride")), int(i.arg("dst_stride")))]
    pad = _pattern(i.core.registers.get("pad value", 0), target.dtype) if i.arg("data_select_bit") else None
    _copy(i, i.arg("gm_src"), target, int(i.arg("len_burst")), loops, pad)


@executor("copy_ubuf_to_gm")
def copy_ubuf_to_gm(i: Instr) -> None:
    loops = [*i.arg("registers"), (int(i.arg("n_burst")), int(i.arg("src_stride")), int(i.arg("dst_stride")))]
    _copy(i, i.arg("ub_src"), i.arg("gm_dst"), int(i.arg("len_burst")), loops)


@executor("mte_ub_ub", "mte_ub_l1", "copy_ubuf_to_ubuf")
def between_buffers(i: Instr) -> None:
    """Lengths and gaps in blocks of 32 bytes; a gap is what lies between two bursts."""
    old = i.name == "copy_ubuf_to_ubuf"
    source, target = i.arg("source" if old else "ub_src"), i.arg("dest" if old else i.op.row.operands[1].name)  # type: ignore[union-attr]
    length = int(i.arg("len_burst"))
    s, t = int(i.arg("src_stride" if old else "src_gap")), int(i.arg("dst_stride" if old else "dst_gap"))
    _copy(i, source, target, length * 32, [(int(i.arg("n_burst")), (length + s) * 32, (length + t) * 32)])


@executor(
    "set_loop_size_outtoub", "set_loop1_stride_outtoub", "set_loop2_stride_outtoub",
    "set_loop_size_ubtoout", "set_loop1_stride_ubtoout", "set_loop2_stride_ubtoout",
)  # fmt: skip
def set_loop(i: Instr) -> None:
    """Copies already issued are not affected: they took the registers with them (see `Core.issue`)."""
    _, what, *_, way = i.name.split("_")
    kind = "loop size" if "size" in i.name else f"{what} stride"
    first, second = (int(v) for v in i.args.values())
    i.core.registers[f"{kind} {way}"] = (first, second)


def with_registers(i: Instr) -> None:
    """Give a copy the loop registers as they are when it is issued."""
    i.args["registers"] = _registers(i, "outtoub" if i.name == "copy_gm_to_ubuf" else "ubtoout")
