// TMPipe: a FIFO between the cube core and its vector cores whose steps the program controls. TPUSH and TPOP
// take a tile and the pipe, TFREE takes the pipe.
//
// A pipe has two semaphores of the block: FlagID counts entries, FlagID + 1 counts space. The consumer gives
// one entry of space at construction; the producer takes one back at destruction. A push takes space, writes
// to slot `tile_id % FiFoDepth` and signals the entry. A pop waits for an entry, reads the same slot and
// gives space. With several entries in flight, a program switches single steps off (setAllocateStatus and so
// on), and sets the entry (setTileId) and the offset of a lane or a piece in the entry (setEntryOffset).
//
// GM_FIFO: slots in global memory, made of blocks as wide as the narrower of the two tiles. VEC_FIFO and
// MAT_FIFO: slots in the consumer's buffer, which a pop uses without a copy and TFREE releases.
#pragma once

#include "pto/core/cross_core.hpp"
#include "pto/ops/calls.hpp"
#include "pto/ops/load_store.hpp"

namespace pto {

enum class FIFOType : uint8_t { GM_FIFO = 0, VEC_FIFO = 1, MAT_FIFO = 2, CTRL_FIFO = 3 };
/// The vector cores that take part.
enum class VecCubeRatio : uint8_t { V1C1_VEC0 = 0, V1C1_VEC1 = 1, V2C1_VECS = 2 };

/// The parameters of a pipe.
template <class T, FIFOType Type, int Depth, int Period, int LocalDepth = 0>
struct DataFIFO {
  using DType = T;
  static constexpr FIFOType fifoType = Type;
  static constexpr int fifoDepth = Depth, fifoPeriod = Period, localFiFoDepth = LocalDepth;
  static constexpr bool useLocalFiFo = LocalDepth > 0;
  __gm__ T* fifoBase = nullptr;
  uint32_t localFiFoBase = 0;
  __gm__ T* getBasePtr() { return fifoBase; }
};

namespace detail {

struct MultiPipeTag {};
template <class T>
inline constexpr bool is_multi_pipe_v = std::is_base_of_v<MultiPipeTag, std::remove_cv_t<T>>;

#ifdef PTO_TRACED
/// Trace the semaphore calls that a program would write itself in place of the calls below.
[[gnu::noinline]] inline void tell_signal(pipe_t pipe, int id) {
  if constexpr (kIsa == Isa::a5) {
    PTO_TRACE("set_intra_block: pipe event_id", PTO_SAYS(pipe, id));
  } else {
    PTO_TRACE("sync.set: pipe ffts_mode event_id", PTO_SAYS(pipe, 2, id));
  }
}
[[gnu::noinline]] inline void tell_wait(pipe_t pipe, int id) {
  if constexpr (kIsa == Isa::a5) {
    PTO_TRACE("wait_intra_core: pipe event_id", PTO_SAYS(pipe, id));
  } else {
    PTO_TRACE("wait_flag_dev event_id:", PTO_SAYS(), static_cast<int64_t>(id));
  }
}
#endif

/// The semaphores of a pipe, as its cores use them.
template <VecCubeRatio Ratio>
struct PipeFlags {
  static constexpr int first = Ratio == VecCubeRatio::V1C1_VEC1 ? 1 : 0;
  static int lanes(const Core& me) { return Ratio == VecCubeRatio::V2C1_VECS ? vectors_of(me) : 1; }
  static bool takes_part(const Core& me) {
    const int lane = static_cast<int>(me.subblock_idx);
    return me.kind != CoreKind::Vector || (lane >= first && lane < first + lanes(me));
  }
#ifdef PTO_TRACED
  /// On A5 the cube core signals the semaphores of its vector cores one by one.
  static void tell(void (*one)(pipe_t, int), const Core& me, pipe_t pipe, int id) {
    const bool each = kIsa == Isa::a5 && me.kind != CoreKind::Vector && vectors_of(me) > 0;
    if (!each) return one(pipe, id);
    for (int lane = first; lane < first + lanes(me); ++lane) one(pipe, id + kSecondVector * lane);
  }
#define PTO_TELL_(what) tell(what, me, pipe, id)
#else
#define PTO_TELL_(what) ((void)0)
#endif
  /// Signal the other side when a hardware pipe reaches this point.
  static void raise([[maybe_unused]] pipe_t pipe, int id) {
    Core& me = core();
    if (!takes_part(me)) return;
    PTO_TELL_(tell_signal);
    if (me.kind == CoreKind::Vector)
      return raise_semaphore(*me.cluster, kBoxAicFromAiv0 + static_cast<int>(me.subblock_idx), id);
    if (vectors_of(me) == 0) return raise_semaphore(*me.cluster, kBoxOwn, id);
    for (int lane = first; lane < first + lanes(me); ++lane)
      raise_semaphore(*me.cluster, kBoxAiv0 + lane, id);
  }
  /// Make a hardware pipe wait for the other side.
  static void await([[maybe_unused]] pipe_t pipe, int id) {
    Core& me = core();
    if (!takes_part(me)) return;
    PTO_TELL_(tell_wait);
    if (me.kind == CoreKind::Vector)
      return await_semaphores(*me.cluster, kBoxAiv0 + static_cast<int>(me.subblock_idx), 1, id);
    if (vectors_of(me) == 0) return await_semaphores(*me.cluster, kBoxOwn, 1, id);
    await_semaphores(*me.cluster, kBoxAicFromAiv0 + first, lanes(me), id);
  }
#undef PTO_TELL_
};

/// Return the offset in a buffer for an address of which the program kept the low 32 bits.
inline uint64_t offset_of(TileType loc, uint32_t address) {
  const int space = static_cast<int>(loc);
  if (address < room(space)) return address;
  return address - static_cast<uint32_t>(reinterpret_cast<uintptr_t>(core().space[space]));
}

/// Return a window of `Cols` columns of a vector tile, from column `col` on.
template <int Cols, class TileT>
inline auto columns_of(TileT& tile, int col) {
  using T = typename TileT::DType;
  Tile<TileType::Vec, T, TileT::Rows, TileT::Cols, BLayout::RowMajor, TileT::Rows, Cols> window;
  bind(window, static_cast<const char*>(Binder<TileT>::at(tile)) + bytes_of<T>(static_cast<size_t>(col)));
  return window;
}

/// Rows of a slot in global memory, one after the other.
template <class T, int Rows, int Cols>
using SlotRows = GlobalTensor<T, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, Cols, 1>>;

}  // namespace detail

#ifndef PTO_CPU_BARE_REGISTERS  // as for TPipe
template <uint8_t FlagID, FIFOType FiFoType, uint8_t FiFoDepth, uint8_t FiFoSyncT, class TileDataProd,
          class TileDataCons, bool EN_UNIT_FLAG = false, uint8_t LocalFiFoDepth = 2,
          VecCubeRatio VCRatio = VecCubeRatio::V2C1_VECS>
struct TMPipe : detail::MultiPipeTag {
  static constexpr bool is_c2v = TileDataProd::Loc == TileType::Acc && TileDataCons::Loc == TileType::Vec;
  static constexpr bool is_v2c = TileDataProd::Loc == TileType::Vec && TileDataCons::Loc == TileType::Mat;
  static constexpr bool in_global = FiFoType == FIFOType::GM_FIFO;
  static_assert(is_c2v || is_v2c, "[PTO][PTO-E1304] TMPipe: tiles go from Acc to Vec, or from Vec to Mat");
  static_assert(in_global || FiFoType == (is_c2v ? FIFOType::VEC_FIFO : FIFOType::MAT_FIFO),
                "[PTO][PTO-E1304] TMPipe: the FIFO lies in global memory or where the consumer's tile does");
  static_assert(in_global || detail::kIsa != detail::Isa::a2a3,
                "[PTO][PTO-E1304] TMPipe: cores of an A2A3 share no memory but GM; fix: FIFOType::GM_FIFO");
  static_assert(FiFoDepth >= 1, "[PTO][PTO-E1304] TMPipe: a FIFO has at least one slot");
  static_assert(FlagID + 1 < 16, "[PTO][PTO-E1304] TMPipe: FlagID and FlagID + 1 are semaphores 0..15");

