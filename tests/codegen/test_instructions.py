"""Instructions whose spelling has forms: the C++ of each form."""

from __future__ import annotations

from .shapes import body, emit, has, in_order, tile

VEC = "!pto.tile_buf<vec, 16x64xf32>"
ACC = "!pto.tile_buf<acc, 64x64xf32, blayout=col_major, slayout=row_major, fractal=1024>"
MAT = "!pto.tile_buf<mat, 64x64x{}, blayout=col_major, slayout=row_major>"
FP = "!pto.tile_buf<scaling, 1x64xui64>"


def function(text: str, target: str = "a3", **tiles: str) -> str:
    """The body of a function whose arguments are tiles and scalars, by name."""
    arguments = ", ".join(f"%{name}: {type}" for name, type in tiles.items())
    return body(emit(f"func.func @k({arguments}) {{\n{text}\n  return\n}}\n", target))


def test_conversions() -> None:
    half = "!pto.tile_buf<vec, 16x64xf16>"
    text = function(
        f"""\
  pto.tcvt ins(%a : {VEC}) outs(%b : {half})
  pto.tcvt ins(%a {{rmode = #pto<round_mode ROUND>}} : {VEC}) outs(%b : {half})
  pto.tcvt ins(%a {{rmode = #pto<round_mode TRUNC>, sat_mode = #pto<saturation_mode OFF>}} : {VEC}) outs(%b : {half})
  pto.tcvt ins(%a, %t {{rmode = #pto<round_mode RINT>, sat_mode = #pto<saturation_mode ON>}} : {VEC}, {VEC})
    outs(%b : {half})""",
        a=VEC,
        b=half,
        t=VEC,
    )
    in_order(text, "SaturationMode %off = SaturationMode::OFF;", "SaturationMode %on = SaturationMode::ON;",
             "RoundMode %rint = RoundMode::CAST_RINT;", "RoundMode %round = RoundMode::CAST_ROUND;",
             "RoundMode %trunc = RoundMode::CAST_TRUNC;", "TCVT(v2, v1, %rint);", "TCVT(v2, v1, %round);",
             "TCVT(v2, v1, %trunc, %off);", "TCVT(v2, v1, v3, %rint, %on);")  # fmt: skip


def test_comparisons() -> None:
    mask = "!pto.tile_buf<vec, 16x32xui8>"
    text = function(
        f"""\
  pto.tcmp ins(%a, %b : {VEC}, {VEC}) outs(%m : {mask})
  pto.tcmps ins(%a, %x {{cmpMode = #pto<cmp gt>}} : {VEC}, f32) outs(%m : {mask})""",
        a=VEC,
        b=VEC,
        m=mask,
        x="f32",
    )
    in_order(text, "CmpMode %eq = CmpMode::EQ;", "CmpMode %gt = CmpMode::GT;", "TCMP(v3, v1, v2, %eq);",
             "TCMPS(v3, v1, v4, %gt);")  # fmt: skip


def test_division_keeps_the_order_of_its_operands() -> None:
    text = function(
        f"""\
  pto.tdivs ins(%a, %x : {VEC}, f32) outs(%b : {VEC})
  pto.tdivs ins(%x, %a : f32, {VEC}) outs(%b : {VEC})""",
        a=VEC,
        b=VEC,
        x="f32",
    )
    in_order(text, "TDIVS(v2, v1, v3);", "TDIVS(v2, v3, v1);")


def test_sums_of_three_are_two_instructions() -> None:
    text = function(
        f"""\
  pto.taddc ins(%a, %b, %c : {VEC}, {VEC}, {VEC}) outs(%d : {VEC})
  pto.tsubsc ins(%a, %x, %c : {VEC}, f32, {VEC}) outs(%d : {VEC})""",
        a=VEC,
        b=VEC,
        c=VEC,
        d=VEC,
        x="f32",
    )
    in_order(text, "TADD(v4, v1, v2);", "TADD(v4, v4, v3);", "TSUBS(v4, v1, v5);", "TADD(v4, v4, v3);")  # fmt: skip


