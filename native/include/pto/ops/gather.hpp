// Gather and scatter: between tiles by index, by mask pattern, by comparison and by 32-byte block; between
// global memory and tiles by index.
#pragma once

#include "pto/ops/copy.hpp"
#include "pto/ops/legality.hpp"

namespace pto::detail {

/// Return the bits of an element as another type of the same size.
template <class To, class From>
constexpr To same_bits(From element) {
  static_assert(bits_of<To> == bits_of<From>);
  return __builtin_bit_cast(To, element);
}

/// Return the storage offset of element number `index`, counted row by row over the whole tile.
template <class TileT>
inline ptrdiff_t flat_offset(const Lines<TileT>& lines, ptrdiff_t index) {
  if constexpr (TileT::form == Form::ND) {
    return index;
  } else {
    return lines.at(index / lines.cols(), index % lines.cols());
  }
}

// --- tile to tile ------------------------------------------------------------------------------------------

/// Set dst[r, c] to element number indices[r, c] of the whole src tile, counted row by row; 0 beyond it.
template <class Dst, class Src, class Idx>
inline void gather(Dst& dst, const Src& src, const Idx& indices) {
  using T = typename Dst::DType;
  const Lines<Dst> out(dst);
  const Lines<Src> in(src);
  const Lines<Idx> where(indices);
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<typename Idx::DType> numbers;
      Buffer<T> buffer;
      const typename Idx::DType* index = where.template read<typename Idx::DType>(r, c, n, numbers.at);
      T* to = out.template spot<T>(r, c, buffer.at);
      for (ptrdiff_t j = 0; j < n; ++j) {
        const auto at = static_cast<int64_t>(index[j]);
        const bool inside = at >= 0 && at < src.Numel;
        to[j] = inside ? same_bits<T>(element_at(in.data(), static_cast<size_t>(flat_offset(in, at)))) : T(0);
      }
      out.template write<T>(r, c, n, to);
    }
  }
}

/// Copy the selected columns of the valid region of src, row by row, to one run in the storage of dst.
template <MaskPattern Pattern, class Dst, class Src>
inline void gather_columns(Dst& dst, const Src& src) {
  using T = typename Dst::DType;
  const Lines<Src> in(src);
  T* to = detail::as_const(dst).data();
  const auto rows = static_cast<ptrdiff_t>(src.GetValidRow()),
             cols = static_cast<ptrdiff_t>(src.GetValidCol());
  const ptrdiff_t each = selected(Pattern, cols);
  ptrdiff_t at = 0;
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t j = 0; j < each && at < dst.Numel; ++j)
      put_element(to, static_cast<size_t>(at++),
                  same_bits<T>(in.get(r, first_of(Pattern) + j * period(Pattern))));
  }
}

/// Copy the selected rows of the valid region of src to consecutive rows of dst.
template <MaskPattern Pattern, class Dst, class Src>
inline void gather_rows(Dst& dst, const Src& src) {
  using T = typename Dst::DType;
  const Lines<Src> in(src);
  const Lines<Dst> out(dst);
  const ptrdiff_t rows = selected(Pattern, static_cast<ptrdiff_t>(src.GetValidRow()));
  const auto cols = static_cast<ptrdiff_t>(src.GetValidCol());
  for (ptrdiff_t r = 0; r < rows && r < dst.Rows; ++r)
    for (ptrdiff_t c = 0; c < cols && c < dst.Cols; ++c)
      out.set(r, c, same_bits<T>(in.get(first_of(Pattern) + r * period(Pattern), c)));
}

template <MaskPattern Pattern, GatherAxis Axis, class Dst, class Src>
inline void gather(Dst& dst, const Src& src) {
  if constexpr (Axis == GatherAxis::GATHER_COL) {
    gather_rows<Pattern>(dst, src);
  } else {
    gather_columns<Pattern>(dst, src);
  }
}

/// Store, for each row, the indices of the elements that compare true, packed to the left, and their count.
/// Elements of row r are compared with `limit(r)`, which has the element type of src.
template <CmpMode Mode, class Dst, class Src, class Limit, class Count>
inline void gather_matches(Dst& dst, const Src& src, Limit limit, Count& count, int32_t offset) {
  using T = typename Src::DType;
  using C = compute_t<T>;
  using Number = typename Dst::DType;
  const Lines<Src> in(src);
  const Lines<Dst> out(dst);
  const auto rows = static_cast<ptrdiff_t>(src.GetValidRow()),
             cols = static_cast<ptrdiff_t>(src.GetValidCol());
  for (ptrdiff_t r = 0; r < rows; ++r) {
    const C k = value_of<C>(static_cast<T>(limit(r)));
    ptrdiff_t found = 0;
    for (ptrdiff_t c = 0; c < cols; ++c) {
      const C x = in.template get<C>(r, c);
      if (!(Mode == CmpMode::GT ? x > k : x == k)) continue;
      if (found < dst.Cols) out.set(r, found, static_cast<Number>(offset + r * src.Cols + c));
      ++found;
    }
    put_element(detail::as_const(count).data(), static_cast<size_t>(r),
                static_cast<typename Count::DType>(found));
  }
}

