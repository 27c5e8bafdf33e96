"""CTRL, its effect on stores and products, and words of global memory: programs on all engines."""

from __future__ import annotations

import shutil
from functools import cache
from typing import Any

import numpy as np
import pytest

import pto
from pto.diag import DiagnosticError
from pto.engine.elements import ARRAY_DTYPES
from pto.isa import ctrl

from .native.without_pack import compile_calls

ROWS = (
    "ld_dev st_dev dcci dsb get_ctrl set_ctrl sbitset0 sbitset1 set_atomic_add set_atomic_max set_atomic_min "
    "set_atomic_none set_atomic_f32 set_atomic_f16 set_atomic_bf16 set_atomic_s32 set_atomic_s16 set_atomic_s8"
).split()

Array = np.ndarray[Any, Any]
ENGINES = ("reference", "native", "cpp")
VECTOR = 'module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}'
CUBE = 'module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<cube>}'


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "cpp" and shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("no C++ compiler")
    return str(request.param)


@cache
def ready() -> None:
    """Compile the calls of all programs in one go."""
    compile_calls(map(pto.parse, (WORDS, _updates(), SUM, PRODUCT)))


def run(text: str, engine: str, *arrays: Array, **more: Any) -> Any:
    if engine == "native":
        ready()
    return pto.kernel(pto.parse(text), engine=engine, target="a5").run(*arrays, **more)


def constants(*numbers: int) -> str:
    return "\n".join(f"  %n{n} = arith.constant {n} : i64" for n in numbers)


# -- words and the register ----------------------------------------------------------------------------------

WORDS = f"""{VECTOR} {{
func.func @k(%in: !pto.ptr<i32>, %out: !pto.ptr<i32>, %long: !pto.ptr<i64>, %byte: !pto.ptr<i8>, %bit: i64) {{
{constants(48, 60)}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %v = pto.ld_dev %in[%c1] : !pto.ptr<i32, gm> -> i32
  pto.st_dev %v, %out[%c3] : !pto.ptr<i32, gm>, i32
  %w = pto.ld_dev %byte[%c2] : !pto.ptr<i8> -> i8
  pto.st_dev %w, %byte[%c5] : !pto.ptr<i8>, i8
  %reset = pto.get_ctrl : i64
  pto.st_dev %reset, %long[%c0] : !pto.ptr<i64>, i64
  %a = pto.sbitset1 %reset, %n48 : i64, i64 -> i64
  %b = pto.sbitset0 %a, %n60 : i64, i64 -> i64
  %c = pto.sbitset1 %b, %bit : i64, i64 -> i64
  pto.set_ctrl %c : i64
  pto.set_atomic_s16
  pto.set_atomic_min
  %set = pto.get_ctrl : i64
  pto.st_dev %set, %long[%c1] : !pto.ptr<i64>, i64
  pto.set_atomic_none
  pto.set_atomic_max
  %none = pto.get_ctrl : i64
  pto.st_dev %none, %long[%c2] : !pto.ptr<i64>, i64
  pto.set_ctrl %reset : i64
  %again = pto.get_ctrl : i64
  pto.st_dev %again, %long[%c3] : !pto.ptr<i64>, i64
  pto.dcci %out "SINGLE_CACHE_LINE" : !pto.ptr<i32>
  pto.dcci %long #pto.dcci_cache_line<ENTIRE_DATA_CACHE>, #pto.dcci_dst<CACHELINE_OUT> : !pto.ptr<i64>
  pto.dsb "DDR"
  pto.dsb #pto.dsb_mem<ALL>
  return
}}
}}
"""


def test_words_and_the_control_register(engine: str) -> None:
    given, out = np.array([5, -7, 11], np.int32), np.zeros(4, np.int32)
    words, letters = np.zeros(4, np.int64), np.arange(-3, 3, dtype=np.int8)
    run(WORDS, engine, given, out, words, letters, 127)  # of which the low six bits count
    assert out.tolist() == [0, 0, 0, -7] and letters.tolist() == [-3, -2, -1, 0, 1, -1]
    kept = 1 << 48 | 1 << 63
    expected = [1 << 60, kept | 3 << 6 | 2 << 9, kept | 1 << 9, 1 << 60]
    assert words.view(np.uint64).tolist() == expected


def test_words_outside_their_array(engine: str) -> None:
    text = WORDS.replace("%in[%c1]", "%in[%c5]")
    with pytest.raises(DiagnosticError, match=r"PTO-E2101"):
        arrays = (np.zeros(4, t) for t in (np.int32, np.int32, np.int64))
        found = run(text, engine, *arrays, np.zeros(6, np.int8), 1)
        raise DiagnosticError(found.diagnostics)


