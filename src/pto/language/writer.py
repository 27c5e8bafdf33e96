"""Functions as text of Python, statement by statement: what programs and orchestrations are written with."""

from __future__ import annotations

from keyword import iskeyword
from typing import Any

from .ir import Block, Op, Value

#: Operations on numbers as Python spells them: between two, and before one.
BETWEEN = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "shl": "<<",
    "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "and",
    "or": "or",
}  # fmt: skip
BEFORE = {"neg": "-", "not": "not ", "invert": "~"}


class Writer:
    """Lines of a body. Every value has a name of its own; `taken` are those that none may have."""

    def __init__(self, taken: set[str]) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.names: dict[Value, str] = {}
        self.taken = taken

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, value: Value) -> str:
        """Its name in the text."""
        known = self.names.get(value)
        if known is None:
            plain = value.name.isidentifier() and value.name.strip("_") and not iskeyword(value.name)
            wanted = value.name if plain else "v"
            known, n = wanted, 0
            while known in self.taken:
                known, n = f"{self.stem(wanted)}_{n}", n + 1
            self.taken.add(known)
            self.names[value] = known
        return known

    def stem(self, wanted: str) -> str:
        """What names like one that is taken begin with."""
        return wanted

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def inner(self, block: Block) -> None:
        """A block below the line at hand."""
        self.depth += 1
        start = len(self.lines)
        self.block(block)
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1

    def op(self, op: Op) -> None:
        """A method of the name of an operation writes it; `other` writes those that have none."""
        special = getattr(self, f"_{op.name.replace('.', '_')}", None)
        if special is not None:
            special(op)
        else:
            self.other(op)

    def other(self, op: Op) -> Any:
        raise AssertionError(op.name)
