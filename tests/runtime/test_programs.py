"""Programs in memory as kernels, their blocks, and mixed tasks: both halves of a program on one cluster."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import runtime
from pto.diag import Source, Span
from pto.runtime import program

EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEDULES: list[dict[str, Any]] = [{"threads": 1}, {"threads": 3}, *({"seed": s} for s in range(5))]

#: Neither addresses nor flags; a view of three dimensions, whose strides are those of the tensor.
SCALE = """\
!view = !pto.tensor_view<?x?x16xf32>
!window = !pto.partition_tensor_view<1x4x16xf32>
!tile = !pto.tile_buf<vec, 4x16xf32>
func.func @scale(%x: !view, %y: !view, %at: index, %by: f32) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %px = pto.partition_view %x, offsets = [%at, %c0, %c0], sizes = [%c1, %c4, %c16] : !view -> !window
  %py = pto.partition_view %y, offsets = [%at, %c0, %c0], sizes = [%c1, %c4, %c16] : !view -> !window
  %t = pto.alloc_tile : !tile
  pto.tload ins(%px : !window) outs(%t : !tile)
  pto.tmuls ins(%t, %by : !tile, f32) outs(%t : !tile)
  pto.tstore ins(%t : !tile) outs(%py : !window)
  return
}
"""

#: Block b leaves b + 1 in its line and, when all have, takes what its right neighbour left.
MEET = """\
!view = !pto.tensor_view<?x16xf32>
!window = !pto.partition_tensor_view<1x16xf32>
!tile = !pto.tile_buf<vec, 1x16xf32>
func.func @meet(%x: !view, %y: !view) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %b = pto.get_block_idx
  %n = pto.get_block_num
  %block = arith.index_cast %b : i64 to index
  %blocks = arith.index_cast %n : i64 to index
  %next = arith.addi %block, %c1 : index
  %other = arith.remsi %next, %blocks : index
  %own = pto.partition_view %x, offsets = [%block, %c0], sizes = [%c1, %c16] : !view -> !window
  %its = pto.partition_view %x, offsets = [%other, %c0], sizes = [%c1, %c16] : !view -> !window
  %out = pto.partition_view %y, offsets = [%block, %c0], sizes = [%c1, %c16] : !view -> !window
  %number = arith.index_cast %next : index to i32
  %value = arith.sitofp %number : i32 to f32
  %t = pto.alloc_tile : !tile
  pto.texpands ins(%value : f32) outs(%t : !tile)
  pto.tstore ins(%t : !tile) outs(%own : !window)
  pto.syncall {mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<aiv_only>}
  pto.tload ins(%its : !window) outs(%t : !tile)
  pto.tstore ins(%t : !tile) outs(%out : !window)
  return
}
"""


@pytest.mark.parametrize("given", ["text", "module"])
def test_a_program_in_memory(given: str) -> None:
    module = pto.parse(SCALE)
    scale = runtime.kernel(SCALE if given == "text" else module, "in inout scalar float")
    assert scale.name == "scale"
    x = np.arange(6 * 4 * 16, dtype=np.float32).reshape(6, 4, 16)

    def orchestrate(rt: Any, y: Any) -> None:
        wide = rt.external(x)
        for i in range(3):
            rt.submit(scale, wide.view([2, 4, 16], [2 * i, 0, 0]), y, i % 2, 2.0 + i)

    for how in SCHEDULES[:4]:
        y = np.zeros((2, 4, 16), np.float32)
        runtime.run(orchestrate, y, **how)
        assert np.array_equal(y, [4 * x[4], 3 * x[3]])


def test_it_is_made_once_for_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(
        program, "image_of", lambda k, *more, of=program.image_of: made.append(k) or of(k, *more)
    )
    module = pto.parse(SCALE)
    x = np.ones((1, 4, 16), np.float32)
    for _ in range(3):
        kernel = runtime.kernel(module, "in out scalar float", entry="scale")
        runtime.run(lambda rt, kernel=kernel: rt.submit(kernel, x, np.zeros_like(x), 0, 2.0), seed=1)
    # a run makes every kernel that there is, those of other tests, too
    assert [k.module for k in made if k.module is module] == [module]


def test_what_fails_is_shown_where_the_operation_comes_from() -> None:
    """A frontend places operations in the user's file: there is the caret."""
    user = Source("user.py", "def scale(x, y):\n    t = load(x)\n    store(t, y)\n")
    module = pto.parse(SCALE)
    for op in module.walk():
        at = user.text.find({"pto.tload": "load", "pto.tstore": "store"}.get(op.name, "def"))
        op.loc = Span(user, at, at + 5)
    scale = runtime.kernel(module, "in out scalar float", name="k")
    x, small = np.ones((2, 4, 16), np.float32), np.zeros((1, 4, 16), np.float32)
    with pytest.raises(pto.DiagnosticError) as caught:
        runtime.run(lambda rt: rt.submit(scale, x, small, 1, 2.0), seed=1)
    (problem,) = caught.value.diagnostics
    assert problem.code == "PTO-E2101" and "%y" in problem.message
    assert problem.span is not None and problem.span.source is user and problem.span.line == 3


