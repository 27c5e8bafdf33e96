// Unaligned streams: loads and stores at any element, with the state of an alignment register.
#pragma once

#include "pto/micro/lanes.hpp"

namespace pto::detail::micro {

inline constexpr int kBlock = 32;

inline char* block_of(char* at) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(at) / kBlock * kBlock);
}

inline void begin_loads(vector_align& state, const volatile void* source, int size) {
  char* at = bytes_at("vldas", source, 0, size, size);
  state.position = block_of(at);
  std::memcpy(state.bytes, state.position, kBlock);
  state.pending = kBlock;
  state.kind = vector_align::kLoad;
}
template <class V>
inline void next_load(V& r, vector_align& state, const volatile void* source) {
  char* at = bytes_at("vldus", source, 0, kRegisterBytes, sizeof(typename V::Element));
  char* block = block_of(at);
  if (state.kind != vector_align::kLoad) fail("[PTO-E2102] vldus: expects a state that vldas gave");
  if (state.position != block)
    fail(
        "[PTO-E2102] vldus: expects a source in the block that the state was primed for; prime a new state "
        "with vldas");
  const auto head = static_cast<size_t>(at - block);
  char found[kRegisterBytes];
  std::memcpy(found, at, sizeof found);
  if (head != 0 && state.pending != 0) std::memcpy(found, state.bytes + head, kBlock - head);
  std::memcpy(static_cast<void*>(&r), found, sizeof found);
  state.position = block + kRegisterBytes;
  state.pending = head != 0 ? kBlock : 0;
  if (head != 0) std::memcpy(state.bytes, state.position, kBlock);
}

/// Append bytes to a store stream: full blocks are written, the rest stays pending.
inline void append(const char* name, vector_align& state, const volatile void* base, int64_t offset,
                   const void* bytes, int64_t size, int align) {
  char* at = bytes_at(name, base, offset, size, align);
  if (state.kind == vector_align::kLoad) failf("[PTO-E2102] %s: expects the state of a store stream", name);
  if (state.pending != 0 && state.position != at)
    failf("[PTO-E2102] %s: expects the stream to go on where %d bytes are pending", name, state.pending);
  unsigned char waiting[kBlock + kRegisterBytes];
  const int64_t pending = state.pending;
  std::memcpy(waiting, state.bytes, static_cast<size_t>(pending));
  std::memcpy(waiting + pending, bytes, static_cast<size_t>(size));
  char *start = at - pending, *end = at + size;
  const int64_t whole = block_of(end) > start ? block_of(end) - start : 0;
  if (whole > 0) std::memcpy(start, waiting, static_cast<size_t>(whole));
  state.pending = static_cast<int32_t>(pending + size - whole);
  std::memcpy(state.bytes, waiting + whole, static_cast<size_t>(state.pending));
  state.position = end;
  state.kind = vector_align::kStore;
}
inline void flush(const char* name, const vector_align& state, const volatile void* dest, int64_t offset) {
  if (state.kind == vector_align::kLoad) failf("[PTO-E2102] %s: expects the state of a store stream", name);
  if (state.pending == 0) return;
  char* at = bytes_at(name, dest, offset, 0, 1);
  if (at != state.position)
    failf("[PTO-E2102] %s: expects a flush at the end of its stream, where %d bytes are pending", name,
          state.pending);
  std::memcpy(at - state.pending, state.bytes, static_cast<size_t>(state.pending));
}
inline void check_count(int64_t count, int lanes) {
  if (count < 0 || count > lanes)
    failf("[PTO-E2102] vstus: expects count in 0..%d, got %lld", lanes, static_cast<long long>(count));
}

}  // namespace pto::detail::micro

#define PTO_STREAMS_(V, T)                                                                           \
  PTO_INST void vldas(vector_align& state, __ubuf__ T* base) {                                       \
    pto::detail::micro::begin_loads(state, base, sizeof(T));                                         \
  }                                                                                                  \
  template <int = 0>                                                                                 \
  PTO_INST void vldus(V& r, vector_align& state, __ubuf__ T* base) {                                 \
    pto::detail::micro::next_load(r, state, base);                                                   \
  }                                                                                                  \
  template <class P>                                                                                 \
  PTO_INST void vldus(V& r, vector_align& state, __ubuf__ T*& base, uint32_t increment, P) {         \
    pto::detail::micro::next_load(r, state, base);                                                   \
    base += increment;                                                                               \
  }                                                                                                  \
  template <int = 0>                                                                                 \
  PTO_INST void vstus(vector_align& state, uint32_t count, const V& value, __ubuf__ T* base) {       \
    pto::detail::micro::check_count(static_cast<int32_t>(count), V::kLanes);                         \
    pto::detail::micro::append("vstus", state, base, 0, &value, int64_t{count} * int64_t{sizeof(T)}, \
                               sizeof(T));                                                           \
  }                                                                                                  \
  template <class P>                                                                                 \
  PTO_INST void vstus(vector_align& state, uint32_t count, const V& value, __ubuf__ T*& base, P) {   \
    __ubuf__ T* at = base;                                                                           \
    vstus(state, count, value, at);                                                                  \
    if (P::value == ::Post::POST_UPDATE) base += count;                                              \
  }                                                                                                  \
  PTO_INST void vstas(const vector_align& state, __ubuf__ T* dest, int32_t offset) {                 \
    pto::detail::micro::flush("vstas", state, dest, int64_t{offset} * int64_t{sizeof(T)});           \
  }                                                                                                  \
  template <class P>                                                                                 \
  PTO_INST void vstas(const vector_align& state, __ubuf__ T*& dest, int32_t offset, P) {             \
    pto::detail::micro::flush("vstas", state, dest, 0);                                              \
    dest += offset;                                                                                  \
  }                                                                                                  \
  PTO_INST void vstar(const vector_align& state, __ubuf__ T* dest) {                                 \
    pto::detail::micro::flush("vstar", state, dest, pto::detail::core().squeeze.ar);                 \
  }                                                                                                  \
  template <class P>                                                                                 \
  PTO_INST void vstur(vector_align& state, const V& value, __ubuf__ T* base, P) {                    \
    auto& registers = pto::detail::core().squeeze;                                                   \
    pto::detail::micro::append("vstur", state, base, registers.ar, &value, registers.sqzn, 1);       \
    if (P::value == ::Post::POST_UPDATE) registers.ar += registers.sqzn;                             \
  }
PTO_ALL_REGISTERS(PTO_STREAMS_)
#undef PTO_STREAMS_

template <class S>
PTO_INST void sprclr(S) {
  pto::detail::core().squeeze.ar = 0;
}
PTO_INST int64_t get_ar() { return pto::detail::core().squeeze.ar; }
template <class S>
PTO_INST void sprsts(S, __ubuf__ uint32_t* dest, int32_t offset) {
  const auto ar = static_cast<uint32_t>(pto::detail::core().squeeze.ar);
  std::memcpy(pto::detail::micro::bytes_at("sprsts", dest, offset, 4, 4), &ar, 4);
}
