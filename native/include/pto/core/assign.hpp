// TASSIGN: gives a tile its address in on-chip memory, or a global tensor its pointer.
//
// An address below `room(space)` (the capacity and a margin) is an offset into the space. A larger address is
// a pointer, as from `tile.data()`. For a constant, TASSIGN<addr>(tile), the compiler checks the address. In
// auto mode (__PTO_AUTO__) each tile gets its own memory, and TASSIGN of a tile is a no-op.
#pragma once

#include "pto/core/conv_tile.hpp"
#include "pto/core/global_tensor.hpp"
#include "pto/core/trace.hpp"

namespace pto {

namespace detail {

/// No program has memory below this address: a smaller number is an offset, possibly outside its space.
inline constexpr uint64_t kLowestPointer = 0x10000 * 64;

/// Return the memory at an address given to TASSIGN.
[[gnu::noinline]] inline char* resolve(int space, uint64_t address, [[maybe_unused]] size_t bytes) {
  Core& me = core();
  char* base = me.space[space];
  const uint64_t inside = address - reinterpret_cast<uintptr_t>(base);
  const bool is_offset = address < room(space);
  const uint64_t at = is_offset ? address : inside;
  const bool ends_inside = at < capacity(space) && at + bytes <= capacity(space);
  if (at < room(space)) use_space(me, space, at + bytes);
#ifdef PTO_TRACED  // observers report these errors, with the source location
  constexpr bool kRefuse = false;
#else
  constexpr bool kRefuse = true;
#endif
  if ((kRefuse && is_offset && !ends_inside) || (!is_offset && address < kLowestPointer)) [[unlikely]]
    failf(
        "[PTO][SA-0353] TASSIGN: cannot place a tile of %zu bytes at %zu: %s ends at byte %zu; fix: FIX-A12",
        bytes, static_cast<size_t>(address), kSpaceNames[space], capacity(space));
  if (kRefuse && is_offset && at % kAlign[space] != 0) [[unlikely]]
    failf(
        "[PTO][SA-0354] TASSIGN: cannot place a tile at %zu of %s: not a multiple of %zu bytes; fix: FIX-A12",
        static_cast<size_t>(at), kSpaceNames[space], kAlign[space]);
  PTO_CHECK(capacity(space) > 0, "SA-0351", "TASSIGN: this target has no %s; fix: FIX-A12",
            kSpaceNames[space]);
  PTO_CHECK(bytes <= capacity(space), "SA-0352",
            "TASSIGN: a tile of %zu bytes does not fit the %zu of %s; fix: FIX-A12", bytes, capacity(space),
            kSpaceNames[space]);
  PTO_CHECK(ends_inside, "SA-0353",
            "TASSIGN: cannot place a tile of %zu bytes at %zu: %s ends at byte %zu; fix: FIX-A12", bytes,
            static_cast<size_t>(at), kSpaceNames[space], capacity(space));
  PTO_CHECK(at % kAlign[space] == 0, "SA-0354",
            "TASSIGN: cannot place a tile at %zu of %s: not a multiple of %zu bytes; fix: FIX-A12",
            static_cast<size_t>(at), kSpaceNames[space], kAlign[space]);
  if (is_offset) return base + address;
  char* const found = reinterpret_cast<char*>(static_cast<uintptr_t>(address));
  if (me.host != nullptr && !is_own(me, found))
      [[unlikely]]  // without a launch, a program may have its buffers anywhere
    failf("[PTO-E2101] TASSIGN: a tile of %zu bytes at 0x%zx is outside the memory of the core", bytes,
          static_cast<size_t>(address));
  return found;
}

/// Return the pointer for an on-chip offset; return any other address unchanged.
inline char* pointer_at(TileType loc, uint64_t address) {
  const int space = static_cast<int>(loc);
  if (address >= room(space)) return reinterpret_cast<char*>(static_cast<uintptr_t>(address));
  use_space(core(), space, room(space));  // the size is unknown
  return core().space[space] + address;
}

template <class T>
struct Binder {
  using DType = typename T::DType;
  /// Place a tile or tensor at an address.
  static void bind(T& object, const void* at) { object.data_ = static_cast<DType*>(const_cast<void*>(at)); }
  /// Return the address of a tile or tensor; null if it has none yet.
  static const void* at(const T& object) { return object.data_; }
};

/// Place a tile or tensor at an address: for TASSIGN, views, FIFO slots and so on.
template <class T>
inline void bind(T& tile, const void* at) {
  Binder<T>::bind(tile, at);
}

/// Return the number of bytes from the start of a tile to the end of its valid region.
template <class T>
inline size_t used_bytes(const T& tile) {
  if constexpr (is_conv_tile_v<T>) {
    return tile.GetSizeInBytes();
  } else {
    const ptrdiff_t rows = tile.GetValidRow(), cols = tile.GetValidCol();
    return rows == 0 || cols == 0
               ? 0
               : bytes_of<typename T::DType>(static_cast<size_t>(tile.offset(rows - 1, cols - 1) + 1));
  }
}

template <class T, size_t Address>
struct AssignCheck {
  static constexpr int space = static_cast<int>(T::Loc);
  static constexpr size_t bytes = T::GetSizeInBytes(), capacity = kCapacity[space], align = kAlign[space];
  static_assert(capacity > 0,
                "[PTO][SA-0351] TASSIGN: the memory space of this tile does not exist on the target; "
                "fix: use another TileType or target (FIX-A12)");
  static_assert(
      capacity == 0 || bytes <= capacity,
      "[PTO][SA-0352] TASSIGN: the tile is larger than its memory space; "
      "fix: make it smaller, or give another capacity: pto build --capacity vec=BYTES (mat, left, ..), "
      "that is -DPTO_<SPACE>_SIZE_BYTES=BYTES (FIX-A12)");
  static_assert(capacity == 0 || bytes > capacity || (Address < capacity && Address + bytes <= capacity),
                "[PTO][SA-0353] TASSIGN: the tile ends beyond its memory space; "
                "fix: use a smaller address or a smaller tile (FIX-A12)");
  static_assert(
      Address % align == 0,
      "[PTO][SA-0354] TASSIGN: the address is not aligned; fix: use a multiple of 32 bytes (FIX-A12)");
};

}  // namespace detail

template <class T, class Address>
PTO_INST void TASSIGN(T& object, Address address) {
  if constexpr (is_tile_data_v<T> || is_conv_tile_v<T>) {
    static_assert(
        std::is_integral_v<Address> || std::is_enum_v<Address>,
        "[PTO][SA-0218] TASSIGN: a tile takes an integer address; fix: cast the pointer to uint64_t");
#ifndef __PTO_AUTO__
    if constexpr (!std::is_pointer_v<Address>)
      detail::bind(object, detail::resolve(static_cast<int>(T::Loc), static_cast<uint64_t>(address),
                                           detail::used_bytes(object)));
    // An address that is no offset comes from another tile: this tile is a part of that tile.
    PTO_TRACE(static_cast<uint64_t>(address) < detail::room(static_cast<int>(T::Loc))
                  ? "alloc_tile result:"
                  : "alloc_tile.within result:",
              PTO_SAYS(), object);
#else
    (void)object, (void)address;
#endif
  } else {
    static_assert(is_global_data_v<T>, "[PTO][SA-0089] TASSIGN: neither a tile nor a global tensor");
    static_assert(std::is_pointer_v<Address>,
                  "[PTO][SA-0053] TASSIGN: a global tensor takes a pointer to its elements");
    static_assert(!std::is_pointer_v<Address> ||
                      std::is_same_v<std::remove_cv_t<std::remove_pointer_t<Address>>, typename T::DType>,
                  "[PTO][SA-0054] TASSIGN: the pointer is not to the element type of the tensor");
    detail::bind(object, address);
  }
}

/// TASSIGN with a constant address, which the compiler checks.
template <size_t Address, class T>
  requires(is_tile_data_v<T> || is_conv_tile_v<T>)
PTO_INST void TASSIGN(T& object) {
  (void)detail::AssignCheck<std::remove_cv_t<T>, Address>{};
  TASSIGN(object, Address);
}

}  // namespace pto
