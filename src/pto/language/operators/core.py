"""Operators: functions of the language that become operations.

An operator is written as a function of a `Build` and its parameters. The reader calls this function for
each call in a program. The function checks its arguments and appends an operation with the same parameters.

    @operator
    def reshape(b, x, shape): ...
        return b.op("reshape", [x.type.replace(shape=shape)], x=x, shape=shape)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ..interpreter.current import interpreter
from ..ir import Dim, Value

#: Parameters and results of operators in the words of users; `stub.py` makes the types of `pl` from them.
#: Here all of them are `Value`s; an operator checks its arguments.
Array: TypeAlias = Value  # a tensor or a tile
Tensor: TypeAlias = Value
Tile: TypeAlias = Value
Scalar: TypeAlias = Value
Numbers: TypeAlias = Value  # numbers or task ids on the stack
Register: TypeAlias = Value  # a vector register or a mask
Extents: TypeAlias = Sequence[Dim]
#: Functions that check arguments and append operations: a `Build` and the parameters of the operator.
Function: TypeAlias = Callable[..., Any]
#: The result of an operator that has one or several.
Applied: TypeAlias = "Value | int | float | tuple[Value, ...]"


class Operator:
    # `pl.NAME`. `level` names the only namespace that has the operator (tensor, tile, system or array). It is
    # empty if all namespaces have the operator. An operator with `anywhere` returns a number and builds no
    # operation, so it is also legal outside of functions, for example in a decorator.

    def __init__(self, name: str, function: Function, level: str = "", anywhere: bool = False) -> None:
        self.name = name
        self.function = function
        self.level = level
        self.anywhere = anywhere
        self.__name__ = name
        self.doc = function.__doc__ or ""
        self._signature: inspect.Signature | None = None

    @property
    def typed(self) -> inspect.Signature:
        """Return the parameters and the result, with their types in the words of users."""
        made: inspect.Signature | None = getattr(self.function, "signature", None)
        if made is not None:
            return made
        whole = inspect.signature(self.function)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    @property
    def signature(self) -> inspect.Signature:
        """Return the parameters that users see."""
        if self._signature is None:
            empty = inspect.Parameter.empty
            named = [p.replace(annotation=empty) for p in self.typed.parameters.values()]
            self._signature = inspect.Signature(named)
        return self._signature

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return the text that `help` shows: the call and the description."""
        return f"{self.full_name}{self.signature}\n\n{self.doc}"

    @property
    def full_name(self) -> str:
        if not self.name.isidentifier():
            return f"`{self.name}` on arrays"
        name = f"{self.level}.{self.name}" if self.level else self.name
        return name if self.level.startswith("pld") else f"pl.{name}"

    def __repr__(self) -> str:
        return f"<operator {self.full_name}>"

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if self.anywhere:
            return self.function(None, *args, **kwargs)
        return interpreter(self.full_name).apply(self, args, kwargs)


class Operators(dict[str, Operator]):
    """Operators by name. Operators in `later` are made at their first use, because a program uses few of
    hundreds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.later: dict[str, Callable[[], Operator]] = {}

    def __missing__(self, name: str) -> Operator:
        made = self[name] = self.later.pop(name)()
        return made

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.later

    def get(self, name: str, default: object = None) -> Any:
        return self[name] if name in self else default

    def _all(self) -> None:
        for name in list(self.later):
            self[name]

    def items(self) -> Any:
        self._all()
        return super().items()

    def values(self) -> Any:
        self._all()
        return super().values()

    def __iter__(self) -> Iterator[str]:
        self._all()
        return super().__iter__()

    def __len__(self) -> int:
        return super().__len__() + len(self.later)


class _Functions:
    """The builder functions of operators, by name."""

    def __getitem__(self, name: str) -> Function:
        return OPERATORS[name].function


#: Operators of one namespace only are named `namespace.name`.
OPERATORS = Operators()
FUNCTIONS = _Functions()


def operator(
    function: Function | None = None, *, name: str = "", level: str = "", anywhere: bool = False
) -> Any:
    """Register a function as an operator."""

    def make(function: Function) -> Operator:
        found = Operator(name or function.__name__, function, level, anywhere)
        OPERATORS[f"{level}.{found.name}" if level else found.name] = found
        return found

    return make if function is None else make(function)


def first_value(*args: object) -> Value | None:
    """Return the first argument that is a value."""
    return next((a for a in args if isinstance(a, Value)), None)


class Namespace:
    """`pl.tile` and the other namespaces: operators of that level; `pl.tile` and `pl.tensor` also have those
    of every level."""

    def __init__(self, level: str) -> None:
        self.__name__ = level if level.startswith("pld") else f"pl.{level}"
        self._level = level

    def __getattr__(self, name: str) -> Operator:
        every = name if self.__dict__.get("_level") in ("tensor", "tile") else ""
        for key in (f"{self.__dict__.get('_level')}.{name}", every):
            if key in OPERATORS:
                return OPERATORS[key]
        raise AttributeError(f"'{self.__name__}' has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        level = f"{self._level}."
        own = [n.removeprefix(level) for n in OPERATORS if n.startswith(level)]
        return own + ([n for n in OPERATORS if "." not in n] if self._level in ("tensor", "tile") else [])
