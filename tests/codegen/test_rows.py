"""Every instruction with a C++ spelling is emitted, in every form, element type and target of the table."""

from __future__ import annotations

import re

import pytest
from tests.each import together

from pto import isa
from pto.codegen.cpp import emit
from pto.diag import DiagnosticError
from pto.isa.profiles import PROFILES
from pto.isa.row import Row
from pto.witness.plan import first_plan
from pto.witness.programs import build, plans

from .shapes import witnesses

#: Rows whose witness passes something through its signature that C++ has no type for: FIFO handles, groups.
_NO_SIGNATURE = ("!pto.pipe", "!pto.group<2>")

#: Forms without a spelling: the text of their diagnostic.
_FORMS = {
    "tput": "without 'ping'",
    "tget": "without 'ping'",
    "mte_gm_ub": "with 'pad_value'",  # 64 bits
    "mad": "for elements of",
    "mad_acc": "for elements of",
    "mad_bias": "for elements of",
    "mte_gm_l1_frac": "for elements of 4 bits",
    "mte_l1_l0b": "of at most 16 columns",
    "local_array_get": "!pto.local_array<",
    "local_array_set": "!pto.local_array<",
    "copy_gm_to_ubuf": "with 'left_padding'",
    "set_quant_scalar": "without 'out_type'",
    "tquant": "with 'grp_axis'",
}


def _spelled(row: Row) -> bool:
    return bool(row.cpp) and row.set not in ("vector", "predicate") and row.scope != "vec"


ROWS = [row for row in isa.rows() if _spelled(row) and row.name not in ("vecscope", "strict_vecscope")]


def _call(row: Row) -> set[str]:
    """Names of intrinsics a spelling starts with, in any of its forms."""
    first = (re.match(r"(?:pto::comm::)?([A-Z][A-Z_0-9]{2,})\b", text) for text in row.cpp.split(" | "))
    return {m[1] for m in first if m}


@together("row", ROWS)
def test_every_form_is_emitted(row: Row) -> None:
    names = _call(row)
    for column in row.isas:
        if row.set == "cube" and column == "a2a3":
            with pytest.raises(DiagnosticError, match="only an A5 has calls of the cube unit on pointers"):
                emit(build(next(iter(plans(row, column)))), PROFILES[column])
            continue
        done = 0
        # forms and element types on one target, the first on the others
        for plan in witnesses(row, column) if column == row.isas[-1] else [first_plan(row, column)]:
            module = build(plan)
            try:
                text = emit(module, PROFILES[column])
            except DiagnosticError as e:
                said = str(e)
                allowed = (*_NO_SIGNATURE, _FORMS.get(row.name, "\0"))
                assert any(a in said for a in allowed), said
                continue
            done += 1
            assert "\x01" not in text and "$" not in text and "?" not in text.replace(" ? ", "")
            unused = row.effect == "alias"  # an unused view of a tile is left out
            assert not names or unused or any(re.search(rf"\b{n}\b", text) for n in names), text
        assert done or row.name in (*_FORMS, "talloc", "tpush", "tpop", "tfree"), column


def test_the_same_program_gives_the_same_text() -> None:
    row = isa.row("tadd")
    assert row is not None
    texts = {emit(build(next(iter(plans(row, "a5")))), PROFILES["a5"]) for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    "row",
    [r for r in isa.rows() if r.no_cpp and r.dialect == "pto" and not r.regions],
    ids=lambda row: row.name,
)
def test_what_has_no_spelling_is_diagnosed(row: Row) -> None:
    """No instruction crashes: it is printed as something else, left out, or a diagnostic with a code."""
    for column in row.isas[-1:]:
        module = build(next(iter(plans(row, column))))
        try:
            emit(module, PROFILES[column])
        except DiagnosticError as e:
            assert {d.code for d in e.diagnostics} <= {"PTO-E1301", "PTO-E1302"}, str(e)


#: Rows of the micro level without C++, and why there is none.
_WITHOUT = {"vsort32": "no public call sorts values without their indices"}
_MICRO = ("vector", "predicate", "micro", "cube")


def test_what_the_micro_level_has_no_call_for() -> None:
    """All other rows are emitted; a mask of another granularity is the same variable."""
    micro = [r for r in isa.rows() if r.set in _MICRO or r.family in ("pipeline-sync", "dma-copy")]
    assert {r.name: r.no_cpp for r in micro if not r.cpp and r.name != "pbitcast"} == _WITHOUT
    for name, why in _WITHOUT.items():
        row = isa.row(name)
        assert row is not None
        with pytest.raises(DiagnosticError) as caught:
            emit(build(next(iter(plans(row, "a5")))), PROFILES["a5"])
        assert [d.message for d in caught.value.diagnostics] == [f"{name}: no C++ spelling: {why}"]
