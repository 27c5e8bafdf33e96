// Broadcasts of one column or one row over a tile; the forms with arithmetic are in ops/regular.hpp.
#pragma once

#include "pto/ops/legality.hpp"
#include "pto/ops/meanings.hpp"

namespace pto::detail {

template <class M, class T>
PTO_INLINE compute_t<T> expand_value(compute_t<T> x, compute_t<T> y) {
  return result<T>(M::template of<T>(static_cast<wide_t<T>>(x), static_cast<wide_t<T>>(y)));
}

template <class M, class T>
struct Expansion {
  PTO_INLINE auto operator()(compute_t<T> x, compute_t<T> y) const { return expand_value<M, T>(x, y); }
};
/// One operand is the same for a whole line.
template <class M, class T, bool First>
struct ExpansionOf {
  compute_t<T> same;
  PTO_INLINE auto operator()(compute_t<T> x) const {
    return First ? expand_value<M, T>(same, x) : expand_value<M, T>(x, same);
  }
};
template <class M, class T>
inline constexpr bool is_short<Expansion<M, T>> = is_short<M>;
template <class M, class T, bool First>
inline constexpr bool is_short<ExpansionOf<M, T, First>> = is_short<M>;
#define PTO_SHORT(M) \
  template <>        \
  inline constexpr bool is_short<M> = true;
PTO_SHORT(trowexpandadd)
PTO_SHORT(trowexpandsub)
PTO_SHORT(trowexpandmul)
PTO_SHORT(trowexpandmax)
PTO_SHORT(trowexpandmin)
PTO_SHORT(tadd)
PTO_SHORT(tsub)
PTO_SHORT(tmul)
PTO_SHORT(tmax)
PTO_SHORT(tmin)
PTO_SHORT(tadds)
PTO_SHORT(tsubs)
PTO_SHORT(tmuls)
PTO_SHORT(tmaxs)
PTO_SHORT(tmins)
#undef PTO_SHORT
template <bool First>
inline constexpr bool is_long<ExpansionOf<trowexpandexpdif, float, First>> = true;

// --- rows --------------------------------------------------------------------------------------------------

/// Return n values of row r from column c on; the `have` columns of the operand repeat.
template <class C, class Src>
inline const C* repeated(const Lines<Src>& in, ptrdiff_t r, ptrdiff_t c, ptrdiff_t n, ptrdiff_t have,
                         C* buffer) {
  if (c + n <= have) return in.template read<C>(r, c, n, buffer);
  for (ptrdiff_t j = 0; j < n; ++j) buffer[j] = in.template get<C>(r, (c + j) % have);
  return buffer;
}

/// Compute dst = M(src0, src1) row by row; the columns of a source repeat to fill the row of dst.
template <class M, class Dst, class Src0, class Src1>
inline void expand_rows(Dst& dst, const Src0& src0, const Src1& src1) {
  using T = typename Dst::DType;
  using C = compute_t<T>;
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  const auto have0 = static_cast<ptrdiff_t>(src0.GetValidCol()),
             have1 = static_cast<ptrdiff_t>(src1.GetValidCol());
  if (rows == 0 || cols == 0) return;
  // A single column repeats as a scalar; static sizes may exclude or imply this at compile time.
  constexpr bool may0 = Src0::ValidCol == DYNAMIC || Src0::ValidCol == 1;
  constexpr bool may1 = Src1::ValidCol == DYNAMIC || Src1::ValidCol == 1;
  constexpr bool always1 = Src1::ValidCol == 1 && Dst::ValidCol != DYNAMIC && Src0::ValidCol != DYNAMIC &&
                           Src0::ValidCol >= Dst::ValidCol;
  if (have0 == 0 || have1 == 0) fail("[PTO] a row expansion needs sources with a valid column");
  const Lines<Dst> out(dst);
  const Lines<Src0> in0(src0);
  const Lines<Src1> in1(src1);
  for (ptrdiff_t r = 0; r < rows; ++r) {
    const C first0 = in0.template get<C>(r, 0), first1 = in1.template get<C>(r, 0);
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<C> to, from0, from1;
      C* y = out.template spot<C>(r, c, to.at);
      if (always1 || (may1 && have1 == 1 && have0 >= cols)) {
        if constexpr (may1)
          map_run(n, ExpansionOf<M, T, false>{first1}, y, in0.template read<C>(r, c, n, from0.at));
      } else if (may0 && have0 == 1 && have1 >= cols) {
        if constexpr (may0 && !always1)
          map_run(n, ExpansionOf<M, T, true>{first0}, y, in1.template read<C>(r, c, n, from1.at));
      } else {
        if constexpr (!always1)
          map_run(n, Expansion<M, T>{}, y, repeated<C>(in0, r, c, n, have0, from0.at),
                  repeated<C>(in1, r, c, n, have1, from1.at));
      }
      out.template write<C>(r, c, n, y);
    }
  }
}

/// Compute dst = M(src0, src1); row 0 of src1 serves all rows.
template <class M, class Dst, class Src0, class Src1>
inline void expand_cols(Dst& dst, const Src0& src0, const Src1& src1) {
  using T = typename Dst::DType;
  using C = compute_t<T>;
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  const Lines<Dst> out(dst);
  const Lines<Src0> in0(src0);
  const Lines<Src1> in1(src1);
  for (ptrdiff_t c = 0; c < cols; c += kChunk) {
    const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
    Buffer<C> to, from0, from1;
    const C* row = in1.template read<C>(0, c, n, from1.at);
    for (ptrdiff_t r = 0; r < rows; ++r) {
      C* y = out.template spot<C>(r, c, to.at);
      map_run(n, Expansion<M, T>{}, y, in0.template read<C>(r, c, n, from0.at), row);
      out.template write<C>(r, c, n, y);
    }
  }
}

}  // namespace pto::detail

namespace pto {

namespace detail {

/// Copy column 0 of src to every column of dst.
template <class Dst, class Src>
inline void trowexpand(Dst& dst, Src& src) {
  using T = typename Dst::DType;
  const Lines<Dst> out(dst);
  const Lines<Src> in(src);
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  for (ptrdiff_t r = 0; r < rows && cols > 0; ++r) {
    const T value = in.get(r, 0);
    Buffer<T> buffer;
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      T* to = out.template spot<T>(r, c, buffer.at);
      for (ptrdiff_t j = 0; j < n; ++j) to[j] = value;
      out.template write<T>(r, c, n, to);
    }
  }
}

/// Copy row 0 of src to every row of dst.
template <class Dst, class Src>
inline void tcolexpand(Dst& dst, Src& src) {
  using T = typename Dst::DType;
  const Lines<Dst> out(dst);
  const Lines<Src> in(src);
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  for (ptrdiff_t c = 0; c < cols; c += kChunk) {
    const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
    Buffer<T> buffer;
    const T* x = in.template read<T>(0, c, n, buffer.at);
    for (ptrdiff_t r = 0; r < rows; ++r) out.template write<T>(r, c, n, x);
  }
}

}  // namespace detail

}  // namespace pto
