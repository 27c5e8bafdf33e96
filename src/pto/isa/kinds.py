"""Kinds of instructions, by which programs name pipes: C++ `pto::Op` and the assembler's `sync_op_type`.

A kind is a row, with the locations of its operands where they choose the pipe: `TMOV_M2L` is `tmov` from mat
to left. Where its instructions run is a fact of the row (`Row.pipe`). What events named by a kind wait for is
the same, but for a few names of C++ that mean another pipe.
"""

from __future__ import annotations

from functools import cache

from . import row as find
from .enums import ENUMS, SYNC_OP_PIPE
from .machine import EVERY_PIPE
from .profiles import ISAS
from .record import Record
from .row import Row
from .rules import holds

#: Kinds that are all of a pipe.
_WHOLE = {"SCALAR": "S", "VECTOR": "V"}
_LOCATIONS = {
    "A": "acc", "ACC": "acc", "B": "bias", "L": "left", "LR": "left", "M": "mat", "MAT": "mat", "R": "right",
    "S": "scaling", "V": "vec", "VEC": "vec",
}  # fmt: skip
#: Where `Event<>` and `TSYNC<>` of C++ mean another pipe than the one that the row names. The field has two
#: maps: its assembler says where instructions run, which is what orders memory and what rows hold; its
#: headers say what flags events set. Neither follows from the other, so programs that name these kinds get
#: the flags that they would get there. The kinds of the assembler itself are names of pipes (`SYNC_OP_PIPE`),
#: and two of those differ from the rows as well: TMOV_M2S and TMOV_V2M.
EVENTS_APART: dict[str, str] = {"TCI": "S", "TSCATTER": "V", "MGATHER_VEC": "V", "MSCATTER": "V"}


class _At(Record):
    """An operand of which only the location is known."""

    loc: str


def _parts(kind: str) -> tuple[Row, dict[str, str]]:
    """The row of a kind, and the locations of its operands as far as it says."""
    whole = find(kind.lower())
    if whole is not None:
        return whole, {}
    name, _, where = kind.rpartition("_")
    row = find(name.lower())
    assert row is not None, f"{kind}: no such instruction"
    source, _, target = where.rpartition("2")
    if source:
        return row, {"src": _LOCATIONS[source], "dst": _LOCATIONS[target]}
    return row, {"src" if name == "TSTORE" else "dst": _LOCATIONS[target]}


def pipe_in(row: Row, env: dict[str, object]) -> str:
    """The pipe of a row under what is known of an operation; the name of an attribute where that holds it."""
    if isinstance(row.pipe, str):
        return row.pipe
    return next((pipe for when, pipe in row.pipe if not when or holds(when, env)), "")


@cache
def pipe_of_kind(kind: str, isa: str) -> str:
    """The pipe on which the instructions of a kind run; all of them for a kind that nobody knows."""
    if kind in _WHOLE:
        return _WHOLE[kind]
    if kind not in ENUMS["op"].values:
        return EVERY_PIPE.name
    row, locations = _parts(kind)
    env: dict[str, object] = {"isa": isa, **dict.fromkeys(row.operand_index)}
    return pipe_in(row, env | {name: _At(loc) for name, loc in locations.items()})


@cache
def event_pipe(kind: str) -> str:
    """The pipe that C++ events of a kind set flags for."""
    if kind in EVENTS_APART:
        return EVENTS_APART[kind]
    if kind in SYNC_OP_PIPE:
        return SYNC_OP_PIPE[kind].removeprefix("PIPE_")
    (found,) = {pipe_of_kind(kind, isa) for isa in ISAS}
    return found
