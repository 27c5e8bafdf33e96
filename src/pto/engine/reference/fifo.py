"""FIFOs between the cube core and the vector cores of a cluster: tpush, tpop, tfree, talloc and their set-up.

A `Fifo` is one direction of a TPipe: a ring of slots that both sides see. A slot has the elements of a pushed
tile as a matrix (a FIFO in global memory also has them there, dense and row by row). A pop writes the part of
a lane into the consumer's tile, which lies in the consumer's staging buffer unless it has an address. Slots
are ordinary memory, so sanitizers and shadows follow the data through them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.core import Operation
from ...ir.facts import fifo_slots, function_of, pipe_of
from ...ir.types import TileBufType
from ...isa.dtypes import DTYPES
from ...isa.machine import BOTH, C2V, LOCATION_OF, V2C
from ..memory import Buffer, Pointer, Tile, View, array_of
from ..watch import GIVE, Event, Given
from . import fixpipe
from .core import BLOCKED, Args, Core, QueueItem, queued
from .handles import check_size, home, make_tile, result_name
from .instr import IllegalInstruction, Instr
from .watched import watched

Handler = Callable[[Core, Operation, Args], object]
HANDLERS: dict[str, Handler] = {}


def fifo(*names: str) -> Callable[[Handler], Handler]:
    def register(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return register


class Slot:
    """One entry: its matrix, the lanes that have pushed or freed it, and their `watch.Given`s."""

    __slots__ = ("data", "freed", "frees", "pushed", "pushes")

    def __init__(self) -> None:
        self.data: View | None = None
        self.pushed: set[int] = set()
        self.freed: set[int] = set()
        self.pushes: list[Given | None] = []
        self.frees: list[Given | None] = []

    def matrix(self, name: str, shape: tuple[int, int], dtype: str) -> View:
        """Return the view of the elements in the storage of the slot."""
        if self.data is None or self.data.dims != shape or self.data.dtype != dtype:
            size = -(-shape[0] * shape[1] * DTYPES[dtype].bits // 8)
            buffer = Buffer(name, "fifo", np.zeros(size, np.uint8))
            self.data = View(buffer, 0, shape, (shape[1], 1), dtype, "ND", "")
        return self.data


class Fifo:
    """One direction. Counters are per lane: `heads` counts issued pushes, `tails` issued pops."""

    def __init__(self, key: object, direction: int, slots: int, size: int, lanes: int, nosplit: bool) -> None:
        self.key = key
        self.direction = direction
        self.size = size
        self.count = slots
        self.lanes = lanes  # vector cores of the cluster
        self.nosplit = nosplit
        self.entries: dict[int, Slot] = {}
        self.freed = 0  # the number of entries that were given back without a gap before them
        self.heads: dict[int, int] = {}
        self.tails: dict[int, int] = {}
        self.popped: dict[int, deque[tuple[int, Tile | View]]] = {}  # by lane, not freed yet
        self.memory: Pointer | None = None  # slots in global memory

    @property
    def name(self) -> str:
        return f"{'C2V' if self.direction == C2V else 'V2C'} FIFO {self.key}"

    def frees(self, index: int) -> Sequence[Given | None]:
        """Return the `watch.Given`s of the releases of the previous entry in a slot."""
        return self.entry(index - self.count).frees if index >= self.count else ()

    def takers(self, split: int) -> int:
        """Return the number of vector lanes that take part."""
        return self.lanes if split or self.nosplit else 1

    def entry(self, index: int) -> Slot:
        return self.entries.setdefault(index, Slot())

    def release(self, index: int, lane: int, split: int, given: Given | None) -> None:
        if index < self.freed:
            return  # a pop that loads a copy has given the slot back already
        slot = self.entry(index)
        slot.freed.add(lane)
        slot.frees.append(given)
        parties = self.takers(split) if self.direction == C2V else 1
        while (done := self.entries.get(self.freed)) is not None and len(done.freed) >= parties:
            self.freed += 1
            if self.freed - 2 * self.count in self.entries:
                del self.entries[self.freed - 2 * self.count]


class Ends:
    """The TPipe of a core: its FIFOs by direction, and the staging buffers for the consumer's tiles."""

    #: The operation that opened it, its slots in global memory, and the staging addresses by direction.
    opened: tuple[Operation, Pointer | None, Mapping[int, Any]]

    def __init__(
        self, fifos: dict[int, Fifo], staging: dict[int, tuple[Buffer, int] | None], local_slots: int
    ) -> None:
        self.fifos = fifos
        self.staging = staging
        self.local_slots = local_slots


