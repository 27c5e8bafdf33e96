"""Write functions as Python text, statement by statement; base of the writers of programs and
orchestrations."""

from __future__ import annotations

from keyword import iskeyword
from typing import Any

from . import Block, Op, Value

#: Python's spelling of operations on numbers: infix, and prefix.
BETWEEN = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "shl": "<<",
    "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "and",
    "or": "or",
}  # fmt: skip
BEFORE = {"neg": "-", "not": "not ", "invert": "~"}


class Writer:
    """The lines of a body. Every value has a unique name; names in `taken` are reserved."""

    def __init__(self, taken: set[str]) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.names: dict[Value, str] = {}
        self.taken = taken

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, value: Value) -> str:
        """Return the name of a value in the text."""
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
        """Return the stem of the replacement for a name that is taken."""
        return wanted

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def inner(self, block: Block) -> None:
        """Write a block below the current line."""
        self.depth += 1
        start = len(self.lines)
        self.block(block)
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1

    def op(self, op: Op) -> None:
        """Write an operation with the method of its name, or with `other`."""
        special = getattr(self, f"_{op.name.replace('.', '_')}", None)
        if special is not None:
            special(op)
        else:
            self.other(op)

    def other(self, op: Op) -> Any:
        raise AssertionError(op.name)
