"""A failure in every phase of a run, again and again: compilation, loading, orchestration, kernels, rings, and Ctrl-C
while orchestrating, while tasks are dispatched, and while the last ones run. Each ends with its own error; threads, open
files, memory and child processes are the same afterwards.

C++ orchestrations take the failure as an argument, so that each is compiled once.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache as cached
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import made
from tests.sampling import some

from pto import _runtime, cache, knobs
from pto.diag import DiagnosticError
from pto.runtime import kernel, run
from pto.runtime.compile import Job, compile_all
from pto.runtime.engine import TaskEngine

from .header_build import COMPILER
from .leak_kit import assert_steady, needs_proc

pytestmark = [needs_proc, pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")]

FINE, KERNEL_THROWS, ORCHESTRATION_THROWS, OUT_OF_MEMORY, TOO_MANY, BAD_ADDRESS, DIVIDES, RECURSES = range(8)

#: What ends code that divides by zero: the processor, or a check of the compiler where it does not.
DIVISION = "SIGFPE" if platform.machine() == "x86_64" else "SIGTRAP"

KERNEL = """\
#include <stdint.h>
#include <stdexcept>
extern "C" void kernel_entry(int64_t* args) {
  if (args[0] == 1) throw std::runtime_error("thrown by the kernel");
}
"""
#: The failure of an orchestration in its twentieth step, by argument.
FAULTS = """\
struct Shrink {
  volatile int at = 0, none = 0;
  int deeper(int n) {
    volatile int held[4000];
    held[n % 4000] = n;
    return deeper(n + 1) + held[n % 3999];
  }
};
static Shrink shrink;
static void fail(uint64_t fault) {
  if (fault == 2) throw std::runtime_error("thrown by the orchestration");
  if (fault == 5) *(volatile int*)8 = 1;
  if (fault == 6) shrink.at = 7 / shrink.none;
  if (fault == 7) shrink.deeper(1);
}
"""
TENSORS = """\
#include <stdexcept>
#include <vector>
#include "pto_orchestration_api.h"
FAULTS
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  const std::vector<int> held(1000);
  uint64_t shapes[1] = {256};
  for (int i = 0; i < 30; i++) {
    PTO2_SCOPE(rt) {
      if (i == 20) fail(args[0]);
      uint64_t huge[1] = {uint64_t(1) << 40};
      Tensor t = make_tensor(i == 20 && args[0] == 3 ? huge : shapes, 1, DataType::FLOAT32);
      for (int n = 0; n < (i == 20 && args[0] == 4 ? 100 : 1); n++) {
        PTOParam params[] = {make_scalar_param(i == 20 && args[0] == 1), make_output_param(t)};
        pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, params, 2);
      }
    }
  }
}
"""
HOST = """\
#include <stdexcept>
#include "runtime.h"
FAULTS
extern "C" int build(Runtime* runtime, uint64_t* args, int) {
  for (int i = 0; i < 30; i++) {
    uint64_t slots[] = {uint64_t(i == 20 && args[0] == 1)};
    runtime->host_api.device_malloc(i == 20 && args[0] == 3 ? size_t(1) << 60 : 4096);
    if (i == 20) fail(args[0]);
    const int task = runtime->add_task(slots, i == 20 && args[0] == 4 ? 17 : 1, 0, CoreType::AIV);
    if (i > 0) runtime->add_successor(i - 1, task);
  }
  return 0;
}
"""
DEVICE = """\
#include <stdexcept>
#include "runtime.h"
FAULTS
extern "C" int build(Runtime* runtime) {
  const AicpuBuildApi& api = runtime->aicpu_build_api;
  const uint64_t fault = runtime->orch_args[0];
  for (int i = 0; i < 30; i++) {
    uint64_t slots[] = {uint64_t(i == 20 && fault == 1)};
    api.device_malloc(i == 20 && fault == 3 ? size_t(1) << 60 : 4096);
    if (i == 20) fail(fault);
    const int task = api.add_task(runtime, slots, i == 20 && fault == 4 ? 17 : 1, 0, CoreType::AIV, 0);
    if (i > 0) api.add_successor_conditional(runtime, i - 1, task);
    api.publish_task(runtime, task);
  }
  return 0;
}
"""
VARIANTS = {
    "tensormap_and_ringbuffer": (TENSORS.replace("FAULTS", FAULTS), "aicpu_orchestration_entry"),
    "host_build_graph": (HOST.replace("FAULTS", FAULTS), "build"),
    "aicpu_build_graph": (DEVICE.replace("FAULTS", FAULTS), "build"),
}
#: By failure: the code, and the message.
EXPECTED = {
    KERNEL_THROWS: ("PTO-E2622", "thrown by the kernel"),
    ORCHESTRATION_THROWS: ("PTO-E26", "thrown by the orchestration"),
    OUT_OF_MEMORY: ("PTO-E262", ""),
    TOO_MANY: ("PTO-E262", ""),
}


def compile_one(name: str, text: str, core: str = "", variant: str = "", entry: str = "") -> str:
    source = made.written({f"{name}.cpp": text}) / f"{name}.cpp"
    (library,) = compile_all(
        [Job(name, str(source), core, runtime=variant or "host_build_graph", entry=entry)]
    )
    return library.path


@pytest.fixture(scope="module")
def step() -> str:
    return compile_one("step", KERNEL, "aiv")


@pytest.fixture(scope="module")
def orchestrations() -> Callable[[str], str]:
    """The library of each variant, built once."""

    @cached
    def library(variant: str) -> str:
        text, entry = VARIANTS[variant]
        return compile_one(variant, text, variant=variant, entry=entry)

    return library


Orchestrations = Callable[[str], str]


@pytest.mark.parametrize("variant", VARIANTS)
def test_compiled_orchestrations(variant: str, step: str, orchestrations: Orchestrations) -> None:
    path, (_, entry) = orchestrations(variant), VARIANTS[variant]
    ways: list[dict[str, Any]] = [
        {"threads": 1},
        {"threads": 3},
        {"seed": 1},
        {"threads": 2, "profiling": True},
    ]

    def once(n: int) -> None:
        fault = n % 5
        rings = {"task_window": 32, "heap": 1 << 16} if variant == "tensormap_and_ringbuffer" else {}
        engine = TaskEngine({"runtime": variant, "block_dim": 3, **rings, **ways[n // 5 % len(ways)]})
        engine.add_kernel(0, "step", "aiv", step)
        if fault == FINE:
            engine.run_orchestration(path, entry, [fault])
            return
        with pytest.raises(DiagnosticError) as caught:
            engine.run_orchestration(path, entry, [fault])
        code, said = EXPECTED[fault]
        (problem,) = caught.value.diagnostics
        assert problem.code.startswith(code) and said in problem.message, problem.message

    assert_steady(once, 60, 200)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "fault, said",
    [
        (BAD_ADDRESS, "touched address 0x8, where it may not (SIGSEGV)"),
        (DIVIDES, f"was ended by {DIVISION}: a division by zero"),
        (RECURSES, "used up its stack"),
    ],
)
def test_orchestrations_that_fault(
    variant: str, fault: int, said: str, step: str, orchestrations: Orchestrations
) -> None:
    """The run fails; the next one in this process is fine."""
    path, (_, entry) = orchestrations(variant), VARIANTS[variant]
    threads = threading.active_count()
    for way in ({"threads": 1}, {"threads": 3}, {"seed": 1}):
        for mode in (fault, FINE):
            engine = TaskEngine({"runtime": variant, "block_dim": 3, **way})
            engine.add_kernel(0, "step", "aiv", step)
            if mode == FINE:
                engine.run_orchestration(path, entry, [mode])
                continue
            with pytest.raises(DiagnosticError) as caught:
                engine.run_orchestration(path, entry, [mode])
            (problem,) = caught.value.diagnostics
            assert problem.code == "PTO-E2623" and f"the orchestration {said}" in problem.message
    assert threading.active_count() == threads


@pytest.mark.parametrize("variant", some(VARIANTS, 3))
def test_libraries_that_cannot_be_loaded(variant: str, step: str) -> None:
    """An undefined name: the compiler accepts it, the loader does not."""
    text, entry = VARIANTS[variant]
    missing = 'extern "C" int nobody_has_this();\n' + text.replace("i < 30", "i < nobody_has_this()")
    bad = compile_one("orchestration", missing, variant=variant, entry=entry)
    kernel_source = 'extern "C" int nobody_has_this();\n' + KERNEL.replace(
        "args[0] == 1", "nobody_has_this()"
    )
    bad_kernel = compile_one("kernel", kernel_source, "aiv")

    def once(n: int) -> None:
        engine = TaskEngine({"runtime": variant, "block_dim": 3, "threads": 2})
        with pytest.raises((DiagnosticError, ValueError, RuntimeError), match="nobody_has_this"):
            engine.add_kernel(0, "step", "aiv", bad_kernel if n % 2 else step)
            engine.run_orchestration(bad, entry, [FINE])

    assert_steady(once, 20, 60)


def test_sources_that_cannot_be_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file stays behind in the cache, and no compiler."""
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))  # others build in the usual one
    folder = cache.folder()

    def files() -> set[str]:
        return {p.name for p in folder.iterdir() if not p.name.endswith(".lock")}

    def once(n: int) -> None:
        with pytest.raises(DiagnosticError):
            compile_one(f"wrong{n}", KERNEL.replace("throw", "throw throw"), "aiv")

    once(0)
    before = files()
    assert_steady(once, 1, 2)
    assert not {f for f in files() - before if f.startswith(".pto-build-")}


