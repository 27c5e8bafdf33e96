"""Records of one run of the task runtime: checked tables, written and read as `.npz` or `.json`.

The engine provides four structured arrays (`tables`) and three small ones. Everything that draws or analyses
a run uses only `Records`. Times are nanoseconds since the start of the run; -1 is a time that was not
recorded.

NumPy is imported when the first array is made, not with this module.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError
from ..shown import Shown
from . import swimlane_tables
from .arrays import read_npz
from .files import cannot_write
from .tables import COUNTERS, FIELDS, KINDS, PHASES, TIMES, dtype, table

if TYPE_CHECKING:
    from .tables import Array

#: Fields of `stats` with the exact peaks of the first COUNTERS, whose samples may miss a peak.
_EXACT = ("task_window_peak", "heap_peak", "dep_pool_peak", "tensormap_peak")

#: Maximum number of dependencies between blocks in a file.
MOST_LINKS = 1 << 24

FORMAT = "pto-runtime-records"
VERSION = 1


class Records(Shown):
    """Records of one run. The arrays have the columns of `FIELDS`; `names` maps func_id to the name of a
    kernel, `sites` are `file:line` of the submissions, and `stats` has all other counts of the engine."""

    def __init__(
        self,
        tasks: Array | None = None,
        edges: Array | None = None,
        phases: Array | None = None,
        counters: Array | None = None,
        names: Mapping[int, str] | None = None,
        sites: Sequence[str] = (),
        stats: Mapping[str, Any] | None = None,
    ) -> None:
        self.tasks = _as_table("tasks", tasks)
        self.edges = _as_table("edges", edges)
        self.phases = _as_table("phases", phases)
        self.counters = _as_table("counters", counters)
        self.names = dict(names or {})
        self.sites = list(sites)
        self.stats = dict(stats or {})

    def __repr__(self) -> str:
        return f"<Records: {len(self.tasks)} tasks, {len(self.edges)} edges, {len(self.phases)} phases>"

    def of(self, tasks: Sequence[int]) -> Records:
        """Return the records of some tasks, and the edges between them."""
        import numpy as np

        both = np.isin(self.edges["pred"], tasks) & np.isin(self.edges["succ"], tasks)
        mine = self.tasks[np.isin(self.tasks["task_id"], tasks)]
        return Records(mine, self.edges[both], None, None, self.names, self.sites, self.stats)

    def graph(self) -> dict[str, Any]:
        """Return tasks by number, each with its name and the tasks that wait for it."""
        after = self.fanouts()
        names = {int(t["task_id"]): self.name(int(t["func_id"])) for t in self.tasks}
        return {"tasks": [{"id": i, "name": n, "fanout": after.get(i, [])} for i, n in names.items()]}

    # -- access ---------------------------------------------------------------------------------------

    def name(self, func_id: int) -> str:
        return self.names.get(func_id) or f"Func_{func_id}"

    def label(self, task: Any) -> str:
        """Return `name(task_id)`, the label of a task in every view, or `name(task_id)[block]` for a
        block."""
        block = f"[{int(task['block'])}]" if task["block"] >= 0 else ""
        return f"{self.name(int(task['func_id']))}({int(task['task_id'])}){block}"

    def site(self, task: Any) -> str:
        number = int(task["site"])
        return self.sites[number] if 0 <= number < len(self.sites) else ""

    def rows(self, task_ids: Any) -> Array:
        """Return the (first) row of each task, or -1 for a task that is not recorded."""
        import numpy as np

        known = self.tasks["task_id"]
        if not len(known):
            return np.full(len(task_ids), -1)
        order = np.argsort(known, kind="stable")
        at = order[np.minimum(np.searchsorted(known, task_ids, sorter=order), len(known) - 1)]
        return np.where(known[at] == task_ids, at, -1)

    def links(self) -> tuple[Array, Array, Array]:
        """Return the dependencies between recorded tasks: the rows of both, and their rows in `edges`.

        Every block of a task depends on all blocks of another task; the last block to complete represents
        them.
        """
        import numpy as np

        pred, succ = self.rows(self.edges["pred"]), self.rows(self.edges["succ"])
        both = np.flatnonzero((pred >= 0) & (succ >= 0) & (pred != succ))
        pred, succ = pred[both], succ[both]
        ids, group, count = np.unique(self.tasks["task_id"], return_inverse=True, return_counts=True)
        if len(ids) == len(self.tasks):
            return pred, succ, both
        done = np.maximum(self.tasks["finish"], self.tasks["end"])
        done[self.tasks["end"] < 0] = np.iinfo(np.int64).max
        by_group = np.lexsort((self.tasks["end"], done, group))
        ends = np.cumsum(count)
        pred, succ = by_group[ends[group[pred]] - 1], group[succ]
        times = count[succ]  # each row of the successor gets the link
        step = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        rows = by_group[np.repeat(ends[succ] - times, times) + step]
        return np.repeat(pred, times), rows, np.repeat(both, times)

    def fanouts(self) -> dict[int, list[int]]:
        """Return task_id -> the tasks that wait for it, without duplicates, in order."""
        out: dict[int, set[int]] = {}
        for pred, succ in zip(self.edges["pred"].tolist(), self.edges["succ"].tolist(), strict=True):
            out.setdefault(pred, set()).add(succ)
        return {pred: sorted(succs) for pred, succs in out.items()}

    @property
    def ran(self) -> Array:
        """Mask of the tasks that started and ended; after a failed run, some tasks have not."""
        return (self.tasks["start"] >= 0) & (self.tasks["end"] >= 0)

    @property
    def virtual(self) -> bool:
        """True if times are from a model, not from the host that ran the virtual cores."""
        return "virtual_ns" in self.stats

    @property
    def block_dim(self) -> int:
        """Number of blocks: from the engine, or the smallest number with all recorded cores."""
        said = self.stats.get("block_dim")
        if isinstance(said, int) and said > 0:
            return said
        aic = self.tasks["core"][self.tasks["core_type"] == 0]
        aiv = self.tasks["core"][self.tasks["core_type"] == 1]
        least = max(int(aic.max(initial=-1)) + 1, int(aiv.max(initial=-1)) // 3 + 1, 1)
        return least if not len(aiv) else max(1, min(least, int(aiv.min())))

    @property
    def end(self) -> int:
        """Time of the last event of the run."""
        seen = [self.tasks[t] for t in TIMES] + [self.phases["end"], self.counters["time"]]
        return max(0, *[int(column.max(initial=0)) for column in seen])

    # -- checks ----------------------------------------------------------------------------------------

    def peak(self, counter: int) -> int | None:
        """Return the largest value of one of COUNTERS, or None if it was not recorded."""
        values = self.counters["value"][self.counters["which"] == counter]
        if not len(values):
            return None
        exact = self.stats.get(_EXACT[counter], 0) if counter < len(_EXACT) else 0
        return max(int(values.max()), int(exact))

    def check(self) -> list[Diagnostic]:
        """Return contradictions in the records. Errors make an analysis meaningless; warnings do not."""
        return [Diagnostic("PTO-E2802", message, severity=severity) for severity, message in self._problems()]

    def _problems(self) -> Iterator[tuple[str, str]]:
        import numpy as np

        tasks, edges = self.tasks, self.edges
        ids = np.unique(tasks["task_id"])
        pairs, times_seen = np.unique(tasks[["task_id", "block"]], return_counts=True)
        if (times_seen > 1).any():
            twice = pairs[times_seen > 1][0]
            block = f", block {twice['block']}," if twice["block"] >= 0 else ""
            yield "error", f"task {twice['task_id']}{block} is recorded {times_seen.max()} times"
        for field, low, high in (("core", 0, None), ("core_type", 0, 1)):
            bad = (tasks[field] < low) | ((tasks[field] > high) if high is not None else False)
            bad &= tasks["start"] >= 0
            if bad.any():
                row = tasks[bad][0]
                yield "error", f"unknown {field} of task {row['task_id']}: {row[field]}"
        ended = tasks[tasks["end"] >= 0]
        backwards = ended[ended["end"] < ended["start"]]
        if len(backwards):
            yield "error", f"task {backwards['task_id'][0]} ends before it starts"
        yield from self._order()
        for end in ("pred", "succ"):
            lost = edges[~np.isin(edges[end], ids)]
            if len(lost):
                yield "warning", f"{_edge(lost[0])} names a task that is not recorded"
        if (edges["pred"] == edges["succ"]).any():
            yield "error", f"task {edges['pred'][edges['pred'] == edges['succ']][0]} depends on itself"
        for field, values, known in (
            ("kind of dependency", edges["kind"], range(len(KINDS))),
            ("phase", self.phases["phase"], PHASES),
            ("counter", self.counters["which"], range(len(COUNTERS))),
        ):
            unknown = np.setdiff1d(values, list(known))
            if len(unknown):
                yield "error", f"unknown {field} {unknown[0]}"
        if (self.phases["end"] < self.phases["start"]).any():
            yield "error", "a phase ends before it starts"
        yield from self._early()

    def _order(self) -> Iterator[tuple[str, str]]:
        """Yield tasks whose times are out of order, one message for each pair of times."""
        known = [(a, b) for n, a in enumerate(TIMES) for b in TIMES[n + 1 :] if (a, b) != ("start", "end")]
        for first, second in known:
            a, b = self.tasks[first], self.tasks[second]
            bad = self.tasks[(a >= 0) & (b >= 0) & (b < a)]
            if len(bad):
                times = f"{second} at {bad[second][0]} ns, {first} at {bad[first][0]} ns"
                yield "warning", f"{len(bad)} tasks out of order, first task {bad['task_id'][0]}: {times}"

    def _early(self) -> Iterator[tuple[str, str]]:
        """Yield a task that started before a task that it depends on had ended."""
        pred, succ, edge = self.links()
        start, end = self.tasks["start"][succ], self.tasks["end"][pred]
        bad = (start >= 0) & ((end > start) | (end < 0))
        for n in bad.nonzero()[0][:1]:
            e = self.edges[edge[n]]
            when = f"at {end[n]} ns" if end[n] >= 0 else "never"
            times = f"{e['succ']} starts at {start[n]} ns, {e['pred']} ends {when}"
            yield "error", f"{_edge(e)} was violated: {times}"

    # -- files -----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the records to a file whose name ends in `.npz` (small and fast) or `.json` (columns of
        numbers)."""
        import numpy as np

        path = Path(path)
        meta = {
            "format": FORMAT, "version": VERSION, "names": {str(k): v for k, v in self.names.items()},
            "sites": self.sites, "stats": self.stats,
        }  # fmt: skip
        try:
            if path.suffix == ".json":
                columns = {t: {f: getattr(self, t)[f].tolist() for f, _ in FIELDS[t]} for t in FIELDS}
                path.write_text(json.dumps({**meta, **columns}, default=_plain), encoding="utf-8")
            elif path.suffix == ".npz":
                text = np.frombuffer(json.dumps(meta, default=_plain).encode(), np.uint8)
                with path.open("wb") as file:
                    np.savez_compressed(file, meta=text, **{t: getattr(self, t) for t in FIELDS})
            else:
                raise _unreadable(path, "expected a name that ends in .npz or .json")
        except OSError as error:
            raise cannot_write(path, error) from None
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Records:
        """Read a file that `save` wrote, or a `perf_swimlane` JSON file of simpler."""
        path = Path(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            why = f"cannot read {path}: {error.strerror or error}"
            raise DiagnosticError([Diagnostic("PTO-E0001", why)]) from None
        try:
            return cls._from_npz(data) if data[:2] == b"PK" else cls._from_json(data)
        except DiagnosticError as error:
            raise _unreadable(path, error.diagnostics[0].message) from None
        except Exception as error:  # any error of numpy, zipfile and json for a broken file
            raise _unreadable(path, str(error) or type(error).__name__) from None

    @classmethod
    def _from_npz(cls, data: bytes) -> Records:
        import io

        found = read_npz(io.BytesIO(data), ("meta", *FIELDS))
        return cls._assembled(json.loads(found.pop("meta").tobytes()), found)

    @classmethod
    def _from_json(cls, data: bytes) -> Records:
        content = json.loads(data)
        if not isinstance(content, dict):
            raise ValueError("expected a JSON object")
        if "format" not in content and "tasks" in content and "version" in content:
            return cls(*swimlane_tables.tables(content))._bounded()
        tables: dict[str, Array] = {}
        for name in FIELDS:
            columns = content.get(name, {})
            if not isinstance(columns, dict):
                raise ValueError(f"expected a table of columns in '{name}'")
            unknown = sorted(set(columns) - {field for field, _ in FIELDS[name]})
            if unknown:
                raise ValueError(f"unknown column '{unknown[0]}' in '{name}'")
            if len({len(values) for values in columns.values()}) > 1:
                raise ValueError(f"the columns of '{name}' differ in length")
            tables[name] = table(name, columns)
        return cls._assembled(content, tables)

    @classmethod
    def _assembled(cls, meta: Mapping[str, Any], tables: Mapping[str, Array]) -> Records:
        if meta.get("format") != FORMAT:
            raise ValueError(f"expected records in format '{FORMAT}'")
        if meta.get("version") != VERSION:
            raise ValueError(f"expected version {VERSION}, got {meta.get('version')!r}")
        names = {int(k): str(v) for k, v in dict(meta.get("names", {})).items()}
        found = cls(
            **tables, names=names, sites=[str(s) for s in meta.get("sites", ())], stats=meta.get("stats")
        )
        return found._bounded()

    def _bounded(self) -> Records:
        """Return the records; raise `ValueError` if they have too many dependencies between blocks. Every
        block of a task depends on all blocks of another (`links`)."""
        import numpy as np

        ids, count = np.unique(self.tasks["task_id"], return_counts=True)
        if len(ids):
            at = np.minimum(np.searchsorted(ids, self.edges["succ"]), len(ids) - 1)
            links = int(count[at][ids[at] == self.edges["succ"]].sum())
            if links > MOST_LINKS:
                raise ValueError(f"expected at most {MOST_LINKS} dependencies between blocks, got {links}")
        return self


def _as_table(name: str, array: Array | None) -> Array:
    """Return the array with exactly the fields of a table. Other fields of the engine are dropped."""
    import numpy as np

    wanted = dtype(name)
    if array is None:
        return np.zeros(0, wanted)
    if array.dtype == wanted:
        return array
    missing = [field for field, _ in FIELDS[name] if field not in (array.dtype.names or ())]
    if missing:
        raise DiagnosticError([Diagnostic("PTO-E2801", f"missing field '{missing[0]}' in table '{name}'")])
    return table(name, {field: array[field] for field, _ in FIELDS[name]})


def _plain(value: Any) -> Any:
    """Return a NumPy number in `stats` as a JSON number."""
    return value.item() if hasattr(value, "item") else str(value)


def _edge(edge: Any) -> str:
    kind = KINDS[edge["kind"]] if 0 <= edge["kind"] < len(KINDS) else str(edge["kind"])
    return f"the {kind} dependency {edge['pred']} -> {edge['succ']}"


def _unreadable(path: Path, why: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2801", f"{path}: {why}")])
