"""What a device does around kernels, in nanoseconds: orchestrator, schedulers, the way to a core and back.

Virtual time counts with these (`virtual.py`; native/runtime/exec/virtual_time.hpp has the same names). Each
says what it rests on, in the words of the cost tables: it was *measured* on a device, is *derived* from such
measurements, or is a *guess* (published without a source). A user replaces any of them by a file:

    [runtime]
    completion = 2600       # my.toml: nanoseconds
    clock_mhz = 1800        # of durations that are given in cycles
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
    """One of them: how many nanoseconds it takes, of whom and for what, and what that rests on."""

    name: str
    ns: int
    who: str
    what: str
    evidence: str


#: In the order in which a task meets them.
OVERHEADS = (
    Overhead("orchestration", 358, "orchestrator", "the orchestration's own code, per task",
             "derived: the same log, what is between the submissions"),
    Overhead("sync", 17, "orchestrator", "to see what has been retired", _LOG),
    Overhead("alloc", 23, "orchestrator", "to take a slot of the task ring", _LOG),
    Overhead("heap", 42, "orchestrator", "to take memory for outputs", _LOG),
    Overhead("params", 129, "orchestrator", "to copy the parameters of a task", _LOG),
    Overhead("lookup", 436, "orchestrator", "to find out whom a task waits for", _LOG),
    Overhead("fanin", 72, "orchestrator", "to make the edges of a task; with explicit edges, of each", _LOG),
    Overhead("insert", 113, "orchestrator", "to note what a task writes", _LOG),
    Overhead("finalize", 42, "orchestrator", "to publish a task", _LOG),
    Overhead("scope_end", 22, "orchestrator", "to end a scope", _LOG),
    Overhead("scan", 41, "scheduler", "to find a task that waits for nobody",
             "derived: a device's own log, phase scan of 352 tasks"),
    Overhead("enqueue", 78, "scheduler", "to put a task that is ready into a queue", _LIST),
    Overhead("dispatch", 111, "scheduler", "to take a task from a queue and describe it to cores", _LIST),
    Overhead("store", 20, "scheduler", "to write the register of each core",
             "measured: below 20 ns, 5 in bursts"),
    Overhead("seen_by_core", 140, "core", "until a core sees that it has a task", "measured: about 140 ns"),
    Overhead("head", 350, "core", "until its kernel begins", "measured: 200 to 500 ns, the middle"),
    Overhead("cold_head", 2610, "core", "the same for the first task of a core",
             "measured: 360 to 5620 ns over 72 cores, the mean"),
    Overhead("seen_by_scheduler", 180, "core", "until its scheduler could see that a kernel has ended",
             "measured: at least 180 ns; 600 on average with the turns of schedulers, which come on top"),
    Overhead("poll", 100, "scheduler", "to look at one core; it looks at those at work in turn",
             "measured: 95 to 105 ns, one after another"),
    Overhead("completion", 133, "scheduler", "for a task that has ended", _LIST),
    Overhead("resolve", 217, "scheduler", "for each task that waited for it", _LIST),
)  # fmt: skip

#: Of the core, for durations in cycles.
CLOCK_MHZ = 1850
#: A launch from the host, which no trace shows: fixed, microseconds.
LAUNCH_US = 43.3


class Machine(Record):
    """The overheads of one machine, and what the cost model is to take for its cores: a name or a file."""

    costs: Mapping[str, int]
    clock_mhz: float = CLOCK_MHZ
    source: str = ""  # the file that replaced some of them
    cores: str = ""


def read_machine(given: str | os.PathLike[str] | Mapping[str, Any] | None) -> Machine:
    """The overheads, with those replaced that a file (its table `runtime`) or a mapping names."""
    known = {o.name: o.ns for o in OVERHEADS}
    if given is None or isinstance(given, Mapping):
        return _replaced(Machine(known), dict(given or {}), "")
    path = os.fspath(given)
    table = read_toml(path).get("runtime", {}) if path.endswith(".toml") else {}
    try:
        timing.machine(path)  # what it says of cores is right, or nobody is timed with it
    except ValueError as e:
        raise _refuse(str(e)) from None
    if not path.endswith(".toml"):  # a machine of the cost tables: no other overheads are known
        return Machine(known, cores=path)
    return _replaced(Machine(known, source=path, cores=path), table, f"{path}: ")


def _replaced(machine: Machine, values: dict[str, Any], where: str) -> Machine:
    clock = values.pop("clock_mhz", machine.clock_mhz)
    for name, value in (*values.items(), ("clock_mhz", clock)):
        if name not in machine.costs and name != "clock_mhz":
            names = [*machine.costs, "clock_mhz"]
            raise _refuse(
                f"{where}there is no overhead '{name}'", did_you_mean(name, names) or ", ".join(names)
            )
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise _refuse(f"{where}{name} is a number from 0 on, got {shown(value)}")
    if not clock:
        raise _refuse(f"{where}clock_mhz is above 0")
    costs = {**machine.costs, **{name: round(value) for name, value in values.items()}}
    return machine.replace(costs=costs, clock_mhz=float(clock))


def read_toml(path: str) -> dict[str, Any]:
    """A file of the user's, which others read as well."""
    try:
        return timing.read_file(path)
    except OSError as e:
        problem = Diagnostic("PTO-E0001", f"cannot read '{path}': {(e.strerror or str(e)).lower()}")
        raise DiagnosticError([problem]) from None
    except ValueError as e:
        raise _refuse(str(e)) from None


def _refuse(message: str, help: str = "") -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2627", message, help=help)])
