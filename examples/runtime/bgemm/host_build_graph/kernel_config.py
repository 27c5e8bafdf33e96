"""Batched GEMM on host_build_graph: the host builds all of it before anything runs. Kernels and golden are shared."""

import runpy
from pathlib import Path

_KERNELS = Path(__file__).parents[1] / "kernels"

KERNELS = runpy.run_path(str(_KERNELS / "kernel_config.py"))["KERNELS"]
ORCHESTRATION = {"source": str(_KERNELS / "orchestration/bgemm_graph.cpp"), "function_name": "build_bgemm"}
RUNTIME_CONFIG = {"runtime": "host_build_graph", "aicpu_thread_num": 3, "block_dim": 3}
