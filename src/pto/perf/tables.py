"""Tables of a run of the task runtime: their columns, and the meaning of numbers in them.

NumPy is imported when the first array is made, not with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Fields of the four tables. `thread` is a host thread, `core` a worker number, `site` an index into `sites`.
#: A task that ran as several blocks has one row per block, with the same `task_id`.
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

#: Value of a field that the engine or a file does not provide; 0 for all other fields.
UNKNOWN: dict[str, int] = dict.fromkeys(
    ("thread", "scheduler", "scope", "cluster", "block", "site", "submit", "ready", "dispatch", "start",
     "end", "finish", "arg"), -1
)  # fmt: skip

#: The times of a task, in order.
TIMES = ("submit", "ready", "dispatch", "start", "end", "finish")

CORE_TYPES = ("aic", "aiv")
KINDS = ("RAW", "WAW", "WAR", "explicit")
COUNTERS = ("task ring", "heap bytes", "dep pool", "tensormap entries", "ready aic", "ready aiv")

#: AicpuPhaseId -> name; phases of schedulers are below 16.
PHASES = {
    0: "complete", 1: "dispatch", 2: "scan", 3: "idle",
    16: "orch_sync", 17: "orch_alloc", 18: "orch_params", 19: "orch_lookup", 20: "orch_heap",
    21: "orch_insert", 22: "orch_fanin", 23: "orch_finalize", 24: "orch_scope_end",
}  # fmt: skip


def dtype(table: str) -> np.dtype[Any]:
    """Return the structured type of a table."""
    import numpy as np

    return np.dtype(list(FIELDS[table]))


def table(name: str, columns: Mapping[str, Any]) -> Array:
    """Return a table from its columns; missing columns get the values of UNKNOWN."""
    import numpy as np

    given = {field: np.asarray(values) for field, values in columns.items()}
    length = max((len(values) for values in given.values()), default=0)
    out = np.zeros(length, dtype(name))
    for field, _ in FIELDS[name]:
        out[field] = given.get(field, UNKNOWN.get(field, 0))
    return out


def as_dicts(table: Array) -> list[dict[str, int]]:
    """Return the rows of a table with Python numbers, which are much faster to iterate over than NumPy
    numbers."""
    names = table.dtype.names or ()
    return [dict(zip(names, row, strict=True)) for row in table.tolist()]


def core_name(core: int, core_type: int) -> str:
    """Return the name of a core in every view. A task without a core has -1."""
    if core < 0:
        return "no core"
    return f"{CORE_TYPES[core_type].upper()}_{core}"


def loop_numbers(phases: Array) -> Iterator[int]:
    """Yield the iteration of its scheduler's loop for each phase. An iteration has every phase at most once,
    in order."""
    turn: dict[int, tuple[int, int]] = {}
    for actor, phase in zip(phases["actor"].tolist(), phases["phase"].tolist(), strict=True):
        loop, last = turn.get(actor, (0, -1))
        loop += phase <= last
        turn[actor] = loop, phase
        yield loop


def us(ns: int) -> float:
    """Convert nanoseconds of a table to microseconds of trace files."""
    return round(ns / 1000, 3)
