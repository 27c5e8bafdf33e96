"""Engine `cpp` for the registry: it makes kernels, and the remark for `pto doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import cache
from ...ir.core import Module

if TYPE_CHECKING:
    from ..compiled.kernel import CompiledKernel
    from ..registry import Request


def made(request: Request) -> CompiledKernel:
    """Return the requested kernel, of a program or of a file."""
    r = request
    if isinstance(r.program, Module):
        from .kernel import CppKernel

        return CppKernel(r.program, r.entry, r.target, r.check, r.checked)
    from .files import FileKernel

    return FileKernel(r.program, r.entry, r.target, r.checked, r.capacity, r.auto)


def remark() -> str:
    """Return the remark of this engine for `pto doctor`."""
    return f" (cache: {cache.folder()})"