# -- set-up ------------------------------------------------------------------------------------------------


def _directions(mask: int) -> list[int]:
    return [d for d in (C2V, V2C) if mask & d] if mask <= BOTH else [C2V if mask in (5, 7) else V2C]


def open_ends(
    core: Core, op: Operation, key: object, memory: Pointer | None, buffers: Mapping[int, int | None]
) -> Ends:
    """Return the ends of a TPipe that an operation describes; both sides use the same key."""
    mask = int(op.attr("dir_mask") or C2V)
    size = int(op.attr("slot_size") or 0)
    slots = fifo_slots(op)
    nosplit = bool(op.attr("nosplit"))
    fifos: dict[int, Fifo] = {}
    staging: dict[int, tuple[Buffer, int] | None] = {}
    for n, direction in enumerate(_directions(mask)):
        shared = core.cluster.fifos.get((key, direction))
        if shared is None:
            shared = Fifo(key, direction, slots, size, max(1, len(core.cluster.vectors)), nosplit)
            core.cluster.fifos[key, direction] = shared
        shared.nosplit = shared.nosplit or nosplit
        if memory is not None:
            shared.memory = Pointer(memory.buffer, memory.offset + n * slots * size, "u8", memory.name)
        fifos[direction] = shared
        at = buffers.get(direction)
        loc = "vec" if direction == C2V else "mat"
        staging[direction] = None if at is None else (core.buffers[loc], int(at))
    made = Ends(fifos, staging, int(op.attr("local_slot_num") or 2) if memory is not None else slots)
    made.opened = op, memory, buffers
    return made


def _gm(value: object) -> Pointer | None:
    return value.pointer if isinstance(value, View) else value if isinstance(value, Pointer) else None


@fifo("aic_initialize_pipe", "aiv_initialize_pipe")
def initialize_pipe(core: Core, op: Operation, args: Args) -> None:
    number = int(op.attr("id") or 0)
    buffers = {C2V: args.get("c2v_consumer_buf"), V2C: args.get("v2c_consumer_buf")}
    memory = _gm(args.get("gm_slot_buffer") or args.get("gm_slot_tensor"))
    on_chip = core.profile.behaviour.buffer_slots and "gm_slot_tensor" not in args
    if on_chip and any(at is not None for at in buffers.values()):
        memory = None  # the slots lie in the consumer's buffer
    core.pipes[number] = open_ends(core, op, _meeting_point(op) or number, memory, buffers)


def _meeting_point(op: Operation) -> str:
    """Return the key that both ends of a pipe share: its reserved buffer, and the function that has it."""
    mask = int(op.attr("dir_mask") or C2V)
    for direction, name in ((C2V, "c2v_consumer_buf"), (V2C, "v2c_consumer_buf")):
        value = op.get(name) if mask & direction else None
        made = value.op if value is not None else None
        if made is not None and made.name == "pto.import_reserved_buffer":
            return f"'{made.attr('name')}' of @{made.attr('peer_func')}"
        if made is not None and made.name == "pto.reserve_buffer":
            function = function_of(op)
            if function is not None:
                return f"'{made.attr('name')}' of @{function.attr('sym_name')}"
    return ""


@fifo("initialize_l2l_pipe", "initialize_l2g2l_pipe")
def initialize_local_pipe(core: Core, op: Operation, args: Args) -> Ends:
    memory = _gm(args.get("gm_addr"))
    first, second = args.get("local_addr"), args.get("peer_local_addr")
    mask = int(op.attr("dir_mask") or C2V)
    buffers = {C2V: first, V2C: second if mask == BOTH else first}
    flag = op.attr("flag_base")
    key = f"flag {flag}" if flag is not None else f"at {first}"
    buffers = {d: a if isinstance(a, int) else None for d, a in buffers.items()}
    return open_ends(core, op, key, memory, buffers)


