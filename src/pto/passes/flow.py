"""Control flow of a program: the storages that each instruction accesses, and the order of instructions.

Structured control flow, branches between blocks, sections and calls all become nodes with successors, in
program order, as liveness needs them. An instruction is a step if it accesses storage.
"""

from __future__ import annotations

from ..ir.core import Block, Operation, Region, Value, constant_of
from ..ir.types import TileBufType, ViewType
from ..isa.machine import SECTIONS
from ..isa.row import Row
from .aliases import Aliases, AllocatedStorage, allocates


class _OperandUse:
    """The access of a row's instructions to operands: (index of the operand, reads, writes).

    Scratch that is unused on column `isa` counts as not accessed.
    """

    __slots__ = ("keeps", "replaces", "roles")

    def __init__(self, row: Row, isa: str) -> None:
        self.roles: tuple[tuple[bool, bool], ...] = ()
        if row.uses_contents:
            used = row.scratch_on(isa) if isa else row.scratch
            self.roles = tuple(
                (False, False) if o.role == "tmp" and o.name not in used else (o.reads, o.writes)
                for o in row.operands
            )
        self.keeps = row.keeps
        #: The index of the operand that is overwritten completely, or -1.
        self.replaces = -1
        at = row.operand_index.get("dst", -1)
        if at >= 0 and row.operands[at].role == "out" and row.writes != "part":
            self.replaces = at


class Node:
    """Steps that run one after another: (step or -1, reads, writes, replaced, renewed) of each."""

    __slots__ = ("after", "before", "events", "next", "renewed", "replaced", "required", "written")

    def __init__(self) -> None:
        self.events: list[tuple[int, int, int, int, int]] = []
        self.next: list[Node] = []
        self.after = 0  # storages live at its end
        self.before = 0  # storages that may be written before it

    def close(self) -> None:
        """Summarize the events of the node."""
        required = replaced = written = renewed = 0
        for _, reads, _, over, new in reversed(self.events):
            gone = over | new
            required = required & ~gone | reads
            replaced |= gone
        for _, _, writes, _, new in self.events:
            renewed |= new
            written = written & ~new | writes
        self.required, self.replaced, self.written, self.renewed = required, replaced, written, renewed


class StorageFlow:
    """The steps of functions that call each other."""

    def __init__(self, aliases: Aliases, kinds: dict[str, str], least: bool) -> None:
        self.aliases = aliases
        self.steps: list[Operation] = []
        #: For each step: storages that it reads and writes, and its innermost loop (or -1).
        self.reads: list[int] = []
        self.writes: list[int] = []
        self.loops: list[int] = []
        #: (step, function) of every call.
        self.calls: list[tuple[int, Operation]] = []
        #: Steps at which the target uses its own scratch, see `Profile.own_tmp`.
        self.hidden: list[int] = []
        #: Storages that each kind of core accesses, where the program determines the kind.
        self.cores: dict[str, int] = {"cube": 0, "vector": 0}
        #: First step and end of each function; its nodes; storages live after it returns.
        self.ranges: dict[Operation, tuple[int, int]] = {}
        self.graphs: list[tuple[list[Node], int]] = []
        self.kinds = kinds
        self.isa = aliases.profile.isa
        self.least = least
        self.uses: dict[str, _OperandUse] = {}
        self.loop_count = 0
        for function in aliases.functions:
            first = len(self.steps)
            self.graphs.append(_Builder(self, function).build(function))
            self.ranges[function] = (first, len(self.steps))


