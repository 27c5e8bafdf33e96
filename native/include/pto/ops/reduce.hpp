// Reductions along one axis of a tile: sums, products, largest and smallest elements and their indices.
//
// Row forms reduce each row into column 0 of dst, column forms reduce each column into row 0. The order of a
// sum or product is part of its result: from the first element to the last, every step rounded (TROWSUM of
// f16 and bf16 sums in f32). Two ways to be fast remain: adjacent lines are folded together element by
// element, and lines that must be folded one by one are folded several at once. Of equal elements the first
// stays, which decides the sign of a zero; a NaN counts only as the first element. All results equal those of
// the reference engine, bit for bit.
#pragma once

#include "pto/ops/copy.hpp"
#include "pto/ops/legality.hpp"
#include "pto/ops/meanings.hpp"

namespace pto::detail {

// --- how elements are folded -------------------------------------------------------------------------------

/// Sums and products of S elements in the type D; Wide: rounded once, at the end.
template <class D, class S, bool Product, bool Wide>
struct Fold {
  using From = compute_t<S>;
  using Acc = std::conditional_t<is_float_v<D>, compute_t<D>,
                                 std::conditional_t<sizeof(D) == 8, uint64_t, uint32_t>>;  // integers wrap
  static constexpr Acc start = Product ? 1 : 0;
  static constexpr bool rounds = is_small_float<D> && !Wide;

