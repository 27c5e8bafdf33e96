"""The graph on tensormap_and_ringbuffer: dependencies follow from the tensors."""

from pathlib import Path

_HERE = Path(__file__).parent

KERNELS = [
    {"func_id": 0, "name": "add", "source": str(_HERE / "aiv/add.cpp"), "core_type": "aiv"},
    {"func_id": 1, "name": "add_scalar", "source": str(_HERE / "aiv/add_scalar.cpp"), "core_type": "aiv"},
    {"func_id": 2, "name": "mul", "source": str(_HERE / "aiv/mul.cpp"), "core_type": "aiv"},
]
ORCHESTRATION = {
    "source": str(_HERE / "orchestration/vector_dag.cpp"),
    "function_name": "aicpu_orchestration_entry",
}
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 4, "block_dim": 3}
