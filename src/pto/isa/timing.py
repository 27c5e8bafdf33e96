"""Speed of machines: clocks, cores, rates of paths and latencies, each with its evidence.

A `Machine` has the timing of a profile, for `isa.costs` and the simulation of timelines (`perf.timeline`).
Cycles are cycles of the core clock, and rates are bytes per cycle of one core. A user can replace every
parameter:

    machine("a2a3", {"bw_gm_l1": 96.0})
    machine("my.toml")          # machine = "a2a3", then any of the names below

One file serves all timing tools: tables (`TABLES`) in it are for other readers. `evidence` is the origin of
each parameter: *measured* on a device, *fitted* to such measurements, *derived* from published numbers, or a
*guess*.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from .profiles import PROFILES, Profile
from .record import Record

EVIDENCE = ("measured", "fitted", "derived", "guessed")

#: Descriptions of the parameters for `pto cost show`, in the order of its output.
PARAMETERS: dict[str, str] = {
    "mhz": "clock, MHz",
    "aic": "cube cores",
    "aiv": "vector cores",
    "launch": "cycles from the launch until the first instruction of a core",
    "block": "cycles between two blocks on a core",
    "issue": "cycles of the scalar unit to issue an instruction",
    "depth": "instructions in the queue of a pipe before the scalar unit waits",
    "flag": "cycles from setting a flag until its wait ends",
    "cross": "the same between the cores of a block",
    "grid": "the same at a barrier of all cores",
    "barrier": "maximum cycles of a barrier of pipe V after an instruction",
    "bw_gm_ub": "global memory to UB, bytes per cycle of one core",
    "bw_gm_l1": "global memory to L1",
    "bw_ub_gm": "UB to global memory",
    "bw_l1_gm": "L1 to global memory",
    "bw_l0c_gm": "L0C to global memory",
    "bw_l0c_l1": "L0C to L1",
    "bw_l0c_ub": "L0C to UB",
    "bw_l1_l0a": "L1 to L0A",
    "bw_l1_l0b": "L1 to L0B",
    "bw_l1_ub": "L1 to UB and back",
    "bw_l1_bt": "L1 to the tables of bias and scaling, and fills of L1",
    "bw_ub_ub": "UB to UB",
    "bw_remote": "memory of another device to this one, by the core",
    "bw_remote_async": "the same, by the engine for asynchronous transfers",
    "lat_gm_in": "start-up of a transfer from global memory, cycles",
    "lat_ub_gm": "start-up of a transfer from UB to global memory",
    "lat_l0c_gm": "start-up of a transfer from L0C to global memory",
    "lat_l1_l0": "start-up of a transfer from L1 to L0A or L0B",
    "lat_remote_async": "start-up of an asynchronous transfer between devices",
    "read_cap": "global memory to all cores together, bytes per cycle",
    "write_cap": "all cores together to global memory",
    "l2": "bytes of L2, from which `read_cap` is served",
    "hbm_cap": "global memory beyond L2 to all cores together, bytes per cycle",
    "mad_head": "cycles of the cube before the first product",
    "vector_start": "cycles of pipe V before a vector function begins, and after it ends",
}


class Machine(Record):
    name: str
    isa: str  # the column of the cost tables
    title: str
    values: Mapping[str, float]
    evidence: Mapping[str, str]  # "measured: words", by parameter
    source: str = ""  # file with replaced parameters

    def __getattr__(self, name: str) -> float:
        values = self.__dict__.get("values")
        if values is not None and name in values:
            return values[name]
        raise AttributeError(name)

    def with_values(self, values: Mapping[str, Any], why: str = "derived: given by the user") -> Machine:
        """Return the machine with other numbers."""
        unknown = sorted(set(values) - set(PARAMETERS))
        if unknown:
            raise ValueError(f"unknown parameter {unknown[0]!r}; expected one of {', '.join(PARAMETERS)}")
        for key, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
                raise ValueError(f"expected a number from 0 for parameter {key}, got {shown(value)}")
            if not value and key in ("mhz", "aic", "aiv", "depth", "read_cap", "write_cap", "hbm_cap"):
                raise ValueError(f"expected a number above 0 for parameter {key}, got 0")
            if not value and key.startswith("bw_"):
                raise ValueError(f"expected a rate above 0 for parameter {key}, got 0")
        return self.replace(
            values={**self.values, **values}, evidence={**self.evidence, **dict.fromkeys(values, why)}
        )

    def us(self, cycles: float) -> float:
        return cycles / self.mhz


_A2A3: dict[str, tuple[float, str]] = {
    "mhz": (1850, "derived: platform description of the vendor"),
    "aic": (24, "derived: platform description of the vendor"),
    "aiv": (48, "derived: platform description of the vendor"),
    "launch": (16000, "derived: remainder of small products on 24 cores; a cycle simulator has 10905"),
    "block": (2000, "fitted: rankings of attention kernels on devices"),
    "issue": (5, "derived: scalar share of top-k on 48 vector cores"),
    "depth": (32, "guessed"),
    "flag": (3, "guessed"),
    "cross": (180, "guessed: between a flag on the core and a read of global memory"),
    "grid": (600, "guessed"),
    "barrier": (17, "derived: column reductions, which have a barrier per row"),
    "bw_gm_ub": (128, "fitted: single transfers, start-up and bytes per cycle"),
    "bw_gm_l1": (128, "fitted: single transfers; many cores meet read_cap"),
    "bw_ub_gm": (109.4, "guessed: as published, without a source"),
    "bw_l1_gm": (18.6, "guessed"),
    "bw_l0c_gm": (72.8, "derived: stores of products on 24 cores"),
    "bw_l0c_l1": (74.3, "guessed"),
    "bw_l0c_ub": (256, "derived: platform description of the vendor"),
    "bw_l1_l0a": (256, "derived: extracts of products on 24 cores, with lat_l1_l0"),
    "bw_l1_l0b": (128, "derived: extracts of products on 24 cores, with lat_l1_l0"),
    "bw_l1_ub": (128, "derived: platform description of the vendor"),
    "bw_l1_bt": (18.6, "guessed"),
    "bw_ub_ub": (32, "fitted: copies of tiles within UB"),
    "bw_remote": (3.02, "measured: reads of another device, 4 KiB to 4 MiB"),
    "bw_remote_async": (11.2, "measured: asynchronous reads of another device"),
    "lat_gm_in": (264, "fitted: single transfers of 1 to 32 descriptors"),
    "lat_ub_gm": (107, "fitted: one of the published fits"),
    "lat_l0c_gm": (150, "guessed"),
    "lat_l1_l0": (38, "derived: extracts of products and convolutions on 24 cores"),
    "lat_remote_async": (4700, "measured: asynchronous reads of another device"),
    "read_cap": (1980, "derived: loads of products on 24 cores"),
    "write_cap": (2064, "derived: platform description of the vendor, L2 writes of 24 cores"),
    "l2": (192 * 1024 * 1024, "derived: platform description of the vendor"),
    "hbm_cap": (1300, "derived: the largest product, whose operands exceed L2"),
    "mad_head": (12, "derived: products on 24 cores"),
    "vector_start": (35, "guessed"),
}

_A5: dict[str, tuple[float, str]] = {
    **_A2A3,
    "mhz": (1650, "derived: platform description of the vendor"),
    "aic": (32, "derived: platform description of the vendor"),
    "aiv": (64, "derived: platform description of the vendor"),
    "launch": (16000, "guessed: as on a2a3"),
    "block": (2000, "guessed: as on a2a3"),
    "issue": (5, "guessed: as on a2a3"),
    "barrier": (20, "guessed"),
    "bw_gm_ub": (128, "guessed: as on a2a3"),
    "bw_gm_l1": (128, "guessed: as on a2a3"),
    "bw_ub_gm": (128, "derived: platform description of the vendor"),
    "bw_l0c_gm": (128, "derived: stores of 8-bit products on 32 cores"),
    "bw_l0c_l1": (128, "guessed"),
    "bw_l0c_ub": (128, "derived: platform description of the vendor"),
    "bw_l1_l0a": (256, "derived: platform description of the vendor"),
    "bw_l1_l0b": (256, "derived: platform description of the vendor"),
    "lat_gm_in": (550, "fitted: cold round trips of the vendor's cycle simulator"),
    "lat_l1_l0": (68, "derived: extracts of 8-bit products on 32 cores"),
    "read_cap": (2750, "derived: loads of 8-bit products on 32 cores"),
    "write_cap": (3200, "derived: platform description of the vendor"),
    "l2": (128 * 1024 * 1024, "derived: platform description of the vendor"),
    "hbm_cap": (2000, "derived: loads of 8-bit products on 32 cores"),
    "mad_head": (19, "derived: 8-bit products on 32 cores"),
    "vector_start": (35, "fitted: start-up and drain of the vendor's model of the vector core"),
}


def _made(name: str, isa: str, title: str, table: Mapping[str, tuple[float, str]], **own: float) -> Machine:
    assert set(table) == set(PARAMETERS), set(table) ^ set(PARAMETERS)
    values = {key: float(value) for key, (value, _) in table.items()} | own
    why = {key: words for key, (_, words) in table.items()}
    why |= dict.fromkeys(own, "derived: the same chip with fewer cores, another clock or other memory")
    return Machine(name, isa, title, values, why)


def _per_core(table: Mapping[str, tuple[float, str]], aic: int) -> dict[str, float]:
    """Return the caps of a chip with another number of cores: the same per core."""
    return {key: table[key][0] * aic / table["aic"][0] for key in ("read_cap", "write_cap", "hbm_cap")}


MACHINES: dict[str, Machine] = {
    m.name: m
    for m in (
        _made("a2a3", "a2a3", "Ascend 910B1, a die of 910C", _A2A3),
        _made("910b2", "a2a3", "Ascend 910B2", _A2A3, mhz=1800.0),
        _made("910b3", "a2a3", "Ascend 910B3", _A2A3, mhz=1800.0, aic=20.0, aiv=40.0, **_per_core(_A2A3, 20)),
        _made(
            "910b4",
            "a2a3",
            "Ascend 910B4",
            _A2A3,
            mhz=1500.0,
            aic=20.0,
            aiv=40.0,
            **{key: value / 2 for key, value in _per_core(_A2A3, 20).items()},
        ),
        _made("a5", "a5", "Ascend 950, 32 cube cores", _A5),
        _made("957", "a5", "Ascend 957, 28 cube cores", _A5, aic=28.0, aiv=56.0, **_per_core(_A5, 28)),
    )
}


def machine_of(profile: Profile | str) -> Machine:
    """Return the machine of a profile. The CPU simulator and small chips use the machine of their legality
    column."""
    found = profile if isinstance(profile, Profile) else PROFILES[profile]
    if found.name in MACHINES:
        return MACHINES[found.name]
    return MACHINES["a5" if found.isa == "a5" else "a2a3"]


def machine(
    what: str | os.PathLike[str] | Machine | None,
    profile: Profile | str = "a2a3",
) -> Machine:
    """Return a machine by name, from a file of parameters, or (None) for a profile; raise `ValueError`
    otherwise."""
    if isinstance(what, Machine):
        return what
    if what is None:
        return machine_of(profile)
    name = os.fspath(what)
    if name.lower() in MACHINES:
        return MACHINES[name.lower()]
    if not name.endswith(".toml"):
        raise ValueError(f"unknown machine {name!r}; expected one of {', '.join(MACHINES)}, or a .toml file")
    return _read(name, profile)


#: Maximum size of a machine's file, and of a line. The time of the parser grows with the square of the dots
#: in a key.
_LARGEST, _LONGEST = 1 << 20, 1000
#: Tables of a machine's file that other modules read -> description.
TABLES = {
    "runtime": "overheads of the task runtime (pto.runtime.overheads)",
    "durations": "microseconds of kernels (pto.runtime.durations)",
}


def read_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a machine's file; raise `ValueError` if it is malformed or has an unknown
    table."""
    name = os.fspath(path)
    toml: Any
    try:
        toml = import_module("tomllib")
    except ModuleNotFoundError:  # before Python 3.11
        toml = import_module("tomli")
    with open(name, "rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"{name}: expected a file of at most {_LARGEST} bytes")
    if any(len(line) > _LONGEST for line in data.splitlines()):
        raise ValueError(f"{name}: expected lines of at most {_LONGEST} bytes")
    try:
        given: dict[str, Any] = toml.loads(data.decode())
    except (ValueError, RecursionError) as e:
        raise ValueError(f"{name}: {e}") from None
    for key, value in given.items():
        if isinstance(value, dict) and key not in TABLES:
            known = ", ".join(f"[{t}]" for t in TABLES)
            close = f"; write the parameter as {key} = NUMBER" if key in PARAMETERS else ""
            raise ValueError(f"{name}: unknown table [{key}]; expected one of {known}{close}")
        if key in TABLES and not isinstance(value, dict):
            raise ValueError(f"{name}: expected a table [{key}] with names and numbers")
    return given


def _read(path: str, profile: Profile | str) -> Machine:
    try:
        given = {key: value for key, value in read_file(path).items() if key not in TABLES}
    except OSError as e:
        raise ValueError(f"cannot read {path!r}: {(e.strerror or str(e)).lower()}") from None
    base = given.pop("machine", None)
    if base is not None and (not isinstance(base, str) or base not in MACHINES):
        raise ValueError(f"{path}: unknown machine {shown(base)}; expected one of {', '.join(MACHINES)}")
    start = MACHINES[base] if base is not None else machine_of(profile)
    try:
        found = start.with_values(given, f"derived: {path}")
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from None
    return found.replace(source=path)


def shown(value: object) -> str:
    """Return a value of a file for messages, truncated."""
    try:
        return repr(value)[:80]
    except ValueError:  # an integer with more digits than Python prints
        return "an integer of thousands of digits"


def toml_of(found: Machine, base: Machine) -> str:
    """Return a file for `machine`: the parameters that differ from those of a base machine."""
    lines = [f'machine = "{base.name}"']
    for key in PARAMETERS:
        if found.values[key] != base.values[key]:
            lines.append(f"{key} = {found.values[key]:.6g}  # {PARAMETERS[key]}; was {base.values[key]:g}")
    return "\n".join(lines) + "\n"
