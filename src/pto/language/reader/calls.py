"""Functions: reading a function for its arguments, and calls between functions."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...diag import Span, did_you_mean
from ..control import NoDep, Submission
from ..declare import Declared
from ..dtypes import INDEX, TASK_ID
from ..enums import ArgDirection
from ..ir import (
    FOREIGN,
    IN,
    INOUT,
    Dim,
    Dims,
    Function,
    Op,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    Type,
    Value,
    index,
    is_scalar,
    is_shaped,
    is_tensor,
    replaced,
    scalar_type,
    values_in,
)
from ..ir.build import Build
from ..operators.core import OPERATORS
from ..operators.ranks import TensorWindow, WindowRanks, window_of
from ..problems import CALL, PLACE, SHAPE, TYPE, Problem, fail
from ..programs.extern import extern
from ..types import Annotation, DynVar, written_type
from .exits import single_exit
from .expressions import EDGES
from .frame import POISON, Frame, ProgramReader, Quiet
from .prologue import check_attributes, check_extern, check_set_once
from .source import file_of, surroundings
from .statements import read_body
from .tasks import check_predicate, task_options

#: Kinds of functions that run on cores.
CORES = ("incore", "aic", "aiv")
#: Kinds of functions that submit tasks.
ORCHESTRATORS = ("orchestration", "host")
#: Keys of `attrs=` of a call that are options of its task.
_TASK_ATTRS = ("core_num", "sync_start")
_EDGES = "compiler_manual_dep_edges"  # dependencies besides the `deps` of the submission


def read_entry(unit: ProgramReader, declared: Declared, given: Sequence[object]) -> Function:
    """Read the entry function. `given`: a TensorType per array, whose extents are numbers or `DynVar`s, and
    the value of each number; a ScalarType for a number that calls pass."""
    unit.call, unit.submit = call_function, submit_function
    symbols: dict[DynVar, Value] = {}
    function = _function(declared)
    function.attrs["symbols"] = {}
    bound: dict[str, object] = {}
    for (name, _), arg in zip(declared.signature.parameters.items(), given, strict=True):
        said = declared.annotations.get(name)
        if isinstance(arg, TensorType):
            made = arg.replace(shape=tuple(_symbol(function, d, symbols) for d in arg.shape))
            direction = said.direction if said is not None else IN
            bound[name] = function.param(made, name, direction)
            number = sum(isinstance(p.value.type, TensorType) for p in function.params) - 1
            for axis, d in enumerate(arg.shape):
                if isinstance(d, DynVar):
                    # by extent: the tensor and the dimension that give it
                    function.attrs["symbols"].setdefault(d.name, (number, axis))
        elif isinstance(arg, ScalarType):
            bound[name] = function.param(arg, name, IN)
        else:
            bound[name] = arg
    for var, value in symbols.items():
        function.body.args.append(value)
        value.owner, value.index = function.body, len(function.body.args) - 1
        function.attrs.setdefault("hidden", []).append(var.name)
    unit.program.add(function)
    unit.program.entry = function
    _read(unit, declared, function, bound, {**_given_extents(declared, given), **symbols})
    return function


def _given_extents(declared: Declared, given: Sequence[object]) -> dict[DynVar, int]:
    """Return dynamic extents by their values from the arguments, as a body may name them."""
    pairs = zip(declared.signature.parameters, given, strict=True)
    return {
        d: n
        for name, arg in pairs
        if isinstance(arg, TensorType) and name in declared.annotations
        for d, n in zip(declared.annotations[name].shape or (), arg.shape, strict=False)
        if isinstance(d, DynVar) and isinstance(n, int)
    }


def read_exactly(unit: ProgramReader, declared: list[Declared]) -> None:
    """Read functions whose types are all annotated, as stages print them; the first is the entry."""
    unit.call, unit.submit = call_function, submit_function
    unit.exact = {}
    for d in declared:
        unit.exact[d] = unit.program.add(_as_said(d))
    unit.program.entry = next(iter(unit.exact.values()), None)
    for d in declared:
        _exact(unit, d)


def _promised(declared: Declared, of: Function) -> Function:
    """Return a function of an exact text with its annotated results, for callers of a function whose body is
    still being read, or is in Python.
    """
    types = of.attrs["results"] = [written_type(said) for said in declared.results or ()]
    function = Function(of.name, of.kind, of.loc)
    function.params, function.returns = of.params, [Value(t) for t in types]
    return function


def _exact(unit: ProgramReader, declared: Declared) -> Function:
    """Return a function of an exact text, read at its first use."""
    assert unit.exact is not None
    if declared not in unit.exact:  # defined beside the program
        unit.exact[declared] = unit.program.add(_as_said(declared))
    function = unit.exact[declared]
    if function.body.args or function.body.ops or declared in unit.active:
        return function
    bound: dict[str, Value] = {}
    for name in declared.signature.parameters:
        said = declared.annotations.get(name)
        if said is None or said.dtype is None:
            fail(TYPE, f"missing type of parameter '{name}' of {declared.name}", function.loc)
        bound[name] = function.param(ScalarType(INDEX), name, said.direction)
    symbols: dict[DynVar, Value] = {}
    function.attrs["symbols"] = {}

    def extent(d: DynVar | Dim) -> Dim:
        if not isinstance(d, DynVar):
            return d
        return bound[d.name] if d.name in bound else _symbol(function, d, symbols)

    for i, (name, value) in enumerate(bound.items()):
        written = written_type(declared.annotations[name])
        if isinstance(written, TensorType | TileType):
            for axis, d in enumerate(written.shape):
                if isinstance(d, DynVar) and d.name not in bound:
                    function.attrs["symbols"].setdefault(d.name, (i, axis))
            free = [d.name for d in written.valid or () if isinstance(d, DynVar) and d.name not in bound]
            function.attrs.setdefault("unsaid", []).extend(free)
            dims: dict[str, Dims] = {"shape": tuple(map(extent, written.shape))}
            if written.valid is not None:
                dims["valid"] = tuple(map(extent, written.valid))
            if isinstance(written, TensorType) and written.strides is not None:
                dims["strides"] = tuple(map(extent, written.strides))
            written = written.replace(**dims)
        value.type = written
    for value in symbols.values():
        function.body.args.append(value)
        value.owner, value.index = function.body, len(function.body.args) - 1
    if declared.kind != "python":
        _read(unit, declared, function, bound, symbols)
    return function


def _as_said(declared: Declared) -> Function:
    """Return a function of an exact text with its declared kind; a host function keeps it."""
    function = _function(declared)
    function.attrs["host"] = declared.kind in ("host", "python")
    if declared.kind == "python":  # a worker of the host, whose body is not read
        function.kind = "orchestration"
        _, node = file_of(declared.function)
        body = node.body[ast.get_docstring(node) is not None :]
        function.attrs["body"] = [line for part in body for line in ast.unparse(part).splitlines()]
    return function


def _function(declared: Declared) -> Function:
    file, node = file_of(declared.function)
    kind = "orchestration" if declared.kind == "host" else declared.kind
    function = Function(declared.name, kind, file.span(node).head)
    function.attrs.update(declared.options)
    if function.kind == "extern":
        check_extern(function, file, node)
    function.attrs["places"] = {a.arg: file.span(a) for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    return function


#: Operations only of orchestrations, and operations of orchestrations and cores.
def _symbol(function: Function, d: DynVar | Dim, symbols: dict[DynVar, Value]) -> Dim:
    if not isinstance(d, DynVar):
        return d
    return symbols.setdefault(d, Value(ScalarType(INDEX), d.name))


def _unsaid(function: Function, d: DynVar, symbols: dict[DynVar, Any]) -> Value:
    """Return a number of a text that no parameter's shape determines."""
    function.attrs.setdefault("unsaid", []).append(d.name)
    value = symbols[d] = Value(ScalarType(INDEX), d.name, function.body, len(function.body.args))
    function.body.args.append(value)
    return value


