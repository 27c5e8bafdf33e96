"""What stands for programs of several ranks: compiled programs of a host (`pto.language.distributed`)."""

from __future__ import annotations

from typing import Any

from ...language.compiled import Compiled
from ...language.distributed import DistributedConfig
from .refused import refuse


class _OfAHost(type):
    """Whether a compiled program is one that gives ranks their work."""

    def __instancecheck__(cls, made: Any) -> bool:
        source = made.lowered.source if isinstance(made, Compiled) else None
        return source is not None and source[0].kind == "host"


class DistributedCompiledProgram(metaclass=_OfAHost):
    """A program of several ranks; `pypto.ir.compile` makes it."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise refuse(
            "DistributedCompiledProgram", "pypto.ir.compile(program, distributed_config=..) makes one"
        )

    @classmethod
    def from_dir(cls, *_: Any, **__: Any) -> Any:
        raise refuse("DistributedCompiledProgram.from_dir", "compile the program again: f.compile(..)")


class DistributedWorker:
    """Who runs one."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise refuse("DistributedWorker", "call the compiled program")


__all__ = ["DistributedCompiledProgram", "DistributedConfig", "DistributedWorker"]