def test_scratch_tiles_keep_their_place() -> None:
    text = function(f"""\
  pto.trem ins(%a, %b, %t : {VEC}, {VEC}, {VEC}) outs(%d : {VEC})
  pto.trems ins(%a, %x, %t : {VEC}, f32, {VEC}) outs(%d : {VEC})
  pto.trsqrt ins(%a : {VEC}) outs(%d : {VEC})
  pto.tcolsum ins(%a : {VEC}) outs(%r : !pto.tile_buf<vec, 1x64xf32>)
  pto.tcolsum ins(%a, %t {{isBinary = true}} : {VEC}, {VEC}) outs(%r : !pto.tile_buf<vec, 1x64xf32>)""",
                    a=VEC, b=VEC, t=VEC, d=VEC, x="f32", r="!pto.tile_buf<vec, 1x64xf32>")  # fmt: skip
    in_order(text, "const bool %yes = true;", "TREM(v4, v1, v2, v3);", "TREMS(v4, v1, v5, v3);", "TRSQRT(v4, v1);",
             "TCOLSUM(v6, v1);", "TCOLSUM(v6, v1, v3, %yes);")  # fmt: skip


def test_padding() -> None:
    plain, padded = "!pto.tile_buf<vec, 16x64xf32, valid=12x40>", "!pto.tile_buf<vec, 16x64xf32, pad=1>"
    text = function(
        f"""\
  pto.tfillpad ins(%a : {plain}) outs(%b : {padded})
  pto.tfillpad_inplace ins(%b : {padded}) outs(%b : {padded})
  pto.tfillpad ins(%b : {padded}) outs(%b : {padded})""",
        a=plain,
        b=padded,
    )
    in_order(text, "TFILLPAD(v2, v1);", "TFILLPAD_INPLACE(v2, v2);", "TFILLPAD(v2, v2);")
    assert "TFILLPAD_EXPAND" not in text


def test_gather_forms() -> None:
    ints = "!pto.tile_buf<vec, 16x64xi32>"
    text = function(
        f"""\
  pto.tgather ins(%a, %i, %i : {VEC}, {ints}, {ints}) outs(%b : {VEC})
  pto.tgather ins(%a, {{maskPattern = #pto.mask_pattern<P0010>}} : {VEC}) outs(%b : {VEC})""",
        a=VEC,
        b=VEC,
        i=ints,
    )
    type = tile("Vec", "float", 16, 64)
    in_order(text, "TGATHER(v2, v1, v3, v3);", f"TGATHER<{type}, {type}, MaskPattern::P0010>(v2, v1);")
    assert "reinterpret_cast" not in text


def test_generated_values() -> None:
    shorts = "!pto.tile_buf<vec, 1x16xi16, pad=1>"
    text = function(
        f"""\
  pto.tci ins(%x : i16) outs(%s : {shorts})
  pto.tci ins(%x {{descending = true}} : i16) outs(%s : {shorts})
  pto.ttri ins(%n : i32) outs(%a : {VEC})
  pto.ttri ins(%n {{upperOrLower = 1}} : i32) outs(%a : {VEC})""",
        s=shorts,
        x="i16",
        a=VEC,
        n="i32",
    )
    short, type = tile("Vec", "int16_t", 1, 16, pad="Zero"), tile("Vec", "float", 16, 64)
    in_order(text, f"TCI<{short}, int16_t, 0>(v1, v2);", f"TCI<{short}, int16_t, 1>(v1, v2);",
             f"TTRI<{type}, 0>(v3, v4);", f"TTRI<{type}, 1>(v3, v4);")  # fmt: skip


