"""Run a folder: compile its sources, run its cases on an engine, compare the results with golden.

The engine is any object with the methods of `FolderEngine`; `make_engine` makes the task runtime. Each case
has its own engine and its own memory, so that no case sees the results of another one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .. import knobs
from ..diag import Diagnostic, DiagnosticError
from ..engine.sanitize import OF_GRAPHS, checks
from ..isa.profiles import DEFAULT_PLATFORM, PLATFORMS, PROFILES
from ..isa.record import Record
from ..perf.hazards import as_errors
from ..perf.hazards import problems as unordered
from .compare import Comparison, compare
from .compile import CHIP, Ahead, CompiledJob, Job, Progress, compile_all, form_of
from .failures import SUBMITTED, RunFailure
from .folder import MAX_AICPU_THREADS, RUNTIMES, Folder, KernelEntry
from .golden import Arguments
from .memory import TensorMemory
from .task_sanitizers import Watch
from .task_traces import TraceCollector

_ADDRESS = re.compile(r"touched address (0x[0-9a-f]+)")


class FolderEngine(Protocol):
    """The engine of a run. Kernels are shared libraries with `pto2_kernel`, or Python functions. Errors are
    raised as `DiagnosticError` or `RuntimeError`, with all resources released."""

    #: Address and size of the tensors of the run.
    given: list[tuple[int, int]]

    def add_kernel(self, func_id: int, name: str, core_type: str, path: str) -> Any: ...
    def add_program(self, func_id: int, name: str, core_type: str, task: Any) -> Any: ...

    def add_function(
        self, func_id: int, name: str, core_type: str, function: Callable[..., Any], args: Sequence[str] = ()
    ) -> Any:
        """Add a Python function; `args` are its roles, if the folder has them."""
        ...

    def run_orchestration(self, path: str, entry: str, args: list[int]) -> Any:
        """Run to the end and return the records of the run (`records.Records`, or None)."""
        ...


#: Makes an engine for a configuration, see `RunnerOptions.engine`.
MakeEngine = Callable[[dict[str, Any]], FolderEngine]
#: Called with progress: the level of a line (info or debug) and its text.
Log = Callable[[str, str], object]


class RunnerOptions(Record):
    """Options of a run; None and 0 stand for the folder's values."""

    runtime: str | None = None
    platform: str = DEFAULT_PLATFORM
    block_dim: int = 0
    aicpu_threads: int = 0
    threads: int = 0  # threads of the host; 0 for the number of processors
    profiling: bool = False
    seed: int | None = None  # a deterministic schedule
    check_hazards: bool = False  # report unordered accesses
    track_war: bool = False  # order these accesses
    virtual_time: Any = None  # a `Virtual`: simulated durations
    rings: Mapping[str, int] = {}  # sizes that differ from the defaults
    sanitize: frozenset[str] = frozenset()  # checks of C++ kernels, and of the order of tasks
    strict_undef: bool | None = None  # see `Checks`
    sample: int | str | None = None
    repeated: bool = False  # repeats a failed run, to find the callers of the submission

    @property
    def callers(self) -> bool:
        """Return True if reports name the calls of the orchestration that submitted a task."""
        return self.check_hazards or bool(self.sanitize) or self.repeated

    def engine(self, folder: Folder) -> dict[str, Any]:
        """Return the configuration of an engine."""
        config = folder.config
        return {
            "runtime": self.runtime or config.runtime,
            "platform": self.platform,
            "block_dim": self.block_dim or config.block_dim,
            "aicpu_thread_num": self.aicpu_threads or config.aicpu_threads,
            "threads": self.threads,
            "profiling": self.profiling,
            "seed": self.seed,
            "check_hazards": self.check_hazards or OF_GRAPHS in self.sanitize,
            "track_war": self.track_war,
            "callers": self.callers,
            **({"virtual_time": self.virtual_time} if self.virtual_time is not None else {}),
            **({"poison": True} if "undef" in self.sanitize else {}),
            **self.rings,
        }


