"""Global memory of a run: each tensor in a place of its own, between guards that a stray write changes.

Outputs start with the content that they have in the host's tensors, as golden does; the tensors themselves
are left alone, so that nothing a run does can reach what it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .golden import Tensor

Array = np.ndarray[Any, Any]

_ALIGN = 4096
_GUARD = 4096
_PATTERN = 0xA5


class Memory:
    """Copies of tensors; addresses stay valid as long as this object lives."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._places: dict[str, tuple[Array, int, Tensor]] = {}
        for tensor in tensors:
            size = tensor.array.nbytes
            space = np.empty(size + 2 * _GUARD + _ALIGN, np.uint8)
            start = _GUARD + -(space.ctypes.data + _GUARD) % _ALIGN
            space[start - _GUARD : start] = _PATTERN
            space[start + size : start + size + _GUARD] = _PATTERN
            space[start : start + size] = tensor.array.reshape(-1).view(np.uint8)
            self._places[tensor.name] = space, start, tensor

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
            for name, (space, start, t) in self._places.items()
            if not t.output
            and not np.array_equal(space[start : start + t.array.nbytes], t.array.reshape(-1).view(np.uint8))
        ]
