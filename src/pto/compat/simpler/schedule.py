"""Functions for test suites about devices and processes: there is one process, and any number of devices."""

from __future__ import annotations

from .refused import refuse


def device_range_to_list(text: str) -> list[int]:
    """Parse `0`, `0-7`, `0,2,5` or `0,2-4` as numbers."""
    found: set[int] = set()
    for part in str(text).split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise ValueError(f"expected numbers and ranges of devices, such as 0,2-4, got '{text}'")
        found.update(range(int(first), int(last or first) + 1))
    return sorted(found)


def format_device_range(devices: list[int]) -> str:
    return ",".join(map(str, devices))


def default_max_parallel(platform: str, devices: list[int]) -> int:
    return 1


def run_jobs(*_: object, **__: object) -> object:
    raise refuse("cannot run tests in several processes", "run them in this process: --max-parallel 1")


# sanitizers of compilers, which are not supported


def resolve(selection: str) -> list[str]:
    if selection in ("", "none"):
        return []
    raise refuse(
        f"--sanitizer {selection}: cannot build kernels with sanitizers of the compiler",
        "use pto python --sanitize all to check kernels and tasks",
    )


def validate(tokens: list[str]) -> None:
    pass


def preload_lib(tokens: list[str]) -> str:
    return ""


def is_runtime_loaded(library: str) -> bool:
    return True


def preload_command(tokens: list[str], platform: str = "") -> str:
    return ""
