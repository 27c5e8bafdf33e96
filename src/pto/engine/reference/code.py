"""A lowered function: a flat list of steps for the scalar unit of a core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.core import Operation, Value

#: A step gets the core. It returns the next program counter, None for the following step, or one of the
#: special results of `core.py`.
Step = Callable[[Any], int | None]


class Code:
    """The steps of one function, and the operation of each."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.name = str(function.attr("sym_name"))
        self.steps: list[Step] = []
        self.ops: list[Operation] = []
        self.registers = 0
        #: By loop: the name and register of its counter, and the register of its bound.
        self.counters: dict[Operation, tuple[str, int, int]] = {}
        #: The register of every value.
        self.slots: dict[Value, int] = {}
        #: Steps that report their own events to observers, unless they have nothing to do.
        self.events: set[int] = set()

    def frame(self, args: Sequence[object]) -> list[object]:
        """Return the registers of a call, with the arguments first."""
        return [*args, *[None] * (self.registers - len(args))]
