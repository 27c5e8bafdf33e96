"""Functions: reading one for the arguments it gets, and calls from one to another."""

from __future__ import annotations

import ast
import os
from typing import Any

from ...diag import Span, did_you_mean
from .. import index
from ..build import Build
from ..declare import Declared
from ..dtypes import INDEX, TASK_ID
from ..extern import extern
from ..forms import NoDep, Submission
from ..ir import (
    IN,
    Function,
    Op,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    Type,
    Value,
    is_scalar,
    is_tensor,
    scalar_type,
)
from ..operators.core import OPERATORS
from ..problems import CALL, PLACE, SHAPE, TYPE, fail
from ..types import Annotation, DynVar
from .frame import POISON, Frame, Quiet, Unit, surroundings
from .source import file_of
from .statements import read_body
from .tasks import task_options

#: Kinds whose bodies are work of a core.
CORES = ("incore", "aic", "aiv")


def read_entry(unit: Unit, declared: Declared, given: list[Any]) -> Function:
    """Read the function that a program begins with. `given`: a TensorType per array, whose extents are numbers
    or `DynVar`s, and the value of each number."""
    unit.call = call_function
    unit.submit = submit_function
    symbols: dict[str, Value] = {}
    function = _function(declared)
    function.attrs["symbols"] = {}
    bound: dict[str, Any] = {}
    for (name, _), arg in zip(declared.signature.parameters.items(), given, strict=True):
        said = declared.annotations.get(name)
        if isinstance(arg, TensorType):
            made = arg.replace(shape=tuple(_symbol(function, d, symbols) for d in arg.shape))
            direction = said.direction if said is not None else IN
            bound[name] = function.param(made, name, direction)
            for axis, d in enumerate(arg.shape):
                if isinstance(d, DynVar):
                    function.attrs["symbols"].setdefault(d.name, (len(function.params) - 1, axis))
        else:
            bound[name] = arg
    for name, value in symbols.items():
        function.body.args.append(value)
        value.owner, value.index = function.body, len(function.body.args) - 1
        function.attrs.setdefault("hidden", []).append(name)
    unit.program.add(function)
    unit.program.entry = function
    _read(unit, declared, function, bound, symbols)
    return function


def _function(declared: Declared) -> Function:
    file, node = file_of(declared.function)
    kind = "orchestration" if declared.kind in ("opaque", "host") else declared.kind
    function = Function(declared.name, kind, file.span(node).head)
    function.attrs.update(declared.options)
    return function


def _symbol(function: Function, d: Any, symbols: dict[str, Value]) -> Any:
    if not isinstance(d, DynVar):
        return d
    return symbols.setdefault(d.name, Value(ScalarType(INDEX), d.name))


def _read(
    unit: Unit, declared: Declared, function: Function, bound: dict[str, Any], symbols: dict[str, Value]
) -> None:
    """Read the body of a function whose parameters are there."""
    file, node = file_of(declared.function)
    build = Build(function.body, unit.target)
    build.in_core = function.kind in CORES
    outside = surroundings(declared.function, declared.enclosing)

    def find(name: str) -> Any:
        found = outside(name)
        return symbols[found.name] if isinstance(found, DynVar) and found.name in symbols else found

    frame = Frame(unit, file, find, build, function)
    frame.names.update(bound)
    if declared.method:
        frame.names["self"] = declared.owner
    unit.active.append(declared)
    try:
        read_body(frame, node.body, set())
    finally:
        unit.active.pop()
    function.returns = [v for v in frame.returned or [] if v is not POISON]


# ---- calls ----


def call_function(
    f: Frame, node: ast.Call, declared: Declared, args: list[Any], kwargs: dict[str, Any]
) -> Any:
    """A call of one function of the language by another."""
    kwargs.pop("config", None)
    try:
        bound = declared.signature.bind(*args, **kwargs)
    except TypeError as e:
        help = "; ".join(filter(None, (did_you_mean(k, declared.signature.parameters) for k in kwargs)))
        fail(
            CALL,
            f"{declared.name}: {e}",
            f.span(node),
            expected=f"{declared.name}{_plain(declared)}",
            help=help,
        )
    bound.apply_defaults()
    if any(v is POISON for v in bound.arguments.values()):
        raise Quiet
    if declared in f.unit.active:
        fail(CALL, f"{declared.name} calls itself", f.span(node), help="loops repeat, functions do not")
    if declared.kind == "inline":
        return _spliced(f, declared, dict(bound.arguments))
    if f.build.in_core:
        fail(PLACE, f"{declared.name} is work of {declared.kind}, and is called from a core", f.span(node),
             help="call it from an orchestration, or make it @pl.jit.inline")  # fmt: skip
    return _dispatched(f, node, declared, dict(bound.arguments))


