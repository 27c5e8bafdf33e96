"""Accumulators that must be one tile: hardware adds a product to the destination and ignores `acc_in`.

    %c1 = pto.tmatmul.acc %c0, %a, %b     # adds to the bytes of %c1: they have to be those of %c0

If a program gives them two names, as the SSA form always does, their storages are joined, also through loops
that carry the accumulator. This is correct if the old value is dead once the new one is written: no value
that may name the storage is used after the write, before it is redefined.
"""

from __future__ import annotations

from ...ir.core import Block, Operation, Value
from ...ir.facts import LOOPS
from ..liveness import Liveness


def accumulated(op: Operation) -> Value | None:
    """Return the accumulator of an instruction if hardware expects the destination there; else None."""
    return op.get(op.row.accumulates) if op.row is not None and op.row.accumulates else None


class Accumulators:
    """The storages that have to share bytes, and the instructions for which that is impossible."""

    def __init__(self, live: Liveness) -> None:
        self.live = live
        self.wrong: list[Operation] = []
        self._group: dict[int, set[int]] = {}
        apart = [
            op for op in live.steps if (source := accumulated(op)) is not None and source is not op.get("dst")
        ]
        if apart:
            self._order = _Order(live)
            for op in apart:
                self._join(op)

    def groups(self, bits: list[int]) -> list[list[int]]:
        """Return positions in a list of storages (by their bits), in groups with one address."""
        out: dict[int, list[int]] = {}
        for n, bit in enumerate(bits):
            out.setdefault(min(self._group.get(bit, {bit})), []).append(n)
        return list(out.values())

    def _join(self, op: Operation) -> None:
        aliases = self.live.aliases
        source, target = accumulated(op), op.get("dst")
        assert source is not None and target is not None
        mask = aliases.of(source) | aliases.of(target)
        members = {s.bit for s in aliases.members(mask)}
        if len(members) < 2:
            return
        for bit in tuple(members):
            members |= self._group.get(bit, set())
        storages = [aliases.storages[bit] for bit in members]
        same = all(s.value.type == storages[0].value.type for s in storages)
        if not aliases.of(source) or not aliases.of(target):
            return  # placed by the author
        if not same or not self._free(members):
            self.wrong.append(op)
            return
        for bit in members:
            self._group[bit] = members

    def _free(self, members: set[int]) -> bool:
        """Return True if at every write to one of the storages the others are dead."""
        mask = sum(1 << bit for bit in members)
        order = self._order
        values = [(v, m) for v, m in self.live.aliases.names.items() if m & mask]
        for step, op in enumerate(self.live.steps):
            if not self.live.writes[step] & mask:
                continue
            written = {v for o, v in op.named() if o.writes} if op.row is not None else set[Value]()
            held = self.live.after[step] & mask
            if any(m & held and v not in written and order.needed(v, op) for v, m in values):
                return False
        return True


class _Order:
    """The uses of values, in text order."""

    def __init__(self, live: Liveness) -> None:
        self.place: dict[Operation, int] = {}
        self.end: dict[Operation, int] = {}  # of operations with regions: the position of their results
        self.loops: dict[Operation, tuple[tuple[int, int], ...]] = {}  # (first, last) of the enclosing loops
        self.uses: dict[Value, list[tuple[int, tuple[tuple[int, int], ...]]]] = {}
        for function in live.ranges:
            self._number(function.regions[0].blocks, ())

    def _number(self, blocks: list[Block], loops: tuple[tuple[int, int], ...]) -> None:
        for block in blocks:
            for op in block.ops:
                at = self.place[op] = len(self.place)
                self.loops[op] = loops
                for value in (*op.operands, *(v for s in op.successors for v in s.args)):
                    self.uses.setdefault(value, []).append((at, loops))
                if op.regions:
                    again = op.name in LOOPS or any(len(r.blocks) > 1 for r in op.regions)
                    size = sum(1 for _ in op.walk())
                    self.end[op] = at + size
                    inner = (*loops, (at, at + size)) if again else loops
                    for region in op.regions:
                        self._number(region.blocks, inner)

    def needed(self, value: Value, at: Operation) -> bool:
        """Return True if a value may be used after an instruction, before it is redefined."""
        here, around = self.place[at], self.loops[at]
        owner = value.op
        made = self._start(value) if owner is None else self.end.get(owner, self.place.get(owner, -1))
        if made > here:
            around = tuple(loop for loop in around if not loop[0] <= made < loop[1])
        for used, loops in self.uses.get(value, ()):
            if used > here and made <= here:
                return True
            if any(loop in loops and not loop[0] <= made < loop[1] for loop in around):
                return True
        return False

    def _start(self, value: Value) -> int:
        """Return the position at which a block argument is defined: just after the enclosing operation."""
        block = value.owner
        assert isinstance(block, Block)
        around = block.outer
        return self.place.get(around, -1) if around is not None else -1
