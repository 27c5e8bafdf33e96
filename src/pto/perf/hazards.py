"""Accesses of a run that nothing orders: the outcome of the graph depends on the schedule.

With tensormap_and_ringbuffer the engine finds them in what tasks say they read and write. Where edges are
explicit, nobody says it: there it is what kernels did to memory with instructions, or what a Python graph
says of a kernel that uses none. Either way it is held against the ways through the graph, not against the
order in which tasks happened to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic

if TYPE_CHECKING:
    from .tables import Array

_KINDS = {0: "RAW", 1: "WAW", 2: "WAR", 4: "scope"}
READ, WRITE = 0, 1  # what is more combines: two of a kind may come in either order

#: First byte, the byte behind the last, task, parameter, use.
Use = tuple[int, int, int, int, int]


class Hazard:
    """Two tasks that touch the same memory, with nothing that orders them.

    `kind` is RAW, WAW, WAR; "scope" for memory that is read after its scope has ended; "input" for a task
    that writes to what it said it would only read (then both tasks are that one).
    """

    def __init__(
        self,
        kind: str,
        earlier: int,
        later: int,
        arg: int,
        places: tuple[str, str],
        names: tuple[str, str] = ("", ""),
        explicit: bool = False,
    ) -> None:
        self.kind = kind
        self.earlier = earlier
        self.later = later
        self.arg = arg
        self.places = places
        self.names = names  # of their kernels
        self.explicit = explicit  # whether edges are what orders tasks

    def __repr__(self) -> str:
        return f"<Hazard {self.kind} {self.earlier} {self.later}>"

    def __str__(self) -> str:
        words = zip(self.names, self.places, strict=True)
        where, there = (f"{f' ({n})' if n else ''}{f' at {p}' if p else ''}" for n, p in words)
        as_ = f", as parameter {self.arg}," if self.arg >= 0 else ""
        if self.kind == "scope":
            return (
                f"task {self.later}{there} reads{as_} memory whose scope has ended: "
                "it may have been given to another task"
            )
        if self.kind == "input":
            return (
                f"task {self.later}{there} writes to parameter {self.arg}, which it has as an input: "
                "nobody waits for that"
            )
        what = "reads" if self.kind == "WAR" else "writes"
        does = "reads" if self.kind == "RAW" else "writes"
        return (
            f"{self.kind}: task {self.later}{there} {does}{as_ or ''} what task "
            f"{self.earlier}{where} {what}, and nothing orders the two"
        )


def problems(hazards: Sequence[Hazard], unseen: int = 0) -> list[Diagnostic]:
    """For those who read diagnostics: one for each pair of places, however often it is met. `unseen`: tasks
    of which nobody knows what they did."""
    groups: dict[tuple[Any, ...], list[Hazard]] = {}
    for h in hazards:
        groups.setdefault((h.kind, h.arg, h.places), []).append(h)
    out: list[Diagnostic] = []
    for first, *others in groups.values():
        help = "give the later task a fresh tensor, or make the earlier parameter INOUT"
        if first.kind == "RAW":
            help = "give the later task deps=[...] with the earlier one, or let its parameter be tracked"
        if first.kind == "scope":
            help = "submit the reader inside the scope, or make the tensor before it"
        elif first.kind == "input":
            help = "make the parameter INOUT, or OUTPUT if the task writes all of it"
        elif first.explicit:
            a, b = first.earlier, first.later
            help = f"order tasks {a} and {b} with add_successor, unless either order is right"
        d = Diagnostic("PTO-E2611", str(first), severity="warning", help=help)
        if others:
            d.notes.append((f"seen {len(others) + 1} times; this is the first", None))
        out.append(d)
    if unseen:
        message = f"{unseen} task{'s' if unseen > 1 else ''} used no instructions: what they did is not known"
        help = "TLOAD and TSTORE are seen, what a kernel does with pointers is not"
        out.append(Diagnostic("PTO-E2611", message, severity="warning", help=help))
    return out


def as_errors(problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Make hazards of a graph errors; tasks that could not be checked stay warnings."""
    for d in problems:
        if d.code == "PTO-E2611" and "used no instructions" not in d.message:
            d.severity = "error"
    return list(problems)


def hazards_of(
    found: Iterable[tuple[int, int, int, int]],
    uses: Array,
    sites: Sequence[str],
    name_of: Callable[[int], str],
) -> list[Hazard]:
    """Hazards that a run of tensormap_and_ringbuffer `found` in what its tasks say of their parameters (kind,
    earlier task, later task, parameter), and tasks that wrote to what they only said they would read."""

    def place(task: int) -> str:
        return sites[task] if 0 <= task < len(sites) else ""

    wrong = {(int(t), int(arg)) for t, arg in uses[uses["undeclared"]][["task_id", "arg"]].tolist()}
    every = [(_KINDS[k], a, b, arg) for k, a, b, arg in found]
    every += [("input", t, t, arg) for t, arg in sorted(wrong)]
    return [
        Hazard(kind, a, b, arg, (place(a), place(b)), (name_of(a), name_of(b))) for kind, a, b, arg in every
    ]


