"""Launches whose arguments are what a kernel takes, as they stand: arrays of its element types, dense and not
read-only, and numbers in range. The native part describes them to the kernel, nothing else is made.

What a caller may give besides goes the long way (`kernel.py`), and so do all messages.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from ... import _native
from ...ir.types import PtrType, ScalarType, Type
from ..elements import ARRAY_DTYPES
from ..entry import SPMD, Launchable
from .library import Library, Outcome

#: As many as `kMost` of native/bindings/launch.cpp.
_MOST = 32


@ctypes.CFUNCTYPE(None, ctypes.c_char_p)
def _print(text: bytes) -> None:
    sys.stdout.write(text.decode("utf-8", "replace"))


class Quick:
    """The short way for one kernel."""

    def __init__(self, kernel: Launchable, library: Library, symbol: str, program: int) -> None:
        function = ctypes.cast(library.raw(symbol), ctypes.c_void_p).value or 0
        print = ctypes.cast(_print, ctypes.c_void_p).value or 0
        takes = [_takes(a.type, a.name) for a in kernel.args]
        #: With arguments, blocks and threads: 0 for done, None where the arguments need more than this.
        self.call = _native.Launcher(function, np.ndarray, takes, kernel.subblocks, program, print)


def outcome(done: int | tuple[int, bytes, int, int, int]) -> Outcome:
    """What a launch came to."""
    if isinstance(done, int):
        return Outcome(done, "")
    status, text, mark, first, last = done
    return Outcome(status, text.decode("utf-8", "replace"), mark, range(first, last))


def _takes(type: Type, name: str) -> tuple[Any, ...]:
    """An argument as `Launcher` is told of it: an array, whole numbers, a float."""
    if isinstance(type, PtrType):
        return ARRAY_DTYPES[str(type.dtype)], f"%{name}".encode()
    assert isinstance(type, ScalarType)
    bits = type.bits or 64
    return (bits // 8, 0, 0) if type.is_float else (-(1 << bits - 1), (1 << bits - 1) - 1)


def quick(kernel: Launchable, library: Library, symbol: str, program: int) -> Quick | None:
    """The short way of a kernel, if it has one: it is one function, whose arguments are arrays of known types
    and numbers, none of which the launch fills in or deals out."""
    if len(kernel.functions) != 1 or kernel.dealt or len(kernel.args) > _MOST:
        return None
    if not all(a.name not in SPMD and _suits(a.type) for a in kernel.args):
        return None
    return Quick(kernel, library, symbol, program)


def _suits(type: Type) -> bool:
    if isinstance(type, ScalarType):
        return not type.is_float or str(type) in ("f32", "f64")
    return isinstance(type, PtrType) and type.space == "gm" and str(type.dtype) in ARRAY_DTYPES
