"""Legality of a C++ overload: the rules of its row, as static assertions and as checks at run time.

Each form of a row gets a function over its operands, `check_tgatherb<Dst, Src, Offsets>(dst)`. Forms with the
same operands share a function. Rules over types are asserted; rules over valid regions, extents of tensors
and numbers check values if PTO_CHECKED is defined. Rules over absent operands or scratch, and rules for
programs only, are left out.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, cached_property
from itertools import groupby
from typing import Any

from ..isa.dtypes import DTYPES, NUMBERS
from ..isa.enums import ENUMS
from ..isa.profiles import ARCH_NAMES, ISAS
from ..isa.record import Record
from ..isa.row import Attr, Combos, Form, Operand, Row
from ..isa.rule_trees import explain
from ..isa.rules import Rule, code_of, facts_in, stage_of
from .conditions import LOCATIONS, Open, Scope, TemplateAttribute, bare, mask_of, type_of
from .cpp.template import Alternative, attribute_class
from .generated import assertion, filled, run_time_check

_FIX = {"loc": "move it there with TMOV", "dtype": "convert with TCVT", "blayout": "use BLayout::RowMajor"}
_CLASSES = ("tile", "conv_tile", "view")
_CALL = re.compile(r"([A-Z][A-Z0-9_]*)(?:<(.*)>)?\((.*)\)$")


class Call(Record):
    """The parts of a call: its name, its template arguments and its arguments."""

    name: str
    types: str
    args: str

    @property
    def operands(self) -> list[str]:
        return re.findall(r"\$(\w+)", self.args)


def call_of(form: Form) -> Call | None:
    """The call of a form, if it is one call of an intrinsic."""
    found = None if ";" in form.cpp else _CALL.match(form.cpp)
    return Call(found[1], found[2] or "", found[3]) if found else None


class Check(Record):
    """The check of a row for some of its overloads."""

    row: Row
    name: str  # name of the function
    call: Call
    forms: tuple[Form, ...]
    # operands with known types
    classes: dict[str, tuple[str, ...]]
    attrs: dict[str, TemplateAttribute]  # attributes that are template arguments
    defaults: dict[str, str]
    scalars: tuple[str, ...]  # other operands, mostly numbers

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Return the operands whose values a run checks."""
        words = {w for one in self.asked for w in re.findall(r"\w+", one.condition)}
        return tuple(n for n in (*self.classes, *self.scalars) if n in words)

    @cached_property
    def is_empty(self) -> bool:
        """Return True if there is nothing to check."""
        return not self.assertions and not self.values

    @cached_property
    def assertions(self) -> tuple[Assertion, ...]:
        """Return the conditions over the types of the operands."""
        return tuple(dict.fromkeys(_assertions(self)))

    @cached_property
    def asked(self) -> tuple[Assertion, ...]:
        """Return the conditions over the values of the operands, which their types do not decide."""
        return tuple(dict.fromkeys(_asked_of_values(self)))

    def called(self, attrs: Iterable[str]) -> str:
        """Return the line of a frame that checks a call; operands keep their names."""
        listed = ", ".join([*map(type_of, self.classes), *attrs])
        return f"  PTO_LEGAL({self.name}<{listed}>({', '.join(self.values)}));"


# ---- forms of a row ----


#: The checks of rows, by the ids of these, because a row has no hash.
_known: dict[int, tuple[Row, tuple[Check, ...]]] = {}


def checks_of(row: Row) -> tuple[Check, ...]:
    """Return the checks of the forms of a row; none if it is not a call or has no operand with a type."""
    known = _known.get(id(row))
    if known is None or known[0] is not row:
        groups: dict[str, list[tuple[Form, Call]]] = {}
        for form in row.forms:
            call = call_of(form)
            if call is not None and row.set == "tile":
                groups.setdefault(_check_name(row, form, call), []).append((form, call))
        made = (_check(row, name, group) for name, group in groups.items())
        known = _known[id(row)] = row, tuple(check for check in made if check.classes)
    return known[1]


