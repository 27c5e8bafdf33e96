"""Records of runs that never happened: a list scheduler over random graphs, one event at a time.

It shares nothing with the engine or with the analysis. It remembers *why* each thing happened when it did
(`Run.cause`), which is how the tests know the critical path without computing one.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from typing import NamedTuple

from pto.perf.records import Records
from pto.perf.tables import table

NAMES = {0: "qk_matmul", 1: "softmax", 2: "pv_matmul", 3: "online_update"}


class Run(NamedTuple):
    records: Records
    #: task -> the task whose completion made it ready, or -1 if that was its submission.
    cause: dict[int, int]


def simulate(tasks: int = 60, block_dim: int = 2, seed: int = 0, width: int = 12, schedulers: int = 2, submit_ns: int = 400,
             clusters: int = 0, exec_ns: tuple[int, int] = (2_000, 9_000)) -> Run:  # fmt: skip
    rng = random.Random(seed)
    core_type = [rng.choice((0, 1)) for _ in range(tasks)]
    func = [rng.choice((0, 2) if kind == 0 else (1, 3)) for kind in core_type]
    preds: list[list[tuple[int, int, int]]] = []  # pred, arg, kind
    for n in range(tasks):
        near = range(max(0, n - width), n)
        chosen = rng.sample(near, min(len(near), rng.choice((0, 1, 1, 2, 3))))
        preds.append([(p, arg, rng.choice((0, 0, 0, 1, 2, 3))) for arg, p in enumerate(chosen)])
    spent = [rng.randint(*exec_ns) for _ in range(tasks)]

    submit = [0] * tasks
    times = {name: [-1] * tasks for name in ("ready", "dispatch", "start", "end", "finish")}
    core, scheduler = [-1] * tasks, [-1] * tasks
    cause: dict[int, int] = {}
    phases: list[tuple[int, int, int, int, int]] = []
    counters: list[tuple[int, int, int]] = []
    now = 0
    for n in range(tasks):
        step = submit_ns // 4
        for k, phase in enumerate((16, 19, 21)):
            phases.append((-1, phase, now + k * step, now + (k + 1) * step, n))
        now += rng.randint(submit_ns, 2 * submit_ns)
        submit[n] = now

    waiting = [len(p) + 1 for p in preds]  # the submission counts as one
    succs: list[list[int]] = [[] for _ in range(tasks)]
    for n, mine in enumerate(preds):
        for p, _, _ in mine:
            succs[p].append(n)
    free = [deque(range(block_dim)), deque(range(block_dim, 3 * block_dim))]
    queue: tuple[deque[int], deque[int]] = (deque(), deque())
    events: list[tuple[int, int, str, int]] = [(submit[n], n, "submit", n) for n in range(tasks)]
    heapq.heapify(events)
    number, alive, peak = tasks, 0, 0

    def count(when: int) -> None:
        counters.extend(
            [(when, 0, alive), (when, 1, alive * 4096), (when, 4, len(queue[0])), (when, 5, len(queue[1]))]
        )

    def release(task: int, when: int, by: int) -> None:
        waiting[task] -= 1
        if not waiting[task]:
            cause[task] = by
            times["ready"][task] = when + rng.randint(20, 90)
            queue[core_type[task]].append(task)

    while events:
        now, _, what, task = heapq.heappop(events)
        if what == "submit":
            alive += 1
            release(task, now, -1)
        else:
            alive -= 1
            free[core_type[task]].append(core[task])
            phases.append((scheduler[task], 0, times["end"][task], now, 1))
            for next_ in succs[task]:
                release(next_, now, task)
        peak = max(peak, alive)
        for kind in (0, 1):
            while queue[kind] and free[kind]:
                n = queue[kind].popleft()
                core[n] = free[kind].popleft()
                scheduler[n] = core[n] % schedulers
                times["dispatch"][n] = max(now, times["ready"][n]) + rng.randint(30, 150)
                times["start"][n] = times["dispatch"][n] + rng.randint(100, 400)
                times["end"][n] = times["start"][n] + spent[n]
                times["finish"][n] = times["end"][n] + rng.randint(80, 300)
                phases.append((scheduler[n], 1, times["dispatch"][n] - 20, times["dispatch"][n] + 5, 1))
                heapq.heappush(events, (times["finish"][n], number, "finish", n))
                number += 1
        count(now)

    phases.sort(key=lambda p: (p[0], p[2]))
    group = [n // 6 if n // 6 < clusters else -1 for n in range(tasks)]
    records = Records(
        table("tasks", {"task_id": range(tasks), "func_id": func, "core": core, "core_type": core_type,
                        "thread": [c % 2 for c in core], "scheduler": scheduler, "scope": [n // 16 for n in range(tasks)],
                        "cluster": group, "site": [f % 4 for f in func], "submit": submit, **times}),
        table("edges", {"pred": [p for mine in preds for p, _, _ in mine],
                        "succ": [n for n, mine in enumerate(preds) for _ in mine],
                        "arg": [a for mine in preds for _, a, _ in mine],
                        "kind": [k for mine in preds for _, _, k in mine]}),
        table("phases", dict(zip(("actor", "phase", "start", "end", "count"), zip(*phases, strict=True), strict=True))),
        table("counters", dict(zip(("time", "which", "value"), zip(*counters, strict=True), strict=True))),
        NAMES, [f"orchestration.cpp:{40 + 7 * n}" for n in range(4)],
        {"block_dim": block_dim, "runtime": "tensormap_and_ringbuffer", "tasks": tasks, "threads": 2,
         "task_window": 1024, "task_window_peak": peak, "blocked": {"task_ring": 0, "heap_ring": 0}},
    )  # fmt: skip
    return Run(records, cause)
