"""Analysis of the time of a run: its critical path, functions, cores, parallelism and gaps.

`Analysis` computes each of these on demand from `Records`. All results are about tasks that ran to their end,
and use *clean* times: a missing time is taken from its neighbor, and no duration is negative, although the
clocks of two threads may differ by a few nanoseconds.

Two chains answer two questions. `path` is the chain that the run waited for: from the last task back to the
dependency that was resolved last, and so on, up to a task that waited for its submission. Its parts add up to
the time of the run. `chain` is the longest sum of executions along dependencies: no schedule ends sooner,
with any number of cores.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from .records import Records
from .tables import CORE_TYPES, PHASES, TIMES

if TYPE_CHECKING:
    from .tables import Array

#: The parts of a path, in their order in time.
PARTS = ("orchestrator", "dependency", "queue", "head", "execution", "tail")


class PathStep(NamedTuple):
    """A task of a path: the time from which the run waited for it, and the duration of each part.

    `row` is its row in the tasks; `held_by` is the row of the task that occupied the core while this task was
    queued, or -1.
    """

    row: int
    since: int
    orchestrator: int
    dependency: int
    queue: int
    head: int
    execution: int
    tail: int
    held_by: int

    def parts(self) -> tuple[int, ...]:
        return self[2:8]


class FunctionStats(NamedTuple):
    """Times of the tasks of one function, in ns; averages unless stated otherwise. Latency is from dispatch
    to finish, head overhead from dispatch to start, tail overhead from end to finish."""

    func_id: int
    name: str
    tasks: int
    execution: float
    shortest: int
    longest: int
    total: int
    latency: float
    share: float
    head: float
    tail: float
    dependency: float
    queue: float


class CoreStats(NamedTuple):
    core: int
    core_type: int
    tasks: int
    busy: int
    utilisation: float


class CoreGap(NamedTuple):
    """A core without work before `task` (a row), and the parts of this time."""

    core: int
    start: int
    end: int
    before: int
    task: int
    orchestrator: int
    dependency: int
    queue: int
    head: int

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def reason(self) -> str:
        waits = self[5:9]
        return PARTS[waits.index(max(waits))]


def clean(records: Records) -> dict[str, Array]:
    """Return the times of all tasks, complete and in order. The times of a task that did not run are
    meaningless."""
    import numpy as np

    out = {name: records.tasks[name].astype(np.int64) for name in TIMES}
    for name, later in (("dispatch", "start"), ("ready", "dispatch"), ("submit", "ready")):
        known = out[name] >= 0
        out[name] = np.where(known, np.minimum(out[name], out[later]), out[later])
    out["finish"] = np.maximum(out["finish"], out["end"])
    return out


class Analysis:
    """All analyses of the records of one run."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.times = clean(records)
        self.ran = records.ran

    @cached_property
    def makespan(self) -> int:
        """Time from the start of the run to the finish of the last task."""
        return int(self.times["finish"][self.ran].max(initial=0))

    @cached_property
    def work(self) -> int:
        """Sum of all executions."""
        return int((self.times["end"] - self.times["start"])[self.ran].sum())

    @cached_property
    def links(self) -> tuple[Array, Array]:
        pred, succ, _ = self.records.links()
        both = self.ran[pred] & self.ran[succ]
        return pred[both], succ[both]

    # -- paths -----------------------------------------------------------------------------------------

    @cached_property
    def binding(self) -> Array:
        """For each task the task whose completion released it last, or -1 if it waited for its submission."""
        import numpy as np

        pred, succ = self.links
        out = np.full(len(self.ran), -1, np.int64)
        end, finish = self.times["end"], self.times["finish"]
        late = finish[pred] > self.times["submit"][succ]
        pred, succ = pred[late], succ[late]
        order = np.lexsort((-self.records.tasks["task_id"][pred], end[pred], finish[pred], succ))
        out[succ[order]] = pred[order]  # the last assignment for a task wins
        return out

    @cached_property
    def path(self) -> list[PathStep]:
        """The steps that the run waited for, from its start to its end."""
        import numpy as np

        rows = np.flatnonzero(self.ran)
        if not len(rows):
            return []
        t, ids = self.times, self.records.tasks["task_id"]
        last = int(rows[np.lexsort((-ids[rows], t["end"][rows], t["finish"][rows]))[-1]])
        chain, seen = [last], {last}
        while (before := int(self.binding[chain[-1]])) >= 0 and before not in seen:
            chain.append(before)
            seen.add(before)
        steps: list[PathStep] = []
        since = 0
        for row in reversed(chain):
            submit = 0 if steps else int(t["submit"][row])
            steps.append(self._step(row, since, submit, row == last))
            since = max(since, int(t["end"][row]))
        return steps

    def _step(self, row: int, since: int, submit: int, is_last: bool) -> PathStep:
        marks = [since, max(since, submit)]
        for name in ("ready", "dispatch", "start", "end", "finish"):
            marks.append(max(marks[-1], int(self.times[name][row])))
        lengths = [b - a for a, b in pairwise(marks)]
        if not is_last:
            lengths[-1] = 0
        return PathStep._make((row, since, *lengths, self._holder(row, marks[2])))

    @cached_property
    def _by_core(self) -> tuple[Array, Array]:
        """Rows of the tasks that ran, by core and start; and for each row the previous row on its core."""
        import numpy as np

        rows = np.flatnonzero(self.ran)
        core = self.records.tasks["core"]
        rows = rows[np.lexsort((self.times["end"][rows], self.times["start"][rows], core[rows]))]
        before = np.full(len(self.ran), -1, np.int64)
        same = core[rows[1:]] == core[rows[:-1]]
        before[rows[1:][same]] = rows[:-1][same]
        return rows, before

    def _holder(self, row: int, ready: int) -> int:
        before = int(self._by_core[1][row])
        return before if before >= 0 and self.times["end"][before] > ready else -1

    @cached_property
    def path_parts(self) -> dict[str, int]:
        """Sum of each part along the path. The sums add up to the makespan."""
        return {part: sum(step.parts()[n] for step in self.path) for n, part in enumerate(PARTS)}

    def orchestrator_steps(self) -> dict[str, int]:
        """Return the time of each phase of the orchestrator before it submitted the first task of the
        path."""
        p = self.records.phases
        until = self.path[0].orchestrator if self.path else 0
        mine = p[(p["actor"] < 0) & (p["start"] < until)]
        out: dict[str, int] = {}
        for phase, start, end in zip(
            mine["phase"].tolist(), mine["start"].tolist(), mine["end"].tolist(), strict=True
        ):
            name = PHASES.get(phase, str(phase))
            out[name] = out.get(name, 0) + min(end, until) - start
        return out

    @cached_property
    def chain(self) -> tuple[list[int], int]:
        """Rows of the longest chain of executions along dependencies, and its length in ns."""
        import numpy as np

        spent = self.times["end"] - self.times["start"]
        rows = np.flatnonzero(self.ran)
        by_time = rows[np.argsort(spent[rows], kind="stable")]
        _, task = np.unique(self.records.tasks["task_id"], return_inverse=True)
        longest = np.zeros(len(task), np.int64)  # task -> row of its longest block
        longest[task[by_time]] = by_time
        pred, succ = (longest[task[column]].tolist() for column in self.links)
        time = spent.tolist()
        follows: dict[int, list[int]] = {}
        open_ = [0] * len(time)
        for a, b in zip(pred, succ, strict=True):
            follows.setdefault(a, []).append(b)
            open_[b] += 1
        length, via = [0] * len(time), [-1] * len(time)
        free = [row for row in np.unique(longest[task[rows]]).tolist() if not open_[row]]
        best = -1
        while free:  # tasks on a cycle never become free
            row = free.pop()
            length[row] += time[row]
            if best < 0 or length[row] > length[best]:
                best = row
            for next_ in follows.get(row, ()):
                if length[row] > length[next_] or via[next_] < 0:
                    length[next_], via[next_] = length[row], row
                open_[next_] -= 1
                if not open_[next_]:
                    free.append(next_)
        found: list[int] = []
        at = best
        while at >= 0:
            found.append(at)
            at = via[at]
        return found[::-1], length[best] if best >= 0 else 0

    # -- functions, cores, phases ----------------------------------------------------------------------

    @cached_property
    def functions(self) -> list[FunctionStats]:
        import numpy as np

        tasks, t, out = self.records.tasks, self.times, []
        execution = t["end"] - t["start"]
        seen_both = self.ran & (tasks["dispatch"] >= 0) & (tasks["finish"] >= 0)

        def mean(values: Any) -> float:
            return float(values.mean()) if len(values) else 0.0

        for func_id in np.unique(tasks["func_id"][self.ran]).tolist():
            mine = self.ran & (tasks["func_id"] == func_id)
            both = mine & seen_both
            latency = (t["finish"] - t["dispatch"])[both]
            spent = execution[mine]
            out.append(FunctionStats(
                func_id, self.records.name(func_id), len(spent), mean(spent), int(spent.min()),
                int(spent.max()), int(spent.sum()), mean(latency),
                float(execution[both].sum() / latency.sum()) if latency.sum() else 0.0,
                mean((t["start"] - t["dispatch"])[both]), mean((t["finish"] - t["end"])[both]),
                mean((t["ready"] - t["submit"])[mine]), mean((t["dispatch"] - t["ready"])[mine]),
            ))  # fmt: skip
        return out

    @cached_property
    def test_time(self) -> int:
        """Time from the earliest dispatch to the latest finish, of the tasks with both; 0 if there are
        none."""
        tasks = self.records.tasks[self.ran]
        tasks = tasks[(tasks["dispatch"] >= 0) & (tasks["finish"] >= 0)]
        return int(tasks["finish"].max() - tasks["dispatch"].min()) if len(tasks) else 0

    @cached_property
    def cores(self) -> list[CoreStats]:
        """All cores by number, including cores without work."""
        import numpy as np

        blocks = self.records.block_dim
        placed = self.ran & (self.records.tasks["core"] >= 0)
        core = self.records.tasks["core"][placed]
        spent = (self.times["end"] - self.times["start"])[placed]
        count = max(3 * blocks, int(core.max(initial=-1)) + 1)
        busy = np.bincount(core, weights=spent, minlength=count)
        tasks = np.bincount(core, minlength=count)
        kinds = np.where(np.arange(count) < blocks, 0, 1)
        kinds[core] = self.records.tasks["core_type"][placed]
        total = self.makespan or 1
        return [
            CoreStats(n, int(kinds[n]), int(tasks[n]), int(busy[n]), float(busy[n]) / total)
            for n in range(count)
        ]

    def utilisation(self, core_type: int | None = None) -> float:
        """Return the mean share of the makespan during which the cores (of one type) executed."""
        mine = [c.utilisation for c in self.cores if core_type in (None, c.core_type)]
        return sum(mine) / len(mine) if mine else 0.0

    @cached_property
    def phases(self) -> dict[tuple[int, str], tuple[int, int, int]]:
        """(actor, phase) -> time spent, number of records, sum of the counts."""
        import numpy as np

        p = self.records.phases
        out: dict[tuple[int, str], tuple[int, int, int]] = {}
        for actor, phase in np.unique(p[["actor", "phase"]]).tolist():
            mine = p[(p["actor"] == actor) & (p["phase"] == phase)]
            spent = int((mine["end"] - mine["start"]).sum())
            name = PHASES.get(phase, str(phase))
            out[actor, name] = (spent, len(mine), int(mine["count"].sum(dtype=np.int64)))
        return out

    # -- parallelism and gaps --------------------------------------------------------------------------

    @cached_property
    def profile(self) -> tuple[Array, Array]:
        """Times at which the number of executing tasks changes, and the new number for each core type."""
        import numpy as np

        start, end = self.times["start"][self.ran], self.times["end"][self.ran]
        kind = self.records.tasks["core_type"][self.ran]
        when, at = np.unique(np.concatenate([start, end]), return_inverse=True)
        change = np.zeros((len(CORE_TYPES), len(when)), np.int64)
        for n in range(len(CORE_TYPES)):
            mine = np.concatenate([kind == n, kind == n])
            sign = np.repeat([1, -1], len(start))
            np.add.at(change[n], at[mine], sign[mine])
        return when, change.cumsum(axis=1)

    @cached_property
    def parallelism(self) -> dict[int, int]:
        """Number of tasks that execute at the same time -> duration, over the whole makespan."""
        import numpy as np

        when, levels = self.profile
        if not len(when):
            return {}
        lengths = np.diff(np.append(when, max(self.makespan, int(when[-1]))))
        out: dict[int, int] = {0: int(when[0])}
        for level, length in zip(levels.sum(axis=0).tolist(), lengths.tolist(), strict=True):
            out[level] = out.get(level, 0) + length
        return {level: out[level] for level in sorted(out) if out[level]}

    def idle(self, most: int = 10) -> list[tuple[int, int]]:
        """Return the longest intervals of the run in which no task executed."""
        import numpy as np

        when, levels = self.profile
        marks = np.concatenate([[0], when, [max(self.makespan, 0)]])
        nothing = np.concatenate([[True], levels.sum(axis=0) == 0])
        spans = [
            (int(a), int(b)) for a, b, idle in zip(marks, marks[1:], nothing, strict=False) if idle and b > a
        ]
        return sorted(spans, key=lambda s: (s[0] - s[1], s[0]))[:most]

    def gaps(self, most: int = 10) -> list[CoreGap]:
        """Return the longest idle times of a core before its next task."""
        import numpy as np

        rows, before = self._by_core
        t = self.times
        begin = np.where(before[rows] >= 0, t["end"][before[rows]], 0)
        length = t["start"][rows] - begin
        length[self.records.tasks["core"][rows] < 0] = 0  # a task without a core does not wait for one
        order = np.lexsort((rows, -length))[:most]
        return [self._gap(int(rows[n]), int(begin[n])) for n in order.tolist() if length[n] > 0]

    def _gap(self, row: int, begin: int) -> CoreGap:
        marks = [begin]
        for name in ("submit", "ready", "dispatch", "start"):
            marks.append(max(marks[-1], int(self.times[name][row])))
        waits = [b - a for a, b in pairwise(marks)]
        core = int(self.records.tasks["core"][row])
        return CoreGap._make((core, begin, marks[-1], int(self._by_core[1][row]), row, *waits))
