"""How to order two accesses, as lines of a program that can be inserted as they stand.

    put 'pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]' after line 9 and
    'pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]' before line 10

`applied` inserts them. Both lines are put into the innermost block that holds both accesses, so that every
path has as many sets as waits. An access that meets one of an earlier iteration needs a flag in the other
direction, which is set once before the loop and waited for once after it: in a section of their core, if the
loop stands outside of it.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from ...ir.core import Block, Module, Operation, constant_of
from ...ir.facts import LOOPS, enclosing
from ...isa.machine import EVENT_IDS, FREE_SEMAPHORES, SECTIONS, SEMAPHORES
from ..watch import SESSION


@dataclass(frozen=True)
class Side:
    """One of two accesses: the instruction, its pipe without PIPE_, and the core it ran on ("" for the only
    one)."""

    op: Operation
    pipe: str
    core: str

    @property
    def is_cube(self) -> bool:
        return self.core == "AIC"


def how_to_order(
    module: Module, isa: str, old: Side, new: Side, event: int | None, around: tuple[str, str] | None = None
) -> str:
    """Help for two accesses of which `new` has to come after `old`; `event` is an id for a flag of theirs,
    `around` the first and last line of a loop around both that the module does not show."""
    if old.core != new.core:
        return _between_cores(module, isa, old, new)
    if old.pipe.startswith(SESSION):
        return f"wait for the transfer with pto.wait_async_event before line {_first(module, new.op)}"
    place = _meeting(old.op, new.op)
    if place is None and around is not None and event is not None and old.pipe != new.pipe:
        return _carried(old, new, event, (_last(module, old.op), _first(module, new.op)), around)
    if old.pipe == new.pipe:
        if place is None:
            return f"let 'pto.barrier <PIPE_{new.pipe}>' stand between the two"
        return f"put 'pto.barrier <PIPE_{new.pipe}>' before line {_first(module, new.op)}"
    if place is None or event is None:
        return f"put 'pto.barrier <PIPE_ALL>' before line {_first(module, new.op)}"
    first, second, loop = place
    after, before = _last(module, first), _first(module, second)
    if loop is None:
        raised, waited = _flag(old, new, event)
        return f"put {raised} after line {after} and {waited} before line {before}"
    section = next((op.name for op in enclosing(second) if op.name in SECTIONS), "")
    inside = any(op.name in SECTIONS for op in enclosing(loop))
    around = _first(module, loop), _last(module, loop)
    return _carried(old, new, event, (after, before), around, "" if inside else section)


def _flag(old: Side, new: Side, event: int, section: str = "") -> tuple[str, str]:
    """A flag that is set and waited for, in a section of its own if need be."""
    flag = f"[<PIPE_{old.pipe}>, <PIPE_{new.pipe}>, <EVENT_ID{event}>]"
    before, behind = (f"{section} {{ ", " }") if section else ("", "")
    return f"'{before}pto.set_flag{flag}{behind}'", f"'{before}pto.wait_flag{flag}{behind}'"


def _carried(
    old: Side, new: Side, event: int, lines: tuple[str, str], loop: tuple[str, str], section: str = ""
) -> str:
    """A flag from one iteration to the next; `lines` are those to put it behind and before, `section` is that
    of the two where the loop stands outside of it."""
    raised, waited = _flag(old, new, event)
    first, last = _flag(old, new, event, section)
    return (
        f"put {waited} before line {lines[1]} and {raised} after line {lines[0]}; so that the first wait "
        f"passes, {first} before line {loop[0]}; so that nothing is left set, {last} after line {loop[1]}"
    )


def _between_cores(module: Module, isa: str, old: Side, new: Side) -> str:
    if old.is_cube == new.is_cube:
        return "no flag orders the two vector cores: give each its own part, by pto.get_subblock_idx"
    number = _free_semaphore(module)
    waits = [number]
    if isa == "a5":
        narrow = old.pipe not in ("FIX", "MTE3")
        raised = [f"pto.{'set_intra_block' if narrow else 'sync.set'} <PIPE_{old.pipe}>, {number}"]
        if old.is_cube and old.pipe != "FIX":
            raised.append(raised[0].replace(f", {number}", f", {number + SEMAPHORES}"))
        elif not old.is_cube:
            waits.append(number + SEMAPHORES)  # where the signal of the second vector core arrives
        word = "sync.wait" if new.pipe in ("FIX", "MTE1", "MTE2", "MTE3", "V") else "wait_intra_core"
    else:
        raised = [f"pto.sync.set <PIPE_{old.pipe}>, {number}"]
        word = "sync.wait"
    waited = [f"pto.{word} <PIPE_{new.pipe}>, {n}" for n in waits]
    return (
        f"put {_quoted(raised)} after line {_last(module, old.op)} and {_quoted(waited)} before line "
        f"{_first(module, new.op)}"
    )


def _quoted(lines: list[str]) -> str:
    return " and ".join(f"'{line}'" for line in lines)


# -- places ------------------------------------------------------------------------------------------------


def _blocks(op: Operation) -> list[tuple[Block, Operation]]:
    """The blocks an operation stands in, innermost first, each with the operation of it that leads here."""
    out: list[tuple[Block, Operation]] = []
    for at in enclosing(op):
        if at.parent is None or at.name == "func.func":
            break
        out.append((at.parent, at))
    return out


def _meeting(old: Operation, new: Operation) -> tuple[Operation, Operation, Operation | None] | None:
    """The operations of the innermost common block that hold the two, and the loop around them where the old
    one is of an earlier iteration; None where they stand in different functions."""
    before = {id(block): op for block, op in _blocks(old)}
    chain = _blocks(new)
    for n, (block, second) in enumerate(chain):
        first = before.get(id(block))
        if first is None:
            continue
        if first is not second and block.ops.index(first) < block.ops.index(second):
            return first, second, None
        loop = next((op for _, op in chain[n + 1 :] if op.name in LOOPS), None)
        return (first, second, loop) if loop is not None else None
    return None


def _first(module: Module, op: Operation) -> str:
    return module.line(op)


def _last(module: Module, op: Operation) -> str:
    return module.line(op, last=True)


# -- numbers -----------------------------------------------------------------------------------------------


def wait_for(module: Module, flag: tuple[str, str, int], set_by: Operation, new: Operation) -> str:
    """Help where the flag that would order the two is set, and nobody waits for it in time."""
    source, target, number = flag
    dynamic = set_by.row is not None and set_by.row.name == "set_flag_dyn"
    word, id = ("wait_flag_dyn", "the id set there") if dynamic else ("wait_flag", f"<EVENT_ID{number}>")
    first = _first(module, set_by)
    late = next((op for op in module.walk() if _waits(op, word, flag) and op.order > new.order), None)
    outside = late is not None and not _loops(set_by) <= _loops(
        late
    )  # waits for what the last iteration sets
    if late is not None and not outside:
        at = _first(module, late)
        return f"line {first} sets a flag for this, and line {at} waits for it too late: move line {at} up"
    return (
        f"line {first} sets a flag for this, and nobody {'in the loop ' * outside}waits for it: put "
        f"'pto.{word}[<PIPE_{source}>, <PIPE_{target}>, {id}]' before line {_first(module, new)}"
    )


def _loops(op: Operation) -> set[Operation]:
    return {o for o in enclosing(op) if o.name in LOOPS}


def _waits(op: Operation, word: str, flag: tuple[str, str, int]) -> bool:
    if op.row is None or op.row.name != word:
        return False
    pipes = (f"PIPE_{flag[0]}", f"PIPE_{flag[1]}")
    same = word == "wait_flag_dyn" or str(op.attr("event_id")) == f"EVENT_ID{flag[2]}"
    return same and (str(op.attr("src_pipe")), str(op.attr("dst_pipe"))) == pipes


def free_event(module: Module, source: str, target: str, taken: Set[int]) -> int | None:
    """An event id that neither an instruction nor other advice (`taken`) uses between two pipes; ids known at
    run time only may be low ones."""
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
    used: set[int] = set()
    for op in module.walk():
        if op.row is None or op.row.order not in ("signal", "await"):
            continue
        operands = op.row.operand_index
        given = constant_of(op.get("event_id")) if "event_id" in operands else op.attr("event_id")
        if given is not None:
            used.add(int(given) % SEMAPHORES)
    return next((n for n in range(FREE_SEMAPHORES) if n not in used), 0)


# -- applying it -------------------------------------------------------------------------------------------

_STEP = re.compile(r"((?:'[^']+'(?: and )?)+) (after|before) line (\d+)")
_ELSEWHERE = re.compile(r"\bline \d+ of ")
_QUOTED = re.compile(r"'([^']+)'")


def applied(text: str, help: str) -> str | None:
    """Return a program, or C++, with the lines that a report suggests; None if it suggests none, or some of a
    file that the text includes."""
    lines = text.split("\n")
    groups = [[line] for line in lines]
    steps = _STEP.findall(help)
    inside = all(0 < int(number) <= len(lines) for _, _, number in steps)
    if not steps or not inside or _ELSEWHERE.search(help):
        return None
    for quoted, where, number in steps:
        group, own = groups[int(number) - 1], lines[int(number) - 1]
        new = [own[: len(own) - len(own.lstrip())] + line for line in _QUOTED.findall(quoted)]
        group[len(group) if where == "after" else 0 : 0] = new
    return "\n".join(line for group in groups for line in group)
