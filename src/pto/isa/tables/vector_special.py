"""Vector rearrangement, and the special-function and sorting rows (family `sfu-dsa`).

x, y, z in `meaning` are the vector sources in operand order and s the scalar, as in `vector_compute`. The
last four rows work from buffer to buffer, do not access vector registers, and may be outside a vecscope.
"""

from __future__ import annotations

from ..row import Attr, Family
from ..rules import R
from ._common import same_dtype
from .vector_compute import (
    B8_32,
    EXTENSION,
    VECTOR,
    WRAPS,
    ZEROING,
    everywhere,
    full_width,
    integer,
    mask_of,
    pairs,
    rounding,
    scalar_of,
)  # fmt: skip

_HALF = Attr("part", "str", "LOWER", choices=("LOWER", "HIGHER"), doc="which half")
_PARITY = Attr("part", "str", "EVEN", choices=("EVEN", "ODD"), doc="sub-lane of each wider lane")

_resize = Family(
    "rearrangement", **VECTOR, effect="pure", operands="lhs=vreg rhs=vreg", results="r=vreg", dtype_of="r",
    domain="all lanes",
)  # fmt: skip
_move = _resize.but(**everywhere(B8_32))
_both = _move.but(
    results="low=vreg high=vreg", dtype_of="low",
    rules=(*same_dtype("low high lhs rhs"), *full_width("lhs rhs low high")),
)  # fmt: skip
_one = _move.but(
    attrs=(_HALF,), rules=(*same_dtype("r lhs rhs"), *full_width("lhs rhs r")),
    format=tuple(
        f"$lhs, $rhs{part} attr-dict : type($lhs), type($rhs) -> type($r)" for part in (", $part", "")
    ),
)  # fmt: skip
_AMOUNT = R("0 <= amt.const <= r.lanes", msg="expects amt to be between 0 and the lane count")
_unpack = _resize.but(
    operands="src=vreg half=index?", attrs=(_HALF,),
    format=(
        "$src, $half attr-dict : type($src), type($half) -> type($r)",
        "$src, $part attr-dict : type($src) -> type($r)",
        "$src attr-dict : type($src) -> type($r)",
    ),
    rules=(*full_width("src r"), R("half.const in (0, 1)")),
    notes=("half is 0 for the lower and 1 for the upper half; the hardware's words LOWER and HIGHER stand "
           "for them as part.",),
)  # fmt: skip

