"""Records of a run from the extension module: its C structures as tables, and the memory accesses of
tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..perf.records import Records
from ..perf.tables import TIMES, table

if TYPE_CHECKING:
    from ..perf.tables import Array

#: Members of the structures of native/runtime/exec/records.hpp, in their order.
_TASK = [
    ("task_id", "i8"), ("submit", "i8"), ("ready", "i8"), ("dispatch", "i8"), ("start", "i8"), ("end", "i8"),
    ("finish", "i8"), ("func_id", "i4"), ("scope", "i4"), ("cluster", "i4"), ("block", "i4"), ("site", "i4"),
    ("core", "i2"), ("thread", "i2"), ("scheduler", "i2"), ("core_type", "i2"),
]  # fmt: skip
_PHASE = [("start", "i8"), ("end", "i8"), ("count", "i4"), ("thread", "i2"), ("actor", "i2"), ("phase", "i1")]
_COUNTER = [("time", "i8"), ("value", "i8"), ("which", "i1")]
_EDGE = [("pred", "i8"), ("succ", "i8"), ("arg", "i4"), ("kind", "i1")]
#: The parameter number of accesses to windows of ranks.
_WINDOW = -2
_USE = [("task_id", "i8"), ("first", "u8"), ("last", "u8"), ("arg", "i4"), ("use", "i1"), ("undeclared", "?")]
_ORDERED = [
    ("at", "i8"), ("task", "i8"), ("first", "u8"), ("last", "u8"), ("kernel", "i4"), ("mark", "i4"),
    ("block", "i4"), ("core", "i2"), ("use", "i1"),
]  # fmt: skip
#: Values of `WindowUse.use` for the two ends of an order between the cores of a task.
GIVES, TAKES = 16, 17


class WindowUse(NamedTuple):
    """An access of a core to a window of a rank, or one end of an order between the cores of a task. For an
    order, `first` and `last` identify the flag or FIFO that makes the order.
    """

    at: int
    task: int
    first: int
    last: int
    kernel: int
    mark: int  # the source location
    block: int
    core: int
    use: int


def _read(raw: Mapping[str, Any], name: str, fields: Sequence[tuple[str, str]]) -> Array:
    import numpy as np

    return np.frombuffer(raw[name], np.dtype(list(fields), align=True))


def uses(raw: Mapping[str, Any]) -> Array:
    """Return the memory accesses of tasks by instructions: bytes, parameter, and kind."""
    found = _read(raw, "uses", _USE)
    return found[found["arg"] != _WINDOW]


def window_uses(raw: Mapping[str, Any]) -> Array:
    """Return the accesses of tasks to windows of ranks."""
    found = _read(raw, "uses", _USE)
    return found[found["arg"] == _WINDOW]


def ordered_uses(raw: Mapping[str, Any]) -> list[WindowUse]:
    """Return the accesses of cores to windows of ranks in their order, with the orders between cores of the
    tasks that access windows."""
    import numpy as np

    found = _read(raw, "ordered_uses", _ORDERED)
    tasks = np.unique(found["task"][found["use"] < GIVES])
    return [WindowUse(*row) for row in found[np.isin(found["task"], tasks)].tolist()]


def edges(raw: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the explicit edges of a graph."""
    return _read(raw, "edges", _EDGE)[["pred", "succ"]].tolist()


def tasks_ended(raw: Mapping[str, Any]) -> list[int]:
    """Return the tasks that ran to their end."""
    tasks = _read(raw, "tasks", _TASK)
    return tasks["task_id"][tasks["end"] != 0].tolist()


def names_of(raw: Mapping[str, Any], names: Mapping[int, str]) -> Callable[[int], str]:
    """Return a function from a task to the name of its kernel, for a recorded run."""
    tasks = _read(raw, "tasks", _TASK)
    found = dict(zip(tasks["task_id"].tolist(), tasks["func_id"].tolist(), strict=True))
    return lambda task: names.get(found.get(task, -1), "")


def records(raw: Mapping[str, Any], names: Mapping[int, str], stats: Mapping[str, Any]) -> Records:
    """Build records from the structures of the engine."""
    import numpy as np

    start = raw["start"]
    if "virtual_ns" in stats:  # records of one program are the same on every host
        stats = {key: value for key, value in stats.items() if key != "seconds"}

    def columns(found: Any, times: Sequence[str]) -> dict[str, Any]:
        out = {str(field): found[field] for field in found.dtype.names if not field.startswith("f")
               or field in ("func_id", "finish")}  # fmt: skip
        for field in times:
            out[field] = np.where(found[field] == 0, -1, found[field] - start)
        return out

    tasks = _read(raw, "tasks", _TASK)
    order = np.lexsort((tasks["block"], tasks["task_id"]))
    sites: dict[str, int] = {}
    numbers = np.array([sites.setdefault(site, len(sites)) if site else -1 for site in raw["sites"]], "i4")
    made = columns(tasks[order], TIMES)
    if len(numbers):
        made["site"] = numbers[made["site"]]
    phases = _read(raw, "phases", _PHASE)  # sorted by thread
    return Records(
        tasks=table("tasks", made),
        edges=table("edges", columns(_read(raw, "edges", _EDGE), ())),
        phases=table("phases", columns(phases[np.argsort(phases["start"], kind="stable")], ("start", "end"))),
        counters=table("counters", columns(_read(raw, "counters", _COUNTER), ("time",))),
        names=dict(names),
        sites=list(sites),
        stats=dict(stats),
    )
