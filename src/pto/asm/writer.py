"""Names, scopes and indentation of printed text, for all printed forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..diag import Source
from ..ir.attrs import Attribute, StrAttr, dict_text
from ..ir.core import Block, Module, Operation, Region, Value


class FormatWriter:
    """Base of printers; the printer defines `operation`."""

    def __init__(self, form: str = "pto", locations: bool = False) -> None:
        self.form = form
        self.locations = locations
        self._own: Source | None = None
        self.depth = 0
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._scopes: list[list[str]] = [[]]
        self._labels: dict[Block, str] = {}
        self._region_labels: dict[Region | None, tuple[set[str], int]] = {}
        self._next = 0
        self._first_use: dict[Value, Operation] = {}
        self._hidden: set[Operation] = set()

    if TYPE_CHECKING:

        def operation(self, op: Operation) -> str: ...

        def enter_function(self, op: Operation) -> None: ...

    @contextmanager
    def scope(self) -> Iterator[None]:
        self._scopes.append([])
        try:
            yield
        finally:
            for name in self._scopes.pop():
                self._taken.discard(name)

    def define(self, value: Value) -> str:
        if value in self._names:
            return self._names[value]
        wanted = value.name.partition("#")[0]
        name = f"%{wanted}"
        if not wanted:
            while f"%{self._next}" in self._taken:
                self._next += 1
            name = f"%{self._next}"
            self._next += 1
        elif name in self._taken:
            k = 1
            while f"%{wanted}_{k}" in self._taken:
                k += 1
            name = f"%{wanted}_{k}"
        self._taken.add(name)
        self._scopes[-1].append(name)
        self._names[value] = name
        return name

    def value(self, value: Value) -> str:
        name = self._names.get(value)
        if (
            name is None and value.op is not None and self._common_name(value.op)
        ):  # used before its definition
            name = self._names[value]
        return name or self.define(value)

    def values(self, values: Sequence[Value]) -> str:
        return ", ".join(self.value(v) for v in values)

    def block_label(self, block: Block) -> str:
        """Return the label of a block; labels are local to their region."""
        label = self._labels.get(block)
        if label is None:
            used, first = self._region_labels.setdefault(block.parent, (set(), 0))
            label = block.label
            while not label or label in used:
                label = f"^bb{first}"
                first += 1
            used.add(label)
            self._region_labels[block.parent] = used, first  # no label below ^bb{first} is free
            self._labels[block] = label
        return label

    def results(self, op: Operation) -> str:
        """`%a, %b = ` or `%r:2 = ` for a group named r#0, r#1."""
        if not op.results:
            return ""
        group = self._common_name(op)
        if group:
            return f"{group}:{len(op.results)} = "
        return ", ".join(self.define(r) for r in op.results) + " = "

    def _common_name(self, op: Operation) -> str:
        """Return the common name of results named r#0, r#1, or an empty string."""
        base = op.results[0].name.partition("#")[0]
        if len(op.results) == 1 or any(r.name != f"{base}#{k}" for k, r in enumerate(op.results)):
            return ""
        group = self.define(op.results[0]).partition("#")[0]
        for k, r in enumerate(op.results):
            self._names[r] = f"{group}#{k}"
        return group

    def pad(self) -> str:
        return "  " * self.depth

    def module(self, module: Module) -> str:
        self._own = module.source
        ops = module.body.ops if module.implicit and self.form != "generic" else [module.op]
        return "\n".join(self.operation(op) + self.place(op) for op in ops) + "\n"

    def place(self, op: Operation) -> str:
        """Return ` loc("k.py":3:5)` for an operation from another file than the module, if wanted."""
        if not self.locations or op.loc is None or op.loc.source is self._own:
            return ""
        line, column = op.loc.place
        return f" loc({StrAttr(op.loc.source.name)}:{line}:{column})"

    def region(self, region: Region, entry_args: bool = True, hide: str = "") -> str:
        """Return `{ ... }`; without `entry_args`, the head of the operation has shown the arguments of the
        first block. `hide` is the terminator to leave out if it has no operands.
        """
        lines = ["{"]
        self.depth += 1
        with self.scope():
            for block in region.blocks:  # arguments first: branches may name later blocks
                for arg in block.args:
                    self.define(arg)
            for k, block in enumerate(region.blocks):
                empty = self.form == "generic" and not block.ops
                if (
                    k
                    or empty
                    or (entry_args and block.args)
                    or (k == 0 and block in self.branch_targets(region))
                ):
                    shown = block.args if k or entry_args else ()
                    args = ", ".join(f"{self.value(a)}: {a.type}" for a in shown)
                    label = "  " * (self.depth - 1) + self.block_label(block)
                    lines.append(f"{label}({args}):" if args else f"{label}:")
                for op in block.ops:
                    if op in self._hidden:
                        continue
                    bare = not op.operands and not op.attrs
                    if hide and op is block.ops[-1] and op.name == hide and bare and self.form != "generic":
                        # A second one is an error to show.
                        if [o.name for o in block.ops[-2:]].count(hide) == 1:
                            continue
                    lines.append(self.pad() + self.operation(op) + self.place(op))
        self.depth -= 1
        return "\n".join([*lines, self.pad() + "}"])

    def branch_targets(self, region: Region) -> set[Block]:
        if len(region.blocks) == 1 and not region.blocks[0].label:
            return set()
        return {s.block for b in region.blocks for op in b.ops for s in op.successors}

    def attr_dict(self, attrs: dict[str, Attribute]) -> str:
        return dict_text(attrs)
