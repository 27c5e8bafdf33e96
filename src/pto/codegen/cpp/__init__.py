"""Flow A: a program as C++ that calls PTO intrinsics, for the vendor's compiler or for g++ and our headers.

    from pto.codegen import cpp
    text = cpp.emit(ctx.module, profile)     # a module that went through `pto.passes.compile`

`unit.py` is the file, `function.py` one function; the other modules register what their operations print.
Regular instructions print what their row says (`template.py`).
"""

from __future__ import annotations

from .program import emit, emit_placed

__all__ = ["emit", "emit_placed"]
