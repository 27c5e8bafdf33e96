// FIFOs between the cube core and the vector cores of a block: TPipe, TPUSH, TPOP, TFREE, TALLOC.
//
// A direction is a ring of slots that both sides see. A tile pushed lies in its slot dense and row by row: in
// global memory if the pipe was given some, else in memory of the ring. A pop copies the lane's part of it
// into the consumer's tile, which lies in the consumer's buffer of that direction. Vector cores are lanes 0
// and 1: with a split each has its half of the entry; without one only lane 0 takes part, unless the pipe is
// `nosplit`, where lane 1 goes through the same motions and finds zeros.
//
// Where a pop makes a copy for good (A2A3, and pipes through global memory on A5) it gives the slot back and
// TFREE has nothing left to do.
#pragma once

#ifdef __CPU_SIM
#include <mutex>
#endif

#include "pto/core/access.hpp"
#include "pto/core/cpu_sim.hpp"
#include "pto/core/events.hpp"

namespace pto {

enum TileSplitAxis : uint8_t {
  TILE_NO_SPLIT = 0,
  TILE_UP_DOWN = 1,      // lane 0 the upper half of the rows
  TILE_LEFT_RIGHT = 2,   // lane 0 the left half of the columns
  TILE_UP_DOWN_ODD = 3,  // the same for an odd number: lane 0 has one more
  TILE_LEFT_RIGHT_ODD = 4,
};

enum Direction : uint8_t {
  UNDEFINED = 0,
  DIR_C2V = 1,
  DIR_V2C = 2,
  DIR_BOTH = 3,
  DIR_V2C_CTRL = 4,
  DIR_C2V_GM = 5,
  DIR_V2C_GM = 6,
  DIR_BOTH_GM = 7,
};

/// What a pipe was made with.
template <int SlotSize, int SlotNum, int LocalSlotNum>
struct RingFIFO {
  static constexpr uint32_t SLOT_SIZE = SlotSize, SLOT_NUM = SlotNum, LOCAL_SLOT_NUM = LocalSlotNum;
  __gm__ void* GM_SLOT_BUFFER = nullptr;
  uint32_t C2V_CONSUMER_BUF = 0, V2C_CONSUMER_BUF = 0;
  RingFIFO(__gm__ void* slots, uint32_t c2v, uint32_t v2c)
      : GM_SLOT_BUFFER(slots), C2V_CONSUMER_BUF(c2v), V2C_CONSUMER_BUF(v2c) {}
};

namespace detail {

/// One entry of a ring.
struct FifoSlot {
  int64_t index = -1;   // which entry it holds
  uint32_t pushed = 0;  // lanes that have pushed it
  uint32_t freed = 0;   // lanes that have given it back
  int32_t rows = 0, cols = 0;
  int32_t at = 0;               // byte offset of the last push, for entries made of several tiles
  uint8_t dtype = 0, bits = 0;  // of its elements
  bool is_integer = false;
  bool is_tile = false;
};

inline uint32_t lane_bit(int lane) { return 1u << (lane & 1); }

/// One direction of a pipe. Counters are entries, not slots; by lane where lanes go their own pace.
template <int SlotSize, int SlotNum>
struct FifoRing {
  std::atomic<uint32_t> lock{0};
  bool dual = false;      // plain threads: two consumers have been seen
  int64_t heads[2] = {};  // pushes begun
  int64_t tails[2] = {};  // pops done
  int64_t frees[2] = {};  // frees done
  int64_t published = 0;  // entries complete
  int64_t freed = 0;      // entries given back, all before included
  FifoSlot slots[SlotNum];
  // Twice the size: some pipes name the size of one of two halves.
  alignas(64) char data[SlotNum][2 * SlotSize];

