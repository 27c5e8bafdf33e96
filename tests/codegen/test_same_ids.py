"""The same violation has the same id in a program and in C++.

Programs one change away from a legal one (`tests/witness/mutate.py`) that break a rule which C++ types decide: the
verifier says its id, and so does the compiler, of the check that the intrinsic calls. Where the change is one
of a valid region or a number, the same program with that left open is legal, and a run says the id: the
reference engine, and C++ that is compiled with PTO_CHECKED.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from tests.made import compiled
from tests.sampling import EVERY, some

from pto import isa, kernel, parse
from pto.codegen.checks import Check, asked_of, asserted, checks_of
from pto.codegen.cpp.spelling import Types, Unspellable
from pto.codegen.cpp.template import template
from pto.engine.cpp.compiler import VERIFIED
from pto.engine.memory import Tile
from pto.engine.reference.instr import IllegalInstruction
from pto.engine.reference.open_rules import asked
from pto.ir.context import Context
from pto.ir.types import ConvTileType, ScalarType, TileBufType, Type, ViewType
from pto.isa.profiles import PROFILES
from pto.isa.row import Row
from pto.isa.rule_trees import names_in
from pto.isa.rules import Rule, broken
from pto.verifier.rows import RowChecker
from pto.witness.plan import Plan, dtype_choices, environment, forms, plan, with_element
from pto.witness.programs import build

from ..native.instructions import COMPILER, DEFINES, INCLUDE
from ..witness.mutate import variants


@cache
def checks() -> dict[str, list[Check]]:
    """Every tile row with a C++ call, and its checks."""
    made = {row.name: checks_of(row) for row in isa.rows() if row.set == "tile"}
    return {name: found for name, found in made.items() if found}


def rows() -> list[Row]:
    return [row for row in isa.rows() if row.name in checks()]


@cache
def calls() -> dict[str, str]:
    """The call of each check."""
    return {c.name: c.call.name for found in checks().values() for c in found}


@cache
def decided_rules() -> dict[str, list[tuple[Rule, Set[str]]]]:
    """Rules that C++ decides, by the name of the check, with the operands that have to be tiles for it."""
    return {
        c.name: [(r, found.tiles) for r in c.row.rules if (found := asserted(c, r)) is not None]
        for of_row in checks().values()
        for c in of_row
    }


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
        c
        for c in checks()[made.row.name]
        if chosen is not None and any(f.cpp == chosen.text for f in c.forms)
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


def spelled(made: Plan, check: Check, values: Sequence[str] | None = None) -> str:
    """The call of the check; without values, one that compiles and nothing more."""
    types = Types(PROFILES[made.isa], "int32_t")
    classes = {name: _spelled_type(types, made, name) for name in check.classes}
    attrs: list[str] = []
    for name, attr in check.attrs.items():
        value = made.attrs[name].value if name in made.attrs else made.row.attr_index[name].default
        attrs.append(attr.spelled(value))
    if values is None:
        values = [f"some<{classes[name]}>()" if name in classes else "0" for name in check.values]
    return f"detail::{check.name}<{', '.join([*classes.values(), *attrs])}>({', '.join(values)})"


def _spelled_type(types: Types, made: Plan, name: str) -> str:
    type = _type(made, name)
    assert type is not None
    layout = f"Layout::{made.layouts.get(name, 'nd').upper()}"
    return types(type).replace("Layout::ND", layout) if isinstance(type, ViewType) else types(type)


def decided(made: Plan, check: Check) -> set[str]:
    """The ids of the rules that a plan breaks and C++ decides."""
    env = environment(made)
    return {
        rule.code
        for rule, tiles in decided_rules()[check.name]
        if (not rule.on or made.isa in rule.on)
        and all(isinstance(_type(made, n), TileBufType) for n in tiles)
        and broken(rule, env)
    }


def illegal(row: Row, column: str) -> Iterator[tuple[str, set[str], str]]:
    """Yield (change, ids of the verifier that C++ decides, call of the check): every id of a check once."""
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
    # i8 comes last: a program has no sign to it, C++ has
    choices = sorted(dtype_choices(row, column), key=lambda choice: "i8" in choice.values())
    return (plan(row, column, choice, form) for choice in choices)


def _neighbours(made: Plan, check: Check, seen: Set[str]) -> Iterator[tuple[str, Plan]]:
    """Plans that break a rule whose id is still wanted."""
    for rule, _ in decided_rules()[check.name]:
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


def _said(column: str, calls: list[str], *flags: str) -> list[set[str]]:
    """Return the ids in the compiler's messages for each call."""
    head = ["#include <pto/pto-inst.hpp>", "using namespace pto;", "template <class T> T& some();"]
    lines = [f"void f{k}() {{ {call}; }}" for k, call in enumerate(calls)]
    command = [
        str(COMPILER),
        "-std=c++20",
        "-fsyntax-only",
        "-fmax-errors=0",
        f"-I{INCLUDE}",
    ]
    done = compiled([*command, *DEFINES[column], *flags], "\n".join([*head, *lines]))
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
@pytest.mark.parametrize("column", ["a2a3", "a5", *(["cpu"] if EVERY else [])])
def test_the_compiler_says_what_the_verifier_says(column: str) -> None:
    # columns start at different rows
    asked = some(
        [(row, column) for column in DEFINES for row in rows() if column in row.isas], 8, by=lambda p: p[1]
    )
    probes = [probe for row, of in asked if of == column for probe in illegal(row, column)]
    assert len(probes) > (500 if EVERY else 50)
    # A check that several calls share is reported once in a file: each call has a file of its own.
    files: dict[int, list[tuple[str, set[str], str]]] = defaultdict(list)
    beside: dict[str, list[str]] = defaultdict(list)
    for probe in probes:
        name = probe[2].removeprefix("detail::").partition("<")[0]
        asked_of_call = beside[calls()[name]]
        if name not in asked_of_call:
            asked_of_call.append(name)
        files[asked_of_call.index(name)].append(probe)
    wrong = [
        f"{what}: verifier {sorted(wanted)}, compiler {sorted(ids)}: {call}"
        for found in files.values()
        for (what, wanted, call), ids in zip(found, _said(column, [p[2] for p in found]), strict=True)
        if not wanted <= ids
    ]
    assert not wrong, f"{len(wrong)} of {len(probes)}\n" + "\n".join(wrong[:20])


