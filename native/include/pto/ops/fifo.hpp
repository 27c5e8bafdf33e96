// FIFO instructions: TPUSH, TPOP, TFREE, TALLOC.
//
// A pushed tile is stored in its slot densely, row by row: in global memory if the pipe has slots there, else
// in memory of the ring. A pop copies the lane's part of the entry into the consumer's tile, which lies in
// the consumer's buffer for that direction. Lane 1 of a `nosplit` pipe reads zeros.
//
// A pop that makes a real copy (on A2A3, and on A5 through global memory) also releases the slot; TFREE is
// then a no-op.
#pragma once

#include "pto/core/bounds.hpp"
#include "pto/core/loans.hpp"
#include "pto/ops/fixpipe.hpp"
#include "pto/ops/pipe.hpp"

namespace pto {

// --- operations of a push on the elements of an accumulator ---

// The values of the vendor stack. Two modes for i32 share a value with modes for f32 of newer cores.
enum QuantMode_t {
  NoQuant = 0,
  F322F16 = 1,
  VQF322HIF8_PRE = 2,
  QF322HIF8_PRE = 3,
  VREQ8 = 8,
  REQ8 = 9,
  VDEQF16 = 10,
  DEQF16 = 11,
  VQF322FP8_PRE = 12,
  QF322FP8_PRE = 13,
  VSHIFTS322S16 = 12,
  SHIFTS322S16 = 13,
  VQF322F32_PRE = 14,
  QF322F32_PRE = 15,
  F322BF16 = 16,
  VQF322B8_PRE = 23,
  QF322B8_PRE = 24,
  VQF322F16_PRE = 31,
  QF322F16_PRE = 32,
  VQF322BF16_PRE = 33,
  QF322BF16_PRE = 34,
  VQS322BF16_PRE = 35,
  QS322BF16_PRE = 36,
};
enum class LayoutMode_t : uint8_t { NZ2NZ = 0, NZ2ND = 1, NZ2DN = 2 };
typedef enum { NOCLIP_RELU = 0, CLIP_RELU = 1 } ClipReluMode_t;

template <LayoutMode_t layout = LayoutMode_t::NZ2ND, QuantMode_t quant = QuantMode_t::NoQuant,
          ReluPreMode relu = ReluPreMode::NoRelu, STPhase phase = STPhase::Unspecified,
          uint8_t subBlockId = 0, AtomicType atomic = AtomicType::AtomicNone,
          ClipReluMode_t clip = NOCLIP_RELU, bool channelSplit = false>
struct FixpipeParams {
  static constexpr LayoutMode_t LayoutMode = layout;
  static constexpr QuantMode_t QuantPre = quant;
  static constexpr ReluPreMode ReluMode = relu;
};

namespace detail {

/// Return an element of the type that a mode produces.
template <QuantMode_t Mode, class T>
constexpr auto quantised_type() {
  constexpr auto is = [](auto... modes) { return ((Mode == modes) || ...); };
  if constexpr (is(F322F16, DEQF16, VDEQF16, QF322F16_PRE, VQF322F16_PRE)) {
    return half{};
  } else if constexpr (is(F322BF16, QF322BF16_PRE, VQF322BF16_PRE, QS322BF16_PRE, VQS322BF16_PRE)) {
    return bfloat16_t{};
  } else if constexpr (is(QF322FP8_PRE, VQF322FP8_PRE) && std::is_same_v<T, float>) {
    return float8_e4m3_t{};
  } else if constexpr (is(SHIFTS322S16, VSHIFTS322S16)) {
    return int16_t{};
  } else if constexpr (is(QF322HIF8_PRE, VQF322HIF8_PRE)) {
    return hifloat8_t{};
  } else if constexpr (is(NoQuant, QF322F32_PRE, VQF322F32_PRE)) {
    return T{};
  } else {
    return int8_t{};
  }
}

}  // namespace detail

template <QuantMode_t quant, class T>
using FixpipeConsDType_t = decltype(detail::quantised_type<quant, T>());

namespace detail {

/// The words that SET_QUANT_VECTOR set.
struct RegisterWords {
  static constexpr bool any = true, per_column = true;
  const uint64_t* words;
  uint64_t at(ptrdiff_t c) const { return words[c]; }
};

/// Write elements of a tile to a slot, unchanged or converted by a configuration.
template <class Config, class Out, class TileT>
inline void fill_slot(const Place<Out>& to, const TileT& tile, ptrdiff_t rows, ptrdiff_t cols) {
  constexpr bool relu = Config::ReluMode == ReluPreMode::NormalRelu;
  constexpr QuantMode_t mode = Config::QuantPre;
  if constexpr (mode == NoQuant || mode == F322F16 || mode == F322BF16) {
    deliver<relu>(to, tile, 0, 0, rows, cols, NoWords{});
  } else if constexpr (quantises_by_column(mode)) {
    if (core().fpc == nullptr)
      fail("[PTO-E2102] TPUSH: no SET_QUANT_VECTOR before a push that quantises by column");
    deliver<relu>(to, tile, 0, 0, rows, cols, RegisterWords{static_cast<const uint64_t*>(core().fpc)});
  } else {
    deliver<relu>(to, tile, 0, 0, rows, cols, OneWord{core().quant_pre});
  }
}

/// Return the address of an entry. Elements of 4 bits never lie in global memory.
inline char* entry_of(const Fifo& fifo, int64_t index, int bits) {
  const bool global = fifo.global != nullptr && bits >= 8 && !fifo.tiles_in_ring;
  const int64_t slot = index % fifo.count;
  return global ? fifo.global + slot * fifo.size : fifo.memory + slot * 2 * fifo.size;
}

inline bool in_ring(const Fifo& fifo, const char* at) {
  return at >= fifo.memory && at < fifo.memory + 2 * fifo.count * fifo.size;
}

/// A part of an entry.
struct Part {
  char* at;  // the entry
  ptrdiff_t pitch, row = 0, col = 0, rows, cols;
  int64_t index = 0;
  int lane = 0;

