"""Operators computed at once: each is a kernel of its own, with its loads and stores.

The kernel goes through the same stages as a program that has the operator among others, so the numbers are
the same. Kernels are kept by operator, arguments and types; how far data goes is given to them at run time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..isa.profiles import Profile
from .dtypes import INDEX
from .enums import AtomicType, MemorySpace
from .held import Held, poison, whole
from .ir import (
    OUT,
    Function,
    Op,
    Program,
    ScalarType,
    TensorType,
    TileType,
    Value,
    is_shaped,
    replaced,
)

_SPACES = {m.isa: m for m in MemorySpace}
_kernels: dict[Any, Any] = {}


def compute(op: Op, env: dict[Value, Any], profile: Profile) -> list[Held]:
    """What an operation gives for arrays and numbers. Its types have known extents."""
    operands: dict[Value, None] = {}
    replaced(op.args, lambda v: operands.setdefault(v))
    values = list(operands)
    extents: dict[int, int] = {}  # valid extents by value, and the number of the parameter that each is
    symbolic = [_symbolic(v.type, extents) for v in values]
    results = [_symbolic(r.type, extents) for r in op.results]
    places = {v: i for i, v in enumerate(values)}
    key = (profile.name, op.name, _frozen(op.args, places), tuple(symbolic), tuple(results))
    found = _kernels.get(key)
    if found is None:
        found = _kernels[key] = _kernel(op, values, symbolic, results, len(extents), profile)
    outs = [poison(r.type.shape, r.type.dtype) for r in op.results]
    arrays = [np.ascontiguousarray(whole(env[v])).reshape(-1) for v in values if is_shaped(v)]
    scalars = [env[v] for v in values if not is_shaped(v)]
    found(*arrays, *(o.reshape(-1) for o in outs), *scalars, *extents)
    return [Held(o, r.type) for o, r in zip(outs, op.results, strict=True)]


def _symbolic(type: Any, extents: dict[int, int]) -> Any:
    """A type whose valid part is known at run time only, in dimensions where it is not all: `("n", i)`."""
    if not isinstance(type, TensorType | TileType):
        return type
    valid = type.valid
    if valid is not None:
        valid = tuple(n if n == whole else ("n", extents.setdefault(n, len(extents)))
                      for n, whole in zip(valid, type.shape, strict=True))  # fmt: skip
    if isinstance(type, TensorType):
        return TensorType(type.dtype, type.shape, valid)
    return type.replace(valid=valid)


def _frozen(arg: Any, places: dict[Value, int]) -> Any:
    """An argument as part of a key."""
    if isinstance(arg, Value):
        return "value", places[arg]
    if isinstance(arg, list | tuple):
        return tuple(_frozen(a, places) for a in arg)
    if isinstance(arg, dict):
        return tuple((k, _frozen(a, places)) for k, a in arg.items())
    return type(arg), str(arg) if isinstance(arg, float) else arg


def _kernel(
    op: Op, values: list[Value], types: list[Any], results: list[Any], extents: int, profile: Profile
) -> Any:
    """A function that loads, applies the operator and stores."""
    from ..engine.launch import kernel
    from .lower import Lowered, stages

    function = Function(f"one_{op.name.replace('.', '_')}", "incore", op.loc)
    arrays = [function.param(_tensor(t), f"x{i}") if is_shaped(v) else None
              for i, (v, t) in enumerate(zip(values, types, strict=True))]  # fmt: skip
    outs = [function.param(_tensor(t), f"out{i}", OUT) for i, t in enumerate(results)]
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
    made = Op(op.name, replaced(op.args, given.__getitem__), [known(t) for t in results], op.loc)
    function.body.append(made)
    for result, out in zip(made.results, outs, strict=True):
        _store(function, result, out)
    program = Program("one", profile)
    program.entry = program.add(function)
    for _, after in stages(program):
        program = after
    (module,) = Lowered(program, profile).modules.values()
    return kernel(module, function.name, target=profile)


def _tensor(t: Any) -> TensorType:
    return TensorType(t.dtype, t.shape)


def _operand(function: Function, array: Value, t: Any) -> Value:
    """An array where the operator wants it: a tensor, or a tile in its memory."""
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
    if t.space == "acc":  # a sum that a vector instruction reads: moving it changes no number
        t = t.replace(space="vec")
    space = t.space if t.space in ("vec", "mat") else "vec" if not t.space else "mat"
    args = {"tensor": array, "offsets": [0] * rank, "shapes": list(t.shape), "valid_shape": valid,
            "target_memory": _SPACES[space]}  # fmt: skip
    loaded = function.body.append(Op("load", args, [t.replace(space=space)], None)).result
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
