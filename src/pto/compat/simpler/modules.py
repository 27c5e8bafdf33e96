"""Map from imported module names to modules of this package."""

from __future__ import annotations

_HERE = "pto.compat.simpler"

#: Imported module -> module of this package.
MODULES = {
    "simpler": f"{_HERE}.package",
    "simpler.task_interface": f"{_HERE}.task_interface",
    "simpler.worker": f"{_HERE}.worker",
    "simpler.orchestrator": f"{_HERE}.orchestrator",
    "simpler.buffer": f"{_HERE}.buffers",
    "simpler.callable_identity": f"{_HERE}.callables",
    "simpler._log": f"{_HERE}.logs",
    "simpler_setup": f"{_HERE}.setup",
    "simpler_setup.scene_test": f"{_HERE}.scene",
    "simpler_setup.torch_interop": f"{_HERE}.interop",
    "simpler_setup.kernel_compiler": f"{_HERE}.callables",
    "simpler_setup.elf_parser": f"{_HERE}.callables",
    "simpler_setup.runtime_builder": f"{_HERE}.callables",
    "simpler_setup.pto_isa": f"{_HERE}.callables",
    "simpler_setup.log_config": f"{_HERE}.logs",
    "simpler_setup.parallel_scheduler": f"{_HERE}.schedule",
    "simpler_setup.sanitizers": f"{_HERE}.schedule",
}

#: Packages whose modules are data of the program, in its checkout.
DATA = ("simpler_setup.goldens",)

#: Modules without a replacement, with an explanation.
OTHERS = {
    "simpler.remote": "workers on other machines are not simulated; start processes with pto ranks",
    "simpler.mpi": "workers over MPI are not simulated; start processes by mpiexec with pto ranks",
    "simpler.comm_": "use orch.allocate_domain for regions",
    "simpler.global_comm_domain": "use orch.allocate_domain for domains of one worker",
    "simpler.worker_chip": "orchestrations cannot communicate with their host during a run",
    "_task_interface": "it is a part of the vendor runtime",
    "simpler_setup.tools": "use pto runtime run --swimlane or --trace for records of a run",
}
