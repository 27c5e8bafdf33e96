"""Per-instruction legality, driven by the table: availability, kinds, attributes, dtypes, rules, aliasing.

The order is that of the ISA: target profile, type, shape, layout; the first class that fails is reported.
Checks that depend on types only are remembered by signature: real programs repeat few of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..diag import did_you_mean
from ..ir.attrs import Attribute, EnumAttr
from ..ir.context import Context
from ..ir.core import Operation, Value, constant_of
from ..ir.facts import Args, environment, view_layout
from ..ir.kinds import kind_matches
from ..ir.types import ERROR, ConvTileType, TileBufType, Type, ViewType
from ..isa.dtypes import DTYPES
from ..isa.enums import ENUMS, same_enum
from ..isa.profiles import ARCH_NAMES, PROFILES, Profile
from ..isa.row import KINDS, Attr, Combos, Row
from ..isa.rules import Rule, broken, code_of, facts_in, holds, stage_of
from ..isa.tile import LAYOUT_PARTS

#: Signatures that were legal, by the name of the profile; the value keeps the types alive, so that their ids
#: stay unique. Programs of one batch have most signatures in common.
_Seen = dict[tuple[Any, ...], tuple[Type, ...]]
_seen: dict[str, _Seen] = {}
_MOST_SEEN = 10_000


def _seen_on(profile: Profile) -> _Seen:
    if PROFILES.get(profile.name) is not profile:  # a profile with changed capacities
        return {}
    found = _seen.setdefault(profile.name, {})
    if len(found) > _MOST_SEEN:
        found.clear()
    return found


class RowChecker:
    """Checks operations against their rows for one profile."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.isa = context.profile.isa
        self._seen = _seen_on(context.profile)

    def check(self, op: Operation) -> None:
        row = op.row
        if row is None:
            self.context.report(
                op,
                "PTO-E0108",
                f"unknown operation '{op.name}'",
                help="it is kept as it is written, but the tools do not know its meaning",
            )
            return
        if row.dialect == "pto" and self.isa not in row.isas:
            self._unavailable(op, row)
            return
        types = tuple([v.type for v in op.operands] + [r.type for r in op.results])
        rules = _rules(row)
        key: tuple[Any, ...] = (row.name, op.segments, *map(id, types))
        if op.attrs:
            free = rules.free
            key += tuple([(k, v.__class__ if free else str(v)) for k, v in op.attrs.items()])
        if key not in self._seen:
            if ERROR in types or any(self._no_such_tile(t) for t in types):
                return  # reported at the definition of the value
            before = len(self.context.diagnostics)
            legal = self._kinds(op, row) and self._attributes(op, row) and self._type_rules(op, row)
            if len(self.context.diagnostics) > before:
                return  # not cached for a warning, which is reported every time
            if legal:
                self._seen[key] = types
        if rules.by_value:
            self._value_rules(op, row, rules, key, types)
        if row.in_place:
            self._aliasing(op, row)

    def check_kinds(self, op: Operation) -> None:
        """Check the kinds of operands, results and attributes: the precondition of every later stage."""
        if op.row is not None and all(v.type is not ERROR for v in (*op.operands, *op.results)):
            self._kinds(op, op.row, convolution=True)
            self._attributes(op, op.row)

    def _value_rules(
        self, op: Operation, row: Row, rules: _Rules, key: tuple[Any, ...], types: tuple[Type, ...]
    ) -> None:
        values = (*op.named(), *zip(row.results, op.results, strict=False))
        key += (None,)
        key += tuple([_fact(v) for declared, v in values if declared.name in rules.named])
        if key in self._seen:
            return
        before = len(self.context.diagnostics)
        env = environment(op, row, self.context.profile)
        for rule in rules.by_value:
            if (not rule.on or self.isa in rule.on) and broken(rule, env):
                self._violated(op, row, rule, env)
        if len(self.context.diagnostics) == before:
            self._seen[key] = types

    def _no_such_tile(self, type: Type) -> bool:
        """Return True for a tile of elements that the profile lacks."""
        if self.context.profile.small_floats or not isinstance(type, TileBufType):
            return False
        return type.elem.is_float and (type.bits or 16) < 16

    # ----------------------------------------------------------------------------------------- stages

    def _unavailable(self, op: Operation, row: Row) -> None:
        where = [ARCH_NAMES[i] for i in row.isas if i != "cpu"] or ["CPU"]
        targets = [p.name for p in PROFILES.values() if p.isa in row.isas]
        best = next((isa for isa in ("a5", "a2a3", "cpu") if isa in row.isas), targets[0])
        self.context.report(
            op, "PTO-E0601", f"only supported on {' and '.join(where)} targets",
            expected=f"target {', '.join(targets)}", got=f"target {self.context.profile.name}",
            help=f"set the module attribute pto.target_arch = \"{best}\", or use another instruction",
        )  # fmt: skip

    def _operand_kinds(self, op: Operation) -> bool:
        ok = True
        for declared, value in op.named():
            if not kind_matches(declared, value.type):
                wanted = " or ".join(KINDS[k] for k in declared.kinds)
                self.context.report(
                    op,
                    "PTO-E0303",
                    f"operand '{declared.name}' must be {wanted}, but got {value.type}",
                    at=value,
                    expected=wanted,
                    got=str(value.type),
                    help=_index_help(value, declared.kinds),
                )
                ok = False
        return ok

    def _kinds(self, op: Operation, row: Row, convolution: bool = False) -> bool:
        """Check operands and results. `convolution`: unverified programs may allocate convolution tiles."""
        ok = self._operand_kinds(op)
        if row.dialect != "pto":
            return ok
        for declared, result in zip(row.results, op.results, strict=False):
            if not kind_matches(declared, result.type) and not (
                convolution and isinstance(result.type, ConvTileType)
            ):
                wanted = " or ".join(KINDS[k] for k in declared.kinds)
                self.context.report(
                    op,
                    "PTO-E0303",
                    f"result '{declared.name}' must be {wanted}, but got {result.type}",
                    at=result,
                    expected=wanted,
                    got=str(result.type),
                )
                ok = False
        return ok

    def _attributes(self, op: Operation, row: Row) -> bool:
        ok = True
        if row.dialect in ("builtin", "func"):
            return ok  # the structure check covers the attributes of these operations
        for name, value in op.attrs.items():
            declared = row.attr_index.get(name)
            if declared is not None:
                ok &= self._attribute(op, declared, value)
            elif row.dialect == "pto" and "." not in name and not name.startswith("__"):
                self.context.report(
                    op, "PTO-E0113", f"unknown attribute '{name}'", at=name,
                    help=did_you_mean(name, row.attr_index) or _attr_list(row),
                )  # fmt: skip
                ok = False
        for declared in row.attrs:
            if declared.required and declared.name not in op.attrs:
                choices = ", ".join(map(str, declared.domain))
                self.context.report(
                    op, "PTO-E0115", f"missing attribute '{declared.name}'",
                    expected=f"one of {choices}" if choices else "", help=f"add {{{declared.name} = ...}}",
                )  # fmt: skip
                ok = False
        return ok

    def _attribute(self, op: Operation, declared: Attr, value: Attribute) -> bool:
        problem = attribute_problem(declared, value)
        if not problem:
            if declared.unencoded and value.value in declared.unencoded:
                listed = [c for c in declared.domain if c not in declared.unencoded]
                self.context.report(
                    op, "PTO-E0112", f"cannot encode '{declared.name}' with value {value}",
                    at=declared.name, got=str(value), expected=", ".join(map(str, listed)),
                    help="the simulator runs it; portable code takes one of the listed values",
                    severity="warning",
                )  # fmt: skip
            return True
        self.context.report(
            op,
            "PTO-E0112",
            f"attribute '{declared.name}' {problem}",
            at=declared.name,
            got=str(value),
            expected=", ".join(map(str, declared.domain)),
            help=did_you_mean(str(value.value), map(str, declared.domain)),
        )
        return False

    def _type_rules(self, op: Operation, row: Row) -> bool:
        env = environment(op, row, self.context.profile)
        found: list[tuple[int, Rule]] = []
        for rule in type_rules(row):
            if (not rule.on or self.isa in rule.on) and broken(rule, env):
                found.append((stage_of(rule), rule))
        dtypes_ok = self._dtypes(op, row, env)
        if dtypes_ok:
            dtypes_ok = all([self._combos(op, row, combos, env) for combos in row.combos])
        if not dtypes_ok and not any(stage == 1 for stage, _ in found):
            return False  # after a type error, do not check shape and layout
        worst = min((stage for stage, _ in found), default=0)
        self._report(op, row, [rule for stage, rule in found if stage == worst], env)
        return dtypes_ok and not found

    def _report(self, op: Operation, row: Row, rules: list[Rule], env: dict[str, Any]) -> None:
        """Report each violated rule; a destination that differs from all sources is reported once."""
        done: set[str] = set()
        for rule in rules:
            same = _SAME.match(rule.expr)
            if same is None:
                self._violated(op, row, rule, env)
                continue
            _, fact, to = same.groups()
            if f"{to}.{fact}" in done:
                continue
            others = [m[1] for r in row.rules if (m := _SAME.match(r.expr)) and m.groups()[1:] == (fact, to)]
            broken_by = [m[1] for r in rules if (m := _SAME.match(r.expr)) and m.groups()[1:] == (fact, to)]
            alike = {str(getattr(env.get(name), fact, None)) for name in others}
            if len(broken_by) > 1 and broken_by == others and len(alike) == 1 and _is_written(row, to):
                done.add(f"{to}.{fact}")
                self._violated(op, row, rule, env, blamed=(to, others))
            else:
                self._violated(op, row, rule, env)

    def _dtypes(self, op: Operation, row: Row, env: dict[str, Any]) -> bool:
        legal = row.dtypes.get(self.isa)
        if not legal:
            return True
        ok = True
        for name in row.dtype_of:
            arg = env.get(name)
            args = arg if isinstance(arg, Args) else (arg,)
            for one in args:
                dtype = one.dtype if one is not None else None
                if dtype is None or any(dtype == d for d in legal):
                    continue
                self._bad_dtype(op, row, name, str(dtype), legal)
                ok = False
            if not ok:
                break
        return ok

    def _bad_dtype(self, op: Operation, row: Row, name: str, dtype: str, legal: tuple[str, ...]) -> None:
        elsewhere = [i for i in row.isas if dtype in row.dtypes.get(i, ()) and i != "cpu"]
        index = _operand_of(op, row, name)
        value = op.operands[index] if index is not None else None
        shown = "/".join(legal)
        if elsewhere and self.isa != "cpu":
            code = row.dtype_code or "PTO-E0602"
            message = f"element type {dtype} needs the {ARCH_NAMES[elsewhere[0]]} profile: "
            help = f"on {ARCH_NAMES[self.isa]} use {nearest_dtype(dtype, legal)}, or target {elsewhere[0]}"
        else:
            code = row.dtype_code or "PTO-E0302"
            message = ""
            help = f"use {nearest_dtype(dtype, legal)}, or convert with pto.tcvt first"
        self.context.report(
            op,
            code,
            f"{message}expects {self.context.arch} {row.name} {name} element type to be {shown}",
            at=value,
            skip=op.operands[:index].count(value) if value is not None else 0,
            expected=shown,
            got=dtype,
            help=help,
        )

    def _combos(self, op: Operation, row: Row, combos: Combos, env: dict[str, Any]) -> bool:
        legal = combos.legal.get(self.isa)
        if legal is None or (combos.when and not holds(combos.when, env)):
            return True
        have: list[Any] = []
        for name in combos.operands:
            arg = env.get(name)
            dtype = arg.dtype if arg is not None else None
            if dtype is None:
                return True
            have.append(dtype)
        if any(all(h == w for h, w in zip(have, combo, strict=True)) for combo in legal):
            return True
        shown = " or ".join(_combo_text(c) for c in legal[:8]) + (" ..." if len(legal) > 8 else "")
        near = min(legal, key=lambda c: sum(h != w for h, w in zip(have, c, strict=True)))
        help = f"nearest legal choice: {_combo_text(near)}"
        code = "PTO-E0302"
        for isa in (i for i in ("a2a3", "a5") if i != self.isa and self.isa != "cpu"):
            if any(all(h == w for h, w in zip(have, c, strict=True)) for c in combos.legal.get(isa, ())):
                help += f"; {ARCH_NAMES[isa]} has this combination"
                code = "PTO-E0602"
        self.context.report(
            op,
            combos.code or row.dtype_code or code,
            f"element types ({', '.join(combos.operands)}) = {_combo_text(tuple(map(str, have)))} "
            f"are not a legal combination on {self.context.arch}",
            expected=shown,
            got=_combo_text(tuple(map(str, have))),
            help=help,
        )
        return False

    def _violated(
        self,
        op: Operation,
        row: Row,
        rule: Rule,
        env: Mapping[str, Any],
        blamed: tuple[str, list[str]] | None = None,
    ) -> None:
        """Report a rule; `blamed` is a destination and the identical sources that it differs from."""
        from ..isa.rule_trees import explain

        message, expected, got = explain(rule.expr, env)
        if blamed is not None:
            message = message.replace(f"{blamed[1][0]} and", f"{', '.join(blamed[1])} and", 1)
        index = _operand_of(op, row, blamed[0] if blamed else rule.expr)
        value = op.operands[index] if index is not None else None
        code = code_of(rule)
        whole = op.get(row.names) if row.window and row.names else None
        if whole is not None and whole.name:  # the message for a window names the exceeded extent
            expected, got = (
                re.sub(rf"(?<![\w%]){row.names} (?=dim|row|col|valid)", f"%{whole.name} ", text)
                for text in (expected, got)
            )
        self.context.report(
            op,
            code,
            rule.msg or message,
            at=value,
            skip=op.operands[:index].count(value) if value is not None else 0,
            expected=expected,
            got=got,
            help=rule_help(rule, op),
        )

    def _aliasing(self, op: Operation, row: Row) -> None:
        """Check that destination and source share storage only if the row allows that, and that they then
        share all of it.
        """
        free = row.in_place == "any" or (row.in_place_on and self.isa not in row.in_place_on)
        allowed = set(row.in_place.split()) if row.in_place != "none" else set[str]()
        outs = [(o, v) for o, v in op.named() if o.role == "out" and isinstance(v.type, TileBufType)]
        for declared, value in op.named():
            if declared.role not in ("in", "tmp") or not isinstance(value.type, TileBufType):
                continue
            may = free or declared.name in allowed
            for out, target in outs:
                same = target is value
                wrong = not may if same else may and _overlap_apart(target, value)
                if not wrong:
                    continue
                names = f"both %{value.name}" if same else _both_ranges(target, value)
                what = "may not share storage with" if same else "overlaps a part of"
                self.context.report(
                    op,
                    "PTO-E0701",
                    f"{out.name} {what} {declared.name}",
                    at=target,
                    skip=self._reads_before(op, target),
                    expected=f"{out.name} distinct from {declared.name}",
                    got=names,
                    help="write the result to another tile"
                    + (
                        f"; only {', '.join(sorted(allowed))} may be overwritten"
                        if allowed and not free
                        else ""
                    ),
                )

    def _reads_before(self, op: Operation, target: Value) -> int:
        """Return how often a text names a destination as a source before it names it as one."""
        span = self.context.module.span(op)
        begins = span.source.text.find("outs(", span.start, span.end)
        names = re.compile(rf"%{re.escape(target.name)}(?![\w$.\-])")
        return len(names.findall(span.source.text, span.start, begins)) if begins >= 0 and target.name else 0


