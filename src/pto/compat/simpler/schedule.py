"""What test suites ask about devices and processes: here there is one process, and any number of devices."""

from __future__ import annotations

from typing import Any

from .refused import refuse


def device_range_to_list(text: str) -> list[int]:
    """`0`, `0-7`, `0,2,5`, `0,2-4` as numbers."""
    found: set[int] = set()
    for part in str(text).split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise ValueError(f"'{text}' names no devices: expected numbers and ranges, such as 0,2-4")
        found.update(range(int(first), int(last or first) + 1))
    return sorted(found)


def format_device_range(devices: list[int]) -> str:
    return ",".join(map(str, devices))


def default_max_parallel(platform: str, devices: list[int]) -> int:
    return 1


def run_jobs(*_: Any, **__: Any) -> Any:
    raise refuse("tests are not spread over processes here", "run them in this one: --max-parallel 1")


# ---- sanitizers of compilers, which have nothing to instrument here ----


def resolve(selection: str) -> list[str]:
    if selection in ("", "none"):
        return []
    raise refuse(
        f"--sanitizer {selection}: kernels are not built with sanitizers of the compiler",
        "pto python --sanitize all checks what kernels and tasks do",
    )


def validate(tokens: list[str]) -> None:
    pass


def preload_lib(tokens: list[str]) -> str:
    return ""


def is_runtime_loaded(library: str) -> bool:
    return True


def preload_command(tokens: list[str], platform: str = "") -> str:
    return ""
