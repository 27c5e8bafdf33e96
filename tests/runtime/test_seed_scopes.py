"""Scopes and lifetimes, limits of a submission, and early ends of a run.

Sections of the description: Scopes, Deadlock detection (released resources), Orchestration API, and spec 2.3,
2.7, 2.11.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.runtime import Runtime, kernel, run

from .seed_kit import bump, fails, quiet, read, touch, touch_aic, vector, write

# -- scopes --------------------------------------------------------------------------------------------------


def test_memory_comes_back_at_the_end_of_a_scope() -> None:
    """Scopes: outputs of a scope are reclaimed when it has ended and their readers have run."""
    x = vector(256)
    copy = kernel(lambda a, b: np.copyto(b, a), "in out", name="copy")
    out = vector(256)

    def orchestrate(rt: Runtime) -> None:
        for _ in range(100):
            with rt.scope():
                t = rt.tensor(256)
                rt.submit(copy, x, t)
                rt.submit(copy, t, out)

    done, _ = quiet(orchestrate, heap=4096)
    assert done.stats["heap_peak"] <= 4096
    assert done.stats["max_scope_tasks"] == 2
    assert done.stats["max_scope_depth"] == 2


def test_a_reader_keeps_memory_after_the_scope() -> None:
    """Scopes: fanout_count is 1 for the scope and 1 for each consumer; all have to let go."""
    seen: list[float] = []
    gate = threading.Event()
    fill = kernel(lambda x: x.fill(7), "out", name="fill")
    slow = kernel(lambda x: (gate.wait(600), seen.append(float(x.min()))), "in", name="slow")
    other = kernel(lambda x: x.fill(-1), "out", name="other")

    def orchestrate(rt: Runtime) -> None:
        with rt.scope():
            t = rt.tensor(256)
            rt.submit(fill, t)
            rt.submit(slow, t)
        first = t.address
        for _ in range(3):
            with rt.scope():
                u = rt.tensor(256)
                rt.submit(other, u)
                assert u.address != first
        gate.set()

    quiet(orchestrate, heap=4096, threads=2)
    assert seen == [7.0]


def test_nested_scopes_release_their_own_tasks() -> None:
    """Scopes: a task belongs to the innermost open scope."""
    x = vector()

    def orchestrate(rt: Runtime) -> None:
        rt.submit(touch, x)
        with rt.scope():
            rt.submit(touch, x)
            with rt.scope():
                rt.submit(touch, x)
            rt.submit(touch, x)
        rt.submit(touch, x)

    done, _ = quiet(orchestrate, record=True)
    scopes = done.records.tasks["scope"].tolist()
    assert scopes[0] == scopes[4] and scopes[1] == scopes[3]
    assert len({scopes[0], scopes[1], scopes[2]}) == 3


@pytest.mark.parametrize("depth", [62, 63])
def test_64_scopes(depth: int) -> None:
    """Spec 2.7: the stack holds 64 scopes, the outer one among them."""

    def orchestrate(rt: Runtime, levels: int) -> None:
        with contextlib.ExitStack() as stack:
            for _ in range(levels):
                stack.enter_context(rt.scope())
            rt.submit(touch, SHARED)

    done, _ = quiet(orchestrate, depth)
    assert done.stats["max_scope_depth"] == depth + 1
    if depth == 63:
        text = fails(orchestrate, depth + 1, code="PTO-E2621")
        assert text.startswith("Scope stack overflow: more than 64 scopes")
        assert Path(__file__).name in text


SHARED = vector(4)


def test_more_ends_than_begins() -> None:
    """Spec 2.7, 2.3: the texts for an empty stack."""
    text = fails(lambda rt: [rt._run.scope_end() for _ in range(2)], code="PTO-E2621")
    assert text == "Scope stack underflow: no scope is open"
    text = fails(lambda rt: (rt._run.scope_end(), rt.submit(touch, SHARED)), code="PTO-E2621")
    assert text.endswith("Cannot submit task outside a scope")


def test_use_after_the_scope_is_found() -> None:
    """Spec 2.7: nothing prevents it; the check finds it whether or not the memory has been given away."""

    def orchestrate(rt: Runtime, between: int) -> None:
        with rt.scope():
            t = rt.tensor(256)
            rt.submit(write, t)
        for _ in range(between):
            with rt.scope():
                rt.submit(write, rt.tensor(256))
        rt.submit(read, t.view([8], [8]))

    for between in (0, 1, 70):
        done, _ = quiet(orchestrate, between, heap=4096, threads=1, check_hazards=True)
        (hazard,) = [h for h in done.hazards if h.kind == "scope"]
        assert (hazard.later, hazard.arg) == (between + 1, 0)
    assert "memory whose scope has ended" in str(hazard) and Path(__file__).name in str(hazard)


def test_use_inside_the_scope_is_fine() -> None:
    """The same graph with the reader inside."""

    def orchestrate(rt: Runtime) -> None:
        for _ in range(70):
            with rt.scope():
                t = rt.tensor(256)
                rt.submit(write, t)
                rt.submit(read, t)

    assert quiet(orchestrate, heap=4096, threads=1, check_hazards=True)[0].hazards == []


# -- limits of a submission ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [16, 17, 64])
def test_64_parameters(count: int) -> None:
    """Spec 1, 2.11: a task of the documents has at most 16 parameters; those of the field's frontend have more.
    More than 16 lie elsewhere, and go with their tasks."""
    got: list[list[int]] = []
    full = kernel(
        lambda *a: got.append([int(v) for v in a[1:]]), "inout" + " scalar" * (count - 1), name="full"
    )

    def orchestrate(rt: Any) -> None:
        for n in range(20):
            with rt.scope():
                rt.submit(full, SHARED, *range(n, n + count - 1))

    quiet(orchestrate, task_window=4)
    assert got == [list(range(n, n + count - 1)) for n in range(20)]
    with pytest.raises(DiagnosticError, match="65 parameters, at most 64"):
        kernel(lambda *a: None, "in " * 65)


def test_worker_types() -> None:
    """Spec 2.2: CUBE runs on AIC, VECTOR on AIV; other types have no cores; a kernel has its type."""
    x = vector()

    def orchestrate(rt: Runtime) -> None:
        rt.submit(touch_aic, x)
        rt.submit(touch, x)

    done, _ = quiet(orchestrate, record=True)
    assert done.records.tasks["core_type"].tolist() == [0, 1]
    core = done.records.tasks["core"].tolist()
    assert 0 <= core[0] < 3 <= core[1] < 9  # 0..block_dim-1 are AIC, the rest AIV

    def as_type(worker: int) -> Any:
        return lambda rt: rt._run.submit(rt._add(touch), worker, b"", [])

    for worker in (2, 3, -1):
        text = fails(as_type(worker), code="PTO-E2621")
        assert f"worker type {worker} has no cores" in text
    text = fails(as_type(0), code="PTO-E2621")
    assert "for AIV cores and was submitted as PTO2_WORKER_CUBE" in text
    text = fails(lambda rt: rt._run.submit(40, 0, b"", []), code="PTO-E2621")
    assert text.endswith("no kernel has this func_id") and "kernel 40" in text


# -- how a run ends early ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 3}, {"seed": 2}])
def test_a_failing_kernel(how: dict[str, Any]) -> None:
    """The error of the kernel is raised, with the task and the core; nothing hangs; the next run works."""

    def orchestrate(rt: Runtime) -> None:
        for i in range(1000):
            with rt.scope():
                rt.submit(bad if i == 100 else touch, SHARED)

    bad = kernel(lambda x: {}[1], "inout", name="bad")
    with pytest.raises(DiagnosticError) as caught:
        run(orchestrate, block_dim=2, task_window=16, **how)
    assert "task 100 (bad, AIV" in str(caught.value)
    assert caught.value.diagnostics[0].code == "PTO-E2622"
    assert isinstance(caught.value.__cause__, KeyError)
    x = vector(1)
    quiet(lambda rt: rt.submit(bump, x), **how)
    assert x[0] == 1


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 3}, {"seed": 2}])
def test_a_throwing_orchestration(how: dict[str, Any]) -> None:
    """Its own exception comes out, from inside open scopes and with tasks under way."""

    def orchestrate(rt: Runtime) -> None:
        with rt.scope(), rt.scope():
            for i in range(100):
                rt.submit(touch, SHARED)
                if i == 50:
                    raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run(orchestrate, block_dim=2, **how)


def test_an_orchestration_that_catches_the_end_goes_no_further() -> None:
    """After a failure every call throws; the failure is raised."""

    def orchestrate(rt: Runtime) -> None:
        for _ in range(20):
            with contextlib.suppress(RuntimeError):
                rt.submit(read, rt.tensor(4))
        calls.append(1)

    calls: list[int] = []
    text = fails(orchestrate, code="PTO-E2621")
    assert calls == [1] and text.startswith("task 0 ")


def _threads() -> tuple[int, int]:
    """Threads of Python, and of the process."""
    return threading.active_count(), len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 0


def test_failures_leave_no_threads() -> None:
    """Every end releases its resources. The system lists a thread a moment longer than it is there."""
    before = _threads()
    for _ in range(5):
        fails(lambda rt: [rt.submit(touch, SHARED) for _ in range(20)], task_window=4, threads=4)
        with contextlib.suppress(ZeroDivisionError):
            run(lambda rt: 1 / 0, threads=4)
    deadline = time.monotonic() + 60
    while (after := _threads())[1] > before[1] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert after[0] <= before[0] and after[1] <= before[1]  # one of an earlier test may have ended meanwhile


INTERRUPTED = """
import itertools, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start with it ignored
import numpy as np
from pto.runtime import kernel, run
x = np.zeros(4, np.float32)
slow = kernel(lambda t: time.sleep(0.01), "inout", name="slow")
endless = kernel(lambda t: None, "inout", name="endless")
def go():
    print("go", flush=True)
