"""Libraries: the virtual machine, and packs of functions that it calls. Calls that the pack of the package
does not have are compiled once, and kept in the cache."""

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

#: Levels of vector instructions of our libraries, the best first: the required flags of a processor
#: (/proc/cpuinfo), and the option of a compiler.
LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, "-march=x86-64-v4"),
    ("x86-64-v3", {"avx2", "bmi2", "f16c", "fma"}, "-march=x86-64-v3"),
    ("fp16", {"asimdhp", "fphp"}, "-march=armv8.2-a+fp16"),
    ("baseline", set[str](), ""),
)


@cache
def level() -> str:
    """Return the best level that the processor and the package have."""
    has = _processor()
    found = [name for name, needs, _ in LEVELS if needs <= has and _library(name).exists()]
    if not found or not _is_current():
        raise DiagnosticError([
            Diagnostic("PTO-E2401", f"engine native has no library for {platform.machine()}, or the library "
                "was built with other headers",
                       help="use engine cpp or reference; make setup in a checkout builds it")
        ])  # fmt: skip
    return found[0]


@cache
def library() -> Library:
    """Return the library of the machine, at the level of the packs, so that both use the same memory layout.
    Packs are linked with it; its symbols are hidden from other libraries."""
    return Library(str(_library(level())))


@cache
def of_package() -> Pack | None:
    """Return the pack of the package, if it has an up-to-date one."""
    path = folder() / f"libpto_pack_{level()}.so"
    found = Pack(str(path)) if path.exists() else None
    return found if found is not None and found.digest == pack.digest() else None


def _library(name: str) -> Path:
    return folder() / f"libpto_vm_{name}.so"


def _processor() -> set[str]:
    """Return the flags of the processor."""
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
    """Return the folder with the libraries of the package."""
    from ... import _native

    return Path(str(_native.__file__)).parent / "lib"


class Pack:
    """A library of functions that the machine calls."""

    def __init__(self, path: str) -> None:
        library()  # it has the symbols that all packs share
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
        """The number of its functions; 0 for an old pack without this number."""
        try:
            size = self._library.raw("pto_pack_size")
        except AttributeError:
            return 0
        size.restype = ctypes.c_uint64
        return size()

    def find(self, name: str) -> int:
        return self._find(key(name)) or 0


#: Flags of packs: their common code is in the library of the machine.
_FLAGS = ("-DPTO_CPU_OPEN", "-DPTO_CPU_LINKED", "-w")


def compiled(calls: Sequence[str]) -> Pack:
    """Return a pack of these calls, from the cache or compiled now; raise without a compiler."""
    if knobs.get("PTO_NATIVE_COMPILE") == "never":
        raise DiagnosticError([
            Diagnostic("PTO-E2401", f"missing function in the packs of engine native: {calls[0]}",
                       help="set PTO_NATIVE_COMPILE=auto, or use engine reference")
        ])  # fmt: skip
    return Pack(built(calls))


def built(calls: Sequence[str]) -> str:
    """Return the path of a pack of these calls, from the cache or compiled now."""
    try:
        found = compiler.find()
    except DiagnosticError as e:
        (cause,) = e.diagnostics
        more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
        cause.notes.append((f"engine native has to compile functions for {calls[0]}{more}", None))
        raise
    made = build.cached_pack(_units(calls), _flags(found), str(_library(level())), pack.HEADERS)
    if not made.ok:
        raise DiagnosticError([
            Diagnostic("PTO-E2402", f"cannot compile a call of engine native: {made.output[:200]}",
                       help="use engine cpp or reference; this is a bug of ours")
        ])  # fmt: skip
    return made.path


def kept(calls: Sequence[str]) -> Pack | None:
    """Return a pack of these calls if it is in the cache; start no compiler. A compiler that has made a pack
    has been tested before."""
    found = compiler.asked()
    if found is None:
        return None
    made = build.kept_pack(_units(calls), _flags(found), str(_library(level())))
    return Pack(made.path) if made is not None else None


def _units(calls: Sequence[str]) -> list[build.TranslationUnit]:
    return [build.TranslationUnit(name, text) for name, text in pack.files([calls])]


def _flags(found: compiler.Compiler) -> list[str]:
    """Return the flags of packs, for the level of the machine and not for the default of the compiler."""
    marches = [march for name, _, march in LEVELS if name == level() != found.vectors and "x86" in march]
    return [*_FLAGS, *marches]


def remark() -> str:
    """Return the remark of `pto doctor` about the pack of the package."""
    pack = of_package()
    if pack is None:
        return "; no pack of calls: instructions take some 50 us each until they are compiled (make setup)"
    return f"; pack of {pack.size or 'all'} calls, others take some 50 us each until they are compiled"
