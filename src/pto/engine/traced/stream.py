"""The records of the cores of a traced kernel, read while the kernel runs (pto/core/trace.hpp).

The kernel runs on a separate thread, on copies of its arguments, and decides control flow. It waits when it
is far ahead, unless the reader waits for another core. So an endless kernel needs no more memory than other
kernels.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

from ..compiled.library import LaunchOutcome, Tracer

#: The number of unread words at which the kernel waits, unless the reader waits for more.
MOST_UNREAD = 1 << 20

#: rank, block, kind (0 both, 1 cube, 2 vector), sub-block
Key = tuple[int, int, int, int]

_TOLD = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p,
    ctypes.c_uint64,
)  # fmt: skip


class Feed:
    """The records of one core, in order."""

    __slots__ = ("at", "ended", "parts", "stream", "words")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.parts: deque[list[int]] = deque()
        self.ended = False
        self.words: list[int] = []
        self.at = 0

    def ready(self) -> bool:
        """Wait for a record at `words[at]`; return False if there will be none."""
        return self.at < len(self.words) or self.stream.wait_for(self)

    def taken(self) -> None:
        """Go on to the next record."""
        self.at += self.words[self.at]


class CoreRecords:
    """The complete records of one core."""

    __slots__ = ("at", "words")

    def __init__(self, words: list[int]) -> None:
        self.words = words
        self.at = 0

    def ready(self) -> bool:
        return self.at < len(self.words)

    def taken(self) -> None:
        self.at += self.words[self.at]


class Stream:
    """All records of a launch."""

    def __init__(self, call: Callable[[int], LaunchOutcome]) -> None:
        """`call` launches the kernel with the address of a `Tracer`."""
        self._call = call
        self._feeds: dict[Key, Feed] = {}
        self._changed = Condition()
        self._unread = 0
        self._starving = False
        self._over = self._stopped = False
        self.outcome = LaunchOutcome(0, "")
        self.frames: tuple[int, ...] = ()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def feed(self, key: Key) -> Feed:
        with self._changed:
            return self._of(key)

    def _of(self, key: Key) -> Feed:
        found = self._feeds.get(key)
        if found is None:
            found = self._feeds[key] = Feed(self)
        return found

    # -- on the thread of the kernel -------------------------------------------------------------------

    def _run(self) -> None:
        tracer = Tracer()
        told = _TOLD(self._told)
        tracer.told = ctypes.cast(told, ctypes.c_void_p)
        try:
            self.outcome = self._call(ctypes.addressof(tracer))
        finally:
            self.frames = tuple(a for a in tracer.frames if a)
            with self._changed:
                self._over = True
                self._changed.notify_all()

    def _told(self, rank: int, block: int, core: int, over: int, words: int, count: int) -> int:
        part: list[int] = []
        if count:
            data = ctypes.string_at(words, 8 * count)
            part = memoryview(data).cast("Q").tolist()
        with self._changed:
            feed = self._of((rank, block, core & 0xFF, core >> 8))
            if part:
                feed.parts.append(part)
                self._unread += count
            feed.ended = feed.ended or bool(over)
            self._changed.notify_all()
            while self._unread > MOST_UNREAD and not self._starving and not self._stopped and not over:
                self._changed.wait()
            return self._stopped

    # -- on the thread of the reader -------------------------------------------------------------------

    def wait_for(self, feed: Feed) -> bool:
        with self._changed:
            self._unread -= len(feed.words)
            feed.words, feed.at = [], 0
            while not feed.parts:
                if feed.ended or self._over:
                    return False
                self._starving = True
                self._changed.notify_all()
                self._changed.wait()
            self._starving = False
            feed.words = feed.parts.popleft()
            self._changed.notify_all()
            return True

    def stop(self) -> None:
        """Stop reading: let the kernel end at its next record."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def end(self) -> LaunchOutcome:
        """Return the outcome of the launch, after its last record."""
        self._thread.join()
        return self.outcome
