"""Signals in global memory: what whoever waits for one is told of those who gave it.

A signal that is set tells what was done before it was set last. One that is added to tells less: a wait for
at least 2 that finds 3 may have gone on without any one of the three additions, and would in another run. So
an addition counts as waited for only if the wait could not have ended without it, and without the additions
that themselves come after it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ir.core import Operation
from ..memory import Buffer, View
from ..reference.comm import COMPARED
from ..watch import WatchedCore
from .clock import Clock, Token, join, joined, knows

#: Tokens of blocks.
Tokens = dict[int, Token]
#: Additions to one signal that are kept apart; older ones count as waited for.
MOST = 64


class Given(NamedTuple):
    """A signal that was given: by an event of an agent of a block, where, by how much, what had been done
    before, and what had been begun: that would be done, too, had all pipes been drained."""

    block: int
    agent: int
    sequence: int
    op: Operation
    amount: int
    done: Tokens
    begun: Token

    def follows(self, other: Given) -> bool:
        return knows(self.done.get(other.block, []), other.agent, other.sequence)


class Word:
    """A signal: what it held before all that was added to it, and what whoever set it had done."""

    def __init__(self, held: int) -> None:
        self.held = held
        self.done: Tokens = {}
        self.added: list[Given] = []
        self.last: dict[tuple[int, Operation], Given] = {}

    def set(self, given: Given) -> None:
        self.held, self.done, self.added = given.amount, given.done, []
        self.last = {(given.block, given.op): given}

    def add(self, given: Given) -> None:
        self.added.append(given)
        self.last[given.block, given.op] = given
        if len(self.added) > MOST:
            oldest = self.added.pop(0)
            self.held += oldest.amount
            self.done = _both(self.done, oldest.done)

    def told(self, compare: str, wanted: int) -> Tokens:
        """What is known to have been done once the signal compares as wanted."""
        holds = COMPARED[compare]
        now = self.held + sum(given.amount for given in self.added)
        found = self.done
        settled: set[tuple[int, int]] = set()
        for given in reversed(self.added):
            if (given.block, given.agent) in settled:
                continue  # a later one of the same core is waited for
            without = sum(other.amount for other in self.added if other is given or other.follows(given))
            if not holds(now - without, wanted):
                settled.add((given.block, given.agent))
                found = _both(found, given.done)
        return found


class Signals:
    """The signals of a launch, and which of them each block was told by."""

    def __init__(self) -> None:
        self.words: dict[tuple[Buffer, int], Word] = {}
        self._places: dict[Buffer, list[int]] = {}
        #: By block that waited: who gave the signals, where.
        self.heard: dict[int, dict[tuple[int, Operation], Given]] = {}

    def notify(self, clock: Clock, core: WatchedCore, op: Operation, signal: View, value: int) -> None:
        """A signal has been given."""
        buffer, offset = signal.buffer, signal.offset
        adds = str(op.attr("notifyOp")) == "AtomicAdd"
        word = self.words.get((buffer, offset))
        if word is None:
            word = self.words[buffer, offset] = Word(word_at(buffer, offset) - value if adds else 0)
            self._places.setdefault(buffer, []).append(offset)
        agent = clock.agent(core, "S")
        done = joined([(clock, clock.release(core, "S"))])
        given = Given(
            clock.block, agent, clock.count[agent], op, value, done, clock.release_all(core, sessions=True)
        )
        if adds:
            word.add(given)
        else:
            word.set(given)

    def stored(self, buffer: Buffer, low: int, high: int) -> None:
        """Something else has written there: nobody is told by what a signal held before."""
        for offset in self._places.get(buffer, ()):
            if low < offset + 4 and offset < high:
                self.words[buffer, offset] = Word(word_at(buffer, offset))

    def awaited(self, clock: Clock, core: WatchedCore, op: Operation, signal: View, wanted: int) -> None:
        """A core has found that a signal compares as wanted."""
        for offset in words_of(signal):
            word = self.words.get((signal.buffer, offset))
            if word is not None:
                clock.learn(core, word.told(str(op.attr("cmp")), wanted))
                self.heard.setdefault(clock.block, {}).update(word.last)

    def too_early(self, block: int, other: int, agent: int, sequence: int) -> Operation | None:
        """The signal that told a block of something that another had begun, but perhaps not done."""
        for (teller, op), given in self.heard.get(block, {}).items():
            if teller == other and knows(given.begun, agent, sequence):
                if not knows(given.done.get(other, []), agent, sequence):
                    return op
        return None


def words_of(signal: View) -> list[int]:
    """Where the words of a signal begin in its buffer."""
    at = signal.whole()
    words: Any = at.base + (at.rows.offsets[:, None] + at.cols.offsets[None, :]) * at.bits // 8
    return [int(n) for n in words.ravel()]


def word_at(buffer: Buffer, offset: int) -> int:
    """What a signal holds."""
    return int(buffer.data[offset : offset + 4].view(np.int32)[0])


def _both(one: Tokens, two: Tokens) -> Tokens:
    out = {block: list(token) for block, token in one.items()}
    for block, token in two.items():
        join(out.setdefault(block, []), token)
    return out
