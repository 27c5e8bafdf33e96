"""Checks of keyword options of loops, regions and tasks.

All options are constants when a program is read, except the number of blocks of a task. A wrong option is
rejected at its source location, in every form.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ...diag import Span
from ..control import FORMS, CrossCoreSlot, NoDep, Split
from ..enums import Level, ScopeMode, SplitMode
from ..ir import Value, is_tensor, scalar_type
from ..problems import ARGUMENTS, fail


class _Word(NamedTuple):
    """A check of an option. `wrong` returns the expected kind of value if a value is wrong, else ""."""

    wrong: Callable[[Any], str]
    expected: str
    help: str = ""


def _unless(holds: Callable[[Any], bool], otherwise: str) -> Callable[[object], str]:
    return lambda value: "" if holds(value) else otherwise


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: Any) -> str:
    """Check a number of blocks, which may be a run-time integer."""
    if isinstance(value, Value):
        dtype = scalar_type(value)
        return "" if dtype is not None and dtype.is_int else "a whole number"
    return "a whole number" if not _whole(value) else "" if value > 0 else "a number of at least 1"


def _name(value: object) -> str:
    fits = isinstance(value, str) and (not value or (value.isidentifier() and not keyword.iskeyword(value)))
    return "" if fits else "an identifier"


def _several(value: object) -> bool:
    return isinstance(value, list | tuple)


def _tensors(value: Any) -> str:
    if value is None:
        return ""
    if not _several(value) or not all(map(is_tensor, value)):
        return "a list of tensors"
    return "each tensor once" if len({*map(id, value)}) < len(value) else ""


def _optimizations(value: Any) -> str:
    if value is None:
        return ""
    if not _several(value) or not all(isinstance(v, Split | CrossCoreSlot) for v in value):
        return "a list of optimizations"
    slots = [v for v in value if v.slot_num is not None]
    return "each optimization once" if len({*map(type, value)}) < len(value) or len(slots) > 1 else ""


_TRUTH = _Word(_unless(lambda v: isinstance(v, bool), "True or False"), "a constant")
_SLOTS = _Word(
    _unless(lambda v: v is None or (_whole(v) and v > 0), "a number of at least 1"),
    "a number, as in slot_num=4",
)

#: Options of all forms.
_WORDS = {
    "core_num": _Word(_count, "a number of blocks, as in pl.spmd(8)"),
    "sync_start": _TRUTH,
    "allow_early_resolve": _TRUTH,
    "windowize": _TRUTH,
    "name_hint": _Word(_name, "letters, digits and _"),
    "no_dep_args": _Word(
        _tensors, "no_dep_args=[a, b], each once", "pl.no_dep(x) is for arguments of a call"
    ),
    "optimizations": _Word(
        _optimizations, "optimizations=[pl.split(mode), pl.cross_core_slot(slot_num=4)], or one of them"
    ),
    "slot_num": _SLOTS,
    "stage": _Word(_unless(lambda v: _whole(v) and v > 0, "a constant of at least 1"), "stage=2"),
    "level": _Word(_unless(lambda v: isinstance(v, Level), "a level"), "pl.Level.CORE_GROUP"),
}  # fmt: skip
#: Options of a single form.
_OF = {
    ("split_aiv", "count"): _Word(
        _unless(lambda v: v == 2 and _whole(v), "2 cores"), "2: a block has two vector cores"
    ),
    ("split_aiv", "mode"): _Word(
        _unless(lambda v: isinstance(v, SplitMode), "a split mode"), "pl.SplitMode.UP_DOWN"
    ),
    ("split", "mode"): _Word(
        _unless(lambda v: isinstance(v, SplitMode), "a split mode"), "pl.SplitMode.UP_DOWN"
    ),
    ("scope", "mode"): _Word(
        _unless(lambda v: isinstance(v, ScopeMode), "a scope mode"), "pl.ScopeMode.AUTO or MANUAL"
    ),
}


@cache
def _signature(form: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(form)


def check_said(
    form: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    place: Callable[[inspect.Signature, str], Span | None],
) -> None:
    """Reject a wrong option of a form. `place` finds the source location of a parameter's argument."""
    name = getattr(form, "__name__", "")
    if FORMS.get(name) is not form:
        return
    signature = _signature(form)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # the call itself reports it
        return
    for word, value in given.items():
        rule = _OF.get((name, word)) or _WORDS.get(word)
        wrong = rule.wrong(value) if rule is not None else ""
        if rule is not None and wrong:
            fail(ARGUMENTS, f"expected {wrong} for '{word}' of pl.{name}", place(signature, word),
                 expected=rule.expected, got=_shown(value), help=rule.help)  # fmt: skip


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, NoDep):
        return f"pl.no_dep({_shown(value.value)})"
    return f"{value.name}: {value.type}" if isinstance(value, Value) else repr(value)
