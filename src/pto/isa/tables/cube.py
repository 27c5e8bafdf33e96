"""Cube micro instructions: pointer-level matrix multiply, the copies that feed it, the FIXPIPE write-back.

C0 = 32 bytes, M0 = 16, K0 = 32 / sizeof(T). L1 tiles are NZ (blocks of C0 columns with all their rows), L0B is
K1 N1 N0 K0, L0C is N1 M1 M0 N0 with N0 = 16, as an acc tile of fractal 1024. Clauses are bare words, in the
order of the format.
"""

from __future__ import annotations

from ..row import Attr, Combos, Family, Form, Row
from ..rules import R, Rule
from .dma import LOOP_NEST, LOOP_RULES, REGISTER_NEST, fits, flat, grouped, register, spaces

cube = Family("mad", "cube", core="cube", in_place="none")


def _word(name: str, *choices: str, doc: str = "") -> Attr:
    """An attribute written as a bare word; a flag has its own name as its only value."""
    return Attr(name, "str", choices=choices or (name,), keyword=True, doc=doc)


def _ptrs(**where: str) -> dict[str, str]:
    """Witness pointer types: `_ptrs(src="f32, l0c")`; empty ones are left out."""
    return {name: f"!pto.ptr<{text}>" for name, text in where.items() if text}


# ------------------------------------------------------------------------------------------ matrix multiply

#: C++ numbers of the effect of an instruction on the unit flags of its L0C tile. The last effect is named by
#: its position: a product sets flags, the way out clears them.
UNIT_FLAG_NUMBERS = {None: 0, "check_only": 2, "check_and_set": 3, "check_and_clear": 3}
#: Activations of results that leave L0C, and their C++ numbers.
RELU_NUMBERS = {"no_relu": 0, "normal_relu": 1, "scalar_relu": 2, "vector_relu": 3}

_CLAUSES = (
    _word("unit_flag", "check_only", "check_and_set",
          doc="check that the L0C slot is free; check_and_set also publishes the tile to FIXPIPE"),
    _word("disable_gemv", doc="m = 1 only: lhs in the normal fractal order instead of the GEMV row order"),
    _word("sat_mode", "sat", "nosat", doc="treatment of inf, nan and overflow; absent = mode set outside"),
)  # fmt: skip
_N_DIR = _word("n_dir", doc="produce results along N first; no effect on values")
_TF32 = _word("tf32_mode", "round_even", "round_away", doc="round f32 inputs to TF32 before multiplying")

_BASE = "i32,i8,i8 i32,u8,u8 f32,f16,f16 f32,bf16,bf16 f32,f32,f32"
_FP8 = "f32,f8e4m3,f8e4m3 f32,f8e4m3,f8e5m2 f32,f8e5m2,f8e4m3 f32,f8e5m2,f8e5m2"
_FP4 = "f32,f4e2m1,f4e2m1 f32,f4e2m1,f4e1m2 f32,f4e1m2,f4e2m1 f32,f4e1m2,f4e1m2"
_HIF8 = "f32,hif8,hif8"

_MAD_RULES = (
    *spaces(lhs="L0A", rhs="L0B", dst="L0C"),
    *(R(f"1 <= {n}.const <= 4095") for n in "mnk"),
)
_BIAS_RULES = (*spaces(bias="BT"), R("bias.dtype == dst.dtype"))
_MAD_NOTES = (
    "sat: inputs +-inf become the largest finite value, nan becomes 0, overflow saturates; "
    "nosat, and neither: exceptional values propagate",
    "run time: pointers aligned to their fractal, 512 B, dst 1024 B, bias 64 B; FIXPIPE reads dst only after an M to FIX flag or unit_flag",
)


def _mad_format(operands: str, tf32: bool) -> str:
    names, types = flat(operands).split(" attr-dict : ")
    mode = " [tf32_mode($tf32_mode)]" if tf32 else ""
    return f"{names} [unit_flag($unit_flag)] [$disable_gemv] [$sat_mode]{mode} [$n_dir] attr-dict : {types}"


def _mad_operands(bias: bool, acc: bool) -> str:
    dst = f"dst=ptr:{'inout' if acc else 'out'}"
    return f"lhs=ptr rhs=ptr {dst}{' bias=ptr' if bias else ''} m=i64 n=i64 k=i64"


mad = cube.but(pipe="M", attrs=_CLAUSES, rules=_MAD_RULES, notes=_MAD_NOTES)


#: Combinations of types in products of public code.
_CALLED = _BASE.replace("i32,u8,u8 ", "")


def _mad_call(call: str, types: str, bias: bool, acc: bool) -> tuple[Form, ...]:
    """Return the calls of a product. The last arguments select the start of the sums: the bias, which shares
    a word with dst, zero, or dst."""
    starts = "true, false" if bias else "false, false" if acc else "false, true"
    into = "($dst, $bias)" if bias else "$dst"
    text = f"{call}({into}, $lhs, $rhs, $m, $k, $n, unit_flag, disable_gemv, {starts})"
    clauses = "unit_flag disable_gemv sat_mode tf32_mode n_dir"
    return (Form(text, types=types, ignores=clauses, by_hand="modes are bits of CTRL: micro/mad.hpp"),)


def _mad(name: str, opcode: int, bias: bool = False, acc: bool = False, **own: str) -> Row:
    names = "lhs rhs dst bias m n k" if bias else "lhs rhs dst m n k"
    return mad(
        name, opcode=opcode, algorithm="micro matrix product", operands=_mad_operands(bias, acc), attrs=(_TF32, _N_DIR),
        format=_mad_format(names, tf32=True), **own,
        combos=(Combos.of("dst lhs rhs", a2a3=_BASE, a5=f"{_BASE} {_FP8} {_HIF8}",
                          cpu=f"{_BASE} {_FP8} {_HIF8} i32,s4,s4"),),
        rules=(
            *(_BIAS_RULES if bias else ()),
            R("lhs.dtype == F32 and rhs.dtype == F32 and dst.dtype == F32", when="has(tf32_mode)",
              msg="expects tf32_mode on f32 operands only"),
            R("dst.dtype != I32", when="has(sat_mode)", msg="expects sat or nosat on floating-point forms"),
            R("k.const % 2 == 0", on="cpu", when="lhs.bits == 4"),
        ),
        notes=("i8 products accumulate in i32, floating-point ones in f32",),
        forms=_mad_call("mad", f"{_CALLED} {_FP8} {_HIF8}", bias, acc),
        types=_ptrs(lhs="{T}, l0a", rhs="{T}, l0b", dst="{T}, l0c", bias="{dst}, bt" if bias else ""),
    )  # fmt: skip


