// Entry points for tests/native/test_headers_core.py: storage of tiles, lines of tiles, element conversions.
// tiles.inc holds a line TILE(number, element, rows, cols, blayout, slayout, fractal, compact) per tile type.
#include <cstring>

#include "pto/core/access.hpp"

using namespace pto;
using namespace pto::detail;

namespace {

template <class Act>
void with_tile(int number, int valid_rows, void* storage, Act act) {
  switch (number) {
#define TILE(k, element, rows, cols, blayout, slayout, fractal, compact)                            \
  case k: {                                                                                         \
    Tile<TileType::Mat, element, rows, cols, BLayout::blayout, -1, cols, SLayout::slayout, fractal, \
         PadValue::Null, CompactMode::compact>                                                      \
        tile(valid_rows);                                                                           \
    bind(tile, storage);                                                                            \
    return act(tile);                                                                               \
  }
#include "tiles.inc"
#undef TILE
  }
}

template <class TileT, Along A>
void read_lines(TileT& tile, int lines, int length, double* out) {
  using C = compute_t<typename TileT::DType>;
  const Lines<TileT, A> in(tile);
  C buffer[kChunk];
  for (int line = 0; line < lines; ++line) {
    for (int i = 0; i < length; i += 7) {  // an odd step, so that chunks begin inside boxes
      const int n = length - i < 7 ? length - i : 7;
      const C* found = in.template read<C>(line, i, n, buffer);
      for (int k = 0; k < n; ++k) *out++ = static_cast<double>(found[k]);
    }
  }
}

template <class TileT, Along A>
void write_lines(TileT& tile, int lines, int length, const double* from) {
  using C = compute_t<typename TileT::DType>;
  const Lines<TileT, A> out(tile);
  C buffer[kChunk];
  for (int line = 0; line < lines; ++line) {
    for (int i = 0; i < length; i += 37) {
      const int n = length - i < 37 ? length - i : 37;
      C* to = out.template spot<C>(line, i, buffer);
      for (int k = 0; k < n; ++k) to[k] = static_cast<C>(*from++);
      out.template write<C>(line, i, n, to);
    }
  }
}

template <class Act>
void with_element(int dtype, Act act) {
  switch (static_cast<DType>(dtype)) {
    case DType::f16: return act(half());
    case DType::bf16: return act(bfloat16_t());
    case DType::f8e4m3: return act(float8_e4m3_t());
    case DType::f8e5m2: return act(float8_e5m2_t());
    case DType::f8e8m0: return act(float8_e8m0_t());
    case DType::hif8: return act(hifloat8_t());
    case DType::f4e2m1: return act(float4_e2m1x2_t());
    case DType::f4e1m2: return act(float4_e1m2x2_t());
    default: return;
  }
}

}  // namespace

extern "C" {

void offsets(int tile, int valid_rows, int64_t* out) {
  with_tile(tile, valid_rows, nullptr, [&](auto& t) {
    using T = std::remove_reference_t<decltype(t)>;
    for (int r = 0; r < valid_rows; ++r) {
      for (int c = 0; c < T::Cols; ++c) *out++ = t.offset(r, c);
    }
  });
}

void read_tile(int tile, int valid_rows, int by_column, void* storage, double* out) {
  with_tile(tile, valid_rows, storage, [&](auto& t) {
    using T = std::remove_reference_t<decltype(t)>;
    if (by_column) {
      read_lines<T, Along::col>(t, T::Cols, valid_rows, out);
    } else {
      read_lines<T, Along::row>(t, valid_rows, T::Cols, out);
    }
  });
}

void write_tile(int tile, int valid_rows, int by_column, void* storage, const double* from) {
  with_tile(tile, valid_rows, storage, [&](auto& t) {
    using T = std::remove_reference_t<decltype(t)>;
    if (by_column) {
      write_lines<T, Along::col>(t, T::Cols, valid_rows, from);
    } else {
      write_lines<T, Along::row>(t, valid_rows, T::Cols, from);
    }
  });
}

// By the loops over lines, and one by one.
void decode_all(int dtype, const void* codes, float* out, float* one_by_one, int64_t n) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    const T* from = static_cast<const T*>(codes);
    widen(from, out, n);
    for (int64_t i = 0; i < n; ++i) one_by_one[i] = static_cast<float>(from[i]);
  });
}
void encode_all(int dtype, const float* values, void* out, void* one_by_one, int64_t n) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    narrow(values, static_cast<T*>(out), n);
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(one_by_one)[i] = T(values[i]);
  });
}
void encode_doubles(int dtype, const double* values, void* out, int64_t n) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = T(values[i]);
  });
}
}