  /// Announce an access to global memory; for memory of the ring, only check its bounds.
  void touch(const char* name, const Fifo& fifo, int bits, Use use) const {
    if (rows <= 0 || cols <= 0) return;
    const int64_t first = row * pitch + col, last = (row + rows - 1) * pitch + col + cols - 1;
    if (!in_ring(fifo, at)) return touch_elements(name, at, bits, first, last, use);
    if (bytes_of(bits, first, last).high > fifo.memory + 2 * fifo.count * fifo.size - at) [[unlikely]]
      failf("[PTO-E2101] %s: touches bytes after the slots of %s FIFO %d", name, fifo.name(), fifo.flag);
  }
};

/// Return element i of an array of f32, f16 or bf16.
inline float float_at(DType dtype, const char* base, ptrdiff_t i) {
  if (dtype == DType::f16) return value_of<float>(reinterpret_cast<const half*>(base)[i]);
  if (dtype == DType::bf16) return value_of<float>(reinterpret_cast<const bfloat16_t*>(base)[i]);
  return reinterpret_cast<const float*>(base)[i];
}

/// Copy a part of an entry to a tile with another float type.
template <class T>
[[gnu::noinline, gnu::cold]] void recode(DType dtype, const char* base, ptrdiff_t pitch, const Part& part,
                                         const Place<T>& to) {
  for (ptrdiff_t r = 0; r < part.rows; ++r) {
    for (ptrdiff_t c = 0; c < part.cols; ++c)
      to.data[to.at(r, c)] = element_of<T>(float_at(dtype, base, (part.row + r) * pitch + part.col + c));
  }
}

/// Copy a part of an entry to a tile; return false if the element types are incompatible.
template <class T>
inline bool empty_slot(const Place<T>& to, const FifoSlot& slot, const Part& part) {
  const auto dtype = slot.is_tile ? static_cast<DType>(slot.dtype) : dtype_of<T>;
  const bool same_bits = slot.is_integer && !is_float_v<T> && slot.bits == bits_of<T>;
  if (dtype == dtype_of<T> || same_bits) {
    copy(to, dense_place(reinterpret_cast<T*>(part.at), part.pitch, part.row, part.col), part.rows,
         part.cols);
    return true;
  }
  if constexpr (std::is_same_v<compute_t<T>, float> && bits_of<T> >= 8) {
    if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16)
      return recode(dtype, part.at, part.pitch, part, to), true;
  }
  return false;
}

/// Wait for a slot, and set the offset of this lane's part in it; return false if the lane has no part.
[[gnu::noinline]] inline bool start_push(const Fifo& fifo, PipeProducer& prod, FifoSlot about, int split,
                                         int lane_given, bool vector, Part& part) {
  if (fifo.stands_aside(split, vector)) return false;
  part.lane = lane_given >= 0 ? lane_given & 1 : lane_of(vector);
  if (prod.isAllocate) prod.tileIndex = static_cast<int>(fifo.begin_push(part.lane));
  part.index = prod.tileIndex;
  // the whole entry, and where this lane's part begins
  part.rows = about.rows;
  part.cols = about.cols;
  if (fifo.direction == 1 && vector && split != TILE_NO_SPLIT) {
    const int count = fifo.lanes(split);
    const int odd = split >= TILE_UP_DOWN_ODD && count > 1 ? (part.lane == 0 ? -1 : 1) : 0;
    int32_t& size = splits_rows(split) ? about.rows : about.cols;
    (splits_rows(split) ? part.row : part.col) = part.lane * (size + (odd > 0 ? 1 : 0));
    size = size * count + odd;
  }
  part.pitch = about.cols;
  char* base = entry_of(fifo, part.index, about.bits);
  const size_t bytes =
      (static_cast<size_t>(about.rows) * static_cast<size_t>(about.cols) * about.bits + 7) / 8;
  const auto into = static_cast<size_t>(prod.entryOffset);
  if (bytes + into > fifo.size * (in_ring(fifo, base) ? 2u : 1u)) {
    if (into == 0)
      failf("[PTO-E2102] TPUSH: a tile of %zu bytes does not fit a slot of %u", bytes, fifo.size);
    failf(
        "[PTO-E2102] TPUSH: a tile of %zu bytes, %zu bytes into its entry, does not fit a slot of %u; fix: "
        "the parts "
        "of vector cores are set apart by the split, do not call setEntryOffset for them as well",
        bytes, into, fifo.size);
  }
  part.at = base + prod.entryOffset;
  part.touch("TPUSH", fifo, about.bits, Use::write);
  Holding hold(fifo.ring);
  FifoSlot& slot = fifo.slot(part.index);
  about.index = part.index;
  about.pushed = slot.pushed;
  about.freed = slot.freed;
  about.at = prod.entryOffset;
  about.is_tile = true;
  slot = about;
  return true;
}

/// Return the properties of an entry of rows x cols elements of type T.
template <class T>
inline FifoSlot entry_with(ptrdiff_t rows, ptrdiff_t cols) {
  FifoSlot about;
  about.rows = static_cast<int32_t>(rows);
  about.cols = static_cast<int32_t>(cols);
  about.dtype = static_cast<uint8_t>(dtype_of<T>);
  about.bits = bits_of<T>;
  about.is_integer = !is_float_v<T>;
  return about;
}

/// Push the valid elements of a tile as an entry.
template <class T>
[[gnu::noinline]] void push_copy(const Fifo& fifo, PipeProducer& prod, int split, int lane, bool vector_tile,
                                 const Place<T>& from, ptrdiff_t rows, ptrdiff_t cols) {
  Part part;
  if (!start_push(fifo, prod, entry_with<T>(rows, cols), split, lane, on_vector(vector_tile), part)) return;
  copy(dense_place(reinterpret_cast<T*>(part.at), part.pitch, part.row, part.col), from, part.rows,
       part.cols);
  if (prod.isRecord) fifo.publish(part.index, part.lane, split);
}

template <class Config, class Pipe, class TileT>
inline void push_tile(Pipe& pipe, TileT& tile, int split, int lane) {
  constexpr bool cube_tile = TileT::Loc != TileType::Vec;
  const Fifo fifo = pipe.side_with_slots(pipe.outgoing(cube_tile));
  const ptrdiff_t rows = tile.GetValidRow(), cols = tile.GetValidCol();
  if constexpr (Config::QuantPre == NoQuant && Config::ReluMode == ReluPreMode::NoRelu) {
    push_copy(fifo, pipe.prod, split, lane, !cube_tile, place(tile), rows, cols);
  } else {
    using Out = decltype(quantised_type<Config::QuantPre, typename TileT::DType>());
    Part part;
    const bool vector = on_vector(!cube_tile);
    if (!start_push(fifo, pipe.prod, entry_with<Out>(rows, cols), split, lane, vector, part)) return;
    const auto to = dense_place(reinterpret_cast<Out*>(part.at), part.pitch, part.row, part.col);
    fill_slot<Config>(to, tile, part.rows, part.cols);
    if (pipe.prod.isRecord) fifo.publish(part.index, part.lane, split);
  }
}

/// Wait for an entry; return false if this lane has no part.
[[gnu::noinline]] inline bool start_pop(const Fifo& fifo, PipeConsumer& cons, int split, int lane_given,
                                        bool vector, Part& part) {
  cons.direction = fifo.direction;
  if (fifo.stands_aside(split, vector)) return false;
  part.lane = lane_given >= 0 ? lane_given & 1 : lane_of(vector);
  if (cons.isWait) cons.tileIndex = static_cast<int>(fifo.begin_pop(part.lane));
  part.index = cons.tileIndex;
  return true;
}

/// Set the part of an entry that this lane reads into a tile with these valid extents; return false if the
/// lane reads zeros.
[[gnu::noinline]] inline bool part_of(const Fifo& fifo, const FifoSlot& slot, int offset, int split,
                                      bool vector, ptrdiff_t valid_rows, ptrdiff_t valid_cols, int bits,
                                      Part& part) {
  ptrdiff_t rows = slot.rows, cols = slot.cols;
  const bool halves = fifo.direction == 0 && vector;
  if (!slot.is_tile || slot.at != offset) {  // pushed as a view or in pieces: the tile gives the size
    const int count = halves && split != TILE_NO_SPLIT ? 2 : 1;
    rows = valid_rows * (splits_rows(split) ? count : 1);
    cols = valid_cols * (splits_cols(split) ? count : 1);
  }
  part.pitch = cols;
  const auto halve = [&](ptrdiff_t& size, ptrdiff_t& first) {
    const ptrdiff_t half = (size + 1) / 2;
    first = part.lane * half;
    size = part.lane == 0 ? half : size - half;
  };
  if (halves && splits_rows(split)) halve(rows, part.row);
  if (halves && splits_cols(split)) halve(cols, part.col);
  part.rows = lesser(rows, part.rows);
  part.cols = lesser(cols, part.cols);
  if (slot.is_tile) bits = slot.bits;
  part.at = entry_of(fifo, part.index, bits) + offset;
  if (halves && split == TILE_NO_SPLIT && fifo.no_split && part.lane > 0) return false;
  part.touch("TPOP", fifo, bits, Use::read);
  return true;
}

/// The properties of a pop that follow from the types of a tile and a pipe.
struct PopFacts {
  int32_t rows, cols;
  uint32_t bytes;  // of the tile
  uint32_t local;  // slots of the consumer's buffer if the entries lie in global memory
  int space;
  bool vector_tile;
};

/// A pop that has begun. The tile lies in the consumer's buffer; in plain threads a placed tile stays.
struct Popped {
  Part part;  // with the extents of the tile
  const void* data;
  int split;
  bool vector, takes_part;
};
[[gnu::noinline]] inline Popped begin_pop(const Fifo& fifo, PipeConsumer& cons, const PopFacts& facts,
                                          const void* data, int split, int lane, uint32_t buffer) {
  Popped pop;
  pop.split = split;
  pop.vector = on_vector(facts.vector_tile);
  pop.part.rows = facts.rows;
  pop.part.cols = facts.cols;
  pop.takes_part = start_pop(fifo, cons, split, lane, pop.vector, pop.part);
  pop.data = data;
  if (core().host != nullptr || data == nullptr) {
    const int64_t slot = pop.part.index % (fifo.global == nullptr ? fifo.count : facts.local);
    const size_t at = buffer + static_cast<size_t>(slot) * fifo.size;
    if (at + facts.bytes > room(facts.space))
      failf("[PTO-E2101] TPOP: a tile of %u bytes at address 0x%zx is outside %s", facts.bytes, at,
            kSpaceNames[facts.space]);
    pop.data = resolve(facts.space, at, facts.bytes);
  }
  return pop;
}

/// Load this lane's part of an entry into a tile, or zeros if the lane has no part.
template <class T>
[[gnu::noinline]] void pop_copy(const Fifo& fifo, const PipeConsumer& cons, Popped& pop, const Place<T>& to,
                                ptrdiff_t rows, ptrdiff_t cols) {
  if (!pop.takes_part) return fill(to, 0, 0, rows, cols, 0);
  Part& part = pop.part;
  const FifoSlot slot = fifo.slot(part.index);
  if (!part_of(fifo, slot, cons.entryOffset, pop.split, pop.vector, rows, cols, bits_of<T>, part)) {
    fill(to, 0, 0, part.rows, part.cols, 0);
  } else if (!empty_slot(to, slot, part)) {
    failf("[PTO-E2102] TPOP: entry %lld of %s FIFO %d holds elements of another type than the tile",
          static_cast<long long>(part.index), fifo.name(), fifo.flag);
  }
  // The data has been copied, so the slot is free at once.
  const bool copies = kIsa == Isa::a2a3 || (kIsa == Isa::a5 && fifo.global != nullptr);
  if (copies && cons.isFree) fifo.release(part.index, part.lane, pop.split);
}

#ifdef PTO_CPU_OPEN
/// Return the address of an entry that a tile can borrow as it is, or null. TFREE releases the slot.
[[gnu::noinline]] inline char* lent_entry(const Fifo& fifo, const PipeConsumer& cons, const Popped& pop,
                                          const PopFacts& facts, DType dtype, int bits) {
  if (!pop.takes_part || bits < 8) return nullptr;
  Part part = pop.part;
  const FifoSlot slot = fifo.slot(part.index);
  if (!slot.is_tile || static_cast<DType>(slot.dtype) != dtype ||
      !part_of(fifo, slot, cons.entryOffset, pop.split, pop.vector, facts.rows, facts.cols, bits, part) ||
      part.rows != facts.rows || part.cols != facts.cols || part.pitch != facts.cols)
    return nullptr;
  char* const at = part.at + part.row * part.pitch * (bits / 8);
  return in_ring(fifo, at) || goes_on_behind(at, facts.bytes) ? at : nullptr;
}
#endif

template <class Pipe, class TileT>
inline void pop_tile(Pipe& pipe, TileT& tile, int split, int lane) {
  constexpr bool cube_tile = TileT::Loc != TileType::Vec;
  const uint32_t local = pipe.local_slots() == 0 ? 1 : pipe.local_slots();
  const PopFacts facts{static_cast<int32_t>(tile.Rows),
                       static_cast<int32_t>(tile.Cols),
                       static_cast<uint32_t>(tile.GetSizeInBytes()),
                       local,
                       static_cast<int>(TileT::Loc),
                       !cube_tile};
  const Fifo fifo = pipe.side_with_slots(pipe.incoming(cube_tile));
  const uint32_t buffer = fifo.direction == 0 ? pipe.fifo.C2V_CONSUMER_BUF : pipe.fifo.V2C_CONSUMER_BUF;
  Popped pop = begin_pop(fifo, pipe.cons, facts, Binder<TileT>::at(tile), split, lane, buffer);
#ifdef PTO_CPU_OPEN
  if (!cube_tile && core().lends) {
    core().lends = false;
    using T = typename TileT::DType;
    if (char* at = lent_entry(fifo, pipe.cons, pop, facts, dtype_of<T>, bits_of<T>)) return bind(tile, at);
  }
#endif
  bind(tile, pop.data);
  pop_copy(fifo, pipe.cons, pop, place(tile), tile.GetValidRow(), tile.GetValidCol());
}

[[gnu::noinline]] inline void free_entry(const Fifo& fifo, const PipeConsumer& cons, int split) {
  const bool vector = core().host == nullptr ? fifo.direction == 0 : core().kind == CoreKind::Vector;
  if (fifo.stands_aside(split, vector) || !cons.isFree) return;
  const int lane = lane_of(vector);
  const int64_t index = fifo.ring.frees[lane];
  if (index >= fifo.ring.tails[lane] && cons.isWait)
    failf("[PTO-E2102] TFREE: frees an entry of %s FIFO %d that was not popped", fifo.name(), fifo.flag);
  fifo.ring.frees[lane] = index + 1;
  fifo.release(index, lane, split);
}
template <class Pipe>
inline void free_entry(Pipe& pipe, int split) {
  const bool by_core = pipe.is_both && core().kind != CoreKind::Mix;
  free_entry(pipe.side(by_core ? pipe.incoming(false) : pipe.cons.direction), pipe.cons, split);
}

// --- entries as views of global memory ---

/// Point a tensor at an entry, or at a lane's part of it.
template <class Global>
inline void point(const Fifo& fifo, Global& view, int64_t index, int split, int lane, int offset) {
  if (fifo.global == nullptr) fail("[PTO-E2102] entries as views need a FIFO in global memory");
  const ptrdiff_t rows = view.GetShape(3), cols = view.GetShape(4);
  const ptrdiff_t part = splits_rows(split) ? rows * cols * lane : splits_cols(split) ? cols * lane : 0;
  using T = typename Global::DType;
  char* at = fifo.global + index % fifo.count * fifo.size + offset +
             static_cast<ptrdiff_t>(bytes_of<T>(static_cast<size_t>(part)));
  bind(view, at);
}

}  // namespace detail

