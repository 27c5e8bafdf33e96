"""C++ of the vector rows: the vendor's call of each row, or a composition of calls.

    "vadd($r, $lhs, $rhs, $mask, MODE_ZEROING)"

`codegen/cpp/template.py` describes the syntax of calls. `types` are the element types of the call in public
code: types of the row's typed operand, or pairs of its combinations. The generated header has the same
overloads. If the C++ of a row depends on more than that (loads, stores, streams), `codegen/cpp/vectors.py`
has a handler, and this module has its usual call.
"""

from __future__ import annotations

from ..row import Form

_Z = "MODE_ZEROING"
INTS32 = "i8 u8 i16 u16 i32 u32"
COMMON = f"{INTS32} f16 bf16 f32"
_WIDE = "i64 u64"
_MASKED = "$mask, MODE_ZEROING)"

#: A mask for both halves of 64-bit lanes, and a mask for the same number of lanes from the front.
_HALVES = "pdintlv_b32(%even<mask>, %odd<mask>, $mask, $mask)"
_BOTH = f"{_HALVES}; pintlv_b32(%on<mask>, %high<mask>, %even<mask>, %even<mask>)"


def _lanes(name: str, operands: str, types: str = "", *more: Form) -> tuple[Form, ...]:
    """A call with the result first and the mask last; its header follows from the expression of the row."""
    sources = ", ".join(f"${o}" for o in operands.split())
    return (Form(f"{name}($r, {sources}, {_MASKED}", types=types), *more)


def _bits(name: str, operands: str, types: str, views: str) -> tuple[Form, ...]:
    """Return a call on bits; other element types are reinterpreted as integers."""
    seen = ", ".join(f"${o}.B" for o in operands.split())
    wide = ", ".join(f"${o}.W" for o in operands.split())
    return _lanes(
        name, operands, types,
        *([Form(f"{name}($r.B, {seen}, {_MASKED}", types=views)] if views else []),
        Form(f"{_BOTH}; {name}($r.W, {wide}, %on<mask>, {_Z})", types=_WIDE),
    )  # fmt: skip


def _wide_sum(name: str, first: str, then: str) -> Form:
    """Return a sum of 64-bit lanes as two halves with a carry."""
    return Form(
        f"{_HALVES}; vdintlv(%a<u32>, %b<u32>, $lhs.W, $lhs.W); vdintlv(%c<u32>, %d<u32>, $rhs.W, $rhs.W); "
        f"{first}(%carry<mask>, %low<u32>, %a<u32>, %c<u32>, %even<mask>); "
        f"{then}(%out<mask>, %top<u32>, %b<u32>, %d<u32>, %carry<mask>, %even<mask>); "
        "vintlv($r.W, %rest<u32>, %low<u32>, %top<u32>)",
        types=_WIDE,
    )


def _with_scalar(name: str, types: str, others: str = "") -> tuple[Form, ...]:
    """Return a call with a scalar; for the element types `others`, a call with a register filled with the
    scalar."""
    plain = Form(f"{name}($r, $input, $scalar, {_MASKED}", types=types)
    return (plain, *_spread(name.removesuffix("s"), others)) if others else (plain,)


def _spread(name: str, types: str = "") -> tuple[Form, ...]:
    return (Form(f"vbr(%s, $scalar); {name}($r, $input, %s, {_MASKED}", types=types),)


def _compare(name: str, sources: str) -> tuple[Form, ...]:
    return (Form(f"{name}_$cmp_mode($m, {sources}, $seed)", types=COMMON),)


#: Two registers of bf16 can only be compared for equality.
_DIFFER = Form(
    "vcmp_eq(%same<mask>, $src0, $src1, $seed); pnot($m, %same<mask>, $seed)",
    types="bf16", fixes={"cmp_mode": "ne"},
)  # fmt: skip


def _converts(tags: str, pairs: str, ignores: str = "") -> Form:
    return Form(f"vcvt($r, $input, $mask, {tags}, {_Z})", types=pairs, ignores=ignores)


_PARTS = "PART_$part"
_ROUND, _SATURATE = "ROUND_$rnd", "RS_$sat"

