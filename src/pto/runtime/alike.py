"""Tasks that do the same elsewhere: what one was found to do holds for all of them.

A graph calls a kernel thousands of times, mostly with other tensors only. What sanitizers find in a block of
a task follows from what it tells, up to where it finds its data: where its arrays lie, how far into them it
begins, and, in an array that it only reads, where each of its parts lies. So those who tell the same are
executed once. What remains to be seen of the others is whether they stay within their own arrays, and whether
somebody wrote what they read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from ctypes import string_at
from typing import Any, NamedTuple

import numpy as np

from ..engine.traced.contents import by_contents
from ..engine.traced.types import Layouts, names
from .told import Block, TaskArray, arrays_of
from .written import Where, Written, bounds

#: How global memory is aligned: how far from each other data lies matters up to this.
_ALIGNED = 512
#: Kinds of blocks that are remembered, and accesses of each.
_MOST = 1024
_MOST_ACCESSES = 1 << 14


def rename(words: Any, at: list[int]) -> None:
    """Number what stands there by who came first, so that only which of them are the same matters."""
    if at:
        words[at] = _by_first(words[at])[1]


def _by_first(values: Any) -> tuple[Any, Any]:
    """Different values by who came first, and for each value which of them it is."""
    different, first, same = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), np.uint64)
    rank[order] = np.arange(len(first), dtype=np.uint64)
    return different[order], rank[same]


class Told(NamedTuple):
    """What a block told, and where its data lies."""

    key: bytes
    arrays: list[TaskArray]
    #: By array the places in it that it told of, as bytes from its start, by which came first.
    places: list[Any]

    def place(self, array: int, offset: int) -> int | None:
        """Which of the places of an array that is."""
        if offset < 0:
            return None
        found = np.flatnonzero(self.places[array] == np.uint64(offset))
        return int(found[0]) if found.size else None


class Access(NamedTuple):
    """Bytes of an array that a block touches."""

    write: bool
    array: int
    #: The place that they were told as; None where nobody knows.
    place: int | None
    where: Where


class Findings(NamedTuple):
    """What was found of the first of its kind."""

    #: Where problems were: keys of reports.
    problems: list[Any]
    accesses: list[Access]
    #: By array, place and whether it is written the first byte that is touched and the one after the last.
    spans: dict[tuple[int, int | None, bool], tuple[int, int]]
    #: Arrays in which all places must lie to each other as they did.
    rigid: frozenset[int]
    places: list[Any]


class Use(NamedTuple):
    """Bytes of memory that a block touches, with what may lie between them."""

    array: int
    first: int
    last: int  # the byte behind it
    write: bool


def spans_of(accesses: Sequence[Access]) -> dict[tuple[int, int | None, bool], tuple[int, int]]:
    """Where each place of each array is touched."""
    spans: dict[tuple[int, int | None, bool], tuple[int, int]] = {}
    for write, n, place, where in accesses:
        low, high = bounds(where)
        if low < high:
            known = spans.get((n, place, write), (low, high))
            spans[n, place, write] = min(low, known[0]), max(high, known[1])
    return spans


class Alike:
    """Blocks that were executed, by what they tell."""

    def __init__(self) -> None:
        self._known: dict[bytes, Findings] = {}
        self._layouts: Layouts = {}
        self._by_contents: dict[int, bool] = {}

    def told(self, cores: Block) -> Told | None:
        """What a block tells; None where that does not decide on what it does."""
        arrays = arrays_of(cores)
        order = sorted(range(len(arrays)), key=lambda n: arrays[n].address)
        numbers = np.array(order, np.intp)
        starts = np.array([arrays[n].address for n in order], np.uint64)
        ends = np.array([arrays[n].address + arrays[n].size for n in order], np.uint64)
        digest = hashlib.blake2b(digest_size=16)
        words: list[Any] = []
        places: list[Any] = []  # where words have addresses, of all cores
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
        # in which array each address lies, as `Memory.at` has it
        which = np.searchsorted(starts, all_words[at], "right").astype(np.intp) - 1
        inside = which >= 0
        inside[inside] = all_words[at[inside]] <= ends[which[inside]]
        at, which = at[inside], which[inside]
        all_words[at] -= starts[which]
        which = numbers[which]
        offsets: list[Any] = []
        if not bool((ends[:-1] <= starts[1:]).all()):  # arrays that share memory: as they lie
            digest.update(repr([(a.size, a.address - arrays[0].address) for a in arrays]).encode())
            digest.update(all_words[at].tobytes())
        for n in range(len(arrays)):
            here = at[which == n]
            different, all_words[here] = _by_first(all_words[here])
            offsets.append(different)
        for part in (all_words, at, which):
            digest.update(part.tobytes())
        return Told(digest.digest(), arrays, offsets)

    def _decides(self, form: int) -> bool:
        found = self._by_contents.get(form)
        if found is None:
            name = string_at(form).decode().partition(":")[0].split()[0]
            found = self._by_contents[form] = by_contents(name)
        return found

    def find(self, told: Told, written: Written | None) -> tuple[Findings, list[Use]] | None:
        """What holds for a block since it held for another one, and what it touches; None: it is to be
        executed."""
        found = self._known.get(told.key)
        if found is None:
            return None
        moves: list[Any] = []  # by array how much further each place lies
        for n, (mine, first) in enumerate(zip(told.places, found.places, strict=True)):
            move = mine.astype(np.int64) - first.astype(np.int64)
            if (move % _ALIGNED).any() or (n in found.rigid and move.size and (move != move[0]).any()):
                return None
            moves.append([*move.tolist(), 0])
        uses: list[Use] = []
        for (n, place, write), (low, high) in found.spans.items():
            further = moves[n][place or 0]
            if low + further < 0 or high + further > told.arrays[n].size:
                return None
            base = told.arrays[n].address + further
            uses.append(Use(n, base + low, base + high, write))
        if written is not None:
            for write, n, place, where in found.accesses:
                base = told.arrays[n].address + moves[n][place or 0]
                if write:
                    written.add(where, base)
                elif written.lacks(where, base):
                    return None
        return found, uses

    def keep(self, told: Told, problems: list[Any], accesses: list[Access]) -> None:
        """Remember what was found, where it did not depend on what memory held."""
        if len(accesses) > _MOST_ACCESSES:
            return
        rigid = frozenset(a.array for a in accesses if a.write or a.place is None)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[told.key] = Findings(problems, accesses, spans_of(accesses), rigid, told.places)
