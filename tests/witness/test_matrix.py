"""The legality matrix: every row, in every column, with every element type, form of text and rule.

The programs come from `pto.witness` (legal by construction) and `mutate` (one change away).
A rule counts as tested when there is a legal program, and a program one change away from it that is refused
with the code and message of that rule: its passing and its failing twin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

import pytest
from tests.each import each
from tests.sampling import EVERY, some

from pto.asm import FORMS, parse, to_text
from pto.diag import Diagnostic
from pto.ir.context import Context
from pto.ir.types import Type
from pto.isa import Row, Rule, profile, rows
from pto.isa import row as find_row
from pto.isa.dtypes import DTYPES
from pto.isa.profiles import ISAS
from pto.isa.rule_trees import explain
from pto.isa.rules import broken
from pto.verifier import verify
from pto.verifier.rows import RowChecker
from pto.witness.plan import (
    Plan,
    dtype_choices,
    environment,
    first_plan,
    forms,
    plan,
    plans,
    violated,
    with_element,
)  # fmt: skip
from pto.witness.programs import build

from .mutate import variants

#: (row, rule) that no program of one change can break, with the reason.
UNREACHABLE: dict[tuple[str, str], str] = {}

each_family = pytest.mark.parametrize("family", sorted({row.family for row in rows()}))


def cells(family: str) -> Iterator[tuple[Row, str]]:
    """The rows of a family in every column that has them."""
    return ((row, isa) for row in rows() if row.family == family for isa in row.isas)


@cache
def shown(name: str, isa: str) -> dict[str, Plan]:
    """The first legal plan of each form of the row that exists in the column."""
    row = _row(name)
    every = ((plan(row, isa, choice, form) for choice in dtype_choices(row, isa)) for form in forms(row))
    first = (next((p for p in made if not reported(p)), None) for made in every)
    return {form: p for form, p in zip(forms(row), first, strict=True) if p is not None}


@cache
def legal(name: str, isa: str) -> list[Plan]:
    """The legal plans of every form and element type."""
    return list(plans(_row(name), isa))


def turn(things: Sequence[str], row: Row, share: int) -> Sequence[str]:
    """One of `share` things, others for the next row; in `make matrix` all of them."""
    return things if EVERY else things[row.opcode % share :: share]


def _row(name: str) -> Row:
    found = find_row(name)
    assert found is not None
    return found


def reported(made: Plan) -> list[Diagnostic]:
    """Return the diagnostics of the row checker for a planned instruction."""
    module = build(made)
    context = Context(module, profile(made.isa))
    checker = RowChecker(context)
    for op in module.walk():
        if op.row is made.row:
            checker.check(op)
    return context.diagnostics


def errors(made: Plan) -> list[Diagnostic]:
    return [d for d in verify(build(made), made.isa, flags="off") if d.severity == "error"]


@each_family
def test_every_legal_element_type_has_a_legal_program(family: str) -> None:
    each(element_types_are_legal, cells(family))


def element_types_are_legal(row: Row, isa: str) -> None:
    for choice in some(dtype_choices(row, isa), 4):
        made = next(plans(row, isa, choice), None)
        assert made is not None, f"no form of {row.name} is legal with {choice}"
        assert not errors(made), choice


@each_family
def test_every_form_is_legal_and_survives_its_text(family: str) -> None:
    each(forms_survive, (row for row in rows() if row.family == family))


def forms_survive(row: Row) -> None:
    made = [(form, p) for isa in row.isas for form, p in shown(row.full_name, isa).items()]
    seen: set[str] = set()  # columns that have the same program
    for _, p in some(made, 3, by=lambda m: m[0]):  # each form in one of its columns: formats have no columns
        assert not errors(p)
        module = build(p)
        program = to_text(module, "generic")
        if program in seen:
            continue
        seen.add(program)
        assert f'"{row.full_name}"(' not in to_text(module), "no format of the row can say this"
        for form in turn(FORMS, row, 2):
            text = to_text(module, form)
            again = parse(text)
            assert to_text(again, form) == text
            assert to_text(again, "generic") == program, form


def test_every_form_exists_somewhere() -> None:
    each(forms_exist, rows())


def forms_exist(row: Row) -> None:
    for form in forms(row):
        tried = ((isa, c) for isa in row.isas for c in dtype_choices(row, isa))
        assert any(not reported(plan(row, isa, c, form)) for isa, c in tried), f"form {form!r} is never legal"


def test_a_column_without_the_instruction_refuses_it() -> None:
    each(refused, ((row, isa) for row in rows() for isa in ISAS if isa not in row.isas))


def refused(row: Row, isa: str) -> None:
    made = first_plan(row, row.isas[0])
    assert [d.code for d in reported(made.replace(isa=isa))] == ["PTO-E0601"]
    codes = {d.code for d in verify(build(made), isa, flags="off") if d.severity == "error"}
    # The column may lack the buffer or the element type of an operand as well.
    assert codes - {"SA-0351", "PTO-E0602"} == {"PTO-E0601"}


@each_family
def test_other_element_types_are_refused(family: str) -> None:
    if any(row.dtypes or row.combos for row, _ in cells(family)):
        each(other_element_types, ((row, isa) for row, isa in cells(family) if row.dtypes or row.combos))


def other_element_types(row: Row, isa: str) -> None:
    made = first_plan(row, isa)
    legal = row.dtypes.get(isa)
    for name in row.dtype_of if legal else ():
        for other in _with_other_dtypes(made, name):
            have = str(next(iter(other.operands.get(name, ()) or other.results[name])).dtype)  # type: ignore[attr-defined]
            if have in legal or f"u{have[1:]}" in legal:  # type: ignore[operator]
                continue
            codes = {d.code for d in reported(other) or errors(other)}
            assert codes & {row.dtype_code or "PTO-E0302", "PTO-E0602", "PTO-E0303"}, (name, have, codes)


def _with_other_dtypes(made: Plan, name: str) -> Iterator[Plan]:
    def changed(types: tuple[Type, ...], dtype: str) -> tuple[Type, ...]:
        return tuple(with_element(t, dtype) for t in types)

    for dtype in turn(tuple(DTYPES), made.row, 3):
        if name in made.operands:
            yield made.replace(operands={**made.operands, name: changed(made.operands[name], dtype)})
        elif name in made.results:
            yield made.replace(results={**made.results, name: changed(made.results[name], dtype)})


# --------------------------------------------------------------------------------------------------- rules


@each_family
def test_every_rule_has_a_passing_and_a_failing_program(family: str) -> None:
    """In one of its columns: the columns alternate, so that the rules of every row are tried in all of
    them."""
    every = [(row, rule, k) for row in rows() if row.family == family for k, rule in enumerate(row.rules)]
    if every:
        # Rows of a family share rules: one row for each rule.
        each(has_twins, every if EVERY else some({case[1]: case for case in every}.values(), 4))


def has_twins(row: Row, rule: Rule, turn: int) -> None:
    columns = [isa for isa in row.isas if not rule.on or isa in rule.on]
    if columns and (row.name, rule.expr) not in UNREACHABLE:
        isa = columns[turn % len(columns)]
        assert twins(rule, list(shown(row.full_name, isa).values())) is not None, (
            f"{isa}: {rule.expr}   when {rule.when or 'always'}"
        )


def test_every_rule_speaks_of_a_column_some_row_has() -> None:
    """Families share rules, so one row may lack the column; a rule that no row can reach is dead."""
    reached = {rule for row in rows() for rule in row.rules if not rule.on or set(rule.on) & set(row.isas)}
    dead = {(row.name, rule.expr) for row in rows() for rule in row.rules if rule not in reached}
    assert not dead


def twins(rule: Rule, bases: list[Plan]) -> tuple[Plan, Plan] | None:
    """A legal plan and a plan one change away that the checker refuses with this rule."""
    names = _names(rule, bases[0].row)
    for passing in _legal_neighbours(rule, bases):
        for _, mutant in variants(passing, names):
            if broken(rule, environment(mutant, names)) and fires(rule, mutant):
                return passing, mutant
    return None


def _legal_neighbours(rule: Rule, bases: list[Plan]) -> Iterator[Plan]:
    """The given plans, those of every other element type, then legal plans one change away."""
    yield from bases
    row, isa = bases[0].row, bases[0].isa
    yield from legal(row.full_name, isa)
    for base in bases:
        for _, made in variants(base, _names(rule, row)):
            if not violated(made) and not reported(made):
                yield made


def _names(rule: Rule, row: Row) -> set[str]:
    words = set(re.findall(r"[A-Za-z_]\w*", f"{rule.expr} {rule.when}"))
    return words & {*(o.name for o in (*row.operands, *row.results)), *row.attr_index}


def fires(rule: Rule, made: Plan) -> bool:
    """Return True if the checker reports the rule, with its code and message."""
    env = environment(made)
    assert broken(rule, env)
    message = f"{made.row.name}: {rule.msg or explain(rule.expr, env)[0]}"
    codes = (rule.code,) if rule.code else ("PTO-E0116", "PTO-E0301", "PTO-E0401", "PTO-E0501")
    return any(d.code in codes and d.message == message for d in reported(made))
