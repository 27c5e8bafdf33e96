"""Vector clocks: what is known to have happened before what.

Every pipe of every core of a block is an *agent*; an instruction is an event of its agent, numbered. What an
agent knows is a token: for every agent of the block the number of the last event that happened before. Flags,
buffer tokens, semaphores and FIFOs carry tokens from the pipe that gives to the pipe that takes; barriers and
stalls of the scalar unit spread them over a core. Blocks learn of each other at grid barriers and by signals
in global memory only: `Clock.learn` keeps what a core learned, and counts that as events of one more agent,
so that flags pass it on like everything else.
"""

from __future__ import annotations

from ...isa.machine import OVERLAPPING_PIPES
from ..watch import SESSION, WatchedCore

#: The agent of a core that counts what the core learned of other blocks.
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
        self._ordered: list[bool] = []  # whether the events of an agent follow one another
        self.names: list[str] = []  # core of each agent
        self.know: list[Token] = []
        self.count: list[int] = []
        #: By agent what it resumed with last: nothing new where that is the same list.
        self._resumed: list[Token | None] = []
        #: What the scalar unit of a core waited for: known to all that is issued from then on, by any pipe.
        self.stalls: dict[WatchedCore, Token] = {}
        #: Tokens of other blocks, by core and then by how often the core learned something.
        self.learned: dict[WatchedCore, list[dict[int, Token]]] = {}

    def agent(self, core: WatchedCore, pipe: str) -> int:
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
        """The next event of a pipe: its agent, its number, and what it knows."""
        agent = self.agent(core, agent_pipe(pipe))
        know, count = self.know[agent], self.count[agent]
        if self._ordered[agent]:
            learn_of(know, agent, count)
        self.count[agent] = count = count + 1
        return agent, count, know.copy()

    def release(self, core: WatchedCore, pipe: str) -> Token:
        """What is known to have happened once the pipe gets here."""
        agent = self.agent(core, pipe)
        token = list(self.know[agent])
        if pipe == "S":
            join(token, self.stalls.get(core, []))
        learn_of(token, agent, self.count[agent])
        return token

    def release_all(self, core: WatchedCore, sessions: bool = False) -> Token:
        """What is known to have happened once every pipe of the core gets here; with `sessions` also what
        their transfers do, which no barrier waits for."""
        token = list(self.stalls.get(core, ()))
        for (owner, pipe), _ in list(self.agents.items()):
            if owner is core and (sessions or not pipe.startswith(SESSION)):
                join(token, self.release(core, pipe))
        return token

    def acquire(self, core: WatchedCore, pipe: str, token: Token | None) -> None:
        """What the pipe does from here on comes after `token`; a stalled scalar unit stalls all issue."""
        if token is None:
            return
        join(self.know[self.agent(core, pipe)], token)
        if pipe == "S":
            self.acquire_all(core, token)

    def acquire_all(self, core: WatchedCore, token: Token | None) -> None:
        if token is None:
            return
        stalls = list(self.stalls.get(core, ()))  # a new list: what was issued before keeps the one it got
        join(stalls, token)
        self.stalls[core] = stalls

    def resume(self, core: WatchedCore, pipe: str, stalls: Token | None) -> None:
        """A pipe begins with something: that knows what the scalar unit had waited for when it issued it."""
        agent = self.agent(core, agent_pipe(pipe))
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
        """The core waited for what `tokens` say of each block; flags pass that on like other knowledge."""
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
        """What is known of other blocks by whoever knows `know`."""
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
    """Know an event and all before it of its agent."""
    if len(know) <= agent:
        know.extend([0] * (agent + 1 - len(know)))
    if know[agent] < count:
        know[agent] = count


def join(know: Token, token: Token) -> None:
    """Know also what a token says."""
    if len(know) < len(token):
        know.extend([0] * (len(token) - len(know)))
    n = 0
    for t in token:  # without `enumerate`: most tokens are short
        if t > know[n]:
            know[n] = t
        n += 1


def joined(released: list[tuple[Clock, Token]]) -> dict[int, Token]:
    """What cores, perhaps of several blocks, have released, by block."""
    out: dict[int, Token] = {}
    for clock, token in released:
        join(out.setdefault(clock.block, []), token)
        for block, known in clock.others(token).items():
            join(out.setdefault(block, []), known)
    return out


def meet(cores: list[tuple[Clock, WatchedCore]]) -> None:
    """Cores that met at a grid barrier know all that each of them did and knew."""
    tokens = joined([(clock, clock.release_all(core)) for clock, core in cores])
    for clock, core in cores:
        clock.learn(core, tokens)
