"""Groups of processes that reach each other's windows (native/host/group.hpp): where their library is, and
the file that one of them makes and all of them map."""

from __future__ import annotations

import importlib.util
import os
import struct
from pathlib import Path

from ...diag import Diagnostic, DiagnosticError
from ...files import unnamed

#: `Board` and `Member` of native/host/group.hpp, as far as they are read here.
_HEAD = struct.Struct("<IIQ")
_MAGIC, _WINDOWS, _MEMBERS, _EACH = 0x50544F52, 1 << 20, 64, 256
_MEMBER = struct.Struct("<IIQii216sQQ")
_WAITING = 2
#: Bytes of a window of the group that a launcher makes: programs make groups with windows themselves.
_WINDOW = 4096


def library(name: str = "libpto_host.so") -> Path:
    """What whole programs call, as a shared library of the package."""
    native = importlib.util.find_spec("pto._native")
    path = Path(native.origin or "").parent / "lib" / name if native is not None else None
    if path is None or not path.is_file():
        raise DiagnosticError([
            Diagnostic("PTO-E2401", "the library of whole programs is missing",
                       help="install the package again, or make setup in a checkout")
        ])  # fmt: skip
    return path


def make(ranks: int) -> int:
    """The file of a new group. It has no name: with the last that has it, it is gone."""
    file = unnamed("pto-ranks", _WINDOWS + ranks * _WINDOW)
    os.pwrite(file, _HEAD.pack(_MAGIC, ranks, _WINDOW), 0)
    return file


def waits_for(file: int, rank: int) -> str | None:
    """What a rank of a group waits for, if it does."""
    data = os.pread(file, _MEMBER.size, _MEMBERS + rank * _EACH)
    state, _, _, _, _, what, _, _ = _MEMBER.unpack(data)
    return what.split(b"\0")[0].decode("utf-8", "replace") if state == _WAITING else None