_REARRANGEMENT = (
    _both(
        "vintlv", opcode=0x30C0, algorithm="two registers: in turn", doc="Interleaving of two vectors.",
        meaning="s[2i] = lhs[i], s[2i+1] = rhs[i], i < N; low = s[0..N-1], high = s[N..2N-1].",
    ),
    _both(
        "vdintlv", opcode=0x30C1, algorithm="two registers: even and odd",
        doc="Separation of even and odd lanes of two vectors.",
        meaning="s = lhs ++ rhs (2N lanes); low[i] = s[2i], high[i] = s[2i+1], i < N.",
        notes=("The exact inverse of vintlv.",),
    ),
    _one(
        "vintlvv2", opcode=0x30C2, algorithm="half of two registers: in turn",
        doc="One half of an interleaving.",
        meaning="LOWER: r = low of vintlv; HIGHER: r = high of vintlv.",
        notes=("The manual never lists the tokens.",),
    ),
    _one(
        "vdintlvv2", opcode=0x30C3, algorithm="half of two registers: even and odd",
        doc="Even or odd lanes of two vectors.",
        meaning="LOWER: r = low of vdintlv (even lanes); HIGHER: r = high of vdintlv (odd lanes).",
    ),
    _move(
        "vslide", opcode=0x30C4, algorithm="slide",
        operands="src0=vreg src1=vreg amt=i16", doc="Window over two vectors.",
        rules=(*same_dtype("r src0 src1"), *full_width("src0 src1 r"), _AMOUNT),
        meaning="w = src1 ++ src0 (2N lanes, src0 the newer); r[i] = w[N - amt + i], so amt = 0 gives src0.",
        notes=("The instruction's own page has r[i] = w[amt + i]; the loop form, vshift and the manual's "
               "example agree with ours.",
               "An amt outside 0..N is an error.", "Gone from the newest assembler."),
    ),
    _move(
        "vshift", opcode=0x30C5, algorithm="slide",
        operands="src=vreg amt=i16", doc="Lanes moved up, zeros moved in.",
        rules=(*same_dtype("r src"), *full_width("src r"), _AMOUNT),
        meaning="r[i] = src[i - amt] for i >= amt, else 0.",
        notes=("An amt outside 0..N is an error.", "Gone from the newest assembler."),
    ),
    _move(
        "vsqz", opcode=0x30C6, algorithm="squeeze", operands="src=vreg mask=mask", effect="config",
        rules=(*same_dtype("r src"), *full_width("src r"), *mask_of("mask", "r")),
        doc="Active lanes moved together at the front.",
        meaning="k = number of active lanes; r[0..k-1] = the active lanes in order, r[k..] = 0. "
                "SQZN = k * sizeof(T).",
        notes=("The hardware has a form that leaves SQZN alone; SSA text has no way to ask for it.",),
    ),
    _move(
        "vusqz", opcode=0x30C7, algorithm="count below", operands="src=vreg? mask=mask",
        format=(
            "$src, $mask attr-dict : type($src), type($mask) -> type($r)",
            "$mask attr-dict : type($mask) -> type($r)",
        ),
        rules=(*same_dtype("r src"), *full_width("src r"), *mask_of("mask", "r")), **everywhere("i32 i16 i8"),
        types={"src": "!pto.vreg<{N}x{T}>", "mask_only/src": ""},
        doc="Number of active lanes below each lane.",
        meaning="r[0] = 0; r[i] = r[i-1] + mask[i-1]. src is ignored.",
        notes=("The manual describes an expansion of a source it has no operand for; vselr with this result "
               "as its index realises that.",),
    ),
    _move(
        "vperm", opcode=0x30C8, algorithm="permutation",
        operands="src=vreg index=vreg", doc="Lane permutation by an index vector.",
        rules=(
            *same_dtype("r src"), *full_width("src index r"), R("index.lanes == src.lanes"), integer("index"),
        ),
        meaning="r[i] = src[u(index[i]) mod N].", types={"index": "!pto.vreg<{N}x{I}>"},
        notes=("Indices beyond N wrap; the prose of the manual also allows clamping.",),
    ),
    _resize(
        "vpack", opcode=0x30C9, algorithm="pack lanes",
        operands="src0=vreg src1=vreg? half=index?", attrs=(_HALF,),
        combos=pairs("src0 r", "i32,u16 u32,u16 i16,u8 u16,u8"),
        format=(
            "$src0, $src1, $half attr-dict : type($src0), type($src1), type($half) -> type($r)",
            "$src0, $part attr-dict : type($src0) -> type($r)",
            "$src0 attr-dict : type($src0) -> type($r)",
        ),
        rules=(*same_dtype("src0 src1"), *full_width("src0 src1 r"), R("has(src1) == has(half)")),
        doc="Truncation of wide lanes to half their width.",
        meaning="N wide lanes, 2N narrow lanes; trunc keeps the low bits. Two sources: r[i] = "
                "trunc(src0[i]), r[N+i] = trunc(src1[i]); half is not used. One source: LOWER gives "
                "r[0..N-1] = trunc(src0), the rest 0; HIGHER gives r[N..] = trunc(src0), the rest 0.",
        types={"src1": "!pto.vreg<{N}x{src0}>", "half": "index", "one/src1": "", "one/half": ""},
        notes=("No saturation.",),
    ),
    _unpack(
        "vsunpack", opcode=0x30CA, algorithm="unpack lanes", combos=pairs("src r", "i16,i32 i8,i16"),
        doc="Sign extension of half a vector to twice the width.",
        meaning="r[i] = sext(src[half * N/2 + i]), i < N/2.",
        types={"src": "!pto.vreg<128xi16>", "r": "!pto.vreg<64xi32>", "half": "index", "part/half": ""},
    ),
    _unpack(
        "vzunpack", opcode=0x30CB, algorithm="unpack lanes", combos=pairs("src r", "u16,u32 u8,u16"),
        doc="Zero extension of half a vector to twice the width.",
        meaning="r[i] = zext(src[half * N/2 + i]), i < N/2.",
        types={"src": "!pto.vreg<128xui16>", "r": "!pto.vreg<64xui32>", "half": "index", "part/half": ""},
    ),
)  # fmt: skip

