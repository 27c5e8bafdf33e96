"""Vector-register loads and stores on the unified buffer, unaligned streams, and register materialization.

Offsets count elements unless a row states bytes; ea is the effective address. The dictionaries below describe
each distribution or stride token once, with its legal values and its meaning. Alignment state (`!pto.align`)
is linear: every value is used once, load and store states are never mixed, a stream stays inside one
vecscope, and a store stream ends with vsta, vstas or vstar.
"""

from __future__ import annotations

from ..row import Attr, Family
from ..rules import R, Rule
from ._common import same_dtype
from .vector_compute import B8_32, FP8, INTS, LOW, VECTOR, everywhere, full_width, mask_of

_LOAD = {
    "NORM": "256 B, align 32, imm 0: r[i] = UB_T[ea + i]",
    "BRC_B8": "1 element, imm 1: r[i] = UB8[ea] for all 256 lanes",
    "BRC_B16": "1 element, imm 2: r[i] = UB16[ea] for all 128 lanes",
    "BRC_B32": "1 element, imm 3: r[i] = UB32[ea] for all 64 lanes",
    "US_B8": "128 B, align 32, imm 6: r[2i] = r[2i+1] = UB8[ea + i], i < 128",
    "US_B16": "128 B, align 32, imm 7: r[2i] = r[2i+1] = UB16[ea + i], i < 64",
    "DS_B8": "512 B, align 32, imm 8: r[i] = UB8[ea + 2i], i < 256",
    "DS_B16": "512 B, align 32, imm 9: r[i] = UB16[ea + 2i], i < 128",
    "UNPK_B8": "128 B, align 32, imm 13: 16-bit slot i = zext(UB8[ea + i]), i < 128",
    "UNPK_B16": "128 B, align 32, imm 14: 32-bit slot i = zext(UB16[ea + i]), i < 64",
    "UNPK_B32": "128 B, align 32, imm 18: 64-bit slot i = zext(UB32[ea + i]), i < 32",
    "UNPK4": "64 B, align 32, imm 20: 32-bit slot i = zext(UB8[ea + i]), i < 64",
    "BRC_BLK": "32 B, align 32, imm 15: byte b = UB[ea + b mod 32], one block eight times",
    "E2B_B16": "16 B, align 16, imm 16: r[16g + k] = UB16[ea + g], g < 8, k < 16",
    "E2B_B32": "32 B, align 32, imm 17: r[8g + k] = UB32[ea + g], g < 8, k < 8",
    "SPLT4CHN": "256 B, align 32, imm 21: r[i] = UB8[ea + 4i], i < 64, the rest 0",
    "SPLT2CHN_B8": "256 B, align 32, imm 22: r[i] = UB8[ea + 2i], i < 128, the rest 0",
    "SPLT2CHN_B16": "256 B, align 32, imm 23: r[i] = UB16[ea + 2i], i < 64, the rest 0",
    "DINTLV_B32": "512 B, align 32: r[i] = UB32[ea + 2i], i < 64",
    "BRC": "BRC_B8, BRC_B16 or BRC_B32 by the element width",
    "US": "US_B8 or US_B16 by the element width",
    "DS": "DS_B8 or DS_B16 by the element width",
    "UNPK4_B8": "UNPK4",
    "BLK": "BRC_BLK",
    "SPLT4CHN_B8": "SPLT4CHN",
}
_LOAD2 = {
    "DINTLV_B8": "imm 11: low[i] = UB8[ea + 2i], high[i] = UB8[ea + 2i + 1], i < 256",
    "DINTLV_B16": "imm 12: the same with 16-bit items, i < 128",
    "DINTLV_B32": "imm 19: the same with 32-bit items, i < 64",
    "BDINTLV": "imm 10: 32-byte blocks; low.block[g] = block 2g, high.block[g] = block 2g + 1, g < 8",
}
_STORE = {
    "NORM": "NORM_B8, NORM_B16 or NORM_B32 by the element width; 64-bit elements as pairs of 32-bit lanes",
    "NORM_B8": "imm 0: mask[i] -> UB8[ea + i] = lane8[i], i < 256; mask b8",
    "NORM_B16": "imm 1: mask[i] -> UB16[ea + i] = lane16[i], i < 128; mask b16",
    "NORM_B32": "imm 2: mask[i] -> UB32[ea + i] = lane32[i], i < 64; mask b32",
    "1PT_B8": "imm 3: UB8[ea] = lane8[0], the mask is ignored",
    "1PT_B16": "imm 4: UB16[ea] = lane16[0], the mask is ignored",
    "1PT_B32": "imm 5: UB32[ea] = lane32[0], the mask is ignored",
    "PK_B16": "imm 6, 128 B: mask[i] -> UB8[ea + i] = low8(lane16[i]), i < 128; mask b16",
    "PK_B32": "imm 7, 128 B: mask[i] -> UB16[ea + i] = low16(lane32[i]), i < 64; mask b32",
    "PK_B64": "imm 10, 128 B: mask[2i] -> UB32[ea + i] = low32(lane64[i]), i < 32; mask b32",
    "PK4_B32": "imm 12, 64 B: mask[i] -> UB8[ea + i] = low8(lane32[i]), i < 64; mask b32",
    "MRG4CHN_B8": "imm 13: four byte planes interleaved within each 32-byte block; mask then viewed as b32",
    "MRG2CHN_B8": "imm 14: two byte planes interleaved within each 32-byte block; mask viewed as b16",
    "MRG2CHN_B16": "imm 15: two 16-bit planes interleaved within each 32-byte block; mask viewed as b32",
    "1PT": "1PT_B8, 1PT_B16 or 1PT_B32 by the element width",
    "ONEPT_B8": "1PT_B8",
    "ONEPT_B16": "1PT_B16",
    "ONEPT_B32": "1PT_B32",
}
_STRIDES = ("STRIDE_S3_B16", "STRIDE_S4_B64", "STRIDE_S8_B32", "STRIDE_S2_B64")