# -- atomic updates ------------------------------------------------------------------------------------------

#: Words, element types of pointers, and the types that arrays hold.
TYPES = {"f32": "f32", "f16": "f16", "bf16": "bf16", "s32": "i32", "s16": "i16", "s8": "i8"}
ROW = 64  # bytes
ROWS_IN_UB = 4


def _updates() -> str:
    """Each type: rows of UB added, all of them to one row of GM; then their maxima and minima, row by row."""
    parts, arguments = [], []
    for n, (word, elem) in enumerate(TYPES.items()):
        arguments += [f"%a{word}: !pto.ptr<{elem}>", f"%b{word}: !pto.ptr<{elem}>"]
        source, target = f"!pto.ptr<{elem}, ub>", f"!pto.ptr<{elem}>"
        sizes = ROW * 8 // {"f32": 32, "s32": 32, "s8": 8}.get(word, 16)
        parts.append(f"""
  %at{word} = arith.constant {1024 * n} : i64
  %row{word} = arith.constant {sizes} : index
  %rest{word} = arith.constant {sizes * (1 + ROWS_IN_UB)} : index
  %u{word} = pto.castptr %at{word} : i64 -> {source}
  %max{word} = pto.addptr %b{word}, %row{word} : {target} -> {target}
  %min{word} = pto.addptr %b{word}, %rest{word} : {target} -> {target}
  pto.mte_gm_ub %a{word}, %u{word}, %n0, %n64 nburst(%n4, %n64, %n64) : {target}, {source}, i64, i64, i64, i64, i64
  pto.set_flag["PIPE_MTE2", "PIPE_MTE3", "EVENT_ID0"]
  pto.wait_flag["PIPE_MTE2", "PIPE_MTE3", "EVENT_ID0"]
  pto.set_atomic_{word}
  pto.set_atomic_add
  pto.mte_ub_gm %u{word}, %b{word}, %n64 nburst(%n4, %n64, %n0) : {source}, {target}, i64, i64, i64, i64
  pto.set_atomic_max
  pto.mte_ub_gm %u{word}, %max{word}, %n64 nburst(%n4, %n64, %n64) : {source}, {target}, i64, i64, i64, i64
  pto.set_atomic_min
  pto.copy_ubuf_to_gm %u{word}, %min{word}, %n0, %n4, %n64, %n0, %n64, %n64
    : {source}, {target}, i64, i64, i64, i64, i64, i64
  pto.barrier #pto.pipe<PIPE_ALL>
  pto.set_atomic_none
""")
    head = f"func.func @k({', '.join(arguments)}) attributes {{pto.kernel}} {{\n{constants(0, 4, 64)}"
    return f"{VECTOR} {{\n{head}\n{''.join(parts)}  return\n}}\n}}\n"


def numbers(elem: str, rows: int, seed: int) -> Array:
    """Rows of 64 bytes of an element type."""
    dtype = ARRAY_DTYPES[elem]
    rng = np.random.default_rng(seed)
    cols = ROW // dtype.itemsize
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, (rows, cols), dtype, endpoint=True)
    return (rng.standard_normal((rows, cols)) * 40).astype(dtype)


def test_stores_under_atomic_types_and_operations(engine: str) -> None:
    arrays, expected = [], []
    for seed, elem in enumerate(TYPES.values()):
        given, old = numbers(elem, ROWS_IN_UB, seed), numbers(elem, 1 + 2 * ROWS_IN_UB, 100 + seed)
        want = old.copy()
        with np.errstate(over="ignore"):
            for line in given:  # one after the other, each sum rounded
                want[0] = (want[0].astype(np.float32) + line.astype(np.float32)).astype(want.dtype) \
                    if want.dtype.kind not in "iu" else want[0] + line  # fmt: skip
        high, low = want[1 : 1 + ROWS_IN_UB], want[1 + ROWS_IN_UB :]
        high[...] = np.where(high < given, given, high)
        low[...] = np.where(given < low, given, low)
        arrays += [given, old]
        expected.append(want)
    run(_updates(), engine, *arrays)
    for (word, _), got, want in zip(TYPES.items(), arrays[1::2], expected, strict=True):
        assert got.tobytes() == want.tobytes(), word