  using DataFiFo = DataFIFO<typename TileDataCons::DType, FiFoType, FiFoDepth, FiFoSyncT, LocalFiFoDepth>;
  using T = typename TileDataCons::DType;
  using Flags = detail::PipeFlags<VCRatio>;
  static constexpr int ProdM = TileDataProd::Rows, ProdN = TileDataProd::Cols;
  static constexpr int ConsM = TileDataCons::Rows, ConsN = TileDataCons::Cols;
  /// The hardware pipe that writes entries, and the one that reads them.
  static constexpr pipe_t from_pipe = is_c2v ? PIPE_FIX : PIPE_MTE3;
  static constexpr pipe_t to_pipe = in_global ? PIPE_MTE2 : is_c2v ? PIPE_V : PIPE_MTE1;

  /// Return true if this core is on the given side; a core without a side of its own is on both.
  static bool on_side(bool consumer) {
    const detail::CoreKind kind = detail::core().kind;
    if (kind == detail::CoreKind::Mix) return true;
    return (kind == detail::CoreKind::Vector) == (consumer == is_c2v);
  }

  struct Producer {
    int tile_id = 0, sub_tile_id = 0, entryOffset = 0;
    bool isAllocate = true, isRecord = true;
    void setTileId(int tile, int sub) { tile_id = tile, sub_tile_id = sub; }
    int getTileId() const { return tile_id; }
    int getSubTileId() const { return sub_tile_id; }
    void setAllocateStatus(bool on) { isAllocate = on; }
    bool getAllocateStatus() const { return isAllocate; }
    void setRecordStatus(bool on) { isRecord = on; }
    bool getRecordStatus() const { return isRecord; }
    void setEntryOffset(int offset) { entryOffset = offset; }
    void allocate() const {
      if (on_side(false)) Flags::await(from_pipe, FlagID + 1);
    }
    void record() const { Flags::raise(from_pipe, FlagID); }
  };
  struct Consumer {
    int tile_id = 0, sub_tile_id = 0, entryOffset = 0;
    bool isWait = true, isFree = true;
    void setTileId(int tile, int sub) { tile_id = tile, sub_tile_id = sub; }
    int getTileId() const { return tile_id; }
    int getSubTileId() const { return sub_tile_id; }
    void setWaitStatus(bool on) { isWait = on; }
    bool getWaitStatus() const { return isWait; }
    void setFreeStatus(bool on) { isFree = on; }
    bool getFreeStatus() const { return isFree; }
    void setEntryOffset(int offset) { entryOffset = offset; }
    void wait() const { Flags::await(to_pipe, FlagID); }
    void free() const {
      if (on_side(true)) Flags::raise(to_pipe, FlagID + 1);
    }
  };

