"""Conflicts of instructions: accesses to the same bytes, at least one of them a write.

Sets of instructions are numbers with one bit each. Places are compared once each, not once per instruction:
the conflicts of an instruction are the writers (and, if it writes, the readers) of the places that overlap
its own. Windows whose offsets change between iterations are compared per loop.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from ...ir.core import Operation, Value
from ...ir.types import ConvTileType, MemRefType, PtrType, TileBufType, ViewType
from ...isa.machine import CHAINING, OVERLAPPING_PIPES
from .affine import BIG
from .bytes import BytePlace
from .linear import CoreProgram, Step, copies
from .regions import ANYWHERE, GM, Places, fifo_of

_MEMORY = (TileBufType, ConvTileType, ViewType, MemRefType, PtrType)


class PlaceAccess(NamedTuple):
    place: BytePlace
    write: bool
    #: True if an instruction has to follow earlier conflicts; True if later conflicts have to follow it.
    follows: bool = True
    leads: bool = True


class _Users:
    """The instructions that access one place."""

    __slots__ = ("atomic", "chained", "meets", "readers", "writers")

    def __init__(self) -> None:
        self.readers = 0
        self.writers = 0
        self.atomic = 0  # writers that may overlap each other
        self.chained = 0  # vector instructions that write exactly its bytes
        #: Users of the places that overlap this one, by loop and by whether it is written.
        self.meets: dict[tuple[Step | None, bool], list[_Users]] = {}


class _Group:
    """Places of one root that can be searched together: by their bytes or, if these are unknown, by one
    dimension of windows at fixed offsets of one frame."""

    def __init__(self, root: object, frame: object, members: list[BytePlace]) -> None:
        self.root = root
        self.frame = frame
        self._dimension = -1
        if frame is not None:
            boxes = [p.box for p in members if p.box is not None]
            spread = [len({b.offsets[d].constant for b in boxes}) for d in range(len(boxes[0].sizes))]
            self._dimension = spread.index(max(spread))
        self.members = sorted(members, key=lambda p: self._range(p)[0])
        ranges = [self._range(p) for p in self.members]
        self._starts = [low for low, _ in ranges]
        self._largest = max(high - low for low, high in ranges)

    def _range(self, place: BytePlace) -> tuple[int, int]:
        if self._dimension < 0 or place.box is None:
            return place.low, place.high
        low = place.box.offsets[self._dimension].constant
        return low, low + place.box.sizes[self._dimension]

    def near(self, place: BytePlace) -> list[BytePlace]:
        """Return the places that may overlap a place."""
        if self.frame is not None and (
            place.box is None or not place.box.fixed or place.box.frame != self.frame
        ):
            return self.members
        low, high = self._range(place)
        return self.members[bisect_left(self._starts, low - self._largest) : bisect_left(self._starts, high)]


def _grouped(places: list[BytePlace]) -> dict[str, list[_Group]]:
    """Return places by space, in groups."""
    found: dict[tuple[str, object, object], list[BytePlace]] = {}
    for place in places:
        box = place.box
        frame = box.frame if box is not None and box.fixed and place.high >= BIG else None
        found.setdefault((place.space, place.root, frame), []).append(place)
    groups: dict[str, list[_Group]] = {}
    for (space, root, frame), members in found.items():
        groups.setdefault(space, []).append(_Group(root, frame, members))
    return groups


class Hazards:
    """The conflicts of the instructions of a program."""

    def __init__(self, program: CoreProgram, places: Places) -> None:
        self.program = program
        self.places = places
        self._quantisers = _quantisers(program)
        self.accesses: list[list[PlaceAccess]] = [self._accesses(step) for step in program.ops]
        self._users: dict[BytePlace, _Users] = {}
        self._atomic = 0
        self._chains = "V" in OVERLAPPING_PIPES[program.profile.isa]
        self._register()
        self._groups = _grouped(list(self._users))
        self._symbolic = any(p.symbolic for p in self._users)
        self._cache: dict[tuple[int, Step | None], tuple[int, int]] = {}

    # -- accesses of an instruction --------------------------------------------------------------------

    def _accesses(self, step: Step) -> list[PlaceAccess]:
        found: dict[tuple[BytePlace, bool], PlaceAccess] = {}

        def add(value: Value, write: bool, follows: bool = True, leads: bool = True) -> None:
            places = self.places.of(value) if index is None else self.places.element(value, index)
            for place in places:
                found.setdefault((place, write), PlaceAccess(place, write, follows, leads))

        index: Value | None = None

        op = step.op
        if op.regions:  # accesses inside a vecscope
            for inner in op.walk():
                if inner.row is not None and inner.row.effect == "memory":
                    for declared, value in inner.named():
                        if isinstance(value.type, _MEMORY):
                            if declared.reads:
                                add(value, False)
                            if declared.writes:
                                add(value, True)
            return list(found.values())
        name = op.name
        assert op.row is not None
        if op.row.fifo in ("pop", "free", "push"):
            self._fifo(step, add)
            return list(found.values())
        if op.row.element_at:
            index = op.get(op.row.element_at)
        for declared, value in op.named():
            if isinstance(value.type, _MEMORY):
                if declared.reads:
                    add(value, False)
                if declared.writes:
                    add(value, True)
            elif declared.kind == "group" and value.op is not None:
                for tensor in value.op.operands:
                    add(tensor, declared.writes)
        everywhere = BytePlace(GM, ANYWHERE)
        if name.endswith("tnotify"):  # a wait for the signal relies on all earlier accesses
            found[everywhere, True] = PlaceAccess(everywhere, True, True, False)
        elif name == "pto.wait_async_event":  # transferred data is available from here on
            found[everywhere, True] = PlaceAccess(everywhere, True, False, True)
        return list(found.values())

    def _fifo(self, step: Step, add: object) -> None:
        """Add the accesses of a FIFO instruction. A FIFO never overwrites a slot before it is freed: a pop
        waits for readers of earlier entries only if it copies its slot, and a free waits for all readers.
        """
        op = step.op
        assert callable(add) and op.row is not None
        if op.row.fifo == "pop":
            tile = op.results[0] if op.results else op.get("tile")
            assert tile is not None
            add(tile, True, copies(op, self.program.profile))
        elif op.row.fifo == "push":
            tile = op.get("tile")
            assert tile is not None
            add(tile, False)
            if step.pipe == "FIX":
                for quantiser in self._quantisers:
                    add(quantiser, False)
        else:
            fifo = fifo_of(op)
            for value, owner in self.places.popped.items():
                if owner == fifo:
                    add(value, True, True, False)

    def _register(self) -> None:
        for step, accesses in zip(self.program.ops, self.accesses, strict=True):
            bit = 1 << step.number
            atomic = is_atomic(step.op)
            if atomic:
                self._atomic |= bit
            for access in accesses:
                users = self._users.get(access.place)
                if users is None:
                    users = self._users[access.place] = _Users()
                if not access.leads:
                    continue
                if not access.write:
                    users.readers |= bit
                elif atomic:
                    users.atomic |= bit
                else:
                    users.writers |= bit
                    if self._chains and chains(step) and access.place.exact:
                        users.chained |= bit

    # -- overlapping places ----------------------------------------------------------------------------

    def _meeting(self, place: BytePlace, loop: Step | None, write: bool) -> list[_Users]:
        """Return users of the places that may overlap a place, used in an earlier iteration of `loop`. For a
        place that is only read, return users of written places only."""
        users = self._users[place]
        key = (loop if place.symbolic else None, write)
        found = users.meets.get(key)
        if found is None:
            found = []
            op, within = (key[0].op, key[0].mask) if key[0] is not None else (None, -1)
            for group in self._groups.get(place.space, ()):
                anywhere = place.root is ANYWHERE or group.root is ANYWHERE
                if anywhere or group.root == place.root:
                    for other in group.members if anywhere else group.near(place):
                        theirs = self._users[other]
                        touching = theirs.writers | theirs.atomic | (theirs.readers if write else 0)
                        if touching & within and (anywhere or place.meets(other, op)):
                            found.append(theirs)
            users.meets[key] = found
        return found

    def conflicts(self, number: int, loop: Step | None = None) -> tuple[int, int]:
        """Return the instructions that conflict with one (in the same iteration, or in an earlier one of
        `loop`), for tiles in UB or L1 and elsewhere. It includes the instruction itself if `loop` is
        given."""
        key = (number, loop if self._symbolic else None)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._compute(number, key[1])
        here, elsewhere = found
        if loop is None:
            bit = 1 << number
            return here & ~bit, elsewhere & ~bit
        return found

    def _compute(self, number: int, loop: Step | None) -> tuple[int, int]:
        staged = other = 0
        step = self.program.ops[number]
        atomic = self._atomic >> number & 1
        chained = self._chains and chains(step)
        for access in self.accesses[number]:
            if not access.follows:
                continue
            mask = 0
            for users in self._meeting(access.place, loop, access.write):
                mask |= users.writers if atomic and access.write else users.writers | users.atomic
                if access.write:
                    mask |= users.readers
            if chained and not access.write and access.place.exact:
                mask &= ~self._users[access.place].chained
            if access.place.space in ("vec", "mat"):
                staged |= mask
            else:
                other |= mask
        return staged, other & ~staged


def is_atomic(op: Operation) -> bool:
    """Return True if an instruction may overlap others of its kind on the same bytes: atomic stores,
    signals."""
    row = op.row
    if row is None:
        return False
    if row.family == "signal":
        return True
    kinds = (str(op.attr(n) or "none") for n in ("atomicType", "scatterAtomicOp") if n in row.attr_index)
    return any(not k.endswith("none") for k in kinds)


def chains(step: Step) -> bool:
    """Return True for an instruction of the chaining pipe that accesses all bytes of large tiles in order."""
    row = step.op.row
    if step.pipe != CHAINING.pipe or row is None or row.family not in CHAINING.families:
        return False
    shapes = {(v.type, v.type.valid) for _, v in step.op.named() if isinstance(v.type, TileBufType)}
    if len(shapes) != 1:
        return False
    ((type, valid),) = shapes
    return valid == type.shape and not type.boxed and type.compact == "null" and type.size >= CHAINING.bytes


def _quantisers(program: CoreProgram) -> list[Value]:
    """Return the tiles that pushes through the fix pipe read without naming them."""
    return [op.operands[0] for op in program.function.walk() if op.name == "pto.set_quant_vector"]