/// Copy 32 bytes of src from byte offsets[r, b] on to block (r, b) of dst; skip a block that does not lie in
/// src.
template <class Dst, class Src, class Offsets>
inline void gather_blocks(Dst& dst, const Src& src, const Offsets& offsets) {
  using T = typename Dst::DType;
  constexpr ptrdiff_t count = 32 / static_cast<ptrdiff_t>(sizeof(T));
  const Lines<Dst> out(dst);
  const Lines<Offsets> where(offsets);
  const auto* from = reinterpret_cast<const char*>(src.data());
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow());
  const ptrdiff_t blocks = static_cast<ptrdiff_t>(dst.GetValidCol()) / count;
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t b = 0; b < blocks; ++b) {
      const auto start = same_bits<uint32_t>(where.get(r, b));
      if (uint64_t{start} + 32 > src.GetSizeInBytes()) continue;
      T block[count];
      std::memcpy(block, from + start, 32);
      out.write(r, b * count, count, block);
    }
  }
}

/// Clear the destination of a scatter on hardware; the cpu profile keeps it.
template <class Dst>
inline void clear_for_scatter(Dst& dst) {
  PTO_IF_TARGET(kIsa != Isa::cpu)
  fill(place(dst), 0, 0, dst.Rows, dst.Cols, code_t<typename Dst::DType>{0});
}

/// Store src[r, c] at storage offset indexes[r, c] of dst; the last of equal offsets in row-major order wins.
template <class Dst, class Src, class Idx>
inline void scatter(Dst& dst, const Src& src, const Idx& indexes) {
  clear_for_scatter(dst);
  const Lines<Src> in(src);
  const Lines<Idx> where(indexes);
  typename Dst::DType* to = detail::as_const(dst).data();
  const auto rows = static_cast<ptrdiff_t>(indexes.GetValidRow()),
             cols = static_cast<ptrdiff_t>(indexes.GetValidCol());
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; ++c) {
      const auto at = static_cast<int64_t>(where.get(r, c));
      PTO_CHECK(at >= 0 && static_cast<size_t>(at) * sizeof(*to) <
                               capacity(static_cast<int>(Dst::Loc)) -
                                   static_cast<size_t>(reinterpret_cast<char*>(to) - on_chip(Dst::Loc, 0)),
                "PTO-E2101", "TSCATTER: index %lld at (%td, %td) is beyond the buffer",
                static_cast<long long>(at), r, c);
      put_element(to, static_cast<size_t>(at), in.get(r, c));
    }
  }
}

/// Copy src to the columns (or rows) of dst that the pattern selects; set the others to zero.
template <MaskPattern Pattern, ScatterAxis Axis, class Dst, class Src>
inline void scatter(Dst& dst, const Src& src) {
  constexpr bool Rows = Axis == ScatterAxis::SCATTER_COL;
  using T = typename Dst::DType;
  const Lines<Src> in(src);
  const Lines<Dst> out(dst);
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  if constexpr (Pattern != MaskPattern::P1111) clear_for_scatter(dst);
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; ++c) {
      const ptrdiff_t i = Rows ? r : c, k = i - first_of(Pattern);
      const bool taken = k >= 0 && k % period(Pattern) == 0;
      const ptrdiff_t from = k / period(Pattern);
      out.set(r, c, !taken ? T(0) : Rows ? in.get(from, c) : in.get(r, from));
    }
  }
}

// --- global memory -----------------------------------------------------------------------------------------

/// What an index selects. `automatic`: an element if the indices have the shape of the data, else a row.
enum class Names : uint8_t { automatic, row, element };
constexpr Names names_of(Coalesce mode) { return mode == Coalesce::Row ? Names::row : Names::element; }

