"""Expressions of rows, compiled to functions of arrays.

    sum = compiled(meaning.read("relu(src0 + src1)"))
    sum(Numbers(i, "f16"), {"src0": ..., "src1": ...})

`OPERATIONS` has the function of arrays for each operation. Equal parts are computed once. `Numbers` has the
arithmetic of an element type:

* Floats up to 32 bits compute in f32; the store rounds. `exp`, `log` and `pow` are those of
  `engine/functions.py`, and NumPy's in a float64 shadow run; `sqrt` and results computed from it stay in f64.
* Integers compute as in C: those below 32 bits in i32, wider ones in their own type, wrapping; the store
  keeps the low bits. Division truncates. Cases that the ISA leaves undefined: an integer over or modulo zero
  is 0, and a shift count outside the element shifts all bits out.
* `round(e)` is e as an element of the type. In a float64 shadow run it rounds nothing.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ...isa import encoding, meaning
from ...isa.dtypes import DTYPES
from .. import elements, functions
from ..elements import Array
from .instr import Instr, Place, Shape

#: A quotient below this is exact enough in f64 to truncate, for operands of 24 significant bits.
_EXACT_QUOTIENT = 2.0**28
#: The last bit that is not 0 in an f64 halfway between two f32, if these are normal.
_HALF, _BELOW_HALF, _BELOW_ELEMENT = np.array(1 << 28), np.array((1 << 28) - 1), np.array((1 << 29) - 1)
_LEAST_NORMAL = np.array(2.0**-126)
#: NumPy takes constants faster as arrays.
_ZERO, _INFINITY = np.array(0.0), np.array(np.inf)
#: Up to this number of elements, a few expensive calls are faster than several cheap ones.
_FEW = 512


def spread(values: Array, shape: Shape) -> Array:
    """Return values for every element of a shape; a single row or column is repeated."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def computed(values: Array) -> Array:
    """Return elements in the type of their arithmetic."""
    return values.astype(np.int32) if values.dtype.kind in "iu" and values.itemsize < 4 else values


class Numbers:
    """The arithmetic of one element type."""

    __slots__ = ("dtype", "instr")

    def __init__(self, instr: Instr, dtype: str) -> None:
        self.instr = instr
        self.dtype = dtype

    def read(self, name: str | Place, shape: Shape) -> Array:
        """Return the first `shape` elements of an operand, in the type of their arithmetic."""
        found = self.instr.values(name, shape)
        return found if found.dtype.kind == "f" else computed(found)

    def scalar(self, value: float | int) -> Any:
        """Return a scalar operand converted to the element type."""
        if not DTYPES[self.dtype].is_float:
            return _integer(self.dtype, value)
        if not self.instr.exact:
            return np.float64(value)
        return _float(self.dtype, value, math.copysign(1.0, value))

    def round(self, values: Array) -> Array:
        """Round values to elements of the type; the result is numbers again."""
        d = DTYPES[self.dtype]
        if d.is_float:
            return self.instr.round(values, self.dtype)
        return values.astype(elements.ARRAY_DTYPES[self.dtype]).astype(values.dtype)

    def single(self, values: Array) -> Array:
        """Return values in f32."""
        return values.astype(np.float32 if self.instr.exact else np.float64)


@lru_cache(maxsize=4096)
def _float(dtype: str, value: float | int, sign: float) -> Any:
    """Return a scalar rounded to a float type, as a number; `sign` distinguishes zeros in the cache."""
    wide = np.array([value], np.float64)
    if dtype in ("f32", "f64"):
        return wide.astype(elements.ARRAY_DTYPES[dtype])[0]
    return elements.decode(dtype, elements.encode(dtype, wide))[0]


@lru_cache(maxsize=4096, typed=True)
def _integer(dtype: str, value: float | int) -> Any:
    """Return a scalar as an element of an integer type, in the type of its arithmetic."""
    d = DTYPES[dtype]
    exact = encoding.decode(d, encoding.encode(d, value))
    return np.int32(exact) if d.bits < 32 else elements.ARRAY_DTYPES[dtype].type(exact)