#: A mask for the sources, in the form with a mask.
_MASK = "!pto.mask<b{W}>"
_OPTIONAL = "lanes on in mask, all without one; the others are 0"
_fused = Family(
    "sfu-dsa", **VECTOR, effect="pure", gate="mask", operands="lhs=vreg rhs=vreg mask=mask?", results="r=vreg",
    dtype_of="r", domain=_OPTIONAL, notes=(ZEROING,), types={"mask": _MASK, "unmasked/mask": ""},
)  # fmt: skip
_float = _fused.but(
    rules=(*same_dtype("r lhs rhs"), *full_width("lhs rhs r"), *mask_of("mask", "r")),
    **everywhere("f32 f16"),
)  # fmt: skip
_converting = _fused.but(
    over="front", store="narrow",
    rules=(*same_dtype("lhs rhs"), *full_width("lhs rhs r"), *mask_of("mask", "lhs")),
    notes=(ZEROING, "Lane i goes to lane i, so the result fills the low part of the register; the rest is 0.",
           "The mask has the granularity of the source.",
           "Rounds to nearest, ties to even, as no source names a mode; i8 saturates, and NaN gives 0.",
           "The sum or product rounds in the source's type first, as with two instructions.",
           "The A5 has no single instruction for it."),
)  # fmt: skip
_NO_PTOAS = "Not in the newest assembler."

