"""Emit `set_flag`, `wait_flag` and `barrier` operations for the placed flags and barriers."""

from __future__ import annotations

from ...ir.attrs import Attribute, EnumAttr, StrAttr
from ...ir.core import Block, Operation, Region
from ...ir.facts import enclosing
from ...isa.machine import SECTIONS
from ..edit import make
from .flags import Barrier, Flag, Set, Wait
from .linear import CoreProgram, Seq, Step

#: Attribute of a barrier that ends a function; its value is the form in C++.
TAIL = "pto.auto_tail"


class FlagEmitter:
    """Inserts the flags and barriers of one program into its function."""

    def __init__(self, program: CoreProgram, flags: list[Flag]) -> None:
        self.program = program
        #: New operations before and after existing ones.
        self.before: dict[Operation, list[Operation]] = {}
        self.after: dict[Operation, list[Operation]] = {}
        self._primes: dict[Step | None, list[Flag]] = {}
        self.flags = flags
        #: True if operations have to be in a section.
        self._sections = bool(program.core) and any(op.name in SECTIONS for op in program.function.walk())
        self._attrs: dict[tuple[int, int, int], dict[str, Attribute]] = {}

    def run(self) -> None:
        steps = self.program.root.steps
        if not steps:
            return
        # in the order of their waits, as for the choice of ids
        for flag in sorted((f for f in self.flags if f.loop is not None), key=lambda f: f.wait_at.begin):
            self._primes.setdefault(flag.prime_at, []).append(flag)
        for flag in self._primes.get(None, ()):
            self._put(self.before, steps[0], self._flag("pto.set_flag", flag, steps[0].op))
        self._sequence(self.program.root)
        for flag in self._primes.get(None, ()):
            self._put(self.after, steps[-1], self._flag("pto.wait_flag", flag, steps[-1].op))
        for block in {op.parent: None for op in (*self.before, *self.after)}:
            assert block is not None
            self._rebuild(block)

    def _sequence(self, seq: Seq) -> None:
        for step in seq.steps:
            for item in step.before:
                self._put(self.before, step, self._operation(item, step))
            for flag in self._primes.get(step, ()):
                self._put(self.before, step, self._flag("pto.set_flag", flag, step.op))
            for inner in step.seqs:
                self._sequence(inner)
            for item in step.after:
                self._put(self.after, step, self._operation(item, step))
            for flag in self._primes.get(step, ()):
                self._put(self.after, step, self._flag("pto.wait_flag", flag, step.op))

    def _operation(self, item: object, step: Step) -> Operation:
        if isinstance(item, Set):
            return self._flag("pto.set_flag", item.flag, item.flag.fronts[0].op)
        if isinstance(item, Wait):
            return self._flag("pto.wait_flag", item.flag, item.flag.steps[0].op)
        assert isinstance(item, Barrier)
        pipe = self.program.pipes[item.pipe] if item.pipe >= 0 else "ALL"
        return make("pto.barrier", item.served.op, (), {"pipe": EnumAttr("pipe", f"PIPE_{pipe}")})

    def _flag(self, name: str, flag: Flag, at: Operation) -> Operation:
        pipes = self.program.pipes
        key = (flag.src, flag.dst, flag.id)
        attrs = self._attrs.get(key)
        if attrs is None:
            attrs = self._attrs[key] = {
                "src_pipe": EnumAttr("pipe", f"PIPE_{pipes[flag.src]}"),
                "dst_pipe": EnumAttr("pipe", f"PIPE_{pipes[flag.dst]}"),
                "event_id": EnumAttr("event", f"EVENT_ID{flag.id}"),
            }
        return make(name, at, (), dict(attrs))

    def _put(self, where: dict[Operation, list[Operation]], step: Step, op: Operation) -> None:
        where.setdefault(step.op, []).append(op)

    def _rebuild(self, block: Block) -> None:
        made: list[Operation] = []
        for op in block.ops:
            made += self._guarded(op, self.before.get(op, []))
            made.append(op)
            made += self._guarded(op, self.after.get(op, []))
        for op in made:
            op.parent = block
        block.ops = made

    def _guarded(self, at: Operation, ops: list[Operation]) -> list[Operation]:
        """Return operations for one kind of core, in a section of it unless they are in one already."""
        if not ops or not self._sections:
            return ops
        assert at.parent is not None
        if any(SECTIONS.get(holder.name) == self.program.core for holder in enclosing(at.parent)):
            return ops
        section = make(f"pto.section.{self.program.core}", at)
        region = Region(section)
        section.regions = [region]
        block = region.add_block()
        for op in ops:
            block.append(op)
        return [section]


def add_tails(function: Operation) -> None:
    """Insert a barrier of all pipes before every return."""
    hint = function.attrs.get("pto.auto_sync_tail_hint")
    how = str(hint.value) if hint is not None else "barrier-all"
    for block in function.regions[0].blocks:
        end = block.ops[-1] if block.ops else None
        if end is not None and end.name == "func.return":
            attrs = {
                "pipe": EnumAttr("pipe", "PIPE_ALL"),
                TAIL: StrAttr("barrier-all" if how == "default" else how),
            }
            tail = make("pto.barrier", end, (), attrs)
            tail.parent = block
            block.ops.insert(len(block.ops) - 1, tail)
