"""Byte-precise check of unordered tasks that share a tensor.

The runtime uses the declared parameters of tasks. Tasks that each write a stripe of one tensor, at a row
given by a number, declare that they write all of it. So the program runs again, one task after another, and
the suspected tasks are observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...engine.watch import INSTRUCTION, Event, Watcher
from ...perf.hazards import Hazard
from ..graphs.serial import Serial, SerialTensor

Array = Any
_READ, _WRITE, _ATOMIC = range(3)
#: Kinds of hazards between two tasks.
_OF_TWO = ("RAW", "WAW", "WAR")


class Bytes(Watcher):
    """The bytes that a task reads, writes and adds to: disjoint address ranges in order."""

    wants = (INSTRUCTION,)

    def __init__(self) -> None:
        self._parts: tuple[list[Array], ...] = ([], [], [])

    def finished(self, event: Event) -> None:
        for access in event.accesses:
            if access.space != "gm":
                continue
            low, high = access.bounds
            if low == high:
                continue
            runs = None if access.region is None else access.region.runs()
            if runs is None:
                at = np.unique(np.asarray(access.bytes(), np.int64))
                ends = np.flatnonzero(np.diff(at) != 1)
                runs = np.stack([at[np.r_[0, ends + 1]], at[np.r_[ends, at.size - 1]] + 1], axis=1)
            base = int(access.place.buffer.data.__array_interface__["data"][0])
            atomic = access.write and event.op.attr("atomicType") not in (None, "atomic_none")
            how = _ATOMIC if atomic else _WRITE if access.write else _READ
            self._parts[how].append(runs + base)

    def of(self, *how: int) -> Array:
        """Return runs of bytes."""
        parts = [p for h in how for p in self._parts[h]]
        every = np.concatenate(parts) if parts else np.zeros((0, 2), np.int64)
        every = every[np.argsort(every[:, 0], kind="stable")]
        if not len(every):
            return every
        ends = np.maximum.accumulate(every[:, 1])
        begins = np.flatnonzero(np.r_[True, every[1:, 0] > ends[:-1]])
        return np.stack([every[begins, 0], ends[np.r_[begins[1:] - 1, len(every) - 1]]], axis=1)

    def meets(self, other: Bytes) -> bool:
        """Return True if either task changes bytes that the other accesses; two atomic additions do not
        conflict."""
        pairs = (
            ((_WRITE,), (_READ, _WRITE, _ATOMIC)),
            ((_READ,), (_WRITE, _ATOMIC)),
            ((_ATOMIC,), (_READ, _WRITE)),
        )
        return any(_overlap(self.of(*mine), other.of(*theirs)) for mine, theirs in pairs)


def _overlap(a: Array, b: Array) -> bool:
    if not len(a) or not len(b):
        return False
    at = np.searchsorted(b[:, 1], a[:, 0], side="right")  # the first range of b that ends after it
    inside = at < len(b)
    return bool((b[at[inside], 0] < a[inside, 1]).any())


class _Kept(Serial):
    """A runtime that does not reuse memory for a second tensor."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.made: list[Array] = []

    def tensor(self, *args: Any, **kwargs: Any) -> SerialTensor:
        made = super().tensor(*args, **kwargs)
        self.made.append(made.root)
        return made


def met(hazards: Iterable[Any], compiled: Any, values: Sequence[object]) -> list[Hazard]:
    """Return the hazards of a run whose tasks touch the same bytes; `values` are those before the run."""
    hazards = list(hazards)
    wanted = {t for h in hazards if h.kind in _OF_TWO for t in (h.earlier, h.later)}
    if not wanted:
        return hazards
    watched = compiled.kernels("reference")
    seen: dict[int, Bytes] = {}

    def launch(kernel: Any, args: Sequence[object], said: Mapping[str, object]) -> None:
        blocks = {"blocks": said["blocks"]} if said.get("blocks") else {}
        task = rt.count - 1
        if task not in wanted:
            kernel(*args, **blocks)
            return
        watcher = Bytes()
        if watched[kernel.name].run(*args, watchers=[watcher], **blocks).ok:
            seen[task] = watcher

    rt = _Kept(launch, compiled.places)
    compiled.submit_to(rt, values)

    def alike(h: Any) -> bool:
        a, b = seen.get(h.earlier), seen.get(h.later)
        return h.kind not in _OF_TWO or a is None or b is None or a.meets(b)

    return [h for h in hazards if alike(h)]
