"""Movement between global memory and tiles: loads, stores, prefetches, and indexed gather and scatter.

Every instruction iterates over a tile's valid region by (row, column). The layout of the global side maps
this pair to an offset (`isa.view.element_offset`), and the layout of the tile does the same
(`isa.tile.offset`). So a layout conversion is a copy that keeps (row, column).
"""

from __future__ import annotations

from ..dtypes import names
from ..row import Attr, Combos, Family, Form
from ..rules import R, Rule
from ._common import located

NPU = "a2a3 a5"
LAYOUT = Attr("layout", "layout", doc="layout of the global side, as layout inference records it")

memory = Family("memory-and-data-movement", "tile", in_place="none")


def _positive(view: str) -> tuple[Rule, ...]:
    expr = f"all(d is None or d != 0 for d in {view}.dims)"
    return (R(expr, msg=f"expects {view} shape to be positive", written=True),)


def _not_empty(tile: str) -> tuple[Rule, ...]:
    return R(f"{tile}.v_row != 0", written=True), R(f"{tile}.v_col != 0", written=True)


# --- loads ------------------------------------------------------------------------------------------------

_MX_A = "('MX_A_ZZ', 'MX_A_ND', 'MX_A_DN')"
_MX_B = "('MX_B_NN', 'MX_B_ND', 'MX_B_DN')"
_VEC_PAIRS = "(src.layout, dst.layout) in ((ND, ND), (DN, DN), (NZ, NZ))"
_MAT_PAIRS = "(src.layout, dst.layout) in ((ND, ND), (DN, DN), (NZ, NZ), (ND, NZ), (DN, ZN)"
_B64_PAIRS = "(src.layout, dst.layout) in ((ND, ND), (DN, DN))"
#: A single row or column has the same bytes in ND and DN.
_LINE = "1 in (dst.v_row, dst.v_col)"

_load_rules = (
    *_positive("src"), *_not_empty("dst"),
    R("src.bytes == dst.bytes", code="SA-0098"),
    R("dst.loc in (VEC, MAT)", on="a2a3", code="SA-0032"),
    R("dst.layout in (ND, DN, NZ)", on=NPU, code="SA-0104", when="dst.loc == VEC"),
    R(f"{_VEC_PAIRS} or {_LINE}", on="a2a3", code="SA-0235", when="dst.loc == VEC and dst.bytes < 8"),
    R(f"{_VEC_PAIRS} or {_LINE}", on="a5", code="SA-0104", when="dst.loc == VEC and dst.bytes < 8"),
    R(f"{_MAT_PAIRS}) or {_LINE}", on="a2a3", code="SA-0234", when="dst.loc == MAT and dst.bytes < 8"),
    R(f"{_MAT_PAIRS}, (DN, NZ)) or {_LINE}", on="a5", code="SA-0082",
      when=f"dst.loc == MAT and dst.bytes < 8 and src.layout not in {_MX_A} and src.layout not in {_MX_B}"),
    R(f"{_B64_PAIRS} or {_LINE}", on="a2a3", code="SA-0233", when="dst.bytes == 8"),
    R(f"{_B64_PAIRS} or {_LINE}", on="a5", code="SA-0041", when="dst.bytes == 8"),
    R("dst.bits >= 8", on="a5", code="SA-0021", when="src.layout == DN and dst.layout == NZ"),
    R("dst.layout == ZZ", on="a5", when=f"src.layout in {_MX_A}"),
    R("dst.layout == NN", on="a5", when=f"src.layout in {_MX_B}"),
    R("dst.fractal == 512", on="a2a3", code="SA-0220", when="dst.loc == MAT and dst.layout in (NZ, ZN)"),
    R("dst.fractal == 512", on="a5", code="SA-0221", when="dst.loc == MAT and dst.layout == NZ"),
    R("dst.rows <= 4095", on="a2a3", code="SA-0236", when="dst.loc == VEC"),
    R("dst.rows < 16384", on="a2a3", code="SA-0202", when="dst.loc == MAT and dst.layout == NZ"),
    R("dst.cols < 16384", on="a2a3", code="SA-0184", when="dst.loc == MAT and dst.layout == ZN"),
    R("dst.rows < 16384", on="a5", code="SA-0224", when="dst.loc == MAT"),
    R("dst.size <= 524288", on="a5", code="SA-0222", when="dst.loc == MAT"),
    R("dst.pad in (0, 1)", on="a5", code="SA-0223", when="dst.bytes == 8"),
)  # fmt: skip