  DataFiFo fifo;
  Producer prod;
  Consumer cons;

  explicit TMPipe(__gm__ T* slots, uint32_t local = 0)
    requires(in_global)
      : fifo{slots, local} {
    cons.free();
  }
  explicit TMPipe(uint32_t slots)
    requires(!in_global)
      : fifo{nullptr, slots} {
    cons.free();
  }
  TMPipe(const TMPipe&) = delete;
  TMPipe& operator=(const TMPipe&) = delete;
  ~TMPipe() { prod.allocate(); }

  // --- parts of the instructions below ---

  void push(TileDataProd& tile) {
    if constexpr (!in_global) {
      is_c2v ? push_to_vectors(tile) : push_to_cube(tile);
    } else if constexpr (is_c2v) {
      static_assert(ConsN % ProdN == 0, "[PTO][PTO-E1304] TMPipe: an entry has whole tiles of the producer");
      using P = typename TileDataProd::DType;
      detail::SlotRows<P, ProdM, ProdN> rows(entry<P>(prod.tile_id, ProdM * ConsN, prod.entryOffset));
      TSTORE(rows, tile);
    } else {
      static_assert(ProdN % ConsN == 0, "[PTO][PTO-E1304] TMPipe: an entry has whole tiles of the consumer");
      using P = typename TileDataProd::DType;
      for (int col = 0; col < ProdN; col += ConsN) {
        auto part = detail::columns_of<ConsN>(tile, col);
        detail::SlotRows<P, ProdM, ConsN> rows(entry<P>(prod.tile_id, ConsM * ProdN, prod.entryOffset) +
                                               col * ConsM);
        TSTORE(rows, part);
      }
    }
  }

  void pop(TileDataCons& tile) {
    if constexpr (in_global) {
      if constexpr (DataFiFo::useLocalFiFo)
        TASSIGN(tile, slot_in_buffer(cons.tile_id % LocalFiFoDepth, ConsM * ConsN, 0));
      if constexpr (is_c2v) {
        for (int col = 0; col < ConsN; col += ProdN) {
          auto part = detail::columns_of<ProdN>(tile, col);
          detail::SlotRows<T, ConsM, ProdN> rows(entry<T>(cons.tile_id, ProdM * ConsN, cons.entryOffset) +
                                                 col * ProdM);
          TLOAD(part, rows);
        }
      } else {
        detail::SlotRows<T, ConsM, ConsN> rows(entry<T>(cons.tile_id, ConsM * ProdN, cons.entryOffset));
        TLOAD(tile, rows);
      }
    }
  }

 private:
  static constexpr int lanes = VCRatio == VecCubeRatio::V2C1_VECS ? 2 : 1;
  static constexpr bool by_rows = ProdM != ConsM, by_cols = ProdN != ConsN;

