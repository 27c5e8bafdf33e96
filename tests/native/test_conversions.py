"""TCVT of the C++ headers on every code, against the oracle that checks the reference engine, too.

The result of a conversion from floats to integers depends on the destination alone once the source has been
read as f32, and each takes a dozen loops to compile. So only f32 becomes every integer type, the numbers of
the other float types as f32 included, and each of those becomes one or two. The ordinary run takes one of
four of the other pairs for each destination, and does not optimise. `PTO_TEST_MATRIX=1` compiles all pairs as
the engine compiles kernels.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest
from tests.sampling import EVERY, some

from pto.engine import elements
from pto.engine.cpp import build
from pto.engine.cpp.compiler import arch_flags
from pto.isa.dtypes import DTYPES, ROUND_MODES
from pto.isa.profiles import profile

from ..engine import numpy_twins
from ..engine.conversions import PAIRS, SATURATION, expected, saturates, table, values
from ..engine.rows import Array, assert_codes
from .instructions import COMPILER, ELEMENTS

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

#: Of conversions from smaller floats to integers, those that are always compiled.
SHOWN = {
    ("f16", "i8"), ("f16", "u16"), ("bf16", "i32"), ("f8e4m3", "s4"), ("f8e5m2", "u8"), ("hif8", "i16"),
    ("f4e2m1", "s4"), ("f4e1m2", "i8"),
}  # fmt: skip
#: Units of about the same size: a column, whether the source is a float type, whether the destination is one.
UNITS = [
    ("cpu", False, False), ("cpu", False, True), ("cpu", True, False), ("cpu", True, True), ("a2a3", None, None), ("a5", None, None),
]  # fmt: skip

_SOURCE = """\
#include <pto/ops/convert.hpp>
using namespace pto;
template <class T>
using Line = Tile<TileType::Vec, T, 1, 256>;
template <class D, class S>
static void lines(char* to, char* from, int count, int mode, int saturation) {{
  for (int k = 0; k < count; ++k, to += Line<D>::GetSizeInBytes(), from += Line<S>::GetSizeInBytes()) {{
    Line<D> dst;
    Line<S> src;
    detail::bind(dst, to);
    detail::bind(src, from);
    const auto rounding = static_cast<RoundMode>(mode);
    if (saturation < 0) {{
      TCVT(dst, src, rounding);
    }} else {{
      TCVT(dst, src, rounding, static_cast<SaturationMode>(saturation));
    }}
  }}
}}
template <class D, class S>
constexpr int clamps() {{
  return detail::saturates<D, S>() | detail::saturates<D, S>(SaturationMode::ON) << 1 |
         detail::saturates<D, S>(SaturationMode::OFF) << 2;
}}
static void (*const all[])(char*, char*, int, int, int) = {{{lines}}};
extern "C" [[gnu::visibility("default")]] void convert(int pair, char* to, char* from, int count, int mode, int saturation) {{
  all[pair](to, from, count, mode, saturation);
}}
extern "C" [[gnu::visibility("default")]] const int decisions[] = {{{decisions}}};
"""


def shown(column: str, src: str, dst: str) -> bool:
    """Return True if a pair is compiled in an ordinary run."""
    if EVERY:
        return True
    if DTYPES[src].is_float and DTYPES[dst].is_int:
        return column == "cpu" and (src == "f32" or (src, dst) in SHOWN)
    return column == "cpu" or DTYPES[dst].is_float


class Unit:
    """Conversions of one column, compiled as the engine compiles kernels."""

    def __init__(self, column: str, floats: bool | None, to_floats: bool | None) -> None:
        self.column = column
        self.legal = [
            p[1:]
            for p in PAIRS
            if p[0] == column
            and floats in (None, DTYPES[p[1]].is_float)
            and to_floats in (None, DTYPES[p[2]].is_float)
        ]
        pairs = [p for p in self.legal if shown(column, *p)]
        through_f32 = [p for p in pairs if p[0] == "f32" and DTYPES[p[1]].is_int]
        self.pairs = [*through_f32, *some((p for p in pairs if p not in through_f32), 4, by=lambda p: p[1])]

        def each(name: str, pairs: list[Any], call: str = "") -> str:
            return ", ".join(f"{name}<{ELEMENTS[d]}, {ELEMENTS[s]}>{call}" for s, d in pairs)

        text = _SOURCE.format(lines=each("lines", self.pairs), decisions=each("clamps", self.legal, "()"))
        built = build.cached(
            [build.TranslationUnit("conversions.cpp", text)], [], arch_flags(profile(column))
        )
        assert built.ok, built.output[:4000]
        self.library = ctypes.CDLL(built.path)

    def convert(self, pair: tuple[str, str], codes: Array, mode: str, asked: str | None) -> Array:
        src, dst = pair
        given = numpy_twins.pack4(codes) if DTYPES[src].bits == 4 else codes
        made = np.zeros(codes.size * DTYPES[dst].bits // 8, np.uint8)
        saturation = -1 if asked is None else ("ON", "OFF").index(asked)
        to, origin = (ctypes.c_void_p(a.ctypes.data) for a in (made, given))
        k, rounding = self.pairs.index(pair), ROUND_MODES.index(mode)
        self.library.convert(k, to, origin, codes.shape[0], rounding, saturation)
        four = DTYPES[dst].bits == 4
        found = numpy_twins.unpack4(made, codes.size) if four else made.view(elements.code_dtype(dst))
        return found.reshape(codes.shape)

    def check(self, pair: tuple[str, str], codes: Array, src: str) -> None:
        """Convert the table of `src`, given as codes of the source of the pair."""
        for mode, asked in itertools.product(ROUND_MODES, SATURATION):
            want = expected(self.column, src, pair[1], mode, asked)
            got = self.convert(pair, codes, mode, asked)
            assert_codes(pair[1], got, want, (src, *pair, mode, asked, self.column))


@pytest.mark.parametrize(("column", "floats", "to_floats"), UNITS)
def test_every_code(column: str, floats: bool | None, to_floats: bool | None) -> None:
    unit = Unit(column, floats, to_floats)
    for src, dst in unit.pairs:
        unit.check((src, dst), table(src), src)
    decisions = (ctypes.c_int * len(unit.legal)).in_dll(unit.library, "decisions")
    for (src, dst), found in zip(unit.legal, decisions, strict=True):  # by default, asked to, asked not to
        want = [saturates(column, src, dst, asked) for asked in SATURATION]
        assert [bool(found >> k & 1) for k in range(3)] == want, (src, dst)
    if column == "cpu" and floats and not to_floats:  # the numbers of smaller floats by way of f32
        for src, dst in some((p for p in unit.legal if p not in unit.pairs), 2, by=lambda p: p[0]):
            unit.check(("f32", dst), values(src).astype(np.float32).view(np.uint32), src)
