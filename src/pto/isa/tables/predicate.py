"""Predicate instructions: patterns and tail masks, mask algebra, mask loads and stores.

A mask is a 256-bit image, one bit per byte of a vector register. Lane i of granularity b8/b16/b32 is image
bit i/2i/4i; producers write that bit and clear the rest of the slot, consumers look at that bit only.
Where silicon and manual differ the meaning gives both, `hw` (the default preset) first.
"""

from __future__ import annotations

from ..row import Attr, Family, Form, Row
from ..rules import R, Rule


def _lanes(width: int) -> int:
    return 2048 // width


def _gran(names: str, width: int) -> tuple[Rule, ...]:
    return tuple(R(f"{n}.gran == 'b{width}'") for n in names.split())


def _same_gran(names: str) -> tuple[Rule, ...]:
    first, *rest = names.split()
    return tuple(R(f"{n}.gran == {first}.gran") for n in rest)


def _masks(names: str, width: int) -> dict[str, str]:
    """Witness types: every named mask at one granularity."""
    return {n: f"!pto.mask<b{width}>" for n in names.split()}


pure = Family("predicate-algebra", "predicate", pipe="V", core="vector", scope="vec", effect="pure")

# ----------------------------------------------------------------------------------------------- generation

generation = pure.but(family="predicate-generation")


#: The n of the PAT_VLn that have an encoding.
_ENCODED = (1, 2, 3, 4, 8, 16, 32, 64, 128)


def _pattern(width: int, required: bool) -> Attr:
    counts = tuple(f"PAT_VL{n}" for n in range(1, _lanes(width) + 1))
    return Attr(
        "pattern", "str", required=required,
        choices=("PAT_ALL", "PAT_ALLF", "PAT_H", "PAT_Q", "PAT_M3", "PAT_M4", *counts),
        unencoded=tuple(f"PAT_VL{n}" for n in range(1, _lanes(width) + 1) if n not in _ENCODED),
        doc=f"lanes to activate; PAT_VLn = the first n of {_lanes(width)} lanes",
    )  # fmt: skip


_PATTERN_MEANING = (
    "L = {lanes} lanes. PAT_ALL all, PAT_ALLF none, PAT_VLn lanes i < n, PAT_M3 lanes i % 3 == 0, "
    "PAT_M4 lanes i % 4 == 0, PAT_H lanes i < L/2 (doc preset: i >= L/2), "
    "PAT_Q lanes i < L/4 (doc preset: i >= 3*L/4)."
)
_PATTERN_NOTES = (
    "immediates: ALL 0, VL1 1, VL2 2, VL3 3, VL4 4, VL8 5, VL16 6, VL32 7, VL64 8, VL128 9, M3 10, M4 11, "
    "H 12, Q 13, ALLF 15; a VLn outside this list has no encoding, which is a warning",
    "the suffix is the element width a lane governs, not the number of predicate bits",
    "portable code avoids PAT_H and PAT_Q (switch pat_h) and PAT_M3/PAT_M4 (unresolved between sources)",
)


def _pset(width: int, opcode: int) -> Row:
    return generation(
        f"pset_b{width}", opcode=opcode, algorithm=f"mask by pattern: b{width}", results="mask=mask", attrs=(_pattern(width, required=True),),
        format="$pattern attr-dict : type($mask)", rules=_gran("mask", width),
        doc=f"Mask of {_lanes(width)} lanes from a pattern.",
        meaning=_PATTERN_MEANING.format(lanes=_lanes(width)), notes=_PATTERN_NOTES,
        cpp=f"pset_b{width}($pattern)", types={"mask": f"!pto.mask<b{width}>", "attr:pattern": "PAT_ALL"},
    )  # fmt: skip


