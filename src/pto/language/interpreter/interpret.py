"""Execute bodies as ordinary Python over arrays: `k.interpret(a, b, out)`.

Loops iterate, regions are entered, and `print`, `pdb` and breakpoints work. An operator checks its arguments
with the function that also checks a program, then computes at once: operators that move or name data use
NumPy; the others run as a kernel of their own (oneop.py), so that the numbers match the engines.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakSet

import numpy as np

from ...diag import DiagnosticError, Span
from ...engine.elements import Array
from ...isa.profiles import Profile
from ..advice import in_language_terms
from ..control import ControlRegion, Loop, Submission, While
from ..declare import Declared
from ..dtypes import BOOL, FP32, INDEX, TASK_ID, DataType
from ..enums import AtomicType, SplitMode
from ..ir import (
    IN,
    Block,
    Function,
    Op,
    ScalarType,
    TensorType,
    TileType,
    Value,
    index,
    replaced,
    retyped,
    values_in,
)
from ..ir.build import Build
from ..operators.core import OPERATORS, Operator
from ..operators.infix import ASSIGNED, INFIX, OF_MASKS
from ..operators.memory import SCALES
from ..problems import CALL, PLACE, SHAPE, TYPE, UNSUPPORTED, Problem, fail
from ..programs import arguments
from ..programs.oneop import compute
from ..reader import expressions
from ..reader.calls import CORES, check_argument
from ..reader.hints import OPERATORS_OF_ARRAYS
from ..reader.source import PythonFile, file_at
from ..types import DynVar, annotation
from .current import current
from .executable import executable
from .handles import (
    Held,
    HeldArray,
    Integer,
    Real,
    Truth,
    boxed,
    computed,
    converted,
    is_typed,
    number,
    poison,
    storage,
    whole,
)

_NEW = Operator("[]", expressions.with_new)
#: The cube takes an operand of up to this number of bytes in one step.
_ONE_STEP = 16 << 10
_PACKAGE = str(Path(__file__).parents[2])


def interpret(
    declared: Declared, args: tuple[object, ...], kwargs: dict[str, object], profile: Profile
) -> object:
    """Execute a function on arrays and numbers; arrays are used in place."""
    given = arguments.bound(declared, args, kwargs)
    types = arguments.types_of(declared, given)
    symbols: dict[str, object] = {}
    bound: dict[str, object] = {}
    originals: dict[int, object] = {}
    for (name, value), type in zip(given.items(), types, strict=True):
        bound[name] = type
        if isinstance(type, TensorType):
            data = arguments.as_numpy(value)
            dims = zip(type.shape, data.shape, strict=True)
            symbols.update({d.base: number(d.solved(n), INDEX) for d, n in dims if isinstance(d, DynVar)})
            own = type.replace(shape=tuple(map(int, data.shape)))
            held = Held(data.view(storage(type.dtype)), own, True, name=name)
            bound[name] = held
            originals[id(held)] = value
    it = Interpreter(profile)
    token = current.set(it)
    try:
        it.in_core = declared.kind in CORES
        out = it.execute(declared, bound, symbols)
    finally:
        current.reset(token)

    def plain(v: object) -> object:
        if isinstance(v, tuple):
            return tuple(plain(x) for x in v)
        return originals.get(id(v), v.data) if isinstance(v, Held) else v

    return plain(out)


class Interpreter:
    """The state of an executing body, which operators, loops and regions use."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.in_core = False
        self.block, self.blocks_in_all, self.subblock = 0, 1, 0
        self.tasks = 0
        self.active: list[Declared] = []
        self.split: SplitMode | None = None  # the split mode of vector work
        self._gathered: dict[str, Held] = {}
        self._carried: list[tuple[object, ...]] = []  # per open loop with init_values
        self._ended: tuple[object, ...] = ()
        self._regions: list[tuple[bool, WeakSet[Held]]] = []

    # ---- functions ----

    def execute(
        self, declared: Declared, bound: Mapping[str, object], symbols: Mapping[str, object]
    ) -> object:
        if declared in self.active:
            self.fail(CALL, f"{declared.name} calls itself", help="use a loop: recursion is not supported")
        function = executable(declared, symbols)
        self.active.append(declared)
        try:
            return function(*([declared.owner] if declared.method else []), *bound.values())
        finally:
            self.active.pop()

    def call(self, declared: Declared, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """Call one function of the language from another."""
        kwargs.pop("config", None)
        kwargs = {k: v for k, v in kwargs.items() if k != "attrs"}  # attributes only order tasks
        try:
            found = declared.signature.bind(*args, **kwargs)
        except TypeError as e:
            return self.fail(CALL, f"{declared.name}: {e}",
                      expected=f"{declared.name}({', '.join(declared.signature.parameters)})")  # fmt: skip
        found.apply_defaults()
        bound = dict(found.arguments)
        for name, said in declared.annotations.items():
            shown = _shown(bound.get(name))
            if declared.kind == "inline" and len(said.shape or ()) == getattr(
                getattr(shown, "type", None), "rank", -1
            ):
                said = said.replace(shape=None)  # the argument decides the extents
            self.checked(
                lambda said=said, name=name, shown=shown: check_argument(declared, name, said, shown, None)
            )
        symbols = self._symbols(declared, bound)
        if declared.kind == "inline":
            return self.execute(declared, bound, symbols)
        if self.in_core:
            self.fail(PLACE, f"cannot call {declared.name} ({declared.kind}) from a core",
                      help="call it from an orchestration, or make it @pl.jit.inline")  # fmt: skip
        if declared.kind == "extern":
            self.fail(UNSUPPORTED, f"cannot interpret {declared.name}: it is a C++ kernel")
        if declared.kind == "python":
            self.fail(UNSUPPORTED, f"cannot interpret {declared.name}: it is a task in Python")
        return self._dispatched(declared, bound, symbols)

    def submit(self, given: Submission) -> tuple[object, ...]:
        """Run `pl.submit`: return the function's results and its task."""
        declared: Any = getattr(given.function, "declared", None)
        if declared is None:
            return self.fail(
                CALL, "expected a function of the language for pl.submit", got=repr(given.function)
            )
        args = list(given.args)
        for name in list(declared.signature.parameters)[len(args) :]:
            said = declared.annotations.get(name)
            if name in given.kwargs or said is None or said.direction == IN or said.shape is None:
                break
            args.append(self.named("create_tensor", list(said.shape), said.dtype))
        predicate, count = given.options.get("predicate"), given.options.get("core_num")
        before = self.block, self.blocks_in_all
        out: object = None
        try:
            for self.block in range(1 if count is None else int(count)):
                self.blocks_in_all = 1 if count is None else int(count)
                if predicate is None or predicate:
                    out = self.call(declared, tuple(args), dict(given.kwargs))
        finally:
            self.block, self.blocks_in_all = before
        if out is None:
            bound = declared.signature.bind(*args, **given.kwargs).arguments
            out = tuple(v for n, v in bound.items() if n in declared.annotations
                        and declared.annotations[n].direction != IN)  # fmt: skip
        self.tasks += 1
        return (*(out if isinstance(out, tuple) else (out,)), Integer(self.tasks - 1, TASK_ID))

    def _task_dummy(self, op: Op, **_: object) -> Integer:
        self.tasks += 1
        return Integer(self.tasks - 1, TASK_ID)

    def _task_invalid(self, op: Op) -> None:
        return None

    def _array_copy(self, op: Op, array: HeldArray) -> HeldArray:
        made = HeldArray(array.type)
        made.items = list(array.items)
        return made

    def _dispatched(self, declared: Declared, bound: dict[str, object], symbols: Mapping[str, Any]) -> object:
        """Run a task: tensor parameters are arrays in memory, numbers get their types."""
        inner: dict[str, object] = {}
        for name, value in bound.items():
            said = declared.annotations.get(name)
            if isinstance(value, Held):
                inner[name] = Held(value.data, value.type.replace(valid=None), True, name=name)
            elif isinstance(value, int | float):
                has = value.dtype if is_typed(value) else _literal(value)  # type: ignore[union-attr]
                inner[name] = number(
                    value, said.dtype if said is not None and said.dtype is not None else has
                )
            else:
                self.fail(
                    CALL, f"expected a tensor or a number for '{name}' of {declared.name}", got=repr(value)
                )
        was = self.in_core
        self._open(declared.kind in CORES)
        try:
            out = self.execute(declared, inner, symbols)
        finally:
            self._close()
            self.in_core = was
        self.tasks += 1
        outer = {id(inner[n]): bound[n] for n in bound}

        def back(v: object) -> object:
            return tuple(map(back, v)) if isinstance(v, tuple) else outer.get(id(v), v)

        if out is None:
            written = [bound[n] for n, a in declared.annotations.items() if a.direction != IN]
            return written[0] if len(written) == 1 else None
        return back(out)

    def _symbols(self, declared: Declared, bound: Mapping[str, Any]) -> dict[str, Integer | Real | Truth]:
        return {
            d.base: number(d.solved(n), INDEX)
            for name, said in declared.annotations.items()
            if said.shape is not None and isinstance(bound.get(name), Held)
            for d, n in zip(said.shape, bound[name].shape, strict=False)
            if isinstance(d, DynVar)
        }

    # ---- operators ----

    def named(self, name: str, *args: object, **kwargs: object) -> Any:
        return self.apply(OPERATORS[name], args, kwargs)

    def on_arrays(self, name: str, *args: object) -> object:
        """Apply a Python operator to arrays."""
        refused = name in OF_MASKS and not all(isinstance(a, Held) and a.dtype == BOOL for a in args)
        if refused or name not in INFIX:
            self.fail(TYPE, "unsupported operator on arrays", help=OPERATORS_OF_ARRAYS.get(name, ""))
        return self.apply(INFIX[name], args, {})

    def apply(self, op: Operator, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """Check the arguments and compute. Numbers in lists are constants; other numbers keep their types."""
        if op.name == "static_print":
            print(*args)
            return None
        scratch = Function("scratch", "incore" if self.in_core else "orchestration")
        env: dict[Value, Any] = {}

        def value(arg: Any, known: bool = False) -> Any:
            if isinstance(arg, Held):
                made = next((v for v, h in env.items() if h is arg), None)
                made = made or Value(arg.type, arg.name, scratch.body if arg.memory else None)
            elif isinstance(arg, HeldArray):
                made = Value(arg.type)
            elif is_typed(arg):
                if (known and arg.dtype != TASK_ID) or arg.dtype == BOOL:
                    return bool(arg) if arg.dtype == BOOL else float(arg) if arg.dtype.is_float else int(arg)
                made = Value(ScalarType(arg.dtype))
            elif isinstance(arg, list | tuple):
                return type(arg)(value(a, True) for a in arg)
            else:
                return arguments.number(arg) if isinstance(arg, np.generic) else arg
            env[made] = arg
            return made

        given = [value(a) for a in args]
        named = {k: value(v) for k, v in kwargs.items()}
        here = _Here(scratch.body, self)
        found = self.checked(lambda: expressions.apply(here, here.node, op, given, named))  # type: ignore[arg-type]
        for made in scratch.body.ops:
            self._run(made, env)
        return _back(found, env)

    def _run(self, op: Op, env: dict[Value, Any]) -> None:
        """Compute one operation on the values of its arguments."""
        if op.blocks:
            self._structured(op, env)
            return

        def extent(v: Value) -> int:
            return int(env[v])

        for result in op.results:
            result.type = _known(retyped(result.type, extent))
        special = getattr(self, f"_{op.name.replace('.', '_')}", None)
        if special is None and op.name.startswith("scalar."):
            special = self._scalar
        if special is not None:
            out = self.checked(lambda: special(op, **_back(op.args, env)))
            results = [] if not op.results else [out]
        else:
            results = self.checked(lambda: compute(op, env, self.profile))
            if op.name == "matmul":
                results[0].made = (op, {v: env[v] for v in values_in(op.args)})
        for result, made in zip(op.results, results, strict=True):
            env[result] = made
            if isinstance(made, Held) and self._regions:
                self._regions[-1][1].add(made)

    def _structured(self, op: Op, env: dict[Value, object]) -> None:
        """Compute a loop or an if that an operator expands to."""
        if op.name == "if":
            block = op.blocks[0 if _back(op.args["cond"], env) else 1]
            given = self._block(block, env)
        else:
            (block,), given = op.blocks, [_back(v, env) for v in op.args["init_values"]]
            for i in range(*(int(_back(op.args[k], env)) for k in ("start", "stop", "step"))):
                env.update(zip(block.args, [number(i, INDEX), *given], strict=True))
                given = self._block(block, env)
        env.update(zip(op.results, given, strict=True))

    def _block(self, block: Block, env: dict[Value, object]) -> list[object]:
        """Run a copy of each operation of a block, and return the yielded values."""
        for op in block.ops:
            if op.name == "yield":
                return [_back(v, env) for v in op.args["values"]]
            copy = Op(op.name, op.args, [r.type for r in op.results], op.loc)
            copy.blocks = op.blocks
            self._run(copy, env)
            env.update((old, env[new]) for old, new in zip(op.results, copy.results, strict=True))
        return []

    # ---- memory ----

    def _load(self, op: Op, tensor: Held, offsets: list[int], **_: object) -> Held:
        t = op.result.type
        made = Held(poison(t.shape, t.dtype), t)
        layout = tensor.type.layout
        if layout in SCALES:  # boxes of scales
            rows = Held(boxed(tensor.data, layout, False), tensor.type, True)
            made.data[...] = boxed(self._part(rows, offsets, t.extent), layout, True)
        else:
            made.valid[...] = self._part(tensor, offsets, t.extent)
        return made

    def _part(self, x: Held, offsets: list[int], extent: Sequence[int]) -> Array:
        """Return a window of an array's data."""
        for axis, (o, n, have) in enumerate(zip(offsets, extent, x.data.shape, strict=True)):
            if o < 0 or n < 0 or o + n > have:
                fail(
                    SHAPE,
                    f"window exceeds dimension {axis}",
                    expected=f"within {have}",
                    got=f"{o} to {o + n}",
                )
        return x.data[tuple(slice(int(o), int(o + n)) for o, n in zip(offsets, extent, strict=True))]

    def _store(
        self, op: Op, tile: Held, offsets: list[int], output_tensor: Held, atomic: object = None, **_: object
    ) -> None:
        self._put(tile, offsets, output_tensor, atomic)

    def _assemble(
        self, op: Op, target: Held, source: Held, offset: list[int], atomic: object = None, **_: object
    ) -> None:
        self._put(source, offset, target, atomic)

    def _put(self, source: Held, offset: list[int], target: Held, atomic: object) -> None:
        rank = target.type.rank
        extent = list(source.type.extent)
        extent = [1] * (rank - len(extent)) + extent if len(extent) < rank else extent[-rank:]
        values = converted(source.valid.reshape(extent), source.dtype, target.dtype)
        part = self._part(target, offset, extent)
        part[...] = part + values if atomic is AtomicType.Add else values

    def _slice(
        self, op: Op, x: Held, offset: list[int], drop_dims: Sequence[int] | None = None, **_: object
    ) -> Held:
        """Return a window of the storage under a new name, cut at the end of the storage."""
        t = op.result.type
        sizes = [index.known(n) for n in op.args["shape"]]
        if any(o < 0 or o > n for o, n in zip(offset, x.data.shape, strict=True)):
            fail(SHAPE, "window starts out of bounds", expected=f"within {list(x.shape)}", got=offset)
        data = x.data[tuple(slice(o, o + (n or 0)) for o, n in zip(offset, sizes, strict=True))]
        kept = [i for i in range(x.type.rank) if i not in (drop_dims or ())]
        data = data[tuple(slice(None) if i in kept else 0 for i in range(x.type.rank))]
        if any(n > have for n, have in zip(t.extent, data.shape, strict=True)):
            fail(SHAPE, "window exceeds its source", expected=f"within {list(x.shape)}",
                 got=f"{list(t.extent)} at {offset}")  # fmt: skip
        return Held(data, t, x.memory)

    def _reshape(self, op: Op, x: Held, **_: object) -> Held:
        t = op.result.type
        return Held(whole(x).reshape(t.shape), t, x.memory)

    def _transpose(self, op: Op, x: Held, axis1: int, axis2: int) -> Held:
        if self.in_core:
            (made,) = compute(op, {op.args["x"]: x}, self.profile)
            return made
        return Held(np.swapaxes(x.data, axis1, axis2), op.result.type, x.memory)

    def _set_validshape(self, op: Op, x: Held, **_: object) -> Held:
        return Held(x.data, op.result.type, x.memory)

    def _create_tile(self, op: Op, **_: object) -> Held:
        t = op.result.type
        return Held(poison(t.shape, t.dtype), t)

    def _create_tensor(self, op: Op, init_value: object = None, **_: object) -> Held:
        t = op.result.type
        made = Held(poison(t.shape, t.dtype), t, not self.in_core)
        if init_value is not None:
            made.data[...] = init_value
        return made

    def _full(self, op: Op, value: object, **_: object) -> Held:
        t = op.result.type
        made = Held(poison(t.shape, t.dtype), t)
        made.data[...] = number(value, t.dtype)
        return made

    def _move(self, op: Op, tile: Held, **_: object) -> Held:
        made = Held(poison(tile.shape, op.result.type.dtype), op.result.type)
        made.valid[...] = converted(tile.valid, tile.dtype, made.dtype)
        return made

    def _aiv_shard(self, op: Op, x: Held, mode: object) -> Held:
        """Return the half of the executing lane."""
        return self._move(op, self._half(x, op.result.type, mode))

    def _aic_gather(self, op: Op, x: Held, mode: object) -> Held:
        """Join the halves of both lanes: each lane writes its half, so the result is complete in the last
        lane."""
        t = op.result.type
        span = _Here(Block(), self).place
        place = "" if span is None else f"{span.source.name}:{span.place}"
        if self.subblock == 0:
            self._gathered[place] = Held(poison(t.shape, t.dtype), t)
        made = self._gathered[place]
        self._half(made, x.type, mode).valid[...] = x.valid
        return made

    def _half(self, x: Held, type: TileType, mode: object) -> Held:
        if mode is SplitMode.NONE:
            return Held(x.data, x.type)
        axis = x.type.rank - (2 if mode is SplitMode.UP_DOWN else 1)
        start = self.subblock * x.shape[axis] // 2
        at = [slice(None)] * x.type.rank
        at[axis] = slice(start, start + x.shape[axis] // 2)
        return Held(x.data[tuple(at)], type)

    def _tile_transpose_view(self, op: Op, x: Held, **_: object) -> Held:
        return Held(np.swapaxes(x.data, -1, -2), op.result.type, x.memory)

    def _tile_extract(self, op: Op, x: Held, index_row: int, index_col: int, **_: object) -> Held:
        t = op.result.type
        made = Held(poison(t.shape, t.dtype), t)
        offset = [0] * (x.type.rank - 2) + [int(index_row), int(index_col)]
        made.valid[...] = converted(self._part(x, offset, t.extent), x.dtype, t.dtype)
        return made

    def _matmul_acc(self, op: Op, acc: Held, init_cond: object = None, **given: Held) -> Held:
        """Return the product plus the accumulator, added last, as the cube does it. Products that the cube
        computes in several steps are accumulated again from the first step."""
        names = ("lhs", "rhs")
        inputs = {op.args[n]: given[n] for n in names}
        large = any(given[n].data.nbytes > _ONE_STEP for n in names)
        if large and acc.made is not None and not init_cond:
            again = Op(op.name, {**op.args, "init_cond": None}, [op.result.type], op.loc)
            (made,) = compute(again, {**inputs, op.args["acc"]: acc}, self.profile)
            made.made = (again, {**inputs, op.args["acc"]: acc})
            return made
        args = {k: v for k, v in op.args.items() if k not in ("acc", "init_cond")}
        product = Op("matmul", {"out_dtype": None, **args}, [op.result.type], op.loc)
        (made,) = compute(product, inputs, self.profile)
        if init_cond:
            made.made = (product, inputs)
            return made
        with np.errstate(all="ignore"):
            made.valid[...] = acc.data[tuple(slice(0, n) for n in made.type.extent)] + made.valid
        if acc.made is not None:
            made.made = (op, {**inputs, op.args["acc"]: acc})
        return made

    # ---- elements and numbers ----

    def _read(self, op: Op, x: Held, offset: list[int], **_: object) -> object:
        return number(self._element(x, offset)[()], x.dtype)

    def _write(self, op: Op, x: Held, offset: list[int], value: object, **_: object) -> None:
        self._element(x, offset)[...] = number(value, x.dtype)

    def _element(self, x: Held, offset: list[int]) -> Array:
        at = list(offset)
        if len(at) == 1 and x.type.rank > 1:
            at = (
                [int(i) for i in np.unravel_index(at[0], x.shape)]
                if 0 <= at[0] < math.prod(x.shape)
                else [-1]
            )
        if any(not 0 <= o < n for o, n in zip(at, x.data.shape, strict=False)):
            fail(SHAPE, "index out of bounds", expected=f"within {list(x.shape)}", got=offset)
        return x.data[tuple(slice(o, o + 1) for o in at)].reshape(())

    def _const(self, op: Op, value: float, dtype: DataType) -> object:
        return number(value, dtype)

    def _scalar(self, op: Op, **args: Any) -> object:
        dtype = op.result.type.dtype
        if op.name == "scalar.cast":
            (x,) = (v for k, v in args.items() if k != "dtype")
            return number(math.trunc(x) if dtype.is_int else x, dtype)
        return number(computed(op.name.removeprefix("scalar."), tuple(args.values()), dtype), dtype)

    def _get_block_idx(self, op: Op) -> object:
        return number(self.block, INDEX)

    def _get_block_num(self, op: Op) -> object:
        return number(self.blocks_in_all, INDEX)

    def _get_subblock_idx(self, op: Op) -> object:
        return number(self.subblock, INDEX)

    def _array_create(self, op: Op, **_: object) -> HeldArray:
        return HeldArray(op.result.type)

    def _array_read(self, op: Op, x: HeldArray, offset: int) -> object:
        return x[offset]

    def _array_write(self, op: Op, x: HeldArray, offset: int, value: object) -> None:
        x[offset] = value

    # ---- subscripts ----

    def window(self, x: Held, item: object) -> Any:
        """Return the window `x[a:b, i]`."""
        offsets, sizes, dropped = self._window(x, item)
        if len(dropped) == x.type.rank:
            return self.named("read", x, offsets)
        if isinstance(x.type, TileType):
            dropped = dropped[: max(0, x.type.rank - 2)]
        found = self.named("slice", x, sizes, offsets, drop_dims=dropped)
        new = expressions.spelled(
            list(item) if isinstance(item, tuple) else [item], x.type.rank, slice(None)
        )[1]
        return self.apply(_NEW, (found, new, len(found.shape) < x.type.rank), {}) if new else found

    def write_window(self, x: Held, item: object, value: Any) -> None:
        """Write a window: `x[a:b, i] = value`."""
        offsets, sizes, dropped = self._window(x, item)
        if isinstance(value, int | float) and len(dropped) == x.type.rank:
            self.named("write", x, offsets, value)
            return
        if len(dropped) == x.type.rank:
            self.fail(TYPE, "cannot assign an array to one element", help="assign to a window: `x[i:i + n]`")
        wanted = [n for i, n in enumerate(sizes) if i not in dropped]
        if not isinstance(value, Held | int | float):
            self.fail(TYPE, "expected an array or a number for the window", got=repr(value),
                      help="pass an array, as a parameter of the function")  # fmt: skip
        if self.in_core or isinstance(value, int | float):
            value = self.apply(ASSIGNED, (x, sizes, dropped, value), {})
        if list(value.shape) != wanted and any(
            have != want for have, want in zip(value.valid_shape[::-1], sizes[::-1], strict=False)
        ):
            self.fail(TYPE, "shape of the value does not match the window", expected=sizes, got=value.type)
        self.named("assemble", x, value, offsets)

    def _window(self, x: Held, item: object) -> tuple[list[int], list[int], list[int]]:
        parts, _ = expressions.spelled(
            list(item) if isinstance(item, tuple) else [item], x.type.rank, slice(None)
        )
        if len(parts) > x.type.rank:
            self.fail(SHAPE, "too many indices", expected=f"at most {x.type.rank}", got=len(parts))
        offsets, sizes, dropped = [], [], []
        for axis, n in enumerate(x.shape):
            part = parts[axis] if axis < len(parts) else slice(None)
            if isinstance(part, slice):
                start = 0 if part.start is None else _from_end(part.start, n)
                stop = n if part.stop is None else _from_end(part.stop, n)
                offsets.append(start)
                sizes.append(stop - start)
            else:
                offsets.append(_from_end(part, n))
                sizes.append(1)
                dropped.append(axis)
        return offsets, sizes, dropped

    # ---- loops and regions ----

    def iterations(self, over: Loop | ControlRegion | While) -> Iterator[object]:
        if isinstance(over, While):
            return self._carrying(iter(lambda: None, 0), over.init_values, lambda _, values: values)
        if isinstance(over, ControlRegion):
            return self._region(over, lambda i: i)
        numbers: Iterator[object] = iter(range(over.start, over.stop, over.step))
        if over.kind != "unroll":
            numbers = (number(i, INDEX) for i in numbers)
        if over.init_values is None:
            return numbers
        return self._carrying(numbers, over.init_values, lambda i, values: (i, values))

    def _carrying(
        self, over: Iterator[object], first: tuple[object, ...], shown: Callable[[object, object], object]
    ) -> Iterator[object]:
        self._carried.append(tuple(map(self.typed, first)))
        try:
            for i in over:
                yield shown(i, self._carried[-1])
        finally:
            self._ended = self._carried.pop()

    def yielded(self, values: tuple[object, ...]) -> None:
        """Take the values of `pl.yield_` at the end of an iteration."""
        if self._carried:
            self._carried[-1] = tuple(map(self.typed, values))

    def results(self) -> tuple[Any, ...]:
        """Return the results of the loop that has just ended."""
        return self._ended

    def typed(self, value: object) -> object:
        """Return a value that a loop carries: a literal becomes a typed number."""
        if isinstance(value, int | float) and not is_typed(value):
            return number(value, _literal(value))
        return value

    def annotated(self, said: object, value: object) -> object:
        """Return the value of an annotated assignment, `x: type = value`."""
        found = annotation(said)
        if (
            found is None
            or found.kind != "scalar"
            or found.dtype is None
            or not isinstance(value, int | float)
        ):
            return value
        if is_typed(value):
            return value if value.dtype == found.dtype else self.named("cast", value, found.dtype)  # type: ignore[union-attr]
        return value if found.dtype in (INDEX, FP32, BOOL) else number(value, found.dtype)

    def enter(self, region: ControlRegion) -> Integer | None:
        core = region.kind in ("at", "spmd")
        if core and self.in_core:
            self.fail(
                PLACE,
                f"cannot nest pl.{region.kind} in a region of a core",
                help="move it out of the other region",
            )
        self._open(core)
        if core:
            self.tasks += 1
            return Integer(self.tasks - 1, TASK_ID)
        return None

    def leave(self, region: ControlRegion) -> None:
        self._close()

    def _open(self, core: bool) -> None:
        self._regions.append((self.in_core, WeakSet()))
        self.in_core = self.in_core or core

    def _close(self) -> None:
        """Turn arrays of a region that are still in use into memory."""
        was, made = self._regions.pop()
        if self.in_core and not was:
            for held in made:
                held.memory = True
                if isinstance(held.type, TileType):
                    held.type = TensorType(held.type.dtype, held.type.shape, held.type.valid)
        elif self._regions:
            self._regions[-1][1].update(made)
        self.in_core = was

    def blocks(self, region: ControlRegion) -> Iterator[Any]:
        """Run the body of `with pl.spmd(n) as task` once per block."""
        task = self.tasks
        return self._region(region, lambda _: Integer(task, TASK_ID))

    def _region(self, region: ControlRegion, shown: Callable[[object], object]) -> Iterator[object]:
        count = int(region.options["core_num" if region.kind == "spmd" else "count"])
        predicate = region.options.get("predicate")
        before = self.block, self.blocks_in_all, self.subblock, self.split
        self.enter(region)
        try:
            for i in range(count if predicate is None or predicate else 0):
                if region.kind == "spmd":
                    self.block, self.blocks_in_all = i, count
                else:
                    self.subblock, self.split = i, region.options.get("mode")
                yield shown(number(i, INDEX))
        finally:
            self.block, self.blocks_in_all, self.subblock, self.split = before
            self.leave(region)

    # ---- problems ----

    def fail(self, code: str, message: str, expected: object = "", got: object = "", help: str = "") -> Any:
        def problem() -> NoReturn:
            fail(code, message, None, expected, got, help)

        return self.checked(problem)

    def checked(self, work: Callable[[], object]) -> Any:
        """Re-raise problems as diagnostics at the executing line of the user's function."""
        try:
            return work()
        except Problem as problem:
            found, kept = [problem.diagnostic], True
        except DiagnosticError as e:  # the kernel may come from the cache, with another location
            found, kept = e.diagnostics, False
        for d in found:
            d.span = d.span if kept and d.span is not None else _Here(Block(), self).place
        raise DiagnosticError(in_language_terms(found)) from None


class _Here:
    """The current location in the user's function, with the interface that operators expect."""

    def __init__(self, block: Block, it: Interpreter) -> None:
        self.build = Build(block, it.profile)
        self.build.in_core = it.in_core
        self.build.__dict__["split"] = it.split
        self.file, self.node = _user_node()
        self.build.place = self.place

    @property
    def place(self) -> Span | None:
        return self.file.span(self.node) if self.file is not None else None

    def span(self, node: ast.AST) -> Span | None:
        return self.file.span(node) if self.file is not None and hasattr(node, "lineno") else None


@cache
def _positions(code: Any) -> list[tuple[int | None, ...]]:
    return list(code.co_positions())


def _user_node() -> tuple[PythonFile | None, ast.AST]:
    """Return the expression that the innermost function outside this package is executing."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    nothing = ast.Call(ast.Name("?"), [], [])
    if frame is None:
        return None, nothing
    file = file_at(frame.f_code.co_filename, frame.f_globals)
    if file is None:
        return None, nothing
    where: tuple[int | None, ...] = (frame.f_lineno, None, None, None)
    if hasattr(frame.f_code, "co_positions"):
        where = _positions(frame.f_code)[frame.f_lasti // 2]
    return file, file.node(where) or nothing


def _from_end(at: float, n: int) -> int:
    return int(at) + n if at < 0 and not is_typed(at) else int(at)


def _literal(value: object) -> DataType:
    return BOOL if isinstance(value, bool) else FP32 if isinstance(value, float) else INDEX


def _known(type: object) -> object:
    """Drop a valid region that covers the whole shape."""
    if isinstance(type, TensorType):
        type = type.replace(strides=None)
    if (
        isinstance(type, TensorType | TileType)
        and type.valid is not None
        and tuple(type.valid) == tuple(type.shape)
    ):
        return type.replace(valid=None)
    return type


def _shown(value: Any) -> object:
    """Return an argument of a call for checks of its type."""
    if isinstance(value, Held | HeldArray):
        return Value(value.type)
    return Value(ScalarType(value.dtype)) if is_typed(value) else value


def _back(arg: object, env: dict[Value, object]) -> Any:
    return replaced(arg, lambda v: env[v])


__all__ = ["Interpreter", "interpret"]