def _mad_mx(name: str, opcode: int, bias: bool = False, acc: bool = False, **own: str) -> Row:
    names = "lhs rhs dst bias m n k" if bias else "lhs rhs dst m n k"
    legal = f"{_FP8} {_FP4}"
    return mad(
        name, opcode=opcode, algorithm="micro matrix product: mx", operands=_mad_operands(bias, acc), attrs=(_N_DIR,),
        format=_mad_format(names, tf32=False), isas="cpu a5", **own,
        combos=(Combos.of("dst lhs rhs", cpu=legal, a5=legal),),
        rules=(*(_BIAS_RULES if bias else ()), R("k.const % 64 == 0")),
        notes=("the scales lie beside the operands, in buffers of their own at a sixteenth of the addresses: "
               "load both, mte_l1_l0a_mx and mte_l1_l0b_mx",),
        forms=_mad_call("mad_mx", legal, bias, acc),
        types=_ptrs(lhs="{T}, l0a", rhs="{T}, l0b", dst="{T}, l0c", bias="{dst}, bt" if bias else ""),
    )  # fmt: skip


_SUM = "sum_k lhs[m,k] * rhs[k,n]"
_MX_SUM = "sum_k (lhs[m,k] * ls[m,k//32]) * (rhs[k,n] * rs[k//32,n]), ls and rs the loaded scales"

# --------------------------------------------------------------------------------------------- data movement

_ANY = {"cpu": "all s4", "a2a3": "any", "a5": "all"}
_FEED = {"cpu": "f16 bf16 f32 i8 u8 fp8 hif8 fp4 s4", "a2a3": "f16 bf16 f32 i8 u8",
         "a5": "f16 bf16 f32 i8 u8 fp8 hif8 fp4"}  # fmt: skip
_SCALES = {"cpu": "f8e8m0 fp8 fp4", "a5": "f8e8m0 fp8 fp4"}
#: Operands of the calls for elements of a byte or more, and of 4 bits.
_FEED_WIDE = {isa: " ".join(n for n in text.split() if n not in ("fp4", "s4")) for isa, text in _FEED.items()}
_FOUR_BITS = {"cpu": "fp4 s4", "a5": "fp4"}
_SAME: tuple[Rule, ...] = (R("dst.dtype == src.dtype"),)

move = cube.but(family="data-movement", dtype_of="src dst")
bursts = move.but(
    operands="src=ptr dst=ptr:out len_burst=i64 count=i64 src_stride=i64 dst_stride=i64 loop=i64*",
    format=grouped("src dst len_burst", "count", "src_stride dst_stride"),
    meaning=f"n_burst = count: {LOOP_NEST.replace('n_burst', 'count')}",
    notes=("lengths and strides count bytes; run time: on-chip addresses are 32 B aligned",),
    **_ANY,
)
parameters = move.but(
    operands="src=ptr dst=ptr:out len_burst=i64 count=i64 src_gap=i64 dst_gap=i64",
    format=grouped("src dst len_burst", "count", "src_gap dst_gap", loop=False),
)


_TRANSPOSE = Attr("transpose", "bool", False, doc="transpose the logical source tile first")


def _feed_call(space: str, a: str, b: str, mx: bool) -> str:
    """Return the call of a load. Starts, steps and strides count 16 rows and 32 bytes, those of scales boxes
    of 16 rows and 64 elements of k; `codegen/cpp/cube.py` derives them."""
    name = f"load_cbuf_to_c{space[-1].lower()}"
    if mx:
        return f"{name}_mx($dst >> 4, $src, xStart, yStart, ${a}, ${b}, srcStride, dstStride)"
    return f"{name}($dst, $src, mStart, kStart, ${a}, ${b}, srcStride, dstStride, $transpose)"


def _feed(name: str, opcode: int, space: str, extents: str, mx: bool = False, **own: str) -> Row:
    """A copy from L1 into one operand buffer of the cube unit."""
    a, b = extents.split()
    line = a if b == "k" else b
    return move(
        name, opcode=opcode, pipe="MTE1", **own,
        operands=f"src=ptr dst=ptr:out {a}=i64 {b}=i64 {a}_start=i64? {b}_start=i64?",
        format=f"$src, $dst, ${a}, ${b} [, ${a}_start, ${b}_start] attr-dict : "
        f"type($src), type($dst), type(${a}), type(${b}) [, type(${a}_start), type(${b}_start)]",
        attrs=() if mx else (_TRANSPOSE,),
        rules=(
            *spaces(src="L1", dst=space), *_SAME, *(R(f"{n}.const > 0") for n in (a, b)),
            *(R(f"{n}_start.const >= 0") for n in (a, b)),
            R(f"has({a}_start) == has({b}_start)"),
        ),
        notes=(
            f"{a}_start and {b}_start (default 0) pick a sub-tile of the source, in elements of the operand; its "
            "column blocks are as high as the sub-tile" + ("; k_start is a multiple of 32" if mx else ""),
            "run time: src at 32 B, dst at 512 B" + ("" if mx else "; whole 512 B fractals are copied"),
            *(() if mx else (f"transpose of 8 or 4 bits: let {line} be a multiple of 32 or 64; a product that counts "
                             f"fewer finds the lines beyond {line} in the place of k",)),
        ),
        cpp=_feed_call(space, a, b, mx), isas="cpu a5" if mx else "cpu a2a3 a5",
        types={**_ptrs(src="{T}, l1", dst=f"{{T}}, {space.lower()}"),
               **{f"window/{n}_start": "i64" for n in (a, b)}},
        **(_SCALES if mx else _FEED),
    )  # fmt: skip