def _declared(row: Row) -> dict[str, Operand]:
    return {o.name: o for o in (*row.operands, *row.results)}


def _is_scratch(operand: Operand, form: Form) -> bool:
    return operand.role == "tmp" and not form.scratch


def _check_name(row: Row, form: Form, call: Call) -> str:
    name = f"check_{row.name.replace('.', '_')}"
    if form.check is not None:
        return f"{name}_{form.check}" if form.check else name
    declared, mentioned = _declared(row), Alternative(row, form.cpp)
    texts = [
        *(f"{r.expr} {r.when}" for r in row.rules if not r.text),
        *(f"{' '.join(c.operands)} {c.when}" for c in row.combos),
    ]
    asked = {*row.dtype_of, *(n for text in texts for n in re.findall(r"\w+", text))}
    own = [
        n
        for n in call.operands
        if n in declared and declared[n].optional and not _is_scratch(declared[n], form)
    ]
    own += [a.name for a in row.attrs if a.default is None and not a.required and a.name in mentioned.attrs]
    own = [n for n in own if n in asked]
    return f"{name}_with_{'_'.join(own)}" if own else name


def _check(row: Row, name: str, group: list[tuple[Form, Call]]) -> Check:
    form, call = group[0]
    declared = _declared(row)
    present = [n for n in call.operands if n in declared and not _is_scratch(declared[n], form)]
    classes: dict[str, tuple[str, ...]] = {}
    for n in present:
        kinds = tuple(
            k
            for k in _CLASSES
            if k in declared[n].kinds or (k == "view" and "tensor_view" in declared[n].kinds)
        )
        if kinds and n not in form.scalars and not declared[n].variadic:
            classes[n] = kinds
    fixed, open_, defaults = _attributes(row, group)
    there = {*present, *open_, *(n for f, _ in group for n in Alternative(row, f.cpp).attrs)}
    there |= {n for n, value in fixed.items() if value is not None}
    scratch = {o.name for o in row.operands if _is_scratch(o, form)}
    known = _Known(frozenset(there), frozenset(scratch), fixed)
    rules = tuple(known.rules(r for r in row.rules if not r.text))
    combos = tuple(known.combos(row.combos))
    used = {n for r in rules for n in re.findall(r"\w+", f"{r.expr} {r.when}")}
    used |= {n for n in open_ if _is_limited(row.attr_index[n])}
    attrs = {n: open_[n] for n in sorted(open_, key=lambda n: n in defaults) if n in used}
    return Check(
        row.replace(rules=rules, combos=combos),
        name,
        call,
        tuple(f for f, _ in group),
        classes,
        attrs,
        {n: text for n, text in defaults.items() if n in attrs},
        tuple(n for n in present if n not in classes and not declared[n].variadic),
    )


def _is_limited(attr: Attr) -> bool:
    """Return True if C++ could give an attribute an illegal value."""
    return bool(attr.choices) and (attr.kind in ENUMS or attr.kind == "int")


def _attributes(
    row: Row, group: list[tuple[Form, Call]]
) -> tuple[dict[str, Any], dict[str, TemplateAttribute], dict[str, str]]:
    """Return attributes with one value in all forms, attributes that are template arguments, and the defaults
    of the latter."""
    fixed: dict[str, Any] = {}
    open_: dict[str, TemplateAttribute] = {}
    for attr in row.attrs:
        values: list[Any] = []
        for form, call in group:
            if attr.name in form.fixes:
                values.append(form.fixes[attr.name])
            elif attr.name not in Alternative(row, form.cpp).attrs:
                values.append(attr.default)
            else:
                spelled = spelling(attr, call)
                if spelled is not None:
                    open_[attr.name] = TemplateAttribute(attr.name, spelled)
        if len(values) == len(group) and all(v == values[0] for v in values):
            fixed[attr.name] = values[0]
        elif attr.name not in open_ and len(values) == len(group):
            open_[attr.name] = TemplateAttribute(attr.name, _plain(attr))
    defaults: dict[str, str] = {}
    for attr in row.attrs:
        value = attr.assumed if attr.default is None else attr.default
        if attr.name in open_ and value is not None:
            try:
                defaults[attr.name] = open_[attr.name].spelled(value)
            except Open:
                del open_[attr.name]
    return fixed, open_, defaults


