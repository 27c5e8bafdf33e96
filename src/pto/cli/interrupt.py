"""SIGINT and SIGTERM end a tool, also while the tool runs machine code that never returns.

Python handles a signal only between two of its own instructions: it raises KeyboardInterrupt, and the tool
cleans up while it ends. A thread reads the number of the signal at once (`signal.set_wakeup_fd`), and ends
the process if the main thread has not ended in time.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, NoReturn

#: Seconds for a tool to end by itself after a signal, and further seconds to clean up.
_SECONDS, _CLEANING = 0.5, 0.3


class EndOnSignal:
    """Context manager around a tool that is the whole process. The main thread must enter it."""

    interrupts = True  # see `signals.interrupts`

    def __init__(self, tool: str, status: int) -> None:
        self.tool, self.status = tool, status
        self.seconds = _SECONDS
        self.numbers: tuple[int, ...] = signal.SIGINT, signal.SIGTERM
        self.signalled = False
        self._over = threading.Event()
        self._cleaning = threading.Lock()  # acquired once, by the thread that cleans up
        self._writer = -1

    def __enter__(self) -> EndOnSignal:
        global _active
        _active = self
        for number, usual in _USUAL.items():
            if signal.getsignal(number) is usual:
                signal.signal(number, self)
        os.register_at_fork(after_in_child=_forget)
        sys.unraisablehook = self._unraisable
        reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()
        return self

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal on the main thread. C code that imports would convert this exception to another
        one."""
        while frame is not None and not self._over.is_set():
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                self.leave()
            frame = frame.f_back
        if not self._over.is_set():
            raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        self._over.set()
        _forget()
        os.close(self._writer)  # the thread reads the end of the file, and closes its end

    def leave(self, where: str = "") -> NoReturn:
        """Clean up after KeyboardInterrupt, and end the process without waiting for its other threads."""
        for number in self.numbers:
            signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        self._clean(f"interrupted {where}".rstrip())
        os._exit(self.status)

    def _watch(self, reader: int) -> None:
        while numbers := os.read(reader, 16):
            if any(signal.getsignal(n) is self for n in numbers):
                self.signalled = True
                if self._over.wait(self.seconds):
                    break
                line = "interrupted; the running code does not return"
                cleaner = threading.Thread(target=self._clean, args=(line,), daemon=True)
                cleaner.start()
                cleaner.join(_CLEANING)
                os._exit(self.status)
        os.close(reader)

    def _clean(self, line: str) -> None:
        if not self._cleaning.acquire(blocking=False):
            return
        if (compiler := sys.modules.get("pto.engine.cpp.compiler")) is not None:
            compiler.end_tools()
        with contextlib.suppress(OSError):
            os.write(2, f"{self.tool}: {line}\n".encode())
        atexit._run_exitfuncs()  # these functions remove temporary folders

    def _unraisable(self, problem: Any) -> None:
        """Suppress the traceback of a KeyboardInterrupt in a callback from C: the thread ends the tool."""
        if problem.exc_type is not KeyboardInterrupt or signal.SIGINT not in self.numbers:
            sys.__unraisablehook__(problem)


def allow(seconds: float, *numbers: int) -> None:
    """Set the seconds in which the tool must end by itself, and handle only these signals."""
    if _active is not None:
        for number in _active.numbers:
            if number not in numbers and signal.getsignal(number) is _active:
                signal.signal(number, _USUAL[number])
        _active.seconds, _active.numbers = seconds, numbers


#: Python's default handlers of signals.
_USUAL: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
_active: EndOnSignal | None = None


def _forget() -> None:
    """Restore the default handlers of signals, because the tool is over or this process was forked from
    it."""
    global _active
    if _active is not None:
        signal.set_wakeup_fd(-1)
        for number, usual in _USUAL.items():
            if signal.getsignal(number) is _active:
                signal.signal(number, usual)
        _active = None
