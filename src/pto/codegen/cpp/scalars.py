"""Scalar code: constants, and the expressions of the arith and math rows.

The spelling of a row holds `$T` (type of the first result), `$S` (of the first operand), `u$T` (unsigned),
`$B` (unsigned, as wide as `$T`) and `$W` (twice as wide). An operand is put in parentheses where its place
needs them; one that a spelling names twice becomes a variable first.
"""

from __future__ import annotations

import re

from ...ir.attrs import BoolAttr, FloatAttr, IntAttr
from ...ir.core import Operation, Value
from ...ir.types import ShapedType
from ...isa.row import Row
from .function import ATOM, CAST, OTHER, CppFunction, handles
from .spelling import bits_of, fits, literal, unsigned

#: Place of an operand: alone, after a cast or sign, or beside an operator.
_ALONE, _UNARY, _BINARY = range(3)

Segment = str | tuple[str, int]  # text, or the name of an operand with its place


class _Expression:
    """One statement of a spelling with its types."""

    def __init__(self, text: str, types: dict[str, str]) -> None:
        self.target = ""
        m = re.match(r"\$(\w+) = ", text)
        if m:
            self.target, text = m[1], text[m.end() :]
        for name, spelled in types.items():
            if f"${name}" not in text:
                continue
            text = re.sub(rf"\bu\${name}\b", unsigned(spelled), text)
            text = re.sub(rf"\${name}\b", spelled, text)
        if types["T"] == "double":
            text = re.sub(r"\b(\w+)f\(", r"\1(", text)
        self.segments: list[Segment] = []
        self.mentions: dict[str, int] = {}
        at = 0
        for m in re.finditer(r"\$(\w+)", text):
            self.segments.append(text[at : m.start()])
            self.segments.append((m[1], _place(text, m)))
            self.mentions[m[1]] = self.mentions.get(m[1], 0) + 1
            at = m.end()
        self.segments.append(text[at:])
        self.kind = _kind(text, types["T"])


def _place(text: str, m: re.Match[str]) -> int:
    before, after = text[: m.start()], text[m.end() :]
    if (not before or before.endswith(("(", ", "))) and (not after or after.startswith((")", ","))):
        return _ALONE if not before.endswith("(") or re.search(r"\w\($", before) else _BINARY
    return _UNARY if before.endswith((") ", "-", "!")) else _BINARY


def _kind(text: str, type: str) -> int:
    if text.startswith(f"({type}) "):
        rest = text[len(type) + 3 :]
        if re.fullmatch(r"\$\w+|\(\w+\) \$\w+", rest) or _closes(rest) == len(rest):
            return CAST
    m = re.match(r"\w+(<\w+>)?(?=\()", text)
    return ATOM if m and m.end() + _closes(text[m.end() :]) == len(text) else OTHER


def _closes(text: str) -> int:
    """Return the length of the group in parentheses at the start of a text; -1 if there is none."""
    depth = 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return i + 1 if i else -1
    return -1


_cache: dict[tuple[str, str, str], list[_Expression]] = {}

#: Spellings for i1 that differ from those of numbers: its signed values are 0 and -1.
_OF_I1 = {
    "arith.maxsi": "(bool) ($lhs & $rhs)", "arith.minsi": "(bool) ($lhs | $rhs)",
    "arith.addui_extended": "$sum = $lhs != $rhs; $overflow = (bool) ($lhs & $rhs)",
    "arith.mulsi_extended": "$low = (bool) ($lhs & $rhs); $high = false",
    "arith.mului_extended": "$low = (bool) ($lhs & $rhs); $high = false",
}  # fmt: skip


def _expressions(row: Row, result: str, source: str) -> list[_Expression]:
    key = row.name, result, source
    found = _cache.get(key)
    if found is None:
        bits = bits_of(result)
        types = {
            "T": result,
            "S": source,
            "B": f"uint{bits}_t",
            "W": f"int{min(2 * bits, 64)}_t" if bits < 64 else "__int128",
        }
        spelling = row.cpp
        if row.name == "arith.muli" and bits == 16:  # int is too narrow for the product of two uint16_t
            spelling = spelling.replace("u$T", "uint32_t")
        if result == "bool":
            spelling = _OF_I1.get(row.name, spelling)
        found = _cache[key] = [_Expression(text, types) for text in spelling.split("; ")]
    return found


