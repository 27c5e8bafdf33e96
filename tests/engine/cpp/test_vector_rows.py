"""Every vector and predicate row with a C++ call: compiled against the reference engine, byte for byte.

`make matrix` takes all attributes of all element types; the ordinary run a few of each.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache

import pytest
from tests.sampling import EVERY, some

from pto import isa
from pto.codegen.cpp import emit
from pto.diag import DiagnosticError
from pto.isa.profiles import PROFILES
from pto.isa.row import Row
from pto.witness.plan import Plan, _legal_dtypes, make_attribute, plans, violated

from .vector_bench import VectorRow, differences, module_of

#: Rows that go on from a state, or whose buffers want sorted contents: whole programs test them.
PROGRAMS = ("vldus", "vsta", "vstas", "vstar", "vstu", "vstus", "vstur", "pstu", "vmrgsort4", "vsort32")

#: Rows without a call, and the text of their diagnostic.
REFUSED: dict[str, tuple[str, ...]] = {
    "vbcnt": ("i64", "u64"),
    "vcls": ("i64",),
    "vshl": ("i64", "u64"),
    "vshr": ("i64", "u64"),
    "vcadd": ("i64 to i64",),
    "vcvt": ("u32 to f32",),
    "vexpdif": ("f16 to f16",),
    "vgather2_bc": ("i8", "u8", "f8e4m3", "f8e5m2", "hif8"),
    "vmulscvt": ("rnd",),
}


def rows() -> list[Row]:
    return [
        r for r in isa.rows()
        if r.set in ("vector", "predicate") and r.cpp and r.name not in PROGRAMS and r.name != "vldas"
    ]  # fmt: skip


def variants(row: Row) -> Iterator[Plan]:
    """Plans of all element types and forms; attributes walk through their choices side by side."""
    choices = {a.name: a.domain for a in row.attrs if a.domain}
    longest = max(map(len, choices.values()), default=1)
    first, many = zlib.crc32(row.name.encode()), len(row.dtypes.get("a5", ())) > 4 or row.combos
    some = 1 if EVERY or row.set == "vector" else 4  # what pointers to masks point to makes no difference
    for at, plan in enumerate(list(plans(row, "a5"))[::some]):
        for step in (
            range(longest)
            if EVERY or longest < 5 or row.name == "vmulscvt"
            else range(first + at, first + at + (1 if many else 3))
        ):
            attrs = dict(plan.attrs)
            for k, (name, values) in enumerate(choices.items()):
                if name in attrs or row.attr_index[name].default is not None:
                    value = values[(step // (k + 1) + k * at) % len(values)]
                    attrs[name] = make_attribute(row.attr_index[name], value)
            made = plan.replace(attrs=attrs)
            if violated(made) or not _legal_dtypes(made):
                made = plan
            yield made


@cache
def cases(name: str) -> tuple[list[VectorRow], list[str]]:
    """Return the instances of a row that have C++, and the diagnostics of the others."""
    row = isa.row(name)
    assert row is not None
    found: list[VectorRow] = []
    refused: list[str] = []
    wanted = list({repr(p): p for p in variants(row)}.values())
    wanted = some(wanted, 3 if row.combos else max(3, len(wanted) // 4), by=lambda p: str(p.attrs.get("rnd")))
    for seed, plan in enumerate(wanted):
        try:
            emit(module_of([VectorRow(plan, seed)], "a5"), PROFILES["a5"])
        except DiagnosticError as e:
            assert {d.code for d in e.diagnostics} == {"PTO-E1301"}, str(e)
            refused.append(str(e))
            continue
        found.append(VectorRow(plan, seed))
    return found, refused


def test_what_has_no_call_is_named() -> None:
    wrong: list[str] = []
    for row in rows():
        allowed = REFUSED.get(row.name, ())
        found, refused = cases(row.name)
        wrong += [said for said in refused if not any(word in said for word in allowed)]
        wrong += [f"{row.name} has no C++ at all" for _ in [0] if not found]
        wrong += [f"{row.name}: '{w}' has C++" for w in allowed if EVERY and not any(w in s for s in refused)]
    assert wrong == []


PARTS = 24 if EVERY else 2


@pytest.mark.parametrize("part", range(PARTS))
def test_rows(part: int) -> None:
    found = [case for row in rows()[part::PARTS] for case in cases(row.name)[0]]
    assert differences(found, "a5") == []
