"""`pto.kernel(engine="cpp")` and `pto run --engine cpp`: the same arguments and errors as the reference engine."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto import DiagnosticError, knobs
from pto.cli.main import main
from pto.engine.cpp import kernel as cpp

HEAD = 'module attributes {pto.target_arch = "a3"} {\n'

SCALE = (
    HEAD
    + """
func.func @scale(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index, %by: f32, %small: f16, %flag: i1, %k: i8)
    attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %wide = arith.extf %small : f16 to f32
  %sum = arith.addf %by, %wide : f32
  %block = pto.get_block_idx
  %b = arith.index_cast %block : i64 to index
  %from = arith.muli %b, %n : index
  %to = arith.addi %from, %n : index
  scf.if %flag {
    scf.for %i = %from to %to step %c1 {
      %v = pto.load_scalar %x[%i] : !pto.ptr<f32> -> f32
      %w = arith.mulf %v, %sum : f32
      %ki = arith.sitofp %k : i8 to f32
      %z = arith.addf %w, %ki : f32
      pto.store_scalar %z, %y[%i] : !pto.ptr<f32>, f32
    }
  }
  return
}
}
"""
)

DIVIDE = (
    HEAD
    + """
func.func @double(%out: !pto.ptr<i32>, %by: i32) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : i32
  %q = arith.divsi %c7, %by : i32
  pto.store_scalar %q, %out[%c0] : !pto.ptr<i32>, i32
  return
}
}
"""
)

SAY = (
    HEAD
    + """
func.func @say(%x: f32) attributes {pto.entry} {
  pto.print ins("x = %5.2f!\\n", %x : f32)
  return
}
}
"""
)


def on_both(text: str, make: Any, **options: Any) -> tuple[list[Any], list[Any]]:
    """Arguments after a run on either engine."""
    results = []
    for engine in ("cpp", "reference"):
        args = make()
        pto.kernel(pto.parse(text), engine=engine)(*args, **options)
        results.append(args)
    return results[0], results[1]


@pytest.fixture(scope="module")
def scale() -> Any:
    return pto.kernel(pto.parse(SCALE), engine="cpp")


def test_arrays_and_scalars(scale: Any) -> None:
    x = np.arange(12, dtype=np.float32)
    y = np.zeros_like(x)
    scale(x, y, 4, 1.5, 0.25, True, -3, blocks=3, threads=2)
    assert np.array_equal(y, x * np.float32(1.75) - 3)
    z = np.zeros_like(x)
    scale(x, z, 4, 1.5, 0.25, False, -3, blocks=3)
    assert not z.any()


def test_strided_arrays_are_copied_in_and_back(scale: Any) -> None:
    x = np.arange(24, dtype=np.float32)[::2]
    y = np.zeros(24, np.float32)
    scale(x, y[::2], 12, 2.0, 0.0, 1, 0)
    assert np.array_equal(y[::2], 2 * x) and not y[1::2].any()


def test_a_read_only_array_is_read_and_never_written(scale: Any) -> None:
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = False
    y = np.zeros(4, np.float32)
    scale(x, y, 4, 1.0, 0.0, True, 0)
    assert np.array_equal(x, y)
    y = np.zeros(4, np.float32)
    y.flags.writeable = False
    result = scale.run(x, y, 4, 3.0, 0.0, True, 0)
    (d,) = result.diagnostics
    assert (d.code, d.message) == ("PTO-E2102", "writes to %y, which was given as a read-only array")
    assert not y.any()


@pytest.mark.parametrize(
    "args",
    [(), (np.zeros(4, np.float64), np.zeros(4, np.float32), 4, 1.0, 1.0, 1, 1), (1, 2, 3, 4, 5, 6, 7),
     (np.zeros(4, np.float32), np.zeros(4, np.float32), 4, 1.0, 1.0, 1, 1000),
     (np.zeros(4, np.float32), np.zeros(4, np.float32), 4.5, "x", 1.0, 1, 1)],
)  # fmt: skip
def test_bad_arguments_are_the_same_errors(scale: Any, args: Any) -> None:
    exact = pto.kernel(pto.parse(SCALE), engine="reference")
    said = []
    for k in (scale, exact):
        with pytest.raises(DiagnosticError) as error:
            k(*args)
        said.append([d.as_json() for d in error.value.diagnostics])
    assert said[0] == said[1]


@pytest.mark.parametrize("options", [{"blocks": 0}, {"subblocks": 3}, {"threads": 0}, {"threads": True}])
def test_bad_options(scale: Any, options: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        scale(np.zeros(1, np.float32), np.zeros(1, np.float32), 1, 1.0, 1.0, 1, 1, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"sanitize": "race"},
        {"schedule": 0},
        {"shadow": "f64"},
        {"memory_map": True},
        {"max_steps": 5},
        {"watchers": [pto.Watcher()]},
    ],
)
def test_e2403_options_of_the_reference_engine(scale: Any, options: Any) -> None:
    x = np.zeros(1, np.float32)
    with pytest.raises(DiagnosticError) as error:
        scale(x, x, 1, 1.0, 1.0, 1, 1, **options)
    d = error.value.diagnostics[0]
    assert (d.code, d.message) == ("PTO-E2403", f"engine cpp has no {next(iter(options))}")


def test_an_unknown_engine() -> None:
    with pytest.raises(ValueError, match="unknown engine 'c'; expected one of native, reference, cpp"):
        pto.kernel(pto.parse(SCALE), engine="c")


def test_a_division_by_zero_is_an_error_of_the_program() -> None:
    k = pto.kernel(pto.parse(DIVIDE), engine="cpp")
    out = np.zeros(1, np.int32)
    k(out, 3)
    assert out[0] == 2
    (d,) = k.run(out, 0, blocks=2).diagnostics
    assert d.code == "PTO-E2102" and "divided by zero" in d.message and d.message.endswith(" (block 0)")
    assert d.span is not None and "arith.divsi" in d.span.source.line(d.span.place[0])


STEPS = """\
module {
  func.func @k(%x: !pto.ptr<f32>, %n: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %v = arith.constant 1.0 : f32
    scf.for %i = %c0 to %c4 step %n {
      pto.store_scalar %v, %x[%i] : !pto.ptr<f32>, f32
    }
    return
  }
}
"""


def test_a_step_of_zero_is_an_error_of_the_program() -> None:
    """The loop would not end."""
    for engine in ("reference", "cpp"):
        k, x = pto.kernel(pto.parse(STEPS), engine=engine), np.zeros(4, np.float32)
        k(x, 2)
        assert x.tolist() == [1, 0, 1, 0]
        for step in (-1, 0):  # the first leaves the array where nothing else stops it
            (d,) = k.run(x, step).diagnostics
            assert d.code == "PTO-E2102" and f"a loop step of {step}, which must be positive" in d.message
            assert d.span is not None and "scf.for" in d.span.source.line(d.span.place[0])


SIGNALS = (
    f"""
