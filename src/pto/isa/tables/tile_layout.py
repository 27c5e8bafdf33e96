"""Layout and rearrangement: moves between locations, windows, padding, transposition, packing, img2col.

A move keeps the logical position (i, j) of every element; the layouts of the two tile types determine the
byte offsets. Moves out of the accumulator may convert, apply ReLU, and quantize with the word format of
`tstore`.
"""

from __future__ import annotations

from ..dtypes import names
from ..row import Attr, Combos, Family, Form, forms
from ..rules import R, Rule
from ._common import form, located, row_major, same_dtype, same_valid, vec


def _alike(dtypes: str) -> str:
    """Combinations whose two operands have one element type."""
    return " ".join(f"{d},{d}" for d in names(dtypes))


_NPU = "a2a3 a5"
_CUBE_A2A3 = "i8 u8 f16 bf16 f32"
_CUBE_A5 = "i8 u8 hif8 fp8 f16 bf16 f32 fp4 f8e8m0"
_MAT_TO_CUBE = "src.loc == MAT and dst.loc in (LEFT, RIGHT)"
_VEC_TO_VEC = "src.loc == VEC and dst.loc == VEC"

# Conversions of the fix-pipe, dst,src: without and with quantization words.
_FIX_A2A3 = "f16,f32 bf16,f32 f32,f32 i32,i32 i8,f32 u8,f32 i8,i32 u8,i32 f16,i32 i16,i32"
_FIX_A5 = f"{_FIX_A2A3} bf16,i32 hif8,f32 f8e4m3,f32 f8e5m2,f32"
_QUANT_A2A3 = "i8,f32 u8,f32 i8,i32 u8,i32 f16,i32 i16,i32"
_QUANT_A5 = (
    "i8,f32 u8,f32 f8e4m3,f32 f8e5m2,f32 hif8,f32 f16,f32 bf16,f32 f32,f32 i8,i32 u8,i32 f16,i32 bf16,i32"
)
_QUANT_CPU = f"{_QUANT_A5} i16,i32"

_RELU = Attr("reluPreMode", "relu_pre_mode", "no_relu", doc="ReLU fused into a move out of the accumulator")
_MODE = Attr("accToVecMode", "acc_to_vec_mode", doc="which vector core receives an accumulator move")
_PHASE = Attr("st_phase", "st_phase", "unspecified", inert=True, doc="unit-flag phase; no numeric effect")
_FP_PHASES = (
    "TMOV_FP<STPhase, Dst, Src, Fp, ReluPreMode>($dst, $src, $fp) | "
    "TMOV<STPhase, Dst, Src, Fp, AccToVecMode, ReluPreMode>($dst, $src, $fp)"
)

_ACC = "!pto.tile_buf<acc, 64x64x{T}, blayout=col_major, slayout=row_major, fractal=1024>"
_MAT = "!pto.tile_buf<mat, 64x64x{T}, blayout=col_major, slayout=row_major>"
_ND_16 = "!pto.tile_buf<vec, 16x64x{T}>"
_NZ_16 = "!pto.tile_buf<vec, 16x64x{T}, blayout=col_major, slayout=row_major>"
_FP = "!pto.tile_buf<scaling, 1x64xui64>"


def _forms(**shown: dict[str, str]) -> dict[str, str]:
    """Witness types of further forms: `_forms(acc={"src": ..})` gives `acc/src`."""
    return {f"{form}/{name}": text for form, types in shown.items() for name, text in types.items()}


def _starts(row: str, col: str) -> tuple[Rule, ...]:
    return R(f"{row}.const >= 0"), R(f"{col}.const >= 0")


def _quantised(when: str = "") -> tuple[Rule, ...]:
    """Return the rules of a move with quantization words, which copies the part that exists in both tiles."""
    return (
        R("valid_le(dst, src)", on="cpu", when=when),
        R("dst.v_row <= src.rows and dst.v_col <= src.cols", on=_NPU, when=when),
    )


def _window(part: str, whole: str, extent: str, start: str = "indexRow indexCol") -> tuple[Rule, ...]:
    """`part` placed at `start` lies inside the valid region (cpu) or shape of `whole`.

    `extent` names the facts that measure `part` where the shape of `whole` counts.
    """
    (row, col), (at_row, at_col) = extent.split(), start.split()
    return (
        R(f"{at_row}.const + {part}.v_row <= {whole}.v_row", on="cpu", code="CA-0006"),
        R(f"{at_col}.const + {part}.v_col <= {whole}.v_col", on="cpu", code="CA-0006"),
        R(f"{at_row}.const + {part}.{row} <= {whole}.rows", on=_NPU, code="PA-0041"),
        R(f"{at_col}.const + {part}.{col} <= {whole}.cols", on=_NPU, code="PA-0040"),
    )


move = Family(
    "layout-and-rearrangement", "tile", writes="valid", domain="dst valid region", in_place="none",
)  # fmt: skip

# Vector quantization out of the accumulator: one 64-bit word of `fp` per column.
fix_quant = move.but(
    pipe="FIX",
    core="cube",
    attrs=(_RELU, _MODE),
    combos=(Combos.of("dst src", code="SA-0106", cpu=_QUANT_CPU, a2a3=_QUANT_A2A3, a5=_QUANT_A5),),
    rules=(
        R("src.loc == ACC", on=_NPU),
        R("fp.loc == SCALING", on=_NPU, code="SA-0052"),
        R("dst.loc == MAT", on="a2a3"),
        R("dst.loc in (MAT, VEC)", on="cpu a5"),
        R("src.layout == NZ", on=_NPU),
        R("dst.layout == NZ", on="a2a3"),
        R("dst.fractal == 512", on="a2a3"),
        R("dst.loc == VEC", when="has(accToVecMode)"),
        R("accToVecMode in ('single_mode_vec0', 'single_mode_vec1')", when="has(accToVecMode)",
          code="SA-0042",
          msg="expects fp/preQuantScalar acc-to-vec forms to use single-mode accToVecMode"),
    ),
    types={"src": _ACC, "fp": _FP, "dst": _MAT,
           **_forms(simulated={"src": _MAT, "fp": "!pto.tile_buf<vec, 1x64xui64>"})},
    notes=(
        "The accumulator is the only source on hardware; the C++ simulator takes words and data from anywhere.",
        "`_fp` stands for the fix-pipe. A word of fp is laid out as in tstore (19-bit scale in bits 31:13); "
        "fp normally is one row of u64, its element type and shape are not enforced.",
    ),
)  # fmt: skip