def spelling(attr: Attr, call: Call) -> Callable[[object], str] | None:
    """Return the spelling of an attribute as a template argument."""
    found = re.search(rf"([\w:]*)\${attr.name}\b(?:\.([UCN]))?", call.types)
    if found is None and not re.search(
        rf"\b(?:{attr.name}|{attribute_class(attr) or attr.name})\b", call.types
    ):
        return None
    return _plain(attr, found[1], found[2]) if found else _plain(attr)


def _plain(attr: Attr, prefix: str = "", case: str | None = None) -> Callable[[object], str]:
    """Return a spelling of attribute values in C++: after a prefix, in upper or camel case."""

    def spelled(value: object) -> str:
        if case == "N":
            return str(int(bool(value)))
        if isinstance(value, bool):
            return str(value).lower()
        text = str(value)
        if attr.kind in ENUMS and not prefix:
            return ENUMS[attr.kind].spelling(text).removeprefix("pto::")
        if case == "C":
            text = "".join(w[:1].upper() + w[1:] for w in text.split("_"))
        if prefix.endswith("::") and text.isdigit():
            raise Open  # a number that has a name in C++
        return prefix + (text.upper() if case == "U" else text)

    return spelled


_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.In: lambda one, of: one in of,
    ast.NotIn: lambda one, of: one not in of,
}  # fmt: skip


def _is_known(node: ast.expr) -> bool:
    """Return True if a side of a comparison is a constant, or a tuple of constants."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_known, node.elts))
    return isinstance(node, ast.Constant)


class _Known(ast.NodeTransformer):
    """Replaces facts that a form decides by their truth: present operands, and values of attributes."""

    def __init__(self, there: frozenset[str], scratch: frozenset[str], attrs: dict[str, Any]) -> None:
        self.there, self.scratch, self.attrs = there, scratch, attrs

    def rules(self, rules: Iterable[Rule]) -> Iterator[Rule]:
        """Yield the rules that a call may break, in the order of reports, each with its code."""
        for rule in sorted(rules, key=stage_of):
            guard, expr = self._simplified(rule.when or "True"), self._simplified(rule.expr)
            if guard == "False" or expr == "True" or not _owners(expr) <= self.there:
                continue
            if expr == "False":  # the message is that of the rule in the table
                rule = rule.replace(msg=rule.msg or explain(rule.expr, {})[0])
            yield rule.replace(expr=expr, when="" if guard == "True" else guard, code=code_of(rule))

    def combos(self, combos: Iterable[Combos]) -> Iterator[Combos]:
        for one in combos:
            guard = self._simplified(one.when or "True")
            if guard != "False" and set(one.operands) <= self.there | self.scratch:
                yield one.replace(when="" if guard == "True" else guard)

    def _simplified(self, text: str) -> str:
        return ast.unparse(self.visit(ast.parse(text, mode="eval").body))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(ast.Name("has"), [ast.Name(name)]) if name not in self.scratch:
                return ast.Constant(name in self.there)
            case _:
                return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(self.attrs[node.id]) if node.id in self.attrs else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        made = self.generic_visit(node)
        assert isinstance(made, ast.Compare)
        match made:
            case ast.Compare(left, [op], [right]) if _is_known(left) and _is_known(right):
                return ast.Constant(
                    bool(_COMPARISONS[type(op)](ast.literal_eval(left), ast.literal_eval(right)))
                )
            case _:
                return made

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        deciding = isinstance(node.op, ast.Or)
        values: list[ast.expr] = []
        for value in (self.visit(v) for v in node.values):
            if isinstance(value, ast.Constant):
                if bool(value.value) == deciding:
                    return ast.Constant(deciding)
            else:
                values.append(value)
        if not values:
            return ast.Constant(not deciding)
        return values[0] if len(values) == 1 else ast.BoolOp(node.op, values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        made = self.generic_visit(node)
        match made:
            case ast.UnaryOp(ast.Not(), ast.Constant(value)):
                return ast.Constant(not value)
            case _:
                return made


@cache
def _owners(text: str) -> set[str]:
    """Return the operands of an expression."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(ast.Name(name)) | ast.Attribute(ast.Subscript(ast.Name(name))):
                names.add(name)
            case ast.Call(ast.Name("valid_eq" | "valid_le"), args):
                names |= {a.id for a in args if isinstance(a, ast.Name)}
            case _:
                pass
    return names


