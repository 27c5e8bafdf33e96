"""Flags and barriers during their placement: data, positions, effects."""

from __future__ import annotations

from .know import Know
from .linear import ALL, CoreProgram, Seq, Step


class Flag:
    """A set and a wait. They are placed after the step `set_at` and before the step `wait_at`."""

    __slots__ = ("dst", "fronts", "id", "loop", "prime_at", "set_at", "src", "staged", "steps", "wait_at")

    def __init__(
        self, src: int, dst: int, set_at: Step, wait_at: Step, loop: Step | None, staged: bool
    ) -> None:
        self.src = src
        self.dst = dst
        self.set_at = set_at
        self.wait_at = wait_at
        self.loop = loop  # waited for in the next iteration of this loop
        self.staged = staged  # for tiles in UB or L1
        self.id = -1
        #: The instructions that it orders: from `fronts` to `steps`.
        self.fronts: list[Step] = []
        self.steps: list[Step] = []
        #: The loop with one more set before it and one more wait after it; None: the whole function.
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
    """A barrier of a pipe, or of all (-1). `served` is the instruction that needs the barrier."""

    __slots__ = ("pipe", "served")

    def __init__(self, pipe: int, served: Step) -> None:
        self.pipe = pipe
        self.served = served


class Flags:
    """All flags of a program, at their positions."""

    def __init__(self) -> None:
        self.all: list[Flag] = []

    def add(self, flag: Flag, front: Step, step: Step) -> None:
        self.all.append(flag)
        flag.set_at.after.append(Set(flag))
        flag.wait_at.before.append(Wait(flag))
        self.connect(flag, front, step)

    def connect(self, flag: Flag, front: Step | None, step: Step) -> None:
        """Let a flag order two instructions."""
        if front is not None and front not in flag.fronts:
            flag.fronts.append(front)
            front.sets.append(flag)
        if step not in flag.steps:
            flag.steps.append(step)
            step.waits.append(flag)

    def drop(self, flag: Flag, instead: Flag | None = None) -> None:
        """Remove a flag, or replace it by another one for its waiting instructions."""
        self.all.remove(flag)
        for items in (flag.set_at.after, flag.wait_at.before):
            items[:] = [i for i in items if not (isinstance(i, Set | Wait) and i.flag is flag)]
        for front in flag.fronts:
            front.sets.remove(flag)
        for step in flag.steps:
            at = step.waits.index(flag)
            if instead is None or step in instead.steps:
                del step.waits[at]
            else:
                step.waits[at] = instead
                instead.steps.append(step)

    def move_set(self, flag: Flag, to: Step) -> None:
        if to is not flag.set_at:
            item = next(i for i in flag.set_at.after if isinstance(i, Set) and i.flag is flag)
            flag.set_at.after.remove(item)
            to.after.append(item)
            flag.set_at = to

    def move_wait(self, flag: Flag, to: Step) -> None:
        item = next(i for i in flag.wait_at.before if isinstance(i, Wait) and i.flag is flag)
        flag.wait_at.before.remove(item)
        to.before.append(item)
        flag.wait_at = to


def standing(step: Step, src: int, dst: int) -> Flag | None:
    """Return the flag of two pipes that is waited for before a step and set in the same iteration."""
    for item in step.before:
        if isinstance(item, Wait) and item.flag.loop is None and (item.flag.src, item.flag.dst) == (src, dst):
            return item.flag
    return None


def perform(step: Step, know: Know, pipe: int) -> None:
    """Issue an instruction."""
    know.issue(step.number)
    if step.stalls:
        know.stall(pipe)


def repeat(step: Step, know: Know, pipe: int) -> None:
    """Repeat an instruction, if only hazards with earlier iterations count."""
    if step.stalls:
        know.stall(pipe)


def drain(program: CoreProgram, know: Know, step: Step) -> None:
    """Apply a barrier of the program."""
    if step.pipe == ALL:
        know.barrier_all()
    else:
        know.barrier(program.pipe(step.pipe))


def lifted(front: Step, step: Step) -> tuple[Step, Step]:
    """Return the steps of the innermost common sequence that contain two instructions."""
    a, b = front, step
    while a.seq is not b.seq:
        deeper = a.seq.depth - b.seq.depth
        if deeper >= 0:
            assert a.seq.owner is not None
            a = a.seq.owner
        if deeper <= 0:
            assert b.seq.owner is not None
            b = b.seq.owner
    return a, b


def raised(step: Step, body: Seq) -> Step:
    """Return the step of a loop body that contains an instruction."""
    while step.seq is not body:
        assert step.seq.owner is not None
        step = step.seq.owner
    return step