fill = move.but(
    operands="src dst:out",
    pipe=(("dst.loc == MAT", "MTE2"), ("", "V")),
    writes="all", domain="whole dst tile",
    meaning=(
        "For every (i, j) of the whole static dst: dst[i,j] = src[i,j] if i < src.v_row and j < src.v_col, "
        "else pad. pad comes from the dst type: 1 zero = 0; 2 max = +inf (floats) or the largest integer; "
        "3 min = -inf or the smallest; >= 2**32 custom = the low 32, 16 or 8 payload bits by element size. "
        "Nothing happens when a valid extent of dst is 0."
    ),
    cpu="b32 b16 b8 fp8 hif8 f8e8m0", a2a3="b32 b16 b8", a5="b32 b16 b8 fp8 hif8 f8e8m0",
    dtype_of="src dst",
    dtype_code="SA-0168",
    rules=(
        R("src.bytes == dst.bytes", code="SA-0168", msg="expects sizeof(src element) == sizeof(dst element)"),
        R("src.loc == dst.loc"),
        R("dst.loc in (VEC, MAT)"),
    ),
    types={"src": "!pto.tile_buf<vec, 16x64x{T}, valid=12x40>",
           "dst": "!pto.tile_buf<vec, 16x64x{T}, pad=1>"},
    notes=("f16 and bf16 pads are true infinities (a clang/C++20 build of the C++ simulator writes 0).",),
)  # fmt: skip


def _padded(name: str) -> Rule:
    return R("dst.pad != 0", when="dst.loc != MAT", code="SA-0168",
             msg=f"expects dst PadVal != Null for {name}")


def _same_static(name: str) -> Rule:
    return R("src.shape == dst.shape", code="SA-0168",
             msg=f"expects src and dst to have the same static shape for {name}")


pairs = move.but(
    isas="cpu a5",
    pipe="V",
    core="vector",
    cpu="any fp8 hif8 f8e8m0", a5="i32 u32 f32 i16 u16 f16 bf16 u8 i8",
    dtype_of="dst0 dst1",
    writes="part", domain="dst0 valid region",
    notes=("In-place use is unsafe: a result is written before all sources are read.",),
)  # fmt: skip

