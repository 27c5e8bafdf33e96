"""The native engine: how its options are made, what its failures mean, what it recorded."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import knobs
from ..diag import Diagnostic, DiagnosticError, Span

if TYPE_CHECKING:
    from .hazards import Hazard
    from .records import Records

CORE_TYPES = ("aic", "aiv")
MAX_BLOCK_DIM = 24

#: Knobs of the rings: option, smallest value, whether it has to be a power of two.
_RINGS = {
    "PTO2_RING_TASK_WINDOW": ("task_window", 4, True),
    "PTO2_RING_HEAP": ("heap", 1024, False),
    "PTO2_RING_DEP_POOL": ("dep_pool", 16, False),
}
#: Options that are numbers, the smallest and the largest.
_NUMBERS = {
    "block_dim": (1, MAX_BLOCK_DIM), "schedulers": (1, 1024), "host_threads": (1, 1024), "shards": (1, 1024),
    "task_window": (4, 1 << 31), "heap": (1024, 1 << 46), "dep_pool": (16, 1 << 31),
    "tensormap_pool": (16, 1 << 31), "stall_seconds": (1, 1 << 31), "seed": (0, (1 << 64) - 1),
}  # fmt: skip
_LEVELS = {"silent": -1, "error": 0, "warn": 1, "info": 2, "debug": 3}

#: Codes of the engine and ours.
_CODES = {
    1: "PTO-E2620", 2: "PTO-E2620", 3: "PTO-E2620", 4: "PTO-E2620", 11: "PTO-E2620", 202: "PTO-E2620",
    5: "PTO-E2621", 10: "PTO-E2621", 200: "PTO-E2622", 201: "PTO-E2623", 203: "PTO-E2624", 205: "PTO-E2625",
}  # fmt: skip
_OWN = re.compile(r"\[(PTO-E\d{4})\] ")


def native() -> Any:
    """The compiled module."""
    try:
        from .. import _runtime  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as e:
        message = f"the native task runtime cannot be loaded: {e}"
        help = "install the package again, or make setup in a checkout"
        raise DiagnosticError([Diagnostic("PTO-E2608", message, help=help)]) from e
    return _runtime


def options(
    given: Mapping[str, Any],
    warn: Callable[[str], object],
    info: Callable[[str], object] = lambda text: None,
) -> dict[str, Any]:
    """Options of a run: what is given, then the environment, then the defaults. Refuses what cannot work."""
    made: dict[str, Any] = {}
    for name, (option, least, power) in _RINGS.items():
        value = _ring(name, least, power, warn)
        if value is not None:
            made[option] = value
    if made:
        sizes = {"task_window": 65536, "heap": 1 << 30, "dep_pool": 65536, **made}
        info("Ring buffer overrides: " + " ".join(f"{name}={size}" for name, size in sizes.items()))
    shards = knobs.get("PTO2_READY_QUEUE_SHARDS")
    if shards:
        if 1 <= _number(shards) <= 4:
            made["shards"] = _number(shards)
        else:
            warn(f"PTO2_READY_QUEUE_SHARDS={shards} is invalid or out of range [1,4], using default 3")
    level = knobs.get("PTO_LOG_LEVEL")
    if level and level.lower() not in _LEVELS:
        warn(f"PTO_LOG_LEVEL={level} invalid (must be one of {', '.join(_LEVELS)}), ignored")
    made.update((k, v) for k, v in given.items() if v is not None)
    made.setdefault("host_threads", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    made["host_threads"] = made["host_threads"] or os.cpu_count() or 1
    # Elsewhere Ctrl-C is not meant for this run, or does something else than to stop it.
    here = threading.current_thread() is threading.main_thread()
    made["interrupts"] = here and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    _check(made)
    return made


def _ring(name: str, least: int, power: bool, warn: Callable[[str], object]) -> int | None:
    text = knobs.get(name)
    if not text:
        return None
    value = _number(text)
    if value < least or (power and value & (value - 1)):
        what = f"a power of 2, >= {least}" if power else f"a valid integer >= {least}"
        warn(f"{name}={text} invalid (must be {what}), ignored")
        return None
    return value


def _number(text: str) -> int:
    """A number that a variable holds, or -1."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1


def _check(made: dict[str, Any]) -> None:
    problems: list[str] = []
    for name, (least, most) in _NUMBERS.items():
        if name not in made:
            continue
        value = made[name]
        if not hasattr(value, "__index__"):
            problems.append(f"{name} ({value!r}) must be a whole number")
            continue
        made[name] = value = int(value.__index__())
        if value < least and name != "block_dim":
            problems.append(f"{name} ({value}) must be at least {least}")
        elif not least <= value <= most:
            problems.append(f"{name} ({value}) must be in range [{least}, {most}]")
        elif name == "task_window" and value & (value - 1):
            problems.append(f"{name} ({value}) must be a power of 2")
    if problems:
        raise DiagnosticError([Diagnostic("PTO-E2621", text) for text in problems])


def log_level() -> int:
    """The level that PTO_LOG_LEVEL names."""
    return _LEVELS.get((knobs.get("PTO_LOG_LEVEL") or "warn").lower(), _LEVELS["warn"])