def select(condition: Array, a: Any, b: Any) -> Array:
    """Compute `np.where`, several times faster for many elements of one type and an irregular condition."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.size <= _FEW:
        return np.where(condition, a, b)
    dtype = (a if isinstance(a, np.ndarray) else np.asarray(b)).dtype
    a = np.asarray(a, dtype) if isinstance(a, int) else a
    b = np.asarray(b, dtype) if isinstance(b, int) else b
    if not isinstance(condition, np.ndarray) or condition.size <= _FEW or a.dtype != b.dtype:
        return np.where(condition, a, b)
    bits = np.dtype(f"i{dtype.itemsize}")
    mask = np.negative(condition.view(np.int8)).astype(bits, copy=False)
    other = b.view(bits)
    chosen = (a.view(bits) ^ other) & mask
    chosen ^= other
    return chosen.view(dtype)


def _divided(n: Numbers, a: Array, b: Array | int) -> Array:
    if isinstance(b, int) and b > 0 and not b & (b - 1) and not _whole(a):
        return a * (1 / b)  # a power of two has an exact reciprocal, and a product is faster
    if not (_whole(a) and _whole(b)):
        return a / b
    return (a - np.fmod(a, b)) // b


def _fmod(n: Numbers, a: Array, b: Array | int) -> Array:
    """Return the truncated remainder; it is exact, so any type of arithmetic gives the same result."""
    if _whole(a) or a.dtype == np.float64:
        return np.fmod(a, b)
    wide = a.astype(np.float64)
    count = np.trunc(wide / b)
    rest = wide - count * b
    if (np.abs(count) < _EXACT_QUOTIENT).all() and not np.isnan(rest).any():
        return np.copysign(rest, wide).astype(a.dtype)  # equals NumPy's fmod, ten times faster
    return np.fmod(a, b)


def _exp(n: Numbers, a: Array) -> Array:
    if not n.instr.exact:
        return np.exp(a, dtype=np.float64)
    return functions.exp(a, _rounds_once(n, a))


def _log(n: Numbers, a: Array) -> Array:
    if not n.instr.exact:
        return np.log(a, dtype=np.float64)
    return functions.log(a, n.dtype == "f16")


def _pow(n: Numbers, a: Array, b: Any) -> Array:
    if not _whole(a):
        if not n.instr.exact:
            return np.power(a, b, dtype=np.float64)
        if not DTYPES[n.dtype].is_float:
            return _cast_power(n, functions.power_f64(a, b))
        return functions.power(a, b, n.dtype == "bf16" or _rounds_once(n, a))
    found = np.power(a, np.maximum(b, 0))
    if a.dtype.kind == "u":
        return found
    sign = np.where(a == -1, 1 - 2 * (b & 1), 0)  # the reciprocal of an integer, truncated
    return np.where(b < 0, np.where(a == 1, 1, sign), found)


def _rounds_once(n: Numbers, a: Array) -> bool:
    """Return whether the result of a function stays in f64 until it is stored: for an f64 argument and a
    16-bit type. Otherwise it is an f32, like all values of expressions."""
    return a.dtype == np.float64 and n.dtype in ("f16", "bf16")


def _cast_power(n: Numbers, found: Array) -> Array:
    """Prepare powers for the cast to integers; the cast to u8 goes through i32, unlike a conversion."""
    return select(np.abs(found) < 2.0**31, found, np.float64(0)) if n.dtype == "u8" else found


_BITS = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}


def _extreme(which: np.ufunc, a: Array, b: Array | int) -> Array:
    """Return the greater or the lesser; a NaN in either stays, and -0 is below +0."""
    found = which(a, b)
    if _whole(a):
        return found
    if which is np.maximum and isinstance(b, int):  # a constant 0 is positive, so no -0 may remain
        return found + 0
    # equal numbers have equal bits, except zeros of different signs
    if not isinstance(b, np.ndarray) and b != 0:
        return found
    bits = _BITS[found.dtype]
    left, right = a.view(bits), np.asarray(b, found.dtype).view(bits)
    equal = left & right if which is np.maximum else left | right
    if found.size <= _FEW:
        np.copyto(found.view(bits), equal, where=a == b)
        return found
    return select(a == b, equal, found.view(bits)).view(found.dtype)


def _relu(n: Numbers, a: Array) -> Array:
    """Return positive numbers unchanged, +0 for all others and for NaN, which `fmax` skips."""
    found = np.fmax(a, 0)
    if not _whole(found):
        found += 0  # makes -0 positive
    return found


def _fma(n: Numbers, a: Array, b: Array, c: Array) -> Array:
    """Compute a * b + c of lanes for a single rounding to the nearest. The product is exact in f64. If the
    sum is inexact and may be halfway between two elements, its last bit moves towards the exact sum."""
    if not n.instr.exact or _whole(a):
        return a * b + c
    if n.dtype == "f16":
        # A product is exact in f32. A sum in f64 is inexact only if c is at least 2**31 times as large, so
        # that the sum is far from halfway, or if it overflows f16.
        return np.add(a * b, c, dtype=np.float64)
    product, wide = np.multiply(a, b, dtype=np.float64), c.astype(np.float64, copy=False)
    total = product + wide
    if n.dtype == "bf16":
        # A product has 16 bits, so for a far larger c the same holds. A far smaller c is lost only if the sum
        # equals the product.
        at = ((total == product) & (wide != _ZERO)).nonzero()[0]
        if at.size:
            total[at] = np.nextafter(total[at], np.copysign(_INFINITY, wide[at]))
        return total
    halfway = (total.view(np.int64) & _BELOW_ELEMENT == _HALF) | (np.abs(total) < _LEAST_NORMAL)
    at = halfway.nonzero()[0]
    if at.size:
        p, c, t = product[at], wide[at], total[at]
        part = t - p
        lost = (p - (t - part)) + (c - part)
        if np.count_nonzero(lost):
            halfway = (lost != 0) & (t.view(np.int64) & _BELOW_HALF == 0)  # also of small elements
            total[at] = np.where(halfway, np.nextafter(t, np.copysign(np.inf, lost)), t)
    return total


def _bits_of(n: Numbers) -> int:
    return DTYPES[n.dtype].bits


_ONES = np.array([bin(n).count("1") for n in range(256)], np.uint8)


def _bit_count(n: Numbers, a: Array) -> Array:
    size = _bits_of(n) // 8
    return _ONES[a.astype(f"u{size}").view(np.uint8)].reshape(*a.shape, size).sum(-1, dtype=np.int64)


def _bit_length(a: Array) -> Array:
    """Return the number of bits of non-negative numbers without leading zeros; f64 is exact for 32 bits, so
    64-bit numbers go in two halves."""
    if a.itemsize < 8:
        return np.frexp(a.astype(np.float64))[1].astype(np.int64)
    high, low = (np.frexp((part).astype(np.float64))[1] for part in (a >> 32, a & 0xFFFFFFFF))
    return np.where(high > 0, high + 32, low).astype(np.int64)


def _unsigned(n: Numbers) -> np.dtype[Any]:
    return np.dtype(f"u{_bits_of(n) // 8}")


def _carries(n: Numbers, a: Array, b: Array) -> Array:
    """Return whether an unsigned sum of the width of the elements overflows."""
    left, right = a.astype(_unsigned(n), copy=False), b.astype(_unsigned(n), copy=False)
    return left + right < left


def _mul_high(n: Numbers, a: Array, b: Array) -> Array:
    bits = _bits_of(n)
    wide = np.dtype(object) if bits > 32 else np.dtype(np.uint64 if n.dtype[0] == "u" else np.int64)
    return (a.astype(wide) * b.astype(wide) >> bits).astype(a.dtype)


def _whole(a: Array | int) -> bool:
    return isinstance(a, int) or a.dtype.kind in "iu"


class _Plain:
    """A function of arrays that is the same for every element type."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function

    def __call__(self, n: Numbers, *args: Array | int) -> Any:
        return self.function(*args)