SUM = f"""{VECTOR} {{
func.func @k(%a: !pto.ptr<i32>, %b: !pto.ptr<i32>) attributes {{pto.kernel}} {{
{constants(0, 1, 64)}
  %u = pto.castptr %n0 : i64 -> !pto.ptr<i32, ub>
  pto.mte_gm_ub %a, %u, %n0, %n64 nburst(%n1, %n64, %n64) : !pto.ptr<i32>, !pto.ptr<i32, ub>, i64, i64, i64, i64, i64
  pto.set_flag["PIPE_MTE2", "PIPE_MTE3", "EVENT_ID0"]
  pto.wait_flag["PIPE_MTE2", "PIPE_MTE3", "EVENT_ID0"]
  pto.set_atomic_s32
  pto.set_atomic_add
  pto.mte_ub_gm %u, %b, %n64 nburst(%n1, %n64, %n64) : !pto.ptr<i32, ub>, !pto.ptr<i32>, i64, i64, i64, i64
  pto.set_atomic_none
  pto.barrier #pto.pipe<PIPE_ALL>
  return
}}
}}
"""


def test_blocks_that_update_the_same_bytes() -> None:
    """Two updates do not race; plain stores do."""
    given, total = np.arange(16, dtype=np.int32), np.ones(16, np.int32)
    found = run(SUM, "reference", given, total, blocks=3, sanitize="all")
    assert not found.diagnostics and (total == 1 + 3 * given).all()
    plain = SUM.replace("  pto.set_atomic_s32\n", "")
    found = run(plain, "reference", given, total, blocks=3, sanitize="race")
    assert {d.code for d in found.diagnostics} == {"PTO-E2202"}


def test_updates_are_of_whole_elements(engine: str) -> None:
    text = SUM.replace("pto.mte_ub_gm %u, %b, %n64 nburst(%n1, %n64, %n64)",
                       "pto.mte_ub_gm %u, %b, %n1 nburst(%n1, %n64, %n64)")  # fmt: skip
    with pytest.raises(DiagnosticError, match="expects bursts of whole elements of the atomic type"):
        found = run(text, engine, np.zeros(16, np.int32), np.zeros(16, np.int32))
        raise DiagnosticError(found.diagnostics)


# -- products and the way out of L0C -------------------------------------------------------------------------

#: Words of CTRL under which the program runs, all clauses left out.
CONTROLS = {
    "reset": ctrl.RESET,
    "reset, bit 48": ctrl.RESET | 1 << 48,
    "told, saturated": 0,
    "told, NaN kept": 1 << 50,
    "told, not saturated": 1 << 48,
    "told, TF32": 1 << 48 | 1 << 46 | 1 << 47,
    "added": ctrl.RESET | 1 << 6,
}
SIDE = 16

PRODUCT = f"""{CUBE} {{
func.func @k(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %wide: !pto.ptr<f32>, %narrow: !pto.ptr<f16>, %word: i64)
    attributes {{pto.kernel}} {{
{constants(0, 1, 2, 4, 16, 32, 48, 1024, 2048)}
  %l = pto.castptr %n0 : i64 -> !pto.ptr<f32, l1>
  %r = pto.castptr %n1024 : i64 -> !pto.ptr<f32, l1>
  %l0a = pto.castptr %n0 : i64 -> !pto.ptr<f32, l0a>
  %l0b = pto.castptr %n0 : i64 -> !pto.ptr<f32, l0b>
  %l0c = pto.castptr %n0 : i64 -> !pto.ptr<f32, l0c>
  %size = arith.constant 4194306 : i64
  %stride = arith.constant 562949953421344 : i64
  pto.set_loop1_stride_outtol1 %stride : i64
  pto.set_loop_size_outtol1 %size : i64
  pto.copy_gm_to_cbuf %a, %l, %n16, %n32, %n64, %n32 : !pto.ptr<f32>, !pto.ptr<f32, l1>, i64, i64, i64, i64
  pto.copy_gm_to_cbuf %b, %r, %n16, %n32, %n64, %n32 : !pto.ptr<f32>, !pto.ptr<f32, l1>, i64, i64, i64, i64
  pto.set_flag["PIPE_MTE2", "PIPE_MTE1", "EVENT_ID0"]
  pto.wait_flag["PIPE_MTE2", "PIPE_MTE1", "EVENT_ID0"]
  pto.load_cbuf_to_ca %l, %l0a, %n0, %n0, %n1, %n2, %n1, %n1
    : !pto.ptr<f32, l1>, !pto.ptr<f32, l0a>, i64, i64, i64, i64, i64, i64
  pto.load_cbuf_to_cb %r, %l0b, %n0, %n0, %n1, %n2, %n1, %n1 {{transpose = true}}
    : !pto.ptr<f32, l1>, !pto.ptr<f32, l0b>, i64, i64, i64, i64, i64, i64
  pto.set_flag["PIPE_MTE1", "PIPE_M", "EVENT_ID0"]
  pto.wait_flag["PIPE_MTE1", "PIPE_M", "EVENT_ID0"]
  %saved = pto.get_ctrl : i64
  pto.set_ctrl %word : i64
  pto.mad %l0a, %l0b, %l0c, %n16, %n16, %n16
    : !pto.ptr<f32, l0a>, !pto.ptr<f32, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64
  pto.set_flag["PIPE_M", "PIPE_FIX", "EVENT_ID0"]
  pto.wait_flag["PIPE_M", "PIPE_FIX", "EVENT_ID0"]
  pto.mte_l0c_gm %l0c, %wide, %n16, %n16, %n16, %n16, %n0, %n0, nz2nd
    : !pto.ptr<f32, l0c>, !pto.ptr<f32>, i64, i64, i64, i64, i64, i64
  pto.set_atomic_none
  pto.mte_l0c_gm %l0c, %narrow, %n16, %n16, %n16, %n16, %n0, %n0, pre_quant(mode = f322f16), nz2nd
    : !pto.ptr<f32, l0c>, !pto.ptr<f16>, i64, i64, i64, i64, i64, i64
  pto.set_ctrl %saved : i64
  pto.barrier #pto.pipe<PIPE_ALL>
  return
}}
}}
""".replace("  %size", "  %n64 = arith.constant 64 : i64\n  %size")