@fifo("reserve_buffer")
def reserve_buffer(core: Core, op: Operation, args: Args) -> int:
    base = op.attr("base")
    if base is not None:
        return int(base)
    loc = LOCATION_OF[str(op.attr("location"))]
    # every core of the cluster sees the same address, so that the peer can import it
    buffer, size = core.buffers[loc], int(op.attr("size"))
    check_size(buffer, size)
    name = ("reserve", str(op.attr("name")))
    found = core.cluster.reserved.get(name)
    if found is None:
        found = core.cluster.reserved[name] = buffer.reserve(size)
    buffer.grow(found + size)
    buffer.unplaced = max(buffer.unplaced, found + size)
    return found


@fifo("import_reserved_buffer")
def import_reserved_buffer(core: Core, op: Operation, args: Args) -> int:
    peer = core.grid.function(str(op.attr("peer_func")))
    wanted = str(op.attr("name"))
    for other in peer.walk() if peer is not None else ():
        if other.name == "pto.reserve_buffer" and str(other.attr("name")) == wanted:
            base = other.attr("base")
            if base is not None:
                return int(base)
            found = core.cluster.reserved.get(("reserve", wanted))
            if found is None:
                buffer, size = core.buffers[LOCATION_OF[str(other.attr("location"))]], int(other.attr("size"))
                check_size(buffer, size)
                found = core.cluster.reserved["reserve", wanted] = buffer.reserve(size)
            return found
    raise IllegalInstruction(f"no buffer '{wanted}' is reserved in '@{op.attr('peer_func')}'")


def _ends(core: Core, op: Operation, args: Args) -> Ends:
    if "pipe_handle" in args:
        return args["pipe_handle"]
    number = int(op.attr("id") or 0)
    found = core.pipes.get(number)
    if found is None:
        raise IllegalInstruction(f"pipe {number} is not initialized on this core")
    return found


def _outgoing(core: Core, ends: Ends) -> Fifo:
    """Return the FIFO that this core pushes to."""
    wanted = V2C if core.kind == "vector" else C2V
    return ends.fifos.get(wanted) or next(iter(ends.fifos.values()))


def _incoming(core: Core, ends: Ends) -> tuple[Fifo, int]:
    wanted = C2V if core.kind == "vector" else V2C
    direction = wanted if wanted in ends.fifos else next(iter(ends.fifos))
    return ends.fifos[direction], direction


def _lane(core: Core, args: Args) -> int:
    given = args.get("aiv_subblockid")
    return int(given) if given is not None else core.sub if core.kind == "vector" else 0


def _idle_lane(core: Core, pipe: Fifo, split: int) -> bool:
    """Return whether this vector core takes no part: without a split only the first one does."""
    return core.kind == "vector" and not split and core.sub > 0 and not pipe.nosplit


# -- producing ---------------------------------------------------------------------------------------------


