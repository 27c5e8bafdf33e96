"""Options of a task besides its parameters: from the form of `Runtime.submit` to the form of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .kernels import ROLES, Kernel
from .tensors import DTYPES, index_of, refuse

#: Comparisons of predicates, by their number in the engine.
_COMPARISONS = {"==": 1, "!=": 2, ">": 3, "<": 4, ">=": 5, "<=": 6}
#: A predicate: a tensor, an index, a comparison and a number.
Predicate = tuple[Any, Any, str, int]


def tasks_of(deps: Iterable[int | None]) -> list[int]:
    """Return the tasks to wait for, without None."""
    found = [d for d in deps if d is not None]
    for d in found:
        if type(d) is not int or d < 0:
            raise refuse(f"expected the number of a task, got {d!r}", "give results of rt.submit, or None")
    return found


def untracked(kernel: Kernel, args: Iterable[int]) -> int:
    """Return the parameters without dependencies, as bits."""
    bits = 0
    for i in args:
        if type(i) is not int or not 0 <= i < len(kernel.roles) or kernel.roles[i] == ROLES["scalar"]:
            message = f"no_dep: parameter {i!r} of kernel {kernel.name} is not a tensor"
            raise refuse(message, "give the numbers of parameters, from 0 on")
        bits |= 1 << i
    return bits


def together(sync_start: bool, blocks: int) -> bool:
    """Return True if blocks start together; reject `sync_start` without blocks."""
    if sync_start and not blocks:
        raise refuse("missing blocks= for sync_start", "rt.submit(..., blocks=n, sync_start=True)")
    return bool(sync_start)


def comparison(given: Predicate | None, tensor_of: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    """Encode a predicate: its tensor, the index of the element, the number of the comparison and the
    target."""
    if given is None:
        return None
    form = "predicate=(tensor, index, '>', 0)"
    if not isinstance(given, tuple) or len(given) != 4:
        raise refuse(f"expected a predicate, got {given!r}", form)
    tensor, index, op, target = given
    found = tensor_of(tensor)
    if op not in _COMPARISONS:
        raise refuse(f"unknown comparison {op!r}", f"one of {' '.join(_COMPARISONS)}")
    if "int" not in DTYPES[found.dtype]:
        raise refuse(f"expected a tensor of integers for a predicate, got {DTYPES[found.dtype]}", form)
    if type(target) is not int or not -(1 << 63) <= target < 1 << 63:
        raise refuse(f"expected an integer of 64 bits for a predicate, got {target!r}", form)
    return found, index_of(index, found.shape), _COMPARISONS[op], target
