"""Commands from a terminal, from a list, from a file: what was typed, and what the debugger says."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from .commands import Interpreter
from .session import Session
from .stop import END

PROMPT = "(pto) "


class Prompt:
    """A session by commands. Those of a list are shown before what they say; behind the last one a terminal
    is asked for more, and without a terminal the launch goes on to its end, stop after stop."""

    def __init__(
        self,
        session: Session,
        commands: Iterable[str] = (),
        interactive: bool = False,
        out: TextIO | None = None,
    ) -> None:
        self._session = session
        self._commands = commands
        self._interactive = interactive
        self._out: Any = out or sys.stdout
        self._interpreter = Interpreter(session, self._write)

    def _write(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()

    def run(self, entry: bool = False) -> bool:
        """Begin the launch, and go on as long as somebody wants; whether it got to its end."""
        session = self._session
        with session:
            self._interpreter.show(session.start(entry))
            for text in self._commands:
                self._write(PROMPT + text.rstrip("\n"))
                if not self._interpreter.run(text):
                    return self._left()
            if self._interactive:
                self._ask()
                return self._left()
            while session.stop is not None and not session.stop.over:
                self._interpreter.show(session.go(session.order("continue")))
            return self._left()

    def _left(self) -> bool:
        stop = self._session.stop
        return stop is not None and stop.over

    def _ask(self) -> None:
        """Commands of a terminal, to the end of its input."""
        self._complete()
        while True:
            try:
                text = input(PROMPT)
            except EOFError:
                self._write("")
                return
            except KeyboardInterrupt:
                self._write("")
                continue
            if not self._interpreter.run(text, repeat=True):
                return
            stop = self._session.stop
            if stop is not None and stop.reason == END and not text.strip():
                return

    def _complete(self) -> None:
        """Completion with the tab key, where the terminal's library is there."""
        try:
            import readline
        except ImportError:
            return
        found: list[str] = []

        def complete(text: str, state: int) -> str | None:
            if state == 0:
                found[:] = self._interpreter.completions(text)
            return found[state] if state < len(found) else None

        readline.set_completer(complete)
        readline.set_completer_delims("")
        readline.parse_and_bind("tab: complete")