# ------------------------------------------------------------------------------------------- pure helpers

#: `src0.dtype == dst.dtype`.
_SAME = re.compile(r"(\w+)\.(\w+) == (\w+)\.\2$")


def _is_written(row: Row, name: str) -> bool:
    index = row.operand_index.get(name)
    return index is not None and row.operands[index].role in ("out", "inout")


def attribute_problem(declared: Attr, value: Attribute) -> str:
    """Return the problem of an attribute value; empty if the value is legal."""
    from ..ir.attrs import (
        ArrayAttr,
        BoolAttr,
        DenseArrayAttr,
        FloatAttr,
        IntAttr,
        StrAttr,
        SymbolAttr,
        TypeAttr,
        UnitAttr,
    )  # fmt: skip

    kind = declared.kind
    if kind in ENUMS:
        if isinstance(value, EnumAttr):
            if not same_enum(value.enum, kind):
                return f"must be a {kind}"
            word: str | None = value.value
        else:
            word = ENUMS[kind].canonical(value.value) if isinstance(value, StrAttr) else None
            if word is None:
                return f"must be a {kind}"
        return "" if not declared.choices or word in declared.choices else f"cannot be {word}"
    classes: dict[str, tuple[type, ...]] = {
        "int": (IntAttr,),
        "bool": (BoolAttr, UnitAttr),
        "str": (StrAttr,),
        "float": (FloatAttr, IntAttr),
        "ints": (ArrayAttr, DenseArrayAttr),
        "type": (TypeAttr,),
        "symbol": (SymbolAttr,),
        "unit": (UnitAttr,),
    }
    if kind == "bool" and isinstance(value, IntAttr) and value.value in (0, 1):
        return ""
    if kind in classes and not isinstance(value, classes[kind]):
        return f"must be of kind {kind}"
    if not declared.admits(value.value):
        return f"has no value '{value.value}'"
    return ""


