"""MLIR generic form: `"pto.tadd"(%a, %b, %d) <{...}> : (T, T, T) -> ()`, both directions.

The generic form has only names and types, so other MLIR tools can read it. Differences to our operations:
operand groups need `operandSegmentSizes`, comparison predicates are integers, branch arguments are operands.
"""

from __future__ import annotations

import re

from ..ir.attrs import (
    Attribute,
    BoolAttr,
    DenseArrayAttr,
    IntAttr,
    OpaqueAttr,
    StrAttr,
    dict_text,
)
from ..ir.core import Operation
from ..ir.types import I1, I64, FunctionType
from ..isa.row import Row
from .cursor import Cursor, Fail
from .statement import settle
from .writer import FormatWriter

_SEGMENTS = "operandSegmentSizes"
#: Attributes with the sizes of operand groups; the generic form shows them.
_GROUPS = (_SEGMENTS, "operand_segment_sizes", "case_operand_segments")
_BRANCHES = {"cf.br": 0, "cf.cond_br": 1, "cf.switch": 1}  # operands before the branch arguments
_NUMBER = re.compile(r"-?[0-9]{1,20}")
#: Attributes that are lists of flags of the arith dialect, and their MLIR names.
FLAGS = {"overflowFlags": "overflow", "fastmath": "fastmath"}


def from_generic(p: Cursor, op: Operation, row: Row, at: int) -> None:
    """Convert a generic operation to ours, in place."""
    op.name = row.full_name
    sizes, older, cases = (op.attrs.pop(key, None) for key in _GROUPS)
    sizes = sizes or older
    if row.name in _BRANCHES:
        _branch_operands(op, row, sizes, cases)
    elif row.has_segments:
        op.segments = _segments(op, row, sizes, at)
    elif len(op.operands) != len(row.operands):
        raise Fail(at, f"{row.name} takes {len(row.operands)} operands, got {len(op.operands)}")
    settle(row, op.attrs)
    for attr in row.attrs:
        found = op.attrs.get(attr.name)
        if attr.name in FLAGS and isinstance(found, OpaqueAttr):
            word = found.text.partition("<")[2].rstrip(">")
            if word == "none":
                del op.attrs[attr.name]
            else:
                op.attrs[attr.name] = StrAttr(word)
        elif attr.kind == "str" and attr.choices and isinstance(found, IntAttr):
            if not 0 <= found.value < len(attr.choices):
                p.report("PTO-E0112", f"{attr.name} is out of range", at, got=str(found.value))
            op.attrs[attr.name] = StrAttr(str(attr.choices[found.value]))
    value = op.attrs.get("value")
    if row.name == "arith.constant" and isinstance(value, BoolAttr):
        op.attrs["value"] = IntAttr(int(value.value), I1)
    if row.name in ("scf.if", "func.func") and op.regions:
        last = op.regions[-1]  # a missing else, or the body of a declaration
        if len(last.blocks) == 1 and not (last.blocks[0].ops or last.blocks[0].args or last.blocks[0].label):
            last.blocks.clear()


def _segments(op: Operation, row: Row, sizes: Attribute | None, at: int) -> tuple[int, ...]:
    count = len(op.operands)
    if isinstance(sizes, DenseArrayAttr):
        given = tuple(int(v) for v in sizes.value)
        if len(given) != len(row.operands):
            # With fewer groups than in the table, the trailing optional ones are absent.
            given += (0,) * (len(row.operands) - len(given))
        if sum(given) != count or len(given) != len(row.operands) or min(given, default=0) < 0:
            raise Fail(at, f"{_SEGMENTS} {list(sizes.value)} does not fit {count} operands of {row.name}")
        return given
    required = sum(not o.optional and not o.variadic for o in row.operands)
    spare = count - required
    out: list[int] = []
    for o in row.operands:
        if o.variadic:
            out.append(max(spare, 0))
            spare = 0
        elif o.optional:
            out.append(1 if spare > 0 else 0)
            spare -= spare > 0
        else:
            out.append(1)
    if spare != 0 or sum(out) != count:
        raise Fail(at, f"{row.name} takes {required} to {len(row.operands)} operands, got {count}")
    return tuple(out)


