"""What instructions on registers cost within a vector function of A5.

The parameters are those of the field's model of the vector core: two units compute, two loads and one store
go at a time, a result is there for who needs it some cycles before it is done. The model executes out of
order, so a function takes what its busiest ports do, or the longest chain of results that need each other,
whatever is more. With that, loops of vector functions meet the field's curves (`a5.py`) within 12 %, which is
why what follows from the table counts as derived; what the table does not have is a guess.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ..row import Row
from .entry import DERIVED, GUESSED

#: Units that compute; ports that load; ports that store.
UNITS, LOADS, STORES = 2, 2, 1


class Register(NamedTuple):
    """An instruction: cycles until it is done, until who needs it may begin, and that it takes its unit, each
    for elements of 32 bits and of fewer; whether only the first unit can do it; what it rests on."""

    latency: tuple[int, int]
    forward: tuple[int, int]
    interval: tuple[int, int]
    first_only: bool = False
    evidence: str = DERIVED


_TABLE: tuple[tuple[str, Register], ...] = (
    ("vadd vsub", Register((7, 7), (3, 3), (2, 2))),
    ("vadds vsubs", Register((7, 7), (3, 3), (1, 1))),
    ("vmul", Register((8, 8), (4, 4), (2, 2))),
    ("vmuls", Register((8, 8), (4, 4), (1, 1))),
    ("vmax vmin", Register((6, 6), (2, 2), (2, 2))),
    ("vmaxs vmins vand vsel vshls vshrs vcmp vbr", Register((6, 6), (2, 2), (1, 1))),
    ("vabs", Register((5, 5), (2, 2), (1, 1))),
    ("vdiv", Register((17, 22), (14, 19), (4, 8))),
    ("vexp", Register((16, 21), (13, 18), (4, 8))),
    ("vcadd", Register((22, 24), (20, 21), (1, 8))),
    ("vcmax vcmin", Register((16, 17), (13, 14), (1, 1), True)),
    ("vcgmax", Register((13, 14), (10, 11), (1, 1))),
    ("vdup", Register((6, 6), (8, 8), (1, 1), True)),
    ("vcvt", Register((7, 7), (4, 4), (1, 1))),
    ("vlds", Register((9, 9), (6, 6), (1, 1))),
    ("vsts", Register((9, 9), (9, 9), (1, 1))),
)
#: Of memory and of units, where the table has nothing.
_MEMORY = Register((9, 9), (6, 6), (1, 1), evidence=GUESSED)
_OTHER = Register((7, 7), (4, 4), (2, 2), evidence=GUESSED)


@cache
def _by_name() -> dict[str, Register]:
    return {name: register for names, register in _TABLE for name in names.split()}


def register_of(row: Row) -> Register:
    return _by_name().get(row.name, _MEMORY if row.effect == "memory" else _OTHER)


class VectorFunction:
    """The instructions of a vector function, as they come; keys name what they read and write."""

    def __init__(self) -> None:
        self._ports = [0.0, 0.0, 0.0]  # cycles of loads, stores, units
        self._first = 0.0  # and of the first unit
        self._longest = [0, 0, 0]  # latencies
        self._ready: dict[object, float] = {}
        self._inner: dict[object, float] = {}  # the same without what earlier rounds of a loop gave
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
        """`reads` are keys, and whether the value comes from an earlier round of a loop."""
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
        """Cycles that it takes the pipe, and those from there until its last result."""
        loads, stores, units = self._ports
        most = max(loads / LOADS, stores / STORES, units / UNITS, self._first)
        fill = max(self._path, float(sum(self._longest)))  # a value is loaded, computed and stored
        return max(most, self._chain - fill), fill
