"""Legality rules of instructions, with terms for facts that are known only at run time.

The rules, and the choice of those that are open, are those of the reference engine (`open_rules`). A rule is
Python code. If it needs the truth value of a term, it is evaluated once for each answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from ..engine.reference.open_rules import open_rules
from ..ir.core import Operation
from ..ir.facts import Arg, Args
from ..isa.profiles import Profile
from ..isa.rules import Rule, broken
from ..symbolic.terms import Term, Truth, both, either, eq, floordiv, is_int, mod, negated
from .values import TileTerm, ViewTerm

#: Most evaluations of one rule.
_MOST = 32


class TooMany(Exception):
    """A rule with too many cases."""


class _Cases:
    """The answers in one evaluation: the first ones are given, each later one is any possible answer."""

    def __init__(self, given: list[bool], possible: Callable[[list[Truth]], bool]) -> None:
        self.given, self.possible = given, possible
        self.path: list[Truth] = []
        self.answers: list[bool] = []
        self.others: list[list[bool]] = []  # answers for later evaluations

    def decide(self, condition: Truth) -> bool:
        if isinstance(condition, bool):
            return condition
        at = len(self.answers)
        if at < len(self.given):
            answer = self.given[at]
        else:
            answer = self.possible([*self.path, condition])
            if answer and self.possible([*self.path, negated(condition)]):
                self.others.append([*self.answers, False])
        self.answers.append(answer)
        self.path.append(condition if answer else negated(condition))
        return answer


def _computed(compute: Callable[[Any, Any], Any]) -> Callable[[_Number, Any], Any]:
    return lambda a, b: a.combined(b, compute)


def _compared(compare: Callable[[Any, Any], Truth]) -> Callable[[_Number, Any], Any]:
    return lambda a, b: a.compared(b, compare)


def _divided(compute: Callable[[Any, int], Any]) -> Callable[[_Number, Any], Any]:
    def divided(a: _Number, b: Any) -> Any:
        if not is_int(b) or b <= 0:
            raise TooMany
        return _wrapped(compute(a.value, b), a.cases)

    return divided


class _Number:
    """A term in a rule."""

    def __init__(self, value: Any, cases: _Cases) -> None:
        self.value, self.cases = value, cases

    def combined(self, other: Any, compute: Callable[[Any, Any], Any]) -> Any:
        value = other.value if isinstance(other, _Number) else other
        if not isinstance(value, int | Term):
            return NotImplemented
        return _wrapped(compute(self.value, value), self.cases)

    def __bool__(self) -> bool:
        return self.cases.decide(negated(eq(self.value, 0)))

    __add__ = __radd__ = _computed(operator.add)
    __mul__ = __rmul__ = _computed(operator.mul)
    __sub__ = _computed(operator.sub)
    __lt__, __le__ = _compared(operator.lt), _compared(operator.le)
    __floordiv__, __mod__ = _divided(floordiv), _divided(mod)
    __gt__, __ge__ = _compared(operator.gt), _compared(operator.ge)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> Any:
        return _wrapped(-self.value, self.cases)

    def __abs__(self) -> Any:
        return self if self.cases.decide(self.value >= 0) else -self

    def __eq__(self, other: object) -> Any:
        return self.compared(other, eq, False)

    def __ne__(self, other: object) -> Any:
        return self.compared(other, lambda a, b: negated(eq(a, b)), True)

    __hash__ = None  # type: ignore[assignment]

    def compared(
        self, other: Any, compare: Callable[[Any, Any], Truth], otherwise: Any = NotImplemented
    ) -> Any:
        value = other.value if isinstance(other, _Number) else other
        if not isinstance(value, int | Term):
            return otherwise
        return self.cases.decide(compare(self.value, value))


def _wrapped(value: Any, cases: _Cases) -> Any:
    return _Number(value, cases) if isinstance(value, Term) else value


class _Fact:
    """An operand of a rule, with the facts of its value."""

    def __init__(self, arg: Any, value: Any, cases: _Cases) -> None:
        self._arg, self._value, self._cases = arg, value, cases

    def __getattr__(self, fact: str) -> Any:
        value, found = self._value, None
        if isinstance(value, TileTerm) and fact in ("v_row", "v_col"):
            found = value.valid[fact == "v_col"]
        elif isinstance(value, ViewTerm) and fact == "elems":
            found = 1
            for n in value.sizes:
                found = found * n
        elif fact == "const" and isinstance(value, int | Term):
            found = value
        return getattr(self._arg, fact) if found is None else _wrapped(found, self._cases)


def violations(
    op: Operation, profile: Profile, args: dict[str, Any], possible: Callable[[list[Truth]], bool]
) -> Iterator[tuple[Rule, Truth]]:
    """Yield the open rules that may be broken, each with the condition under which it is broken. `args` are
    the values of the operands; `possible` decides conditions here."""
    assert op.row is not None
    found = open_rules(op, op.row, profile)
    if found is None:
        return
    rules, known = found
    tiles = [v for v in args.values() if isinstance(v, TileTerm)]
    busy = either(*(both(t.valid[0] > 0, t.valid[1] > 0) for t in tiles)) if len(tiles) > 1 else True
    for rule in rules:
        waiting, count = [list[bool]()], 0
        while waiting:
            count += 1
            if count > _MOST:
                raise TooMany
            cases = _Cases(waiting.pop(), lambda path: possible([busy, *path]))
            env = {name: _fact(known[name], args.get(name), cases) for name in known}
            if broken(rule, env):
                yield rule, both(busy, *cases.path)
            waiting += cases.others


def _fact(arg: Any, value: Any, cases: _Cases) -> Any:
    if isinstance(arg, Args):
        return Args([_Fact(a, v, cases) for a, v in zip(arg, value, strict=True)])  # type: ignore[reportArgumentType]
    return _Fact(arg, value, cases) if isinstance(arg, Arg) and value is not None else arg