def log_file() -> Callable[[int, str], object] | None:
    """What appends log lines to the file that PTO_LOG_FILE names."""
    path = knobs.get("PTO_LOG_FILE")
    if not path:
        return None

    def append(level: int, text: str) -> None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    try:
        open(path, "a", encoding="utf-8").close()
    except OSError as e:
        message = f"PTO_LOG_FILE: cannot write '{path}': {e.strerror}"
        raise DiagnosticError([Diagnostic("PTO-E2621", message)]) from None
    return append


def raise_failure(run: Any, sources: Mapping[int, str] | None = None, python: bool = False) -> None:
    """Raise what ended a native run early, if anything did. `sources` are the programs of kernels that are
    written in PTO, by func_id: what a core had reached when it failed is a place in one of them. `python`:
    rings are arguments of `run`, which environment variables do not change."""
    code, text, thrown, kernel, mark, site = run.failure()
    if not code:
        return
    source = (sources or {}).get(kernel, "") if mark >= 0 else ""
    try:
        span = _span(source, mark) if source.endswith(".pto") else None
        raise failed(code, text, thrown, span, site, _arguments(text) if python else "")
    finally:
        del thrown  # its traceback leads here: memory should not wait for the garbage collector


_SIZES = re.compile(r"(?:PTO2_RING_(\w+)=|a (tensormap pool) of )(\d+)")


def _arguments(report: str) -> str:
    """The sizes that the report of a deadlock recommends, as arguments of `run`."""
    sizes = [
        f"{(env or pool).lower().replace(' ', '_')}={size}" for env, pool, size in _SIZES.findall(report)
    ]
    return f"runtime.run(..., {', '.join(sizes)})" if sizes else ""


def _span(path: str, offset: int) -> Span | None:
    """The rest of the line of a source from an offset on."""
    from ..frontdoor import read

    source, _ = read(path)
    if source is None or offset >= len(source.text):
        return None
    _, end = source.bounds(source.place(offset)[0])
    return Span(source, offset, max(end, offset + 1))


def failed(
    code: int,
    text: str,
    thrown: BaseException | None = None,
    span: Span | None = None,
    site: str = "",
    help: str = "",
) -> BaseException:
    """What to raise when a run has failed. A kernel may say by itself which diagnostic it is."""
    if thrown is not None and (code == 201 or not isinstance(thrown, Exception)):
        return thrown  # an exception of a Python orchestration is the caller's own
    own = _OWN.search(text)
    text = text.replace(own[0], "", 1) if own else text
    problem = Diagnostic(own[1] if own else _CODES.get(code, "PTO-E2629"), text.rstrip("\n"), span, help=help)
    if thrown is not None and (place := _place(thrown)):
        problem.notes.append((f"raised at {place}", None))
    if site:
        problem.notes.append((f"the task was submitted at {site}", None))
    error = DiagnosticError([problem])
    error.__cause__ = thrown
    return error


def _place(error: BaseException) -> str:
    """File and line of the innermost code of the user's that an exception came through."""
    place, at = "", error.__traceback__
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if not file.startswith((ours, "<")) and f"{os.sep}site-packages{os.sep}" not in file:
            place = f"{file}:{at.tb_lineno}"
        at = at.tb_next
    return place


_TASK = [
    ("task_id", "i8"), ("submit", "i8"), ("ready", "i8"), ("dispatch", "i8"), ("start", "i8"), ("end", "i8"),
    ("finish", "i8"), ("func_id", "i4"), ("scope", "i4"), ("cluster", "i4"), ("block", "i4"), ("site", "i4"),
    ("core", "i2"), ("thread", "i2"), ("scheduler", "i2"), ("core_type", "i2"),
]  # fmt: skip
_PHASE = [("start", "i8"), ("end", "i8"), ("count", "i4"), ("thread", "i2"), ("actor", "i2"), ("phase", "i1")]
_COUNTER = [("time", "i8"), ("value", "i8"), ("which", "i1")]
_EDGE = [("pred", "i8"), ("succ", "i8"), ("arg", "i4"), ("kind", "i1")]
_TIMES = ("submit", "ready", "dispatch", "start", "end", "finish")


def _read(raw: Mapping[str, Any], name: str, fields: Sequence[tuple[str, str]]) -> Any:
    import numpy as np

    return np.frombuffer(raw[name], np.dtype(list(fields), align=True))


def names_of(raw: Mapping[str, Any], names: Mapping[int, str]) -> Callable[[int], str]:
    """The name of the kernel of a task, for a run that recorded."""
    tasks = _read(raw, "tasks", _TASK)
    found = dict(zip(tasks["task_id"].tolist(), tasks["func_id"].tolist(), strict=True))
    return lambda task: names.get(found.get(task, -1), "")