# ---- at run time ----


class Case(NamedTuple):
    """A legal program with values that break a rule."""

    what: str
    check: Check
    opened: Plan  # as it is compiled: valid regions and numbers are not known
    bad: Plan  # as it runs

    @property
    def run_by_the_engine(self) -> str:
        """Return the id that the reference engine reports."""
        module = build(self.opened)
        row = self.bad.row
        op = next(op for op in module.walk() if op.row is row)
        asks = asked(op, row, PROFILES[self.bad.isa])
        assert asks is not None, self.what
        args = {name: _met(self.bad, name) for name in self.opened.operands}
        try:
            asks({name: value for name, value in args.items() if value is not None})
        except IllegalInstruction as problem:
            return problem.code
        return ""

    @property
    def cpp(self) -> str:
        """A block that declares the operands and calls the check."""
        types = Types(PROFILES[self.bad.isa], "int32_t")
        lines: list[str] = []
        for name in self.check.values:
            type = _type(self.bad, name)
            if isinstance(type, ScalarType):
                lines.append(f"const long long {name} = {self.bad.constants[name, 0]};")
                continue
            valid = f"({type.v_row}, {type.v_col})" if isinstance(type, TileBufType) else "{}"
            lines.append(f"static {_spelled_type(types, self.opened, name)} {name}{valid};")
        return " ".join([*lines, f"{spelled(self.opened, self.check, self.check.values)};"])


def _met(made: Plan, name: str) -> Any:
    """The value of an operand, as an instruction of the engine has it."""
    type = _type(made, name)
    if isinstance(type, TileBufType):
        assert type.v_row is not None and type.v_col is not None
        return Tile(type, cast(Any, None), 0, (type.v_row, type.v_col), name)
    return made.constants.get((name, 0))


def _opened(made: Plan) -> Plan:
    """Return a plan whose valid regions and numbers are known at run time only."""
    given = {
        name: tuple(t.replace(v_row=None, v_col=None) if isinstance(t, TileBufType) else t for t in types)
        for name, types in made.operands.items()
    }
    return made.replace(operands=given, constants={})


def cases(row: Row, column: str, seen: set[tuple[str, Rule]]) -> Iterator[Case]:
    """Yield, for every rule that is checked at run time, values that break it and only that."""
    for form in forms(row):
        made = next((p for p in _plans(row, column, form) if not reported(p)[0]), None)
        check = reported(made)[1] if made is not None else None
        if made is None or check is None or reported(_opened(made))[0]:
            continue
        for rule in check.row.rules:
            key = row.name, rule.replace(on=())
            if key in seen or (rule.on and column not in rule.on) or asked_of(check, rule) is None:
                continue
            found = next(_broken_at_run_time(made, check, rule), None)
            if found is not None:
                seen.add(key)
                yield found


def _broken_at_run_time(made: Plan, check: Check, rule: Rule) -> Iterator[Case]:
    names = names_in(rule.expr) | names_in(rule.when or "0")
    for what, bad in variants(made, names):
        changed = " valid " in what and " of " not in what and "None" not in what
        if not changed and not re.search(r"^\w+ = -?\d+$", what):
            continue
        inside = all(
            t.v_row is not None and t.v_col is not None and t.v_row <= t.rows and t.v_col <= t.cols
            for types in bad.operands.values() for t in types if isinstance(t, TileBufType)
        )  # fmt: skip
        if (
            inside
            and rule.code in reported(bad)[0]
            and broken(rule, environment(bad))
            and not reported(_opened(bad))[0]
        ):
            yield Case(f"{made.row.name}: {what}", check, _opened(bad), bad)


