"""Memory of arguments: of the host, of a chip, or a window of a communicator.

All of it is memory of this process. A run works on copies of host memory and copies results back according to
its signature. It works directly on the memory of chips and windows.
"""

from __future__ import annotations

import ctypes
import enum
import math
from collections.abc import Sequence
from typing import Any

from ...runtime.memory import fenced
from .dtypes import DataType

MAX_DIMS = 5


class AddressSpace(enum.IntEnum):
    HOST = 0
    DEVICE = 1


class AccessMode(enum.IntEnum):
    READ = 0
    WRITE = 1
    READWRITE = 2


class BackendKind(enum.IntEnum):
    """Ways in which simpler shares memory between processes. Here it only records the purpose of a buffer."""

    FORK_SHM = 0
    POSIX_SHM = 1
    VMM_WINDOW = 2
    REMOTE_SIDECAR = 3
    DEVICE_MALLOC = 4
    FORK_COW = 5


class _SharedBytes:
    """Shared-memory interface to the bytes of a buffer."""

    def __init__(self, base: int, nbytes: int) -> None:
        self.buf = memoryview((ctypes.c_char * nbytes).from_address(base)).cast("B")
        self.size = nbytes

    def close(self) -> None:
        pass

    def unlink(self) -> None:
        pass


class Buffer:
    """Bytes from address `base`. `owner` keeps them alive; `chip` is the chip of the memory."""

    def __init__(
        self,
        base: int,
        nbytes: int,
        owner: object,
        kind: BackendKind = BackendKind.POSIX_SHM,
        chip: int = 0,
    ) -> None:
        self.base, self.nbytes, self.owner, self.backend_kind, self.owner_worker_id = (
            base,
            nbytes,
            owner,
            kind,
            chip,
        )
        self.access = AccessMode.READWRITE
        self.closed = False

    @classmethod
    def made(cls, nbytes: int, kind: BackendKind = BackendKind.POSIX_SHM, chip: int = 0) -> Buffer:
        """Return new memory of zeros, between guard pages."""
        if nbytes < 1:
            raise ValueError(f"expected a buffer of at least one byte, got {nbytes}")
        owner, base = fenced(nbytes)
        return cls(base, nbytes, owner, kind, chip)

    @property
    def address_space(self) -> AddressSpace:
        device = self.backend_kind in (BackendKind.VMM_WINDOW, BackendKind.DEVICE_MALLOC)
        return AddressSpace.DEVICE if device else AddressSpace.HOST

    @property
    def is_window(self) -> bool:
        return self.backend_kind is BackendKind.VMM_WINDOW

    @property
    def shm(self) -> _SharedBytes | None:
        return None if self.closed else _SharedBytes(self.base, self.nbytes)

    def tensor(
        self, shapes: Sequence[int], dtype: object, strides: Sequence[int] | None = None, byte_offset: int = 0
    ) -> Tensor:
        if self.closed:
            raise ValueError("the buffer has been released")
        return Tensor(self, byte_offset, tuple(int(n) for n in shapes), dtype, strides)

    def close(self) -> None:
        self.closed = True
        self.owner = None


class Tensor:
    """A view of a buffer: contiguous elements from a byte offset."""

    def __init__(
        self, buffer: Buffer, byte_offset: int, shapes: tuple[int, ...], dtype: object,
        strides: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        self.buffer, self.byte_offset, self.shapes = buffer, int(byte_offset), shapes
        self.dtype = DataType(getattr(dtype, "value", dtype))
        self.strides = _row_major(shapes)
        if strides is not None and tuple(strides) != self.strides:
            raise ValueError(
                f"expected contiguous strides {self.strides} for shape {shapes}, got {tuple(strides)}"
            )
        if not 0 < len(shapes) <= MAX_DIMS or min(shapes) < 0:
            raise ValueError(f"expected a tensor of 1 to {MAX_DIMS} dimensions, got shape {shapes}")
        if self.byte_offset < 0 or self.byte_offset % self.dtype.nbytes:
            raise ValueError(
                f"expected a byte offset that is a multiple of {self.dtype.nbytes}, the size of an element, "
                f"got {self.byte_offset}"
            )
        if self.byte_offset + self.nbytes > buffer.nbytes:
            raise ValueError(
                f"cannot place a tensor of {self.nbytes} bytes at byte {self.byte_offset} "
                f"of a buffer of {buffer.nbytes} bytes"
            )

    @property
    def nbytes(self) -> int:
        return math.prod(self.shapes) * self.dtype.nbytes

    @property
    def address(self) -> int:
        return self.buffer.base + self.byte_offset

    @property
    def data(self) -> int:
        return self.address

    @property
    def ndims(self) -> int:
        return len(self.shapes)


class MappedArg:
    """A tensor as an argument of a Python task."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self.byte_offset, self.shapes, self.strides = tensor.byte_offset, tensor.shapes, tensor.strides
        self.dtype = tensor.dtype.value

    @property
    def buffer(self) -> memoryview:
        room = self._tensor.buffer.nbytes - self._tensor.byte_offset
        return memoryview((ctypes.c_char * room).from_address(self._tensor.address)).cast("B")


class MappedArgs(list[MappedArg]):
    """The arguments of a Python task: a list of tensors, and scalars."""

    def __init__(self, tensors: list[Tensor], scalars: list[int]) -> None:
        super().__init__(map(MappedArg, tensors))
        self._scalars = scalars

    def tensor_count(self) -> int:
        return len(self)

    def scalar_count(self) -> int:
        return len(self._scalars)

    def scalar(self, i: int) -> int:
        return self._scalars[i]


def _row_major(shapes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shapes[i + 1 :]) for i in range(len(shapes)))


def host_range(value: Any, what: str) -> tuple[int, int, object]:
    """Return the address and size of the bytes of a host object, and an object that keeps them alive."""
    if isinstance(value, Buffer):
        return value.base, value.nbytes, value
    if hasattr(value, "data_ptr"):
        if value.device.type != "cpu" or not value.is_contiguous():
            raise ValueError(f"{what}: expected a contiguous tensor in host memory: use .cpu().contiguous()")
        return int(value.data_ptr()), value.numel() * value.element_size(), value
    if hasattr(value, "__array_interface__"):
        if not value.flags.c_contiguous:
            raise ValueError(f"{what}: expected a contiguous array: use numpy.ascontiguousarray")
        return int(value.ctypes.data), int(value.nbytes), value
    view = memoryview(value).cast("B")
    if view.readonly:
        kept = ctypes.create_string_buffer(view.tobytes(), len(view))
        return ctypes.addressof(kept), len(view), kept
    held = (ctypes.c_char * len(view)).from_buffer(view)
    return ctypes.addressof(held), len(view), held
