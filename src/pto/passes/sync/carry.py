"""Hazards between an iteration of a loop and the next.

The body is analysed twice: the second pass has to wait for instructions that are unfinished after the first.
Flags of these hazards are set in one iteration and waited for in the next; they are set once before the loop
and waited for once after it. As in PTOAS, the orders that a flag implies are computed here, and for the code
after the loop, before the ends of flags are moved out of branches. A flag for tiles in UB or L1 (which double
buffering may relax) does not cover hazards of other memory. Redundant flags are removed, except those between
M, MTE1 and FIX, where existing builds expect them.
"""

from __future__ import annotations

from .check import covered
from .flags import Barrier, Flag, Flags, drain, perform, raised, repeat
from .hazards import Hazards
from .know import Know, Token
from .linear import BLOCKS, BRANCH, CALL, LOOP, OP, SYNC, CoreProgram, Seq, Step

_CUBE = ("M", "MTE1", "FIX")
#: Limit for the search for redundant flags, in analysed instructions.
_MOST_WORK = 4000


class Repeat:
    """Analyses the body of a loop twice and places flags for the second pass.

    Flags take effect where they were needed, and not where they were moved to. The second pass has two states
    at the same time: without and with the flags for tiles in UB or L1.
    """

    def __init__(self, program: CoreProgram, hazards: Hazards, flags: Flags, loop: Step, body: Seq) -> None:
        self.program = program
        self.hazards = hazards
        self.flags = flags
        self.loop = loop
        self.body = body
        #: By pipe: instructions that may be unfinished after an iteration.
        self.left: list[int] = []
        #: Instructions that got a barrier.
        self.barriers: list[Step] = []
        self._again = False
        self._made: list[Flag] = []
        #: The token of a flag set after an instruction, and all instructions of the iteration.
        self._after: dict[int, Token] = {}
        self._issued = 0
        self._pipe = program.pipe_of

    def run(self) -> None:
        first = Know(self.program)
        self._sequence(self.body, [first])
        self._issued = first.issued
        self.left = [first.of(n) for n in range(len(self.program.pipes))]
        _iterated(first, self.loop)
        first.next_iteration()
        self._again = True
        start = (self.loop.mask & -self.loop.mask).bit_length() - 1
        inside = self.program.ops[start : self.loop.mask.bit_length()]
        two = any(self.hazards.conflicts(s.number, self.loop)[1] for s in inside)
        self._sequence(self.body, [first, first.copy()] if two else [first])
        self._prune(len(inside))

    def _sequence(self, seq: Seq, ways: list[Know]) -> None:
        for step in seq.steps:
            self._barriers(step.before, ways)
            kind = step.kind
            if kind == OP:
                self._instruction(step, ways)
            elif kind in (LOOP, BRANCH, BLOCKS):
                self._structure(step, ways)
            elif kind == SYNC:
                for know in ways:
                    drain(self.program, know, step)
            elif kind == CALL:
                if self._again and ways[-1].of(self.program.outside):
                    step.before.append(Barrier(-1, step))
                for know in ways:
                    know.barrier_all()
            self._barriers(step.after, ways)

    def _structure(self, step: Step, ways: list[Know]) -> None:
        entry = [know.copy() for know in ways]
        ends = [] if step.runs and step.kind != BLOCKS else [entry]
        before = entry
        for seq in step.seqs:
            states = [know.copy() for know in before]
            self._sequence(seq, states)
            if step.kind != LOOP or not step.runs:
                for know, start in zip(states, entry, strict=True):
                    _narrow(know, start, seq.mask)
            ends.append(states)
            if step.kind == LOOP:
                before = states
        for n, know in enumerate(ways):
            know.become([states[n] for states in ends])
            if step.kind == LOOP:
                _iterated(know, step)

    def _barriers(self, items: list[object], ways: list[Know]) -> None:
        for item in items:
            if isinstance(item, Barrier):
                for know in ways:
                    know.drained(item.pipe)

    def _instruction(self, step: Step, ways: list[Know]) -> None:
        pipe = self._pipe[step.number]
        for flag in step.waits:
            assert isinstance(flag, Flag)
            relaxed = flag.staged and flag.loop is not None and len(ways) == 2
            for know in ways[1:] if relaxed else ways:
                token = know.flags.get(flag)
                if token is not None:
                    know.acquire(flag.dst, know.missing(token))
        if self._again:
            self._order(step, ways)
            for know in ways:
                repeat(step, know, pipe)
        else:
            perform(step, ways[0], pipe)
            self._after[step.number] = ways[0].token(pipe)
        for flag in step.sets:
            assert isinstance(flag, Flag)
            # in the next iteration of its loop, a wait gets the flag of this iteration
            key = flag if flag.loop is None else (flag, flag.loop)
            for know in ways:
                know.flags[key] = know.token(flag.src)

    def _order(self, step: Step, ways: list[Know]) -> None:
        staged, other = self.hazards.conflicts(step.number, self.loop)
        strict, loose = ways[0], ways[-1]
        pipe, several = self._pipe[step.number], self.program.several
        while found := (other & strict.of(pipe)) | (staged & loose.of(pipe)):
            front = self.program.ops[found.bit_length() - 1]
            if several in (pipe, self._pipe[front.number]):
                step.before.append(Barrier(-1, step))
                for know in ways:
                    know.barrier_all()
                continue
            if self._pipe[front.number] == pipe:
                step.before.append(Barrier(pipe, step))
                self.barriers.append(step)
                for know in ways:
                    know.barrier(pipe)
                continue
            relaxed = bool(staged >> front.number & 1)
            self._flag(front, step, relaxed)
            unknown, since = self._after[front.number]
            missing = unknown | self._issued >> since << since | ~self._certain(front)
            for know in (loose,) if relaxed else ways:
                know.acquire(pipe, missing)

    def _certain(self, step: Step) -> int:
        """Return the instructions of the innermost branch or loop around a step that may be skipped."""
        seq = step.seq
        while seq is not self.body:
            owner = seq.owner
            assert owner is not None
            if owner.kind != LOOP or not owner.runs:
                return seq.mask
            seq = owner.seq
        return -1

    def _flag(self, front: Step, step: Step, staged: bool) -> None:
        set_at, wait_at = raised(front, self.body), raised(step, self.body)
        src, dst = self._pipe[front.number], self._pipe[step.number]
        loop: Step | None = self.loop
        if set_at.at < wait_at.at:
            # the flag would be set again before its wait, so wait before the next set, or use the set of this
            # iteration
            if set_at is front:
                wait_at = step = front
            else:
                loop = None
        for item in wait_at.before:
            old = getattr(item, "flag", None)
            if isinstance(old, Flag) and (old.src, old.dst, old.loop) == (src, dst, loop):
                if old.set_at is set_at or (loop is None and old.set_at.at > set_at.at):
                    old.staged = old.staged and staged
                    self.flags.connect(old, front, step)
                    return
        flag = Flag(src, dst, set_at, wait_at, loop, staged)
        self.flags.add(flag, front, step)
        self._made.append(flag)

    # -- redundant flags ----------------------------------------------------------------------------------

    def _prune(self, size: int) -> None:
        pipes = self.program.pipes
        doubtful = [f for f in self._made if pipes[f.src] not in _CUBE or pipes[f.dst] not in _CUBE]
        if len(doubtful) < 2 or len(doubtful) * size > _MOST_WORK:
            return
        for flag in reversed(doubtful):
            if covered(self.program, self.hazards, self.loop, flag):
                self.flags.drop(flag)


def _iterated(know: Know, loop: Step) -> None:
    """Make flags that an iteration sets available in the next iteration and after the loop."""
    for key in [k for k in know.flags if isinstance(k, tuple) and k[1] is loop]:
        know.flags[key[0]] = know.flags.pop(key)


def _narrow(know: Know, entry: Know, mask: int) -> None:
    """Restrict flags that were set on one branch: they imply no order for earlier instructions on other
    branches."""
    for flag, (unknown, since) in know.flags.items():
        if entry.flags.get(flag) != (unknown, since):
            know.flags[flag] = unknown | ~mask, since
