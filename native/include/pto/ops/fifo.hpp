// FIFO instructions: TPUSH, TPOP, TFREE, TALLOC.
//
// A tile pushed lies in its slot dense and row by row: in global memory if the pipe was given some, else in
// memory of the ring. A pop copies the lane's part of it into the consumer's tile, which lies in the
// consumer's buffer of that direction. Lane 1 of a `nosplit` pipe finds zeros.
//
// Where a pop makes a copy for good (A2A3, and pipes through global memory on A5) it gives the slot back and
// TFREE has nothing left to do.
#pragma once

#include "pto/ops/fixpipe.hpp"
#include "pto/ops/pipe.hpp"

namespace pto {

// --- what a push may do to the elements of an accumulator
// ---------------------------------------------------

enum QuantMode_t {
  NoQuant = 0,
  F322F16 = 1,
  VREQ8 = 2,
  REQ8 = 3,
  VDEQF16 = 4,
  DEQF16 = 5,
  VSHIFTS322S16 = 12,
  SHIFTS322S16 = 13,
  F322BF16 = 16,
  VQF322B8_PRE = 23,
  QF322B8_PRE = 24,
  QF322F16_PRE = 32,
  QF322BF16_PRE = 34,
  QS322BF16_PRE = 35,
  VQS322BF16_PRE = 36,
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

constexpr bool words_by_column(QuantMode_t mode) {
  return mode == VREQ8 || mode == VDEQF16 || mode == VSHIFTS322S16 || mode == VQF322B8_PRE ||
         mode == VQS322BF16_PRE;
}

/// The element type that a mode gives.
template <QuantMode_t Mode, class T>
constexpr auto quantised_type() {
  if constexpr (Mode == F322F16 || Mode == DEQF16 || Mode == VDEQF16 || Mode == QF322F16_PRE) {
    return half{};
  } else if constexpr (Mode == F322BF16 || Mode == QF322BF16_PRE || Mode == QS322BF16_PRE ||
                       Mode == VQS322BF16_PRE) {
    return bfloat16_t{};
  } else if constexpr (Mode == SHIFTS322S16 || Mode == VSHIFTS322S16) {
    return int16_t{};
  } else if constexpr (Mode == NoQuant) {
    return T{};
  } else {
    return int8_t{};
  }
}

/// The words that SET_QUANT_VECTOR gave.
struct RegisterWords {
  static constexpr bool any = true, per_column = true;
  const uint64_t* words;
  uint64_t at(ptrdiff_t c) const { return words[c]; }
};

/// A slot, or a window of it: dense, row by row.
template <class Element>
struct SlotPlace {
  using T = Element;
  static constexpr Runs row_runs = Runs::yes, col_runs = Runs::no;
  T* data;
  ptrdiff_t pitch, row = 0, col = 0;
  ptrdiff_t at(ptrdiff_t r, ptrdiff_t c) const { return (row + r) * pitch + col + c; }
  constexpr bool runs_in_rows() const { return true; }
  constexpr bool runs_in_cols() const { return false; }
  ptrdiff_t row_run(ptrdiff_t, ptrdiff_t n) const { return n; }
  ptrdiff_t col_run(ptrdiff_t, ptrdiff_t) const { return 1; }
  ptrdiff_t row_step(ptrdiff_t) const { return pitch; }
  ptrdiff_t col_step(ptrdiff_t) const { return 1; }
};

/// Elements of a tile to a slot, as they are or as a configuration converts them.
template <class Config, class Out, class TileT>
inline void fill_slot(const SlotPlace<Out>& to, const TileT& tile, ptrdiff_t rows, ptrdiff_t cols) {
  constexpr bool relu = Config::ReluMode == ReluPreMode::NormalRelu;
  constexpr QuantMode_t mode = Config::QuantPre;
  if constexpr (mode == NoQuant || mode == F322F16 || mode == F322BF16) {
    deliver<relu>(to, tile, 0, 0, rows, cols, NoWords{});
  } else if constexpr (words_by_column(mode)) {
    if (core().fpc == nullptr)
      fail("[PTO-E2102] TPUSH: no SET_QUANT_VECTOR before a push that quantises by column");
    deliver<relu>(to, tile, 0, 0, rows, cols, RegisterWords{static_cast<const uint64_t*>(core().fpc)});
  } else {
    deliver<relu>(to, tile, 0, 0, rows, cols, OneWord{core().quant_pre});
  }
}

/// Values of one float type as elements of another.
template <class To, class From>
inline void recode(const SlotPlace<From>& from, const TilePlace<To>& to, ptrdiff_t rows, ptrdiff_t cols) {
  using T = typename To::DType;
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; ++c) {
      to.data[to.at(r, c)] = element_of<T>(value_of<float>(from.data[from.at(r, c)]));
    }
  }
}