def records(raw: Mapping[str, Any], names: Mapping[int, str], stats: Mapping[str, Any]) -> Records:
    """Records from the structures of the engine."""
    import numpy as np

    from .records import Records, table

    start = raw["start"]

    def columns(found: Any, times: Sequence[str]) -> dict[str, Any]:
        out = {str(field): found[field] for field in found.dtype.names if not field.startswith("f")
               or field in ("func_id", "finish")}  # fmt: skip
        for field in times:
            out[field] = np.where(found[field] == 0, -1, found[field] - start)
        return out

    tasks = _read(raw, "tasks", _TASK)
    order = np.lexsort((tasks["block"], tasks["task_id"]))
    sites: dict[str, int] = {}
    numbers = np.array([sites.setdefault(site, len(sites)) if site else -1 for site in raw["sites"]], "i4")
    made = columns(tasks[order], _TIMES)
    if len(numbers):
        made["site"] = numbers[made["site"]]
    return Records(
        tasks=table("tasks", made),
        edges=table("edges", columns(_read(raw, "edges", _EDGE), ())),
        phases=table("phases", columns(_read(raw, "phases", _PHASE), ("start", "end"))),
        counters=table("counters", columns(_read(raw, "counters", _COUNTER), ("time",))),
        names=dict(names),
        sites=list(sites),
        stats=dict(stats),
    )


class NativeEngine:
    """Runs one orchestration that was compiled to a shared library."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        given = dict(config)
        self._runtime = str(given.pop("runtime", "tensormap_and_ringbuffer"))
        given.pop("platform", None)
        threads = int(given.pop("aicpu_thread_num", 0) or 4)
        given["schedulers"] = max(1, threads - 1)
        given["host_threads"] = given.pop("threads", None) or None
        given["record"] = bool(given.pop("profiling", False)) or bool(given.get("check_hazards"))
        seed = given.pop("seed", None)
        if seed is not None:
            given.update(deterministic=True, seed=int(seed))
        self._given = given
        self._kernels = native().Kernels()
        self._names: dict[int, str] = {}
        self.sources: dict[int, str] = {}  # of kernels, where those who add them say so
        self.hazards: list[Hazard] = []
        self.unseen = 0  # tasks of which nobody knows what they did to memory

    def add_kernel(self, func_id: int, name: str, core_type: str, path: str) -> None:
        self._kernels.add_library(func_id, name, CORE_TYPES.index(core_type), path)
        self._names[func_id] = name

    def add_function(
        self, func_id: int, name: str, core_type: str, function: Callable[..., Any], args: Sequence[str] = ()
    ) -> None:
        """A Python function; `args` are its roles, where the folder says them (`runtime.kernel`)."""
        from .tensors import values_of

        floats = frozenset(i for i, word in enumerate(args) if word == "float")

        def call(task: int, slots: list[int], tensors: int, inputs: int) -> None:
            function(*values_of(slots, tensors, inputs, floats))

        self._kernels.add_function(func_id, name, CORE_TYPES.index(core_type), call)
        self._names[func_id] = name

    def run_orchestration(self, path: str, entry: str, args: list[int]) -> Any:
        made = options(self._given, _warn, _info)
        slots = [a & (2**64 - 1) for a in args]
        try:
            run = self._run(made, path, entry, slots)
        except MemoryError:
            message = "there is not enough memory for rings of that size"
            raise DiagnosticError([Diagnostic("PTO-E2621", message, help="make them smaller")]) from None
        raise_failure(run, self.sources)
        return records(run.records(), self._names, run.stats())

    def _run(self, made: dict[str, Any], path: str, entry: str, slots: list[int]) -> Any:
        from .hazards import hazards_of, tasks_unseen, unordered

        if self._runtime == "tensormap_and_ringbuffer":
            run = native().Tensormap(self._kernels, made, log_level(), log_file())
            run.run_library(path, slots)
            if made.get("check_hazards"):
                self.hazards = hazards_of(run, names_of(run.records(), self._names))
        else:
            made["concurrent"] = self._runtime == "aicpu_build_graph" and concurrent_build()
            run = native().TaskGraph(self._kernels, made, log_level(), log_file())
            run.run_library(self._runtime, path, entry, slots)
            if made.get("check_hazards"):
                raw = run.records()
                edges = _read(raw, "edges", _EDGE)
                edges = edges[["pred", "succ"]].tolist()
                self.hazards = unordered(raw, edges, names_of(raw, self._names))
                tasks = _read(raw, "tasks", _TASK)
                self.unseen = tasks_unseen(raw, tasks["task_id"][tasks["end"] != 0].tolist())
        return run


def concurrent_build() -> bool:
    """Whether aicpu_build_graph builds and runs at the same time."""
    mode = (knobs.get("PTO_AICPU_BUILD_GRAPH_BUILD_MODE") or "1").strip().lower()
    if mode in ("sequential", "concurrent"):
        return mode == "concurrent"
    try:
        return int(mode) != 0
    except ValueError:
        _warn(f"PTO_AICPU_BUILD_GRAPH_BUILD_MODE={mode} invalid (0, sequential, 1 or concurrent), using 1")
        return True


def _info(text: str) -> None:
    if log_level() >= _LEVELS["info"]:
        print(f"[INFO] options: {text}")


def _warn(text: str) -> None:
    import sys

    print(f"pto runtime: {text}", file=sys.stderr)
