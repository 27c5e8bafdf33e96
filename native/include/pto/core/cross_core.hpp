// Signals between cores: semaphores of the cores of a block, barriers among cores of one kind, and the grid
// barrier.
//
// A2A3: ffts_cross_core_sync and wait_flag_dev. Mode 2 signals between the cube core and its vector cores,
// mode 1 among the vector cores of a block, mode 0 among the cores of one kind in all blocks. A5:
// set_intra_block and wait_intra_block, where each call addresses one core. A wait decrements its semaphore.
#pragma once

#include "pto/core/enums.hpp"
#include "pto/core/machine.hpp"
#include "pto/core/macros.hpp"
#include "pto/core/trace.hpp"

namespace pto::detail {

inline int semaphore_id(int64_t id, int last) {
  if (id < 0 || id > last) {
    failf("[PTO-E2102] semaphore %lld is outside 0..%d", static_cast<long long>(id), last);
  }
  return static_cast<int>(id);
}

inline const char* box_name(int box) {
  constexpr const char* kNames[kBoxes] = {"AIC", "AIC from AIV0", "AIC from AIV1", "AIV0", "AIV1", "own"};
  return kNames[box];
}

inline void raise_semaphore(Cluster& cluster, int box, int id) {
  order_gives(&cluster.semaphores[box][id]);
  const int32_t before = cluster.semaphores[box][id].fetch_add(1, kBoth);
  if (kChecked && before >= 15) failf("[PTO-E2102] semaphore %d (%s) passes 15", id, box_name(box));
}

/// Wait until semaphore `id` of each box first..first + count - 1 is positive, then decrement them.
inline void await_semaphores(Cluster& cluster, int first, int count, int id) {
  const auto missing = [&] {
    for (int box = first; box < first + count; ++box) {
      if (cluster.semaphores[box][id].load(kAcquire) <= 0) return box;
    }
    return -1;
  };
  wait_until([&] { return missing() < 0; },
             [&](char* text, size_t size) {
               std::snprintf(text, size, "cross-core semaphore %d (%s), which no core has raised", id,
                             box_name(missing()));
             });
  for (int box = first; box < first + count; ++box) {
    cluster.semaphores[box][id].fetch_sub(1, kBoth);
    order_takes(&cluster.semaphores[box][id]);
  }
}

inline int vectors_of(const Core& me) { return me.grid != nullptr ? static_cast<int>(me.grid->vectors) : 0; }

/// Return the first box that a core of A2A3 waits for, and set `count`. A vector core waits for its own box,
/// a cube core for one box per vector core.
inline int own_boxes(const Core& me, int& count) {
  count = 1;
  if (me.kind == CoreKind::Vector) return kBoxAiv0 + static_cast<int>(me.subblock_idx);
  if (vectors_of(me) == 0) return kBoxOwn;
  count = vectors_of(me);
  return kBoxAicFromAiv0;
}

inline void raise_own(Cluster& cluster, const Core& like, int sub, int id) {
  if (like.kind == CoreKind::Vector) {
    raise_semaphore(cluster, kBoxAiv0 + sub, id);
  } else if (vectors_of(like) == 0) {
    raise_semaphore(cluster, kBoxOwn, id);
  } else {
    for (int v = 0; v < vectors_of(like); ++v) raise_semaphore(cluster, kBoxAicFromAiv0 + v, id);
  }
}

/// Check that all blocks of a task run at the same time. Otherwise each block has a grid of its own, since
/// the task may have more blocks than there are cores.
inline void check_all_are_there(const Core& me) {
  if (me.block_num <= me.grid->blocks) return;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "a grid barrier in a task of %u blocks that do not start together: they run as cores are free, so "
      "no core can wait for all of them; have at most as many blocks as cores, with sync_start, or two "
      "tasks",
      me.block_num);
  fail(text);
}

