"""Errors in programs of the language: the code, the location, and that all of them are reported at once."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.each import each

import pto
import pto.language as pl
from pto.language.advice import PHRASES
from pto.language.problems import LanguageWarning

X = np.zeros((64, 64), np.float32)


def problems(function: Any, *args: Any) -> list[tuple[str, str]]:
    """Codes and the text that each points at."""
    with pytest.raises(pto.DiagnosticError) as caught:
        function.lower(*(args or (X, X.copy())))
    found = caught.value.diagnostics
    return [(d.code, d.span.source.text[d.span.start : d.span.end] if d.span else "") for d in found]


def told(function: Any, *args: Any) -> list[tuple[str, str, str]]:
    """Return codes, the text at each caret, and the help; of warnings if there are no errors."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LanguageWarning)
            found = function.lower(*(args or (X, X.copy()))).diagnostics
    except pto.DiagnosticError as e:
        found = e.diagnostics
    return [(d.code, d.span.source.text[d.span.start : d.span.end], d.help) for d in found if d.span]


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
            s = x[0, 0] * 2.0
        with pl.at():
            out[:] = x * s
        return out

    found = problems(k)
    assert told(k)[-1] == (
        "PTO-E3002", "s", "compute it in each region, or keep it in a tensor: t[0, 0] = s, then t[0, 0]"
    )  # fmt: skip
    assert ("PTO-E3002", "pl.lod") in found
    assert ("PTO-E3002", "tile") in found
    assert ("PTO-E3002", "only_here") in found
    assert ("PTO-E3002", "n") in found  # a counter is not defined after its loop


WEIGHTS = np.ones((64, 64), np.float32)


def test_what_numpy_is_used_to() -> None:
    """Each message has the text to write instead."""

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x.T  # noqa: B018
            x.sum(axis=1)
            np.exp(x)
            max(x, 0.0)
            pl.max(x, 0.0)
            pl.softmax(x)
            np.square(x)
            pl.concatenate([x, x])
            pl.cumsum(x, axis=0)
            pl.topk(x, 4)
            x.std(axis=1)
            if x > 0:
                pass
            out[:] = x if x > 0 else -x
            out[x < 0] = 0.0
            x[x]
            pl.where(x > 0 and x < 1, x, 0.0)
            x > 0 or x[0, 0] > 0
            not x  # noqa: B018
            pl.where(0 < x < 1, x, 0.0)
            x & 1
            x // 2
            pl.exp(x[:, ::2])
            pl.exp(x[0, None])
            out[None, :] = x
            x + WEIGHTS
            pl.add(WEIGHTS, x)
            pl.store(out, [0, 0], pl.load(x, [0, 0], [64, 64]))
            if pl.row_max(x) > 0.0:
                pass
            for row in x:
                out[0:1] = row
            pl.exp(x[::2])
            pl.cast(x, np.float16)
            x[0, 0] ** 0.5
            x[0, 0] % 2.0
        pl.exp(x)

    found = told(k)
    wanted = (
        "pl.transpose pl.row_sum pl.exp pl.row_max pl.maximum pl.row_max x*x "
        "pl.concat total=total+x[i:i+1] pl.row_max pl.sqrt pl.where pl.where pl.where out[i]=x[index[i]] & | ~ & pl.and_ "
        "mode='floor' MaskPattern pl.reshape leave parameter parameter tile pl.read x[i] pl.reshape pl.FP16 pl.sqrt "
        "pl.cast pl.at"
    )
    assert all(w in h.replace(" ", "") for w, (_, _, h) in zip(wanted.split(), found, strict=True)), found
    assert [text for _, text, help in found if "parameter" in help] == ["WEIGHTS"] * 2
    assert found[-1][1] == "pl.exp(x)"


def test_what_python_is_used_to() -> None:
    """Messages call things what Python calls them, and say what to write instead."""

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        assert x.shape[0] == 64
        try:
            n = 1
        finally:
            pass
        double = lambda v: v + v  # noqa: E731

        def triple(v: Any) -> Any:
            return v * 3

        total = sum(i for i in range(3))
        for i, v in enumerate([1, 2]):
            n = i + v
        import math

        n = triple(math.pi)  # what could not be read is not told again
        raise ValueError(n, double, total)

    found = told(k)
    wanted = "static_assert static_assert @pl.jit.inline @pl.jit.inline list pl.unroll outside static_assert"
    assert all(w in h for w, (_, _, h) in zip(wanted.split(), found, strict=True)), found
    with pytest.raises(
        pto.DiagnosticError, match=r"(?s)syntax: `assert`.*syntax: `lambda`.*syntax: a generator.*got: enum"
    ):
        k.lower(X, X.copy())


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


