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
  int32_t at = 0;  // byte offset of the last push, for entries made of several tiles
  uint8_t dtype = 0;
  uint8_t size = 1;  // bytes of an element
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
  // Twice the size: entries of two halves whose slot size is that of one, and 4-bit elements one to a byte.
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

/// Copies of values of another float type, where a consumer's tile is of another one.
template <class To, class From>
inline void recode(const char* from, To* to, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; ++i) {
    From element;
    std::memcpy(static_cast<void*>(&element), from + i * sizeof(From), sizeof(From));
    to[i] = element_of<To>(value_of<float>(element));
  }
}

/// n elements of an entry as elements of a tile; false where the types cannot be brought together.
template <class To>
inline bool take(uint8_t dtype, const char* from, To* to, ptrdiff_t n) {
  if (dtype == static_cast<uint8_t>(dtype_of<To>)) {
    std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(n) * sizeof(To));
    return true;
  }
  if constexpr (std::is_same_v<compute_t<To>, float>) {
    if (dtype == static_cast<uint8_t>(DType::f32)) return recode<To, float>(from, to, n), true;
    if (dtype == static_cast<uint8_t>(DType::f16)) return recode<To, half>(from, to, n), true;
    if (dtype == static_cast<uint8_t>(DType::bf16)) return recode<To, bfloat16_t>(from, to, n), true;
  }
  return false;
}

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

namespace detail {

/// Whether a pop hands out a copy, so that the slot is free again at once.
template <class Pipe>
inline bool pop_copies(const Pipe& pipe) {
  return kIsa == Isa::a2a3 || (kIsa == Isa::a5 && pipe.fifo.GM_SLOT_BUFFER != nullptr);
}

/// Elements as they go into a slot: as they are, or as a configuration converts them (fixpipe.hpp).
struct AsIs {
  template <class TileT>
  using Out = typename TileT::DType;
  template <class TileT>
  static const typename TileT::DType* row(const Lines<TileT>& lines, ptrdiff_t r, ptrdiff_t c, ptrdiff_t n,
                                          typename TileT::DType* buffer) {
    return lines.template read<typename TileT::DType>(r, c, n, buffer);
  }
};

template <class Convert, class Pipe, class TileT>
inline void push_tile(Pipe& pipe, TileT& tile, int split, int lane_given) {
  using T = typename TileT::DType;
  using Out = typename Convert::template Out<TileT>;
  constexpr bool cube_tile = TileT::Loc != TileType::Vec;
  const int direction = Pipe::outgoing(cube_tile);
  const bool vector = Pipe::on_vector(!cube_tile);
  if (Pipe::stands_aside(direction, split, vector)) return;
  const int lane = lane_given >= 0 ? lane_given & 1 : Pipe::lane_of(vector);
  auto& state = Pipe::GetSharedState();
  auto& ring = state.rings[direction];
  if (pipe.prod.isAllocate) pipe.prod.tileIndex = static_cast<int>(pipe.begin_push(state, direction, lane));
  const int64_t index = pipe.prod.tileIndex;

  const ptrdiff_t rows = tile.GetValidRow(), cols = tile.GetValidCol();
  ptrdiff_t all_rows = rows, all_cols = cols, r0 = 0, c0 = 0;
  if (direction == 1 && vector && split != TILE_NO_SPLIT) {
    const ptrdiff_t count = Pipe::lanes(ring, split);
    const ptrdiff_t odd = split >= TILE_UP_DOWN_ODD && count > 1 ? (lane == 0 ? -1 : 1) : 0;
    ptrdiff_t& size = splits_rows(split) ? all_rows : all_cols;
    (splits_rows(split) ? r0 : c0) = lane * (size + (odd > 0 ? 1 : 0));
    size = size * count + odd;
  }
  FifoSlot& slot = ring.slot(index);
  char* base = pipe.entry(ring, direction, index, bits_of<Out> < 8) + pipe.prod.entryOffset;
  const size_t bytes =
      static_cast<size_t>(all_rows * all_cols) * sizeof(Out) + static_cast<size_t>(pipe.prod.entryOffset);
  const bool local = base >= ring.data[0] && base < ring.data[0] + sizeof ring.data;
  const size_t space = Pipe::RingFiFo::SLOT_SIZE * (local ? 2 : 1);
  if (bytes > space) {
    failf("[PTO-E2102] TPUSH: a tile of %zu bytes does not fit a slot of %u", bytes,
          Pipe::RingFiFo::SLOT_SIZE);
  }
  {
    Holding hold(ring);
    slot.index = index;
    slot.rows = static_cast<int32_t>(all_rows);
    slot.cols = static_cast<int32_t>(all_cols);
    slot.at = pipe.prod.entryOffset;
    slot.dtype = static_cast<uint8_t>(dtype_of<Out>);
    slot.size = sizeof(Out);
    slot.is_tile = true;
  }
  const Lines<TileT> lines(tile);
  T buffer[kChunk];
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      char* to = base + ((r0 + r) * all_cols + c0 + c) * static_cast<ptrdiff_t>(sizeof(Out));
      if constexpr (std::is_same_v<Convert, AsIs>) {
        std::memcpy(to, Convert::row(lines, r, c, n, buffer), static_cast<size_t>(n) * sizeof(Out));
      } else {
        Out converted[kChunk];
        Convert::convert(lines, r, c, n, converted);
        std::memcpy(to, static_cast<const void*>(converted), static_cast<size_t>(n) * sizeof(Out));
      }
    }
  }
  if (pipe.prod.isRecord) pipe.publish(state, direction, index, lane, split);
}

