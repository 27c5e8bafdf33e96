"""Advice that the tool applies by itself: the written program takes the promised time."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.perf.test_timeline import _LOOP, LATE, program, timed

import pto
from pto.cli.main import main
from pto.perf.timeline.advice import advise
from pto.perf.timeline.apply import followed
from pto.perf.timeline.timeline import Timeline


@pytest.mark.parametrize("script, kinds", [
    (_LOOP.format("barrier ALL"), ["barrier"]),
    (LATE, ["wait"]),
])  # fmt: skip
def test_what_is_followed_takes_what_was_promised(script: str, kinds: list[str]):
    text = program(script)
    before = timed(text)
    file = before.trace.sites[0].file
    edited = followed(before, text, file)
    assert [a.kind for a in edited.done] == kinds
    assert timed(edited.text).cycles == pytest.approx(edited.cycles, rel=0.005)
    assert edited.cycles < 0.99 * before.cycles
    assert followed(before, text, "another.pto").text == text  # lines of another file


def test_what_takes_more_than_lines_is_left():
    text = program(_LOOP.format("exp b b"))
    before = timed(text)
    edited = followed(before, text, before.trace.sites[0].file)
    assert edited.text == text and not edited.done and {a.kind for a in edited.left} == {"buffer"}
    several = program(_LOOP.format("barrier ALL")).replace(
        "pto.barrier <PIPE_ALL>", "pto.barrier\n      <PIPE_ALL>"
    )
    whole = timed(several)
    assert "barrier" in {a.kind for a in followed(whole, several, whole.trace.sites[0].file).left}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source, out = tmp_path / "k.pto", tmp_path / "better.pto"
    source.write_text(program(_LOOP.format("barrier ALL")))
    given = ["--apply", str(out), "--", "f32:1024x128", "f32:1024x128"]
    assert main(["run", str(source), "-q", *given]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert any(line.startswith("applied: unneeded barrier") for line in printed)
    times = re.search(r": ([\d.]+) us, predicted ([\d.]+) us, before ([\d.]+) us$", printed[-1])
    assert times and times[1] == times[2] and float(times[1]) < float(times[3])
    assert len(out.read_text().splitlines()) == len(source.read_text().splitlines()) - 1
    assert main(["run", str(out), "-q", *given]) == 0
    assert "nothing was written" in capsys.readouterr().out


def _slots(count: int) -> Timeline:
    text = Path("examples/kernels/mixed_fifo.pto").read_text().replace("slot_num = 8", f"slot_num = {count}")
    kernel = pto.kernel(pto.parse(text), engine="reference")
    half, single = np.zeros(1 << 18, np.float16), np.zeros(1 << 18, np.float32)
    found = kernel.run(half, half.copy(), single, single.copy(), single.copy(), 1024, timeline=True, dry=True)
    assert found.ok, found.diagnostics
    return found.timeline


def test_a_slot_more_saves_what_was_promised():
    before = _slots(1)
    (advice,) = (a for a in advise(before) if a.kind == "slot")
    assert before.cycles - _slots(2).cycles == pytest.approx(advice.gain, rel=0.05)
