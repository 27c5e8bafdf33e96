"""What a process holds: threads, memory, mappings, open files, children."""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


def used() -> dict[str, int]:
    """Threads, memory in KiB, mappings, open files and children of this process."""
    gc.collect()
    text = Path("/proc/self/status").read_text()
    found = {
        name: int(line[1])
        for name in ("Threads", "VmRSS", "VmSize")
        if (line := re.search(rf"{name}:\s+(\d+)", text))
    }
    found["maps"] = len(Path("/proc/self/maps").read_text().splitlines())
    found["files"] = len(os.listdir("/proc/self/fd"))
    found["children"] = len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
    return found


def assert_steady(once: Callable[[int], object], warm: int, repeats: int) -> None:
    """After some calls, in which caches fill up, many more leave nothing behind. Pages that an allocator had
    given back may be touched again: only what grows every time is lost."""
    for n in range(warm):
        once(n)
    grown: list[int] = []
    for _ in range(3):
        before = used()
        for n in range(repeats):
            once(n)
        after = used()
        deadline = time.monotonic() + 5  # the system lists a thread a moment longer than it is there
        while after["Threads"] > before["Threads"] and time.monotonic() < deadline:
            time.sleep(0.01)
            after = used()
        for name in ("Threads", "files", "children"):
            assert after[name] <= before[name], (name, before, after)
        assert after["VmSize"] - before["VmSize"] < 128 * 1024, (before, after)
        assert after["maps"] - before["maps"] < 20, (before, after)
        grown.append(after["VmRSS"] - before["VmRSS"])
        if grown[-1] < 4096:
            return
    raise AssertionError(f"resident memory grows every time, by {grown} KiB")
