"""WHAT exists: dtypes, tiles, profiles and every instruction as one row. Imports nothing of ours.

    from pto import isa
    isa.row("tadd").doc                 # by mnemonic, alias or full name; None if unknown
    isa.profile("a3").capacity["vec"]

Rows are made when their module is first asked for.
"""

from __future__ import annotations

from importlib import import_module

from .dtypes import DTYPES, DType, dtype
from .enums import ENUMS, Enum
from .profiles import DEFAULT, LOCATIONS, PROFILES, Profile, profile
from .row import DIALECTS, Attr, Combos, Family, Operand, Row
from .rules import R, Rule
from .tables import MODULES

__all__ = [
    "DEFAULT", "DTYPES", "ENUMS", "LOCATIONS", "PROFILES", "Attr", "Combos", "DType", "Enum", "Family",
    "Operand", "Profile", "R", "Row", "Rule", "dtype", "profile", "row", "rows",
]  # fmt: skip


_index: dict[str, Row] = {}
_loaded: dict[str, tuple[Row, ...]] = {}


def _load(module: str) -> tuple[Row, ...]:
    """The rows of one table module, entered in the index."""
    found = _loaded.get(module)
    if found is None:
        found = import_module(f"{__name__}.tables.{module}").ROWS
        for r in found:
            for name in (r.full_name, *(f"{r.dialect}.{a}" for a in r.aliases)):
                if _index.setdefault(name, r) is not r:
                    raise ValueError(f"two rows are called {name}")
        _loaded[module] = found  # last: another thread takes a loaded module for a whole one
    return found


def rows() -> tuple[Row, ...]:
    """Every row of the table, in table order."""
    return tuple(r for module in MODULES for r in _load(module))


def row(name: str) -> Row | None:
    """The row of a mnemonic, alias or full name (`tadd`, `pto.tadd`, `arith.addi`); None if there is none."""
    found = _index.get(name) or _index.get(f"pto.{name}")
    if found is not None:
        return found
    head = name.partition(".")[0]
    key = head if head in DIALECTS else name.removeprefix("pto.")[:1]
    for module, holds in MODULES.items():
        if module not in _loaded and key in holds.split():
            _load(module)
            found = _index.get(name) or _index.get(f"pto.{name}")
            if found is not None:
                return found
    return None


def mnemonics() -> tuple[str, ...]:
    """Every accepted full name."""
    rows()
    return tuple(_index)
