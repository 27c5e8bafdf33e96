"""Ranks that another launcher (mpiexec) has started, on one machine or several, as a world to launch on."""

from __future__ import annotations

import os
from functools import cache

from .. import wire
from ..diag import Diagnostic, DiagnosticError
from ..engine.ranks import WINDOW_BYTES, Member, World
from .meeting import Meeting, Place, is_alone, placed
from .nodes import Mpi, Nodes, own_name


@cache
def _met(place: Place) -> Member:
    everyone = Mpi(place) if place.spread else Meeting(place)
    sent = everyone.all(wire.pack("s", own_name()))
    names = [wire.unpack("s", data, f"rank {rank}")[0] for rank, data in enumerate(sent)]
    if isinstance(everyone, Meeting) and len(set(names)) == 1:
        return everyone
    return Nodes(everyone, names)


def launched_ranks(window_bytes: int = WINDOW_BYTES) -> World:
    """The ranks that another launcher (mpiexec) has started, this process among them. Each of them makes the
    same worlds and the same launches, and has what all of them made."""
    place = placed(os.environ)
    if place is None and is_alone(os.environ):
        return World(1, window_bytes)
    if place is None:
        raise DiagnosticError([
            Diagnostic("PTO-E2422", "no launcher has started this process as a rank",
                       help="start it with mpiexec -n N, or make ranks in one process with pto.ranks(N)")
        ])  # fmt: skip
    return World(place.ranks, window_bytes, _met(place))
