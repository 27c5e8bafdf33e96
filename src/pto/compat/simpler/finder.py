"""Finder of imports of `simpler` and `simpler_setup`: it precedes all other finders."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from ...diag import Diagnostic, DiagnosticError, did_you_mean
from ..standin import Loader
from .modules import DATA, MODULES, OTHERS

OTHER_PACKAGE = "PTO-E3104"
NO_MODULE = "PTO-E3105"
PACKAGES = ("simpler", "simpler_setup", "_task_interface")


class _Setup(Loader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        # A normal import of the submodule would overwrite the function of the same name in the package.
        sys.modules["simpler_setup.scene_test"] = importlib.import_module(MODULES["simpler_setup.scene_test"])


class SimplerFinder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self.shadow = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        if not self.shadow:
            _refuse_others()
        if fullname in MODULES:
            loader = _Setup if fullname == "simpler_setup" else Loader
            return importlib.machinery.ModuleSpec(
                fullname, loader(MODULES[fullname], MODULES), is_package=True
            )
        if fullname.startswith(DATA) and (found := _of_the_program(fullname)) is not None:
            return found
        raise ModuleNotFoundError(_missing(fullname), name=fullname)


def _of_the_program(name: str) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of a module in the checkout of the program: a module on the path, or in a parent of the
    current folder."""
    parts = name.split(".")
    for folder in (*sys.path, *_around(os.getcwd())):
        place = os.path.join(folder or os.getcwd(), *parts)
        if os.path.isfile(os.path.join(place, "__init__.py")):
            file = os.path.join(place, "__init__.py")
            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[place])
        if os.path.isfile(f"{place}.py"):
            return importlib.util.spec_from_file_location(name, f"{place}.py")
    return None


def _around(folder: str) -> list[str]:
    found = [folder]
    while os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        found.append(folder)
    return found


def _missing(name: str) -> str:
    why = next((text for begin, text in OTHERS.items() if name.startswith(begin)), "")
    if not why and name.startswith(DATA):
        why = "it is a file of the program's checkout: run the program there"
    why = why or did_you_mean(name, list(MODULES)) or "this package has no replacement for it"
    return f"[{NO_MODULE}] no module named '{name}': {why}; see `pto explain {NO_MODULE}`"


_FINDER = SimplerFinder()


def installed() -> bool:
    return _FINDER in sys.meta_path


def install(shadow: bool = False) -> None:
    """Provide `simpler` and `simpler_setup` from this package in this process. If another package has such a
    name, its first import raises an error, unless `shadow` is set."""
    _FINDER.shadow = shadow
    if installed():
        return
    for name in [n for n in sys.modules if n.partition(".")[0] in PACKAGES]:
        del sys.modules[name]
    sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Remove the finder and its modules, for tests."""
    if installed():
        sys.meta_path.remove(_FINDER)
    for name in [n for n in sys.modules if n.partition(".")[0] in PACKAGES]:
        del sys.modules[name]
    sys.modules.pop(__package__ or "", None)  # so that an import installs the finder again


def _refuse_others() -> None:
    """Raise an error if another package is installed. A folder of that name, such as in the checkout of a
    program, is not an error."""
    for name in PACKAGES:
        try:
            found = importlib.metadata.distribution(name.replace("_", "-"))
        except importlib.metadata.PackageNotFoundError:
            continue
        raise DiagnosticError(
            [
                Diagnostic(
                    OTHER_PACKAGE,
                    f"another package named {name} is installed",
                    got=f"{found.metadata['Name']} {found.version}",
                    help="use pto python --shadow, or set PTO_SIMPLER=shadow, to import pto's replacement",
                )
            ]
        )
