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

from ..engine.region import Region
from ..engine.traced.contents import by_contents
from ..engine.traced.types import Layouts, names
from .told import Block, TaskArray, arrays_of
from .written import Where, Written, bounds

#: How global memory is aligned: how far from each other data lies matters up to this.
_ALIGNED = 512
#: Kinds of blocks that are remembered, those of a kind that lie otherwise, and accesses of each.
_MOST = 1024
_MOST_OF_A_KIND = 8
_MOST_ACCESSES = 1 << 15


def rename(words: Any, at: list[int]) -> None:
    """Number what stands there by who came first, so that only which of them are the same matters."""
    if at:
        _, first, same = np.unique(words[at], return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.uint64)
        rank[np.argsort(first)] = np.arange(len(first), dtype=np.uint64)
        words[at] = rank[same]


class Told(NamedTuple):
    """What a block told, and where its data lies."""

    key: bytes
    arrays: list[TaskArray]
    #: By array the places in it that it told of, in bytes from its start, as often as it did.
    places: list[Any]


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

    def moves(self, told: Told) -> list[dict[int | None, list[int]]] | None:
        """By array and place, how much further that lies in another block, each time that it was told of;
        None where it is not the same otherwise."""
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
        self._known: dict[bytes, list[Findings]] = {}
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
            offsets.append(all_words[here])
            all_words[here] = 0
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
        for found in self._known.get(told.key, ()):
            uses = self._uses(found, told, written)
            if uses is not None:
                return found, uses
        return None

    def _uses(self, found: Findings, told: Told, written: Written | None) -> list[Use] | None:
        """What a block touches, if it does what another one did; None: that is not so, or not known."""
        moves = found.moves(told)
        if moves is None:
            return None
        uses: list[Use] = []
        for (n, place, write), (low, high) in found.spans.items():
            for further in moves[n].get(place) or moves[n][None]:
                if low + further < 0 or high + further > told.arrays[n].size:
                    return None
                base = told.arrays[n].address + further
                uses.append(Use(n, base + low, base + high, write))
        for write, n, place, where in found.accesses if written is not None else ():
            assert written is not None
            for further in moves[n].get(place) or moves[n][None]:
                base = told.arrays[n].address + further
                if write:
                    written.add(where, base)
                elif written.lacks(where, base):
                    return None
        return uses

    def keep(self, told: Told, problems: list[Any], accesses: list[Access]) -> None:
        """Remember what was found, where it did not depend on what memory held."""
        accesses = [_own(a) for a in {_key(a): a for a in reversed(accesses)}.values()][::-1]  # each at first
        if len(accesses) > _MOST_ACCESSES:
            return
        places = [set(p.tolist()) for p in told.places]
        rigid = frozenset(a.array for a in accesses if a.write or a.place not in places[a.array])
        if len(self._known) >= _MOST:
            self._known.clear()
        known = self._known.setdefault(told.key, [])
        if len(known) < _MOST_OF_A_KIND:
            known.append(Findings(problems, accesses, spans_of(accesses), rigid, told.places))


def _own(access: Access) -> Access:
    """The same, which holds no memory of the block."""
    where = access.where
    if isinstance(where, Region):
        where = Region(where.base, where.rows, where.cols, where.bits, where.nibble)
    return access._replace(where=where)


def _key(access: Access) -> Any:
    """What other accesses are the same by."""
    write, n, place, where = access
    if isinstance(where, Region):
        return write, n, place, where.base, id(where.rows), id(where.cols), where.bits, where.nibble
    return write, n, place, where.tobytes()
