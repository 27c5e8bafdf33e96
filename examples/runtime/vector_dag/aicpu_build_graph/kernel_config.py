"""The vector graph on aicpu_build_graph: tasks run while others are added."""

import runpy
from pathlib import Path

_HERE = Path(__file__).parent

KERNELS = runpy.run_path(str(_HERE.parent / "kernels/kernel_config.py"))["KERNELS"]
ORCHESTRATION = {"source": str(_HERE / "vector_dag.cpp"), "function_name": "orchestration"}
RUNTIME_CONFIG = {"runtime": "aicpu_build_graph", "aicpu_thread_num": 4, "block_dim": 3}