def test_e3004_types_of_parameters() -> None:
    """The place is the parameter."""

    @pl.jit
    def array(x: np.ndarray, out: pl.Out[pl.Tensor]):
        return out

    @pl.jit
    def flat(x: pl.Tensor, out: pl.Tensor[64, 64]):
        return out

    assert told(array) == [("PTO-E3004", "x: np.ndarray", "pl.Tensor, or nothing")]
    assert told(flat) == [("PTO-E3004", "out: pl.Tensor[64, 64]", "pl.Tensor[[rows, columns], pl.FP32]")]


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
            pl.store(t, [0, 0, 0], out)
        return out

    assert [c for c, _ in problems(k)] == ["PTO-E3005"] * 4 + ["PTO-E3004", "PTO-E3005"]
    assert problems(k)[0][1] == "[64, 65]"


M, N = pl.dynamic("M"), pl.dynamic("N")


def test_e3005_arrays_whose_extents_a_run_decides() -> None:
    """The place is the window, the help the load that it is meant to be."""

    @pl.jit
    def k(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
        for r in pl.parallel(0, M, 16):
            for c in pl.parallel(0, N, 64):
                with pl.at():
                    m = pl.min(16, M - r)
                    t = x[r : r + m, c : pl.min(c + 64, N)]
                    u = pl.load(x, [0, c], [1, 64], valid_shape=[1, pl.min(64, N - c)])
                    pl.store(t + u, [r, c], out)
                    out[r : r + m, 0:64] = pl.exp(x)
                    pl.exp(x[r : r + 16, :])
                    pl.exp(x[r + 1 : M, 0:64])

    window, whole, columns, rows = told(k)
    assert columns[2] == "pl.load(x, [r, c], [16, 16], valid_shape=[16, pl.min(16, N - c)])"
    assert rows[2] == "pl.load(x, [r + 1 + c, 0], [16, 64], valid_shape=[pl.min(16, M - (r + 1) - c), 64])"
    assert window[1] == "x[r : r + m, c : pl.min(c + 64, N)]"
    assert window[2] == "pl.load(x, [r, c], [16, 64], valid_shape=[m, pl.min(c + 64, N) - c])"
    assert whole[2].endswith("[16, 16], valid_shape=[pl.min(16, M - r), pl.min(16, N - c)])")


@pl.jit.incore
def copied(x: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], out)


