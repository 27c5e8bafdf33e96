// TPRINT: print the valid region of a tile, or a view of global memory.
#pragma once

#include "pto/core/events.hpp"
#include "pto/ops/legality.hpp"
#include "pto/ops/place.hpp"

namespace pto::detail {

/// Print one element with a width and a precision; NaN has no sign.
template <class T>
inline void print_element(T element, int width, int precision, const char* before) {
  if constexpr (is_float_v<T>) {
    const auto value = static_cast<double>(value_of<compute_t<T>>(element));
    if (value != value) {
      print("%s%*s", before, width, "nan");
    } else {
      print("%s%*.*f", before, width, precision, value);
    }
  } else if constexpr (sizeof(T) == 1) {
    print("%s%*d", before, width, static_cast<int>(value_of<compute_t<T>>(element)));
  } else if constexpr (std::is_signed_v<T>) {
    print("%s%*lld", before, width, static_cast<long long>(element));
  } else {
    print("%s%*llu", before, width, static_cast<unsigned long long>(element));
  }
}

template <PrintFormat Format, class Get>
inline void print_matrix(ptrdiff_t rows, ptrdiff_t cols, Get get) {
  constexpr int width = Format == PrintFormat::Width10_Precision6 ? 10 : 8;
  constexpr int precision = Format == PrintFormat::Width10_Precision6  ? 6
                            : Format == PrintFormat::Width8_Precision2 ? 2
                                                                       : 4;
  print("TPRINT %tdx%td\n", rows, cols);
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; ++c) print_element(get(r, c), width, precision, c == 0 ? "" : " ");
    print("\n");
  }
}

}  // namespace pto::detail

namespace pto {

template <PrintFormat Format = PrintFormat::Width8_Precision4, class Source>
PTO_INST void TPRINT(Source& src) {
  PTO_TRACE("tprint src: print_format", PTO_SAYS(Format), src);
  PTO_LEGAL(check_tprint<Source>());
  if constexpr (is_tile_data_v<Source>) {
    const detail::Lines<Source> in(src);
    detail::print_matrix<Format>(src.GetValidRow(), src.GetValidCol(),
                                 [&](ptrdiff_t r, ptrdiff_t c) { return in.get(r, c); });
  } else {
    const auto at = detail::place(src);
    detail::touch("TPRINT", at, at.rows.count, at.cols.count, detail::Use::read);
    detail::print_matrix<Format>(at.rows.count, at.cols.count, [&](ptrdiff_t r, ptrdiff_t c) {
      return detail::element_at(at.data, static_cast<size_t>(at.at(r, c)));
    });
  }
}
/// Print with a global tensor through which the hardware reads acc and mat tiles; not used here.
template <PrintFormat Format = PrintFormat::Width8_Precision4, class TileT, class Global>
PTO_INST void TPRINT(TileT& src, Global&) {
  TPRINT<Format>(src);
}

}  // namespace pto