#: The functions of arrays for the operations of `isa.meaning`. The first argument is the `Numbers` to use.
OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": _Plain(operator.add),
    "sub": _Plain(operator.sub),
    "mul": _Plain(operator.mul),
    "div": _divided,
    "neg": _Plain(operator.neg),
    "bit_and": _Plain(operator.and_),
    "bit_or": _Plain(operator.or_),
    "bit_xor": _Plain(operator.xor),
    "bit_not": _Plain(operator.invert),
    "shl": _Plain(np.left_shift),
    "shr": _Plain(np.right_shift),
    "less": _Plain(operator.lt),
    "less_equal": _Plain(operator.le),
    "greater": _Plain(operator.gt),
    "greater_equal": _Plain(operator.ge),
    "equal": _Plain(operator.eq),
    "not_equal": _Plain(operator.ne),
    "both": _Plain(np.logical_and),
    "either": _Plain(np.logical_or),
    "unsigned": lambda n, a: a.astype(_unsigned(n), copy=False),
    "carries": _carries,
    "mul_high": _mul_high,
    "rint": _Plain(np.rint),
    "floor": _Plain(np.floor),
    "ceil": _Plain(np.ceil),
    "trunc": _Plain(np.trunc),
    "round_away": lambda n, a: elements.round_integral(a, "ROUND"),
    "where": _Plain(select),
    "relu": _relu,
    "round": Numbers.round,
    "f32": Numbers.single,
    "f16": lambda n, a: n.instr.round(a, "f16"),
    "double": lambda n, a: np.asarray(a, np.float64),
    "exp": _exp,
    "log": _log,
    "sqrt": lambda n, a: np.sqrt(a, dtype=np.float64),
    "fmod": _fmod,
    "pow": _pow,
    "abs": _Plain(np.abs),
    "max": lambda n, a, b: _extreme(np.maximum, a, b),
    "min": lambda n, a, b: _extreme(np.minimum, a, b),
    "fma": _fma,
    "popcount": _bit_count,
    "cls": lambda n, a: _bits_of(n) - 1 - _bit_length(np.where(a < 0, ~a, a)),
}