class Push(QueueItem):
    """Writes a tile into its slot and publishes it."""

    __slots__ = ("fifo", "index", "instr", "lane", "split")
    what, kind = GIVE, "entry"

    def __init__(self, instr: Instr, fifo: Fifo, index: int, lane: int, split: int) -> None:
        super().__init__(instr.op, (fifo.name, index))
        self.instr = instr
        self.fifo = fifo
        self.index = index
        self.lane = lane
        self.split = split

    @property
    def writes(self) -> bool:
        """True if it has data: not for a commit of a talloc, and without a split only on the first lane."""
        empty = self.fifo.direction == V2C and not self.split and self.lane > 0
        return self.instr.args["tile"].__class__ is Tile and not empty

    def to_watch(self, core: Core, pipe: str) -> Event:
        return watched(self.instr, self._write) if self.writes else super().to_watch(core, pipe)

    def ready(self, core: Core, pipe: str) -> bool:
        return self.index - self.fifo.freed < self.fifo.count

    def take(self, core: Core, pipe: str) -> Sequence[Any]:
        return self.fifo.frees(self.index)

    def waits_for(self, core: Core, pipe: str) -> str:
        f = self.fifo
        return f"a free slot of {f.name}: all {f.count} slots hold entries that were not freed"

    def provider(self, core: Core) -> tuple[Core, str] | None:
        return queued(
            core.cluster.cores, lambda item: isinstance(item, Free | Pop) and item.fifo is self.fifo
        )

    def perform(self, core: Core, pipe: str) -> None:
        if self.writes:
            core.execute(self.instr, self._write)
        slot = self.fifo.entry(self.index)
        slot.pushed.add(self.lane)
        slot.pushes.append(core.give(self.event, "entry", self.key))

    def _write(self, i: Instr) -> None:
        f = self.fifo
        tile: Tile = i.args["tile"]
        matrix, dtype = fixpipe.pushed(i, tile)
        bits = DTYPES[dtype].bits
        rows, cols = matrix.shape
        whole, at = (rows, cols), (0, 0)
        if f.direction == V2C and i.core.kind == "vector" and self.split:
            down = self.split in (1, 3)
            mine = rows if down else cols
            total, first = mine * f.lanes, self.lane * mine
            if self.split > 2 and f.lanes > 1:  # the first lane has one more
                total, first = (total + 1, first + 1) if self.lane else (total - 1, 0)
            whole = (total, cols) if down else (rows, total)
            at = (first, 0) if down else (0, first)
        data = f.entry(self.index).matrix(f"slot {self.index % f.count} of {f.name}", whole, dtype)
        size = data.buffer.data.size
        # on chip, each vector core has slots for its part of a tile
        room = f.size * (f.lanes if self.split and f.memory is None else 1)
        if size > room > 0 and bits >= 8:
            raise IllegalInstruction(f"a tile of {size} bytes does not fit a slot of {f.size}")
        i.store_raw(data, matrix, at)
        if f.memory is not None and bits >= 8:
            start = f.memory.offset + self.index % f.count * f.size
            place = View(f.memory.buffer, start, whole, (whole[1], 1), dtype, "ND", f.memory.name)
            i.store_raw(place, matrix, at)


@fifo("tpush", "tpush_to_aiv", "tpush_to_aic")
def tpush(core: Core, op: Operation, args: Args) -> object:
    pipe = _outgoing(core, _ends(core, op, args))
    split, lane = int(op.attr("split") or 0), _lane(core, args)
    if _idle_lane(core, pipe, split):
        return None
    if isinstance(args["tile"], View):  # commit the slot of the talloc
        index = pipe.heads.get(lane, 1) - 1
    else:
        index = pipe.heads.get(lane, 0)
        pipe.heads[lane] = index + 1
    if isinstance(args["tile"], View):  # the pipe that wrote the slot
        where = "FIX" if pipe.direction == C2V else "MTE3"
    else:
        where = pipe_of(op, core.profile)
    i = Instr(op, args, core, where)
    core.enqueue(where, Push(i.frozen(), pipe, index, lane, split))
    return None


class Allocate(QueueItem):
    """Takes the next free slot, which is then written as a view."""

    __slots__ = ("fifo", "index")
    kind = "slot"

    def __init__(self, op: Operation, fifo: Fifo, index: int) -> None:
        super().__init__(op, (fifo.name, index))
        self.fifo = fifo
        self.index = index

    def ready(self, core: Core, pipe: str) -> bool:
        return self.index - self.fifo.freed < self.fifo.count

    def take(self, core: Core, pipe: str) -> Sequence[Any]:
        return self.fifo.frees(self.index)

    def waits_for(self, core: Core, pipe: str) -> str:
        return f"a free slot of {self.fifo.name}"


@fifo("talloc")
def talloc(core: Core, op: Operation, args: Args) -> Any:
    pipe = _outgoing(core, args["pipe_handle"])
    lane, split = _lane(core, args), int(op.attr("split") or 0)
    index = pipe.heads.get(lane, 0)
    if core.stall(Allocate(op, pipe, index)) == BLOCKED:
        return BLOCKED
    pipe.heads[lane] = index + 1
    _point(args["entry"], pipe, index, split if pipe.direction == V2C else 0, lane)
    return None


