"""Files that are written in one step, so that a reader sees the old content or the new one; and files without
a name, which processes share."""

from __future__ import annotations

import fcntl
import os


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a file (text as UTF-8) beside its place and move it there; where that cannot be, OSError, and
    nothing is left or changed. A pipe or device cannot be replaced: it is written to."""
    path = os.fspath(path)
    content = data.encode() if isinstance(data, str) else data
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:
            device.write(content)
        return
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~_umask()
    # tempfile would take longer to import than to write
    folder = os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(folder, f".pto-{os.getpid()}-{os.urandom(6).hex()}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(content)
        os.chmod(temporary, mode)
        os.replace(temporary, os.path.realpath(path))
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def unnamed(title: str, size: int) -> int:
    """Return the descriptor of a new file of zeros that exists as long as a process has it open. Only this
    user can open it by way of /proc. Its size is fixed, so that a mapping of it stays valid."""
    file = os.memfd_create(title, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.fchmod(file, 0o600)
        os.ftruncate(file, size)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(file)
        raise
    return file


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
