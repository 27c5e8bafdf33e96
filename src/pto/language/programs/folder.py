"""Programs as folders of the task runtime: `compiled.save(folder)` writes them, and `load` runs them.

    folder/
        orchestration/NAME.cpp            over the PTO2 API
        kernels/{aic,aiv,mix}/NAME.pto    a file per function of a core
        kernels/extern/NAME/              C++ of users, with their headers
        next_levels/builtin.tensor.NAME/  kernels of a collective that the host calls, one per rank
        kernel_config.py                  numbers of the kernels
        program.json                      parameters: names, types, extents of each call
        debug/run.py                      a script that runs it on random inputs
        golden.py, data/                  inputs and their results, if there were samples
        passes_dump/NN_after_PASS.py      the program after each pass, as Python
        report/kernels.txt                the tasks and their parameters

`pto runtime run FOLDER` runs one with a golden.py. `load(folder)` needs neither the source nor a golden.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import knobs
from ...asm import to_text
from ...diag import Diagnostic, DiagnosticError, render
from ...engine import journal
from ...engine.sanitize import OF_GRAPHS, WARN, asked, checks, parse_names, summary
from ...files import write_whole
from ...isa.profiles import PROFILES
from ...isa.record import Record
from ...perf.hazards import as_errors, problems
from ..advice import help_in_language_terms
from ..dtypes import BY_ISA
from ..emit.orchestration import TaskKernel, orchestration_cpp
from ..graphs.tasks import core_of
from ..ir import FIFO_SLOTS, IN, Function, Op, TensorType, retyped
from ..problems import UNSUPPORTED, Problem
from . import arguments, rerun
from .callable import CallableProgram, CallParam, SavableProgram
from .extern import sources_of
from .lower import LoweredProgram, texts

if TYPE_CHECKING:
    from ...engine.elements import Array
    from ...runtime.compile import CompiledJob
    from ...runtime.runs import Replayed

_FORMAT = 2
_NOT_SAVED = "not_saved.txt"
_ENTRY = "aicpu_orchestration_entry"


# ---- writing ----


def save(
    compiled: SavableProgram, folder: str | os.PathLike[str], samples: Sequence[object] = (),
    dumps: bool = True,
) -> Path:  # fmt: skip
    """Write a program to a new folder. `samples` are arguments: golden.py returns them, and expects the
    results of the program. `dumps`: also the program after each pass."""
    if samples:
        compiled.check(samples)
    root = Path(folder)
    done = compiled.lowered
    entry = _orchestration(compiled.entry)
    kernels, files = _kernels(done, entry)
    try:
        text = orchestration_cpp(entry, {k.name: k.kernel for k in kernels})
    except Problem as problem:
        raise DiagnosticError([problem.diagnostic]) from None
    name = compiled.entry.name
    _within_limits(entry, sum(2 if k.core == "mixed" else 1 for k in kernels))
    files[f"orchestration/{name}.cpp"] = text
    files["kernel_config.py"] = _config(name, kernels)
    for builtin in sorted({k.function.attrs.get("builtin") or "" for k in kernels} - {""}):
        mine = [k for k in kernels if k.function.attrs.get("builtin") == builtin]
        files[f"next_levels/{builtin}/kernel_config.py"] = _builtin_config(builtin, mine)
    files["program.json"] = json.dumps(_meta(compiled), indent=2) + "\n"
    files["debug/run.py"] = rerun.text(name, compiled.params)
    for n, (stage, shown) in enumerate(texts(done) if dumps else ()):
        files[f"passes_dump/{n:02d}_after_{stage}.py"] = shown
    files["report/kernels.txt"] = "\n".join(_described(k) for k in kernels) + "\n"
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)
    if samples:
        _golden(compiled, root, list(samples))
    _live[root.resolve()] = compiled, _stamp(root)
    return root


#: Programs that this process has written, by folder, with the time of the last change of their sources.
_live: dict[Path, tuple[SavableProgram, int]] = {}


def _stamp(root: Path) -> int:
    parts = ("kernel_config.py", "program.json", "kernels", "orchestration", "next_levels")
    files = [f for part in parts for f in (root / part, *(root / part).rglob("*"))]
    return max((f.stat().st_mtime_ns for f in files if f.exists()), default=0)


def keep(compiled: SavableProgram, root: Path, why: DiagnosticError) -> None:
    """Record why a program cannot be written. This process can still run it; other processes report the
    reason.
    """
    write_whole(root / _NOT_SAVED, render(why.diagnostics) + "\n")
    _live[root.resolve()] = compiled, _stamp(root)


def live(root: Path) -> SavableProgram | None:
    """Return the program that this process has written to a folder, if the folder has not changed since."""
    found = _live.get(root.resolve())
    return found[0] if found is not None and _stamp(root) == found[1] else None


def _within_limits(entry: Function, kernels: int) -> None:
    """Refuse programs beyond the limits of folders."""
    from ...runtime.folder import RUNTIMES

    most_kernels, most_arguments, _ = RUNTIMES["tensormap_and_ringbuffer"]
    for what, count, most in (("kernels", kernels, most_kernels),
                              ("arguments", len(entry.body.args), most_arguments)):  # fmt: skip
        if count > most:
            raise DiagnosticError([Diagnostic(
                UNSUPPORTED, f"{entry.name} has more {what} than a folder may have", entry.loc,
                expected=f"at most {most}", got=str(count),
            )])  # fmt: skip


class _Kernel(Record):
    """A function of a core in a folder: its files, and the numbers of its kernels."""

    name: str
    function: Function
    core: str
    sources: dict[str, str]
    kernel: TaskKernel
    include_dirs: tuple[str, ...] = ()


def _orchestration(entry: Function) -> Function:
    """Return the function that submits tasks; for a single kernel, a function that submits it."""
    if entry.kind == "orchestration":
        return entry
    made = Function(entry.name, "orchestration", entry.loc)
    given: list[object] = []
    for value in entry.body.args:
        if value.name == FIFO_SLOTS:  # memory of the runtime
            shape = list(value.type.shape)
            op = Op("create_tensor", {"shape": shape, "dtype": value.type.dtype}, [value.type], entry.loc)
            given.append(made.body.append(op).result)
        else:
            given.append(made.body.add_arg(value.type, value.name))
    own = dict(zip(entry.body.args, given, strict=True))
    for value in made.body.args:
        value.type = retyped(value.type, lambda v: own[v])
    made.body.append(Op("call", {"callee": entry, "args": given}, [], entry.loc))
    return made


def _kernels(done: LoweredProgram, entry: Function) -> tuple[list[_Kernel], dict[str, str]]:
    """Return functions that tasks run, with their numbers, and the text of their files."""
    from ...engine.entry import Launchable

    called = {op.args["callee"].name for op in entry.walk() if op.name == "call"}
    kernels: list[_Kernel] = []
    files: dict[str, str] = {}
    number = 0
    for name, module in done.modules.items():
        if name not in called:
            continue
        core = core_of(module)
        path = f"kernels/{'mix' if core == 'mixed' else core}/{name}.pto"
        builtin = done.functions[name].attrs.get("builtin")
        path = f"next_levels/{builtin}/{path}" if builtin else path
        files[path] = to_text(module)
        if core == "mixed":
            lanes = Launchable(module, None, None, True).subblocks
            ids = TaskKernel(number, number + 1, number + 1 if lanes > 1 else -1)
        else:
            ids = TaskKernel(number) if core == "aic" else TaskKernel(-1, number)
        number += 2 if core == "mixed" else 1
        kernels.append(_Kernel(name, done.functions[name], core, {core: path}, ids))
    for name in sorted(called):
        function = done.functions[name]
        if function.kind == "python":
            raise DiagnosticError(
                [Diagnostic(UNSUPPORTED, f"cannot save {name}: it is a task in Python", function.loc)]
            )
        if function.kind == "extern":
            found = sources_of(function)
            numbers = dict(zip(found, (number, number + 1), strict=False))
            number += len(found)
            aiv = numbers.get("aiv", -1)
            ids = TaskKernel(
                numbers.get("aic", -1), aiv, aiv if function.attrs.get("dual_aiv_dispatch") else -1
            )
            core = "mixed" if len(found) > 1 else next(iter(found))
            paths, folders = _copied(function, done.profile.name, files)
            kernels.append(_Kernel(name, function, core, paths, ids, tuple(folders)))
    return kernels, files


def _copied(function: Function, profile: str, files: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the sources of a C++ kernel and all headers of the user that they include, in their original
    layout; and the folders in which headers are found."""
    from ...runtime.compile import Job, compile_all

    folders = tuple(function.attrs["include_dirs"])
    found = sources_of(function)
    jobs = [
        Job(function.name, path, core, profile=profile, include_dirs=folders) for core, path in found.items()
    ]
    used = sorted({os.path.abspath(f) for made in compile_all(jobs) for f in made.files})
    root = os.path.commonpath([os.path.dirname(f) for f in used] + [os.path.abspath(d) for d in folders])
    place = f"kernels/extern/{function.name}"

    def moved(path: str) -> str:
        return os.path.normpath(os.path.join(place, os.path.relpath(path, root)))

    for file in used:
        files[moved(file)] = Path(file).read_text(encoding="utf-8")
    return {core: moved(path) for core, path in found.items()}, [moved(d) for d in folders]


