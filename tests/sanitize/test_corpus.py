"""Every broken program of the corpus is found out, every correct twin is left alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.each import each
from tests.sampling import EVERY, some
from tests.seeds import seeds

from pto.diag import Diagnostic, render
from pto.engine.sanitize import NAMES as SANITIZERS

from .corpus import NAMES, PROGRAMS, Program, found_at, load

#: Schedules that are tried until one shows a race.
SEEDS = 200

#: Programs that are run in many ways.
SOME = some(NAMES, 4)

#: Tests that share the programs: pytest takes longer to start one than most programs take to run.
GROUPS = 8


def for_each(names: list[str]) -> Callable[[Callable[[str], None]], Any]:
    """One check for many programs, as a few tests that name all programs that fail."""

    def tests(check: Callable[[str], None]) -> Any:
        def test(group: int) -> None:
            each(check, names[group::GROUPS])

        test.__doc__ = check.__doc__
        return pytest.mark.parametrize("group", range(GROUPS))(test)

    return tests


each_bug = for_each(NAMES)


def shown(found: list[Diagnostic]) -> str:
    return "\n" + (render(found) or "nothing found")


def errors(result: Any) -> list[Diagnostic]:
    return [d for d in result.diagnostics if d.severity == "error"]


def as_stated(program: Program, found: list[Diagnostic], sanitizers: tuple[str, ...]) -> bool:
    """Return True if the reports are exactly those that the program states for some sanitizers."""
    wanted = [c for c in program.checks if c.sanitizer in (*sanitizers, "run")]
    places = Counter((c.code, c.line, c.others) for c in wanted)
    return places == Counter(found_at(d) for d in found) and all(
        any(c.fits(d) for d in found) for c in wanted
    )


def test_the_corpus_is_complete() -> None:
    assert len(NAMES) >= 60
    assert sorted(p.name for p in PROGRAMS.iterdir()) == sorted(
        f"{name}.{kind}.pto" for name in NAMES for kind in ("bad", "good")
    )
    for name in NAMES:
        bad, good = load(f"{name}.bad"), load(f"{name}.good")
        assert bad.checks and not good.checks, name
        assert (bad.arguments, bad.options) == (good.arguments, good.options), name
        assert {c.sanitizer for c in bad.checks} <= {*SANITIZERS, "run"}, name


@each_bug
def test_the_bug_is_found(name: str) -> None:
    bad = load(f"{name}.bad")
    found = errors(bad.run(sanitize="all")[0])
    assert as_stated(bad, found, SANITIZERS), shown(found)


@for_each(some(NAMES, 2))
def test_each_sanitizer_alone_finds_its_own(name: str) -> None:
    """Messages show no meaningless addresses: tiles without an address are shown by name."""
    bad = load(f"{name}.bad")
    for sanitizer in sorted({c.sanitizer for c in bad.checks} - {"run"}):
        found = errors(bad.run(sanitize=sanitizer)[0])
        assert as_stated(bad, found, (sanitizer,)), sanitizer + shown(found)
        for d in found if sanitizer == "race" else ():
            for low, high in re.findall(r"bytes (\d+)\.\.(\d+) of", d.message):
                assert 0 <= int(low) < int(high) <= 1 << 19


@each_bug
def test_the_twin_has_nothing_to_report(name: str) -> None:
    """Nor does watching change its result."""
    good = load(f"{name}.good")
    _, expected = good.run()
    result, found = good.run(sanitize="all")
    assert errors(result) == [], shown(result.diagnostics)
    assert found == expected
    for options in ({"shadow": "f64"}, {"memory_map": True}) if name in SOME else ():
        assert good.run(**options)[1] == expected, options


@pytest.mark.seeded
@for_each(SOME)
def test_no_schedule_changes_the_twin(name: str) -> None:
    good = load(f"{name}.good")
    plain, expected = good.run()
    assert plain.ok
    for seed in seeds(range(12 if EVERY else 4)):
        result, found = good.run(schedule=seed)
        assert result.ok, (seed, shown(result.diagnostics))
        assert found == expected, f"seed {seed}"


RACES = [name for name in NAMES if load(f"{name}.bad").races]


@for_each(RACES)
def test_some_schedule_shows_the_race(name: str) -> None:
    bad = load(f"{name}.bad")
    _, expected = bad.run()
    hidden = bad.fuzz.startswith("hidden")
    tried = range(10 if hidden and not EVERY else SEEDS)
    differs = next((seed for seed in tried if bad.run(schedule=seed)[1] != expected), None)
    if hidden:
        assert differs is None, f"seed {differs} shows it: remove the comment"
    else:
        assert differs is not None, "no schedule gives another result"


#: Pairs of pipes of which the first comes before the second: the standard hazards, and those of the scalar unit.
HAZARDS = {
    "RAW": "MTE2-V V-MTE3 MTE2-MTE1 MTE1-M M-FIX MTE2-MTE3 FIX-MTE1 V-V S-V V-S MTE2-S S-MTE3 S-MTE2 MTE3-MTE2",
    "WAR": "V-MTE2 MTE3-V FIX-M M-MTE1 MTE1-MTE2 MTE3-MTE2 MTE2-MTE3 V-V V-S S-V MTE3-S S-MTE2",
    "WAW": "V-MTE2 MTE2-V V-V MTE3-MTE3",
}

_PIPES = re.compile(r": (RAW|WAR|WAW) race: PIPE_(\w+) .*?PIPE_(\w+)")


def test_every_standard_hazard_has_a_program() -> None:
    found: dict[str, set[str]] = {kind: set() for kind in HAZARDS}
    for name in RACES:
        for d in errors(load(f"{name}.bad").run(sanitize="race")[0]):
            if m := _PIPES.search(d.message):
                found[m[1]].add(f"{m[3]}-{m[2]}")
    assert {kind: set(pairs.split()) - found[kind] for kind, pairs in HAZARDS.items()} == {
        kind: set() for kind in HAZARDS
    }


#: Items of the catalogue of illegal programs that depend on what happens at run time, each with a program.
CATALOGUE = {
    2: ("event_id_range", "token_range", "semaphore_range"),
    3: ("wait_without_set", "set_on_one_path", "left_set", "not_drained"),
    4: ("set_twice", "set_twice_dynamic"),
    5: ("raw_mte2_v", "war_v_mte2", "waw_mte2_v", "raw_v_v"),
    6: ("dma_raw_gm_ub", "dma_raw_ub_gm"),
    7: ("raw_m_fix",),
    8: ("token_twice", "token_not_held", "token_left_held"),
    10: ("semaphore_overflow",),
    22: ("tile_beyond_capacity", "misaligned_tile", "tassign_beyond_capacity"),
    29: ("signal_never_comes",),
    30: ("fifo_pop_without_push", "fifo_slot_too_small", "fifo_free_without_pop", "fifo_full"),
    31: ("barrier_not_met", "barrier_of_other_cores"),
}


def test_every_item_of_the_catalogue_that_a_run_decides_has_a_program() -> None:
    assert {name for names in CATALOGUE.values() for name in names} <= set(NAMES)


def test_most_races_can_be_seen() -> None:
    assert sum(not load(f"{name}.bad").fuzz for name in RACES) > 0.7 * len(RACES)
