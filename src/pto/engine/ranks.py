"""Several ranks in one process: a window in each rank, and a structure with which kernels reach the windows
of other ranks.

    world = pto.ranks(4)
    x = world.window((1, 256), "f32")  # one per rank, at the same place of its memory, zero at first
    world.run(kernel, lambda rank: [inputs[rank], x, world.context, outputs[rank]])
    x[2]                               # the window of rank 2

A kernel finds the others as on hardware: with a structure of its rank, the number of ranks and the address of
each window (`CONTEXT_WORDS`). A pointer into a window, plus the distance to the window of another rank,
points into the latter.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..files import unnamed
from ..isa.dtypes import SPELLINGS
from ..isa.machine import MOST_RANKS
from ..wire import SHORT
from .elements import Array
from .memory import array_of, stored_shape

if TYPE_CHECKING:
    from .compiled.nodes import Far
    from .result import LaunchResult

#: Default limit for the windows of one rank together, in bytes. Untouched pages cost nothing.
WINDOW_BYTES = 200 << 20
#: Offset of windows in the memory of their rank.
WINDOW_ALIGN = 32

#: Size of the structure in words of 8 bytes: two words of a work space; rank and number of ranks (4 bytes
#: each); bytes of a window; then the address of each window, once for reading and once for writing.
CONTEXT_WORDS = 4 + 2 * MOST_RANKS
_RANK, _BYTES, _FIRST = 2, 3, 4


class Launches(Protocol):
    """A kernel, which is launched on all ranks."""

    def run(self, *args: object, **options: object) -> LaunchResult: ...


class RankContext:
    """Placeholder for the structure of a rank among arguments: each rank gets its own."""

    def __repr__(self) -> str:
        return "<the context of a rank>"


class Window:
    """Memory at the same place of every rank, which the other ranks can reach."""

    def __init__(self, world: World, offset: int, shape: tuple[int, ...], dtype: str) -> None:
        self.world = world
        self.offset = offset
        self.shape = shape
        self.dtype = dtype

    def __getitem__(self, rank: int) -> Array:
        """Return the array of a rank."""
        if not 0 <= rank < self.world.ranks:
            raise IndexError(f"rank {rank} of {self.world.ranks}")
        kind = array_of(self.dtype)
        return np.ndarray(self.shape, kind, self.world.memory(rank), self.offset)

    @property
    def size(self) -> int:
        """Return the bytes for one rank."""
        return self[0].nbytes

    def __repr__(self) -> str:
        return f"<Window {'x'.join(map(str, self.shape))}x{self.dtype} of {self.world.ranks} ranks>"


def context(rank: int, starts: Sequence[int], window: int) -> Array:
    """Return the structure of a rank among ranks whose windows of `window` bytes begin at `starts`."""
    words = np.zeros(CONTEXT_WORDS, np.int64)
    words[_RANK] = len(starts) << 32 | rank
    words[_BYTES] = window
    for first in (_FIRST, _FIRST + MOST_RANKS):
        words[first : first + len(starts)] = starts
    words.flags.writeable = False
    return words


class Member(Protocol):
    """This process as one of the ranks that another launcher has started."""

    rank: int
    ranks: int

    @property
    def first(self) -> bool:
        """Return True for the first rank on its machine."""
        ...

    @property
    def far(self) -> Far | None:
        """Return the ranks on other machines, if there are any."""
        ...

    def share(self, make: Callable[[], int]) -> int:
        """Return a file for all ranks of a machine, made by the first of them."""
        ...

    def all(self, mine: bytes, most: int = SHORT) -> list[bytes]:
        """Send a message to all ranks, and return the messages of all ranks once all have been sent. Refuse a
        message of more than `most` bytes.
        """
        ...


class World:
    """A number of ranks that run together, and their windows, which keep their contents between launches.
    With `member` this process is one of the ranks: every process makes the same world, with the same
    launches.
    """

    def __init__(self, ranks: int, window_bytes: int = WINDOW_BYTES, member: Member | None = None) -> None:
        if isinstance(ranks, bool) or not isinstance(ranks, int) or not 1 <= ranks <= MOST_RANKS:
            raise ValueError(f"expected 1 to {MOST_RANKS} ranks, got {ranks!r}")
        self.ranks = ranks
        #: Bytes from the memory of one rank to that of the next.
        self.stride = -(-window_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self.windows: list[Window] = []
        self.context = RankContext()
        self.member = member
        #: Bytes of the windows of a rank.
        self.used = 0
        #: The same for windows on several machines.
        self.number = 0
        self._memory: Any = None
        if member is not None and member.far is not None:
            file = member.share(lambda: unnamed("pto-windows", ranks * self.stride))
            self.number, self._memory = member.far.map(file, self.stride)
        else:
            self._memory = self.room(ranks * self.stride)

    def window(self, shape: int | Sequence[int], dtype: str = "f32") -> Window:
        """Return memory of a shape for every rank."""
        found = SPELLINGS.get(str(dtype).lower())
        if found is None:
            raise ValueError(f"unknown element type {dtype!r}")
        dims = stored_shape((shape,) if isinstance(shape, int) else tuple(shape), found.name)
        made = Window(self, self.used, dims, found.name)
        size = int(np.prod(dims, dtype=object)) * array_of(found.name).itemsize
        if made.offset + size > self.stride:
            raise ValueError(
                f"cannot place windows of {made.offset + size} bytes in the {self.stride} bytes of a rank: "
                "pass a larger window_bytes"
            )
        self.used = -(-(made.offset + size) // WINDOW_ALIGN) * WINDOW_ALIGN
        self.windows.append(made)
        return made

    def room(self, size: int) -> mmap.mmap:
        """Return memory that the processes of all ranks on this machine share, zero at first."""
        if self.member is None:  # for forked processes
            return mmap.mmap(-1, size)
        file = self.member.share(lambda: unnamed("pto-windows", size))
        try:
            return mmap.mmap(file, size)
        finally:
            os.close(file)

    def memory(self, rank: int) -> memoryview:
        """Return the bytes of all windows of a rank."""
        return memoryview(self._memory).cast("B")[rank * self.stride : (rank + 1) * self.stride]

    @property
    def address(self) -> int:
        """Return the address of the memory of rank 0 in this process."""
        return np.frombuffer(self._memory, np.uint8).ctypes.data

    def context_of(self, rank: int, base: int) -> Array:
        """Return the structure of a rank if the memory of rank 0 begins at `base`."""
        return context(rank, [base + n * self.stride for n in range(self.ranks)], self.stride)

    def run(
        self, kernel: Launches, args: Sequence[Sequence[object]] | Callable[[int], Sequence[object]],
        **options: object,
    ) -> LaunchResult:  # fmt: skip
        """Launch a kernel on all ranks. `args` are the arguments of each rank, or a function that returns
        them: arrays and numbers of the rank, windows, and `context` for the structure. Options are those of
        `kernel.run`."""
        given = [args(rank) for rank in range(self.ranks)] if callable(args) else list(args)
        if len(given) != self.ranks:
            raise ValueError(f"expected arguments for {self.ranks} ranks, got them for {len(given)}")
        return kernel.run(*given, ranks=self, **options)

    def __repr__(self) -> str:
        return f"<{self.ranks} ranks, {len(self.windows)} windows>"


def ranks(count: int, window_bytes: int = WINDOW_BYTES) -> World:
    """Make ranks to launch kernels on; see `World`."""
    return World(count, window_bytes)
