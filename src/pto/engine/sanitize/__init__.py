"""Sanitizers: checks for errors of programs that nevertheless run to the end.

Each sanitizer is a watcher (`engine/watch.py`) in its own file. To add a sanitizer, write such a file and add
a line to `SANITIZERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import knobs
from ...isa.profiles import Profile
from ..watch import Watcher, Watchers

if TYPE_CHECKING:
    from .reports import Reports


class NamedSanitizer(NamedTuple):
    """A sanitizer that users select by name: its findings, its cost (as a multiple of a plain run), and its
    classes, which are made with a `Reports`. If several report an instruction, the lower `turn` is first."""

    name: str
    finds: str
    cost: str
    watchers: str
    turn: int


SANITIZERS = (
    NamedSanitizer("race", "two unordered accesses to the same bytes", "2 to 4", "race.Race", 3),
    NamedSanitizer("undef", "results that depend on undefined bytes", "2 to 4", "undef.Undef", 1),
    NamedSanitizer(
        "oob",
        "windows and indices that leave their view or tile, tiles beyond their buffer",
        "1.5 to 2.5",
        "bounds.Bounds",
        2,
    ),
    NamedSanitizer(
        "overlap",
        "tiles read after another one has overwritten their bytes",
        "1.5 to 2.5",
        "overlap.Overlap",
        5,
    ),
    NamedSanitizer(
        "sync",
        "flags, tokens and semaphores left set, set twice, or held; signals of ranks out of step",
        "1.5 to 2.5",
        "sync.Sync signals.SignalCheck",
        4,
    ),
    NamedSanitizer(
        "nan",
        "a NaN or infinity that no operand held",
        "1.5 to 2.5",
        "nonfinite.NonFinite",
        6,
    ),
    NamedSanitizer("tasks", "unordered tasks of a graph that use the same memory", "1.1", "", 7),
)
#: The sanitizer of task graphs; it has nothing to check in a single kernel.
OF_GRAPHS = "tasks"
#: A value instead of names, for calls of Python programs: findings of `tasks` are warnings.
WARN = "warn"
#: Sanitizers without cost, which every selection includes.
ALWAYS = ("granularity.Granularity",)

NAMES = tuple(s.name for s in SANITIZERS)


def asked() -> frozenset[str]:
    """Return the sanitizers that PTO_SANITIZE selects; none for `warn`."""
    words = knobs.get("PTO_SANITIZE")
    return frozenset() if words == WARN else parse_names(words)


def parse_names(text: str | Sequence[str]) -> frozenset[str]:
    """Return the names of sanitizers in a comma-separated list; `all` stands for all of them."""
    if not isinstance(text, str | Sequence | frozenset):
        raise ValueError(f"sanitize takes names, got {text!r}: expected {', '.join(NAMES)} or all")
    words = [w.strip() for w in text.split(",")] if isinstance(text, str) else list(text)
    found: set[str] = set()
    for word in words:
        if word == "all":
            found.update(NAMES)
        elif word in NAMES:
            found.add(word)
        elif word:
            raise ValueError(f"unknown sanitizer {word!r}: expected {', '.join(NAMES)} or all")
    return frozenset(found)


def summary(names: Iterable[str], unchecked: Mapping[str, str] | None = None) -> str:
    """Return a line that lists the checks; `unchecked` has the kernels that were not watched, and why."""
    text = f"checked for {', '.join(sorted(names))}"
    if unchecked:
        text += f" but not {', '.join(f'{name} ({why})' for name, why in unchecked.items())}"
    return text


def watching(
    names: frozenset[str],
    shadow: str | None,
    memory_map: bool,
    more: Sequence[Watcher] = (),
    timing: Watcher | None = None,
) -> Watchers | None:
    """Return the watchers of a launch, `timing` (from `recorder`) first, `more` last; None without any."""
    found: list[Watcher] = [timing] if timing is not None else []
    if names - {OF_GRAPHS} or shadow is not None or memory_map:
        from .reports import Reports

        reports = Reports()
        found += [made(reports) for made in _classes(names)]
        found.append(reports)  # last: some find something when the launch ends
    if shadow is not None:
        if shadow != "f64":
            raise ValueError(f"unknown shadow {shadow!r}: expected f64")
        from .shadow import Shadow

        found.append(Shadow())
    if memory_map:
        from .memory_map import MapWatcher

        found.append(MapWatcher())
    found += more
    return Watchers(found) if found else None


def recorder(timeline: Any, profile: Profile, dry: bool = False) -> Watcher | None:
    """Return the recorder that the option `timeline` of a launch selects: a machine, its name, a file of its
    parameters, or True for the machine of the profile. Without a timeline the result is None."""
    if timeline is False or timeline is None:
        return None
    from ...isa.timing import machine
    from ..timing import TimeRecorder

    return TimeRecorder(machine(None if timeline is True else timeline, profile), dry)


@cache
def _classes(names: frozenset[str]) -> tuple[Callable[[Reports], Watcher], ...]:
    """Return the classes of these sanitizers, ordered by `turn`, and those of `ALWAYS`."""
    asked = sorted((s for s in SANITIZERS if s.name in names), key=lambda s: s.turn)
    return tuple(_load(name) for s in asked for name in s.watchers.split()) + tuple(map(_load, ALWAYS))


def _load(watcher: str) -> type:
    module, name = watcher.split(".")
    return getattr(import_module(f".{module}", __name__), name)