def _point(view: View, pipe: Fifo, index: int, split: int, lane: int) -> None:
    """Bind a view to a slot, or to the part of a lane in it."""
    if pipe.memory is None:
        raise IllegalInstruction("cannot bind a view to an entry: the FIFO is not in global memory")
    view.buffer = pipe.memory.buffer
    rows, cols = (1, 1, *view.dims)[-2:]
    part = rows * cols * lane if split in (1, 3) else cols * lane if split in (2, 4) else 0
    view.offset = pipe.memory.offset + index % pipe.count * pipe.size + part * view.bits // 8


# -- consuming ---------------------------------------------------------------------------------------------


class Pop(QueueItem):
    """Waits for a slot to be published and loads it."""

    __slots__ = ("fifo", "frees", "index", "instr", "lane", "split")
    kind = "entry"
    unprovided = ", which no core has pushed"

    def __init__(self, instr: Instr, fifo: Fifo, index: int, lane: int, split: int, frees: bool) -> None:
        super().__init__(instr.op, (fifo.name, index))
        self.instr = instr
        self.fifo = fifo
        self.index = index
        self.lane = lane
        self.split = split
        self.frees = frees

    def ready(self, core: Core, pipe: str) -> bool:
        f = self.fifo
        slot = f.entries.get(self.index)
        if slot is None:
            return False
        if f.direction == V2C and not self.split:
            return 0 in slot.pushed  # only the first lane has data
        return len(slot.pushed) >= (f.lanes if f.direction == V2C else 1)

    def to_watch(self, core: Core, pipe: str) -> Event:
        reads = isinstance(self.instr.args["tile"], Tile)
        return watched(self.instr, self._read) if reads else super().to_watch(core, pipe)

    def take(self, core: Core, pipe: str) -> Sequence[Any]:
        return self.fifo.entry(self.index).pushes

    def waits_for(self, core: Core, pipe: str) -> str:
        return f"entry {self.index} of {self.fifo.name}"

    def provider(self, core: Core) -> tuple[Core, str] | None:
        return queued(core.cluster.cores, lambda item: isinstance(item, Push) and item.fifo is self.fifo)

    def perform(self, core: Core, pipe: str) -> None:
        if isinstance(self.instr.args["tile"], Tile):
            core.execute(self.instr, self._read)
            if pipe == "S":  # the scalar unit stalls, so all pipes are ordered after it
                core.barrier(self.op, "S")
        if self.frees:
            given = core.give(self.event, "slot", self.key)
            self.fifo.release(self.index, self.lane, self.split, given)

    def _read(self, i: Instr) -> None:
        f, data = self.fifo, self.fifo.entry(self.index).data
        tile: Tile = i.args["tile"]
        if data is None:
            raise IllegalInstruction("cannot pop a tile: the entry was pushed as a view")
        (r, c), (rows, cols) = (0, 0), (data.dims[0], data.dims[1])
        empty = False
        if f.direction == C2V and i.core.kind == "vector":
            (r, c), (rows, cols) = _window(rows, cols, self.split, self.lane)
            empty = f.nosplit and not self.split and self.lane > 0
        rows, cols = min(rows, tile.rows), min(cols, tile.cols)
        part = i.raw(data, (rows, cols), (r, c))
        if empty:
            part = np.zeros_like(part)
        if data.dtype != tile.dtype:
            part = i.encoded(i.decoded(data.dtype, part), tile.dtype)
        i.store_raw(tile, part)


