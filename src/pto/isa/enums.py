"""Attribute enums of the ISA: name, values with their numbers, and spelling.

There are two printed forms: `#pto.NAME<VALUE>` and `#pto<NAME VALUE>` (`spaced=True`). The parser accepts
both for every enum; the printer uses the form in this table, which PTOAS reads.
"""

from __future__ import annotations

from .machine import EVENT_IDS, EVERY_PIPE, PIPES
from .record import Record

_NONE: dict[str, str] = {}
_spellings: dict[tuple[str, str], str] = {}


class Enum(Record):
    name: str
    values: dict[str, int]
    spaced: bool = False  # printed as #pto<name value>
    aliases: dict[str, str] = _NONE
    doc: str = ""
    cpp: str = "{0}"  # C++ spelling of a value: {0} unchanged

    def text(self, value: str) -> str:
        """Return a value as program text, `#pto.pipe<PIPE_V>`."""
        return f"#pto<{self.name} {value}>" if self.spaced else f"#pto.{self.name}<{value}>"

    def spelling(self, value: str) -> str:
        """Return a value in C++, e.g. `ReluPreMode::NormalRelu`."""
        key = self.name, value
        found = _spellings.get(key)
        if found is None:
            found = _spellings[key] = self._spelling(value)
        return found

    def _spelling(self, value: str) -> str:
        if self.name == "round_mode":  # RINT has a second name
            value = value.removeprefix("CAST_")
        words = value.split("_")
        camel = "".join(w.upper() if w in ("aiv", "aic") else w[:1].upper() + w[1:] for w in words)
        return self.cpp.format(value, U=value.upper(), C=camel)

    def canonical(self, text: str) -> str | None:
        """Return the canonical value of a spelling (case-insensitive, with aliases), or None."""
        if text in self.values:
            return text
        if text in self.aliases:
            return self.aliases[text]
        low = text.lower()
        for value in self.values:
            if value.lower() == low:
                return value
        for alias, value in self.aliases.items():
            if alias.lower() == low:
                return value
        return None


def _seq(text: str, start: int = 0) -> dict[str, int]:
    return {v: i for i, v in enumerate(text.split(), start)}


_SYNC_OPS = _seq(
    "TLOAD TSTORE_ACC TSTORE_VEC TMOV_M2L TMOV_M2S TMOV_M2B TMOV_M2V TMOV_V2M TMATMUL TVEC TVECWAIT_EVENT"
)

#: Long names of these operation classes in the assembler manual.
_EVENT_NAMES = {
    "EVENT_LOAD_FROM_GM": "TLOAD", "EVENT_STORE_FROM_ACC": "TSTORE_ACC", "EVENT_STORE_FROM_VEC": "TSTORE_VEC",
    "EVENT_MOVE_MAT_TO_LEFT": "TMOV_M2L", "EVENT_MOVE_MAT_TO_SCALAR": "TMOV_M2S",
    "EVENT_MOVE_MAT_TO_BIAS": "TMOV_M2B", "EVENT_MOVE_MAT_TO_VEC": "TMOV_M2V",
    "EVENT_MOVE_VEC_TO_MAT": "TMOV_V2M", "EVENT_COMPUTE_MATMUL": "TMATMUL", "EVENT_COMPUTE_VEC": "TVEC",
    "EVENT_VEC_WAITPOINT": "TVECWAIT_EVENT",
}  # fmt: skip

