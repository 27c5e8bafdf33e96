"""The memory map of a run: who lives where and when, overlaps, peaks, and its text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pto
from pto.isa.profiles import profile
from pto.perf.memory_map import Life, MemoryMap, TileOverlap

HEAD = """\
!t = !pto.tile_buf<vec, 16x64xf32>
!half = !pto.tile_buf<vec, 8x64xf32>
!row = !pto.tile_buf<vec, 1x1024xf32>
!view = !pto.tensor_view<16x64xf32>
!window = !pto.partition_tensor_view<16x64xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !pto.ptr<f32>, %n: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1.0 : f32
    %at0 = arith.constant 0 : i64
    %at2k = arith.constant 2048 : i64
    %at4k = arith.constant 4096 : i64
    %at8k = arith.constant 8192 : i64
    %end = arith.constant 192512 : i64
    %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !window
"""


def run(body: str, n: int = 3, **options: Any) -> MemoryMap:
    text = f"{HEAD}{body}\n    return\n  }}\n}}\n"
    result = pto.kernel(pto.parse(text), check=False, engine="reference").run(
        np.ones((16, 64), np.float32), n, memory_map=True, **options
    )
    assert result.ok, [d.message for d in result.diagnostics]
    return result.memory_map


def tile(name: str, at: str = "", type: str = "!t") -> str:
    return f"%{name} = pto.alloc_tile {f'addr = %{at} ' if at else ''}: {type}\n"


def load(name: str) -> str:
    return f"pto.tload ins(%p : !window) outs(%{name} : !t)\n"


def store(name: str) -> str:
    return f"pto.tstore ins(%{name} : !t) outs(%p : !window)\n"


def add(source: str, target: str) -> str:
    return f"pto.tadds ins(%{source}, %one : !t, f32) outs(%{target} : !t)\n"


def load_and_store(name: str) -> str:
    return tile(name, "at8k") + load(name) + store(name)


def spans(life: Life) -> list[tuple[int, int]]:
    return [(v.first, v.last) for v in life.values]


def lives(map: MemoryMap, core: str = "core") -> dict[str, Life]:
    return {v.name: v for v in map.lives[core]}


def pairs(found: list[TileOverlap]) -> list[set[str]]:
    return [{o.a.name, o.b.name} for o in found]


def test_a_value_lives_from_its_write_to_its_last_read() -> None:
    map = run(
        tile("a", "at0") + tile("b", "at4k") + load("a") + add("a", "b") + load("a") + store("b") + store("a")
    )
    found = lives(map)
    assert spans(found["a"]) == [(0, 1), (2, 4)]
    assert spans(found["b"]) == [(1, 3)]
    assert (found["a"].writes, found["a"].reads, found["a"].first, found["a"].last) == (2, 2, 0, 4)
    assert (found["b"].address, found["b"].end, found["b"].shape) == (4096, 8192, "16x64xf32")
    assert [s.name for s in map.steps["core"]] == ["tload", "tadds", "tload", "tstore", "tstore"]
    first = HEAD.count("\n") + 3
    assert found["a"].line == map.steps["core"][0].line == first
    assert found["a"].uses == {
        ("tload", first, True): 1, ("tadds", first + 1, False): 1, ("tload", first + 2, True): 1,
        ("tstore", first + 4, False): 1,
    }  # fmt: skip


def test_in_place_work_keeps_a_value_alive() -> None:
    map = run(tile("a", "at0") + load("a") + add("a", "a") + add("a", "a") + store("a"))
    assert spans(lives(map)["a"]) == [(0, 3)]


def test_a_value_nobody_reads() -> None:
    map = run(tile("a", "at0") + load("a") + load("a") + store("a"))
    assert spans(lives(map)["a"]) == [(0, 0), (1, 2)]


def test_a_partial_write_starts_no_new_value() -> None:
    body = (
        tile("a", "at0") + load("a") + store("a")
        + "%h = pto.subview %a[%c8, %c0] sizes [8, 64] : !t -> !half\n"
        + "pto.texpands ins(%one : f32) outs(%h : !half)\n" + store("a")
    )  # fmt: skip
    map = run(body)
    found = lives(map)
    assert spans(found["a"]) == [(0, 1), (3, 3)] or spans(found["a"]) == [(0, 3)]
    assert spans(found["h"]) == [(2, 3)]
    assert map.overlaps("core", "vec") == []


def test_padding_belongs_to_the_value_it_is_written_with() -> None:
    body = (
        "%a = pto.alloc_tile addr = %at0 valid_row = %c8 valid_col = %c64 : "
        "!pto.tile_buf<vec, 16x64xf32, valid=?x?, pad=1>\n"
        "%s = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c64] : !view -> !pto.partition_tensor_view<8x64xf32>\n"
    )
    type = "!pto.tile_buf<vec, 16x64xf32, valid=?x?, pad=1>"
    window = "!pto.partition_tensor_view<8x64xf32>"
    once = (
        f"pto.tload ins(%s : {window}) outs(%a : {type})\npto.tstore ins(%a : {type}) outs(%s : {window})\n"
    )
    assert spans(lives(run(body + once + load_and_store("b") + once))["a"]) == [(0, 1), (4, 5)]


def test_peak_counts_bytes_alive_at_once() -> None:
    map = run(
        tile("a", "at0")
        + tile("b", "at4k")
        + tile("c", "at8k")
        + load("a")
        + add("a", "b")
        + add("b", "c")
        + store("c")
    )
    assert map.usage("core", "vec").tolist() == [4096, 8192, 8192, 4096]
    assert map.peak("core", "vec") == 8192
    assert map.top("core", "vec") == 12288
    assert map.capacity("vec") == 192 * 1024


def test_tiles_that_take_turns_do_not_overlap() -> None:
    body = tile("a", "at0") + tile("b", "at8k") + tile("c", "at2k") + (
        "scf.for %i = %c0 to %n step %c1 {\n" + load("a") + add("a", "b") + add("b", "c") + store("c") + "}"
    )  # fmt: skip
    map = run(body)
    assert map.overlaps("core", "vec") == []
    assert spans(lives(map)["c"]) == [(2, 3), (6, 7), (10, 11)]
    assert map.peak("core", "vec") == 8192


def test_in_place_through_another_name_is_no_overlap() -> None:
    map = run(tile("a", "at0") + tile("b", "at0") + load("a") + add("a", "b") + store("b"))
    assert map.overlaps("core", "vec") == []
    assert map.peak("core", "vec") == 4096


def test_an_overlap_is_found() -> None:
    body = tile("a", "at0") + tile("b", "at2k") + load("a") + add("a", "b") + store("a") + store("b")
    (found,) = run(body).overlaps("core", "vec")
    assert (found.a.name, found.b.name, found.low, found.high) == ("a", "b", 2048, 4096)
    assert found.spans == [(1.5, 2.0)]
    assert found.text() == "%a and %b share bytes 2048..4096 while both are in use (steps 1..2)"
    assert run(body).peak("core", "vec") == 6144


def test_an_overlap_in_a_loop_is_one_with_its_times() -> None:
    body = tile("a", "at0") + tile("b", "at2k") + (
        "scf.for %i = %c0 to %n step %c1 {\n" + load("a") + load("b") + add("a", "b") + "}\n"
    )  # fmt: skip
    (found,) = run(body, 4).overlaps("core", "vec")
    assert len(found.spans) == 4 and "4 times" in found.text()


def test_a_write_nobody_reads_spoils_what_lives_there() -> None:
    body = tile("a", "at0") + tile("b", "at2k") + load("a") + load("b") + store("a")
    assert pairs(run(body).overlaps("core", "vec")) == [{"a", "b"}]


@pytest.mark.parametrize("op", ["%b = pto.treshape %a : !t -> !row", "%b = pto.bitcast %a : !t -> !row"])
def test_a_view_is_no_overlap(op: str) -> None:
    """Neither where it reads its source nor where both are written."""
    row = "pto.tadds ins(%b, %one : !row, f32) outs(%b : !row)\n"
    body = tile("a", "at0") + load("a") + f"{op}\n" + row + store("a") + row + load("a") + row + store("a")
    map = run(body)
    assert map.overlaps("core", "vec") == []
    assert map.peak("core", "vec") == 4096


def test_what_is_read_through_another_name_lives_on() -> None:
    body = (
        tile("a", "at0") + tile("c", "at8k") + load("a") + "%b = pto.treshape %a : !t -> !row\n" + load("c") + load("c")
        + "pto.tadds ins(%b, %one : !row, f32) outs(%b : !row)\n"
    )  # fmt: skip
    found = lives(run(body))
    assert spans(found["a"]) == [(0, 3)]
    assert found["b"] in found["a"].views


def test_scratch_is_in_the_map() -> None:
    body = (
        "%m = pto.alloc_tile addr = %at8k : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>\n"
        + tile("a", "at0") + tile("tmp", "at4k") + load("a")
        + "pto.trowmax ins(%a, %tmp : !t, !t) outs(%m : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>)\n"
    )  # fmt: skip
    assert set(lives(run(body))) == {"a", "tmp", "m"}


def test_a_subview_has_its_own_bytes() -> None:
    quarter = "!pto.tile_buf<vec, 16x16xf32>"
    body = (
        tile("a", "at0") + load("a") + f"%q = pto.subview %a[%c0, %c16] sizes [16, 16] : !t -> {quarter}\n"
        + f"pto.tadds ins(%q, %one : {quarter}, f32) outs(%q : {quarter})\n"
    )  # fmt: skip
    found = lives(run(body))["q"]
    assert (found.address, found.end) == (64, 64 + 15 * 256 + 64)


def test_tiles_the_program_did_not_place() -> None:
    map = run(tile("a") + tile("b", "at0") + load("a") + add("a", "b") + store("b"))
    found = lives(map)
    assert not found["a"].placed and found["b"].placed
    assert [v.name for v in map.tiles("core", "vec", True)] == ["b"]
    assert [v.name for v in map.tiles("core", "vec", False)] == ["a"]
    assert map.peak("core", "vec") == map.peak("core", "vec", False) == 4096
    assert map.peak("core", "vec", None) == 8192
    assert "UB, not placed by the program: 1 tile, at most 4096 of 196608 bytes" in map.text()


def test_cores_have_their_own_time_and_only_the_first_block_is_drawn() -> None:
    map = run(tile("a", "at0") + load("a") + store("a"), blocks=4)
    assert list(map.lives) == ["core"] and len(map.steps["core"]) == 2


def test_text() -> None:
    map = run(tile("a", "at0") + tile("long_name", "at2k") + tile("far", "end") + load("a") + add("a", "long_name")
              + store("a") + add("long_name", "far") + store("far"))  # fmt: skip
    assert (
        map.text()
        == f"""\