def _extent(b: Build, found: object, extents: Mapping[DynVar, Dim]) -> object:
    """Return the value of a dynamic extent that a body names; other objects unchanged."""
    if not isinstance(found, DynVar) or found in extents:
        return extents.get(found, found) if isinstance(found, DynVar) else found
    for var, n in extents.items():
        if var.base == found.base:
            base = b.scalar("floordiv", b.scalar("sub", n, var.plus), var.times)
            return b.scalar("add", b.scalar("mul", base, found.times), found.plus)
    return found


def _read(
    unit: ProgramReader, declared: Declared, function: Function, bound: Mapping[str, object],
    symbols: dict[DynVar, Any], ranks: dict[Value, WindowRanks] | None = None,
    limits: dict[Value, int] | None = None,
) -> None:  # fmt: skip
    """Read the body of a function whose parameters have been made."""
    file, node = file_of(declared.function)
    build = Build(function.body, unit.target)
    build.in_core = function.kind in CORES
    build.exact = unit.exact is not None
    build.world, build.buffers, build.uses = unit.world, unit.buffers, unit.uses
    build.ranks.update(ranks or {})
    build.limits.update(limits or {})
    outside = surroundings(declared.function, declared.enclosing)

    def find(name: str) -> object:
        found = _extent(build, outside(name), symbols)
        if not isinstance(found, DynVar) or unit.exact is None:
            return found
        return _unsaid(function, found, symbols)

    frame = Frame(unit, file, find, build, function)
    frame.is_host = declared.kind == "host"
    frame.names.update(bound)
    if declared.method:
        frame.names["self"] = declared.owner
    check_attributes(frame, declared, node)
    if declared.strict:
        check_set_once(frame, node)
    unit.active.append(declared)
    try:
        read_body(frame, single_exit(node.body), set())
    finally:
        unit.active.pop()
    function.returns = [v for v in frame.returned or [] if v is not POISON]