/// A window of an entry to a tile; false where the types cannot be brought together.
template <class TileT>
inline bool empty_slot(TileT& tile, char* base, const FifoSlot& slot, ptrdiff_t pitch, ptrdiff_t row,
                       ptrdiff_t col, ptrdiff_t rows, ptrdiff_t cols) {
  using T = typename TileT::DType;
  const auto as = [&](auto* data) {
    return SlotPlace<std::remove_pointer_t<decltype(data)>>{data, pitch, row, col};
  };
  const auto dtype = slot.is_tile ? static_cast<DType>(slot.dtype) : dtype_of<T>;
  const bool same_bits = slot.is_integer && !is_float_v<T> && slot.bits == bits_of<T>;
  if (dtype == dtype_of<T> || same_bits) {
    copy(place(tile), as(reinterpret_cast<T*>(base)), rows, cols);
    return true;
  }
  if constexpr (std::is_same_v<compute_t<T>, float> && bits_of<T> >= 8) {
    const auto to = place(tile);
    if (dtype == DType::f32)
      return recode<TileT, float>(as(reinterpret_cast<float*>(base)), to, rows, cols), true;
    if (dtype == DType::f16)
      return recode<TileT, half>(as(reinterpret_cast<half*>(base)), to, rows, cols), true;
    if (dtype == DType::bf16) {
      return recode<TileT, bfloat16_t>(as(reinterpret_cast<bfloat16_t*>(base)), to, rows, cols), true;
    }
  }
  return false;
}

/// Whether a pop hands out a copy, so that the slot is free again at once.
template <class Pipe>
inline bool pop_copies(const Pipe& pipe) {
  return kIsa == Isa::a2a3 || (kIsa == Isa::a5 && pipe.fifo.GM_SLOT_BUFFER != nullptr);
}

