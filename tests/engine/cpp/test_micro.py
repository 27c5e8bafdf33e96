"""Micro kernels on engine cpp: the examples, streams, scopes, C++ written by hand, tasks; and refusals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sampling import some

import pto
from pto import DiagnosticError, runtime
from pto.engine.cpp.compiler import NO_REGISTERS, TILES_ONLY, header_flags

from ..native.test_native import CASES

EXAMPLES = Path(__file__).parents[3] / "examples"
Array = np.ndarray[Any, Any]


def numbers(*shape: int) -> Array:
    return (np.random.default_rng(7).standard_normal(shape) * 3).astype(np.float32)


def both(program: Any, *args: Any) -> list[tuple[Array, Array]]:
    """The arrays after a run on each engine."""
    sets = [[a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2)]
    module = pto.parse(program)
    pto.kernel(module, engine="cpp")(*sets[0])
    pto.kernel(module, engine="reference")(*sets[1])
    return [(a, b) for a, b in zip(*sets, strict=True) if isinstance(a, np.ndarray)]


def same(program: Any, *args: Any) -> list[Array]:
    found = both(program, *args)
    for mine, theirs in found:
        assert mine.tobytes() == theirs.tobytes()
    return [mine for mine, _ in found]


HALVES = [numbers(*shape).astype(np.float16) for shape in ((64, 192), (192, 64))]


@pytest.mark.parametrize("name", some([name for name in CASES if name.startswith("micro")], 3))
def test_examples(name: str) -> None:
    program, _, args, _ = CASES[name]
    same(program, *args)


#: Appends of several kinds to streams, squeezed lanes, masks, and loads at any element.
STREAMS = """
!v = !pto.vreg<64xi32>
!m = !pto.mask<b32>
!p = !pto.ptr<i32, ub>
!w = !pto.ptr<ui32, ub>
module attributes {pto.target_arch = "a5"} {
  func.func @streams(%x: !pto.ptr<i32>, %y: !pto.ptr<i32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : i32
    %c20 = arith.constant 20 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i64
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 4100 : i64
    %a2 = arith.constant 6148 : i64
    %a3 = arith.constant 8192 : i64
    %a4 = arith.constant 9216 : i64
    %size = arith.constant 12288 : i64
    %u = pto.castptr %a0 : i64 -> !p
    %u1 = pto.castptr %a1 : i64 -> !p
    %u2 = pto.castptr %a2 : i64 -> !p
    %u3 = pto.castptr %a3 : i64 -> !w
    %u4 = pto.castptr %a4 : i64 -> !w
    pto.mte_gm_ub %x, %u, %a0, %size nburst(%one, %size, %size) : !pto.ptr<i32>, !p, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {
      %all = pto.pset_b32 "PAT_ALL" : !m
      %from = pto.addptr %u, %c3 : !p -> !p
      %l0 = pto.vldas %from : !p -> !pto.align
      %s0 = pto.init_align : !pto.align
      %at, %l1, %s1, %to = scf.for %i = %c0 to %c3 step %c1
          iter_args(%p = %from, %l = %l0, %s = %s0, %q = %u1) -> (!p, !pto.align, !pto.align, !p) {
        %a, %ln, %pn = pto.vldus %p, %l : !p, !pto.align -> !v, !pto.align, !p
        %sn, %qn = pto.vstus %s, %c20, %a, %q : !pto.align, i32, !v, !p -> !pto.align, !p
        scf.yield %pn, %ln, %sn, %qn : !p, !pto.align, !pto.align, !p
      }
      pto.vstas %s1, %to, %zero : !pto.align, !p, i32
      pto.sprclr "AR"
      %v = pto.vlds %u[%c0] : !p -> !v
      %on = pto.vcmps %v, %c5, %all, "gt" : !v, i32, !m -> !m
      %kept = pto.vsqz %v, %on : !v, !m -> !v
      %t0 = pto.init_align : !pto.align
      %t1 = pto.vstur %t0, %kept, %u2, "POST_UPDATE" : !pto.align, !v, !p -> !pto.align
      %t2 = pto.vstur %t1, %kept, %u2, "POST_UPDATE" : !pto.align, !v, !p -> !pto.align
      pto.vstar %t2, %u2 : !pto.align, !p
      pto.sprsts "AR", %u3[%zero] : !w, i32
      %b0 = pto.init_align : !pto.align
      %b1, %e1 = pto.pstu %b0, %on, %u4 : !pto.align, !m, !w -> !pto.align, !w
      %b2, %e2 = pto.pstu %b1, %all, %e1 : !pto.align, !m, !w -> !pto.align, !w
      pto.vstas %b2, %e2, %zero : !pto.align, !w, i32
    }
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %u, %y, %size nburst(%one, %size, %size) : !p, !pto.ptr<i32>, i64, i64, i64, i64
    return
  }
}
"""


def test_streams() -> None:
    x = np.random.default_rng(5).integers(-20, 20, 3072).astype(np.int32)
    y = same(STREAMS, x, np.zeros_like(x))[1]
    assert (y[1025:1085].reshape(3, 20) == x[3:195].reshape(3, 64)[:, :20]).all()
    kept = x[:64][x[:64] > 5]
    assert (y[1537 : 1537 + 2 * kept.size] == np.tile(kept, 2)).all() and y[2048] == 8 * kept.size


def test_a_stream_is_one_variable() -> None:
    text = pto.emit_cpp(pto.parse(STREAMS))
    assert len(re.findall(r"^ *vector_align \w+;", text, re.M)) == 4  # three of stores and one of loads
    assert "MODE_STORED" in text and "__VEC_SCOPE__ {" in text


# -- written by hand -----------------------------------------------------------------------------------------

BY_HAND = """\
// target: a5
#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void halves(__gm__ float* x, __gm__ half* y, int32_t n) {
  __ubuf__ float* from = (__ubuf__ float*)0;
  __ubuf__ half* to = (__ubuf__ half*)32768;
  copy_gm_to_ubuf_align_v2(from, x, 0, 1, n * 4, 0, 0, false, 0, n * 4, n * 4);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  __VEC_SCOPE__
  {
    RegTensor<float> value, bits;
    RegTensor<half> narrow;
    uint32_t left = n;
    constexpr auto store = std::integral_constant<::DistVST, static_cast<::DistVST>(DistVST::DIST_PK_B32)>();
    for (uint16_t i = 0; i < (uint16_t)((n + 63) / 64); ++i) {
      MaskReg on = CreatePredicate<float>(left);
      vlds(value, from, 64, NORM, POST_UPDATE);
      vmuls(value, value, 2, on);
      vands_sign: vand((vector_u32&)bits, (vector_u32&)value, (vector_u32&)value, on, MODE_ZEROING);
      vcvt(narrow, bits, on, ROUND_R, RS_DISABLE, PART_EVEN);
      vsts(narrow, to, i * 64, store, on);
    }
  }
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  copy_ubuf_to_gm_align_v2(y, to, 0, 1, n * 2, 0, n * 2, n * 2);
}
"""


def test_a_kernel_written_by_hand(tmp_path: Path) -> None:
    """Registers by element type, casts of references, numbers for scalars, a base that moves on. Conversions
    saturate unless CTRL disables it."""
    source = tmp_path / "halves.cpp"
    source.write_text(BY_HAND.replace("vands_sign: ", ""))
    x = numbers(200)
    x[3], x[4] = 1e9, -np.inf
    y = np.zeros(200, np.float16)
    pto.kernel(source, engine="cpp")(x, y, 200)
    want = np.clip(2 * x, -65504, 65504).astype(np.float16)
    assert y.tobytes() == want.tobytes()


#: Calls that no row stands for, and a product by words: sizes and modes are packed as the field packs them.
WORDS = """\
// target: a5
#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void others(__gm__ int32_t* x, __gm__ int32_t* y) {
  __ubuf__ int32_t* from = (__ubuf__ int32_t*)0;
  __ubuf__ int32_t* to = (__ubuf__ int32_t*)4096;
  const uint64_t once = 1ull << 4 | 768ull << 25;
  copy_gm_to_ubuf_align_v2(from, x, once, 768ull << 40 | 768);
  __VEC_SCOPE__ {
    vector_s32 a, b, r;
    vector_bool all = pset_b32(PAT_ALL), some;
    vlds(a, from, 0, NORM);
    vlds(b, from, 64, NORM);
    vmod(r, a, b, all, MODE_ZEROING);
    vsts(r, to, 0, NORM_B32, all);
    vabsdif(r, a, b, all, MODE_ZEROING);
    vsts(r, to, 64, NORM_B32, all);
    vlds(r, from, 128, NORM);
    movvp(some, (vector_u32)r, 1);
    vsel(r, a, b, some);
    vsts(r, to, 128, NORM_B32, all);
  }
  copy_ubuf_to_gm_align_v2(y + 192 * block_idx, to, once, 768ull << 40 | 768);
}
__global__ AICORE void product(__gm__ half* a, __gm__ half* b, __gm__ half* c, __gm__ float* sums) {
  __cbuf__ half* l1 = (__cbuf__ half*)0;
  create_cbuf_matrix((__cbuf__ uint16_t*)l1, 1ll | 64ll << 16, 0);
  set_mte2_nz_para(1 | 1ull << 16 | 16ull << 32);
  copy_gm_to_cbuf_multi_nd2nz(l1, a, 0, 64, 0, 16, 32, 0, false);
  copy_gm_to_cbuf_multi_nd2nz(l1 + 512, b, 0, 64, 0, 16, 32, 0, false);
  load_cbuf_to_ca((__ca__ half*)0, l1, 0, 0, 1, 2, 1, 1, false);
  load_cbuf_to_cb((__cb__ half*)0, l1 + 512, 0, 0, 1, 2, 1, 1, false);
  mad((__cc__ float*)0, (__ca__ half*)0, (__cb__ half*)0, 16ull | 32ull << 12 | 16ull << 24 | 1ull << 63);
  set_loop3_para(1);
  const uint64_t sizes = 16ull << 4 | 16ull << 16 | 16ull << 32;
  copy_matrix_cc_to_gm(c, (__cc__ float*)0, sizes, 16ull | (uint64_t)QuantMode_t::F322F16 << 34 | 1ull << 39 | 1ull << 43);
  set_atomic_f32();
  set_atomic_add();
  copy_matrix_cc_to_gm(sums, (__cc__ float*)0, sizes, 16ull | 1ull << 43);
  copy_matrix_cc_to_gm(sums, (__cc__ float*)0, sizes, 16ull | 1ull << 43);
  set_atomic_none();
}
"""


def test_calls_without_a_row(tmp_path: Path) -> None:
    source = tmp_path / "words.cpp"
    source.write_text(WORDS)
    rng = np.random.default_rng(9)
    x = rng.integers(-50, 50, (3, 64)).astype(np.int32)
    x[1, :4] = 0, 7, -7, 1
    y = np.zeros_like(x)
    pto.kernel(source, engine="cpp", entry="others")(x, y)
    a, b = x[:2]
    assert (y[0] == np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))).all()
    assert (y[1] == np.abs(a - b)).all()
    on = np.unpackbits(x[2].view(np.uint8)[8:16], bitorder="little").astype(bool)
    assert (y[2] == np.where(on, a, b)).all()
    left, right = (rng.standard_normal((16, 32)).astype(np.float16) for _ in range(2))
    c, sums = np.zeros((16, 16), np.float16), np.ones((16, 16), np.float32)
    pto.kernel(source, engine="cpp", entry="product")(left, right, c, sums)
    exact = left.astype(np.float64) @ right.T.astype(np.float64)
    np.testing.assert_allclose(c, np.maximum(exact, 0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(sums, 1 + 2 * exact, rtol=1e-5, atol=1e-5)


def test_headers_of_registers_are_read_where_they_are_used() -> None:
    assert header_flags("#include <pto/pto-inst.hpp>\nvoid f() {}") == [TILES_ONLY]
    assert header_flags("mad(c, a, b, 16, 16, 16, 0, false, false, true);") == [NO_REGISTERS]
    assert header_flags('#include "mine.hpp"') == header_flags("__VEC_SCOPE__ {}") == []


# -- tasks ---------------------------------------------------------------------------------------------------


def test_tasks_of_micro_kernels() -> None:
    chain = runtime.kernel(EXAMPLES / "micro" / "chain.pto", "in in in out scalar")
    x, a, b = numbers(3, 200)
    y = np.zeros_like(x)

    def build(rt: Any) -> None:
        between = rt.tensor(x.shape)
        first = rt.add_task(chain, x, a, b, between, 200)
        second = rt.add_task(chain, between, b, a, y, 200)
        rt.add_successor(first, second)

    runtime.run(build, runtime="host_build_graph")
    once = np.maximum(np.exp(-np.abs(x)) * a + b, 0)
    np.testing.assert_allclose(y, np.maximum(np.exp(-once) * b + a, 0), rtol=1e-5, atol=1e-6)


#: The kernel written by hand as a task, of any array.
AS_TASK = (
    BY_HAND.replace("vands_sign: ", "").replace(
        "#include <pto/pto-inst.hpp>", "#include <pto/pto-inst.hpp>\n#include <tensor.h>"
    )
    + """
