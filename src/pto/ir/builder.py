"""Builder: make operations by name, checked against the table, appended to a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..diag import Source, Span
from ..isa import row as find_row
from .attrs import Attribute, FloatAttr, IntAttr, StrAttr, TypeAttr
from .core import Block, Module, Operation, Region, Value
from .types import INDEX, FunctionType, ScalarType, Type


class Builder:
    """Appends operations to `block`.

        b = Builder.module()
        f = b.func("k", [t, t, t])
        b.at(source.at(12)).op("pto.tadd", src0=f.args[0], src1=f.args[1], dst=f.args[2])

    `built` is the resulting module. New operations get the location `loc`, in any file: their line of Python
    or C++.
    """

    def __init__(self, block: Block, module: Module | None = None) -> None:
        self.block = block
        self.loc: Span | None = None
        self._module = module

    @staticmethod
    def module(attrs: dict[str, Attribute] | None = None) -> Builder:
        op = Operation("builtin.module", find_row("builtin.module"), [], attrs=attrs)
        region = Region(op)
        op.regions = [region]
        return Builder(region.add_block(), Module(op, Source("<built>", "")))

    def at(self, loc: Span | None) -> Builder:
        """Set the location of later operations."""
        self.loc = loc
        return self

    @property
    def built(self) -> Module:
        assert self._module is not None
        return self._module

    def func(self, name: str, inputs: list[Type], attrs: dict[str, Attribute] | None = None) -> Block:
        """Add a function without results; return its entry block, which becomes the insertion point."""
        op = Operation("func.func", find_row("func.func"), [], loc=self.loc)
        op.attrs = {
            "sym_name": StrAttr(name),
            "function_type": TypeAttr(FunctionType(tuple(inputs), ())),
            **(attrs or {}),
        }
        region = Region(op)
        op.regions = [region]
        entry = region.add_block()
        for i, t in enumerate(inputs):
            entry.add_arg(t, f"arg{i}")
        self.built.body.append(op)
        self.block = entry
        return entry

    def op(
        self,
        name: str,
        results: Sequence[Type] | None = None,
        attrs: Mapping[str, Attribute] | None = None,
        **operands: Value | list[Value],
    ) -> Operation:
        """Append one operation; operands by their names in the table."""
        row = find_row(name)
        if row is None:
            raise KeyError(f"no instruction {name!r}")
        unknown = set(operands) - set(row.operand_index)
        if unknown:
            raise TypeError(f"{name} has no operand {sorted(unknown)[0]!r}")
        flat: list[Value] = []
        segments: list[int] = []
        for declared in row.operands:
            given = operands.get(declared.name, [])
            values = given if isinstance(given, list) else [given]
            flat.extend(values)
            segments.append(len(values))
        held = tuple(segments) if row.has_segments else None
        op = Operation(row.full_name, row, flat, list(results or ()), dict(attrs or {}), held, self.loc)
        return self.block.append(op)

    def constant(self, value: int | float, type: ScalarType = INDEX) -> Value:
        attr = FloatAttr(float(value), type) if type.is_float else IntAttr(int(value), type)
        row = find_row("arith.constant")
        op = Operation("arith.constant", row, [], [type], {"value": attr}, loc=self.loc)
        return self.block.append(op).result
