"""IR to text. One printer for the four forms; the format of a row is for reading and writing.

    pto      destination style, read by the vendor assembler (the canonical form)
    ssa      results instead of `outs` wherever the program is in SSA form
    asm      PTO-AS statements
    generic  MLIR generic form

Names of values are kept; unnamed ones are numbered. Printing is idempotent.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.attrs import (
    ArrayAttr,
    Attribute,
    BoolAttr,
    DenseArrayAttr,
    EnumAttr,
    FloatAttr,
    IntAttr,
    StrAttr,
    SymbolAttr,
    TypeAttr,
    UnitAttr,
    dict_text,
)
from ..ir.core import Operation, Value
from ..ir.kinds import kind_matches
from ..ir.types import FunctionType, TileBufType
from ..isa.enums import ENUMS, same_enum
from ..isa.format import AttrDict, FormatGroup, Item, Lit, TypeOf, Var, variables
from ..isa.row import Attr, Row
from .generic import to_generic
from .structured import PRINTERS
from .writer import FormatWriter


class Printer(FormatWriter):
    def enter_function(self, op: Operation) -> None:
        self._next = 0
        self._labels.clear()
        self._region_labels.clear()
        if self.form == "ssa":
            self._find_destinations(op)

    def operation(self, op: Operation) -> str:
        if self.form == "generic":
            if op.name == "func.func":
                self.enter_function(op)
            # Name the results after printing the body. If the body uses the results, they already have names.
            body = to_generic(self, op)
            return self.results(op) + body
        show = PRINTERS.get(op.name)
        if show is not None:
            body = show(self, op)
            return self.results(op) + body
        if op.row is None:
            return self.results(op) + to_generic(self, op)
        if self.form == "ssa" and op.row.is_dps:
            text = self._ssa(op)
            if text is not None:
                return text
        return self.results(op) + self.row_text(op)

    def row_text(self, op: Operation) -> str:
        """Return an operation in the format of its row."""
        row = op.row
        assert row is not None
        for form in forms_of(row):
            if form.fits(op):
                text = join(self._items(form.items, op, row, form.attrs))
                name = "return" if op.name == "func.return" else op.name
                return f"{name}{'' if form.tight else ' '}{text}" if text else name
        return to_generic(self, op)

    def _items(self, items: tuple[Item, ...], op: Operation, row: Row, named: set[str]) -> list[str]:
        out: list[str] = []
        for item in items:
            if isinstance(item, Lit):
                out.append(item.text)
            elif isinstance(item, AttrDict):
                rest = {k: v for k, v in op.attrs.items() if k not in named}
                if rest:
                    out.append(dict_text(rest))
            elif isinstance(item, FormatGroup):
                self._group(item, op, row, named, out)
            elif isinstance(item, TypeOf):
                out.append(self._types(item, op, row))
            else:
                out.append(self._variable(item, op, row))
        return [o for o in out if o]

    def _group(self, group: FormatGroup, op: Operation, row: Row, named: set[str], out: list[str]) -> None:
        if not present(group, op, row):
            return
        if not group.repeat:
            out.extend(self._items(group.items, op, row, named))
            return
        # One repetition per tuple of the variadic operand.
        ((name, width),) = _tuples((group,), row)
        values = op.group(name)
        for at in range(0, len(values), width):
            chunk = iter(values[at : at + width])
            for item in group.items:
                if isinstance(item, Lit):
                    out.append(item.text)
                elif isinstance(item, Var):
                    out.append(self.value(next(chunk)))
                elif isinstance(item, TypeOf):
                    out.append(str(next(chunk).type))

    def _types(self, item: TypeOf, op: Operation, row: Row) -> str:
        if item.name in row.operand_index:
            return ", ".join(str(v.type) for v in op.group(item.name))
        index = [r.name for r in row.results].index(item.name)
        if item.many or row.results[index].variadic:
            return ", ".join(str(r.type) for r in op.results[index:])
        return str(op.results[index].type) if index < len(op.results) else ""

    def _variable(self, item: Var, op: Operation, row: Row) -> str:
        if item.name in row.operand_index:
            return self.values(op.group(item.name))
        attr = row.attr_index.get(item.name)
        if attr is not None:
            value = op.attrs.get(item.name)
            return inline_attr(attr, value) if value is not None else ""
        return self.region(op.regions[row.regions.index(item.name)])

    def _find_destinations(self, func: Operation) -> None:
        """Find the tiles that can be SSA results. The first use of each is a write, in the block of its
        allocation."""
        for op in func.walk():
            for value in op.operands:
                self._first_use.setdefault(value, op)
        for op in func.walk():
            if op.row is not None and op.row.is_dps:
                for tile in self._fresh(op) or ():
                    assert tile.op is not None
                    self._hidden.add(tile.op)

    def _fresh(self, op: Operation) -> list[Value] | None:
        """Return the tiles that an operation writes, if all of them can be its results; otherwise None."""
        if not flat_order_is_enough(op) or any(o.optional for o in op.row.outs):  # type: ignore[union-attr]
            return None
        outs = [v for o, v in op.named() if o.role in ("out", "inout")]
        read = [v for o, v in op.named() if o.role in ("in", "inout", "tmp")]
        for value in outs:
            made = value.op
            if (
                made is None or made.name != "pto.alloc_tile" or made.operands or made.attrs
                or made.parent is not op.parent or self._first_use.get(value) is not op or value in read
                or outs.count(value) > 1 or not isinstance(value.type, TileBufType)
                or value.type.v_row is None or value.type.v_col is None
            ):  # fmt: skip
                return None
        return outs

    def _ssa(self, op: Operation) -> str | None:
        if not flat_order_is_enough(op):
            return None
        ins = [v for o, v in op.named() if o.role in ("in", "tmp")]
        outs = [v for o, v in op.named() if o.role in ("out", "inout")]
        attrs = f" {dict_text(op.attrs)}" if op.attrs else ""
        tiles = self._fresh(op)
        if tiles:
            signature = FunctionType(tuple(v.type for v in ins), tuple(t.type for t in tiles))
            names = ", ".join(self.define(t) for t in tiles)
            return f"{names} = {op.name} {self.values(ins)}{attrs} : {signature}"
        if all(v.type.kind in ("view", "tensor_view", "memref") for v in outs):
            signature = FunctionType(tuple(v.type for v in (*ins, *outs)), ())
            return f"{op.name} {self.values([*ins, *outs])}{attrs} : {signature}"
        return None


def flat_order_is_enough(op: Operation) -> bool:
    """Return True if a flat operand list identifies all operands."""
    row = op.row
    if row is None or not row.is_ins_outs or any(o.variadic for o in row.operands):
        return False
    optional = sum(o.optional for o in row.operands)
    return optional <= 1 or sum(op.segments or ()) in (len(row.operands), len(row.operands) - optional)


def present(group: FormatGroup, op: Operation, row: Row) -> bool:
    """Return True if all items of an optional group are present."""
    found = False
    for item in group.items:
        if isinstance(item, Var | TypeOf):
            if not _has(item.name, op, row):
                return False
            found = True
    return found or any(isinstance(i, FormatGroup) and present(i, op, row) for i in group.items)


def _has(name: str, op: Operation, row: Row) -> bool:
    if name in row.operand_index:
        return bool(op.group(name))
    if name in row.attr_index:
        return name in op.attrs
    if name in row.regions:
        return True
    index = [r.name for r in row.results].index(name)
    return index < len(op.results)


def _tuples(items: tuple[Item, ...], row: Row) -> Iterator[tuple[str, int]]:
    """Yield each variadic operand that a repeated group splits, and the values of one repetition."""
    for item in items:
        if isinstance(item, FormatGroup) and item.repeat:
            name = next(v for v in variables(item.items) if v in row.operand_index)
            yield name, sum(isinstance(i, Var | TypeOf) and i.name == name for i in item.items)
        elif isinstance(item, FormatGroup):
            yield from _tuples(item.items, row)


class PrinterForm:
    """A format of a row, with precomputed facts for the printer."""

    __slots__ = (
        "attrs",
        "choosy",
        "has_dict",
        "items",
        "mentioned",
        "needed",
        "result_types",
        "row",
        "tight",
        "widths",
    )

    def __init__(self, items: tuple[Item, ...], row: Row) -> None:
        self.items = items
        self.row = row
        self.mentioned = frozenset(variables(items))
        self.attrs = {name for name in self.mentioned if name in row.attr_index}
        self.needed = [i.name for i in items if isinstance(i, Var) and not i.many]
        results = {r.name for r in row.results}
        typed = [i for i in items if isinstance(i, TypeOf) and i.name in results and not i.many]
        self.result_types = len(typed)
        self.has_dict = any(isinstance(i, AttrDict) for i in items)
        self.widths = dict(_tuples(items, row))
        # The reader distinguishes forms and optional groups by the kinds of their operands.
        self.choosy = row.has_segments or len(row.formats) > 1
        self.tight = isinstance(items[0], Lit) and items[0].text in ("(", "[")

    def fits(self, op: Operation) -> bool:
        """Return True if this format can express all parts of an operation."""
        row = self.row
        if any(not _has(name, op, row) for name in self.needed):
            return False
        for declared, value in op.named():
            if declared.name not in self.mentioned or (
                self.choosy and not kind_matches(declared, value.type)
            ):
                return False
        for declared, _ in zip(row.results, op.results, strict=False):
            if declared.name not in self.mentioned and declared.name not in row.infer:
                return False
        if len(op.results) < self.result_types:
            return False
        if any(len(op.group(name)) % width for name, width in self.widths.items()):
            return False
        if any(name in op.attrs and not sayable(row.attr_index[name], op.attrs[name]) for name in self.attrs):
            return False
        return self.has_dict or all(k in self.mentioned for k in op.attrs)


_forms: dict[str, tuple[PrinterForm, ...]] = {}


def forms_of(row: Row) -> tuple[PrinterForm, ...]:
    found = _forms.get(row.name)
    if found is None:
        found = _forms[row.name] = tuple(PrinterForm(items, row) for items in row.formats)
    return found


_CLASSES: dict[str, type[Attribute] | tuple[type[Attribute], ...]] = {
    "int": IntAttr, "bool": BoolAttr, "float": FloatAttr, "str": StrAttr, "symbol": SymbolAttr,
    "type": TypeAttr, "unit": UnitAttr, "ints": (DenseArrayAttr, ArrayAttr), "any": Attribute,
}  # fmt: skip


def sayable(attr: Attr, value: Attribute) -> bool:
    """Return True if the reader accepts the value at the place of the attribute."""
    if attr.kind in ENUMS:
        return isinstance(value, EnumAttr) and same_enum(value.enum, attr.kind)
    if not isinstance(value, _CLASSES[attr.kind]):
        return False
    if isinstance(value, StrAttr) and (attr.keyword or attr.choices):
        return attr.admits(value.value) if attr.choices else value.value.isidentifier()
    return True


def inline_attr(attr: Attr, value: Attribute) -> str:
    """Return an attribute at its place in the format."""
    if isinstance(value, EnumAttr):
        if attr.kind in ("sync_op_type", "pipe_event_type"):
            return str(value)  # attributes of two kinds are legal there, and the prefix distinguishes them
        return f"<{value.value}>"
    if isinstance(value, StrAttr):
        return value.value if attr.keyword else str(value)
    if isinstance(value, IntAttr) and attr.kind == "int":
        return str(value.value)
    if isinstance(value, DenseArrayAttr) and attr.kind == "ints":
        return "[" + ", ".join(map(str, value.value)) + "]"
    return str(value)


_TIGHT_BEFORE = (")", "]", "}", ">", ",")


def join(parts: list[str]) -> str:
    """Join tokens with the usual spacing: `ins(%a, %b : T, T) outs(%d : T) {x}`."""
    out = ""
    for part in parts:
        if not out:
            out = part
            continue
        last = out[-1]
        tight = (
            part in _TIGHT_BEFORE
            or (last in "([{" and not out.endswith("->"))
            or (last == "<" and out[-2:] != " <")
            or (part in ("(", "[", "<") and (last.isalnum() or last == "_"))
        )
        out += part if tight else " " + part
    return out
