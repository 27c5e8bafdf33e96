"""Launching: which function runs, what may be passed, what comes back, and that nothing is left half done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto import DiagnosticError

from .programs import CONSTANTS, codes, program, run

EXAMPLES = Path(__file__).parents[2] / "examples"

COPY = """%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = arith.constant {rows} : index
    %c = arith.constant {cols} : index
    %av = pto.make_tensor_view %a, shape = [%r, %c], strides = [%c, %c1] : !pto.tensor_view<?x?x{type}>
    %bv = pto.make_tensor_view %b, shape = [%r, %c], strides = [%c, %c1] : !pto.tensor_view<?x?x{type}>
    %ap = pto.partition_view %av, offsets = [%c0, %c0], sizes = [%r, %c] : !pto.tensor_view<?x?x{type}> -> !pto.partition_tensor_view<{rows}x{cols}x{type}>
    %bp = pto.partition_view %bv, offsets = [%c0, %c0], sizes = [%r, %c] : !pto.tensor_view<?x?x{type}> -> !pto.partition_tensor_view<{rows}x{cols}x{type}>
    %t = pto.alloc_tile : !pto.tile_buf<vec, {rows}x{cols}x{type}>
    pto.tload ins(%ap : !pto.partition_tensor_view<{rows}x{cols}x{type}>) outs(%t : !pto.tile_buf<vec, {rows}x{cols}x{type}>)
    pto.tstore ins(%t : !pto.tile_buf<vec, {rows}x{cols}x{type}>) outs(%bp : !pto.partition_tensor_view<{rows}x{cols}x{type}>)"""


def copier(type: str, rows: int = 4, cols: int = 64, arch: str = "a5") -> str:
    return program(
        COPY.format(type=type, rows=rows, cols=cols), f"%a: !pto.ptr<{type}>, %b: !pto.ptr<{type}>", arch=arch
    )


@pytest.mark.parametrize(
    ("type", "dtype"),
    [
        ("f32", np.float32), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("bf16", np.uint16), ("i32", np.int32),
        ("i32", np.uint32), ("ui8", np.uint8), ("i8", np.int8), ("i16", np.int16), ("f8E4M3FN", ml_dtypes.float8_e4m3fn),
        ("f8E5M2", np.uint8), ("hif8", np.uint8),
    ],
)  # fmt: skip
def test_arrays_are_used_in_place(type: str, dtype: type) -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 256, (4, 64 * np.dtype(dtype).itemsize), np.uint8)
    a = bits.view(dtype).copy()
    b = np.zeros_like(a)
    result = run(copier(type), a, b)
    assert result.ok, result.diagnostics
    assert np.array_equal(a.view(np.uint8), b.view(np.uint8))


def test_arguments_need_no_names() -> None:
    """In a program that was built, not read, each argument is identified by its position."""
    module = pto.parse(program(
        """%w = arith.index_cast %n : index to i64
    pto.store_scalar %w, %a[%m] : !pto.ptr<i64>, i64""",
        "%a: !pto.ptr<i64>, %m: index, %n: index", arch="a5",
    ))  # fmt: skip
    (function,) = [op for op in module.op.walk() if op.name == "func.func"]
    for value in function.regions[0].blocks[0].args:
        value.name = ""
    for engine in ("reference", "native"):
        a = np.zeros(8, np.int64)
        assert pto.kernel(module, engine=engine).run(a, 3, 7).ok
        assert a.tolist() == [0, 0, 0, 7, 0, 0, 0, 0], engine


def test_strided_arrays_are_copied_in_and_back() -> None:
    a = np.arange(512, dtype=np.float32).reshape(4, 128)[:, ::2]
    b = np.zeros((64, 4), np.float32).T
    assert run(copier("f32"), a, b).ok
    assert np.array_equal(a, b)


def test_a_read_only_input_is_fine_and_stays() -> None:
    a = np.ones((4, 64), np.float32)
    a.flags.writeable = False
    b = np.zeros((4, 64), np.float32)
    assert run(copier("f32"), a, b).ok
    assert np.array_equal(a, b)


def test_writing_a_read_only_array_is_reported() -> None:
    b = np.zeros((4, 64), np.float32)
    b.flags.writeable = False
    result = run(copier("f32"), np.ones((4, 64), np.float32), b)
    assert codes(result) == ["PTO-E2102"] and "read-only" in result.diagnostics[0].message


def test_the_array_interface_is_enough() -> None:
    class Foreign:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array
            self.__array_interface__ = array.__array_interface__

    a, b = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    assert run(copier("f32"), Foreign(a), Foreign(b)).ok
    assert np.array_equal(a, b)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), "PTO-E2011"),
        ((np.zeros(4, np.float32),), "PTO-E2011"),
        ((np.zeros(4, np.float64), 1), "PTO-E2012"),
        ((np.zeros(4, np.int32), 1), "PTO-E2012"),
        (("text", 1), "PTO-E2012"),
        ((None, 1), "PTO-E2012"),
        ((np.zeros(4, np.float32), 1.5), "PTO-E2013"),
        ((np.zeros(4, np.float32), 2**40), "PTO-E2013"),
        ((np.zeros(4, np.float32), "x"), "PTO-E2013"),
    ],
)
def test_wrong_arguments_are_diagnostics(args: tuple[object, ...], code: str) -> None:
    k = pto.kernel(pto.parse(program("", "%a: !pto.ptr<f32>, %n: i32")), engine="reference")
    with pytest.raises(DiagnosticError) as e:
        k(*args)
    assert [d.code for d in e.value.diagnostics] == [code]


def test_every_wrong_argument_is_named_at_once() -> None:
    k = pto.kernel(pto.parse(program("", "%a: !pto.ptr<f32>, %n: i32")), engine="reference")
    with pytest.raises(DiagnosticError) as e:
        k(1, "x")
    assert [d.code for d in e.value.diagnostics] == ["PTO-E2012", "PTO-E2013"]


def test_scalars_take_the_type_of_the_argument() -> None:
    body = (
        f"{CONSTANTS}\n%w = arith.extsi %n : i8 to i64\npto.store_scalar %w, %out[%c0] : !pto.ptr<i64>, i64"
    )
    text = program(body, "%out: !pto.ptr<i64>, %n: i8")
    out = np.zeros(1, np.int64)
    for given, seen in ((5, 5), (-1, -1), (255, -1), (np.int32(7), 7), (True, 1)):
        assert run(text, out, given).ok
        assert out[0] == seen


def test_launch_options_are_checked() -> None:
    k = pto.kernel(pto.parse(program("", "")), engine="reference")
    wrong: list[dict[str, Any]] = [
        {"blocks": 0}, {"blocks": -1}, {"blocks": "2"}, {"subblocks": 3}, {"sanitize": "rce"}, {"sanitize": True},
        {"shadow": "f32"}, {"schedule": "seed=4"}, {"schedule": -1}, {"schedule": True}, {"max_steps": 0},
        {"memory_map": "m.html"},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(ValueError):
            k(**options)
    with pytest.raises(ValueError, match="engine"):
        pto.kernel(pto.parse(program("", "")), engine="magic")


TWO = """module {{
func.func @mm_aic({aic}) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  pto.store_scalar %one, %out[%c0] : !pto.ptr<i64>, i64
  return
}}
func.func @mm_aiv({aiv}) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  %c1 = arith.constant 1 : index
  %s = pto.get_subblock_idx
  %i = arith.index_cast %s : i64 to index
  %at = arith.addi %i, %c1 : index
  %v = {value}
  pto.store_scalar %v, %out[%at] : !pto.ptr<i64>, i64
  return
}}
}}
"""


def test_a_pair_of_cube_and_vector_functions_is_one_kernel() -> None:
    out = np.zeros(3, np.int64)
    arguments = "%out: !pto.ptr<i64>"
    text = TWO.format(aic=arguments, aiv=arguments, value="pto.get_subblock_num")
    assert run(text, out).ok
    assert out.tolist() == [1, 2, 2]
    out[:] = 0
    assert run(text, out, entry="mm_aic").ok
    assert out.tolist() == [1, 0, 0]


@pytest.mark.parametrize("cube", ["", ", %__pypto_spmd_block_num: i32"])
def test_a_vector_half_may_take_its_sub_block_as_an_argument(cube: str) -> None:
    text = TWO.format(
        aic="%out: !pto.ptr<i64>" + cube, aiv="%out: !pto.ptr<i64>, %__pypto_spmd_subblock_idx: i32",
        value="arith.extsi %__pypto_spmd_subblock_idx : i32 to i64",
    )  # fmt: skip
    for named in (text, text.replace("@mm_aic", "@cube_side").replace("@mm_aiv", "@vector_side")):
        for engine in ("reference", "native"):
            out = np.zeros(3, np.int64)
            pto.kernel(pto.parse(named), engine=engine)(out)
            assert out.tolist() == [1, 0, 1]


def test_block_numbers_as_arguments_are_filled_in() -> None:
    body = """%i = arith.index_cast %__pypto_spmd_block_idx : i32 to index
    %v = arith.extsi %__pypto_spmd_block_num : i32 to i64
    pto.store_scalar %v, %out[%i] : !pto.ptr<i64>, i64"""
    text = program(body, "%out: !pto.ptr<i64>, %__pypto_spmd_block_idx: i32, %__pypto_spmd_block_num: i32")
    out = np.zeros(3, np.int64)
    assert run(text, out, blocks=3).ok
    assert out.tolist() == [3, 3, 3]
    out[:] = 0
    assert run(text, out, 1, 9).ok
    assert out.tolist() == [0, 9, 0]


def test_an_entry_runs_each_callee_on_its_own_cores() -> None:
    text = """module {
func.func private @c(%out: !pto.ptr<i64>) attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  pto.store_scalar %one, %out[%c0] : !pto.ptr<i64>, i64
  return
}
func.func private @v(%out: !pto.ptr<i64>) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
  %c1 = arith.constant 1 : index
  %two = arith.constant 2 : i64
  pto.store_scalar %two, %out[%c1] : !pto.ptr<i64>, i64
  return
}
func.func @k(%out: !pto.ptr<i64>) attributes {pto.entry} {
  func.call @c(%out) : (!pto.ptr<i64>) -> ()
  func.call @v(%out) : (!pto.ptr<i64>) -> ()
  return
}
}
"""
    out = np.zeros(2, np.int64)
    assert run(text, out).ok
    assert out.tolist() == [1, 2]


def test_a_program_that_does_not_verify_does_not_run() -> None:
    text = program("pto.barrier #pto.pipe<PIPE_NUM>")
    with pytest.raises(DiagnosticError):
        pto.kernel(pto.parse(text), engine="reference")


def test_unknown_entries_suggest_names() -> None:
    with pytest.raises(DiagnosticError) as e:
        pto.kernel(pto.parse(program("")), "kk", engine="reference")
    assert "'k'" in e.value.diagnostics[0].help


def test_repeated_launches_start_afresh() -> None:
    k = pto.kernel(pto.parse(copier("f32")), engine="reference")
    a, b = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    for _ in range(3):
        b[:] = 0
        k(a, b)
        assert np.array_equal(a, b)


def test_empty_arrays_are_arrays() -> None:
    assert run(program("", "%a: !pto.ptr<f32>"), np.zeros(0, np.float32)).ok


FIRST = """%c0 = arith.constant 0 : index
    %v = pto.load_scalar %in[%c0] : !pto.ptr<f32> -> f32
    %w = arith.addf %v, %v : f32
    pto.store_scalar %w, %out[%c0] : !pto.ptr<f32>, f32"""


def test_a_strided_array_given_twice_is_one_memory() -> None:
    a = np.ones((4, 4), np.float32).T[::2]
    assert run(program(FIRST, "%out: !pto.ptr<f32>, %in: !pto.ptr<f32>"), a, a).ok
    assert a[0, 0] == 2


def test_read_only_strided_arrays_stay_as_they_are() -> None:
    a = np.ones((4, 4), np.float32).T[::2]
    a.flags.writeable = False
    result = run(program(FIRST, "%out: !pto.ptr<f32>, %in: !pto.ptr<f32>"), a, np.ones(1, np.float32))
    assert codes(result) == ["PTO-E2102"]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrices_are_arrays() -> None:
    a = np.matrix([[1.0, 2.0]], dtype=np.float32)
    assert run(program(FIRST, "%out: !pto.ptr<f32>, %in: !pto.ptr<f32>"), a, a).ok
    assert a[0, 0] == 2


@pytest.mark.parametrize("type", ["f16", "bf16", "f32", "f64"])
def test_numbers_beyond_all_floats_are_reported(type: str) -> None:
    with pytest.raises(DiagnosticError) as e:
        run(program("", f"%a: {type}"), 10**400)
    assert e.value.diagnostics[0].code == "PTO-E2013"
    assert run(program("", f"%a: {type}"), float("inf")).ok


def test_an_unchecked_program_ends_with_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that would be a bug of ours in a checked program is the program's own fault in an unchecked
    one."""
    from pto.engine.reference.grid import Grid

    def broken(self: Grid) -> None:
        self.admit()
        raise TypeError("no such operand")

    monkeypatch.setattr(Grid, "go", broken)
    module = pto.parse(program("", ""))
    result = pto.kernel(module, check=False, engine="reference").run()
    assert codes(result) == ["PTO-E2102"] and "no such operand" in result.diagnostics[0].message
    with pytest.raises(TypeError):
        pto.kernel(module, engine="reference").run()


