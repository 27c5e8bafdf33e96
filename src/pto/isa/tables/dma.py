"""Burst copies between GM, UB and L1, as grouped `mte_*` instructions and as the older register-driven ones.

A grouped copy names its loop nest in clauses: `nburst` is the innermost, `loop` clauses follow from inner
to outer. Strides count bytes from start to start where GM takes part; UB-only copies count 32 B units and
gaps from end to start.
"""

from __future__ import annotations

from ..row import Family, Row
from ..rules import R, Rule

ELEMENTS: dict[str, str] = {"cpu": "all s4", "a2a3": "any", "a5": "all"}


def spaces(**where: str) -> tuple[Rule, ...]:
    """Each named pointer lies in the given address space: `spaces(src="GM")`."""
    return tuple(R(f"{name}.space == {space}") for name, space in where.items())


#: Bits of the length and the count of bursts to and from GM, by column; 16 between on-chip buffers.
BURST_BITS = {"cpu": 21, "a2a3": 16, "a5": 21}


def fits(bits: int, names: str, on: str = "") -> tuple[Rule, ...]:
    """Each named constant fits an unsigned field of that many bits."""
    return tuple(R(f"0 <= {n}.const < 2**{bits}", on=on) for n in names.split())


def _bursts() -> tuple[Rule, ...]:
    widths = sorted(set(BURST_BITS.values()))
    columns = {w: " ".join(isa for isa, bits in BURST_BITS.items() if bits == w) for w in widths}
    return tuple(r for w, on in columns.items() for r in fits(w, "len_burst n_burst", on))


def flat(names: str) -> str:
    """Format of a plain list: `$a, $b attr-dict : type($a), type($b)`."""
    words = names.split()
    return f"{', '.join(f'${w}' for w in words)} attr-dict : {', '.join(f'type(${w})' for w in words)}"


def grouped(head: str, count: str, strides: str, pad: bool = False, loop: bool = True) -> tuple[str, ...]:
    """Formats of a grouped copy: the manual's type list, and one without clause words in it."""
    burst = [count, *strides.split()]
    plain = ", ".join(f"${n}" for n in head.split())
    clauses = f" nburst({', '.join(f'${n}' for n in burst)})"
    types = ", ".join(f"type(${n})" for n in (*head.split(), *burst))
    if not loop:
        return (f"{plain}{clauses} attr-dict : {types}",)
    clauses += " [loop($loop, $loop, $loop)]*"
    loops = "type($loop), type($loop), type($loop)"
    pads = ""
    if pad:
        clauses += " [pad($pad_value [, $left_padding, $right_padding])]"
        pads = "type($pad_value) [, type($left_padding), type($right_padding)]"
    return tuple(
        f"{plain}{clauses} attr-dict : {types} [, {loop_word}{loops}]*"
        + (f" [, {pad_word}{pads}]" if pads else "")
        for loop_word, pad_word in (("loop ", "pad "), ("", ""))
    )


#: `loop` holds (count, src_stride, dst_stride) per clause.
LOOP_RULES = (
    R("loop.count % 3 == 0", msg="expects every loop clause to have a count and two strides"),
    R("all(0 <= v.const < 2**40 for v in loop)"),
)
LOOP_NEST = (
    "for each loop clause, the last one outermost, i_j < count_j; for r < n_burst: s = src + sum_j i_j * "
    "loop_j.src_stride + r * src_stride; d = dst + sum_j i_j * loop_j.dst_stride + r * dst_stride; "
    "copy len_burst bytes from s to d. A count of 0 copies nothing."
)
_GAP_NEST = (
    "for r < n_burst: copy len_burst * 32 bytes from src + r * (len_burst + src_gap) * 32 to "
    "dst + r * (len_burst + dst_gap) * 32."
)
REGISTER_NEST = (
    "for j < loop2_count, k < loop1_count, r < n_burst: copy len_burst bytes from src + j * loop2_src + "
    "k * loop1_src + r * src_stride to dst + j * loop2_dst + k * loop1_dst + r * dst_stride."
)
_ALIGNED = "run time: UB and L1 addresses are 32 B aligned"
_OVERLAP = R("dst_stride.const >= len_burst.const", when="n_burst.const > 1")
_LOOP_WIDTHS = (
    "field widths: counts 21 bits, those of bursts and their length 16 on a2a3; GM strides 40 bits, UB strides 21 bits"
)