/// Let a tile that is popped lie in the consumer's buffer; one that a plain thread has placed stays.
template <class Pipe, class TileT>
inline void stage(Pipe& pipe, TileT& tile, int direction, int64_t index) {
  if (core().host == nullptr && Binder<TileT>::bound(tile)) return;
  const size_t first = direction == 0 ? pipe.fifo.C2V_CONSUMER_BUF : pipe.fifo.V2C_CONSUMER_BUF;
  const uint32_t slots = pipe.fifo.GM_SLOT_BUFFER == nullptr   ? Pipe::RingFiFo::SLOT_NUM
                         : Pipe::RingFiFo::LOCAL_SLOT_NUM == 0 ? 1
                                                               : Pipe::RingFiFo::LOCAL_SLOT_NUM;
  const size_t at = first + static_cast<size_t>(index % slots) * Pipe::RingFiFo::SLOT_SIZE;
  bind(tile, resolve<TileT::Loc>(at, TileT::GetSizeInBytes()));
}

template <class TileT>
inline void zero_tile(TileT& tile) {
  using T = typename TileT::DType;
  const Lines<TileT> lines(tile);
  T zeros[kChunk] = {};
  const ptrdiff_t rows = tile.GetValidRow(), cols = tile.GetValidCol();
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      lines.template write<T>(r, c, cols - c < kChunk ? cols - c : kChunk, zeros);
    }
  }
}

