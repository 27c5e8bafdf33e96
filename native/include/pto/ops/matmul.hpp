// Matrix products of the cube unit: Left x Right into Acc, plain, accumulating, biased, block-scaled.
//
// Float results are those of a chain of fused multiply-adds in f32 with k rising from 0 (gemm.hpp says how
// close); the addend, accumulator or bias, joins once at the end. Integers accumulate in i32 and wrap.
#pragma once

#include "pto/core/access.hpp"
#include "pto/core/events.hpp"
#include "pto/ops/gemm.hpp"

namespace pto {

namespace detail {

// --- operands ---------------------------------------------------------------------------------------------

/// f32 with `Kept` bits behind the point, rounded to nearest: ties away from zero or to even.
template <int Kept>
inline float shortened(float x, bool away) {
  constexpr int cut = 23 - Kept;
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t half = (1u << (cut - 1)) - (away ? 0 : 1u - (bits >> cut & 1));
  const uint32_t rounded = (bits + half) & ~((1u << cut) - 1);
  return (bits & 0x7F800000) == 0x7F800000 ? x : __builtin_bit_cast(float, rounded);
}

/// How elements of type T become numbers to multiply; TF32 mode shortens f32 on hardware.
template <class T>
struct Operand {
  bool tf32 = false, away = false;

  Operand() {
    if constexpr (std::is_same_v<T, float> && kIsa != Isa::cpu) {
      const uint64_t ctrl = core().ctrl;
      tf32 = ctrl >> MAD_MODE_BIT & 1;
      away = ctrl >> MAD_ROUND_MODE_BIT & 1;
    }
  }
  void adjust(float* x, ptrdiff_t n) const {
    if constexpr (std::is_same_v<T, float> && kIsa != Isa::cpu) {
      constexpr int kept = kIsa == Isa::a2a3 ? 11 : 10;
      if (tf32)
        for (ptrdiff_t i = 0; i < n; ++i) x[i] = shortened<kept>(x[i], away);
    }
  }
};

struct NoScale {
  static constexpr bool any = false;
  void apply(ptrdiff_t, ptrdiff_t, ptrdiff_t, float*) const {}
};

/// Scales of 32 elements of k each: of row i of a (`Left`), or of column i of b.
template <bool Left, class Scale>
struct MxScale {
  static constexpr bool any = true;
  static constexpr ptrdiff_t group = 32;
  using T = typename Scale::DType;
  /// Powers of two scale small numbers exactly in f32, unless they leave its range.
  static constexpr bool is_power = sizeof(T) == 1 && (dtype_of<T> == DType::f8e8m0 || !is_float_v<T>);
  Lines<Scale, Left ? Along::row : Along::col> lines;

  explicit MxScale(const Scale& tile) : lines(tile) {}
  auto factor(ptrdiff_t i, ptrdiff_t k) const {
    if constexpr (is_power) {
      return decode_code<DType::f8e8m0>(__builtin_bit_cast(uint8_t, lines.get(i, k / group)));
    } else {
      return static_cast<double>(lines.template get<compute_t<T>>(i, k / group));
    }
  }
  bool is_small(ptrdiff_t size, ptrdiff_t depth) const {
    if constexpr (!is_power) return false;
    for (ptrdiff_t i = 0; i < size; ++i) {
      for (ptrdiff_t k = 0; k < depth; k += group)
        if (const auto f = factor(i, k); f < 0x1p-100f || f > 0x1p100f) return false;
    }
    return true;
  }
  void apply(ptrdiff_t i, ptrdiff_t k, ptrdiff_t n, float* x) const {
    for (ptrdiff_t done = 0, step; done < n; done += step) {
      step = group - (k + done) % group;
      if (step > n - done) step = n - done;
      const float f = static_cast<float>(factor(i, k + done));
      for (ptrdiff_t j = 0; j < step; ++j) x[done + j] *= f;
    }
  }
};

/// The same from four bytes per 64 elements: Ea, an e6m2 number; Eb, a doubling per 8; Ec, one per 4
/// elements.
template <bool Left, class Scale>
struct Hif4Scale {
  static constexpr bool any = true;
  Lines<Scale, Left ? Along::row : Along::col> lines;

