"""Legality that only a run decides: rules that speak of extents and numbers which types leave open.

    asks = asked(op, row, profile)   # None: the verifier has seen all there is
    asks(args)                       # raises `IllegalInstruction` with the id of the rule that is broken

The verifier lets a rule pass where a fact is unknown. Here the same rule is asked again, with the valid
regions, scalars and extents of views that the instruction meets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from math import prod
from typing import Any

from ...ir.core import Operation, Value, constant_of
from ...ir.facts import Arg, Args, environment
from ...ir.types import ScalarType, TileBufType, ViewType
from ...isa.profiles import Profile
from ...isa.row import Row
from ...isa.rules import Rule, Unknown, broken, code_of, evaluate, facts_in, stage_of
from ..memory import Tile, View
from .instr import IllegalInstruction

#: Facts that a type may leave to the run.
_LATER = frozenset({"v_row", "v_col", "const", "elems"})
_NAME = re.compile(r"[A-Za-z_]\w*")


class _Noting:
    """An operand as the verifier sees it, which notes that it was asked for what only a run says."""

    def __init__(self, arg: Any, notes: list[str]) -> None:
        self._arg, self._notes = arg, notes

    def __getattr__(self, fact: str) -> Any:
        value = getattr(self._arg, fact)
        if value is None and fact in _LATER:
            self._notes.append(fact)
        return value


class _Met:
    """An operand of an instruction that runs: its value says what its type does not."""

    def __init__(self, arg: Any, value: Any) -> None:
        self._arg, self._value = arg, value

    def __getattr__(self, fact: str) -> Any:
        if fact in _LATER:
            value = self._value
            if isinstance(value, Tile) and fact in ("v_row", "v_col"):
                return getattr(value, fact)
            if isinstance(value, View) and fact == "elems":
                return prod(value.dims)
            if isinstance(value, int) and fact == "const":
                return value
        return getattr(self._arg, fact)


def asked(
    op: Operation, row: Row, profile: Profile, without: Collection[str] = (), is_text: bool = True
) -> Callable[[Mapping[str, Any]], None] | None:
    """What asks the open rules of an operation of the values of its operands, but for those that speak of
    some of them (`without`), and those of programs where it stands in none; None where it has none."""
    late = {declared.name for declared, value in op.named() if _leaves_open(value)}
    if not late:
        return None
    near = [r for r, words in _late_rules(row.rules) if late & words and (not r.on or profile.isa in r.on)]
    if not near:
        return None
    known = environment(op, row, profile)
    rules = [r for r in near if _is_open(r, known) and not _words(r) & {*without} and (is_text or not r.text)]
    if not rules:
        return None
    words = {word for r in rules for word in _words(r)}
    names = [name for name, arg in known.items() if name in words and isinstance(arg, Arg | Args)]
    passed: set[tuple[Any, ...]] = set()

    def ask(args: Mapping[str, Any]) -> None:
        if _idle(args):
            return
        key = tuple([_told(args.get(name)) for name in names])
        if key in passed:
            return
        env = {**known, **{name: _met(known[name], args[name]) for name in names if name in args}}
        for rule in rules:
            if broken(rule, env):
                raise _illegal(rule, env)
        if len(passed) < 1000:  # a program with many extents asks once more
            passed.add(key)

    return ask


def _idle(args: Mapping[str, Any]) -> bool:
    """Whether an instruction of several tiles meets empty ones only: it does nothing then, whatever its rules
    say. Compilers keep a core that has no part of the work in step this way."""
    tiles = [value for value in args.values() if isinstance(value, Tile)]
    return len(tiles) > 1 and all(not tile.v_row or not tile.v_col for tile in tiles)


def _leaves_open(value: Value) -> bool:
    """Whether the type of an operand, or the program, does not say all that rules may ask for."""
    match value.type:
        case TileBufType(v_row=rows, v_col=cols):
            return rows is None or cols is None
        case ViewType(dims=dims):
            return None in dims
        case _:
            return isinstance(value.type, ScalarType) and constant_of(value) is None


@cache
def _late_rules(every: tuple[Rule, ...]) -> list[tuple[Rule, frozenset[str]]]:
    """Rules that ask for what a run may have to say, in the order of reports, with the names in them."""
    rules = sorted((r for r in every if not r.written), key=stage_of)
    return [(r, _words(r)) for r in rules if _LATER & facts_in(f"{r.expr} {r.when}")]


def _words(rule: Rule) -> frozenset[str]:
    return frozenset(_NAME.findall(f"{rule.expr} {rule.when}"))


def _is_open(rule: Rule, known: Mapping[str, Any]) -> bool:
    """Whether a rule comes to ask for what only a run says."""
    notes: list[str] = []

    def noting(value: Any) -> Any:
        if isinstance(value, Args):
            return Args([_Noting(one, notes) for one in value])  # type: ignore[reportArgumentType]
        return _Noting(value, notes) if isinstance(value, Arg) else value

    env = {name: noting(value) for name, value in known.items()}
    try:
        _ = (not rule.when or evaluate(rule.when, env)) and evaluate(rule.expr, env)
    except Unknown:
        pass
    return bool(notes)


def _met(arg: Any, value: Any) -> Any:
    if isinstance(arg, Args):
        return Args([_Met(a, v) for a, v in zip(arg, value, strict=True)])  # type: ignore[reportArgumentType]
    return _Met(arg, value)


def _told(value: Any) -> Any:
    """What open rules see of a value."""
    if isinstance(value, Tile):
        return value.valid
    if isinstance(value, View):
        return value.dims
    if isinstance(value, list):
        return tuple([_told(one) for one in value])  # type: ignore[reportUnknownVariableType]
    return value if isinstance(value, int) else None


def _illegal(rule: Rule, env: Mapping[str, Any]) -> IllegalInstruction:
    from ...isa.rule_trees import explain

    message, expected, got = explain(rule.expr, env)
    problem = IllegalInstruction(rule.msg or message)
    problem.code, problem.expected, problem.got = code_of(rule), expected, got
    return problem
