"""Legality rules with run-time values: rules about extents and numbers that types leave open.

    asks = asked(op, row, profile)   # None: the verifier has decided all rules
    asks(args)                       # raises `IllegalInstruction` with the id of the broken rule

The verifier lets a rule pass if it depends on an unknown fact. Here the same rule is evaluated again, with
the valid regions, scalars and extents of views of the running instruction.
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

#: Facts that a type may leave open until the run.
_LATER = frozenset({"v_row", "v_col", "const", "elems"})
_NAME = re.compile(r"[A-Za-z_]\w*")


class _Noting:
    """An operand with the facts of the verifier, which records each use of a fact that is known only at run
    time.
    """

    def __init__(self, arg: Arg, notes: list[str]) -> None:
        self._arg, self._notes = arg, notes

    def __getattr__(self, fact: str) -> Any:
        value = getattr(self._arg, fact)
        if value is None and fact in _LATER:
            self._notes.append(fact)
        return value


class _Met:
    """An operand of a running instruction: its value adds the facts that its type leaves open."""

    def __init__(self, arg: Arg, value: Tile) -> None:
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
) -> Callable[[Mapping[str, object]], None] | None:
    """Return a function that checks the open rules of an operation with the values of its operands; None if
    there are no such rules. Rules about the operands `without` are skipped, and, unless `is_text`, rules that
    hold only for programs."""
    found = open_rules(op, row, profile)
    if found is None:
        return None
    rules, known = found
    rules = [r for r in rules if not _words(r) & {*without} and (is_text or not r.text)]
    if not rules:
        return None
    words = {word for r in rules for word in _words(r)}
    names = [name for name, arg in known.items() if name in words and isinstance(arg, Arg | Args)]
    passed: set[tuple[object, ...]] = set()

    def ask(args: Mapping[str, object]) -> None:
        if _idle(args):
            return
        key = tuple([_open_facts(args.get(name)) for name in names])
        if key in passed:
            return
        env = {**known, **{name: _met(known[name], args[name]) for name in names if name in args}}
        for rule in rules:
            if broken(rule, env):
                raise _illegal(rule, env)
        if len(passed) < 1000:  # a program with more extents repeats checks
            passed.add(key)

    return ask


def open_rules(op: Operation, row: Row, profile: Profile) -> tuple[list[Rule], dict[str, object]] | None:
    """Return the rules of an operation that need facts of a run, and its facts that are known before; None if
    there are no such rules."""
    late = {declared.name for declared, value in op.named() if _leaves_open(value)}
    if not late:
        return None
    near = [r for r, words in _late_rules(row.rules) if late & words and (not r.on or profile.isa in r.on)]
    if not near:
        return None
    known = environment(op, row, profile)
    rules = [r for r in near if _is_open(r, known)]
    return (rules, known) if rules else None


def _idle(args: Mapping[str, object]) -> bool:
    """Return whether all tiles of an instruction with several tiles are empty: it does nothing then, and its
    rules do not matter. Compilers use this for a core without a part of the work."""
    tiles = [value for value in args.values() if isinstance(value, Tile)]
    return len(tiles) > 1 and all(not tile.v_row or not tile.v_col for tile in tiles)


def _leaves_open(value: Value) -> bool:
    """Return whether the type of an operand leaves facts open that rules may use."""
    match value.type:
        case TileBufType(v_row=rows, v_col=cols):
            return rows is None or cols is None
        case ViewType(dims=dims):
            return None in dims
        case _:
            return isinstance(value.type, ScalarType) and constant_of(value) is None


@cache
def _late_rules(every: tuple[Rule, ...]) -> list[tuple[Rule, frozenset[str]]]:
    """Return the rules with facts that may be open, in the order of reports, and the names in them."""
    rules = sorted((r for r in every if not r.written), key=stage_of)
    return [(r, _words(r)) for r in rules if _LATER & facts_in(f"{r.expr} {r.when}")]


def _words(rule: Rule) -> frozenset[str]:
    return frozenset(_NAME.findall(f"{rule.expr} {rule.when}"))


def _is_open(rule: Rule, known: Mapping[str, object]) -> bool:
    """Return whether the evaluation of a rule needs an open fact."""
    notes: list[str] = []

    def noting(value: object) -> object:
        if isinstance(value, Args):
            return Args([_Noting(one, notes) for one in value])  # type: ignore[reportArgumentType]
        return _Noting(value, notes) if isinstance(value, Arg) else value

    env = {name: noting(value) for name, value in known.items()}
    try:
        _ = (not rule.when or evaluate(rule.when, env)) and evaluate(rule.expr, env)
    except Unknown:
        pass
    return bool(notes)


def _met(arg: Any, value: Any) -> Args | _Met:
    if isinstance(arg, Args):
        return Args([_Met(a, v) for a, v in zip(arg, value, strict=True)])  # type: ignore[reportArgumentType]
    return _Met(arg, value)


def _open_facts(value: object) -> Any:
    """Return the part of a value that open rules depend on."""
    if isinstance(value, Tile):
        return value.valid
    if isinstance(value, View):
        return value.dims
    if isinstance(value, list):
        return tuple([_open_facts(one) for one in value])  # type: ignore[reportUnknownVariableType]
    return value if isinstance(value, int) else None


def _illegal(rule: Rule, env: Mapping[str, object]) -> IllegalInstruction:
    from ...isa.rule_trees import explain

    message, expected, got = explain(rule.expr, env)
    problem = IllegalInstruction(rule.msg or message)
    problem.code, problem.expected, problem.got = code_of(rule), expected, got
    return problem
