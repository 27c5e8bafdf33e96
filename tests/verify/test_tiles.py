"""Tile types, where tiles lie, and the rules of auto and manual mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.each import together

from pto.asm import parse
from pto.asm.type_text import parse_type
from pto.ir.facts import is_manual
from pto.ir.types import TileBufType
from pto.isa.profiles import PROFILES, profile
from pto.verifier import verify
from pto.verifier.tiles import construction_problems, placement_problems

Check = Callable[..., Any]

TILE = "!pto.tile_buf<vec, 16x64xf32>"  # 4096 bytes


def tile(text: str, target: str = "a2a3") -> TileBufType:
    found = parse_type(f"!pto.tile_buf<{text}>")
    assert isinstance(found, TileBufType)
    return found


# ---------------------------------------------------------------------------------------- construction


@together(
    ("text", "codes"),
    [
        ("vec, 16x64xf32", []),
        ("vec, 1x8xf32", []),
        ("vec, 0x64xf32", ["SA-0064"]),
        ("vec, 16x0xf32", ["SA-0064"]),
        ("vec, 16x64xf32, valid=0x0", []),
        ("vec, 16x64xf32, valid=?x?", []),
        ("vec, 16x64xf32, valid=17x64", ["SA-0065"]),
        ("vec, 16x64xf32, valid=16x65", ["SA-0065"]),
        ("vec, 16x7xf32", ["SA-0006"]),
        ("vec, 16x16xi8", ["SA-0006"]),
        ("vec, 16x32xi8", []),
        ("vec, 8x1xf32, blayout=col_major", []),
        ("vec, 7x1xf32, blayout=col_major", ["SA-0006"]),
        ("vec, 17x7xf32, valid=18x7", ["SA-0065", "SA-0006"]),
        ("vec, 16x64xf64", ["PTO-E0302"]),
        ("vec, 16x64xindex", ["PTO-E0302"]),
        ("mat, 16x64xf16, blayout=col_major, slayout=row_major", []),
        ("mat, 16x24xf16, blayout=col_major, slayout=row_major", ["SA-0066"]),
        ("mat, 8x32xf16, blayout=col_major, slayout=row_major", ["SA-0067"]),
        ("mat, 8x24xf16, blayout=col_major, slayout=row_major", ["SA-0066", "SA-0067"]),
        ("mat, 1x32xf16, blayout=col_major, slayout=row_major", []),
        ("vec, 8x32xf16, blayout=col_major, slayout=row_major", []),
        ("mat, 16x64xf16, slayout=row_major, fractal=256", ["SA-0095"]),
        ("acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024", []),
        ("vec, 8193x8xf32, valid=1x8", ["PTO-E0401"]),
        ("vec, 8192x8xf32, valid=1x8", []),
    ],
)
def test_construction(text: str, codes: list[str]) -> None:
    found = list(construction_problems(tile(text), profile("a2a3")))
    assert [code for code, *_ in found] == codes


def test_row_limit_is_the_profile_s() -> None:
    large = tile("vec, 8193x8xf32", "a5")
    assert [p[0] for p in construction_problems(large, profile("a2a3"))] == ["PTO-E0401"]
    assert not list(construction_problems(large, profile("a5")))


@together(
    ("text", "help"),
    [
        ("vec, 16x12xf32", "nearest legal choices: cols=8 or cols=16"),
        ("vec, 16x5xf32", "nearest legal choice: cols=8"),
        ("vec, 9x1xf32, blayout=col_major", "nearest legal choices: rows=8 or rows=16"),
        ("mat, 16x64xf16, slayout=row_major, fractal=500", "nearest legal choice: 512"),
        ("vec, 16x64xf32, valid=17x64", "write valid=16x64 or enlarge the tile"),
    ],
)
def test_the_nearest_legal_choice_is_legal(text: str, help: str) -> None:
    (problem,) = construction_problems(tile(text), profile("a2a3"))
    assert problem[4] == help


# ------------------------------------------------------------------------------------------- placement


@together(
    ("address", "codes"),
    [
        (None, []),
        (0, []),
        (192 * 1024 - 4096, []),
        (192 * 1024 - 4096 + 32, ["SA-0353"]),
        (192 * 1024, ["SA-0353"]),
        (-32, ["SA-0353"]),
        (16, ["SA-0354"]),
        (192 * 1024 - 16, ["SA-0353", "SA-0354"]),
        (1 << 60, ["SA-0353"]),
    ],
)
def test_placement_in_the_unified_buffer_of_a2a3(address: int | None, codes: list[str]) -> None:
    found = list(placement_problems(tile("vec, 16x64xf32"), address, profile("a2a3")))
    assert [code for code, *_ in found] == codes


def test_messages_name_capacity_size_and_address() -> None:
    ((_, message, expected, got, help),) = placement_problems(
        tile("vec, 16x64xf32"), 192 * 1024 - 4064, profile("a2a3")
    )
    for number in ("4096 bytes", "192544", "196640", "196608 bytes"):
        assert number in message
    assert (expected, got, help) == (
        "0 <= address <= 192512",
        "192544",
        "highest legal address: 192512 (FIX-A12)",
    )


@pytest.mark.parametrize(("address", "near"), [(1, 0), (17, 32), (47, 32), (100, 96)])
def test_nearest_address(address: int, near: int) -> None:
    ((code, *_, help),) = placement_problems(tile("vec, 16x64xf32"), address, profile("a2a3"))
    assert (code, help) == ("SA-0354", f"nearest legal address: {near} (FIX-A12)")


def test_space_that_does_not_exist() -> None:
    scale = tile("scale_left, 16x16xui8, slayout=row_major, fractal=32")
    assert [p[0] for p in placement_problems(scale, 0, profile("a2a3"))] == ["SA-0351"]
    assert not list(placement_problems(scale, 0, profile("a5")))


@together("name", PROFILES)
def test_capacity_of_every_profile_is_exact(name: str) -> None:
    """A tile of exactly the buffer fits, one row more does not."""
    found = profile(name)
    rows = found.capacity["vec"] // 32
    assert not list(placement_problems(tile(f"vec, {rows}x8xf32"), 0, found))
    assert [p[0] for p in placement_problems(tile(f"vec, {rows + 1}x8xf32"), 0, found)] == ["SA-0352"]


# -------------------------------------------------------------------------------------------- overrides


def test_capacity_override(annotated: Check, kernel: Check) -> None:
    small = profile("a2a3").override(capacity={"vec": 4096})
    annotated(kernel(f"%t = pto.alloc_tile : {TILE}"), small)
    (found,) = annotated(kernel("%t = pto.alloc_tile : !pto.tile_buf<vec, 17x64xf32> //~ SA-0352"), small)
    assert "4096 bytes" in found.message
    annotated(kernel("%t = pto.alloc_tile : !pto.tile_buf<vec, 17x64xf32>"))


def test_alignment_override(annotated: Check, kernel: Check) -> None:
    body = "%at = arith.constant 32 : i64\n%t = pto.alloc_tile addr = %at : " + TILE
    annotated(kernel(body))
    annotated(kernel(body + " //~ SA-0354"), profile("a2a3").override(align=64))


def test_override_leaves_the_rest_alone() -> None:
    changed = profile("a5").override(capacity={"acc": 1024})
    assert changed.capacity["acc"] == 1024
    assert changed.capacity["vec"] == profile("a5").capacity["vec"] and changed.align == 32
    assert profile("a5").capacity["acc"] == 256 * 1024
    with pytest.raises(ValueError, match="unknown tile location 'ub'"):
        profile("a5").override(capacity={"ub": 1})


# ----------------------------------------------------------------------------------- places in a program


def test_tiles_of_arguments_and_results_are_checked(annotated: Check) -> None:
    annotated("""
