// FIFOs between the cube core and the vector cores of a block: TPipe, TPUSH, TPOP, TFREE, TALLOC.
//
// A direction is a ring of slots that both sides share. A pushed tile is stored in its slot densely, row by
// row: in global memory if the pipe has slots there, else in memory of the ring. A pop copies the lane's part
// of the entry into the consumer's tile, which lies in the consumer's buffer for that direction. Vector cores
// are lanes 0 and 1. With a split, each lane has half of the entry. Without one, only lane 0 takes part,
// except in a `nosplit` pipe, where lane 1 does the same steps and reads zeros.
//
// A pop that makes a real copy (on A2A3, and on A5 through global memory) also releases the slot; TFREE is
// then a no-op.
#pragma once

#if defined(__CPU_SIM) && !defined(PTO_CPU_LEAN)
#include <mutex>
#elif defined(__CPU_SIM)
#include <pthread.h>
#endif
#include <new>

#include "pto/core/access.hpp"
#include "pto/core/cpu_sim.hpp"
#include "pto/core/events.hpp"

namespace pto {

enum TileSplitAxis : uint8_t {
  TILE_NO_SPLIT = 0,
  TILE_UP_DOWN = 1,      // lane 0 has the upper half of the rows
  TILE_LEFT_RIGHT = 2,   // lane 0 has the left half of the columns
  TILE_UP_DOWN_ODD = 3,  // for an odd number: lane 0 has one more
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

/// The parameters of a pipe.
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
  int64_t index = -1;   // the number of its entry
  uint32_t pushed = 0;  // lanes that have pushed it
  uint32_t freed = 0;   // lanes that have released it
  int32_t rows = 0, cols = 0;
  int32_t at = 0;               // byte offset of the last push, for entries made of several tiles
  uint8_t dtype = 0, bits = 0;  // of its elements
  bool is_integer = false;
  bool is_tile = false;
};

inline uint32_t lane_bit(int lane) { return 1u << (lane & 1); }

/// One direction of a pipe. Counters count entries, not slots; per lane where lanes advance independently.
struct FifoRing {
  Atomic<uint32_t> lock{0};
  bool dual = false;      // plain threads: two consumers have been seen
  int64_t heads[2] = {};  // pushes begun
  int64_t tails[2] = {};  // pops done
  int64_t frees[2] = {};  // frees done
  int64_t published = 0;  // entries complete
  int64_t freed = 0;      // entries released: all before this one
};

template <int SlotSize, int SlotNum>
struct FifoMemory : FifoRing {
  FifoSlot slots[SlotNum];
  // Twice the size: for some pipes the slot size is that of one of two halves.
  alignas(64) char data[SlotNum][2 * SlotSize];
};

/// A lock of a ring for a few instructions; its holder does not wait for other cores.
struct Holding {
  FifoRing& ring;
  explicit Holding(FifoRing& r) : ring(r) {
    while (ring.lock.exchange(1, kAcquire) != 0) sched_yield();
  }
  ~Holding() { ring.lock.store(0, kRelease); }
};

constexpr bool splits_rows(int split) { return split == TILE_UP_DOWN || split == TILE_UP_DOWN_ODD; }
constexpr bool splits_cols(int split) { return split == TILE_LEFT_RIGHT || split == TILE_LEFT_RIGHT_ODD; }

/// One direction of a pipe as the instructions see it, the same for all types of pipes.
struct Fifo {
  FifoRing& ring;
  FifoSlot* slots;
  char* memory;          // of the ring: slots of twice the size
  char* global;          // null, or the slots in global memory
  uint32_t count, size;  // slots, bytes of each
  int direction;         // 0 C2V, 1 V2C
  int flag;
  bool no_split;
  bool tiles_in_ring;  // even if there are slots in global memory
  void* state;
  void (*note)(void* state);  // null, or updates the state for tests of the simulator

  FifoSlot& slot(int64_t index) const { return slots[index % count]; }
  const char* name() const { return direction == 0 ? "C2V" : "V2C"; }
  void changed() const {
    if (note != nullptr) note(state);
  }

