"""The Debug Adapter Protocol: a session for editors.

Requests and stops come through one queue, so a running launch can be interrupted. Each message of a client
gets an answer. `inspection` shows values. Any user of the machine may connect to a port; a client must first
present a token (`admits`).

| request | effect |
| --- | --- |
| launch | `program`, `args`, and every option of `pto run` by its name; `stopOnEntry`, `token` |
| setBreakpoints | `condition`, `hitCondition` (3, >= 3, % 4), `logMessage` with {expressions} |
| setDataBreakpoints | watchpoints: on variables, elements of tiles |
| stepIn, next, stepOut | step, next, finish; `granularity` instruction: one operation |
| stepBack, reverseContinue | by launching again |
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Mapping
from typing import BinaryIO, NamedTuple, Protocol

from ...diag import Diagnostic, DiagnosticError, has_errors, render
from ..result import LaunchResult
from . import values
from .commands import shown_line
from .expressions import Expression, ExpressionError
from .follower import CONTINUE, FINISH, NEXT, STEP_LINE, STEP_OP
from .inspection import Inspector
from .points import Breakpoint, Hits, PointError, Watchpoint, same_file
from .requests import Answer, Body, RefusedRequest, arg, handlers, request
from .session import GRACE, DebugSession, Stops
from .stop import BREAK, END, ENTRY, FAULT, FINDING, PAUSE, STUCK, WATCH, Stop, number
from .wire import Bad, Bounded, Sender, read

#: Lines per answer.
MOST_LOCATIONS = 5000
#: Bytes to read from a client before it has presented its token.
MOST_UNKNOWN = 1 << 16

_REASONS = {
    ENTRY: "entry", BREAK: "breakpoint", WATCH: "data breakpoint", PAUSE: "pause", FINDING: "exception",
    FAULT: "exception", STUCK: "exception",
}  # fmt: skip

CAPABILITIES: Body = {
    **dict.fromkeys(
        (
            "supportsConfigurationDoneRequest", "supportsConditionalBreakpoints",
            "supportsHitConditionalBreakpoints", "supportsFunctionBreakpoints", "supportsLogPoints",
            "supportsEvaluateForHovers", "supportsStepBack", "supportsDataBreakpoints",
            "supportsCompletionsRequest", "supportsTerminateRequest", "supportTerminateDebuggee",
            "supportsReadMemoryRequest", "supportsSteppingGranularity", "supportsBreakpointLocationsRequest",
            "supportsRestartRequest", "supportsExceptionInfoRequest", "supportsValueFormattingOptions",
            "supportsDelayedStackTraceLoading",
        ),
        True,
    ),
    "exceptionBreakpointFilters": [
        {"filter": "findings", "label": "What sanitizers find", "default": True},
    ],
}  # fmt: skip


class Launching(Protocol):
    """A kernel with its arguments, made by the launcher of a client."""

    def stops(self) -> Stops: ...

    def left(self, result: LaunchResult) -> list[Diagnostic]:
        """Save the results of a launch; return findings to report."""
        ...


class _Posted(NamedTuple):
    """A stop of the launch, or its error."""

    stop: Stop | BaseException | None


class _OutputEvents:
    """Events for the output of the program."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def write(self, text: str) -> None:
        self._sender.event("output", category="stdout", output=text)

    def flush(self) -> None: ...


