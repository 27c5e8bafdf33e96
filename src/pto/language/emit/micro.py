"""Vector code: emit runs of register operations as vecscopes.

Numbers and the addresses of tiles are computed before a vecscope; loops that hold nothing else are part of
it.
"""

from __future__ import annotations

from typing import Any

from ...ir.attrs import EnumAttr, StrAttr
from ...ir.core import Operation
from ...ir.core import Value as PtoValue
from ...ir.types import I32, PtrType, TileBufType, VRegType
from ...ir.types import MaskType as PtoMask
from ...ir.types import Type as PtoType
from ...isa import row as find_row
from ..dtypes import INT32, DataType
from ..enums import COMPARISONS
from ..ir import Block, MaskType, Op, Type, Value, VectorType
from ..operators.micro import ROUNDINGS
from .emission import Emission
from .types import element, number


def is_micro(op: Op) -> bool:
    """Return True for an operation on registers, or a loop or if of such operations only."""
    if op.name.startswith("micro."):
        return True
    inside = [o for block in op.blocks for o in block.ops]
    return any(is_micro(o) for o in inside) and all(is_micro(o) or _is_number(o) for o in inside)


def _is_number(op: Op) -> bool:
    return op.name.startswith("scalar.") or op.name in ("const", "yield")


class Micros(Emission):
    scope: Operation | None = None
    addresses: dict[PtoValue, PtoValue]
    masks: dict[int, PtoValue]

    def block(self, block: Block) -> None:
        ops = list(block.ops)
        while ops:
            run = []
            if self.scope is None and is_micro(ops[0]):
                while ops and (is_micro(ops[0]) or (ops[0].name != "yield" and _is_number(ops[0]))):
                    run.append(ops.pop(0))
                self.vecscope(run)
                continue
            op = ops.pop(0)
            self.place(op.loc)
            self.op(op)

    def vecscope(self, run: list[Op]) -> None:
        for op in run:
            if not is_micro(op):
                self.place(op.loc)
                self.op(op)
        self.place(run[0].loc)
        self.addresses, self.masks = {}, {}
        for op in (o for outer in run for o in outer.walk() if o.name in ("micro.vlds", "micro.vsts")):
            tile = self.values[op.args["tile"]]
            if tile not in self.addresses:
                assert isinstance(tile.type, TileBufType)
                type = PtrType(tile.type.elem, "ub")
                self.addresses[tile] = self.build.op("pto.tile_buf_addr", [type], tile=tile).result
        made, (inner,) = self._structure("pto.vecscope", [], 1)
        outer, self.build.block = self.build.block, inner
        self.scope = made
        for bits in sorted({b for o in run for b in _widths(o)}):
            self.masks[bits] = self.build.op(
                f"pto.pset_b{bits}", [PtoMask(f"b{bits}")], {"pattern": StrAttr("PAT_ALL")}
            ).result
        for op in run:
            if is_micro(op):
                self.place(op.loc)
                self.op(op)
        self.scope, self.build.block = None, outer

    def passed(self, type: Type) -> PtoType:
        """Return the type of a value that loops and branches hand on, without tiles."""
        if isinstance(type, VectorType):
            return VRegType(element(type.dtype), type.lanes)
        return PtoMask(f"b{type.bits}") if isinstance(type, MaskType) else number(type.dtype)

    def micro(self, op: Op) -> None:
        """Emit an operator that is one instruction on registers."""
        row = find_row(f"pto.{op.name.removeprefix('micro.')}")
        assert row is not None
        first = next(
            v.type.dtype for v in op.args.values() if isinstance(getattr(v, "type", None), VectorType)
        )
        operands: dict[str, Any] = {}
        for o in row.operands:
            value = op.args.get(o.name)
            if o.kind == "mask":
                operands[o.name] = self.values[value] if value is not None else self.masks[first.bits]
            elif isinstance(value, Value) and isinstance(value.type, VectorType):
                operands[o.name] = self.values[value]
            elif value is not None:
                operands[o.name] = self.number(value, first)
        attrs = {}
        if "cmp_mode" in op.args:
            kind = row.attr_index["cmp_mode"].kind
            word = COMPARISONS[op.args["cmp_mode"]]
            attrs["cmp_mode"] = StrAttr(word) if kind == "str" else EnumAttr(kind, word)
        made = self.build.op(row.full_name, [self.passed(op.result.type)], attrs, **operands)
        self.named_result(op, made.result)

    def named_result(self, op: Op, value: PtoValue) -> None:
        self.values[op.result] = value
        value.name = op.result.name

    def op_micro_vlds(self, op: Op) -> None:
        source = self.addresses[self.values[op.args["tile"]]]
        made = self.build.op(
            "pto.vlds", [self.passed(op.result.type)], source=source, offset=self.index(op.args["offset"])
        )
        self.named_result(op, made.results[0])

    def op_micro_vsts(self, op: Op) -> None:
        a = op.args
        bits = a["value"].type.dtype.bits
        mask = self.masks[bits] if a["mask"] is None else self.values[a["mask"]]
        dest = self.addresses[self.values[a["tile"]]]
        self.build.op(
            "pto.vsts", None, {"dist": StrAttr(f"NORM_B{bits}")}, value=self.values[a["value"]], dest=dest,
            offset=self.index(a["offset"]), mask=mask,
        )  # fmt: skip

    def op_micro_plt(self, op: Op) -> None:
        bits = op.result.type.bits
        n = self.number(op.args["n"], INT32)
        made = self.build.op(f"pto.plt_b{bits}", [PtoMask(f"b{bits}"), I32], scalar=n)
        self.named_result(op, made.results[0])

    def op_micro_vcvt(self, op: Op) -> None:
        a = op.args
        have, want = a["value"].type.dtype, op.result.type.dtype
        attrs: dict[str, Any] = {"rnd": StrAttr(ROUNDINGS[a["mode"]])}
        if a["sat"]:
            attrs["sat"] = StrAttr("SAT")
        lanes = max(have.bits, want.bits) // min(have.bits, want.bits)
        if lanes > 1:
            attrs["part"] = StrAttr(("EVEN", "ODD")[a["part"]] if lanes == 2 else f"P{a['part']}")
        mask = self.masks[have.bits] if a["mask"] is None else self.values[a["mask"]]
        made = self.build.op(
            "pto.vcvt", [self.passed(op.result.type)], attrs, input=self.values[a["value"]], mask=mask
        )
        self.named_result(op, made.result)

    def op_micro_vdup(self, op: Op) -> None:
        dtype: DataType = op.args["dtype"]
        value = self.number(op.args["value"], dtype)
        made = self.build.op(
            "pto.vdup", [self.passed(op.result.type)], input=value, mask=self.masks[dtype.bits]
        )
        self.named_result(op, made.result)


def _widths(op: Op) -> list[int]:
    """Return the lane widths of operations without a mask operand, in bits."""
    found = []
    for o in op.walk():
        for v in (*o.args.values(), *o.results):
            if isinstance(v, Value) and isinstance(v.type, VectorType):
                found.append(v.type.dtype.bits)
    return found
