"""Makes the kernels of engine `native`, from programs, files of images, objects, and texts that were run
before.

A text that is run again is not parsed, verified or lowered. The cache has its image, as a file of images
under a digest of the text, the options and this package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING

from ... import cache
from ...diag import DiagnosticError, Source
from ...ir.core import Module

if TYPE_CHECKING:
    from ..compiled.kernel import CompiledKernel
    from ..entry import Launchable
    from ..registry import Request


def made(request: Request) -> CompiledKernel:
    r = request
    if isinstance(r.program, Module):
        from .kernel import NativeKernel

        return NativeKernel(r.program, r.entry, r.target, r.check, r.insert_sync)
    from ...objects.contents import is_object
    from .files import of_file

    if is_object(r.program):
        from .object_kernel import ObjectKernel

        return of_file(r.program, r.entry, r.target, r.capacity, ObjectKernel)
    return of_file(r.program, r.entry, r.target, r.capacity)


def remembered(source: Source, options: Sequence[str], make: Callable[[], Launchable]) -> Launchable:
    """Return the kernel of a text with options, from the cache or made now; a kernel without findings is kept
    in the cache."""
    name = cache.key("image", _package(), source.name, source.text, *options)
    found = cache.find(name)
    if found is not None and found.path:
        from ...image import container
        from .files import ImageKernel
        from .machine import without_function

        try:
            file = container.read(found.data, found.path, own=True)  # compared with its digest
            if not without_function(file.images[0]):  # else the operations of its calls are needed
                return ImageKernel(file, file.images[0], own=True)
        except DiagnosticError:  # it has calls that cannot be compiled
            pass
    kernel = make()
    if not getattr(kernel, "findings", True):
        _keep(name, kernel)
    return kernel


def _keep(name: str, kernel: Launchable) -> None:
    from ...image import container
    from .images import file_of_kernel, only_in_process
    from .kernel import NativeKernel

    assert isinstance(kernel, NativeKernel)
    if only_in_process(kernel.image):
        return
    file = file_of_kernel(kernel.image, kernel)

    def build(work: Path) -> cache.Built:
        path = work / "kernel.elf"
        path.write_bytes(container.to_bytes(file))
        return cache.Built(str(path))

    try:
        cache.built(name, "image", build)
    except OSError:  # the cache is not writable: the next run takes as long as this one
        pass


@once
def _package() -> str:
    """Return a digest of this package from the sizes and times of its files: other versions may make other
    images."""
    root = Path(__file__).parents[2]
    return cache.key(*_stamps(str(root)))


def _stamps(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _stamps(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.name} {status.st_size} {status.st_mtime_ns}"
