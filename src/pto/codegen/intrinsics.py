"""The texts of ops/meanings.hpp and ops/regular.hpp: tile instructions in C++, from their rows.

A tile row with an expression becomes a struct with the expression in C++, over the operators of
core/numbers.hpp, and the intrinsic, an overload for each order of its operands, which calls the checks of the
row (`codegen/legality.py`). For other rows, `codegen/calls.py` generates only the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..isa import meaning
from ..isa import rows as all_rows
from ..isa.dtypes import DTYPES
from ..isa.profiles import ISAS
from ..isa.row import Form, Operand, Row
from . import calls
from .calls import along, type_of
from .checks import Call, Check, call_of, checks_of
from .generated import filled, head

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
    """Return the expression of a row in C++."""
    return meaning.fold(
        meaning.read(text), str, str, lambda operation, *args: f"{_SPELLED[operation]}({', '.join(args)})"
    )


def _inputs(row: Row, form: Form) -> tuple[list[Operand], list[Operand]]:
    """Return the tiles that an overload reads, and its scalars."""
    tiles = [o for role in ("in", "inout") for o in row.operands if o.role == role and _is_tile(o, form)]
    return tiles, [o for o in row.operands if o.role == "in" and not _is_tile(o, form)]


def _is_tile(operand: Operand, form: Form) -> bool:
    return "tile" in operand.kinds and operand.name not in form.scalars


def _overloads(row: Row) -> Iterator[tuple[Check, Form, Call]]:
    """Yield the checks of a row, with a form of each."""
    for check in checks_of(row):
        form = check.forms[0]
        call = call_of(form)
        assert call is not None
        yield check, form, call


def _struct(check: Check) -> str:
    """Return the name of the struct with the expression for an overload."""
    return check.name.removeprefix("check_")


# ---- meanings of rows ----


def _meaning(row: Row, check: Check, form: Form) -> Iterator[str]:
    """Yield the struct of an overload of a regular row; it takes the scalars first."""
    tiles, scalars = _inputs(row, form)
    names = [o.name for o in (*scalars, *tiles)]
    params = ", ".join(f"wide_t<T> {name}" for name in (["acc", *names] if row.start else names))
    yield f"/// {row.expr}"
    yield f"struct {_struct(check)} {{"
    yield f"  static constexpr bool converts = {str(row.store == 'saturate').lower()};"
    yield "  template <class T>"
    yield f"  static PTO_INLINE auto of({params}) {{"
    assert set(row.expr_on) <= set(ISAS), f"{row.name}: an expression by element type has no C++"
    others = {text for isa, text in row.expr_on.items() if isa != "cpu"}
    if others:
        assert len(others) == 1 and "cpu" not in row.expr_on, f"{row.name}: one expression per column"
        yield f"    PTO_IF_TARGET (kIsa != Isa::cpu) return {expression(others.pop())};"
        yield f"    else return {expression(row.expr)};"
    else:
        yield f"    return {expression(row.expr)};"
    yield "  }"
    yield "};"


# ---- the intrinsic ----


def _intrinsic(row: Row, check: Check, form: Form, call: Call) -> Iterator[str]:
    kinds = {o.name: o for o in row.operands}
    tiles, scalars = _inputs(row, form)
    algorithms = [re.match(r"(\w+)::\$", c.types) for f in check.forms if (c := call_of(f)) is not None]
    algorithm = next((found[1] for found in algorithms if found), "")
    first = tiles[0].name
    params: list[str] = []
    for name in call.operands:
        if kinds[name].role == "tmp":
            assert name == call.operands[-1], f"{row.name}: tmp is last"
        elif name in check.classes:
            params.append(f"{type_of(name)}& {name}")
        else:
            params.append(f"{_scalar_type(row, kinds[name], type_of(first))} {name}")
    precision = f"auto Precision = {algorithm}::DEFAULT, " if algorithm else ""
    types = "".join(f"class {type_of(n)}, " for n in check.classes)
    yield f"/// {row.doc}"
    yield from filled("template <", f"{precision}{types}class... Rest>", "          ")
    yield from filled(
        f"PTO_INST RecordEvent {call.name}(",
        f"{', '.join(params)}, Rest&... rest) {{",
        " " * len(call.name) + " " * 22,
    )
    if not check.is_empty:
        precision = "Precision" if algorithm else ""
        yield check.called(precision for _ in check.attrs)
    yield f"  detail::finish_call<{int('tmp' in kinds)}>(rest...);"
    yield from calls.traced(row, [n for n in call.operands if kinds[n].role != "tmp"])
    sources = ", ".join(o.name for o in tiles)
    struct = f"detail::{_struct(check)}"
    if row.start:
        yield f"  detail::{_fold(row)}(dst, {sources});"
    elif row.over:
        yield f"  detail::{_WALKS[row.over]}<{struct}>(dst, {sources});"
    elif scalars:
        assert row.skip in ("", f"{scalars[0].name} == 0"), f"{row.name}: {row.skip} has no C++"
        skips = ", true" if row.skip else ""
        yield f"  detail::compute_scalar<{struct}{skips}>(dst, {scalars[0].name}, {sources});"
    else:
        yield f"  detail::compute<{struct}>(dst, {sources});"
    yield "  return {};"
    yield "}"


def _scalar_type(row: Row, scalar: Operand, tile: str) -> str:
    """Return the type of a scalar: an element. The conversion from a float is the same on all machines."""
    casts = scalar.kind == "float" and any(
        not DTYPES[t].is_float for found in row.dtypes.values() for t in found
    )
    return f"detail::Cast<typename {tile}::DType>" if casts else f"typename {tile}::DType"


#: Walks over the ranges of expressions, in ops/expand.hpp and ops/part.hpp.
_WALKS = {"columns": "expand_rows", "row": "expand_cols", "parts": "combine_parts"}
#: Folds of ops/reduce.hpp that are faster than single steps, by expression and start.
_FOLDS = {
    ("acc + src", "0"): "fold<{along}, false, {wide}>",
    ("acc * src", "1"): "fold<{along}, true, {wide}>",
    ("where(acc < src, src, acc)", "first"): "extreme_value<{along}, true>",
    ("where(src > acc, src, acc)", "first"): "extreme_value<{along}, true>",
    ("where(src < acc, src, acc)", "first"): "extreme_value<{along}, false>",
}


def _fold(row: Row) -> str:
    first = row.start == "first"
    start = 0 if first else int(row.start)
    any_step = f"fold_by<detail::{row.name}, {{along}}, {str(first).lower()}, {start}, {{wide}}>"
    text = _FOLDS.get((row.expr, row.start), any_step)
    return text.format(along=along(row), wide=str(row.steps == "f32").lower())


# ---- the files ----


def _regular(over: bool) -> Iterator[tuple[Row, Check, Form, Call]]:
    """Yield overloads of tile rows with an expression: over elements, or over other ranges."""
    for row in all_rows():
        if row.set == "tile" and row.expr and bool(row.over) == over:
            for check, form, call in _overloads(row):
                if not form.written and not form.by_hand:
                    yield row, check, form, call


def generate() -> str:
    """Return the text of ops/meanings.hpp."""
    about = "Meanings of the regular tile instructions, and entry points of those that go element by element;"
    out = [
        head(
            about,
            "core/numbers.hpp has the operators, ops/elementwise.hpp the others.",
        ),
        '#include "pto/ops/legality.hpp"\n',
        "namespace pto {",
        "namespace detail {\n",
    ]
    for row, check, form, _ in (*_regular(over=False), *_regular(over=True)):
        out += [*_meaning(row, check, form), ""]
    out += ["}  // namespace detail", ""]
    for found in _regular(over=False):
        out += [*_intrinsic(*found), ""]
    return "\n".join([*out, "}  // namespace pto"]) + "\n"


def generate_regular() -> str:
    """Return the text of ops/regular.hpp."""
    about = "Instructions that compute an expression over rows, columns or parts of tiles."
    includes = "".join(f'#include "pto/ops/{name}.hpp"\n' for name in ("expand", "part", "reduce"))
    out = [head(about), includes, "namespace pto {\n"]
    for found in _regular(over=True):
        out += [*_intrinsic(*found), ""]
    return "\n".join([*out, "}  // namespace pto"]) + "\n"
