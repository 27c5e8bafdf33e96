"""Prove the result: every hazard is ordered on every path, every flag is set once and waited for once.

The program is analysed once from start to end, with its flags at their places and by their ids. A loop body
and all branches must leave every flag in its initial state, which covers any number of iterations. This pass
checks hazards within an iteration. For hazards between iterations every loop body is analysed twice. Hazards
with earlier iterations are covered, too: an instruction that is known to be complete implies the earlier ones
of its pipe, and completed instructions stay completed.

The check also finds the barriers of a pipe that are needed: a barrier counts only if a hazard needs it, and
for a hazard the last barrier before it counts.
"""

from __future__ import annotations

from .flags import Barrier, Flag, Set, Wait, drain, perform, repeat
from .hazards import Hazards
from .know import Know, Token
from .linear import BLOCKS, CALL, LOOP, OP, SYNC, CoreProgram, Seq, Step


class Unbalanced(Exception):
    """A flag is set twice, or waited for without being set, on some path: an internal error."""


class Lazy(Know):
    """The state of pipes, with barriers applied on demand. For each pipe that overlaps its own instructions:
    the instructions that may be unfinished after all barriers, and the barriers that would complete the other
    instructions.
    """

    __slots__ = ("before", "left", "pending")

    def __init__(self, program: CoreProgram) -> None:
        super().__init__(program)
        self.left: dict[int, tuple[int, int]] = dict.fromkeys(program.overlapping, (0, 0))
        self.pending: dict[int, frozenset[Barrier]] = dict.fromkeys(program.overlapping, frozenset())
        #: The token of a flag that was set before the analysed part.
        self.before: Token = (0, 0)

    def copy(self) -> Lazy:
        new = super().copy()
        assert isinstance(new, Lazy)
        new.left, new.pending, new.before = self.left.copy(), self.pending.copy(), self.before
        return new

    def unknown_anyway(self, pipe: int) -> int:
        unknown, since = self.left[pipe]
        return unknown | self.issued >> since << since & self.own[pipe]

    def acquire(self, pipe: int, missing: int) -> None:
        super().acquire(pipe, missing)
        for n in self.left if pipe == self.scalar else (pipe,):
            if n in self.left:
                self.left[n] = self.unknown_anyway(n) & missing, self.now

    def barrier(self, pipe: int) -> None:
        super().barrier(pipe)
        if pipe in self.left:
            self.left[pipe] = 0, self.now
            self.pending[pipe] = frozenset()

    def postpone(self, barrier: Barrier) -> None:
        self.left[barrier.pipe] = 0, self.now
        self.pending[barrier.pipe] = frozenset((barrier,))

    def barrier_all(self) -> None:
        super().barrier_all()
        for pipe in self.left:
            self.left[pipe] = 0, self.now
            self.pending[pipe] = frozenset()

    def join(self, other: Know) -> None:
        assert isinstance(other, Lazy)
        # a flag that a branch does not change keeps its state from before the branch
        for flag in self.flags.keys() ^ other.flags.keys():
            self.flags.setdefault(flag, self.before)
            other.flags.setdefault(flag, self.before)
        left = {n: self.unknown_anyway(n) | other.unknown_anyway(n) for n in self.left}
        super().join(other)
        for n, unknown in left.items():
            self.left[n] = unknown, self.now
            self.pending[n] |= other.pending[n]

    def next_iteration(self) -> None:
        left = {n: (self.unknown_anyway(n), 0) for n in self.left}
        super().next_iteration()
        self.left = left
        self.before = -1, 0

    def become(self, ends: list[Know]) -> None:
        super().become(ends)
        total = ends[0]
        assert isinstance(total, Lazy)
        self.left, self.pending = total.left, total.pending