def test_a_kernel_is_made_from_a_module_and_names_itself() -> None:
    with pytest.raises(TypeError, match="a program as a path or text"):
        pto.kernel(1)  # type: ignore[arg-type]
    with pytest.raises(DiagnosticError, match=r"cannot read 'k\.pto'"):
        pto.kernel("k.pto")
    assert repr(pto.kernel(program("", "%n: i32"))) == "<Kernel @k(%n: i32)>"
    kernel = pto.kernel(pto.parse(program("", "%n: i32")), "@k", engine="reference")
    assert repr(kernel) == "<Kernel @k(%n: i32)>"
    assert repr(kernel(4)) == "<LaunchResult ok>"
    assert repr(kernel.run(4, sanitize="oob")) == "<LaunchResult ok, checked for oob>"


@pytest.mark.parametrize(("limit", "ok"), [(1, False), (10, False), (10_000, True)])
def test_the_step_limit_is_exact_enough_for_small_numbers(limit: int, ok: bool) -> None:
    text = program(f"{CONSTANTS}\nscf.for %i = %c0 to %n step %c1 {{\n}}", "%n: index")
    assert run(text, 100, max_steps=limit).ok == ok


@pytest.mark.parametrize("engine_sync", ["pto.barrier <PIPE_ALL>", ""], ids=["with a barrier", "without"])
def test_a_barrier_does_not_take_the_pipes_from_the_tools(engine_sync: str) -> None:
    """As in sync insertion: only flags say that a program orders its pipes itself."""
    tile, window = "!pto.tile_buf<vec, 8x8xf32>", "!pto.partition_tensor_view<8x8xf32>"
    text = f"""\
func.func @k(%p: !pto.ptr<f32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %v = pto.make_tensor_view %p, shape = [%c8, %c8], strides = [%c8, %c1] : !pto.tensor_view<8x8xf32>
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c8] : !pto.tensor_view<8x8xf32> -> {window}
  %t = pto.alloc_tile : {tile}
  {engine_sync}
  pto.tload ins(%w : {window}) outs(%t : {tile})
  pto.tneg ins(%t : {tile}) outs(%t : {tile})
  pto.tstore ins(%t : {tile}) outs(%w : {window})
  return
}}
"""
    x = np.ones((8, 8), np.float32)
    assert pto.kernel(pto.parse(text), engine="reference").run(x, sanitize="race").diagnostics == []
    assert (x == -1).all()