import os, signal
import numpy as np
import pto
DIVIDE = {DIVIDE!r}
"""
    + """
seen = []
for number in (signal.SIGTRAP, signal.SIGFPE):
    signal.signal(number, lambda number, frame: seen.append(number))
k = pto.kernel(pto.parse(DIVIDE), engine="cpp")
for _ in range(2):
    (d,) = k.run(np.zeros(1, np.int32), 0).diagnostics
    assert d.code == "PTO-E2102"
    for number in (signal.SIGTRAP, signal.SIGFPE):
        os.kill(os.getpid(), number)
assert seen == [signal.SIGTRAP, signal.SIGFPE] * 2, seen
"""
)


def test_signals_of_others_reach_them() -> None:
    """Before and after kernels that fault, which they go on to be caught for."""
    subprocess.run([sys.executable, "-c", SIGNALS], check=True, timeout=600)


def test_prints(tmp_path: Path) -> None:
    texts = []
    for engine in ("cpp", "reference"):
        out = io.StringIO()
        pto.kernel(pto.parse(SAY), engine=engine)(2.5, out=out, blocks=2)
        texts.append(out.getvalue())
    assert texts[0] == texts[1] == "x =  2.50!\nx =  2.50!\n"


def test_the_second_kernel_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pto.engine.cpp.compiler.headers_digest", lambda: "headers that do not change")
    path = tmp_path / "other-name.pto"
    path.write_text("// a comment more\n" + SAY)
    with knobs.override(PTO_CACHE_DIR=str(tmp_path)):
        first = pto.kernel(pto.parse(SAY), engine="cpp")
        again = pto.kernel(pto.parse(path), engine="cpp")
    assert again.built.cached and again.built.path == first.built.path
    assert not first.built.cached


# -- C++ that the compiler rejects --------------------------------------------------------------------------


def test_e2402_a_compiler_error_names_the_line_of_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "k.pto"
    path.write_text(DIVIDE)
    real = cpp.compiled_cpp

    def broken(done: Any, lines: bool = False) -> str:
        return real(done, lines).replace(" 7;", " seven;")

    monkeypatch.setattr(cpp, "compiled_cpp", broken)
    with pytest.raises(DiagnosticError) as error:
        pto.kernel(pto.parse(path), engine="cpp")
    d = error.value.diagnostics[0]
    assert d.code == "PTO-E2402" and "seven" in d.message
    assert d.span is not None and d.span.source.name == str(path)
    assert "7 : i32" in d.span.source.line(d.span.place[0])


# -- the command line ---------------------------------------------------------------------------------------


def test_pto_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "k.pto"
    program.write_text(SCALE)
    np.save(tmp_path / "x.npy", np.arange(8, dtype=np.float32))
    out = tmp_path / "y.npy"
    command = ["run", str(program), "--engine", "cpp", "--blocks", "2", "--threads", "2", "--"]
    arguments = [f"@{tmp_path / 'x.npy'}", f"f32:8={out}", "4", "2.0", "1.0", "1", "5"]
    assert main([*command, *arguments]) == 0
    assert "@scale: ok (2 blocks, target a2a3" in capsys.readouterr().out
    assert np.array_equal(np.load(out), np.arange(8, dtype=np.float32) * 3 + 5)


def test_pto_run_refuses_sanitizers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "k.pto"
    program.write_text(SAY)
    assert main(["run", str(program), "--engine", "cpp", "--sanitize", "all", "--", "1.5"]) == 1
    assert "error[PTO-E2403]: engine cpp has no --sanitize" in capsys.readouterr().err


def test_small_floats_as_scalars() -> None:
    text = (
        HEAD
        + """
