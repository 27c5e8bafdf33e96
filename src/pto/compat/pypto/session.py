"""Reports of a process that runs a user program.

Notices and findings go to stderr, each only once. `PTO_REPORT_FILE` names a file to which every event is
appended as a line of JSON; `pto python --report` reads it.
"""

from __future__ import annotations

import json
import sys
import time

from ... import knobs
from ...diag import Diagnostic, render, visible
from ...engine import journal


class ProgramListener:
    """Listener of the events of programs."""

    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []
        #: The same findings as printed text.
        self.texts: list[str] = []
        self._said: set[str] = set()
        self._file = knobs.get("PTO_REPORT_FILE")

    def __call__(self, event: journal.JournalEvent) -> None:
        if event.what == "device":
            self._say(f"pto: simulating device {visible(event.program)}")
        if event.what == "checked":
            self._say(f"pto: {visible(event.program)}: {visible(event.text)}")
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

    def _write(self, event: journal.JournalEvent) -> None:
        line: dict[str, object] = {"what": event.what, "program": event.program, "cpu": time.process_time()}
        if event.diagnostics:
            line["findings"] = [
                {"code": d.code, "severity": d.severity, "text": render([d])} for d in event.diagnostics
            ]
        with open(self._file, "a", encoding="utf-8") as f:
            f.write(json.dumps(line) + "\n")


#: Active listeners of this process.
listening: list[ProgramListener] = []


def begin() -> ProgramListener:
    """Add a listener for the rest of this process."""
    session = ProgramListener()
    listening.append(session)
    journal.listen(session)
    return session
