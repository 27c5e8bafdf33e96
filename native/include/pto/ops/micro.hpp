// Calls below the level of tiles, besides burst copies: buffer tokens, vector scopes, and printf.
#pragma once

#include <cstring>

#include "pto/ops/bursts.hpp"

// --- order within a core: program order --------------------------------------------------------------------

PTO_INST void get_buf([[maybe_unused]] pipe_t pipe, [[maybe_unused]] uint64_t id,
                      [[maybe_unused]] uint64_t mode = 0) {
  PTO_TRACE("get_buf buf_id_dyn: pipe mode", PTO_SAYS(pipe, mode), id);
}
PTO_INST void rls_buf([[maybe_unused]] pipe_t pipe, [[maybe_unused]] uint64_t id,
                      [[maybe_unused]] uint64_t mode = 0) {
  PTO_TRACE("rls_buf buf_id_dyn: pipe mode", PTO_SAYS(pipe, mode), id);
}
#ifdef PTO_TRACED
namespace pto::detail {
[[gnu::noinline]] inline void memory_barrier(const char* form) { PTO_TRACE(form, PTO_SAYS()); }
}  // namespace pto::detail
#define mem_bar(kind) ::pto::detail::memory_barrier("mem_bar: barrier_type=" #kind)
#else
#define mem_bar(...) ((void)0)
#endif
#define __VEC_SCOPE__ PTO_VECTOR_SCOPE

// --- other values of the core ------------------------------------------------------------------------------

/// The index of this block, for code that uses it as a variable.
inline constexpr struct BlockIndex {
  operator int64_t() const { return get_block_idx(); }
} block_idx{};
/// The number of blocks, for code that uses it as a variable.
inline constexpr struct BlockCount {
  operator int64_t() const { return get_block_num(); }
} block_num{};

/// Return a monotonic clock, in ticks of 20 ns.
inline int64_t get_sys_cnt() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 50'000'000 + now.tv_nsec / 20;
}

/// Prefetch code; a no-op here.
inline void preload(const void* /*from*/, int64_t /*size*/ = 0) {}
/// Return nonzero while a prefetch of code is in progress: never here.
inline int64_t get_icache_prl_st() { return 0; }

/// Read a value of global memory past the caches, `offset` bytes after a pointer. The caller may be waiting
/// for another core, so other cores run first.
template <class T>
inline T ld_dev(__gm__ T* from, int64_t offset) {
  bool went = false;
  const auto once = [&went] {
    const bool before = went;
    went = true;
    return before;
  };
  pto::detail::wait_until(once, "a turn");
  pto::detail::stay_inside("ld_dev", from, offset, offset + static_cast<int64_t>(sizeof(T)));
  T found;
  __atomic_load(reinterpret_cast<T*>(reinterpret_cast<char*>(from) + offset), &found, __ATOMIC_SEQ_CST);
  return found;
}
template <class T>
inline void st_dev(T value, __gm__ T* to, int64_t offset) {
  pto::detail::stay_inside("st_dev", to, offset, offset + static_cast<int64_t>(sizeof(T)));
  __atomic_store(reinterpret_cast<T*>(reinterpret_cast<char*>(to) + offset), &value, __ATOMIC_SEQ_CST);
}

// --- printf ------------------------------------------------------------------------------------------------

namespace pto::detail {

/// A number to print: a float, or an integer of some bits.
struct Printed {
  bool is_float;
  int bits;
  double number;
  long long whole;
};

template <class T>
inline Printed printed(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return {false, 64, 0, static_cast<long long>(reinterpret_cast<uintptr_t>(value))};
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return {false, static_cast<int>(sizeof(T) * 8), 0, static_cast<long long>(value)};
  } else {
    return {true, 64, static_cast<double>(static_cast<float>(value)), 0};
  }
}
inline Printed printed(double value) { return {true, 64, value, 0}; }

/// Print one number by a conversion: `flags` is the text between % and the length, `kind` the last letter. If
/// the conversion is for the other kind of number, a float prints as %f and an integer as a float.
inline int print_one(char* out, size_t size, const char* flags, int flags_size, int short_bits, char kind,
                     const Printed& value) {
  char format[48];
  const bool for_float = std::strchr("eEfFgG", kind) != nullptr;
  if (value.is_float || for_float || kind == 'a' || kind == 'A') {
    const char* dot = static_cast<const char*>(std::memchr(flags, '.', static_cast<size_t>(flags_size)));
    const bool own = value.is_float && !for_float;
    if (own && dot != nullptr) flags_size = static_cast<int>(dot - flags);
    std::snprintf(format, sizeof format, "%%%.*s%c", flags_size, flags, for_float ? kind : 'f');
    return std::snprintf(out, size, format, value.is_float ? value.number : static_cast<double>(value.whole));
  }
  long long whole = value.whole;
  if (kind == 'c') {
    std::snprintf(format, sizeof format, "%%%.*sc", flags_size, flags);
    return std::snprintf(out, size, format, static_cast<int>(whole & 0xFF));
  }
  if (kind == 's' || kind == 'p') kind = 'd';
  const bool is_signed = kind == 'd' || kind == 'i';
  const int bits = short_bits != 0 ? short_bits : is_signed ? 64 : value.bits < 32 ? 32 : value.bits;
  if (bits < 64) {
    const unsigned long long mask = (1ULL << bits) - 1;
    whole = static_cast<long long>(static_cast<unsigned long long>(whole) & mask);
    if (is_signed && (whole >> (bits - 1) & 1) != 0) whole -= static_cast<long long>(mask) + 1;
  }
  std::snprintf(format, sizeof format, "%%%.*sll%c", flags_size, flags, kind);
  return std::snprintf(out, size, format, whole);
}

/// Print a text with numbers in it; conversions without a number are printed as text.
[[gnu::noinline]] inline int print_numbers(const char* format, const Printed* values, int count) {
  char text[1024];
  size_t at = 0;
  int taken = 0;
  const auto put = [&](char c) {
    if (at + 1 < sizeof text) text[at++] = c;
  };
  while (*format != 0) {
    if (*format == '\\' && (format[1] == 'n' || format[1] == 't')) {
      put(format[1] == 'n' ? '\n' : '\t');
      format += 2;
      continue;
    }
    if (*format != '%') {
      put(*format++);
      continue;
    }
    if (format[1] == '%') {
      put('%');
      format += 2;
      continue;
    }
    const char* flags = format + 1;
    const char* end = flags + std::strspn(flags, "-+ #0123456789.");
    const char* kind = end + std::strspn(end, "hlLjzt");
    if (taken == count || *kind == 0 || std::strchr("diouxXeEfFgGaAcsp", *kind) == nullptr ||
        end - flags > 24) {
      put(*format++);
      continue;
    }
    const int short_bits = end[0] == 'h' ? (end[1] == 'h' ? 8 : 16) : 0;
    const int made = print_one(text + at, sizeof text - at, flags, static_cast<int>(end - flags), short_bits,
                               *kind, values[taken++]);
    at += made > 0 ? static_cast<size_t>(made) : 0;
    if (at >= sizeof text) at = sizeof text - 1;
    format = kind + 1;
  }
  text[at] = 0;
  return print("%s", text);
}

}  // namespace pto::detail

namespace cce {

template <class... Values>
inline int printf(const char* format, Values... values) {
  const pto::detail::Printed all[sizeof...(Values) + 1] = {pto::detail::printed(values)...};
  return pto::detail::print_numbers(format, all, sizeof...(Values));
}

}  // namespace cce
