"""A built kernel: a shared library and the C interface of native/include/pto/launch.hpp."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

_ERROR_SIZE = 8192


class Launch(ctypes.Structure):
    """`pto_launch` of launch.hpp."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("argc", ctypes.c_int32),
        ("args", ctypes.c_void_p),
        ("special", ctypes.c_char_p),
        ("blocks", ctypes.c_int32),
        ("subblocks", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("status", ctypes.c_int32),
        ("print", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("error_size", ctypes.c_uint64),
    )


class ViewArgument(ctypes.Structure):
    """`pto_view` of launch.hpp: an argument that is a GlobalTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * 5),
        ("stride", ctypes.c_int64 * 5),
    )


_PRINT = ctypes.CFUNCTYPE(None, ctypes.c_char_p)

#: What a launch came to.
DONE, FAILED, STUCK = 0, 1, 2


class Library:
    """Entry points of a shared library, by the symbols `launcher.Entry` gives them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._loaded = ctypes.CDLL(path)

    def launch(
        self,
        symbol: str,
        words: Sequence[int],
        blocks: int = 1,
        subblocks: int = 2,
        threads: int = 1,
        special: bytes | None = None,
        write: Callable[[str], Any] | None = None,
    ) -> tuple[int, str]:
        """Call an entry point with 64-bit words; DONE, FAILED or STUCK, and what it said.

        `special` has a byte per word: 1, 2 and 3 stand for the block, the number of blocks and the sub-block
        of the core, 0 for the word itself. `write` receives what the kernel prints.
        """
        function = getattr(self._loaded, symbol)
        error = ctypes.create_string_buffer(_ERROR_SIZE)
        array = (ctypes.c_uint64 * max(1, len(words)))(*words)
        launch = Launch()
        launch.size = ctypes.sizeof(Launch)
        launch.argc = len(words)
        launch.args = ctypes.addressof(array)
        launch.special = special
        launch.blocks, launch.subblocks, launch.threads = blocks, subblocks, threads
        printer = None
        if write is not None:
            printer = _PRINT(lambda text: _write(write, text))
            launch.print = ctypes.cast(printer, ctypes.c_void_p)
        launch.error, launch.error_size = ctypes.addressof(error), _ERROR_SIZE
        status = int(function(ctypes.byref(launch)))
        return status, error.value.decode("utf-8", "replace")


def _write(write: Callable[[str], Any], text: bytes) -> None:
    write(text.decode("utf-8", "replace"))
