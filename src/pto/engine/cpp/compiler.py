"""The C++ compiler of this machine: its command, its flags, and the folder of our headers."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import signal
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ... import cache, knobs
from ...diag import Diagnostic, DiagnosticError
from ...isa.machine import MEMORIES
from ...isa.profiles import PROFILES, Profile
from ...isa.record import Record
from ...signals import deferred
from . import digest

if TYPE_CHECKING:
    import subprocess
    from concurrent.futures import ThreadPoolExecutor

#: Linkers that need half the time of the default one, the best first.
_LINKERS = ("mold", "lld", "gold")
CANDIDATES = ("g++", "clang++", "c++")
GET_ONE = "install g++ 11 or clang++ 15 or newer (for instance: apt install g++), or name one in PTO_CXX"
REINSTALL = "install the package again: pip install --force-reinstall pto-*.whl, or make setup in a checkout"

#: Flags of every kernel. Results have to be those of the reference engine, so products and sums are not
#: fused. Code that uses neither errno nor floating-point exceptions can be vectorised.
FLAGS = (
    "-std=c++20", "-fPIC", "-fvisibility=hidden", "-ftree-vectorize", "-ffp-contract=off",
    "-fno-math-errno", "-fno-trapping-math",
)  # fmt: skip
#: A run spends most of its time in the loops of the headers. For them -O1 is as good as -O2, in three
#: quarters of the compile time. g++ vectorises few loops by default: the cost model brings row maxima from
#: 5.4 to 1.5 us. The disabled passes do not improve those loops, and take a tenth of the compile time.
GCC_FLAGS = (
    "-O1", "-finline-small-functions", "-fvect-cost-model=dynamic", "-fno-tree-slp-vectorize",
    "-fno-tree-bit-ccp", "-fno-tree-slsr", "-fno-tree-dominator-opts", "-fno-ipa-modref",
)  # fmt: skip
CLANG_FLAGS = ("-O2",)
#: Only some processors trap on an integer division by zero. On others the compiler adds a check, which costs
#: a comparison if the divisor is not constant. The check traps, and so needs no library.
DIVISION = (
    ()
    if platform.machine() in ("x86_64", "AMD64")
    else ("-fsanitize=integer-divide-by-zero", "-fsanitize-undefined-trap-on-error")
)

#: The macro that selects a profile in the headers.
ARCH_MACROS: dict[str, tuple[str, ...]] = {
    p.name: (f"-D{p.macro}",) if p.macro else () for p in PROFILES.values()
}

#: A short program with the language features that the headers need. It prints the name of our library with
#: the same vector instructions; the headers distinguish no others.
_PROGRAM = """\
#include <bit>
#include <concepts>
template <std::integral T> T twice(T x) { return x + x; }
#if !defined(__x86_64__)
#define VECTORS "baseline"
#elif !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__) || !defined(__BMI__) || \\
    !defined(__BMI2__) || !defined(__LZCNT__) || !defined(__MOVBE__)
