// Calls that no pack has. A function of the host performs such a call (src/pto/engine/native/generic.py): it
// reads the operands from the frame, executes the instruction, and writes the results back.
//
// The function runs on the stack of the core, and needs about 20 KiB of it. It returns before the core fails
// or waits, so no host state is left on that stack when another core runs. A push or a pop may wait, so it
// takes two calls of the function: in the first the host describes its request; then the machine finds the
// entry; in the second the host moves the elements.
#pragma once

#include "pto/launch.hpp"
#include "values.hpp"
#include "vm.hpp"

extern "C" {

/// A push or a pop: the host describes the tile, the machine the location of its elements in the entry.
struct pto_generic_entry {
  uint32_t pipe, tile;  // offsets in the frame
  int32_t split, lane;
  int32_t space;       // space of the tile
  int32_t rows, cols;  // of the valid region
  int32_t dtype, bits, is_integer;
  // The machine sets the rest. `holds` is the content of a popped entry: 0 zeros, 1 elements as the tile has
  // them, 2 elements of another type.
  int32_t holds, held_dtype;
  // The entry. The elements of the tile begin at `row` and `col` of the entry.
  char* data;
  int64_t pitch, row, col, count_rows, count_cols;
};

/// A call as the host sees it; `CALL` of generic_core.py has the words before `outcome`.
struct pto_generic {
  char* frame;
  const uint32_t* at;  // the operands of the call, in words; this address identifies the call
  char* spaces[pto::detail::kSpaces];
  const pto_array* arrays;
  uint64_t array_count;
  uint64_t only_arrays;  // true if an address outside all arrays is an error
  uint64_t kind, block, subblock, rank;
  char* vector_memory[2];  // UB of the vector cores of the block, L1 of its cube core
  char* cube_memory;
  uint64_t ctrl;
  int64_t hf32;
  pto::detail::SqueezeRegisters* squeeze;
  uint64_t quant_scalar;
  const void* quant_vector;
  uint64_t again;           // true if the machine has found the entry that the host requested
  uint64_t outcome;         // out: of pto_generic_outcome
  uint64_t touched[2];      // out: an access outside all arrays, as in pto_launch; for screens the pattern
  pto_generic_entry entry;  // in and out
  char text[1000];          // out: why the call failed
};

/// The result of the host. kLeft: an exception left the function of the host, which keeps the exception.
enum pto_generic_outcome : uint64_t { kLeft, kPerformed, kFailed, kUnbound, kPush, kPop };

using pto_generic_function = void (*)(pto_generic* call);
}