def _unlike_halves() -> str:
    text = (EXAMPLES / "runtime/python/cluster_pipe.pto").read_text(encoding="utf-8")
    return text.replace("(%pipe: !pto.ptr<i32>, %y", "(%a: !pto.ptr<f16>, %b: !pto.ptr<f16>, %y")


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        (SCALE, {"core": "aic"}, "runs on a vector core, but its core_type is 'aic'"),
        (SCALE, {"core": "mixed"}, "runs on a vector core, but its core_type is 'mixed'"),
        (SCALE, {"entry": "scael"}, "no function '@scael' to run"),
        (SCALE, {"args": "in out scalar"}, "kernel scale declares 3 parameters ('in out scalar'), "),
        (SCALE.replace("tmuls", "tmulz"), {}, "tmulz"),
        (SCALE.replace("%t, %by", "%t, %at"), {}, "mismatched type of '%at'"),
        (lambda x: None, {"core": "mixed"}, "cannot run a function on core='mixed'"),
        ("kernel.cpp", {"core": "mixed"}, "expected a .pto of two halves for core='mixed', got 'kernel.cpp'"),
        (_unlike_halves, {"core": "mixed", "args": "in in out"}, "parameter 2 holds i32 and f32"),
        (5, {}, "expected a kernel, got int"),
    ],
)  # fmt: skip
def test_what_is_no_kernel(source: Any, more: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"args": "in out scalar float", **more}
    source = source() if source is _unlike_halves else source

    def orchestrate(rt: Any) -> None:
        rt.submit(
            runtime.kernel(source, given.pop("args"), **given), *[np.ones((1, 4, 16), "f4")] * 2, 0, 1.0
        )

    with pytest.raises(pto.DiagnosticError) as caught:
        runtime.run(orchestrate, seed=1)
    assert words in caught.value.diagnostics[0].message


# -- blocks --------------------------------------------------------------------------------------------------


def test_blocks_of_a_program() -> None:
    """They ask which block they are; there may be more of them than cores."""
    add = runtime.kernel(EXAMPLES / "kernels/vector_add.pto", "in in out scalar")
    n = 10 * 2048 + 77
    a, b = np.random.default_rng(0).standard_normal((2, n)).astype(np.float32)
    for how in SCHEDULES:
        for blocks in (1, 7):
            c = np.zeros(n, np.float32)
            runtime.run(lambda rt, c=c, k=blocks: rt.submit(add, a, b, c, n, blocks=k), block_dim=2, **how)
            assert np.array_equal(c, a + b)