_tload = memory(
    "tload", opcode=0x102F, algorithm="load", pipe="MTE2", cpp="TLOAD($dst, $src)", filled_by="src",
    doc="Load a window of global memory into a tile, converting the layout.",
    operands="src=view dst=tile|conv_tile:out pad_value=any? left_padding_num=index? right_padding_num=any?"
    " init_condition=any?",
    attrs=(
        Attr("pad_mode", "padmode", hint=True, doc="padding mode; accepted, without effect"),
        LAYOUT,
        Attr("init_out_buffer", "bool", False, hint=True,
             doc="initialise the tile first; accepted, without effect"),
    ),
    format="ins($src : type($src)) outs($dst : type($dst)) attr-dict [pad_mode = $pad_mode]"
    " [pad_value = $pad_value : type($pad_value)]"
    " [left_padding_num = $left_padding_num : type($left_padding_num)]"
    " [init_out_buffer = $init_out_buffer]"
    " [right_padding_num = $right_padding_num : type($right_padding_num)]"
    " [init_condition = $init_condition : type($init_condition)]",
    meaning="fill what lies around the dst valid region with its pad value (cpu: all of dst; a2a3, a5: what is left"
    " of blocks of 32 bytes, the rest of dst keeps its contents), then for (r, c) in the dst valid"
    " region: dst[r, c] = src[element_offset(src.layout, r, c)]; pad value: null and zero 0, min -inf or the"
    " least integer, max +inf or the greatest integer, custom 0 (only tfillpad uses it); a conv tile is"
    " walked by its 2-D view (isa-types 3.4) and not filled",
    writes="valid", domain="dst valid region; it decides the size of the transfer",
    cpu="all", a2a3="any", a5="all", dtype_code="SA-0010",
    rules=_load_rules,
    types={
        "dst": "!pto.tile_buf<vec, 16x64x{T}>",
        "nz/dst": "!pto.tile_buf<mat, 16x64x{T}, blayout=col_major, slayout=row_major>",
        "zn/dst": "!pto.tile_buf<mat, 64x16x{T}, slayout=col_major>", "zn/src": "!pto.partition_tensor_view<64x16x{T}>",
        "zz/dst": "!pto.tile_buf<mat, 16x64x{T}, slayout=row_major, fractal=32>",
    },
    notes=(
        "hardware specifies padding only for a pad other than null; do not rely on the zeros of a null pad",
        "64-bit integers and floats of 8 and 4 bits pad with 0 on hardware; on cpu the limits of the type decide, of 4-bit"
        " floats 7 (0x77 per pair) for max and the least positive number, 1, for min",
        "a2a3, a5: a transfer writes the valid region and pads the last block of each row (of each column of a DN or ZN"
        " tile); tfillpad fills the rest. So a load into a window of a larger tile keeps the bytes around it",
        "extents at run time: ND/DN into a row-major tile s0*s1*s2*s3 == valid rows and s4 == valid columns,"
        " into a col-major tile s0*s1*s2*s4 == valid columns and s3 == valid rows; NZ s2*s3 == valid rows and"
        " s0*s1*s4 == valid columns (CA-0002, SA-0108, SA-0109); ND->NZ and DN->ZN want s0 = s1 = s2 = 1"
        " (SA-0055 to SA-0057)",
        "an NZ view has s3 = 16, s4 = 32 / sizeof (SA-0350); MX_A_ZZ and MX_B_NN have s3 = 16, s4 = 2, the"
        " other MX layouts s0 = s1 = 1, s4 = 2",
        "the a5 assembler accepts any dst location; only vec and mat exist on hardware",
        "pad_value, left_padding_num, right_padding_num and init_condition parse but mean nothing yet",
    ),
)  # fmt: skip

