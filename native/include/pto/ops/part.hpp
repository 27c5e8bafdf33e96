// Combinations of two partially valid tiles: elements valid in both are combined, elements valid in one are
// copied, the others are zero. ops/regular.hpp has the instructions that combine by an expression.
#pragma once

#include "pto/ops/meanings.hpp"

namespace pto {

namespace detail {

struct Extent {
  ptrdiff_t rows, cols;
};
template <class A, class B>
inline Extent common_extent(const A& a, const B& b) {
  const ptrdiff_t ar = a.GetValidRow(), ac = a.GetValidCol(), br = b.GetValidRow(), bc = b.GetValidCol();
  return {ar < br ? ar : br, ac < bc ? ac : bc};
}

/// Write the elements that only one source has, and zeros where neither has one; skip the common part.
template <class Dst, class Src0, class Src1>
inline void copy_parts(Dst& dst, const Src0& src0, const Src1& src1, Extent a, Extent b) {
  using T = typename Dst::DType;
  const Lines<Dst> out(dst);
  const Lines<Src0> in0(src0);
  const Lines<Src1> in1(src1);
  const ptrdiff_t rows = dst.GetValidRow(), cols = dst.GetValidCol();
  const auto move = [](const auto& from, const Lines<Dst>& to, ptrdiff_t r, ptrdiff_t first, ptrdiff_t last) {
    for (ptrdiff_t c = first; c < last; c += kChunk) {
      const ptrdiff_t n = last - c < kChunk ? last - c : kChunk;
      Buffer<T> buffer;
      to.write(r, c, n, from.template read<T>(r, c, n, buffer.at));
    }
  };
  for (ptrdiff_t r = 0; r < rows; ++r) {
    const ptrdiff_t n0 = r < a.rows ? a.cols : 0, n1 = r < b.rows ? b.cols : 0;
    const ptrdiff_t both = n0 < n1 ? n0 : n1, any = n0 < n1 ? n1 : n0;
    if (n0 > n1) {
      move(in0, out, r, both, n0);
    } else {
      move(in1, out, r, both, n1);
    }
    for (ptrdiff_t c = any; c < cols; ++c) out.set(r, c, T(0));
  }
}

template <class M, class Dst, class Src0, class Src1>
inline void combine_parts(Dst& dst, const Src0& src0, const Src1& src1) {
  using T = typename Dst::DType;
  const Extent a = common_extent(dst, src0), b = common_extent(dst, src1);
  copy_parts(dst, src0, src1, a, b);
  map_region(
      a.rows < b.rows ? a.rows : b.rows, a.cols < b.cols ? a.cols : b.cols, dst,
      [](compute_t<T> x, compute_t<T> y) {
        return evaluate<M, T, T>(static_cast<wide_t<T>>(x), static_cast<wide_t<T>>(y));
      },
      src0, src1);
}

template <Kind K, class DstVal, class Src0Val, class Src1Val, class DstIdx, class Src0Idx, class Src1Idx>
inline void part_extreme(DstVal& dst_val, const Src0Val& src0_val, const Src1Val& src1_val, DstIdx& dst_idx,
                         const Src0Idx& src0_idx, const Src1Idx& src1_idx) {
  using C = compute_t<typename DstVal::DType>;
  const Extent a = common_extent(dst_val, src0_val), b = common_extent(dst_val, src1_val);
  const ptrdiff_t rows = a.rows < b.rows ? a.rows : b.rows, cols = a.cols < b.cols ? a.cols : b.cols;
  const Lines<Src0Val> x(src0_val);
  const Lines<Src1Val> y(src1_val);
  const Lines<Src0Idx> i(src0_idx);
  const Lines<Src1Idx> j(src1_idx);
  const Lines<DstVal> value(dst_val);
  const Lines<DstIdx> index(dst_idx);
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; ++c) {
      const C p = x.template get<C>(r, c), q = y.template get<C>(r, c);
      const bool first = K == Kind::largest ? p > q : p < q;
      value.set(r, c, first ? x.get(r, c) : y.get(r, c));
      index.set(r, c, first ? i.get(r, c) : j.get(r, c));
    }
  }
  copy_parts(dst_val, src0_val, src1_val, a, b);
  copy_parts(dst_idx, src0_idx, src1_idx, a, b);
}

}  // namespace detail

}  // namespace pto
