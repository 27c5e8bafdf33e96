"""Read a program from a path or a text; every failure is a diagnostic."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from .diag import Diagnostic, DiagnosticError, Source, Span

if TYPE_CHECKING:
    from .ir.core import Module


#: Suffixes of C++ kernels, and of other C++ files (headers), which are refused as programs, too.
SUFFIXES = (".cpp", ".cc", ".cxx", ".cce")
_CPP_SUFFIXES = (*SUFFIXES, ".hpp", ".h")
_ELF = b"\x7fELF"
_IMAGE = b"\1\0\0\0"  # type and machine of image files: relocatable, no machine
#: Start of a Python text, after comments. No PTO program starts like this.
_PYTHON_TEXT = r"\s*(?:#.*\n\s*)*(?:\"\"\"|import \w|from \w[\w.]* import\b)"
_CPP_TEXT = r"^[ \t]*#[ \t]*include[ \t]*[<\"]|^[^\n/]*\b__global__\b"


def is_library(path: str) -> bool:
    """Return True if a file is a library, by its name or its first bytes."""
    if path.endswith(".so"):
        return True
    try:
        with open(path, "rb") as f:
            return f.read(4) == _ELF
    except (OSError, ValueError):
        return False


def is_image(path: str) -> bool:
    """Return True if a file contains images, by its name or its first bytes: relocatable ELF without a
    machine."""
    if path.endswith(".elf"):
        return True
    try:
        with open(path, "rb") as f:
            head = f.read(20)
    except (OSError, ValueError):
        return False
    return head[:4] == _ELF and head[16:] == _IMAGE


def foreign(source: Source) -> Diagnostic | None:
    """Return an error if a source is C++ or Python instead of a program; its help names the right command."""
    if source.name.endswith(".py") or re.match(_PYTHON_TEXT, source.text):
        return _python(source.name)
    if not source.name.endswith(_CPP_SUFFIXES):
        # test first, because the search is slow
        likely = "__global__" in source.text or "include" in source.text
        if not likely or not re.search(_CPP_TEXT, source.text, re.MULTILINE):
            return None
    name = source.name
    help = f"run it with 'pto run {name} -- ARG...', or make a library: 'pto build {name} -o k.so'"
    if not name.endswith(SUFFIXES):
        help = "save a kernel as FILE.cpp; 'pto run FILE.cpp' runs it, 'pto build FILE.cpp' makes a library"
    return Diagnostic("PTO-E0004", f"cannot read '{name}' as a PTO program: it is C++", help=help)


def _python(name: str) -> Diagnostic:
    file = name if name.endswith(".py") else "FILE.py"
    help = f"run it with 'python {file}'; FUNCTION.lower(ARGUMENTS).as_pto() is the text of its kernels"
    help += f". 'pto python {file}' is for programs that import pypto"
    return Diagnostic("PTO-E0004", f"cannot read '{name}' as a PTO program: it is Python", help=help)


def decode(name: str, data: bytes) -> tuple[Source | None, list[Diagnostic]]:
    """Return the bytes of a file as a source: text unchanged, bytecode (by its magic number) as its decoded
    text."""
    if data[:6] == b"PTOBC\0":
        from .bytecode import to_source

        return to_source(name, data)
    if data[:4] == _ELF:
        kind = {1: "an object file", 2: "an executable", 3: "a shared library"}.get(
            data[16] if len(data) > 16 else 0, "a binary"
        )
        help = (
            f"'pto run {name} -- ARG...' runs output of 'pto build' or 'ptoas -o k.so'; otherwise, give "
            "the source"
        )
        if data[16:20] == _IMAGE:
            kind, help = "an image", f"'pto run {name} -- ARG...' runs it, 'pto objdump {name}' prints it"
        return None, [
            Diagnostic("PTO-E0004", f"cannot read '{name}' as a PTO program: it is {kind} (ELF)", help=help)
        ]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        message, help = f"invalid UTF-8 byte 0x{data[e.start]:02X}", "save the file as UTF-8"
        shown = Source(name, data.decode("utf-8", "replace"))
        at = len(data[: e.start].decode("utf-8", "replace"))
        return None, [Diagnostic("PTO-E0103", message, Span(shown, at, at + 1), help=help)]
    return Source(name, text.removeprefix("\ufeff")), []


def read(path: str) -> tuple[Source | None, list[Diagnostic]]:
    """Read a file as a source."""
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError as e:
        why = e.strerror or str(e)
        return None, [Diagnostic("PTO-E0001", f"cannot read '{path}': {why.lower()}", help="check the path")]
    return decode(path, data)


def is_text(program: str | os.PathLike[str]) -> bool:
    """Return True if a program is given as text: a string with a line break or a brace, or one that starts
    like a statement. Any other string is a path."""
    return isinstance(program, str) and bool(
        set("\n{") & set(program) or program.lstrip()[:1] in tuple('"!#%')
    )


def parse(program: str | os.PathLike[str]) -> Module:
    """Parse a program given as a path or as text (`is_text`); raise `DiagnosticError` with all
    diagnostics."""
    if is_text(program):
        assert isinstance(program, str)
        source, problems = Source("<text>", program), list[Diagnostic]()
    else:
        source, problems = read(os.fspath(program))
    if source is None:
        raise DiagnosticError(problems)
    if other := foreign(source):
        raise DiagnosticError([other])
    from .asm import parse_source

    module, problems = parse_source(source)
    if module is None:
        raise DiagnosticError(problems)
    return module
