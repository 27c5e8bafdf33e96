"""Descriptors: windows, aliases and addresses name the bytes they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

import pto
from pto.engine.reference import handles
from pto.engine.reference.instr import IllegalInstruction
from pto.isa import row as find_row
from pto.witness.plan import first_plan

from .programs import CONSTANTS, codes, program, run
from .rows import Case

ROWS = (
    "alloc_tile", "treshape", "bitcast", "subview", "subset", "talias", "tassign", "set_validshape", "make_tensor_view",
    "partition_view", "get_tensor_view_dim", "get_tensor_view_stride", "tensor_view_addr", "tile_buf_addr",
    "tget_scale_addr", "declare_tile", "bind_tile", "pointer_cast", "declare_tile_memref", "memref.alloc",
    "memref.alloca", "memref.dealloc", "memref.reinterpret_cast", "memref.subview", "memref.cast", "memref.load",
    "memref.store", "memref.dim",
)  # fmt: skip

Array = np.ndarray[Any, Any]


def view(name: str, pointer: str, rows: int, cols: int, type: str) -> str:
    """A dense view `%NAME` of a pointer argument."""
    return f"""%{name}_r = arith.constant {rows} : index
    %{name}_c = arith.constant {cols} : index
    %{name}_v = pto.make_tensor_view %{pointer}, shape = [%{name}_r, %{name}_c], strides = [%{name}_c, %c1] : !pto.tensor_view<?x?x{type}>
    %{name} = pto.partition_view %{name}_v, offsets = [%c0, %c0], sizes = [%{name}_r, %{name}_c] : !pto.tensor_view<?x?x{type}> -> !pto.partition_tensor_view<{rows}x{cols}x{type}>"""


def load(source: str, shape: str, target: str, tile: str) -> str:
    return f"pto.tload ins(%{source} : !pto.partition_tensor_view<{shape}>) outs(%{target} : {tile})"


def store(source: str, tile: str, target: str, shape: str) -> str:
    return f"pto.tstore ins(%{source} : {tile}) outs(%{target} : !pto.partition_tensor_view<{shape}>)"


def tile(rows: int, cols: int, type: str, more: str = "") -> str:
    return f"!pto.tile_buf<vec, {rows}x{cols}x{type}{more}>"


@given(r=st.integers(0, 24), c=st.integers(0, 2), cols=st.sampled_from([8, 16]), column_major=st.booleans())
@examples(30)
def test_a_subview_is_a_window_with_the_strides_of_its_source(
    r: int, c: int, cols: int, column_major: bool
) -> None:
    more = ", blayout=col_major" if column_major else ""
    whole, part = tile(32, 32, "f32", more), tile(8, cols, "f32", more)
    body = f"""{CONSTANTS}
    {view("in", "x", 32, 32, "f32")}
    {view("out", "y", 8, cols, "f32")}
    %t = pto.alloc_tile : {whole}
    {load("in", "32x32xf32", "t", whole)}
    %or = arith.constant {r} : index
    %oc = arith.constant {8 * c} : index
    %w = pto.subview %t[%or, %oc] sizes [8, {cols}] : {whole} -> {part}
    {store("w", part, "out", f"8x{cols}xf32")}"""
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    y = np.zeros((8, cols), np.float32)
    result = run(program(body, "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>", arch="cpu"), x, y)
    assert result.ok, result.diagnostics
    assert np.array_equal(y, x[r : r + 8, 8 * c : 8 * c + cols])


def test_writes_through_a_window_reach_the_source() -> None:
    whole, part = tile(4, 32, "f32"), tile(2, 16, "f32")
    body = f"""{CONSTANTS}
    {view("out", "y", 4, 32, "f32")}
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %c16 = arith.constant 16 : index
    %t = pto.alloc_tile : {whole}
    pto.texpands ins(%zero : f32) outs(%t : {whole})
    %w = pto.subview %t[%c1, %c16] sizes [2, 16] : {whole} -> {part}
    pto.texpands ins(%one : f32) outs(%w : {part})
    {store("t", whole, "out", "4x32xf32")}"""
    y = np.full((4, 32), 7, np.float32)
    assert run(program(body, "%y: !pto.ptr<f32>"), y).ok
    expected = np.zeros((4, 32), np.float32)
    expected[1:3, 16:32] = 1
    assert np.array_equal(y, expected)


def test_reshape_and_bitcast_keep_the_bytes() -> None:
    a, b, c = tile(4, 64, "f32"), tile(8, 32, "f32"), tile(4, 64, "i32")
    body = f"""{CONSTANTS}
    {view("in", "x", 4, 64, "f32")}
    {view("o1", "y", 8, 32, "f32")}
    {view("o2", "z", 4, 64, "i32")}
    %t = pto.alloc_tile : {a}
    {load("in", "4x64xf32", "t", a)}
    %r = pto.treshape %t : {a} -> {b}
    {store("r", b, "o1", "8x32xf32")}
    %i = pto.bitcast %t : {a} -> {c}
    {store("i", c, "o2", "4x64xi32")}"""
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    y, z = np.zeros((8, 32), np.float32), np.zeros((4, 64), np.int32)
    result = run(program(body, "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<i32>"), x, y, z)
    assert result.ok, result.diagnostics
    assert np.array_equal(y, x.reshape(8, 32)) and np.array_equal(z, x.view(np.int32))


def test_two_tiles_on_the_same_bytes_see_each_other() -> None:
    """A tile is its bytes: an i32 tile over an f32 one, a plain one over a boxed one, an assigned address."""
    f, i = tile(16, 16, "f32"), tile(16, 16, "i32")
    boxed = tile(16, 16, "f32", ", blayout=col_major, slayout=row_major")
    body = f"""{CONSTANTS}
    {view("in", "x", 16, 16, "f32")}
    {view("o1", "y", 16, 16, "i32")}
    {view("o2", "z", 16, 16, "f32")}
    %a0 = arith.constant 512 : i64
    %t = pto.alloc_tile addr = %a0 : {boxed}
    %u = pto.alloc_tile addr = %a0 : {i}
    %zero = arith.constant 0 : i64
    %w = pto.alloc_tile addr = %zero : {f}
    {load("in", "16x16xf32", "w", f)}
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tmov ins(%w : {f}) outs(%t : {boxed})
    pto.barrier #pto.pipe<PIPE_ALL>
    {store("u", i, "o1", "16x16xi32")}
    pto.tassign %w, %a0 : {f}, i64
    {store("w", f, "o2", "16x16xf32")}"""
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    y, z = np.zeros((16, 16), np.int32), np.zeros((16, 16), np.float32)
    text = program(body, "%x: !pto.ptr<f32>, %y: !pto.ptr<i32>, %z: !pto.ptr<f32>", arch="cpu")
    result = run(text, x, y, z)
    assert result.ok, result.diagnostics
    boxes = np.concatenate([x[:, :8].ravel(), x[:, 8:].ravel()])  # column blocks of eight, each row by row
    assert np.array_equal(y.view(np.float32).ravel(), boxes) and np.array_equal(z.ravel(), boxes)


def test_the_valid_region_changes_what_is_stored() -> None:
    whole = tile(4, 16, "f32", ", valid=?x?")
    body = f"""{CONSTANTS}
    {view("out", "y", 2, 5, "f32")}
    %one = arith.constant 1.0 : f32
    %t = pto.alloc_tile valid_row = %c4 valid_col = %c10 : {whole}
    pto.set_validshape %t, %r, %c : {whole}
    pto.texpands ins(%one : f32) outs(%t : {whole})
    {store("t", whole, "out", "2x5xf32")}"""
    y = np.zeros((2, 5), np.float32)
    text = program(body, "%y: !pto.ptr<f32>, %r: index, %c: index")
    assert run(text, y, 2, 5).ok
    assert (y == 1).all()
    for rows, cols in ((5, 5), (2, 17), (-1, 5)):
        assert codes(run(text, y, rows, cols)) == ["PTO-E2102"]


def test_views_answer_for_their_shape() -> None:
    body = f"""{CONSTANTS}
    %v = pto.make_tensor_view %out, shape = [%c5, %c3], strides = [%c10, %c2] : !pto.tensor_view<?x?xi64>
    %d = pto.get_tensor_view_dim %v, %c1 : !pto.tensor_view<?x?xi64> -> index
    %s = pto.get_tensor_view_stride %v, %c0 : !pto.tensor_view<?x?xi64> -> index
    %p = pto.tensor_view_addr %v : !pto.tensor_view<?x?xi64> -> !pto.ptr<i64>
    %di = arith.index_cast %d : index to i64
    %si = arith.index_cast %s : index to i64
    pto.store_scalar %di, %p[%c0] : !pto.ptr<i64>, i64
    pto.store_scalar %si, %p[%c1] : !pto.ptr<i64>, i64"""
    out = np.zeros(4, np.int64)
    result = run(program(body), out)
    assert result.ok, result.diagnostics
    assert out[:2].tolist() == [3, 10]


@pytest.mark.parametrize("dims", [(3, 4), (2, 3, 4), (2, 2, 3, 4), (2, 1, 2, 3, 4)])
def test_a_partition_of_any_rank_is_loaded_row_by_row(dims: tuple[int, ...]) -> None:
    """Leading dimensions become rows, each with its own stride."""
    rank = len(dims)
    sizes = "".join(f"%s{d} = arith.constant {n} : index\n" for d, n in enumerate(dims))
    big = [n + 1 for n in dims]
    strides: list[int] = [1]
    for n in reversed(big[1:]):
        strides.insert(0, strides[0] * n)
    steps = "".join(f"%t{d} = arith.constant {n} : index\n" for d, n in enumerate(strides))
    names = lambda p: ", ".join(f"%{p}{d}" for d in range(rank))  # noqa: E731
    shape = "x".join("?" * rank)
    rows, cols = int(np.prod(dims[:-1])), dims[-1]
    valid = tile(rows, 8, "f32", f", valid={rows}x{cols}")
    big_sizes = "".join(f"%b{d} = arith.constant {n} : index\n" for d, n in enumerate(big))
    fixed = "x".join(map(str, dims))
    body = f"""{CONSTANTS}
    {sizes}{steps}{big_sizes}
    %v = pto.make_tensor_view %x, shape = [{names("b")}], strides = [{names("t")}] : !pto.tensor_view<{shape}xf32>
    %p = pto.partition_view %v, offsets = [{", ".join(["%c1"] * rank)}], sizes = [{names("s")}] : !pto.tensor_view<{shape}xf32> -> !pto.partition_tensor_view<{fixed}xf32>
    {view("out", "y", rows, cols, "f32")}
    %tt = pto.alloc_tile : {valid}
    {load("p", f"{fixed}xf32", "tt", valid)}
    {store("tt", valid, "out", f"{rows}x{cols}xf32")}"""
    x = np.arange(np.prod(big), dtype=np.float32).reshape(big)
    y = np.zeros((rows, cols), np.float32)
    result = run(program(body, "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>"), x, y)
    assert result.ok, result.diagnostics
    inner = x[tuple(slice(1, None) for _ in dims)]
    assert np.array_equal(y, inner.reshape(rows, cols))


def test_memrefs_of_global_memory() -> None:
    body = f"""{CONSTANTS}
    %m = memref.reinterpret_cast %x to offset: [4], sizes: [3, 2], strides: [4, 1] : memref<?xf32, #pto.address_space<gm>> to memref<3x2xf32, strided<[4, 1], offset: 4>, #pto.address_space<gm>>
    %s = memref.subview %m[1, 0] [2, 2] [1, 1] : memref<3x2xf32, strided<[4, 1], offset: 4>, #pto.address_space<gm>> to memref<2x2xf32, strided<[4, 1], offset: 8>, #pto.address_space<gm>>
    %v = memref.load %s[%c1, %c1] : memref<2x2xf32, strided<[4, 1], offset: 8>, #pto.address_space<gm>>
    memref.store %v, %x[%c0] : memref<?xf32, #pto.address_space<gm>>
    %d = memref.dim %m, %c0 : memref<3x2xf32, strided<[4, 1], offset: 4>, #pto.address_space<gm>>
    %i = arith.index_cast %d : index to i64
    %f = arith.sitofp %i : i64 to f32
    memref.store %f, %x[%c1] : memref<?xf32, #pto.address_space<gm>>"""
    x = np.arange(32, dtype=np.float32)
    result = run(program(body, "%x: memref<?xf32, #pto.address_space<gm>>"), x)
    assert result.ok, result.diagnostics
    assert x[0] == 13 and x[1] == 3