/// Signal the other side of this block (mode 2), or meet the cores of this kind in this block (mode 1) or in
/// all blocks (mode 0). A block of a task may have a number above 0 in a grid of one block.
inline void signal_cross_core(int mode, int id) {
  Core& me = core();
  const int vectors = vectors_of(me);
  if (mode == 2 || me.grid == nullptr) {
    if (me.kind == CoreKind::Vector) {
      raise_semaphore(*me.cluster, kBoxAicFromAiv0 + static_cast<int>(me.subblock_idx), id);
    } else if (vectors == 0) {
      raise_semaphore(*me.cluster, kBoxOwn, id);
    } else {
      for (int v = 0; v < vectors; ++v) raise_semaphore(*me.cluster, kBoxAiv0 + v, id);
    }
    return;
  }
  // A barrier: the last core that arrives signals all cores.
  if (mode == 0) check_all_are_there(me);
  const bool vector = me.kind == CoreKind::Vector;
  const uint32_t lanes = vector ? static_cast<uint32_t>(vectors) : 1;
  Atomic<uint32_t>& arrived = mode == 0 ? me.grid->flags[vector][id] : me.cluster->arrived[vector][id];
  const uint32_t needed = mode == 0 ? me.grid->blocks * lanes : lanes;
  order_gives(&arrived);
  if ((arrived.fetch_add(1) + 1) % needed != 0) return;
  order_takes(&arrived);
  const bool alone = mode != 0 || me.grid->blocks == 1;
  for (uint32_t block = 0; block < (alone ? 1 : me.grid->blocks); ++block) {
    Cluster& cluster = alone ? *me.cluster : me.grid->clusters[block];
    for (uint32_t lane = 0; lane < lanes; ++lane) raise_own(cluster, me, static_cast<int>(lane), id);
  }
}

/// Return the semaphore id of a core. The second vector core may add 16 to its ids, as the cube core does.
inline int own_semaphore(const Core& me, int id) {
  const bool second = me.kind == CoreKind::Vector && me.subblock_idx == 1;
  return second && id >= kSecondVector ? id - kSecondVector : id;
}

inline int intra_target(const Core& me, int id, int& at) {
  if (me.kind == CoreKind::Vector) {
    at = own_semaphore(me, id) + kSecondVector * static_cast<int>(me.subblock_idx);
    return kBoxAic;
  }
  at = id % kSecondVector;
  return id >= kSecondVector ? kBoxAiv1 : kBoxAiv0;
}

/// A symbol that only libraries with a grid barrier have. It makes the task runtime start the blocks of a
/// kernel together.
extern "C" {
__attribute__((visibility("default"))) inline char pto2_kernel_meets = 1;
}

/// Wait at the grid barrier of the vector cores (0), the cube cores (1) or all cores (2) of the launch.
inline void meet(int who) {
  asm volatile("" : : "r"(&pto2_kernel_meets));
  Core& me = core();
  if (me.grid == nullptr) return;  // plain threads: the number of cores is unknown
  if ((who == 0 && me.kind == CoreKind::Cube) || (who == 1 && me.kind == CoreKind::Vector)) return;
  Grid& grid = *me.grid;
  check_all_are_there(me);
  const uint32_t round = grid.round[who].load();
  order_gives(&grid.round[who]);
  if (grid.here[who].fetch_add(1) + 1 == grid.participants[who]) {
    order_takes(&grid.round[who]);
    grid.here[who].store(0);
    grid.round[who].fetch_add(1);
    return;
  }
  wait_until([&] { return grid.round[who].load() != round; },
             [&](char* text, size_t size) {
               constexpr const char* kWho[] = {"aiv_only", "aic_only", "mix"};
               std::snprintf(text, size, "a grid barrier (%s): %u of %u cores are there", kWho[who],
                             grid.here[who].load(), grid.participants[who]);
             });
  order_takes(&grid.round[who]);
}

}  // namespace pto::detail

