"""Names that programs import and that this package does not implement. Their import works, and their use
raises an error with an alternative."""

from __future__ import annotations

import importlib
from typing import NoReturn

from ...diag import Diagnostic, DiagnosticError
from .modules import MODULES

REFUSED = "PTO-E3103"

#: Name -> alternative.
NAMES = {
    "PassManager": "f.lower(...).as_python() shows a program after the passes of pto",
    "PassContext": "leave it out: the passes of pto have no context",
    "l0_tile_chooser": "passes choose the tiles of products here: f.lower(...).as_python() shows them",
    "IRBuilder": "write the program with pl.program or pl.function",
    "IRVisitor": "f.lower(...).program.functions has the operations",
    "IRMutator": "f.lower(...).program.functions has the operations",
    "serialize": "f.as_python() is the text of a program, which pl.parse(text) reads back",
    "deserialize": "pl.parse(text) reads the text of f.as_python() back",
    "serialize_to_file": "write f.as_python() to a file, which pl.loads(path) reads back",
    "deserialize_from_file": "pl.loads(path) reads a file with the text of f.as_python() back",
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
        [Diagnostic(REFUSED, f"cannot use {name}: not supported by pto's replacement of pypto", help=instead)]
    )


class Refused:
    """A refused name. Imports and attributes work, as in annotations; calls raise an error."""

    def __init__(self, name: str, instead: str) -> None:
        self.__name__ = self.__qualname__ = name
        self._instead = instead

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise refuse(self.__name__, self._instead)

    def __getattr__(self, name: str) -> Refused:
        if name.startswith("__"):
            raise AttributeError(name)
        return Refused(f"{self.__name__}.{name}", self._instead)

    def __repr__(self) -> str:
        return f"<refused {self.__name__}>"


def missing(module: str, name: str) -> object:
    """Return a submodule or a refused name for an unknown attribute of a module, or raise AttributeError."""
    if f"{module}.{name}" in MODULES:
        return importlib.import_module(f"{module}.{name}")
    if name in NAMES:
        return Refused(name, NAMES[name])
    raise AttributeError(f"module '{module}' has no attribute '{name}'; see `pto explain {REFUSED}`")
