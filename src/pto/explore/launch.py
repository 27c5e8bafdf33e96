"""One launch of a program for its page: timeline, memory map, findings of the sanitizers and advice.

Without given arguments, arrays of zeros are as large as the views of the program, if these have constant
shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ..asm import parse
from ..diag import Diagnostic, DiagnosticError, Source
from ..driver import Lowered
from ..engine.launch import plain
from ..engine.memory import array_of, stored_shape
from ..engine.operand_values import Keeper
from ..ir.core import Operation, Value, constant_of
from ..ir.types import PtrType
from ..isa.record import Record
from ..passes.explain_memory import html as planned
from ..passes.memory.placements import MemoryPlan
from ..perf.explorer.kernel import Recorded, html
from ..perf.timeline.advice import advise

#: Seconds of a launch, and bytes of recorded values.
_TIMEOUT, _VALUES = 10.0, 1 << 20
#: Events of a launch for which advice is computed without a noticeable delay.
_ADVISED = 5_000


class LaunchPlan(Record):
    """Options of a launch. `arguments` makes new values for each launch; None means zeros."""

    arguments: Callable[[], list[Any]] | None = None
    entry: str | None = None
    blocks: int = 1


class LaunchView(Record):
    """The page of a launch or of planned memory, a remark about it, and its findings."""

    page: str = ""
    note: str = ""
    findings: tuple[Diagnostic, ...] = ()
    advice: tuple[tuple[str, int], ...] = ()  # with their lines


def launch(source: Source, done: Lowered, plan: LaunchPlan) -> LaunchView:
    """Run a program with all sanitizers, and draw its timeline and memory, or else its planned memory."""
    try:
        kernel = plain(parse(source.text, source.name), plan.entry, "reference", done.profile)
        given = plan.arguments() if plan.arguments is not None else _zeros(kernel.functions)
    except DiagnosticError as e:
        return _unlaunched(done, "", tuple(e.diagnostics))
    if isinstance(given, str):
        return _unlaunched(
            done, f"not launched: {given}. Give arguments: pto explore {source.name} -- ARG .."
        )
    keeper = Keeper(_VALUES)
    try:
        result = kernel.run(
            *given, blocks=plan.blocks, sanitize="all", timeline=True, memory_map=True, watchers=[keeper],
            timeout=_TIMEOUT,
        )  # fmt: skip
    except DiagnosticError as e:
        return _unlaunched(done, "", tuple(e.diagnostics))
    found = tuple(result.diagnostics)
    if result.timeline is None:
        return _unlaunched(done, "the launch did not end", found)
    t = result.timeline
    page = html(t, kernel.name, None, Recorded(keeper.values, result.memory_map))
    some = advise(t) if len(t.trace) < _ADVISED else []
    advice = tuple(
        (f"{a.text}: {t.machine.us(a.gain):.2f} us less", a.lines[0] if a.lines else 0) for a in some
    )
    zeros = " on arrays of zeros" if plan.arguments is None else ""
    return LaunchView(
        page, f"@{kernel.name}{zeros}: {t.us:.2f} us on {t.machine.title}, {t.bound}", found, advice
    )


def _unlaunched(done: Lowered, note: str, found: tuple[Diagnostic, ...] = ()) -> LaunchView:
    return LaunchView(planned(done.plan) if isinstance(done.plan, MemoryPlan) else "", note, found)


def _zeros(functions: Sequence[Operation]) -> list[Any] | str:
    """Return an array of zeros for each argument, or why there is none."""
    arguments = functions[0].regions[0].blocks[0].args
    sizes: dict[int, int] = {}
    for function in functions:
        place = {value: n for n, value in enumerate(function.regions[0].blocks[0].args)}
        for base, size in _views(function):
            if base in place:
                sizes[place[base]] = max(sizes.get(place[base], 0), size)
    made: list[Any] = []
    for n, value in enumerate(arguments):
        if not isinstance(value.type, PtrType):
            return f"%{value.name} is a number"
        if not sizes.get(n):
            return f"no view says how large %{value.name} is"
        dtype = str(value.type.elem)
        made.append(np.zeros(stored_shape([sizes[n]], dtype), array_of(dtype)))
    return made


def _views(function: Operation) -> Iterator[tuple[Value, int]]:
    """Yield the pointer and the elements of each view; 0 elements for a shape that is not constant."""
    for op in function.walk():
        if op.name == "pto.make_tensor_view":
            shape, strides = ([constant_of(v) for v in op.group(name)] for name in ("shape", "strides"))
            last = [
                (d - 1) * s if isinstance(d, int) and isinstance(s, int) and d > 0 and s >= 0 else None
                for d, s in zip(shape, strides, strict=True)
            ]
            known = [n for n in last if n is not None]
            yield op.operands[0], sum(known) + 1 if len(known) == len(last) and prod(known) >= 0 else 0