  explicit Hif4Scale(const Scale& tile) : lines(tile) {}
  float factor(ptrdiff_t i, ptrdiff_t k) const {
    const ptrdiff_t cell = k / 64 * 4, t = k % 64;
    const uint32_t ea = lines.get(i, cell), eb = lines.get(i, cell + 1);
    const uint32_t ec =
        static_cast<uint32_t>(lines.get(i, cell + 2)) | static_cast<uint32_t>(lines.get(i, cell + 3)) << 8;
    if (ea == 0xFF) return __builtin_nanf("");
    const uint32_t power = (ea >> 2) - 48 + 127 + (eb >> (t / 8) & 1) + (ec >> (t / 4) & 1);
    return __builtin_bit_cast(float, power << 23 | (ea & 3) << 21);
  }
  bool is_small(ptrdiff_t, ptrdiff_t) const { return true; }
  void apply(ptrdiff_t i, ptrdiff_t k, ptrdiff_t n, float* x) const {
    for (ptrdiff_t j = 0; j < n; ++j) x[j] *= factor(i, k + j);
  }
};

/// A reader (gemm.hpp) of a tile whose lines along k, rows of a or columns of b, may be scaled.
template <bool Left, class TileT, class Scale>
struct TileReader {
  using T = typename TileT::DType;
  static constexpr bool inner_rows = TileT::isBoxedLayout ? TileT::isInnerRowMajor : TileT::form == Form::ND;
  static constexpr bool kRowLines = Scale::any ? Left : inner_rows;  // scales go along k
  Lines<TileT, kRowLines ? Along::row : Along::col> lines;
  Scale scale;
  Operand<T> operand;

  /// Squares inside a box, whose runs are the same distance apart.
  bool read_square(ptrdiff_t line, ptrdiff_t first, float (*out)[gemm::kLanes]) const {
    constexpr ptrdiff_t n = gemm::kLanes;
    constexpr ptrdiff_t run = kRowLines ? TileT::InnerCols : TileT::InnerRows;
    constexpr ptrdiff_t high = kRowLines ? TileT::InnerRows : TileT::InnerCols;
    if constexpr (std::is_same_v<T, half> && !Scale::any && kRowLines == inner_rows && run % n == 0 &&
                  high % n == 0) {
      if (line % n != 0 || first % n != 0) return false;
      const T* at = lines.data() + lines.at(line, first);
      for (ptrdiff_t l = 0; l < n; ++l) widen(at + l * run, out[l], n);
      return true;
    }
    return false;
  }

