"""`pto fix`: what sanitizers suggest, inserted."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import pto
from pto.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = Path(__file__).parents[1] / "sanitize" / "programs"
CASES = {
    EXAMPLES / "12_race.pto": ["f32:64x128"] * 3,
    EXAMPLES / "17_race.cpp": ["f32:64x128"] * 2,
    PROGRAMS / "loop_around_sections.bad.pto": ["f32:16x64", "f32:64x64", "f32:64x64"],
    PROGRAMS / "double_buffer_no_reverse.bad.pto": [],
}


def copied(source: Path, folder: Path) -> tuple[Path, list[str]]:
    """A copy of a program, and the arguments of its launch."""
    place = folder / source.name
    place.write_text(source.read_text())
    said = next((line for line in source.read_text().splitlines() if line.startswith("// RUN: ")), "")
    words = CASES[source] or [w for w in said.removeprefix("// RUN: ").split() if "=" not in w]
    return place, words


@pytest.mark.parametrize("source", CASES, ids=lambda source: source.name)
def test_a_race_is_gone(source: Path, kept_place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, words = copied(source, kept_place)
    before = place.read_text()
    more = ["--subblocks", "1"] if "sections" in place.name else []
    assert main(["run", "--sanitize", "all", str(place), *more, "--", *words]) == 1
    assert main(["fix", "--diff", str(place), *more, "--", *words]) == 0
    assert "\n+  " in capsys.readouterr().out and place.read_text() == before
    assert main(["fix", str(place), *more, "--", *words]) == 0
    assert place.read_text() != before and "nothing is left to fix" in capsys.readouterr().out
    assert main(["run", "--sanitize", "all", str(place), *more, "--", *words]) == 0
    assert main(["fix", str(place), *more, "--", *words]) == 0
    assert "0 steps" in capsys.readouterr().out
    assert [p.name for p in kept_place.iterdir()] == [place.name]


def test_the_result_is_the_same_under_schedules(tmp_path: Path) -> None:
    place, words = copied(EXAMPLES / "12_race.pto", tmp_path)
    assert main(["fix", "-q", str(place), "--", *words]) == 0
    kernel = pto.kernel(place)
    a, b = np.random.default_rng(1).random((2, 64, 128), np.float32)
    want = np.zeros_like(a)
    kernel(a, b, want)
    for seed in range(20):
        got = np.zeros_like(a)
        kernel(a, b, got, schedule=seed)
        assert (got == want).all()


def test_every_step_can_be_declined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, words = copied(EXAMPLES / "12_race.pto", tmp_path)
    before = place.read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n" * 10))
    assert main(["fix", "--interactive", str(place), "--", *words]) == 1
    assert place.read_text() == before and "PTO-E2201" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["fix", "--interactive", str(place), "--", *words]) == 1
    assert place.read_text() == before
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 10))
    assert main(["fix", "--interactive", str(place), "--", *words]) == 0
    assert place.read_text() != before


def test_what_cannot_be_fixed_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "k.pto"
    place.write_text("func.func @k(%n: index) {\n  pto.frobnicate\n  return\n}\n")
    assert main(["fix", str(place), "--", "1"]) == 1
    said = capsys.readouterr()
    assert f"{place}:2:3: error[PTO-E0108]" in said.err and "errors are left" in said.out


def test_lines_of_other_files_are_left_alone(kept_place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The race stands in a file that the kernel includes; `line 16` is one of that file."""
    head, _, body = (EXAMPLES / "17_race.cpp").read_text().partition("__global__ AICORE void exp_race")
    (kept_place / "steps.h").write_text(f"{head}inline AICORE void steps{body}")
    place = kept_place / "k.cpp"
    kernel = "__global__ AICORE void k(__gm__ float* a, __gm__ float* c) { steps(a, c); }\n"
    place.write_text('#include "steps.h"\n' + "// a line\n" * 60 + kernel)
    before = place.read_text()
    assert main(["fix", str(place), "--", "f32:64x128", "f32:64x128"]) == 1
    said = capsys.readouterr()
    assert "0 steps, errors are left" in said.out and "steps.h" in said.err
    assert place.read_text() == before


def test_a_step_that_breaks_the_program_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pto.cli.fix.applied", lambda text, help: f"{text}\npto.nothing")
    place, words = copied(EXAMPLES / "12_race.pto", tmp_path)
    before = place.read_text()
    assert main(["fix", str(place), "--", *words]) == 1
    assert place.read_text() == before and "0 steps" in capsys.readouterr().out
