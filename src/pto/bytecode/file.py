"""Read a bytecode file as tables and raw operations, without the meaning of names and texts.

`read_file` checks the container and fills the tables; `read_module` reads the operation stream. `build` (raw
operations to IR) and `dump` both use the result. Every failure is a `DiagnosticError` with a byte offset.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..asm.cursor import MAX_DEPTH
from ..diag import Source
from ..ir.core import may_name
from ..isa.row import Row
from . import format
from .leb import Reader

_DEEPEST = MAX_DEPTH - 4  # in a text, the module, the function and their bodies add 4 levels


@dataclass(frozen=True, slots=True)
class FileConstant:
    at: int
    tag: int
    type: int  # type id, 0 for an index vector
    value: int | bytes | tuple[int, ...]


@dataclass(slots=True)
class RawOp:
    """One operation. `row` is None for an operation of an unknown dialect."""

    at: int
    end: int
    opcode: int
    name: str
    row: Row | None
    attrs: int
    immediate: tuple[int, ...]
    operands: list[int]
    results: list[int]
    regions: list[list[RawBlock]]


@dataclass(slots=True)
class RawBlock:
    at: int
    args: list[int]
    ops: list[RawOp]


@dataclass(slots=True)
class RawFunction:
    at: int
    name: str
    type: int
    flags: int
    attrs: int
    body: list[RawBlock] = field(default_factory=lambda: [])


@dataclass(slots=True)
class RawModule:
    attrs: int
    functions: list[RawFunction]
    extra: list[tuple[int, RawOp]]  # position among the module's operations, operation


@dataclass(slots=True)
class File:
    """The container and its tables. Type and attribute ids begin at 1; 0 stands for none."""

    source: Source
    data: bytes
    sections: dict[int, tuple[int, int]] = field(default_factory=lambda: {})
    strings: list[str] = field(default_factory=lambda: [])
    string_at: list[int] = field(default_factory=lambda: [])
    types: list[int] = field(default_factory=lambda: [])  # string ids
    attrs: list[int] = field(default_factory=lambda: [])
    consts: list[FileConstant] = field(default_factory=lambda: [])

    def reader(self, section: int) -> Reader:
        at, end = self.sections[section]
        return Reader(self.data, self.source, format.SECTION_NAMES[section], at, end)

    def type_text(self, id: int) -> str:
        return self.strings[self.types[id - 1]]

    def attr_text(self, id: int) -> str:
        return self.strings[self.attrs[id - 1]] if id else ""


def read_file(data: bytes, name: str) -> File:
    file = File(Source(name, ""), data)
    _container(file)
    _strings(file)
    file.types = _texts(file, format.TYPES, "type")
    file.attrs = _texts(file, format.ATTRS, "attribute")
    _constants(file)
    return file


def _container(file: File) -> None:
    r = Reader(file.data, file.source, "the file")
    if file.data[:6] != format.MAGIC:
        r.fail(
            "PTO-E1201",
            "missing the magic number of PTO bytecode",
            help="expected the bytes 'PTOBC' and 0 at the start of the file",
        )
    r.at = 6
    version, flags, length = r.u16(), r.u16(), r.u32()
    if version != format.VERSION or flags:
        r.fail(
            "PTO-E1202", "unsupported bytecode version", 6, expected="version 0, flags 0",
            got=f"version {version}, flags {flags}", help="read it with the version of pto that wrote it",
        )  # fmt: skip
    if length != r.end - r.at:
        got = f"the header declares {length} bytes, the file has {r.end - r.at}"
        r.fail(
            "PTO-E1203",
            "payload length does not match the file",
            10,
            got=got,
            help="get the file again: it was truncated or extended",
        )
    order = list(format.SECTION_NAMES)
    next_allowed = 0
    while r.at < r.end:
        at, id = r.at, r.u8()
        if id not in order[next_allowed:]:
            what = (
                f"section {_section(id)} is out of order"
                if id in order
                else f"unknown section {_section(id)}"
            )
            r.fail(
                "PTO-E1204",
                what,
                at,
                expected=f"one of {', '.join(map(_section, order[next_allowed:])) or 'none'}",
            )
        skipped = [s for s in order[next_allowed : order.index(id)] if s in format.REQUIRED]
        if skipped:
            r.fail("PTO-E1204", f"missing section {_section(skipped[0])}", at, got=_section(id))
        size = r.u32()
        if size > r.end - r.at:
            r.fail("PTO-E1204", f"section {_section(id)} is longer than the file", at, got=f"{size} bytes")
        file.sections[id] = (r.at, r.at + size)
        r.at += size
        next_allowed = order.index(id) + 1
    missing = [s for s in format.REQUIRED if s not in file.sections]
    if missing:
        r.fail("PTO-E1204", f"missing section {_section(missing[0])}")


def _section(id: int) -> str:
    return f"0x{id:02X} {format.SECTION_NAMES.get(id, '')}".rstrip()


def _strings(file: File) -> None:
    r = file.reader(format.STRINGS)
    for _ in range(r.count("strings")):
        size = r.count("bytes of a string")
        file.string_at.append(r.at)
        raw = r.take(size)
        try:
            file.strings.append(raw.decode("utf-8"))
        except UnicodeDecodeError as e:
            r.fail("PTO-E1207", f"string {len(file.strings)} is not UTF-8", r.at - size + e.start)
    r.finish()


def _texts(file: File, section: int, what: str) -> list[int]:
    r = file.reader(section)
    out: list[int] = []
    for _ in range(r.count(f"{what}s", 3)):
        at, tag, flags = r.at, r.u8(), r.u8()
        if (tag, flags) != (0, 1):
            r.fail("PTO-E1212", f"expected {what} {len(out) + 1} as text", at, expected="tag 0, flags 1",
                   got=f"tag {tag}, flags {flags}")  # fmt: skip
        out.append(r.index("string", len(file.strings)))
    r.finish()
    return out


def _constants(file: File) -> None:
    r = file.reader(format.CONSTS)
    for _ in range(r.count("constants", 2)):
        at, tag = r.at, r.u8()
        if tag == format.INDEX_VECTOR:
            file.consts.append(FileConstant(at, tag, 0, tuple(r.sleb() for _ in range(r.count("numbers")))))
            continue
        if tag not in (format.INT, format.FLOAT, format.WIDE_INT):
            r.fail("PTO-E1213", f"constant {len(file.consts)} has unknown tag {tag}", at)
        type = r.index("type", len(file.types), 1)
        value = r.sleb() if tag == format.INT else r.take(r.count("bytes of a number"))
        file.consts.append(FileConstant(at, tag, type, value))
    r.finish()


# ------------------------------------------------------------------------------------------------- stream


def read_module(file: File) -> RawModule:
    r = file.reader(format.MODULE)
    at, profile, width = r.at, r.u8(), r.u8()
    if profile or width != format.INDEX_WIDTH:
        r.fail("PTO-E1202", "unsupported module", at, expected="profile 0, index width 64",
               got=f"profile {profile}, index width {width}")  # fmt: skip
    stream = _Stream(file, r)
    attrs = stream.attr_id()
    if r.uleb():
        r.fail(
            "PTO-E1211", "module with globals", r.at - 1, help="remove the globals, which v0 does not define"
        )
    functions: list[RawFunction] = []
    for _ in range(r.count("functions", 4)):
        at = r.at
        name = file.strings[r.index("string", len(file.strings))]
        functions.append(RawFunction(at, name, stream.type_id(), r.u8(), stream.attr_id()))
    for f in functions:
        if not f.flags & 1:  # an import has no body in the stream
            f.body = stream.region(0)
    r.finish()
    return RawModule(attrs, functions, _extra(file))


def _extra(file: File) -> list[tuple[int, RawOp]]:
    if format.EXTRA not in file.sections:
        return []
    r = file.reader(format.EXTRA)
    if file.data[r.at : r.at + len(format.EXTRA_TAG)] != format.EXTRA_TAG:
        return []  # a section of another producer, which readers skip
    r.at += len(format.EXTRA_TAG)
    stream = _Stream(file, r)
    out = [(r.uleb(), stream.op(0)) for _ in range(r.count("operations", 4))]
    r.finish()
    return out


class _Stream:
    """Reader of regions, blocks and operations."""

    def __init__(self, file: File, r: Reader) -> None:
        self.file = file
        self.r = r

    def type_id(self) -> int:
        return self.r.index("type", len(self.file.types), 1)

    def attr_id(self) -> int:
        return self.r.index("attribute", len(self.file.attrs) + 1)

    def region(self, depth: int) -> list[RawBlock]:
        r = self.r
        if depth > _DEEPEST:
            r.fail("PTO-E0105", f"regions are nested deeper than {_DEEPEST} levels")
        return [self.block(depth) for _ in range(r.count("blocks", 2))]

    def block(self, depth: int) -> RawBlock:
        r = self.r
        at = r.at
        args = [self.type_id() for _ in range(r.count("block arguments"))]
        return RawBlock(at, args, [self.op(depth) for _ in range(r.count("operations", 3))])

    def op(self, depth: int) -> RawOp:
        r = self.r
        at, opcode = r.at, r.u16()
        attrs = self.attr_id()
        if opcode == format.GENERIC:
            return self._generic(at, attrs, depth)
        variant = r.u8() if opcode in format.variants() else None
        found = format.table().get((opcode, variant))
        if found is None:
            shown = f"0x{opcode:04X}" + ("" if variant is None else f" variant {variant}")
            r.fail(
                "PTO-E1211",
                f"unknown opcode {shown}",
                at,
                help="write the file again: v0 has no such operation, so the file may be damaged",
            )
        immediate = self._immediate(found)
        operands = [r.uleb() for _ in range(self._operand_count(found, immediate))]
        results = [self.type_id() for _ in range(found.results)]
        op = RawOp(at, r.at, opcode, found.row.full_name, found.row, attrs, immediate, operands, results, [])
        op.regions = [self.region(depth + 1) for _ in found.row.regions]
        return op

    def _immediate(self, found: format.BytecodeOp) -> tuple[int, ...]:
        r, kind, at = self.r, found.immediate, self.r.at
        if kind == format.NO_IMMEDIATE:
            return ()
        if kind == format.CONSTANT:
            return (r.index("constant", len(self.file.consts)),)
        if kind in (format.VIEW, format.PARTITION):
            if r.u8():
                r.fail("PTO-E1211", f"{found.row.name}: unknown operand list mode", at, expected="0")
            return r.count("operands"), r.count("operands")
        if kind == format.EVENT:
            return r.u8(), r.u8(), r.u8()
        limit = len(format.PREDICATES) if kind == format.PREDICATE else 4
        value = r.u8()
        if value >= limit:
            r.fail(
                "PTO-E1211",
                f"{found.row.name}: immediate {value} is out of range",
                at,
                expected=f"0 .. {limit - 1}",
            )
        return (value,)

    def _operand_count(self, found: format.BytecodeOp, immediate: tuple[int, ...]) -> int:
        if found.mode == format.COUNTED:
            return self.r.count("operands")
        if found.mode == format.SEGMENTED:
            return found.count + sum(immediate)
        if found.mode == format.MASK:
            return immediate[0].bit_count()
        return found.count

    def _generic(self, at: int, attrs: int, depth: int) -> RawOp:
        r = self.r
        name_at = r.at
        name = self.file.strings[r.index("string", len(self.file.strings))]
        if not may_name(name):
            r.fail("PTO-E1211", f"expected the name of an operation, got '{name[:40]}'", name_at)
        row = format.known(name)
        if row is None and name.startswith("pto."):
            r.fail(
                "PTO-E1211",
                f"unknown operation '{name[:80]}'",
                name_at,
                help="`pto isa` lists every operation",
            )
        results = [self.type_id() for _ in range(r.count("results"))]
        operands = [r.uleb() for _ in range(r.count("operands"))]
        op = RawOp(
            at, r.at, format.GENERIC, row.full_name if row else name, row, attrs, (), operands, results, []
        )
        op.regions = [self.region(depth + 1) for _ in range(r.count("regions"))]
        op.end = r.at
        return op
