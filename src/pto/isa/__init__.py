"""The instruction set: element types, tiles, profiles, and every instruction as one row. This package imports
no other package of pto.

    isa.row("tadd").doc                 # by mnemonic, alias or full name; None if unknown
    isa.profile("a3").capacity["vec"]

A table module is loaded at the first request of one of its rows.
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
    """Load the rows of a table module and add them to the index."""
    found = _loaded.get(module)
    if found is None:
        found = import_module(f"{__name__}.tables.{module}").ROWS
        for r in found:
            for name in (r.full_name, *(f"{r.dialect}.{a}" for a in r.aliases)):
                if _index.setdefault(name, r) is not r:
                    raise ValueError(f"duplicate row {name}")
        _loaded[module] = found  # last, because other threads expect a loaded module to be complete
    return found


def rows() -> tuple[Row, ...]:
    """Return every row of the table, in table order."""
    return tuple(r for module in MODULES for r in _load(module))


def row(name: str) -> Row | None:
    """Return the row of a mnemonic, alias or full name (`tadd`, `pto.tadd`, `arith.addi`), or None."""
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
    """Return every accepted full name."""
    rows()
    return tuple(_index)
