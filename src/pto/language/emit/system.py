"""Emit synchronization of pipes and cores, and arrays on the stack, as instructions."""

from __future__ import annotations

from typing import Any

from ...ir.attrs import EnumAttr, IntAttr
from ...ir.types import LocalArrayType
from ..dtypes import INT32
from ..ir import Op
from .emission import Emission
from .types import number


class Systems(Emission):
    def barrier(self, pipe: str) -> None:
        self.build.op("pto.barrier", None, {"pipe": EnumAttr("pipe", f"PIPE_{pipe}")})

    def op_system_bar_v(self, op: Op) -> None:
        self.barrier("V")

    def op_system_bar_m(self, op: Op) -> None:
        self.barrier("M")

    def op_system_bar_all(self, op: Op) -> None:
        self.barrier("ALL")

    def op_system_sync_src(self, op: Op) -> None:
        self._flag("pto.set_flag", op)

    def op_system_sync_dst(self, op: Op) -> None:
        self._flag("pto.wait_flag", op)

    def _flag(self, name: str, op: Op) -> None:
        a = op.args
        attrs = {
            "src_pipe": EnumAttr("pipe", f"PIPE_{a['set_pipe'].name}"),
            "dst_pipe": EnumAttr("pipe", f"PIPE_{a['wait_pipe'].name}"),
            "event_id": EnumAttr("event", f"EVENT_ID{a['event_id']}"),
        }
        self.build.op(name, None, attrs)

    def op_system_sync_set(self, op: Op) -> None:
        self._signal("pto.sync.set", op)

    def op_system_sync_wait(self, op: Op) -> None:
        self._signal("pto.sync.wait", op)

    def _signal(self, name: str, op: Op) -> None:
        a = op.args
        attrs: dict[str, Any] = {"pipe": EnumAttr("pipe", f"PIPE_{a['pipe'].name}")}
        more: dict[str, Any] = {}
        if isinstance(a["event_id"], int):
            attrs["event_id"] = IntAttr(a["event_id"])
        else:
            more["event_id_dyn"] = self.index(a["event_id"])
        if a.get("ffts_mode") is not None:
            attrs["ffts_mode"] = IntAttr(a["ffts_mode"])
        self.build.op(name, None, attrs, **more)

    def op_system_syncall(self, op: Op) -> None:
        a = op.args
        attrs = {
            "mode": EnumAttr("sync_all_mode", a["mode"]),
            "core_type": EnumAttr("sync_core_type", a["core_type"]),
        }
        more: dict[str, Any] = {}
        if a["gm_workspace"] is not None:
            more["gm_workspace"] = self.tensors[a["gm_workspace"]].ptr
        if a["used_cores"] is not None:
            more["used_cores"] = self.number(a["used_cores"], INT32)
        self.build.op("pto.syncall", None, attrs, **more)

    def op_system_fence(self, op: Op) -> None:
        self.build.op("pto.fence.barrier_all", None, {"scope": EnumAttr("fence_scope", "gm")})

    def op_system_cacheinvalid(self, op: Op) -> None:
        self.build.op("pto.cmo.cacheinvalid", None, {"space": EnumAttr("address_space", "gm")})

    # ---- arrays ----

    def op_array_create(self, op: Op) -> None:
        t = op.result.type
        type = LocalArrayType(number(t.dtype), (t.extent,))
        self.values[op.result] = self.build.op("pto.declare_local_array", [type]).result
        self.values[op.result].name = op.result.name

    def op_array_read(self, op: Op) -> None:
        a = op.args
        made = self.build.op("pto.local_array_get", [number(op.result.type.dtype)], array=self.values[a["x"]],
                             indices=[self.index(a["offset"])])  # fmt: skip
        self.values[op.result] = made.result
        made.result.name = op.result.name

    def op_array_write(self, op: Op) -> None:
        a = op.args
        value = self.number(a["value"], a["x"].type.dtype)
        self.build.op(
            "pto.local_array_set", array=self.values[a["x"]], indices=[self.index(a["offset"])], value=value
        )
