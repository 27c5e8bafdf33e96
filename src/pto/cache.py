"""The one cache of everything that is built: libraries of kernels and orchestrations, and what is known of a
compiler. `pto cache` shows and empties it.

An entry is a folder named by a digest of all that the result depends on. It appears in one step and holds a
checksum of itself: any number of processes can share the cache, one of them builds while the others wait, and
what is damaged counts as missing. Where a build finds out only afterwards which files it depends on (what a
source includes), their names are an entry of their own, and the digest of the result has their contents too.

Entries are loaded as code, so no other user may be able to change them. The checksum detects damage, not
attacks: owners and modes protect the cache. A folder that other users can write is not used, nor one below
such a folder (`files.weak_folder`). An entry counts only if its folder and its files belong to this user or
to root, and no other user can write them. A file is loaded through the descriptor of `opened`, which refuses
every file but the verified one. PTO_CACHE_SHARED names a second cache, which is only read: a user who names
it trusts its owner.

The cache has a limit (PTO_CACHE_LIMIT). What was used longest ago goes first. A library that is loaded stays
so when its file is removed; what somebody has just been given and may be about to load is not evicted.
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

#: Seconds after which the folder of a build belongs to nobody: its process was killed.
_ABANDONED = 3600
#: Seconds for which an entry is not evicted after its last use.
_GRACE = 600
#: What describes an entry, in its folder.
_ABOUT = "entry.json"
#: Names of entries are digests; older versions kept files of such names. What is called otherwise is not
#: ours: a user may have given the cache a folder that holds other things.
_OURS = re.compile(r"(?:\w+-)?[0-9a-f]{32,64}(?:\.(?:so|includes|deps))?")
_LOCKS = ".pto-locks"
_TOTAL = ".pto-total"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Built(Record):
    """What a build made: a file, or what its tool said where there is none."""

    path: str
    output: str = ""
    cached: bool = False
    files: tuple[str, ...] = ()  # names of what it was made from that the key does not have, see `Files`

    @property
    def ok(self) -> bool:
        return bool(self.path)


class Files:
    """How files are named that a build finds out about: by their paths, unless a subclass knows better."""

    def path(self, name: str) -> str:
        return name

    def fit(self, names: Sequence[str]) -> bool:
        """Whether what was made from these files is what is wanted now."""
        return True


class Found(Record):
    """An entry that is as it was made: its file, if it has one (path and content), and its facts."""

    path: str
    facts: Any
    data: bytes = b""


class CacheEntry(Record):
    """An entry as `pto cache` counts it."""

    path: str
    kind: str
    size: int  # bytes
    used: float  # when, in seconds


# -- where ------------------------------------------------------------------------------------------------


def folder() -> Path:
    """Return the folder of entries: in PTO_CACHE_DIR, else in the user's cache; a private one where this user
    cannot write that, or other users can. Its name is that of earlier versions: what they left is evicted."""
    home = knobs.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    # without symbolic links: whoever owns one could point it elsewhere after the check
    found = os.path.realpath(os.path.join(knobs.get("PTO_CACHE_DIR") or os.path.join(home, "pto"), "cpp"))
    try:
        make_private(found)
        if _is_safe(found, _ours(), "PTO_CACHE_DIR") and os.access(found, os.W_OK):
            return Path(found)
    except OSError:
        pass
    return _private()


def shared() -> tuple[Path, Collection[int]] | None:
    """Return the folder of PTO_CACHE_SHARED, if there is one, and the users whose files count there."""
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
    """Users whose files are taken: this one, and root, who can do anything anyway."""
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
            "PTO-E2409", f"the cache '{path}' is not used: other users can write there: {whose}",
            severity="warning", help=remedy,
        )  # fmt: skip
        sys.stderr.write(render([problem]) + "\n")
    return not weak


def size_of(text: str) -> int | None:
    """A number of bytes as users write it: 1048576, 500M, 2G, 1.5GiB."""
    m = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgt]?)(?:i?b)?", text.strip().lower())
    return int(float(m[1]) * _UNITS[m[2]]) if m else None


def limit() -> int:
    """Bytes that the cache may hold; a knob that is no size is taken for the usual one."""
    found = size_of(knobs.get("PTO_CACHE_LIMIT"))
    if found is None:
        found = size_of(knobs.KNOBS["PTO_CACHE_LIMIT"].default)
        assert found is not None
    return found


# -- what is there ----------------------------------------------------------------------------------------


def key(*parts: str) -> str:
    """A digest of all that a result depends on."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


def find(name: str, where: Path | None = None) -> Found | None:
    """Return the entry of a key, of the cache or of a shared one; None where it is missing, damaged, or could
    have been changed by another user."""
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


