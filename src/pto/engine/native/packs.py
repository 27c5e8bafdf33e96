"""Libraries: that of the virtual machine, and packs of functions that it calls. Calls that no pack of the
package has are compiled once and kept."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ...diag import Diagnostic, DiagnosticError
from ...image import pack
from ...image.calls import key
from ..compiled.library import Library
from ..cpp import build, compiler


@cache
def library() -> Library:
    """The machine itself, for the vectors that packs are compiled for: both see memory alike."""
    path = folder() / f"libpto_vm_{_vectors()}.so"
    if not path.exists() or not _is_current():
        raise DiagnosticError([
            Diagnostic("PTO-E2401", f"engine native has no library, or one of other headers: {path.name}",
                       help="use engine cpp or reference; make setup in a checkout builds it")
        ])  # fmt: skip
    return Library(str(path), shared=True)


def _vectors() -> str:
    """What packs are compiled for; without a compiler, what the processor has."""
    try:
        return compiler.find().vectors
    except DiagnosticError:
        if platform.machine() not in ("x86_64", "AMD64"):
            return "baseline"
        flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
        return "x86-64-v4" if " avx512vl" in flags else "x86-64-v3"


def _is_current() -> bool:
    try:
        return (folder() / "headers.digest").read_text(encoding="utf-8") == compiler.headers_digest()
    except OSError:
        return False


def of_package() -> Path:
    """Where the package's own pack is, if it was made: `make pack`."""
    return folder() / f"libpto_pack_{_vectors()}_{compiler.headers_digest()[:16]}.so"


def folder() -> Path:
    """Where the package has its libraries."""
    from ... import _native

    return Path(str(_native.__file__)).parent / "lib"


class Pack:
    """A library of functions that the machine calls."""

    def __init__(self, path: str) -> None:
        library()  # in which it finds what all have in common
        self._find = Library(path).raw("pto_pack_find")
        self._find.restype = ctypes.c_void_p
        self._find.argtypes = (ctypes.c_uint64,)

    def find(self, name: str) -> int:
        return self._find(key(name)) or 0


#: What all packs have in common they find in the library of the machine.
_FLAGS = ("-DPTO_CPU_OPEN", "-DPTO_CPU_LINKED", "-w")


def compiled(calls: Sequence[str]) -> Pack:
    """A pack of these calls, from the cache or compiled now; without a compiler an error that names one."""
    try:
        compiler.find()
    except DiagnosticError as e:
        (cause,) = e.diagnostics
        more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
        cause.notes.append((f"engine native compiles what the package does not have: {calls[0]}{more}", None))
        raise
    made = build.cached_plainly([build.Unit(name, text) for name, text in pack.files(calls)], _FLAGS)
    if not made.ok:
        raise DiagnosticError([
            Diagnostic("PTO-E2402", f"a call of engine native does not compile: {made.output[:200]}",
                       help="use engine cpp or reference; this is a bug of ours")
        ])  # fmt: skip
    return Pack(made.path)


def main() -> None:
    """The pack of the package: the calls of all instructions, compiled on all processors."""
    import tempfile
    from concurrent.futures import ThreadPoolExecutor

    from ...image.every_call import calls

    found = compiler.find()
    every = [*found.command, *found.flags, *_FLAGS, f"-I{compiler.include_dir()}"]
    names = [name for name, _ in sorted(calls().items(), key=lambda item: (item[1], item[0]))]
    parts = max(2, len(names) // 200)
    print(f"{len(names)} calls in {parts} parts", flush=True)
    with tempfile.TemporaryDirectory(prefix="pto-pack-") as work:
        sources = [Path(work, name) for name, _ in pack.files(names, parts)]
        for path, (_, text) in zip(sources, pack.files(names, parts), strict=True):
            path.write_text(text, encoding="utf-8")

        def compile(path: Path) -> str:
            return compiler.call([*every, "-c", str(path), "-o", f"{path}.o"]).stderr

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for n, said in enumerate(pool.map(compile, sources)):
                print(f"{n + 1} of {len(sources)}", said, sep="\n" if said else "", flush=True)
        made = of_package()
        done = compiler.call([*found.command, "-shared", *(f"{p}.o" for p in sources), "-o", f"{made}.new"])
        if done.returncode:
            sys.exit(done.stderr)
        os.replace(f"{made}.new", made)
        print(made)


if __name__ == "__main__":
    main()
