"""`ptobc`: its verbs, exit status, atomic output and help."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from tests.each import together

from pto.cli import ptobc

TEXT = "module {\n  func.func @f(%n: index) {\n    %two = arith.constant 2 : index\n    %sum = arith.addi %n, %two : index\n    return\n  }\n}\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "k.pto"
    path.write_text(TEXT)
    return path


def run(*arguments: object) -> int:
    return ptobc.main([str(a) for a in arguments])


def test_there_and_back(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, back = tmp_path / "k.ptobc", tmp_path / "back.pto"
    assert run("encode", program, "-o", code) == 0
    assert code.read_bytes()[:6] == b"PTOBC\0"
    assert run("decode", code, "-o", back) == 0
    assert back.read_text() == TEXT.replace("%sum", "%1").replace("%n", "%0").replace("%two", "%c2")
    again = tmp_path / "again.ptobc"
    assert run("encode", back, "-o", again) == 0
    assert again.read_bytes() == code.read_bytes()
    assert run("decode", code, "--emit=generic") == 0
    assert '"func.func"()' in capsys.readouterr().out


def test_names_with_debuginfo(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = tmp_path / "k.ptobc"
    assert run("encode", program, "-o", code, "--debuginfo") == 0
    assert run("decode", code) == 0
    assert capsys.readouterr().out == TEXT


def test_dump(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = tmp_path / "k.ptobc"
    run("encode", program, "-o", code, "--debuginfo")
    assert run("dump", code) == 0
    out = capsys.readouterr().out
    for wanted in ("section 0x01 STRINGS", 's0 "func.func"', "t2 index", "a2 {overflowFlags", "c0 int 2 : index",
                   'function 0 "f" t1', '2000 %2 "sum": t2 = arith.addi(%0, %1) a2', "k.pto:4:12"):  # fmt: skip
        assert wanted in out, wanted


def test_dump_shows_what_can_be_read(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "k.ptobc"
    run("encode", program, "-o", code)
    data = bytearray(code.read_bytes())
    data[-3:-1] = b"\x99\x99"
    code.write_bytes(data)
    assert run("dump", code) == 1
    out, err = capsys.readouterr()
    assert 's0 "func.func"' in out
    assert "error[PTO-E1211]" in err and "unknown opcode 0x9999" in err


def test_a_bad_file_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, out = tmp_path / "bad.ptobc", tmp_path / "out.pto"
    bad.write_bytes(b"PTOBC\0\7\0\0\0\0\0\0\0")
    out.write_text("old")
    assert run("decode", bad, "-o", out, "--diagnostics=json") == 1
    assert out.read_text() == "old"
    (found,) = json.loads(capsys.readouterr().err)
    assert found["code"] == "PTO-E1202" and found["column"] == 7
    assert run("encode", tmp_path / "none.pto", "-o", out) == 1
    assert run("decode", tmp_path / "none.ptobc", "-o", out) == 1
    assert out.read_text() == "old"


def test_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "k.pto", tmp_path / "k.ptobc"
    path.write_text("func.func @f(%n: index) {\n  %0 = arith.divsi %n, %n : index\n  return\n}\n")
    assert run("encode", path, "-o", out, "--strict-v0") == 1
    assert not out.exists()
    assert "k.pto:2:3: error[PTO-E1216]: arith.divsi: v0 has no number for it" in capsys.readouterr().err
    assert run("encode", path, "-o", out) == 0


def test_text_errors_are_those_of_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pto"
    path.write_text("module {\n  nothing\n}\n")
    assert run("encode", path, "-o", tmp_path / "k.ptobc") == 1
    assert "k.pto:2:3: error[PTO-E0108]" in capsys.readouterr().err


def test_standard_streams(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run("encode", "-") == 0
    data = capfdbinary.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run("decode", "-") == 0
    assert b"arith.constant 2 : index" in capfdbinary.readouterr().out


@together(
    "arguments", [[], ["nothing"], ["decode"], ["decode", "x", "--emit=cpp"], ["encode", "x", "--wrong"]]
)
def test_usage_errors(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        ptobc.main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize("verb", ["", "encode", "decode", "dump"])
def test_help_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        ptobc.main([*([verb] if verb else []), "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert f"examples:\n  ptobc {verb}" in out
