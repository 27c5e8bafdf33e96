"""Immutable value objects: fields from annotations, compared by value.

A record is like a frozen dataclass, without its import time: the assembler starts in milliseconds, and
generating code for fifty classes would take longer than assembling a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda cls: cls


Self = TypeVar("Self", bound="Record")


@dataclass_transform(frozen_default=True)
class Record:
    """Base class; `class Point(Record): x: int; y: int = 0`. Defaults are shared, so never mutate them."""

    if TYPE_CHECKING:
        _fields: ClassVar[tuple[str, ...]]
    else:
        _fields: tuple[str, ...] = ()
        _defaults: dict[str, Any] = {}
        _names: frozenset[str] = frozenset()

        def __init_subclass__(cls) -> None:
            own = [n for n, a in cls.__annotations__.items() if not a.startswith("ClassVar")]
            cls._fields = (*cls._fields, *(n for n in own if n not in cls._fields))
            given = {n: cls.__dict__[n] for n in own if n in cls.__dict__}
            cls._defaults = {**cls._defaults, **given}
            cls._names = frozenset(cls._fields)
            for n in given:  # fields are not class attributes
                delattr(cls, n)

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            values = self.__dict__
            if not kwargs and len(args) == len(self._fields):
                values.update(zip(self._fields, args))  # noqa: B905
                return
            values.update(self._defaults)
            if args:
                values.update(zip(self._fields, args, strict=False))
            if kwargs:
                values.update(kwargs)
            count = len(self._fields)
            if len(values) != count or len(args) > count or not kwargs.keys() <= self._names:
                unknown = sorted(set(values) - set(self._fields))
                missing = [n for n in self._fields if n not in values]
                wrong = f"unknown field {unknown[0]}" if unknown else f"missing field {(missing or ['?'])[0]}"
                raise TypeError(f"{type(self).__name__}: {wrong}")

        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"{type(self).__name__} is immutable")

        __delattr__ = __setattr__

    def _key(self) -> tuple[Any, ...]:
        values = self.__dict__
        return tuple([values[name] for name in self._fields])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Record) and type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((type(self).__name__, self._key()))
        return found

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._fields)
        return f"{type(self).__name__}({inside})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._key()

    def replace(self: Self, **changes: Any) -> Self:
        """Return the record with some fields changed."""
        names, values = self._fields, self.__dict__
        made = object.__new__(type(self))
        # Cached values of this record (its hash, cached properties) are not copied.
        made.__dict__.update(values if len(values) == len(names) else {name: values[name] for name in names})
        made.__dict__.update(changes)
        if len(made.__dict__) != len(names):
            raise TypeError(f"{type(self).__name__}: unknown field {min(changes.keys() - set(names))}")
        return made

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        return cls._fields

    def as_dict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self._key(), strict=True))
