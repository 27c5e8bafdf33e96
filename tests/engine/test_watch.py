"""Observers: the events of a launch, and their order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.engine import watch
from pto.engine.sanitize import NAMES, parse_names
from pto.engine.watch import BARRIER, GIVE, INSTRUCTION, TAKE, VECSCOPE, Event

EXAMPLES = Path(__file__).parents[2] / "examples"


class Order(pto.Watcher):
    """Holds every hook against those before, and counts."""

    def __init__(self) -> None:
        self.stage: dict[Event, str] = {}
        self.numbers: list[int] = []
        self.counts: Counter[tuple[str, str, str]] = Counter()  # stage, pipe, what
        self.inside: dict[Any, Event] = {}
        self.waits: Counter[tuple[str, str, str]] = Counter()  # kind, from, to
        self.given: set[Any] = set()
        self.events: list[Event] = []
        self.ended = False

    def step(self, event: Event, after: tuple[str, ...], to: str) -> None:
        assert self.stage.get(event, "") in after, (event.name, self.stage.get(event), to)
        self.stage[event] = to
        self.counts[to, event.pipe, event.what] += 1

    def launch_started(self, launch: Any) -> None:
        self.launch = launch

    def issued(self, event: Event) -> None:
        self.numbers.append(event.number)
        self.step(event, ("",), "issued")
        assert event.scope is self.inside.get(event.core)

    def took(self, event: Event) -> None:
        self.step(event, ("issued",), "took")
        assert event.waits and all(given in self.given for given in event.waits)
        self.waits.update((given.kind, given.pipe, event.pipe) for given in event.waits)

    def started(self, event: Event) -> None:
        self.step(event, ("issued", "took"), "started")

    def loaded(self, event: Event, access: Any, data: Any) -> None:
        assert self.stage[event] == "started" and access is event.accesses[-1] and not access.write

    def storing(self, event: Event, access: Any, data: Any) -> None:
        assert self.stage[event] == "started" and access.write

    def stored(self, event: Event, access: Any) -> None:
        assert self.stage[event] == "started" and access is event.accesses[-1]

    def gave(self, event: Event, given: Any) -> None:
        assert self.stage[event] == "started" and given.number == event.number
        self.given.add(given)

    def finished(self, event: Event) -> None:
        self.step(event, ("started",), "finished")
        self.events.append(event)

    def vecscope_started(self, event: Event) -> None:
        assert event.what == VECSCOPE and self.stage[event] == "started" and event.core not in self.inside
        self.inside[event.core] = event

    def vecscope_ended(self, event: Event) -> None:
        assert self.inside.pop(event.core) is event

    def launch_ended(self, result: Any) -> None:
        assert result.ok and not self.inside
        self.ended = True


def launch(name: str, *args: Any, **options: Any) -> Order:
    order = Order()
    pto.kernel(pto.parse(EXAMPLES / name), engine="reference").run(*args, watchers=[order], **options)
    assert order.ended and order.numbers == list(range(1, len(order.numbers) + 1))
    done = {k[1:]: n for k, n in order.counts.items() if k[0] == "finished"}
    for stage in ("issued", "started"):
        assert {k[1:]: n for k, n in order.counts.items() if k[0] == stage} == done, stage
    return order


@pytest.mark.parametrize("schedule", [None, 3])
def test_events_of_pipes_come_in_their_order(schedule: int | None) -> None:
    a = np.ones((64, 128), np.float32)
    order = launch("02_manual_flags.pto", a, a, np.zeros_like(a), schedule=schedule)
    counts = {k[1:]: n for k, n in order.counts.items() if k[0] == "finished"}
    assert counts["MTE2", INSTRUCTION] == 2 and counts["V", INSTRUCTION] == counts["MTE3", INSTRUCTION] == 1
    assert order.waits == {("flag", "MTE2", "V"): 1, ("flag", "V", "MTE3"): 1}
    assert counts["MTE2", GIVE] == counts["V", TAKE] == 1
    (store,) = (e for e in order.events if e.name == "tstore")
    size = a.nbytes
    assert [(x.space, x.write, x.bounds[1] - x.bounds[0]) for x in store.accesses] == [
        ("vec", False, size), ("gm", True, size),
    ]  # fmt: skip
    assert order.launch.span(store.op).place[0] > 0 and store.core.block == 0


def test_instructions_of_a_vecscope_are_inside_it() -> None:
    x = np.ones((4, 128), np.float32)
    order = launch("micro/softmax.pto", x, np.zeros_like(x), 4, 128)
    scopes = [e for e in order.events if e.what == VECSCOPE]
    inner = [e for e in order.events if e.scope is not None]
    assert scopes and inner and {e.scope for e in inner} <= set(scopes)
    assert {e.pipe for e in inner} == {e.pipe for e in scopes} == {"V"}


def test_cores_wait_for_each_other_and_cost_nothing_where_nobody_watches() -> None:
    h = (np.arange(64 * 64).reshape(64, 64) % 5).astype(np.float16)
    args = h, h, np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    order = launch("07_mixed_sections.pto", *args)
    assert {e.core.name for e in order.events} >= {"AIC", "AIV0"}
    assert any(given[0] == "semaphore" for given in order.waits), order.waits
    made = 0

    def counting(self: Any, *args: Any, **options: Any) -> None:
        nonlocal made
        made += 1

    with pytest.MonkeyPatch.context() as patch:
        for kind in (watch.Event, watch.Given, watch.Watchers):
            patch.setattr(kind, "__init__", counting)
        pto.kernel(pto.parse(EXAMPLES / "07_mixed_sections.pto"), engine="reference").run(*args)
    assert not made


def test_who_wants_only_some_events_is_told_of_those() -> None:
    class Barriers(pto.Watcher):
        memory = False
        wants = (BARRIER,)

        def __init__(self) -> None:
            self.seen: list[str] = []

        def finished(self, event: Event) -> None:
            assert not event.accesses
            self.seen.append(event.what)

    text = """func.func @k() {
      pto.barrier <PIPE_V>
      pto.barrier <PIPE_ALL>
      pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
      pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
      return
    }"""
    barriers = Barriers()
    assert pto.kernel(pto.parse(text), engine="reference").run(watchers=[barriers], sanitize="all").ok
    assert barriers.seen == [BARRIER] * 2
    with pytest.raises(ValueError, match=r"expected objects of pto\.Watcher"):
        pto.kernel(pto.parse(text), engine="reference").run(watchers=[print])


def test_a_sanitizer_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """`all` and the names follow from the list."""
    from pto.engine import sanitize

    assert parse_names("all") == frozenset(NAMES) == {s.name for s in sanitize.SANITIZERS}
    assert all(s.finds and s.cost for s in sanitize.SANITIZERS)
    for entry in sanitize.SANITIZERS:
        made = sanitize.watching(frozenset([entry.name]), None, False)
        if entry.name == sanitize.OF_GRAPHS:
            assert made is None  # there is nothing to watch in a kernel
            continue
        assert made is not None
        assert [type(w).__name__ for w in made.watchers] == [
            *(name.split(".")[1] for name in entry.watchers.split()), "Granularity", "Reports",
        ]  # fmt: skip