# ---- the function ----


class Assertion(Record):
    """A condition, and the message if it does not hold."""

    condition: str
    code: str
    message: str
    on: tuple[str, ...] = ISAS  # legality columns with this condition
    tiles: tuple[str, ...] = ()  # operands to check only if they are tiles
    # for a check at run time: values to report, with their words
    shown: tuple[tuple[str, str], ...] | None = None


def functions(given: Iterable[Check]) -> Iterator[str]:
    """Yield the functions of the checks of one call; they call functions with common conditions."""
    checks = {check.name: check for check in given}
    asserted = {name: list(check.assertions) for name, check in checks.items()}
    calls: dict[str, list[str]] = {name: [] for name in checks}
    for k, (users, found) in enumerate(_shared(asserted).items(), 1):
        check = checks[users[0]]
        name = f"check_{check.call.name.lower()}_{k}"
        words = {w for a in found for w in re.findall(r"(?<![:\w])\w+", a.condition)}
        words |= {type_of(n) for a in found for n in a.tiles}
        params = [type_of(n) for n in check.classes if type_of(n) in words]
        attrs = [n for n in check.attrs if n in words]
        listed = ", ".join([*(f"class {n}" for n in params), *(f"auto {n}" for n in attrs)])
        yield from filled("template <", f"{listed}>", "          ")
        yield f"constexpr void {name}() {{"
        yield from _lines(check, found)
        yield from ("}", "")
        for user in users:
            calls[user].append(f"{name}<{', '.join([*params, *attrs])}>();")
            asserted[user] = [a for a in asserted[user] if a not in found]
    for name, check in checks.items():
        if not check.is_empty:
            yield from _function(check, calls[name], asserted[name])


def _shared(asserted: dict[str, list[Assertion]]) -> dict[tuple[str, ...], list[Assertion]]:
    """Return shared assertions by the names of their checks. Assertions whose sharing would save few lines
    are not shared.
    """
    users: dict[Assertion, list[str]] = {}
    for name, found in asserted.items():
        for one in found:
            users.setdefault(one, []).append(name)
    groups: dict[tuple[str, ...], list[Assertion]] = {}
    for one, names in users.items():
        groups.setdefault(tuple(names), []).append(one)
    return {names: found for names, found in groups.items() if (len(names) - 1) * len(found) > 2}


def _function(check: Check, calls: list[str], found: list[Assertion]) -> Iterator[str]:
    """Yield the function of a check, over types, then attributes; its arguments are the values to check."""
    listed = [f"class {type_of(n)}" for n in check.classes]
    listed += [f"auto {n}{f' = {check.defaults[n]}' if n in check.defaults else ''}" for n in check.attrs]
    listed += [f"class {type_of(n)}" for n in check.values if n in check.scalars]
    yield from filled("template <", ", ".join(listed) + ">", "          ")
    values = [f"const {type_of(n)}& {n}" for n in check.values]
    yield from filled(f"constexpr void {check.name}(", ", ".join(values) + ") {", "    ")
    yield from (f"  {call}" for call in calls)
    yield from _lines(check, found)
    if check.asked:
        yield "#ifdef PTO_CHECKED"
        yield from filled("  if (idle(", ", ".join(check.values) + ")) return;", "      ")
        yield from _lines(check, list(check.asked))
        yield "#endif"
    yield from ("}", "")


