// Operands of the library functions of the virtual machine: tiles and views with sizes that are known only at
// run time, as is the target. Every value of a program has an offset in the frame of its core.
#pragma once

#define PTO_CPU_LEAN
#define PTO_CPU_VERIFIED
#ifndef PTO_CPU_OPEN
#define PTO_CPU_OPEN
#endif

#include "pto/pto-inst.hpp"

namespace pto::vm {

template <TileType Loc, class T, BLayout Outer, SLayout Inner, int Fractal, uint64_t Pad, CompactMode Compact>
using OpenTile = Tile<Loc, T, DYNAMIC, DYNAMIC, Outer, DYNAMIC, DYNAMIC, Inner, Fractal,
                      static_cast<PadValue>(Pad), Compact>;
template <class T, Layout L>
using OpenView = GlobalTensor<T, pto::Shape<>, pto::Stride<>, L>;

/// A FIFO with a direction, slots and a flag that are known only at run time.
struct OpenPipe : detail::PipeTag {
  struct {
    void* GM_SLOT_BUFFER;
    uint32_t C2V_CONSUMER_BUF, V2C_CONSUMER_BUF;
  } fifo{};
  detail::PipeProducer prod;
  detail::PipeConsumer cons;
  uint32_t slot_size = 0, slot_num = 0, local_num = 0;
  int flag = 0;
  bool is_c2v = false, is_both = false, no_split = false;

  uint32_t local_slots() const { return local_num; }
  int outgoing(bool cube) const {
    if (!is_both) return is_c2v ? 0 : 1;
    const detail::CoreKind kind = detail::core().kind;
    return kind == detail::CoreKind::Cube ? 0 : kind == detail::CoreKind::Vector ? 1 : cube ? 0 : 1;
  }
  int incoming(bool cube) const {
    if (!is_both) return is_c2v ? 0 : 1;
    const detail::CoreKind kind = detail::core().kind;
    return kind == detail::CoreKind::Vector ? 0 : kind == detail::CoreKind::Cube ? 1 : cube ? 1 : 0;
  }
  /// Return one side of the FIFO. Both sides share a state with two rings, each with its slots and their
  /// memory; as in TPipe, the memory has twice the size of the slots.
  detail::Fifo side(int direction, void* global = nullptr) const {
    const size_t ring = 64 + sizeof(detail::FifoRing) / 64 * 64,
                 slots = (slot_num * sizeof(detail::FifoSlot) + 63) / 64 * 64;
    const size_t each = ring + slots + size_t{slot_num} * 2 * slot_size;
    const size_t size = 64 + 2 * each;
    static thread_local struct {
      size_t each, head;
    } making;
    making = {each, ring + slots};  // the memory of slots is not cleared: it is written before it is read
    const int key = flag % (detail::Cluster::kShared / 2) * 2 + !is_c2v;
    char* state = reinterpret_cast<char*>(&detail::shared_state(
        key, flag, static_cast<uint32_t>(size),
        [](void* memory) -> detail::PipeState* {
          char* first = static_cast<char*>(std::memset(memory, 0, 64 + making.head)) + 64;
          std::memset(first + making.each, 0, making.head);
          return static_cast<detail::PipeState*>(memory);
        },
        slot_num));
    char* mine = state + 64 + static_cast<size_t>(direction) * each;
    char* outside = static_cast<char*>(global);
    if (outside != nullptr && is_both && direction == 1) outside += size_t{slot_num} * slot_size;
    return {*reinterpret_cast<detail::FifoRing*>(mine),
            reinterpret_cast<detail::FifoSlot*>(mine + ring),
            mine + ring + slots,
            outside,
            slot_num,
            slot_size,
            direction,
            flag,
            no_split,
            false,
            state,
            nullptr};
  }
  detail::Fifo side_with_slots(int direction) const { return side(direction, fifo.GM_SLOT_BUFFER); }
};

/// A function of the library. `at`: offsets of the arguments in the frame.
using Function = void (*)(char* frame, const uint32_t* at);

/// A function of a pack, with the key of its name (`key` of src/pto/image/calls.py).
struct Entry {
  uint64_t key;
  Function function;
};

/// A part of a pack, sorted by key.
struct Table {
  const Entry* entries;
  size_t count;
};

inline Function find(const Table* tables, size_t parts, uint64_t key) {
  for (const Table* table = tables; table < tables + parts; ++table) {
    const Entry* low = table->entries;
    for (size_t n = table->count; n > 0;) {
      const size_t half = n / 2;
      if (low[half].key < key) {
        low += half + 1;
        n -= half + 1;
      } else {
        n = half;
      }
    }
    if (low < table->entries + table->count && low->key == key) return low->function;
  }
  return nullptr;
}

template <class T>
PTO_INLINE T& at(char* frame, uint32_t offset) {
  return *reinterpret_cast<T*>(frame + offset);
}

}  // namespace pto::vm
