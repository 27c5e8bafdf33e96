"""Plan of one legal instance of an instruction: its operand types, attributes and constants.

The `types` of a row override the defaults. Keys are the name of an operand or result, `*` for tiles not
named, or `attr:NAME`. A key may end in `@ISA`, and may begin with `FORM/` for a further form of the
instruction. A key with an empty value leaves the operand or attribute out. In a type, `{T}` is the operand's
element type, `{NAME}` the element type of another operand, `{I}` and `{U}` the signed and unsigned integer of
the same width, `{N}` the lanes of a register, and `{W}` the granularity of a mask. A comma separates the
values of a variadic operand.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

from ..asm.affine_text import parse_affine_map
from ..asm.type_text import parse_type
from ..ir.attrs import (
    ArrayAttr,
    Attribute,
    BoolAttr,
    DenseArrayAttr,
    EnumAttr,
    FloatAttr,
    IntAttr,
    OpaqueAttr,
    StrAttr,
    SymbolAttr,
    TypeAttr,
    UnitAttr,
)  # fmt: skip
from ..ir.core import Operation, Value
from ..ir.facts import Arg, Args
from ..ir.types import (
    INDEX,
    ConvTileType,
    MemRefType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    Type,
    ViewType,
    VRegType,
    in_pairs,
)
from ..isa.dtypes import DTYPES
from ..isa.enums import ENUMS
from ..isa.profiles import profile
from ..isa.record import Record
from ..isa.row import Attr, Operand, Row
from ..isa.rule_trees import names_in
from ..isa.rules import Rule, broken, holds
from .control import PROGRAMS

#: Kind of an operand -> its default type.
DEFAULTS: dict[str, str] = {
    "tile": "!pto.tile_buf<vec, 16x64x{T}>",
    "conv_tile": "!pto.conv_tile<mat, 1x4x8x8x16x{T}, NC1HWC0>",
    "multi_tile": "!pto.multi_tile_buf<vec, 16x64x{T}, count=2>",
    "view": "!pto.partition_tensor_view<16x64x{T}>",
    "tensor_view": "!pto.tensor_view<16x64x{T}>",
    "ptr": "!pto.ptr<{T}>",
    "memref": "memref<16x64x{T}, #pto.address_space<gm>>",
    "scalar": "{T}",
    "float": "f32",
    "int": "i32",
    "any": "i32",
    "vreg": "!pto.vreg<{N}x{T}>",
    "mask": "!pto.mask<b{W}>",
    "eventid_array": "!pto.eventid_array<2>",
    "local_array": "!pto.local_array<4x2x{T}>",
    "group": "!pto.group<2>",
    "vector": "vector<16x{T}>",
}

#: Values to try, in this order, for an operand whose constant a rule needs.
_CONSTANTS = (0, 1, 2, 16, 64, 3 << 8)


_NO_CONSTANTS: dict[tuple[str, int], int] = {}
_NO_LAYOUTS: dict[str, str] = {}


class Plan(Record):
    """One instance of an instruction. Absent operands have no entry."""

    row: Row
    isa: str
    operands: dict[str, tuple[Type, ...]]
    results: dict[str, tuple[Type, ...]]
    attrs: dict[str, Attribute]
    constants: dict[tuple[str, int], int] = _NO_CONSTANTS
    layouts: dict[str, str] = _NO_LAYOUTS  # declared layout of views


def forms(row: Row) -> tuple[str, ...]:
    """Return the names of the forms that `types` lists; the first is the unnamed form."""
    return tuple(dict.fromkeys(("", *(key.partition("/")[0] for key in row.types if "/" in key))))


def shown(row: Row, isa: str, form: str) -> dict[str, str]:
    """Return the texts of `types` for one form and one ISA, by name. The most specific key wins: `FORM/`
    before `@ISA`."""
    merged: dict[str, str] = {}
    for prefix in ("", f"{form}/") if form else ("",):
        for suffix in ("", f"@{isa}"):
            for key, text in row.types.items():
                name = key.removeprefix(prefix).removesuffix(suffix)
                if key == f"{prefix}{name}{suffix}" and "/" not in name and "@" not in name:
                    merged[name] = text
    return {name: text for name, text in merged.items() if text}


def dtype_choices(row: Row, isa: str) -> Iterator[dict[str, str]]:
    """Yield every legal choice of element types: operand -> dtype, with "" for operands that are not
    named."""
    for combos in row.combos:
        for combo in combos.legal.get(isa, ()):
            yield {**dict(zip(combos.operands, combo, strict=True)), "": combo[0]}
    for dtype in row.dtypes.get(isa, ()):
        yield {"": dtype}
    if not row.combos and not row.dtypes:
        yield {"": "f32"}


def plans(row: Row, isa: str, choice: Mapping[str, str] | None = None) -> Iterator[Plan]:
    """Yield the legal plans of all forms, for one choice of element types or for all choices."""
    for form in forms(row):
        yield from plans_of(row, isa, form, choice)


def plans_of(row: Row, isa: str, form: str, choice: Mapping[str, str] | None = None) -> Iterator[Plan]:
    """Yield the legal plans of one form."""
    for c in (choice,) if choice is not None else dtype_choices(row, isa):
        made = plan(row, isa, c, form)
        if form and not _whole_blocks(made):  # only element types that fit the tiles of the form
            continue
        if not violated(made) and _legal_dtypes(made) and _uses(made, c[""]):
            yield made


def _whole_blocks(made: Plan) -> bool:
    """Return True if the lines of all flat tiles are multiples of 32-byte blocks."""
    return all(
        (t.cols if t.blayout == "row_major" else t.rows) * (t.bits or 8) % 256 == 0
        for types in made.operands.values()
        for t in types
        if isinstance(t, TileBufType) and not t.boxed
    )


def violated(made: Plan) -> list[Rule]:
    """Return the rules of the row that a plan violates."""
    env = environment(made)
    return [r for r in made.row.rules if (not r.on or made.isa in r.on) and broken(r, env)]


def _legal_dtypes(made: Plan) -> bool:
    env, row, isa = environment(made), made.row, made.isa
    legal = row.dtypes.get(isa)
    for name in row.dtype_of if legal else ():
        types = (*made.operands.get(name, ()), *made.results.get(name, ()))
        if any(t.dtype not in legal for t in types if getattr(t, "dtype", None)):  # type: ignore[attr-defined]
            return False
    for combos in row.combos:
        if isa not in combos.legal or (combos.when and not holds(combos.when, env)):
            continue
        have = [env[n].dtype for n in combos.operands if env.get(n) is not None]
        if len(have) == len(combos.operands) and not any(list(c) == have for c in combos.legal[isa]):
            return False
    return True


def _uses(made: Plan, dtype: str) -> bool:
    """Return True if a dtype that is listed for some operands is the dtype of one of them."""
    names = made.row.dtype_of if dtype in made.row.dtypes.get(made.isa, ()) else ()
    types = [t for n in names for t in (*made.operands.get(n, ()), *made.results.get(n, ()))]
    return not types or any(getattr(t, "dtype", None) == dtype for t in types)


def first_plan(row: Row, isa: str) -> Plan:
    """Return the plan of the first legal element type."""
    return next(plans(row, isa))


def plan(row: Row, isa: str, choice: Mapping[str, str], form: str = "") -> Plan:
    """Return types, attributes and constants of one instance with the given element types."""
    texts = shown(row, isa, form)
    operands: dict[str, tuple[Type, ...]] = {}
    for declared in row.operands:
        text = texts.get(declared.name)
        if text is None and (declared.optional or declared.variadic):
            continue
        if text is None and declared.kinds[0] == "tile":
            text = texts.get("*")
        operands[declared.name] = operand_types(row, isa, declared, text, choice)
    results: dict[str, tuple[Type, ...]] = {}
    for declared in row.results:
        text = texts.get(declared.name)
        rule = row.infer.get(declared.name, "")
        if text is None and rule.startswith("$"):
            source, _, fact = rule[1:].partition(".")
            given = operands[source][0]
            results[declared.name] = (given.elem if fact == "dtype" else given,)  # type: ignore[attr-defined]
        elif text is not None or not (declared.optional or declared.variadic):
            results[declared.name] = operand_types(row, isa, declared, text or rule or None, choice)
    if row.name in PROGRAMS:
        return Plan(row, isa, operands, results, {})
    attrs: dict[str, Attribute] = {}
    for attr in row.attrs:
        if f"attr:{attr.name}" in texts:
            attrs[attr.name] = make_attribute(attr, texts[f"attr:{attr.name}"])
        elif attr.required:
            attrs[attr.name] = make_attribute(
                attr, attr.default if attr.default is not None else attr.domain[0]
            )
    return _with_constants(Plan(row, isa, operands, results, attrs))


def operand_types(
    row: Row, isa: str, declared: Operand, text: str | None, choice: Mapping[str, str]
) -> tuple[Type, ...]:  # fmt: skip
    """Return the types of one operand from its text, or from the default of its kind."""
    dtype = choice.get(declared.name, choice[""])
    if text is None:
        kind = declared.kinds[0]
        text = DEFAULTS.get(
            kind, kind if kind in ("index", "i1", "i8", "i16", "i32", "i64") else f"!pto.{kind}"
        )
        if kind == "ptr" and row.scope == "vec":
            text = "!pto.ptr<{T}, ub>"
    elem = _element(row.scope, dtype)
    bits = elem.bits or 8

    def word(named: re.Match[str]) -> str:
        match named[1]:
            case "T":
                return str(elem)
            case "I":
                return f"i{bits}"
            case "U":
                return f"ui{bits}"
            case "N":
                return str(2048 // bits)
            case "W":
                return str(min(max(bits, 8), 32))
            case operand if any(o.name == operand for o in row.operands):
                return str(_element(row.scope, choice.get(operand, choice[""])))
        raise KeyError(named[1])

    filled = re.sub(r"\{(\w+)\}", word, text)
    types = (
        tuple(read_type(t, isa) for t in _split(filled)) if declared.variadic else (read_type(filled, isa),)
    )
    if declared.name in choice:  # the choice of element types overrides an element type in the text
        types = tuple(with_element(t, dtype, elem) for t in types)
    return types


@cache
def _element(scope: str, dtype: str) -> ScalarType:
    """Return the element type of operands for a dtype: in vector registers, 4-bit floats come in pairs."""
    info = DTYPES[dtype]
    return in_pairs(info) if scope == "vec" and info.bits == 4 and info.is_float else ScalarType(info.mlir)


@cache
def read_type(text: str, isa: str) -> Type:
    return parse_type(text)


def with_element(type: Type, dtype: str, elem: ScalarType | None = None) -> Type:
    """Return the same type with elements of another dtype."""
    elem = elem or ScalarType(DTYPES[dtype].mlir)
    if isinstance(type, ScalarType):
        return type if type == INDEX else elem
    if isinstance(type, VRegType):
        return VRegType(elem, 2048 // (elem.bits or 8))
    if isinstance(type, TileBufType | ConvTileType | ViewType | PtrType | MemRefType | ShapedType):
        return type.replace(elem=elem)
    return type


def _split(text: str) -> list[str]:
    """Split a text at top-level commas."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "<[(") - (c in ">])")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


