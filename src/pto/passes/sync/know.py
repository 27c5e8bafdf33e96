"""What each pipe knows to be over, as the program is followed step by step.

For every pipe a set of instructions (bits of a number) that it may *not* know yet. An instruction that is
issued is unknown to all pipes but its own, where that works in order. A flag carries what its pipe did not
know when it was set; who waits for it does not know, from then on, only what neither of the two knew.

Instructions are numbered in program order, so what was issued since a moment are the bits from the number
it had reached: sets are brought up to date when they are looked at, not with every instruction.
"""

from __future__ import annotations

from .linear import CoreProgram

#: What a flag carries: what was unknown when it was set, and the number that had been reached.
Token = tuple[int, int]


class Know:
    """The state at one point of the program. `issued` holds what was issued on the way here."""

    __slots__ = ("flags", "issued", "now", "others", "own", "scalar", "since", "unknown")

    def __init__(self, program: CoreProgram) -> None:
        self.own = program.own
        self.others = program.others
        self.scalar = program.pipes.index("S") if "S" in program.pipes else -1
        self.unknown = [0] * len(program.pipes)
        self.since = [0] * len(program.pipes)
        self.issued = 0
        self.now = 0
        self.flags: dict[object, Token] = {}

    def copy(self) -> Know:
        new = type(self).__new__(type(self))
        new.own, new.others, new.scalar = self.own, self.others, self.scalar
        new.unknown, new.since = self.unknown.copy(), self.since.copy()
        new.issued, new.now = self.issued, self.now
        new.flags = self.flags.copy()
        return new

    def of(self, pipe: int) -> int:
        """Instructions the pipe may not know."""
        since = self.since[pipe]
        return self.unknown[pipe] | self.issued >> since << since & self.others[pipe]

    def settle(self, pipe: int, unknown: int) -> None:
        self.unknown[pipe] = unknown
        self.since[pipe] = self.now

    # -- what happens ----------------------------------------------------------------------------------

    def issue(self, number: int) -> None:
        self.issued |= 1 << number
        self.now = number + 1

    def token(self, pipe: int) -> Token:
        """What a flag set by the pipe here carries."""
        return self.of(pipe) & ~self.own[pipe], self.now

    def missing(self, token: Token) -> int:
        """What whoever got a token does not know from it, seen from here."""
        return token[0] | self.issued >> token[1] << token[1]

    def acquire(self, pipe: int, missing: int) -> None:
        """The pipe knows all but `missing`; a stalled scalar unit stalls all issue."""
        for n in range(len(self.unknown)) if pipe == self.scalar else (pipe,):
            self.settle(n, self.of(n) & missing)

    def stall(self, pipe: int) -> None:
        """The scalar unit goes on, and issues more, once the last instruction of its own is over."""
        self.acquire(pipe, self.of(pipe) & ~self.own[pipe])

    def drained(self, pipe: int) -> None:
        """A barrier of a pipe, or of all (-1)."""
        if pipe < 0:
            self.barrier_all()
        else:
            self.barrier(pipe)

    def barrier(self, pipe: int) -> None:
        self.settle(pipe, self.of(pipe) & ~self.own[pipe])

    def barrier_all(self) -> None:
        for n in range(len(self.unknown)):
            self.settle(n, 0)

    # -- paths -----------------------------------------------------------------------------------------

    def join(self, other: Know) -> None:
        """Both ways lead here: unknown is what is so on one of them."""
        self.now = max(self.now, other.now)
        issued = self.issued | other.issued
        for n in range(len(self.unknown)):
            self.settle(n, self.of(n) | other.of(n))
        for flag, token in other.flags.items():
            mine = self.flags.get(flag)
            if mine is None:
                self.flags[flag] = token
            elif mine != token:
                self.flags[flag] = self.missing(mine) | other.missing(token), self.now
        self.issued = issued

    def become(self, ends: list[Know]) -> None:
        """Several ways lead here; the first of them is used up."""
        total = ends[0]
        for end in ends[1:]:
            total.join(end)
        self.unknown, self.since, self.flags = total.unknown, total.since, total.flags
        self.issued, self.now = total.issued, total.now

    def next_iteration(self) -> None:
        """From here on only what was issued so far is of interest."""
        for n in range(len(self.unknown)):
            self.settle(n, self.of(n))
        self.flags = {flag: (self.missing(token), 0) for flag, token in self.flags.items()}
        self.since = [0] * len(self.since)
        self.issued = self.now = 0
