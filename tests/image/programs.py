"""Programs of the tests as files of images, made once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pto
from pto.driver import Options, lowered
from pto.engine.native import images
from pto.image.container import File
from pto.ir.core import Module

EXAMPLES = Path(__file__).parents[2] / "examples"

#: Examples that together have tiles of all layouts, registers, masks, FIFOs, both kinds of core, control flow.
NAMES = (
    "01_vec_add", "04_matmul", "06_loop_double_buffer", "07_mixed_sections", "08_vector_micro", "kernels/flash_attention",
    "kernels/mixed_fifo", "kernels/topk", "kernels/layer_norm", "micro/topk", "micro/unaligned_copy",
    "micro/to_bf16", "runtime/python/cluster_pipe",
)  # fmt: skip

#: Two kernels; tiles that have their columns side by side; control flow; something printed.
TWO = """\
module attributes {pto.target_arch = "cpu"} {
  func.func @count(%out: !pto.ptr<i32>, %n: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (i32) {
      %more = arith.addi %s, %one : i32
      scf.yield %more : i32
    }
    pto.print ins("%d sums\\n", %sum : i32)
    pto.store_scalar %sum, %out[%c0] : !pto.ptr<i32>, i32
    return
  }
  func.func @turn(%v: !pto.tensor_view<16x8xf32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c8] : !pto.tensor_view<16x8xf32> -> !pto.partition_tensor_view<16x8xf32>
    %a = pto.alloc_tile : !pto.tile_buf<vec, 16x8xf32>
    %b = pto.alloc_tile : !pto.tile_buf<vec, 16x8xf32, blayout=col_major>
    pto.tload ins(%p : !pto.partition_tensor_view<16x8xf32>) outs(%a : !pto.tile_buf<vec, 16x8xf32>)
    pto.texp ins(%a : !pto.tile_buf<vec, 16x8xf32>) outs(%b : !pto.tile_buf<vec, 16x8xf32, blayout=col_major>)
    pto.tadd ins(%a, %b : !pto.tile_buf<vec, 16x8xf32>, !pto.tile_buf<vec, 16x8xf32, blayout=col_major>) outs(%a : !pto.tile_buf<vec, 16x8xf32>)
    pto.tstore ins(%a : !pto.tile_buf<vec, 16x8xf32>) outs(%p : !pto.partition_tensor_view<16x8xf32>)
    return
  }
}
"""


def file_of(module: Module, name: str = "k.elf") -> File:
    done = lowered(module, None, Options(check="none", passes="always")).sound()
    return images.file_of(module, done, name)


@cache
def two() -> File:
    return file_of(pto.parse(TWO))


@cache
def example(name: str) -> File:
    return file_of(pto.parse(EXAMPLES / f"{name}.pto"))


def every() -> list[File]:
    return [two(), *map(example, NAMES)]
