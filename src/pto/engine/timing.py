"""Recording a launch for its timeline: a watcher that keeps the instructions, their costs and their waits.

Costs follow from operands at issue (`isa/costs`), so data-dependent loops and extents count as they happen.
Contents of memory do not matter, so a launch may be *dry*.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from ..ir.core import Module, Operation, Value
from ..ir.types import VRegType
from ..isa.costs import GUESSED, Charge, Shape, charged, costs_of
from ..isa.costs.registers import VectorFunction
from ..isa.dtypes import DTYPES
from ..isa.row import Row
from ..isa.timing import Machine
from ..perf.timeline import trace as of
from ..perf.timeline.order import settle
from ..perf.timeline.timeline import Timeline
from ..perf.timeline.trace import CoreInfo, Range, Trace, TraceSite
from .memory import ConvTile, Pointer, Tile, View
from .watch import BARRIER, GIVE, INSTRUCTION, TAKE, VECSCOPE, Event, WatchedCore, Watcher

if TYPE_CHECKING:
    from .memory import Buffer
    from .result import LaunchResult
    from .watch import WatchedLaunch

_KINDS = {
    INSTRUCTION: of.WORK, VECSCOPE: of.WORK, GIVE: of.GIVE, TAKE: of.TAKE, BARRIER: of.BARRIER,
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z_]\w*")


class _Facts(NamedTuple):
    """The inputs of the costs of a row."""

    names: tuple[str, ...]  # operands that affect its cost, or are memory
    roles: dict[str, tuple[bool, bool]]  # (reads, writes), by operand
    attrs: tuple[str, ...]


def _facts(row: Row, isa: str) -> _Facts:
    costs = costs_of(row, isa)
    asked = set(_WORD.findall(" ".join(f"{c.busy} {c.after} {c.bytes} {c.flops} {c.when}" for c in costs)))
    places = ("tile", "conv_tile", "multi_tile", "view", "tensor_view", "ptr", "memref", "any")
    names = tuple(o.name for o in row.operands if o.name in asked or any(k in places for k in o.kinds))
    roles = {o.name: (o.reads, o.writes) for o in row.operands}
    if row.fifo == "pop" and "tile" not in roles:  # the tile is a result
        names, roles["tile"] = (*names, "tile"), (False, True)
    attrs = tuple(a.name for a in row.attrs if a.name in asked)
    return _Facts(names, roles, attrs)


#: The record of an event: core, pipe, site, kind, charge.
_Row = tuple[int, int, int, int, int]


class _Cost(NamedTuple):
    """The cost of an instruction, the parts of the cost, and the touched bytes."""

    charge: Charge
    made: tuple[Row, Mapping[str, object]]
    touched: tuple[Range, ...]


#: Bits of elements, read values (True if the previous iteration wrote them), written values.
_Flow = tuple[int, tuple[tuple[Value, bool], ...], tuple[Value, ...]]


class _Plan:
    """Facts about an instruction of a program, for all launches."""

    __slots__ = ("attrs", "costs", "flow", "names", "roles", "row", "rows", "site")

    def __init__(self, op: Operation, site: int, facts: _Facts) -> None:
        self.site = site
        self.row = op.row
        self.names, self.roles = facts.names, facts.roles
        self.attrs = {name: op.attr(name) for name in facts.attrs}
        #: For an instruction of a vecscope: bits of its elements, and the registers that it reads and writes.
        self.flow: _Flow | None = None
        #: Costs by operands.
        self.costs: dict[object, _Cost] = {}
        #: Records of events without operands, by core, pipe and kind.
        self.rows: dict[Any, _Row] = {}


class _TimedProgram:
    """Facts about the instructions of a program on the timed machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.plans: dict[Operation, _Plan] = {}
        self.sites: list[TraceSite] = []
        self.sources: dict[str, str] = {}
        self.pipes: dict[str, int] = {of.SCALAR: 0}
        self.facts: dict[str, _Facts] = {}  # by name of a row
        self.lines: dict[str, list[str]] = {}  # of sources

    def serves(self, machine: Machine) -> bool:
        mine = self.machine
        return mine is machine or (mine.isa == machine.isa and mine.values == machine.values)


#: The program of a module on its last timed machine, because the same kernel is launched often.
_programs: WeakKeyDictionary[Module, _TimedProgram] = WeakKeyDictionary()