_AT_SOURCE = "$source '[' $offset ']'"
_AT_DEST = "$dest '[' $offset ']'"


def _table(tokens: dict[str, str]) -> str:
    return "\n".join(f"{token}: {what}." for token, what in tokens.items())


def _ub(names: str) -> tuple[Rule, ...]:
    """Every named pointer points into the unified buffer, and counts what lanes hold: elements of 4 bits in pairs."""
    return tuple(
        rule
        for n in names.split()
        for rule in (
            R(f"{n}.space == UB"),
            R(f"{n}.bits >= 8", msg=f"expects {n} to count pairs of elements of 4 bits: !pto.f4E1M2x2, !pto.f4E2M1x2"),
        )
    )


def _advanced(out: str, pointer: str) -> tuple[Rule, ...]:
    """An advanced pointer has the type of the pointer it came from."""
    return (R(f"{out}.dtype == {pointer}.dtype"), R(f"{out}.space == {pointer}.space"))


def _mode(default: str | None) -> Attr:
    return Attr("mode", "str", default, choices=("POST_UPDATE", "NO_POST_UPDATE"),
                doc="whether the stream position advances")  # fmt: skip


_ALIGNED = "An address that is not aligned as listed, or outside the buffer, is an error at run time."
_STREAM = "The state is used once, and its stream ends in vsta, vstas or vstar on every path."

_load = Family(
    "vector-load-store", **VECTOR, operands="source=ptr offset=index", results="r=vreg base=ptr?",
    dtype_of="r", domain="all lanes", rules=_ub("source"), **everywhere(B8_32, FP8),
)  # fmt: skip
_store = Family(
    "vector-load-store", **VECTOR, operands="value=vreg dest=ptr:out offset=index mask=mask?",
    results="base=ptr?", dtype_of="value", in_place="any", rules=_ub("dest"),
    domain="the addressed bytes of lanes on in mask", **everywhere(B8_32, FP8),
)  # fmt: skip
_stream = _store.but(
    isas="a5", results="state_out=align", domain="the appended bytes", a5=f"any {LOW}", notes=(_STREAM,),
    rules=(*_ub("base"), R("base.dtype == value.dtype"), *full_width("value")),
)  # fmt: skip
_flush = Family(
    "vector-load-store", **VECTOR, isas="a5", operands="state=align dest=ptr:out offset=index",
    dtype_of="dest", in_place="any", rules=_ub("dest"), domain="the pending bytes of the stream",
    a5=f"any {LOW}", notes=(_STREAM,),
)  # fmt: skip
_special = Family(
    "vector-load-store", **VECTOR, isas="a5", attrs=(Attr("spr", "str", "AR", choices=("AR",)),),
    notes=("From the A5 toolchain. AR and SQZN are hidden registers of the vector core.",),
)  # fmt: skip
_special_store = _special.but(
    operands="dest=ptr:out offset=int", results="base=ptr?", dtype_of="dest", a5="u32 i32", in_place="any",
    format=(
        f"$spr, {_AT_DEST} attr-dict : type($dest) [, type($offset)] [-> type($base)]",
        f"{_AT_DEST} attr-dict : type($dest) [, type($offset)] [-> type($base)]",
    ),
    rules=(*_ub("dest"), *_advanced("base", "dest")),
    domain="one 32-bit word", types={"offset": "i32", "advancing/base": "!pto.ptr<{T}, ub>"},
)  # fmt: skip

