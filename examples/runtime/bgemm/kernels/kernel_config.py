"""Batched GEMM on tensormap_and_ringbuffer."""

from pathlib import Path

_HERE = Path(__file__).parent

KERNELS = [
    {"func_id": 0, "name": "gemm", "source": str(_HERE / "aic/gemm_tile.cpp"), "core_type": "aic"},
    {"func_id": 1, "name": "add", "source": str(_HERE / "aiv/add_tile.cpp"), "core_type": "aiv"},
]
ORCHESTRATION = {
    "source": str(_HERE / "orchestration/bgemm.cpp"),
    "function_name": "aicpu_orchestration_entry",
}
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 4, "block_dim": 3}
