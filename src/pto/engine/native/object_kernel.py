"""Kernels of shared objects: `pto run k.so`, `pto.kernel("k.so")`. Their program is in the object, their code
is machine code that the virtual machine runs, and what that calls is found as for images."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence

from ...bytecode import from_bytecode
from ...diag import Diagnostic, DiagnosticError
from ...isa.profiles import Profile
from ...objects.contents import refusal, runnable
from ...reading import read
from ..compiled.library import Launch, Library
from ..entry import Launchable
from .kernel import NativeKernel
from .machine import Code, Program, library


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
        ("codes", Code * 2),
    )


class ObjectKernel(NativeKernel):
    """A kernel of a shared object: its machine code on the virtual machine, which has its calls."""

    def __init__(
        self, path: str, entry: str | None, target: str | Profile | None, capacity: Mapping[str, int]
    ) -> None:
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError:
            raise DiagnosticError(read(path)[1]) from None
        found = runnable(data, path)
        module = from_bytecode(found.program, path)
        Launchable.__init__(self, module, entry, target, False)
        image = found.images.get(self.name)
        if image is None:
            help = f"it has {', '.join('@' + name for name in found.images)}"
            raise DiagnosticError([
                Diagnostic("PTO-E2404", f"no kernel '@{self.name}' in '{path}'", help=help)
            ])  # fmt: skip
        if image.target != self.profile.name:
            raise DiagnosticError([
                Diagnostic("PTO-E2405", f"'{path}' was made for {image.target}, not for {self.profile.name}",
                           help="make it again: ptoas FILE -o k.so")
            ])  # fmt: skip
        self.profile = self.profile.override(capacity)
        self.findings, self.image = [], image
        self._made = Program(image, self.profile, self._codes(path))
        self._launched()

    def _codes(self, path: str) -> Sequence[Code]:
        """What the kernel says its code is."""
        machine = library()
        try:
            self._loaded = Library(os.path.abspath(path))
        except OSError as e:
            raise refusal(path, str(e).removeprefix(f"{os.path.abspath(path)}: ")) from None
        said, launch = _Object(), Launch()
        launch.program = ctypes.addressof(said)
        answer = ctypes.c_void_p(ctypes.cast(machine.raw("pto_object_describe"), ctypes.c_void_p).value)
        entry = self._loaded.raw(self.name)
        if entry(ctypes.byref(launch), ctypes.byref(answer)) != 0:
            raise refusal(path, "it was made by another release")
        if said.code_count != len(self.image.codes):
            raise refusal(path, "its code and its image are not of one kernel")
        return said.codes[: said.code_count]
