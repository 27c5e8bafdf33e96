"""A client of the Debug Adapter Protocol, for tests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any, BinaryIO, cast

from pto.engine.debug.wire import Bad, read

ROOT = Path(__file__).parents[2]


class Client:
    """Starts a debugger, sends requests, and keeps its events."""

    def __init__(self, tool_folder: Path, cwd: Path = ROOT) -> None:
        self.process = subprocess.Popen(
            [str(tool_folder / "pto"), "debug", "--dap"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, "NO_COLOR": "1"},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._connect(cast("BinaryIO", self.process.stdin), cast("BinaryIO", self.process.stdout))

    def _connect(self, target: BinaryIO, source: BinaryIO) -> None:
        self._target, self._source = target, source
        self.events: list[dict[str, Any]] = []
        self.seq = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self._target.close()
        self.process.wait(120)
        self._source.close()

    def write(self, data: bytes) -> None:
        self._target.write(data)
        self._target.flush()

    def send(self, command: str, arguments: Any = None) -> int:
        self.seq += 1
        message = {"seq": self.seq, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self.seq

    def receive(self) -> dict[str, Any]:
        found = read(self._source)
        assert isinstance(found, dict), found if isinstance(found, Bad) else "the stream ended"
        return found

    def answer(self, seq: int) -> dict[str, Any]:
        while True:
            found = self.receive()
            if found["type"] == "response" and found["request_seq"] == seq:
                return found
            self.events.append(found)

    def ask(self, command: str, **arguments: Any) -> Any:
        """The body of the answer to a request that succeeds."""
        found = self.answer(self.send(command, arguments))
        assert found["success"], found
        return found["body"]

    def refused(self, command: str, arguments: Any = None) -> str:
        """Why a request fails."""
        found = self.answer(self.send(command, arguments))
        assert not found["success"], found
        return found["message"]

    def event(self, name: str) -> dict[str, Any]:
        """The body of the next event of a name; those before it are gone."""
        while True:
            while self.events:
                found = self.events.pop(0)
                if found.get("event") == name:
                    return found.get("body", {})
            self.events.append(self.receive())

    # -- what tests do again and again -----------------------------------------------------------------

    def begin(self, breaks: dict[str, list[Any]], **launch: Any) -> None:
        """Launch with breakpoints: lines, or objects."""
        self.ask("initialize", adapterID="pto", linesStartAt1=True, pathFormat="path")
        self.ask("launch", **launch)
        self.event("initialized")
        for path, wanted in breaks.items():
            lines = [w if isinstance(w, dict) else {"line": w} for w in wanted]
            found = self.ask("setBreakpoints", source={"path": path}, breakpoints=lines)["breakpoints"]
            assert all(b["verified"] for b in found), found
        self.ask("setExceptionBreakpoints", filters=["findings"])
        self.ask("configurationDone")

    def stopped(self) -> dict[str, Any]:
        return self.event("stopped")

    def top(self, thread: int = 0) -> dict[str, Any]:
        """The innermost frame."""
        return self.ask("stackTrace", threadId=thread or None)["stackFrames"][0]

    def value(self, expression: str) -> str:
        return self.ask("evaluate", expression=expression)["result"]

    def scopes(self) -> dict[str, list[dict[str, Any]]]:
        frame = self.top()["id"]
        return {
            s["name"]: self.ask("variables", variablesReference=s["variablesReference"])["variables"]
            for s in self.ask("scopes", frameId=frame)["scopes"]
        }


class PortClient(Client):
    """Asks a debugger that listens on a port."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._connect(self._socket.makefile("wb"), self._socket.makefile("rb"))

    def __exit__(self, *error: object) -> None:
        self._target.close()
        self._source.close()
        self._socket.close()

    def end(self) -> None:
        """Say that nothing more comes."""
        self._socket.shutdown(socket.SHUT_WR)

    @property
    def is_over(self) -> bool:
        """Return True if the debugger has hung up; its messages before that are skipped."""
        while isinstance(found := read(self._source), dict):
            self.events.append(found)
        return found is None
