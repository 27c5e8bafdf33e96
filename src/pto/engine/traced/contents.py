"""Calls with accesses that depend on data: they read addresses or conditions from memory."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ...isa import row as find_row
from ...isa import rows
from ...isa.row import Row

#: Operands with such addresses.
_INDICES = frozenset({"idx", "index", "indices", "indexes", "offsets", "src0Idx", "src1Idx"})
#: Kinds of operands in memory or registers.
_HELD = frozenset({"tile", "view", "vreg"})


def by_contents(name: str) -> bool:
    """Return whether the accesses of a row depend on data."""
    row = find_row(name)
    return row is not None and _decides(row)


def _decides(row: Row) -> bool:
    return row.family == "signal" or any(
        o.name in _INDICES and o.reads and not _HELD.isdisjoint(o.kinds) for o in row.operands
    )


@cache
def _names() -> re.Pattern[bytes]:
    return re.compile(rb"\0(?:%s) " % b"|".join(sorted({r.name.encode() for r in rows() if _decides(r)})))


def makes_such_calls(library: str) -> bool:
    """Return whether a traced library has the text of such a call, as the first word of a string."""
    return _names().search(Path(library).read_bytes()) is not None
