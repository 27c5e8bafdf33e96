"""How imports of `pypto` come to us: a finder before all others, for the names of `modules.py`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ...diag import Diagnostic, DiagnosticError, did_you_mean
from ..standin import Loader
from .modules import MODULES, OTHERS

OTHER_PACKAGE = "PTO-E3101"
NO_MODULE = "PTO-E3102"


class Finder(importlib.abc.MetaPathFinder):
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
        why = "it is of another project that is called pypto, and nothing of ours stands for it"
    else:
        why = did_you_mean(name, list(MODULES)) or "we have nothing that stands for it"
    return f"[{NO_MODULE}] no module named '{name}': {why}; `pto explain {NO_MODULE}` tells more"


def _is_known_harness() -> bool:
    """Whether `harness` is that of the public tests, or nobody's."""
    found = importlib.machinery.PathFinder.find_spec("harness", sys.path)
    if found is None or not found.submodule_search_locations:
        return found is None
    return any(
        os.path.isfile(os.path.join(p, "core", "harness.py")) for p in found.submodule_search_locations
    )


_FINDER = Finder()


def installed() -> bool:
    return _FINDER in sys.meta_path


def install(shadow: bool = False) -> None:
    """From now on `pypto` is us, in this process. Raises where another package has that name, unless `shadow`
    says that it is not meant."""
    if installed():
        return
    if not shadow:
        _refuse_others()
    for name in [n for n in sys.modules if n.partition(".")[0] == "pypto"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """As if nothing had been: for tests."""
    if installed():
        sys.meta_path.remove(_FINDER)
    for name in (*MODULES, __package__ or ""):  # so that importing it installs it again
        sys.modules.pop(name, None)


def _refuse_others() -> None:
    found: Any = sys.modules.get("pypto")
    if found is None:
        spec = importlib.machinery.PathFinder.find_spec("pypto", sys.path)
        if spec is None or spec.origin is None:  # a folder of that name is no package
            return
        where = spec.origin
    else:
        where = str(getattr(found, "__file__", None) or "this process")
    raise DiagnosticError([
        Diagnostic(
            OTHER_PACKAGE,
            "another package is called pypto",
            got=where,
            help="pto python --shadow, or PTO_PYPTO=shadow, says that programs mean us; it stays as it is",
        )
    ])  # fmt: skip
