"""Kernels and orchestrations of a folder as shared libraries: in parallel, at most once per content.

A C++ kernel is compiled unchanged, in one translation unit with `pto2/kernel_entry.hpp`, which exports the
entry point for the engine. An orchestration exports its own entry point. A `.pto` kernel is not compiled: it
runs on the virtual machine (`program`). A traced `.pto` kernel is compiled from the C++ that is emitted for
it.

The cache key of a library has the compiler, its flags, the headers of this package, the source and every file
that the source includes. The list of included files comes from the compiler and is kept in the cache,
relative to the source, so a kernel has the same key in every folder. The key of an orchestration has its
path, too, because an orchestration reports the source locations of its tasks.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from .. import cache, knobs
from ..cache import Built
from ..diag import Diagnostic, DiagnosticError, did_you_mean
from ..engine.cpp import compiler, launcher, precompiled
from ..engine.cpp.compiler import Compiler
from ..engine.cpp.handwritten import kinds, without_comments
from ..isa.profiles import PROFILES, Profile
from ..isa.record import Record
from .compiler_messages import explain
from .elf import exports
from .jobs import Job

if TYPE_CHECKING:
    from ..engine.entry import Launchable
    from ..engine.native.task import NativeTask

#: Folders of headers for users of a runtime: its own folder, then the shared one.
_FOLDERS = ("pto2/{runtime}", "pto2/platform")
#: Flags of an orchestration: its assertions are enabled, as users expect.
_ORCHESTRATION = ("-std=c++17", "-O1", "-fPIC", "-shared", *compiler.DIVISION)
_KERNEL = ("-D__CPU_SIM", "-DPTO_CPU_MAX_THREADS=1", "-DNDEBUG")
_GUARDS = {"aic": "-D__DAV_CUBE__", "aiv": "-D__DAV_VEC__"}
_GRAPHS = ("host_build_graph", "aicpu_build_graph")
#: Without the host calls of the simulator a kernel compiles in half the time; so does an orchestration
#: without strings. The few sources that need host calls, strings, or a standard header that they include, are
#: compiled again.
_LEAN = "-DPTO_CPU_LEAN"
_LEAN_ORCHESTRATION = "-DPTO2_LEAN"
#: Words of sources for which the attempt is pointless. A source that catches errors needs their full class.
_STRINGS = re.compile(r"\b(?:(?!cstring\b|string\.h\b)\w*string\w*|dump|catch)\b")
_ENTRY = '#include "pto2/kernel_entry.hpp"\nPTO2_KERNEL(kernel_entry)\n'
_ORCHESTRATION_ENTRY = '#include "pto2/orchestration_entry.hpp"\n'
#: The form of orchestrations whose entry takes ChipTaskArgs, or an earlier name of it. The runtime is the
#: same, with other headers.
CHIP = "chip"
_CHIP_ENTRY = '#include "pto2/chip/orchestration_entry.hpp"\n'
#: The function that the runtime calls.
ENTRY = "aicpu_orchestration_entry"
_CHIP_NAME, _CHIP_CONFIG = "pto2_chip_entry", "pto2_chip_config"
_CHIP_WORD = re.compile(r"\bChipTaskArgs\b|\bL2TaskArgs\b|\(\s*const ChipStorageTaskArgs\b")
_OURS = "<pto>/"  # prefix of this package's headers in lists of included files


class CompiledJob(Record):
    """The result of a job: a library and whether it was cached, a program that is ready to run, or
    diagnostics. `files` are the files of the user that the library was made from."""

    job: Job
    path: str = ""
    cached: bool = False
    problems: tuple[Diagnostic, ...] = ()
    files: tuple[str, ...] = ()
    task: NativeTask | None = None
    program: Launchable | None = None  # the source of a traced library


#: Called after each library: number of finished ones, number of all, the last one.
Progress = Callable[[int, int, CompiledJob], object]


class Ahead:
    """Runs `compile_all` in the background."""

    def __init__(self, jobs: Sequence[Job], progress: Progress | None = None, workers: int = 0) -> None:
        self.seconds = 0.0  # duration
        self._given_up = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._made = self._pool.submit(self._make, jobs, progress, workers)

    def _make(self, jobs: Sequence[Job], progress: Progress | None, workers: int) -> list[CompiledJob]:
        started = time.perf_counter()
        try:
            return compile_all(jobs, progress, workers, self._given_up)
        finally:
            self.seconds = time.perf_counter() - started

    def result(self) -> list[CompiledJob]:
        return self._made.result()

    def give_up(self) -> None:
        """Start no more jobs, and end the running jobs, because the result is not needed."""
        self._given_up.set()
        compiler.end_tools()
        self._pool.shutdown()


def compile_all(
    jobs: Sequence[Job],
    progress: Progress | None = None,
    workers: int = 0,
    given_up: threading.Event | None = None,
) -> list[CompiledJob]:
    """Return the libraries of all jobs, in their order; raise the diagnostics of all that failed."""
    libraries = compile_each(jobs, progress, workers, given_up)
    problems = {str(p.as_json()): p for library in libraries for p in library.problems}
    if problems:  # kernels may share a problem of a header
        raise DiagnosticError(list(problems.values()))
    return libraries


def compile_each(
    jobs: Sequence[Job],
    progress: Progress | None = None,
    workers: int = 0,
    given_up: threading.Event | None = None,
) -> list[CompiledJob]:
    """Return the results of all jobs, in their order, failed ones included."""
    plans = [_LibraryPlan(job) for job in jobs]
    made: dict[int, CompiledJob] = {}
    lock = threading.Lock()

    def end(at: int, library: CompiledJob) -> None:
        with lock:
            made[at] = library
            if progress is not None:
                progress(len(made), len(jobs), library)

    def one(at: int) -> None:
        try:
            library = CompiledJob(jobs[at]) if given_up and given_up.is_set() else plans[at].make()
        except DiagnosticError as e:
            library = CompiledJob(jobs[at], problems=tuple(e.diagnostics))
        end(at, library)

    for at, plan in enumerate(plans):
        if (found := plan.stored()) is not None:
            end(at, found)
    left = sorted(
        (at for at in range(len(jobs)) if at not in made), key=lambda at: plans[at].work, reverse=True
    )
    if left:
        with compiler.workers(workers or os.cpu_count() or 1) as pool:
            list(pool.map(one, left))
    return [made[at] for at in range(len(jobs))]


def form_of(source: str) -> str:
    """Return CHIP for an orchestration in that form, else ""."""
    try:
        text = Path(source).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return CHIP if _CHIP_WORD.search(without_comments(text)) else ""


def include_flags(runtime: str, form: str = "") -> list[str]:
    """Return flags with the folders of the headers of a runtime."""
    root = compiler.include_dir()
    folders = [root, root / "pto", *(root / f.format(runtime=runtime) for f in _FOLDERS)]
    if form == CHIP:
        folders.insert(2, root / "pto2" / "chip")
    return [f"-I{folder}" for folder in folders]


def kernel_flags(profile: Profile) -> list[str]:
    """Return the flags of a kernel besides those of all kernels."""
    return [*compiler.arch_flags(profile), *_KERNEL]


class _LibraryPlan(cache.Files):
    """The compilation of one library, and its cache key."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.source = os.path.abspath(job.source)
        self.text = ""
        self.body = ""  # included by the unit of a program
        self.program: Launchable | None = None
        self.profile = PROFILES[job.profile]
        self.exists = os.path.isfile(self.source)
        self.flags: list[str] = []
        self.guards: list[str] = []
        self.lean: list[str] = []  # further flags of the first attempt
        self.form = ""  # of an orchestration
        if self.exists and not job.is_program:
            self._plan(Path(self.source).read_text(encoding="utf-8", errors="replace"))

    def _plan(self, text: str) -> None:
        """Choose the flags for a text: the source, or the unit of a program."""
        job, self.text = self.job, text
        self.compiler: Compiler = compiler.find()
        self.common = compiler.common(self.compiler) if job.core_type else None
        quick = ["-Wfatal-errors"]  # the second attempt reports all errors
        if self.compiler.linker:
            quick.append(f"-fuse-ld={self.compiler.linker}")
        if job.core_type:
            self.lean = [_LEAN, *compiler.header_flags(self.body or text), *quick]
            if self.common is not None:
                self.lean += [compiler.LINKED, self.common.path]
            self.flags = [*self.compiler.flags, *kernel_flags(self.profile)]
            if job.traced:
                self.flags += [compiler.TRACED, *compiler.placed(self.compiler)]
            if self.body and job.runtime == "tensormap_and_ringbuffer":
                self.flags.append("-DPTO2_TENSOR_SLOTS")
            if not self.compiler.is_clang:
                self.flags.append("-fpermissive")  # the flag of the vendor's builds of users' sources
            if not self.body and (job.form == CHIP or kinds(text, os.path.dirname(self.source))):
                self.guards = [_GUARDS[job.core_type]]
        else:
            self.flags = [*_ORCHESTRATION, *knobs.get("PTO_CXXFLAGS").split()]
            self.form = job.form or form_of(self.source)
            if self.form == CHIP:
                if job.entry != ENTRY:  # the usual name is that of the entry for the runtime
                    self.flags.append(f"-D{ENTRY}=pto2_other_entry")
                self.flags += [f"-D{job.entry}={_CHIP_NAME}", f"-D{job.config}={_CHIP_CONFIG}"]
                if PROFILES[job.profile].isa == "a5":
                    self.flags.append("-DPTO2_CORE_NUM")
            if job.runtime == "tensormap_and_ringbuffer" and not _STRINGS.search(without_comments(text)):
                quick.insert(0, _LEAN_ORCHESTRATION)
            if job.traced:
                self.flags += [*compiler.placed(self.compiler), "-fno-inline"]
            self.lean = quick
        self.flags += [f"-I{os.path.abspath(d)}" for d in job.include_dirs]
        if not self.compiler.is_clang:
            # Inline variables of two libraries are distinct, and are unloaded with them.
            self.flags.append("-fno-gnu-unique")

    @property
    def work(self) -> tuple[bool, int]:
        """Return the estimated cost: the longest job starts first, so that no processor idles at the end."""
        return bool(self.job.core_type), os.path.getsize(self.source) if self.exists else 0

    @property
    def key(self) -> str:
        common = self.common.identity if self.common else ""
        content = cache.key(self.text, self.body) if self.body else cache.file_digest(self.source)
        digests = (self.compiler.identity, compiler.headers_digest(), common, content)
        place = "" if self.job.core_type else self.source
        return cache.key("runtime", *digests, *self.flags, *self.guards, self._family, place)

    def _name(self, path: str) -> str:
        """Return the name of an included file in the list: one of our headers, or relative to the source."""
        ours = str(compiler.include_dir()) + os.sep
        if path.startswith(ours):
            return f"{_OURS}{path.removeprefix(ours)}"
        return os.path.relpath(path, os.path.dirname(self.source))

    def path(self, name: str) -> str:
        if name.startswith(_OURS):
            return str(compiler.include_dir() / name.removeprefix(_OURS))
        return os.path.join(os.path.dirname(self.source), name)

    @property
    def _family(self) -> str:
        """Return the runtimes that share this kernel, unless it includes a header of one of them (`fit`)."""
        return "graph" if self.job.core_type and self.job.runtime in _GRAPHS else self.job.runtime

    def fit(self, names: Sequence[str]) -> bool:
        """Return False if a library was built with the headers of another runtime of the family."""
        others = [f"{_OURS}pto2/{g}/" for g in _GRAPHS if g != self.job.runtime]
        return self._family != "graph" or not any(n.startswith(tuple(others)) for n in names)

    def stored(self) -> CompiledJob | None:
        """Return the cached library if the files that it includes are unchanged."""
        found = cache.stored(self.key, self) if self.flags else None
        return self._checked(found) if found is not None else None

    def make(self) -> CompiledJob:
        """Return the library; build it unless another process has built it first."""
        if not self.exists and self.job.program is None:
            kind = f"kernel '{self.job.name}'" if self.job.core_type else "orchestration"
            message = f"cannot read '{self.job.source}' ({kind}): no such file"
            raise DiagnosticError([Diagnostic("PTO-E0001", message)])
        if self.job.is_program:
            from .program import open_program, traced_source

            if not self.job.traced:
                return CompiledJob(self.job, task=open_program(self.job), files=(self.source,))
            unit, self.body, self.program = traced_source(self.job)
            self.profile = self.program.profile
            self._plan(unit)
        kind = "kernel" if self.job.core_type else "orchestration"
        built = cache.built(self.key, kind, self._compile, self)
        if built.ok:
            return self._checked(built)
        problems = tuple(explain(self.job.name, self.source, built.output))
        for p in problems:
            if "tensor.h: No such file" in p.message and self.job.runtime in _GRAPHS:
                p.help = (
                    f"{self.job.runtime} passes addresses to kernels, not TensorData: include it "
                    '#if __has_include("tensor.h"), and take the slot as the address otherwise'
                )
        return CompiledJob(self.job, problems=problems)

    def _compile(self, work: Path) -> Built:
        """Compile in a folder. List the files that the source includes, except those of every kernel."""
        target, listing, unit = work / "kernel.so", work / "kernel.d", work / "entry.cpp"
        command = [*self.flags, *self.guards]
        command += include_flags(self.job.runtime, self.form)
        command += ["-MMD", "-MF", str(listing), "-MT", "x", "-o", str(target)]
        if self.body:
            (work / launcher.BODY).write_text(self.body, encoding="utf-8")
            unit.write_text(self.text, encoding="utf-8")
            command += ["-shared", str(unit), "-lpthread"]
        elif self.job.core_type:
            unit.write_text(_ENTRY, encoding="utf-8")
            command += ["-shared", "-include", self.source, str(unit), "-lpthread"]
        else:
            command += ["-include", "pto2/foreign_asm.h"]
            if self.job.runtime == "tensormap_and_ringbuffer":
                entry = _CHIP_ENTRY if self.form == CHIP else _ORCHESTRATION_ENTRY
                unit.write_text(entry, encoding="utf-8")
                command += ["-include", self.source, str(unit)]
            else:
                command.append(self.source)
        done = compiler.call([*self.compiler.command, *self._headers(), *command, *self.lean])
        if done.returncode and self.lean:
            done = compiler.call([*self.compiler.command, *command])
        if done.returncode:
            return Built("", done.stderr)
        users = {os.path.abspath(p) for p in _listed(listing.read_text(encoding="utf-8", errors="replace"))}
        known = (f"{compiler.include_dir() / 'pto'}{os.sep}", f"{os.path.abspath(work)}{os.sep}")
        users = {
            p for p in users if p != self.source and not p.startswith(known) and not precompiled.is_ours(p)
        }
        return Built(str(target), done.stderr, files=tuple(sorted(map(self._name, users))))

    def _headers(self) -> list[str]:
        """Return flags to start with our precompiled headers."""
        if not self.job.core_type:
            return []
        key = cache.key("kernel", self.compiler.identity, compiler.headers_digest())
        flags = [*self.flags, *self.guards, *self.lean]
        return precompiled.headers(self.compiler, key, flags, self.text, os.path.dirname(self.source))

    def _checked(self, built: Built) -> CompiledJob:
        """Return a library, or a diagnostic if it lacks the entry point of an orchestration."""
        job = self.job
        files = (self.source, *map(self.path, built.files))
        made = CompiledJob(job, built.path, built.cached, files=files, program=self.program)
        if job.core_type or not job.entry:
            return made
        exported = exports(built.path)
        if (_CHIP_NAME if self.form == CHIP else job.entry) in exported:
            return made
        named = f"_Z{len(job.entry)}{job.entry}"  # the beginning of its name in C++
        close = "" if any(e.startswith(named) for e in exported) else did_you_mean(job.entry, exported)
        problem = Diagnostic(
            "PTO-E2605", f"missing function '{job.entry}' in the orchestration '{job.source}'",
            help=close or f'declare it extern "C" and spell it as {_where(job)}',
        )  # fmt: skip
        return CompiledJob(job, problems=(problem,))


def _where(job: Job) -> str:
    if job.runtime == "tensormap_and_ringbuffer":
        return "the runtime tensormap_and_ringbuffer expects it"
    return "the 'function_name' of ORCHESTRATION in kernel_config.py"


def _listed(rule: str) -> list[str]:
    r"""Return the files of a make rule of a compiler: `x: a.h b\ c.h`, lines joined by backslashes."""
    text = rule.replace("\\\n", " ").partition(":")[2]
    return [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in re.findall(r"(?:\\.|\S)+", text)]
