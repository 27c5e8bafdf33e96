"""Overheads of a device around kernels, in nanoseconds: orchestrator, schedulers, dispatch to a core and
back.

Virtual time counts with these (`virtual.py`; native/runtime/exec/virtual_time.hpp has the same names). Each
has its evidence, in the words of the cost tables: *measured* on a device, *derived* from measurements, or a
*guess* (published without a source). A user replaces any of them by a file:

    [runtime]
    completion = 2600       # my.toml: nanoseconds
    clock_mhz = 1800        # for durations in cycles
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..diag import Diagnostic, DiagnosticError, did_you_mean
from ..isa import timing
from ..isa.record import Record
from ..isa.timing import shown

_LOG = "measured: a device's own log of 16,704 tasks of paged attention, shared out to tasks"
_LIST = "guessed: published at 1.8 GHz without a source"


class Overhead(Record):
    """An overhead: its nanoseconds, its actor, its purpose, and its evidence."""

    name: str
    ns: int
    who: str
    what: str
    evidence: str


#: In the order in which a task meets them.
OVERHEADS = (
    Overhead("orchestration", 358, "orchestrator", "code of the orchestration itself, per task",
             "derived: the same log, time between submissions"),
    Overhead("sync", 17, "orchestrator", "to read the retired tasks", _LOG),
    Overhead("alloc", 23, "orchestrator", "to take a slot of the task ring", _LOG),
    Overhead("heap", 42, "orchestrator", "to take memory for outputs", _LOG),
    Overhead("params", 129, "orchestrator", "to copy the parameters of a task", _LOG),
    Overhead("lookup", 436, "orchestrator", "to find the predecessors of a task", _LOG),
    Overhead("fanin", 72, "orchestrator", "to add the edges of a task; with explicit edges, per edge", _LOG),
    Overhead("insert", 113, "orchestrator", "to record the outputs of a task", _LOG),
    Overhead("finalize", 42, "orchestrator", "to publish a task", _LOG),
    Overhead("scope_end", 22, "orchestrator", "to end a scope", _LOG),
    Overhead("scan", 41, "scheduler", "to find a task without predecessors",
             "derived: a device's own log, phase scan of 352 tasks"),
    Overhead("enqueue", 78, "scheduler", "to put a ready task into a queue", _LIST),
    Overhead("dispatch", 111, "scheduler", "to take a task from a queue and describe it to cores", _LIST),
    Overhead("store", 20, "scheduler", "to write the register of each core",
             "measured: below 20 ns, 5 in bursts"),
    Overhead("seen_by_core", 140, "core", "until a core sees that it has a task", "measured: about 140 ns"),
    Overhead("head", 350, "core", "until its kernel begins", "measured: 200 to 500 ns; this is the middle"),
    Overhead("cold_head", 2610, "core", "the same for the first task of a core",
             "measured: 360 to 5620 ns over 72 cores; this is the mean"),
    Overhead("seen_by_scheduler", 180, "core", "until its scheduler could see that a kernel has ended",
             "measured: at least 180 ns; 600 on average with the scheduler loop, whose time is added"),
    Overhead("poll", 100, "scheduler", "to poll one core; busy cores are polled one after another",
             "measured: 95 to 105 ns, one after another"),
    Overhead("completion", 133, "scheduler", "for a task that has ended", _LIST),
    Overhead("resolve", 217, "scheduler", "for each task that waited for it", _LIST),
)  # fmt: skip

#: Clock of the cores, for durations in cycles.
CLOCK_MHZ = 1850


class RuntimeMachine(Record):
    """The overheads of one machine, and the cores for the cost model: a name or a file."""

    costs: Mapping[str, int]
    clock_mhz: float = CLOCK_MHZ
    source: str = ""  # the file that replaced some of them
    cores: str = ""


def read_machine(given: str | os.PathLike[str] | Mapping[str, Any] | None) -> RuntimeMachine:
    """Return the overheads; a file (its table `runtime`) or a mapping replaces some of them."""
    known = {o.name: o.ns for o in OVERHEADS}
    if given is None or isinstance(given, Mapping):
        return _replaced(RuntimeMachine(known), dict(given or {}), "")
    path = os.fspath(given)
    table = read_toml(path).get("runtime", {}) if path.endswith(".toml") else {}
    try:
        timing.machine(path)  # report problems of its cores before a run
    except ValueError as e:
        raise _refuse(str(e)) from None
    if not path.endswith(".toml"):  # a machine of the cost tables has no overheads of its own
        return RuntimeMachine(known, cores=path)
    return _replaced(RuntimeMachine(known, source=path, cores=path), table, f"{path}: ")


def _replaced(machine: RuntimeMachine, values: dict[str, Any], where: str) -> RuntimeMachine:
    clock = values.pop("clock_mhz", machine.clock_mhz)
    for name, value in (*values.items(), ("clock_mhz", clock)):
        if name not in machine.costs and name != "clock_mhz":
            names = [*machine.costs, "clock_mhz"]
            raise _refuse(f"{where}unknown overhead '{name}'", did_you_mean(name, names) or ", ".join(names))
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise _refuse(f"{where}expected a non-negative number for {name}, got {shown(value)}")
    if not clock:
        raise _refuse(f"{where}expected a positive clock_mhz, got {shown(clock)}")
    costs = {**machine.costs, **{name: round(value) for name, value in values.items()}}
    return machine.replace(costs=costs, clock_mhz=float(clock))


def read_toml(path: str) -> dict[str, Any]:
    """Read a TOML file of the user."""
    try:
        return timing.read_file(path)
    except OSError as e:
        problem = Diagnostic("PTO-E0001", f"cannot read '{path}': {(e.strerror or str(e)).lower()}")
        raise DiagnosticError([problem]) from None
    except ValueError as e:
        raise _refuse(str(e)) from None


def _refuse(message: str, help: str = "") -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2627", message, help=help)])
