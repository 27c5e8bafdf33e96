"""A process that runs a program of somebody else's: what is told on the way and at its end.

Notices and findings go to stderr, each once. `PTO_REPORT_FILE` names a file that gets every event as a line
of JSON; `pto python --report` reads it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ... import knobs
from ...diag import Diagnostic, render, visible
from ...engine import journal


class Session:
    """Listens to what happens to programs."""

    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []
        #: The same, as they were told.
        self.texts: list[str] = []
        self._said: set[str] = set()
        self._file = knobs.get("PTO_REPORT_FILE")

    def __call__(self, event: journal.Event) -> None:
        if event.what == "device":
            self._say(f"pto: {visible(event.program)} is a device; it is simulated here")
        for d in event.diagnostics:
            self._found(event.program, d)
        if self._file:
            self._write(event)

    def _found(self, program: str, d: Diagnostic) -> None:
        text = render([d])
        if d.span is None:
            text = f"{visible(program)}: {text}"
        if text not in self._said:
            self.findings.append(d)
            self.texts.append(text)
        self._say(text)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            print(text, file=sys.stderr, flush=True)

    def _write(self, event: journal.Event) -> None:
        line: dict[str, Any] = {"what": event.what, "program": event.program}
        if event.diagnostics:
            line["findings"] = [
                {"code": d.code, "severity": d.severity, "text": render([d])} for d in event.diagnostics
            ]
        with open(self._file, "a", encoding="utf-8") as f:
            f.write(json.dumps(line) + "\n")


#: Who listens in this process.
listening: list[Session] = []


def begin() -> Session:
    """Listen, in this process, from now on."""
    session = Session()
    listening.append(session)
    journal.listen(session)
    return session
