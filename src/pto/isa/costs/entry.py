"""The shape of an entry of the cost tables, and what its evidence may be."""

from __future__ import annotations

from ..record import Record

MEASURED, FITTED, DERIVED, GUESSED = "measured", "fitted", "derived", "guessed"

#: Paths along which bytes are counted; those of global memory share what its caps say.
READS = ("gm_ub", "gm_l1")
WRITES = ("ub_gm", "l1_gm", "l0c_gm")
PATHS = (*READS, *WRITES, "l0c_l1", "l0c_ub", "l1_l0a", "l1_l0b", "l1_ub", "l1_bt", "ub_ub", "remote")


class Cost(Record):
    names: str  # rows
    busy: str  # cycles of the pipe
    after: str  # and until others find the result
    evidence: str
    source: str  # in words
    when: str = ""  # the entry holds where this does
    path: str = ""
    bytes: str = ""
    flops: str = ""  # operations of the cube; elements of pipe V