_MOVES = (
    move(
        "tmov", opcode=0x1038, part_with="tmp", algorithm="move",
        operands="src=tile|conv_tile dst:out fp? preQuantScalar=i64? tmp:tmp?",
        attrs=(_RELU, _MODE, _PHASE,
               Attr("grp_axis", "int", 1, choices=(0, 1), doc="X->ZZ forms: 1 = ND->ZZ, 0 = DN->ZZ")),
        format=(
            "ins($src : type($src) [, $fp : type($fp)] [, $preQuantScalar : type($preQuantScalar)]) "
            "outs($dst : type($dst)) attr-dict",
            "ins($src : type($src), $preQuantScalar : type($preQuantScalar)) outs($dst : type($dst)) "
            "attr-dict",
            form("src tmp", "dst"),
        ),
        doc="Copy a tile between locations and layouts, optionally with ReLU or quantisation.",
        meaning=(
            "dst[i,j] = cast(src[i,j]) over the valid region; the layouts of the two types do the repacking. "
            "normal_relu then sets elements of dst below 0 to 0, on the value already cast (NaN passes; "
            "i32->i8 wraps first). fp: quantise column j with word fp[0,j] (vector modes of tstore); "
            "preQuantScalar: one word for every column (scalar modes); both as in tstore, ReLU last. "
            "accToVecMode: single_mode_vec0/1 send the tile to that vector core, dual_mode_split_m/n give "
            "each core one half of the rows/columns. "
            "tmp form, 1-byte scale exponents R x C -> ZZ boxes of 16x2: grp_axis 1: linear = "
            "((r//16*(C//2) + c//2)*16 + r%16)*2 + c%2; grp_axis 0, source Mh x N (Mh = M/32): "
            "out[((cb*(Mh//2)+p)*16+q)*2+d] = in[2p+d][16cb+q], cb < N/16, p < Mh/2, q < 16, d < 2. "
            "A convolution tile source means textract(dst, src, 0, 0)."
        ),
        pipe=(("src.loc == ACC", "FIX"),
              ("src.loc == MAT and dst.loc in (LEFT, RIGHT, BIAS, SCALING, SCALE_LEFT, SCALE_RIGHT)", "MTE1"),
              ("", "V")),
        forms=(*forms(
            "TMOV($dst, $src) | TMOV<Dst, Src, ReluPreMode>($dst, $src) | "
            "TMOV<Dst, Src, AccToVecMode, ReluPreMode>($dst, $src) | TMOV_FP<Dst, Src, Fp>($dst, $src, $fp) | "
            "TMOV_FP<Dst, Src, Fp, ReluPreMode>($dst, $src, $fp) | "
            "TMOV<Dst, Src, Fp, AccToVecMode, ReluPreMode>($dst, $src, $fp) | "
            "TMOV<Dst, Src>($dst, $src, (uint64_t) $preQuantScalar) | "
            "TMOV<Dst, Src, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar) | "
            "TMOV<Dst, Src, AccToVecMode, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar)"),
            Form("TMOV<grp_axis>($dst, $src, $tmp)", scratch=True,
                 by_hand="without grp_axis its third operand is scratch or parameters, by where src is"),
            *forms(
            "TMOV<STPhase, Dst, Src>($dst, $src) | TMOV<STPhase, Dst, Src, ReluPreMode>($dst, $src) | "
            "TMOV<STPhase, Dst, Src, AccToVecMode, ReluPreMode>($dst, $src) | "
            "TMOV<STPhase, Dst, Src, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar) | "
            "TMOV<STPhase, Dst, Src, AccToVecMode, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar) | "
            f"{_FP_PHASES}")),
        cpu="all", a2a3="any", a5="all", dtype_of="src dst", dtype_code="SA-0254",
        combos=(
            Combos.of("dst src", when=_MAT_TO_CUBE, code="SA-0254", a2a3=_alike(_CUBE_A2A3),
                      a5=_alike(_CUBE_A5)),
            Combos.of("dst src", when="src.loc == MAT and dst.loc == BIAS", code="SA-0254",
                      a2a3="f32,f32 i32,i32 f32,f16", a5="f32,f32 i32,i32 f32,f16 f32,bf16"),
            Combos.of("dst src", when="src.loc == MAT and dst.loc == SCALING", code="SA-0254",
                      a2a3=_alike("u64 i64"), a5=_alike(f"u64 i64 {_CUBE_A5}")),
            Combos.of("dst src", when="src.loc == MAT and dst.loc in (SCALE_LEFT, SCALE_RIGHT)",
                      code="SA-0254", a5=_alike("f8e8m0 u8 i8 hif8")),
            Combos.of("dst src", when="src.loc == ACC", code="SA-0106", a2a3=_FIX_A2A3, a5=_FIX_A5),
        ),
        rules=(
            R("(src.loc == MAT and dst.loc in (LEFT, RIGHT, BIAS, SCALING))"
              " or (src.loc == VEC and dst.loc == VEC) or (src.loc == ACC and dst.loc in (MAT, VEC))",
              on="a2a3", code="SA-0254",
              msg="expects a supported tmov address-space pair for this target"),
            R("(src.loc == MAT and dst.loc in (LEFT, RIGHT, BIAS, SCALING, SCALE_LEFT, SCALE_RIGHT))"
              " or (src.loc == VEC and dst.loc in (VEC, MAT)) or (src.loc == ACC and dst.loc in (MAT, VEC))",
              on="a5", code="SA-0254",
              msg="expects a supported tmov address-space pair for this target"),
            R("dst.dtype == src.dtype", on=_NPU, when="src.loc == VEC"),
            R("valid_eq(src, dst)", on="cpu",
              when="(src.loc != ACC or dst.loc != VEC) and dst.loc not in (SCALE_LEFT, SCALE_RIGHT)", code="CA-0001"),
            *_quantised(when="has(fp) or has(preQuantScalar)"),
            R("src.shape == dst.shape", on=_NPU, when="src.loc == MAT", code="SA-0254",
              msg="expects mat-source tmov to use matching src/dst shapes"),
            R("src.shape == dst.shape", on="a2a3", when="src.loc != MAT", code="SA-0254",
              msg="expects A2/A3 non-mat tmov to use matching src/dst shapes"),
            R("not (has(fp) and has(preQuantScalar))",
              msg="expects fp and preQuantScalar forms to be mutually exclusive"),
            R("src.loc == ACC", on=_NPU, when="has(fp)", msg="expects fp form to use loc=acc src"),
            R("src.loc == ACC", on=_NPU, when="has(preQuantScalar)",
              msg="expects preQuantScalar form to use loc=acc src"),
            R("src.loc == ACC", on=_NPU, when="reluPreMode != 'no_relu'",
              msg="expects reluPreMode form to use loc=acc src"),
            R("src.loc == ACC and dst.loc == VEC", when="has(accToVecMode)",
              msg="expects accToVecMode to be used only for acc-to-vec tmov"),
            R("fp.loc == SCALING", on=_NPU, code="SA-0052"),
            R("src.dtype in (F32, I32)", when="has(fp)",
              msg="expects fp form src to have element type f32, i32"),
            R("accToVecMode in ('single_mode_vec0', 'single_mode_vec1')",
              when="has(accToVecMode) and (has(fp) or has(preQuantScalar))", code="SA-0042",
              msg="expects fp/preQuantScalar acc-to-vec forms to use single-mode accToVecMode"),
            R("src.layout == NZ", on=_NPU, when="src.loc == ACC and (has(fp) or reluPreMode != 'no_relu')",
              code="SA-0107",
              msg="expects acc-source fp/relu tmov src to use blayout=col_major and slayout=row_major"),
            R("dst.fractal == 512", on="a2a3", when="src.loc == ACC and dst.loc == MAT", code="SA-0013",
              msg="expects A2/A3 acc-to-mat tmov destination fractal to be 512"),
            R("dst.layout == NZ", on="a2a3", when="src.loc == ACC and dst.loc == MAT", code="SA-0029"),
            R("src.rows == 1", on=_NPU, when="src.loc == MAT and dst.loc == BIAS", code="SA-0254"),
            R("src.row_bytes % 64 == 0", on="a2a3", when="src.loc == MAT and dst.loc == BIAS",
              code="SA-0254"),
            R("dst.row_bytes % 64 == 0", on="a5", when="src.loc == MAT and dst.loc == BIAS", code="SA-0254"),
            R("dst.size <= 4096", on="a5", when="src.loc == MAT and dst.loc == BIAS", code="SA-0254"),
            R("src.rows == 1 and src.row_bytes % 128 == 0", on=_NPU,
              when="src.loc == MAT and dst.loc == SCALING and src.bits == 64", code="SA-0254"),
            R("dst.size <= 4096", on="a5", when="src.loc == MAT and dst.loc == SCALING and src.bits == 64",
              code="SA-0254"),
            R("dst.v_col % 32 == 0", on="a5", when="accToVecMode == 'dual_mode_split_n' and dst.bits == 32"),
            R("src.dtype in (U8, HIF8, F8E8M0) and dst.dtype == src.dtype and tmp.dtype == src.dtype",
              when="has(tmp)"),
            R("src.dtype != I8", when="has(tmp)",  # signless; its C++ is int8_t
              msg="expects exponents of type ui8, hif8 or f8E8M0FNU"),
            R("src.rows % 16 == 0 and src.cols % 2 == 0", when="has(tmp) and grp_axis == 1"),
            R("src.rows % 2 == 0 and src.cols % 16 == 0", when="has(tmp) and grp_axis == 0"),
        ),
        types=_forms(
            left={"src": _MAT, "dst": _MAT.replace("mat", "left")},
            bias={"src": "!pto.tile_buf<mat, 1x64x{T}>", "dst": "!pto.tile_buf<bias, 1x64x{T}>"},
            scaling={"src": "!pto.tile_buf<mat, 1x64x{T}>", "dst": "!pto.tile_buf<scaling, 1x64x{T}>"},
            scale={"src": "!pto.tile_buf<mat, 16x64x{T}>", "dst": "!pto.tile_buf<scale_left, 16x64x{T}>"},
            acc={"src": _ACC, "dst": _MAT},
            words={"src": _ACC, "dst": _MAT, "fp": _FP},
            word={"src": _ACC, "dst": _MAT, "preQuantScalar": "i64"},
            split={"src": _ACC, "dst": "!pto.tile_buf<vec, 64x64x{T}>", "attr:accToVecMode": "dual_mode_split_n"},
            zz=dict.fromkeys(("src", "dst", "tmp"), "!pto.tile_buf<vec, 16x32x{T}>"),
            dn={**dict.fromkeys(("src", "dst", "tmp"), "!pto.tile_buf<vec, 16x32x{T}>"), "attr:grp_axis": "0"},
        ),
        notes=(
            "ReLU here keeps NaN; the ReLU of tstore, textract and tinsert maps NaN to 0.",
            "The field's text binds the first extra operand of ins to fp, so preQuantScalar alone is written "
            "there in the generic form; here its type tells them apart.",
            "The C++ simulator ignores preQuantScalar and accToVecMode; both have the meaning above here.",
            "vec->mat is scheduled on V as in PTOAS; the C++ event map has FIX.",
            "A5 dual modes exclude quantization and NZ2DN; vec->vec of DN tiles is emitted through two "
            "treshape.",
        ),
    ),
    fix_quant(
        "tmov.fp", opcode=0x1039, algorithm="quantised window",
        by_hand="the frames of tmov serve it",
        aliases="tmov_fp", also="ptoas", operands="src fp dst:out", pipe="MTE1",
        attrs=(_PHASE,),
        doc="Move an accumulator tile out with one quantisation word per column.",
        meaning="dst[i,j] = quant(src[i,j]; fp[0,j]) over the dst valid region, vector modes of tstore, ReLU "
                "last.",
        cpp="TMOV_FP<Dst, Src, Fp>($dst, $src, $fp) | TMOV_FP<Dst, Src, Fp, ReluPreMode>($dst, $src, $fp) | "
            f"TMOV<Dst, Src, Fp, AccToVecMode, ReluPreMode>($dst, $src, $fp) | {_FP_PHASES}",
        rules=(R("valid_eq(src, dst)", on="cpu", when="dst.loc == MAT", code="CA-0001"), *_quantised()),
        notes=("Scheduled on MTE1 as the field's assembler does, although the hardware path is the "
               "fix-pipe.",),
    ),
)  # fmt: skip

