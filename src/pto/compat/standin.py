"""How a module of ours stands for one that programs import."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
from collections.abc import Collection
from types import ModuleType


class Loader(importlib.abc.Loader):
    """Hands out a module that is there already, and leaves it as it was."""

    def __init__(self, target: str, names: Collection[str]) -> None:
        """`names`: all that programs import of the package, to know which of them have others below."""
        self.target, self.names = target, names

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        if not hasattr(module, "__path__") and any(name.startswith(f"{spec.name}.") for name in self.names):
            setattr(module, "__path__", [])  # noqa: B010
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec
