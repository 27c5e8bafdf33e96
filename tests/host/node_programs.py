"""Programs of the processes of tests/host/test_nodes.py, each as a rank: `python -m tests.host.node_programs
NAME`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

import pto
from pto.diag import DiagnosticError

RING = Path(__file__).parents[2] / "examples" / "ranks" / "02_ring_all_reduce.pto"
ROUNDS = 400
#: In every round a rank writes a row of the next rank's window and then signals it; it reads the row from the
#: rank before as soon as the signal comes.
_ORDER = f"""
!row = !pto.tile_buf<vec, 1x64xf32>
!part = !pto.tensor_view<1x64xf32>
!word = !pto.tensor_view<1x1xi32>
module attributes {{pto.target_arch = "a3"}} {{
  func.func @order(%window: !pto.ptr<f32>, %signal: !pto.ptr<i32>, %context: !pto.ptr<i64>, %y: !pto.ptr<f32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %rounds = arith.constant {ROUNDS} : index
    %one = arith.constant 1 : i32
    %size = arith.constant 4 : i64
    %half = arith.constant 32 : i64
    %both = pto.load_scalar %context[%c2] : !pto.ptr<i64> -> i64
    %low = arith.trunci %both : i64 to i32
    %high = arith.shrui %both, %half : i64
    %rank = arith.index_cast %low : i32 to index
    %ranks = arith.index_cast %high : i64 to index
    %behind = arith.addi %rank, %c1 : index
    %next = arith.remui %behind, %ranks : index
    %from = arith.addi %rank, %c4 : index
    %to = arith.addi %next, %c4 : index
    %here = pto.load_scalar %context[%from] : !pto.ptr<i64> -> i64
    %there = pto.load_scalar %context[%to] : !pto.ptr<i64> -> i64
    %bytes = arith.subi %there, %here : i64
    %elements = arith.divsi %bytes, %size : i64
    %far = arith.index_cast %elements : i64 to index
    %next_window = pto.addptr %window, %far : !pto.ptr<f32> -> !pto.ptr<f32>
    %next_signal = pto.addptr %signal, %far : !pto.ptr<i32> -> !pto.ptr<i32>
    %theirs = pto.make_tensor_view %next_signal, shape = [%c1, %c1], strides = [%c1, %c1] : !word
    %own = pto.make_tensor_view %signal, shape = [%c1, %c1], strides = [%c1, %c1] : !word
    %t = pto.alloc_tile : !row
    scf.for %n = %c0 to %rounds step %c1 {{
      %number = arith.index_cast %n : index to i32
      %told = arith.addi %number, %one : i32
      %value = arith.sitofp %told : i32 to f32
      %at = arith.muli %n, %c64 : index
      %last = arith.addi %at, %c63 : index
      pto.texpands ins(%value : f32) outs(%t : !row)
      %p = pto.addptr %next_window, %at : !pto.ptr<f32> -> !pto.ptr<f32>
      %v = pto.make_tensor_view %p, shape = [%c1, %c64], strides = [%c64, %c1] : !part
      pto.barrier #pto.pipe<PIPE_ALL>
      pto.tstore ins(%t : !row) outs(%v : !part)
      pto.barrier #pto.pipe<PIPE_ALL>
      pto.tnotify(%theirs, %one : !word, i32) {{notifyOp = #pto<notify_op AtomicAdd>}}
      pto.twait(%own, %told : !word, i32) {{cmp = #pto<wait_cmp ge>}}
      %a = pto.load_scalar %window[%at] : !pto.ptr<f32> -> f32
      %b = pto.load_scalar %window[%last] : !pto.ptr<f32> -> f32
      %twice = arith.muli %n, %c2 : index
      %other = arith.addi %twice, %c1 : index
      pto.store_scalar %a, %y[%twice] : !pto.ptr<f32>, f32
      pto.store_scalar %b, %y[%other] : !pto.ptr<f32>, f32
    }}
    return
  }}
}}
"""


def order() -> None:
    """A signal never overtakes its data, in three launches."""
    world = pto.launched_ranks(1 << 20)
    kernel = pto.kernel(pto.parse(_ORDER), engine="native")
    for _ in range(3):
        window, signal = world.window((ROUNDS, 64), "f32"), world.window(1, "i32")
        y = [np.zeros((ROUNDS, 2), np.float32) for _ in range(world.ranks)]
        assert world.run(kernel, [[window, signal, world.context, own] for own in y]).ok
        want = np.arange(1, ROUNDS + 1, dtype=np.float32)[:, None]
        for rank in range(world.ranks):
            assert (y[rank] == want).all(), (rank, y[rank])
            assert (window[rank] == want).all() and signal[rank][0] == ROUNDS


def ring() -> None:
    """The same bits as in one process, for every rank; also of an array that all of them have in common."""
    world = pto.launched_ranks(1 << 20)
    count = world.ranks
    slots, signals = world.window((2 * (count - 1) * 8, 64)), world.window(2 * (count - 1), "i32")
    rng = np.random.default_rng(count)
    x = [rng.standard_normal((count * 8, 64)).astype(np.float32) for _ in range(count)]
    kernel = pto.kernel(pto.parse(RING), engine="native")
    alone = pto.ranks(count, 1 << 20)
    same = alone.window(slots.shape), alone.window(signals.shape, "i32")
    want = [np.zeros_like(a) for a in x]
    alone.run(kernel, lambda rank: [x[rank], *same, alone.context, want[rank]])
    for _ in range(5):
        y = [np.zeros_like(a) for a in x]
        for rank in range(count):
            signals[rank][:] = 0
        assert world.run(kernel, lambda rank, y=y: [x[rank], slots, signals, world.context, y[rank]]).ok
        for rank in range(count):
            assert y[rank].tobytes() == want[rank].tobytes()
            assert slots[rank].tobytes() == same[0][rank].tobytes()


#: Every rank adds a row to one of rank 0 and leaves its number in a word of the next rank, from which it also
#: takes one.
_MIXED = """
!row = !pto.tile_buf<vec, 1x64x{dtype}>
!part = !pto.tensor_view<1x64x{dtype}>
!word = !pto.tensor_view<1x1xi32>
module attributes {{pto.target_arch = "a3"}} {{
  func.func @mixed(%x: !pto.ptr<{dtype}>, %window: !pto.ptr<{dtype}>, %words: !pto.ptr<i32>, %done: !pto.ptr<i32>, %context: !pto.ptr<i64>, %y: !pto.ptr<i32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1 : i32
    %seven = arith.constant 7 : i32
    %size = arith.constant {bytes} : i64
    %four = arith.constant 4 : i64
    %half = arith.constant 32 : i64
    %both = pto.load_scalar %context[%c2] : !pto.ptr<i64> -> i64
    %low = arith.trunci %both : i64 to i32
    %high = arith.shrui %both, %half : i64
    %rank = arith.index_cast %low : i32 to index
    %ranks = arith.index_cast %high : i64 to index
    %behind = arith.addi %rank, %c1 : index
    %next = arith.remui %behind, %ranks : index
    %from = arith.addi %rank, %c4 : index
    %to = arith.addi %next, %c4 : index
    %here = pto.load_scalar %context[%from] : !pto.ptr<i64> -> i64
    %first = pto.load_scalar %context[%c4] : !pto.ptr<i64> -> i64
    %there = pto.load_scalar %context[%to] : !pto.ptr<i64> -> i64
    %to_first = arith.subi %first, %here : i64
    %to_next = arith.subi %there, %here : i64
    %elements = arith.divsi %to_first, %size : i64
    %words_next = arith.divsi %to_next, %four : i64
    %words_first = arith.divsi %to_first, %four : i64
    %far = arith.index_cast %elements : i64 to index
    %far_next = arith.index_cast %words_next : i64 to index
    %far_first = arith.index_cast %words_first : i64 to index
    %root = pto.addptr %window, %far : !pto.ptr<{dtype}> -> !pto.ptr<{dtype}>
    %theirs = pto.addptr %words, %far_next : !pto.ptr<i32> -> !pto.ptr<i32>
    %done_first = pto.addptr %done, %far_first : !pto.ptr<i32> -> !pto.ptr<i32>
    %t = pto.alloc_tile : !row
    %xv = pto.make_tensor_view %x, shape = [%c1, %c64], strides = [%c64, %c1] : !part
    %rv = pto.make_tensor_view %root, shape = [%c1, %c64], strides = [%c64, %c1] : !part
    %dv = pto.make_tensor_view %done_first, shape = [%c1, %c1], strides = [%c1, %c1] : !word
    pto.tload ins(%xv : !part) outs(%t : !row)
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tstore ins(%t : !row) outs(%rv : !part) {{atomicType = #pto<atomic_type atomic_add>}}
    pto.store_scalar %low, %theirs[%c0] : !pto.ptr<i32>, i32
    pto.store_scalar %seven, %theirs[%c1] : !pto.ptr<i32>, i32
    %a = pto.load_scalar %theirs[%c0] : !pto.ptr<i32> -> i32
    %b = pto.load_scalar %theirs[%c2] : !pto.ptr<i32> -> i32
    pto.store_scalar %a, %y[%c0] : !pto.ptr<i32>, i32
    pto.store_scalar %b, %y[%c1] : !pto.ptr<i32>, i32
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tnotify(%dv, %one : !word, i32) {{notifyOp = #pto<notify_op AtomicAdd>}}
    %count = arith.trunci %high : i64 to i32
    pto.twait(%dv, %count : !word, i32) {{cmp = #pto<wait_cmp ge>}}
    return
  }}
}}
"""


def mixed() -> None:
    """Stores that add, words that are written and read, a wait for a signal in the window of another."""
    for dtype, kind, bytes in (("f32", "f4", 4), ("f16", "f2", 2), ("i16", "i2", 2)):
        kernel = pto.kernel(pto.parse(_MIXED.format(dtype=dtype, bytes=bytes)), engine="native")
        world = pto.launched_ranks(1 << 20)
        count = world.ranks
        window, words, done = world.window((1, 64), dtype), world.window(4, "i32"), world.window(1, "i32")
        rng = np.random.default_rng(5)
        x = [rng.integers(-99, 99, (1, 64)).astype(kind) for _ in range(count)]
        for rank in range(count):
            words[rank][2] = 100 + rank
            window[rank][:] = 3
        y = [np.zeros(2, np.int32) for _ in range(count)]
        done_by = [[x[r], window, words, done, world.context, y[r]] for r in range(count)]
        assert world.run(kernel, done_by).ok
        want = np.full((1, 64), 3, kind)
        for own in x:
            want = want + own
        assert window[0].tobytes() == want.tobytes(), dtype
        assert done[0][0] == count
        for rank in range(count):
            assert list(words[rank]) == [(rank - 1) % count, 7, 100 + rank, 0]
            assert list(y[rank]) == [rank, 100 + (rank + 1) % count]


def dies() -> None:
    """The last rank is killed while the others wait for it in a launch."""
    world = pto.launched_ranks(1 << 20)
    window, signal = world.window((ROUNDS, 64), "f32"), world.window(1, "i32")
    y = [np.zeros((ROUNDS, 2), np.float32) for _ in range(world.ranks)]
    member = world.member
    assert member is not None
    if member.rank == world.ranks - 1:
        every = member.all

        def leave(mine: bytes) -> list[bytes]:
            every(mine)
            os.kill(os.getpid(), 9)  # all are about to start
            raise AssertionError

        member.all = leave
    kernel = pto.kernel(pto.parse(_ORDER), engine="native")
    try:
        world.run(kernel, [[window, signal, world.context, own] for own in y])
    except DiagnosticError as problem:
        print(problem.diagnostics[0].code, problem.diagnostics[0].message)
        os._exit(4)


def threads() -> None:
    """Threads of one rank would have mirrors in common."""
    world = pto.launched_ranks(1 << 20)
    kernel = pto.kernel(pto.parse(_ORDER), engine="native")
    window, signal = world.window((ROUNDS, 64), "f32"), world.window(1, "i32")
    y = [np.zeros((ROUNDS, 2), np.float32) for _ in range(world.ranks)]
    try:
        world.run(kernel, [[window, signal, world.context, own] for own in y], threads=2)
    except ValueError as problem:
        print(problem)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
