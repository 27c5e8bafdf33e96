"""tcvt of every code: all legal pairs, roundings, saturations and columns on the reference engine.

Sources of up to 16 bits show all their codes, wider ones the codes of `conversions.table`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.sampling import EVERY

from pto.isa.dtypes import DTYPES, ROUND_MODES
from pto.witness.plan import make_attribute, plan

from .conversions import PAIRS, ROW, SATURATION, converted, expected, saturates, table, values
from .rows import Array, Case, assert_codes

SOURCES = list(dict.fromkeys(src for _, src, _ in PAIRS))


# -- the oracle --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("src", SOURCES)
def test_the_oracle_is_the_scalar_definition(src: str) -> None:
    """All of 4 and 8 bits; of wider types a code out of many, another one for each pair and mode."""
    every = table(src).ravel()
    every = every[: 1 << min(16, DTYPES[src].bits)]
    known: dict[Any, int] = {}
    for k, (column, _, dst) in enumerate(p for p in PAIRS if p[1] == src):
        for m, mode in enumerate(ROUND_MODES):
            for asked in SATURATION:
                saturate = saturates(column, src, dst, asked)
                want = expected(column, src, dst, mode, asked).ravel()
                rounds = mode if DTYPES[src].is_float and (DTYPES[dst].is_int or src == dst) else ""
                step = 1 if every.size <= 256 else every.size // (24 if EVERY else 8)
                for at in range((31 * k + 7 * m * bool(rounds)) % step, every.size, step):
                    key = (dst, at, rounds, saturate, column == "cpu")
                    if key not in known:
                        known[key] = converted(src, dst, int(every[at]), mode, saturate, column)
                    assert want[at] == known[key], (column, dst, mode, asked, hex(every[at]))


def test_tables_hold_the_ends_of_ranges_and_ties() -> None:
    x = set(values("f32").ravel().tolist())
    assert {
        0.5,
        -2.5,
        127.5,
        -128.5,
        255.5,
        32767.5,
        65519.0 + 1,
        2.0**31,
        2.0**63,
        2.0**64,
        464.0,
        61440.0,
        40960.0,
    } <= x
    assert {math.inf, -math.inf, 2.0**-149, float(np.float32(3.4028234663852886e38))} <= x
    assert np.isnan(values("f32")).sum() > 8
    wide = values("i64").ravel().tolist()
    assert {2**63 - 1, -(2**63), 2**24 + 1, 2**53 + 1, 2**31, -(2**31) - 1, 0, -1} <= set(wide)


# -- the reference engine ----------------------------------------------------------------------------------


def case_of(column: str, src: str, dst: str, rows: int) -> Case:
    """A tile of whole lines to convert."""
    made = plan(ROW, column, {"src": src, "dst": dst, "": src})
    operands = {
        n: tuple(t.replace(rows=rows, cols=256, v_row=rows, v_col=256) for t in types)  # type: ignore[union-attr]
        for n, types in made.operands.items()
    }
    return Case(made.replace(operands=operands))


def run(case: Case, mode: str, asked: str | None) -> Array:
    given = {"rmode": mode} if asked is None else {"rmode": mode, "sat_mode": asked}
    case.op.attrs = {k: make_attribute(ROW.attr_index[k], v) for k, v in given.items()}
    case.run()
    return case.get("dst")


@pytest.mark.parametrize("src", SOURCES)
def test_every_code(src: str) -> None:
    codes = table(src)
    for column, _, dst in (p for p in PAIRS if p[1] == src):
        case = case_of(column, src, dst, codes.shape[0])
        case.set("src", codes)
        for mode in ROUND_MODES:
            for asked in SATURATION:
                want = expected(column, src, dst, mode, asked)
                assert_codes(dst, run(case, mode, asked), want, (column, src, dst, mode, asked))


def test_unsigned_bytes_saturate_to_nibbles() -> None:
    """The codes of s4 are kept in an array of bytes: that numbers come in one, too, does not make them codes."""
    case = case_of("cpu", "u8", "s4", 1)
    case.set("src", np.arange(256).reshape(1, 256))
    assert run(case, "RINT", "ON")[0].tolist() == [min(k, 7) for k in range(256)]
    assert run(case, "RINT", "OFF")[0].tolist() == [k % 16 for k in range(256)]