def test_merge_sort_counts() -> None:
    line, out = "!pto.tile_buf<vec, 1x64xf32>", "!pto.tile_buf<vec, 1x128xf32>"
    text = function(
        f"""\
  %some = arith.constant dense<[128, -15536, 0, -1]> : vector<4xi16>
  pto.tmrgsort ins(%a, %b, %t {{exhausted = true}} : {line}, {line}, {out})
    outs(%d, %some : {out}, vector<4xi16>)""",
        a=line,
        b=line,
        t=out,
        d=out,
    )
    small, large = tile("Vec", "float", 1, 64), tile("Vec", "float", 1, 128)
    in_order(text, "pto::MrgSortExecutedNumList %e = pto::MrgSortExecutedNumList{128, 50000, 0, 65535};",
             f"TMRGSORT<{large}, {large}, {small}, {small}, true>(v4, %e, v3, v1, v2);")  # fmt: skip


def test_quantisation() -> None:
    signed, unsigned = "!pto.tile_buf<vec, 16x64xi8>", "!pto.tile_buf<vec, 16x64xui8>"
    scale = "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
    text = function(f"""\
  pto.tquant ins(%a, %f : {VEC}, {scale}) outs(%s : {signed}) {{quant_type = #pto<quant_type INT8_SYM>}}
  pto.tquant ins(%a, %f, %o : {VEC}, {scale}, {scale}) outs(%u : {unsigned}) {{quant_type = #pto<quant_type INT8_ASYM>}}
  pto.tdequant ins(%s, %f, %o : {signed}, {scale}, {scale}) outs(%a : {VEC})""",
                    a=VEC, f=scale, o=scale, s=signed, u=unsigned)  # fmt: skip
    in_order(text, "TQUANT<pto::QuantType::INT8_SYM, ...>(v4, v1, v2);",
             "TQUANT<pto::QuantType::INT8_ASYM, ...>(v5, v1, v2, &v3);", "TDEQUANT<...>(v1, v4, v2, v3);")  # fmt: skip


MODE = "accToVecMode = #pto.acc_to_vec_mode<{}>"
RELU = "reluPreMode = #pto<relu_pre_mode normal_relu>"


def test_moves_out_of_the_accumulator() -> None:
    mat, vec = MAT.format("f32"), "!pto.tile_buf<vec, 64x64xf32>"
    text = function(f"""\
  pto.tmov ins(%a : {ACC}) outs(%m : {mat})
  pto.tmov ins(%a : {ACC}) outs(%m : {mat}) {{{RELU}}}
  pto.tmov ins(%a : {ACC}, %q : i64) outs(%m : {mat}) {{{RELU}}}
  pto.tmov ins(%a : {ACC}) outs(%v : {vec}) {{{RELU}, {MODE.format("dual_mode_split_m")}}}
  pto.tmov ins(%a : {ACC}) outs(%v : {vec}) {{{MODE.format("dual_mode_split_m")}}}
  pto.tmov ins(%a : {ACC}, %q : i64) outs(%v : {vec}) {{{MODE.format("single_mode_vec1")}}}
  pto.tmov ins(%a : {ACC}, %f : {FP}) outs(%m : {mat}) {{{RELU}}}
  pto.tmov ins(%a : {ACC}, %f : {FP}) outs(%v : {vec}) {{{MODE.format("single_mode_vec0")}}}""",
                    "a5", a=ACC, m=mat, v=vec, f=FP, q="i64")  # fmt: skip
    in_order(
        text,
        "TMOV(v2, v1);",
        "TMOV<..., ReluPreMode::NormalRelu>(v2, v1);",
        "TMOV<..., ReluPreMode::NormalRelu>(v2, v1, (uint64_t) v5);",
        "TMOV<..., pto::AccToVecMode::DualModeSplitM, ReluPreMode::NormalRelu>(v3, v1);",
        "TMOV<..., pto::AccToVecMode::DualModeSplitM, ReluPreMode::NoRelu>(v3, v1);",
        "TMOV<..., pto::AccToVecMode::SingleModeVec1, ReluPreMode::NoRelu>(v3, v1, (uint64_t) v5);",
        "TMOV_FP<..., ReluPreMode::NormalRelu>(v2, v1, v4);",
        "TMOV<..., pto::AccToVecMode::SingleModeVec0, ReluPreMode::NoRelu>(v3, v1, v4);",
    )