def nearest_dtype(dtype: str, legal: tuple[str, ...]) -> str:
    """Return the legal element type closest to the given one: same kind first, then closest width."""
    have = DTYPES.get(dtype)
    if have is None:
        return legal[0]
    return min(
        legal,
        key=lambda n: (
            DTYPES[n].is_float != have.is_float,
            abs(DTYPES[n].bits - have.bits),
            DTYPES[n].kind != have.kind,
        ),
    )


_INTEGERS = frozenset({"i8", "i16", "i32", "i64"})


def _index_help(value: Value, wanted: Iterable[str]) -> str:
    """Return help to convert between an integer and an index."""
    have = str(value.type)
    for kind in wanted:
        if "index" in (have, kind) and {have, kind} - {"index"} <= _INTEGERS and have != kind:
            return f"convert it: %x = arith.index_cast %{value.name} : {have} to {kind}"
    return ""


def rule_help(rule: Rule, op: Operation) -> str:
    """Return help that follows from the shape of the rule."""
    if op.row is not None and op.row.dialect == "arith" and facts_in(rule.expr) == {"type"}:
        return next((h for v in op.operands[1:] if (h := _index_help(v, [str(op.operands[0].type)]))), "")
    facts = facts_in(rule.expr)
    moves = op.name.startswith(("pto.tmov", "pto.tload", "pto.tstore", "pto.textract", "pto.tinsert"))
    from ..isa.rule_trees import ASKS, LAYOUT

    asked = ASKS.match(rule.expr)
    if asked is not None:
        return _help_with_operand(op, asked[2], wanted=not asked[1])
    named = LAYOUT.match(rule.expr)
    if named is not None and named[1] in LAYOUT_PARTS:
        blayout, slayout = LAYOUT_PARTS[named[1]]
        return f"{named[1]} is blayout={blayout}, slayout={slayout}"
    if "%" in rule.expr:
        return "round the size up to the next multiple"
    if "loc" in facts and not moves:
        return "move the tile there first, e.g. with pto.tmov"
    if facts & {"v_row", "v_col", "valid"}:
        return "make the valid regions agree (valid=RxC in the type, or set_validshape)"
    if facts & {"dyn_row", "dyn_col"}:
        return "write valid=?x? in the type for a run-time valid region, or drop the operand"
    if "bytes" in facts and moves:
        return "a move does not convert: use a tile of that element type, then pto.tcvt"
    if "dtype" in facts and all(v.type.kind in ("tile", "scalar") for v in op.operands):
        return "convert one side with pto.tcvt"
    return ""


