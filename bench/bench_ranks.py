"""Ranks: costs of a signal, a barrier, a transfer and a sum over all ranks, in one process and in several.

    python bench/bench_ranks.py [--quick]

The kernel is C++, launched as a user's is, with `pto.ranks`. Shortest of several runs, wall time of a launch
of many rounds less that of a launch of none. Copies are compared with memcpy of the same run; the sum over
all ranks with that of MPI if mpi4py and mpiexec are installed. Ranks of two nodes, simulated on this machine,
are compared with plain sockets, and with MPI configured as on two machines.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import pto
from pto.engine.ranks import World

KERNEL = """
#include <pto/pto-inst.hpp>
#include <pto/comm/pto_comm_inst.hpp>
using namespace pto;

struct CommContext {
  uint64_t workSpace, workSpaceSize;
  uint32_t rankId, rankNum;
  uint64_t winSize, windowsIn[64], windowsOut[64];
};

template <class T>
AICORE __gm__ T* at(__gm__ CommContext* ctx, __gm__ T* own, uint32_t peer) {
  return (__gm__ T*)(ctx->windowsIn[peer] + ((uint64_t)own - ctx->windowsIn[ctx->rankId]));
}
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, -1>, Stride<1, 1, 1, 1, 1>>;
AICORE Row row(__gm__ float* at, int count) { return Row(at, Shape<1, 1, 1, 1, -1>(count)); }

AICORE void tell(__gm__ int32_t* cell) {
  comm::Signal there(cell);
  pipe_barrier(PIPE_ALL);
  comm::TNOTIFY(there, 1, comm::NotifyOp::AtomicAdd);
}
AICORE void wait(__gm__ int32_t* cell, int value) {
  comm::Signal own(cell);
  comm::TWAIT(own, value, comm::WaitCmp::GE);
}

// what: 0 a signal there and back, 1 a barrier of all, 2 a put to the next rank, 3 a sum over all in a ring
extern "C" __global__ AICORE void go(__gm__ CommContext* ctx, __gm__ int32_t* sig, __gm__ float* win,
                                     __gm__ float* x, int what, int rounds, int count) {
  const uint32_t rank = ctx->rankId, ranks = ctx->rankNum, next = (rank + 1) % ranks;
  Tile<TileType::Vec, float, 1, 8192, BLayout::RowMajor, -1, -1> tile(1, 8192), more(1, 8192);
  TASSIGN(tile, 0x0);
  TASSIGN(more, 0x8000);
  for (int n = 1; n <= rounds; ++n) {
    if (what == 0) {
      if (rank == 0) tell(at(ctx, sig, 1));
      wait(sig, n);
      if (rank == 1) tell(at(ctx, sig, 0));
    } else if (what == 1) {
      for (uint32_t r = 0; r < ranks; ++r) tell(at(ctx, sig, r));
      wait(sig, n * (int)ranks);
    } else if (what == 2) {
      Row from = row(x, count), to = row(at(ctx, win, next), count);
      if (rank == 0) comm::TPUT(to, from, tile);
    } else {  // each chunk travels round the ring twice: added up, then as it is
      const int chunk = count / (int)ranks;
      for (uint32_t step = 0; step < 2 * (ranks - 1); ++step) {
        const uint32_t mine = (rank + 2 * ranks - step) % ranks;
        const uint32_t theirs = (mine + ranks - 1) % ranks;
        const bool adds = step < ranks - 1;
        Row from = row(x + mine * chunk, chunk), to = row(at(ctx, win + step * chunk, next), chunk);
        comm::TPUT(to, from, tile);
        tell(at(ctx, sig, next));
        wait(sig, (n - 1) * 2 * ((int)ranks - 1) + (int)step + 1);
        for (int done = 0; done < chunk; done += 8192) {
          const int size = chunk - done < 8192 ? chunk - done : 8192;
          tile.SetValidCol(size);
          more.SetValidCol(size);
          Row got = row(win + step * chunk + done, size), held = row(x + theirs * chunk + done, size);
          TLOAD(tile, got);
          if (adds) {
            TLOAD(more, held);
            pipe_barrier(PIPE_ALL);
            TADD(tile, tile, more);
          }
          pipe_barrier(PIPE_ALL);
          TSTORE(held, tile);
          pipe_barrier(PIPE_ALL);
        }
      }
    }
  }
}
"""

MPI = """
import sys, time
import numpy as np
from mpi4py import MPI
x, y = np.ones(int(sys.argv[1]), np.float32), np.empty(int(sys.argv[1]), np.float32)
best = 1e9
for _ in range(30):
    MPI.COMM_WORLD.Barrier()
    begin = time.perf_counter()
    MPI.COMM_WORLD.Allreduce(x, y)
    best = min(best, time.perf_counter() - begin)