  void read(ptrdiff_t line, ptrdiff_t first, ptrdiff_t n, float* out) const {
    if constexpr (std::is_same_v<compute_t<T>, float>) {
      const float* found = lines.template read<float>(line, first, n, out);
      if (found != out) std::memcpy(out, found, static_cast<size_t>(n) * sizeof(float));
      operand.adjust(out, n);
      scale.apply(line, first, n, out);
    } else {
      Buffer<compute_t<T>> buffer;
      for (ptrdiff_t i = 0; i < n; i += kChunk) {
        const ptrdiff_t count = n - i < kChunk ? n - i : kChunk;
        const auto* found = lines.template read<compute_t<T>>(line, first + i, count, buffer.at);
        for (ptrdiff_t j = 0; j < count; ++j) out[i + j] = static_cast<float>(found[j]);
      }
    }
  }
};

// --- results ----------------------------------------------------------------------------------------------

struct NoAddend {
  static constexpr bool any = false;
};
/// What joins a sum: an element of the accumulator, or of the only row of the bias.
template <class TileT, bool OneRow>
struct Addend {
  static constexpr bool any = true;
  using T = typename TileT::DType;
  /// Whether 16 columns lie side by side.
  static constexpr bool in_runs =
      TileT::form == Form::ND || (TileT::form == Form::NZ && TileT::InnerCols == 16);
  Lines<TileT> lines;
  ptrdiff_t row(ptrdiff_t r) const { return OneRow ? 0 : r; }
  const T* run(ptrdiff_t r, ptrdiff_t c) const { return lines.data() + lines.at(row(r), c); }
  template <class C>
  C get(ptrdiff_t r, ptrdiff_t c) const {
    return static_cast<C>(lines.template get<compute_t<T>>(row(r), c));
  }
};

/// A sum of f32, or of integers that wrap.
template <class T>
inline T joined(T in, float sum) {
  if constexpr (is_float_v<T>) return static_cast<T>(in + sum);
  return static_cast<T>(static_cast<uint32_t>(in) + static_cast<uint32_t>(static_cast<int32_t>(sum)));
}

/// n sums, usually 16, joined with what lies at `in`.
template <class T>
inline void put_run(T* out, const T* in, const float* sums, ptrdiff_t n) {
  if (n == 16) {
    T line[16];
    if (in == nullptr) {
      for (int j = 0; j < 16; ++j) line[j] = static_cast<T>(sums[j]);
    } else {
      for (int j = 0; j < 16; ++j) line[j] = joined(in[j], sums[j]);
    }
    std::memcpy(out, line, sizeof line);
  } else {
    for (ptrdiff_t j = 0; j < n; ++j)
      out[j] = in == nullptr ? static_cast<T>(sums[j]) : joined(in[j], sums[j]);
  }
}

/// `count` sums to a row of dst. `first`: they begin a result, so that the addend joins.
template <class Dst, class Add>
inline void put_sums(const Lines<Dst>& to, const Add& addend, bool first, ptrdiff_t r, ptrdiff_t c,
                     const float* sums, ptrdiff_t count) {
  using T = typename Dst::DType;
  constexpr bool runs = [] {
    if constexpr (!Addend<Dst, false>::in_runs) return false;
    if constexpr (Add::any) return Add::in_runs && std::is_same_v<typename Add::T, T>;
    return true;
  }();
  if constexpr (runs) {
    for (ptrdiff_t i = 0; i < count; i += 16) {
      T* out = to.data() + to.at(r, c + i);
      const T* in = first ? nullptr : out;
      if constexpr (Add::any) in = first ? addend.run(r, c + i) : out;
      put_run(out, in, sums + i, count - i < 16 ? count - i : 16);
    }
  } else {
    for (ptrdiff_t i = 0; i < count; ++i) {
      T in = first ? T(0) : to.get(r, c + i);
      if constexpr (Add::any) in = first ? addend.template get<T>(r, c + i) : in;
      to.set(r, c + i, Add::any || !first ? joined(in, sums[i]) : static_cast<T>(sums[i]));
    }
  }
}

// --- products ---------------------------------------------------------------------------------------------

/// f32(acc + product), rounded once: an even last bit of the sum in double moves towards what it lost.
inline float fused_step(float acc, double product) {
  const double sum = acc + product, part = sum - acc;
  const double lost = (acc - (sum - part)) + (product - part);
  uint64_t bits = __builtin_bit_cast(uint64_t, sum);
  if (lost != 0 && lost == lost && (bits & 1) == 0) bits += (lost > 0) == (sum > 0) ? 1 : -1;
  return static_cast<float>(__builtin_bit_cast(double, bits));
}

/// Scaled products that f32 cannot hold: one by one, in double.
template <class Dst, class A, class B, class Add>
inline void product_in_double(Dst& dst, const A& a, const B& b, int m, int n, int k, const Add& addend) {
  const Lines<Dst> to(dst);
  for (ptrdiff_t i = 0; i < m; ++i) {
    for (ptrdiff_t j = 0; j < n; ++j) {
      float sum = 0;
      for (ptrdiff_t l = 0; l < k; ++l) {
        const double x = static_cast<double>(a.lines.template get<float>(i, l)) * a.scale.factor(i, l);
        const double y = static_cast<double>(b.lines.template get<float>(j, l)) * b.scale.factor(j, l);
        sum = fused_step(sum, x * y);
      }
      put_sums(to, addend, true, i, j, &sum, 1);
    }
  }
}

template <class Dst, class A, class B, class ScaleA, class ScaleB, class Add>
inline void product(Dst& dst, A& a, B& b, const ScaleA& scale_a, const ScaleB& scale_b, const Add& addend) {
  static_assert(A::Loc == TileType::Left,
                "[PTO][SA-0225] TMATMUL: the first operand is no Left tile; fix: TMOV it to Left");
  static_assert(B::Loc == TileType::Right,
                "[PTO][SA-0227] TMATMUL: the second operand is no Right tile; fix: TMOV it to Right");
  static_assert(Dst::Loc == TileType::Acc, "[PTO][SA-0226] TMATMUL: the result is no Acc tile");
  using TA = typename A::DType;
  using TB = typename B::DType;
  constexpr bool whole = !is_float_v<TA>;
  static_assert(whole == !is_float_v<TB> && std::is_same_v<typename Dst::DType, float> == !whole &&
                    (!whole || (sizeof(TA) == 1 && sizeof(TB) == 1)),
                "[PTO][SA-0185] TMATMUL: no product of these element types; "
                "fix: floats go to an f32 accumulator, 8-bit integers to an i32 one");
  static_assert(kIsa == Isa::cpu || (A::Rows == Dst::Rows && A::Cols == B::Rows && B::Cols == Dst::Cols),
                "[PTO][SA-0060] TMATMUL: the shapes do not fit; fix: make them MxK, KxN and MxN");
  static_assert(
      kIsa != Isa::a5 || (A::form == Form::NZ && Dst::form == Form::NZ && B::form == Form::ZN),
      "[PTO][SA-0080] TMATMUL: the layouts are not NZ, ZN and NZ; fix: use TileLeft, TileRight, TileAcc");
  const int m = static_cast<int>(a.GetValidRow()), k = static_cast<int>(a.GetValidCol());
  const int n = static_cast<int>(b.GetValidCol());
  PTO_CHECK(m <= static_cast<int>(dst.GetValidRow()) && n <= static_cast<int>(dst.GetValidCol()) &&
                k <= static_cast<int>(b.GetValidRow()),
            "SA-0060", "TMATMUL: %dx%d times %ux%d does not fit the %ux%d valid elements of the result", m, k,
            b.GetValidRow(), n, dst.GetValidRow(), dst.GetValidCol());
  const TileReader<true, A, ScaleA> left{decltype(TileReader<true, A, ScaleA>::lines)(a), scale_a, {}};
  const TileReader<false, B, ScaleB> right{decltype(TileReader<false, B, ScaleB>::lines)(b), scale_b, {}};
  if constexpr (ScaleA::any) {
    if (!scale_a.is_small(m, k) || !scale_b.is_small(n, k))
      return product_in_double(dst, left, right, m, n, k, addend);
  }
  const Lines<Dst> to(dst);
  gemm::multiply<whole>(m, n, k, left, right,
                        [&](bool first, int row, int col, const float* sums, int count) {
                          put_sums(to, addend, first, row, col, sums, count);
                        });
}

template <class Dst, class A, class B, class Add>
inline void plain_product(Dst& dst, A& a, B& b, const Add& addend) {
  product(dst, a, b, NoScale{}, NoScale{}, addend);
}

template <class A, class Scale>
inline constexpr bool kIsHif4 =
    dtype_of<typename A::DType> == DType::f4e1m2 && std::is_same_v<typename Scale::DType, uint8_t> &&
    (Scale::Loc == TileType::ScaleLeft || Scale::Loc == TileType::ScaleRight);

template <class Dst, class A, class SA, class B, class SB, class Add>
inline void scaled_product(Dst& dst, A& a, SA& a_scale, B& b, SB& b_scale, const Add& addend) {
  static_assert(kIsa != Isa::a2a3 || sizeof(Dst) == 0,
                "[PTO][SA-0245] TMATMUL_MX: this target has no block-scaled products");
  if constexpr (kIsHif4<A, SA>) {
    product(dst, a, b, Hif4Scale<true, SA>(a_scale), Hif4Scale<false, SB>(b_scale), addend);
  } else {
    product(dst, a, b, MxScale<true, SA>(a_scale), MxScale<false, SB>(b_scale), addend);
  }
}

template <class T>
concept AccTile = T::Loc == TileType::Acc;

template <class Bias>
inline auto bias_of(Bias& bias) {
  static_assert(Bias::Loc == TileType::Bias, "[PTO][SA-0075] TMATMUL_BIAS: the bias lies in no Bias tile");
  static_assert(Bias::Rows == 1 || kIsa == Isa::cpu, "[PTO][SA-0076] TMATMUL_BIAS: the bias has one row");
  return Addend<Bias, true>{Lines<Bias>(bias)};
}
template <class Acc>
inline auto addend_of(Acc& acc) {
  return Addend<Acc, false>{Lines<Acc>(acc)};
}

}  // namespace detail

// --- instructions; the phase of the accumulator has no effect on the result -------------------------------

template <class Dst, class A, class B, class... Events>
PTO_INST RecordEvent TMATMUL(Dst& dst, A& a, B& b, Events&... events) {
  TSYNC(events...);
  detail::plain_product(dst, a, b, detail::NoAddend{});
  return {};
}
template <AccPhase Phase, class Dst, class A, class B, class... Events>
PTO_INST RecordEvent TMATMUL(Dst& dst, A& a, B& b, Events&... events) {
  return TMATMUL(dst, a, b, events...);
}

template <class Dst, detail::AccTile In, class A, class B, class... Events>
PTO_INST RecordEvent TMATMUL_ACC(Dst& dst, In& in, A& a, B& b, Events&... events) {
  TSYNC(events...);
  detail::plain_product(dst, a, b, detail::addend_of(in));
  return {};
}
template <class Dst, class A, class B, class... Events>
  requires(!detail::AccTile<A> && all_events_v<Events...>)
PTO_INST RecordEvent TMATMUL_ACC(Dst& dst, A& a, B& b, Events&... events) {
  return TMATMUL_ACC(dst, dst, a, b, events...);
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TMATMUL_ACC(Operands&... operands) {
  return TMATMUL_ACC(operands...);
}

template <class Dst, class A, class B, class Bias, class... Events>
PTO_INST RecordEvent TMATMUL_BIAS(Dst& dst, A& a, B& b, Bias& bias, Events&... events) {
  TSYNC(events...);
  detail::plain_product(dst, a, b, detail::bias_of(bias));
  return {};
}
template <AccPhase Phase, class Dst, class A, class B, class Bias, class... Events>
PTO_INST RecordEvent TMATMUL_BIAS(Dst& dst, A& a, B& b, Bias& bias, Events&... events) {
  return TMATMUL_BIAS(dst, a, b, bias, events...);
}

template <class Dst, class A, class SA, class B, class SB, class... Events>
  requires(!detail::AccTile<A> && all_events_v<Events...>)
PTO_INST RecordEvent TMATMUL_MX(Dst& dst, A& a, SA& a_scale, B& b, SB& b_scale, Events&... events) {
  TSYNC(events...);
  detail::scaled_product(dst, a, a_scale, b, b_scale, detail::NoAddend{});
  return {};
}
template <class Dst, detail::AccTile In, class A, class SA, class B, class SB, class... Events>
PTO_INST RecordEvent TMATMUL_MX(Dst& dst, In& in, A& a, SA& a_scale, B& b, SB& b_scale, Events&... events) {
  TSYNC(events...);
  detail::scaled_product(dst, a, a_scale, b, b_scale, detail::addend_of(in));
  return {};
}
template <class Dst, class A, class SA, class B, class SB, class Bias, class... Events>
  requires(!detail::AccTile<A> && is_tile_data_v<Bias>)
PTO_INST RecordEvent TMATMUL_MX(Dst& dst, A& a, SA& a_scale, B& b, SB& b_scale, Bias& bias,
                                Events&... events) {
  TSYNC(events...);
  detail::scaled_product(dst, a, a_scale, b, b_scale, detail::bias_of(bias));
  return {};
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TMATMUL_MX(Operands&... operands) {
  return TMATMUL_MX(operands...);
}

// --- with one row -----------------------------------------------------------------------------------------

template <class... Operands>
PTO_INST RecordEvent TGEMV(Operands&... operands) {
  return TMATMUL(operands...);
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TGEMV(Operands&... operands) {
  return TMATMUL(operands...);
}
template <class... Operands>
PTO_INST RecordEvent TGEMV_ACC(Operands&... operands) {
  return TMATMUL_ACC(operands...);
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TGEMV_ACC(Operands&... operands) {
  return TMATMUL_ACC(operands...);
}
template <class... Operands>
PTO_INST RecordEvent TGEMV_BIAS(Operands&... operands) {
  return TMATMUL_BIAS(operands...);
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TGEMV_BIAS(Operands&... operands) {
  return TMATMUL_BIAS(operands...);
}
template <class... Operands>
PTO_INST RecordEvent TGEMV_MX(Operands&... operands) {
  return TMATMUL_MX(operands...);
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TGEMV_MX(Operands&... operands) {
  return TMATMUL_MX(operands...);
}

}  // namespace pto