class Adapter:
    """Serves one client. `begin` makes a kernel from the arguments of a launch request; raises
    `DiagnosticError`."""

    def __init__(self, source: BinaryIO, target: BinaryIO, begin: Callable[[Body], Launching]) -> None:
        self._source = source
        self._sender = Sender(target)
        self._begin = begin
        self._inbox: queue.SimpleQueue[Body | Bad | _Posted | None] = queue.SimpleQueue()
        self._launching: Launching | None = None
        self._session: DebugSession | None = None
        self._entry = False
        self._configured = False
        self._ended = False
        self._open = True
        self._lines_from = 1
        #: Requested breakpoints by file; also before there is a program.
        self._wanted: dict[str, list[Body]] = {}
        self._functions: list[Breakpoint] = []
        self._logs: dict[Breakpoint, str] = {}
        self._looking = Inspector(self._standing, self._to_client)
        self._handlers = {**handlers(self), **handlers(self._looking)}

    # -- the loop --------------------------------------------------------------------------------------

    def admits(self, token: str) -> bool:
        """Answer a client until its launch request presents the token; editors send all that a launch
        configuration holds with that request. Before it only `initialize` is done. Return False, and read no
        more, for a launch request with another token or none, and for a client that leaves."""
        from secrets import compare_digest

        source = Bounded(self._source, MOST_UNKNOWN)
        while True:
            try:
                message = read(source)
            except (OSError, ValueError):
                return False
            if not isinstance(message, dict):
                return False
            command, arguments = message.get("command"), message.get("arguments")
            if command == "initialize" or message.get("type") != "request":
                self._request(message)
                continue
            given = arguments.get("token") if isinstance(arguments, dict) else None
            known = str(given).encode("utf-8", "surrogatepass")
            if command == "launch" and compare_digest(known, token.encode()):
                self._inbox.put(message)
                return True
            got = "another token" if given is not None else "none"
            self._refuse(_head(message), f"expected the token that pto debug has printed, got {got}")
            if command == "launch":
                return False

    def serve(self) -> None:
        """Answer until the client leaves."""
        reader = threading.Thread(target=self._read, name="pto-dap", daemon=True)
        reader.start()
        try:
            while self._open:
                found = self._inbox.get()
                if found is None:
                    break
                if isinstance(found, _Posted):
                    self._guarded(self._stopped, found.stop)
                elif isinstance(found, Bad):
                    self._sender.send(
                        "response", request_seq=0, success=False, command="", message=found.why,
                        body={"error": {"id": 1, "format": found.why.replace("{", "(").replace("}", ")")}},
                    )  # fmt: skip
                    self._open = not found.last
                else:
                    self._request(found)
        finally:
            if self._session is not None:
                self._session.close(GRACE)

    def _read(self) -> None:
        while True:
            try:
                found = read(self._source)
            except (OSError, ValueError):
                found = None
            self._inbox.put(found)
            if found is None or (isinstance(found, Bad) and found.last):
                return

    def _guarded(self, function: Callable[..., None], *args: object) -> None:
        try:
            function(*args)
        except Exception as e:
            self._output(f"internal error, this is a bug of ours: {type(e).__name__}: {e}\n", "stderr")
            self._finish(1)

    def _request(self, message: Mapping[str, object]) -> None:
        seq, command = message.get("seq"), message.get("command")
        arguments = message.get("arguments") or {}
        if message.get("type") != "request":
            return  # responses without a request
        head = _head(message)
        after: Callable[[], None] | None = None
        try:
            if not isinstance(command, str) or not isinstance(seq, int):
                raise RefusedRequest("expected a request with a number and a command")
            if not isinstance(arguments, dict):
                raise RefusedRequest("expected an object for 'arguments'")
            handler = self._handlers.get(command)
            if handler is None:
                raise RefusedRequest(f"unknown request '{command[:100]}'")
            found = handler(arguments)
            if isinstance(found, tuple):
                found, after = found
            self._sender.send("response", **head, success=True, body=found)
        except (RefusedRequest, PointError, ExpressionError) as e:
            self._refuse(head, str(e))
        except DiagnosticError as e:
            self._refuse(head, render(e.diagnostics))
        except Exception as e:
            self._refuse(head, f"internal error, this is a bug of ours: {type(e).__name__}: {e}")
        if after is not None:
            self._guarded(after)

    def _refuse(self, head: Mapping[str, object], why: str) -> None:
        error = {"id": 1, "format": "{why}", "variables": {"why": why}, "showUser": True}
        self._sender.send("response", **head, success=False, message=why, body={"error": error})

    def _output(self, text: str, category: str = "console") -> None:
        self._sender.event("output", category=category, output=text)

    # -- stops -----------------------------------------------------------------------------------------

    @property
    def session(self) -> DebugSession:
        if self._session is None:
            raise RefusedRequest("no program has been launched")
        return self._session

    @property
    def stop(self) -> Stop:
        found = self.session.stop
        if found is None:
            raise RefusedRequest(
                "the launch is running" if self.session.begun else "the launch has not begun"
            )
        return found

    def _standing(self) -> tuple[DebugSession, Stop | None]:
        return self.session, self.session.stop

    def _stopped(self, posted: Stop | BaseException | None) -> None:
        session = self._session
        if session is None or self._ended:
            return
        if not isinstance(posted, Stop):
            raise posted if isinstance(posted, Exception) else RuntimeError(repr(posted))
        self._report_stop(session.came(posted))

    def _report_stop(self, stop: Stop) -> None:
        """Report a stop to the client; log points are only written."""
        self._looking.forget()
        session = self.session
        if stop.reason == END:
            self._output(stop.note + "\n")
            self._leave()
            return
        logs = [b for b in stop.breakpoints if b in self._logs]
        if stop.reason == BREAK and logs and len(logs) == len(stop.breakpoints):
            for point in logs:
                self._output(self._logged(stop, self._logs[point]) + "\n", "console")
            session.resume(session.order(CONTINUE))
            return
        body: Body = {
            "reason": _REASONS.get(stop.reason, "step"),
            "threadId": number(stop.at) + 1,
            "allThreadsStopped": True,
            "description": stop.headline(),
        }
        if stop.diagnostic is not None:
            body["text"] = f"{stop.diagnostic.code}: {stop.diagnostic.message}"
            self._output(render([stop.diagnostic]) + "\n", "stderr")
        for write in stop.writes:
            text = f"{write.what}: {values.scalar(write.old)} -> {values.scalar(write.new)}"
            body["text"] = text
            self._output(f"{stop.headline()}\n  {text}\n")
        numbers = [b.number for b in stop.breakpoints] or [w.watch.number for w in stop.writes]
        if numbers:
            body["hitBreakpointIds"] = numbers
        if stop.note:
            body["text"] = stop.note
        self._sender.event("stopped", **body)

    def _logged(self, stop: Stop, text: str) -> str:
        def shown(m: re.Match[str]) -> str:
            try:
                return shown_line(stop, stop.evaluate(Expression(m[1])))
            except ExpressionError as e:
                return f"<{stop.grid.words.plain(str(e))}>"

        return re.sub(r"\{([^{}]*)\}", shown, text)

    def _leave(self) -> None:
        """End the launch: save its results, and report the end."""
        result = self.session.result
        found: list[Diagnostic] = []
        if result is not None and self._launching is not None:
            try:
                found = self._launching.left(result)
            except DiagnosticError as e:
                found = e.diagnostics
            if found:
                self._output(render(found) + "\n", "stderr")
        self._finish(1 if has_errors(found) else 0)

    def _left(self) -> None:
        """The client leaves before the end."""
        self._finish(1 if self._session is not None and has_errors(self._session.findings) else 0)

    def _finish(self, status: int) -> None:
        if not self._ended:
            self._ended = True
            self._sender.event("exited", exitCode=status)
            self._sender.event("terminated")

    # -- starting --------------------------------------------------------------------------------------

    @request("initialize")
    def initialize(self, arguments: Body) -> Answer:
        self._lines_from = 1 if arg(arguments, "linesStartAt1", bool, True) else 0
        return CAPABILITIES

    @request("launch")
    def launch(self, arguments: Body) -> Answer:
        if self._session is not None:
            raise RefusedRequest("a program has been launched already")
        self._launching = self._begin(arguments)
        stops = self._launching.stops()
        self._session = session = stops.session
        session.out = _OutputEvents(self._sender)
        session.post = lambda stop: self._inbox.put(_Posted(stop))
        self._entry = arg(arguments, "stopOnEntry", bool, False)

        def ready() -> None:
            for path in list(self._wanted):
                for body in self._set(path):
                    self._sender.event("breakpoint", reason="changed", breakpoint=body)
            self._sender.event("initialized")
            if self._configured:
                self._start()

        return {}, ready

    @request("attach")
    def attach(self, arguments: Body) -> Answer:
        raise RefusedRequest("cannot attach to a kernel: use a request of type 'launch'")

    @request("configurationDone")
    def configuration_done(self, arguments: Body) -> Answer:
        if self._configured:
            raise RefusedRequest("configured already")
        self._configured = True
        return {}, (self._start if self._session is not None else lambda: None)

    def _start(self) -> None:
        try:
            self.session.start(self._entry, wait=False)
        except DiagnosticError as e:
            self._output(render(e.diagnostics) + "\n", "stderr")
            self._finish(1)

    @request("restart")
    def restart(self, arguments: Body) -> Answer:
        session = self.session
        session.restart(GRACE)
        self._ended = False
        return {}, self._start

    @request("terminate")
    def terminate(self, arguments: Body) -> Answer:
        if self._session is not None:
            self._session.close(GRACE)
        return {}, self._left

    @request("disconnect")
    def disconnect(self, arguments: Body) -> Answer:
        def leave() -> None:
            if self._session is not None:
                self._session.close(GRACE)
            self._left()
            self._open = False

        return {}, leave

    @request("cancel")
    def cancel(self, arguments: Body) -> Answer:
        return {}

    # -- breakpoints -----------------------------------------------------------------------------------

    @request("setBreakpoints")
    def set_breakpoints(self, arguments: Body) -> Answer:
        source = arg(arguments, "source", dict, {})
        path = arg(source, "path", str, "") or arg(source, "name", str, "")
        if not path:
            raise RefusedRequest("missing path in 'source': breakpoints belong to a file")
        wanted = arg(arguments, "breakpoints", list, [])
        if not wanted:
            wanted = [{"line": n} for n in arg(arguments, "lines", list, [])]
        if not all(isinstance(w, dict) and type(w.get("line")) is int for w in wanted):
            raise RefusedRequest("expected breakpoints as objects with a line")
        self._wanted[path] = wanted
        if self._session is None:
            return {"breakpoints": [{"verified": False, "line": w["line"]} for w in wanted]}
        return {"breakpoints": self._set(path)}

    def _set(self, path: str) -> list[Body]:
        """Make the requested breakpoints of a file; existing ones keep their counts."""
        session = self.session
        points = session.points
        try:
            file = session.places.file(path)
        except PointError as e:
            return [{"verified": False, "message": str(e), "line": w["line"]} for w in self._wanted[path]]
        mine = {b for b in points.breaks if same_file(b.file, file) and b not in self._functions}
        kept: set[Breakpoint] = set()
        out: list[Body] = []
        for w in self._wanted[path]:
            try:
                made = self._made(file, w)
                same = next((b for b in mine - kept if _alike(b, made)), None)
                if same is None:
                    points.add(made, self._now)
                else:
                    made = same
                kept.add(made)
                log = arg(w, "logMessage", str, "")
                if log:
                    self._logs[made] = log
                else:
                    self._logs.pop(made, None)
                out.append({"id": made.number, "verified": True, "line": self._to_client(made.line)})
            except (PointError, RefusedRequest) as e:
                out.append({"verified": False, "message": str(e), "line": w["line"]})
        for gone in mine - kept:
            points.remove(gone)
        session.changed()
        return out

    def _made(self, file: str, wanted: Body) -> Breakpoint:
        asked = arg(wanted, "line", int, 0) + (1 - self._lines_from)
        line = self.session.places.line(file, asked)
        hits = arg(wanted, "hitCondition", str, "")
        return Breakpoint(file, line, arg(wanted, "condition", str, ""), hits)

    @property
    def _now(self) -> int:
        session = self._session
        if session is None or not session.begun:
            return 0
        return session.stop.moment if session.stop is not None else session.now

    def _to_client(self, line: int) -> int:
        return line - (1 - self._lines_from)

    @request("setFunctionBreakpoints")
    def set_function_breakpoints(self, arguments: Body) -> Answer:
        points = self.session.points
        for gone in self._functions:
            points.remove(gone)
        self._functions.clear()
        out: list[Body] = []
        for w in arg(arguments, "breakpoints", list, []):
            try:
                name = arg(w if isinstance(w, dict) else {}, "name", str, "").removeprefix("@")
                file, line = self.session.places.function(name)
                made = Breakpoint(file, line, arg(w, "condition", str, ""), arg(w, "hitCondition", str, ""))
                points.add(made, self._now)
                self._functions.append(made)
                out.append({"id": made.number, "verified": True, "line": self._to_client(line)})
            except (PointError, RefusedRequest) as e:
                out.append({"verified": False, "message": str(e)})
        self.session.changed()
        return {"breakpoints": out}

    @request("setExceptionBreakpoints")
    def set_exception_breakpoints(self, arguments: Body) -> Answer:
        self.session.points.findings = "findings" in arg(arguments, "filters", list, [])
        return {}

    @request("dataBreakpointInfo")
    def data_breakpoint_info(self, arguments: Body) -> Answer:
        name = arg(arguments, "name", str, "")
        try:
            made = Watchpoint(self._looking.expression(arg(arguments, "variablesReference", int, 0), name))
        except PointError as e:
            return {"dataId": None, "description": str(e)}
        return {"dataId": made.text, "description": made.text, "accessTypes": ["write"], "canPersist": True}

    @request("setDataBreakpoints")
    def set_data_breakpoints(self, arguments: Body) -> Answer:
        session = self.session
        if session.begun and session.stop is None:
            raise RefusedRequest("the launch is running: interrupt it first")
        points = session.points
        old = list(points.watches)
        out: list[Body] = []
        for gone in old:
            points.remove(gone)
        for w in arg(arguments, "breakpoints", list, []):
            try:
                made = Watchpoint(arg(w if isinstance(w, dict) else {}, "dataId", str, ""))
                same = next((o for o in old if o.text == made.text), None)
                if same is not None:
                    points.watches.append(same)
                    made = same
                else:
                    points.add(made)
                out.append({"id": made.number, "verified": True})
            except (PointError, RefusedRequest) as e:
                out.append({"verified": False, "message": str(e)})
        session.changed()
        return {"breakpoints": out}

    @request("breakpointLocations")
    def breakpoint_locations(self, arguments: Body) -> Answer:
        path = arg(arg(arguments, "source", dict, {}), "path", str, "")
        first = arg(arguments, "line", int, 1) + (1 - self._lines_from)
        last = arg(arguments, "endLine", int, first - (1 - self._lines_from)) + (1 - self._lines_from)
        places = self.session.places
        lines = places.lines(places.file(path), first, last)
        return {"breakpoints": [{"line": self._to_client(n)} for n in lines[:MOST_LOCATIONS]]}

    # -- going on --------------------------------------------------------------------------------------

    def _move(self, kind: str, arguments: Body, body: Body | None = None) -> Answer:
        session, stop = self.session, self.stop
        if stop.over:
            return body or {}, self._leave
        if arg(arguments, "granularity", str, "") == "instruction" and kind in (STEP_LINE, NEXT):
            kind = STEP_OP
        order = session.order(kind, self._looking.core(arguments))
        return body or {}, lambda: session.resume(order)

    @request("continue")
    def go_on(self, arguments: Body) -> Answer:
        return self._move(CONTINUE, arguments, {"allThreadsContinued": True})

    @request("next")
    def next(self, arguments: Body) -> Answer:
        return self._move(NEXT, arguments)

    @request("stepIn")
    def step_in(self, arguments: Body) -> Answer:
        return self._move(STEP_LINE, arguments)

    @request("stepOut")
    def step_out(self, arguments: Body) -> Answer:
        return self._move(FINISH, arguments)

    @request("pause")
    def pause(self, arguments: Body) -> Answer:
        self.session.pause()
        return {}

    def _back(self, way: str, arguments: Body) -> Answer:
        core = self._looking.core(arguments)
        session = self.session

        def go() -> None:
            try:
                self._report_stop(session.back(way, core))
            except PointError as e:
                self._output(f"{e}\n", "stderr")
                if session.stop is not None:
                    self._report_stop(session.stop)

        return {}, go

    @request("stepBack")
    def step_back(self, arguments: Body) -> Answer:
        return self._back(STEP_LINE, arguments)

    @request("reverseContinue")
    def reverse_continue(self, arguments: Body) -> Answer:
        return self._back(CONTINUE, arguments)


def _head(message: Mapping[str, object]) -> Body:
    """Return the fields that name the request of a response."""
    seq = message.get("seq")
    command = str(message.get("command"))[:100]
    return {"request_seq": seq if isinstance(seq, int) else 0, "command": command}


def _alike(a: Breakpoint, b: Breakpoint) -> bool:
    def facts(p: Breakpoint) -> tuple[object, ...]:
        hits: Hits | None = p.wanted
        return p.file, p.line, p.condition.text if p.condition else "", str(hits) if hits else ""

    return facts(a) == facts(b)
