"""The page on departures from the documents: each line has a test."""

from __future__ import annotations

import re
from pathlib import Path

from pto import isa
from pto.isa.machine import MEMORIES
from pto.isa.profiles import PROFILES

_ROOT = Path(__file__).parents[2]
#: The start of a line of the page -> its test. Those without a file are below.
TESTS = {
    "`Tile<float, 16, 16>`": "engine/cpp/test_seed_cpp.py::test_overview_minimal_example",
    "the example stores": "engine/cpp/test_seed_cpp.py::test_overview_minimal_example",
    "`TileType::Scalar`": "test_memories",
    "tile layouts NZ": "asm/test_seed_pages.py::test_overview_layout_words_are_honoured_or_refused",
    "`Layout::ZN`": "test_memories",
    "MTE1 moves": "test_pipes_of_transfers",
    "a UB of 256 KB": "test_memories",
    "MX format": "test_element_types",
    "no FP8": "test_element_types",
    "no collective": "engine/test_comm.py::test_a_program_of_all_collectives",
    "`taddc": "test_taddc_adds_three_tiles",
    "the texts of SA-0351": "asm/test_seed_pages.py::test_tassign_ids_and_recipe",
    "no check of an address": "engine/test_handles.py::test_addresses_at_run_time",
    "`pto.tassign` in auto mode": "asm/test_seed_pages.py::test_tassign_has_no_effect_in_auto_mode",
    "nine element types": "asm/test_seed_pages.py::test_tpartmul_element_types_as_listed",
    "`[TaskRing]": "runtime/test_seed_rings.py::test_a_task_of_the_outer_scope_pins_the_ring",
    "a deadlock is found": "runtime/test_seed_rings.py::test_a_task_of_the_outer_scope_pins_the_ring",
    "the process ends": "runtime/test_seed_rings.py::test_a_task_of_the_outer_scope_pins_the_ring",
    "`bind_host_binary()`": "cli/test_runtime_cli.py::test_a_folder_that_passes",
    "platform `a2a3`": "cli/test_runtime_cli.py::test_the_device_is_simulated",
    "`golden.py`": "runtime/test_golden.py::test_e2604_unknown_case",
}


def _row(name: str) -> isa.Row:
    row = isa.row(name)
    assert row is not None
    return row


def test_every_line_has_a_test() -> None:
    page = (_ROOT / "docs/departures.md").read_text()
    lines = [row for row in re.findall(r"^\| (.+?) \|", page, re.M) if row not in ("the document", "---")]
    unknown = [line for line in lines if not any(line.startswith(start) for start in TESTS)]
    assert not unknown and len(lines) == len(TESTS)
    for test in TESTS.values():
        file, _, name = test.rpartition("::")
        text = (_ROOT / "tests" / file if file else Path(__file__)).read_text()
        assert f"def {name}(" in text, test


def test_memories() -> None:
    assert PROFILES["a2a3"].capacity["vec"] == 192 << 10 and PROFILES["a5"].capacity["vec"] == 256 << 10
    assert "scalar" not in MEMORIES
    enums = (_ROOT / "native/include/pto/core/enums.hpp").read_text()
    (layouts,) = re.findall(r"enum class Layout \{(.*?)\}", enums, re.S)
    assert {"ND", "DN", "NZ"} <= set(re.findall(r"\w+", layouts)) and "ZN" not in re.findall(r"\w+", layouts)


def test_pipes_of_transfers() -> None:
    pipes = {name: _row(name).pipe for name in ("tload", "mte_l1_l0a", "mte_l1_bt")}
    assert pipes == {"tload": "MTE2", "mte_l1_l0a": "MTE1", "mte_l1_bt": "MTE1"}


def test_element_types() -> None:
    def types(name: str, target: str) -> set[tuple[str, ...]]:
        (combos,) = _row(name).combos
        return set(combos.legal[target])

    scaled = types("tmatmul.mx", "a5")
    assert {c[0] for c in scaled} == {"f32"} and {d[:2] for c in scaled for d in c[1:]} == {"f8", "f4"}
    assert ("i32", "i8", "i8") in types("tmatmul", "a5")
    assert scaled == types("tmatmul.mx", "cpu")


def test_taddc_adds_three_tiles() -> None:
    assert [o.name for o in _row("taddc").operands if o.role == "in"] == ["src0", "src1", "src2"]
