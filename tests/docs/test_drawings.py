"""The drawings of docs/micro-reference.md and of tile instructions: all of them are made, and agree with the
meaning of the instructions.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.each import together

DOCS = Path(__file__).parents[2] / "docs"
NAMES = (
    "masks", "patterns", "plt", "predication", "vlds", "vldsx2", "vsts", "weave", "vcvt", "reductions", "stream",
)  # fmt: skip


sys.path.insert(0, str(DOCS))
TILES = tuple(importlib.import_module("tiles").DRAWN)


@pytest.fixture(scope="module")
def drawings() -> ModuleType:
    return importlib.import_module("drawings")


@pytest.fixture(scope="module")
def tiles() -> ModuleType:
    return importlib.import_module("tiles")


def words(drawings: ModuleType, name: str) -> dict[str, list[str]]:
    """Return the rows of a drawing: label -> cells."""
    desc = ElementTree.fromstring(drawings.DRAWINGS[name]()).find(".//{*}desc")
    assert desc is not None and desc.text
    rows = (row.partition(": ") for row in desc.text.split("; "))
    return {label: re.sub(r" \([^)]*\)$", "", cells).split() for label, _, cells in rows}


def test_every_drawing_is_named(drawings: ModuleType) -> None:
    assert tuple(drawings.DRAWINGS) == NAMES


@together("name", (*NAMES, *TILES))
def test_one_block_of_markup_that_works_alone(drawings: ModuleType, tiles: ModuleType, name: str) -> None:
    made = drawings.DRAWINGS[name]() if name in NAMES else tiles.drawing(name)
    name = name.replace(".", "-")
    assert "\n" not in made and len(made) < 40_000  # a blank line would end the block
    root = ElementTree.fromstring(made)  # well-formed
    svg = root.find("{*}svg")
    assert svg is not None and svg.get("role") == "img"
    told = [e.get("id") for e in (svg.find("{*}title"), svg.find("{*}desc")) if e is not None and e.text]
    assert svg.get("aria-labelledby") == " ".join(map(str, told)) and len(told) == 2
    ids = re.findall(r'id="([^"]+)"', made)
    assert len(ids) == len(set(ids)) and all(i.startswith(f"{name}-") for i in ids)
    assert all(f"url(#{i})" in made or i in svg.get("aria-labelledby", "") or "kept" in i for i in ids)


def test_text_has_the_colour_of_the_page(drawings: ModuleType) -> None:
    """Labels and grey or hatched cells are legible in a light and in a dark page."""
    for name in NAMES:
        for text in ElementTree.fromstring(drawings.DRAWINGS[name]()).iter("{http://www.w3.org/2000/svg}g"):
            assert text.get("fill") in ("currentColor", "#1d1d1f")


def test_floors(drawings: ModuleType) -> None:
    """The picture of docs/architecture.md has every floor of the page, and each below what stands on it."""
    floors = importlib.import_module("floors")
    below = floors.supports((DOCS / "architecture.md").read_text(encoding="utf-8"))
    assert set(floors.IDEAS) == set(below)
    root = ElementTree.fromstring(floors.floors())
    shown = {t.text: float(t.get("y", 0)) for t in root.iter() if t.get("font-weight") == "bold"}
    assert set(shown) == set(below)
    assert all(shown[low] > shown[up] for up, lows in below.items() for low in lows)


# -- content -----------------------------------------------------------------------------------------------


def test_loads(drawings: ModuleType) -> None:
    expected = {
        "NORM": range(1, 65),
        "BRC_B32": [1] * 64,
        "BRC_BLK": [*range(1, 9)] * 8,
        "E2B_B16": [i // 16 + 1 for i in range(128)],
        "US_B8": [i // 2 + 1 for i in range(256)],
        "DS_B8": range(1, 512, 2),
        "SPLT4CHN": [*range(1, 257, 4), *[0] * 192],
        "UNPK_B16": [0 if i % 2 else i // 2 + 1 for i in range(128)],
        "UNPK4": [0 if i % 4 else i // 4 + 1 for i in range(256)],
    }
    for mode, want in expected.items():
        assert drawings.traces.loaded(mode).tolist() == list(want), mode
    shown = words(drawings, "vlds")
    assert shown["DS_B8"] == [*(str(n) for n in range(1, 32, 2)), "..", "509", "511"]
    assert shown["SPLT4CHN"][-3:] == ["..", "0", "0"]


def test_every_mode_of_a_load_is_drawn(drawings: ModuleType) -> None:
    from pto import isa

    row = isa.row("vlds")
    assert row is not None
    (dist,) = (a for a in row.attrs if a.name == "dist")
    same = {
        "BRC_B8",
        "BRC_B16",
        "BRC",
        "US",
        "DS",
        "UNPK4_B8",
        "BLK",
        "SPLT4CHN_B8",
    }  # as others that are drawn
    assert set(dist.choices) == set(drawings.traces.LOADS) | same


def test_stores(drawings: ModuleType) -> None:
    lanes = np.arange(1, 65)
    assert drawings.traces.stored("NORM_B32").tolist() == lanes.tolist()
    assert drawings.traces.stored("NORM_B32", "PAT_M4").tolist() == [n if n % 4 == 1 else -1 for n in lanes]
    assert drawings.traces.stored("1PT_B32").tolist() == [1, *[-1] * 63]
    assert drawings.traces.stored("PK_B32").tolist() == [*lanes, *[-1] * 64]
    assert drawings.traces.stored("PK4_B32").tolist() == [*lanes, *[-1] * 192]
    merged = [32 * block + plane * 8 + i + 1 for block in range(8) for i in range(8) for plane in range(4)]
    assert drawings.traces.stored("MRG4CHN_B8").tolist() == merged
    assert words(drawings, "vsts")["1PT_B32"] == ["1", *["kept"] * 15, "..", "kept", "kept"]


def test_two_registers(drawings: ModuleType) -> None:
    low, high = drawings.traces.loaded_pair("DINTLV_B8")
    assert low.tolist() == list(range(1, 513, 2)) and high.tolist() == list(range(2, 513, 2))
    low, high = drawings.traces.loaded_pair("BDINTLV")
    blocks = np.arange(1, 129).reshape(16, 8)
    assert low.tolist() == blocks[::2].ravel().tolist() and high.tolist() == blocks[1::2].ravel().tolist()
    woven = [n for i in range(64) for n in (i + 1, i + 65)]
    assert drawings.traces.stored_pair("INTLV_B32").tolist() == woven
    assert [*drawings.traces.woven("vintlv")[0], *drawings.traces.woven("vintlv")[1]] == woven
    assert words(drawings, "weave")["vintlv, low"][:4] == ["a1", "b1", "a2", "b2"]


def test_masks_and_tails(drawings: ModuleType) -> None:
    for size in (1, 2, 4):
        image = drawings.traces.mask_bits(f"pset_b{8 * size}", "PAT_VL4")
        assert np.flatnonzero(image).tolist() == [0, size, 2 * size, 3 * size]
    upper = drawings.traces.mask_bits("pset_b32", "PAT_H", "doc")[::4]
    assert upper.tolist() == [0] * 32 + [1] * 32
    assert [(int(on.sum()), left) for on, left in drawings.traces.tail(150)] == [(64, 86), (64, 22), (22, 0)]


def test_predication(drawings: ModuleType) -> None:
    found = drawings.traces.predicated()
    assert found["vadds"].tolist() == [0 if i % 3 else i + 101 for i in range(64)]
    assert found["vsts"].tolist() == [-1 if i % 3 else i + 1 for i in range(64)]


def test_parts_of_conversions(drawings: ModuleType) -> None:
    assert drawings.traces.converted("f32", "f16", "ODD").tolist() == [
        n for i in range(64) for n in (0, i + 1)
    ]
    assert drawings.traces.converted("u8", "u32", "P2").tolist() == list(range(3, 257, 4))
    assert words(drawings, "vcvt")["u32 to u8, P3"][:5] == ["0", "0", "0", "1", "0"]


def test_reductions(drawings: ModuleType) -> None:
    groups = [sum(range(8 * g + 1, 8 * g + 9)) for g in range(8)]
    assert drawings.traces.reduced("vcgadd").tolist() == [*groups, *[0] * 56]
    assert drawings.traces.reduced("vcgadd", "doc").tolist() == [n for g in groups for n in (g, *[0] * 7)]
    assert drawings.traces.reduced("vcmax").tolist() == [64, 63, *[0] * 62]
    assert words(drawings, "reductions")["vcmin"][:3] == ["1", "0", "0"]


def test_stream(drawings: ModuleType) -> None:
    """Only whole blocks are in memory before the end, and nothing before the start."""
    for steps, done in ((1, 3), (2, 11), (3, 19)):
        found = drawings.traces.streamed(steps)
        assert found.tolist() == [*[-1] * 5, *range(1, done + 1), *[-1] * (27 - done)]
    assert drawings.traces.streamed(3, True).tolist() == [*[-1] * 5, *range(1, 27), -1]
    assert words(drawings, "stream")["vstus 10"].count("kept") == 29


def test_semantics_table(drawings: ModuleType) -> None:
    from pto.engine.reference.semantics import Semantics

    generate = importlib.import_module("generate")
    table = generate.PARTS["semantics"]().replace("&#95;", "_")
    for switch in Semantics._fields[1:]:
        assert f"<code>{switch}</code>" in table, switch


# -- tiles -------------------------------------------------------------------------------------------------


@together("name", TILES)
def test_a_drawn_program_has_the_instruction(tiles: ModuleType, name: str) -> None:
    assert re.search(rf"pto\.{re.escape(name)}\s", tiles.program(name))


def test_every_family_that_computes_is_drawn(tiles: ModuleType) -> None:
    """The others set registers of a core."""
    from pto import isa

    families = {row.family for row in isa.rows() if row.set == "tile"}
    assert families - set(tiles.families()) == {"control-and-configuration"}


def test_tiles_against_numpy(tiles: ModuleType) -> None:
    def operands(name: str) -> list[np.ndarray]:
        return list(tiles.DRAWN[name].arrays.values())

    def result(name: str) -> np.ndarray:
        return tiles.result(name)[0]

    a, b = operands("tadd")
    np.testing.assert_array_equal(result("tadd"), a + b)
    np.testing.assert_array_equal(result("trowsum"), operands("trowsum")[0].sum(1, keepdims=True))
    np.testing.assert_array_equal(result("tcolargmax")[0], operands("tcolargmax")[0].argmax(0))
    np.testing.assert_array_equal(result("ttrans"), operands("ttrans")[0].T)
    x, y = operands("tmatmul")
    np.testing.assert_array_equal(result("tmatmul"), x @ y)
    source, index = operands("tgather")
    np.testing.assert_array_equal(result("tgather"), np.take_along_axis(source, index, 1))
    loaded, stored = tiles.result("tload")
    np.testing.assert_array_equal(loaded[:2, :5], operands("tload")[0][1:3, 2:7])
    assert stored.sum() == 10  # the valid region only