def test_local_memrefs_are_tiles() -> None:
    local = "memref<4x16xf32, #pto.address_space<vec>>"
    body = f"""{CONSTANTS}
    {view("out", "y", 4, 16, "f32")}
    %one = arith.constant 3.0 : f32
    %m = memref.alloc() : {local}
    pto.texpands ins(%one : f32) outs(%m : {local})
    pto.tstore ins(%m : {local}) outs(%out : !pto.partition_tensor_view<4x16xf32>)
    memref.dealloc %m : {local}"""
    y = np.zeros((4, 16), np.float32)
    result = run(program(body, "%y: !pto.ptr<f32>"), y)
    assert result.ok, result.diagnostics
    assert (y == 3).all()


def handled(name: str, isa: str = "a5", **changes: Any) -> tuple[Any, Case]:
    """The result of one descriptor instruction of the witness plan of a row."""
    row = find_row(name)
    assert row is not None
    case = Case(first_plan(row, isa))
    case.core.grid = Silent()  # type: ignore[assignment]
    case.args.update(changes)
    return handles.HANDLERS[name](case.core, case.op, case.args), case


class Silent:
    """A launch without observers."""

    def allocated(self, *_: Any) -> None: ...


def test_an_alias_shares_the_address() -> None:
    _, case = handled("talias")
    assert case.tile("dst").address == case.tile("src").address
    assert case.tile("dst").buffer is case.tile("src").buffer


