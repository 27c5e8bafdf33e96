"""Costs of register instructions in a vector function of A5.

The parameters are those of the vendor's model of the vector core: two units compute, and two loads and one
store can run at a time. A dependent instruction can start some cycles before its source is done. The model
executes out of order, so the time of a function is that of its busiest ports or of its longest chain of
dependent results, whichever is larger. With these parameters, loops of vector functions match the vendor's
curves (`a5.py`) within 12 %, so costs from the table count as derived; all other costs are guesses.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ..row import Row
from .entry import DERIVED, GUESSED

#: Numbers of compute units, load ports and store ports.
UNITS, LOADS, STORES = 2, 2, 1


class RegisterCost(NamedTuple):
    """An instruction: the cycles until it is done, until a dependent instruction may start, and while it
    occupies its unit. Each has a value for 32-bit and one for narrower elements. `first_only` is True if only
    the first unit can execute the instruction.
    """

    latency: tuple[int, int]
    forward: tuple[int, int]
    interval: tuple[int, int]
    first_only: bool = False
    evidence: str = DERIVED


_TABLE: tuple[tuple[str, RegisterCost], ...] = (
    ("vadd vsub", RegisterCost((7, 7), (3, 3), (2, 2))),
    ("vadds vsubs", RegisterCost((7, 7), (3, 3), (1, 1))),
    ("vmul", RegisterCost((8, 8), (4, 4), (2, 2))),
    ("vmuls", RegisterCost((8, 8), (4, 4), (1, 1))),
    ("vmax vmin", RegisterCost((6, 6), (2, 2), (2, 2))),
    ("vmaxs vmins vand vsel vshls vshrs vcmp vbr", RegisterCost((6, 6), (2, 2), (1, 1))),
    ("vabs", RegisterCost((5, 5), (2, 2), (1, 1))),
    ("vdiv", RegisterCost((17, 22), (14, 19), (4, 8))),
    ("vexp", RegisterCost((16, 21), (13, 18), (4, 8))),
    ("vcadd", RegisterCost((22, 24), (20, 21), (1, 8))),
    ("vcmax vcmin", RegisterCost((16, 17), (13, 14), (1, 1), True)),
    ("vcgmax", RegisterCost((13, 14), (10, 11), (1, 1))),
    ("vdup", RegisterCost((6, 6), (8, 8), (1, 1), True)),
    ("vcvt", RegisterCost((7, 7), (4, 4), (1, 1))),
    ("vlds", RegisterCost((9, 9), (6, 6), (1, 1))),
    ("vsts", RegisterCost((9, 9), (9, 9), (1, 1))),
)
#: Defaults for memory and compute instructions that are not in the table.
_MEMORY = RegisterCost((9, 9), (6, 6), (1, 1), evidence=GUESSED)
_OTHER = RegisterCost((7, 7), (4, 4), (2, 2), evidence=GUESSED)


@cache
def _by_name() -> dict[str, RegisterCost]:
    return {name: register for names, register in _TABLE for name in names.split()}


def register_of(row: Row) -> RegisterCost:
    return _by_name().get(row.name, _MEMORY if row.effect == "memory" else _OTHER)


class VectorFunction:
    """The instructions of a vector function, in order; keys identify the values that they read and write."""

    def __init__(self) -> None:
        self._ports = [0.0, 0.0, 0.0]  # busy cycles of loads, stores, units
        self._first = 0.0  # busy cycles of the first unit
        self._longest = [0, 0, 0]  # longest latency of loads, stores, units
        self._ready: dict[object, float] = {}
        self._inner: dict[object, float] = {}  # the same without values from earlier iterations of a loop
        self._chain = self._path = 0.0
        self.computed = 0
        self.evidence = DERIVED

    def add(
        self,
        row: Row,
        bits: int,
        reads: tuple[tuple[object, bool], ...] = (),
        writes: tuple[object, ...] = (),
    ) -> None:
        """Add an instruction. `reads` are keys, each with True if the value is from an earlier iteration of a
        loop."""
        register, narrow = register_of(row), int(bits < 32)
        kind = 2
        if row.effect == "memory":
            kind = 1 if any(o.writes for o in row.operands) else 0
        latency, interval = register.latency[narrow], register.interval[narrow]
        self._ports[kind] += interval
        if kind == 2:
            self.computed += 1
            if register.first_only:
                self._first += interval
        if register.evidence == GUESSED:
            self.evidence = GUESSED
        self._longest[kind] = max(self._longest[kind], latency)
        begin = max((self._ready.get(key, 0.0) for key, _ in reads), default=0.0)
        inner = max((self._inner.get(key, 0.0) for key, carried in reads if not carried), default=0.0)
        for key in writes:
            self._ready[key] = begin + register.forward[narrow]
            self._inner[key] = inner + register.forward[narrow]
        self._chain = max(self._chain, begin + latency)
        self._path = max(self._path, inner + latency)

    @property
    def cycles(self) -> tuple[float, float]:
        """Busy cycles of the pipe, and further cycles until the last result."""
        loads, stores, units = self._ports
        most = max(loads / LOADS, stores / STORES, units / UNITS, self._first)
        fill = max(self._path, float(sum(self._longest)))  # a value is loaded, computed and stored
        return max(most, self._chain - fill), fill
