// Lines of tiles: the basis of every family of instructions.
//
// Instructions walk a tile line by line; a line is a row or a column. `Lines<TileT, A>` locates the elements
// of a line, for all six layouts, inner boxes and compact modes. It returns a pointer into the tile if the
// elements are contiguous and have the requested type; otherwise it copies a chunk of them.
//
//   Lines<TileT, Along::row> in(src);               // or Along::col; lines are counted from 0
//   float buffer[kChunk];
//   const float* x = in.read<float>(r, c, n, buffer);     // n values of row r from column c on, n <= kChunk
//   float* y = out.spot<float>(r, c, buffer2);            // where to write: the tile itself, or the buffer
//   ...
//   out.write<float>(r, c, n, y);                         // copies the buffer to the tile, if it was used
//
// The requested type is the element type itself (elements are copied bit for bit; a 4-bit element becomes an
// object that holds one element) or its `compute_t` (elements are converted: f16, bf16 and smaller floats to
// float and back to nearest even, int4b_t to int8_t). `in.direct<C>` is true if no copy is made; n then has
// no limit. `get<C>(line, i)` and `set<C>(line, i, value)` access one element.
//
//   map(dst, f, src...)         dst[r, c] = f(src[r, c]...) on the valid region of dst, in compute types;
//                               any layouts; dst may also be a source (in place)
//   map_region(rows, cols, ...) the same on the first rows x cols elements
//   transfer<C>(rows, cols, dst, src)
//                               dst[r, c] = src[r, c] as values of type C; a copy bit for bit if both tiles
//                               have the element type C
//   fill_region(rows, cols, dst, element)
//                               one element in all of the first rows x cols
//   loop(n, body)               body(i) for i < n, in blocks that compilers vectorise at -O2; the iterations
//                               must not depend on each other
//   widen(from, to, n)          converts n elements to values; narrow(from, to, n) is the reverse
//   PTO_EXACT_LOOP              on a function with such a loop over floats: product and sum are not fused
//                               into one rounding (compilers do that by default), and all calls are inlined
//   along<TileT>                the direction in which the elements of a tile are contiguous, else rows
//
// Every access to a tile goes through `Tile::data()`, which keeps the accesses of different instructions in
// program order even if tiles of different types share bytes.
#pragma once

#include <cstring>

#include "pto/core/assign.hpp"
#include "pto/core/halves.hpp"
#include "pto/core/vector_math.hpp"

