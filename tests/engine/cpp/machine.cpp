// Kernels that exercise a launch itself: arguments, waiting, failing. They need no instruction.
#include "pto/core/cross_core.hpp"
#include "pto/ops/fifo.hpp"

using namespace pto;
using pto::detail::core;
using pto::detail::wait_until;

struct Seen {
  double f64;
  float f32;
  uint16_t f16;
  int8_t i8;
  uint8_t flag;
  int32_t i32;
  int64_t i64, block, blocks, sub;
};

__global__ AICORE void arguments(Seen* out, double f64, float f32, half f16, int8_t i8, bool flag, int32_t i32,
                                 int64_t i64, int32_t block, int64_t blocks, int64_t sub) {
  Seen& seen = out[get_block_idx()];
  seen = Seen{f64, f32, f16.data, i8, flag, i32, i64, block, blocks, sub};
}

// Every block writes its own part, and its neighbour's number from on-chip memory that must start as zeros.
__global__ AICORE void parts(int32_t* out, int32_t count) {
  auto* scratch = reinterpret_cast<int32_t*>(pto::detail::on_chip(TileType::Vec, 0));
  for (int i = 0; i < count; ++i) {
    out[get_block_idx() * count + i] = static_cast<int32_t>(get_block_idx() * 1000 + get_block_num()) + scratch[i];
    scratch[i] = 77;
  }
}

// All blocks have to be there before one may go on, `rounds` times.
__global__ AICORE void barrier(int32_t* counts, int32_t rounds, int32_t* late) {
  for (int32_t i = 0; i < rounds; ++i) {
    __atomic_fetch_add(&counts[i], 1, __ATOMIC_SEQ_CST);
    SYNCALL<SyncCoreType::AIVOnly>();
    if (__atomic_load_n(&counts[i], __ATOMIC_SEQ_CST) != get_block_num()) __atomic_store_n(late, 1, __ATOMIC_SEQ_CST);
  }
}

// One block leaves before the barrier.
__global__ AICORE void deserter(int32_t who) {
  if (get_block_idx() != who) SYNCALL<SyncCoreType::AIVOnly>();
}

__global__ AICORE void misbehave(int32_t how, int32_t zero, int32_t* out) {
  if (how == 1) trap();
  if (how == 2) wait_until([] { return false; }, "rain");
  if (how == 3) *reinterpret_cast<volatile int32_t*>(16) = zero;
  if (how == 4) out[0] = 7 / zero;
  if (how == 5) {
    struct Deep {
      static int down(int n) {
        volatile char room[1024];
        room[0] = static_cast<char>(n);
        return n == 0 ? room[0] : down(n + 1) + room[0];
      }
    };
    out[0] = Deep::down(1);
  }
  if (how == 6) throw how;
  if (how == 7) pto::detail::failf("[PTO][SA-0353] tile %d ends beyond UB", zero);
  if (how == 8) pto::detail::print("block %d\n", static_cast<int>(get_block_idx()));
  if (how == 9) wait_flag_dev(99);
  if (how == 10) __builtin_trap();
}
