"""Signals between ranks as instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...ir.attrs import EnumAttr
from ..dtypes import INT32
from ..ir import Op
from ..operators.ranks import NotifyOp, WaitCmp

if TYPE_CHECKING:
    from .incore import Emitter

_NOTIFY = {NotifyOp.Set: "Set", NotifyOp.AtomicAdd: "AtomicAdd"}
_WAIT = {WaitCmp.Eq: "eq", WaitCmp.Ge: "ge"}


def notify(e: Emitter, op: Op) -> None:
    a = op.args
    signal = e.window(a["signal"], a["offset"], [1] * len(a["offset"]))
    attrs = {"notifyOp": EnumAttr("notify_op", _NOTIFY[a["op"]])}
    e.build.op("pto.tnotify", None, attrs, signal=signal, value=e.number(a["value"], INT32))


def wait(e: Emitter, op: Op) -> None:
    a = op.args
    signal = e.window(a["signal"], a["offset"], [1] * len(a["offset"]))
    attrs = {"cmp": EnumAttr("wait_cmp", _WAIT[a["cmp"]])}
    e.build.op("pto.twait", None, attrs, signal=signal, cmpValue=e.number(a["value"], INT32))


EMITTERS: dict[str, Callable[[Emitter, Op], None]] = {"system.notify": notify, "system.wait": wait}
