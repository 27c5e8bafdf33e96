"""Long runs stay cheap: what is ordered is forgotten, whatever its shape, and a block that ended leaves nothing."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.counting import calls

import pto
from pto.engine.access import Access
from pto.engine.region import Region, blocked
from pto.engine.sanitize.access_index import AccessIndex
from pto.engine.sanitize.clock import Clock
from pto.engine.sanitize.race import RaceChecker
from pto.engine.sanitize.race_access import Touch
from pto.engine.sanitize.undef import Undef
from pto.engine.sanitize.undefined_bytes import Origin
from pto.engine.sanitize.vecscope import VecscopeHazards
from pto.engine.watch import WatchedLaunch

TILE = "!pto.tile_buf<vec, 4x16xf32, valid=4x12>"
VIEW = "!pto.partition_tensor_view<4x12xf32>"


def flags(*pairs: tuple[str, str, str]) -> str:
    return "\n".join(f"pto.{k}[<PIPE_{a}>, <PIPE_{b}>, <EVENT_ID0>]" for k, a, b in pairs)


LOOP = f"""module attributes {{pto.target_arch = "a3"}} {{
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c12 = arith.constant 12 : index
  %c16 = arith.constant 16 : index
  %a0 = arith.constant 0 : i64
  %v = pto.make_tensor_view %x, shape = [%c4, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xf32>
  %w = pto.make_tensor_view %y, shape = [%c4, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xf32>
  %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c4, %c12] : !pto.tensor_view<?x?xf32> -> {VIEW}
  %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c4, %c12] : !pto.tensor_view<?x?xf32> -> {VIEW}
  %t = pto.alloc_tile addr = %a0 : {TILE}
  scf.for %i = %c0 to %n step %c1 {{
    pto.tload ins(%p : {VIEW}) outs(%t : {TILE})
    {flags(("set_flag", "MTE2", "V"), ("wait_flag", "MTE2", "V"))}
    pto.texp ins(%t : {TILE}) outs(%t : {TILE})
    pto.barrier <PIPE_ALL>
    pto.tstore ins(%t : {TILE}) outs(%q : {VIEW})
    pto.barrier <PIPE_ALL>
    %s = pto.load_scalar %x[%c0] : !pto.ptr<f32> -> f32
    pto.store_scalar %s, %y[%c16] : !pto.ptr<f32>, f32
    pto.barrier <PIPE_ALL>
  }}
  return
}}
}}
"""


def test_a_loop_over_ragged_tiles_and_scalars_keeps_few_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    compare = RaceChecker._compare

    def counting(self: RaceChecker, new: Touch, seen: AccessIndex) -> None:
        lengths.append(len(seen))
        compare(self, new, seen)

    monkeypatch.setattr(RaceChecker, "_compare", counting)
    kernel = pto.kernel(pto.parse(LOOP), engine="reference")
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    result = kernel.run(x, y, 200, sanitize="all", out=io.StringIO())
    assert result.ok, result.diagnostics
    assert len(lengths) > 1000 and max(lengths) < 16


VECSCOPE = """module attributes {pto.target_arch = "a5"} {
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c1024 = arith.constant 1024 : index
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 4096 : i64
  %one = arith.constant 1 : i64
  %from = arith.constant 0 : i32
  %a = pto.castptr %a0 : i64 -> !pto.ptr<f32, ub>
  %b = pto.castptr %a1 : i64 -> !pto.ptr<f32, ub>
  pto.mte_gm_ub %x, %a, %a0, %a1 nburst(%one, %a1, %a1) : !pto.ptr<f32>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
  pto.barrier <PIPE_ALL>
  pto.vecscope {
    %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
    %steps = pto.vci %from : i32 -> !pto.vreg<64xi32>
    %at = pto.vbitcast %steps : !pto.vreg<64xi32> -> !pto.vreg<64xui32>
    scf.for %r = %c0 to %n step %c1 {
      scf.for %i = %c0 to %c1024 step %c64 {
        %v = pto.vlds %a[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
        pto.vsts %v, %b[%i], %all : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
      }
      %g = pto.vgather2 %a, %at, %all : !pto.ptr<f32, ub>, !pto.vreg<64xui32>, !pto.mask<b32> -> !pto.vreg<64xf32>
      pto.vscatter %g, %b, %at, %all : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.vreg<64xui32>, !pto.mask<b32>
    }
  }
  {between}
  pto.mte_ub_gm %b, %y, %a1 nburst(%one, %a1, %a1) : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64
  return
}
}
"""


def test_a_long_vecscope_keeps_few_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """All its instructions are one event, so that none of them is ordered after another."""
    lengths: list[int] = []
    compare = RaceChecker._compare

    def counting(self: RaceChecker, new: Touch, seen: AccessIndex) -> None:
        lengths.append(len(seen))
        compare(self, new, seen)

    monkeypatch.setattr(RaceChecker, "_compare", counting)
    x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    kernel = pto.kernel(
        pto.parse(VECSCOPE.replace("{between}", "pto.barrier <PIPE_ALL>")), engine="reference"
    )
    assert kernel.run(x, y, 20, sanitize="race").ok and (x == y).all()
    assert len(lengths) > 600 and max(lengths) < 8
    # what was joined is still there: a copy out that waits for nothing races with all of it
    lines = VECSCOPE.replace("{between}", "").splitlines()
    for left_out, what in (("nothing", "4096..4352 of UB"), ("vscatter", "4096..8192 of UB")):
        kernel = pto.kernel(
            pto.parse("\n".join(line for line in lines if left_out not in line)), engine="reference"
        )
        (found,) = kernel.run(x, y, 20, sanitize="race").diagnostics
        assert found.code == "PTO-E2201" and what in found.message, found


def test_blocks_that_ended_leave_no_accesses_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    from pto.engine.reference.grid import Grid

    seen: list[Grid] = []
    go = Grid.go

    def remembering(self: Grid) -> bool:
        seen.append(self)
        return go(self)

    monkeypatch.setattr(Grid, "go", remembering)
    kernel = pto.kernel(pto.parse(LOOP), engine="reference")
    kernel.run(np.zeros(64, np.float32), np.zeros(64, np.float32), 1, blocks=20, sanitize="race")
    kept = {key for buffer in seen[0].gm.buffers for key in buffer.shadows}
    assert kept == {"blocks"}


def access(region: Region) -> Touch:
    event = SimpleNamespace(core=None, op=SimpleNamespace(row=None), pipe="V", scope=None, number=0)
    return Touch(event, (0, 1, []), Clock("a5"), Access(None, region, None, True), False)  # type: ignore[arg-type]


def test_an_access_is_covered_by_one_without_gaps_or_with_the_same() -> None:
    def rows(first: int, count: int, cols: int = 16) -> Touch:
        return access(Region(first * 64, blocked(0, count, 1, 16, 0), blocked(0, cols, 1, 1, 0), 32))

    assert rows(0, 8).covers(rows(0, 8)) and rows(0, 8).covers(rows(2, 4))
    assert not rows(0, 4).covers(rows(0, 8)) and not rows(2, 6).covers(rows(0, 4))
    assert rows(0, 8).covers(rows(0, 8, 12)), "gaps of the older one do not matter"
    assert rows(0, 8, 12).covers(rows(0, 8, 12))
    assert not rows(0, 8, 12).covers(rows(0, 8)) and not rows(0, 8, 12).covers(rows(0, 8, 10))
    assert not rows(0, 8, 12).covers(rows(1, 8, 12))


# -- what is kept does not grow with the iterations ---------------------------------------------------------

#: A sum in a tile that nobody wrote: every iteration reads what the one before made of it.
CARRIED = """module attributes {pto.target_arch = "a3"} {
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 4096 : i64
  %t = pto.alloc_tile addr = %a0 : !pto.tile_buf<vec, 4x16xf32>
  %u = pto.alloc_tile addr = %a1 : !pto.tile_buf<vec, 4x16xf32>
  scf.for %i = %c0 to %n step %c1 {
    pto.tadd ins(%t, %t : !pto.tile_buf<vec, 4x16xf32>, !pto.tile_buf<vec, 4x16xf32>) outs(%u : !pto.tile_buf<vec, 4x16xf32>)
    pto.barrier <PIPE_V>
    pto.tneg ins(%u : !pto.tile_buf<vec, 4x16xf32>) outs(%t : !pto.tile_buf<vec, 4x16xf32>)
    pto.barrier <PIPE_V>
  }
  return
}
}
"""

#: Gathers from places that are others every time: no read stands for one before it as a whole.
GATHERS = """module attributes {pto.target_arch = "a3"} {
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 4096 : i64
  %a2 = arith.constant 8192 : i64
  %zero = arith.constant 0.0 : f32
  %c37 = arith.constant 37 : i32
  %c63 = arith.constant 63 : i32
  %t = pto.alloc_tile addr = %a0 : !pto.tile_buf<vec, 4x64xf32>
  %at = pto.alloc_tile addr = %a1 : !pto.tile_buf<vec, 1x8xi32>
  %a3 = arith.constant 12288 : i64
  %tmp = pto.alloc_tile addr = %a3 : !pto.tile_buf<vec, 1x8xi32>
  %u = pto.alloc_tile addr = %a2 : !pto.tile_buf<vec, 1x8xf32>
  pto.texpands ins(%zero : f32) outs(%t : !pto.tile_buf<vec, 4x64xf32>)
  pto.barrier <PIPE_V>
  scf.for %i = %c0 to %n step %c1 {
    %k = arith.index_cast %i : index to i32
    %m = arith.muli %k, %c37 : i32
    %first = arith.andi %m, %c63 : i32
    pto.texpands ins(%first : i32) outs(%at : !pto.tile_buf<vec, 1x8xi32>)
    pto.barrier <PIPE_V>
    pto.tgather ins(%t, %at, %tmp : !pto.tile_buf<vec, 4x64xf32>, !pto.tile_buf<vec, 1x8xi32>, !pto.tile_buf<vec, 1x8xi32>) outs(%u : !pto.tile_buf<vec, 1x8xf32>)
    pto.barrier <PIPE_V>
  }
  return
}
}
"""


def kept(program: str, times: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return the data of sanitizers at the end of a loop of that many iterations: accesses, origins, lengths
    of ways back.
    """
    accesses: set[AccessIndex] = set()
    watching: list[Undef] = []
    started, add = Undef.launch_started, AccessIndex.add

    def adding(self: AccessIndex, new: Touch) -> None:
        accesses.add(self)
        add(self, new)

    def starting(self: Undef, launch: WatchedLaunch) -> None:
        watching.append(self)
        started(self, launch)

    monkeypatch.setattr(AccessIndex, "add", adding)
    monkeypatch.setattr(Undef, "launch_started", starting)
    x, y = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    pto.kernel(pto.parse(program), engine="reference").run(x, y, times, sanitize="all")
    undefined = watching[0].undefined
    return {
        "accesses": sum(len(seen) for seen in accesses),
        "origins": len(undefined.origins.all),
        "numbers": len(undefined.origins),
        "way": max(way(origin) for origin in undefined.origins.all),
    }