# ---- calls ----


def call_function(
    f: Frame, node: ast.Call, declared: Declared, args: list[object], kwargs: dict[str, object]
) -> object:
    """Read a call from one function of the language to another."""
    kwargs.pop("config", None)
    attrs = _attrs(f, node, kwargs.pop("attrs", None) or {})
    args = _without_waiting(f, node, args, attrs)
    said = {k: v for k, v in attrs.items() if k in _TASK_ATTRS}
    if attrs.get(_EDGES):
        said["deps"] = list(attrs[_EDGES])
    if "device" in kwargs and "device" not in declared.signature.parameters and f.task is None:
        device = kwargs.pop("device")
        if f.unit.exact is not None:
            said["device"] = device
        else:
            rank, args, kwargs = _of_a_rank(f, node, declared, args, kwargs, device)
            with f.build.on_rank(rank):
                return call_function(f, node, declared, args, {**kwargs, "attrs": attrs})
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
    for name, value in bound.arguments.items():
        if isinstance(value, Value) and value in f.build.ranks:  # a window gets its name in the call
            value.name = value.name or name
            f.build.ranks[value].whole.name = f.build.ranks[value].whole.name or name
    again = declared in f.unit.active
    if again and (f.unit.exact is None or declared.results is None):
        fail(
            CALL, f"{declared.name} calls itself", f.span(node), help="use a loop: recursion is not supported"
        )
    if f.unit.exact is not None:
        spliced = declared.kind == "inline" and f.task is None and not again
    else:
        spliced = declared.kind == "inline" or (declared.kind in ORCHESTRATORS and not f.build.in_core)
    if spliced:
        with _calling(f, node, declared, bound.arguments):
            return _spliced(f, declared, dict(bound.arguments))
    if f.build.in_core and f.unit.exact is None:
        fail(PLACE, f"cannot call {declared.name} ({declared.kind}) from a core", f.span(node),
             help="call it from an orchestration, or make it @pl.jit.inline")  # fmt: skip
    return _dispatched(f, node, declared, dict(bound.arguments), said)