// --- instructions ------------------------------------------------------------------------------------------

template <class Pipe, class T, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && all_events_v<Events...>)
PTO_INST RecordEvent TPUSH(Pipe& pipe, T& tile, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("tpush pipe_handle tile: split", PTO_SAYS(Split), pipe, tile);
  if constexpr (is_global_data_v<T>) {  // publishes the entry that TALLOC began
    const detail::Fifo fifo = pipe.side_with_slots(pipe.outgoing(true));
    const bool vector = detail::on_vector(fifo.direction == 1);
    if (fifo.stands_aside(Split, vector)) return {};
    if (pipe.prod.isRecord) fifo.publish(pipe.prod.tileIndex, detail::lane_of(vector), Split);
  } else {
    detail::push_tile<FixpipeParams<>>(pipe, tile, Split, -1);
  }
  return {};
}

/// Push as vector core `lane`.
template <class Pipe, class T, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_tile_data_v<T> && all_events_v<Events...>)
PTO_INST RecordEvent TPUSH(Pipe& pipe, T& tile, int32_t lane, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("tpush pipe_handle tile aiv_subblockid: split", PTO_SAYS(Split), pipe, tile, lane);
  detail::push_tile<FixpipeParams<>>(pipe, tile, Split, lane);
  return {};
}