def unordered(
    recorded: Array,
    sites: Sequence[str],
    edges: Iterable[tuple[int, int]],
    name_of: Callable[[int], str],
    declared: Callable[[set[tuple[int, int]]], Iterable[Use]] = lambda seen: (),
) -> list[Hazard]:
    """Tasks of a graph with explicit edges that use the same memory, one of them to write, with no way along
    edges between them. `recorded` are the uses that were seen; `declared` gives what is said of parameters,
    given those of tasks that were seen in use."""
    uses = list(_united(recorded))
    uses += declared({use[2:4] for use in uses})
    found: dict[tuple[int, int], Hazard] = {}
    for one, other in conflicts(uses, Order(len(sites), edges)):
        (_, _, a, _, use_a), (_, _, b, arg, use_b) = sorted((one, other), key=lambda use: use[2])
        kind = "RAW" if use_b == READ else "WAR" if use_a == READ else "WAW"
        if (a, b) not in found:
            names = name_of(a), name_of(b)
            found[a, b] = Hazard(kind, a, b, arg, (sites[a], sites[b]), names, explicit=True)
    return sorted(found.values(), key=lambda h: (h.later, h.earlier))


def tasks_unseen(recorded: Array, ran: Iterable[int]) -> int:
    """How many of the tasks that ran used no instructions, so that nobody knows what they did."""
    return len(set(ran) - set(recorded["task_id"].tolist()))


def _united(uses: Array) -> Iterator[Use]:
    """What each task did, without what it did twice."""
    groups: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for task, first, last, arg, use, _ in uses.tolist():
        groups.setdefault((task, arg, use), []).append((first, last))
    for (task, arg, use), parts in groups.items():
        parts.sort()
        first, last = parts[0]
        for low, high in parts[1:]:
            if low > last:
                yield first, last, task, arg, use
                first = low
                last = high
            last = max(last, high)
        yield first, last, task, arg, use


class Order:
    """Which tasks come before which. There is no circle."""

    def __init__(self, count: int, edges: Iterable[tuple[int, int]]) -> None:
        waits: list[int] = [0] * count
        next_of: list[list[int]] = [[] for _ in range(count)]
        self._before: list[list[int]] = [[] for _ in range(count)]
        for a, b in edges:
            next_of[a].append(b)
            self._before[b].append(a)
            waits[b] += 1
        order = [t for t in range(count) if not waits[t]]
        for t in order:
            for n in next_of[t]:
                waits[n] -= 1
                if not waits[n]:
                    order.append(n)
        #: A place for every task, behind all that come before it.
        self.place = [0] * count
        for i, t in enumerate(order):
            self.place[t] = i

    def before(self, task: int, others: set[int]) -> set[int]:
        """Which of others, all with an earlier place, come before a task."""
        left = set(others)
        least = min((self.place[t] for t in left), default=0)
        seen, todo = {task}, [task]
        while todo and left:
            for t in self._before[todo.pop()]:
                if t not in seen and self.place[t] >= least:
                    seen.add(t)
                    todo.append(t)
                    left.discard(t)
        return others - left


def conflicts(uses: Sequence[Use], order: Order) -> Iterator[tuple[Use, Use]]:
    """Pairs of tasks that share memory and that nothing orders. What a write comes after need not be looked
    at again: who is in conflict with that is in conflict with the write as well, or comes after it."""
    limits = sorted({limit for use in uses for limit in use[:2]})
    index = {limit: i for i, limit in enumerate(limits)}
    live: list[list[Use]] = [[] for _ in limits]  # by piece of memory between two limits
    by_task: dict[int, list[Use]] = {}
    for use in uses:
        by_task.setdefault(use[2], []).append(use)
    for task in sorted(by_task, key=lambda t: order.place[t]):
        mine = [(use, live[i]) for use in by_task[task] for i in range(index[use[0]], index[use[1]])]
        ahead = order.before(task, {other[2] for _, piece in mine for other in piece if other[2] != task})
        for use, piece in mine:
            kind = use[4]
            for other in piece:
                if other[2] != task and other[2] not in ahead and (kind != other[4] or kind == WRITE):
                    yield other, use
            if kind == WRITE:
                piece[:] = [other for other in piece if other[2] != task and other[2] not in ahead]
            piece.append(use)
