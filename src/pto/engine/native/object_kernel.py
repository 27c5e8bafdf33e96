"""Kernels of shared objects: `pto run k.so`, `pto.kernel("k.so")`. They are like kernels of files of images,
but their code is machine code, which the virtual machine runs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ...objects.contents import check_runnable, refusal
from ..compiled.library import LaunchRecord, Library
from .files import ImageKernel
from .machine import MachineCode, library


class _Object(ctypes.Structure):
    """`pto_object` of native/vm/vm.hpp."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("code_count", ctypes.c_uint32),
        ("call_count", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("key", ctypes.c_uint64),
        ("target", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("codes", MachineCode * 2),
    )


class ObjectKernel(ImageKernel):
    """A kernel of a shared object."""

    def _codes(self) -> Sequence[MachineCode]:
        """Return the codes of the kernel from its description in the library."""
        path = self.file.name
        machine = library()
        try:
            self._loaded = Library(path, lambda data: check_runnable(data, path, self.name))
        except OSError as e:
            raise refusal(path, str(e)) from None
        said, launch = _Object(), LaunchRecord()
        launch.program = ctypes.addressof(said)
        answer = ctypes.c_void_p(ctypes.cast(machine.raw("pto_object_describe"), ctypes.c_void_p).value)
        entry = self._loaded.raw(self.name)
        if entry(ctypes.byref(launch), ctypes.byref(answer)) != 0:
            raise refusal(path, "it was made by another release")
        if said.code_count != len(self.image.codes):
            raise refusal(path, "its code and its image belong to different kernels")
        return said.codes[: said.code_count]
