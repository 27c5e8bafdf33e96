"""Moves on the way to the cube unit against loops over elements: layouts, windows, transposition, bursts, padding."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from tests import sampling

from pto.engine.memory import Pointer
from pto.engine.reference.core import Core, RunError
from pto.engine.reference.grid import Cluster
from pto.isa.dtypes import DTYPES
from pto.isa.encoding import decode, encode
from pto.isa.profiles import profile
from pto.witness.plan import Plan

from ..rows import Array, Doubles, random_codes
from .cases import plans_of, shown, with_attrs
from .fractals import (
    Bench,
    Place,
    blocks,
    c0,
    element,
    l0a,
    l0b,
    nz,
    read,
    scales_of_columns,
    scales_of_rows,
    write,
)  # fmt: skip

BURSTS = ("mte_gm_l1", "mte_l1_ub")
FEEDS = ("mte_l1_l0a", "mte_l1_l0b")
SCALES = ("mte_l1_l0a_mx", "mte_l1_l0b_mx")
ROWS = (*BURSTS, "mte_gm_l1_frac", *FEEDS, *SCALES, "mte_l1_bt", "mte_l1_fb")


def some(name: str) -> list[Plan]:
    """Every column, form and element type of a row."""
    return plans_of(name)


def bytes_at(pointer: Pointer, offset: int, size: int) -> bytes:
    return pointer.buffer.data[pointer.offset + offset : pointer.offset + offset + size].tobytes()


def refuses(case: Bench, text: str) -> None:
    with pytest.raises(RunError, match=text):
        case.execute()


def scalars(case: Bench) -> dict[str, int]:
    """The names of the numeric operands, all 0."""
    return {n: 0 for n, v in case.args.items() if isinstance(v, int)}


# -- bursts --------------------------------------------------------------------------------------------------


def burst_case(plan: Plan, length: int, loops: list[tuple[int, int, int]], **more: Any) -> Bench:
    """`loops` are innermost first."""
    (count, src, dst), *outer = loops
    flat = [n for loop in outer for n in loop]
    return Bench(plan, len_burst=length, count=count, src_stride=src, dst_stride=dst, loop=flat, **more)


@pytest.mark.parametrize("name", BURSTS)
@pytest.mark.parametrize(
    ("length", "loops"),
    [
        (64, [(1, 0, 0)]), (37, [(3, 50, 64)]), (32, [(2, 32, 96), (3, 100, 256)]), (5, [(0, 1, 1)]),
        (16, [(2, 16, 32), (2, 64, 128), (2, 7, 512)]), (0, [(2, 3, 4)]), (8, [(2, 0, 32), (1, 0, 0)]),
    ],
)  # fmt: skip
def test_bursts(name: str, length: int, loops: list[tuple[int, int, int]]) -> None:
    for plan in some(name):
        case = burst_case(plan, length, loops, semantics="doc")
        src, dst = case.pointer("src"), case.pointer("dst")
        want = dst.buffer.data.copy()
        for index in product(*(range(loop[0]) for loop in reversed(loops))):
            steps = list(zip(index, reversed(loops), strict=True))
            s, d = (sum(n * loop[side] for n, loop in steps) for side in (1, 2))
            want[dst.offset + d : dst.offset + d + length] = np.frombuffer(bytes_at(src, s, length), np.uint8)
        case.execute()
        assert (dst.buffer.data == want).all(), shown(plan)


def test_bursts_of_blocks() -> None:
    """L1 to UB counts blocks of 32 bytes, and gaps between bursts, where hardware has its way."""
    for plan in some("mte_l1_ub"):
        for length, count, src_gap, dst_gap in ((2, 3, 1, 2), (1, 1, 0, 0), (0, 2, 1, 1), (3, 2, 0, 4)):
            case = burst_case(plan, length, [(count, src_gap, dst_gap)])
            src, dst = case.pointer("src"), case.pointer("dst")
            want = dst.buffer.data.copy()
            for r in range(count):
                at = dst.offset + r * (length + dst_gap) * 32
                found = bytes_at(src, r * (length + src_gap) * 32, length * 32)
                want[at : at + length * 32] = np.frombuffer(found, np.uint8)
            case.execute()
            assert (dst.buffer.data == want).all(), shown(plan)


def test_bursts_into_the_vector_core() -> None:
    """The cube core writes the UB of vector core 0 of its cluster."""
    case = burst_case(plans_of("mte_l1_ub", "a5")[0], 64, [(1, 0, 0)], semantics="doc")
    case.core.kind = "cube"
    case.core.cluster = cluster = Cluster(0)
    vectors = [Core(profile("a5"), kind="vector", sub=n) for n in (0, 1)]
    cluster.cores = [case.core, *vectors]
    old = case.pointer("dst").buffer.data.copy()
    case.execute()
    at = case.pointer("dst").offset
    assert vectors[0].buffers["vec"].data[at : at + 64].tobytes() == bytes_at(case.pointer("src"), 0, 64)
    assert not vectors[1].buffers["vec"].data.any()
    assert (case.pointer("dst").buffer.data == old).all()


def test_bursts_refused() -> None:
    plan = plans_of("mte_gm_l1", "a5")[0]
    refuses(burst_case(plan, 32, [(1 << 40, 0, 0)]), f"expects count to fit 21 bits, got {1 << 40}")
    refuses(burst_case(plan, 4096, [(40000, 0, 1)]), "expects to write at most 67108864 bytes, got 163840000")
    for name in ("len_burst", "count", "src_stride", "dst_stride"):
        case = burst_case(plan, 32, [(1, 0, 0)])
        case.args[name] = -1
        refuses(case, f"expects {name} to be at least 0, got -1")
    case = burst_case(plan, 32, [(1, 0, 0)])
    case.pointer("dst").offset += 16
    refuses(case, "expects dst to be a multiple of 32 bytes, got address 4112")
    refuses(burst_case(plan, 1 << 20, [(1, 0, 0)]), r"touches bytes 0..1048576 of src")
    refuses(burst_case(plan, 64, [(2, 0, 1 << 19)]), "of L1")


# -- GM to fractals ------------------------------------------------------------------------------------------


def frac(
    plan: Plan, mode: str, n: int, d: int, inner: int, group: tuple[int, int, int, int], **more: Any
) -> Bench:
    made = with_attrs(plan, mode=mode)
    assert made is not None
    count, loop2, loop3, loop4 = group
    fields = {"dst_loop2_stride": loop2, "dst_loop3_stride": loop3, "dst_loop4_stride": loop4}
    rest = {"l2_cache_ctrl": 0, "smallc0_en": 0} | more
    case = Bench(made, n_value=n, d_value=d, src_inner_stride=inner, group_count=count, **fields, **rest)
    if "src_outer_stride" not in more:
        case.args.pop("src_outer_stride", None)
    return case


def boxed(first: int, loop2: int, loop3: int, width: int) -> Place:
    """Blocks of 32 bytes from block `first` on, `loop2` apart from row to row, `loop3` along a row."""
    return lambda r, c: (first + c // width * loop3 + r * loop2) * width + c % width


FRACS = (
    (16, 16, (1, 1, 16, 0), 0), (5, 37, (1, 1, 16, 0), 0), (20, 70, (1, 1, 32, 0), 0), (3, 9, (2, 2, 8, 64), 512),
    (1, 33, (3, 1, 1, 4), 128), (7, 5, (0, 1, 8, 0), 0),
)  # fmt: skip


@pytest.mark.parametrize("mode", ["nd2nz", "dn2nz"])
@pytest.mark.parametrize(("n", "d", "group", "outer"), FRACS)
def test_frac(mode: str, n: int, d: int, group: tuple[int, int, int, int], outer: int) -> None:
    for plan in some("mte_gm_l1_frac"):
        dtype = element(plan, "src")
        bits, width = DTYPES[dtype].bits, c0(dtype)
        inner = blocks((d if mode == "nd2nz" else n) * bits + 32, 64) * 8
        case = frac(plan, mode, n, d, inner, group, **({"src_outer_stride": outer} if outer else {}))
        src, dst = case.pointer("src"), case.pointer("dst")
        count, loop2, loop3, loop4 = group
        want = dst.buffer.data.copy()
        copy = Pointer(type(dst.buffer)("want", "mat", want), dst.offset, dtype)
        step = inner * 8 // bits
        for g in range(count):
            down, right = (step, 1) if mode == "nd2nz" else (1, step)
            first = g * outer * 8 // bits
            codes = read(src, lambda r, c, first=first, a=down, b=right: first + r * a + c * b, n, d)
            whole = np.zeros((n, blocks(d, width) * width), codes.dtype)
            whole[:, :d] = codes
            write(
                copy,
                boxed(g * loop4, loop2, loop3, width),
                whole,
            )
        case.execute()
        assert (dst.buffer.data == want).all(), shown(plan)


@pytest.mark.parametrize("mode", ["nd2nz", "dn2nz"])
def test_small_c0(mode: str) -> None:
    """Rows of 4 elements, packed; zeros up to the next 32 bytes."""
    for plan in some("mte_gm_l1_frac"):
        dtype = element(plan, "src")
        bits, width = DTYPES[dtype].bits, c0(dtype)
        for n, d in ((9, 3), (1, 4), (17, 1)):
            case = frac(plan, mode, n, d, 64, (2, 5, 6, 40), smallc0_en=1, src_outer_stride=1600)
            src, dst = case.pointer("src"), case.pointer("dst")
            step = 512 // bits
            want = []
            for g in range(2):
                down, right = (step, 1) if mode == "nd2nz" else (1, step)
                first = g * 1600 * 8 // bits
                codes = read(src, lambda r, c, first=first, a=down, b=right: first + r * a + c * b, n, d)
                flat = np.zeros(blocks(4 * n, width) * width, codes.dtype)
                for r, c in np.ndindex(n, d):
                    flat[4 * r + c] = codes[r, c]
                want.append(flat)
            case.execute()
            for g, flat in enumerate(want):
                got = read(dst, boxed(g * 40, 0, 1, width), 1, flat.size)
                assert (got[0] == flat).all(), (shown(plan), n, d)


def test_frac_refused() -> None:
    plan = next(p for p in plans_of("mte_gm_l1_frac", "a5") if element(p, "src") == "f16")
    refuses(frac(plan, "nd2nz", 0, 4, 64, (1, 1, 16, 0)), "expects n_value to be at least 1, got 0")
    refuses(frac(plan, "nd2nz", 1 << 16, 4, 64, (1, 1, 16, 0)), "expects n_value to fit 16 bits, got 65536")
    refuses(frac(plan, "nd2nz", 4, 4, 64, (1 << 40, 1, 16, 0)), "expects group_count to fit 16 bits")
    refuses(
        frac(plan, "nd2nz", 4, 4, 63, (1, 1, 16, 0)), "src_inner_stride to be whole elements of f16, got 63"
    )
    refuses(
        frac(plan, "nd2nz", 4, 5, 64, (1, 1, 16, 0), smallc0_en=1),
        "at most 4 columns in small-C0 mode, got 5",
    )
    refuses(frac(plan, "nd2nz", 4, 4, 1 << 20, (1, 1, 16, 0)), "of src, which has")
    refuses(frac(plan, "nd2nz", 4, 4, 64, (2, 1, 16, 1 << 15)), "of L1, which has")


# -- L1 to L0 ------------------------------------------------------------------------------------------------

SIZES = ((16, 16), (64, 16), (5, 37), (33, 20), (1, 70), (64, 64))


def feed(plan: Plan, a: int, b: int, at: tuple[int, int] | None = None, semantics: str = "hw") -> Bench:
    names = ("m", "k") if plan.row.name == "mte_l1_l0a" else ("k", "n")
    case = Bench(plan, semantics=semantics, **dict(zip(names, (a, b), strict=True)))
    for name, start in zip(names, at or (0, 0), strict=True):
        case.args[f"{name}_start"] = start
        if at is None:
            del case.args[f"{name}_start"]
    return case


def source_codes(case: Bench, rows: int, cols: int, tall: int, at: tuple[int, int]) -> Array:
    """A window of the NZ matrix in L1 whose column blocks are `tall` rows high."""
    row, col = at
    width = c0(case.pointer("src").dtype)
    place = lambda r, c: ((c + col) // width * tall + r + row) * width + (c + col) % width  # noqa: E731
    return read(case.pointer("src"), place, rows, cols)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("name", FEEDS)
def test_feed(name: str, transpose: bool) -> None:
    for plan in some(name):
        dtype = element(plan, "src")
        made = with_attrs(plan, transpose=transpose)
        assert made is not None
        windows = (
            [None, (0, 2 * c0(dtype)), (16, 3)]
            if "m_start" in plan.operands or "k_start" in plan.operands
            else [None]
        )
        ways = product(SIZES, windows, ("hw", "doc") if name == "mte_l1_l0b" else ("hw",))
        for (a, b), at, semantics in sampling.some(ways, 3, by=lambda way: way[1:]):
            # The matrix in L1 as hardware and manual have it: for L0B they disagree about the transposition.
            turned = transpose if name == "mte_l1_l0a" or semantics == "doc" else not transpose
            crossed = turned == (name == "mte_l1_l0a")  # whether elements change places within a fractal
            rows, cols = (b, a) if turned else (a, b)
            unit = max(16, c0(dtype)) if crossed and semantics == "hw" and plan.isa != "a2a3" else 16
            case = feed(made, a, b, at, semantics)
            start = (at or (0, 0))[::-1] if turned else at or (0, 0)
            codes = source_codes(case, rows, cols, blocks(rows, unit) * unit, (start[0], start[1]))
            case.execute()
            # Squares have lines beyond those of the operand: its fractals lie as far apart as theirs.
            if name == "mte_l1_l0a":
                place = l0a(plan.isa, blocks(a, unit) * unit, b, dtype)
            else:
                place = l0b(a, blocks(b, unit) * unit, dtype)
            got = read(case.pointer("dst"), place, a, b)
            assert (got == (codes.T if turned else codes)).all(), (shown(made), a, b, at, semantics)


@pytest.mark.parametrize("name", FEEDS)
def test_padding_comes_along(name: str) -> None:
    """Whole fractals are copied, and nothing else is written."""
    for plan in some(name):
        dtype = element(plan, "src")
        width = c0(dtype)
        a, b = (17, width + 3) if name == "mte_l1_l0a" else (width + 3, 17)
        case = feed(plan, a, b)
        dst = case.pointer("dst")
        before = dst.buffer.data.copy()
        rows, cols = 32, 2 * width  # of the matrix in L1: m x k or n x k
        codes = source_codes(case, rows, cols, rows, (0, 0))
        case.execute()
        place = l0a(plan.isa, a, b, dtype) if name == "mte_l1_l0a" else nz(17, dtype)
        assert (read(dst, place, rows, cols) == codes).all(), shown(plan)
        size = rows * cols * DTYPES[dtype].bits // 8
        before[dst.offset : dst.offset + size] = dst.buffer.data[dst.offset : dst.offset + size]
        assert (dst.buffer.data == before).all(), shown(plan)


def test_a_row_for_gemv() -> None:
    """Consecutive elements in L1 are consecutive in L0A."""
    for plan in some("mte_l1_l0a"):
        case = feed(plan, 1, 70)
        case.execute()
        flat = lambda r, c: c  # noqa: E731
        assert (read(case.pointer("dst"), flat, 1, 70) == read(case.pointer("src"), flat, 1, 70)).all(), (
            shown(plan)
        )


def test_feed_refused() -> None:
    plan = plans_of("mte_l1_l0a", "a5")[0]
    refuses(feed(plan, 0, 16), "expects m to be at least 1, got 0")
    case = feed(plan, 16, 16)
    case.pointer("dst").offset += 256
    refuses(case, "expects dst to be a multiple of 512 bytes, got address 4352")
    case = feed(plan, 16, 16)
    case.pointer("src").offset += 16
    refuses(case, "expects src to be a multiple of 32 bytes, got address 4112")
    refuses(feed(plan, 256, 512 // DTYPES[element(plan, "src")].bits * 8), "of L0A, which has 65536 bytes")
    refuses(feed(plan, 4000, 4000), "of L1, which has 524288 bytes")


# -- scales --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCALES)
def test_scales(name: str) -> None:
    left = name == "mte_l1_l0a_mx"
    for plan in some(name):
        for size, k in ((16, 64), (5, 128), (40, 96), (17, 32)):
            case = Bench(plan, k=k, **{"m" if left else "n": size})
            for start in ("m_start", "k_start", "n_start"):
                case.args.pop(start, None)
            groups = blocks(k, 32)
            shape = (size, groups) if left else (groups, size)
            place = scales_of_rows(groups) if left else scales_of_columns(groups)
            src = case.pointer("src")
            codes = read(Pointer(src.buffer, src.offset, "u8"), place, *shape)
            before = case.pointer("dst").buffer.data.copy()
            case.execute()
            target = case.scale_pointer("dst", "scale_left" if left else "scale_right")
            assert (read(target, place, *shape) == codes).all(), (shown(plan), size, k)
            whole = blocks(size, 16) * blocks(groups, 2) * 32  # boxes are copied as they are
            assert bytes_at(target, 0, whole) == bytes_at(src, 0, whole), (shown(plan), size, k)
            assert (case.pointer("dst").buffer.data == before).all(), "the operand itself is not touched"


def test_scale_windows() -> None:
    """k_start counts elements, so that 64 of them are one box further."""
    for name, first in (("mte_l1_l0a_mx", "m"), ("mte_l1_l0b_mx", "n")):
        plan = next(p for p in plans_of(name, "a5") if "k_start" in p.operands)
        case = Bench(plan, k=64, k_start=128, **{first: 16, f"{first}_start": 0})
        case.execute()
        loc = "scale_left" if first == "m" else "scale_right"
        assert bytes_at(case.scale_pointer("dst", loc), 0, 32) == bytes_at(case.pointer("src"), 64, 32)
        case = Bench(plan, k=64, k_start=16, **{first: 16, f"{first}_start": 0})
        refuses(case, "expects k_start to be a multiple of 32, got 16")


# -- tables --------------------------------------------------------------------------------------------------


def test_bias() -> None:
    """Values, narrow floats as the f32 numbers that they are; gaps lie between bursts."""
    for plan in some("mte_l1_bt"):
        src_type, dst_type = element(plan, "src"), element(plan, "dst")
        for length, count, src_gap, dst_gap in ((16, 1, 0, 0), (5, 3, 2, 4), (0, 2, 1, 1), (3, 0, 1, 1)):
            case = Bench(plan, len_burst=length, count=count, src_gap=src_gap, dst_gap=dst_gap)
            codes = random_codes(case.rng, src_type, (count, length))
            write(case.pointer("src"), lambda r, c, step=length + src_gap: r * step + c, codes)
            before = case.pointer("dst").buffer.data.copy()
            case.execute()
            got = read(case.pointer("dst"), lambda r, c, step=length + dst_gap: r * step + c, count, length)
            for (r, c), code in np.ndenumerate(codes):
                assert int(got[r, c]) == encode(dst_type, decode(src_type, int(code))), shown(plan)
            end = case.pointer("dst").offset + 4 * count * (length + dst_gap)
            assert (case.pointer("dst").buffer.data[end:] == before[end:]).all()


def test_parameters() -> None:
    """Bytes in units of 64, on A2 and A3 of 128."""
    for plan in some("mte_l1_fb"):
        unit = 128 if plan.isa == "a2a3" else 64
        for length, count, src_gap, dst_gap in ((2, 1, 0, 0), (1, 3, 2, 1), (0, 2, 0, 0)):
            case = Bench(plan, len_burst=length, count=count, src_gap=src_gap, dst_gap=dst_gap)
            want = case.pointer("dst").buffer.data.copy()
            for r in range(count):
                at = case.pointer("dst").offset + r * (length + dst_gap) * unit
                found = bytes_at(case.pointer("src"), r * (length + src_gap) * unit, length * unit)
                want[at : at + length * unit] = np.frombuffer(found, np.uint8)
            case.execute()
            assert (case.pointer("dst").buffer.data == want).all(), shown(plan)


def test_tables_refused() -> None:
    case = Bench(plans_of("mte_l1_fb", "a5")[0], len_burst=1, count=1, src_gap=0, dst_gap=0)
    case.pointer("dst").offset += 32
    refuses(case, "expects dst to be a multiple of 64 bytes, got address 288")
    case = Bench(plans_of("mte_l1_bt", "a5")[0], len_burst=2000, count=1, src_gap=0, dst_gap=0)
    refuses(case, "of BT, which has 4096 bytes")
    case.args["len_burst"] = -1
    refuses(case, "expects len_burst to be at least 0, got -1")


@pytest.mark.parametrize("name", [*FEEDS, "mte_gm_l1_frac", "mte_l1_bt"])
def test_shadow_run(name: str) -> None:
    """A float64 shadow moves along: the elements are the same."""
    for plan in plans_of(name, "a5"):
        pair = []
        for port in (None, Doubles()):
            case = Bench(plan, seed=3)
            case.args.update(dict.fromkeys(scalars(case), 4) | {"smallc0_en": 0})
            for start in ("m_start", "k_start", "n_start"):
                if start in case.args:
                    case.args[start] = 0
            # Floats that a double brings back as they were.
            dtype = element(plan, "src")
            write(case.pointer("src"), lambda r, c: c, random_codes(case.rng, dtype, (1, 512)) & 0x3F)
            if port is not None:
                case.core.port = port
            case.execute()
            place = (lambda r, c: c) if name == "mte_l1_bt" else nz(4, dtype)
            pair.append(read(case.pointer("dst"), place, 1 if name == "mte_l1_bt" else 4, 4))
        assert (pair[0] == pair[1]).all(), shown(plan)
