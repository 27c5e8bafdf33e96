"""Ctrl-C while C++ of the user's never returns and cannot be given up, as it waits in a library: Python would
see the signal only afterwards. After a few seconds in which nothing has ended, the process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import Any

_SECONDS = 3.0
_INTERRUPTED = 130


class EndOnInterrupt:
    """For `with`, on the main thread; elsewhere it does nothing."""

    def __init__(self, who: str, seconds: float = _SECONDS) -> None:
        self._who = who
        self._seconds = seconds
        self._ended = threading.Event()
        self._pipe: tuple[int, int] | None = None
        self._before = -1

    def __enter__(self) -> EndOnInterrupt:
        if threading.current_thread() is threading.main_thread():
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            self._pipe = reader, writer
            self._before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
            threading.Thread(target=self._wait, args=(reader,), daemon=True).start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        if self._pipe is not None:
            signal.set_wakeup_fd(self._before)
            os.close(self._pipe[1])  # the thread reads the end of the file, and closes its side

    def _wait(self, reader: int) -> None:
        with contextlib.suppress(OSError):
            while (numbers := os.read(reader, 16)) and signal.SIGINT not in numbers:
                pass
            if numbers and not self._ended.wait(self._seconds):
                text = f"{self._who}: interrupted; a kernel or the orchestration does not return\n"
                os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, text.encode())
                os._exit(_INTERRUPTED)
        os.close(reader)
