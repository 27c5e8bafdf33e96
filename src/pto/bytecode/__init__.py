"""PTO-BC v0: programs as compact binary files, and back.

    data = pto.to_bytecode(module)          # bytes; keeps everything but names, comments and source positions
    module = pto.from_bytecode(data)        # raises pto.DiagnosticError with a code and a byte offset

`ptobc` does the same with files.
"""

from __future__ import annotations

from ..diag import Diagnostic, DiagnosticError, Source
from ..ir.core import Module
from .format import MAGIC
from .writer import to_bytecode


def from_bytecode(data: bytes, name: str = "<bytecode>") -> Module:
    """Read the module of a bytecode file. Operations have the source locations of its debug information, or
    the offsets of their bytes."""
    from .build import FileBuilder
    from .debuginfo import read_debuginfo
    from .file import read_file, read_module

    file = read_file(bytes(data), name)
    return FileBuilder(file).module(read_module(file), read_debuginfo(file))


def to_source(name: str, data: bytes) -> tuple[Source | None, list[Diagnostic]]:
    """Return a bytecode file as canonical text, so that diagnostics have lines: lines of the files that debug
    information names, or lines of the text."""
    from ..asm import to_text

    try:
        return Source(name, to_text(from_bytecode(data, name), locations=True)), []
    except DiagnosticError as e:
        return None, e.diagnostics


__all__ = ["MAGIC", "from_bytecode", "to_bytecode", "to_source"]
