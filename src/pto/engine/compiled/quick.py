"""Launches whose arguments are what a kernel takes, as they stand: arrays of its element types, dense and not
read-only, and numbers in range. Nothing is described anew but their addresses and sizes.

What a caller may give besides goes the long way (`kernel.py`), and so do all messages.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.types import PtrType, ScalarType
from ..elements import ARRAY_DTYPES
from ..entry import SPMD, Launchable
from .library import ArrayArgument, Launch, Library, Outcome, outcome

_ERROR_SIZE = 8192
_PRINT = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_one = ctypes.c_char.from_buffer
_addressof = ctypes.addressof


@_PRINT
def _print(text: bytes) -> None:
    sys.stdout.write(text.decode("utf-8", "replace"))


class _Form:
    """A launch but for its arguments, in memory that one launch at a time writes to."""

    def __init__(self, names: Sequence[bytes], words: int, program: int) -> None:
        count = len(names)
        self.words = bytearray(8 * max(1, words))
        self.arrays = (ArrayArgument * max(1, count))(*((0, 0, name) for name in names))
        self.sizes = memoryview(self.arrays).cast("B")
        self.error = ctypes.create_string_buffer(_ERROR_SIZE)
        self._held = (ctypes.c_char * len(self.words)).from_buffer(self.words)
        launch = self.launch = Launch()
        launch.size, launch.argc, launch.args = ctypes.sizeof(Launch), words, ctypes.addressof(self._held)
        launch.blocks = launch.threads = 1
        launch.print = ctypes.cast(_print, ctypes.c_void_p)
        launch.error, launch.error_size = ctypes.addressof(self.error), _ERROR_SIZE
        launch.arrays, launch.array_count = ctypes.addressof(self.arrays), count
        launch.mark = -1
        launch.program = program
        self.reference = ctypes.byref(launch)


class Quick:
    """The short way for one kernel."""

    def __init__(self, kernel: Launchable, library: Library, symbol: str, program: int) -> None:
        self._call: Callable[[Any], int] = library.raw(symbol)
        self._program = program
        self._wanted = [(_dtype(a.type), _range(a.type)) for a in kernel.args]
        self._names = [
            f"%{a.name}".encode() for a, (d, _) in zip(kernel.args, self._wanted, strict=True) if d
        ]
        self._words = struct.Struct(f"{len(self._wanted)}Q").pack_into
        self._sizes = struct.Struct("QQ8x" * len(self._names)).pack_into
        self._spare: list[_Form] = []  # a launch takes one, so that several can go on at once
        self._subblocks = kernel.subblocks

    def launch(self, args: Sequence[Any], blocks: int, threads: int) -> Outcome | None:
        """What a launch came to; None where its arguments need more than this, and nothing was done."""
        words: list[int] = []
        sizes: list[int] = []
        wanted = self._wanted
        if len(args) != len(wanted):
            return None
        try:
            for value, (dtype, limits) in zip(args, wanted, strict=False):
                if dtype is not None:
                    if type(value) is not np.ndarray or value.dtype is not dtype:
                        return None
                    address = _addressof(_one(value))
                    words.append(address)
                    sizes += (address, value.nbytes)
                elif type(value) is int and limits[0] <= value <= limits[1]:
                    words.append(value & 0xFFFFFFFFFFFFFFFF)
                elif type(value) is float and limits in _FLOATS:
                    words.append(int.from_bytes(_FLOATS[limits](value), "little"))
                else:
                    return None
        except (TypeError, ValueError, OverflowError):  # to be read only, with gaps, or empty; too large
            return None
        try:
            form = self._spare.pop()
        except IndexError:
            form = _Form(self._names, len(wanted), self._program)
            form.launch.subblocks = self._subblocks
        self._words(form.words, 0, *words)
        self._sizes(form.sizes, 0, *sizes)
        if blocks != 1 or threads != 1:
            form.launch.blocks, form.launch.threads = blocks, threads
        status = self._call(form.reference)
        done = _DONE if status == 0 else outcome(status, form.error, form.launch)
        if blocks != 1 or threads != 1:
            form.launch.blocks = form.launch.threads = 1
        self._spare.append(form)
        return done


_DONE = Outcome(0, "")
#: Floats as their bits, by what `_range` says of their types.
_FLOATS = {(32, 0): struct.Struct("<f").pack, (64, 0): struct.Struct("<d").pack}


def _dtype(type: Any) -> np.dtype[Any] | None:
    return ARRAY_DTYPES[str(type.dtype)] if isinstance(type, PtrType) else None


def _range(type: Any) -> tuple[int, int]:
    """The whole numbers that a scalar takes as they are; of a float its bits and 0, which are none."""
    if not isinstance(type, ScalarType):
        return 1, 0
    bits = type.bits or 64
    if type.is_float:
        return (bits, 0) if str(type) in ("f32", "f64") else (1, 0)
    return -(1 << bits - 1), (1 << bits - 1) - 1


def suits(kernel: Launchable) -> bool:
    """Whether a kernel has a short way: one function, whose arguments are arrays of known types and numbers,
    none of which the launch fills in or deals out."""
    return (
        len(kernel.functions) == 1
        and not kernel.dealt
        and all(
            a.name not in SPMD
            and (
                isinstance(a.type, ScalarType)
                or (
                    isinstance(a.type, PtrType) and a.type.space == "gm" and str(a.type.dtype) in ARRAY_DTYPES
                )
            )
            for a in kernel.args
        )
    )
