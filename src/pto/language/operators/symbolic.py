"""Operators of several ranks in a text that is read only in order to print it.

Such a text does not fix the number of ranks, or the rank of a function, so each operator stays one operation
with the arguments of its call. `ranked` is the only place that decides this; the functions that it decorates
work on known ranks.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import NoReturn

from ..dtypes import INDEX, DataType
from ..ir import (
    Args,
    Dims,
    DistributedTensorType,
    HandleType,
    ScalarType,
    TileType,
    Type,
    Value,
    index,
    is_int,
    is_scalar,
)
from ..ir.build import Build
from ..problems import ARGUMENTS, PLACE, SHAPE, TYPE
from ..types import HANDLES, CommCtx, Ptr
from .core import Function, Operator, operator

#: The result of an operator: a type derived from its arguments, or the name of the argument that it returns.
Gives = Callable[[Build, Args], Type] | str
#: Parameters that are handles, numbers, and lists of numbers: one per dimension of the named parameter.
_HANDLES = {"ctx": (CommCtx, "pld.get_comm_ctx(t)"), "buf": (Ptr, "pld.alloc_window_buffer(..)")}
_NUMBERS = ("peer", "value", "expected")
_DIMS = {"offsets": ("target", "signal"), "dst_offsets": ("dst",), "src_offsets": ("src",)}


def ranked(level: str, gives: Gives, windows: str = "", name: str = "") -> Callable[[Function], Operator]:
    """Make an operator of several ranks; parameters in `windows` are memory that every rank has."""

    def make(function: Function) -> Operator:
        own = name or function.__name__
        signature = inspect.signature(function)

        @functools.wraps(function)
        def either(b: Build, *args: object, **kwargs: object) -> object:
            if not b.exact:
                return function(b, *args, **kwargs)
            bound = signature.bind(b, *args, **kwargs)
            bound.apply_defaults()
            given = dict(list(bound.arguments.items())[1:])
            return _as_written(b, f"{level}.{own}", given, windows.split(), gives)

        return operator(either, name=own, level=level)

    return make


def _as_written(b: Build, name: str, args: Args, windows: list[str], gives: Gives) -> Value:
    for at in [at for at in args if args[at] is not None]:
        args[at] = _checked(b, args, at, at in windows)
    told = {k: v for k, v in args.items() if v != ""}
    if isinstance(gives, str):
        b.append(name, [], told)
        return args[gives]
    return b.op(name, [gives(b, args)], **told)


def _checked(b: Build, args: Args, at: str, window: bool) -> object:
    """Check an argument as far as possible without known ranks."""
    given = args[at]
    if window and not _is(given, DistributedTensorType):
        no_window(b, given, at)
    if at in _HANDLES and not (_is(given, HandleType) and given.type.word == HANDLES[_HANDLES[at][0]]):
        no_handle(b, given, at)
    if at in _NUMBERS and not is_int(given):
        b.fail(TYPE, f"expected a whole number for '{at}'", at, got=_shown(given))
    if at in _DIMS:
        of = next(args[n] for n in _DIMS[at] if n in args)
        return b.dims(given, at, of.type.rank)
    return list(given) if isinstance(given, tuple) else given


def no_window(b: Build, given: object, at: str) -> NoReturn:
    b.fail(TYPE, f"expected a window of several ranks for '{at}'", at, got=_shown(given),
           help="declare the parameter as pld.DistributedTensor[[..], ..]")  # fmt: skip


def no_handle(b: Build, given: object, at: str) -> NoReturn:
    kind, help = _HANDLES[at]
    b.fail(TYPE, f"expected a {HANDLES[kind]} for '{at}'", at, got=_shown(given), help=help)


def on_the_host(b: Build) -> None:
    """Reject an operator of the host on a core."""
    if b.in_core:
        b.fail(PLACE, f"cannot use {b.operator} on a core: it runs on the host")


def sized(b: Build, size: object, dtype: DataType | None) -> None:
    """Check the size of memory: bytes without a type, or a shape with a type."""
    on_the_host(b)
    number = is_scalar(size)
    if number != (dtype is None):
        b.fail(ARGUMENTS, "unexpected dtype for a number of bytes" if number else "missing dtype for a shape",
               "dtype",
               help="pld.alloc_window_buffer([16, 64], dtype=pl.FP32)")  # fmt: skip
    extents(b, [size] if number else size, "size")


def extents(b: Build, given: object, at: str) -> Dims:
    """Return the extents of memory that every rank has, constants as numbers."""
    dims = b.dims(given, at)
    found = tuple(map(index.folded, dims))
    if not found or any(isinstance(n, int) and n <= 0 for n in found):
        b.fail(SHAPE, f"expected positive extents for '{at}'", at, got=list(found))
    return found


def _is(given: object, type: type) -> bool:
    return isinstance(given, Value) and isinstance(given.type, type)


def _shown(given: object) -> object:
    return given.type if isinstance(given, Value) else repr(given)


# ---- results of operators ----


def number(b: Build, args: Args) -> Type:
    return ScalarType(INDEX)


def memory(b: Build, args: Args) -> Type:
    sized(b, args["size"], args["dtype"])
    return HandleType(word=HANDLES[Ptr])


def who(b: Build, args: Args) -> Type:
    return HandleType(word=HANDLES[CommCtx])


def shared(b: Build, args: Args) -> Type:
    """Return the type of a window of memory that every rank has."""
    on_the_host(b)
    return DistributedTensorType(args["dtype"], extents(b, args["shape"], "shape"))


def loaded(b: Build, args: Args) -> Type:
    """Return the type of a tile with a part of a window."""
    target = args["target"].type
    valid = args["valid_shape"]
    wanted = None if not valid else tuple(b.dims(valid, "valid_shape", target.rank))
    return TileType(target.dtype, tuple(b.static(args["shape"], "shape")), wanted, "vec")
