"""Write IR as bytecode.

An operation is written with its v0 number if v0 can express all of it, otherwise as a generic operation. With
`strict`, operations that the reader of PTOAS lacks are refused, and all of them are reported at once.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from ..asm.cursor import MAX_DEPTH
from ..diag import Diagnostic, DiagnosticError
from ..ir.attrs import Attribute, DenseArrayAttr, EnumAttr
from ..ir.core import Block, Module, Operation, Region, Value
from ..ir.types import Type
from ..isa.enums import ENUMS
from . import format
from .constants import constant_bits
from .debuginfo import DebugWriter
from .leb import write_sleb, write_uleb
from .texts import dict_text, op_attrs

T = TypeVar("T")


def to_bytecode(module: Module, *, strict: bool = False, debuginfo: bool = False) -> bytes:
    """Return a module as PTO-BC v0.

    `strict` raises `DiagnosticError` for operations that the reader of PTOAS lacks. `debuginfo` adds value
    names and source locations. In strict mode, value names are those of the canonical text of PTOAS.
    """
    return _BytecodeWriter(module, strict, debuginfo).file()


class _Table(Generic[T]):
    """Entries in the order of first use."""

    def __init__(self) -> None:
        self.ids: dict[T, int] = {}

    def add(self, entry: T) -> int:
        return self.ids.setdefault(entry, len(self.ids))


class _BytecodeWriter:
    def __init__(self, module: Module, strict: bool, debuginfo: bool) -> None:
        self.module = module
        self.strict = strict
        self.problems: list[Diagnostic] = []
        self._strings = _Table[str]()
        self._types = _Table[int]()  # of string ids
        self._attrs = _Table[int]()
        self._consts = _Table[bytes]()
        self._ids: dict[Value, int] = {}
        self._numbers: dict[Block, int] = {}  # block -> its number in its region
        self._written = 0  # number of values that are already defined in the stream
        self._function = 0
        self._next_op = 0
        self._debug: DebugWriter | None = None
        if debuginfo:
            self._debug = DebugWriter(self._strings.add, not strict)

    # ----------------------------------------------------------------------------------------- container

    def file(self) -> bytes:
        stream, extra = self._stream()
        if self.problems:
            raise DiagnosticError(self.problems)
        debug = self._debug.section() if self._debug is not None else b""
        sections = [
            (format.STRINGS, self._string_section()),
            (format.TYPES, _text_section(self._types)),
            (format.ATTRS, _text_section(self._attrs)),
            (format.CONSTS, self._const_section()),
            (format.MODULE, bytes(stream)),
        ]
        if debug:
            sections.append((format.DEBUG, debug))
        if extra:
            sections.append((format.EXTRA, format.EXTRA_TAG + extra))
        payload = b"".join(bytes([id]) + len(data).to_bytes(4, "little") + data for id, data in sections)
        header = (
            format.MAGIC
            + format.VERSION.to_bytes(2, "little")
            + bytes(2)
            + len(payload).to_bytes(4, "little")
        )
        return header + payload

    def _string_section(self) -> bytes:
        out = bytearray()
        write_uleb(out, len(self._strings.ids))
        for text in self._strings.ids:
            raw = text.encode("utf-8", "surrogateescape")
            write_uleb(out, len(raw))
            out += raw
        return bytes(out)

    def _const_section(self) -> bytes:
        out = bytearray()
        write_uleb(out, len(self._consts.ids))
        for entry in self._consts.ids:
            out += entry
        return bytes(out)

    # ------------------------------------------------------------------------------------------- tables

    def _type(self, type: Type) -> int:
        return 1 + self._types.add(self._strings.add(str(type)))

    def _dict(self, attrs: dict[str, Attribute]) -> int:
        text = dict_text(attrs)
        return 1 + self._attrs.add(self._strings.add(text)) if text else 0

    def _const(self, type: Type, found: tuple[int, int, int]) -> int:
        tag, number, bits = found
        entry = bytearray([tag])
        write_uleb(entry, self._type(type))
        if tag == format.INT:
            write_sleb(entry, number)
        else:
            size = (bits + 7) // 8
            write_uleb(entry, size)
            entry += number.to_bytes(size, "little")
        return self._consts.add(bytes(entry))

    # -------------------------------------------------------------------------------------------- module

    def _stream(self) -> tuple[bytearray, bytes]:
        for name in ("func.func", "func.return"):  # PTOAS writes these strings first
            self._strings.add(name)
        out = bytearray([0, format.INDEX_WIDTH])
        write_uleb(out, self._dict(self.module.attrs))
        write_uleb(out, 0)  # globals
        body = self.module.body.ops
        functions = [op for op in body if op.name == "func.func"]
        write_uleb(out, len(functions))
        for f in functions:
            write_uleb(out, self._strings.add(f.attr("sym_name")))
            write_uleb(out, self._type(f.attr("function_type")))
            out.append(0)  # flags: PTOAS marks no imports
            write_uleb(out, self._dict(f.attrs))
        for id, f in enumerate(functions):
            self._function, self._next_op, self._written = id, 0, 0
            values = self._number(f.regions[0])
            self._region(out, f.regions[0], 0)
            if self._debug is not None:
                self._debug.names(id, values)
        return out, self._extra(body)

    def _extra(self, body: list[Operation]) -> bytes:
        others = [(k, op) for k, op in enumerate(body) if op.name != "func.func"]
        if not others:
            return b""
        out = bytearray()
        write_uleb(out, len(others))
        self._written = 0
        debug, self._debug = self._debug, None  # locations are numbered by function
        values = self._number(self.module.op.regions[0], skip="func.func")
        for position, op in others:
            self._refuse(op, "v0 allows only functions at module level")
            write_uleb(out, position)
            self._op(out, op, 0)
        if debug is not None:
            debug.names(len(body) - len(others), values)
            self._debug = debug
        return bytes(out)

    def _number(self, region: Region, skip: str = "") -> list[Value]:
        """Return all values of a function in the order of their ids: block arguments, then results, before
        nested regions."""
        values: list[Value] = []
        stack: list[Region | Block | Operation] = [region]
        while stack:
            node = stack.pop()
            if isinstance(node, Region):
                stack.extend(reversed(node.blocks))
            elif isinstance(node, Block):
                values.extend(node.args)
                stack.extend(op for op in reversed(node.ops) if op.name != skip or node.parent is not region)
            else:
                values.extend(node.results)
                stack.extend(reversed(node.regions))
        self._ids = {value: id for id, value in enumerate(values)}
        return values

    def _refuse(self, op: Operation, why: str) -> None:
        if self.strict:
            help = "encode without --strict-v0 to write it as an extension of the format"
            self.problems.append(
                Diagnostic("PTO-E1216", f"{op.name}: {why}", self.module.span(op), help=help)
            )

    # -------------------------------------------------------------------------------------------- stream

    def _region(self, out: bytearray, region: Region, depth: int) -> None:
        if depth >= MAX_DEPTH:
            message = f"regions are nested deeper than {MAX_DEPTH} levels"
            raise DiagnosticError([Diagnostic("PTO-E0105", message)])
        write_uleb(out, len(region.blocks))
        self._numbers.update((block, k) for k, block in enumerate(region.blocks))
        for block in region.blocks:
            write_uleb(out, len(block.args))
            for arg in block.args:
                write_uleb(out, self._type(arg.type))
            self._written += len(block.args)
            write_uleb(out, len(block.ops))
            for op in block.ops:
                self._op(out, op, depth)

    def _op(self, out: bytearray, op: Operation, depth: int) -> None:
        if self._debug is not None:
            self._debug.location(self._function, self._next_op, op)
            self._next_op += 1
        found = format.by_name().get(op.name)
        if found is None:
            why = "v0 has no number for it"
        else:
            why = _misfit(found, op)
        if found is not None and not why:
            self._known(out, found, op)
        else:
            self._refuse(op, why)
            self._generic(out, op)
        self._written += len(op.results)
        if found is None or why:
            write_uleb(out, len(op.regions))
        for region in op.regions:
            self._region(out, region, depth + 1)

    def _known(self, out: bytearray, found: format.BytecodeOp, op: Operation) -> None:
        row = found.row
        out += row.opcode.to_bytes(2, "little")
        write_uleb(
            out, self._dict(op_attrs(op, without="value" if found.immediate == format.CONSTANT else ""))
        )
        if row.variant is not None:
            out.append(row.variant)
        self._immediate(out, found, op)
        if found.mode == format.COUNTED:
            write_uleb(out, len(op.operands))
        self._operands(out, op, op.operands)
        for result in op.results:
            write_uleb(out, self._type(result.type))

    def _immediate(self, out: bytearray, found: format.BytecodeOp, op: Operation) -> None:
        kind = found.immediate
        if kind == format.CONSTANT:
            number = constant_bits(op.attrs["value"])
            assert number is not None
            write_uleb(out, self._const(op.result.type, number))
        elif kind == format.PREDICATE:
            out.append(format.PREDICATES.index(op.attr("predicate")))
        elif kind == format.EVENT:
            out += bytes(_enum_number(op.attrs.get(name)) for name in ("src_op", "dst_op", "event_id"))
        elif kind in (format.VIEW, format.PARTITION):
            assert op.segments is not None
            out.append(0)  # list mode: every size is an operand
            for count in op.segments[1:]:
                write_uleb(out, count)
        elif kind == format.VALID_MASK:
            assert op.segments is not None
            out.append(op.segments[1] | op.segments[2] << 1)

    def _operands(self, out: bytearray, op: Operation, operands: list[Value]) -> None:
        for value in operands:
            id = self._ids.get(value)
            if id is None:
                message = f"{op.name}: operand '%{value.name}' is not a value of its function"
                raise DiagnosticError([Diagnostic("PTO-E0201", message, self.module.span(op))])
            if id >= self._written:
                self._refuse(op, f"uses '%{value.name}', which is defined later")
            write_uleb(out, id)

    def _generic(self, out: bytearray, op: Operation) -> None:
        attrs, operands = op_attrs(op), op.operands
        if op.successors:
            numbers = tuple(n for s in op.successors for n in (self._numbers[s.block], len(s.args)))
            attrs = {**attrs, format.SUCCESSORS: DenseArrayAttr("i64", numbers)}
            operands = operands + [v for s in op.successors for v in s.args]
        out += format.GENERIC.to_bytes(2, "little")
        write_uleb(out, self._dict(attrs))
        write_uleb(out, self._strings.add(op.name))
        write_uleb(out, len(op.results))
        for result in op.results:
            write_uleb(out, self._type(result.type))
        write_uleb(out, len(operands))
        self._operands(out, op, operands)


def _text_section(table: _Table[int]) -> bytes:
    """Return the entries of types or attributes: each has a tag, a flag for text, and the id of the text."""
    out = bytearray()
    write_uleb(out, len(table.ids))
    for string in table.ids:
        out += b"\0\1"
        write_uleb(out, string)
    return bytes(out)


def _misfit(found: format.BytecodeOp, op: Operation) -> str:
    """Return the reason why v0 cannot express an operation that has a number in v0; empty if v0 can."""
    if not found.readable:
        return "v0 has a number for it, but the reader of PTOAS lacks the operation"
    if len(op.results) != found.results:
        return f"v0 expects {found.results} results, got {len(op.results)}"
    if len(op.regions) != len(found.row.regions):
        return f"v0 expects {len(found.row.regions)} regions, got {len(op.regions)}"
    if found.mode in (format.FIXED, format.BY_VARIANT) and len(op.operands) != found.count:
        return f"v0 expects {found.count} operands, got {len(op.operands)}"
    if found.immediate == format.VALID_MASK and op.segments and op.segments[0]:
        return "v0 cannot encode an address"
    if found.immediate == format.PREDICATE and op.attr("predicate") not in format.PREDICATES:
        return f"v0 has no predicate '{op.attr('predicate')}'"
    if found.immediate == format.CONSTANT and constant_bits(op.attrs.get("value")) is None:
        return "v0 has no constants of this type"
    if found.immediate == format.EVENT:
        kinds = [
            v.enum if isinstance(v, EnumAttr) else ""
            for v in map(op.attrs.get, ("src_op", "dst_op", "event_id"))
        ]
        if kinds != ["sync_op_type", "sync_op_type", "event"]:
            return "v0 expects operation classes of #pto.sync_op_type and a constant event id"
    row = found.row
    if row.has_segments and op.segments is not None and found.mode in (format.FIXED, format.COUNTED):
        written = format.written_segments(row, op.segments)
        if written is None and format.spread(row, len(op.operands)) != op.segments:
            return "v0 cannot encode which of its optional operands are present"
    return ""


def _enum_number(value: Attribute | None) -> int:
    assert isinstance(value, EnumAttr)
    return ENUMS[value.enum].values[value.value]
