"""Communication within one process: tensors of all ranks lie in one memory, so a remote copy is a copy.

Launches over several ranks build on this; the order between ranks is given by tnotify and twait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..elements import Array
from ..memory import View
from ..region import Region, blocked, scattered
from .instr import IllegalInstruction, Instr
from .registry import executor


class _Whole:
    """Every element of a view in index order, as the matrix that `Instr` reads and writes."""

    def __init__(self, view: View, first_row: int = 0, rows: int | None = None) -> None:
        self.view = view
        self.buffer, self.dtype, self.name = view.buffer, view.dtype, view.name
        self.first_row = first_row  # rows of dimension 3 taken
        self.rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        (d0, d1, d2, d3, d4), _ = self.view.dims5
        return d0 * d1 * d2 * (d3 if self.rows is None else self.rows), d4

    def region(self, rows: int, cols: int, r: int = 0, c: int = 0) -> Any:
        (d0, d1, d2, d3, d4), (s0, s1, s2, s3, s4) = self.view.dims5
        taken = d3 if self.rows is None else self.rows
        at = np.zeros(1, np.intp)
        for count, step, first in ((d0, s0, 0), (d1, s1, 0), (d2, s2, 0), (taken, s3, self.first_row)):
            at = (at[:, None] + (np.arange(count, dtype=np.intp) + first) * step).ravel()
        return Region(self.view.offset, scattered(at), blocked(0, d4, 1, s4, 0), self.view.bits)


def _read(i: Instr, view: View, first_row: int = 0, rows: int | None = None) -> Array:
    place: Any = _Whole(view, first_row, rows)
    return i.raw(place, place.shape)


def _write(i: Instr, view: View, data: Array, first_row: int = 0, rows: int | None = None) -> None:
    place: Any = _Whole(view, first_row, rows)
    if place.shape != data.shape:
        raise IllegalInstruction(
            f"%{view.name} has {place.shape} elements, {data.shape} come"
        )
    i.store_raw(place, data)


@executor("tput", "tget")
def copy(i: Instr) -> None:
    source, target = i.arg("src"), i.arg("dst")
    data = _read(i, source)
    if not data.size:
        return
    if str(i.attr("atomicType") or "atomic_none") == "atomic_add":
        old = i.decoded(target.dtype, _read(i, target))
        data = i.encoded(old + i.decoded(source.dtype, data), target.dtype)
    _write(i, target, data)


@executor("tput_async", "tget_async")
def copy_async(i: Instr) -> Any:
    copy(i)
    return 0  # handle 0: nothing is pending


@executor("build_async_session")
def build_async_session(i: Instr) -> Any:
    return "session"


@executor("wait_async_event", "test_async_event")
def wait_async_event(i: Instr) -> Any:
    return 1


def _group(i: Instr) -> list[View]:
    return list(i.arg("pg").tensors) if i.has("pg") else list(i.arg("group") or [])


@executor("tbroadcast")
def tbroadcast(i: Instr) -> None:
    data = np.array(_read(i, i.arg("src")))
    for member in _group(i):
        _write(i, member, data)


@executor("treduce")
def treduce(i: Instr) -> None:
    """The root's tensor first, then the others by rank, each step rounded to the element type."""
    members = _group(i)
    root = int(i.attr("root") or 0)
    if not 0 <= root < len(members):
        raise IllegalInstruction(f"root {root} of a group of {len(members)}")
    dtype = members[root].dtype
    acc = i.decoded(dtype, np.array(_read(i, members[root])))
    how = str(i.attr("reduceOp") or "Sum")
    for rank, member in enumerate(members):
        if rank == root:
            continue
        other = i.decoded(dtype, np.array(_read(i, member)))
        if how == "Sum":
            acc = i.round(acc + other, dtype)
        elif how == "Max":
            acc = np.where(acc < other, other, acc)
        else:
            acc = np.where(other < acc, other, acc)
    _write(i, i.arg("dst"), i.encoded(acc, dtype))


@executor("comm.tgather")
def gather(i: Instr) -> None:
    members = _group(i)
    height = members[0].dims5[0][3] if members else 0
    data = [np.array(_read(i, m)) for m in members]
    for rank, part in enumerate(data):
        _write(i, i.arg("dst"), part, rank * height, height)


@executor("comm.tscatter")
def scatter(i: Instr) -> None:
    members = _group(i)
    height = members[0].dims5[0][3] if members else 0
    data = [np.array(_read(i, i.arg("src"), rank * height, height)) for rank in range(len(members))]
    for member, part in zip(members, data, strict=True):
        _write(i, member, part)


@executor("tnotify")
def tnotify(i: Instr) -> None:
    signal: View = i.arg("signal")
    at = np.zeros(1, np.intp)
    value = np.array([i.arg("value")], np.int64)
    if str(i.attr("notifyOp")) == "AtomicAdd":
        value = value + i.values_at(signal, at)
    i.store_at(signal, at, value)


@executor("ttest")
def ttest(i: Instr) -> Any:
    return int(holds(i))


def holds(i: Instr) -> bool:
    """Whether every element of the signal compares as asked."""
    values = i.decoded("i32", np.array(_read(i, i.arg("signal")))).view(np.int32)
    wanted = i.arg("cmpValue")
    how = str(i.attr("cmp") or "eq")
    compared = {"eq": values == wanted, "ne": values != wanted, "gt": values > wanted, "ge": values >= wanted,
                "lt": values < wanted, "le": values <= wanted}[how]  # fmt: skip
    return bool(compared.all())