class HazardCheck:
    """Looks for unordered hazards. `found` are the instructions with one, `needed` the barriers that a hazard
    needs. Flags are identified by their ids or, before they have ids, by themselves."""

    def __init__(
        self, program: CoreProgram, hazards: Hazards, flags: list[Flag], without: Flag | None = None
    ) -> None:
        self.program = program
        self.hazards = hazards
        self.found: dict[Step, int] = {}
        self.needed: set[Barrier] = set()
        self.without = without
        self._pipe = program.pipe_of
        self._primes: dict[Step | None, list[Flag]] = {}
        for flag in flags:
            if flag.loop is not None:
                self._primes.setdefault(flag.prime_at, []).append(flag)

    def run(self) -> dict[Step, int]:
        know = Lazy(self.program)
        for flag in self._primes.get(None, ()):
            self._set(flag, know, True)
        self._sequence(self.program.root, know, None, True, False)
        for flag in self._primes.get(None, ()):
            self._wait(flag, know, True)
        if know.flags:
            raise Unbalanced(f"{len(know.flags)} flags are left set")
        for loop in self.program.loops:
            self.loop(loop)
        return self.found

    def loop(self, loop: Step) -> None:
        """Check hazards between iterations of a loop."""
        know = Lazy(self.program)
        self._body(loop, know, loop, False, False)
        know.next_iteration()
        self._body(loop, know, loop, False, True)

    def _body(self, step: Step, know: Know, loop: Step | None, strict: bool, again: bool) -> None:
        for seq in step.seqs:
            self._sequence(seq, know, loop, strict, again)

    def _sequence(self, seq: Seq, know: Know, loop: Step | None, strict: bool, again: bool) -> None:
        """Analyse a sequence. `loop`: check its hazards between iterations, in the second pass (`again`)."""
        for step in seq.steps:
            if step.before:
                self._placed(step.before, know, strict)
            kind = step.kind
            if kind == OP:
                if loop is None or again:
                    self._look(step, know, loop)
                (repeat if again else perform)(step, know, self._pipe[step.number])
            else:
                for flag in self._primes.get(step, ()):
                    self._set(flag, know, strict)
                if kind == SYNC:
                    drain(self.program, know, step)
                elif kind == CALL:
                    if (loop is None or again) and know.of(self.program.outside):
                        self.found[step] = -1
                    know.barrier_all()
                    self._called(step, know, strict)
                else:
                    self._structure(step, know, loop, strict, again)
            if step.after:
                self._placed(step.after, know, strict)
            if kind != OP:
                for flag in self._primes.get(step, ()):
                    self._wait(flag, know, strict)

    def _structure(self, step: Step, know: Know, loop: Step | None, strict: bool, again: bool) -> None:
        entry = know.copy()
        ends: list[Know] = [] if step.runs and step.kind != BLOCKS else [entry]
        if step.kind == LOOP:
            state = know.copy()
            self._body(step, state, loop, strict, again)
            ends.append(state)
            if len(step.seqs) == 2 and step.seqs[0].steps:
                # the condition ends with a barrier of all pipes, and the loop is left after it
                ends = [state]
                state.barrier_all()
        else:
            for seq in step.seqs:
                state = entry.copy()
                self._sequence(seq, state, loop, strict, again)
                ends.append(state)
        if strict and any(end.flags.keys() != entry.flags.keys() for end in ends):
            raise Unbalanced(f"flags differ at the end of branches of '{step.op.name}'")
        know.become(ends)

    def _look(self, step: Step, know: Know, loop: Step | None) -> None:
        staged, other = self.hazards.conflicts(step.number, loop)
        conflicts = staged | other
        if not conflicts:
            return
        pipe = self._pipe[step.number]
        found = conflicts & know.of(pipe)
        assert isinstance(know, Lazy)
        if found and know.pending.get(pipe):
            anyway = know.unknown_anyway(pipe)
            if found & know.own[pipe] & ~anyway:
                self.needed |= know.pending[pipe]
                know.pending[pipe] = frozenset()
                know.settle(pipe, know.of(pipe) & ~know.own[pipe] | anyway)
                found = conflicts & know.of(pipe)
        if found:
            self.found[step] = self.found.get(step, 0) | found

    def _placed(self, items: list[object], know: Know, strict: bool) -> None:
        for item in items:
            if isinstance(item, Barrier):
                assert isinstance(know, Lazy)
                if item.pipe in know.left and item not in self.needed:
                    know.postpone(item)
                else:
                    know.drained(item.pipe)
            elif isinstance(item, Set):
                if item.flag is not self.without:
                    self._set(item.flag, know, strict)
            else:
                assert isinstance(item, Wait)
                if item.flag is not self.without:
                    self._wait(item.flag, know, strict)

    def _called(self, step: Step, know: Know, strict: bool) -> None:
        if strict and any(isinstance(key, tuple) and self.program.uses(step, key) for key in know.flags):
            raise Unbalanced(f"a flag of '{step.op.attr('callee')}' is set at its call")

    def _set(self, flag: Flag, know: Know, strict: bool) -> None:
        key = (flag.src, flag.dst, flag.id) if flag.id >= 0 else flag
        if strict and key in know.flags:
            raise Unbalanced(f"flag {self._name(flag)} is set twice")
        know.flags[key] = know.token(flag.src)

    def _wait(self, flag: Flag, know: Know, strict: bool) -> None:
        token = know.flags.pop((flag.src, flag.dst, flag.id) if flag.id >= 0 else flag, None)
        if token is not None:
            know.acquire(flag.dst, know.missing(token))
        elif strict:
            raise Unbalanced(f"flag {self._name(flag)} is waited for and not set")

    def _name(self, flag: Flag) -> str:
        return f"{self.program.pipes[flag.src]} -> {self.program.pipes[flag.dst]}, {flag.id}"


def covered(program: CoreProgram, hazards: Hazards, loop: Step, without: Flag) -> bool:
    """Return True if all hazards between iterations of a loop are ordered without a flag."""
    check = HazardCheck(program, hazards, [], without)
    check.loop(loop)
    return not check.found
