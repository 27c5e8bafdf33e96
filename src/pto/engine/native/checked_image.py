"""Lower a program to a checked image: calls of screens (native/vm/screen.hpp) stand beside its instructions.

The screens follow the order of the pipes, so flags and barriers are calls, too. No copy is elided: each
access happens where the program has it. Operations that the screens cannot follow raise `Unscreened`; the
reference engine runs such a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...codegen.cpp.unit import Unit
from ...image.format import COPY
from ...image.lower import Lowering, width_of
from ...ir.core import Operation, Value
from ...ir.facts import in_global, pipe_of, storage_source, view_layout
from ...ir.types import MaskType, PtrType, ScalarType, TileBufType, ViewType, VRegType
from ...isa.kinds import pipe_of_kind
from ...isa.machine import EVERY_PIPE, LAST_PIPE, MEMORIES, PIPES, QUEUES
from ...isa.row import Row
from ...isa.view import is_packed
from ..reference import fifo, handles, registry, sync, transfers
from ..reference.cube import unit_flag
from ..reference.open_rules import asked
from ..registers import is_register
from ..sanitize.vecscope import WORDS, orders
from .accesses import SiteAccesses, SiteOperand, subscripts
from .frames import Unreadable

_SET, _WAIT, _BARRIER, _BARRIER_ALL, _GET, _RELEASE = range(6)
#: `Crossing` of screen.hpp, by the order of an instruction.
_CROSSINGS, _MEETING = {"signal": 1, "await": 2}, 3
_TILE, _VIEW, _POINTER, _IGNORED, _NEAR, _SUBSCRIPT, _VECTOR, _MASK, _STREAM = 0, *range(16, 24)
#: Types of values that the screens do not follow.
_OTHER_KINDS = ("memref", "conv_tile", "group")
#: The bytes of `RegisterFacts`, and those of the number of a storage.
_FACTS, _STORAGE = 24, 8
_EVERY_PIPE, _SCALAR_UNIT = 1, 2
_REGISTERS = (_VECTOR, _MASK, _STREAM)
_FOLLOWED = (_TILE, _VIEW, _POINTER, _NEAR, *_REGISTERS)
_NUMBERS = {name: n for n, name in enumerate(PIPES)}


class Unscreened(Exception):
    """A program that the screens cannot follow, with the reason."""


class CheckedLowering(Lowering):
    """The lowering of one function with screens."""

    elides = False

    def __init__(self, unit: Unit, kind: str, calls: dict[str, int], first: int = 0) -> None:
        """`first` is the number of instructions in the codes before this one."""
        super().__init__(unit, kind, calls)
        self.first = first
        #: By first word of their screens: the instructions that access memory, in order.
        self.sites: dict[int, SiteAccesses] = {}
        #: The arguments whose arrays may change; None: all.
        self.written: set[Value] | None = set()
        self.entry_arguments: list[Value] = []
        self._storages: dict[int, int] = {}  # by slot of a tile: the slot of the number of its storage
        self._ops: dict[Operation, int] = {}
        self._kinds: dict[Any, int] = {}
        self._sizes: dict[Value, tuple[int, ...]] = {}  # of windows
        #: Tiles that get other storage.
        self._rebound = {op.get(op.row.rebinds) for op in unit.module.walk() if op.row and op.row.rebinds}

    def body(self, function: Operation, results: list[Value]) -> None:
        first = not self.words
        if first:
            self.entry_arguments = function.regions[0].blocks[0].args
            self.call("vm.begin!")
        super().body(function, results)
        if first:
            self.call("vm.end!")

    def copy(self, op: Operation, targets: Sequence[Value], values: Sequence[Value]) -> None:
        pairs = [(self._storage(t), self._storage(v), size) for t, v in zip(targets, values, strict=True)
                 if (size := _beside(t))]  # fmt: skip
        super().copy(op, targets, values)
        kept = [(to, self.room(size), source, size) for to, source, size in pairs if to != source]
        for _, spare, source, size in kept:
            self.emit(COPY, spare, source, size)
        for to, spare, _, size in kept:
            self.emit(COPY, to, spare, size)

    def _storage(self, value: Value) -> int:
        """Return the slot beside a value: the number of the storage of a tile or a pointer,
        or the facts of a register."""
        slot = self.slot(value)
        found = self._storages.get(slot)
        if found is None:
            found = self._storages[slot] = self.room(_beside(value))
        return found

    def _operation(self, op: Operation) -> None:
        row = op.row
        if row is None or (op.regions and row.opens != "vec"):
            super()._operation(op)
            return
        name = row.name
        if row.opens == "vec":
            self.call("vm.scope!")
            super()._operation(op)
            self.call("vm.unscope!")
            return
        if name in fifo.HANDLERS or name in transfers.HANDLERS:
            raise Unscreened(name)
        if sync.orders(name):
            self._order(op, name)
        elif name in handles.HANDLERS:
            self._descriptor(op, name)
        elif row.set == "scalar" and (row.expr or row.dialect in ("arith", "math")):
            super()._operation(op)
        elif registry.find(row) is not None:
            self._instruction(op)
        elif not op.regions and row.dialect in ("scf", "cf", "func", "arith"):
            super()._operation(op)
        else:
            raise Unscreened(name)

    # -- order --------------------------------------------------------------------------------------------

    def _order(self, op: Operation, name: str) -> None:
        row = op.row
        assert row is not None
        if row.order in ("set", "wait"):
            pair = ("src_op", "dst_op") if "src_op" in row.attr_index else ("src_pipe", "dst_pipe")
            source, target = (sync.pipe_name(op.attr(attr)) for attr in pair)
            what = _SET if row.order == "set" else _WAIT
            self._order_call(what, source, target, self._number(op, "event_id", sync.event_id))
        elif row.order in ("get", "release"):
            what = _GET if row.order == "get" else _RELEASE
            self._order_call(what, sync.token_pipe(op), "S", self._number(op, "buf_id_dyn", sync.buffer_id))
        elif row.order in _CROSSINGS or name == "syncall":
            pipe = pipe_of(op, self.unit.profile)
            everywhere = pipe == EVERY_PIPE.name
            agent = "S" if everywhere or name == "syncall" or not pipe else pipe
            self.call("vm.cross!", _CROSSINGS.get(row.order, _MEETING), _NUMBERS[agent], int(everywhere))
            super()._operation(op)
            self.call("vm.crossed!")
        elif row.order == "fence":
            numbers = {word: n for n, word in enumerate(WORDS.values())}
            pairs = [4 * numbers[a] + numbers[b] for a, b in orders(str(op.attr("barrier_type")))]
            self.call("vm.fence!", sum(1 << bit for bit in pairs))
        elif row.order == "barrier":
            self._barrier(pipe_of(op, self.unit.profile))
        elif name == "tsync":
            written = op.attr("op")
            if written is not None:
                self._barrier(pipe_of_kind(str(written), self.unit.profile.isa))
            elif op.group("events"):
                self._barrier(EVERY_PIPE.name)
        elif row.family != "cache":
            raise Unscreened(name)

    def _number(self, op: Operation, operand: str, of: Callable[..., int]) -> tuple[int, int]:
        """Return the slot and the width of the number of a flag or token."""
        given = next((v for declared, v in op.named() if declared.name == operand), None)
        return (self.slot(given), width_of(given)) if given is not None else (self.number(of(op, {})), 8)

    def _barrier(self, pipe: str) -> None:
        if pipe == EVERY_PIPE.name:
            self._order_call(_BARRIER_ALL, "S")
        elif pipe in QUEUES:
            self._order_call(_BARRIER, pipe)

    def _order_call(
        self, what: int, pipe: str, other: str = "S", number: tuple[int, int] | None = None
    ) -> None:
        slot, width = number or (self.number(0), 8)
        self.call("vm.order!", what, _NUMBERS[pipe], _NUMBERS[other], slot, width)

    # -- descriptors --------------------------------------------------------------------------------------

    def _descriptor(self, op: Operation, name: str) -> None:
        row, result = op.row, op.results[0] if op.results else None
        assert row is not None
        if row.uses_contents or (result is not None and result.type.kind in _OTHER_KINDS):
            raise Unscreened(name)
        source, tile = storage_source(op), op.get(row.rebinds) if row.rebinds else result
        if name == "partition_view":
            self._inside_view(op)
        elif row.effect == "alias" and row.window:
            self._inside(op)
        super()._operation(op)
        if tile is not None and source is not None and _beside(tile) and _beside(source) and not row.rebinds:
            home = isinstance(tile.type, PtrType) and isinstance(source.type, TileBufType)
            if home and (source in self._rebound or source.op is None or source.op.get("addr") is None):
                raise Unscreened("a pointer into a tile that moves")
            self._storages[self.slot(tile)] = self._storage(source)
        elif tile is None or not isinstance(tile.type, TileBufType):
            if row.rebinds:
                raise Unscreened(name)
        elif "addr" in row.operand_index and op.get("addr") is not None:
            self._placed(op, tile)
        elif row.operands:
            raise Unscreened("a tile without an address")

    def _placed(self, op: Operation, tile: Value) -> None:
        type = tile.type
        assert isinstance(type, TileBufType)
        kind = self._kinds.setdefault((str(type.dtype), type.shape, type.layout), len(self._kinds))
        number = self._ops.setdefault(op, len(self._ops))
        space = list(MEMORIES).index(type.loc)
        self.call("vm.placed!", self.slot(tile), number, type.size, kind, space, self._storage(tile))

    def _inside(self, op: Operation) -> None:
        source = op.operands[0].type
        assert isinstance(source, TileBufType)
        if op.operands[0].op is None:
            raise Unscreened("a window of a tile from elsewhere")
        shape = self._sizes.get(op.operands[0], source.shape)
        sizes = tuple(op.attr("sizes"))
        self._sizes[op.results[0]] = sizes
        for offset, size, extent in zip(op.group("offsets"), sizes, shape, strict=True):
            self.call("vm.inside!", self.slot(offset), width_of(offset), size, extent)

    def _inside_view(self, op: Operation) -> None:
        offsets, sizes = op.group("offsets"), op.group("sizes")
        source = op.operands[0]
        if not isinstance(source.type, ViewType) or is_packed(view_layout(op.results[0]) or "", len(sizes)):
            raise Unscreened("a packed view")
        self.call("vm.inside_view!", self.slot(source), len(sizes), *map(self.slot, offsets),
                  *map(self.slot, sizes))  # fmt: skip

    # -- instructions -------------------------------------------------------------------------------------

    def _instruction(self, op: Operation) -> None:
        row, profile = op.row, self.unit.profile
        assert row is not None
        if row.effect == "config" or unit_flag.used(op) or unit_flag.phased(op):
            raise Unscreened(row.name)
        asks = asked(op, row, profile) if row.set == "tile" else None
        operands: list[SiteOperand] = []
        kinds: list[int | None] = []
        for declared, value in op.named():
            kind = self._kind(value, bool(row.expr) and asks is None)
            if declared.writes and in_global(value.type):
                self._note_written(value)
            kinds.append(kind)
            facts = self._storage(value) if kind in (_NEAR, *_REGISTERS) else 0
            operands.append(SiteOperand(declared.name, declared.variadic, value, self.slot(value), facts))
        results = [v for v in op.results if _beside(v) == _FACTS]
        if not results and not any(kind in _FOLLOWED for kind in kinds):
            super()._operation(op)
            return
        pipe = "S" if op.results else pipe_of(op, profile) or "S"
        everywhere = pipe == EVERY_PIPE.name
        agent = _NUMBERS[LAST_PIPE if everywhere else pipe]
        number = self.first + len(self.sites)
        words, subscript, moved = self._words(row, operands, kinds)
        try:
            site = SiteAccesses(op, operands, profile, asks, subscript, moved)
        except Unreadable as e:
            raise Unscreened(str(e)) from None
        self.placed(op)
        self.sites[len(self.words)] = site
        bits = (_EVERY_PIPE if everywhere else 0) | (_SCALAR_UNIT if row.pipe == "S" else 0)
        self.call("vm.event!", number, agent, bits, len(operands), len(results), *words,
                  *map(self._storage, results))  # fmt: skip
        super()._operation(op)
        for pointer in (v for v in op.results if _beside(v) == _STORAGE):
            source = next(o.value for o, kind in zip(operands, kinds, strict=True) if kind == _NEAR)
            self.emit(COPY, self._storage(pointer), self._storage(source), _STORAGE)
        if any(in_global(o.value.type) for o in operands):
            self.call("vm.after!", number)

    def _words(
        self, row: Row, operands: Sequence[SiteOperand], kinds: Sequence[int | None]
    ) -> tuple[list[int], str, int]:
        """Return the words of the operands; the operand that may move a pointer, and the number of the
        pointer."""
        words: list[int] = []
        names = [o.name for o in operands]
        subscript, moved = "", 0
        for operand, kind in zip(operands, kinds, strict=True):
            beside = _beside(operand.value)
            third = self._storage(operand.value) if beside else self.number(0)
            pointer = subscripts(row).get(operand.name)
            if pointer in names and kind is not None and kinds[names.index(pointer)] in (_POINTER, _NEAR):
                subscript, moved = operand.name, names.index(pointer)
                kind, third = _SUBSCRIPT, moved << 8 | kind
            words += (operand.slot, _IGNORED if kind is None else kind, third)
        return words, subscript, moved

    def _note_written(self, place: Value) -> None:
        while isinstance(place.type, PtrType | ViewType) and (op := place.op) is not None:
            if op.row is None or op.row.effect != "pure" or not op.operands:
                break
            place = op.operands[0]  # the memory of a pointer, view or partition; or a number
        known = place.op is None and isinstance(place.type, PtrType | ViewType)
        if self.written is not None and known and len(self.inside) == 1:
            self.written.add(place)
        else:
            self.written = None

    def _kind(self, value: Value, by_element: bool) -> int | None:
        """Return the kind of an operand for the machine; None for numbers on which no access depends."""
        type = value.type
        if isinstance(type, TileBufType):
            return _TILE
        if isinstance(type, ViewType):
            return _VIEW
        if isinstance(type, PtrType):
            return _POINTER if in_global(type) else _NEAR
        if isinstance(type, VRegType | MaskType):
            return _VECTOR if isinstance(type, VRegType) else _MASK
        if is_register(type):
            return _STREAM
        if isinstance(type, ScalarType):
            info = type.info
            return None if by_element or (info is not None and info.is_float) else width_of(value)
        raise Unscreened(f"an operand of type {type}")


def _beside(value: Value) -> int:
    """Return the bytes of the slot beside a value; 0 if there is none."""
    type = value.type
    if isinstance(type, TileBufType) or (isinstance(type, PtrType) and not in_global(type)):
        return _STORAGE
    return _FACTS if is_register(type) else 0