_tprefetch = memory(
    "tprefetch", opcode=0x1045, algorithm="prefetch",
    pipe="MTE2", cpp="TPREFETCH($dst, $src)", operands="src=view dst:out",
    doc="Bring a window of global memory on chip early, as a hint.",
    meaning="dst[r, c] = src as a dense row-major array with the row pitch of dst: element r * dst.cols + c,"
    " for (r, c) in the dst valid region; strides and layout of src are ignored",
    writes="part", domain="dst valid region", cpu="all", a2a3="any", a5="all",
    rules=(
        *_positive("src"), *_not_empty("dst"), R("src.bytes == dst.bytes"), R("dst.loc in (VEC, MAT)"),
    ),
    notes=(
        "no implied wait on earlier events; portable code loads again with tload, for the content of dst is"
        " promised by the reference only",
    ),
)  # fmt: skip

_tprefetch_async = memory(
    "tprefetch_async", opcode=0x1180, algorithm="prefetch hint",
    by_hand="gives an event of its own kind",
    also="comm", pipe="S", operands="src=view ctx=async_session|prefetch_async_context",
    results="event=async_event", cpp="TPREFETCH_ASYNC($src, $ctx)",
    format="( $src , $ctx : type($src) , type($ctx) ) attr-dict -> type($event)",
    doc="Warm the L2 cache with a flat region of global memory, asynchronously.",
    meaning="no value changes; event completes at once (handle 0, SDMA)",
    writes="part", domain="all of src",
    rules=R("src.elems == src.dims[-1]", msg="expects src to be a flat contiguous 1-D region"),
    types={"src": "!pto.partition_tensor_view<1024xf32>"},
    notes=(
        "runs on the SDMA engine (cache-maintenance opcode 6), not on a pipe of the core; the scalar unit"
        " issues it",
        "waiting for the event also completes earlier SDMA work of a shared session",
        "the host initialises the SDMA workspace before launch; C++ passes a PrefetchAsyncContext (256 bytes"
        " of UB scratch and a session with channel group get_block_idx(), sync id 0, one queue)",
    ),
)  # fmt: skip

# --- stores -----------------------------------------------------------------------------------------------

_atomic = Attr("atomicType", "atomic_type", "atomic_none", doc="combination of a stored element with memory")
_relu = Attr("reluPreMode", "relu_pre_mode", "no_relu", doc="ReLU after quantization, before the store")

_QUANT = (
    "y = f32(x) * scale; to i8/u8: clamp(rint(y + offset), -128, 127) if sign else clamp(.., 0, 255),"
    " whatever the dst dtype (a mismatch keeps the low 8 bits), inf saturates, NaN is 0; i32 to f16: clamp y"
    " to +-65504; f32 to f16/bf16: clamp finite y to the largest finite value (inf and NaN pass, but with"
    " ctrl bit 48 inf clamps and NaN is 0); i32 to i16: x >> (shift + 1), low 16 bits; ReLU last: y if y > 0"
    " else 0"
)
_WORD = (
    "quantization word: scale is the f32 in bits 31..0 (scalar modes), or its upper 19 bits 31..13 (vector"
    " modes); shift bits 35..32, offset bits 45..37 unsigned, sign bit 46"
)


def _to(src: str, dsts: str) -> str:
    return " ".join(f"{src},{d}" for d in names(dsts))


_A5_F32_Q, _A5_I32_Q = _to("f32", "i8 u8 f16 bf16 hif8 f8e4m3 f32"), _to("i32", "i8 u8 f16 bf16")
_A2A3_Q = f"{_to('f32', 'i8 u8')} {_to('i32', 'i8 u8 f16')}"
_QUANTISED = {"a2a3": _A2A3_Q, "a5": f"{_A5_F32_Q} {_A5_I32_Q}", "cpu": f"{_A5_F32_Q} {_A5_I32_Q} i32,i16"}
_CAST = f"{_to('f32', 'f32 f16 bf16')} i32,i32"

