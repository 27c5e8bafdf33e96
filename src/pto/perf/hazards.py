"""Unordered accesses of a run: the result of the graph depends on the schedule.

In tensormap_and_ringbuffer, the engine finds hazards in the declared parameters of tasks. In runtimes with
explicit edges, parameters are not declared. There, hazards come from recorded accesses of instructions, or
from the declarations of a Python graph for kernels without instructions. In both cases, accesses are compared
with the paths through the graph, not with the order in which tasks happened to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic

if TYPE_CHECKING:
    from .tables import Array

_KINDS = {0: "RAW", 1: "WAW", 2: "WAR", 4: "scope"}
# larger values combine results; two accesses of the same such kind may run in either order
#: End of the warning about tasks without recorded accesses.
_UNSEEN = "no accesses were recorded"
READ, WRITE = 0, 1

#: First byte, end (exclusive), task, parameter, kind of use.
Use = tuple[int, int, int, int, int]


class Hazard:
    """Two tasks that access the same memory without an order between them.

    `kind` is RAW, WAW or WAR; "scope" for memory that is read after its scope has ended; "input" for a task
    that writes to a parameter that it declared as an input (then `earlier` and `later` are this task).
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
        self.names = names  # of the kernels
        self.explicit = explicit  # True if the runtime has explicit edges

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
                "no task waits for this write"
            )
        what = "reads" if self.kind == "WAR" else "writes"
        does = "reads" if self.kind == "RAW" else "writes"
        return (
            f"{self.kind}: task {self.later}{there} {does}{as_} memory that task "
            f"{self.earlier}{where} {what}, and no dependency orders them"
        )


def problems(hazards: Sequence[Hazard], unseen: int = 0) -> list[Diagnostic]:
    """Return one diagnostic for each pair of source locations. `unseen` is the number of tasks without
    recorded accesses."""
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
        message = f"cannot check {unseen} task{'s' if unseen > 1 else ''}: {_UNSEEN}"
        help = "use TLOAD and TSTORE; accesses through pointers are not recorded"
        out.append(Diagnostic("PTO-E2611", message, severity="warning", help=help))
    return out


def as_errors(problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Turn hazards of a graph, and races between its ranks, into errors. Warnings about tasks that could not
    be checked remain warnings."""
    for d in problems:
        if d.code in ("PTO-E2611", "PTO-E3016") and not d.message.endswith(_UNSEEN):
            d.severity = "error"
    return list(problems)


def hazards_of(
    found: Iterable[tuple[int, int, int, int]],
    uses: Array,
    sites: Sequence[str],
    name_of: Callable[[int], str],
) -> list[Hazard]:
    """Return the hazards that a run of tensormap_and_ringbuffer `found` in declared parameters (kind, earlier
    task, later task, parameter), and tasks that wrote to parameters that they declared as inputs."""

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
    """Return pairs of tasks in a graph with explicit edges that access the same memory, at least one of them
    writing, without a path along edges between them. `recorded` are the observed accesses. `declared` returns
    accesses from declarations, for the given set of tasks and parameters with observed accesses."""
    uses = list(_united(recorded))
    uses += declared({use[2:4] for use in uses})
    found: dict[tuple[int, int], Hazard] = {}
    for one, other in conflicts(uses, PartialOrder(len(sites), edges)):
        (_, _, a, _, use_a), (_, _, b, arg, use_b) = sorted((one, other), key=lambda use: use[2])
        kind = "RAW" if use_b == READ else "WAR" if use_a == READ else "WAW"
        if (a, b) not in found:
            names = name_of(a), name_of(b)
            found[a, b] = Hazard(kind, a, b, arg, (sites[a], sites[b]), names, explicit=True)
    return sorted(found.values(), key=lambda h: (h.later, h.earlier))


def tasks_unseen(recorded: Array, ran: Iterable[int]) -> int:
    """Return the number of tasks that ran without recorded accesses."""
    return len(set(ran) - set(recorded["task_id"].tolist()))


def _united(uses: Array) -> Iterator[Use]:
    """Yield the accesses of each task, with overlapping ranges united."""
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


class PartialOrder:
    """Partial order of tasks, from edges without a cycle."""

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
        #: Position of every task in a topological order.
        self.place = [0] * count
        for i, t in enumerate(order):
            self.place[t] = i

    def before(self, task: int, others: set[int]) -> set[int]:
        """Return those of `others`, all at earlier positions, that are ordered before a task."""
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


def conflicts(uses: Sequence[Use], order: PartialOrder) -> Iterator[tuple[Use, Use]]:
    """Yield pairs of accesses to the same memory that are not ordered. A write supersedes the accesses
    ordered before it: a later access that conflicts with one of those also conflicts with the write, or is
    ordered after the write."""
    limits = sorted({limit for use in uses for limit in use[:2]})
    index = {limit: i for i, limit in enumerate(limits)}
    live: list[list[Use]] = [[] for _ in limits]  # for each range of memory between two limits
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
