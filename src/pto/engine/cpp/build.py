"""From C++ to a shared library, at most once per content.

A build is keyed by its sources, all our headers, the compiler, its flags and the processor. Results appear in
one step, so that any number of processes can share the cache; one of them builds while the others wait.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ... import knobs
from ...isa.record import Record
from . import compiler as compilers
from .compiler import Compiler

#: Libraries kept in the cache; the oldest go first.
_KEPT = 1000
#: Seconds after which the folder of a build belongs to nobody: its process was killed.
_ABANDONED = 3600


class Unit(Record):
    """One translation unit; `apart` keeps its names from meeting those of other units."""

    name: str
    text: str
    flags: tuple[str, ...] = ()
    apart: bool = False


class Built(Record):
    """A library, or what the compiler said where there is none."""

    path: str
    output: str = ""
    cached: bool = False

    @property
    def ok(self) -> bool:
        return bool(self.path)


def cache_dir() -> Path:
    """Where libraries are kept: PTO_CACHE_DIR, else the user's cache; a private folder where that fails."""
    given = knobs.get("PTO_CACHE_DIR")
    home = knobs.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(given or os.path.join(home, "pto")) / "cpp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return _private()


_own: list[tempfile.TemporaryDirectory[str]] = []


def _private() -> Path:
    if not _own:
        _own.append(tempfile.TemporaryDirectory(prefix="pto-cache-"))
    return Path(_own[0].name)


def _tools(found: Compiler) -> tuple[str, str, str]:
    """What every build depends on."""
    common = compilers.common(found)
    return found.identity, compilers.headers_digest(), common.identity if common else ""


def cached(units: Sequence[Unit], files: Sequence[Unit], flags: Sequence[str]) -> Built:
    """The library of units, from the cache or built now. `files` are what the units include by name."""
    found = compilers.find()
    state = hashlib.sha256()
    for part in (*_tools(found), *found.flags, *flags):
        state.update(part.encode() + b"\0")
    for u in (*units, *files):
        state.update(f"{u.name}\0{u.flags}{u.apart}\0{u.text}\0".encode())
    key = state.hexdigest()

    def build(folder: Path) -> Built:
        path = folder / f"{key}.so"
        if path.exists():
            touch(path)
            return Built(str(path), cached=True)
        with locked(folder, key):
            if path.exists():  # somebody else was faster
                return Built(str(path), cached=True)
            with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as work:
                built = compile_units(found, units, files, flags, Path(work))
                if not built.ok:
                    return built
                settle(built.path)
                os.replace(built.path, path)
            prune(folder)
        return Built(str(path))

    return _somewhere(build)


def _somewhere(build: Callable[[Path], Built]) -> Built:
    """Build in the cache, or in a private folder where that fails: full, or not ours to write."""
    folder = cache_dir()
    try:
        return build(folder)
    except OSError:
        if folder == _private():
            raise
        return build(_private())


def settle(path: str) -> None:
    """Have the content of a file on the disk before its name: a machine that stops leaves no half of it."""
    with contextlib.suppress(OSError), open(path, "rb") as f:
        os.fsync(f.fileno())


def cached_with_includes(units: Sequence[Unit], flags: Sequence[str], text: str) -> Built:
    """The library of units that include files of users; `text` is that of the first such file.

    Which files were included is known after a build. It is kept beside the library, whose name has the digest
    of all of them.
    """
    found = compilers.find()
    state = hashlib.sha256()
    for part in (*_tools(found), *found.flags, *flags, text):
        state.update(part.encode("utf-8", "surrogatepass") + b"\0")
    for u in units:
        state.update(f"{u.name}\0{u.flags}{u.apart}\0{u.text}\0".encode())
    key = state.hexdigest()

    def build(folder: Path) -> Built:
        index = folder / f"{key}.deps"

        def place(names: Sequence[str]) -> Path:
            digest = hashlib.sha256(key.encode())
            for name in names:
                with contextlib.suppress(OSError):
                    digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + Path(name).read_bytes())
            return folder / f"{digest.hexdigest()}.so"

        def known() -> Path | None:
            with contextlib.suppress(OSError):
                path = place(index.read_text(encoding="utf-8", errors="surrogateescape").splitlines())
                if path.exists():
                    touch(path)
                    return path
            return None

        if path := known():
            return Built(str(path), cached=True)
        with locked(folder, key):
            if path := known():
                return Built(str(path), cached=True)
            with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as work:
                built = compile_units(found, units, [], [*flags, "-MMD"], Path(work))
                if not built.ok:
                    return built
                names = _included(Path(work))
                path = place(names)
                settle(built.path)
                os.replace(built.path, path)
                fresh = Path(work, "deps")
                fresh.write_text("\n".join(names), encoding="utf-8", errors="surrogateescape")
                os.replace(fresh, index)
            prune(folder)
        return Built(str(path))

    return _somewhere(build)


