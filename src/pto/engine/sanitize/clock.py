"""Vector clocks: the happens-before order of events.

Every pipe of every core of a block is an *agent*. An instruction is a numbered event of its agent. A token
(a vector timestamp) has for every agent of the block the number of its last event that happened before.
Flags, buffer tokens, semaphores and FIFOs carry tokens from the pipe that gives to the pipe that takes.
Barriers and stalls of the scalar unit spread tokens over a core. Only grid barriers and signals in global
memory order events of different blocks: `Clock.learn` keeps the tokens of other blocks that a core received,
and counts each receipt as an event of one more agent (`GRID`), so that flags carry these, too.
"""

from __future__ import annotations

from ...isa.machine import OVERLAPPING_PIPES
from ..watch import SESSION, WatchedCore

#: The agent of a core that counts the tokens which the core received from other blocks.
GRID = "GRID"

Token = list[int]


def ordered(isa: str, pipe: str) -> bool:
    return pipe not in OVERLAPPING_PIPES[isa]


class Clock:
    """The clocks of the agents of one block."""

    def __init__(self, isa: str, block: int = 0) -> None:
        self.isa = isa
        self.block = block
        self.agents: dict[tuple[WatchedCore, str], int] = {}
        self._of: dict[WatchedCore, dict[str, int]] = {}  # the same by core, and by pipe names of events
        self._ordered: list[bool] = []  # by agent: do its events run in order
        self.names: list[str] = []  # core of each agent
        self.know: list[Token] = []
        self.count: list[int] = []
        #: By agent: the token that it resumed with last. The same list again adds nothing.
        self._resumed: list[Token | None] = []
        #: By core: the token that its scalar unit waited for. Later issues to all pipes are ordered after it.
        self.stalls: dict[WatchedCore, Token] = {}
        #: Tokens of other blocks, by core and then by the number of the receipt.
        self.learned: dict[WatchedCore, list[dict[int, Token]]] = {}

    def copy(self) -> Clock:
        """Return an independent clock with the same state, for proofs, which follow several paths."""
        new = Clock(self.isa, self.block)
        new.agents = dict(self.agents)
        new._of = {core: dict(mine) for core, mine in self._of.items()}
        new._ordered, new.names, new.count = list(self._ordered), list(self.names), list(self.count)
        new.know = [list(token) for token in self.know]
        new._resumed, new.stalls = list(self._resumed), dict(self.stalls)  # these tokens never change
        new.learned = {core: list(known) for core, known in self.learned.items()}
        return new

    def agent(self, core: WatchedCore, pipe: str) -> int:
        """Return the agent of a pipe; instructions without a pipe and instructions of all pipes belong to the
        scalar unit.
        """
        mine = self._of.get(core)
        if mine is None:
            mine = self._of[core] = {}
        found = mine.get(pipe)
        if found is None:
            found = mine[pipe] = self._found(core, agent_pipe(pipe))
        return found

    def _found(self, core: WatchedCore, pipe: str) -> int:
        found = self.agents.get((core, pipe))
        if found is None:
            found = self.agents[core, pipe] = len(self.know)
            self._ordered.append(ordered(self.isa, pipe))
            self.names.append(core.name)
            self.count.append(0)
            self.know.append([])
            self._resumed.append(None)
        return found

    def instruction(self, core: WatchedCore, pipe: str) -> tuple[int, int, Token]:
        """Return the next event of a pipe: its agent, its number, and its token."""
        agent = self.agent(core, pipe)
        know, count = self.know[agent], self.count[agent]
        if self._ordered[agent]:
            learn_of(know, agent, count)
        self.count[agent] = count = count + 1
        return agent, count, know.copy()

    def release(self, core: WatchedCore, pipe: str) -> Token:
        """Return the token of all events that happen before the pipe gets here."""
        agent = self.agent(core, pipe)
        token = list(self.know[agent])
        if pipe == "S":
            join(token, self.stalls.get(core, []))
        learn_of(token, agent, self.count[agent])
        return token

    def release_all(self, core: WatchedCore, sessions: bool = False) -> Token:
        """Return the token of all events that happen before all pipes of the core get here; with `sessions`
        also those of asynchronous transfers, which barriers do not wait for."""
        token = list(self.stalls.get(core, ()))
        for (owner, pipe), _ in list(self.agents.items()):
            if owner is core and (sessions or not pipe.startswith(SESSION)):
                join(token, self.release(core, pipe))
        return token

    def acquire(self, core: WatchedCore, pipe: str, token: Token | None) -> None:
        """Order the later events of a pipe after `token`; a stall of the scalar unit stalls all issues."""
        if token is None:
            return
        join(self.know[self.agent(core, pipe)], token)
        if pipe == "S":
            self.acquire_all(core, token)

    def acquire_all(self, core: WatchedCore, token: Token | None) -> None:
        if token is None:
            return
        stalls = list(self.stalls.get(core, ()))  # a new list: earlier issues keep the old list
        join(stalls, token)
        self.stalls[core] = stalls

    def stalled(self, core: WatchedCore, pipe: str) -> Token | None:
        """Return the token of the events that happen before an instruction which is issued to a pipe now.
        Return None if the pipe has already begun an instruction with the same token.
        """
        stalls = self.stalls.get(core)
        return stalls if stalls and stalls is not self._resumed[self.agent(core, pipe)] else None

    def resume(self, core: WatchedCore, pipe: str, stalls: Token | None) -> None:
        """Begin an instruction on a pipe, ordered after the token that the scalar unit had at its issue."""
        agent = self.agent(core, pipe)
        if stalls and stalls is not self._resumed[agent]:
            self._resumed[agent] = stalls
            join(self.know[agent], stalls)

    def barrier(self, core: WatchedCore, pipe: str) -> None:
        agent = self.agent(core, pipe)
        learn_of(self.know[agent], agent, self.count[agent])

    def barrier_all(self, core: WatchedCore) -> None:
        self.acquire_all(core, self.release_all(core))

    # -- other blocks ----------------------------------------------------------------------------------

    def learn(self, core: WatchedCore, tokens: dict[int, Token]) -> None:
        """Order the later events of a core after `tokens` (by block). Flags pass this order on."""
        known = self.learned.setdefault(core, [])
        now = {block: list(token) for block, token in known[-1].items()} if known else {}
        for block, token in tokens.items():
            if block == self.block:
                self.acquire_all(core, token)
            else:
                join(now.setdefault(block, []), token)
        known.append(now)
        agent = self.agent(core, GRID)
        self.count[agent] += 1
        self.acquire_all(core, [0] * agent + [self.count[agent]])

    def others(self, know: Token) -> dict[int, Token]:
        """Return the tokens of other blocks that `know` includes."""
        out: dict[int, Token] = {}
        for core, known in self.learned.items():
            agent = self.agents[core, GRID]
            times = know[agent] if agent < len(know) else 0
            for block, token in known[times - 1].items() if times else ():
                join(out.setdefault(block, []), token)
        return out


