"""Cache of all compiled code: libraries of kernels and orchestrations, and facts about compilers. `pto cache`
shows and empties it.

An entry is a folder, named by a digest of everything that the result depends on. An entry appears atomically
and has a checksum. Any number of processes can share the cache: one process builds an entry while others
wait, and a damaged entry counts as missing. Some builds find out which files they depend on only when they
run (the includes of a source). The names of these files are an entry of their own, and their contents are
part of the digest of the result.

Entries are loaded as code, so other users must not be able to change them. The checksum detects damage, not
attacks: owners and modes protect the cache. A folder that other users can write is not used, and neither is a
folder below it (`files.weak_folder`). An entry is valid only if its folder and its files belong to this user
or to root, and no other user can write them. A file is loaded through the descriptor of `opened`, which
refuses every file but the verified one. PTO_CACHE_SHARED names a second, read-only cache. A user who sets it
trusts the owner of that cache.

The cache has a size limit (PTO_CACHE_LIMIT), and evicts precompiled headers first, then the least recently
used entries. Libraries that
are already loaded remain loaded. Entries that were just returned are not evicted, because a process may be
about to load them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import knobs
from .files import make_private, only_theirs, weak_folder
from .isa.record import Record

#: Seconds after which the folder of a build counts as abandoned, because its process was killed.
_ABANDONED = 3600
#: Seconds for which an entry is not evicted after its last use.
_GRACE = 600
#: The description of an entry, in its folder.
_ABOUT = "entry.json"
#: Names of entries, and of files of older versions: a digest. Files with other names are not part of the
#: cache, because the user may have set PTO_CACHE_DIR to a folder with other content.
_OURS = re.compile(r"(?:\w+-)?[0-9a-f]{32,64}(?:\.(?:so|includes|deps))?")
_LOCKS = ".pto-locks"
_TOTAL = ".pto-total"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Built(Record):
    """Result of a build: a file, or the output of the tool if it failed."""

    path: str
    output: str = ""
    cached: bool = False
    files: tuple[str, ...] = ()  # names of files that the build read and the key does not contain

    @property
    def ok(self) -> bool:
        return bool(self.path)


class Files:
    """Paths of the files that a build reads. A subclass can map names to other paths."""

    def path(self, name: str) -> str:
        return name

    def fit(self, names: Sequence[str]) -> bool:
        """Return True if the current request can use a result that was built from these files."""
        return True


class Found(Record):
    """An undamaged entry: its file, if it has one (path and content), and its facts."""

    path: str
    facts: Any
    data: bytes = b""


class CacheEntry(Record):
    """An entry in the statistics of `pto cache`."""

    path: str
    kind: str
    size: int  # bytes
    used: float  # time of the last use, in seconds


# -- where ------------------------------------------------------------------------------------------------


def folder() -> Path:
    """Return the folder of entries: in PTO_CACHE_DIR, else in the cache folder of the user. If this user
    cannot write it, or other users can, return a private temporary folder. The name of the folder is that of
    earlier versions, so their files are evicted."""
    home = knobs.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    # without symbolic links, because the owner of a link could change it after the check
    found = os.path.realpath(os.path.join(knobs.get("PTO_CACHE_DIR") or os.path.join(home, "pto"), "cpp"))
    try:
        make_private(found)
        if _is_safe(found, _ours(), "PTO_CACHE_DIR") and os.access(found, os.W_OK):
            return Path(found)
    except OSError:
        pass
    return _private()


def shared() -> tuple[Path, Collection[int]] | None:
    """Return the folder of PTO_CACHE_SHARED and the users whose files are trusted there; None without such a
    folder.
    """
    given = knobs.get("PTO_CACHE_SHARED")
    if not given:
        return None
    found = os.path.realpath(os.path.join(given, "cpp"))
    try:
        trusted = {*_ours(), os.stat(found).st_uid}
        return (Path(found), trusted) if _is_safe(found, trusted, "PTO_CACHE_SHARED") else None
    except OSError:
        return None


_own: list[Any] = []


def _private() -> Path:
    if not _own:
        import tempfile

        _own.append(tempfile.TemporaryDirectory(prefix="pto-cache-"))
    return Path(_own[0].name)


# -- who can write it -------------------------------------------------------------------------------------


def _ours() -> tuple[int, int]:
    """Return the users whose files are trusted: this user and root."""
    return os.geteuid(), 0


_warned: set[str] = set()


def _is_safe(path: str, trusted: Collection[int], knob: str) -> bool:
    """Check whether only trusted users can change the contents of a folder; otherwise warn, once."""
    weak = weak_folder(path, trusted)
    if weak and path not in _warned:
        from shlex import quote

        from .diag import Diagnostic, render

        _warned.add(path)
        status = os.lstat(weak)
        mode = stat.S_IMODE(status.st_mode)
        whose = f"'{weak}' belongs to user {status.st_uid} and has mode {mode:04o}"
        other = f"name a folder in {knob} that only you can write"
        remedy = f"type: chmod go-w {quote(weak)}; or {other}" if status.st_uid in trusted else other
        problem = Diagnostic(
            "PTO-E2409", f"cannot use the cache '{path}': other users can write there: {whose}",
            severity="warning", help=remedy,
        )  # fmt: skip
        sys.stderr.write(render([problem]) + "\n")
    return not weak


def size_of(text: str) -> int | None:
    """Parse a number of bytes: 1048576, 500M, 2G, 1.5GiB. Return None for any other text."""
    m = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgt]?)(?:i?b)?", text.strip().lower())
    return int(float(m[1]) * _UNITS[m[2]]) if m else None


def limit() -> int:
    """Return the maximum size of the cache in bytes. An invalid PTO_CACHE_LIMIT counts as its default."""
    found = size_of(knobs.get("PTO_CACHE_LIMIT"))
    if found is None:
        found = size_of(knobs.KNOBS["PTO_CACHE_LIMIT"].default)
        assert found is not None
    return found


# -- entries ----------------------------------------------------------------------------------------------


def key(*parts: str) -> str:
    """Return a digest of everything that a result depends on."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


