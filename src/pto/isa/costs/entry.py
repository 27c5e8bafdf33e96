"""Definition of an entry of the cost tables, and the kinds of evidence."""

from __future__ import annotations

from ..record import Record

MEASURED, FITTED, DERIVED, GUESSED = "measured", "fitted", "derived", "guessed"

#: Paths of counted bytes; paths of global memory share its caps.
READS = ("gm_ub", "gm_l1")
WRITES = ("ub_gm", "l1_gm", "l0c_gm")
PATHS = (*READS, *WRITES, "l0c_l1", "l0c_ub", "l1_l0a", "l1_l0b", "l1_ub", "l1_bt", "ub_ub", "remote")


class Cost(Record):
    names: str  # rows
    busy: str  # busy cycles of the pipe
    after: str  # further cycles until the result is available
    evidence: str
    source: str  # description of the source
    when: str = ""  # condition of the entry
    path: str = ""
    bytes: str = ""
    flops: str = ""  # operations of the cube; elements of pipe V
