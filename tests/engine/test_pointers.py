"""Scalar access to memory: every element type, offsets on both sides of a pointer, indices of memrefs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

import pto
from pto.engine.memory import MemoryFault, Pointer
from pto.engine.reference.instr import Instr
from pto.engine.reference.registry import find
from pto.isa import encoding
from pto.isa.dtypes import DTYPES

from .programs import CONSTANTS, codes, program, run
from .rows import Case, every_plan, random_codes, special_codes

ROWS = ("load_scalar", "store_scalar", "memref.load", "memref.store")


def execute(case: Case) -> Any:
    found = find(case.row)
    assert found is not None
    with np.errstate(all="ignore"):
        return found(Instr(case.op, case.args, case.core, "S"))


def bench(name: str, plan: Any, offset: int) -> tuple[Case, str, int]:
    """A case whose pointer is 8 elements into an array of 16."""
    case = Case(plan)
    dtype = str(plan.operands["ptr"][0].dtype)
    size = DTYPES[dtype].bits // 8
    buffer = case.core.gm.add(name, case.rng.integers(0, 256, 16 * size, np.uint8))
    case.args |= {"ptr": Pointer(buffer, 8 * size, dtype, name), "offset": offset}
    return case, dtype, size


@pytest.mark.parametrize("offset", [0, 7, -1, -8])
def test_load(offset: int) -> None:
    for plan in every_plan("load_scalar"):
        case, dtype, size = bench("x", plan, offset)
        data = case.args["ptr"].buffer.data
        for code in special_codes(dtype):
            at = (8 + offset) * size
            data[at : at + size] = np.frombuffer(code.to_bytes(size, "little"), np.uint8)
            got, want = execute(case), encoding.decode(DTYPES[dtype], code)
            assert type(got) is (float if DTYPES[dtype].is_float else int)
            assert got == want or (got != got and want != want)


@pytest.mark.parametrize("offset", [0, 7, -1, -8])
def test_store(offset: int) -> None:
    for plan in every_plan("store_scalar"):
        case, dtype, size = bench("x", plan, offset)
        d = DTYPES[dtype]
        for code in [*special_codes(dtype), *random_codes(case.rng, dtype, (1, 4)).ravel().tolist()]:
            value = encoding.decode(d, code)
            case.args["value"] = float(value) if d.is_float else int(value)
            data = case.args["ptr"].buffer.data
            expected, at = data.copy(), (8 + offset) * size
            stored = encoding.encode(d, value) if d.is_float else code
            expected[at : at + size] = np.frombuffer(stored.to_bytes(size, "little"), np.uint8)
            execute(case)
            assert np.array_equal(data, expected), (dtype, value)


@pytest.mark.parametrize("offset", [8, -9, 1 << 40, -(1 << 40), (1 << 63) - 1, -(1 << 63)])
def test_outside_of_the_array(offset: int) -> None:
    for name in ("load_scalar", "store_scalar"):
        case, _, _ = bench("x", next(every_plan(name)), offset)
        case.args["value"] = 1.0
        before = case.args["ptr"].buffer.data.copy()
        with pytest.raises(MemoryFault):
            execute(case)
        assert np.array_equal(before, case.args["ptr"].buffer.data)


def test_a_pointer_before_its_array_is_a_diagnostic() -> None:
    """Moving it back is fine, using it is not."""
    body = f"""{CONSTANTS}
    %m = arith.constant -2 : index
    %p = pto.addptr %x, %m : !pto.ptr<f32> -> !pto.ptr<f32>
    %v = pto.load_scalar %p[%i] : !pto.ptr<f32> -> f32
    pto.store_scalar %v, %p[%i] : !pto.ptr<f32>, f32"""
    text = program(body, "%x: !pto.ptr<f32>, %i: index")
    for index, want in [(2, []), (5, []), (1, ["PTO-E2101"]), (0, ["PTO-E2101"]), (6, ["PTO-E2101"])]:
        assert codes(run(text, np.zeros(4, np.float32), index)) == want


@given(r=st.integers(-1, 3), c=st.integers(-1, 4))
@examples(30)
def test_memrefs(r: int, c: int) -> None:
    """By strides; an index outside the sizes is refused even where memory is there."""
    body = """%v = memref.load %m[%r, %c] : memref<3x4xf32, #pto.address_space<gm>>
    %two = arith.constant 2.0 : f32
    %w = arith.mulf %v, %two : f32
    memref.store %w, %m[%r, %c] : memref<3x4xf32, #pto.address_space<gm>>"""
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    got = x.copy()
    text = program(body, "%m: memref<3x4xf32, #pto.address_space<gm>>, %r: index, %c: index")
    found = codes(run(text, got, r, c))
    if 0 <= r < 3 and 0 <= c < 4:
        x[r, c] *= 2
        assert not found
    else:
        assert found == ["PTO-E2102"]
    assert np.array_equal(x, got)


UB = """
  %a0 = arith.constant 0 : i64
  %k = arith.constant 1024 : index
  %c4 = arith.constant 4 : index
  %i0 = arith.constant 0 : index
  %v = arith.constant 2.5 : f32
  %ub = pto.castptr %a0 : i64 -> !pto.ptr<f32, ub>
  %p = pto.addptr %ub, %k : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
  pto.store_scalar %v, %p[%c4] : !pto.ptr<f32, ub>, f32
  %s = pto.load_scalar %p[%c4] : !pto.ptr<f32, ub> -> f32
  pto.store_scalar %s, %o[%i0] : !pto.ptr<f32>, f32
  return
"""


@pytest.mark.parametrize("engine", ["reference", "cpp"])
def test_the_pointers_page_on_ub(engine: str) -> None:
    """`castptr`, `addptr`, `load_scalar` and `store_scalar` on `ub`: an address there is none of this machine."""
    text = f"func.func @f(%o: !pto.ptr<f32>) attributes {{pto.entry}} {{{UB}}}"
    out = np.zeros(2, np.float32)
    pto.kernel(pto.parse(text), target="a5", engine=engine)(out)
    assert out.tolist() == [2.5, 0]