  /// Take one step, a sum or a product, on numbers or on vectors of numbers.
  template <class V>
  static PTO_INLINE V step(V acc, V value) {
    if constexpr (Product) return static_cast<V>(acc * value);
    return static_cast<V>(acc + value);
  }
  /// Round n results to elements of D after a step, if steps are rounded.
  static PTO_INLINE void round(Acc* acc, ptrdiff_t n) {
    if constexpr (rounds) {
      D elements[kChunk];
      narrow(acc, elements, n);
      widen(elements, acc, n);
    }
  }
  static D element(Acc acc) { return element_of<D>(static_cast<compute_t<D>>(acc)); }
};

/// Return true if x replaces the best one so far; false if one of them is NaN.
template <bool Largest, class C>
PTO_INLINE constexpr auto is_better(C x, C best) {
  if constexpr (Largest) {
    return x > best;
  } else {
    return x < best;
  }
}

// --- walks -------------------------------------------------------------------------------------------------

constexpr Along other(Along a) { return a == Along::row ? Along::col : Along::row; }

/// True if it is better to fold the lines of a tile element by element with adjacent lines.
template <class TileT, Along A>
inline constexpr bool folds_across =
    Lines<TileT, other(A)>::contiguous || (A == Along::col && !Lines<TileT, A>::contiguous);

/// Store the results of lines first .. first + n - 1.
template <class Dst, Along A, class T>
inline void put_results(Dst& dst, ptrdiff_t first, ptrdiff_t n, const T* results) {
  Lines<Dst, other(A)>(dst).template write<T>(0, first, n, results);
}

/// Lines that are folded at once: steps of different lines are independent, steps of one line are not. A
/// strip of kStrip elements per line is transposed at a time, by squares.
inline constexpr int kTogether = 16, kStrip = 32;

/// Fold n elements of all lines; element i of line k is x[i * kTogether + k].
template <class F>
PTO_EXACT_LOOP void fold_strip(typename F::Acc* acc, const typename F::From* x, ptrdiff_t n) {
  using Acc = typename F::Acc;
  if constexpr (sizeof(Acc) == sizeof(typename F::From) && !F::rounds) {
    constexpr int lanes = kLineBytes / sizeof(Acc), vectors = kTogether / lanes;
    typedef Acc Vec __attribute__((vector_size(kLineBytes)));
    Vec sums[vectors];
    std::memcpy(sums, acc, sizeof sums);
    for (ptrdiff_t i = 0; i < n; ++i, x += kTogether) {
      PTO_UNROLL
      for (int v = 0; v < vectors; ++v) {
        Vec values;
        std::memcpy(&values, x + v * lanes, sizeof values);
        sums[v] = F::step(sums[v], values);
      }
    }
    std::memcpy(acc, sums, sizeof sums);
  } else {
    for (ptrdiff_t i = 0; i < n; ++i, x += kTogether) {
      PTO_INDEPENDENT
      for (int k = 0; k < kTogether; ++k) acc[k] = F::step(acc[k], static_cast<Acc>(x[k]));
      F::round(acc, kTogether);
    }
  }
}

/// Transpose kTogether lines of n <= kStrip elements, `step` apart, into n lines of kTogether.
template <class T>
[[gnu::noinline]] void turn_strip(T* to, const T* from, ptrdiff_t step, ptrdiff_t n) {
  using Code = code_t<T>;
  constexpr int side = kSquare<sizeof(Code)>;
  ptrdiff_t i = 0;
  for (; i + side <= n; i += side) {
    for (int k = 0; k < kTogether; k += side)
      copy_square<Code>(to + i * kTogether + k, kTogether, from + k * step + i, step);
  }
  for (; i < n; ++i)
    for (int k = 0; k < kTogether; ++k) to[i * kTogether + k] = from[k * step + i];
}

/// True if a square of elements is transposed and folded in registers.
template <class F>
inline constexpr bool folds_squares =
    sizeof(typename F::Acc) == sizeof(typename F::From) && !F::rounds &&
    kSquare<sizeof(typename F::From)> * sizeof(typename F::From) == kLineBytes;

/// Fold the first elements of kTogether lines, `step` apart, in whole squares; return how many per line.
template <class F>
[[gnu::noinline]] ptrdiff_t fold_lines(typename F::Acc* acc, const typename F::From* x, ptrdiff_t step,
                                       ptrdiff_t n) {
  constexpr int side = kSquare<sizeof(typename F::From)>, groups = kTogether / side;
  typedef typename F::Acc Vec __attribute__((vector_size(kLineBytes)));
  Vec sums[groups];
  std::memcpy(sums, acc, sizeof sums);
  ptrdiff_t i = 0;
  for (; i + side <= n; i += side) {
    PTO_UNROLL
    for (int g = 0; g < groups; ++g) {
      Vec v[side];
      PTO_UNROLL
      for (int k = 0; k < side; ++k) std::memcpy(&v[k], x + (g * side + k) * step + i, sizeof v[k]);
      transpose<side>(v);
      PTO_UNROLL
      for (int k = 0; k < side; ++k) sums[g] = F::step(sums[g], v[k]);
    }
  }
  std::memcpy(acc, sums, sizeof sums);
  return i;
}

template <class F, Along A, class Dst, class Src>
inline void fold_along(Dst& dst, const Src& src, ptrdiff_t lines, ptrdiff_t length) {
  using From = typename F::From;
  using In = Lines<Src, A>;
  const In in(src);
  for (ptrdiff_t line = 0; line < lines; line += kTogether) {
    const ptrdiff_t count = lines - line < kTogether ? lines - line : kTogether;
    typename F::Acc acc[kTogether];
    for (auto& a : acc) a = F::start;
    ptrdiff_t done = 0;
    if constexpr (In::template direct<From> && folds_squares<F>) {
      if (count == kTogether) done = fold_lines<F>(acc, in.data() + in.at(line, 0), in.step(), length);
    }
    for (ptrdiff_t i = done; i < length; i += kStrip) {
      const ptrdiff_t n = length - i < kStrip ? length - i : kStrip;
      alignas(64) From buffer[kTogether * kStrip], turned[kTogether * kStrip];
      const From* x = buffer;
      ptrdiff_t step = kStrip;
      if (In::template direct<From> && count == kTogether) {
        x = in.template read<From>(line, i, n, buffer);
        step = in.step();
      } else {
        for (ptrdiff_t k = 0; k < kTogether; ++k) {  // the last line replaces the missing ones
          From* to = buffer + k * kStrip;
          const From* found = in.template read<From>(line + (k < count ? k : count - 1), i, n, to);
          if (found != to) std::memcpy(to, found, static_cast<size_t>(n) * sizeof(From));
        }
      }
      turn_strip(turned, x, step, n);
      fold_strip<F>(acc, turned, n);
    }
    typename Dst::DType results[kTogether];
    for (ptrdiff_t k = 0; k < count; ++k) results[k] = F::element(acc[k]);
    put_results<Dst, A>(dst, line, count, results);
  }
}

template <class F, Along A, class Dst, class Src>
inline void fold_across(Dst& dst, const Src& src, ptrdiff_t lines, ptrdiff_t length) {
  using From = typename F::From;
  using Acc = typename F::Acc;
  const Lines<Src, other(A)> in(src);
  for (ptrdiff_t first = 0; first < lines; first += kChunk) {
    const ptrdiff_t n = lines - first < kChunk ? lines - first : kChunk;
    Acc acc[kChunk];
    From buffer[kChunk];
    for (ptrdiff_t j = 0; j < n; ++j) acc[j] = F::start;
    for (ptrdiff_t i = 0; i < length; ++i) {
      const From* x = in.template read<From>(i, first, n, buffer);
      Acc* to = acc;
      loop<kBlock<Acc>, true>(n, [=](ptrdiff_t j) { to[j] = F::step(to[j], static_cast<Acc>(x[j])); });
      F::round(to, n);
    }
    typename Dst::DType results[kChunk];
    for (ptrdiff_t j = 0; j < n; ++j) results[j] = F::element(acc[j]);
    put_results<Dst, A>(dst, first, n, results);
  }
}

/// Sizes of a reduction: lines, and elements in each.
struct Extents {
  ptrdiff_t lines, length;
};

template <Along A, class Src>
inline Extents extents(const Src& src) {
  const auto rows = static_cast<ptrdiff_t>(src.GetValidRow()),
             cols = static_cast<ptrdiff_t>(src.GetValidCol());
  return A == Along::row ? Extents{rows, cols} : Extents{cols, rows};
}

template <Along A, bool Product, bool Wide, class Dst, class Src>
inline void fold(Dst& dst, const Src& src) {
  using F = Fold<typename Dst::DType, typename Src::DType, Product, Wide>;
  const auto [lines, length] = extents<A>(src);
  if (A == Along::col && length == 0) return;  // a row without columns folds to the start value
  if constexpr (folds_across<Src, A>) {
    fold_across<F, A>(dst, src, lines, length);
  } else {
    fold_along<F, A>(dst, src, lines, length);
  }
}

/// Fold by any step: M(result so far, next element), from Start on, or from the first element if First. Wide:
/// f16 and bf16 are rounded once, at the end.
template <class M, Along A, bool First, int Start, bool Wide, class Dst, class Src>
inline void fold_by(Dst& dst, const Src& src) {
  using D = typename Dst::DType;
  using C = compute_t<D>;
  const auto [lines, length] = extents<A>(src);
  if (length == 0 && (First || A == Along::col)) return;
  const Lines<Src, A> in(src);
  for (ptrdiff_t line = 0; line < lines; ++line) {
    const auto at = [&](ptrdiff_t i) {
      return static_cast<wide_t<D>>(in.template get<compute_t<typename Src::DType>>(line, i));
    };
    wide_t<D> acc = First ? at(0) : static_cast<wide_t<D>>(Start);
    for (ptrdiff_t i = First; i < length; ++i) {
      const C next = result<D>(M::template of<D>(acc, at(i)));
      if constexpr (Wide && is_small_float<D>) {
        acc = next;
      } else {
        acc = static_cast<wide_t<D>>(value_of<C>(element_of<D>(next)));
      }
    }
    const D element = element_of<D>(static_cast<C>(acc));
    put_results<Dst, A>(dst, line, 1, &element);
  }
}

// --- largest and smallest ----------------------------------------------------------------------------------

/// Return the best of `start` and n values. Any of equal values may be returned, so a zero may have the wrong
/// sign.
template <bool Largest, class C>
[[gnu::noinline]] C best_of(C start, const C* x, ptrdiff_t n) {
  constexpr int lanes = kLineBytes / sizeof(C), vectors = 4;
  typedef C Vec __attribute__((vector_size(kLineBytes)));
  Vec best[vectors];
  const auto take = [](Vec& kept, const Vec& other) {
    kept = is_better<Largest>(other, kept) ? other : kept;
  };
  PTO_UNROLL
  for (int v = 0; v < vectors; ++v) best[v] = start - Vec{};
  ptrdiff_t i = 0;
  const auto next = [&](Vec& kept, ptrdiff_t at) {
    Vec values;
    std::memcpy(&values, x + at, sizeof values);
    take(kept, values);
  };
  for (; i + vectors * lanes <= n; i += vectors * lanes) {
    PTO_UNROLL
    for (int v = 0; v < vectors; ++v) next(best[v], i + v * lanes);
  }
  for (; i + lanes <= n; i += lanes) next(best[0], i);
  take(best[0], best[1]), take(best[2], best[3]), take(best[0], best[2]);
  C found = best[0][0];
  PTO_UNROLL
  for (int j = 1; j < lanes; ++j) found = is_better<Largest>(best[0][j], found) ? best[0][j] : found;
  for (; i < n; ++i) found = is_better<Largest>(x[i], found) ? x[i] : found;
  return found;
}

/// Return the index of the first element equal to a value, n if there is none.
template <class C>
inline ptrdiff_t index_of(C value, const C* x, ptrdiff_t n) {
  constexpr int lanes = kBlock<C>;
  ptrdiff_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    int found = 0;
    for (int j = 0; j < lanes; ++j) found |= x[i + j] == value;
    if (found) break;
  }
  while (i < n && x[i] != value) ++i;
  return i;
}

