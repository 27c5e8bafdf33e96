"""Addresses for reserved buffers and flags for FIFOs; afterwards both are plain numbers in the program.

    %buf = pto.reserve_buffer {name = "ring", size = 8192, location = <vec>, auto = true} -> i32
    %p = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 8} (%buf : i32) -> !pto.pipe
becomes
    %buf = arith.constant 16384 : i32
    %p = pto.initialize_l2l_pipe {dir_mask = 1, ..., flag_base = 0} (%buf : i32) -> !pto.pipe

Memory planning, if it ran, has placed the buffers. Next to tiles placed by hand, a buffer gets the first
hole, aligned to 256 bytes, that no tile of the functions on its core and no other reserved buffer uses. The
flags of two FIFOs of one kernel never overlap.
"""

from __future__ import annotations

from ..ir.attrs import IntAttr
from ..ir.core import Operation, constant_of
from ..ir.types import I32
from ..isa.machine import SEMAPHORES
from ..isa.profiles import LOCATIONS
from ..isa.record import Record
from .aliases import location, storage_bytes
from .edit import constant, function_name, operations, replace_values, rewrite
from .peers import Groups, LogicalPipe, called_together, kernels, pipes, reserved
from .pipeline import PassContext

ALIGN = 256
FLAGS = SEMAPHORES  # number of flags for FIFOs

Range = tuple[int, int]  # first byte, end
Name = tuple[str, str]  # function, buffer


class ReservedBuffer(Record):
    """A reserve_buffer of a function."""

    function: str
    op: Operation

    @property
    def loc(self) -> str:
        return str(self.op.attr("location"))

    @property
    def size(self) -> int:
        return int(self.op.attr("size"))


def run(ctx: PassContext) -> None:
    _set_flags(ctx, pipes(ctx))
    buffers = {
        (function_name(func), str(op.attr("name"))): ReservedBuffer(function_name(func), op)
        for func in ctx.module.functions
        for op in operations(func.regions[0])
        if op.name == "pto.reserve_buffer"
    }
    if buffers:
        bases = _Places(ctx, buffers).choose()
        if len(bases) == len(buffers):
            _fix(ctx, bases)


# -- addresses ---------------------------------------------------------------------------------------------


class _Places:
    """Chooses addresses of reserved buffers."""

    def __init__(self, ctx: PassContext, buffers: dict[Name, ReservedBuffer]) -> None:
        self.ctx = ctx
        self.buffers = buffers
        self.together = called_together(ctx.module)
        self.functions = {function_name(f): f for f in ctx.module.functions}
        self.taken: dict[tuple[str, str], list[Range] | Operation] = {}  # function and space -> tiles
        self.bases: dict[Name, int] = {}

    def choose(self) -> dict[Name, int]:
        """Choose addresses: fixed buffers first, so that the others stay clear of them."""
        for name, buffer in self.buffers.items():
            if buffer.op.attr("base") is not None:
                self.bases[name] = int(buffer.op.attr("base"))
        for name, buffer in self.buffers.items():
            if name not in self.bases:
                base = self._hole(buffer)
                if base is not None:
                    self.bases[name] = base
        return self.bases

    def _hole(self, buffer: ReservedBuffer) -> int | None:
        capacity = self.ctx.profile.capacity[buffer.loc]
        taken: list[Range] = []
        for function in self._neighbours(buffer):
            tiles = self._tiles(function, buffer.loc)
            if isinstance(tiles, Operation):
                d = self.ctx.report(
                    buffer.op,
                    "PTO-E1108",
                    "expects 'base' to be resolved before address materialization",
                    expected="tiles at constant addresses, or a base",
                    got="a tile with a dynamic address",
                    help="write auto = false, base = <address>",
                )
                d.notes.append(("the tile", self.ctx.span(tiles)))
                return None
            taken.extend(tiles)
        for name, base in self.bases.items():
            other = self.buffers[name]
            if other.loc == buffer.loc and other.function in self._neighbours(buffer):
                taken.append((base, base + other.size))
        at = first_hole(taken, buffer.size, capacity)
        if at is not None:
            return at
        free = capacity - sum(high - low for low, high in merged(taken))
        self.ctx.report(
            buffer.op,
            "PTO-E1108",
            "failed to allocate local memory hole for reserve_buffer",
            at="size",
            expected=f"{buffer.size} free bytes of {buffer.loc} ({LOCATIONS[buffer.loc]}) in one piece",
            got=f"{max(free, 0)} of {capacity} bytes free, the largest piece {_largest(taken, capacity)}",
            help="use smaller tiles, fewer of them at a time, or a smaller FIFO",
        )
        return None

    def _neighbours(self, buffer: ReservedBuffer) -> list[str]:
        """Return the functions that may use the memory of the same core while the buffer is in use."""
        kinds = self.ctx.kinds
        mine = kinds.get(buffer.function, "mix")
        group = self.together.find(buffer.function)
        return [
            name
            for name in self.functions
            if self.together.find(name) == group
            and (mine == "mix" or kinds.get(name, "mix") in (mine, "mix"))
        ]

    def _tiles(self, function: str, loc: str) -> list[Range] | Operation:
        """Return the bytes of the tiles of a function, or a tile whose address is not constant."""
        if (function, loc) not in self.taken:
            self.taken.update({(function, where): [] for where in LOCATIONS})
            for op in operations(self.functions[function].regions[0]):
                self._note(function, op)
        return self.taken[function, loc]

    def _note(self, function: str, op: Operation) -> None:
        if op.name in ("pto.alloc_tile", "pto.pointer_cast"):
            made = op
        elif op.name == "pto.tassign":
            made = op.operands[0].op
        else:
            return
        address = op.group("addrs")[0] if op.name == "pto.pointer_cast" else op.get("addr")
        if made is None or address is None or not made.results:
            return
        key = (function, location(made))
        at = constant_of(address)
        known = self.taken.get(key)
        if isinstance(known, list) and not isinstance(at, int):
            self.taken[key] = op
        elif isinstance(known, list) and isinstance(at, int):
            known.append((at, at + (storage_bytes(made) or 1)))


