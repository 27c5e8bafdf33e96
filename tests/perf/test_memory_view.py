"""The view of a memory map: self-contained, complete, and free of surprises in names."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from tests.perf.browser import browser, opened

import pto
from pto.isa.profiles import profile
from pto.perf.explorer.memory import html
from pto.perf.memory_map import Life, MapStep, MemoryMap

__all__ = ["browser"]  # a fixture


def life(
    map: MemoryMap,
    name: str,
    address: int,
    size: int,
    *spans: tuple[int, int],
    core: str = "AIV0",
    loc: str = "vec",
) -> Life:
    """A tile that is written at the first and read at the last step of every span."""
    made = Life(loc, name, address, size, 7, f"{size // 4}xf32")
    for first, last in spans:
        made.write(first, True)
        made.read(last)
        for use in (("tload", 7, True), ("tadd", 8, False)):
            made.uses[use] = made.uses.get(use, 0) + 1
    for other in map.lives.setdefault(core, []):
        if other.loc == loc and other.address < made.end and made.address < other.end:
            other.peers.append(made)
            made.peers.append(other)
    made.placed = address < map.capacity(loc)
    map.lives[core].append(made)
    return made


def made(steps: int = 20, cores: tuple[str, ...] = ("AIV0",)) -> MemoryMap:
    map = MemoryMap(profile("a3"))
    for core in cores:
        map.steps[core] = [MapStep(*step) for step in [("tload", 7, "MTE2"), ("tadd", 8, "V")] * (steps // 2)]
    return map


def data(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    assert found
    (run,) = json.loads(found[1])
    return run


def column(text: str) -> list[int]:
    """A packed column."""
    return np.cumsum(np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i4")).tolist()


def spaces(page: str, core: int = 0) -> list[Any]:
    return data(page)["maps"][str(core)]["spaces"]


def test_every_tile_is_there() -> None:
    map = made()
    for n in range(20):
        life(map, f"tile{n}", 1024 * n, 1024, (n, n), (n, 19))
    ((space,), page) = spaces(html(map, "k")), html(map, "k")
    assert [(v["name"], v["low"], v["high"]) for v in space["lives"]] == [
        (f"tile{n}", 1024 * n, 1024 * (n + 1)) for n in range(20)
    ]
    assert column(space["lives"][3]["values"]) == [2 * 3 + 1, 2 * 19]  # written in 3, last read in 19
    run = data(page)
    assert run["total"] == 20 and run["cores"] == ["AIV0"]
    # the event of each step, whichever lane it is in
    events = column(run["maps"]["0"]["steps"])
    assert [column(run["events"]["start"])[e] for e in events] == [2 * n for n in range(20)]


def test_the_page_needs_nothing_from_elsewhere() -> None:
    map = made()
    life(map, "a", 0, 1024, (0, 5))
    page = html(map, "k")
    assert "http:" not in page and "https:" not in page
    assert not re.search(r"<(link|iframe|img)\b|@import|\bsrc=", page)
    assert "prefers-color-scheme" in page and "light-dark(" in page


def test_a_map_without_tiles() -> None:
    page = html(MemoryMap(profile("a5")), "k")
    assert "No tile was touched." in page and data(page)["maps"] == {}


def test_overlaps_are_told() -> None:
    map = made()
    life(map, "a", 0, 4096, (0, 9))
    life(map, "b", 2048, 4096, (5, 15))
    (space,) = spaces(html(map, "k"))
    assert space["overlaps"] == [[0, 1, 2048, 4096, [5.5, 9.0]]]
    assert space["problems"] == [
        "%a and %b share bytes 2048..4096 while both are in use (steps 5..9); %b is written in line 7, "
        "%a is read in line 8"
    ]


def test_a_tile_beyond_the_capacity() -> None:
    map = made()
    life(map, "a", 192 * 1024 - 512, 1024, (0, 9))
    (space,) = spaces(html(map, "k"))
    assert space["problems"] == ["%a takes bytes 196096..197120, beyond the capacity of 196608"]


def test_tiles_the_program_did_not_place() -> None:
    map = made()
    life(map, "a", 0, 1024, (0, 9))
    life(map, "b", 1 << 20, 2048, (0, 9))
    (space,) = spaces(html(map, "k"))
    assert [v["placed"] for v in space["lives"]] == [True, False] and space["top"] == 1024


def test_a_buffer_the_target_does_not_have() -> None:
    map = made(cores=("AIC",))
    life(map, "scale", 0, 64, (0, 9), core="AIC", loc="scale_left")
    assert spaces(html(map, "k"))[0]["capacity"] == 0
    assert "there is no such buffer" in map.text()


def test_every_core_and_buffer_is_there() -> None:
    map = made(cores=("AIC", "AIV0", "AIV1"))
    for loc in ("mat", "left", "right", "acc"):
        life(map, loc, 0, 1024, (0, 9), core="AIC", loc=loc)
    for core in ("AIV0", "AIV1"):
        life(map, "u", 0, 1024, (0, 9), core=core)
    page = html(map, "k")
    assert [[s["title"] for s in spaces(page, n)] for n in range(3)] == [
        ["L1", "L0A", "L0B", "L0C"], ["UB"], ["UB"],
    ]  # fmt: skip


def test_a_long_run_stays_small() -> None:
    map = made(steps=40000)
    life(map, "a", 0, 4096, *[(n, n + 1) for n in range(0, 40000, 4)])
    page = html(map, "k")
    assert len(page) < 1_000_000
    (tile,) = spaces(page)[0]["lives"]
    assert len(column(tile["values"])) == 20000  # every value


def test_a_tile_tells_who_touches_it() -> None:
    map = made()
    life(map, "a", 4096, 1024, (0, 3), (5, 8))
    (tile,) = spaces(html(map, "k"))[0]["lives"]
    assert (tile["writes"], tile["reads"]) == (2, 2)
    assert tile["uses"] == [["tload", 7, 1, 2], ["tadd", 8, 0, 2]]


def test_a_real_run() -> None:
    text = """\
