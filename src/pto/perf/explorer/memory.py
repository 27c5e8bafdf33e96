"""The view of memory: tiles in on-chip buffers over time.

A memory map counts time in instructions of a core. With a timeline, every instruction has a time. Without one
(a plan, or a run that failed), the instructions are the axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...isa.profiles import LOCATIONS
from ..memory_map import HeldValue, Life, MemoryMap, TileOverlap
from .page import packed, page

Array = np.ndarray[Any, Any]

#: Maximum number of instructions in the list of a tile.
_MOST_USES = 12


def of_core(map: MemoryMap, core: str) -> list[dict[str, Any]]:
    """Return the buffers of a core with their tiles, in the form that the page draws; times are steps."""
    found: list[dict[str, Any]] = []
    for loc in map.buffers(core):
        lives = map.tiles(core, loc)
        number = {life: n for n, life in enumerate(lives)}
        overlaps = map.overlaps(core, loc)
        capacity, top = map.capacity(loc), map.top(core, loc)
        problems = [_clash(o) for o in overlaps]
        problems += [
            f"%{v.name} takes bytes {v.address}..{v.end}, beyond the capacity of {capacity}"
            for v in lives
            if v.placed and v.end > capacity
        ]
        found.append({
            "space": loc, "title": LOCATIONS[loc], "capacity": capacity, "top": top,
            "lives": [_life(v) for v in lives],
            "overlaps": [
                [number[o.a], number[o.b], o.low, o.high, [t for span in o.spans[:500] for t in span]]
                for o in overlaps
            ],
            "problems": problems,
        })  # fmt: skip
    return found


def _life(v: Life) -> dict[str, Any]:
    return {
        "name": v.name, "shape": v.shape, "low": v.address, "high": v.end, "placed": v.placed,
        "view": sorted({o.name for o in v.views}) if v.is_view else [], "line": v.line,
        "writes": v.writes, "reads": v.reads,
        "uses": [[name, line, int(write), n] for (name, line, write), n in list(v.uses.items())[:_MOST_USES]],
        "more": max(0, len(v.uses) - _MOST_USES),
        "values": _held(v.values),
    }  # fmt: skip


def _held(values: list[HeldValue]) -> str:
    """Return the first and last step of each value, packed: twice the step, plus 1 if the value is born by a
    write."""
    pairs = [n for v in values for n in (2 * v.first + v.written, 2 * v.last)]
    return packed(pairs)


def _clash(o: TileOverlap) -> str:
    writers = sorted({line for (_, line, write) in o.b.uses if write})
    readers = sorted({line for (_, line, write) in o.a.uses if not write})
    lines = f"; %{o.b.name} is written in {_lines(writers)}" if writers else ""
    lines += f", %{o.a.name} is read in {_lines(readers)}" if readers else ""
    return o.text() + lines


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:6])) + (", .." if len(numbers) > 6 else "")
    return f"line{'s' if len(numbers) > 1 else ''} {shown}"


def beside(map: MemoryMap, cores: Sequence[tuple[int, str]], index: Array) -> dict[str, Any]:
    """Return the map for a page with a timeline: by core, its buffers and the event of each step. `cores` are
    the cores of the first block with their numbers, and `index` has the event of every number of the
    launch."""
    found: dict[str, Any] = {}
    for number, name in cores:
        core = name or "core"
        if core in map.lives:
            steps = index[np.asarray(map.numbers.get(core, ()), np.int64)]
            found[str(number)] = {"steps": packed(steps), "spaces": of_core(map, core)}
    return found


def dataset(
    map: MemoryMap, name: str, sources: Mapping[str, str] | None = None, file: str = ""
) -> dict[str, Any]:
    """Return the dataset of a map without a timeline: time is counted in steps of two ticks."""
    cores = list(map.lives)
    lanes: list[dict[str, Any]] = []
    sites: dict[tuple[str, int], int] = {}
    table: list[tuple[int, int, int]] = []
    length = 1
    for number, core in enumerate(cores):
        steps = map.steps.get(core, [])
        length = max([length, len(steps), *[v.last + 1 for v in map.lives[core]]])
        for pipe in dict.fromkeys(s.pipe for s in steps):
            lanes.append({"core": number, "pipe": pipe})
            table += [
                (len(lanes) - 1, n, sites.setdefault((s.name, s.line), len(sites)))
                for n, s in enumerate(steps)
                if s.pipe == pipe
            ]
    columns = np.asarray(table, np.int64).reshape(-1, 3)
    of_lane = np.asarray([lane["core"] for lane in lanes] or [0])
    of_step: list[str] = []  # for each core, the event of each step
    for number in range(len(cores)):
        mine = np.flatnonzero(of_lane[columns[:, 0]] == number)
        of_step.append(packed(mine[np.argsort(columns[mine, 1])]))
    start = packed(2 * columns[:, 1])
    done = packed(2 * columns[:, 1] + 2)
    nothing = packed([])
    zeros = packed(np.zeros(len(columns)))
    return {
        "name": name, "tick": 500, "unit": "step", "total": length, "begin": 0, "cores": cores,
        "blocks": [0] * len(cores), "lanes": lanes, "reasons": ["other"],
        "sites": [[s, line, file] for s, line in sites], "sources": dict(sources or {}),
        "charges": [[0, 0, "", ""]], "ranges": [[]], "capacity": dict(map.profile.capacity), "lines": [],
        "cards": [], "stalls": [],
        "events": {"lane": packed(columns[:, 0]), "start": start, "free": done, "done": done,
                   "site": packed(columns[:, 2]), "charge": zeros, "touched": zeros, "path": nothing},
        "gaps": dict.fromkeys(("lane", "from", "to", "why", "event", "of"), nothing),
        "maps": {str(n): {"steps": of_step[n], "spaces": of_core(map, core)} for n, core in enumerate(cores)},
        "titles": dict(LOCATIONS),
    }  # fmt: skip


def html(map: MemoryMap, name: str, about: str = "", sources: Mapping[str, str] | None = None) -> str:
    """Return a page of a map without a timeline; `about` replaces the description of the run."""
    cores = len(map.lives)
    what = f"{map.profile.title} ({map.profile.name}), {cores} core{'s' * (cores != 1)} of block 0"
    note = about or f"{what}; time is counted in instructions of the core, in program order"
    note += "" if cores else " No tile was touched."
    file = next(iter(sources), "") if sources else ""
    return page([dataset(map, name, sources, file)], "Memory", note, "memory")