def _attrs(f: Frame, node: ast.Call, attrs: object) -> Mapping[str, Any]:
    """Check `attrs=` of a call, as printed programs have it. A text may have marks for tools; a program that
    is to run must not have unknown keys."""
    if not isinstance(attrs, dict):
        fail(CALL, "expected a dictionary with string keys for attrs", f.span(node), got=repr(attrs))
    known = (*_TASK_ATTRS, _EDGES)
    odd = [k for k in attrs if k not in known and not str(k).startswith("arg_direction")]
    if odd and (f.unit.exact is None or odd[0] in EDGES):
        fail(CALL, f"unknown key '{odd[0]}' in attrs of a call", f.span(node),
             expected=f"arg_directions, {', '.join(known)}")  # fmt: skip
    return attrs


def _of_a_rank(
    f: Frame, node: ast.Call, declared: Declared, args: Sequence[object], kwargs: Mapping[str, object],
    device: object,
) -> tuple[int, list[object], dict[str, object]]:  # fmt: skip
    """Handle `device=` of a call by the host: windows become those of that rank."""
    rank = index.known(device) if is_scalar(device) else None
    if rank is None or not 0 <= rank < f.unit.world:
        fail(CALL, "expected a constant rank of the program", f.span(node), got=f"device={device}",
             expected=f"device=0 to {f.unit.world - 1}, by the devices of DistributedConfig")  # fmt: skip

    names = list(declared.signature.parameters)

    def local(name: str, a: object) -> Any:
        if not isinstance(a, TensorWindow):
            return a
        a.buffer.members.add(rank)
        said = declared.annotations.get(name)
        shape = [d for d in (said.shape if said is not None else None) or () if isinstance(d, int)]
        if said is not None and said.shape is not None and len(shape) == len(said.shape):
            if shape != list(a.shape) and math.prod(shape) == math.prod(a.shape):
                a.buffer.asked = tuple(shape)
        return window_of(f.build, a, rank)

    given = [local(name, a) for name, a in zip(names, args, strict=False)]
    return rank, [*given, *args[len(names) :]], {k: local(k, v) for k, v in kwargs.items()}


def _without_waiting(
    f: Frame, node: ast.Call, args: Sequence[object], attrs: Mapping[str, Any]
) -> list[object]:
    """Return the arguments that order nothing by `attrs=` of a call. Its other directions repeat those of the
    function."""
    free = [d is ArgDirection.NoDep for d in attrs.get("arg_directions", ())]
    if free and len(free) != len(args):
        fail(CALL, f"expected {len(args)} directions, one per argument", f.span(node), got=len(free))
    return [NoDep(a) if i < len(free) and free[i] and is_tensor(a) else a for i, a in enumerate(args)]


@contextmanager
def _calling(f: Frame, node: ast.Call, declared: Declared, bound: Mapping[str, object]) -> Iterator[None]:
    """Keep a call as a note for problems in the function that it calls."""

    def note() -> tuple[str, Span | None]:
        arrays = [f"{n}: {v.type}" for n, v in bound.items() if is_shaped(v)]
        return f"called here: {declared.name}({', '.join(arrays)})", f.span(node)

    f.unit.callers.append(note)
    try:
        yield
    finally:
        f.unit.callers.pop()


def _plain(declared: Declared) -> str:
    return "(" + ", ".join(declared.signature.parameters) + ")"


