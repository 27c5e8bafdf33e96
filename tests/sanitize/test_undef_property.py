"""Undefined lanes of random element-wise programs: those that a brute-force oracle finds, no more and no fewer.

The oracle knows nothing of replays: for every instruction it tries all combinations of several values in place
of undefined lanes and calls a result undefined where any two of them differ.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import EVERY

import pto
from pto.engine.sanitize import undef

Array = np.ndarray[Any, Any]

ROWS, COLS = 4, 16
TILES = ("a", "b", "c")
DTYPES = {"f32": np.float32, "i32": np.int32}
#: What an undefined lane may hold.
VALUES: dict[str, tuple[float, ...]] = {
    "f32": (0.0, 1.0, -1.0, 3e38, -3e38, float("nan")),
    "i32": (0, 1, -1, 2**31 - 1, -(2**31), 0x5A5A5A5A, -0x5A5A5A5B),
}
UNARY = {"tneg": np.negative, "tabs": np.abs, "trelu": lambda x: np.maximum(x, 0), "tmov": lambda x: x}
BINARY: dict[str, Any] = {
    "tadd": np.add, "tsub": np.subtract, "tmul": np.multiply, "tmax": np.fmax, "tmin": np.fmin,
    "tand": np.bitwise_and, "tor": np.bitwise_or, "txor": np.bitwise_xor,
}  # fmt: skip
SCALAR: dict[str, Any] = {"tadds": np.add, "tmuls": np.multiply, "tmaxs": np.fmax, "tmins": np.fmin}
#: Instructions that may not write what they read.
APART = ("tmov", "tand", "tor", "txor")
OPERATIONS = {
    "f32": [*UNARY, *SCALAR, "tadd", "tsub", "tmul", "tmax", "tmin"],
    "i32": ["tmov", *SCALAR, *BINARY],
}


@dataclass(frozen=True)
class Step:
    """`load`: a window (row, col, rows, cols) of tile `to`; else an instruction."""

    name: str
    to: str
    a: str = "a"
    b: str = "a"
    scalar: int = 0
    window: tuple[int, int, int, int] = (0, 0, ROWS, COLS)


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[Step]]:
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    tile = st.sampled_from(TILES)
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 8))):
        if draw(st.integers(0, 2)) == 0:
            row, rows = draw(st.integers(0, ROWS - 1)), draw(st.integers(1, ROWS))
            col, cols = draw(st.sampled_from([0, 8])), draw(st.sampled_from([8, 16]))
            window = (row, col, min(rows, ROWS - row), min(cols, COLS - col))
            steps.append(Step("load", draw(tile), window=window))
        else:
            name = draw(st.sampled_from(OPERATIONS[dtype]))
            to = draw(tile)
            sources = [t for t in TILES if t != to] if name in APART else TILES
            a, b = draw(st.sampled_from(sources)), draw(st.sampled_from(sources))
            steps.append(Step(name, to, a, b, draw(st.integers(-2, 2))))
    return dtype, steps


# -- the program -------------------------------------------------------------------------------------------


def text(dtype: str, steps: list[Step]) -> str:
    tile = f"!pto.tile_buf<vec, {ROWS}x{COLS}x{dtype}>"
    whole, view = (
        f"!pto.tensor_view<{ROWS}x{COLS}x{dtype}>",
        f"!pto.partition_tensor_view<{ROWS}x{COLS}x{dtype}>",
    )
    out = [
        'module attributes {pto.target_arch = "a5"} {',
        f"func.func @k(%x: {whole}, {', '.join(f'%y{t}: {view}' for t in TILES)}) {{",
        *[f"%c{n} = arith.constant {n} : index" for n in range(17)],
        *[f"%{t} = pto.alloc_tile : {tile}" for t in TILES],
    ]
    for n, s in enumerate(steps):
        if s.name == "load":
            r, c, rows, cols = s.window
            part, cut = (
                f"!pto.tile_buf<vec, {rows}x{cols}x{dtype}>",
                f"!pto.partition_tensor_view<{rows}x{cols}x{dtype}>",
            )
            out += [
                f"%t{n} = pto.subview %{s.to}[%c{r}, %c{c}] sizes [{rows}, {cols}] : {tile} -> {part}",
                f"%p{n} = pto.partition_view %x, offsets = [%c{r}, %c{c}], sizes = [%c{rows}, %c{cols}] : {whole} -> {cut}",
                f"pto.tload ins(%p{n} : {cut}) outs(%t{n} : {part})",
            ]
        elif s.name in UNARY:
            out.append(f"pto.{s.name} ins(%{s.a} : {tile}) outs(%{s.to} : {tile})")
        elif s.name in SCALAR:
            number = f"{s.scalar}.0" if dtype == "f32" else str(s.scalar)
            out.append(f"%s{n} = arith.constant {number} : {dtype}")
            out.append(f"pto.{s.name} ins(%{s.a}, %s{n} : {tile}, {dtype}) outs(%{s.to} : {tile})")
        else:
            out.append(f"pto.{s.name} ins(%{s.a}, %{s.b} : {tile}, {tile}) outs(%{s.to} : {tile})")
    out += [f"pto.tstore ins(%{t} : {tile}) outs(%y{t} : {view})" for t in TILES]
    return "\n".join([*out, "return", "}", "}"]) + "\n"


def data(dtype: str) -> Array:
    return np.random.default_rng(11).integers(-5, 6, (ROWS, COLS)).astype(DTYPES[dtype])


# -- the oracle --------------------------------------------------------------------------------------------


def oracle(dtype: str, steps: list[Step]) -> dict[str, Array]:
    """Return the undefined lanes of each tile at the end."""
    x = data(dtype)
    values = {t: np.zeros((ROWS, COLS), DTYPES[dtype]) for t in TILES}
    taints = {t: np.ones((ROWS, COLS), bool) for t in TILES}
    for s in steps:
        if s.name == "load":
            r, c, rows, cols = s.window
            values[s.to][r : r + rows, c : c + cols] = x[r : r + rows, c : c + cols]
            taints[s.to][r : r + rows, c : c + cols] = False
            continue
        sources = [s.a] if s.name in UNARY or s.name in SCALAR else [s.a, s.b]
        names = sorted(set(sources))

        def compute(given: dict[str, Array], s: Step = s, sources: list[str] = sources) -> Array:
            if s.name in UNARY:
                return UNARY[s.name](given[s.a])
            if s.name in SCALAR:
                return SCALAR[s.name](given[s.a], DTYPES[dtype](s.scalar))
            return BINARY[s.name](given[sources[0]], given[sources[1]])

        with np.errstate(all="ignore"):
            result = compute(values)
            taint = np.zeros((ROWS, COLS), bool)
            for choice in product(VALUES[dtype], repeat=len(names)):
                changed = {
                    n: np.where(taints[n], DTYPES[dtype](v), values[n])
                    for n, v in zip(names, choice, strict=True)
                }
                taint |= compute(changed).view(np.uint32) != result.view(np.uint32)
        values[s.to], taints[s.to] = np.array(result), taint
    return taints


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, Array]:
    """Undefined elements of every store to global memory, as the sanitizer finds them."""
    found: dict[str, Array] = {}
    real = undef.dependence

    def spy(event: Any, loads: Any, stores: Any) -> Any:
        made = real(event, loads, stores)
        for (place, _, _), taint in zip(stores, made.taints, strict=True):
            if place.buffer.space == "gm":
                found[place.buffer.name] = taint
        return made

    monkeypatch.setattr(undef, "dependence", spy)
    return found


def check(dtype: str, steps: list[Step], stored: dict[str, Array]) -> None:
    stored.clear()
    kernel = pto.kernel(pto.parse(text(dtype, steps)), engine="reference")
    arrays = [np.zeros((ROWS, COLS), DTYPES[dtype]) for _ in TILES]
    result = kernel.run(data(dtype), *arrays, sanitize="undef", out=io.StringIO())
    wanted = oracle(dtype, steps)
    for t in TILES:
        found = stored.get(f"%y{t}", np.zeros((ROWS, COLS), bool))
        assert np.array_equal(found, wanted[t]), (t, text(dtype, steps))
    assert sorted(d.message.split(":")[1].split()[-1] for d in result.diagnostics) == [
        f"%y{t}" for t in TILES if wanted[t].any()
    ]


# -- the property ------------------------------------------------------------------------------------------


def test_random_programs(stored: dict[str, Array]) -> None:
    @settings(max_examples=150 if EVERY else 40)
    @given(programs())
    def run(program: tuple[str, list[Step]]) -> None:
        check(*program, stored)

    run()


def load(tile: str, *window: int) -> Step:
    return Step("load", tile, window=window or (0, 0, ROWS, COLS))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "steps"),
    [
        ("i32", [Step("txor", "b", "a", "a")]),  # of itself: zero, whatever it was
        ("i32", [Step("txor", "c", "a", "b")]),
        ("i32", [Step("tsub", "c", "a", "a")]),
        ("i32", [Step("tsub", "c", "a", "b")]),
        ("f32", [Step("tsub", "c", "a", "a")]),  # of itself, but it may be infinite or no number
        ("i32", [Step("tmuls", "b", "a", scalar=0)]),
        ("f32", [Step("tmuls", "b", "a", scalar=0)]),
        ("i32", [load("a"), Step("tmuls", "a", "a", scalar=0), Step("tand", "c", "a", "b")]),
        ("f32", [load("a", 0, 0, 2, 8), Step("tadd", "b", "a", "a"), load("a", 1, 8, 3, 8), Step("tmax", "c", "a", "b")]),
    ],
)  # fmt: skip
def test_corners(dtype: str, steps: list[Step], stored: dict[str, Array]) -> None:
    check(dtype, steps, stored)
