// Bounds of global memory: if a launch lists its arrays, an access outside them is an error.
//
// An instruction declares each access to global memory in advance: `touch(name, data, low, high, use)` names
// the bytes data + low to data + high (excluded). The call is a no-op if the launch has neither arrays
// (plain threads, other hosts) nor an observer of uses (`Host::used`). The origin of an address is not
// checked: an address in another array is accepted. If there may be memory besides those arrays (a task of
// the runtime whose kernel is C++), only an access that starts inside an array and leaves it is an error.
#pragma once

#include "pto/core/dtypes.hpp"
#include "pto/core/launch_abi.hpp"
#include "pto/core/machine.hpp"

namespace pto::detail {

/// A distance larger than any array; multiples of it still fit into 64 bits.
inline constexpr int64_t kFar = int64_t{1} << 50;

/// Return the distance from the first to the last of `count` positions, clamped to -kFar..kFar.
inline int64_t reach(int64_t count, int64_t step) {
  int64_t far = 0;
  if (__builtin_mul_overflow(count - 1, step, &far)) far = step < 0 ? -kFar : kFar;
  return far < -kFar ? -kFar : far > kFar ? kFar : far;
}

/// Return the use of an atomic store of elements of a type; `Atomic` begins with none, add, max, min.
template <class Atomic>
constexpr Use use_of(Atomic op, DType type) {
  const int kind = static_cast<int>(op) + 1;
  return static_cast<Use>(kind == static_cast<int>(Use::write) ? kind
                                                               : kind | (static_cast<int>(type) + 1) << 8);
}
/// Return the element type of an atomic use.
constexpr DType combined_type(Use use) { return static_cast<DType>((static_cast<int>(use) >> 8) - 1); }

/// Return true if uses of global memory are observed; `is_watched`: if they are observed or checked.
inline bool is_noted(const Core* me) { return me->host != nullptr && me->host->used != nullptr; }
inline bool is_watched(const Core* me) { return me != nullptr && (me->arrays != nullptr || is_noted(me)); }

PTO_COMMON void touch(const char* name, const volatile void* data, int64_t low, int64_t high, Use use);
/// The two steps of `touch`, for accesses with gaps: check the whole range, then `note` each run of accessed
/// bytes if `is_noted`.
PTO_COMMON void stay_inside(const char* name, const volatile void* data, int64_t low, int64_t high);
PTO_COMMON void note(const volatile void* data, int64_t low, int64_t high, Use use);
/// Call after the last `note` and before the accesses; an instruction notes its writes last.
inline void settle() {
  if (current->host->settled != nullptr) current->host->settled(*current);
}

/// A range of bytes, `high` excluded. `bytes_of` returns the bytes of elements low to high, both included.
struct Bytes {
  int64_t low, high;
};
inline Bytes bytes_of(int bits, int64_t low, int64_t high) {
  const auto near = [](int64_t at) { return at < -8 * kFar ? -8 * kFar : at > 8 * kFar ? 8 * kFar : at; };
  return {(near(low) * bits) >> 3, (near(high) * bits + bits + 7) >> 3};
}
inline void touch_elements(const char* name, const volatile void* data, int bits, int64_t low, int64_t high,
                           Use use) {
  const Bytes bytes = bytes_of(bits, low, high);
  touch(name, data, bytes.low, bytes.high, use);
}

/// `touch` for a box of five dimensions that begins `first` elements after `data`.
PTO_COMMON void touch_box(const char* name, const volatile void* data, int bits, int64_t first,
                          const int64_t* sizes, const int64_t* steps, Use use);

/// Note a read of the same box again while the core waits for other cores to change it: the host may have to
/// fetch its bytes.
PTO_COMMON void look_again(Core& me, const volatile void* data, int bits, const int64_t* sizes,
                           const int64_t* steps);

/// Declare an access of a program through a pointer, and return the element.
template <Use use, class T, class Index>
inline T& element(T* data, Index index) {
  const auto at = static_cast<int64_t>(index);
  touch_elements("scalar access", data, 8 * static_cast<int>(sizeof(T)), at, at, use);
  return data[at];
}

/// Force the computation of a quotient here, so that a division by zero is reported at its source location.
template <class T>
inline void now(const T& value) {
  if constexpr (std::is_integral_v<T>) asm volatile("" : : "r"(value));
}

/// Check that the step of a loop is positive; a loop with another step never ends.
inline void check_step(int64_t by) {
  if (by <= 0) failf("[PTO-E2102] a loop step of %lld, which must be positive", static_cast<long long>(by));
}

/// Report a value that the C++ intrinsic cannot express; the value was unknown when the C++ was emitted.
inline void check_spelled(bool spelled, const char* name, const char* what) {
  if (!spelled) failf("[PTO-E1301] %s: no C++ spelling %s", name, what);
}

/// Return the name of the array that holds an address; empty if no array does.
PTO_COMMON const char* name_of(const volatile void* data);
/// Return the offset of an address in its array; 0 if no array holds the address.
PTO_COMMON int64_t byte_of(const volatile void* data);

/// Check that the tensor of the root belongs to this rank: only the root calls a collective.
PTO_COMMON void check_root(const volatile void* data, int member);

/// Set the current source location; see `mark` in launch.h.
PTO_COMMON void mark(int32_t at);

#ifdef PTO_BODY
inline bool holds(const pto_array& array, uint64_t first, uint64_t bytes) {
  const uint64_t at = first - reinterpret_cast<uint64_t>(array.data);
  return at <= array.bytes && bytes <= array.bytes - at;
}

inline const pto_array* array_at(const volatile void* data) {
  const Core* me = current;
  for (int i = 0; me != nullptr && me->arrays != nullptr && i < me->array_count; ++i)
    if (holds(me->arrays[i], reinterpret_cast<uint64_t>(data), 1)) return &me->arrays[i];
  return nullptr;
}

[[gnu::cold]] PTO_BODY const char* name_of(const volatile void* data) {
  const pto_array* found = array_at(data);
  return found != nullptr ? found->name : "";
}

[[gnu::cold]] PTO_BODY int64_t byte_of(const volatile void* data) {
  const pto_array* found = array_at(data);
  return found == nullptr ? 0
                          : static_cast<int64_t>(reinterpret_cast<uint64_t>(data) -
                                                 reinterpret_cast<uint64_t>(found->data));
}

PTO_BODY void check_root(const volatile void* data, int member) {
  const Core* me = current;
  if (me == nullptr || me->grid == nullptr || me->grid->ranks == 0) return;
  const pto_array* found = array_at(data);
  const int32_t home = found == nullptr ? 0 : found->owner < 0 ? -found->owner : found->owner;
  if (home != 0 && static_cast<uint32_t>(home) != me->grid->rank + 1)
    failf(
        "[PTO-E2102] rank %u calls it, but the root, member %d, is a tensor of rank %d: the root alone "
        "calls a collective",
        me->grid->rank, member, home - 1);
}

[[gnu::cold]] PTO_BODY void outside(const char* name, uint64_t data, int64_t low, int64_t high) {
  Core& me = *current;
  me.touched[0] = data + static_cast<uint64_t>(low);
  me.touched[1] = data + static_cast<uint64_t>(high);
  // Find the array that holds the base address of the access, or else one that ends at that address.
  const pto_array* found = nullptr;
  for (int i = 0; i < me.array_count; ++i) {
    const pto_array& array = me.arrays[i];
    if (holds(array, data, 1) || (found == nullptr && holds(array, data, 0))) found = &array;
  }
  if (!me.only_arrays && (found == nullptr || !holds(*found, data, 1))) return;  // memory outside the arrays
  if (found == nullptr)
    failf("[PTO-E2101] %s: touches %lld bytes at %#llx, which no array of the launch holds", name,
          static_cast<long long>(high - low), static_cast<unsigned long long>(me.touched[0]));
  const auto start = static_cast<int64_t>(data - reinterpret_cast<uint64_t>(found->data));
  failf("[PTO-E2101] %s: touches bytes %lld..%lld of %s, which has %llu bytes", name,
        static_cast<long long>(start + low), static_cast<long long>(start + high), found->name,
        static_cast<unsigned long long>(found->bytes));
}

PTO_BODY void stay_inside(const char* name, const volatile void* data, int64_t low, int64_t high) {
  const Core* me = current;
  if (me == nullptr || me->arrays == nullptr || high <= low) return;
  const auto address = reinterpret_cast<uint64_t>(data);
  const pto_array* array = me->arrays;
  for (int left = me->array_count; left > 0; --left, ++array) {
    if (holds(*array, address + static_cast<uint64_t>(low), static_cast<uint64_t>(high - low))) return;
  }
  outside(name, address, low, high);
}

PTO_BODY void note(const volatile void* data, int64_t low, int64_t high, Use use) {
  Core* me = current;
  if (high <= low) return;
  const auto address = reinterpret_cast<uint64_t>(data);
  me->host->used(*me, {address + static_cast<uint64_t>(low), address + static_cast<uint64_t>(high), use});
}

PTO_BODY void touch(const char* name, const volatile void* data, int64_t low, int64_t high, Use use) {
  if (!is_watched(current)) return;
  stay_inside(name, data, low, high);
  if (!is_noted(current)) return;
  note(data, low, high, use);
  settle();
}

/// Note the runs of the last dimension of a box, or its elements if they are not contiguous.
inline void note_box(Core& me, const volatile void* data, int bits, int64_t first, const int64_t* sizes,
                     const int64_t* steps, Use use) {
  const int64_t run = steps[4] == 1 ? sizes[4] : 1, runs = steps[4] == 1 ? 1 : sizes[4];
  for (int64_t i = 0; i < sizes[0] * sizes[1] * sizes[2] * sizes[3] * runs; ++i) {
    int64_t at = first, left = i;
    at += left % runs * steps[4];
    left /= runs;
    for (int d = 3; d >= 0; --d) {
      at += left % sizes[d] * steps[d];
      left /= sizes[d];
    }
    const Bytes bytes = bytes_of(bits, at, at + run - 1);
    const auto address = reinterpret_cast<uint64_t>(data);
    me.host->used(
        me, {address + static_cast<uint64_t>(bytes.low), address + static_cast<uint64_t>(bytes.high), use});
  }
  if (me.host->settled != nullptr) me.host->settled(me);
}

PTO_BODY void look_again(Core& me, const volatile void* data, int bits, const int64_t* sizes,
                         const int64_t* steps) {
  note_box(me, data, bits, 0, sizes, steps, Use::read);
}

PTO_BODY void touch_box(const char* name, const volatile void* data, int bits, int64_t first,
                        const int64_t* sizes, const int64_t* steps, Use use) {
  int64_t low = first, high = first;
  for (int d = 0; d < 5; ++d) {
    if (sizes[d] <= 0) return;
    const int64_t far = reach(sizes[d], steps[d]);
    (far < 0 ? low : high) += far;
  }
  if (!is_watched(current)) return;
  const Bytes all = bytes_of(bits, low, high);
  stay_inside(name, data, all.low, all.high);
  if (!is_noted(current)) return;
  note_box(*current, data, bits, first, sizes, steps, use);
}

PTO_BODY void mark(int32_t at) {
  if (current != nullptr) current->mark = at;
}
#endif

}  // namespace pto::detail
