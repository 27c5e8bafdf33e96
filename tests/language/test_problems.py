"""What is wrong with programs of the language: the code, the place, and that all of it is told at once."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import pto
import pto.language as pl
from pto.language.problems import LanguageWarning

X = np.zeros((64, 64), np.float32)


def problems(function: Any, *args: Any) -> list[tuple[str, str]]:
    """Codes and the text that each points at."""
    with pytest.raises(pto.DiagnosticError) as caught:
        function.lower(*(args or (X, X.copy())))
    found = caught.value.diagnostics
    return [(d.code, d.span.source.text[d.span.start : d.span.end] if d.span else "") for d in found]


def test_e3001_python_that_is_not_in_the_language() -> None:
    def helper(x: Any) -> Any:
        return x

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        n = 0
        try:
            n = 1
        except ValueError:
            n = 2
        for i in [1, 2]:
            n = i
        helper(n)
        if 0 < pl.tensor.dim(x, 0) < 5:
            n = 3
        with open("x"):
            pass
        return out

    assert [c for c, _ in problems(k)] == ["PTO-E3001"] * 4
    assert problems(k)[1] == ("PTO-E3001", "[1, 2]")


def test_returns() -> None:
    """Statements after a return are not read; a return that a run would decide on is refused."""

    @pl.jit
    def early(x: pl.Tensor, out: pl.Out[pl.Tensor], often: bool):
        with pl.at():
            out[:] = pl.add(x, 1.0)
        if not often:
            return out
        with pl.at():
            out[:] = pl.add(out, 1.0)
        return out
        never = here  # noqa: F821, F841

    for often in (False, True):
        y = X.copy()
        early.run(X, y, often)
        assert (y == 1 + often).all()

    @pl.jit
    def decided(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for _ in pl.range(3):
            return out
        with pl.at():
            if x[0, 0] > 0.0:
                return out
            out[:] = x

    assert problems(decided) == [("PTO-E3001", "return out")] * 2


def test_e3002_names() -> None:
    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 64])
            pl.lod(x)
            pl.store(tile, [0, 0], out)  # noqa: F821
            for _i in pl.range(pl.read(x, [0, 0]) > 0.0):
                pass
            flag = pl.get_block_idx()
            if flag == 1:
                only_here = flag + 1
            pl.store(t, [only_here, 0], out)
            for n in pl.range(3):
                pl.store(t, [n, 0], out)
            pl.write(out, [0, n], 1.0)
        return out

    found = problems(k)
    assert ("PTO-E3002", "pl.lod") in found
    assert ("PTO-E3002", "tile") in found
    assert ("PTO-E3002", "only_here") in found
    assert ("PTO-E3002", "n") in found  # a counter is no name after its loop


def test_what_numpy_is_used_to() -> None:
    """Each message says what to write instead."""

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x @ x
            x**2
            x.T  # noqa: B018
            x.sum(axis=1)
            np.exp(x)
            max(x, 0.0)
            pl.tanh(x)
        out[:] = x

    with pytest.raises(pto.DiagnosticError) as caught:
        k.lower(X, X.copy())
    found = caught.value.diagnostics
    wanted = ["pl.matmul", "pl.pow", "pl.transpose", "pl.row_sum", "pl.exp", "pl.row_max", "pl.exp", "pl.at"]
    assert all(word in d.help for word, d in zip(wanted, found, strict=True)), found
    assert found[-1].message.startswith("`out[:] = ..` is work of a core")


def test_e3003_and_e3004_arguments_and_types() -> None:
    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [64, 64])
            pl.load(x, [0, 0], shape=[64, 64])
            pl.load(x, 0, [64, 64])
            pl.store(t, [0, 0], t)
            h = pl.cast(t, pl.FP16, mode="nearest")
            h = pl.cast(t, pl.FP16)
            pl.add(t, h)
            pl.add(t, "one")
            pl.muls(t, t)
        return out

    assert problems(k) == [
        ("PTO-E3003", "pl.load(x, [0, 0], shape=[64, 64])"),
        ("PTO-E3003", "0"),
        ("PTO-E3004", "t"),
        ("PTO-E3003", '"nearest"'),
        ("PTO-E3004", "h"),
        ("PTO-E3004", '"one"'),
        ("PTO-E3004", "t"),
    ]


def test_e3005_shapes() -> None:
    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [64, 65])
            t = pl.load(x, [32, 0], [32, 64])
            u = pl.load(x, [0, 0], [64, 64])
            pl.add(u, t)
            pl.reshape(t, [64, 64])
            pl.matmul(t, t)
            out[0:16, :] = t
            out[:] = u[0]
            pl.store(t, [0, 0, 0], out)
        return out

    assert [c for c, _ in problems(k)] == ["PTO-E3005"] * 4 + ["PTO-E3004"] * 2 + ["PTO-E3005"]
    assert problems(k)[0][1] == "[64, 65]"


def test_e3006_misplaced() -> None:
    @pl.jit.incore
    def core(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], out)
        return out

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        pl.add(x, x)
        pl.load(x, [0, 0], [64, 64])
        with pl.at(level=pl.Level.CORE_GROUP):
            core(x, out)
            with pl.at(level=pl.Level.CORE_GROUP):
                pass
        return out

    assert [c for c, _ in problems(k)] == ["PTO-E3006"] * 4


def test_e3007_calls() -> None:
    @pl.jit.incore
    def core(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], out)
        return out

    @pl.jit.inline
    def again(x: pl.Tensor):
        return again(x)

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        core(x, out)
        core(x, x, out)
        core(1.0, 1, out)
        again(x)
        return out

    assert [c for c, _ in problems(k)] == ["PTO-E3007"] * 4
    with pytest.raises(TypeError, match="k\\(x, out\\)"):
        k(X)
    with pytest.raises(pto.DiagnosticError, match="PTO-E3007"):
        k(X, "out")

    n = pl.dynamic("N")

    @pl.jit
    def sized(x: pl.Tensor[[n, 64], pl.FP32], out: pl.Out[pl.Tensor[[n, 64], pl.FP32]]):
        return n

    for args, said in (
        ((X, X[:5]), "got: 64 in 'x' and 5 in 'out'"),
        ((X[:, :5], X), r"expected: \[N, 64\]\n  got: \[64, 5\]"),
        ((X.astype(np.float64), X), "help: x.astype"),
        ((X[::2], X[::2]), "help: numpy.ascontiguousarray"),
    ):
        with pytest.raises(pto.DiagnosticError, match=said), warnings.catch_warnings():
            warnings.simplefilter("ignore", LanguageWarning)
            sized(*args)


def test_e3008_names_that_are_two_things() -> None:
    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = pl.get_block_idx()
            t = pl.load(x, [0, 0], [64, 64])
            if n == 0:
                u = t
            else:
                u = pl.load(x, [0, 0], [32, 64])
            pl.store(u, [0, 0], out)
            for i in pl.range(3):
                t = pl.load(x, [i, 0], [16, 64], valid_shape=[1, 64])
            pl.store(t, [0, 0], out)
        return out

    assert [c for c, _ in problems(k)] == ["PTO-E3008"] * 2


def test_e3009_what_is_not_built() -> None:
    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(pl.reshape(x[0:32, 0:32], [16, 64]), [0, 0], [16, 64])  # not one row after the other
            pl.store(t, [0, 0], out)
        return out

    assert [c for c, _ in problems(k)] == ["PTO-E3009"]

    @pl.jit
    def orchestrated(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        words = pl.reinterpret_view(x, pl.INT32)
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.cast(words, pl.FP32)
        return out

    assert [c for c, _ in problems(orchestrated)] == ["PTO-E3009"]


def warned(function: Any, *args: Any) -> list[str]:
    """Codes that a first call warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function.lower(*args)
    return [
        line.split("[")[1].split("]")[0]
        for w in found
        for line in str(w.message).splitlines()
        if "warning[" in line
    ]


