"""Programs as text: every stage prints as Python that reads back as the same program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.language import fixed_points, test_control_flow, test_interpret, test_tasks

import pto.language as pl
from pto.diag import DiagnosticError

F32 = np.float32


def _zeros(*shape: int, dtype: Any = F32) -> Any:
    return np.zeros(shape, dtype)


@pl.jit
def tasks(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    """Tasks with names, in a scope; blocks; numbers whose type does not follow from their value."""
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as one:
            half = pl.const(2, pl.INT32) // pl.read(pl.cast(a[0:8, :], pl.INT32), [0, 1])
            x = pl.mul(a[:], float("inf"))
            x = pl.add(x, pl.cast(half, pl.FP32))
        with pl.spmd(2, deps=[one], name_hint="second"):
            r = pl.get_block_idx() * 8
            pl.store(pl.load(x, [r, 0], [8, 64], valid_shape=[8, pl.min(r + 1, 64)]), [r, 0], c)
    return c


def test_every_stage_is_a_fixed_point() -> None:
    a, c = _zeros(24, 64), _zeros(16, 64)
    fixed_points.check(test_control_flow.jumps, _zeros(64, 64), _zeros(8, 64))
    fixed_points.check(test_control_flow.extents, a, a)
    fixed_points.check(test_control_flow.names, a, a, a)
    fixed_points.check(test_interpret.ragged, _zeros(40, 64), _zeros(40, 64))
    fixed_points.check(test_interpret.product, _zeros(16, 96), _zeros(96, 32), _zeros(16, 32))
    fixed_points.check(test_interpret.loops, c, c, 3)
    fixed_points.check(test_interpret.blocks, c, c)
    fixed_points.check(test_interpret.Program, _zeros(16, 64, dtype=np.int32), _zeros(16, 64, dtype=np.int32))
    fixed_points.check(tasks, c, c)
    fixed_points.check(test_tasks.by_windows, _zeros(64, 64), _zeros(64, 64), _zeros(40, 64))
    fixed_points.check(test_tasks.assembled, _zeros(70, 150), _zeros(2, 70, 150), _zeros(72, 160))


CONCISE = """\
import pto.language as pl

M = pl.dynamic("M")
n0 = pl.dynamic("n0")


