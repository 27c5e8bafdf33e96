"""Groups of processes that access each other's windows (native/host/group.hpp): the path of their library,
and the file that one process makes and all of them map."""

from __future__ import annotations

import importlib.util
import os
import struct
from pathlib import Path

from ...diag import Diagnostic, DiagnosticError
from ...files import unnamed

#: The fields of `Board` and `Member` (native/host/group.hpp) that are read here.
_HEAD = struct.Struct("<IIQ")
_MAGIC, _WINDOWS, _MEMBERS, _EACH = 0x50544F52, 1 << 20, 64, 256
_MEMBER = struct.Struct("<IIQii216sQQ")
_WAITING = 2
#: The window size of a group made by a launcher; programs with windows make groups themselves.
_WINDOW = 4096


def library(name: str = "libpto_host.so") -> Path:
    """Return the path of a shared library for whole programs."""
    native = importlib.util.find_spec("pto._native")
    path = Path(native.origin or "").parent / "lib" / name if native is not None else None
    if path is None or not path.is_file():
        raise DiagnosticError([
            Diagnostic("PTO-E2401", f"missing library {name}",
                       help="install the package again, or make setup in a checkout")
        ])  # fmt: skip
    return path


def make(ranks: int) -> int:
    """Return the file of a new group. It has no name, so it ends with the last process that has it open."""
    file = unnamed("pto-ranks", _WINDOWS + ranks * _WINDOW)
    os.pwrite(file, _HEAD.pack(_MAGIC, ranks, _WINDOW), 0)
    return file


def waits_for(file: int, rank: int) -> str | None:
    """Return a text for what a rank of a group waits for; None if the rank does not wait."""
    data = os.pread(file, _MEMBER.size, _MEMBERS + rank * _EACH)
    state, _, _, _, _, what, _, _ = _MEMBER.unpack(data)
    return what.split(b"\0")[0].decode("utf-8", "replace") if state == _WAITING else None
