"""Paged attention on host_build_graph: built by the host before anything runs."""

import runpy
from pathlib import Path

_KERNELS = Path(__file__).parents[1] / "kernels"  # shared with the other runtimes, like golden.py

KERNELS = runpy.run_path(str(_KERNELS / "kernel_config.py"))["KERNELS"]
ORCHESTRATION = {
    "source": str(_KERNELS / "orchestration/paged_attention_graph.cpp"),
    "function_name": "build_paged_attention",
}
RUNTIME_CONFIG = {"runtime": "host_build_graph", "aicpu_thread_num": 3, "block_dim": 24}