if MPI.COMM_WORLD.rank == 0:
    print(best)
"""


#: What goes between two machines; `APART` lets MPI use nothing else.
MPI_APART = """
import sys, time
import numpy as np
from mpi4py import MPI
world, small, large = MPI.COMM_WORLD, np.zeros(10, np.int32), np.zeros(1 << 18, np.float32)
def rounds(there, back, count):
    begin = time.perf_counter()
    for _ in range(count):
        if world.rank == 0:
            world.Send(there, 1)
            world.Recv(back, 1)
        else:
            world.Recv(there, 0)
            world.Send(back, 0)
    return (time.perf_counter() - begin) / count
signals = min(rounds(small, small, 500) for _ in range(5)) / 2
puts = min(rounds(large, small, 50) for _ in range(5))
if world.rank == 0:
    print(signals, puts)
"""


def shortest(run: Callable[[], Any], times: int) -> float:
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return min(found)


def seconds(
    k: Any,
    ranks: int,
    what: int,
    rounds: int,
    count: int,
    times: int,
    world: World | None = None,
    **more: Any,
) -> float:
    """Seconds of a round."""
    world = world or pto.ranks(ranks, window_bytes=1 << 24)
    signal, window = world.window(1, "i32"), world.window(2 << 20)
    x = [np.ones(max(1, count), np.float32) for _ in range(ranks)]

    def run(n: int) -> None:
        if world.member is not None:
            world.member.all(b"")  # no rank is in a launch
        for rank in range(ranks):
            signal[rank][:] = 0
        result = world.run(
            k, [[world.context, signal, window, a, what, n, count] for a in x], **more
        )  # fmt: skip
        assert result.ok, result.diagnostics

    return (shortest(lambda: run(rounds), times) - shortest(lambda: run(0), times)) / rounds


def of_mpi(count: int) -> float | None:
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if find_spec("mpi4py") is None or mpiexec is None:
        return None
    done = subprocess.run(
        [mpiexec, "-n", "4", sys.executable, "-c", MPI, str(count)],
        capture_output=True,
        text=True,
        check=False,
    )
    return float(done.stdout) if done.returncode == 0 else None


#: MPICH reserves no memory of its node, and uses TCP beyond the node; so does Open MPI.
APART = {
    "MPIR_CVAR_NOLOCAL": "1",
    "UCX_TLS": "tcp,self",
    "FI_PROVIDER": "tcp",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_pml": "ob1",
}

_ECHO = """
import socket, struct, sys
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(2):
    size, count = struct.unpack("<II", line.recv(8, socket.MSG_WAITALL))
    room = memoryview(bytearray(size))
    for _ in range(count):
        have = 0
        while have < size:
            have += line.recv_into(room[have:])
        line.sendall(room[:40])
"""


def of_mpi_apart() -> list[float] | None:
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if find_spec("mpi4py") is None or mpiexec is None:
        return None
    done = subprocess.run(
        [mpiexec, "-n", "2", sys.executable, "-c", MPI_APART], capture_output=True, text=True, check=False,
        env={**os.environ, **APART},
    )  # fmt: skip
    return [float(word) for word in done.stdout.split()[-2:]] if done.returncode == 0 else None


def of_sockets(times: int) -> list[float]:
    """A message one way, and 1 MB with an answer, between two processes with a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = subprocess.Popen([sys.executable, "-c", _ECHO, str(listening.getsockname()[1])])
        line, _ = listening.accept()
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    room = bytearray(40)

    def rounds(size: int, count: int) -> None:
        data = bytes(size)
        for _ in range(count):
            line.sendall(data)
            line.recv_into(room, 40, socket.MSG_WAITALL)

    found = []
    for size, count in ((40, 500), (1 << 20, 50)):
        line.sendall(struct.pack("<II", size, count * times))
        found.append(shortest(lambda size=size, count=count: rounds(size, count), times) / count)
    line.close()
    process.wait()
    return [found[0] / 2, found[1]]