#: Kinds of instructions: C++ `pto::Op`, with which `TSYNC<Op>` and `Event<SrcOp, DstOp>` name pipes (see
#: `isa/kinds.py`). Bytecode contains their numbers, so new kinds must be appended.
OPS = (
    "TLOAD TPREFETCH TEXPANDS_MAT TFILLPAD_MAT MGATHER_MAT TSTORE_VEC TSTORE_MAT TSTORE_ACC TMOV_A2V "
    "TMOV_A2M TMOV_V2M TMOV_M2S TEXTRACT_V2M TEXTRACT_A2M TINSERT_A2M TMOV_M2L TMOV_M2R TMOV_M2B "
    "TEXTRACT_M2LR TIMG2COL TMATMUL TGEMV SCALAR TRESHAPE TCI SETFMATRIX SET_IMG2COL_RPT "
    "SET_IMG2COL_PADDING VECTOR TADD TADDS TAXPY TSUB TSUBS TMUL TMULS TDIV TDIVS TMIN TMINS TMAX TMAXS "
    "TAND TANDS TOR TORS TXOR TXORS TNOT TSHL TSHLS TSHR TSHRS TSEL TSELS TCMP TCMPS TEXP TLOG TSQRT "
    "TRSQRT TRECIP TABS TNEG TRELU TLRELU TPRELU TPOW TPOWS TREM TREMS TFMOD TFMODS TEXPANDS TCVT TQUANT "
    "TDEQUANT TADDDEQRELU TROWSUM TROWMAX TROWMIN TROWPROD TROWARGMAX TROWARGMIN TROWEXPAND TROWEXPANDADD "
    "TROWEXPANDSUB TROWEXPANDMUL TROWEXPANDDIV TROWEXPANDMAX TROWEXPANDMIN TROWEXPANDEXPDIF TCOLSUM "
    "TCOLMAX TCOLMIN TCOLPROD TCOLARGMAX TCOLARGMIN TCOLEXPAND TCOLEXPANDADD TCOLEXPANDSUB TCOLEXPANDMUL "
    "TCOLEXPANDDIV TCOLEXPANDMAX TCOLEXPANDMIN TCOLEXPANDEXPDIF TPARTADD TPARTMUL TPARTMAX TPARTMIN "
    "TPAIRREDUCESUM TGATHER TGATHERB TSCATTER MGATHER_VEC MSCATTER TMRGSORT TSORT32 TTRANS TTRI TCONCAT "
    "TMOV_V2V TFILLPAD_VEC TRANDOM THISTOGRAM TINTERLEAVE TDEINTERLEAVE TSUBRELUCONV TADDRELUCONV "
    "TFUSEDMULADD TMULADDDST TSUBRELU TFUSEDMULADDRELU TPARTARGMAX TPARTARGMIN"
)

#: Positions that a mask pattern selects, in the order of pattern numbers: (period, first position).
MASK_PATTERNS: dict[str, tuple[int, int]] = {
    "P0101": (2, 0), "P1010": (2, 1),
    "P0001": (4, 0), "P0010": (4, 1), "P0100": (4, 2), "P1000": (4, 3), "P1111": (1, 0),
}  # fmt: skip