_WINDOWS = (
    move(
        "textract", opcode=0x1021, algorithm="window",
        operands="src=tile|conv_tile indexRow=index indexCol=index dst:out preQuantScalar=i64? dst1:out? "
                 "indexRow1=index? indexCol1=index?",
        attrs=(_RELU, _MODE),
        format=(
            form("src indexRow indexCol", "dst"),
            form("src indexRow indexCol preQuantScalar", "dst"),
            form("src indexRow indexCol indexRow1 indexCol1", "dst dst1"),
        ),
        doc="Copy the window of a tile that starts at (indexRow, indexCol).",
        meaning=(
            "For (r, c) of the dst valid region: v = src[r+indexRow, c+indexCol]; dst[r,c] = cast(v), with "
            "normal_relu cast(v > 0 ? v : 0) (on the source value, NaN -> 0), with preQuantScalar quant(v; "
            "word) as in tstore, one word for all columns. Second destination: dst1[r,c] = src[r+indexRow1, "
            "c+indexCol1]. Convolution source (FRACTAL_Z, FRACTAL_Z_3D in mat -> right ZN): fractal-block "
            "copy starting at k-block indexRow*bytes/32 and n-block indexCol/16."
        ),
        pipe=((_VEC_TO_VEC, "V"), ("src.loc == MAT", "MTE1"), ("", "FIX")),
        cpp="TEXTRACT($dst, $src, $indexRow, $indexCol) | "
            "TEXTRACT<Dst, Src, ReluPreMode>($dst, $src, $indexRow, $indexCol) | "
            "TEXTRACT<Dst, Src, AccToVecMode, ReluPreMode>($dst, $src, $indexRow, $indexCol) | "
            "TEXTRACT<Dst, Src, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar, (uint16_t) $indexRow, "
            "(uint16_t) $indexCol) | "
            "TEXTRACT<Dst, Src, AccToVecMode, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar, "
            "(uint16_t) $indexRow, (uint16_t) $indexCol)"
            " | TEXTRACT($dst, $dst1, $src, $indexRow, $indexCol, $indexRow1, $indexCol1)",
        cpu="all", a2a3="any", a5="all", dtype_of="src dst",
        combos=(
            Combos.of("dst src", when="src.loc == MAT", code="SA-0159", a2a3=_alike(_CUBE_A2A3),
                      a5=_alike(_CUBE_A5)),
            Combos.of("dst src", when="src.loc == ACC", code="SA-0106", a2a3=_FIX_A2A3, a5=_FIX_A5),
        ),
        rules=(
            *_starts("indexRow", "indexCol"),
            *_starts("indexRow1", "indexCol1"),
            *_window("dst", "src", "rows cols"),
            *_window("dst1", "src", "rows cols", "indexRow1 indexCol1"),
            R("dst.dtype == src.dtype", on=_NPU, when="src.loc != ACC", code="SA-0159"),
            R("(src.loc == MAT and dst.loc in (LEFT, RIGHT)) or (src.loc == ACC and dst.loc == MAT)"
              " or (src.loc == VEC and dst.loc == VEC)", on="a2a3", code="SA-0159",
              msg="expects A2/A3 textract to use a supported src/dst loc pair"),
            R("(src.loc == MAT and dst.loc in (LEFT, RIGHT, SCALING, SCALE_LEFT, SCALE_RIGHT))"
              " or (src.loc == ACC and dst.loc in (MAT, VEC)) or (src.loc == VEC and dst.loc in (MAT, VEC))",
              on="a5", code="SA-0159", msg="expects A5 textract to use a supported src/dst loc pair"),
            R("src.blayout == ROW or src.slayout == ROW", on="a2a3", when="src.loc == MAT", code="SA-0159",
              msg="expects A2/A3 textract src to use a supported mat blayout/slayout combination"),
            R("src.blayout == ROW or src.layout == NZ", on="a5", when="src.loc == MAT and dst.loc == LEFT",
              code="SA-0159",
              msg="expects A5 textract src to use a supported mat blayout/slayout combination"),
            R("src.layout in (ZN, NZ)", on="a5", when="src.loc == MAT and dst.loc == RIGHT", code="SA-0159",
              msg="expects A5 textract src to use a supported mat blayout/slayout combination"),
            R("src.layout in (ZN, NZ, ZZ, NN)", on="a5", when="src.loc == MAT and dst.loc == SCALING",
              code="SA-0159",
              msg="expects A5 textract src to use a supported mat blayout/slayout combination"),
            R("src.layout == ZZ", on="a5", when="src.loc == MAT and dst.loc == SCALE_LEFT", code="SA-0159"),
            R("src.layout == NN", on="a5", when="src.loc == MAT and dst.loc == SCALE_RIGHT", code="SA-0159"),
            R("dst.layout == ZZ", on="a2a3", when="dst.loc == LEFT", code="SA-0159"),
            R("dst.layout == NZ", on="a5", when="dst.loc == LEFT", code="SA-0159"),
            R("dst.layout == ZN", on=_NPU, when="dst.loc == RIGHT", code="SA-0159"),
            R("src.layout in (ZN, NZ)", on=_NPU, when="src.loc == ACC", code="SA-0159"),
            R("src.layout == dst.layout and src.layout in (ND, NZ)", on="a2a3",
              when=f"{_VEC_TO_VEC} and not has(dst1)"),
            R("src.layout == ND and dst.layout == ND", on="a5", when=f"{_VEC_TO_VEC} and not has(dst1)",
              msg="expects A5 vec->vec textract src/dst to use ND layout (blayout=row_major, "
                  "slayout=none_box)"),
            R("indexCol.const * src.bytes % 32 == 0", on="a2a3", code="PA-0015",
              when=f"{_VEC_TO_VEC} and not has(dst1)"),
            R("indexRow.const % 16 == 0", on="a2a3", code="PA-0014",
              when=f"{_VEC_TO_VEC} and src.layout == NZ"),
            R("src.loc == ACC", on=_NPU, when="has(preQuantScalar)"),
            R("src.loc == ACC", on=_NPU, when="reluPreMode != 'no_relu'"),
            R("src.loc == ACC and dst.loc == VEC", when="has(accToVecMode)"),
            R("has(indexRow1) and has(indexCol1)", when="has(dst1)"),
            R("src.loc == VEC and src.layout == ND and dst.layout == NZ and dst1.layout == NZ"
              " and dst1.dtype == src.dtype", when="has(dst1)"),
            R("src.row_bytes % 32 == 0 and dst.row_bytes % 32 == 0 and dst1.row_bytes % 32 == 0",
              when="has(dst1)"),
        ),
        types={
            "src": _MAT,
            "dst": "!pto.tile_buf<left, 16x64x{T}, blayout=col_major, slayout=row_major>",
            "dst@a2a3": "!pto.tile_buf<left, 16x64x{T}, slayout=row_major>",
            **_forms(
                right={"dst": "!pto.tile_buf<right, 64x64x{T}, slayout=col_major>"},
                scaling={"dst": "!pto.tile_buf<scaling, 1x64x{T}>"},
                scale_left={"src": _MAT.replace("col_major", "row_major"), "dst": "!pto.tile_buf<scale_left, 16x64x{T}>"},
                scale_right={"src": _MAT.replace("slayout=row", "slayout=col"),
                             "dst": "!pto.tile_buf<scale_right, 16x64x{T}>"},
                acc={"src": _ACC, "dst": _MAT, "dst@a2a3": _MAT},
                vec={"src": "!pto.tile_buf<vec, 64x64x{T}>", "dst": _ND_16, "dst@a2a3": _ND_16},
                nz={"src": _MAT.replace("mat", "vec"), "dst": _NZ_16, "dst@a2a3": _NZ_16},
                two={"src": "!pto.tile_buf<vec, 64x64x{T}>", "dst": _NZ_16, "dst@a2a3": _NZ_16, "dst1": _NZ_16,
                     "indexRow1": "index", "indexCol1": "index"},
            ),
        },
        notes=(
            "The window is measured in valid extents on cpu and in static shapes elsewhere.",
            "Row and column starts of boxed tiles are multiples of the box (16 and 32 bytes) on hardware.",
            "Quantization with an fp tile and an accToVecMode is textract_fp with that attribute.",
        ),
    ),
    fix_quant(
        "textract_fp", opcode=0x1022, algorithm="quantised window",
        operands="src fp indexRow=index indexCol=index dst:out",
        doc="Copy a window of an accumulator tile with one quantisation word per source column.",
        meaning=(
            "For (r, c) of the dst valid region: dst[r,c] = quant(src[r+indexRow, c+indexCol]; fp[0, "
            "c+indexCol]), vector modes of tstore, ReLU last (the fp window moves with indexCol)."
        ),
        cpp="TEXTRACT_FP($dst, $src, $fp, $indexRow, $indexCol) | "
            "TEXTRACT_FP<Dst, Src, Fp, ReluPreMode>($dst, $src, $fp, $indexRow, $indexCol) | "
            "TEXTRACT<Dst, Src, Fp, AccToVecMode, ReluPreMode>($dst, $src, $fp, $indexRow, $indexCol)",
        rules=(
            *_starts("indexRow", "indexCol"),
            *_window("dst", "src", "rows cols"),
            R("dst.layout == NZ", on="a5", when="dst.loc == MAT"),
        ),
    ),
    move(
        "tinsert", opcode=0x102D, algorithm="insertion",
        operands="src indexRow=index indexCol=index dst:inout preQuantScalar=i64?",
        attrs=(_RELU, _MODE,
               Attr("insert_mode", "str", "normal", choices=("normal", "SPLIT2", "SPLIT4"),
                    doc="A5 data path of a vec->mat insert; no numeric effect")),
        format=(form("src indexRow indexCol", "dst"), form("src indexRow indexCol preQuantScalar", "dst")),
        writes="part", domain="src valid region, placed in dst",
        doc="Write a tile into the window of dst that starts at (indexRow, indexCol).",
        meaning=(
            "For (r, c) of the src valid region: dst[r+indexRow, c+indexCol] = cast(src[r,c]), with "
            "normal_relu cast(x > 0 ? x : 0) (on the source value, NaN -> 0), with preQuantScalar quant(x; "
            "word) as in tstore, one word for all columns. The rest of dst is unchanged."
        ),
        pipe=((_VEC_TO_VEC, "V"), ("src.loc == VEC", "MTE3"), ("", "FIX")),
        forms=(*forms("TINSERT($dst, $src, $indexRow, $indexCol) | "
            "TINSERT<Dst, Src, ReluPreMode>($dst, $src, $indexRow, $indexCol) | "
            "TINSERT<Dst, Src, AccToVecMode, ReluPreMode>($dst, $src, $indexRow, $indexCol) | "
            "TINSERT<Dst, Src, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar, (uint16_t) $indexRow, "
            "(uint16_t) $indexCol) | "
            "TINSERT<Dst, Src, AccToVecMode, ReluPreMode>($dst, $src, (uint64_t) $preQuantScalar, "
            "(uint16_t) $indexRow, (uint16_t) $indexCol)"),
            Form("TINSERT<TInsertMode::$insert_mode>($dst, $src, $indexRow, $indexCol)",
                 by_hand="the mode has other numbers in C++")),
        cpu="all", a2a3="any", a5=f"{_CUBE_A5} i32 u32", dtype_of="src dst",
        combos=(
            Combos.of("dst src", when="src.loc == ACC and has(preQuantScalar)", a2a3=_QUANT_A2A3,
                      a5=_QUANT_A5),
            Combos.of("dst src", when="src.loc == VEC", a5=_alike(f"{_CUBE_A5} i32 u32")),
        ),
        rules=(
            *_starts("indexRow", "indexCol"),
            *_window("src", "dst", "v_row v_col"),
            R("(src.loc == ACC and dst.loc == MAT) or (src.loc == VEC and dst.loc == VEC)", on="a2a3",
              msg="expects A2/A3 tinsert src to use loc=acc and dst to use loc=mat"),
            R("(src.loc == ACC and dst.loc == MAT) or (src.loc == VEC and dst.loc in (MAT, VEC))", on="a5", text=True,
              msg="expects A5 tinsert to use a supported src/dst loc pair: acc->mat, vec->mat, or vec->vec"),
            R("src.loc in (ACC, VEC) and dst.loc in (MAT, VEC)", on="a5",
              msg="expects A5 tinsert to use a supported src/dst loc pair: from acc or vec to mat or vec"),
            R("src.dtype == F32 and dst.dtype in (F16, BF16)", on="a2a3",
              when="src.loc == ACC and dst.loc == MAT and not has(preQuantScalar)",
              msg="expects A2/A3 tinsert element types to be src=f32, dst=f16/bf16"),
            R("(src.dtype == F32 and dst.dtype in (F16, BF16, F32))"
              " or (src.dtype == I32 and dst.dtype == I32)",
              on="a5", when="src.loc == ACC and dst.loc == MAT and not has(preQuantScalar)"),
            R("dst.dtype == src.dtype", on="a2a3", when=_VEC_TO_VEC),
            R("src.layout == NZ and dst.layout == NZ", on=_NPU, when="src.loc == ACC and dst.loc == MAT"),
            R("dst.fractal == 512", on="a2a3", when="src.loc == ACC and dst.loc == MAT"),
            R("dst.row_bytes % 32 == 0", on="a2a3", when="src.loc == ACC and dst.loc == MAT", code="SA-0030"),
            R("dst.layout == NZ", on="a5", when="src.loc == VEC and dst.loc == MAT", text=True),
            R("src.layout in (ND, NZ)", on="a5", when="src.loc == VEC and dst.loc == MAT", text=True),
            R("dst.layout in (NZ, ZN) and src.layout in (ND, NZ, ZN)", on="a5", when="src.loc == VEC and dst.loc == MAT"),
            R("src.layout == dst.layout and src.layout in (ND, NZ)", on="a2a3", when=_VEC_TO_VEC),
            R("src.layout == ND and dst.layout == ND", on="a5", when=_VEC_TO_VEC),
            R("indexCol.const * src.bytes % 32 == 0", on="a2a3", when=f"{_VEC_TO_VEC} and src.layout == ND"),
            R("src.loc == ACC", on=_NPU, when="has(preQuantScalar)"),
            R("src.loc == ACC", on=_NPU, when="reluPreMode != 'no_relu'"),
            R("src.loc == ACC and dst.loc == VEC", when="has(accToVecMode)"),
        ),
        types={
            "src": "!pto.tile_buf<acc, 16x16x{T}, blayout=col_major, slayout=row_major, fractal=1024>",
            "src@a2a3": "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>",
            "dst": _MAT,
            **_forms(
                word={"preQuantScalar": "i64"},
                vec={"src": _ND_16, "src@a2a3": _ND_16, "dst": "!pto.tile_buf<vec, 64x64x{T}>"},
                mat={"src": _ND_16, "src@a2a3": _ND_16},
                wide={"src": "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>"},
            ),
        },
        notes=(
            "The window is measured against the dst valid extents on cpu and its static shape elsewhere.",
            "Quantization with an fp tile is tinsert_fp.",
            "Older documents name the insert modes ND, NZ, NZ_PLUS_1, SPLIT2_NZ_PLUS_1, SPLIT4_NZ_PLUS_1.",
        ),
    ),
    fix_quant(
        "tinsert_fp", opcode=0x102E, algorithm="insertion",
        operands="src fp indexRow=index indexCol=index dst:inout",
        writes="part", domain="src valid region, placed in dst",
        doc="Write an accumulator tile into a window of dst with one quantisation word per column.",
        meaning=(
            "For (r, c) of the src valid region: dst[r+indexRow, c+indexCol] = quant(src[r,c]; fp[0,c]), "
            "vector modes of tstore, ReLU last (fp is indexed by the source column, unlike textract_fp). The "
            "rest is unchanged."
        ),
        cpp="TINSERT_FP($dst, $src, $fp, $indexRow, $indexCol) | "
            "TINSERT_FP<Dst, Src, Fp, ReluPreMode>($dst, $src, $fp, $indexRow, $indexCol) | "
            "TINSERT<Dst, Src, Fp, AccToVecMode, ReluPreMode>($dst, $src, $fp, $indexRow, $indexCol)",
        rules=(
            *_starts("indexRow", "indexCol"),
            *_window("src", "dst", "v_row v_col"),
            R("dst.layout == NZ", on="a5", when="dst.loc == MAT"),
        ),
    ),
)  # fmt: skip