def way(origin: Origin | None) -> int:
    return 0 if origin is None else 1 + way(origin.parent)


@pytest.mark.parametrize("program", [LOOP, CARRIED, GATHERS], ids=["loop", "carried", "gathers"])
def test_ten_times_the_iterations_keep_no_more(program: str) -> None:
    kept_of = []
    for times in (100, 1000):
        with pytest.MonkeyPatch.context() as patch:
            kept_of.append(kept(program, times, patch))
    assert kept_of[0] == kept_of[1]
    assert kept_of[0]["accesses"] < 100 and kept_of[0]["way"] < 8


def test_a_long_vecscope_keeps_its_instructions_and_not_its_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[VecscopeHazards] = []
    started = VecscopeHazards.started

    def starting(self: VecscopeHazards) -> None:
        seen.append(self)
        started(self)

    monkeypatch.setattr(VecscopeHazards, "started", starting)
    x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    kernel = pto.kernel(
        pto.parse(VECSCOPE.replace("{between}", "pto.barrier <PIPE_ALL>")), engine="reference"
    )
    for times in (2, 20):
        assert kernel.run(x, y, times, sanitize="race").ok
    assert seen[1].count > 9 * seen[0].count
    assert [len(hazards.ops) for hazards in seen] == [4, 4]


STEADY = """!tile = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.partition_tensor_view<16x64xf32>
module attributes {pto.target_arch = "a3"} {
func.func @k(%x: !view, %y: !view, %n: index) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 4096 : i64
  %s = pto.alloc_tile addr = %a0 : !tile
  %t = pto.alloc_tile addr = %a1 : !tile
  scf.for %i = %c0 to %n step %c1 {
    pto.tload ins(%x : !view) outs(%s : !tile)
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.tadd ins(%s, %s : !tile, !tile) outs(%t : !tile)
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.tstore ins(%t : !tile) outs(%y : !view)
    pto.barrier <PIPE_ALL>
  }
  return
}
}
"""


def test_a_loop_finds_out_once_what_does_not_change() -> None:
    """Calls of functions per iteration, of a loop that does the same again under all sanitizers."""
    kernel = pto.kernel(pto.parse(STEADY), engine="reference")
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    kernel.run(x, y, 1, sanitize="all")
    few, many = (calls(lambda n=n: kernel.run(x, y, n, sanitize="all")) for n in (20, 60))
    assert (many - few) / 40 < 1000  # 1100 where every instruction found its regions and flags out anew
    assert (y == 2).all()


LARGE = """
import resource
import numpy as np
import pto.language as pl

@pl.jit
def rows(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
    for i in pl.parallel(4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i, 0], [1, 64]), [i, 0], y)

x = np.ones((1 << 15, 256), np.float32)
y = np.zeros_like(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert rows.run(x, y, sanitize="all").ok
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 // x.nbytes)
"""


def test_large_arrays_take_memory_where_tasks_access_them(tmp_path: Path) -> None:
    """Tables with a number for each byte are empty pages elsewhere."""
    (tmp_path / "rows.py").write_text(LARGE)
    done = subprocess.run([sys.executable, tmp_path / "rows.py"], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8, "times the size of an array"
