"""What is said of a task besides its arguments: how many blocks, what it waits for, whether it runs."""

from __future__ import annotations

from typing import Any

from ...diag import Span
from ..ir import Value, is_scalar
from ..operators.tasks import tasks_in
from ..problems import TYPE
from .frame import Frame

TASK_OPTIONS = ("core_num", "sync_start", "deps", "no_dep_args", "predicate")


def task_options(f: Frame, given: dict[str, Any], place: Span | None) -> dict[str, Any]:
    """What is said of a task, checked."""
    out = {k: v for k, v in given.items() if k in TASK_OPTIONS}
    f.build.place = place
    if "deps" in out:
        out["deps"] = [d for d in tasks_in(f.build, out["deps"]) if d is not None]
    if "core_num" in out:
        if not is_scalar(out["core_num"]):
            f.build.fail(TYPE, "how many blocks is a number", got=repr(out["core_num"]))
        out["core_num"] = f.build.as_index(out["core_num"])
    if "no_dep_args" in out:
        out["no_dep_args"] = list(out["no_dep_args"] or ())
    if "predicate" in out:
        out["predicate"] = _condition(f, out["predicate"])
    return out


_WORDS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _condition(f: Frame, given: Any) -> Any:
    """A comparison made when a task could begin: a tensor, the place of an element, how, and a number."""
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
            and read.result.type.dtype.is_int
            and isinstance(rhs, int)
        ):
            _forget(f, op.result)
            return read.args["x"], list(read.args["offset"]), word, rhs
    f.build.fail(TYPE, "a predicate compares an element of a tensor of integers with a number that is known",
                 help="predicate=(gate[0, 0] > 0)")  # fmt: skip


def _forget(f: Frame, given: Value) -> None:
    """A comparison that was written for a predicate alone is not made here."""
    ops, named = f.build.block.ops, {id(v) for v in f.names.values()}
    while ops and ops[-1].results == [given] and id(given) not in named:
        operands = [v for v in ops.pop().args.values() if isinstance(v, Value)]
        scalars = [v for v in operands if is_scalar(v)]
        if len(scalars) != 1:
            return
        given = scalars[0]