def test_e3005_a_window_beyond_its_tensor() -> None:
    """The place is the window, and the tensor has its name: on a core, and where a task is given the window."""

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at():
            pl.store(pl.load(x, [48, 0], [32, 64]), [0, 0], out)
            t = x[48:80]
            pl.store(pl.add(t, 1.0), [0, 0], out)

    @pl.jit
    def parts(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        for i in pl.range(n):
            half = pl.slice(x, [32, 64], [32 * i, 0])
            copied(half, out[0:32])

    with pytest.raises(pto.DiagnosticError) as caught:
        k.lower(X, X.copy())
    found = caught.value.diagnostics
    for run in (parts, parts.run):
        with pytest.raises(pto.DiagnosticError) as caught:
            run(X, 3, X.copy())
        found += caught.value.diagnostics
    places = [d.span.source.text[d.span.start : d.span.end] for d in found if d.span is not None]
    window = "pl.slice(x, [32, 64], [32 * i, 0])"
    assert places == ["[32, 64]", "x[48:80]", window, window]
    assert {d.message for d in found} == {"window exceeds dimension 0 of 'x'"}


def test_e3005_shapes_that_do_not_broadcast() -> None:
    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at():
            w = pl.add(x, x[0:1, 0:32])
            v = x[0:32] / x
            u = pl.where(x > 0, x[:, 0:32], 0.0)
            out[:] = v + u + w

    wanted = [("PTO-E3005", "x[0:1, 0:32]", ""), ("PTO-E3005", "x", ""), ("PTO-E3005", "x > 0", "")]
    assert told(k) == wanted

    @pl.jit
    def leading(x: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at():
            out[:] = x + bias

    stack = np.zeros((2, 16, 64), np.float32)
    assert told(leading, stack, stack[0], stack) == [
        ("PTO-E3005", "x + bias", "use a loop over the first dimension: x[i]")
    ]


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

    @pl.jit.inline
    def doubled(x):
        return x * 2

    @pl.jit
    def outside(x: pl.Tensor, out: pl.Out[pl.Tensor], n: float):
        a = x + 1
        b = -x
        for i in pl.range(2):
            if n > 1.0:
                out[i * 32 : (i + 1) * 32] = n / x[i * 32 : (i + 1) * 32]
        out[:] = doubled(x)
        out[:] = x > 0
        out[:] = x**2
        out[:] = 0.0
        out += a * b
        return out

    found = told(outside, X, X.copy(), 2.0)
    wanted = ["x + 1", "-x", "n / x[i * 32 : (i + 1) * 32]", "x * 2", "x > 0", "x**2", "out[:]"]
    assert [(code, text) for code, text, _ in found] == [("PTO-E3006", text) for text in wanted]
    assert all("with pl.at(level=pl.Level.CORE_GROUP):" in help for *_, help in found)


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
    for call in (again, again.run, again.interpret, again.lower):
        with pytest.raises(
            pto.DiagnosticError,
            match=r"cannot call again from Python: a function with @pl.jit.inline exists only in its callers",
        ):
            call(X)
    with pytest.raises(TypeError, match="got JitFunction; call it, or its `run`"):
        pto.kernel(k)  # pyright: ignore[reportArgumentType]
    with pytest.raises(pto.DiagnosticError, match="PTO-E3007"):
        k(X, "out")

    @pl.jit.incore
    def same(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out[:] = x * 2.0
        return out

    @pl.jit
    def caller(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        same(x[0:16], out)
        return out

    with pytest.raises(pto.DiagnosticError, match=r"note: called here: same.*64, 64.*\n.*same\(x.0:16., out"):
        caller.lower(X, X.copy())

    n = pl.dynamic("N")

    @pl.jit
    def sized(x: pl.Tensor[[n, 64], pl.FP32], out: pl.Out[pl.Tensor[[n, 64], pl.FP32]]):
        return n

    for args, said in (
        ((X, X[:5]), "got: 64 in 'x' and 5 in 'out'"),
        ((X[:, :5], X), r"expected: \[N, 64\]\n  got: \[64, 5\]"),
        ((X.astype(np.float64), X), r"help: x.astype\(numpy.float32\)"),
        ((X, X.astype(np.float16)), "help: make an array of numpy.float32: the call writes into it"),
        ((X[0], X), r"expected: \[N, 64\]\n  got: \[64\]"),
        ((X[::2], X[::2]), r"expected contiguous memory for 'x'\n  help: numpy.ascontiguousarray\(x\)"),
        ((X[:32].copy(), X[::2]), r"expected contiguous memory for 'out'\n  help: .*; out\[...\] = c"),
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
            u = pl.load(x, [0, 0], [64, 64])
            for _ in pl.range(3):
                out = u
        return out

    two_names = "give them different names"
    written = "out[..] = .. writes into it; out = .. only rebinds the name"
    assert told(k) == [
        ("PTO-E3008", "u", two_names),
        (
            "PTO-E3008",
            "t",
            "give it another name; a loop over pl.unroll(..) is written out, and may change it",
        ),
        ("PTO-E3008", "out", written),
    ]

    @pl.jit
    def outer(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for r in pl.range(0, 64, 16):
            with pl.at():
                v = x[r : r + 16] * 2.0
                out = v
        return out

    assert told(outer) == [("PTO-E3008", "out", written)]


def test_e3007_arguments_that_are_no_arrays() -> None:
    """Each message shows how to make the required array or number."""

    @pl.jit.incore
    def core(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out[:] = x * 2.0
        return out

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.Scalar[pl.INT32], m: int = 0):
        return core(x, out)

    @pl.jit
    def half(x: pl.Tensor[[64, 64], pl.BF16], either, out: pl.Out[pl.Tensor]):
        return core(x, out)

    @pl.jit
    def inside(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        core([1.0], out)
        core(2, out)
        with pl.at():
            out[:] = pl.maximum(x, [1.0, 2.0])
            out[0] = (1.0, 2.0)

    listed = X.tolist()
    for function, args, got, help in (
        (k, (listed, X, 1), "list", "numpy.array(x, numpy.float32)"),
        (k, (((1, 2), (3, 4)), X, 1), "tuple", "numpy.array(x, numpy.int32)"),
        (
            k,
            (X, listed, 1),
            "list",
            "out = numpy.zeros(shape, numpy.float32) before the call, which writes into it",
        ),
        (k, (3, X, 1), "3", "numpy.full(shape, 3, numpy.int32), or x: pl.Scalar[pl.INT32]"),
        (
            k,
            (np.float32(0.5), X, 1),
            "0.5",
            "numpy.full(shape, 0.5, numpy.float32), or x: pl.Scalar[pl.FP32]",
        ),
        (k, (None, X, 1), "None", "a NumPy array or a torch tensor"),
        (k, (X, X, [1]), "list", ""),
        (k, (X, X, "1"), "'1'", ""),
        (k, (X, X, 2.5), "2.5", ""),
        (k, (X, X, 2, 2.5), "2.5", ""),
        (k, (X, X, np.array([1])), "an array of shape (1,)", "n.item()"),
        (half, (listed, 1, X), "list", "numpy.array(x, ml_dtypes.bfloat16)"),
        (half, (X.astype("bfloat16"), [1, 2], X), "list", "numpy.array(either, numpy.int32)"),
    ):
        for call in (function, function.run, function.lower, function.interpret):
            with pytest.raises(pto.DiagnosticError) as caught:
                call(*args)
            (d,) = caught.value.diagnostics
            assert (d.code, d.got, d.help) == ("PTO-E3007", got, help), d
    wanted = ["core([1.0], out)", "core(2, out)", "[1.0, 2.0]", "out[0]"]
    assert [text for _, text, help in told(inside) if help.startswith("pass an array")] == wanted
    with pytest.raises(TypeError, match=r"'out'; pass an array for out, which the call writes into"):
        k(X)


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
    def returned(x: pl.Tensor):
        with pl.at():
            y = x + 1
        return y

    assert warned(returned, X) == ["PTO-E3010"]

    @pl.jit
    def never(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.add(x, x)
            x[:] = out

    assert warned(never, X, X.copy()) == ["PTO-E3010", "PTO-E3011"]


def test_e3011_tells_the_declaration() -> None:
    """As it is written, of the right direction; a caller is not blamed for it."""

    @pl.jit.incore
    def core(x: pl.Tensor, y: pl.Tensor[[64, 64], pl.FP32]):
        y[:] = x * 2.0
        return y

    @pl.jit
    def caller(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        core(x, out)
        return out

    @pl.jit
    def both(x: pl.Out[pl.Tensor[[64, 64], pl.FP32]], out: pl.Out[pl.Tensor]):
        with pl.at():
            x[:] = x * 2.0

    assert told(caller) == [("PTO-E3011", "y[:]", "y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]")]
    wrong, unwritten = told(both)
    assert wrong == ("PTO-E3011", "x * 2.0", "x: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]")
    assert unwritten[:2] == ("PTO-E3010", "out: pl.Out[pl.Tensor]")


@pl.jit.inline
def maximum(t):
    return pl.row_max(pl.mul(t, 2.0))


@pl.jit.inline
def minimum(t):
    return pl.row_min(pl.neg(t))


@pl.jit.inline
def total(t):
    return pl.row_sum(t)


@pl.jit.inline
def shifted(t):
    return pl.row_sum(pl.add(t, 1.0))


@pl.jit.inline
def powers(t):
    return pl.row_sum(pl.exp(t))


@pl.jit.inline
def softened(t):
    return pl.row_sum(pl.exp(pl.row_expand_sub(t, pl.row_max(t))))


@pl.jit.inline
def positive(t):
    return pl.row_max(pl.relu(t))


@pl.jit.inline
def squares(t):
    return pl.col_sum(pl.mul(t, t))


@pl.jit.inline
def where_largest(t):
    return pl.row_argmax(t)


#: What becomes of a padded tile, and the paddings that count there; once for each reduction.
REDUCED = {
    maximum: "zero max",
    minimum: "zero max",
    total: "min max",
    shifted: "zero min max",
    powers: "zero max",
    softened: "zero max zero max",
    positive: "max",
    squares: "min max",
    where_largest: "zero max",
}


def test_e3012_reductions_over_padding() -> None:
    """Padding is followed through operators: whether it counts is a matter of its value there."""

    def check(reduced: Any) -> None:
        def count(pad: Any) -> int:
            @pl.jit
            def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.fillpad(pl.load(x, [0, 0], [64, 64], valid_shape=[64, 50]), pad)
                    reduced(t)
                    pl.store(t, [0, 0], out)

            return warned(k, X, X.copy()).count("PTO-E3012")

        found = [word for word in ("zero", "min", "max") for _ in range(count(getattr(pl.PadValue, word)))]
        assert sorted(found) == sorted(REDUCED[reduced].split())

    each(check, list(REDUCED))


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

    @pl.jit
    def many(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for r in pl.range(0, 64, 16):
            for c in pl.parallel(0, 48, 16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.load(x, [r, c], [16, 32]), [r, c], out)

    assert found_in(many, X, X.copy()) == [("PTO-E3013", 5)]  # once, not once per row
    assert found_in(overlap, X, X.copy()) == [("PTO-E3013", 5)]
    assert found_in(apart, X, X.copy()) == []
    assert ("PTO-E3013", 3) in found_in(blocks, X, X.copy())
    assert found_in(blocks_apart, X, X.copy()) == []


def test_tensors_that_a_program_makes_are_written_before_they_are_read() -> None:
    """Also in part, across tasks, by the function that submits them; an unused tensor may stay unwritten."""

    @pl.jit
    def never(y: pl.Out[pl.Tensor]):
        t = pl.create_tensor([64, 64], dtype=pl.FP32)
        double(t, y)

    @pl.jit
    def half(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        t = pl.create_tensor([64, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [64, 32]), [0, 0], t)
        with pl.at(level=pl.Level.CORE_GROUP):
            both = pl.load(t, [0, 0], [64, 64])
            pl.store(pl.add(both, 1.0), [0, 0], y)

    @pl.jit
    def half_is_enough(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        t = pl.create_tensor([64, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [64, 32]), [0, 0], t)
        with pl.at(level=pl.Level.CORE_GROUP):
            both = pl.add(pl.load(t, [0, 0], [64, 64]), 1.0)
            pl.store(pl.slice(both, [64, 32], [0, 0]), [0, 0], y)
            pl.store(pl.slice(both, [64, 32], [0, 0]), [0, 32], y)

    @pl.jit
    def decides(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        t = pl.create_tensor([8], dtype=pl.INT32)
        pl.write(t, [1], 3)
        if pl.read(t, [0]) == 0 or pl.read(t, [1]) == 3:
            double(x, y)

    assert found_in(never, X.copy())[0][0] == "PTO-E2203"
    assert found_in(half, X, X.copy()) == [("PTO-E2203", 7)]
    assert found_in(half_is_enough, X, X.copy()) == []
    assert found_in(decides, X, X.copy()) == [("PTO-E2203", 4)]
    result = half.run(X, X.copy(), sanitize="all")
    assert "tload reads element (0, 32) of %t, which no task has written before" in str(result)
    assert "in the task that was submitted here" in str(result)


def test_later_stages_speak_the_language() -> None:
    """Advice of checks and runs of kernels can be written in Python."""

    @pl.jit
    def narrow(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at():
            pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)

    @pl.jit
    def large(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at():
            out[:] = pl.full([1024, 64], pl.FP32, 0.0)[0:64, :] + x

    assert told(narrow, X, X.astype(np.float16))[0][2].endswith("loads and stores do not convert")
    assert {h for c, _, h in told(large) if c == "SA-0352"} == {
        "work on parts: for r in pl.range(0, x.shape[0], 16), with x[r : r + 16]"
    }

    @pl.jit
    def undefined(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at():
            t = pl.create_tile([16, 64], dtype=pl.FP32)
            u, v = [pl.load(x, [0, 0], [16, 64], valid_shape=[16, n]) for n in (60, 50)]
            out[0:16, :] = t
            pl.store(u + v, [16, 0], out)

    @pl.jit
    def ragged(x: pl.Tensor[[M, 64], pl.FP32], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
        for r in pl.range(0, M, 16):
            with pl.at():
                out[r : r + 16] = x[r : r + 16] * 2.0

    @pl.jit
    def windowed(x: pl.Tensor[[M, 64], pl.FP32], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
        with pl.at():
            for r in pl.range(0, M, 16):
                out[r : r + 16] = x[r : r + 16] * 2.0

    for function, rows, sanitize, code, help in (
        (undefined, 64, "all", "PTO-E2203", "write 't' before it is read, for example by pl.load or pl.full"),
        (undefined, 64, "all", "PTO-E2203", "pl.fillpad(x, pl.PadValue.zero)"),
        (windowed, 40, "all", "PTO-E2204", "load no more: valid_shape="),
        (ragged, 40, "all", "PTO-E2101", "pl.load(.., valid_shape=["),
        (ragged, 40, "", "PTO-E2101", "pl.load(.., valid_shape=["),
    ):
        found = function.run(X[:rows], X[:rows].copy(), sanitize=sanitize).diagnostics
        assert any(d.code == code and help in d.help for d in found), (function, found)
    with pytest.raises(pto.DiagnosticError, match=r"(?s)16\] \* 2.0\n.*help: .*pl.load\(.., valid_shape=\["):
        ragged(X[:40], X[:40].copy())


def test_what_later_stages_say_is_still_what_is_replaced() -> None:
    """Every phrase is one of theirs."""
    folder = Path(pto.__file__).parent
    said = [
        str(node.value)
        for module in (
            "verifier/rows",
            "verifier/tiles",
            "engine/sanitize/blocks",
            "engine/sanitize/bounds",
            "engine/sanitize/undefined_bytes",
        )
        for node in ast.walk(ast.parse((folder / f"{module}.py").read_text()))
        if isinstance(node, ast.Constant)
    ]
    assert [p for p, _ in PHRASES if not any(p in text for text in said)] == []


@pl.jit.incore
def double(a: pl.Tensor, b: pl.Out[pl.Tensor]):
    b[:] = pl.add(a, a)
    return b


def test_e3015_tensors_that_are_overwritten_while_in_use() -> None:
    """Tasks wait for the writers of their inputs; a task that only writes waits for no reader."""

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
        for r in pl.range(0, 64, 16):  # each iteration has rows of its own
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(y, [r, 0], [16, 64]), [r, 0], z)

    assert warned(again, X, X.copy(), X.copy()) == []
    assert warned(late, X, X.copy(), X.copy()) == ["PTO-E3015"]
    assert warned(turns, X, X.copy(), X.copy()) == ["PTO-E3015"]


def test_tracebacks_are_short() -> None:
    """They end at the call; the error is in the message."""
    with pytest.raises(pto.DiagnosticError) as caught:
        double(X, "b")
    assert [entry.name for entry in caught.traceback] == ["test_tracebacks_are_short", "call"]


def test_outside_of_a_program() -> None:
    with pytest.raises(TypeError, match=r"cannot use pl.add outside of a function"):
        pl.add(X, X)


def test_spliced_functions_take_other_extents() -> None:
    """Their declared extents are then only suspicious; another rank is an error."""

    @pl.jit.inline
    def twice(x: pl.Tensor[[8, 64], pl.FP32], y: pl.Tensor):
        y[:] = pl.add(x, x)

    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at():
            twice(x, out)

    out = np.zeros((4, 64), np.float32)
    with pytest.warns(UserWarning, match=r"shape of 'x' of twice does not match(.|\n)*expected: \[8, 64\]"):
        k(X[:4], out)
    np.testing.assert_array_equal(out, X[:4] * 2)
    k.interpret(X[4:8], out)
    np.testing.assert_array_equal(out, X[4:8] * 2)
    with pytest.raises(pto.DiagnosticError, match="shape of 'x' of twice does not match"):
        k(X.reshape(2, 32, 64), X.reshape(2, 32, 64))
