// Atomic numbers and pointers. <atomic> takes longer to compile than all headers of pto.
#pragma once

#include <cstdint>

namespace pto::detail {

/// Memory orders; the functions below use kStrict by default.
enum Order : int {
  kRelaxed = __ATOMIC_RELAXED,
  kAcquire = __ATOMIC_ACQUIRE,
  kRelease = __ATOMIC_RELEASE,
  kBoth = __ATOMIC_ACQ_REL,
  kStrict = __ATOMIC_SEQ_CST,
};

/// Atomic access to any naturally aligned object.
template <class T>
inline T atomic_load(const T& at, Order order = kStrict) {
  return __atomic_load_n(&at, order);
}
template <class T>
inline void atomic_store(T& at, T value, Order order = kStrict) {
  __atomic_store_n(&at, value, order);
}
template <class T>
inline T atomic_add(T& at, T value, Order order = kStrict) {
  return __atomic_fetch_add(&at, value, order);
}
/// If `at` holds `expected`, store `wanted` and return true; otherwise store the value in `expected` and
/// return false. The order is relaxed.
template <class T>
inline bool atomic_replace(T& at, T& expected, T wanted) {
  return __atomic_compare_exchange_n(&at, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/// A variable with atomic access only.
template <class T>
class Atomic {
 public:
  constexpr Atomic() = default;
  constexpr explicit Atomic(T value) : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(Order order = kStrict) const { return __atomic_load_n(&value_, order); }
  void store(T value, Order order = kStrict) { __atomic_store_n(&value_, value, order); }
  T exchange(T value, Order order = kStrict) { return __atomic_exchange_n(&value_, value, order); }
  T fetch_add(T value, Order order = kStrict) { return __atomic_fetch_add(&value_, value, order); }
  T fetch_sub(T value, Order order = kStrict) { return __atomic_fetch_sub(&value_, value, order); }
  /// If the value is `expected`, store `wanted` and return true; otherwise store the value in `expected`.
  bool compare_exchange_strong(T& expected, T wanted) {
    return __atomic_compare_exchange_n(&value_, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }

 private:
  T value_{};
};

}  // namespace pto::detail
