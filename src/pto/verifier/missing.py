"""The missing line of unbalanced flags or buffer tokens, and its place.

Help has the form `put 'LINE' after line N`, which `pto fix` can insert. A function returns an empty text if
the place is ambiguous or unknown. The verifier and the sanitizers both use this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ..ir.core import Module, Operation, Value, constant_of
from ..ir.facts import pipe_of
from ..ir.nesting import BlockStatement, CommonBlock, meeting
from ..isa.enums import SYNC_OP_PIPE
from ..isa.profiles import Profile

Nesting = Sequence[BlockStatement]
Test = Callable[[Operation], bool]


class AdviceProgram(Protocol):
    """A program for advice. In C++, only `nesting` has its blocks."""

    @property
    def module(self) -> Module: ...

    @property
    def profile(self) -> Profile: ...

    def nesting(self, op: Operation) -> list[BlockStatement]: ...


#: C++ calls for flags with ids; constant ids.
_CALL = re.compile(r"(?:pto::)?(?:set|wait)_flag\(\s*[^,]+,[^,]+,(.*)\)\s*;?$", re.DOTALL)
_NUMBER = re.compile(r"\bEVENT_ID\d\s*\)*$|^\s*(?:\(event_t\)\s*)?\d$")

#: Operations that take a flag or token, and operations that give it back.
_TAKE, _RELEASE = ("set", "get"), ("wait", "release")


class Thing(NamedTuple):
    """A flag (source pipe, destination pipe) or a token (pipe), with its id; None for a run-time id."""

    pipes: tuple[str, ...]
    id: str | None

    @property
    def is_flag(self) -> bool:
        return len(self.pipes) == 2

    def __str__(self) -> str:
        if self.is_flag:
            return f"flag ({self.pipes[0]} -> {self.pipes[1]}, {self.id})"
        return f"buffer token {self.id}"

    @property
    def _words(self) -> str:
        return ", ".join(f"<{word}>" for word in (*self.pipes, self.id))

    def line(self, word: str) -> str:
        """Return the line that sets, awaits, gets or releases it."""
        if self.is_flag:
            return f"pto.{word}_flag[{self._words}]"
        return f"pto.{'get' if word == 'get' else 'rls'}_buf[{self.pipes[0]}, {self.id}]"


def thing_of(op: Operation) -> Thing | None:
    """Return the flag or token of an operation."""
    order = _order(op)
    if order not in _TAKE and order not in _RELEASE:
        return None
    if order in ("get", "release"):
        pipe, id = str(op.attr("op_type") or op.attr("pipe") or ""), op.attr("buf_id")
        run_time = op.get("buf_id_dyn")
        return Thing((pipe,), None if run_time is not None else str(id))
    if op.name in ("pto.record_event", "pto.wait_event"):
        pipes = tuple(SYNC_OP_PIPE.get(str(op.attr(n)), "") for n in ("src_op", "dst_op"))
        return Thing(pipes, str(op.attr("event_id")))
    pipes = (str(op.attr("src_pipe")), str(op.attr("dst_pipe")))
    if expression_of_id(op):
        return Thing(pipes, None)
    if op.name.endswith("_dyn"):
        known = constant_of(op.operands[0])
        return Thing(pipes, None if known is None else f"EVENT_ID{known}")
    return Thing(pipes, str(op.attr("event_id")))


def expression_of_id(op: Operation) -> str:
    """Return the id of a flag as a C++ expression; empty if it is constant or not in C++."""
    if op.source is None or not op.source.text:  # the text of an `Unread` source is unknown
        return ""
    m = _CALL.match(op.source.text, op.start, op.end)
    return "" if m is None or _NUMBER.search(m[1]) else m[1].strip()


def is_taking(op: Operation) -> bool:
    """Check whether an operation sets a flag or takes a token."""
    return _order(op) in _TAKE


def _order(op: Operation) -> str:
    return op.row.order if op.row is not None else ""


def guarded(line: str, section: str) -> str:
    """Return a line in quotes, wrapped in `section` if that is not empty."""
    return f"'{section} {{ {line} }}'" if section else f"'{line}'"


def set_before(program: AdviceProgram, thing: Thing, wait: Operation) -> str:
    """Return advice to set a flag that `wait` waits for in vain: after the last instruction of the source
    pipe. If each iteration sets the flag for the next one, the missing set is before the loop."""
    at = program.nesting(wait)
    line, source = thing.line("set"), thing.pipes[0].removeprefix("PIPE_")
    others = [(is_taking(op), n) for op, n in _about(program, thing) if same_core(n, at)]
    made = [m for n in _where(program, _on(program, source)) if (m := meeting(n, at)) is not None]
    where = next((n for n, s in enumerate(at) if s.loop), None)
    if where is None:
        if not at or _count(others) >= 0:
            return ""
        own = at[0]
        about = [s.order for _, n in others for s in n if s.block == own.block]
        since = max((order for order in about if order < own.order), default=-1)
        behind = [m for m in made if m.loop is None and (m.second != own or m.first.order > since)]
        return _after(line, behind, at) or f"put '{line}' before line {own.first}"
    loop = at[where]
    within = [(taking, n) for taking, n in others if _inside(n, loop)]
    ahead = [(taking, n) for taking, n in others if (m := meeting(n, at)) and m.second == loop]
    primed = _count(ahead) > 0
    if _count(within) < 0:
        return _after(line, [m for m in made if m.loop == (loop if primed else None)], at)
    if primed or any(taking and (m := meeting(n, at)) and m.loop is None for taking, n in within):
        return ""
    section = "" if any(s.section for s in at[where:]) else _section(at[:where])
    return f"put {guarded(line, section)} before line {loop.first}"


def _count(found: Sequence[tuple[bool, Nesting]]) -> int:
    """Return the number of sets minus the number of waits."""
    return sum(1 if taking else -1 for taking, _ in found)


def _after(line: str, found: Sequence[CommonBlock], at: Nesting) -> str:
    """Put a line after the last statement that contains a producer, in the innermost block."""
    depth = {s.block: -n for n, s in enumerate(at)}
    own = [m.first for m in found if not m.first.section]
    last = max(own, key=lambda s: (depth[s.block], s.order), default=None)
    return f"put '{line}' after line {last.last}" if last is not None else ""


def wait_at_end(program: AdviceProgram, thing: Thing, holder: Operation) -> str:
    """Return advice to wait for a flag that is left set: after the loops that set it."""
    at = program.nesting(holder)
    if not at:
        return ""
    last = at[0]
    for around in at[1:]:
        if not around.loop:
            break
        last = around
    return f"put '{thing.line('wait')}' after line {last.last}"


def wait_between(program: AdviceProgram, thing: Thing, first: Operation, second: Operation) -> str:
    """Return advice to wait for a flag before it is set again: the wait that comes too late, or one more."""
    at = program.nesting(second)
    if not at:
        return ""
    others = [(is_taking(op), n) for op, n in _about(program, thing) if same_core(n, at)]
    own, line = at[0], thing.line("wait")
    if _count(others) > 0:
        return f"put '{line}' {f'after line {own.last}' if first is second else f'before line {own.first}'}"
    waits = [n[0] for taking, n in others if not taking and n[0].block == own.block]
    late = min((s for s in waits if s.order > own.order), key=lambda s: s.order, default=None)
    if late is None or first is second:
        return ""
    return f"move line {late.first} before line {own.first}"


def get_before(program: AdviceProgram, thing: Thing, release: Operation) -> str:
    """Return advice to take a token: before the first instruction of the pipe after the last release."""
    at = program.nesting(release)
    if not at:
        return ""
    own = at[0]
    since = max((s.order for s in _same_token(program, thing, own) if s.order < own.order), default=-1)
    used = [s for s in _beside(program, thing, own) if since < s.order < own.order]
    return f"put '{thing.line('get')}' before line {min([*used, own], key=lambda s: s.order).first}"


def release_after(program: AdviceProgram, thing: Thing, get: Operation) -> str:
    """Return advice to release a held token: after the last instruction of its pipe before the next get."""
    at = program.nesting(get)
    if not at:
        return ""
    own = at[0]
    until = min((s.order for s in _same_token(program, thing, own) if s.order > own.order), default=1 << 60)
    used = [s for s in _beside(program, thing, own) if own.order < s.order < until]
    return f"put '{thing.line('release')}' after line {max([*used, own], key=lambda s: s.order).last}"


def release_before(program: AdviceProgram, thing: Thing, get: Operation) -> str:
    """Return advice for another pipe that keeps a token: release it before `get`."""
    at = program.nesting(get)
    for op in program.module.walk():
        other = thing_of(op)
        if other is None or not is_taking(op) or other.id != thing.id or other.is_flag or other == thing:
            continue
        if _count([(is_taking(o), n) for o, n in _about(program, other) if same_core(n, at)]) > 0:
            return release_after(program, other, op)
    return ""


def _same_token(program: AdviceProgram, thing: Thing, own: BlockStatement) -> Iterator[BlockStatement]:
    return (s for _, n in _about(program, thing) for s in n if s.block == own.block)


def _beside(program: AdviceProgram, thing: Thing, own: BlockStatement) -> Iterator[BlockStatement]:
    """Yield the statements of a block that contain instructions of a token's pipe."""
    on = _on(program, SYNC_OP_PIPE.get(thing.pipes[0], thing.pipes[0]).removeprefix("PIPE_"))
    return (s for n in _where(program, on) for s in n if s.block == own.block)


