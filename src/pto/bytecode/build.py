"""Build IR from raw operations: parse texts, resolve constants and names, and check the shape of every
operation.

A few bytes can refer to a long text many times. So the builder counts the text that the program would have,
and refuses a file whose text is far larger than that of any real program of the same size.
"""

from __future__ import annotations

from typing import NoReturn

from ..asm.cursor import Fail, Report
from ..asm.generic import from_generic
from ..asm.parser import Parser
from ..diag import Source, Span
from ..ir.attrs import Attribute, DenseArrayAttr, EnumAttr, StrAttr, TypeAttr
from ..ir.core import Block, Module, Operation, Region, Successor, Value
from ..ir.shape import problem
from ..ir.types import ScalarType, Type
from ..isa import row
from ..isa.enums import ENUMS
from . import format
from .constants import BadConstant, constant_name, float_attr, int_attr, wide_attr
from .debuginfo import DebugInfo, is_name
from .file import File, FileConstant, RawBlock, RawModule, RawOp
from .leb import fail
from .texts import BadText, default, implied, parse_dict, parse_type

_TEXT_PER_BYTE = 256  # characters of text per byte of a file; real programs stay below 60
_ALLOWANCE = 1 << 20
_ATTRIBUTE_COST = 64  # an attribute of an operation counts as this many characters


class FileBuilder:
    def __init__(self, file: File) -> None:
        self.file = file
        self._left = _ALLOWANCE + _TEXT_PER_BYTE * len(file.data)
        self._types: dict[int, Type] = {}  # by string id; several ids may have the same text
        self.length: dict[Type, int] = {}  # length of the text of each type
        self._dicts: dict[int, dict[str, Attribute]] = {}
        self._errors = Parser(Source("", ""))  # from_generic adds its errors to this parser

    def module(self, raw: RawModule, debug: DebugInfo | None) -> Module:
        top = Operation("builtin.module", row("builtin.module"), [], attrs=self.attrs(raw.attrs, 0))
        region = Region(top)
        top.regions = [region]
        body = region.add_block()
        places = debug.places() if debug else {}
        for id, f in enumerate(raw.functions):
            self.spend(len(f.name), f.at)
            attrs: dict[str, Attribute] = {
                "sym_name": StrAttr(f.name),
                "function_type": TypeAttr(self.type(f.type, f.at)),
            }
            attrs.update(self.attrs(f.attrs, f.at))
            loc = Span(self.file.source, f.at, f.at + 1)
            op = Operation("func.func", row("func.func"), [], attrs=attrs, loc=loc)
            scope = _Scope(self)
            op.regions = [scope.region(f.body, op)]
            scope.finish()
            self.check(op, f.at)
            for k, made in enumerate(scope.ops if places else ()):
                if (id, k) in places:
                    made.loc = places[id, k]
            record_names(scope.values, debug.names.get(id, {}) if debug else {})
            name_constants(scope.values)
            body.append(op)
        if raw.extra:
            self._extra(raw, body, region, debug.names.get(len(raw.functions), {}) if debug else {})
        return Module(top, self.file.source)

    def _extra(self, raw: RawModule, body: Block, region: Region, names: dict[int, str]) -> None:
        """Insert the module-level operations other than functions, each at its position."""
        functions = iter(body.ops)
        places = dict(raw.extra)
        total = len(raw.functions) + len(raw.extra)
        if len(places) != len(raw.extra) or max(places) >= total:
            self.fail("PTO-E1208", "invalid position of a module-level operation", raw.extra[0][1].at)
        scope = _Scope(self)
        body.ops = []
        for k in range(total):
            body.append(scope.op(places[k], region) if k in places else next(functions))
        scope.finish()
        record_names(scope.values, names)
        for position in places:
            for op in body.ops[position].walk():
                if op.name == "func.func":
                    name_constants(_values(op))

    def fail(self, code: str, message: str, at: int, **more: str) -> NoReturn:
        fail(self.file.source, code, message, at, **more)

    def spend(self, cost: int, at: int) -> None:
        self._left -= cost
        if self._left < 0:
            self.fail("PTO-E1215", "cannot expand the file: its text is far larger than its size allows", at)

    # -------------------------------------------------------------------------------------------- tables

    def type(self, id: int, at: int) -> Type:
        string = self.file.types[id - 1]
        text = self.file.strings[string]
        self.spend(len(text), at)
        found = self._types.get(string)
        if found is None:
            try:
                found = self._types[string] = parse_type(text)
                self.length[found] = len(text)
            except BadText as e:
                self.fail("PTO-E1212", f"bad type '{text[:60]}': {e}", self.file.string_at[string])
        return found

    def attrs(self, id: int, at: int) -> dict[str, Attribute]:
        """Return a new dictionary with the attributes of an id."""
        if not id:
            return {}
        string = self.file.attrs[id - 1]
        text = self.file.strings[string]
        found = self._dicts.get(string)
        if found is None:
            try:
                found = self._dicts[string] = parse_dict(text)
            except BadText as e:
                self.fail("PTO-E1212", f"bad attributes '{text[:60]}': {e}", self.file.string_at[string])
        self.spend(len(text) + _ATTRIBUTE_COST * len(found), at)
        return dict(found)

    def constant(self, entry: FileConstant, at: int) -> Attribute:
        if entry.tag == format.INDEX_VECTOR:
            self.fail("PTO-E1213", "expected a number as the value of a constant, got an index vector", at)
        type = self.type(entry.type, entry.at)
        try:
            if not isinstance(type, ScalarType):
                raise BadConstant(f"a number cannot have type {type}")
            if isinstance(entry.value, int):
                return int_attr(entry.value, type)
            assert isinstance(entry.value, bytes)
            self.spend(3 * len(entry.value), at)
            return (float_attr if entry.tag == format.FLOAT else wide_attr)(entry.value, type)
        except BadConstant as e:
            self.fail("PTO-E1213", f"bad constant: {e}", entry.at)

    def check(self, op: Operation, at: int) -> None:
        wrong = problem(op)
        if wrong:
            self.fail("PTO-E1214", f"{op.name}: {wrong}", at)

    def settle(self, op: Operation, raw: RawOp) -> None:
        """Convert an operation from the generic form of a file to the form of the IR."""
        r = op.row
        if r is None:
            return
        if r.dialect == "cf":
            op.segments = tuple(int(k < len(op.operands)) for k in range(len(r.operands)))
        else:
            self._segments(op, raw)
            try:
                from_generic(self._errors, op, r, 0)
            except (Fail, Report) as e:
                message = e.message if isinstance(e, Fail) else e.diagnostic.message
                self.fail("PTO-E1214", message, raw.at)
        for attr in implied(r):
            if op.attrs.get(attr.name) == default(attr):
                del op.attrs[attr.name]
        self.check(op, raw.at)

    def _segments(self, op: Operation, raw: RawOp) -> None:
        r = op.row
        assert r is not None
        sizes = op.attrs.pop(format.SEGMENTS, None)
        if not r.has_segments:
            return
        given: tuple[int, ...] | None = None
        if isinstance(sizes, DenseArrayAttr):
            given = tuple(v for v in sizes.value if isinstance(v, int))
        groups = format.read_segments(r, given, len(op.operands))
        if groups is None:
            what = f"{op.name}: unexpected number of operands: {len(op.operands)}"
            if given is not None:
                what = f"{op.name}: cannot split {len(op.operands)} operands into groups {list(given)}"
            self.fail("PTO-E1214", what, raw.at)
        op.set_attr(format.SEGMENTS, DenseArrayAttr("i32", groups))


