"""Kinds of instructions, with which programs name pipes: C++ `pto::Op` and the assembler's `sync_op_type`.

A kind is a row, with the locations of its operands if they determine the pipe: `TMOV_M2L` is `tmov` from mat
to left. The pipe of its instructions is a fact of the row (`Row.pipe`). Events named by a kind wait for this
pipe, except for a few names of C++ that mean another pipe.
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

#: Kinds that name a whole pipe.
_WHOLE = {"SCALAR": "S", "VECTOR": "V"}
_LOCATIONS = {
    "A": "acc", "ACC": "acc", "B": "bias", "L": "left", "LR": "left", "M": "mat", "MAT": "mat", "R": "right",
    "S": "scaling", "V": "vec", "VEC": "vec",
}  # fmt: skip
#: Kinds for which `Event<>` and `TSYNC<>` of C++ mean another pipe than the row. The vendor stack has two
#: maps. The map of PTOAS has the pipes on which instructions run and which order memory; rows have these
#: pipes, too. The map of the pto-isa headers has the pipes whose flags events set. Neither map follows from
#: the other, so programs that name these kinds get the flags of the headers. The kinds of the assembler are
#: names of pipes (`SYNC_OP_PIPE`), and two of them also differ from the rows: TMOV_M2S and TMOV_V2M.
EVENTS_APART: dict[str, str] = {"TCI": "S", "TSCATTER": "V", "MGATHER_VEC": "V", "MSCATTER": "V"}


class _At(Record):
    """An operand with only a known location."""

    loc: str


def _parts(kind: str) -> tuple[Row, dict[str, str]]:
    """Return the row of a kind, and the locations of operands that the kind names."""
    whole = find(kind.lower())
    if whole is not None:
        return whole, {}
    name, _, where = kind.rpartition("_")
    row = find(name.lower())
    assert row is not None, f"unknown instruction {kind}"
    source, _, target = where.rpartition("2")
    if source:
        return row, {"src": _LOCATIONS[source], "dst": _LOCATIONS[target]}
    return row, {"src" if name == "TSTORE" else "dst": _LOCATIONS[target]}


def pipe_in(row: Row, env: dict[str, object]) -> str:
    """Return the pipe of a row for the known facts of an operation, or the name of the attribute that holds
    the pipe."""
    if isinstance(row.pipe, str):
        return row.pipe
    return next((pipe for when, pipe in row.pipe if not when or holds(when, env)), "")


@cache
def pipe_of_kind(kind: str, isa: str) -> str:
    """Return the pipe on which the instructions of a kind run; all pipes for an unknown kind."""
    if kind in _WHOLE:
        return _WHOLE[kind]
    if kind not in ENUMS["op"].values:
        return EVERY_PIPE.name
    row, locations = _parts(kind)
    env: dict[str, object] = {"isa": isa, **dict.fromkeys(row.operand_index)}
    return pipe_in(row, env | {name: _At(loc) for name, loc in locations.items()})


@cache
def event_pipe(kind: str) -> str:
    """Return the pipe whose flags C++ events of a kind set."""
    if kind in EVENTS_APART:
        return EVENTS_APART[kind]
    if kind in SYNC_OP_PIPE:
        return SYNC_OP_PIPE[kind].removeprefix("PIPE_")
    (found,) = {pipe_of_kind(kind, isa) for isa in ISAS}
    return found