_LOADS = (
    _load(
        "vlds", opcode=0x3000, algorithm="load lanes", aliases="vlds_post", **everywhere("any", LOW),
        format=tuple(
            f"{_AT_SOURCE} attr-dict : type($source){index} -> type($r) [, type($base)]"
            for index in ("", ", type($offset)")
        ),
        attrs=(Attr("dist", "str", "NORM", choices=tuple(_LOAD), doc="which bytes go to which lanes"),),
        rules=(
            *full_width("r"), *_advanced("base", "source"),
            R("r.dtype == source.dtype",
              when="dist not in ('UNPK_B8', 'UNPK_B16', 'UNPK_B32', 'UNPK4', 'UNPK4_B8')"),
            R("r.bits == 8",
              when="dist in ('US_B8', 'DS_B8', 'SPLT4CHN', 'SPLT4CHN_B8', 'SPLT2CHN_B8')"),
            R("r.bits == 16", when="dist in ('US_B16', 'DS_B16', 'SPLT2CHN_B16')"),
            R("r.bits in (8, 16)", when="dist in ('US', 'DS')"),
            R("source.bits == 8", when="dist in ('UNPK_B8', 'UNPK4', 'UNPK4_B8')"),
            R("source.bits == 16", when="dist == 'UNPK_B16'"),
            R("source.bits == 32", when="dist == 'UNPK_B32'"),
            R("dist in ('NORM', 'UNPK_B32')", when="r.bits == 64",
              msg="expects 64-bit elements to be loaded with dist NORM or UNPK_B32"),
        ),
        doc="Aligned load of one vector, with an optional distribution of the bytes.",
        meaning="ea = source + offset; the two-result form loads at ea = source and returns base = source + "
                "offset. The token's own width, not T, decides the mapping. Modes, with their footprint:\n"
                + _table(_LOAD),
        notes=(
            _ALIGNED, "No mask.",
            "The manual requires 32-byte alignment in every mode; the list has the requirements of A5.",
            "A BRC or DINTLV token may be of another width than the elements, as real programs have it.",
            "The footprints are those that follow from the formulas; the manual's differ for US and DS.",
            "UNPK_B8 doubles the width; the 8 to 32 bit mode is UNPK4.",
            "DINTLV_B32 is accepted as the manual's single-result mode; the assembler has it on vldsx2 only.",
        ),
    ),
    _load(
        "vldas", opcode=0x3001, algorithm="begin loads",
        operands="source=ptr", results="state=align", dtype_of="source",
        **everywhere("any", LOW), domain="the state",
        doc="Start of an unaligned load stream.",
        meaning="state.block = floor32(address of source); state.bytes = the 32 bytes there.",
        notes=("First in every vldus stream: a load state does not come from init_align.",
               "source may have any element alignment."),
    ),
    _load(
        "vldus", opcode=0x3002, algorithm="next load", operands="source=ptr state=align increment=index?",
        results="r=vreg state_out=align base=ptr?", **everywhere("any", LOW),
        format="$source, $state [, $increment] attr-dict : type($source), type($state) "
               "[, type($increment)] -> type($r), type($state_out) [, type($base)]",
        rules=(
            *same_dtype("r source"), *full_width("r"), *_advanced("base", "source"),
            R("has(base)", when="has(increment)", msg="expects an increment to return the advanced pointer"),
        ),
        doc="Load of one vector at any element alignment.",
        meaning="r = the 256 bytes at source: those below the next 32-byte boundary come from state, the "
                "rest from memory, which is touched in [floor32(source), ceil32(source + 256)). "
                "state_out.block = floor32(source + 256) and its bytes. base = source + increment elements, N "
                "without one.",
        types={"advancing/increment": "index", "advancing/base": "!pto.ptr<{T}, ub>"},
        notes=("state must be primed for floor32(source); the engines report a mismatch.",
               "The two-result form leaves the pointer to the program: one that is not source + N needs a "
               "new vldas; so does an increment other than N.",
               "The chain of states neither branches nor merges."),
    ),
    _load(
        "vldsx2", opcode=0x3003, algorithm="load two registers",
        results="low=vreg high=vreg base=ptr?", dtype_of="low",
        format=tuple(
            f"{_AT_SOURCE}{dist} attr-dict : type($source) [, type($offset)] -> type($low), type($high) "
            "[, type($base)]"
            for dist in (", $dist", "")
        ),
        attrs=(Attr("dist", "str", required=True, choices=tuple(_LOAD2), doc="how the items alternate"),),
        rules=(*same_dtype("low high source"), *full_width("low high"), *_advanced("base", "source")),
        doc="Load of two vectors from alternating items.", types={"attr:dist": "DINTLV_B32"},
        meaning="ea = source + offset; the three-result form loads at ea = source and returns base = source "
                "+ offset. 512 bytes, align 32:\n" + _table(_LOAD2),
        notes=(_ALIGNED, "The 32-byte granularity of BDINTLV is inferred from its name."),
    ),
    _load(
        "vsld", opcode=0x3004, algorithm="load strided", results="r=vreg",
        format=tuple(
            f"{_AT_SOURCE}{stride} attr-dict : type($source){index} -> type($r)"
            for stride in (", $stride", "") for index in ("", ", type($offset)")
        ),
        attrs=(Attr("stride", "str", required=True, choices=_STRIDES,
                    doc="distance and width of the items"),),
        rules=(*same_dtype("r source"), *full_width("r")), types={"attr:stride": "STRIDE_S8_B32"},
        doc="Load with a fixed stride.",
        meaning="ea = source + offset, align 32. For STRIDE_S<k>_B<w>: item[i] = UBw[ea + k*i items of w "
                "bits], i < 2048 / w.",
        notes=(_ALIGNED, "The sources give the tokens only; this reading of them is ours."),
    ),
    _load(
        "vsldb", opcode=0x3005, algorithm="load blocks",
        operands="source=ptr ctl=i32|i16 repeat_stride=i16? mask=mask",
        **everywhere("any", LOW),
        format=(
            "$source, $ctl, $mask attr-dict : type($source), type($ctl), type($mask) -> type($r) "
            "[, type($base)]",
            "$source, $ctl, $repeat_stride, $mask attr-dict : type($source), type($ctl), "
            "type($repeat_stride), type($mask) -> type($r) [, type($base)]",
        ),
        rules=(
            *same_dtype("r source"), *full_width("r"), *_advanced("base", "source"),
            R("ctl.bits == 32", when="not has(repeat_stride)"),
        ),
        doc="Load of eight 32-byte blocks at a block stride.",
        domain="blocks on in mask; the others are 0", types={"ctl": "i32", "mask": "!pto.mask<b32>"},
        meaning="ctl alone packs block_stride in bits 31:16 and repeat_stride in bits 15:0; with "
                "repeat_stride given, ctl is block_stride. Both count 32-byte blocks. For blk in 0..7: "
                "r.block[blk] = active(blk) ? block at start + blk * block_stride : 0, where active(blk) is "
                "the mask bit of the first lane of the block. With base: start = source and base = source + "
                "repeat_stride blocks; without: start = source + repeat_stride blocks.",
        notes=("Blocks that are off are not checked for their address.", "source is 32-byte aligned.",
               "The assembler indexes the mask as b32[blk]; masks that cover whole rows agree with both."),
    ),
    _load(
        "vgather2", opcode=0x3006, algorithm="gather lanes",
        operands="source=ptr offsets=vreg mask=mask|index", results="r=vreg",
        **everywhere("f32 f16 bf16 i16 u16 i32 u32"),
        rules=(
            *full_width("offsets r"), R("offsets.bits == r.bits"),
            R("offsets.dtype in (U16, U32, I16, I32)", msg="expects offsets to hold 16- or 32-bit integers"),
            R("r.dtype == source.dtype", when="source.bits != 8"),
            R("r.dtype in (I16, U16) and source.dtype in (I8, U8)", when="source.bits == 8",
              msg="expects a gather of bytes to give 16-bit integers"),
            *mask_of("mask", "r"), R("0 <= mask.const <= r.lanes"),
        ),
        doc="Gather of elements by an index vector.", domain="active lanes; the others are 0",
        meaning="active(i): r[i] = UB_T[source + zext(offsets[i])]. An index n in place of the mask makes "
                "the first n lanes active. 8-bit sources: 128 lanes, each byte zero-extended to 16 bits.",
        types={"offsets": "!pto.vreg<{N}x{U}>", "bytes/source": "!pto.ptr<ui8, ub>"},
        notes=("Addresses are checked for active lanes only.", "Offsets are read as unsigned."),
    ),
    _load(
        "vgatherb", opcode=0x3007, algorithm="gather lane blocks",
        operands="source=ptr offsets=vreg mask=mask|index", results="r=vreg",
        rules=(
            *same_dtype("r source"), *full_width("offsets r"), R("offsets.dtype in (U32, I32)"),
            R("mask.gran == 'b32'"), R("0 <= mask.const <= 8"),
        ),
        doc="Gather of eight 32-byte blocks by byte offsets.", domain="active blocks; the others are 0",
        meaning="For blk in 0..7: r.block[blk] = active(blk) ? the 32 bytes at address(source) + "
                "u(offsets[blk]) : 0. The mask is b32 over the first eight lanes; an index n makes the first "
                "n blocks active.",
        types={"offsets": "!pto.vreg<64xui32>", "mask": "!pto.mask<b32>"},
        notes=("source and every active offset are multiples of 32 bytes; only the first 8 offsets are used.",
               "Blocks that are off are not checked for their address.",
               "The manual's sketch works per lane, its prose per block; this table follows the prose."),
    ),
    _load(
        "vgather2_bc", opcode=0x3008, algorithm="gather some lanes",
        operands="source=ptr offsets=vreg mask=mask", results="r=vreg",
        rules=(
            *same_dtype("r source"), *full_width("offsets r"), R("offsets.dtype in (U32, I32)"),
            *mask_of("mask", "r"),
        ),
        doc="Gather of elements by 32-bit indices, compatibility form.",
        domain="lanes on in mask; the others are 0",
        meaning="r[i] = mask[i] ? UB_T[source + zext(offsets[i])] : 0.",
        types={"offsets": "!pto.vreg<64xui32>"},
        notes=("Lanes that are off are not checked for their address.",
               "The broadcast in the name is not defined anywhere.",
               "With 8- and 16-bit elements only the first 64 lanes have an offset; the others give 0."),
    ),
)  # fmt: skip