class _Builder:
    """Builds the control flow graph of the steps of one function."""

    def __init__(self, into: StorageFlow, function: Operation) -> None:
        self.into = into
        self.aliases = into.aliases
        self.nodes: list[Node] = []
        self.kind = into.kinds.get(str(function.attr("sym_name")), "")
        self.loop = -1
        self.kept = 0

    def build(self, function: Operation) -> tuple[list[Node], int]:
        """Return the nodes in program order, and the storages live after a return."""
        entry = self.node()
        self.region(function.regions[0], entry)
        # the storage belongs to the caller, which may need it later
        for arg in function.regions[0].blocks[0].args:
            entry.before |= self.aliases.of(arg)
        self.kept |= entry.before
        for block in function.regions[0].blocks:
            if block.ops and block.ops[-1].name == "func.return":
                for value in block.ops[-1].operands:
                    self.kept |= self.aliases.of(value)
        return self.nodes, self.kept

    def node(self, *before: Node) -> Node:
        made = Node()
        self.nodes.append(made)
        for other in before:
            other.next.append(made)
        return made

    def region(self, region: Region, entry: Node) -> list[Node]:
        """Return the nodes at which the region is left, from its entry on."""
        if len(region.blocks) == 1:
            return [self.block(region.blocks[0], entry)]
        starts: dict[Block, Node] = {}
        ends: list[Node] = []
        branches: list[tuple[Node, Operation]] = []
        for block in region.blocks:
            starts[block] = start = self.node()
            end = self.block(block, start)
            if block.ops and block.ops[-1].successors:
                branches.append((end, block.ops[-1]))
            else:
                ends.append(end)
        if region.blocks:
            entry.next.append(starts[region.blocks[0]])
        for end, op in branches:
            end.next.extend(starts[s.block] for s in op.successors if s.block in starts)
        return ends

    def block(self, block: Block, at: Node) -> Node:
        for op in block.ops:
            if op.regions:
                at = self.structured(op, at)
            elif op.operands:
                self.instruction(op, at)
            elif op.name == "func.call":
                self.call(op, at)
            elif self.loop >= 0 and allocates(op):
                self.renew(op, at)
        return at

    def structured(self, op: Operation, at: Node) -> Node:
        name = op.name
        if name == "scf.for" or name == "scf.while":
            return self.repeat(op, at)
        outside = self.kind
        self.kind = SECTIONS.get(name, outside)
        ends: list[Node] = []
        for region in op.regions:
            if region.blocks:
                ends.extend(self.region(region, self.node(at)))
        self.kind = outside
        once = name == "scf.execute_region" or (op.row is not None and op.row.opens != "")
        if not (once or name == "scf.index_switch" or (name == "scf.if" and op.regions[-1].blocks)):
            ends.append(at)
        after = self.node(*ends)
        if op.row is None:  # an unknown operation may repeat its regions
            for end in ends:
                end.next.extend(n for n in at.next if n is not after)
        return after

    def repeat(self, op: Operation, at: Node) -> Node:
        outside, self.loop = self.loop, self.into.loop_count
        self.into.loop_count += 1
        head = self.node(at)
        ends = self.region(op.regions[0], head if op.name == "scf.while" else self.node(head))
        if op.name == "scf.while":
            body = self.node(*ends)
            leaving, ends = ends, self.region(op.regions[1], body)
        else:
            leaving = [head]
        for end in ends:
            end.next.append(head)
        self.loop = outside
        return self.node(*leaving)

    # -- operations ------------------------------------------------------------------------------------

    def renew(self, op: Operation, at: Node) -> None:
        """Record that an allocation in a loop runs again, so that the old content is lost."""
        mask = self.aliases.of(op.results[0])
        if mask and not mask & self.aliases.carried:
            at.events.append((-1, 0, 0, 0, mask))

    def call(self, op: Operation, at: Node) -> None:
        callee = self.aliases.callees.get(op)
        mask = made = 0
        for value in op.operands:
            mask |= self.aliases.of(value)
        for value in op.results:
            made |= self.aliases.of(value)
        kind = self.kind
        if callee is not None:
            called = self.into.kinds.get(str(callee.attr("sym_name")), "")
            self.kind = called if called in self.into.cores else kind
        step = self.step(op, at, mask, mask | made, 0)
        self.kind = kind
        if callee is not None:
            self.into.calls.append((step, callee))

    def instruction(self, op: Operation, at: Node) -> None:
        row = op.row
        if row is None:
            if not op.regions:
                mask = 0
                for value in op.operands:
                    mask |= self.aliases.of(value)
                if mask:
                    self.step(op, at, mask, mask, 0)
            return
        use = self.into.uses.get(row.full_name)
        if use is None:
            use = self.into.uses[row.full_name] = _OperandUse(row, self.into.isa if self.into.least else "")
        if not use.roles:
            if row.name == "func.call":
                self.call(op, at)
            elif self.loop >= 0 and row.effect == "alloc" and allocates(op):
                self.renew(op, at)
            return
        names = self.aliases.names
        reads = writes = replaced = 0
        if op.segments is None:
            for number, value in enumerate(op.operands):
                mask = names.get(value, 0)
                if mask:
                    read, write = use.roles[number]
                    if read:
                        reads |= mask
                    if write:
                        writes |= mask
                        if number == use.replaces:
                            replaced = self.whole(op, value, mask)
        else:
            at_operand = 0
            for number, count in enumerate(op.segments):
                read, write = use.roles[number]
                for value in op.operands[at_operand : at_operand + count]:
                    mask = names.get(value, 0)
                    if mask:
                        if read:
                            reads |= mask
                        if write:
                            writes |= mask
                            if number == use.replaces:
                                replaced = self.whole(op, value, mask)
                at_operand += count
        if reads or writes:
            self.step(op, at, reads, writes, replaced & ~reads)
            if use.keeps:
                self.kept |= reads
            if row.takes_own_scratch(self.into.isa) and _lacks_scratch(op):
                self.into.hidden.append(len(self.into.steps) - 1)

    def step(self, op: Operation, at: Node, reads: int, writes: int, replaced: int) -> int:
        into = self.into
        number = len(into.steps)
        into.steps.append(op)
        into.reads.append(reads)
        into.writes.append(writes)
        into.loops.append(self.loop)
        if self.kind in into.cores:
            into.cores[self.kind] |= reads | writes
        at.events.append((number, reads, writes, replaced, 0))
        return number

    def whole(self, op: Operation, value: Value, mask: int) -> int:
        """Return the storage if writing the valid region of `value` leaves no content that is read later."""
        if mask & (mask - 1):
            return 0
        storage = self.aliases.storages[mask.bit_length() - 1]
        if storage.partial or value.type != storage.value.type:
            return 0
        type = value.type
        if isinstance(type, TileBufType):
            if storage.viewed and (type.v_row != type.rows or type.v_col != type.cols):
                return 0
            row = op.row
            assert row is not None
            if row.part_with and op.get(row.part_with) is not None:
                return 0
            if row.writes == "column0" and type.v_col != 1:
                return 0
            if row.writes == "row0" and type.v_row != 1:
                return 0
            if row.filled_by and not _fills(op.get(row.filled_by), storage):
                return 0
        return mask