  int lanes(int split) const {
    const Core& me = core();
    if (me.host != nullptr) return me.grid->vectors > 1 ? 2 : 1;
    return split != TILE_NO_SPLIT || ring.dual ? 2 : 1;
  }
  /// Return the number of vector cores that take part in an entry.
  int takers(int split) const {
    const bool both = split != TILE_NO_SPLIT || (no_split && kIsa != Isa::a5);
    return both ? lanes(split) : 1;
  }
  /// Return true if this is the second vector core and has no part.
  bool stands_aside(int split, bool vector) const {
    if (split != TILE_NO_SPLIT || !vector || get_subblockid() == 0) return false;
    if (direction == 1 || !no_split || kIsa == Isa::a5) return true;
    return core().host == nullptr && get_subblockdim() < 2;
  }

  int64_t begin_push(int lane) const;
  void publish(int64_t index, int lane, int split) const;
  int64_t begin_pop(int lane) const;
  void release(int64_t index, int lane, int split) const;
};

/// Wait for a free slot, and return the number of the entry that begins.
[[gnu::noinline]] inline int64_t Fifo::begin_push(int lane) const {
  const int64_t index = ring.heads[lane];
  wait_until([&] { return index - atomic_load(ring.freed, kAcquire) < count; },
             [&](char* text, size_t bytes) {
               std::snprintf(text, bytes, "a free slot of %s FIFO %d: all %u slots hold entries not freed",
                             name(), flag, count);
             });
  order_takes(&slot(index).freed);
  Holding hold(ring);
  ring.heads[lane] = index + 1;
  FifoSlot& begun = slot(index);
  if (begun.index != index) {
    begun = FifoSlot{};
    begun.index = index;
  }
  return index;
}

/// Publish this lane's part of an entry to the other side.
[[gnu::noinline]] inline void Fifo::publish(int64_t index, int lane, int split) const {
  order_gives(&slot(index).pushed);
  Holding hold(ring);
  slot(index).pushed |= lane_bit(lane);
  const int parties = direction == 1 && split != TILE_NO_SPLIT ? lanes(split) : 1;
  if (__builtin_popcount(slot(index).pushed) >= parties && ring.published <= index)
    atomic_store(ring.published, index + 1, kRelease);
  changed();
}

/// Wait for the next entry, and return its number.
[[gnu::noinline]] inline int64_t Fifo::begin_pop(int lane) const {
  const int64_t index = ring.tails[lane];
  wait_until([&] { return atomic_load(ring.published, kAcquire) > index; },
             [&](char* text, size_t bytes) {
               std::snprintf(text, bytes, "entry %lld of %s FIFO %d, which was not pushed",
                             static_cast<long long>(index), name(), flag);
             });
  order_takes(&slot(index).pushed);
  Holding hold(ring);
  ring.tails[lane] = index + 1;
  if (no_split && direction == 0 && core().host == nullptr && get_subblockdim() >= 2) ring.dual = true;
  changed();
  return index;
}

/// Release this lane's part of a slot.
[[gnu::noinline]] inline void Fifo::release(int64_t index, int lane, int split) const {
  order_gives(&slot(index).freed);
  Holding hold(ring);
  if (index >= ring.freed) {
    slot(index).freed |= lane_bit(lane);
    const int parties = direction == 0 ? takers(split) : 1;
    int64_t freed = ring.freed;
    while (slot(freed).index == freed && __builtin_popcount(slot(freed).freed) >= parties) ++freed;
    atomic_store(ring.freed, freed, kRelease);
  }
  changed();
}

/// The producer's end. Entries made of several tiles switch allocation and publishing off in between.
struct PipeProducer {
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
struct PipeConsumer {
  int tileIndex = 0, subTileIndex = 0;
  bool isWait = true, isFree = true;
  int entryOffset = 0;
  int direction = 0;  // of the last pop
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

/// The header of the state that both sides of a pipe share.
struct PipeState {
  Atomic<uint32_t> made{0};
  uint32_t size = 0;
  uint32_t slots = 0;  // if it does not follow from the size
};

/// Return the state for a key; create it on first use.
[[gnu::noinline]] inline PipeState& shared_state(int key, int flag, uint32_t size, PipeState* (*make)(void*),
                                                 uint32_t slots = 0) {
  Core& me = core();
  Atomic<void*>& place = me.cluster->shared[key];
  for (;;) {
    void* found = place.load(kAcquire);
    if (found == nullptr) {
      void* memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
      if (memory == nullptr) fail("[PTO-E2102] no memory for a FIFO");
      PipeState* made = make(memory);
      made->size = size;
      made->slots = slots;
      if (place.compare_exchange_strong(found, made)) return *made;
      std::free(memory);
    }
    auto& state = *static_cast<PipeState*>(found);
    if (state.size == size && state.slots == slots) return state;
    if (me.host != nullptr)
      failf("[PTO-E2102] the two sides of FIFO %d disagree on the size or the number of its slots", flag);
    place.store(nullptr);  // plain threads: another pipe had this flag before
  }
}

/// Return true if this is a vector core; in plain threads the type of the tile decides.
inline bool on_vector(bool vector_tile) {
  const Core& me = core();
  return me.host == nullptr ? vector_tile : me.kind == CoreKind::Vector;
}
inline int lane_of(bool vector) { return vector ? static_cast<int>(get_subblockid()) & 1 : 0; }

struct PipeTag {};
template <class T>
inline constexpr bool is_pipe_v = std::is_base_of_v<PipeTag, std::remove_cv_t<T>>;

}  // namespace detail

// --- the pipe ----------------------------------------------------------------------------------------------

#ifndef PTO_CPU_BARE_REGISTERS  // headers with registers of their own also have their own pipes
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
  using Ring = detail::FifoMemory<SlotSize, SlotNum>;