_STORES = (
    _store(
        "vsts", opcode=0x3010, algorithm="store lanes", aliases="vsts_post", **everywhere("any", LOW),
        format=f"$value, {_AT_DEST} [, $mask] attr-dict : type($value), type($dest) [, type($mask)] "
               "[-> type($base)]",
        attrs=(Attr("dist", "str", "NORM", choices=tuple(_STORE), doc="which lanes go to which bytes"),),
        rules=(
            *full_width("value"),
            R("dest.dtype == value.dtype",
              when="dist not in ('PK_B16', 'PK_B32', 'PK_B64', 'PK4_B32', 'MRG4CHN_B8', 'MRG2CHN_B8', "
                   "'MRG2CHN_B16')"),
            *_advanced("base", "dest"), *mask_of("mask", "value", when="dist == 'NORM'"),
            R("mask.gran == 'b8'", when="dist == 'NORM_B8'"),
            R("mask.gran == 'b16'", when="dist in ('NORM_B16', 'PK_B16', 'MRG2CHN_B8')"),
            R("mask.gran == 'b32'",
              when="dist in ('NORM_B32', 'PK_B32', 'PK_B64', 'PK4_B32', 'MRG4CHN_B8', 'MRG2CHN_B16')"),
            R("dist in ('NORM', 'NORM_B32', 'PK_B64')", when="value.bits == 64",
              msg="expects 64-bit elements to be stored with dist NORM or PK_B64"),
        ),
        doc="Aligned store of one vector, with an optional distribution of the lanes.",
        meaning="ea = dest + offset; with a result, ea = dest and base = dest + offset. Only active lanes "
                "write; inactive bytes are not read back. Without a mask all lanes are active. Align 32, 1PT "
                "element alignment:\n" + _table(_STORE),
        types={"masked/mask": "!pto.mask<b{W}>"},
        notes=(_ALIGNED, "The MRG modes are part of the surface but not supported by current A5 hardware.",
               "The effective address is checked whatever the mask says, the rest of the footprint where "
               "lanes are on."),
    ),
    _store(
        "vstsx2", opcode=0x3011, algorithm="store two registers",
        operands="low=vreg high=vreg dest=ptr:out offset=index mask=mask",
        results="", dtype_of="low",
        format=tuple(
            f"$low, $high, {_AT_DEST}{dist}, $mask attr-dict : type($low), type($high), type($dest){index}, "
            "type($mask)"
            for dist in (", $dist", "") for index in (", type($offset)", "")
        ),
        attrs=(Attr("dist", "str", required=True, choices=("INTLV_B8", "INTLV_B16", "INTLV_B32"),
                    doc="width of the interleaved items; imm 8, 9 and 11"),),
        rules=(*same_dtype("low high dest"), *full_width("low high"), *mask_of("mask", "low")),
        doc="Store of two vectors as alternating items.", types={"attr:dist": "INTLV_B32"},
        domain="512 bytes",
        meaning="ea = dest + offset, align 32, 512 bytes. For every i, items of the token's width: "
                "UB[ea + 2i] = low[i]; UB[ea + 2i + 1] = high[i]. semantics=hw: the mask is ignored; "
                "semantics=doc: mask[i] gates both items i (switch vstsx2_mask).",
        notes=(_ALIGNED, "Portable code passes an all-true mask."),
    ),
    _store(
        "vsst", opcode=0x3012, algorithm="store strided",
        operands="value=vreg dest=ptr:out offset=index", results="",
        format=tuple(
            f"$value, {_AT_DEST}{stride} attr-dict : type($value), type($dest)"
            for stride in (", $stride", "")
        ),
        attrs=(Attr("stride", "str", required=True, choices=(*_STRIDES, "STRIDE_VSST_S8_B16"),
                    doc="distance and width of the items"),),
        rules=(*same_dtype("value dest"), *full_width("value")), types={"attr:stride": "STRIDE_S8_B32"},
        doc="Store with a fixed stride.", domain="the addressed items",
        meaning="ea = dest + offset, align 32. For STRIDE_S<k>_B<w> (STRIDE_VSST_S8_B16: k = 8, w = 16): "
                "UBw[ea + k*i items of w bits] = item i, i < 2048 / w; the gaps keep their contents.",
        notes=(_ALIGNED, "The sources give the tokens only; this reading of them is ours."),
    ),
    _store(
        "vsstb", opcode=0x3013, algorithm="store blocks",
        operands="value=vreg dest=ptr:out ctl=i32|i16 repeat_stride=i16? mask=mask",
        **everywhere("any", LOW),
        format=(
            "$value, $dest, $ctl, $mask attr-dict : type($value), type($dest), type($ctl), type($mask) "
            "[-> type($base)]",
            "$value, $dest, $ctl, $repeat_stride, $mask attr-dict : type($value), type($dest), type($ctl), "
            "type($repeat_stride), type($mask) [-> type($base)]",
        ),
        rules=(
            *same_dtype("value dest"), *full_width("value"), *_advanced("base", "dest"),
            R("ctl.bits == 32", when="not has(repeat_stride)"),
        ),
        doc="Store of eight 32-byte blocks at a block stride.", domain="blocks on in mask",
        meaning="ctl, repeat_stride and start as in vsldb. For blk in 0..7: where active(blk), the block at "
                "start + blk * block_stride = value.block[blk]. base = dest + repeat_stride blocks.",
        types={"ctl": "i32", "mask": "!pto.mask<b32>"},
        notes=("Blocks that are off are neither written nor checked.", "dest is 32-byte aligned."),
    ),
    _store(
        "vscatter", opcode=0x3014, algorithm="scatter lanes",
        operands="value=vreg dest=ptr:out offsets=vreg mask=mask|index",
        results="",
        format="$value, $dest, $offsets, $mask attr-dict : type($value), type($dest), type($offsets), "
               "type($mask)",
        rules=(
            *same_dtype("value dest"), *full_width("value offsets"),
            R("offsets.dtype in (U32, I32) if value.bits == 32 else offsets.dtype in (U16, I16)",
              msg="expects 32-bit offsets for 32-bit elements and 16-bit offsets for narrower ones"),
            R("mask.gran == 'b32' if value.bits == 32 else mask.gran == 'b16'",
              msg="expects mask granularity to be the width of offsets"),
            R("0 <= mask.const <= offsets.lanes"),
        ),
        doc="Scatter of elements by an index vector.", domain="the addressed elements of active lanes",
        meaning="active(i): UB_T[dest + zext(offsets[i])] = value[i]. An index n in place of the mask makes "
                "the first n lanes active. 8-bit elements: 128 requests, request i stores value[2i].",
        types={"offsets": "!pto.vreg<{N}x{U}>", "bytes/offsets": "!pto.vreg<128xui16>",
               "bytes/mask": "!pto.mask<b16>"},
        notes=("Addresses are checked for active lanes only.",
               "Equal offsets: the lowest lane wins on a5; an error on a2a3 and cpu."),
    ),
)  # fmt: skip

