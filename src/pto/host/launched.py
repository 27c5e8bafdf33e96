"""Ranks that another launcher (mpiexec) has started on one or several machines, as a world for launches."""

from __future__ import annotations

import os
from functools import cache

from .. import wire
from ..diag import Diagnostic, DiagnosticError
from ..engine.ranks import WINDOW_BYTES, Member, World
from .meeting import Meeting, RankPlace, is_alone, placed
from .nodes import Mpi, Nodes, own_name


@cache
def _met(place: RankPlace) -> Member:
    everyone = Mpi(place) if place.spread else Meeting(place)
    sent = everyone.all(wire.pack("s", own_name()))
    names = [wire.unpack("s", data, f"rank {rank}")[0] for rank, data in enumerate(sent)]
    if isinstance(everyone, Meeting) and len(set(names)) == 1:
        return everyone
    return Nodes(everyone, names)


def launched_ranks(window_bytes: int = WINDOW_BYTES) -> World:
    """Return the world of all ranks that another launcher (mpiexec) has started, including this process. Each
    rank makes the same worlds and launches, and gets the results of all ranks."""
    place = placed(os.environ)
    if place is None and is_alone(os.environ):
        return World(1, window_bytes)
    if place is None:
        raise DiagnosticError([
            Diagnostic("PTO-E2422", "cannot find the rank of this process: no launcher has set it",
                       help="start it with mpiexec -n N, or make ranks in one process with pto.ranks(N)")
        ])  # fmt: skip
    return World(place.ranks, window_bytes, _met(place))
