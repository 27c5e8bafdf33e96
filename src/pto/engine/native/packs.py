"""Packs that the package does not have: calls of a program that no witness makes, compiled once and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...diag import Diagnostic, DiagnosticError
from ...image import pack

if TYPE_CHECKING:
    from .machine import Pack


#: What all packs have in common they find in the library of the machine.
_FLAGS = ("-DPTO_CPU_OPEN", "-DPTO_CPU_LINKED", "-w")


def compiled(calls: Sequence[str]) -> Pack:
    """A pack of these calls, from the cache or compiled now; where there is no compiler, an error that names one."""
    from ..cpp import build, compiler
    from .machine import Pack

    try:
        compiler.find()
    except DiagnosticError as e:
        (cause,) = e.diagnostics
        more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
        cause.notes.append((f"engine native compiles what the package does not have: {calls[0]}{more}", None))
        raise
    made = build.cached_plainly([build.Unit(name, text) for name, text in pack.files(calls)], _FLAGS)
    if not made.ok:
        raise DiagnosticError([
            Diagnostic("PTO-E2402", f"a call of engine native does not compile: {made.output.splitlines()[0]}",
                       help="use engine cpp or reference; this is a bug of ours")
        ])  # fmt: skip
    return Pack(made.path)
