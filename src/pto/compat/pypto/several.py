"""Programs with several orchestrations. Each of them is a program in a folder of its own."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from ...language.declare import Declared
from ...language.programs import call
from ...language.programs.callable import CallableProgram
from ...language.programs.compiled import Compiled, new_folder
from ...language.programs.jit import JitFunction


def orchestrations(program: object) -> list[Declared]:
    """Return the orchestrations of a program that no other function calls."""
    functions = list(getattr(program, "functions", {}).values())
    texts = {f: inspect.getsource(f.function) for f in functions if isinstance(f, Declared)}
    return [f for f in texts if f.kind == "orchestration"
            and not any(f"self.{f.name}(" in text for o, text in texts.items() if o is not f)]  # fmt: skip


class Several(CallableProgram):
    """Several compiled orchestrations. `compiled["name"](...)` and `compiled.name(...)` call one of them."""

    def __init__(self, name: str, found: list[Declared], config: Any) -> None:
        self.name = name
        self.platform = config.platform
        self.params = []
        self.folder: Path | None = None
        self.parts = {f.name: call.compiled(JitFunction(f), (), {}, config) for f in found}

    @property
    def orchestration_names(self) -> list[str]:
        return list(self.parts)

    def __getitem__(self, name: str) -> Compiled:
        if name not in self.parts:
            raise KeyError(f"unknown orchestration {name!r}, expected one of {', '.join(self.parts)}")
        return self.parts[name]

    def __getattr__(self, name: str) -> Compiled:
        parts = self.__dict__.get("parts", {})
        if name in parts:
            return parts[name]
        raise AttributeError(f"{self.__dict__.get('name')} has no attribute or orchestration '{name}'")

    def __call__(self, *args: object, config: object = None) -> object:
        raise TypeError(
            f"{self.name} has several orchestrations, select one explicitly: {', '.join(self.parts)}"
        )

    def save(self, folder: Any, dumps: bool = False) -> Path:
        self.folder = Path(folder)
        for name, part in self.parts.items():
            part.save(self.folder / "next_levels" / name, dumps=dumps)
        return self.folder

    @property
    def output_dir(self) -> Path:
        return self.folder if self.folder is not None else self.save(new_folder(self.name))