  template <class P>
  __gm__ P* entry(int index, int elements, int offset) const {
    const size_t bytes = detail::bytes_of<P>(static_cast<size_t>(elements));
    return reinterpret_cast<__gm__ P*>(reinterpret_cast<char*>(fifo.fifoBase) +
                                       static_cast<size_t>(index % FiFoDepth) * bytes + offset);
  }
  uint64_t slot_in_buffer(int slot, int elements, int offset) const {
    return detail::offset_of(TileDataCons::Loc, fifo.localFiFoBase) +
           static_cast<uint64_t>(slot) * detail::bytes_of<T>(static_cast<size_t>(elements)) +
           static_cast<uint64_t>(offset);
  }

  /// Move to each vector core its part of an accumulator.
  void push_to_vectors(TileDataProd& tile)
    requires(is_c2v)
  {
    static_assert(
        by_rows || by_cols ? lanes == 2 : lanes == 1,
        "[PTO][PTO-E1304] TMPipe: two vector cores take half the rows or columns each, one takes all");
    constexpr int rows = by_rows ? ProdM / 2 : ProdM, cols = by_cols ? ProdN / 2 : ProdN;
    constexpr AccToVecMode mode = by_rows                              ? AccToVecMode::DualModeSplitM
                                  : by_cols                            ? AccToVecMode::DualModeSplitN
                                  : VCRatio == VecCubeRatio::V1C1_VEC1 ? AccToVecMode::SingleModeVec1
                                                                       : AccToVecMode::SingleModeVec0;
    Tile<TileType::Vec, T, rows, cols> part;
    TASSIGN(part, slot_in_buffer(prod.tile_id % FiFoDepth, rows * cols, prod.entryOffset));
    TMOV<decltype(part), TileDataProd, mode>(part, tile);
  }
  void push_to_vectors(TileDataProd&) {}

  /// Insert a vector core's part into a tile of the cube core.
  void push_to_cube(TileDataProd& tile)
    requires(is_v2c)
  {
    const detail::Core& me = detail::core();
    const uint64_t at = slot_in_buffer(prod.tile_id % FiFoDepth, ConsM * ConsN, 0);
    TileDataCons whole;
    TASSIGN(whole, at);
    if (me.kind == detail::CoreKind::Vector && me.cluster->cube != nullptr)
      detail::bind(whole, detail::in_memory_of(*me.cluster->cube, static_cast<int>(TileDataCons::Loc),
                                               static_cast<ptrdiff_t>(at)));
    const int lane = lanes == 2 ? static_cast<int>(get_subblockid()) : 0;
    TINSERT(whole, tile, static_cast<uint16_t>(by_rows ? lane * (ConsM / 2) : 0),
            static_cast<uint16_t>(by_cols ? lane * ProdN : 0));
  }
  void push_to_cube(TileDataProd&) {}
};
#endif

// --- instructions ------------------------------------------------------------------------------------------

template <class TileT, class Pipe, class... Events>
  requires(detail::is_multi_pipe_v<Pipe> && all_events_v<Events...>)
PTO_INST RecordEvent TPUSH(TileT& tile, Pipe& pipe, Events&... events) {
  if constexpr (!Pipe::in_global && Pipe::is_v2c) PTO_UNTOLD("TPUSH of a TMPipe in L1");
  TSYNC(events...);
  if (pipe.prod.isAllocate) pipe.prod.allocate();
  pipe.push(tile);
  PTO_IF_TARGET(detail::kIsa != detail::Isa::a5)++ pipe.prod.tile_id;  // on A5 the program sets it
  if (pipe.prod.isRecord) pipe.prod.record();
  return {};
}

template <class TileT, class Pipe, class... Events>
  requires(detail::is_multi_pipe_v<Pipe> && all_events_v<Events...>)
PTO_INST RecordEvent TPOP(TileT& tile, Pipe& pipe, Events&... events) {
  TSYNC(events...);
  if (pipe.cons.isWait) pipe.cons.wait();
  pipe.pop(tile);
  PTO_IF_TARGET(detail::kIsa != detail::Isa::a5)++ pipe.cons.tile_id;
  if (Pipe::in_global && pipe.cons.isFree) pipe.cons.free();
  return {};
}

/// Give space. A pop from global memory has already done so: TFREE is then a no-op, except on A5.
template <class Pipe, class... Events>
  requires(detail::is_multi_pipe_v<Pipe> && all_events_v<Events...>)
PTO_INST RecordEvent TFREE(Pipe& pipe, Events&... events) {
  TSYNC(events...);
  if ((detail::kIsa == detail::Isa::a5 || !Pipe::in_global) && pipe.cons.isFree) pipe.cons.free();
  return {};
}

}  // namespace pto
