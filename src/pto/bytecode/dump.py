"""Readable listing of a bytecode file: sections, tables, functions and operations with their offsets.

Lines are generated one by one, so that the listing of a damaged file shows everything before the damage.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import format
from .debuginfo import DebugInfo, read_debuginfo
from .file import File, FileConstant, RawBlock, RawModule, RawOp, read_file, read_module

_WIDEST = 160  # longer texts are cut
_TAGS = {
    format.INT: "int",
    format.FLOAT: "float",
    format.INDEX_VECTOR: "index vector",
    format.WIDE_INT: "wide int",
}


def dump(data: bytes, name: str) -> Iterator[str]:
    """Yield the lines of the listing; raise `DiagnosticError` at the damage in a file."""
    yield f"{name}: {len(data)} bytes"
    file = read_file(data, name)
    for id, (at, end) in file.sections.items():
        yield f"section 0x{id:02X} {format.SECTION_NAMES[id]:<9} at 0x{at:04x}, {end - at} bytes"
    yield f"strings ({len(file.strings)})"
    for k, text in enumerate(file.strings):
        yield f"  s{k} {_quoted(text)}"
    yield f"types ({len(file.types)})"
    for k in range(len(file.types)):
        yield f"  t{k + 1} {_cut(file.type_text(k + 1))}"
    yield f"attributes ({len(file.attrs)})"
    for k in range(len(file.attrs)):
        yield f"  a{k + 1} {_cut(file.attr_text(k + 1))}"
    yield f"constants ({len(file.consts)})"
    for k, entry in enumerate(file.consts):
        yield f"  c{k} {_constant(file, entry)}"
    module = read_module(file)
    debug = read_debuginfo(file)
    yield from _Listing(file, debug or DebugInfo()).module(module)


class _Listing:
    def __init__(self, file: File, debug: DebugInfo) -> None:
        self.file = file
        self.debug = debug
        self._function = 0
        self._value = 0
        self._op = 0

    def module(self, raw: RawModule) -> Iterator[str]:
        yield f"module{self._attrs(raw.attrs)}"
        for id, f in enumerate(raw.functions):
            self._function, self._value, self._op = id, 0, 0
            kind = "declaration" if not f.body else f"{len(f.body)} block{'s' * (len(f.body) != 1)}"
            yield f"function {id} {_quoted(f.name)} t{f.type} flags {f.flags}{self._attrs(f.attrs)}, {kind}"
            yield from self._blocks(f.body, 1)
        self._function, self._value, self._op = len(raw.functions), 0, 0
        for position, op in raw.extra:
            yield f"module-level operation at position {position}"
            yield from self._operation(op, 1)

    def _blocks(self, blocks: list[RawBlock], depth: int) -> Iterator[str]:
        for k, block in enumerate(blocks):
            args = ", ".join(f"{self._define()}: t{id}" for id in block.args)
            yield f"  0x{block.at:04x} {'  ' * depth}block {k}({args})"
            for op in block.ops:
                yield from self._operation(op, depth + 1)

    def _operation(self, op: RawOp, depth: int) -> Iterator[str]:
        results = ", ".join(f"{self._define()}: t{id}" for id in op.results)
        operands = ", ".join(f"%{id}" for id in op.operands)
        code = "generic" if op.opcode == format.GENERIC else f"{op.opcode:04X}"
        head = f"{code} {results}{' = ' * bool(results)}{_cut(op.name)}({operands})"
        tail = f"{self._immediate(op)}{self._attrs(op.attrs)}{self._place()}"
        yield f"  0x{op.at:04x} {'  ' * depth}{head}{tail}"
        self._op += 1
        for k, region in enumerate(op.regions):
            if not region:
                yield f"         {'  ' * (depth + 1)}region {k} is empty"
            yield from self._blocks(region, depth + 1)

    def _define(self) -> str:
        name = self.debug.names.get(self._function, {}).get(self._value)
        self._value += 1
        return f"%{self._value - 1}" + (f" {_quoted(name)}" if name is not None else "")

    def _immediate(self, op: RawOp) -> str:
        if not op.immediate:
            return ""
        kind = format.by_name()[op.name].immediate
        if kind == format.CONSTANT:
            return f" c{op.immediate[0]}"
        if kind == format.PREDICATE:
            return f" {format.PREDICATES[op.immediate[0]]}"
        return f" immediate {', '.join(map(str, op.immediate))}"

    def _attrs(self, id: int) -> str:
        return f" a{id}" if id else ""

    def _place(self) -> str:
        found = self.debug.locations.get((self._function, self._op))
        return f"  @ {_cut(self.debug.files[found[0]])}:{found[1]}:{found[2]}" if found else ""


def _constant(file: File, entry: FileConstant) -> str:
    if isinstance(entry.value, bytes):
        value = "0x" + entry.value[::-1].hex()
    elif isinstance(entry.value, tuple):
        value = ", ".join(map(str, entry.value))
    else:
        value = str(entry.value)
    of = f" : {_cut(file.type_text(entry.type))}" if entry.type else ""
    return f"{_TAGS[entry.tag]} {_cut(value)}{of}"


def _cut(text: str) -> str:
    text = text if len(text) <= _WIDEST else f"{text[:_WIDEST]}... ({len(text)} characters)"
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def _quoted(text: str) -> str:
    return f'"{_cut(text)}"'
