"""`pto doctor`: every check is guarded, and a required one that fails decides the exit status."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest

from pto import knobs
from pto.cli import doctor
from pto.cli.main import main
from pto.cli.terminal import Screen
from pto.engine.registry import ENGINES
from pto.isa.dtypes import DTYPES

Capture = pytest.CaptureFixture[str]
REFERENCE = ENGINES["reference"]


def _only(monkeypatch: pytest.MonkeyPatch, name: str, required: bool, check: Callable[[], str]) -> None:
    monkeypatch.setattr(doctor, "checks", lambda: [(name, required, check)])


def test_this_machine_is_fine(capsys: Capture) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for name in (
        "python",
        "pto",
        "table",
        "numpy",
        "ml_dtypes",
        "native",
        "engine",
        "compiler",
        *knobs.KNOBS,
    ):
        assert name in out
    assert "FAIL" not in out


def test_json(capsys: Capture) -> None:
    assert main(["doctor", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["ok"] is True
    assert {c["name"] for c in shown["checks"]} == {entry[0] for entry in doctor.checks()}
    assert shown["knobs"] == {name: knobs.get(name) for name in knobs.KNOBS}


def test_a_required_failure_has_a_way_out(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _only(monkeypatch, "numpy", True, doctor._library("no_such_module"))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "FAIL numpy  not installed" in out and "pip install no_such_module" in out


def test_an_optional_failure_does_not_count(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _only(monkeypatch, "tool", False, doctor._tool("no-such-package", "for nothing"))
    assert main(["doctor"]) == 0
    assert "--   tool  not installed; for nothing" in capsys.readouterr().out


def test_a_check_that_breaks_is_reported(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise RuntimeError("half installed")

    _only(monkeypatch, "native", True, broken)
    assert main(["doctor", "--json"]) == 1
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["status"] == "failed" and check["detail"] == "RuntimeError: half installed" and check["help"]


def test_the_engine_runs_a_kernel() -> None:
    found = doctor._engine(REFERENCE)()
    assert found.startswith("reference: runs a kernel, self-check passed") and "conversions in " in found


def test_the_engine_does_without_the_native_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pto.engine.elements._native", None)
    assert doctor._engine(REFERENCE)().endswith("in Python, which is slower: missing native module")


def test_a_native_module_without_an_element_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DTYPES, "f8new", DTYPES["hif8"])
    with pytest.raises(doctor.FailedCheck, match="lacks element type f8new"):
        doctor._native()


def test_an_engine_that_computes_nonsense(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pto.engine.reference.kernel.ReferenceKernel.__call__", lambda *_, **__: None)
    _only(monkeypatch, "engine", True, doctor._engine(REFERENCE))
    assert main(["doctor"]) == 1
    assert "FAIL engine  wrong results: twice 0, 1, 2, 3 is [0.0, 0.0, 0.0, 0.0]" in capsys.readouterr().out


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(doctor.FailedCheck, match="found") as problem:
        doctor._compiler()
    assert "g++" in problem.value.way_out


def test_a_compiler_without_cpp20(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fake = tmp_path_factory.mktemp("bin") / "c++"
    fake.write_text("#!/bin/sh\necho 'unrecognized option -std=c++20' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(fake) if name == "c++" else None)
    with pytest.raises(doctor.FailedCheck, match=r"does not compile C\+\+20: unrecognized option"):
        doctor._compiler()


def test_knobs_show_their_values() -> None:
    lines = doctor.report(
        [doctor.DoctorCheck("x", "ok", "y")], {"PTO_COLOR": "never"}, Screen(90, color=False)
    )
    assert any(line.split()[:2] == ["PTO_COLOR", "never"] for line in lines)
