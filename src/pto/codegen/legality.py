"""Generates native/include/pto/ops/legality.hpp: what is legal for the irregular tile instructions, in C++.

    python -m pto.codegen.legality            # write the header
    python -m pto.codegen.legality --check    # say whether it is up to date

A C++ overload is one form of its row: operands that it has, and attributes that it fixes. Of every form in
`_forms` comes a function over its tile types with the rules that those decide, as static assertions with
their ids; ops/*.hpp calls it. Rules that speak of absent operands, of what is only known at run time, or of
attributes that the form leaves open are not among them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from .. import isa
from ..isa.profiles import ARCH_NAMES, ISAS
from ..isa.row import Row
from . import intrinsics

TARGET = intrinsics.TARGET.with_name("legality.hpp")

#: Forms of rows without an expression: row, suffix of the name, operands, attributes.
FORMS: list[tuple[str, str, str, dict[str, str | int]]] = [
    *((name, "", "dst src", {}) for name in (
        "trowargmax trowargmin tcolargmax tcolargmin trowexpand tcolexpand").split()),
    *((name, "_value", "dstVal dst src", {})
      for name in "trowargmax trowargmin tcolargmax tcolargmin".split()),
    ("tpairreducesum", "", "dst src0", {}),
    ("tci", "", "dst", {}),
    ("ttri", "", "dst", {}),
    ("trandom", "", "dst", {}),
    ("thistogram", "", "dst src idx", {}),
    ("tgather", "_index", "dst src indices", {}),
    ("tgather", "_mask", "dst src", {}),
    ("tgather", "_compare", "dst src cdst", {}),
    ("tgatherb", "", "dst src offsets", {}),
    ("tscatter", "_index", "dst src indexes", {}),
    ("tscatter", "_mask", "dst src", {}),
    ("tsort32", "", "dst src idx", {}),
    ("tmrgsort", "_blocks", "dst src blockLen", {}),
    ("tmrgsort", "_lists", "dst src src1 tmp excuted", {}),
    ("tquant", "_sym", "dst src fp", {"quant_type": "INT8_SYM"}),
    ("tquant", "_asym", "dst src fp offset", {"quant_type": "INT8_ASYM"}),
    ("tquant", "_mxfp8", "dst src exp max scaling", {"quant_type": "MXFP8", "grp_axis": 1}),
    ("tquant", "_mxfp4", "dst src exp max scaling", {"quant_type": "MXFP4_E2M1", "grp_axis": 1}),
    ("tquant_dn", "_mxfp8", "dst src exp max scaling", {"quant_type": "MXFP8"}),
    ("tquant_dn", "_mxfp4", "dst src exp max scaling", {"quant_type": "MXFP4_E2M1"}),
    ("tquant_hif4", "", "dst src exp max scaling", {}),
    ("tdequant", "", "dst src scale offset", {}),
]  # fmt: skip


class _Known(ast.NodeTransformer):
    """Replaces what a form decides by its truth."""

    def __init__(self, operands: frozenset[str], attrs: dict[str, str | int]) -> None:
        self.operands, self.attrs = operands, attrs

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(ast.Name("has"), [ast.Name(name)]):
                return ast.Constant(name in self.operands or name in self.attrs)
            case _:
                return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(self.attrs[node.id]) if node.id in self.attrs else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        made = self.generic_visit(node)
        try:
            return ast.Constant(bool(ast.literal_eval(ast.unparse(made))))
        except ValueError:
            pass
        match made:
            case ast.Compare(ast.Constant(a), [ast.Eq()], [ast.Constant(b)]):
                return ast.Constant(a == b)
            case ast.Compare(ast.Constant(a), [ast.In()], [ast.Tuple() as choices]):
                return ast.Constant(a in ast.literal_eval(choices))
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


def simplified(text: str, operands: frozenset[str], attrs: dict[str, str | int]) -> str:
    """A condition in which a form has decided what it can; `True` or `False` where that is all."""
    return ast.unparse(_Known(operands, attrs).visit(ast.parse(text, mode="eval").body)) if text else "True"


def form(row: Row, operands: frozenset[str], attrs: dict[str, str | int]) -> Row:
    """The row as if it had one form only."""
    guards = {r: simplified(r.when, operands, attrs) for r in row.rules if _owners(r.expr) <= operands}
    return row.replace(
        operands=tuple(o for o in row.operands if o.name in operands),
        rules=tuple(
            r.replace(when="" if guard == "True" else guard)
            for r, guard in guards.items()
            if guard != "False"
        ),
        combos=tuple(
            _without_scratch(c) for c in row.combos if simplified(c.when, operands, attrs) == "True"
        ),
    )


def _owners(text: str) -> set[str]:
    """Operands whose facts an expression asks for."""
    asked = (n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute))
    return {value.id for value in asked if isinstance(value, ast.Name)}


def _without_scratch(combos: isa.Combos) -> isa.Combos:
    """Combinations without the column of a scratch tile, which the C++ calls do not look at, and that of a
    value that is copied bit for bit: it may be signless in the text, and then has either sign in C++."""
    kept = [k for k, name in enumerate(combos.operands) if name not in ("tmp", "dstVal")]
    return combos.replace(
        operands=tuple(combos.operands[k] for k in kept),
        legal={i: tuple(tuple(c[k] for k in kept) for c in found) for i, found in combos.legal.items()},
        when="",
    )


def _check(name: str, suffix: str, operands: str, attrs: dict[str, str | int]) -> Iterator[str]:
    row = isa.row(name)
    assert row is not None, name
    head, function, *rest = intrinsics.checks(form(row, frozenset(operands.split()), attrs))
    yield head
    yield function.replace(f"check_{name}()", f"check_{name}{suffix}()")
    absent = [i for i in ISAS if i not in row.isas]
    if absent:
        columns = " || ".join(f"kIsa == Isa::{i}" for i in absent)
        where = " and ".join(ARCH_NAMES[i] for i in row.isas if i != "cpu") or "the CPU"
        message = f"[PTO][PTO-E0601] {name.upper()}: only on {where}"
        yield f'static_assert(!({columns}) || sizeof(dst) == 0, "{message}");'
    yield from rest
    yield ""


_HEAD = """\
// Generated by `python -m pto.codegen.legality` from the instruction table: do not edit.
//
// What is legal for the reductions, expansions, generators, gathers, sorts and quantisations.
#pragma once

#include "pto/core/numbers.hpp"

namespace pto::detail {
"""


def _forms() -> list[tuple[str, str, str, dict[str, str | int]]]:
    """Those of rows with an expression follow from the row: scratch is not looked at."""
    made = [
        r for r in isa.rows()
        if r.set == "tile" and r.expr and r.over and r.over != "parts" and r.name not in intrinsics.BY_HAND
    ]  # fmt: skip
    return [
        *((r.name, "", " ".join(o.name for o in r.operands if o.role != "tmp"), {}) for r in made),
        *FORMS,
    ]


def generate() -> str:
    """The text of the header, not yet laid out."""
    lines = [line for entry in _forms() for line in _check(*entry)]
    return "\n".join([_HEAD, *lines, "}  // namespace pto::detail"]) + "\n"


def main(args: list[str]) -> int:
    return intrinsics.write(TARGET, generate(), "pto.codegen.legality", check="--check" in args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
