"""A lowered function: a flat list of steps for the scalar unit of a core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.core import Operation, Value

#: A step gets the core; it gives the next program counter, None for the following step, or one of the answers
#: of `core.py`.
Step = Callable[[Any], int | None]


class Code:
    """The steps of one function, and the operation each came from."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.name = str(function.attr("sym_name"))
        self.steps: list[Step] = []
        self.ops: list[Operation] = []
        self.registers = 0
        #: Name and register of the counter of a loop, and the register of its bound.
        self.counters: dict[Operation, tuple[str, int, int]] = {}
        #: Register of every value.
        self.slots: dict[Value, int] = {}
        #: Steps that those who watch hear of as events, if there is something to do.
        self.events: set[int] = set()

    def frame(self, args: list[Any]) -> list[Any]:
        """Registers of a call: the arguments are the first ones."""
        return [*args, *[None] * (self.registers - len(args))]
