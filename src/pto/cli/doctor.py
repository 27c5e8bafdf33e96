"""`pto doctor`: check this installation, and print a way out of each problem."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import __version__, knobs
from ..engine.cpp.compiler import GET_ONE, REINSTALL
from ..engine.registry import ENGINES, Engine, by_default
from .common import FAILED, OK, CommandParser
from .terminal import Screen

_EXAMPLES = """\
  pto doctor
  pto doctor --json      print JSON, for bug reports and CI
"""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    name: str
    status: str  # ok, missing (optional) or failed (required)
    detail: str
    help: str = ""


class FailedCheck(Exception):
    """A failed check: the result, and the way out."""

    def __init__(self, detail: str, way_out: str) -> None:
        super().__init__(detail)
        self.way_out = way_out


def main(arguments: Sequence[str]) -> int:
    p = CommandParser("pto doctor", "Check what works on this machine.", _EXAMPLES)
    p.add_argument("--json", action="store_true", help="print JSON")
    options = p.parse_args(arguments)
    screen = Screen()
    found = [_run(*entry) for entry in checks()]
    failed = any(c.status == "failed" for c in found)
    values = {name: knobs.get(name) for name in knobs.KNOBS}
    if options.json:
        shown = {"ok": not failed, "checks": [asdict(c) for c in found], "knobs": values}
        print(json.dumps(shown, indent=2))
    else:
        print("\n".join(report(found, values, screen)))
    return FAILED if failed else OK


def report(checks: Sequence[DoctorCheck], values: dict[str, str], screen: Screen) -> list[str]:
    """Return the results of the checks as lines."""
    marks = {"ok": ("ok", "good"), "missing": ("--", "warn"), "failed": ("FAIL", "bad")}
    column = max(len(c.name) for c in checks) + 2
    out: list[str] = []
    for c in checks:
        mark, color = marks[c.status]
        out.append(f"{screen.paint(f'{mark:<5}', color)}{c.name:<{column}}{c.detail}")
        if c.help:
            out += screen.paragraph(c.help, indent=5 + column)
    out += ["", screen.paint("Knobs (environment variables)", "title")]
    rows = [(name, values[name] or "(empty)", knobs.KNOBS[name].doc) for name in values]
    return out + screen.table(("name", "value", "meaning"), rows)


def _run(name: str, required: bool, check: Callable[[], str]) -> DoctorCheck:
    try:
        return DoctorCheck(name, "ok", check())
    except FailedCheck as problem:
        detail, way_out = str(problem), problem.way_out
    except Exception as error:  # an exception that a broken installation causes
        detail, way_out = f"{type(error).__name__}: {error}", REINSTALL
    return DoctorCheck(name, "failed" if required else "missing", detail, way_out)


# --------------------------------------------------------------------------------------------------- checks


def _python() -> str:
    return f"{sys.version.split()[0]} ({sys.executable})"


def _package() -> str:
    return f"{__version__} ({Path(__file__).resolve().parent.parent})"


def _table() -> str:
    from .. import isa
    from ..isa import describe

    counts = describe.counts(isa.rows())
    return f"{counts['rows']} instructions, {counts['names']} names, {len(isa.PROFILES)} target profiles"


def _native() -> str:
    try:
        import numpy as np

        from .. import _native as native
        from ..isa.dtypes import DTYPES
    except ImportError as error:
        raise FailedCheck(f"cannot be loaded: {error}", REINSTALL) from error
    newer = set(DTYPES) - {name for name, _ in native.dtypes()}
    if newer:
        raise FailedCheck(f"lacks element type {', '.join(sorted(newer))}", REINSTALL)
    codes = native.encode("bf16", np.array([1.0, -2.5], dtype=np.float64))
    if codes.tolist() != [0x3F80, 0xC020]:
        raise FailedCheck(f"wrong results: bf16 of 1, -2.5 is {codes.tolist()}", REINSTALL)
    return f"self-check passed ({native.__file__})"


_KERNEL = """\
!narrow = !pto.tile_buf<vec, 1x64xbf16>
!wide = !pto.tile_buf<vec, 1x64xf32>
func.func @check(%x: !pto.tensor_view<1x64xbf16>, %y: !pto.tensor_view<1x64xf32>) {
  %t = pto.alloc_tile : !narrow
  %u = pto.alloc_tile : !wide
  pto.tload ins(%x : !pto.tensor_view<1x64xbf16>) outs(%t : !narrow)
  pto.tcvt ins(%t : !narrow) outs(%u : !wide)
  pto.tadd ins(%u, %u : !wide, !wide) outs(%u : !wide)
  pto.tstore ins(%u : !wide) outs(%y : !pto.tensor_view<1x64xf32>)
  return
}
"""


def _engine(engine: Engine) -> Callable[[], str]:
    """Return a check that runs a kernel on an engine. The compiler has its own check."""

    def check() -> str:
        try:
            import ml_dtypes
            import numpy as np

            from ..engine import launch
        except ImportError as error:
            raise FailedCheck(f"cannot be loaded: {error}", "pip install numpy ml_dtypes") from error
        from ..asm import parse
        from ..diag import DiagnosticError

        x = np.arange(64).reshape(1, 64).astype(ml_dtypes.bfloat16)
        y = np.zeros((1, 64), np.float32)
        watched = "undef,oob,sync" if "sanitize" in engine.options else ()
        try:
            launch.plain(parse(_KERNEL), engine=engine.name)(x, y, sanitize=watched)
        except DiagnosticError as error:
            problem = error.diagnostics[0]
            way_out = problem.help or (GET_ONE if engine.compiles else REINSTALL)
            raise FailedCheck(problem.message, way_out) from error
        if not np.array_equal(y[0], 2.0 * np.arange(64)):
            raise FailedCheck(f"wrong results: twice 0, 1, 2, 3 is {y[0, :4].tolist()}", REINSTALL)
        does = "compiles and runs" if engine.compiles else "runs"
        usual = ", the default for programs" if engine is by_default("module")[0] else ""
        return f"{engine.name}: {does} a kernel, self-check passed{usual}{engine.remarks()}"

    return check


def _library(name: str) -> Callable[[], str]:
    def check() -> str:
        from importlib import import_module

        try:
            found = import_module(name)
        except ImportError as error:
            raise FailedCheck("not installed", f"pip install {name}") from error
        return str(getattr(found, "__version__", "unknown version"))

    return check


def _tool(package: str, what: str) -> Callable[[], str]:
    """Return a check for an optional package. It reads the version without an import, which may be slow."""

    def check() -> str:
        from importlib.metadata import PackageNotFoundError, version

        try:
            return f"{version(package)}, {what}"
        except PackageNotFoundError as error:
            raise FailedCheck(f"not installed; {what}", f"pip install {package}") from error

    return check


def _compiler() -> str:
    from ..diag import DiagnosticError
    from ..engine.cpp import compiler

    try:
        found = compiler.find()
    except DiagnosticError as error:
        problem = error.diagnostics[0]
        detail = problem.message.removeprefix("no C++ compiler: ")
        raise FailedCheck(
            f"{detail}; needed for C++ kernels and orchestrations only", problem.help
        ) from error
    tuned = "" if found.march_native else "; without -march=native"
    vectors = platform.machine() if found.vectors == "baseline" else found.vectors
    linked = f"with the package's code for {vectors}" if compiler.common(found) else "from headers only"
    common = f"; kernels are built {linked}"
    return f"{found.version}, C++20 works ({' '.join(found.command)}){tuned}{common}"


def _cache() -> str:
    """Check that the cache has room for a kernel."""
    import tempfile

    from .. import cache

    where = cache.folder()
    try:
        with tempfile.TemporaryFile(dir=where) as file:
            file.write(bytes(1 << 20))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise FailedCheck(
            f"cannot write to '{where}': {why}; compiled code is not kept between processes",
            "pto cache prune --max SIZE, or name another folder in PTO_CACHE_DIR",
        ) from error
    return str(where)


def _color() -> str:
    screen = Screen()
    kind = "a terminal" if sys.stdout.isatty() else "not a terminal"
    return f"{'on' if screen.color else 'off'}, {screen.width} columns, standard output is {kind}"


#: Name, whether the tools need it, and the function that checks it.
NamedCheck = tuple[str, bool, Callable[[], str]]


def checks() -> list[NamedCheck]:
    """Return the checks; the default engine is `engine`. Engines that compile come after the compiler."""
    engines: list[tuple[bool, NamedCheck]] = []
    for n, e in enumerate(ENGINES.values()):
        engines.append((e.compiles, ("engine" if not n else f"engine {e.name}", e.required, _engine(e))))
    return [
        ("python", True, _python),
        ("pto", True, _package),
        ("table", True, _table),
        ("numpy", True, _library("numpy")),
        ("ml_dtypes", True, _library("ml_dtypes")),
        ("native", True, _native),
        *(entry for compiles, entry in engines if not compiles),
        ("compiler", False, _compiler),
        ("cache", False, _cache),
        *(entry for compiles, entry in engines if compiles),
        ("llvmlite", False, _tool("llvmlite", "writes machine code: ptoas -o k.so")),
        ("mpi4py", False, _tool("mpi4py", "runs ranks on several machines")),
        ("xdsl", False, _tool("xdsl", "cross-checks the generic form in the tests")),
        ("mkdocs", False, _tool("mkdocs", "builds the documentation site")),
        ("colour", True, _color),
    ]