#: Operations whose result may be an f64.
_FUNCTIONS = ("exp", "log", "pow")


def _narrowed(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function with its result in f32, because further operations use it."""

    def narrowed(n: Numbers, *args: object) -> Array:
        found = function(n, *args)
        return n.single(found) if DTYPES[n.dtype].is_float and DTYPES[n.dtype].bits <= 32 else found

    return narrowed


#: An expression as a function of `Numbers` and the values of its names.
Compute = Callable[[Numbers, Mapping[str, Any]], Any]


class Meaning:
    """A compiled expression; `names` are its inputs."""

    def __init__(self, expression: meaning.Expression) -> None:
        self.names = meaning.names(expression)
        self._start: list[str | int] = []
        self._steps: list[tuple[Callable[..., Array], tuple[int, ...]]] = []
        self._known: dict[meaning.Expression, int] = {}
        for part in meaning.parts(expression):
            if isinstance(part, meaning.Name | meaning.Constant) and part not in self._known:
                self._known[part] = len(self._start)
                self._start.append(part.name if isinstance(part, meaning.Name) else part.value)
        self._within = False
        self._result = self._place(expression)
        self.compute: Compute = self._function()

    def __call__(self, numbers: Numbers, values: Mapping[str, object]) -> Any:
        return self.compute(numbers, values)

    def _function(self) -> Compute:
        """Return the steps as one Python function, in which only values with several uses have a name."""
        wanted = Counter(place for _, at in self._steps for place in at)
        values = [f"v[{n!r}]" if isinstance(n, str) else str(n) for n in self._start]
        lines: list[str] = []
        known: dict[str, Any] = {}
        for function, at in self._steps:
            place, args = len(values), [values[k] for k in at]
            if isinstance(function, _Plain):
                known[f"f{place}"] = function.function
            else:
                known[f"f{place}"] = function
                args.insert(0, "n")
            value = f"f{place}({', '.join(args)})"
            if wanted[place] > 1:
                lines.append(f"t{place} = {value}")
                value = f"t{place}"
            values.append(value)
        body = "".join(f"    {line}\n" for line in (*lines, f"return {values[self._result]}"))
        # Built only from the expressions of rows; no text of a program reaches it.
        exec(f"def compute(n, v):\n{body}", known)
        return known["compute"]

    def _place(self, part: meaning.Expression) -> int:
        """Return the index of the value of a part; add its steps first."""
        if part in self._known:
            return self._known[part]
        assert isinstance(part, meaning.Apply)
        function = OPERATIONS[part.operation]
        if self._within and part.operation in _FUNCTIONS:
            function = _narrowed(function)
        self._within = True
        self._steps.append((function, tuple(self._place(p) for p in part.args)))
        place = self._known[part] = len(self._start) + len(self._steps) - 1
        return place


@lru_cache(maxsize=1024)
def compiled(text: str) -> Meaning:
    """Return the compiled form of an expression."""
    return Meaning(meaning.read(text))


class RowExpression:
    """An expression of a row: its inputs, and its compiled form for the attributes of an instruction.
    `moved` are the operands that it only chooses from, without arithmetic."""

    def __init__(self, expression: str | meaning.Expression) -> None:
        self.expression = meaning.read(expression) if isinstance(expression, str) else expression
        self.names = meaning.names(self.expression)
        self.moved = meaning.moved(self.expression)
        self._attributes = meaning.attributes(self.expression)
        self._made: dict[tuple[str, ...], Compute] = {}
        self._plain = None if self._attributes else Meaning(self.expression).compute

    def __call__(self, i: Instr) -> Compute:
        if self._plain is not None:
            return self._plain
        values = tuple([i.chosen(name) for name in self._attributes])
        found = self._made.get(values)
        if found is None:
            given = dict(zip(self._attributes, values, strict=True))
            found = self._made[values] = Meaning(meaning.decided(self.expression, given)).compute
        return found
