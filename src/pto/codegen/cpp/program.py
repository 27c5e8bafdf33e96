"""A whole program as C++: its functions in order, names of variables, `#line` directives.

The assembler and `pto.emit_cpp` call `emit` after the passes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module

from ...diag import DiagnosticError, Span, has_errors, visible
from ...ir.core import Module
from ...isa.profiles import Profile
from . import control, fifo, guards, irregular, memrefs, scalars, tiles, views  # noqa: F401  (they register)
from .function import CppFunction, Parts
from .prologue import prologue
from .spelling import string, variable
from .unit import Unit

PARTS = Parts(guards.body, scalars.expression, memrefs.with_tiles, memrefs.memref_tensor)
#: Modules with emitters for instruction sets and families that few programs use.
_RARE = {"vector": "vectors", "predicate": "vectors", "micro": "vectors", "cube": "cube", "comm": "comm",
         "dma-copy": "dma"}  # fmt: skip
_TOKEN = re.compile("\x01(\\d+)")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def emit(
    module: Module,
    profile: Profile,
    *,
    planned: bool = False,
    line_directives: bool = False,
    addptr_trace: bool = False,
    index_type: str = "int32_t",
    checked: bool = False,
) -> str:
    """Return the C++ of a program in manual form; raise `DiagnosticError` with all operations without a
    spelling.

    `planned` means that the tool chose the addresses, so that tiles are declared in two steps; `index_type`
    is the C++ type of index values, `int32_t` or `int64_t`. With `checked` the text records locations of
    accesses to global memory, and our headers check scalar accesses.
    """
    load(module)
    unit = Unit(module, profile, planned, line_directives, addptr_trace, index_type, checked)
    return _emitted(unit)[0]


def emit_placed(module: Module, profile: Profile, *, planned: bool = False) -> tuple[str, list[Span | None]]:
    """Return the C++ of a program, and for each of its lines the source location in the program."""
    load(module)
    return _emitted(Unit(module, profile, planned))


def _emitted(unit: Unit) -> tuple[str, list[Span | None]]:
    found = _text(unit)
    if has_errors(unit.problems):
        raise DiagnosticError(unit.problems)
    return found


def load(module: Module) -> None:
    """Import the emitters for the operations of a program."""
    used = {word for op in module.walk() if op.row is not None for word in (op.row.set, op.row.family)}
    for word in sorted(used & _RARE.keys()):
        import_module(f"{__package__}.{_RARE[word]}")


def _text(unit: Unit) -> tuple[str, list[Span | None]]:
    parts: list[str] = []
    places: list[Span | None] = []
    for func in unit.ordered():
        function = CppFunction(unit, func, PARTS)
        if not func.regions[0].blocks:
            parts.append(_named(function.signature() + ";", {}) + "\n")
            places += [None, None]
            continue
        lines, marks = function.emit()
        for text, mark in zip(lines, marks, strict=True):
            places += [mark] * (text.count("\n") + 1)
        places.append(None)  # blank lines between functions
        if unit.line_directives:
            lines = _with_lines(lines, marks)
        parts.append(_named("\n".join(lines), function.names) + "\n")
    body = "\n".join(parts)
    head = prologue(body, unit.profile.name) + "\n"
    if not unit.checked and not unit.line_directives:
        body = _with_comments(body, places)
    return head + body, [None] * head.count("\n") + places


def _with_comments(body: str, places: list[Span | None]) -> str:
    """Add the location in the program to each line that follows a line of another location."""
    out = body.split("\n")
    before = None
    for n, (text, place) in enumerate(zip(out, places, strict=False)):
        here = place and (place.source.name, place.line)
        if place is not None and here != before and text and text.lstrip()[:1] != "#":
            out[n] = f"{text}  // {visible(os.path.basename(place.source.name))}:{place.line}"
        before = here or before
    return "\n".join(out)


def _with_lines(lines: list[str], marks: list[Span | None]) -> list[str]:
    """Insert `#line` before each line that the compiler would otherwise attribute to another source line."""
    out: list[str] = []
    file, expected = "", -1
    for text, mark in zip(lines, marks, strict=True):
        if mark is not None and text and not text.lstrip().startswith("#"):
            line = mark.line
            if line != expected or mark.source.name != file:
                out.append(f"#line {line} {string(mark.source.name)}")
            file, expected = mark.source.name, line
        out.append(text)
        expected += 1
    return out


def _named(text: str, wanted: Mapping[str, str]) -> str:
    """Return a text with names of variables: those that are `wanted` by number, if they are free."""
    parts = _TOKEN.split(text)  # every second part is a number
    words = set(_WORD.findall(" ".join(parts[::2])))
    names: dict[str, str] = {}
    for number in dict.fromkeys(parts[1::2]):
        names[number] = variable(wanted.get(number, ""), words)
        words.add(names[number])
    unnamed = (number for number, name in names.items() if not name)
    names.update((number, f"v{n}") for n, number in enumerate(list(unnamed), 1))
    parts[1::2] = [names[number] for number in parts[1::2]]
    return "".join(parts)