def expression(f: CppFunction, op: Operation) -> None:
    """Emit a row of arith or math."""
    row = op.row
    assert row is not None
    if not any(f.count.get(r) for r in op.results):
        return
    result = f.types(op.results[0].type)
    source = f.types(op.operands[0].type)
    for e in _expressions(row, result, source):
        out: list[str] = []
        for segment in e.segments:
            if isinstance(segment, str):
                out.append(segment)
                continue
            name, place = segment
            index = row.operand_index.get(name)
            if index is None:  # an earlier result of this operation
                out.append(f.text(op.results[[r.name for r in row.results].index(name)]))
                continue
            value = op.operands[index]
            if e.mentions[name] > 1 and not _short(f, value):
                f.name(value, f.atom(value))
            out.append((f.text, f.unary, f.operand)[place](value))
        text = "".join(out)
        if e.target:
            at = next(i for i, r in enumerate(row.results) if r.name == e.target)
            f.declare(op.results[at], f.types(op.results[at].type), text)
        else:
            f.define(op.results[0], *_as_bool(op, text, e.kind, result), result)


def _short(f: CppFunction, value: Value) -> bool:
    """Return True if a value may be printed more than once."""
    text, kind = f.known.get(value, ("", ATOM))
    return kind == ATOM or (kind == CAST and len(text) < 24)


def _as_bool(op: Operation, text: str, kind: int, type: str) -> tuple[str, int]:
    """Keep the lowest bit for arithmetic of i1."""
    if type != "bool" or op.name not in _WRAPPING:
        return text, kind
    return f"(bool) ({text.removeprefix('(bool) ')} & 1)", CAST


_WRAPPING = frozenset(("arith.addi", "arith.subi", "arith.muli", "arith.shli"))


@handles("arith.constant")
def _constant(f: CppFunction, op: Operation) -> None:
    result = op.results[0]
    value = op.attrs["value"]
    if not isinstance(value, IntAttr | FloatAttr | BoolAttr):
        _list(f, result, str(value))
        return
    type = f.types(result.type)
    if isinstance(value, IntAttr) and type != "bool" and not fits(value.value, type):
        number = str(value.value) if value.value.bit_length() < 128 else "a larger one"
        f.unit.report(
            op, "PTO-E1303",
            f"cannot emit a constant that does not fit in {type}, the C++ type of {result.type}",
            expected=f"a number of {bits_of(type)} bits", got=number,
            help="emit with 64-bit indices (--index-type=int64_t)",
        )  # fmt: skip
        f.name(result, "0")
        return
    f.name(result, f.constant(type, literal(value, type), op.loc))


def _list(f: CppFunction, result: Value, text: str) -> None:
    """Emit a dense list: the elements of each list that a merge sort took, as unsigned 16-bit numbers."""
    numbers = [int(n) & 0xFFFF for n in re.findall(r"-?\d+", text[: text.find(">")])]
    if f.count.get(result) and isinstance(result.type, ShapedType):
        size = result.type.dims[0] or 1
        numbers = numbers * size if len(numbers) == 1 else numbers
        name = "pto::MrgSortExecutedNumList"
        f.name(result, f.helper(name, f"{name}{{{', '.join(map(str, numbers))}}}"))


@handles("arith.extsi", "arith.sitofp", "arith.trunci", "arith.index_cast")
def _convert(f: CppFunction, op: Operation) -> None:
    """Emit casts that keep the value. There is no cast if the C++ type stays the same; an i1 that means -1
    gets a sign.
    """
    source, result = op.operands[0], op.results[0]
    to, of = f.types(result.type), f.types(source.type)
    if to == of:
        f.name(result, *f.known.get(source, (f.text(source), ATOM)))
    elif to == "bool":
        f.define(result, f"({f.operand(source)} & 1) != 0", OTHER)
    elif of == "bool" and op.name != "arith.trunci":
        if op.name == "arith.sitofp":
            f.define(result, f"({to}) -(int32_t) {f.unary(source)}", CAST)
        else:
            f.define(result, f"-({to}) {f.unary(source)}", OTHER)
    else:
        f.define(result, f"({to}) {f.unary(source)}", CAST)


