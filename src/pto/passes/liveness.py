"""When the content of on-chip storage is needed: liveness over structured control flow, branches and calls.

Instructions that touch storage are numbered in program order, one function after the other: these are the
*steps*. At a step a storage is occupied if the instruction touches it, or if it holds content, perhaps
written before, that is perhaps read later. Two storages may share bytes if no step is common to both.

- Content comes with any write. It ends with the last read, or with a write that replaces all of it.
- Around a loop: what a turn may read before it has replaced it was needed all through the turns before.
- Storage allocated inside a loop is new in every turn, unless the loop hands it on.
- A call takes the steps of the functions it leads to: what the caller keeps is occupied at all of them.
- What two kinds of core touch is occupied throughout: their orders are not known to each other.
"""

from __future__ import annotations

from ..ir.core import Block, Operation, Region, Value, constant_of
from ..ir.types import TileBufType, ViewType
from ..isa.profiles import HIDDEN_SCRATCH_USERS, SCRATCH_OF_A2A3
from ..isa.row import Row
from .aliases import Aliases, Storage, allocates

Spans = list[tuple[int, int]]

#: Effects that touch the content of operands, and instructions that do so besides.
_TOUCHING = ("memory", "sync", "io")
_ALSO_TOUCHING = ("build_async_session", "set_quant_vector")
_NEVER_TOUCHING = ("tsync", "talias", "tfree")

#: Later instructions use the operand of these without naming it.
_KEEPING = ("set_quant_vector",)

#: Elements that an instruction replaces, as the table says it, where that is all that a reader of `dst` sees.
_WHOLE = ("dst valid region", "whole dst tile", "M x N of dst")
_NOT_WHOLE = ("mgather", "tgather", "tprefetch", "tpartadd", "tpartmul", "tpartmax", "tpartmin")

_SECTIONS = {"pto.section.cube": "cube", "pto.section.vector": "vector"}
_ONCE = ("pto.vecscope", "pto.strict_vecscope", "scf.execute_region")
_CUBE_ONLY = ("mat", "left", "right", "acc", "bias", "scaling", "scale_left", "scale_right")


class _Use:
    """How the instructions of a row touch operands: (index of the operand, reads, writes)."""

    __slots__ = ("keeps", "replaces", "roles")

    def __init__(self, row: Row, no_scratch: bool) -> None:
        touches = row.effect in _TOUCHING or row.name in _ALSO_TOUCHING
        self.roles: tuple[tuple[bool, bool], ...] = ()
        if touches and not row.name.startswith(_NEVER_TOUCHING):
            spare = no_scratch and row.name in SCRATCH_OF_A2A3
            self.roles = tuple(
                (False, False) if spare and o.role == "tmp" else (o.reads, o.writes) for o in row.operands
            )
        self.keeps = row.name in _KEEPING
        #: Number of the operand that is replaced as a whole, or -1.
        self.replaces = -1
        at = row.operand_index.get("dst", -1)
        if at >= 0 and row.operands[at].role == "out" and row.name not in _NOT_WHOLE:
            if row.domain.startswith(_WHOLE) or row.domain.startswith(("column 0 of dst", "row 0 of dst")):
                self.replaces = at


class _Node:
    """Steps that run one after the other: (step or -1, reads, writes, replaced, renewed) of each."""

    __slots__ = ("after", "before", "events", "next", "renewed", "replaced", "required", "written")

    def __init__(self) -> None:
        self.events: list[tuple[int, int, int, int, int]] = []
        self.next: list[_Node] = []
        self.after = 0  # live at its end
        self.before = 0  # perhaps written before it

    def close(self) -> None:
        """What the node as a whole does."""
        required = replaced = written = renewed = 0
        for _, reads, _, over, new in reversed(self.events):
            gone = over | new
            required = required & ~gone | reads
            replaced |= gone
        for _, _, writes, _, new in self.events:
            renewed |= new
            written = written & ~new | writes
        self.required, self.replaced, self.written, self.renewed = required, replaced, written, renewed


