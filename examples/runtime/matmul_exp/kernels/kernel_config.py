"""Two products between two vector kernels, on tensormap_and_ringbuffer."""

from pathlib import Path

_HERE = Path(__file__).parent

KERNELS = [
    {"func_id": 0, "name": "log_sqrt", "source": str(_HERE / "aiv/log_sqrt.cpp"), "core_type": "aiv"},
    {"func_id": 1, "name": "matmul", "source": str(_HERE / "aic/matmul.cpp"), "core_type": "aic"},
    {"func_id": 2, "name": "add_exp", "source": str(_HERE / "aiv/add_exp.cpp"), "core_type": "aiv"},
]
ORCHESTRATION = {
    "source": str(_HERE / "orchestration/matmul_exp.cpp"),
    "function_name": "aicpu_orchestration_entry",
}
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 4, "block_dim": 3}
