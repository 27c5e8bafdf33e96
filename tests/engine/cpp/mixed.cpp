// Mixed kernels: the same source for the cube core and for the vector cores.
#include "pto/core/cross_core.hpp"
#include "pto/ops/fifo.hpp"

using namespace pto;

// Which half this is, in a template and in an inline function: the halves must not share them.
template <class T>
struct Half {
  static int number() {
#ifdef __DAV_CUBE__
    return 1;
#else
    return 2;
#endif
  }
};
AICORE inline int half_number() {
#ifdef __DAV_CUBE__
  return 10;
#else
  return 20;
#endif
}

__global__ AICORE void who(__gm__ int32_t* out) {
  const int64_t at = get_block_idx() * 3;
#ifdef __DAV_CUBE__
  out[at] = Half<int>::number() + half_number() + 100 * static_cast<int32_t>(get_subblockdim());
#endif
#ifdef __DAV_VEC__
  out[at + 1 + get_subblockid()] = Half<int>::number() + half_number() + 100 * static_cast<int32_t>(get_subblockid());
#endif
}

// The cube core and the vector cores take turns: each round waits for what the other side did before.
__global__ AICORE void turns(__gm__ int32_t* log, int32_t rounds) {
  int32_t* mine = log + get_block_idx() * 3;
#if defined(PTO_NPU_ARCH_A5)
#ifdef __DAV_CUBE__
  for (int32_t i = 0; i < rounds; ++i) {
    set_intra_block(PIPE_FIX, 4);
    set_intra_block(PIPE_FIX, 4 + 16);
    wait_intra_block(PIPE_FIX, 5);
    wait_intra_block(PIPE_FIX, 5 + 16);
    mine[0] += mine[1] == i + 1 && mine[2] == i + 1;
  }
#endif
#ifdef __DAV_VEC__
  for (int32_t i = 0; i < rounds; ++i) {
    wait_intra_block(PIPE_V, 4);
    if (mine[0] == i) mine[1 + get_subblockid()] += 1;
    set_intra_block(PIPE_MTE3, 5);
  }
#endif
#else
#ifdef __DAV_CUBE__
  for (int32_t i = 0; i < rounds; ++i) {
    ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(FFTS_MODE_VAL, 4));
    wait_flag_dev(5);
    mine[0] += mine[1] == i + 1 && mine[2] == i + 1;
  }
#endif
#ifdef __DAV_VEC__
  for (int32_t i = 0; i < rounds; ++i) {
    wait_flag_dev(4);
    if (mine[0] == i) mine[1 + get_subblockid()] += 1;
    ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(FFTS_MODE_VAL, 5));
  }
#endif
#endif
}

// Like cores of all blocks meet by flags of mode 0; the vector cores of a block by mode 1.
__global__ AICORE void like_cores(__gm__ int32_t* counts, int32_t rounds, __gm__ int32_t* late) {
#ifdef __DAV_VEC__
  for (int32_t i = 0; i < rounds; ++i) {
    __atomic_fetch_add(&counts[i], 1, __ATOMIC_SEQ_CST);
    ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(0, 9));
    wait_flag_dev(9);
    if (__atomic_load_n(&counts[i], __ATOMIC_SEQ_CST) != get_block_num() * get_subblockdim()) late[0] = 1;
    int32_t* own = counts + rounds + get_block_idx();
    __atomic_fetch_add(own, 1, __ATOMIC_SEQ_CST);
    ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(1, 8));
    wait_flag_dev(8);
    if (__atomic_load_n(own, __ATOMIC_SEQ_CST) < (i + 1) * get_subblockdim()) late[1] = 1;
  }
#endif
}

// A full FIFO that nobody reads.
using Full = TPipe<2, Direction::DIR_C2V, 1024, 4, 2, false>;
__global__ AICORE void full(int32_t pushes) {
#ifdef __DAV_CUBE__
  Full pipe(nullptr, 0, 0);
  Tile<TileType::Acc, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 1024> tile;
  TASSIGN(tile, 0);
  for (int32_t i = 0; i < pushes; ++i) TPUSH<Full, decltype(tile), TileSplitAxis::TILE_UP_DOWN>(pipe, tile);
#endif
#ifdef __DAV_VEC__
  if (pushes > 4) SYNCALL<SyncCoreType::Mix>();
#endif
}