def _window(rows: int, cols: int, split: int, lane: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the part of a slot that a vector core reads: its first element and its extents."""
    if split in (1, 3):
        half = -(-rows // 2)
        return (lane * half, 0), (half if lane == 0 else rows - half, cols)
    if split in (2, 4):
        half = -(-cols // 2)
        return (0, lane * half), (rows, half if lane == 0 else cols - half)
    return (0, 0), (rows, cols)


def _pop_frees(core: Core, pipe: Fifo) -> bool:
    """Return whether popping a tile gives its slot back, because it makes a copy."""
    does = core.profile.behaviour
    return does.copying_pops and (not does.buffer_slots or pipe.memory is not None)


@fifo("tpop", "tpop_from_aic", "tpop_from_aiv")
def tpop(core: Core, op: Operation, args: Args) -> Any:
    ends = _ends(core, op, args)
    pipe, direction = _incoming(core, ends)
    split, lane = int(op.attr("split") or 0), _lane(core, args)
    declared = op.results[0].type if op.results else None
    index = pipe.tails.get(lane, 0)
    entry = args.get("tile")
    if entry is None:
        assert isinstance(declared, TileBufType)
        entry = make_tile(
            core, declared, None, (args.get("valid_row"), args.get("valid_col")), result_name(op)
        )
    frees = isinstance(entry, Tile) and _pop_frees(core, pipe)
    i = Instr(op, {**args, "tile": entry}, core, pipe_of(op, core.profile))
    item = Pop(i, pipe, index, lane, split, frees)
    if i.pipe == "S" and not item.ready(core, "S") and not _idle_lane(core, pipe, split):
        return core.pause(item, item)
    pipe.tails[lane] = index + 1
    if isinstance(entry, Tile):
        _stage(core, op, entry, ends, direction, index, pipe)
    elif not _idle_lane(core, pipe, split):
        if not item.ready(core, "S"):
            pipe.tails[lane] = index
            return core.pause(item, item)
        _point(entry, pipe, index, split if direction == C2V else 0, lane)
    if not _idle_lane(core, pipe, split):
        pipe.popped.setdefault(lane, deque()).append((index, entry.copy()))
    if _idle_lane(core, pipe, split):
        if isinstance(entry, Tile):
            core.issue(i, lambda j: j.store_raw(entry, np.zeros(entry.valid, array_of(entry.dtype))))
    elif i.pipe == "S":
        core.stall(item)
    else:
        i.frozen()
        core.enqueue(i.pipe, item)
    return entry if op.results else None


def _stage(core: Core, op: Operation, tile: Tile, ends: Ends, direction: int, index: int, pipe: Fifo) -> None:
    """Place a popped tile in the staging buffer of its direction."""
    staging = ends.staging.get(direction)
    if staging is not None:
        tile.buffer = staging[0]
        size = pipe.size or tile.size
        tile.address = staging[1] + index % ends.local_slots * size
        tile.buffer.grow(tile.address + tile.size)
    elif tile.address is None:
        tile.address = home(core, (op, index % ends.local_slots), tile.buffer, tile.size)


class Free(QueueItem):
    """Gives a slot back when the pipe that reads popped tiles reaches this item."""

    __slots__ = ("entry", "fifo", "index", "lane", "split")
    what, kind = GIVE, "slot"

    def __init__(
        self, op: Operation, fifo: Fifo, index: int, lane: int, split: int, entry: Tile | View
    ) -> None:
        super().__init__(op, (fifo.name, index))
        self.fifo = fifo
        self.index = index
        self.lane = lane
        self.split = split
        self.entry = entry

    def perform(self, core: Core, pipe: str) -> None:
        given = core.give(self.event, "slot", self.key)
        self.fifo.release(self.index, self.lane, self.split, given)
        if core.watch is not None and isinstance(self.entry, Tile) and self.fifo.memory is None:
            core.watch.tell("freed", core, self.op, self.entry)


@fifo("tfree", "tfree_from_aic", "tfree_from_aiv")
def tfree(core: Core, op: Operation, args: Args) -> object:
    """Give back the slot that was popped first. The item is queued on the consuming pipe: MTE2 for slots in
    global memory, V or MTE1 for slots on chip."""
    pipe, direction = _incoming(core, _ends(core, op, args))
    split, lane = int(op.attr("split") or 0), _lane(core, args)
    if _idle_lane(core, pipe, split):
        return None
    popped = pipe.popped.get(lane)
    if not popped:
        raise IllegalInstruction(f"frees an entry of {pipe.name} that was not popped")
    index, entry = popped.popleft()
    if isinstance(entry, Tile) and _pop_frees(core, pipe):
        return None
    on_chip = isinstance(entry, Tile) and pipe.memory is None
    core.enqueue(
        ("V" if direction == C2V else "MTE1") if on_chip else "MTE2",
        Free(op, pipe, index, lane, split, entry),
    )
    return None
