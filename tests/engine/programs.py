"""Small programs around a body, and runs of them: common parts of the engine tests."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

import pto
from pto.engine.result import LaunchResult

Array = np.ndarray[Any, Any]


def program(body: str, arguments: str = "%out: !pto.ptr<i64>", attributes: str = "", arch: str = "a3") -> str:
    """A module with one kernel `@k`."""
    lines = "\n".join("  " + line.strip() for line in body.strip().splitlines())
    return (
        f'module attributes {{pto.target_arch = "{arch}"}} {{\nfunc.func @k({arguments}) {attributes} {{\n'
        f"{lines}\n  return\n}}\n}}\n"
    )


def run(text: str, *args: Any, **options: Any) -> LaunchResult:
    """Run a program; raises nothing, diagnostics are in the result."""
    options.setdefault("out", io.StringIO())
    return pto.kernel(pto.parse(text), options.pop("entry", None), engine="reference").run(*args, **options)


def numbers(body: str, count: int = 4, **options: Any) -> list[int]:
    """Return the numbers that a body stores to `%out` (64-bit integers, -1 without a store)."""
    out = np.full(count, -1, np.int64)
    result = run(program(body), out, **options)
    assert result.ok, result.diagnostics
    return out.tolist()


def codes(result: LaunchResult) -> list[str]:
    return [d.code for d in result.diagnostics]


#: Constants most bodies need.
CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 5, 10))