def _plain(declared: Declared) -> str:
    return "(" + ", ".join(declared.signature.parameters) + ")"


def _spliced(f: Frame, declared: Declared, bound: dict[str, Any]) -> Any:
    """The body of an inline function in place of its call."""
    file, node = file_of(declared.function)
    inner = Frame(f.unit, file, surroundings(declared.function, declared.enclosing), f.build, f.function)
    inner.names.update(bound)
    if declared.method:
        inner.names["self"] = declared.owner
    for name, said in declared.annotations.items():
        check_argument(declared, name, said, bound.get(name), f.build.place)
    f.unit.active.append(declared)
    try:
        read_body(inner, node.body, set())
    finally:
        f.unit.active.pop()
    values = inner.returned
    if any(v is POISON for v in values or ()):
        raise Quiet
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def _dispatched(f: Frame, node: ast.Call, declared: Declared, bound: dict[str, Any]) -> Any:
    """A task: the function is read for the types it gets, and called with the values."""
    place = f.span(node)
    free = [v.value for v in bound.values() if isinstance(v, NoDep)]
    bound = {n: v.value if isinstance(v, NoDep) else v for n, v in bound.items()}
    for name, value in bound.items():
        said = declared.annotations.get(name)
        if said is not None:
            check_argument(declared, name, said, value, place)
        if not is_tensor(value) and not is_scalar(value):
            got = value.type if isinstance(value, Value) else repr(value)
            fail(CALL, f"'{name}' of {declared.name} is a tensor or a number", place, got=got)
    key = (declared, tuple(_key(declared, n, v) for n, v in bound.items()))
    callee = f.unit.read.get(key)
    if callee is None:
        callee = f.unit.read[key] = _specialised(f.unit, declared, bound)
    hidden = _hidden(bound, callee)
    results = [
        v for v in callee.returns if isinstance(v, Value) and v not in [p.value for p in callee.params]
    ]
    options = {k: v for k, v in task_options(f, f.task or {}, place).items() if v}
    if free:
        options["no_dep_args"] = [*options.get("no_dep_args", ()), *free]
    args = {"callee": callee, "args": [*bound.values(), *hidden], **options}
    op = Op("call", args, [v.type for v in results], place)
    if f.task is not None:
        if "core_num" in f.task:
            callee.attrs["spmd"] = True
        op.results.append(Value(ScalarType(TASK_ID), "", op, len(op.results)))
    f.build.block.append(op)
    made = iter(op.results)
    values = list(bound.values())
    params = [p.value for p in callee.params]
    out = [values[params.index(v)] if v in params else next(made) for v in callee.returns]
    if not out:
        written = [v for v, p in zip(values, callee.params, strict=False) if p.direction != IN]
        out = written if len(written) == 1 or callee.kind == "extern" else []
    return None if not out else out[0] if len(out) == 1 else tuple(out)


def submit_function(f: Frame, node: ast.Call, given: Submission) -> Any:
    """`pl.submit`: what the function returns, and its task."""
    place = f.span(node)
    declared = getattr(given.function, "declared", None)
    if declared is None or declared.kind == "inline":
        got = getattr(declared, "name", repr(given.function))
        fail(CALL, "a task is one of a function of a core", place, got=got,
             help="decorate it with @pl.jit.incore")  # fmt: skip
    if f.build.in_core:
        fail(PLACE, "tasks are the orchestrator's, and this is a core", place)
    before, f.task = f.task, given.options
    try:
        out = call_function(
            f, node, declared, [*given.args, *_left_out(f, declared, given)], dict(given.kwargs)
        )
    finally:
        f.task = before
    task = f.build.block.ops[-1].results[-1]
    return task if out is None else (*out, task) if isinstance(out, tuple) else (out, task)


def _left_out(f: Frame, declared: Declared, given: Submission) -> list[Any]:
    """Outputs at the end that a submission does not name: tensors that are made for them."""
    made: list[Any] = []
    for name in list(declared.signature.parameters)[len(given.args) :]:
        said = declared.annotations.get(name)
        if (
            name in given.kwargs
            or said is None
            or said.direction == IN
            or said.shape is None
            or said.dtype is None
        ):
            break
        made.append(OPERATORS["create_tensor"].function(f.build, list(said.shape), said.dtype))
        made[-1].name = name
    return made