def _builtin_config(name: str, kernels: Sequence[_Kernel]) -> str:
    """Return the configuration of the kernels of a host collective, one per rank, for their own folder."""
    rows = [row.replace(f"next_levels/{name}/", "") for row in _rows(kernels)]
    return "\n".join([
        f'"""The kernels of {name}, by number."""', "", "from pathlib import Path", "",
        "_HERE = Path(__file__).parent", "", "KERNELS = [", *rows, "]", "",
    ])  # fmt: skip


def _rows(kernels: Sequence[_Kernel]) -> list[str]:
    rows: list[str] = []
    for k in kernels:
        for core, number in (("aic", k.kernel.aic), ("aiv", k.kernel.aiv0)):
            if number < 0:
                continue
            shown = f"{k.name}_{core}" if k.core == "mixed" else k.name
            source = f'str(_HERE / "{k.sources.get(core) or k.sources[k.core]}")'
            row = f'{{"func_id": {number}, "name": "{shown}", "source": {source}, "core_type": "{core}"'
            if k.include_dirs:
                row += f', "include_dirs": [{", ".join(f"_HERE / {d!r}" for d in k.include_dirs)}]'
            row += "},"
            rows.append(f"    {row}")
    return rows


def _config(name: str, kernels: Sequence[_Kernel]) -> str:
    rows = _rows(kernels)
    return "\n".join([
        f'"""The kernels of {name}, by number; written from Python."""', "", "from pathlib import Path", "",
        "_HERE = Path(__file__).parent", "", "KERNELS = [", *rows, "]",
        f'ORCHESTRATION = {{"source": str(_HERE / "orchestration/{name}.cpp"), "function_name": "{_ENTRY}"}}',
        'RUNTIME_CONFIG = {', '    "runtime": "tensormap_and_ringbuffer",', '    "aicpu_thread_num": 4,',
        '    "block_dim": 24,', "}", "",
    ])  # fmt: skip


