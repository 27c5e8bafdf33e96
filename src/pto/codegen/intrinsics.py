"""Generates ops/meanings.hpp and ops/regular.hpp: the regular tile instructions in C++, from their rows.

    python -m pto.codegen.intrinsics            # write the header
    python -m pto.codegen.intrinsics --check    # say whether it is up to date

Of every element-wise row with an expression come: a struct with the expression in C++, over
the operators of core/numbers.hpp; the rules of its operands that C++ types decide, as static assertions with
their ids; and the intrinsic itself, unless its operands come in several orders (then elementwise.hpp has it).
Rows without one get the assertions only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..isa import meaning
from ..isa import rows as all_rows
from ..isa.dtypes import DTYPES, NUMBERS
from ..isa.machine import MEMORIES
from ..isa.profiles import ARCH_NAMES, ISAS
from ..isa.row import Operand, Row
from ..isa.rule_trees import explain, names_in
from ..isa.rules import CONSTANTS, Rule, facts_in

TARGET = Path(__file__).parents[3] / "native/include/pto/ops/meanings.hpp"

#: Rows whose intrinsic is written by hand: their operands come in more than one order or number.
BY_HAND = frozenset({"tdivs", "tcmp", "tcmps", "tsel", "tsels", "tcvt", "texpands", "taxpy", "tadddeqrelu",
                     "trowexpand", "tcolexpand"})  # fmt: skip
#: C++ for the operations of `isa.meaning`: functions of core/numbers.hpp, with `<T>` where the element type
#: matters.
_SPELLED: dict[str, str] = {
    **{name: name for name in (
        "add sub mul div neg bit_and bit_or bit_xor bit_not shl shr less less_equal greater greater_equal "
        "equal not_equal where relu").split()},
    **{name: f"{name}<T>" for name in "round exp log sqrt fmod pow".split()},
    "double": "to_double",
}  # fmt: skip


def expression(text: str) -> str:
    """The expression of a row in C++."""
    return meaning.fold(
        meaning.read(text), str, str, lambda operation, *args: f"{_SPELLED[operation]}({', '.join(args)})"
    )


def _inputs(row: Row) -> tuple[list[Operand], list[Operand]]:
    """The tiles that a row reads, and its scalars."""
    tiles = [o for role in ("in", "inout") for o in row.operands if o.role == role and _is_tile(o)]
    return tiles, [o for o in row.operands if o.role == "in" and not _is_tile(o)]


def _is_tile(operand: Operand) -> bool:
    return "tile" in operand.kinds and operand.name != "scalar"


# ---- what a row computes ----


def _meaning(row: Row) -> Iterator[str]:
    """The struct of a regular row; it takes the scalars first."""
    tiles, scalars = _inputs(row)
    names = [o.name for o in (*scalars, *tiles)]
    params = ", ".join(f"wide_t<T> {name}" for name in (["acc", *names] if row.start else names))
    yield f"/// {row.expr}"
    yield f"struct {row.name} {{"
    yield f"  static constexpr bool converts = {str(row.store == 'saturate').lower()};"
    yield "  template <class T>"
    yield f"  static PTO_INLINE auto of({params}) {{"
    assert set(row.expr_on) <= set(ISAS), f"{row.name}: an expression by element type has no C++"
    others = {text for isa, text in row.expr_on.items() if isa != "cpu"}
    if others:
        assert len(others) == 1 and "cpu" not in row.expr_on, f"{row.name}: one expression per column"
        yield f"    if constexpr (kIsa != Isa::cpu) return {expression(others.pop())};"
        yield f"    else return {expression(row.expr)};"
    else:
        yield f"    return {expression(row.expr)};"
    yield "  }"
    yield "};"


# ---- what is legal ----

_FACTS = {"loc": "Loc", "blayout": "BFractal", "slayout": "SFractal", "rows": "Rows", "cols": "Cols",
          "fractal": "SFractalSize", "bits": "bits", "boxed": "isBoxedLayout", "layout": "form"}  # fmt: skip
_LOCATIONS = {loc.upper(): memory.tile_type for loc, memory in MEMORIES.items()}
_FIX = {"loc": "move it there with TMOV", "dtype": "convert with TCVT", "blayout": "use BLayout::RowMajor"}
_CLASSES = (
    ("PTO-E0301", frozenset({"dtype", "bits", "bytes"})),
    ("PTO-E0401", frozenset({"rows", "cols", "shape"})),
)


class _Open(Exception):
    """A rule speaks of what C++ types do not say."""


def _condition(node: ast.expr, tiles: frozenset[str]) -> str:
    match node:
        case ast.BoolOp(ast.And(), values) if all(_is_row_major(v) for v in values):
            return f"all_row_major<{', '.join(_owner(v.left, tiles) for v in values)}>()"  # pyright: ignore
        case ast.BoolOp(op, values):
            word = " && " if isinstance(op, ast.And) else " || "
            return "(" + word.join(_condition(v, tiles) for v in values) + ")"
        case ast.Compare(left, [ast.In()], [ast.Tuple(choices)]):
            return "(" + " || ".join(f"{_term(left, tiles)} == {_term(c, tiles)}" for c in choices) + ")"
        case ast.Compare(ast.Attribute(_, "shape"), [ast.Eq()], [ast.Attribute(_, "shape") as right]):
            a, b = (_owner(n, tiles) for n in (node.left, right))
            return f"({a}::Rows == {b}::Rows && {a}::Cols == {b}::Cols)"
        case ast.Compare(left, [ast.Eq() | ast.NotEq() as op], [right]):
            return f"{_term(left, tiles)} {'==' if isinstance(op, ast.Eq) else '!='} {_term(right, tiles)}"
        case _:
            raise _Open


def _is_row_major(node: ast.expr) -> bool:
    return ast.unparse(node).endswith(".blayout == ROW")


def _owner(node: ast.expr, tiles: frozenset[str]) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in tiles:
        return node.value.id
    raise _Open


def _term(node: ast.expr, tiles: frozenset[str]) -> str:
    match node:
        case ast.Constant(int(value)):
            return str(value)
        case ast.Name(name) if name in _LOCATIONS:
            return f"TileType::{_LOCATIONS[name]}"
        case ast.Name("ROW" | "COL" as name):
            return f"BLayout::{name.capitalize()}Major"
        case ast.Name("ND" | "DN" | "NZ" | "ZN" | "ZZ" | "NN" as name):
            return f"Form::{name}"
        case ast.Name(name) if name in CONSTANTS and CONSTANTS[name] in DTYPES:
            return f"DType::{CONSTANTS[name]}"
        case ast.Attribute(_, "dtype"):
            return f"dtype_of<typename {_owner(node, tiles)}::DType>"
        case ast.Attribute(_, fact) if fact in _FACTS:
            return f"{_owner(node, tiles)}::{_FACTS[fact]}"
        case _:
            raise _Open


def _holds(rule: Rule, tiles: frozenset[str]) -> str:
    """A rule as a constant expression."""
    return _guarded(_condition(ast.parse(rule.expr, mode="eval").body, tiles), rule, tiles)


def _guarded(text: str, rule: Rule, tiles: frozenset[str]) -> str:
    """A condition where a rule applies."""
    if rule.when:
        text = f"!({_condition(ast.parse(rule.when, mode='eval').body, tiles)}) || {text}"
    if rule.on and set(rule.on) != set(ISAS):
        text = f"{_outside(rule.on)} || {text}"
    return text


def _code(rule: Rule) -> str:
    facts = facts_in(rule.expr)
    return rule.code or next((code for code, known in _CLASSES if facts & known), "PTO-E0501")


def _mask(names: Iterable[str]) -> str:
    """Element types as bits, in the order of the C++ enumeration."""
    return hex(sum(1 << NUMBERS[n] for n in names))


def _columns(values: list[str]) -> str:
    """One value per column of the table, or one for all."""
    return values[0] if len(set(values)) == 1 else f"by_isa({', '.join(values)})"


def _assertion(condition: str, code: str, row: Row, message: str, fix: str) -> str:
    end = f"; fix: {fix}" if fix else ""
    return f'  static_assert({condition}, "[PTO][{code}] {row.name.upper()}: {message}{end}");'


def checks(row: Row) -> Iterator[str]:
    """A function over the tile types of a row that holds its assertions."""
    tiles = [o.name for o in (*row.outs, *(o for o in row.operands if o.role == "in")) if _is_tile(o)]
    known = frozenset(tiles)
    yield f"template <{', '.join(f'class {n}' for n in tiles)}>"
    yield f"constexpr void check_{row.name}() {{"
    for name in row.dtype_of:
        if name in known and row.dtypes:
            masks = _columns([_mask(row.dtypes.get(isa, ())) for isa in ISAS])
            shown = "; ".join(f"{ARCH_NAMES[i]}: {'/'.join(row.dtypes.get(i, ()))}" for i in ISAS)
            yield _assertion(
                f"is_one_of<{name}>({masks})", row.dtype_code or "PTO-E0302", row,
                f"the element type of {name} is not supported ({shown})", _FIX["dtype"],
            )  # fmt: skip
    yield from _combinations(row, known)
    for condition, code, message, fix in _rules(row, known):
        yield _assertion(condition, code, row, message, fix)
    yield "}"


def _combinations(row: Row, known: frozenset[str]) -> Iterator[str]:
    """Legal combinations of element types, by the types of all operands but the last."""
    for combos in row.combos:
        kept = [k for k, n in enumerate(combos.operands) if n in known]
        if combos.when or not set(combos.operands) - {"scalar"} <= known:
            continue
        lists: list[str] = []
        for isa in ISAS:
            table: dict[int, set[str]] = {}
            for combo in combos.legal.get(isa, ()):
                *head, last = (combo[k] for k in kept)
                table.setdefault(sum(NUMBERS[t] << 8 * i for i, t in enumerate(head)), set()).add(last)
            lists.append(", ".join(f"{{{key:#x}, {_mask(lasts)}}}" for key, lasts in table.items()))
        names = [combos.operands[k] for k in kept]
        code = combos.code or row.dtype_code or "PTO-E0302"
        message = f"the element types of {_and(names)} are no legal combination"
        fix = (
            "see the pairs with `pto isa tcvt`, convert in two steps" if row.name == "tcvt" else _FIX["dtype"]
        )
        for isas, pairs in _grouped(lists):
            if not pairs and set(isas) <= set(row.isas):
                continue  # a form that is limited elsewhere only
            where = "" if len(isas) == len(ISAS) else f"{_outside(isas)} || "
            known_pairs = f"are_combined<{', '.join(names)}>({{{pairs}}})"
            yield _assertion(
                where + (known_pairs if pairs else f"sizeof({names[0]}) == 0"), code, row, message, fix
            )


def _grouped(lists: list[str]) -> Iterator[tuple[list[str], str]]:
    for text in dict.fromkeys(lists):
        yield [isa for isa, found in zip(ISAS, lists, strict=True) if found == text], text


def _outside(isas: Iterable[str]) -> str:
    return "!(" + " || ".join(f"kIsa == Isa::{isa}" for isa in isas) + ")"


def _and(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


#: Rules that many operands share: what one of them looks like, its condition over all, and its message.
_SHARED = (
    (re.compile(r"(\w+)\.loc == (\w+)"), "all_in<TileType::{1}, {0}>()",
     "expects {0} to be in the {1} address space", "loc"),
    (re.compile(r"(\w+)\.dtype == (\w+)\.dtype"), "same_dtype<{1}, {0}>()",
     "expects {0} to have the element type of {1}", "dtype"),
    (re.compile(r"(\w+)\.blayout == (ROW)"), "all_row_major<{0}>()",
     "expects {0} to use row-major layout", "blayout"),
)  # fmt: skip


def _rules(row: Row, known: frozenset[str]) -> Iterator[tuple[str, str, str, str]]:
    """(condition, code, message, fix) of the rules that types decide; like ones are taken together."""
    shared: dict[tuple[int, Rule, str], list[str]] = {}
    own: list[tuple[str, str, str, str]] = []
    columns: dict[Rule, set[str]] = {}
    for rule in row.rules:
        columns.setdefault(rule.replace(on=()), set()).update(rule.on or ISAS)
    for bare, on in columns.items():
        rule = bare.replace(on=tuple(isa for isa in ISAS if isa in on))
        if not names_in(rule.expr) <= known:
            continue
        for k, (form, *_) in enumerate(_SHARED):
            match = form.fullmatch(rule.expr)
            if match and not rule.msg:
                shared.setdefault((k, rule.replace(expr=""), match[2]), []).append(match[1])
                break
        else:
            try:
                condition = _holds(rule, known)
            except _Open:
                continue
            fact = next((f for f in _FIX if f in facts_in(rule.expr)), "")
            own.append((condition, _code(rule), rule.msg or explain(rule.expr, {})[0], _FIX.get(fact, "")))
    for (k, rule, other), names in shared.items():
        form, condition, message, fact = _SHARED[k]
        wanted = _LOCATIONS.get(other, other)
        text = condition.format(", ".join(names), wanted)
        shown = message.format(_and(names), other.lower() if fact == "loc" else other)
        code = rule.code or ("PTO-E0301" if fact == "dtype" else "PTO-E0501")
        try:
            yield _guarded(text, rule, known), code, shown, _FIX[fact]
        except _Open:
            continue
    yield from dict.fromkeys(own)


# ---- the intrinsic ----


def _call(row: Row) -> tuple[list[str], str]:
    """Operands in the order of the C++ call, and the enumeration of its algorithm if it has one."""
    name = row.name.upper()
    calls = re.findall(rf"\b{name}(?:<(\w+)::\$\w+>)?\(([^)]*)\)", row.cpp)
    algorithm = next((a for a, _ in calls if a), "")
    return [a.strip().lstrip("$") for a in calls[0][1].split(",")], algorithm


def call_order(row: Row) -> list[str]:
    """Operands and attributes in the order of the C++ call."""
    return _call(row)[0]


def _intrinsic(row: Row) -> Iterator[str]:
    order, algorithm = _call(row)
    kinds = {o.name: o for o in row.operands}
    tiles, scalars = _inputs(row)
    types: list[str] = []
    params: list[str] = []
    first = tiles[0].name
    scratch = "tmp" in kinds
    for name in order:
        if kinds[name].role == "tmp":
            assert name == order[-1], f"{row.name}: tmp is last"
        elif _is_tile(kinds[name]):
            types.append(name)
            params.append(f"{_type(name)}& {name}")
        else:
            params.append(f"typename {_type(first)}::DType {name}")
    precision = f"auto Precision = {algorithm}::DEFAULT, " if algorithm else ""
    yield f"/// {row.doc}"
    yield f"template <{precision}{', '.join(f'class {_type(n)}' for n in types)}, class... Rest>"
    yield f"PTO_INST RecordEvent {row.name.upper()}({', '.join(params)}, Rest&... rest) {{"
    yield f"  detail::check_{row.name}<{', '.join(_type(n) for n in types)}>();"
    yield f"  detail::finish_call<{int(scratch)}>(rest...);"
    sources = ", ".join(o.name for o in tiles)
    if row.start:
        yield f'  detail::check_reduction<{_along(row)}>("{row.name.upper()}", dst, {sources});'
        yield f"  detail::{_fold(row)}(dst, {sources});"
    elif row.over:
        yield f"  detail::{_WALKS[row.over]}<detail::{row.name}>(dst, {sources});"
    elif scalars:
        assert row.skip in ("", f"{scalars[0].name} == 0"), f"{row.name}: {row.skip} has no C++"
        skips = ", true" if row.skip else ""
        yield f"  detail::compute_scalar<detail::{row.name}{skips}>(dst, {scalars[0].name}, {sources});"
    else:
        yield f"  detail::compute<detail::{row.name}>(dst, {sources});"
    yield "  return {};"
    yield "}"


#: Walks over what expressions range over, in ops/expand.hpp and ops/part.hpp.
_WALKS = {"columns": "expand_rows", "row": "expand_cols", "parts": "combine_parts"}
#: Folds of ops/reduce.hpp that are faster than any step: of the expression and its start.
_FOLDS = {
    ("acc + src", "0"): "fold<{along}, false, {wide}>",
    ("acc * src", "1"): "fold<{along}, true, {wide}>",
    ("where(acc < src, src, acc)", "first"): "extreme_value<{along}, true>",
    ("where(src > acc, src, acc)", "first"): "extreme_value<{along}, true>",
    ("where(src < acc, src, acc)", "first"): "extreme_value<{along}, false>",
}


def _along(row: Row) -> str:
    return "detail::Along::row" if row.over == "fold columns" else "detail::Along::col"


def _fold(row: Row) -> str:
    first = row.start == "first"
    start = 0 if first else int(row.start)
    any_step = f"fold_by<detail::{row.name}, {{along}}, {str(first).lower()}, {start}, {{wide}}>"
    text = _FOLDS.get((row.expr, row.start), any_step)
    return text.format(along=_along(row), wide=str(row.steps == "f32").lower())


def _type(name: str) -> str:
    return name[0].upper() + name[1:]


# ---- the file ----

_HEAD = """\
// Generated by `python -m pto.codegen.intrinsics` from the instruction table: do not edit.
//
// Meanings, legality and entry points of the regular element-wise instructions; core/numbers.hpp has the
// operators, ops/elementwise.hpp what is not regular.
#pragma once