def make_attribute(attr: Attr, value: Any) -> Attribute:
    """Return the value of a declared attribute from its text or Python value."""
    text = str(value)
    if attr.kind in ENUMS:
        return EnumAttr(attr.kind, text)
    if attr.kind == "int":
        return IntAttr(int(text))
    if attr.kind == "bool":
        return BoolAttr(text.lower() == "true")
    if attr.kind == "float":
        return FloatAttr(float(text), ScalarType("f32"))
    if attr.kind == "ints" and text.startswith("array<"):
        return DenseArrayAttr("i64", tuple(int(n) for n in text[:-1].partition(":")[2].split(",")))
    if attr.kind == "ints":
        return ArrayAttr(tuple(IntAttr(int(n)) for n in text.strip("[]").split(",")))
    if attr.kind == "symbol":
        return SymbolAttr(text.removeprefix("@"))
    if attr.kind == "type":
        return TypeAttr(parse_type(text))
    if attr.kind == "unit":
        return UnitAttr()
    if text.startswith("affine_map<"):
        return parse_affine_map(text)
    typed = re.fullmatch(r"(-?\d+) : (\w+)", text)
    if attr.kind == "any" and typed:
        return IntAttr(int(typed[1]), ScalarType(typed[2]))
    return OpaqueAttr(text) if attr.kind == "any" else StrAttr(text)


