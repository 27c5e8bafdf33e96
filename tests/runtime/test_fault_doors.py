"""A fault planted in a graph of C++ kernels is found by every way to run it, at the same line."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.each import each
from tests.sampling import some

from pto import knobs, runtime
from pto.cli.main import main
from pto.diag import DiagnosticError
from pto.engine import journal

EXAMPLES = Path(__file__).parents[2] / "examples" / "runtime"
pytestmark = pytest.mark.usefixtures("quick")

Place = tuple[str, str, str]  # code, file, text of the line


class Fault(NamedTuple):
    """A change of a file of vector_dag or common, and the reports that follow."""

    file: str
    old: str
    new: str
    found: tuple[Place, ...]


KERNELS = "vector_dag/kernels/aiv"
FAULTS = {
    "race": Fault(f"{KERNELS}/mul.cpp", "TMUL(z, x, y);", "\n    TMUL(z, x, y);\n    TADD(z, z, x);",
                  (("PTO-E2201", "mul.cpp", "TADD(z, z, x); });"),)),
    "outside": Fault(f"{KERNELS}/rows.h", "tensor_at<float>(slot),", "tensor_at<float>(slot) + 64,",
                     (("PTO-E2101", "rows.h", "TLOAD(x, gx);"),)),
    "undefined": Fault(f"{KERNELS}/rows.h", "  TLOAD(y, gy);", "", (("PTO-E2203", "rows.h", "TSTORE(gz, z);"),)),
    "nan": Fault(f"{KERNELS}/mul.cpp", "TMUL(z, x, y);", "\n    TSUB(z, x, x);\n    pipe_barrier(PIPE_V);\n    TDIV(z, z, z);",
                 (("PTO-E2302", "mul.cpp", "TDIV(z, z, z); });"),)),
    "never_stored": Fault(f"{KERNELS}/add_scalar.cpp", "  TSTORE(gz, z);", "",
                          (("PTO-E2203", "rows.h", "TLOAD(x, gx);"),)),
}  # fmt: skip


def folder(root: Path, fault: Fault) -> Path:
    for name in ("common", "vector_dag"):
        shutil.copytree(EXAMPLES / name, root / name)
    path = root / fault.file
    text = path.read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    return root / "vector_dag"


def place(code: str, file: str, line: int) -> Place:
    return code, Path(file).name, Path(file).read_text(encoding="utf-8").splitlines()[line - 1].strip()


def by_command(at: Path, *more: str, sanitize: bool = True) -> set[Place]:
    err = io.StringIO()
    words = ["runtime", "run", str(at), *more, "--case", "Small", "--diagnostics", "json"]
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        assert main([*words, *(["--sanitize", "all"] if sanitize else [])]) == 1
    found = json.loads(err.getvalue())
    return {place(d["code"], d["file"], d["line"]) for d in found if d["code"] != "PTO-E2606"}


def by_environment(at: Path) -> set[Place]:
    with knobs.override(PTO_SANITIZE="all"):
        return by_command(at, sanitize=False)


def by_python(at: Path, graph: bool = False, environment: bool = False) -> set[Place]:
    """The same tasks, from Python."""
    kernels = at / "kernels" / "aiv"
    add, mul = (runtime.kernel(kernels / f"{name}.cpp", "in in out scalar") for name in ("add", "mul"))
    add_scalar = runtime.kernel(kernels / "add_scalar.cpp", "in float out scalar")
    n = 5 * 128
    values = np.random.default_rng(5).uniform(-2, 2, (2, n)).astype(np.float32)
    a, b = (row.copy() for row in values)  # of one array, the first byte behind a would be one of b

    def orchestrate(rt: Any, a: Any, b: Any, f: Any) -> None:
        submit = rt.add_task if graph else rt.submit
        sums, one, two, product = (rt.tensor(n) for _ in range(4))
        tasks = [
            submit(add, a, b, sums, n),
            submit(add_scalar, sums, 1.0, one, n),
            submit(add_scalar, sums, 2.0, two, n),
            submit(mul, one, two, product, n),
            submit(add, product, sums, f, n),
        ]
        if graph:
            for earlier, later in ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4)):
                rt.add_successor(tasks[earlier], tasks[later])

    found: list[Any] = []
    name = "host_build_graph" if graph else "tensormap_and_ringbuffer"
    with (
        knobs.override(PTO_SANITIZE="all" if environment else ""),
        journal.listening(lambda event: found.extend(event.diagnostics)),
    ):
        try:
            options: Any = {} if environment else {"sanitize": "all"}
            run = runtime.run(orchestrate, a, b, np.zeros(n, np.float32), runtime=name, **options)
            assert not run.unchecked
            found += [] if environment else run.diagnostics
        except DiagnosticError as e:
            found += e.diagnostics
    return {place(d.code, d.span.source.name, d.span.line) for d in found}


DOORS: dict[str, Callable[[Path], set[Place]]] = {
    "pto runtime run": by_command,
    "host_build_graph": lambda at: by_command(at, "-k", str(at / "host_build_graph")),
    "aicpu_build_graph": lambda at: by_command(at, "-k", str(at / "aicpu_build_graph")),
    "PTO_SANITIZE": by_environment,
    "runtime.run": by_python,
    "runtime.run by PTO_SANITIZE": lambda at: by_python(at, environment=True),
    "runtime.run of a graph": lambda at: by_python(at, graph=True),
}


def test_the_fault_is_found(tmp_path: Path) -> None:
    def check(name: str) -> None:
        fault = FAULTS[name]
        at = folder(tmp_path / name, fault)
        for door, finds in DOORS.items():
            assert finds(at) == set(fault.found), door

    each(check, some(FAULTS, 8))