def test_stores() -> None:
    half = "!pto.tile_buf<acc, 64x64xi32, blayout=col_major, slayout=row_major, fractal=1024>"
    final, add = "stPhase = #pto<st_phase final>", "atomicType = #pto<atomic_type atomic_add>"
    view, part = "!pto.tensor_view<64x64xf32>", "!pto.partition_tensor_view<64x64xf32>"
    narrow, window = "!pto.tensor_view<64x64xf16>", "!pto.partition_tensor_view<64x64xf16>"
    text = body(
        emit(f"""\
func.func @k(%p: !pto.ptr<f32>, %h: !pto.ptr<f16>, %a: {ACC}, %i: {half}, %q: i64) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %v = pto.make_tensor_view %p, shape = [%c64, %c64], strides = [%c64, %c1] : {view}
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c64, %c64] : {view} -> {part}
  %n = pto.make_tensor_view %h, shape = [%c64, %c64], strides = [%c64, %c1] : {narrow}
  %o = pto.partition_view %n, offsets = [%c0, %c0], sizes = [%c64, %c64] : {narrow} -> {window}
  pto.tstore ins(%a : {ACC}) outs(%w : {part})
  pto.tstore ins(%a : {ACC}) outs(%w : {part}) {{{final}}}
  pto.tstore ins(%a : {ACC}) outs(%w : {part}) {{{add}}}
  pto.tstore ins(%a : {ACC}) outs(%w : {part}) {{{final}, {add}}}
  pto.tstore ins(%a : {ACC}) outs(%w : {part}) {{{add}, {RELU}}}
  pto.tstore ins(%a : {ACC}) outs(%w : {part}) {{{final}, {add}, {RELU}}}
  pto.tstore ins(%i : {half}, %q : i64) outs(%o : {window}) {{{add}, {RELU}}}
  pto.tstore ins(%i : {half}, %q : i64) outs(%o : {window}) {{{final}, {add}, {RELU}}}
  return
}}
""")
    )
    in_order(text, "TSTORE(%w, v3);", "TSTORE<STPhase::Final>(%w, v3);",
             "TSTORE<Tile<TileType::Acc...AtomicType::AtomicAdd>(%w, v3);",
             "TSTORE<STPhase::Final, Tile<...AtomicType::AtomicAdd>(%w, v3);",
             "AtomicType::AtomicAdd, ReluPreMode::NormalRelu>(%w, v3);",
             "TSTORE<STPhase::Final, ...AtomicType::AtomicAdd, ReluPreMode::NormalRelu>(%w, v3);",
             "AtomicType::AtomicAdd, ReluPreMode::NormalRelu>(%o, v4, (uint64_t) v5);",
             "TSTORE<STPhase::Final, ...ReluPreMode::NormalRelu>(%o, v4, (uint64_t) v5);")  # fmt: skip


def test_windows_with_a_quantisation_tile() -> None:
    mat = MAT.format("i8")
    text = function(
        f"""\
  %c0 = arith.constant 0 : index
  pto.textract_fp ins(%a, %f, %c0, %c0 : {ACC}, {FP}, index, index) outs(%m : {mat})
  pto.tinsert_fp ins(%a, %f, %c0, %c0 : {ACC}, {FP}, index, index) outs(%m : {mat})""",
        a=ACC,
        f=FP,
        m=mat,
    )
    in_order(text, "TEXTRACT_FP(v3, v1, v2, %z, %z);", "TINSERT_FP(v3, v1, v2, %z, %z);")


def test_histograms_on_a5() -> None:
    source, counts, index = (
        f"!pto.tile_buf<vec, {s}>" for s in ("32x64xui16", "32x256xui32", "32x1xui8, blayout=col_major")
    )
    text = function(f"""\
  pto.thistogram ins(%s, %i : {source}, {index}) outs(%d : {counts}) {{isMSB = true}}
  pto.thistogram ins(%s, %i : {source}, {index}) outs(%d : {counts}) {{isMSB = false}}""",
                    "a5", s=source, i=index, d=counts)  # fmt: skip
    in_order(text, "THISTOGRAM<true>(v3, v1, v2);", "THISTOGRAM<false>(v3, v1, v2);")


