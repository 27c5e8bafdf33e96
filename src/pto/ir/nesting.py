"""The statements around an operation, from which advice about lines to insert follows.

In programs these are operations with regions, in C++ blocks in braces (`cpp/nesting.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ..isa.machine import SECTIONS
from .core import Module, Operation
from .facts import LOOPS, enclosing


class BlockStatement(NamedTuple):
    """A statement of a block, which contains an operation or is that operation. Lines are as in messages."""

    block: Hashable
    order: int  # position among the statements of its block
    first: str
    last: str
    loop: bool = False
    section: str = ""  # of a kind of core

    @property
    def place(self) -> tuple[Hashable, int]:
        return self.block, self.order


def nesting(module: Module, op: Operation) -> list[BlockStatement]:
    """Return the statements around an operation up to its function, itself included, innermost first."""
    found: list[BlockStatement] = []
    for at in enclosing(op):
        if at.parent is None or at.name == "func.func":
            break
        section = at.name if at.name in SECTIONS else ""
        lines = module.line(at), module.line(at, last=True)
        found.append(
            BlockStatement(id(at.parent), at.parent.ops.index(at), *lines, at.name in LOOPS, section)
        )
    return found


class CommonBlock(NamedTuple):
    """The innermost common block of two operations: its statements around them, and the loop around it if the
    first is of an earlier iteration."""

    first: BlockStatement
    second: BlockStatement
    loop: BlockStatement | None
    section: str  # the section around the two, but not around the loop

    @property
    def outside(self) -> bool:
        """Return True if the loop is outside the section of the two."""
        return bool(self.section)


def meeting(old: Sequence[BlockStatement], new: Sequence[BlockStatement]) -> CommonBlock | None:
    """Return the common block of two operations; None if no block of one function, or no loop, orders the
    first before the second."""
    before = {s.block: s for s in old}
    for n, second in enumerate(new):
        first = before.get(second.block)
        if first is None:
            continue
        if first.order < second.order:
            return CommonBlock(first, second, None, "")
        around = new[n + 1 :]
        inside = next((k for k, s in enumerate(around) if s.loop), None)
        if inside is None:
            return None
        section = next((s.section for s in around[:inside] if s.section), "")
        return CommonBlock(first, second, around[inside], section)
    return None