def _lacks_scratch(op: Operation) -> bool:
    """Return True if a row-wise instruction needs scratch to broadcast its column of values, and the target
    takes its own scratch for that.
    """
    values = op.get("src1")
    type = values.type if values is not None else None
    return op.get("tmp") is None and isinstance(type, TileBufType) and type.blayout != "row_major"


def _fills(source: Value | None, storage: AllocatedStorage) -> bool:
    """Return True if a window of memory is known to fill the valid region of a tile that is loaded from
    it."""
    type = storage.value.type
    if source is None or not isinstance(source.type, ViewType) or not isinstance(type, TileBufType):
        return False
    valid: list[int | Value | None] = [type.v_row, type.v_col]
    made = storage.op
    for n, name in enumerate(("valid_row", "valid_col")):
        if valid[n] is None:
            given = made.get(name)
            known = constant_of(given)
            valid[n] = known if isinstance(known, int) else given
    dims = _sizes(source)
    if all(isinstance(d, int) for d in (*dims, *valid)):
        total = 1
        for d in dims:
            total *= d  # type: ignore[operator]
        return total >= valid[0] * valid[1]  # type: ignore[operator]
    return [d for d in dims if d != 1] == [v for v in valid if v != 1]


def _sizes(view: Value) -> list[int | Value | None]:
    """Return the extents of a view: numbers, or the values for them."""
    type = view.type
    assert isinstance(type, ViewType)
    out: list[int | Value | None] = list(type.dims)
    made = view.op
    if made is not None and made.name == "pto.partition_view":
        sizes = made.group("sizes")
        for n, d in enumerate(out):
            if d is None and n < len(sizes):
                known = constant_of(sizes[n])
                out[n] = known if isinstance(known, int) else sizes[n]
    return out
