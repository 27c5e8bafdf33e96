"""A program as a kernel of the task runtime: its image with the kinds of the slots of a task (`pto_task`)."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence

from ...image.format import Image, ImageCode
from ...image.generic import Origins
from ...ir.core import Value
from ...ir.facts import SPMD
from ...ir.types import MemRefType, ScalarType, ViewType
from ...isa.profiles import Profile
from .machine import MachineProgram, library

#: Kinds of arguments besides those that the launch sets; equal to native/vm/vm.hpp.
_NUMBER, _POINTER, _VIEW = range(len(SPMD), len(SPMD) + 3)


class _Task(ctypes.Structure):
    """`pto_task`."""

    _fields_ = (
        ("program", ctypes.c_void_p),
        ("kinds", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("code", ctypes.c_uint32),
        ("tensors", ctypes.c_uint32),
    )


class NativeTask:
    """A kernel of some kind for the runtime. It keeps the memory alive that the machine reads."""

    def __init__(
        self,
        image: Image,
        profile: Profile,
        kind: str,
        arguments: Sequence[Value],
        tensors: bool,
        meets: bool,
        origins: Origins | None = None,
    ) -> None:
        """`origins` are the operations of the calls of the image."""
        self.meets = meets  # it has a grid barrier, so its blocks wait for one another
        code = next(n for n, c in enumerate(image.codes) if c.kind == kind)
        codes = [_with_views(c, arguments) if n == code else c for n, c in enumerate(image.codes)]
        self._program = MachineProgram(image.replace(codes=tuple(codes)), profile, origins=origins)
        if self._program.updates:  # tasks run in parallel, and updates of executors are not atomic
            self._program.compile()
        self._kinds = (ctypes.c_uint8 * max(1, len(arguments)))(*map(_kind, arguments))
        self._names = (ctypes.c_char_p * max(1, len(arguments)))(*(f"%{a.name}".encode() for a in arguments))
        task = self._task = _Task()
        task.program, task.code, task.tensors = self._program.address, code, tensors
        task.kinds, task.names = ctypes.addressof(self._kinds), ctypes.addressof(self._names)
        base = code << 28  # the first mark of this code
        self.places = [(base + word, mark) for word, mark in image.codes[code].places]

    @property
    def function(self) -> int:
        """The address of the function of the machine that executes tasks."""
        return ctypes.cast(library().raw("pto_vm_task"), ctypes.c_void_p).value or 0

    @property
    def address(self) -> int:
        """The address of the task for a run; calls that were slow in earlier runs are compiled first."""
        self._program.compile_if_slow()
        return ctypes.addressof(self._task)

    @property
    def abi(self) -> int:
        """The version of the interface between the machine and the runtime."""
        abi = library().raw("pto_vm_task_abi")
        abi.restype = ctypes.c_uint64
        return abi()


def _with_views(code: ImageCode, arguments: Sequence[Value]) -> ImageCode:
    """Return a code whose frame has the shapes of views from their types, without gaps between elements: the
    slot of a task has only an address."""
    frame = bytearray(code.frame)
    for (place, _), argument in zip(code.arguments, arguments, strict=True):
        if isinstance(argument.type, ViewType):
            shape, strides = packed(argument.type)
            struct.pack_into("<10q", frame, place + 8, *shape, *strides)
    return code.replace(frame=bytes(frame))


def packed(view: ViewType) -> tuple[list[int], list[int]]:
    """Return the five dimensions of a view and its strides, without gaps between elements."""
    shape = [1] * (5 - view.rank) + [d or 0 for d in view.dims]
    return shape, [math.prod(shape[d + 1 :]) for d in range(5)]


def _kind(argument: Value) -> int:
    if argument.name in SPMD:
        return SPMD.index(argument.name)
    if isinstance(argument.type, ScalarType):
        return _NUMBER
    return _VIEW if isinstance(argument.type, ViewType | MemRefType) else _POINTER