!t = !pto.tile_buf<vec, 16x64xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !pto.ptr<f32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<16x64xf32> -> !pto.partition_tensor_view<16x64xf32>
    %a = pto.alloc_tile : !t
    pto.tload ins(%p : !pto.partition_tensor_view<16x64xf32>) outs(%a : !t)
    pto.tstore ins(%a : !t) outs(%p : !pto.partition_tensor_view<16x64xf32>)
    return
  }
}
"""
    result = pto.kernel(pto.parse(text), engine="reference").run(
        np.ones((16, 64), np.float32), memory_map=True
    )
    page = html(result.memory_map, "k")
    assert [(v["name"], v["shape"]) for v in spaces(page)[0]["lives"]] == [("a", "16x64xf32")]
    assert [s[:2] for s in data(page)["sites"]] == [["tload", 11], ["tstore", 12]]
    assert [lane["pipe"] for lane in data(page)["lanes"]] == ["MTE2", "MTE3"]


def test_peak_and_curve_are_one_number(browser: Any, tmp_path: Path) -> None:
    """The peak on the page is the peak of the map, with time counted in steps."""
    rng = np.random.default_rng(1)
    map = made(steps=60)
    for n in range(12):
        first = int(rng.integers(0, 40))
        spans = [(first, first + int(rng.integers(0, 9))), (first + 10, first + 15)]
        life(map, f"t{n}", int(rng.integers(0, 12)) * 512, 512 * int(rng.integers(1, 4)), *spans)
    page = opened(browser, tmp_path / "m.html", html(map, "k"))
    peak = page.evaluate("explorer.spacesOf(explorer.runs[0], 0)[0].alive.peak")
    assert peak == map.peak("AIV0", "vec")
    assert page.errors == []
    page.close()