func.func @k(%t: !pto.tile_buf<vec, 16x12xf16>, %u: !pto.tile_buf<vec, 16x16xf16>) { //~ SA-0006
  %a = pto.alloc_tile : !pto.tile_buf<vec, 0x16xf16> //~ SA-0064
  %b = pto.declare_tile -> !pto.tile_buf<vec, 16x12xf16> //~ SA-0006
  return
}
""")


def test_the_address_is_pointed_at(annotated: Check, kernel: Check) -> None:
    (found,) = annotated(
        kernel(
            "%where = arith.constant 8 : i64\n%t = pto.alloc_tile addr = %where : " + TILE + " //~ SA-0354"
        )
    )
    assert found.span is not None
    assert found.span.source.text[found.span.start : found.span.end] == "%where"


def test_a_type_is_pointed_at_by_itself_or_by_its_name(annotated: Check) -> None:
    """Also that of an argument; an operation of another file keeps its declared location."""
    found = annotated("""
!odd = !pto.tile_buf<vec, 16x12xf16>
func.func @k(%t: !odd, %u: !pto.tile_buf<vec, 16x20xf16>) { //~ SA-0006 SA-0006
  %a = pto.alloc_tile : !odd //~ SA-0006
  %b = pto.declare_tile -> !pto.tile_buf<vec, 16x28xf16> //~ SA-0006
  return
}
""")
    places = [d.span.source.text[d.span.start : d.span.end] for d in found]
    types = ["!pto.tile_buf<vec, 16x20xf16>", "!pto.tile_buf<vec, 16x28xf16>"]
    assert sorted(places) == ["!odd", "!odd", *types]
    (away,) = verify(parse(f'func.func @k() {{ %t = pto.alloc_tile : {types[0]} loc("k.py":3:5)\nreturn }}'))
    assert away.span is not None and (away.span.source.name, away.span.place) == ("k.py", (3, 5))


def test_a_window_beyond_its_tensor_has_its_name(annotated: Check, kernel: Check) -> None:
    """The place is the offset of the window."""
    (found,) = annotated(
        kernel(
            "%w = arith.constant 8 : index\n"
            "%v = pto.make_tensor_view %gm, shape = [%w, %w], strides = [%w, %w] : !pto.tensor_view<8x8xf32>\n"
            "%p = pto.partition_view %v, offsets = [%w, %w], sizes = [%w, %w] : !pto.tensor_view<8x8xf32> "
            "-> !pto.partition_tensor_view<8x8xf32> //~ PTO-E0401 PTO-E0401"
        )
    )[:1]
    assert found.expected == "offsets[0] + sizes[0] <= %v dimensions[0]"
    assert found.got == "offsets[0] = 8, sizes[0] = 8, %v dimensions = 8x8"
    assert found.span.source.text[found.span.start : found.span.end] == "%w"


def test_run_time_addresses_are_left_to_the_engine(annotated: Check, kernel: Check) -> None:
    annotated(kernel(f"%t = pto.alloc_tile addr = %at : {TILE}", "%at: i64"))


def test_tassign_is_checked_like_alloc(annotated: Check, kernel: Check) -> None:
    body = (
        "%a = arith.constant 0 : i64\n%b = arith.constant {0} : i64\n%t = pto.alloc_tile addr = %a : " + TILE
    )
    bind = f"\npto.tassign %t, %b : {TILE}, i64"
    annotated(kernel(body.format(4096) + bind))
    annotated(kernel(body.format(4100) + bind + " //~ SA-0354"))
    annotated(kernel(body.format(196608) + bind + " //~ SA-0353"))


# ------------------------------------------------------------------------------------- auto and manual


def test_mode_follows_the_program() -> None:
    auto = parse(f"func.func @k() {{\n%t = pto.alloc_tile : {TILE}\nreturn\n}}\n")
    manual = parse(f"func.func @k(%a: i64) {{\n%t = pto.alloc_tile addr = %a : {TILE}\nreturn\n}}\n")
    assert not is_manual(auto, None) and is_manual(manual, None)
    assert is_manual(auto, "level3") and not is_manual(manual, "level2")


@pytest.mark.parametrize(
    ("level", "with_address", "without"),
    [
        (None, "", ""),
        ("level1", "PTO-E0902", ""),
        ("level2", "PTO-E0902", ""),
        ("level3", "", "PTO-E0901"),
    ],
)
def test_levels(annotated: Check, kernel: Check, level: str | None, with_address: str, without: str) -> None:
    def expect(code: str) -> str:
        return f" //~ {code}" if code else ""

    arguments = "%a: i64"
    annotated(kernel(f"%t = pto.alloc_tile addr = %a : {TILE}{expect(with_address)}", arguments), level=level)
    annotated(kernel(f"%t = pto.alloc_tile : {TILE}{expect(without)}", arguments), level=level)


def test_half_of_the_tiles_placed(annotated: Check, kernel: Check) -> None:
    (found,) = annotated(
        kernel(
            f"%t = pto.alloc_tile addr = %a : {TILE}\n%u = pto.alloc_tile : {TILE} //~ PTO-E0901", "%a: i64"
        )
    )
    assert "other tiles" in found.message


def test_tassign_and_insert_sync(annotated: Check, kernel: Check) -> None:
    body = f"%t = pto.alloc_tile addr = %a : {TILE}\npto.tassign %t, %a : {TILE}, i64"
    annotated(kernel(body, "%a: i64"))
    annotated(kernel(body + " //~ PTO-E0904", "%a: i64"), insert_sync=True)