class _Scope:
    """The values of one function, with the region that each is visible in."""

    def __init__(self, builder: FileBuilder) -> None:
        self.b = builder
        self.values: list[Value] = []
        self._region_of: list[Region] = []  # the region of each value
        self._pending: list[tuple[Operation, RawOp]] = []  # outer operations first, in the order of their ids

    @property
    def ops(self) -> list[Operation]:
        return [op for op, _ in self._pending]

    def region(self, blocks: list[RawBlock], parent: Operation) -> Region:
        region = Region(parent)
        for raw in blocks:
            block = region.add_block()
            for id in raw.args:
                self._define(block.add_arg(self.b.type(id, raw.at)), region)
            for op in raw.ops:
                block.append(self.op(op, region))
        return region

    def op(self, raw: RawOp, region: Region | None = None) -> Operation:
        b = self.b
        b.spend(len(raw.name), raw.at)
        attrs = b.attrs(raw.attrs, raw.at)
        self._immediate(raw, attrs)
        types = [b.type(id, raw.at) for id in raw.results]
        loc = Span(b.file.source, raw.at, raw.end)
        op = Operation(raw.name, raw.row, [], types, attrs or None, loc=loc)
        for value in op.results:
            self._define(value, region)
        self._pending.append((op, raw))
        op.regions = [self.region(blocks, op) for blocks in raw.regions]
        return op

    def _define(self, value: Value, region: Region | None) -> None:
        self.values.append(value)
        self._region_of.append(region or Region())

    def _immediate(self, raw: RawOp, attrs: dict[str, Attribute]) -> None:
        found = format.by_name().get(raw.name)
        if not raw.immediate or found is None:
            return
        if found.immediate == format.CONSTANT:
            attrs["value"] = self.b.constant(self.b.file.consts[raw.immediate[0]], raw.at)
        elif found.immediate == format.PREDICATE:
            attrs["predicate"] = StrAttr(format.PREDICATES[raw.immediate[0]])
        elif found.immediate == format.EVENT:
            enums = ("src_op", "sync_op_type"), ("dst_op", "sync_op_type"), ("event_id", "event")
            for (name, enum), number in zip(enums, raw.immediate, strict=True):
                word = next((w for w, n in ENUMS[enum].values.items() if n == number), None)
                if word is None:
                    self.b.fail("PTO-E1211", f"{raw.name}: {name} has no value {number}", raw.at)
                attrs[name] = EnumAttr(enum, word)
        elif found.immediate in (format.VIEW, format.PARTITION):
            attrs[format.SEGMENTS] = DenseArrayAttr("i32", (1, *raw.immediate))
        elif found.immediate == format.VALID_MASK:
            attrs[format.SEGMENTS] = DenseArrayAttr("i32", (0, raw.immediate[0] & 1, raw.immediate[0] >> 1))

    def finish(self) -> None:
        """Set the operands after all values exist, because a branch back may use a value that is defined
        later."""
        for op, raw in self._pending:
            at = raw.at
            for id in raw.operands:
                if id >= len(self.values):
                    known = f"0 .. {len(self.values) - 1}" if self.values else "none"
                    self.b.fail(
                        "PTO-E1208", f"value id {id} is out of range", at, expected=known, got=str(id)
                    )
                self._visible(op, id, at)
            op.operands = [self.values[id] for id in raw.operands]
            self.b.spend(sum(self.b.length[v.type] for v in op.operands), at)
            self._successors(op, raw)
            self.b.settle(op, raw)
            least = (
                sum(not o.optional and not o.variadic for o in op.row.operands) if op.row is not None else 0
            )
            if len(op.operands) < least:
                got = str(len(op.operands))
                self.b.fail(
                    "PTO-E1211", f"{raw.name} lacks operands", at, expected=f"{least} operands", got=got
                )

    def _visible(self, op: Operation, id: int, at: int) -> None:
        wanted = self._region_of[id]
        region = op.parent.parent if op.parent else None
        while region is not wanted:
            outer = region.parent if region else None
            if outer is None:
                self.b.fail("PTO-E1208", f"value id {id} is not visible here: its region has ended", at)
            region = outer.parent.parent if outer.parent else None

    def _successors(self, op: Operation, raw: RawOp) -> None:
        targets = op.attrs.pop(format.SUCCESSORS, None)
        if targets is None:
            return
        blocks = op.parent.parent.blocks if op.parent and op.parent.parent else []
        pairs = targets.value if isinstance(targets, DenseArrayAttr) else ()
        numbers = [v for v in pairs if isinstance(v, int) and v >= 0]
        args = sum(numbers[1::2])
        if (
            len(numbers) % 2
            or len(numbers) != len(pairs)
            or not numbers
            or args > len(op.operands)
            or max(numbers[::2]) >= len(blocks)
        ):
            self.b.fail("PTO-E1214", f"{op.name}: invalid branch targets", raw.at)
        at = len(op.operands) - args
        passed = op.operands[at:]
        op.operands = op.operands[:at]
        successors: list[Successor] = []
        at = 0
        for block, count in zip(numbers[::2], numbers[1::2], strict=True):
            blocks[block].label = f"^bb{block}"
            successors.append(Successor(blocks[block], passed[at : at + count]))
            at += count
        op.successors = tuple(successors)


def _values(func: Operation) -> list[Value]:
    """Return the values of a function in the order of their ids."""
    out: list[Value] = []

    def visit(region: Region) -> None:
        for block in region.blocks:
            out.extend(block.args)
            for op in block.ops:
                out.extend(op.results)
                for inner in op.regions:
                    visit(inner)

    for region in func.regions:
        visit(region)
    return out


def record_names(values: list[Value], names: dict[int, str]) -> None:
    """Name values as the debug information does."""
    seen: dict[object, set[str]] = {}  # by block
    for id, name in names.items():
        if id < len(values) and is_name(name):
            value = values[id]
            block = value.op.parent if value.op else value.owner
            taken = seen.setdefault(block, set())
            if name not in taken:  # a program has no name twice in a block
                taken.add(name)
                value.name = name


def name_constants(values: list[Value]) -> None:
    """Name the unnamed constants of a function after their values."""
    counts: dict[str, int] = {}
    for value in values:
        op = value.op
        if value.name or op is None or op.name != "arith.constant":
            continue
        base = constant_name(op.attrs.get("value"))
        if base and is_name(base):
            count = counts[base] = counts.get(base, -1) + 1
            value.name = f"{base}_{count}" if count else base
