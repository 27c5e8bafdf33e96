"""Which functions are put in place of their calls, and which are called.

In place costs nothing, but a program of functions that call each other twice would grow without bounds. So
that is for small ones; others are there once, and what called one is a number in the frame that is looked at
when it ends. None calls itself, so every function has its values in places of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.core import Operation, Value

#: Operations, and levels of regions and calls, that are put in place of a call at most.
_MOST, _DEEPEST = 200, 40


class Called:
    """A function that is there once: where its calls jump to it from, and where it goes back to."""

    def __init__(self, function: Operation, place: int, results: list[Value]) -> None:
        self.function = function
        self.place = place  # of the number of the call in the frame
        self.results = results
        self.calls: list[int] = []  # words that want its first word
        self.returns: list[int] = []  # by number of the call, the word behind it
        self.end = 0  # the word that wants what it does at its end


def small(functions: Mapping[str, Operation]) -> set[Operation]:
    """The functions that are put in place of their calls."""
    found: set[Operation] = set()
    weights: dict[Operation, int] = {}
    depths: dict[Operation, int] = {}
    for function in _callees_first(functions):
        level = {function: 2}  # what it takes to get to its first operation
        weight, deepest = 0, 2
        for op in function.walk():
            if op is function:
                continue
            outer = op.outer
            level[op] = level.get(outer, 2) + 1 if outer is not None else 2
            weight += 1
            inner = _callee(op, functions)
            if inner is not None and inner in found:
                weight += weights[inner]
                deepest = max(deepest, level[op] + depths[inner])
            deepest = max(deepest, level[op])
        weights[function], depths[function] = weight, deepest
        if weight <= _MOST and deepest <= _DEEPEST:
            found.add(function)
    return found


def _callee(op: Operation, functions: Mapping[str, Operation]) -> Operation | None:
    return functions.get(str(op.attr("callee"))) if op.name == "func.call" else None


def _callees_first(functions: Mapping[str, Operation]) -> list[Operation]:
    """Functions with those that each calls before it; of a circle, which only an unverified program has, none
    is before all others."""
    calls = {
        f: list(dict.fromkeys(c for op in f.walk() if (c := _callee(op, functions)) is not None))
        for f in functions.values()
    }
    out: dict[Operation, None] = {}
    begun: set[Operation] = set()
    for first in calls:
        stack = [first]
        while stack:
            function = stack[-1]
            if function not in begun:
                begun.add(function)
                stack += [c for c in calls[function] if c not in begun]
            else:
                stack.pop()
                out.setdefault(function)
    return list(out)
