"""From a parsed program to C++ in one call: lower with the driver, then emit."""

from __future__ import annotations

from ..diag import DiagnosticError, Span
from ..driver import Lowered, Options, lowered
from ..ir.core import Module
from ..isa.profiles import Profile
from . import cpp


def emit_cpp(
    module: Module,
    target: str | Profile | None = None,
    *,
    level: str | None = None,
    insert_sync: bool = False,
    infer_layout: bool = True,
    line_directives: bool = False,
    addptr_trace: bool = False,
    index_type: str = "int32_t",
) -> str:
    """Return C++ that calls PTO intrinsics; raise `DiagnosticError` with all diagnostics.

    Tiles without addresses are placed, and with `insert_sync` flags are added. `line_directives` makes a C++
    compiler report errors at lines of the program; `index_type` is the C++ type of index values.
    """
    options = Options(level=level or "", insert_sync=insert_sync, infer_layout=infer_layout)
    done = lowered(module, target, options)
    if not done.ok:
        raise DiagnosticError(done.diagnostics)
    return emitted(done, line_directives=line_directives, addptr_trace=addptr_trace, index_type=index_type)


def emitted(
    done: Lowered, *, line_directives: bool = False, addptr_trace: bool = False, index_type: str = "int32_t"
) -> str:
    """Return the C++ of a program that the driver has lowered; raise if an operation has no spelling."""
    return cpp.emit(
        done.module, done.profile, planned=not done.manual, line_directives=line_directives,
        addptr_trace=addptr_trace, index_type=index_type,
    )  # fmt: skip


def placed_cpp(module: Module, target: str | Profile | None = None) -> tuple[str, list[Span | None]]:
    """Return the C++ of a program, as `emit_cpp` does, and the source location of each line."""
    done = lowered(module, target, Options())
    if not done.ok:
        raise DiagnosticError(done.diagnostics)
    return cpp.emit_placed(done.module, done.profile, planned=not done.manual)


def compiled_cpp(done: Lowered, lines: bool = False) -> str:
    """Return the C++ for compilation with our headers: it records its location before it touches global
    memory, and with `lines` it names the lines of the program."""
    return cpp.emit(done.module, done.profile, line_directives=lines, index_type="int64_t", checked=True)
