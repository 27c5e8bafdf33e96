"""The example ladder: every program is legal for its target, but for the one that is wrong on purpose; all that
the engine executes run, give the right results, or show the mistake they were written to show."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.each import together

import pto
from pto.diag import Diagnostic
from pto.engine.native import packs
from pto.reading import read

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(p for p in EXAMPLES.iterdir() if p.name.endswith((".pto", ".pto.s")))
WRONG = EXAMPLES / "10_wrong.pto"
OVERLAP = EXAMPLES / "15_overlap.pto"


def check(path: Path) -> list[Diagnostic]:
    return pto.verify(pto.parse(path), flags="error", overlaps="error")


@together("path", [p for p in PROGRAMS if p not in (WRONG, OVERLAP)])
def test_legal(path: Path) -> None:
    assert check(path) == []
    source, _ = read(str(path))
    assert source is not None and source.text.startswith(("//", "#")), "say in a comment what it shows"


@together("path", [p for p in PROGRAMS if p != WRONG])
@together("form", ["pto", "asm", "generic"])
def test_forms_say_the_same(path: Path, form: str) -> None:
    module = pto.parse(path)
    again = pto.parse(pto.to_text(module, form))
    assert pto.to_text(again, "pto") == pto.to_text(module, "pto")


def test_readme_lists_every_micro_kernel() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    named = re.findall(r"^\| \[(\S+)\]\(micro/\1\)", readme, re.MULTILINE)
    assert sorted(named) == sorted(p.name for p in (EXAMPLES / "micro").glob("*.pto"))


def test_three_spellings_of_the_first() -> None:
    texts = {
        pto.to_text(pto.parse(EXAMPLES / f"01_vec_add{s}"), "ssa") for s in (".pto", ".ssa.pto", ".pto.s")
    }
    assert len(texts) == 1


def test_wrong_in_three_ways() -> None:
    assert sorted(d.code for d in check(WRONG)) == ["PTO-E0301", "SA-0006", "SA-0353"]


def test_missing_flag_is_found() -> None:
    """The manual example without one of its flags."""
    text = (EXAMPLES / "02_manual_flags.pto").read_text()
    line = "    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]\n"
    assert line in text
    problems = pto.verify(pto.parse(text.replace(line, "")), flags="error")
    assert [d.code for d in problems] == ["PTO-E0803"]


def test_readme_lists_every_program() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    named = [p.name for p in (*PROGRAMS, *EXAMPLES.glob("[0-9]*.py"), *EXAMPLES.glob("[0-9]*.c*"))]
    assert re.findall(r"^\| \[(\S+)\]\(\1\)", readme, re.MULTILINE) == sorted(
        named, key=lambda n: (n[:2], not n.endswith("add.pto"), "ssa" not in n)
    )


# ---------------------------------------------------------------------------------------------------- running


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape) + shape[0]).standard_normal(shape).astype(dtype)


A, B = numbers(64, 128), numbers(64, 128)[::-1].copy()
F16 = numbers(64, 64, dtype=np.float16)
SOFT = np.exp(A - A.max(axis=1, keepdims=True))

#: Arguments, and the content of the last array afterwards.
RUNS: dict[str, tuple[list[Any], np.ndarray]] = {
    "01_vec_add.pto": ([A, B, (64, 128)], A + B),
    "01_vec_add.ssa.pto": ([A, B, (64, 128)], A + B),
    "01_vec_add.pto.s": ([A, B, (64, 128)], A + B),
    "02_manual_flags.pto": ([A, B, (64, 128)], A + B),
    "03_softmax_rows.pto": ([A, (64, 128)], SOFT / SOFT.sum(axis=1, keepdims=True)),
    "04_matmul.pto": (
        [A.astype(np.float16), B.T.astype(np.float16).copy(), (64, 64)],
        A.astype(np.float16).astype(np.float32) @ B.T.astype(np.float16).astype(np.float32),
    ),
    "05_dynamic_valid.pto": ([numbers(100, 300), (100, 300), 100, 300], np.maximum(numbers(100, 300), 0)),
    "06_loop_double_buffer.pto": ([numbers(256, 128), (256, 128)], 2 * numbers(256, 128)),
    "07_mixed_sections.pto": (
        [F16, F16, (64, 64), (64, 64)],
        2 * (F16.astype(np.float32) @ F16.astype(np.float32)),
    ),
    "08_vector_micro.pto": ([A, B, (64, 128), A.size], A + B),
    "09_fifo_push_pop.pto": (
        [F16[:16, :16].copy(), F16[16:32, :16].copy(), (16, 16)],
        np.exp(F16[:16, :16].astype(np.float32) @ F16[16:32, :16].astype(np.float32)),
    ),
}
#: What is not executed: the one that is wrong.
NOT_RUN = {"10_wrong.pto"}


def arguments(given: list[Any]) -> list[Any]:
    """Shapes become fresh arrays."""
    return [np.zeros(g, np.float32) if isinstance(g, tuple) else g for g in given]


def test_every_program_runs() -> None:
    broken = {p.name for p in PROGRAMS if "1" <= p.name[0] and p != WRONG}
    assert set(RUNS) | broken | NOT_RUN == {p.name for p in PROGRAMS}


@together("name", RUNS)
def test_run(name: str) -> None:
    given, expected = RUNS[name]
    args = arguments(given)
    result = pto.kernel(pto.parse(EXAMPLES / name), engine="reference").run(*args, sanitize="all")
    assert [d.code for d in result.diagnostics if d.severity == "error"] == []
    out = [a for a in args if isinstance(a, np.ndarray)][-1]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@together("seed", range(8))
@together("name", ["02_manual_flags.pto", "06_loop_double_buffer.pto", "07_mixed_sections.pto"])
def test_manual_examples_under_any_schedule(name: str, seed: int) -> None:
    given, expected = RUNS[name]
    args = arguments(given)
    pto.kernel(pto.parse(EXAMPLES / name), engine="reference")(*args, schedule=seed)
    np.testing.assert_allclose(args[-1], expected, rtol=1e-4, atol=1e-4)


def test_the_script_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "11_run.py"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines] == ["True", "True", "True", "['PTO-E2201']"]


def test_the_race_is_right_in_program_order_and_wrong_in_another() -> None:
    kernel = pto.kernel(pto.parse(EXAMPLES / "12_race.pto"), engine="reference")
    c = np.zeros_like(A)
    kernel(A, B, c)
    assert np.array_equal(c, A + B)
    (found,) = kernel.run(A, B, c, sanitize="all").diagnostics
    assert found.code == "PTO-E2201" and "before line 34" in found.help and "after line 33" in found.help
    late = np.zeros_like(A)
    kernel(A, B, late, schedule=4)
    assert np.count_nonzero(late == A + B) < A.size / 2


def test_the_advice_about_the_race_is_right() -> None:
    text = (EXAMPLES / "12_race.pto").read_text()
    (found,) = (
        pto.kernel(pto.parse(text), engine="reference")
        .run(A, B, np.zeros_like(A), sanitize="all")
        .diagnostics
    )
    lines = text.splitlines()
    (flag, after), (wait, before) = re.findall(r"'(.*?)' (?:after|before) line (\d+)", found.help)
    lines.insert(int(before) - 1, wait)
    lines.insert(int(after), flag)
    fixed = pto.kernel(pto.parse("\n".join(lines) + "\n"), engine="reference")
    assert fixed.run(A, B, np.zeros_like(A), sanitize="all").diagnostics == []


def test_the_undefined_sum() -> None:
    text = (EXAMPLES / "13_undefined.pto").read_text()
    y = np.zeros((16, 128), np.float32)
    (found,) = pto.kernel(pto.parse(text), engine="reference").run(A, y, sanitize="all").diagnostics[-1:]
    assert found.code == "PTO-E2203" and "%sum" in found.help
    fixed = text.replace(
        "    scf.for",
        "    %zero = arith.constant 0.0 : f32\n    pto.texpands ins(%zero : f32) outs(%sum : !tile)\n    scf.for",
    )
    assert (
        pto.kernel(pto.parse(fixed), engine="reference").run(A, y, sanitize="undef,oob,sync").diagnostics
        == []
    )
    np.testing.assert_allclose(y, A.reshape(4, 16, 128).sum(axis=0), rtol=1e-5, atol=1e-5)


def test_the_cancellation() -> None:
    x = np.random.default_rng(0).uniform(0, 0.01, (16, 128)).astype(np.float16)
    result = pto.kernel(pto.parse(EXAMPLES / "14_cancellation.pto"), engine="reference").run(
        x, np.zeros_like(x), shadow="f64"
    )
    (found,) = result.diagnostics
    assert found.code == "PTO-E2301" and found.message.startswith("tlog")


def test_the_overlap() -> None:
    result = pto.kernel(pto.parse(OVERLAP), engine="reference").run(
        A, B, np.zeros_like(A), sanitize="all", memory_map=True
    )
    assert "overlap: %ta and %tb share bytes 16384..32768" in result.memory_map.text()
    (found,) = result.diagnostics
    assert [d.code for d in check(OVERLAP)] == ["PTO-E2210"]
    assert found.code == "PTO-E2210" and "share bytes 0x4000-0x7fff of UB" in found.message


@pytest.mark.parametrize("page", ["README.md", "examples/README.md"])
def test_links_of_readmes(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / target).exists(), target


def demo(tmp_path: Path, tool_folder: Path, *steps: str, **variables: str) -> str:
    path = os.pathsep.join((str(tool_folder), os.path.dirname(sys.executable), os.environ["PATH"]))
    env = {**os.environ, "PATH": path, "PTO_DEMO": str(tmp_path), **variables}
    done = subprocess.run(["bash", EXAMPLES / "demo.sh", *steps], env=env, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


@pytest.mark.skipif(packs.of_package() is None, reason="set up without a pack")
def test_the_demo_without_a_compiler(tmp_path: Path, tool_folder: Path) -> None:
    """`make demo` is the first thing that a newcomer types."""
    shown = demo(tmp_path, tool_folder, PTO_CXX="/bin/false", CXX="/bin/false")
    assert "[12/12]" in shown and shown.count("No C++ compiler on this machine") == 2


@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler")
def test_the_demo_of_what_needs_one(tmp_path: Path, tool_folder: Path) -> None:
    shown = demo(tmp_path, tool_folder, "emission", "graphs")
    assert "[3/3]" in shown and "engine cpp" in shown and (tmp_path / "swimlane.html").exists()
