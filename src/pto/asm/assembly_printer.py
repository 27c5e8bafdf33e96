"""IR to PTO-AS, the assembly form; see `assembly`, which reads it."""

from __future__ import annotations

from ..ir.attrs import DictAttr, FloatAttr, IntAttr, symbol_text
from ..ir.core import Module, Operation
from ..ir.types import FunctionType
from .flat import reads_destinations_first
from .printer import Printer, flat_order_is_enough


class _AssemblyPrinter(Printer):
    def __init__(self) -> None:
        super().__init__("asm")

    def module(self, module: Module) -> str:
        lines: list[str] = []
        if module.attrs:
            lines.append(f".module {self.attr_dict(module.attrs)}")
        for op in module.body.ops:
            if op.name == "func.func":
                lines.extend(self._function(op))
            else:
                lines.append(self.operation(op))
        return "\n".join(lines) + "\n"

    def _function(self, op: Operation) -> list[str]:
        signature: FunctionType = op.attrs["function_type"].value
        skip = ("sym_name", "function_type", "sym_visibility", "arg_attrs")
        rest = {k: v for k, v in op.attrs.items() if k not in skip}
        shown = f" {self.attr_dict(rest)}" if rest else ""
        name = symbol_text(op.attr("sym_name"))
        body = op.regions[0]
        if not body.blocks:
            private = {"sym_visibility": op.attrs["sym_visibility"]} if "sym_visibility" in op.attrs else {}
            both = {**private, **rest}
            return [f".declare {name} : {signature}{' ' + self.attr_dict(both) if both else ''}"]
        self.enter_function(op)
        private_word = "private " if op.attr("sym_visibility") == "private" else ""
        lines = [f".func {private_word}{name}{shown}"]
        notes = op.attrs.get("arg_attrs")
        with self.scope():
            for i, arg in enumerate(body.blocks[0].args):
                extra = notes.items[i] if notes is not None and i < len(notes.items) else None  # type: ignore[attr-defined]
                tail = f" {extra}" if isinstance(extra, DictAttr) and extra.items else ""
                lines.append(f".arg {self.define(arg)} : {arg.type}{tail}")
            lines.extend(f".result {t}" for t in signature.results)
            for k, block in enumerate(body.blocks):
                if k or block in self.branch_targets(body):
                    args = ", ".join(f"{self.define(a)}: {a.type}" for a in (block.args if k else ()))
                    lines.append(
                        f"{self.block_label(block)}({args}):" if args else f"{self.block_label(block)}:"
                    )
                ended = False
                for child in block.ops:
                    bare_return = child.name == "func.return" and not child.operands
                    if bare_return and len(body.blocks) == 1 and child is block.ops[-1] and not ended:
                        continue
                    ended = bare_return  # a second return is an error, and as such has to stay visible
                    lines.append(self.operation(child))
        lines.append(".end")
        return lines

    def operation(self, op: Operation) -> str:
        value = op.attrs.get("value")
        if (
            op.name == "arith.constant"
            and self.depth == 0
            and isinstance(value, IntAttr | FloatAttr)
            and len(op.attrs) == 1
        ):
            name = self.define(op.result)
            return f".const {name} = {super().operation(op).removeprefix(f'{name} = arith.constant ')}"
        if op.row is not None and op.row.is_dps and op.row.dialect == "pto":
            text = self._statement(op)
            if text is not None:
                return text
        return super().operation(op)

    def _statement(self, op: Operation) -> str | None:
        """Return `tadd %dst, %src0, %src1 {attrs} : types`, if the flat order identifies all operands."""
        row = op.row
        assert row is not None
        if not flat_order_is_enough(op) or any(o.optional for o in row.outs):
            return None
        outs = [v for o, v in op.named() if o.role in ("out", "inout")]
        ins = [v for o, v in op.named() if o.role in ("in", "tmp")]
        values = [*outs, *ins]
        if not reads_destinations_first(row, values):
            return None
        types = [str(v.type) for v in values]
        shown = types[0] if len(set(types)) == 1 and len(types) > 1 else ", ".join(types)
        attrs = f" {self.attr_dict(op.attrs)}" if op.attrs else ""
        return f"{row.name} {self.values(values)}{attrs} : {shown}"


def _sayable(module: Module) -> bool:
    """Return True if the module has only functions, none inside another; assembly has no other contents."""
    top = module.body.ops
    symbols = sum(op.name in ("func.func", "builtin.module") for op in module.walk())
    return all(op.name == "func.func" for op in top) and symbols == len(top) + 1


def to_assembly(module: Module) -> str:
    if not _sayable(module):
        return Printer().operation(module.op) + "\n"
    return _AssemblyPrinter().module(module)
