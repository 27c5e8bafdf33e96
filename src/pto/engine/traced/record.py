"""Records one launch of a C++ kernel as a program without control flow.

    pto record k.cpp -- @a.npy f32:16x64 > k.pto

Every traced call is an operation at its line of C++. Numbers are constants, tiles have their addresses, and
tensors are views of the arguments. So the program computes the results of the kernel as long as control flow
is the same: with the same numbers, and with arrays that no branch depends on. Number arguments may affect all
constants, so the program compares them, and stops (`pto.trap`) if they differ. Each core has its part of the
program. A launch is refused if a program cannot express it, or would be too long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan
from typing import Any

from ...diag import Diagnostic, DiagnosticError, Span
from ...ir.attrs import Attribute, EnumAttr, IntAttr, StrAttr, UnitAttr
from ...ir.builder import Builder
from ...ir.core import Block, Module, Operation, Region, Value
from ...ir.types import INDEX, PtrType, ScalarType, TileBufType, Type, ViewType
from ...isa import row as find_row
from ...isa.dtypes import DTYPES
from ...isa.profiles import Profile
from ...isa.row import Operand
from ..binding import Binding
from ..memory import Buffer, Pointer, Tile, View
from ..reference.fifo import Ends
from ..registers import Register
from .sites import CallSite

#: The default for the largest number of operations in a recording.
MOST = 100_000
#: Calls that place or cut tiles. They are not recorded, because operands have their addresses.
_PLACING = ("alloc_tile", "treshape", "subview", "set_validshape")
_SIZED = ("i64", "i32", "i16", "i8", "i1")
_INDEX, _I64 = INDEX, ScalarType("i64")
_SPACES = {"vec": "ub", "mat": "l1", "left": "l0a", "right": "l0b", "acc": "l0c"}


class RegisterScope:
    """Calls with registers that are one item of the vector pipe."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.ops: list[Operation] = []


class LaunchRecorder:
    """The recording of a launch."""

    def __init__(self, bindings: Sequence[Binding], values: Sequence[Any], limit: int = MOST) -> None:
        """`values` are the arguments of the kernel."""
        if len(bindings) > 1:
            raise DiagnosticError([_refusal("several ranks", None)])
        self.limit = limit
        self.count = 0
        self.cores: dict[tuple[str, int, int], CoreRecorder] = {}
        #: By array: the number of its argument, and the pointer or view that was passed.
        self.homes: dict[Buffer, tuple[int, Any]] = {}
        for n, value in enumerate(values):
            if isinstance(value, Pointer | View):
                self.homes.setdefault(value.buffer, (n, value))

    def of(self, core: Any) -> CoreRecorder:
        key = (core.kind, core.block, core.sub)
        found = self.cores.get(key)
        if found is None:
            found = self.cores[key] = CoreRecorder(self, core)
        return found

    def counted(self, op: Operation) -> None:
        self.count += 1
        if self.count > self.limit:
            help = "record fewer loop iterations, smaller arguments or fewer blocks, or raise --limit"
            message = f"a recording has at most {self.limit} operations, and this kernel makes more"
            raise DiagnosticError([Diagnostic("PTO-E2018", message, op.loc, help=help)])


