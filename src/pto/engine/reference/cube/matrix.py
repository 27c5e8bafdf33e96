"""Matrices of the cube unit at the level of pointers.

A pointer is the start of a matrix, and the instruction has its size. The buffer decides its layout: fractals
of 512 bytes (16 rows of 32 bytes, or the transpose in L0B), in L0C fractals of 16 x 16 elements. The offsets
are those of tiles with the same layout, so that instructions of both levels can share memory.
"""

from __future__ import annotations

from ....ir.types import PtrType
from ....isa import tile as tiles
from ....isa.dtypes import DTYPES
from ....isa.machine import MEMORIES
from ...memory import Buffer, Pointer, tile_steps
from ...region import Region, blocked
from ..instr import Instr, Shape

#: Rows of a fractal, and columns of a block of L0C.
M0 = N0 = 16
#: The alignment of the pointers into each buffer: whole fractals, table entries, blocks of 32 bytes.
ALIGNMENT = {loc: max(memory.align, memory.entry) for loc, memory in MEMORIES.items()}

#: (row block stride, row stride, column block stride, column stride), in elements.
Steps = tuple[int, int, int, int]


def up(size: int, unit: int) -> int:
    """Round up to a multiple of `unit`."""
    return -(-size // unit) * unit


def block(dtype: str) -> int:
    """Return the number of elements in a block of 32 bytes (C0)."""
    return tiles.block_elements(DTYPES[dtype].bits)


class Matrix(Pointer):
    """A pointer to elements in boxes, with the regions of a tile."""

    __slots__ = ("box", "steps")

    def __init__(self, pointer: Pointer, steps: Steps, box: Shape = (1, 1), dtype: str = "") -> None:
        p = pointer
        super().__init__(p.buffer, p.offset, dtype or p.dtype, p.name, p.home)
        self.steps = steps
        self.box = box

    def region(self, rows: int, cols: int, r: int = 0, c: int = 0) -> Region:
        block_row, row, block_col, col = self.steps
        return Region(
            self.offset, blocked(r, rows, self.box[0], block_row, row),
            blocked(c, cols, self.box[1], block_col, col), DTYPES[self.dtype].bits, 0, (r, c),
        )  # fmt: skip

    def spacing(self, cols: int) -> None:
        return None


def laid_out(pointer: Pointer, layout: str, rows: int, cols: int, box: Shape) -> Matrix:
    """Return a matrix in the layout of a tile of `rows` x `cols` elements, rounded up to whole boxes."""
    rows, cols = up(rows, box[0]), up(cols, box[1])
    return Matrix(pointer, tile_steps(layout, rows, cols, box, rows), box)


def plain(pointer: Pointer, row: int, col: int) -> Matrix:
    """Return a matrix with two strides."""
    return Matrix(pointer, (row, 0, col, 0))


def left(i: Instr, pointer: Pointer, m: int, k: int) -> Matrix:
    """Return an operand in L0A: NZ, on A2 and A3 ZZ."""
    layout = "NZ" if i.core.profile.left_blayout == "col_major" else "ZZ"
    return laid_out(pointer, layout, m, k, (M0, block(pointer.dtype)))


def right(pointer: Pointer, k: int, n: int) -> Matrix:
    """Return an operand in L0B, with k innermost."""
    return laid_out(pointer, "ZN", k, n, (block(pointer.dtype), N0))


def accumulator(pointer: Pointer, m: int, n: int) -> Matrix:
    return laid_out(pointer, "NZ", m, n, (M0, N0))


def left_scales(i: Instr, pointer: Pointer, m: int, groups: int) -> Matrix:
    """Return the MX scales of an operand in L0A: a byte for 32 elements, in boxes of 16 rows and 2 groups.
    They lie in their own buffer, at a sixteenth of the address of the operand."""
    return laid_out(scale_pointer(i, pointer, "scale_left"), "ZZ", m, groups, (M0, 2))


def right_scales(i: Instr, pointer: Pointer, groups: int, n: int) -> Matrix:
    return laid_out(scale_pointer(i, pointer, "scale_right"), "NN", groups, n, (2, N0))


def scale_pointer(i: Instr, pointer: Pointer, loc: str) -> Pointer:
    buffer: Buffer = i.core.buffers[loc]
    return Pointer(buffer, pointer.offset // 16, "f8e8m0", pointer.name)


def aligned(i: Instr, name: str, unit: int = 0) -> Pointer:
    """Return a pointer operand with the element type of its elements, which may be pairs. Stop if it is not
    aligned as hardware requires for its buffer."""
    p: Pointer = i.arg(name)
    operand = i.op.get(name)
    if operand is not None and isinstance(operand.type, PtrType) and operand.type.elem.pairs:
        p = p.at(p.offset, str(operand.type.dtype))
    need = unit or ALIGNMENT.get(p.buffer.space, 1)
    i.require(
        not i.core.profile.behaviour.aligned_copies or p.buffer.space == "gm" or p.offset % need == 0,
        f"expects {name} to be a multiple of {need} bytes, got address {p.offset}",
    )
    return p


def counted(i: Instr, name: str, low: int = 1, bits: int = 16) -> int:
    """Return a run-time size or count, which has to fit a field of the hardware, mostly of 16 bits."""
    found = extent(i, name, low)
    i.require(found < 1 << bits, f"expects {name} to fit {bits} bits, got {found}")
    return found


def extent(i: Instr, name: str, low: int = 1, high: int = 1 << 40) -> int:
    """Return a run-time number, which has to be in a range."""
    found = int(i.arg(name))
    limit = f"{low}..{high}" if high < 1 << 40 else f"at least {low}"
    i.require(low <= found <= high, f"expects {name} to be {limit}, got {found}")
    return found