ENUMS: dict[str, Enum] = {
    e.name: e
    for e in (
        Enum("address_space", _seq("zero gm mat left right acc vec bias scaling"),
             aliases={"ub": "vec", "l1": "mat", "l0a": "left", "l0b": "right", "l0c": "acc"},
             doc="memory an address or buffer lives in"),
        Enum("pipe", {**{f"PIPE_{p.name}": p.number
                         for p in sorted((*PIPES.values(), EVERY_PIPE), key=lambda p: p.number)},
                      "VIRTUAL_PIPE_MTE2_L1A": 11, "VIRTUAL_PIPE_MTE2_L1B": 12, "PIPE_NUM": 13,
                      "PIPE_UNASSIGNED": 99},
             aliases={"PIPE_CUBE": "PIPE_M", "PIPE_FIXP": "PIPE_FIX"},
             doc="hardware pipeline"),
        Enum("event", _seq(" ".join(f"EVENT_ID{i}" for i in range(EVENT_IDS))), doc="flag id of a pipe pair"),
        Enum("sync_op_type", _SYNC_OPS, doc="operation class that names a pipe"),
        Enum("pipe_event_type", _SYNC_OPS, aliases=_EVENT_NAMES, doc="operation class that names a pipe"),
        Enum("layout", _seq("nd dn nz scale mx_a_nd mx_a_dn mx_a_zz mx_b_nd mx_b_dn mx_b_nn hif4_a_zz "
                            "hif4_b_nn nc1hwc0 gnc1hwc0 nchw gnchw nhwc ndc1hwc0 ncdhw fractal_z "
                            "fractal_z_s16s8 fractal_z_3d"),
             doc="layout of a global tensor, as C++ `Layout`; the text of PTOAS has the first three",
             cpp="pto::Layout::{U}"),
        Enum("kernel_kind", _seq("cube vector"), doc="core kind a function runs on"),
        Enum("func_core_type", _seq("AIC AIV MIX AIC_OR_AIV", 1), doc="core type of a function"),
        Enum("module_core_type", _seq("AIC AIV MIX"), doc="core type of a module"),
        Enum("blayout", _seq("row_major col_major"),
             aliases={"RowMajor": "row_major", "ColMajor": "col_major"}, doc="outer order of a tile",
             cpp="BLayout::{C}"),
        Enum("slayout", _seq("none_box row_major col_major"),
             aliases={"NoneBox": "none_box", "RowMajor": "row_major", "ColMajor": "col_major"},
             doc="order inside the fractal box of a tile", cpp="SLayout::{C}"),
        Enum("pad_value", _seq("null zero max min"), doc="content of a tile outside its valid region",
             cpp="PadValue::{C}"),
        Enum("compact_mode", _seq("null normal row_plus_one"), doc="packing of boxed tiles",
             cpp="CompactMode::{C}"),
        Enum("padmode", _seq("PadNull PadFirstElem PadValue"), doc="padding of a load"),
        Enum("mask_pattern", _seq(" ".join(MASK_PATTERNS), 1),
             doc="repeating lane selection, read right to left", cpp="MaskPattern::{0}"),
        Enum("acc_to_vec_mode",
             _seq("single_mode_vec0 single_mode_vec1 dual_mode_split_m dual_mode_split_n"),
             doc="the vector core that receives an accumulator move", cpp="pto::AccToVecMode::{C}"),
        Enum("cmp", _seq("eq ne lt le gt ge"), spaced=True, doc="comparison", cpp="CmpMode::{U}"),
        Enum("round_mode", _seq("NONE RINT ROUND FLOOR CEIL TRUNC ODD CAST_RINT"), spaced=True,
             aliases={f"CAST_{m}": m for m in "NONE ROUND FLOOR CEIL TRUNC ODD".split()},
             doc="rounding of a conversion", cpp="RoundMode::CAST_{0}"),
        Enum("saturation_mode", _seq("ON OFF"), spaced=True, doc="saturation of a conversion",
             cpp="SaturationMode::{0}"),
        Enum("st_phase", {"unspecified": 0, "partial": 2, "final": 3}, spaced=True,
             doc="phase of a store from the accumulator", cpp="STPhase::{C}"),
        Enum("acc_phase", {"unspecified": 0, "partial": 2, "final": 3}, spaced=True,
             doc="phase of a product", cpp="AccPhase::{C}"),
        Enum("atomic_type", _seq("atomic_none atomic_add atomic_max atomic_min"), spaced=True,
             aliases={"none": "atomic_none", "add": "atomic_add", "max": "atomic_max",
                      "min": "atomic_min"}, doc="atomic combination of a store", cpp="AtomicType::{C}"),
        Enum("relu_pre_mode", _seq("no_relu normal_relu"), spaced=True, doc="fused ReLU",
             cpp="ReluPreMode::{C}"),
        Enum("gather_oob", _seq("undefined clamp wrap zero"), spaced=True,
             doc="out-of-bounds policy of a gather", cpp="pto::GatherOOB::{C}"),
        Enum("scatter_atomic_op", _seq("none add max min"), spaced=True,
             doc="atomic combination of a scatter", cpp="pto::ScatterAtomicOp::{C}"),
        Enum("scatter_oob", _seq("undefined skip clamp wrap"), spaced=True,
             doc="out-of-bounds policy of a scatter", cpp="pto::ScatterOOB::{C}"),
        Enum("precision_mode", _seq("DEFAULT HIGH_PRECISION"), spaced=True, doc="algorithm of a function"),
        Enum("quant_type", _seq("INT8_SYM INT8_ASYM MXFP8 MXFP4_E2M1"), spaced=True,
             doc="quantization scheme", cpp="pto::QuantType::{0}"),
        Enum("notify_op", _seq("AtomicAdd Set"), aliases={"add": "AtomicAdd", "atomic_add": "AtomicAdd"},
             doc="signal update", cpp="pto::comm::NotifyOp::{0}"),
        Enum("reduce_op", _seq("Sum Max Min"), doc="reduction of a collective",
             cpp="pto::comm::ReduceOp::{0}"),
        Enum("sync_core", _seq("aiv aic mix"), doc="cores taking part in a grid barrier"),
        Enum("sync_core_type", _seq("aiv_only aic_only mix"),
             aliases={"aiv": "aiv_only", "aic": "aic_only", "AIVOnly": "aiv_only", "AICOnly": "aic_only"},
             doc="cores taking part in a grid barrier", cpp="SyncCoreType::{C}"),
        Enum("sync_all_mode", _seq("hard soft"), doc="kind of a grid barrier: core flags or a GM counter",
             cpp="SyncAllMode::{C}"),
        Enum("wait_cmp", _seq("eq ne gt ge lt le"), spaced=True, doc="comparison of a signal wait",
             cpp="pto::comm::WaitCmp::{U}"),
        Enum("op", _seq(OPS), doc="C++ operation class that names a pipe, with the numbers of pto",
             cpp="Op::{0}"),
        *(Enum(f"{f}_precision", _seq("default high_precision"), spaced=True,
               doc=f"precision_mode of {f}, with its name in PTOAS")
          for f in "div exp log recip rem rsqrt sqrt fmod pow".split()),
        Enum("fence_scope", _seq("local_memory gm all"), doc="memory that a fence makes visible"),
    )
}  # fmt: skip

