"""Finder of `pypto` imports: it precedes all other finders, and provides the modules of `modules.py`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from ...diag import Diagnostic, DiagnosticError, did_you_mean
from ..standin import Loader
from .modules import MODULES, OTHERS

OTHER_PACKAGE = "PTO-E3101"
NO_MODULE = "PTO-E3102"


class PyptoFinder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package = fullname.partition(".")[0]
        if package not in ("pypto", "harness"):
            return None
        if package == "harness" and not _is_known_harness():
            return None
        if fullname in MODULES:
            return importlib.machinery.ModuleSpec(
                fullname, Loader(MODULES[fullname], MODULES), is_package=True
            )
        if package == "harness":
            return None
        raise ModuleNotFoundError(_missing(fullname), name=fullname)


def _missing(name: str) -> str:
    if name.startswith(OTHERS):
        why = "it belongs to another project named pypto, which this package does not replace"
    else:
        why = did_you_mean(name, list(MODULES)) or "this package has no replacement for it"
    return f"[{NO_MODULE}] no module named '{name}': {why}; see `pto explain {NO_MODULE}`"


def _is_known_harness() -> bool:
    """Return True if `harness` is the harness of the public tests, or does not exist."""
    found = importlib.machinery.PathFinder.find_spec("harness", sys.path)
    if found is None or not found.submodule_search_locations:
        return found is None
    return any(
        os.path.isfile(os.path.join(p, "core", "harness.py")) for p in found.submodule_search_locations
    )


_FINDER = PyptoFinder()


def installed() -> bool:
    return _FINDER in sys.meta_path


def install(shadow: bool = False) -> None:
    """Provide `pypto` from this package in this process. Raise `DiagnosticError` if another package has that
    name, unless `shadow` is set."""
    if installed():
        return
    if not shadow:
        _refuse_others()
    for name in [n for n in sys.modules if n.partition(".")[0] == "pypto"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Remove the finder and its modules, for tests."""
    if installed():
        sys.meta_path.remove(_FINDER)
    for name in (*MODULES, __package__ or ""):  # so that an import installs the finder again
        sys.modules.pop(name, None)


def _refuse_others() -> None:
    found = sys.modules.get("pypto")
    if found is None:
        spec = importlib.machinery.PathFinder.find_spec("pypto", sys.path)
        if spec is None or spec.origin is None:  # a folder of that name is not a package
            return
        where = spec.origin
    else:
        where = str(getattr(found, "__file__", None) or "this process")
    raise DiagnosticError([
        Diagnostic(
            OTHER_PACKAGE,
            "another package named pypto is installed",
            got=where,
            help="use pto python --shadow, or set PTO_PYPTO=shadow, to import pto's replacement; the "
            "installed package is not modified",
        )
    ])  # fmt: skip
