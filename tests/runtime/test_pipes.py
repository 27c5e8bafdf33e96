"""FIFOs between the cube task and the vector task of a cluster, and other things that cores of a task share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import runtime

SOURCE = Path(__file__).parents[2] / "examples/runtime/python/cluster_pipe.pto"

product = runtime.kernel(SOURCE, "in in pipe_out", core="aic", name="product")
exponent = runtime.kernel(SOURCE, "pipe_in out", core="aiv", name="exponent")


def _inputs(count: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(count)
    a, b = (rng.standard_normal((2, count, 16, 16)) / 4).astype(np.float16)
    return a, b, np.zeros((count, 16, 16), np.float32)


def _pairs(rt: Any, a: Any, b: Any, y: Any) -> None:
    for i in range(len(a)):
        with rt.scope(), rt.cluster() as cluster:
            pipe = rt.pipe()
            rt.submit(product, a[i], b[i], pipe, cluster=cluster)
            rt.submit(exponent, pipe, y[i], cluster=cluster)


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 3}, *({"seed": s} for s in range(5))], ids=str)
@pytest.mark.parametrize("block_dim", [1, 3])
def test_through_the_pipe_of_a_cluster(block_dim: int, how: dict[str, Any]) -> None:
    """block_incore with clusters: data flows through the local interconnect (TPUSH/TPOP) within each cluster,
    PIPE_IN and PIPE_OUT are tensors of minimal shape. Whichever of the two vector cores takes the task."""
    a, b, y = _inputs(7)
    run = runtime.run(_pairs, a, b, y, block_dim=block_dim, record=True, **how)
    assert np.allclose(y, np.exp(a.astype("f4") @ b.astype("f4")), rtol=1e-5)
    for pair in run.records.tasks.reshape(-1, 2):
        assert len(set(pair["cluster"])) == 1


def test_a_group_has_its_entries_in_order() -> None:
    """Several entries wait in the pipe at a time, as many as it has slots."""
    a, b, y = _inputs(6)

    def orchestrate(rt: Any) -> None:
        with rt.cluster() as cluster:
            order = rt.tensor(1, "i32")
            for i in range(6):
                rt.submit(product, a[i], b[i], order, cluster=cluster)  # the same cube core: one by one
            for i in range(6):
                rt.submit(exponent, order, y[i], cluster=cluster)

    runtime.run(orchestrate, seed=1, block_dim=2, track_war=True)
    expected = np.exp(a.astype("f4") @ b.astype("f4"))
    found = [int(np.argmin([np.abs(e - one).max() for e in expected])) for one in y]
    assert sorted(found) == list(range(6))


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 2}, {"seed": 3}], ids=str)
def test_e2624_nobody_pushes(how: dict[str, Any]) -> None:
    y = np.zeros((16, 16), np.float32)

    def orchestrate(rt: Any) -> None:
        with rt.cluster() as cluster:
            rt.submit(exponent, np.zeros(1, np.int32), y, cluster=cluster)

    with pytest.raises(pto.DiagnosticError) as caught:
        runtime.run(orchestrate, block_dim=1, **how)
    (problem,) = caught.value.diagnostics
    assert problem.code == "PTO-E2624" and "which was not pushed" in problem.message


def test_more_blocks_than_cores_cannot_meet(tmp_path: Path) -> None:
    """A barrier of all would wait for ever, or be none; where there are enough cores, they start together."""
    source = tmp_path / "meet.cpp"
    source.write_text("""\
#include <cstdint>
#include <pto/pto-inst.hpp>
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const int how = static_cast<int>(args[1]);
  if (how == 2) {
    pto::SYNCALL<pto::SyncCoreType::AIVOnly>();
  } else {
    ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(how, 3));
    wait_flag_dev(3);
  }
}
""")
    meet = runtime.kernel(source, "inout scalar")
    x = np.zeros(4, np.float32)
    for how in (0, 2):
        with pytest.raises(
            pto.DiagnosticError, match="a grid barrier in a task of 3 blocks that do not start together"
        ) as caught:
            runtime.run(lambda rt, how=how: rt.submit(meet, x, how, blocks=3), block_dim=1)
        assert caught.value.diagnostics[0].code == "PTO-E2622"
        runtime.run(lambda rt, how=how: rt.submit(meet, x, how), block_dim=1)  # a single lane has met all
    for way in ({"threads": 1}, {"threads": 2}, {"seed": 3}):
        runtime.run(lambda rt: [rt.submit(meet, x, 2, blocks=2) for _ in range(3)], block_dim=1, **way)
    runtime.run(lambda rt: rt.submit(meet, x, 1, blocks=300), block_dim=1)  # those of one block meet in any
