"""Global memory of a run: each tensor lies between guard bytes, which a stray write changes. Inaccessible
pages around them stop accesses far outside the tensor.

Outputs start with the content of the host's tensors, as in golden. The host's tensors are not passed to the
run, so no fault of a run can change the expected results.
"""

from __future__ import annotations

import ctypes
import mmap
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from .golden import GoldenTensor

Array = np.ndarray[Any, Any]

_ALIGN = 4096
_GUARD = 4096
_FENCE = 1 << 16  # a multiple of every usual page size
_PATTERN = 0xA5


class TensorMemory:
    """Copies of tensors; addresses stay valid as long as this object lives."""

    def __init__(self, tensors: Iterable[GoldenTensor]) -> None:
        self._places: dict[str, tuple[Array, int, GoldenTensor]] = {}
        self._before: dict[str, int] = {}  # checksums, because golden may change the arrays of inputs
        for tensor in tensors:
            size = tensor.array.nbytes
            pages = -(-size // _ALIGN) * _ALIGN
            space = _fenced(pages + 2 * _GUARD)
            start = _FENCE + _GUARD
            space[start - _GUARD : start] = _PATTERN
            space[start + size : start + size + _GUARD] = _PATTERN
            content = tensor.array.reshape(-1).view(np.uint8)
            space[start : start + size] = content
            self._places[tensor.name] = space, start, tensor
            if not tensor.output:
                self._before[tensor.name] = zlib.crc32(content.data)

    @property
    def addresses(self) -> dict[str, int]:
        return {name: space.ctypes.data + start for name, (space, start, _) in self._places.items()}

    def array(self, name: str) -> Array:
        """Return a tensor as the run sees it."""
        space, start, tensor = self._places[name]
        flat = space[start : start + tensor.array.nbytes].view(tensor.array.dtype)
        return flat.reshape(tensor.array.shape)

    def strays(self) -> list[tuple[str, int]]:
        """Return the tensors with changed guard bytes: the name, and the byte offset of the nearest changed
        byte. Offsets count from the start of the tensor, and are negative before it."""
        found: list[tuple[str, int]] = []
        for name, (space, start, tensor) in self._places.items():
            end = start + tensor.array.nbytes
            before = np.flatnonzero(space[start - _GUARD : start] != _PATTERN)
            after = np.flatnonzero(space[end : end + _GUARD] != _PATTERN)
            if before.size:
                found.append((name, int(before[-1]) - _GUARD))
            if after.size:
                found.append((name, tensor.array.nbytes + int(after[0])))
        return found

    def changed_inputs(self) -> list[str]:
        """Return the names of inputs whose content has changed."""
        return [
            name
            for name, before in self._before.items()
            if zlib.crc32(self.array(name).reshape(-1).view(np.uint8).data) != before
        ]

    def near(self, address: int) -> str:
        """Describe an address near a tensor, or return ""."""
        for name, (space, start, tensor) in self._places.items():
            at = address - space.ctypes.data
            if 0 <= at < len(space):
                where = f"{start - at} bytes before" if at < start else f"byte {at - start} of"
                return f"{where} '{name}', which has {tensor.array.nbytes} bytes"
        return ""


def fenced(size: int) -> tuple[Array, int]:
    """Return zeroed memory between inaccessible pages, and its address, which is page-aligned."""
    space = _fenced(-(-size // _ALIGN) * _ALIGN)
    return space, space.ctypes.data + _FENCE


def _fenced(size: int) -> Array:
    """Return memory of whole pages between two inaccessible ranges."""
    space = mmap.mmap(-1, size + 2 * _FENCE)
    array = np.frombuffer(space, np.uint8)
    mprotect = getattr(ctypes.CDLL(None), "mprotect", None)
    if mprotect is not None and array.ctypes.data % mmap.PAGESIZE == 0 and _FENCE % mmap.PAGESIZE == 0:
        for at in (0, _FENCE + size):
            mprotect(ctypes.c_void_p(array.ctypes.data + at), ctypes.c_size_t(_FENCE), 0)
    return array
