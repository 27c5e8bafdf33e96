// What tests of `pto ranks --sanitize` do, by the word that the program is started with.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "pto/pto-inst.hpp"

using namespace pto;

extern "C" HcclResult HcclAllocComResourceByTiling(HcclComm comm, void* stream, void* tiling, void** context);

struct CommContext {
  uint64_t workSpace, workSpaceSize;
  uint32_t rankId, rankNum;
  uint64_t winSize, windowsIn[64], windowsOut[64];
};
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 1, 1>>;
using RowTile = Tile<TileType::Vec, float, 1, 64>;

template <class T>
static T* at(CommContext* ctx, uint32_t rank, uint64_t offset) {
  return reinterpret_cast<T*>(ctx->windowsIn[rank] + offset);
}
static uint32_t next(CommContext* ctx) { return (ctx->rankId + 1) % ctx->rankNum; }

// To the next rank, and a signal: with `early` one that does not wait for the data.
AICORE void give_row(float* in, CommContext* ctx, bool early) {
  Row from(in), there(at<float>(ctx, next(ctx), 256));
  RowTile tile;
  TASSIGN(tile, 0x0);
  TLOAD(tile, from);
  set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(there, tile);
  if (!early) pipe_barrier(PIPE_ALL);
  comm::Signal signal(at<int32_t>(ctx, next(ctx), 0));
  comm::TNOTIFY(signal, 1, comm::NotifyOp::AtomicAdd);
  pipe_barrier(PIPE_ALL);
}

// 1 / the number from the rank before.
AICORE void take_row(float* out, CommContext* ctx) {
  Row here(at<float>(ctx, ctx->rankId, 256)), to(out);
  RowTile tile;
  TASSIGN(tile, 0x0);
  TLOAD(tile, here);  // FOUND early PTO-E2213
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TRECIP(tile, tile);  // FOUND zero PTO-E2302
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(to, tile);
  pipe_barrier(PIPE_ALL);
}

__global__ AICORE void give(float* in, CommContext* ctx) { give_row(in, ctx, false); }
__global__ AICORE void take(float* out, CommContext* ctx, int times) {
  comm::Signal own(at<int32_t>(ctx, ctx->rankId, 0));
  comm::TWAIT(own, times, comm::WaitCmp::GE);  // FOUND stuck PTO-E2104
  take_row(out, ctx);
}
__global__ AICORE void both(float* in, float* out, CommContext* ctx, bool early) {
  give_row(in, ctx, early);
  comm::Signal own(at<int32_t>(ctx, ctx->rankId, 0));
  comm::TWAIT(own, 1, comm::WaitCmp::GE);
  take_row(out, ctx);
}
__global__ AICORE void poll(float* in, float* out, CommContext* ctx, int times) {
  give_row(in, ctx, false);
  comm::Signal own(at<int32_t>(ctx, ctx->rankId, 0));
  while (!comm::TTEST(own, times, comm::WaitCmp::GE)) {
  }
  take_row(out, ctx);
}

// With `racing` it adds before the tile is loaded.
template <int Rows>
__global__ AICORE void add(float* in, float* out, bool racing) {
  using Rect = GlobalTensor<float, Shape<1, 1, 1, Rows, 64>, Stride<1, 1, 1, 64, 1>>;
  Rect from(in), to(out);
  Tile<TileType::Vec, float, Rows, 64> tile;
  TASSIGN(tile, 0x0);
  TLOAD(tile, from);  // FOUND outside PTO-E2101
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  if (!racing) wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADDS(tile, tile, 1.0f);  // FOUND race apart PTO-E2201
  if (racing) wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(to, tile);
  pipe_barrier(PIPE_ALL);
}