enum class Beyond : uint8_t { undefined, clamp, wrap, drop };
constexpr Beyond beyond(GatherOOB mode) {
  return mode == GatherOOB::Clamp  ? Beyond::clamp
         : mode == GatherOOB::Wrap ? Beyond::wrap
         : mode == GatherOOB::Zero ? Beyond::drop
                                   : Beyond::undefined;
}
constexpr Beyond beyond(ScatterOOB mode) {
  return mode == ScatterOOB::Clamp  ? Beyond::clamp
         : mode == ScatterOOB::Wrap ? Beyond::wrap
         : mode == ScatterOOB::Skip ? Beyond::drop
                                    : Beyond::undefined;
}

/// The table of an indexed access in global memory, and the indices into it.
template <class Mem, class Idx>
struct Table {
  const Mem& mem;
  const Idx& idx;
  bool by_row;
  uint64_t capacity;  // rows or elements
  int64_t step, across;

  Table(const Mem& m, const Idx& i, Names names, ptrdiff_t rows, ptrdiff_t cols) : mem(m), idx(i) {
    by_row = names == Names::row;
    if (names == Names::automatic) {
      ptrdiff_t r, c;
      if constexpr (is_tile_data_v<Idx>) {
        r = idx.GetValidRow(), c = idx.GetValidCol();
      } else {
        const auto at = place(idx);
        r = at.rows.count, c = at.cols.count;
      }
      by_row = !(r == rows && c == cols && cols > 1);
    }
    int64_t all = 1;
    for (int d = 0; d < 4; ++d) all *= mem.GetShape(d);
    const int64_t height = kIsa == Isa::a2a3 ? all : mem.GetShape(3);
    capacity = static_cast<uint64_t>(by_row ? height : all * mem.GetShape(4));
    step = mem.GetStride(3);
    across = mem.GetStride(4);
    if constexpr (!is_tile_data_v<Idx>) {
      if (by_row) {
        touch_elements("indices", idx.data(), bits_of<typename Idx::DType>, 0, rows - 1, Use::read);
      } else {
        touch("indices", place(idx), rows, cols, Use::read);
      }
    }
  }

  /// Return the index of element (r, c), sign-extended and read as unsigned: a negative index is beyond every
  /// table.
  uint64_t index(ptrdiff_t r, ptrdiff_t c) const {
    size_t at;
    if (by_row) {
      at = static_cast<size_t>(r);
    } else if constexpr (is_tile_data_v<Idx>) {
      at = static_cast<size_t>(idx.offset(r, c));
    } else {
      at = static_cast<size_t>(place(idx).at(r, c));
    }
    return static_cast<uint64_t>(static_cast<int64_t>(idx.data()[at]));
  }

  /// Set `at` to the element offset of (r, c) in global memory; return false if it must not be touched.
  bool find(ptrdiff_t r, ptrdiff_t c, Beyond rule, int64_t& at) const {
    uint64_t k = index(r, c);
    if (rule == Beyond::clamp) {
      k = k < capacity ? k : capacity - 1;
    } else if (rule == Beyond::wrap) {
      k %= capacity;
    } else if (k >= capacity) {
      PTO_CHECK(rule == Beyond::drop, "PTO-E2101", "index %lld at (%td, %td): the table has %llu entries",
                static_cast<long long>(k), r, c, static_cast<unsigned long long>(capacity));
      if (rule == Beyond::drop) return false;
    }
    at = by_row ? static_cast<int64_t>(k) * step + c * across : static_cast<int64_t>(k);
    return true;
  }
};

template <class Dst, class Mem, class Idx>
inline void gather_memory(Dst& dst, const Mem& mem, const Idx& idx, Names names, Beyond rule) {
  using T = typename Dst::DType;
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  if (rows == 0 || cols == 0) return;
  const Table<Mem, Idx> table(mem, idx, names, rows, cols);
  const Lines<Dst> out(dst);
  const typename Mem::DType* from = mem.data();
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<T> buffer;
      int64_t at;
      const bool whole_row = table.by_row && table.across == 1 && bits_of<T> >= 8;
      if (whole_row && table.find(r, c, rule, at)) {
        touch_elements("MGATHER", from, bits_of<T>, at, at + n - 1, Use::read);
        std::memcpy(static_cast<void*>(buffer.at), from + at, static_cast<size_t>(n) * sizeof(T));
      } else {
        for (ptrdiff_t j = 0; j < n; ++j) {
          const bool found = table.find(r, c + j, rule, at);
          if (found) touch_elements("MGATHER", from, bits_of<T>, at, at, Use::read);
          buffer.at[j] = found ? same_bits<T>(element_at(from, static_cast<size_t>(at))) : T(0);
        }
      }
      out.template write<T>(r, c, n, buffer.at);
    }
  }
  // Hardware stages the elements in a zeroed scratch array of the tile's size, so the rest becomes zero.
  if (Dst::Loc == TileType::Mat && !table.by_row) fill_around(dst, rows, cols, code_t<T>{0});
}