/// Push through the fix-pipe, with the configuration of a FixpipeParams.
template <class Pipe, class T, class Config, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_tile_data_v<T> && requires { Config::QuantPre; } &&
           all_events_v<Events...>)
PTO_INST RecordEvent TPUSH(Pipe& pipe, T& tile, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("tpush pipe_handle tile: quant_mode reluPreMode", PTO_SAYS(Config::QuantPre, Config::ReluMode),
            pipe, tile);
  detail::push_tile<Config>(pipe, tile, TILE_NO_SPLIT, -1);
  return {};
}

template <class T, class Pipe, class... Events>
  requires(detail::is_pipe_v<Pipe> && !detail::is_pipe_v<T> && all_events_v<Events...>)
PTO_INST RecordEvent TPUSH(T& tile, Pipe& pipe, Events&... events) {
  return TPUSH<Pipe, T, TILE_NO_SPLIT>(pipe, tile, events...);
}

template <class Pipe, class T, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && all_events_v<Events...>)
PTO_INST RecordEvent TPOP(Pipe& pipe, T& tile, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("tpop pipe_handle tile: split", PTO_SAYS(Split), pipe, tile);
  if constexpr (is_global_data_v<T>) {
    const detail::Fifo fifo = pipe.side_with_slots(pipe.incoming(false));
    detail::Part part;
    if (!detail::start_pop(fifo, pipe.cons, Split, -1, detail::on_vector(fifo.direction == 0), part))
      return {};
    detail::point(fifo, tile, part.index, fifo.direction == 0 ? Split : TILE_NO_SPLIT, part.lane,
                  pipe.cons.entryOffset);
  } else {
    detail::pop_tile(pipe, tile, Split, -1);
  }
  return {};
}

