"""Atomic writes of files, unnamed files that processes share, and checks of folders that other users can
change.

A reader of a file sees either the old or the new content.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Collection

#: Mode of a folder in which each user can make files but not replace those of others.
_PUBLIC = stat.S_ISVTX | stat.S_IWOTH
#: Links that Linux follows.
_MOST_LINKS = 40


def write_whole(path: str | os.PathLike[str], data: bytes | str, executable: bool = False) -> None:
    """Write a file (text as UTF-8) atomically: write a temporary file beside it, then rename it. If that
    fails, raise OSError with the name of the file, and leave no change. A pipe or device is written directly.
    A user who may read an `executable` file may also execute it."""
    path = os.fspath(path)
    content = data.encode() if isinstance(data, str) else data
    try:
        _write(path, content, executable)
    except OSError as e:
        e.filename = path
        raise


def _write(path: str, content: bytes, executable: bool) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:
            device.write(content)
        return
    path = _followed(path)
    old = os.stat(path).st_mode & 0o777 if os.path.exists(path) else None
    # an import of tempfile would take longer than the write
    temporary = os.path.join(os.path.dirname(path), f".pto-{os.getpid()}-{os.urandom(6).hex()}")
    # The system applies the umask to a new file. Python can only read the umask by setting it, for all
    # threads.
    mode = 0o600 if old is not None else 0o777 if executable else 0o666
    created = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(created, "wb") as f:
            f.write(content)
            if old is not None:
                os.fchmod(f.fileno(), old | 0o111 & (old >> 2) if executable else old)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _followed(path: str) -> str:
    """Follow symbolic links to the file to replace. Raise PermissionError for a link that another user has
    made in a folder such as /tmp. Linux has this rule only for `open` (fs.protected_symlinks)."""
    for _ in range(_MOST_LINKS):
        if not os.path.islink(path):
            return path
        folder = os.path.dirname(path) or "."
        owner, place = os.lstat(path).st_uid, os.stat(folder)
        if place.st_mode & _PUBLIC == _PUBLIC and owner not in (os.geteuid(), place.st_uid):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        path = os.path.join(folder, os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def unnamed(title: str, size: int) -> int:
    """Return the descriptor of a new file of zeros, which exists as long as a process has it open. Only this
    user can open it through /proc. Its size is fixed, so that mappings stay valid."""
    file = os.memfd_create(title, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.fchmod(file, 0o600)
        os.ftruncate(file, size)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(file)
        raise
    return file


def make_private(path: str) -> None:
    """Make a folder and its missing parents, each accessible only to its owner."""
    if not os.path.isdir(path):
        make_private(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


def only_theirs(status: os.stat_result, trusted: Collection[int]) -> bool:
    """Return True if a file or folder belongs to one of the trusted users, and no other user can write it."""
    return status.st_uid in trusted and not status.st_mode & 0o022


def weak_folder(path: str, trusted: Collection[int]) -> str:
    """Return the folder, `path` or a parent, in which an untrusted user can replace entries on the way to
    `path`; empty if there is none. `path` is absolute and has no symbolic links.

    The rule is that of StrictModes in sshd. In a folder with the sticky bit, such as /tmp, users cannot
    replace files of others, so such a folder may be a parent.
    """
    at = path
    while True:
        status = os.lstat(at)
        sticky = at != path and status.st_mode & stat.S_ISVTX and status.st_uid in trusted
        if not stat.S_ISDIR(status.st_mode) or not (sticky or only_theirs(status, trusted)):
            return at
        if at == os.path.dirname(at):
            return ""
        at = os.path.dirname(at)
