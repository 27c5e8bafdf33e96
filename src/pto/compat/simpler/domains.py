"""Windows of a communicator: memory for each member, and the structure in which kernels find the windows of
others."""

from __future__ import annotations

from collections.abc import Callable

from ...engine import ranks
from ...isa.machine import MOST_RANKS
from .buffers import BackendKind, Buffer
from .task_interface import ChipDomainContext, CommBufferSpec, CommDomainHandle


def allocate(
    name: str,
    members: tuple[int, ...],
    window_size: int,
    specs: list[CommBufferSpec],
    number: int,
    released: Callable[..., None],
) -> CommDomainHandle:
    """Return new windows of zeros, in the order of the ranks."""
    if not members or len(set(members)) != len(members):
        raise ValueError(f"domain '{name}': expected one or more different workers, got {list(members)}")
    if len(members) > MOST_RANKS:
        raise ValueError(f"domain '{name}': expected at most {MOST_RANKS} members, got {len(members)}")
    if window_size < 1:
        raise ValueError(f"domain '{name}': expected a window of at least one byte, got {window_size}")
    wanted = sum(int(s.nbytes) for s in specs)
    if wanted > window_size:
        raise ValueError(f"domain '{name}': buffers need {wanted} bytes, window_size is {window_size}")
    names = [s.name for s in specs]
    if len(set(names)) != len(names):
        raise ValueError(f"domain '{name}': expected different names of buffers, got {', '.join(names)}")
    windows = [Buffer.made(window_size, BackendKind.VMM_WINDOW, chip) for chip in members]
    bases = [w.base for w in windows]
    contexts: dict[int, ChipDomainContext] = {}
    for rank, (chip, window) in enumerate(zip(members, windows, strict=True)):
        told = ranks.context(rank, bases, window_size)
        at, parts = 0, {}
        for spec in specs:
            # The windows and the structure for kernels live as long as any of these buffers.
            kept = (windows, told)
            parts[spec.name] = Buffer(window.base + at, int(spec.nbytes), kept, BackendKind.VMM_WINDOW, chip)
            at += int(spec.nbytes)
        context = ChipDomainContext(
            name, rank, len(members), told.ctypes.data, window.base, window_size, parts
        )
        context.__dict__["_kept"] = (windows, told)
        contexts[chip] = context
    return CommDomainHandle(name, members, contexts, number, released)
