"""Values of names while a body runs as ordinary Python: typed numbers, and arrays.

Numbers are Python's `int` and `float` with an element type, and wrap or round as that type does. Arrays hold
a NumPy array of their whole shape; elements outside the valid region are poison, so that a use of them shows
in the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...engine.elements import ARRAY_DTYPES, Array, code_dtype, encode
from ...isa.scalars import WHOLE
from ..dtypes import BOOL, INDEX, DataType
from ..ir import ArrayType, Block, Op, ScalarType, TensorType, TileType, Value
from ..ir.build import Build, power
from ..problems import OF_ARRAYS, TYPE
from .current import interpreter

# ---- numbers ----


def number(value: Any, dtype: DataType) -> Integer | Real | Truth:
    """Return a number of a type: integers wrap, floats are rounded."""
    if dtype == BOOL:
        return Truth(bool(value))
    if dtype.is_float:
        return Real(rounded(float(value), dtype), dtype)
    return Integer(dtype.wrapped(int(value)), dtype)


def rounded(value: float, dtype: DataType) -> float:
    kind = ARRAY_DTYPES.get(dtype.isa)
    if kind is None:
        raise TypeError(f"unsupported element type of a number: {dtype.name}")
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.float64(value).astype(kind))


def _operator(name: str, swapped: bool = False) -> Callable[[object, object], object]:
    def apply(self: object, other: object) -> object:
        if not isinstance(other, int | float):
            return NotImplemented
        return scalar(name, *((other, self) if swapped else (self, other)))

    return apply


class _Typed:
    """The common part of typed numbers."""

    dtype: DataType
    __hash__: Any

    def __neg__(self) -> Integer | Real | Truth:
        return scalar("neg", self)

    def __invert__(self) -> Integer | Real | Truth:
        return scalar("invert", self)

    def __abs__(self) -> Integer | Real | Truth:
        return scalar("abs", self)

    def __pos__(self) -> _Typed:
        return self

    def __pow__(self, exponent: Any) -> object:
        known = interpreter("pow").checked(lambda: Build(Block())._exponent(exponent))
        return power(self, known, lambda a, b: scalar("mul", a, b))


class Integer(_Typed, int):
    """A whole number, or a task id."""

    dtype: DataType

    def __new__(cls, value: int, dtype: DataType) -> Integer:
        made = int.__new__(cls, value)
        made.dtype = dtype
        return made

    __hash__ = int.__hash__


class Real(_Typed, float):
    dtype: DataType

    def __new__(cls, value: float, dtype: DataType) -> Real:
        made = float.__new__(cls, value)
        made.dtype = dtype
        return made

    __hash__ = float.__hash__


class Truth(_Typed, int):
    """A truth value that is not a constant of the program."""

    dtype = BOOL

    def __new__(cls, value: bool) -> Truth:
        return int.__new__(cls, value)

    def __repr__(self) -> str:
        return str(bool(self))

    __str__ = __repr__
    __hash__ = int.__hash__


_WORDS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "truediv", "floordiv": "floordiv", "mod": "mod",
    "lshift": "shl", "rshift": "shr", "and": "bitand", "or": "bitor", "xor": "bitxor",
}  # fmt: skip
for _python, _name in _WORDS.items():
    for _class in (Integer, Real, Truth):
        setattr(_class, f"__{_python}__", _operator(_name))
        setattr(_class, f"__r{_python}__", _operator(_name, swapped=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    for _class in (Integer, Real, Truth):
        setattr(_class, f"__{_name}__", _operator(_name))


def is_typed(value: object) -> bool:
    return isinstance(value, _Typed)


def scalar(name: str, *args: Any) -> Any:
    """Compute an operation on numbers, at least one of which has a type."""
    shown = [Value(ScalarType(a.dtype)) if is_typed(a) else a for a in args]
    dtype = interpreter(name).checked(lambda: Build(Block())._scalar_result(name, tuple(shown)))
    return number(computed(name, args, dtype), dtype)


def computed(name: str, args: tuple[object, ...], dtype: DataType) -> int | float:
    """Compute an operation on numbers; the caller rounds the result to `dtype`."""
    if name in _COMPARISONS:
        wide = _common(args)
        a, b = (number(x, wide) for x in args)
        return _COMPARISONS[name](a, b)
    if name in ("and", "or", "not"):
        plain = [bool(x) for x in args]
        return {"and": all(plain), "or": any(plain), "not": not plain[0]}[name]
    values = [number(a, dtype) for a in args]
    if dtype.is_float:
        return _float(name, [float(v) for v in values])
    return WHOLE[_MEANINGS.get(name, name)](dtype.bits)(*map(int, values))


def _common(args: Sequence[Any]) -> DataType:
    """Return the type in which numbers are compared: types of values win over those of literals, wider types
    over narrower."""
    types = [a.dtype for a in args if is_typed(a)]
    return max(types, key=lambda d: d.bits) if types else INDEX


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: _plain(a) == _plain(b), "ne": lambda a, b: _plain(a) != _plain(b),
    "lt": lambda a, b: _plain(a) < _plain(b), "le": lambda a, b: _plain(a) <= _plain(b),
    "gt": lambda a, b: _plain(a) > _plain(b), "ge": lambda a, b: _plain(a) >= _plain(b),
}  # fmt: skip


def _plain(x: float) -> float | int:
    return float(x) if isinstance(x, float) else int(x)


#: Operators on whole numbers that `isa.meaning` has under another name.
_MEANINGS = {"bitand": "bit_and", "bitor": "bit_or", "bitxor": "bit_xor", "invert": "bit_not"}


def _float(name: str, v: list[float]) -> float:
    """Compute in float32, also for narrower types; the caller rounds the result."""
    a = np.float32(v[0])
    b = np.float32(v[1]) if len(v) > 1 else a
    with np.errstate(all="ignore"):
        table: dict[str, Callable[[], np.float32]] = {
            "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "truediv": lambda: a / b,
            "neg": lambda: np.float32(0) - a, "abs": lambda: abs(a),
            "min": lambda: _smaller(a, b), "max": lambda: -_smaller(-a, -b),
        }  # fmt: skip
        return float(table[name]())


def _smaller(a: Any, b: Any) -> np.float32:
    if math.isnan(a) or math.isnan(b):
        return a if math.isnan(a) else b
    if a == b == 0:
        return a if math.copysign(1, a) < 0 else b
    return min(a, b)


# ---- arrays ----

#: An operation that makes masks or sums, and its operands.
Maker: TypeAlias = "tuple[Op, dict[Value, Any]]"


def storage(dtype: DataType) -> np.dtype[np.generic]:
    """Return the NumPy type that holds elements of a type."""
    return ARRAY_DTYPES.get(dtype.isa) or code_dtype(dtype.isa)


def poison(shape: Sequence[int], dtype: DataType) -> Array:
    """Return an array of poison: NaN, or a bit pattern that computations rarely give."""
    kind = storage(dtype)
    made = np.empty(tuple(shape), kind)
    if dtype.is_float and dtype.isa in ARRAY_DTYPES and not dtype.isa.startswith("f8"):
        made.fill(np.nan)
    else:
        made.view(np.uint8).fill(0xAD)
    return made


class Held:
    """A tensor or a tile. `data` is a view of its storage; `memory` is True for global memory."""

    __array_ufunc__ = None  # makes NumPy scalars leave operators to this class
    __hash__ = object.__hash__

    def __init__(
        self, data: Array, type: TensorType | TileType, memory: bool = False, made: Maker | None = None,
        name: str = "",
    ) -> None:  # fmt: skip
        self.name = name  # the name of a parameter
        self.data = data
        self.type: Any = type
        self.memory = memory
        self.made = made  # of masks and sums: the operation that makes them, and its operands

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.type.shape)

    @property
    def valid_shape(self) -> tuple[int, ...]:
        return tuple(self.type.extent)

    @property
    def dtype(self) -> DataType:
        return self.type.dtype

    @property
    def valid(self) -> Array:
        """Return the valid region."""
        return self.data[tuple(slice(0, n) for n in self.type.extent)]

    def numpy(self) -> Array:
        return self.data

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> Array:
        return np.asarray(self.data, dtype)

    def bind_dynamic(self, *_: object) -> None:
        pass

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        message = "expected a truth value as a condition"
        return interpreter("if").fail(TYPE, message, got=self.type, help=OF_ARRAYS)

    def __repr__(self) -> str:
        part = f", valid {list(self.valid_shape)}" if self.type.valid is not None else ""
        return f"{self.type}{part}\n{self.data}"

    # ---- as Python writes operators ----

    def __getitem__(self, item: object) -> Any:
        return interpreter("[]").window(self, item)

    def __setitem__(self, item: object, value: Any) -> None:
        interpreter("[]").write_window(self, item, value)


def _on_arrays(name: str, swapped: bool = False) -> Callable[..., object]:
    def apply(self: Held, *other: object) -> object:
        return interpreter(name).on_arrays(name, *((*other, self) if swapped else (self, *other)))

    return apply


for _python, _name in {**_WORDS, "pow": "pow", "matmul": "matmul"}.items():
    setattr(Held, f"__{_python}__", _on_arrays(_name))
    setattr(Held, f"__r{_python}__", _on_arrays(_name, True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert"):
    setattr(Held, f"__{_name}__", _on_arrays(_name))


class HeldArray:
    """Numbers or task ids on the stack: `pl.array.create(n, dtype)`."""

    def __init__(self, type: ArrayType) -> None:
        self.type = type
        self.items: list[Any] = [None] * type.extent

    def __getitem__(self, at: int) -> Any:
        return self.items[self._at(at)]

    def __setitem__(self, at: int, value: Any) -> None:
        plain = isinstance(value, int | float) and not is_typed(value) and self.type.dtype.isa != "task"
        self.items[self._at(at)] = number(value, self.type.dtype) if plain else value

    def _at(self, at: int) -> int:
        if not 0 <= at < len(self.items):
            raise IndexError(f"index {at} is out of range for an array of {len(self.items)}")
        return int(at)

    def __repr__(self) -> str:
        return f"{self.type} {self.items}"


def whole(x: Held) -> Array:
    """Return an array in its full shape; the part of a window without storage is poison."""
    if x.data.shape == x.shape:
        return x.data
    made = poison(x.shape, x.dtype)
    made[tuple(slice(0, n) for n in x.data.shape)] = x.data
    return made


def converted(data: Array, have: DataType, want: DataType) -> Array:
    """Convert elements as a narrowing store of an accumulator does: to nearest, ties to even."""
    if have == want:
        return data
    if want.is_float and have.is_float:
        wide = np.asarray(data, np.float32)
        return encode(want.isa, wide, "RINT").view(storage(want))
    with np.errstate(invalid="ignore", over="ignore"):
        return data.astype(storage(want))


def boxed(array: Array, layout: str, pack: bool) -> Array:
    """Convert scales between rows and columns and their boxed layout in memory; `pack` gives boxes."""
    rows, cols = array.shape
    if layout == "MX_A_ZZ":
        dims, order = (rows // 16, 16, cols // 2, 2), (0, 2, 1, 3)
    else:
        dims, order = (rows // 2, 2, cols // 16, 16), (2, 0, 3, 1)
    if pack:
        return array.reshape(dims).transpose(order).reshape(rows, cols)
    back = tuple(order.index(n) for n in range(4))
    return array.reshape(tuple(dims[n] for n in order)).transpose(back).reshape(rows, cols)