def find(name: str, where: Path | None = None) -> Found | None:
    """Return the entry of a key, from the cache or the shared cache. Return None if the entry is missing,
    damaged, or writable by another user."""
    places: list[tuple[Path, Collection[int]] | None] = [(where or folder(), _ours()), shared()]
    for place, trusted in filter(None, places):
        with contextlib.suppress(OSError, *_DAMAGED):
            if found := _verified_entry(place / name, trusted):
                with contextlib.suppress(OSError):
                    os.utime(place / name)
                return found
    return None


def _verified_entry(place: Path, trusted: Collection[int]) -> Found | None:
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if not only_theirs(os.fstat(folder), trusted):
            return None
        about = json.loads(_content(_ABOUT, folder, trusted)[0])
        file, facts = about["file"], about["facts"]
        if file != os.path.basename(file) or file in (".", ".."):
            return None
        data, identity = _content(file, folder, trusted) if file else (b"", ())
    finally:
        os.close(folder)
    if about["checksum"] != _checksum(data, facts):
        return None
    path = str(place / file) if file else ""
    if path:
        _identities[path] = identity
    return Found(path, facts, data)


def _content(name: str, folder: int, trusted: Collection[int]) -> tuple[bytes, tuple[int, ...]]:
    """Return the content and the identity of a file in an open folder."""
    with open(os.open(name, _READ | os.O_NOFOLLOW, dir_fd=folder), "rb") as f:
        status = os.fstat(f.fileno())
        if not stat.S_ISREG(status.st_mode) or not only_theirs(status, trusted):
            raise PermissionError(name)
        return f.read(), _identity(status)