def test_e3010_and_e3011_outputs_and_directions() -> None:
    @pl.jit
    def rebound(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.add(x, out)

    @pl.jit
    def in_place(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out += x

    @pl.jit
    def written(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.add(x, x)
            x[:] = out

    @pl.jit
    def right(x: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.add(x, x)
            x[:] = out

    assert warned(rebound, X, X.copy()) == ["PTO-E3010"]
    assert warned(in_place, X, X.copy()) == ["PTO-E3010"]
    assert warned(written, X, X.copy()) == ["PTO-E3011"]
    assert warned(right, X, X.copy()) == []

    @pl.jit
    def never(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.add(x, x)
            x[:] = out

    assert warned(never, X, X.copy()) == ["PTO-E3010", "PTO-E3011"]


@pytest.mark.parametrize("pad, codes", [(pl.PadValue.zero, ["PTO-E3012"]), (-math.inf, [])])
def test_e3012_reductions_over_padding(pad: Any, codes: list[str]) -> None:
    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.fillpad(pl.load(x, [0, 0], [64, 64], valid_shape=[64, 50]), pad)
            out[:, 0:1] = pl.row_max(pl.mul(t, 2.0))

    assert warned(k, X, X.copy()) == codes


def found_in(function: Any, *args: Any) -> list[tuple[str, int]]:
    """Codes and lines of the function that a run under watch reports."""
    first = function.declared.function.__code__.co_firstlineno
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LanguageWarning)
        result = function.run(*args, sanitize="all")
    return [(d.code, d.span.line - first) for d in result.diagnostics if d.span is not None]


def test_e3013_claims_of_independence() -> None:
    @pl.jit
    def overlap(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for r in pl.parallel(0, 64, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r, 0], [32, 64], valid_shape=[pl.min(32, 64 - r), 64])
                pl.store(t, [r, 0], out)

    @pl.jit
    def apart(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for r in pl.parallel(0, 64, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [r, 0], [16, 64]), [r, 0], out)

    @pl.jit
    def blocks(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.spmd(4):
            pl.store(pl.load(x, [i * 16, 0], [16, 64]), [i * 8, 0], out)

    @pl.jit
    def blocks_apart(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.spmd(4):
            pl.store(pl.load(x, [i * 16, 0], [16, 64]), [i * 16, 0], out)

    assert found_in(overlap, X, X.copy()) == [("PTO-E3013", 5)]
    assert found_in(apart, X, X.copy()) == []
    assert ("PTO-E3013", 3) in found_in(blocks, X, X.copy())
    assert found_in(blocks_apart, X, X.copy()) == []


def test_e3014_holes() -> None:
    @pl.jit
    def half(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], out)

    @pl.jit
    def kept(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], out)

    assert found_in(half, X, X.copy()) == [("PTO-E3014", 1)]
    assert found_in(kept, X, X.copy()) == []


@pl.jit.incore
def double(a: pl.Tensor, b: pl.Out[pl.Tensor]):
    b[:] = pl.add(a, a)
    return b


def test_e3015_tensors_that_are_overwritten_while_in_use() -> None:
    """Tasks wait for who writes what they read; one that only writes waits for nobody."""

    @pl.jit
    def again(a: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
        t = pl.create_tensor([64, 64], dtype=pl.FP32)
        t = double(a, t)
        double(t, y)
        t = double(y, t)  # ordered: waits for y, which was made of t
        double(t, z)

    @pl.jit
    def late(a: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
        t = pl.create_tensor([64, 64], dtype=pl.FP32)
        t = double(a, t)
        double(t, y)
        t = double(a, t)
        double(t, z)

    @pl.jit
    def turns(a: pl.Tensor, y: pl.InOut[pl.Tensor], z: pl.Out[pl.Tensor]):
        shared = pl.create_tensor([64, 64], dtype=pl.FP32)
        for _ in pl.range(3):
            shared = double(a, shared)
            own = pl.create_tensor([64, 64], dtype=pl.FP32)
            own = double(shared, own)
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.add(y, own)
        for r in pl.range(0, 64, 16):  # each turn has rows of its own
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(y, [r, 0], [16, 64]), [r, 0], z)

    assert warned(again, X, X.copy(), X.copy()) == []
    assert warned(late, X, X.copy(), X.copy()) == ["PTO-E3015"]
    assert warned(turns, X, X.copy(), X.copy()) == ["PTO-E3015"]


def test_tracebacks_are_short() -> None:
    """They end at the call; what is wrong is in the message."""
    with pytest.raises(pto.DiagnosticError) as caught:
        double(X, "b")
    assert [entry.name for entry in caught.traceback] == ["test_tracebacks_are_short", "call"]


def test_outside_of_a_program() -> None:
    with pytest.raises(TypeError, match=r"pl.add belongs in a function"):
        pl.add(X, X)


def test_spliced_functions_take_other_extents() -> None:
    """What they say of them is no more than suspicious then; another rank is wrong."""

    @pl.jit.inline
    def twice(x: pl.Tensor[[8, 64], pl.FP32], y: pl.Tensor):
        y[:] = pl.add(x, x)

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at():
            twice(x, out)

    out = np.zeros((4, 64), np.float32)
    with pytest.warns(UserWarning, match=r"'x' of twice has another shape(.|\n)*expected: \[8, 64\]"):
        k(X[:4], out)
    np.testing.assert_array_equal(out, X[:4] * 2)
    k.interpret(X[4:8], out)
    np.testing.assert_array_equal(out, X[4:8] * 2)
    with pytest.raises(pto.DiagnosticError, match="'x' of twice has another shape"):
        k(X.reshape(2, 32, 64), X.reshape(2, 32, 64))
