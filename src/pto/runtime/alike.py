"""Tasks that do the same elsewhere: what one was found to do holds for all of them.

A graph calls a kernel thousands of times, mostly with other tensors only. What sanitizers find in a block of
a task follows from what it tells, up to where its arrays lie and how far into them it begins; so those who
tell the same are executed once. What remains to be seen of the others is whether they stay within their own
arrays, and whether somebody wrote what they read.
"""

from __future__ import annotations

import hashlib
from ctypes import string_at
from typing import Any, NamedTuple

import numpy as np

from ..engine.traced.contents import by_contents
from ..engine.traced.types import Layouts, names
from .told import Block, TaskArray, arrays_of
from .written import Where, Written, bounds

#: How global memory is aligned: how far into an array a task begins matters up to this.
_ALIGNED = 512
#: Kinds of blocks that are remembered, and accesses of each.
_MOST = 1024
_MOST_ACCESSES = 1 << 14


def rename(words: Any, at: list[int]) -> None:
    """Number what stands there by who came first, so that only which of them are the same matters."""
    if not at:
        return
    _, first, same = np.unique(words[at], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.uint64)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.uint64)
    words[at] = rank[same]


class Told(NamedTuple):
    """What a block told, and where."""

    key: bytes
    arrays: list[TaskArray]
    #: How far into each array it begins.
    begins: list[int]


class Access(NamedTuple):
    """Bytes of an array that a block touches."""

    write: bool
    array: int
    where: Where


class Findings(NamedTuple):
    """What was found of the first of its kind."""

    #: Where problems were: keys of reports.
    problems: list[Any]
    accesses: list[Access]
    #: By array the first byte that is touched and the one after the last.
    spans: dict[int, tuple[int, int]]
    begins: list[int]


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
        starts = np.array([arrays[n].address for n in order], np.uint64)
        ends = np.array([arrays[n].address + arrays[n].size for n in order], np.uint64)
        apart = bool((ends[:-1] <= starts[1:]).all())
        digest = hashlib.blake2b(digest_size=16)
        all_words: list[tuple[Any, Any, Any]] = []
        begins = np.full(len(arrays), np.iinfo(np.uint64).max, np.uint64)
        for key in sorted(cores):
            core = cores[key]
            digest.update(repr((key, core.library)).encode())
            words = core.numbers()
            told = names(core.words, self._layouts)
            if any([self._decides(form) for form in told.forms]):
                return None
            rename(words, told.objects)
            at = np.array(told.addresses, np.intp)
            which = np.searchsorted(starts, words[at], "right").astype(np.intp) - 1
            inside = which >= 0
            inside[inside] = words[at[inside]] <= ends[which[inside]]
            at, which = at[inside], np.array(order, np.intp)[which[inside]]
            words[at] -= np.array([a.address for a in arrays], np.uint64)[which]
            np.minimum.at(begins, which, words[at])
            all_words.append((words, at, which))
        begins[begins == np.iinfo(np.uint64).max] = 0
        if apart:  # arrays that share memory are the same only where they lie in the same way
            digest.update((begins % _ALIGNED).tobytes())
        else:
            begins[:] = 0
            digest.update(repr([(a.size, a.address - arrays[0].address) for a in arrays]).encode())
        for words, at, which in all_words:
            words[at] -= begins[which]
            digest.update(words.tobytes())
            digest.update(at.tobytes())
            digest.update(which.tobytes())
        return Told(digest.digest(), arrays, begins.tolist())

    def _decides(self, form: int) -> bool:
        found = self._by_contents.get(form)
        if found is None:
            name = string_at(form).decode().partition(":")[0].split()[0]
            found = self._by_contents[form] = by_contents(name)
        return found

    def find(self, told: Told, written: Written | None) -> Findings | None:
        """What holds for a block since it held for another one; None: it is to be executed."""
        found = self._known.get(told.key)
        if found is None:
            return None
        further = [mine - first for mine, first in zip(told.begins, found.begins, strict=True)]
        for n, (low, high) in found.spans.items():
            if low + further[n] < 0 or high + further[n] > told.arrays[n].size:
                return None
        if written is not None:
            for write, n, where in found.accesses:
                base = told.arrays[n].address + further[n]
                if write:
                    written.add(where, base)
                elif written.lacks(where, base):
                    return None
        return found

    def keep(self, told: Told, problems: list[Any], accesses: list[Access]) -> None:
        """Remember what was found, where it did not depend on what memory held."""
        if len(accesses) > _MOST_ACCESSES:
            return
        spans: dict[int, tuple[int, int]] = {}
        for _, n, where in accesses:
            low, high = bounds(where)
            if low < high:
                known = spans.get(n, (low, high))
                spans[n] = min(low, known[0]), max(high, known[1])
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[told.key] = Findings(problems, accesses, spans, told.begins)
