"""The same violation has the same id in a program and in C++.

Programs one change away from a legal one (`pto.witness.mutate`) that break a rule which C++ types decide: the
verifier says its id, and so does the compiler, of the check that the intrinsic calls.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

from pto import isa
from pto.codegen.checks import Check, asserted, assertions, checks_of
from pto.codegen.cpp.spelling import Types, Unspellable
from pto.codegen.cpp.template import template
from pto.ir.context import Context
from pto.ir.types import ConvTileType, TileBufType, Type, ViewType
from pto.isa.profiles import PROFILES
from pto.isa.row import Row
from pto.isa.rule_trees import names_in
from pto.isa.rules import broken
from pto.verify.rows import RowChecker
from pto.witness.mutate import variants
from pto.witness.plan import Plan, dtype_choices, environment, forms, plan, with_element
from pto.witness.programs import build

from ..native.instructions import COMPILER, DEFINES, INCLUDE

#: Every tile row with a C++ call, and its checks.
CHECKS = {row.name: checks_of(row) for row in isa.rows() if row.set == "tile"}
ROWS = [row for row in isa.rows() if CHECKS.get(row.name)]
_BY_CALL: dict[str, list[str]] = defaultdict(list)
for _check in (c for checks in CHECKS.values() for c in checks):
    _BY_CALL[_check.call.name].append(_check.name)
#: The place of a check among those of its call.
PLACES = {name: place for names in _BY_CALL.values() for place, name in enumerate(names)}
#: Checks of entries that other headers have, or that check by another row: TMOV_FP is also a form of tmov.
NOT_CALLED = {"check_tmov_fp", "check_tmov_fp_with_accToVecMode", "check_tprefetch_async",
              "check_syncall_with_gm_workspace", "check_talloc"}  # fmt: skip


def reported(made: Plan) -> tuple[set[str], Check | None]:
    """The ids that the verifier reports of a planned instruction, and the check of its C++ call."""
    module = build(made)
    context = Context(module, PROFILES[made.isa])
    op = next(op for op in module.walk() if op.row is made.row)
    RowChecker(context).check(op)
    chosen, _ = template(made.row, made.isa).choose(op)
    found = [
        c for c in CHECKS[made.row.name] if chosen is not None and any(f.cpp == chosen.text for f in c.forms)
    ]
    return {d.code for d in context.diagnostics if d.severity == "error"}, next(
        (
            c
            for c in found
            if all(isinstance(_type(made, n), TileBufType | ConvTileType | ViewType) for n in c.classes)
        ),
        None,
    )


def _type(made: Plan, name: str) -> Type | None:
    return next(iter({**made.operands, **made.results}.get(name, ())), None)


def spelled(made: Plan, check: Check) -> str:
    """The call of the check."""
    types = Types(PROFILES[made.isa], "int32_t")
    arguments: list[str] = []
    for name in check.classes:
        type = _type(made, name)
        assert type is not None
        text = types(type)
        if isinstance(type, ViewType):
            text = text.replace("Layout::ND", f"Layout::{made.layouts.get(name, 'nd').upper()}")
        arguments.append(text)
    for name, attr in check.attrs.items():
        value = made.attrs[name].value if name in made.attrs else made.row.attr_index[name].default
        arguments.append(attr.spelled(value))
    return f"detail::{check.name}<{', '.join(arguments)}>()"


#: Rules that C++ decides, by the name of the check, with the operands that have to be tiles for it.
DECIDED = {
    c.name: [(r, found.tiles) for r in c.row.rules if (found := asserted(c, r)) is not None]
    for checks in CHECKS.values()
    for c in checks
}


def decided(made: Plan, check: Check) -> set[str]:
    """The ids of the rules that a plan breaks and C++ decides."""
    env = environment(made)
    return {
        rule.code
        for rule, tiles in DECIDED[check.name]
        if (not rule.on or made.isa in rule.on)
        and all(isinstance(_type(made, n), TileBufType) for n in tiles)
        and broken(rule, env)
    }


def illegal(row: Row, column: str) -> Iterator[tuple[str, set[str], str]]:
    """(what was changed, ids of the verifier that C++ decides, call of the check): every id of a check once."""
    seen: dict[str, set[str]] = defaultdict(set)
    for form in forms(row):
        made = next((p for p in _plans(row, column, form) if not reported(p)[0]), None)
        own = reported(made)[1] if made is not None else None
        if made is None or own is None:
            continue
        for what, bad in (*_neighbours(made, own, seen[own.name]), *_other_elements(made)):
            ids, check = reported(bad)
            if check is None:
                continue
            wanted = ids if what.startswith("elements") else ids & decided(bad, check)
            try:
                call = spelled(bad, check)
            except Unspellable:
                continue
            if wanted - seen[check.name]:
                seen[check.name] |= wanted
                yield f"{row.name}: {what}", wanted, call


def _plans(row: Row, column: str, form: str) -> Iterator[Plan]:
    return (plan(row, column, choice, form) for choice in dtype_choices(row, column))


def _neighbours(made: Plan, check: Check, seen: Set[str]) -> Iterator[tuple[str, Plan]]:
    """Plans that break a rule whose id is still wanted."""
    for rule, _ in DECIDED[check.name]:
        if rule.code in seen or (rule.on and made.isa not in rule.on):
            continue
        names = names_in(rule.expr) | names_in(rule.when or "0")
        for what, bad in variants(made, names):
            # A truth value takes a byte in C++; no tile has any.
            if "elements i1" not in what and broken(rule, environment(bad, names)):
                yield what, bad
                break


def _other_elements(made: Plan) -> Iterator[tuple[str, Plan]]:
    """Plans with one element type that is not in the list of the row, or in no combination."""
    for name in made.row.dtype_of or [n for c in made.row.combos for n in c.operands]:
        types = made.operands.get(name, ())
        for dtype in ("s4", "i64", "f8e4m3") if types else ():
            other = tuple(with_element(t, dtype) for t in types)
            bad = made.replace(operands={**made.operands, name: other})
            env = environment(bad)
            if not any(broken(r, env) for r in made.row.rules if not r.on or made.isa in r.on):
                yield f"elements {dtype} of {name}", bad


def _said(column: str, calls: list[str]) -> list[set[str]]:
    """The ids that the compiler says of each call."""
    head = ["#include <pto/pto-inst.hpp>", "using namespace pto;"]
    lines = [f"void f{k}() {{ {call}; }}" for k, call in enumerate(calls)]
    command = [
        str(COMPILER),
        "-std=c++20",
        "-fsyntax-only",
        "-fmax-errors=0",
        "-x",
        "c++",
        "-",
        f"-I{INCLUDE}",
    ]
    done = subprocess.run(
        [*command, *DEFINES[column]],
        input="\n".join([*head, *lines]),
        capture_output=True,
        text=True,
        check=False,
    )
    said: list[set[str]] = [set() for _ in calls]
    line = 0
    for text in done.stderr.splitlines():
        here = re.match(r"<stdin>:(\d+):\d+:\s+required from here", text)
        line = int(here[1]) - len(head) - 1 if here else line
        found = re.search(r"error: static assertion failed: \[PTO\]\[([\w-]+)\] [A-Z]", text)
        if found:
            said[line].add(found[1])
    return said


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("column", ["cpu", "a2a3", "a5"])
def test_the_compiler_says_what_the_verifier_says(column: str) -> None:
    probes = [probe for row in ROWS if column in row.isas for probe in illegal(row, column)]
    assert len(probes) > 500
    # What the checks of one call share is said once in a file: each has a file of its own.
    files: dict[int, list[tuple[str, set[str], str]]] = defaultdict(list)
    for probe in probes:
        name = probe[2].removeprefix("detail::").partition("<")[0]
        files[PLACES[name]].append(probe)
    wrong = [
        f"{what}: verifier {sorted(wanted)}, compiler {sorted(ids)}: {call}"
        for found in files.values()
        for (what, wanted, call), ids in zip(found, _said(column, [p[2] for p in found]), strict=True)
        if not wanted <= ids
    ]
    assert not wrong, f"{len(wrong)} of {len(probes)}\n" + "\n".join(wrong[:20])


def test_every_check_is_called() -> None:
    ops = Path(INCLUDE) / "pto/ops"
    text = "".join(p.read_text() for p in ops.glob("*.hpp") if p.name != "legality.hpp")
    text = re.sub(r"check_##(?:name|row)", "check_*", text)
    for row in ROWS:
        for check in CHECKS[row.name]:
            stem = check.name.replace(row.name, "*")
            called = f"{check.name}<" in text or f"{stem}<" in text or stem.replace("*", "*##") in text
            assert called or not any(assertions(check)) or check.name in NOT_CALLED, check.name