class TimeRecorder(Watcher):
    """Makes a `Trace` of a launch, and a `Timeline` when it ends."""

    memory = False

    def __init__(self, machine: Machine, dry: bool = False) -> None:
        self.machine = machine
        self.trace = Trace()
        self.trace.dry = dry
        #: One row per event: columns of the trace when the launch has ended.
        self._rows: list[_Row] = []
        #: By instruction, core, pipe and operands: the record and the touched bytes.
        self._found: dict[object, tuple[_Row, tuple[Range, ...]]] = {}
        self._cores: dict[WatchedCore, int] = {}
        self._index = self.trace.numbers = [0]  # by number of an event
        self._read: set[Buffer] = set()  # arrays in global memory
        self._written: set[Buffer] = set()
        self._drains: dict[WatchedCore, Operation] = {}
        self._looking: dict[WatchedCore, int] = {}  # events that look at signals in global memory
        self._signals: dict[object, int] = {}
        self._scopes: dict[Event, VectorFunction] = {}
        self._meetings: dict[int, list[list[int]]] = {}  # by core, in order
        self._program: _TimedProgram
        self._plans: dict[Operation, _Plan]
        self._pipes: dict[str, int]
        self._launch: WatchedLaunch

    # -- the launch ------------------------------------------------------------------------------------

    def launch_started(self, launch: WatchedLaunch) -> None:
        self._launch = launch
        self.trace.capacity = launch.profile.capacity
        self.trace.in_order = bool(getattr(launch, "in_order", False))
        found = _programs.get(launch.module)
        if found is None or not found.serves(self.machine):
            found = _programs[launch.module] = _TimedProgram(self.machine)
        self._program = found
        self._plans, self._pipes = found.plans, found.pipes

    def core_started(self, core: WatchedCore) -> None:
        self._cores[core] = len(self.trace.cores)
        self.trace.cores.append(CoreInfo(core.index, core.name, core.kind, core.rank))

    def launch_ended(self, result: LaunchResult) -> None:
        if not result.ok:
            return
        trace, program = self.trace, self._program
        trace.sites, trace.sources = program.sites, program.sources
        trace.pipes = list(program.pipes)
        if self._rows:
            trace.core, trace.pipe, trace.site, trace.kind, trace.charge = map(
                list, zip(*self._rows, strict=True)
            )
        # bytes that the launch itself writes and reads again are still near
        trace.footprint = sum(b.data.size for b in self._read - self._written)
        seen = dict.fromkeys(self._meetings, 0)
        for e, kind in enumerate(trace.kind if seen else ()):
            if kind == of.MEET:
                core = trace.core[e]
                self._meetings[core][seen[core]].append(e)
                seen[core] += 1
        settle(trace, self.machine.isa)
        result.timeline = Timeline(trace, self.machine)

    # -- events ----------------------------------------------------------------------------------------

    def issued(self, event: Event) -> None:
        op = event.op
        plan = self._plans.get(op)
        if plan is None:
            plan = self._plans[op] = self._plan(op)
        rows = self._rows
        at = len(rows)
        self._index.append(at)
        core = self._cores[event.core]
        if event.what == INSTRUCTION and event.scope is None:
            args = event.args
            key = op, core, event.pipe, _key(args, plan.names)
            found = self._found.get(key)
            if found is None:
                charge, touched = self._charge(plan, args)
                row = core, self._pipe(event.pipe), plan.site, of.WORK, charge
                found = self._found[key] = row, touched
            rows.append(found[0])
            if found[1]:
                self.trace.touched[at] = found[1]
            return
        if event.scope is not None:
            self._inside(event.scope, plan, op)
            kind = of.INSIDE
        else:
            kind = _KINDS[event.what]
            if kind == of.BARRIER and not self._pipe(event.pipe):
                kind = of.MEET if event.kind == "grid" else of.DRAIN
                self._drains[event.core] = op
            elif event.kind == "signal":
                self._looking[event.core] = at
        same = plan.rows.get((core, event.pipe, kind))
        if same is None:
            same = core, self._pipe(event.pipe), plan.site, kind, 0
            plan.rows[core, event.pipe, kind] = same
        rows.append(same)

    def _pipe(self, name: str) -> int:
        """Return the number of a pipe; without a pipe, that of the scalar unit."""
        return self._pipes.setdefault(name, len(self._pipes)) if name else 0

    def took(self, event: Event) -> None:
        index = self._index
        found: list[tuple[int, str]] = []
        for given in event.waits:
            for one in given.of or (given,):
                found.append((index[one.number], given.kind))
        if found:
            self.trace.waits[index[event.number]] = found

    def barrier(self, core: WatchedCore, op: Operation, pipe: str) -> None:
        """Record an instruction that drains all pipes before it begins; this call precedes its event."""
        if pipe != "ALL" or self._drains.pop(core, None) is op:
            return
        if op not in self._plans:
            self._plans[op] = self._plan(op)
        self._rows.append((self._cores[core], 0, self._plans[op].site, of.DRAIN, 0))

    def met(self, cores: Sequence[WatchedCore]) -> None:
        group: list[int] = []
        self.trace.meets.append(group)
        for core in cores:
            self._meetings.setdefault(self._cores[core], []).append(group)

    def notified(self, core: WatchedCore, op: Operation, signal: View, value: int) -> None:
        self._signals[signal.buffer, signal.offset] = len(self._rows) - 1

    def awaited(self, core: WatchedCore, op: Operation, signal: View, wanted: int) -> None:
        giver = self._signals.get((signal.buffer, signal.offset))
        at = self._looking.pop(core, None)
        if giver is not None and at is not None:
            self.trace.waits.setdefault(at, []).append((giver, "signal"))

    # -- vecscopes -------------------------------------------------------------------------------------

    def _inside(self, scope: Event, plan: _Plan, op: Operation) -> None:
        """Record an instruction of a vecscope. Instructions that make masks use none of its units and cost
        nothing.
        """
        if plan.row is None or (plan.row.effect != "memory" and not _registers(op.results)):
            return
        function = self._scopes.get(scope)
        if function is None:
            function = self._scopes[scope] = VectorFunction()
        if plan.flow is None:
            plan.flow = _flow(op)
        function.add(plan.row, *plan.flow)

    def vecscope_ended(self, event: Event) -> None:
        function = self._scopes.pop(event, None) or VectorFunction()
        busy, fill = function.cycles
        after = self.machine.vector_start + fill
        evidence = function.evidence if self.machine.isa == "a5" else GUESSED  # the vector core of a5
        charge = Charge(busy, after, evidence, flops=64.0 * function.computed)
        at = self._index[event.number]
        self._rows[at] = (*self._rows[at][:4], self._number(charge))

    # -- instructions ------------------------------------------------------------------------------------

    def _plan(self, op: Operation) -> _Plan:
        span = self._launch.span(op)
        row = op.row
        name = row.name if row is not None else op.name
        program = self._program
        file, line, text = "", 0, ""
        if span is not None:
            source = span.source
            file, line = source.name, span.line
            lines = program.lines.get(file)
            if lines is None:
                program.sources[file] = source.text
                lines = program.lines[file] = source.text.splitlines()
            text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        facts = program.facts.get(name)
        if facts is None:
            facts = _facts(row, self.machine.isa) if row is not None else _Facts((), {}, ())
            program.facts[name] = facts
        program.sites.append(TraceSite(name, line, file, text))
        return _Plan(op, len(program.sites) - 1, facts)

    def _charge(self, plan: _Plan, args: Mapping[str, object]) -> tuple[int, tuple[Range, ...]]:
        row = plan.row
        if row is None:
            return 0, ()
        for name in plan.names:
            place = args.get(name)
            if isinstance(place, View | Pointer) and place.buffer.space == "gm":
                reads, writes = plan.roles[name]
                if reads:
                    self._read.add(place.buffer)
                if writes:
                    self._written.add(place.buffer)
        key = tuple([_whole(args.get(name)) for name in plan.names])
        cost = plan.costs.get(key)
        if cost is None:
            seen = {name: _seen(args[name]) for name in plan.names if name in args}
            made = row, {**plan.attrs, **seen}
            cost = _Cost(charged(row, self.machine, made[1]), made, _touched(row, plan, args))
            if _OTHER not in key:
                plan.costs[key] = cost
        return self._number(cost.charge, cost.made), cost.touched

    def _number(self, charge: Charge, made: tuple[Row, Mapping[str, object]] | None = None) -> int:
        self.trace.charges.append(charge)
        self.trace.made_of.append(made)
        return len(self.trace.charges) - 1


