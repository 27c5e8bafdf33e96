"""Compiled programs: kernels on an engine, and the orchestration that submits them."""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ... import knobs
from ...diag import Diagnostic, DiagnosticError, has_errors
from ...engine import journal
from ...engine.sanitize import OF_GRAPHS, WARN, Sample, checks, parse_names, summary
from ...engine.watch import Watcher
from ...ir.assumptions import Assumption
from ...ir.core import Module
from ...perf.hazards import Hazard, as_errors, problems
from ...shown import Shown
from ..advice import help_in_language_terms, in_language_terms, once_per_place
from ..graphs.orchestrate import orchestration
from ..graphs.serial import Serial, SerialTensor, SharedWindows
from ..ir import ASSUMED, IN, OUT, Function, TensorType, Value
from . import arguments
from .callable import CallableProgram, CallParam, SavableProgram
from .config import RunConfig
from .lower import LoweredProgram, lowered

if TYPE_CHECKING:
    from ...runtime.kernels import Kernel
    from ...runtime.runs import Run
    from ...runtime.session import Runtime
    from ..checks.footprint import Footprint
    from ..graphs.python_tasks import Call
    from ..graphs.tasks import Tasks

_DEADLOCK = "PTO-E2104"


class RunResult(Shown):
    """The result of a run: its findings, and the result of each launch."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.launches: list[Any] = []
        #: Sanitizers that watched the run, and the tasks that they could not observe, with the reason.
        self.checked: frozenset[str] = frozenset()
        self.unchecked: dict[str, str] = {}

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)

    @property
    def memory_map(self) -> Any:
        """Return the memory map of the first task (memory_map=True); `launches` has those of all tasks."""
        return self.launches[0].memory_map if self.launches else None

    @property
    def timeline(self) -> Any:
        """Return the timeline of the first task (timeline=True); `launches` has those of all tasks."""
        return self.launches[0].timeline if self.launches else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.launches)

    def __repr__(self) -> str:
        found = f"{len(self.diagnostics)} diagnostics" if self.diagnostics else "ok"
        checked = f", {summary(self.checked, self.unchecked)}" if self.checked else ""
        return f"<RunResult {found}, {len(self.launches)} tasks{checked}>"


class Compiled(SavableProgram):
    """A program for given arguments: its kernels on an engine, and the function that submits them."""

    # makes a worker that runs the program; set by pto.compat.pypto.distributed
    prepare: ClassVar[Callable[..., object]]

    def __init__(self, done: LoweredProgram, platform: str = "") -> None:
        self.lowered = done
        self.platform = platform or f"{done.profile.name}sim"
        self.folder: Path | None = None  # the folder of the saved program
        self.program = done.program
        self.profile = done.profile
        entry = done.program.entry
        assert entry is not None
        self.entry = entry
        self.orchestrate, self.places = (
            orchestration(entry) if entry.kind == "orchestration" else (None, [entry.loc])
        )
        self.name = entry.name
        self._kernels: dict[str | None, dict[str, Any]] = {}
        self._others: dict[tuple[str, ...], Compiled] = {}
        self._tasks: Tasks  # of the last run
        self._torch = False  # True if the arguments of the last call were torch tensors
        #: Python functions by the name of the task that they replace.
        self.callbacks: Mapping[str, Call] = {}
        #: The memory of ranks, if runs share it.
        self.windows: SharedWindows | None = None

    def prepared(self, callbacks: Mapping[str, Call], windows: SharedWindows | None = None) -> Compiled:
        """Return the same program with `callbacks` for its tasks in Python and with persistent windows."""
        made = copy.copy(self)
        made.callbacks, made.windows, made._kernels, made._others = callbacks, windows, {}, {}
        made.__dict__.pop("task_kernels", None)
        made.__dict__.pop("_alone", None)
        return made

    @property
    def sub_workers(self) -> dict[str, bool]:
        """Return the tasks in Python by name, True for those that need a callback."""
        return {n: f.attrs["unbound"] for n, f in self.program.functions.items() if f.kind == "python"}

    @cached_property
    def params(self) -> list[CallParam]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return the parameters of the called function without those that became constants."""
        known = {p.name: p for p in self.entry.params}
        declared = self.lowered.source[0] if self.lowered.source is not None else None
        found: list[CallParam] = []
        for name in declared.signature.parameters if declared is not None else known:
            p = known.get(name)
            if p is None:
                found.append(CallParam(name, None, None, IN))
            elif isinstance(p.value.type, TensorType):
                shape = tuple(d.name if isinstance(d, Value) else d for d in p.value.type.shape)
                found.append(CallParam(name, p.value.type.dtype, shape, p.direction))
            else:
                found.append(CallParam(name, p.value.type.dtype, None, IN))
        return found

    @cached_property
    def assumed(self) -> Sequence[Assumption]:  # pyright: ignore[reportIncompatibleMethodOverride]
        written = {**self.entry.attrs, **self.entry.attrs.get("func_attr", {})}.get(ASSUMED, ())
        return [Assumption(text) for text in written]

    def made_for(self, values: Sequence[object]) -> CallableProgram:
        if self.lowered.fixed:
            same = all(p.shape is None or p.shape == tuple(getattr(v, "shape", ()))
                       for p, v in zip(self.params, values, strict=True))  # fmt: skip
            return self if same else self._other(values, fixed=True)
        sizes: dict[str, set[int]] = {}
        for p, v in zip(self.params, values, strict=True):
            for d, n in zip(p.shape or (), getattr(v, "shape", ()), strict=False):
                if isinstance(d, str):
                    sizes.setdefault(d, set()).add(int(n))
        if self.lowered.source is None or all(len(s) == 1 for s in sizes.values()):
            return self
        return self._other(values)

    def _other(self, values: Sequence[object], fixed: bool = False) -> Compiled:
        """Return the program for other arguments."""
        assert self.lowered.source is not None
        declared, _ = self.lowered.source
        types = arguments.types_of(declared, dict(zip(self.param_names, values, strict=True)))
        if fixed:
            types = arguments.with_extents(types, values, 0)
        key = tuple(map(str, types))
        if key not in self._others:
            self._others[key] = Compiled(
                lowered(declared, types, self.profile, world=self.lowered.world).verify(), self.platform
            ).prepared(
                self.callbacks, SharedWindows(self.windows.reset) if self.windows is not None else None
            )
        return self._others[key]

    @property
    def output_dir(self) -> Path:
        if self.folder is None:
            self.folder = new_folder(self.name)
            try:
                self.save(self.folder, dumps=False)
            except DiagnosticError as e:
                from .folder import keep

                keep(self, self.folder, e)
        return self.folder

    def kernels(self, engine: str | None) -> dict[str, Any]:
        from ...engine.launch import plain

        found = self._kernels.get(engine)
        if found is None:
            modules = self.lowered.modules
            found = self._kernels[engine] = {n: plain(m, n, engine) for n, m in modules.items()}
            for name, function in self.program.functions.items():
                if function.kind == "extern":
                    from .extern import SingleKernel

                    found[name] = SingleKernel(function)
                elif function.kind == "python":
                    from ..graphs.python_tasks import AlonePython

                    found[name] = AlonePython(function, self.callbacks.get(name), lambda: self._torch)
        return found

    @cached_property
    def task_kernels(self) -> dict[str, Kernel]:
        """Return the kernels that tasks of the runtime execute, by function name."""
        from ..graphs.python_tasks import python_kernel
        from ..graphs.tasks import task_kernel
        from .extern import extern_kernel

        made = {n: task_kernel(self.program.functions[n], m) for n, m in self.lowered.modules.items()}
        for name, function in self.program.functions.items():
            if function.kind == "extern":
                made[name] = extern_kernel(function)
            elif function.kind == "python":
                made[name] = python_kernel(function, self.callbacks.get(name), lambda: self._torch)
        return made

    @cached_property
    def is_graph(self) -> bool:
        """Return True if a run may submit more than one task."""
        ops = list(self.entry.walk()) if self.entry.kind == "orchestration" else []
        return sum(o.name == "call" for o in ops) > 1 or any(o.name in ("for", "while") for o in ops)

    def execute(self, values: Sequence[object], **options: Any) -> Run:
        """Run the program on the task runtime, with the options of `pto.runtime.run`. Return the run, which
        has records and pictures."""
        from ...runtime import run
        from ..graphs.tasks import Tasks, with_windows

        kernels = self.task_kernels

        def orchestrate(session: Runtime) -> None:
            rt = self._tasks = Tasks(session, self.places, with_windows(self.program.functions))
            rt.windows = self.windows
            with session.scope():
                self._begin(rt, kernels, values)

        with help_in_language_terms():
            done = run(orchestrate, **{"sanitize": (), **options})
        windows = with_windows(self.program.functions)
        # signals order tasks of several ranks, but the graph does not contain them
        if windows and done.checked:
            done.hazards = hazards(done, self.program.functions)
            done.leave_out(dict.fromkeys(windows, "races between ranks"))
        return done

    def save(self, folder: str | os.PathLike[str], *samples: object, dumps: bool = True) -> Path:
        """Save the program in a folder of the task runtime, for `pto runtime run FOLDER` and
        `Compiled.load(folder)`. With `samples`, the arguments of a call, the folder has a golden.py that
        makes these arguments (folder.py).
        """
        from .folder import save

        self.folder = save(self, folder, samples, dumps)
        return self.folder

    @staticmethod
    def load(folder: str | os.PathLike[str] | None = None) -> CallableProgram | None:
        """Load a saved program: `saved(a, b, out)`. The folder is self-contained. Without a folder this is a
        no-op, since a compiled program is already loaded."""
        from .folder import load

        return None if folder is None else load(folder)

    def launch(self, values: Sequence[object], config: object = None) -> None:
        """Run the program and raise its errors. PTO_SANITIZE selects sanitizers; `config` decides whether
        pictures of the run are written to the program's folder."""
        journal.note("running", self.name)
        watched = knobs.get("PTO_SANITIZE")
        if isinstance(config, RunConfig) and config.any_dfx_enabled():
            self._pictured(values)
        elif watched:
            self._watched(values, watched)
        else:
            self._plain(values)
        journal.note("run", self.name)

    def _watched(self, values: Sequence[object], how: str) -> None:
        """Run the program under sanitizers, without stopping at findings. With `warn`, unordered tasks are
        warnings."""
        if how in (WARN, OF_GRAPHS):
            if not self.is_graph:
                self._plain(values)
                return
            found = self._unordered(values)
            found = as_errors(found) if how == OF_GRAPHS else found
        else:
            result = self.run(values, sanitize=how)
            found = result.diagnostics
            journal.note("checked", self.name, text=summary(result.checked, result.unchecked))
        if found:
            journal.note("finding", self.name, tuple(found))

    def _unordered(self, values: Sequence[object]) -> list[Diagnostic]:
        """Run the program and return unordered accesses of its tasks, and of the cores of ranks to windows.
        If a second run can determine the bytes, return only accesses to the same bytes. It cannot in programs
        with windows, Python tasks or C++ kernels.
        """
        from ..checks.touched_bytes import met
        from ..graphs.tasks import with_windows

        functions = self.program.functions
        again = not with_windows(functions) and not any(
            f.kind in ("python", "extern") for f in functions.values()
        )
        before = self._copied(values) if again else values
        run = self.execute(values, check_hazards=True)
        found = hazards(run, self.lowered.functions)
        return problems(met(found, self, before) if again and found else found) + self._races(run)

    def _races(self, run: Run) -> list[Diagnostic]:
        """Return unordered accesses to windows in a run that kept them in order."""
        from ..ranks.recorded_order import SubmittedTask, races

        tasks = self._tasks
        uses = run.window_uses() if tasks.kept else []
        if not uses:
            return []
        submitted = {
            task: SubmittedTask(name, tasks.dispatches.get(task, (None,))[0], place)
            for task, (name, place) in tasks.submitted.items()
        }
        found = races(uses, run.order(), tasks.kept, run.modules(), submitted, self.lowered.world)
        return once_per_place(found)

    def _copied(self, values: Sequence[object]) -> list[object]:
        """Return copies of the arguments, so that a run leaves the originals unchanged."""
        written = {p.name for p in self.entry.params if p.direction != IN}
        return [
            arguments.in_place(v, name, False).copy() if name in written and arguments.is_array(v) else v
            for name, v in zip(self.param_names, values, strict=True)
        ]

    def _pictured(self, values: Sequence[object]) -> None:
        """Run the program and write records of its tasks to `dfx_outputs` in its folder."""
        from ...perf import swimlane_json

        run = self.execute(values, record=True)
        folder = self.output_dir / "dfx_outputs"
        folder.mkdir(exist_ok=True)
        swimlane_json.write(run.records, str(folder / "chip_swimlane_records.json"))
        run.save_swimlane(str(folder / "swimlane.html"), self.name)
        run.save_graph(str(folder / "deps.dot"))
        for rank, number in sorted(set(self._tasks.dispatches.values())):
            mine = [task for task, whose in self._tasks.dispatches.items() if whose == (rank, number)]
            part = folder / f"rank{rank}" / f"d{number}"
            part.mkdir(parents=True, exist_ok=True)
            swimlane_json.write(run.records.of(mine), str(part / "chip_swimlane_records.json"))
            (part / "deps.json").write_text(json.dumps(run.records.of(mine).graph(), indent=1) + "\n")

    def _plain(self, values: Sequence[object]) -> None:
        if self.is_graph:
            self.execute(values)
            return
        with help_in_language_terms():
            if self._alone is not None:
                kernel, order = self._alone
                given = self._given(values)
                kernel(*[given[i] for i in order])
            else:
                self._submit(Serial(_launch, self.places), values, None)

    @cached_property
    def _alone(self) -> tuple[Callable[..., object], list[int]] | None:
        """Return the kernel and its parameter indices if the program is one task on those parameters and
        nothing else."""
        if self.entry.kind != "orchestration":
            if self.entry.attrs.get("symbols"):  # the kernel needs extents in addition to those of the call
                return None
            return self.kernels(None)[self.entry.name], list(range(len(self.entry.params)))
        ops = self.entry.body.ops
        params = [p.value for p in self.entry.params]
        if len(ops) != 1 or ops[0].name != "call" or any(v not in params for v in ops[0].args["args"]):
            return None
        if len(ops[0].args) > 2:  # the task has blocks, deps or other options
            return None
        kernel = self.kernels(None)[ops[0].args["callee"].name]
        return kernel, [params.index(v) for v in ops[0].args["args"]]

    def run(self, values: Sequence[object], engine: str | None = None, **options: Any) -> RunResult:
        """Run all tasks, one after another, under observers."""
        from ..graphs.tasks import with_windows
        from ..ranks.one_thread import EndedLaunch, Together

        result = RunResult()
        names = parse_names(options.get("sanitize") or ())
        result.checked = names if self.is_graph else names - {OF_GRAPHS}
        options["sanitize"] = names - {OF_GRAPHS}
        watched = checks(names, options.pop("strict_undef", None), options.pop("sample", None))
        sample = Sample(watched.sample if options["sanitize"] else None)
        plain = {**options, "sanitize": frozenset()}
        before = self._copied(values) if OF_GRAPHS in names and self.is_graph else None
        footprint = self._footprint(values, watched.strict_undef) if options["sanitize"] else None
        if footprint is not None:
            options["watchers"] = [*options.get("watchers", ()), footprint]

        def with_blocks(chosen: Mapping[str, object], said: Mapping[str, object]) -> dict[str, Any]:
            return {**chosen, **({"blocks": said["blocks"]} if said.get("blocks") else {})}

        def take(
            kernel: Any, args: Sequence[object], said: dict[str, Any], whole: bool
        ) -> tuple[list[int], list[Any]]:
            """Return the blocks of a task that are checked, and the arrays that the task may write."""
            blocks = said.get("blocks") or 1
            kind = (blocks, *(getattr(a, "size", None) for a in args))
            taken = sample.take(kernel.name, kind, blocks, whole)
            said["checked"] = bool(taken)
            params = self.program.functions[kernel.name].params
            return taken, [
                a for p, a in zip(params, args, strict=False) if p.direction != IN and arguments.is_array(a)
            ]

        def ended(left: Any, kernel: Any, said: dict[str, Any]) -> None:
            left.task = kernel.name
            if self.is_graph:
                for found in left.diagnostics:
                    found.notes.append(("in the task that was submitted here", said.get("place")))
            result.launches.append(left)
            if options["sanitize"] and said["checked"]:
                result.unchecked.update(
                    left.unchecked if left.checked else {kernel.name: "a Python function"}
                )
            result.diagnostics += left.diagnostics
            if not left.ok:
                raise _Stop

        def decided(kernel: Any, args: Sequence[object], watched: dict[str, Any]) -> Any:
            """Return the result of a launch that the screens of its kernel decide; else None."""
            alone = watched.get("watchers") == [footprint]  # there are no other watchers
            screen = getattr(kernel, "screen", None) if engine is None and alone else None
            if screen is None or watched.keys() - {"sanitize", "blocks", "watchers"}:
                return None
            given = {name: value for name, value in watched.items() if name != "watchers"}
            assert footprint is not None
            return screen.followed(args, footprint.follow, **given)

        def sampled(kernel: Any, args: Sequence[object], said: dict[str, Any], *watchers: Watcher) -> Any:
            """Run a task, a sample of its blocks with checks; return the result to report."""
            whole = engine not in (None, "reference") or kernel.name not in self.lowered.modules
            taken, written = take(kernel, args, said, whole)
            watched, unwatched = with_blocks(options, said), with_blocks(plain, said)
            if watchers:
                watched["watchers"] = [*watched.get("watchers", ()), *watchers]
            left_out = (said.get("blocks") or 1) - len(taken)
            if not left_out:
                return decided(kernel, args, watched) or kernel.run(*args, **watched)
            checked = None
            if taken:
                kept = [a.copy() for a in written]
                checked = kernel.run(*args, **watched, only=taken)
                for array, before in zip(written, kept, strict=True):
                    array[...] = before
                if any(d.code == _DEADLOCK for d in checked.diagnostics):  # the blocks wait for each other
                    sample.add(kernel.name, left_out)
                    return kernel.run(*args, **watched)
            left = kernel.run(*args, **unwatched)
            if footprint is not None:
                for array in written:
                    (footprint.filled if taken else footprint.wrote)(array)
            if checked is None or not checked.ok or left.ok:
                return left if checked is None else checked
            ended(checked, kernel, said)
            return left

        def launch(kernel: Any, args: Sequence[object], said: dict[str, Any]) -> None:
            ended(sampled(kernel, args, said), kernel, said)

        def begin(kernel: Any, args: Sequence[object], said: dict[str, Any], watcher: Watcher) -> object:
            module = self.lowered.modules.get(kernel.name)
            if module is not None and not _reads_signals(module):
                watchers = [watcher] if kernel.name in windowed else []
                return EndedLaunch(sampled(self.kernels(None)[kernel.name], args, said, *watchers))
            taken, written = take(kernel, args, said, whole=True)
            more = with_blocks(options if taken else plain, said)
            if footprint is not None and not taken:
                for array in written:
                    footprint.wrote(array)
            return kernel.begin(*args, **{**more, "watchers": [*more.get("watchers", ()), watcher]})

        together = None
        windowed = with_windows(self.program.functions)
        if windowed:  # only launches of these programs can be suspended
            engine = None
            together = Together(
                begin, ended, self.places, footprint, self.program.functions, self.lowered.world
            )
        rt = together or Serial(launch, self.places, footprint)
        rt.windows = self.windows
        with help_in_language_terms(), contextlib.suppress(_Stop):
            self._submit(rt, values, engine if together is None else "reference")
            if together is not None:
                together.finish()
            if footprint is not None:
                places = self.entry.attrs.get("places", {})
                footprint.holes({p.name: places.get(p.name, self.entry.loc) for p in self.entry.params})
        if footprint is not None:
            result.diagnostics += footprint.diagnostics
        result.unchecked.update(sample.left())
        if together is not None:
            result.diagnostics += together.order.diagnostics
        result.diagnostics = once_per_place(in_language_terms(result.diagnostics))
        if before is not None:
            try:
                known = {(d.code, d.span) for d in result.diagnostics}
                found = as_errors(self._unordered(before))
                result.diagnostics += [d for d in found if (d.code, d.span) not in known or d.span is None]
            except DiagnosticError as e:  # if not ok, this fault is already reported
                result.diagnostics += e.diagnostics if result.ok else []
        return result

    def _footprint(self, values: Sequence[object], strict: bool) -> Footprint:
        from ..checks.footprint import Footprint, RunArray

        params = [p for p in self.entry.params if isinstance(p.value.type, TensorType)]
        arrays = [a for a in self._given(values) if arguments.is_array(a)]
        return Footprint(
            [RunArray(p.name, a, p.direction == OUT) for p, a in zip(params, arrays, strict=True)], strict
        )

    def _given(self, values: Sequence[object]) -> list[Any]:
        """Return an array or number per parameter of the entry, in order, without those that became
        constants."""
        by_name = dict(zip(self.param_names, values, strict=True))
        kept = [(p, by_name[p.name]) for p in self.entry.params if p.name in by_name]
        return [
            arguments.in_place(v, p.name, p.direction != IN) if arguments.is_array(v) else arguments.number(v)
            for p, v in kept
        ]

    def submit_to(self, rt: Serial, values: Sequence[object]) -> None:
        """Run the orchestration on a runtime of tasks."""
        with help_in_language_terms():
            self._submit(rt, values, None)

    def _submit(self, rt: Serial, values: Sequence[object], engine: str | None) -> None:
        self._begin(rt, self.kernels(engine), values)

    def _begin(self, rt: Serial, kernels: dict[str, Any], values: Sequence[object]) -> None:
        from ..graphs.python_tasks import of_torch

        self._torch = of_torch(values)
        if rt.windows is not None:
            rt.windows.begin()
        given = [rt.wrap(v) if arguments.is_array(v) else v for v in self._given(values)]
        tensors = [v for v in given if isinstance(v, SerialTensor)]
        symbols = [tensors[p].shape[axis] for p, axis in self.entry.attrs.get("symbols", {}).values()]
        if self.orchestrate is not None:
            self.orchestrate(rt, kernels, *given, *symbols)
        else:
            rt.submit(kernels[self.entry.name], *given, *symbols)


