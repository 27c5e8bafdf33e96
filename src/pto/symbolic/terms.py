"""Integers and truth values of a proof: numbers, or terms over symbols.

A value is a Python `int` or `bool` if it is known, else a `Term`. Terms are in a normal form, so that many
comparisons need no solver: sums of products have sorted, combined monomials, and every term has a range.
Terms with the same text are equal; the operators `<`, `+`, .. compute terms, `eq` compares symbolically.

    k = symbol("k", 0, 100)
    (k + 1) * 64 - k * 64  -> 64
    k * 2 < 300            -> True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from hashlib import sha256
from math import gcd
from typing import Any, Union

Int = Union[int, "Term"]
Truth = Union[bool, "Term"]
End = int | None
#: Product of atoms, sorted by their texts.
Monomial = tuple["Term", ...]

#: Longer texts are replaced by a digest.
_LONGEST = 1000


def _number(compute: Callable[[Any, Any], Any]) -> Callable[[Term, Int], Int]:
    return lambda a, b: compute(a, b)


def _truth(compute: Callable[[Any, Any], Any]) -> Callable[[Term, Int], Truth]:
    return lambda a, b: compute(a, b)


class Term:
    """A node. `kind` is one of

    symbol, truth   an unknown integer or truth value; args: its name, and its scope
    sum             args: constant, and pairs of factor and monomial
    floor           quotient, rounded down; the divisor is positive
    choose          condition, and both values
    negative, zero  truth values: a sum is at most 0, or equal to 0
    and, or, not"""

    __slots__ = ("args", "high", "kind", "low", "symbols", "text")

    def __init__(
        self, kind: str, args: tuple[Any, ...], text: str, low: End, high: End, symbols: frozenset[Term]
    ) -> None:
        if len(text) > _LONGEST:
            text = f"#{sha256(text.encode()).hexdigest()[:24]}"
        self.kind, self.args, self.text = kind, args, text
        self.low, self.high = low, high  # ends of the range; None: unbounded
        self.symbols = symbols or frozenset((self,))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Term) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        raise TypeError(f"'{self.text}' is neither true nor false")

    __add__ = __radd__ = _number(lambda a, b: _sum(a, b, 1))
    __sub__, __rsub__ = _number(lambda a, b: _sum(a, b, -1)), _number(lambda a, b: _sum(b, a, -1))
    __mul__ = __rmul__ = _number(lambda a, b: _product(a, b))
    __le__, __ge__ = _truth(lambda a, b: at_most_0(a - b)), _truth(lambda a, b: at_most_0(b - a))
    __lt__, __gt__ = _truth(lambda a, b: at_most_0(a - b + 1)), _truth(lambda a, b: at_most_0(b - a + 1))

    def __neg__(self) -> Int:
        return _sum(0, self, -1)


def symbol(name: str, low: End = None, high: End = None, scope: object = None) -> Term:
    return Term("symbol", (name, scope), name, low, high, frozenset())


def truth(name: str, scope: object = None) -> Term:
    return Term("truth", (name, scope), name, None, None, frozenset())


def is_int(value: object) -> bool:
    """Return True for a known integer, not for a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Return True for an integer, known or not."""
    return is_int(value) or isinstance(value, Term)


def is_truth(value: object) -> bool:
    kinds = ("truth", "negative", "zero", "and", "or", "not")
    return isinstance(value, bool) or (isinstance(value, Term) and value.kind in kinds)


def low(x: Int) -> End:
    return x.low if isinstance(x, Term) else x


def high(x: Int) -> End:
    return x.high if isinstance(x, Term) else x


def symbols(x: Any) -> frozenset[Term]:
    """Return the symbols of a term, or of all terms in a tuple or a dataclass."""
    if isinstance(x, Term):
        return x.symbols
    parts = x if isinstance(x, tuple) else [getattr(x, f.name) for f in fields(x)] if is_dataclass(x) else ()
    return _of(parts)


def _of(parts: Iterable[object]) -> frozenset[Term]:
    return frozenset().union(*(symbols(p) for p in parts))


# -- sums of products ---------------------------------------------------------------------------------------


def parts(x: Int) -> tuple[int, dict[Monomial, int]]:
    """Return the constant of a sum, and the factors of its monomials."""
    if not isinstance(x, Term):
        return int(x), {}
    if x.kind == "sum":
        constant, pairs = x.args
        return constant, {m: n for n, m in pairs}  # type: ignore[return-value,union-attr]
    return 0, {(x,): 1}


def _made(constant: int, factors: Mapping[Monomial, int]) -> Int:
    pairs = sorted(((n, m) for m, n in factors.items() if n), key=lambda pair: [a.text for a in pair[1]])
    if not pairs:
        return constant
    if constant == 0 and len(pairs) == 1 and pairs[0][0] == 1 and len(pairs[0][1]) == 1:
        return pairs[0][1][0]
    text, least, most = "", constant, constant
    for n, m in pairs:
        a, b = range_of(m)
        a, b = (_times(a, n), _times(b, n)) if n > 0 else (_times(b, n), _times(a, n))
        least, most = _plus(least, a), _plus(most, b)
        sign = (" + " if n > 0 else " - ") if text else ("" if n > 0 else "-")
        text += sign + " * ".join([str(abs(n))] * (abs(n) != 1) + [_factor(a) for a in m])
    if constant:
        text += f" {'+' if constant > 0 else '-'} {abs(constant)}"
    atoms = frozenset().union(*(a.symbols for _, m in pairs for a in m))
    return Term("sum", (constant, tuple(pairs)), text, least, most, atoms)


def _factor(atom: Term) -> str:
    return atom.text if atom.kind != "sum" else f"({atom.text})"


def _plus(a: End, b: End) -> End:
    return None if a is None or b is None else a + b


def _times(a: End, b: End) -> End:
    return None if a is None or b is None else a * b


def range_of(monomial: Monomial) -> tuple[End, End]:
    least, most = monomial[0].low, monomial[0].high
    for atom in monomial[1:]:
        a, b = atom.low, atom.high
        if a is not None and a >= 0 and least is not None and least >= 0:
            least, most = least * a, _times(most, b)
        elif None in (least, most, a, b):
            return None, None
        else:
            corners = [x * y for x in (least, most) for y in (a, b)]  # type: ignore[operator]
            least, most = min(corners), max(corners)
    return least, most


def _sum(a: Int, b: Int, factor: int) -> Int:
    constant, found = parts(a)
    more, others = parts(b)
    for monomial, n in others.items():
        found[monomial] = found.get(monomial, 0) + factor * n
    return _made(constant + factor * more, found)


def _product(a: Int, b: Int) -> Int:
    (ca, fa), (cb, fb) = parts(a), parts(b)
    found: dict[Monomial, int] = {}
    for ma, na in [((), ca), *fa.items()]:
        for mb, nb in [((), cb), *fb.items()]:
            joint = tuple(sorted((*ma, *mb), key=lambda t: t.text))
            found[joint] = found.get(joint, 0) + na * nb
    return _made(found.pop((), 0), found)


# -- other integers -----------------------------------------------------------------------------------------


def floordiv(a: Int, b: Int) -> Int:
    """Return the quotient, rounded down, for a positive divisor."""
    if isinstance(b, int) and b == 1:
        return a
    if not isinstance(a, Term) and not isinstance(b, Term):
        return a // b
    if isinstance(b, int):  # take multiples of the divisor out of the quotient
        constant, factors = parts(a)
        whole = {m: n // b for m, n in factors.items() if n % b == 0}
        if whole or not 0 <= constant < b:
            rest = _made(constant % b, {m: n for m, n in factors.items() if n % b})
            outside = _made(constant // b, whole)
            return outside + floordiv(rest, b)
        if low(a) is not None and high(a) is not None and low(a) // b == high(a) // b:  # type: ignore[operator]
            return low(a) // b  # type: ignore[operator]
    least, most = low(a), high(a)
    if isinstance(b, int):
        least, most = (None if e is None else e // b for e in (least, most))
    else:
        least = None if least is None else min(least, 0)
        most = None if most is None else max(most, 0)
    return Term("floor", (a, b), f"({a!r}) // ({b!r})", least, most, _of((a, b)))


def mod(a: Int, b: Int) -> Int:
    """Return the remainder of `floordiv`."""
    if not isinstance(a, Term) and not isinstance(b, Term):
        return a % b
    if isinstance(b, int) and (low(a) or 0) >= 0 and low(a) is not None:
        most = high(a)
        if most is not None and most < b:
            return a
    return a - b * floordiv(a, b)


def choose(condition: Truth, a: Int, b: Int) -> Int:
    if isinstance(condition, bool):
        return a if condition else b
    if a == b:
        return a
    ends = [(low(x), high(x)) for x in (a, b)]
    least = None if None in (ends[0][0], ends[1][0]) else min(e[0] for e in ends)  # type: ignore[type-var]
    most = None if None in (ends[0][1], ends[1][1]) else max(e[1] for e in ends)  # type: ignore[type-var]
    return _chosen(condition, a, b, least, most)


def _chosen(condition: Term, a: Int, b: Int, least: End, most: End) -> Int:
    text = f"({a!r} if {condition!r} else {b!r})"
    return Term("choose", (condition, a, b), text, least, most, _of((condition, a, b)))


def least(a: Int, b: Int) -> Int:
    return _extreme(a, b, a <= b, min)


def greatest(a: Int, b: Int) -> Int:
    return _extreme(a, b, a >= b, max)


def _extreme(a: Int, b: Int, first: Truth, pick: Callable[[Sequence[int]], int]) -> Int:
    if isinstance(first, bool) or a == b:
        return a if first is True or a == b else b

    def end(x: End, y: End) -> End:
        known = [e for e in (x, y) if e is not None]
        return pick(known) if len(known) == 2 else None

    least, most = end(low(a), low(b)), end(high(a), high(b))
    if pick is min:  # at most each of the two
        most = high(a) if high(b) is None else high(b) if high(a) is None else most
    else:
        least = low(a) if low(b) is None else low(b) if low(a) is None else least
    return _chosen(first, a, b, least, most)


# -- truth values -------------------------------------------------------------------------------------------


def at_most_0(x: Int) -> Truth:
    if high(x) is not None and high(x) <= 0:  # type: ignore[operator]
        return True
    if low(x) is not None and low(x) > 0:  # type: ignore[operator]
        return False
    assert isinstance(x, Term)
    constant, factors = parts(x)
    divisor = gcd(*factors.values())
    if divisor > 1:
        x = _made(-(-constant // divisor), {m: n // divisor for m, n in factors.items()})
        assert isinstance(x, Term)
    return Term("negative", (x,), f"{x.text} <= 0", None, None, x.symbols)


def eq(a: Int, b: Int) -> Truth:
    x = a - b
    if (low(x) is not None and low(x) > 0) or (high(x) is not None and high(x) < 0):  # type: ignore[operator]
        return False
    if not isinstance(x, Term):
        return x == 0
    constant, factors = parts(x)
    divisor = gcd(*factors.values())
    if constant % divisor:
        return False
    first = next(iter(factors.values()))
    sign = 1 if first > 0 else -1
    x = _made(sign * constant // divisor, {m: sign * n // divisor for m, n in factors.items()})
    assert isinstance(x, Term)
    return Term("zero", (x,), f"{x.text} == 0", None, None, x.symbols)


def negated(x: Truth) -> Truth:
    if isinstance(x, bool):
        return not x
    if x.kind == "not":
        return x.args[0]  # type: ignore[return-value]
    if x.kind == "negative":
        return at_most_0(1 - x.args[0])  # type: ignore[operator]
    if x.kind in ("and", "or"):
        join = either if x.kind == "and" else both
        return join(*(negated(p) for p in x.args))  # type: ignore[arg-type]
    return Term("not", (x,), f"not ({x.text})", None, None, x.symbols)


def both(*conditions: Truth) -> Truth:
    return _joined("and", conditions, False)


def either(*conditions: Truth) -> Truth:
    return _joined("or", conditions, True)


def _joined(kind: str, conditions: Iterable[Truth], decides: bool) -> Truth:
    found: dict[Term, None] = {}
    for c in conditions:
        if isinstance(c, bool):
            if c is decides:
                return decides
        elif c.kind == kind:
            found.update(dict.fromkeys(c.args))  # type: ignore[arg-type]
        else:
            found[c] = None
    if not found:
        return not decides
    terms = sorted(found, key=lambda t: t.text)
    if len(terms) == 1:
        return terms[0]
    return Term(kind, tuple(terms), f" {kind} ".join(f"({t.text})" for t in terms), None, None, _of(terms))


def as_int(x: Int | Truth, true: int = 1) -> Int:
    """Return a truth value as a number."""
    if isinstance(x, bool):
        return true if x else 0
    return choose(x, true, 0) if is_truth(x) else x  # type: ignore[arg-type]


def as_truth(x: Int | Truth) -> Truth:
    """Return whether a number is not 0."""
    return x if is_truth(x) else negated(eq(x, 0))  # type: ignore[return-value]


# -- other values for symbols -------------------------------------------------------------------------------


def replaced(x: Int | Truth, values: Mapping[Term, Int | Truth]) -> Int | Truth:
    """Return a term with other values for some of its symbols."""
    return _Replace(values).of(x)


class _Replace:
    def __init__(self, values: Mapping[Term, Int | Truth]) -> None:
        self.values = values
        self.known: dict[Term, Int | Truth] = {}

    def of(self, x: Int | Truth) -> Int | Truth:
        if not isinstance(x, Term) or self.values.keys().isdisjoint(x.symbols):
            return x
        found = self.known.get(x)
        if found is None:
            found = self.known[x] = self._made(x)
        return found

    def _made(self, x: Term) -> Int | Truth:
        of = self.of
        match x.kind:
            case "symbol" | "truth":
                return self.values[x]
            case "sum":
                constant, pairs = x.args
                total: Int = constant  # type: ignore[assignment]
                for n, monomial in pairs:  # type: ignore[union-attr]
                    product: Int = n
                    for atom in monomial:
                        product = product * of(atom)  # type: ignore[assignment]
                    total = total + product
                return total
            case "floor":
                return floordiv(*map(of, x.args))  # type: ignore[arg-type]
            case "choose":
                condition, a, b = map(of, x.args)  # type: ignore[arg-type]
                if x.args[0] in (x.args[1] <= x.args[2],):  # type: ignore[operator]
                    return least(a, b)
                if x.args[0] in (x.args[1] >= x.args[2],):  # type: ignore[operator]
                    return greatest(a, b)
                return choose(condition, a, b)  # type: ignore[arg-type]
            case "negative":
                return at_most_0(of(x.args[0]))  # type: ignore[arg-type]
            case "zero":
                return eq(of(x.args[0]), 0)  # type: ignore[arg-type]
            case "not":
                return negated(of(x.args[0]))  # type: ignore[arg-type]
            case _:
                return _joined(x.kind, map(of, x.args), x.kind == "or")  # type: ignore[arg-type]


def value_of(x: Int | Truth, values: Mapping[Term, int | bool]) -> int | bool:
    """Return the value of a term for values of all its symbols."""
    found = replaced(x, {s: values[s] for s in symbols(x)})
    assert not isinstance(found, Term)
    return found


#: A fact that never holds, for lists of facts.
NEVER = Term("negative", (1,), "1 <= 0", None, None, frozenset())