@pytest.mark.parametrize("kind", ["cube", "vector"])
def test_a_module_says_the_kind_of_core_for_its_functions(kind: str) -> None:
    other = {"cube": "vector", "vector": "cube"}[kind]
    text = """module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<{kind}>}} {{
      func.func @k(%out: !pto.ptr<f32>) attributes {{pto.aicore{own}}} {{ return }}
    }}"""
    module = pto.parse(text.format(kind=kind, own=""))
    assert pto.verify(module) == []
    assert [role[0] for role in pto.kernel(module, engine="reference").roles] == [kind]
    own = pto.parse(text.format(kind=kind, own=f", pto.kernel_kind = #pto.kernel_kind<{other}>"))
    assert [role[0] for role in pto.kernel(own, engine="reference").roles] == [other]


def test_the_two_sides_of_a_kernel_may_have_names_of_their_own() -> None:
    """Without `X_aic` and `X_aiv` the only function of each kind of core is a side, if both take the same."""
    text = (EXAMPLES / "09_fifo_push_pop.pto").read_text()
    renamed = text.replace("exp_product_aic", "matrix").replace("exp_product_aiv", "activation")
    given = np.random.default_rng(7).standard_normal(4096).astype(np.float16)
    results = []
    for written in (text, renamed):
        results.append(np.zeros(4096, np.float32))
        pto.kernel(pto.parse(written), engine="reference")(given, given, results[-1])
    assert results[0].any() and (results[0] == results[1]).all()
    other = renamed.replace("@activation(%a: !pto.ptr<f16>,", "@activation(%a: !pto.ptr<f32>,")
    with pytest.raises(DiagnosticError, match="cannot choose one of several functions"):
        pto.kernel(pto.parse(other), check=False, engine="reference")


