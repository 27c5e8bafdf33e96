"""Emit signals between ranks as instructions."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.attrs import EnumAttr
from ...ir.core import Value as PtoValue
from ...ir.types import ViewType
from ..dtypes import INT32
from ..enums import NotifyOp, WaitCmp
from ..ir import Op
from .emission import Emission
from .types import element

_NOTIFY = {NotifyOp.Set: "Set", NotifyOp.AtomicAdd: "AtomicAdd"}
_WAIT = {WaitCmp.Eq: "eq", WaitCmp.Ge: "ge"}


def _cell(e: Emission, op: Op) -> PtoValue:
    """Return one element of a tensor of any layout."""
    pointer = e._pointer(op.args["signal"])
    at = e._flat(op.args["signal"], op.args["offset"])
    pointer = e.build.op("pto.addptr", [pointer.type], ptr=pointer, offset=at).result
    one, zero, i32 = e.index(1), e.index(0), element(INT32)
    view = e.build.op("pto.make_tensor_view", [ViewType(i32, (1, 1), "tensor_view")], ptr=pointer,
                      shape=[one, one], strides=[one, one]).result  # fmt: skip
    return e.build.op("pto.partition_view", [ViewType(i32, (1, 1))], source=view, offsets=[zero, zero],
                      sizes=[one, one]).result  # fmt: skip


def notify(e: Emission, op: Op) -> None:
    a, signal = op.args, _cell(e, op)
    attrs = {"notifyOp": EnumAttr("notify_op", _NOTIFY[a["op"]])}
    e.build.op("pto.tnotify", None, attrs, signal=signal, value=e.number(a["value"], INT32))


def wait(e: Emission, op: Op) -> None:
    a, signal = op.args, _cell(e, op)
    attrs = {"cmp": EnumAttr("wait_cmp", _WAIT[a["cmp"]])}
    e.build.op("pto.twait", None, attrs, signal=signal, cmpValue=e.number(a["value"], INT32))


EMITTERS: dict[str, Callable[[Emission, Op], None]] = {"system.notify": notify, "system.wait": wait}
