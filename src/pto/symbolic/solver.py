"""The solver: can facts hold together? This is the only module that uses z3.

Answers are cached by the set of facts. Facts that share no symbol with the others cannot change the answer
of a proof, but z3 gets them all: they may contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from time import monotonic
from typing import Any

from ..diag import Diagnostic, DiagnosticError
from .terms import NEVER, Int, Monomial, Term, Truth, negated, range_of, value_of

#: Values of symbols.
Model = Mapping[Term, int | bool]


def load() -> Any:
    """Return the module of z3; raise `DiagnosticError` if it is not installed."""
    try:
        import z3
    except ImportError as e:
        message = f"cannot prove anything without z3: {e}"
        d = Diagnostic("PTO-E2440", message, help="pip install 'pto[prove]'")
        raise DiagnosticError([d]) from None
    return z3


class OutOfTime(Exception):
    """The time of the whole proof is over."""


class Solver:
    """Decides facts. `deadline` ends the proof; `patience` are the seconds for one question."""

    def __init__(self, deadline: float, patience: float = 3.0) -> None:
        self.z3 = load()
        self.deadline = deadline
        self.patience = patience
        self.axioms: list[Term] = []
        self.questions = 0
        self._answers: dict[frozenset[Truth], Model | bool | None] = {}
        self._plain = _Translation(self.z3)

    def assume(self, fact: Truth) -> None:
        """Add a fact to all later questions."""
        if fact is not True:
            self.axioms.append(fact if isinstance(fact, Term) else NEVER)
            self._answers.clear()

    def model(self, facts: Iterable[Truth], patience: float = 0.0) -> Model | bool | None:
        """Return values that satisfy all facts; False if there are none; None if z3 gives up."""
        wanted = frozenset(f for f in facts if f is not True)
        if False in wanted or NEVER in wanted or NEVER in self.axioms:
            return False
        if wanted in self._answers:
            return self._answers[wanted]
        known = self._asked(wanted, patience or self.patience)
        if known is not None or not patience:
            self._answers[wanted] = known
        return known

    def possible(self, facts: Iterable[Truth]) -> bool:
        """Return False if the facts contradict each other."""
        return self.model(facts) is not False

    def implied(self, facts: Iterable[Truth], fact: Truth) -> bool:
        """Return True if a fact follows from others."""
        return fact is True or self.model([*facts, negated(fact)]) is False

    def check_time(self) -> None:
        if monotonic() > self.deadline:
            raise OutOfTime

    def _asked(self, facts: frozenset[Truth], patience: float) -> Model | bool | None:
        self.check_time()
        terms = sorted((f for f in facts if isinstance(f, Term)), key=lambda t: t.text)
        every = [*self.axioms, *terms]
        used = frozenset[Term]().union(*(t.symbols for t in every))
        products = _products(every)
        self.questions += 1
        answer = self._checked(every, used, products, patience)
        exact = answer is not None and not isinstance(answer, bool) and _satisfies(every, answer)
        if products and answer is not False and not exact:
            answer = self._checked(every, used, (), patience)
        return answer

    def _checked(
        self, facts: list[Term], used: frozenset[Term], products: Iterable[Monomial], patience: float
    ) -> Model | bool | None:
        """Ask z3. The `products` become unknown numbers, with lemmas about their order. The new problem is
        linear. It has all models of the facts, and perhaps more."""
        z3 = self.z3
        solver = z3.SimpleSolver() if products else z3.Solver()
        left = max(0.01, min(patience, self.deadline - monotonic()))
        solver.set("timeout", max(1, int(left * 1000)))
        of = _Translation(z3, products) if products else self._plain
        for s in sorted(used, key=lambda t: t.text):
            if s.low is not None:
                solver.add(of(s) >= s.low)
            if s.high is not None:
                solver.add(of(s) <= s.high)
        solver.add(*map(of, facts))
        if products:
            solver.add(*of.lemmas())
        answer = solver.check()
        if answer == z3.unsat:
            return False
        return self._values(solver.model(), used, of) if answer == z3.sat else None

    def _values(self, model: Any, used: Iterable[Term], of: _Translation) -> Model:
        found: dict[Term, int | bool] = {}
        for s in used:
            value = model.eval(of(s), model_completion=True)
            found[s] = self.z3.is_true(value) if s.kind == "truth" else value.as_long()
        return found


class _Translation:
    """Translates terms to expressions of z3; `products` become unknown numbers."""

    def __init__(self, z3: Any, products: Iterable[Monomial] = ()) -> None:
        self.z3 = z3
        self._made: dict[Term, Any] = {}
        self.products = {m: z3.Int(" * ".join(a.text for a in m)) for m in products}

    def __call__(self, x: Int | Truth) -> Any:
        if not isinstance(x, Term):
            return self.z3.BoolVal(x) if isinstance(x, bool) else self.z3.IntVal(x)
        found = self._made.get(x)
        if found is None:
            found = self._made[x] = self._new(x)
        return found

    def _product(self, n: int, monomial: Monomial) -> Any:
        known = self.products.get(monomial)
        factors = [known] if known is not None else [self(a) for a in monomial]
        if n != 1:
            factors.insert(0, self(n))
        return factors[0] if len(factors) == 1 else self.z3.Product(*factors)

    def _new(self, x: Term) -> Any:
        z3, of = self.z3, self
        match x.kind, x.args:
            case "symbol", (name, _):
                return z3.Int(name)
            case "truth", (name, _):
                return z3.Bool(name)
            case "sum", (constant, pairs):
                summands = [self._product(n, m) for n, m in pairs]
                if constant:
                    summands.append(of(constant))
                return summands[0] if len(summands) == 1 else z3.Sum(*summands)
            case "floor", (a, b):
                return of(a) / of(b)
            case "choose", (condition, a, b):
                return z3.If(of(condition), of(a), of(b))
            case "negative", (a,):
                return of(a) <= 0
            case "zero", (a,):
                return of(a) == 0
            case "not", (a,):
                return z3.Not(of(a))
            case _, args:
                return (z3.And if x.kind == "and" else z3.Or)(*map(of, args))

    def lemmas(self) -> Iterator[Any]:
        """Yield facts about products: their ranges, and that they rise with one factor if the other one is
        not negative: k < l gives a * k + a <= a * l."""
        z3, of = self.z3, self
        for m, product in self.products.items():
            low, high = range_of(m)
            if low is not None:
                yield product >= low
            if high is not None:
                yield product <= high
            if len(m) == 2:
                for a, k in (m, m[::-1]):
                    if a.low is not None and a.low >= 0:
                        yield z3.Implies(of(k) <= 0, product <= 0)
                        yield z3.Implies(of(k) >= 1, product >= of(a))
        pairs = [(m, n) for m, n in combinations(self.products, 2) if len(m) == len(n) == 2]
        for m, n in pairs:
            for a, k in (m, m[::-1]):
                for b, other in (n, n[::-1]):
                    if a == b and a.low is not None and a.low >= 0:
                        p, q = self.products[m], self.products[n]
                        yield z3.Implies(of(k) < of(other), p + of(a) <= q)
                        yield z3.Implies(of(k) > of(other), p >= q + of(a))
                        yield z3.Implies(of(k) == of(other), p == q)


def _products(terms: Iterable[Term]) -> frozenset[Monomial]:
    """Return the products of unknown numbers in terms."""
    found: set[Monomial] = set()
    seen: set[Term] = set()
    waiting = list(terms)
    while waiting:
        x = waiting.pop()
        if x in seen:
            continue
        seen.add(x)
        if x.kind == "sum":
            for _, monomial in x.args[1]:
                if len(monomial) > 1:
                    found.add(monomial)
                waiting += monomial
        else:
            waiting += [a for a in x.args if isinstance(a, Term)]
    return frozenset(found)


def _satisfies(facts: Iterable[Term], model: Model) -> bool:
    """Return whether facts hold for the values of a model."""
    try:
        return all(value_of(f, model) for f in facts)
    except (AssertionError, ArithmeticError):
        return False
