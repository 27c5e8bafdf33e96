"""Liveness of on-chip storage over structured control flow, branches and calls.

Instructions that access storage are numbered in program order, one function after another: these are the
*steps*. At a step a storage is occupied if the instruction accesses it, or if it may hold content that may be
read later. Two storages may share bytes if they have no common step.

- A write starts content. Content ends with its last read, or with a write that replaces all of it.
- In a loop, a storage that an iteration may read before it replaces it is live through all iterations.
- Storage allocated in a loop is new in every iteration, unless the loop carries it.
- A call takes the steps of all functions that it reaches: live storages of the caller stay clear of theirs.
- A storage that two kinds of core access is always occupied, because the orders of the cores are unrelated.
"""

from __future__ import annotations

from ..ir.core import Operation
from .aliases import Aliases
from .flow import Node, StorageFlow

Spans = list[tuple[int, int]]


class Liveness:
    """The steps of functions that call each other, and the occupied steps of each storage."""

    def __init__(self, aliases: Aliases, kinds: dict[str, str] | None = None, least: bool = False) -> None:
        """`kinds` has the kind of core of each function. `least` leaves out needless accesses: operands that
        the target takes as scratch without using them, and reads of storage that was not written."""
        self.aliases = aliases
        self._least = least
        for storage in aliases.storages:
            storage.spans, storage.below = [], []
        flow = StorageFlow(aliases, kinds or {}, least)
        self.steps, self.reads, self.writes = flow.steps, flow.reads, flow.writes
        self.loops, self.calls, self.hidden, self.ranges = flow.loops, flow.calls, flow.hidden, flow.ranges
        #: Storages live after each step, and storages occupied at it.
        self.after = [0] * len(self.steps)
        self._occupied = [0] * len(self.steps)
        for nodes, kept in flow.graphs:
            self._solve(nodes, kept)
        self._follow_calls()
        self._fill_spans(flow.cores)

    def occupied(self, step: int) -> int:
        """Return the storages that may not be overwritten at a step, except arguments of the function."""
        return self._occupied[step]

    def _solve(self, nodes: list[Node], kept: int) -> None:
        """Compute the steps at which each storage is occupied; arguments of the function belong to its
        caller.
        """
        given = nodes[0].before
        for node in nodes:
            node.close()
        changed = True
        while changed:  # live after
            changed = False
            for node in reversed(nodes):
                after = node.after
                if not node.next:
                    after |= kept
                for follower in node.next:
                    after |= follower.after & ~follower.replaced | follower.required
                if after != node.after:
                    node.after = after
                    changed = True
        changed = True
        while changed:  # written before
            changed = False
            for node in nodes:
                out = node.before & ~node.renewed | node.written
                for follower in node.next:
                    if out & ~follower.before:
                        follower.before |= out
                        changed = True
        for node in nodes:
            written = node.before
            held: list[int] = []
            for _, _, writes, _, new in node.events:
                written = written & ~new | writes
                held.append(written)
            needed = node.after
            for (step, reads, writes, over, new), content in zip(
                reversed(node.events), reversed(held), strict=True
            ):
                if step >= 0:
                    self.after[step] = needed & content
                    seen = reads & content if self._least else reads
                    self._occupied[step] = (seen | writes | (needed & content)) & ~given
                needed = needed & ~(over | new) | reads

    def _follow_calls(self) -> None:
        """Compute the functions that each function reaches by calls, including itself."""
        called: dict[Operation, list[Operation]] = {f: [] for f in self.ranges}
        for function, (first, end) in self.ranges.items():
            called[function].extend(f for step, f in self.calls if first <= step < end)
        self._reach: dict[Operation, list[Operation]] = {}
        for function in self.ranges:
            seen = [function]
            for f in seen:
                seen.extend(g for g in called.get(f, ()) if g not in seen)
            self._reach[function] = seen

    def _fill_spans(self, cores: dict[str, int]) -> None:
        storages = self.aliases.storages
        extra: dict[int, Spans] = {}
        for step, callee in self.calls:
            inside = [self.ranges[f] for f in self._reach.get(callee, ()) if f in self.ranges]
            spans = [(a, b - 1) for a, b in inside if b > a]
            for storage in self.aliases.members(self._occupied[step]):
                extra.setdefault(storage.bit, []).extend(spans)
        before = 0
        starts: dict[int, int] = {}
        borders = {a for a, _ in self.ranges.values()}
        for step, mask in enumerate(self._occupied):
            if step in borders:  # runs end at the end of a function
                self._end(before, starts, step)
                before = 0
            for storage in self.aliases.members(mask & ~before):
                starts[storage.bit] = step
            self._end(before & ~mask, starts, step)
            before = mask
        self._end(before, starts, len(self._occupied))
        for storage in storages:
            across = cores["vector" if storage.loc != "vec" else "cube"] >> storage.bit & 1
            if (across and storage.spans) or storage.reserved:
                storage.spans = [(0, max(0, len(self.steps) - 1))]
            elif storage.bit in extra:
                storage.below = joined(extra[storage.bit])

    def _end(self, mask: int, starts: dict[int, int], step: int) -> None:
        for storage in self.aliases.members(mask):
            storage.spans.append((starts[storage.bit], step - 1))

    # -- queries ---------------------------------------------------------------------------------------

    def reach(self, function: Operation) -> list[Operation]:
        """Return the function and all functions that it reaches by calls."""
        return self._reach.get(function, [])

    def hull(self, spans: Spans) -> Spans:
        """Return the span from the first to the last step in each function."""
        out: Spans = []
        for first, end in sorted(self.ranges.values()):
            inside = [(a, b) for a, b in spans if first <= b and a < end]
            if inside:
                out.append((max(first, inside[0][0]), min(end - 1, max(b for _, b in inside))))
        return out


def joined(spans: Spans) -> Spans:
    """Merge spans that overlap or are adjacent."""
    out: Spans = []
    for a, b in sorted(spans):
        if out and a <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(b, out[-1][1]))
        else:
            out.append((a, b))
    return out
