"""Generate LLVM IR for images: per image one function per kind of core, and an entry that programs call.

The function of a kind of core does the same as the virtual machine with the words of that kind (`execute` of
native/vm/vm.cpp). Its frame is a pointer, and jumps are branches. A call goes through the table of functions,
with the operand words from the machine, after its position has been stored for diagnostics. Every backward
jump decrements a counter; when the counter is zero, the code asks the machine whether the launch must end.
The object has no external references: it gets all functions and data of the machine as arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from ..image.calls import key
from ..image.format import (
    CALL,
    COPY,
    END,
    ENTER,
    EQUAL,
    JUMP,
    KINDS,
    NEXT,
    UNLESS,
    Image,
    ImageCode,
    to_bytes,
)
from ..isa.machine import MEMORIES
from ..isa.profiles import ISAS, Profile
from . import scalars
from .debug import Debug, Lines

#: Version of the structure that an entry passes to a machine: `pto_object` of pto/object.h.
VERSION = 2

#: Opcode -> index of the jump target among the words of the instruction.
_TARGETS = {JUMP: 1, UNLESS: 2, ENTER: 4, NEXT: 5, EQUAL: 4}
_ENDS = frozenset((END, *_TARGETS))


def text(
    images: Sequence[Image],
    profile: Profile,
    sections: Mapping[str, bytes],
    source: str = "",
    triple: str = "",
    layout: str = "",
    lines: Lines = lambda _: None,
) -> str:
    """Return the IR of an object: the code of images, and further `sections`. `source` is the name of the
    program, and `lines` returns the source line of a position."""
    out = [f"source_filename = {_quoted(source)}\n"]
    out += [f'target triple = "{triple}"\n'] if triple else []
    out += [f'target datalayout = "{layout}"\n'] if layout else []
    tables = _Tables()
    debug = Debug(_quoted, source, 2)
    bodies: list[str] = []
    for image in images:
        for n, code in enumerate(image.codes):
            bodies += ["\n", *_CoreFunction(image, n, code, debug, lines).lines()]
        bodies += ["\n", *_entry(image, profile, tables)]
    kept = [f"pto{section}" for section in sections]
    for name, (section, data) in zip(kept, sections.items(), strict=True):
        out.append(_constant(name, data, f'section "{section}", align 8'))
    out.append(_constant(_TABLES, bytes(tables.data), "align 64"))
    if kept:  # the sections are not referenced by code
        names = ", ".join(f"ptr @{name}" for name in kept)
        out.append(f"@llvm.compiler.used = appending global [{len(kept)} x ptr] [{names}]")
        out.append(', section "llvm.metadata"\n')
    out += bodies
    out.append('\nattributes #0 = { nounwind "no-builtins" "frame-pointer"="non-leaf" }\n!0 = !{}\n')
    out.append('!1 = !{!"branch_weights", i32 1, i32 1048576}\n')
    out.append(debug.text())
    return "".join(out)


#: The constant with the data of all kernels that machines read.
_TABLES = "pto.tables"


def _constant(name: str, data: bytes, where: str) -> str:
    return f'@{name} = internal constant [{len(data)} x i8] c"{_escaped(data)}", {where}\n'


_ESCAPED = [chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in range(256)]


def _escaped(data: bytes) -> str:
    return "".join(map(_ESCAPED.__getitem__, data))


def _quoted(text: str) -> str:
    return f'"{_escaped(text.encode("utf-8", "surrogateescape"))}"'


def symbol(name: str) -> str:
    """Return a name as an IR symbol."""
    return f"@{_quoted(name)}"


def code_symbol(image: Image, code: ImageCode) -> str:
    return f"{image.name}.{code.kind}"


class _Tables:
    """Data that machines read, as one constant per object."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, data: bytes) -> str:
        """Add data, and return its address as IR."""
        self.data += bytes(-len(self.data) % 8)
        at = len(self.data)
        self.data += data or bytes(8)
        return f"getelementptr (i8, ptr @{_TABLES}, i64 {at})"


def _target(profile: Profile) -> bytes:
    """Return a `pto_target` of native/vm/vm.hpp."""
    capacity = [profile.capacity[loc] for loc in MEMORIES]
    return struct.pack(
        f"<BB6x{len(capacity)}Q", ISAS.index(profile.isa), profile.left_blayout == "col_major", *capacity
    )


