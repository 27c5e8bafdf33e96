"""Advice for ordering two accesses: complete lines to insert into a program.

    put 'pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]' after line 9 and
    'pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]' before line 10

`verifier.apply` inserts the lines. Both lines go into the innermost block that holds both accesses, so that
every path has as many sets as waits. If the earlier access belongs to an earlier iteration, the flag is also
set once before the loop, and waited for once after it. These two lines get a section of their core, if the
loop stands outside of the section.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from ...ir.core import Module, Operation, constant_of
from ...ir.nesting import BlockStatement, CommonBlock, meeting
from ...isa.machine import EVENT_IDS, FREE_SEMAPHORES, SEMAPHORES
from ...verifier.missing import (
    AdviceProgram,
    expression_of_id,
    guarded,
    is_taking,
    same_core,
    thing_of,
    visible_at,
)
from ..watch import SESSION


@dataclass(frozen=True)
class Side:
    """One of two accesses: the instruction, its pipe without PIPE_, and its core ("" for the only one)."""

    op: Operation
    pipe: str
    core: str

    @property
    def is_cube(self) -> bool:
        return self.core == "AIC"


def how_to_order(program: AdviceProgram, old: Side, new: Side, event: int | None, again: bool = False) -> str:
    """Return help for two accesses, if `new` has to come after `old`; `event` is a free id for a flag.
    `again` is for accesses on different cores: `old` waited for an earlier execution of `new`.
    """
    if old.core != new.core:
        return _between_cores(program, old, new, again)
    here = program.module.line(new.op)
    if old.pipe.startswith(SESSION):
        return f"wait for the transfer with pto.wait_async_event before line {here}"
    met = meeting(program.nesting(old.op), program.nesting(new.op))
    if met is not None:
        here = met.second.first
    if old.pipe == new.pipe:
        return f"put 'pto.barrier <PIPE_{new.pipe}>' before line {here}"
    if met is None or event is None:
        return f"put 'pto.barrier <PIPE_ALL>' before line {here}"
    flag = f"[<PIPE_{old.pipe}>, <PIPE_{new.pipe}>, <EVENT_ID{event}>]"
    raised = f"'pto.set_flag{flag}' after line {met.first.last}"
    waited = f"'pto.wait_flag{flag}' before line {here}"
    if met.loop is None:
        return f"put {raised} and {waited}"
    return f"put {waited} and {raised}; {_primed(met, flag)}; {_drained(met, flag)}"


def _primed(met: CommonBlock, flag: str) -> str:
    """Return the advice for the first set of a flag that each iteration sets for the next one."""
    assert met.loop is not None
    first = guarded(f"pto.set_flag{flag}", met.section)
    return f"so that the first wait passes, {first} before line {met.loop.first}"


def _drained(met: CommonBlock, flag: str) -> str:
    """Return the advice for the wait after the last iteration."""
    assert met.loop is not None
    last = guarded(f"pto.wait_flag{flag}", met.section)
    return f"so that nothing is left set, {last} after line {met.loop.last}"


def _between_cores(program: AdviceProgram, old: Side, new: Side, again: bool) -> str:
    if old.is_cube == new.is_cube:
        return "cannot order the two vector cores by a flag: give each its own part, by pto.get_subblock_idx"
    module = program.module
    there, line = module.line(old.op, last=True), module.line(new.op)
    apart = program.profile.behaviour.core_semaphores
    raised = _unawaited(program, old, new)
    number = _number_of(raised) if raised is not None else _free_semaphore(module)
    numbers = [number]
    if apart and not old.is_cube:
        numbers.append(number + SEMAPHORES)  # the semaphore of the second vector core
    stalls = (
        "wait_intra_core" if apart and new.pipe not in ("FIX", "MTE1", "MTE2", "MTE3", "V") else "sync.wait"
    )
    waits = [f"pto.{stalls} <PIPE_{new.pipe}>, {n}" for n in numbers]
    waited = f"{_quoted(waits)} before line {line}"
    if raised is not None:
        there = module.line(raised)
        return f"line {there} raises a semaphore for this, and nothing waits for it: put {waited}"
    raises = "set_intra_block" if apart and old.pipe not in ("FIX", "MTE3") else "sync.set"
    sets = [f"pto.{raises} <PIPE_{old.pipe}>, {number}"]
    if apart and old.is_cube and old.pipe != "FIX":
        sets.append(sets[0].replace(f", {number}", f", {number + SEMAPHORES}"))
    help = f"put {_quoted(sets)} after line {there} and {waited}"
    made, here = (next((s for s in program.nesting(op) if s.loop), None) for op in (old.op, new.op))
    if not again:
        return help
    if made is None or here is None:  # a loop around a call
        return "let the other core raise a semaphore after each access, and wait here, but not the first time"
    return (
        f"{help}; so that the first wait passes, {_quoted(sets)} before line {made.first}; so that nothing "
        f"is left raised, {_quoted(waits)} after line {here.last}"
    )


def _unawaited(program: AdviceProgram, old: Side, new: Side) -> Operation | None:
    """Return a semaphore that is raised after an access, without a wait on the core of the other access."""
    made, here = program.nesting(old.op), program.nesting(new.op)
    awaited = set[int]()
    raised: list[Operation] = []
    for op in program.module.walk():
        if op.row is None or op.row.order not in ("signal", "await"):
            continue
        at = program.nesting(op)
        if op.row.order == "await":
            awaited |= {_number_of(op) % SEMAPHORES} if same_core(at, here) else set()
        elif str(op.attr("pipe")) == f"PIPE_{old.pipe}" and (met := meeting(made, at)) and met.loop is None:
            if same_core(at, made):
                raised.append(op)
    return next((op for op in raised if (n := _number_of(op)) >= 0 and n % SEMAPHORES not in awaited), None)


def _number_of(op: Operation) -> int:
    """Return the number of a semaphore, -1 if it is known only at run time."""
    assert op.row is not None
    names = [n for n in ("event_id", "event_id_dyn") if n in op.row.operand_index]
    given = next((value for n in names if (value := op.get(n)) is not None), None)
    found = op.attr("event_id") if given is None else constant_of(given)
    return -1 if found is None else int(found)


def _quoted(lines: list[str]) -> str:
    return " and ".join(f"'{line}'" for line in lines)


#: Part of the help for a wait that stands after the access.
LATE = "waits for it too late"


# -- flags that are set ------------------------------------------------------------------------------------


def flag_between(
    program: AdviceProgram, old: Side, new: Side
) -> tuple[tuple[str, str, int], Operation] | None:
    """Return a flag that is set between two accesses on one core, without a wait there: its pipes and id, and
    the operation that sets it. The run may not have reached that operation yet."""
    made, here = program.nesting(old.op), program.nesting(new.op)
    for op in program.module.walk():
        thing = thing_of(op)
        if thing is None or thing.id is None or not is_taking(op):
            continue
        if thing.pipes != (f"PIPE_{old.pipe}", f"PIPE_{new.pipe}"):
            continue
        at = program.nesting(op)
        first, second = meeting(made, at), meeting(at, here)
        if first is None or second is None or first.loop is not None or second.loop is not None:
            continue
        if second.first != at[0]:  # set on some paths only
            continue
        others = [program.nesting(o) for o in program.module.walk() if o is not op and thing_of(o) == thing]
        block, order = second.first.block, second.first.order
        if not any(n and n[0].block == block and order <= n[0].order for n in others):
            return (old.pipe, new.pipe, int(thing.id.removeprefix("EVENT_ID"))), op
    return None


def wait_for(program: AdviceProgram, flag: tuple[str, str, int], set_by: Operation, new: Operation) -> str:
    """Return help if the flag that would order the two is set, but no instruction waits for it in time."""
    line = program.module.line(set_by)
    made, here = program.nesting(set_by), program.nesting(new)
    met = meeting(made, here)
    before = met.second.first if met is not None else program.module.line(new)
    about = [(op, word) for op in program.module.walk() if (word := _about(op, flag))]
    places = [(at[0], word) for op, word in about if (at := program.nesting(op))]
    id, dynamic = _id_of(program, flag, set_by, here)
    known = f"line {line} sets a flag for this"
    own = made[0] if made else None
    ahead = [(s, word) for s, word in places if own and s.block == own.block and s.order < own.order]
    twice, word = max(ahead, key=lambda pair: pair[0].order, default=(None, ""))
    if own is not None and twice is not None and word == "set" and not dynamic and (not met or not met.loop):
        return (
            f"line {twice.first} sets the same flag as line {line}, and nothing waits for it between the "
            f"two: put 'pto.wait_flag[<PIPE_{flag[0]}>, <PIPE_{flag[1]}>, {id}]' before line {own.first}"
        )
    if met is not None and (other := _wait_between(program, flag, met)):
        return f"{known}, and line {other} waits for it, but not on every path: wait on all of them"
    if not id:
        return f"{known}, and nothing waits for it: wait for the id that is set there, before line {before}"
    name = "_dyn" if dynamic else ""
    text = f"[<PIPE_{flag[0]}>, <PIPE_{flag[1]}>, {id}]"
    wait = f"'pto.wait_flag{name}{text}' before line {before}"
    if met is None or met.loop is None:
        late = _late_wait(places, met, here) if met is not None else None
        if late is not None:
            return f"{known}, and line {late[0]} {LATE}: move line {late[0]} before line {late[1]}"
        return f"{known}, and nothing waits for it: put {wait}"
    outside = {word for op, word in about if not any(s.place == met.loop.place for s in program.nesting(op))}
    more = [] if "set" in outside or dynamic else [_primed(met, text)]
    more += [] if "wait" in outside or dynamic else [_drained(met, text)]
    return "; ".join([f"{known}, and nothing in the loop waits for it: put {wait}", *more])


def _wait_between(program: AdviceProgram, flag: tuple[str, str, int], met: CommonBlock) -> str:
    """Return the line of a wait for a flag between the statement that sets the flag and the statement that
    needs it; empty if there is none.
    """
    for op in program.module.walk():
        if _about(op, flag) != "wait":
            continue
        at = program.nesting(op)
        if met.loop is not None and any(s.place == met.loop.place for s in at):
            return program.module.line(op)
        if any(s.block == met.first.block and met.first.order < s.order < met.second.order for s in at):
            return program.module.line(op)
    return ""


def _late_wait(
    places: list[tuple[BlockStatement, str]], met: CommonBlock, here: list[BlockStatement]
) -> tuple[str, str] | None:
    """Return the line of a wait for a flag that comes after an access, and the line that the wait should
    precede.

    The wait stands in a block around the access, and no set comes between them.
    """
    for around in here:
        beside = [(s, word) for s, word in places if s.block == around.block and s.order > around.order]
        wait, word = min(beside, key=lambda pair: pair[0].order, default=(around, ""))
        if word == "wait":
            return wait.first, around.first
        if around.block == met.second.block:
            break
    return None


def _id_of(
    program: AdviceProgram, flag: tuple[str, str, int], set_by: Operation, here: list[BlockStatement]
) -> tuple[str, bool]:
    """Return the text of a flag's id for a wait beside an access, and whether the id is known only at run
    time. The text is empty if the id is not available at the access.
    """
    if expression := expression_of_id(set_by):
        return (expression if _beside(set_by, program, here) else ""), True
    if set_by.row is not None and set_by.row.name == "set_flag_dyn":
        value = set_by.operands[0]
        return (f"%{value.name}" if visible_at(value, here, program.nesting) else ""), True
    return f"<EVENT_ID{flag[2]}>", False


def _beside(op: Operation, program: AdviceProgram, here: list[BlockStatement]) -> bool:
    """Check whether a statement of `here` is in the block of an operation, where names mean the same."""
    at = program.nesting(op)
    return bool(at) and any(s.block == at[0].block for s in here)


def _about(op: Operation, flag: tuple[str, str, int]) -> str:
    """Return `set` or `wait` if an operation sets or waits for a flag, or may do so with a run-time id; else
    ''.
    """
    if op.row is None or op.row.order not in ("set", "wait"):
        return ""
    pipes = (f"PIPE_{flag[0]}", f"PIPE_{flag[1]}")
    computed = "event_id" in op.row.operand_index or expression_of_id(op)
    same = computed or str(op.attr("event_id")) == f"EVENT_ID{flag[2]}"
    return op.row.order if same and (str(op.attr("src_pipe")), str(op.attr("dst_pipe"))) == pipes else ""


# -- numbers -----------------------------------------------------------------------------------------------


def free_event(module: Module, source: str, target: str, taken: Set[int]) -> int | None:
    """Return an event id between two pipes that neither instructions nor other advice (`taken`) use. Run-time
    ids are usually low, so a program with run-time ids gets a high id.
    """
    used = set(taken)
    dynamic = False
    for op in module.walk():
        if op.row is None or op.row.order not in ("set", "wait"):
            continue
        if (str(op.attr("src_pipe")), str(op.attr("dst_pipe"))) != (f"PIPE_{source}", f"PIPE_{target}"):
            continue
        if "event_id" in op.row.operand_index:
            dynamic = True
        else:
            used.add(int(str(op.attr("event_id")).removeprefix("EVENT_ID")))
    ids = reversed(range(EVENT_IDS)) if dynamic else range(EVENT_IDS)
    return next((n for n in ids if n not in used), None)


def _free_semaphore(module: Module) -> int:
    sync = (op for op in module.walk() if op.row is not None and op.row.order in ("signal", "await"))
    used = {_number_of(op) % SEMAPHORES for op in sync if _number_of(op) >= 0}
    return next((n for n in range(FREE_SEMAPHORES) if n not in used), 0)
