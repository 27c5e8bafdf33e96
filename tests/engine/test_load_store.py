"""Loads, stores, prefetches, indexed gather and scatter: against walks written from the layout formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.asm.type_text import parse_type
from pto.engine import elements
from pto.engine.memory import ConvTile, MemoryFault, Tile, View
from pto.engine.reference.instr import IllegalInstruction, Port
from pto.engine.reference.load_store import inferred_layout
from pto.isa import encoding
from pto.isa import view as views
from pto.isa.dtypes import DTYPES

from .moving import attribute, chosen_plans, converted, known_plans, run, same_codes, scramble, stored
from .rows import VALID, Case, Doubles, mixed_codes

ROWS = ("tload", "tstore", "tprefetch", "tprefetch_async", "mgather", "mscatter")

# Offset of element (r, c) in a 5-D tensor of shape s and strides t; c0 is 32 bytes of elements.
WALKS = {
    "ND": lambda r, c, s, t, c0: (
        r // (s[1] * s[2] * s[3]) * t[0] + r // (s[3] * s[2]) % s[1] * t[1] + r // s[3] % s[2] * t[2]
        + r % s[3] * t[3] + c * t[4]),
    "DN": lambda r, c, s, t, c0: (
        c // (s[1] * s[2] * s[4]) * t[0] + c // (s[4] * s[2]) % s[1] * t[1] + c // s[4] % s[2] * t[2]
        + r * t[3] + c % s[4] * t[4]),
    "NZ": lambda r, c, s, t, c0: (
        c // s[4] // s[1] * t[0] + c // s[4] % s[1] * t[1] + r // s[3] * t[2] + r % s[3] * t[3] + c % s[4] * t[4]),
    "NC1HWC0": lambda r, c, s, t, c0: (
        r // (s[2] * s[3]) * t[0] + c // s[4] * t[1] + r // s[3] % s[2] * t[2] + r % s[3] * t[3] + c % s[4] * t[4]),
    "NDC1HWC0": lambda r, c, s, t, c0: (
        r // (s[3] * s[4]) * t[0] + c // (s[2] * c0) * t[1] + c // c0 % s[2] * t[2] + r // s[4] % s[3] * t[3]
        + r % s[4] * t[4] + c % c0),
    "FRACTAL_Z": lambda r, c, s, t, c0: (
        r // (s[1] * s[2] * s[4]) * t[0] + r // (s[2] * s[4]) % s[1] * t[1] + r // s[4] % s[2] * t[2]
        + c * t[3] + r % s[4] * t[4]),
    "MX_A_ZZ": lambda r, c, s, t, c0: r // 16 * t[1] + c // 2 * t[2] + r % 16 * t[3] + c % 2 * t[4],
    "MX_B_NN": lambda r, c, s, t, c0: c // 16 * t[1] + r // 2 * t[2] + c % 16 * t[3] + r % 2 * t[4],
    "MX_A_ND": lambda r, c, s, t, c0: r * t[2] + c // 2 * t[3] + c % 2 * t[4],
    "MX_A_DN": lambda r, c, s, t, c0: c // 2 * t[2] + r * t[3] + c % 2 * t[4],
    "MX_B_ND": lambda r, c, s, t, c0: r // 2 * t[2] + c * t[3] + r % 2 * t[4],
    "MX_B_DN": lambda r, c, s, t, c0: c * t[2] + r // 2 * t[3] + r % 2 * t[4],
    "NHWC": lambda r, c, s, t, c0: (
        r // (s[1] * s[2] * s[3]) * t[0] + r // (s[2] * s[3]) % s[1] * t[1] + r // s[3] % s[2] * t[2]
        + r % s[3] * t[3] + c * t[4]),
    "NCHW": lambda r, c, s, t, c0: (
        r // (s[1] * s[3] * s[4]) * t[0] + r // (s[3] * s[4]) % s[1] * t[1] + c * t[2] + r // s[4] % s[3] * t[3]
        + r % s[4] * t[4]),
    "NCDHW": lambda r, c, s, t, c0: (
        r // (s[2] * s[3] * s[4]) * t[0] + c * t[1] + r // (s[3] * s[4]) % s[2] * t[2] + r // s[4] % s[3] * t[3]
        + r % s[4] * t[4]),
}  # fmt: skip

#: layout, 5-D shape, rows and columns of the matrix; elements of 2 bytes (c0 = 16).
TENSORS = [
    ("ND", (2, 1, 2, 3, 40), (12, 40)),
    ("DN", (2, 1, 2, 13, 10), (13, 40)),
    ("NZ", (1, 3, 1, 16, 16), (16, 48)),
    ("NZ", (2, 2, 1, 16, 16), (16, 64)),
    ("NC1HWC0", (2, 2, 2, 4, 16), (16, 32)),
    ("NDC1HWC0", (2, 2, 2, 2, 4), (16, 64)),
    ("FRACTAL_Z", (1, 2, 2, 33, 4), (16, 33)),
    ("MX_A_ZZ", (1, 1, 20, 16, 2), (16, 40)),
    ("MX_B_NN", (1, 3, 7, 16, 2), (14, 48)),
    ("MX_A_ND", (1, 1, 15, 20, 2), (15, 40)),
    ("MX_A_DN", (1, 1, 20, 15, 2), (15, 40)),
    ("MX_B_ND", (1, 1, 8, 33, 2), (16, 33)),
    ("MX_B_DN", (1, 1, 33, 8, 2), (16, 33)),
    ("NHWC", (1, 2, 2, 3, 50), (12, 50)),
    ("NCHW", (1, 2, 50, 2, 3), (12, 50)),
    ("NCDHW", (2, 50, 2, 2, 2), (16, 50)),
]


def pad_code(pad: int, dtype: str, isa: str) -> int:
    """Pad patterns of a load: infinities or integer limits of the types that have a map, else 0."""
    if pad not in (2, 3):
        return 0
    if isa == "cpu" and dtype in ("f4e2m1", "f4e1m2"):
        return 7 if pad == 2 else 1
    if dtype in ("f32", "f16", "bf16"):
        return encoding.encode(DTYPES[dtype], float("inf") if pad == 2 else float("-inf"))
    if DTYPES[dtype].is_int and DTYPES[dtype].bits in (8, 16, 32, *((64,) if isa == "cpu" else ())):
        low, high = DTYPES[dtype].int_range
        return (high if pad == 2 else low) & ((1 << DTYPES[dtype].bits) - 1)
    return 0


def regions(shape: tuple[int, int]) -> list[tuple[int, int]]:
    found = [*VALID, (15, 63)]
    return found if shape == (16, 64) else [(c, r) for r, c in found]


def moved(isa: str, tile: Tile, view: View) -> tuple[int, int]:
    """Return the size that a load moves: as in `views.loaded`, for a view in the layout of its strides."""
    layout = view.effective_layout(inferred_layout(view, tile))
    extent = views.matrix_shape(layout, view.dims5[0], 256 // tile.bits)
    return views.loaded(isa, tile.loc, tile.layout, layout, tile.valid, extent)


def padded(isa: str, tile: Tile, inner: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Return the elements that a load pads: all around the moved ones, or on hardware to the end of a block
    of 32 bytes."""
    rows, cols = tile.shape
    high, wide = tile.box if tile.box != (1, 1) else (256 // tile.bits, 256 // tile.bits)
    if isa != "cpu" and tile.layout in ("ND", "NZ", "ZZ"):
        rows, cols = inner[0], min(-(-inner[1] // wide) * wide, cols)
    elif isa != "cpu":
        rows, cols = min(-(-inner[0] // high) * high, rows), inner[1]
    found = np.zeros(tile.shape, bool)
    found[:rows, :cols] = True
    found[: inner[0], : inner[1]] = False
    return found if isa == "cpu" or 0 not in inner else np.zeros_like(found)


class Undefined(Port):
    """Remembers which elements were declared unspecified."""

    def __init__(self, case: Case) -> None:
        self.mask = np.zeros(case.tile("dst").shape, bool)
        self.tile = case.tile("dst")

    def undefine(self, i, place, region) -> None:  # type: ignore[no-untyped-def]
        data = np.zeros(place.buffer.data.size, np.uint8)
        region.store(
            data, np.full(region.shape, 0xF if place.bits == 4 else 1, elements.code_dtype(place.dtype))
        )
        self.mask |= self.tile.region(*self.tile.shape).load(data, elements.code_dtype(place.dtype)) != 0


def test_tload_fills_and_copies() -> None:
    pads = (0, 1, 2, 3, (1 << 32) | 0x12345678)
    for n, plan in enumerate(chosen_plans("tload")):
        case = Case(plan, seed=n)
        tile = case.tile("dst")
        for k, valid in enumerate(regions(tile.shape)):
            tile.v_row, tile.v_col = valid
            tile.pad = pads[(n + k) % len(pads)]
            scramble(case, "src", "dst")
            valid = moved(plan.isa, tile, case.args["src"])
            want, filled = case.get("dst").copy(), padded(plan.isa, tile, valid)
            watch = case.core.port = Undefined(case)
            run(case, "dst")
            want[filled] = pad_code(tile.pad, tile.dtype, plan.isa)
            table = stored(case.args["src"].buffer.data, tile.dtype).reshape(case.args["src"].dims)
            want[: valid[0], : valid[1]] = table[: valid[0], : valid[1]]
            assert (case.get("dst") == want).all(), (plan.isa, tile, valid, tile.pad)
            unspecified = tile.pad == 0 and (plan.isa == "cpu" or tile.loc != "mat")
            assert (watch.mask == (filled & unspecified)).all()


def base_case(name: str, dtype: str = "i16", loc: str = "vec", layout: str = "ND", seed: int = 0) -> Case:
    """A case of the simulator column on 16x64 tiles of a type, location and layout."""
    side = "dst" if name == "tload" else "src"
    for plan in known_plans(name):
        t = plan.operands[side][0]
        if plan.isa == "cpu" and str(t.dtype) == dtype and t.shape == (16, 64):
            parts = {
                "ND": ("row_major", "none_box"),
                "NZ": ("col_major", "row_major"),
                "DN": ("col_major", "none_box"),
            }
            made = t.replace(loc=loc, blayout=parts[layout][0], slayout=parts[layout][1], fractal=512)
            return Case(plan.replace(operands={**plan.operands, side: (made,)}), seed)
    raise AssertionError(dtype)


def strides_of(shape: tuple[int, ...], inner: int, gap: int, transposed: bool) -> tuple[int, ...]:
    """Strides that keep elements apart, `gap` more than needed at each level."""
    order = (3, 4) if transposed else (4, 3)
    strides = [0] * 5
    step = inner
    for d in (*order, 2, 1, 0):
        strides[d] = step
        step = step * shape[d] + gap
    return tuple(strides)


@pytest.mark.parametrize(("layout", "shape", "extent"), TENSORS, ids=lambda v: str(v).replace(" ", ""))
@pytest.mark.parametrize("tile_layout", ["ND", "NZ"])
def test_every_layout_of_global_memory(
    layout: str, shape: tuple[int, ...], extent: tuple[int, int], tile_layout: str
) -> None:
    walk = WALKS[layout]
    for declared in ("view", "attribute"):
        for valid in (extent, (max(1, extent[0] - 3), extent[1] - 5)):
            strides = strides_of(shape, 16 if layout == "NDC1HWC0" else 1, 3, layout == "DN")
            load = base_case("tload", layout=tile_layout)
            view = load.args["src"] = load.view(
                "src", shape, strides, "i16", layout if declared == "view" else None
            )
            if layout == "NDC1HWC0":  # the innermost channels lie behind the last element
                view.buffer.data = np.concatenate([view.buffer.data, np.zeros(32, np.uint8)])
            view.buffer.data[:] = load.rng.integers(0, 256, view.buffer.data.size)
            tile = load.tile("dst")
            tile.v_row, tile.v_col = valid
            if declared == "attribute":
                attribute(load, "layout", layout.lower())
            run(load, "dst")
            memory = stored(view.buffer.data, "i16")
            want = [
                [memory[walk(r, c, shape, strides, 16)] for c in range(valid[1])] for r in range(valid[0])
            ]
            assert (load.get("dst", valid) == np.array(want)).all()

            store = base_case("tstore", layout=tile_layout)
            out = store.args["dst"] = store.view("dst", shape, strides, "i16", layout)
            if layout == "NDC1HWC0":
                out.buffer.data = np.concatenate([out.buffer.data, np.zeros(32, np.uint8)])
            store.tile("src").v_row, store.tile("src").v_col = valid
            codes = store.random("src", codes=True)
            want_memory = stored(out.buffer.data, "i16")
            for r in range(valid[0]):
                for c in range(valid[1]):
                    want_memory[walk(r, c, shape, strides, 16)] = codes[r, c]
            store.run()
            assert (stored(out.buffer.data, "i16") == want_memory).all()


CONV = [
    ("2x2x2x4x16xi16, NC1HWC0", "NC1HWC0", (2, 2, 2, 4, 16), 1, (16, 32)),
    ("2x2x2x2x4x16xi16, NDC1HWC0", "NDC1HWC0", (2, 2, 2, 2, 4), 16, (16, 64)),
    ("6x2x16x16xi16, FRACTAL_Z", "FRACTAL_Z", (1, 6, 2, 16, 16), 1, (192, 16)),
    ("2x3x2x16x16xi16, FRACTAL_Z", "FRACTAL_Z", (2, 3, 2, 16, 16), 1, (192, 16)),
]


@pytest.mark.parametrize(
    ("text", "layout", "shape", "inner", "extent"), CONV, ids=lambda v: str(v).replace(" ", "")
)
def test_convolution_tiles(
    text: str, layout: str, shape: tuple[int, ...], inner: int, extent: tuple[int, int]
) -> None:
    dense = strides_of(shape, inner, 0, False)
    apart = strides_of(shape, inner, 5, False)
    for name in ("tload", "tstore"):
        case = base_case(name)
        tile = ConvTile(parse_type(f"!pto.conv_tile<mat, {text}>"), case.core.buffers["mat"], 128, "conv")
        tile.buffer.data[:] = case.rng.integers(0, 256, tile.buffer.data.size)
        case.args["dst" if name == "tload" else "src"] = tile
        # A view without a layout has that of the tile.
        view = case.view("gm", shape, apart, "i16", layout if inner == 1 else None)
        view.buffer.data = case.rng.integers(0, 256, view.buffer.data.size + 2 * inner, np.uint8)
        case.args["src" if name == "tload" else "dst"] = view
        memory, chip = stored(view.buffer.data, "i16"), stored(tile.buffer.data[128 : 128 + tile.size], "i16")
        case.run()
        for r in range(extent[0]):
            for c in range(extent[1]):
                here, there = WALKS[layout](r, c, shape, apart, 16), WALKS[layout](r, c, shape, dense, 16)
                if name == "tload":
                    chip[there] = memory[here]
                else:
                    memory[here] = chip[there]
        assert (stored(view.buffer.data, "i16") == memory).all()
        assert (stored(tile.buffer.data[128 : 128 + tile.size], "i16") == chip).all()


def test_compact_tile_is_padded_up_to_its_row_block() -> None:
    case = base_case("tload", layout="NZ", loc="mat")
    tile = case.tile("dst")
    tile.rows, tile.pitch, tile.compact, tile.pad = 32, (32, 64), "normal", 1
    case.core.buffers["mat"].data[:] = 0xA5
    tile.v_row, tile.v_col = 5, 30
    scramble(case, "src")
    case.run()
    table = stored(case.args["src"].buffer.data, "i16").reshape(16, 64)
    chip = stored(tile.buffer.data[tile.address : tile.address + 32 * 64 * 2], "i16")
    blocks = chip[: 4 * 16 * 16].reshape(4, 16, 16)  # column blocks lie 16 rows apart, not 32
    for r in range(16):
        for c in range(64):
            assert blocks[c // 16, r, c % 16] == (table[r, c] if r < 5 and c < 30 else 0)
    assert (chip[4 * 16 * 16 :] == 0xA5A5).all()


def test_a_view_smaller_than_the_tile_is_refused() -> None:
    for name, side in (("tload", "src"), ("tstore", "dst")):
        case = base_case(name)
        case.args[side] = case.view(side, (15, 64), (64, 1), "i16")
        with pytest.raises(
            IllegalInstruction, match=r"expects \w+ to hold the valid region of the tile, 16x64"
        ):
            case.run()
        case.args["dst" if name == "tload" else "src"].v_row = 15
        case.run()


def test_a_load_beyond_its_array_faults() -> None:
    case = base_case("tload")
    case.args["src"].buffer.data = case.args["src"].buffer.data[:-2]
    with pytest.raises(MemoryFault):
        case.run()


def test_tstore_copies_or_converts() -> None:
    for n, plan in enumerate(chosen_plans("tstore")):
        if "preQuantScalar" in plan.operands:
            continue
        case = Case(plan, seed=n)
        src, dst = case.tile("src"), case.args["dst"]
        for k, valid in enumerate(regions(src.shape)):
            codes = mixed_codes(case.rng, src.dtype, src.shape)
            case.set("src", codes, valid)
            scramble(case, "dst")
            simulated = plan.isa == "cpu" and src.dtype != "f8e8m0"  # which has no zero
            relu = (src.loc == "acc" or simulated) and (n + k) % 2 == 0
            attribute(case, "reluPreMode", "normal_relu" if relu else "no_relu")
            want = stored(dst.buffer.data, dst.dtype).reshape(dst.dims)
            run(case, "dst")
            part = codes[: valid[0], : valid[1]]
            if relu:
                part = np.where(elements.decode(src.dtype, part) > 0, part, 0).astype(part.dtype)
            if src.loc == "acc" or plan.isa == "cpu":
                part = part if src.dtype == dst.dtype else converted(part, src.dtype, dst.dtype)
            want[: valid[0], : valid[1]] = part
            assert same_codes(case.get("dst", dst.dims), want, dst.dtype), (plan.isa, src, dst.dtype, relu)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8", "u8", "i16", "i32", "u32", "f8e4m3", "i64"])
@pytest.mark.parametrize("how", ["add", "max", "min"])
def test_tstore_atomics(dtype: str, how: str) -> None:
    case = base_case("tstore", dtype)
    codes = mixed_codes(case.rng, dtype, (16, 64))
    case.set("src", codes, (15, 33))
    old = mixed_codes(case.rng, dtype, (16, 64))
    case.set("dst", old)
    attribute(case, "atomicType", f"atomic_{how}")
    run(case, "dst")
    want = old.copy()
    for r in range(15):
        for c in range(33):
            want[r, c] = combine(how, int(old[r, c]), int(codes[r, c]), dtype)
    assert same_codes(case.get("dst", (16, 64)), want, dtype)


def test_atomic_add_converts_first() -> None:
    case = base_case("tstore", "f32")
    case.args["dst"] = case.view("dst", (16, 64), (64, 1), "f16")
    case.set(
        "src", np.full((16, 64), encoding.encode(DTYPES["f32"], 0.0004884))
    )  # a bit more than half a step
    case.set("dst", np.full((16, 64), encoding.encode(DTYPES["f16"], 1.0)))
    attribute(case, "atomicType", "atomic_add")
    case.run()
    addend = encoding.decode(
        DTYPES["f16"], encoding.convert(encoding.encode(DTYPES["f32"], 0.0004884), "f32", "f16")
    )
    assert (case.get("dst", (16, 64)) == encoding.encode(DTYPES["f16"], 1.0 + addend)).all()


def combine(how: str, old: int, new: int, dtype: str) -> int:
    """One atomic step on codes. A sum in doubles has bits enough not to be rounded twice."""
    d = DTYPES[dtype]
    a, b = encoding.decode(d, old), encoding.decode(d, new)
    if how == "max":
        return new if a < b else old
    if how == "min":
        return new if b < a else old
    if d.is_int:
        return (old + new) & ((1 << d.bits) - 1)
    return encoding.encode(d, float(a) + float(b))


def test_moves_pass_through_a_shadow_run() -> None:
    for name, out in (("tload", "dst"), ("tstore", "dst")):
        for dtype in ("f32", "f16", "bf16", "hif8", "f4e2m1", "i32"):
            case = base_case(name, dtype)
            case.core.port = Doubles()
            source = case.args["src"]
            codes = elements.encode(dtype, case.rng.integers(-3, 4, (16, 64)).astype(np.float64))
            if name == "tload":
                case.set("src", codes)
            else:
                case.set("src", codes, source.shape)
            case.run()
            assert (case.get(out, (16, 64)) == codes).all()


def test_tprefetch_reads_densely() -> None:
    for n, plan in enumerate(chosen_plans("tprefetch")):
        case = Case(plan, seed=n)
        tile = case.tile("dst")
        for valid in VALID:
            tile.v_row, tile.v_col = valid
            dims = (16, 64)
            case.args["src"] = case.view("src", dims, (80, 1), tile.dtype)  # strides do not count
            scramble(case, "dst")
            case.args["src"].buffer.data[:] = case.rng.integers(0, 256, case.args["src"].buffer.data.size)
            size = tile.size
            chip = stored(tile.buffer.data[tile.address : tile.address + size], tile.dtype)
            memory = stored(case.args["src"].buffer.data, tile.dtype)
            run(case, "dst")
            for r in range(valid[0]):
                for c in range(valid[1]):
                    chip[r * 64 + c] = memory[r * 64 + c]
            assert (stored(tile.buffer.data[tile.address : tile.address + size], tile.dtype) == chip).all()


def test_tprefetch_async_is_done_at_once() -> None:
    for plan in chosen_plans("tprefetch_async"):
        assert run(Case(plan)) == 0


# --- indexed ----------------------------------------------------------------------------------------------


def bounded(k: int, capacity: int, how: str) -> int | None:
    """An index under its rule; None where nothing is read or written."""
    k %= 1 << 64
    if how == "clamp":
        return min(k, capacity - 1)
    if how == "wrap":
        return k % capacity
    if how in ("zero", "skip") and k >= capacity:
        return None
    return k


INDICES = {
    "i32": (-5, -1, 0, 3, 2**31 - 1),
    "u32": (0, 7, 2**32 - 1),
    "i8": (-1, 0, 5),
    "u64": (0, 9, 2**64 - 1),
}


def indices(case: Case, capacity: int, shape: tuple[int, int], dtype: str, safe: bool) -> list[list[int]]:
    """Random indices of a table, with strange ones among them unless they would be read unchecked."""
    top = min(capacity, 1 << DTYPES[dtype].bits - (DTYPES[dtype].kind == "i"))
    made = case.rng.integers(0, top, shape).tolist()
    if not safe:
        for row in made:
            for c in range(0, len(row), 3):
                row[c] = int(case.rng.choice(np.array(INDICES.get(dtype, (0, 1)), object)))
    return made


def indexed_case(plan, coalesce: str, valid: tuple[int, int], seed: int):  # type: ignore[no-untyped-def]
    """A case on a strided table of 2 x 9 rows, with index tile and data tile set up."""
    case = Case(plan, seed)
    data = case.tile("dst" if plan.row.name == "mgather" else "src")
    data.v_row, data.v_col = valid
    case.args["mem"] = mem = case.view("mem", (1, 2, 1, 9, 64), (1500, 700, 700, 70, 1), data.dtype)
    mem.buffer.data[:] = case.rng.integers(0, 256, mem.buffer.data.size)
    attribute(case, "coalesce", coalesce)
    return case, data, mem


def put_indices(case: Case, made: list[list[int]], by_row: bool, valid: tuple[int, int]) -> None:
    idx = case.args["idx"]
    mask = (1 << DTYPES[idx.dtype].bits) - 1
    if by_row:  # read from the start of the storage, whatever the layout
        codes = np.array([row[0] & mask for row in made], np.uint64).astype(elements.code_dtype(idx.dtype))
        at = getattr(idx, "address", 0)
        raw = codes.view(np.uint8)
        idx.buffer.data[at : at + raw.size] = raw
        if hasattr(idx, "v_row"):
            idx.v_row, idx.v_col = 1, valid[0]
    else:
        case.set("idx", np.array([[k & mask for k in row] for row in made], np.uint64))
        if hasattr(idx, "v_row"):
            idx.v_row, idx.v_col = valid


@pytest.mark.parametrize("coalesce", ["row", "elem"])
@pytest.mark.parametrize("how", ["undefined", "clamp", "wrap", "zero"])
def test_mgather(coalesce: str, how: str) -> None:
    for n, plan in enumerate(chosen_plans("mgather")):
        valid = [v for v in VALID if 0 not in v][n % 5]
        case, dst, mem = indexed_case(plan, coalesce, valid, n)
        by_row = coalesce == "row"
        capacity = (18 if plan.isa == "a2a3" else 9) if by_row else 2 * 9 * 64
        shape = (valid[0], 1) if by_row else valid
        made = indices(case, capacity, shape, case.args["idx"].dtype, how == "undefined")
        put_indices(case, made, by_row, valid)
        attribute(case, "gatherOob", how)
        scramble(case, "dst")
        want = case.get("dst")
        if dst.loc == "mat" and not by_row:
            want[:] = 0
        memory = stored(mem.buffer.data, mem.dtype)
        for r in range(valid[0]):
            for c in range(valid[1]):
                k = bounded(made[r][0 if by_row else c], capacity, how)
                want[r, c] = 0 if k is None else memory[k * 70 + c] if by_row else memory[k]
        run(case, "dst")
        assert (case.get("dst") == want).all(), (plan.isa, dst, valid)


def test_indexed_auto_mode() -> None:
    """Element indices where the tiles agree and have more than one column; else one index per row."""
    plan = next(
        p for p in known_plans("mgather") if p.isa == "cpu" and str(p.operands["dst"][0].dtype) == "i32"
    )
    for valid, index, by_row in (
        ((4, 6), (4, 6), False),
        ((4, 6), (1, 4), True),
        ((4, 6), (4, 1), True),
        ((4, 1), (4, 1), True),
    ):
        case, _, mem = indexed_case(plan, "auto", valid, 1)
        put_indices(case, [[r + c for c in range(max(index[1], valid[1]))] for r in range(4)], by_row, valid)
        case.args["idx"].v_row, case.args["idx"].v_col = index
        run(case, "dst")
        memory = stored(mem.buffer.data, "i32")
        for r in range(valid[0]):
            for c in range(valid[1]):
                assert case.get("dst")[r, c] == memory[r * 70 + c if by_row else r + c]


@pytest.mark.parametrize("coalesce", ["row", "elem"])
@pytest.mark.parametrize("how", ["undefined", "clamp", "wrap", "skip"])
def test_mscatter(coalesce: str, how: str) -> None:
    for n, plan in enumerate(chosen_plans("mscatter")):
        valid = [v for v in VALID if 0 not in v][n % 5]
        for atomic in ("none", "add", "max", "min"):
            case, src, mem = indexed_case(plan, coalesce, valid, n)
            by_row = coalesce == "row"
            capacity = (18 if plan.isa == "a2a3" else 9) if by_row else 2 * 9 * 64
            shape = (valid[0], 1) if by_row else valid
            made = indices(
                case, capacity if by_row else 300, shape, case.args["idx"].dtype, how == "undefined"
            )
            put_indices(case, made, by_row, valid)
            attribute(case, "scatterOob", how)
            attribute(case, "scatterAtomicOp", atomic)
            codes = mixed_codes(case.rng, src.dtype, src.shape)
            case.set("src", codes)
            want = stored(mem.buffer.data, mem.dtype)
            for r in range(valid[0]):
                for c in range(valid[1]):
                    k = bounded(made[r][0 if by_row else c], capacity, how)
                    if k is None:
                        continue
                    t, new = (k * 70 + c if by_row else k), int(codes[r, c])
                    want[t] = new if atomic == "none" else combine(atomic, int(want[t]), new, src.dtype)
            case.run()
            assert same_codes(stored(mem.buffer.data, mem.dtype), want, src.dtype), (
                plan.isa,
                src,
                atomic,
                valid,
            )


@examples(40)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=40), st.sampled_from(["f32", "f16", "i16"]),
       st.sampled_from(["none", "add", "max"]), st.integers(0, 2**32))  # fmt: skip
def test_colliding_stores_go_in_row_major_order(
    places: list[int], dtype: str, atomic: str, seed: int
) -> None:
    plan = next(
        p for p in known_plans("mscatter") if p.isa == "cpu" and str(p.operands["src"][0].dtype) == dtype
    )
    case, _, mem = indexed_case(plan, "elem", (1, len(places)), seed)
    put_indices(case, [places], False, (1, len(places)))
    attribute(case, "scatterAtomicOp", atomic)
    codes = case.random("src")
    step = 80 if seed % 2 else 1  # far apart, or close together
    case.set("idx", np.array([places]) * step)
    want = stored(mem.buffer.data, dtype)
    for c, k in enumerate(places):
        t, new = k * step, int(codes[0, c])
        want[t] = new if atomic == "none" else combine(atomic, int(want[t]), new, dtype)
    case.run()
    assert same_codes(stored(mem.buffer.data, dtype), want, dtype)


def test_an_unchecked_index_may_fault() -> None:
    for name in ("mgather", "mscatter"):
        plan = next(p for p in known_plans(name) if p.isa == "cpu")
        for k in (-1, 2**31 - 1):
            case, *_ = indexed_case(plan, "elem", (1, 2), 0)
            put_indices(case, [[0, k]], False, (1, 2))
            with pytest.raises(MemoryFault):
                case.run()


@pytest.mark.parametrize("coalesce", ["row", "elem"])
def test_empty_regions_do_nothing(coalesce: str) -> None:
    for name, data in (("mgather", "dst"), ("mscatter", "src")):
        for n, plan in enumerate(chosen_plans(name)):
            for valid in ((0, 64), (16, 0)):
                case, *_ = indexed_case(plan, coalesce, valid, n)
                scramble(case, data, "idx")
                run(case)