@handles("arith.index_castui", "arith.fptosi", "arith.fptoui")
def _narrow(f: CppFunction, op: Operation) -> None:
    """Emit casts to i1, which keep the lowest bit of the whole number; a cast to bool tests all bits."""
    source, result = op.operands[0], op.results[0]
    if f.types(result.type) != "bool":
        expression(f, op)
    elif op.name == "arith.index_castui":
        f.define(result, f"({f.operand(source)} & 1) != 0", OTHER)
    else:
        f.define(result, f"((int32_t) {f.unary(source)} & 1) != 0", OTHER)


_SIGNED = {"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">="}
_UNSIGNED = {"ult": "<", "ule": "<=", "ugt": ">", "uge": ">="}


@handles("arith.truncf")
def _truncf(f: CppFunction, op: Operation) -> None:
    """Emit a cast, which can only round to nearest even."""
    if op.attr("roundingmode") != "to_nearest_even":
        f.unit.no_spelling(op, "with 'roundingmode'")
    else:
        expression(f, op)


@handles("arith.cmpi")
def _cmpi(f: CppFunction, op: Operation) -> None:
    predicate = str(op.attr("predicate"))
    lhs, rhs = op.operands
    type = f.types(lhs.type)
    if predicate in _UNSIGNED:
        a, b = (f"({unsigned(type)}) {f.unary(v)}" for v in (lhs, rhs))
        f.define(op.results[0], f"{a} {_UNSIGNED[predicate]} {b}", OTHER)
        return
    sign = "-" if type == "bool" and predicate not in ("eq", "ne") else ""
    a, b = (sign + (f.unary(v) if sign else f.operand(v)) for v in (lhs, rhs))
    f.define(op.results[0], f"{a} {_SIGNED[predicate]} {b}", OTHER)


_FLOAT = {
    "oeq": "{a} == {b}", "ogt": "{a} > {b}", "oge": "{a} >= {b}", "olt": "{a} < {b}", "ole": "{a} <= {b}",
    "une": "{a} != {b}", "one": "{a} < {b} || {a} > {b}", "ueq": "!({a} < {b} || {a} > {b})",
    "ugt": "!({a} <= {b})", "uge": "!({a} < {b})", "ult": "!({a} >= {b})", "ule": "!({a} > {b})",
    "ord": "{a} == {a} && {b} == {b}", "uno": "{a} != {a} || {b} != {b}", "false": "false", "true": "true",
}  # fmt: skip


@handles("arith.cmpf")
def _cmpf(f: CppFunction, op: Operation) -> None:
    if not f.count.get(op.results[0]):
        return
    predicate = str(op.attr("predicate"))
    form = _FLOAT[predicate]
    once = form.count("{a}") == 1
    a, b = (f.operand(v) if once else _small(f, v) for v in op.operands)
    f.define(op.results[0], form.format(a=a, b=b), OTHER)


def _small(f: CppFunction, value: Value) -> str:
    """Return an operand that is named several times."""
    return f.operand(value) if _short(f, value) else f.atom(value)


@handles("arith.select")
def _select(f: CppFunction, op: Operation) -> None:
    condition, yes, no = (f.operand(v) for v in op.operands)
    kinds = {f.tile_types.get(v, "") for v in op.operands[1:]}
    if kinds != {""}:  # memrefs that are tiles: one of two tiles of one type
        if len(kinds) > 1:
            f.unit.no_spelling(op, "of tiles of different types")
            return
        f.tile_types[op.results[0]] = kinds.pop()
        f.declare(op.results[0], f.tile_types[op.results[0]], f"{condition} ? {yes} : {no}")
        return
    f.define(op.results[0], f"{condition} ? {yes} : {no}", OTHER)
