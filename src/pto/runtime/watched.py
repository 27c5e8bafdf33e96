"""Kernels of a graph under watch: sanitizers on what each task tells of its calls (`told`).

Every task is a launch of its own, in the order that tasks began: after the run, or while it goes on where too
much would have to be kept. What is wrong in several tasks is told once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..diag import Diagnostic
from ..engine.watch import Event, Watcher
from .told import Block, Execution, Hearing


class Written:
    """Bytes of global memory that somebody wrote, by page."""

    _BITS = 12
    _FULL = np.ones(1 << _BITS, bool)

    def __init__(self) -> None:
        self._pages: dict[int, Any] = {}

    def add(self, addresses: Any) -> None:
        for page, at in self._by_page(addresses):
            found = self._pages.get(page)
            if found is self._FULL:
                continue
            if found is None:
                found = self._pages[page] = np.zeros(1 << self._BITS, bool)
            found[at] = True

    def add_all(self, address: int, size: int) -> None:
        """All of a piece of memory."""
        self.add_where(address, np.ones(1, bool), size)

    def add_where(self, address: int, mask: Any, size: int | None = None) -> None:
        """Those bytes of a piece of memory where a mask holds; a mask of one holds or does not for all."""
        bytes, end = 1 << self._BITS, address + (mask.size if size is None else size)
        for page in range(address >> self._BITS, (end + bytes - 1) >> self._BITS):
            low, high = max(address, page * bytes), min(end, (page + 1) * bytes)
            part = mask if size is not None else mask[low - address : high - address]
            if not part.any():
                continue
            if high - low == bytes and part.all():
                self._pages[page] = self._FULL  # which nobody writes to
                continue
            found = self._pages.get(page)
            if found is self._FULL:
                continue
            if found is None:
                found = self._pages[page] = np.zeros(bytes, bool)
            found[low - page * bytes : high - page * bytes] |= part

    def knows(self, address: int, size: int) -> bool:
        """Whether anybody wrote some of a piece of memory."""
        bytes, end = 1 << self._BITS, address + size
        for page in range(address >> self._BITS, (end + bytes - 1) >> self._BITS):
            found = self._pages.get(page)
            low, high = max(address, page * bytes), min(end, (page + 1) * bytes)
            if found is not None and found[low - page * bytes : high - page * bytes].any():
                return True
        return False

    def lacks(self, addresses: Any) -> int:
        """How many of some bytes nobody wrote."""
        none = np.zeros(1 << self._BITS, bool)
        return sum(int((~self._pages.get(page, none)[at]).sum()) for page, at in self._by_page(addresses))

    def _by_page(self, addresses: Any) -> Iterator[tuple[int, Any]]:
        pages, within = addresses >> self._BITS, addresses & (1 << self._BITS) - 1
        order = np.argsort(pages, kind="stable")
        pages, within = pages[order], within[order]
        starts = np.flatnonzero(np.r_[True, pages[1:] != pages[:-1]]) if pages.size else np.empty(0, int)
        for n, start in enumerate(starts):
            end = starts[n + 1] if n + 1 < len(starts) else pages.size
            yield int(pages[start]), within[start:end]


class _Writes(Watcher):
    """Reads of memory that no task has written before."""

    def __init__(self, written: Written, addresses: Mapping[Any, int]) -> None:
        self._written = written
        self._addresses = addresses
        self.found: list[Diagnostic] = []

    def finished(self, event: Event) -> None:
        for access in event.accesses:
            base = self._addresses.get(access.place.buffer) if access.space == "gm" else None
            if base is None:
                continue
            bytes = access.bytes() + base
            if access.write:
                self._written.add(bytes)
            elif (lacking := self._written.lacks(bytes)) and not self.found:
                core, name = event.core, access.place.buffer.name
                message = f"reads {lacking} bytes of {name} that no task has written before"
                help = "let a task write it first, and order the two"
                self.found.append(core.diagnostic(event.op, "PTO-E2203", message, help=help))


#: Every byte of memory that nobody wrote, where the runtime is told to mark it.
POISON = 0xFF


class Watch:
    """What is wrong with the kernels of a run."""

    def __init__(self, hearing: Hearing, names: frozenset[str]) -> None:
        self._hearing = hearing
        self._names = names
        #: What was found, by code and place, with the tasks that it is the same in.
        self._found: dict[Any, tuple[Diagnostic, list[str]]] = {}
        hearing.judge, hearing.copied = self._judge, self._copied
        #: What was written, where it is known what was before.
        self._written: Written | None = None
        self._copies_seen = True

    def begin(self, given: Iterable[tuple[int, int]] | None) -> None:
        """Look for reads of what nobody wrote. `given` are addresses and sizes of memory that holds something
        before the graph runs; None: the host copies to memory that it makes itself, unseen."""
        self._written = Written()
        self._copies_seen = given is not None
        for address, size in given or ():
            self._written.add_all(address, size)

    def _copied(self, address: int, data: Any) -> None:
        """What holds something else than fresh memory does (`POISON`) was written: by the host, by a plain
        store. Where copies of the host are not seen, all of an array is that holds anything."""
        if self._written is None:
            return
        touched = data != POISON
        if self._copies_seen:
            self._written.add_where(address, touched)
        elif touched.any() and not self._written.knows(address, data.size):
            self._written.add_all(address, data.size)

    def problems(self) -> list[Diagnostic]:
        """Afterwards: each problem once."""
        for key, cores in self._hearing.told.items():
            self._judge(key, cores)
        for d, others in self._found.values():
            if others:
                more = f", and {len(others) - 3} more" if len(others) > 3 else ""
                d.notes.append((f"the same in {'; '.join(others[:3])}{more}", None))
        return [d for d, _ in self._found.values()]

    def _judge(self, key: tuple[int, int], cores: Block) -> None:
        task, block = key
        kernels = self._hearing.kernels
        name = ", ".join(dict.fromkeys(kernels[c.library] for c in cores.values()))
        where = f"task {task} ({name})" + (f", block {block}" if block else "")
        for d in self._execute(cores, block):
            place = d.span.place if d.span is not None else (0, 0)
            file = d.span.source.name if d.span is not None else name
            same = (d.code, file, place)
            if same in self._found:
                self._found[same][1].append(where)
            else:
                d.message += f" in {where}"
                self._found[same] = (d, [])

    def _execute(self, cores: Block, block: int) -> list[Diagnostic]:
        from ..engine.sanitize import watching
        from ..engine.traced.spelling import in_cpp

        execution = Execution(self._hearing, cores, block)
        known = self._written if "undef" in self._names else None
        more = [] if known is None else [_Writes(known, execution.addresses)]
        result = execution.run(watching(self._names, None, False, more))
        for writes in more:
            for d in writes.found:
                in_cpp(d)
                result.diagnostics.append(d)
        return [d for d in result.diagnostics if d.severity == "error"]


def as_errors(problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Hazards of the graph as errors."""
    for d in problems:
        if d.code == "PTO-E2611" and "used no instructions" not in d.message:
            d.severity = "error"
    return list(problems)
