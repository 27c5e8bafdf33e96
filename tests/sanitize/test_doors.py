"""A planted fault is found by every way to run its program, at the same lines. `doors` has the ways, and the reasons
where one cannot report a fault, or reports it elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pto
from pto import knobs, runtime
from pto.diag import DiagnosticError
from pto.engine.sanitize import summary

from .corpus import PROGRAMS, load
from .doors import Door, corpora, gaps, table

CORPORA = {corpus.name: corpus for corpus in corpora()}
OPEN = [(name, door) for name, c in CORPORA.items() for door, way in c.doors.items() if isinstance(way, Door)]


@pytest.mark.parametrize(("corpus", "door"), OPEN)
@pytest.mark.filterwarnings("ignore::pto.language.problems.LanguageWarning")
def test_the_fault_is_found(corpus: str, door: str) -> None:
    CORPORA[corpus].check(door)


def test_no_cell_is_without_a_reason() -> None:
    assert {name: gaps(c) for name, c in CORPORA.items()} == {name: [] for name in CORPORA}
    assert all(f"{name} (" in table() and len(set(c.faults)) == len(c.faults) for name, c in CORPORA.items())


def test_what_is_not_watched_is_said() -> None:
    """No door is silent about kernels that it does not check."""
    look = runtime.kernel(lambda *values: None, "inout", name="look")
    run = runtime.run(lambda rt: rt.submit(look, np.zeros(8, np.float32)), sanitize="race")
    assert (run.ok, run.checked, run.unchecked) == (True, {"race"}, {"look": "a Python function"})
    with knobs.override(PTO_SANITIZE="all"):
        options = {"virtual_time": True, "durations": {"look": 1}}
        run = runtime.run(lambda rt: rt.submit(look, np.zeros(8, np.float32)), **options)
    assert (run.checked, run.unchecked) == (set(), {"every kernel": "virtual time"})
    bad = load("fifo_full.bad")
    words = " ".join("inout" if isinstance(v, np.ndarray) else "scalar" for v in bad.values())
    mixed = runtime.kernel(PROGRAMS / "fifo_full.good.pto", words, core="mixed")
    run = runtime.run(lambda rt: rt.submit(mixed, *bad.values()), sanitize="race")
    assert run.unchecked == {"k": "a program of two halves in one task"}
    assert summary(run.checked, run.unchecked).startswith("checked for race but not k (a program of two")


def test_a_task_without_parameters() -> None:
    nothing = "func.func @nothing() attributes {pto.entry} {\n  return\n}\n"
    kernel = runtime.kernel(nothing, "", name="nothing")
    run = runtime.run(lambda rt: rt.submit(kernel), sanitize="all")
    assert run.ok and not run.unchecked


def test_a_program_that_changes_between_runs(tmp_path: Path) -> None:
    """Its parameters are those of the file as it is now."""
    path = tmp_path / "k.pto"
    kernel = None
    for dtype, sanitize in (("f32", ()), ("i32", "all")):
        path.write_text(f"func.func @k(%x: !pto.ptr<{dtype}>) attributes {{pto.entry}} {{\n  return\n}}\n")
        kernel = kernel or runtime.kernel(path, "in")
        array = np.zeros(8, dtype.replace("f", "float").replace("i", "int"))
        assert runtime.run(lambda rt, k=kernel, x=array: rt.submit(k, x), sanitize=sanitize).ok


def test_an_option_goes_before_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a listener reports go to stderr, once."""
    bad = load("raw_mte2_v.bad")
    with knobs.override(PTO_SANITIZE="all"):
        kernel = pto.kernel(PROGRAMS / "raw_mte2_v.bad.pto")
        assert kernel.run(*bad.values(), sanitize=()).ok and capsys.readouterr().err == ""
        for _ in range(2):
            assert not kernel.run(*bad.values()).ok
        assert capsys.readouterr().err.count("error[PTO-E2201]") == 1
        with pytest.raises(DiagnosticError):
            kernel(*bad.values())
    assert pto.kernel(PROGRAMS / "raw_mte2_v.bad.pto").run(*bad.values()).ok
