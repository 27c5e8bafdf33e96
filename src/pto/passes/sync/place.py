"""Where flags and barriers go: one for every hazard that nothing orders yet.

First the program is followed once, every loop body as one iteration (`_forward`). An instruction with a hazard
gets a flag set after the nearest instruction it has to follow and waited for before itself, and so on until
nothing is left; what flags imply counts, so chains of them need no more flags. Both ends of a flag are moved
out of loops and branches to the innermost block that holds both instructions: on every path there are as many
sets as waits.

Then, loop by loop and inner ones first, the body is followed again with what the iteration before left unknown
(`_Repeat`). Flags of these hazards are set at the end of one iteration and waited for in the next; they are set
once before the loop and waited for once after it. As in the field's assembler, what a flag implies is judged
here, and for what follows the loop, before its ends are moved out of branches; and a flag for tiles in UB or L1
(which double buffering may relax) does not stand for hazards of other memory.
"""

from __future__ import annotations

from .hazards import Hazards
from .know import Know
from .linear import ALL, BLOCKS, BRANCH, CALL, LOOP, OP, SYNC, Program, Seq, Step

BEFORE, AFTER = "before", "after"


class Flag:
    """A set and a wait. `set_at` and `wait_at` are the steps after and before which they stand."""

    __slots__ = ("dst", "fronts", "id", "loop", "prime_at", "set_at", "src", "staged", "steps", "wait_at")

    def __init__(self, src: int, dst: int, set_at: Step, wait_at: Step, loop: Step | None, staged: bool) -> None:
        self.src = src
        self.dst = dst
        self.set_at = set_at
        self.wait_at = wait_at
        self.loop = loop  # waited for in the next iteration of this loop
        self.staged = staged  # for tiles in UB or L1
        self.id = -1
        #: The instructions it leads from and to.
        self.fronts: list[Step] = []
        self.steps: list[Step] = []
        #: The loop around which it is set and drained once more; None: the whole function.
        self.prime_at: Step | None = None


class Set:
    __slots__ = ("flag",)

    def __init__(self, flag: Flag) -> None:
        self.flag = flag


class Wait:
    __slots__ = ("flag",)

    def __init__(self, flag: Flag) -> None:
        self.flag = flag


class Barrier:
    """A barrier of a pipe, or of all (-1). `served` is the instruction it was made for."""

    __slots__ = ("pipe", "served")

    def __init__(self, pipe: int, served: Step) -> None:
        self.pipe = pipe
        self.served = served


Frame = tuple[Step, Know]


