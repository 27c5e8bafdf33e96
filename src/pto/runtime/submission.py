"""What a task may have beside its parameters, as `Runtime.submit` is given it and as the engine takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .kernels import ROLES, Kernel
from .tensors import DTYPES, index_of, refuse

#: Comparisons of predicates, by their number in the engine.
_COMPARISONS = {"==": 1, "!=": 2, ">": 3, "<": 4, ">=": 5, "<=": 6}
#: What a predicate is: a tensor, an index, a comparison and a number.
Predicate = tuple[Any, Any, str, int]


def tasks_of(deps: Iterable[int | None]) -> list[int]:
    """The tasks that another is to wait for; None is nobody."""
    found = [d for d in deps if d is not None]
    for d in found:
        if type(d) is not int or d < 0:
            raise refuse(f"{d!r} is no task", "deps are what rt.submit returned, or None")
    return found


def untracked(kernel: Kernel, args: Iterable[int]) -> int:
    """Parameters that make no edges, as bits."""
    bits = 0
    for i in args:
        if type(i) is not int or not 0 <= i < len(kernel.roles) or kernel.roles[i] == ROLES["scalar"]:
            message = f"no_dep: kernel {kernel.name} has no tensor as parameter {i!r}"
            raise refuse(message, "give the numbers of parameters, from 0 on")
        bits |= 1 << i
    return bits


def together(sync_start: bool, blocks: int) -> bool:
    """Whether blocks start together; there have to be some."""
    if sync_start and not blocks:
        raise refuse("sync_start: only blocks start together", "rt.submit(..., blocks=n, sync_start=True)")
    return bool(sync_start)


def comparison(given: Predicate | None, tensor_of: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    """A predicate: its tensor, the index of the element, the number of the comparison and the target."""
    if given is None:
        return None
    form = "predicate=(tensor, index, '>', 0)"
    if not isinstance(given, tuple) or len(given) != 4:
        raise refuse(f"{given!r} is no predicate", form)
    tensor, index, op, target = given
    found = tensor_of(tensor)
    if op not in _COMPARISONS:
        raise refuse(f"there is no comparison {op!r}", f"one of {' '.join(_COMPARISONS)}")
    if "int" not in DTYPES[found.dtype]:
        raise refuse(f"a predicate compares integers, the tensor holds {DTYPES[found.dtype]}", form)
    if type(target) is not int or not -(1 << 63) <= target < 1 << 63:
        raise refuse(f"a predicate compares with an integer of 64 bits, got {target!r}", form)
    return found, index_of(index, found.shape), _COMPARISONS[op], target
