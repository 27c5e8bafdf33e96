"""Every operator against NumPy in float64: at tensor and at tile level, whole and ragged, on every target that has
it, and the same bits on two engines. Operators share kernels."""

from __future__ import annotations

import ast
import importlib.util
import math
import pydoc
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from tests.each import each
from tests.language.batch import compile_together
from tests.sampling import some

import pto.language as pl
from pto.language import catalogue
from pto.language.__main__ import main as listing_main
from pto.language.operators import OPERATORS

M, N = 8, 24
TARGETS = ("a3", "a5", "cpu")
_rng = np.random.default_rng(7)


def _floats(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return _rng.uniform(-3, 3, shape).astype(dtype)


def _ints(shape: tuple[int, ...], dtype: Any, low: int = -50, high: int = 50) -> np.ndarray:
    return _rng.integers(low, high, shape).astype(dtype)


#: Arrays that expressions name. Capital: positive.
ARRAYS: dict[str, np.ndarray] = {
    "f": _floats((M, N)), "g": _floats((M, N)), "F": np.abs(_floats((M, N))) + 0.5,
    "h": _floats((M, N), np.float16), "k": _floats((M, N), np.float16), "H": np.abs(_floats((M, N), np.float16)) + 1,
    "b": _floats((M, N)).astype(bfloat16),
    "i": _ints((M, N), np.int32), "j": _ints((M, N), np.int32), "I": _ints((M, N), np.int32, 1, 9),
    "s": _ints((M, N), np.int16), "t": _ints((M, N), np.int16), "S": _ints((M, N), np.int16, 1, 9),
    "c": _ints((M, 32), np.int8), "u": _ints((M, 32), np.uint8, 0, 200), "l": _ints((M, N), np.int64),
    "col": _floats((M, 1)), "Col": np.abs(_floats((M, 1))) + 0.5, "hcol": _floats((M, 1), np.float16),
    "icol": _ints((M, 1), np.int32),
    "row": _floats((1, N)), "Row": np.abs(_floats((1, N))) + 0.5, "one": _floats((1, 1)),
}  # fmt: skip
_DTYPES = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


class Case:
    """`text` is an expression over `ARRAYS`; `want` its value, of arrays of float64 (or integers)."""

    def __init__(self, text: str, want: Any, *, dtype: Any = None, on: str = "a3 a5 cpu", rtol: float = 0.0,
                 level: str = "tensor tile", ragged: bool = True) -> None:  # fmt: skip
        self.name = self.text = text
        self.want, self.dtype, self.rtol = want, dtype, rtol
        self.on, self.level, self.ragged = on.split(), level.split(), ragged

    def has(self, target: str, level: str, ragged: bool, *_: Any) -> bool:
        return target in self.on and level in self.level and (self.ragged or not ragged)

    @property
    def uses(self) -> list[str]:
        names = [n.id for n in ast.walk(ast.parse(self.text)) if isinstance(n, ast.Name)]
        return list(dict.fromkeys(n for n in names if n in ARRAYS))


def _module(path: Path, text: str) -> Any:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _valid(a: np.ndarray, ragged: bool) -> tuple[int, ...]:
    return tuple(n if n == 1 or not ragged else n - 3 for n in a.shape)


def _expected(case: Case, ragged: bool) -> np.ndarray:
    """Compute the valid parts by NumPy, in the type of the first array or the one that is named."""
    arrays = {n: ARRAYS[n][tuple(slice(0, v) for v in _valid(ARRAYS[n], ragged))] for n in case.uses}
    wide = {n: a.astype(np.float64) if a.dtype.kind not in "iu" else a for n, a in arrays.items()}
    out = case.want(**wide) if callable(case.want) else eval(case.want, {"np": np}, wide)
    out = np.asarray(out)
    return out.astype(case.dtype or arrays[case.uses[0]].dtype)


def _kernel(cases: list[Case], level: str, ragged: bool, dynamic: bool) -> tuple[str, list[str]]:
    """Return the text of a kernel that stores the result of every case, and the arrays it takes. With
    `dynamic`, their extents are known at run time only."""
    used = list(dict.fromkeys(n for c in cases for n in c.uses))
    lines = ["import pto.language as pl", "", "", "@pl.jit"]
    params = [f"{n}_: pl.Tensor" for n in used] + [f"o{i}: pl.Out[pl.Tensor]" for i in range(len(cases))]
    lines += [f"def kernel({', '.join(params)}):", "    with pl.at(level=pl.Level.CORE_GROUP):"]
    if dynamic:
        used.append("less")
        lines[4] = lines[4].replace("o0:", "less_: pl.Tensor, o0:")
        lines.append("        less = pl.cast(pl.read(less_, [0, 0]), pl.INDEX)")
    for n in used:
        if n == "less":
            continue
        shape, valid = list(ARRAYS[n].shape), str(list(_valid(ARRAYS[n], ragged)))
        if dynamic:
            valid = "[" + ", ".join(str(d) if d == 1 else f"{d} - less" for d in shape) + "]"
        zeros = [0] * len(shape)
        what = f"pl.load({n}_, {zeros}, {shape}, valid_shape={valid})"
        if level == "tensor":
            what = f"pl.slice({n}_, {shape}, {zeros}, valid_shape={valid})"
        lines.append(f"        {n} = {what}" if ragged or level == "tile" else f"        {n} = {n}_")
    for i, case in enumerate(cases):
        lines.append(f"        o{i} = pl.assemble(o{i}, {case.text}, [0, 0])")
    return "\n".join(lines) + "\n", used


class Kernel:
    """Cases that are one kernel."""

    def __init__(
        self,
        path: Path,
        cases: list[Case],
        target: str,
        level: str,
        ragged: bool,
        dynamic: bool,
        engines: str,
    ) -> None:
        text, used = _kernel(cases, level, ragged, dynamic)
        self.name, self.cases, self.target, self.engines = (
            f"{level} on {target}",
            cases,
            target,
            engines.split(),
        )
        self.function, self.given = _module(path, text).kernel, [ARRAYS[n] for n in used]
        self.want = [_expected(c, ragged) for c in cases]

    def results(self) -> list[np.ndarray]:
        return [np.zeros(w.shape, w.dtype) for w in self.want]

    def check(self) -> None:
        found = {engine: self.results() for engine in self.engines}
        for engine, results in found.items():
            self.function.run(*self.given, *results, target=self.target, engine=engine)
        each(
            self._agree,
            zip(self.cases, self.want, *(found[e] for e in (self.engines[0], self.engines[-1])), strict=True),
        )

    def _agree(self, case: Case, w: np.ndarray, one: np.ndarray, two: np.ndarray) -> None:
        assert one.tobytes() == two.tobytes(), "engines differ"
        tol = case.rtol or _DTYPES.get(w.dtype.name, 0)
        a, e = (v.astype(np.float64) if v.dtype.kind not in "iu" else v for v in (one, w))
        np.testing.assert_allclose(a, e, rtol=tol, atol=tol)


ARITHMETIC = [
    Case("pl.add(f, g)", "f + g"), Case("pl.sub(f, g)", "f - g"), Case("pl.mul(f, g)", "f * g"),
    Case("pl.div(f, F)", "f / F"), Case("pl.maximum(f, g)", "np.maximum(f, g)"), Case("pl.minimum(f, g)", "np.minimum(f, g)"),
    Case("pl.add(h, k)", "h + k"), Case("pl.mul(i, j)", "i * j"), Case("pl.sub(s, t)", "s - t"),
    Case("pl.add(f, 1.5)", "f + 1.5"), Case("pl.add(2.0, f)", "f + 2"), Case("pl.sub(f, 1.5)", "f - 1.5"),
    Case("pl.mul(f, 3)", "f * 3"), Case("pl.div(f, 4.0)", "f / 4"), Case("pl.div(4.0, F)", "4 / F"),
    Case("pl.maximum(f, 0.5)", "np.maximum(f, 0.5)"), Case("pl.minimum(i, 3)", "np.minimum(i, 3)"),
    Case("pl.adds(i, 5)", "i + 5"), Case("pl.subs(f, 0.5)", "f - 0.5"), Case("pl.muls(h, 2.0)", "h * 2"),
    Case("pl.divs(f, 0.5)", "f / 0.5"), Case("pl.maximums(f, 0.0)", "np.maximum(f, 0)"), Case("pl.minimums(f, 0.0)", "np.minimum(f, 0)"),
    Case("pl.fmod(f, F)", "np.fmod(f, F)", rtol=1e-4), Case("pl.fmods(f, 1.5)", "np.fmod(f, 1.5)"), Case("pl.rem(f, F)", "f - np.floor(f / F) * F", rtol=1e-4),
    Case("pl.rems(f, 1.5)", "np.mod(f, 1.5)"),
    Case("pl.addc(f, g, F)", "f + g + F"), Case("pl.subc(f, g, F)", "f - g + F"),
    Case("pl.addsc(f, 2.0, g)", "f + 2 + g"), Case("pl.subsc(f, 2.0, g)", "f - 2 + g"),
    Case("pl.axpy(f, g, 2.0)", "f + 2 * g"), Case("pl.fusedmuladd(f, g, F)", "f * g + F"),
    Case("pl.fusedmuladdrelu(f, g, F)", "np.maximum(f * g + F, 0)"), Case("pl.muladddst(f, g, F)", "f + g * F"),
    Case("pl.pow(F, g)", "F ** g"), Case("pl.pows(F, 2.0)", "F ** 2"), Case("pl.subrelu(f, g)", "np.maximum(f - g, 0)"),
    Case("pl.addreluconv(f, g, pl.FP16)", "np.maximum(f + g, 0)", dtype=np.float16),
    Case("pl.subreluconv(f, g, pl.FP16)", "np.maximum(f - g, 0)", dtype=np.float16),
    Case("pl.adddeqrelu(i, j, 0.25)", "np.maximum((i + j) * 0.25, 0)", dtype=np.float16),
    Case("pl.sub(f, pl.const(2, pl.INT32))", "f - 2"),
    Case("pl.add(b, b)", "b + b"), Case("pl.add(f, h)", "f + h", level="tensor"), Case("pl.mul(s, i)", "s * i", dtype=np.int32, level="tensor"),
    Case("f + g * 2.0 - F / 2.0", "f + g * 2 - F / 2"),
]  # fmt: skip
UNARY = [
    Case("pl.abs(f)", "np.abs(f)"), Case("pl.neg(f)", "-f"), Case("-i", "-i"), Case("pl.exp(f)", "np.exp(f)"), Case("pl.exp(h)", "np.exp(h)"),
    Case("pl.log(F)", "np.log(F)"), Case("pl.log(F, high_precision=True)", "np.log(F)"), Case("pl.sqrt(F)", "np.sqrt(F)"),
    Case("pl.rsqrt(F)", "1 / np.sqrt(F)"), Case("pl.rsqrt(F, high_precision=True)", "1 / np.sqrt(F)"),
    Case("pl.recip(F)", "1 / F"), Case("pl.recip(F, high_precision=True)", "1 / F"),
    Case("pl.relu(f)", "np.maximum(f, 0)"), Case("pl.lrelu(f, 0.1)", "np.where(f > 0, f, 0.1 * f)"),
    Case("pl.prelu(f, g)", "np.where(f > 0, f, f * g)"), Case("pl.not_(s)", "~s"),
    Case("pl.sin(f)", "np.sin(f)", rtol=2e-6), Case("pl.cos(f)", "np.cos(f)", rtol=2e-6),
    Case("pl.sin(pl.mul(f, 1000.0))", "np.sin((f.astype(np.float32) * np.float32(1000)).astype(np.float64))", rtol=2e-5),
    Case("pl.cos(pl.mul(f, 1000.0))", "np.cos((f.astype(np.float32) * np.float32(1000)).astype(np.float64))", rtol=2e-5),
]  # fmt: skip
BITWISE = [
    Case("pl.and_(s, t)", "s & t"), Case("pl.or_(s, t)", "s | t"), Case("pl.xor(s, t)", "s ^ t"), Case("pl.xor(i, j)", "i ^ j"),
    Case("pl.shl(s, S)", "s << S"), Case("pl.shr(s, S)", "s >> S"), Case("pl.and_(s, 6)", "s & 6"), Case("pl.or_(i, 6)", "i | 6"),
    Case("pl.xor(i, 6)", "i ^ 6"), Case("pl.shl(i, 2)", "i << 2"), Case("pl.shr(i, 2)", "i >> 2"),
    Case("pl.ands(i, 3)", "i & 3"), Case("pl.ors(s, 3)", "s | 3"), Case("pl.xors(s, 3)", "s ^ 3"), Case("pl.shls(s, 1)", "s << 1"), Case("pl.shrs(s, 1)", "s >> 1"),
]  # fmt: skip
_MODES = ("==", "!=", "<", "<=", ">", ">=")
COMPARISONS = [
    *(Case(f"pl.cmp(f, g, {n})", f"f {op} g", level="tensor") for n, op in enumerate(_MODES)),
    *(Case(f"pl.cmp(i, j, {n})", f"i {op} j", level="tensor") for n, op in enumerate(_MODES)),
    *(Case(f"pl.cmp(i, 3, cmp_type={n})", f"i {op} 3", level="tensor") for n, op in enumerate(_MODES)),
    *(Case(f"pl.cmp(h, 0.5, {n})", f"h {op} 0.5", level="tensor") for n, op in enumerate(_MODES)),
    *(Case(f"pl.tile.sel(pl.tile.cmp(i, j, {n}), f, g)", f"np.where(i {op} j, f, g)", dtype=np.float32) for n, op in enumerate(_MODES)),
    Case("pl.cast(pl.tile.cmp(f, g, 2), pl.INT32)", "(f < g).astype(np.int32)", dtype=np.int32),
    Case("pl.cast(pl.cmp(f, pl.full([8, 24], dtype=pl.FP32, value=0.0), 4), pl.INT32)", "(f > 0).astype(np.int32)", dtype=np.int32, ragged=False, level="tensor"),
    Case("pl.sel(pl.tile.cmps(f, 0.0, cmp_type=4), g, F)", "np.where(f > 0, g, F)"),
    Case("pl.sel(pl.tile.cmps(h, 0.0, cmp_type=4), f, g)", "np.where(h > 0, f, g)", dtype=np.float32),
    Case("pl.sel(pl.tile.cmps(f, 0.0, cmp_type=4), s, t)", "np.where(f > 0, s, t)", dtype=np.int16),
    Case("pl.sels(pl.tile.cmps(f, 0.0, cmp_type='lt'), g, 7.0)", "np.where(f < 0, g, 7)"),
    Case("pl.tile.sels(u, f, 7.5)", "np.where(np.unpackbits(u.astype(np.uint8), axis=1, bitorder='little')[:, :24], f, 7.5)", dtype=np.float32, ragged=False, level="tile", on="a3 a5"),
    Case("pl.cmp(col, 0.0, 4)", "col > 0", level="tensor"),
    Case("pl.sel(pl.tile.cmp(col, Col, 2), col, Col)", "np.where(col < Col, col, Col)"),
]  # fmt: skip
REDUCTIONS = [
    *(Case(f"pl.row_{n}({x})", f"np.{n}({x}, axis=1, keepdims=True)", rtol=t) for n, t in (("sum", 1e-4), ("max", 0), ("min", 0)) for x in "fi"),
    *(Case(f"pl.col_{n}({x})", f"np.{n}({x}, axis=0, keepdims=True)", rtol=t) for n, t in (("sum", 1e-4), ("max", 0), ("min", 0)) for x in "fi"),
    Case("pl.row_sum(h)", "np.sum(h, axis=1, keepdims=True)", rtol=1e-2), Case("pl.col_max(h)", "np.max(h, axis=0, keepdims=True)"),
    Case("pl.row_prod(F)", "np.prod(F, axis=1, keepdims=True)", rtol=1e-4), Case("pl.col_prod(F)", "np.prod(F, axis=0, keepdims=True)", rtol=1e-4),
    Case("pl.col_sum(f, pl.create_tile([8, 24], pl.FP32))", "np.sum(f, axis=0, keepdims=True)", rtol=1e-4),
    *(Case(f"pl.row_{n}(F, pl.create_tile({shape}, pl.{t}))", f"np.{n}(F, axis=1, keepdims=True)", rtol=1e-4)
      for n in ("min", "prod") for shape, t in (([8, 24], "FP32"), ([12, 32], "FP32"), ([1, 16], "FP16"))),
    *(Case(f"pl.{axis}_arg{n}({x})", f"np.arg{n}({x}, axis={a}, keepdims=True)", dtype=np.int32)
      for axis, a in (("row", 1), ("col", 0)) for n in ("max", "min") for x in "fh"),
    Case("pl.col_max(col)", "np.max(col, axis=0, keepdims=True)"), Case("pl.row_sum(col)", "col"),
    Case("pl.row_argmax(col)", "col * 0", dtype=np.int32),
    Case("pl.pair_reduce_sum(f)", lambda f: np.concatenate([_pairs(f), np.zeros((len(f), f.shape[1] // 2))], 1)),
]  # fmt: skip


def _pairs(f: np.ndarray) -> np.ndarray:
    f = np.pad(f, ((0, 0), (0, f.shape[1] % 2)))
    return f[:, ::2] + f[:, 1::2]


_WORDS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "max": "np.maximum({}, {})",
    "min": "np.minimum({}, {})",
    "expdif": "np.exp({} - {})",
}
BROADCASTS = [
    *(Case(f"pl.row_expand_{n}(f, Col)", w.format("f", "Col")) for n, w in _WORDS.items()),
    *(Case(f"pl.col_expand_{n}(f, Row)", w.format("f", "Row")) for n, w in _WORDS.items()),
    Case("pl.row_expand(f, col)", "f * 0 + col"), Case("pl.col_expand(f, row)", "f * 0 + row"),
    Case("pl.row_expand_add(f, col, tmp=pl.create_tile([1, 8], pl.FP32))", "f + col"),
    Case("pl.row_expand_add(i, icol)", "i + icol"), Case("pl.row_expand_mul(h, hcol)", "h * hcol"),
    Case("pl.add(f, col)", "f + col"), Case("pl.sub(f, row)", "f - row"), Case("pl.expands(f, 2.5)", "f * 0 + 2.5"),
    Case("pl.reshape(pl.col_expand_sub(pl.row_expand_mul(pl.reshape(f, [1, 1, 8, 24]), col), row), [8, 24])", "f * col - row", ragged=False, level="tensor"),
    Case("pl.slice(pl.col_expand(f, pl.set_validshape(row, 1, 8)), [8, 8], [0, 0])", "(f * 0 + row)[:, :8]", ragged=False),
    Case("pl.add(f, pl.mul(pl.sub(pl.read(row, [0, 1]), 1.0), pl.div(pl.read(row, [0, 0]), 2.0)))", "f + (row[0, 1] - 1) * (row[0, 0] / 2)", ragged=False),
    Case("pl.add(col, Col)", "col + Col"), Case("pl.mul(col, 2.0)", "col * 2"), Case("pl.exp(col)", "np.exp(col)"), Case("pl.row_expand_mul(col, Col)", "col * Col"),
    Case("pl.div(pl.row_sum(f), Col)", "np.sum(f, 1, keepdims=True) / Col", rtol=1e-4), Case("pl.add(icol, 3)", "icol + 3"),
    Case("pl.rsqrt(pl.add(Col, 1e-5))", "1 / np.sqrt(Col + 1e-5)"), Case("pl.cast(col, pl.FP16)", "col", dtype=np.float16),
    Case("pl.mul(pl.row_expand(col, Col), 1.0)", "Col", dtype=np.float32), Case("pl.add(one, 1.0)", "one + 1"),
]  # fmt: skip
_erf = np.vectorize(math.erf)


def _gelu(x: Any, approximate: str = "none") -> Any:
    bend = (
        np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)) if approximate == "tanh" else _erf(x / np.sqrt(2))
    )
    return x * (1 + bend) / 2


#: What stands for `pl` where NumPy computes an expression of the language.
_PL = SimpleNamespace(where=np.where, tanh=np.tanh, erf=_erf, gelu=_gelu, maximum=np.maximum,
                      row_max=lambda x: x.max(1, keepdims=True))  # fmt: skip


def _same(text: str, **more: Any) -> Case:
    """An expression that NumPy computes as it is written."""
    return Case(text, lambda **arrays: eval(text, {"pl": _PL}, arrays), **more)


#: What a NumPy user writes.
LIKE_NUMPY = [
    *map(_same, (
        "col - f", "row - f", "col / F", "row / F", "f - col", "F / row", "one - f", "f / Row", "Col - one", "one / Row", "hcol - h", "hcol / H", "icol - i",
        "col - row", "row / Col", "col * row", "pl.maximum(row, col)", "pl.row_max(f) - f", "f / 3", "3 / F", "h / 3", "3.0 / H", "1 - h", "one - col * row",
        "f**2", "F**0.5", "f**5 - col**2", "h**2", "pl.where(f > 0, f, 0.0)", "pl.where(0.5 >= f, 0, f)", "pl.where(f > col, row, col)", "pl.where(col > row, f, -f)",
        "pl.where(h < 0.5, h, hcol)", "pl.where(s > 2, s, t)", "pl.where(i != j, i, 3)", "pl.where((f > -1) & (f <= row), f, one)", "pl.where((f > 1) | ~(g > col), f, g)",
        "pl.where((f > 0) ^ (g > 0), f, 1.0)", "f * (f > 0)", "(f == f) - g", "pl.tanh(f)", "pl.tanh(f * 0.001) * 1000", "pl.tanh(f * 10)", "pl.tanh(col) * f", "pl.tanh(h)",
        "pl.erf(f)", "pl.erf(f * 0.001) * 1000", "pl.erf(h)", "pl.gelu(f)", "pl.gelu(f, 'tanh')", "pl.gelu(h)", "pl.gelu(row, approximate='tanh') - f",
    )),
    *(_same(text, dtype=np.float32) for text in ("i / 2", "2 / I", "i / I", "i / icol", "s / 4", "pl.where(f > 0, 1.0, 0.0)", "pl.where(i, 1.0, 0.5)", "pl.where(icol > i, f, 1)")),
    *(_same(text, dtype=bfloat16) for text in ("pl.where(b > 0.5, b, 0.5)", "pl.where(b > b, 1.0, b)", "pl.tanh(b)", "pl.erf(b)", "pl.gelu(b)", "pl.gelu(b, 'tanh')")),
    _same("pl.where(s > icol, 1, 2)", dtype=np.int32, level="tensor"),
    *(Case(f"pl.cast(f > 0, pl.{t})", "(f > 0) * 1", dtype=d) for t, d in (("UINT8", np.uint8), ("INT8", np.int8), ("INT64", np.int64))),
]  # fmt: skip
CASTS = [
    Case("pl.cast(f, pl.FP16)", "f", dtype=np.float16), Case("pl.cast(h, pl.FP32)", "h", dtype=np.float32), Case("pl.cast(f, pl.BF16)", "f", dtype=bfloat16),
    Case("pl.cast(b, pl.FP32)", "b", dtype=np.float32), Case("pl.cast(b, pl.FP16)", "b", dtype=np.float16), Case("pl.cast(i, pl.FP32)", "i", dtype=np.float32),
    Case("pl.cast(i, pl.BF16)", "i", dtype=bfloat16), Case("pl.cast(i, pl.FP16)", "i", dtype=np.float16), Case("pl.cast(i, pl.INT16)", "i", dtype=np.int16),
    Case("pl.cast(f, pl.INT32)", "np.trunc(f + np.copysign(0.5, f))", dtype=np.int32), Case("pl.cast(f, pl.INT32, mode='floor')", "np.floor(f)", dtype=np.int32),
    Case("pl.cast(f, pl.INT32, mode='ceil')", "np.ceil(f)", dtype=np.int32), Case("pl.cast(f, pl.INT32, 'trunc')", "np.trunc(f)", dtype=np.int32),
    Case("pl.cast(f, pl.INT32, mode='rint')", "np.rint(f)", dtype=np.int32), Case("pl.cast(f, pl.INT32, 1)", "np.rint(f)", dtype=np.int32),
    Case("pl.cast(s, pl.FP32)", "s", dtype=np.float32), Case("pl.cast(s, pl.INT32)", "s", dtype=np.int32), Case("pl.cast(c, pl.FP32)", "c", dtype=np.float32),
    Case("pl.cast(c, pl.INT32)", "c", dtype=np.int32), Case("pl.cast(u, pl.FP16)", "u", dtype=np.float16), Case("pl.cast(u, pl.INT32)", "u", dtype=np.int32),
    Case("pl.cast(pl.cast(c, pl.FP32), pl.INT8, mode='rint')", "c", dtype=np.int8), Case("pl.cast(l, pl.INT32)", "l", dtype=np.int32), Case("pl.cast(i, pl.INT64)", "i", dtype=np.int64),
    Case("pl.cast(hcol, pl.FP32)", "hcol", dtype=np.float32), Case("pl.cast(icol, pl.FP32)", "icol", dtype=np.float32),
]  # fmt: skip


def _at(a: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.take_along_axis(a, p, axis=1)


def _put(a: np.ndarray, p: np.ndarray, v: np.ndarray) -> np.ndarray:
    a = a.copy()
    np.put_along_axis(a, p, v, axis=1)
    return a


def _put_columns(a: np.ndarray, v: np.ndarray, start: int, step: int) -> np.ndarray:
    a = a.copy()
    a[:, start::step] = v
    return a


ARRAYS["less"] = np.full((1, 8), 3, np.int32)
ARRAYS["p"] = np.argsort(_rng.random((M, N - 3)), axis=1)[:, :16].astype(np.int32)
ARRAYS["q"] = ARRAYS["p"].astype(np.int16)
ARRAYS["v"], ARRAYS["w"] = _floats((M, 16)), _floats((M, 16), np.float16)
ARRAYS["x6"], ARRAYS["h6"] = _floats((6, 10)), _floats((6, 10), np.float16)
ARRAYS["half"] = _floats((M, N // 2))
ARRAYS["up"] = _ints((5, N), np.int32, 0, M)
ARRAYS["flat"] = _ints((2, 16), np.int32, 0, M * N)
GATHERS = [
    Case("pl.gather(f, dim=-1, index=p)", lambda f, p: _at(f, p)), Case("pl.gather(h, -1, q)", lambda h, q: _at(h, q)),
    Case("pl.gather(i, dim=-1, index=p)", lambda i, p: _at(i, p), ragged=False),
    Case("pl.gather(s, dim=-1, index=p)", lambda s, p: _at(s, p), ragged=False),
    Case("pl.gather(f, -1, p[0:4, :])", lambda f, p: _at(f[:4], p[:4]), ragged=False, level="tensor"),
    Case("pl.gather(f, 0, up)", lambda f, up: np.take_along_axis(f, up, 0), ragged=False),
    Case("pl.gather(s, dim=-2, index=pl.cast(up, pl.INT16))", lambda s, up: np.take_along_axis(s, up, 0), ragged=False),
    Case("pl.tile.gather(f, flat)", lambda f, flat: f.reshape(-1)[flat], ragged=False),
    *(Case(f"pl.gather(f, mask_pattern=pl.tile.MaskPattern.{n})", f"f[:, {a}::{b}]")
      for n, a, b in (("P0101", 0, 2), ("P1010", 1, 2), ("P0001", 0, 4), ("P0010", 1, 4), ("P0100", 2, 4), ("P1000", 3, 4), ("P1111", 0, 1))),
    Case("pl.gather(h, mask_pattern=1)", "h[:, ::2]"),
    Case("pl.tile.gather_mask(f, 2, output_dtype=pl.INT32)", lambda f: f.astype(np.float32).view(np.int32)[:, 1::2], dtype=np.int32),
    Case("pl.scatter(f, dim=-1, index=p, src=v)", lambda f, p, v: _put(f, p, v), ragged=False),
    Case("pl.scatter(h, dim=-1, index=q, src=w)", lambda h, q, w: _put(h, q, w), ragged=False),
    Case("pl.scatter(half, mask_pattern=1, dst=f)", lambda half, f: _put_columns(f, half, 0, 2), ragged=False),
    Case("pl.tile.scatter_mask(f, half, 2)", lambda f, half: _put_columns(f, half, 1, 2), ragged=False),
]  # fmt: skip
SHAPES = [
    Case("pl.transpose(f, 0, 1)", "f.T"), Case("pl.transpose(h, 0, 1)", "h.T"), Case("pl.transpose(i, 0, 1)", "i.T"), Case("pl.transpose(s, 0, 1)", "s.T"),
    Case("pl.transpose(col, 0, 1)", "col.T"), Case("pl.transpose(row, 0, 1)", "row.T"),
    Case("pl.concat(f, g)", "np.concatenate([f, g], 1)", ragged=False), Case("pl.concat(h, k)", "np.concatenate([h, k], 1)", ragged=False),
    Case("pl.reshape(f, [4, 48])", "f.reshape(4, 48)", ragged=False), Case("pl.reshape(col, [1, 8])", "col.reshape(1, -1)"),
    Case("pl.reshape(row, [24, 1])", "row.reshape(-1, 1)"),
    *(Case(f"pl.reshape(pl.add({x}, {x}), {shape})", f"{x}.reshape({shape}) * 2", ragged=False)
      for x, shape in (("x6", [4, 15]), ("x6", [1, 60]), ("x6", [60, 1]), ("x6", [12, 5]), ("h6", [10, 6]))),
    Case("pl.reshape(pl.slice(f, [8, 6], [0, 8]), [4, 12])", "f[:, 8:14].reshape(4, 12)", ragged=False),
    Case("pl.reshape(col, [4, 2])", "col.reshape(4, 2)", ragged=False), Case("pl.reshape(row, [8, 3])", "row.reshape(8, 3)", ragged=False),
    Case("pl.full([8, 24], pl.FP32, 1.5) + f", "f + 1.5", ragged=False), Case("pl.add(s, pl.tile.full([8, 24], pl.INT16, -3))", "s - 3", ragged=False),
    Case("pl.fillpad(f)", lambda f: _padded(f, 0), level="tile"), Case("pl.fillpad(f, pl.PadValue.min)", lambda f: _padded(f, -np.inf), level="tile"),
    Case("pl.fillpad(i, pl.PadValue.max)", lambda i: _padded(i, 2**31 - 1), level="tile"), Case("pl.tile.fillpad_inplace(h, float('inf'))", lambda h: _padded(h, np.inf), level="tile"),
    Case("pl.fillpad_expand(f, [16, 40], pl.PadValue.zero)", lambda f: _padded(f, 0, (16, 40))),
    Case("pl.set_validshape(pl.add(f, 1.0), 3, 5)", "f[:3, :5] + 1"), Case("pl.slice(pl.add(f, 1.0), [4, 8], [2, 8])", "f[2:6, 8:16] + 1", ragged=False),
    Case("pl.add(pl.slice(f, [4, 5], [2, 8]), 1.0)", "f[2:6, 8:13] + 1", ragged=False), Case("pl.add(f[1:5, 8:16], g[2:6, 0:8])", "f[1:5, 8:16] + g[2:6, 0:8]", ragged=False, level="tensor"),
    Case("pl.exp(pl.slice(f, [8, 1], [0, 8]))", "np.exp(f[:, 8:9])", ragged=False), Case("pl.tile.extract(f, 2, 8, [4, 8])", "f[2:6, 8:16]", ragged=False),
    Case("pl.reinterpret_view(f, pl.INT32)", lambda f: f.astype(np.float32).view(np.int32), dtype=np.int32, ragged=False, level="tile"),
    Case("pl.reinterpret_view(i, pl.INT16)", lambda i: i.view(np.int16), dtype=np.int16, ragged=False, level="tile"),
    Case("pl.part_add(f, pl.set_validshape(g, 8, 10))", "f + np.pad(g[:, :10], ((0, 0), (0, 14)))", ragged=False, level="tile"),
    Case("pl.part_mul(f, pl.set_validshape(g, 8, 10))", "f * np.pad(g[:, :10], ((0, 0), (0, 14)), constant_values=1)", ragged=False, level="tile"),
    Case("pl.part_max(f, pl.set_validshape(g, 8, 10))", "np.maximum(f, np.pad(g[:, :10], ((0, 0), (0, 14)), constant_values=-9))", ragged=False, level="tile"),
    Case("pl.part_min(f, pl.set_validshape(g, 8, 10))", "np.minimum(f, np.pad(g[:, :10], ((0, 0), (0, 14)), constant_values=9))", ragged=False, level="tile"),
]  # fmt: skip


def _padded(a: np.ndarray, value: float, shape: tuple[int, int] = (M, N)) -> np.ndarray:
    out = np.full(shape, value, a.dtype)
    out[: a.shape[0], : a.shape[1]] = a
    return out


QUANT = [
    Case("pl.quant(f, Col)", "np.clip(np.rint(f * Col), -128, 127)", dtype=np.int8),
    Case("pl.quant(f, Col, Col)", "np.clip(np.rint(f * Col + Col), 0, 255)", dtype=np.uint8),
]
FAMILIES = {
    "quant": QUANT,
    "gathers": GATHERS, "shapes": SHAPES,
    "arithmetic": ARITHMETIC, "unary": UNARY, "bitwise": BITWISE, "comparisons": COMPARISONS, "reductions": REDUCTIONS,
    "broadcasts": BROADCASTS, "like numpy": LIKE_NUMPY, "casts": CASTS,
}  # fmt: skip


#: Target, level, whether arrays are ragged, whether only a run has their extents, engines. Whole arrays as tensors and
#: ragged ones as tiles meet at the same instructions; on the last two ways the engines need not be compared again.
WAYS = (
    *((t, "tensor", False, False, "reference native") for t in TARGETS),
    *((t, "tile", True, t == "a5", "reference native") for t in TARGETS),
    ("a3", "tensor", True, True, "native"), ("a3", "tile", False, False, "native"),
)  # fmt: skip


def test_operators(tmp_path: Path) -> None:
    """Every case in one way."""
    every = [(case, way) for family in FAMILIES.values() for case in family for way in WAYS if case.has(*way)]
    chosen = some(every, 8, by=lambda pair: pair[0].text)
    kernels: list[Kernel] = []
    for way in WAYS:
        cases = [case for case, its in chosen if its is way]
        for first in range(0, len(cases), 80):
            kernels.append(Kernel(tmp_path / f"kernel{len(kernels)}.py", cases[first : first + 80], *way))
    compile_together((k.function, [*k.given, *k.results()], k.target) for k in kernels)
    each(Kernel.check, kernels)


# ---- all of them ----

#: Operators of the cube, which have tests of their own.
ELSEWHERE = {
    "matmul", "matmul_acc", "matmul_bias", "move", "create_l1", "batch_matmul", "batch_matmul_acc", "gemv",
    "operation", "assume",
}  # fmt: skip


def test_every_operator_has_a_test() -> None:
    texts = "".join(p.read_text() for p in Path(__file__).parent.glob("test_*.py"))
    texts += " ".join(case.text for family in FAMILIES.values() for case in family)
    used = set(re.findall(r"\bpld?\.(?:(?:tile|tensor|system|array|prefetch|micro)\.)?(\w+)\(", texts))
    used |= set(re.findall(r'"(v\w+)\(', texts))  # the table of test_micro.py
    missing = {op.full_name for op in OPERATORS.values() if op.name not in used | ELSEWHERE}
    assert not missing


def test_what_tells_of_operators(capsys: pytest.CaptureFixture[str]) -> None:
    """`dir(pl)`, `help(pl.load)` and `python -m pto.language WORD`."""
    assert {"load", "FP32", "range", "jit", "Compiled"} <= set(dir(pl))
    assert not [n for n in dir(pl) if isinstance(getattr(pl, n), ModuleType)]
    assert "pl.row_max(x, tmp_tile=None)\n" in pydoc.render_doc(pl.row_max, renderer=pydoc.plaintext)
    assert listing_main(["row_max", "no such word"]) == 0 and listing_main(["no such word"]) == 1
    said = capsys.readouterr().out
    assert "  pl.row_max(x, tmp_tile=)\n      Largest element" in said and "pl.load" not in said


def test_catalogue_has_every_operator() -> None:
    entries = [e.call for f in catalogue.families().values() for e in f]
    assert len(entries) == len({id(op) for op in OPERATORS.values()})
    assert len(set(entries)) == len(entries)
    assert all(e.doc.endswith((".", "`.")) for f in catalogue.families().values() for e in f)
