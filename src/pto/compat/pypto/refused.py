"""Names that programs import and that we have no use for: they can be imported, and say why when used."""

from __future__ import annotations

import importlib
from typing import Any

from ...diag import Diagnostic, DiagnosticError
from .modules import MODULES

REFUSED = "PTO-E3103"

#: Name -> what to do instead.
NAMES = {
    "PassManager": "compiled programs have been through our passes: f.lower(...).as_python()",
    "PassContext": "leave it out: our passes take no context",
    "l0_tile_chooser": "passes choose the tiles of products here: f.lower(...).as_python() shows them",
    "IRBuilder": "write the program with pl.program or pl.function",
    "IRVisitor": "f.lower(...).program.functions has the operations",
    "IRMutator": "f.lower(...).program.functions has the operations",
    "Backend": "pypto.backend.BackendType names the machine",
    "Backend950": "pypto.backend.BackendType.Ascend950 names the machine",
    "_run_ptoas": "`ptoas FILE` assembles",
    "_preprocess_ptoas_output": "`ptoas FILE` assembles",
    "validate_pass_ir_codegen_results": "f.run(..., sanitize='all') checks a run",
    "compile_and_assemble": "pl.Compiled.load(folder) runs a folder",
    "execute_on_device": "pypto.runtime.execute_compiled(folder, args) runs a folder",
}


def refuse(name: str, instead: str = "") -> DiagnosticError:
    return DiagnosticError(
        [Diagnostic(REFUSED, f"{name} is nothing that stands here for pypto", help=instead)]
    )


class Refused:
    """A name that may be imported, and its parts named, as in annotations; its uses are refused."""

    def __init__(self, name: str, instead: str) -> None:
        self.__name__ = self.__qualname__ = name
        self._instead = instead

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise refuse(self.__name__, self._instead)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Refused(f"{self.__name__}.{name}", self._instead)

    def __repr__(self) -> str:
        return f"<refused {self.__name__}>"


def missing(module: str, name: str) -> Any:
    """What a module gives for a name that it does not have: a module below it, or a refusal."""
    if f"{module}.{name}" in MODULES:
        return importlib.import_module(f"{module}.{name}")
    if name in NAMES:
        return Refused(name, NAMES[name])
    raise AttributeError(f"module '{module}' has no attribute '{name}'; `pto explain {REFUSED}` tells more")