def _described(k: _Kernel) -> str:
    """Return a kernel for the report: its core and its parameters."""
    directions = {p.value: p.direction for p in k.function.params}
    params = [f"{v.name}: {v.type}" + (f" ({directions.get(v)})" if isinstance(v.type, TensorType) else "")
              for v in k.function.body.args]  # fmt: skip
    numbers = ", ".join(str(n) for n in (k.kernel.aic, k.kernel.aiv0) if n >= 0)
    files = ", ".join(dict.fromkeys(k.sources.values()))
    return "\n".join([f"{k.name}: {k.core}, kernel {numbers}, {files}", *(f"    {p}" for p in params)])


def _meta(compiled: SavableProgram) -> dict[str, Any]:
    entry = compiled.entry
    symbols = {name: list(place) for name, place in entry.attrs.get("symbols", {}).items()}
    params = [
        {
            "name": p.name,
            "dtype": p.dtype and p.dtype.isa,
            "shape": p.shape and list(p.shape),
            "direction": p.direction,
        }
        for p in compiled.params
    ]
    return {
        "format": _FORMAT,
        "name": entry.name,
        "target": compiled.profile.name,
        "platform": compiled.platform,
        "params": params,
        "symbols": symbols,
    }


def _golden(compiled: SavableProgram, root: Path, values: Sequence[object]) -> None:
    """Write samples and their results as files; and golden.py, which reads them."""
    import numpy as np

    arrays = [np.ascontiguousarray(arguments.as_numpy(v)).copy() for v in values if arguments.is_array(v)]
    params = [p for p in _meta(compiled)["params"] if p["shape"] is not None]
    data = root / "data"
    data.mkdir(parents=True, exist_ok=True)
    rows: list[str] = []
    for p, a in zip(params, arrays, strict=True):
        write_whole(data / f"{p['name']}.bin", a.tobytes())
        rows.append(f"    ({p['name']!r}, {a.dtype.name!r}, {tuple(a.shape)}),")
    given = iter(arrays)
    compiled.execute([next(given) if arguments.is_array(v) else v for v in values])
    outputs = [p["name"] for p in params if p["direction"] != IN]
    for p, a in zip(params, arrays, strict=True):
        if p["name"] in outputs:
            write_whole(data / f"{p['name']}.expected.bin", a.tobytes())
    symbols = [f"    ({name!r}, {arrays[p].shape[axis]})," for name, (p, axis) in
               compiled.entry.attrs.get("symbols", {}).items()]  # fmt: skip
    text = _GOLDEN.format(
        name=compiled.entry.name, outputs=outputs, rows="\n".join(rows), symbols="\n".join(symbols)
    )
    write_whole(root / "golden.py", text)


