"""Loads, stores and moves of the C++ headers against the reference engine, bit for bit: every layout pair that
the plans of the rows show, element types, valid regions, atomic, rectified and quantised forms."""

from __future__ import annotations

import ctypes
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.made import compiled
from tests.sampling import EVERY

from pto.engine.memory import ConvTile, Tile, View
from pto.witness.plan import Plan

from ..engine.moving import attribute, chosen_plans, scramble
from ..engine.rows import Case, mixed_codes
from .instructions import COMPILER, DEFINES, ELEMENTS, FLAGS, INCLUDE, Unit, complaints, difference

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

HEADERS = ["ops/calls.hpp"]

Attrs = dict[str, Any]
Variants = Callable[[Plan], list[tuple[str, Attrs]]]
Fill = Callable[[Case, np.random.Generator, int], None]
ROWS: dict[str, tuple[Variants, Fill]] = {}

CAMEL = {"no_relu": "NoRelu", "normal_relu": "NormalRelu", "atomic_none": "AtomicNone", "atomic_add": "AtomicAdd",
         "atomic_max": "AtomicMax", "atomic_min": "AtomicMin"}  # fmt: skip


def rows(names: str, variants: Variants, fill: Fill) -> None:
    for name in names.split():
        ROWS[name] = variants, fill


def is_acc(plan: Plan) -> bool:
    return getattr(plan.operands["src"][0], "loc", "") == "acc"


