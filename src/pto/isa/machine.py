"""The machine that programs run on: memories, cores, pipes and flags, and what each is called where.

What differs between targets (capacities, alignment, which instructions exist) is in `profiles`; this is what
they have in common, or what has one entry per legality column. Which pipe executes an instruction is a fact
of its row (`Row.pipe`). The C++ side gets all of it from `codegen/machine_facts.py`.
"""

from __future__ import annotations

from .record import Record


class Pipe(Record):
    """A queue of a core, whose instructions start in program order."""

    name: str
    number: int  # in attributes and bytecode: PIPE of the field's assembler
    cpp: int  # of the C++ type pipe_t
    doc: str = ""


#: Pipes that flags may name. The last three are names of newer assemblers; nothing is known to run there.
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

#: All pipes of a core, where a barrier or a row names a pipe.
EVERY_PIPE = Pipe("ALL", 6, 6)
#: Where an instruction that uses every pipe may still be at work when it returns: with its last store.
LAST_PIPE = "MTE3"

#: Pipes with a queue: what goes to S, the scalar unit does itself.
QUEUES: tuple[str, ...] = tuple(name for name in PIPES if name != "S")


class CoreKind(Record):
    """A kind of core. A block has a cube core and two vector cores, or one core."""

    kind: str
    section: str  # the operation that holds what runs on this kind only
    pipes: tuple[str, ...]


CORES: dict[str, CoreKind] = {
    c.kind: c
    for c in (
        CoreKind("cube", "pto.section.cube", ("MTE2", "MTE1", "M", "FIX", "MTE3", "S")),
        CoreKind("vector", "pto.section.vector", ("MTE2", "V", "MTE3", "S")),
    )
}

#: Kinds of cores, by the operation that holds what runs on one kind only.
SECTIONS: dict[str, str] = {c.section: c.kind for c in CORES.values()}

#: The kind of core that a pipe is found on, where that is one kind only.
ONLY_ON: dict[str, str] = {
    pipe: c.kind
    for c in CORES.values()
    for pipe in c.pipes
    if not any(pipe in other.pipes for other in CORES.values() if other is not c)
}

#: Vector cores beside a cube core.
SUBBLOCKS = 2
#: Ranks that the structure of a communicator has room for.
MOST_RANKS = 64
#: Ids of flags, for every ordered pair of pipes.
EVENT_IDS = 8
#: Buffer tokens, one pool for all pipes.
TOKENS = 32
#: Semaphores of a core. A5 addresses those of the second vector core with ids from here on.
SEMAPHORES = 16
#: Semaphores free for programs; those above serve grid barriers.
FREE_SEMAPHORES = 11
#: Directions of a FIFO, as bits of `dir_mask`: from the cube to the vector cores, and back.
C2V, V2C = 1, 2
BOTH = C2V | V2C
DIRECTIONS: dict[int, str] = {C2V: "C2V", V2C: "V2C"}


class Memory(Record):
    """An on-chip buffer. Tiles name it by location, pointers and memrefs by space, C++ in its own ways."""

    loc: str
    buffer: str  # name of the hardware
    space: str  # of pointers; empty where no pointer may point there
    tile_type: str  # of the C++ enumeration TileType, in whose order they stand
    qualifier: str  # of C++ pointers
    macro: str  # part of the C++ macros of its size and alignment
    align: int = 1  # of storage that the planner places, where it is more than the profile's
    entry: int = 32  # bytes that pointers into it are multiples of, where that is more than `align`


MEMORIES: dict[str, Memory] = {
    m.loc: m
    for m in (
        Memory("vec", "UB", "ub", "Vec", "__ubuf__", "UBUF"),
        Memory("mat", "L1", "l1", "Mat", "__cbuf__", "CBUF"),
        # Operands and results of the cube are boxes of 512 bytes. Those of f32 results have 1024, and the
        # reference engine once asked for that of pointers to them; but the field's planner places them on the
        # grid of 512, so that is the one number for tiles and for pointers.
        Memory("left", "L0A", "l0a", "Left", "__ca__", "L0A", 512),
        Memory("right", "L0B", "l0b", "Right", "__cb__", "L0B", 512),
        Memory("acc", "L0C", "l0c", "Acc", "__cc__", "L0C", 512),
        Memory("bias", "BT", "bt", "Bias", "__biasbuf__", "BIAS", entry=64),  # an entry of the table
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

#: What every tile may be aligned to.
MOST_ALIGN: int = max(m.align for m in MEMORIES.values())

#: Alignment of buffers that are reserved for FIFOs.
RESERVED_ALIGN = 256

#: Pipes whose instructions may overlap although they depend on each other, by column: they need a barrier
#: between them. Accumulating in M, moving by MTE1 and FIX and loading by MTE2 is done in order.
OVERLAPPING_PIPES: dict[str, frozenset[str]] = {
    "cpu": frozenset(),
    "a2a3": frozenset({"V", "MTE3"}),
    "a5": frozenset({"MTE3"}),
}


class Chaining(Record):
    """Where instructions of an overlapping pipe need no barrier: the later one reads exactly what the earlier
    wrote, both go over all bytes of their tiles in order, and these are so many that it never catches up."""

    pipe: str
    families: tuple[str, ...]  # of instructions that go over their tiles in order
    bytes: int  # at least


#: 16 repeats of 256 bytes.
CHAINING = Chaining("V", ("elementwise-tile-tile", "tile-scalar-and-immediate"), 16 * 256)