def _specialised(unit: Unit, declared: Declared, bound: dict[str, Any]) -> Function:
    """A function for the types of a call; extents that are not known become numbers it is given."""
    function = _function(declared)
    symbols: dict[Any, Value] = {}
    inner: dict[str, Any] = {}
    for name, value in bound.items():
        said = declared.annotations.get(name)
        type = _param_type(value, said)
        if isinstance(type, TensorType):
            type = type.replace(shape=_own(type.shape, symbols), valid=None,
                                strides=None if type.strides is None else _own(type.strides, symbols))  # fmt: skip
        inner[name] = function.param(type, name, said.direction if said is not None else IN)
    for n, value in enumerate(symbols.values()):
        value.name = f"n{n}"
        function.body.args.append(value)
        value.owner, value.index = function.body, len(function.body.args) - 1
    unit.program.add(function)
    by_name = {d.name: v for n, a in declared.annotations.items() if a.shape is not None and n in inner
               for d, v in zip(a.shape, inner[n].type.shape, strict=False) if isinstance(d, DynVar)}  # fmt: skip
    if function.kind == "extern":
        extern(function, os.path.dirname(declared.function.__code__.co_filename))
        return function
    _read(unit, declared, function, inner, by_name)
    return function


def _hidden(bound: dict[str, Any], callee: Function) -> list[Any]:
    """What a call passes for extents that the callee does not know: in the order in which it met them."""
    found: dict[Any, Any] = {}
    for value in bound.values():
        if isinstance(value, Value) and isinstance(value.type, TensorType):
            for d in (*value.type.shape, *(value.type.strides or ())):
                if index.known(d) is None:
                    found.setdefault(_dim_key(d), d)
    return list(found.values())


def _own(dims: tuple[Any, ...], symbols: dict[Any, Value]) -> tuple[Any, ...]:
    out: list[Any] = []
    for d in dims:
        known = index.known(d)
        out.append(known if known is not None else symbols.setdefault(_dim_key(d), Value(ScalarType(INDEX))))
    return tuple(out)


def _dim_key(d: Any) -> Any:
    constant, terms = index.affine(d)
    return constant, frozenset(terms.items())


def _param_type(value: Any, said: Annotation | None) -> Type:
    if isinstance(value, Value):
        if isinstance(value.type, ScalarType) and said is not None and said.dtype is not None:
            return ScalarType(said.dtype)
        return value.type
    dtype = said.dtype if said is not None and said.dtype is not None else scalar_type(value)
    assert dtype is not None
    return ScalarType(dtype)


def _key(declared: Declared, name: str, value: Any) -> Any:
    """What of an argument decides how the function is read."""
    type = _param_type(value, declared.annotations.get(name))
    if isinstance(type, TensorType):
        dims = tuple(index.known(d) if index.known(d) is not None else ("?", _dim_key(d)) for d in type.shape)
        strides = (
            None
            if type.strides is None
            else tuple(
                index.known(d) if index.known(d) is not None else ("?", _dim_key(d)) for d in type.strides
            )
        )
        return type.dtype, dims, strides
    return type


def check_argument(declared: Declared, name: str, said: Annotation, value: Any, where: Span | None) -> None:
    """Whether an argument is what its parameter says."""
    if said.kind in ("tensor", "tile"):
        wanted: Any = TensorType if said.kind == "tensor" else TileType
        if (
            not isinstance(value, Value)
            or not isinstance(value.type, ShapedType)
            or (said.kind == "tile" and not isinstance(value.type, wanted))
        ):
            got = value.type if isinstance(value, Value) else repr(value)
            fail(CALL, f"'{name}' of {declared.name} is a {said.kind}", where, got=got)
        if said.dtype is not None and value.type.dtype != said.dtype:
            fail(TYPE, f"'{name}' of {declared.name} holds {said.dtype.name}", where, got=value.type)
        if said.shape is not None:
            fits = len(said.shape) == value.type.rank and all(
                isinstance(want, DynVar) or not isinstance(want, int) or index.known(have) in (None, want)
                for want, have in zip(said.shape, value.type.shape, strict=True)
            )
            if not fits:
                fail(SHAPE, f"'{name}' of {declared.name} has another shape", where,
                     expected=list(said.shape), got=value.type)  # fmt: skip
    elif said.kind == "scalar" and not is_scalar(value):
        fail(CALL, f"'{name}' of {declared.name} is a number", where, got=getattr(value, "type", repr(value)))
