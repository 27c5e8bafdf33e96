"""Engine `native` as the registry knows it: its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.core import Module

if TYPE_CHECKING:
    from ..registry import Request
    from .kernel import NativeKernel


def made(request: Request) -> NativeKernel:
    """The kernel that is asked for, of a program or of an object."""
    r = request
    if isinstance(r.program, Module):
        from .kernel import NativeKernel

        return NativeKernel(r.program, r.entry, r.target, r.check)
    from .object_kernel import ObjectKernel

    return ObjectKernel(r.program, r.entry, r.target, r.capacity)