def _pge(width: int, opcode: int) -> Row:
    return generation(
        f"pge_b{width}", opcode=opcode, algorithm=f"mask by pattern: b{width}", operands="rem=i32?", results="mask=mask",
        attrs=(_pattern(width, required=False),),
        format="[$pattern] [$rem] attr-dict : [type($rem) ->] type($mask)",
        rules=(
            *_gran("mask", width),
            R("has(pattern) != has(rem)", msg="expects a pattern or a remaining count, not both"),
        ),
        doc=f"Mask of {_lanes(width)} lanes from a pattern, or of the first lanes by a run-time count.",
        meaning=f"{_PATTERN_MEANING.format(lanes=_lanes(width))} With rem instead: mask[i] = i < rem.",
        notes=(*_PATTERN_NOTES, "the run-time form is the older spelling; plt_* also returns the rest"),
        cpp=f"pge_b{width}($pattern)", types={"mask": f"!pto.mask<b{width}>", "attr:pattern": "PAT_ALL"},
    )  # fmt: skip


def _plt(width: int, opcode: int) -> Row:
    n = _lanes(width)
    return generation(
        f"plt_b{width}", opcode=opcode, algorithm=f"mask of the rest: b{width}", operands="scalar=i32", results="mask=mask scalar_out=i32",
        attrs=(Attr("post_update", "unit", doc="no effect on the result; the count is always updated"),),
        rules=_gran("mask", width),
        doc=f"Tail mask: the first `scalar` of {n} lanes, and what remains after this register.",
        meaning=f"n = scalar as u32; mask[i] = i < n; scalar_out = 0 if n < {n} else n - {n}.",
        notes=(
            "a negative count reads as a large unsigned one, so every lane is active",
            "the count stops at 0; the manual's unclamped variant is not followed; it is i32 at every width",
        ),
        cpp=f"plt_b{width}($scalar_out, POST_UPDATE)", types={"mask": f"!pto.mask<b{width}>"},
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------- algebra

gated = pure.but(
    operands="src0=mask src1=mask mask=mask", gate="mask",
    results="dst=mask",
    rules=_same_gran("src0 src1 mask dst"),
    types=_masks("src0 src1 mask dst", 32),
    notes=(
        "dst is 0 in lanes where mask is 0 (doc preset, switch palgebra_gate: mask is ignored); "
        "portable code passes an all-true mask",
        "mixing granularities needs pbitcast, ppack or punpack",
    ),
)

half = pure.but(
    operands="src=mask",
    results="dst=mask",
    format="$src, $part attr-dict : type($src) -> type($dst)",
    attrs=(Attr("part", "str", required=True, choices=("LOWER", "HIGHER"), doc="half of the image"),),
    notes=(
        "any granularity is accepted on the result: the other view, or the same one with a pbitcast",
        "the two meanings are the switch ppack_mode",
    ),
)


def _interleave(name: str, width: int, opcode: int, algorithm: str, doc: str, meaning: str) -> Row:
    full, masks = f"{name}_b{width}", "src0 src1 low high"
    return pure(
        full, opcode=opcode, algorithm=f"{algorithm}: b{width}", operands="src0=mask src1=mask",
        results="low=mask high=mask", doc=doc,
        meaning=meaning.format(n=_lanes(width)), rules=_gran(masks, width), types=_masks(masks, width),
        notes=(f"the {width // 8} image bit(s) of a lane move together",),
        cpp=f"{full}($low, $high, $src0, $src1)",
    )  # fmt: skip


def _pintlv(width: int, opcode: int) -> Row:
    return _interleave(
        "pintlv", width, opcode, "masks in turn", "Interleave the lanes of two masks.",
        "s[2i] = src0[i], s[2i+1] = src1[i]; low = s[0..{n}-1], high = s[{n}..2*{n}-1].",
    )  # fmt: skip


def _pdintlv(width: int, opcode: int) -> Row:
    return _interleave(
        "pdintlv", width, opcode, "even and odd masks", "Split the lanes of two masks into the even and the odd ones.",
        "s = src0 ++ src1; low[i] = s[2i], high[i] = s[2i+1], i < {n}.",
    )  # fmt: skip


# --------------------------------------------------------------------------------------------- load and store

_LOAD_DIST = Attr(
    "dist", "str", "NORM", choices=("NORM", "US", "DS"),
    doc="NORM 32 B = the image; US 16 B, every bit doubled; DS 64 B, every other bit",
)  # fmt: skip
_STORE_DIST = Attr(
    "dist", "str", "NORM", choices=("NORM", "PK"), doc="NORM 32 B = the image; PK 16 B, its even bits"
)
_LOAD = (
    "NORM: image bit b = bit b % 8 of byte b // 8, 32 B. US: image bits 2j and 2j+1 = memory bit j, 16 B. "
    "DS: image bit j = memory bit 2j, 64 B."
)
_STORE = "NORM: memory bit b = image bit b, 32 B. PK: memory bit j = image bit 2j, 16 B."
_UNITS = "U = 32 B for NORM and DS, 16 B for US and PK"

memory = pure.but(
    family="predicate-load-store", effect="memory", in_place="none", cpu="any", a2a3="any", a5="any",
    notes=(
        "the image in both presets; the manual's dense lane bits (L/8 bytes, NORM only) have no switch: saving "
        "and reloading gives the same mask either way, so reserve 32 B",
        "run time: address 8 B aligned; the natural unit, which portable code keeps to, is 32 B (NORM, DS) or "
        "16 B (US, PK)",
    ),
)  # fmt: skip
load = memory.but(
    attrs=(_LOAD_DIST,), dtype_of="source",
    rules=(R("source.space == UB"),),
    types={"mask": "!pto.mask<b32>"},
)  # fmt: skip
store = memory.but(
    attrs=(_STORE_DIST,), dtype_of="dest",
    rules=(R("dest.space == UB"),),
    types={"mask": "!pto.mask<b32>"},
)  # fmt: skip
_PK_CPU = "the manual leaves PK out of the cpu profile; the simulator executes it"
_AT_IMMEDIATE = {"mask": "!pto.mask<b32>", "imm": "i32", "subscript/imm": "", "subscript/offset": "index"}
_IMMEDIATE = (
    R("0 <= imm.const <= 255", on="a2a3"),
    R("0 <= imm.const <= 1023", on="a5"),
    R("has(imm) != has(offset)", msg="expects an immediate or a subscript, not both"),
)
_IMMEDIATE_NOTES = (
    "imm and offset are compile-time constants; their unit is chosen by the spelling",
    "ranges of imm in 8 B units: a2a3 0..255, a5 0..1023, cpu any",
)

ROWS = (
    pure(
        "pbitcast", opcode=0x3100, algorithm="mask image",
        family="conversion", operands="input=mask", results="result=mask",
        doc="The same 256-bit mask image, viewed at another granularity.",
        meaning="result image = input image. b32 -> b16: lane 2i = old lane i, odd lanes inactive; "
        "b16 -> b32: lane i = old lane 2i; likewise between b8 and the others.",
        notes=("the image is not normalized",), no_cpp="a C++ vector_bool carries no granularity",
        types={"input": "!pto.mask<b32>", "result": "!pto.mask<b16>"},
    ),
    _pset(8, 0x3101),
    _pge(8, 0x3102),
    _plt(8, 0x3103),
    _pset(16, 0x3104),
    _pge(16, 0x3105),
    _plt(16, 0x3106),
    _pset(32, 0x3107),
    _pge(32, 0x3108),
    _plt(32, 0x3109),
    gated("pand", opcode=0x310A, expr="src0 & src1", doc="Lane-wise and of two masks.",
          cpp="pand($dst, $src0, $src1, $mask)"),
    gated("por", opcode=0x310B, expr="src0 | src1", doc="Lane-wise or of two masks.",
          cpp="por($dst, $src0, $src1, $mask)"),
    gated("pxor", opcode=0x310C, expr="src0 ^ src1", doc="Lane-wise exclusive or of two masks.",
          cpp="pxor($dst, $src0, $src1, $mask)"),
    gated.but(rules=_same_gran("src mask dst"), types=_masks("src mask dst", 32))(
        "pnot", opcode=0x310D, operands="src=mask mask=mask", expr="~src",
        doc="Lane-wise complement of a mask.", cpp="pnot($dst, $src, $mask)",
    ),
    pure(
        "psel", opcode=0x310E, operands="src0=mask src1=mask sel=mask mask=mask?", results="dst=mask",
        doc="Select between two masks lane by lane.", expr="where(sel, src0, src1)",
        rules=_same_gran("src0 src1 sel mask dst"), forms=(Form("psel($dst, $src0, $src1, $sel)", ignores="mask"),),
        notes=("the fourth operand of the older spelling is accepted and ignored",),
        types=_masks("src0 src1 sel mask dst", 32),
    ),
    half(
        "ppack", opcode=0x310F, algorithm="pack mask",
        doc="Compact the even image bits of a mask into one half.",
        meaning="hw: k[j] = src image bit 2j, j < 128; LOWER puts k in image bits 0..127, HIGHER in "
        "128..255, the other half is 0: a b32 mask becomes the b16 mask of the same lanes, b16 becomes b8. "
        "doc, L lanes: LOWER dst[i] = src[i], HIGHER dst[L/2+i] = src[i], i < L/2, other lanes 0.",
        cpp="ppack($dst, $src, $part)",
        types={"src": "!pto.mask<b32>", "dst": "!pto.mask<b16>", "attr:part": "LOWER"},
    ),
    half(
        "punpack", opcode=0x3110, algorithm="unpack mask",
        doc="Spread one half of a mask image over its even bits.",
        meaning="hw: h = src image bits 0..127 (LOWER) or 128..255 (HIGHER); image bit 2j = h[j], 2j+1 = 0: "
        "a b16 mask becomes the b32 mask of its lower or upper 64 lanes. "
        "doc, L lanes: dst[i] = src[i] (LOWER) or src[L/2+i] (HIGHER), i < L/2, lanes from L/2 on are 0.",
        cpp="punpack($dst, $src, $part)", notes=("inverse of ppack on the selected half",),
        types={"src": "!pto.mask<b16>", "dst": "!pto.mask<b32>", "attr:part": "LOWER"},
    ),
    _pintlv(8, 0x3111),
    _pdintlv(8, 0x3112),
    _pintlv(16, 0x3113),
    _pdintlv(16, 0x3114),
    _pintlv(32, 0x3115),
    _pdintlv(32, 0x3116),
    load(
        "plds", opcode=0x3117, algorithm="load mask: bytes",
        operands="source=ptr offset=index?", results="mask=mask base=ptr?",
        format="$source ['[' $offset ']'] [, $dist] attr-dict "
        ": type($source) [, type($offset)] -> type($mask) [, type($base)]",
        doc="Load a mask from UB at a byte offset.",
        meaning="ea = source + offset bytes (no subscript: 0). With base: ea = source, "
        f"base = source + offset bytes. {_LOAD}",
        rules=(R("base.type == source.type"),),
        cpp="plds($mask, $source, $offset, $dist)",
    ),
    load(
        "pld", opcode=0x3118, algorithm="load mask: words",
        operands="source=ptr areg=i32", results="mask=mask",
        format="$source, $areg [, $dist] attr-dict : type($source), type($areg) -> type($mask)",
        doc="Load a mask from UB at a register offset.", meaning=f"ea = source + areg * 8 bytes. {_LOAD}",
        cpp="plds($mask, $source, $areg * 8, $dist)",
    ),
    load(
        "pldi", opcode=0x3119, algorithm="load mask: units",
        operands="source=ptr offset=index? imm=i32?", results="mask=mask base=ptr?",
        format="$source ['[' $offset ']'] [, $imm] [, $dist] attr-dict "
        ": type($source) [, type($offset)] [, type($imm)] -> type($mask) [, type($base)]",
        doc="Load a mask from UB at an immediate offset.",
        meaning=f"ea = source + imm * 8 bytes; subscript form: ea = source + offset * U, {_UNITS}; "
        f"with base: ea = source, base = source + offset * U. {_LOAD}",
        rules=(R("base.type == source.type"), *_IMMEDIATE), notes=_IMMEDIATE_NOTES, types=_AT_IMMEDIATE,
        cpp="plds($mask, $source, $imm * 8, $dist)",
    ),
    store(
        "psts", opcode=0x311A, algorithm="store mask: bytes",
        operands="mask=mask dest=ptr:out offset=index?", results="base=ptr?",
        format="$mask, $dest ['[' $offset ']'] [, $dist] attr-dict "
        ": type($mask), type($dest) [, type($offset)] [-> type($base)]",
        doc="Store a mask to UB at a byte offset.",
        meaning="ea = dest + offset bytes (no subscript: 0). With base: ea = dest, "
        f"base = dest + offset bytes. {_STORE}",
        rules=(R("base.type == dest.type"),), notes=(_PK_CPU,), cpp="psts($mask, $dest, $offset, $dist)",
    ),
    store(
        "pst", opcode=0x311B, algorithm="store mask: words", operands="mask=mask dest=ptr:out areg=i32",
        format="$mask, $dest, $areg [, $dist] attr-dict : type($mask), type($dest), type($areg)",
        doc="Store a mask to UB at a register offset.", meaning=f"ea = dest + areg * 8 bytes. {_STORE}",
        notes=(_PK_CPU,), cpp="psts($mask, $dest, $areg * 8, $dist)",
    ),
    store(
        "psti", opcode=0x311C, algorithm="store mask: units",
        operands="mask=mask dest=ptr:out offset=index? imm=i32?", results="base=ptr?",
        format="$mask, $dest ['[' $offset ']'] [, $imm] [, $dist] attr-dict "
        ": type($mask), type($dest) [, type($offset)] [, type($imm)] [-> type($base)]",
        doc="Store a mask to UB at an immediate offset.",
        meaning=f"ea = dest + imm * 8 bytes; subscript form: ea = dest + offset * U, {_UNITS}; with base: "
        f"ea = dest, base = dest + offset * U. {_STORE}",
        rules=(R("base.type == dest.type"), *_IMMEDIATE), notes=(*_IMMEDIATE_NOTES, _PK_CPU), types=_AT_IMMEDIATE,
        cpp="psts($mask, $dest, $imm * 8, $dist)",
    ),
    pure(
        "pstu", opcode=0x311D, algorithm="append mask",
        family="predicate-load-store", effect="memory", in_place="none",
        operands="align=align mask=mask base=ptr:out", results="align_out=align base_out=ptr",
        dtype_of="base", cpu="u16 u32 i16 i32", a2a3="u16 u32 i16 i32", a5="u16 u32 i16 i32",
        rules=(
            R("base.space == UB"),
            R("mask.gran in ('b16', 'b32')"),
            R("base.bits == 16", when="mask.gran == 'b16'"),
            R("base.bits == 32", when="mask.gran == 'b32'"),
            R("base_out.dtype == base.dtype"), R("base_out.space == base.space"),
        ),
        doc="Append the lanes of a mask, packed densely, to an unaligned store stream.",
        meaning="Append lane bits, lane 0 first, at base: b16 128 bits = 16 B, b32 64 bits = 8 B; "
        "base_out = base + that many bytes. Whole 32 B blocks are written, "
        "the rest stays in align_out until vstas or vstar.",
        notes=(
            "the chain starts at init_align and is linear; a load never starts it; no alignment requirement",
            "one append is not atomic per 64-bit word",
            "the manual leaves it out of the cpu profile; the simulator executes it",
        ),
        cpp="pstu($align, $mask, $base)",
        types={"base_out": "!pto.ptr<{T}, ub>"},
    ),
)  # fmt: skip
