"""Programs as objects, the output of `ptoas -o k.o` and `-o k.so`. Besides its code, an object has the
sections of a file of images."""

from __future__ import annotations

import re
from functools import partial

from ...diag import Diagnostic, DiagnosticError
from ...image.container import ImageFile, parts
from ...image.lines import Lines
from ...isa.profiles import PROFILES
from ...objects import machine_code
from ...objects.shared import shared

#: The syntax of function names in C.
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _line(lines: Lines, place: int) -> tuple[str, int, int] | None:
    """Return the file, line and column of an operation."""
    at = lines.places.get(place)
    return None if at is None else (lines.files[at.file][0], at.line, at.column)


def emitted(file: ImageFile, form: str, name: str, triple: str = "") -> bytes:
    """Return images as machine code in a form; `name` is the name of a shared object. The code is for this
    machine, unless there is a triple."""
    spans = file.lines.spans()
    for image in file.images:
        if not _NAME.fullmatch(image.name):
            raise DiagnosticError([
                Diagnostic("PTO-E2407", f"kernel '@{image.name}' cannot become a symbol of an object",
                           spans.get(image.functions[0].place), expected="letters, digits and underscores",
                           help="give the function another name")
            ])  # fmt: skip
    first = file.images[0]
    target = PROFILES[first.target].override(dict(first.capacity))
    source = machine_code.text(
        file.images, target, parts(file), file.name, triple, partial(_line, file.lines)
    )
    if form == "llvm":
        return source.encode()
    if form == "native":
        return machine_code.assembly(source, triple).encode()
    data = machine_code.object_file(source, triple)
    return shared(data, name) if form == "so" else data
