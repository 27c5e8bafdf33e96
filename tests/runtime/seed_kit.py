"""What the tests of the runtime's description share: small kernels, runs that fail, and native checks."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.runtime import Run, kernel, run

from .header_build import COMPILER, made_once, run_compiler

NATIVE = Path(__file__).parents[2] / "native"

# The names of parameters do not matter: what a kernel does to its tensors decides.
touch = kernel(lambda x: None, "inout", name="touch")
read = kernel(lambda x: None, "in", name="read")
write = kernel(lambda x: None, "out", name="write")
copy = kernel(lambda x, y: np.copyto(y, x), "in out", name="copy")
bump = kernel(lambda x: np.add(x, 1, out=x), "inout", name="bump")
touch_aic = kernel(lambda x: None, "inout", core="aic", name="touch_aic")

Orchestrate = Callable[..., Any]


def vector(n: int = 16) -> Any:
    return np.zeros(n, np.float32)


def fails(orchestrate: Orchestrate, *args: Any, code: str = "PTO-E2620", **options: Any) -> str:
    """Run what cannot end well; the text of the diagnostic."""
    with pytest.raises(DiagnosticError) as caught:
        run(orchestrate, *args, **{"block_dim": 3, "threads": 2, **options})
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code, diagnostic.message
    return diagnostic.message


def quiet(orchestrate: Orchestrate, *args: Any, **options: Any) -> tuple[Run, list[tuple[int, str]]]:
    """A run and what it logged."""
    lines: list[tuple[int, str]] = []
    options = {"block_dim": 3, "threads": 2, **options}
    done = run(orchestrate, *args, log=lambda level, text: lines.append((level, text)), **options)
    return done, lines


def edges(done: Run) -> set[tuple[int, int]]:
    """(producer, consumer) of a recorded run."""
    return {(int(e["pred"]), int(e["succ"])) for e in done.records.edges}


@cache
def native_checks() -> Path:
    """The program of native/tests/test_runtime*.cpp, compiled with the engine in one go, once per content."""
    assert COMPILER is not None
    engine = [*sorted(NATIVE.glob("runtime/exec/*.cpp"))]
    engine += [p for p in sorted(NATIVE.glob("runtime/tmr/*.cpp")) if p.name != "orchestration.cpp"]
    tests = sorted(NATIVE.glob("tests/test_runtime*.cpp"))
    unit = "".join(f'#include "{p}"\n' for p in [*engine, *tests])
    includes = [f"-I{NATIVE / p}" for p in ("runtime", "include", "include/pto2/tensormap_and_ringbuffer")]
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", *includes]
    state = hashlib.sha256("\0".join((unit, COMPILER, *flags)).encode())
    for folder in ("runtime", "include", "tests"):
        for path in sorted(p for p in (NATIVE / folder).rglob("*") if p.suffix in (".cpp", ".hpp", ".h")):
            state.update(path.read_bytes())

    def make(part: Path) -> None:
        with tempfile.TemporaryDirectory() as work:
            source = Path(work, "all.cpp")
            source.write_text(unit)
            run_compiler([str(COMPILER), *flags, str(source), "-o", str(part), "-lpthread", "-ldl"])

    return made_once("runtime", state.hexdigest(), "checks", make)