def _spliced(f: Frame, declared: Declared, bound: Mapping[str, Any]) -> object:
    """Inline the body of an inline function, or of another orchestration, at its call."""
    file, node = file_of(declared.function)
    outside = surroundings(declared.function, declared.enclosing)
    extents: dict[DynVar, Dim] = {
        d: n
        for name, said in declared.annotations.items()
        if isinstance(bound.get(name), Value) and isinstance(bound[name].type, ShapedType)
        for d, n in zip(said.shape or (), bound[name].type.shape, strict=False)
        if isinstance(d, DynVar)
    }

    def find(name: str) -> object:
        return _extent(f.build, outside(name), extents)

    inner = Frame(f.unit, file, find, f.build, f.function)
    inner.is_host = declared.kind == "host"
    inner.names.update(bound)
    if declared.method:
        inner.names["self"] = declared.owner
    for name, said in declared.annotations.items():
        try:
            check_argument(declared, name, said, bound.get(name), f.build.place)
        except Problem as problem:
            _suspect(f, problem, said, bound.get(name))
    f.unit.active.append(declared)
    try:
        read_body(inner, single_exit(node.body), set())
    finally:
        f.unit.active.pop()
    values = inner.returned
    if any(v is POISON for v in values or ()):
        raise Quiet
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def _dispatched(
    f: Frame, node: ast.Call, declared: Declared, bound: dict[str, object], attrs: dict[str, Any]
) -> object:
    """Submit a task: read the function for the argument types, and call it with the values."""
    place = f.span(node)
    free = [v.value for v in bound.values() if isinstance(v, NoDep)]
    bound = {n: v.value if isinstance(v, NoDep) else v for n, v in bound.items()}
    if f.unit.exact is not None:
        callee = _exact(f.unit, declared)
        if declared in f.unit.active or declared.kind == "python":
            callee = _promised(declared, callee)
        return _called(f, callee, list(bound.values()), [], free, place, attrs)
    for name, value in bound.items():
        said = declared.annotations.get(name)
        if said is not None:
            check_argument(declared, name, said, value, place)
        if not is_tensor(value) and not is_scalar(value):
            got = value.type if isinstance(value, Value) else repr(value)
            fail(CALL, f"expected a tensor or a number for '{name}' of {declared.name}", place, got=got)
    ranks = {n: f.build.ranks[v] for n, v in bound.items() if isinstance(v, Value) and v in f.build.ranks}
    bound.update({f"{n}_of_all": r.whole for n, r in ranks.items()})
    free += [r.whole for r in ranks.values()]  # signals order tasks of other ranks
    whose = tuple((n, r.rank, r.count, r.rows) for n, r in ranks.items())
    limits = {n: _limits(f.build, v) for n, v in bound.items()}
    keys = tuple((_key(declared, n, v), limits[n]) for n, v in bound.items())
    key = (declared, keys, whose)
    callee = f.unit.read.get(key)
    if callee is None:
        with _calling(f, node, declared, bound):
            callee = f.unit.read[key] = _specialised(f.unit, declared, bound, ranks, limits)
    return _called(f, callee, list(bound.values()), _hidden(bound, callee), free, place, attrs)


def _called(
    f: Frame, callee: Function, values: Sequence[object], hidden: Sequence[object], free: list[Any],
    place: Span, attrs: dict[str, Any],
) -> object:  # fmt: skip
    """Emit the call and return its results. A task with options is a result, too."""
    params = [p.value for p in callee.params]
    results = [v.type for v in values_in(callee.returns) if v not in params]
    options = {**attrs, **(f.task or {})}
    if attrs.get("deps") and options["deps"] is not attrs["deps"]:
        options["deps"] = [*attrs["deps"], *(options["deps"] or ())]
    said = task_options(f, options, place)
    unasked = [*free, *(said.get("no_dep_args") or ())]
    check_predicate(f, said, [v for v in values if not any(v is u for u in unasked)], place)
    said = {k: v for k, v in said.items() if v not in (None, [], False)}
    if f.unit.exact is not None and "device" in attrs:
        said["device"] = attrs["device"]
    if f.build.dispatch is not None:
        said["dispatch"] = f.build.dispatch
    if free:
        said["no_dep_args"] = [*dict.fromkeys([*said.get("no_dep_args", ()), *free])]
    if "core_num" in said:
        callee.attrs["spmd"] = True
    task = [] if f.task is None else [ScalarType(TASK_ID)]
    op = Op("call", {"callee": callee, "args": [*values, *hidden], **said}, [*results, *task], place)
    f.build.block.append(op)
    made = iter(op.results)
    out = replaced(callee.returns, lambda v: values[params.index(v)] if v in params else next(made))
    if not out:
        written = [v for v, p in zip(values, callee.params, strict=False) if p.direction != IN]
        out = written[: callee.attrs.get("gives")] if len(written) == 1 or callee.kind in FOREIGN else []
    return None if not out else out[0] if len(out) == 1 else tuple(out)


