"""A folder of the task runtime: `kernel_config.py`, `golden.py` and the sources that they name.

Layouts: DIR/golden.py with DIR/kernels/kernel_config.py; both files in DIR; DIR/kernel_config.py with
golden.py in the parent folder of DIR (shared by several such folders); or the two files passed separately.
All problems of the configuration are reported at once, before anything is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError, did_you_mean
from ..isa.record import Record
from .compile import Job
from .kernels import roles
from .userfile import UserFile

if TYPE_CHECKING:
    from .golden import Golden

#: Runtimes: the maximal number of kernels, the maximal number of arguments of an orchestration, the name of
#: its entry point if it is fixed or the default.
RUNTIMES: dict[str, tuple[int, int, str]] = {
    "host_build_graph": (32, 1 << 16, ""),
    "aicpu_build_graph": (64, 64, "orchestration"),
    "tensormap_and_ringbuffer": (32, 32, "aicpu_orchestration_entry"),
}
DEFAULT_RUNTIME = "host_build_graph"
CORE_TYPES = ("aic", "aiv")
MAX_BLOCK_DIM = 24
#: AICPU threads of a device (PLATFORM_MAX_AICPU_THREADS); the simulator accepts more.
MAX_AICPU_THREADS = 4

_KERNEL_KEYS = ("func_id", "source", "core_type", "name", "entry", "function", "args", "include_dirs")


class KernelEntry(Record):
    """A kernel of KERNELS: a C++ or `.pto` source, or a Python function."""

    func_id: int
    name: str
    core_type: str
    source: str = ""
    entry: str = ""
    function: Callable[..., Any] | None = None
    args: tuple[str, ...] = ()  # roles of the parameters of a function
    include_dirs: tuple[str, ...] = ()  # folders of headers, beside that of the source


class Config(Record):
    """The content of a `kernel_config.py`."""

    kernels: tuple[KernelEntry, ...]
    orchestration: str
    entry: str
    runtime: str
    aicpu_threads: int
    block_dim: int
    environment: Mapping[str, str]

    def jobs(self, runtime: str, profile: str) -> list[Job]:
        """Return the jobs to compile: the orchestration, then the kernels that are not Python."""
        entry = RUNTIMES[runtime][2] if runtime == "tensormap_and_ringbuffer" else self.entry
        out = [Job("orchestration", self.orchestration, "", runtime, profile, entry)]
        for k in self.kernels:
            if k.function is None:
                out.append(Job(k.name, k.source, k.core_type, runtime, profile, k.entry, k.include_dirs))
        return out


class Folder(Record):
    """A folder that can be run."""

    name: str
    config: Config
    golden: Golden

    def jobs(self, runtime: str, profile: str) -> list[Job]:
        return self.config.jobs(runtime, profile)


def load(
    path: str | None = None,
    kernels: str | None = None,
    golden: str | None = None,
    known: Callable[[Config], object] | None = None,
) -> Folder:
    """Read a folder; `kernels` (a folder) and `golden` (a file) replace the search in `path`.

    `known` is called with the configuration before golden.py is loaded, which may take longer than the rest.
    """
    if kernels is None:
        assert path is not None, "a folder or its parts"
        inner = os.path.join(path, "kernels")
        kernels = inner if os.path.isfile(os.path.join(inner, "kernel_config.py")) else path
    if golden is None:
        around = path if path is not None else os.path.dirname(os.path.abspath(kernels))
        golden = os.path.join(around, "golden.py")
        shared = os.path.join(around, os.pardir, "golden.py")
        if kernels == path and not os.path.isfile(golden) and os.path.isfile(shared):
            golden = os.path.normpath(shared)  # next to several configurations
    config = os.path.join(kernels, "kernel_config.py")
    shown = path or os.path.dirname(os.path.abspath(golden))
    name = os.path.basename(os.path.abspath(shown))
    if (
        path is not None
        and kernels == path
        and os.path.dirname(os.path.abspath(golden)) != os.path.abspath(path)
    ):
        name = f"{os.path.basename(os.path.dirname(os.path.abspath(path)))}/{name}"
    if path is not None and not os.path.isdir(path):
        help = "give the folder that holds golden.py"
        raise DiagnosticError([Diagnostic("PTO-E2601", f"expected a folder, got '{path}'", help=help)])
    missing = [p for p in (config, golden) if not os.path.isfile(p)]
    if missing:
        raise DiagnosticError([_missing(path, p) for p in missing])
    problems: list[Diagnostic] = []
    read: Config | None = None
    checked: Golden | None = None
    try:
        read = _ConfigReader(UserFile(config), kernels).config()
        if known is not None:
            known(read)
    except DiagnosticError as e:
        problems += e.diagnostics
    try:
        from .golden import Golden  # and NumPy

        checked = Golden(golden)
    except DiagnosticError as e:
        problems += e.diagnostics
    if read is None or checked is None:
        raise DiagnosticError(problems)
    return Folder(name, read, checked)


def config_of(folder: str) -> Config:
    """Return the content of the `kernel_config.py` of a folder."""
    path = os.path.join(folder, "kernel_config.py")
    if not os.path.isfile(path):
        raise DiagnosticError([_missing(folder, path)])
    return _ConfigReader(UserFile(path), folder).config()


def _missing(path: str | None, wanted: str) -> Diagnostic:
    name = os.path.basename(wanted)
    d = Diagnostic("PTO-E2601", f"missing {name}: '{wanted}' does not exist")
    if path is not None:
        d.help = "a folder has golden.py and kernels/kernel_config.py; or name them with -k and -g"
        if name == "golden.py" and os.path.isfile(os.path.join(path, "program.json")):
            d.help = (
                "the program was saved without arguments to run it with: compiled.save(folder, a, b, out) "
                "writes golden.py, too; pl.Compiled.load(folder)(a, b, out) runs it from Python"
            )
    return d


class _ConfigReader:
    """Reads the names of a `kernel_config.py` and collects problems."""

    def __init__(self, file: UserFile, folder: str) -> None:
        self.file = file
        self.folder = os.path.abspath(folder)
        self.problems: list[Diagnostic] = []

    def config(self) -> Config:
        runtime, threads, block_dim = self._runtime()
        kernels = self._kernels(runtime)
        source, entry = self._orchestration(runtime)
        environment = self._environment()
        if self.problems:
            raise DiagnosticError(self.problems)
        return Config(tuple(kernels), source, entry, runtime, threads, block_dim, environment)

    def _say(self, message: str, *path: str | int, help: str = "") -> None:
        self.problems.append(Diagnostic("PTO-E2603", message, self.file.span(*path), help=help))

    def _table(self, name: str, kind: type, words: str, required: bool = True) -> Any:
        value = self.file.get(name)
        if value is None and not required:
            return kind()
        if value is None:
            self._say(f"missing {name} in '{self.file.source.name}'", name, help=f"define it as {words}")
        elif not isinstance(value, kind):
            self._say(f"expected {words} for {name}, got {type(value).__name__}", name)
        return value if isinstance(value, kind) else kind()

    def _runtime(self) -> tuple[str, int, int]:
        name = "RUNTIME_CONFIG"
        given = self._table(name, dict, "a dict", required=False)
        runtime = given.get("runtime", DEFAULT_RUNTIME)
        if not isinstance(runtime, str) or runtime not in RUNTIMES:
            known = f"one of {', '.join(RUNTIMES)}"
            self._say(f"unknown runtime {runtime!r}", name, "runtime",
                      help=did_you_mean(str(runtime), RUNTIMES) or known)  # fmt: skip
            runtime = DEFAULT_RUNTIME
        numbers: list[int] = []
        for key, default, most in (
            ("aicpu_thread_num", 3, 1024),
            ("block_dim", MAX_BLOCK_DIM, MAX_BLOCK_DIM),
        ):
            value = given.get(key, default)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                self._say(f"{key} ({value!r}) must be in range [1, {most}]", name, key)
            numbers.append(value)
        known = ("runtime", "aicpu_thread_num", "block_dim")
        for key in given:
            if key not in known:
                self._say(f"unknown key {key!r} of {name}", name, key, help=did_you_mean(str(key), known))
        return runtime, numbers[0], numbers[1]

    def _orchestration(self, runtime: str) -> tuple[str, str]:
        name = "ORCHESTRATION"
        given = self._table(name, dict, "a dict with 'source' and 'function_name'")
        source = given.get("source")
        if given and not isinstance(source, str | os.PathLike):
            self._say("missing 'source' in ORCHESTRATION", name, help="the path of its C++ file")
        entry = given.get("function_name") or RUNTIMES[runtime][2]
        if given and (not isinstance(entry, str) or not entry):
            self._say("missing 'function_name' in ORCHESTRATION", name, help='an extern "C" function')
        return self._path(source or ""), str(entry)

    def _kernels(self, runtime: str) -> list[KernelEntry]:
        name = "KERNELS"
        out: list[KernelEntry] = []
        seen: dict[int, str] = {}
        for at, given in enumerate(self._table(name, list, "a list of dicts, one per kernel")):
            if not isinstance(given, Mapping):
                self._say(f"expected a dict for kernel {at}, got {type(given).__name__}", name, at)
                continue
            for key in given:
                if key not in _KERNEL_KEYS:
                    self._say(f"unknown key {key!r} of kernel {at}", name, at, key,
                              help=did_you_mean(str(key), _KERNEL_KEYS))  # fmt: skip
            kernel = self._kernel(at, given, RUNTIMES[runtime][0])
            if kernel is None:
                continue
            if kernel.func_id in seen:
                message = f"func_id {kernel.func_id} is already used by '{seen[kernel.func_id]}'"
                self._say(message, name, at, "func_id")
            seen[kernel.func_id] = kernel.name
            out.append(kernel)
        return out

    def _kernel(self, at: int, given: Mapping[str, Any], most: int) -> KernelEntry | None:
        func_id, source, core = given.get("func_id"), given.get("source"), given.get("core_type")
        function = given.get("function")
        before = len(self.problems)
        if isinstance(func_id, bool) or not isinstance(func_id, int) or not 0 <= func_id < most:
            self._say(f"kernel {at}: func_id ({func_id!r}) must be in range [0, {most - 1}]",
                      "KERNELS", at, "func_id")  # fmt: skip
        if core not in CORE_TYPES:
            self._say(
                f"kernel {at}: expected 'aic' or 'aiv' for core_type, got {core!r}",
                "KERNELS",
                at,
                "core_type",
            )
        if function is not None and not callable(function):
            self._say(
                f"kernel {at}: expected a function, got {type(function).__name__}",
                "KERNELS",
                at,
                "function",
            )
        if (function is None) == (source is None):
            self._say(f"kernel {at}: expected either 'source' or 'function'", "KERNELS", at)
        elif function is None and not isinstance(source, str | os.PathLike):
            self._say(
                f"kernel {at}: expected a path for 'source', got {type(source).__name__}",
                "KERNELS",
                at,
                "source",
            )
        args: list[str] = []
        try:
            args = roles(given.get("args", ""))
        except DiagnosticError as e:
            self._say(e.diagnostics[0].message, "KERNELS", at, "args", help=e.diagnostics[0].help)
        folders = given.get("include_dirs", ())
        if not isinstance(folders, list | tuple) or not all(
            isinstance(f, str | os.PathLike) for f in folders
        ):
            self._say(
                f"kernel {at}: expected a list of folders for 'include_dirs'", "KERNELS", at, "include_dirs"
            )
        if len(self.problems) > before or not isinstance(func_id, int) or not isinstance(core, str):
            return None
        path = self._path(source) if source is not None else ""
        stem = os.path.basename(path).partition(".")[0]
        name = str(given.get("name") or stem or getattr(function, "__name__", f"func_{func_id}"))
        return KernelEntry(
            func_id, name, core, path, str(given.get("entry") or ""), function, tuple(args),
            tuple(self._path(f) for f in folders),
        )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        """Read RUNTIME_ENV; relative paths start at the folder of the kernels."""
        out: dict[str, str] = {}
        for key, value in self._table("RUNTIME_ENV", dict, "a dict of texts", required=False).items():
            if not isinstance(key, str) or not key or "=" in key or "\0" in f"{key}{value}":
                self._say(f"invalid variable {key!r} in RUNTIME_ENV", "RUNTIME_ENV", key)
                continue
            text = str(value)
            out[key] = self._path(text) if text and key.endswith(("_DIR", "_PATH")) else text
        return out

    def _path(self, path: Any) -> str:
        return os.path.normpath(os.path.join(self.folder, os.fspath(path))) if path else ""