template <class Pipe, class TileT>
inline void pop_tile(Pipe& pipe, TileT& tile, int split, int lane_given) {
  using T = typename TileT::DType;
  constexpr bool cube_tile = TileT::Loc != TileType::Vec;
  const int direction = Pipe::incoming(cube_tile);
  const bool vector = Pipe::on_vector(!cube_tile);
  auto& state = Pipe::GetSharedState();
  auto& ring = state.rings[direction];
  pipe.cons.direction = direction;
  if (Pipe::stands_aside(direction, split, vector)) {
    stage(pipe, tile, direction, 0);
    zero_tile(tile);
    return;
  }
  const int lane = lane_given >= 0 ? lane_given & 1 : Pipe::lane_of(vector);
  if (pipe.cons.isWait) pipe.cons.tileIndex = static_cast<int>(pipe.begin_pop(state, direction, lane));
  const int64_t index = pipe.cons.tileIndex;
  stage(pipe, tile, direction, index);
  const FifoSlot slot = ring.slot(index);

  // the entry, and the part of it that this lane reads
  ptrdiff_t rows = slot.rows, cols = slot.cols;
  const bool halves = direction == 0 && vector;
  if (!slot.is_tile || slot.at != pipe.cons.entryOffset) {  // pushed as a view or in pieces: as the tile says
    const int count = halves && split != TILE_NO_SPLIT ? 2 : 1;
    rows = static_cast<ptrdiff_t>(tile.GetValidRow()) * (splits_rows(split) ? count : 1);
    cols = static_cast<ptrdiff_t>(tile.GetValidCol()) * (splits_cols(split) ? count : 1);
  }
  const ptrdiff_t pitch = cols;
  ptrdiff_t r0 = 0, c0 = 0;
  if (halves && splits_rows(split)) {
    const ptrdiff_t half_rows = (rows + 1) / 2;
    r0 = lane * half_rows;
    rows = lane == 0 ? half_rows : rows - half_rows;
  }
  if (halves && splits_cols(split)) {
    const ptrdiff_t half_cols = (cols + 1) / 2;
    c0 = lane * half_cols;
    cols = lane == 0 ? half_cols : cols - half_cols;
  }
  if (rows > TileT::Rows) rows = TileT::Rows;
  if (cols > TileT::Cols) cols = TileT::Cols;
  if (halves && split == TILE_NO_SPLIT && Pipe::is_no_split && lane > 0) {
    zero_tile(tile);
  } else {
    const uint8_t dtype = slot.is_tile ? slot.dtype : static_cast<uint8_t>(dtype_of<T>);
    const bool small = bits_of<T> < 8;
    const char* base = pipe.entry(ring, direction, index, small) + pipe.cons.entryOffset;
    const ptrdiff_t size = slot.is_tile ? slot.size : static_cast<ptrdiff_t>(sizeof(T));
    const Lines<TileT> lines(tile);
    T buffer[kChunk];
    for (ptrdiff_t r = 0; r < rows; ++r) {
      for (ptrdiff_t c = 0; c < cols; c += kChunk) {
        const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
        if (!take(dtype, base + ((r0 + r) * pitch + c0 + c) * size, buffer, n)) {
          failf("[PTO-E2102] TPOP: entry %lld of %s FIFO %d holds elements of another type than the tile",
                static_cast<long long>(index), Pipe::name(direction), Pipe::flag);
        }
        lines.template write<T>(r, c, n, buffer);
      }
    }
  }
  if (pop_copies(pipe) && pipe.cons.isFree) pipe.release(state, direction, index, lane, split);
}

template <class Pipe>
inline void free_entry(Pipe& pipe, int split) {
  const int direction =
      Pipe::is_both && core().kind != CoreKind::Mix ? Pipe::incoming(false) : pipe.cons.direction;
  const bool vector = core().host == nullptr ? direction == 0 : core().kind == CoreKind::Vector;
  if (Pipe::stands_aside(direction, split, vector) || !pipe.cons.isFree) return;
  auto& state = Pipe::GetSharedState();
  auto& ring = state.rings[direction];
  const int lane = Pipe::lane_of(vector);
  const int64_t index = ring.frees[lane];
  if (index >= ring.tails[lane] && pipe.cons.isWait) {
    failf("[PTO-E2102] TFREE: frees an entry of %s FIFO %d that was not popped", Pipe::name(direction),
          Pipe::flag);
  }
  ring.frees[lane] = index + 1;
  pipe.release(state, direction, index, lane, split);
}

// --- entries as views of global memory ---

/// Point a tensor at an entry, or at a lane's part of it.
template <class Pipe, class Global>
inline void point(Pipe& pipe, Global& view, int direction, int64_t index, int split, int lane, int offset) {
  if (pipe.fifo.GM_SLOT_BUFFER == nullptr) {
    fail("[PTO-E2102] entries as views need a FIFO in global memory");
  }
  const ptrdiff_t rows = view.GetShape(3), cols = view.GetShape(4);
  const ptrdiff_t part = splits_rows(split) ? rows * cols * lane : splits_cols(split) ? cols * lane : 0;
  using T = typename Global::DType;
  char* at = pipe.global_entry(direction, index) + offset +
             static_cast<ptrdiff_t>(bytes_of<T>(static_cast<size_t>(part)));
  bind(view, at);
}

}  // namespace detail

// --- instructions ------------------------------------------------------------------------------------------

template <class Pipe, class T, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && all_events_v<Events...>)
inline RecordEvent TPUSH(Pipe& pipe, T& tile, Events&... events) {
  TSYNC(events...);
  if constexpr (is_global_data_v<T>) {  // commits the entry that TALLOC gave
    const int direction = Pipe::outgoing(true);
    const bool vector = Pipe::on_vector(direction == 1);
    if (Pipe::stands_aside(direction, Split, vector)) return {};
    auto& state = Pipe::GetSharedState();
    if (pipe.prod.isRecord) pipe.publish(state, direction, pipe.prod.tileIndex, Pipe::lane_of(vector), Split);
  } else {
    detail::push_tile<detail::AsIs>(pipe, tile, Split, -1);
  }
  return {};
}