#include "pto/core/numbers.hpp"
"""

_FAMILIES = ("elementwise-tile-tile", "tile-scalar-and-immediate")
#: Further rows whose operands are checked.
_CHECKED = ("tpartadd", "tpartmul", "tpartmax", "tpartmin", "tpartargmax", "tpartargmin")


def _regular(over: bool) -> list[Row]:
    """Tile rows with an expression: over their elements, or over something else."""
    return [
        r for r in all_rows()
        if r.set == "tile" and r.expr and bool(r.over) == over and r.name not in BY_HAND - {"tdivs"}
    ]  # fmt: skip


def generate() -> str:
    """The text of the header, not yet laid out."""
    out: list[str] = [_HEAD, "namespace pto {", "namespace detail {", ""]
    for row in (*_regular(over=False), *_regular(over=True)):
        out += [*_meaning(row), ""]
    for row in all_rows():
        if row.family in _FAMILIES or row.name in _CHECKED:
            out += [*checks(row), ""]
    out += ["}  // namespace detail", ""]
    for row in _regular(over=False):
        if row.name not in BY_HAND:
            out += [*_intrinsic(row), ""]
    out.append("}  // namespace pto")
    return "\n".join(out) + "\n"


_REGULAR_HEAD = """\
// Generated by `python -m pto.codegen.intrinsics` from the instruction table: do not edit.
//
// Instructions that compute an expression over rows, columns or parts of tiles.
#pragma once

