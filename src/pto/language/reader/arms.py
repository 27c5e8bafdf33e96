"""Branches of an if: their results are the names that they set and that are read later."""

from __future__ import annotations

import ast
from typing import Any

from ..dtypes import BOOL, FP32, INDEX
from ..ir import Block, Op, ScalarType, TensorType, Type, Value, index, is_memory, is_scalar, is_shaped
from ..operators.core import OPERATORS
from ..problems import MERGE, fail
from . import liveness
from .body import read_body, stays
from .carry import held, mismatch, set_at, shown, typed
from .expressions import condition
from .frame import POISON, Frame, Unbound
from .yields import yield_names


def read_if(f: Frame, node: ast.If) -> None:
    test = condition(f, node.test)
    if not isinstance(test, Value):
        read_body(f, node.body if test else node.orelse, f.live)
        return
    stays(f, [*node.body, *node.orelse])
    op = Op("if", {"cond": test}, [], f.span(node.test))
    ends: list[dict[str, Any]] = []
    before = dict(f.names)
    for body in (node.body, node.orelse):
        f.names.clear()
        f.names.update(before)
        with f.build.into(op.add_block()):
            read_body(f, body, f.live)
        ends.append(dict(f.names))
    f.names.clear()
    f.names.update(before)
    _merge(f, node, op, ends)


def _merge(f: Frame, node: ast.If, op: Op, ends: list[dict[str, Any]]) -> None:
    """Give the results of both branches: values that they yield, and names that differ after them and are
    read later."""
    given = [end.pop("yield ", None) for end in ends]
    yields = (
        yield_names(node.body) if all(given) and yield_names(node.body) == yield_names(node.orelse) else []
    )
    for end, values in zip(ends, given, strict=True):
        end.update(zip(yields, values or [], strict=False))
    outs = ([], [])
    names: list[str] = []
    types: list[Type] = []
    cut: list[tuple[str, Any, int]] = []  # arrays whose valid region is dynamic after the branches
    for name in dict.fromkeys([*yields, *liveness.assigned(node.body), *liveness.assigned(node.orelse)]):
        one = ends[0].get(name)
        two = ends[1].get(name)
        missing = [end for end in ends if name not in end]
        if (one is two and name not in yields) or missing:
            if one is two and one is not None:
                f.names[name] = one
            elif missing:
                there = two if name not in ends[0] else one
                known = isinstance(there, Value) and is_memory(there)  # memory exists after both branches
                f.names[name] = there if known else Unbound("is set only in one branch", f.span(node))
            continue
        if one is POISON or two is POISON:
            f.names[name] = POISON
            continue
        unbound = [v for v in (one, two) if isinstance(v, Unbound)]
        if unbound:
            f.names[name] = unbound[0]
            continue
        if name not in f.live and name not in yields:
            f.names[name] = Unbound("differs after the branches", f.span(node))
            continue
        one, two = _both_held(f, op.blocks, one, two)
        if _only_extents_differ(one, two):
            cut.append((name, one.type.replace(valid=None), len(types)))
            for axis, sizes in enumerate(zip(one.type.extent, two.type.extent, strict=True)):
                for out, size in zip(outs, sizes, strict=True):
                    out.append(size)
                names.append(f"{name}_{axis}")
                types.append(ScalarType(INDEX))
            one, two = (_all_valid(f, block, v) for block, v in zip(op.blocks, (one, two), strict=True))
        type = _merged(f, node, name, one, two)
        for out, value, block in zip(outs, (one, two), op.blocks, strict=True):
            out.append(typed(f, block, value, type))
        names.append(name)
        types.append(type)
    op.results = [Value(t, n, op, i) for i, (t, n) in enumerate(zip(types, names, strict=True))]
    for out, block in zip(outs, op.blocks, strict=True):
        with f.build.into(block):
            f.build.append("yield", [], {"values": out})
    f.build.block.append(op)
    f.names.update(zip(names, op.results, strict=True))
    for name, type, first in cut:
        rank = type.rank
        extent = list(op.results[first : first + rank])
        f.names[name] = OPERATORS["set_validshape"].function(f.build, f.names[name], *extent[-2:])
        f.names[name].name = name


def _both_held(f: Frame, blocks: list[Block], one: object, two: object) -> tuple[Any, Any]:
    """Load a window of a tensor if its name is a value in the other branch."""
    if not f.build.in_core or not (is_shaped(one) and is_shaped(two)) or is_memory(one) == is_memory(two):
        return one, two
    first, second = (held(f, b, v) if is_memory(v) else v for b, v in zip(blocks, (one, two), strict=True))
    return first, second


def _only_extents_differ(one: object, two: object) -> bool:
    """Return True if two arrays differ only in their valid extents in the last two dimensions."""
    if not is_shaped(one) or not is_shaped(two) or is_memory(one) or is_memory(two) or one.type.rank != 2:
        return False
    a, b = one.type, two.type
    alike = type(a) is type(b) and a.dtype == b.dtype and index.same_dims(a.shape, b.shape)
    return alike and not index.same_dims(a.extent, b.extent)


def _all_valid(f: Frame, block: Block, x: Value) -> Value:
    """Return the same storage, valid everywhere."""
    if x.type.valid is None:
        return x
    with f.build.into(block):
        return OPERATORS["set_validshape"].function(f.build, x, *x.type.shape[-2:])


def _merged(f: Frame, node: ast.If, name: str, one: Any, two: Any) -> Type:
    for a, b in ((one, two), (two, one)):
        if isinstance(a, Value) and not mismatch(a.type, b):
            memory = isinstance(a.type, TensorType) and (is_memory(a) or is_memory(b))
            if memory and f.unit.exact is None:
                fail(MERGE, f"cannot merge the tensors '{name}' of two branches", set_at(f, node, name),
                     help="write into the same tensor in both branches")  # fmt: skip
            return a.type
    if is_scalar(one) and is_scalar(two) and not isinstance(one, Value) and not isinstance(two, Value):
        if isinstance(one, bool) and isinstance(two, bool):
            return ScalarType(BOOL)
        return ScalarType(FP32 if isinstance(one, float) or isinstance(two, float) else INDEX)
    fail(MERGE, f"cannot merge the types of '{name}' in two branches", set_at(f, node, name),
         expected=shown(one), got=shown(two), help="give them different names")  # fmt: skip
