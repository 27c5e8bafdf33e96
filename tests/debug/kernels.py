"""Kernels that the tests of the debugger stop: a loop, and one for each way to write kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pto
from pto.engine import registry

EXAMPLES = Path(__file__).parents[2] / "examples"

#: Three times: t += t and print, over calls, a branch and a loop. Lines count from 1.
LOOP = """\
!tile = !pto.tile_buf<vec, 4x16xf32, valid=3x10>
module attributes {pto.target_arch = "a3"} {
  func.func @twice(%u: !tile) {
    pto.tadd ins(%u, %u : !tile, !tile) outs(%u : !tile)
    return
  }
  func.func @k(%x: !pto.ptr<f32>, %n: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c10 = arith.constant 10 : index
    %at = arith.constant 0 : i64
    %v = pto.make_tensor_view %x, shape = [%c3, %c10], strides = [%c10, %c1] : !pto.tensor_view<3x10xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c3, %c10] : !pto.tensor_view<3x10xf32> -> !pto.partition_tensor_view<3x10xf32>
    %t = pto.alloc_tile addr = %at : !tile
    pto.tload ins(%p : !pto.partition_tensor_view<3x10xf32>) outs(%t : !tile)
    pto.barrier <PIPE_ALL>
    scf.for %i = %c0 to %n step %c1 {
      %odd = arith.remsi %i, %c3 : index
      func.call @twice(%t) : (!tile) -> ()
      pto.barrier <PIPE_V>
    }
    pto.barrier <PIPE_ALL>
    pto.tstore ins(%t : !tile) outs(%p : !pto.partition_tensor_view<3x10xf32>)
    return
  }
}
"""


def loop() -> Any:
    return pto.kernel(pto.parse(LOOP), engine="reference")


def loop_args(times: int = 3) -> list[Any]:
    return [np.arange(30, dtype=np.float32).reshape(3, 10), times]


class Case(NamedTuple):
    """A kernel in a file, the line of a sum or product, what its operands are called, and an element of the
    result."""

    path: Path
    line: int
    sources: tuple[str, str]
    target: str
    arrays: tuple[np.ndarray[Any, Any], ...]
    cores: int = 1

    @property
    def runs(self) -> bool:
        """Return True if the debugged engine takes such files."""
        kind = registry.kind_of(self.path) or "module"
        return any("debug" in e.options for e in registry.those_for(kind))


_A = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
_H = (np.arange(64 * 64, dtype=np.float32) % 5).reshape(64, 64).astype(np.float16)

CASES = {
    "pto": Case(EXAMPLES / "02_manual_flags.pto", 35, ("%ta", "%tb"), "%tc[0, 1]", (_A, _A, 0 * _A)),
    "mixed": Case(
        EXAMPLES / "07_mixed_sections.pto", 47, ("%l", "%r"), "%acc[0, 1]",
        (_H, np.eye(64, dtype=np.float16), np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)), 3,
    ),
    "cpp": Case(Path(__file__).with_name("add.cpp"), 23, ("x", "y"), "z[0, 1]", (_A, _A, 0 * _A)),
    "mixed cpp": Case(
        Path(__file__).with_name("mixed.cpp"), 30, ("x0", "y0"), "z[0, 1]",
        (_H[:32, :32].copy(), np.eye(32, dtype=np.float16), np.zeros((32, 32), np.float32),
         np.zeros((32, 32), np.float32)), 3,
    ),
}  # fmt: skip
