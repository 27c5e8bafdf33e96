"""FIFOs between cube and vector cores: pipe types, pushes and pops, the guard of pipes that are not split."""

from __future__ import annotations

from .shapes import body, emit, in_order, tile

ACC = "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>"
VEC = "!pto.tile_buf<vec, 8x16xf32>"


def one_way(pop: str, free: str, vector: str = "") -> str:
    """Cube to vector through global memory, with handles."""
    init = ("pto.initialize_l2g2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 8, flag_base = 0%s} "
            "(%%gm : !pto.ptr<f32>, %%buf : i32) -> !pto.pipe")  # fmt: skip
    return f"""\
func.func private @cube(%gm: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
  %buf = arith.constant 0 : i32
  %at = arith.constant 0 : i64
  %p = {init % ""}
  %t = pto.alloc_tile addr = %at : {ACC}
  pto.tpush(%t, %p : {ACC}, !pto.pipe) {{split = 1}}
  return
}}
func.func private @vector(%gm: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  %buf = arith.constant 0 : i32
  %p = {init % ""}
  %t = pto.declare_tile -> {VEC}
  {vector}
  pto.tpop(%t, %p : {VEC}, !pto.pipe) {{split = {pop}}}
  pto.tneg ins(%t : {VEC}) outs(%t : {VEC})
  pto.tfree(%p : !pto.pipe) {{split = {free}}}
  return
}}
func.func @k(%gm: !pto.ptr<f32>) attributes {{pto.entry}} {{
  func.call @cube(%gm) : (!pto.ptr<f32>) -> ()
  func.call @vector(%gm) : (!pto.ptr<f32>) -> ()
  return
}}
"""


def test_push_pop_and_free_with_handles() -> None:
    text = emit(one_way("1", "1"))
    pipe = "TPipe<0, Direction::DIR_C2V, 1024, 8, 8, false>"
    acc = tile("Acc", "float", 16, 16, blayout="ColMajor", slayout="RowMajor", fractal=1024)
    in_order(body(text, "cube"), "#if defined(__DAV_CUBE__)", f"auto %p = {pipe}(%, %z, %z);",
             f"TPUSH<{pipe}, {acc}, TileSplitAxis::TILE_UP_DOWN>(%p, %);", "#endif // __DAV_CUBE__")  # fmt: skip
    vector = body(text, "vector")
    vec = tile("Vec", "float", 8, 16)
    in_order(vector, "set_mask_norm();", f"auto %p = {pipe}(", f"{vec} %t;",
             f"TPOP<{pipe}, {vec}, TileSplitAxis::TILE_UP_DOWN>(%p, %t);", "TNEG(%t, %t);",
             f"TFREE<{pipe}, TileSplitAxis::TILE_UP_DOWN>(%p);")  # fmt: skip
    assert "TASSIGN" not in vector and "get_subblockid" not in vector


def frontend(target: str, split: int = 0, valid: str = "") -> str:
    """Both directions, as frontends write them."""
    gm = "gm_slot_buffer = %gm : !pto.ptr<f32>, " if target == "a3" else ""
    sent = "!pto.tile_buf<vec, 16x16xf32, blayout=col_major, slayout=row_major>"
    mat = "!pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>"
    got = f"!pto.tile_buf<vec, 16x16xf32{', valid=?x?' if valid else ''}>"
    return f"""\
func.func private @cube(%gm: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
  %v2c = pto.reserve_buffer {{name = "back", size = 4096, location = <mat>, auto = true}} -> i32
  %c2v = pto.import_reserved_buffer {{name = "there", peer_func = @vector}} -> i32
  pto.aic_initialize_pipe {{dir_mask = 3, slot_size = 1024}} ({gm}c2v_consumer_buf = %c2v : i32, v2c_consumer_buf = %v2c : i32)
  %acc = pto.alloc_tile : {ACC}
  pto.tpush_to_aiv(%acc : {ACC}) {{split = {split}}}
  %m = pto.tpop_from_aiv {{split = {split}}} -> {mat}
  pto.tfree_from_aiv {{split = {split}}}
  return
}}
func.func private @vector(%gm: !pto.ptr<f32>, %r: index) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  %c2v = pto.reserve_buffer {{name = "there", size = 4096, location = <vec>, auto = true}} -> i32
  %v2c = pto.import_reserved_buffer {{name = "back", peer_func = @cube}} -> i32
  pto.aiv_initialize_pipe {{dir_mask = 3, slot_size = 1024}} ({gm}c2v_consumer_buf = %c2v : i32, v2c_consumer_buf = %v2c : i32)
  %s = pto.alloc_tile : {sent}
  %t = pto.tpop_from_aic{valid} {{split = {split}}} -> {got}
  pto.tneg ins(%t : {got}) outs(%t : {got})
  pto.tfree_from_aic {{split = {split}}}
  pto.tpush_to_aic(%s : {sent}) {{split = {split}}}
  return
}}
func.func @k(%gm: !pto.ptr<f32>, %r: index) attributes {{pto.entry}} {{
  func.call @cube(%gm) : (!pto.ptr<f32>) -> ()
  func.call @vector(%gm, %r) : (!pto.ptr<f32>, index) -> ()
  return
}}
"""


def test_frontend_pipes_on_a3() -> None:
    text = emit(frontend("a3"), "a3")
    assert text.count("auto ") == 2 and text.count("= TPipe<0, Direction::DIR_BOTH, 1024, 4, 4, true>(") == 2
    in_order(body(text, "cube"), "__gm__ float* %gm)", "TPipe<0, Direction::DIR_BOTH, 1024, 4, 4, true>(%gm, %, %);",
             "TPUSH<", "TPOP<", "TFREE<")  # fmt: skip
    assert "get_subblockid" not in text


def test_frontend_pipes_on_a5() -> None:
    text = emit(frontend("a5"), "a5")
    pipe = "TPipe<0, Direction::DIR_BOTH, 1024, 4, 2, true>"
    vector = body(text, "vector")
    in_order(vector, "__gm__ void * %null = nullptr;", "set_vector_mask(-1, -1);", "if (get_subblockid() == 0) {",
             f"auto %p = {pipe}(%null, %, %);", "TPOP<", "TNEG(", "TFREE<", "TPUSH<", "  }", "#endif")  # fmt: skip
    assert "get_subblockid" not in body(text, "cube")


def test_the_valid_region_of_a_pop_is_set_before_it() -> None:
    dynamic = tile("Vec", "float", 16, 16, v_row=-1, v_col=-1)
    text = body(emit(frontend("a5", valid=" (%r, %r)"), "a5"), "vector")
    in_order(
        text,
        f"{dynamic} %t;",
        "%t.SetValidShape(%r, %r);",
        f"TPOP<...{dynamic}, TileSplitAxis::TILE_NO_SPLIT>(%, %t);",
    )
