"""The machine: memories, cores, pipes and flags, with their names in each notation.

Differences between targets (capacities, alignment, existing instructions) are in `profiles`; this module has
the common facts, and facts with one entry per legality column. The pipe of an instruction is a fact of its
row (`Row.pipe`). `codegen/machine_facts.py` generates the C++ version of this module.
"""

from __future__ import annotations

from .record import Record


class Pipe(Record):
    """A queue of a core, whose instructions start in program order."""

    name: str
    number: int  # in attributes and bytecode: PIPE of PTOAS
    cpp: int  # value of the C++ type pipe_t
    doc: str = ""


#: Pipes that flags may name. The last three are names of newer assemblers; no known instruction runs there.
PIPES: dict[str, Pipe] = {
    p.name: p
    for p in (
        Pipe("S", 0, 0, "scalars, addresses, single elements"),
        Pipe("V", 1, 1, "vector instructions, UB -> UB"),
        Pipe("M", 2, 5, "products of matrices"),
        Pipe("MTE1", 3, 2, "L1 -> L0A, L0B, BT"),
        Pipe("MTE2", 4, 3, "GM -> UB, L1"),
        Pipe("MTE3", 5, 4, "UB, L1 -> GM, UB -> L1"),
        Pipe("FIX", 10, 7, "L0C -> L1, GM, UB; L1 -> FB"),
        Pipe("MTE4", 7, 8),
        Pipe("MTE5", 8, 9),
        Pipe("V2", 9, 10),
    )
}

#: All pipes of a core, in a barrier or a row.
EVERY_PIPE = Pipe("ALL", 6, 6)
#: The pipe of the last store of an instruction that uses every pipe, which may still run when the instruction
#: returns.
LAST_PIPE = "MTE3"

#: Pipes with a queue; the scalar unit itself executes the instructions of S.
QUEUES: tuple[str, ...] = tuple(name for name in PIPES if name != "S")


class CoreKind(Record):
    """A kind of core. A block has a cube core and two vector cores, or one core."""

    kind: str
    section: str  # the operation for code that runs on this kind only
    pipes: tuple[str, ...]


CORES: dict[str, CoreKind] = {
    c.kind: c
    for c in (
        CoreKind("cube", "pto.section.cube", ("MTE2", "MTE1", "M", "FIX", "MTE3", "S")),
        CoreKind("vector", "pto.section.vector", ("MTE2", "V", "MTE3", "S")),
    )
}

#: Operation for code of one kind of core -> the kind.
SECTIONS: dict[str, str] = {c.section: c.kind for c in CORES.values()}

#: Pipe that exists on only one kind of core -> the kind.
ONLY_ON: dict[str, str] = {
    pipe: c.kind
    for c in CORES.values()
    for pipe in c.pipes
    if not any(pipe in other.pipes for other in CORES.values() if other is not c)
}

#: Number of vector cores per cube core.
SUBBLOCKS = 2
#: Maximum number of ranks in the structure of a communicator.
MOST_RANKS = 64
#: Number of flag ids, for every ordered pair of pipes.
EVENT_IDS = 8
#: Number of buffer tokens, in one pool for all pipes.
TOKENS = 32
#: Number of semaphores of a core. A5 addresses the semaphores of the second vector core with ids from this
#: number.
SEMAPHORES = 16
#: Number of semaphores for programs; those above serve grid barriers.
FREE_SEMAPHORES = 11
#: Directions of a FIFO, as bits of `dir_mask`: from the cube to the vector cores, and back.
C2V, V2C = 1, 2
BOTH = C2V | V2C
DIRECTIONS: dict[int, str] = {C2V: "C2V", V2C: "V2C"}


class Memory(Record):
    """An on-chip buffer. Tiles name it by location, pointers and memrefs by space; C++ has its own names."""

    loc: str
    buffer: str  # name of the hardware buffer
    space: str  # space of pointers; empty if pointers to it are not allowed
    tile_type: str  # name in the C++ enumeration TileType, which has the same order
    qualifier: str  # qualifier of C++ pointers
    macro: str  # part of the C++ macros of its size and alignment
    align: int = 1  # alignment of planned storage, if larger than the alignment of the profile
    entry: int = 32  # alignment of pointers, if larger than `align`


MEMORIES: dict[str, Memory] = {
    m.loc: m
    for m in (
        Memory("vec", "UB", "ub", "Vec", "__ubuf__", "UBUF"),
        Memory("mat", "L1", "l1", "Mat", "__cbuf__", "CBUF"),
        # Operands and results of the cube are boxes of 512 bytes. Boxes of f32 results have 1024 bytes, but
        # the planner of PTOAS places them with an alignment of 512, so 512 is the alignment of tiles and
        # pointers.
        Memory("left", "L0A", "l0a", "Left", "__ca__", "L0A", 512),
        Memory("right", "L0B", "l0b", "Right", "__cb__", "L0B", 512),
        Memory("acc", "L0C", "l0c", "Acc", "__cc__", "L0C", 512),
        Memory("bias", "BT", "bt", "Bias", "__biasbuf__", "BIAS", entry=64),  # the size of a table entry
        Memory("scaling", "FB", "fb", "Scaling", "__fbuf__", "FBUF"),
        Memory("scale_left", "L0A scale", "", "ScaleLeft", "__ca__", "SCALELEFT"),
        Memory("scale_right", "L0B scale", "", "ScaleRight", "__cb__", "SCALERIGHT"),
    )
}

#: Spaces of pointers: global memory, then the buffers.
POINTER_SPACES: tuple[str, ...] = ("gm", *(m.space for m in MEMORIES.values() if m.space))

#: Space or location -> location. Pointers and memrefs may also be written with the location.
LOCATION_OF: dict[str, str] = {
    **{m.space: m.loc for m in MEMORIES.values() if m.space}, **{loc: loc for loc in MEMORIES}
}  # fmt: skip

#: The largest alignment of a tile.
MOST_ALIGN: int = max(m.align for m in MEMORIES.values())

#: Alignment of buffers that are reserved for FIFOs.
RESERVED_ALIGN = 256

#: Pipes by column whose instructions may overlap even if they depend on each other, so that they need a
#: barrier. Accumulation in M, moves by MTE1 and FIX, and loads by MTE2 happen in order.
OVERLAPPING_PIPES: dict[str, frozenset[str]] = {
    "cpu": frozenset(),
    "a2a3": frozenset({"V", "MTE3"}),
    "a5": frozenset({"MTE3"}),
}


class Chaining(Record):
    """Conditions under which dependent instructions of an overlapping pipe need no barrier: the later one
    reads exactly the bytes that the earlier one wrote, both process all bytes of their tiles in order, and
    the tiles have at least this size, so that the later one never overtakes the earlier one."""

    pipe: str
    families: tuple[str, ...]  # families of instructions that process their tiles in order
    bytes: int  # minimum size


#: 16 repeats of 256 bytes.
CHAINING = Chaining("V", ("elementwise-tile-tile", "tile-scalar-and-immediate"), 16 * 256)
