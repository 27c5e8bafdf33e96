"""Integers of a program as sums of constants and named unknowns with ranges.

These forms compare addresses and window offsets: `(i + 1) * 64` and `i * 64` differ by 64 for every `i`, and
in the next iteration of the loop over `i` by one more step.

A form is the number that the engines compute, under one assumption about wrapping. Integers wrap to their
type:

* Constants wrap exactly, and so does a form whose range wraps as a whole.
* A sum, product or left shift, or a cast from index to a narrower integer, is a form if no known end of its
range lies outside the type. An unknown end is assumed to lie inside, as if the operation had MLIR's `nsw`:
most loop bounds are arguments, and without this assumption no address inside such a loop could be compared.
* `extui` and a widening `index_castui` keep a number only if it is known to be non-negative, `trunci` only if
it is known to fit. These operations are meant to change numbers, so no assumption is made.
* Everything else is an unknown; equal computations have the same unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...ir.core import Block, Operation, Value, constant_of
from ...ir.facts import LOOPS, enclosing
from ...isa.scalars import bounds, width

#: Stands for no bound.
BIG = 1 << 60

Range = tuple[int, int]


class Symbol:
    """An unknown integer: its block, its range, and the loop that it counts."""

    __slots__ = ("high", "loop", "low", "scope", "step")

    def __init__(
        self,
        scope: Block | None,
        low: int = -BIG,
        high: int = BIG,
        loop: Operation | None = None,
        step: int = 0,
    ) -> None:
        self.scope = scope  # the block it is defined in
        self.low = low
        self.high = high
        self.loop = loop
        self.step = step


class Affine:
    """constant + sum of factor * symbol."""

    __slots__ = ("_range", "constant", "key", "terms")

    def __init__(self, constant: int, terms: Mapping[Symbol, int] | None = None) -> None:
        self.constant = constant
        self.terms: dict[Symbol, int] = dict(terms) if terms else {}
        #: Equal for equal forms.
        self.key = (constant, frozenset(self.terms.items())) if terms else constant
        self._range: Range | None = None

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        terms = dict(self.terms)
        for symbol, n in other.terms.items():
            total = terms.get(symbol, 0) + factor * n
            if total:
                terms[symbol] = total
            else:
                terms.pop(symbol, None)
        return Affine(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> Affine:
        return Affine(
            self.constant * factor, {s: n * factor for s, n in self.terms.items()} if factor else None
        )

    @property
    def range(self) -> Range:
        found = self._range
        if found is None:
            low, high = self.ends
            low, high = -BIG if low is None else low, BIG if high is None else high
            found = self._range = min(max(low, -BIG), BIG), max(min(high, BIG), -BIG)
        return found

    @property
    def ends(self) -> tuple[int | None, int | None]:
        """The least and the greatest number; None for an end that a symbol leaves open."""
        low: int | None = self.constant
        high: int | None = self.constant
        for symbol, n in self.terms.items():
            a, b = (symbol.low, symbol.high) if n > 0 else (symbol.high, symbol.low)
            low = None if low is None or abs(a) >= BIG else low + n * a
            high = None if high is None or abs(b) >= BIG else high + n * b
        return low, high


def _scaled(low: int, high: int, factor: int) -> Range:
    """Return the range of `factor` times a number; an unbounded end stays unbounded."""
    ends = sorted((low * factor, high * factor))
    unbounded = (low <= -BIG, high >= BIG) if factor > 0 else (high >= BIG, low <= -BIG)
    return (-BIG if unbounded[0] else ends[0]), (BIG if unbounded[1] else ends[1])


class Forms:
    """The forms of the values of a function, each computed once; equal computations share a symbol."""

    def __init__(self) -> None:
        self._known: dict[Value, Affine] = {}
        self._rests: dict[tuple[object, int], Symbol] = {}
        self._symbols: dict[object, Symbol] = {}

    def of(self, value: Value, depth: int = 24) -> Affine:
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._compute(value, depth)
        return found

    def _compute(self, value: Value, depth: int) -> Affine:
        op = value.op
        if op is None:
            return Affine(0, {self._argument(value): 1})
        constant = constant_of(value)
        if isinstance(constant, int):
            return Affine(constant)
        if depth and op.name in _COMPUTED:
            forms = [self.of(v, depth - 1) for v in op.operands]
            found = self._folded(op, forms)
            return found if found is not None else self._symbol(op, forms)
        if op.name in _COUNTS:
            return Affine(0, {Symbol(op.parent, 0): 1})
        return Affine(0, {Symbol(op.parent): 1})

    def _symbol(self, op: Operation, forms: list[Affine], low: int = -BIG, high: int = BIG) -> Affine:
        """Return the symbol for an operation on these forms, the same for equal operations."""
        key = (op.name, str(op.operands[0].type), str(op.result.type), *(f.key for f in forms))
        symbol = self._symbols.get(key)
        if symbol is None:
            scope = innermost(s.scope for f in forms for s in f.terms)
            symbol = self._symbols[key] = Symbol(scope, low, high)
        return Affine(0, {symbol: 1})

    def _folded(self, op: Operation, forms: list[Affine]) -> Affine | None:
        name = op.name
        a, b = forms[0], forms[-1]
        if name in _CASTS:
            return self._cast(op, a)
        if _width(op.result) == 1:  # a truth value: true is -1 as a signed number
            return None
        if name == "arith.addi":
            return self._wrapped(op, forms, a.plus(b))
        if name == "arith.subi":
            return self._wrapped(op, forms, a.plus(b, -1))
        if name == "arith.muli":
            if not a.terms or not b.terms:
                return self._wrapped(op, forms, a.times(b.constant) if not b.terms else b.times(a.constant))
        elif name == "arith.shli":
            if not b.terms and 0 <= b.constant < _width(op.result):
                return self._wrapped(op, forms, a.times(1 << b.constant))
        elif name in ("arith.remsi", "arith.remui"):
            if not b.terms and b.constant > 0:
                return self._rest(op, a, b.constant, signed=name == "arith.remsi")
        elif name == "arith.andi":
            if not b.terms and b.constant > 0 and b.constant & (b.constant + 1) == 0:
                return self._rest(op, a, b.constant + 1, signed=False)
        elif name == "arith.select":
            c = forms[1]
            return self._symbol(op, forms, min(b.range[0], c.range[0]), max(b.range[1], c.range[1]))
        elif name in ("arith.minsi", "arith.minui", "arith.maxsi", "arith.maxui"):
            return self._extreme(op, a, b)
        elif name in ("arith.divsi", "arith.divui", "arith.floordivsi", "arith.shrui", "arith.shrsi"):
            by = b.constant
            if "shr" in name:
                by = 1 << by if 0 <= by < _width(op.result) else 0
            low, high = a.range
            if not b.terms and by > 0 and low >= 0:
                return self._symbol(op, forms, low // by, high // by if high < BIG else BIG)
        return None

    def _cast(self, op: Operation, a: Affine) -> Affine:
        """Return a number cast to another type."""
        have, want = _width(op.operands[0]), _width(op.result)
        low, high = a.ends
        if want < have:
            known = low is not None and high is not None
            return self._wrapped(op, [a], a if known or op.name != "arith.trunci" else None)
        if op.name in ("arith.extsi", "arith.index_cast") or want == have:
            return a if have > 1 else self._wrapped(op, [a], None)
        if low is not None and low >= 0:
            return a
        if high is not None and high < 0:
            return a.plus(Affine(1 << have))
        return self._symbol(op, [a], 0, (1 << have) - 1)

    def _wrapped(self, op: Operation, forms: list[Affine], result: Affine | None) -> Affine:
        """Return a result wrapped to its type: an unknown of the type if only a part of the range wraps."""
        least, most = bounds(str(op.result.type))
        if result is not None:
            low, high = result.ends
            if (low is None or least <= low <= most) and (high is None or least <= high <= most):
                return result
            if low is not None and high is not None:
                size = most - least + 1
                turns = (low - least) // size
                if (high - least) // size == turns:
                    return result.plus(Affine(-turns * size))
        return self._symbol(op, forms, least, most)

    def _extreme(self, op: Operation, a: Affine, b: Affine) -> Affine | None:
        """Return the smaller or larger of two numbers; one of them if their ranges decide."""
        if op.name.endswith("ui") and (a.range[0] < 0 or b.range[0] < 0):
            return None
        smaller = "min" in op.name
        if a.range[1] <= b.range[0]:
            return a if smaller else b
        if b.range[1] <= a.range[0]:
            return b if smaller else a
        pick = min if smaller else max
        return self._symbol(op, [a, b], pick(a.range[0], b.range[0]), pick(a.range[1], b.range[1]))

    def _rest(self, op: Operation, a: Affine, by: int, signed: bool) -> Affine:
        """Return a % by: numbers that differ by a multiple of `by` share a symbol; for by = 2, odd ones are 1
        - even."""
        low, high = a.range
        negative = signed and low < 0
        if low >= 0 and high < by:
            return a
        odd = a.constant % by
        if not negative and by == 2 and odd:
            return Affine(1).plus(self._rest(op, Affine(a.constant - odd, a.terms), by, signed), -1)
        key: tuple[object, int] = (op, by)  # residues of negative numbers also depend on the sign
        if low >= 0 or (not signed and by & (by - 1) == 0):
            key = (Affine(odd, {s: n % by for s, n in a.terms.items() if n % by}).key, by)
        symbol = self._rests.get(key)
        if symbol is None:
            scopes = [s.scope for s in a.terms]
            symbol = Symbol(innermost(scopes), 1 - by if negative else 0, by - 1)
            self._rests[key] = symbol
        return Affine(0, {symbol: 1})

    def _argument(self, value: Value) -> Symbol:
        block = value.owner
        assert isinstance(block, Block)
        owner = block.outer
        if owner is None or owner.name != "scf.for" or value.index:
            return Symbol(block, 0 if value.name.startswith(_SPMD) else -BIG)
        low, high, step = (self.of(v) for v in owner.operands[:3])
        by = step.constant if not step.terms and step.constant > 0 else 0
        first, last = low.range[0], high.range[1]
        if by and last < BIG and not low.terms and not high.terms:
            last = first + max(0, last - 1 - first) // by * by
        elif last < BIG:
            last -= 1
        return Symbol(block, first, max(last, first), owner, by)


_CASTS = frozenset(f"arith.{name}" for name in "index_cast index_castui extsi extui trunci".split())
_COMPUTED = _CASTS | {
    f"arith.{name}"
    for name in (
        "addi", "subi", "muli", "shli", "remsi", "remui", "andi", "select", "minsi", "minui", "maxsi",
        "maxui", "divsi", "divui", "floordivsi", "shrui", "shrsi",
    )
}  # fmt: skip


def _width(value: Value) -> int:
    return width(str(value.type)) or 64


#: Arguments and operations with numbers of blocks and cores.
_SPMD = "__pypto_spmd_"
_COUNTS = frozenset(
    f"pto.{name}" for name in ("get_block_idx", "get_block_num", "get_subblock_idx", "get_subblock_num")
)


def innermost(scopes: Iterable[Block | None]) -> Block | None:
    """Return the innermost block."""
    best: Block | None = None
    depth = -1
    for scope in scopes:
        found = _depth(scope)
        if found > depth:
            best, depth = scope, found
    return best


def _depth(block: Block | None) -> int:
    return sum(1 for _ in enclosing(block)) if block is not None else 0


def inside(block: Block | None, op: Operation) -> bool:
    """Return True if a block lies in an operation."""
    return block is not None and any(owner is op for owner in enclosing(block))


def repeats(block: Block | None) -> bool:
    """Return True if a block may run more than once."""
    return block is not None and any(owner.name in LOOPS for owner in enclosing(block))


#: The most values of a symbol that are tried one by one.
_FEW = 4


def separate(now: Affine, front: Affine, size: int, other: int) -> bool:
    """Return True if ranges of `size` and `other` at two forms never overlap. If a symbol has few values, try
    all of them: `i % 2` and `1 - i % 2` are disjoint, although both are 0 or 1.
    """
    apart = now.plus(front, -1)
    few = next((s for s in apart.terms if s.high - s.low < _FEW), None)
    if few is None:
        return False
    factor = apart.terms[few]
    rest = apart.plus(Affine(0, {few: 1}), -factor)
    for value in range(few.low, few.high + 1):
        low, high = rest.range
        if not (low + factor * value >= other or high + factor * value <= -size):
            return False
    return True


def difference(now: Affine, front: Affine, loop: Operation | None) -> Range:
    """Return the range of `now - front`. `front` belongs to an earlier iteration of `loop` or, if `loop` is
    None, to the same iteration of all loops.
    """
    if loop is None:
        if now.terms == front.terms:
            apart = now.constant - front.constant
            return apart, apart
        return now.plus(front, -1).range
    low = high = now.constant - front.constant
    terms = dict(now.terms)
    for symbol, n in front.terms.items():
        if symbol.loop is loop:
            # an earlier iteration: at least one step less, at most all of them
            width = symbol.high - symbol.low if symbol.low > -BIG and symbol.high < BIG else BIG
            a, b = _scaled(max(symbol.step, 1), max(width, 1), n)
            terms[symbol] = terms.get(symbol, 0) - n
        elif inside(symbol.scope, loop):
            a, b = _scaled(symbol.low, symbol.high, -n)
        else:
            terms[symbol] = terms.get(symbol, 0) - n
            continue
        low, high = low + a, high + b
    for symbol, n in terms.items():
        if n:
            a, b = _scaled(symbol.low, symbol.high, n)
            low, high = low + a, high + b
    return max(low, -BIG), min(high, BIG)
