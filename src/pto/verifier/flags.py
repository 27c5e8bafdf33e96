"""Balance of set_flag/wait_flag and get_buf/rls_buf, decided statically over structured control flow.

Each core has its own flags: a function is followed once per kind of core it has code for, without the
sections of the other kind. Only functions without callers are checked; calls are followed in place. Run-time
ids and unstructured branches are left to the simulator. A failure on every path has the given severity; a
failure on some paths is a warning, because conditions may be related in unknown ways.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..diag import Diagnostic
from ..ir.context import Context
from ..ir.core import Operation, entry_mark
from ..ir.facts import enclosing
from ..isa.machine import SECTIONS
from .balance import Failure, Walk, runs_on
from .missing import (
    Thing,
    get_before,
    is_taking,
    release_after,
    set_before,
    thing_of,
    wait_at_end,
    wait_between,
)

_Said = tuple[str, str, str]
_OTHER = {"cube": "vector", "vector": "cube"}


def check_flags(
    context: Context, severity: str = "error", entries: Sequence[Operation] | None = None
) -> None:
    """Report unbalanced flags and buffer tokens of every function without callers, or of `entries`."""
    program = _FlagProgram(context)
    found: dict[tuple[int, str], tuple[Operation, Diagnostic]] = {}
    called = {op.attr("callee") for calls in program.calls.values() for op in calls}
    for func in program.calls:
        if (
            func not in entries
            if entries is not None
            else func.attr("sym_name") in called and not entry_mark(func)
        ):
            continue
        part = program.reached(func)
        if any(_unstructured(f) for f in part):
            continue
        ops = [op for f in part for op in f.walk()]
        things = {op: t for op in ops if (t := thing_of(op)) is not None}
        followed = dict.fromkeys(t for t in things.values() if Thing(t.pipes, None) not in things.values())
        cores = _cores(func, ops)
        for thing in followed:
            takes = {op: is_taking(op) for op, t in things.items() if t == thing}
            relevant = program.relevant(takes)
            for core in cores:
                failures = list(Walk(takes, relevant, program.bodies, core).function(func))
                told = [_describe(context, thing, failure, takes) for failure in failures]
                # A pipe may wait for a set further down: pipes do not follow the order of the text.
                crossed = {"PTO-E0803", "PTO-E0805"} <= {d.code for _, d in told}
                for failure, (where, d) in zip(failures, told, strict=True):
                    if len(cores) > 1:
                        d.message = d.message.replace(": ", f": on the {core} core, ", 1)
                        _note_other_core(context, d, failure, takes, core)
                    d.severity = severity if failure.certain and not crossed else "warning"
                    found.setdefault((id(where), d.code), (where, d))
    context.diagnostics += [d for _, d in sorted(found.values(), key=lambda pair: pair[0].order)]


class _FlagProgram:
    """The functions of a module and their callers."""

    def __init__(self, context: Context) -> None:
        self.bodies = {str(f.attr("sym_name")): f for f in context.module.functions}
        self.calls = {
            f: [op for op in f.walk() if op.name == "func.call" and op.attr("callee") in self.bodies]
            for f in context.module.functions
        }

    def reached(self, func: Operation) -> list[Operation]:
        """Return a function and everything it calls, directly or not."""
        todo, seen = [func], {func: None}
        while todo:
            for call in self.calls[todo.pop()]:
                callee = self.bodies[str(call.attr("callee"))]
                if callee not in seen:
                    seen[callee] = None
                    todo.append(callee)
        return list(seen)

    def relevant(self, ops: dict[Operation, bool]) -> set[Operation]:
        """Return these operations, those around them, the calls that lead there, and those around the
        calls."""
        todo, seen = list(ops), set[Operation]()
        while todo:
            for op in enclosing(todo.pop()):
                if op in seen:
                    break
                seen.add(op)
                if op.name == "func.func":
                    name = op.attr("sym_name")
                    todo += [c for calls in self.calls.values() for c in calls if c.attr("callee") == name]
        return seen


def _unstructured(func: Operation) -> bool:
    return any(op.name.startswith("cf.") for op in func.walk()) or any(
        len(r.blocks) > 1 for r in func.regions
    )


def _cores(func: Operation, ops: list[Operation]) -> list[str]:
    """Return the kinds of core of a function; one kind without a name if none is given."""
    kinds = {
        SECTIONS.get(op.name) or op.attr("pto.kernel_kind")
        for op in ops
        if op.name in (*SECTIONS, "func.func")
    }
    return [core for core in ("cube", "vector") if core in kinds and runs_on(func, core)] or [""]


def _describe(
    context: Context, thing: Thing, failure: Failure, takes: dict[Operation, bool]
) -> tuple[Operation, Diagnostic]:
    """Return the operation and the diagnostic of a failure."""
    op, holder, loop, split = failure.op, failure.holder, failure.loop, failure.split
    words = _Words(thing)
    where = op or holder
    if split is not None and split.name != "scf.for":
        where, said = split, words.branch
    elif op is None:
        said = words.end(failure.certain)
    elif takes[op]:
        said = words.taken_in_loop if loop is not None else words.taken(failure.certain)
    elif loop is not None and not any(taking and loop in enclosing(o) for o, taking in takes.items()):
        where, said = loop, words.released_in_loop
    else:
        said = words.released(failure.certain)
    assert where is not None  # the end fails only if a flag or token is held
    code, message, help = said
    if failure.certain and split is None:
        help = _line_to_add(context, thing, code, op, holder) or help
    name = where.row.name if where.row else where.name
    d = Diagnostic(code, f"{name}: {message}", context.span(where), help=help)

    def note(label: str, at: Operation | None) -> None:
        if at is not None and at is not where:
            d.notes.append((label, context.span(at)))

    if loop is not None:
        note("in this loop", loop)
    else:
        first = "first " if op is not None and where is op and takes[op] else ""
        note(f"{first}{'set' if thing.is_flag else 'taken'} here", holder)
    if op is not None:
        again = ("set again here" if thing.is_flag else "taken again here") if takes[op] else ""
        note(again or ("waited for here" if thing.is_flag else "released here"), op)
        if not takes[op] and where is op and thing.is_flag and loop is None:
            later = (o for o, taking in takes.items() if taking and o.order > op.order)
            note("it is set here, too late for the first wait", next(later, None))
    if split is not None:
        note("it depends on whether this loop runs at all", split)
    return where, d


def _line_to_add(
    context: Context, thing: Thing, code: str, op: Operation | None, holder: Operation | None
) -> str:
    """Return the line that would mend a failure, and its place; empty if the place is unknown."""
    if code == "PTO-E0803" and op is not None:
        return set_before(context, thing, op)
    if code == "PTO-E0804" and op is not None:
        return wait_between(context, thing, holder or op, op)
    if code == "PTO-E0805" and holder is not None:
        return wait_at_end(context, thing, holder)
    if code == "PTO-E0806" and op is not None and not is_taking(op):
        return get_before(context, thing, op)
    if code == "PTO-E0807" and holder is not None:
        return release_after(context, thing, holder)
    return ""


class _Words:
    """Code, message and help of each failure of a flag or a token."""

    def __init__(self, thing: Thing) -> None:
        self.thing = thing
        self.flag = thing.is_flag
        self.triple = ", ".join(f"<{word}>" for word in (*thing.pipes, thing.id))

    def choose(self, flag: _Said, token: _Said) -> _Said:
        return flag if self.flag else token

    @property
    def branch(self) -> _Said:
        return self.choose(
            ("PTO-E0808", f"{self.thing} is set on one branch only", "set or wait for it on both branches"),
            ("PTO-E0806", f"{self.thing} is held on one branch only", "take and release it on the same path"),
        )

    def end(self, certain: bool) -> _Said:
        said = f"{self.thing} {'is' if certain else 'may be'} still"
        return self.choose(
            ("PTO-E0805", f"{said} set at the end", f"add the matching 'pto.wait_flag[{self.triple}]'"),
            ("PTO-E0807", f"{said} held at the end", "add the matching rls_buf"),
        )

    def taken(self, certain: bool) -> _Said:
        said = f"{self.thing} {'is' if certain else 'may be'}"
        help = "wait for it first, or use another event id"
        return self.choose(
            ("PTO-E0804", f"{said} set again before it was waited for", help),
            ("PTO-E0806", f"{said} taken twice by {self.thing.pipes[0]}", "release it first"),
        )

    @property
    def taken_in_loop(self) -> _Said:
        said = f"{self.thing} is {'set' if self.flag else 'taken'} once more in every iteration"
        return self.choose(
            ("PTO-E0804", said, "wait for it inside the loop"),
            ("PTO-E0806", said, "take and release it inside the loop"),
        )

    def released(self, certain: bool) -> _Said:
        waiter = self.thing.pipes[-1]
        set_by = f"nothing has set by then: {waiter} would wait for ever"
        if not certain:
            set_by = f"only some paths have set by then: {waiter} could wait for ever"
        held = f"{'not' if certain else 'not always'} held by {self.thing.pipes[0]}"
        help = f"add 'pto.set_flag[{self.triple}]' after the producer, before this wait"
        return self.choose(
            ("PTO-E0803", f"waits for {self.thing}, which {set_by}", help),
            ("PTO-E0806", f"{self.thing} is released but {held}", "take it with get_buf first"),
        )

    @property
    def released_in_loop(self) -> _Said:
        said = f"every iteration waits for {self.thing}, but it is set only before the loop"
        return self.choose(
            ("PTO-E0803", said, "set it again inside the loop"),
            (
                "PTO-E0806",
                f"{self.thing} is released once more in every iteration",
                "take and release it inside the loop",
            ),
        )


def _note_other_core(
    context: Context, d: Diagnostic, failure: Failure, takes: dict[Operation, bool], core: str
) -> None:
    """Add a note about a partner in a section of the other core, which is the usual reason for a missing
    partner.
    """
    wanted = failure.op is not None and not takes[failure.op]
    for op, taking in takes.items():
        sections = [SECTIONS[o.name] for o in enclosing(op) if o.name in SECTIONS]
        if taking == wanted and sections and sections[0] == _OTHER[core]:
            verb = "set" if wanted else "waited for"
            label = f"it is {verb} on the {_OTHER[core]} core, which has its own flags"
            d.notes.append((label, context.span(op)))
            d.help = "synchronise the two cores with sync.set and sync.wait"
            return
