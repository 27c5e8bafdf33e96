"""Reductions, expansions, generators, gather, sort and quantisation of the C++ headers against the reference
engine: every column, form and element type of each row, and every layout, bit for bit. Only the exponential
of the expansions may be two units off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.sampling import some

from pto.engine import elements
from pto.engine.memory import View
from pto.ir.attrs import BoolAttr, IntAttr, StrAttr
from pto.ir.types import TileBufType
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan, _legal_dtypes

from ..engine.rows import VALID, Case, mixed_codes, random_codes, some_plans, sprinkled_codes
from .instructions import COMPILER, DEFINES, ELEMENTS, Unit, complaints, difference

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

RUNS = 4
HEADERS = [f"ops/{n}.hpp" for n in ("regular", "calls", "debug")]

Fill = Callable[[Case, np.random.Generator, int], None]
ROWS: dict[str, tuple[Callable[[Plan], str], Fill]] = {}


def rows(names: str, call: Callable[[Plan], str], fill: Fill) -> None:
    for name in names.split():
        ROWS[name] = call, fill


def attr(plan: Plan, name: str, default: object = None) -> object:
    found = plan.attrs.get(name)
    value = getattr(found, "value", found)
    return default if value is None else value


def valid_of(case: Case, name: str, k: int) -> tuple[int, int]:
    """One of the interesting valid regions, within a tile."""
    t = case.tile(name)
    r, c = VALID[k % len(VALID)]
    return min(t.rows, r if r < 16 else t.rows), min(t.cols, c if c < 64 else t.cols)


def resize(case: Case, name: str, valid: tuple[int, int]) -> None:
    t = case.tile(name)
    t.v_row, t.v_col = min(t.rows, valid[0]), min(t.cols, valid[1])


def fill_all(case: Case, rng: np.random.Generator, *skip: str) -> None:
    for name, place in case.args.items():
        if hasattr(place, "buffer") and name not in skip:
            shape = place.shape if not isinstance(place, View) else (place.dims5[0][3], place.dims5[0][4])
            case.set(name, mixed_codes(rng, place.dtype, shape))


# --- reductions ---------------------------------------------------------------------------------------------


def reduction(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src = case.tile("src")
    case.set("src", (mixed_codes if k % 2 else sprinkled_codes)(rng, src.dtype, src.shape))
    if k == 2:  # few different numbers: ties, zeros of both signs, NaN in front
        some = mixed_codes(rng, src.dtype, (1, 4))[0]
        some[0] = 0
        some[1] = 1 << (src.bits - 1)
        case.set("src", rng.choice(some, src.shape))
    resize(case, "src", valid_of(case, "src", k))
    if src.v_row == 0 or src.v_col == 0:
        resize(case, "src", (1, src.cols))
    by_row = case.row.name.startswith("trow")
    for name in ("dst", "dstVal"):
        if name in case.args:
            resize(case, name, (src.v_row, 1) if by_row else (1, src.v_col))


def sums(case: Case, rng: np.random.Generator, k: int) -> None:
    reduction(case, rng, k)
    src = case.tile("src")
    if k == 3 and case.row.name.startswith("trow"):
        resize(case, "src", (src.v_row, 0))


def reduce_call(plan: Plan) -> str:
    name = plan.row.name.upper()
    out = "dstVal, dst" if "dstVal" in plan.operands else "dst"
    tmp = ", tmp" if "tmp" in plan.operands else ""
    if name == "TCOLSUM" and tmp:
        tmp += ", true"
    return f"{name}({out}, src{tmp})"


def pairs(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    for name in ("dst", "src0"):
        resize(case, name, valid_of(case, name, k))


rows("trowsum trowprod", reduce_call, sums)
rows("trowmax trowmin tcolsum tcolprod tcolmax tcolmin", reduce_call, reduction)
rows("trowargmax trowargmin tcolargmax tcolargmin", reduce_call, reduction)
rows("tpairreducesum", lambda p: "TPAIRREDUCESUM(dst, src0)", pairs)

# --- expansions ---------------------------------------------------------------------------------------------


def expansion(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    dst = valid_of(case, "dst", k)
    resize(case, "dst", dst)
    if "src" in case.args:
        resize(case, "src", dst)
        return
    widths = [(dst[1], 1), (1, dst[1]), (dst[1], 4), (dst[1], dst[1])][k % 4]
    by_row = case.row.name.startswith("trow")
    for name, width in zip(("src0", "src1"), widths, strict=True):
        resize(case, name, (dst[0], max(1, width)) if by_row else dst)


def expand_call(plan: Plan) -> str:
    name = plan.row.name.upper()
    sources = "src" if "src" in plan.operands else "src0, src1"
    return f"{name}(dst, {sources}{', tmp' if 'tmp' in plan.operands else ''})"


rows("trowexpand tcolexpand", expand_call, expansion)
for _kind in "add sub mul div max min expdif".split():
    rows(f"trowexpand{_kind} tcolexpand{_kind}", expand_call, expansion)

# --- generators ---------------------------------------------------------------------------------------------


def counting(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    dtype = case.tile("dst").dtype
    case.args["S"] = float(rng.integers(-50, 50)) if DTYPES[dtype].is_float else int(rng.integers(-100, 100))
    resize(case, "dst", valid_of(case, "dst", k))


def count_call(plan: Plan) -> str:
    down = int(attr(plan, "descending", False) is True)
    if "tmp" in plan.operands:
        return f"TCI<decltype(dst), decltype(tmp), decltype(dst)::DType, {down}>(dst, S, tmp)"
    return f"TCI<decltype(dst), decltype(dst)::DType, {down}>(dst, S)"


def triangle(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    case.args["diagonal"] = (0, 3, -5, 100)[k % 4]
    resize(case, "dst", valid_of(case, "dst", k))


def random_words(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    for name in case.args:
        if name.startswith(("key", "counter")):
            case.args[name] = int(rng.integers(-(2**31), 2**31)) if k else -1
    resize(case, "dst", valid_of(case, "dst", k))


def random_call(plan: Plan) -> str:
    counters = ", ".join(f"static_cast<uint32_t>(counter{n})" for n in range(4))
    return (
        f"TRANDOM<{attr(plan, 'rounds', 10)}>(dst, {{static_cast<uint32_t>(key0), static_cast<uint32_t>(key1)}},"
        f" {{{counters}}})"
    )


def histograms(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src = case.tile("src")
    few = rng.integers(0, 3, (2, *src.shape)) * (257 << (src.bits - 16))
    case.set("src", few[0] + few[1] if k % 2 else mixed_codes(rng, src.dtype, src.shape))
    idx = case.tile("idx")
    case.set("idx", rng.integers(0, 3, idx.shape))
    resize(case, "src", valid_of(case, "src", k))


def histogram_call(plan: Plan) -> str:
    byte = attr(plan, "hist_byte")
    if byte is not None:
        return f"THISTOGRAM<HistByte::BYTE_{byte}>(dst, src, idx)"
    return f"THISTOGRAM<{str(attr(plan, 'isMSB', True) is True).lower()}>(dst, src, idx)"


rows("tci", count_call, counting)
rows("ttri", lambda p: f"TTRI<decltype(dst), {int(attr(p, 'upperOrLower', 0))}>(dst, diagonal)", triangle)  # type: ignore[call-overload]
rows("trandom", random_call, random_words)
rows("thistogram", histogram_call, histograms)

# --- gather and scatter -------------------------------------------------------------------------------------

PERIOD = {"P1111": (1, 0), "P0101": (2, 0), "P1010": (2, 1), "P0001": (4, 0), "P0010": (4, 1), "P0100": (4, 2),
          "P1000": (4, 3)}  # fmt: skip


def chosen(size: int, pattern: str) -> int:
    period, first = PERIOD[pattern]
    return len(range(first, size, period))


def gathering(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src, dst = case.tile("src"), case.tile("dst")
    if "indices" in case.args:
        idx = case.tile("indices")
        top = src.rows * src.cols
        case.set(
            "indices", rng.integers(-3 if k % 2 else 0, top + 3 if k % 2 else min(top, 2**15), idx.shape)
        )
        resize(case, "dst", valid_of(case, "dst", k))
        resize(case, "indices", (dst.v_row, dst.v_col))
    elif "cdst" in case.args:
        numbers = random_codes(rng, src.dtype, src.shape)
        case.set("src", np.where(rng.random(src.shape) < 0.3, elements.encode(src.dtype, np.full(src.shape, 2.0)
                 if DTYPES[src.dtype].is_float else np.full(src.shape, 2)), numbers))  # fmt: skip
        if "kTile" in case.args:
            case.set("kTile", rng.integers(1, 4, case.tile("kTile").shape))
        else:
            case.args["kValue"] = 2.0 if DTYPES[src.dtype].is_float else 2
        resize(case, "src", valid_of(case, "src", k))
    else:
        pattern = str(attr(case.plan, "maskPattern", "P1111"))
        period = PERIOD[pattern][0]
        by_rows = attr(case.plan, "gather_axis", "row") == "col"
        wanted = (dst.rows * period, dst.cols) if by_rows else (dst.rows, dst.cols * period)
        resize(case, "src", (min(wanted[0], src.rows), min(wanted[1], src.cols)))


def gather_call(plan: Plan) -> str:
    if "indices" in plan.operands:
        return f"TGATHER(dst, src, indices{', tmp' if 'tmp' in plan.operands else ''})"
    if "cdst" in plan.operands:
        tmp = "tmp" if "tmp" in plan.operands else "cdst"
        mode, offset = str(attr(plan, "cmpMode", "eq")).upper(), attr(plan, "offset", 0)
        types = f"decltype(dst), decltype(src), {{}}decltype(cdst), decltype({tmp}), CmpMode::{mode}"
        if "kTile" in plan.operands:
            return f"TGATHER<{types.format('decltype(kTile), ')}>(dst, src, kTile, cdst, {tmp}, {offset})"
        return f"TGATHER<{types.format('')}, {offset}>(dst, src, kValue, cdst, {tmp})"
    axis = str(attr(plan, "gather_axis", "row")).upper()
    pattern = attr(plan, "maskPattern", "P1111")
    return (
        f"TGATHER<decltype(dst), decltype(src), MaskPattern::{pattern}, GatherAxis::GATHER_{axis}>(dst, src)"
    )


def blocks(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    dst, src = case.tile("dst"), case.tile("src")
    item = dst.bits // 8
    steps = rng.integers(0, src.size // 32 + 2 * (k % 2), case.tile("offsets").shape) * 32
    case.set("offsets", steps + (item if k == 2 else 0))
    resize(case, "dst", (valid_of(case, "dst", k)[0], dst.cols))


def scattering(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    dst, src = case.tile("dst"), case.tile("src")
    if "indexes" in case.args:
        idx = case.tile("indexes")
        case.set("indexes", rng.integers(0, min(dst.rows * dst.cols, 2**15), idx.shape))
        resize(case, "indexes", valid_of(case, "indexes", k))
        return
    pattern = str(attr(case.plan, "maskPattern", "P1111"))
    by_rows = attr(case.plan, "scatter_axis", "row") == "col"
    rows_, cols_ = valid_of(case, "dst", (0, 1, 4, 0)[k % 4])
    rows_ = min(rows_, src.rows)
    cols_ = min(cols_, src.cols)
    resize(case, "dst", (rows_, cols_))
    resize(case, "src", (chosen(rows_, pattern), cols_) if by_rows else (rows_, chosen(cols_, pattern)))


def scatter_call(plan: Plan) -> str:
    if "indexes" in plan.operands:
        return "TSCATTER(dst, src, indexes)"
    axis = str(attr(plan, "scatter_axis", "row")).upper()
    return (
        f"TSCATTER<MaskPattern::{attr(plan, 'maskPattern', 'P1111')}, ScatterAxis::SCATTER_{axis}>(dst, src)"
    )


def in_memory(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    data = "dst" if case.row.name == "mgather" else "src"
    beyond = attr(case.plan, "gatherOob" if data == "dst" else "scatterOob", "undefined") != "undefined"
    idx, mem = case.args["idx"], case.args["mem"]
    named = attr(case.plan, "coalesce", "auto")
    shape = (idx.v_row, idx.v_col) if not isinstance(idx, View) else idx.dims5[0][3:]
    tile = case.tile(data)
    by_row = named == "row" or (
        named == "auto" and (tuple(shape) != (tile.v_row, tile.v_col) or tile.v_col == 1)
    )
    top = mem.dims5[0][3] if by_row else int(np.prod(mem.dims5[0]))
    whole = idx.shape if not isinstance(idx, View) else tuple(idx.dims5[0][3:])
    top = min(top, 2 ** (DTYPES[idx.dtype].bits - 1) - 3)
    case.set("idx", rng.integers(-2 if beyond else 0, top + (3 if beyond else 0), whole))


def memory_call(plan: Plan) -> str:
    gathers = plan.row.name == "mgather"
    args = (
        "dst, mem, idx" + (", scratch" if "scratch" in plan.operands else "") if gathers else "mem, src, idx"
    )
    named = str(attr(plan, "coalesce", "auto"))
    name = plan.row.name.upper()
    if named == "auto":
        return f"{name}({args})"
    rule = str(attr(plan, "gatherOob" if gathers else "scatterOob", "undefined")).capitalize()
    if gathers:
        return f"{name}<Coalesce::{named.capitalize()}, GatherOOB::{rule}>({args})"
    atomic = str(attr(plan, "scatterAtomicOp", "none")).capitalize()
    return f"{name}<Coalesce::{named.capitalize()}, ScatterAtomicOp::{atomic}, ScatterOOB::{rule}>({args})"


rows("tgather", gather_call, gathering)
rows("tgatherb", lambda p: "TGATHERB(dst, src, offsets)", blocks)
rows("tscatter", scatter_call, scattering)
rows("mgather mscatter", memory_call, in_memory)

# --- sorting ------------------------------------------------------------------------------------------------


def sorting(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src = case.tile("src")
    if k % 2:  # many equal ones
        case.set("src", rng.choice(mixed_codes(rng, src.dtype, (1, 5))[0], src.shape))
    resize(case, "src", (src.rows, (src.cols, src.cols - 5, 32, 17)[k % 4]))
    resize(case, "idx", (src.v_row if k != 2 else 1, src.v_col))


def merging(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    names = [n for n in ("src", "src1", "src2", "src3") if n in case.args]
    each = 64 // case.tile("src").bits
    for name in names:
        t = case.tile(name)
        codes = mixed_codes(rng, t.dtype, t.shape)
        if k < 3:  # sorted lists, as they should be
            codes[0, ::each] = np.sort(codes[0, ::each])[:: -1 if k else 1]
        case.set(name, codes)
        if len(names) > 1:
            resize(case, name, (1, int(rng.integers(0, t.cols + 1))))
    if len(names) == 1:
        case.args["blockLen"] = (64, 64, 128, 32)[k % 4]


def merge_call(plan: Plan) -> str:
    if "blockLen" in plan.operands:
        return "TMRGSORT(dst, src, static_cast<uint32_t>(blockLen))"
    names = [n for n in ("src", "src1", "src2", "src3") if n in plan.operands]
    types = "".join(f"decltype({n}), " for n in ["dst", "tmp", *names])
    stops = str(attr(plan, "exhausted", False) is True).lower()
    return (
        f"MrgSortExecutedNumList list; TMRGSORT<{types}{stops}>(dst, list, tmp, {', '.join(names)});"
        " (void)list"
    )


rows("tsort32", lambda p: f"TSORT32(dst, src, idx{', tmp' if 'tmp' in p.operands else ''})", sorting)
rows("tmrgsort", merge_call, merging)

# --- quantisation -------------------------------------------------------------------------------------------


def quantisation(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src = case.tile("src")
    if k % 2 == 0:  # numbers of all sizes
        size = 2.0 ** rng.integers(-40, 40, src.shape)
        made = (rng.standard_normal(src.shape) * size).astype(np.float32)
        made[rng.random(src.shape) < 0.05] *= 0
        if DTYPES[src.dtype].is_float:
            case.set("src", elements.encode(src.dtype, made))
        if "fp" in case.args:
            case.set(
                "fp", elements.encode("f32", rng.standard_normal(case.tile("fp").shape).astype(np.float32))
            )
    if "exp" in case.args:
        axis = 0 if case.row.name == "tquant_dn" else int(attr(case.plan, "grp_axis", 1))  # type: ignore[call-overload]
        valid = ((src.rows, src.cols), (src.rows - 3, src.cols), (1, src.cols))[k % 3]
        if "exp_zz" not in case.args:
            resize(case, "src", valid if axis == 1 else (src.rows, src.cols - 5 * (k % 2)))
        return
    valid = valid_of(case, "dst", k)
    for name in ("src", "dst"):
        resize(case, name, valid)
    for name in ("fp", "offset"):
        if name in case.args and case.row.name == "tquant":
            resize(case, name, (max(1, valid[0] - 2 * (k % 2)), 1))
    if case.row.name == "tdequant":
        for name in ("scale", "offset"):
            resize(case, name, (valid[0], (1, 5, 16, 8)[k % 4]))


def quantise_call(plan: Plan) -> str:
    results = "dst, src, &exp, &max, &scaling"
    if plan.row.name == "tquant_hif4":
        return f"TQUANT<1, MxQuantAlg::Hif4>({results})"
    kind, alg = str(attr(plan, "quant_type", "MXFP8")), str(attr(plan, "scale_alg", "OCP"))
    if plan.row.name == "tquant_dn" or attr(plan, "grp_axis", 1) == 0:
        mx = f"MxQuantAlg::{alg.capitalize()}Mx{'Fp8E4M3' if kind == 'MXFP8' else 'Fp4E2M1'}"
        interleave = str(attr(plan, "interleave", False) is True).lower()
        return f"TQUANT<0, {mx}, {interleave}>({results})"
    if "exp_zz" in plan.operands:
        return f"TQUANT<QuantType::{kind}, VecStoreMode::NZ>({results}, &exp_zz)"
    if "exp" in plan.operands:
        types = "".join(f", decltype({n})" for n in ("dst", "src", "exp", "max", "scaling"))
        return f"TQUANT<QuantType::{kind}{types}, QuantScaleAlg::{alg}>({results})"
    tmp = ", tmp" if "tmp" in plan.operands else ""
    offset = ", &offset" if "offset" in plan.operands else ""
    return f"TQUANT<QuantType::{kind}>(dst, src, fp{tmp}{offset})"


rows("tquant tquant_dn tquant_hif4", quantise_call, quantisation)
rows("tdequant", lambda p: "TDEQUANT(dst, src, scale, offset)", quantisation)

# --- printing -----------------------------------------------------------------------------------------------


def printing(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src = case.args["src"]
    if not isinstance(src, View):
        case.set("src", (mixed_codes if k % 2 else random_codes)(rng, src.dtype, src.shape))
        resize(case, "src", valid_of(case, "src", k))


def print_call(plan: Plan) -> str:
    form = attr(plan, "print_format", "Width8_Precision4")
    return f"TPRINT<PrintFormat::{form}>(src{', tmp' if 'tmp' in plan.operands else ''})"


rows("tprint", print_call, printing)

# --- the test -----------------------------------------------------------------------------------------------


def shown(plan: Plan) -> str:
    tiles = [
        f"{n}:{t[0].dtype}:{t[0].layout}" for n, t in plan.operands.items() if isinstance(t[0], TileBufType)
    ]
    return f"{plan.row.name} {plan.isa} {' '.join(tiles)} {dict(plan.attrs)}"


def usable(plan: Plan) -> bool:
    """Return True if C++ has the types and the form of a plan."""
    types = [str(getattr(t[0], "dtype", "")) for t in plan.operands.values()]
    if plan.row.name == "tquant" and "exp_zz" in plan.operands and attr(plan, "grp_axis", 1) == 0:
        return False
    return _legal_dtypes(plan) and all(t in ELEMENTS or t not in DTYPES for t in types)


PATTERNS = tuple(PERIOD)
#: Attributes that are varied, by row; a plan takes those that it may have.
CHOICES: dict[str, dict[str, tuple[str | int | bool, ...]]] = {
    "tci": {"descending": (True, False)},
    "ttri": {"upperOrLower": (0, 1)},
    "trandom": {"rounds": (7, 10)},
    "thistogram": {"hist_byte": (0, 1, 2, 3), "isMSB": (False, True)},
    "tgather": {
        "maskPattern": PATTERNS,
        "gather_axis": ("row", "col"),
        "cmpMode": ("gt", "eq"),
        "offset": (7, 0),
    },
    "tscatter": {"maskPattern": PATTERNS, "scatter_axis": ("row", "col")},
    "mgather": {"coalesce": ("row", "elem", "auto"), "gatherOob": ("clamp", "wrap", "zero", "undefined")},
    "mscatter": {
        "coalesce": ("row", "elem", "auto"),
        "scatterOob": ("clamp", "wrap", "skip", "undefined"),
        "scatterAtomicOp": ("none", "add", "max", "min"),
    },
    "tmrgsort": {"exhausted": (True, False)},
    "tquant": {"scale_alg": ("NV", "OCP")},
    "tquant_dn": {"scale_alg": ("NV", "OCP"), "interleave": (True, False)},
    "tprint": {"print_format": ("Width8_Precision2", "Width10_Precision6", "Width8_Precision4")},
}


def varied(plan: Plan, turn: int) -> Plan:
    """The plan with other attributes: each takes its own way through its values."""
    attrs = dict(plan.attrs)
    for step, (name, values) in enumerate(CHOICES.get(plan.row.name, {}).items()):
        value = values[(turn // (step + 1)) % len(values)]
        if name in ("maskPattern", "gather_axis", "scatter_axis") and "maskPattern" not in plan.attrs:
            continue
        if name in ("cmpMode", "offset") and "cdst" not in plan.operands:
            continue
        if name == "hist_byte" and (turn % 3 == 0 or int(value) >= _bytes(plan, "src")):
            continue
        if name == "scale_alg" and ("exp" not in plan.operands or "exp_zz" in plan.operands):
            continue
        if name.endswith("Oob") and attrs.get("coalesce") == StrAttr("auto"):
            value = "undefined"
        if name == "scatterAtomicOp" and (
            attrs.get("coalesce") == StrAttr("auto") or not _legal_atomic(plan)
        ):
            value = "none"
        attrs[name] = (
            BoolAttr(value)
            if isinstance(value, bool)
            else StrAttr(value)
            if isinstance(value, str)
            else IntAttr(value)
        )
    operands = dict(plan.operands)
    if attrs.get("interleave") == BoolAttr(True):
        operands["exp"] = tuple(
            e.replace(rows=(1, 2)[turn // 2 % 2], cols=2 * e.cols, v_row=None, v_col=None)
            for e in plan.operands["exp"]
            if isinstance(e, TileBufType)
        )
    return plan.replace(attrs=attrs, operands=operands)


def _bytes(plan: Plan, name: str) -> int:
    return DTYPES[str(getattr(plan.operands[name][0], "dtype", ""))].bits // 8


def _legal_atomic(plan: Plan) -> bool:
    return str(getattr(plan.operands["mem"][0], "dtype", "")) in ("i32", "u32", "f32", "f16")


def sample(name: str, every: bool) -> Iterator[Plan]:
    """All plans of a row, or one for each form and kind of element; twice where attributes are to be varied."""
    found = [plan for plan in some_plans(name) if usable(plan)]
    if not every:
        # The last of each kind has another layout than the first; attributes are varied on the first.
        order = found[::-1] if name in CHOICES else found
        found = list({(*plan.operands, kind_of(plan)): plan for plan in order}.values())
    for k, plan in enumerate(found * (1 + (name in CHOICES))):
        yield varied(plan, k)


def kind_of(plan: Plan) -> str:
    dtype = DTYPES[next(str(t[0].dtype) for t in plan.operands.values() if isinstance(t[0], TileBufType))]
    kind = "int" if dtype.is_int else "small" if dtype.bits < 32 else "wide"
    return (
        f"{kind} {plan.isa}" if plan.row.name in ("mgather", "mscatter") else kind
    )  # A2/A3 counts other rows


def check(names: Iterable[str], folder: Path, every: bool = True, runs: int = RUNS) -> list[str]:
    """Return the differences."""
    by_isa: dict[str, list[tuple[Plan, str]]] = defaultdict(list)
    for name in names:
        plans = sample(name, every)
        for plan in plans if every else some(plans, 3, by=lambda p: p.isa):
            by_isa[plan.isa].append((plan, ROWS[name][0](plan)))
    bad: list[str] = []
    for isa, entries in by_isa.items():
        unit = Unit(isa, entries, folder, HEADERS)
        for number, (plan, _) in enumerate(entries):
            for k in range(runs):
                case = Case(plan)
                ROWS[plan.row.name][1](case, np.random.default_rng([k, number]), k)
                found = difference(unit, number, case)
                if found is not None:
                    bad.append(f"{shown(plan)} run {k}: {found}")
                    break
    return bad


def test_instructions_equal_the_reference(tmp_path: Path) -> None:
    """A sample of all that there is, which `check(ROWS, folder)` runs in some minutes."""
    assert check(ROWS, tmp_path, every=False) == []


# --- what does not compile ----------------------------------------------------------------------------------

ILLEGAL = [
    ("cpu", "Tile<TileType::Mat, float, 16, 16> a; TROWSUM(a, a, a)", "SA-0211"),
    ("a5", "Tile<TileType::Mat, float, 16, 16> a; TROWSUM(a, a, a)", "SA-0212"),
    ("a2a3", "Tile<TileType::Vec, int8_t, 16, 32> a; TROWMAX(a, a, a)", "SA-0187"),
    ("a2a3", "Tile<TileType::Vec, float, 16, 16, BLayout::ColMajor> a; Tile<TileType::Vec, float, 16, 8> b; "
     "TROWMIN(b, a, a)", "SA-0207"),
    ("cpu", "Tile<TileType::Vec, float, 16, 8> a; Tile<TileType::Vec, int16_t, 16, 16> b; TROWMAX(a, b, b)",
     "SA-0190"),
    ("cpu", "Tile<TileType::Vec, float, 16, 8> a; Tile<TileType::Vec, half, 16, 16> b; TROWEXPAND(a, b)",
     "SA-0188"),
    ("cpu", "Tile<TileType::Vec, float, 16, 8> a; TSORT32(a, a, a)", "SA-0022"),
    ("cpu", "Tile<TileType::Vec, float, 2, 8> a; TMRGSORT(a, a, 64u)", "SA-0274"),
    ("cpu", "Tile<TileType::Vec, float, 16, 8> a; TGATHER(a, a, a, a)", "SA-0044"),
    ("cpu", "Tile<TileType::Vec, float, 16, 8> a; TSCATTER(a, a, a)", "SA-0325"),
    ("cpu", "Tile<TileType::Vec, float, 16, 8> a; TCI<decltype(a), int32_t, 0>(a, 1)", "PTO-E0301"),
    ("a2a3", "Tile<TileType::Vec, uint32_t, 16, 8> a; uint32_t k[2], c[4]; TRANDOM(a, k, c)", "PTO-E0601"),
]  # fmt: skip


@pytest.mark.parametrize("isa", DEFINES)
def test_illegal_calls_do_not_compile(isa: str) -> None:
    calls = [(code, wanted) for column, code, wanted in ILLEGAL if column == isa]
    found = complaints(HEADERS, [f"{code};" for code, _ in calls], DEFINES[isa])
    for (code, wanted), said in zip(calls, found, strict=True):
        assert f"[PTO][{wanted}]" in said, code