def _lines(check: Check, found: list[Assertion]) -> Iterator[str]:
    """Yield assertions by their columns; checks at run time keep their order, so that the first broken rule
    is the same in all engines."""
    static = [a for a in found if a.shown is None]
    later = [a for a in found if a.shown is not None]
    static.sort(key=lambda a: (a.on != ISAS, a.on, a.tiles))
    for on, group in groupby([*static, *later], key=lambda a: a.on):
        if on != ISAS:
            yield "#if " + " || ".join(f"defined(PTO_ISA_{isa.upper()})" for isa in on)
        yield from _asserted(check, group)
        if on != ISAS:
            yield "#endif"


def _asserted(check: Check, found: Iterable[Assertion]) -> Iterator[str]:
    """Yield the assertions of one set of columns; assertions only for tiles come separately."""
    for tiles, group in groupby(found, key=lambda a: a.tiles):
        if tiles:
            yield f"  if constexpr ({' && '.join(f'is_tile_data_v<{type_of(n)}>' for n in tiles)}) {{"
        indent = "    " if tiles else "  "
        for one in group:
            message = f"{check.call.name}: {one.message}"
            if one.shown is None:
                yield from assertion(one.condition, f"[PTO][{one.code}] {message}", indent)
            else:
                yield from run_time_check(one.condition, one.code, message, one.shown, indent)
        if tiles:
            yield "  }"


def _assertions(check: Check) -> Iterator[Assertion]:
    """Yield the conditions over the types of the operands."""
    row, first = check.row, next(iter(check.classes))
    absent = [i for i in ISAS if i not in row.isas]
    if absent:
        where = " and ".join(ARCH_NAMES[i] for i in row.isas if i != "cpu") or "the CPU"
        yield Assertion(f"never<{type_of(first)}>", "PTO-E0601", f"only on {where}", tuple(absent))
    for name, attr in check.attrs.items():
        if _is_limited(row.attr_index[name]):
            listed = " || ".join(f"{name} == {attr.spelled(v)}" for v in row.attr_index[name].choices)
            yield Assertion(listed, "PTO-E0112", f"{name} is none of its values")
    yield from _element_types(check)
    for combos in row.combos:
        yield from _combinations(check, _without_scratch(combos))
        if {"src", "dstVal"} <= check.classes.keys() & set(combos.operands):
            same = "same_kind<typename DstVal::DType, typename Src::DType>"
            yield Assertion(same, combos.code, "dstVal must have the element type of src")
    yield from _rules(check)


# -- element types


def _element_types(check: Check) -> Iterator[Assertion]:
    row = check.row
    for name in row.dtype_of:
        if name not in check.classes:
            continue
        for on, legal in _grouped({isa: frozenset(found) for isa, found in row.dtypes.items()}):
            shown = "/".join(t for t in row.dtypes[on[0]])
            message = f"the element type of {name} is not supported ({shown}); fix: {_FIX['dtype']}"
            others = _elsewhere(row.dtypes, on) - legal
            if row.dtype_code or not others:
                code = row.dtype_code or "PTO-E0302"
                yield Assertion(f"is_one_of<{type_of(name)}>({mask_of(legal)})", code, message, on)
                continue
            yield Assertion(
                f"is_one_of<{type_of(name)}>({mask_of(legal | others)})", "PTO-E0302", message, on
            )
            condition = f"is_one_of<{type_of(name)}>({mask_of(set(DTYPES) - others)})"
            yield Assertion(condition, "PTO-E0602", f"the element type of {name} needs another target", on)


