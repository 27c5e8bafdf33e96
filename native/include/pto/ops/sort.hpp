// Sorting by value, descending, with an index beside every value.
//
// A record has 8 bytes: the value, two zero bytes if the value has 16 bits, and the index as u32. Zeros of
// either sign are equal. The order of NaN is unspecified; here it comes last.
#pragma once

#include "pto/ops/legality.hpp"

namespace pto {

/// The number of records that a merge has taken from each list.
struct MrgSortExecutedNumList {
  uint16_t mrgSortList0, mrgSortList1, mrgSortList2, mrgSortList3;
};

}  // namespace pto

namespace pto::detail {

/// Return a number that rises as values fall.
template <class T>
inline uint32_t rank_of(T element) {
  int32_t ordered;
  if constexpr (is_float_v<T>) {
    float value = value_of<float>(element);
    value = value != value ? -__builtin_inff() : value + 0.0f;
    const auto bits = __builtin_bit_cast(int32_t, value);
    ordered = bits ^ (bits >> 31 & 0x7FFFFFFF);
  } else {
    ordered = static_cast<int32_t>(element);
  }
  return static_cast<uint32_t>(ordered ^ 0x7FFFFFFF);
}

/// The number of elements in a record.
template <class T>
inline constexpr ptrdiff_t kRecord = 8 / static_cast<ptrdiff_t>(sizeof(T));

/// Sort every block of 32 columns; equal values are ordered by index.
template <class Dst, class Src, class Idx>
inline void sort_blocks(Dst& dst, const Src& src, const Idx& idx) {
  using T = typename Src::DType;
  constexpr ptrdiff_t block = 32, each = kRecord<T>;
  struct Entry {
    uint64_t key;  // rank, then index
    T value;
  };
  const Lines<Src> in(src);
  const Lines<Idx> indices(idx);
  const Lines<Dst> out(dst);
  const auto rows = static_cast<ptrdiff_t>(src.GetValidRow()),
             cols = static_cast<ptrdiff_t>(src.GetValidCol());
  const bool one_row = idx.GetValidRow() == 1;  // of indices, for all rows
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += block) {
      const ptrdiff_t n = cols - c < block ? cols - c : block;
      Entry entries[block];
      for (ptrdiff_t j = 0; j < n; ++j) {
        const T value = in.get(r, c + j);
        const auto index = static_cast<uint32_t>(indices.get(one_row ? 0 : r, c + j));
        const uint64_t key = uint64_t{rank_of(value)} << 32 | index;
        ptrdiff_t k = j;
        for (; k > 0 && entries[k - 1].key > key; --k) entries[k] = entries[k - 1];
        entries[k] = {key, value};
      }
      T records[block * each] = {};
      for (ptrdiff_t j = 0; j < n; ++j) {
        const auto index = static_cast<uint32_t>(entries[j].key);
        records[j * each] = entries[j].value;
        std::memcpy(&records[j * each + each / 2], &index, sizeof index);
      }
      ptrdiff_t filled = n;
      PTO_IF_TARGET(kIsa != Isa::cpu) {  // hardware fills the last block with NaN, which comes last
        constexpr code_t<T> lowest = sizeof(T) == 4 ? 0xFFC00000 : 0xFE00;
        for (; filled < block; ++filled) records[filled * each] = __builtin_bit_cast(T, lowest);
      }
      const ptrdiff_t room = dst.Cols - c * each, size = filled * each;  // records beyond dst are dropped
      if (room > 0) out.write(r, c * each, size < room ? size : room, records);
    }
  }
}

/// A list of records in row 0 of a tile.
template <class TileT>
struct RecordList {
  using T = typename TileT::DType;
  Lines<TileT> in;
  ptrdiff_t first, count, taken = 0;
  uint32_t head = 0;

  RecordList(const TileT& tile, ptrdiff_t start, ptrdiff_t records) : in(tile), first(start), count(records) {
    look();
  }
  bool empty() const { return taken == count; }
  void look() {
    if (!empty()) head = rank_of(in.get(0, first + taken * kRecord<T>));
  }
  void move_to(T* record) {
    for (ptrdiff_t e = 0; e < kRecord<T>; ++e) record[e] = in.get(0, first + taken * kRecord<T> + e);
    ++taken;
    look();
  }
};

