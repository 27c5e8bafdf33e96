// Mixed kernels: the same source for the cube core and for the vector cores.
#include "pto/core/cross_core.hpp"
#include "pto/ops/fifo.hpp"
#include "pto/ops/multi_pipe.hpp"

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

// The cube core and the vector cores alternate: each round waits for the round before of the other side.
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

// A full FIFO that is never read.
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

// Entries that go from the cube core to the vector cores and back, +1 on the way: two slots of 16 x 32, written
// and read by the cube core as two tiles, by each vector core as its eight rows.
using Square = Tile<TileType::Acc, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 1024>;
using Wide = Tile<TileType::Vec, float, 8, 32>;
using Back = Tile<TileType::Mat, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 512>;
using There = TMPipe<0, FIFOType::GM_FIFO, 2, 1, Square, Wide, false, 2>;
using Return = TMPipe<2, FIFOType::GM_FIFO, 2, 1, Wide, Back, false, 0>;
__global__ AICORE void there_and_back(__gm__ float* slots, __gm__ float* out, int32_t rounds) {
  slots += get_block_idx() * 2048, out += get_block_idx() * rounds * 512;
  There there(slots, 0x400);
  Return back(slots + 1024);
  constexpr int piece = 16 * 16 * sizeof(float);
#ifdef __DAV_CUBE__
  Square acc;
  TASSIGN(acc, 0);
  Back mat;
  TASSIGN(mat, 0);
  const auto push = [&](int32_t i) {
    for (int half = 0; half < 2; ++half) {
      for (int n = 0; n < 256; ++n) acc.data()[n] = static_cast<float>(i * 512 + n / 16 * 32 + half * 16 + n % 16);
      there.prod.setTileId(i, half);
      there.prod.setAllocateStatus(half == 0 && i > 0);  // both slots are free at first
      there.prod.setRecordStatus(half == 1);
      there.prod.setEntryOffset(half * piece);
      TPUSH(acc, there);
    }
  };
  push(0);
  for (int32_t i = 0; i < rounds; ++i) {
    if (i + 1 < rounds) push(i + 1);
    for (int half = 0; half < 2; ++half) {
      back.cons.setTileId(i, half);
      back.cons.setWaitStatus(half == 0);
      back.cons.setFreeStatus(half == 1);
      back.cons.setEntryOffset(half * piece);
      TPOP(mat, back);
      for (int r = 0; r < 16; ++r) {
        for (int c = 0; c < 16; ++c) out[i * 512 + r * 32 + half * 16 + c] = mat.data()[c / 8 * 128 + r * 8 + c % 8];
      }
    }
  }
  there.prod.allocate();
#endif
#ifdef __DAV_VEC__
  Wide tile;
  const int mine = static_cast<int>(get_subblockid()) * 8 * 16 * static_cast<int>(sizeof(float));
  there.cons.setEntryOffset(mine);
  back.prod.setEntryOffset(mine);
  for (int32_t i = 0; i < rounds; ++i) {
    there.cons.setTileId(i, 0);
    back.prod.setTileId(i, 0);
    TPOP(tile, there);
    for (int n = 0; n < 8 * 32; ++n) tile.data()[n] += 1;
    TPUSH(tile, back);
  }
#endif
}

// The same in the buffers of the consumers: nothing is copied by a pop. An A2A3 has no such pipes.
using Rows = Tile<TileType::Vec, float, 8, 16>;
using Boxes = Tile<TileType::Vec, float, 8, 16, BLayout::ColMajor, 8, 16, SLayout::RowMajor, 512>;
__global__ AICORE void near_and_back(__gm__ float* out, int32_t rounds) {
#if defined(PTO_NPU_ARCH_A5)
  using Near = TMPipe<4, FIFOType::VEC_FIFO, 2, 1, Square, Rows, false, 0>;
  using NearBack = TMPipe<6, FIFOType::MAT_FIFO, 2, 1, Boxes, Back, false, 0>;
  Near there(0x1000);
  NearBack back(0x2000);
#ifdef __DAV_CUBE__
  Square acc;
  TASSIGN(acc, 0);
  for (int32_t i = 0; i < rounds; ++i) {
    for (int n = 0; n < 256; ++n) acc.data()[n] = static_cast<float>(i * 256 + n);
    there.prod.setTileId(i, 0);
    back.cons.setTileId(i, 0);
    TPUSH(acc, there);
    Back mat;
    TASSIGN(mat, 0x2000 + i % 2 * 1024);
    TPOP(mat, back);
    for (int r = 0; r < 16; ++r) {
      for (int c = 0; c < 16; ++c) out[i * 256 + r * 16 + c] = mat.data()[c / 8 * 128 + r * 8 + c % 8];
    }
    TFREE(back);
  }
#endif
#ifdef __DAV_VEC__
  Boxes boxes;
  TASSIGN(boxes, 0);
  for (int32_t i = 0; i < rounds; ++i) {
    there.cons.setTileId(i, 0);
    back.prod.setTileId(i, 0);
    Rows rows;
    TASSIGN(rows, 0x1000 + i % 2 * 512);
    TPOP(rows, there);
    for (int n = 0; n < 128; ++n) boxes.data()[n % 16 / 8 * 64 + n / 16 * 8 + n % 8] = rows.data()[n] + 1;
    TFREE(there);
    TPUSH(boxes, back);
  }
#endif
#endif
}