/// Return the index of the first best element of a line, 0 if the first is NaN, -1 if not needed.
template <bool Largest, bool NeedIndex, Along A, class Src>
inline ptrdiff_t find_best(const Lines<Src, A>& in, ptrdiff_t line, ptrdiff_t length,
                           compute_t<typename Src::DType>& best) {
  using C = compute_t<typename Src::DType>;
  Buffer<C> buffer;
  const ptrdiff_t chunk = Lines<Src, A>::template direct<C> ? length : kChunk;
  best = in.template get<C>(line, 0);
  for (ptrdiff_t i = 0; i < length; i += chunk) {
    const ptrdiff_t n = length - i < chunk ? length - i : chunk;
    best = best_of<Largest>(best, in.template read<C>(line, i, n, buffer.at), n);
  }
  if (best != best) return 0;
  if (!NeedIndex && best != C(0)) return -1;
  for (ptrdiff_t i = 0; i < length; i += chunk) {
    const ptrdiff_t n = length - i < chunk ? length - i : chunk;
    const ptrdiff_t at = index_of(best, in.template read<C>(line, i, n, buffer.at), n);
    if (at < n) return i + at;
  }
  return 0;
}

/// A destination that is not stored.
struct Nowhere {};

/// Store the best element of each line in `value`, its index in `index`; each may be Nowhere.
template <Along A, bool Largest, class Value, class Index, class Src>
inline void extreme_along(Value& value, Index& index, const Src& src, ptrdiff_t lines, ptrdiff_t length) {
  using T = typename Src::DType;
  constexpr bool wants_value = is_tile_data_v<Value>, wants_index = is_tile_data_v<Index>;
  const Lines<Src, A> in(src);
  for (ptrdiff_t line = 0; line < lines; ++line) {
    compute_t<T> best;
    const ptrdiff_t at = find_best<Largest, wants_index>(in, line, length, best);
    if constexpr (wants_index) {
      const auto number = static_cast<typename Index::DType>(at);
      Lines<Index, other(A)>(index).set(0, line, number);
    }
    if constexpr (wants_value) {
      const T element = at >= 0 ? in.get(line, at) : element_of<T>(best);
      Lines<Value, other(A)>(value).set(0, line, element);
    }
  }
}

