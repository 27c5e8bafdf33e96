"""The instructions that each pipe knows to be complete, at each step of the program.

Each pipe has a set of instructions (bits of a number) that may *not* be complete for it. A new instruction is
added to the sets of all pipes except its own, if that pipe is in order. A flag carries the set of its source
pipe at its set. After the wait, the set of the waiting pipe is the intersection of both.

Instructions are numbered in program order, so the instructions issued since a moment are the bits from its
number on: sets are updated when they are read, not at every instruction.
"""

from __future__ import annotations

from .linear import CoreProgram

#: The content of a flag: the unfinished instructions at its set, and the next instruction number there.
Token = tuple[int, int]


class Know:
    """The state at one point of the program. `issued` has the instructions issued on the way to it."""

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
        """Return the instructions that may be unfinished for a pipe."""
        since = self.since[pipe]
        return self.unknown[pipe] | self.issued >> since << since & self.others[pipe]

    def settle(self, pipe: int, unknown: int) -> None:
        self.unknown[pipe] = unknown
        self.since[pipe] = self.now

    # -- events ----------------------------------------------------------------------------------------

    def issue(self, number: int) -> None:
        self.issued |= 1 << number
        self.now = number + 1

    def token(self, pipe: int) -> Token:
        """Return the content of a flag that the pipe sets here."""
        return self.of(pipe) & ~self.own[pipe], self.now

    def missing(self, token: Token) -> int:
        """Return the instructions that a token leaves unfinished here."""
        return token[0] | self.issued >> token[1] << token[1]

    def acquire(self, pipe: int, missing: int) -> None:
        """Mark all but `missing` as complete for the pipe; a wait of the scalar unit delays all later
        instructions.
        """
        for n in range(len(self.unknown)) if pipe == self.scalar else (pipe,):
            self.settle(n, self.of(n) & missing)

    def stall(self, pipe: int) -> None:
        """Let the scalar unit continue only after its own last instruction is complete."""
        self.acquire(pipe, self.of(pipe) & ~self.own[pipe])

    def drained(self, pipe: int) -> None:
        """Apply a barrier of a pipe, or of all (-1)."""
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
        """Join another path: an instruction is unfinished if it is unfinished on one of the paths."""
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
        """Take the joined state of several paths; the first one is modified."""
        total = ends[0]
        for end in ends[1:]:
            total.join(end)
        self.unknown, self.since, self.flags = total.unknown, total.since, total.flags
        self.issued, self.now = total.issued, total.now

    def next_iteration(self) -> None:
        """Start the next iteration: from here on, only instructions that have been issued before count."""
        for n in range(len(self.unknown)):
            self.settle(n, self.of(n))
        self.flags = {flag: (self.missing(token), 0) for flag, token in self.flags.items()}
        self.since = [0] * len(self.since)
        self.issued = self.now = 0
