"""The PTO stack without an NPU: read, check, convert and run PTO programs.

    import pto
    m = pto.parse("k.pto")               # path or text; raises pto.DiagnosticError with ALL diagnostics
    pto.verify(m, target="a3")           # list[Diagnostic]
    pto.kernel(m, "vec_add")(a, b, out)  # NumPy arrays, used in place
    pto.prove(m).ok                      # no race or access outside memory, for all parameters
    print(pto.to_text(m, form="ssa"))
    print(pto.emit_cpp(m, target="a3"))  # C++ with PTO intrinsics
    pto.from_bytecode(pto.to_bytecode(m))

Names are imported on first use, so that `import pto` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import isa, language, runtime, tune
    from .asm import to_text
    from .bytecode import from_bytecode, to_bytecode
    from .codegen.flow import emit_cpp
    from .diag import Diagnostic, DiagnosticError
    from .engine.launch import kernel
    from .engine.ranks import ranks
    from .engine.watch import Watcher
    from .host.launched import launched_ranks
    from .ir import Builder, Module
    from .proof.prove import prove
    from .reading import parse
    from .verifier import verify

_LAZY = {
    "Builder": "ir",
    "Diagnostic": "diag",
    "DiagnosticError": "diag",
    "emit_cpp": "codegen.flow",
    "Module": "ir",
    "Watcher": "engine.watch",
    "from_bytecode": "bytecode",
    "kernel": "engine.launch",
    "parse": "reading",
    "prove": "proof.prove",
    "launched_ranks": "host.launched",
    "ranks": "engine.ranks",
    "to_bytecode": "bytecode",
    "to_text": "asm",
    "verify": "verifier",
}

_PACKAGES = ("isa", "language", "runtime", "tune")

__all__ = [
    "Builder", "Diagnostic", "DiagnosticError", "Module", "Watcher", "__version__", "emit_cpp",
    "from_bytecode", "isa", "kernel", "language", "launched_ranks", "parse", "prove", "ranks",
    "runtime", "to_bytecode", "to_text", "tune", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY:
        value = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'pto' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
