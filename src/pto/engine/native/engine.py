"""What makes the kernels of engine `native`: of programs, of files of images, and of objects."""

from __future__ import annotations

from ...ir.core import Module
from ...objects.contents import is_object
from ..compiled.kernel import CompiledKernel
from ..registry import Request
from .files import of_file
from .kernel import NativeKernel
from .object_kernel import ObjectKernel


def made(request: Request) -> CompiledKernel:
    r = request
    if isinstance(r.program, Module):
        return NativeKernel(r.program, r.entry, r.target, r.check)
    if is_object(r.program):
        return of_file(r.program, r.entry, r.target, r.capacity, ObjectKernel)
    return of_file(r.program, r.entry, r.target, r.capacity)
