"""A folder to run in the tests, and an engine that runs compiled kernels in an order written in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

#: A kernel without our headers: it compiles quickly. z[i] = x[i] OP y[i].
KERNEL = """\
#include <cstdint>
#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__
#endif
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  auto* x = reinterpret_cast<__gm__ float*>(args[0]);
  auto* y = reinterpret_cast<__gm__ float*>(args[1]);
  auto* z = reinterpret_cast<__gm__ float*>(args[2]);
  for (int64_t i = 0; i < args[3]; ++i) z[i] = x[i] OP y[i];
}
"""
ORCHESTRATION = 'extern "C" int build_graph(void*, unsigned long*, int) { return 0; }\n'
CONFIG = """\
from pathlib import Path
ROOT = Path(__file__).parent
KERNELS = [
    {"func_id": 0, "source": str(ROOT / "add.cpp"), "core_type": "aiv", "name": "add"},
    {"func_id": 1, "source": "mul.cpp", "core_type": "aiv"},
]
ORCHESTRATION = {"source": "orchestration.cpp", "function_name": "build_graph"}
RUNTIME_CONFIG = {"runtime": "host_build_graph", "aicpu_thread_num": 3, "block_dim": 3}
"""
GOLDEN = """\
import ctypes
import numpy as np

__outputs__ = ["f"]
RTOL = ATOL = 1e-5
ALL_CASES = {"Small": {"n": 8}, "Large": {"n": 1000}}
DEFAULT_CASE = "Small"


def generate_inputs(params):
    n = params["n"]
    a, b = np.full(n, 2, np.float32), np.full(n, 3, np.float32)
    return [("a", a), ("b", b), ("f", np.zeros(n, np.float32)), ("n", ctypes.c_int64(n))]


def compute_golden(tensors, params):
    tensors["f"][:] = (tensors["a"] + tensors["b"]) * tensors["b"]
"""


def write_folder(root: Path, sources: Path | None = None, golden: str = GOLDEN, config: str = CONFIG) -> Path:
    """A folder in the usual layout. With `sources` it uses the C++ of another one, which is compiled once."""
    kernels = root / "kernels"
    kernels.mkdir(parents=True)
    (root / "golden.py").write_text(golden)
    if sources is not None:
        for name in ("mul.cpp", "orchestration.cpp"):
            config = config.replace(f'"{name}"', f'r"{sources / "kernels" / name}"')
        config = config.replace("Path(__file__).parent", f'Path(r"{sources / "kernels"}")')
    else:
        (kernels / "add.cpp").write_text(KERNEL.replace("OP", "+"))
        (kernels / "mul.cpp").write_text(KERNEL.replace("OP", "*"))
        (kernels / "orchestration.cpp").write_text(ORCHESTRATION)
    (kernels / "kernel_config.py").write_text(config)
    return root


def call_kernel(path: str, slots: Sequence[int]) -> None:
    """Run a kernel on a core of this thread."""
    function = ctypes.CDLL(path).pto2_kernel
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_void_p), None
    array = (ctypes.c_int64 * max(1, len(slots)))(*[s - (1 << 64) if s >> 63 else s for s in slots])
    function(ctypes.addressof(array), None)


Plan = Callable[["FakeEngine", list[int]], Any]


def add_then_multiply(engine: FakeEngine, args: list[int]) -> None:
    """f = (a + b) * b, with f as its own intermediate."""
    a, b, f, n = args
    engine.task(0, a, b, f, n)
    engine.task(1, f, b, f, n)


class FakeEngine:
    """Runs a plan instead of the orchestration; keeps its arguments."""

    def __init__(self, config: dict[str, Any], plan: Plan = add_then_multiply) -> None:
        self.config = config
        self.plan = plan
        self.kernels: dict[int, tuple[str, str, Any]] = {}
        self.orchestration: tuple[str, str] | None = None

    def add_kernel(self, func_id: int, name: str, core_type: str, path: str) -> None:
        self.kernels[func_id] = name, core_type, path

    def add_function(self, func_id: int, name: str, core_type: str, function: Callable[..., Any]) -> None:
        self.kernels[func_id] = name, core_type, function

    def task(self, func_id: int, *slots: int) -> None:
        how = self.kernels[func_id][2]
        if isinstance(how, str):
            call_kernel(how, slots)
        else:
            how(*slots)

    def run_orchestration(self, path: str, entry: str, args: list[int]) -> Any:
        self.orchestration = path, entry
        return self.plan(self, args)
