"""Data and signals between ranks: a task wrote to a window, and a task of another rank read it there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .records import Records

if TYPE_CHECKING:
    from .tables import Array

#: Kind of use that only reads (`Use` of native/runtime/exec/records.hpp).
_READ = 0

#: Largest read that counts as a signal, in bytes.
_SIGNAL = 8


class Passed(NamedTuple):
    """Data or a signal from a row of one run to a row of another run."""

    run: int
    row: int
    to_run: int
    to_row: int
    kind: str  # signal, data


def passed(ranks: Sequence[int], runs: Sequence[tuple[Records, int]], uses: Sequence[Array]) -> list[Passed]:
    """Return data and signals between runs. Each run has a rank, its records, its start in nanoseconds after
    the first, and the uses of windows by its tasks. If several tasks of a rank wrote data that a task read,
    the last of them that began before the reader ended counts."""
    rows = [{task: row for row, task in enumerate(r.tasks["task_id"].tolist())} for r, _ in runs]
    times = [(r.tasks["start"] + later, r.tasks["end"] + later) for r, later in runs]
    writes: list[tuple[int, int, int, int]] = []  # from, to, run, row
    reads: list[tuple[int, int, int, int]] = []
    for n, found in enumerate(uses):
        for task, first, last, _, use, _ in found.tolist():
            if (row := rows[n].get(task)) is not None and runs[n][0].tasks["end"][row] >= 0:
                (reads if use == _READ else writes).append((first, last, n, row))
    writes.sort()
    begins = [w[0] for w in writes]
    reach: list[int] = []  # the largest end of this write and all previous ones
    for w in writes:
        reach.append(max(w[1], reach[-1] if reach else 0))
    best: dict[tuple[int, int, int], tuple[int, Passed]] = {}
    for first, last, n, row in reads:
        ended = int(times[n][1][row])
        at = bisect_left(begins, last) - 1
        while at >= 0 and reach[at] > first:
            _, end, m, other = writes[at]
            began = int(times[m][0][other])
            if end > first and ranks[m] != ranks[n] and began < ended:
                kind = "signal" if last - first <= _SIGNAL else "data"
                known = best.get((n, row, ranks[m]))
                if known is None or known[0] < began:
                    best[n, row, ranks[m]] = began, Passed(m, other, n, row, kind)
            at -= 1
    return [found for _, found in best.values()]
