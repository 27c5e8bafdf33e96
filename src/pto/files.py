"""Files in one step: who reads one sees the old content or the new, never a part of it."""

from __future__ import annotations

import os


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a file (text as UTF-8) beside its place and move it there; where that cannot be, OSError with its
    name, and nothing is left or changed. A pipe or device cannot be replaced: it is written to."""
    path = os.fspath(path)
    content = data.encode() if isinstance(data, str) else data
    try:
        _write(path, content)
    except OSError as e:
        e.filename = path
        raise


def _write(path: str, content: bytes) -> None:
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