_FILLS = (
    fill(
        "tfillpad", opcode=0x1023, algorithm="fill padding", in_place="src",
        by_hand="where dst is decides which template arguments it takes",
        cpp="TFILLPAD($dst, $src)",
        doc="Copy the valid region of a tile and fill the rest of dst with its pad value.",
        rules=(
            _padded("tfillpad"), _same_static("tfillpad"),
            R("dst.layout == NZ and dst.pad in (0, 1)", on=_NPU, when="dst.loc == MAT"),
        ),
        notes=(
            "A mat tile is filled with zero; its type need not carry a pad value.",
            "C++ CompactMode RowAlignedPadding pads only up to the valid rows rounded to 16; the text has no "
            "such mode.",
        ),
    ),
    fill(
        "tfillpad_inplace", opcode=0x1025, algorithm="fill padding",
        in_place="src", cpp="TFILLPAD_INPLACE($dst, $src)",
        doc="Fill dst outside the valid region of src, where both normally are the same storage.",
        rules=(_padded("tfillpad_inplace"), _same_static("tfillpad_inplace")),
    ),
    fill(
        "tfillpad_expand", opcode=0x1024, algorithm="fill padding", cpp="TFILLPAD_EXPAND($dst, $src)",
        doc="Copy the valid region of a tile into a larger one and fill the rest with its pad value.",
        rules=(
            _padded("tfillpad_expand"),
            R("dst.rows >= src.rows and dst.cols >= src.cols", code="SA-0168",
              msg="expects dst static shape to be >= src static shape for tfillpad_expand"),
        ),
        types={"src": "!pto.tile_buf<vec, 8x32x{T}>", "dst": "!pto.tile_buf<vec, 16x64x{T}, pad=1>"},
    ),
)  # fmt: skip