_STREAMS = (
    _flush(
        "vsta", opcode=0x3018, algorithm="end of stream",
        doc="End of an unaligned store stream, at an element offset.",
        format=f"$state, {_AT_DEST} attr-dict : type($state), type($dest) [, type($offset)]",
        meaning="pos = dest + offset. The pos mod 32 buffered bytes are written to [floor32(pos), pos); the "
                "state is consumed.",
        notes=("pos must be the position of the stream unless nothing is pending.",),
    ),
    _flush(
        "vstas", opcode=0x3019, algorithm="end of stream",
        operands="state=align dest=ptr:out offset=i32", results="base=ptr?",
        format="$state, $dest, $offset attr-dict : type($state), type($dest), type($offset) "
               "[-> type($base)]",
        rules=_advanced("base", "dest"), types={"advancing/base": "!pto.ptr<{T}, ub>"},
        doc="End of an unaligned store stream, at a scalar displacement.",
        meaning="As vsta with pos = dest + offset, which is the position after the last vstus. With a result, "
                "pos = dest and base = dest + offset.",
        notes=("offset counts elements, as in the toolchain; the manual has bytes, the headers always pass 0.",
               "pos must be the position of the stream unless nothing is pending."),
    ),
    _flush(
        "vstar", opcode=0x301A, algorithm="end of stream by register", operands="state=align dest=ptr:out",
        format="$state, $dest attr-dict : type($state), type($dest)",
        doc="End of a store stream addressed by the AR register.",
        meaning="As vsta with pos = dest + AR bytes; the state is consumed.",
    ),
    _stream(
        "vstu", opcode=0x301B, algorithm="append",
        operands="state=align position=index|ptr value=vreg base=ptr:out mode_value=index?",
        results="state_out=align position_out=index|ptr", attrs=(_mode("NO_POST_UPDATE"),),
        format=(
            "$state, $position, $value, $base, $mode attr-dict : type($state), type($position), "
            "type($value), type($base) -> type($state_out), type($position_out)",
            "$state, $position, $value, $base, $mode_value attr-dict : type($state), type($position), "
            "type($value), type($base), type($mode_value) -> type($state_out), type($position_out)",
            "$state, $position, $value, $base attr-dict : type($state), type($position), "
            "type($value), type($base) -> type($state_out), type($position_out)",
        ),
        rules=(
            R("position_out.kind == position.kind"),
            R("position.space == UB", when="position.kind == 'ptr'"),
        ),
        doc="Append of a full vector to an unaligned store stream.",
        meaning="Stores value at base + position elements, or at position where that is a pointer. Every "
                "complete 32-byte block is written, the trailing partial block stays in state_out. "
                "POST_UPDATE: position_out = position + N; NO_POST_UPDATE: position_out = position.",
        types={"position": "index", "position_out": "index", "pointer/position": "!pto.ptr<{T}, ub>",
               "pointer/position_out": "!pto.ptr<{T}, ub>"},
        notes=("In the form with mode_value, 1 stands for POST_UPDATE and 0 for NO_POST_UPDATE (our "
               "reading).",
               "Gone from the newest assembler."),
    ),
    _stream(
        "vstus", opcode=0x301C, algorithm="append count",
        operands="state=align position=ptr? count=i32 value=vreg base=ptr:out",
        results="state_out=align base_out=ptr?", attrs=(_mode(None),),
        format=(
            "$state, $count, $value, $base attr-dict : type($state), type($count), type($value), type($base) "
            "-> type($state_out) [, type($base_out)]",
            "$state, $count, $value, $base, $mode attr-dict : type($state), type($count), type($value), "
            "type($base) -> type($state_out) [, type($base_out)]",
            "$state, $position, $value, $base, $count attr-dict : type($state), type($position), "
            "type($value), type($base), type($count) -> type($state_out) [, type($base_out)]",
        ),
        rules=(
            *_ub("position"), *_advanced("base_out", "base"), R("0 <= count.const <= value.lanes"),
            R("has(base_out)", when="mode == 'POST_UPDATE'",
              msg="expects POST_UPDATE to return the advanced pointer"),
        ),
        doc="Append of the first elements of a vector to an unaligned store stream.",
        meaning="Appends value[0..count) at base, or at position where that is given; full 32-byte blocks "
                "are written, the tail stays in state_out. POST_UPDATE: base_out = that address + count "
                "elements; NO_POST_UPDATE: base_out = that address. Without mode, a second result means "
                "POST_UPDATE.",
        notes=("count is the number of stored elements; it does not move the store.",
               "A flush at another address is accepted where nothing is pending."),
    ),
    _stream(
        "vstur", opcode=0x301D, algorithm="append squeezed", operands="state=align value=vreg base=ptr:out",
        attrs=(_mode("NO_POST_UPDATE"),),
        format=tuple(
            f"$state, $value, $base{mode} attr-dict : type($state), type($value), type($base) "
            "-> type($state_out)"
            for mode in (", $mode", "")
        ),
        doc="Append of squeezed lanes to a store stream addressed by the AR register.",
        meaning="Appends the first SQZN bytes of value at address base + AR bytes. POST_UPDATE: AR += SQZN; "
                "NO_POST_UPDATE leaves AR. SQZN was set by the last vsqz.",
        notes=("Clear AR first with sprclr.",),
    ),
    _special(
        "sprclr", opcode=0x3020, algorithm="clear address register",
        effect="config", doc="Clears a special register.", meaning="AR = 0.",
        format=("$spr attr-dict", "attr-dict"),
    ),
    _special_store(
        "sprsti", opcode=0x3021, algorithm="store address register: words",
        doc="Store of a special register at an immediate offset.",
        meaning="The 32-bit word at dest + offset words = AR; with a result, the word at dest = AR and base = "
                "dest + offset words.",
        rules=(R("-128 <= offset.const <= 127"),),
        notes=("offset is a constant of eight signed bits, in units of the register width.",),
    ),
    _special_store(
        "sprsts", opcode=0x3022, algorithm="store address register: bytes",
        doc="Store of a special register at a byte offset.",
        meaning="The 32-bit word at dest + offset bytes = AR; with a result, the word at dest = AR and base = "
                "dest + offset bytes.",
    ),
)  # fmt: skip