_FUSED = (
    _fused(
        "vprelu", opcode=0x30D0, operands="input=vreg alpha=vreg mask=mask?", **everywhere("f32 f16"),
        rules=(*same_dtype("r input alpha"), *full_width("input alpha r"), *mask_of("mask", "r")),
        doc="Leaky ReLU with a slope per lane.", expr="where(input >= 0, input, alpha * input)",
    ),
    _fused(
        "vexpdif", opcode=0x30D1, operands="input=vreg maximum=vreg mask=mask?", attrs=(_PARITY,),
        combos=pairs("input r", "f32,f32 f16,f16 f16,f32"),
        format=(
            "$input, $maximum attr-dict : type($input), type($maximum) -> type($r)",
            "$input, $maximum, $mask attr-dict : type($input), type($maximum), type($mask) -> type($r)",
            "$input, $maximum, $mask, $part attr-dict : type($input), type($maximum), type($mask) -> "
            "type($r)",
        ),
        rules=(*same_dtype("input maximum"), *full_width("input maximum r"), *mask_of("mask", "input")),
        doc="Exponential of a difference, as in softmax.",
        expr="exp(input - maximum)", over="part",
        types={"maximum": "!pto.vreg<{N}x{input}>", "mask": _MASK, "unmasked/mask": ""},
        notes=("The manual keeps the type and has no mask; the A5 gives f32.", "The difference rounds to f32."),
    ),
    _float(
        "vaddrelu", opcode=0x30D2, doc="Sum followed by ReLU.", expr="max(lhs + rhs, 0)", notes=(_NO_PTOAS,),
    ),
    _float(
        "vsubrelu", opcode=0x30D3, doc="Difference followed by ReLU.", expr="max(lhs - rhs, 0)",
        notes=(_NO_PTOAS,),
    ),
    _fused(
        "vaxpy", opcode=0x30D4, operands="x=vreg y=vreg alpha=scalar mask=mask?", expr="fma(alpha, x, y)",
        doc="Scaled vector plus a vector, rounded once.", **everywhere("f32 f16"),
        rules=(*same_dtype("r x y"), scalar_of("alpha", "x"), *full_width("x y r"), *mask_of("mask", "r")),
        notes=("The A5 intrinsic accumulates into y in place.",),
    ),
    _converting(
        "vaddreluconv", opcode=0x30D5, combos=pairs("lhs r", "f32,f16 f16,i8"),
        doc="Sum, ReLU and conversion to a narrower type.",
        expr="max(lhs + rhs, 0)",
        types={"rhs": "!pto.vreg<{N}x{lhs}>", "mask": _MASK, "unmasked/mask": ""},
        notes=("An example of the manual converts f16 to f32; only the two listed pairs are specified.",),
    ),
    _converting(
        "vmulconv", opcode=0x30D6, combos=pairs("lhs r", "f16,i8"),
        doc="Product and conversion to 8-bit integers.", expr="lhs * rhs",
        types={"lhs": "!pto.vreg<128xf16>", "rhs": "!pto.vreg<128xf16>", "r": "!pto.vreg<256xi8>",
               "mask": "!pto.mask<b16>", "unmasked/mask": ""},
        notes=("No ReLU, although one page of the manual adds it.",),
    ),
    _fused(
        "vmull", opcode=0x30D7, operands="lhs=vreg rhs=vreg mask=mask", results="low=vreg high=vreg",
        dtype_of="low", types={"mask": _MASK}, **everywhere("i32 u32"),
        rules=(*same_dtype("low high lhs rhs"), *full_width("lhs rhs low high"), *mask_of("mask", "low")),
        doc="Full 64-bit product of 32-bit lanes, in two vectors.",
        expr="low = lhs * rhs; high = mul_high(lhs, rhs)",
        notes=("Signed or unsigned as the element type.", "One page of the manual describes a multiply-subtract; all other sources agree on this.",),
    ),
    _fused(
        "vmula", opcode=0x30D8, operands="acc=vreg lhs=vreg rhs=vreg mask=mask", expr="fma(lhs, rhs, acc)",
        rules=(*same_dtype("r acc lhs rhs"), *full_width("acc lhs rhs r"), *mask_of("mask", "r")),
        doc="Product added to an accumulator, rounded once: lhs * rhs + acc.", notes=(WRAPS,),
        types={"mask": _MASK},
        **everywhere("f32 f16 bf16 i32 u32"),
    ),
    _fused(
        "vmulscvt", opcode=0x30D9, algorithm="product and conversion",
        operands="input=vreg scalar=scalar mask=mask",
        attrs=(rounding("rnd", "R A F C Z O"), _PARITY), combos=pairs("input scalar r", "f32,f32,f16"),
        format=tuple(
            f"$input, $scalar, $mask{modes} attr-dict : type($input), type($scalar), type($mask) -> type($r)"
            for modes in (", $rnd, $part", "")
        ),
        rules=(*full_width("input r"), R("mask.gran == 'b32'")),
        doc="Product with a scalar, converted to f16.",
        notes=(EXTENSION, "The product rounds to f32 first, to nearest even. Overflow gives infinity."),
        meaning="p = 0 for EVEN and 1 for ODD: r[2i+p] = mask[i] ? f16(input[i] * scalar) rounded by rnd : "
                "0; r[2i+1-p] = 0.",
        types={"input": "!pto.vreg<64xf32>", "scalar": "f32", "r": "!pto.vreg<128xf16>",
               "mask": "!pto.mask<b32>"},
    ),
)  # fmt: skip


def _ptrs(names: str) -> dict[str, str]:
    return {n: "!pto.ptr<{T}, ub>" for n in names.split()}


_OUTSIDE = "Needs no vecscope; order it against vector loads and stores with mem_bar or flags."
_buffer = Family(
    "sfu-dsa", **{**VECTOR, "scope": "any"}, operands="dest=ptr:out src=ptr config=i64", dtype_of="dest",
    format="$dest, $src, $config attr-dict : type($dest), type($src), type($config)", in_place="none",
    types=_ptrs("dest src"), notes=(_OUTSIDE,), **everywhere("f32 f16"),
)  # fmt: skip
_TO_ONE = (R("dest.space == UB"), R("src.space == UB"), *same_dtype("dest src"))
_BITSORT = "$dest, $src, $indices, $repeat_times attr-dict : "
_BITSORT_TYPES = "type($dest), type($src), type($indices), type($repeat_times)"
_MERGE = "dest src0 src1 src2 src3"

