"""Windows of ranks on other machines (native/host/nodes.hpp), in the process of one rank."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

from ...diag import Diagnostic, DiagnosticError
from . import group

#: The interval in milliseconds at which a wait for other nodes checks for an interrupt.
_PATIENCE = 100


@cache
def _host() -> ctypes.CDLL:
    host = ctypes.CDLL(str(group.library()))
    host.pto_nodes_open.restype = ctypes.c_void_p
    host.pto_nodes_map.restype = ctypes.c_void_p
    host.pto_nodes_map.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_uint64]
    host.pto_nodes_unmap.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    host.pto_nodes_begin.restype = ctypes.c_void_p
    host.pto_nodes_begin.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]
    host.pto_nodes_end.argtypes = host.pto_nodes_met.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    host.pto_nodes_refresh.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint64]
    host.pto_nodes_problem.restype = ctypes.c_char_p
    host.pto_nodes_problem.argtypes = host.pto_nodes_close.argtypes = [ctypes.c_void_p]
    return host


class Far:
    """The ranks of other nodes: a connected socket for each, and None for the ranks of this node."""

    def __init__(self, rank: int, sockets: Sequence[int | None]) -> None:
        self._ranks = len(sockets)
        self._worlds = 0
        files = (ctypes.c_int32 * self._ranks)(*(-1 if file is None else file for file in sockets))
        self._nodes = _host().pto_nodes_open(rank, self._ranks, files)
        if self._nodes is None:
            raise DiagnosticError([
                Diagnostic("PTO-E2420", f"rank {rank} cannot start a thread to receive from other machines")
            ])  # fmt: skip

    def map(self, file: int, stride: int) -> tuple[int, Any]:
        """Map the windows of a new world; `file` has the windows of this node. Return the number of the
        world, which is the same in all processes that make the same worlds, and its memory, freed after its
        last use.
        """
        self._worlds += 1
        at = _host().pto_nodes_map(self._nodes, self._worlds, file, stride)
        os.close(file)
        if at is None:
            raise MemoryError(f"no memory for windows of {self._ranks} ranks of {stride} bytes")
        memory = (ctypes.c_ubyte * (self._ranks * stride)).from_address(at)
        weakref.finalize(memory, _host().pto_nodes_unmap, self._nodes, self._worlds).atexit = False
        return self._worlds, memory

    def begin(self, world: int, place: int) -> int:
        """Begin a launch in the group of this node; return the address of its access to other nodes."""
        return _host().pto_nodes_begin(self._nodes, world, place)

    def end(self, well: bool) -> None:
        """End the launch on this node; return after it has ended on all nodes."""
        _host().pto_nodes_end(self._nodes, well)
        while not _host().pto_nodes_met(self._nodes, _PATIENCE):
            pass

    def refresh(self, world: int, size: int) -> None:
        """Copy the first `size` bytes of the windows of other nodes to this node."""
        if not _host().pto_nodes_refresh(self._nodes, world, size):
            self.check()

    def check(self) -> None:
        """Raise if a rank has left, or has sent an invalid message."""
        problem: bytes | None = _host().pto_nodes_problem(self._nodes)
        if problem is not None:
            code, _, message = problem.decode()[1:].partition("] ")
            raise DiagnosticError([Diagnostic(code, message, help="see the output of that rank")])

    def close(self) -> None:
        """Leave the other ranks, and notify them."""
        _host().pto_nodes_close(self._nodes)
