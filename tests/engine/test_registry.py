"""Engines are entries: the tools find an entry that is made up here, with the abilities it declares."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.cli import doctor
from pto.cli.main import main
from pto.engine import registry
from pto.engine.options import LaunchOptions
from pto.engine.reference.kernel import ReferenceKernel
from pto.engine.registry import ENGINES, Engine, Request
from pto.engine.result import LaunchResult

Capture = pytest.CaptureFixture[str]

PUT = """\
func.func @put(%p: !pto.ptr<i32>) {
  %c0 = arith.constant 0 : index
  %n = arith.constant 7 : i32
  pto.store_scalar %n, %p[%c0] : !pto.ptr<i32>, i32
  return
}
"""
RAN: list[int] = []


class TwinKernel(ReferenceKernel):
    """The reference engine under another name, with fewer options."""

    engine = "twin"

    def run(self, *args: Any, blocks: int = 1, max_steps: int | None = None, **others: Any) -> LaunchResult:
        plain = {name: others.pop(name) for name in ("out", "progress") if name in others}
        self.refuse(others)
        RAN.append(blocks)
        return super().run(*args, blocks=blocks, max_steps=max_steps, **plain)


def made(request: Request) -> TwinKernel:
    assert isinstance(request.program, pto.Module)
    return TwinKernel(request.program, request.entry, request.target, request.check, request.insert_sync)


def remark() -> str:
    return ", twice"


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    here = __name__
    entry = Engine("twin", "once more", f"{here}:made", options=("max_steps",), remark=f"{here}:remark")
    monkeypatch.setitem(ENGINES, "twin", entry)
    RAN.clear()
    yield entry


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "put.pto"
    path.write_text(PUT)
    return str(path)


@pytest.mark.usefixtures("twin")
def test_pto_run_offers_and_runs_it(program: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "--engine {native,reference,cpp,traced,twin}" in shown
    assert (
        "on the virtual machine of the package, step by step under watch, compiled by the system's C++ compiler, C++ that the reference engine watches, or once more "
        "(default: the first of native, reference, twin that supports the options; C++ and libraries: cpp)"
        in shown
    )
    arguments = ["--blocks", "3", "--max-steps", "100", "--print", "--", "i32:1"]
    assert main(["run", program, "--engine", "twin", *arguments]) == 0
    assert "[7]" in capsys.readouterr().out and RAN == [3]


@pytest.mark.usefixtures("twin")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sanitize", "all", "--subblocks", "2"], "engine twin has no --subblocks, --sanitize"),
        (["--semantics", "doc"], "engine twin has no --semantics"),
        (["--memory-map", "m.html"], "engine twin has no --memory-map"),
        (["--checked"], "--checked is an option of engine cpp"),
    ],
)
def test_pto_run_refuses_what_it_cannot_do(
    program: str, arguments: list[str], message: str, capsys: Capture
) -> None:
    assert main(["run", program, "--engine", "twin", *arguments, "--", "i32:1"]) == 1
    assert f"error[PTO-E2403]: {message}\n" in capsys.readouterr().err and not RAN


@pytest.mark.usefixtures("twin")
def test_pto_run_takes_what_it_takes(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "k.cpp"
    path.write_text("")
    assert main(["run", str(path), "--engine", "twin"]) == 1
    assert "is not a program: it runs on engine cpp, traced only" in capsys.readouterr().err


@pytest.mark.usefixtures("twin")
def test_python() -> None:
    out = np.zeros(1, np.int32)
    kernel = pto.kernel(pto.parse(PUT), engine="twin")
    kernel(out)
    assert out[0] == 7 and RAN == [1]
    with pytest.raises(pto.DiagnosticError, match="engine twin has no sanitize"):
        kernel(out, sanitize="all")
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        kernel(out, colour=1)
    with pytest.raises(ValueError, match="checked=True is for engine 'cpp'"):
        pto.kernel(pto.parse(PUT), engine="twin", checked=True)
    with pytest.raises(ValueError, match="C\\+\\+ and libraries run on engine 'cpp', 'traced' only"):
        pto.kernel("k.cpp", engine="twin")
    with pytest.raises(
        ValueError, match="unknown engine 'other'; expected one of native, reference, cpp, traced, twin"
    ):
        pto.kernel(pto.parse(PUT), engine="other")


# ------------------------------------------------------------------------------------- where none is named

#: What makes an engine other than the usual one necessary, as `pto run` and as Python have it.
NEEDED = {
    ("--sanitize", "all"): {"sanitize": "all"},
    ("--schedule", "seed=3"): {"schedule": 3},
    ("--shadow", "f64"): {"shadow": "f64"},
    ("--memory-map", "map.txt"): {"memory_map": True},
    ("--semantics", "doc"): {"semantics": "doc"},
    ("--sanitize", "oob", "--threads", "2"): {"sanitize": "oob", "threads": 2},
    ("--threads", "2", "--timeout", "60"): {"threads": 2, "timeout": 60},
    (): {},
}


@pytest.mark.parametrize(("arguments", "options"), NEEDED.items(), ids=" ".join)
def test_the_first_that_has_what_is_asked_for(
    program: str,
    arguments: tuple[str, ...],
    options: dict[str, Any],
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    watched = set(options) - {"threads", "timeout", "sanitize"}
    wanted = "reference" if watched else "native"
    assert main(["run", program, *arguments, "--print", "--", "i32:1"]) == 0
    shown = capsys.readouterr().out
    assert f"engine {wanted}," in shown and "[7]" in shown
    out = np.zeros(1, np.int32)
    kernel = pto.kernel(pto.parse(PUT))
    assert kernel.engine == "native" and kernel(out, **options).engine == wanted and out[0] == 7
    if watched:  # where one is named, nothing is chosen
        assert main(["run", program, "--engine", "native", *arguments, "--", "i32:1"]) == 1
        assert "error[PTO-E2403]: engine native has no --" in capsys.readouterr().err
        with pytest.raises(pto.DiagnosticError, match="engine native has no "):
            pto.kernel(pto.parse(PUT), engine="native")(out, **options)


def test_another_is_made_once() -> None:
    kernel, out = pto.kernel(pto.parse(PUT)), np.zeros(1, np.int32)
    assert kernel.other({"memory_map": True}) is kernel.other({"shadow": "f64"})
    assert kernel.other({"sanitize": "all"}) is None and kernel.other({"checked": True}) is None
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        kernel(out, colour=1)


@pytest.mark.parametrize(
    ("code", "goes_on"), [("PTO-E2003", True), ("PTO-E2401", True), ("PTO-E2402", False)]
)
def test_a_program_that_the_usual_one_refuses(
    program: str, code: str, goes_on: bool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One engine may have parts that another lacks; an error is an error on all."""

    def refuse(*_: Any) -> None:
        raise pto.DiagnosticError([pto.Diagnostic(code, "not here")])

    monkeypatch.setattr("pto.engine.native.engine.made", refuse)
    monkeypatch.setattr("pto.engine.native.engine.remembered", lambda source, options, make: make())
    out = np.zeros(1, np.int32)
    for named in ([], ["--engine", "native"]):
        status = main(["run", program, *named, "--", "i32:1"])
        said = capsys.readouterr()
        if goes_on and not named:
            assert status == 0 and "engine reference," in said.out and not said.err
            assert pto.kernel(pto.parse(PUT))(out, threads=2).engine == "reference" and out[0] == 7
        else:
            assert status == 1 and f"error[{code}]: not here" in said.err
            with pytest.raises(pto.DiagnosticError, match="not here"):
                pto.kernel(pto.parse(PUT), engine=named[-1] if named else None)