_make = Family(
    "materialization", **VECTOR, effect="pure", results="r=vreg", dtype_of="r", **everywhere(B8_32),
)  # fmt: skip

_MATERIALIZATION = (
    _make(
        "vbr", opcode=0x3028, algorithm="broadcast scalar", operands="value=scalar", domain="all lanes",
        rules=(
            *full_width("r"),
            R(f"value.dtype == r.dtype or value.dtype in {INTS} and r.dtype in {INTS} and "
              "(value.bits == r.bits or r.bits == 8)", msg="expects value to have the element type of r"),
        ),
        doc="Broadcast of a scalar to every lane.", meaning="r[i] = value for every i.",
        notes=("No mask. 8-bit elements take the low 8 bits of the scalar.",),
    ),
    _make(
        "vdup", opcode=0x3029, algorithm="duplicate", operands="input=vreg|scalar mask=mask?",
        attrs=(Attr("position", "str", "LOWEST", choices=("LOWEST", "HIGHEST", "POS_LOWEST", "POS_HIGHEST"),
                    words={"LOWEST": "POS_LOWEST", "HIGHEST": "POS_HIGHEST"},
                    doc="lane to repeat, for a vector input; the toolchain writes POS_x for x"),),
        rules=(
            *full_width("r"), *mask_of("mask", "r"),
            R(f"input.dtype == r.dtype or input.bits == r.bits and input.dtype in {INTS} and "
              f"r.dtype in {INTS}", msg="expects input to have the element type of r"),
            R("input.lanes * input.bits == 2048", when="input.kind == 'vreg'",
              msg="expects input to fill a 2048-bit vector register"),
            R("input.kind == 'vreg'", when="position in ('HIGHEST', 'POS_HIGHEST')",
              msg="expects position only with a vector input"),
        ),
        doc="Repetition of a scalar, or of one lane of a vector, in every lane.",
        domain="lanes on in mask, all without one; the others are 0",
        types={"input": "!pto.vreg<{N}x{T}>", "scalar/input": "{T}"},
        meaning="x = input where it is a scalar, input[0] (LOWEST) or input[N-1] (HIGHEST); "
                "r[i] = mask[i] ? x : 0.",
        notes=("The hardware's merging variant is not reachable in SSA form.",),
    ),
)  # fmt: skip

ROWS = (*_LOADS, *_STORES, *_STREAMS, *_MATERIALIZATION)