def _registers(values: Sequence[Value]) -> list[Value]:
    return [v for v in values if isinstance(v.type, VRegType)]


def _flow(op: Operation) -> _Flow:
    """Return the registers that an instruction reads and writes."""
    written = _registers(op.results)
    read = _registers(op.operands)
    bits = next((DTYPES[str(v.type.elem)].bits for v in (*written, *read)), 32)  # type: ignore[attr-defined]
    sources = [source for v in read for source in _sources(v)]
    return bits, tuple(sources), tuple(written)


def _sources(value: Value, carried: bool = False, depth: int = 8) -> list[tuple[Value, bool]]:
    """Return the instruction values that a value may be. For a loop argument, these are the initial value and
    the value of the previous iteration; for a result of a region, the value at its end."""
    if not depth:
        return []
    op = value.op
    if op is not None and not op.regions:
        return [(value, carried)]
    if op is not None:
        ends = [block.ops[-1].operands for region in op.regions for block in region.blocks if block.ops]
        return [
            s
            for end in ends
            if value.index < len(end)
            for s in _sources(end[value.index], carried, depth - 1)
        ]
    block: Any = value.owner
    loop = block.outer
    if loop is None or not block.ops:
        return []
    end = block.ops[-1].operands
    first = len(block.args) - len(end)  # the counter of a loop comes first
    at = value.index - first
    if not 0 <= at < len(end):
        return []
    begins = loop.operands[len(loop.operands) - len(end) + at]
    return [*_sources(begins, carried, depth - 1), *_sources(end[at], True, depth - 1)]


