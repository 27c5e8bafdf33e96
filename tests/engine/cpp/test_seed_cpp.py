"""The C++ of the documents: what compiles, what runs, and what is said where it does not."""

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
__global__ AICORE void k(__gm__ int32_t* o) {
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


def refused(folder: Path, text: str) -> list[pto.Diagnostic]:
    with pytest.raises(DiagnosticError) as caught:
        kernel(folder, text)
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
    """Not an access to address 0. Its code is said once, and the way out is no part of the message."""
    (found,) = kernel(tmp_path, PARTMUL).run(np.zeros(1, np.float32)).diagnostics
    assert (found.code, found.message) == ("R003", "a tile is used before TASSIGN gave it an address")
    assert "--auto" in found.help


def test_overview_minimal_example(tmp_path: Path) -> None:
    """A tile type needs its location; what follows from it is not reported. The rest is as printed."""
    found = refused(tmp_path, MINIMAL)
    assert {d.help for d in found} == {"write the location first: Tile<TileType::Vec, float, 16, 16>"}
    out = np.full(4, -1, np.int32)
    kernel(tmp_path, MINIMAL.replace("Tile<float", "Tile<TileType::Vec, float"))(out, blocks=1)
    assert out[:2].tolist() == [1, 0]


def test_a_misspelled_intrinsic_suggests_its_name(tmp_path: Path) -> None:
    (found,) = refused(tmp_path, PARTMUL.replace("TPARTMUL", "TPARTMULL"))
    assert "did you mean 'TPARTMUL'" in found.message + found.help
    (found,) = refused(tmp_path, PARTMUL.replace("TPARTMUL", "TADDD"))
    assert "'TADD'" in found.message + found.help
