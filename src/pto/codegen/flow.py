"""From a parsed program to C++ in one call: verify, run the passes, emit."""

from __future__ import annotations

from ..diag import DiagnosticError, has_errors
from ..ir.core import Module
from ..ir.facts import module_profile
from ..isa.profiles import Profile
from ..passes import Options, compile
from ..verify import verify
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
    profile = module_profile(module, target)
    problems = verify(module, target, level=level, insert_sync=insert_sync)
    if not has_errors(problems):
        options = Options(level=level or "", insert_sync=insert_sync, infer_layout=infer_layout)
        context, found = compile(module, profile, options)
        problems += found
        if not has_errors(found):
            return cpp.emit(
                context.module, profile, planned=not context.manual, line_directives=line_directives,
                addptr_trace=addptr_trace, index_type=index_type,
            )  # fmt: skip
    raise DiagnosticError(problems)