copy = Family("dma-copy", "scalar", core="vector", in_place="none", **ELEMENTS)
register_copy = copy.but(notes=("deprecated since v0.6; the grouped mte_* form replaces it", _ALIGNED))
gap_copy = copy.but(
    rules=fits(16, "len_burst n_burst src_gap dst_gap"),
    notes=(_ALIGNED, "lengths and gaps count 32 B units; a gap is what lies between two bursts"),
)
register = Family(
    "dma-copy", "scalar", core="vector", effect="config", pipe="S",
    notes=(
        "sticky until overwritten; copies already issued are not affected",
        "deprecated since v0.6 with the copies it configures; use the loop clauses of mte_*",
    ),
)  # fmt: skip


def _pointers(a: str, b: str, spaces_of: str) -> dict[str, str]:
    """Witness types of a pair of pointers: `_pointers("src", "dst", "gm ub")`."""
    x, y = spaces_of.split()
    return {a: f"!pto.ptr<{{T}}, {x}>", b: f"!pto.ptr<{{T}}, {y}>"}


def _loop_size(name: str, opcode: int, which: str) -> Row:
    return register(
        name, opcode=opcode, algorithm=f"copy loops: {name.removeprefix('set_')}", operands="loop1_count=i64 loop2_count=i64",
        rules=fits(21, "loop1_count loop2_count"), doc=f"Set the two loop counts of later {which} copies.",
        meaning="loop1 (inner) and loop2 (outer) count registers = the operands; 1, 1 is a plain 2-D copy.",
        cpp=f"{name}(((uint64_t) $loop2_count << 21) + (uint64_t) $loop1_count)",
    )  # fmt: skip


def _loop_stride(name: str, opcode: int, which: str, src_bits: int, dst_bits: int) -> Row:
    loop = "loop1 (inner)" if "loop1" in name else "loop2 (outer)"
    gm, ub = ("src_stride", "dst_stride") if src_bits > dst_bits else ("dst_stride", "src_stride")
    return register(
        name, opcode=opcode, algorithm=f"copy loops: {name.removeprefix('set_')}", operands="src_stride=i64 dst_stride=i64",
        rules=(*fits(src_bits, "src_stride"), *fits(dst_bits, "dst_stride")),
        doc=f"Set the pointer advance per {loop} iteration of later {which} copies.",
        meaning=f"{loop} source and destination stride registers = the operands, in bytes.",
        cpp=f"{name}(((uint64_t) ${ub} << 40) + (uint64_t) ${gm})",
    )  # fmt: skip


