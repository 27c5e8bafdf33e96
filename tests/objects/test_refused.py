"""Files that are not objects of this machine: refused before any of their code is loaded, and never by a
traceback.
"""

from __future__ import annotations

import builtins
import struct
from pathlib import Path
from typing import Any

import pytest

import pto
from pto.cli import main as pto_main
from pto.cli import ptoas
from pto.cli.outputs import decided
from pto.diag import DiagnosticError
from pto.objects import machine_code

pytest.importorskip("llvmlite")
from .test_objects import made  # behind the line above, as it needs that too

PROGRAM = "func.func @k() attributes {pto.entry} {\n  return\n}\n"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--emit=cpp", "-o", "k.so"], "-o k.so is a shared object, --emit=cpp is C++"),
        (["--emit=pto", "-o", "k.o"], "-o k.o is an object, --emit=pto is a program"),
        (["--emit=obj", "-o", "k.so"], "-o k.so is a shared object, --emit=obj is an object"),
        (["--emit=so", "-o", "k.cpp"], "--emit=so is a shared object, -o k.cpp is not"),
        (["--target=a5", "-o", "k.so"], "-o k.so is a shared object for the CPU, but --target is a5"),
        (["--arch=a3", "--emit=llvm"], "--emit=llvm is LLVM IR for the CPU, but --target is a2a3"),
        (["--emit=ssa", "-o", "k.s"], "-o k.s is assembly, --emit=ssa is a program"),
        (
            ["-o", "k.bin"],
            "unknown suffix of -o k.bin: expected one of .cpp, .ssa.pto, .pto.s, .pto, .mlir, .elf, .ll, "
            ".s, .o, .so",
        ),
    ],
)
def test_e0005_contradictions(options: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ptoas.main(["k.pto", *options]) == 1
    said = capsys.readouterr().err
    assert f"error[PTO-E0005]: {word}\n" in said and "help: " in said


def test_the_suffix_decides() -> None:
    for output, form in (("k", "cpp"), ("k.cce", "cpp"), ("/dev/fd/3.x", "cpp"), ("k.pto", "pto"), ("k.mlir", "generic"),
                         ("k.ssa.pto", "ssa"), ("k.pto.s", "asm"), ("k.s", "native"), ("k.elf", "elf")):  # fmt: skip
        assert decided(None, output, None) == form
    assert decided("cpp", "k.bin", None) == decided("cpp", "k.pto", None) == "cpp"


def test_e2406_without_llvmlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **others: Any) -> Any:
        if name.startswith("llvmlite"):
            raise ImportError(f"No module named '{name}'")
        return real(name, *args, **others)

    source = tmp_path / "k.pto"
    source.write_text(PROGRAM)
    machine_code._llvm.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    assert ptoas.main([str(source), "-o", str(tmp_path / "k.so")]) == 1
    monkeypatch.undo()
    machine_code._llvm.cache_clear()
    said = capsys.readouterr().err
    assert "error[PTO-E2406]" in said and "pip install llvmlite" in said
    assert not (tmp_path / "k.so").exists()


def test_files_that_are_no_objects_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = made("control flow")
    other = bytearray(whole)
    struct.pack_into("<H", other, 18, 243)
    cases = {
        "k.so": (whole[: len(whole) // 2], "cut"),
        "other.so": (bytes(other), "another machine"),
        "text.so": (b"hello", "cannot load"),
        "k.o": (made("control flow", "obj"), "expected a shared object"),
        "lost.so": (whole.replace(b"\0k\0k.so\0", b"\0x\0k.so\0"), "no symbol 'k'"),
        "old.so": (whole.replace(b"PTOIMAGE\1", b"PTOIMAGE\7"), "version 7"),
    }
    for name, (data, word) in cases.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert pto_main.main(["run", str(path), "--", "i32:3", "20"]) == 1
        said = capsys.readouterr().err
        assert f"error[{'PTO-E1222' if name == 'old.so' else 'PTO-E2405'}]" in said and word in said, said
    (tmp_path / "k.so").write_bytes(whole)
    with pytest.raises(DiagnosticError, match="to be made for a5, got"):
        pto.kernel(tmp_path / "k.so", target="a5")
    with pytest.raises(DiagnosticError, match="no function '@other' to run"):
        pto.kernel(tmp_path / "k.so", "other")


def test_no_text_of_a_file_is_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.o"
    path.write_bytes(made("control flow", "obj").replace(b"a0 = a1 % a2;", b"a0 = abort();"))
    assert pto_main.main(["build", str(path), "-o", str(tmp_path / "calls.so")]) == 1
    assert "error[PTO-E1225]" in capsys.readouterr().err
