"""Description of a row as a page: syntax in every text form, tables and facts, as plain data for the terminal
and the documentation.

    page(row)                    all data, as `Page`
    page(row, examples)          with concrete statements, `{"pto": "...", "ssa": "...", ...}`
    as_json(row)                 the same facts for programs

This module depends neither on the width of a terminal nor on Markdown. In syntax lines `[...]?` is an
optional part, `[...]*` a repeated part, and `type(%x)` the type of operand x.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .algorithms import ALGORITHMS, kind_of
from .costs import costs_of
from .dtypes import DTYPES
from .enums import ENUMS
from .format import AttrDict, FormatGroup, Item, Lit, TypeOf, Var, variables
from .profiles import ISAS, PROFILES
from .record import Record
from .row import EFFECTS, KINDS, SCOPES, Attr, Combos, Operand, Row
from .rule_trees import choices
from .rules import CONSTANTS, FACTS, Rule

#: Text forms in their order of display -> description.
FORMS: dict[str, str] = {
    "pto": "destination style, canonical",
    "ssa": "results instead of outs",
    "asm": "PTO-AS assembly",
    "generic": "MLIR generic form",
}

ROLE_WORDS = {"in": "read", "out": "written", "inout": "read and written", "tmp": "scratch"}


class Table(Record):
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Section(Record):
    """A titled part of a page: paragraphs, then preformatted lines, then a table, each possibly empty."""

    title: str
    text: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    table: Table | None = None


class Page(Record):
    name: str  # with its dialect
    doc: str
    facts: tuple[tuple[str, str], ...]
    syntax: Mapping[str, tuple[str, ...]]  # by form; several lines are alternatives
    examples: Mapping[str, str]  # by form; may be empty
    sections: tuple[Section, ...]


def page(row: Row, examples: Mapping[str, str] | None = None, isas: Sequence[str] = ISAS) -> Page:
    """Return all facts of the table about an instruction; `isas` are the legality columns to show."""
    sections = [
        Section("Operands", table=operand_table(row.operands)),
        Section("Results", table=result_table(row.results)),
        Section("Attributes", code=attribute_spellings(row), table=attribute_table(row)),
        Section("Meaning", text=(row.meaning,)),
        *dtype_sections(row, isas),
        Section("Rules", table=rule_table(row, isas)),
        Section("Cost", table=cost_table(row, isas)),
        Section("Notes", text=notes(row)),
    ]
    shown = tuple(s for s in sections if s.text or s.code or s.table)
    return Page(row.full_name, row.doc, facts(row), syntax(row), dict(examples or {}), shown)


# ----------------------------------------------------------------------------------------------------- syntax


def syntax(row: Row) -> dict[str, tuple[str, ...]]:
    """Return syntax lines by form, in the order of `FORMS`."""
    pto = _structured(row) if row.format == "custom" else tuple(_format_line(row, f) for f in row.formats)
    return {"pto": pto, "ssa": _ssa(row) or pto, "asm": _asm(row) or pto, "generic": (_generic(row),)}


def cost_table(row: Row, isas: Sequence[str] = ISAS) -> Table | None:
    """Return the cost of an instruction with its evidence, for the columns of machines."""
    if not row.pipe or row.dialect != "pto":
        return None
    rows: list[tuple[str, ...]] = []
    for isa in isas:
        if isa in row.isas and isa != "cpu":
            rows += [
                (isa, c.when, f"{c.busy} + {c.after}" if c.after != "0" else c.busy, c.evidence)
                for c in costs_of(row, isa)
            ]
    return (
        Table(("target", "if", "cycles: of the pipe + until done", "evidence"), tuple(rows)) if rows else None
    )


def notes(row: Row) -> tuple[str, ...]:
    """Return the notes without the syntax, which `syntax` shows."""
    out: list[str] = []
    for note in row.notes:
        text = note.split("`", 2)[2].lstrip(";. ") if note.startswith("Text: `") else note
        if text:
            out.append(text)
    return tuple(out)


def _structured(row: Row) -> tuple[str, ...]:
    """Return the syntax of a row with its own parser. Its first note has the syntax as ``Text: `...` ``."""
    for note in row.notes:
        if note.startswith("Text: `"):
            results = _results(row) if not row.results or not row.results[0].variadic else "[%r, .. = ]?"
            return (results + note.split("`")[1].replace("attr-dict", "{..}"),)
    return (row.full_name,)


def _format_line(row: Row, items: tuple[Item, ...]) -> str:
    named = {name for name in variables(items) if name in row.attr_index}
    text = _join(_format_parts(row, items, named))
    space = "" if items[:1] == (Lit("["),) else " "
    return f"{_results(row)}{row.full_name}{space}{text}".rstrip()


def _results(row: Row) -> str:
    names = [f"%{r.name}{', ..' if r.variadic else ''}" for r in row.results if not r.optional]
    optional = [f"%{r.name}" for r in row.results if r.optional]
    if not names:  # no `=` without results
        return f"[{', '.join(optional)} =]? " if optional else ""
    return f"{', '.join(names)}{''.join(f'[, {o}]?' for o in optional)} = "


def _format_parts(row: Row, items: tuple[Item, ...], named: set[str]) -> list[str]:
    out: list[str] = []
    for item in items:
        if isinstance(item, Lit):
            out.append(item.text)
        elif isinstance(item, TypeOf):
            out.append(f"type(%{item.name}){', ..' if item.many else ''}")
        elif isinstance(item, AttrDict):
            out.append(_attr_dict([a for a in row.attrs if a.name not in named]))
        elif isinstance(item, FormatGroup):
            inside = _join(_format_parts(row, item.items, named))
            out.append(f"[{inside}]{'*' if item.repeat else '?'}")
        else:
            out.append(_variable(row, item))
    return [o for o in out if o]


def _variable(row: Row, item: Var) -> str:
    if item.name in row.operand_index:
        return f"%{item.name}{', ..' if item.many else ''}"
    attr = row.attr_index.get(item.name)
    if attr is None:
        return "{ .. }"
    return f"<{attr.name}>" if attr.kind in ENUMS else attr.name.upper()


def _attr_dict(attrs: Sequence[Attr]) -> str:
    """Return `{mode = ..}`, in `[ ]?` if every attribute is optional."""
    if not attrs:
        return ""
    text = "{" + ", ".join(a.name if a.kind == "unit" else f"{a.name} = .." for a in attrs) + "}"
    return text if any(a.required for a in attrs) else f"[{text}]?"


_TIGHT_AFTER = ("(", "[", "<")
_TIGHT_BEFORE = (")", "]", ">", ",")


def _join(parts: Sequence[str]) -> str:
    out = ""
    for part in parts:
        tight = not out or out.endswith(_TIGHT_AFTER) or part.startswith((*_TIGHT_BEFORE, "[,"))
        call = part == "(" and out.endswith(("ins", "outs", "tmp"))
        out += part if tight or call else f" {part}"
    return out


def _flat(operands: Sequence[Operand], typed: bool = False) -> str:
    """Return a flat operand list, or the list of their types."""
    out = ""
    for o in operands:
        name = f"type(%{o.name})" if typed else f"%{o.name}"
        word = f"{name}, .." if o.variadic else name
        comma = ", " if out else ""
        out += f"[{comma}{word}]?" if o.optional else f"{comma}{word}"
    return out


def _is_flat(row: Row) -> bool:
    """Return True if the row has a flat form: it has ins and outs, and positions identify all operands."""
    first = row.format if isinstance(row.format, str) else row.format[0]
    starts = not first or first.startswith(("ins(", "outs("))
    fixed = not any(o.variadic for o in row.operands) and not any(o.optional for o in row.outs)
    return row.is_dps and starts and fixed and row.dialect == "pto"


def _ssa(row: Row) -> tuple[str, ...]:
    if not _is_flat(row):
        return ()
    attrs = _attr_dict(row.attrs)
    middle = f" {attrs}" if attrs else ""
    if any("tile" in o.kinds for o in row.outs):
        results = ", ".join(f"%{o.name}" for o in row.outs)
        types = ", ".join(f"type(%{o.name})" for o in row.outs)
        arrow = types if len(row.outs) == 1 else f"({types})"
        names = f" {_flat(row.ins)}" if row.ins else ""
        return (f"{results} = {row.full_name}{names}{middle} : ({_flat(row.ins, True)}) -> {arrow}",)
    both = (*row.ins, *row.outs)
    return (f"{row.full_name} {_flat(both)}{middle} : ({_flat(both, True)}) -> ()",)


def _asm(row: Row) -> tuple[str, ...]:
    if not _is_flat(row):
        return ()
    both = (*row.outs, *row.ins)
    attrs = _attr_dict(row.attrs)
    return (f"{row.name} {_flat(both)}{' ' + attrs if attrs else ''} : {_flat(both, True)}",)


def _generic(row: Row) -> str:
    attrs = [a.name if a.kind == "unit" else f"{a.name} = .." for a in row.attrs if "." not in a.name]
    if sum(o.optional or o.variadic for o in row.operands) > 1:
        attrs.append("operandSegmentSizes = array<i32: ..>")
    text = f'{_results(row)}"{row.full_name}"({_flat(row.operands)})'
    if attrs:
        text += f" <{{{', '.join(attrs)}}}>"
    if row.regions:
        text += f" ({', '.join('{ .. }' for _ in row.regions)})"
    return f"{text} : ({_flat(row.operands, True)}) -> ({_flat(row.results, True)})"


# ----------------------------------------------------------------------------------------------------- tables


def operand_table(operands: Sequence[Operand]) -> Table | None:
    """Return name, role and kind of each operand."""
    lines = tuple((o.name, ROLE_WORDS[o.role] + _count(o), _kinds(o)) for o in operands)
    return Table(("operand", "role", "kind"), lines) if lines else None


def result_table(results: Sequence[Operand]) -> Table | None:
    lines = tuple((o.name, _kinds(o) + _count(o)) for o in results)
    return Table(("result", "kind"), lines) if lines else None


def _count(o: Operand) -> str:
    return (", optional" if o.optional else "") + (", any number" if o.variadic else "")


def _kinds(o: Operand) -> str:
    return " or ".join(KINDS[k] for k in o.kinds)


def attribute_table(row: Row) -> Table | None:
    """Return name, values, default and meaning of each attribute."""
    lines = tuple((a.name, attribute_values(a), _default(a), a.doc) for a in row.attrs)
    return Table(("attribute", "values", "default", "meaning"), lines) if lines else None


def attribute_spellings(row: Row) -> tuple[str, ...]:
    """Return the spelling of attributes with enumeration values in a program."""
    return tuple(
        f"{a.name} = {ENUMS[a.kind].text(str(a.domain[0]))}"
        for a in row.attrs
        if a.kind in ENUMS and a.domain
    )


def attribute_values(attr: Attr) -> str:
    """Return the legal values as text: the list if it is finite, else the kind of value."""
    if attr.kind == "bool":
        return "true, false"
    return ", ".join(map(str, attr.domain)) or attr.kind


def _default(attr: Attr) -> str:
    if attr.required:
        return "required"
    if attr.default is None:
        return "none"
    return str(attr.default).lower() if isinstance(attr.default, bool) else str(attr.default)


def dtype_sections(row: Row, isas: Sequence[str] = ISAS) -> list[Section]:
    """Return element types per legality column, and the legal combinations."""
    out: list[Section] = []
    if row.dtypes:
        who = ", ".join(row.dtype_of)
        code = f" ({row.dtype_code} otherwise)" if row.dtype_code else ""
        out.append(
            Section("Element types", text=(f"Element types of {who}{code}.",), table=dtype_table(row, isas))
        )
    for combos in row.combos:
        where = f"If {readable(combos.when)}:" if combos.when else "For all operands together:"
        text = where if not combos.code else f"{where[:-1]} ({combos.code} otherwise):"
        out.append(Section("Element type combinations", text=(text,), table=combo_table(row, combos, isas)))
    return out


def dtype_table(row: Row, isas: Sequence[str] = ISAS) -> Table | None:
    """Return one line per element type, with one column per legality column of the row."""
    lines = tuple((d, *_cells(row, row.dtypes, d, isas)) for d in DTYPES)
    used = tuple(line for line in lines if "yes" in line)
    return Table(("element type", *isas), used) if used else None


def combo_table(row: Row, combos: Combos, isas: Sequence[str] = ISAS) -> Table | None:
    """Return one line per legal combination of element types."""
    all_combos = dict.fromkeys(c for legal in combos.legal.values() for c in legal)
    lines = tuple((*combo, *_cells(row, combos.legal, combo, isas)) for combo in all_combos)
    used = tuple(line for line in lines if "yes" in line)
    return Table((*combos.operands, *isas), used) if used else None


def _cells(row: Row, legal: Mapping[str, tuple[Any, ...]], item: Any, isas: Sequence[str]) -> list[str]:
    return ["yes" if isa in row.isas and item in legal.get(isa, ()) else "-" for isa in isas]


# ------------------------------------------------------------------------------------------------------ rules


def rule_table(row: Row, isas: Sequence[str] = ISAS) -> Table | None:
    """Return each rule as text, with its documented id or `yes` per legality column."""
    merged: dict[tuple[str, str, str], dict[str, str]] = {}
    subjects: dict[tuple[str, str, str], list[str]] = {}
    for rule in row.rules:
        for who, what in _statements(rule):
            when = f" if {readable(rule.when)}" if rule.when else ""
            key = (what, when, f"{rule.code} {','.join(rule.on)}" if who else "")
            named = subjects.setdefault(key, [])
            if who and who not in named:
                named.append(who)
            for isa in rule.on or ISAS:
                if isa in row.isas and isa in isas:
                    merged.setdefault(key, {})[isa] = rule.code or "yes"
    lines: dict[str, dict[str, str]] = {}
    for key, cells in merged.items():
        who = f"{', '.join(subjects[key])}: " if subjects[key] else ""
        lines.setdefault(f"{who}{key[0]}{key[1]}", {}).update(cells)
    rows = tuple((text, *(cells.get(isa, "-") for isa in isas)) for text, cells in lines.items())
    return Table(("rule", *isas), rows) if rows else None


def _statements(rule: Rule) -> list[tuple[str, str]]:
    """Return (operand, condition) pairs of a rule. Conjunctions are split; an explicit message is kept
    whole."""
    if rule.msg:
        return [("", rule.msg.removeprefix("expects "))]
    node = ast.parse(rule.expr, mode="eval").body
    parts = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
    return [_statement(part) for part in parts]


_REGION_WORDS = {"valid_eq": "same valid region as", "valid_le": "valid region within that of"}


def _statement(node: ast.expr) -> tuple[str, str]:
    """Return (operand, condition); the operand is "" if it stays within the condition."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        words = _REGION_WORDS.get(node.func.id)
        if words:
            return readable(ast.unparse(node.args[0])), f"{words} {readable(ast.unparse(node.args[1]))}"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Attribute):
        said = _comparison(node.left, node.ops[0], node.comparators[0])
        if said:
            return said
    return "", readable(ast.unparse(node))