  FifoSlot& slot(int64_t index) { return slots[index % SlotNum]; }
};

/// Holds a ring for a few instructions; nobody waits meanwhile.
template <class Ring>
struct Holding {
  Ring& ring;
  explicit Holding(Ring& r) : ring(r) {
    while (ring.lock.exchange(1, std::memory_order_acquire) != 0) sched_yield();
  }
  ~Holding() { ring.lock.store(0, std::memory_order_release); }
};

constexpr bool splits_rows(int split) { return split == TILE_UP_DOWN || split == TILE_UP_DOWN_ODD; }
constexpr bool splits_cols(int split) { return split == TILE_LEFT_RIGHT || split == TILE_LEFT_RIGHT_ODD; }

struct PipeTag {};
template <class T>
inline constexpr bool is_pipe_v = std::is_base_of_v<PipeTag, std::remove_cv_t<T>>;

}  // namespace detail

// --- the pipe ----------------------------------------------------------------------------------------------

template <uint8_t FlagID, uint8_t DirType, uint32_t SlotSize, uint32_t SlotNum, uint32_t LocalSlotNum = 2,
          bool IsNoSplit = false, bool UnitFlag = false>
struct TPipe : detail::PipeTag {
  static_assert(SlotNum >= 1, "[PTO][PTO-E1304] TPipe: a FIFO has at least one slot");
  static constexpr uint8_t DIR_TYPE = DirType & 7;
  static constexpr bool is_c2v = (DIR_TYPE & DIR_C2V) != 0;
  static constexpr bool is_v2c = (DIR_TYPE & DIR_V2C) != 0 || DIR_TYPE == DIR_V2C_CTRL;
  static constexpr bool is_both = is_c2v && is_v2c;
  static constexpr bool is_no_split = IsNoSplit;
  static constexpr int flag = FlagID;
  static_assert(is_c2v || is_v2c, "[PTO][PTO-E1304] TPipe: the direction is none of C2V, V2C and both");
  using RingFiFo = RingFIFO<SlotSize, SlotNum, LocalSlotNum>;
  using Ring = detail::FifoRing<SlotSize, SlotNum>;

  /// What both sides see.
  struct SharedState {
    std::atomic<uint32_t> made{0};
    uint32_t size = 0;
    Ring rings[2];
#ifdef __CPU_SIM
    // What tests of the simulator look at; kept up to date, read by nobody here.
    std::mutex mutex;
    int next_producer_slot = 0, next_c2v_consumer_slot = 0, next_v2c_consumer_slot = 0;
    int occupied = 0, popped_not_freed = 0;
    int popped_not_freed_by_lane[2] = {};
    uint32_t producers_done[SlotNum] = {}, producers_allocated[SlotNum] = {};
    void note() {
      occupied = popped_not_freed = 0;
      for (int lane = 0; lane < 2; ++lane) popped_not_freed_by_lane[lane] = 0;
      for (Ring& ring : rings) {
        occupied += static_cast<int>(ring.published - ring.freed);
        for (int lane = 0; lane < 2; ++lane) {
          const int held = static_cast<int>(ring.tails[lane] - ring.frees[lane]);
          (ring.dual ? popped_not_freed_by_lane[lane] : popped_not_freed) += held;
        }
        for (const detail::FifoSlot& slot : ring.slots) {
          if (slot.index < 0 || is_c2v) continue;
          const bool done = slot.index < ring.published;
          producers_done[slot.index % SlotNum] = producers_allocated[slot.index % SlotNum] =
              done ? 0 : slot.pushed;
        }
      }
      next_producer_slot = static_cast<int>((rings[0].published + rings[1].published) % SlotNum);
      next_c2v_consumer_slot = static_cast<int>(rings[0].tails[0] % SlotNum);
      next_v2c_consumer_slot = static_cast<int>(rings[1].tails[0] % SlotNum);
    }
#else
    void note() {}
#endif
  };
  using SharedStateStorage = SharedState;

  static SharedState& GetSharedState() {
    detail::Core& me = detail::core();
    if (me.host == nullptr) {
      constexpr uint64_t key = uint64_t{FlagID} << 56 | uint64_t{DirType} << 48 | uint64_t{SlotNum} << 40 |
                               uint64_t{LocalSlotNum} << 32 | uint64_t{SlotSize};
      if (void* given = cpu_sim::pipe_state(key, sizeof(SharedState))) {
        auto& state = *static_cast<SharedState*>(given);
        if (state.made.exchange(1) == 0) state.size = sizeof(SharedState);
        return state;
      }
    }
    constexpr int key = FlagID % (detail::Cluster::kShared / 2) * 2 + !is_c2v;
    std::atomic<void*>& place = me.cluster->shared[key];
    void* found = place.load(std::memory_order_acquire);
    if (found == nullptr) {
      void* memory = std::aligned_alloc(64, (sizeof(SharedState) + 63) / 64 * 64);
      if (memory == nullptr) detail::fail("[PTO-E2102] no memory for a FIFO");
      auto* made = ::new (memory) SharedState;
      made->size = sizeof(SharedState);
      if (place.compare_exchange_strong(found, made)) return *made;
      std::free(memory);
    }
    auto& state = *static_cast<SharedState*>(found);
    if (state.size != sizeof(SharedState)) {
      if (me.host != nullptr) {
        detail::failf("[PTO-E2102] the two sides of FIFO %d disagree on the size or the number of its slots",
                      flag);
      }
      place.store(nullptr);  // plain threads: another pipe had this flag before
      return GetSharedState();
    }
    return state;
  }