def _included(work: Path) -> list[str]:
    """Files of users that the units in a folder include, from what the compiler noted (`-MMD`)."""
    ours = (str(work), str(compilers.include_dir()))
    names: set[str] = set()
    for rule in work.glob("*.d"):
        text = rule.read_text(encoding="utf-8", errors="surrogateescape").partition(": ")[2]
        words = re.split(r"(?<!\\)\s+", text.replace("\\\n", " "))
        names.update(w.replace("\\ ", " ").replace("$$", "$") for w in words if w)
    return sorted(n for n in names if not n.startswith(ours))


#: What a compiler says of a place in a source. A build that ends without is not the source's fault.
_PLACE = re.compile(r":\d+:\d+: (?:fatal )?error: ")


def compile_units(
    found: Compiler, units: Sequence[Unit], files: Sequence[Unit], flags: Sequence[str], work: Path
) -> Built:
    """Compile and link in a folder; several units at the same time."""
    for u in (*units, *files):
        (work / u.name).write_text(u.text, encoding="utf-8")
    every = [*found.command, *found.flags, *flags, f"-I{compilers.include_dir()}"]
    common = compilers.common(found)
    if common is not None:
        built = _compile(found, units, [*every, compilers.LINKED], [common.path], work)
        if built.ok or _PLACE.search(built.output):
            return built
        # The library is damaged, or options of the user's do not suit it: headers alone do as well.
    return _compile(found, units, every, [], work)


def _compile(
    found: Compiler, units: Sequence[Unit], every: Sequence[str], linked: Sequence[str], work: Path
) -> Built:
    library = work / "kernel.so"
    if len(units) == 1:
        source = str(work / units[0].name)
        rest = ["-shared", source, "-o", str(library), *linked, *_LIBRARIES]
        done = compilers.call([*every, *units[0].flags, *rest])
        return _made(library, done.returncode, done.stderr, found)

    def object_of(u: Unit) -> tuple[bool, str]:
        target = str(work / f"{u.name}.o")
        own = ["-fno-gnu-unique"] if u.apart and not found.is_clang else []
        done = compilers.call([*every, *u.flags, *own, "-c", str(work / u.name), "-o", target])
        if not os.path.exists(target):
            built = _made(Path(target), done.returncode, done.stderr, found)
            return False, built.output
        if done.returncode == 0 and u.apart and linked:  # with common code of its own
            whole = f"{target}.whole"
            done = compilers.call([*found.command, "-r", "-nostdlib", target, *linked, "-o", whole])
            target = whole if done.returncode == 0 else target
        if done.returncode == 0 and u.apart:
            parts = [str(work / f"{u.name}.o")]
            done = compilers.call(
                [_objcopy(), "--remove-section=.group", "--localize-hidden", target, *parts]
            )
        return done.returncode == 0, done.stderr

    with ThreadPoolExecutor(len(units)) as pool:
        results = list(pool.map(object_of, units))
    output = "".join(text for _, text in results)
    if not all(ok for ok, _ in results):
        return Built("", output)
    objects = [str(work / f"{u.name}.o") for u in units]
    done = compilers.call([*found.command, "-shared", *objects, *linked, "-o", str(library), *_LIBRARIES])
    return _made(library, done.returncode, output + done.stderr, found)


def _made(file: Path, status: int, output: str, found: Compiler) -> Built:
    """What a compiler made; one that reports success without a file has failed all the same."""
    if status == 0 and not file.exists():
        output += f"{' '.join(found.command)} reports success, but wrote no {file.name}: is it a compiler?\n"
    return Built(str(file) if status == 0 and file.exists() else "", output)


_LIBRARIES = ("-lpthread",)


def _objcopy() -> str:
    return shutil.which("objcopy") or shutil.which("llvm-objcopy") or "objcopy"


@contextlib.contextmanager
def locked(folder: Path, key: str) -> Iterator[None]:
    """Held by one builder of a key at a time, over threads and processes."""
    locks = folder / "locks"
    locks.mkdir(exist_ok=True)
    with open(locks / key[:3], "wb") as lock:  # two keys of a folder hardly ever share one
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def touch(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)


def prune(folder: Path) -> None:
    """Drop the libraries used longest ago when there are too many, and what killed builds left behind."""
    with contextlib.suppress(OSError):
        for work in folder.glob(".build-*"):
            if time.time() - work.stat().st_mtime > _ABANDONED:
                shutil.rmtree(work, ignore_errors=True)
        found = [(p.stat().st_mtime, p) for p in folder.glob("*.so")]
        if len(found) > _KEPT:
            for _, path in sorted(found)[: len(found) - _KEPT * 4 // 5]:
                path.unlink(missing_ok=True)
