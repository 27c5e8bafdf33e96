"""Flatten the control flow of a function: regions and branches become jumps and parallel copies.

`Flow` walks regions, and its subclasses emit steps: closures for the reference engine
(`engine/reference/control.py`), words for images (`image/lower.py`). A step has an index. A *hole* is a jump
whose target is still open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..ir.core import Block, Operation, Region, Value


class Flow(ABC):
    """Emits the control flow within one function. Calls, returns and sections are left to subclasses."""

    def __init__(self) -> None:
        self._branches: list[list[tuple[int, Block]]] = []  # holes of branches to blocks, by region
        self._exits: dict[Operation, list[int]] = {}  # holes of yields that leave an operation early

    # -- steps, emitted by subclasses ------------------------------------------------------------------

    @abstractmethod
    def here(self, *holes: int) -> int:
        """Return the index of the next step, and let holes jump to it."""

    @abstractmethod
    def fill(self, hole: int, target: int) -> None:
        """Let a hole jump to a step."""

    @abstractmethod
    def copy(self, op: Operation, targets: Sequence[Value], values: Sequence[Value]) -> None:
        """Copy all values to their targets in parallel."""

    @abstractmethod
    def jump(self, op: Operation) -> int:
        """Emit a jump; return its hole."""

    @abstractmethod
    def unless(self, op: Operation, condition: Value) -> int:
        """Emit a jump that is taken if a condition is false; return its hole."""

    @abstractmethod
    def equal(self, op: Operation, value: Value, number: int) -> int:
        """Emit a jump that is taken if a value equals a number; return its hole."""

    @abstractmethod
    def enter_loop(self, op: Operation) -> int:
        """Emit the check of the step and the first test of a `scf.for`; return the hole of its end."""

    @abstractmethod
    def next_iteration(self, op: Operation, end: int) -> None:
        """Emit the increment of a `scf.for` and the jump to its body; `end` is the hole of `enter_loop`."""

    @abstractmethod
    def operation(self, op: Operation) -> None:
        """Emit any operation."""

    # -- regions ---------------------------------------------------------------------------------------

    def region(self, region: Region) -> None:
        starts: dict[Block, int] = {}
        self._branches.append([])
        for block in region.blocks:
            starts[block] = self.here()
            self.block(block)
        for hole, block in self._branches.pop():
            self.fill(hole, starts[block])

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.operation(op)

    def flow(self, op: Operation) -> bool:
        """Emit an operation of control flow; return False for any other operation."""
        handler = _HANDLERS.get(op.name)
        if handler is None:
            return False
        handler(self, op)
        return True

    def _branch(self, op: Operation, number: int) -> None:
        successor = op.successors[number]
        self.copy(op, successor.block.args, successor.args)
        self._branches[-1].append((self.jump(op), successor.block))

    def _cond_br(self, op: Operation) -> None:
        hole = self.unless(op, op.operands[0])
        self._branch(op, 0)
        self.here(hole)
        self._branch(op, 1)

    def _switch(self, op: Operation) -> None:  # successors: the default, then the cases
        cases = numbers_of(op.attr("case_values")) if len(op.successors) > 1 else ()
        holes = [self.equal(op, op.operands[0], n) for n in cases]
        self._branch(op, 0)
        for n, hole in enumerate(holes, 1):
            self.here(hole)
            self._branch(op, n)

    def _if(self, op: Operation) -> None:
        hole = self.unless(op, op.operands[0])
        self.region(op.regions[0])
        otherwise = [r for r in op.regions[1:] if r.blocks and r.blocks[0].ops]
        if otherwise:
            end = self.jump(op)
            self.here(hole)
            self.region(otherwise[0])
            hole = end
        self.here(hole)

    def _for(self, op: Operation) -> None:
        counter, *carried = op.regions[0].blocks[0].args
        self.copy(op, [counter, *carried], [op.operands[0], *op.operands[3:]])
        end = self.enter_loop(op)
        self.region(op.regions[0])
        self.next_iteration(op, end)
        self.here(end)
        self.copy(op, op.results, carried)

    def _while(self, op: Operation) -> None:
        before, after = op.regions
        self.copy(op, before.blocks[0].args, op.operands)
        head = self.here()
        self._exits[op] = []
        self.region(before)
        self.copy(op, after.blocks[0].args, op.results)
        self.region(after)
        self.fill(self.jump(op), head)
        self.here(*self._exits.pop(op))

    def _condition(self, op: Operation) -> None:
        assert op.outer is not None
        self.copy(op, op.outer.results, op.operands[1:])
        self._exits[op.outer].append(self.unless(op, op.operands[0]))

    def _execute_region(self, op: Operation) -> None:
        self._leaving(op, op.regions)

    def _index_switch(self, op: Operation) -> None:
        cases = numbers_of(op.attr("cases"))
        self._leaving(op, op.regions, [self.equal(op, op.operands[0], n) for n in cases])

    def _leaving(self, op: Operation, regions: Sequence[Region], holes: Iterable[int] = ()) -> None:
        """Emit regions, each of which ends the operation; jumps to all but the first are given."""
        self._exits[op] = []
        starts = iter(holes)
        for region in regions:
            if region is not regions[0]:
                self.here(next(starts))
            self.region(region)
            if region is not regions[-1]:
                self._exits[op].append(self.jump(op))
        self.here(*self._exits.pop(op))

    def _yield(self, op: Operation) -> None:
        owner, block = op.outer, op.parent
        assert owner is not None and block is not None and block.parent is not None
        if owner.name in ("scf.for", "scf.while"):
            args = owner.regions[0].blocks[0].args
            self.copy(op, args[1:] if owner.name == "scf.for" else args, op.operands)
            return
        self.copy(op, owner.results, op.operands)
        if owner in self._exits and block is not block.parent.blocks[-1]:
            self._exits[owner].append(self.jump(op))


_HANDLERS: dict[str, Callable[[Any, Operation], None]] = {
    "cf.br": lambda f, op: f._branch(op, 0),
    "cf.cond_br": Flow._cond_br,
    "cf.switch": Flow._switch,
    "scf.if": Flow._if,
    "scf.for": Flow._for,
    "scf.while": Flow._while,
    "scf.condition": Flow._condition,
    "scf.execute_region": Flow._execute_region,
    "scf.index_switch": Flow._index_switch,
    "scf.yield": Flow._yield,
}
#: The operations of control flow within a function.
NAMES = frozenset(_HANDLERS)


def numbers_of(value: Any) -> tuple[int, ...]:
    """Return the numbers of an attribute: an array, or the text of a dense vector."""
    if isinstance(value, str):  # dense<[1, 2]> : vector<..>
        return tuple(int(w) for w in value[value.find("<") + 1 : value.find(">")].strip("[]").split(","))
    return tuple(int(v) for v in value or ())
