"""Completeness of the table: `problems` of each row, and algorithms that are `unnamed` by all rows. The table
test expects that both return nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from . import meaning
from .algorithms import ALGORITHMS, kind_of
from .dtypes import DTYPES
from .enums import ENUMS
from .format import variables
from .profiles import ISAS
from .row import EFFECTS, FIFO, KINDS, ORDERS, OVER, ROLES, SCOPES, STARTS, STORES, WRITES, Row
from .rule_trees import lowered, names_in
from .rules import lowered_text

_ATTR_KINDS = {"int", "bool", "str", "float", "ints", "type", "symbol", "unit", "any"}


def problems(row: Row) -> list[str]:
    """Return all missing and inconsistent parts of a row."""
    out: list[str] = []

    def need(ok: object, what: str) -> None:
        if not ok:
            out.append(f"{row.name}: {what}")

    need(row.doc and row.doc[0].isupper() and row.doc.endswith("."), "doc is not one capitalized sentence")
    need(len(row.doc) <= 140, "doc is longer than a line")
    need(row.meaning, "no meaning")
    need(bool(row.cpp) != bool(row.no_cpp), "expected either a C++ spelling or the reason for none")
    need(row.effect in EFFECTS, f"unknown effect {row.effect!r}")
    need(row.writes in WRITES, f"unknown writes {row.writes!r}")
    need(row.scope in SCOPES, f"unknown scope {row.scope!r}")
    need(not row.opens or (row.opens in SCOPES and row.regions), f"opens no scope: {row.opens!r}")
    need(not row.order or row.order in ORDERS, f"unknown order {row.order!r}")
    need(not row.fifo or row.fifo in FIFO, f"unknown use of a FIFO: {row.fifo!r}")
    need(row.family != "pipeline-sync" or row.order, "missing order")
    need(row.core in ("", "cube", "vector"), f"unknown core {row.core!r}")
    need(0 <= row.opcode <= 0xFFFE, "opcode out of range")
    need(set(row.isas) <= set(ISAS) and row.isas, "bad isas")
    need(row.effect not in ("memory", "sync") or row.pipe, "no pipe")
    operands = {o.name for o in (*row.operands, *row.results)}
    attrs = {a.name for a in row.attrs}
    need(len(operands) == len(row.operands) + len(row.results), "duplicate operand name")
    for o in (*row.operands, *row.results):
        need(o.role in ROLES, f"{o.name}: unknown role {o.role!r}")
        for kind in o.kinds:
            need(kind in KINDS, f"{o.name}: unknown kind {kind!r}")
    for a in row.attrs:
        need(a.kind in ENUMS or a.kind in _ATTR_KINDS, f"attribute {a.name}: unknown kind {a.kind!r}")
        if a.default is not None and a.domain:
            need(a.default in a.domain, f"attribute {a.name}: default {a.default!r} not in its domain")
    has_tiles = any(o.kind in ("tile", "vreg") for o in row.operands)
    need(not (row.effect == "memory" and has_tiles) or row.dtypes or row.combos, "no dtype legality")
    need(row.effect != "memory" or not row.is_dps or row.in_place, "no in-place rule")
    for isa in row.isas:
        need(not row.dtypes or isa in row.dtypes, f"no dtypes for {isa}")
        for combos in row.combos:
            need(combos.when or isa in combos.legal, f"no dtype combinations for {isa}")
    for isa in (*row.dtypes, *(i for c in row.combos for i in c.legal)):
        need(isa in ISAS, f"unknown legality column {isa!r}")
    for name in row.dtype_of:
        need(name in operands, f"dtype_of names no operand {name!r}")
    for combos in row.combos:
        for name in combos.operands:
            need(name in operands, f"combos name no operand {name!r}")
        for legal in combos.legal.values():
            for combo in legal:
                need(len(combo) == len(combos.operands), f"combination {combo} has the wrong length")
                need(all(d in DTYPES for d in combo), f"combination {combo} has an unknown dtype")
    known = operands | attrs | {"isa"}
    exprs = [e for r in row.rules for e in (r.expr, r.when) if e] + [c.when for c in row.combos if c.when]
    if isinstance(row.pipe, tuple):
        exprs += [condition for condition, _ in row.pipe if condition]
    for expr in exprs:
        try:
            quick = ast.parse(lowered_text(expr), mode="eval")
            need(ast.dump(quick) == ast.dump(lowered(expr)), f"rule {expr!r} is lowered in two ways")
            unknown = names_in(expr) - known
            need(not unknown, f"rule {expr!r} names {', '.join(sorted(unknown))}")
        except SyntaxError as error:
            out.append(f"{row.name}: rule {expr!r}: {error}")
    for rule in row.rules:
        need(set(rule.on) <= set(ISAS), f"rule {rule.expr!r}: unknown column in {rule.on}")
    if row.format != "custom":
        try:
            for items in row.formats:
                unknown = set(variables(items)) - operands - attrs - set(row.regions)
                need(not unknown, f"format names {', '.join(sorted(unknown))}")
        except ValueError as error:
            out.append(f"{row.name}: {error}")
    out += [f"{row.name}: {what}" for what in (*_algorithm(row), *_expressions(row))]
    need(not row.element_at or row.element_at in operands, f"element_at names no operand: {row.element_at!r}")
    for field in ("part_with", "filled_by", "accumulates", "names", "rebinds"):
        named = getattr(row, field)
        need(not named or named in operands, f"{field} names no operand: {named!r}")
    need(
        not row.names or row.results or row.rebinds,
        "names storage, but has neither a result nor a rebound operand",
    )
    need(row.names or not row.window, "window without names")
    need(not row.accumulates or "dst" in operands, "accumulates without a destination")
    need(not row.repeatable or (row.effect == "pure" and not row.regions), "repeatable, but not pure")
    need(row.effect != "alias" or row.names or row.rebinds, "alias without the operand that it aliases")
    need(row.fifo != "alloc" or row.rebinds, "takes a slot without an operand that names it")
    if row.in_place not in ("", "any", "none"):
        need(set(row.in_place.split()) <= operands, f"in_place names no operand: {row.in_place!r}")
    return out


#: Part of the destination that a tile row with an expression replaces. With "parts", hardware keeps the
#: elements that no source has.
_REPLACED = {
    "": "valid", "columns": "valid", "row": "valid", "parts": "part", "column 0": "valid", "row 0": "valid",
    "storage": "valid", "fold columns": "column0", "fold rows": "row0",
}  # fmt: skip
#: Effects of rows with an expression or an algorithm.
_COMPUTING = ("memory", "pure", "io")


def unnamed(rows: Iterable[Row]) -> list[str]:
    """Return the algorithms, or kinds of them, that no row names."""
    used = {kind_of(row) for row in rows if row.algorithm}
    listed = ((a.name, kind) for a in ALGORITHMS.values() for kind in a.kinds or ("",))
    return [": ".join(filter(None, entry)) for entry in listed if entry not in used]


def _algorithm(row: Row) -> Iterator[str]:
    """Yield the problems of the algorithm of a row."""
    if row.expr and row.algorithm:
        yield "an expression and an algorithm"
    if row.effect in _COMPUTING and not row.expr and not row.algorithm:
        yield "neither an expression nor an algorithm"
    if not row.algorithm:
        return
    name, kind = kind_of(row)
    known = ALGORITHMS.get(name)
    if known is None:
        yield f"unknown algorithm {name!r}"
    elif kind not in (known.kinds or ("",)):
        yield f"unknown kind {kind!r} of algorithm {name!r}"


def _expressions(row: Row) -> Iterator[str]:
    """Yield the problems of the expressions of a row."""
    folds = row.over.startswith("fold")
    if row.over not in OVER:
        yield f"unknown range {row.over!r} of the expression"
    if row.store not in STORES:
        yield f"unknown store {row.store!r}"
    operands = {o.name: o for o in row.operands}
    if row.expr and row.set == "tile" and row.writes != _REPLACED.get(row.over):
        yield f"wrong writes {row.writes!r} for an expression over {row.over or 'elements'!r}"
    if row.expr and folds and not row.start:
        yield "a fold without a start"
    if row.start and not folds:
        yield "a start without a fold"
    if row.start and row.start not in STARTS and not row.start.lstrip("-").isdigit():
        yield f"unknown start {row.start!r}"
    for field in ("packed", "floats", "single", "gate"):
        unknown = set(getattr(row, field).split()) - set(operands)
        if unknown:
            yield f"{field} names no operand {', '.join(sorted(unknown))}"
    for key in row.expr_on:
        yield from (
            f"unknown legality column or element type {w!r}" for w in key.split() if w not in (*ISAS, *DTYPES)
        )
        if row.typed not in operands and set(key.split()) & set(DTYPES):
            yield f"expr_on {key!r}: missing operand with the element type"
    known = {*(o.name for o in row.operands if o.reads), *(("acc",) if folds else ())}
    for text in (row.expr, row.skip, *row.expr_on.values()):
        try:
            found = meaning.assigned(text) if text else {}
        except meaning.BadMeaning as error:
            yield f"expression {text!r}: {error}"
            continue
        unknown = {n for e in found.values() for n in meaning.names(e)} - known
        if unknown:
            yield f"expression {text!r} names {', '.join(sorted(unknown))}"
        yield from (f"expression {text!r}: {what}" for e in found.values() for what in _choices(row, e))
        targets = set(found) - {""} - {r.name for r in row.results}
        if targets:
            yield f"expression {text!r} assigns unknown results {', '.join(sorted(targets))}"


def _choices(row: Row, expression: meaning.Expression) -> Iterator[str]:
    """Yield attributes of an expression that are unknown, or that have values without a meaning."""
    for part in meaning.parts(expression):
        if isinstance(part, meaning.Chosen):
            attr = row.attr_index.get(part.attribute)
            if attr is None:
                yield f"unknown attribute {part.attribute!r}"
            else:
                unknown = [v for v in attr.domain if v not in meaning.CHOICES[part.choice]]
                yield from (
                    f"missing {value!r} of {part.attribute!r} in {part.choice!r}" for value in unknown
                )