def _grouped(values: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the groups of columns that have the same value."""
    for value in dict.fromkeys(values[isa] for isa in ISAS if isa in values):
        yield tuple(isa for isa in ISAS if values.get(isa) == value), value


def _elsewhere(values: dict[str, Any], on: tuple[str, ...]) -> set[Any]:
    """Return the values of other targets; no other target has them if a program is for the simulator."""
    if "cpu" in on and len(on) > 1:
        return set()  # all targets have the same values
    return (
        set[Any]().union(*(values.get(isa, ()) for isa in ISAS if isa != "cpu")) if on != ("cpu",) else set()
    )


def _without_scratch(combos: Combos) -> Combos:
    """Return combinations without the columns of scratch tiles, which C++ calls ignore. Leave out values that
    are copied bit for bit, too: they are signless in the text, and have either sign in C++.
    """
    kept = [k for k, name in enumerate(combos.operands) if name not in ("tmp", "dstVal")]
    return combos.replace(
        operands=tuple(combos.operands[k] for k in kept),
        legal={i: tuple(tuple(c[k] for k in kept) for c in found) for i, found in combos.legal.items()},
    )


def _combinations(check: Check, combos: Combos) -> Iterator[Assertion]:
    """Yield the legal combinations of element types, by the types of all operands but the last."""
    kept = [k for k, n in enumerate(combos.operands) if n in check.classes]
    names = [combos.operands[k] for k in kept]
    legal = {i: frozenset(tuple(c[k] for k in kept) for c in found) for i, found in combos.legal.items()}
    fix = (
        "see the pairs with `pto isa tcvt`, convert in two steps"
        if check.row.name == "tcvt"
        else _FIX["dtype"]
    )
    message = f"the element types of {_and(names)} are no legal combination; fix: {fix}"
    code = combos.code or check.row.dtype_code
    for on, found in _grouped(legal):
        rule = Rule(expr="True", on=on, when=combos.when)
        others = _elsewhere(legal, on) - found
        if code or not others:
            yield from _guarded(check, rule, _combined(names, found), code or "PTO-E0302", message)
            continue
        yield from _guarded(check, rule, _combined(names, found | others), "PTO-E0302", message)
        wanted = f"the element types of {_and(names)} need another target"
        yield from _guarded(check, rule, f"!{_combined(names, others)}", "PTO-E0602", wanted)


def _combined(names: list[str], legal: Collection[tuple[str, ...]]) -> str:
    table: dict[int, set[str]] = {}
    for *head, last in sorted(legal, key=lambda combo: [NUMBERS[t] for t in combo]):
        table.setdefault(sum(NUMBERS[t] << 8 * i for i, t in enumerate(head)), set()).add(last)
    pairs = [f"{{{key:#x}, {mask_of(lasts)}}}" for key, lasts in table.items()]
    types = [type_of(n) for n in names]
    return f"are_combined<{', '.join(types)}>({{{', '.join(pairs)}}})" if pairs else f"never<{types[0]}>"


def _and(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


# -- rules


def asserted(check: Check, rule: Rule) -> Assertion | None:
    """Return the assertion for a rule of the check; None if types do not decide it."""
    return next(_guarded(check, rule, "", rule.code, rule.msg), None)


#: Rules that many operands share: an example, the condition over all operands, and the message.
_SHARED = (
    (re.compile(r"(\w+)\.loc == (\w+)"), "all_in<TileType::{1}, {0}>()",
     "expects {0} to be in the {1} address space", "loc"),
    (re.compile(r"(\w+)\.dtype == (\w+)\.dtype"), "same_dtype<{1}, {0}>()",
     "expects {0} to have the element type of {1}", "dtype"),
    (re.compile(r"(\w+)\.blayout == (ROW)"), "all_row_major<{0}>()",
     "expects {0} to use row-major layout", "blayout"),
)  # fmt: skip


def _rules(check: Check) -> Iterator[Assertion]:
    """Yield the rules that types decide; equal rules are merged."""
    shared: dict[tuple[int, Rule, str], list[str]] = {}
    own: list[Assertion] = []
    for rule in _by_columns(check.row.rules):
        for k, (form, *_) in enumerate(_SHARED):
            match = form.fullmatch(rule.expr)
            if match and not rule.msg and all(_is_plain(check, n, k) for n in match.groups()):
                shared.setdefault((k, rule.replace(expr=""), match[2]), []).append(match[1])
                break
        else:
            fact = next((f for f in _FIX if f in facts_in(rule.expr)), "")
            fix = f"; fix: {_FIX[fact]}" if fact else ""
            own += _guarded(check, rule, "", rule.code, _message(rule) + fix)
    for (k, rule, other), names in shared.items():
        _, condition, message, fact = _SHARED[k]
        second = LOCATIONS.get(other) or type_of(other)
        text = condition.format(", ".join(map(type_of, names)), second)
        shown = message.format(_and(names), other.lower() if fact == "loc" else other)
        yield from _guarded(check, rule, text, rule.code, f"{shown}; fix: {_FIX[fact]}")
    yield from dict.fromkeys(own)


def _by_columns(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield rules; merge rules that differ only in their columns."""
    columns: dict[Rule, set[str]] = {}
    for rule in rules:
        columns.setdefault(rule.replace(on=()), set()).update(rule.on or ISAS)
    for anywhere, on in columns.items():
        yield anywhere.replace(on=tuple(isa for isa in ISAS if isa in on))


def _message(rule: Rule) -> str:
    return rule.msg or explain(rule.expr, {})[0]


def _is_plain(check: Check, name: str, shared: int) -> bool:
    """Return True if a shared rule applies to an operand and its partner: the operand is always a tile, or
    may be of any kind.
    """
    if name not in check.classes:
        return name not in {o.name for o in check.row.operands} and not name.islower()
    return check.classes[name] == ("tile",) or _SHARED[shared][3] == "dtype"


def _guarded(check: Check, rule: Rule, condition: str, code: str, message: str) -> Iterator[Assertion]:
    """Yield the condition (or that of the rule) where the rule applies; nothing if types do not decide."""
    scope = Scope(check.classes, check.attrs)
    first = next(iter(check.classes))
    try:
        if not condition:
            condition = f"never<{type_of(first)}>" if rule.expr == "False" else scope.condition(rule.expr)
        if rule.when:
            condition = f"!({bare(scope.condition(rule.when))}) || {condition}"
    except Open:
        return
    if scope.static:
        known = " && ".join(f"{extent} != DYNAMIC" for extent in sorted(scope.static))
        condition = f"!({known}) || {condition}"
    yield Assertion(bare(condition), code, message, rule.on or ISAS, tuple(sorted(scope.tiles)))


# -- values at run time


def _asked_of_values(check: Check) -> Iterator[Assertion]:
    """Yield the conditions over values that types do not decide."""
    for rule in _by_columns(check.row.rules):
        found = asked_of(check, rule)
        if found is not None:
            yield found


def asked_of(check: Check, rule: Rule) -> Assertion | None:
    """Return the run-time check for a rule; None if the rule needs no value, or cannot be checked from
    values.
    """
    if rule.written:
        return None
    scope = Scope(check.classes, check.attrs, check.scalars)
    try:
        condition = scope.condition(rule.expr)
        if rule.when:
            condition = f"!({bare(scope.condition(rule.when))}) || {condition}"
    except Open:
        return None
    if not scope.met:
        return None
    tiles, shown = tuple(sorted(scope.tiles)), tuple(scope.met.items())
    return Assertion(bare(condition), rule.code, _message(rule), rule.on or ISAS, tiles, shown)
