"""Prove that an image is safe for the machine: for any content, the machine reads instructions only at
instructions, and values only where a value of that kind is.

- Words are instructions, one after another, the last one `end`; jumps lead to the first word of an
  instruction.
- An operand in the frame lies there completely, aligned. A slot of the frame has one kind of value for all
  instructions, and no two values overlap: other bytes never become a tile. Numbers and texts have initial
  values from the image, all other values start as zeros.
- Numbers are in the ranges of the machine (`operands.NUMBERS`); the root of a group is a member. A tile has
  at most the elements of a memory, a FIFO takes at most some megabytes.
- Only the next call uses a tile that was converted (`vm.rows`); then the tile is converted back (`vm.back`).
- Arguments have the kinds of the parameters, because a launch writes them into the frame.

The check does not prove that tiles lie at the right addresses: that is the program's responsibility, as in
text. Images of `lower` in the same process need no check; those of a file are always checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ..asm.type_text import MAX_LOCAL_ARRAY, TypeTextError, parse_type
from ..diag import Diagnostic, DiagnosticError, Span
from ..ir.facts import SPMD
from ..ir.types import MemRefType, PtrType, ScalarType, Type, ViewType
from ..isa.machine import MEMORIES, SUBBLOCKS
from ..isa.profiles import PROFILES
from .format import CALL, COPY, END, KINDS, MOST_FRAME, NAMES, Image, ImageCode, ImageFunction
from .operands import INSTRUCTIONS, NUMBERS, VALUES, ImageOperand, operands_of, size_of, sized, spread

#: Returns the source location of a code and a word in it; -1 stands for neither.
Place = Callable[[int, int], Span | None]
_HELP = "the image is damaged, or another tool made it: assemble the program again"
_ARGUMENTS = ("word", "view")  # by the number of the argument's kind
#: The most elements of a tile: elements of four bits that fill the largest memory.
_MOST_ELEMENTS = 2 * max(size for profile in PROFILES.values() for size in profile.capacity.values())
#: The most bytes of all slots of a FIFO, which the machine allocates four times.
_MOST_SLOTS = 1 << 24


def check(image: Image, place: Place = lambda code, word: None) -> None:
    """Raise `DiagnosticError` with PTO-E1224 if an image is not safe to run."""
    _Whole(image, place).check()
    for number in range(len(image.codes)):
        _Check(image, number, place).check()


class _Failing:
    def __init__(self, image: Image, number: int, place: Place) -> None:
        self.image = image
        self.number = number
        self.place = place

    def fail(self, message: str, word: int = -1, expected: str = "", got: object = "") -> NoReturn:
        code = f", code {self.image.codes[self.number].kind[:20]}" if self.number >= 0 else ""
        at = f", word {word}" if word >= 0 else ""
        what = f"image @{self.image.name[:80]}{code}{at}: {message}"
        raise DiagnosticError([
            Diagnostic("PTO-E1224", what, self.place(self.number, word), expected=expected, got=str(got),
                       help=_HELP)
        ])  # fmt: skip


class _Whole(_Failing):
    """The checks of the whole image."""

    def __init__(self, image: Image, place: Place) -> None:
        super().__init__(image, -1, place)

    def check(self) -> None:
        image = self.image
        if image.target not in PROFILES:
            self.fail("unknown target", expected=", ".join(PROFILES), got=image.target[:80])
        for name, size in image.capacity:
            if name not in MEMORIES or size > 1 << 32:
                self.fail(
                    "unknown memory, or a memory that is too large",
                    expected=", ".join(MEMORIES),
                    got=f"{name[:80]} {size}",
                )
        if not 1 <= image.subblocks <= SUBBLOCKS:
            self.fail(
                "invalid number of vector cores of a block", expected=f"1 .. {SUBBLOCKS}", got=image.subblocks
            )
        kinds = [code.kind for code in image.codes]
        if kinds != ["cube", "vector"] and (len(kinds) != 1 or kinds[0] not in KINDS):
            self.fail("invalid kinds of core", expected=f"one of {', '.join(KINDS)}, or cube and vector",
                      got=", ".join(k[:20] for k in kinds) or "none")  # fmt: skip
        if len(set(image.calls)) != len(image.calls):
            self.fail("call listed twice")
        for name in image.calls:
            if operands_of(name) is None:
                self.fail("unknown value in a call", got=name[:120])
        self._functions()

    def _functions(self) -> None:
        """Check the parameters on which a launch relies."""
        functions = self.image.functions
        if not 1 <= len(functions) <= len(self.image.codes) or len({f.name for f in functions}) < len(
            functions
        ):
            self.fail(
                "invalid number of functions", expected=f"1 .. {len(self.image.codes)}", got=len(functions)
            )
        types = [self._parameters(f) for f in functions]
        given = [
            [type for (name, _), type in zip(f.parameters, own, strict=True) if name not in SPMD]
            for f, own in zip(functions, types, strict=True)
        ]
        longest = max(range(len(types)), key=lambda n: len(types[n]))
        for n, mine in enumerate(
            given
        ):  # a launch binds the arguments of the first function, and passes those of the longest
            same = mine == given[0][: len(mine)] or not (n == longest or self.image.dealt)
            if len(mine) > len(given[0]) or not same:
                self.fail("parameters of the functions do not match")
        for at in self.image.dealt:
            if any(at >= len(own) or not isinstance(own[at], PtrType) for own in types):
                self.fail("expected a pointer for an argument that is dealt out", got=at)
        views = [isinstance(type, ViewType | MemRefType) for type in types[longest]]
        for code in self.image.codes:
            taken = [bool(view) for _, view in code.arguments]
            if taken != views[: len(taken)]:
                self.fail(f"arguments of code {code.kind} do not match its function")

    def _parameters(self, function: ImageFunction) -> list[Type]:
        names = [name for name, _ in function.parameters]
        if len(set(names)) < len(names):
            self.fail(f"duplicate name of an argument of @{function.name[:80]}")
        found: list[Type] = []
        for name, text in function.parameters:
            try:
                type = parse_type(text)
            except TypeTextError as e:
                self.fail(f"invalid type of an argument: {e}", got=text[:80])
            if name in SPMD and not isinstance(type, ScalarType):
                self.fail(f"expected a number for argument %{name}", got=text[:80])
            if isinstance(type, ViewType | MemRefType) and not 1 <= type.rank <= 5:
                self.fail(f"expected rank 1 .. 5 for view %{name[:80]}", got=type.rank)
            found.append(type)
        return found


class _Check(_Failing):
    """The checks of one code."""

    def __init__(self, image: Image, number: int, place: Place) -> None:
        super().__init__(image, number, place)
        self.code: ImageCode = image.codes[number]
        self.starts: set[int] = set()
        self.targets: list[tuple[int, int]] = []  # from, to
        self.kinds: dict[int, str] = {}  # kinds of values, by their offset in the frame
        self.copies: list[tuple[int, int, int, int]] = []  # word, to, from, bytes
        self.pointers: list[tuple[int, int]] = []  # words, or views, which begin with their pointer
        self.turned: dict[int, tuple[int, int]] = {}  # slots of converted tiles: original, bits
        self.used = False  # True after the call for which the tiles were converted
        self.straight: set[int] = set()  # instructions that are not jump targets

    def check(self) -> None:
        if len(self.code.frame) > MOST_FRAME:
            self.fail("frame too large", expected=f"at most {MOST_FRAME}", got=len(self.code.frame))
        for offset, view in self.code.arguments:
            if view >= len(_ARGUMENTS):
                self.fail("unknown kind of an argument", expected="0 or 1", got=view)
            self.claim(-1, offset, _ARGUMENTS[view])
        self._walk()
        for word, target in self.targets:
            if target not in self.starts or target in self.straight:
                self.fail("jump to a word that does not begin an instruction", word, got=target)
        for word, _ in self.code.places:
            if word not in self.starts:
                self.fail("source location of a word that does not begin an instruction", word)
        self._copies()
        for word, offset in self.pointers:
            if self.kinds.get(offset) != "view":
                self.claim(word, offset, "word")
        self._apart()

    # -- words --------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        words = self.code.words
        at, opcode = 0, -1
        while at < len(words):
            opcode, length = words[at] & 0xFFFFFF, words[at] >> 24
            if length == 0 or at + length > len(words):
                self.fail("invalid length of an instruction", at, got=f"{length} words")
            self.starts.add(at)
            if self.turned:
                self.straight.add(at)
            self._instruction(at, opcode, words[at + 1 : at + length])
            at += length
        if opcode != END:
            self.fail("missing 'end' as the last instruction", max(at - 1, 0))
        if self.turned:
            self.fail("missing vm.back: a converted tile is not converted back", at - 1)

    def _instruction(self, at: int, opcode: int, given: tuple[int, ...]) -> None:
        name = NAMES.get(opcode, "")
        operands = INSTRUCTIONS.get(opcode)
        if opcode >= CALL:
            if opcode - CALL >= len(self.image.calls):
                self.fail("unknown call", at, f"below {len(self.image.calls)}", opcode - CALL)
            name = self.image.calls[opcode - CALL]
            operands = operands_of(name)
        if operands is None:
            self.fail("unknown instruction", at, got=f"opcode {opcode}")
        found = spread(operands, given)
        if found is None:
            self.fail(f"{_short(name)}: wrong number of operands", at, got=len(given))
        if opcode == COPY:
            to, source, size = given
            self.copies.append((at, to, source, size))
        self._turning(at, name, given)
        if name == "vm.group":
            self._group(at, *given)
        extents = 1
        for operand, value in zip(found, given, strict=True):
            self._operand(at, name, operand, value, sized(operand.kind, found, given))
            extents = extents * max(value, 1) if operand.kind in ("extent", "length") else 1
            if extents > _MOST_ELEMENTS:
                self.fail(f"{name}: too many elements of a tile", at, f"at most {_MOST_ELEMENTS}", extents)
        if name == "vm.pipe":
            numbers = {operand.name: value for operand, value in zip(found, given, strict=True)}
            if numbers["slot_size"] * numbers["slots"] > _MOST_SLOTS or numbers["slots"] > 1 << 16:
                got = f"{numbers['slots']} of {numbers['slot_size']} bytes"
                self.fail("vm.pipe: slots too large", at, f"at most {_MOST_SLOTS} bytes", got)

    def _group(self, at: int, result: int, tensors: int, members: int, root: int) -> None:
        """Check the views of a group, which are adjacent; one of them belongs to its root."""
        size, _ = size_of("view")
        if members in NUMBERS["members"]:
            if root >= members:
                self.fail("vm.group: the root is not a member", at, f"below {members}", root)
            for n in range(members):
                self.claim(at, tensors + n * size, "view")

    def _operand(self, at: int, name: str, operand: ImageOperand, value: int, kind: str) -> None:
        if kind in NUMBERS:
            if value not in NUMBERS[kind]:
                self.fail(f"{_short(name)}: {operand.name} is out of range", at, _range(kind), value)
        elif kind == "target":
            self.targets.append((at, value))
        elif kind not in ("place", "views"):
            if kind == "tile" and value in self.turned and not name.startswith("vm."):
                kind = "turned"
            if operand.name == "memory":
                self.pointers.append((at, value))
            else:
                self.claim(at, value, kind)

    def _turning(self, at: int, name: str, given: tuple[int, ...]) -> None:
        """Check converted tiles: several conversions, one call, then each tile back."""
        if name == "vm.rows" and not self.used:
            place, tile, bits = given
            if place in self.turned:
                self.fail("tile converted twice", at)
            self.turned[place] = tile, bits
        elif name == "vm.back" and self.used and self.turned.get(given[1]) == (given[0], given[2]):
            del self.turned[given[1]]
            self.used = bool(self.turned)
        elif self.turned and not self.used and name not in NAMES.values() and not name.startswith("vm."):
            self.used = True
        elif self.turned or name == "vm.back":
            self.fail(f"{_short(name)}: not allowed between conversions of tiles", at)

    # -- the frame ----------------------------------------------------------------------------------------

    def claim(self, at: int, offset: int, kind: str) -> None:
        """Record the kind of a slot of the frame."""
        known = self.kinds.get(offset)
        if known == kind:
            return
        if known is not None:
            self.fail(f"offset {offset} of the frame has two kinds of values", at, known, kind)
        size, align = size_of(kind)
        if offset % align or offset + size > len(self.code.frame):
            self.fail(
                f"value outside of the frame: {kind}, {size} bytes at {offset}", at,
                f"multiple of {align}, at most {len(self.code.frame) - size}", offset,
            )  # fmt: skip
        self.kinds[offset] = kind

    def _copies(self) -> None:
        """Give the destination of a copy the kind of its source. A copy of 8 bytes of a view copies its
        pointer, so views come before words."""
        for copies in ([c for c in self.copies if c[3] != 8], [c for c in self.copies if c[3] == 8]):
            touching: dict[int, list[tuple[int, int, int, int]]] = {}
            for copy in copies:
                touching.setdefault(copy[1], []).append(copy)
                touching.setdefault(copy[2], []).append(copy)
            self._spread(touching, [offset for offset in touching if offset in self.kinds])
            for at, to, source, size in copies:
                if source not in self.kinds:  # no other instruction uses these values
                    self._claim_bytes(at, source, size)
                    self._claim_bytes(at, to, size)
                    self._spread(touching, [source, to])

    def _spread(self, touching: dict[int, list[tuple[int, int, int, int]]], todo: list[int]) -> None:
        """Propagate kinds from known slots through all copies from and to them."""
        while todo:
            for copy in touching.pop(todo.pop(), ()):
                self._copy(*copy)
                todo += copy[1:3]

    def _copy(self, at: int, to: int, source: int, size: int) -> None:
        kind = self.kinds.get(source) or self.kinds[to]
        if kind == "view" and size == 8:
            kind = "word"
        else:
            self.claim(at, source, kind)
        if size_of(kind)[0] != size or kind in ("turned", "text"):
            self.fail(f"cannot copy {size} bytes of a {kind}", at)
        self.claim(at, to, kind)

    def _claim_bytes(self, at: int, offset: int, size: int) -> None:
        kind = next((k for k, (n, _) in VALUES.items() if n == size and k != "turned"), "")
        if not kind and 8 < size <= MAX_LOCAL_ARRAY * 8:
            kind = f"array{size}"
        if not kind or kind == "text":
            self.fail(f"cannot copy {size} bytes: no value has this size", at)
        self.claim(at, offset, kind)

    def _apart(self) -> None:
        """Check that values do not overlap, and that all but numbers and texts start as zeros."""
        frame = self.code.frame
        end = 0
        for offset, kind in sorted(self.kinds.items()):
            size = size_of(kind)[0]
            if offset < end:
                self.fail(f"values in the frame overlap at {offset}", got=kind)
            if kind == "text":
                size = frame.find(b"\0", offset) + 1 - offset
                if size <= 0:
                    self.fail(f"missing end of the text at {offset}")
            elif kind != "word" and not kind.startswith("events") and any(frame[offset : offset + size]):
                self.fail(f"expected zeros as the initial value of the {kind} at {offset}")
            end = offset + size


def _short(name: str) -> str:
    """Shorten the name of a call for messages."""
    return name if len(name) < 60 else f"{name[:20]}..{name[-36:]}"


def _range(kind: str) -> str:
    allowed = NUMBERS[kind]
    if isinstance(allowed, range):
        return f"{allowed.start} .. {allowed.stop - 1}"
    return ", ".join(map(str, allowed))