def merged(taken: list[Range]) -> list[Range]:
    """Merge ranges of bytes into disjoint ones, in order."""
    out: list[Range] = []
    for low, high in sorted(taken):
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out


def first_hole(taken: list[Range], size: int, capacity: int) -> int | None:
    """Return the lowest aligned address with `size` free bytes."""
    at = 0
    for low, high in merged(taken):
        if at + size <= low:
            break
        at = max(at, -(-high // ALIGN) * ALIGN)
    return at if at + size <= capacity else None


def _largest(taken: list[Range], capacity: int) -> int:
    best, at = 0, 0
    for low, high in [*merged(taken), (capacity, capacity)]:
        best = max(best, low - at)
        at = max(at, -(-high // ALIGN) * ALIGN)
    return best


def _fix(ctx: PassContext, bases: dict[Name, int]) -> None:
    """Replace every reservation and import of a buffer by its address."""
    for func in ctx.module.functions:
        function = function_name(func)
        values = {}

        def visit(op: Operation) -> list[Operation] | None:
            if op.name not in ("pto.reserve_buffer", "pto.import_reserved_buffer"):
                return None
            name = reserved(function, op.result)  # noqa: B023
            if name not in bases:  # in an unverified program
                return None
            made = constant(bases[name], I32, op, op.result.name)
            values[op.result] = made.result  # noqa: B023
            return [made]

        rewrite(func.regions[0], visit)
        replace_values(func.regions[0], values)


# -- flags -------------------------------------------------------------------------------------------------


def _set_flags(ctx: PassContext, found: list[LogicalPipe]) -> None:
    if not found:
        return
    groups = kernels(ctx.module)
    given: list[LogicalPipe] = []
    asked: list[LogicalPipe] = []
    for pipe in found:
        explicit = [end for end in pipe.ends if end.init.attr("flag_base") is not None]
        for end in explicit[1:]:
            if end.init.attr("flag_base") != explicit[0].init.attr("flag_base"):
                d = ctx.report(
                    end.init,
                    "PTO-E1109",
                    "conflicting explicit flag_base across peer pipe inits",
                    at="flag_base",
                )
                d.notes.append(("the other end", ctx.span(explicit[0].init)))
        for end in pipe.ends:
            if explicit and end.init.attr("flag_base") is None:
                end.init.set_attr("flag_base", explicit[0].init.attrs["flag_base"])
        (given if explicit else asked).append(pipe)
    asked.sort(key=lambda p: min(ctx.pipe_ids.get(end.init, FLAGS) for end in p.ends))
    placed = [(pipe, int(pipe.ends[0].init.attr("flag_base"))) for pipe in given]
    for pipe in asked:
        base = _free_flags(pipe, placed, groups)
        if base is None:
            _too_many(ctx, pipe, placed)
            continue
        placed.append((pipe, base))
        for end in pipe.ends:
            end.init.set_attr("flag_base", IntAttr(base))


def _free_flags(pipe: LogicalPipe, placed: list[tuple[LogicalPipe, int]], groups: Groups) -> int | None:
    """Return the lowest even base that is unused in the kernel; else one that is unused in these
    functions."""
    mine = {groups.find(name) for name in pipe.functions}
    kernel = [(p, b) for p, b in placed if not mine.isdisjoint(groups.find(name) for name in p.functions)]
    same = [(p, b) for p, b in kernel if not pipe.functions.isdisjoint(p.functions)]
    for others in (kernel, same):
        for base in range(0, FLAGS - pipe.flags + 1, 2):
            if all(base + pipe.flags <= b or b + p.flags <= base for p, b in others):
                return base
    return None


def _too_many(ctx: PassContext, pipe: LogicalPipe, placed: list[tuple[LogicalPipe, int]]) -> None:
    mine = [p for p, _ in placed if not pipe.functions.isdisjoint(p.functions)]
    needed = sum(p.flags for p in (*mine, pipe))
    ctx.report(
        pipe.ends[0].init,
        "PTO-E1109",
        f"cannot allocate flags for this FIFO: all {FLAGS} of a core are in use",
        expected=f"at most {FLAGS} flags: 2 per direction of a FIFO",
        got=f"{needed} for {len(mine) + 1} FIFOs",
        help="use one FIFO for more than one kind of tile",
    )
