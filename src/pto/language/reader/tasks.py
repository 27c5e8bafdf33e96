"""Options of tasks besides their arguments: number of blocks, dependencies, predicate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...diag import Span
from ..enums import ScopeMode
from ..ir import IN, Block, Op, Value, is_int, is_scalar, is_tensor, root, values_in, writes
from ..operators.tasks import tasks_in
from ..problems import CALL, PLACE, TYPE
from .frame import Frame

TASK_OPTIONS = ("core_num", "sync_start", "deps", "no_dep_args", "predicate")


def task_options(f: Frame, given: Mapping[str, Any], place: Span | None) -> dict[str, Any]:
    """Return the checked options of a task."""
    out = {k: v for k, v in given.items() if k in TASK_OPTIONS}
    f.build.place = place
    if "deps" in out:
        out["deps"] = [d for d in tasks_in(f.build, out["deps"]) if d is not None]
    if "core_num" in out:
        if not is_int(out["core_num"]):
            f.build.fail(TYPE, "expected a number of blocks", got=repr(out["core_num"]))
        out["core_num"] = f.build.as_index(out["core_num"])
    if "no_dep_args" in out:
        out["no_dep_args"] = list(out["no_dep_args"] or ())
    if "predicate" in out:
        out["predicate"] = _condition(f, out["predicate"])
    alone = [k for k in ("deps", "predicate") if out.get(k)]
    if alone and of_a_cluster(f):
        f.build.fail(PLACE, f"unsupported '{alone[0]}' of a task of a cluster",
                     help="take it out of pl.cluster()")  # fmt: skip
    return out


def of_a_cluster(f: Frame) -> bool:
    """Return True inside of `pl.cluster()`, whose tasks begin together, as one."""
    outer = f.build.block.outer
    while isinstance(outer, Op):
        if outer.name == "region" and outer.args["kind"] == "cluster":
            return True
        outer = outer.parent.outer if outer.parent is not None else None
    return False


def in_manual_scope(f: Frame) -> bool:
    """Return True where only `deps=` orders tasks."""
    outer = f.build.block.outer
    while isinstance(outer, Op):
        if outer.name == "region" and outer.args["kind"] == "scope":
            return outer.args["mode"] is ScopeMode.MANUAL
        outer = outer.parent.outer if outer.parent is not None else None
    return False


def check_predicate(f: Frame, said: Mapping[str, Any], taken: Iterable[object], place: Span | None) -> None:
    """Reject a predicate that is tested before the task that writes its element has finished: a predicate
    adds no dependency. `taken` are tensors that the task waits for, outside of manual scopes."""
    if not said.get("predicate"):
        return
    tensor = root(said["predicate"][0])
    writer = _last_writer(f.build.block, tensor)
    if writer is None:
        return
    deps = said.get("deps") or ()
    waits = any(_comes_after(d, writer) for d in deps)
    if not waits and not in_manual_scope(f):
        later = _after_by_tensors(writer)
        waits = any(root(v) is tensor for v in taken if isinstance(v, Value))
        waits = waits or later is None or any(d.op in later for d in deps if isinstance(d, Value))
    if waits:
        return
    f.build.place = place
    f.build.fail(CALL, f"missing dependency of a predicate on the task that writes '{tensor.name}'",
                 help="deps=[task], with the task of `x, task = pl.submit(..)` that writes it")  # fmt: skip


def _last_writer(block: Block | None, tensor: Value) -> Op | None:
    """Return the last task that wrote a tensor; None if there is none, or if branches make it ambiguous."""
    if tensor.op is not None and tensor.op.name in ("call", "region"):
        return tensor.op
    ops = list(block.ops) if block is not None else []
    while block is not None:
        for op in reversed(ops):
            if any(root(v) is tensor for v in _written(op)):
                return op if op.name in ("call", "region") else None
        outer = block.outer
        block = outer.parent if isinstance(outer, Op) else None
        ops = list(block.ops) if block is not None else []  # the statement being read is not in it yet
    return None


def _after_by_tensors(writer: Op) -> list[Op] | None:
    """Return tasks that may wait for another through their tensors; None if that task is in another block."""
    ops = writer.parent.ops if writer.parent is not None else []
    if writer not in ops:
        return None
    found = [writer]
    used, set_ = _storage(_tensors(writer)), _storage(_written(writer))
    for op in ops[ops.index(writer) + 1 :]:
        mine, changed = _storage(_tensors(op)), _storage(_written(op))
        if mine & set_ or changed & used:
            found.append(op)
            used |= mine
            set_ |= changed
    return found


def _storage(values: Iterable[Value]) -> set[Value]:
    return {root(v) for v in values}


def _tensors(op: Op) -> Iterator[Value]:
    return (v for o in op.walk() for v in (*o.operands(), *o.results) if is_tensor(v))


def _written(op: Op) -> Iterator[Value]:
    for o in op.walk():
        if o.name == "call":
            pairs = zip(o.args["args"], o.args["callee"].params, strict=False)
            yield from (v for v, p in pairs if p.direction != IN and isinstance(v, Value))
        else:
            yield from (v for name, arg in o.args.items() if writes(o, name) for v in values_in(arg))


def _comes_after(task: object, writer: Op) -> bool:
    """Return True if a task is known, or may be assumed, to start after another one has finished."""
    op = task.op if isinstance(task, Value) else None
    if op is None or op is writer or op.name not in ("call", "region", "task_dummy"):
        return isinstance(task, Value)
    return any(_comes_after(d, writer) for d in op.args.get("deps") or ())


_WORDS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
#: Element types that a scheduler compares: signed integers.
_COMPARED = ("i8", "i16", "i32", "i64")
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _condition(f: Frame, given: object) -> object:
    """Return the parts of a predicate, which is tested when the task could begin: tensor, offset of the
    element, comparison, number."""
    if given is None or (isinstance(given, tuple) and len(given) == 4):
        return given
    op = given.op if isinstance(given, Value) else None
    word = _WORDS.get(op.name.removeprefix("scalar.")) if op is not None else None
    if op is not None and word is not None:
        lhs, rhs = op.args["lhs"], op.args["rhs"]
        if not isinstance(lhs, Value):
            lhs, rhs, word = rhs, lhs, _MIRRORED.get(word, word)
        read = lhs.op if isinstance(lhs, Value) else None
        while read is not None and read.name == "scalar.cast" and isinstance(read.args["x"], Value):
            read = read.args["x"].op
        if (
            read is not None
            and read.name == "read"
            and read.result.type.dtype.isa in _COMPARED
            and isinstance(rhs, int)
        ):
            _forget(f, op.result)
            return read.args["x"], list(read.args["offset"]), word, rhs
    f.build.fail(TYPE, "expected a comparison of an integer tensor element with a constant as a predicate",
                 expected="elements of INT8 to INT64", help="predicate=(gate[0, 0] > 0)")  # fmt: skip


def _forget(f: Frame, given: Value) -> None:
    """Remove a comparison that was written for a predicate only."""
    ops, named = f.build.block.ops, {id(v) for v in f.names.values()}
    while ops and ops[-1].results == [given] and id(given) not in named:
        operands = [v for v in ops.pop().args.values() if isinstance(v, Value)]
        scalars = [v for v in operands if is_scalar(v)]
        if len(scalars) != 1:
            return
        given = scalars[0]
