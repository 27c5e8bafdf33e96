// A mixed kernel: the vector side adds a number to the product of the cube side, and each waits for the
// other. -D RACE: the sum does not wait for its operand.
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "pto/pto-inst.hpp"
using namespace pto;

constexpr int kN = 16;
using Mat = GlobalTensor<float, Shape<1, 1, 1, kN, kN>, Stride<kN * kN, kN * kN, kN * kN, kN, 1>>;

template <int Add>
__global__ AICORE void product(__gm__ float* a, __gm__ float* b, __gm__ float* mid, __gm__ float* out) {
  Mat ga(a), gb(b), gm(mid), go(out);
#ifdef __DAV_CUBE__
  Tile<TileType::Mat, float, kN, kN, BLayout::ColMajor, kN, kN, SLayout::RowMajor> la, lb;
  TileLeft<float, kN, kN> left;
  TileRight<float, kN, kN> right;
  TileAcc<float, kN, kN> acc;
  TASSIGN(la, 0x0);
  TASSIGN(lb, 0x1000);
  TASSIGN(left, 0x0);
  TASSIGN(right, 0x0);
  TASSIGN(acc, 0x0);
  TLOAD(la, ga);
  TLOAD(lb, gb);
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(left, la);
  TMOV(right, lb);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(acc, left, right);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gm, acc);
  ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(2, 0));
  wait_flag_dev(1);
#endif
#ifdef __DAV_VEC__
  wait_flag_dev(0);
  if (get_subblockid() == 0) {
    Tile<TileType::Vec, float, kN, kN> t;
    TASSIGN(t, 0x0);
    TLOAD(t, gm);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
#ifndef RACE
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
#endif
    TADDS(t, t, static_cast<float>(Add));
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
#ifdef RACE
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
#endif
    TSTORE(go, t);
  }
  ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(2, 1));
#endif
}

__global__ AICORE void nothing() {}

// Sides of a kernel are found although what launches it differs between them.
template <int Add>
static void launch(void* a, void* b, void* mid, void* out) {
#ifdef __DAV_C220_VEC__
  nothing<<<1, nullptr, nullptr>>>();
#endif
  product<Add><<<1, nullptr, nullptr>>>((float*)a, (float*)b, (float*)mid, (float*)out);
}

int main() {
  aclInit(nullptr);
  std::vector<float> a(kN * kN, 1.0f), b(kN * kN, 2.0f), c(kN * kN);
  const size_t bytes = kN * kN * 4;
  void *da, *db, *dm, *dc;
  for (void** p : {&da, &db, &dm, &dc}) aclrtMalloc(p, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(da, bytes, a.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtMemcpy(db, bytes, b.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  launch<5>(da, db, dm, dc);
  const int error = aclrtSynchronizeStream(nullptr);
  aclrtMemcpy(c.data(), bytes, dc, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("%s %g\n", error == 0 && c[0] == 37 && c[255] == 37 ? "ok" : "wrong", c[0]);
  return error != 0;
}
