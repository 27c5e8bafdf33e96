"""Emitted C++ is C++: the output for the examples compiles with the headers of this package."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.made import compiled
from tests.sampling import EVERY, some

import pto
from pto.diag import DiagnosticError

ROOT = Path(__file__).parents[2]
HEADERS = ROOT / "native" / "include"
COMPILER = shutil.which("g++") or shutil.which("clang++")
KERNELS = sorted((ROOT / "examples" / "kernels").glob("*.pto"))

#: The last line of the common part of every file.
_END = "    pipe_barrier(PIPE_ALL);\n    break;\n  }\n}\n"


def _together(texts: list[str]) -> str:
    """Several emitted files as one: the prologue of the first, the functions of all."""
    head = texts[0].partition(_END)[0] + _END
    return head + "".join(
        f"namespace n{i} {{\n{text.partition(_END)[2]}\n}}\n" for i, text in enumerate(texts)
    )


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize(("target", "macro"), [("a3", "PTO_NPU_ARCH_A2A3"), ("cpu", "")])
def test_example_kernels_compile(target: str, macro: str, tmp_path: Path) -> None:
    texts: list[str] = []
    for path in KERNELS:
        try:
            texts.append(pto.emit_cpp(pto.parse(path), target=target))
        except DiagnosticError:  # a kernel for another target
            assert target != "a3", path
    assert len(texts) > 3
    source = tmp_path / "k.cpp"
    source.write_text(_together(texts))
    assert COMPILER is not None
    flags = ["-D__DAV_CUBE__", "-D__DAV_VEC__", *([f"-D{macro}"] if macro else [])]
    command = [
        COMPILER,
        "-std=c++20",
        "-fsyntax-only",
        "-Wall",
        "-Wno-unused",
        *flags,
        f"-I{HEADERS}",
    ]
    done = compiled(command, source)
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr[:4000]


def _programs() -> list[Path]:
    folders = ("examples", "tests/golden", "tests/fuzz/corpus", "tests/sanitize/programs")
    return [p for folder in folders for p in sorted((ROOT / folder).rglob("*.pto"))]


@pytest.mark.parametrize("sync", [False, True])
def test_no_program_crashes_the_emitter(sync: bool) -> None:
    """Whatever the verifier lets through is emitted, or diagnosed with a code of ours."""
    done = 0
    for path in some(_programs(), 4, by=lambda path: path.parent):
        text = path.read_text(encoding="utf-8", errors="replace").partition("// STDOUT")[0]
        try:
            module = pto.parse(text + "\n")
            pto.emit_cpp(module, insert_sync=sync)
            done += 1
        except DiagnosticError as e:
            assert e.diagnostics, path
        except Exception as e:
            raise AssertionError(f"{path}: {e!r}") from e
    assert done > (60 if EVERY else 20)
