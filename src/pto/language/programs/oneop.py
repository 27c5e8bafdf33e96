"""Compute single operators: each is a kernel of its own, with its loads and stores.

The kernel goes through the same stages as a larger program with that operator, so the numbers are the same.
Kernels are cached by operator, arguments and types; valid extents are arguments at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...isa.profiles import Profile
from ..dtypes import BOOL, INDEX
from ..enums import AtomicType, MemorySpace
from ..interpreter.handles import Held, poison, whole
from ..ir import (
    IN,
    INOUT,
    OUT,
    Function,
    Op,
    Program,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    Type,
    Value,
    is_shaped,
    replaced,
    values_in,
)
from ..operators.memory import SCALES

_SPACES = {m.isa: m for m in MemorySpace}
_kernels: dict[object, Any] = {}


def compute(op: Op, env: dict[Value, Any], profile: Profile) -> list[Held]:
    """Compute an operation on arrays and numbers. Its types have constant extents.

    Packed masks of comparisons are recomputed where they are used, since their layout is not visible to
    programs.
    """
    if op.results and all(r.type.dtype == BOOL for r in op.results):
        inputs = {v: env[v] for v in values_in(op.args)}
        return [Held(poison(r.type.shape, r.type.dtype), r.type, made=(op, inputs)) for r in op.results]
    ops, env = _with_bits(op, env)
    made = {r for o in ops for r in o.results}
    operands: dict[Value, None] = {}
    for o in ops:
        replaced(o.args, lambda v: None if v in made else operands.setdefault(v))
    values = list(operands)
    extents: dict[int, int] = {}  # valid extents by value, and the number of their parameter
    symbolic = [_symbolic(v.type, extents) for v in values]
    results = [[_symbolic(r.type, extents) for r in o.results] for o in ops]
    places = {v: i for i, v in enumerate([*values, *(r for o in ops for r in o.results)])}
    key = (profile.name, tuple((o.name, _frozen(o.args, places)) for o in ops), tuple(symbolic), str(results))
    found = _kernels.get(key)
    if found is None:
        found = _kernels[key] = _kernel(ops, values, symbolic, results, len(extents), profile)
    outs = [poison(r.type.shape, r.type.dtype) for r in op.results]
    arrays = [np.ascontiguousarray(whole(env[v])).reshape(-1) for v in values if is_shaped(v)]
    scalars = [env[v] for v in values if not is_shaped(v)]
    found(*arrays, *(o.reshape(-1) for o in outs), *scalars, *extents)
    if not op.results:  # the operator changes its operands
        for v, array in zip((v for v in values if is_shaped(v)), arrays, strict=True):
            held = env[v]
            if not np.shares_memory(held.data, array):
                held.data[...] = array.reshape(held.shape)[tuple(slice(0, n) for n in held.data.shape)]
    return [Held(o, r.type) for o, r in zip(outs, op.results, strict=True)]


def _with_bits(op: Op, env: dict[Value, Any]) -> tuple[list[Op], dict[Value, Any]]:
    """Return an operation preceded by those that make its masks, and the inputs of all of them."""
    ops: list[Op] = []
    more = dict(env)
    for v in values_in(op.args):
        held = env[v]
        sums = op.name == "matmul_acc" and v is op.args["acc"]
        if isinstance(held, Held) and held.made is not None and (sums or v.type.dtype == BOOL):
            maker, inputs = held.made
            before, found = _with_bits(maker, inputs)
            ops += [o for o in before if o not in ops]
            more.update(found)
            if v not in maker.results:  # an alias of a mask
                same = maker.results[0]
                op = Op(op.name, replaced(op.args, lambda x, v=v, same=same: same if x is v else x),
                        [r.type for r in op.results], op.loc)  # fmt: skip
    return [*ops, op], more


def _symbolic(type: Type, extents: dict[int, int]) -> Type:
    """Return a type in which valid extents that differ from the shape are run-time values, `("n", i)`."""
    if not isinstance(type, TensorType | TileType):
        return type
    valid: Any = type.valid
    if valid is not None:
        valid = tuple(n if n == whole else ("n", extents.setdefault(n, len(extents)))
                      for n, whole in zip(valid, type.shape, strict=True))  # fmt: skip
    if isinstance(type, TensorType):
        return TensorType(type.dtype, type.shape, valid)
    return type.replace(valid=valid)


def _frozen(arg: object, places: dict[Value, int]) -> object:
    """Return an argument as part of a cache key."""
    if isinstance(arg, Value):
        return "value", places[arg]
    if isinstance(arg, list | tuple):
        return tuple(_frozen(a, places) for a in arg)
    if isinstance(arg, dict):
        return tuple((k, _frozen(a, places)) for k, a in arg.items())
    return type(arg), str(arg) if isinstance(arg, float) else arg


def _kernel(
    ops: list[Op],
    values: list[Value],
    types: Sequence[Any],
    results: Sequence[Sequence[Any]],
    extents: int,
    profile: Profile,
) -> Callable[..., object]:
    """Return a function that loads the operands, applies the operations and stores the results."""
    from ...engine.launch import plain
    from .lower import LoweredProgram, stages

    last = ops[-1]
    function = Function(f"one_{last.name.replace('.', '_')}", "incore", last.loc)
    arrays = [function.param(_tensor(t), f"x{i}", IN if last.results else INOUT) if is_shaped(v) else None
              for i, (v, t) in enumerate(zip(values, types, strict=True))]  # fmt: skip
    outs = [function.param(_tensor(t), f"out{i}", OUT) for i, t in enumerate(results[-1])]
    numbers = [function.param(t, f"s{i}") if not is_shaped(v) else None
               for i, (v, t) in enumerate(zip(values, types, strict=True))]  # fmt: skip
    symbols = [function.param(ScalarType(INDEX), f"n{i}") for i in range(extents)]

    def known(t: Any) -> Any:
        if not isinstance(t, TensorType | TileType) or t.valid is None:
            return t
        return t.replace(valid=tuple(symbols[d[1]] if isinstance(d, tuple) else d for d in t.valid))

    given: dict[Value, Any] = {}
    for v, t, array, n in zip(values, types, arrays, numbers, strict=True):
        given[v] = n if array is None else _operand(function, array, known(t))
    made = last
    for op, own in zip(ops, results, strict=True):
        made = Op(op.name, replaced(op.args, given.__getitem__), [known(t) for t in own], op.loc)
        function.body.append(made)
        given.update(zip(op.results, made.results, strict=True))
    for result, out in zip(made.results, outs, strict=True):
        _store(function, result, out)
    if not made.results:
        for v, array in zip(values, arrays, strict=True):
            if array is not None and isinstance(v.type, TileType):
                _store(function, given[v], array)
    program = Program("one", profile)
    program.entry = program.add(function)
    for _, after in stages(program):
        program = after
    (module,) = LoweredProgram(program, profile).modules.values()
    made_kernel = plain(module, function.name, target=profile)
    slots = program.entry.attrs.get("slots") if program.entry is not None else None
    if not slots:
        return made_kernel
    return lambda *args: made_kernel(*args, np.zeros(slots, np.uint8))  # the slots of FIFOs between cores


#: Layouts of scales by their memory: an array holds them in that layout.
_LAYOUTS = {space: layout for layout, (space, _) in SCALES.items()}


def _tensor(t: ShapedType) -> TensorType:
    layout = _LAYOUTS.get(getattr(t, "scales", "") or getattr(t, "space", ""), "ND")
    return TensorType(t.dtype, t.shape, layout=layout)


def _operand(function: Function, array: Value, t: Any) -> Value:
    """Return an operand in the form that the operator expects: a tensor, or a tile in its memory."""
    rank = len(t.shape)
    valid = None if t.valid is None else list(t.valid)
    if isinstance(t, TensorType):
        if valid is None:
            return array
        window = {
            "x": array,
            "shape": list(t.shape),
            "offset": [0] * rank,
            "valid_shape": valid,
            "drop_dims": None,
        }
        return function.body.append(Op("slice", window, [t], None)).result
    if t.space == "acc":  # a vector instruction reads a sum; a move of the sum changes no number
        t = t.replace(space="vec")
    space = t.space if t.space in ("vec", "mat") else "vec" if not t.space else "mat"
    args = {"tensor": array, "offsets": [0] * rank, "shapes": list(t.shape), "valid_shape": valid,
            "target_memory": _SPACES[space]}  # fmt: skip
    scales = t.space if t.space in _LAYOUTS else t.scales
    loaded = function.body.append(Op("load", args, [t.replace(space=space, scales=scales)], None)).result
    if not t.space or t.space == space:
        return loaded
    moved = {"tile": loaded, "target_memory": _SPACES[t.space]}
    return function.body.append(Op("move", moved, [t], None)).result


def _store(function: Function, result: Value, out: Value) -> None:
    offset = [0] * result.type.rank
    if isinstance(result.type, TensorType):
        args = {"target": out, "source": result, "offset": offset, "atomic": AtomicType.None_}
        function.body.append(Op("assemble", args, [], None))
    else:
        args = {"tile": result, "offsets": offset, "output_tensor": out, "atomic": AtomicType.None_}
        function.body.append(Op("store", args, [], None))
