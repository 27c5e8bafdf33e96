"""`pto build`: libraries from programs and from C++, and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto import knobs
from pto.cli.main import main
from pto.engine.compiled.library import Library

TRIPLE = """\
#include "triple.hpp"
/* __global__ AICORE void commented(int x) {} */
template <class T>
__global__ AICORE void generic(T* x) { *x = T(3) * *x; }
__global__ AICORE void triple(__gm__ float* x, int32_t n) {
  for (int32_t i = 0; i < n; ++i) x[i] = times_three(x[i]);
}
extern "C" __global__ AICORE void where(__gm__ int64_t* out) { out[get_block_idx()] = get_block_num(); }
"""
HEADER = """\
#pragma once
#include "pto/core/machine.hpp"
#include "pto/core/macros.hpp"
inline float times_three(float x) { return 3 * x; }
"""
PROGRAM = """module attributes {pto.target_arch = "a3"} {
func.func @put(%out: !pto.ptr<i32>, %x: i32) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  pto.store_scalar %x, %out[%c0] : !pto.ptr<i32>, i32
  return
}
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Any:
    with knobs.override(PTO_CACHE_DIR=str(tmp_path / "cache")):
        yield


@pytest.fixture
def triple(tmp_path: Path) -> Path:
    (tmp_path / "triple.hpp").write_text(HEADER)
    path = tmp_path / "k.cpp"
    path.write_text(TRIPLE)
    return path


def test_a_cpp_file_with_all_its_kernels(triple: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = triple.with_suffix(".so")
    assert main(["build", str(triple)]) == 0
    assert capsys.readouterr().out.startswith(f"{out}: triple, where (")
    library = Library(str(out))
    x = np.arange(4, dtype=np.float32)
    assert library.call("pto_launch_triple", [x.ctypes.data, 4])[:2] == (0, "")
    assert x.tolist() == [0, 3, 6, 9]
    blocks = np.zeros(3, np.int64)
    assert library.call("pto_launch_where", [blocks.ctypes.data], 3)[:2] == (0, "")
    assert blocks.tolist() == [3, 3, 3]


def test_a_program(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text(PROGRAM)
    out = tmp_path / "lib.so"
    assert main(["build", str(path), "-o", str(out), "-q", "--checked"]) == 0
    x = np.zeros(1, np.int32)
    assert Library(str(out)).call("pto_launch_put", [x.ctypes.data, 7])[:2] == (0, "")
    assert x[0] == 7


def test_e2404_no_such_kernel(triple: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(triple), "--entry", "tripel"]) == 1
    said = capsys.readouterr().err
    assert "error[PTO-E2404]: no kernel 'tripel'" in said and "did you mean 'triple'" in said
    assert main(["build", str(triple), "--entry", "generic"]) == 1
    assert "no kernel 'generic'" in capsys.readouterr().err
    empty = tmp_path / "e.cpp"
    empty.write_text("int x;\n")
    assert main(["build", str(empty)]) == 1
    assert "mark the function __global__" in capsys.readouterr().err
    assert not empty.with_suffix(".so").exists()


def test_e2402_the_place_of_an_error(triple: Path, capsys: pytest.CaptureFixture[str]) -> None:
    triple.write_text(TRIPLE.replace("x[i] = times", "x[i] = tymes"))
    assert main(["build", str(triple), "--diagnostics", "json"]) == 1
    (d,) = json.loads(capsys.readouterr().err)
    assert d["code"] == "PTO-E2402" and "tymes_three" in d["message"]
    assert (d["file"], d["line"]) == (str(triple), 6)


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(tmp_path / "no.cpp")]) == 1
    assert "PTO-E0001" in capsys.readouterr().err


def test_an_output_that_cannot_be_written(
    triple: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(triple), "-o", str(tmp_path / "no" / "k.so")]) == 1
    assert "PTO-E0002" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["k.o", "k.ptobc", "k.cpp", "k.pto"])
def test_an_output_that_would_not_be_what_its_name_says(
    triple: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["build", str(triple), "-o", name])
    assert ended.value.code == 2
    assert f"-o {name}: this writes a library" in capsys.readouterr().err