class CaseResult(Record):
    """The result of a case: comparisons, problems, records of the engine, and seconds of the run itself."""

    name: str
    comparisons: tuple[Comparison, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    records: Any = None
    seconds: float = 0.0
    golden_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return all(c.ok for c in self.comparisons) and not any(p.severity == "error" for p in self.problems)


def make_engine(config: dict[str, Any]) -> FolderEngine:
    """Return the task runtime."""
    from .engine import TaskEngine

    return TaskEngine(config)


def _silent(level: str, text: str) -> None:
    pass


def add_kernels(
    engine: Any, kernels: Sequence[KernelEntry], made_for: Callable[[KernelEntry], CompiledJob],
    hearing: TraceCollector | None,
) -> None:  # fmt: skip
    """Add the kernels of a folder to an engine; `hearing` gets the traces of those that are traced."""
    for k in kernels:
        if k.function is not None:
            more = (k.args,) if k.args else ()
            engine.add_function(k.func_id, k.name, k.core_type, k.function, *more)
            continue
        made = made_for(k)
        if made.task is not None:
            engine.add_program(k.func_id, k.name, k.core_type, made.task)
        else:
            engine.add_kernel(k.func_id, k.name, k.core_type, made.path)
            if hearing is not None and made.job.traced:
                hearing.hear(made.path, k.name, made.files, made.program)
        getattr(engine, "sources", {})[k.func_id] = k.source


class Runner:
    """A folder with options; `compile` first, then `run` any number of cases."""

    def __init__(
        self,
        folder: Folder,
        options: RunnerOptions | None = None,
        engine: MakeEngine = make_engine,
        log: Log = _silent,
    ) -> None:
        self.folder = folder
        self.options = options or RunnerOptions()
        self.libraries: dict[str, CompiledJob] = {}
        self._partly: dict[str, str] = {}
        self._engine = engine
        self._log = log
        self.runtime = self.options.runtime or folder.config.runtime

    def compile(
        self, progress: Progress | None = None, workers: int = 0, ahead: Ahead | None = None
    ) -> list[CompiledJob]:
        """Compile the orchestration and the kernels, unless `ahead` has compiled them; raise all problems at
        once.
        """
        self._check_options()
        jobs = self._jobs()
        self._log("info", f"=== Building Runtime: {self.runtime} (platform: {self.options.platform}) ===")
        for k in self.folder.config.kernels:
            if k.function is None:
                self._log("info", f"Compiling kernel: {k.source} (func_id={k.func_id})")
        made = ahead.result() if ahead is not None else compile_all(jobs, progress, workers)
        self.libraries = {m.job.source + "\0" + m.job.entry + "\0" + m.job.core_type: m for m in made}
        self._log("info", f"Compiled {len(made) - 1} kernel(s)")
        return made

    def _jobs(self) -> list[Job]:
        jobs = self.folder.jobs(self.runtime, PLATFORMS[self.options.platform])
        numbers = {(k.source, k.entry, k.core_type): k.func_id for k in self.folder.config.kernels}

        def traced(job: Job) -> bool:
            if not job.core_type or job.is_program or self.options.sanitize:
                return bool(job.core_type and self.options.sanitize)
            virtual = self.options.virtual_time
            number = numbers.get((job.source, job.entry, job.core_type), -1)
            return virtual is not None and virtual.listens(number, job.name)

        return [j.replace(traced=traced(j) if j.core_type else self.options.callers) for j in jobs]

    @property
    def unchecked(self) -> dict[str, str]:
        """Kernels that sanitizers do not check, with the reason."""
        functions = {
            k.name: "a Python function" for k in self.folder.config.kernels if k.function is not None
        }
        return {**functions, **self._partly}

    def _made(self, source: str, entry: str, core_type: str) -> CompiledJob:
        return self.libraries[source + "\0" + entry + "\0" + core_type]

    def run(self, params: Mapping[str, Any]) -> CaseResult:
        """Run one case. Its problems are in the result; only internal errors are raised."""
        name = str(params["name"])
        try:
            return self._run(name, params)
        except DiagnosticError as e:
            return CaseResult(name, problems=tuple(self._with_callers(params, e)))

    def _with_callers(self, params: Mapping[str, Any], error: DiagnosticError) -> Sequence[Diagnostic]:
        """Return the problems that ended a run, with the calls that submitted the task.

        A plain run does not keep these calls, so the run is repeated with an orchestration that does. Runs of
        Python functions are not repeated, because these may have other effects.
        """
        found = error.diagnostics
        notes = [text for d in found for text, _ in d.notes] if isinstance(error, RunFailure) else []
        python = any(k.function is not None for k in self.folder.config.kernels)
        if self.options.callers or python or not any(SUBMITTED in text for text in notes):
            return found
        self._log("info", "Repeating the run, to find the callers of the submission")
        again = Runner(self.folder, self.options.replace(repeated=True), self._engine)
        again.compile()
        problems = again.run(params).problems
        same = [d.code for d in problems] == [d.code for d in found]
        return problems if same else found

    def _run(self, name: str, params: Mapping[str, Any]) -> CaseResult:
        golden, config = self.folder.golden, self.folder.config
        self._log("info", "=== Generating Inputs ===")
        arguments = golden.arguments(params)
        self._check(arguments)
        memory = TensorMemory(arguments.tensors)
        self._log("info", f"Inputs: {[t.name for t in arguments.tensors if not t.output]}")
        self._log("info", f"Outputs: {[t.name for t in arguments.outputs]}")
        started = time.perf_counter()
        expected = golden.expected(arguments, params)
        golden_seconds = time.perf_counter() - started
        self._log("info", f">>> compute_golden() took {golden_seconds:.3f}s")
        self._log("info", "=== Launching Runtime ===")
        started = time.perf_counter()
        with knobs.environment(config.environment):
            try:
                chips = self.runtime == "tensormap_and_ringbuffer" and form_of(config.orchestration) == CHIP
                words = arguments.chip_words if chips else arguments.words
                records, found = self._launch(words(memory.addresses), memory)
            except DiagnosticError as e:
                _say_where(e, memory)
                raise
        seconds = time.perf_counter() - started
        self._log("info", "Launch completed successfully")
        self._log("info", "=== Comparing Results ===")
        comparisons: list[Comparison] = []
        for t in arguments.outputs if self._computes else ():
            actual = memory.array(t.name)
            self._log("info", f"Comparing {t.name}: shape={actual.shape}, dtype={actual.dtype}")
            c = compare(t.name, actual, expected[t.name], golden.rtol, golden.atol)
            comparisons.append(c)
            if c.ok:
                self._log("info", f"  {c.name}: PASS ({c.total}/{c.total} elements matched)")
        problems = [c.problem(name) for c in comparisons if not c.ok]
        problems += found
        problems += golden.warnings(params)
        problems += self._threads()
        problems += _side_effects(name, memory)
        return CaseResult(name, tuple(comparisons), tuple(problems), records, seconds, golden_seconds)

    @property
    def _computes(self) -> bool:
        virtual = self.options.virtual_time
        return virtual is None or virtual.compute

    def _launch(self, words: list[int], memory: TensorMemory) -> tuple[Any, Sequence[Diagnostic]]:
        hearing = self._hearing()
        try:
            engine = self._engine(self.options.engine(self.folder))
            if hearing is not None:
                engine.hearing = hearing  # type: ignore[attr-defined]
            held = [(at, memory.array(name).nbytes) for name, at in memory.addresses.items()]
            engine.given = held
            watched = checks(self.options.sanitize, self.options.strict_undef, self.options.sample)
            watch = Watch(hearing, watched) if hearing and watched.names else None
            if watch is not None:
                seen = (
                    self.runtime == "tensormap_and_ringbuffer"
                )  # in other runtimes the host allocates memory
                watch.begin(held if seen else None)
                if seen:
                    watch.outside(held)
            kernels = self.folder.config.kernels
            add_kernels(engine, kernels, lambda k: self._made(k.source, k.entry, k.core_type), hearing)
            job = self.folder.jobs(self.runtime, PLATFORMS[self.options.platform])[0]
            records = engine.run_orchestration(self._made(job.source, job.entry, "").path, job.entry, words)
            wrong = (
                []
                if watch is None
                else watch.problems(getattr(engine, "sites", ()), getattr(engine, "blank_reads", ()))
            )
            self._partly.update({} if watch is None else watch.unchecked)
            hazards = getattr(engine, "hazards", ())
            found = unordered(
                hazards if watch is None else watch.hazards(hazards), getattr(engine, "unseen", 0)
            )
            return records, [*wrong, *(as_errors(found) if OF_GRAPHS in self.options.sanitize else found)]
        except RunFailure as e:
            if hearing is not None:
                e.stand_at(hearing.failed_at())
            raise
        except (RuntimeError, ValueError) as e:
            raise DiagnosticError([Diagnostic("PTO-E2609", f"run failed: {e}")]) from e
        finally:
            if hearing is not None:
                hearing.stop()

    def _hearing(self) -> TraceCollector | None:
        """Return the object that gets traces of C++ kernels, if any are needed."""
        virtual, sanitize = self.options.virtual_time, self.options.sanitize
        if not sanitize and (virtual is None or not any(m.job.traced for m in self.libraries.values())):
            return None
        return TraceCollector(PROFILES[PLATFORMS[self.options.platform]], contents=bool(sanitize))

    def _threads(self) -> Sequence[Diagnostic]:
        """Return a warning if a device has fewer AICPU threads."""
        threads = self.options.aicpu_threads or self.folder.config.aicpu_threads
        if threads <= MAX_AICPU_THREADS:
            return []
        what = f"aicpu_thread_num is {threads}, but a device has {MAX_AICPU_THREADS} AICPU threads"
        help = f"use at most {MAX_AICPU_THREADS}: {MAX_AICPU_THREADS - 1} schedulers and the orchestrator"
        return [Diagnostic("PTO-E2603", what, severity="warning", help=help)]

    def _check_options(self) -> None:
        if self.options.track_war and self.runtime != "tensormap_and_ringbuffer":
            message = f"cannot use --track-war: edges of {self.runtime} are explicit"
            help = "add_successor orders two tasks; --check-hazards reports missing edges"
            raise DiagnosticError([Diagnostic("PTO-E2621", message, help=help)])

    def _check(self, arguments: Arguments) -> None:
        most = RUNTIMES[self.runtime][1]
        if len(arguments.slots) > most:
            message = f"too many arguments: {len(arguments.slots)} (max {most} for {self.runtime})"
            raise DiagnosticError([Diagnostic("PTO-E2603", message)])


def _say_where(error: DiagnosticError, memory: TensorMemory) -> None:
    """Name the tensor near the address of an invalid access."""
    for d in error.diagnostics:
        found = _ADDRESS.search(d.message)
        if found and (where := memory.near(int(found[1], 16))):
            d.notes.append((f"the address is {where}", None))


def _side_effects(case: str, memory: TensorMemory) -> Sequence[Diagnostic]:
    """Report writes that golden does not have: outside a tensor, or into an input."""
    out: list[Diagnostic] = []
    for name, offset in memory.strays():
        where = f"{-offset} bytes before its start" if offset < 0 else f"byte {offset}"
        size = memory.array(name).nbytes
        out.append(
            Diagnostic(
                "PTO-E2607", f"case {case}: write outside of '{name}': {where}; size {size} bytes",
                help="check the shapes and offsets of the kernel against the tensor",
            )
        )  # fmt: skip
    for name in memory.changed_inputs():
        out.append(
            Diagnostic(
                "PTO-E2607", f"case {case}: the input '{name}' was written to", severity="warning",
                help="name it in __outputs__ if the write is intended",
            )
        )  # fmt: skip
    return out