def test_a_build_that_is_killed(tmp_path: Path) -> None:
    """Its folder stays, as no process is left to remove it, and is removed by the first build after an hour;
    another build of the same source does not wait."""
    slow = tmp_path / "compiler"
    slow.write_text(f"""#!/bin/sh
case "$*" in *kernel.so*) touch {tmp_path}/reached; sleep 600;; esac
exec {COMPILER} "$@"
""")
    slow.chmod(0o700)
    (tmp_path / "k.cpp").write_text(KERNEL + f"// {tmp_path}\n")
    where = tmp_path / "cache"
    code = f"""
from pto.runtime.compile import Job, compile_all
print(compile_all([Job('k', {str(tmp_path / "k.cpp")!r}, 'aiv')])[0].path)
"""
    settings = {**os.environ, "PTO_CACHE_DIR": str(where), "PTO_CXX": str(slow)}
    child = subprocess.Popen([sys.executable, "-c", code], env=settings, start_new_session=True)
    try:
        for _ in range(6000):
            if (tmp_path / "reached").exists():
                break
            time.sleep(0.05)
        (left,) = where.rglob(".pto-build-*")
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    slow.write_text(f'#!/bin/sh\nexec {COMPILER} "$@"\n')

    def again() -> str:
        with knobs.override(PTO_CACHE_DIR=str(where), PTO_CXX=str(slow)):
            return compile_all([Job("k", str(tmp_path / "k.cpp"), "aiv")])[0].path

    library = again()
    assert Path(library).exists() and left.exists()
    os.utime(left, (0, 0))
    Path(library).unlink()
    assert again() == library and not left.exists()


