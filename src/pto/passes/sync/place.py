"""Positions of flags and barriers: one for every hazard that is not ordered yet.

The program is analysed once, every loop body as one iteration. An instruction with a hazard gets a flag that
is set after the nearest instruction that it has to follow, and waited for before itself. This repeats until
no hazard is left; orders implied by flags count, so chains of them need no more flags. Both ends of a flag
are moved out of loops and branches to the innermost block that contains both instructions, so every path has
as many sets as waits. At the end of a loop, `carry` handles the hazards between its iterations.
"""

from __future__ import annotations

from collections.abc import Set

from .carry import Repeat
from .flags import Barrier, Flag, Flags, drain, lifted, perform, standing
from .hazards import Hazards
from .know import Know, Token
from .linear import BLOCKS, BRANCH, LOOP, OP, SYNC, CoreProgram, Seq, Step


class Placement:
    """Places flags and barriers of a program into `before` and `after` of its steps."""

    def __init__(self, program: CoreProgram, hazards: Hazards, drained: Set[str] = frozenset()) -> None:
        self.program = program
        self.hazards = hazards
        self.drained = drained  # functions that end with a barrier of all pipes
        self.flags = Flags()
        self._pipe = program.pipe_of
        #: The token of a flag set after an instruction, and the state after a structure.
        self._after: list[Token] = [(0, 0)] * len(program.ops)
        self._ends: dict[Step, Know] = {}
        #: The enclosing structures, with the states before them.
        self._frames: list[tuple[Step, Know]] = []
        #: Barriers moved out of a loop: position, barrier, and the instructions that it completed.
        self._moved: dict[Step, tuple[Step, Barrier, int]] = {}

    def run(self) -> None:
        self._sequence(self.program.root, Know(self.program))

    def _sequence(self, seq: Seq, know: Know) -> None:
        for step in seq.steps:
            kind = step.kind
            if kind == OP:
                self._order(step, know)
                pipe = self._pipe[step.number]
                perform(step, know, pipe)
                self._after[step.number] = know.token(pipe)
                continue
            if kind == LOOP:
                self._loop(step, know)
            elif kind == BRANCH:
                self._branch(step, know)
            elif kind == BLOCKS:
                self._blocks(step, know)
            elif kind == SYNC:
                drain(self.program, know, step)
            else:
                self._call(step, know)
            self._ends[step] = know.copy()

    # -- structures ------------------------------------------------------------------------------------

    def _loop(self, step: Step, know: Know) -> None:
        if len(step.seqs) == 2 and step.seqs[0].steps:
            self._condition(step, know)
            return
        entry = know.copy()
        body = step.seqs[-1]
        self._frames.append((step, entry))
        self._sequence(body, know)
        again = Repeat(self.program, self.hazards, self.flags, step, body)
        again.run()
        for served in again.barriers:
            self._carried_barrier(served, step, entry)
        self._frames.pop()
        if not step.runs:
            know.join(entry)
        for pipe, unknown in enumerate(again.left):
            know.settle(pipe, know.of(pipe) | unknown)

    def _condition(self, step: Step, know: Know) -> None:
        """Analyse a loop whose condition uses pipes. The condition runs once more than the body, so no flag
        can lead from one to the other; the condition is enclosed in barriers."""
        test, body = step.seqs
        test.steps[0].before.append(Barrier(-1, test.steps[0]))
        test.steps[-1].after.append(Barrier(-1, test.steps[-1]))
        self._frames.append((step, know.copy()))
        for part in (test, body):
            know.barrier_all()
            self._sequence(part, know)
        self._frames.pop()
        know.barrier_all()

    def _branch(self, step: Step, know: Know) -> None:
        entry = know.copy()
        ends: list[Know] = []
        for inner in step.seqs:
            state = entry.copy()
            self._frames.append((step, entry))
            self._sequence(inner, state)
            self._frames.pop()
            ends.append(state)
        if not step.runs:
            ends.append(entry)
        know.become(ends)

    def _blocks(self, step: Step, know: Know) -> None:
        """Analyse blocks that branch to each other. Each block except the first starts with a barrier; the
        first one, too, if the number of its executions is unknown."""
        ends = [know.copy()]
        first = 1 if step.op.name in ("func.func", "scf.execute_region") else 0
        for n, inner in enumerate(step.seqs):
            state = ends[-1].copy()
            if n >= first:
                if inner.steps:
                    inner.steps[0].before.append(Barrier(-1, inner.steps[0]))
                state.barrier_all()
            self._frames.append((step, state.copy()))
            self._sequence(inner, state)
            self._frames.pop()
            ends.append(state)
        know.become(ends)

    def _call(self, step: Step, know: Know) -> None:
        """Analyse a call of a function that uses pipes: it starts and ends drained."""
        if know.of(self.program.outside):
            step.before.append(Barrier(-1, step))
        if str(step.op.attr("callee")) not in self.drained:
            step.after.append(Barrier(-1, step))
        know.barrier_all()

    # -- an instruction --------------------------------------------------------------------------------

    def _order(self, step: Step, know: Know) -> None:
        """Place flags and barriers for the hazards of an instruction."""
        staged, other = self.hazards.conflicts(step.number)
        conflicts = staged | other
        if not conflicts:
            return
        pipe, several = self._pipe[step.number], self.program.several
        while found := conflicts & know.of(pipe):
            front = self.program.ops[found.bit_length() - 1]
            if several in (pipe, self._pipe[front.number]):
                step.before.append(Barrier(-1, step))
                know.barrier_all()
            elif self._pipe[front.number] == pipe:
                self._barrier(step, know, found & self.program.own[pipe])
            else:
                self._flag(front, step, know)

    def _flag(self, front: Step, step: Step, know: Know) -> None:
        set_at, wait_at = lifted(front, step)
        src, dst = self._pipe[front.number], self._pipe[step.number]
        token = self._after[front.number] if set_at is front else self._ends[set_at].token(src)
        # if two flags are waited for before the same step, the flag that is set later orders more
        old = standing(wait_at, src, dst)
        if old is not None and old.set_at.at >= set_at.at:
            self.flags.connect(old, None, step)
        else:
            flag = Flag(src, dst, set_at, wait_at, None, False)
            if old is not None:
                self.flags.drop(old, flag)
            self.flags.add(flag, front, step)
        know.acquire(dst, know.missing(token))
        if wait_at is not step:
            for owner, entry in reversed(self._frames):
                entry.acquire(dst, entry.missing(token))
                if owner is wait_at:
                    break

    def _barrier(self, step: Step, know: Know, wanted: int) -> None:
        """Place a barrier before an instruction, or before the outermost loop without instructions that it
        has to order."""
        pipe = self._pipe[step.number]
        place = at = step
        while (owner := at.seq.owner) is not None:
            if owner.kind == LOOP and not owner.mask & wanted:
                place = owner
            at = owner
        barrier = Barrier(pipe, step)
        place.before.append(barrier)
        if place is step:
            know.barrier(pipe)
            return
        outside = self.program.own[pipe] & ~place.mask
        know.settle(pipe, know.of(pipe) & ~outside)
        cleared = 0
        for owner, entry in reversed(self._frames):
            cleared = entry.of(pipe) & outside
            entry.settle(pipe, entry.of(pipe) & ~outside)
            if owner is place:
                break
        if step.seq.owner is place:
            self._moved[step] = (place, barrier, cleared)

    def _carried_barrier(self, step: Step, loop: Step, entry: Know) -> None:
        """Remove a barrier before a loop if a barrier inside has the same effect."""
        moved = self._moved.get(step)
        if moved is not None and moved[0] is loop:
            place, barrier, cleared = self._moved.pop(step)
            place.before.remove(barrier)
            pipe = self._pipe[step.number]
            entry.settle(pipe, entry.of(pipe) | cleared)
