"""The report of planning: the text, the map of a page, and that both agree with the program."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.each import together

import pto
from pto.passes import explain_memory
from pto.passes.memory.placements import MemoryPlan

from .memory_programs import Programs
from .plan_checks import A3, BYTES, addresses, plan, program

BODY = "alloc a b unused\nload a\nadd a a b\nstore b\nload a\nstore a"


def planned(body: str = BODY, tiles: float = 3, more: str = "") -> MemoryPlan:
    found = plan(program(body, more), A3.override({"vec": int(tiles * BYTES)})).plan
    assert isinstance(found, MemoryPlan)
    return found


def test_text() -> None:
    assert explain_memory.text(planned()) == "\n".join(
        [
            "UB of @k: 4096 of 6144 bytes in use at most (67%), addresses up to 4096 (67%), 5 steps",
            "  no bytes are shared",
            f"  0 [{'#' * 43}{'.' * 21}] 6144",
            "       bytes  tile     shape     line  writes  reads  steps     shared with",
            "     0..2048  %a       8x64xf32     9       2      2  |##-##|",
            "  2048..4096  %b       8x64xf32    10       1      1  |-##--|",
            "     0..2048  %unused  8x64xf32    11       0      0  |no use|",
        ]
    )  # fmt: skip


def test_text_of_shared_bytes() -> None:
    text = explain_memory.text(planned(tiles=1))
    assert "  results are also written in place of an operand that is dead afterwards" in text
    assert f"  0 [{'=' * 64}] 2048" in text
    assert re.search(r"%a .* \|##-##\| +%b\n", text)
    assert re.search(r"%b .* \|-##--\| +%a\n", text)


def test_text_of_a_long_program() -> None:
    body = "alloc a\n" + "load a\nstore a\n" * 200
    line = next(row for row in explain_memory.text(planned(body)).splitlines() if "%a" in row)
    assert re.search(r"200 +200 +\|#{48}\|$", line)


def test_text_of_calls() -> None:
    helper = """func.func private @f(%t: TILE) {
%h = pto.alloc_tile : TILE
pto.tadd ins(%t, %t : TILE, TILE) outs(%h : TILE)
return
}"""
    found = planned("alloc a\nload a\nfunc.call @f(%a) : (TILE) -> ()\nstore a", more=helper)
    text = explain_memory.text(found)
    assert "UB of @f" in text
    assert f"  step 1 calls @f, which uses bytes 0..{BYTES}" in text
    spans = {t.name: t.spans for t in found.tiles()}
    assert spans == {"a": [(0, 2)], "h": [(0, 0)]}  # in the steps of their own functions


def test_nothing_to_place() -> None:
    found = plan(pto.parse("module {\nfunc.func @k() {\nreturn\n}\n}")).plan
    assert isinstance(found, MemoryPlan)
    assert explain_memory.text(found) == "no tile to place"
    assert "No tile was touched." in explain_memory.html(found)


def _data(page: str) -> Any:
    (run,) = json.loads(re.findall(r'id="data" type="application/json">(.*?)</script>', page, re.S)[0])
    return run


def _tiles(page: str) -> list[Any]:
    return [t for m in _data(page)["maps"].values() for s in m["spaces"] for t in s["lives"]]


def test_page() -> None:
    page = explain_memory.html(planned())
    assert page.startswith("<!DOCTYPE html>")
    assert "http:" not in page and "https:" not in page, "needs something from elsewhere"
    run = _data(page)
    assert [(t["name"], t["shape"]) for t in _tiles(page)] == [("a", "8x64xf32"), ("b", "8x64xf32")]
    assert [s[:2] for s in run["sites"]] == [
        ["tload", 12], ["tload", 15], ["tadd", 13], ["tstore", 14], ["tstore", 16],
    ]  # fmt: skip
    assert run["total"] == 5 and run["unit"] == "step" and list(run["sources"].values())
    assert "no bytes are shared" in page


def test_page_of_several_functions_shows_each() -> None:
    helper = "func.func private @f(%t: TILE) {\n%h = pto.alloc_tile : TILE\npto.tadd ins(%t, %t : TILE, TILE) outs(%h : TILE)\nreturn\n}"
    page = explain_memory.html(
        planned("alloc a\nload a\nfunc.call @f(%a) : (TILE) -> ()\nstore a", more=helper)
    )
    assert sorted(_data(page)["cores"]) == ["@f", "@k"] and len(_data(page)["maps"]) == 2


@together("seed", range(12))
def test_no_map_shows_an_overlap(seed: int) -> None:
    """The page looks for overlaps by itself; in a plan it finds none. Its addresses are those of the program."""
    module = pto.parse(Programs(seed, 20).text)
    for capacity in (1024, 1536, A3.capacity["vec"]):
        found = plan(module, A3.override({"vec": capacity}))
        if found.diagnostics:
            continue
        assert isinstance(found.plan, MemoryPlan)
        page = explain_memory.html(found.plan)
        assert not [s for m in _data(page)["maps"].values() for s in m["spaces"] if s["overlaps"]]
        shown = {(t["name"], t["low"], t["high"]) for t in _tiles(page)}
        at = addresses(found)
        for tile in found.plan.tiles():
            assert at[tile.name] == tile.address
            assert tile.end <= capacity
            if tile.spans:
                assert (tile.name, tile.address, tile.end) in shown