# -- Ctrl-C ---------------------------------------------------------------------------------------------------

_MAIN = threading.main_thread()
RINGS: dict[str, Any] = {"block_dim": 2, "heap": 1 << 16, "log": lambda level, text: None}


def interrupt() -> None:
    """Raise Ctrl-C, at this moment, from any thread."""
    assert _MAIN.ident is not None
    signal.pthread_kill(_MAIN.ident, signal.SIGINT)


@pytest.fixture
def handled() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start with it ignored
    yield
    signal.signal(signal.SIGINT, before)


def while_orchestrating(rt: Any, when: int) -> None:
    x = np.zeros(4, np.float32)
    touch = kernel(lambda a: None, "inout", name="touch")
    for i in range(40):
        with rt.scope():
            rt.submit(touch, x)
            if i == when:
                interrupt()
    while True:  # the signal may be noticed a little later
        with rt.scope():
            rt.submit(touch, x)


def while_waiting_for_a_slot(rt: Any, when: int) -> None:
    ended = threading.Event()

    def wait(a: Any) -> None:
        if not ended.is_set():
            interrupt()
            ended.set()

    slow = kernel(wait, "inout", name="slow")
    x = np.zeros(4, np.float32)
    while True:
        with rt.scope():
            rt.submit(slow, x)


def interrupter() -> Callable[[], None]:
    """Interrupts when it is called first. Every call takes longer than the one before, until the run has ended: some
    minutes, should the main thread get no processor that long."""
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            interrupt()
        time.sleep(min(0.015 * 1.5**calls, 60))

    return call


def while_draining(rt: Any, when: int) -> None:
    over = threading.Event()
    stop = interrupter()
    count = 0

    def wait(a: Any) -> None:
        nonlocal count
        count += 1
        if over.is_set() and count > when:
            stop()

    slow = kernel(wait, "inout", name="slow")
    x = np.zeros(4, np.float32)
    with rt.scope():
        for _ in range(50):
            rt.submit(slow, x)
    over.set()


PHASES = (while_orchestrating, while_waiting_for_a_slot, while_draining)


@pytest.mark.usefixtures("handled")
@pytest.mark.skipif(threading.current_thread() is not _MAIN, reason="signals go to the main thread")
@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c(phase: Callable[..., None]) -> None:
    ways: list[dict[str, Any]] = [{"threads": 1}, {"threads": 2}, {"threads": 4}]

    def once(n: int) -> None:
        with pytest.raises(KeyboardInterrupt):
            run(phase, n % 30, task_window=64 if phase is while_draining else 8, **RINGS, **ways[n % 3])

    assert_steady(once, 9, 45)


@pytest.mark.usefixtures("handled")
@pytest.mark.skipif(threading.current_thread() is not _MAIN, reason="signals go to the main thread")
def test_ctrl_c_in_a_graph_with_explicit_edges() -> None:
    def once(n: int) -> None:
        kernels = _runtime.Kernels()
        stop = interrupter()
        kernels.add_function(0, "stop", -1, lambda *_: stop())
        options = {"block_dim": 2, "host_threads": 1 + n % 3, "concurrent": n % 2 == 0}
        graph = _runtime.TaskGraph(kernels, options, 2, lambda level, text: None)

        def build() -> None:
            for i in range(200):
                task = graph.add_task(0, 1, [])
                if i > 0:
                    graph.add_edge(i - 1, task)
                graph.publish(task)

        graph.run_function(build)
        code, _, thrown = graph.failure()[:3]
        assert code and isinstance(thrown, KeyboardInterrupt)

    assert_steady(once, 6, 30)