UB: peak 8192 of 196608 bytes alive at a time (4%), addresses up to 196608 (100%), 5 steps
  0 [!!{"." * 60}##] 196608
           bytes  tile        shape      steps  line  writes  reads  values
         0..4096  %a          16x64xf32   0..2    24       1      2       1
      2048..6144  %long_name  16x64xf32   1..3    25       1      1       1
  192512..196608  %far        16x64xf32   3..4    27       1      1       1
  overlap: %a and %long_name share bytes 2048..4096 while both are in use (steps 1..2)"""
    )


def test_text_of_a_tile_beyond_the_capacity() -> None:
    map = run(tile("a", "at0") + load("a") + store("a"))
    map.profile = map.profile.override({"vec": 2048})
    assert map.text().split("\n")[-1] == "  beyond the capacity: %a ends at 4096"


def test_columns_of_the_text_are_aligned() -> None:
    map = run(
        "".join(
            tile(n, at) + load(n) + store(n) for n, at in (("a", "at0"), ("bcdefgh", "at4k"), ("c", "at8k"))
        )
    )
    rows = map.text().split("\n")[2:]
    assert len({len(r) for r in rows}) == 1
    assert len({r.index("16x64") for r in rows[1:]}) == 1
    assert all(re.search(r"\b1$", r) for r in rows[1:])


def test_an_empty_map() -> None:
    map = MemoryMap(profile("a5"))
    assert map.text() == "no tile was touched"
    assert map.buffers("core") == [] and map.peak("core", "vec") == 0 and map.overlaps("core", "vec") == []
