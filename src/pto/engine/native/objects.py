"""Programs as objects: what `ptoas -o k.o` and `-o k.so` write. Beside its code an object has the
sections of a file of images."""

from __future__ import annotations

import re
from functools import partial

from ...diag import Diagnostic, DiagnosticError
from ...image.container import File, parts
from ...image.lines import Lines
from ...isa.profiles import PROFILES
from ...objects import machine_code
from ...objects.shared import shared

#: What C takes for the name of a function.
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _line(lines: Lines, place: int) -> tuple[str, int, int] | None:
    """File, line and column of an operation."""
    at = lines.places.get(place)
    return None if at is None else (lines.files[at.file][0], at.line, at.column)


def emitted(file: File, form: str, name: str, triple: str = "") -> bytes:
    """Images as machine code, in a form; `name` is that of a shared object. It is for this machine, unless a
    triple says otherwise."""
    spans = file.lines.spans()
    for image in file.images:
        if not _NAME.fullmatch(image.name):
            raise DiagnosticError([
                Diagnostic("PTO-E2407", f"kernel '@{image.name}' cannot be a symbol of an object",
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
