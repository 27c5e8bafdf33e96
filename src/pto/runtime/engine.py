"""The engine for folders: an orchestration in a shared library, with its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError
from ..engine.compiled.library import name_to_load
from ..perf.hazards import Hazard, hazards_of, tasks_unseen, unordered
from ..perf.tables import CORE_TYPES
from . import recorded
from .call_sites import call_sites
from .extension import extension
from .failures import raise_failure
from .kernels import add_task
from .options import concurrent_build, info, log_file, log_level, options, warn
from .tensors import values_of

if TYPE_CHECKING:
    from ..engine.native.task import NativeTask
    from .task_traces import TraceCollector
    from .virtual import Virtual


class TaskEngine:
    """Runs one orchestration that was compiled to a shared library."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        given = dict(config)
        self._virtual: Virtual | None = given.pop("virtual_time", None)
        if self._virtual is not None:
            given["virtual_time"] = self._virtual.options()
        self._runtime = str(given.pop("runtime", "tensormap_and_ringbuffer"))
        given.pop("platform", None)
        threads = int(given.pop("aicpu_thread_num", 0) or 4)
        given["schedulers"] = max(1, threads - 1)
        given["host_threads"] = given.pop("threads", None) or None
        given["record"] = bool(
            given.pop("profiling", False) or given.get("check_hazards") or given.get("callers")
        )
        seed = given.pop("seed", None)
        if seed is not None:
            given.update(deterministic=True, seed=int(seed))
        self._given = given
        self._kernels = extension().Kernels()
        self._names: dict[int, str] = {}
        self._programs: set[int] = set()  # numbers of the kernels in PTO
        self.sources: dict[int, str] = {}  # sources of kernels, if the caller sets them
        self._libraries: dict[int, str] = {}  # libraries of kernels in C++
        self.hearing: TraceCollector | None = None  # traces of C++ kernels, if requested
        self.hazards: list[Hazard] = []
        self.unseen = 0  # number of tasks with unknown memory accesses
        self.given: list[tuple[int, int]] = []  # address and size of the tensors of the caller
        self.sites: list[str] = []  # source location of the submission of each task, if callers are kept
        self.blank_reads: list[tuple[int, int, str]] = []  # see `Watch.problems`

    def add_kernel(self, func_id: int, name: str, core_type: str, path: str) -> None:
        with name_to_load(path) as file:
            self._kernels.add_library(func_id, name, CORE_TYPES.index(core_type), file)
        self._names[func_id] = name
        self._libraries[func_id] = path

    def add_program(self, func_id: int, name: str, core_type: str, task: NativeTask) -> None:
        add_task(self._kernels, func_id, name, CORE_TYPES.index(core_type), task)
        self._names[func_id] = name
        self._programs.add(func_id)

    def add_function(
        self, func_id: int, name: str, core_type: str, function: Callable[..., Any], args: Sequence[str] = ()
    ) -> None:
        """Add a Python function; `args` are its roles, if the folder has them (`runtime.kernel`)."""
        floats = frozenset(i for i, word in enumerate(args) if word == "float")

        def call(task: int, slots: list[int], tensors: int, inputs: int) -> None:
            function(*values_of(slots, tensors, inputs, floats))

        self._kernels.add_function(func_id, name, CORE_TYPES.index(core_type), call)
        self._names[func_id] = name

    def run_orchestration(self, path: str, entry: str, args: list[int]) -> Any:
        made = options(self._given, warn, info)
        slots = [a & (2**64 - 1) for a in args]
        try:
            with name_to_load(path) as file:
                run = self._run(made, file, entry, slots)
        except MemoryError:
            message = "cannot allocate rings of this size: out of memory"
            raise DiagnosticError([Diagnostic("PTO-E2621", message, help="make them smaller")]) from None
        run.forget_durations()
        raise_failure(run, self.sources, sites=self.sites)
        stats = run.stats()
        told = self._virtual.told(stats) if self._virtual is not None else stats
        return recorded.records(run.records(), self._names, told)

    def _know(self, run: Any) -> None:
        """Set the durations of kernels in virtual time; the cost model has those of programs."""
        if self._virtual is None:
            return
        self._virtual.begin(run, self.hearing)
        problems: list[Diagnostic] = []
        for func_id, name in self._names.items():
            program = None
            if func_id in self._programs and func_id in self.sources:
                program = self.sources[func_id], None, frozenset[int]()
            try:
                self._virtual.know(run, func_id, name, program, self._libraries.get(func_id, ""))
            except DiagnosticError as e:
                problems += e.diagnostics
        if problems:
            raise DiagnosticError(problems)

    def _run(self, made: dict[str, Any], path: str, entry: str, slots: list[int]) -> Any:
        if self._runtime == "tensormap_and_ringbuffer":
            run = extension().Tensormap(self._kernels, made, log_level(), log_file())
            self._know(run)
            run.run_library(path, slots)
            self._find_callers(made, run, path)
            if made.get("check_hazards"):
                raw = run.records()
                names = recorded.names_of(raw, self._names)
                sites = self.sites or raw["sites"]
                self.hazards = hazards_of(run.hazards(), recorded.uses(raw), sites, names)
        else:
            made["concurrent"] = self._runtime == "aicpu_build_graph" and concurrent_build()
            run = extension().TaskGraph(self._kernels, made, log_level(), log_file())
            self._know(run)
            for address, size in self.given:
                run.add_array(address, address, size)
            run.run_library(self._runtime, path, entry, slots)
            self._find_callers(made, run, path)
            if made.get("check_hazards"):
                raw = run.records()
                uses, names = recorded.uses(raw), recorded.names_of(raw, self._names)
                self.hazards = unordered(uses, self.sites or raw["sites"], recorded.edges(raw), names)
                self.unseen = tasks_unseen(uses, recorded.tasks_ended(raw))
        return run

    def _find_callers(self, made: Mapping[str, Any], run: Any, library: str) -> None:
        if made.get("callers"):
            raw = run.records()
            self.sites = call_sites(raw["sites"], raw["callers"], library)
            self.blank_reads = raw.get("blank_reads", [])
