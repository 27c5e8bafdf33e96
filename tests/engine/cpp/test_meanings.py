"""Every regular row and every legal type of it, on all combinations of special values: C++ against the reference.

One program evaluates the generated meaning of each row, so that it compiles in seconds; tiles and calls are the
matter of test_rows. It also evaluates each operation by itself, the way `codegen.intrinsics` spells it.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.made import compiled

from pto.codegen import intrinsics
from pto.codegen.checks import Check
from pto.engine import elements
from pto.ir.types import ScalarType, TileBufType
from pto.isa import encoding, meaning
from pto.isa.dtypes import DTYPES
from pto.isa.row import Form, Row
from pto.witness.plan import Plan

from ...native.instructions import COMPILER, DEFINES, ELEMENTS, FLAGS, INCLUDE
from ..operations import TYPES, operands, probe, truth, unlike, values
from ..rows import Array, Case, column_plans, special_codes
from .rows_bench import reference, unequal

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

_HEAD = """\
#include <utility>
#include "pto/ops/meanings.hpp"
using namespace pto;
using namespace pto::detail;
template <class T> wide_t<T> value(const void* from, size_t i) {
  return static_cast<wide_t<T>>(value_of<compute_t<T>>(static_cast<const T*>(from)[i]));
}
/// T is the type that computes, D that of the results, S those of the operands.
template <class M, class T, class D, class... S>
void each(const void* const* in, void* out, size_t n) {
  [&]<size_t... K>(std::index_sequence<K...>) {
    for (size_t i = 0; i < n; ++i)
      static_cast<D*>(out)[i] = element_of<D>(evaluate<M, T, D>(value<S>(in[K], i)...));
  }(std::index_sequence_for<S...>{});
}
"""


class Entry:
    """An overload of a row with the types of its operands, as a function over arrays."""

    def __init__(self, plan: Plan, check: Check, form: Form) -> None:
        row = plan.row
        self.struct = intrinsics._struct(check)
        tiles, scalars = intrinsics._inputs(row, form)
        types = {n: t[0] for n, t in plan.operands.items() if t}
        self.plan, self.row = plan, row
        self.first = str(types[tiles[0].name].dtype)  # type: ignore[attr-defined]
        self.result = str(types["dst"].dtype)  # type: ignore[attr-defined]
        self.scalars = [o.name for o in scalars]
        self.tiles = {o.name: str(types[o.name].dtype) for o in tiles}  # type: ignore[attr-defined]

    @property
    def key(self) -> tuple[str, ...]:
        return self.struct, self.result, *self.tiles.values()

    @property
    def call(self) -> str:
        sources = [*[self.first] * len(self.scalars), *self.tiles.values()]
        types = ", ".join(ELEMENTS[t] for t in (self.first, self.result, *sources))
        return f"each<detail::{self.struct}, {types}>"


def regular(column: str) -> list[Entry]:
    """Every row that both engines derive and every combination of its types; elsewhere than on the simulator,
    those that compute something else there."""
    found: dict[tuple[str, ...], Entry] = {}
    for row, check, form in overloads(column):
        for plan in column_plans(row.name, column):
            if _is_of(plan, form):
                entry = Entry(plan, check, form)
                found.setdefault(entry.key, entry)
    return list(found.values())


def _is_of(plan: Plan, form: Form) -> bool:
    """Return True if the operands of a plan are the tiles and scalars of an overload."""
    tiles, scalars = intrinsics._inputs(plan.row, form)
    types = {n: t[0] for n, t in plan.operands.items() if t}
    return all(isinstance(types[o.name], TileBufType) for o in tiles) and all(
        isinstance(types[o.name], ScalarType) for o in scalars
    )


def overloads(column: str) -> list[tuple[Row, Check, Form]]:
    """Return those with a generated meaning of their own; test_rows has the folds."""
    return [
        (row, check, form)
        for over in (False, True)
        for row, check, form, _ in intrinsics._regular(over)
        if not row.start and column in row.isas and (column == "cpu" or row.expr_on)
    ]


def program(entries: list[Entry], found: list[Spelled]) -> str:
    calls = [e.call for e in entries]
    calls += [
        f"each<detail::op_{k}, {', '.join([ELEMENTS[o.dtype]] * (len(operands(o.name)) + 2))}>"
        for k, o in enumerate(found)
    ]
    table = ",\n".join(calls)
    return "\n".join((
        _HEAD, "namespace pto::detail {", *(o.struct(k) for k, o in enumerate(found)), "}",
        f"static void (*const all[])(const void* const*, void*, size_t) = {{{table}}};",
        'extern "C" void run(int k, const void* const* in, void* out, size_t n) { all[k](in, out, n); }', "",
    ))  # fmt: skip


class Spelled(NamedTuple):
    """An operation in one type, spelled as `planted` is."""

    name: str
    planted: str
    dtype: str

    def struct(self, number: int) -> str:
        spelled = {**intrinsics._SPELLED, self.name: intrinsics._SPELLED[self.planted]}
        text = meaning.fold(probe(self.name), str, str, lambda o, *args: f"{spelled[o]}({', '.join(args)})")
        params = ", ".join(f"wide_t<T> {letter}" for letter in operands(self.name))
        head = (
            f"struct op_{number} {{ static constexpr bool converts = false; template <class T> static auto of"
        )
        return f"{head}({params}) {{ return {text}; }} }};"


@cache
def operations() -> list[Spelled]:
    """Every operation that C++ spells, in every type that it has; and spelled as the next one of its arity."""
    found: list[Spelled] = []
    for name in intrinsics._SPELLED:
        types = [t for t in TYPES if truth(name, t) is not None]
        found += [Spelled(name, name, t) for t in types]
        found += [Spelled(name, other, t) for t in types if (other := _neighbour(name, t))]
    return found


def _neighbour(name: str, dtype: str) -> str:
    """Return another operation that could replace one; sqrt, which is not rounded yet, only by itself."""
    alone = probe(name) == meaning.Apply(name, tuple(map(meaning.Name, operands(name))))
    listed = list(intrinsics._SPELLED)
    at = listed.index(name)
    for other in (*listed[at + 1 :], *listed[:at]):
        of_it = _NUMBERS if dtype in ("f16", "bf16") else [n for n in listed if truth(n, dtype) is not None]
        same = meaning.OPERATIONS[other].arity == meaning.OPERATIONS[name].arity
        if same and other in of_it and (alone or other != "sqrt"):
            return other
    return ""


#: Operations of any float.
_NUMBERS = ("neg", "relu", "exp", "round", "double")


class Program:
    def __init__(self, column: str, folder: Path) -> None:
        self.entries = regular(column)
        path = folder / f"{column}.cpp"
        path.write_text(program(self.entries, operations() if column == "cpu" else []))
        made = path.with_suffix(".so")
        assert COMPILER is not None
        done = compiled([COMPILER, *FLAGS, *DEFINES[column], f"-I{INCLUDE}"], path, made)
        assert done.returncode == 0, done.stderr[:4000]
        self.run = ctypes.CDLL(str(made)).run

    def results(self, number: int, dtype: str, given: list[Array]) -> Array:
        """Codes that a function makes of codes."""
        held = [np.ascontiguousarray(o) for o in given]
        out = np.zeros(held[0].size, elements.code_dtype(dtype))
        pointers = (ctypes.c_void_p * len(held))(*(h.ctypes.data for h in held))
        self.run(number, pointers, ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(out.size))
        return out


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Program]:
    return cache(lambda column: Program(column, tmp_path_factory.mktemp("meanings")))


@cache
def product(dtypes: tuple[str, ...]) -> list[Array]:
    """All combinations of the special values of some types, as codes."""
    lists = [dict.fromkeys(special_codes(d)) for d in dtypes]
    columns = zip(*itertools.product(*lists), strict=True)
    return [
        np.array(c, np.uint64).astype(elements.code_dtype(d)) for c, d in zip(columns, dtypes, strict=True)
    ]


def cases(entry: Entry) -> Iterator[tuple[dict[str, float | int], list[Array]]]:
    """Scalars, and the codes of the operands as C++ takes them."""
    given = product(tuple(entry.tiles.values()))
    if not entry.scalars:
        yield {}, given
        return
    for code in dict.fromkeys(special_codes(entry.first)):
        scalar = encoding.decode(DTYPES[entry.first], code)
        value = float(scalar) if DTYPES[entry.first].is_float else int(scalar)
        column = np.full(given[0].size, code, np.uint64).astype(elements.code_dtype(entry.first))
        yield dict.fromkeys(entry.scalars, value), [*[column] * len(entry.scalars), *given]


@pytest.mark.parametrize("column", ["cpu", "a5"])
def test_every_row_and_type(column: str, programs: Callable[[str], Program]) -> None:
    made = programs(column)
    assert {e.struct for e in made.entries} == {
        intrinsics._struct(check) for _, check, _ in overloads(column)
    }
    failures: list[str] = []
    for number, entry in enumerate(made.entries):
        for scalars, given in cases(entry):
            if entry.row.skip and not all(scalars.values()):
                continue  # nothing is written
            got = made.results(number, entry.result, given)
            want = expected(entry, scalars, given[len(scalars) :])
            differ = unequal(entry.result, got, want)
            if differ.any():
                at = int(np.argmax(differ))
                shown = [hex(int(o[at])) for o in given]
                failures.append(
                    f"{entry.call} {shown}: {int(got[at]):#x}, reference {int(want[at]):#x}; {differ.sum()}"
                )
                break
    assert not failures, "\n".join(failures[:20])


def expected(entry: Entry, scalars: dict[str, float | int], given: list[Array]) -> Array:
    """Return the result of the executor of the row on one row of elements."""
    size = given[0].size
    types = {
        n: tuple(
            t.replace(rows=1, cols=size, v_row=1, v_col=size, blayout="row_major", slayout="none_box")
            if isinstance(t, TileBufType)
            else t
            for t in ts
        )
        for n, ts in entry.plan.operands.items()
    }
    case = Case(entry.plan.replace(operands=types))
    case.args.update(scalars)
    for name, codes in zip(entry.tiles, given, strict=True):
        case.set(name, codes[None])
    refused = reference(case)
    assert not refused, (entry.call, refused)
    return case.get("dst")[0]


def test_every_operation(programs: Callable[[str], Program]) -> None:
    """Each as it is spelled; and spelled as another one it shows, in one of its types."""
    made = programs("cpu")
    wrong: list[Spelled] = []
    shown: dict[tuple[str, str], bool] = {}
    for number, one in enumerate(operations(), len(made.entries)):
        given = [v.view(elements.code_dtype(one.dtype)) for v in values(one.name, one.dtype)]
        differs = unlike(one.name, one.dtype, made.results(number, one.dtype, given))
        if one.planted != one.name:
            shown[one.name, one.planted] = shown.get((one.name, one.planted), False) or differs
        elif differs:
            wrong.append(one)
    assert wrong == []
    assert len(shown) > 20 and [pair for pair, differs in shown.items() if not differs] == []
