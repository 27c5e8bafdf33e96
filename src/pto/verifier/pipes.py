"""Pipes named by flags and barriers must exist on the core the code runs on.

A cube core has MTE1, M and FIX and no V; a vector core has only V of these. Both have S, MTE2 and MTE3.
Buffer tokens are left out: public programs name them by operation classes of the other core.
"""

from __future__ import annotations

from ..ir.context import Context
from ..ir.core import Operation
from ..isa.enums import SYNC_OP_PIPE
from ..isa.machine import CORES, ONLY_ON, SECTIONS

_NAMES = ("src_pipe", "dst_pipe", "pipe", "src_op", "dst_op", "op_type")
_ORDERS = ("set", "wait", "barrier")


def check_pipes(context: Context) -> None:
    for func in context.module.functions:
        kind = str(func.attr("pto.kernel_kind"))
        _walk(context, func, kind if kind in CORES else None)


def _walk(context: Context, op: Operation, core: str | None) -> None:
    core = SECTIONS.get(op.name, core)
    if core is not None and op.row is not None and op.row.order in _ORDERS:
        for name in _NAMES:
            written = str(op.attr(name))
            pipe = SYNC_OP_PIPE.get(written, written)
            where = ONLY_ON.get(pipe.removeprefix("PIPE_"), core)
            if where != core:
                context.report(
                    op, "PTO-E1003", f"cannot use {pipe} on a {core} core", at=written,
                    expected=f"one of {', '.join(CORES[core].pipes)}", got=pipe,
                    help=f"name a pipe of the {core} core, or move it into pto.section.{where}",
                )  # fmt: skip
                break
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                _walk(context, child, core)