def test_a_scale_address_is_a_sixteenth_of_the_data_address() -> None:
    _, case = handled("tget_scale_addr")
    assert case.tile("dst").address == case.tile("src").address >> 4


def test_the_address_of_a_tile_is_a_pointer_to_its_bytes() -> None:
    pointer, case = handled("tile_buf_addr")
    assert (pointer.buffer, pointer.offset) == (case.tile("tile").buffer, case.tile("tile").address)


def test_a_declared_tile_has_no_address() -> None:
    made, _ = handled("declare_tile")
    assert made.address is None and made.valid == made.shape
    with pytest.raises(LookupError):
        made.region(1, 1)


def test_bound_and_cast_storage_keeps_its_address() -> None:
    made, case = handled("bind_tile")
    source = case.args["source"]
    assert (made.offset if hasattr(made, "offset") else made.address) == getattr(
        source, "address", getattr(source, "offset", None)
    )
    made, _ = handled("pointer_cast", addrs=[4096])
    assert (made.offset if hasattr(made, "offset") else made.address) == 4096


@pytest.mark.parametrize("name", ["memref.alloc", "memref.alloca", "declare_tile_memref"])
def test_storage_nobody_placed_stays_where_it_is(name: str) -> None:
    first, case = handled(name)
    again = handles.HANDLERS[name](case.core, case.op, case.args)
    assert first.offset == again.offset >= case.core.profile.capacity[first.buffer.space]


