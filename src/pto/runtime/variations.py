"""The same run in virtual time with other numbers of blocks or schedulers, or another window.

    for row in runtime.what_if(orchestrate, a, out, durations={"add": 3}, block_dim=[8, 16, 24]):
        print(row.value, row.makespan_us)

Every variation is a separate run: an orchestration that reads the number of cores gets the value of its run.
The first row is the unchanged run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..diag import did_you_mean
from .tensors import refuse

#: Options that can be varied, and their aliases.
OPTIONS = ("block_dim", "schedulers", "task_window", "heap")
_OTHERS = {"window": "task_window", "block-dim": "block_dim", "blocks": "block_dim"}
_MOST = 64
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


class Variation(NamedTuple):
    """One run: the changed option (an empty name for none), and its results."""

    option: str
    value: int
    makespan_us: float
    bound_us: float
    aic: float  # share of the makespan in which the AICs worked
    aiv: float
    overhead: float  # overhead of schedulers, for all kinds of cores
    blocked: int  # times that the orchestrator had to wait


def parse(texts: Iterable[str]) -> dict[str, list[int]]:
    """Parse options of a command line: `block_dim=8,16,24` and `schedulers=1..4`."""
    out: dict[str, list[int]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        found: list[int] = []
        for part in values.split(","):
            if several := _RANGE.fullmatch(part.strip()):
                found += range(int(several[1]), int(several[2]) + 1)
            elif part.strip().isdigit():
                found.append(int(part))
            else:
                equals = ""
        if not equals or not found:
            raise refuse(f"--what-if {text}: expected an option and numbers", "--what-if block_dim=8,16,24")
        out.setdefault(_option(name.strip()), []).extend(found)
    return out


def _option(name: str) -> str:
    found = _OTHERS.get(name, name)
    if found not in OPTIONS:
        raise refuse(f"what-if: unknown option '{name}'", did_you_mean(name, OPTIONS) or ", ".join(OPTIONS))
    return found


def vary(run: Callable[[dict[str, int]], Any], changes: Mapping[str, Sequence[int]]) -> list[Variation]:
    """Return the rows of a table. `run` gets the changed options, one option at a time, and returns
    records."""
    todo = [("", 0), *((_option(name), int(v)) for name, values in changes.items() for v in values)]
    if len(todo) > _MOST:
        raise refuse(f"what-if: too many runs: {len(todo)}, at most {_MOST}")
    return [_row(name, value, run({name: value} if name else {})) for name, value in todo]


def _row(option: str, value: int, records: Any) -> Variation:
    from ..perf.analysis import Analysis
    from ..perf.bounds import SchedulerLoad, bounds

    a = Analysis(records)
    found = bounds(a)
    blocked = records.stats.get("blocked", {})
    return Variation(
        option, value, found.makespan / 1e3, found.least / 1e3, a.utilisation(0), a.utilisation(1),
        SchedulerLoad(a).shares.get("any", 0.0), sum(blocked.values()) if isinstance(blocked, dict) else 0,
    )  # fmt: skip


def what_if(orchestrate: Callable[..., Any], *args: Any, **given: Any) -> list[Variation]:
    """Run in virtual time with each value of those of `block_dim`, `schedulers`, `task_window` and `heap`
    that are lists. Other arguments are those of `run`."""
    from .runs import run

    changes = {k: v for k, v in given.items() if k in OPTIONS and isinstance(v, Iterable)}
    rest = {k: v for k, v in given.items() if k not in changes} | {"virtual_time": True, "record": True}
    return vary(lambda changed: run(orchestrate, *args, **{**rest, **changed}).records, {
        name: list(values) for name, values in changes.items()})  # fmt: skip


def table(rows: Sequence[Variation]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return head and cells of a table for a terminal."""
    head = (
        "what if",
        "makespan",
        "change",
        "bound",
        "x bound",
        "AIC busy",
        "AIV busy",
        "overhead",
        "blocked",
    )
    base = rows[0].makespan_us
    cells = [
        (
            f"{r.option}={r.value}" if r.option else "as it is",
            f"{r.makespan_us:.2f} us",
            f"{r.makespan_us / base - 1:+.1%}" if r.option and base else "",
            f"{r.bound_us:.2f} us",
            f"{r.makespan_us / r.bound_us:.2f}" if r.bound_us else "-",
            f"{r.aic:.1%}",
            f"{r.aiv:.1%}",
            f"{r.overhead:.1%}",
            str(r.blocked),
        )
        for r in rows
    ]
    return head, cells
