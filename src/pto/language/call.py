"""Calls: a function specialised for its arguments, kept, and run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..diag import Diagnostic, has_errors, render
from ..isa.profiles import Profile
from . import arguments
from .config import profile_of
from .ir import OUT, TensorType
from .lower import Lowered, lowered
from .orchestrate import orchestration
from .problems import LanguageWarning
from .serial import Serial


class RunResult:
    """What a run left: what was found in it, and what each of its launches left."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.launches: list[Any] = []

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.launches)

    def __repr__(self) -> str:
        found = f"{len(self.diagnostics)} diagnostics" if self.diagnostics else "ok"
        return f"<RunResult {found}, {len(self.launches)} tasks>"

    def __str__(self) -> str:
        return render(self.diagnostics) or "ok"


class Compiled:
    """A program for certain arguments: its kernels on an engine, and the function that submits them."""

    def __init__(self, done: Lowered) -> None:
        self.lowered = done
        self.program = done.program
        self.profile = done.profile
        entry = done.program.entry
        assert entry is not None
        self.entry = entry
        self.orchestrate, self.places = (
            orchestration(entry) if entry.kind == "orchestration" else (None, [entry.loc])
        )
        self._kernels: dict[str | None, dict[str, Any]] = {}

    def kernels(self, engine: str | None) -> dict[str, Any]:
        from ..engine.launch import kernel

        found = self._kernels.get(engine)
        if found is None:
            modules = self.lowered.modules
            found = self._kernels[engine] = {n: kernel(m, n, engine=engine) for n, m in modules.items()}
            for name, function in self.program.functions.items():
                if function.kind == "extern":
                    from .extern import Alone

                    found[name] = Alone(function)
        return found

    @cached_property
    def task_kernels(self) -> dict[str, Any]:
        """What tasks of the runtime execute."""
        from .extern import extern_kernel
        from .tasks import task_kernel

        made = {n: task_kernel(self.program.functions[n], m) for n, m in self.lowered.modules.items()}
        return {
            **made,
            **{n: extern_kernel(f) for n, f in self.program.functions.items() if f.kind == "extern"},
        }

    @cached_property
    def is_graph(self) -> bool:
        """Whether there may be more than one task."""
        ops = list(self.entry.walk()) if self.entry.kind == "orchestration" else []
        return sum(o.name == "call" for o in ops) > 1 or any(o.name in ("for", "while") for o in ops)

    def execute(self, values: list[Any], **options: Any) -> Any:
        """Run it on the task runtime; options are those of `pto.runtime.run`. The run that is returned has
        records and pictures. What is written waits for those who read what was there, as the program says it
        (`track_war`)."""
        from ..runtime import run
        from .tasks import Tasks

        kernels = self.task_kernels

        def orchestrate(session: Any) -> None:
            rt = Tasks(session, self.places)
            with session.scope():
                self._begin(rt, kernels, values)

        options.setdefault("track_war", True)  # a writer waits for readers, as the program was written
        return run(orchestrate, **options)

    def save(self, folder: Any, *samples: Any) -> Any:
        """Write it to a folder of the task runtime: `pto runtime run FOLDER`, `Compiled.load(folder)`. With
        `samples`, arguments of a call, the folder has a golden.py that gives them (folder.py)."""
        from .folder import save

        return save(self, folder, samples)

    @staticmethod
    def load(folder: Any) -> Any:
        """A program that was saved: `saved(a, b, out)`. It needs nothing but its folder."""
        from .folder import load

        return load(folder)

    def __call__(self, values: list[Any]) -> None:
        """Run it; raises what goes wrong."""
        if self.is_graph:
            self.execute(values)
        elif self._alone is not None:
            kernel, order = self._alone
            arrays = [_contiguous(arguments.as_numpy(v)) for v in values if arguments.is_array(v)]
            kernel(*[arrays[i] for i in order])
        else:
            self._submit(Serial(_launch, self.places), values, None)

    @cached_property
    def _alone(self) -> tuple[Any, list[int]] | None:
        """The kernel and which parameters it gets, where the program is one task on them and nothing else."""
        if self.entry.kind != "orchestration":
            if self.entry.attrs.get("symbols"):  # more than the call gives
                return None
            return self.kernels(None)[self.entry.name], list(range(len(self.entry.params)))
        ops = self.entry.body.ops
        params = [p.value for p in self.entry.params]
        if len(ops) != 1 or ops[0].name != "call" or any(v not in params for v in ops[0].args["args"]):
            return None
        if len(ops[0].args) > 2:  # blocks and the like
            return None
        kernel = self.kernels(None)[ops[0].args["callee"].name]
        return kernel, [params.index(v) for v in ops[0].args["args"]]

    def run(self, values: list[Any], engine: str | None = None, **options: Any) -> RunResult:
        """Every task, one after the other, under watch."""
        result = RunResult()
        footprint = self._footprint(values) if options.get("sanitize") else None
        if footprint is not None:
            options["watchers"] = [*options.get("watchers", ()), footprint]

        def launch(kernel: Any, args: list[Any], said: dict[str, Any]) -> None:
            more = {**options, **({"blocks": said["blocks"]} if said.get("blocks") else {})}
            left = kernel.run(*args, **more)
            result.launches.append(left)
            result.diagnostics += left.diagnostics
            if not left.ok:
                raise _Stop

        with contextlib.suppress(_Stop):
            self._submit(Serial(launch, self.places, footprint), values, engine)
            if footprint is not None:
                footprint.holes({p.name: self.entry.loc for p in self.entry.params})
        if footprint is not None:
            result.diagnostics += footprint.diagnostics
        return result

    def _footprint(self, values: list[Any]) -> Any:
        from .footprint import Footprint, Memory

        arrays = [arguments.as_numpy(v) for v in values if arguments.is_array(v)]
        params = [p for p in self.entry.params if isinstance(p.value.type, TensorType)]
        return Footprint([Memory(p.name, a, p.direction == OUT) for p, a in zip(params, arrays, strict=True)])

    def _submit(self, rt: Serial, values: list[Any], engine: str | None) -> None:
        self._begin(rt, self.kernels(engine), values)

    def _begin(self, rt: Serial, kernels: dict[str, Any], values: list[Any]) -> None:
        tensors = [rt.wrap(arguments.as_numpy(v)) for v in values if arguments.is_array(v)]
        symbols = [tensors[p].shape[axis] for p, axis in self.entry.attrs.get("symbols", {}).values()]
        if self.orchestrate is not None:
            self.orchestrate(rt, kernels, *tensors, *symbols)
        else:
            rt.submit(kernels[self.entry.name], *tensors, *symbols)