class CoreRecorder:
    """The recording of one core: `support`, which depends only on arguments, then the calls in order."""

    def __init__(self, whole: LaunchRecorder, core: Any) -> None:
        self._whole = whole
        self._core = core
        self.support: list[Operation] = []
        self.items: list[Operation | RegisterScope] = []
        self._known: dict[Any, Value] = {}
        self._registers: dict[int, tuple[Register, Value]] = {}
        #: Values that stand for the arguments, until the function is made.
        self.arguments: dict[int, Value] = {}

    # -- calls -------------------------------------------------------------------------------------------

    def scope(self, op: Operation) -> RegisterScope:
        found = RegisterScope(op)
        self.items.append(found)
        return found

    def call(self, site: CallSite, slots: Sequence[int], scope: RegisterScope | None = None) -> None:
        """Record a call; `slots` are the registers of its operands, then of its results."""
        op = site.op
        assert op.row is not None
        if op.row.name in _PLACING:
            return
        self._whole.counted(op)
        regs = self._core.regs
        operands = [
            self._value(op, _written_type(declared, v.type), regs[slot])
            for (declared, v), slot in zip(op.named(), slots, strict=False)
        ]
        # C++ gets number results in variables, so they are not results in a record
        numbers = [ScalarType("i32")] * (len([r for r in op.row.results if not r.optional]) - len(op.results))
        types = [*(r.type for r in op.results), *numbers]
        made = Operation(op.name, op.row, operands, types, dict(op.attrs), op.segments, op.loc)
        for result, slot in zip(made.results, slots[len(operands) :], strict=False):
            value = regs[slot]
            if isinstance(value, Register):
                self._registers[id(value)] = (value, result)
        (self.items if scope is None else scope.ops).append(made)

    # -- values ------------------------------------------------------------------------------------------

    def _value(self, op: Operation, type: Type, value: Any) -> Value:
        if isinstance(value, Register):
            found = self._registers.get(id(value))
            if found is None:
                raise DiagnosticError([_refusal("a register that no traced call has set", op.loc)])
            return found[1]
        if isinstance(value, Tile) and isinstance(type, TileBufType):
            return self._tile(type, value)
        if isinstance(value, View) and isinstance(type, ViewType):
            return self._view(op, type, value)
        if isinstance(value, Pointer):
            return self._pointer(op, value)
        if isinstance(value, Ends):
            return self._fifo(op, type, value)
        if isinstance(value, int | float) and isinstance(type, ScalarType):
            return self._constant(value, type)
        name = op.row.name if op.row is not None else op.name
        raise DiagnosticError([_refusal(f"an operand of {name} with type {type}", op.loc)])

    def _fifo(self, op: Operation, type: Type, ends: Ends) -> Value:
        """Return the FIFO of a `TPipe`, with slots in global memory or in the buffer of the consumer."""
        made, memory, local = ends.opened
        directions = list(ends.fifos)
        attrs = {n: a for n, a in made.attrs.items() if n != "nosplit" or made.attr("nosplit")}
        attrs["dir_mask"] = IntAttr(sum(directions), ScalarType("i32"))
        at = [self._constant(int(local[d]), ScalarType("i32")) for d in directions]
        operands = dict(zip(("local_addr", "peer_local_addr"), at, strict=False))
        if memory is None:
            attrs.pop("local_slot_num", None)
            return self._make(("fifo", id(ends)), "pto.initialize_l2l_pipe", [type], attrs, **operands)
        home = self._whole.homes.get(memory.buffer)
        dtype = str(home[1].dtype) if home is not None else memory.dtype
        slots = self._pointer(op, Pointer(memory.buffer, memory.offset, dtype, ""))
        name = "pto.initialize_l2g2l_pipe"
        return self._make(("fifo", id(ends)), name, [type], attrs, gm_addr=slots, **operands)

    def _make(
        self, key: Any, name: str, results: list[Type], attrs: dict[str, Attribute] | None = None,
        **operands: Value | list[Value],
    ) -> Value:  # fmt: skip
        found = self._known.get(key)
        if found is None:
            block = Block()
            op = Builder(block).op(name, results, attrs, **operands)
            op.parent = None
            self.support.append(op)
            found = self._known[key] = op.results[0]
        return found

    def _constant(self, value: float, type: ScalarType = _INDEX) -> Value:
        key = ("constant", repr(value), type)
        found = self._known.get(key)
        if found is None:
            block = Block()
            found = self._known[key] = Builder(block).constant(value, type)
            self.support.append(block.ops[-1])
        return found

    def _tile(self, type: TileBufType, tile: Tile) -> Value:
        more: dict[str, Value] = {}
        if type.v_row is None:
            more["valid_row"] = self._constant(tile.v_row)
        if type.v_col is None:
            more["valid_col"] = self._constant(tile.v_col)
        key = ("tile", type, tile.address, tile.valid, tile.storage)
        known = self._known.get(key)
        if known is None:
            addr = self._constant(tile.address or 0, _I64)
            known = self._make(key, "pto.alloc_tile", [type], None, addr=addr, **more)
            known.name = _plain(tile.name)
        return known

    def _view(self, op: Operation, type: ViewType, view: View) -> Value:
        shape, strides = ([self._constant(n) for n in part] for part in view.dims5)
        key = ("view", type, view.buffer, view.offset, *view.dims5, view.layout)
        if key in self._known:
            return self._known[key]
        at = self._pointer(op, Pointer(view.buffer, view.offset, view.dtype, ""))
        attrs: dict[str, Attribute] = {}
        if view.layout and view.layout != "ND":
            attrs["layout"] = EnumAttr("layout", view.layout.lower())
        whole = ViewType(type.elem, type.dims, "tensor_view")
        of = self._make(
            ("whole", *key), "pto.make_tensor_view", [whole], attrs, ptr=at, shape=shape, strides=strides
        )
        zeros = [self._constant(0)] * len(shape)
        made = self._make(key, "pto.partition_view", [type], None, source=of, offsets=zeros, sizes=shape)
        made.name = _plain(view.name)
        return made

    def _pointer(self, op: Operation, pointer: Pointer) -> Value:
        elem = ScalarType(pointer.dtype)
        size = max(1, DTYPES[pointer.dtype].bits // 8)
        home = self._whole.homes.get(pointer.buffer)
        if home is None:
            space = _SPACES.get(pointer.buffer.space)
            if space is None or pointer.buffer.space == "gm":
                raise DiagnosticError([_refusal("memory that is not an argument", op.loc)])
            at = self._constant(pointer.offset, _I64)
            key = ("pointer", space, pointer.offset, elem)
            return self._make(key, "pto.castptr", [PtrType(elem, space)], None, addr=at)
        number, first = home
        base = self.arguments.get(number)
        if base is None:
            base = self.arguments[number] = Value(_argument_type(first), Block(), 0)
        if base.type != PtrType(elem):
            base = self._make(("cast", number, elem), "pto.castptr", [PtrType(elem)], None, addr=base)
        distance = pointer.offset - first.offset
        if distance % size:
            raise DiagnosticError([_refusal(f"an address {distance} bytes after its argument", op.loc)])
        if not distance:
            return base
        at = self._constant(distance // size)
        return self._make(
            ("offset", number, elem, distance), "pto.addptr", [PtrType(elem)], None, ptr=base, offset=at
        )


def _written_type(declared: Operand, type: Type) -> Type:
    """Return the type of a number in a program: integers are signless there, and some operands have a fixed
    size."""
    if not isinstance(type, ScalarType) or type.is_float or type == INDEX:
        return type
    sized = [k for k in declared.kinds if k in _SIZED]
    if sized and "int" not in declared.kinds:
        return ScalarType(sized[0])
    return ScalarType(f"i{str(type).lstrip('ui')}")


def _plain(name: str) -> str:
    """Return the name in a program for a name in C++: `x[i % 2]` becomes `x_i_2`."""
    return "_".join(re.findall(r"\w+", name))


def _argument_type(value: Any) -> Type:
    return PtrType(ScalarType(str(value.dtype)))


def _refusal(what: str, at: Span | None) -> Diagnostic:
    message = f"cannot record {what}"
    return Diagnostic("PTO-E2018", message, at, help="run it under --sanitize, or record another kernel")


# -- the program ---------------------------------------------------------------------------------------------


class RecordedProgram:
    """Makes the module of a recording."""

    def __init__(
        self, recorder: LaunchRecorder, name: str, profile: Profile, params: Sequence[tuple[str, Any, Any]]
    ) -> None:
        """`params` are name, type and value of every argument."""
        self.recorder = recorder
        arch = "a5" if profile.isa == "a5" else "a3"
        self.builder = Builder.module({"pto.target_arch": StrAttr(arch)})
        self.given = [v for _, _, v in params]
        types = [_argument_type(v) if isinstance(v, Pointer | View) else t for _, t, v in params]
        kinds = list(dict.fromkeys(kind for kind, _, _ in recorder.cores))
        attrs: dict[str, Attribute] = {"pto.entry": UnitAttr()}
        if len(kinds) == 1 and kinds[0] in ("cube", "vector"):
            attrs["pto.kernel_kind"] = EnumAttr("kernel_kind", kinds[0])
        self.entry = self.builder.func(name, types, attrs)
        for arg, (shown, _, _) in zip(self.entry.args, params, strict=True):
            arg.name = _plain(shown) or arg.name
        for kind in kinds:
            self._kind(kind, len(kinds) > 1)
        self._end(self.entry, "func.return")

    def _kind(self, kind: str, several: bool) -> None:
        parts = {(b, s): part for (k, b, s), part in self.recorder.cores.items() if k == kind}
        block = self.entry
        if several:
            block = self._region(self.entry, f"pto.section.{kind}")
        for arg, value in zip(self.entry.args, self.given, strict=True):
            self._ask(block, arg, value)
        blocks, subs = ({key[n] for key in parts} for n in (0, 1))
        for (number, sub), part in sorted(parts.items()):
            inner = block
            if len(blocks) > 1:
                inner = self._only(inner, "pto.get_block_idx", number)
            if len(subs) > 1:
                inner = self._only(inner, "pto.get_subblock_idx", sub)
            self._part(inner, part)
            if inner is not block:
                self._close(inner, block)

    def _ask(self, block: Block, arg: Value, recorded: Any) -> None:
        """Emit a check that stops if a number argument differs from the recorded one."""
        if not isinstance(arg.type, ScalarType) or not isinstance(recorded, int | float) or isnan(recorded):
            return
        b = Builder(block)
        float_ = arg.type.is_float
        other = b.op(
            "arith.cmpf" if float_ else "arith.cmpi", [ScalarType("i1")],
            {"predicate": StrAttr("une" if float_ else "ne")}, lhs=arg, rhs=b.constant(recorded, arg.type),
        )  # fmt: skip
        inner = self._region(block, "scf.if", [other.results[0]])
        text = f"this is a recording of {arg.name} = {recorded}, got %{'f' if float_ else 'd'}\n"
        within = Builder(inner)
        within.op("pto.print", [], {"format": StrAttr(text)}, scalar=arg)
        within.op("pto.trap", [])
        self._end(inner, "scf.yield")

    def _close(self, inner: Block, around: Block) -> None:
        """End the branches around a part."""
        while inner is not around:
            self._end(inner, "scf.yield")
            outer = inner.outer
            assert outer is not None and outer.parent is not None
            inner = outer.parent

    def _only(self, block: Block, which: str, index: int) -> Block:
        """Return a block for the cores with a number."""
        b = Builder(block)
        mine = b.op(which, [_I64]).results[0]
        wanted = b.constant(index, _I64)
        same = b.op("arith.cmpi", [ScalarType("i1")], {"predicate": StrAttr("eq")}, lhs=mine, rhs=wanted)
        return self._region(block, "scf.if", [same.results[0]])

    def _region(
        self, block: Block, name: str, operands: Sequence[Value] = (), loc: Span | None = None
    ) -> Block:
        op = Operation(name, find_row(name), list(operands), loc=loc)
        regions = [Region(op) for _ in range(2 if name == "scf.if" else 1)]
        op.regions = regions
        block.append(op)
        return regions[0].add_block()

    def _end(self, block: Block, name: str) -> None:
        row = find_row(name)
        assert row is not None
        block.append(Operation(row.full_name, row, [], [], None, (0,) if row.has_segments else None))

    def _part(self, block: Block, part: CoreRecorder) -> None:
        given = {stand: self.entry.args[number] for number, stand in part.arguments.items()}
        for op in (*part.support, *part.items):
            if isinstance(op, RegisterScope):
                inner = self._region(block, "pto.vecscope", loc=op.op.loc)
                for one in op.ops:
                    inner.append(_with(one, given))
            else:
                block.append(_with(op, given))

    @property
    def module(self) -> Module:
        return self.builder.built


def _with(op: Operation, given: dict[Value, Value]) -> Operation:
    op.operands = [given.get(v, v) for v in op.operands]
    return op
