"""A debugged launch: it runs on its own thread, and pauses at stops.

To go back, the session restores the arrays, and a second launch passes the same moments up to the requested
one. That takes as long as the launch took so far; output is not printed again.

    with Session(kernel, [a, b], {"blocks": 2}) as session:
        session.points.add(Breakpoint.parsed("14", session.places))
        stop = session.start()
        while not stop.over:
            print(stop.text())
            stop = session.go(session.order("continue"))
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TextIO

import numpy as np

from ...diag import Diagnostic, DiagnosticError, Source
from ...ir.core import Module, Operation
from ...ir.facts import enclosing
from ..reference.core import Core
from ..reference.kernel import Launch
from ..result import LaunchResult
from ..watch import Event, Watcher
from .follower import (
    CONTINUE,
    FINISH,
    GOTO,
    NEXT,
    SEARCH,
    STEP_LINE,
    STEP_OP,
    Follower,
    Left,
    Resume,
    depth_of,
)
from .points import BreakPlaces, Breakpoint, PointError, Points, Watchpoint
from .stop import END, FAULT, STUCK, Stop, at_of, number

_DEADLOCK = "PTO-E2104"
#: Seconds between two checks for signals while a thread waits for a stop.
_LOOK = 0.2
#: Seconds that a client waits for the end of a launch. C++ between two events cannot be interrupted.
GRACE = 2.0


class Debuggable(Protocol):
    """A kernel of the reference engine, in any source language. A kernel of a program has it as `prepared`, a
    kernel of a file has its `text`."""

    functions: list[Operation]
    name: str

    def begin(self, *args: object, **options: object) -> Launch: ...


class _Once:
    """Output of a program, without the output of earlier launches."""

    def __init__(self, session: DebugSession) -> None:
        self._session = session
        self._written = 0

    def write(self, text: str) -> None:
        skip = max(0, self._session.printed - self._written)
        self._written += len(text)
        if len(text) > skip:
            self._session.printed = self._written
            self._session.out.write(text[skip:])
            self._session.out.flush()  # before the text of a stop

    def flush(self) -> None: ...


class _Run:
    """One launch on its thread."""

    def __init__(self, session: DebugSession, order: Resume) -> None:
        self.session = session
        session.points.reset()
        self.follower = Follower(session.points, self._halt, order)
        self._orders: queue.SimpleQueue[Resume | None] = queue.SimpleQueue()
        self.launch = session.kernel.begin(
            *session.args,
            watchers=[*session.watchers, self.follower],
            out=_Once(session),
            **session.options,
        )
        self.ended = self.left = False
        self.thread = threading.Thread(target=self._main, name="pto-debug", daemon=True)

    def _halt(self, stop: Stop) -> Resume:
        self.session.posted(self, stop)
        order = self._orders.get()
        if order is None:
            raise Left
        return order

    def _main(self) -> None:
        found: Stop | BaseException | None = None
        try:
            result = self.launch.end()
            found = self._last(result)
            self.session.result = result
        except Left:
            return
        except BaseException as e:  # a bug of pto: report it to the thread that waits for the stop
            found = e
        finally:
            self.ended = True
            self.session.posted(self, found)

    def _last(self, result: LaunchResult) -> Stop:
        """Return the last stop, after which nothing runs."""
        follower, grid = self.follower, self.launch.grid
        moment = follower.now + 1
        if grid.active and result.diagnostics:
            why = result.diagnostics[0]
            core, op, event = follower.core or grid.active[0], follower.op, follower.event
            if why.code == _DEADLOCK:
                core, op, event = self._waiting(why)
            reason = STUCK if why.code == _DEADLOCK else FAULT
            stop = Stop(reason, moment, grid, core, op, event, self.session.places.sign)
            stop.diagnostic = why
            return stop
        core = follower.core
        if core is None:
            raise DiagnosticError([Diagnostic("PTO-E2002", "cannot debug: the launch executed nothing")])
        stop = Stop(END, moment, grid, core, None)
        stop.note = "The launch has ended: ok" if result.ok else "The launch has ended, with errors"
        never = [
            b for b in self.session.points.breaks if self.session.places.open and not b.hits and b.enabled
        ]
        if never:
            stop.note += f"; never reached: {', '.join(map(str, never))}"
        return stop

    def _waiting(self, why: Diagnostic) -> tuple[Core, Operation | None, Event | None]:
        """Return the first waiting core, operation and event of a deadlock."""
        active = self.launch.grid.active
        for core in active:
            for queue_ in core.queues.values():
                if queue_ and self.launch.grid.span(queue_[0].op) == why.span:
                    return core, queue_[0].op, queue_[0].event
        for core in active:
            at = at_of(core)
            if at is not None and self.launch.grid.span(at) == why.span:
                return core, at, None
        return active[0], at_of(active[0]), None

    def go(self, order: Resume) -> None:
        self._orders.put(order)

    def leave(self, limit: float | None) -> bool:
        """End the launch at its stop or its next event, and its thread. Return False if it still runs after
        `limit` seconds."""
        if self.thread.ident is None or self.left:
            return not self.thread.is_alive()
        self.left = True
        self.follower.pause()
        self._orders.put(None)
        self.thread.join(limit)
        return not self.thread.is_alive()


class DebugSession:
    """A launch to be debugged. `options` are those of a launch; time at a stop does not count, so `timeout`
    is left out. Watchers of the caller see a launch only once, so with them there is no way back."""

    def __init__(
        self,
        kernel: Debuggable,
        args: Sequence[Any],
        options: dict[str, Any],
        out: TextIO | None = None,
    ) -> None:
        self.kernel = kernel
        self.args = list(args)
        self.watchers: list[Watcher] = list(options.get("watchers", ()))
        left_out = ("watchers", "timeout", "progress", "out", "threads", "processes")
        self.options = {n: v for n, v in options.items() if n not in left_out}
        self.out: Any = out or sys.stdout
        self.printed = 0
        self.module: Module | None = getattr(kernel, "prepared", None) or getattr(kernel, "module", None)
        text = getattr(kernel, "text", None) or Source(str(getattr(kernel, "path", "")), "")
        self.places = BreakPlaces(
            self.module,
            kernel.functions,
            text if self.module is None else self.module.source,
            getattr(kernel, "first_calls", None),
        )
        self.sources: list[Source] = [text] if self.module is None else self.module.sources
        self.points = Points(self.places)
        self.stop: Stop | None = None
        self.result: LaunchResult | None = None
        self._saved = [(array, array.copy()) for array in self._arrays()]
        self._stops: queue.SimpleQueue[Stop | BaseException | None] = queue.SimpleQueue()
        #: Receivers of stops; without them, callers wait for stops.
        self.post: Callable[[Stop | BaseException | None], None] | None = None
        self._run: _Run | None = None
        self._found: list[Diagnostic] = []
        self._quiet = False

    def __enter__(self) -> DebugSession:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _arrays(self) -> Iterator[np.ndarray]:
        """Yield arrays that a launch may write to."""
        world = self.options.get("ranks")
        given = [a for rank in self.args for a in rank] if world is not None else self.args
        for value in given:
            if isinstance(value, np.ndarray):
                if value.flags.writeable:
                    yield value
            elif hasattr(value, "__dlpack__"):
                yield np.from_dlpack(value)
        if world is not None and world.used:
            for rank in range(world.ranks):
                yield np.frombuffer(world.memory(rank), np.uint8)[: world.used]

    @property
    def known(self) -> list[Source]:
        """Return the files of operations so far: C++ includes others."""
        found = {source.name: source for source in self.sources}
        if self._run is not None and self.module is None:
            for op in self._run.launch.grid.module.walk():
                if op.source is not None:
                    found.setdefault(op.source.name, op.source)
        return list(found.values())

    @property
    def findings(self) -> list[Diagnostic]:
        """Return the findings so far, of all launches: going back keeps them."""
        return (self._run.follower.findings if self._run is not None else []) or self._found

    # -- running ---------------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """Return the current moment of the launch."""
        return self._run.follower.now if self._run is not None else 0

    @property
    def running(self) -> bool:
        return self._run is not None and not self._run.ended and self.stop is None

    @property
    def begun(self) -> bool:
        return self._run is not None

    def start(self, entry: bool = False, wait: bool = True) -> Stop | None:
        """Begin, and go to the first stop; with `entry`, it is before the first operation."""
        self._launch(Resume(STEP_OP if entry else CONTINUE))
        return self._wait() if wait else None

    def _launch(self, order: Resume) -> None:
        self._run = _Run(self, order)
        self._run.thread.start()

    def posted(self, run: _Run, stop: Stop | BaseException | None) -> None:
        """Record that the launch pauses or is over; called by its thread."""
        if run is not self._run or run.left:
            return
        if self.post is not None and not self._quiet:
            self.post(stop)
        else:
            self._stops.put(stop)

    def _wait(self) -> Stop:
        while True:
            try:  # an endless wait would delay a signal that comes just before it
                return self.came(self._stops.get(timeout=_LOOK))
            except queue.Empty:
                continue

    def came(self, stop: Stop | BaseException | None) -> Stop:
        """Take a posted stop."""
        if isinstance(stop, BaseException):
            raise stop
        assert stop is not None
        for point in [b for b in self.points.breaks if b.temporary]:
            self.points.remove(point)
        self.stop = stop
        return stop

    def pause(self) -> None:
        if self._run is not None:
            self._run.follower.pause()

    def order(self, kind: str, core: Core | None = None) -> Resume:
        """Return a way to go on from the stop, on its core or another."""
        stop = self.stop
        if stop is None or kind == CONTINUE:
            return Resume(CONTINUE)
        at = stop.on(core) if core is not None else stop
        if kind == FINISH:
            inner = next((o for o in enclosing(at.op) if o is not at.op), None) if at.op is not None else None
            return Resume(FINISH, at.at, inner, depth_of(at.at))
        if kind == NEXT:
            return Resume(NEXT, at.at, at.op, depth_of(at.at))
        return Resume(kind, at.at)

    def go(self, order: Resume) -> Stop:
        """Go on to the next stop."""
        self.resume(order)
        return self._wait()

    def resume(self, order: Resume) -> None:
        """Go on without waiting for the next stop."""
        run = self._run
        if run is None or run.ended:
            raise PointError("the launch has ended; reverse-step and reverse-continue go back into it")
        self._left()
        run.go(order)

    def _left(self) -> None:
        """Invalidate the stop."""
        if self.stop is not None:
            self.stop.leave()
        self.stop = None

    def changed(self) -> Stop | None:
        """Apply changes of breakpoints or watchpoints at a stop. A first watchpoint needs a launch that
        reports stores: a new launch goes to the same moment."""
        run = self._run
        if run is None:
            return self.stop
        if any(w.enabled for w in self.points.watches) and not run.follower.memory and not run.ended:
            assert self.stop is not None
            return self._to(self.stop.moment, self.stop)
        run.follower.refresh()
        return self.stop

    # -- going back ------------------------------------------------------------------------------------

    def back(self, way: str = STEP_LINE, core: Core | None = None) -> Stop:
        """Go to the last stop before this one: of a step of a core, or (`CONTINUE`) of a breakpoint,
        watchpoint or finding. If there is none, go to the beginning."""
        stop, run = self.stop, self._run
        assert stop is not None and run is not None
        who = core or stop.at
        if way == STEP_LINE:
            way = STEP_OP if self._one_each else STEP_LINE
        if way == STEP_OP:
            last = run.follower.last.get(who)
            return self._to(last[0]) if last is not None else self._beginning()
        found = self._search(stop.moment, way, who)
        return self._to(found) if found else self._beginning()

    def _beginning(self) -> Stop:
        found = self._to(1)
        found.note = "This is where it begins: nothing comes before"
        return found

    @property
    def _one_each(self) -> bool:
        """Return True if every line has at most one operation: a step by line is then a step by operation."""
        if self.module is None:
            return False
        seen: set[tuple[str, int]] = set()
        for op in self.module.walk():
            if op.name not in ("func.func", "builtin.module"):
                at = ("", 0) if op.source is None else (op.source.name, op.source.place(op.start)[0])
                if at in seen:
                    return False
                seen.add(at)
        return True

    def _search(self, before: int, way: str, core: Core) -> int:
        """Return the last moment before `before` at which `way` would have stopped, or 0."""
        stop = self.stop
        assert stop is not None
        here = self.order(way, core)
        self._again(
            Resume(SEARCH, None, here.op, here.depth, before, way, -1 if way == CONTINUE else number(core))
        )
        run = self._run
        assert run is not None
        ended = self._stops.get()
        if isinstance(ended, BaseException):
            raise ended
        run.thread.join()
        return run.follower.found

    def to(self, moment: int) -> Stop:
        """Go to a moment, in either direction."""
        return self._to(moment)

    def _to(self, moment: int, like: Stop | None = None) -> Stop:
        self._again(Resume(GOTO, moment=moment))
        found = self._stops.get()
        self._quiet = False
        if isinstance(found, BaseException):
            raise found
        assert found is not None
        if found.moment != moment:
            raise PointError("the launch took another way: is something else writing to its arrays?")
        if like is not None:
            found.reason, found.note = like.reason, like.note
            found.breakpoints = like.breakpoints
        return self.came(found)

    def _again(self, order: Resume) -> None:
        """Launch again from the beginning."""
        if self.watchers:
            names = ", ".join(type(w).__name__ for w in self.watchers)
            raise PointError(f"no way back: {names} would see the launch twice")
        self._quiet = True
        self.restart()
        self._launch(order)

    def restart(self, limit: float | None = None) -> None:
        """Go back to before the beginning."""
        if not self._end(limit):
            raise PointError("cannot restart: the launch is in code without events; end the debugger")
        for array, saved in self._saved:
            array[...] = saved
        self._left()
        self.result = None

    def close(self, limit: float | None = None) -> None:
        """End the launch at its stop. After `limit` seconds leave it to the end of the process."""
        if self.stop is not None:
            self.stop.leave()
        self._end(limit)

    def _end(self, limit: float | None) -> bool:
        if self._run is None:
            return True
        self._found = self.findings
        if self._run.leave(limit):
            self._run = None
        return self._run is None


class Stops:
    """The stops of a launch, to iterate over; leaving the loop ends the launch.

    for stop in kernel.debug(a, b, breaks=[14], watch="%acc[0, 1]"):
        print(stop.line, stop.core, stop.read("%acc"))
    """

    def __init__(self, session: DebugSession, entry: bool = False) -> None:
        self.session = session
        self._entry = entry
        self._next: Callable[[], Stop | None] | None = None

    @property
    def result(self) -> LaunchResult | None:
        """Return the result of the launch, once it has ended."""
        return self.session.result

    def __iter__(self) -> Iterator[Stop]:
        """Start a new launch, and yield its stops; a fault or a deadlock is the last one."""
        self.session.restart()
        try:
            stop = self.session.start(self._entry)
            while stop is not None and stop.reason != END:
                yield stop
                if self._next is not None:
                    move, self._next = self._next, None
                    stop = move()
                elif stop.over:
                    break
                else:
                    stop = self.session.go(Resume(CONTINUE))
        finally:
            self.session.close()

    def step(self) -> None:
        """Request a stop at the next line of the same core."""
        self._then(STEP_LINE)

    def next(self) -> None:
        """Request a stop at the next line, past the bodies of loops, calls and vecscopes."""
        self._then(NEXT)

    def finish(self) -> None:
        """Request a stop after the innermost loop, vecscope or call."""
        self._then(FINISH)

    def _then(self, kind: str) -> None:
        session = self.session
        self._next = lambda: session.go(session.order(kind))

    def back(self, way: str = STEP_LINE) -> None:
        """Request the stop before this one: by a step, or (`"continue"`) at a breakpoint."""
        self._next = lambda: self.session.back(way)

    def add(self, point: int | str) -> None:
        """Add a breakpoint."""
        self.session.points.add(Breakpoint.parsed(str(point), self.session.places), self._now)
        self.session.changed()

    def watch(self, text: str) -> None:
        """Add a watchpoint."""
        self.session.points.add(Watchpoint(text))
        self.session.changed()

    @property
    def _now(self) -> int:
        return self.session.stop.moment if self.session.stop is not None else 0

    def close(self) -> None:
        self.session.close()


def debugged(
    kernel: Debuggable,
    args: Sequence[object],
    breaks: Any = (),
    watch: Any = (),
    entry: bool = False,
    **options: Any,
) -> Stops:
    """Return the stops of a launch; see `Launchable.debug`."""
    session = DebugSession(kernel, args, options, options.get("out"))
    given = [breaks] if isinstance(breaks, int | str) else list(breaks)
    watches = [watch] if isinstance(watch, str) else list(watch)
    try:
        for text in given:
            session.points.add(Breakpoint.parsed(str(text), session.places))
        for text in watches:
            session.points.add(Watchpoint(text))
    except PointError as e:
        raise ValueError(str(e)) from None
    return Stops(session, entry)