namespace pto::vm {

inline pto_generic_function perform = nullptr;

/// Mark that no core runs while the host works: a signal in code of the host is not a fault of the core.
struct OffCore {
  explicit OffCore(const detail::Core& core)
      : fiber(core.host != nullptr && core.host->wait == detail::kHost.wait
                  ? static_cast<detail::Fiber*>(core.fiber)
                  : nullptr) {
    if (fiber != nullptr) fiber->thread->running = nullptr;
  }
  ~OffCore() {
    if (fiber != nullptr) fiber->thread->running = fiber;
  }
  OffCore(const OffCore&) = delete;
  OffCore& operator=(const OffCore&) = delete;
  detail::Fiber* const fiber;
};

/// Let the host perform a call; does not return if the call fails.
inline void ask_host(pto_generic& call, detail::Core& core) {
  call.outcome = kLeft;
  {
    const OffCore off(core);
    perform(&call);
  }
  if (call.outcome == kLeft) detail::fail("interrupted");
  if (call.outcome == kUnbound) detail::unbound();
  if (call.outcome == kFailed) {
    std::memcpy(core.touched, call.touched, sizeof core.touched);
    detail::fail(call.text);
  }
}

/// Describe the elements of an entry for the host.
inline void show(pto_generic_entry& entry, const detail::Part& part) {
  entry.data = part.at;
  entry.pitch = part.pitch;
  entry.row = part.row;
  entry.col = part.col;
  entry.count_rows = part.rows;
  entry.count_cols = part.cols;
}

/// Push a tile with elements of any type, like push_tile of ops/fifo.hpp.
inline void push_entry(pto_generic& call, detail::Core& core) {
  pto_generic_entry& entry = call.entry;
  auto& pipe = at<OpenPipe>(call.frame, entry.pipe);
  const bool vector_tile = entry.space == static_cast<int>(TileType::Vec);
  const detail::Fifo fifo = pipe.side_with_slots(pipe.outgoing(!vector_tile));
  detail::FifoSlot about;
  about.rows = entry.rows;
  about.cols = entry.cols;
  about.dtype = static_cast<uint8_t>(entry.dtype);
  about.bits = static_cast<uint8_t>(entry.bits);
  about.is_integer = entry.is_integer != 0;
  detail::Part part;
  const bool vector = detail::on_vector(vector_tile);
  if (!detail::start_push(fifo, pipe.prod, about, entry.split, entry.lane, vector, part)) return;
  show(entry, part);
  ask_host(call, core);
  if (pipe.prod.isRecord) fifo.publish(part.index, part.lane, entry.split);
}

/// Return the conversion of the elements of a slot to those of a tile, as in `empty_slot`: 1 none needed,
/// 2 conversion, -1 impossible.
inline int32_t reads_as(const detail::FifoSlot& slot, const pto_generic_entry& entry) {
  using detail::DType;
  const auto held = static_cast<DType>(slot.dtype), wanted = static_cast<DType>(entry.dtype);
  const bool same_bits = slot.is_integer && entry.is_integer != 0 && slot.bits == entry.bits;
  if (!slot.is_tile || held == wanted || same_bits) return 1;
  const bool floats = held == DType::f32 || held == DType::f16 || held == DType::bf16;
  return floats && entry.is_integer == 0 && entry.bits >= 8 && wanted != DType::f64 ? 2 : -1;
}

/// Pop a tile with elements of any type, like pop_tile of ops/fifo.hpp. It stays in the consumer's buffer.
inline void pop_entry(pto_generic& call, detail::Core& core) {
  pto_generic_entry& entry = call.entry;
  auto& pipe = at<OpenPipe>(call.frame, entry.pipe);
  auto& tile = at<AnyTile>(call.frame, entry.tile);
  const bool vector_tile = entry.space == static_cast<int>(TileType::Vec);
  const size_t bytes = (static_cast<size_t>(tile.Numel) * static_cast<size_t>(entry.bits) + 7) / 8;
  const detail::PopFacts facts{
      tile.Rows,   tile.Cols,  static_cast<uint32_t>(bytes), pipe.local_slots() == 0 ? 1 : pipe.local_slots(),
      entry.space, vector_tile};
  const detail::Fifo fifo = pipe.side_with_slots(pipe.incoming(!vector_tile));
  const uint32_t buffer = fifo.direction == 0 ? pipe.fifo.C2V_CONSUMER_BUF : pipe.fifo.V2C_CONSUMER_BUF;
  const void* before = detail::Binder<AnyTile>::at(tile);
  detail::Popped pop = detail::begin_pop(fifo, pipe.cons, facts, before, entry.split, entry.lane, buffer);
  core.lends = false;
  detail::bind(tile, pop.data);
  detail::Part& part = pop.part;
  const detail::FifoSlot slot = pop.takes_part ? fifo.slot(part.index) : detail::FifoSlot{};
  const bool whole = pop.takes_part && detail::part_of(fifo, slot, pipe.cons.entryOffset, entry.split,
                                                       pop.vector, entry.rows, entry.cols, entry.bits, part);
  if (!pop.takes_part) part.rows = entry.rows, part.cols = entry.cols;
  entry.held_dtype = slot.is_tile ? slot.dtype : entry.dtype;
  entry.holds = !whole ? 0 : reads_as(slot, entry);
  if (entry.holds < 0)
    detail::failf("[PTO-E2102] TPOP: entry %lld of %s FIFO %d holds elements of another type than the tile",
                  static_cast<long long>(part.index), fifo.name(), fifo.flag);
  show(entry, part);
  ask_host(call, core);
  const bool copies =
      detail::kIsa == detail::Isa::a2a3 || (detail::kIsa == detail::Isa::a5 && fifo.global != nullptr);
  if (pop.takes_part && copies && pipe.cons.isFree) fifo.release(part.index, part.lane, entry.split);
}

/// Describe a core and a call of it for the host.
inline void describe(pto_generic& call, char* frame, const uint32_t* at, const detail::Core& core) {
  call.frame = frame;
  call.at = at;
  std::memcpy(call.spaces, core.space, sizeof call.spaces);
  call.arrays = core.arrays;
  call.array_count = static_cast<uint64_t>(core.array_count);
  call.only_arrays = core.arrays != nullptr && core.only_arrays;
  call.kind = static_cast<uint64_t>(core.kind);
  call.block = core.block_idx;
  call.subblock = core.subblock_idx;
  call.rank = core.grid != nullptr ? core.grid->rank : 0;
  const detail::Cluster* cluster = core.cluster;
  const auto memory_of = [&](detail::Core* other, TileType memory) {
    const int space = static_cast<int>(memory);
    return other == nullptr ? nullptr : detail::in_memory_of(*other, space, 0);
  };
  for (int n = 0; n < 2; ++n)
    call.vector_memory[n] = cluster != nullptr ? memory_of(cluster->vectors[n], TileType::Vec) : nullptr;
  call.cube_memory = cluster != nullptr ? memory_of(cluster->cube, TileType::Mat) : nullptr;
  call.ctrl = core.ctrl;
  call.hf32 = core.hf32;
  call.squeeze = const_cast<detail::SqueezeRegisters*>(&core.squeeze);
  call.quant_scalar = core.quant_pre;
  call.quant_vector = core.fpc;
  call.again = 0;
  call.touched[0] = call.touched[1] = 0;
  call.text[0] = 0;
}

inline void generic_call(char* frame, const uint32_t* at) {
  detail::Core& core = detail::core();
  if (core.deferred != nullptr && core.deferred->count > 0) detail::settle_deferred(*core.deferred, true);
  pto_generic call;
  describe(call, frame, at, core);
  ask_host(call, core);
  if (call.outcome == kPerformed) [[likely]]
    return;
  call.again = 1;
  call.outcome == kPush ? push_entry(call, core) : pop_entry(call, core);
}

}  // namespace pto::vm

/// Set the host's function for calls that no pack has, in this process. Return the function that calls it.
PTO_EXPORT void* pto_vm_generic(pto_generic_function function) {
  pto::vm::perform = function;
  return reinterpret_cast<void*>(pto::vm::generic_call);
}

/// Print text of a program while the host performs a call of the program.
PTO_EXPORT void pto_vm_print(const char* text) {
  pto::detail::Core& core = pto::detail::core();
  if (core.host != nullptr) {
    core.host->print(core, text);
  } else {
    std::fputs(text, stdout);
  }
}