#: PTOAS accepts every pair of these without a quantization word.
_PLAIN = f"{_CAST} f32,i32 {_to('i32', 'f32 f16 bf16')}"
#: Rules of every store from the accumulator.
_ACC_LAYOUTS = "(ND, NZ, 'NC1HWC0', 'NDC1HWC0')"
_acc_rules = (
    R("src.dtype in (I32, F32)", on=NPU, code="SA-0191", when="src.loc == ACC"),
    R(f"dst.layout in {_ACC_LAYOUTS}", on="a2a3", code="SA-0192", when="src.loc == ACC"),
    R("dst.layout in (ND, NZ, 'NHWC', 'NCHW', 'NCDHW')", on="a5", code="SA-0337", when="src.loc == ACC"),
    R("1 <= src.cols <= 4095", on=NPU, code="SA-0201", when="src.loc == ACC"),
    R("1 <= src.v_col <= 4095", on=NPU, code="PA-0033", when="src.loc == ACC"),
    R("src.rows <= 8192", on=NPU, code="SA-0126", when="src.loc == ACC and dst.layout == ND"),
    R("src.rows <= 65535", on=NPU, code="SA-0126", when="src.loc == ACC and dst.layout != ND"),
    R("src.cols % 16 == 0", on=NPU, code="SA-0126", when="src.loc == ACC and dst.layout != ND"),
)  # fmt: skip

_ACC = "!pto.tile_buf<acc, 16x64x{T}, blayout=col_major, slayout=row_major, fractal=1024>"
_STORE_LINE = "1 in (src.v_row, src.v_col)"

_tstore = memory(
    "tstore", opcode=0x1065, algorithm="store", pipe=(("src.loc == ACC", "FIX"), ("", "MTE3")),
    cpp="TSTORE($dst, $src) | TSTORE<STPhase>($dst, $src) | TSTORE<Src, Dst, AtomicType>($dst, $src) | "
    "TSTORE<STPhase, Src, Dst, AtomicType>($dst, $src) | TSTORE<Src, Dst, AtomicType, ReluPreMode>($dst, $src) | "
    "TSTORE<STPhase, Src, Dst, AtomicType, ReluPreMode>($dst, $src) | "
    "TSTORE<Src, Dst, AtomicType, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar) | "
    "TSTORE<STPhase, Src, Dst, AtomicType, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar)",
    doc="Store a tile to global memory, optionally quantised, rectified or atomically added.",
    operands="src=tile|conv_tile dst=view:out preQuantScalar=i64?",
    attrs=(
        Attr("stPhase", "st_phase", "unspecified", inert=True, doc="unit-flag phase; no effect on the data"),
        _atomic, _relu, LAYOUT,
    ),
    format="ins($src : type($src) [, $preQuantScalar : type($preQuantScalar)])"
    " outs($dst : type($dst)) attr-dict",
    meaning="for (r, c) in the src valid region: dst[element_offset(dst.layout, r, c)] = v, or += v"
    " (atomic_add), max= v, min= v; v = q(src[r, c]). Without preQuantScalar q is ReLU if asked (x if x > 0"
    f" else 0) and then a plain conversion (nearest even, overflow to inf). With it: {_QUANT}",
    writes="part", domain="src valid region",
    cpu="all", a2a3="any", a5="any fp8 f8e8m0 hif8 fp4", dtype_of="src", dtype_code="SA-0011",
    combos=(
        Combos.of(
            "src dst", code="SA-0196", when="src.loc == ACC and not has(preQuantScalar)",
            a2a3=_PLAIN, a5=_PLAIN, cpu=_PLAIN,
        ),
        Combos.of(
            "src dst", code="SA-0196", when="has(preQuantScalar)", **_QUANTISED
        ),
    ),
    rules=(
        *_positive("dst"), *_not_empty("src"),
        R("src.loc in (VEC, MAT, ACC)", on="cpu a2a3", code="SA-0101"),
        R("src.loc in (VEC, ACC)", on="a5", code="SA-0100"),
        R("src.bytes == dst.bytes", on=NPU, code="SA-0099", when="src.loc in (VEC, MAT)"),
        R("dst.elems == src.v_row * src.v_col", on=NPU, written=True,
          msg="expects dst static element count to match src valid_shape static element count"),
        R("src.loc == ACC", on=NPU, when="has(preQuantScalar)",
          msg="expects preQuantScalar only with an acc source"),
        R("src.loc == ACC", on=NPU, when="reluPreMode == 'normal_relu'",
          msg="expects reluPreMode only with an acc source"),
        R(f"{_VEC_PAIRS} or {_STORE_LINE}", on=NPU, code="SA-0105",
          when="src.loc in (VEC, MAT) and src.bytes < 8"),
        R(f"{_B64_PAIRS} or {_STORE_LINE}", on=NPU, code="SA-0338",
          when="src.loc in (VEC, MAT) and src.bytes == 8"),
        R("atomicType in ('atomic_none', 'atomic_add')", on="a2a3"),
        R("src.bytes >= 1", when="atomicType != 'atomic_none'", code="SA-0200"),
        *_acc_rules,
    ),
    types={
        "src": "!pto.tile_buf<vec, 16x64x{T}>",
        "dst": "!pto.partition_tensor_view<16x64x{T}>",
        "acc/src": _ACC, "quantised/src": _ACC, "quantised/preQuantScalar": "i64",
        "simulated/preQuantScalar": "i64", "rectified/attr:reluPreMode": "normal_relu",
    },
    notes=(
        _WORD,
        "hardware quantizes and rectifies only accumulators, the C++ simulator any tile",
        "dst is also read where atomicType is not atomic_none; max and min exist on a5 only",
        "documented atomics are i32 and f32 from acc tiles; the reference adds for every tile",
        "an NZ dst has s3 = 16 and s4 = 32 / sizeof (acc f32 also 8 or 16, i32 16); an a5 ND row is a"
        " multiple of 32 bytes (SA-0124)",
        "C++ template arguments: none when all attributes are default; STPhase alone; otherwise [STPhase,]"
        " tile type, global type, AtomicType[, ReluPreMode]",
    ),
)  # fmt: skip