def test_asynchronous_transfers() -> None:
    scratch = "!pto.tile_buf<vec, 1x256xi8>"
    text = body(
        emit(f"""\
func.func @k(%d: memref<128xf32>, %s: memref<128xf32>, %w: !pto.ptr<i8>) {{
  %a = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %a : {scratch}
  %session = pto.build_async_session(%t, %w : {scratch}, !pto.ptr<i8>) {{sync_id = 3}} -> !pto.async_session
  %put = pto.tput_async(%d, %s, %session : memref<128xf32>, memref<128xf32>, !pto.async_session) -> !pto.async_event
  %get = pto.tget_async(%s, %d, %session : memref<128xf32>, memref<128xf32>, !pto.async_session) -> !pto.async_event
  %one = pto.wait_async_event(%put, %session : !pto.async_event, !pto.async_session) -> i1
  %two = pto.test_async_event(%get, %session : !pto.async_event, !pto.async_session) -> i1
  scf.if %one {{
    pto.trap
  }}
  scf.if %two {{
    pto.trap
  }}
  return
}}
""")
    )
    shape, stride = "pto::Shape<1, 1, 1, 1, 128>", "pto::Stride<128, 128, 128, 128, 1>"
    engine = "<pto::comm::DmaEngine::SDMA>"
    in_order(text, "(__gm__ float* %d, __gm__ float* %s, __gm__ int8_t* %w)", "uint32_t %group = UINT32_MAX;",
             "const uint32_t %id = 3u;", f"{tile('Vec', 'int8_t', 1, 256)} %t;", "TASSIGN(%t, %);",
             "__gm__ uint8_t* %m = (__gm__ uint8_t*) %w;", "pto::comm::AsyncSession %session;",
             "pto::comm::sdma::SdmaBaseConfig %cfg = {32768ULL, 0ULL, 1u};",
             f"pto::comm::BuildAsyncSession{engine}(%t, %m, %session, %id, %cfg, %group);",
             f"{shape} %a = {shape}();", f"{stride} %b = {stride}();",
             f"pto::comm::AsyncEvent %put = pto::comm::TPUT_ASYNC{engine}(", "%session);",
             f"pto::comm::AsyncEvent %get = pto::comm::TGET_ASYNC{engine}(", "%session);",
             "bool %one = %put.Wait(%session);", "bool %two = %get.Test(%session);")  # fmt: skip


def test_gathers_from_global_memory_keep_their_policy() -> None:
    view, part, ints = (
        "!pto.tensor_view<16x64xf32>",
        "!pto.partition_tensor_view<16x64xf32>",
        "!pto.tile_buf<vec, 16x64xi32>",
    )
    text = body(
        emit(
            f"""\
func.func @k(%p: !pto.ptr<f32>, %i: {ints}, %t: {VEC}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %v = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : {view}
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : {view} -> {part}
  pto.mgather ins(%w, %i : {part}, {ints}) outs(%t : {VEC})
  pto.mgather ins(%w, %i : {part}, {ints}) outs(%t : {VEC}) {{gatherOob = #pto<gather_oob clamp>}}
  pto.mscatter ins(%t, %i : {VEC}, {ints}) outs(%w : {part}) {{scatterAtomicOp = #pto<scatter_atomic_op add>}}
  return
}}
""",
            "a5",
        )
    )
    in_order(text, "MGATHER(v3, %w, v2);", "MGATHER<Coalesce::Elem, pto::GatherOOB::Clamp>(v3, %w, v2);",
             "MSCATTER<Coalesce::Elem, pto::ScatterAtomicOp::Add>(%w, v3, v2);")  # fmt: skip
    assert not has(text, "MGATHER<>")
