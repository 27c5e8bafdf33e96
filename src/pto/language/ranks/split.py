"""Split a host's program by rank: which operations belong to which rank.

Every rank has its own orchestrator. An orchestrator that reads an element waits for tasks, and those tasks
may wait for another rank's tasks that are not submitted yet. So the parts of the ranks run interleaved
(`Serial.together`). The result is the same as long as the ranks work on their own memory and on windows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..enums import ScopeMode
from ..ir import IN, ArrayType, Function, Op, TensorType, Value, index, root, values_in

#: The range of a tensor that a rank works on, as offset and size per dimension; None: all of it.
_Box = list[tuple[int, int]] | None


class Apart:
    """A program by rank: `first` holds the operations that all ranks share, `ranks` those of each rank."""

    def __init__(self, first: list[Op], ranks: dict[int, list[Op]]) -> None:
        self.first = first
        self.ranks = ranks


def apart(function: Function) -> Apart | None:
    """Return the parts of the ranks. Return None if there is only one part, if no orchestrator waits, or if
    the order of the parts affects the result.
    """
    ops = [op for op in function.body.ops if op.name != "yield"]
    whose: dict[Op, int | None] = {}
    for op in ops:
        found = {_rank(o) for o in op.walk() if o.name == "call"}
        if len(found - {None}) > 1 or found == {None}:
            return None
        if found:  # copies are tasks without a call; they belong to the rank of their loop
            whose[op] = (found - {None}).pop()
    waits = [op for op in ops if any(o.name == "read" for o in op.walk())]
    if len(set(whose.values())) < 2 or not waits or any(_held(op) for op in ops):
        return None
    outer = {o: op for op in ops for o in op.walk()}
    users: dict[Op, set[Op]] = {}
    for o, op in outer.items():
        for v in o.operands():
            made = outer.get(v.op) if v.op is not None else None
            if made is not None and made is not op:
                users.setdefault(made, set()).add(op)
    for op in reversed(ops):  # operations whose results only one rank uses belong to that rank
        if op not in whose:
            theirs = {whose[u] for u in users.get(op, ())}
            whose[op] = theirs.pop() if len(theirs) == 1 else None
    if any(whose[op] is None and (not op.results or isinstance(op.results[0].type, ArrayType)) for op in ops):
        return None
    if any(whose[op] is not None and whose[u] != whose[op] for op, used in users.items() for u in used):
        return None
    parts = {
        r: [op for op in ops if whose[op] == r] for r in sorted({r for r in whose.values() if r is not None})
    }
    if _meet([_touched(part) for part in parts.values()]):
        return None
    return Apart([op for op in ops if whose[op] is None], parts)


def _rank(call: Op) -> int | None:
    dispatch = call.args.get("dispatch")
    return None if dispatch is None else dispatch[0]


def _held(op: Op) -> bool:
    """Return True if an element is read inside a manual scope, whose tasks must stay together."""
    holds = op.name == "region" and not (
        op.args["kind"] == "scope" and op.args.get("mode") in (None, ScopeMode.AUTO)
    )
    inner = [o for block in op.blocks for o in block.ops]
    return any(_held(o) for o in inner) or (holds and any(o.name == "read" for o in op.walk()))


def _touched(ops: list[Op]) -> dict[Value, list[tuple[_Box, bool]]]:
    """Return the outside tensors that a part works on: the range, and whether it is written. Windows order
    nothing."""
    own = {r for op in ops for o in op.walk() for r in o.results}
    found: dict[Value, list[tuple[_Box, bool]]] = {}
    for o in (o for op in ops for o in op.walk()):
        if o.name not in ("call", "read", "write"):
            continue
        free = {root(v) for v in o.args.get("no_dep_args") or ()}
        args, params = (o.args["args"], o.args["callee"].params) if o.name == "call" else ([], [])
        windows = o.args["callee"].attrs.get("windows", ()) if o.name == "call" else ()
        written = {v for v, p in zip(args, params, strict=False) if p.direction != IN}
        free |= {root(v) for v, p in zip(args, params, strict=False) if p.name in windows}
        for v in values_in(o.args):
            if isinstance(v.type, TensorType) and root(v) not in free and root(v) not in own:
                found.setdefault(root(v), []).append((_box(v), v in written or o.name == "write"))
    return found


def _box(value: Value) -> _Box:
    """Return the range of its storage that a tensor covers, as far as it is known."""
    while value.op is not None and value.op.args.get("x") is not root(value):
        x = value.op.args.get("x")
        if not isinstance(x, Value):
            return None
        value = x
    if value.op is None or value.op.name != "slice":
        return None
    pairs = zip(value.op.args["offset"], value.op.args["shape"], strict=True)
    known = [(index.known(o), index.known(n)) for o, n in pairs]
    whole = root(value).type.shape
    return [
        (o, o + n) if o is not None and n is not None else (0, index.known(d) or 1 << 62)
        for (o, n), d in zip(known, whole, strict=True)
    ]


def _meet(parts: list[dict[Value, list[tuple[_Box, bool]]]]) -> bool:
    """Return True if one part writes a range that another part uses."""
    for n, one in enumerate(parts):
        for other in parts[n + 1 :]:
            for value in one.keys() & other.keys():
                for a, writes in one[value]:
                    if any((writes or wrote) and _overlap(a, b) for b, wrote in other[value]):
                        return True
    return False


def _overlap(a: Sequence[tuple[int, int]] | None, b: Sequence[tuple[int, int]] | None) -> bool:
    if a is None or b is None:
        return True
    return all(low < end and start < high for (low, high), (start, end) in zip(a, b, strict=True))


__all__ = ["Apart", "apart"]
