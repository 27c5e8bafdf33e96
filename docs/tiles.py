"""Drawings of tile instructions: small tiles go in, and the reference engine computes what comes out.

DRAWN            mnemonic -> its case
drawing(name)    the drawing of an instruction, as one block of HTML
program(name)    the kernel of a case as PTO text, which has the instruction
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from strips import KEPT, ZERO, Cell, Grid, grids

import pto.language as pl
from pto import isa

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """An expression over arrays, and the shape of its result. Colors follow rows (`by` "row"), columns, or
    elements ("item") if results are elements of operands."""

    text: str
    arrays: Mapping[str, Array]
    out: tuple[int, int]
    dtype: Any = None
    by: str = "row"
    target: str = "a3"
    plain: str = "i"  # the operand without colors


def _numbers(rows: int, columns: int, start: int = 1, dtype: Any = np.float32) -> Array:
    return np.arange(start, start + rows * columns).reshape(rows, columns).astype(dtype)


def _mixed(rows: int, columns: int, dtype: Any = np.float32, seed: int = 3) -> Array:
    return np.random.default_rng(seed).permutation(rows * columns).reshape(rows, columns).astype(dtype) + 1


def _tens(rows: int, columns: int, dtype: Any = np.float32) -> Array:
    return (10 * _numbers(rows, columns)).astype(dtype)


_A, _B, _SIGNED = _numbers(3, 8), _tens(3, 8), _numbers(3, 8, -11)
_QUARTERS = (_SIGNED / 4).astype(np.float32)
_SCALE = np.full((3, 1), 4, np.float32)
_FAR = _numbers(3, 8, 101)
_M, _N = _mixed(3, 8), _mixed(3, 8, seed=5)
_COLUMN, _ROW = _tens(3, 1) * 10, _tens(1, 8) * 10
_ORDER = np.array([[7, 6, 5, 4, 3, 2, 1, 0], [0, 2, 4, 6, 1, 3, 5, 7], [0, 0, 1, 1, 2, 2, 3, 3]], np.int32)

DRAWN: dict[str, Case] = {
    # element by element
    "tadd": Case("pl.add(a, b)", {"a": _A, "b": _B}, (3, 8)),
    "tmax": Case("pl.maximum(a, b)", {"a": _M, "b": _N}, (3, 8)),
    "tsel": Case("pl.sel(pl.tile.cmp(a, b, 2), a, b)", {"a": _M, "b": _N}, (3, 8)),
    "tcmp": Case("pl.cast(pl.tile.cmp(a, b, 2), pl.INT32)", {"a": _M, "b": _N}, (3, 8), np.int32),
    "trelu": Case("pl.relu(a)", {"a": _SIGNED}, (3, 8)),
    "tcvt": Case("pl.cast(a, pl.INT32, mode='rint')", {"a": _QUARTERS}, (3, 8), np.int32),
    # with a number
    "tadds": Case("pl.adds(a, 100.0)", {"a": _A}, (3, 8)),
    "tmins": Case("pl.minimums(a, 9.0)", {"a": _M}, (3, 8)),
    "texpands": Case("pl.expands(a, 7.0)", {"a": _A}, (3, 8)),
    "taxpy": Case("pl.axpy(a, b, 2.0)", {"a": _A, "b": _B}, (3, 8)),
    # reductions and expansions
    "trowsum": Case("pl.row_sum(a)", {"a": _A}, (3, 1)),
    "trowmax": Case("pl.row_max(a)", {"a": _M}, (3, 1)),
    "trowargmax": Case("pl.row_argmax(a)", {"a": _M}, (3, 1), np.int32),
    "tcolsum": Case("pl.col_sum(a)", {"a": _A}, (1, 8), by="column"),
    "tcolmax": Case("pl.col_max(a)", {"a": _M}, (1, 8), by="column"),
    "tcolargmax": Case("pl.col_argmax(a)", {"a": _M}, (1, 8), np.int32, by="column"),
    "trowexpand": Case("pl.row_expand(a, b)", {"a": _A, "b": _COLUMN}, (3, 8)),
    "tcolexpand": Case("pl.col_expand(a, b)", {"a": _A, "b": _ROW}, (3, 8), by="column"),
    "tpairreducesum": Case("pl.pair_reduce_sum(a)", {"a": _A}, (3, 8), target="a5"),
    "trowexpandadd": Case("pl.row_expand_add(a, b)", {"a": _A, "b": _COLUMN}, (3, 8)),
    "tcolexpandadd": Case("pl.col_expand_add(a, b)", {"a": _A, "b": _ROW}, (3, 8), by="column"),
    # transfers
    "tload": Case("pl.load(a_, [1, 2], [3, 8], valid_shape=[2, 5])", {"a": _numbers(4, 10)}, (3, 8)),
    "tstore": Case("a", {"a": _numbers(2, 5)}, (4, 10)),
    # products
    "tmatmul": Case("pl.matmul(a, b)", {"a": _numbers(3, 4), "b": _numbers(4, 5)}, (3, 5), plain="b"),
    "tmatmul.acc": Case(
        "pl.matmul_acc(pl.matmul(a, b), a, b)", {"a": _numbers(3, 4), "b": _numbers(4, 5)}, (3, 5), plain="b"
    ),
    # layout
    "ttrans": Case("pl.transpose(a, 0, 1)", {"a": _A}, (8, 3), by="item"),
    "tconcat": Case("pl.concat(a, b)", {"a": _A, "b": _FAR}, (3, 16), by="item"),
    "treshape": Case("pl.reshape(a, [2, 8])", {"a": _numbers(4, 4)}, (2, 8), by="item"),
    "tfillpad": Case(
        "pl.fillpad(pl.set_validshape(a, 2, 5), pl.PadValue.zero)", {"a": _A}, (3, 8), by="item"
    ),
    "tinterleave": Case("pl.interleave(a, b)[0]", {"a": _A, "b": _FAR}, (3, 8), by="item", target="a5"),
    "tdeinterleave": Case("pl.deinterleave(a, b)[0]", {"a": _A, "b": _FAR}, (3, 8), by="item", target="a5"),
    # by index, sorted
    "tgather": Case("pl.gather(a, dim=-1, index=i)", {"a": _A, "i": _ORDER}, (3, 8), by="item"),
    "tscatter": Case(
        "pl.scatter(a, dim=-1, index=i, src=b)", {"a": _A, "i": _ORDER, "b": _FAR}, (3, 8), by="item"
    ),
    "tci": Case("pl.arange(5, [1, 8], dtype=pl.INT32)", {}, (1, 8), np.int32, by="column"),
    "ttri": Case("pl.tile.tri(0, [4, 8], dtype=pl.FP32)", {}, (4, 8)),
    "tpartadd": Case("pl.part_add(a, pl.set_validshape(b, 2, 5))", {"a": _A, "b": _B}, (3, 8)),
    "tquant": Case("pl.quant(a, b)", {"a": 2 * _QUARTERS, "b": _SCALE}, (3, 8), np.int8),
    # windows and valid regions
    "subview": Case("pl.adds(pl.slice(a, [2, 8], [1, 0]), 0.0)", {"a": _A}, (2, 8), by="item"),
    "partition_view": Case("pl.load(a_, [1, 2], [2, 8])", {"a": _numbers(4, 10)}, (2, 8), by="item"),
}  # fmt: skip


@cache
def _kernel(name: str) -> Any:
    """Return the kernel of a case: loads, the expression, a store."""
    case = DRAWN[name]
    params = [*(f"{n}_: pl.Tensor" for n in case.arrays), "out: pl.Out[pl.Tensor]"]
    loads = [
        f"        {n} = pl.load({n}_, [0, 0], {list(a.shape)})"
        for n, a in case.arrays.items()
        if f"{n}_" not in case.text
    ]
    text = "\n".join(
        (
            "@pl.jit",
            f"def kernel({', '.join(params)}):",
            "    with pl.at(level=pl.Level.CORE_GROUP):",
            *loads,
            f"        out = pl.store({case.text}, [0, 0], out)",
            "    return out",
            "",
        )
    )
    file = f"<drawing of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    made: dict[str, Any] = {"pl": pl}
    exec(compile(text, file, "exec"), made)
    return made["kernel"]


def shown(name: str) -> str:
    """Return the expression of a case for readers."""
    return DRAWN[name].text.replace("a_", "a")


def _out(case: Case, fill: int) -> Array:
    return np.full(case.out, fill, case.dtype or np.float32)


def program(name: str) -> str:
    case = DRAWN[name]
    config = pl.RunConfig(platform=f"{case.target}sim") if case.target != "a3" else None
    return _kernel(name).lower(*case.arrays.values(), _out(case, 0), config=config).as_pto()


@cache
def result(name: str) -> tuple[Array, Array]:
    """Return the result of a case, and where it was stored: two runs into different contents tell."""
    case = DRAWN[name]
    runs = []
    for fill in (0, 77):
        out = _out(case, fill)
        _kernel(name).run(
            *(a.copy() for a in case.arrays.values()), out, target=case.target, engine="reference"
        )
        runs.append(out)
    return runs[0], runs[0] == runs[1]


def _tones(case: Case) -> dict[float, int]:
    """Return the tone of each element of the operands."""
    found: dict[float, int] = {}
    for n, array in enumerate(case.arrays.values()):
        for row, values in enumerate(array):
            for value in values:
                found.setdefault(float(value), row + n * len(array))
    return found


def _grid(label: str, array: Array, case: Case, stored: Array | None = None) -> Grid:
    tones = _tones(case)

    def cell(row: int, column: int) -> Cell:
        value = float(array[row, column])
        if stored is not None and not stored[row, column]:
            return KEPT
        if label.startswith(f"{case.plain}:"):
            return Cell(f"{value:g}")
        tone = {"row": row, "column": column, "item": tones.get(value, row)}[case.by]
        return Cell(f"{value:g}", tone) if value else ZERO

    return Grid(label, [[cell(r, c) for c in range(array.shape[1])] for r in range(array.shape[0])])


def drawing(name: str) -> str:
    case = DRAWN[name]
    out, stored = result(name)
    parts = [_grid(f"{n}: {_type(a)}", a, case) for n, a in case.arrays.items()]
    parts.append(_grid(f"result: {_type(out)}", out, case, stored))
    return grids(name.replace(".", "-"), f"pto.{name}, as {shown(name)} computes it", parts)


def _type(array: Array) -> str:
    return f"{array.shape[0]}x{array.shape[1]}x{array.dtype.kind}{8 * array.dtype.itemsize}"


def families() -> dict[str, list[str]]:
    """Return the drawn instructions by family."""
    found: dict[str, list[str]] = {}
    for name in DRAWN:
        row = isa.row(name)
        assert row is not None, name
        found.setdefault(row.family, []).append(name)
    return found