_VIEWS = (
    move(
        "treshape", opcode=0x104C, operands="src", results="result", effect="alias", pipe="S", in_place="",
        by_hand="it refuses what is no tile, by an id of its own",
        names="src", writes="part", domain="whole buffer",
        doc="See the storage of a tile as a tile of another shape, layout or element type.",
        meaning="result names the bytes of src; nothing is moved; result has its own shape and valid region.",
        cpp="TRESHAPE($result, $src)",
        rules=(
            R("src.boxed == result.boxed", code="SA-0301",
              msg="cannot reshape between boxed and non-boxed tile layouts"),
            R("src.loc == result.loc", code="SA-0303"),
            R("src.size == result.size", code="SA-0305"),
        ),
        types={"src": "!pto.tile_buf<vec, 16x64xf32>", "result": "!pto.tile_buf<vec, 8x128xf32>"},
        notes=("An older assembler asks for element types that are both floating or both integral (SA-0302).",),
    ),
    move(
        "bitcast", set="ptoas", family="assembler-op", opcode=0x11A0, operands="src", results="result",
        effect="alias", names="src", in_place="", writes="part", domain="whole buffer",
        doc="See the storage of a tile as elements of another type, shape and layout unchanged.",
        meaning="result names the bytes of src from its start, read as elements of the result type; nothing "
                "is moved.",
        cpp="TASSIGN($result, reinterpret_cast<uint64_t>($src.data()))",
        rules=(
            R("src.loc == result.loc", msg="expects src/result to have the same memorySpace"),
            R("src.dtype != result.dtype",
              msg="expects src/result to have different element types; use pto.treshape for shape/config "
                  "changes"),
            R("src.shape == result.shape",
              msg="expects src/result to have the same shape; use pto.treshape for shape changes"),
            R("valid_eq(src, result)", msg="expects src/result to have the same validShape"),
            R("src.layout == result.layout and src.fractal == result.fractal and src.pad == result.pad"
              " and src.compact == result.compact", msg="expects src/result to have the same tile config"),
            R("result.size <= src.size", msg="bitcast result requires more bytes than source storage"),
        ),
        types={"src": "!pto.tile_buf<vec, 16x64xf32>", "result": "!pto.tile_buf<vec, 16x64xi32>"},
    ),
)  # fmt: skip

