"""Work, counted: a bound for functions that does not depend on other processes and slow machines."""

from __future__ import annotations

import gc
import mmap
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def calls(function: Callable[..., object], *args: Any) -> int:
    """Count the functions, of Python and of C, that one call of a function enters."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # what other tests have left is finalized by calls, too
    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


@contextmanager
def no_hang(seconds: float) -> Iterator[None]:
    """For what happens inside one call of C, a regular expression say: a limit, on the time that this process is
    given, that only what takes a hundred times as long as usual exceeds."""
    begin = time.process_time()
    yield
    took = time.process_time() - begin
    assert took < seconds, f"took {took:.1f} s"


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """Let allocations fail once the process has so many bytes more than now. `tracemalloc` takes ten times as long."""
    used = int(Path("/proc/self/statm").read_text().split()[5]) * mmap.PAGESIZE
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (used + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
