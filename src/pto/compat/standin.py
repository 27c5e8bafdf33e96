"""Loader of a module of this package under the name of a foreign module."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
from collections.abc import Collection
from types import ModuleType


class Loader(importlib.abc.Loader):
    """Loader that returns an existing module and leaves it unchanged."""

    def __init__(self, target: str, names: Collection[str]) -> None:
        """Load `target`. `names` are all module names of the foreign package, to find out which of them have
        submodules."""
        self.target, self.names = target, names

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        if not hasattr(module, "__path__") and any(name.startswith(f"{spec.name}.") for name in self.names):
            setattr(module, "__path__", [])  # noqa: B010
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec
