"""Lower a program in manual form to its image: a slot in the frame for every value, jumps for control flow,
calls for the rest. Flags and barriers between the pipes of a core are dropped, because a core of the machine
executes in program order."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from types import ModuleType

from ..codegen.cpp import program
from ..codegen.cpp.control import is_align
from ..codegen.cpp.fifo import slot_numbers
from ..codegen.cpp.guards import first_vector_core_only
from ..codegen.cpp.tiles import as_tile, strides, window
from ..codegen.cpp.unit import Unit
from ..codegen.cpp.vectors import obeys_tags
from ..diag import Diagnostic, DiagnosticError
from ..ir.attrs import Attribute, BoolAttr, FloatAttr, IntAttr
from ..ir.core import Module, Operation, Region, Value, constant_of
from ..ir.facts import may_fail, view_layout
from ..ir.printf import print_format
from ..ir.types import (
    ConvTileType,
    EventIdArrayType,
    LocalArrayType,
    MaskType,
    MemRefType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    TokenType,
    Type,
    ViewType,
    VRegType,
)
from ..isa import row
from ..isa.encoding import encode
from ..isa.enums import ENUMS
from ..isa.machine import MEMORIES, SECTIONS
from ..isa.profiles import Profile
from ..isa.row import Row
from ..isa.tile import LAYOUTS, inner_box
from ..isa.view import is_packed, packed_scales
from ..program.flow import NAMES as CONTROL_FLOW
from ..program.flow import Flow
from .calls import ImageCall, NoCall, by_columns, by_region, printer, recorder
from .format import CALL, COPY, END, ENTER, EQUAL, JUMP, NEXT, UNLESS, Image, ImageCode
from .functions import Called, small
from .generic import CallOrigin, Origins
from .lives import Lives, lives
from .loans import loans

_TILE, _VIEW, _PIPE, _GROUP, _CONV = 40, 88, 128, 16, 128
#: Orders that always hold in program order.
_IN_ORDER = frozenset(("set", "wait", "barrier", "get", "release", "fence"))

#: Stands for no operands with other slots.
_NOWHERE: Mapping[int, int] = {}

Handler = Callable[["Lowering", Operation], None]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def is_call(row: Row) -> bool:
    """Return True if operations of an instruction lower to calls of the library."""
    return (
        row.full_name not in HANDLERS
        and row.full_name not in CONTROL_FLOW
        and row.order not in _IN_ORDER
        and not row.regions
    )


def _memrefs() -> ModuleType:
    """Return the module for programs with memrefs."""
    return import_module(f"{__package__}.memrefs")


def _is_rare(op: Operation) -> bool:
    """Return True if the handler of an operation is in `memrefs`."""
    return (op.row is not None and op.row.dialect in ("memref", "affine")) or any(
        isinstance(v.type, MemRefType) for v in op.results
    )


def lowered_image(
    name: str,
    module: Module,
    profile: Profile,
    roles: Iterable[tuple[str, Operation]],
    origins: Origins | None = None,
    lower: Callable[[Unit, str, dict[str, int]], Lowering] | None = None,
) -> Image:
    """Return the image of a kernel in manual form; `roles` are its kinds of core with the function of each.
    `origins` receives the operations of the calls. `lower` makes the lowering of each function."""
    program.load(module)
    unit = Unit(module, profile, index_type="int64_t", checked=True)
    calls: dict[str, int] = {}
    problems: list[Diagnostic] = []
    codes = []
    for kind, function in roles:
        lowering = (lower or Lowering)(unit, kind, calls)
        codes.append(lowering.code_of(function))
        problems += lowering.problems
        if origins is not None:
            origins.append(lowering.origins)
    if problems:
        raise DiagnosticError(problems)
    return Image(name, profile.name, tuple(calls), tuple(codes))


class Lowering(Flow):
    """The lowering of one function for one kind of core."""

    #: True if copies without an observable effect are elided.
    elides = True

    def __init__(self, unit: Unit, kind: str, calls: dict[str, int]) -> None:
        super().__init__()
        self.unit = unit
        self.kind = kind
        self.calls = calls
        self.recorder = recorder(unit)
        self.problems: list[Diagnostic] = []
        self.words: list[int] = []
        self.frame = bytearray()
        self.slots: dict[Value, int] = {}
        self.places: list[tuple[int, int]] = []
        self.origins: dict[int, CallOrigin] = {}  # operations of calls of the library
        self.pitch: dict[Value, tuple[int, int]] = {}  # by window of a tile: the shape of its storage
        self.functions = {str(f.attr("sym_name")): f for f in unit.module.functions}
        self._small: set[Operation] | None = None
        self.called: dict[Operation, Called] = {}  # functions that are not inlined
        self.starts: dict[Operation, int] = {}  # first words of the lowered functions
        self.leave: list[list[int]] = []  # jumps to the end of the functions that are being lowered
        self.results: list[list[Value]] = []  # the values of their results
        self.inside: list[Operation] = []
        self.tiles: dict[Value, Value] = {}  # memrefs that are declared as a tile
        self.lives: Lives | None = None  # lifetimes for deferred copies
        self.loans: dict[Operation, Value] = {}  # loads and pops that may borrow memory
        self.homes: dict[Value, int] = {}  # tiles of such loads, in their own memory
        self._registers: dict[int, int] = {}
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._made: dict[tuple[object, ...], ImageCall] = {}

    def code_of(self, function: Operation) -> ImageCode:
        arguments = []
        try:
            for value in function.regions[0].blocks[0].args:
                arguments.append((self.slot(value), int(isinstance(value.type, ViewType | MemRefType))))
            if self.elides:
                self.lives = lives(function, self.kind)
                self.loans = loans(function, self.kind)
            if self.lives is not None:
                self.call("vm.owe", 1)
            self.homes = {t: self.room(_TILE) for op, t in self.loans.items() if op.name == "pto.tload"}
            self.body(function, [])
        except NoCall as e:
            self.refuse(function, str(e))
        self.emit(END)
        self._called_functions()
        return ImageCode(
            self.kind, tuple(self.words), bytes(self.frame), tuple(arguments), tuple(sorted(self.places))
        )

    @property
    def small(self) -> set[Operation]:
        """The functions that are inlined; computed only for programs with calls."""
        if self._small is None:
            self._small = small(self.functions)
        return self._small

    def _called_functions(self) -> None:
        """Emit the functions that are called, and their returns."""
        done: list[Called] = []
        while len(done) < len(self.called):
            for called in list(self.called.values())[len(done) :]:
                self.here(*called.calls)
                called.calls, start = [], len(self.words)
                done.append(called)
                self.starts[called.function] = start
                self.body(called.function, called.results)
                called.end = self.jump(called.function)
        for called in done:
            self.here(called.end)
            for n, target in enumerate(called.returns[:-1]):
                self.emit(EQUAL, 8, called.place, self.number(n), target)
            self.fill(self.jump(called.function), called.returns[-1])

    # -- the frame ----------------------------------------------------------------------------------------

    def room(self, size: int, align: int = 8) -> int:
        at = -len(self.frame) % align + len(self.frame)
        self.frame.extend(bytes(at + size - len(self.frame)))
        return at

    def slot(self, value: Value) -> int:
        """Return the offset of a value in the frame."""
        found = self.slots.get(value)
        if found is None:
            size, align = _size(value.type)
            found = self.slots[value] = self.room(size, align)
        return found

    def number(self, value: int, size: int = 8) -> int:
        """Return the offset of a constant in the frame."""
        return self.constant((value & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def constant(self, data: bytes) -> int:
        key = len(data), data
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self.room(8)
            self.frame[found : found + len(data)] = data
        return found

    # -- instructions -------------------------------------------------------------------------------------

    def emit(self, opcode: int, *operands: int) -> int:
        """Emit an instruction; return the index of its first word."""
        at = len(self.words)
        self.words += (opcode | (1 + len(operands)) << 24, *operands)
        return at

    def call(self, name: str, *operands: int) -> None:
        """Emit a call of a library function with offsets in the frame, or numbers."""
        self.emit(CALL + self.calls.setdefault(name, len(self.calls)), *operands)

    def jump(self, op: Operation) -> int:
        if op.name.startswith("cf.") or op.name == "scf.while":  # it may loop for ever
            self.placed(op)
        return self.emit(JUMP, 0) + 1

    def placed(self, op: Operation) -> None:
        """Set the source location of the next instruction."""
        self.places.append((len(self.words), self.unit.module.mark(op)))

    def here(self, *holes: int) -> int:
        for hole in holes:
            self.words[hole] = len(self.words)
        return len(self.words)

    def fill(self, hole: int, target: int) -> None:
        self.words[hole] = target

    def unless(self, op: Operation, condition: Value) -> int:
        return self.emit(UNLESS, self.slot(condition), 0) + 2

    def equal(self, op: Operation, value: Value, number: int) -> int:
        return self.emit(EQUAL, width_of(value), self.slot(value), self.number(number), 0) + 4

    def enter_loop(self, op: Operation) -> int:
        counter, (_, upper, step) = op.regions[0].blocks[0].args[0], op.operands[:3]
        self.call("vm.step", self.slot(step), width_of(step))
        return self.emit(ENTER, width_of(counter), self.slot(counter), self.slot(upper), 0) + 4

    def next_iteration(self, op: Operation, end: int) -> None:
        counter, (_, upper, step) = op.regions[0].blocks[0].args[0], op.operands[:3]
        self.placed(op)
        self.emit(NEXT, width_of(counter), self.slot(counter), self.slot(upper), self.slot(step), end + 1)

    def copy(self, op: Operation, targets: Sequence[Value], values: Sequence[Value]) -> None:
        """Copy all values to their targets in parallel: a value is saved before it is overwritten."""
        self.pitch.update((t, self.pitch[v]) for t, v in zip(targets, values, strict=True) if v in self.pitch)
        pairs = [(self.slot(t), self.slot(v), _size(t.type)[0]) for t, v in zip(targets, values, strict=True)]
        pairs = [p for p in pairs if p[0] != p[1]]
        for i, (to, source, size) in enumerate(pairs):
            if any(earlier == source for earlier, _, _ in pairs[:i]):
                spare = self.room(size, 64 if size == 256 else 8)
                self.emit(COPY, spare, source, size)
                pairs[i] = to, spare, size
        for to, source, size in pairs:
            self.emit(COPY, to, source, size)

    # -- operations ---------------------------------------------------------------------------------------

    def body(self, function: Operation, results: list[Value]) -> None:
        """Lower the operations of a function here."""
        own = str(function.attr("pto.kernel_kind") or "")
        if own and self.kind != "mix" and own != self.kind:
            return
        self.leave.append([])
        self.results.append(results)
        self.inside.append(function)
        self.guarded(own, function, function.regions[0])
        self.inside.pop()
        self.here(*self.leave.pop())
        self.results.pop()

    def guarded(self, kind: str, owner: Operation, region: Region) -> None:
        """Lower the region of a kind of core; on some targets only the first vector core executes it."""
        holes: list[int] = []
        if kind == "vector" and first_vector_core_only(self.unit, self.inside[-1], owner):
            place = self.room(8)
            self.call("vm.first", place)
            holes.append(self.emit(UNLESS, place, 0) + 2)
        self.region(region)
        self.here(*holes)

    def operation(self, op: Operation) -> None:
        if self.lives is not None:
            self._owing(self.lives, op)
        else:
            self._operation(op)

    def _owing(self, alive: Lives, op: Operation) -> None:
        """Lower an operation of a core with deferred copies."""
        before = len(self.words)
        if alive.tells(op):
            self.call("vm.settle", 0)
        elif op.name == "pto.tpop":  # the memory of a FIFO is never deferred
            self.call("vm.owe", 0)
        at = len(self.words)
        self._operation(op)
        if len(self.words) == at:
            del self.words[before:]
        elif op.name == "pto.tpop":
            self.call("vm.owe", 1)
        for tile in alive.ended.get(op, ()):
            assert isinstance(tile.type, TileBufType)
            self.call("vm.forget", self.slot(tile), tile.type.size)

    def _operation(self, op: Operation) -> None:
        at = len(self.words)
        try:
            handler = HANDLERS.get(op.name)
            if handler is None and _is_rare(op):
                _memrefs()
                handler = HANDLERS.get(op.name)
            if handler is not None:
                handler(self, op)
            elif self.flow(op):
                pass
            elif op.row is None or is_call(op.row):
                self.regular(op)
        except NoCall as e:
            self.refuse(op, str(e))
        if len(self.words) > at and may_fail(op):
            self.places.append((at, self.unit.module.mark(op)))

    def regular(self, op: Operation) -> None:
        """Lower to a call of the library."""
        given = op.operands
        if any(isinstance(v.type, MemRefType) for v in given):
            op.operands = _memrefs().stand_ins(self, op)
        try:
            self._regular(op)
        finally:
            op.operands = given

    def instead(
        self, of: Operation, name: str, operands: list[Value], results: Sequence[Value],
        attrs: dict[str, Attribute] | None = None,
    ) -> None:  # fmt: skip
        """Lower another operation in place of one, with the same or other results."""
        made = Operation(name, row(name), operands, [v.type for v in results], attrs, loc=of.loc)
        made.parent = of.parent
        self.slots.update(zip(made.results, map(self.slot, results), strict=True))
        self.operation(made)

    def _regular(self, op: Operation) -> None:
        for result in op.results:
            if is_align(result.type):  # all states of a stream share one slot
                self.slots.update((result, self.slot(v)) for v in op.operands if is_align(v.type))
        made = self._call(op)
        places = [self._argument(op, kind, n) for kind, n in made.arguments]
        if op in self.loans:
            self._lent(op, made.name, places)
            return
        if _only_copies(made.name):
            self.emit(COPY, *places, _size(op.results[0].type)[0])
            return
        turned = self._in_rows(op) if by_region(op.row) else {}
        self.library_call(op, made.name, places, {place: rows for place, (rows, _) in turned.items()})
        for place, (rows, bits) in turned.items():
            self.call("vm.back", place, rows, bits)

    def library_call(
        self, op: Operation, name: str, places: Sequence[int], moved: Mapping[int, int] = _NOWHERE
    ) -> None:
        """Emit a call of the library for an operation; `moved` are operands with another slot."""
        slots = self.slots
        self.origins[len(self.words)] = CallOrigin(
            op,
            tuple(op.operands),
            tuple([None if (at := slots.get(v)) is None else moved.get(at, at) for v in op.operands]),
            tuple([slots.get(v) for v in op.results]),
        )
        self.call(name, *(moved.get(place, place) for place in places))

    def _lent(self, op: Operation, name: str, places: Sequence[int]) -> None:
        """Lower a load or a pop whose tile may borrow the memory of its source."""
        if op.name == "pto.tpop":
            self.call("vm.lend")
            self.library_call(op, name, places)
            return
        view, tile = op.operands
        assert isinstance(tile.type, TileBufType)
        missing = self.room(8)
        self.call("vm.lent", missing, self.slot(tile), self.homes[tile], self.slot(view), tile.type.bits or 8)
        hole = self.emit(UNLESS, missing, 0) + 2
        self.library_call(op, name, places)
        self.here(hole)

    def _in_rows(self, op: Operation) -> dict[int, tuple[int, int]]:
        """Convert column-major tiles to row-major ones for a call. A single column is both; other tiles are
        copied, and copied back after the call."""
        found: dict[int, tuple[int, int]] = {}
        for value in op.operands:
            type, place = value.type, self.slot(value)
            if not by_columns(type) or place in found:
                continue
            assert isinstance(type, TileBufType)
            found[place] = self.room(_TILE), type.bits or 8
            self.call("vm.rows", found[place][0], place, found[place][1])
        return found

    def _call(self, op: Operation) -> ImageCall:
        row = op.row
        # the names of some of these calls contain constants
        if row is None or row.set in ("vector", "predicate", "cube", "micro"):
            return self.recorder.call(op)
        types = tuple(v.type for v in (*op.operands, *op.results))
        if any(t.kind == "group" for t in types):  # the type of a group lacks the type of its members
            return self.recorder.call(op)
        self.recorder.now = op
        layouts = tuple(self.recorder.layout(v) for v in op.operands if isinstance(v.type, ViewType))
        attrs = tuple((n, str(a)) for n, a in op.attrs.items())
        key = (op.name, types, layouts, attrs, op.segments)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self.recorder.call(op)
        return found

    def _argument(self, op: Operation, kind: str, number: int) -> int:
        if kind == "operand":
            return self.slot(op.operands[number])
        if kind == "result":
            return self.slot(op.results[number])
        if kind == "register":
            if number not in self._registers:
                place = self._registers[number] = self.room(8)
                self.frame[place : place + 8] = (1 << 21 | 1).to_bytes(8, "little")
            return self._registers[number]
        return self.number(number)

    def refuse(self, op: Operation, why: str) -> None:
        name = op.row.name if op.row else op.name
        self.problems.append(
            Diagnostic(
                "PTO-E2003", f"{name}: engine native has no call for {why}", op.loc,
                help="use engine cpp or reference",
            )
        )  # fmt: skip


#: Calls that only copy a value.
_COPIES = re.compile(r"(.*)& a0; \1& a1; a0 = a1;")


@lru_cache(4096)
def _only_copies(name: str) -> bool:
    return _COPIES.fullmatch(name) is not None


def _size(type: Type) -> tuple[int, int]:
    """Return the bytes of a value in the frame, and their alignment."""
    if isinstance(type, TileBufType):
        return _TILE, 8
    if isinstance(type, ViewType) or (isinstance(type, MemRefType) and type.rank <= 5):
        return _VIEW, 8
    if isinstance(type, ConvTileType):
        return _CONV, 8
    if isinstance(type, LocalArrayType):
        return max(8, math.prod(type.dims) * _bytes(type)), 8
    if isinstance(type, EventIdArrayType):
        return 8 * type.count, 8
    if isinstance(type, VRegType):
        return 256, 64
    if isinstance(type, MaskType):
        return 32, 8
    if type.kind == "pipe":
        return _PIPE, 8
    if type.kind == "group":
        return _GROUP, 8
    if isinstance(type, TokenType):
        return 64, 8
    if isinstance(type, ScalarType | PtrType) or (isinstance(type, ShapedType) and type.name == "vector"):
        return 8, 8
    raise NoCall(f"a value of type {type}")


def _bytes(type: Type) -> int:
    """Return the bytes of an element of an array."""
    return max(1, (type.elem.bits or 64) // 8) if isinstance(type, LocalArrayType) else 8


# -- constants ----------------------------------------------------------------------------------------------


@handles("arith.constant")
def _constant(f: Lowering, op: Operation) -> None:
    value, result = op.attrs["value"], op.results[0]
    if isinstance(value, IntAttr | BoolAttr):
        f.slots[result] = f.constant((int(value.value) & (1 << 64) - 1).to_bytes(8, "little"))
    elif isinstance(value, FloatAttr) and isinstance(result.type, ScalarType):
        f.slots[result] = f.constant(_float_bits(value, result.type).to_bytes(8, "little"))
    else:  # elements of each list that a merge took: four numbers of 16 bits
        text = str(value)
        numbers = [int(n) & 0xFFFF for n in re.findall(r"-?\d+", text[: text.find(">")])]
        f.slots[result] = place = f.room(8)  # a separate slot, because calls write it
        numbers = numbers * 4 if len(numbers) == 1 else numbers[:4]
        f.frame[place : place + 2 * len(numbers)] = struct.pack(f"<{len(numbers)}H", *numbers)


def _float_bits(value: FloatAttr, type: ScalarType) -> int:
    if value.bits is not None:
        return value.bits
    if type.text == "f64":
        return int.from_bytes(struct.pack("<d", value.value), "little")
    if type.text == "f32" and not math.isnan(value.value):
        try:
            return int.from_bytes(struct.pack("<f", value.value), "little")
        except OverflowError:
            return 0xFF800000 if value.value < 0 else 0x7F800000
    return encode(str(type.dtype), value.value)


@handles("arith.select")
def _select(f: Lowering, op: Operation) -> None:
    condition, yes, no = op.operands
    f.copy(op, op.results, [no])
    hole = f.unless(op, condition)
    f.copy(op, op.results, [yes])
    f.here(hole)


# -- pointers -----------------------------------------------------------------------------------------------


@handles("pto.castptr")
def _castptr(f: Lowering, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    space = result.type.space if isinstance(result.type, PtrType) else ""
    if isinstance(source.type, PtrType | MemRefType) or space not in _SPACES:
        f.emit(COPY, f.slot(result), f.slot(source), 8)
    else:
        f.call("vm.pointer", f.slot(result), f.slot(source), width_of(source), _SPACES.index(space))


_SPACES = [m.space for m in MEMORIES.values()]


@handles("pto.addptr")
def _addptr(f: Lowering, op: Operation) -> None:
    pointer, offset = op.operands
    assert isinstance(pointer.type, PtrType)
    bits = pointer.type.elem.bits or 8
    f.call("vm.add", f.slot(op.results[0]), f.slot(pointer), f.slot(offset), width_of(offset), bits)


@handles("pto.print")
def _print(f: Lowering, op: Operation) -> None:
    text = print_format(op).encode("utf-8", "surrogateescape") + b"\0"
    place = f.room(len(text))
    f.frame[place : place + len(text)] = text
    type = f.recorder.types(op.operands[0].type)
    f.library_call(op, printer(type), (place, f.slot(op.operands[0])))


# -- views --------------------------------------------------------------------------------------------------


@handles("pto.make_tensor_view")
def _view(f: Lowering, op: Operation) -> None:
    shape, strides = op.group("shape"), op.group("strides")
    sizes = [f.slot(v) for v in shape]
    f.call(
        "vm.view", f.slot(op.results[0]), f.slot(op.operands[0]), len(sizes), *sizes, *map(f.slot, strides)
    )


@handles("pto.partition_view")
def _part(f: Lowering, op: Operation) -> None:
    type = op.results[0].type
    assert isinstance(type, ViewType)
    offsets, sizes = op.group("offsets"), op.group("sizes")
    bits = type.elem.info.bits if type.elem.info else 8
    f.call("vm.part", f.slot(op.results[0]), f.slot(op.operands[0]), bits, len(sizes),
           *map(f.slot, offsets), *map(f.slot, sizes))  # fmt: skip
    _pack_scales(f, op)


def _pack_scales(f: Lowering, op: Operation) -> None:
    """Set the five dimensions of the packed layout for scales given by rows and columns: they lie packed from
    the start of their window."""
    layout, made = view_layout(op.results[0]) or "", op.operands[0].op
    if not is_packed(layout, len(op.group("sizes"))):
        return
    whole = made.group("shape") if made is not None and made.name == "pto.make_tensor_view" else ()
    known = [
        [n for v in group if isinstance(n := constant_of(v), int)] for group in (op.group("sizes"), whole)
    ]
    packed = packed_scales(layout, *known)
    if packed is None:
        f.refuse(op, "scales with dynamic extents")
        return
    place = f.slot(op.results[0])
    f.call("vm.view", place, place, 5, *(f.number(n) for part in packed for n in part))


@handles("pto.get_tensor_view_dim", "pto.get_tensor_view_stride", "memref.dim")
def _ask(f: Lowering, op: Operation) -> None:
    source = op.operands[0].type
    assert isinstance(source, ViewType | MemRefType)
    what = "vm.dim" if op.name.endswith("dim") else "vm.stride"
    f.call(what, f.slot(op.results[0]), f.slot(op.operands[0]), source.rank, f.slot(op.operands[1]))


@handles("pto.tensor_view_addr")
def _address(f: Lowering, op: Operation) -> None:
    result = op.results[0]
    f.emit(COPY, f.slot(result), f.slot(op.operands[0]), _size(result.type)[0])


# -- tiles --------------------------------------------------------------------------------------------------


def shape_of(f: Lowering, result: Value, shape: tuple[int, int], valid: Sequence[int | Value | None]) -> None:
    """Set the shape of a tile, with a valid region; without one, all of it is valid."""
    extents = [
        f.slot(v) if isinstance(v, Value) else f.number(size if v is None else v)
        for v, size in zip(valid, shape, strict=True)
    ]
    f.call("vm.tile", f.slot(result), *shape, *extents)


def _valid(type: TileBufType, rows: Sequence[Value], cols: Sequence[Value]) -> list[int | Value | None]:
    """Return the valid extents: static ones, or operands."""
    return [
        static if static is not None else given[0] if given else None
        for static, given in ((type.v_row, rows), (type.v_col, cols))
    ]


def _lie(f: Lowering, type: TileBufType) -> tuple[int, ...]:
    """Return the layout of a tile for the machine: see `Lie` of native/vm/vm.cpp."""
    blayout = f.unit.profile.left_blayout if type.loc == "left" else type.blayout
    form = list(LAYOUTS).index((blayout, type.slayout))  # the order of `Form` in core/tile.hpp
    box = inner_box(type.bits or 8, type.slayout, type.fractal) if type.boxed else (1, 1)
    compact = ENUMS["compact_mode"].values[type.compact]
    return list(MEMORIES).index(type.loc), form, *box, type.bits or 8, compact


def assign(f: Lowering, result: Value, address: Value) -> None:
    assert isinstance(result.type, TileBufType)
    f.call("vm.assign", f.slot(result), f.slot(address), width_of(address), *_lie(f, result.type))


def _place_of(op: Operation) -> Value | None:
    """Return the address operand of an allocation, if it has one."""
    return op.get("addr") if op.name == "pto.alloc_tile" else op.group("addrs")[0]


@handles("pto.alloc_tile", "pto.declare_tile", "pto.pointer_cast")
def _alloc(f: Lowering, op: Operation) -> None:
    result = op.results[0]
    type = as_tile(result.type)
    if isinstance(result.type, ConvTileType):
        dims = [d or 1 for d in result.type.dims]
        bits, address = result.type.bits or 8, op.get("addr")
        f.call("vm.conv", f.slot(result), len(dims), *dims, bits)
        if address is not None:
            space = list(MEMORIES).index(result.type.loc)
            f.call("vm.conv_at", f.slot(result), f.slot(address), space, bits)
        return
    if isinstance(result.type, MemRefType):
        _memrefs().placed(f, op, _place_of(op))
        return
    assert isinstance(result.type, TileBufType) and type is not None
    shape_of(f, result, type.shape, _valid(type, op.group("valid_row") if op.segments else (),
                                         op.group("valid_col") if op.segments else ()))  # fmt: skip
    if op.name != "pto.declare_tile":
        address = _place_of(op)
        if address is not None:
            assign(f, result, address)
        if result in f.homes:
            f.emit(COPY, f.homes[result], f.slot(result), _TILE)


@handles("pto.set_validshape")
def _set_valid(f: Lowering, op: Operation) -> None:
    tile, *extents = op.operands
    if not isinstance(tile.type, TileBufType):
        f.regular(op)
        return
    f.call("vm.valid", f.slot(tile), *tile.type.shape, *map(f.slot, extents))


@handles("pto.treshape", "pto.bitcast", "pto.bind_tile")
def _other_reading(f: Lowering, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    type, of = result.type, source.type
    if isinstance(type, MemRefType):
        _memrefs().bound(f, op)
        return
    if isinstance(of, MemRefType):
        source = _memrefs().as_tile(f, source)
        of = source.type
    assert isinstance(type, TileBufType) and isinstance(of, TileBufType)
    given = (op.group("valid_row"), op.group("valid_col")) if op.name == "pto.bind_tile" else ((), ())
    valid = _valid(type, *given)
    f.call("vm.same", f.slot(result), f.slot(source), *type.shape,
           *(f.slot(v) if isinstance(v, Value) else f.number(-1 if v is None else v) for v in valid),
           int(of.shape == type.shape))  # fmt: skip


@handles("pto.subview", "pto.subset")
def _window(f: Lowering, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    type, of = result.type, source.type
    assert isinstance(type, TileBufType) and isinstance(of, TileBufType)
    (rows, cols), size, shape = window(f.pitch, op)
    row, col = op.group("offsets")
    line = size[1] if of.blayout == "row_major" else size[0]
    if op.name == "pto.subset":
        down, across = strides(of, rows, cols)
        static = [-1 if v is None else v for v in (type.v_row, type.v_col)]
        f.call("vm.subset", f.slot(result), f.slot(source), *shape, *size, *map(f.number, static),
               f.slot(row), f.slot(col), width_of(row), down, across, type.bits or 8, line)  # fmt: skip
        return
    valid = _valid(type, op.group("valid_row"), op.group("valid_col"))
    shape_of(f, result, shape, [s if v is None else v for v, s in zip(valid, size, strict=True)])
    f.call("vm.window", f.slot(result), f.slot(source), f.slot(row), f.slot(col), width_of(row), line,
           *_lie(f, of))  # fmt: skip


# -- arrays and groups --------------------------------------------------------------------------------------


@handles("pto.declare_local_array", "pto.declare_eventid_array")
def _array(f: Lowering, op: Operation) -> None:
    f.slot(op.results[0])


@handles("pto.local_array_get", "pto.local_array_set", "pto.eventid_array_get", "pto.eventid_array_set")
def _element(f: Lowering, op: Operation) -> None:
    array = op.group("array")[0]
    own = isinstance(array.type, LocalArrayType)
    dims = array.type.dims if isinstance(array.type, LocalArrayType) else (array.type.count,)  # type: ignore[attr-defined]
    if len(dims) > 125:
        raise NoCall(f"an array of {len(dims)} dimensions")
    get = op.name.endswith("_get")
    value = op.results[0] if get else op.group("value")[0]
    f.call("vm.get" if get else "vm.set", f.slot(value), f.slot(array), _bytes(array.type), len(dims),
           *dims, *map(f.slot, op.group("indices" if own else "index")))  # fmt: skip


@handles("pto.make_group")
def _group(f: Lowering, op: Operation) -> None:
    tensors = op.group("tensors")
    place = f.room(_VIEW * len(tensors))
    for n, tensor in enumerate(tensors):
        f.emit(COPY, place + n * _VIEW, f.slot(tensor), _VIEW)
    f.call("vm.group", f.slot(op.results[0]), place, len(tensors), int(op.attr("root") or 0))


# -- FIFOs --------------------------------------------------------------------------------------------------


@handles("pto.initialize_l2l_pipe", "pto.initialize_l2g2l_pipe")
def _pipe(f: Lowering, op: Operation) -> None:
    in_gm = op.name == "pto.initialize_l2g2l_pipe"
    mask = int(op.attr("dir_mask"))
    first, second = (
        f.slot(op.group(name)[0]) if op.group(name) else f.number(0)
        for name in ("local_addr", "peer_local_addr")
    )
    if mask == 2:
        first, second = second, first
    memory = f.slot(op.group("gm_addr")[0]) if in_gm else f.number(0)  # a view begins with its pointer
    f.call("vm.pipe", f.slot(op.results[0]), memory, first, second, op.attr("flag_base") or 0, mask,
           op.attr("slot_size"), *slot_numbers(op), int(bool(op.attr("nosplit"))))  # fmt: skip


# -- control flow -------------------------------------------------------------------------------------------


def width_of(value: Value) -> int:
    type = value.type
    assert isinstance(type, ScalarType)
    return 8 if type.text == "index" or type.info is None else max(type.info.bits // 8, 1)


@handles("func.return")
def _return(f: Lowering, op: Operation) -> None:
    f.copy(op, f.results[-1], op.operands)
    f.leave[-1].append(f.jump(op))


@handles("func.call")
def _call(f: Lowering, op: Operation) -> None:
    """Lower a call: inline a small function."""
    callee = f.functions.get(str(op.attr("callee")))
    if callee is None or not callee.regions[0].blocks:
        f.refuse(op, "functions of other files")
        return
    if callee in f.inside:
        raise NoCall("a recursive function")
    if callee not in f.small:
        _go_to(f, op, callee)
        return
    # Its parameters are the caller's values, because it may change them: valid regions of tiles, arrays.
    f.slots.update(zip(callee.regions[0].blocks[0].args, map(f.slot, op.operands), strict=True))
    f.body(callee, list(op.results))


#: Values that a function may change for its caller.
_CHANGING = (TileBufType, ConvTileType, LocalArrayType, EventIdArrayType, TokenType)


def _go_to(f: Lowering, op: Operation, callee: Operation) -> None:
    """Call a function: jump to its first word, and return by the number of the call."""
    args = callee.regions[0].blocks[0].args
    called = f.called.get(callee)
    if called is None:
        results = [Value(v.type, callee) for v in op.results]
        called = f.called[callee] = Called(callee, f.room(8), results)
    f.copy(op, args, op.operands)
    f.emit(COPY, called.place, f.number(len(called.returns)), 8)
    hole = f.jump(op)
    if callee in f.starts:
        f.fill(hole, f.starts[callee])
    else:
        called.calls.append(hole)
    called.returns.append(len(f.words))
    changed = {given: arg for given, arg in zip(op.operands, args, strict=True)
               if isinstance(given.type, _CHANGING)}  # fmt: skip
    f.copy(op, [*changed, *op.results], [*changed.values(), *called.results])


@handles(*SECTIONS)
def _section(f: Lowering, op: Operation) -> None:
    if f.kind in ("mix", SECTIONS[op.name]):
        f.guarded(SECTIONS[op.name], op, op.regions[0])


@handles("pto.vecscope", "pto.strict_vecscope")
def _vecscope(f: Lowering, op: Operation) -> None:
    block = op.regions[0].blocks[0]
    f.copy(op, block.args, op.operands)
    control = obeys_tags(f.unit, block)  # attributes of conversions apply only if CTRL does not saturate
    kept = f.room(8) if control else 0
    if control:
        f.call("vm.obey", kept)
    f.block(block)
    if control:
        f.call("vm.control", kept)


@handles("builtin.unrealized_conversion_cast")
def _cast(f: Lowering, op: Operation) -> None:
    for source, result in zip(op.operands, op.results, strict=False):
        f.slots[result] = f.slot(source)