def agent_pipe(pipe: str) -> str:
    return pipe if pipe and pipe != "ALL" else "S"


def knows(know: Token, agent: int, sequence: int) -> bool:
    return agent < len(know) and know[agent] >= sequence


def learn_of(know: Token, agent: int, count: int) -> None:
    """Include an event of an agent, and all earlier ones of that agent, in a token."""
    if len(know) <= agent:
        know.extend([0] * (agent + 1 - len(know)))
    if know[agent] < count:
        know[agent] = count


def join(know: Token, token: Token) -> None:
    """Include a token in another one."""
    if len(know) < len(token):
        know.extend([0] * (len(token) - len(know)))
    n = 0
    for t in token:  # without `enumerate`: most tokens are short
        if t > know[n]:
            know[n] = t
        n += 1


def joined(released: list[tuple[Clock, Token]]) -> dict[int, Token]:
    """Return the released tokens of cores, perhaps of several blocks, joined by block."""
    out: dict[int, Token] = {}
    for clock, token in released:
        join(out.setdefault(clock.block, []), token)
        for block, known in clock.others(token).items():
            join(out.setdefault(block, []), known)
    return out


def meet(cores: list[tuple[Clock, WatchedCore]]) -> None:
    """Order the later events of cores that met at a grid barrier after all earlier events of each."""
    tokens = joined([(clock, clock.release_all(core)) for clock, core in cores])
    for clock, core in cores:
        clock.learn(core, tokens)