_BUFFERS = (
    _buffer(
        "vtranspose", opcode=0x30E0, algorithm="block transposition",
        **everywhere("f16 bf16 i16 u16"), domain="256 elements",
        rules=(*_TO_ONE, R("config.const == 0", msg="expects config to be 0, the only form specified")),
        doc="Transpose of a 16 x 16 block of 16-bit elements in the unified buffer.",
        meaning="dest[j*16 + i] = src[i*16 + j], i, j < 16.",
        notes=("The bits of config are not specified; 0 is the plain form.",
               "Both pointers are 32-byte aligned."),
    ),
    _buffer(
        "vsort32", opcode=0x30E1, algorithm="sort values", rules=_TO_ONE, domain="32 elements per group",
        doc="Sort of every 32 elements, largest first.",
        meaning="For each group g < max(config mod 256, 1): dest[32g..32g+31] = src[32g..32g+31] in "
                "descending order.",
        notes=("No index stream; scores with indices are vbitsort.",),
        no_cpp="no public call sorts values without their indices",
    ),
    _buffer(
        "vbitsort", opcode=0x30E2, algorithm="sort records", dtype_of="src",
        operands="dest=ptr:out src=ptr indices=ptr repeat_times=index",
        format=(f"{_BITSORT}{_BITSORT_TYPES}", f"{_BITSORT}({_BITSORT_TYPES}) -> ()"),
        rules=(
            R("dest.space == UB"), R("src.space == UB"), R("indices.space == UB"),
            R("dest.dtype == src.dtype or dest.dtype in (I32, U32)"), R("indices.dtype in (I32, U32)"),
            R("repeat_times.const >= 1"),
        ),
        doc="Sort of every 32 scores with their indices into records, highest first.",
        domain="256 bytes per group",
        meaning="For each of repeat_times groups: stable sort of 32 (score, index) pairs by descending "
                "score, ties in input order; 32 records of 8 bytes, highest score at the lowest address: "
                "bytes 0..3 the score (f16 in bytes 0..1, bytes 2..3 zero), bytes 4..7 the index as u32.",
        types={**_ptrs("dest src"), "indices": "!pto.ptr<i32, ub>", "words/dest": "!pto.ptr<ui32, ub>",
               "words/indices": "!pto.ptr<ui32, ub>"},
        notes=("The tile row tsort32 breaks ties by the smaller index, which is the same for rising "
               "indices.",),
    ),
    _buffer(
        "vmrgsort4", opcode=0x30E3, algorithm="merge lists",
        operands="dest=ptr:out src0=ptr src1=ptr src2=ptr src3=ptr count=i64 config=i64",
        format="$dest, $src0, $src1, $src2, $src3, $count, $config attr-dict : type($dest), type($src0), "
               "type($src1), type($src2), type($src3), type($count), type($config)",
        rules=(
            *(R(f"{n}.space == UB") for n in _MERGE.split()), *same_dtype(_MERGE),
            R("config.const % 256 >= 1", msg="expects config to repeat the merge at least once"),
            R("config.const // 256 % 16 in (3, 7, 15)",
              msg="expects config to name two, three or four lists"),
            R("config.const // 256 % 32 == 15", when="config.const % 256 > 1",
              msg="expects repeated merges to use four lists and no early stop"),
        ),
        doc="Stable merge of up to four sorted lists of records, highest score first.",
        domain="the merged records",
        meaning="Records are 8 bytes (score, index) as written by vbitsort. count holds the length of list k "
                "in bits 16k+15:16k. config: bits 7:0 repeat count, 11:8 valid lists, 12 stop when a valid "
                "list is exhausted. Merges by descending score, ties from the lower-numbered list. With bit "
                "12 set the merge stops as soon as one valid list is exhausted and the consumed counts are "
                "left in VMS4_SR; without it everything is merged.",
        types=_ptrs(_MERGE),
        notes=("The lists are sorted in descending order beforehand.",
               "A valid list of no records is never exhausted. Without bit 12, VMS4_SR stays as it is.",
               "Repeated merges need four contiguous lists of equal length.",
               "The manual has one length and an order flag instead; this layout is the hardware's."),
    ),
)  # fmt: skip

ROWS = (*_REARRANGEMENT, *_FUSED, *_BUFFERS)