#: Enums of PTOAS whose values are plain words here: `#pto<coalesce row>` is "row".
WORDS = frozenset(
    "coalesce scatter_conflict print_format quant_scale_alg tinsert_mode membar rounding saturation "
    "mad_unit_flag_mode unit_flag_ctrl tf32_mode mad_sat_mode quant_pre_mode acc_store_mode "
    "acc_store_sat_mode acc_store_ub_dst_mode acc_store_atomic_type acc_store_atomic_op "
    "cube_load_frac_mode dsb_mem dcci_cache_line dcci_dst".split()
)


_SAME = (
    frozenset({"sync_op_type", "pipe_event_type"}),
    frozenset({"st_phase", "acc_phase"}),
    frozenset({"precision_mode", *(name for name in ENUMS if name.endswith("_precision"))}),
)


def same_enum(a: str, b: str) -> bool:
    """Return True if a value of one enum may replace a value of the other."""
    return a == b or any(a in group and b in group for group in _SAME)


#: Pipes of `set_flag` and `wait_flag`, including MTE4, MTE5 and V2 of newer assemblers.
FLAG_PIPES = tuple(f"PIPE_{name}" for name in PIPES)

#: The pipe of each `sync_op_type` / `pipe_event_type`. These are names of pipes; `isa/kinds.py` compares them
#: with the pipes of the instructions.
SYNC_OP_PIPE = {
    "TLOAD": "PIPE_MTE2", "TSTORE_VEC": "PIPE_MTE3", "TSTORE_ACC": "PIPE_FIX", "TMOV_M2L": "PIPE_MTE1",
    "TMOV_M2B": "PIPE_MTE1", "TMOV_M2S": "PIPE_FIX", "TMOV_M2V": "PIPE_V", "TMOV_V2M": "PIPE_FIX",
    "TMATMUL": "PIPE_M", "TVEC": "PIPE_V", "TVECWAIT_EVENT": "PIPE_V",
}  # fmt: skip