def _help_with_operand(op: Operation, name: str, wanted: bool) -> str:
    if op.row is None or name not in op.row.operand_index:
        return ""
    if not wanted:
        what = "leave it out"
        return f"{what}, or write ? for it in valid= of the type" if name.startswith("valid_") else what
    return f"add {name} = %n" if f"{name} = ${name}" in str(op.row.format) else f"add an operand for {name}"


def _range(value: Value) -> tuple[str, int, int] | None:
    """Return location, first and last byte of a tile with a constant address."""
    made = value.op
    if made is None or made.name != "pto.alloc_tile" or not isinstance(value.type, TileBufType):
        return None
    start = constant_of(made.get("addr"))
    return (value.type.loc, start, start + value.type.size) if isinstance(start, int) else None


def _overlap_apart(a: Value, b: Value) -> bool:
    """Return True if two tiles certainly share bytes without a common start, which is intended reuse."""
    x, y = _range(a), _range(b)
    if x is None or y is None or x[0] != y[0] or x[1] == y[1]:
        return False
    return x[1] < y[2] and y[1] < x[2]


def _both_ranges(a: Value, b: Value) -> str:
    """Return the ranges of two tiles, as in a memory map: the last byte included."""
    return " and ".join(
        f"%{v.name} at bytes {r[1]:#x}-{r[2] - 1:#x}" for v in (a, b) if (r := _range(v)) is not None
    )


