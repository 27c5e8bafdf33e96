"""FIFOs between cores as instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.attrs import BoolAttr, EnumAttr, IntAttr, StrAttr, SymbolAttr
from ...ir.types import ScalarType
from ..ir import Op
from ..operators.fifo import C2V, V2C
from .emission import Emission
from .types import tile_type

_I32 = ScalarType("i32")


def _attrs(op: Op) -> dict[str, IntAttr]:
    out: dict[str, IntAttr] = {"split": IntAttr(op.args.get("split") or 0)}
    if op.args.get("id"):
        out["id"] = IntAttr(op.args["id"])
    return out


def push(e: Emission, op: Op) -> None:
    e.build.op(f"pto.{op.name}", None, _attrs(op), tile=e.values[op.args["tile"]])


def pop(e: Emission, op: Op) -> None:
    t = op.result.type
    made = tile_type(t, e.profile)
    operands: dict[str, Any] = {}
    if made.v_row is None or made.v_col is None:
        rows, cols = e._extents(t)
        operands["valid_row"] = rows if rows is not None else e.index(made.v_row or 0)
        operands["valid_col"] = cols if cols is not None else e.index(made.v_col or 0)
        made = made.replace(v_row=None, v_col=None)
    e.values[op.result] = e.build.op(f"pto.{op.name}", [made], _attrs(op), **operands).result
    e.values[op.result].name = op.result.name


def free(e: Emission, op: Op) -> None:
    name = op.name.replace("_to_", "_from_")
    e.build.op(f"pto.{name}", None, _attrs(op))


def initialize(e: Emission, op: Op) -> None:
    a = op.args
    attrs = {
        k: IntAttr(a[k]) for k in ("id", "dir_mask", "slot_size", "slot_num", "local_slot_num") if a.get(k)
    }
    buffers = [k for k, way in (("c2v_consumer_buf", C2V), ("v2c_consumer_buf", V2C)) if a["dir_mask"] & way]
    operands = {k: e.values[a[k]] for k in buffers if a.get(k) is not None}
    if a.get("gm_slot_buffer") is not None:
        pointer = e.values[a["gm_slot_buffer"]]
        operands["gm_slot_buffer"] = e.build.op(
            "pto.addptr", [pointer.type], ptr=pointer, offset=e.index(a["gm_offset"])
        ).result
    e.build.op(f"pto.{op.name}", (), attrs, **operands)


def reserve(e: Emission, op: Op) -> None:
    where = "mat" if e.function.kind == "aic" else "vec"
    attrs = {"name": StrAttr(op.args["name"]), "size": IntAttr(op.args["size"]), "auto": BoolAttr(True),
             "location": EnumAttr("address_space", where)}  # fmt: skip
    e.values[op.result] = e.build.op("pto.reserve_buffer", [_I32], attrs).result


def import_peer(e: Emission, op: Op) -> None:
    attrs = {"name": StrAttr(op.args["name"]), "peer_func": SymbolAttr(op.args["peer_func"])}
    e.values[op.result] = e.build.op("pto.import_reserved_buffer", [_I32], attrs).result


EMITTERS: dict[str, Callable[[Emission, Op], None]] = {
    "tpush_to_aiv": push, "tpush_to_aic": push, "tpop_from_aic": pop, "tpop_from_aiv": pop,
    "tfree_to_aic": free, "tfree_to_aiv": free, "reserve_buffer": reserve, "import_peer_buffer": import_peer,
    "aic_initialize_pipe": initialize, "aiv_initialize_pipe": initialize,
}  # fmt: skip
