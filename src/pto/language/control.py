"""Loops and regions: the expressions after `for .. in` and `with`.

While a program is read these are descriptions; in ordinary Python they are iterators and contexts
(interpret.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ..isa.record import Record
from .enums import ForKind, Level, Role, ScopeMode, SplitMode
from .interpreter.current import current, interpreter

#: Arguments in a program: numbers, scalars, arrays and tasks of the body. The reader checks their types.
Given: TypeAlias = Any
Task: TypeAlias = Callable[..., Any]  # a function of the language
Several: TypeAlias = "Sequence[Given] | None"


class Loop(Record):
    """`pl.range(start, stop, step, init_values=...)` and the other loops."""

    kind: str
    start: Given
    stop: Given
    step: Given
    init_values: tuple[Given, ...] | None = None
    stage: int = 0

    @property
    def bounds(self) -> tuple[Given, Given, Given]:
        return self.start, self.stop, self.step

    def __iter__(self) -> Iterator[Given]:
        return interpreter(f"pl.{self.kind}").iterations(self)


class ControlRegion(Record):
    """`with pl.at(...)`, `pl.spmd(...)`, `pl.scope()` and the other regions. `kind`: at, spmd, cluster,
    scope, split_aiv."""

    kind: str
    options: dict[str, Given]

    def __enter__(self) -> Given:
        return interpreter(f"pl.{self.kind}").enter(self)

    def __exit__(self, *_: object) -> None:
        interpreter(f"pl.{self.kind}").leave(self)

    def __iter__(self) -> Iterator[Given]:
        return interpreter(f"pl.{self.kind}").iterations(self)


def _bounds(args: tuple[Given, ...]) -> tuple[Given, Given, Given]:
    if not 1 <= len(args) <= 3:
        raise TypeError("expected (stop), (start, stop) or (start, stop, step)")
    start, stop, step = ((0, *args, 1), (*args, 1), args)[len(args) - 1][:3]
    return start, stop, step


def range(
    *args: Given, init_values: Several = None, chunk: object = None, chunk_policy: object = None,
    attrs: object = None,
) -> Loop:  # fmt: skip
    """Iterate one after another."""
    return Loop("range", *_bounds(args), None if init_values is None else tuple(init_values))


def parallel(
    *args: Given, init_values: Several = None, chunk: object = None, chunk_policy: object = None,
    attrs: object = None,
) -> Loop:  # fmt: skip
    """Iterate in any order: the author declares that the iterations are independent, and the sanitizers check
    this.
    """
    return Loop("parallel", *_bounds(args), None if init_values is None else tuple(init_values))


def unroll(*args: Given, chunk: object = None, chunk_policy: object = None, attrs: object = None) -> Loop:
    """Write out each iteration."""
    return Loop("unroll", *_bounds(args))


def pipeline(*args: Given, stage: int = 2, init_values: Several = None, attrs: object = None) -> Loop:
    """Iterate as `range` does; loads of later iterations may overlap with earlier work."""
    return Loop("pipeline", *_bounds(args), None if init_values is None else tuple(init_values), stage)


class While(Record):
    """Loop as `for (x,) in pl.while_(init_values=(x0,)):`, with `pl.cond(..)` as the first statement."""

    init_values: tuple[Given, ...]

    def __iter__(self) -> Iterator[Given]:
        return interpreter("pl.while_").iterations(self)


def while_(*, init_values: Sequence[Given]) -> While:
    return While(tuple(init_values))


def cond(value: Given) -> Given:
    """Continue a `pl.while_` while the condition holds; this must be its first statement."""
    return value


def yield_(*values: Given) -> Given:
    """Hand values to the next iteration; the last statement of a loop with `init_values`."""
    interpreter("pl.yield_").yielded(values)
    return values[0] if len(values) == 1 else values


def at(
    level: Level = Level.CORE_GROUP, role: Role | None = None, *, optimizations: Several = None,
    deps: Several = None, no_dep_args: Several = None, dumps: object = None,
    allow_early_resolve: bool = False, name_hint: str = "", windowize: bool = False, windows: Several = None,
) -> ControlRegion:  # fmt: skip
    """Run the body on a core, as one task. `as tid` names the task. `windows` lists tensors that tasks of
    other ranks write, too; it appears in printed stages.
    """
    settings = {"level": level, "role": role, "optimizations": optimizations or [], "deps": deps}
    hints = {"no_dep_args": no_dep_args or [], "name_hint": name_hint, "windows": windows or []}
    return ControlRegion("at", settings | hints)


def incore() -> ControlRegion:
    """Run the body as `pl.at(level=pl.Level.CORE_GROUP)` does."""
    return at()


def spmd(
    core_num: Given,
    *,
    sync_start: bool = False,
    name_hint: str = "",
    optimizations: Several = None,
    deps: Several = None,
    allow_early_resolve: bool = False,
    predicate: Given = None,
    windows: Several = None,
) -> ControlRegion:
    """Run the body on several cores, one block each, as one task. `windows`: as in `pl.at`."""
    return ControlRegion(
        "spmd",
        {
            "core_num": core_num,
            "sync_start": sync_start,
            "name_hint": name_hint,
            "deps": deps,
            "optimizations": optimizations or [],
            "predicate": predicate,
            "windows": windows or [],
        },
    )


def cluster(*, name_hint: str = "") -> ControlRegion:
    """Run tasks on one cluster: a cube core and its vector cores."""
    return ControlRegion("cluster", {"name_hint": name_hint})


def scope(mode: ScopeMode = ScopeMode.AUTO) -> ControlRegion:
    """Release the tensors of its tasks when the scope ends."""
    return ControlRegion("scope", {"mode": mode})


def manual_scope() -> ControlRegion:
    """Order tasks by `deps=` only."""
    return scope(ScopeMode.MANUAL)


def split_aiv(count: int, mode: SplitMode = SplitMode.UP_DOWN) -> ControlRegion:
    """Run vector work on both vector cores of a block."""
    return ControlRegion("split_aiv", {"count": count, "mode": mode})


class Split(Record):
    """The split of vector work in a mixed region."""

    mode: SplitMode
    slot_num: int | None = None


def split(mode: SplitMode, *, slot_num: int | None = None) -> Split:
    return Split(mode, slot_num)


class CrossCoreSlot(Record):
    slot_num: int


def cross_core_slot(*, slot_num: int) -> CrossCoreSlot:
    """Set the number of slots of the FIFOs between cube and vector cores."""
    return CrossCoreSlot(slot_num)


class Submission(Record):
    """A task that is submitted by name: `out, task = pl.submit(kernel, a, out, deps=[before])`."""

    function: Task
    args: tuple[Given, ...]
    kwargs: dict[str, Given]
    options: dict[str, Given]


def submit(
    function: Task, /, *args: Given, deps: Several = None, no_dep_args: Several = None, dumps: object = None,
    allow_early_resolve: bool = False, predicate: Given = None, **kwargs: Given,
) -> Given:  # fmt: skip
    """Submit a task of a function; return the function's results and the task.

    Trailing outputs may be left out: the call creates them. The task waits for the tasks in `deps`, and for
    the tasks that its tensors depend on. Tensors in `no_dep_args` add no dependencies.
    """
    return _submitted(
        function, args, kwargs, {"deps": deps, "no_dep_args": no_dep_args, "predicate": predicate}
    )


def spmd_submit(
    function: Task, /, *args: Given, core_num: Given, sync_start: bool = False, deps: Several = None,
    no_dep_args: Several = None, dumps: object = None, allow_early_resolve: bool = False,
    predicate: Given = None, **kwargs: Given,
) -> Given:  # fmt: skip
    """Submit a task of several blocks, as `submit` does."""
    options = {"core_num": core_num, "sync_start": sync_start, "deps": deps, "no_dep_args": no_dep_args}
    return _submitted(function, args, kwargs, {**options, "predicate": predicate})


def _submitted(
    function: Task, args: tuple[Given, ...], kwargs: dict[str, Given], options: dict[str, Given]
) -> Given:
    made = Submission(function, args, kwargs, options)
    it = current.get()
    return made if it is None else it.submit(made)


class NoDep(Record):
    """An argument that does not order its task against other tasks."""

    value: Given


def no_dep(tensor: Given) -> Given:
    """Pass a tensor to a task without ordering the task against other tasks that use the tensor."""
    return NoDep(tensor) if current.get() is None else tensor


#: Loops and regions by name.
FORMS: dict[str, Callable[..., object]] = {
    name: made
    for name, made in list(globals().items())
    if inspect.isfunction(made) and made.__module__ == __name__ and not name.startswith("_")
}
__all__ = ["FORMS", "ForKind", "Loop", "ControlRegion", "While", *FORMS]
