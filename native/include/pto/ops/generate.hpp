// Tiles without sources: counters, triangular masks, random words; and histograms of the bytes of a tile.
#pragma once

#include "pto/ops/legality.hpp"

namespace pto::detail {

/// Write start, start + 1, .. (or start - 1, ..) to row 0 of dst; integers wrap, floats count in f32.
template <bool Down, class Dst>
inline void count_from(Dst& dst, typename Dst::DType start) {
  using T = typename Dst::DType;
  using C = compute_t<T>;
  using Number = std::conditional_t<is_float_v<T>, C, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;
  const Lines<Dst> out(dst);
  const auto first = static_cast<Number>(value_of<C>(start));
  const auto cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  for (ptrdiff_t c = 0; c < cols; c += kChunk) {
    const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
    Buffer<C> buffer;
    C* to = buffer.at;
    loop(n, [=](ptrdiff_t j) {
      const auto step = static_cast<Number>(c + j);
      to[j] = static_cast<C>(static_cast<Number>(Down ? first - step : first + step));
    });
    out.template write<C>(0, c, n, to);
  }
}

// --- random words ------------------------------------------------------------------------------------------

/// The counters of one generator step, and the columns that it fills with four words per counter.
inline constexpr int kLanes = 64, kRandomColumns = 4 * kLanes;

/// Compute Philox-4x32 of the counters (high, low) + 0 .. 63. Word k of lane j goes to out[k * 64 + j] on the
/// cpu profile, to out[j * 4 + k] on hardware.
template <int Rounds>
[[gnu::noinline]] inline void philox(uint64_t low, uint64_t high, uint32_t key0, uint32_t key1,
                                     uint32_t* out) {
  uint32_t word[4][kLanes];
  for (int j = 0; j < kLanes; ++j) {
    const uint64_t l = low + static_cast<uint64_t>(j), h = high + (l < low);
    word[0][j] = static_cast<uint32_t>(l);
    word[1][j] = static_cast<uint32_t>(l >> 32);
    word[2][j] = static_cast<uint32_t>(h);
    word[3][j] = static_cast<uint32_t>(h >> 32);
  }
  for (int round = 0; round < Rounds; ++round) {
    PTO_INDEPENDENT
    for (int j = 0; j < kLanes; ++j) {
      const uint64_t a = uint64_t{word[0][j]} * 0xD2511F53, b = uint64_t{word[2][j]} * 0xCD9E8D57;
      word[0][j] = static_cast<uint32_t>(b >> 32) ^ word[1][j] ^ key0;
      word[1][j] = static_cast<uint32_t>(b);
      word[2][j] = static_cast<uint32_t>(a >> 32) ^ word[3][j] ^ key1;
      word[3][j] = static_cast<uint32_t>(a);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  PTO_IF_TARGET(kIsa == Isa::cpu) { std::memcpy(out, word, sizeof word); }
  else {
    for (int j = 0; j < kLanes; ++j)
      for (int k = 0; k < 4; ++k) out[j * 4 + k] = word[k][j];
  }
}

// --- histogram ---------------------------------------------------------------------------------------------

/// Write the cumulative histogram of byte `Byte` of each row. An element counts if its higher bytes are those
/// that earlier passes chose: idx[r, 0] for 16-bit elements, idx[0, 0], idx[1, 0], .. for wider ones.
template <int Byte, class Dst, class Src, class Idx>
inline void histogram(Dst& dst, const Src& src, const Idx& idx) {
  using Code = code_t<typename Src::DType>;
  constexpr int top = static_cast<int>(sizeof(Code)) - 1;
  const Lines<Src> in(src);
  const Lines<Dst> out(dst);
  const Lines<Idx> chosen(idx);
  const auto rows = static_cast<ptrdiff_t>(src.GetValidRow()),
             cols = static_cast<ptrdiff_t>(src.GetValidCol());
  for (ptrdiff_t r = 0; r < rows; ++r) {
    uint32_t counts[256] = {};
    [[maybe_unused]] uint64_t high = 0;
    if constexpr (Byte < top) {
      for (int k = 0; k < top - Byte; ++k)
        high = high << 8 | static_cast<uint8_t>(top == 1 ? chosen.get(r, 0) : chosen.get(k, 0));
    }
    for (ptrdiff_t c = 0; c < cols; ++c) {
      const auto code = __builtin_bit_cast(Code, in.get(r, c));
      if constexpr (Byte < top) {
        if (uint64_t{code} >> (8 * Byte + 8) != high) continue;
      }
      ++counts[code >> (8 * Byte) & 0xFF];
    }
    typename Dst::DType sums[256];
    uint32_t sum = 0;
    for (int b = 0; b < 256; ++b) sums[b] = static_cast<typename Dst::DType>(sum += counts[b]);
    out.write(r, 0, 256, sums);
  }
}

}  // namespace pto::detail

namespace pto {

template <class Dst, class T, int descending, class... Events>
PTO_INST RecordEvent TCI(Dst& dst, T start, Events&... events) {
  static_assert(std::is_same_v<T, typename Dst::DType>,
                "[PTO][PTO-E0301] TCI: the type of the first number is not the element type of dst");
  PTO_LEGAL(check_tci<Dst>());
  TSYNC(events...);
  PTO_TRACE("tci dst S: descending", PTO_SAYS(descending), dst, start);
  detail::count_from<descending != 0>(dst, start);
  return {};
}
/// Count with a scratch tile, which the A2/A3 vector unit needs.
template <class Dst, class Tmp, class T, int descending, class... Events>
PTO_INST RecordEvent TCI(Dst& dst, T start, [[maybe_unused]] Tmp& tmp, Events&... events) {
  PTO_TRACE_WAITS(events...);
  PTO_TRACE("tci dst S tmp: descending", PTO_SAYS(descending), dst, start, tmp);
  return TCI<Dst, T, descending>(dst, start, events...);
}

namespace detail {

/// Write ones on a diagonal and on one side of it, zeros on the other; upperOrLower: 1 upper, 0 lower.
template <int upperOrLower, class Dst>
inline void triangle(Dst& dst, int64_t diagonal) {
  using C = compute_t<typename Dst::DType>;
  const Lines<Dst> out(dst);
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  for (ptrdiff_t r = 0; r < rows; ++r) {
    const auto edge = static_cast<ptrdiff_t>(r + diagonal);
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<C> buffer;
      for (ptrdiff_t j = 0; j < n; ++j)
        buffer.at[j] = static_cast<C>(upperOrLower ? c + j >= edge : c + j <= edge);
      out.template write<C>(r, c, n, buffer.at);
    }
  }
}

}  // namespace detail

/// Write Philox-4x32 words, 256 columns from 64 counters. Then the counter advances: on the cpu profile by
/// Cols / 4, on hardware by 64, or at the end of a row by (cols - 1) % 64 + 1.
template <uint16_t Rounds = 10, class Dst, class... Events>
PTO_INST RecordEvent TRANDOM(Dst& dst, const TRandomKey& key, const TRandomCounter& counter,
                             Events&... events) {
  static_assert(Rounds == 7 || Rounds == 10, "[PTO][PTO-E0501] TRANDOM: the rounds are 7 or 10");
  PTO_LEGAL(check_trandom<Dst>());
  TSYNC(events...);
  PTO_TRACE("trandom dst key0 key1 counter0 counter1 counter2 counter3: rounds", PTO_SAYS(Rounds), dst,
            key[0], key[1], counter[0], counter[1], counter[2], counter[3]);
  const detail::Lines<Dst> out(dst);
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  uint64_t low = uint64_t{counter[1]} << 32 | counter[0], high = uint64_t{counter[3]} << 32 | counter[2];
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += detail::kRandomColumns) {
      uint32_t words[detail::kRandomColumns];
      detail::philox<Rounds>(low, high, key[0], key[1], words);
      typename Dst::DType elements[detail::kRandomColumns];
      std::memcpy(elements, words, sizeof words);
      out.write(r, c, cols - c < detail::kRandomColumns ? cols - c : detail::kRandomColumns, elements);
      const uint64_t before = low;
      const bool last = c + detail::kRandomColumns >= cols;
      low += detail::kIsa == detail::Isa::cpu ? dst.Cols / 4
             : last                           ? (cols - 1) % detail::kLanes + 1
                                              : detail::kLanes;
      high += low < before;
    }
  }
  return {};
}

/// `Byte`: the number of a byte, or a bool: true for the highest byte, false for the lowest.
template <auto Byte, class Dst, class Src, class Idx, class... Events>
PTO_INST RecordEvent THISTOGRAM(Dst& dst, Src& src, Idx& idx, Events&... events) {
  constexpr int top = Src::bits / 8 - 1;
  constexpr bool named = !std::is_same_v<decltype(Byte), bool>;
  constexpr int byte = named ? static_cast<int>(Byte) : static_cast<int>(Byte) * top;
  if constexpr (named) {
    PTO_LEGAL(check_thistogram_with_hist_byte<Dst, Src, Idx, Byte>(dst));
  } else {
    PTO_LEGAL(check_thistogram<Dst, Src, Idx>(dst));
  }
  TSYNC(events...);
  PTO_TRACE(named ? "thistogram dst src idx: hist_byte" : "thistogram dst src idx: isMSB", PTO_SAYS(Byte),
            dst, src, idx);
  detail::histogram<byte>(dst, src, idx);
  return {};
}

}  // namespace pto
