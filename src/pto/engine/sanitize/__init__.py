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
    classes, whose constructor takes a `Reports`. If several sanitizers report an instruction, the one with
    the lower `turn` comes first.
    """

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
#: Stands for no names in calls of Python programs: the findings of `tasks` are warnings.
WARN = "warn"
#: Sanitizers without cost, which every selection includes.
ALWAYS = ("granularity.Granularity",)

NAMES = tuple(s.name for s in SANITIZERS)


class Checks(NamedTuple):
    """The sanitizers of a graph, and how much they check."""

    names: frozenset[str] = frozenset()
    #: True: report undefined data in tensors between tasks, even without an effect.
    strict_undef: bool = False
    #: The number of blocks of each kind that are checked; None: all.
    sample: int | None = None


def checks(
    names: frozenset[str], strict_undef: bool | None = None, sample: int | str | None = None
) -> Checks:
    """Return checks; the defaults are PTO_STRICT_UNDEF and PTO_SAMPLE."""
    strict = bool(knobs.get("PTO_STRICT_UNDEF")) if strict_undef is None else strict_undef
    return Checks(names, strict, parse_sample(knobs.get("PTO_SAMPLE") if sample is None else sample))


def parse_sample(text: int | str) -> int | None:
    """Return a number of blocks; None for `all`."""
    if text == "all":
        return None
    if not str(text).isdecimal() or not int(text):
        raise ValueError(f"expected a number of blocks or 'all' for sample, got {text!r}")
    return int(text)


class Sample:
    """The checked blocks of a graph: the first blocks of each kind, another block each time that the number
    of blocks has doubled, and the last block of the first task.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._seen: dict[object, int] = {}
        #: By kernel: blocks that were not checked, and all blocks.
        self._counts: dict[str, list[int]] = {}

    def take(self, name: str, kind: object, blocks: int = 1, whole: bool = False) -> list[int]:
        """Return the blocks to check of the next task of a kernel: with `whole`, all of them or none. `kind`
        distinguishes the uses of the kernel."""
        before = self._seen.get((name, kind), 0)
        self._seen[name, kind] = before + blocks
        taken = [
            n
            for n in range(blocks)
            if self.limit is None
            or before + n < self.limit
            or (before + n + 1).bit_count() == 1
            or (n == blocks - 1 and not before)
        ]
        if whole and taken:
            taken = list(range(blocks))
        count = self._counts.setdefault(name, [0, 0])
        count[0] += blocks - len(taken)
        count[1] += blocks
        return taken

    def add(self, name: str, blocks: int) -> None:
        """Count further blocks as checked."""
        self._counts[name][0] -= blocks

    def left(self) -> dict[str, str]:
        """Return the kernels with unchecked blocks, with their number."""
        return {
            name: f"{left} of {total} blocks, beyond the sample of {self.limit}"
            for name, (left, total) in self._counts.items()
            if left
        }


def asked() -> frozenset[str]:
    """Return the sanitizers that PTO_SANITIZE selects. `warn` selects none."""
    words = knobs.get("PTO_SANITIZE")
    return frozenset() if words == WARN else parse_names(words)


def parse_names(text: str | Sequence[str] | frozenset[str]) -> frozenset[str]:
    """Return the names of sanitizers in a comma-separated list; `all` stands for all of them."""
    if not isinstance(text, str | Sequence | frozenset):
        raise ValueError(f"expected names of sanitizers ({', '.join(NAMES)}) or all, got {text!r}")
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
    first: Sequence[Watcher] = (),
) -> Watchers | None:
    """Return the watchers of a launch, `first` (such as a `recorder`) before sanitizers; None without any."""
    found = list(first)
    if names - {OF_GRAPHS} or shadow is not None or memory_map:
        from .reports import Reports

        reports = Reports()
        found += [made(reports) for made in _classes(names)]
        found.append(reports)  # last, because some sanitizers report when the launch ends
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


def recorder(timeline: Any, profile: Profile, dry: bool = False) -> list[Watcher]:
    """Return the recorder that the option `timeline` of a launch selects: a machine, its name, a file of its
    parameters, or True for the machine of the profile. Without a timeline the result is empty."""
    if timeline is False or timeline is None:
        return []
    from ...isa.timing import machine
    from ..timing import TimeRecorder

    return [TimeRecorder(machine(None if timeline is True else timeline, profile), dry)]


@cache
def _classes(names: frozenset[str]) -> tuple[Callable[[Reports], Watcher], ...]:
    """Return the classes of these sanitizers, ordered by `turn`, and those of `ALWAYS`."""
    asked = sorted((s for s in SANITIZERS if s.name in names), key=lambda s: s.turn)
    return tuple(_load(name) for s in asked for name in s.watchers.split()) + tuple(map(_load, ALWAYS))


def _load(watcher: str) -> type:
    module, name = watcher.split(".")
    return getattr(import_module(f".{module}", __name__), name)