class Placement:
    """Places flags and barriers of a program into `before` and `after` of its steps."""

    def __init__(self, program: Program, hazards: Hazards) -> None:
        self.program = program
        self.hazards = hazards
        self.flags: list[Flag] = []
        self._pipe = [program.pipe(s.pipe) if s.pipe != ALL else -1 for s in program.ops]
        #: What a flag set after a step would carry, by the pipes of an instruction or of a whole structure.
        self._after: dict[tuple[Step, int], tuple[int, int]] = {}
        self._ends: dict[Step, Know] = {}
        self._frames: list[Frame] = []
        #: Barriers moved out of a loop: where they stand, what they made known.
        self._moved: dict[Step, tuple[Step, Barrier, int]] = {}

    def run(self) -> None:
        know = Know(self.program)
        self._forward(self.program.root, know)

    # -- one iteration ---------------------------------------------------------------------------------

    def _forward(self, seq: Seq, know: Know) -> None:
        for step in seq.steps:
            kind = step.kind
            if kind == OP:
                self._order(step, know)
                _perform(step, know, self._pipe[step.number])
                if step.pipe != ALL:
                    pipe = self._pipe[step.number]
                    self._after[step, pipe] = know.token(pipe)
                continue
            if kind == LOOP:
                self._loop(step, know)
            elif kind == BRANCH:
                self._branch(step, know)
            elif kind == BLOCKS:
                self._blocks(step, know)
            elif kind == SYNC:
                apply_barrier(know, self.program.pipe(step.pipe) if step.pipe != ALL else -1)
            else:
                self._call(step, know)
            self._ends[step] = know.copy()

    def _loop(self, step: Step, know: Know) -> None:
        if len(step.seqs) == 2 and step.seqs[0].steps:
            self._condition(step, know)
            return
        entry = know.copy()
        body = step.seqs[-1]
        self._frames.append((step, entry))
        self._forward(body, know)
        left = _Repeat(self, step, body).run()
        self._frames.pop()
        if not step.runs:
            know.join(entry)
        for pipe, unknown in enumerate(left):
            know.settle(pipe, know.of(pipe) | unknown)

    def _condition(self, step: Step, know: Know) -> None:
        """A loop whose condition works on pipes: that part runs once more than the other, so that no flag can
        lead from one to the other; it stands between barriers."""
        test, body = step.seqs
        for at, where in ((test.steps[0], at_start(test)), (test.steps[-1], None)):
            (where if where is not None else at.after).append(Barrier(-1, at))
        self._frames.append((step, know.copy()))
        for part in (test, body):
            know.barrier_all()
            self._forward(part, know)
        self._frames.pop()
        know.barrier_all()

    def _branch(self, step: Step, know: Know) -> None:
        entry = know.copy()
        ends: list[Know] = []
        for inner in step.seqs:
            state = entry.copy()
            self._frames.append((step, entry))
            self._forward(inner, state)
            self._frames.pop()
            ends.append(state)
        if not step.runs:
            ends.append(entry)
        _replace(know, ends)

    def _blocks(self, step: Step, know: Know) -> None:
        """Blocks that branch to each other: each but the first starts with a barrier."""
        ends = [know.copy()]
        for n, inner in enumerate(step.seqs):
            state = ends[-1].copy()
            if n:
                if inner.steps:
                    at_start(inner).append(Barrier(-1, inner.steps[0]))
                state.barrier_all()
            self._frames.append((step, state.copy()))
            self._forward(inner, state)
            self._frames.pop()
            ends.append(state)
        _replace(know, ends)

    def _call(self, step: Step, know: Know) -> None:
        """A function that works on pipes: nothing is known of it but that it starts and ends drained."""
        if any(know.of(n) for n in range(len(self.program.pipes))):
            step.before.append(Barrier(-1, step))
        if step.pipe != "drained":
            step.after.append(Barrier(-1, step))
        know.barrier_all()

    def _order(self, step: Step, know: Know) -> None:
        """Put before an instruction what it has to wait for."""
        staged, other = self.hazards.conflicts(step.number)
        conflicts = staged | other
        pipe = self._pipe[step.number]
        if step.pipe == ALL:
            if any(conflicts & know.of(n) for n in range(len(self.program.pipes))):
                step.before.append(Barrier(-1, step))
            return
        while found := conflicts & know.of(pipe):
            front = self.program.ops[found.bit_length() - 1]
            source = self._pipe[front.number]
            if source == pipe:
                self._barrier(step, know, found & self.program.own[pipe])
            else:
                self._flag(front, step, know)

    def _flag(self, front: Step, step: Step, know: Know) -> None:
        set_at, wait_at = lifted(front, step)
        src, dst = self._pipe[front.number], self._pipe[step.number]
        if set_at is front:
            token = self._after[front, src]
        else:
            end = self._ends[set_at]
            token = end.of(src) & ~self.program.own[src], end.now
        # of two that stand before the same step, the one set later says more
        old = _standing(wait_at, src, dst)
        if old is not None and old.set_at.at >= set_at.at:
            _connect(old, None, step)
        else:
            flag = Flag(src, dst, set_at, wait_at, None, False)
            if old is not None:
                self._supersede(old, flag)
            self._add(flag, front, step)
        know.acquire(dst, know.missing(token))
        if wait_at is not step:
            for owner, entry in reversed(self._frames):
                entry.acquire(dst, entry.missing(token))
                if owner is wait_at:
                    break

    def _add(self, flag: Flag, front: Step, step: Step) -> None:
        self.flags.append(flag)
        flag.set_at.after.append(Set(flag))
        flag.wait_at.before.append(Wait(flag))
        _connect(flag, front, step)

    def _supersede(self, old: Flag, new: Flag) -> None:
        self.flags.remove(old)
        remove(old)
        for front in old.fronts:
            front.sets.remove(old)
        for step in old.steps:
            step.waits[step.waits.index(old)] = new
            new.steps.append(step)

    def _barrier(self, step: Step, know: Know, wanted: int) -> None:
        """A barrier before an instruction, or before the outermost loop that holds nothing it is for."""
        pipe = self._pipe[step.number]
        place = step
        at = step
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

    # -- the next iteration ----------------------------------------------------------------------------

    def carried_flag(self, front: Step, step: Step, loop: Step, body: Seq, staged: bool) -> None:
        set_at, wait_at = raised(front, body), raised(step, body)
        src, dst = self._pipe[front.number], self._pipe[step.number]
        for old in step.waits:
            assert isinstance(old, Flag)
            if (old.src, old.dst, old.set_at, old.wait_at, old.loop) == (src, dst, set_at, wait_at, loop):
                return
        if set_at.at < wait_at.at:  # the same iteration's does as well
            same = _standing(wait_at, src, dst)
            if same is not None and same.set_at.at >= set_at.at:
                _connect(same, front, step)
            else:
                self._add(Flag(src, dst, set_at, wait_at, None, staged), front, step)
            return
        for wait in wait_at.before:
            old = wait.flag if isinstance(wait, Wait) else None
            if old is not None and (old.src, old.dst, old.set_at, old.loop) == (src, dst, set_at, loop):
                old.staged = old.staged and staged
                _connect(old, front, step)
                return
        self._add(Flag(src, dst, set_at, wait_at, loop, staged), front, step)

    def carried_barrier(self, step: Step, loop: Step) -> None:
        pipe = self._pipe[step.number]
        moved = self._moved.get(step)
        if moved is not None and moved[0] is loop:
            # the barrier inside does what the one in front of the loop was for
            place, barrier, cleared = self._moved.pop(step)
            place.before.remove(barrier)
            entry = self._frames[-1][1]
            assert self._frames[-1][0] is loop
            entry.settle(pipe, entry.of(pipe) | cleared)
        step.before.append(Barrier(pipe, step))


