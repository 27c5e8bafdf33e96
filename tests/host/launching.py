"""A launcher of ranks for tests: what one says to the processes it starts is in their environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

#: What MPICH and Open MPI call the rank and the number of ranks.
LAUNCHERS = (("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))


def start(
    count: int, *command: str, launcher: int = 0, timeout: float = 120, **more: Callable[[int], object]
) -> list[tuple[int, str, str]]:
    """Status and what was said by each of so many ranks; `more` are other variables, by rank."""
    rank_name, size_name = LAUNCHERS[launcher]
    processes = [
        subprocess.Popen(
            command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, rank_name: str(rank), size_name: str(count),
                 **{name: str(of(rank)) for name, of in more.items()}},
        )
        for rank in range(count)
    ]  # fmt: skip
    said = [process.communicate(timeout=timeout) for process in processes]
    return [(process.returncode, *both) for process, both in zip(processes, said, strict=True)]
