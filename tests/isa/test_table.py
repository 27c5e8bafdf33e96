"""The table is complete: every instruction of the ISA has a row, every row is whole, no number ever moves.

`inventory.csv` lists the instructions of the ISA by set; `opcodes.csv` is the frozen numbering. A new row is
added to the latter by hand; a line that changes is a break of every bytecode file out there.
"""

from __future__ import annotations

import csv
import re
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.each import each

from pto import isa
from pto.isa import Row, rows
from pto.isa.audit import problems, unnamed
from pto.isa.errors import CATALOGUE
from pto.isa.profiles import ISAS, PROFILES
from pto.isa.row import Family
from pto.isa.rule_trees import explain
from pto.isa.rules import CONSTANTS, FACTS, FUNCTIONS
from pto.isa.tables import MODULES

_HERE = Path(__file__).parent


def _table(name: str) -> list[dict[str, str]]:
    with (_HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _called(name: str) -> list[Row]:
    """The rows an inventory name stands for; `arith.*` is the whole dialect."""
    if name.endswith(".*"):
        return [row for row in rows() if row.dialect == name[:-2]]
    return [row for row in rows() if name in (row.name, row.full_name, *row.aliases)]


def test_every_instruction_of_the_isa_has_a_row() -> None:
    each(has_row, _table("inventory.csv"))


def has_row(entry: dict[str, str]) -> None:
    found = _called(entry["name"])
    if entry["set"] == "comm":  # tgather and tscatter are other instructions between ranks than on a tile
        found += _called(f"comm.{entry['name']}")
    assert any(entry["set"] in (row.set, *row.also) for row in found)


def test_a_module_counts_as_loaded_when_all_its_rows_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads look for rows meanwhile."""
    known: dict[str, Row] = {}

    class Loaded(dict[str, Any]):
        def __setitem__(self, module: str, found: tuple[Row, ...]) -> None:
            assert {r.full_name for r in found} <= set(known), module
            super().__setitem__(module, found)

    monkeypatch.setattr(isa, "_index", known)
    monkeypatch.setattr(isa, "_loaded", Loaded())
    assert isa.row("tadd") is not None and len(isa.rows()) > 500


def test_every_row_is_complete() -> None:
    assert [found for row in rows() if (found := problems(row))] == []
    assert unnamed(rows()) == []


def test_opcodes_are_unique() -> None:
    seen: dict[tuple[int, int | None], str] = {}
    for row in rows():
        number = (row.opcode, row.variant)
        assert number not in seen, f"{row.name} and {seen[number]} share {row.opcode:#06x}"
        seen[number] = row.name
    shared = {row.opcode for row in rows() if row.variant is not None}
    assert not [row.name for row in rows() if row.opcode in shared and row.variant is None]


def test_opcodes_are_the_frozen_ones() -> None:
    frozen = {e["name"]: (int(e["opcode"], 16), e["variant"]) for e in _table("opcodes.csv")}
    now = {r.full_name: (r.opcode, "" if r.variant is None else str(r.variant)) for r in rows()}
    assert now == frozen


def test_every_code_of_a_row_is_explained() -> None:
    for row in rows():
        codes = {row.dtype_code, *(rule.code for rule in row.rules), *(c.code for c in row.combos)} - {""}
        assert codes <= set(CATALOGUE), row.name


def test_scratch_that_only_some_targets_use() -> None:
    """A row declares where its scratch is written, and where the target has some of its own instead."""
    for row in rows():
        tmp = [o for o in row.operands if o.role == "tmp"]
        if row.tmp_on:
            assert tmp and set(row.tmp_on) < set(ISAS), row.name
        if row.own_tmp_on:
            assert all(o.optional for o in tmp) and set(row.own_tmp_on) <= set(row.tmp_on), row.name
            assert any(p.own_tmp for p in PROFILES.values() if p.isa in row.own_tmp_on), row.name
    found = {row.name: row.tmp_on for row in rows()}
    assert found["trowsum"] == ("a2a3",) and found["tcvt"] == ()
    at, size = PROFILES["a2a3"].own_tmp or (0, 0)
    assert at + size == PROFILES["a2a3"].capacity["vec"]


def test_threads_may_use_a_row_for_the_first_time_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread is about to complete it when another one needs it."""
    row = Family("new", "tile", doc="d", meaning="x", operands="dst:out")("tnew", opcode=1)
    facts = Family._facts

    def interrupted(self: Family, name: str, own: dict[str, Any]) -> dict[str, Any]:
        monkeypatch.setattr(Family, "_facts", facts)
        with ThreadPoolExecutor(1) as other:
            assert other.submit(lambda: row.family).result() == "new"
        return facts(self, name, own)

    monkeypatch.setattr(Family, "_facts", interrupted)
    assert [o.name for o in row.operands] == ["dst"] and row.opcode == 1
    assert not hasattr(row, "no_such_field") and not hasattr(row, "_no_such_field")


def test_a_row_is_found_by_its_first_letter() -> None:
    """The module of a row is loaded for the letter that its names begin with, or for its dialect."""
    for module, letters in MODULES.items():
        for row in import_module(f"pto.isa.tables.{module}").ROWS:
            names = (row.name, *row.aliases)
            assert {n[0] if row.dialect == "pto" else row.dialect for n in names} <= set(letters.split()), (
                module
            )


def test_no_message_is_written_in_the_language_of_rules() -> None:
    """Facts, functions, constants and lists of rules are words in a message; formulas may be formulas."""
    arithmetic = {"min", "max", "abs", "ceil"}
    calls = "|".join(sorted(FUNCTIONS.keys() - arithmetic))
    said_alike = {name for name, value in CONSTANTS.items() if name == value}
    constants = "|".join(sorted(CONSTANTS.keys() - said_alike - {"True", "False"}))
    language = re.compile(
        rf"\b(?:{calls})\(|\w\.(?:{'|'.join(FACTS)})\b|[!=]= (?:{constants})\b|[!=]= '|\bin \(|\*\*| if .* else "
    )

    def check(row: Row, expr: str, msg: str) -> None:
        words = explain(expr, {})[0]  # with a message of its own, too
        message = msg or words
        assert not language.search(message), f"{row.name}: {message}"

    each(check, [(row, rule.expr, rule.msg) for row in rows() for rule in row.rules])


def test_conditions_of_rules_in_words() -> None:
    def check(expr: str, message: str) -> None:
        assert explain(expr, {})[0] == f"expects {message}"

    each(
        check,
        [
            ("a.rows == b.rows", "a and b to have the same rows"),
            ("a.loc in (VEC, MAT)", "a to be in the vec/mat address space"),
            ("not has(tmp)", "no tmp"),
            ("has(a) == has(b)", "a and b together or neither"),
            ("has(a) != has(b)", "either a or b"),
            ("valid_le(a, b)", "the valid region of a not to exceed that of b"),
            ("valid_eq(a, d) or valid_eq(b, d)",
             "a and d to have the same valid_shape, or b and d to have the same valid_shape"),
            ("a.layout == ND and b.dtype in (I32, U32)", "a to use the ND layout and b element type to be i32/u32"),
            ("1 in (a.v_row, a.v_col)", "a valid rows or a valid columns to be 1"),
            ("mode not in ('x', 'y')", "mode not to be x/y"),
            ("0 <= n.const < 2**16", "0 <= n < 65536"),
            ("all(0 <= v.const < 4 for v in loop)", "0 <= v < 4 for every v of loop"),
            ("a.rows % (32 // a.bytes) == 0", "a rows % (32 // a element bytes) == 0"),
            ("a.rows >= ceil(b.v_row, 2) - (1 + n.const)", "a rows >= ceil(b valid rows / 2) - (1 + n)"),
            ("(a.cols if a.blayout == ROW else a.rows) <= 4",
             "(a columns where a uses the row_major blayout, else a rows) <= 4"),
        ],
    )  # fmt: skip
