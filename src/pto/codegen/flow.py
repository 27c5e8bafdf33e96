"""From a parsed program to C++ in one call: what the driver makes of it, emitted."""

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
    """C++ that calls PTO intrinsics; raises `DiagnosticError` holding all diagnostics.

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
    """The C++ of a program that the driver has lowered; raises where something has no spelling."""
    return cpp.emit(
        done.module, done.profile, planned=not done.manual, line_directives=line_directives,
        addptr_trace=addptr_trace, index_type=index_type,
    )  # fmt: skip


def placed_cpp(module: Module, target: str | Profile | None = None) -> tuple[str, list[Span | None]]:
    """The C++ of a program, as `emit_cpp` has it, and for each of its lines the place that it stands for."""
    done = lowered(module, target, Options())
    if not done.ok:
        raise DiagnosticError(done.diagnostics)
    return cpp.emit_placed(done.module, done.profile, planned=not done.manual)


def compiled_cpp(done: Lowered, lines: bool = False) -> str:
    """The same as it is compiled with our headers: it says where it is before it touches global memory, and
    with `lines` it names the lines of the program."""
    return cpp.emit(done.module, done.profile, line_directives=lines, index_type="int64_t", checked=True)
