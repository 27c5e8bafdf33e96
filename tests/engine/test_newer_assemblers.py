"""Operations of newer assemblers than the manual's: fences, cache lines, prefetches, arrays on the stack."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from tests.codegen.shapes import HEAD, TILE, WINDOW, window

import pto
from pto.asm.type_text import parse_type
from pto.diag import DiagnosticError
from pto.driver import Options, lowered
from pto.engine import elements
from pto.ir.types import TileBufType

ROWS = (
    "fence.barrier_all cmo.cacheinvalid make_prefetch_async_context get_prefetch_async_session "
    "declare_local_array local_array_get local_array_set alloc_multi_tile multi_tile_get"
).split()

NEWER = f"""\
func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>, %n: !pto.ptr<i32>, %w: !pto.ptr<i8>) {{{{
{HEAD}
{window("in", "a")}
{window("out", "o")}
  %ctx = pto.make_prefetch_async_context(%w : !pto.ptr<i8>) -> !pto.prefetch_async_context
  %line = pto.make_tensor_view %a, shape = [%c128], strides = [%c1] : !pto.tensor_view<128xf32>
  %part = pto.partition_view %line, offsets = [%c0], sizes = [%c128] : !pto.tensor_view<128xf32> -> !pto.partition_tensor_view<128xf32>
  %event = pto.tprefetch_async(%part, %ctx : !pto.partition_tensor_view<128xf32>, !pto.prefetch_async_context) -> !pto.async_event
  %session = pto.get_prefetch_async_session %ctx : !pto.prefetch_async_context -> !pto.async_session
  %done = pto.comm.wait_async_event(%event, %session : !pto.async_event, !pto.async_session) -> i1
  %t = pto.alloc_tile addr = %zero : {TILE}
  pto.tload ins(%in : {WINDOW}) outs(%t : {TILE})
  pto.fence.barrier_all #pto.fence_scope<gm>
  pto.tadd ins(%t, %t : {TILE}, {TILE}) outs(%t : {TILE})
  pto.fence.barrier_all #pto.fence_scope<all>
  pto.tstore ins(%t : {TILE}) outs(%out : {WINDOW})
  pto.cmo.cacheinvalid %out single_cache_line : {WINDOW}
  pto.cmo.cacheinvalid %n single_cache_line : !pto.ptr<i32>
  pto.cmo.cacheinvalid all #pto.address_space<gm>
  %array = pto.declare_local_array -> !pto.local_array<8x2xi32>
  scf.for %i = %c0 to %c8 step %c1 {{{{
    %number = arith.index_cast %i : index to i32
    pto.local_array_set %array[%i, %c1], %number : !pto.local_array<8x2xi32>, i32
  }}}}
  %before = pto.local_array_get %array[%c2, %c1] : !pto.local_array<8x2xi32> -> i32
  %seven = arith.constant 7 : i32
  pto.local_array_set %array[%c2, %c1], %seven : !pto.local_array<8x2xi32>, i32
  %after = pto.local_array_get %array[{{index}}, %c1] : !pto.local_array<8x2xi32> -> i32
  pto.store_scalar %before, %n[%c0] : !pto.ptr<i32>, i32
  pto.store_scalar %after, %n[%c1] : !pto.ptr<i32>, i32
  return
}}}}
""".replace("  %t = pto.alloc_tile", "  %zero = arith.constant 0 : i64\n  %t = pto.alloc_tile")


def arrays() -> list[np.ndarray]:  # type: ignore[type-arg]
    given = np.random.default_rng(7).standard_normal((16, 16)).astype(np.float32)
    return [given, np.zeros_like(given), np.zeros(2, np.int32), np.zeros(4096, np.int8)]


@pytest.mark.parametrize("engine", ["reference", "native", "cpp"])
def test_the_program_runs(engine: str) -> None:
    if engine == "cpp" and shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("no C++ compiler")
    given, doubled, numbers, workspace = arrays()
    kernel = pto.kernel(pto.parse(NEWER.format(index="%c2")), engine=engine)
    kernel(given, doubled, numbers, workspace)
    assert (doubled == given * 2).all() and numbers.tolist() == [2, 7]


def test_fences_order_what_they_stand_between() -> None:
    text = NEWER.format(index="%c2")
    assert pto.kernel(pto.parse(text), engine="reference").run(*arrays(), sanitize="all").ok
    without = text.replace("pto.fence.barrier_all #pto.fence_scope<gm>", "")
    found = pto.kernel(pto.parse(without), engine="reference").run(*arrays(), sanitize="race")
    assert [d.code for d in found.diagnostics][:1] == ["PTO-E2201"]


@pytest.mark.parametrize(
    ("index", "words"), [("%c16", "inside the array"), ("%c0, %c0", "one index for each")]
)
def test_an_element_outside_an_array(index: str, words: str) -> None:
    with pytest.raises(DiagnosticError, match=words) as e:
        pto.kernel(pto.parse(NEWER.format(index=index)), engine="reference")(*arrays())
    assert {d.code for d in e.value.diagnostics} == {"PTO-E0401"}


@pytest.mark.parametrize(
    ("index", "column", "words"),
    [("%c2", "%c0", r"element \[2, 0\] of an array on the stack was never set"),
     ("%far", "%c1", r"element \[99, 1\] is outside an array of 8x2 elements")],
)  # fmt: skip
def test_an_element_that_is_not_there(index: str, column: str, words: str) -> None:
    text = NEWER.format(index=index).replace(f"%array[{index}, %c1] : ", f"%array[{index}, {column}] : ")
    text = text.replace(
        "  %seven =",
        "  %read = pto.load_scalar %n[%c0] : !pto.ptr<i32> -> i32\n  %far = arith.index_cast %read : i32 to index\n  %seven =",
    )
    given = arrays()
    given[2][0] = 99
    with pytest.raises(DiagnosticError, match=words):
        pto.kernel(pto.parse(text), engine="reference")(*given)


SLOTS = """\
!mb = !pto.multi_tile_buf<{tile}, count=2>
!tile = !pto.tile_buf<{tile}>
!view = !pto.partition_tensor_view<16x64xf32>
func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %at = arith.constant 512 : i64
  %mb = pto.alloc_multi_tile {how} : !mb
  %av = pto.make_tensor_view %a, shape = [%c64, %c64], strides = [%c64, %c1] : !pto.tensor_view<64x64xf32>
  %ov = pto.make_tensor_view %o, shape = [%c64, %c64], strides = [%c64, %c1] : !pto.tensor_view<64x64xf32>
  scf.for %i = %c0 to %c4 step %c1 {{
    %k = arith.remui %i, %c2 : index
    %r = arith.muli %i, %c16 : index
    %t = pto.multi_tile_get %mb[%k] : !mb -> !tile
    %in = pto.partition_view %av, offsets = [%r, %c0], sizes = [%c16, %c64] : !pto.tensor_view<64x64xf32> -> !view
    %out = pto.partition_view %ov, offsets = [%r, %c0], sizes = [%c16, %c64] : !pto.tensor_view<64x64xf32> -> !view
    pto.tload ins(%in : !view) outs(%t : !tile)
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tneg ins(%t : !tile) outs(%t : !tile)
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tstore ins(%t : !tile) outs(%out : !view)
    pto.barrier #pto.pipe<PIPE_ALL>
  }}
  return
}}
"""


@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler")
@pytest.mark.parametrize(
    ("tile", "how"),
    [
        ("vec, 16x64xf32", ""),
        ("vec, 16x64xf32", "addr = %at"),
        ("vec, 16x64xf32, valid=?x?", "valid_row = %c16 valid_col = %c64"),
    ],
)
def test_a_tile_of_two_slots(tile: str, how: str) -> None:
    """Planned, placed by hand, and with a valid region that is known at run time; each slot is used twice."""
    module = pto.parse(SLOTS.format(tile=tile, how=how))
    text = pto.to_text(module)
    assert f"!pto.multi_tile_buf<{tile}, count=2>" in text
    assert pto.to_text(pto.parse(text)) == text
    assert pto.verify(module, "a5") == []
    for engine in ("reference", "cpp"):
        a = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)
        o = np.zeros_like(a)
        pto.kernel(module, engine=engine, target="a5")(a, o)
        assert (o == -a).all()
    assert "TSUBVIEW(" in pto.emit_cpp(module, target="a5")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("count=2", "count=17", "a count of 2 to 16"),
        ("count=2", "slots=2", "expected a tile and a count"),
        ("%mb[%k]", "%mb[%c2]", "slot 2 is out of range: %mb has 2 slots"),
        (
            "!tile = !pto.tile_buf<vec, 16x64xf32>",
            "!tile = !pto.tile_buf<vec, 8x64xf32>",
            "slot type does not match the source",
        ),
        (
            "pto.alloc_multi_tile  :",
            "pto.alloc_multi_tile valid_row = %c16 :",
            "valid_row operand must be absent",
        ),
        ("vec, 16x64xf32, count=2", "", "expected a tile and a count"),
        ("count=2", "count=\u00b2", "expected a number"),
        ("outs(%t : !tile)", "outs(%mb : !mb)", "operand 'dst' must be an on-chip tile"),
        ("%mb[%k] : !mb", "%t0[%k] : !tile", "operand 'source' must be a tile of several slots"),
        ("%mb[%k]", "%mb[%at]", "operand 'slot' must be an index"),
    ],
)
def test_bad_slots(old: str, new: str, said: str) -> None:
    text = SLOTS.format(tile="vec, 16x64xf32", how="")
    assert old in text
    text = text.replace("  %mb =", "  %t0 = pto.alloc_tile : !tile\n  %mb =")
    try:
        found = pto.verify(pto.parse(text.replace(old, new)), "a5")
    except DiagnosticError as e:
        found = e.diagnostics
    assert any(said in f"{d.message} {d.expected}" for d in found), found


def test_slots_of_a_tile_from_elsewhere() -> None:
    """Their valid region is in the type, or cannot be known."""
    text = SLOTS.format(tile="vec, 16x64xf32, valid=?x?", how="valid_row = %c16 valid_col = %c64")
    text = text.replace("step %c1 {", "step %c1 iter_args(%m = %mb) -> (!mb) {").replace("%mb[%k]", "%m[%k]")
    text = text.replace("  scf.for", "  %last = scf.for").replace(
        "\n  }\n", "\n    scf.yield %m : !mb\n  }\n"
    )
    (found,) = pto.verify(pto.parse(text), "a5")
    assert found.code == "PTO-E0401" and "unknown valid region of the slots of %m" in found.message
    text = text.replace(", valid=?x?", "").replace("valid_row = %c16 valid_col = %c64 ", "")
    assert pto.verify(pto.parse(text), "a5") == []


HANDED_ON = """\
!mb = !pto.multi_tile_buf<vec, 16x64xf32, count=2>
!tile = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.partition_tensor_view<16x64xf32>
func.func private @g(%mb: !mb, %v: !view, %n: index) {
  %t = pto.multi_tile_get %mb[%n] : !mb -> !tile
  pto.tload ins(%v : !view) outs(%t : !tile)
  return
}
func.func private @f(%mb: !mb, %v: !view, %n: index) {
  func.call @g(%mb, %v, %n) : (!mb, !view, index) -> ()
  return
}
func.func @k(%v: !view, %n: index) attributes {pto.entry} {
  %at = arith.constant 0 : i64
  %mb = pto.alloc_multi_tile addr = %at : !mb
  func.call @f(%mb, %v, %n) : (!mb, !view, index) -> ()
  return
}
"""


def test_messages_name_what_was_written() -> None:
    found = pto.kernel(pto.parse(HANDED_ON), engine="reference").run(
        np.zeros((16, 64), np.float32), 2, sanitize="oob"
    )
    assert [d.message.partition(":")[0] for d in found.diagnostics] == ["multi_tile_get"]
    beyond = pto.verify(pto.parse(HANDED_ON.replace("constant 0 : i64", "constant 524288 : i64")))
    assert [d.message.partition(":")[0] for d in beyond] == ["alloc_multi_tile"]


def test_a_function_may_hand_slots_on_or_leave_them() -> None:
    assert "TSUBVIEW(" in pto.emit_cpp(pto.parse(HANDED_ON))
    alone = (
        "!mb = !pto.multi_tile_buf<vec, 16x64xf32, count=2>\nfunc.func private @f(%mb: !mb) {\n  return\n}\n"
    )
    assert "Tile<TileType::Vec, float, 32, 64" in pto.emit_cpp(pto.parse(alone))


def test_flags_tell_slots_of_neighbours_apart() -> None:
    """The load of the next slot does not hold up the work on this one: that waits for the load before."""
    text = SLOTS.format(tile="vec, 16x64xf32", how="").replace("    pto.barrier #pto.pipe<PIPE_ALL>\n", "")
    ahead = text.replace("    %t =", "    %j = arith.addi %i, %c1 : index\n    %l = arith.remui %j, %c2 : index\n"
                         "    %s = pto.multi_tile_get %mb[%l] : !mb -> !tile\n    %t =")  # fmt: skip
    ahead = ahead.replace("pto.tload ins(%in : !view) outs(%t", "pto.tload ins(%in : !view) outs(%s")
    for program, waits_first in ((text, False), (ahead, True)):
        done = lowered(pto.parse(program), options=Options(insert_sync=True)).sound()
        lines = pto.to_text(done.module).splitlines()
        loop = lines[next(n for n, line in enumerate(lines) if "scf.for" in line) :]
        wait, load = (
            next(n for n, line in enumerate(loop) if word in line)
            for word in ("wait_flag[<PIPE_MTE2>, <PIPE_V>", "pto.tload")
        )
        assert (wait < load) == waits_first, pto.to_text(done.module)


PACKED = """\
!p = !pto.tile_buf<loc=vec, dtype=!pto.f4E2M1x2, rows=16, cols=64, v_row=?, v_col=?, blayout=row_major, slayout=none_box, fractal=512, pad=0>
!half = !pto.tile_buf<vec, 16x32x!pto.f4E2M1x2, valid=?x?>
!x = !pto.tile_buf<vec, 16x128xbf16>
!y = !pto.tile_buf<vec, 16x64xbf16>
!codes = !pto.partition_tensor_view<16x128x!pto.f4E2M1x2>
!all = !pto.tensor_view<16x128x!pto.f4E2M1x2>
func.func @k(%at: !pto.ptr<!pto.f4E2M1x2>, %o: !pto.partition_tensor_view<16x128xbf16>, %to: !pto.ptr<!pto.f4E2M1x2>, %h: !pto.partition_tensor_view<16x64xbf16>, %cols: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %av = pto.make_tensor_view %at, shape = [%c16, %c128], strides = [%c128, %c1] : !all
  %bv = pto.make_tensor_view %to, shape = [%c16, %c128], strides = [%c128, %c1] : !all
  %a = pto.partition_view %av, offsets = [%c0, %c0], sizes = [%c16, %c128] : !all -> !codes
  %b = pto.partition_view %bv, offsets = [%c0, %c0], sizes = [%c16, %c128] : !all -> !codes
  %p = pto.alloc_tile valid_row = %c16 valid_col = %cols : !p
  %q = pto.alloc_tile valid_row = %c16 valid_col = %cols : !p
  %right = pto.subview %p[%c0, %c32] sizes [16, 32] valid [%c16, %c32] : !p -> !half
  %x = pto.alloc_tile : !x
  %y = pto.alloc_tile : !y
  pto.tload ins(%a : !codes) outs(%p : !p)
  pto.tcvt ins(%p {rmode = #pto<round_mode CAST_RINT>} : !p) outs(%x : !x)
  pto.tcvt ins(%x {rmode = #pto<round_mode CAST_RINT>} : !x) outs(%q : !p)
  pto.tcvt ins(%right {rmode = #pto<round_mode CAST_RINT>} : !half) outs(%y : !y)
  pto.tstore ins(%x : !x) outs(%o : !pto.partition_tensor_view<16x128xbf16>)
  pto.tstore ins(%q : !p) outs(%b : !codes)
  pto.tstore ins(%y : !y) outs(%h : !pto.partition_tensor_view<16x64xbf16>)
  return
}
"""


@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler")
def test_tiles_of_pairs_of_small_floats() -> None:
    """64 columns of pairs are 128 of elements, in valid regions and windows as well."""
    module = pto.parse(PACKED)
    assert pto.verify(module, "a5") == []
    assert "16x64xf4E2M1FN" in pto.to_text(module)  # as it was written
    assert "Tile<TileType::Vec, float4_e2m1x2_t, 16, 128" in pto.emit_cpp(module, target="a5")
    a = np.random.default_rng(4).integers(0, 256, (16, 64)).astype(np.uint8)
    want = elements.decode("f4e2m1", np.stack([a & 15, a >> 4], -1).reshape(16, 128))
    for engine in ("reference", "cpp"):
        o, b, h = np.zeros((16, 128), np.uint16), np.zeros_like(a), np.zeros((16, 64), np.uint16)
        pto.kernel(module, engine=engine, target="a5")(a, o, b, h, 64)
        assert (elements.decode("bf16", o) == want).all() and (b == a).all()
        assert (elements.decode("bf16", h) == want[:, 64:]).all()
    square = """func.func @k(%n: index) {
      %a = pto.alloc_tile valid_row = %n valid_col = %n : !pto.tile_buf<vec, 32x32x!pto.f4E2M1x2, valid=?x?>
      %c32 = arith.constant 32 : index
      %b = pto.alloc_tile valid_row = %c32 valid_col = %c32 : !pto.tile_buf<vec, 32x32x!pto.f4E2M1x2, valid=?x?>
      %c = pto.alloc_tile : !pto.tile_buf<vec, 32x64xbf16>
      pto.tcvt ins(%b {rmode = #pto<round_mode RINT>} : !pto.tile_buf<vec, 32x32x!pto.f4E2M1x2, valid=?x?>) outs(%c : !pto.tile_buf<vec, 32x64xbf16>)
      return
    }"""  # the same value counts rows and pairs
    assert [d for d in pto.verify(pto.parse(square), "a5") if d.severity == "error"] == []
    alone = PACKED.replace("rows=16, cols=64", "rows=16, cols=48")
    assert {d.code for d in pto.verify(pto.parse(alone), "a5")} >= {"PTO-E0401"}


def test_scales_of_both_operands_have_memories_of_their_own() -> None:
    """Newer assemblers write `scaling` for both, each at its address 0: layouts distinguish the memories."""
    form = (
        "!pto.tile_buf<loc=scaling, dtype={}, rows={}, cols={}, v_row=?, v_col=?, blayout={o}, slayout={o}, "
        "fractal=32, pad=0>"
    )
    left = parse_type(form.format("!pto.f8E8M0", 64, 4, o="row_major"))
    right = parse_type(form.format("!pto.f8E8M0", 4, 128, o="col_major"))
    assert [t.loc for t in (left, right) if isinstance(t, TileBufType)] == ["scale_left", "scale_right"]
    other = parse_type("!pto.tile_buf<scaling, 1x128xui64>")
    assert isinstance(other, TileBufType) and other.loc == "scaling"


def _mx_operand(name: str, rows: int, cols: int, kind: str) -> str:
    """A load of an operand or of its scales, and the move to where a product takes it."""
    elem, layout, mat, place = {
        "a": ("f8E4M3FN", "nd", "blayout=col_major, slayout=row_major, fractal=512", "left, {}, blayout=col_major, slayout=row_major"),
        "b": ("f8E4M3FN", "nd", "blayout=col_major, slayout=row_major, fractal=512", "right, {}, slayout=col_major"),
        "sa": ("!pto.f8E8M0", "mx_a_zz", "blayout=row_major, slayout=row_major, fractal=32", "scale_left, {}, slayout=row_major, fractal=32"),
        "sb": ("!pto.f8E8M0", "mx_b_nn", "blayout=col_major, slayout=col_major, fractal=32", "scale_right, {}, blayout=col_major, slayout=col_major, fractal=32"),
    }[kind]  # fmt: skip
    size = f"{rows}x{cols}x{elem}"
    tile, at = f"!pto.tile_buf<mat, {size}, {mat}>", f"!pto.tile_buf<{place.format(size)}>"
    return f"""
  %{name}_r = arith.constant {rows} : index
  %{name}_c = arith.constant {cols} : index
  %{name}_v = pto.make_tensor_view %{name}, shape = [%{name}_r, %{name}_c], strides = [%{name}_c, %c1] {{layout = #pto.layout<{layout}>}} : !pto.tensor_view<?x?x{elem}>
  %{name}_p = pto.partition_view %{name}_v, offsets = [%c0, %c0], sizes = [%{name}_r, %{name}_c] : !pto.tensor_view<?x?x{elem}> -> !pto.partition_tensor_view<{size}>
  %{name}_m = pto.alloc_tile : {tile}
  pto.tload ins(%{name}_p : !pto.partition_tensor_view<{size}>) outs(%{name}_m : {tile})
  %{name}_t = pto.alloc_tile : {at}
  pto.tmov ins(%{name}_m : {tile}) outs(%{name}_t : {at})"""


def test_scales_that_are_given_by_rows_and_columns_lie_packed() -> None:
    """On every engine: 16 rows and 2 columns of them side by side."""
    m, k, n = 16, 64, 32
    args = [("a", m, k, "a"), ("sa", m, k // 32, "sa"), ("b", k, n, "b"), ("sb", k // 32, n, "sb")]
    body = "".join(_mx_operand(*a) for a in args)
    types = [line.split(" : ")[1] for line in body.splitlines() if "_t = pto.alloc_tile" in line]
    acc = f"!pto.tile_buf<acc, {m}x{n}xf32, blayout=col_major, slayout=row_major, fractal=1024>"
    text = f"""func.func @k(%a: !pto.ptr<f8E4M3FN>, %sa: !pto.ptr<!pto.f8E8M0>, %b: !pto.ptr<f8E4M3FN>, %sb: !pto.ptr<!pto.f8E8M0>, %o: !pto.partition_tensor_view<{m}x{n}xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index{body}
  %acc = pto.alloc_tile : {acc}
  pto.tmatmul.mx ins(%a_t, %sa_t, %b_t, %sb_t : {", ".join(types)}) outs(%acc : {acc})
  pto.tstore ins(%acc : {acc}) outs(%o : !pto.partition_tensor_view<{m}x{n}xf32>)
  return
}}"""
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 112, s).astype(np.uint8) for s in ((m, k), (k, n)))
    sa, sb = (rng.integers(125, 130, s).astype(np.uint8) for s in ((m, k // 32), (k // 32, n)))
    wide = [elements.decode(t, v).astype(np.float64) for t, v in (("f8e4m3", a), ("f8e4m3", b), ("f8e8m0", sa), ("f8e8m0", sb))]  # fmt: skip
    want = (wide[0] * np.repeat(wide[2], 32, 1)) @ (wide[1] * np.repeat(wide[3], 32, 0))
    packed = np.ascontiguousarray(sb.reshape(1, 2, 2, 16).transpose(2, 0, 3, 1)).reshape(sb.shape)
    for engine in ("reference", "native"):
        out = np.zeros((m, n), np.float32)
        pto.kernel(pto.parse(text), engine=engine, target="a5")(a, sa, b, packed, out)
        np.testing.assert_allclose(out, want, rtol=1e-6, err_msg=engine)
