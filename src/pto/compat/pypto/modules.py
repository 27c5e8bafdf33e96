"""Map from imported module names to modules of this package."""

from __future__ import annotations

_HERE = "pto.compat.pypto"

#: Imported module -> module of this package.
MODULES = {
    "pypto": f"{_HERE}.package",
    "pypto.language": "pto.language",
    "pypto.language.distributed": "pto.language.distributed",
    "pypto.runtime": f"{_HERE}.runtime",
    "pypto.ir": f"{_HERE}.ir",
    "pypto.backend": f"{_HERE}.backend",
    "pypto.debug": f"{_HERE}.debug",
    # Further, older or internal, modules of public names.
    "pypto.pypto_core": f"{_HERE}.package",
    "pypto.pypto_core.ir": f"{_HERE}.ir",
    "pypto.pypto_core.passes": f"{_HERE}.ir",
    "pypto.pypto_core.backend": f"{_HERE}.backend",
    "pypto.passes": f"{_HERE}.ir",
    **{
        f"pypto.runtime.{name}": f"{_HERE}.runtime"
        for name in (
            "runner", "tensor_spec", "log_config", "bench", "device_tensor", "worker", "runtime_base",
            "pto_isa", "distributed_runner", "debug", "debug.pto_rebuild", "debug.replay",
        )
    },
    **{
        f"pypto.ir.{name}": f"{_HERE}.ir"
        for name in ("compiled_program", "distributed_compiled_program", "pass_manager", "printer")
    },
    "pypto.backend.pto_backend": f"{_HERE}.backend",
    # The harness of public tests; see harness.py.
    "harness": f"{_HERE}.harness",
    "harness.core": f"{_HERE}.harness",
    "harness.core.harness": f"{_HERE}.harness",
    "harness.core.test_runner": f"{_HERE}.harness",
    "harness.core.environment": f"{_HERE}.harness",
}  # fmt: skip

#: Modules of the other project named pypto.
OTHERS = ("pypto.frontend", "pypto.jit", "pypto.operation", "pypto.op")