@pl.program
class Ragged:
    @pl.function(type=pl.FunctionType.Orchestration)
    def ragged(self, a: pl.Tensor[[M, 64], pl.FP32], c: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
        tmp = pl.create_tensor([M, 64], pl.FP32)
        self.scale(a, tmp, 2.5, M)
        self.ragged_incore_0(tmp, c, M)
        return c

    @pl.function(type=pl.FunctionType.InCore)
    def scale(
        self, x: pl.Tensor[[n0, 64], pl.FP32], y: pl.Out[pl.Tensor[[n0, 64], pl.FP32]],
        s: pl.Scalar[pl.FP32], n0: pl.Scalar[pl.INDEX]
    ):
        for r in pl.range(0, n0, 16):
            v = n0 - r
            n = pl.min(16, v)
            t = pl.load(x, [r, 0], [16, 64], valid_shape=[n, 64])
            v_0 = pl.muls(t, s)
            pl.store(v_0, [r, 0], y)
        return y

    @pl.function(type=pl.FunctionType.InCore)
    def ragged_incore_0(
        self, tmp: pl.Tensor[[M, 64], pl.FP32], c: pl.Out[pl.Tensor[[M, 64], pl.FP32]],
        M: pl.Scalar[pl.INDEX]
    ):
        for v, (s,) in pl.range(5, init_values=(0.1,)):
            s_0 = s * 1.1
            s_1 = pl.yield_(s_0)
        for r in pl.range(0, M, 16):
            v_0 = M - r
            n = pl.min(16, v_0)
            t = pl.load(tmp, [r, 0], [16, 64], valid_shape=[n, 64])
            v_1 = pl.neg(t)
            v_2 = pl.adds(v_1, 0.0)
            v_3 = pl.neg(v_2)
            v_4 = pl.adds(v_3, 0.25)
            v_5 = pl.row_sum(t)
            t_0 = pl.row_expand_add(v_4, v_5)
            v_6 = pl.muls(t_0, s_1)
            pl.store(v_6, [r, 0], c)
"""


def test_a_text_is_a_program(tmp_path: Path) -> None:
    """It reads well, and can be called; a folder gets one per stage, and the kernels."""
    a, c, d = np.random.default_rng(0).random((40, 64), F32), _zeros(40, 64), _zeros(40, 64)
    done = test_interpret.ragged.lower(a, c, dump=tmp_path / "stages")
    assert done.as_python(concise=True) == CONCISE
    found = sorted(p.name for p in (tmp_path / "stages").iterdir())
    assert found[:3] == ["00_after_read.py", "01_after_clean.py", "02_after_results.py"]
    assert [n.rpartition("_after_")[2].partition("_")[2] for n in found if n.endswith(".pto")] == [
        "ragged_incore_0.pto",
        "scale.pto",
    ]
    test_interpret.ragged(a, c)
    for path in (tmp_path / "stages").glob("0[36]_*.py"):
        program = pl.loads_program(path)
        program.interpret(a, d)
        np.testing.assert_array_equal(c, d)
        d[:] = 0
    program(a, d)
    np.testing.assert_array_equal(c, d)


BROKEN = """\
import pto.language as pl

@pl.jit
def f(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at():
        c[:] = pl.exp(b)
"""


def test_places_in_texts() -> None:
    a = _zeros(16, 64)
    with pytest.raises(DiagnosticError) as e:
        pl.parse(BROKEN, "k.py").lower(a, a)
    assert "k.py:6:23: error[PTO-E3002]: unknown name 'b'" in str(e.value)
    pl.parse(BROKEN.replace("(b)", "(a)"))(a, b := _zeros(16, 64))
    assert (b == 1).all()
    for text, said in (("x = (", "'(' was never closed"), ("x = 1", "missing program in")):
        with pytest.raises(DiagnosticError, match=said.replace("(", r"\(")):
            pl.parse_program(text)


@pl.function
def beside(x: pl.Tensor[[16, 64], pl.FP32]) -> pl.Tensor[[16, 64], pl.FP32]:
    return pl.mul(x, 2.0)


@pl.program
class AsCompilersPrint:
    @pl.function
    def total(self, x: pl.Tensor[[16, 64], pl.FP32]) -> pl.Tensor[[16, 64], pl.FP32]:
        """Without regions, it is work of a core; inputs of a loop may lie in memory, its outputs may not."""
        start: pl.Tensor[[16, 64], pl.FP32] = pl.create_tensor([16, 64], dtype=pl.FP32)
        for i, (_,) in pl.range(3, init_values=(start,)):
            count: pl.Scalar[pl.INDEX] = pl.add(i, 1)
            more = pl.add(x, pl.cast(count, pl.FP32))
            last = pl.yield_(more)
        return last

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)
        return out

    @pl.function
    def main(
        self, x: pl.Tensor[[16, 64], pl.FP32], gate: pl.Tensor[[1, 8], pl.INT32],
        copy: pl.Out[pl.Tensor[[16, 64], pl.FP32]], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):  # fmt: skip
        y = beside(x)
        z = self.total(y)
        self.kernel(x, copy, attrs={"arg_directions": [pl.adir.no_dep, pl.adir.output_existing]})
        out, _ = pl.submit(self.kernel, z, out, predicate=(gate[0, 1] > 0))
        return out


def test_programs_as_compilers_print_them() -> None:
    text = AsCompilersPrint.as_python()
    assert pl.parse_program(text).as_python() == text
    assert "def beside" in text and "no_dep_args=[x]" in text
    assert (
        text.count("pl.read(") == 0 and "predicate=(gate[0, 1] > 0)" in text
    )  # asked when a task could begin
    x, copy, out = np.arange(16 * 64, dtype=F32).reshape(16, 64), _zeros(16, 64), _zeros(16, 64)
    AsCompilersPrint(x, np.ones((1, 8), np.int32), copy, out)
    np.testing.assert_array_equal(copy, x)
    np.testing.assert_array_equal(out, x * 2 + 3)
    odd = pl.parse_program(text.replace("no_dep_args=[", "attrs={'priority': 1}, no_dep_args=[", 1))
    assert odd.as_python() == text  # a mark for tools, without a meaning before lowering
    with pytest.raises(DiagnosticError, match="unknown key 'priority' in attrs of a call"):
        odd.lower(x, np.ones((1, 8), np.int32), copy, out)


def _declared(size: Any) -> Any:
    much = pl.dynamic("much")

    @pl.program
    class AsWritten:
        """Legal to read and to print; lowering reports what cannot run."""

        @pl.function(type=pl.FunctionType.InCore)
        def loose(self, x: pl.Tensor[[4, 16, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):
            part = pl.slice(x, [16, 64], [0, 0, 0], [], [])
            half: pl.Tensor[[16, 64], pl.FP16] = pl.muls(part, 2.0)
            t = pl.load(half, [8, 0], [n, 64])
            half = pl.aiv_shard(half, split=2, lane_stride=7)
            for _ in pl.range(pl.min(much, n)):
                part = x[1]
            return pl.cast(part, pl.FP16), t

        @pl.function(type=pl.FunctionType.InCore)
        def work(self, x: pl.Tensor[[size], pl.FP32], out: pl.Out[pl.Tensor[[size], pl.FP32]]):
            n: pl.Scalar[pl.INDEX] = 3
            for i, (a, b) in pl.range(n, init_values=(x, x)):  # who jumps hands on what names are then
                if i > 1:
                    c = pl.add(a, b, attrs={"pipeline_membership": "0:1"})
                else:
                    continue
                left, right = pl.yield_(b, c)
            for k, one in pl.while_(init_values=(n, left)):
                pl.cond(k < 9)
                if k == 5:
                    break
                k, one = pl.yield_(k + 1, right)
            for () in pl.while_(init_values=()):
                pl.cond(n < 2)
            m: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 256)
            t: pl.Tile[[size], pl.FP32, pl.MemRef(m, 0, 256), pl.Mem.Vec] = pl.load(x, [0], [size])
            if k > 2:
                return pl.store(pl.add(t, one), [0], out)
            return pl.store(pl.load(x, [size], [size]), [0], out)

        @pl.function(type=pl.FunctionType.InCore)
        def pair(self, x: pl.Out[pl.Tensor[[16], pl.FP32]], y: pl.Out[pl.Tensor[[16], pl.FP32]]):
            with pl.at(level=pl.Level.HOST):
                self.work(x, y)
            return x, y

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, x: pl.Tensor[[16], pl.FP32], out: pl.Out[pl.Tensor[[16], pl.FP32]]):
            y = pl.add(x, 1.0)
            if pl.get_subblock_idx() == 0:
                z = pl.yield_(x)
            else:
                z = pl.yield_(y)
            tids = pl.array.create(4, pl.TASK_ID)
            other: pl.Array[4, pl.TASK_ID] = tids
            for i, (task,) in pl.parallel(4, init_values=(None,)):
                (_, _), made = pl.submit(self.pair, y, z, deps=[task], attrs={"memory": pl.Mem.Vec})
                j: pl.Scalar[pl.INT32] = i
                other[j] = made
                last = pl.yield_(made)
            pl.submit(
                self.work, z, out, deps=[tids], attrs={"core_num": 4, "compiler_manual_dep_edges": [last]}
            )
            return out

        @pl.function(level=pl.Level.HOST)
        def host(self, x: pl.Tensor[[16], pl.FP32], out: pl.Out[pl.Tensor[[16], pl.FP32]]):
            for r in pl.range(2):
                self.chip(x, out, device=r)

    return AsWritten


def test_programs_are_what_they_say() -> None:
    """Reading and printing refuse less than lowering does."""
    program = _declared(16)
    text = program.as_python()
    assert pl.parse_program(text).as_python() == text
    short = pl.parse_program(text).as_python(concise=True)
    assert pl.parse_program(short).as_python(concise=True) == short
    assert (
        "half: pl.Tensor[[16, 64], pl.FP16] = pl.muls(part, 2.0)" in short
    )  # not visible in the text otherwise
    for part in (
        'much = pl.dynamic("much")',
        "v: pl.Scalar[pl.INDEX] = pl.min(much, n)",
        "pl.slice(x, [1, 16, 64], [0, 0, 0], drop_dims=[0])",
        "half, mode=pl.SplitMode.LEFT_RIGHT, lane_stride=7",
        "self.chip(x, out, device=r)",
        "_, _, made = pl.submit(self.pair, y, z, deps=[task])",
        "pl.spmd_submit(self.work, z, out, core_num=4, deps=[task_0, tids])",
        "task_0 = pl.yield_(made)",
        "other: pl.Array[4, pl.TASK_ID] = tids",
        "for () in pl.while_(init_values=()):",
        "j: pl.Scalar[pl.INT32] = pl.cast(i, pl.INT32)",
    ):
        assert part in text, part
    for old, new, said in (
        (
            "pl.adds(x, 1.0)",
            "pl.adds(x, 1.0, attrs={'manual_dep_edges': [x]})",
            "unsupported attribute 'manual_dep_edges' of pl.adds",
        ),
        (
            "deps=[task]",
            "attrs={'manual_dep_edges': [task]}",
            "unknown key 'manual_dep_edges' in attrs of a call",
        ),
        ("deps=[task]", "device=i", "unexpected keyword argument 'device'"),
    ):
        with pytest.raises(DiagnosticError, match=said):
            pl.parse_program(text.replace(old, new)).as_python()
    x = _zeros(16)
    with pytest.raises(DiagnosticError, match="expected a constant rank of the program"):
        program.lower(x, x)
    rest = {n: m for n, m in program.methods.items() if n != "host"}
    with pytest.raises(DiagnosticError, match=r"cannot use pl.add in an orchestration: it runs on a core"):
        type(program)("Rest", rest).lower(x, x)


def test_a_function_without_regions_is_of_a_core() -> None:
    """The default without a declaration of the level."""
    text = """
@pl.function
def double(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out[:, :] = pl.add(x, x)
    return out
"""
    double, x, out = pl.parse(text), np.ones((16, 64), np.float32), _zeros(16, 64)
    assert "pl.FunctionType.InCore" in double.as_python()
    double(x, out)
    np.testing.assert_array_equal(out, 2 * x)