def _branch_operands(op: Operation, row: Row, sizes: Attribute | None, cases: Attribute | None) -> None:
    keep = _BRANCHES[row.name]
    rest = op.operands[keep:]
    op.operands = op.operands[:keep]
    op.segments = tuple(1 if i < keep else 0 for i in range(len(row.operands)))
    if row.name == "cf.br" and op.successors:
        op.successors[0].args = rest
        return
    counts = [int(v) for v in sizes.value] if isinstance(sizes, DenseArrayAttr) else []
    if row.name == "cf.switch":
        per_case = [int(v) for v in cases.value] if isinstance(cases, DenseArrayAttr) else []
        counts = [*counts[:2], *per_case]
        values = op.attrs.get("case_values")
        if isinstance(values, OpaqueAttr):
            inside = values.text.partition("<")[2].partition(">")[0].strip("[] ")
            numbers = tuple(v.strip() for v in inside.split(",") if v.strip())
            if all(_NUMBER.fullmatch(v) for v in numbers):  # other text is reported later
                op.attrs["case_values"] = DenseArrayAttr("i64", tuple(map(int, numbers)))
    at = 0
    for successor, count in zip(op.successors, counts[keep:], strict=False):
        successor.args = rest[at : at + count]
        at += count


def to_generic(p: FormatWriter, op: Operation) -> str:
    """Return an operation in generic form, without its results."""
    row = op.row
    operands = list(op.operands)
    properties: dict[str, Attribute] = {}
    attrs: dict[str, Attribute] = {}
    declared = row.attr_index if row else {}
    for key, value in op.attrs.items():
        if row is not None and key in _GROUPS:
            continue
        (properties if key in declared and not key.startswith("pto.") else attrs)[key] = _generic_attr(
            op, key, value
        )
    if row is not None and row.name in _BRANCHES:
        counts = [len(s.args) for s in op.successors]
        for s in op.successors:
            operands.extend(s.args)
        if row.name == "cf.cond_br":
            properties[_SEGMENTS] = DenseArrayAttr("i32", (1, *counts))
        elif row.name == "cf.switch":
            properties[_SEGMENTS] = DenseArrayAttr("i32", (1, counts[0], sum(counts[1:])))
            properties["case_operand_segments"] = DenseArrayAttr("i32", tuple(counts[1:]))
            numbers = op.attr("case_values")
            text = f"dense<[{', '.join(map(str, numbers))}]> : tensor<{len(numbers)}x{op.operands[0].type}>"
            properties["case_values"] = OpaqueAttr(text)
    elif row is not None and sum(o.optional or o.variadic for o in row.operands) > 1:
        properties[_SEGMENTS] = DenseArrayAttr("i32", op.segments or ())
    text = f'"{op.name}"({p.values(operands)})'
    if op.successors:
        text += f"[{', '.join(p.block_label(s.block) for s in op.successors)}]"
    if properties:
        text += f" <{dict_text(properties)}>"
    if op.regions:
        text += f" ({', '.join(p.region(r) for r in op.regions)})"
    if attrs:
        text += f" {dict_text(attrs)}"
    signature = FunctionType(tuple(v.type for v in operands), tuple(r.type for r in op.results))
    return f"{text} : {signature}"


def _generic_attr(op: Operation, key: str, value: Attribute) -> Attribute:
    attr = op.row.attr_index.get(key) if op.row else None
    if attr is not None and isinstance(value, StrAttr) and key == "predicate" and value.value in attr.choices:
        return IntAttr(attr.choices.index(value.value), I64)
    if attr is not None and isinstance(value, StrAttr) and key in FLAGS:
        return OpaqueAttr(f"#arith.{FLAGS[key]}<{value.value}>")
    return value
