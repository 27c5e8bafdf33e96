"""Images as text: the output of `pto objdump`, which `ptoas` assembles to the same images again.

    pto.image 1
    kernel "vec_add" "a2a3"
    function "vec_add" 1
      parameter "x" "!pto.ptr<f32>"
    calls
      vm.view
      tadd "OpenTile<TileType::Vec, float, ..>& a0; ...; TADD(a0, a1, a2);"
    code vector
      frame 720
        @8 = 0x40
      argument @0
    L12:
      at 17                     ; k.pto:12:5: pto.tadd ins(..)
        tadd @136, @96, @56
        end
    file "k.pto"
      line 12 "pto.tadd ins(..)"
      place 17 12:5 40

A line is one statement, `;` begins a comment. Operands are offsets in the frame (`@136`), labels and numbers,
as in `operands`. `assembled` is strict: it raises `DiagnosticError` at the first invalid line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NoReturn

from ..diag import Diagnostic, DiagnosticError, Source, Span, did_you_mean
from . import lines as line_table
from .check import check
from .container import ImageFile
from .format import CALL, KINDS, MOST_FRAME, MOST_FRAMES, NAMES, VERSION, Image, ImageCode, ImageFunction
from .lines import Lines, Place
from .operands import INSTRUCTIONS, NUMBERS, OWN, operands_of, spread

HEAD = "pto.image"
_OPCODES = {name: opcode for opcode, name in NAMES.items()}
_CALLED = re.compile(r"([A-Za-z_]\w*)(?:<[^()]*>)?\(")
_BYTES = 8  # bytes in a line of the frame


# -- images to text -----------------------------------------------------------------------------------------


def text_of(file: ImageFile) -> str:
    """Return the listing of a file."""
    out = [f"{HEAD} {VERSION}"]
    for image in file.images:
        out += _kernel(image, file.lines)
    for number, (name, texts) in enumerate(file.lines.files):
        out.append(f"\nfile {_quoted(name)}")
        out += [f"  line {n} {_quoted(text)}" for n, text in sorted(texts.items())]
        out += [
            f"  place {n} {at.line}:{at.column} {at.length}"
            for n, at in sorted(file.lines.places.items())
            if at.file == number
        ]
    return "\n".join(out) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _kernel(image: Image, lines: Lines) -> Iterator[str]:
    yield f"\nkernel {_quoted(image.name)} {_quoted(image.target)}"
    yield from (f"capacity {name} {size}" for name, size in image.capacity)
    for function in image.functions:
        yield f"function {_quoted(function.name)} {function.place}"
        yield from (f"  parameter {_quoted(name)} {_quoted(type)}" for name, type in function.parameters)
    if image.dealt:
        yield "dealt " + ", ".join(map(str, image.dealt))
    yield f"subblocks {image.subblocks}"
    yield "calls"
    names = mnemonics(image)
    for name, call in zip(names, image.calls, strict=True):
        yield f"  {name}" if name == call else f"  {name} {_quoted(call)}"
    for code in image.codes:
        yield from _code(image, code, names, lines)


def mnemonics(image: Image) -> list[str]:
    """Return a short name for every call: the machine's own name or that of the intrinsic, numbered if
    several calls have it."""
    found: list[str] = []
    seen = {*_OPCODES, *_STATEMENTS}
    counts: dict[str, int] = {}  # the last number of a stem
    for call in image.calls:
        stem = call
        if call not in OWN:
            called = _CALLED.findall(call.rpartition("& a")[2])
            stem = called[0].lower() if called else "compute"
        name, n = stem, counts.get(stem, 1)
        while name in seen:
            n += 1
            name = f"{stem}.{n}"
        counts[stem] = n
        seen.add(name)
        found.append(name)
    return found


def _code(image: Image, code: ImageCode, names: list[str], lines: Lines) -> Iterator[str]:
    yield f"\ncode {code.kind}"
    yield f"  frame {len(code.frame)}"
    for at in range(0, len(code.frame), _BYTES):
        value = int.from_bytes(code.frame[at : at + _BYTES], "little")
        if value:
            yield f"    @{at} = 0x{value:x}"
    yield from (f"  argument @{at}{' view' if view else ''}" for at, view in code.arguments)
    decoded = list(_instructions(image, code, names))
    targets = {word for _, _, shown in decoded for word in shown if isinstance(word, int)}
    places: dict[int, list[int]] = {}
    for word, number in code.places:
        places.setdefault(word, []).append(number)
    for at, name, operands in decoded:
        if at in targets:
            yield f"L{at}:"
        for number in places.get(at, ()):
            where = lines.name(number)
            yield f"  at {number}" + (f"  ; {where}: {_shown(lines.text(number))}" if where else "")
        shown = ", ".join(f"L{o}" if isinstance(o, int) else o for o in operands)
        yield f"    {name} {shown}".rstrip()


def _shown(text: str) -> str:
    """Return a source line in the form of a comment."""
    return "".join(c if c.isprintable() else " " for c in text.strip())[:160]


def _instructions(
    image: Image, code: ImageCode, names: list[str]
) -> Iterator[tuple[int, str, list[str | int]]]:
    """Yield the first word of each instruction, its name, and its operands as text, with jumps as words."""
    at = 0
    while at < len(code.words):
        opcode, length = code.words[at] & 0xFFFFFF, code.words[at] >> 24
        given = code.words[at + 1 : at + length]
        name = NAMES.get(opcode) or names[opcode - CALL]
        operands = INSTRUCTIONS.get(opcode) or operands_of(image.calls[opcode - CALL]) if opcode else ()
        found = spread(operands or (), given) or []
        shown: list[str | int] = []
        for operand, value in zip(found, given, strict=True):
            in_frame = operand.kind not in NUMBERS
            shown.append(value if operand.kind == "target" else f"@{value}" if in_frame else str(value))
        yield at, name, shown
        at += length


# -- text to images -----------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<offset>@\d+)|(?P<number>-?(?:0x[0-9a-fA-F]+|\d+))(?![\w.])'
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<mark>[=,:])"
)
_MOST_DIGITS = 20


class _Token:
    __slots__ = ("kind", "span", "text")

    def __init__(self, kind: str, text: str, span: Span) -> None:
        self.kind, self.text, self.span = kind, text, span


class _Line:
    """The tokens of a line, taken one after another."""

    def __init__(self, source: Source, tokens: list[_Token], end: int) -> None:
        self.source = source
        self.tokens = tokens
        self.at = 0
        self.end = end

    @property
    def span(self) -> Span:
        return Span(self.source, self.tokens[0].span.start, self.end)

    def fail(self, message: str, expected: str = "", help: str = "", token: _Token | None = None) -> NoReturn:
        span = token.span if token else Span(self.source, self.end, self.end + 1)
        _fail(message, span, expected, token.text[:60] if token else "the end of the line", help)

    def peek(self, text: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].text == text

    def take(self, kind: str, what: str) -> _Token:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or token.kind != kind:
            self.fail(f"missing {what}", what, token=token)
        self.at += 1
        return token

    def mark(self, text: str) -> None:
        if not self.peek(text):
            self.fail(f"missing '{text}'", f"'{text}'",
                      token=self.tokens[self.at] if self.at < len(self.tokens) else None)  # fmt: skip
        self.at += 1

    def number(self, what: str, most: int = (1 << 32) - 1, least: int = 0) -> int:
        return self._number(self.take("number", what), what, most, least)

    def offset(self, what: str = "an offset in the frame, such as @8") -> int:
        return self._number(self.take("offset", what), what, (1 << 32) - 1, 0)

    def _number(self, token: _Token, what: str, most: int, least: int) -> int:
        digits = token.text.removeprefix("@")
        value = int(digits, 16 if "x" in digits else 10) if len(digits) <= _MOST_DIGITS else most + 1
        if not least <= value <= most:
            self.fail(f"{what} is out of range", f"{least} .. {most}", token=token)
        return value

    def text(self, what: str) -> str:
        token = self.take("text", what)
        try:
            found: str = json.loads(token.text)
            found.encode()  # rejects a half of a surrogate pair
            return found
        except ValueError:
            self.fail("expected a text quoted as in JSON", what, token=token)

    def finish(self) -> None:
        if self.at < len(self.tokens):
            self.fail(
                "unexpected text after the statement", "the end of the line", token=self.tokens[self.at]
            )


def _fail(message: str, span: Span, expected: str = "", got: str = "", help: str = "") -> NoReturn:
    raise DiagnosticError([
        Diagnostic("PTO-E1226", message, span, expected=expected, got=got,
                   help=help or "pto objdump FILE.elf prints images in this form")
    ])  # fmt: skip


def _lines(source: Source) -> Iterator[_Line]:
    text, at = source.text, 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        tokens: list[_Token] = []
        here = at
        while here < end:
            c = text[here]
            if c in " \t\r":
                here += 1
                continue
            if c == ";":
                break
            m = _TOKEN.match(text, here, end)
            if m is None:
                _fail("unexpected character", Span(source, here, here + 1), got=repr(c))
            tokens.append(_Token(str(m.lastgroup), m[0], Span(source, here, m.end())))
            here = m.end()
        if tokens:
            yield _Line(source, tokens, tokens[-1].span.end)
        at = end + 1


class _CodeText:
    """A code that is being assembled."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.words: list[int] = []
        self.frame = bytearray()
        self.arguments: list[tuple[int, int]] = []
        self.places: list[tuple[int, int]] = []
        self.labels: dict[str, int] = {}
        self.holes: list[tuple[int, str, Span]] = []
        self.spans: dict[int, Span] = {}

    def code(self) -> ImageCode:
        for at, label, span in self.holes:
            if label not in self.labels:
                _fail(f"unknown label '{label}'", span, help=did_you_mean(label, self.labels))
            self.words[at] = self.labels[label]
        return ImageCode(
            self.kind, tuple(self.words), bytes(self.frame), tuple(self.arguments), tuple(self.places)
        )