def _with_constants(made: Plan) -> Plan:
    """Give constants to scalar operands whose value a rule needs. Otherwise the rule would be skipped."""
    rules = [r for r in made.row.rules if ".const" in r.expr + r.when and (not r.on or made.isa in r.on)]
    for name in dict.fromkeys(n for r in rules for n in sorted(names_in(r.expr) | names_in(r.when or "0"))):
        mine = [r for r in rules if name in names_in(r.expr)]
        asked = any(f"{name}." in r.expr or f"{name}[" in r.expr or f" in {name}" in r.expr for r in mine)
        for at, type in enumerate(made.operands.get(name, ())):
            if not isinstance(type, ScalarType) or type.is_float or not asked:
                continue
            dims = [d for ts in made.results.values() for t in ts for d in getattr(t, "dims", ())]
            for value in (*_CONSTANTS, *(d for d in dims if d)):
                trial = made.replace(constants={**made.constants, (name, at): value})
                env = environment(trial)
                if not any(broken(r, env) for r in mine):
                    made = trial
                    break
    return made


def environment(made: Plan, names: Collection[str] | None = None) -> dict[str, Any]:
    """Return the operands, results and attributes of a planned instruction, as rules read them. With `names`,
    return only these."""
    env: dict[str, Any] = {"isa": made.isa}
    target = profile(made.isa)
    for attr in made.row.attrs:
        if names is None or attr.name in names:
            env[attr.name] = made.attrs[attr.name].value if attr.name in made.attrs else attr.default
    for declared in made.row.operands:
        if names is None or declared.name in names:
            types = made.operands.get(declared.name, ())
            args = [Arg(t, _fact_source(made, declared.name, i), target) for i, t in enumerate(types)]
            env[declared.name] = Args(args) if declared.variadic else args[0] if args else None
    for declared in made.row.results:
        if names is None or declared.name in names:
            types = made.results.get(declared.name, ())
            env.setdefault(declared.name, Arg(types[0], None, target) if types else None)
    return env


def _fact_source(made: Plan, name: str, at: int) -> Value | None:
    """Return a value that carries the constant or the layout of an operand, or None if it has neither."""
    if made.constants and (name, at) in made.constants:
        constant: dict[str, Attribute] = {"value": IntAttr(made.constants[name, at])}
        return Operation("arith.constant", None, [], [INDEX], constant).result
    if name in made.layouts:
        layout: dict[str, Attribute] = {"layout": EnumAttr("layout", made.layouts[name])}
        return Operation("pto.make_tensor_view", None, [], [INDEX], layout).result
    return None
