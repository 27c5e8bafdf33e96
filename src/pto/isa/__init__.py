"""WHAT exists: dtypes, tiles, profiles and every instruction as one row. Imports nothing of ours.

from pto import isa
isa.row("tadd").doc                 # by mnemonic, alias or full name; None if unknown
isa.profile("a3").capacity["vec"]
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from .dtypes import DTYPES, DType, dtype
from .enums import ENUMS, Enum
from .profiles import DEFAULT, LOCATIONS, PROFILES, Profile, profile
from .row import Attr, Combos, Family, Operand, Row
from .rules import R, Rule
from .tables import MODULES

__all__ = [
    "DEFAULT", "DTYPES", "ENUMS", "LOCATIONS", "PROFILES", "Attr", "Combos", "DType", "Enum", "Family",
    "Operand", "Profile", "R", "Row", "Rule", "dtype", "profile", "row", "rows",
]  # fmt: skip


@cache
def rows() -> tuple[Row, ...]:
    """Every row of the table, in table order."""
    found: list[Row] = []
    for name in MODULES:
        found.extend(import_module(f"{__name__}.tables.{name}").ROWS)
    return tuple(found)


@cache
def _by_name() -> dict[str, Row]:
    table: dict[str, Row] = {}
    for r in rows():
        for name in (r.full_name, *(f"{r.dialect}.{a}" for a in r.aliases)):
            if name in table:
                raise ValueError(f"two rows are called {name}")
            table[name] = r
    return table


def row(name: str) -> Row | None:
    """The row of a mnemonic, alias or full name (`tadd`, `pto.tadd`, `arith.addi`)."""
    table = _by_name()
    return table.get(name) or table.get(f"pto.{name}")


def mnemonics() -> tuple[str, ...]:
    """Every accepted full name."""
    return tuple(_by_name())