class _KernelText:
    """A kernel that is being assembled."""

    def __init__(self, name: str, target: str, span: Span) -> None:
        self.name, self.target, self.span = name, target, span
        self.capacity: list[tuple[str, int]] = []
        self.functions: list[tuple[str, int, list[tuple[str, str]]]] = []  # name, place, parameters
        self.dealt: tuple[int, ...] = ()
        self.subblocks = 1
        self.calls: dict[str, str] = {}  # by mnemonic
        self.numbers: dict[str, int] = {}
        self.codes: list[_CodeText] = []

    def image(self) -> Image:
        made = Image(
            self.name, self.target, tuple(self.calls.values()), tuple(c.code() for c in self.codes),
            tuple(ImageFunction(name, tuple(p), place) for name, place, p in self.functions), self.dealt,
            self.subblocks, tuple(self.capacity),
        )  # fmt: skip
        check(
            made, lambda code, word: self.codes[code].spans.get(word, self.span) if code >= 0 else self.span
        )
        return made


class _Assembler:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.kernels: list[_KernelText] = []
        self.files: list[tuple[str, dict[int, str]]] = []
        self.last: list[int] = []  # the last line of each file
        self.lines = 0  # lines of all files
        self.frames = 0  # total bytes of all frames
        self.names: set[str] = set()
        self.places: dict[int, Place] = {}
        self.part = "start"  # the part to which the current lines belong

    def file(self) -> ImageFile:
        every = _lines(self.source)
        first = next(every, None)
        if first is None:
            _fail("empty listing", Span(self.source, 0, 1), expected=f"{HEAD} {VERSION}")
        if first.take("name", HEAD).text != HEAD:
            first.fail("not a listing of images", HEAD, token=first.tokens[0])
        first.number("a version", VERSION, VERSION)
        first.finish()
        for line in every:
            self._line(line)
        images = tuple(kernel.image() for kernel in self.kernels)
        if not images:
            _fail("missing kernel in a listing", first.span, expected="kernel")
        return ImageFile(self.source.name, images, b"", Lines(tuple(self.files), self.places))

    def _line(self, line: _Line) -> None:
        head = line.tokens[0]
        if len(line.tokens) == 2 and line.tokens[1].text == ":" and self.part == "code":
            code = self.kernels[-1].codes[-1]
            if head.kind != "name" or head.text in code.labels:
                line.fail("expected a new name for a label", token=head)
            code.labels[head.text] = len(code.words)
            return
        if head.kind == "offset":
            self._constant(line)
        elif head.kind != "name":
            line.fail("expected a name at the beginning of a line", token=head)
        else:
            line.at = 1
            self._named(line, head)
        line.finish()

    def _named(self, line: _Line, head: _Token) -> None:
        statement = _STATEMENTS.get(head.text)
        if self.part == "calls" and statement is None:
            self._call(line, head)
        elif statement is not None and self.part in statement[0].split():
            statement[1](self, line)
        elif self.part == "code":
            self._instruction(line, head)
        else:
            known = [name for name, (parts, _) in _STATEMENTS.items() if self.part in parts.split()]
            line.fail(
                f"unexpected '{head.text[:60]}'", ", ".join(known), did_you_mean(head.text[:60], known), head
            )

    # -- statements -------------------------------------------------------------------------------------

    def kernel(self, line: _Line) -> None:
        name = line.text("the name of a kernel")
        if name in self.names:
            line.fail("duplicate name of a kernel", token=line.tokens[1])
        self.names.add(name)
        self.kernels.append(_KernelText(name, line.text("a target"), line.span))
        self.part = "kernel"

    def capacity(self, line: _Line) -> None:
        name = line.take("name", "a memory").text
        self.kernels[-1].capacity.append((name, line.number("bytes", (1 << 64) - 1)))

    def function(self, line: _Line) -> None:
        name = line.text("the name of a function")
        self.kernels[-1].functions.append((name, line.number("a place", (1 << 31) - 1, -1), []))

    def parameter(self, line: _Line) -> None:
        functions = self.kernels[-1].functions
        if not functions:
            line.fail("parameter before the first function", "function", token=line.tokens[0])
        functions[-1][2].append((line.text("a name"), line.text("a type")))

    def dealt(self, line: _Line) -> None:
        found = [line.number("the number of an argument")]
        while line.peek(","):
            line.mark(",")
            found.append(line.number("the number of an argument"))
        self.kernels[-1].dealt = tuple(found)

    def subblocks(self, line: _Line) -> None:
        self.kernels[-1].subblocks = line.number("vector cores")

    def calls(self, line: _Line) -> None:
        self.part = "calls"

    def _call(self, line: _Line, head: _Token) -> None:
        kernel = self.kernels[-1]
        if head.text in kernel.calls or head.text in _OPCODES:
            line.fail("duplicate name of a call", token=head)
        kernel.numbers[head.text] = len(kernel.calls)
        kernel.calls[head.text] = head.text if head.text in OWN else line.text("the C++ of a call")

    def code(self, line: _Line) -> None:
        kind = line.take("name", f"one of {', '.join(KINDS)}")
        if kind.text not in KINDS:
            line.fail("unknown kind of core", ", ".join(KINDS), token=kind)
        self.kernels[-1].codes.append(_CodeText(kind.text))
        self.part = "code"

    def frame(self, line: _Line) -> None:
        code = self.kernels[-1].codes[-1]
        if code.frame or code.words:
            line.fail("frame defined twice", token=line.tokens[0])
        size = line.number("bytes of the frame", MOST_FRAME)
        self.frames += size
        if self.frames > MOST_FRAMES:
            line.fail("frames too large in total", f"at most {MOST_FRAMES}", token=line.tokens[1])
        code.frame = bytearray(size)

    def _constant(self, line: _Line) -> None:
        if self.part != "code" or self.kernels[-1].codes[-1].words:
            line.fail("expected a constant in a frame", token=line.tokens[0])
        frame = self.kernels[-1].codes[-1].frame
        at = line.offset()
        line.mark("=")
        room = min(_BYTES, len(frame) - at)
        if room <= 0:
            line.fail("constant outside of the frame", f"below {len(frame)}", token=line.tokens[0])
        frame[at : at + room] = line.number("a number", (1 << 8 * room) - 1).to_bytes(room, "little")

    def argument(self, line: _Line) -> None:
        at, view = line.offset(), line.peek("view")
        line.at += view
        self.kernels[-1].codes[-1].arguments.append((at, int(view)))

    def at(self, line: _Line) -> None:
        code = self.kernels[-1].codes[-1]
        code.places.append((len(code.words), line.number("the number of an operation")))

    def _instruction(self, line: _Line, head: _Token) -> None:
        kernel = self.kernels[-1]
        code = kernel.codes[-1]
        opcode = _OPCODES.get(head.text)
        if opcode is None:
            number = kernel.numbers.get(head.text)
            if number is None:
                known = [*_OPCODES, *kernel.calls]
                line.fail(
                    f"unknown instruction '{head.text[:60]}'",
                    help=did_you_mean(head.text[:60], known),
                    token=head,
                )
            opcode = CALL + number
        at = len(code.words)
        code.spans[at] = line.span
        code.words.append(opcode)
        while line.at < len(line.tokens):
            if line.at > 1:
                line.mark(",")
            code.words.append(self._operand(line, code))
        length = len(code.words) - at
        if length > 255:
            line.fail("too many operands of an instruction", "at most 254", token=head)
        code.words[at] |= length << 24

    def _operand(self, line: _Line, code: _CodeText) -> int:
        token = line.tokens[line.at] if line.at < len(line.tokens) else None
        if token is not None and token.kind == "name":
            line.at += 1
            code.holes.append((len(code.words), token.text, token.span))
            return 0
        if token is not None and token.kind == "offset":
            return line.offset()
        return line.number("an offset, a label or a number")

    def source_file(self, line: _Line) -> None:
        self.files.append((line.text("the name of a file"), {}))
        self.last.append(0)
        self.part = "file"

    def source_line(self, line: _Line) -> None:
        number = line.number("a line", line_table.MOST_LINES, 1)
        self.files[-1][1][number] = line.text("the text of a line").replace("\n", " ")
        self.lines += max(0, number - self.last[-1])
        self.last[-1] = max(self.last[-1], number)
        if self.lines > line_table.MOST_LINES:
            line.fail("too many lines", f"at most {line_table.MOST_LINES} lines", token=line.tokens[1])

    def place(self, line: _Line) -> None:
        op, number = (
            line.number("the number of an operation"),
            line.number("a line", line_table.MOST_LINES, 1),
        )
        line.mark(":")
        column, length = line.number("a column", least=1), line.number("a length", least=1)
        if self.last[-1] and number > self.last[-1]:
            line.fail("source location after the last line", f"at most {self.last[-1]}", token=line.tokens[2])
        self.places[op] = Place(len(self.files) - 1, number, column, length)


#: Statements, each with the parts that may have it, and with its reader.
_STATEMENTS = {
    "kernel": ("start kernel calls code", _Assembler.kernel),
    "capacity": ("kernel", _Assembler.capacity),
    "function": ("kernel", _Assembler.function),
    "parameter": ("kernel", _Assembler.parameter),
    "dealt": ("kernel", _Assembler.dealt),
    "subblocks": ("kernel", _Assembler.subblocks),
    "calls": ("kernel", _Assembler.calls),
    "code": ("calls code", _Assembler.code),
    "frame": ("code", _Assembler.frame),
    "argument": ("code", _Assembler.argument),
    "at": ("code", _Assembler.at),
    "file": ("code file", _Assembler.source_file),
    "line": ("file", _Assembler.source_line),
    "place": ("file", _Assembler.place),
}


def assembled(source: Source) -> ImageFile:
    """Return the checked images of a listing; raise `DiagnosticError` at the first invalid line."""
    return _Assembler(source).file()