template <class Pipe, class T, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_tile_data_v<T> && all_events_v<Events...>)
PTO_INST RecordEvent TPOP(Pipe& pipe, T& tile, int32_t lane, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("tpop pipe_handle tile aiv_subblockid: split", PTO_SAYS(Split), pipe, tile, lane);
  detail::pop_tile(pipe, tile, Split, lane);
  return {};
}

template <class T, class Pipe, class... Events>
  requires(detail::is_pipe_v<Pipe> && !detail::is_pipe_v<T> && all_events_v<Events...>)
PTO_INST RecordEvent TPOP(T& tile, Pipe& pipe, Events&... events) {
  return TPOP<Pipe, T, TILE_NO_SPLIT>(pipe, tile, events...);
}

template <class Pipe, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && all_events_v<Events...>)
PTO_INST RecordEvent TFREE(Pipe& pipe, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("tfree pipe_handle: split", PTO_SAYS(Split), pipe);
  detail::free_entry(pipe, Split);
  return {};
}

template <class Pipe, class... Events>
  requires(detail::is_pipe_v<Pipe> && all_events_v<Events...>)
PTO_INST RecordEvent TFREE(Pipe& pipe, Events&... events) {
  return TFREE<Pipe, TILE_NO_SPLIT>(pipe, events...);
}

template <class Pipe, class Global, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_global_data_v<Global> && all_events_v<Events...>)
PTO_INST RecordEvent TFREE(Pipe& pipe, Global&, Events&... events) {
  return TFREE<Pipe, Split>(pipe, events...);
}

/// Wait for a free slot, and point a tensor at it.
template <class Pipe, class Global, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_global_data_v<Global> && all_events_v<Events...>)
PTO_INST RecordEvent TALLOC(Pipe& pipe, Global& view, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("talloc pipe_handle entry: split", PTO_SAYS(Split), pipe, view);
  const detail::Fifo fifo = pipe.side_with_slots(pipe.outgoing(true));
  const int lane = detail::lane_of(detail::on_vector(fifo.direction == 1));
  if (pipe.prod.isAllocate) pipe.prod.tileIndex = static_cast<int>(fifo.begin_push(lane));
  detail::point(fifo, view, pipe.prod.tileIndex, fifo.direction == 1 ? Split : TILE_NO_SPLIT, lane,
                pipe.prod.entryOffset);
  return {};
}

}  // namespace pto