/// As the vector core `lane`.
template <class Pipe, class T, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_tile_data_v<T> && all_events_v<Events...>)
inline RecordEvent TPUSH(Pipe& pipe, T& tile, int32_t lane, Events&... events) {
  TSYNC(events...);
  detail::push_tile<detail::AsIs>(pipe, tile, Split, lane);
  return {};
}

template <class T, class Pipe, class... Events>
  requires(detail::is_pipe_v<Pipe> && !detail::is_pipe_v<T> && all_events_v<Events...>)
inline RecordEvent TPUSH(T& tile, Pipe& pipe, Events&... events) {
  return TPUSH<Pipe, T, TILE_NO_SPLIT>(pipe, tile, events...);
}

template <class Pipe, class T, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && all_events_v<Events...>)
inline RecordEvent TPOP(Pipe& pipe, T& tile, Events&... events) {
  TSYNC(events...);
  if constexpr (is_global_data_v<T>) {
    const int direction = Pipe::incoming(false);
    const bool vector = Pipe::on_vector(direction == 0);
    pipe.cons.direction = direction;
    if (Pipe::stands_aside(direction, Split, vector)) return {};
    auto& state = Pipe::GetSharedState();
    const int lane = Pipe::lane_of(vector);
    if (pipe.cons.isWait) pipe.cons.tileIndex = static_cast<int>(pipe.begin_pop(state, direction, lane));
    detail::point(pipe, tile, direction, pipe.cons.tileIndex, direction == 0 ? Split : TILE_NO_SPLIT, lane,
                  pipe.cons.entryOffset);
  } else {
    detail::pop_tile(pipe, tile, Split, -1);
  }
  return {};
}

template <class Pipe, class T, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_tile_data_v<T> && all_events_v<Events...>)
inline RecordEvent TPOP(Pipe& pipe, T& tile, int32_t lane, Events&... events) {
  TSYNC(events...);
  detail::pop_tile(pipe, tile, Split, lane);
  return {};
}

template <class T, class Pipe, class... Events>
  requires(detail::is_pipe_v<Pipe> && !detail::is_pipe_v<T> && all_events_v<Events...>)
inline RecordEvent TPOP(T& tile, Pipe& pipe, Events&... events) {
  return TPOP<Pipe, T, TILE_NO_SPLIT>(pipe, tile, events...);
}

template <class Pipe, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && all_events_v<Events...>)
inline RecordEvent TFREE(Pipe& pipe, Events&... events) {
  TSYNC(events...);
  detail::free_entry(pipe, Split);
  return {};
}

template <class Pipe, class... Events>
  requires(detail::is_pipe_v<Pipe> && all_events_v<Events...>)
inline RecordEvent TFREE(Pipe& pipe, Events&... events) {
  return TFREE<Pipe, TILE_NO_SPLIT>(pipe, events...);
}

template <class Pipe, class Global, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_global_data_v<Global> && all_events_v<Events...>)
inline RecordEvent TFREE(Pipe& pipe, Global&, Events&... events) {
  return TFREE<Pipe, Split>(pipe, events...);
}

/// Wait for a free slot and let a tensor be it.
template <class Pipe, class Global, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_global_data_v<Global> && all_events_v<Events...>)
inline RecordEvent TALLOC(Pipe& pipe, Global& view, Events&... events) {
  TSYNC(events...);
  const int direction = Pipe::outgoing(true);
  const bool vector = Pipe::on_vector(direction == 1);
  const int lane = Pipe::lane_of(vector);
  auto& state = Pipe::GetSharedState();
  if (pipe.prod.isAllocate) pipe.prod.tileIndex = static_cast<int>(pipe.begin_push(state, direction, lane));
  detail::point(pipe, view, direction, pipe.prod.tileIndex, direction == 1 ? Split : TILE_NO_SPLIT, lane,
                pipe.prod.entryOffset);
  return {};
}

}  // namespace pto