def regions(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """Full, ragged, one row, one column, empty."""
    r, c = shape
    return [shape, (max(1, r - 3), max(1, c - 5)), (1, c), (r, 1), (0, c)]


def size(tile: Any, valid: tuple[int, int]) -> None:
    tile.v_row, tile.v_col = valid


def word(rng: np.random.Generator) -> int:
    """A quantisation word of a modest scale."""
    scale = int(np.float32(rng.standard_normal() * 2.0 ** rng.integers(-6, 6)).view(np.uint32))
    return int(
        scale
        | int(rng.integers(0, 16)) << 32
        | int(rng.integers(0, 512)) << 37
        | int(rng.integers(0, 2)) << 46
    )


def fill_all(case: Case, rng: np.random.Generator) -> None:
    """Numbers of all kinds, words where words are meant."""
    for name, place in case.args.items():
        if name == "fp":
            codes = np.array([[word(rng) for _ in range(place.cols)] for _ in range(place.rows)], np.uint64)
            case.set(name, codes & np.uint64((1 << place.bits) - 1))
        elif isinstance(place, Tile):
            case.set(name, mixed_codes(rng, place.dtype, place.shape))
            if place.dtype == "i32" and rng.random() < 0.7:
                case.set(name, rng.integers(-3000, 3000, place.shape).astype(np.int32).view(np.uint32))
        elif isinstance(place, View | ConvTile):
            scramble(case, name)
    if "preQuantScalar" in case.args:
        case.args["preQuantScalar"] = word(rng)


# --- loads and stores ---------------------------------------------------------------------------------------


def load(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    size(case.tile("dst"), regions(case.tile("dst").shape)[k % 5])


def stores(plan: Plan) -> list[tuple[str, Attrs]]:
    found = []
    name, fp = ("TSTORE_FP", ", decltype(fp)") if "fp" in plan.operands else ("TSTORE", "")
    tail = (
        ", fp"
        if fp
        else ", static_cast<uint64_t>(preQuantScalar)"
        if "preQuantScalar" in plan.operands
        else ""
    )
    four_bits = any(
        str(t[0].dtype) in ("f4e2m1", "f4e1m2", "s4")
        for n, t in plan.operands.items()
        if n != "fp" and hasattr(t[0], "dtype")
    )
    atomics = ("atomic_none", "atomic_add", "atomic_max")[
        : 1 if four_bits else 2 if plan.isa == "a2a3" else 3
    ]
    for atomic in atomics:
        for relu in ("no_relu", "normal_relu") if is_acc(plan) else ("no_relu",):
            types = (
                f"decltype(src), decltype(dst){fp}, AtomicType::{CAMEL[atomic]}, ReluPreMode::{CAMEL[relu]}"
            )
            found.append((f"{name}<{types}>(dst, src{tail})", {"atomicType": atomic, "reluPreMode": relu}))
    if not fp:
        found.append(
            (
                f"TSTORE<STPhase::Final>(dst, src{tail})",
                {"atomicType": "atomic_none", "reluPreMode": "no_relu"},
            )
        )
    return found


def store(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    size(case.tile("src"), regions(case.tile("src").shape)[k % 5])


rows("tload", lambda p: [("TLOAD(dst, src)", {})], load)
rows("tprefetch", lambda p: [("TPREFETCH(dst, src)", {})], load)
rows("tstore tstore_fp", stores, store)


# --- whole tiles --------------------------------------------------------------------------------------------


def moves(plan: Plan) -> list[tuple[str, Attrs]]:
    if "tmp" in plan.operands:
        return [(f"TMOV<{axis}>(dst, src, tmp)", {"grp_axis": axis}) for axis in (0, 1)]
    found = []
    relus = (
        ("no_relu", "normal_relu")
        if is_acc(plan) and plan.operands["src"][0].layout == "NZ"
        else ("no_relu",)
    )
    for relu in relus:
        mode = f"ReluPreMode::{CAMEL[relu]}"
        types, attrs = "decltype(dst), decltype(src)", {"reluPreMode": relu}
        if "fp" in plan.operands:
            found.append((f"TMOV_FP<{types}, decltype(fp), {mode}>(dst, src, fp)", attrs))
        elif "preQuantScalar" in plan.operands:
            found.append((f"TMOV<{types}, {mode}>(dst, src, static_cast<uint64_t>(preQuantScalar))", attrs))
        elif relu == "no_relu":
            found.append(("TMOV(dst, src)", attrs))
        else:
            found.append((f"TMOV<STPhase::Final, {types}, {mode}>(dst, src)", attrs))
    return found


def move(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src, dst = case.tile("src"), case.tile("dst")
    if "tmp" in case.args:
        return
    shape = min(src.rows, dst.rows), min(src.cols, dst.cols)
    for tile in (src, dst):
        size(tile, regions(shape)[k % 5])


rows("tmov tmov.fp", moves, move)


# --- windows ------------------------------------------------------------------------------------------------


def windows(plan: Plan) -> list[tuple[str, Attrs]]:
    name = plan.row.name.removesuffix("_fp").upper()
    at = "static_cast<uint16_t>(indexRow), static_cast<uint16_t>(indexCol)"
    if "dst1" in plan.operands:
        return [
            (
                f"{name}(dst, dst1, src, {at}, static_cast<uint16_t>(indexRow1), static_cast<uint16_t>(indexCol1))",
                {},
            )
        ]
    found = []
    for relu in ("no_relu", "normal_relu") if is_acc(plan) else ("no_relu",):
        mode, types, attrs = (
            f"ReluPreMode::{CAMEL[relu]}",
            "decltype(dst), decltype(src)",
            {"reluPreMode": relu},
        )
        if "fp" in plan.operands:
            found.append((f"{name}_FP<{types}, decltype(fp), {mode}>(dst, src, fp, {at})", attrs))
        elif "preQuantScalar" in plan.operands:
            found.append(
                (f"{name}<{types}, {mode}>(dst, src, static_cast<uint64_t>(preQuantScalar), {at})", attrs)
            )
        elif relu == "no_relu":
            found.append((f"{name}(dst, src, {at})", attrs))
        else:
            to_vec = "AccToVecMode::SingleModeVec0, " if plan.operands["dst"][0].loc == "vec" else ""
            found.append((f"{name}<{types}, {to_vec}{mode}>(dst, src, {at})", attrs))
    return found


def window(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src, dst = case.tile("src"), case.tile("dst")
    small, large = (dst, src) if case.row.name.startswith("textract") else (src, dst)
    valid = regions((min(small.rows, large.rows), min(small.cols, large.cols)))[k % 5]
    size(small, valid)
    room = large.rows - valid[0], large.cols - valid[1]
    case.args["indexRow"], case.args["indexCol"] = (int(rng.integers(0, r + 1)) for r in room)
    if "dst1" in case.args:
        other = case.tile("dst1")
        size(other, (other.rows - 1, other.cols - 3))
        case.args["indexRow1"], case.args["indexCol1"] = 2, 3


rows("textract textract_fp tinsert tinsert_fp", windows, window)


# --- padding and rearrangement ------------------------------------------------------------------------------


def pad(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src, dst = case.tile("src"), case.tile("dst")
    size(src, regions(src.shape)[k % 5])
    size(dst, dst.shape if k % 2 else (1, 1))


def turn(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    src, dst = case.tile("src"), case.tile("dst")
    r, c = regions((min(src.rows, dst.cols), min(src.cols, dst.rows)))[k % 5]
    size(src, (r, c))
    size(dst, (c, r))


def concat_call(plan: Plan) -> list[tuple[str, Attrs]]:
    counts = ", src0Idx, src1Idx" if "src0Idx" in plan.operands else ""
    return [(f"TCONCAT(dst, src0, src1{', dstIdx' if 'dstIdx' in plan.operands else ''}{counts})", {})]


def concat(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    rows_, n0, n1 = ((16, 32, 32), (5, 7, 20), (1, 1, 1), (16, 0, 9), (0, 3, 3))[k % 5]
    for name, valid in (("src0", (rows_, n0)), ("src1", (rows_, n1)), ("dst", (rows_, n0 + n1))):
        size(case.tile(name), valid)
    for name in ("src0Idx", "src1Idx"):
        if name in case.args:
            tile = case.tile(name)
            item = tile.bits // 8
            case.set(
                name, rng.integers(-1 if k == 1 else 0, 33, tile.shape) * item + int(rng.integers(0, item))
            )


def narrow(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    for name in case.args:
        tile = case.tile(name)
        r, c = regions(tile.shape)[k % 5]
        size(tile, (r, c - c % 2))


def split_call(plan: Plan) -> list[tuple[str, Attrs]]:
    sources = "src1, src0" if "src1" in plan.operands else "src0"
    return [(f"{plan.row.name.upper()}(dst1, dst0, {sources})", {})]


def split(case: Case, rng: np.random.Generator, k: int) -> None:
    fill_all(case, rng)
    shape = case.tile("dst0").shape
    if "src1" not in case.args:
        shape = shape[0], min(shape[1], case.tile("src0").cols // 2)
    r, c = regions(shape)[k % 5]
    for name in ("dst0", "dst1"):
        size(case.tile(name), (r, c - c % 2))


rows("tfillpad tfillpad_inplace tfillpad_expand", lambda p: [(f"{p.row.name.upper()}(dst, src)", {})], pad)
rows("ttrans", lambda p: [("TTRANS(dst, src, tmp)", {})], turn)
rows("tconcat", concat_call, concat)
rows("tpack", lambda p: [("TPACK(dst, src)", {})], narrow)
rows("tinterleave tdeinterleave", split_call, split)


# --- the test -----------------------------------------------------------------------------------------------


def is_usable(plan: Plan) -> bool:
    """Return True if C++ has these element types, and tiles of these shapes in these layouts."""
    for place in Case(plan).args.values():
        if isinstance(place, ConvTile) or (isinstance(place, Tile | View) and place.dtype not in ELEMENTS):
            return False
        if isinstance(place, Tile) and place.layout in ("ND", "DN"):
            line = place.cols if place.layout == "ND" else place.rows
            if line * place.bits % 256:
                return False
    return True


def padded(plan: Plan, number: int) -> Plan:
    """The plan with a pad value in the type of its destination, where that matters."""
    if plan.row.name not in ("tload", "tfillpad", "tfillpad_inplace", "tfillpad_expand"):
        return plan
    type = plan.operands["dst"][0]
    if type.loc == "mat":
        return plan
    values = (1, 2, 3, (1 << 32) | 0xBF801234, *([0] if plan.row.name == "tload" else []))
    return plan.replace(operands={**plan.operands, "dst": (type.replace(pad=values[number % len(values)]),)})


def sample(name: str, most: int) -> Iterator[Plan]:
    """Plans of a row, spread over its columns, element types and layouts."""
    found = [p for p in chosen_plans(name) if is_usable(p)]
    step = max(1, len(found) // most)
    for number, plan in enumerate(found[::step]):
        yield padded(plan, number)


def check(names: tuple[str, ...], folder: Path, most: int, runs: int = 5) -> list[str]:
    """Return the differences."""
    by_isa: dict[str, list[tuple[Plan, str]]] = defaultdict(list)
    attrs: dict[str, list[Attrs]] = defaultdict(list)
    for name in names:
        for plan in sample(name, most):
            for number, (text, given) in enumerate(ROWS[name][0](plan)):
                if number == 0 or (len(by_isa[plan.isa]) + number) % 3 == 0:
                    by_isa[plan.isa].append((plan, text))
                    attrs[plan.isa].append(given)
    bad: list[str] = []
    for isa, entries in by_isa.items():
        unit = Unit(isa, entries, folder, HEADERS)
        for number, (plan, text) in enumerate(entries):
            for k in range(runs):
                case = Case(plan)
                for key, value in attrs[isa][number].items():
                    attribute(case, key, value)
                for n, type in ((n, t[0]) for n, t in plan.operands.items()):
                    if isinstance(case.args.get(n), Tile):
                        case.args[n].pad = type.pad
                ROWS[plan.row.name][1](case, np.random.default_rng([k, number]), k)
                found = difference(unit, number, case)
                if found is not None:
                    shown = [f"{n}:{t[0]}" for n, t in plan.operands.items()]
                    bad.append(f"{isa} {text} {' '.join(shown)} run {k}: {found}")
                    break
    return bad


PARTS, MOST = (4, 6) if EVERY else (1, 2)  # the ordinary run takes plans of every row, not every plan
GROUPS = [tuple(ROWS)[n::PARTS] for n in range(PARTS)]


@pytest.mark.parametrize("names", GROUPS, ids=" ".join)
def test_equals_the_reference(names: tuple[str, ...], tmp_path: Path) -> None:
    bad = check(names, tmp_path, most=MOST)
    assert not bad, "\n".join(bad)


# --- between cores ------------------------------------------------------------------------------------------

CORES = """\
#include <initializer_list>
#include "pto/ops/calls.hpp"
using namespace pto;
using Acc = TileAcc<float, 32, 32>;
template <int Rows, int Cols> using Out = Tile<TileType::Vec, float, 32, 32, BLayout::RowMajor, Rows, Cols>;
static detail::Core cube, vectors[2];
static detail::Cluster* cluster;

/// Numbers 0, 1, .. in the accumulator of a cube core with two vector cores.
extern "C" void start() {
  if (cluster == nullptr) {
    cluster = static_cast<detail::Cluster*>(std::calloc(1, sizeof(detail::Cluster)));
    detail::make_spaces(cube, detail::kRooms);
    for (int n = 0; n < 2; ++n) {
      detail::make_spaces(vectors[n], detail::kRooms);
      cluster->vectors[n] = &vectors[n];
    }
    cube.kind = detail::CoreKind::Cube;
    cube.cluster = cluster;
  }
  for (detail::Core* core : {&cube, &vectors[0], &vectors[1]}) std::memset(core->space[0], 0xFF, 8192);
  detail::current = &cube;
  Acc acc;
  TASSIGN(acc, 0);
  for (int r = 0; r < 32; ++r)
    for (int c = 0; c < 32; ++c) acc.SetElement(r, c, static_cast<float>(r * 32 + c));
}
extern "C" const char* memory(int core) { return core < 0 ? cube.space[0] : vectors[core].space[0]; }

#define MOVE(name, rows, cols, call) \\
  extern "C" void name() { Acc src; TASSIGN(src, 0); Out<rows, cols> dst; TASSIGN(dst, 64); call; }
MOVE(first, 32, 32, (TMOV<Out<32, 32>, Acc, AccToVecMode::SingleModeVec0>(dst, src)))
MOVE(second, 32, 32, (TMOV<Out<32, 32>, Acc, AccToVecMode::SingleModeVec1>(dst, src)))
MOVE(plain, 32, 32, TMOV(dst, src))
MOVE(rows, 16, 32, (TMOV<Out<16, 32>, Acc, AccToVecMode::DualModeSplitM>(dst, src)))
MOVE(cols, 32, 16, (TMOV<STPhase::Final, Out<32, 16>, Acc, AccToVecMode::DualModeSplitN>(dst, src)))
MOVE(window, 16, 16, (TEXTRACT<Out<16, 16>, Acc, AccToVecMode::SingleModeVec1>(dst, src, 4, 8)))
MOVE(inserted, 32, 32, (TINSERT<Out<32, 32>, Acc, AccToVecMode::SingleModeVec1>(dst, src, 0, 0)))
"""


def test_a_cube_core_moves_to_its_vector_cores(tmp_path: Path) -> None:
    assert COMPILER is not None
    source, made = tmp_path / "cores.cpp", tmp_path / "cores.so"
    source.write_text(CORES)
    done = compiled([COMPILER, *FLAGS, f"-I{INCLUDE}"], source, made)
    assert done.returncode == 0, done.stderr[:4000]
    lib = ctypes.CDLL(str(made))
    lib.memory.restype = ctypes.c_void_p
    numbers = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)

    def received(core: int) -> Any:
        """Return the content of a core's UB at 64; None if it was not written."""
        raw = np.frombuffer(ctypes.string_at(lib.memory(core) + 64, 4096), np.float32).reshape(32, 32)
        return None if np.isnan(raw).all() else raw

    for name, at in (("first", 0), ("plain", 0), ("second", 1), ("inserted", 1)):
        lib.start()
        getattr(lib, name)()
        assert (received(at) == numbers).all(), name
        assert received(1 - at) is None and received(-1) is None, name
    lib.start()
    lib.rows()
    assert (received(0)[:16] == numbers[:16]).all() and (received(1)[:16] == numbers[16:]).all()
    assert np.isnan(received(0)[16:]).all() and received(-1) is None
    lib.start()
    lib.cols()
    assert (received(0)[:, :16] == numbers[:, :16]).all() and (received(1)[:, :16] == numbers[:, 16:]).all()
    lib.start()
    lib.window()
    assert (received(1)[:16, :16] == numbers[4:20, 8:24]).all() and received(0) is None


# --- refusals -----------------------------------------------------------------------------------------------

VEC = "Tile<TileType::Vec, {}, 16, 64, BLayout::RowMajor, 16, 64>"
TENSOR = "GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>"

BAD = {
    "SA-0098": ("a2a3", f"{VEC.format('half')} a; {TENSOR} g(p); TLOAD(a, g);"),
    "SA-0032": ("a2a3", f"TileLeft<float, 16, 64> a; {TENSOR} g(p); TLOAD(a, g);"),
    "SA-0099": ("a2a3", f"{VEC.format('half')} a; {TENSOR} g(p); TSTORE(g, a);"),
    "SA-0100": ("a5", f"Tile<TileType::Mat, float, 16, 64> a; {TENSOR} g(p); TSTORE(g, a);"),
    "SA-0101": ("a2a3", f"TileLeft<float, 16, 64> a; {TENSOR} g(p); TSTORE(g, a);"),
    "SA-0168": ("cpu", f"{VEC.format('float')} a, b; TFILLPAD(a, b);"),
    "SA-0301": ("cpu", f"{VEC.format('float')} a; Tile<TileType::Vec, float, 16, 64, BLayout::ColMajor, 16, 64, "
                       "SLayout::RowMajor> b; TRESHAPE(a, b);"),
    "SA-0303": ("cpu", f"{VEC.format('float')} a; Tile<TileType::Mat, float, 16, 64> b; TRESHAPE(a, b);"),
    "SA-0305": ("cpu", f"{VEC.format('float')} a; {VEC.format('half')} b; TRESHAPE(a, b);"),
    "SA-0342": ("cpu", f"{VEC.format('float')} a; {VEC.format('half')} b; TTRANS(a, b, a);"),
}  # fmt: skip


@pytest.mark.parametrize("isa", DEFINES)
def test_bad_use_does_not_compile(isa: str) -> None:
    bad = {code: body for code, (column, body) in BAD.items() if column == isa}
    for code, said in zip(
        bad, complaints(HEADERS, list(bad.values()), DEFINES[isa], "float* p"), strict=True
    ):
        assert f"[PTO][{code}]" in said, said[:2000]


WRONG = {
    "PTO-E2102": f"{VEC.format('float')} a; {TENSOR.replace('16, 64>', '15, 64>')} g(p); TASSIGN(a, 0); TLOAD(a, g);",
    "CA-0006": f"{VEC.format('float')} a; Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 4, 8> b; TASSIGN(a, 0);"
    " TASSIGN(b, 4096); TEXTRACT(b, a, 13, 0);",
    "CA-0001": f"{VEC.format('float')} a; Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1> b(4, 8); TASSIGN(a, 0);"
    " TASSIGN(b, 4096); TMOV(b, a);",
    "": f"{VEC.format('float')} a; {TENSOR} g(p); TASSIGN(a, 0); TLOAD(a, g); TSTORE(g, a);",
}


def test_wrong_use_stops_a_checked_program(tmp_path: Path) -> None:
    assert COMPILER is not None
    source, program = tmp_path / "wrong.cpp", tmp_path / "wrong"
    includes = "".join(f'#include "pto/{h}"\n' for h in HEADERS)
    cases = "".join(f"  if (argc == {n + 1}) {{ {body} }}\n" for n, body in enumerate(WRONG.values()))
    source.write_text(
        f"{includes}using namespace pto;\nint main(int argc, char**) {{ static float p[16 * 64];\n{cases}}}\n"
    )
    command = [
        COMPILER,
        "-std=c++20",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-DPTO_CHECKED",
        f"-I{INCLUDE}",
    ]
    done = compiled(command, source, program)
    assert done.returncode == 0, done.stderr[:4000]
    for n, code in enumerate(WRONG):
        ran = subprocess.run([program, *["x"] * n], capture_output=True, text=True, check=False)
        assert (ran.returncode != 0) == bool(code), (code, ran.stderr)
        assert f"[PTO][{code}]" in ran.stderr if code else ran.stderr == "", (code, ran.stderr)