def kernel() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "go.cpp")
        path.write_text(KERNEL)
        return pto.kernel(str(path), target="a2a3")


def as_rank(times: int) -> None:
    """Run as one of the ranks of two nodes; the first reports the result."""
    k = kernel()
    signal = seconds(k, 2, 0, 2000, 0, times, pto.launched_ranks(1 << 24)) / 2
    world = pto.launched_ranks(1 << 24)
    put = seconds(k, 2, 2, 200, 1 << 18, times, world)
    if world.member is not None and world.member.rank == 0:
        print(signal, put)


def of_nodes(quick: bool) -> list[float]:
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--as-rank", *(["--quick"] if quick else [])], text=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "PMI_RANK": str(rank), "PMI_SIZE": "2", "PTO_NODE": str(rank)},
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [process.communicate()[0] for process in processes]
    return [float(word) for word in said[0].split()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    quick = options.quick
    times = 2 if quick else 5
    if options.as_rank:
        return as_rank(times)
    k = kernel()
    print(f"{'':46}{'us':>10}   ratio")

    def line(what: str, found: float, ratio: str = "") -> None:
        print(f"{what:46}{found * 1e6:10.2f}   {ratio}")

    apart: dict[str, Any] = {"processes": True}
    for way, more in (("one process", {}), ("processes", apart)):
        line(f"signal, one way, {way}", seconds(k, 2, 0, 20_000, 0, times, **more) / 2)
    for way, ranks, more in (
        ("8 ranks, one process", 8, {}),
        ("64 ranks, one process", 64, {}),
        ("8 ranks, processes", 8, apart),
    ):
        line(f"barrier, {way}", seconds(k, ranks, 1, 200 if quick else 1000, 0, times, **more))
    count = 1 << 18  # 1 MB
    a, b = np.ones(count, np.float32), np.ones(count, np.float32)
    plain = shortest(lambda: [np.copyto(b, a) for _ in range(200)], times) / 200
    put = seconds(k, 2, 2, 200, count, times, processes=True)
    line("memcpy of 1 MB", plain)
    line("put of 1 MB, processes", put, f"{plain / put:.2f} of the speed of memcpy")
    ring = seconds(k, 4, 3, 50, count, times, processes=True)
    peer = of_mpi(count)
    line(
        "ring all-reduce of 1 MB, 4 processes", ring, f"{ring / peer:.2f} of the time of MPI" if peer else ""
    )
    if peer:
        line("MPI's all-reduce of 1 MB, 4 processes", peer)
    plain_signal, plain_put = of_sockets(times)
    signal, put = of_nodes(quick)
    line("message over TCP, one way", plain_signal)
    line("signal, one way, two nodes", signal, f"{signal / plain_signal:.2f} of the time of plain sockets")
    line("1 MB over TCP and an answer", plain_put)
    line("put of 1 MB, two nodes", put, f"{put / plain_put:.2f} of the time of plain sockets")
    peers = of_mpi_apart()
    if peers is not None:
        line(
            "MPI as on two machines, message one way",
            peers[0],
            f"a signal takes {signal / peers[0]:.2f} of it",
        )
        line(
            "MPI as on two machines, 1 MB and an answer", peers[1], f"a put takes {put / peers[1]:.2f} of it"
        )
    world = pto.ranks(4)
    slots, signals = world.window((48, 64)), world.window(6, "i32")
    reduce = pto.kernel(
        pto.parse(Path(__file__).parents[1] / "examples/ranks/02_ring_all_reduce.pto"), engine="reference"
    )
    arrays = [np.ones((32, 64), np.float32) for _ in range(8)]

    def checked(**more: Any) -> None:
        for rank in range(4):
            signals[rank][:] = 0
        own = [[arrays[r], slots, signals, world.context, arrays[4 + r]] for r in range(4)]
        assert world.run(reduce, own, **more).ok

    alone, all = shortest(checked, times), shortest(lambda: checked(sanitize="all"), times)
    line("ring all-reduce, 4 ranks, reference", alone)
    line("ring all-reduce, 4 ranks, all sanitizers", all, f"{all / alone:.2f} of that without")


if __name__ == "__main__":
    main()
