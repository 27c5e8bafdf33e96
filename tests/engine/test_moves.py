"""Copies, windows, padding and rearrangement of tiles: element by element from the text of the instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.engine import elements
from pto.engine.memory import Tile
from pto.engine.reference.core import Core
from pto.engine.reference.instr import IllegalInstruction
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.isa.profiles import profile

from .moving import attribute, chosen_plans, converted, known_plans, run, same_codes, scramble, stored
from .rows import Array, Case, Doubles, element_type, mixed_codes, random_codes

ROWS = (
    "tmov", "textract", "tinsert", "tfillpad", "tfillpad_inplace", "tfillpad_expand", "ttrans", "tconcat", "tpack",
    "tinterleave", "tdeinterleave", "tsetval", "tgetval",
)  # fmt: skip


def regions(shape: tuple[int, int], even: bool = False) -> list[tuple[int, int]]:
    """Full, ragged, one row, one column, empty."""
    rows, cols = shape
    odd = (max(1, rows - 3), max(1, cols - 5))
    found = [shape, odd, (1, cols), (rows, 1), (0, cols), (rows, 0)]
    return [(r, c - c % 2) for r, c in found] if even else found


def size(tile: Tile, valid: tuple[int, int]) -> None:
    tile.v_row, tile.v_col = valid


def relu(codes: Array, dtype: str, keep_nan: bool) -> Array:
    values = elements.decode(dtype, codes)
    keep = ~(values < 0) if keep_nan else values > 0
    return np.where(keep, codes, 0).astype(codes.dtype)


# --- whole tiles ------------------------------------------------------------------------------------------


def test_tmov_copies_and_casts() -> None:
    for n, plan in enumerate(chosen_plans("tmov")):
        if {"fp", "preQuantScalar", "tmp"} & set(plan.operands):
            continue
        case = Case(plan, n)
        src, dst = case.tile("src"), case.tile("dst")
        valid = regions(src.shape)[n % 6]
        if src.dtype != dst.dtype:  # scalar conversions take their time
            valid = (min(valid[0], 9), min(valid[1], 13))
        codes = mixed_codes(case.rng, src.dtype, src.shape)
        case.set("src", codes, valid)
        size(dst, valid)
        scramble(case, "dst")
        rectify = src.loc == "acc" and n % 2 == 0
        if rectify:
            attribute(case, "reluPreMode", "normal_relu")
        want = case.get("dst")
        run(case, "dst")
        part = codes[: valid[0], : valid[1]]
        if src.dtype != dst.dtype:
            part = converted(part, src.dtype, dst.dtype)
        # After the conversion, and NaN passes.
        want[: valid[0], : valid[1]] = relu(part, dst.dtype, keep_nan=True) if rectify else part
        assert same_codes(case.get("dst"), want, dst.dtype), (plan.isa, src, dst, valid, rectify)


def tmov_case(isa: str, src: str, dst: str, **facts: Any) -> Case:
    for plan in known_plans("tmov"):
        t, u = plan.operands["src"][0], plan.operands["dst"][0]
        if (plan.isa, t.loc, u.loc) == (isa, src, dst) and not {"fp", "preQuantScalar", "tmp"} & set(
            plan.operands
        ):
            if all(getattr(u, k) == v for k, v in facts.items()):
                return Case(plan)
    raise AssertionError((isa, src, dst))


def test_tmov_relu_of_integers_wraps_first() -> None:
    case = tmov_case("a5", "acc", "mat", dtype="i8")
    case.tile("src").dtype = "i32"
    case.set("src", np.full((64, 64), 200, np.uint32))
    attribute(case, "reluPreMode", "normal_relu")
    case.run()
    assert (case.get("dst") == 0).all()  # 200 is -56 as an i8


def test_tmov_wants_equal_valid_regions_in_the_simulator() -> None:
    case = tmov_case("cpu", "vec", "vec")
    size(case.tile("src"), (3, 5))
    with pytest.raises(IllegalInstruction, match=r"expects equal valid regions, got src 3x5"):
        case.run()
    scales = tmov_case("cpu", "mat", "scale_left")
    size(scales.tile("src"), (3, 5))  # those of an odd number of groups come with their neighbours
    scales.run()
    assert (scales.get("dst") == scales.get("src", scales.tile("src").shape)).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_tmov_scale_boxes(axis: int) -> None:
    plans = [p for p in chosen_plans("tmov") if "tmp" in p.operands]
    assert {element_type(p, "src") for p in plans} == {"u8", "hif8", "f8e8m0"}  # what C++ has it for
    for n, plan in enumerate(plans):
        case = Case(plan, n)
        attribute(case, "grp_axis", axis)
        src, dst = case.tile("src"), case.tile("dst")
        codes = case.random("src", codes=True)
        scramble(case, "dst")
        rows, cols = src.shape
        run(case, "dst")
        chip = stored(dst.buffer.data[dst.address : dst.address + dst.size], dst.dtype)
        if axis == 1:
            for r in range(rows):
                for c in range(cols):
                    assert chip[((r // 16 * (cols // 2) + c // 2) * 16 + r % 16) * 2 + c % 2] == codes[r, c]
        else:
            for cb in range(cols // 16):
                for p in range(rows // 2):
                    for q in range(16):
                        for d in range(2):
                            at = ((cb * (rows // 2) + p) * 16 + q) * 2 + d
                            assert chip[at] == codes[2 * p + d, 16 * cb + q]


class Cluster:
    """Two vector cores beside the core of a case."""

    def __init__(self, case: Case) -> None:
        self.vectors = [Core(profile(case.isa), kind="vector", sub=n) for n in (0, 1)]


@pytest.mark.parametrize(
    "mode", ["single_mode_vec0", "single_mode_vec1", "dual_mode_split_m", "dual_mode_split_n"]
)
def test_tmov_to_the_vector_cores(mode: str) -> None:
    case = tmov_case("a5", "acc", "vec", dtype="f32")
    case.core.kind, case.core.cluster = "cube", Cluster(case)  # type: ignore[assignment]
    attribute(case, "accToVecMode", mode)
    codes = case.random("src", codes=True)
    src, dst = case.tile("src"), case.tile("dst")
    half = (
        (src.rows // 2, src.cols)
        if mode[-1] == "m"
        else (src.rows, src.cols // 2)
        if mode[-1] == "n"
        else src.shape
    )
    size(dst, half)
    run(case)  # nothing of its own
    got = []
    for core in case.core.cluster.vectors:
        place = dst.copy()
        place.buffer = core.buffers["vec"]
        got.append(place.region(*half).load(place.buffer.data, np.uint32))
    if mode == "dual_mode_split_m":
        assert (np.concatenate(got, axis=0) == codes).all()
    elif mode == "dual_mode_split_n":
        assert (np.concatenate(got, axis=1) == codes).all()
    else:
        used = int(mode[-1])
        assert (got[used] == codes).all() and not got[1 - used].any()


# --- windows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["textract", "tinsert"])
def test_windows(name: str) -> None:
    for n, plan in enumerate(chosen_plans(name)):
        if "preQuantScalar" in plan.operands:
            continue
        case = Case(plan, n)
        src, dst = case.tile("src"), case.tile("dst")
        small, large = (dst, src) if name == "textract" else (src, dst)
        valid = regions(small.shape)[n % 6]
        if src.dtype != dst.dtype:
            valid = (min(valid[0], 9), min(valid[1], 13))
        size(small, valid)
        room = (large.rows - valid[0], large.cols - valid[1])
        start = tuple(int(case.rng.integers(0, r + 1)) for r in room)
        case.args["indexRow"], case.args["indexCol"] = start
        codes = mixed_codes(case.rng, src.dtype, src.shape)
        case.set("src", codes)
        outs = ("dst", "dst1") if "dst1" in case.args else ("dst",)
        scramble(case, *outs)
        rectify = src.loc == "acc" and n % 2 == 0
        if rectify:
            attribute(case, "reluPreMode", "normal_relu")
        want = case.get("dst")
        if "dst1" in case.args:
            other = case.tile("dst1")
            size(other, (other.rows - 1, other.cols - 3))
            case.args["indexRow1"], case.args["indexCol1"] = 2, 3
            want1 = case.get("dst1")
            want1[: other.v_row, : other.v_col] = codes[2 : 2 + other.v_row, 3 : 3 + other.v_col]
        run(case, *outs)
        window = (slice(start[0], start[0] + valid[0]), slice(start[1], start[1] + valid[1]))
        part = codes[window] if name == "textract" else codes[: valid[0], : valid[1]]
        if rectify:  # before the conversion, and NaN becomes 0
            part = relu(part, src.dtype, keep_nan=False)
        if src.dtype != dst.dtype:
            part = converted(part, src.dtype, dst.dtype)
        if name == "textract":
            want[: valid[0], : valid[1]] = part
        else:
            want[window] = part
        assert same_codes(case.get("dst"), want, dst.dtype), (plan.isa, src, dst, start, rectify)
        if "dst1" in case.args:
            assert (case.get("dst1") == want1).all()


@pytest.mark.parametrize("name", ["textract", "tinsert"])
def test_a_window_beyond_the_tile_is_refused(name: str) -> None:
    for isa in ("cpu", "a5"):
        plan = next(p for p in known_plans(name) if p.isa == isa and p.operands["src"][0].loc == "vec")
        case = Case(plan)
        large = case.tile("src" if name == "textract" else "dst")
        small = case.tile("dst" if name == "textract" else "src")
        size(small, (4, 8))
        size(large, (10, 20))
        rows, cols = (10, 20) if isa == "cpu" else large.shape
        for start, fine in (
            ((0, 0), True),
            ((rows - 4, cols - 8), True),
            ((rows - 3, 0), False),
            ((0, cols - 7), False),
            ((-1, 0), False),
        ):
            case.args["indexRow"], case.args["indexCol"] = start
            if fine:
                case.run()
            else:
                with pytest.raises(IllegalInstruction, match="expects the window of 4x8 elements"):
                    case.run()


# --- padding ----------------------------------------------------------------------------------------------


def pad_code(pad: int, dtype: str, isa: str) -> int:
    bits = DTYPES[dtype].bits
    if pad >= 1 << 32:
        return pad & ((1 << bits) - 1)
    if pad in (2, 3) and dtype in ("f32", "f16", "bf16"):
        return encoding.encode(DTYPES[dtype], float("inf") if pad == 2 else float("-inf"))
    if pad in (2, 3) and DTYPES[dtype].is_int:
        return DTYPES[dtype].int_range[pad == 2] & ((1 << bits) - 1)
    return 0


@pytest.mark.parametrize("name", ["tfillpad", "tfillpad_inplace", "tfillpad_expand"])
def test_fills(name: str) -> None:
    for n, plan in enumerate(chosen_plans(name)):
        case = Case(plan, n)
        src, dst = case.tile("src"), case.tile("dst")
        for k, valid in enumerate(regions(src.shape)):
            if dst.loc != "mat":
                dst.pad = (1, 2, 3, (1 << 32) | 0xBF801234)[(n + k) % 4]
            size(src, valid)
            size(dst, dst.shape if k % 2 else (1, 1))
            codes = case.random("src", codes=True)
            scramble(case, "dst")
            run(case, "dst")
            want = np.full(dst.shape, 0 if dst.loc == "mat" else pad_code(dst.pad, dst.dtype, plan.isa))
            want[: valid[0], : valid[1]] = codes[: valid[0], : valid[1]]
            assert (case.get("dst") == want).all(), (plan.isa, src, dst, valid)


def test_fill_in_place() -> None:
    for name in ("tfillpad", "tfillpad_inplace"):
        case = Case(chosen_plans(name)[0])
        src, dst = case.tile("src"), case.tile("dst")
        dst.address, dst.buffer = src.address, src.buffer
        codes = case.random("src", codes=True)
        size(src, (7, 9))
        run(case, "dst")
        want = np.zeros(dst.shape, codes.dtype)
        want[:7, :9] = codes[:7, :9]
        assert (case.get("dst") == want).all()


def test_fill_of_an_empty_tile_does_nothing() -> None:
    case = Case(chosen_plans("tfillpad")[0])
    scramble(case, "src", "dst")
    for empty in ((0, 4), (4, 0)):
        size(case.tile("dst"), empty)
        run(case)


# --- rearrangement ----------------------------------------------------------------------------------------


def test_ttrans() -> None:
    for n, plan in enumerate(chosen_plans("ttrans")):
        case = Case(plan, n)
        src, dst = case.tile("src"), case.tile("dst")
        for rows, cols in regions(src.shape):
            size(src, (rows, cols))
            size(dst, (cols, rows))
            codes = case.random("src", codes=True)
            scramble(case, "dst")
            want = case.get("dst")
            run(case, "dst")
            for r in range(rows):
                want[:cols, r] = codes[r, :cols]
            assert (case.get("dst") == want).all()
    size(dst, (0, 0))
    size(src, src.shape)
    dst.rows = 3
    with pytest.raises(IllegalInstruction, match="expects dst 3x"):
        case.run()


def test_tconcat() -> None:
    for n, plan in enumerate(chosen_plans("tconcat")):
        case = Case(plan, n)
        src0, src1, dst = (case.tile(name) for name in ("src0", "src1", "dst"))
        for rows, n0, n1 in ((16, 32, 32), (5, 7, 20), (1, 1, 1), (16, 0, 9), (0, 3, 3)):
            size(src0, (rows, n0))
            size(src1, (rows, n1))
            size(dst, (rows, n0 + n1))
            a, b = case.random("src0", codes=True), case.random("src1", codes=True)
            scramble(case, "dst")
            want = case.get("dst")
            outs: tuple[str, ...] = ("dst",)
            counts = [(n0, n1)] * rows
            if "src0Idx" in case.args:
                item = DTYPES[case.tile("src0Idx").dtype].bits // 8
                counts = [(int(case.rng.integers(0, 33)), int(case.rng.integers(0, 33))) for _ in range(rows)]
                # An index counts in bytes of its own type; a rest is cut off.
                rest = [(r % item, (r + 1) % item) for r in range(rows)]
                given = [(x * item + p, y * item + q) for (x, y), (p, q) in zip(counts, rest, strict=True)]
                for k, name in enumerate(("src0Idx", "src1Idx")):
                    size(case.tile(name), (rows, 1))
                    case.set(name, np.array([[pair[k]] for pair in given], np.uint64).reshape(rows, 1))
                outs = ("dst", "dstIdx")
                scramble(case, "dstIdx")
                index = case.get("dstIdx")
                for r, pair in enumerate(given):
                    index[r, 0] = sum(pair) if plan.isa == "cpu" else sum(counts[r]) * item
            run(case, *outs)
            for r, (x, y) in enumerate(counts):
                want[r, : x + y] = [*a[r, :x], *b[r, :y]]
            assert (case.get("dst") == want).all()
            if "dstIdx" in outs:
                assert (case.get("dstIdx") == index).all()


def test_tconcat_counts_stop_at_the_edge() -> None:
    plan = next(p for p in known_plans("tconcat") if "src0Idx" in p.operands)
    case = Case(plan)
    a, b = case.random("src0", codes=True), case.random("src1", codes=True)
    case.set("src0Idx", np.array([[-4], [400]] * 8, np.int64))
    case.set("src1Idx", np.array([[400], [-4]] * 8, np.int64))
    scramble(case, "dst")
    want = case.get("dst")
    want[0::2, :32], want[1::2, :32] = b[0::2], a[1::2]
    run(case, "dst", "dstIdx")
    assert (case.get("dst") == want).all()


def test_tpack_keeps_low_bits() -> None:
    for n, plan in enumerate(chosen_plans("tpack")):
        case = Case(plan, n)
        src, dst = case.tile("src"), case.tile("dst")
        for valid in regions(dst.shape):
            size(src, valid)
            size(dst, valid)
            codes = case.random("src", codes=True)
            scramble(case, "dst")
            want = case.get("dst")
            run(case, "dst")
            want[: valid[0], : valid[1]] = codes[: valid[0], : valid[1]] & ((1 << DTYPES[dst.dtype].bits) - 1)
            assert (case.get("dst") == want).all()


def test_tinterleave() -> None:
    for n, plan in enumerate(chosen_plans("tinterleave")):
        case = Case(plan, n)
        for rows, cols in regions(case.tile("dst0").shape, even=True):
            for tile in case.args.values():
                size(tile, (rows, cols))
            a, b = case.random("src0", codes=True), case.random("src1", codes=True)
            scramble(case, "dst0", "dst1")
            want0, want1 = case.get("dst0"), case.get("dst1")
            run(case, "dst0", "dst1")
            for r in range(rows):
                stream = [x for pair in zip(a[r, :cols], b[r, :cols], strict=True) for x in pair]
                want0[r, :cols], want1[r, :cols] = stream[:cols], stream[cols:]
            assert (case.get("dst0") == want0).all() and (case.get("dst1") == want1).all()
    size(case.tile("dst0"), (1, 3))
    with pytest.raises(IllegalInstruction, match="an even number of valid columns, got 3"):
        case.run()


def test_tdeinterleave() -> None:
    for n, plan in enumerate(chosen_plans("tdeinterleave")):
        case = Case(plan, n)
        two = "src1" in case.args
        for rows, cols in regions((16, 64), even=True):
            for name, tile in case.args.items():
                size(tile, (rows, cols if two or name != "src0" else 2 * cols))
            a = case.random("src0", codes=True)
            b = case.random("src1", codes=True) if two else a
            scramble(case, "dst0", "dst1")
            want0, want1 = case.get("dst0"), case.get("dst1")
            run(case, "dst0", "dst1")
            for r in range(rows):
                stream = [*a[r, :cols], *b[r, :cols]] if two else list(a[r, : 2 * cols])
                want0[r, :cols], want1[r, :cols] = stream[0::2], stream[1::2]
            assert (case.get("dst0") == want0).all() and (case.get("dst1") == want1).all()


@examples(40)
@given(st.integers(0, 16), st.integers(0, 32), st.integers(0, 2**32))
def test_deinterleave_undoes_interleave(rows: int, half: int, seed: int) -> None:
    there = Case(next(p for p in known_plans("tinterleave") if p.isa == "a5"), seed)
    back = Case(next(p for p in known_plans("tdeinterleave") if p.isa == "a5" and "src1" in p.operands), seed)
    dtype = there.tile("dst0").dtype
    for tile in (*there.args.values(), *back.args.values()):
        size(tile, (rows, 2 * half))
        tile.dtype, tile.bits = dtype, DTYPES[dtype].bits
    sources = there.random("src0", codes=True), there.random("src1", codes=True)
    there.run()
    for name, source in (("src0", "dst0"), ("src1", "dst1")):
        back.set(name, there.get(source, (rows, 2 * half)))
    back.run()
    for name, codes in zip(("dst0", "dst1"), sources, strict=True):
        assert (back.get(name, (rows, 2 * half)) == codes[:rows, : 2 * half]).all()


# --- single elements --------------------------------------------------------------------------------------


def test_single_elements() -> None:
    numbers = (0, 1, -1, 100, -129, 70000, 2**31 - 1, 2**63 + 5, 0.1, -2.5, 1e6, float("inf"), float("nan"))
    for n, plan in enumerate(chosen_plans("tsetval")):
        case = Case(plan, n)
        tile = case.tile("dst")
        offset = int(case.rng.integers(0, tile.rows * tile.cols))
        case.args["offset"] = offset
        value = case.args["val"] = numbers[n % len(numbers)]
        scramble(case, "dst")
        chip = stored(tile.buffer.data[tile.address : tile.address + tile.size], tile.dtype)
        run(case, "dst")
        d = DTYPES[tile.dtype]
        if isinstance(value, int) and d.is_int:
            chip[offset] = value & ((1 << d.bits) - 1)
        else:
            chip[offset] = encoding.encode(d, value)
        got = stored(tile.buffer.data[tile.address : tile.address + tile.size], tile.dtype)
        assert same_codes(got, chip, tile.dtype), (tile, value)


def test_reading_single_elements() -> None:
    for n, plan in enumerate(chosen_plans("tgetval")):
        case = Case(plan, n)
        tile = case.tile("src")
        case.set("src", random_codes(case.rng, tile.dtype, tile.shape))
        chip = stored(tile.buffer.data[tile.address : tile.address + tile.size], tile.dtype)
        for offset in (0, 1, tile.rows * tile.cols - 1, 77):
            case.args["offset"] = offset
            got = run(case)
            want = encoding.decode(DTYPES[tile.dtype], int(chip[offset]))
            assert got == want or (got != got and want != want)
            assert isinstance(got, float if DTYPES[tile.dtype].is_float else int)


def test_moves_pass_through_a_shadow_run() -> None:
    """Every row whose destination a float tile fills: the same codes come out, for they are exact."""
    for name in ROWS:
        if name in ("tsetval", "tgetval", "tpack", "tconcat", "tmov"):
            continue
        plan = next(
            p
            for p in known_plans(name)
            if p.isa == "a5" and str(p.operands[next(iter(p.operands))][0].dtype) == "f16"
        )
        runs = []
        for port in (None, Doubles()):
            case = Case(plan, 3)
            for at, value in case.args.items():
                if isinstance(value, Tile):
                    case.random(at)
            if port:
                case.core.port = port
            case.run()
            runs.append({at: case.get(at) for at, v in case.args.items() if isinstance(v, Tile)})
        assert all((runs[0][at] == runs[1][at]).all() for at in runs[0]), name