template <class Function>
static Function mpi(const char* name) {
  static void* const library = dlopen(std::getenv("MPI_LIB_PATH"), RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, name));
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  constexpr int kWorld = 0x44000000, kChar = 0x4c000101;
  int rank = 0, ranks = 1;
  mpi<int (*)(int*, char***)>("MPI_Init")(nullptr, nullptr);
  mpi<int (*)(int, int*)>("MPI_Comm_rank")(kWorld, &rank);
  mpi<int (*)(int, int*)>("MPI_Comm_size")(kWorld, &ranks);
  HcclRootInfo root{};
  if (rank == 0) HcclGetRootInfo(&root);
  mpi<int (*)(void*, int, int, int, int)>("MPI_Bcast")(&root, HCCL_ROOT_INFO_BYTES, kChar, 0, kWorld);
  HcclComm comm = nullptr;
  HcclCommInitRootInfo(static_cast<uint32_t>(ranks), &root, static_cast<uint32_t>(rank), &comm);
  void *context = nullptr, *in = nullptr, *out = nullptr;
  HcclAllocComResourceByTiling(comm, nullptr, nullptr, &context);
  auto* ctx = static_cast<CommContext*>(context);
  std::vector<float> values(64, 4.0f);
  if (what == "zero" && rank == 0) values[7] = 0;
  aclrtMalloc(&in, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&out, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(in, 256, values.data(), 256, ACL_MEMCPY_HOST_TO_DEVICE);
  auto *from = static_cast<float*>(in), *to = static_cast<float*>(out);

  if (what == "race") {
    for (int round = 0; round < 2; ++round) add<1><<<1, nullptr, nullptr>>>(from, to, rank == 1);
  } else if (what == "outside") {
    add<2><<<1, nullptr, nullptr>>>(from, to, false);
  } else if (what == "poll" || what == "hasty") {  // a signal is at least 0 before anyone notifies
    poll<<<1, nullptr, nullptr>>>(from, to, ctx, what == "poll" ? 1 : 0);
  } else if (what == "stuck") {
    take<<<1, nullptr, nullptr>>>(to, ctx, 1);
  } else if (what == "nothing") {
  } else if (what == "again") {  // the host takes the signals back between two rounds
    for (int round = 0; round < 2; ++round) {
      give<<<1, nullptr, nullptr>>>(from, ctx);
      take<<<1, nullptr, nullptr>>>(to, ctx, 1);
      HcclBarrier(comm, nullptr);
      aclrtMemset(at<int32_t>(ctx, static_cast<uint32_t>(rank), 0), 4, 0, 4);
      HcclBarrier(comm, nullptr);
    }
  } else if (what == "uneven") {  // rank 0 has one more launch, before all have met
    if (rank == 0) add<1><<<1, nullptr, nullptr>>>(from, to, false);
    HcclBarrier(comm, nullptr);
    both<<<1, nullptr, nullptr>>>(from, to, ctx, false);
    HcclBarrier(comm, nullptr);
    aclrtMemset(at<int32_t>(ctx, static_cast<uint32_t>(rank), 0), 4, 0, 4);
    HcclBarrier(comm, nullptr);
    if (rank == 1) add<1><<<1, nullptr, nullptr>>>(from, to, false);
    HcclBarrier(comm, nullptr);
    both<<<1, nullptr, nullptr>>>(from, to, ctx, false);
  } else if (what == "apart") {  // rank 0 waits for two launches of rank 1 at once
    if (rank != 0) give<<<1, nullptr, nullptr>>>(from, ctx);
    if (rank != 0) give<<<1, nullptr, nullptr>>>(from, ctx);
    if (rank == 0) take<<<1, nullptr, nullptr>>>(to, ctx, 2);
    if (rank == 0) add<1><<<1, nullptr, nullptr>>>(from, to, true);
  } else {
    both<<<1, nullptr, nullptr>>>(from, to, ctx, what == "early");
  }
  aclrtMemcpy(values.data(), 256, out, 256, ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("got %g\n", values[0]);
  if (aclrtSynchronizeStream(nullptr) != 0) return 3;
  HcclBarrier(comm, nullptr);
  return 0;
}
