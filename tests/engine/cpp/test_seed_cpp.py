"""The C++ of the documents: programs that compile, programs that run, and the errors of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import DiagnosticError
from pto.cli.main import main

PARTMUL = """\
#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void k(__gm__ float* out) {
  using TileT = Tile<TileType::Vec, float, 16, 16>;
  TileT src0, src1, dst;
  TEXPANDS(src0, 3.0f);
  TEXPANDS(src1, 2.0f);
  TPARTMUL(dst, src0, src1);
  *out = dst.GetValue(0);
}
"""
MINIMAL = """\
#include <pto/pto-inst.hpp>
using namespace pto;
void vec_add(Tile<float, 16, 16>& c, const GlobalTensor<float>& ga, const GlobalTensor<float>& gb,
             GlobalTensor<float>& gc) {
  Tile<float, 16, 16> a, b;
  TLOAD(a, ga);
  TLOAD(b, gb);
  TADD(c, a, b);
  TSTORE(gc, c);
}
__global__ AICORE void k(__gm__ float* a, __gm__ float* b, __gm__ float* out) {
  GlobalTensor<float> ga(a), gb(b), gc(out);
  Tile<float, 16, 16> c;
  vec_add(c, ga, gb, gc);
}
__global__ AICORE void blocks(__gm__ int32_t* o) {
  o[0] = GetBlockNum();
  o[1] = GetBlockIdx();
  o[2] = GetSubBlockNum();
  o[3] = GetSubBlockIdx();
}
"""


def kernel(folder: Path, text: str, **options: Any) -> Any:
    path = folder / "k.cpp"
    path.write_text(text)
    return pto.kernel(str(path), **options)


def refused(folder: Path, text: str, **options: Any) -> list[pto.Diagnostic]:
    with pytest.raises(DiagnosticError) as caught:
        kernel(folder, text, **options)
    return caught.value.diagnostics


def test_tpartmul_auto_example_has_storage_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = np.zeros(1, np.float32)
    kernel(tmp_path, PARTMUL, auto=True)(out)
    assert out.tolist() == [6.0]
    path = str(tmp_path / "k.cpp")
    assert main(["run", path, "--auto", "-q", "--print", "--", "f32:1"]) == 0
    assert "6" in capsys.readouterr().out
    assert main(["build", path, "--auto", "-q", "-o", str(tmp_path / "k.so")]) == 0
    pto.kernel(str(tmp_path / "k.so"), auto=True)(out)
    assert main(["run", "examples/01_vec_add.pto", "--auto", "--", "f32:1"]) == 1
    assert "--auto is an option of C++" in capsys.readouterr().err


def test_a_tile_that_was_never_assigned_is_named(tmp_path: Path) -> None:
    """Not an access to address 0. Its code is given once, and the way out is not part of the message."""
    (found,) = kernel(tmp_path, PARTMUL).run(np.zeros(1, np.float32)).diagnostics
    assert (found.code, found.message) == ("R003", "a tile is used before TASSIGN gave it an address")
    assert "--auto" in found.help


def test_overview_minimal_example(tmp_path: Path) -> None:
    """A tile type needs its location; no follow-up error is reported. The rest is as printed: a tensor
    without a shape has that of the tile."""
    found = refused(tmp_path, MINIMAL, entry="k")
    assert {d.help for d in found} == {"write the location first: Tile<TileType::Vec, float, 16, 16>"}
    text = MINIMAL.replace("Tile<float", "Tile<TileType::Vec, float")
    counts = np.full(4, -1, np.int32)
    kernel(tmp_path, text, entry="blocks")(counts, blocks=1)
    assert counts[:2].tolist() == [1, 0]
    a, b = np.random.default_rng(0).standard_normal((2, 16, 16)).astype(np.float32)
    out = np.zeros((16, 16), np.float32)
    kernel(tmp_path, text, entry="k", auto=True)(a, b, out)
    assert np.array_equal(out, a + b)
    partly = text.replace("16, 16> ", "16, 16, BLayout::RowMajor, 3, 16> ").replace(
        "16, 16>& ", "16, 16, BLayout::RowMajor, 3, 16>& "
    )
    out[:] = 0
    kernel(tmp_path, partly, entry="k", auto=True)(a, b, out)
    assert np.array_equal(out[:3], (a + b)[:3]) and not out[3:].any()
    (found,) = (
        kernel(tmp_path, text, entry="k", auto=True)
        .run(a, b, out.reshape(-1)[:200], sanitize="oob")
        .diagnostics
    )
    assert found.span is not None and "TSTORE(gc, c)" in found.span.source.line(found.span.line)


def test_strides_are_dense_by_default(tmp_path: Path) -> None:
    """Strides that are left out follow from the shape, also if it is given at run time."""
    text = """\
#include <pto/pto-inst.hpp>
using namespace pto;
template <class S, class... Sizes>
AICORE void copy(__gm__ float* a, __gm__ float* out, Sizes... sizes) {
  using Global = GlobalTensor<float, S>;
  Global from(a, S(sizes...)), to(out, S(sizes...));
  Tile<TileType::Vec, float, 4, 8> tile;
  TASSIGN(tile, 0);
  TLOAD(tile, from);
  pipe_barrier(PIPE_ALL);
  TSTORE(to, tile);
}
__global__ AICORE void fixed(__gm__ float* a, __gm__ float* out) { copy<Shape<1, 1, 1, 4, 8>>(a, out); }
__global__ AICORE void dynamic(__gm__ float* a, __gm__ float* out) { copy<Shape<1, 1, 2, 2, -1>>(a, out, 8); }
"""
    a = np.arange(32, dtype=np.float32)
    for entry in ("fixed", "dynamic"):
        out = np.zeros_like(a)
        kernel(tmp_path, text, entry=entry)(a, out)
        assert np.array_equal(out, a)
    column = text.replace("GlobalTensor<float, S>", "GlobalTensor<float, S, detail::Dense<S>, Layout::DN>")
    assert any(
        "give a Stride for this layout" in d.message + d.help
        for d in refused(tmp_path, column, entry="fixed")
    )


def test_a_misspelled_intrinsic_suggests_its_name(tmp_path: Path) -> None:
    (found,) = refused(tmp_path, PARTMUL.replace("TPARTMUL", "TPARTMULL"))
    assert "did you mean 'TPARTMUL'" in found.message + found.help
    (found,) = refused(tmp_path, PARTMUL.replace("TPARTMUL", "TADDD"))
    assert "'TADD'" in found.message + found.help
