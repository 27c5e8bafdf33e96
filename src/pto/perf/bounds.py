"""Quality of a run: lower bounds of its schedule, and the overhead of its schedulers.

A run in virtual time has exactly the cores that it names. So its makespan can be compared with its lower
bounds: the longest chain of executions, and the work of each kind divided by the number of its cores.

*Scheduler overhead* is a measure of simpler: an instant counts for a kind of core if a core of that kind is
idle while a task of that kind is ready and not dispatched. A task is ready when the last task that it depends
on has ended.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from .analysis import Analysis
from .tables import CORE_TYPES

if TYPE_CHECKING:
    from .tables import Array


class TimeBounds(NamedTuple):
    """Bounds in nanoseconds. `work` has the sum of all executions and the number of cores, by kind of
    core."""

    makespan: int
    chain: int
    work: tuple[tuple[int, int], ...]

    @property
    def shares(self) -> tuple[float, ...]:
        """The work of each kind, divided by the number of its cores."""
        return tuple(spent / cores if cores else 0.0 for spent, cores in self.work)

    @property
    def least(self) -> float:
        """Lower bound of all schedules on these cores."""
        return max(float(self.chain), *self.shares)


def bounds(analysis: Analysis) -> TimeBounds:
    """Return the bounds of a run. Its makespan ends with the last execution."""
    tasks, blocks = analysis.records.tasks, analysis.records.block_dim
    placed = analysis.ran & (tasks["core"] >= 0)
    spent = analysis.times["end"] - analysis.times["start"]
    work = tuple(
        (int(spent[placed & (tasks["core_type"] == n)].sum()), blocks * (n + 1))
        for n in range(len(CORE_TYPES))
    )
    return TimeBounds(int(analysis.times["end"][analysis.ran].max(initial=0)), analysis.chain[1], work)


class SchedulerLoad:
    """Overhead of schedulers over time. `when` are the instants of changes. `idle`, `ready` and `overhead`
    have the value from each instant on, by kind of core.
    """

    def __init__(self, analysis: Analysis) -> None:
        import numpy as np

        t, tasks = analysis.times, analysis.records.tasks
        rows = np.flatnonzero(analysis.ran & (tasks["core"] >= 0))
        pred, succ = analysis.links
        free = t["submit"].copy()  # a task without dependencies is ready when it is submitted
        np.maximum.at(free, succ, t["end"][pred])
        free = np.minimum(free, t["dispatch"])
        marks = np.concatenate([t["dispatch"][rows], t["end"][rows], free[rows], t["start"][rows]])
        self.when = np.unique(marks)
        kinds = tasks["core_type"]
        shape = (len(CORE_TYPES), len(self.when))
        self.idle, self.ready = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.works = np.zeros(len(CORE_TYPES), bool)
        for n in range(len(CORE_TYPES)):
            mine = rows[kinds[rows] == n]
            self.works[n] = bool(len(mine))
            cores = analysis.records.block_dim * (n + 1)
            self.idle[n] = cores - self._between(t["dispatch"][mine], t["end"][mine])
            self.ready[n] = self._between(free[mine], t["dispatch"][mine])
        self.overhead = (self.idle > 0) & (self.ready > 0)
        self.first = int(t["start"][rows].min(initial=np.iinfo(np.int64).max)) if len(rows) else 0
        self.last = int(t["end"][rows].max(initial=0))

    def _between(self, start: Array, end: Array) -> Array:
        """Return the number of active intervals at each instant."""
        import numpy as np

        change = np.zeros(len(self.when), np.int64)
        np.add.at(change, np.searchsorted(self.when, start), 1)
        np.add.at(change, np.searchsorted(self.when, end), -1)
        return change.cumsum()

    @cached_property
    def _lengths(self) -> Array:
        """Duration from each instant to the next, clipped to the time between the first start and the last
        end."""
        import numpy as np

        inside = np.clip(self.when, self.first, self.last)
        return np.diff(np.append(inside, self.last))

    def share(self, holds: Any) -> float:
        """Return the share of the time from the first start to the last end."""
        whole = self.last - self.first
        return float(self._lengths[holds].sum()) / whole if whole > 0 else 0.0

    @property
    def shares(self) -> dict[str, float]:
        """Shares by kind of core. At an instant of `all`, every kind with work has overhead; at an instant of
        `any`, at least one has."""
        out = {kind: self.share(self.overhead[n]) for n, kind in enumerate(CORE_TYPES) if self.works[n]}
        if self.works.any():
            out["all"] = self.share(self.overhead[self.works].all(axis=0))
            out["any"] = self.share(self.overhead[self.works].any(axis=0))
        return out
