"""Whole cube programs at the level of pointers: the same bits as tiles, silent sanitizers, unit flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto

EXAMPLES = Path(__file__).parents[3] / "examples"


def matrices(m: int, k: int, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)


def test_the_same_bits_as_tiles() -> None:
    """examples/micro/gemm.pto and examples/kernels/gemm.pto both add up slabs of 64 along K."""
    m, k, n = 128, 256, 64
    a, b = matrices(m, k, n)
    micro, tiles = np.zeros((m, n), np.float32), np.zeros((m, 128), np.float32)
    result = pto.kernel(pto.parse(EXAMPLES / "micro" / "gemm.pto"), engine="reference").run(
        a, b, micro, k, blocks=2, sanitize="all"
    )
    assert not result.diagnostics
    wide = np.hstack([b, np.zeros((k, 128 - n), np.float16)])
    pto.kernel(pto.parse(EXAMPLES / "kernels" / "gemm.pto"), engine="reference").run(
        a, wide, tiles, m, 128, k
    )
    assert (micro.view(np.uint32) == tiles[:, :n].copy().view(np.uint32)).all()
    np.testing.assert_allclose(micro, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)


FLAG = "pto.{0}_flag[<PIPE_{1}>, <PIPE_{2}>, <EVENT_ID0>]\n"
CONSTANTS = "\n".join(
    f"%n{v} = arith.constant {v} : i64" for v in (0, 1, 2, 16, 32, 64, 128, 512, 1024, 2048, 8192)
)


def both(source: str, target: str) -> str:
    return FLAG.format("set", source, target) + FLAG.format("wait", source, target)


def program(arguments: str, body: str, target: str = "a5") -> str:
    return f"""
    module attributes {{pto.target_arch = "{target}"}} {{
      func.func @f({arguments}) attributes {{pto.entry, pto.kernel_kind = #pto.kernel_kind<cube>}} {{
        {CONSTANTS}
        %no = arith.constant false
        {body}
        return
      }}
    }}"""


def loads(dtype: str, n: int, b_first: int, row_bytes: int) -> str:
    """A (n x n) and B (n x n) of square matrices from GM through L1 to L0A and L0B."""
    nz = f"""nd2nz, shape(%n{n}, %n{n}), src_layout(%n{row_bytes}), dst_group(%n1, %n1, %n{n}, %n0), ctrl(%n0, %no)
      : !pto.ptr<{dtype}, gm>, !pto.ptr<{dtype}, l1>, nd2nz, shape i64, i64, src_layout(i64),
        dst_group i64, i64, i64, i64, ctrl i64, i1"""
    return f"""
    %l1_a = pto.castptr %n0 : i64 -> !pto.ptr<{dtype}, l1>
    %l1_b = pto.castptr %n{b_first} : i64 -> !pto.ptr<{dtype}, l1>
    pto.mte_gm_l1_frac %a, %l1_a, {nz}
    pto.mte_gm_l1_frac %b, %l1_b, {nz}
    {both("MTE2", "MTE1")}
    pto.mte_l1_l0a %l1_a, %l0a, %n{n}, %n{n} : !pto.ptr<{dtype}, l1>, !pto.ptr<{dtype}, l0a>, i64, i64
    pto.mte_l1_l0b %l1_b, %l0b, %n{n}, %n{n} {{transpose = true}} : !pto.ptr<{dtype}, l1>, !pto.ptr<{dtype}, l0b>, i64, i64
    {both("MTE1", "M")}"""


POINTERS = """
    %l0a = pto.castptr %n0 : i64 -> !pto.ptr<f16, l0a>
    %l0b = pto.castptr %n0 : i64 -> !pto.ptr<f16, l0b>
    %l0c = pto.castptr %n0 : i64 -> !pto.ptr<f32, l0c>"""
MAD = "pto.{0} %l0a, %l0b, %l0c, %n16, %n16, %n16{1} : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64\n"
STORE = "pto.mte_l0c_gm %l0c, %{0}, %n16, %n16, %n16, %n16, %n0, %n0{1}, nz2nd : !pto.ptr<f32, l0c>, !pto.ptr<f32, gm>, i64, i64, i64, i64, i64, i64\n"
ARGUMENTS = "%a: !pto.ptr<f16, gm>, %b: !pto.ptr<f16, gm>, %c: !pto.ptr<f32, gm>"


def run(text: str, *args: Any, **options: Any) -> Any:
    return pto.kernel(pto.parse(text), engine="reference").run(*args, **options)


@pytest.mark.parametrize("schedule", [None, 1, 2, 3])
def test_unit_flags_order_product_and_write_back(schedule: int | None) -> None:
    """Three products into one place of L0C, handed over without a flag between M and FIX."""
    a, b = matrices(16, 16, 16)
    want = a.astype(np.float64) @ b.astype(np.float64)
    outs = [np.zeros((16, 16), np.float32) for _ in range(2)]
    body = POINTERS + loads("f16", 16, 512, 32)
    body += MAD.format("mad", " unit_flag(check_only)") + MAD.format("mad_acc", " unit_flag(check_and_set)")
    body += STORE.format("c", ", unit_flag(check_only)") + STORE.format("c", ", unit_flag(check_and_clear)")
    body += MAD.format("mad", " unit_flag(check_and_set)") + STORE.format("d", ", unit_flag(check_and_clear)")
    text = program(ARGUMENTS + ", %d: !pto.ptr<f32, gm>", body)
    result = run(text, a, b, *outs, sanitize="all", schedule=schedule)
    assert not result.diagnostics, [d.message for d in result.diagnostics]
    np.testing.assert_allclose(outs[0], 2 * want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outs[1], want, rtol=1e-5, atol=1e-5)


def test_without_unit_flag_it_is_a_race() -> None:
    a, b = matrices(16, 16, 16)
    c = np.zeros((16, 16), np.float32)
    body = POINTERS + loads("f16", 16, 512, 32) + MAD.format("mad", "") + STORE.format("c", "")
    result = run(program(ARGUMENTS, body), a, b, c, sanitize="race")
    assert any("mte_l0c_gm" in d.message for d in result.diagnostics)


def test_a_write_back_that_nobody_feeds() -> None:
    body = POINTERS + STORE.format("c", ", unit_flag(check_only)")
    a, b = matrices(16, 16, 16)
    result = run(program(ARGUMENTS, body), a, b, np.zeros((16, 16), np.float32))
    shown = "\n".join(str(d.message) + str(d.notes) for d in result.diagnostics)
    assert "the matrix at address 0 of L0C to be complete, which no mad publishes" in shown


def test_mixed_with_tiles() -> None:
    """Pointers of tiles: L1 and L0 filled by pointers, multiplied as tiles, written back by pointers."""
    body = """
    %left = pto.alloc_tile addr = %n0 : !pto.tile_buf<left, 16x16xf16, blayout=col_major, slayout=row_major>
    %right = pto.alloc_tile addr = %n0 : !pto.tile_buf<right, 16x16xf16, slayout=col_major>
    %acc = pto.alloc_tile addr = %n0 : !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
    %l0a = pto.tile_buf_addr %left : !pto.tile_buf<left, 16x16xf16, blayout=col_major, slayout=row_major> -> !pto.ptr<f16, l0a>
    %l0b = pto.tile_buf_addr %right : !pto.tile_buf<right, 16x16xf16, slayout=col_major> -> !pto.ptr<f16, l0b>
    %l0c = pto.tile_buf_addr %acc : !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024> -> !pto.ptr<f32, l0c>
    """
    tiles = """pto.tmatmul ins(%left, %right : !pto.tile_buf<left, 16x16xf16, blayout=col_major, slayout=row_major>, !pto.tile_buf<right, 16x16xf16, slayout=col_major>)
      outs(%acc : !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>)\n"""
    a, b = matrices(16, 16, 16)
    found = []
    for multiply in (tiles, MAD.format("mad", "")):
        c = np.zeros((16, 16), np.float32)
        text = program(
            ARGUMENTS, body + loads("f16", 16, 512, 32) + multiply + both("M", "FIX") + STORE.format("c", "")
        )
        result = run(text, a, b, c, sanitize="all")
        assert not result.diagnostics
        found.append(c.view(np.uint32))
    assert (found[0] == found[1]).all()


def test_quantised_layer() -> None:
    """i8 products with a bias, requantised by a scale per column."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, (32, 32), np.int8) for _ in range(2))
    bias = rng.integers(-5000, 5000, 32, np.int32)
    words = (rng.uniform(1e-3, 1e-2, 32).astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).astype(
        np.uint64
    )
    words |= np.uint64(1 << 46)
    out = np.zeros((32, 32), np.int8)
    body = f"""
    %l0a = pto.castptr %n0 : i64 -> !pto.ptr<i8, l0a>
    %l0b = pto.castptr %n0 : i64 -> !pto.ptr<i8, l0b>
    %l0c = pto.castptr %n0 : i64 -> !pto.ptr<i32, l0c>
    %l1_bias = pto.castptr %n2048 : i64 -> !pto.ptr<i32, l1>
    %l1_words = pto.castptr %n8192 : i64 -> !pto.ptr<f32, l1>
    %bt = pto.castptr %n0 : i64 -> !pto.ptr<i32, bt>
    %fb = pto.castptr %n0 : i64 -> !pto.ptr<f32, fb>
    %n4 = arith.constant 4 : i64
    %n256 = arith.constant 256 : i64
    pto.mte_gm_l1 %bias, %l1_bias, %n128 nburst(%n1, %n0, %n0) : !pto.ptr<i32, gm>, !pto.ptr<i32, l1>, i64, i64, i64, i64
    pto.mte_gm_l1 %words, %l1_words, %n256 nburst(%n1, %n0, %n0) : !pto.ptr<f32, gm>, !pto.ptr<f32, l1>, i64, i64, i64, i64
    {both("MTE2", "FIX")}
    pto.mte_l1_fb %l1_words, %fb, %n4 nburst(%n1, %n0, %n0) : !pto.ptr<f32, l1>, !pto.ptr<f32, fb>, i64, i64, i64, i64
    {loads("i8", 32, 1024, 32).rsplit("pto.set_flag", 1)[0]}
    pto.mte_l1_bt %l1_bias, %bt, %n32 nburst(%n1, %n0, %n0) : !pto.ptr<i32, l1>, !pto.ptr<i32, bt>, i64, i64, i64, i64
    {both("MTE1", "M")}
    pto.mad_bias %l0a, %l0b, %l0c, %bt, %n32, %n32, %n32
      : !pto.ptr<i8, l0a>, !pto.ptr<i8, l0b>, !pto.ptr<i32, l0c>, !pto.ptr<i32, bt>, i64, i64, i64
    {both("M", "FIX")}
    pto.mte_l0c_gm %l0c, %c, %n32, %n32, %n32, %n32, %n0, %n0, pre_quant(%fb, mode = req8_vec), pre_relu(mode = normal_relu), nz2nd
      : !pto.ptr<i32, l0c>, !pto.ptr<i8, gm>, i64, i64, i64, i64, i64, i64, !pto.ptr<f32, fb>"""
    arguments = ("%a: !pto.ptr<i8, gm>, %b: !pto.ptr<i8, gm>, %bias: !pto.ptr<i32, gm>, %words: !pto.ptr<f32, gm>, "
                 "%c: !pto.ptr<i8, gm>")  # fmt: skip
    result = run(program(arguments, body), a, b, bias, words.view(np.float32), out, sanitize="all")
    assert not result.diagnostics, [d.message for d in result.diagnostics]
    sums = a.astype(np.int64) @ b.astype(np.int64) + bias
    scale = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
    want = np.maximum(np.clip(np.rint(sums.astype(np.float32) * scale), -128, 127), 0)
    assert (out == want).all()


