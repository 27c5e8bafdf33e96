"""Runs that fail, at random moments and again and again: the error is the right one, and nothing is left behind.

Failures are put into random places of a graph and met in many interleavings (deterministic mode, a seed each) and
with threads. What the C++ part leaks is seen by `make sanitize` (tests/native/programs/stress_engine.cpp); the other phases of
a run are in test_phases.py.
"""

from __future__ import annotations

import gc
import random
import re
import signal
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.runtime import kernel, run

from .leak_kit import assert_steady, needs_proc

WAYS: list[dict[str, Any]] = [{"seed": 1}, {"threads": 1}, {"threads": 3}]
RINGS: dict[str, Any] = {"block_dim": 3, "task_window": 32, "heap": 1 << 16, "log": lambda level, text: None}


class Injected(Exception):
    """Exception of the tests."""


add = kernel(lambda x, y: np.add(x, y, out=y), "in inout", name="add")
fill = kernel(lambda y, v: y.fill(v), "out scalar", name="fill")


def _raises(x: Any) -> None:
    raise Injected("in a kernel")


bad = kernel(_raises, "inout", name="bad")


def graph(rt: Any, x: Any, fault: str, when: int, dice: int) -> None:
    """Forty tasks in scopes, and one thing that goes wrong."""
    rng = random.Random(dice)
    for i in range(40):
        with rt.scope():
            y = rt.tensor(x.shape)
            rt.submit(fill, y, 1)
            rt.submit(add, y, x)
            if i != when:
                continue
            if fault == "kernel":
                rt.submit(bad, x)
            elif fault == "orchestration":
                raise Injected("in the orchestration")
            elif fault == "window":
                for _ in range(rng.randint(40, 60)):
                    rt.submit(add, x, x)
            elif fault == "heap":
                for _ in range(70):
                    rt.submit(fill, rt.tensor((256,)), 1)
            elif fault == "output":
                rt.submit(fill, rt.tensor((1 << 40,)), 1)
            elif fault == "clusters":
                for _ in range(4):
                    rt.allocate_cluster()
            elif fault == "arguments":
                rt.submit(add, rt.tensor((4,)), x)  # it was never written
            elif fault == "scopes":
                for _ in range(70):
                    rt._run.scope_begin()
            elif fault == "interrupt":
                raise KeyboardInterrupt


CODES = {"kernel": "PTO-E2622", "window": "PTO-E2620", "heap": "PTO-E2620", "output": "PTO-E2620",
         "clusters": "PTO-E2620", "arguments": "PTO-E2621", "scopes": "PTO-E2621"}  # fmt: skip
FAULTS = (*CODES, "orchestration", "interrupt")


def fail_once(fault: str, when: int, dice: int, **how: Any) -> None:
    """Run the graph and check how it ends."""
    x = np.zeros(16, np.float32)
    if fault == "orchestration":
        with pytest.raises(Injected, match="in the orchestration"):
            run(graph, x, fault, when, dice, **RINGS, **how)
    elif fault == "interrupt":
        with pytest.raises(KeyboardInterrupt):
            run(graph, x, fault, when, dice, **RINGS, **how)
    else:
        with pytest.raises(DiagnosticError) as caught:
            run(graph, x, fault, when, dice, **RINGS, **how)
        assert caught.value.diagnostics[0].code == CODES[fault], str(caught.value)
        if fault == "kernel":
            assert isinstance(caught.value.__cause__, Injected)
            assert "bad" in str(caught.value) and "in a kernel" in str(caught.value)
    assert 0 <= x[0] <= 2.0**40  # some of the tasks ran


@pytest.mark.parametrize("fault", FAULTS)
def test_any_interleaving_ends_with_the_error(fault: str) -> None:
    rng = random.Random(fault)
    for seed in range(60):
        fail_once(fault, rng.randrange(40), seed, seed=seed, schedulers=rng.randint(1, 4))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("fault", FAULTS)
def test_threads_end_with_the_error(fault: str, threads: int) -> None:
    rng = random.Random(f"{fault}{threads}")
    for seed in range(4):
        fail_once(fault, rng.randrange(40), seed, threads=threads)


def test_a_run_after_a_failure_is_like_any_other() -> None:
    for how in WAYS:
        fail_once("kernel", 5, 0, **how)
        x = np.zeros(16, np.float32)
        run(graph, x, "none", -1, 0, **RINGS, **how)
        assert (x == 40).all()


# -- resources left behind --------------------------------------------------------------------------------


@needs_proc
def test_two_hundred_failures_leave_nothing() -> None:
    """Each run maps a gigabyte of addresses by default, and starts threads: none of it may stay."""
    assert_steady(lambda n: fail_once(FAULTS[n % len(FAULTS)], n % 40, n, **WAYS[n % 3]), 60, 200)


