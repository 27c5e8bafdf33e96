"""Lower InCore functions to programs of the instruction set: views, tiles, instructions, structured control
flow.

In the language tiles are values, in the instruction set they are storage. A value gets its own tile, unless a
loop or an if hands it on. Then it is computed into the tile shared by all values that are handed on, if the
old contents are no longer needed, and otherwise copied there at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import Builder, Module
from ...ir.attrs import EnumAttr, StrAttr, UnitAttr
from ...ir.core import Region
from ...ir.core import Value as PtoValue
from ...ir.types import I64, INDEX, PtrType, TileBufType
from ...ir.types import Type as PtoType
from ...isa import row as find_row
from ...isa.profiles import Profile
from ..enums import AtomicType
from ..ir import CHANGES, Block, Dim, Function, Number, Op, TensorType, TileType, Value, is_tile
from ..problems import UNSUPPORTED, fail
from . import cube, fifo, ranks, scalars
from .emission import NAMES_STORAGE, defined_beside, named
from .gather import Gathers
from .micro import Micros
from .operators import signature_of
from .system import Systems
from .types import element, number


def emit(function: Function, profile: Profile) -> Module:
    """Return the program of a function; for a mixed function, a program of its two parts."""
    build = Builder.module({"pto.target_arch": StrAttr(_arch(profile))})
    for part in parts_of(function) or [function]:
        Emitter(part, profile).add_to(build)
    return build.built


def parts_of(function: Function) -> list[Function]:
    """Return the cube part and the vector part of a mixed function."""
    return [op.args["callee"] for op in function.body.ops] if function.kind == "mixed" else []


class Emitter(Micros, Systems, Gathers):
    def add_to(self, b: Builder) -> None:
        b.at(self.function.loc)
        types = [self._param_type(v) for v in self.function.body.args]
        kind = _core_kind(self.function)
        attrs: dict[str, object] = {"pto.entry": UnitAttr()}
        if kind:
            attrs["pto.kernel_kind"] = EnumAttr("kernel_kind", kind)
        self.entry = b.func(self.function.name, types, attrs)  # type: ignore[arg-type]
        self.build = b
        for value, arg in zip(self.function.body.args, self.entry.args, strict=True):
            arg.name = value.name
            if not isinstance(value.type, TensorType):
                self.values[value] = arg
        for value, arg in zip(self.function.body.args, self.entry.args, strict=True):
            if isinstance(value.type, TensorType):
                self.tensors[value] = self._view(arg, value.type)
                self.values[value] = arg
        self._count(self.function.body)
        self.block(self.function.body)
        b.at(self.function.loc)
        b.op("func.return", values=[])

    def _count(self, block: Block) -> None:
        for op in block.walk():
            for v in op.operands():
                self.uses[v] = self.uses.get(v, 0) + 1
            if op.name in CHANGES:
                self.changed.add(op.args[CHANGES[op.name]])

    def _param_type(self, value: Value) -> PtoType:
        if isinstance(value.type, TensorType):
            return PtrType(element(value.type.dtype), "gm")
        return number(value.type.dtype)

    # ---- blocks ----

    def op(self, op: Op) -> None:
        special = getattr(self, f"op_{op.name.replace('.', '_')}", None)
        if op.name in _EMITTERS:
            _EMITTERS[op.name](self, op)
        elif special is not None:
            special(op)
        elif op.name.startswith("scalar."):
            self.values[op.result] = scalars.scalar(self, op)
            self.values[op.result].name = op.result.name
        elif op.name.startswith("micro."):
            self.micro(op)
        elif signature_of(op) is not None:
            self.instruction(op)
        else:
            fail(UNSUPPORTED, f"unsupported operation {op.name} on a core", op.loc)
        for result in op.results:
            made = self.values.get(result)
            if made is not None and not made.name and isinstance(made.type, TileBufType):
                made.name = result.name or named(result)

    # ---- operators ----

    def op_load(self, op: Op) -> None:
        t = op.result.type
        window = self.window(op.args["tensor"], op.args["offsets"], list(t.extent))
        self.build.op("pto.tload", src=window, dst=self.result(op.result))

    def op_store(self, op: Op) -> None:
        tile = op.args["tile"]
        extent = list(tile.type.extent)
        rank = len(op.args["offsets"])
        extent = [1] * (rank - len(extent)) + extent if len(extent) < rank else extent[-rank:]
        window = self.window(op.args["output_tensor"], op.args["offsets"], extent)
        attrs = {}
        if op.args["atomic"] is AtomicType.Add:
            attrs["atomicType"] = EnumAttr("atomic_type", "atomic_add")
        self.build.op("pto.tstore", None, attrs, src=self.values[tile], dst=window)

    def op_slice(self, op: Op) -> None:
        x = op.args["x"]
        if isinstance(x.type, TensorType):
            ref = self.tensors[x]
            offsets = list(ref.offsets)
            for axis, o in zip(ref.axes, op.args["offset"], strict=True):
                offsets[axis] = self._plus(offsets[axis], o)
            dropped = op.args.get("drop_dims") or []
            axes = [a for i, a in enumerate(ref.axes) if i not in dropped]
            self.tensors[op.result] = ref.part(offsets, axes)
            return
        self.subview(op, x, op.args["offset"])

    def subview(self, op: Op, x: Value, offset: Sequence[Dim]) -> None:
        """View a window of a tile: an alias of a part of its storage."""
        self.values[op.result] = self.window_of(x, op.result.type, list(self.flat(x, offset)))

    def op_create_tile(self, op: Op) -> None:
        self.result(op.result)

    def op_read(self, op: Op) -> None:
        x, type = op.args["x"], number(op.result.type.dtype)
        offset = self._flat(x, op.args["offset"])
        if isinstance(x.type, TensorType):
            made = self.build.op("pto.load_scalar", [type], ptr=self._pointer(x), offset=offset)
        else:
            made = self.build.op("pto.tgetval", [type], src=self.values[x], offset=offset)
        self.values[op.result] = made.result
        made.result.name = op.result.name

    def op_write(self, op: Op) -> None:
        x = op.args["x"]
        value = self.number(op.args["value"], x.type.dtype)
        offset = self._flat(x, op.args["offset"])
        if isinstance(x.type, TensorType):
            self.build.op("pto.store_scalar", ptr=self._pointer(x), offset=offset, value=value)
        else:
            self.build.op("pto.tsetval", dst=self.values[x], offset=offset, val=value)

    def op_const(self, op: Op) -> None:
        self.values[op.result] = self.literal(op.args["value"], number(op.args["dtype"]))

    def _identity(self, op: Op) -> None:
        wide = self.build.op(f"pto.{op.name}", [I64]).result
        self.values[op.result] = self.build.op("arith.index_cast", [INDEX], src=wide).result
        self.values[op.result].name = op.result.name

    op_get_block_idx = op_get_block_num = op_get_subblock_idx = _identity

    # ---- control flow ----

    def op_for(self, op: Op) -> None:
        body = op.blocks[0]
        numbers = [i for i, r in enumerate(op.results) if not is_tile(r)]
        copies = self._carried_tiles(op, body, 1)
        inits = [self._initial(op.args["init_values"][i], op.results[i]) for i in numbers]
        start, stop = op.args["start"], op.args["stop"]
        step = op.args["step"]
        back = 0 if isinstance(step, Value) else max(0, -step)  # scf.for counts up
        bounds = {k: self.index(b) for k, b in (("lb", start), ("ub", stop), ("step", step))}
        if back:
            bounds = self._counted(start, stop, back)
        made, (block,) = self._structure(
            "scf.for", [self.passed(op.results[i].type) for i in numbers], 1, **bounds, init=inits
        )
        outer = self.build.block
        counter = block.add_arg(INDEX, body.args[0].name)
        self.values[body.args[0]] = counter
        for i in numbers:
            arg = body.args[1 + i]
            self.values[arg] = block.add_arg(self.passed(arg.type), arg.name)
        self.build.block = block
        if back:
            past = self.build.op("arith.muli", [INDEX], lhs=counter, rhs=self.index(back)).result
            counter.name = ""
            here = self.build.op("arith.subi", [INDEX], lhs=self.index(start), rhs=past).result
            here.name, self.values[body.args[0]] = body.args[0].name, here
        self.block(body)
        self._hand_on(op, body, copies, numbers)
        self.build.block = outer
        for i, result in zip(numbers, made.results, strict=True):
            self.values[op.results[i]] = result
            result.name = op.results[i].name

    def _counted(self, start: Dim, stop: Dim, step: int) -> dict[str, PtoValue]:
        """Return the bounds of a loop that counts the iterations of a loop that counts down."""
        length = self.build.op("arith.subi", [INDEX], lhs=self.index(start), rhs=self.index(stop)).result
        count = self.build.op("arith.ceildivsi", [INDEX], lhs=length, rhs=self.index(step)).result
        return {"lb": self.index(0), "ub": count, "step": self.index(1)}

    def op_while(self, op: Op) -> None:
        test, body = op.blocks
        numbers = [i for i, r in enumerate(op.results) if not is_tile(r)]
        copies = self._carried_tiles(op, body, 0)
        for i, r in enumerate(op.results):
            if is_tile(r):
                self.values[test.args[i]] = self.values[body.args[i]]
        inits = [self._initial(op.args["init_values"][i], op.results[i]) for i in numbers]
        types = [self.passed(op.results[i].type) for i in numbers]
        made, (before, after) = self._structure("scf.while", types, 2, init=inits)
        outer = self.build.block
        for i, t in zip(numbers, types, strict=True):
            self.values[test.args[i]] = before.add_arg(t, test.args[i].name)
            self.values[body.args[i]] = after.add_arg(t, body.args[i].name)
        self.build.block = before
        for inner in test.ops[:-1]:
            self.place(inner.loc)
            self.op(inner)
        cond = self.number(test.yielded[0])
        self.build.op("scf.condition", condition=cond, args=[self.values[test.args[i]] for i in numbers])
        self.build.block = after
        self.block(body)
        self._hand_on(op, body, copies, numbers)
        self.build.block = outer
        for i, result in zip(numbers, made.results, strict=True):
            self.values[op.results[i]] = result

    def op_if(self, op: Op) -> None:
        numbers = [i for i, r in enumerate(op.results) if not is_tile(r)]
        for i, r in enumerate(op.results):
            if i not in numbers:
                self._arms(op, i, r)
        cond = self.number(op.args["cond"])
        types = [self.passed(op.results[i].type) for i in numbers]
        made, blocks = self._structure("scf.if", types, 2, condition=cond)
        outer = self.build.block
        for block, inner in zip(blocks, op.blocks, strict=True):
            self.build.block = block
            for i, r in enumerate(op.results):
                if i not in numbers:
                    self._into(inner.yielded[i], self.values[r], inner)
            self.block(inner)
            for i, r in enumerate(op.results):
                if i not in numbers and self.values[inner.yielded[i]] is not self.values[r]:
                    self.copy(self.values[inner.yielded[i]], self.values[r], op.loc)
            values = [self.number(inner.yielded[i], op.results[i].type.dtype) for i in numbers]
            self.build.op("scf.yield", values=values)
        self.build.block = outer
        if not numbers and len(op.blocks[1].ops) == 1 and len(blocks[1].ops) == 1:
            made.regions = [made.regions[0], Region(made)]
        for i, result in zip(numbers, made.results, strict=True):
            self.values[op.results[i]] = result
            result.name = op.results[i].name

    def op_yield(self, op: Op) -> None:
        pass  # the operation that contains the block hands values on

    def _initial(self, value: Number, result: Value) -> PtoValue:
        return self.number(0 if value is None else value, result.type.dtype)

    def _arms(self, op: Op, i: int, r: Value) -> None:
        """Choose the tile of a value that both branches set: the requested tile, the tile of a branch that
        leaves the tile unchanged and does not use it again, or a new tile.
        """
        target = self.targets.pop(r, None)
        if target is None:
            for block in op.blocks:
                v, adds = _sum_of(block.yielded[i], block)
                alone = self.uses.get(v, 0) <= _uses_in(op, v) and defined_beside(v, op)
                if v in self.values and (alone or adds is not None):  # a sum can only be in this tile
                    target = self.values[v]
        self.values[r] = target if target is not None else self.alloc(r.type, r.name)

    def _carried_tiles(self, op: Op, body: Block, first: int) -> list[tuple[int, PtoValue]]:
        """Choose the tiles that a loop carries, one for all iterations. Return those that have to be copied
        at the end of an iteration."""
        copies: list[tuple[int, PtoValue]] = []
        for i, r in enumerate(op.results):
            if not is_tile(r):
                continue
            init, arg = op.args["init_values"][i], body.args[first + i]
            target = self.targets.pop(r, None)
            if (
                target is None
                and init is not None
                and self.uses.get(init, 0) == 1
                and defined_beside(init, op)
            ):
                target = self.values[init]
            if target is None:
                target = self.alloc(r.type, r.name)
            if init is not None and self.values[init] is not target and not self._undefined(init):
                self.copy(self.values[init], target, op.loc)
            self.values[arg] = self.values[r] = target
            out = body.yielded[i]
            if out is not arg and not self._may_replace(out, arg, body):
                copies.append((i, target))
            elif out is not arg:
                self._into(out, target, body)
        return copies

    def _undefined(self, value: Value) -> bool:
        return value.op is not None and value.op.name == "create_tile" and value not in self.changed

    def _into(self, value: Value, target: PtoValue, block: Block) -> None:
        """Compute a value into a tile if its operation is in the block."""
        op = value.op
        if op is not None and op.parent is block and op.name not in NAMES_STORAGE:
            self.targets[value] = target
            if op.name in _SUMS and self.uses.get(op.args["acc"], 0) == 1:
                self._into(op.args["acc"], target, block)

    def _may_replace(self, new: Value, old: Value, block: Block) -> bool:
        """Return True if a value may be computed into the tile of another: the other is not read afterwards,
        and the instruction may work in place."""
        op = new.op
        if op is None or op.parent is not block or op.name in NAMES_STORAGE:
            return False
        at = block.ops.index(_sum_of(new, block)[1] or op)
        later = [o for o in block.ops[at + 1 :] if o.name != "yield"]
        if any(old in set(_all_operands(o)) for o in later) or old in block.yielded:
            return False
        if any(_aliases(o, old) for o in block.ops) or any(v is old for v in block.yielded):
            return False
        if op.name == "if":
            i = op.results.index(new)
            if any(v is old for b in op.blocks for j, v in enumerate(b.yielded) if j != i):
                return False
            return all(
                b.yielded[i] is old
                or self._may_replace(b.yielded[i], old, b)
                or old not in _block_operands(b)
                for b in op.blocks
            )
        if op.name in ("for", "while"):
            i = op.results.index(new)
            within = {v for b in op.blocks for o in b.walk() for v in o.operands()}
            return old not in within and (op.args["init_values"][i] is old or old not in set(op.operands()))
        if old not in set(op.operands()):
            return True
        return _in_place(op, old, self.profile.isa)

    def _hand_on(self, op: Op, body: Block, copies: list[tuple[int, PtoValue]], numbers: list[int]) -> None:
        """Emit the end of an iteration. A tile that another carried value still occupies is first copied
        elsewhere."""
        self.place(op.loc)
        targets = {t for _, t in copies}
        ready: list[tuple[PtoValue, PtoValue]] = []
        for i, target in copies:
            source = self.values[body.yielded[i]]
            if source in targets and source is not target:
                aside = self.alloc(body.yielded[i].type, "aside")
                self.copy(source, aside, op.loc)
                source = aside
            ready.append((source, target))
        for source, target in ready:
            self.copy(source, target, op.loc)
        values = [self.number(body.yielded[i], op.results[i].type.dtype) for i in numbers]
        self.build.op("scf.yield", values=values)


#: Operations that accumulate into a tile in place.
_SUMS = ("matmul_acc", "gemv_acc", "matmul_mx_acc")


def _sum_of(value: Value, block: Block) -> tuple[Value, Op | None]:
    """Return the initial value of a sum in a block, and the first operation of the sum there."""
    first: Op | None = None
    while (
        isinstance(value, Value) and (op := value.op) is not None and op.parent is block and op.name in _SUMS
    ):
        value, first = op.args["acc"], op
    begins = value.op if first is not None and isinstance(value, Value) else None
    return value, begins if begins is not None and begins.parent is block else first


def _aliases(op: Op, value: Value) -> bool:
    return op.name in NAMES_STORAGE and op.args["x"] is value


def _uses_in(op: Op, value: Value) -> int:
    return sum(v is value for o in op.walk() for v in o.operands())


def _all_operands(op: Op) -> list[Value]:
    return [v for o in op.walk() for v in o.operands()]


def _block_operands(block: Block) -> set[Value]:
    return {v for op in block.walk() if op.name != "yield" for v in op.operands()}


def _in_place(op: Op, operand: Value, isa: str) -> bool:
    """Return True if an instruction may write to an operand that it reads."""
    if op.name in _SUMS:
        return op.args["acc"] is operand and operand not in (op.args["lhs"], op.args["rhs"])
    found = signature_of(op)
    row = found.row if found is not None else find_row(_ROWS.get(op.name, ""))
    if row is None:
        return False
    if (row.in_place_on and isa not in row.in_place_on) or row.in_place == "any":
        return True
    if found is None or row.in_place == "none":
        return False
    allowed = row.in_place.split()
    return all(p.operand in allowed for p in found.params if op.args.get(p.name) is operand)


_ROWS = {"cast": "pto.tcvt", "transpose": "pto.ttrans", "fillpad": "pto.tfillpad", "move": "pto.tmov"}


def _arch(profile: Profile) -> str:
    return {"a2a3": "a3"}.get(profile.name, profile.name)


def _core_kind(function: Function) -> str:
    """Return the kind of core that a function needs, by the memories of its tiles; empty if it needs both or
    neither."""
    if function.kind in ("aic", "aiv"):
        return {"aic": "cube", "aiv": "vector"}[function.kind]
    spaces = {r.type.space for op in function.walk() for r in op.results if isinstance(r.type, TileType)}
    cube = bool(spaces - {"vec"})
    return "cube" if cube and "vec" not in spaces else "vector" if "vec" in spaces and not cube else ""


_EMITTERS = {**cube.EMITTERS, **fifo.EMITTERS, **ranks.EMITTERS}

__all__ = ["Emitter", "emit", "parts_of"]