@pytest.mark.parametrize("engine", ["reference", "native", "cpp"])
@pytest.mark.parametrize("n", [16, 32])
def test_a_transposed_operand_of_narrow_elements_has_whole_squares(engine: str, n: int) -> None:
    """64 x n bytes, row by row in L1. Squares of 32: with 32 columns the product is that of the matrices; with
    16 two rows of k lie in one of L1, and the fractal of the second comes in the place of k from 32 on."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-9, 10, shape).astype(np.int8) for shape in ((16, 64), (64, n)))
    c = np.zeros((16, n), np.int32)
    body = f"""
    %l1_a = pto.castptr %n0 : i64 -> !pto.ptr<i8, l1>
    %l1_b = pto.castptr %n1024 : i64 -> !pto.ptr<i8, l1>
    %l0a = pto.castptr %n0 : i64 -> !pto.ptr<i8, l0a>
    %l0b = pto.castptr %n0 : i64 -> !pto.ptr<i8, l0b>
    %l0c = pto.castptr %n0 : i64 -> !pto.ptr<i32, l0c>
    pto.mte_gm_l1 %a, %l1_a, %n1024 nburst(%n1, %n0, %n0) : !pto.ptr<i8, gm>, !pto.ptr<i8, l1>, i64, i64, i64, i64
    pto.mte_gm_l1 %b, %l1_b, %n{64 * n} nburst(%n1, %n0, %n0) : !pto.ptr<i8, gm>, !pto.ptr<i8, l1>, i64, i64, i64, i64
    {both("MTE2", "MTE1")}
    pto.mte_l1_l0a %l1_a, %l0a, %n16, %n64 : !pto.ptr<i8, l1>, !pto.ptr<i8, l0a>, i64, i64
    pto.mte_l1_l0b %l1_b, %l0b, %n64, %n{n} {{transpose = true}} : !pto.ptr<i8, l1>, !pto.ptr<i8, l0b>, i64, i64
    {both("MTE1", "M")}
    pto.mad %l0a, %l0b, %l0c, %n16, %n{n}, %n64 : !pto.ptr<i8, l0a>, !pto.ptr<i8, l0b>, !pto.ptr<i32, l0c>, i64, i64, i64
    {both("M", "FIX")}
    pto.mte_l0c_gm %l0c, %c, %n16, %n{n}, %n16, %n{n}, %n0, %n0, nz2nd : !pto.ptr<i32, l0c>, !pto.ptr<i32, gm>, i64, i64, i64, i64, i64, i64
"""
    text = program("%a: !pto.ptr<i8, gm>, %b: !pto.ptr<i8, gm>, %c: !pto.ptr<i32, gm>", body)
    blocks = a.reshape(16, 2, 32).transpose(1, 0, 2).copy()  # NZ
    result = pto.kernel(pto.parse(text), engine=engine).run(blocks, b, c)
    assert not result.diagnostics, [d.message for d in result.diagnostics]
    order = np.arange(64) if n == 32 else np.concatenate([np.arange(0, 64, 2), np.arange(1, 64, 2)])
    assert (c == a.astype(np.int32) @ b[order].astype(np.int32)).all()