@pytest.mark.parametrize("fault", ["kernel", "orchestration", "window"])
def test_arrays_are_let_go(fault: str) -> None:
    """The engine holds no reference to an exception, which would hold its frames, which hold everything."""

    class Array(np.ndarray[Any, Any]):
        pass

    x = np.zeros(16, np.float32).view(Array)
    gone = weakref.ref(x)
    with pytest.raises((DiagnosticError, Injected)):
        run(graph, x, fault, 5, 0, **RINGS, threads=2)
    del x
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("name", ["tensormap_and_ringbuffer", "host_build_graph"])
def test_runs_are_let_go(name: str) -> None:
    """A kernel with a reference to its runtime makes a circle through the engine, which no garbage collector
    sees."""
    gone: list[Any] = []

    def orchestrate(rt: Any) -> None:
        gone.append(weakref.ref(rt))
        add = kernel(lambda x: x.fill(1 if rt else 0), "out", name="knows")
        (rt.submit if name == "tensormap_and_ringbuffer" else rt.add_task)(add, x)

    x = np.zeros(4, np.float32)
    done = run(orchestrate, runtime=name)
    assert (x == 1).all() and done.stats["tasks"] == 1
    del done
    gc.collect()
    assert gone[0]() is None


# -- interruption ---------------------------------------------------------------------------------------------


def _interrupt_when(ready: threading.Event) -> None:
    main = threading.main_thread().ident
    assert main is not None
    ready.wait()
    signal.pthread_kill(main, signal.SIGINT)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread"
)
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_run(threads: int) -> None:
    """While tasks run, and while the orchestrator waits for them."""
    full = threading.Event()
    nap = kernel(lambda x: time.sleep(0.005), "inout", name="nap")
    x = np.zeros(4, np.float32)

    def orchestrate(rt: Any) -> None:
        for i in range(100_000):
            with rt.scope():
                rt.submit(nap, x)
            if i == 2 * RINGS["task_window"]:
                full.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start with it ignored
    threading.Thread(target=_interrupt_when, args=(full,), daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(orchestrate, **RINGS, threads=threads)
    finally:
        signal.signal(signal.SIGINT, before)


# -- bad options ----------------------------------------------------------------------------------------------

BAD_OPTIONS: list[dict[str, Any]] = [
    {"block_dim": 0}, {"block_dim": 25}, {"threads": -1}, {"schedulers": 0}, {"task_window": 2},
    {"task_window": 48}, {"heap": 100}, {"dep_pool": 3}, {"tensormap_pool": 0}, {"shards": 0},
]  # fmt: skip


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=lambda o: "{}={}".format(*next(iter(o.items()))))
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DiagnosticError) as caught:
        run(lambda rt: None, **options)
    assert next(iter(options)).replace("threads", "host_threads") in str(caught.value)


@pytest.mark.parametrize("shape", [(-1,), (2**40, 2**40), (2**63,), (1, 1, 1, 1, 1, 1)])
def test_impossible_tensors_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DiagnosticError):
        run(lambda rt: rt.submit(fill, rt.tensor(shape), 1), **RINGS)


def test_a_kernel_that_does_not_return_is_named() -> None:
    """Spec 2.9: the lines of a stall and of the diagnostic report."""
    lines: list[str] = []
    said = threading.Event()
    slow = kernel(lambda a: said.wait(600), "inout", name="slow")
    data = np.zeros(4, np.float32)

    def orchestrate(rt: Any) -> None:
        rt.submit(slow, data)
        rt.submit(add, data, data)

    def log(level: int, text: str) -> None:
        if "PTO2 stall: no progress for" in text and "total=2" in text:  # the second task may come late
            lines.append(text)
            said.set()

    run(orchestrate, threads=2, block_dim=2, stall_seconds=1, log=log)
    text = lines[0]
    here = re.escape(__file__)
    for pattern in (
        r"completed=0 total=2\n",
        r"  STUCK-WAIT   slot=1 kernel_id=1 refcount=0 fanin=1 state=0  task 1 \(add, ",
        r"  scan result: stuck_ready=0 stuck_waiting=1 in_flight=1\n",
        r"    core=\d cond=0x0\(state=0,id=0\) exec_id=0 payload_task=0 kernel=0\n",
        r"========== DIAGNOSTIC REPORT ==========\nProgress: 0/2 tasks \(0\.0%\)\nReady Queues: AIC=0, AIV=0\n",
        r"Core Status:\n  Core \d \[AIV, BUSY\]: COND=0x0 \(reg_task_id=0, reg_state=ACK\), executing_task_id=0, kernel_id=0",
        rf"AIV \d executes task 0 \(slow, submitted at {here}:\d+\)\nSummary: 1 busy, 5 idle\n",
        r"1 core executing for \d+ s: the kernel takes long, or never returns\n",
        r"========== END DIAGNOSTIC ==========$",
    ):
        assert re.search(pattern, text), pattern
    assert "HUNG" not in text and "STUCK-READY" not in text  # it may just be slow