F16_MAX, F32_MAX = 65504.0, np.finfo(np.float32).max


def operands() -> tuple[Array, Array]:
    """A diagonal matrix with special numbers, and one whose row k meets its element k."""
    rng = np.random.default_rng(3)
    a = np.diag(rng.standard_normal(SIDE).astype(np.float32) * 3)
    b = (rng.standard_normal((SIDE, SIDE)) * 100).astype(np.float32)
    a[0, 0], a[1, 1], a[2, 2], a[3, 3] = np.inf, np.nan, 1e30, 1000.0
    b[2] = np.where(rng.random(SIDE) < 0.5, 1e20, -1e20)
    b[3] = np.linspace(-200, 200, SIDE)
    return a, b


def finite(x: Array, limit: float) -> Array:
    return np.where(np.isnan(x), 0, np.clip(x, -limit, limit)).astype(np.float32)


def shortened(x: Array) -> Array:
    """f32 numbers with 10 bits behind the point, ties away from zero."""
    codes = x.view(np.uint32)
    rounded = ((codes + 0x1000) & ~np.uint32(0x1FFF)).view(np.float32)
    return np.where(np.isfinite(x), rounded, x)


def diagonal_product(a: Array, b: Array) -> Array:
    """Row by row: all but one factor of a sum are 0, which infinities and NaN make NaN."""
    out = np.zeros((SIDE, SIDE), np.float32)
    with np.errstate(all="ignore"):
        for k in range(SIDE):
            out = out + a[:, k, None] * b[None, k]
    return out


def test_products_and_write_backs_obey_the_register(engine: str) -> None:
    a, b = operands()
    for name, word in CONTROLS.items():
        old = np.full((SIDE, SIDE), 3, np.float32)
        wide, narrow = old.copy(), np.zeros((SIDE, SIDE), np.float16)
        run(PRODUCT, engine, a, b, wide, narrow, word)
        told, bit48 = not ctrl.bit(word, 60), ctrl.bit(word, 48)
        saturated = told and not bit48
        left, right = (shortened(x) if ctrl.bit(word, 46) else x for x in (a, b))
        if saturated:
            left, right = finite(left, F32_MAX), finite(right, F32_MAX)
        sums = diagonal_product(left, right)
        sums = np.clip(sums, -F32_MAX, F32_MAX) if saturated else sums
        stored = sums + old if name == "added" else sums
        assert np.array_equal(wide, stored, equal_nan=True), name
        with np.errstate(over="ignore"):
            half = finite(sums, F16_MAX) if (told and not bit48) or (not told and bit48) else sums
            if not told and not bit48:  # finite values stay finite
                half = np.where(np.isfinite(sums), np.clip(sums, -F16_MAX, F16_MAX), sums)
            assert np.array_equal(narrow, half.astype(np.float16), equal_nan=True), name
