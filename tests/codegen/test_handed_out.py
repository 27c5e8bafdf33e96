"""Values that leave a function or a block, and windows of boxed tiles: shapes that real programs have."""

from __future__ import annotations

from .shapes import emit, has, in_order


def test_a_returned_view_has_run_time_strides() -> None:
    text = emit("""\
func.func @other() {
  return
}
func.func @k(%p: !pto.ptr<f32>, %m: index) -> !pto.partition_tensor_view<?x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %v = pto.make_tensor_view %p, shape = [%c32, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>
  %w = pto.partition_view %v, offsets = [%c1, %c0], sizes = [%m, %c32]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x32xf32>
  return %w : !pto.partition_tensor_view<?x32xf32>
}
""")
    type = (
        "GlobalTensor<float, pto::Shape<1, 1, 1, -1, 32>, pto::Stride<-1, -1, -1, -1, -1>, pto::Layout::ND>"
    )
    assert has(text, f"{type} k(")
    assert has(text, f"return {type}(")


def test_a_value_of_the_last_block_is_returned_inside_it() -> None:
    text = emit("""\
func.func @other() {
  return
}
func.func @k(%c: i1, %x: i32) -> i32 {
  cf.cond_br %c, ^a, ^b(%x : i32)
^a:
  %y = arith.addi %x, %x : i32
  cf.br ^b(%y : i32)
^b(%z: i32):
  %s = arith.addi %z, %x : i32
  %t = arith.muli %s, %s : i32
  return %t : i32
}
""")
    in_order(text, "label2:", "int32_t %s = ", "return ", "  }", "}")
    assert text.rstrip().endswith("  }\n}")


def test_a_window_of_a_boxed_tile_is_as_wide_as_it_says() -> None:
    acc = "!pto.tile_buf<loc=acc, dtype=f32, rows=32, cols={0}, v_row=32, v_col={0}, blayout=col_major, "
    acc += "slayout=row_major, fractal=1024, pad=0>"
    text = emit(f"""\
func.func @k(%p: !pto.ptr<f32>) {{
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %t = pto.alloc_tile : {acc.format(64)}
  %w = pto.subview %t[%c0, %c32] sizes [32, 32] : {acc.format(64)}
  %v = pto.make_tensor_view %p, shape = [%c32, %c32], strides = [%c32, %c1] : !pto.tensor_view<32x32xf32>
  pto.tstore ins(%w : {acc.format(32)}) outs(%v : !pto.tensor_view<32x32xf32>)
  return
}}
""")
    assert has(text, "Tile<TileType::Acc, float, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor, 1024,")


def test_a_configuration_may_number_its_words() -> None:
    text = emit("""\
func.func @k(%p: memref<16x16xf16, #pto.address_space<gm>>) {
  %m = memref.alloc() : memref<16x16xf16, #pto.address_space<vec>>
  %t = pto.bind_tile %m {config = #pto.tile_buf_config<blayout=1 : i32, slayout=1 : i32, s_fractal_size=512,
      pad=2 : i32>} : memref<16x16xf16, #pto.address_space<vec>> -> memref<16x16xf16, #pto.address_space<vec>>
  pto.tload ins(%p : memref<16x16xf16, #pto.address_space<gm>>)
      outs(%t : memref<16x16xf16, #pto.address_space<vec>>)
  return
}
""")
    assert has(text, "BLayout::ColMajor, 16, 16, SLayout::RowMajor, 512, PadValue::Max, CompactMode::Null>")
