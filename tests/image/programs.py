"""Programs of the tests as files of images, made once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pto
from pto.driver import Options, lowered
from pto.engine.native import images
from pto.image.container import ImageFile
from pto.image.format import CALL, Image, ImageCode
from pto.image.format import NAMES as OPCODES
from pto.image.operands import INSTRUCTIONS, NUMBERS, operands_of, size_of, sized, spread
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

#: Memrefs as arguments, parts, tiles and by element; an array that a callee changes; a group; a map that divides.
VALUES = """
!some = memref<?x16xf32, #pto.address_space<gm>>
!odd = memref<2x8xf32, strided<[32, 2], offset: ?>, #pto.address_space<gm>>
!tile = memref<4x16xf32, #pto.address_space<vec>>
!half = memref<4x8xf32, strided<[16, 1]>, #pto.address_space<vec>>
!view = !pto.partition_tensor_view<4x16xf32>
!rank = !pto.partition_tensor_view<2x16xf32>
module {
  func.func private @negate(%m: !half, %a: !pto.local_array<3x2xi32>, %i: index, %n: i32) {
    pto.tneg ins(%m : !half) outs(%m : !half)
    pto.local_array_set %a[%i, %i], %n : !pto.local_array<3x2xi32>, i32
    return
  }
  func.func @k(%x: !some, %y: !pto.ptr<f32>, %out: !pto.ptr<i32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %c7 = arith.constant 7 : i32
    %rows = memref.dim %x, %c0 : !some
    %far = affine.apply affine_map<(d0)[s0] -> ((d0 - 5) floordiv 2 + d0 mod 3 + d0 ceildiv 4 - s0)>(%rows)[%c1]
    %far32 = arith.index_cast %far : index to i32
    pto.store_scalar %far32, %out[%c0] : !pto.ptr<i32>, i32
    %odd = memref.subview %x[1, %c1] [2, 8] [2, 2] : !some to !odd
    %e = memref.load %odd[%c1, %c2] : !odd
    memref.store %e, %x[%c0, %c0] : !some
    %flat = memref.reinterpret_cast %x to offset: [%c16], sizes: [4, 16], strides: [16, 1] : !some to memref<4x16xf32, strided<[16, 1], offset: ?>, #pto.address_space<gm>>
    %vy = pto.make_tensor_view %y, shape = [%c4, %c16], strides = [%c16, %c1] : !pto.tensor_view<4x16xf32>
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c4, %c16] : !pto.tensor_view<4x16xf32> -> !view
    %first = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c2, %c16] : !pto.tensor_view<4x16xf32> -> !rank
    %second = pto.partition_view %vy, offsets = [%c2, %c0], sizes = [%c2, %c16] : !pto.tensor_view<4x16xf32> -> !rank
    %t = memref.alloc() : !tile
    %half = memref.subview %t[0, 0] [4, 8] [1, 1] : !tile to !half
    pto.tload ins(%flat : memref<4x16xf32, strided<[16, 1], offset: ?>, #pto.address_space<gm>>) outs(%t : !tile)
    %array = pto.declare_local_array -> !pto.local_array<3x2xi32>
    func.call @negate(%half, %array, %c1, %c7) : (!half, !pto.local_array<3x2xi32>, index, i32) -> ()
    %seven = pto.local_array_get %array[%c1, %c1] : !pto.local_array<3x2xi32> -> i32
    pto.store_scalar %seven, %out[%c1] : !pto.ptr<i32>, i32
    pto.tstore ins(%t : !tile) outs(%py : !view)
    %group = pto.make_group(%first, %second : !rank, !rank) {root = 0 : i32} -> !pto.group<2>
    pto.treduce %group, %first {op = #pto.reduce_op<Sum>} : (!pto.group<2>, !rank)
    return
  }
}
"""

#: A convolution tile: only programs that are not verified have one.
CONVOLUTION = """
!map = !pto.conv_tile<mat, 1x1x4x4x16xf16, NC1HWC0>
!cols = !pto.tile_buf<left, 16x16xf16, slayout=row_major>
!weights = !pto.tile_buf<right, 16x16xf16, slayout=col_major>
!there = !pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>
!sum = !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
!view = !pto.partition_tensor_view<1x1x4x4x16xf16>
module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !pto.ptr<f16>, %w: !pto.ptr<f16>, %y: !pto.ptr<f32>) attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<cube>} {
    %zero = arith.constant 0 : i64
    %far = arith.constant 4096 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %vx = pto.make_tensor_view %x, shape = [%c1, %c1, %c4, %c4, %c16], strides = [%c256, %c256, %c64, %c16, %c1] {layout = #pto.layout<nc1hwc0>} : !pto.tensor_view<1x1x4x4x16xf16>
    %px = pto.partition_view %vx, offsets = [%c0, %c0, %c0, %c0, %c0], sizes = [%c1, %c1, %c4, %c4, %c16] : !pto.tensor_view<1x1x4x4x16xf16> -> !view
    %vw = pto.make_tensor_view %w, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf16>
    %pw = pto.partition_view %vw, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf16> -> !pto.partition_tensor_view<16x16xf16>
    %vy = pto.make_tensor_view %y, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> !pto.partition_tensor_view<16x16xf32>
    %m = pto.alloc_tile addr = %zero : !map
    %a = pto.alloc_tile addr = %zero : !cols
    %b = pto.alloc_tile addr = %far : !there
    %r = pto.alloc_tile addr = %zero : !weights
    %s = pto.alloc_tile addr = %zero : !sum
    pto.tload ins(%px : !view) outs(%m : !map)
    pto.tload ins(%pw : !pto.partition_tensor_view<16x16xf16>) outs(%b : !there)
    pto.timg2col ins(%m : !map) outs(%a : !cols) {fmatrix_mode = "FMATRIX_A_AUTO"}
    pto.tmov ins(%b : !there) outs(%r : !weights)
    pto.tmatmul ins(%a, %r : !cols, !weights) outs(%s : !sum)
    pto.tstore ins(%s : !sum) outs(%py : !pto.partition_tensor_view<16x16xf32>)
    return
  }
}
"""


def file_of(module: Module, name: str = "k.elf") -> ImageFile:
    done = lowered(module, None, Options(check="none", passes="always")).sound()
    return images.file_of(module, done, name)


@cache
def two() -> ImageFile:
    return file_of(pto.parse(TWO))


@cache
def example(name: str) -> ImageFile:
    return file_of(pto.parse(EXAMPLES / f"{name}.pto"))


@cache
def values() -> ImageFile:
    """Arrays, groups, memrefs."""
    return file_of(pto.parse(VALUES))


@cache
def convolution() -> ImageFile:
    return file_of(pto.parse(CONVOLUTION))


def every() -> list[ImageFile]:
    return [two(), values(), convolution(), *map(example, NAMES)]


def walk(image: Image, code: ImageCode) -> list[tuple[int, str, tuple[int, ...]]]:
    """Instructions of a code: where each begins, its name and its operands."""
    found, at = list[tuple[int, str, tuple[int, ...]]](), 0
    while at < len(code.words):
        opcode, length = code.words[at] & 0xFFFFFF, code.words[at] >> 24
        name = OPCODES[opcode] if opcode in OPCODES else image.calls[opcode - CALL]
        found.append((at, name, code.words[at + 1 : at + length]))
        at += length
    return found


def inside(image: Image) -> None:
    """Verify the promises of the check with the table alone: every operand lies in its frame, every jump
    leads to an instruction."""
    for code in image.codes:
        walked = walk(image, code)
        starts = {at for at, _, _ in walked}
        assert walked[-1][1] == "end"
        for at, name, words in walked:
            operands = INSTRUCTIONS.get(code.words[at] & 0xFFFFFF)
            operands = operands_of(name) if operands is None else operands
            assert operands is not None
            for operand, value in zip(spread(operands, words) or (), words, strict=True):
                if operand.kind == "target":
                    assert value in starts
                elif operand.kind == "place":
                    assert value + words[2] <= len(code.frame)
                elif operand.kind == "views":
                    assert words[3] < words[2] and value + 88 * words[2] <= len(code.frame)
                elif operand.kind not in NUMBERS and operand.kind != "text":
                    kind = sized(operand.kind, spread(operands, words) or (), words)
                    assert value + size_of(kind)[0] <= len(code.frame)
        for offset, view in code.arguments:
            assert offset + (88 if view else 8) <= len(code.frame)
