"""Proves the result: every hazard is ordered on every path, every flag is set once and waited for once.

The program is followed once from start to end, with its flags where they stand and by their ids; a loop body
must leave every flag as it found it, and so must all sides of a branch. That settles the flags of any number of
iterations. Hazards within an iteration are looked at on this way. For those between iterations every loop body
is followed twice, as when flags were placed. A hazard with an earlier iteration than the one before is covered
too: a pipe that knows an instruction knows the earlier ones of its pipe, and knowledge is never lost.
"""

from __future__ import annotations

from .hazards import Hazards
from .know import Know
from .linear import ALL, BLOCKS, BRANCH, CALL, LOOP, OP, SYNC, Program, Seq, Step
from .place import Barrier, Flag, Set, Wait, _perform, _replace, apply_barrier

_Key = tuple[int, int, int]


class Unbalanced(Exception):
    """A flag is set twice, or waited for without being set, on some path: a mistake of ours."""


class Check:
    """Looks for hazards that nothing orders; `found` are the instructions that have one."""

    def __init__(self, program: Program, hazards: Hazards, flags: list[Flag]) -> None:
        self.program = program
        self.hazards = hazards
        self.found: dict[Step, int] = {}
        self.flags = flags
        self._pipe = [program.pipe(s.pipe) if s.pipe != ALL else -1 for s in program.ops]
        self._primes: dict[Step | None, list[Flag]] = {}
        for flag in flags:
            if flag.loop is not None:
                self._primes.setdefault(flag.prime_at, []).append(flag)

    def run(self) -> dict[Step, int]:
        know = Know(self.program)
        for flag in self._primes.get(None, ()):
            self._set(flag, know, True)
        self._follow(self.program.root, know, None, True, False)
        for flag in self._primes.get(None, ()):
            self._wait(flag, know, True)
        if know.flags:
            raise Unbalanced(f"{len(know.flags)} flags are left set")
        for loop in self.program.loops:
            first = Know(self.program)
            self._body(loop, first, loop, False, False)
            first.next_iteration()
            self._body(loop, first, loop, False, True)
        return self.found

    def _body(self, step: Step, know: Know, loop: Step | None, strict: bool, again: bool) -> None:
        for seq in step.seqs:
            self._follow(seq, know, loop, strict, again)

    def _follow(self, seq: Seq, know: Know, loop: Step | None, strict: bool, again: bool) -> None:
        """`loop`: whose hazards between iterations are looked for, in the second iteration (`again`)."""
        for step in seq.steps:
            self._placed(step.before, know, strict)
            for flag in self._primes.get(step, ()):
                self._set(flag, know, strict)
            kind = step.kind
            if kind == OP:
                if loop is None or again:
                    self._look(step, know, loop)
                if not again:
                    _perform(step, know, self._pipe[step.number])
                elif step.stalls:
                    pipe = self._pipe[step.number]
                    know.acquire(pipe, know.of(pipe) & ~self.program.own[pipe])
                elif step.pipe == ALL:
                    know.barrier_all()
            elif kind == SYNC:
                apply_barrier(know, self.program.pipe(step.pipe) if step.pipe != ALL else -1)
            elif kind == CALL:
                if strict and any(know.of(n) for n in range(len(self.program.pipes))):
                    self.found[step] = -1
                know.barrier_all()
            else:
                self._parts(step, know, loop, strict, again)
            self._placed(step.after, know, strict)
            for flag in self._primes.get(step, ()):
                self._wait(flag, know, strict)

    def _parts(self, step: Step, know: Know, loop: Step | None, strict: bool, again: bool) -> None:
        entry = know.copy()
        ends: list[Know] = [] if step.runs and step.kind != BLOCKS else [entry]
        if step.kind == LOOP:
            state = know.copy()
            self._body(step, state, loop, strict, again)
            ends.append(state)
            test = step.seqs[0] if len(step.seqs) == 2 else None
            if test is not None and test.steps:
                # it ends with a barrier of all pipes, and the loop is left there
                ends = [state]
                state.barrier_all()
        else:
            assert step.kind in (BRANCH, BLOCKS)
            for seq in step.seqs:
                state = entry.copy()
                self._follow(seq, state, loop, strict, again)
                ends.append(state)
        if strict and any(end.flags.keys() != entry.flags.keys() for end in ends):
            raise Unbalanced(f"flags differ where ways of '{step.op.name}' meet")
        _replace(know, ends)

    def _look(self, step: Step, know: Know, loop: Step | None) -> None:
        staged, other = self.hazards.conflicts(step.number, loop.op if loop is not None else None)
        pipe = self._pipe[step.number]
        if step.pipe == ALL:
            found = 0
            for n in range(len(self.program.pipes)):
                found |= (staged | other) & know.of(n)
        else:
            found = (staged | other) & know.of(pipe)
        if found:
            self.found[step] = self.found.get(step, 0) | found

    def _placed(self, items: list[object], know: Know, strict: bool) -> None:
        for item in items:
            if isinstance(item, Barrier):
                apply_barrier(know, item.pipe)
            elif isinstance(item, Set):
                self._set(item.flag, know, strict)
            else:
                assert isinstance(item, Wait)
                self._wait(item.flag, know, strict)

    def _set(self, flag: Flag, know: Know, strict: bool) -> None:
        key = (flag.src, flag.dst, flag.id)
        if strict and key in know.flags:
            raise Unbalanced(f"flag {self._name(flag)} is set twice")
        know.flags[key] = know.token(flag.src)

    def _wait(self, flag: Flag, know: Know, strict: bool) -> None:
        token = know.flags.pop((flag.src, flag.dst, flag.id), None)
        if token is not None:
            know.acquire(flag.dst, know.missing(token))
        elif strict:
            raise Unbalanced(f"flag {self._name(flag)} is waited for and not set")

    def _name(self, flag: Flag) -> str:
        return f"{self.program.pipes[flag.src]} -> {self.program.pipes[flag.dst]}, {flag.id}"
