"""Records of C++ kernels as programs: the same results on every engine, and calls that cannot be recorded."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.each import each
from tests.sanitize.corpus import _value
from tests.sanitize.test_cpp import FILES, kernel, kernels

import pto
from pto.asm import to_text
from pto.cli.main import main
from pto.diag import DiagnosticError, render

EXAMPLE = Path(__file__).parents[3] / "examples" / "17_race.cpp"

#: Kernels of the corpus that a program has no words for, and of what.
REFUSED = {
    "loaded_then_overwritten": "a register that a call of C++ made that is not followed",
    "merged_over_a_source": "the list of counts that tmrgsort wants",
    "fill_not_awaited": "memory that is not an argument",
    "bias_not_awaited": "memory that is not an argument",
}
#: Kernels of which every run has the time: of one core, of several blocks, of the cube and of vector registers.
SOME = (
    ("cube", "l1_ping_pong"), ("vector", "load_then_add"), ("vector", "blocks_read_before_barrier"),
    ("mixed", "signal_missing"), ("mixed", "push_before_product"), ("micro", "lanes_behind_the_data"),
)  # fmt: skip


def arguments(file: str, name: str) -> list[Any]:
    rng = np.random.default_rng(7)
    return [_value(text, rng) for text in kernels(file)[name].arguments]


def check(file: str, name: str, engines: tuple[str, ...] = ("reference",)) -> None:
    k, options = kernel(file, name, "good"), kernels(file)[name].options
    if name in REFUSED:
        with pytest.raises(DiagnosticError):
            k.record(*arguments(file, name), **options)
        return
    text = to_text(k.record(*arguments(file, name), **options), locations=True)
    wanted = arguments(file, name)
    assert k.run(*wanted, **options).ok
    for engine in engines:
        found = arguments(file, name)
        result = pto.kernel(pto.parse(text), engine=engine).run(*found, **options)
        assert result.ok, render(result.diagnostics)
        for a, b in zip(found, wanted, strict=True):
            assert not isinstance(a, np.ndarray) or a.tobytes() == b.tobytes(), engine


def test_some_kernels() -> None:
    each(check, SOME)


def test_all_kernels() -> None:
    if "PTO_TEST_EMITTED" not in os.environ:
        pytest.skip("make emitted")
    each(lambda f, n: check(f, n, ("reference", "cpp")), [(f, n) for f in FILES for n in kernels(f)])


def test_places_and_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pto"
    assert main(["record", str(EXAMPLE), "-o", str(path), "--", "f32:64x128", "f32:64x128"]) == 0
    module = pto.parse(path)
    lines = [op.loc.line for op in module.walk() if op.name == "pto.tload" and op.loc is not None]
    assert lines == [25] * 4
    (tload,) = {op.loc.source.name for op in module.walk() if op.name == "pto.tload" and op.loc is not None}
    assert tload == str(EXAMPLE)
    a = np.random.default_rng(0).random((64, 128)).astype(np.float32)
    found, wanted = np.zeros_like(a), np.zeros_like(a)
    pto.kernel(str(EXAMPLE))(a, wanted)
    result = pto.kernel(module, engine="reference").run(a, found, sanitize="race")
    assert np.array_equal(found, wanted)
    assert {(d.code, d.span.place[0]) for d in result.diagnostics if d.span} == {("PTO-E2201", 25)}


NUMBERS = """#include "pto/pto-inst.hpp"
using namespace pto;
using Matrix = GlobalTensor<float, Shape<1, 1, 1, 8, 64>, Stride<512, 512, 512, 64, 1>>;
__global__ AICORE void scale(__gm__ float* a, __gm__ float* c, int32_t n, float s, uint32_t at) {
  Tile<TileType::Vec, float, 8, 64> x;
  TASSIGN(x, at);
  for (int i = 0; i < n; ++i) {
    Matrix ga(a + i * 512), gc(c + i * 512);
    TLOAD(x, ga);
    pipe_barrier(PIPE_ALL);
    TMULS(x, x, s);
    pipe_barrier(PIPE_ALL);
    TSTORE(gc, x);
    pipe_barrier(PIPE_ALL);
  }
}
"""


def test_numbers_are_those_of_the_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They may have had any use: with other numbers the kernel might act differently from the program."""
    cpp, path = tmp_path / "k.cpp", tmp_path / "k.pto"
    cpp.write_text(NUMBERS, encoding="utf-8")
    assert (
        main(["record", str(cpp), "-o", str(path), "--", "f32:32x64", "f32:32x64", "2", "1.5", "4096"]) == 0
    )
    first, second, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first == "// Recorded from one launch of scale of k.cpp with 1 block."
    assert second == "// Valid only for these numbers: n = 2, s = 1.5, at = 4096."
    a = np.ones((32, 64), np.float32)

    def run(engine: str, numbers: tuple[Any, ...], said: str) -> None:
        c, out = np.zeros_like(a), io.StringIO()
        result = pto.kernel(pto.parse(path), engine=engine).run(a, c, *numbers, out=out)
        assert [d.code for d in result.diagnostics] == (["PTO-E2105"] if said else [])
        assert out.getvalue() == said and c.sum() == (0 if said else 16 * 64 * 1.5)

    each(run, [
        ("reference", (2, 1.5, 4096), ""), ("native", (2, 1.5, 4096), ""),
        ("reference", (3, 1.5, 4096), "this is a recording of n = 2, got 3\n"),
        ("native", (2, 1.25, 4096), "this is a recording of s = 1.5, got 1.250000\n"),
        ("reference", (2, 1.5, 0), "this is a recording of at = 4096, got 0\n"),
    ])  # fmt: skip


def test_a_kernel_with_a_flag_too_many(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    at = text.index("    TLOAD")
    broken = tmp_path / "k.cpp"
    broken.write_text(f"{text[:at]}    set_flag(PIPE_S, PIPE_V, EVENT_ID7);\n{text[at:]}", encoding="utf-8")
    path = tmp_path / "k.pto"
    assert main(["record", str(broken), "-o", str(path), "--", "f32:64x128", "f32:64x128"]) == 0
    assert "PTO-E0805" in {d.code for d in pto.verify(pto.parse(path))}


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--", "f32:64x128", "f32:64x128"]
    assert main(["record", str(EXAMPLE), "--limit", "5", *given]) == 1
    shown = capsys.readouterr().err
    assert "17_race.cpp:28:5: error[PTO-E2018]: a recording has at most 5 operations" in shown
    assert main(["record", "k.pto", *given]) == 1
    assert "error[PTO-E2018]: expected a C++ file or library, got 'k.pto'" in capsys.readouterr().err