extern "C" void kernel_entry(int64_t* args) {
  auto* x = reinterpret_cast<TensorData*>(args[0]);
  auto* y = reinterpret_cast<TensorData*>(args[1]);
  halves(reinterpret_cast<float*>(x->buffer.addr) + x->start_offset,
         reinterpret_cast<half*>(y->buffer.addr) + y->start_offset, static_cast<int32_t>(args[2]));
}
"""
)


def test_tasks_of_both_languages(tmp_path: Path) -> None:
    """A product by pointers on a cube core, and what vector registers written by hand make of it."""
    source = tmp_path / "halves.cpp"
    source.write_text(AS_TASK)
    gemm = runtime.kernel(EXAMPLES / "micro" / "gemm.pto", "in in out scalar", core="aic")
    narrow = runtime.kernel(source, "in out scalar")
    y = np.zeros((64, 64), np.float16)

    def orchestrate(rt: Any) -> None:
        between = rt.tensor((64, 64))
        rt.submit(gemm, *HALVES, between, 192)
        rt.submit(narrow, between, y, 4096)

    runtime.run(orchestrate)
    product = np.zeros((64, 64), np.float32)
    pto.kernel(pto.parse(EXAMPLES / "micro" / "gemm.pto"), engine="reference")(*HALVES, product, 192)
    assert y.tobytes() == (2 * product).astype(np.float16).tobytes()


# -- modes ---------------------------------------------------------------------------------------------------


def test_modes_of_products() -> None:
    """TF32 for the first half of K, HF32 for the second."""
    text = (EXAMPLES / "04_matmul.pto").read_text().replace("f16", "f32").replace('"a3"', '"a5"')
    first, second = "    pto.tmatmul ins", "    pto.tmatmul.acc ins"
    text = text.replace(
        second,
        "    pto.settf32mode {enable = false}\n    pto.sethf32mode {mode = #pto.round_mode<FLOOR>}\n"
        + second,
    )
    text = text.replace(first, "    pto.settf32mode {mode = #pto.round_mode<RINT>}\n" + first)
    assert "SETTF32MODE<true, RoundMode::CAST_RINT>();" in pto.emit_cpp(pto.parse(text))
    a, b = numbers(64, 128), numbers(128, 64)
    out = same(text, a, b, np.zeros((64, 64), np.float32))[2]
    plain = same(
        text.replace("pto.settf32mode", "// ").replace("pto.sethf32mode", "// "), a, b, np.zeros_like(out)
    )[2]
    assert (out != plain).any()


# -- refusals ------------------------------------------------------------------------------------------------

ONE = """
!p = !pto.ptr<f32, ub>
module attributes {pto.target_arch = "ARCH"} {
  func.func @one(%at: i64) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %u = pto.castptr %at : i64 -> !p
    pto.vecscope {
      %v = pto.vlds %u[%c0] : !p -> !pto.vreg<64xf32>
      pto.vsts %v, %u[%c0] : !pto.vreg<64xf32>, !p
    }
    return
  }
}
"""


@pytest.mark.parametrize(
    ("at", "code", "said"),
    [(16, "PTO-E2102", "multiple of 32 bytes, got 16"), (1 << 21, "PTO-E2101", "outside")],
)
def test_addresses_that_are_none(at: int, code: str, said: str) -> None:
    for engine in ("cpp", "reference"):
        with pytest.raises(DiagnosticError) as caught:
            pto.kernel(pto.parse(ONE.replace("ARCH", "a5")), engine=engine)(at)
        (found,) = caught.value.diagnostics
        assert found.code == code
        assert found.span is not None and "pto.vlds" in found.span.source.line(found.span.line)
        assert engine == "reference" or said in str(caught.value)


def test_other_targets_have_no_such_calls() -> None:
    """Their calls of these names take memory; our headers have the registers on every target."""
    module = pto.parse(ONE.replace("ARCH", "a3"))
    with pytest.raises(DiagnosticError) as caught:
        pto.emit_cpp(module)
    assert [d.code for d in caught.value.diagnostics] == ["PTO-E1301"]
    assert "only an A5 has calls on vector registers" in str(caught.value)
    pto.kernel(module, engine="cpp")(0)