ROWS = (
    copy(
        "mte_gm_ub", opcode=0x3160, algorithm="copy in", pipe="MTE2", dtype_of="gm_src ub_dst",
        operands="gm_src=ptr ub_dst=ptr:out l2_cache_ctl=i64 len_burst=i64 n_burst=i64 src_stride=i64 "
        "dst_stride=i64 loop=i64* pad_value=scalar? left_padding=i64? right_padding=i64?",
        format=grouped("gm_src ub_dst l2_cache_ctl len_burst", "n_burst", "src_stride dst_stride", pad=True),
        rules=(
            *spaces(gm_src="GM", ub_dst="UB"),
            R("ub_dst.dtype == gm_src.dtype"),
            *fits(2, "l2_cache_ctl"), *_bursts(), *fits(40, "src_stride"),
            *fits(21, "dst_stride"), *fits(8, "left_padding right_padding"),
            _OVERLAP, *LOOP_RULES,
            R("pad_value.bits == ub_dst.bits", msg="expects pad_value to have the element type of ub_dst"),
            R("has(left_padding) == has(right_padding)"),
            R("dst_stride.const % 32 == 0", when="has(pad_value)", on="a2a3 a5"),
        ),
        doc="Copy bursts of bytes from GM to UB, optionally padding each row.",
        meaning=f"src = gm_src, dst = ub_dst: {LOOP_NEST} With pad: fill bytes [len_burst, dst_stride) of "
        "the row in UB with pad_value; left/right counts (default 0) add that many pad elements before and "
        "after the burst. Without pad, bytes past the burst stay as they are.",
        notes=(
            _ALIGNED, f"{_LOOP_WIDTHS}; padding counts 8 bits; l2_cache_ctl 2 bits, a hint",
            "sources differ on the pad extent (32 B boundary or dst_stride): dst_stride is followed",
            "left/right counts are taken as elements; programs should not rely on their unit",
            "a2a3 may narrow the element size or row width",
        ),
        cpp="copy_gm_to_ubuf_align_v2($ub_dst, $gm_src, 0, $n_burst, $len_burst, $left_padding, "
        "$right_padding, false, $l2_cache_ctl, $src_stride, $dst_stride)",
        types={**_pointers("gm_src", "ub_dst", "gm ub"), "pad_value": "{T}", "padded/left_padding": "i64",
               "padded/right_padding": "i64"},
    ),
    copy(
        "mte_ub_gm", opcode=0x3161, algorithm="copy out", pipe="MTE3", dtype_of="ub_src gm_dst",
        operands="ub_src=ptr gm_dst=ptr:out len_burst=i64 n_burst=i64 src_stride=i64 dst_stride=i64 "
        "loop=i64*",
        format=grouped("ub_src gm_dst len_burst", "n_burst", "src_stride dst_stride"),
        rules=(
            *spaces(ub_src="UB", gm_dst="GM"),
            R("gm_dst.dtype == ub_src.dtype"),
            *_bursts(), *fits(21, "src_stride"), *fits(40, "dst_stride"), *LOOP_RULES,
        ),
        doc="Copy bursts of bytes from UB to GM.",
        meaning=f"src = ub_src, dst = gm_dst: {LOOP_NEST} Row padding in UB is left behind.",
        notes=(
            _ALIGNED, _LOOP_WIDTHS,
            "two stores to the same GM bytes are unordered without a barrier on PIPE_MTE3",
        ),
        cpp="copy_ubuf_to_gm_align_v2($gm_dst, $ub_src, 0, $n_burst, $len_burst, 0, $dst_stride, "
        "$src_stride)",
        types=_pointers("ub_src", "gm_dst", "ub gm"),
    ),
    gap_copy(
        "mte_ub_ub", opcode=0x3162, algorithm="copy between buffers: gaps",
        pipe="V", dtype_of="ub_src ub_dst",
        operands="ub_src=ptr ub_dst=ptr:out len_burst=i64 n_burst=i64 src_gap=i64 dst_gap=i64",
        format=grouped("ub_src ub_dst len_burst", "n_burst", "src_gap dst_gap", loop=False),
        rules=(*spaces(ub_src="UB", ub_dst="UB"), R("ub_dst.dtype == ub_src.dtype")),
        doc="Copy bursts of 32-byte units within UB.", meaning=f"src = ub_src, dst = ub_dst: {_GAP_NEST}",
        notes=("its pipe is undocumented; V, like a vec to vec tmov",),
        cpp="copy_ubuf_to_ubuf($ub_dst, $ub_src, 0, $n_burst, $len_burst, $src_gap, $dst_gap)",
        types=_pointers("ub_src", "ub_dst", "ub ub"),
    ),
    gap_copy(
        "mte_ub_l1", opcode=0x3163, algorithm="copy between buffers: gaps to L1",
        pipe="MTE3", dtype_of="ub_src l1_dst",
        operands="ub_src=ptr l1_dst=ptr:out len_burst=i64 n_burst=i64 src_gap=i64 dst_gap=i64",
        format=grouped("ub_src l1_dst len_burst", "n_burst", "src_gap dst_gap", loop=False),
        rules=(*spaces(ub_src="UB", l1_dst="L1"), R("l1_dst.dtype == ub_src.dtype")),
        doc="Copy bursts of 32-byte units from UB to L1.", meaning=f"src = ub_src, dst = l1_dst: {_GAP_NEST}",
        notes=(
            "a plain copy: the caller lays rows out per C0 block; the ND to NZ claim of the manual is not "
            "followed",
            "issued by a vector core; both cores of a 1:2 cluster address the same L1; the cube core reads "
            "only after a cross-core signal",
        ),
        cpp="copy_ubuf_to_cbuf($l1_dst, $ub_src, 0, $n_burst, $len_burst, $src_gap, $dst_gap)",
        types=_pointers("ub_src", "l1_dst", "ub l1"),
    ),
    register_copy(
        "copy_gm_to_ubuf", opcode=0x3164, algorithm="copy in by registers",
        pipe="MTE2", dtype_of="gm_src ub_dst",
        operands="gm_src=ptr ub_dst=ptr:out sid=i64 n_burst=i64 len_burst=i64 left_padding=i64 "
        "right_padding=i64 data_select_bit=i1 l2_cache_ctl=i64 src_stride=i64 dst_stride=i64",
        format=flat("gm_src ub_dst sid n_burst len_burst left_padding right_padding data_select_bit "
                    "l2_cache_ctl src_stride dst_stride"),
        rules=(
            *spaces(gm_src="GM", ub_dst="UB"), R("ub_dst.dtype == gm_src.dtype"),
            *_bursts(), *fits(40, "src_stride"), *fits(21, "dst_stride"),
            _OVERLAP, R("dst_stride.const % 32 == 0", when="n_burst.const > 1", on="a2a3 a5"),
        ),
        doc="Copy bursts from GM to UB under the outtoub loop registers.",
        meaning=f"src = gm_src, dst = ub_dst: {REGISTER_NEST} If data_select_bit, fill bytes "
        "[len_burst, dst_stride) of the row with the pad value register.",
        notes=("the loop registers must hold values first: set_loop_size_outtoub, set_loop*_stride_outtoub",
               "left and right padding count bytes in the manual of this form"),
        cpp="copy_gm_to_ubuf_align_v2($ub_dst, $gm_src, $sid, $n_burst, $len_burst, $left_padding, "
        "$right_padding, $data_select_bit, $l2_cache_ctl, $src_stride, $dst_stride)",
        types=_pointers("gm_src", "ub_dst", "gm ub"),
    ),
    register_copy(
        "copy_ubuf_to_gm", opcode=0x3165, algorithm="copy out by registers",
        pipe="MTE3", dtype_of="ub_src gm_dst",
        operands="ub_src=ptr gm_dst=ptr:out sid=i64 n_burst=i64 len_burst=i64 reserved=i64 dst_stride=i64 "
        "src_stride=i64",
        format=flat("ub_src gm_dst sid n_burst len_burst reserved dst_stride src_stride"),
        rules=(
            *spaces(ub_src="UB", gm_dst="GM"), R("gm_dst.dtype == ub_src.dtype"), R("reserved.const == 0"),
            *_bursts(), *fits(21, "src_stride"), *fits(40, "dst_stride"),
            R("src_stride.const % 32 == 0", when="n_burst.const > 1", on="a2a3 a5"),
        ),
        doc="Copy bursts from UB to GM under the ubtoout loop registers.",
        meaning=f"src = ub_src, dst = gm_dst: {REGISTER_NEST}",
        notes=("the loop registers must hold values first: set_loop_size_ubtoout, set_loop*_stride_ubtoout",),
        cpp="copy_ubuf_to_gm_align_v2($gm_dst, $ub_src, $sid, $n_burst, $len_burst, $reserved, $dst_stride, "
        "$src_stride)",
        types=_pointers("ub_src", "gm_dst", "ub gm"),
    ),
    register_copy(
        "copy_ubuf_to_ubuf", opcode=0x3166, algorithm="copy between buffers: strides",
        pipe="V", dtype_of="source dest",
        operands="source=ptr dest=ptr:out sid=i64 n_burst=i64 len_burst=i64 src_stride=i64 dst_stride=i64",
        format=flat("source dest sid n_burst len_burst src_stride dst_stride"),
        rules=(
            *spaces(source="UB", dest="UB"), R("dest.dtype == source.dtype"),
            *fits(16, "len_burst n_burst src_stride dst_stride"),
        ),
        doc="Copy bursts of 32-byte units within UB.",
        meaning="for r < n_burst: copy len_burst * 32 bytes from source + r * (len_burst + src_stride) * 32 "
        "to dest + r * (len_burst + dst_stride) * 32.",
        notes=("units are undocumented; those of mte_ub_ub are followed",),
        cpp="copy_ubuf_to_ubuf($dest, $source, $sid, $n_burst, $len_burst, $src_stride, $dst_stride)",
        types=_pointers("source", "dest", "ub ub"),
    ),
    register_copy(
        "copy_ubuf_to_cbuf", opcode=0x316D, algorithm="copy between buffers: strides to L1",
        pipe="MTE3", dtype_of="source dest",
        operands="source=ptr dest=ptr:out sid=i64 n_burst=i64 len_burst=i64 src_stride=i64 dst_stride=i64",
        format=flat("source dest sid n_burst len_burst src_stride dst_stride"),
        rules=(
            *spaces(source="UB", dest="L1"), R("dest.dtype == source.dtype"),
            *fits(16, "len_burst n_burst src_stride dst_stride"),
        ),
        doc="Copy bursts of 32-byte units from UB to L1.",
        meaning="for r < n_burst: copy len_burst * 32 bytes from source + r * (len_burst + src_stride) * 32 "
        "to dest + r * (len_burst + dst_stride) * 32.",
        notes=("as mte_ub_l1; sid has no effect: the vector cores of a block address the same L1",),
        cpp="copy_ubuf_to_cbuf($dest, $source, $sid, $n_burst, $len_burst, $src_stride, $dst_stride)",
        types=_pointers("source", "dest", "ub l1"),
    ),
    _loop_size("set_loop_size_outtoub", 0x3167, "GM to UB"),
    _loop_stride("set_loop1_stride_outtoub", 0x3168, "GM to UB", src_bits=40, dst_bits=21),
    _loop_stride("set_loop2_stride_outtoub", 0x3169, "GM to UB", src_bits=40, dst_bits=21),
    _loop_size("set_loop_size_ubtoout", 0x316A, "UB to GM"),
    _loop_stride("set_loop1_stride_ubtoout", 0x316B, "UB to GM", src_bits=21, dst_bits=40),
    _loop_stride("set_loop2_stride_ubtoout", 0x316C, "UB to GM", src_bits=21, dst_bits=40),
)  # fmt: skip