func.func @put(%y: !pto.ptr<bf16>, %z: !pto.ptr<f16>, %a: bf16, %b: f16) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  pto.store_scalar %a, %y[%c0] : !pto.ptr<bf16>, bf16
  pto.store_scalar %b, %z[%c0] : !pto.ptr<f16>, f16
  return
}
}
"""
    )
    got, want = on_both(
        text, lambda: [np.zeros(1, ml_dtypes.bfloat16), np.zeros(1, np.float16), 1 / 3, -65519]
    )
    assert got[0][0] == want[0][0] == ml_dtypes.bfloat16(1 / 3)
    assert got[1][0] == want[1][0] == np.float16(-65504)


VIEWS = (
    HEAD
    + """
func.func @swap(%x: !pto.tensor_view<?x64xf32>, %m: memref<4x64xf32, #pto.address_space<gm>>, %d: !pto.ptr<i64>)
    attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %rows = pto.get_tensor_view_dim %x, %c0 : !pto.tensor_view<?x64xf32> -> index
  %wide = arith.index_cast %rows : index to i64
  pto.store_scalar %wide, %d[%c0] : !pto.ptr<i64>, i64
  %t = pto.alloc_tile : !pto.tile_buf<vec, 4x64xf32>
  %p = pto.partition_view %x, offsets = [%c1, %c0], sizes = [%c4, %c64] : !pto.tensor_view<?x64xf32> -> !pto.partition_tensor_view<4x64xf32>
  pto.tload ins(%p : !pto.partition_tensor_view<4x64xf32>) outs(%t : !pto.tile_buf<vec, 4x64xf32>)
  pto.tadds ins(%t, %one : !pto.tile_buf<vec, 4x64xf32>, f32) outs(%t : !pto.tile_buf<vec, 4x64xf32>)
  pto.tstore ins(%t : !pto.tile_buf<vec, 4x64xf32>) outs(%p : !pto.partition_tensor_view<4x64xf32>)
  %e = memref.load %m[%c1, %c0] : memref<4x64xf32, #pto.address_space<gm>>
  return
}
}
"""
).replace("  %c0 =", "  %one = arith.constant 1.0 : f32\n  %c0 =", 1)


def test_views_and_memrefs_as_arguments() -> None:
    def make() -> list[Any]:
        x = np.arange(7 * 64, dtype=np.float32).reshape(7, 64)
        return [x, np.zeros((4, 64), np.float32), np.zeros(1, np.int64)]

    got, want = on_both(VIEWS, make)
    assert got[2][0] == 7 and np.array_equal(got[0], want[0])
    assert np.array_equal(got[0][1:5], make()[0][1:5] + 1) and np.array_equal(got[0][5:], make()[0][5:])