class Liveness:
    """Steps of functions that call each other, and when each of their storages is occupied."""

    def __init__(self, aliases: Aliases, kinds: dict[str, str] | None = None, least: bool = False) -> None:
        """`kinds` says which kind of core runs a function. `least` leaves out what does not matter: operands
        that the target takes as scratch and does not use, and reads of storage that nobody has written."""
        self.aliases = aliases
        self._least = least
        for storage in aliases.storages:
            storage.spans = []
        self.steps: list[Operation] = []
        #: Of each step: storages it reads and writes, those needed after it, its innermost loop (or -1).
        self.reads: list[int] = []
        self.writes: list[int] = []
        self.after: list[int] = []
        self.loops: list[int] = []
        #: Steps at which the target uses scratch of its own, see `HIDDEN_SCRATCH_OF_A2A3`.
        self.hidden: list[int] = []
        #: First step and step after the last of each function.
        self.ranges: dict[Operation, tuple[int, int]] = {}
        self._kinds = kinds or {}
        self._cores: dict[str, int] = {"cube": 0, "vector": 0}
        self._uses: dict[str, _Use] = {}
        #: (step, function) of every call.
        self.calls: list[tuple[int, Operation]] = []
        self._occupied: list[int] = []
        self._loop_count = 0
        for function in aliases.functions:
            self._function(function)
        self._follow_calls()
        self._fill_spans()

    # -- functions -------------------------------------------------------------------------------------

    def _function(self, function: Operation) -> None:
        first = len(self.steps)
        builder = _Builder(self, str(self._kinds.get(str(function.attr("sym_name")), "")))
        nodes, kept = builder.function(function)
        given = 0
        for arg in function.regions[0].blocks[0].args:  # belongs to the caller, who may need it later
            given |= self.aliases.of(arg)
        nodes[0].before = given
        kept |= given
        self._occupied.extend([0] * (len(self.steps) - first))
        self.after.extend([0] * (len(self.steps) - first))
        self._solve(nodes, kept)
        self.ranges[function] = (first, len(self.steps))

    def _solve(self, nodes: list[_Node], kept: int) -> None:
        """The steps at which each storage is occupied."""
        for node in nodes:
            node.close()
        changed = True
        while changed:  # what is needed after
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
        while changed:  # what has been written before
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
                    self._occupied[step] = seen | writes | (needed & content)
                needed = needed & ~(over | new) | reads

    def _follow_calls(self) -> None:
        """The functions that a function leads to, itself included."""
        called: dict[Operation, list[Operation]] = {f: [] for f in self.ranges}
        for function, (first, end) in self.ranges.items():
            called[function].extend(f for step, f in self.calls if first <= step < end)
        self._reach: dict[Operation, list[Operation]] = {}
        for function in self.ranges:
            seen = [function]
            for f in seen:
                seen.extend(g for g in called.get(f, ()) if g not in seen)
            self._reach[function] = seen

    def _fill_spans(self) -> None:
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
            if step in borders:  # runs do not go from one function into the next
                self._end(before, starts, step)
                before = 0
            for storage in self.aliases.members(mask & ~before):
                starts[storage.bit] = step
            self._end(before & ~mask, starts, step)
            before = mask
        self._end(before, starts, len(self._occupied))
        both = self._cores["cube"] & self._cores["vector"]
        for storage in storages:
            across = both >> storage.bit & 1 or self._foreign(storage)
            if (across and storage.spans) or storage.reserved:
                storage.spans = [(0, max(0, len(self.steps) - 1))]
            elif storage.bit in extra:
                storage.spans = joined([*storage.spans, *extra[storage.bit]])

    def _end(self, mask: int, starts: dict[int, int], step: int) -> None:
        for storage in self.aliases.members(mask):
            storage.spans.append((starts[storage.bit], step - 1))

    def _foreign(self, storage: Storage) -> bool:
        """Whether a core touches storage that belongs to the other kind."""
        owner = "cube" if storage.loc in _CUBE_ONLY else "vector"
        other = "vector" if owner == "cube" else "cube"
        return bool(self._cores[other] >> storage.bit & 1)

    # -- questions -------------------------------------------------------------------------------------

    def related(self, a: Operation, b: Operation) -> bool:
        """Whether two functions run in one launch: one function leads to both."""
        return a is b or any(a in reach and b in reach for reach in self._reach.values())

    def reach(self, function: Operation) -> list[Operation]:
        """The function and all that its calls lead to."""
        return self._reach.get(function, [])

    def hull(self, spans: Spans) -> Spans:
        """From the first to the last step, in each function."""
        out: Spans = []
        for first, end in sorted(self.ranges.values()):
            inside = [(a, b) for a, b in spans if first <= b and a < end]
            if inside:
                out.append((max(first, inside[0][0]), min(end - 1, max(b for _, b in inside))))
        return out


def joined(spans: Spans) -> Spans:
    """The same steps as runs that do not touch."""
    out: Spans = []
    for a, b in sorted(spans):
        if out and a <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(b, out[-1][1]))
        else:
            out.append((a, b))
    return out


