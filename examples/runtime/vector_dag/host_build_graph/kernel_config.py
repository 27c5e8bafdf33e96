"""The vector graph on host_build_graph: built by the host before anything runs."""

import runpy
from pathlib import Path

_HERE = Path(__file__).parent

KERNELS = runpy.run_path(str(_HERE.parent / "kernels/kernel_config.py"))["KERNELS"]
ORCHESTRATION = {"source": str(_HERE / "vector_dag.cpp"), "function_name": "build_vector_dag"}
RUNTIME_CONFIG = {"runtime": "host_build_graph", "aicpu_thread_num": 3, "block_dim": 3}
