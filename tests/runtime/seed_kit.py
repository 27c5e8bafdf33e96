"""Common parts of the tests of the runtime's description: small kernels, and runs that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.runtime import Run, kernel, run

# The names of parameters do not matter: the accesses of a kernel to its tensors do.
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
    """Return a run and its log."""
    lines: list[tuple[int, str]] = []
    options = {"block_dim": 3, "threads": 2, **options}
    done = run(orchestrate, *args, log=lambda level, text: lines.append((level, text)), **options)
    return done, lines


def edges(done: Run) -> set[tuple[int, int]]:
    """(producer, consumer) of a recorded run."""
    return {(int(e["pred"]), int(e["succ"])) for e in done.records.edges}