_GOLDEN = '''"""Arguments of {name} and what it made of them; written from Python."""

import ctypes
from pathlib import Path

import ml_dtypes
import numpy as np

_DATA = Path(__file__).parent / "data"
__outputs__ = {outputs}
RTOL = ATOL = 0
TENSORS = [
{rows}
]
EXTENTS = [
{symbols}
]


def _read(file, dtype, shape):
    found = getattr(ml_dtypes, dtype, None) or dtype
    return np.fromfile(_DATA / file, np.dtype(found)).reshape(shape)


def generate_inputs(params):
    tensors = [(name, _read(f"{{name}}.bin", dtype, shape)) for name, dtype, shape in TENSORS]
    return [*tensors, *((name, ctypes.c_int64(n)) for name, n in EXTENTS)]


def compute_golden(tensors, params):
    for name, dtype, shape in TENSORS:
        if name in __outputs__:
            tensors[name][...] = _read(f"{{name}}.expected.bin", dtype, shape)
'''


# ---- reading ----


class Saved(CallableProgram):
    """A program in a folder. `saved(a, b, out)` runs it on arrays that are used in place."""

    program = None  # its source is unknown

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        from ...runtime.folder import config_of

        self.folder = Path(folder)
        meta = self.folder / "program.json"
        if (self.folder / _NOT_SAVED).is_file():
            told = (self.folder / _NOT_SAVED).read_text(encoding="utf-8")
            raise DiagnosticError([Diagnostic("PTO-E2601", f"cannot load '{self.folder}': {told}")])
        if not meta.is_file():
            raise DiagnosticError([Diagnostic(
                "PTO-E2601", f"cannot load '{self.folder}': missing program.json",
                help="compiled.save(folder) writes one",
            )])  # fmt: skip
        self._meta = json.loads(meta.read_text(encoding="utf-8"))
        if self._meta.get("format") != _FORMAT:
            raise DiagnosticError([Diagnostic("PTO-E2601", f"cannot load '{meta}': another version of pto "
                "has written it",
                                              help="save the program again")])  # fmt: skip
        self.name: str = self._meta["name"]
        self.target: str = self._meta["target"]
        self.platform: str = self._meta["platform"]
        self.params = [
            CallParam(
                p["name"],
                BY_ISA.get(p["dtype"]),
                None if p["shape"] is None else tuple(p["shape"]),
                p["direction"],
            )
            for p in self._meta["params"]
        ]
        self.config = config_of(str(self.folder))
        self._compiled: dict[bool, list[CompiledJob]] = {}

    def __repr__(self) -> str:
        return f"<Saved {self.name} in {self.folder}>"

    @property
    def output_dir(self) -> Path:
        return self.folder

    def launch(self, values: Sequence[object], config: object = None) -> None:
        """Run it. PTO_SANITIZE names checks, as for a compiled program."""
        journal.note("running", self.name)
        found = self.execute(values, check_hazards=knobs.get("PTO_SANITIZE") == WARN, sanitize=asked())
        diagnostics = found.diagnostics or problems(found.hazards)
        if found.checked:
            journal.note("checked", self.name, text=summary(found.checked, found.unchecked))
        if diagnostics:
            journal.note("finding", self.name, tuple(diagnostics))
        journal.note("run", self.name)

    def execute(self, values: Sequence[object], **options: Any) -> Replayed:
        """Run it on the task runtime: `seed`, `block_dim`, `threads`, `record`, `check_hazards`, `sanitize`.
        The result has records, pictures and reports, like that of a compiled program. Tensors that it makes
        are allocated by tasks, which are counted."""
        from ...runtime.engine import TaskEngine
        from ...runtime.failures import RunFailure
        from ...runtime.runner import add_kernels
        from ...runtime.runs import Replayed
        from ...runtime.task_sanitizers import Watch
        from ...runtime.task_traces import TraceCollector

        arrays = self._arrays(values)
        config = self.config
        names = parse_names(options.pop("sanitize", None) or ())
        hearing = TraceCollector(PROFILES[self.target]) if names else None
        watched = checks(names, options.pop("strict_undef", None), options.pop("sample", None))
        watch = Watch(hearing, watched) if hearing is not None else None
        recorded = any([options.pop("record", False), options.pop("profiling", False)])
        if OF_GRAPHS in names:
            options["check_hazards"] = True
        if watch is not None:
            given = [(a.ctypes.data, a.nbytes) for a in arrays]
            watch.begin(given)
            watch.outside(given)
            options.update(callers=True, poison="undef" in names)
        engine = TaskEngine({
            "profiling": recorded, "runtime": config.runtime, "block_dim": config.block_dim,
            "aicpu_thread_num": config.aicpu_threads, **options,
        })  # fmt: skip
        engine.hearing = hearing
        orchestration, *made = self._made(bool(names))
        compiled = dict(zip((k.func_id for k in config.kernels), made, strict=True))
        add_kernels(engine, config.kernels, lambda k: compiled[k.func_id], hearing)
        words = [a.ctypes.data for a in arrays]
        words += self._numbers(values)
        words += [arrays[p].shape[axis] for p, axis in self._meta["symbols"].values()]
        try:
            with help_in_language_terms():
                records = engine.run_orchestration(orchestration.path, _ENTRY, words)
        except RunFailure as e:
            if hearing is not None:
                e.stand_at(hearing.failed_at())
            raise
        finally:
            if hearing is not None:
                hearing.stop()
        done = Replayed(records, engine.hazards, recorded or bool(options.get("check_hazards")))
        if watch is not None:
            done.diagnostics = watch.problems(engine.sites, engine.blank_reads)
            done.checked, done.unchecked = names, watch.unchecked
            if OF_GRAPHS in names:
                done.diagnostics += as_errors(problems(watch.hazards(engine.hazards)))
        return done

    def _made(self, traced: bool) -> list[CompiledJob]:
        """Return the compiled orchestration and kernels; `traced`: for sanitizers."""
        from ...runtime.compile import compile_all

        if traced not in self._compiled:
            jobs = self.config.jobs(self.config.runtime, self.target)
            self._compiled[traced] = compile_all([j.replace(traced=traced) for j in jobs])
        return self._compiled[traced]

    def _numbers(self, values: Sequence[object]) -> list[int]:
        """Return numbers that are not constants of the program, as words."""
        from ...runtime.tensors import float_word

        found: list[int] = []
        for p, v in zip(self.params, values, strict=True):
            if p.shape is None and p.dtype is not None:
                given = arguments.number(v)
                found.append(float_word(float(given)) if p.dtype.is_float else int(given) & (1 << 64) - 1)
        return found

    def _arrays(self, values: Sequence[object]) -> list[Array]:
        """Return the memory of arguments, which must fit the program."""
        self.check(values)
        return [
            arguments.in_place(v, p.name, p.direction != IN)
            for p, v in zip(self.params, values, strict=True)
            if p.shape is not None
        ]


def load(folder: str | os.PathLike[str]) -> Saved:
    """Return a saved program."""
    return Saved(folder)


def _from_dir(folder: str | os.PathLike[str], **_: object) -> CallableProgram:
    """Load like `load`; the folder has all other data of a program."""
    return load(folder)


CallableProgram.from_dir = _from_dir