  /// Plain threads: forget what is in the pipe.
  static void reset_for_cpu_sim() {
    SharedState& state = GetSharedState();
    for (Ring& ring : state.rings) {
      ring.dual = false;
      for (int lane = 0; lane < 2; ++lane) ring.heads[lane] = ring.tails[lane] = ring.frees[lane] = 0;
      ring.published = ring.freed = 0;
      for (detail::FifoSlot& slot : ring.slots) slot = detail::FifoSlot{};
    }
    state.note();
  }

  /// The producer's end: entries made of several tiles switch allocation and publishing off in between.
  struct Producer {
    int tileIndex = 0, subTileIndex = 0;
    bool isAllocate = true, isRecord = true;
    int entryOffset = 0;
    void setTileId(int tile, int sub) { tileIndex = tile, subTileIndex = sub; }
    int getTileId() const { return tileIndex; }
    int getSubTileId() const { return subTileIndex; }
    void setAllocateStatus(bool on) { isAllocate = on; }
    bool getAllocateStatus() const { return isAllocate; }
    void setRecordStatus(bool on) { isRecord = on; }
    bool getRecordStatus() const { return isRecord; }
    void setEntryOffset(int offset) { entryOffset = offset; }
  };
  struct Consumer {
    int tileIndex = 0, subTileIndex = 0;
    bool isWait = true, isFree = true;
    int entryOffset = 0;
    int direction = is_c2v ? 0 : 1;  // of the last pop
    void setTileId(int tile, int sub) { tileIndex = tile, subTileIndex = sub; }
    int getTileId() const { return tileIndex; }
    int getSubTileId() const { return subTileIndex; }
    void setWaitStatus(bool on) { isWait = on; }
    bool getWaitStatus() const { return isWait; }
    void setFreeStatus(bool on) { isFree = on; }
    bool getFreeStatus() const { return isFree; }
    void setentryOffset(int offset) { entryOffset = offset; }
    void setEntryOffset(int offset) { entryOffset = offset; }
  };

  RingFiFo fifo;
  Producer prod;
  Consumer cons;

  explicit TPipe(__gm__ void* slots, uint32_t c2v, uint32_t v2c) : fifo(slots, c2v, v2c) {}

  // --- what the instructions below are made of ---

  /// The direction a core produces for, 0 C2V or 1 V2C; `cube` says what the tile tells.
  static int outgoing(bool cube) {
    if constexpr (!is_both) return is_c2v ? 0 : 1;
    const detail::CoreKind kind = detail::core().kind;
    return kind == detail::CoreKind::Cube ? 0 : kind == detail::CoreKind::Vector ? 1 : cube ? 0 : 1;
  }
  static int incoming(bool cube) {
    if constexpr (!is_both) return is_c2v ? 0 : 1;
    const detail::CoreKind kind = detail::core().kind;
    return kind == detail::CoreKind::Vector ? 0 : kind == detail::CoreKind::Cube ? 1 : cube ? 1 : 0;
  }