_MAIN = """
int main() {{
  void (*const cases[])() = {{{names}}};
  for (auto* run : cases) {{
    if (fork() == 0) {{
      run();
      _exit(0);
    }}
    wait(nullptr);
    std::fprintf(stderr, "\\n;\\n");
  }}
}}
"""


def _run(column: str, found: list[Case], tmp_path: Path) -> list[str]:
    """Return the ids that C++ reports for each case."""
    head = ["pto/pto-inst.hpp", "cstdio", "sys/wait.h", "unistd.h"]
    lines = [*(f"#include <{h}>" for h in head), "using namespace pto;"]
    lines += [f"void f{k}() {{ {case.cpp} }}" for k, case in enumerate(found)]
    lines.append(_MAIN.format(names=", ".join(f"f{k}" for k in range(len(found)))))
    source, program = tmp_path / f"{column}.cpp", tmp_path / column
    source.write_text("\n".join(lines))
    command = [str(COMPILER), "-std=c++20", "-DPTO_CHECKED", f"-I{INCLUDE}", *DEFINES[column]]
    done = compiled(command, source, program)
    assert done.returncode == 0, done.stderr[:4000]
    said = subprocess.run([program], capture_output=True, text=True, check=True).stderr.split("\n;\n")
    return [found[1] if (found := re.search(r"\[PTO\]\[([\w-]+)\]", text)) else "" for text in said[:-1]]


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_a_run_says_what_the_verifier_says(tmp_path: Path) -> None:
    seen: set[tuple[str, Rule]] = set()
    wrong: list[str] = []
    count = 0
    for column in ("a2a3", "a5", "cpu") if EVERY else ("a5",):
        asked = [row for row in rows() if column in row.isas]
        found = [case for row in some(asked, 6) for case in cases(row, column, seen)]
        count += len(found)
        for case, id in zip(found, _run(column, found, tmp_path), strict=True):
            ids, engine = reported(case.bad)[0], case.run_by_the_engine
            if not engine == id or id not in ids:
                wrong.append(
                    f"{column} {case.what}: verifier {sorted(ids)}, engine {engine}, C++ {id}: {case.cpp}"
                )
    assert count > (350 if EVERY else 40)
    assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong[:20])


_OPEN = """
func.func @k(%n: index, %m: index) {
  %a = pto.alloc_tile valid_row = %n valid_col = %m : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
  %b = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
  pto.tabs ins(%a : !pto.tile_buf<vec, 16x64xf32, valid=?x?>) outs(%b : !pto.tile_buf<vec, 16x64xf32>)
  return
}
"""


def test_a_launch_asks_what_the_program_leaves_open() -> None:
    module = parse(_OPEN)
    kernels = [
        kernel(module, engine="reference"),
        *([kernel(module, engine="cpp", checked=True)] if COMPILER is not None else []),
    ]
    for k in kernels:
        assert k.run(16, 64).ok
        (found,) = k.run(3, 5).diagnostics
        assert (
            found.code == "PTO-E0401"
            and "tabs: expects src and dst to have the same valid_shape" in str(found).lower()
        )
    assert kernel(module, engine="reference", check=False).run(3, 5).ok
    for watched in ({"sanitize": "race"}, {"memory_map": True}):  # who watches has nothing to say of it
        (found,) = kernel(module, engine="reference").run(3, 5, **watched).diagnostics
        assert found.code == "PTO-E0401"


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_emitted_code_is_not_asked_again() -> None:
    tile = "Tile<TileType::Vec, float, 16, 64>"
    calls = [
        f"some<{tile}>(), TADD(some<{tile}>(), some<{tile}>(), some<Tile<TileType::Vec, half, 16, 64>>())"
    ]
    assert _said("a2a3", calls, VERIFIED) == [set()]
    assert _said("a2a3", calls, VERIFIED, "-DPTO_CHECKED") == [{"PTO-E0301"}], (
        "values are, and types with them"
    )


def test_every_check_is_called() -> None:
    ops = Path(INCLUDE) / "pto/ops"
    text = "".join(p.read_text() for p in ops.glob("*.hpp") if p.name != "legality.hpp")
    text = re.sub(r"check_##(?:name|row)", "check_*", text)
    for row in rows():
        for check in checks()[row.name]:
            stem = check.name.replace(row.name, "*")
            called = f"{check.name}<" in text or f"{stem}<" in text or stem.replace("*", "*##") in text
            assert called or check.is_empty or check.name in NOT_CALLED, check.name
