"""A paused launch: the core, the next operation and its operands; names, calls, loops, lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ...diag import Diagnostic, Source, Span, did_you_mean
from ...ir.core import Block, Operation, Value
from ...ir.facts import enclosing
from ...ir.types import ScalarType, Type
from ..elements import Array
from ..reference.code import Code
from ..reference.core import Core
from ..watch import Event, Given
from . import values
from .expressions import Expression, ExpressionError, Index
from .points import Breakpoint, Watchpoint, line_of

if TYPE_CHECKING:
    from ..reference.grid import Grid

#: Reasons of a stop.
ENTRY, BREAK, WATCH, STEP, PAUSE, FINDING, FAULT, STUCK, END = (
    "entry", "breakpoint", "watchpoint", "step", "pause", "finding", "fault", "stuck", "end",
)  # fmt: skip
#: The stops with nothing more to execute.
OVER = (FAULT, STUCK, END)


class Named(NamedTuple):
    """A value of the program: its name, its current value, its type; `stale` if it was computed in an earlier
    iteration, before the operations in front of the stop."""

    name: str
    value: Any
    type: Type
    stale: bool = False


class StackFrame(NamedTuple):
    """An active function: its current operation and its registers."""

    code: Code
    op: Operation
    regs: list[Any]


class Write(NamedTuple):
    """A write to a watched element, with the values before and after."""

    watch: Watchpoint
    what: str
    old: object
    new: object
    more: int = 0  # number of further written elements


def label(core: Core) -> str:
    """Return the text for a core."""
    grid: Grid = core.grid
    parts = [f"rank {core.rank}"] if grid.ranks > 1 else []
    if grid.blocks > 1:
        parts.append(f"block {core.block}")
    if core.name:
        parts.append(core.name)
    return ", ".join(parts) or "core 0"


def number(core: Core) -> int:
    """The number of a core over the whole launch."""
    return core.index * len(core.grid.roles) + core.cluster.cores.index(core)


def at_of(core: Core) -> Operation | None:
    """Return the next operation of the scalar unit of a core; None if it has ended, or not begun."""
    if core.done or core.code is None or core.pc >= len(core.code.ops):
        return None
    return core.code.ops[core.pc]


_LARGEST = 16 << 20  # limit for the bytes of a displayed source


def text_of(source: Source) -> Source:
    """Return the text of a file; read it if only its name is known."""
    if source.text:
        return source
    try:  # a program can name any file, even an endless one
        if os.path.isfile(source.name) and os.path.getsize(source.name) <= _LARGEST:
            with open(source.name, encoding="utf-8", errors="replace") as f:
                return Source(source.name, f.read())
    except (OSError, ValueError):  # ValueError: a name with a zero byte
        pass
    return source


class Stop:
    """The position of a paused launch. `moment` counts the steps of cores; a session can go back to it."""

    def __init__(
        self,
        reason: str,
        moment: int,
        grid: Grid,
        core: Core,
        op: Operation | None,
        event: Event | None = None,
        sign: str = "%",
    ) -> None:
        self.reason = reason
        self.moment = moment
        self.grid = grid
        self.at = core
        self.op = op
        self.event = event
        self.breakpoints: list[Breakpoint] = []
        self.writes: list[Write] = []
        self.diagnostic: Diagnostic | None = None
        self.note = ""
        #: True if the operation is done: writes and findings stop afterwards.
        self.after = False
        self._gone = ""  # the result, once the launch has gone on
        #: Prefix of names; C++ has none.
        self.sign = sign

    # -- position --------------------------------------------------------------------------------------

    @property
    def core(self) -> str:
        return label(self.at)

    @property
    def block(self) -> int:
        return self.at.block

    @property
    def rank(self) -> int:
        return self.at.rank

    @property
    def pipe(self) -> str:
        """Return the pipe that will execute the operation; S is the scalar unit."""
        return self.event.pipe if self.event is not None else "S"

    @property
    def name(self) -> str:
        return self.grid.words.operation(self.op) if self.op is not None else ""

    @property
    def call(self) -> str:
        """Return the operation with its own parameters, as flags and pipes."""
        return self.grid.words.call(self.op) if self.op is not None else ""

    @property
    def file(self) -> str:
        return self.op.source.name if self.op is not None and self.op.source is not None else ""

    @property
    def line(self) -> int:
        return line_of(self.op) if self.op is not None else 0

    @property
    def source_line(self) -> str:
        """Return the source line."""
        if self.op is None or self.op.source is None:
            return ""
        source = text_of(self.op.source)
        return source.line(self.line) if 0 < self.line <= source.lines and source.text else ""

    @property
    def place(self) -> str:
        """`k.pto:14`."""
        if self.op is None or self.op.source is None:
            return f"{self.name}, which has no source location" if self.op is not None else ""
        return f"{os.path.basename(self.file)}:{self.line}"

    @property
    def over(self) -> bool:
        return self.reason in OVER

    @property
    def queued(self) -> bool:
        """Return True if the instruction had to wait in its pipe: the scalar unit may be far ahead."""
        return self.event is not None and self.at.at_work is not None and self.at.at_work.event is self.event

    def leave(self) -> None:
        """Keep only the position: the launch goes on."""
        self._gone = self._gone or self.headline()

    def _stands(self) -> None:
        if self._gone:
            raise ExpressionError("this stop is over, because the launch has gone on")

    def on(self, core: Core) -> Stop:
        """Return the same moment, seen from another core."""
        if core is self.at:
            return self
        return self.at_op(at_of(core), core)

    def at_op(self, op: Operation | None, core: Core | None = None) -> Stop:
        """Return the same moment, seen from another operation."""
        return Stop(self.reason, self.moment, self.grid, core or self.at, op, sign=self.sign)

    def spelled(self, name: str) -> str:
        """Return a name in the spelling of users."""
        if name.startswith("$"):
            return name
        return f"{self.sign}{name}" if self.sign or name.isidentifier() else f"'{name}'"

    def shown(self, found: Named, hex: bool = False) -> str:
        """Return a value in one line."""
        return self.grid.words.plain(values.line(found.value, found.type, hex))

    # -- names -----------------------------------------------------------------------------------------

    @property
    def frames(self) -> list[StackFrame]:
        """Return the active functions, innermost first."""
        self._stands()
        core = self.at
        if self.op is None or core.code is None:
            return []
        found = [StackFrame(core.code, self.op, core.regs)]
        for code, pc, regs, _ in reversed(core.frames):
            found.append(StackFrame(code, code.ops[pc - 1], regs))
        return found

    def names(self, frame: int = 0) -> Iterator[Named]:
        """Yield the values of a function that its operation can use, nearest first."""
        frames = self.frames
        if frame >= len(frames):
            return
        code, op, regs = frames[frame]
        operands = self._operands() if frame == 0 else {}
        seen: set[str] = set()
        for value, later in visible(op):
            slot = code.slots.get(value)
            if not value.name or value.name in seen or (slot is None and value not in operands):
                continue
            seen.add(value.name)
            held = regs[slot] if slot is not None and slot < len(regs) else None
            now = operands.get(value, held)
            yield Named(value.name, now, value.type, later and now is not None)
        for name, given, type in self.grid.arguments(self.rank):
            if name not in seen:
                yield Named(name, given, type)

    def _operands(self) -> dict[Value, object]:
        """Return operands of the instruction as they were when it was issued."""
        event = self.event
        if event is None or event.op.row is None:
            return {}
        found: dict[Value, object] = {}
        counts: dict[str, int] = {}
        for declared, value in event.op.named():
            n = counts[declared.name] = counts.get(declared.name, -1) + 1
            given = event.args.get(declared.name)
            if given is not None:
                found[value] = given[n] if declared.variadic and n < len(given) else given
        return found

    def find(self, name: str) -> Named:
        """Return a value by its name, also from callers of the function."""
        if name.startswith("$"):
            own = {"$block": self.block, "$rank": self.rank, "$sub": self.at.sub, "$core": number(self.at)}
            if name in own:
                return Named(name, own[name], _INDEX)
            roles = {f"${role}": found for role, found in self.shown_operands() if role}
            if name in roles:
                return roles[name]
            raise ExpressionError(f"no {name} here; there are {', '.join([*roles, *own])}")
        known: list[str] = []
        for frame in range(len(self.frames)):
            for found in self.names(frame):
                if found.name == name:
                    return found
                known.append(found.name)
        hint = did_you_mean(name, known)
        raise ExpressionError(f"no value {self.spelled(name)} here" + (f"; {hint}" if hint else ""))

    @property
    def operands(self) -> dict[str, Any]:
        """Return operands of the operation at the stop by name: numbers, and arrays of the elements of tiles,
        views and registers; None without an address, or if very large."""
        found: dict[str, object] = {}
        for name, value in self.shown_operands():
            try:
                found[name] = self._array(value)
            except ExpressionError:
                found[name] = None
        return found

    def shown_operands(self) -> list[tuple[str, Named]]:
        """Return operands of the operation: the name from its row, and the value."""
        op = self.op
        if op is None or self.reason == END:
            return []
        held = self._operands()
        frames = self.frames
        code, _, regs = frames[0] if frames else (None, None, [])
        found: list[tuple[str, Named]] = []
        pairs = [(d.name, v) for d, v in op.named()] if op.row is not None else []
        if not pairs:
            pairs = [("", v) for v in op.operands]
        for name, value in pairs:
            slot = code.slots.get(value) if code is not None else None
            now = held.get(value, regs[slot] if slot is not None and slot < len(regs) else None)
            found.append((name, Named(value.name or "?", now, value.type)))
        return found

    # -- reading ---------------------------------------------------------------------------------------

    def read(self, text: str) -> object:
        """Return the value of an expression: a number, or an array of elements."""
        return self._array(self.evaluate(Expression(text)))

    def evaluate(self, expression: Expression) -> Any:
        """Return a number or, for a name without a number, its value and type."""
        if expression.index is None:
            return expression.number(self._number)
        found = self.find(expression.index.name)
        if not expression.index.slices:
            return found
        return self._part(found, expression.index)

    def condition(self, expression: Expression) -> bool:
        return bool(expression.number(self._number))

    def _number(self, index: Index) -> Any:
        found = self.find(index.name)
        if found.value is None:
            raise ExpressionError(f"{self.spelled(index.name)} is not computed yet")
        if not isinstance(found.value, values.PLACES):
            if index.slices:
                raise ExpressionError(f"{self.spelled(index.name)} has no elements")
            return found.value
        matrix = values.ValueMatrix(found.value, found.type)
        row, col = matrix.element(index.slices)
        return matrix.numbers(range(row, row + 1), range(col, col + 1))[0, 0].item()

    def _part(self, found: Named, index: Index) -> Any:
        if found.value is None:
            raise ExpressionError(f"{self.spelled(index.name)} is not computed yet")
        if not isinstance(found.value, values.PLACES):
            raise ExpressionError(f"{self.spelled(index.name)} has no elements")
        matrix = values.ValueMatrix(found.value, found.type)
        rows, cols = matrix.part(index.slices)
        if all(s.single for s in index.slices) and len(rows) == len(cols) == 1:
            return matrix.numbers(rows, cols)[0, 0].item()
        if len(rows) * len(cols) > _LARGEST:
            raise ExpressionError(f"a part of {len(rows)}x{len(cols)} elements: name a smaller part")
        return matrix.numbers(rows, cols).copy()

    def _array(self, found: object) -> Any:
        if not isinstance(found, Named):
            return found
        if isinstance(found.value, values.PLACES):
            matrix = values.ValueMatrix(found.value, found.type)
            rows, cols = (range(n) for n in matrix.shape)
            if len(rows) * len(cols) > _LARGEST:
                raise ExpressionError(
                    f"{self.spelled(found.name)} has {len(rows)}x{len(cols)} elements: name a part"
                )
            try:
                got: Array = matrix.numbers(rows, cols).copy()
            except ExpressionError:
                return None  # it has no address yet
            return got.reshape(matrix.dims) if len(matrix.dims) != 2 else got
        return found.value

    # -- words -----------------------------------------------------------------------------------------

    @property
    def stack(self) -> list[tuple[str, str, str]]:
        """Return the active functions, innermost first: name, place, and the operation there. For C++, these
        are the functions that the call returns to."""
        words = self.grid.words
        calls = self.grid.callers(self.op) if self.op is not None else ()
        if calls:
            return [
                (
                    words.function(name),
                    f"{os.path.basename(at.source.name)}:{at.line}",
                    "" if n else self.call,
                )
                for n, (name, at) in enumerate(calls)
            ]
        return [
            (words.function(frame.code.name), at.place, at.name)
            for frame in self.frames
            for at in (self.at_op(frame.op),)
        ]

    @property
    def loops(self) -> list[tuple[str, int, int, Operation]]:
        """Return counters of loops around the operation, outermost first: name, value, bound, loop."""
        found: list[tuple[str, int, int, Operation]] = []
        for code, op, regs in reversed(self.frames):
            mine = [(o, code.counters[o]) for o in enclosing(op) if o in code.counters]
            for loop, (name, slot, bound) in reversed(mine):
                if regs[slot] is not None and regs[bound] is not None and loop is not op:
                    found.append((name, regs[slot], regs[bound], loop))
        return found

    def headline(self) -> str:
        """Return the reason and the place in one line."""
        if self._gone:
            return self._gone
        where = self.core if self.event is None or self.pipe == "S" else f"{self.core}, PIPE_{self.pipe}"
        loops = ", ".join(f"%{name} = {value}" for name, value, _, _ in self.loops)
        if (
            self.queued
            and self.at.at_work is not None
            and self.event is not None
            and self.event.scope is None
        ):
            loops = self.at.at_work.indices or ""  # the scalar unit may be further
        if self.reason == END:
            return self.note or "the launch has ended"
        how = "in" if self.over else "after" if self.after else "before"
        what = f"{how} {self.call} at {self.place}"
        more = f" ({loops})" if loops else ""
        return f"{self._why()}{where} {what}{more}"

    def _why(self) -> str:
        if self.reason == BREAK:
            hits = [
                f"{b.number} (hit {b.hits})" if b.hits > 1 else str(b.number)
                for b in self.breakpoints
                if not b.temporary
            ]
            return f"Breakpoint {', '.join(hits)}: " if hits else ""
        return {
            WATCH: f"Watchpoint {', '.join(str(w.watch.number) for w in self.writes)}: ",
            FINDING: "Found: ",
            FAULT: "Fault: ",
            STUCK: "Stuck: ",
            PAUSE: "Interrupted: ",
        }.get(self.reason, "")

    def report(self, hex: bool = False) -> list[str]:
        """Return the text of a stop: the line, operands with their first elements, writes or findings."""
        out = [self.headline()]
        if self.note and self.reason != END:
            out.append(f"  {self.note}")
        for w in self.writes:
            more = f", and {w.more} more" if w.more else ""
            out.append(f"  {w.what}: {values.scalar(w.old)} -> {values.scalar(w.new)}{more}")
        if self.diagnostic is not None:
            d = self.diagnostic
            out.append(f"  {d.severity}[{d.code}]: {d.message}")
            out += [f"  note: {text}{_at(span)}" for text, span in d.notes[:12]]
            if d.help:
                out.append(f"  help: {d.help}")
        if self.source_line:
            out.append(f"{self.line}\t{self.source_line}")
        if self.reason == END:
            return out
        if self.event is not None:
            out += [f"  took {_given(g)}" for g in self.event.waits]
        if self.queued and self.at.interval is None and at_of(self.at) is not None:
            ahead = self.at_op(at_of(self.at))
            out.append(f"  it had to wait; the scalar unit is at {ahead.call}, {ahead.place}")
        for name, found in self.shown_operands():
            head = f"{name} = {self.spelled(found.name)}" if name else self.spelled(found.name)
            out.append(f"  {head}: {self.shown(found, hex)}")
        return out

    def text(self) -> str:
        return "\n".join(self.report())

    def __repr__(self) -> str:
        return f"<Stop {self.headline()}>"


#: Elements to read at a time.
_LARGEST = 1 << 24
_INDEX = ScalarType("index")


def _at(span: Span | None) -> str:
    return f", {os.path.basename(span.source.name)}:{span.line}" if span is not None else ""


def _given(given: Given) -> str:
    """Return the text for the end of a wait: its cause and source."""
    if given is None:
        return "the awaited event"
    key = given.key
    if given.kind == "flag":
        what = f"flag PIPE_{key[0]} -> PIPE_{key[1]}, id {key[2]}"
    elif isinstance(key, tuple):
        what = f"{given.kind} {', '.join(map(str, key))}"
    else:
        what = f"{given.kind} {key}"
    core: Any = given.core
    line = f" at line {line_of(given.op)}" if given.op.source is not None else ""
    return f"{what}, given by {label(core)}, PIPE_{given.pipe}{line}"


def visible(op: Operation) -> Iterator[tuple[Value, bool]]:
    """Yield the values that an operation may use, nearest first; True if computed after the operation."""
    at: Operation | None = op
    while at is not None and at.name != "func.func":
        block = at.parent
        if block is None:
            return
        where = block.ops.index(at)
        for n in range(where - 1, -1, -1):
            yield from ((v, False) for v in block.ops[n].results)
        yield from ((v, False) for v in block.args)
        yield from _of_other_blocks(block)
        for later in block.ops[where:]:
            yield from ((v, True) for v in later.results)
        at = block.outer


def _of_other_blocks(block: Block) -> Iterator[tuple[Value, bool]]:
    for other in block.parent.blocks if block.parent is not None else ():
        if other is not block:
            yield from ((v, False) for v in other.args)
            for op in other.ops:
                yield from ((v, False) for v in op.results)