#define VECTORS ""
#elif !defined(__AVX512F__)
#define VECTORS "x86-64-v3"
#elif defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define VECTORS "x86-64-v4"
#else
#define VECTORS ""
#endif
int main() { return __builtin_printf(VECTORS) < 0 || twice(std::bit_cast<int>(0.0f)); }
"""


class Compiler(Record):
    """A compiler that has compiled a C++20 program."""

    command: tuple[str, ...]
    version: str  # first line of --version
    march_native: bool  # accepts -march=native
    linker: str = ""  # a linker that is faster than the default, for -fuse-ld; empty if there is none
    vectors: str = ""  # our library for its vector instructions, see `common`; empty if there is none

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version

    @property
    def flags(self) -> list[str]:
        """The flags of every kernel; those of the user come last, and so win."""
        more = CLANG_FLAGS if self.is_clang else GCC_FLAGS
        native = ("-march=native",) if self.march_native else ()
        return [*FLAGS, *more, *DIVISION, *native, *knobs.get("PTO_CXXFLAGS").split()]

    @property
    def identity(self) -> str:
        """A text that identifies the compiler, and the processor that it compiles for, in cache keys."""
        return "\n".join(
            (*self.command, self.version, _processor() if self.march_native else platform.machine())
        )


_probing = threading.Lock()  # held while a compiler is tested


def find() -> Compiler:
    """Return the compiler to use: that of PTO_CXX, else the first that works. Raise if there is none."""
    wanted = knobs.get("PTO_CXX")
    problems: list[str] = []
    for text in (wanted,) if wanted else CANDIDATES:
        try:
            command = tuple(shlex.split(text))
        except ValueError as e:  # a missing closing quote
            problems.append(f"cannot read '{text}' as a command: {str(e).lower()}")
            continue
        path = shutil.which(command[0]) if command else None
        if path is None:
            continue
        with _probing:
            found = _probe((path, *command[1:]), _stamp(path))
        if isinstance(found, Compiler):
            return found
        problems.append(f"{text} does not compile C++20: {found}")
    what = f"'{wanted}' of PTO_CXX not found" if wanted else f"none of {', '.join(CANDIDATES)} found"
    raise DiagnosticError(
        [Diagnostic("PTO-E2401", f"no C++ compiler: {'; '.join(problems) or what}", help=GET_ONE)]
    )


def asked() -> Compiler | None:
    """Return the compiler of `find` if a process has tested it before; start no process."""
    wanted = knobs.get("PTO_CXX")
    with contextlib.suppress(DiagnosticError, ValueError, OSError):
        for text in (wanted,) if wanted else CANDIDATES:
            command = tuple(shlex.split(text))
            path = shutil.which(command[0]) if command else None
            if path is not None:
                command = (path, *command[1:])
                return find() if cache.find(_probe_key(command, _stamp(path))) is not None else None
    return None


def find_early() -> None:
    """Start the search for the compiler in a thread; `find` then waits for its result."""

    def look() -> None:
        with contextlib.suppress(DiagnosticError, OSError):  # `find` reports it
            find()

    threading.Thread(target=look).start()


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


def _probe_key(command: tuple[str, ...], stamp: tuple[int, int]) -> str:
    return cache.key("compiler", repr((_PROGRAM, command, stamp, _processor())))


@lru_cache(8)
def _probe(command: tuple[str, ...], stamp: tuple[int, int]) -> Compiler | str:
    """Return the properties of a compiler, or why it cannot be used. The test of a compiler takes longer than
    a kernel, so the cache keeps the result for each version of its file."""
    key = _probe_key(command, stamp)
    kept = cache.find(key)
    with contextlib.suppress(TypeError):  # the entry of another version of pto
        if kept is not None:
            return Compiler(command, **kept.facts)
    found, ran = _test(command)
    if isinstance(found, Compiler) and ran:
        facts = {name: value for name, value in found.as_dict().items() if name != "command"}
        with contextlib.suppress(OSError):
            cache.put(key, "compiler", facts=facts)
    return found


def _test(command: tuple[str, ...]) -> tuple[Compiler | str, bool]:
    """Return the properties of a compiler, or why it cannot be used; and whether its program could be run."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pto-cxx-") as folder:
        source = Path(folder, "check.cpp")
        source.write_text(_PROGRAM, encoding="utf-8")
        vectors, runs = "", True

        def problem(*flags: str) -> str:
            """Return why the program cannot be compiled, linked and run; empty if it can."""
            nonlocal vectors, runs
            program = Path(folder, "check")
            program.unlink(missing_ok=True)
            done = call([*command, "-std=c++20", *flags, str(source), "-o", str(program)])
            if done.returncode:
                return (done.stderr.splitlines() or [f"status {done.returncode}, without a message"])[0]
            if not program.exists():
                return "it reports success, but writes no file"
            try:
                ran = call([str(program)])
            except PermissionError:  # the folder for temporary files holds no programs
                runs = False
                return ""
            vectors = ran.stdout.strip()
            return f"a program that it made ends with status {ran.returncode}" if ran.returncode else ""

        try:
            linker = next((name for name in _LINKERS if shutil.which(f"ld.{name}")), "")
            if linker and problem("-march=native", f"-fuse-ld={linker}"):
                linker = ""
            native = bool(linker) or not problem("-march=native")
            why = "" if native else problem()
            version = call([*command, "--version"]).stdout.splitlines()
        except OSError as e:
            return (e.strerror or str(e)).lower(), runs
    found = Compiler(command, version[0] if version else "unknown version", native, linker, vectors)
    return why or found, runs


_SECONDS_TO_END = 0.2
_running: set[subprocess.Popen[str]] = set()  # each is the leader of a process group


