"""The vector level of the language: every function of registers against NumPy, masks, loops, and tiles between."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import pto.language as pl
from pto.diag import DiagnosticError

TARGETS = ("a3", "a5", "cpu")
#: Functions of FP32 registers f, g (F, G positive): their values.
FLOATS = {
    "vabs(f)": "np.abs(f)", "vadd(f, g)": "f + g", "vaddrelu(f, g)": "np.maximum(f + g, 0)", "vadds(f, 1.5)": "f + 1.5",
    "vaxpy(f, g, 2.0)": "2 * f + g", "vdiv(f, G)": "f / G", "vexp(f)": "np.exp(f)", "vln(F)": "np.log(F)",
    "vlrelu(f, 0.1)": "np.where(f >= 0, f, 0.1 * f)", "vmadd(f, g, F)": "g * f + F", "vmula(f, g, F)": "g * F + f",
    "vmax(f, g)": "np.maximum(f, g)", "vmaxs(f, 0.5)": "np.maximum(f, 0.5)", "vmin(f, g)": "np.minimum(f, g)",
    "vmins(f, 0.5)": "np.minimum(f, 0.5)", "vmov(f)": "f", "vmul(f, g)": "f * g", "vmuls(f, 3.0)": "f * 3", "vneg(f)": "-f",
    "vprelu(f, g)": "np.where(f >= 0, f, g * f)", "vrec(G)": "1 / G", "vrelu(f)": "np.maximum(f, 0)", "vrsqrt(F)": "1 / np.sqrt(F)",
    "vsqrt(F)": "np.sqrt(F)", "vsub(f, g)": "f - g", "vsubrelu(f, g)": "np.maximum(f - g, 0)", "vsubs(f, 1.0)": "f - 1",
    "vsel(f, g, pl.micro.vcmp(f, g, 'lt'))": "np.where(f < g, f, g)", "vsel(f, g, pl.micro.vcmps(f, 0.0, 4))": "np.where(f > 0, f, g)",
    "vadd(f, g, pl.micro.plt(10, pl.FP32))": "np.where(np.arange(64) < 10, f + g, 0)",
    "vcadd(f)": "np.where(np.arange(64) == 0, f.sum(), 0)",
    "vcgadd(f)": "np.pad(f.reshape(8, 8).sum(1), (0, 56))", "vcgmax(f)": "np.pad(f.reshape(8, 8).max(1), (0, 56))",
    "vcgmin(f)": "np.pad(f.reshape(8, 8).min(1), (0, 56))",
    "vdup(2.5, pl.FP32)": "np.full(64, 2.5)",
    "vcvt(pl.micro.vcvt(f, pl.INT32, 'floor'), pl.FP32)": "np.floor(f)",
    "vcvt(pl.micro.vcvt(f, pl.FP16, part=1), pl.FP32, part=1)": "f.astype(np.float16)",
    "vcvt(pl.micro.vcvt(f, pl.FP16, part=1), pl.FP32)": "f * 0",
    "vcvt(pl.micro.vcvt(f, pl.INT16, mode='round', sat=True), pl.FP32)": "np.trunc(f + np.copysign(0.5, f))",
}  # fmt: skip
#: Functions of INT32 registers i, j, and s from 1 to 8.
INTS = {
    "vand(i, j)": "i & j", "vands(i, 6)": "i & 6", "vor(i, j)": "i | j", "vors(i, 6)": "i | 6", "vxor(i, j)": "i ^ j", "vxors(i, 6)": "i ^ 6",
    "vnot(i)": "~i", "vshl(i, s)": "i << s", "vshls(i, 2)": "i << 2", "vshr(i, s)": "i >> s", "vshrs(i, 2)": "i >> 2",
    "vcvt(pl.micro.vcvt(i, pl.INT16, part=1), pl.INT32, part=1)": "i",
    "vcvt(pl.micro.vcvt(i, pl.FP32), pl.INT32, mask=pl.micro.plt(10, pl.FP32))": "np.where(np.arange(64) < 10, i, 0)",
    "vbcnt(j)": "np.array([bin(n).count('1') for n in j])", "vcls(j)": "np.array([31 - int(n).bit_length() for n in j])",
}  # fmt: skip


def kernel(path: Path, table: dict[str, str], dtype: str, names: str) -> object:
    """Return a kernel that stores the result of every function, a row each."""
    lines = ["import pto.language as pl", "", "", "@pl.jit", "def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):",
             "    with pl.at(level=pl.Level.CORE_GROUP):", "        a = pl.load(x, [0, 0], [4, 64])",
             f"        o = pl.create_tile([{len(table)}, 64], pl.{dtype})"]  # fmt: skip
    lines += [f"        {name} = pl.micro.vlds(a, {n * 64})" for n, name in enumerate(names.split())]
    lines += [f"        pl.micro.vsts(pl.micro.{text}, o, {n * 64})" for n, text in enumerate(table)]
    lines += ["        out = pl.store(o, [0, 0], out)", "    return out"]
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("target", TARGETS)
def test_functions(target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    f = rng.uniform(-3, 3, (4, 64)).astype(np.float32)
    f[2:] = np.abs(f[2:]) + 0.5
    i = rng.integers(-99, 99, (4, 64)).astype(np.int32)
    i[1], i[2] = np.abs(i[1]), rng.integers(1, 9, 64)
    for table, dtype, names, x in ((FLOATS, "FP32", "f g F G", f), (INTS, "INT32", "i j s", i)):
        k = kernel(tmp_path / f"{dtype}.py", table, dtype, names)
        rows = dict(zip(names.split(), x.astype(np.float64) if dtype == "FP32" else x, strict=False))
        out = np.zeros((len(table), 64), x.dtype)
        k.run(x, out, target=target, engine="reference")  # type: ignore[attr-defined]
        for got, (text, want) in zip(out, table.items(), strict=True):
            np.testing.assert_allclose(got, eval(want, {"np": np}, rows), rtol=1e-5, atol=1e-6, err_msg=text)


@pl.jit
def mixed(x: pl.Tensor, y: pl.Tensor, o: pl.Out[pl.Tensor], p: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.exp(pl.load(x, [0, 0], [16, 64]))
        b = pl.load(y, [0, 0], [16, 64])
        c = pl.create_tile([16, 64], pl.FP32)
        d = pl.create_tile([16, 64], pl.FP32)
        for i in pl.range(16):
            v = pl.micro.vlds(a, i * 64)
            s = pl.micro.vmul(v, pl.micro.vlds(b, i * 64))
            pl.micro.vsts(s, c, i * 64)
            pl.micro.vsts(pl.micro.vdup(0.0, pl.FP32), d, i * 64)
            pl.micro.vsts(s, d, i * 64, pl.micro.plt(i * 4, pl.FP32))
        o = pl.store(pl.sqrt(pl.abs(c)), [0, 0], o)
        p = pl.store(d, [0, 0], p)
        e = pl.create_tile([1, 64], pl.FP32)
        total = pl.micro.vdup(0.0, pl.FP32)
        for i in pl.range(16):
            total = pl.micro.vadd(total, pl.micro.vlds(b, i * 64))
        pl.micro.vsts(total, e)
        q = pl.store(e, [0, 0], q)
    return o


@pytest.mark.parametrize("target", TARGETS)
def test_registers_between_tiles(target: str) -> None:
    """Tools order both and place the tiles: no sanitizer has a word to say."""
    x, y = np.random.default_rng(0).standard_normal((2, 16, 64), np.float32)
    o, p, q = np.zeros_like(x), np.zeros_like(x), np.zeros((1, 64), np.float32)
    reports = mixed.run(x, y, o, p, q, target=target, engine="reference", sanitize="all")
    assert not [d for r in reports for d in r.diagnostics]
    s = np.exp(x.astype(np.float64)) * y
    np.testing.assert_allclose(o, np.sqrt(np.abs(s)), rtol=1e-5)
    np.testing.assert_allclose(p, np.where(np.arange(64) < np.arange(16)[:, None] * 4, s, 0), rtol=1e-5)
    np.testing.assert_allclose(q[0], y.sum(0), rtol=1e-4, atol=1e-5)
    other = [np.zeros_like(v) for v in (o, p, q)]
    mixed.run(x, y, *other, target=target, engine="native")
    assert all(a.tobytes() == b.tobytes() for a, b in zip((o, p, q), other, strict=True))


@pl.jit
def wrong(x: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [16, 64])
        v = pl.micro.vlds(a, 0)
        pl.micro.vsts(pl.micro.vadd(v, a), a, 0)
        pl.micro.vsts(pl.micro.vcvt(v, pl.INT8), a, 0)
        pl.micro.vsts(pl.micro.vcvt(v, pl.FP16, part=2), a, 0)
        o = pl.store(a, [0, 0], o)
    return o


def test_refusal() -> None:
    with pytest.raises(DiagnosticError) as found:
        wrong.lower(np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32))
    d, *others = found.value.diagnostics
    assert [(o.code, o.expected) for o in others] == [
        ("PTO-E3004", "BF16, FP16, INT16, INT32, INT64"),
        ("PTO-E3003", "0 to 1"),
    ]
    assert (d.code, d.got) == ("PTO-E3004", "Tile[[16, 64], FP32]")
    assert d.span is not None and d.span.source.text[d.span.start : d.span.end] == "a"
