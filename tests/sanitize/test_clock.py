"""Clocks: who knows what, through flags, barriers, tokens, stalls, meetings and signals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.each import together

from pto.engine.memory import Buffer, View
from pto.engine.sanitize import clock as clocks
from pto.engine.sanitize.clock import Clock, Token, knows
from pto.engine.sanitize.signal_order import Signals


@dataclass(eq=False)
class FakeCore:
    """A core as far as clocks know one."""

    name: str = ""
    block: int = 0
    clock: Clock = field(default_factory=lambda: Clock("a2a3"))

    def runs(self, pipe: str) -> tuple[int, int, Token]:
        """An instruction that is issued now: agent, number, what it knows."""
        core: Any = self
        self.clock.resume(core, pipe, self.clock.stalls.get(core))
        return self.clock.instruction(core, pipe)

    def does(self, pipe: str) -> tuple[int, int]:
        """An instruction: (agent, number)."""
        return self.runs(pipe)[:2]

    def knows(self, pipe: str, event: tuple[int, int]) -> bool:
        """Return True if the next instruction of a pipe is ordered after an event."""
        return knows(self.runs(pipe)[2], *event)


def flag(core: Any, source: str, target: str) -> None:
    core.clock.acquire(core, target, core.clock.release(core, source))


@pytest.fixture
def core() -> Any:
    return FakeCore()


# -- pipes of a core ---------------------------------------------------------------------------------------


def test_pipes_know_nothing_of_each_other(core: Any) -> None:
    load = core.does("MTE2")
    assert not core.knows("V", load)


def test_a_flag_orders_what_came_before_its_set(core: Any) -> None:
    first = core.does("MTE2")
    token = core.clock.release(core, "MTE2")
    second = core.does("MTE2")
    core.clock.acquire(core, "V", token)
    assert core.knows("V", first)
    assert not core.knows("V", second)


def test_a_flag_orders_only_the_pipe_that_waits(core: Any) -> None:
    load = core.does("MTE2")
    flag(core, "MTE2", "V")
    assert core.knows("V", load)
    assert not core.knows("MTE3", load)


def test_flags_pass_on_what_they_learned(core: Any) -> None:
    load = core.does("MTE2")
    flag(core, "MTE2", "V")
    compute = core.does("V")
    flag(core, "V", "MTE3")
    assert core.knows("MTE3", load) and core.knows("MTE3", compute)


def test_no_knowledge_flows_backwards(core: Any) -> None:
    core.does("MTE2")
    flag(core, "MTE2", "V")
    compute = core.does("V")
    assert not core.knows("MTE2", compute)


def test_a_round_trip_orders_an_unordered_pipe_with_itself(core: Any) -> None:
    first = core.does("V")
    flag(core, "V", "MTE3")
    flag(core, "MTE3", "V")
    assert core.knows("V", first)


# -- one pipe ----------------------------------------------------------------------------------------------


@together(
    ("isa", "pipe", "keeps"),
    [
        ("a2a3", "V", False), ("a5", "V", True), ("cpu", "V", True), ("a2a3", "MTE3", False), ("a5", "MTE3", False),
        ("a2a3", "MTE2", True), ("a2a3", "M", True), ("a2a3", "FIX", True), ("a2a3", "MTE1", True), ("a2a3", "S", True),
    ],
)  # fmt: skip
def test_which_pipes_keep_their_order(isa: str, pipe: str, keeps: bool) -> None:
    core: Any = FakeCore(clock=Clock(isa))
    first = core.does(pipe)
    assert core.knows(pipe, first) == keeps


def test_a_barrier_orders_its_own_pipe_only(core: Any) -> None:
    compute, store = core.does("V"), core.does("MTE3")
    core.clock.barrier(core, "V")
    assert core.knows("V", compute)
    assert not core.knows("MTE3", store)
    assert not core.knows("MTE2", compute)


def test_a_barrier_of_all_pipes_orders_everything(core: Any) -> None:
    events = [core.does(pipe) for pipe in ("MTE2", "V", "MTE3", "S")]
    core.clock.barrier_all(core)
    for pipe in ("MTE2", "V", "MTE3", "S", "MTE1"):  # also a pipe that was idle so far
        assert all(core.knows(pipe, event) for event in events), pipe


def test_what_the_scalar_unit_waits_for_holds_for_all_that_is_issued_later(core: Any) -> None:
    compute = core.does("V")
    core.clock.acquire(core, "S", core.clock.release(core, "V"))
    for pipe in ("S", "MTE2", "MTE3", "V"):
        assert core.knows(pipe, compute), pipe


def test_a_wait_of_the_scalar_unit_orders_nothing_that_comes_later_on_other_pipes(core: Any) -> None:
    core.does("V")
    core.clock.acquire(core, "S", core.clock.release(core, "V"))
    later = core.does("V")
    assert not core.knows("MTE2", later)


def test_what_was_issued_before_a_stall_does_not_come_after_it(core: Any) -> None:
    """An item that still waits in its queue when the scalar unit learns something."""
    core.does("V")
    load = core.does("MTE2")
    issued = core.clock.stalls.get(core)
    core.clock.acquire(core, "S", core.clock.release(core, "MTE2"))
    core.clock.resume(core, "V", issued)
    assert not knows(core.clock.instruction(core, "V")[2], *load)
    assert core.knows("V", load), "one that is issued now"


def test_a_pipe_without_a_name_is_the_scalar_unit(core: Any) -> None:
    event = core.does("ALL")
    assert core.knows("S", event)


# -- tokens ------------------------------------------------------------------------------------------------


def test_no_token_orders_nothing(core: Any) -> None:
    load = core.does("MTE2")
    core.clock.acquire(core, "V", None)
    core.clock.acquire_all(core, None)
    assert not core.knows("V", load)


def test_tokens_do_not_change_afterwards(core: Any) -> None:
    token = core.clock.release(core, "MTE2")
    load = core.does("MTE2")
    core.clock.acquire(core, "V", token)
    assert not core.knows("V", load)


# -- cores of a block --------------------------------------------------------------------------------------


def test_cores_of_a_block_share_their_clock() -> None:
    clock = Clock("a2a3")
    cube: Any = FakeCore("AIC", clock=clock)
    vector: Any = FakeCore("AIV0", clock=clock)
    store = cube.does("FIX")
    assert not vector.knows("MTE2", store)
    clock.acquire(vector, "MTE2", clock.release(cube, "FIX"))
    assert vector.knows("MTE2", store)
    assert not vector.knows("V", store)
    assert clock.names[store[0]] == "AIC"


# -- blocks ------------------------------------------------------------------------------------------------


def meet(cores: list[Any]) -> None:
    clocks.meet([(core.clock, core) for core in cores])


def make_blocks(count: int) -> list[Any]:
    return [FakeCore(block=n, clock=Clock("a2a3", n)) for n in range(count)]


def sees(core: Any, pipe: str, block: int, event: tuple[int, int]) -> bool:
    return knows(core.clock.others(core.runs(pipe)[2]).get(block, []), *event)


def test_blocks_that_met_know_what_came_before() -> None:
    one, two = make_blocks(2)
    before = one.does("MTE3")
    meet([one, two])
    after = one.does("MTE3")
    assert sees(two, "MTE2", 0, before)
    assert not sees(two, "MTE2", 0, after)


def test_meetings_add_up() -> None:
    one, two = make_blocks(2)
    events = []
    for _ in range(3):
        events.append(one.does("MTE3"))
        meet([one, two])
    assert all(sees(two, "V", 0, event) for event in events)


def test_what_is_learned_at_a_meeting_passes_on_through_flags() -> None:
    """A vector core meets others and then signals its cube core."""
    one, two = make_blocks(2)
    cube: Any = FakeCore("AIC", 1, two.clock)
    store = one.does("MTE3")
    meet([one, two])
    assert not sees(cube, "MTE2", 0, store)
    two.does("MTE3")
    two.clock.acquire(cube, "MTE2", two.clock.release(two, "MTE3"))
    assert sees(cube, "MTE2", 0, store)


def test_what_was_learned_before_a_meeting_is_told_there() -> None:
    """A cube core signals its vector core, which meets the vector core of another block."""
    one, two = make_blocks(2)
    cube: Any = FakeCore("AIC", 0, one.clock)
    store = cube.does("FIX")
    one.clock.acquire(one, "S", one.clock.release(cube, "FIX"))
    meet([one, two])
    assert sees(two, "MTE2", 0, store)


def test_news_travel_over_a_third_block() -> None:
    one, two, three = make_blocks(3)
    store = one.does("MTE3")
    meet([one, two])
    meet([two, three])
    assert sees(three, "MTE2", 0, store)


@dataclass(eq=False)
class FakeOp:
    """An instruction on a signal, as far as signals know it."""

    does: str

    def attr(self, name: str) -> str:
        return self.does


SET, ADD, GE, EQ = (FakeOp(does) for does in ("Set", "AtomicAdd", "ge", "eq"))


class Words:
    """Signals in a buffer of their own, given and awaited by cores."""

    def __init__(self) -> None:
        self.signals = Signals()
        self.buffer = Buffer("words", "gm", np.zeros(128, np.uint8))

    def give(self, core: Any, value: int = 1, op: Any = SET, at: int = 64) -> None:
        word = self.buffer.data[at : at + 4].view(np.int32)
        word[0] = value + (word[0] if op is ADD else 0)
        self.signals.notify(core.clock, core, op, self._view(at), value)
        core.does("S")

    def take(self, core: Any, wanted: int = 1, op: Any = GE, at: int = 64) -> None:
        self.signals.awaited(core.clock, core, op, self._view(at), wanted)

    def _view(self, at: int) -> View:
        return View(self.buffer, at, (1, 1), (1, 1), "i32")


def test_a_signal_tells_what_the_scalar_unit_of_its_writer_knew() -> None:
    one, two = make_blocks(2)
    words = Words()
    early = one.does("MTE3")
    one.clock.barrier_all(one)
    late = one.does("MTE3")
    words.give(one)
    words.take(two, at=0)
    assert not sees(two, "MTE2", 0, early), "another word"
    words.take(two)
    assert sees(two, "MTE2", 0, early)
    assert not sees(two, "MTE2", 0, late), "the store was still on its way"
    assert words.signals.too_early(1, 0, *late) is SET
    assert words.signals.too_early(0, 0, *late) is None, "nobody told it"
    assert words.signals.too_early(1, 0, *early) is None


def drained(core: Any) -> tuple[int, int]:
    """A store that is over when the scalar unit goes on."""
    event = core.does("MTE3")
    core.clock.barrier_all(core)
    return event


def test_a_signal_that_is_set_tells_of_who_set_it_last() -> None:
    one, two, three = make_blocks(3)
    words = Words()
    first, second = drained(one), drained(two)
    words.give(one)
    words.give(two)
    words.take(three)
    assert sees(three, "MTE2", 1, second) and not sees(three, "MTE2", 0, first)
    words.signals.stored(words.buffer, 0, 128)
    fresh = make_blocks(4)[3]
    words.take(fresh)
    assert not sees(fresh, "MTE2", 1, second), "a store has overwritten it"


def test_additions_that_a_wait_could_do_without_tell_nothing() -> None:
    one, two, three = make_blocks(3)
    words = Words()
    first, second = drained(one), drained(two)
    words.give(one, 1, ADD)
    words.give(two, 1, ADD)
    words.take(three, 1)
    assert not sees(three, "MTE2", 0, first) and not sees(three, "MTE2", 1, second), "one was enough"
    words.take(three, 2)
    assert sees(three, "MTE2", 0, first) and sees(three, "MTE2", 1, second)

    one, two, three = make_blocks(3)
    words = Words()
    first = drained(one)
    words.give(one, 1, ADD)
    words.take(two, 1)
    second = drained(two)
    words.give(two, 1, ADD)
    words.take(three, 1)
    assert sees(three, "MTE2", 0, first), "the second came after it"
    assert not sees(three, "MTE2", 1, second)

    one, two = make_blocks(2)
    words = Words()
    first = drained(one)
    words.give(one, 1, ADD)
    second = drained(one)
    words.give(one, 1, ADD)
    words.take(two, 1)
    assert sees(two, "MTE2", 0, first) and not sees(two, "MTE2", 0, second), "the first was enough"
    words.take(two, 2, EQ)
    assert sees(two, "MTE2", 0, second)
