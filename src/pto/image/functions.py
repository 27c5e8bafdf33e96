"""The choice between inlined and called functions.

Inlining has no cost at run time, but a program of functions that call each other twice would grow
exponentially. So only small functions are inlined. Other functions exist once; a number in the frame
identifies the caller, and the end of the function jumps by it. No function is recursive, so every function
has its own slots for its values.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.core import Operation, Value

#: Limits for inlining: operations, and levels of regions and calls.
_MOST, _DEEPEST = 200, 40


class Called:
    """A function that exists once, with the jumps of its calls and its returns."""

    def __init__(self, function: Operation, place: int, results: list[Value]) -> None:
        self.function = function
        self.place = place  # the slot in the frame with the number of the call
        self.results = results
        self.calls: list[int] = []  # words to be set to the first word of the function
        self.returns: list[int] = []  # by number of the call: the word after the call
        self.end = 0  # the word to be set to the code at the end of the function


def small(functions: Mapping[str, Operation]) -> set[Operation]:
    """Return the functions that are inlined."""
    found: set[Operation] = set()
    weights: dict[Operation, int] = {}
    depths: dict[Operation, int] = {}
    for function in _callees_first(functions):
        level = {function: 2}  # the levels of its first operation
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
    """Return the functions, each after the functions that it calls. In a cycle, which only an unverified
    program has, the order is arbitrary."""
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
