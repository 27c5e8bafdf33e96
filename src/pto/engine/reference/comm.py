"""Communication between ranks. Tensors of all ranks lie in one memory, so a remote copy is a copy.

tnotify and twait order the ranks; asynchronous copies are in `transfers`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..elements import Array
from ..memory import View
from ..region import Region, blocked, scattered
from .handles import Group
from .instr import IllegalInstruction, Instr
from .registry import executor

#: The comparisons of signals, for numbers and for arrays.
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "gt", "ge", "lt", "le")
}

#: Extents of a tensor in five dimensions, outermost first.
Extents = tuple[int, ...]


#: A larger stride leads outside of every array, and offsets could overflow.
_FAR = 1 << 50


class _Box:
    """The elements of a view from row `first` of dimension 3 on, in index order, as a matrix for `Instr`,
    with a row for each index of the first four dimensions."""

    def __init__(self, view: View, extents: Extents, first: int = 0) -> None:
        self.view = view
        self.extents = extents
        self.first = first
        self.buffer, self.dtype, self.name = view.buffer, view.dtype, view.name

    @property
    def shape(self) -> tuple[int, int]:
        d0, d1, d2, d3, d4 = self.extents
        return d0 * d1 * d2 * d3, d4

    def region(self, rows: int, cols: int, r: int = 0, c: int = 0) -> Region:
        strides = self.view.dims5[1]
        if any(abs(step) > _FAR for step in strides):
            raise IllegalInstruction(
                f"expects %{self.name} to have strides that lead to memory, got {strides}"
            )
        at = np.zeros(1, np.intp)
        for count, step in zip(self.extents[:4], strides[:4], strict=True):
            at = (at[:, None] + np.arange(count, dtype=np.intp) * step).ravel()
        across = blocked(0, self.extents[4], 1, strides[4], 0)
        return Region(self.view.offset, scattered(at + self.first * strides[3]), across, self.view.bits)


def _extents(view: View) -> Extents:
    if len(view.dims) > 5:
        raise IllegalInstruction(f"expects %{view.name} to have at most 5 dimensions, got {len(view.dims)}")
    found = view.dims5[0]
    if min(found) < 0:
        raise IllegalInstruction(f"expects the sizes of %{view.name} to be at least 0, got {min(found)}")
    return found


def _shown(extents: Extents) -> str:
    return "x".join(map(str, extents))


def _holding(view: View, extents: Extents, exactly: bool = False) -> None:
    """Stop if a view does not have every index of `extents`, or, if `exactly`, has other extents."""
    have = _extents(view)
    short = any(h < wanted for h, wanted in zip(have, extents, strict=True))
    if have != extents if exactly else short:
        raise IllegalInstruction(
            f"expects %{view.name} to hold {_shown(extents)} elements, but it has {_shown(have)}"
        )


def _read(i: Instr, view: View, extents: Extents | None = None, first: int = 0) -> Array:
    """Return a copy of the elements of a view, or of a box in it."""
    place: Any = _Box(view, _extents(view) if extents is None else extents, first)
    return np.array(i.raw(place, place.shape))


def _write(i: Instr, view: View, data: Array, extents: Extents, first: int = 0) -> None:
    place: Any = _Box(view, extents, first)
    if data.size:
        i.store_raw(place, data)


# --- from one rank to another -----------------------------------------------------------------------------


@executor("copy between ranks")
def copy(i: Instr) -> None:
    """Copy every index of the source; tput may write a part of a larger tensor."""
    source, target = i.arg("src"), i.arg("dst")
    extents = _extents(source)
    _holding(target, extents, exactly=i.kind == "from")
    data = _read(i, source)
    if i.kind == "to" and str(i.attr("atomicType")) == "atomic_add":
        old = i.decoded(target.dtype, _read(i, target, extents))
        data = i.encoded(old + i.decoded(source.dtype, data), target.dtype)
    _write(i, target, data, extents)


@executor("started copy between ranks")
def copy_async(i: Instr) -> object:
    source, target = i.arg("src"), i.arg("dst")
    extents = _extents(source)
    _holding(target, extents)
    _write(i, target, _read(i, source), extents)
    return 0  # handle 0: nothing is pending


@executor("session")
def build_async_session(i: Instr) -> object:
    return "session"


@executor("event of a copy")
def wait_async_event(i: Instr) -> object:
    return 1


# --- collectives ------------------------------------------------------------------------------------------


def _group(i: Instr) -> tuple[list[View], int]:
    """Return the members and the root of a group. All members have the shape and strides of the first."""
    given: Group | None = i.arg("pg")
    members = given.tensors if given is not None else list(i.arg("group") or [])
    root = int(i.attr("root") or 0)
    if given is not None:
        i.require(
            "root" not in i.op.attrs or root == given.root,
            f"root is {root}, but the group was made with root {given.root}",
        )
        root = given.root
    i.require(0 <= root < len(members), f"root is {root}, but the group has {len(members)} members")
    home = members[root].buffer.rank
    i.require(
        home in (None, i.core.rank),
        f"rank {i.core.rank} calls it, but the root, member {root}, is a tensor of rank {home}: the root "
        "alone calls a collective",
    )
    first = _common(members[0])
    for member in members[1:]:
        i.require(
            _common(member) == first,
            "expects members of the same shape and strides, "
            f"got {_shape_text(members[0])} and {_shape_text(member)}",
        )
    return members, root


def _common(view: View) -> tuple[str, tuple[int, ...], tuple[int, ...] | tuple[()]]:
    """Return the element type, the extents, and the strides of dimensions with several elements."""
    extents = _extents(view)
    strides = tuple(s for d, s in zip(extents, view.dims5[1], strict=True) if d > 1)
    return view.dtype, extents, strides if 0 not in extents else ()


def _shape_text(view: View) -> str:
    return f"{_shown(view.dims)}x{view.dtype} (strides {', '.join(map(str, view.strides))})"


def _same_type(i: Instr, view: View, members: list[View]) -> None:
    dtype = members[0].dtype
    i.require(
        view.dtype == dtype, f"expects %{view.name} to have the members' type {dtype}, got {view.dtype}"
    )


@executor("broadcast")
def tbroadcast(i: Instr) -> None:
    members, _ = _group(i)
    source = i.arg("src")
    _same_type(i, source, members)
    extents = _extents(source)
    _holding(members[0], extents)
    data = _read(i, source)
    for member in members:
        _write(i, member, data, extents)


@executor("reduction of ranks")
def treduce(i: Instr) -> None:
    """Fold the tensor of the root, then the others by rank; each step is rounded to the element type."""
    members, root = _group(i)
    target = i.arg("dst")
    _same_type(i, target, members)
    extents = _extents(members[root])
    _holding(target, extents, exactly=True)
    dtype = target.dtype
    order = [members[root], *(m for rank, m in enumerate(members) if rank != root)]
    first, *others = [_read(i, m) for m in order]
    if not others:  # a copy
        _write(i, target, first, extents)
        return
    how = str(i.attr("reduceOp"))
    acc = i.decoded(dtype, first)
    for other in (i.decoded(dtype, data) for data in others):
        if how == "Sum":
            acc = i.round(acc + other, dtype)
        elif how == "Max":
            acc = np.where(acc < other, other, acc)
        else:
            acc = np.where(other < acc, other, acc)
    _write(i, target, i.encoded(acc, dtype), extents)


def _stacked(i: Instr, whole: View) -> tuple[list[View], Extents]:
    """Return the members, whose rows lie one below the other in `whole`, and their extents."""
    members, _ = _group(i)
    _same_type(i, whole, members)
    *outer, rows, cols = extents = _extents(members[0])
    *have, height, width = _extents(whole)
    i.require(
        have == outer and width == cols and height >= len(members) * rows,
        f"expects %{whole.name} to hold the rows of {len(members)} members of {_shown(extents)} elements, "
        f"but it has {_shown(_extents(whole))}",
    )
    return members, extents


@executor("gather of ranks")
def gather(i: Instr) -> None:
    target = i.arg("dst")
    members, extents = _stacked(i, target)
    for rank, part in enumerate([_read(i, m) for m in members]):
        _write(i, target, part, extents, rank * extents[3])


@executor("scatter to ranks")
def scatter(i: Instr) -> None:
    source = i.arg("src")
    members, extents = _stacked(i, source)
    data = [_read(i, source, extents, rank * extents[3]) for rank in range(len(members))]
    for member, part in zip(members, data, strict=True):
        _write(i, member, part, extents)


# --- signals ----------------------------------------------------------------------------------------------


@executor("signal")
def tnotify(i: Instr) -> None:
    signal: View = i.arg("signal")
    i.require(
        0 not in signal.dims, f"expects signal %{signal.name} to have an element, got {_shown(signal.dims)}"
    )
    at = np.zeros(1, np.intp)
    value = np.array([i.arg("value")], np.int64)
    if str(i.attr("notifyOp")) == "AtomicAdd":
        value = value + i.values_at(signal, at)
    i.store_at(signal, at, value)


@executor("test signal")
def ttest(i: Instr) -> Any:
    return int(holds(i))


def held(i: Instr) -> Array:
    """Return the elements of the signal."""
    return _read(i, i.arg("signal")).ravel()


def holds(i: Instr) -> bool:
    """Return whether the comparison of the instruction holds for every element of the signal."""
    return bool(COMPARED[str(i.attr("cmp"))](held(i), i.arg("cmpValue")).all())
