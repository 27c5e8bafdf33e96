"""Commands from a terminal, a list or a file, and the output of the debugger."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable
from typing import TextIO

from ...diag import visible
from .commands import CommandInterpreter
from .session import DebugSession

PROMPT = "(pto) "


class Prompt:
    """A session by commands. Commands of a list are echoed. After the list, a terminal gives more; without a
    terminal the launch continues to its end, stop after stop."""

    def __init__(
        self,
        session: DebugSession,
        commands: Iterable[str] = (),
        interactive: bool = False,
        out: TextIO | None = None,
    ) -> None:
        self._session = session
        self._commands = commands
        self._interactive = interactive
        self._out: TextIO = out or sys.stdout
        self._interpreter = CommandInterpreter(session, self._write)

    def _write(self, text: str) -> None:
        self._out.write(visible(text, layout=True) + "\n")
        self._out.flush()

    def run(self, entry: bool = False) -> bool:
        """Begin the launch, and go on until the user leaves; return True if it reached its end."""
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
        """Run commands of a terminal to the end of its input. Ctrl-C interrupts a running launch."""
        self._complete()
        session, usual = self._session, signal.getsignal(signal.SIGINT)

        def interrupted(number: int, frame: object) -> None:
            if not session.running:
                raise KeyboardInterrupt
            session.pause()

        signal.signal(signal.SIGINT, interrupted)
        try:
            self._answer()
        finally:
            signal.signal(signal.SIGINT, usual)

    def _answer(self) -> None:
        while True:
            try:
                text = self._line()
                if text is None:
                    self._write("")
                    return
                if not self._interpreter.run(text, repeat=True):
                    return
            except KeyboardInterrupt:
                self._write("")

    @staticmethod
    def _line() -> str | None:
        try:
            return input(PROMPT)
        except EOFError:
            return None

    def _complete(self) -> None:
        """Enable completion with the tab key, if the library for it is available."""
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