def submit_function(f: Frame, node: ast.Call, given: Submission) -> object:
    """Read `pl.submit`: return the function's results and its task."""
    place = f.span(node)
    declared = getattr(given.function, "declared", None)
    no_tasks = () if f.unit.exact is not None else ("inline", *ORCHESTRATORS)
    if declared is None or declared.kind in no_tasks:
        fail(
            CALL,
            "expected a function of the language for pl.submit",
            place,
            got=getattr(declared, "name", repr(given.function)),
            help="decorate it with @pl.jit.incore",
        )
    if f.build.in_core and f.unit.exact is None:
        fail(PLACE, "cannot submit a task from a core", place)
    before, f.task = f.task, given.options
    try:
        out = call_function(
            f, node, declared, [*given.args, *_left_out(f, declared, given)], dict(given.kwargs)
        )
    finally:
        f.task = before
    task = f.build.block.ops[-1].results[-1]
    return task if out is None else (*out, task) if isinstance(out, tuple) else (out, task)


def _left_out(f: Frame, declared: Declared, given: Submission) -> list[Value]:
    """Return tensors for trailing outputs that a submission leaves out."""
    made: list[Value] = []
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


def _specialised(
    unit: ProgramReader, declared: Declared, bound: Mapping[str, object], ranks: Mapping[str, WindowRanks],
    limits: Mapping[str, tuple[int | None, ...]],
) -> Function:  # fmt: skip
    """Return a function for the types of a call; dynamic extents become number parameters."""
    function = _function(declared)
    symbols: dict[object, Value] = {}
    most: dict[Value, int] = {}
    inner: dict[str, Value] = {}
    for name, value in bound.items():
        said = declared.annotations.get(name)
        type = _param_type(value, said)
        if isinstance(type, TensorType):
            strides = None if type.strides is None else _own(type.strides, symbols)
            type = type.replace(shape=_own(type.shape, symbols), valid=None, strides=strides)
            for d, n in zip(type.shape, limits[name], strict=True):
                if isinstance(d, Value) and n is not None:
                    most[d] = min(n, most.get(d, n))
        remote = name in ranks or name.removesuffix("_of_all") in ranks
        inner[name] = function.param(
            type, name, INOUT if remote else said.direction if said is not None else IN
        )
    # other ranks write these windows, too
    function.attrs["windows"] = {name for n in ranks for name in (n, f"{n}_of_all")}
    whose = {inner[n]: r.replace(whole=inner.pop(f"{n}_of_all")) for n, r in ranks.items()}
    for n, value in enumerate(symbols.values()):
        value.name = f"n{n}"
        function.body.args.append(value)
        value.owner, value.index = function.body, len(function.body.args) - 1
    unit.program.add(function)
    extents = {
        d: v
        for n, a in declared.annotations.items()
        if a.shape is not None and n in inner
        for d, v in zip(a.shape, inner[n].type.shape, strict=False)
        if isinstance(d, DynVar)
    }
    if function.kind == "python":
        function.attrs["gives"] = _said_results(declared)
        function.attrs.update(
            python=declared.function, unbound=declared.requires_runtime_binding, names=tuple(inner)
        )
        return function
    if function.kind == "extern":
        function.attrs["gives"] = _said_results(declared)
        extern(function, os.path.dirname(declared.function.__code__.co_filename))
        return function
    _read(unit, declared, function, inner, extents, whose, most)
    return function


def _limits(build: Build, value: object) -> tuple[int | None, ...]:
    """Return upper bounds of the dimensions of a tensor."""
    return tuple(build.most(value, i) for i in range(value.type.rank)) if is_tensor(value) else ()