inline constexpr uint16_t FFTS_MODE_VAL = 2;

/// Return a signal as one word: mode in bits 4..5, id in bits 8..11.
inline constexpr uint16_t getFFTSMsg(uint16_t mode, uint16_t id, uint16_t base = 1) {
  return static_cast<uint16_t>((base & 0xF) | (mode & 3) << 4 | (id & 0xF) << 8);
}
inline void set_ffts_base_addr(uint64_t address) { pto::detail::core().ffts_base = address; }
inline uint64_t get_ffts_base_addr() { return pto::detail::core().ffts_base; }

PTO_INST void ffts_cross_core_sync([[maybe_unused]] pipe_t pipe, uint64_t message) {
  PTO_TRACE("sync.set: pipe ffts_mode event_id", PTO_SAYS(pipe, message >> 4 & 3, message >> 8 & 0xF));
  pto::detail::signal_cross_core(static_cast<int>(message >> 4 & 3), static_cast<int>(message >> 8 & 0xF));
}
PTO_INST void wait_flag_dev(int64_t id) {
  PTO_TRACE("wait_flag_dev event_id:", PTO_SAYS(), id);
  const int at = pto::detail::semaphore_id(id, 15);
  int count;
  pto::detail::Core& me = pto::detail::core();
  const int first = pto::detail::own_boxes(me, count);
  pto::detail::await_semaphores(*me.cluster, first, count, at);
}
PTO_INST void wait_flag_dev([[maybe_unused]] pipe_t pipe, int64_t id) {
  PTO_TRACE("sync.wait: pipe event_id", PTO_SAYS(pipe, id));
  wait_flag_dev(id);
}

PTO_INST void set_intra_block([[maybe_unused]] pipe_t pipe, int64_t id) {
  PTO_TRACE("set_intra_block: pipe event_id", PTO_SAYS(pipe, id));
  pto::detail::Core& me = pto::detail::core();
  int at;
  const int box = pto::detail::intra_target(me, pto::detail::semaphore_id(id, 31), at);
  pto::detail::raise_semaphore(*me.cluster, box, at);
}
PTO_INST void wait_intra_block([[maybe_unused]] pipe_t pipe, int64_t id) {
  PTO_TRACE("wait_intra_core: pipe event_id", PTO_SAYS(pipe, id));
  using namespace pto::detail;
  Core& me = pto::detail::core();
  const int box = me.kind == CoreKind::Vector ? kBoxAiv0 + static_cast<int>(me.subblock_idx) : kBoxAic;
  await_semaphores(*me.cluster, box, 1, own_semaphore(me, semaphore_id(id, 31)));
}

namespace pto {

template <SyncCoreType Who = SyncCoreType::AIVOnly>
PTO_INST void SYNCALL() {
  PTO_TRACE("syncall: core_type", PTO_SAYS(Who));
  detail::meet(static_cast<int>(Who));
}

/// Soft form: in a launch it is the same barrier. Plain threads count arrivals in the workspace, if
/// `used_cores` is positive.
template <SyncAllMode Mode, SyncCoreType Who = SyncCoreType::AIVOnly, class Workspace>
PTO_INST void SYNCALL(Workspace& workspace, int32_t used_cores = 0) {
  PTO_TRACE("syncall gm_workspace used_cores: mode core_type", PTO_SAYS(Mode, Who), workspace, used_cores);
  if (detail::core().grid != nullptr || Mode == SyncAllMode::Hard || used_cores <= 0) {
    detail::meet(static_cast<int>(Who));
    return;
  }
  int32_t& counter = *reinterpret_cast<int32_t*>(workspace.data());
  const int32_t before = detail::atomic_add(counter, 1);
  const int32_t target = (before / used_cores + 1) * used_cores;
  detail::wait_until([&] { return detail::atomic_load(counter) >= target; }, "a soft grid barrier");
}

}  // namespace pto
