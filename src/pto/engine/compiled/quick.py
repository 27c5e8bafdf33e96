"""The fast path for launches whose arguments need no conversion: dense, writable arrays of the element types
of the kernel, and numbers in range. The native part describes them to the kernel directly.

All other arguments, and all messages, take the general path (`kernel.py`).
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from ... import _native
from ...ir.types import PtrType, ScalarType, Type
from ..elements import ARRAY_DTYPES
from ..entry import SPMD, Launchable
from .library import LaunchOutcome, Library

#: The largest number of arguments, equal to `kMost` of native/bindings/launch.cpp.
_MOST = 32


@ctypes.CFUNCTYPE(None, ctypes.c_char_p)
def _print(text: bytes) -> None:
    sys.stdout.write(text.decode("utf-8", "replace"))


class Quick:
    """The fast path for one kernel."""

    def __init__(self, kernel: Launchable, library: Library, symbol: str, program: int) -> None:
        function = ctypes.cast(library.raw(symbol), ctypes.c_void_p).value or 0
        print = ctypes.cast(_print, ctypes.c_void_p).value or 0
        takes = [_takes(a.type, a.name) for a in kernel.args]
        #: Takes arguments, blocks and threads; returns 0 for DONE, None if the arguments need the general
        #: path.
        self.call = _native.Launcher(function, np.ndarray, takes, kernel.subblocks, program, print)


def outcome(done: int | tuple[int, bytes, int, int, int]) -> LaunchOutcome:
    """Return the outcome of a quick launch."""
    if isinstance(done, int):
        return LaunchOutcome(done, "")
    status, text, mark, first, last = done
    return LaunchOutcome(status, text.decode("utf-8", "replace"), mark, range(first, last))


def _takes(type: Type, name: str) -> tuple[object, ...]:
    """Return the description of an argument for `Launcher`: an array, an integer or a float."""
    if isinstance(type, PtrType):
        return ARRAY_DTYPES[str(type.dtype)], f"%{name}".encode()
    assert isinstance(type, ScalarType)
    bits = type.bits or 64
    return (bits // 8, 0, 0) if type.is_float else (-(1 << bits - 1), (1 << bits - 1) - 1)


def quick(kernel: Launchable, library: Library, symbol: str, program: int) -> Quick | None:
    """Return the fast path of a kernel, or None. The kernel must be one function whose arguments are numbers
    and arrays of known types, and the launch must neither set nor split any of them.
    """
    if len(kernel.functions) != 1 or kernel.dealt or len(kernel.args) > _MOST:
        return None
    if not all(a.name not in SPMD and _suits(a.type) for a in kernel.args):
        return None
    return Quick(kernel, library, symbol, program)


def _suits(type: Type) -> bool:
    if isinstance(type, ScalarType):
        return not type.is_float or str(type) in ("f32", "f64")
    return isinstance(type, PtrType) and type.space == "gm" and str(type.dtype) in ARRAY_DTYPES
