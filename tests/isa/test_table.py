"""The table is complete: every instruction of the ISA has a row, every row is whole, no number ever moves.

`inventory.csv` lists the instructions of the ISA by set; `opcodes.csv` is the frozen numbering. A new row is
added to the latter by hand; a line that changes is a break of every bytecode file out there.
"""

from __future__ import annotations

import csv
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.each import each

from pto.isa import Row, rows
from pto.isa.audit import problems, unnamed
from pto.isa.errors import CATALOGUE
from pto.isa.profiles import ISAS, PROFILES
from pto.isa.row import Family
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
    """A row says where its scratch is written, and where the target has some of its own instead."""
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