@pytest.mark.parametrize("said", [True, False], ids=["sync_start", "not said"])
def test_blocks_that_start_together_meet(said: bool) -> None:
    """Several such tasks, and others, need the same cores: none waits for ever with half of its blocks, also
    if only the barrier in the kernel shows that they have to start together."""
    meet = runtime.kernel(MEET, "inout out")
    other = runtime.kernel(SCALE, "in out scalar float")
    expected = np.repeat(np.roll(np.arange(4) + 1.0, -1)[:, None], 16, 1)

    def orchestrate(rt: Any, out: Any) -> None:
        z = np.ones((1, 4, 16), np.float32)
        for y in out:
            rt.submit(other, z, rt.tensor(z.shape), 0, 1.0)
            x = rt.tensor(y.shape)
            rt.submit(zero, x)
            rt.submit(meet, x, y, blocks=4, sync_start=said)

    zero = runtime.kernel(lambda x: x.fill(0), "out", name="zero")
    for how in SCHEDULES:
        out = np.zeros((5, 4, 16), np.float32)
        runtime.run(orchestrate, out, block_dim=2, **how)
        assert all(np.array_equal(y, expected) for y in out), how


@pytest.mark.parametrize(("core", "blocks", "cores"), [("aiv", 5, 4), ("aic", 3, 2)])
def test_too_many_to_start_together(core: str, blocks: int, cores: int) -> None:
    any_core = runtime.kernel(lambda x, count, block: None, "inout", core=core, name="any_core")
    x = np.zeros(4, np.float32)
    with pytest.raises(
        pto.DiagnosticError, match=f"{blocks} blocks cannot start together: there are {cores}"
    ):
        runtime.run(lambda rt: rt.submit(any_core, x, blocks=blocks, sync_start=True), block_dim=2)
    with pytest.raises(pto.DiagnosticError, match="are placed by the runtime"):
        runtime.run(
            lambda rt: rt.submit(any_core, x, blocks=1, cluster=rt.allocate_cluster(), sync_start=True)
        )


# -- mixed tasks ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gelu() -> Any:
    """gelu(x * w + bias): the cube core pushes products, each of two vector cores pops half of every one."""
    reference = runpy.run_path(str(EXAMPLES / "kernels/reference.py"))
    return reference["mixed_fifo"](np.random.default_rng(1))


@pytest.mark.parametrize("block_dim", [1, 3])
@pytest.mark.parametrize("blocks", [0, 2])
def test_mixed(gelu: Any, block_dim: int, blocks: int) -> None:
    """Cube and vector halves run at one time, on one cluster for each block; a task for one core comes in
    between, and another that waits for all of it."""
    (x, w, bias, _, slots, rows), expected = gelu
    rows = rows if blocks else rows // 4
    mixed = runtime.kernel(EXAMPLES / "kernels/mixed_fifo.pto", "in in in out inout scalar", core="mixed")
    one = runtime.kernel(lambda n: np.add(n, 1, out=n), "inout", name="one")
    total = runtime.kernel(lambda y, out: out.fill(np.sum(y)), "in out", name="total")

    def orchestrate(rt: Any, y: Any, n: Any, out: Any) -> None:
        for _ in range(4):
            rt.submit(one, n)
        for again in range(2):
            rt.submit(mixed, x, w, bias, y[again], rt.external(slots), rows, blocks=blocks)
            rt.submit(total, y[again], out[again : again + 1])
            rt.submit(one, n)

    for how in SCHEDULES:
        y, n, out = np.zeros((2, rows, 64), "f4"), np.zeros(1, "i4"), np.zeros(2, "f4")
        run = runtime.run(orchestrate, y, n, out, block_dim=block_dim, record=True, **how)
        assert np.allclose(y, expected[3][:rows], rtol=1e-5, atol=1e-5), how
        assert n[0] == 6 and np.allclose(out, y.sum(axis=(1, 2)), rtol=1e-5)
        assert {(4, 5), (7, 8)} <= {(int(e["pred"]), int(e["succ"])) for e in run.records.edges}
        tasks = run.records.tasks[np.isin(run.records.tasks["task_id"], [4, 7])]
        assert len(tasks) == 2 * 3 * max(blocks, 1)
        for block in np.unique(tasks["block"]):
            mine = tasks[(tasks["task_id"] == 4) & (tasks["block"] == block)]
            aic = int(mine["core"][mine["core_type"] == 0][0])
            aivs = sorted(mine["core"][mine["core_type"] == 1].tolist())
            assert aivs == [block_dim + 2 * aic, block_dim + 2 * aic + 1]
        assert {run.records.names[f] for f in tasks["func_id"]} == {"mixed_fifo_aic", "mixed_fifo_aiv"}