_VCVT = (
    _converts(
        _PARTS,
        "f16,f32 bf16,f32 i8,f16 u8,f16 i8,i16 u8,u16 i16,f32 i16,i32 i16,u32 u16,u32 i32,i64 i8,i32 u8,u32 "
        "f8e4m3,f32 f8e5m2,f32 hif8,f32 f4e2m1,bf16 f4e1m2,bf16",
        "rnd sat",
    ),
    _converts(
        f"{_SATURATE}, {_PARTS}",
        "i16,u8 u16,u8 i32,i16 i32,u16 u32,u16 u32,i16 i64,i32 i32,u8 u32,u8", "rnd",
    ),
    _converts(_ROUND, "i32,f32 i16,f16 f16,bf16", "sat"),
    _converts(f"{_ROUND}, {_SATURATE}", "f32,i32 f16,i16"),
    _converts(f"{_SATURATE}, {_ROUND}", "bf16,f16"),
    _converts(f"{_ROUND}, {_PARTS}", "f16,i32 i64,f32 bf16,f4e2m1 bf16,f4e1m2", "sat"),
    _converts(
        f"{_ROUND}, {_SATURATE}, {_PARTS}", "f32,f16 f32,bf16 f32,i16 f32,i64 bf16,i32 f16,i8 f16,u8 "
        "f32,f8e4m3 f32,f8e5m2 f32,hif8",
    ),
)  # fmt: skip


def _sums(name: str) -> tuple[Form, ...]:
    wider = f"{name}(%t<{{}}>, $input, {_MASKED}; vpack((vector_u16&) $r, (vector_{{}}&) %t<{{}}>, LOWER)"
    return (
        Form(f"{name}($r, $input, {_MASKED}", types="f32,f32 f16,f16 i32,i32 u32,u32 i16,i32 u16,u32"),
        Form(wider.format("i32", "s32", "i32"), types="i16,i16"),
        Form(wider.format("u32", "u32", "u32"), types="u16,u16"),
    )


def _half_of(name: str) -> tuple[Form, ...]:
    """One of the two results of a call."""
    return (
        Form(f"{name}($r, %other, $lhs, $rhs)", fixes={"part": "LOWER"}),
        Form(f"{name}(%other, $r, $lhs, $rhs)", fixes={"part": "HIGHER"}),
    )


def _permute(index: str) -> tuple[Form, ...]:
    return (
        Form(f"vselr($r, $src, ${index}.B)", types="i8 u8 i16 u16 i32 u32 f16 bf16"),
        Form(f"vselr($r.B, $src.B, ${index}.B)", types="f32"),
    )


def _unpack() -> tuple[Form, ...]:
    return (
        Form("vunpack($r, $src, $part)"),
        Form("vunpack($r, $src, $half.H)", ignores="part"),
    )


def _clipped(name: str) -> tuple[Form, ...]:
    return (Form(f"{name}(%t, $lhs, $rhs, {_MASKED}; vmaxs($r, %t, 0, {_MASKED}"),)


def _packed(compute: str, source: str, result: str, narrow: str, wide: str, saturates: str) -> Form:
    """Return a call with its result in the front lanes: converted to every other lane, then packed."""
    return Form(
        f"{compute}; vcvt(%n<{result}>, %t<{source}>, $mask, ROUND_R, {saturates}, PART_EVEN, {_Z}); "
        f"vpack((vector_{narrow}&) $r, (vector_{wide}&) %n<{result}>, LOWER)",
        types=f"{source},{result}",
    )


_SUM_F32 = f"vadd(%t<f32>, $lhs, $rhs, {_MASKED}; vmaxs(%t<f32>, %t<f32>, 0, {_MASKED}"
_SUM_F16 = f"vadd(%t<f16>, $lhs, $rhs, {_MASKED}; vmaxs(%t<f16>, %t<f16>, 0, {_MASKED}"
_PRODUCT = f"vmul(%t<f16>, $lhs, $rhs, {_MASKED}"


def _call(text: str, by_hand: str = "its lanes are no expression of their own") -> tuple[Form, ...]:
    return (Form(text, by_hand=by_hand),)