# ------------------------------------------------------------------------------- copies as the calls have them

_OLDER = ("the words of the C++ call; the grouped mte_* form counts in elements and bytes",)
_RAW_FEED = (*_OLDER, "run time: src at 32 B, dst at 512 B")


def _raw_feed(name: str, opcode: int, space: str, four: bool = False) -> Row:
    """A copy from L1 into one operand buffer, in fractals."""
    words = "m_start k_start m_step k_step src_stride dst_stride" + (" transpose" if four else "")
    given = " ".join(f"{n}=i64" for n in words.split())
    left = space == "L0A"
    return move(
        name, opcode=opcode, pipe="MTE1", isas="cpu a5" if four else "cpu a2a3 a5",
        algorithm=f"fractals of L1: {'left' if left else 'right'}",
        operands=f"src=ptr dst=ptr:out {given}", format=flat(f"src dst {words}"),
        attrs=() if four else (_TRANSPOSE,),
        rules=(*spaces(src="L1", dst=space), *_SAME, *fits(16, "m_start k_start src_stride dst_stride"),
               *fits(8, "m_step k_step")),
        doc=f"Load fractals from L1 into {space}" + (", of elements of 4 bits." if four else "."),
        meaning="Fractals are 16 rows of 32 bytes. For j < k_step, i < m_step: fractal (k_start + j) * src_stride + "
        "m_start + i of src becomes fractal j * dst_stride + i of dst" + (
            "; on A2A3 fractal i * k_step + j" if left else "") + ". transpose: the matrix of the fractals read, with "
        "rows and columns of elements exchanged; of its rows, those that dst_stride has room for.",
        notes=_RAW_FEED,
        cpp=f"{name}($dst, $src, {', '.join(f'${n}' for n in words.split())}{'' if four else ', $transpose'})",
        types=_ptrs(src="{T}, l1", dst=f"{{T}}, {space.lower()}"),
        **(_FOUR_BITS if four else _FEED_WIDE),
    )  # fmt: skip


def _raw_scales(name: str, opcode: int, space: str) -> Row:
    words = "x_start_position y_start_position x_step y_step src_stride dst_stride"
    return move(
        name, opcode=opcode, pipe="MTE1", isas="cpu a5",
        algorithm=f"boxes of scales: {'left' if space == 'L0A' else 'right'}",
        operands="src=ptr dst=ptr:out " + " ".join(f"{n}=i64" for n in words.split()), format=flat(f"src dst {words}"),
        rules=(*spaces(src="L1", dst=space), *fits(16, "x_start_position y_start_position src_stride dst_stride"),
               *fits(8, "x_step y_step")),
        doc=f"Load boxes of MX scales from L1 beside an operand in {space}.",
        meaning="Boxes are 32 bytes. For i < x_step, j < y_step: box (x_start_position + i) * src_stride + "
        "y_start_position + j of src becomes box i * dst_stride + j of the scale buffer, from dst / 16 on.",
        notes=_RAW_FEED,
        cpp=f"{name}((uint64_t) $dst >> 4, (__cbuf__ void*) $src, {', '.join(f'${n}' for n in words.split())})",
        types=_ptrs(src="{T}, l1", dst=f"{{T}}, {space.lower()}"),
        **_SCALES,
    )  # fmt: skip