def _comparison(left: ast.Attribute, op: ast.cmpop, right: ast.expr) -> tuple[str, str] | None:
    who, noun = ast.unparse(left.value), FACTS[left.attr]
    if isinstance(right, ast.Attribute) and right.attr == left.attr and isinstance(op, ast.Eq):
        return who, f"same {noun} as {ast.unparse(right.value)}"
    listed = choices(right)
    if not listed:
        return None
    if isinstance(op, ast.Eq | ast.In):
        return who, f"{noun} {' or '.join(listed)}"
    if isinstance(op, ast.NotEq | ast.NotIn):
        return who, f"{noun} not {' nor '.join(listed)}"
    return None


class _Spell(ast.NodeTransformer):
    """Transformer that replaces constants by their values."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(str(CONSTANTS[node.id]), node.ctx) if node.id in CONSTANTS else node


def readable(expr: str) -> str:
    """Return an expression as in the documentation: constants by their values, words for `has`."""
    node = _Spell().visit(ast.parse(expr, mode="eval"))
    text = ast.unparse(node)
    for name in sorted(_has_arguments(node), key=len, reverse=True):
        text = text.replace(f"not has({name})", f"{name} is absent")
        text = text.replace(f"has({name})", f"{name} is given")
    return text


def _has_arguments(node: ast.AST) -> set[str]:
    return {
        ast.unparse(n.args[0]) for n in ast.walk(node)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "has"
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------ facts


def facts(row: Row) -> tuple[tuple[str, str], ...]:
    """Return label and value of all facts that fit on a line."""
    variant = f", variant {row.variant}" if row.variant is not None else ""
    pairs = (
        ("set", ", ".join((row.set, *row.also))),
        ("family", row.family),
        ("algorithm", algorithm_text(row)),
        ("profiles", ", ".join(profiles(row))),
        ("pipe", pipe_text(row)),
        ("effect", f"{row.effect}: {EFFECTS[row.effect]}"),
        ("in place", in_place_text(row)),
        ("defines", row.domain),
        ("core", row.core or "any"),
        ("scope", SCOPES[row.scope]),
        ("C++", cpp_text(row)),
        ("bytecode", f"0x{row.opcode:04X}{variant}"),
        ("aliases", ", ".join(row.aliases)),
        ("terminator", "ends a block" if row.terminator else ""),
    )
    return tuple((label, value) for label, value in pairs if value)


def profiles(row: Row) -> tuple[str, ...]:
    """Return the target profiles that have the instruction."""
    return tuple(p.name for p in PROFILES.values() if exists_on(row, p.name))


def exists_on(row: Row, profile: str) -> bool:
    """Return True if a profile has the instruction. Dialects other than `pto` exist on every target."""
    return row.dialect != "pto" or PROFILES[profile].isa in row.isas


def algorithm_text(row: Row) -> str:
    """Return the algorithm of a row and its description, or an empty text."""
    return f"{row.algorithm}. {ALGORITHMS[kind_of(row)[0]].doc}" if row.algorithm else ""


def pipe_text(row: Row) -> str:
    """Return the pipe as text. It may depend on operands, target or an attribute."""
    if isinstance(row.pipe, str):
        return _pipe_name(row, row.pipe)
    cases: list[str] = []
    for condition, pipe in row.pipe:
        name = _pipe_name(row, pipe)
        cases.append(f"{name} if {readable(condition)}" if condition else f"else {name}")
    return "; ".join(cases)


def _pipe_name(row: Row, pipe: str) -> str:
    return f"the pipe that {pipe} names" if pipe in row.attr_index or pipe in row.operand_index else pipe


def in_place_text(row: Row) -> str:
    if not row.in_place:
        return ""
    if row.in_place == "any":
        return "the destination may be any source"
    if row.in_place == "none":
        return "the destination may not share storage with a source"
    return f"the destination may be {' or '.join(row.in_place.split())}"


def cpp_text(row: Row) -> str:
    """Return the C++ spelling, with alternatives separated by ` | `, or the reason why there is none."""
    if not row.cpp:
        return f"none: {row.no_cpp}"
    shown = re.sub(r"\$(\w+)(?::\w+)?(\.[UCNSBWKH](?![\w(]))?", r"\1", row.cpp)
    return re.sub(r"%([a-z]\w*)(?:<\w+>)?", r"\1", shown)


# ----------------------------------------------------------------------------------------------- for programs


def as_json(row: Row) -> dict[str, Any]:
    """Return a row with all its fields, including derived fields."""
    out: dict[str, Any] = {"full_name": row.full_name, "dialect": row.dialect, "profiles": profiles(row)}
    for name, value in row.as_dict().items():
        several: list[Any] = [*value] if isinstance(value, tuple) else []
        out[name] = [v.as_dict() for v in several] if several and isinstance(several[0], Record) else value
    for attr, shown in zip(row.attrs, out["attrs"], strict=True):
        shown["values"] = list(attr.domain)
    out["syntax"] = syntax(row)
    costs = cost_table(row)
    out["costs"] = [dict(zip(costs.head, r, strict=True)) for r in costs.rows] if costs is not None else []
    return out


def algorithms(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the algorithms that rows name instead of an expression, with their descriptions and rows."""
    found: dict[str, Any] = {}
    for row in rows:
        name, _ = kind_of(row)
        if name:
            found.setdefault(name, {"doc": ALGORITHMS[name].doc, "rows": []})["rows"].append(row.name)
    return found


def counts(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the number of rows by set and family, and all accepted names."""
    listed = tuple(rows)
    names = [name for r in listed for name in (r.name, *r.aliases)]
    return {
        "rows": len(listed),
        "names": len(names),
        "by_set": dict(Counter(r.set for r in listed)),
        "by_family": dict(Counter(r.family for r in listed)),
        "inventory": sorted(names),
    }