def _entry(image: Image, profile: Profile, tables: _Tables) -> Iterator[str]:
    """Yield the entry that programs call: it passes the kernel, `pto_object` of pto/object.h, to a
    machine."""
    of_image = int.from_bytes(blake2b(to_bytes(image), digest_size=8).digest(), "little")
    keys = struct.pack(f"<{len(image.calls)}Q", *map(key, image.calls))
    names = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in image.calls)
    fields = [
        ("i32", str(VERSION)), ("i32", str(len(image.codes))), ("i32", str(len(image.calls))), ("i32", "0"),
        ("i64", str(of_image)), ("ptr", tables.add(_target(profile))),
        ("ptr", tables.add(keys)), ("ptr", tables.add(names)),
    ]  # fmt: skip
    for code in image.codes:  # each is a `pto_code` of native/vm/vm.hpp
        arguments = [n for pair in code.arguments for n in pair]
        fields += [
            ("ptr", tables.add(struct.pack(f"<{len(code.words)}I", *code.words))),
            ("ptr", tables.add(code.frame)),
            ("ptr", tables.add(struct.pack(f"<{len(arguments)}I", *arguments))),
            ("i32", str(len(code.frame))), ("i32", str(len(code.arguments))),
            ("i32", str(KINDS.index(code.kind))), ("i32", "0"),
            ("ptr", symbol(code_symbol(image, code))),
        ]  # fmt: skip
    size = sum(4 if type == "i32" else 8 for type, _ in fields)
    yield f"define i32 {symbol(image.name)}(ptr %launch, ptr %machine) #0 {{\n"
    yield f"  %object = alloca [{size} x i8], align 8\n"
    at = 0
    for n, (type, value) in enumerate(fields):
        yield f"  %p{n} = getelementptr i8, ptr %object, i64 {at}\n"
        yield f"  store {type} {value}, ptr %p{n}, align {4 if type == 'i32' else 8}\n"
        at += 4 if type == "i32" else 8
    yield "  %run = load ptr, ptr %machine, align 8\n"
    yield "  %status = call i32 %run(ptr %launch, ptr %object, ptr %machine)\n"
    yield "  ret i32 %status\n}\n"