template <Along A, bool Largest, class Value, class Index, class Src>
inline void extreme_across(Value& value, Index& index, const Src& src, ptrdiff_t lines, ptrdiff_t length) {
  using T = typename Src::DType;
  using C = compute_t<T>;
  using Number = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;  // as wide as the values, or wider
  constexpr bool wants_value = is_tile_data_v<Value>, wants_index = is_tile_data_v<Index>;
  const Lines<Src, other(A)> in(src);
  for (ptrdiff_t first = 0; first < lines; first += kChunk) {
    const ptrdiff_t n = lines - first < kChunk ? lines - first : kChunk;
    Buffer<C> buffer, best;
    Buffer<Number> at;
    const C* x = in.template read<C>(0, first, n, buffer.at);
    for (ptrdiff_t j = 0; j < n; ++j) best.at[j] = x[j], at.at[j] = 0;
    for (ptrdiff_t i = 1; i < length; ++i) {
      x = in.template read<C>(i, first, n, buffer.at);
      C* b = best.at;
      [[maybe_unused]] Number* a = at.at;
      loop<kBlock<C>, !wants_index>(n, [=](ptrdiff_t j) {
        const bool better = is_better<Largest>(x[j], b[j]);
        b[j] = better ? x[j] : b[j];
        if constexpr (wants_index) a[j] = better ? static_cast<Number>(i) : a[j];
      });
    }
    [[maybe_unused]] Buffer<T> elements;
    if constexpr (wants_value) {
      for (ptrdiff_t j = 0; j < n; ++j)  // a NaN keeps its bits
        elements.at[j] = best.at[j] != best.at[j] ? in.get(0, first + j) : element_of<T>(best.at[j]);
    }
    if constexpr (wants_index) {
      Buffer<typename Index::DType> numbers;
      for (ptrdiff_t j = 0; j < n; ++j) numbers.at[j] = static_cast<typename Index::DType>(at.at[j]);
      put_results<Index, A>(index, first, n, numbers.at);
    }
    if constexpr (wants_value) put_results<Value, A>(value, first, n, elements.at);
  }
}

template <Along A, bool Largest, class Value, class Index, class Src>
inline void extreme(Value& value, Index& index, const Src& src) {
  const auto [lines, length] = extents<A>(src);
  if (length == 0) return;
  if constexpr (folds_across<Src, A>) {
    extreme_across<A, Largest>(value, index, src, lines, length);
  } else {
    extreme_along<A, Largest>(value, index, src, lines, length);
  }
}