def test_doctor_looks_after_it(twin: Engine, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    every = doctor.checks
    names = [name for name, _, _ in every()]
    assert (
        names.index("engine")
        < names.index("engine twin")
        < names.index("compiler")
        < names.index("engine cpp")
    )
    monkeypatch.setattr(doctor, "checks", lambda: [entry for entry in every() if entry[0] == "engine twin"])
    assert main(["doctor", "--json"]) == 0
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["detail"] == "twin: runs a kernel, self-check passed, twice" and RAN == [1]
    monkeypatch.setattr(TwinKernel, "run", lambda *_, **__: LaunchResult())
    assert main(["doctor"]) == 0  # not required
    assert "--   engine twin  wrong results" in capsys.readouterr().out
    monkeypatch.setitem(ENGINES, "twin", twin.replace(required=True))
    assert main(["doctor"]) == 1


def test_entries_are_complete() -> None:
    for name, engine in ENGINES.items():
        assert engine.name == name and engine.doc and set(engine.takes) <= set(registry.INPUTS)
        assert callable(registry.named(engine.made_by))
        assert not engine.remark or engine.remarks()
    assert all(registry.those_for(kind) for kind in registry.INPUTS)


def test_the_record_of_options_has_those_of_the_engines() -> None:
    """`checked` is an option of a kernel; `debug` is another method."""
    every = {"blocks", "out", "progress", "threads"}
    assert set(LaunchOptions.__annotations__) == every | (set(registry.options()) - {"checked", "debug"})


def test_a_launch_refuses_what_its_engine_lacks() -> None:
    kernel = pto.kernel(pto.parse(PUT), engine="reference")
    with pytest.raises(pto.DiagnosticError, match="engine reference has no processes"):
        kernel.run(np.zeros(1, np.int32), processes=True)
