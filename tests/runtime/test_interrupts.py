"""Code of the user's that does not return when the run is to end: it is given up, the process goes on. Each in a
process of its own, as signals are for all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.sampling import some

from .header_build import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

LOOPING = """
#include <cstdint>
#include <pto/pto-inst.hpp>
#include "tensor.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  volatile float* seen = reinterpret_cast<float*>(reinterpret_cast<TensorData*>(args[0])->buffer.addr);
  seen[0] = 1;
  while (seen[1] == 0) {
  }
}
"""

#: Runs `loop`, presses Ctrl-C when its kernels run, then runs something else.
SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
import pto
from pto import runtime

threads, tasks, presses, own = (int(a) for a in sys.argv[2:6])
loop = runtime.kernel(sys.argv[1], "inout", core="aiv", name="loop")
data = [np.zeros(4, np.float32) for _ in range(tasks)]

def clean_up():  # a run of the same kernel that takes a while, and ends by itself
    slow = np.zeros(4, np.float32)
    timer = threading.Timer(0.4, lambda: slow.__setitem__(1, 1))
    timer.start()
    runtime.run(lambda rt: rt.submit(loop, slow), threads=threads, block_dim=2)
    timer.join()
    print("cleaned up", slow[0])

def press():
    while not any(d[0] for d in data):
        time.sleep(0.01)
    for _ in range(presses):
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
    if own:
        for d in data:
            d[1] = 1

over = threading.Event()
if own:
    signal.signal(signal.SIGINT, lambda *_: print("noted"))
presser = threading.Thread(target=press, daemon=True)  # else a run that fails leaves it waiting
presser.start()
try:
    runtime.run(lambda rt: [rt.submit(loop, d) for d in data], threads=threads, block_dim=2)
except KeyboardInterrupt:
    over.set()
    print("interrupted")
    presser.join()
    clean_up()  # while the exception, and what its traceback holds, is there
else:
    print("ended")
    presser.join()
x = np.zeros(4, np.float32)
runtime.run(lambda rt: rt.submit(runtime.kernel(lambda a: a.__iadd__(1), "inout", name="add"), x))
print(x[0], signal.getsignal(signal.SIGINT) is signal.default_int_handler, threading.active_count())
"""


def _press(tmp_path: Path, threads: int, tasks: int, presses: int, own: int = 0) -> tuple[list[str], str]:
    (tmp_path / "loop.cpp").write_text(LOOPING)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py", "loop.cpp", *map(str, (threads, tasks, presses, own))],
        cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("threads, tasks, presses", some([(1, 1, 1), (1, 2, 2), (2, 3, 2), (2, 1, 2)], 2))
def test_a_kernel_that_does_not_return_is_given_up(
    tmp_path: Path, threads: int, tasks: int, presses: int
) -> None:
    """Two seconds after Ctrl-C, or at the second one."""
    said, log = _press(tmp_path, threads, tasks, presses)
    assert said == ["interrupted", "cleaned up 1.0", "1.0 True 1"]
    assert "(loop, AIV" in log and "the kernel did not return after Ctrl-C, and was given up" in log


AFTERWARDS = """
import os, resource, signal, threading, time
import numpy as np
from pto import runtime

loop = runtime.kernel("loop.cpp", "inout", core="aiv", name="loop")

def once():
    data = np.zeros(4, np.float32)
    threading.Timer(0.2, lambda: data.__setitem__(1, 1)).start()
    return runtime.run(lambda rt: rt.submit(loop, data), threads=2, block_dim=2)

kept = once()
for _ in range(2):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    except KeyboardInterrupt:
        print("at the prompt")
before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
time.sleep(1)
print("quiet", resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before < 20)
once()
print("fine")
"""


def test_ctrl_c_between_runs(tmp_path: Path) -> None:
    """The result of a run is kept: Ctrl-C at the prompt means nothing to it, nor to later runs."""
    (tmp_path / "loop.cpp").write_text(LOOPING)
    (tmp_path / "script.py").write_text(AFTERWARDS)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.stdout.splitlines() == ["at the prompt"] * 2 + ["quiet True", "fine"], done.stderr


def test_ctrl_c_that_means_something_else(tmp_path: Path) -> None:
    """A handler of the user's own: the kernels go on."""
    said, log = _press(tmp_path, 2, 2, 3, own=1)
    assert set(said[:-2]) == {"noted"} and said[-2:] == ["ended", "1.0 False 1"] and "given up" not in log


ORCHESTRATION = """
#include "pto_orchestration_api.h"
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  auto* seen = reinterpret_cast<volatile uint64_t*>(args[0]);
  PTO2_SCOPE(rt) {
    seen[0] = 1;
    while (seen[1] == 0) {
    }
  }
}
"""
ORCHESTRATION_SCRIPT = """
import os, signal, threading, time
import numpy as np
from pto.runtime.compile import Job, compile_all
from pto.runtime.engine import TaskEngine

(library,) = compile_all([Job("loop", "loop.cpp", entry="aicpu_orchestration_entry")])
for n in range(4):
    data = np.zeros(2, np.uint64)
    over = threading.Event()

    def press():
        while not data[0]:
            time.sleep(0.01)
        for _ in range(2):
            if not over.is_set():
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    presser = threading.Thread(target=press)
    presser.start()
    way = {"seed": n} if n == 3 else {"threads": 1 + n}
    engine = TaskEngine({"runtime": "tensormap_and_ringbuffer", "block_dim": 3, **way})
    try:
        engine.run_orchestration(library.path, "aicpu_orchestration_entry", [data.ctypes.data])
    except KeyboardInterrupt:
        over.set()
        print("interrupted", end=" ")
    presser.join()
    print(threading.active_count())
"""


def test_an_orchestration_that_does_not_return_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "loop.cpp").write_text(ORCHESTRATION)
    (tmp_path / "script.py").write_text(ORCHESTRATION_SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.stdout.splitlines() == ["interrupted 1"] * 4, done.stderr
    assert done.stderr.count("the orchestration did not return after Ctrl-C, and was given up") == 4