template <Along A, bool Largest, class Dst, class Src>
inline void extreme_value(Dst& dst, const Src& src) {
  Nowhere nowhere;
  extreme<A, Largest>(dst, nowhere, src);
}
template <Along A, Kind K, class Index, class Src>
inline void index_of_extreme(Index& index, const Src& src) {
  Nowhere nowhere;
  extreme<A, K == Kind::largest>(nowhere, index, src);
}
template <Along A, Kind K, class Value, class Index, class Src>
inline void index_of_extreme(Value& value, Index& index, const Src& src) {
  extreme<A, K == Kind::largest>(value, index, src);
}

}  // namespace pto::detail

namespace pto {

namespace detail {

/// Sum each column as a tree: neighbours, then their sums, every step rounded. An odd last element joins the
/// first pair on a2a3, the last pair on a5 (`odd_one` of the row).
template <class Dst, class Src>
inline void fold_pairs(Dst& dst, const Src& src) {
  using F = Fold<typename Dst::DType, typename Src::DType, false, false>;
  using Acc = typename F::Acc;
  const ptrdiff_t rows = src.GetValidRow(), cols = src.GetValidCol();
  const Lines<Src, Along::col> in(src);
  const Scratch<Acc> scratch(rows);
  Acc* const sums = scratch.at;
  for (ptrdiff_t c = 0; rows > 0 && c < cols; ++c) {
    for (ptrdiff_t r = 0; r < rows; ++r) sums[r] = static_cast<Acc>(in.template get<typename F::From>(c, r));
    const auto add = [&](ptrdiff_t to, Acc x, Acc y) {
      sums[to] = F::step(x, y);
      F::round(sums + to, 1);
    };
    for (ptrdiff_t n = rows; n > 1; n /= 2) {
      const Acc left = sums[n - 1];
      for (ptrdiff_t k = 0; k < n / 2; ++k) add(k, sums[2 * k], sums[2 * k + 1]);
      const ptrdiff_t pair = kIsa == Isa::a2a3 ? 0 : n / 2 - 1;
      if (n % 2 == 1) add(pair, sums[pair], left);
    }
    const auto result = F::element(sums[0]);
    put_results<Dst, Along::col>(dst, c, 1, &result);
  }
}

}  // namespace detail

/// Sum columns with scratch; `pairs` selects the tree of sums, which the cpu profile does not have.
template <class Dst, class Src, class Tmp, class... Events>
PTO_INST RecordEvent TCOLSUM(Dst& dst, Src& src, [[maybe_unused]] Tmp& tmp, bool pairs, Events&... events) {
  PTO_LEGAL(check_tcolsum<Dst, Src>(dst, src));
  TSYNC(events...);
  PTO_TRACE("tcolsum dst src tmp: isBinary", PTO_SAYS(pairs), dst, src, tmp);
  if (pairs && detail::kIsa != detail::Isa::cpu) {
    detail::fold_pairs(dst, src);
  } else {
    detail::fold<detail::Along::col, false, false>(dst, src);
  }
  return {};
}

namespace detail {

/// Store sums of neighbouring columns; the rest of dst becomes zero, also outside its valid region.
template <class Dst, class Src>
inline void pair_sums(Dst& dst, Src& src0) {
  using C = compute_t<typename Dst::DType>;
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  const Lines<Src> in(src0);
  const Lines<Dst> out(dst);
  for (ptrdiff_t r = 0; r < dst.Rows; ++r) {
    for (ptrdiff_t c = 0; c < dst.Cols; c += kChunk / 2) {
      const ptrdiff_t n = dst.Cols - c < kChunk / 2 ? dst.Cols - c : kChunk / 2;
      const ptrdiff_t left = r < rows ? cols - 2 * c : 0;  // columns that are summed from here on
      const ptrdiff_t take = left < 0 ? 0 : left < 2 * n ? left : 2 * n;
      Buffer<C> buffer, sums;
      const C* x = in.template read<C>(r < rows ? r : 0, 2 * c, take, buffer.at);
      for (ptrdiff_t j = 0; j < n; ++j) sums.at[j] = 0;
      for (ptrdiff_t j = 0; j < take / 2; ++j) sums.at[j] = static_cast<C>(x[2 * j] + x[2 * j + 1]);
      if (take % 2) sums.at[take / 2] = static_cast<C>(x[take - 1] + C(0));
      out.template write<C>(r, c, n, sums.at);
    }
  }
}

}  // namespace detail

}  // namespace pto