def _key(args: Mapping[str, object], names: tuple[str, ...]) -> tuple[object, ...]:
    """Return the facts that decide the cost and the bytes of an instruction."""
    key: list[object] = []
    for name in names:
        value: Any = args.get(name)
        kind: object = value.__class__
        if kind is Tile:
            key.append((value.address, value.v_row, value.v_col, value.rows, value.cols))
        elif kind is View:
            key.append((value.dims, value.buffer))
        elif kind is list:
            key.append(tuple([v if isinstance(v, int) else None for v in value]))
        elif kind is Pointer or kind is ConvTile:
            key.append((kind, value.buffer, value.dtype, getattr(value, "dims", None)))
        else:
            key.append(value if kind in (int, float, bool) else None)
    return tuple(key)


#: Stands for an operand of unknown kind, whose costs are not cached.
_OTHER = object()


def _whole(value: object) -> object:
    """Return the facts of an operand that decide its cost (`_seen`) and its bytes (`_bounds`) in all
    launches."""
    match value:
        case Tile():
            v = value
            size = v.buffer.space, v.address, v.size, v.name, v.pitch
            return Tile, v.dtype, v.rows, v.cols, v.v_row, v.v_col, v.loc, v.layout, size
        case View():
            return View, value.dtype, value.dims, value.layout, value.name, _array(value.buffer)
        case ConvTile():
            return ConvTile, value.dtype, value.dims, value.loc, value.layout
        case Pointer():
            return Pointer, value.dtype, value.name, _array(value.buffer)
        case list():
            return tuple([_whole(v) for v in value])
        case int() | float():
            return value.__class__, value
        case None | str():
            return value
        case _:
            return _OTHER


def _array(buffer: Buffer) -> tuple[str, str, int]:
    return buffer.space, buffer.name, buffer.data.size


def _touched(row: Row, plan: _Plan, args: Mapping[str, object]) -> tuple[Range, ...]:
    found: list[Range] = []
    for name in plan.names:
        reads, writes = plan.roles[name]
        place: Any = args.get(name)
        bounds = _bounds(place)
        if bounds is not None:
            if reads or row.accumulates == name:
                found.append(Range(*bounds, False, place.name))
            if writes:
                found.append(Range(*bounds, True, place.name))
    return tuple(found)


def _seen(value: object) -> object:
    """Return an operand in the form for costs."""
    match value:
        case Tile():
            return Shape(
                "tile", value.dtype, value.rows, value.cols, value.v_row, value.v_col, value.loc, value.layout
            )
        case View():
            rows = value.dims[-2] if len(value.dims) > 1 else 1
            layout = value.layout or ""
            return Shape(
                "view", value.dtype, rows, value.dims[-1] if value.dims else 1, dims=value.dims, layout=layout
            )
        case ConvTile():
            return Shape("tile", value.dtype, dims=value.dims, loc=value.loc, layout=value.layout)
        case Pointer():
            return Shape("ptr", value.dtype, loc=value.buffer.space)
        case int() | float():
            return Shape("scalar", const=value)
        case list():
            return [_seen(v) for v in value]
        case _:
            return value


def _bounds(place: object) -> tuple[str, int, int] | None:
    """Return the buffer of a place and its bytes: a whole tile, or a whole array in global memory."""
    if isinstance(place, Tile) and place.address is not None:
        low, high = place.address, place.address + place.size
        if place.pitch != place.shape:
            low, high = place.region(*place.shape).bounds
        return place.buffer.space, low, high
    if isinstance(place, View | Pointer) and place.buffer.space == "gm":
        return f"gm {place.buffer.name}", 0, place.buffer.data.size
    if isinstance(place, Pointer):
        return place.buffer.space, 0, place.buffer.data.size
    return None