_tstore_fp = memory(
    "tstore_fp", opcode=0x1066, algorithm="store", aliases="tstore.fp", pipe="FIX", core="cube",
    by_hand="its phase is in C++ only",
    cpp="TSTORE_FP($dst, $src, $fp) | TSTORE_FP<Src, Dst, Fp, AtomicType>($dst, $src, $fp) | "
    "TSTORE_FP<Src, Dst, Fp, AtomicType, ReluPreMode>($dst, $src, $fp)",
    doc="Store an accumulator quantised with one word per output column.",
    operands="src fp dst=view:out", attrs=(_atomic, _relu),
    meaning="tstore with the vector quantisation word fp[0, c] for column c of the src valid region (for a"
    f" plain DN src: fp[0, r] for row r): {_QUANT}",
    writes="part", domain="src valid region",
    combos=Combos.of("src dst", code="SA-0196", **_QUANTISED),
    rules=(
        *_positive("dst"), *_not_empty("src"),
        R("src.loc == ACC", on=NPU),
        R("fp.loc == SCALING", on=NPU, code="SA-0052"),
        R("fp.rows == 1", on=NPU),
        R("fp.v_col >= src.v_col", on="cpu", when="src.layout != DN"),
        *_acc_rules,
    ),
    types={
        "src": "!pto.tile_buf<acc, 16x32x{T}, blayout=col_major, slayout=row_major, fractal=1024>",
        "fp": "!pto.tile_buf<scaling, 1x32xui64>", "dst": "!pto.partition_tensor_view<16x32x{T}>",
    },
    notes=(
        "fp stands for fix-pipe; its tile holds u64 words",
        _WORD,
        "fewer words than columns is undefined, although PTOAS accepts it",
        "PTOAS inserts no synchronization around it; it runs on FIX",
    ),
)  # fmt: skip

# --- indexed ----------------------------------------------------------------------------------------------

_coalesce = Attr(
    "coalesce", "str", "auto", choices=("auto", "row", "elem"),
    doc="meaning of an index: a table row or an element; auto: elem where idx has the valid shape of the"
    " data tile and more than one column, else row",
)  # fmt: skip

_INDEXED_NOTES = (
    "capacity is s0*s1*s2*s3*s4 for elem; for row it is s3 on cpu and a5, s0*s1*s2*s3 on a2a3",
    "a negative i32 index is sign-extended to 64 bits and read as unsigned: clamp takes the last entry,"
    " wrap (2^64 - |k|) % capacity; u32 is zero-extended",
    "C++ without template arguments is row on hardware and elem in the vendor simulator; write coalesce",
    "an empty valid region is a no-op",
)
_PAYLOAD = "ints32 floats"
_PAYLOAD_A5 = f"{_PAYLOAD} hif8 fp8"


