"""The tables that a run of the task runtime leaves behind: their columns, and what the numbers in them mean.

NumPy is imported when the first array is made, not with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Fields of the four tables. `thread` is a host thread, `core` a worker number, `site` an index into `sites`.
#: A task that ran as several blocks has one row for each of them, with the same `task_id`.
FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "tasks": (
        ("task_id", "i8"), ("func_id", "i4"), ("core", "i4"), ("core_type", "i1"), ("thread", "i2"),
        ("scheduler", "i2"), ("scope", "i4"), ("cluster", "i4"), ("block", "i4"), ("site", "i4"),
        ("submit", "i8"), ("ready", "i8"), ("dispatch", "i8"), ("start", "i8"), ("end", "i8"),
        ("finish", "i8"),
    ),
    "edges": (("pred", "i8"), ("succ", "i8"), ("arg", "i4"), ("kind", "i1")),
    "phases": (
        ("thread", "i2"), ("actor", "i2"), ("phase", "i1"), ("start", "i8"), ("end", "i8"), ("count", "i4"),
    ),
    "counters": (("time", "i8"), ("which", "i1"), ("value", "i8")),
}  # fmt: skip

#: What a field holds where the engine or a file says nothing; 0 for all others.
UNKNOWN: dict[str, int] = dict.fromkeys(
    ("thread", "scheduler", "scope", "cluster", "block", "site", "submit", "ready", "dispatch", "start",
     "end", "finish", "arg"), -1
)  # fmt: skip

#: The times of a task, in the order in which they pass.
TIMES = ("submit", "ready", "dispatch", "start", "end", "finish")

CORE_TYPES = ("aic", "aiv")
KINDS = ("RAW", "WAW", "WAR", "explicit")
COUNTERS = ("task ring", "heap bytes", "dep pool", "tensormap entries", "ready aic", "ready aiv")

#: AicpuPhaseId -> name; those of the schedulers are below 16.
PHASES = {
    0: "complete", 1: "dispatch", 2: "scan", 3: "idle",
    16: "orch_sync", 17: "orch_alloc", 18: "orch_params", 19: "orch_lookup", 20: "orch_heap",
    21: "orch_insert", 22: "orch_fanin", 23: "orch_finalize", 24: "orch_scope_end",
}  # fmt: skip


def dtype(table: str) -> np.dtype[Any]:
    """The structured type of one of the tables."""
    import numpy as np

    return np.dtype(list(FIELDS[table]))


def table(name: str, columns: Mapping[str, Any]) -> Array:
    """A table from its columns; columns that are not given are filled with what stands for unknown."""
    import numpy as np

    given = {field: np.asarray(values) for field, values in columns.items()}
    length = max((len(values) for values in given.values()), default=0)
    out = np.zeros(length, dtype(name))
    for field, _ in FIELDS[name]:
        out[field] = given.get(field, UNKNOWN.get(field, 0))
    return out


def as_dicts(table: Array) -> list[dict[str, int]]:
    """The rows of a table, with numbers of Python: much faster to walk than those of NumPy."""
    names = table.dtype.names or ()
    return [dict(zip(names, row, strict=True)) for row in table.tolist()]


def core_name(core: int, core_type: int) -> str:
    """A core as every view calls it; a task that needs none has -1."""
    if core < 0:
        return "no core"
    return f"{CORE_TYPES[core_type].upper()}_{core}"


def loop_numbers(phases: Array) -> Iterator[int]:
    """The turn of its scheduler's loop that each phase belongs to: a turn has every phase once, in order."""
    turn: dict[int, tuple[int, int]] = {}
    for actor, phase in zip(phases["actor"].tolist(), phases["phase"].tolist(), strict=True):
        loop, last = turn.get(actor, (0, -1))
        loop += phase <= last
        turn[actor] = loop, phase
        yield loop


def us(ns: int) -> float:
    """Nanoseconds of a table as the microseconds of trace files."""
    return round(ns / 1000, 3)
