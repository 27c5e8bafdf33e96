"""Words for readers decide nothing: with every one of them changed, the tools give the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sampling import some

import pto
from pto import isa
from pto.codegen import intrinsics, legality
from pto.diag import DiagnosticError
from pto.engine.reference import registry
from pto.isa.profiles import ISAS
from pto.passes.flow import _OperandUse

KERNELS = some(sorted((Path(__file__).parents[2] / "examples" / "kernels").glob("*.pto")), 3)
#: Fields of a row that are for readers, in other words.
WORDS: dict[str, Any] = {
    "doc": "Other words.", "meaning": "other words", "domain": "other words", "notes": ("Other words.",)
}  # fmt: skip


def results(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the output of the tools for the table."""
    out: dict[str, Any] = {}
    for row in isa.rows():
        uses = [_OperandUse(row, column) for column in ISAS]
        if row.expr:  # so that it is built again
            registry._EXECUTORS.pop(row.name, None)
        built = registry.find(row)
        assert built or row.set == "scalar" or not row.expr, row
        out[row.full_name] = (
            [(u.roles, u.replaces, u.keeps) for u in uses],
            built and built.__qualname__,
            row.formats,
        )
    for path in KERNELS:
        for target in ("a3", "a5", "cpu"):
            try:
                out[f"{path.name} {target}"] = pto.emit_cpp(pto.parse(path), target=target)
            except DiagnosticError as error:  # a kernel for another target
                out[f"{path.name} {target}"] = str(error)
    chosen = some(isa.rows(), 4, by=lambda row: row.family)
    with monkeypatch.context() as patch:
        patch.setattr(isa, "rows", lambda: chosen)
        for header in (intrinsics, legality):
            lines = header.generate().splitlines()
            out[header.__name__] = [line for line in lines if not line.startswith("///")]
    return out


def test_nothing_but_the_docs_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = results(monkeypatch)
    for row in isa.rows():
        for field, words in WORDS.items():
            assert getattr(row, field) is not None
            monkeypatch.setitem(row.__dict__, field, words)
    after = results(monkeypatch)
    assert {name for name in before if before[name] != after[name]} == set()