class _Stop(Exception):
    """A launch went wrong; what follows would work on what it left."""


def _launch(kernel: Any, args: list[Any], said: dict[str, Any]) -> None:
    kernel(*args, **({"blocks": said["blocks"]} if said.get("blocks") else {}))


def _contiguous(array: Any) -> Any:
    if not array.flags.c_contiguous:
        raise arguments.refuse("arrays lie in memory without gaps", help="numpy.ascontiguousarray(x)")
    return array


def _key(types: list[Any], profile: Profile) -> Any:
    return profile.name, tuple(types)


def specialised(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], profile: Profile
) -> tuple[Compiled, list[Any], Any]:
    """The program for arguments, from the cache where it has been made."""
    given = arguments.bound(function.declared, args, kwargs)
    types = arguments.types_of(function.declared, given)
    key = _key(types, profile)
    found = function._cache.get(key)
    if found is None:
        done = lowered(function.declared, types, profile)
        _warn(done)
        found = function._cache[key] = Compiled(done)
    return found, list(given.values()), key


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> None:
    """Run a function on its arguments. Those of the shapes of an earlier call find its program at once."""
    quick = None
    if not kwargs:
        quick = (
            getattr(config, "platform", None),
            *[(a.shape, a.dtype) if arguments.is_array(a) else a for a in args],
        )
        known = function._cache.get(function._quick.get(quick))
        if known is not None:
            known(list(args))
            return
    compiled_, values, key = specialised(function, args, kwargs, profile_of(config))
    if quick is not None and len(values) == len(args):
        function._quick[quick] = key
    compiled_(values)


def lower(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any, dump: Any = None
) -> Lowered:
    given = arguments.bound(function.declared, args, kwargs)
    done = lowered(function.declared, arguments.types_of(function.declared, given), profile_of(config), dump)
    _warn(done, 5)
    done.verify()
    if dump is not None:
        done.dump(dump)
    return done


def explain(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> str:
    from .explain import explanation

    given = arguments.bound(function.declared, args, kwargs)
    done = lowered(function.declared, arguments.types_of(function.declared, given), profile_of(config))
    return explanation(done.verify())


def _warn(done: Lowered, stacklevel: int = 6) -> None:
    """Tell what is suspicious, the way Python does, at the line of the caller."""
    if done.diagnostics:
        import warnings

        warnings.warn(render(done.diagnostics), LanguageWarning, stacklevel)


def compiled(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> Compiled:
    return specialised(function, args, kwargs, profile_of(config))[0]


def run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RunResult:
    names = set(function.declared.signature.parameters)
    options = {k: kwargs.pop(k) for k in list(kwargs) if k not in names}
    engine, target, config = (options.pop(k, None) for k in ("engine", "target", "config"))
    made, values, _ = specialised(function, args, kwargs, profile_of(config, target))
    return made.run(values, engine, **options)
