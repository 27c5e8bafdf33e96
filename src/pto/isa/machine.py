"""The machine that programs run on: memories, cores and pipes, and what each is called where.

What differs between targets (capacities, alignment, which instructions exist) is in `profiles`; this is what
they have in common, or what has one entry per legality column.
"""

from __future__ import annotations

from .record import Record


class Memory(Record):
    """An on-chip buffer. Tiles name it by location, pointers and memrefs by space, C++ in its own ways."""

    loc: str
    buffer: str  # name of the hardware
    space: str  # of pointers; empty where no pointer may point there
    tile_type: str  # of the C++ enumeration TileType, in whose order they stand
    qualifier: str  # of C++ pointers
    macro: str  # part of the C++ macros of its size and alignment
    align: int = 1  # of storage that the planner places, where it is more than the profile's


MEMORIES: dict[str, Memory] = {
    m.loc: m
    for m in (
        Memory("vec", "UB", "ub", "Vec", "__ubuf__", "UBUF"),
        Memory("mat", "L1", "l1", "Mat", "__cbuf__", "CBUF"),
        # Operands and results of the cube are boxes of 512 bytes; those of f32 results have 1024, and may lie
        # anywhere on the grid of 512.
        Memory("left", "L0A", "l0a", "Left", "__ca__", "L0A", 512),
        Memory("right", "L0B", "l0b", "Right", "__cb__", "L0B", 512),
        Memory("acc", "L0C", "l0c", "Acc", "__cc__", "L0C", 512),
        Memory("bias", "BT", "bt", "Bias", "__biasbuf__", "BIAS"),
        Memory("scaling", "FB", "fb", "Scaling", "__fbuf__", "FBUF"),
        Memory("scale_left", "L0A scale", "", "ScaleLeft", "__ca__", "SCALELEFT"),
        Memory("scale_right", "L0B scale", "", "ScaleRight", "__cb__", "SCALERIGHT"),
    )
}

#: Spaces of pointers: global memory, then the buffers.
POINTER_SPACES: tuple[str, ...] = ("gm", *(m.space for m in MEMORIES.values() if m.space))

#: The location of a space: pointers and memrefs may also be written with the location itself.
LOCATION_OF: dict[str, str] = {
    **{m.space: m.loc for m in MEMORIES.values() if m.space}, **{loc: loc for loc in MEMORIES}
}  # fmt: skip

#: Alignment of buffers that are reserved for FIFOs.
RESERVED_ALIGN = 256

#: Kinds of cores, by the operation that holds what runs on one kind only.
SECTIONS: dict[str, str] = {"pto.section.cube": "cube", "pto.section.vector": "vector"}

#: Pipes whose instructions may overlap although they depend on each other, by column: they need a barrier
#: between them. Accumulating in M, moving by MTE1 and FIX and loading by MTE2 is done in order.
OVERLAPPING_PIPES: dict[str, frozenset[str]] = {
    "cpu": frozenset(),
    "a2a3": frozenset({"V", "MTE3"}),
    "a5": frozenset({"MTE3"}),
}