def _indexed(data: str, size: str, index: str, boxed: str) -> tuple[Rule, ...]:
    """Return the common parts of gather and scatter; `data` is the payload tile, which may be NZ in the
    columns `boxed`."""
    one_per_row = f"(idx.v_row, idx.v_col) in ((1, {data}.v_row), ({data}.v_row, 1))"
    return (
        *_positive("mem"),
        R("idx.dtype in (I32, U32)", on=NPU),
        R("idx.dtype in (I8, U8, I16, U16, I32, U32, I64, U64)", on="cpu", code=index),
        R(f"mem.dtype == {data}.dtype", on=NPU, code=size),
        R(f"mem.bytes == {data}.bytes", on="cpu", code=size),
        R(f"{data}.row_bytes % 32 == 0", on=NPU),
        R(f"valid_eq(idx, {data}) or {one_per_row}", when="idx.kind == 'tile' and coalesce == 'auto'"),
        R(f"valid_eq(idx, {data})", when="idx.kind == 'tile' and coalesce == 'elem'"),
        R(one_per_row, when="idx.kind == 'tile' and coalesce == 'row'"),
        *located("VEC", "idx"),
        R("idx.layout == ND", on="a2a3"), R("idx.layout in (ND, DN)", on="a5"),
        R(f"{data}.layout in (ND, NZ)", on="a2a3", when=f"{data}.loc == VEC"),
        R(f"{data}.layout == ND", on="a5", when=f"{data}.loc == VEC"),
        R(f"mem.layout == {data}.layout", on="a2a3", when=f"{data}.loc == VEC"),
        R("mem.layout == ND", on="a5"),
        *(R(f"{data}.{fact}", on=boxed, when=f"{data}.layout == NZ") for fact in (
            "fractal == 512", "rows % 16 == 0")),
    )  # fmt: skip


_mgather = memory(
    "mgather", opcode=0x1003, algorithm="gather from memory", pipe="MTE2",
    by_hand="one template argument decides which check it is",
    forms=(
        Form("MGATHER($dst, $mem, $idx)", scratch=True), Form("MGATHER($dst, $mem, $idx, $scratch)", scratch=True),
        *(
            Form(f"MGATHER<Coalesce::{mode}, GatherOOB{more}", fixes={"coalesce": mode.lower()}, scratch=True, check=check)
            for mode in ("Row", "Elem")
            for more, check in (
                (">($dst, $mem, $idx)", f"by_{mode.lower()}"),
                (", GatherExec::$gather_exec.C>($dst, $mem, $idx, $scratch)", f"by_{mode.lower()}_with_scratch"),
            )
        ),
    ),
    doc="Gather rows or elements of a table in global memory into a tile.",
    operands="mem=view idx=tile|view scratch=view:tmp? dst:out",
    attrs=(
        Attr("gatherOob", "gather_oob", "undefined", doc="value for an index beyond the table"),
        _coalesce,
        Attr("gather_exec", "str", "scalar", choices=("scalar", "simt"),
             doc="a5: engine of the GM to L1 elem form"),
    ),
    meaning="row: k = oob(idx read linearly at r), dst[r, j] = mem[k * stride3 + j * stride4]; elem:"
    " k = oob(idx[r, c]), dst[r, c] = mem.data[k], k a linear element index that ignores strides; oob(k)"
    " with k unsigned: undefined k unchecked, clamp min(k, capacity - 1), wrap k % capacity, zero writes 0"
    " (row: the whole row)",
    writes="part", domain="dst valid region", cpu=_PAYLOAD_A5, a2a3=_PAYLOAD, a5=_PAYLOAD_A5,
    rules=(
        *_indexed("dst", "SA-0069", "SA-0070", boxed=NPU),
        R("dst.loc in (VEC, MAT)"),
        R("idx.kind == 'tile'", on=NPU, when="dst.loc == VEC"),
        R("idx.kind != 'tile'", on=NPU, when="dst.loc == MAT"),
        R("dst.layout == NZ", on=NPU, when="dst.loc == MAT"),
        R("has(scratch)", on=NPU, when="dst.loc == MAT and coalesce == 'elem'"),
        R("not has(scratch)", on=NPU, when="dst.loc == VEC"),
        R("scratch.elems >= dst.rows * dst.cols", on=NPU),
        R("scratch.dtype == dst.dtype"),
        R("dst.loc == MAT and coalesce == 'elem'", on="a5", when="gather_exec == 'simt'"),
        R("has(scratch)", on="cpu", when="gather_exec == 'simt'"),
        R("gather_exec == 'scalar'", on="a2a3"),
    ),
    types={
        "mem": "!pto.partition_tensor_view<16x64x{T}>", "idx": "!pto.tile_buf<vec, 16x64xi32>",
        "dst": "!pto.tile_buf<vec, 16x64x{T}>",
        "mat/idx": "!pto.partition_tensor_view<16x64xi32>", "mat/attr:coalesce": "elem",
        "mat/dst": "!pto.tile_buf<mat, 16x64x{T}, blayout=col_major, slayout=row_major>",
        "mat/scratch": "!pto.partition_tensor_view<16x64x{T}>",
    },
    notes=(
        *_INDEXED_NOTES,
        "a mat dst takes its indices from global memory, and for elem a scratch of dst.rows * dst.cols"
        " elements there; padding and zero lanes of the NZ tile are 0",
        "PTOAS has it only on a5 and loses gatherOob; the ISA defines it on a2a3, too",
        "a5 row: the table is packed, s4 == valid columns of dst",
    ),
)  # fmt: skip

