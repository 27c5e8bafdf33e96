"""Libraries: that of the virtual machine, and packs of functions that it calls. Calls that the pack of the
package does not have are compiled once and kept."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ... import knobs
from ...diag import Diagnostic, DiagnosticError
from ...image import pack
from ...image.calls import key
from ..compiled.library import Library
from ..cpp import build, compiler

#: Levels of vector instructions that libraries are made for, the best first: what a processor says of itself
#: (/proc/cpuinfo) where it has them, and what makes a compiler use them.
LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, "-march=x86-64-v4"),
    ("x86-64-v3", {"avx2", "bmi2", "f16c", "fma"}, "-march=x86-64-v3"),
    ("fp16", {"asimdhp", "fphp"}, "-march=armv8.2-a+fp16"),
    ("baseline", set[str](), ""),
)


@cache
def level() -> str:
    """The best level that the processor and the package have."""
    has = _processor()
    found = [name for name, needs, _ in LEVELS if needs <= has and _library(name).exists()]
    if not found or not _is_current():
        raise DiagnosticError([
            Diagnostic("PTO-E2401", f"engine native has no library for {platform.machine()}, or one of other "
                       "headers",
                       help="use engine cpp or reference; make setup in a checkout builds it")
        ])  # fmt: skip
    return found[0]


@cache
def library() -> Library:
    """The machine itself, for the vectors that packs are compiled for: both see memory alike. Packs are
    linked with it; nobody else's library may take what it has for its own."""
    return Library(str(_library(level())))


@cache
def of_package() -> Pack | None:
    """The package's own pack, if it has one that is not old."""
    path = folder() / f"libpto_pack_{level()}.so"
    found = Pack(str(path)) if path.exists() else None
    return found if found is not None and found.digest == pack.digest() else None


def _library(name: str) -> Path:
    return folder() / f"libpto_vm_{name}.so"


def _processor() -> set[str]:
    """What the processor says that it has."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    lines = (line.partition(":") for line in text.splitlines())
    return next(
        (set(words.split()) for name, _, words in lines if name.strip() in ("flags", "Features")), set()
    )


def _is_current() -> bool:
    try:
        return (folder() / "headers.digest").read_text(encoding="utf-8") == compiler.headers_digest()
    except OSError:
        return False


def folder() -> Path:
    """Where the package has its libraries."""
    from ... import _native

    return Path(str(_native.__file__)).parent / "lib"


class Pack:
    """A library of functions that the machine calls."""

    def __init__(self, path: str) -> None:
        library()  # in which it finds what all have in common
        found = Library(path)
        self._find = found.raw("pto_pack_find")
        self._find.restype = ctypes.c_void_p
        self._find.argtypes = (ctypes.c_uint64,)
        digest = found.raw("pto_pack_digest")
        digest.restype = ctypes.c_char_p
        self.digest = digest().decode()
        self._library = found

    @property
    def size(self) -> int:
        """How many functions it has; 0 where it was made before packs said that."""
        try:
            size = self._library.raw("pto_pack_size")
        except AttributeError:
            return 0
        size.restype = ctypes.c_uint64
        return size()

    def find(self, name: str) -> int:
        return self._find(key(name)) or 0


#: What all packs have in common they find in the library of the machine.
_FLAGS = ("-DPTO_CPU_OPEN", "-DPTO_CPU_LINKED", "-w")


def compiled(calls: Sequence[str]) -> Pack:
    """A pack of these calls, from the cache or compiled now; without a compiler an error that names one."""
    if knobs.get("PTO_NATIVE_COMPILE") == "never":
        raise DiagnosticError([
            Diagnostic("PTO-E2401", f"no pack has what the program calls: {calls[0]}",
                       help="set PTO_NATIVE_COMPILE=auto, or use engine reference")
        ])  # fmt: skip
    return Pack(built(calls))


def built(calls: Sequence[str]) -> str:
    """The path of the same."""
    try:
        found = compiler.find()
    except DiagnosticError as e:
        (cause,) = e.diagnostics
        more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
        cause.notes.append((f"engine native compiles what the package does not have: {calls[0]}{more}", None))
        raise
    made = build.cached_pack(_units(calls), _flags(found), str(_library(level())), pack.HEADERS)
    if not made.ok:
        raise DiagnosticError([
            Diagnostic("PTO-E2402", f"a call of engine native does not compile: {made.output[:200]}",
                       help="use engine cpp or reference; this is a bug of ours")
        ])  # fmt: skip
    return made.path


def kept(calls: Sequence[str]) -> Pack | None:
    """A pack of these calls, where it is in the cache. No compiler is started: one that has compiled a pack
    has been asked before."""
    found = compiler.asked()
    if found is None:
        return None
    made = build.kept_pack(_units(calls), _flags(found), str(_library(level())))
    return Pack(made.path) if made is not None else None


def _units(calls: Sequence[str]) -> list[build.Unit]:
    return [build.Unit(name, text) for name, text in pack.files([calls])]


def _flags(found: compiler.Compiler) -> list[str]:
    """What packs are compiled with: for the level of the machine, whatever the compiler has in mind."""
    marches = [march for name, _, march in LEVELS if name == level() != found.vectors and "x86" in march]
    return [*_FLAGS, *marches]


def remark() -> str:
    """What `pto doctor` says of the package's pack."""
    pack = of_package()
    if pack is None:
        return "; no pack of calls: instructions take some 50 us each until they are compiled (make setup)"
    return f"; pack of {pack.size or 'all'} calls, others take some 50 us each until they are compiled"
