"""The virtual machine's library: finding it, its functions, and images made ready to run (native/vm/vm.hpp)."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

from ...diag import Diagnostic, DiagnosticError
from ...image.calls import key
from ...image.format import Image
from ...isa.machine import MEMORIES
from ...isa.profiles import ISAS, Profile
from ..compiled.library import Library

_KINDS = {"mix": 0, "cube": 1, "vector": 2}


class _Code(ctypes.Structure):
    """`pto_code`."""

    _fields_ = (
        ("words", ctypes.c_void_p),
        ("frame", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("frame_size", ctypes.c_uint32),
        ("argc", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class _Target(ctypes.Structure):
    """`pto_target`."""

    _fields_ = (
        ("isa", ctypes.c_uint8),
        ("left_by_columns", ctypes.c_uint8),
        ("capacity", ctypes.c_uint64 * len(MEMORIES)),
    )


class _Program(ctypes.Structure):
    """`pto_program`."""

    _fields_ = (
        ("target", _Target),
        ("functions", ctypes.c_void_p),
        ("codes", ctypes.c_void_p),
        ("code_count", ctypes.c_uint32),
    )


@cache
def library() -> Library:
    """The library of the package."""
    return Library(str(path()))


def path() -> Path:
    found = os.environ.get("PTO_VM_LIBRARY")
    if found:
        return Path(found)
    from importlib.resources import files

    return Path(str(files("pto"))) / "lib" / "libpto_vm.so"


class Program:
    """An image whose calls have been found. Keeps alive what the machine reads."""

    def __init__(self, image: Image, profile: Profile) -> None:
        calls = image.calls
        keys = (ctypes.c_uint64 * max(1, len(calls)))(*map(key, calls))
        names = (ctypes.c_char_p * max(1, len(calls)))(*(c.encode() for c in calls))
        self._functions = (ctypes.c_void_p * max(1, len(calls)))()
        missing = library().raw("pto_vm_find")(keys, names, len(calls), self._functions)
        if missing >= 0:
            raise DiagnosticError([
                Diagnostic("PTO-E1305", f"the native engine has no such call: {calls[missing]}",
                           help="use engine cpp or reference")
            ])  # fmt: skip
        codes = (_Code * len(image.codes))()
        self._kept: list[object] = [codes]
        for code, made in zip(image.codes, codes, strict=True):
            words = (ctypes.c_uint32 * len(code.words))(*code.words)
            frame = ctypes.create_string_buffer(code.frame, len(code.frame) or 1)
            arguments = (ctypes.c_uint32 * max(1, 2 * len(code.arguments)))(*(n for a in code.arguments for n in a))
            self._kept += [words, frame, arguments]
            made.words, made.frame = ctypes.addressof(words), ctypes.addressof(frame)
            made.arguments, made.argc = ctypes.addressof(arguments), len(code.arguments)
            made.frame_size, made.kind = len(code.frame), _KINDS[code.kind]
        program = self._program = _Program()
        program.target.isa = ISAS.index(profile.isa)
        program.target.left_by_columns = profile.left_blayout == "col_major"
        program.target.capacity[:] = [profile.capacity[loc] for loc in MEMORIES]
        program.functions = ctypes.addressof(self._functions)
        program.codes, program.code_count = ctypes.addressof(codes), len(image.codes)

    @property
    def address(self) -> int:
        return ctypes.addressof(self._program)