def _l1_loops(what: str, opcode: int, doc: str, meaning: str) -> Row:
    name = f"set_{what}_outtol1"
    return register(
        name, opcode=opcode, algorithm=f"copy loops: {what}_outtol1", operands="word=i64", core="cube",
        format="$word attr-dict : type($word)", doc=doc, meaning=meaning, cpp=f"{name}((uint64_t) $word)",
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------- FIXPIPE

#: Quantization modes by stem: source and destination element types, and their C++ number. Stems other than
#: plain conversions have a suffix: `_vec` (a row of parameters per channel in FB) has the number, and
#: `_scalar` (one scale) the next number.
_PLAIN = {"f32_f16": ("F32", "F16", 1), "f32_bf16": ("F32", "BF16", 16), "f322f16": ("F32", "F16", 1),
          "f322bf16": ("F32", "BF16", 16)}  # fmt: skip
_STEMS: dict[str, tuple[str, str, int]] = {
    "qf322f32_pre": ("F32", "F32", 14), "qf322f16_pre": ("F32", "F16", 31), "qf322bf16_pre": ("F32", "BF16", 33),
    "qf322b8_pre": ("F32", "I8, U8", 23), "qf322s4_pre": ("F32", "S4", 25), "qf162b8_pre": ("F32", "I8, U8", 17),
    "qf162s4_pre": ("F32", "S4", 19), "qf322hif8_pre": ("F32", "HIF8", 2),
    "qf322hif8_pre_hybrid": ("F32", "HIF8", 4), "qf322fp8_pre": ("F32", "F8E4M3, F8E5M2", 12),
    "qf162s16_pre": ("I32", "I16", 29), "deqs32_int": ("I32", "I8, U8, I16, U16, I32, U32", 6),
    "deqs16": ("I32", "I16", 27), "req8": ("I32", "I8, U8", 8), "req4": ("I32", "S4", 21),
    "deqf16": ("I32", "F16", 10), "qs322bf16_pre": ("I32", "BF16", 35), "shifts322s16": ("I32", "I16", 12),
}  # fmt: skip
_FORMS = ("vec", "scalar")
_MODES: dict[str, tuple[str, str]] = {
    **{mode: (src, dst) for mode, (src, dst, _) in _PLAIN.items()},
    **{f"{stem}_{form}": (src, dst) for stem, (src, dst, _) in _STEMS.items() for form in _FORMS[::-1]},
}  # fmt: skip
#: C++ numbers of quantization modes.
QUANT_NUMBERS: dict[str, int] = {
    **{mode: number for mode, (_, _, number) in _PLAIN.items()},
    **{f"{stem}_{form}": number + at for stem, (_, _, number) in _STEMS.items() for at, form in enumerate(_FORMS)},
}  # fmt: skip
_A5_MODES = tuple(m for m in _MODES if "hif8" in m or "fp8" in m)
_VEC_MODES = tuple(m for m in _MODES if m.endswith("_vec"))
_PAYLOAD_MODES = tuple(m for m in _MODES if m not in ("f322f16", "f322bf16"))


def _mode_rules() -> tuple[Rule, ...]:
    """Source and destination types each quantisation mode implies, one rule per distinct pair."""
    out: list[Rule] = []
    for source, targets in dict.fromkeys(_MODES.values()):
        modes = tuple(m for m, pair in _MODES.items() if pair == (source, targets))
        when = f"quant_mode in {modes!r}"
        out += [R(f"src.dtype == {source}", when=when), R(f"dst.dtype in ({targets},)", when=when)]
    return tuple(out)


_FLOATS = "(F16, BF16, F32)"
_SIGNED = "(S4, I8, I16)"
_FIX_RULES = (
    R("src.space == L0C"),
    R("m.const > 0"),
    R("n.const > 0"),
    R("has(quant_payload)", when=f"quant_mode in {_PAYLOAD_MODES!r}",
      msg="expects pre_quant to have a payload"),
    R("quant_payload.dtype in " + _FLOATS),
    R("quant_payload.space == FB", when="quant_payload.kind == 'ptr'"),
    R("quant_payload.kind == 'ptr'", when=f"quant_mode in {_VEC_MODES!r}",
      msg="expects a vector pre_quant mode to take an fb pointer"),
    R("quant_payload.kind != 'ptr'", when=f"quant_mode not in {_VEC_MODES!r}",
      msg="expects a scalar pre_quant mode to take a floating-point scalar"),
    *_mode_rules(),
    R("dst.dtype == src.dtype or (src.dtype == F32 and dst.dtype in (F16, BF16))", when="not has(quant_mode)",
      msg="expects a pre_quant mode for this pair of element types"),
    R(f"quant_mode not in {_A5_MODES!r}", on="a2a3"),
    R("has(relu_payload)", when="relu_mode in ('scalar_relu', 'vector_relu')",
      msg="expects scalar_relu and vector_relu to have a payload"),
    R("not has(relu_payload)", when="relu_mode in ('no_relu', 'normal_relu')",
      msg="expects no_relu and normal_relu to have no payload"),
    R("relu_payload.dtype in " + _FLOATS),
    R("relu_payload.space == FB", when="relu_payload.kind == 'ptr'"),
    R("relu_payload.kind == 'ptr'", when="relu_mode == 'vector_relu'"),
    R("relu_payload.kind != 'ptr'", when="relu_mode == 'scalar_relu'"),
    R("not has(clip)", on="a2a3", msg="clip is not available on a2a3"),
    R("has(relu_mode)", on="cpu a5", when="has(clip)", msg="expects clip inside pre_relu only"),
    R(f"dst.dtype in (F16, U8, {_SIGNED[1:]}", on="cpu a5", when="has(clip)"),
    R("clip.dtype == F16", on="cpu a5", when="dst.dtype == F16"),
    R("clip.bits == 16", on="cpu a5", when="dst.dtype == U8"),
    R(f"clip.dtype in {_SIGNED}", on="cpu a5", when=f"dst.dtype in {_SIGNED}"),
    R("has(layout_arg)", when="layout == 'nz2dn'", msg="expects nz2dn to have a source stride"),
    R("not has(layout_arg)", when="layout == 'nz2nd'", msg="expects nz2nd to have no operand"),
    R("layout_arg.const == 1", when="has(unit_flag) and layout == 'nz2dn'",
      msg="expects no unit_flag with an nz2dn source stride other than 1"),
    R("dst.dtype == F32", when="layout == 'nz2nz'"),
    R("not has(loop3_count)", when="layout == 'nz2nz'", msg="expects nz2nz without loop3"),
    R("sat_mode == 'sat'", when="has(preserve_nan)"),
)  # fmt: skip

_FIX_FORMS = {
    "dn/attr:layout": "nz2dn", "dn/layout_arg": "i64", "dn/attr:unit_flag": "check_only",
    "quant/attr:quant_mode": "qf322f32_pre_scalar", "quant/quant_payload": "f32",
    "quants/attr:quant_mode": "qf322f32_pre_vec", "quants/quant_payload": "!pto.ptr<f32, fb>",
    "relu/attr:relu_mode": "scalar_relu", "relu/relu_payload": "f32",
    "relus/attr:relu_mode": "vector_relu", "relus/relu_payload": "!pto.ptr<f32, fb>",
}  # fmt: skip


def _fix_types(space: str) -> dict[str, str]:
    """Witness types of a write-back to `space`, one form per clause."""
    forms = _FIX_FORMS.copy()
    for form, dst, clip in (("f16", "f16", "f16"), ("u8", "ui8", "i16"), ("i8", "i8", "i16")):
        forms |= {f"clip_{form}/dst": f"!pto.ptr<{dst}, {space}>", f"clip_{form}/clip": clip,
                  f"clip_{form}/attr:relu_mode": "normal_relu"}  # fmt: skip
        if dst != "f16":
            forms |= {f"clip_{form}/attr:quant_mode": "qf322b8_pre_scalar", f"clip_{form}/quant_payload": "f32"}
    return {**_ptrs(src="{T}, l0c", dst=f"{{T}}, {space}"), **forms}


_FIX_ATTRS = (
    _word("unit_flag", "check_only", "check_and_clear",
          doc="check that the L0C tile is complete; check_and_clear also frees it"),
    _word("quant_mode", *_MODES, doc="conversion applied first"),
    _word("relu_mode", *RELU_NUMBERS, doc="activation after quantising"),
    _word("layout", "nz2nd", "nz2dn", "nz2nz", doc="destination layout; absent = plain write-back"),
    _word("sat_mode", "sat", "nosat", doc="final conversion of overflow, inf and nan"),
    _word("preserve_nan", doc="with sat: nan stays nan where the destination has one"),
)  # fmt: skip
_FIX_OPERANDS = (
    "quant_payload=scalar|ptr? relu_payload=scalar|ptr? clip=scalar? layout_arg=i64? loop3_count=i64? "
    "loop3_src_stride=i64? loop3_dst_stride=i64?"
)
_FIX_MEANING = (
    "for r < loop3_count (default 1), source at src + r * loop3_src_stride * N0 elements, destination at "
    "dst + r * loop3_dst_stride elements; for i < m, j < n: x = source element "
    "((j // N0) * src_stride + i) * N0 + j % N0; x = quantise(x); x = relu(x); "
    "if clip, x = min(x, clip); write convert(x). "
    "nz2nd: to i * dst_stride + j. nz2dn: to j * dst_stride + i, with i * layout_arg for i in the source. "
    "No layout, nz2nz: to (j // W) * dst_stride + i * W + j % W with W = N0, but 32 B for narrower types, and "
    "8 for nz2nz with a layout_arg other than 0. "
    "quantise: y = float(x) * scale; to 8 bits clamp(nearbyint(y + offset), [-128,127] if signed else "
    "[0,255]); 4 and 16 bits likewise in their range; deqf16 clamps to +-65504; to f16 and bf16 round to "
    "even, finite overflow clamps; f32_f16, f32_bf16, f322f16 and f322bf16 do not scale; shifts322s16: "
    "(x >> (shift + 1)) truncated to i16. "
    "relu: normal max(x, 0); scalar x if x >= 0 else alpha * x; vector the same with alpha per channel. "
    "sat: overflow and inf clamp to the finite range, nan becomes 0 (preserve_nan keeps it); nosat: they "
    "propagate; f32 destinations keep inf and nan."
)
_FIX_NOTES = (
    "src_stride counts rows of N0 elements: the padded m of a packed tile. The manual calls the unit C0 = "
    "32 B with N0 = 32 / sizeof(T); programs that pass the padded m mean the same in both readings",
    "64-bit parameter word: scalar form, bits 0..31 an f32 scale; vector form, scale in bits 13..31 (1 sign, "
    "8 exponent, 10 mantissa); offset in bits 37..45, shift in bits 32..35, sign flag in bit 46",
    "f16 and bf16 payloads widen to f32; FB rows: 128 B for pre_quant, 64 B for pre_relu, in channel order: 8 "
    "and 4 bytes per channel, the element of the pointer's type first",
    "to f16/bf16 without a sat word: nan becomes 0 and inf clamps only when CTRL bit 48 is set",
    "the quantization mode and clip determine integer narrowing, not sat and nosat",
    "reading a tile a mad still writes is an error: order by an M to FIX flag or by unit_flag",
    "f322f16, f322bf16 (no payload) and shifts322s16_* come from the C++ QuantMode_t, the rest from the text",
)
fixpipe = cube.but(
    family="fixpipe", pipe="FIX", attrs=_FIX_ATTRS, rules=_FIX_RULES, notes=_FIX_NOTES, dtype_of="src",
    cpu="f32 i32", a2a3="f32 i32", a5="f32 i32",
)  # fmt: skip


def _fix_format(operands: str, mode: str = "", atomic: str = "") -> str:
    names, types = flat(operands).split(" attr-dict : ")
    clauses = (
        "[, unit_flag($unit_flag)] [, pre_quant([$quant_payload,] mode = $quant_mode)] "
        "[, pre_relu([$relu_payload,] mode = $relu_mode [, clip = $clip])] [, $layout [($layout_arg)]] "
        "[, loop3($loop3_count, $loop3_src_stride, $loop3_dst_stride)] [, $sat_mode [($preserve_nan)]]"
    )
    tail = (
        "[, type($quant_payload)] [, type($relu_payload)] [, type($clip)] [, type($layout_arg)] "
        "[, type($loop3_count), type($loop3_src_stride), type($loop3_dst_stride)]"
    )
    sub = " [, type($sub_blockid)]" if mode else ""
    return f"{names}{mode} {clauses}{atomic} attr-dict : {types}{sub} {tail}"


def _fix_call(space: str, sid: str, cache: str) -> str:
    """Return the call of a move out of L0C. After the stride of the source come cache (or vector core), clip,
    unit flag, quantization, ReLU, split, rows, and arguments of later units; columns are last.
    `codegen/cpp/cube.py` fills them in."""
    return (
        f"copy_matrix_cc_to_{space}($dst, $src, {sid}, $n, $m, $dst_stride, $src_stride, {cache}, clip, unit_flag, "
        "quant_pre, relu_pre, split, nz2nd, 0, 0, false, false, 0, false, false, false, false, false, nz2dn)"
    )


_FIX_HEAD = "src=ptr dst=ptr:out m=i64 n=i64 src_stride=i64 dst_stride=i64"
_FIX_NAMES = "src dst m n src_stride dst_stride"

ROWS = (
    _mad("mad", 0x3180, meaning=f"dst[m,n] = {_SUM}.",
         doc="Matrix product of an L0A and an L0B tile, written to L0C."),
    _mad("mad_acc", 0x3181, acc=True, meaning=f"dst[m,n] = dst[m,n] + {_SUM}.",
         doc="Matrix product added to an initialised L0C tile."),
    _mad("mad_bias", 0x3182, bias=True, meaning=f"dst[m,n] = bias[n] + {_SUM}.",
         doc="Matrix product plus a bias row of n values."),
    _mad_mx("mad_mx", 0x3183, meaning=f"dst[m,n] = {_MX_SUM}.",
            doc="Matrix product of MX tiles with their block scales."),
    _mad_mx("mad_mx_acc", 0x3184, acc=True,
            meaning=f"dst[m,n] = dst[m,n] + {_MX_SUM}.", doc="MX matrix product added to an L0C tile."),
    _mad_mx("mad_mx_bias", 0x3185, bias=True,
            meaning=f"dst[m,n] = bias[n] + {_MX_SUM}.", doc="MX matrix product plus a bias row."),
    bursts(
        "mte_gm_l1", opcode=0x3186, algorithm="bursts to a core: into L1",
        pipe="MTE2", doc="Copy bursts of bytes from GM to L1 unchanged.",
        rules=(*spaces(src="GM", dst="L1"), *_SAME, *LOOP_RULES),
        cpp="copy_gm_to_cbuf_align_v2($dst, $src, 0, $count, $len_burst, 0, 0, false, 0, $src_stride, $dst_stride)",
        types=_ptrs(src="{T}, gm", dst="{T}, l1"),
    ),
    move(
        "mte_gm_l1_frac", opcode=0x3187, algorithm="fractals from memory", pipe="MTE2",
        doc="Load row- or column-major matrices from GM into NZ order in L1.",
        operands="src=ptr dst=ptr:out n_value=i64 d_value=i64 src_inner_stride=i64 src_outer_stride=i64? "
        "group_count=i64 dst_loop2_stride=i64 dst_loop3_stride=i64 dst_loop4_stride=i64 l2_cache_ctrl=i64 "
        "smallc0_en=i1",
        attrs=(Attr("mode", "str", required=True, choices=("nd2nz", "dn2nz"), keyword=True,
                    doc="source order: rows of d, or rows of n"),),
        format="$src, $dst, $mode, shape($n_value, $d_value), "
        "src_layout($src_inner_stride [, $src_outer_stride]), "
        "dst_group($group_count, $dst_loop2_stride, $dst_loop3_stride, $dst_loop4_stride), "
        "ctrl($l2_cache_ctrl, $smallc0_en) attr-dict : type($src), type($dst), $mode, "
        "shape type($n_value), type($d_value), "
        "src_layout(type($src_inner_stride) [, type($src_outer_stride)]), dst_group type($group_count), "
        "type($dst_loop2_stride), type($dst_loop3_stride), type($dst_loop4_stride), "
        "ctrl type($l2_cache_ctrl), type($smallc0_en)",
        cpu="b8 b16 b32 fp8 f8e8m0 hif8 fp4", a2a3="b8 b16 b32", a5="b8 b16 b32 fp8 f8e8m0 hif8 fp4",
        rules=(
            *spaces(src="GM", dst="L1"), *_SAME,
            R("n_value.const > 0"), R("d_value.const > 0"), R("group_count.const >= 0"),
            R("d_value.const <= 4", when="smallc0_en.const == 1",
              msg="expects d_value <= 4 in small-C0 mode"),
        ),
        meaning="E = 32 / sizeof(T). For g < group_count, n < n_value, d < d_value: the element at src + "
        "g * src_outer_stride (default 0) + n * src_inner_stride + d * sizeof(T) (nd2nz), or + "
        "d * src_inner_stride + n * sizeof(T) (dn2nz), goes to dst + 32 * (g * dst_loop4_stride + "
        "(d // E) * dst_loop3_stride + n * dst_loop2_stride) + (d % E) * sizeof(T). Lanes d_value .. "
        "roundup(d_value, E) - 1 of the last block are written 0. Small C0: each burst pads to 4 channels, "
        "missing rows and lanes are 0, the tail pads to 32 B.",
        notes=(
            "source strides count bytes, destination strides C0 units of 32 B: loop2 = 1 packs rows, loop3 "
            "is the padded N",
            "the roles of loop2 and loop3 are inferred from the NZ order; small C0 fixes both",
            "overlapping destination groups have no stable result; l2_cache_ctrl is a hint",
            "dn2nz depends on the target on a2a3",
        ),
        cpp="copy_gm_to_cbuf_multi_$mode($dst, $src, 0, $src_inner_stride, $l2_cache_ctrl, $n_value, $d_value, "
        "$src_outer_stride, $smallc0_en)",
        types={**_ptrs(src="{T}, gm", dst="{T}, l1"), "attr:mode": "nd2nz"},
    ),
    bursts(
        "mte_l1_ub", opcode=0x3188, algorithm="bursts to a core: out of L1",
        pipe="MTE1", isas="cpu a5", doc="Copy bursts of bytes from L1 to UB.",
        rules=(*spaces(src="L1", dst="UB"), *_SAME, *LOOP_RULES),
        notes=("issued by the cube core; the vector core reads only after a cross-core signal",
               "hardware counts len_burst and nburst in 32 B units, with gaps instead of strides (semantics hw)"),
        cpp="copy_cbuf_to_ubuf($dst, $src, false, $count, $len_burst, $src_stride, $dst_stride)",
        types=_ptrs(src="{T}, l1", dst="{T}, ub"),
    ),
    _feed("mte_l1_l0a", 0x3189, "L0A", "m k", algorithm="left operand", doc="Load a left tile from L1 into L0A.",
          meaning="Copy the m x k tile from NZ in L1 to L0A: A5 NZ (K1 M1 M0 K0), A2A3 ZZ (M1 K1 M0 K0). "
          "Padding up to 16 rows and K0 columns comes along. transpose: L1 holds the k x m matrix, of which "
          "whole squares are transposed: max(16, K0) elements a side."),
    _feed("mte_l1_l0b", 0x318A, "L0B", "k n", algorithm="right operand", doc="Load a right tile from L1 into L0B, K innermost.",
          meaning="Copy the operand to ZN in L0B (K1 N1 N0 K0), which is the NZ order of the n x k matrix: L1 "
          "holds that matrix in NZ; with transpose, the k x n matrix in NZ, and K becomes innermost, in whole "
          "squares of max(16, K0) elements a side. The manual describes the reverse order (semantics doc)."),
    _feed("mte_l1_l0a_mx", 0x318B, "L0A", "m k", mx=True, algorithm="operand scales: left", doc="Load the MX scales of a left tile.",
          meaning="Load scales of logical shape [m, ceil(k/32)], boxes of 16 rows and 2 groups (32 B) row by "
          "row, into the scale buffer at dst / 16; mad_mx* with that lhs uses them."),
    _feed("mte_l1_l0b_mx", 0x318C, "L0B", "k n", mx=True, algorithm="operand scales: right", doc="Load the MX scales of a right tile.",
          meaning="Load scales of logical shape [ceil(k/32), n], boxes of 2 groups and 16 columns (32 B, "
          "groups innermost), the boxes of 16 columns together, into the scale buffer at dst / 16; mad_mx* "
          "with that rhs uses them."),
    parameters(
        "mte_l1_bt", opcode=0x318D, algorithm="bias",
        pipe="MTE1", doc="Load bias values from L1 into the bias table.",
        combos=(Combos.of("src dst", **dict.fromkeys(("cpu", "a2a3", "a5"),
                                                     "f32,f32 i32,i32 f16,f32 bf16,f32")),), dtype_of="",
        rules=spaces(src="L1", dst="BT"),
        meaning="for r < count: load len_burst values, f16 and bf16 widened to f32; source and destination "
        "advance by len_burst + src_gap and len_burst + dst_gap values per burst.",
        notes=("lengths and gaps count bias-load units, taken as elements of the pair",
               "loads exactly the N values the consuming mad_bias needs"),
        cpp="copy_cbuf_to_bt((uint64_t) $dst, $src, convert, $count, $len_burst, $src_gap, $dst_gap)",
        types=_ptrs(src="{T}, l1", dst="{T}, bt"),
    ),
    parameters(
        "mte_l1_fb", opcode=0x318E, algorithm="fix-pipe parameters",
        pipe="FIX", doc="Load FIXPIPE parameters from L1 into FB.",
        **dict.fromkeys(("cpu", "a2a3", "a5"), "any"), rules=spaces(src="L1", dst="FB"),
        meaning="for r < count: copy len_burst units of 64 B (a2a3: 128 B); source and destination advance by "
        "len_burst + src_gap and len_burst + dst_gap units per burst.",
        notes=("consumers read rows of 64 B (vector pre_relu) or 128 B (vector pre_quant), in channel order",
               "lengths and gaps count parameter-load units, those of the headers; 64-bit quant words exist at "
               "tile level",
               "on FIX, as in the headers; the assembler puts a mat to scaling tmov on MTE1"),
        cpp="copy_cbuf_to_fbuf($dst, $src, $count, $len_burst, $src_gap, $dst_gap)",
        types=_ptrs(src="{T}, l1", dst="{T}, fb"),
    ),
    move(
        "copy_gm_to_cbuf", opcode=0x3192, algorithm="bursts to a core: into L1 by registers", pipe="MTE2",
        operands="src=ptr dst=ptr:out n_burst=i64 len_burst=i64 src_stride=i64 dst_stride=i64",
        format=flat("src dst n_burst len_burst src_stride dst_stride"),
        rules=(*spaces(src="GM", dst="L1"), *_SAME, *fits(21, "n_burst len_burst dst_stride"), *fits(40, "src_stride")),
        doc="Copy bursts of bytes from GM to L1 under the outtol1 loop registers.",
        meaning=REGISTER_NEST,
        notes=(*_OLDER, "run time: on-chip addresses are 32 B aligned",
               "the loop counts are 1 without set_loop_size_outtol1"),
        cpp="copy_gm_to_cbuf_align_v2($dst, $src, 0, $n_burst, $len_burst, 0, 0, false, 0, $src_stride, $dst_stride)",
        types=_ptrs(src="{T}, gm", dst="{T}, l1"), **_ANY,
    ),
    move(
        "copy_cbuf_to_ubuf", opcode=0x3193, algorithm="bursts to a core: blocks out of L1", pipe="MTE1",
        operands="src=ptr dst=ptr:out sid=i64 n_burst=i64 len_burst=i64 src_stride=i64 dst_stride=i64", isas="cpu a5",
        format=flat("src dst sid n_burst len_burst src_stride dst_stride"),
        rules=(*spaces(src="L1", dst="UB"), *_SAME, *fits(1, "sid"),
               *fits(16, "n_burst len_burst src_stride dst_stride")),
        doc="Copy bursts of 32-byte units from L1 to the UB of one vector core.",
        meaning="for r < n_burst: copy len_burst * 32 bytes from src + r * (len_burst + src_stride) * 32 to dst + r * "
        "(len_burst + dst_stride) * 32 in the UB of vector core sid.",
        notes=(*_OLDER, "issued by the cube core; the vector core reads only after a cross-core signal"),
        cpp="copy_cbuf_to_ubuf($dst, $src, $sid, $n_burst, $len_burst, $src_stride, $dst_stride)",
        types=_ptrs(src="{T}, l1", dst="{T}, ub"), **_ANY,
    ),
    _raw_feed("load_cbuf_to_ca", 0x3194, "L0A"),
    _raw_feed("load_cbuf_to_cb", 0x3195, "L0B"),
    _raw_feed("load_cbuf_to_ca_s4", 0x3196, "L0A", four=True),
    _raw_feed("load_cbuf_to_cb_s4", 0x3197, "L0B", four=True),
    _raw_scales("load_cbuf_to_ca_mx", 0x3198, "L0A"),
    _raw_scales("load_cbuf_to_cb_mx", 0x3199, "L0B"),
    move(
        "copy_cbuf_to_bt", opcode=0x319D, algorithm="bias: blocks", pipe="MTE1", dtype_of="",
        operands="src=ptr dst=ptr:out conv_control=i1 n_burst=i64 len_burst=i64 source_gap=i64 dst_gap=i64",
        format=flat("src dst conv_control n_burst len_burst source_gap dst_gap"),
        combos=(Combos.of("src dst", **dict.fromkeys(("cpu", "a2a3", "a5"), "f32,f32 i32,i32 f16,f32 bf16,f32")),),
        rules=(*spaces(src="L1", dst="BT"), *fits(16, "n_burst len_burst source_gap dst_gap")),
        doc="Load blocks of bias values from L1 into the bias table.",
        meaning="for r < n_burst: copy len_burst * 32 bytes from src + r * (len_burst + source_gap) * 32 to dst + r * "
        "(len_burst + dst_gap) * 32. bf16, and f16 with conv_control, become f32: lengths and gaps of dst are then "
        "twice as large.",
        notes=_OLDER,
        cpp="copy_cbuf_to_bt((uint64_t) $dst, $src, $conv_control, $n_burst, $len_burst, $source_gap, $dst_gap)",
        types=_ptrs(src="{T}, l1", dst="{T}, bt"),
    ),
    move(
        "copy_cbuf_to_fbuf", opcode=0x319E, algorithm="fix-pipe parameters: words", pipe="FIX",
        operands="src=ptr dst=ptr:out n_burst=i64 len_burst=i64 source_gap=i64 dst_gap=i64",
        format=flat("src dst n_burst len_burst source_gap dst_gap"),
        rules=(*spaces(src="L1", dst="FB"), *fits(16, "n_burst len_burst source_gap dst_gap")),
        **dict.fromkeys(("cpu", "a2a3", "a5"), "any"),
        doc="Load units of FIXPIPE parameters from L1 into FB.",
        meaning="for r < n_burst: copy len_burst units of 64 B (a2a3: 128 B); source and destination advance by "
        "len_burst + source_gap and len_burst + dst_gap units per burst.",
        notes=_OLDER,
        cpp="copy_cbuf_to_fbuf($dst, $src, $n_burst, $len_burst, $source_gap, $dst_gap)",
        types=_ptrs(src="{T}, l1", dst="{T}, fb"),
    ),
    _l1_loops("loop_size", 0x319A, "Set the two loop counts of later copies from GM to L1.",
              "loop1 (inner) count register = bits 0..20 of the word, loop2 (outer) = bits 21..41; 1, 1 is a plain 2-D "
              "copy."),
    _l1_loops("loop1_stride", 0x319B, "Set the pointer advance per loop1 (inner) iteration of later copies from GM to L1.",
              "source stride register = bits 0..39 of the word, destination = bits 40..60, in bytes."),
    _l1_loops("loop2_stride", 0x319C, "Set the pointer advance per loop2 (outer) iteration of later copies from GM to L1.",
              "source stride register = bits 0..39 of the word, destination = bits 40..60, in bytes."),
    fixpipe(
        "mte_l0c_l1", opcode=0x318F, algorithm="accumulator out: to L1",
        operands=f"{_FIX_HEAD} {_FIX_OPERANDS}", format=_fix_format(_FIX_NAMES),
        rules=spaces(dst="L1"), meaning=_FIX_MEANING,
        doc="Write an L0C tile back to L1 through the fix pipe.",
        cpp=_fix_call("cbuf", "0", "0"),
        types=_fix_types("l1"),
    ),
    fixpipe(
        "mte_l0c_gm", opcode=0x3190, algorithm="accumulator out: to memory",
        operands=f"{_FIX_HEAD} sid=i64 l2_cache_ctrl=i64 {_FIX_OPERANDS}",
        attrs=(
            _word("atomic_type", "f32", "f16", "bf16", "s32", "s16", "s8", doc="element type of the update"),
            _word("atomic_op", "add", "max", "min", doc="update of the GM element"),
        ),
        format=_fix_format(f"{_FIX_NAMES} sid l2_cache_ctrl",
                           atomic=" [, atomic(type = $atomic_type, op = $atomic_op)]"),
        rules=(*spaces(dst="GM"), R("0 <= sid.const <= 3"), R("0 <= l2_cache_ctrl.const <= 15"),
               R("has(atomic_type) == has(atomic_op)")),
        doc="Write an L0C tile back to GM through the fix pipe.",
        meaning=f"{_FIX_MEANING} atomic: each GM element becomes op(old, new) in the atomic type, after "
        "conversion.",
        notes=("sid and l2_cache_ctrl are hints without effect on values",
               "at tile level a2a3 offers the add only"),
        cpp=_fix_call("gm", "$sid", "$l2_cache_ctrl"),
        types=_fix_types("gm"),
    ),
    fixpipe(
        "mte_l0c_ub", opcode=0x3191, algorithm="accumulator out: to UB",
        operands=f"{_FIX_HEAD} sub_blockid=i64? {_FIX_OPERANDS}", isas="cpu a5",
        attrs=(_word("dst_mode", "split_m", "split_n", doc="split over both vector cores"),),
        format=_fix_format(_FIX_NAMES, mode=", dst_mode([$sub_blockid] [$dst_mode])"),
        rules=(
            *spaces(dst="UB"), R("0 <= sub_blockid.const <= 1"),
            R("has(sub_blockid) != has(dst_mode)", msg="expects a vector core or a split, not both"),
            R("m.const % 2 == 0", when="dst_mode == 'split_m'"),
            R("n.const % 32 == 0", when="dst_mode == 'split_n'"),
            R("not has(quant_mode) and not has(relu_mode) and not has(clip)", when="has(dst_mode)",
              msg="expects split modes without pre_quant, pre_relu and clip"),
            R("layout == 'nz2nd'", when="has(dst_mode) and has(layout)",
              msg="expects split modes with the plain or nz2nd layout"),
        ),
        doc="Write an L0C tile back to the UB of one vector core, or split over two.",
        meaning=f"{_FIX_MEANING} sub_blockid: the whole tile to that vector core, dst the offset in its UB. "
        "split_m: rows [0, m/2) to core 0, [m/2, m) to core 1, each an (m/2) x n tile at dst. split_n: "
        "columns [0, n/2) to core 0, the rest to core 1.",
        notes=("a2a3 has no path from L0C to UB; it goes through GM",),
        cpp=_fix_call("ub", "0", "dual_dst, sub_blockid"),
        types={**_fix_types("ub"), "sub_blockid": "i64",
               **{f"{mode}/{key}": text for mode in ("split_m", "split_n")
                  for key, text in (("sub_blockid", ""), ("attr:dst_mode", mode))}},
    ),
)  # fmt: skip