#: Exceptions that a damaged description raises.
_DAMAGED = (ValueError, KeyError, TypeError, RecursionError)
#: Without O_NONBLOCK, a pipe instead of a file would block the reader.
_READ = os.O_RDONLY | os.O_NONBLOCK
#: Identities of the files that this process has verified or made, by path.
_identities: dict[str, tuple[int, ...]] = {}


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """Return facts that identify a file and its content. A change of the content changes the ctime,
    which no user can set."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def opened(path: str) -> int:
    """Open a file to load it; raise OSError if a file of the cache is not the verified one. The caller loads
    from the descriptor, because the path could lead to another file later."""
    file = os.open(path, _READ)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or _identities.get(path) not in (None, _identity(status)):
        os.close(file)
        raise OSError(errno.ESTALE, "the file has changed since it was verified", path)
    return file


def put(name: str, kind: str, file: Path | None = None, facts: Any = None, where: Path | None = None) -> str:
    """Move a file to a new entry, and store facts. Return the new path of the file."""
    where = where or folder()
    place, fresh = where / name, where / f".pto-build-{_unlike_others()}"
    fresh.mkdir(mode=0o700)
    try:
        kept, data, identity = None, b"", ()
        if file is not None:
            kept = fresh / file.name
            os.replace(file, kept)
            # independent of the umask of the build
            os.chmod(kept, stat.S_IMODE(kept.stat().st_mode) & ~0o022)
            _settle(kept)
            with open(kept, "rb") as f:
                data, identity = f.read(), _identity(os.fstat(f.fileno()))
        file_name, checksum = kept.name if kept else "", _checksum(data, facts)
        about = json.dumps({"kind": kind, "file": file_name, "checksum": checksum, "facts": facts})
        with open(os.open(fresh / _ABOUT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(about.encode())
        _settle(fresh / _ABOUT)
        _drop(place)  # a damaged entry of the same name
        os.rename(fresh, place)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    _account(where, len(data) + len(about))
    if not file_name:
        return ""
    path = str(place / file_name)
    _identities[path] = identity
    return path


def stored(name: str, files: Files | None = None, where: Path | None = None) -> Built | None:
    """Return the result of a key if it is in the cache. With `files`, it must have been built from their
    current contents."""
    where, names = where or folder(), list[str]()
    if files is not None:
        listed = find(name, where)
        if listed is None or not isinstance(listed.facts, list) or not files.fit(listed.facts):
            return None
        names = listed.facts
        name = _with_files(name, names, files)
    found = find(name, where)
    return Built(found.path, cached=True, files=tuple(names)) if found and found.path else None


def built(name: str, kind: str, build: Callable[[Path], Built], files: Files | None = None) -> Built:
    """Return the result of a key from the cache, or build it in a folder that `build` gets. A failed build
    leaves no entry."""

    def here(where: Path) -> Built:
        if found := stored(name, files, where):
            return found
        # A kernel builds its precompiled headers: locks of another kind, else it could wait for itself.
        with lock(where, f"{kind}-{name[:3]}"):
            if found := stored(name, files, where):  # another process has built it
                return found
            import tempfile  # this import takes longer than a search of the cache

            with tempfile.TemporaryDirectory(prefix=".pto-build-", dir=where) as work:
                made = build(Path(work))
                if not made.ok:
                    return made
                whole = name if files is None else _with_files(name, made.files, files)
                path = put(whole, kind, Path(made.path), where=where)
                if files is not None:
                    put(name, "files", facts=list(made.files), where=where)
            _sweep(where)
        return made.replace(path=path)

    where = folder()
    try:
        return here(where)
    except OSError:  # the disk is full, or the folder is not writable
        if where == _private():
            raise
        return here(_private())


def _with_files(name: str, names: Sequence[str], files: Files) -> str:
    return key(name, *(part for n in names for part in (n, file_digest(files.path(n)))))


def file_digest(path: str) -> str:
    """Return the digest of a file, or a sentinel for a missing file."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return "missing"


def _checksum(data: bytes, facts: Any) -> str:
    """Return a checksum of the data and facts of an entry, which detects damage; 27 MB take 20 ms."""
    return f"{len(data)} {zlib.crc32(json.dumps(facts).encode(), zlib.crc32(data)):08x}"


def _settle(path: Path) -> None:
    """Write the content of a file to the disk before its name appears, so that a crash leaves no incomplete
    file."""
    with contextlib.suppress(OSError), open(path, "rb") as f:
        os.fsync(f.fileno())