#include "pto/ops/expand.hpp"
#include "pto/ops/part.hpp"
#include "pto/ops/reduce.hpp"

namespace pto {
"""


def generate_regular() -> str:
    """The text of ops/regular.hpp."""
    lines = [line for row in _regular(over=True) for line in (*_intrinsic(row), "")]
    return "\n".join([_REGULAR_HEAD, *lines, "}  // namespace pto"]) + "\n"


def formatted(text: str) -> str:
    """The text as clang-format lays it out, or as it is where there is none."""
    import shutil
    import subprocess

    tool = shutil.which("clang-format") or str(Path(sys.executable).with_name("clang-format"))
    if not Path(tool).exists():
        return text
    name = str(TARGET)
    return subprocess.run(
        [tool, f"--assume-filename={name}"], input=text, capture_output=True, text=True, check=True
    ).stdout


def write(target: Path, text: str, module: str, check: bool) -> int:
    """Write a generated header, or say whether the one that is there is up to date."""
    text = formatted(text)
    if check:
        fresh = target.is_file() and "".join(target.read_text().split()) == "".join(text.split())
        print(f"{target.name} is {'up to date' if fresh else f'stale: python -m {module}'}")
        return 0 if fresh else 1
    target.write_text(text)
    return 0


def main(args: list[str]) -> int:
    check = "--check" in args
    made = {TARGET: generate(), TARGET.with_name("regular.hpp"): generate_regular()}
    return max(write(target, text, "pto.codegen.intrinsics", check) for target, text in made.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