def blocked(rt):          # waits for the ring most of the time
    for i in itertools.count():
        with rt.scope():
            rt.submit(slow, x)
        if i == 20:
            go()
def busy(rt):             # submits all the time
    for i in itertools.count():
        with rt.scope():
            rt.submit(endless, x)
        if i == 20:
            go()
over = threading.Event()
def drained(t):           # tasks wait for the end of the orchestration, except where it has to do them itself
    if threading.current_thread() is not threading.main_thread():
        over.wait(600)
    if over.is_set():
        time.sleep(0.5)
drained = kernel(drained, "inout", name="drained")
def draining(rt):         # is over, tasks are not
    for _ in range(5000):
        rt.submit(drained, x)
    over.set()
    go()
try:
    run(eval(sys.argv[1]), block_dim=2, task_window=int(sys.argv[2]), threads=int(sys.argv[3]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
run(lambda rt: rt.submit(endless, x), block_dim=1)
print("again", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("what", ["blocked", "busy", "draining"])
def test_ctrl_c(what: str, threads: int) -> None:
    """Ctrl-C ends a run in any of its states; KeyboardInterrupt comes out and the process lives on."""
    command = [sys.executable, "-c", INTERRUPTED, what, "8192" if what == "draining" else "8", str(threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
        process.communicate()
    assert (out, process.returncode) == ("interrupted\nagain\n", 0), err