_mscatter = memory(
    "mscatter", opcode=0x1004, algorithm="scatter to memory", pipe="MTE3",
    by_hand="one template argument decides which check it is",
    forms=(
        Form("MSCATTER($mem, $src, $idx)"),
        *(
            Form(f"MSCATTER<Coalesce::{mode}, ScatterAtomicOp, ScatterOOB, ScatterConflict::$conflict.C>($mem, $src, $idx)",
                 fixes={"coalesce": mode.lower()}, check=f"by_{mode.lower()}")
            for mode in ("Row", "Elem")
        ),
    ),
    doc="Scatter rows or elements of a tile into a table in global memory, optionally combining.",
    operands="src idx mem=view:inout",
    attrs=(
        Attr("scatterAtomicOp", "scatter_atomic_op", "none", doc="combination of an element with the table"),
        Attr("scatterOob", "scatter_oob", "undefined", doc="effect of an index beyond the table"),
        _coalesce,
        Attr("conflict", "str", "last", choices=("last", "default"),
             doc="colliding plain stores: the last in row-major order wins, or as the scheduler has it"),
    ),
    meaning="for (r, c) in the src valid region, row-major: row: t = oob(idx read linearly at r) * stride3"
    " + c * stride4; elem: t = oob(idx[r, c]), a linear element index; mem[t] = src[r, c], or mem[t] + it"
    " (add), max, min of both; oob(k) with k unsigned: undefined k unchecked, skip drops the store, clamp"
    " min(k, capacity - 1), wrap k % capacity",
    writes="part", domain="src valid region", cpu=_PAYLOAD_A5, a2a3=_PAYLOAD, a5=_PAYLOAD_A5, dtype_of="src",
    rules=(
        *_indexed("src", "SA-0072", "SA-0073", boxed="a2a3"),
        *located("VEC", "src"),
        R("src.dtype in (I8, I16, I32, F16, BF16, F32)", on="a2a3", when="scatterAtomicOp == 'add'"),
        R("src.dtype in (I32, U32, F32, F16, BF16)", on="a5", when="scatterAtomicOp == 'add'"),
        R("src.dtype in (I32, U32, F32)", on="a5", when="scatterAtomicOp in ('max', 'min')"),
        R("scatterAtomicOp in ('none', 'add')", on="a2a3"),
        R("conflict == 'last'", on="a2a3"),
    ),
    types={
        "src": "!pto.tile_buf<vec, 16x64x{T}>", "idx": "!pto.tile_buf<vec, 16x64xi32>",
        "mem": "!pto.partition_tensor_view<16x64x{T}>",
    },
    notes=(
        *_INDEXED_NOTES,
        "conflict is ignored where scatterAtomicOp combines",
        "row max and min combine per element; the vendor simulator compares with the wrong slot",
        "PTOAS has it only on a5 and loses its attributes; the ISA has it on a2a3, too",
    ),
)  # fmt: skip

ROWS = (_tload, _tstore, _tstore_fp, _tprefetch, _tprefetch_async, _mgather, _mscatter)
