"""Signals in global memory: the order between a wait and the sets or additions that it synchronizes with.

A wait for a signal that is set synchronizes with the last set. For a signal that is added to, a wait
synchronizes only with the additions that it needed: a wait for at least 2 that reads 3 would also end without
any one of the three additions. The wait is ordered after an addition only if it could not have ended without
this addition and the additions that happen after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ir.core import Operation
from ..memory import Buffer, View
from ..reference.comm import COMPARED
from ..watch import WatchedCore
from .clock import Clock, Token, join, joined, knows

#: Tokens of blocks.
Tokens = dict[int, Token]
#: The number of additions to one signal that are kept apart; waits count as ordered after older ones.
MOST = 64


class SignalGiven(NamedTuple):
    """A set or addition of a signal: the event (block, agent, sequence), the operation and the amount. `done`
    is the work that happened before; `begun` also has the work that was only started, which would be done if
    all pipes had been drained."""

    block: int
    agent: int
    sequence: int
    op: Operation
    amount: int
    done: Tokens
    begun: Token

    def follows(self, other: SignalGiven) -> bool:
        return knows(self.done.get(other.block, []), other.agent, other.sequence)


class Word:
    """A signal: its value and the work done before the additions in `added`, and those additions."""

    def __init__(self, held: int) -> None:
        self.held = held
        self.done: Tokens = {}
        self.added: list[SignalGiven] = []
        self.last: dict[tuple[int, Operation], SignalGiven] = {}

    def set(self, given: SignalGiven) -> None:
        self.held, self.done, self.added = given.amount, given.done, []
        self.last = {(given.block, given.op): given}

    def add(self, given: SignalGiven) -> None:
        self.added.append(given)
        self.last[given.block, given.op] = given
        if len(self.added) > MOST:
            oldest = self.added.pop(0)
            self.held += oldest.amount
            self.done = _both(self.done, oldest.done)

    def told(self, compare: str, wanted: int) -> Tokens:
        """Return the work that happened before a wait which ends when the signal compares as wanted."""
        holds = COMPARED[compare]
        now = self.held + sum(given.amount for given in self.added)
        found = self.done
        settled: set[tuple[int, int]] = set()
        for given in reversed(self.added):
            if (given.block, given.agent) in settled:
                continue  # the wait is ordered after a later addition of the same core
            without = sum(other.amount for other in self.added if other is given or other.follows(given))
            if not holds(now - without, wanted):
                settled.add((given.block, given.agent))
                found = _both(found, given.done)
        return found


class Signals:
    """The signals of a launch, and those that each block has waited for."""

    def __init__(self) -> None:
        self.words: dict[tuple[Buffer, int], Word] = {}
        self._places: dict[Buffer, list[int]] = {}
        #: For each block that waited: the last sets and additions of its signals.
        self.heard: dict[int, dict[tuple[int, Operation], SignalGiven]] = {}

    def notify(self, clock: Clock, core: WatchedCore, op: Operation, signal: View, value: int) -> None:
        """Record a set or an addition of a signal."""
        buffer, offset = signal.buffer, signal.offset
        adds = str(op.attr("notifyOp")) == "AtomicAdd"
        word = self.words.get((buffer, offset))
        if word is None:
            word = self.words[buffer, offset] = Word(word_at(buffer, offset) - value if adds else 0)
            self._places.setdefault(buffer, []).append(offset)
        agent = clock.agent(core, "S")
        done = joined([(clock, clock.release(core, "S"))])
        given = SignalGiven(
            clock.block, agent, clock.count[agent], op, value, done, clock.release_all(core, sessions=True)
        )
        if adds:
            word.add(given)
        else:
            word.set(given)

    def stored(self, buffer: Buffer, low: int, high: int) -> None:
        """Forget the signals in a range of bytes that another store has overwritten."""
        for offset in self._places.get(buffer, ()):
            if low < offset + 4 and offset < high:
                self.words[buffer, offset] = Word(word_at(buffer, offset))

    def awaited(self, clock: Clock, core: WatchedCore, op: Operation, signal: View, wanted: int) -> None:
        """Record that a core has waited for a signal, which now compares as wanted."""
        for offset in words_of(signal):
            word = self.words.get((signal.buffer, offset))
            if word is not None:
                clock.learn(core, word.told(str(op.attr("cmp")), wanted))
                self.heard.setdefault(clock.block, {}).update(word.last)

    def too_early(self, block: int, other: int, agent: int, sequence: int) -> Operation | None:
        """Return the signal that another block gave after it began an event, but perhaps before its end."""
        for (teller, op), given in self.heard.get(block, {}).items():
            if teller == other and knows(given.begun, agent, sequence):
                if not knows(given.done.get(other, []), agent, sequence):
                    return op
        return None


def words_of(signal: View) -> list[int]:
    """Return the offsets of the words of a signal in its buffer."""
    at = signal.whole()
    words = at.base + (at.rows.offsets[:, None] + at.cols.offsets[None, :]) * at.bits // 8
    return [int(n) for n in words.ravel()]


def word_at(buffer: Buffer, offset: int) -> int:
    """Return the value of a signal."""
    return int(buffer.data[offset : offset + 4].view(np.int32)[0])


def _both(one: Tokens, two: Tokens) -> Tokens:
    out = {block: list(token) for block, token in one.items()}
    for block, token in two.items():
        join(out.setdefault(block, []), token)
    return out