class _Repeat:
    """Follows the body of a loop twice: what the first time leaves unknown is what the second has to wait for.

    Flags count where they were made for, not where they were moved to; `ways` are the two views of the second
    time: without and with the flags for tiles in UB or L1.
    """

    def __init__(self, placement: Placement, loop: Step, body: Seq) -> None:
        self.placement = placement
        self.program = placement.program
        self.hazards = placement.hazards
        self.loop = loop
        self.body = body
        self.again = False
        self.carries: dict[int, tuple[int, int]] = {}
        self.left = 0
        self._pipe = placement._pipe

    def run(self) -> list[int]:
        """Place what is needed; the instructions that pipes do not know after an iteration."""
        first = Know(self.program)
        self.follow(self.body, [first])
        self.left = first.issued
        left = [first.of(n) for n in range(len(self.program.pipes))]
        first.next_iteration()
        self.again = True
        if any(self.hazards.conflicts(s.number, self.loop.op)[1] for s in self.inside()):
            self.follow(self.body, [first, first.copy()])
        else:
            self.follow(self.body, [first])
        return left

    def inside(self) -> list[Step]:
        first = (self.loop.mask & -self.loop.mask).bit_length() - 1
        return self.program.ops[first : self.loop.mask.bit_length()]

    def follow(self, seq: Seq, ways: list[Know]) -> None:
        for step in seq.steps:
            self.placed(step.before, ways)
            kind = step.kind
            if kind == OP:
                self.instruction(step, ways)
            elif kind == BRANCH:
                self.parts(step, ways, not step.runs)
            elif kind == LOOP:
                self.parts(step, ways, not step.runs, in_turn=True)
            elif kind == BLOCKS:
                self.parts(step, ways, True)
            elif kind == SYNC:
                for know in ways:
                    apply_barrier(know, self.program.pipe(step.pipe) if step.pipe != ALL else -1)
            elif kind == CALL:
                for know in ways:
                    know.barrier_all()
            self.placed(step.after, ways)

    def parts(self, step: Step, ways: list[Know], skips: bool, in_turn: bool = False) -> None:
        entry = [know.copy() for know in ways]
        ends: list[list[Know]] = [entry] if skips else []
        for seq in step.seqs:
            states = [know.copy() for know in (ends[-1] if in_turn and ends else entry)]
            self.follow(seq, states)
            if step.kind != LOOP or not step.runs:
                for know, before in zip(states, entry, strict=True):
                    _narrow(know, before, seq.mask)
            ends.append(states)
        for n, know in enumerate(ways):
            _replace(know, [states[n] for states in ends])

    def placed(self, items: list[object], ways: list[Know]) -> None:
        for item in items:
            if isinstance(item, Barrier):
                for know in ways:
                    apply_barrier(know, item.pipe)

    def instruction(self, step: Step, ways: list[Know]) -> None:
        pipe = self._pipe[step.number]
        for flag in step.waits:
            assert isinstance(flag, Flag)
            self.wait(flag, ways)
        if self.again:
            self.order(step, ways)
            if step.stalls:
                for know in ways:
                    know.acquire(pipe, know.of(pipe) & ~self.program.own[pipe])
            elif step.pipe == ALL:
                for know in ways:
                    know.barrier_all()
        else:
            _perform(step, ways[0], pipe)
            self.carries[step.number] = ways[0].token(pipe) if step.pipe != ALL else (0, 0)
        for flag in step.sets:
            assert isinstance(flag, Flag)
            for know in ways:
                know.flags[flag] = know.token(flag.src)

    def wait(self, flag: Flag, ways: list[Know]) -> None:
        for n, know in enumerate(ways):
            token = know.flags.get(flag)
            relaxed = flag.staged and flag.loop is not None and n == 0 and len(ways) == 2
            if token is not None and not relaxed:
                know.acquire(flag.dst, know.missing(token))

    def order(self, step: Step, ways: list[Know]) -> None:
        staged, other = self.hazards.conflicts(step.number, self.loop.op)
        pipe = self._pipe[step.number]
        strict, loose = ways[0], ways[-1]
        if step.pipe == ALL:
            every = range(len(self.program.pipes))
            if any((other & strict.of(n)) | (staged & loose.of(n)) for n in every):
                step.before.append(Barrier(-1, step))
            return
        while found := (other & strict.of(pipe)) | (staged & loose.of(pipe)):
            front = self.program.ops[found.bit_length() - 1]
            if self._pipe[front.number] == pipe:
                self.placement.carried_barrier(step, self.loop)
                for know in ways:
                    know.barrier(pipe)
                continue
            relaxed = bool(staged >> front.number & 1)
            self.placement.carried_flag(front, step, self.loop, self.body, relaxed)
            unknown, since = self.carries[front.number]
            missing = unknown | self.left >> since << since | ~self.branch(front)
            for know in (loose,) if relaxed else ways:
                know.acquire(pipe, missing)

    def branch(self, step: Step) -> int:
        """The instructions of the innermost branch or loop that holds one, and may be left out."""
        seq = step.seq
        while seq is not self.body:
            owner = seq.owner
            assert owner is not None
            if owner.kind != LOOP or not owner.runs:
                return seq.mask
            seq = owner.seq
        return -1


