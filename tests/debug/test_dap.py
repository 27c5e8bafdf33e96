"""The Debug Adapter Protocol: sessions as editors have them, bad requests, any bytes at all."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.debug.client import ROOT, Client, PortClient
from tests.debug.kernels import CASES, EXAMPLES, LOOP, loop, loop_args
from tests.each import each
from tests.sampling import examples

from pto.cli import debug as cli
from pto.engine.debug.dap import MOST_UNKNOWN, Adapter
from pto.engine.debug.session import Stops, debugged
from pto.engine.debug.wire import LARGEST, Bad, Sender, read


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "loop.pto").write_text(LOOP)
    np.save(tmp_path / "x.npy", np.arange(30, dtype=np.float32).reshape(3, 10))
    return tmp_path


# -- sessions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_a_session(name: str, tmp_path: Path, tool_folder: Path) -> None:
    """From launch to the end, over a breakpoint, a watchpoint, a step and back."""
    case = CASES[name]
    if not case.runs:
        pytest.skip("the reference engine takes no such files")
    args: list[str] = []
    for n, array in enumerate(case.arrays):
        np.save(tmp_path / f"{n}.npy", array)
        args.append(f"@{tmp_path / f'{n}.npy'}")
    path = str(case.path)
    with Client(tool_folder) as c:
        c.begin({path: [case.line]}, program=path, args=args, stopOnEntry=True, sanitize="all")
        assert c.stopped()["reason"] == "entry"
        assert len(c.ask("threads")["threads"]) == case.cores
        assert c.ask("continue", threadId=1)["allThreadsContinued"]
        stopped = c.stopped()
        assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("breakpoint", [1])
        frame = c.top()
        assert (frame["line"], frame["source"]["path"]) == (case.line, path)
        scopes = c.scopes()
        operands = [v["evaluateName"] for v in scopes["Operands"]]
        assert operands[:2] == list(case.sources)
        # a page of a tile
        tile = scopes["Operands"][0]
        rows = c.ask("variables", variablesReference=tile["variablesReference"], start=1, count=2)[
            "variables"
        ]
        assert [r["name"] for r in rows] == ["[1]", "[2]"]
        cells = c.ask("variables", variablesReference=rows[0]["variablesReference"], start=2, count=3)[
            "variables"
        ]
        assert [v["evaluateName"] for v in cells] == [f"{case.sources[0]}[1, {n}]" for n in (2, 3, 4)]
        assert c.value(cells[0]["evaluateName"]) == cells[0]["value"]
        # an element of the result is watched
        info = c.ask("dataBreakpointInfo", name=case.target)
        assert info["dataId"] == case.target and info["accessTypes"] == ["write"]
        (point,) = c.ask("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])["breakpoints"]
        assert point["verified"]
        c.ask("continue", threadId=stopped["threadId"])
        written = c.stopped()
        assert (written["reason"], written["hitBreakpointIds"]) == ("data breakpoint", [point["id"]])
        assert case.target in written["text"] and "->" in written["text"]
        c.ask("stepBack", threadId=written["threadId"])
        assert c.stopped()["reason"] == "breakpoint"
        c.ask("next", threadId=stopped["threadId"])
        assert c.stopped()["reason"] == "data breakpoint"
        c.ask("next", threadId=stopped["threadId"])
        assert c.stopped()["reason"] == "step" and c.top()["line"] == case.line + 1
        c.ask("reverseContinue", threadId=stopped["threadId"])
        assert c.stopped()["reason"] == "data breakpoint"
        c.ask("setDataBreakpoints", breakpoints=[])
        c.ask("setBreakpoints", source={"path": path}, breakpoints=[])
        c.ask("continue", threadId=stopped["threadId"])
        assert c.event("exited") == {"exitCode": 0}
        c.event("terminated")
        c.ask("disconnect")
    assert c.process.returncode == 0


def test_as_an_editor_asks(tmp_path: Path, tool_folder: Path) -> None:
    """The requests of VS Code in its order, with all that it sends along, on a C++ kernel."""
    case = CASES["cpp"]
    args: list[str] = []
    for n, array in enumerate(case.arrays):
        np.save(tmp_path / f"{n}.npy", array)
        args.append(f"@{tmp_path / f'{n}.npy'}")
    path = str(case.path)
    source = {"name": case.path.name, "path": path}
    launch = {
        "type": "pto", "request": "launch", "name": "Kernel", "program": path, "args": args,
        "cwd": str(ROOT), "sanitize": "all", "stopOnEntry": False,
        "__configurationTarget": 6, "__sessionId": "5d3f8a1e",
    }  # fmt: skip
    with Client(tool_folder) as c:
        able = c.ask(
            "initialize", clientID="vscode", clientName="Visual Studio Code", adapterID="pto",
            pathFormat="path", linesStartAt1=True, columnsStartAt1=True, supportsVariableType=True,
            supportsVariablePaging=True, supportsRunInTerminalRequest=True, locale="en",
            supportsProgressReporting=True, supportsInvalidatedEvent=True, supportsMemoryReferences=True,
            supportsArgsCanBeInterpretedByShell=True, supportsMemoryEvent=True,
            supportsStartDebuggingRequest=True, supportsANSIStyling=True,
        )  # fmt: skip
        assert able["supportsConfigurationDoneRequest"] and able["supportsStepBack"]
        launched = c.send("launch", launch)  # which may be answered when all is set
        c.event("initialized")
        points = [{"line": case.line}]
        (point,) = c.ask(
            "setBreakpoints", source=source, lines=[case.line], breakpoints=points, sourceModified=False
        )["breakpoints"]
        assert point["verified"]
        c.ask("setFunctionBreakpoints", breakpoints=[])
        c.ask("setDataBreakpoints", breakpoints=[])
        c.ask("setExceptionBreakpoints", filters=[], filterOptions=[{"filterId": "findings"}])
        c.send("configurationDone")
        stopped = c.stopped()
        assert stopped["reason"] == "breakpoint" and launched == 2
        thread = stopped["threadId"]
        assert thread in [t["id"] for t in c.ask("threads")["threads"]]
        frames = c.ask("stackTrace", threadId=thread, startFrame=0, levels=20)["stackFrames"]
        assert (frames[0]["line"], frames[0]["source"]["path"]) == (case.line, path)
        assert [f["name"] for f in frames] == ["add: TADD"]
        assert [t["label"] for t in c.ask("completions", text="g", column=2)["targets"]] == ["ga", "gb"]
        frame = frames[0]["id"]
        for scope in c.ask("scopes", frameId=frame)["scopes"]:
            c.ask("variables", variablesReference=scope["variablesReference"])
        for context in ("hover", "watch", "repl"):
            assert c.ask("evaluate", expression=f"{case.sources[0]}[0, 0]", frameId=frame, context=context)[
                "result"
            ]
        c.ask("next", threadId=thread, granularity="statement")
        assert c.stopped()["reason"] == "step"
        c.ask("stepBack", threadId=thread, granularity="statement")
        assert c.stopped()["reason"] == "breakpoint" and c.top(thread)["line"] == case.line
        c.ask("disconnect", restart=False, terminateDebuggee=True)
    assert c.process.returncode == 0


def test_headers_and_functions_of_cpp(tmp_path: Path, tool_folder: Path) -> None:
    """Breakpoints in an included file, and at a function; findings end in an exit code of 1."""
    case = CASES["mixed cpp"]
    args: list[str] = []
    for n, array in enumerate(case.arrays):
        np.save(tmp_path / f"{n}.npy", array)
        args.append(f"@{tmp_path / f'{n}.npy'}")
    text = case.path.read_text().replace("  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);\n", "")
    program, header = tmp_path / "mixed.cpp", tmp_path / "parts.hpp"
    program.write_text(text)
    header.write_text(case.path.with_name("parts.hpp").read_text())
    with Client(tool_folder) as c:
        c.begin({str(header): [17]}, program=str(program), args=args, sanitize="race")
        assert "TMATMUL writes 'z'" in c.event("output")["output"]
        found = c.stopped()
        assert found["reason"] == "exception"
        assert found["description"].startswith("Found: AIC, PIPE_FIX after TSTORE")
        assert c.ask("exceptionInfo")["description"].startswith("TSTORE: RAW race")
        (point,) = c.ask("setFunctionBreakpoints", breakpoints=[{"name": "exponent"}])["breakpoints"]
        assert (point["verified"], point["line"]) == (True, 15)
        c.ask("continue")
        assert c.stopped()["hitBreakpointIds"] == [point["id"]]
        c.ask("continue")
        thread = c.stopped()["threadId"]
        frame = c.top(thread)
        assert (frame["name"], frame["line"], frame["source"]["path"]) == ("exponent: TEXP", 17, str(header))
        assert "TEXP" in c.ask("source", source={"path": str(header)})["content"]
        assert c.value("y[0, 0]") == "0" and c.value("$src[0, 1]") == c.value("x[0, 1]")
        c.ask("disconnect")
        assert c.event("exited") == {"exitCode": 1}


def test_stacks_conditions_and_log_points(folder: Path, tool_folder: Path) -> None:
    path = str(folder / "loop.pto")
    points = [
        {"line": 4, "hitCondition": "% 2"},
        {"line": 19, "logMessage": "i is {%i}, {%t[0, 1] * 2}, {%none}"},
    ]
    with Client(tool_folder) as c:
        c.begin({path: points}, program="loop.pto", args=["@x.npy", "4"], cwd=str(folder))
        c.stopped()
        frames = c.ask("stackTrace")["stackFrames"]
        assert [(f["name"], f["line"]) for f in frames] == [
            ("@twice: tadd", 4), ("@k: func.call", 20), ("loop %i = 1, below 4", 18),
        ]  # fmt: skip
        assert c.ask("stackTrace", startFrame=1, levels=1)["stackFrames"][0]["name"] == "@k: func.call"
        outer = c.ask("scopes", frameId=c.ask("stackTrace")["stackFrames"][1]["id"])["scopes"]
        assert "Operands" not in [s["name"] for s in outer]
        # by operations, out of the function, over the call
        c.ask("stepIn", granularity="instruction")
        c.stopped()
        assert c.top()["line"] == 5
        c.ask("stepOut")
        c.stopped()
        assert c.top()["line"] == 21
        found = c.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": 6}, {"line": 99}])[
            "breakpoints"
        ]
        assert [b["verified"] for b in found] == [True, False] and found[0]["line"] == 8
        c.ask("continue")
        assert c.event("exited") == {"exitCode": 0}
        c.ask("disconnect")
    said = [e["body"]["output"] for e in c.events if e.get("event") == "output"]
    assert said == [] or all(isinstance(text, str) for text in said)


def test_log_points_are_written(folder: Path, tool_folder: Path) -> None:
    path = str(folder / "loop.pto")
    with Client(tool_folder) as c:
        point = {"line": 19, "logMessage": "i is {%i}, {%t[0, 1] * 2}, {%none}"}
        c.begin({path: [point]}, program=path, args=[f"@{folder / 'x.npy'}", "2"])
        said = [c.event("output")["output"] for _ in range(3)]
        assert said == [
            "i is 0, 2, <no value %none here>\n", "i is 1, 4, <no value %none here>\n", "The launch has ended: ok\n",
        ]  # fmt: skip


def test_findings_faults_and_memory(folder: Path, tool_folder: Path) -> None:
    a = folder / "a.npy"
    np.save(a, np.arange(64 * 128, dtype=np.float32).reshape(64, 128))
    race = str(EXAMPLES / "12_race.pto")
    with Client(tool_folder) as c:
        c.begin({}, program=race, args=[f"@{a}", f"@{a}", "f32:64x128"], sanitize="race")
        stopped = c.stopped()
        assert stopped["reason"] == "exception" and "PTO-E2201" in stopped["text"]
        info = c.ask("exceptionInfo", threadId=1)
        assert info["exceptionId"] == "PTO-E2201" and "put 'pto.set_flag" in info["details"]["stackTrace"]
        reference = c.ask("evaluate", expression="%ta")["memoryReference"]
        got = c.ask("readMemory", memoryReference=reference, offset=4, count=8)
        assert np.frombuffer(base64.b64decode(got["data"]), np.float32).tolist() == [1, 2]
        assert got["address"] == "vec:0x4"
        assert c.ask("readMemory", memoryReference="vec:0xffffffff", count=4)["unreadableBytes"] == 4
        assert c.ask("completions", text="%t", column=3)["targets"][0]["label"] == "%tc"
        assert c.ask("evaluate", expression="info flags", context="repl")["result"].startswith("no flag")
        assert c.ask("evaluate", expression="%ta[0, 1] * 2", context="watch")["result"] == "2"
        assert c.ask("evaluate", expression="%ta[0, 1]", format={"hex": True})["result"] == "0x3f800000"
        c.ask("continue")
        assert c.event("exited") == {"exitCode": 1}
    with Client(tool_folder) as c:
        np.save(folder / "small.npy", np.zeros((2, 10), np.float32))
        c.begin({}, program=str(folder / "loop.pto"), args=[f"@{folder / 'small.npy'}", "1"])
        assert "PTO-E2101" in c.stopped()["text"] and c.top()["line"] == 16
        c.ask("stepBack")
        c.stopped()
        c.ask("continue")
        assert "PTO-E2101" in c.stopped()["text"]
        c.ask("continue")
        assert c.event("exited") == {"exitCode": 1}


def test_a_launch_that_runs_is_interrupted(folder: Path, tool_folder: Path) -> None:
    with Client(tool_folder) as c:
        c.begin({}, program=str(folder / "loop.pto"), args=[f"@{folder / 'x.npy'}", "1000000000"])
        assert "is running" in c.refused("stackTrace", {"threadId": 1})
        assert c.ask("threads")["threads"]
        c.ask("pause", threadId=1)
        assert c.stopped()["reason"] == "pause"
        assert c.top()["line"]
        c.ask("continue")
        c.ask("disconnect")
    assert c.process.returncode == 0


def test_a_launch_that_never_ends_does_not_keep_the_debugger(tmp_path: Path, tool_folder: Path) -> None:
    """C++ without an event cannot be interrupted: a restart is refused, and the process ends anyway."""
    path = tmp_path / "spin.cpp"
    path.write_text(
        "#include <pto/pto-inst.hpp>\nusing namespace pto;\n__global__ AICORE void k(__gm__ float* a) {\n"
        "  volatile int x = 1;\n  while (x) {}\n}\n"
    )
    with Client(tool_folder) as c:
        c.begin({}, program=str(path), args=["f32:8"])
        assert "code without events" in c.refused("restart")
        c.ask("terminate")
        assert c.event("exited") == {"exitCode": 0}
        c.ask("disconnect")
    assert c.process.returncode == 0


def test_restart_and_breakpoints_before_the_launch(folder: Path, tool_folder: Path) -> None:
    path = str(folder / "loop.pto")
    with Client(tool_folder) as c:
        c.ask("initialize", linesStartAt1=False)
        (early,) = c.ask("setBreakpoints", source={"path": path}, lines=[3])["breakpoints"]
        assert not early["verified"]
        c.ask("configurationDone")
        c.ask("launch", program=path, args=[f"@{folder / 'x.npy'}", "2"])
        assert c.event("breakpoint")["breakpoint"] == {"id": 1, "verified": True, "line": 3}
        c.stopped()
        assert c.top()["line"] == 3  # as this client counts
        c.ask("restart")
        c.stopped()
        assert c.value("%i") == "0"
        assert [
            b["line"]
            for b in c.ask("breakpointLocations", source={"path": path}, line=2, endLine=5)["breakpoints"]
        ] == [3, 4]
        (named,) = c.ask("setFunctionBreakpoints", breakpoints=[{"name": "@k"}])["breakpoints"]
        assert named["verified"]
        c.ask("terminate")
        c.event("terminated")


# -- a port ------------------------------------------------------------------------------------------------

_TOKEN = "rCkYp0Yt0b2N9x"


def test_a_port(folder: Path, tool_folder: Path) -> None:
    """Strangers come first. None of them has anything executed, and the right client is served all the same."""
    command = [str(tool_folder / "pto"), "debug", "--dap-port", "0"]
    saved = folder / "saved.npy"
    launch = {
        "program": str(folder / "loop.pto"), "args": [f"f32:3x10={saved}", "2"],
        "type": "pto", "request": "launch", "name": "Kernel", "debugServer": 4711,
    }  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stderr is not None
        place, _, token = process.stderr.readline().decode().strip().partition(", token ")
        port = int(place.rpartition(":")[2])
        assert place == f"listening on 127.0.0.1:{port}" and len(token) > 40
        for wrong in (None, "", token[:-1], token + "x", 7, [token], "\ud800"):
            with PortClient(port) as c:
                assert c.ask("initialize")["supportsStepBack"]
                assert "expected the token" in c.refused("launch", {**launch, "token": wrong})
                assert c.is_over
        page = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
        for data in (page + framed(asked(1, "launch", launch)), b"", b"\x16\x03\x01", framed(b"[" * 50000)):
            with PortClient(port) as c:
                c.write(data)
                c.end()
                assert c.is_over
        assert not saved.exists()
        with PortClient(port) as c:
            c.ask("initialize")
            c.ask("launch", **launch, token=token)
            c.ask("configurationDone")
            assert c.event("exited") == {"exitCode": 0} and saved.exists()
            c.ask("disconnect")
        assert process.wait(120) == 0


def test_only_the_token_opens() -> None:
    """Requests before it, and how much of them is read."""
    launch = asked(3, "launch", {"token": _TOKEN, "stopOnEntry": True})
    names = Adapter(io.BytesIO(), io.BytesIO(), lambda arguments: _Made())._handlers
    known = {"token": _TOKEN, "expression": "1", "source": {"path": "/etc/passwd"}}
    every = [asked(2, name, known) for name in names if name not in ("initialize", "launch")]
    assert len(every) > 25

    def check(data: bytes, wanted: list[bool], admitted: bool) -> None:
        begun: list[object] = []
        out, source = io.BytesIO(), io.BytesIO(data)
        adapter = Adapter(source, out, lambda arguments: begun.append(arguments) or _Made())
        assert adapter.admits(_TOKEN) == admitted and not begun
        out.seek(0)
        answers = []
        while isinstance(found := read(out), dict):
            answers.append(found["success"])
        assert answers == wanted and source.tell() <= MOST_UNKNOWN

    first = asked(1, "initialize")
    each(check, [
        (framed(first, launch), [True], True),
        (framed(launch), [], True),
        (framed(first, *every, launch), [True, *[False] * len(every)], True),
        (framed(first, asked(2, "launch", {"token": _TOKEN[:-1]}), launch), [True, False], False),
        (framed(first, asked(2, "launch"), launch), [True, False], False),
        (framed(asked(2, "launch", [_TOKEN]), launch), [False], False),
        (framed({"type": "event", "event": "launch"}, launch), [], True),
        (framed(first, b"nonsense", launch), [True], False),
        (framed(asked(1, "initialize", {"x": "y" * MOST_UNKNOWN}), launch), [], False),
        (framed(*[first] * 2000, launch), [True] * (MOST_UNKNOWN // len(framed(first))), False),
        (b"x" * 2 * MOST_UNKNOWN, [], False), (b"\r\n" * MOST_UNKNOWN + framed(launch), [], False),
        (framed(first), [True], False), (b"", [], False),
    ])  # fmt: skip


def test_what_follows_the_token_is_served() -> None:
    out = io.BytesIO()
    wanted = {"token": _TOKEN, "stopOnEntry": True}
    messages = (
        asked(1, "initialize"),
        asked(2, "launch", wanted),
        asked(3, "configurationDone"),
        asked(4, "threads"),
    )
    adapter = Adapter(io.BytesIO(framed(*messages)), out, lambda arguments: _Made())
    assert adapter.admits(_TOKEN)
    adapter.serve()
    out.seek(0)
    found = [m for m in iter(lambda: read(out), None) if isinstance(m, dict) and m["type"] == "response"]
    assert [(m["request_seq"], m["success"]) for m in found] == [(1, True), (2, True), (3, True), (4, True)]


def test_a_client_that_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_PROOF", 0.01)
    ours, theirs = socket.socketpair()
    with theirs:
        assert cli._asked(ours, _TOKEN) is None
        assert theirs.recv(1) == b""
    gone, theirs = socket.socketpair()
    theirs.sendall(framed(*[asked(1, "initialize")] * 100))
    theirs.close()
    assert cli._asked(gone, _TOKEN) is None


def test_clients_without_the_token_delay_nobody() -> None:
    """Clients that stay without a word or come again and again; the first to come are sent away."""
    with contextlib.ExitStack() as strangers, socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        silent = [strangers.enter_context(socket.create_connection(server.getsockname())) for _ in range(80)]
        right = strangers.enter_context(socket.create_connection(server.getsockname()))
        right.sendall(framed(asked(1, "launch", {"token": _TOKEN})))
        client, _ = cli._admitted(server, _TOKEN)
        client.close()
        silent[0].settimeout(60)
        assert silent[0].recv(1) == b""


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.main(["--dap-port", str(port)]) == 1
    assert f"cannot listen on 127.0.0.1:{port}: address already in use" in capsys.readouterr().err


# -- bad requests ------------------------------------------------------------------------------------------


def test_launches_that_cannot_be(tool_folder: Path) -> None:
    race = str(EXAMPLES / "12_race.pto")
    with Client(tool_folder) as c:
        c.ask("initialize")

        def check(arguments: dict[str, Any], why: str) -> None:
            assert why in c.refused("launch", arguments)
            assert "no program has been launched" in c.refused("stepIn", {})

        each(check, [
            ({}, "expected the path of a kernel in 'program'"), ({"program": "none.pto"}, "PTO-E0001"),
            ({"program": race, "args": "x"}, "expected a list in 'args'"),
            ({"program": race, "args": ["f32:64x128"] * 3, "sanitize": "nothing"}, "unknown sanitizer"),
            ({"program": race, "args": [], "frobnicate": 3}, "unrecognized arguments: --frobnicate=3"),
            ({"program": race, "args": ["@none.npy"] * 3, "cwd": "/none"}, "cannot change to '/none'"),
        ])  # fmt: skip
        c.ask("disconnect")


class _Made:
    """A launch without files."""

    def stops(self) -> Stops:
        return debugged(loop(), loop_args())

    def left(self, result: Any) -> list[Any]:
        return list(result.diagnostics)


def talk(data: bytes) -> list[dict[str, Any]]:
    """Return all answers of the debugger to bytes."""
    out = io.BytesIO()
    adapter = Adapter(io.BytesIO(data), out, lambda arguments: _Made())
    adapter.serve()
    out.seek(0)
    found: list[dict[str, Any]] = []
    while (message := read(out)) is not None:
        assert isinstance(message, dict)
        found.append(message)
    return found


def framed(*messages: Any) -> bytes:
    bodies = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
    return b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(b), b) for b in bodies)


def asked(seq: int, command: Any, arguments: Any = None) -> dict[str, Any]:
    return {"seq": seq, "type": "request", "command": command, "arguments": arguments}


def test_bytes_that_are_no_messages() -> None:
    good = framed(asked(7, "initialize"))

    def check(data: bytes, why: str, goes_on: bool) -> None:
        first, *rest = talk(data + good)
        assert first["success"] is False and why in first["message"]
        assert bool(rest) == goes_on

    each(check, [
        (framed(b"{nonsense"), "as JSON", True), (framed(b"[1]"), "JSON object, got list", True),
        (b"Content-Length: x\r\n\r\n", "without a length", True), (b"Other: 1\r\n\r\n", "without Content-Length", True),
        (b"Content-Length: 99999999999\r\n\r\n", "at most", False), (framed(b"\xff\xfe"), "as JSON", True),
        (framed(b"[" * 100000), "as JSON", True), (framed(asked(1, "frobnicate")), "unknown request", True),
        (framed(asked(1, 3)), "a number and a command", True), (framed(asked(1, "threads", [1])), "expected an object", True),
        (framed(asked(1, "setBreakpoints", {"source": {"path": "x"}, "breakpoints": [3]})), "with a line", True),
        (b"x" * 20000 + b"\r\n", "headers of more", False),
    ])  # fmt: skip
    assert talk(b"Content-Length: 10\r\n\r\n{}")[0]["message"].startswith("the stream ended within a message")
    assert talk(b"Content-Len")[0]["message"] == "the stream ended within headers"
    assert talk(b"") == []


_NAMES = st.sampled_from(
    ["initialize", "launch", "configurationDone", "setBreakpoints", "setDataBreakpoints", "setFunctionBreakpoints",
     "setExceptionBreakpoints", "dataBreakpointInfo", "threads", "stackTrace", "scopes", "variables", "evaluate", "next",
     "stepIn", "stepOut", "stepBack", "continue", "reverseContinue", "pause", "exceptionInfo", "readMemory", "source",
     "completions", "breakpointLocations", "restart", "cancel", "attach", "frobnicate"]
)  # fmt: skip
_KEYS = st.sampled_from(
    ["threadId", "frameId", "variablesReference", "expression", "source", "breakpoints", "lines", "name", "context",
     "memoryReference", "offset", "count", "start", "filters", "text", "column", "line", "endLine", "granularity",
     "stopOnEntry", "startFrame", "levels", "format"]
)  # fmt: skip
_SIMPLE = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 40), st.floats(allow_nan=False), st.sampled_from(["%t", "%t[0, 1]", "info flags", "", "<text>", "vec:0"]),
    st.text(max_size=8),
)  # fmt: skip
_VALUES = st.recursive(
    _SIMPLE, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["path", "line", "dataId", "name", "condition", "hitCondition"]), inner, max_size=3)), max_leaves=6
)  # fmt: skip
_REQUESTS = st.lists(st.tuples(_NAMES, st.dictionaries(_KEYS, _VALUES, max_size=4)), max_size=10)


@examples(80)
@given(requests=_REQUESTS, begun=st.booleans())
def test_any_requests_are_answered(requests: list[Any], begun: bool) -> None:
    first = (
        [("initialize", {}), ("launch", {"stopOnEntry": True}), ("configurationDone", {})] if begun else []
    )
    messages = [asked(n + 1, name, arguments) for n, (name, arguments) in enumerate([*first, *requests])]
    before = threading.active_count()
    found = [m for m in talk(framed(*messages)) if m["type"] == "response"]
    assert [m["request_seq"] for m in found] == [m["seq"] for m in messages]
    assert not [m for m in found if "internal error" in m.get("message", "")]
    assert threading.active_count() <= before + 1  # the reader may not have seen the end yet


@examples(100)
@given(st.binary(max_size=200))
def test_any_bytes_are_answered(data: bytes) -> None:
    talk(data)
    stream = io.BytesIO(data)
    while (found := read(stream)) is not None:
        if isinstance(found, Bad) and found.last:
            break


def test_a_client_that_is_gone() -> None:
    class Gone(io.BytesIO):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

    sender = Sender(Gone())
    sender.event("output", output="x")
    sender.event("output", output="x")
    assert sender.gone and LARGEST > 1 << 20