template <class Config, class Pipe, class TileT>
inline void push_tile(Pipe& pipe, TileT& tile, int split, int lane_given) {
  using Out = decltype(quantised_type<Config::QuantPre, typename TileT::DType>());
  constexpr bool cube_tile = TileT::Loc != TileType::Vec;
  const int direction = Pipe::outgoing(cube_tile);
  const bool vector = Pipe::on_vector(!cube_tile);
  if (Pipe::stands_aside(direction, split, vector)) return;
  const int lane = lane_given >= 0 ? lane_given & 1 : Pipe::lane_of(vector);
  auto& state = Pipe::GetSharedState();
  auto& ring = state.rings[direction];
  if (pipe.prod.isAllocate) pipe.prod.tileIndex = static_cast<int>(pipe.begin_push(state, direction, lane));
  const int64_t index = pipe.prod.tileIndex;

  // the whole entry, and where this lane's part begins
  const ptrdiff_t rows = tile.GetValidRow(), cols = tile.GetValidCol();
  ptrdiff_t all_rows = rows, all_cols = cols, row = 0, col = 0;
  if (direction == 1 && vector && split != TILE_NO_SPLIT) {
    const ptrdiff_t count = Pipe::lanes(ring, split);
    const ptrdiff_t odd = split >= TILE_UP_DOWN_ODD && count > 1 ? (lane == 0 ? -1 : 1) : 0;
    ptrdiff_t& size = splits_rows(split) ? all_rows : all_cols;
    (splits_rows(split) ? row : col) = lane * (size + (odd > 0 ? 1 : 0));
    size = size * count + odd;
  }
  char* base = pipe.entry(ring, direction, index, bits_of<Out> < 8);
  const bool local = base == ring.data[index % Pipe::RingFiFo::SLOT_NUM];
  const size_t bytes =
      bytes_of<Out>(static_cast<size_t>(all_rows * all_cols)) + static_cast<size_t>(pipe.prod.entryOffset);
  if (bytes > Pipe::RingFiFo::SLOT_SIZE * (local ? 2u : 1u)) {
    failf("[PTO-E2102] TPUSH: a tile of %zu bytes does not fit a slot of %u", bytes,
          Pipe::RingFiFo::SLOT_SIZE);
  }
  {
    Holding hold(ring);
    FifoSlot& slot = ring.slot(index);
    slot.index = index;
    slot.rows = static_cast<int32_t>(all_rows);
    slot.cols = static_cast<int32_t>(all_cols);
    slot.at = pipe.prod.entryOffset;
    slot.dtype = static_cast<uint8_t>(dtype_of<Out>);
    slot.bits = bits_of<Out>;
    slot.is_integer = !is_float_v<Out>;
    slot.is_tile = true;
  }
  const SlotPlace<Out> to{reinterpret_cast<Out*>(base + pipe.prod.entryOffset), all_cols, row, col};
  fill_slot<Config>(to, tile, rows, cols);
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
    fill(place(tile), 0, 0, tile.GetValidRow(), tile.GetValidCol(), 0);
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
  ptrdiff_t row = 0, col = 0;
  if (halves && splits_rows(split)) {
    const ptrdiff_t upper = (rows + 1) / 2;
    row = lane * upper;
    rows = lane == 0 ? upper : rows - upper;
  }
  if (halves && splits_cols(split)) {
    const ptrdiff_t left = (cols + 1) / 2;
    col = lane * left;
    cols = lane == 0 ? left : cols - left;
  }
  rows = lesser(rows, TileT::Rows);
  cols = lesser(cols, TileT::Cols);
  if (halves && split == TILE_NO_SPLIT && Pipe::is_no_split && lane > 0) {
    fill(place(tile), 0, 0, rows, cols, 0);
  } else {
    char* base = pipe.entry(ring, direction, index, (slot.is_tile ? slot.bits : bits_of<T>) < 8) +
                 pipe.cons.entryOffset;
    if (!empty_slot(tile, base, slot, pitch, row, col, rows, cols)) {
      failf("[PTO-E2102] TPOP: entry %lld of %s FIFO %d holds elements of another type than the tile",
            static_cast<long long>(index), Pipe::name(direction), Pipe::flag);
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
    detail::push_tile<FixpipeParams<>>(pipe, tile, Split, -1);
  }
  return {};
}

/// As the vector core `lane`.
template <class Pipe, class T, TileSplitAxis Split, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_tile_data_v<T> && all_events_v<Events...>)
inline RecordEvent TPUSH(Pipe& pipe, T& tile, int32_t lane, Events&... events) {
  TSYNC(events...);
  detail::push_tile<FixpipeParams<>>(pipe, tile, Split, lane);
  return {};
}

/// Through the fix-pipe, under a FixpipeParams.
template <class Pipe, class T, class Config, class... Events>
  requires(detail::is_pipe_v<Pipe> && is_tile_data_v<T> && requires { Config::QuantPre; } &&
           all_events_v<Events...>)
inline RecordEvent TPUSH(Pipe& pipe, T& tile, Events&... events) {
  TSYNC(events...);
  detail::push_tile<Config>(pipe, tile, TILE_NO_SPLIT, -1);
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
