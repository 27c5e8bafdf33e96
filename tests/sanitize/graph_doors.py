"""Graphs of C++ kernels with a planted fault, by every way to run them: changes of examples/runtime/vector_dag."""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from pto import knobs, runtime
from pto.cli.main import main
from pto.diag import Diagnostic, DiagnosticError

from .doors import ROOT, Corpus, Door, Found, scripted
from .kernel_doors import printed


class Fault(NamedTuple):
    """A change of a file of vector_dag, and the report that follows: code, file, text of the line."""

    file: str
    old: str
    new: str
    found: tuple[str, str, str]


_KERNELS = "kernels/aiv"
FAULTS = {
    "outside": Fault("rows.h", "tensor_at<float>(slot),", "tensor_at<float>(slot) + 64,",
                     ("PTO-E2101", "rows.h", "TLOAD(x, gx);")),
    "race": Fault("mul.cpp", "TMUL(z, x, y);", "\n    TMUL(z, x, y);\n    TADD(z, z, x);",
                  ("PTO-E2201", "mul.cpp", "TADD(z, z, x); });")),
    "undefined": Fault("rows.h", "  TLOAD(y, gy);", "", ("PTO-E2203", "rows.h", "TSTORE(gz, z);")),
    "nan": Fault("mul.cpp", "TMUL(z, x, y);", "\n    TSUB(z, x, x);\n    pipe_barrier(PIPE_V);\n    TDIV(z, z, z);",
                 ("PTO-E2302", "mul.cpp", "TDIV(z, z, z); });")),
    "never_stored": Fault("add_scalar.cpp", "  TSTORE(gz, z);", "", ("PTO-E2203", "rows.h", "TSTORE(gz, z);")),
}  # fmt: skip


def written(root: str, fault: Fault) -> Path:
    """A copy of the example with the fault."""
    for name in ("common", "vector_dag"):
        shutil.copytree(ROOT / "examples/runtime" / name, Path(root, name))
    path = Path(root, "vector_dag", _KERNELS, fault.file)
    text = path.read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    return Path(root, "vector_dag")


def at(code: str, file: str, line: int) -> tuple[str, str, str]:
    return code, Path(file).name, Path(file).read_text(encoding="utf-8").splitlines()[line - 1].strip()


def by_command(name: str, *more: str, environment: bool = False) -> Found:
    """`pto runtime run`; `more` are folders of other runtimes."""
    with TemporaryDirectory() as root, printed() as err, knobs.override(PTO_SANITIZE="all" * environment):
        folder = str(written(root, FAULTS[name]))
        words = [word for kernels in more for word in ("-k", f"{folder}/{kernels}")]
        words += ["--case", "Small", "--diagnostics", "json", *([] if environment else ["--sanitize", "all"])]
        assert main(["runtime", "run", folder, *words]) == 1
        found = json.loads(err.getvalue())
        return {at(d["code"], d["file"], d["line"]) for d in found if d["code"] != "PTO-E2606"}


def run(folder: Path, f: Any = None, **options: Any) -> Any:
    """The same tasks, from Python; `f` becomes their result."""
    kernels = folder / _KERNELS
    add, mul = (runtime.kernel(kernels / f"{name}.cpp", "in in out scalar") for name in ("add", "mul"))
    add_scalar = runtime.kernel(kernels / "add_scalar.cpp", "in float out scalar")
    n = 5 * 128
    values = np.random.default_rng(5).uniform(-2, 2, (2, n)).astype(np.float32)
    a, b = (row.copy() for row in values)  # of one array, the first byte behind a would be one of b

    def orchestrate(rt: Any, a: Any, b: Any, f: Any) -> None:
        submit = rt.add_task if "runtime" in options else rt.submit
        sums, one, two, product = (rt.tensor(n) for _ in range(4))
        tasks = [
            submit(add, a, b, sums, n),
            submit(add_scalar, sums, 1.0, one, n),
            submit(add_scalar, sums, 2.0, two, n),
            submit(mul, one, two, product, n),
            submit(add, product, sums, f, n),
        ]
        if "runtime" in options:
            for earlier, later in ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4)):
                rt.add_successor(tasks[earlier], tasks[later])
            for task in tasks:
                rt.publish_task(task)

    return runtime.run(orchestrate, a, b, np.zeros(n, np.float32) if f is None else f, **options)


def found(folder: Path, **options: Any) -> list[Diagnostic]:
    try:
        done = run(folder, sanitize="all", **options)
        assert not done.unchecked
        return done.diagnostics
    except DiagnosticError as e:
        return e.diagnostics


def by_python(name: str, **options: Any) -> Found:
    with TemporaryDirectory() as root:
        reports = found(written(root, FAULTS[name]), **options)
        return {at(d.code, d.span.source.name, d.span.line) for d in reports if d.span is not None}


_SCRIPT = """
import sys
from pathlib import Path
from pto.diag import Diagnostic, DiagnosticError
from tests.sanitize.graph_doors import run
for name in sys.argv[1:]:
    print("==", Path(name).parent.name, file=sys.stderr, flush=True)
    try:
        run(Path(name))
    except DiagnosticError as e:
        print(e, file=sys.stderr)
"""


def by_script(names: Any, environment: bool = False) -> dict[str, Found]:
    report = re.compile(r"^(\S+?):(\d+):\d+: error\[(PTO-E\d+)\]", re.MULTILINE)
    with TemporaryDirectory() as root:
        folders = [str(written(f"{root}/{name}", FAULTS[name])) for name in names]
        texts = scripted(_SCRIPT, *folders, environment=environment)
        return {
            name: {at(code, str(ROOT / file), int(line)) for file, line, code in report.findall(text)}
            for name, text in texts.items()
        }


_ONE_KERNEL = "runs one kernel"
GRAPHS = Corpus("graphs of C++ kernels", list(FAULTS), lambda name: {FAULTS[name].found}, {
    ".run": _ONE_KERNEL,
    "PTO_SANITIZE": Door(partial(by_script, environment=True), share=8, at_once=True),
    "pto python": Door(by_script, share=8, at_once=True),
    "pto run": _ONE_KERNEL,
    "pto debug": _ONE_KERNEL,
    "runtime.run": Door(by_python, share=8),
    "host_build_graph": Door(partial(by_python, runtime="host_build_graph"), share=8),
    "aicpu_build_graph": Door(partial(by_python, runtime="aicpu_build_graph"), share=8),
    "Compiled.load": "loads programs of the Python language",
    "pto runtime run": Door(by_command, share=8),
    "pto ranks": "starts C++ with a main; a graph has none",
})  # fmt: skip
