// Calls from buffer to buffer: a transpose, sorts of 32 scores, and the merge of sorted lists.
#pragma once

#include "pto/micro/lanes.hpp"

namespace pto::detail::micro {

/// The bytes of a record: the score, then the index.
inline constexpr int kRecord = 8;

/// Scores are sorted in descending order: NaN last, -0 equal to +0.
template <class T>
inline float score_at(const char* at) {
  T found;
  std::memcpy(&found, at, sizeof found);
  return static_cast<float>(found);
}
inline bool comes_before(float a, float b) { return b != b ? a == a : a > b; }

template <class T>
inline void sort_records(char* to, const char* scores, const char* indices) {
  int order[32];
  for (int i = 0; i < 32; ++i) {
    const float mine = score_at<T>(scores + i * sizeof(T));
    int at = i;
    for (; at > 0 && comes_before(mine, score_at<T>(scores + order[at - 1] * sizeof(T))); --at)
      order[at] = order[at - 1];
    order[at] = i;
  }
  char made[32 * kRecord] = {};
  for (int i = 0; i < 32; ++i) {
    std::memcpy(made + i * kRecord, scores + order[i] * sizeof(T), sizeof(T));
    std::memcpy(made + i * kRecord + 4, indices + order[i] * 4, 4);
  }
  std::memcpy(to, made, sizeof made);
}
template <class T>
inline void merge_lists(const volatile void* dest, const volatile void* const* sources, uint64_t count,
                        uint64_t config) {
  const int repeat = static_cast<int>(config & 0xFF), valid = static_cast<int>(config >> 8 & 0xF);
  const bool stops = config >> 12 & 1;
  const int lists = valid == 3 ? 2 : valid == 7 ? 3 : 4;
  if (repeat < 1) fail("[PTO-E2102] vmrgsort4: expects config to repeat the merge at least once");
  if (valid != 3 && valid != 7 && valid != 15)
    fail("[PTO-E2102] vmrgsort4: expects config to name two, three or four lists");
  int64_t length[4] = {}, total = 0;
  for (int k = 0; k < lists; ++k) total += length[k] = static_cast<int64_t>(count >> (16 * k) & 0xFFFF);
  if (repeat > 1 && (lists != 4 || stops))
    fail("[PTO-E2102] vmrgsort4: expects repeated merges to use four lists and no early stop");
  char* made = static_cast<char*>(std::malloc(static_cast<size_t>(total * repeat * kRecord + 1)));
  if (made == nullptr) fail("[PTO-E2102] vmrgsort4: no memory for the merged lists");
  int64_t at = 0, taken[4] = {};
  for (int round = 0; round < repeat; ++round) {
    const char* list[4] = {};
    for (int k = 0; k < lists; ++k) {
      taken[k] = 0;
      list[k] = bytes_at("vmrgsort4", sources[k], round * total * kRecord, length[k] * kRecord, sizeof(T));
    }
    for (;;) {
      int best = -1;
      for (int k = 0; k < lists; ++k)
        if (taken[k] < length[k] &&
            (best < 0 || comes_before(score_at<T>(list[k] + taken[k] * kRecord),
                                      score_at<T>(list[best] + taken[best] * kRecord))))
          best = k;
      if (best < 0) break;
      std::memcpy(made + at++ * kRecord, list[best] + taken[best]++ * kRecord, kRecord);
      if (stops && taken[best] == length[best]) break;
    }
  }
  if (at > 0)
    std::memcpy(bytes_at("vmrgsort4", dest, 0, at * kRecord, sizeof(T)), made,
                static_cast<size_t>(at * kRecord));
  std::free(made);
  if (stops) {
    core().squeeze.merged = 0;
    for (int k = 0; k < 4; ++k) core().squeeze.merged |= static_cast<uint64_t>(taken[k]) << (16 * k);
  }
}
template <class T>
inline void sort_groups(const volatile void* dest, const volatile void* src, const volatile void* indices,
                        int groups) {
  if (groups < 1) fail("[PTO-E2102] vbitsort: expects repeat_times to be at least 1");
  for (int g = 0; g < groups; ++g)
    sort_records<T>(
        bytes_at("vbitsort", dest, g * 256, 256, sizeof(T)),
        bytes_at("vbitsort", src, g * 32 * static_cast<int>(sizeof(T)), 32 * sizeof(T), sizeof(T)),
        bytes_at("vbitsort", indices, g * 128, 128, 4));
}

}  // namespace pto::detail::micro

#define PTO_SORTS_(T)                                                                                 \
  PTO_INST void vbitsort(__ubuf__ T* dest, __ubuf__ T* src, __ubuf__ uint32_t* indices,               \
                         uint8_t repeat_times) {                                                      \
    pto::detail::micro::sort_groups<T>(dest, src, indices, repeat_times);                             \
  }                                                                                                   \
  PTO_INST void vbs(__ubuf__ T* dest, __ubuf__ T* src, __ubuf__ uint32_t* indices, uint64_t config) { \
    pto::detail::micro::sort_groups<T>(dest, src, indices, static_cast<int>(config >> 56));           \
  }                                                                                                   \
  PTO_INST void vmrgsort4(__ubuf__ T* dest, __ubuf__ T** src, uint64_t count, uint64_t config) {      \
    const volatile void* sources[4] = {src[0], src[1], src[2], src[3]};                               \
    pto::detail::micro::merge_lists<T>(dest, sources, count, config);                                 \
  }
PTO_SORTS_(half)
PTO_SORTS_(float)
#undef PTO_SORTS_

#define PTO_VTRANSPOSE_(T)                                                                                  \
  PTO_INST void vtranspose(__ubuf__ T* dest, __ubuf__ T* src) {                                             \
    T found[256], made[256];                                                                                \
    std::memcpy(found, pto::detail::micro::bytes_at("vtranspose", src, 0, sizeof found, 32), sizeof found); \
    for (int i = 0; i < 256; ++i) made[i % 16 * 16 + i / 16] = found[i];                                    \
    std::memcpy(pto::detail::micro::bytes_at("vtranspose", dest, 0, sizeof made, 32), made, sizeof made);   \
  }
PTO_VTRANSPOSE_(int16_t)
PTO_VTRANSPOSE_(uint16_t)
#undef PTO_VTRANSPOSE_

PTO_INST int64_t get_vms4_sr() { return static_cast<int64_t>(pto::detail::core().squeeze.merged); }