def _said_results(declared: Declared) -> int | None:
    """Return the number of written tensors, from the first, that a function's annotation returns; None:
    all."""
    _, node = file_of(declared.function)
    said = node.returns
    if said is None or (isinstance(said, ast.Constant) and said.value is None):
        return None
    several = isinstance(said, ast.Subscript) and ast.unparse(said.value).lower().endswith("tuple")
    parts = said.slice if several else None  # pyright: ignore[reportAttributeAccessIssue]
    return len(parts.elts) if isinstance(parts, ast.Tuple) else 1


def _hidden(bound: Mapping[str, object], callee: Function) -> list[Dim]:
    """Return the arguments of a call for dynamic extents of its arrays, in order of first use."""
    found: dict[object, Dim] = {}
    for value in bound.values():
        if isinstance(value, Value) and isinstance(value.type, TensorType):
            for d in (*value.type.shape, *(value.type.strides or ())):
                if index.known(d) is None:
                    found.setdefault(_dim_key(d), d)
    return list(found.values())


def _own(dims: Dims, symbols: dict[object, Value]) -> Dims:
    out: list[Dim] = []
    for d in dims:
        known = index.known(d)
        out.append(known if known is not None else symbols.setdefault(_dim_key(d), Value(ScalarType(INDEX))))
    return tuple(out)


def _dim_key(d: Dim) -> tuple[int, frozenset[tuple[Hashable, int]]]:
    constant, terms = index.affine(d)
    return constant, frozenset(terms.items())


def _param_type(value: object, said: Annotation | None) -> Type:
    if isinstance(value, Value):
        if isinstance(value.type, ScalarType) and said is not None and said.dtype is not None:
            return ScalarType(said.dtype)
        if isinstance(value.type, TensorType) and said is not None and said.layout != "ND":
            return value.type.replace(layout=said.layout)
        return value.type
    dtype = said.dtype if said is not None and said.dtype is not None else scalar_type(value)
    assert dtype is not None
    return ScalarType(dtype)


def _key(declared: Declared, name: str, value: object) -> object:
    """Return the key of an argument: all facts about it that affect the reading of the function."""
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
        return type.dtype, dims, strides, type.layout
    return type


def _suspect(f: Frame, problem: Problem, said: Annotation, value: Any) -> None:
    """Report a mismatch of an inlined function's annotated extents as a warning, since the argument's extents
    are used."""
    if problem.diagnostic.code != SHAPE or said.shape is None or len(said.shape) != value.type.rank:
        raise problem
    problem.diagnostic.severity = "warning"
    f.unit.report(problem)


def check_argument(
    declared: Declared, name: str, said: Annotation, value: object, where: Span | None
) -> None:
    """Check that an argument matches the annotation of its parameter."""
    if said.kind in ("tensor", "tile"):
        wanted = TensorType if said.kind == "tensor" else TileType
        if (
            not isinstance(value, Value)
            or not isinstance(value.type, ShapedType)
            or (said.kind == "tile" and not isinstance(value.type, wanted))
        ):
            got = value.type if isinstance(value, Value) else repr(value)
            fail(CALL, f"expected a {said.kind} for '{name}' of {declared.name}", where, got=got,
                 help="" if isinstance(value, Value) else "pass an array, as a parameter")  # fmt: skip
        if said.dtype is not None and value.type.dtype != said.dtype:
            fail(TYPE, f"expected {said.dtype.name} for '{name}' of {declared.name}", where, got=value.type)
        if said.shape is not None:
            fits = len(said.shape) == value.type.rank and all(
                isinstance(want, DynVar) or not isinstance(want, int) or index.known(have) in (None, want)
                for want, have in zip(said.shape, value.type.shape, strict=True)
            )
            if not fits:
                fail(SHAPE, f"shape of '{name}' of {declared.name} does not match", where,
                     expected=list(said.shape), got=value.type)  # fmt: skip
    elif said.kind == "scalar" and not is_scalar(value):
        got = getattr(value, "type", repr(value))
        fail(CALL, f"expected a number for '{name}' of {declared.name}", where, got=got)
