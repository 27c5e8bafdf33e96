// What tests of whole programs do, by the word that they are started with. One program: it is compiled once.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

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

template <class T>
static __gm__ T* at(__gm__ CommContext* ctx, uint32_t rank, uint64_t offset) {
  return (__gm__ T*)(ctx->windowsIn[rank] + offset);
}

// Every rank adds to the signal of every other and waits for as many.
__global__ AICORE void meet(__gm__ CommContext* ctx, int expected) {
  pipe_barrier(PIPE_ALL);
  for (uint32_t r = 0; r < ctx->rankNum; ++r) {
    comm::Signal there(at<int32_t>(ctx, r, 0));
    comm::TNOTIFY(there, 1, comm::NotifyOp::AtomicAdd);
  }
  comm::Signal own(at<int32_t>(ctx, ctx->rankId, 0));
  comm::TWAIT(own, expected, comm::WaitCmp::GE);
}

__global__ AICORE void fill(__gm__ float* to, int rows) {
  using Rows = GlobalTensor<float, Shape<1, 1, 1, -1, 16>, Stride<1, 1, 1, 16, 1>>;
  Rows all(to, Shape<1, 1, 1, -1, 16>(rows));
  Tile<TileType::Vec, float, 16, 16, BLayout::RowMajor, -1, -1> tile(rows, 16);
  TASSIGN(tile, 0x0);
  TEXPANDS(tile, 7.0f);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(all, tile);
  pipe_barrier(PIPE_ALL);
}

template <class Function>
static Function mpi(const char* name) {
  static void* const library = dlopen(std::getenv("MPI_LIB_PATH"), RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, name));
}
constexpr int kWorld = 0x44000000, kChar = 0x4c000101;
static void barrier() { mpi<int (*)(int)>("MPI_Barrier")(kWorld); }

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int rank = 0, ranks = 1;
  mpi<int (*)(int*, char***)>("MPI_Init")(nullptr, nullptr);
  mpi<int (*)(int, int*)>("MPI_Comm_rank")(kWorld, &rank);
  mpi<int (*)(int, int*)>("MPI_Comm_size")(kWorld, &ranks);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  HcclRootInfo root{};
  if (rank == 0) HcclGetRootInfo(&root);
  mpi<int (*)(void*, int, int, int, int)>("MPI_Bcast")(&root, HCCL_ROOT_INFO_BYTES, kChar, 0, kWorld);
  HcclComm comm = nullptr;
  HcclCommInitRootInfo(static_cast<uint32_t>(ranks), &root, static_cast<uint32_t>(rank), &comm);
  void* context = nullptr;
  HcclAllocComResourceByTiling(comm, stream, nullptr, &context);
  auto* ctx = static_cast<CommContext*>(context);
  aclError error = 0;

  if (std::strcmp(what, "meet") == 0) {
    for (int round = 1; round <= 200; ++round) meet<<<1, nullptr, stream>>>(ctx, round * ranks);
    error = aclrtSynchronizeStream(stream);
    std::printf("met %d\n", *at<int32_t>(ctx, static_cast<uint32_t>(rank), 0) >= 200 * ranks);
  } else if (std::strcmp(what, "stuck") == 0) {
    meet<<<1, nullptr, stream>>>(ctx, ranks + 1);
    error = aclrtSynchronizeStream(stream);
  } else if (std::strcmp(what, "absent") == 0) {
    if (rank != 0) meet<<<1, nullptr, stream>>>(ctx, ranks);  // rank 0 never comes
    if (rank == 0) barrier();
  } else if (std::strcmp(what, "killed") == 0) {
    if (rank == 1) kill(getpid(), SIGKILL);
    barrier();
  } else if (std::strcmp(what, "stopped") == 0) {
    if (rank == 1) kill(getpid(), SIGSTOP);
    barrier();
  } else if (std::strcmp(what, "late") == 0) {
    std::printf("late %d\n", getpid());
    std::fflush(stdout);
    if (rank == 1) sleep(60);
    barrier();
  } else if (std::strcmp(what, "outside") == 0) {
    void* memory = nullptr;
    aclrtMalloc(&memory, 8 * 64, ACL_MEM_MALLOC_HUGE_FIRST);
    fill<<<1, nullptr, stream>>>((float*)memory, 8);
    error = aclrtSynchronizeStream(stream);
    std::printf("first %d %g\n", error, static_cast<float*>(memory)[127]);
    fill<<<1, nullptr, stream>>>((float*)memory, 9);
    error = aclrtSynchronizeStream(stream);
  } else if (std::strcmp(what, "calls") == 0) {
    char here[8] = {};
    void* memory = nullptr;
    aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST);
    int seen = aclrtFree(here) != 0;
    seen += aclrtMemcpy(memory, 4, here, 8, ACL_MEMCPY_HOST_TO_DEVICE) != 0;
    seen += aclrtMemcpy(memory, 8, here, 8, ACL_MEMCPY_HOST_TO_DEVICE) != 0;
    HcclComm other = nullptr;
    HcclRootInfo none{};
    seen += HcclCommInitRootInfo(1, &none, 0, &other) != 0;
    std::printf("refused %d of 4\n", seen);
  }
  if (error == 0) {
    HcclBarrier(comm, stream);
    HcclCommDestroy(comm);
    mpi<int (*)()>("MPI_Finalize")();
  }
  return error != 0;
}
