"""The vectorisable functions of ops/math.hpp: stated error bounds, special values, and that loops over them
become vector code under the flags that kernels are compiled with."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from .instructions import COMPILER, INCLUDE

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

#: Largest error in units of the last place: where the result is normal, and where it is subnormal.
BOUNDS = {
    "exp": (0.69, 0.78), "log": (0.86, 0.0), "sqrt": (0.0, 0.0), "rsqrt": (0.0, 0.0), "pow": (0.5001, 0.5001),
    "fmod": (0.0, 0.0),
}  # fmt: skip

#: Every so many floats; 1 takes minutes.
STEP = 997

LOOPS = """\
#include "pto/ops/math.hpp"
#define LOOP(name, call) extern "C" void name(float* __restrict out, const float* a, const float* b, int n) {{ \\
  for (int i = 0; i < n; ++i) out[i] = pto::detail::math::call; }}
LOOP({name}_all, {call})
"""
CALLS = {"exp": "exp(a[i])", "log": "log(a[i])", "sqrt": "sqrt(a[i])", "rsqrt": "rsqrt(a[i])",
         "pow": "pow(a[i], b[i])"}  # fmt: skip


def compiled(source: Path, target: Path, *flags: str) -> str:
    """Compile; what the compiler says."""
    assert COMPILER is not None
    command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-ffp-contract=off", *flags, f"-I{INCLUDE}"]
    done = subprocess.run(
        [*command, str(source), "-o", str(target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]
    return done.stderr


@pytest.mark.parametrize("machine", ["native", "x86-64"])
def test_errors_stay_within_the_stated_bounds(machine: str, tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("names an instruction set of x86-64")
    program = tmp_path / "ulp"
    compiled(Path(__file__).parent / "headers/math_ulp.cpp", program, "-O2", f"-march={machine}")
    out = subprocess.run([program, str(STEP)], capture_output=True, text=True, check=True)
    print(out.stdout)
    measured = {words[0]: words[1:] for line in out.stdout.splitlines() if (words := line.split())}
    assert measured.keys() == BOUNDS.keys()
    for name, (normal, subnormal, wrong, *where) in measured.items():
        assert int(wrong) == 0, f"{name}: {wrong} special values are not C's: {out.stderr}"
        assert float(normal) <= BOUNDS[name][0], f"{name} is off by {normal} at {where}"
        assert float(subnormal) <= BOUNDS[name][1], f"{name} is off by {subnormal} of the smallest number"
    # The bounds say something: none is far above what a sample shows.
    assert float(measured["exp"][0]) > 0.55 and float(measured["log"][0]) > 0.7


@pytest.mark.parametrize("name", CALLS)
def test_loops_become_vector_code(name: str, tmp_path: Path) -> None:
    if COMPILER is None or "g++" not in COMPILER or platform.machine() != "x86_64":
        pytest.skip("asks g++ what it vectorised")
    source = tmp_path / "loops.cpp"
    source.write_text(LOOPS.format(name=name, call=CALLS[name]))
    flags = (
        "-O2",
        "-ftree-vectorize",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-march=haswell",
        "-c",
        "-fopt-info-vec",
    )
    said = compiled(source, tmp_path / "loops.o", *flags)
    assert "loop vectorized" in said, f"{name}: {said}"