def visible_at(value: Value, statement: Nesting, nesting: Callable[[Operation], Nesting]) -> bool:
    """Check whether a value is defined before a statement, in a block around it."""
    owner = value.owner
    if not isinstance(owner, Operation):
        outer = owner.outer
        if outer is None or outer.name == "func.func":
            return True
        return nesting(outer)[0].place in {s.place for s in statement}
    made = nesting(owner)[0]
    return any(s.block == made.block and made.order < s.order for s in statement)


def _on(program: AdviceProgram, pipe: str) -> Test:
    return lambda op: not _order(op) and pipe_of(op, program.profile) == pipe


def _where(program: AdviceProgram, test: Test) -> Iterator[Nesting]:
    """Yield the nesting of every operation that passes a test."""
    return (program.nesting(op) for op in program.module.walk() if op.row is not None and test(op))


def _about(program: AdviceProgram, thing: Thing) -> Iterator[tuple[Operation, Nesting]]:
    """Yield the operations on a flag or a token."""
    return ((op, program.nesting(op)) for op in program.module.walk() if thing_of(op) == thing)


def same_core(found: Nesting, at: Nesting) -> bool:
    """Check whether two operations are in one function, and not in sections of different cores."""
    one, other = _section(found), _section(at)
    blocks = {s.block for s in found}
    return any(s.block in blocks for s in at) and (not one or not other or one == other)


def _inside(found: Nesting, loop: BlockStatement) -> bool:
    return any(s.place == loop.place for s in found[1:])


def _section(around: Nesting) -> str:
    return next((s.section for s in around if s.section), "")
