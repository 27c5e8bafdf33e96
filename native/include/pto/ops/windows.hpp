// Windows of tiles: TEXTRACT fills a tile from a window of another, TINSERT the reverse. Out of an
// accumulator both may convert, rectify and quantise, with one word or with one per column.
#pragma once

#include "pto/ops/moves.hpp"

namespace pto {

// --- TEXTRACT<dst, src [, fp] [, mode] [, relu]>(dst, src [, word | fp], row, col) ------------------------

template <class Dst, class Src, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TEXTRACT(Dst& dst, Src& src, uint16_t row = 0, uint16_t col = 0, Events&... events) {
  PTO_LEGAL(check_textract<Dst, Src, Relu>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("textract dst src indexRow indexCol: reluPreMode", PTO_SAYS(Relu), dst, src, row, col);
  if constexpr (is_conv_tile_v<Src>) {
    detail::copy_fractal_window(dst, src, row, col);
  } else {
    detail::extract<Relu, detail::Split::first>(dst, src, row, col, detail::NoWords{});
  }
  return {};
}
template <class Dst, class Src, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TEXTRACT(Dst& dst, Src& src, uint16_t row, uint16_t col, Events&... events) {
  PTO_LEGAL(check_textract_with_accToVecMode<Dst, Src, Relu>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("textract dst src indexRow indexCol: accToVecMode reluPreMode", PTO_SAYS(Mode, Relu), dst, src,
            row, col);
  detail::extract<Relu, detail::split_of(Mode)>(dst, src, row, col, detail::NoWords{});
  return {};
}
template <class Dst, class Src, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TEXTRACT(Dst& dst, Src& src, uint64_t word, uint16_t row, uint16_t col,
                              Events&... events) {
  PTO_LEGAL(check_textract_with_preQuantScalar<Dst, Src, Relu>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("textract dst src preQuantScalar indexRow indexCol: reluPreMode", PTO_SAYS(Relu), dst, src, word,
            row, col);
  detail::extract<Relu, detail::Split::first>(dst, src, row, col, detail::OneWord{word});
  return {};
}
template <class Dst, class Src, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TEXTRACT(Dst& dst, Src& src, uint64_t word, uint16_t row, uint16_t col,
                              Events&... events) {
  PTO_LEGAL(check_textract_with_preQuantScalar_accToVecMode<Dst, Src, Relu>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("textract dst src preQuantScalar indexRow indexCol: accToVecMode reluPreMode",
            PTO_SAYS(Mode, Relu), dst, src, word, row, col);
  detail::extract<Relu, detail::split_of(Mode)>(dst, src, row, col, detail::OneWord{word});
  return {};
}
template <class Dst, class Src, class Fp, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu,
          class... Events>
  requires(is_tile_data_v<Fp> && all_events_v<Events...>)
PTO_INST RecordEvent TEXTRACT(Dst& dst, Src& src, Fp& fp, uint16_t row, uint16_t col, Events&... events) {
  PTO_LEGAL(check_textract_fp_with_accToVecMode<Dst, Src, Fp, Mode>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("textract_fp dst src fp indexRow indexCol: accToVecMode reluPreMode", PTO_SAYS(Mode, Relu), dst,
            src, fp, row, col);
  detail::extract<Relu, detail::split_of(Mode)>(dst, src, row, col, detail::ColumnWords<Fp>{fp});
  return {};
}
template <class Dst, class Src, class Fp, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
PTO_INST RecordEvent TEXTRACT_FP(Dst& dst, Src& src, Fp& fp, uint16_t row, uint16_t col, Events&... events) {
  PTO_LEGAL(check_textract_fp<Dst, Src, Fp>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("textract_fp dst src fp indexRow indexCol: reluPreMode", PTO_SAYS(Relu), dst, src, fp, row, col);
  detail::extract<Relu, detail::Split::first>(dst, src, row, col, detail::ColumnWords<Fp>{fp});
  return {};
}
/// Two windows of one tile.
template <class Dst0, class Dst1, class Src, class... Events>
  requires(is_tile_data_v<Dst1> && is_tile_data_v<Src> && all_events_v<Events...>)
PTO_INST RecordEvent TEXTRACT(Dst0& dst0, Dst1& dst1, Src& src, uint16_t row0 = 0, uint16_t col0 = 0,
                              uint16_t row1 = 0, uint16_t col1 = 0, Events&... events) {
  PTO_LEGAL(
      check_textract_with_dst1_indexRow1_indexCol1<Dst0, Dst1, Src>(dst0, dst1, src, row0, col0, row1, col1));
  TSYNC(events...);
  PTO_TRACE("textract dst dst1 src indexRow indexCol indexRow1 indexCol1:", PTO_SAYS(), dst0, dst1, src, row0,
            col0, row1, col1);
  detail::extract<ReluPreMode::NoRelu, detail::Split::first>(dst0, src, row0, col0, detail::NoWords{});
  detail::extract<ReluPreMode::NoRelu, detail::Split::first>(dst1, src, row1, col1, detail::NoWords{});
  return {};
}

// --- TINSERT<dst, src [, fp] [, mode] [, relu]>(dst, src [, word | fp], row, col) -------------------------

template <class Dst, class Src, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TINSERT(Dst& dst, Src& src, uint16_t row = 0, uint16_t col = 0, Events&... events) {
  PTO_LEGAL(check_tinsert<Dst, Src, Relu>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("tinsert dst src indexRow indexCol: reluPreMode", PTO_SAYS(Relu), dst, src, row, col);
  detail::insert<Relu, detail::Split::first>(dst, src, row, col, detail::NoWords{});
  return {};
}
template <class Dst, class Src, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TINSERT(Dst& dst, Src& src, uint16_t row, uint16_t col, Events&... events) {
  PTO_LEGAL(check_tinsert_with_accToVecMode<Dst, Src, Relu>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("tinsert dst src indexRow indexCol: accToVecMode reluPreMode", PTO_SAYS(Mode, Relu), dst, src,
            row, col);
  detail::insert<Relu, detail::split_of(Mode)>(dst, src, row, col, detail::NoWords{});
  return {};
}
template <class Dst, class Src, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TINSERT(Dst& dst, Src& src, uint64_t word, uint16_t row, uint16_t col,
                             Events&... events) {
  PTO_LEGAL(check_tinsert_with_preQuantScalar<Dst, Src, Relu>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("tinsert dst src preQuantScalar indexRow indexCol: reluPreMode", PTO_SAYS(Relu), dst, src, word,
            row, col);
  detail::insert<Relu, detail::Split::first>(dst, src, row, col, detail::OneWord{word});
  return {};
}
template <class Dst, class Src, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TINSERT(Dst& dst, Src& src, uint64_t word, uint16_t row, uint16_t col,
                             Events&... events) {
  PTO_LEGAL(check_tinsert_with_preQuantScalar_accToVecMode<Dst, Src, Relu>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("tinsert dst src preQuantScalar indexRow indexCol: accToVecMode reluPreMode",
            PTO_SAYS(Mode, Relu), dst, src, word, row, col);
  detail::insert<Relu, detail::split_of(Mode)>(dst, src, row, col, detail::OneWord{word});
  return {};
}
template <class Dst, class Src, class Fp, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu,
          class... Events>
  requires(is_tile_data_v<Fp> && all_events_v<Events...>)
PTO_INST RecordEvent TINSERT(Dst& dst, Src& src, Fp& fp, uint16_t row, uint16_t col, Events&... events) {
  PTO_LEGAL(check_tinsert_fp_with_accToVecMode<Dst, Src, Fp, Mode>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("tinsert_fp dst src fp indexRow indexCol: accToVecMode reluPreMode", PTO_SAYS(Mode, Relu), dst,
            src, fp, row, col);
  detail::insert<Relu, detail::split_of(Mode)>(dst, src, row, col, detail::ColumnWords<Fp>{fp});
  return {};
}
template <class Dst, class Src, class Fp, ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
PTO_INST RecordEvent TINSERT_FP(Dst& dst, Src& src, Fp& fp, uint16_t row, uint16_t col, Events&... events) {
  PTO_LEGAL(check_tinsert_fp<Dst, Src, Fp>(dst, src, row, col));
  TSYNC(events...);
  PTO_TRACE("tinsert_fp dst src fp indexRow indexCol: reluPreMode", PTO_SAYS(Relu), dst, src, fp, row, col);
  detail::insert<Relu, detail::Split::first>(dst, src, row, col, detail::ColumnWords<Fp>{fp});
  return {};
}
/// The split of the transfer by the hardware has no effect on the data.
template <detail::InsertMode Mode, class Dst, class Src, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TINSERT(Dst& dst, Src& src, uint16_t row = 0, uint16_t col = 0, Events&... events) {
  return TINSERT<Dst, Src>(dst, src, row, col, events...);
}

}  // namespace pto