/// Merge lists into `count` records of row 0 of dst from column `first` on. The largest head goes first; of
/// equal heads, that of the earlier list. With `until_empty`, stop when a list becomes empty.
template <class Dst, class... List>
inline void merge_lists(Dst& dst, ptrdiff_t first, ptrdiff_t count, bool until_empty, List&... lists) {
  using T = typename Dst::DType;
  const Lines<Dst> out(dst);
  bool go_on = true;
  for (ptrdiff_t n = 0; n < count && go_on; ++n) {
    int best = -1, k = 0;
    uint32_t rank = 0;
    const auto compare = [&](const auto& list) {
      if (!list.empty() && (best < 0 || list.head < rank)) best = k, rank = list.head;
      ++k;
    };
    (compare(lists), ...);
    if (best < 0) return;
    T record[kRecord<T>];
    k = 0;
    const auto take = [&](auto& list) {
      if (k++ == best) {
        list.move_to(record);
        if (until_empty && list.empty()) go_on = false;
      }
    };
    (take(lists), ...);
    out.write(0, first + n * kRecord<T>, kRecord<T>, record);
  }
}

/// Merge the blocks of `length` elements of one list four by four.
template <class Dst, class Src>
inline void merge(Dst& dst, const Src& src, int64_t length) {
  constexpr ptrdiff_t each = kRecord<typename Src::DType>;
  if (length <= 0 || length % each != 0 || dst.GetValidRow() == 0) return;
  const ptrdiff_t group = 4 * length, records = length / each;
  for (ptrdiff_t g = 0; g + group <= static_cast<ptrdiff_t>(dst.GetValidCol()); g += group) {
    RecordList<Src> a(src, g, records), b(src, g + length, records), c(src, g + 2 * length, records),
        d(src, g + 3 * length, records);
    merge_lists(dst, g, 4 * records, false, a, b, c, d);
  }
}

template <class TileT>
inline RecordList<TileT> whole_list(const TileT& tile) {
  const auto records = static_cast<ptrdiff_t>(tile.GetValidCol()) / kRecord<typename TileT::DType>;
  return {tile, 0, tile.GetValidRow() == 0 ? 0 : records};
}

template <bool Exhausted, class Dst, class... Src>
inline void merge_tiles(Dst& dst, MrgSortExecutedNumList& taken, const Src&... src) {
  const ptrdiff_t room =
      dst.GetValidRow() == 0 ? 0 : static_cast<ptrdiff_t>(dst.GetValidCol()) / kRecord<typename Dst::DType>;
  uint16_t counts[4] = {};
  [&](auto... lists) {
    merge_lists(dst, 0, room, Exhausted, lists...);
    int k = 0;
    ((counts[k++] = static_cast<uint16_t>(lists.taken)), ...);
  }(whole_list(src)...);
  taken = {counts[0], counts[1], counts[2], counts[3]};
}

}  // namespace pto::detail

namespace pto {

// Merge two to four lists; `exhausted`: stop when one of them is empty.
template <class Dst, class Tmp, class Src0, class Src1, bool exhausted, class... Events>
PTO_INST RecordEvent TMRGSORT(Dst& dst, MrgSortExecutedNumList& executedNumList, [[maybe_unused]] Tmp& tmp,
                              Src0& src0, Src1& src1, Events&... events) {
  PTO_LEGAL(check_tmrgsort_with_excuted_src1<Dst, Src0, Src1>());
  TSYNC(events...);
  PTO_TRACE("tmrgsort dst tmp src src1: exhausted", PTO_SAYS(exhausted), dst, tmp, src0, src1);
  detail::merge_tiles<exhausted>(dst, executedNumList, src0, src1);
  return {};
}
template <class Dst, class Tmp, class Src0, class Src1, class Src2, bool exhausted, class... Events>
PTO_INST RecordEvent TMRGSORT(Dst& dst, MrgSortExecutedNumList& executedNumList, [[maybe_unused]] Tmp& tmp,
                              Src0& src0, Src1& src1, Src2& src2, Events&... events) {
  PTO_LEGAL(check_tmrgsort_with_excuted_src1_src2<Dst, Src0, Src1, Src2>());
  TSYNC(events...);
  PTO_TRACE("tmrgsort dst tmp src src1 src2: exhausted", PTO_SAYS(exhausted), dst, tmp, src0, src1, src2);
  detail::merge_tiles<exhausted>(dst, executedNumList, src0, src1, src2);
  return {};
}
template <class Dst, class Tmp, class Src0, class Src1, class Src2, class Src3, bool exhausted,
          class... Events>
PTO_INST RecordEvent TMRGSORT(Dst& dst, MrgSortExecutedNumList& executedNumList, [[maybe_unused]] Tmp& tmp,
                              Src0& src0, Src1& src1, Src2& src2, Src3& src3, Events&... events) {
  PTO_LEGAL(check_tmrgsort_with_excuted_src1_src2_src3<Dst, Src0, Src1, Src2, Src3>());
  TSYNC(events...);
  PTO_TRACE("tmrgsort dst tmp src src1 src2 src3: exhausted", PTO_SAYS(exhausted), dst, tmp, src0, src1, src2,
            src3);
  detail::merge_tiles<exhausted>(dst, executedNumList, src0, src1, src2, src3);
  return {};
}

}  // namespace pto