IDLE = """module attributes {pto.target_arch = "a3"} {
func.func @k(%n: index, %m: index) attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>} {
  %a = arith.constant 0 : i64
  %b = arith.constant 4096 : i64
  %c = arith.constant 8192 : i64
  %src = pto.alloc_tile addr = %a valid_row = %n valid_col = %n : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
  %tmp = pto.alloc_tile addr = %b valid_row = %n valid_col = %m : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
  %dst = pto.alloc_tile addr = %c valid_row = %n valid_col = %m : !pto.tile_buf<vec, 16x1xf32, valid=?x?, blayout=col_major>
  pto.trowmin ins(%src, %tmp : !pto.tile_buf<vec, 16x64xf32, valid=?x?>, !pto.tile_buf<vec, 16x64xf32, valid=?x?>)
    outs(%dst : !pto.tile_buf<vec, 16x1xf32, valid=?x?, blayout=col_major>)
  return
}
}
"""


@pytest.mark.parametrize("engine", ["reference", "cpp"])
def test_an_instruction_that_meets_empty_tiles_only_breaks_no_rule(engine: str) -> None:
    k = pto.kernel(pto.parse(IDLE), engine=engine, checked=engine == "cpp")
    assert k.run(0, 0).ok
    assert k.run(4, 1).ok  # the valid region of the scratch is not used
    refused = k.run(4, 0).diagnostics  # which C++ may say
    assert [d.code for d in refused] == (["PTO-E0401"] if engine == "reference" else [])


def test_the_left_operand_says_how_deep_a_product_is() -> None:
    text = """module attributes {pto.target_arch = "a3"} {
func.func @k(%k: index, %out: !pto.partition_tensor_view<16x16xf32>) attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<cube>} {
  %a = arith.constant 0 : i64
  %n = arith.constant 16 : index
  %l = pto.alloc_tile addr = %a valid_row = %n valid_col = %k : !pto.tile_buf<left, 16x16xf16, valid=?x?, blayout=row_major, slayout=row_major>
  %r = pto.alloc_tile addr = %a : !pto.tile_buf<right, 16x16xf16, blayout=row_major, slayout=col_major>
  %d = pto.alloc_tile addr = %a : !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
  pto.tmatmul ins(%l, %r : !pto.tile_buf<left, 16x16xf16, valid=?x?, blayout=row_major, slayout=row_major>, !pto.tile_buf<right, 16x16xf16, blayout=row_major, slayout=col_major>) outs(%d : !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>)
  return
}
}
"""
    k = pto.kernel(pto.parse(text), engine="reference")
    assert k.run(15, np.zeros((16, 16), np.float32)).ok
    assert not k.run(17, np.zeros((16, 16), np.float32)).ok