/// Return the result of an atomic operation; max and min keep the old value unless the new one is beyond.
template <ScatterAtomicOp Op, class T>
inline T combined(T old, T next) {
  using W = wide_t<T>;
  const W a = static_cast<W>(value_of<compute_t<T>>(old)), b = static_cast<W>(value_of<compute_t<T>>(next));
  const W found = Op == ScatterAtomicOp::Add   ? add(a, b)
                  : Op == ScatterAtomicOp::Max ? (a < b ? b : a)
                                               : (b < a ? b : a);
  return element_of<T>(static_cast<compute_t<T>>(found));
}

template <ScatterAtomicOp Op, class Mem, class Src, class Idx>
inline void scatter_memory(Mem& mem, const Src& src, const Idx& idx, Names names, Beyond rule) {
  using T = typename Mem::DType;
  const auto rows = static_cast<ptrdiff_t>(src.GetValidRow()),
             cols = static_cast<ptrdiff_t>(src.GetValidCol());
  if (rows == 0 || cols == 0) return;
  const Table<Mem, Idx> table(mem, idx, names, rows, cols);
  const Lines<Src> in(src);
  T* to = mem.data();
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; ++c) {
      int64_t at;
      if (!table.find(r, c, rule, at)) continue;
      touch_elements("MSCATTER", to, bits_of<T>, at, at, use_of(Op, dtype_of<T>));
      if constexpr (Op == ScatterAtomicOp::None) {
        put_element(to, static_cast<size_t>(at), same_bits<T>(in.get(r, c)));
      } else {
        const T next =
            element_of<T>(static_cast<compute_t<T>>(in.template get<compute_t<typename Src::DType>>(r, c)));
        if constexpr (bits_of<T> >= 8) {
          update(to + at, [&](T old) { return combined<Op>(old, next); });
        } else {  // two elements share a byte
          put_element(to, static_cast<size_t>(at),
                      combined<Op>(element_at(to, static_cast<size_t>(at)), next));
        }
      }
    }
  }
}

}  // namespace pto::detail