  /// Whether the core is one of the vector cores; plain threads are what their tiles say.
  static bool on_vector(bool vector_tile) {
    const detail::Core& me = detail::core();
    return me.host == nullptr ? vector_tile : me.kind == detail::CoreKind::Vector;
  }
  static int lane_of(bool vector) { return vector ? static_cast<int>(get_subblockid()) & 1 : 0; }
  static int lanes(const Ring& ring, int split) {
    const detail::Core& me = detail::core();
    if (me.host != nullptr) return me.grid->vectors > 1 ? 2 : 1;
    return split != TILE_NO_SPLIT || ring.dual ? 2 : 1;
  }
  /// Vector cores that take part in an entry.
  static int takers(const Ring& ring, int split) {
    const bool both = split != TILE_NO_SPLIT || (IsNoSplit && detail::kIsa != detail::Isa::a5);
    return both ? lanes(ring, split) : 1;
  }
  /// Whether the second vector core stands aside.
  static bool stands_aside(int direction, int split, bool vector) {
    if (split != TILE_NO_SPLIT || !vector || get_subblockid() == 0) return false;
    if (direction == 1 || !IsNoSplit || detail::kIsa == detail::Isa::a5) return true;
    return detail::core().host == nullptr && get_subblockdim() < 2;
  }
  static const char* name(int direction) { return direction == 0 ? "C2V" : "V2C"; }

  /// Where an entry lies.
  char* entry(Ring& ring, int direction, int64_t index, bool small) const {
    const int64_t slot = index % SlotNum;
#ifdef __CPU_SIM
    const bool global = fifo.GM_SLOT_BUFFER != nullptr && !small && !(is_both && direction == 1);
#else
    const bool global = fifo.GM_SLOT_BUFFER != nullptr && !small;
#endif
    return global ? global_entry(direction, index) : ring.data[slot];
  }
  char* global_entry(int direction, int64_t index) const {
    const int64_t first = is_both && direction == 1 ? SlotNum : 0;  // V2C lies behind C2V
    return static_cast<char*>(fifo.GM_SLOT_BUFFER) + (first + index % SlotNum) * SlotSize;
  }

  /// Wait for a free slot; the entry that is then begun.
  int64_t begin_push(SharedState& state, int direction, int lane) {
    Ring& ring = state.rings[direction];
    const int64_t index = ring.heads[lane];
    detail::wait_until(
        [&] { return index - std::atomic_ref(ring.freed).load(std::memory_order_acquire) < SlotNum; },
        [&](char* text, size_t size) {
          std::snprintf(text, size, "a free slot of %s FIFO %d: all %u slots hold entries nobody freed",
                        name(direction), flag, SlotNum);
        });
    detail::Holding hold(ring);
    ring.heads[lane] = index + 1;
    detail::FifoSlot& slot = ring.slot(index);
    if (slot.index != index) {
      slot = detail::FifoSlot{};
      slot.index = index;
    }
    return index;
  }

  /// Give an entry to the other side.
  void publish(SharedState& state, int direction, int64_t index, int lane, int split) {
    Ring& ring = state.rings[direction];
    detail::Holding hold(ring);
    detail::FifoSlot& slot = ring.slot(index);
    slot.pushed |= detail::lane_bit(lane);
    const int parties = direction == 1 && split != TILE_NO_SPLIT ? lanes(ring, split) : 1;
    if (__builtin_popcount(slot.pushed) >= parties && ring.published <= index) {
      std::atomic_ref(ring.published).store(index + 1, std::memory_order_release);
    }
    state.note();
  }

  /// Wait for the next entry; which one it is.
  int64_t begin_pop(SharedState& state, int direction, int lane) {
    Ring& ring = state.rings[direction];
    const int64_t index = ring.tails[lane];
    detail::wait_until(
        [&] { return std::atomic_ref(ring.published).load(std::memory_order_acquire) > index; },
        [&](char* text, size_t size) {
          std::snprintf(text, size, "entry %lld of %s FIFO %d, which nobody has pushed",
                        static_cast<long long>(index), name(direction), flag);
        });
    detail::Holding hold(ring);
    ring.tails[lane] = index + 1;
    if (IsNoSplit && direction == 0 && detail::core().host == nullptr && get_subblockdim() >= 2)
      ring.dual = true;
    state.note();
    return index;
  }

  /// Give a slot back.
  void release(SharedState& state, int direction, int64_t index, int lane, int split) {
    Ring& ring = state.rings[direction];
    detail::Holding hold(ring);
    if (index >= ring.freed) {
      ring.slot(index).freed |= detail::lane_bit(lane);
      const int parties = direction == 0 ? takers(ring, split) : 1;
      int64_t freed = ring.freed;
      while (ring.slot(freed).index == freed && __builtin_popcount(ring.slot(freed).freed) >= parties)
        ++freed;
      std::atomic_ref(ring.freed).store(freed, std::memory_order_release);
    }
    state.note();
  }
};

}  // namespace pto