def call(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a tool with messages in English."""
    import subprocess

    with deferred():
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", env={**os.environ, "LC_ALL": "C"}, start_new_session=True,
        )  # fmt: skip
        _running.add(process)
    with process:
        try:
            out, err = process.communicate()
        except BaseException:
            _end([process])
            raise
        finally:
            ended = process not in _running
            _running.discard(process)
    if ended:
        raise KeyboardInterrupt
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def end_tools() -> None:
    """End the tools that run; their callers get a KeyboardInterrupt."""
    tools = [*_running]
    _running.difference_update(tools)
    _end(tools)


def _end(tools: list[subprocess.Popen[str]]) -> None:
    """End tools and their child processes. On SIGTERM a compiler removes its temporary files."""
    import subprocess

    for number in (signal.SIGTERM, signal.SIGKILL):
        for tool in tools:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(tool.pid, number)
        for tool in tools:
            with contextlib.suppress(subprocess.TimeoutExpired):
                tool.wait(_SECONDS_TO_END)


@contextlib.contextmanager
def workers(count: int) -> Iterator[ThreadPoolExecutor]:
    """Provide threads that call tools. An interrupt of the waiting thread ends the tools."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(count) as pool:
        try:
            yield pool
        except BaseException as e:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(e, Exception):
                end_tools()
            raise


@lru_cache(1)
def _processor() -> str:
    """Return a digest of the processor, for a cache that several machines may share."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            lines = [line for line in f if line.startswith(("model name", "flags", "Features", "CPU part"))]
        return hashlib.sha256("".join(sorted(set(lines))).encode()).hexdigest()
    except OSError:
        return platform.machine()


@lru_cache(1)
def include_dir() -> Path:
    """Return the folder of our headers, in the installed package or in the checkout."""
    package = Path(__file__).resolve().parent.parent.parent
    for folder in (package / "include", package.parent.parent / "native" / "include"):
        if (folder / "pto" / "pto-inst.hpp").is_file():
            return folder
    raise DiagnosticError([
        Diagnostic(
            "PTO-E2401", f"missing C++ headers: no pto/pto-inst.hpp in {package / 'include'}",
            help=REINSTALL,
        )
    ])  # fmt: skip


_digests: dict[tuple[tuple[str, int, int], ...], str] = {}


def headers_digest() -> str:
    """Return a digest of all our headers; their contents are read again when one has changed."""
    root = include_dir()
    headers = digest.files(root)
    seen = tuple((name, *_stamp(f"{root}/{name}")) for name in headers)
    found = _digests.get(seen)
    if found is None:
        _digests.clear()
        found = _digests[seen] = digest.digest(root, headers)
    return found


#: Common code of all kernels comes from a library, see `PTO_COMMON` in our headers.
LINKED = "-DPTO_CPU_LINKED"


class Common(Record):
    """The library with the common code of all kernels."""

    path: str
    identity: str


def common(compiler: Compiler) -> Common | None:
    """Return the library for the processor of a compiler; None if it was made from other headers."""
    return _common(compiler.vectors, headers_digest()) if compiler.vectors else None


@lru_cache(8)
def _common(vectors: str, headers: str) -> Common | None:
    native = importlib.util.find_spec("pto._native")
    if native is None or native.origin is None:
        return None
    folder = Path(native.origin).parent / "lib"
    path = folder / f"libpto_common_{vectors}.a"
    try:
        if (folder / "headers.digest").read_text(encoding="utf-8") != headers:
            return None
        return Common(str(path), hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError:
        return None


#: Names that only code with vector registers has. Their headers take as long as a small kernel.
_REGISTERS = re.compile(
    r"__VEC_SCOPE__|\bvector_|\b(?:RegTensor|MaskReg|UnalignReg|vbitsort|vmrgsort4|vtranspose|get_vms4_sr)\b"
)
#: Names that only code of the cube unit with pointers has.
_CUBE = re.compile(
    r"\bmad(?:_mx)?\s*\(|\b(?:load_cbuf|copy_cbuf|copy_matrix_cc|copy_gm_to_cbuf|create_cbuf)_"
    r"|\bset_(?:loop3_para|channel_para|fpc|quant_pre|relu_alpha|fix_clip_relu|mte2_nz_para)\b"
)
_INCLUDED = re.compile(r'#\s*include\s*"(?!pto/)')
TILES_ONLY = "-DPTO_CPU_TILES_ONLY"
NO_REGISTERS = "-DPTO_CPU_NO_REGISTERS"
#: The program was verified, so the headers need not check rules that types decide.
VERIFIED = "-DPTO_CPU_VERIFIED"


#: Every call emits trace events, see trace.hpp.
TRACED = "-DPTO_TRACED"


def placed(compiler: Compiler) -> list[str]:
    """Return flags for code whose calls are mapped to source lines: line tables, and frame pointers."""
    lines = "-gline-tables-only" if compiler.is_clang else "-g1"
    return [lines, "-gz=none", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]


def header_flags(text: str) -> list[str]:
    """Return flags that omit headers which a source does not use. Files that it includes may use them, so a
    source with other includes gets all headers."""
    if _REGISTERS.search(text) or _INCLUDED.search(text):
        return []
    return [NO_REGISTERS] if _CUBE.search(text) else [TILES_ONLY]


#: The core number of device compilers, by the machine of a profile; kernels and headers test it.
_AICORE = {"cpu": 220, "a2a3": 220, "a5": 310}


def core_flags(profile: Profile, kind: str = "") -> list[str]:
    """Return the macros that device compilers define for a core, perhaps of a kind, as kernels test them."""
    number = _AICORE[profile.isa]
    named = {"cube": "CUBE", "vector": "VEC"}.get(kind)
    of_kind = [f"-D__DAV_{named}__", f"-D__DAV_C{number}_{named}__"] if named else []
    return [f"-D__CCE_AICORE__={number}", *of_kind]


def arch_flags(profile: Profile) -> list[str]:
    """Return macros for a profile and for its capacities, if these were changed."""
    from ...isa.profiles import PROFILES

    flags = list(ARCH_MACROS[profile.name])
    usual = PROFILES[profile.name].capacity
    for loc, size in profile.capacity.items():
        if size != usual[loc]:
            flags.append(f"-D{f'PTO_{MEMORIES[loc].macro}_SIZE_BYTES'}={size}u")
    return flags
