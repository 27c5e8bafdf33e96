"""Blocks of tasks with equal traces: the findings for one of them hold for all.

A graph calls a kernel thousands of times, mostly with different tensors only. The findings of sanitizers in a
block follow from its trace. The positions of its data do not matter: the addresses of its arrays, the start
offset in each array and, in an array that the block only reads, the position of each part. So only one of the
blocks with equal traces is executed. For the others, two checks remain: each block stays within its own
arrays, and the bytes that it reads are defined.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from ctypes import string_at
from typing import Any, NamedTuple

import numpy as np

from ..engine.region import Region
from ..engine.traced.contents import by_contents
from ..engine.traced.types import Layouts, names
from .task_traces import Block, TaskArray, arrays_of
from .written_bytes import Defined, Where, bounds

#: Alignment of global memory: distances between data are compared modulo this number.
_ALIGNED = 512
#: Limits for the kinds of blocks that are kept, for variants of a kind with other distances, and for accesses
#: of a block.
_MOST = 1024
_MOST_OF_A_KIND = 8
_MOST_ACCESSES = 1 << 15


def rename(words: Any, at: list[int]) -> None:
    """Number the values at these positions by first occurrence, because only their equality matters."""
    if at:
        _, first, same = np.unique(words[at], return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.uint64)
        rank[np.argsort(first)] = np.arange(len(first), dtype=np.uint64)
        words[at] = rank[same]


class BlockTrace(NamedTuple):
    """The trace of a block, and the positions of its data."""

    key: bytes
    arrays: list[TaskArray]
    #: By array: the traced positions in it, in bytes from its start, with repetitions.
    places: list[Any]


class TaskAccess(NamedTuple):
    """Bytes of an array that a block touches."""

    write: bool
    array: int
    #: The traced position that the bytes belong to; None if that is unknown.
    place: int | None
    where: Where


class Findings(NamedTuple):
    """The findings for the first block of a kind."""

    #: Keys of reports: their source locations.
    problems: list[Any]
    accesses: list[TaskAccess]
    #: By array, position and access kind (True: write): the first byte that is touched, and the end.
    spans: dict[tuple[int, int | None, bool], tuple[int, int]]
    #: Arrays in which the distances between positions have to be the same.
    rigid: frozenset[int]
    places: list[Any]

    def moves(self, told: BlockTrace) -> list[dict[int | None, list[int]]] | None:
        """Return, by array and position, the distances to the same position in another block, one per traced
        occurrence. Return None if the blocks have other differences.
        """
        found: list[dict[int | None, list[int]]] = []
        for n, (mine, first) in enumerate(zip(told.places, self.places, strict=True)):
            move = mine.astype(np.int64) - first.astype(np.int64)
            if (move % _ALIGNED).any() or (n in self.rigid and (move != move[:1]).any()):
                return None
            each: dict[int | None, list[int]] = {None: [int(move[0]) if move.size else 0]}
            if n not in self.rigid:
                pairs = np.unique(np.stack([first.astype(np.int64), move]), axis=1)
                for place, further in pairs.T.tolist():
                    each.setdefault(place, []).append(further)
            found.append(each)
        return found


class ByteUse(NamedTuple):
    """Bytes of memory that a block touches, possibly with gaps."""

    array: int
    first: int
    last: int  # exclusive
    write: bool


def spans_of(accesses: Sequence[TaskAccess]) -> dict[tuple[int, int | None, bool], tuple[int, int]]:
    """Return the bounds of the accesses by array, position and access kind."""
    spans: dict[tuple[int, int | None, bool], tuple[int, int]] = {}
    for write, n, place, where in accesses:
        low, high = bounds(where)
        if low < high:
            known = spans.get((n, place, write), (low, high))
            spans[n, place, write] = min(low, known[0]), max(high, known[1])
    return spans


class KnownFindings:
    """Findings of executed blocks, by their traces."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Findings]] = {}
        self._layouts: Layouts = {}
        self._by_contents: dict[int, bool] = {}

    def told(self, cores: Block) -> BlockTrace | None:
        """Return the trace of a block; None if the trace does not determine what the block does."""
        arrays = arrays_of(cores)
        order = sorted(range(len(arrays)), key=lambda n: arrays[n].address)
        numbers = np.array(order, np.intp)
        starts = np.array([arrays[n].address for n in order], np.uint64)
        ends = np.array([arrays[n].address + arrays[n].size for n in order], np.uint64)
        digest = hashlib.blake2b(digest_size=16)
        words: list[Any] = []
        places: list[Any] = []  # the words with addresses, of all cores
        before = 0
        for key in sorted(cores):
            core = cores[key]
            mine = core.numbers()
            told = names(core.words, self._layouts)
            if any([self._decides(form) for form in told.forms]):
                return None
            digest.update(repr((key, core.library, len(mine))).encode())
            rename(mine, told.objects)
            words.append(mine)
            places.append(np.array(told.addresses, np.intp) + before)
            before += len(mine)
        all_words, at = np.concatenate(words), np.concatenate(places)
        # the array of each address, as `Memory.at` finds it
        which = np.searchsorted(starts, all_words[at], "right").astype(np.intp) - 1
        inside = which >= 0
        inside[inside] = all_words[at[inside]] <= ends[which[inside]]
        at, which = at[inside], which[inside]
        all_words[at] -= starts[which]
        which = numbers[which]
        offsets: list[Any] = []
        if not bool((ends[:-1] <= starts[1:]).all()):  # arrays share memory: distances count
            digest.update(repr([(a.size, a.address - arrays[0].address) for a in arrays]).encode())
            digest.update(all_words[at].tobytes())
        for n in range(len(arrays)):
            here = at[which == n]
            offsets.append(all_words[here])
            all_words[here] = 0
        for part in (all_words, at, which):
            digest.update(part.tobytes())
        return BlockTrace(digest.digest(), arrays, offsets)

    def _decides(self, form: int) -> bool:
        found = self._by_contents.get(form)
        if found is None:
            name = string_at(form).decode().partition(":")[0].split()[0]
            found = self._by_contents[form] = by_contents(name)
        return found

    def find(self, told: BlockTrace, defined: Defined | None) -> tuple[Findings, list[ByteUse]] | None:
        """Return the findings that hold for a block, and the bytes that it touches; None if the block has to
        be executed."""
        for found in self._known.get(told.key, ()):
            uses = self._uses(found, told, defined)
            if uses is not None:
                return found, uses
        return None

    def _uses(self, found: Findings, told: BlockTrace, defined: Defined | None) -> list[ByteUse] | None:
        """Return the bytes that a block touches if it behaves like a known block. Return None if it does not,
        or if that is unknown.
        """
        moves = found.moves(told)
        if moves is None:
            return None
        uses: list[ByteUse] = []
        for (n, place, write), (low, high) in found.spans.items():
            for further in moves[n].get(place) or moves[n][None]:
                if low + further < 0 or high + further > told.arrays[n].size:
                    return None
                base = told.arrays[n].address + further
                uses.append(ByteUse(n, base + low, base + high, write))
        for write, n, place, where in found.accesses if defined is not None else ():
            assert defined is not None
            for further in moves[n].get(place) or moves[n][None]:
                base = told.arrays[n].address + further
                if write:
                    defined.add(where, base)
                elif defined.lacks(where, base):
                    return None
        return uses

    def keep(self, told: BlockTrace, problems: list[Any], accesses: list[TaskAccess]) -> None:
        """Keep the findings of a block, unless they depended on contents of memory."""
        # keep the first of equal accesses
        accesses = [_own(a) for a in {_key(a): a for a in reversed(accesses)}.values()][::-1]
        if len(accesses) > _MOST_ACCESSES:
            return
        places = [set(p.tolist()) for p in told.places]
        rigid = frozenset(a.array for a in accesses if a.write or a.place not in places[a.array])
        if len(self._known) >= _MOST:
            self._known.clear()
        known = self._known.setdefault(told.key, [])
        if len(known) < _MOST_OF_A_KIND:
            known.append(Findings(problems, accesses, spans_of(accesses), rigid, told.places))


def _own(access: TaskAccess) -> TaskAccess:
    """Copy an access without references to memory of the block."""
    where = access.where
    if isinstance(where, Region):
        where = Region(where.base, where.rows, where.cols, where.bits, where.nibble)
    return access._replace(where=where)


def _key(access: TaskAccess) -> Any:
    """Return the key of an access; equal accesses have equal keys."""
    write, n, place, where = access
    if isinstance(where, Region):
        return write, n, place, where.base, id(where.rows), id(where.cols), where.bits, where.nibble
    return write, n, place, where.tobytes()