class _CoreFunction:
    """Generator of the function of one kind of core."""

    def __init__(self, image: Image, number: int, code: ImageCode, debug: Debug, lines: Lines) -> None:
        self.image = image
        self.code = code
        self.debug = debug
        self.known = {word: at for word, place in code.places if (at := lines(place)) is not None}
        self.function = ""
        self.here = ""
        self.base = number << 28
        self.back: tuple[int, int] | None = None  # a backward jump whose block is not written yet
        self.out: list[str] = []
        self.count = 0

    def lines(self) -> list[str]:
        own = code_symbol(self.image, self.code)
        self.out = [
            f"define internal void {symbol(own)}"
            "(ptr %frame, ptr %words, ptr %functions, ptr %mark, ptr %patience) #0"
        ]
        if self.known:
            file, line, _ = min(self.known.values(), key=lambda at: at[1])
            self.function = self.debug.function(own, file, line)
            self.out.append(f" !dbg {self.function}")
        self.out.append(" {\n")
        leaders = {0, *_leaders(self.code)}
        self.out.append("  %left = alloca i32, align 4\n  store i32 1, ptr %left, align 4\n")
        self.out.append("  br label %w0\n")
        open = False  # True if execution falls through to the next instruction
        for at, opcode, operands in instructions(self.code):
            if at in leaders:
                if open:
                    self.out.append(f"  br label %w{at}\n")
                self.out.append(f"w{at}:\n")
            if at in leaders:
                self.here = ""
            if at in self.known:
                self.here = f", !dbg {self.debug.place(self.function, *self.known[at])}"
            self.instruction(at, opcode, operands)
            open = opcode not in _ENDS
        self.out.append("}\n")
        return self.out

    def line(self, text: str) -> str:
        """Append an LLVM instruction, and return the name of its value."""
        self.count += 1
        self.out.append(f"  %v{self.count} = {text}\n")
        return f"%v{self.count}"

    def instruction(self, at: int, opcode: int, operands: tuple[int, ...]) -> None:
        behind = at + 1 + len(operands)
        if opcode >= CALL:
            self.call(at, opcode - CALL, operands)
        elif opcode == END:
            self.out.append("  ret void\n")
        elif opcode == JUMP:
            self.out.append(f"  br label %{self.target(at, operands[0])}\n")
            self.asking()
        elif opcode == UNLESS:
            condition = self.line(f"icmp ne i8 {self.load(operands[0], 'i8')}, 0")
            self.branch(at, condition, behind, operands[1])
        elif opcode == ENTER:
            width, counter, bound, target = operands
            self.branch(at, self.compare("slt", width, counter, bound), behind, target)
        elif opcode == NEXT:
            width, counter, bound, step, target = operands
            type = f"i{8 * width}"
            sum = self.line(f"add {type} {self.load(counter, type)}, {self.load(step, type)}")
            self.store(counter, type, sum)
            self.branch(at, self.compare("slt", width, counter, bound), target, behind)
        elif opcode == EQUAL:
            width, left, right, target = operands
            self.branch(at, self.compare("eq", width, left, right), target, behind)
        elif opcode == COPY:
            self.copy(*operands)

    def branch(self, at: int, condition: str, yes: int, no: int) -> None:
        labels = (f"label %{self.target(at, to)}" for to in (yes, no))
        self.out.append(f"  br i1 {condition}, {', '.join(labels)}\n")
        self.asking()

    def target(self, at: int, to: int) -> str:
        """Return the label of a jump target. A backward jump goes to a block that counts first."""
        if to > at:
            return f"w{to}"
        self.back = at, to
        return f"b{at}"

    def asking(self) -> None:
        """Write the block of a backward jump. It asks the machine when the count is zero."""
        if self.back is None:
            return
        (at, to), self.back = self.back, None
        self.out.append(f"b{at}:\n")
        left = self.line(f"add i32 {self.line('load i32, ptr %left, align 4')}, -1")
        self.out.append(f"  store i32 {left}, ptr %left, align 4\n")
        over = self.line(f"icmp eq i32 {left}, 0")
        self.out.append(f"  br i1 {over}, label %a{at}, label %w{to}, !prof !1\na{at}:\n")
        self.out.append(f"  store i32 {self.base + at}, ptr %mark, align 4{self.here}\n")
        ask = self.line("load ptr, ptr %patience, align 8")
        more = self.line(f"call i32 {ask}(ptr %patience){self.here}")
        self.out.append(f"  store i32 {more}, ptr %left, align 4\n  br label %w{to}\n")

    def compare(self, how: str, width: int, left: int, right: int) -> str:
        type = f"i{8 * width}"
        return self.line(f"icmp {how} {type} {self.load(left, type)}, {self.load(right, type)}")

    def copy(self, to: int, source: int, size: int) -> None:
        """Copy bytes in the largest possible pieces, without a library function."""
        for piece, type in ((16, "<2 x i64>"), (8, "i64"), (4, "i32"), (2, "i16"), (1, "i8")):
            while size >= piece:
                self.store(to, type, self.load(source, type))
                to, source, size = to + piece, source + piece, size - piece

    def call(self, at: int, number: int, operands: tuple[int, ...]) -> None:
        name = self.image.calls[number]
        made = scalars.scalar(name)
        if made is not None and len(made.types) == len(operands):
            scalars.emit(
                made, lambda place, type: self.load(operands[place], type),
                lambda place, type, value: self.store(operands[place], type, value), self.line,
            )  # fmt: skip
            return
        self.out.append(f"  ; {_escaped(name.encode('utf-8', 'surrogateescape'))}\n")
        self.out.append(f"  store i32 {self.base + at}, ptr %mark, align 4{self.here}\n")
        entry = self.line(f"getelementptr i8, ptr %functions, i64 {8 * number}")
        function = self.line(f"load ptr, ptr {entry}, align 8, !invariant.load !0")
        words = self.line(f"getelementptr i8, ptr %words, i64 {4 * (at + 1)}")
        self.out.append(f"  call void {function}(ptr %frame, ptr {words}){self.here}\n")

    def place(self, offset: int) -> str:
        return self.line(f"getelementptr i8, ptr %frame, i64 {offset}")

    def load(self, offset: int, type: str) -> str:
        place = self.place(offset)
        return self.line(f"load {type}, ptr {place}, align {_alignment(offset, type)}")

    def store(self, offset: int, type: str, value: str) -> None:
        place = self.place(offset)
        self.out.append(f"  store {type} {value}, ptr {place}, align {_alignment(offset, type)}\n")


_SIZES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8, "<2 x i64>": 16}


def _alignment(offset: int, type: str) -> int:
    """Return the known alignment of a value. A frame begins at a multiple of 64."""
    return min(_SIZES[type], offset & -offset or 64)


def instructions(code: ImageCode) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield index, opcode and operands of every instruction."""
    at = 0
    while at < len(code.words):
        length = code.words[at] >> 24
        yield at, code.words[at] & 0xFFFFFF, code.words[at + 1 : at + length]
        at += length


def _leaders(code: ImageCode) -> Iterator[int]:
    """Yield the indices that begin a block: targets of jumps, and instructions after an instruction that may
    jump."""
    for at, opcode, operands in instructions(code):
        if opcode in _TARGETS:
            yield operands[_TARGETS[opcode] - 1]
        if opcode in _ENDS:
            yield at + 1 + len(operands)