def test_a_cast_is_the_same_value() -> None:
    row = find_row("memref.cast")
    assert row is not None
    made, case = handled("memref.cast")
    assert made is case.args["source"]


def test_windows_of_small_elements_start_at_whole_bytes() -> None:
    """Offsets of all dimensions are added before they become bytes: 33 + 1 elements of 4 bits are 17."""
    _, case = handled("partition_view")
    source = case.args["source"]
    source.dtype, source.dims, source.strides = "f4e2m1", (4, 33), (33, 1)
    case.args["sizes"] = [1, 16]
    case.args["offsets"] = [1, 1]
    made = handles.HANDLERS["partition_view"](case.core, case.op, case.args)
    assert made.offset == source.offset + 17
    case.args["offsets"] = [1, 0]
    with pytest.raises(IllegalInstruction, match="middle of a byte"):
        handles.HANDLERS["partition_view"](case.core, case.op, case.args)


@pytest.mark.parametrize("count", [-5, 1 << 62])
def test_storage_of_impossible_sizes(count: int) -> None:
    body = f"""%n = arith.constant {count} : index
    %m = memref.alloc(%n) : memref<?xf32, #pto.address_space<vec>>"""
    assert codes(run(program(body), np.zeros(1, np.int64))) == ["PTO-E2102"]


def test_the_address_of_a_tile_that_has_none() -> None:
    body = f"""%t = pto.declare_tile -> {tile(4, 16, "f32")}
    %p = pto.tile_buf_addr %t : {tile(4, 16, "f32")} -> !pto.ptr<f32, ub>"""
    assert codes(run(program(body, arch="a5"), np.zeros(1, np.int64))) == ["PTO-E2103"]


@pytest.mark.parametrize("engine", ["reference", "native", "cpp"])
def test_addresses_at_run_time(engine: str) -> None:
    """Every engine refuses a tile that is misaligned or beyond its buffer, by the code of the verifier."""
    of = tile(16, 64, "f32")
    text = program(
        f"""{CONSTANTS}
    {view("in", "x", 16, 64, "f32")}
    {view("out", "y", 16, 64, "f32")}
    %t = pto.alloc_tile addr = %at : {of}
    {load("in", "16x64xf32", "t", of)}
    pto.barrier <PIPE_ALL>
    {store("t", of, "out", "16x64xf32")}""",
        "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %at: i64",
    )
    x = np.arange(1024, dtype=np.float32)
    kernel = pto.kernel(pto.parse(text), engine=engine)
    ends = (0, 196608 - 4096)
    for at in ends:
        y = np.zeros_like(x)
        assert kernel.run(x, y, at).ok and np.array_equal(x, y)
    for at in (1, 16, 196608 - 2048, 196608, 524288, -32, 2**40):
        y = np.zeros_like(x)
        (found,) = kernel.run(x, y, at).diagnostics
        assert found.code in (("SA-0354",) if 0 < at < ends[1] else ("SA-0353", "PTO-E2101")), at
        assert found.span is not None and not y.any()
