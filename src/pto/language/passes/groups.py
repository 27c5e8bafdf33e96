"""Combine the cube part and the vector part of a cluster's function in one program.

The pass `mixed` makes such pairs; authors write them too, as a Group function that calls an AIC and an AIV
function:

    def both(self, a, out):               X_aic and X_aiv, with the parameters of X;
        self.cube(a)                      X calls both
        self.vector(out)

Both get the parameters of the group, and on A2/A3 the memory of their FIFOs after all tensors. Vector
functions that do not query the number of their vector core work on whole tiles; then one vector core does the
work.
"""

from __future__ import annotations

from typing import Any

from ...isa.profiles import Profile
from ..dtypes import DATA_TYPES, INDEX
from ..ir import FIFO_SLOTS, OUT, Dim, Function, Op, Param, ScalarType, TensorType, Value
from ..problems import PLACE, fail
from .rewrite import Rewriter

_SIDES = {"aic": "a cube core", "aiv": "vector cores"}
_OPENS = ("aic_initialize_pipe", "aiv_initialize_pipe")


def slots_at(args: list[Value]) -> int:
    """Return the position of the FIFO slots among the parameters: after all tensors."""
    return max((i + 1 for i, v in enumerate(args) if isinstance(v.type, TensorType)), default=0)


def joined(group: Function, parts: list[Function]) -> Function:
    """Return a function that calls both parts with their parameters."""
    first = parts[0]
    same = Rewriter()
    for value in first.body.args:
        same.map(value, group.body.add_arg(value.type, value.name))
    for value in group.body.args:
        value.type = same.type_of(value.type)
    group.params = [Param(same.values[p.value], p.direction) for p in first.params]
    for part in parts:
        group.body.append(Op("call", {"callee": part, "args": list(group.body.args)}, [], group.loc))
    return group


def grouped(function: Function, profile: Profile, parts: list[Function]) -> Function:
    """Return a user's Group function with its members as parts."""
    calls = {op.args["callee"].kind: op for op in function.body.ops if op.name == "call"}
    if set(calls) != set(_SIDES):
        fail(PLACE, "expected calls of one cube function and one vector function in a Group function",
             function.loc, expected="an AIC function and an AIV function",
             got=", ".join(sorted(calls)) or "none")  # fmt: skip
    names = {op.args["callee"].name: f"{function.name}_{kind}" for kind, op in calls.items()}
    slots = _slots([op.args["callee"] for op in calls.values()]) if profile.isa == "a2a3" else {}
    made = Function(function.name, "mixed", function.loc)
    made.attrs = dict(function.attrs)
    if slots:
        made.attrs["slots"] = sum(slots.values())
    lanes = any(op.name == "get_subblock_idx" for op in calls["aiv"].args["callee"].walk())
    both = [_Member(function, calls[kind], names, slots, lanes).part() for kind in _SIDES]
    parts += both
    return joined(made, both)


def _slots(members: list[Function]) -> dict[int, int]:
    """Return the bytes of the slots of every FIFO."""
    found: dict[int, int] = {}
    for op in (o for f in members for o in f.walk() if o.name in _OPENS):
        a = op.args
        both = a["dir_mask"] == 3
        found[a["id"] or 0] = a["slot_size"] * (a["slot_num"] or (4 if both else 8)) * (2 if both else 1)
    return dict(sorted(found.items()))


class _Member(Rewriter):
    """A member of a group, as a function with the parameters of the group."""

    def __init__(
        self, group: Function, call: Op, names: dict[str, str], slots: dict[int, int], lanes: bool
    ) -> None:
        super().__init__()
        self.group = group
        self.call = call
        self.callee: Function = call.args["callee"]
        self.names = names
        self.slots = slots
        self.memory: Value | None = None
        self.base: Any = 0
        self.once = self.callee.kind == "aiv" and not lanes
        self.whole = not lanes
        self.first: Dim | None = None

    def part(self) -> Function:
        made = Function(self.names[self.callee.name], self.callee.kind, self.callee.loc)
        outer = Rewriter()
        directions = {p.value: p.direction for p in self.group.params}
        args: list[tuple[Value | None, Any]] = [(v, v.type) for v in self.group.body.args]
        if self.slots:
            type = TensorType(DATA_TYPES["UINT8"], (sum(self.slots.values()),))
            args.insert(slots_at(self.group.body.args), (None, type))
        for old, type in args:
            copy = made.body.add_arg(type, old.name if old is not None else FIFO_SLOTS)
            made.params.append(Param(copy, OUT if old is None else directions.get(old, "in")))
            if old is None:
                self.memory = copy
            else:
                outer.map(old, copy)
        for value in made.body.args:
            value.type = outer.type_of(value.type)
        for param, given in zip(self.callee.body.args, outer.of(self.call.args["args"]), strict=True):
            self.values[param] = given
        with self.build.into(made.body):
            self.build.place, self.build.in_core = self.callee.loc, True
            self._begin()
            self.ops(self.callee.body.ops)
        return made

    def _begin(self) -> None:
        if self.memory is not None:
            block = self.build.op("get_block_idx", [ScalarType(INDEX)])
            self.base = self.build.scalar("mul", block, sum(self.slots.values()))
        if self.once:
            lane = self.build.op("get_subblock_idx", [ScalarType(INDEX)])
            self.first = self.build.scalar("eq", lane, 0)

    def copy(self, op: Op) -> Op:
        made = super().copy(op)
        if self.whole and made.args.get("split"):
            made.args["split"] = 0
        return made

    def op_tpush_to_aiv(self, op: Op) -> None:
        """Push the whole tile, including its invalid region, because a FIFO carries whole tiles."""
        made, tile = self.copy(op), op.args["tile"]
        while tile.op is not None and tile.op.name == "set_validshape":
            tile = tile.op.args["x"]
        made.args["tile"] = self.of(tile)

    def _open(self, op: Op) -> None:
        made = self.copy(op)
        if self.memory is not None:
            self.build.block.ops.pop()
            before = sum(n for k, n in self.slots.items() if k < (op.args["id"] or 0))
            made.args |= {
                "gm_slot_buffer": self.memory,
                "gm_offset": self.build.scalar("add", self.base, before),
            }
            self.build.block.append(made)

    op_aic_initialize_pipe = op_aiv_initialize_pipe = _open

    def op_import_peer_buffer(self, op: Op) -> None:
        made = self.copy(op)
        made.args["peer_func"] = self.names.get(op.args["peer_func"], op.args["peer_func"])

    def op_store(self, op: Op) -> None:
        if self.first is None:
            self.copy(op)
            return
        made = Op("if", {"cond": self.first}, [], op.loc)
        with self.build.into(made.add_block()):
            self.copy(op)
            self.build.append("yield", [], {"values": []})
        with self.build.into(made.add_block()):
            self.build.append("yield", [], {"values": []})
        self.build.block.append(made)