def _exponents() -> tuple[str, runtime.Kernel]:
    """A program of two halves, each a kernel, and the whole: a half that has fewer parameters takes the first
    ones."""
    text = (EXAMPLES / "runtime/python/cluster_pipe.pto").read_text(encoding="utf-8")
    given = "%a: !pto.ptr<f16>, %b: !pto.ptr<f16>"
    whole = text.replace(f"{given}, %pipe: !pto.ptr<i32>", given).replace("%pipe: !pto.ptr<i32>", given)
    return text, runtime.kernel(whole, "in in out", core="mixed")


def test_a_mixed_task_of_one_lane_on_an_allocated_cluster() -> None:
    """The cores of a mixed task share private state: a group of tasks that holds the cluster has its FIFO as
    it was."""
    text, whole = _exponents()
    push = runtime.kernel(text, "in in pipe_out", core="aic", name="push")
    pop = runtime.kernel(text, "pipe_in out", name="pop")
    a, b = (np.random.default_rng(2).standard_normal((2, 6, 16, 16)) / 4).astype(np.float16)

    def orchestrate(rt: Any, y: Any) -> None:
        with rt.cluster() as cluster:
            pipe = rt.pipe()
            rt.submit(push, a[0], b[0], pipe, cluster=cluster)
            for i in range(1, 6):
                rt.submit(whole, a[i], b[i], y[i], cluster=cluster if i % 2 else -1)
            rt.submit(pop, pipe, y[0], cluster=cluster)

    for how in SCHEDULES:
        y = np.zeros((6, 16, 16), np.float32)
        runtime.run(orchestrate, y, block_dim=1, **how)
        assert np.allclose(y, np.exp(a.astype("f4") @ b.astype("f4")), rtol=1e-5), how


def test_graphs_have_no_mixed_tasks_but_programs_in_memory() -> None:
    _, whole = _exponents()
    a, y = np.ones((16, 16), np.float16), np.zeros((16, 16), np.float32)
    with pytest.raises(
        pto.DiagnosticError, match="unsupported mixed task: host_build_graph has no mixed tasks"
    ):
        runtime.run(lambda rt: rt.add_task(whole, a, a, y), runtime="host_build_graph")
    half = SCALE.replace("?x?x16", "1x4x16")
    scale, z = runtime.kernel(half, "in out scalar float"), np.zeros((1, 4, 16), np.float32)
    runtime.run(lambda rt: rt.add_task(scale, z + 2, z, 0, 3.0), runtime="host_build_graph")
    assert set(z.flat) == {6.0}


def test_a_mixed_task_with_a_predicate_and_deps() -> None:
    _, whole = _exponents()
    a = np.ones((16, 16), np.float16)
    y, flag = np.zeros((2, 16, 16), np.float32), np.zeros(1, np.int32)

    def orchestrate(rt: Any) -> None:
        with rt.manual_scope():
            last = None
            for i in range(2):
                last = rt.submit(whole, a, a, y[i], deps=[last], predicate=(flag, 0, "==", i))

    run = runtime.run(orchestrate, seed=3, record=True)
    assert y[0, 0, 0] > 0 and not y[1].any()
    assert run.records.edges[["pred", "succ", "kind"]].tolist() == [(0, 1, 3)]