_REARRANGE = (
    move(
        "ttrans", opcode=0x106C, algorithm="transposition",
        tmp_on="a2a3", operands="src=tile|conv_tile tmp:tmp dst=tile|conv_tile:out", pipe="V",
        core="vector",
        writes="part", domain="src valid region, transposed",
        doc="Transpose a tile, or convert a convolution tile between its layouts.",
        meaning=(
            "Tile: dst[c,r] = src[r,c] over the src valid region. Convolution tiles, C0 = 32/bytes (4-bit: "
            "64), N0 = 16: NCHW->NC1HWC0 and GNCHW->GNC1HWC0: dst[(g)n][c//C0][h][w][c%C0] = "
            "src[(g)n][c][h][w], tail channels untouched; NC1HWC0->NCHW the inverse; NC1HWC0->FRACTAL_Z: "
            "dst[(c1*H+h)*W+w][n//N0][n%N0][c0]; GNC1HWC0->FRACTAL_Z: dst block g*C1*H*W + c1*H*W + h*W + w; "
            "NCDHW->FRACTAL_Z_3D: dst[((d*C1+c//C0)*H+h)*W+w][n//N0][n%N0][c%C0]."
        ),
        cpp="TTRANS($dst, $src, $tmp)",
        cpu="b32 b16 b8 fp8 hif8 f8e8m0", a2a3="b32 b16 b8", a5="b32 b16 b8", dtype_of="src dst",
        dtype_code="SA-0342",
        rules=(
            *vec("src dst tmp"),
            R("src.bytes == dst.bytes", code="SA-0342"),
            *same_dtype("src dst tmp", on=_NPU),
            R("src.v_row == dst.v_col and src.v_col == dst.v_row", on="cpu"),
            R("src.v_row <= dst.cols and src.v_col <= dst.rows", on=_NPU),
            *row_major("src", code="SA-0342", on="a2a3"),
            R("(src.cols if src.blayout == ROW else src.rows) * src.bytes % 32 == 0", on="a5"),
            R("(dst.cols if dst.blayout == ROW else dst.rows) * dst.bytes % 32 == 0", on="a5"),
        ),
        types={"src": "!pto.tile_buf<vec, 32x64x{T}>", "tmp": "!pto.tile_buf<vec, 32x64x{T}>",
               "dst": "!pto.tile_buf<vec, 64x32x{T}>"},
        notes=(
            "Only A2/A3 uses tmp. Bytes, RS = 32 for 8-bit else 16: tile W*ceil(H/RS)*RS*bytes (when dst "
            "stride % RS == 0 and src stride is at most 255 blocks of 32 bytes); NCHW->NC1HWC0 "
            "H*W*ceil(C0/RS)*RS*bytes; reverse C0*ceil(HW/RS)*RS*bytes; FRACTAL_Z none; NCDHW N*C1*C0*H*W + "
            "max(same, H*W*aligned C0) elements.",
            "C0*bytes == 32 (NC1HWC0 also C0 == 4); NC1HWC0->FRACTAL_Z needs N1*N0 >= N.",
            "A5 transposes the whole static shape.",
        ),
    ),
    move(
        "tconcat", py="concat src0 src1 -> beside(src0, src1)", opcode=0x11A1, algorithm="concatenation",
        operands="src0 src1 src0Idx? src1Idx? dst:out dstIdx:out?", pipe="V",
        core="vector",
        format="ins($src0, $src1 [, $src0Idx, $src1Idx] : type($src0), type($src1) [, type($src0Idx), "
               "type($src1Idx)]) outs($dst [, $dstIdx] : type($dst) [, type($dstIdx)]) attr-dict",
        writes="part", domain="dst valid rows",
        doc="Join the rows of two tiles side by side.",
        meaning=(
            "For each row r < dst.v_row: dst[r, 0:n0] = src0[r, 0:n0]; dst[r, n0:n0+n1] = src1[r, 0:n1]. "
            "Without index tiles n0 = src0.v_col, n1 = src1.v_col; with them b0 = src0Idx[r,0], b1 = "
            "src1Idx[r,0] and n = b // (bytes of the index type), whatever the data type. dstIdx[r,0] = b0 + "
            "b1."
        ),
        cpp="TCONCAT($dst, $src0, $src1) | TCONCAT($dst, $src0, $src1, $src0Idx, $src1Idx) | "
            "TCONCAT($dst, $src0, $src1, $dstIdx, $src0Idx, $src1Idx)",
        cpu="floats ints32", a2a3="floats ints32", a5="floats ints32",
        rules=(
            *vec("src0 src1 dst src0Idx src1Idx dstIdx"),
            *same_dtype("dst src0 src1"),
            *row_major("src0 src1 dst src0Idx src1Idx dstIdx"),
            R("src0.v_row == dst.v_row and src1.v_row == dst.v_row"),
            R("src0.v_col + src1.v_col <= dst.cols"),
            R("has(src0Idx) == has(src1Idx)"),
            R("has(src0Idx)", when="has(dstIdx)"),
            *same_dtype("src0Idx src1Idx dstIdx"),
            R("src0Idx.dtype in (I8, U8, I16, U16, I32, U32)"),
        ),
        types={"src0": "!pto.tile_buf<vec, 16x32x{T}>", "src1": "!pto.tile_buf<vec, 16x32x{T}>",
               **{f"indexed/{n}Idx": "!pto.tile_buf<vec, 16x8xi32>" for n in ("src0", "src1", "dst")}},
        notes=(
            "An index value is element count * bytes of the index type, not data bytes: all headers agree.",
            "The C++ simulator asserts dst.v_col == src0.v_col + src1.v_col; hardware only needs room in "
            "dst.cols.",
            "Hardware writes dstIdx as (n0+n1)*bytes of the index type, which is equal for exact multiples.",
        ),
    ),
    move(
        "tpack", py="pack x:src dtype -> like(x):dtype", opcode=0x1075, algorithm="low bits",
        isas="cpu a5", operands="src dst:out", pipe="V", core="vector",
        doc="Narrow every element to its low bits.",
        meaning="dst[i,j] = the low bits of src[i,j] that fit the dst element (4->2, 4->1 or 2->1 bytes); cpu: a wider"
        " integer keeps the value, by the sign of src.",
        cpp="TPACK($dst, $src)",
        cpu="b32 b16 b8", a5="b32 b16 b8", dtype_of="src dst",
        rules=(
            *vec("src dst"), *row_major("src dst"), *same_valid("dst src"),
            R("src.bytes > dst.bytes", on="a5",
              msg="expects A5 tpack element-size pair to be 4->2, 4->1, or 2->1 bytes"),
        ),
        types={"src": "!pto.tile_buf<vec, 16x64xi32>", "dst": "!pto.tile_buf<vec, 16x64x{T}>",
               "wide/src": "!pto.tile_buf<vec, 16x64x{T}>", "wide/dst": "!pto.tile_buf<vec, 16x64xi8>"},
        notes=("The C++ headers declare no TPACK yet; a truncating copy is the recorded meaning. The public test for the "
               "cpu widens i16 to i32, negative values too.",),
    ),
    move(
        "timg2col", opcode=0x102C, algorithm="image to columns",
        by_hand="positions and mode have defaults in C++",
        operands="src=conv_tile posM=index? posK=index? dst:out", pipe="MTE1",
        core="cube",
        format="ins($src [, $posM, $posK] : type($src) [, type($posM), type($posK)]) outs($dst : type($dst)) "
               "attr-dict",
        attrs=(Attr("fmatrix_mode", "str", "FMATRIX_A_MANUAL",
                    choices=("FMATRIX_A_AUTO", "FMATRIX_B_AUTO", "FMATRIX_A_MANUAL", "FMATRIX_B_MANUAL"),
                    doc="MANUAL expects the feature-map registers to be set by earlier instructions"),),
        doc="Unfold a feature map in L1 into the left operand of a matrix product.",
        meaning=(
            "src NC1HWC0 [N,C1,H,W,C0] (D = 1) or NDC1HWC0 [N,D,C1,H,W,C0], pads (left, right, top, bottom). "
            "outH = (H+padT+padB-dilH*(fH-1)-1)//strH + 1, outW likewise with left/right. dst[r,c]: m = "
            "posM+r; n = m//(D*outH*outW); d = m%(D*outH*outW)//(outH*outW); oh = m%(outH*outW)//outW; ow = "
            "m%outW. k = posK+c; c1 = k//(C0*fH*fW); c0 = k%C0; kk = k%(C0*fH*fW)//C0; kh = kk//fW; kw = "
            "kk%fW. ih = oh*strH+kh*dilH-padT; iw = ow*strW+kw*dilW-padL. dst = src[n,d,c1,ih,iw,c0] if n < "
            "N, c1 < C1, 0 <= ih < H and 0 <= iw < W, else padValue. posM = posK = 0 when absent."
        ),
        cpp="TIMG2COL<Dst, Src, SetFmatrixMode::$fmatrix_mode>($dst, $src, $posM, $posK)",
        cpu="all", a2a3="i8 u8 f16 bf16 f32", a5="ints32 f16 bf16 f32", dtype_of="dst",
        rules=(
            *located("MAT", "src"), *located("LEFT", "dst"), *same_dtype("dst src"),
            R("src.layout in ('NC1HWC0', 'NDC1HWC0')"),
            R("dst.layout == ZZ", on="a2a3"),
            R("dst.layout == NZ", on="cpu a5"),
        ),
        types={"dst": "!pto.tile_buf<left, 16x64x{T}, blayout=col_major, slayout=row_major>",
               "dst@a2a3": "!pto.tile_buf<left, 16x64x{T}, slayout=row_major>"},
        notes=(
            "Filter, dilation, stride (default 1), pads and padValue (default 0) are fields of the "
            "convolution tile.",
            "channelSize and the repeat settings have no effect on the result here.",
        ),
    ),
    pairs(
        "tinterleave", py="interleave lhs:src0 rhs:src1 -> like(lhs) like(lhs)", opcode=0x11A2, algorithm="interleaving", operands="src0 src1 dst0:out dst1:out",
        doc="Interleave the elements of two tiles into two.",
        meaning=(
            "W = valid columns. Per row i the stream s[2k] = src0[i,k], s[2k+1] = src1[i,k]; "
            "dst0[i,j] = s[j], dst1[i,j] = s[W+j], 0 <= j < W."
        ),
        cpp="TINTERLEAVE($dst1, $dst0, $src1, $src0)",
        rules=(
            *vec("src0 src1 dst0 dst1"), *row_major("src0 src1 dst0 dst1"),
            *same_dtype("dst0 dst1 src0 src1"),
            *same_valid("dst0 dst1 src0 src1"), R("dst0.v_col % 2 == 0"),
        ),
    ),
    pairs(
        "tdeinterleave", py="deinterleave lhs:src0 rhs:src1 -> like(lhs) like(lhs)", opcode=0x11A3, algorithm="separation", operands="src0 src1? dst0:out dst1:out",
        doc="Split the even and odd elements of one or two tiles.",
        meaning=(
            "W = dst0 valid columns. Two sources: per row the stream s = src0[i,:W] then src1[i,:W]; "
            "dst0[i,k] = s[2k], dst1[i,k] = s[2k+1], 0 <= k < W. One source: dst0[i,k] = src0[i,2k], "
            "dst1[i,k] = src0[i,2k+1]."
        ),
        cpp="TDEINTERLEAVE($dst1, $dst0, $src1, $src0) | TDEINTERLEAVE($dst1, $dst0, $src0)",
        rules=(
            *vec("src0 src1 dst0 dst1"), *row_major("src0 src1 dst0 dst1"),
            *same_dtype("dst0 dst1 src0 src1"),
            *same_valid("dst0 dst1"), R("dst0.v_col % 2 == 0"),
            R("valid_eq(src0, dst0) and valid_eq(src1, dst0)", when="has(src1)"),
            R("src0.v_row == dst0.v_row and src0.v_col == 2 * dst0.v_col", when="not has(src1)"),
            R("src0.row_bytes >= 512", on="a5", when="not has(src1)"),
        ),
        types={"src0": "!pto.tile_buf<vec, 16x512x{T}>", "*": "!pto.tile_buf<vec, 16x256x{T}>",
               **{f"two/{n}": "!pto.tile_buf<vec, 16x256x{T}>" for n in ("src0", "src1")}},
        notes=("One document page gives the single-source form equal widths; src0 is twice as wide.",),
    ),
)  # fmt: skip

ROWS = (*_MOVES, *_WINDOWS, *_FILLS, *_VIEWS, *_REARRANGE)