CALLS: dict[str, tuple[Form, ...]] = {
    # loads and stores
    "vlds": _call("vlds($r, $source, $offset, $dist)"),
    "vldas": _call("vldas($state, $source)"),
    "vldus": _call("vldus($r, $state, $source)"),
    "vldsx2": _call("vlds($low, $high, $source, $offset, $dist)"),
    "vsld": _call("vgather2($r, $source + $offset, %index, $mask)"),
    "vsldb": _call("vsldb($r, $source, $ctl, $mask)"),
    "vgather2": _call("vgather2($r, $source, $offsets, $mask)"),
    "vgatherb": _call("vgatherb($r, $source, $offsets, $mask)"),
    "vgather2_bc": (
        Form("vgather2_bc($r, $source, $offsets.B, $mask)", types="i32 u32 f32"),
        Form("punpack(%on<mask>, $mask, LOWER); vgather2_bc(%t, $source, $offsets.B, %on<mask>); "
             "vpack($r.B, (vector_u32&) %t, LOWER)", types="i16 u16 f16 bf16"),
    ),
    "vsts": _call("vsts($value, $dest, $offset, $dist, $mask)"),
    "vstsx2": _call("vsts($low, $high, $dest, $offset, $dist, $mask)"),
    "vsst": _call("vscatter($value, $dest + $offset, %index, $mask)"),
    "vsstb": _call("vsstb($value, $dest, $ctl, $mask)"),
    "vscatter": _call("vscatter($value, $dest, $offsets, $mask)"),
    "vsta": _call("vstas($state, $dest, $offset)"),
    "vstas": _call("vstas($state, $dest, $offset)"),
    "vstar": _call("vstar($state, $dest)"),
    "vstu": _call("vstus($state, %lanes, $value, $base + $position)"),
    "vstus": _call("vstus($state, $count, $value, $base)"),
    "vstur": _call("vstur($state, $value, $base, $mode)"),
    "sprclr": _call("sprclr(SPR_AR)"),
    "sprsti": _call("sprsts(SPR_AR, $dest, $offset * 4)"),
    "sprsts": _call("sprsts(SPR_AR, $dest, $offset)"),
    # registers from scalars
    "vbr": _call("vbr($r, $value)"),
    "vdup": _call("vdup($r, $input, $mask, $position, MODE_ZEROING)"),
    # arithmetic
    **{name: _lanes(name, "input") for name in "vabs vneg vexp vln vsqrt vrsqrt vrec vrelu".split()},
    "vnot": _bits("vnot", "input", INTS32, ""),
    "vbcnt": _lanes("vbcnt", "input", INTS32),
    "vcls": _lanes("vcls", "input", "i8 i16 i32"),
    "vmov": _call("vmov($r, $input)"),
    "vadd": _lanes("vadd", "lhs rhs", COMMON, _wide_sum("vadd", "vaddc", "vaddcs")),
    "vsub": _lanes("vsub", "lhs rhs", COMMON, _wide_sum("vsub", "vsubc", "vsubcs")),
    "vmul": _lanes("vmul", "lhs rhs"),
    "vdiv": _lanes("vdiv", "lhs rhs", "i16 u16 i32 u32 f16 f32"),
    "vmax": _lanes("vmax", "lhs rhs"),
    "vmin": _lanes("vmin", "lhs rhs"),
    "vand": _bits("vand", "lhs rhs", f"{COMMON} f8e4m3 f8e5m2", "hif8"),
    "vor": _bits("vor", "lhs rhs", f"{COMMON} f8e4m3 f8e5m2", "hif8"),
    "vxor": _bits("vxor", "lhs rhs", INTS32, "f8e4m3 f8e5m2 hif8"),
    "vshl": (Form(f"vshl($r, $lhs, $rhs.S, {_MASKED}", types=INTS32),),
    "vshr": (Form(f"vshr($r, $lhs, $rhs.S, {_MASKED}", types=INTS32),),
    "vaddc": _call("vaddc($carry, $r, $lhs, $rhs, $mask)"),
    "vsubc": _call("vsubc($borrow, $r, $lhs, $rhs, $mask)"),
    "vaddcs": _call("vaddcs($carry, $r, $lhs, $rhs, $carry_in, $mask)"),
    "vsubcs": _call("vsubcs($borrow, $r, $lhs, $rhs, $borrow_in, $mask)"),
    "vmadd": (
        Form(f"vmadd($r:acc, $lhs, $rhs, {_MASKED}", types="f16 f32"),
        Form(f"vmula($r:rhs, $acc, $lhs, {_MASKED}", types="bf16"),
    ),
    "vadds": _with_scalar("vadds", COMMON),
    "vsubs": _call(f"vadds($r, $input, -$scalar, {_MASKED}"),
    "vmuls": _with_scalar("vmuls", "i16 u16 i32 u32 f16 f32", "bf16"),
    "vmaxs": _with_scalar("vmaxs", COMMON),
    "vmins": _with_scalar("vmins", f"{INTS32} f16 f32", "bf16"),
    "vands": _spread("vand"),
    "vors": _spread("vor"),
    "vxors": _spread("vxor"),
    "vshls": _with_scalar("vshls", INTS32),
    "vshrs": _with_scalar("vshrs", INTS32),
    "vlrelu": _with_scalar("vlrelu", "f16 f32"),
    # conversion, comparison, choice
    "vcvt": _VCVT,
    "vtrc": _call(f"vtrc($r, $input, ROUND_$round_mode, {_MASKED}"),
    "vci": _call("vci($r, $index, $order)"),
    "vbitcast": _call("$r = (vector_T) $input"),
    "vcmp": (_DIFFER, *_compare("vcmp", "$src0, $src1")),
    "vcmps": _compare("vcmps", "$src, $scalar"),
    "vsel": _call("vsel($r, $src0, $src1, $mask)"),
    "vselr": _permute("idx"),
    "vselrv2": _permute("idx"),
    # reductions
    "vcadd": _sums("vcadd"),
    "vcgadd": _sums("vcgadd"),
    **{name: _lanes(name, "input") for name in "vcmax vcmin vcgmax vcgmin vcpadd".split()},
    "vcbmax": _call(f"vcbmax($r, $p, $input, {_MASKED}"),
    "vcbmin": _call(f"vcbmin($r, $p, $input, {_MASKED}"),
    "chistv2": _call("chistv2($r:acc, $source, $mask, Bin_N$bin.K)"),
    "dhistv2": _call("dhistv2($r:acc, $source, $mask, Bin_N$bin.K)"),
    # rearrangement
    "vintlv": _call("vintlv($low, $high, $lhs, $rhs)"),
    "vdintlv": _call("vdintlv($low, $high, $lhs, $rhs)"),
    "vintlvv2": _half_of("vintlv"),
    "vdintlvv2": _half_of("vdintlv"),
    "vslide": _call("vslide($r, $src0, $src1, $amt)"),
    "vshift": _call("vbr(%zero, 0); vslide($r, $src, %zero, $amt)"),
    "vsqz": _call("vsqz($r, $src, $mask, MODE_STORED)"),
    "vusqz": _call("vusqz($r, $mask)"),
    "vperm": _permute("index"),
    "vpack": (
        Form("vpack($r, $src0, $part)"),
        Form("vpack(%a, $src0, LOWER); vpack(%b, $src1, HIGHER); "
             "vor($r, %a, %b, pset_b8(PAT_ALL), MODE_ZEROING)", ignores="part half"),
    ),
    "vsunpack": _unpack(),
    "vzunpack": _unpack(),
    # special functions
    "vprelu": _lanes("vprelu", "input alpha"),
    "vexpdif": (Form("vexpdif($r, $input, $maximum, $mask, PART_$part)", types="f32,f32 f16,f32"),),
    "vaddrelu": _clipped("vadd"),
    "vsubrelu": _clipped("vsub"),
    "vaxpy": _call(f"vaxpy($r:y, $x, $alpha, {_MASKED}", by_hand=""),
    "vaddreluconv": (
        _packed(_SUM_F32, "f32", "f16", "u16", "u32", "RS_DISABLE"),
        _packed(_SUM_F16, "f16", "i8", "u8", "u16", "RS_ENABLE"),
    ),
    "vmulconv": (_packed(_PRODUCT, "f16", "i8", "u8", "u16", "RS_ENABLE"),),
    "vmull": _call("vmull($low, $high, $lhs, $rhs, $mask)"),
    "vmula": (Form(f"vmula($r:acc, $lhs, $rhs, {_MASKED}", types="i16 u16 i32 u32 f16 bf16 f32"),),
    "vmulscvt": (
        *(Form("vmulscvt($r, $input, $scalar, $mask, PART_$part)", fixes={"rnd": r}) for r in ("A", "ROUND_A")),
    ),
    # from buffer to buffer
    "vtranspose": _call("vtranspose($dest, $src)"),
    "vbitsort": _call("vbitsort($dest, $src, $indices, $repeat_times)"),
    "vmrgsort4": _call("vmrgsort4($dest, %lists, $count, $config)"),
}  # fmt: skip
