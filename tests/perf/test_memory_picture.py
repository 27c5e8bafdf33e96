"""The page of a memory map: well formed, self-contained, complete, and free of surprises in names."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

import pto
from pto.isa.profiles import profile
from pto.perf import memory_picture
from pto.perf.memory_map import Life, MapStep, MemoryMap
from pto.perf.memory_picture import LEFT, WIDTH, html


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


def parsed(page: str) -> ET.Element:
    """The page as a tree: it is XML but for the document type, styles and scripts."""
    head, body = page.split("\n", 1)
    assert head == "<!DOCTYPE html>"
    return ET.fromstring(re.sub(r"<(style|script)\b.*?</\1>", "", body, flags=re.S))


def data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


def marks(page: str, kind: str, mode: str = "fit") -> list[ET.Element]:
    svg = [e for e in parsed(page).iter("svg") if mode in (e.get("class") or "").split()]
    return [e for s in svg for e in s.iter() if kind in (e.get("class") or "").split()]


def words(page: str) -> str:
    return " ".join("".join(parsed(page).itertext()).split())


def test_every_tile_is_there() -> None:
    map = made()
    for n in range(20):
        life(map, f"tile{n}", 1024 * n, 1024, (n, n), (n, 19))
    page = html(map, "k")
    assert len(marks(page, "stay")) == 20
    for mode in ("fit", "used", "full"):
        assert {m.get("data-tile") for m in marks(page, "value", mode)} == {str(n) for n in range(20)}
    titles = [t["title"] for t in data(page)["cores"][0]["tiles"]]
    for n in range(20):
        assert f"%tile{n} 256xf32" in titles
        assert f"%tile{n}" in words(page)


def test_the_page_needs_nothing_from_elsewhere() -> None:
    map = made()
    life(map, "a", 0, 1024, (0, 5))
    page = html(map, "k")
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert not re.search(r"<(link|iframe|img)\b|@import|\bsrc=", page)
    assert "prefers-color-scheme" in page and "light-dark(" in page


def test_names_are_escaped() -> None:
    name = "a<b>&\"'</script><script>alert(1)</script>"
    map = made()
    life(map, name, 0, 1024, (0, 5))
    life(map, "free" + name, 1 << 20, 1024, (0, 5))
    life(map, "clash" + name, 512, 1024, (2, 9))
    map.steps["AIV0"][0].name = name
    page = html(map, f"k{name}")
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert f"@k{name}" in words(page)
    assert f"%{name}" in words(page)
    assert data(page)["cores"][0]["tiles"][0]["title"] == f"%{name} 256xf32"
    assert data(page)["cores"][0]["ops"][0][0] == name


def test_a_map_without_tiles() -> None:
    page = html(MemoryMap(profile("a5")), "k")
    assert "No tile was touched." in words(page)
    assert data(page)["cores"] == []


def test_geometry() -> None:
    map = made(steps=20)
    life(map, "a", 0, 4096, (0, 9))
    life(map, "b", 8192, 4096, (10, 19))
    page = html(map, "k")
    for mode in ("fit", "used", "full"):
        a, b = marks(page, "value", mode)
        assert float(a.get("x", "")) == pytest.approx(LEFT + WIDTH * 0.5 / 20, abs=0.01)
        assert float(a.get("width", "")) == pytest.approx(WIDTH * 9 / 20, abs=0.01)
        y, height = (float(a.get(n, "")) for n in ("y", "height"))
        (plot,) = marks(page, "plot", mode)
        assert y + height == pytest.approx(
            float(plot.get("height", "")), abs=0.06
        )  # address 0 is at the bottom
        assert float(b.get("y", "")) + float(b.get("height", "")) < y
    full = marks(page, "value", "full")[0]
    assert float(full.get("height", "")) == pytest.approx(memory_picture.PLOT * 4096 / (192 * 1024), abs=0.01)


def test_labels_do_not_meet() -> None:
    map = made(steps=40)
    rng = np.random.default_rng(0)
    for n in range(60):
        first = int(rng.integers(0, 30))
        life(
            map,
            f"name_{n}",
            int(rng.integers(0, 40)) * 512,
            512 * int(rng.integers(1, 6)),
            (first, first + int(rng.integers(0, 9))),
        )
    page = html(map, "k")
    for mode in ("fit", "used"):
        boxes: list[tuple[float, float, float]] = []
        for label in marks(page, "name", mode):
            if "none" not in (label.get("style") or ""):
                x, y = (float(label.get(n, "")) for n in ("x", "y"))
                boxes.append((x, y, x + memory_picture.GLYPH * len(label.text or "")))
        assert len(boxes) > 5
        for n, (x, y, end) in enumerate(boxes):
            assert end <= LEFT + WIDTH
            assert not [o for o in boxes[n + 1 :] if o[0] < end and x < o[2] and abs(o[1] - y) < 9]


def test_overlaps_are_drawn_and_listed() -> None:
    map = made()
    life(map, "a", 0, 4096, (0, 9))
    life(map, "b", 2048, 4096, (5, 15))
    page = html(map, "k")
    assert len(marks(page, "clash")) == 1
    assert "%a and %b share bytes 2048..4096 while both are in use (steps 5..9)" in words(page)
    assert "%b is written in line 7, %a is read in line 8" in words(page)
    assert "1 overlap" in words(page)


def test_a_tile_beyond_the_capacity() -> None:
    map = made()
    life(map, "a", 192 * 1024 - 512, 1024, (0, 9))
    page = html(map, "k")
    assert len(marks(page, "outside")) == len(marks(page, "capacity")) == 1
    assert "%a takes bytes 196096..197120, beyond the capacity of 196608" in words(page)


def test_tiles_the_program_did_not_place() -> None:
    map = made()
    life(map, "a", 0, 1024, (0, 9))
    life(map, "b", 1 << 20, 2048, (0, 9))
    page = html(map, "k")
    assert "UB, not placed by the program" in words(page)
    assert len(marks(page, "stay", "fit")) == 1
    assert len(marks(page, "stay", "map")) == 4  # three scales of %a, one row of %b
    map.lives["AIV0"] = map.lives["AIV0"][1:]
    page = html(map, "k")
    assert "peak 2048 of 196608 bytes alive at a time (1%)" in words(page)
    assert "addresses up to" not in words(page)


def test_a_buffer_the_target_does_not_have() -> None:
    map = made(cores=("AIC",))
    life(map, "scale", 0, 64, (0, 9), core="AIC", loc="scale_left")
    assert "there is no such buffer" in words(html(map, "k"))
    assert "there is no such buffer" in map.text()


def test_every_core_and_buffer_has_a_figure() -> None:
    map = made(cores=("AIC", "AIV0", "AIV1"))
    for loc in ("mat", "left", "right", "acc"):
        life(map, loc, 0, 1024, (0, 9), core="AIC", loc=loc)
    for core in ("AIV0", "AIV1"):
        life(map, "u", 0, 1024, (0, 9), core=core)
    page = html(map, "k")
    assert [e.get("id") for e in parsed(page).iter("figure")] == [
        "0-mat", "0-left", "0-right", "0-acc", "1-vec", "2-vec",
    ]  # fmt: skip
    assert [e.get("href") for e in parsed(page).iter("a")] == [
        f"#{e.get('id')}" for e in parsed(page).iter("figure")
    ]


def test_a_long_run_stays_small() -> None:
    map = made(steps=40000)
    life(map, "a", 0, 4096, *[(n, n + 1) for n in range(0, 40000, 4)])
    page = html(map, "k")
    assert len(page) < 1_000_000
    assert len(marks(page, "value")) <= memory_picture.MOST_MARKS + 1
    core = data(page)["cores"][0]
    assert len(core["steps"]) == 40000
    assert any(len(f) == 20000 for f in core["fine"])  # every value, for those who zoom


def test_hover_tells_who_touches_a_tile() -> None:
    map = made()
    life(map, "a", 4096, 1024, (0, 3), (5, 8))
    (tile,) = data(html(map, "k"))["cores"][0]["tiles"]
    assert tile["lines"] == [
        "UB bytes 4096..5120 (0x1000..0x1400), 1 KiB", "steps 0..8, 2 values", "2 writes, 2 reads:",
        "    tload in line 7 writes it × 2", "    tadd in line 8 reads it × 2",
    ]  # fmt: skip


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
    assert "%a 16x64xf32" in words(page)
    assert data(page)["cores"][0]["ops"] == [["tload", 11, "MTE2"], ["tstore", 12, "MTE3"]]
