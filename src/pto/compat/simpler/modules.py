"""Which module of ours stands for which module that programs import."""

from __future__ import annotations

_HERE = "pto.compat.simpler"

#: Module that is imported -> module that it is.
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

#: Below these, modules are data of the program: they come from the checkout that it is in.
DATA = ("simpler_setup.goldens",)

#: Modules that we have nothing for, with the reason.
OTHERS = {
    "simpler.remote": "workers on other machines are not simulated: pto ranks starts processes",
    "simpler.mpi": "workers over MPI are not simulated: mpiexec with pto ranks starts processes",
    "simpler.comm_": "regions are made by orch.allocate_domain here",
    "simpler.global_comm_domain": "domains are those of one worker: orch.allocate_domain",
    "simpler.worker_chip": "orchestrations do not talk to their host while they run",
    "simpler_setup.tools": "records of our runs: pto runtime run --swimlane, --trace",
}
