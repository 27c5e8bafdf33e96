"""Global memory of a run: each tensor in a place of its own, between guards that a stray write changes, and
behind those pages that nobody may touch: what goes far beside a tensor is stopped there, whatever it hits.

Outputs start with the content that they have in the host's tensors, as golden does; the tensors themselves
are left alone, so that nothing a run does can reach what it is compared with.
"""

from __future__ import annotations

import ctypes
import mmap
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from .golden import Tensor

Array = np.ndarray[Any, Any]

_ALIGN = 4096
_GUARD = 4096
_FENCE = 1 << 16  # a multiple of any page
_PATTERN = 0xA5


class TensorMemory:
    """Copies of tensors; addresses stay valid as long as this object lives."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._places: dict[str, tuple[Array, int, Tensor]] = {}
        self._before: dict[str, int] = {}  # checksums of what is no output: golden may change its own copy
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
        """A tensor as the run sees it."""
        space, start, tensor = self._places[name]
        flat = space[start : start + tensor.array.nbytes].view(tensor.array.dtype)
        return flat.reshape(tensor.array.shape)

    def strays(self) -> list[tuple[str, int]]:
        """Tensors that something wrote beside: the offset in bytes of the nearest such byte, from the start
        of the tensor, negative before it."""
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
        """Tensors that are no outputs but have another content than before."""
        return [
            name
            for name, before in self._before.items()
            if zlib.crc32(self.array(name).reshape(-1).view(np.uint8).data) != before
        ]

    def near(self, address: int) -> str:
        """Words for an address that lies beside a tensor, or nothing."""
        for name, (space, start, tensor) in self._places.items():
            at = address - space.ctypes.data
            if 0 <= at < len(space):
                where = f"{start - at} bytes before" if at < start else f"byte {at - start} of"
                return f"{where} '{name}', which has {tensor.array.nbytes} bytes"
        return ""


def fenced(size: int) -> tuple[Array, int]:
    """Memory of zeros, and where it begins: at a page, between pages that nobody may touch."""
    space = _fenced(-(-size // _ALIGN) * _ALIGN)
    return space, space.ctypes.data + _FENCE


def _fenced(size: int) -> Array:
    """Memory of whole pages between two stretches that nobody may touch."""
    space = mmap.mmap(-1, size + 2 * _FENCE)
    array = np.frombuffer(space, np.uint8)
    mprotect = getattr(ctypes.CDLL(None), "mprotect", None)
    if mprotect is not None and array.ctypes.data % mmap.PAGESIZE == 0 and _FENCE % mmap.PAGESIZE == 0:
        for at in (0, _FENCE + size):
            mprotect(ctypes.c_void_p(array.ctypes.data + at), ctypes.c_size_t(_FENCE), 0)
    return array