  /// The shared state of both sides.
  struct SharedState : detail::PipeState {
    Ring rings[2];
#ifdef __CPU_SIM
    // Updated for tests of the simulator, and not read here.
#ifdef PTO_CPU_LEAN
    pthread_mutex_t mutex;  // as large as std::mutex: the two sides of a pipe may be compiled differently
#else
    std::mutex mutex;
#endif
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
    return static_cast<SharedState&>(
        detail::shared_state(key, flag, sizeof(SharedState),
                             [](void* memory) -> detail::PipeState* { return ::new (memory) SharedState; }));
  }

  /// Plain threads: forget the content of the pipe.
  static void reset_for_cpu_sim() {
    SharedState& state = GetSharedState();
    for (Ring& ring : state.rings) {
      ring.dual = false;
      for (int lane = 0; lane < 2; ++lane) ring.heads[lane] = ring.tails[lane] = ring.frees[lane] = 0;
      ring.published = ring.freed = 0;
      for (detail::FifoSlot& slot : ring.slots) slot = detail::FifoSlot{};
    }
    side(0).changed();
  }

  using Producer = detail::PipeProducer;
  using Consumer = detail::PipeConsumer;

  RingFiFo fifo;
  Producer prod;
  Consumer cons;

  explicit TPipe(__gm__ void* slots, uint32_t c2v, uint32_t v2c) : fifo(slots, c2v, v2c) {
    cons.direction = is_c2v ? 0 : 1;
  }

  // --- parts of the instructions below ---

  static constexpr uint32_t local_slots() { return LocalSlotNum; }

  /// Return the direction in which a core produces, 0 C2V or 1 V2C; `cube`: the tile is one of a cube core.
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

  /// Return one direction. Its entries lie in global memory if that is given, else in memory of the ring.
  [[gnu::noinline]] static detail::Fifo side(int direction, void* global = nullptr) {
    SharedState& state = GetSharedState();
    Ring& ring = state.rings[direction];
    char* slots = static_cast<char*>(global);
    if (slots != nullptr && is_both && direction == 1) slots += SlotNum * SlotSize;  // V2C lies after C2V
    void (*note)(void*) = nullptr;
    bool tiles_in_ring = false;
#ifdef __CPU_SIM
    tiles_in_ring = is_both && direction == 1;
    note = [](void* changed) { static_cast<SharedState*>(changed)->note(); };
#endif
    return {ring,      ring.slots, ring.data[0], slots,         SlotNum, SlotSize,
            direction, flag,       IsNoSplit,    tiles_in_ring, &state,  note};
  }
  detail::Fifo side_with_slots(int direction) const { return side(direction, fifo.GM_SLOT_BUFFER); }
};
#endif

}  // namespace pto