def _unlike_others() -> str:
    return f"{os.getpid()}-{os.urandom(6).hex()}"


@contextlib.contextmanager
def lock(where: Path, name: str) -> Iterator[None]:
    """Take a lock, over threads and processes. Two keys of one kind rarely share a lock."""
    locks = where / _LOCKS
    locks.mkdir(mode=0o700, exist_ok=True)
    # Earlier versions let other users enter the folder, and a user who can open a lock file can hold it.
    if locks.stat().st_mode & 0o077:
        locks.chmod(0o700)
    with open(locks / name, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


# -- how much there is ------------------------------------------------------------------------------------


def entries(where: Path | None = None) -> list[CacheEntry]:
    """Return all entries of the cache, the least recently used first. Files of older versions are
    included."""
    found: list[CacheEntry] = []
    with contextlib.suppress(OSError), os.scandir(where or folder()) as places:
        for place in places:
            if not _OURS.fullmatch(place.name) and not os.path.isfile(os.path.join(place.path, _ABOUT)):
                continue
            with contextlib.suppress(OSError):  # removed since
                found.append(_entry(place))
    return sorted(found, key=lambda e: (e.used, e.path))


def _entry(place: os.DirEntry[str]) -> CacheEntry:
    status = place.stat()
    if not place.is_dir():
        return CacheEntry(place.path, "other", status.st_size, status.st_mtime)
    with os.scandir(place) as files:
        size = sum(f.stat().st_size for f in files)
    try:
        with open(os.open(os.path.join(place.path, _ABOUT), _READ), "rb") as f:
            kind = str(json.loads(f.read())["kind"])
    except (OSError, *_DAMAGED):
        kind = "other"
    return CacheEntry(place.path, kind, size, status.st_mtime)


def prune(most: int, grace: float = 0, where: Path | None = None) -> list[CacheEntry]:
    """Remove entries until `most` bytes are left: precompiled headers first, then the least recently used
    entries. Entries that were used in the last `grace` seconds stay. Also remove folders of killed builds.
    Return the removed entries."""
    where = where or folder()
    _sweep(where)
    with lock(where, _TOTAL):
        gone, left = _evict(where, most, grace)
        _note(where, left)
    return gone


def _evict(where: Path, most: int, grace: float) -> tuple[list[CacheEntry], int]:
    gone = list[CacheEntry]()
    # precompiled headers first: they are large, and take no longer to make again than a few kernels
    found = sorted(entries(where), key=lambda e: e.kind != "headers")
    left = sum(e.size for e in found)
    newest = time.time() - grace
    for e in found:
        if left <= most:
            break
        if e.used <= newest and _drop(Path(e.path)):
            gone.append(e)
            left -= e.size
    return gone, left


def _account(where: Path, more: int) -> None:
    """Add to the recorded size of the cache. The cache is scanned only if it may exceed its limit. Then a
    fifth of the cache is freed, so that not every build scans it.
    """
    with contextlib.suppress(OSError), lock(where, _TOTAL):
        try:
            total = int((where / _TOTAL).read_text(encoding="ascii")) + more
        except (OSError, ValueError):
            total = sum(e.size for e in entries(where))
        if total > limit():
            total = _evict(where, limit() * 4 // 5, _GRACE)[1]
        _note(where, total)


def _note(where: Path, total: int) -> None:
    (where / _TOTAL).write_text(str(total), encoding="ascii")


def _drop(place: Path) -> bool:
    """Remove an entry atomically, so that readers never see a part of it. Return False if this user cannot
    remove it."""
    gone = place.with_name(f".pto-gone-{_unlike_others()}")
    try:
        os.rename(place, gone)
        if gone.is_dir():
            shutil.rmtree(gone, ignore_errors=True)
        else:
            gone.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _sweep(where: Path) -> None:
    """Remove folders of killed processes."""
    with contextlib.suppress(OSError):
        for pattern in (".pto-build-*", ".pto-gone-*"):
            for work in where.glob(pattern):
                if time.time() - work.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(work, ignore_errors=True)
