"""What makes the kernels of engine `native`: of programs, and of files of images."""

from __future__ import annotations

from ...ir.core import Module
from ..compiled.kernel import CompiledKernel
from ..registry import Request
from .files import of_file
from .kernel import NativeKernel


def made(request: Request) -> CompiledKernel:
    r = request
    if isinstance(r.program, Module):
        return NativeKernel(r.program, r.entry, r.target, r.check)
    return of_file(r.program, r.entry, r.target, r.capacity)
