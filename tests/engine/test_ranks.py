"""Several ranks in one launch: windows and accesses to them, blocks and barriers of each rank, the output of
the tools. Communication against NumPy is in `test_rank_matrix`. Broken programs of ranks are in the corpus
(`tests/sanitize/programs/rank_*`).
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import pto
from pto.diag import DiagnosticError
from pto.engine.ranks import World
from pto.engine.result import LaunchResult
from pto.engine.sanitize.messages import Messages

from .programs import program

EXAMPLES = Path(__file__).parents[2] / "examples" / "ranks"

#: Constants, the own number, and the distance to the window of each of so many ranks in elements of 4 bytes.
HEAD = """
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%size = arith.constant 4 : i64
%one = arith.constant 1 : i32
%both = pto.load_scalar %ctx[%c2] : !pto.ptr<i64> -> i64
%low = arith.trunci %both : i64 to i32
%rank = arith.index_cast %low : i32 to index
%first = arith.constant 4 : index
%own = arith.addi %rank, %first : index
%here = pto.load_scalar %ctx[%own] : !pto.ptr<i64> -> i64
"""


def far(rank: int) -> str:
    """The distance to a rank, as %far0, .."""
    return f"""
%slot{rank} = arith.constant {4 + rank} : index
%at{rank} = pto.load_scalar %ctx[%slot{rank}] : !pto.ptr<i64> -> i64
%bytes{rank} = arith.subi %at{rank}, %here : i64
%words{rank} = arith.divsi %bytes{rank}, %size : i64
%far{rank} = arith.index_cast %words{rank} : i64 to index
"""


def kernel(body: str, arguments: str, engine: str | None = "reference") -> Any:
    return pto.kernel(pto.parse(program(HEAD + body, arguments, "attributes {pto.entry}")), engine=engine)


#: Those that compile take long: they have programs of their own.
engines = pytest.mark.parametrize("engine", ["reference", "native"])


def codes(result: LaunchResult) -> list[str]:
    return [d.code for d in result.diagnostics]


# -- windows -----------------------------------------------------------------------------------------------


def test_windows_lie_at_the_same_place_of_every_rank() -> None:
    world = pto.ranks(3, window_bytes=4096)
    a, b = world.window((2, 4)), world.window(3, "i16")
    assert (a.offset, a.size, b.offset, b.size) == (0, 32, 32, 6)
    for rank in range(3):
        a[rank][:] = rank
        b[rank][:] = -rank
    assert [v.tolist() for v in (a[1][0], b[2])] == [[1.0] * 4, [-2] * 3]
    words = world.context_of(1, 1 << 40)
    assert words[2] == 3 << 32 | 1 and words[3] == 4096
    assert words[4:8].tolist() == [1 << 40, (1 << 40) + 4096, (1 << 40) + 8192, 0]
    assert words[68:71].tolist() == words[4:7].tolist() and words.nbytes == 1056


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: pto.ranks(0), "1 to 64 ranks"),
        (lambda: pto.ranks(65), "1 to 64 ranks"),
        (lambda: pto.ranks(2, window_bytes=4096).window((64, 64)), "pass a larger window_bytes"),
        (lambda: pto.ranks(2).window(4, "f33"), "unknown element type 'f33'"),
        (lambda: pto.ranks(2).run(None, [[1]]), "expected arguments for 2 ranks, got them for 1"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
    with pytest.raises(IndexError):
        pto.ranks(2).window(4)[2]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_the_examples(count: int) -> None:
    world = pto.ranks(count, window_bytes=1 << 18)
    steps = max(1, 2 * (count - 1))
    slots, signals = world.window((8 * steps, 64)), world.window(steps, "i32")
    rng = np.random.default_rng(count)
    x = [rng.integers(-99, 99, (8 * count, 64)).astype(np.float32) for _ in range(count)]
    y = [np.zeros((8 * count, 64), np.float32) for _ in range(count)]
    module = pto.parse(EXAMPLES / "02_ring_all_reduce.pto")
    all_reduce = pto.kernel(module)
    options: list[tuple[str, dict[str, Any]]] = [
        ("native", {}),
        ("native", {"threads": 2}),
        ("native", {"processes": True}),
        ("cpp", {}),
        ("cpp", {"processes": True}),
        ("reference", {"sanitize": "all"}),
        ("reference", {"schedule": 5}),
    ]
    for engine, more in options:
        if engine == "cpp":
            all_reduce = pto.kernel(module, engine="cpp")
        elif engine == "reference":
            all_reduce = pto.kernel(module, engine="reference")
        for rank in range(count):
            signals[rank][:] = 0
            y[rank][:] = 0
        result = world.run(all_reduce, lambda r: [x[r], slots, signals, world.context, y[r]], **more)
        assert result.diagnostics == [] and result.engine == engine
        for rank in range(count):
            np.testing.assert_array_equal(y[rank], sum(x))


WAYS: list[dict[str, Any]] = [{}, {"processes": True}, {"sanitize": "all"}, {"schedule": 3}]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_expert_dispatch(count: int) -> None:
    k = pto.kernel(pto.parse(EXAMPLES / "05_expert_dispatch.pto"))
    rng = np.random.default_rng(count)
    x = [rng.standard_normal((8, 64)).astype(np.float32) for _ in range(count)]
    expert = [rng.integers(0, count, 8).astype(np.int32) for _ in range(count)]
    for more in WAYS:
        world = pto.ranks(count, window_bytes=1 << 16)
        windows = [world.window((8 * count, 64)), world.window(8 * count, "i32"), world.window(1, "i32")]
        y = [np.zeros((8 * count, 64), np.float32) for _ in range(count)]
        got = [np.zeros(1, np.int32) for _ in range(count)]
        arguments = [[x[r], expert[r], *windows, world.context, y[r], got[r]] for r in range(count)]
        assert world.run(k, arguments, **more).diagnostics == []
        for rank in range(count):
            want = np.concatenate([x[r][expert[r] == rank] for r in range(count)])
            assert got[rank][0] == len(want)
            np.testing.assert_array_equal(y[rank][: len(want)], want)


@pytest.mark.parametrize("count", [1, 3])
def test_all_gather_matmul(count: int) -> None:
    """Both vector cores of a block add to one signal: each of them signals its own half."""
    k = pto.kernel(pto.parse(EXAMPLES / "06_all_gather_matmul.pto"))
    rng = np.random.default_rng(count)
    a = [rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(count)]
    b = rng.integers(-4, 5, (64, 64)).astype(np.float16)
    want = np.concatenate(a).astype(np.float64) @ b.astype(np.float64)
    for more in WAYS:
        world = pto.ranks(count, window_bytes=1 << 16)
        windows = [world.window((64, 64), "f16"), world.window(count, "i32")]
        c = [np.zeros((64 * count, 64), np.float32) for _ in range(count)]
        arguments = [[a[r], b, *windows, world.context, c[r]] for r in range(count)]
        assert world.run(k, arguments, **more).diagnostics == []
        for made in c:
            np.testing.assert_array_equal(made, want)


# -- blocks and cores of ranks -----------------------------------------------------------------------------

COUNT = """
%block = pto.get_block_idx
%blocks = pto.get_block_num
%ten = arith.constant 10 : i64
%b = arith.muli %block, %ten : i64
%sum = arith.addi %b, %blocks : i64
%at = arith.index_cast %block : i64 to index
pto.store_scalar %sum, %out[%at] : !pto.ptr<i64>, i64
pto.print ins("block %d\\0A", %block : i64)
pto.syncall {{core_type = "mix"}}
%last = pto.load_scalar %out[%c1] : !pto.ptr<i64> -> i64
%two = arith.constant 2 : index
%there = arith.addi %at, %two : index
pto.store_scalar %last, %out[%there] : !pto.ptr<i64>, i64
""".replace("{{", "{").replace("}}", "}")


@engines
def test_every_rank_has_blocks_and_barriers_of_its_own(engine: str) -> None:
    k = kernel(COUNT, "%ctx: !pto.ptr<i64>, %out: !pto.ptr<i64>", engine)
    world = pto.ranks(3)
    outs = [np.full(4, -1, np.int64) for _ in range(3)]
    said = io.StringIO()
    more: dict[str, Any] = {"sanitize": "all"} if engine == "reference" else {}
    result = world.run(k, [[world.context, out] for out in outs], blocks=2, out=said, **more)
    assert result.diagnostics == []
    assert [out.tolist() for out in outs] == [[2, 12, 12, 12]] * 3
    assert sorted(said.getvalue().splitlines()) == sorted(
        f"rank {rank}: block {block}" for rank in range(3) for block in range(2)
    )


@engines
def test_a_rank_may_ask_until_another_answers(engine: str) -> None:
    """Neither a failing test nor a loop around it keeps another rank, or a later block of it, from going on."""
    body = f"""{far(0)}
    %true = arith.constant true
    %block = pto.get_block_idx
    %at = arith.index_cast %block : i64 to index
    %is = arith.cmpi eq, %rank, %c0 : index
    %mine = pto.make_tensor_view %sig, shape = [%c1, %c1], strides = [%c1, %c1] : !pto.tensor_view<1x1xi32>
    scf.if %is {{
      %cell = arith.constant 2 : i32
      scf.while (%going = %true) : (i1) -> () {{
        scf.condition(%going)
      }} do {{
        %done = pto.ttest(%mine, %cell : !pto.tensor_view<1x1xi32>, i32) {{cmp = #pto<wait_cmp ge>}} -> i1
        %more = arith.xori %done, %true : i1
        scf.yield %more : i1
      }}
    }} else {{
      %there = pto.addptr %sig, %far0 : !pto.ptr<i32> -> !pto.ptr<i32>
      %theirs = pto.make_tensor_view %there, shape = [%c1, %c1], strides = [%c1, %c1] : !pto.tensor_view<1x1xi32>
      pto.tnotify(%theirs, %one : !pto.tensor_view<1x1xi32>, i32) {{notifyOp = #pto<notify_op AtomicAdd>}}
    }}"""
    k = kernel(body, "%ctx: !pto.ptr<i64>, %sig: !pto.ptr<i32>", engine)
    for more in ({}, {"schedule": 1}, {"schedule": 2}) if engine == "reference" else ({}, {"threads": 2}):
        world = pto.ranks(2)
        signal = world.window(1, "i32")
        result = world.run(k, [[world.context, signal]] * 2, blocks=2, timeout=20, **more)
        assert result.ok, result.diagnostics
        assert signal[0][0] == 2


@engines
def test_a_rank_may_look_until_another_has_written(engine: str) -> None:
    """Plain loads in a loop, which nothing waits in."""
    body = f"""{far(0)}
    %is = arith.cmpi eq, %rank, %c0 : index
    scf.if %is {{
      scf.while (%going = %c0) : (index) -> () {{
        %found = pto.load_scalar %flag[%c0] : !pto.ptr<i32> -> i32
        %more = arith.cmpi ne, %found, %one : i32
        scf.condition(%more)
      }} do {{
        scf.yield %c0 : index
      }}
    }} else {{
      %there = pto.addptr %flag, %far0 : !pto.ptr<i32> -> !pto.ptr<i32>
      pto.store_scalar %one, %there[%c0] : !pto.ptr<i32>, i32
    }}"""
    k = kernel(body, "%ctx: !pto.ptr<i64>, %flag: !pto.ptr<i32>", engine)
    world = pto.ranks(2)
    flag = world.window(1, "i32")
    assert world.run(k, [[world.context, flag]] * 2, timeout=20).ok


# -- pictures ----------------------------------------------------------------------------------------------


def test_messages_of_ranks() -> None:
    world = pto.ranks(2)
    window, signal = world.window((1, 8), "i32"), world.window(1, "i32")
    k = pto.kernel(pto.parse(EXAMPLES / "01_hello.pto"))
    seen = Messages()
    out = np.zeros((1, 8), np.int32)
    assert world.run(k, [[window, signal, world.context, out.copy()] for _ in range(2)], watchers=[seen]).ok
    for rank in range(2):
        mine = [m for m in seen.messages if m.source == rank]
        assert [(m.kind, m.target, m.text) for m in mine] == [
            ("data", 1 - rank, "tstore 32 B to %window[0..32]"),
            ("signal", 1 - rank, "%signal[0] = 1"),
            ("wait", rank, "%signal[0] ge 1"),
        ]
    root = ElementTree.fromstring(seen.svg("hello & <more>"))
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "hello & <more>" in texts and "rank 1" in texts and sum("tstore" in str(t) for t in texts) == 2


# -- reports -----------------------------------------------------------------------------------------------


def hello(world: World, **options: Any) -> LaunchResult:
    k = pto.kernel(pto.parse(EXAMPLES / "01_hello.pto"))
    window, signal = world.windows
    out = np.zeros((1, 8), np.int32)
    return world.run(k, [[window, signal, world.context, out.copy()] for _ in range(2)], **options)


def test_a_signal_that_was_left_is_told() -> None:
    world = pto.ranks(2)
    world.window((1, 8), "i32"), world.window(1, "i32")
    assert hello(world, sanitize="all").diagnostics == []
    again = hello(world, sanitize="all")
    assert set(codes(again)) == {"PTO-E2215", "PTO-E2212"}, (
        "the wait did not wait, so nothing orders the data"
    )
    stale = next(d for d in again.diagnostics if d.code == "PTO-E2215")
    assert stale.severity == "warning" and "holds 1 from before this launch" in stale.message


def test_a_wrong_argument_names_its_rank() -> None:
    world = pto.ranks(2)
    world.window((1, 8), "i32"), world.window(1, "i32")
    k = pto.kernel(pto.parse(EXAMPLES / "01_hello.pto"))
    right = [*world.windows, world.context, np.zeros(8, np.int32)]
    with pytest.raises(DiagnosticError) as caught:
        world.run(k, [right, [*right[:3], np.zeros(8)]])
    assert [d.message for d in caught.value.diagnostics] == [
        "expected an array of i32 for argument %out (rank 1)"
    ]
    with pytest.raises(DiagnosticError, match="PTO-E2012"):  # of another world
        world.run(k, [[pto.ranks(2).window((1, 8), "i32"), *right[1:]], right])


def test_engines_tell_the_same(tmp_path: Path) -> None:
    """Reports of a failure on a rank: the rank, the location, and the conditions of the waiting ranks."""
    text = (EXAMPLES / "01_hello.pto").read_text()
    stuck = "\n".join(line for line in text.splitlines() if "pto.tnotify" not in line)
    found: dict[str, list[Any]] = {}
    for engine in ("reference", "native"):
        world = pto.ranks(2)
        window, signal = world.window((1, 8), "i32"), world.window(1, "i32")
        out = [np.zeros((1, 8), np.int32) for _ in range(2)]
        k = pto.kernel(pto.parse(stuck), engine=engine)
        for more in ({}, {"processes": True}) if engine == "native" else ({},):
            result = world.run(k, [[window, signal, world.context, o] for o in out], **more)
            (d,) = result.diagnostics
            assert (d.code, len(d.notes)) == ("PTO-E2104", 1)
            assert "ge 1 (holds 0)" in d.message and "rank 1" in d.notes[0][0]
            found.setdefault(engine, [d.span.line if d.span else 0])
        small = [window, signal, world.context, np.zeros((1, 4), np.int32)]
        k = pto.kernel(pto.parse(text), engine=engine)
        result = world.run(k, [[window, signal, world.context, out[0]], small])
        (d,) = result.diagnostics
        assert d.code == "PTO-E2101" and "of %out of rank 1" in d.message and "rank 1)" in d.message
        found[engine].append(d.span.line if d.span else 0)
    assert found["reference"] == found["native"]


@engines
def test_a_rank_reaches_no_memory_of_another_but_its_windows(engine: str) -> None:
    body = """
    %is = arith.cmpi eq, %rank, %c0 : index
    scf.if %is {
      pto.store_scalar %one, %y[%by] : !pto.ptr<i32>, i32
    }"""
    k = kernel(body, "%ctx: !pto.ptr<i64>, %y: !pto.ptr<i32>, %by: index", engine)
    both = np.zeros(2, np.int32)
    world = pto.ranks(2)
    result = world.run(k, [[world.context, both[:1], 1], [world.context, both[1:], 0]])
    assert codes(result) == ["PTO-E2101"] and both.tolist() == [0, 0]


def test_processes_of_ranks() -> None:
    """They print, fail and die as ranks of one process do."""
    body = """
    %bad = arith.cmpi eq, %rank, %by : index
    pto.print ins("on %d\\0A", %low : i32)
    scf.if %bad {
      %far = arith.constant 1000 : index
      pto.store_scalar %one, %y[%far] : !pto.ptr<i32>, i32
    }
    pto.store_scalar %low, %y[%c0] : !pto.ptr<i32>, i32"""
    k = kernel(body, "%ctx: !pto.ptr<i64>, %y: !pto.ptr<i32>, %by: index", "native")
    world = pto.ranks(3)
    y = [np.full(1, -1, np.int32) for _ in range(3)]
    said = io.StringIO()
    result = world.run(k, [[world.context, a, 9] for a in y], processes=True, out=said)
    assert result.diagnostics == [] and [int(a[0]) for a in y] == [0, 1, 2]
    assert sorted(said.getvalue().splitlines()) == [f"rank {n}: on {n}" for n in range(3)]
    result = world.run(k, [[world.context, a, 1] for a in y], processes=True, out=io.StringIO())
    assert codes(result) == ["PTO-E2101"] and "of %y of rank 1" in result.diagnostics[0].message
    with pytest.raises(ValueError, match="give ranks, too"):
        k.run(np.zeros(132, np.int64), y[0], 0, processes=True)
    with pytest.raises(DiagnosticError, match="PTO-E2403"):
        world.run(k, [[world.context, a, 9] for a in y], processes=True, sanitize="all")
    watched = kernel(body, "%ctx: !pto.ptr<i64>, %y: !pto.ptr<i32>, %by: index")
    with pytest.raises(DiagnosticError, match="PTO-E2403"):
        world.run(watched, [[world.context, a, 9] for a in y], processes=True)


# -- C++ ---------------------------------------------------------------------------------------------------

CPP = """
#include <pto/pto-inst.hpp>
#include <pto/comm/pto_comm_inst.hpp>
using namespace pto;

struct CommContext {
  uint64_t workSpace, workSpaceSize;
  uint32_t rankId, rankNum;
  uint64_t winSize, windowsIn[64], windowsOut[64];
};

template <class T>
AICORE __gm__ T* remote(__gm__ CommContext* ctx, __gm__ T* own, int peer) {
  const uint64_t offset = (uint64_t)own - ctx->windowsIn[ctx->rankId];
  return (__gm__ T*)(ctx->windowsIn[peer] + offset);
}

using Cells = GlobalTensor<float, Shape<1, 1, 1, -1, 16>, Stride<1, 1, 1, 16, 1>>;
AICORE Cells cells(__gm__ float* at, int rows) { return Cells(at, Shape<1, 1, 1, -1, 16>(rows)); }
using Staging = Tile<TileType::Vec, float, 4, 16, BLayout::RowMajor, -1, -1>;

// The root reduces, gathers, scatters and broadcasts windows of 4x16; every rank waits for it by polling.
extern "C" __global__ AICORE void together(__gm__ CommContext* ctx, __gm__ float* win, __gm__ float* out,
                                           __gm__ int32_t* sig, __gm__ float* sum, __gm__ float* all, int root) {
  const int ranks = ctx->rankNum, rank = ctx->rankId;
  comm::Signal ready(remote(ctx, sig, root));
  pipe_barrier(PIPE_ALL);
  comm::TNOTIFY(ready, 1, comm::NotifyOp::AtomicAdd);
  Staging staging(4, 16), other(4, 16);
  TASSIGN(staging, 0x0);
  TASSIGN(other, 0x400);
  if (rank == root) {
    comm::TWAIT(ready, ranks, comm::WaitCmp::GE);
    Cells members[16], outs[16];
    for (int r = 0; r < ranks; ++r) {
      members[r] = cells(remote(ctx, win, r), 4);
      outs[r] = cells(remote(ctx, out, r), 4);
    }
    comm::ParallelGroup<Cells> group(members, ranks, root), into(outs, ranks, root);
    Cells total = cells(sum, 4), stacked = cells(all, 4 * ranks);
    comm::TREDUCE(group, total, staging, other, comm::ReduceOp::Sum);
    comm::TGATHER(group, stacked, staging);
    comm::TSCATTER(into, stacked, staging);
    comm::TBROADCAST(group, total, staging);
    pipe_barrier(PIPE_ALL);
    for (int r = 0; r < ranks; ++r) {
      comm::Signal done(remote(ctx, sig + 1, r));
      comm::TNOTIFY(done, 1, comm::NotifyOp::Set);
    }
  }
  volatile __gm__ int32_t* done = sig + 1;
  while (*done == 0) dcci((__gm__ void*)done, SINGLE_CACHE_LINE);
}
"""


def test_cpp_of_ranks(tmp_path: Path) -> None:
    path = tmp_path / "together.cpp"
    path.write_text(CPP)
    k = pto.kernel(str(path), target="a2a3")
    for count, root in ((1, 0), (2, 1), (5, 3), (16, 0)):
        world = pto.ranks(count, window_bytes=1 << 16)
        win, out, sig = world.window((4, 16)), world.window((4, 16)), world.window(2, "i32")
        for rank in range(count):
            win[rank][:] = rank + np.arange(16)
        before = np.stack([win[rank].copy() for rank in range(count)])
        sums = [np.zeros((4, 16), np.float32) for _ in range(count)]
        alls = [np.zeros((count, 4, 16), np.float32) for _ in range(count)]
        of_all = [world.context, win, out, sig]
        result = world.run(k, [[*of_all, *own, root] for own in zip(sums, alls, strict=True)])
        assert result.diagnostics == [] and result.engine == "cpp"
        np.testing.assert_array_equal(sums[root], before.sum(0))
        np.testing.assert_array_equal(alls[root], before)
        for rank in range(count):
            np.testing.assert_array_equal(out[rank], before[rank])
            np.testing.assert_array_equal(win[rank], before.sum(0))