#: What reading a damaged description raises.
_DAMAGED = (ValueError, KeyError, TypeError, RecursionError)
#: A pipe in the place of a file must not keep a reader waiting.
_READ = os.O_RDONLY | os.O_NONBLOCK
#: Identities of the files that this process has verified or made, by path.
_identities: dict[str, tuple[int, ...]] = {}


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """Facts that no other file has, nor the same file after a change: no user can set a ctime."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def opened(path: str) -> int:
    """Open a file to load it; OSError for a file of the cache that is not the verified one. The caller loads
    from the descriptor: to look up the path again could lead to another file."""
    file = os.open(path, _READ)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or _identities.get(path) not in (None, _identity(status)):
        os.close(file)
        raise OSError(errno.ESTALE, "the file has changed since it was verified", path)
    return file


def put(name: str, kind: str, file: Path | None = None, facts: Any = None, where: Path | None = None) -> str:
    """Make an entry of a file, which moves there, and of facts; the path of the file."""
    where = where or folder()
    place, fresh = where / name, where / f".pto-build-{_unlike_others()}"
    fresh.mkdir(mode=0o700)
    try:
        kept, data, identity = None, b"", ()
        if file is not None:
            kept = fresh / file.name
            os.replace(file, kept)
            os.chmod(kept, stat.S_IMODE(kept.stat().st_mode) & ~0o022)  # whatever the umask of its maker
            _settle(kept)
            with open(kept, "rb") as f:
                data, identity = f.read(), _identity(os.fstat(f.fileno()))
        file_name, checksum = kept.name if kept else "", _checksum(data, facts)
        about = json.dumps({"kind": kind, "file": file_name, "checksum": checksum, "facts": facts})
        with open(os.open(fresh / _ABOUT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(about.encode())
        _settle(fresh / _ABOUT)
        _drop(place)  # a damaged one
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
    """What was built for a key, where it is there; with `files` also as these are now."""
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
    """What is built for a key: from the cache, or made now in the folder that `build` is given. A build that
    fails leaves nothing."""

    def here(where: Path) -> Built:
        if found := stored(name, files, where):
            return found
        with lock(where, name):
            if found := stored(name, files, where):  # somebody else was faster
                return found
            import tempfile  # takes longer than to find something

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
    except OSError:  # full, or not ours to write
        if where == _private():
            raise
        return here(_private())


def _with_files(name: str, names: Sequence[str], files: Files) -> str:
    return key(name, *(part for n in names for part in (n, file_digest(files.path(n)))))


def file_digest(path: str) -> str:
    """A digest of a file; of one that is gone, something that no file has."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return "missing"


def _checksum(data: bytes, facts: Any) -> str:
    """Return a checksum of the data and facts of an entry, which detects damage; 27 MB take 20 ms."""
    return f"{len(data)} {zlib.crc32(json.dumps(facts).encode(), zlib.crc32(data)):08x}"


def _settle(path: Path) -> None:
    """Have the content of a file on the disk before its name: a machine that stops leaves no half of it."""
    with contextlib.suppress(OSError), open(path, "rb") as f:
        os.fsync(f.fileno())


def _unlike_others() -> str:
    return f"{os.getpid()}-{os.urandom(6).hex()}"


@contextlib.contextmanager
def lock(where: Path, name: str) -> Iterator[None]:
    """Held by one builder of a key at a time, over threads and processes."""
    locks = where / _LOCKS
    locks.mkdir(mode=0o700, exist_ok=True)
    if locks.stat().st_mode & 0o077:  # of an earlier version: a user who can open a file can lock it
        locks.chmod(0o700)
    with open(locks / name[:3], "wb") as held:  # two keys hardly ever share one
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


# -- how much there is ------------------------------------------------------------------------------------


def entries(where: Path | None = None) -> list[CacheEntry]:
    """Everything of ours in the cache, what was used longest ago first; also what older versions left."""
    found: list[CacheEntry] = []
    with contextlib.suppress(OSError), os.scandir(where or folder()) as places:
        for place in places:
            if not _OURS.fullmatch(place.name) and not os.path.isfile(os.path.join(place.path, _ABOUT)):
                continue
            with contextlib.suppress(OSError):  # gone since
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
    """Remove what was used longest ago until `most` bytes are left, but nothing that was used in the last
    `grace` seconds; also what killed builds left behind. Returns what is gone."""
    where = where or folder()
    _sweep(where)
    with lock(where, _TOTAL):
        gone, left = _evict(where, most, grace)
        _note(where, left)
    return gone


def _evict(where: Path, most: int, grace: float) -> tuple[list[CacheEntry], int]:
    found, gone = entries(where), list[CacheEntry]()
    left = sum(e.size for e in found)
    newest = time.time() - grace
    for e in found:
        if left <= most or e.used > newest:
            break
        if _drop(Path(e.path)):
            gone.append(e)
            left -= e.size
    return gone, left


def _account(where: Path, more: int) -> None:
    """Note what was added. All of the cache is looked at only where it may be above its limit; a fifth is
    freed then, so that it does not happen with every build."""
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
    """Remove an entry in one step: nobody finds a part of it. False where it is not ours to remove."""
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
    """Remove what killed processes left behind."""
    with contextlib.suppress(OSError):
        for pattern in (".pto-build-*", ".pto-gone-*"):
            for work in where.glob(pattern):
                if time.time() - work.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(work, ignore_errors=True)
