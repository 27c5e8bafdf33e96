"""What makes the kernels of engine `native`: of programs, of files of images, of objects, of texts that
it knows already.

Of a text that is run again nothing is parsed, verified or lowered: its image is in the cache, as a file of
images under the digest of the text, of the options and of this package.
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

        return NativeKernel(r.program, r.entry, r.target, r.check)
    from ...objects.contents import is_object
    from .files import of_file

    if is_object(r.program):
        from .object_kernel import ObjectKernel

        return of_file(r.program, r.entry, r.target, r.capacity, ObjectKernel)
    return of_file(r.program, r.entry, r.target, r.capacity)


def remembered(source: Source, options: Sequence[str], make: Callable[[], Launchable]) -> Launchable:
    """The kernel of a text with options: of the cache, or made now and kept where nothing was found fault
    with."""
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
        except DiagnosticError:  # it has calls that have to be compiled and cannot be
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
    except OSError:  # nowhere to write: the next run takes as long as this one
        pass


@once
def _package() -> str:
    """A digest of this package, by sizes and times of its files: another one may make other images."""
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
