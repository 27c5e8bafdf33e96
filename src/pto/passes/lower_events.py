"""Lower events of instruction classes to flags and barriers of pipes.

    pto.record_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]
    pto.barrier_sync[#pto.sync_op_type<TMATMUL>]
becomes
    pto.set_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]
    pto.barrier #pto.pipe<PIPE_M>

The vector pipe of A5 is in order, and no instruction drains it alone: barriers of PIPE_V are removed there.
"""

from __future__ import annotations

from ..ir.attrs import Attribute, EnumAttr
from ..ir.core import Operation
from ..isa.enums import SYNC_OP_PIPE
from .edit import make, rewrite
from .pipeline import PassContext

_FLAGS = {"pto.record_event": "pto.set_flag", "pto.wait_event": "pto.wait_flag"}
_OWN = ("src_op", "dst_op", "op_type")


def run(ctx: PassContext) -> None:
    in_order = ctx.profile.isa == "a5"

    def lowered(op: Operation) -> list[Operation] | None:
        flag = _FLAGS.get(op.name)
        if flag is not None:
            attrs = {"src_pipe": _pipe(op, "src_op"), "dst_pipe": _pipe(op, "dst_op"), **_rest(op)}
            return [make(flag, op, (), attrs)]
        if op.name == "pto.barrier_sync":
            pipe = _pipe(op, "op_type")
            if in_order and pipe.value == "PIPE_V":
                return []
            return [make("pto.barrier", op, (), {"pipe": pipe, **_rest(op)})]
        if op.name == "pto.barrier" and in_order and op.attr("pipe") == "PIPE_V":
            return []
        return None

    for func in ctx.module.functions:
        rewrite(func.regions[0], lowered)


def _pipe(op: Operation, attr: str) -> Attribute:
    return EnumAttr("pipe", SYNC_OP_PIPE[str(op.attr(attr))])


def _rest(op: Operation) -> dict[str, Attribute]:
    return {name: value for name, value in op.attrs.items() if name not in _OWN}
