"""Paged attention, 16 sequences to a task, on tensormap_and_ringbuffer."""

from pathlib import Path

_HERE = Path(__file__).parent

KERNELS = [
    {"func_id": 0, "name": "QK", "source": str(_HERE / "aic/qk.cpp"), "core_type": "aic"},
    {"func_id": 1, "name": "SF", "source": str(_HERE / "aiv/softmax.cpp"), "core_type": "aiv"},
    {"func_id": 2, "name": "PV", "source": str(_HERE / "aic/pv.cpp"), "core_type": "aic"},
    {"func_id": 3, "name": "UP", "source": str(_HERE / "aiv/update.cpp"), "core_type": "aiv"},
    {"func_id": 5, "name": "AIV_HUB", "source": str(_HERE / "aiv/hub.cpp"), "core_type": "aiv"},
]
ORCHESTRATION = {
    "source": str(_HERE / "orchestration/batch_paged_attention.cpp"),
    "function_name": "aicpu_orchestration_entry",
}
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 4, "block_dim": 24}
