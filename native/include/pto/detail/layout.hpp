// Tile storage: matrix of element codes <-> bytes of a tile, for every tile layout.
//
// An element's offset is a sum of a row part and a column part (src/pto/isa/tile.py has the formulas). Both
// are tabulated once per call; runs of consecutive offsets are then copied as blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

namespace pto::detail {

struct TileForm {
  std::string_view layout;
  std::int64_t rows, cols, box_rows, box_cols, pitch;
  int bits;  // 4, 8, 16, 32 or 64
};

struct TileOffsets {
  std::vector<std::int64_t> row, col;

  // Elements from the start of the tile to its last element, inclusive.
  std::int64_t extent() const { return row.empty() || col.empty() ? 0 : largest(row) + largest(col) + 1; }

 private:
  static std::int64_t largest(const std::vector<std::int64_t>& v) {
    return *std::max_element(v.begin(), v.end());
  }
};

inline bool known_layout(std::string_view name) {
  return name == "ND" || name == "DN" || name == "NZ" || name == "ZN" || name == "ZZ" || name == "NN";
}

// Offsets of the first `valid_rows` x `valid_cols` elements.
inline TileOffsets tile_offsets(const TileForm& t, std::int64_t valid_rows, std::int64_t valid_cols) {
  const bool boxed = t.layout != "ND" && t.layout != "DN";
  const bool outer_columns = t.layout[0] == 'N' && t.layout != "ND";  // column blocks follow one another
  const bool inner_columns = t.layout[1] == 'N' && boxed;             // columns follow one another in a box
  const std::int64_t ir = t.box_rows, ic = t.box_cols, n = ir * ic;
  TileOffsets out;
  out.row.resize(static_cast<std::size_t>(valid_rows));
  out.col.resize(static_cast<std::size_t>(valid_cols));
  for (std::int64_t r = 0; r < valid_rows; ++r) {
    std::int64_t& o = out.row[static_cast<std::size_t>(r)];
    if (!boxed) {
      o = t.layout == "ND" ? r * t.cols : r;
    } else {
      o = r / ir * (outer_columns ? n : t.cols * ir) + r % ir * (inner_columns ? 1 : ic);
    }
  }
  for (std::int64_t c = 0; c < valid_cols; ++c) {
    std::int64_t& o = out.col[static_cast<std::size_t>(c)];
    if (!boxed) {
      o = t.layout == "ND" ? c : c * t.pitch;
    } else {
      o = c / ic * (outer_columns ? t.pitch * ic : n) + c % ic * (inner_columns ? ir : 1);
    }
  }
  return out;
}

// Length of the run of consecutive offsets that starts at `i`.
inline std::size_t run_length(const std::vector<std::int64_t>& offsets, std::size_t i) {
  std::size_t n = 1;
  while (i + n < offsets.size() && offsets[i + n] == offsets[i] + static_cast<std::int64_t>(n)) ++n;
  return n;
}

// Copy whole elements of `Size` bytes; `Pack` says that the matrix is the source. Storage may be unaligned.
template <std::size_t Size, bool Pack>
void copy_tile(const TileOffsets& at, std::conditional_t<Pack, const char, char>* matrix,
               std::conditional_t<Pack, char, const char>* storage) {
  const auto move = [](auto* m, auto* s, std::size_t bytes) {
    if constexpr (Pack) {
      std::memcpy(s, m, bytes);
    } else {
      std::memcpy(m, s, bytes);
    }
  };
  // A band of rows at a time, so that both sides stay in the cache when columns are the inner order.
  constexpr std::size_t band = 16;
  const std::size_t rows = at.row.size(), cols = at.col.size();
  for (std::size_t first = 0; first < rows; first += band) {
    const std::size_t last = first + band < rows ? first + band : rows;
    for (std::size_t c = 0, n; c < cols; c += n) {
      n = run_length(at.col, c);
      auto* m = matrix + (first * cols + c) * Size;
      auto* s = storage + at.col[c] * static_cast<std::int64_t>(Size);
      for (std::size_t r = first; r < last; ++r, m += cols * Size) {
        auto* to = s + at.row[r] * static_cast<std::int64_t>(Size);
        if (n == 1) {
          move(m, to, Size);  // a constant size: one instruction
        } else {
          move(m, to, n * Size);
        }
      }
    }
  }
}

// 4-bit elements: one per byte in the matrix, two per byte in storage, low nibble first.
inline void pack_nibbles(const TileOffsets& at, const std::uint8_t* matrix, std::uint8_t* storage) {
  for (const std::int64_t row : at.row) {
    for (const std::int64_t col : at.col) {
      const std::int64_t o = row + col;
      const int shift = o % 2 ? 4 : 0;
      std::uint8_t& byte = storage[o / 2];
      byte = static_cast<std::uint8_t>((byte & (0xF0 >> shift)) | (*matrix++ & 0xF) << shift);
    }
  }
}

inline void unpack_nibbles(const TileOffsets& at, std::uint8_t* matrix, const std::uint8_t* storage) {
  for (const std::int64_t row : at.row) {
    for (const std::int64_t col : at.col) {
      const std::int64_t o = row + col;
      *matrix++ = static_cast<std::uint8_t>(storage[o / 2] >> (o % 2 ? 4 : 0) & 0xF);
    }
  }
}

inline void pack_tile(const TileOffsets& at, int bits, const void* matrix, void* storage) {
  const char* m = static_cast<const char*>(matrix);
  char* s = static_cast<char*>(storage);
  switch (bits) {
    case 4:
      return pack_nibbles(at, static_cast<const std::uint8_t*>(matrix), static_cast<std::uint8_t*>(storage));
    case 8: return copy_tile<1, true>(at, m, s);
    case 16: return copy_tile<2, true>(at, m, s);
    case 32: return copy_tile<4, true>(at, m, s);
    case 64: return copy_tile<8, true>(at, m, s);
  }
}

inline void unpack_tile(const TileOffsets& at, int bits, void* matrix, const void* storage) {
  char* m = static_cast<char*>(matrix);
  const char* s = static_cast<const char*>(storage);
  switch (bits) {
    case 4:
      return unpack_nibbles(at, static_cast<std::uint8_t*>(matrix),
                            static_cast<const std::uint8_t*>(storage));
    case 8: return copy_tile<1, false>(at, m, s);
    case 16: return copy_tile<2, false>(at, m, s);
    case 32: return copy_tile<4, false>(at, m, s);
    case 64: return copy_tile<8, false>(at, m, s);
  }
}

}  // namespace pto::detail
