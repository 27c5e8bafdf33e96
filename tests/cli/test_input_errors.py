"""Errors about files rather than programs, besides those that golden programs show."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pto.cli import main as pto_main
from pto.cli import ptoas as ptoas_main

_PROGRAM = "module {\n  func.func @k() {\n    return\n  }\n}\n"


def _json(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return json.loads(capsys.readouterr().err)


def test_e0001_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pto_main.main(["check", str(tmp_path)]) == 1
    assert "error[PTO-E0001]" in capsys.readouterr().err


def test_e0002_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.pto"
    path.write_text(_PROGRAM)
    out = tmp_path / "out.pto"
    out.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert ptoas_main.main([str(path), "-o", str(out)]) == 1
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["k.pto", "out.pto"], "no temporary file remains"


def test_e0002_not_written_when_the_program_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text("module {\n")
    out = tmp_path / "out.pto"
    assert ptoas_main.main([str(path), "-o", str(out)]) == 1
    assert not out.exists()


def test_broken_bytecode_is_recognised_by_its_magic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.ptobc"
    path.write_bytes(b"PTOBC\0\x00\xff\xfe")
    assert pto_main.main(["check", str(path), "--diagnostics=json"]) == 1
    (found,) = _json(capsys)
    assert found["code"].startswith("PTO-E12")


def test_e0103_twin_utf8_with_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_bytes(b"\xef\xbb\xbf" + _PROGRAM.encode())
    assert pto_main.main(["check", "-q", str(path)]) == 0


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("k.cpp", b"void k();\n", "it is C++"),
        ("k.pto", b"// a kernel\n#include <pto/pto-inst.hpp>\n__global__ void k() {}\n", "it is C++"),
        ("k.so", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00", "it is a shared library (ELF)"),
        ("k.o", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\x00", "it is an object file (ELF)"),
        ("k.x", b"\x7fELF", "it is a binary (ELF)"),
        ("k.py", b"x = 1\n", "it is Python"),
        ("k.pto", b"# kernels\n\nimport pto.language as pl\n", "it is Python"),
    ],
)
def test_e0004_cpp_and_libraries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, word: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    for tool, arguments in ((ptoas_main.main, []), (pto_main.main, ["check"]), (pto_main.main, ["fmt"])):
        assert tool([*arguments, str(path), "--diagnostics=json"]) == 1
        (found,) = _json(capsys)
        assert found["code"] == "PTO-E0004" and word in found["message"]
        assert ("as_pto()" if "Python" in word else "pto run") in found["help"]


def test_e0004_twin_a_comment_that_names_an_include(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text("// #include <x>, __global__ k\n" + _PROGRAM)
    assert pto_main.main(["check", "-q", str(path)]) == 0
