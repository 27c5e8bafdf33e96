"""A new instruction is one row: everything else follows from it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import pto
from pto import isa, knobs
from pto.asm import FORMS, parse, to_text
from pto.cli.main import main
from pto.codegen import intrinsics, legality
from pto.engine.cpp import compiler
from pto.isa import tables
from pto.isa.audit import problems
from pto.isa.describe import page
from pto.isa.row import Family, Row
from pto.isa.tables import tile_reduce
from pto.isa.tables._common import row_major, same_dtype, same_valid, vec

ROOT = Path(__file__).parents[1]

SILU = Family(
    "elementwise-tile-tile", "tile", pipe="V", core="vector", writes="valid", in_place="any",
    operands="src dst:out", rules=(*vec("src dst"), *row_major("src dst"), *same_dtype("dst src"), *same_valid("dst src")),
)(
    "tsilu", opcode=0x6F00, expr="src / (1 + exp(-src))", doc="Product of a number and its logistic function.", cpp="TSILU($dst, $src)",
    cpu="f32 f16", a2a3="f32 f16", a5="f32 f16",
)  # fmt: skip
SQUARES = tile_reduce.row_fold(
    "trowsquares", opcode=0x6F01, expr="acc + src * src", start="0", steps="f32",
    doc="Sum of the squares of each row, into column 0.", cpp="TROWSQUARES($dst, $src, $tmp)",
    cpu="f32 f16 i32", a2a3="f32 f16 i32", a5="f32 f16 i32", rules=same_dtype("dst src"),
)  # fmt: skip

PROGRAM = """module {
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<f32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c1024 = arith.constant 1024 : index
  %vx = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>
  %vy = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>
  %vz = pto.make_tensor_view %z, shape = [%c16, %c1], strides = [%c1, %c1] : !pto.tensor_view<16x1xf32>
  %a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
  %b = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
  %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
  %s = pto.alloc_tile : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>
  pto.tload ins(%vx : !pto.tensor_view<16x64xf32>) outs(%a : !pto.tile_buf<vec, 16x64xf32>)
  pto.tsilu ins(%a : !pto.tile_buf<vec, 16x64xf32>) outs(%b : !pto.tile_buf<vec, 16x64xf32>)
  pto.trowsquares ins(%b, %t : !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 16x64xf32>) outs(%s : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>)
  pto.tstore ins(%b : !pto.tile_buf<vec, 16x64xf32>) outs(%vy : !pto.tensor_view<16x64xf32>)
  pto.tstore ins(%s : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>) outs(%vz : !pto.tensor_view<16x1xf32>)
  return
}
}
"""


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The instruction table with two rows more."""
    made: dict[str, tuple[Row, ...]] = {"tile_elementwise": (SILU,), "tile_reduce": (SQUARES,)}
    for module, rows in made.items():
        isa._load(module)
        monkeypatch.setitem(isa._loaded, module, (*isa._loaded[module], *rows))
        for row in rows:
            monkeypatch.setitem(isa._index, row.full_name, row)
    assert tables.MODULES
    yield


def data(rng: np.random.Generator) -> list[np.ndarray]:
    x = rng.standard_normal((16, 64)).astype(np.float32)
    return [x, np.zeros_like(x), np.zeros((16, 1), np.float32)]


@pytest.mark.usefixtures("table")
def test_rows_are_complete() -> None:
    assert problems(SILU) == problems(SQUARES) == []
    for row in (SILU, SQUARES):
        shown = page(row)
        assert row.expr in str(shown.sections), shown
        out = io.StringIO()
        with redirect_stdout(out):
            assert main(["isa", row.name]) == 0
        assert row.doc in out.getvalue() and row.expr in out.getvalue()


@pytest.mark.usefixtures("table")
def test_text_and_bytecode() -> None:
    module = parse(PROGRAM)
    assert [d for d in pto.verify(module, "a3") if d.severity == "error"] == []
    for form in FORMS:
        text = to_text(module, form)
        assert "tsilu" in text and to_text(parse(text), form) == text
    assert "trowsquares" in to_text(pto.from_bytecode(pto.to_bytecode(module)))
    wrong = parse(PROGRAM.replace("xf32", "xi8"))
    assert any("tsilu" in d.message for d in pto.verify(wrong, "a3"))


@pytest.mark.usefixtures("table")
def test_both_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse(PROGRAM)
    reference, found = (data(np.random.default_rng(1)) for _ in range(2))
    result = pto.kernel(module, "k", target="a3", engine="reference").run(*reference, sanitize="all")
    assert result.ok, result.diagnostics
    x = reference[0].astype(np.float64)
    silu = x / (1 + np.exp(-x))
    np.testing.assert_allclose(reference[1], silu, rtol=1e-6)
    np.testing.assert_allclose(reference[2][:, 0], (silu**2).sum(1), rtol=1e-5)

    headers = tmp_path / "include"
    shutil.copytree(ROOT / "native" / "include", headers)
    for target, text in (
        ("meanings.hpp", intrinsics.generate()),
        ("regular.hpp", intrinsics.generate_regular()),
        ("legality.hpp", legality.generate()),
    ):
        (headers / "pto" / "ops" / target).write_text(text)
    monkeypatch.setattr(compiler, "include_dir", lambda: headers)
    with knobs.override(PTO_CACHE_DIR=str(tmp_path / "cache")):
        pto.kernel(module, "k", target="a3", engine="cpp")(*found)
    np.testing.assert_array_max_ulp(found[1], reference[1], 3)  # one of exp, and what becomes of it
    np.testing.assert_allclose(found[2], reference[2], rtol=1e-6)


@pytest.mark.usefixtures("table")
def test_planned_and_synchronised() -> None:
    text = pto.emit_cpp(parse(PROGRAM), target="a3", insert_sync=True)
    calls = [
        line.strip()
        for line in text.splitlines()
        if line.strip().startswith(("T", "set_flag", "wait_flag", "pipe"))
    ]
    at = {
        name: next(i for i, c in enumerate(calls) if c.startswith(name))
        for name in ("TLOAD", "TSILU", "TROWSQUARES", "TSTORE")
    }
    assert at["TLOAD"] < at["TSILU"] < at["TROWSQUARES"] < at["TSTORE"]
    between = calls[at["TLOAD"] + 1 : at["TSILU"]]
    assert any(c.startswith("wait_flag(PIPE_MTE2, PIPE_V") for c in between), text
