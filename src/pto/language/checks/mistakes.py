"""Warnings about legal programs that are most likely mistakes, reported before anything runs:

outputs that are never written, parameters whose direction does not match their use, and reductions that count
padding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...diag import Diagnostic
from ..ir import (
    FOREIGN,
    IN,
    INOUT,
    OUT,
    Function,
    Op,
    Param,
    Program,
    TensorType,
    Value,
    reads,
    root,
    values_in,
    writes,
)
from ..problems import DIRECTION, OVERWRITTEN, UNWRITTEN


def check(program: Program) -> list[Diagnostic]:
    """Return all warnings. Correct wrong directions, since they order the tasks."""
    found: list[Diagnostic] = []
    others = _of_several(program)
    for function in reversed(program.functions.values()):  # callees were read after their callers began
        if function.kind not in FOREIGN:
            found += _directions(function, others)
    found += _lost(program.entry) if program.entry is not None else []
    padded = [f for f in program.functions.values() if any(op.name.startswith("fillpad") for op in f.walk())]
    if padded:
        from .padding import counted

        found += [d for function in padded for d in counted(function)]
    return found


def _lost(entry: Function) -> list[Diagnostic]:
    """Warn about an array that the body returns although no argument holds it: a call returns None."""
    params = {p.value for p in entry.params}
    made = [v for v in entry.returns if isinstance(v.type, TensorType) and root(v) not in params]
    help = "add a parameter for the result, y: pl.Out[pl.Tensor], and write it with y[:] = .."
    message = f"the result of {entry.name} is discarded: a call returns None"
    return [Diagnostic(UNWRITTEN, message, entry.loc, "warning", help=help)] if made else []


def unordered(program: Program) -> list[Diagnostic]:
    """Warn about tensors that a task overwrites while an earlier task may still use them. The program must be
    split into functions."""
    from ..graphs.graph import CallGraph

    if program.entry is None or program.entry.kind != "orchestration":
        return []
    found: dict[Op, Diagnostic] = {}
    for e in CallGraph(program.entry).hazards():
        names = " and ".join(f"'{n}'" for n in e.names)
        first = found.setdefault(
            e.later.op,
            Diagnostic(
                OVERWRITTEN,
                f"{e.later.callee.name} overwrites {names}, which an earlier task may still use",
                e.later.op.loc,
                "warning",
                help="write to a new pl.create_tensor(..): a task waits only for the writers of its inputs",
            ),
        )
        first.notes.append((f"{e.earlier.callee.name} uses it", e.earlier.op.loc))
    return list(found.values())


def accesses(function: Function) -> Iterator[tuple[Value, bool, Op]]:
    """Yield the tensors that operations read and write, in order: storage, True if written, operation."""
    for op in function.walk():
        if op.name == "call":
            for value, param in zip(op.args["args"], op.args["callee"].params, strict=False):
                if isinstance(value, Value) and isinstance(value.type, TensorType):
                    if param.direction != OUT:
                        yield root(value), False, op
                    if param.direction != IN:
                        yield root(value), True, op
            continue
        for name, arg in op.args.items():
            for value in values_in(arg):
                if isinstance(value.type, TensorType):
                    if reads(op, name):
                        yield root(value), False, op
                    if writes(op, name):
                        yield root(value), True, op


def _of_several(program: Program) -> set[tuple[str, str]]:
    """Return the parameters that the members of a group share: every member takes all of them, and one member
    writes.
    """
    found: set[tuple[str, str]] = set()
    for group in program.functions.values():
        calls = [op for op in group.walk() if op.name == "call"] if group.kind == "group" else []
        taken: dict[Value, list[tuple[str, str]]] = {}
        for op in calls:
            for value, p in zip(op.args["args"], op.args["callee"].params, strict=False):
                if isinstance(value, Value):
                    taken.setdefault(root(value), []).append((op.args["callee"].name, p.name))
        found.update(one for same in taken.values() if len(same) > 1 for one in same)
    return found


def _directions(function: Function, others: set[tuple[str, str]]) -> list[Diagnostic]:
    first_read: dict[Value, Op] = {}
    first_write: dict[Value, Op] = {}
    for value, write, op in accesses(function):
        if write:
            first_write.setdefault(value, op)
        elif value not in first_write and not _reads_declaration_only(value, op):
            first_read.setdefault(value, op)
    out: list[Diagnostic] = []
    params: list[Param] = []
    for p in function.params:
        direction = p.direction
        if isinstance(p.value.type, TensorType):
            reads, writes = first_read.get(p.value), first_write.get(p.value)
            if direction == IN and writes is not None:
                wanted = OUT if reads is None else INOUT
                out.append(_wrong(p, function, "is written", "only read", writes, wanted))
                function.attrs.setdefault("undeclared", {})[p.name] = wanted
                direction = INOUT
            elif direction == OUT and reads is not None:
                if writes is not None:
                    out.append(
                        _wrong(p, function, "is read before it is written", "only written", reads, INOUT)
                    )
                direction = INOUT
            elsewhere = p.name in function.attrs.get("windows", ()) or (function.name, p.name) in others
            if p.direction != IN and writes is None and not elsewhere:
                out.append(_unwritten(p, function))
        params.append(p.replace(direction=direction))
    function.params = params
    return out


def _reads_declaration_only(value: Value, op: Op) -> bool:
    """Return True if a call reads a tensor only by its declaration: the parameter is an undeclared output."""
    if op.name != "call":
        return False
    undeclared = op.args["callee"].attrs.get("undeclared", {})
    taken = zip(op.args["args"], op.args["callee"].params, strict=False)
    names = [p.name for v, p in taken if isinstance(v, Value) and root(v) is value and p.direction != OUT]
    return all(undeclared.get(name) == OUT for name in names)


def _wrong(p: Param, function: Function, does: str, says: str, op: Op, wanted: str) -> Diagnostic:
    return Diagnostic(
        DIRECTION, f"parameter '{p.name}' of {function.name} {does}, but declared as {says}", op.loc,
            "warning",
        help=_declaration(p, function, "pl.Out" if wanted == OUT else "pl.InOut"),
    )  # fmt: skip


def _declaration(p: Param, function: Function, direction: str) -> str:
    """Return the declaration of a parameter with another direction."""
    place = function.attrs.get("places", {}).get(p.name)
    text = "" if place is None else place.source.text[place.start : place.end].partition(":")[2]
    found = re.fullmatch(r"\s*(?:\w+\.)*(?:Out|InOut)\[(.*)\]\s*", text, re.DOTALL)
    inner = " ".join((found[1] if found else text).split())
    return f"{p.name}: {direction}[{inner or 'pl.Tensor'}]"


def _unwritten(p: Param, function: Function) -> Diagnostic:
    known = (function.attrs.get(where, {}).get(p.name) for where in ("rebound", "places"))
    found = Diagnostic(
        UNWRITTEN, f"output '{p.name}' of {function.name} is never written",
        next(filter(None, known), function.loc), "warning",
        help=f"{p.name}[:] = .. writes into it; {p.name} = .. only rebinds the name",
    )  # fmt: skip
    return found