def _standing(step: Step, src: int, dst: int) -> Flag | None:
    """The flag of two pipes that is waited for before a step, set in the same iteration."""
    for item in step.before:
        if isinstance(item, Wait) and item.flag.loop is None and (item.flag.src, item.flag.dst) == (src, dst):
            return item.flag
    return None


def _connect(flag: Flag, front: Step | None, step: Step) -> None:
    if front is not None and front not in flag.fronts:
        flag.fronts.append(front)
        front.sets.append(flag)
    if step not in flag.steps:
        flag.steps.append(step)
        step.waits.append(flag)


def remove(flag: Flag) -> None:
    """Take a flag out of where it stands."""
    for items in (flag.set_at.after, flag.wait_at.before):
        items[:] = [i for i in items if not (isinstance(i, Set | Wait) and i.flag is flag)]


def _perform(step: Step, know: Know, pipe: int) -> None:
    if step.pipe == ALL:  # its pipes are drained before and after it
        know.barrier_all()
        return
    know.issue(step.number)
    if step.stalls:
        know.acquire(pipe, know.of(pipe) & ~know.own[pipe])


def apply_barrier(know: Know, pipe: int) -> None:
    if pipe < 0:
        know.barrier_all()
    else:
        know.barrier(pipe)


def _narrow(know: Know, entry: Know, mask: int) -> None:
    """A flag set on one way says nothing of what came before: the others do not set it."""
    for flag, (unknown, since) in know.flags.items():
        if entry.flags.get(flag) != (unknown, since):
            know.flags[flag] = unknown | ~mask, since


def _replace(know: Know, ends: list[Know]) -> None:
    """Several ways meet."""
    total = ends[0].copy()
    for end in ends[1:]:
        total.join(end)
    know.unknown, know.since, know.issued, know.now, know.flags = (
        total.unknown, total.since, total.issued, total.now, total.flags,
    )  # fmt: skip


def at_start(seq: Seq) -> list[object]:
    return seq.steps[0].before


def lifted(front: Step, step: Step) -> tuple[Step, Step]:
    """The steps of the innermost common sequence that hold two instructions."""
    a, b = front, step
    while a.seq is not b.seq:
        if a.seq.depth >= b.seq.depth:
            assert a.seq.owner is not None
            a_up = a.seq.owner
            if a.seq.depth == b.seq.depth:
                assert b.seq.owner is not None
                b = b.seq.owner
            a = a_up
        else:
            assert b.seq.owner is not None
            b = b.seq.owner
    return a, b


def raised(step: Step, body: Seq) -> Step:
    """The step of a loop body that holds an instruction."""
    while step.seq is not body:
        assert step.seq.owner is not None
        step = step.seq.owner
    return step
