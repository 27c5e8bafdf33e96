"""Read the raw profiling file of simpler, `perf_swimlane_<time>.json`, in versions 1 and 2.

`tables` returns the tables of `Records`, so that the run can be analysed, drawn and traced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError
from .tables import CORE_TYPES, KINDS, PHASES, table

if TYPE_CHECKING:
    from .tables import Array


def tables(data: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Return the tasks, edges and phases of a raw profiling file (versions 1 and 2), written by simpler or
    `swimlane_json`."""
    if data.get("version") not in (1, 2):
        raise _bad(f"expected version 1 or 2 of a perf_swimlane file, got {data.get('version')!r}")
    try:
        return _tables(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"missing field {error}" if isinstance(error, KeyError) else str(error)
        raise _bad(f"not a perf_swimlane file: {what}") from None


def _tables(data: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    raw = data["tasks"]
    columns: dict[str, list[int]] = {
        "task_id": [int(t["task_id"]) for t in raw], "func_id": [int(t["func_id"]) for t in raw],
        "core": [int(t["core_id"]) for t in raw],
        "core_type": [CORE_TYPES.index(t["core_type"]) for t in raw],
        "start": [_ns(t["start_time_us"]) for t in raw], "end": [_ns(t["end_time_us"]) for t in raw],
    }  # fmt: skip
    for field in ("dispatch", "finish", "submit", "ready"):  # in the file, 0 is a time that was not recorded
        columns[field] = [_ns(t.get(f"{field}_time_us", 0)) or -1 for t in raw]
    edges = [(int(t["task_id"]), int(succ)) for t in raw for succ in t.get("fanout", ())]
    numbers = {name: id_ for id_, name in PHASES.items()}
    phases: list[tuple[int, int, int, int, int]] = []
    for actor, rows in enumerate(data.get("aicpu_scheduler_phases", ())):
        phases += [(actor, numbers[r["phase"]], _ns(r["start_time_us"]), _ns(r["end_time_us"]),
                    int(r.get("tasks_processed", 0))) for r in rows]  # fmt: skip
    phases += [(-1, numbers[r["phase"]], _ns(r["start_time_us"]), _ns(r["end_time_us"]),
                int(r.get("submit_idx", 0))) for r in data.get("aicpu_orchestrator_phases", ())]  # fmt: skip
    fields = ("actor", "phase", "start", "end", "count")
    ends = {"pred": [a for a, _ in edges], "succ": [b for _, b in edges]}
    return (
        table("tasks", columns),
        table("edges", {**ends, "kind": [KINDS.index("explicit")] * len(edges)}),
        table("phases", dict(zip(fields, zip(*phases, strict=True), strict=False))),
    )


def _ns(value: Any) -> int:
    return round(float(value) * 1000)


def _bad(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2801", message)])