def _fact(value: Value) -> Any:
    """Return the fact of a value, in addition to its type, that a rule can use."""
    return view_layout(value) if isinstance(value.type, ViewType) else constant_of(value)


_WORD = re.compile(r"([A-Za-z_]\w*)(?:\[(\d+)\])?")


def _operand_of(op: Operation, row: Row, expr: str) -> int | None:
    """Return the index of the first present operand of a rule; `sizes[1]` is the second of its group."""
    for m in _WORD.finditer(expr):
        position = row.operand_index.get(m[1])
        if position is None:
            continue
        counts = op.segments or (1,) * len(row.operands)
        inside = int(m[2] or 0)
        if inside < counts[position]:
            return sum(counts[:position]) + inside
    return None


def _depends_on_values(rule: Rule, row: Row) -> bool:
    text = f"{rule.expr} {rule.when}"
    facts = facts_in(rule.expr) | (facts_in(rule.when) if rule.when else set[str]())
    if "const" in facts:
        return True
    if "layout" not in facts:
        return False
    views = {o.name for o in row.operands if "view" in o.kind or "memref" in o.kind}
    return any(name in text for name in views)


class _Rules:
    """The rules of a row, by the facts that decide them."""

    __slots__ = ("by_type", "by_value", "free", "named")

    def __init__(self, row: Row) -> None:
        self.by_value = tuple(r for r in row.rules if _depends_on_values(r, row))
        self.by_type = tuple(r for r in row.rules if r not in self.by_value)
        words = {m[1] for r in self.by_value for m in _WORD.finditer(f"{r.expr} {r.when}")}
        #: Operands and results in the rules over values.
        self.named = frozenset(o.name for o in (*row.operands, *row.results) if o.name in words)
        #: Only the classes of its attributes matter, as for the value of a constant.
        self.free = row.dialect != "pto" and not (row.rules or row.combos or any(a.domain for a in row.attrs))


_split: dict[str, _Rules] = {}


def _rules(row: Row) -> _Rules:
    found = _split.get(row.name)
    if found is None:
        found = _split[row.name] = _Rules(row)
    return found


def type_rules(row: Row) -> tuple[Rule, ...]:
    """Return rules that the operand types and attributes decide."""
    return _rules(row).by_type


def _attr_list(row: Row) -> str:
    return f"attributes: {', '.join(row.attr_index)}" if row.attrs else "it takes no attributes"


def _combo_text(combo: tuple[str, ...]) -> str:
    return "(" + ", ".join(combo) + ")"