namespace pto::detail {

enum class Along : bool { row, col };

/// Elements per copy, for lines that cannot be used in place.
inline constexpr ptrdiff_t kChunk = 256;

// --- memory that other cores use ---------------------------------------------------------------------------

/// Perform *at = f(*at) atomically.
template <class T, class F>
inline void update(T* at, F&& f) {
  static_assert(bits_of<T> >= 8);
  auto* word = reinterpret_cast<code_t<T>*>(at);
  code_t<T> seen = __atomic_load_n(word, __ATOMIC_RELAXED), next;
  do {
    next = __builtin_bit_cast(code_t<T>, f(__builtin_bit_cast(T, seen)));
  } while (!__atomic_compare_exchange_n(word, &seen, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

// --- loops -------------------------------------------------------------------------------------------------

/// Call body(i) for 0 <= i < n. The inner loop has a constant length, so that compilers vectorise it; for a
/// Short body it is also unrolled.
template <int Block = 32, bool Short = false, class Body>
PTO_INLINE void loop(ptrdiff_t n, Body body) {
  const ptrdiff_t rest = n % Block, whole = n - rest;
  for (ptrdiff_t i = 0; i < whole; i += Block) {
    if constexpr (Short) {
      PTO_INDEPENDENT_MANY
      for (int j = 0; j < Block; ++j) body(i + j);
    } else {
      PTO_INDEPENDENT
      for (int j = 0; j < Block; ++j) body(i + j);
    }
  }
  for (ptrdiff_t j = 0; j < rest; ++j) body(whole + j);
}

/// A good block for elements of type C.
template <class C>
inline constexpr int kBlock = sizeof(C) == 1 ? 64 : 128 / static_cast<int>(sizeof(C));

// --- elements to values and back ---------------------------------------------------------------------------

// Conversions of f16 on machines that have instructions for them, one vector at a time.
#if defined(__aarch64__)
#define PTO_CONVERTS_HALVES 1
inline constexpr int kHalves = 4;
typedef short Halves __attribute__((vector_size(8)));
#elif defined(__F16C__)
#define PTO_CONVERTS_HALVES 1
inline constexpr int kHalves = 8;
#ifdef __clang__
typedef _Float16 Halves __attribute__((vector_size(16)));
#else
typedef short Halves __attribute__((vector_size(16)));
#endif
#endif

#ifdef PTO_CONVERTS_HALVES
typedef float Floats __attribute__((vector_size(kHalves * sizeof(float))));
typedef int Ints __attribute__((vector_size(kHalves * sizeof(int))));

inline void widen_halves(const half* from, float* to) {
  Halves codes;
  Floats values;
  std::memcpy(&codes, from, sizeof codes);
#if defined(__aarch64__)
  __asm__("fcvtl %0.4s, %1.4h" : "=w"(values) : "w"(codes));
#elif defined(__clang__)
  values = __builtin_convertvector(codes, Floats);
#else
  values = __builtin_ia32_vcvtph2ps256(codes);
#endif
  std::memcpy(to, &values, sizeof values);
}
/// Round to nearest even; every NaN becomes the canonical NaN.
inline void narrow_halves(const float* from, half* to) {
  const Floats nan = __builtin_bit_cast(Floats, Ints{} + 0x7FC00000);
  Floats values;
  Halves codes;
  std::memcpy(&values, from, sizeof values);
  values = values == values ? values : nan;
#if defined(__aarch64__)
  __asm__("fcvtn %0.4h, %1.4s" : "=w"(codes) : "w"(values));
#elif defined(__clang__)
  codes = __builtin_convertvector(values, Halves);
#else
  codes = __builtin_ia32_vcvtps2ph256(values, 0);
#endif
  std::memcpy(static_cast<void*>(to), &codes, sizeof codes);
}
#endif

/// Convert n elements to values.
template <class T, class C>
[[gnu::noinline]] void widen(const T* from, C* to, ptrdiff_t n) {
#ifdef PTO_CONVERTS_HALVES
  if constexpr (std::is_same_v<T, half>) {
    ptrdiff_t i = 0;
    for (; i + kHalves <= n; i += kHalves) widen_halves(from + i, to + i);
    if (i < n) {
      half rest[kHalves] = {};
      float values[kHalves];
      std::memcpy(static_cast<void*>(rest), from + i, static_cast<size_t>(n - i) * sizeof(half));
      widen_halves(rest, values);
      std::memcpy(to + i, values, static_cast<size_t>(n - i) * sizeof(float));
    }
    return;
  }
#endif
  if constexpr (is_small_float<T>) {
    loop(n, [=](ptrdiff_t i) { to[i] = decode_code<dtype_of<T>>(from[i].data); });
  } else {
    for (ptrdiff_t i = 0; i < n; ++i) to[i] = static_cast<C>(from[i]);
  }
}

/// Convert n values to the nearest elements.
template <class T, class C>
[[gnu::noinline]] void narrow(const C* from, T* to, ptrdiff_t n) {
#ifdef PTO_CONVERTS_HALVES
  if constexpr (std::is_same_v<T, half>) {
    ptrdiff_t i = 0;
    for (; i + kHalves <= n; i += kHalves) narrow_halves(from + i, to + i);
    if (i < n) {
      float values[kHalves] = {};
      half rest[kHalves];
      std::memcpy(values, from + i, static_cast<size_t>(n - i) * sizeof(float));
      narrow_halves(values, rest);
      std::memcpy(static_cast<void*>(to + i), rest, static_cast<size_t>(n - i) * sizeof(half));
    }
    return;
  }
#endif
  if constexpr (is_small_float<T>) {
    loop(n, [=](ptrdiff_t i) { to[i].data = static_cast<code_t<T>>(encode_code<dtype_of<T>>(from[i])); });
  } else {
    for (ptrdiff_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
  }
}

/// Convert an element to a value, or (element_of) a value to the nearest element. C is T or compute_t<T>.
template <class C, class T>
constexpr C value_of(T element) {
  if constexpr (std::is_same_v<C, T>) {
    return element;
  } else if constexpr (is_small_float<T>) {
    return static_cast<C>(decode_code<dtype_of<T>>(element.data));
  } else {
    return static_cast<C>(element);
  }
}
template <class T, class C>
constexpr T element_of(C value) {
  if constexpr (std::is_same_v<C, T>) {
    return value;
  } else {
    return T(value);
  }
}

// --- lines -------------------------------------------------------------------------------------------------

template <class TileT>
inline constexpr bool row_is_contiguous = TileT::form == Form::ND;
template <class TileT>
inline constexpr bool col_is_contiguous = TileT::form == Form::DN;
/// The better direction to walk a tile in.
template <class TileT>
inline constexpr Along along = col_is_contiguous<TileT> ? Along::col : Along::row;

template <class TileT, Along A = Along::row>
class Lines {
 public:
  using T = typename TileT::DType;
  static constexpr bool is_row = A == Along::row;
  static constexpr bool contiguous = is_row ? row_is_contiguous<TileT> : col_is_contiguous<TileT>;
  /// True if values of type C are accessed in the tile, without a copy.
  template <class C>
  static constexpr bool direct = contiguous && std::is_same_v<C, T> && bits_of<T> >= 8;
  /// Elements from the start of a line to the start of the next line; for contiguous lines of a dense tile.
  static ptrdiff_t stride(const TileT& tile) { return is_row ? tile.Cols : tile.Rows; }

  explicit Lines(const TileT& tile) : size_(tile), data_(tile.data()), pitch_(tile.pitch()) {}

  /// Return the storage offset of element i of a line, in elements.
  ptrdiff_t at(ptrdiff_t line, ptrdiff_t i) const {
    return is_row ? offset<TileT::form, TileT::InnerRows, TileT::InnerCols>(size_.Cols, pitch_, line, i)
                  : offset<TileT::form, TileT::InnerRows, TileT::InnerCols>(size_.Cols, pitch_, i, line);
  }

  template <class C = T>
  C get(ptrdiff_t line, ptrdiff_t i) const {
    return value_of<C>(element_at(data_, static_cast<size_t>(at(line, i))));
  }
  template <class C = T>
  void set(ptrdiff_t line, ptrdiff_t i, C value) const {
    put_element(data_, static_cast<size_t>(at(line, i)), element_of<T>(value));
  }

  template <class C>
  const C* read(ptrdiff_t line, ptrdiff_t first, ptrdiff_t n, C* buffer) const {
    if constexpr (direct<C>) {
      return data_ + at(line, first);
    } else {
      for (ptrdiff_t done = 0, k; done < n; done += k) {
        k = run(first + done, n - done);
        const ptrdiff_t from = at(line, first + done);
        if (boxed && k == group) {
          fetch(from, group, buffer + done);  // a constant number of elements
        } else {
          fetch(from, k, buffer + done);
        }
      }
      return buffer;
    }
  }

  template <class C>
  C* spot(ptrdiff_t line, ptrdiff_t first, C* buffer) const {
    if constexpr (direct<C>) {
      return data_ + at(line, first);
    } else {
      return buffer;
    }
  }

  template <class C>
  void write(ptrdiff_t line, ptrdiff_t first, ptrdiff_t n, const C* values) const {
    if constexpr (direct<C>) {
      T* to = data_ + at(line, first);
      if (values != to) std::memmove(to, values, static_cast<size_t>(n) * sizeof(T));
    } else {
      for (ptrdiff_t done = 0, k; done < n; done += k) {
        k = run(first + done, n - done);
        const ptrdiff_t to = at(line, first + done);
        if (boxed && k == group) {
          put(to, group, values + done);
        } else {
          put(to, k, values + done);
        }
      }
    }
  }

  /// Elements from the start of a contiguous line to the start of the next line, for every compact mode.
  ptrdiff_t step() const { return is_row ? size_.Cols : pitch_; }

  T* data() const { return data_; }
  ptrdiff_t cols() const { return size_.Cols; }
  ptrdiff_t pitch() const { return pitch_; }

 private:
  // A line consists of groups (the inner boxes that it crosses); elements of a group are `apart()` apart.
  static constexpr bool boxed = TileT::isBoxedLayout;
  static constexpr bool inner_rows = TileT::isInnerRowMajor;
  static constexpr ptrdiff_t group = is_row ? TileT::InnerCols : TileT::InnerRows;
  ptrdiff_t apart() const {
    if constexpr (boxed)
      return is_row ? (inner_rows ? 1 : TileT::InnerRows) : (inner_rows ? TileT::InnerCols : 1);
    return is_row ? (TileT::isRowMajor ? 1 : pitch_) : (TileT::isRowMajor ? size_.Cols : 1);
  }
  ptrdiff_t run(ptrdiff_t first, ptrdiff_t n) const {
    if constexpr (!boxed) return n;
    const ptrdiff_t left = group - first % group;
    return left < n ? left : n;
  }

  template <class C>
  PTO_INLINE void fetch(ptrdiff_t from, ptrdiff_t n, C* to) const {
    const ptrdiff_t step = apart();
    if constexpr (bits_of<T> == 4) {
      for (ptrdiff_t i = 0; i < n; ++i)
        to[i] = value_of<C>(element_at(data_, static_cast<size_t>(from + i * step)));
    } else if (step == 1) {
      if constexpr (std::is_same_v<C, T>) {
        std::memcpy(to, data_ + from, static_cast<size_t>(n) * sizeof(T));
      } else {
        widen(data_ + from, to, n);
      }
    } else {
      const T* at = data_ + from;
      for (ptrdiff_t i = 0; i < n; ++i) to[i] = value_of<C>(at[i * step]);
    }
  }
  template <class C>
  PTO_INLINE void put(ptrdiff_t to, ptrdiff_t n, const C* from) const {
    const ptrdiff_t step = apart();
    if constexpr (bits_of<T> == 4) {
      for (ptrdiff_t i = 0; i < n; ++i)
        put_element(data_, static_cast<size_t>(to + i * step), element_of<T>(from[i]));
    } else if (step == 1) {
      if constexpr (std::is_same_v<C, T>) {
        std::memcpy(data_ + to, from, static_cast<size_t>(n) * sizeof(T));
      } else {
        narrow(from, data_ + to, n);
      }
    } else {
      T* at = data_ + to;
      for (ptrdiff_t i = 0; i < n; ++i) at[i * step] = element_of<T>(from[i]);
    }
  }

  [[no_unique_address]] typename TileT::Size size_;
  T* data_;
  ptrdiff_t pitch_;
};

// --- element by element ------------------------------------------------------------------------------------

/// True if F is a long chain of dependent steps. Four elements (or four vectors) are then computed side by
/// side, because the instruction window of a processor is limited.
template <class F>
inline constexpr bool is_long = false;

/// True if F, or a part of F, is only one or two instructions.
template <class F>
inline constexpr bool is_short = false;

/// A function that computes F for leading floats out of n and returns their number; null: loops are as fast.
template <class F>
inline constexpr ptrdiff_t (*by_hand)(ptrdiff_t n, float* out, const float* in) = nullptr;

/// Compute out[i] = f(in[i]...). Does not depend on the shape, so that tiles of all shapes share this code.
template <class F, class Out, class... In>
PTO_EXACT_LOOP void map_run(ptrdiff_t n, F f, Out* out, const In*... in) {
  if constexpr (by_hand<F> != nullptr) {
    const ptrdiff_t done = by_hand<F>(n, out, in...);
    n -= done, out += done, ((in += done), ...);
  }
  if constexpr (is_long<F>) {
    constexpr int block = kBlock<Out>, step = block / 4;
    for (; n >= block; n -= block, out += block, ((in += block), ...)) {
      PTO_INDEPENDENT
      for (int j = 0; j < step; ++j) {
        const Out a = f(in[j]...), b = f(in[j + step]...), c = f(in[j + 2 * step]...),
                  d = f(in[j + 3 * step]...);
        out[j] = a, out[j + step] = b, out[j + 2 * step] = c, out[j + 3 * step] = d;
      }
    }
  }
  loop<kBlock<Out>, is_short<F>>(n, [=](ptrdiff_t i) { out[i] = f(in[i]...); });
}

/// An operand of `map_runs`, which does the same for several lines: consecutive lines are `step` apart.
template <class T>
struct Lined {
  T* at;
  ptrdiff_t step;
};
template <class F, class Out, class... In>
[[gnu::noinline]] void map_runs(ptrdiff_t lines, ptrdiff_t n, F f, Lined<Out> out, Lined<const In>... in) {
  for (ptrdiff_t line = 0; line < lines; ++line)
    map_run(n, f, out.at + line * out.step, (in.at + line * in.step)...);
}

/// F in f16 instructions of the machine, as `of(f, vectors..)`, if `any` is true: see elementwise.hpp.
template <class F>
struct InHalves {
  static constexpr bool any = false;
};

#ifdef PTO_COMPUTES_HALVES
/// `map_runs` for f16, computed in f16.
template <class F, class... In>
[[gnu::noinline]] void map_halves(ptrdiff_t lines, ptrdiff_t n, F f, Lined<half> out, Lined<const In>... in) {
  using namespace halves;
  const auto one = [f](half* to, const In*... from) {
    save(to, canonical(InHalves<F>::of(f, load(from)...)));
  };
  for (ptrdiff_t line = 0; line < lines; ++line, out.at += out.step, ((in.at += in.step), ...)) {
    ptrdiff_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      const Vec a = canonical(InHalves<F>::of(f, load(in.at + i)...)),
                b = canonical(InHalves<F>::of(f, load(in.at + i + kLanes)...)),
                c = canonical(InHalves<F>::of(f, load(in.at + i + 2 * kLanes)...)),
                d = canonical(InHalves<F>::of(f, load(in.at + i + 3 * kLanes)...));
      save(out.at + i, a), save(out.at + i + kLanes, b);
      save(out.at + i + 2 * kLanes, c), save(out.at + i + 3 * kLanes, d);
    }
    for (; i + kLanes <= n; i += kLanes) one(out.at + i, (in.at + i)...);
    if (i < n) {
      const size_t rest = static_cast<size_t>(n - i) * sizeof(half);
      struct Padded {
        half at[kLanes] = {};
        Padded(const half* from, size_t bytes) { std::memcpy(static_cast<void*>(at), from, bytes); }
      };
      half last[kLanes];
      one(last, Padded(in.at + i, rest).at...);
      std::memcpy(static_cast<void*>(out.at + i), last, rest);
    }
  }
}
#endif

template <class C>
struct Buffer {
  Buffer() {}  // leaves the elements uninitialized
  alignas(64) C at[kChunk];
};

/// Heap memory for n elements, for instructions that must read all of a tile before they write.
template <class C>
struct Scratch {
  explicit Scratch(ptrdiff_t n) : at(static_cast<C*>(std::malloc(static_cast<size_t>(n + 1) * sizeof(C)))) {
    if (at == nullptr) failf("no memory for %lld elements", static_cast<long long>(n));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(at); }
  C* const at;
};

template <class TileT>
inline constexpr bool is_dense =
    TileT::Compact == CompactMode::Null || TileT::Compact == CompactMode::RowAlignedPadding;

template <Along A, class Dst, class F, class... Src>
inline void map_lines(ptrdiff_t lines, ptrdiff_t length, Dst& dst, F f, const Src&... src) {
  using Out = compute_t<typename Dst::DType>;
  using To = Lines<Dst, A>;
  constexpr bool all_contiguous = To::contiguous && (Lines<Src, A>::contiguous && ...);
  constexpr bool all_direct =
      To::template direct<Out> && (Lines<Src, A>::template direct<compute_t<typename Src::DType>> && ...);
  if constexpr (all_contiguous && is_dense<Dst> && (is_dense<Src> && ...)) {
    const ptrdiff_t stride = To::stride(dst);
    if (length == stride && ((Lines<Src, A>::stride(src) == stride) && ...)) {  // no gaps: use one long line
      length *= lines;
      lines = length > 0;
    }
  }
  const To to(dst);
  if constexpr (all_direct) {
    map_runs(lines, length, f, Lined<Out>{to.data(), to.step()},
             Lined<const typename Src::DType>{src.data(), Lines<Src, A>(src).step()}...);
  } else {
#ifdef PTO_COMPUTES_HALVES
    if constexpr (all_contiguous && InHalves<F>::any) {
      if (halves::are_computed()) {
        map_halves(lines, length, f, Lined<half>{to.data(), to.step()},
                   Lined<const half>{src.data(), Lines<Src, A>(src).step()}...);
        return;
      }
    }
#endif
    for (ptrdiff_t line = 0; line < lines; ++line) {
      for (ptrdiff_t i = 0; i < length; i += kChunk) {
        const ptrdiff_t n = length - i < kChunk ? length - i : kChunk;
        Buffer<Out> buffer;
        Out* out = to.template spot<Out>(line, i, buffer.at);
        map_run(n, f, out,
                Lines<Src, A>(src).template read<compute_t<typename Src::DType>>(
                    line, i, n, Buffer<compute_t<typename Src::DType>>().at)...);
        to.template write<Out>(line, i, n, out);
      }
    }
  }
}

/// Compute dst[r, c] = f(src[r, c]...) for r < rows and c < cols, in compute types.
template <class Dst, class F, class... Src>
inline void map_region(ptrdiff_t rows, ptrdiff_t cols, Dst& dst, F f, const Src&... src) {
  if constexpr (along<Dst> == Along::col && ((along<Src> == Along::col) && ...)) {
    map_lines<Along::col>(cols, rows, dst, f, src...);
  } else {
    map_lines<Along::row>(rows, cols, dst, f, src...);
  }
}

/// Compute dst[r, c] = f(src[r, c]...) on the valid region of dst.
template <class Dst, class F, class... Src>
inline void map(Dst& dst, F f, const Src&... src) {
  map_region(dst.GetValidRow(), dst.GetValidCol(), dst, f, src...);
}

/// Store dst[r, c] = src[r, c] for r < rows and c < cols, as values of type C: the element type of both tiles
/// for a copy bit for bit, or their common compute type for a conversion.
template <class C, Along A, class Dst, class Src>
inline void transfer_lines(ptrdiff_t lines, ptrdiff_t length, Dst& dst, const Src& src) {
  using To = Lines<Dst, A>;
  using From = Lines<Src, A>;
  if constexpr (To::contiguous && From::contiguous && is_dense<Dst> && is_dense<Src>) {
    if (length == To::stride(dst) && length == From::stride(src)) {
      length *= lines;
      lines = length > 0;
    }
  }
  const To to(dst);
  const From from(src);
  for (ptrdiff_t line = 0; line < lines; ++line) {
    if constexpr (To::template direct<C> || From::template direct<C>) {
      to.write(line, 0, length, from.read(line, 0, length, to.template spot<C>(line, 0, nullptr)));
    } else {
      for (ptrdiff_t i = 0; i < length; i += kChunk) {
        const ptrdiff_t n = length - i < kChunk ? length - i : kChunk;
        Buffer<C> buffer;
        to.write(line, i, n, from.read(line, i, n, buffer.at));
      }
    }
  }
}
template <class C, class Dst, class Src>
inline void transfer(ptrdiff_t rows, ptrdiff_t cols, Dst& dst, const Src& src) {
  if constexpr (along<Dst> == Along::col && along<Src> == Along::col) {
    transfer_lines<C, Along::col>(cols, rows, dst, src);
  } else {
    transfer_lines<C, Along::row>(rows, cols, dst, src);
  }
}

/// Store one element in all of the first rows x cols elements.
template <class Dst>
inline void fill_region(ptrdiff_t rows, ptrdiff_t cols, Dst& dst, typename Dst::DType element) {
  using T = typename Dst::DType;
  constexpr Along A = along<Dst>;
  const Lines<Dst, A> to(dst);
  const ptrdiff_t lines = A == Along::row ? rows : cols, length = A == Along::row ? cols : rows;
  Buffer<T> same;
  for (ptrdiff_t i = 0; i < kChunk && i < length; ++i) same.at[i] = element;
  for (ptrdiff_t line = 0; line < lines; ++line) {
    for (ptrdiff_t i = 0; i < length; i += kChunk) {
      to.write(line, i, length - i < kChunk ? length - i : kChunk, same.at);
    }
  }
}

}  // namespace pto::detail
