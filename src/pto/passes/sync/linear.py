"""A function as the steps that matter for synchronisation, in program order, for one kind of core.

Instructions that use a pipe are numbered; loops and branches contain sequences of steps. Sections of the
other kind of core are left out; sections of this kind are inlined. A vecscope is one instruction of PIPE_V.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...ir.core import Block, Operation, Region, constant_of
from ...ir.facts import fifo_end, fifo_use, function_of, pipe_of
from ...isa.kinds import pipe_of_kind
from ...isa.machine import ONLY_ON, OVERLAPPING_PIPES, SECTIONS
from ...isa.profiles import Profile

#: Kinds of step.
OP, LOOP, BRANCH, BLOCKS, CALL, SYNC = "op", "loop", "branch", "blocks", "call", "sync"
ALL, OUTSIDE = "ALL", "OUTSIDE"
#: FIFO operations that access memory.
_FIFO = ("push", "pop", "free")

#: Flags of a function: pipes and event ids; None: unknown.
Used = frozenset[tuple[str, str, int]] | None


class Seq:
    """Consecutive steps: a block, or several blocks that always follow each other."""

    __slots__ = ("depth", "owner", "steps")

    def __init__(self, owner: Step | None) -> None:
        self.owner = owner
        self.steps: list[Step] = []
        self.depth: int = owner.seq.depth + 1 if owner is not None else 0

    @property
    def mask(self) -> int:
        found = 0
        for step in self.steps:
            found |= step.mask
        return found


class Step:
    """An instruction (`number`, `pipe`), or a structure with sequences of them (`mask`: their bits).

    `before` and `after` have the flags and barriers placed around it; `waits` and `sets` the flags that were
    made for an instruction, independent of their position.
    """

    __slots__ = (
        "after", "at", "before", "begin", "end", "kind", "mask", "number", "op", "pipe", "runs", "seq",
        "seqs", "sets", "stalls", "waits",
    )  # fmt: skip

    def __init__(self, kind: str, op: Operation, seq: Seq) -> None:
        self.kind = kind
        self.op = op
        self.seq = seq
        self.at = len(seq.steps)
        self.seqs: list[Seq] = []
        self.mask = 0
        self.number = -1
        self.pipe = ""
        self.runs = False  # a loop that runs at least once; a branch with all cases
        self.stalls = False  # all pipes wait for it
        self.begin = self.end = 0  # positions in the order of the program
        self.before: list[object] = []
        self.after: list[object] = []
        self.waits: list[object] = []
        self.sets: list[object] = []

    def __repr__(self) -> str:
        return f"<{self.kind} {self.number if self.kind == OP else ''} {self.op.name}>"


class CoreProgram:
    """The steps of one function on one kind of core."""

    def __init__(
        self,
        function: Operation,
        core: str,
        profile: Profile,
        working: Mapping[str, Used] = MappingProxyType({}),
    ) -> None:
        self.function = function
        self.core = core  # "cube", "vector", or "" if undeclared
        self.profile = profile
        self.ops: list[Step] = []
        self.loops: list[Step] = []  # inner before outer
        self.pipes: list[str] = []
        self.calls: list[Step] = []
        self._working = working  # functions that use pipes
        self._numbers: dict[str, int] = {}
        self.root = Seq(None)
        self.elements = 0  # number of elements, as PTOAS counts them
        #: Stands for the pipes of called functions: only barriers of all pipes complete their instructions.
        self.outside = -1
        region = function.regions[0]
        if len(region.blocks) > 1:
            holder = Step(BLOCKS, function, self.root)
            if self._blocks(region, holder):
                self.root.steps.append(holder)
        elif region.blocks:
            self._block(region.blocks[0], self.root)
        self.own: list[int] = [0] * len(self.pipes)  # instructions of each pipe
        for step in self.ops:
            self.own[self._numbers[step.pipe]] |= 1 << step.number
        #: The pipe of each instruction. Instructions on several pipes have a pipe of their own, without
        #: flags.
        self.pipe_of = [self._numbers[s.pipe] for s in self.ops]
        self.several = self._numbers.get(ALL, -1)
        overlapping = OVERLAPPING_PIPES[profile.isa]
        self.overlapping = [n for n, pipe in enumerate(self.pipes) if pipe in overlapping]
        everything = (1 << len(self.ops)) - 1
        #: Instructions that are not ordered by being on the same pipe.
        self.others = [
            everything if pipe in overlapping or pipe in (ALL, OUTSIDE) else everything & ~self.own[n]
            for n, pipe in enumerate(self.pipes)
        ]

    def pipe(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.pipes)
            self.pipes.append(name)
        return found

    def uses(self, call: Step, flag: tuple[int, int, int]) -> bool:
        """Return True if a called function uses a flag."""
        used = self._working[str(call.op.attr("callee"))]
        return used is None or (self.pipes[flag[0]], self.pipes[flag[1]], flag[2]) in used

    # -- steps -----------------------------------------------------------------------------------------

    def _block(self, block: Block, seq: Seq) -> None:
        for op in block.ops:
            if op.regions:
                self._structure(op, seq)
            elif op.row is not None:
                self._plain(op, seq)

    def _structure(self, op: Operation, seq: Seq) -> None:
        name = op.name
        section = SECTIONS.get(name)
        if section is not None:
            if self.core in ("", section):
                self._inline(op, seq)
            return
        if op.row is not None and op.row.opens == "vec":
            self._add(op, seq, "V")
            return
        if name == "scf.for":
            step = self._container(LOOP, op, seq, op.regions)
            if step is not None:
                low, high = constant_of(op.operands[0]), constant_of(op.operands[1])
                step.runs = isinstance(low, int) and isinstance(high, int) and low < high
        elif name == "scf.while":
            self._container(LOOP, op, seq, op.regions)
        elif name in ("scf.if", "scf.index_switch"):
            step = self._container(BRANCH, op, seq, [r for r in op.regions if r.blocks])
            if step is not None:
                step.runs = name != "scf.if" or len(step.seqs) > 1
        elif name == "scf.execute_region" and len(op.regions[0].blocks) == 1:
            self._inline(op, seq)
        else:
            self._container(BLOCKS, op, seq, op.regions)

    def _inline(self, op: Operation, seq: Seq) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._block(block, seq)

    def _container(
        self, kind: str, op: Operation, seq: Seq, regions: list[Region] | tuple[Region, ...]
    ) -> Step | None:
        if kind != BLOCKS and any(len(r.blocks) > 1 for r in regions):
            kind = BLOCKS
        step = Step(kind, op, seq)
        first = len(self.ops)
        self.elements += 2 if kind == LOOP else 5
        if kind == BLOCKS:
            for region in regions:
                self._blocks(region, step)
        else:
            for region in regions:
                inner = Seq(step)
                step.seqs.append(inner)
                for block in region.blocks:
                    self._block(block, inner)
        return self._close(step, first)

    def _blocks(self, region: Region, step: Step) -> bool:
        first = len(self.ops)
        for block in region.blocks:
            inner = Seq(step)
            step.seqs.append(inner)
            self._block(block, inner)
        return self._close(step, first, False) is not None

    def _close(self, step: Step, first: int, keep: bool = True) -> Step | None:
        """Add a structure if it contains steps."""
        if not any(s.steps for s in step.seqs):
            return None
        step.mask = (1 << len(self.ops)) - (1 << first)
        if keep:
            step.at = len(step.seq.steps)
            step.seq.steps.append(step)
            if step.kind == LOOP:
                self.loops.append(step)
        return step

    def _plain(self, op: Operation, seq: Seq) -> None:
        row = op.row
        assert row is not None
        name = op.name
        if name == "func.call":
            if str(op.attr("callee")) in self._working:
                step = Step(CALL, op, seq)
                seq.steps.append(step)
                self.calls.append(step)
                self.outside = self.pipe(OUTSIDE)
            return
        if row.effect in ("memory", "io"):
            if row.uses_contents:
                self._add(op, seq, "S" if op.results else pipe_of(op, self.profile) or "S")
        elif row.family == "signal" or name == "pto.wait_async_event":
            self._add(op, seq, "S")
        elif row.effect == "sync":
            self._sync(op, seq)

    def _sync(self, op: Operation, seq: Seq) -> None:
        name, row = op.name, op.row
        assert row is not None
        if row.fifo in _FIFO:
            pipe = self._fifo_pipe(op)
            if pipe:
                step = self._add(op, seq, pipe)
                step.stalls = pipe == "S" and row.fifo == "pop"
            return
        drained = ""
        if row.order == "barrier":
            drained = pipe_of(op, self.profile)
        elif name == "pto.tsync":
            drained = pipe_of_kind(str(kind), self.profile.isa) if (kind := op.attr("op")) is not None else ""
        elif name == "pto.syncall":
            drained = ALL
        if drained:
            step = Step(SYNC, op, seq)
            step.pipe = drained.removeprefix("PIPE_")
            if step.pipe != ALL:
                self.pipe(step.pipe)
            seq.steps.append(step)

    def _fifo_pipe(self, op: Operation) -> str:
        """Return the pipe on which a FIFO instruction accesses memory."""
        assert op.row is not None
        if op.row.fifo == "free":
            return free_pipe(op, self.profile, self.core)
        if op.row.fifo == "push" and on_view(op):  # publishes the writes of the core's pipe to the FIFO
            return "FIX" if self.core == "cube" else "MTE3"
        return pipe_of(op, self.profile)

    def _add(self, op: Operation, seq: Seq, pipe: str) -> Step:
        step = Step(OP, op, seq)
        if self.core and ONLY_ON.get(pipe, self.core) != self.core:
            return step  # outside of sections, for the other kind of core
        step.number = len(self.ops)
        step.mask = 1 << step.number
        step.pipe = pipe
        self.pipe(pipe)
        self.ops.append(step)
        seq.steps.append(step)
        self.elements += 1
        return step


def works(op: Operation) -> bool:
    """Return True if an operation accesses memory on a pipe."""
    row = op.row
    if row is None:
        return False
    if row.effect in ("memory", "io"):
        return row.uses_contents
    return row.family == "signal" or row.fifo in _FIFO


def on_view(op: Operation) -> bool:
    """Return True if a FIFO instruction has an entry in global memory instead of a tile."""
    assert op.row is not None
    value = op.results[0] if op.results else op.get("entry" if op.row.fifo == "free" else "tile")
    return value is not None and value.type.kind in ("view", "tensor_view")


def in_global_memory(op: Operation) -> bool:
    """Return True if the slots of a FIFO lie in global memory; then a pop copies them."""
    assert op.row is not None
    handle = op.get("pipe_handle") if "pipe_handle" in op.row.operand_index else None
    if handle is not None:
        return handle.op is None or handle.op.name != "pto.initialize_l2l_pipe"
    function = function_of(op)
    for other in function.walk() if function is not None else ():
        if fifo_use(other) == "open" and fifo_end(other):
            if (other.attr("id") or 0) == (op.attr("id") or 0):
                return bool(other.group("gm_slot_buffer") or other.group("gm_slot_tensor"))
    return True


def copies(op: Operation, profile: Profile) -> bool:
    """Return True if a pop copies its slot and frees it at once."""
    does = profile.behaviour
    return not on_view(op) and does.copying_pops and (not does.buffer_slots or in_global_memory(op))


def free_pipe(op: Operation, profile: Profile, core: str) -> str:
    """Return the pipe that frees a slot; "" if the pop has freed it."""
    if on_view(op):
        return "MTE2"
    if copies(op, profile) or in_global_memory(op):
        return ""
    return "MTE1" if core == "cube" else "V"