namespace pto {

// --- tiles -------------------------------------------------------------------------------------------------

/// Gather by comparison: store the indices of the elements of each row of src0 that match element r of
/// k_value, and their count.
template <class Dst, class Src, class Limit, class Count, class Tmp, CmpMode cmpMode, class... Events>
PTO_INST RecordEvent TGATHER(Dst& dst, Src& src0, Limit& k_value, Count& cdst, [[maybe_unused]] Tmp& tmp,
                             int offset, Events&... events) {
  PTO_LEGAL(check_tgather_with_kTile_cdst<Dst, Src, Limit, Count, cmpMode>(src0));
  TSYNC(events...);
  PTO_TRACE("tgather dst src kTile cdst tmp offset: cmpMode", PTO_SAYS(cmpMode), dst, src0, k_value, cdst,
            tmp, offset);
  const auto limit = [&](ptrdiff_t r) {
    return detail::element_at(detail::as_const(k_value).data(), static_cast<size_t>(r));
  };
  detail::gather_matches<cmpMode>(dst, src0, limit, cdst, offset);
  return {};
}
/// Gather by comparison with one value for all rows.
template <class Dst, class Src, class Count, class Tmp, CmpMode cmpMode, int offset, class Limit,
          class... Events>
  requires(!is_tile_data_v<Limit>)
PTO_INST RecordEvent TGATHER(Dst& dst, Src& src0, const Limit& k_value, Count& cdst,
                             [[maybe_unused]] Tmp& tmp, Events&... events) {
  PTO_LEGAL(check_tgather_with_kValue_cdst<Dst, Src, Count, cmpMode>(src0));
  TSYNC(events...);
  PTO_TRACE("tgather dst src kValue cdst tmp: cmpMode offset", PTO_SAYS(cmpMode, offset), dst, src0, k_value,
            cdst, tmp);
  detail::gather_matches<cmpMode>(dst, src0, [&](ptrdiff_t) { return k_value; }, cdst, offset);
  return {};
}

// --- global memory -----------------------------------------------------------------------------------------

// An index selects a row or an element of the table. By default it selects an element if the indices have the
// shape of the data and more than one column, else a row.
template <class Dst, class Mem, class Idx, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent MGATHER(Dst& dst, Mem& src, Idx& indexes, Events&... events) {
  PTO_LEGAL(check_mgather<Dst, Mem, Idx>(dst, indexes));
  TSYNC(events...);
  PTO_TRACE("mgather dst mem idx:", PTO_SAYS(), dst, src, indexes);
  detail::gather_memory(dst, src, indexes, detail::Names::automatic, detail::Beyond::undefined);
  return {};
}
template <Coalesce CMode, GatherOOB Mode = GatherOOB::Undefined, class Dst, class Mem, class Idx,
          class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent MGATHER(Dst& dst, Mem& src, Idx& indexes, Events&... events) {
  if constexpr (CMode == Coalesce::Row) {
    PTO_LEGAL(check_mgather_by_row<Dst, Mem, Idx>(dst, indexes));
  } else {
    PTO_LEGAL(check_mgather_by_elem<Dst, Mem, Idx>(dst, indexes));
  }
  TSYNC(events...);
  PTO_TRACE("mgather dst mem idx: coalesce gatherOob", PTO_SAYS(detail::names_of(CMode), Mode), dst, src,
            indexes);
  detail::gather_memory(dst, src, indexes, detail::names_of(CMode), detail::beyond(Mode));
  return {};
}
// Gather into L1, with indices and scratch in global memory.
template <class Dst, class Mem, class Idx, class Scratch>
  requires(is_global_data_v<Scratch>)
PTO_INST RecordEvent MGATHER(Dst& dst, Mem& src, Idx& indexes, [[maybe_unused]] Scratch& scratch) {
  PTO_TRACE("mgather dst mem idx scratch:", PTO_SAYS(), dst, src, indexes, scratch);
  PTO_LEGAL(check_mgather_with_scratch<Dst, Mem, Idx, Scratch>(dst, indexes, scratch));
  detail::gather_memory(dst, src, indexes, detail::Names::automatic, detail::Beyond::undefined);
  return {};
}
template <Coalesce CMode, GatherOOB Mode = GatherOOB::Undefined, GatherExec Exec = GatherExec::Scalar,
          class Dst, class Mem, class Idx, class Scratch>
  requires(is_global_data_v<Scratch>)
PTO_INST RecordEvent MGATHER(Dst& dst, Mem& src, Idx& indexes, [[maybe_unused]] Scratch& scratch) {
  PTO_TRACE("mgather dst mem idx scratch: coalesce gatherOob gather_exec",
            PTO_SAYS(detail::names_of(CMode), Mode, Exec), dst, src, indexes, scratch);
  if constexpr (CMode == Coalesce::Row) {
    PTO_LEGAL(check_mgather_by_row_with_scratch<Dst, Mem, Idx, Scratch, Exec>(dst, indexes, scratch));
  } else {
    PTO_LEGAL(check_mgather_by_elem_with_scratch<Dst, Mem, Idx, Scratch, Exec>(dst, indexes, scratch));
  }
  detail::gather_memory(dst, src, indexes, detail::names_of(CMode), detail::beyond(Mode));
  return {};
}

template <class Mem, class Src, class Idx, class... Events>
PTO_INST RecordEvent MSCATTER(Mem& dst, Src& src, Idx& indexes, Events&... events) {
  PTO_LEGAL(check_mscatter<Mem, Src, Idx>(src, indexes));
  TSYNC(events...);
  PTO_TRACE("mscatter mem src idx:", PTO_SAYS(), dst, src, indexes);
  detail::scatter_memory<ScatterAtomicOp::None>(dst, src, indexes, detail::Names::automatic,
                                                detail::Beyond::undefined);
  return {};
}
template <Coalesce Mode, ScatterAtomicOp Atomic = ScatterAtomicOp::None,
          ScatterOOB Oob = ScatterOOB::Undefined, ScatterConflict Conflict = ScatterConflict::Last, class Mem,
          class Src, class Idx, class... Events>
PTO_INST RecordEvent MSCATTER(Mem& dst, Src& src, Idx& indexes, Events&... events) {
  if constexpr (Mode == Coalesce::Row) {
    PTO_LEGAL(check_mscatter_by_row<Mem, Src, Idx, Atomic, Conflict>(src, indexes));
  } else {
    PTO_LEGAL(check_mscatter_by_elem<Mem, Src, Idx, Atomic, Conflict>(src, indexes));
  }
  TSYNC(events...);
  PTO_TRACE("mscatter mem src idx: coalesce scatterAtomicOp scatterOob conflict",
            PTO_SAYS(detail::names_of(Mode), Atomic, Oob, Conflict), dst, src, indexes);
  detail::scatter_memory<Atomic>(dst, src, indexes, detail::names_of(Mode), detail::beyond(Oob));
  return {};
}

}  // namespace pto
