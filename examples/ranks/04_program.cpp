// A whole program, as it would be written for devices: every process is a rank, makes memory on its device, joins the
// others, and launches a kernel that puts its row into the window of the next rank and waits for the one of the rank
// before. Run it with: pto ranks -n 4 examples/ranks/04_program.cpp
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
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

template <int Count>
__global__ AICORE void ring(__gm__ float* in, __gm__ float* out, __gm__ float* window, __gm__ int32_t* signal,
                            __gm__ CommContext* ctx) {
  using Row = GlobalTensor<float, Shape<1, 1, 1, 1, Count>, Stride<1, 1, 1, 1, 1>>;
  const uint32_t next = (ctx->rankId + 1) % ctx->rankNum;
  const uint64_t far = ctx->windowsIn[next] - ctx->windowsIn[ctx->rankId];
  Row mine(in), theirs((__gm__ float*)((uint64_t)window + far)), here(window), result(out);
  comm::Signal there((__gm__ int32_t*)((uint64_t)signal + far)), own(signal);

  Tile<TileType::Vec, float, 1, Count> tile;
  TASSIGN(tile, 0x0);
  TLOAD(tile, mine);
  set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(theirs, tile);
  pipe_barrier(PIPE_ALL);  // the data before the signal
  comm::TNOTIFY(there, 1, comm::NotifyOp::AtomicAdd);

  comm::TWAIT(own, 1, comm::WaitCmp::GE);
  TLOAD(tile, here);
  set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(result, tile);
  pipe_barrier(PIPE_ALL);
}

template <class Function>
static Function mpi(const char* name) {
  static void* const library = dlopen(std::getenv("MPI_LIB_PATH"), RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, name));
}

int main() {
  constexpr int kCount = 256, kWorld = 0x44000000, kChar = 0x4c000101;
  int rank = 0, ranks = 1;
  mpi<int (*)(int*, char***)>("MPI_Init")(nullptr, nullptr);
  mpi<int (*)(int, int*)>("MPI_Comm_rank")(kWorld, &rank);
  mpi<int (*)(int, int*)>("MPI_Comm_size")(kWorld, &ranks);

  aclInit(nullptr);
  aclrtSetDevice(rank);
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

  std::vector<float> values(kCount, static_cast<float>(100 + rank));
  const size_t bytes = kCount * sizeof(float);
  void *in = nullptr, *out = nullptr;
  aclrtMalloc(&in, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&out, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(in, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  auto* signal = reinterpret_cast<int32_t*>(ctx->windowsIn[rank]);
  auto* window = reinterpret_cast<float*>(ctx->windowsIn[rank] + 256);

  ring<kCount><<<1, nullptr, stream>>>((float*)in, (float*)out, window, signal, ctx);
  const aclError error = aclrtSynchronizeStream(stream);
  HcclBarrier(comm, stream);
  aclrtMemcpy(values.data(), bytes, out, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
  const float want = static_cast<float>(100 + (rank + ranks - 1) % ranks);
  const bool right = error == ACL_SUCCESS && values[0] == want && values[kCount - 1] == want;
  std::printf("%s: got %g from the rank before\n", right ? "ok" : "wrong", values[0]);

  HcclCommDestroy(comm);
  aclrtFree(in);
  aclrtFree(out);
  aclrtDestroyStream(stream);
  aclFinalize();
  mpi<int (*)()>("MPI_Finalize")();
  return right ? 0 : 1;
}
