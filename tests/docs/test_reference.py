"""Tables of the site that people filter and search: nothing is missing in them."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pto
from pto.isa.profiles import PROFILES
from pto.knobs import KNOBS
from pto.language.operators import OPERATORS

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return importlib.import_module("reference")


def test_every_operator_has_an_example(reference: ModuleType) -> None:
    entries = [e for family in reference.catalogue.families().values() for e in family]
    assert len(entries) == len({id(op) for op in OPERATORS.values()})
    for entry in entries:
        name, shown = reference.operator_name(entry), reference.example(entry)
        assert re.search(rf"\b{re.escape(name.rpartition('.')[2])}\(", shown) or name == "pl.operation", name
    table = reference.operators()
    assert all(f'<a id="{reference.operator_name(e)}"></a>' in table for e in entries)


def test_examples_are_taken_from_programs_that_run(reference: ModuleType) -> None:
    """A test of an error has `pl.and_(f, f)` of floats, and the pages do not."""
    assert reference.calls()["pl.and_"] != "pl.and_(f, f)" and "pl.load" in reference.calls()


def test_enumerations(reference: ModuleType) -> None:
    shown = reference.operators()
    for name in ("PadValue", "MaskPattern", "MemorySpace", "Level", "TensorLayout", "PipeType"):
        assert f'<a id="pl.{name}"></a>' in shown, name
    assert "<code>P0101</code> <code>P1010</code>" in shown


def test_instructions_by_set_family_type_profile_and_pipe(reference: ModuleType) -> None:
    shown = reference.instructions(pto.isa.rows())
    (line,) = (x for x in shown.splitlines() if x.startswith("| [tadd](tadd.md) |"))
    cells = [c.strip() for c in line.strip("|").split("|")]
    assert cells[2:5] == ["tile", "elementwise-tile-tile", "V"]
    assert cells[5].split() == list(PROFILES) and {"f32", "bf16", "i64"} <= set(cells[6].split())
    assert shown.count("\n| [") == len(pto.isa.rows())


def test_options_and_variables(reference: ModuleType, generate: ModuleType) -> None:
    helps = {"pto run": generate.help_text("pto run")}
    found = reference.every_option(helps)
    assert {"--sanitize", "--timeline", "--blocks", "--arch"} <= set(found) and "--help" not in found
    ((tool, spelled, words),) = found["--blocks"]
    assert (tool, spelled, words) == ("pto run", "--blocks N", "blocks of the launch (default: 1)")
    page = reference.options_page(helps)
    assert '<a id="--sanitize"></a>' in page and all(f'<a id="{name}"></a>' in page for name in KNOBS)


def test_every_public_name_is_described(reference: ModuleType) -> None:
    page = reference.api_page()
    for name in (
        *(f"pto.{n}" for n in pto.__all__ if n != "__version__"),
        "pl.jit",
        "pl.at",
        "pto.tune.search",
    ):
        assert f"{{#{name}}}" in page, name
    described = re.split(r"^### .*$", page, flags=re.MULTILINE)[1:]
    assert all(part.strip() for part in described)