class _Builder:
    """The steps of one function, as nodes of its flow of control."""

    def __init__(self, into: Liveness, kind: str) -> None:
        self.into = into
        self.aliases = into.aliases
        self.nodes: list[_Node] = []
        self.kind = kind if kind in ("cube", "vector") else ""
        self.loop = -1
        self.kept = 0

    def function(self, function: Operation) -> tuple[list[_Node], int]:
        """Nodes in program order, and what is needed after a return."""
        self.region(function.regions[0], self.node())
        for block in function.regions[0].blocks:
            if block.ops and block.ops[-1].name == "func.return":
                for value in block.ops[-1].operands:
                    self.kept |= self.aliases.of(value)
        return self.nodes, self.kept

    def node(self, *before: _Node) -> _Node:
        made = _Node()
        self.nodes.append(made)
        for other in before:
            other.next.append(made)
        return made

    def region(self, region: Region, entry: _Node) -> list[_Node]:
        """Nodes at which the region is left, from its entry on."""
        if len(region.blocks) == 1:
            return [self.block(region.blocks[0], entry)]
        starts: dict[Block, _Node] = {}
        ends: list[_Node] = []
        branches: list[tuple[_Node, Operation]] = []
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

    def block(self, block: Block, at: _Node) -> _Node:
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

    def structured(self, op: Operation, at: _Node) -> _Node:
        name = op.name
        if name == "scf.for" or name == "scf.while":
            return self.repeat(op, at)
        outside = self.kind
        self.kind = _SECTIONS.get(name, outside)
        ends: list[_Node] = []
        for region in op.regions:
            if region.blocks:
                ends.extend(self.region(region, self.node(at)))
        self.kind = outside
        if not (name in _ONCE or name == "scf.index_switch" or (name == "scf.if" and op.regions[-1].blocks)):
            ends.append(at)
        after = self.node(*ends)
        if op.row is None:  # an operation we do not know may run its regions again
            for end in ends:
                end.next.extend(n for n in at.next if n is not after)
        return after

    def repeat(self, op: Operation, at: _Node) -> _Node:
        outside, self.loop = self.loop, self.into._loop_count
        self.into._loop_count += 1
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

    def renew(self, op: Operation, at: _Node) -> None:
        """A loop comes to an allocation again: what it held is gone."""
        mask = self.aliases.of(op.results[0])
        if mask and not mask & self.aliases.carried:
            at.events.append((-1, 0, 0, 0, mask))

    def call(self, op: Operation, at: _Node) -> None:
        callee = self.aliases.callees.get(op)
        mask = made = 0
        for value in op.operands:
            mask |= self.aliases.of(value)
        for value in op.results:
            made |= self.aliases.of(value)
        kind = self.kind
        if callee is not None:
            called = self.into._kinds.get(str(callee.attr("sym_name")), "")
            self.kind = called if called in ("cube", "vector") else kind
        step = self.step(op, at, mask, mask | made, 0)
        self.kind = kind
        if callee is not None:
            self.into.calls.append((step, callee))

    def instruction(self, op: Operation, at: _Node) -> None:
        row = op.row
        if row is None:
            if not op.regions:
                mask = 0
                for value in op.operands:
                    mask |= self.aliases.of(value)
                if mask:
                    self.step(op, at, mask, mask, 0)
            return
        use = self.into._uses.get(row.full_name)
        if use is None:
            use = self.into._uses[row.full_name] = _Use(
                row, self.into._least and self.aliases.profile.isa != "a2a3"
            )
        if not use.roles:
            if row.name == "func.call":
                self.call(op, at)
            elif self.loop >= 0 and row.effect == "alloc" and allocates(op):
                self.renew(op, at)
            return
        names = self.aliases._names
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
            if row.name in HIDDEN_SCRATCH_USERS and self.aliases.profile.isa == "a2a3" and _lacks_scratch(op):
                self.into.hidden.append(len(self.into.steps) - 1)

    def step(self, op: Operation, at: _Node, reads: int, writes: int, replaced: int) -> int:
        into = self.into
        number = len(into.steps)
        into.steps.append(op)
        into.reads.append(reads)
        into.writes.append(writes)
        into.loops.append(self.loop)
        if self.kind:
            into._cores[self.kind] |= reads | writes
        at.events.append((number, reads, writes, replaced, 0))
        return number

    def whole(self, op: Operation, value: Value, mask: int) -> int:
        """The storage, if writing the valid region of `value` leaves nothing in it that is read later."""
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
            if row.domain.startswith("column 0") and type.v_col != 1:
                return 0
            if row.domain.startswith("row 0") and type.v_row != 1:
                return 0
            if row.name == "tload" and not _fills(op, storage):
                return 0
        return mask


def _lacks_scratch(op: Operation) -> bool:
    """Whether a row-wise instruction spreads its column of values in memory that the target takes."""
    values = op.get("src1")
    type = values.type if values is not None else None
    return op.get("tmp") is None and isinstance(type, TileBufType) and type.blayout != "row_major"


def _fills(op: Operation, storage: Storage) -> bool:
    """Whether a load is known to fill the valid region of its tile."""
    source = op.operands[0]
    type = storage.value.type
    if not isinstance(source.type, ViewType) or not isinstance(type, TileBufType):
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
    """Extents of a view: numbers, or the values that give them."""
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