def hazards(run: Run, functions: Mapping[str, Function]) -> list[Hazard]:
    """Return the unordered accesses of the tasks of a run, without accesses to windows of ranks, which
    signals order.
    """

    def is_window(h: Hazard) -> bool:
        later = functions.get(h.names[1])
        return later is not None and later.params[h.arg].name in later.attrs.get("windows", ())

    return [h for h in run.hazards if not is_window(h)]


def new_folder(name: str) -> Path:
    """Create the folder of a program, named NAME_TIME, in PTO_BUILD_DIR."""
    import time

    base = Path(knobs.get("PTO_BUILD_DIR"))
    stem = f"{name}_{time.strftime('%Y%m%d_%H%M%S')}"
    made, n = base / stem, 0
    while True:
        try:
            made.mkdir(parents=True)
            return made
        except FileExistsError:
            n += 1
            made = base / f"{stem}_{n}"


def _reads_signals(module: Module) -> bool:
    """Return True if a kernel may wait for other tasks."""
    rows = (op.row for op in module.walk())
    return any(r is not None and r.family == "signal" and not r.operands[0].writes for r in rows)


class _Stop(Exception):
    """Raised when a launch fails; later tasks would use incomplete data."""


def _launch(kernel: Callable[..., object], args: Sequence[object], said: Mapping[str, object]) -> None:
    kernel(*args, **({"blocks": said["blocks"]} if said.get("blocks") else {}))
