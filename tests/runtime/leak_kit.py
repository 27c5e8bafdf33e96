"""Resources of a process: threads, memory, mappings, open files, children."""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sampling import EVERY

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


#: What many calls may add: pages that an allocator had given back and takes again, an arena for a thread.
_ALLOWED = {"Threads": 0, "files": 0, "children": 0, "maps": 20, "VmSize": 128 * 1024, "VmRSS": 4096}


def assert_steady(once: Callable[[int], object], warm: int, repeats: int) -> None:
    """Check that after some calls, in which caches fill up, many more leave nothing behind; `make test` makes
    a third of them. The number of concurrent allocations varies, and so does the memory kept by the
    allocator: only growth every time is a leak."""
    if not EVERY:
        warm, repeats = -(-warm // 3), max(min(repeats, 4), repeats // 3)
    for n in range(warm):
        once(n)
    grown: list[dict[str, int]] = []
    for _ in range(5):
        before = used()
        for n in range(repeats):
            once(n)
        after = used()
        limit = time.monotonic() + 60  # the system lists a thread a moment longer than it is there
        while after["Threads"] > before["Threads"] and time.monotonic() < limit:
            time.sleep(0.01)
            after = used()
        grown.append({k: after[k] - before[k] for k in _ALLOWED if after[k] - before[k] > _ALLOWED[k]})
        if not grown[-1]:
            return
    raise AssertionError(f"grows every time, memory in KiB: {grown}")
