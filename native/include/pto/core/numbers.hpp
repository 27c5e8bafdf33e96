// Arithmetic of elements: the operators that the instruction table uses to define instructions.
//
// Floats up to 32 bits compute in float, and the store rounds. Integers compute as in C, those below 32 bits
// in int32_t (`wide_t`), and wrap; division truncates. Cases that the instruction set leaves undefined are as
// in the reference engine: an integer divided by zero or modulo zero is 0, and a shift by the width or more
// shifts out all bits. `mul` is not fused with a following sum, since the reference engine rounds it.
//
//   compute<M>(dst, src...)             dst = M::of(src...) on the valid region of dst
//   compute_scalar<M>(dst, s, src...)   the same with a scalar of the element type; compute_scalar<M, true>
//                                       is a no-op if the scalar is zero
#pragma once

#include "pto/core/access.hpp"
#include "pto/core/events.hpp"
#include "pto/core/math.hpp"

namespace pto::detail {

template <class T>
using wide_t = std::conditional_t<is_float_v<T>, compute_t<T>,
                                  std::conditional_t<(bits_of<T> < 32), int32_t, compute_t<T>>>;

template <class A, class B>
using common_t = decltype(true ? A() : B());
template <class A>
using unsigned_t = std::make_unsigned_t<A>;

// --- arithmetic --------------------------------------------------------------------------------------------

template <class A, class B>
PTO_INLINE constexpr common_t<A, B> add(A a, B b) {
  using C = common_t<A, B>;
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<unsigned_t<C>>(a) + static_cast<unsigned_t<C>>(b));
  } else {
    return static_cast<C>(a) + static_cast<C>(b);
  }
}
template <class A, class B>
PTO_INLINE constexpr common_t<A, B> sub(A a, B b) {
  using C = common_t<A, B>;
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<unsigned_t<C>>(a) - static_cast<unsigned_t<C>>(b));
  } else {
    return static_cast<C>(a) - static_cast<C>(b);
  }
}
template <class A, class B>
PTO_INLINE constexpr common_t<A, B> mul(A a, B b) {
  using C = common_t<A, B>;
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<unsigned_t<C>>(a) * static_cast<unsigned_t<C>>(b));
  } else {
    return static_cast<C>(a) * static_cast<C>(b);
  }
}
template <class A>
PTO_INLINE constexpr A neg(A a) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(0 - static_cast<unsigned_t<A>>(a));
  } else {
    return -a;
  }
}

/// Return the truncated quotient of integers. Up to 32 bits it is computed in doubles, which vectorises.
template <class A>
PTO_INLINE constexpr A quotient(A a, A b) {
  if constexpr (sizeof(A) <= 4) {
    const bool plain = b != 0 && (!std::is_signed_v<A> || b != static_cast<A>(-1));
    const A divisor = plain ? b : A{1};
    const A found = static_cast<A>(static_cast<double>(a) / static_cast<double>(divisor));
    return plain ? found : b == 0 ? A{0} : neg(a);
  } else {
    if (b == 0) return 0;
    if (std::is_signed_v<A> && b == static_cast<A>(-1)) return neg(a);
    return a / b;
  }
}
template <class A, class B>
PTO_INLINE constexpr common_t<A, B> div(A a, B b) {
  using C = common_t<A, B>;
  if constexpr (std::is_integral_v<C>) {
    return quotient<C>(a, b);
  } else {
    return static_cast<C>(a) / static_cast<C>(b);
  }
}

template <class A, class B>
PTO_INLINE constexpr auto bit_and(A a, B b) {
  return static_cast<common_t<A, B>>(a & b);
}
template <class A, class B>
PTO_INLINE constexpr auto bit_or(A a, B b) {
  return static_cast<common_t<A, B>>(a | b);
}
template <class A, class B>
PTO_INLINE constexpr auto bit_xor(A a, B b) {
  return static_cast<common_t<A, B>>(a ^ b);
}
template <class A>
PTO_INLINE constexpr A bit_not(A a) {
  return static_cast<A>(~a);
}
template <class A, class B>
PTO_INLINE constexpr A shl(A a, B count) {
  constexpr unsigned_t<A> width = sizeof(A) * 8;
  const auto n = static_cast<unsigned_t<A>>(count);
  return n < width ? static_cast<A>(static_cast<unsigned_t<A>>(a) << (n & (width - 1))) : A{0};
}
template <class A, class B>
PTO_INLINE constexpr A shr(A a, B count) {
  constexpr unsigned_t<A> width = sizeof(A) * 8;
  const auto n = static_cast<unsigned_t<A>>(count);
  return n < width ? static_cast<A>(a >> (n & (width - 1))) : static_cast<A>(a < 0 ? -1 : 0);
}

// --- comparing and choosing --------------------------------------------------------------------------------

template <class A, class B>
PTO_INLINE constexpr bool less(A a, B b) {
  return static_cast<common_t<A, B>>(a) < static_cast<common_t<A, B>>(b);
}
template <class A, class B>
PTO_INLINE constexpr bool less_equal(A a, B b) {
  return static_cast<common_t<A, B>>(a) <= static_cast<common_t<A, B>>(b);
}
template <class A, class B>
PTO_INLINE constexpr bool greater(A a, B b) {
  return less(b, a);
}
template <class A, class B>
PTO_INLINE constexpr bool greater_equal(A a, B b) {
  return less_equal(b, a);
}
template <class A, class B>
PTO_INLINE constexpr bool equal(A a, B b) {
  return static_cast<common_t<A, B>>(a) == static_cast<common_t<A, B>>(b);
}
template <class A, class B>
PTO_INLINE constexpr bool not_equal(A a, B b) {
  return !equal(a, b);
}
template <class A, class B>
PTO_INLINE constexpr common_t<A, B> where(bool condition, A a, B b) {
  using C = common_t<A, B>;
  if constexpr (std::is_floating_point_v<C>) {
    return math::select(condition, static_cast<C>(a),
                        static_cast<C>(b));  // without a branch: both are computed
  } else {
    return condition ? static_cast<C>(a) : static_cast<C>(b);
  }
}
template <class A>
PTO_INLINE constexpr A relu(A a) {
  return a > 0 ? a : A{0};
}

// --- functions; T is the element type of the computation ---------------------------------------------------

/// Round a value to an element of type T, and return its value.
template <class T, class A>
PTO_INLINE constexpr A round(A a) {
  if constexpr (is_small_float<T>) {
    return static_cast<A>(decode<T>(encode<T>(static_cast<float>(a))));
  } else if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<T>(a));
  } else {
    return a;
  }
}
/// exp, log and pow of floats are computed in double. For an argument of type float, the result is rounded to
/// float, as in the rest of an expression. For a small float passed as double, the result stays double and is
/// rounded once, by the store. log of a small float always stays double.
template <class T, class A>
PTO_INLINE auto exp(A a) {
  if constexpr (!is_float_v<T>) {
    return math::exp(static_cast<double>(a));
  } else if constexpr (is_small_float<T> && std::is_same_v<A, double>) {
    return math::exp_wide(static_cast<float>(a));
  } else {
    return math::exp(static_cast<float>(a));
  }
}
template <class T, class A>
PTO_INLINE auto log(A a) {
  if constexpr (!is_float_v<T>) {
    return math::log(static_cast<double>(a));
  } else if constexpr (is_small_float<T>) {
    return math::log_wide(static_cast<float>(a));
  } else {
    return math::log(static_cast<float>(a));
  }
}
/// A square root that is not computed yet. As a result it is computed in float, which equals the rounded
/// result in double. A division by it is computed in double, so that the expression rounds once.
struct Root {
  float of;
};
template <class T, class A>
PTO_INLINE auto sqrt(A a) {
  if constexpr (is_float_v<T>) {
    return Root{a};
  } else {
    return math::sqrt(static_cast<double>(a));
  }
}
template <class A>
PTO_INLINE double div(A a, Root b) {
  return static_cast<double>(a) / math::sqrt(static_cast<double>(b.of));
}
template <class T, class A>
PTO_INLINE A fmod(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return b == 0 ? A{0} : sub(a, mul(quotient(a, b), b));
  } else {
    return math::fmod(a, b);
  }
}
template <class A>
PTO_INLINE constexpr double to_double(A a) {
  return static_cast<double>(a);
}

/// Return a power: of floats as above (for bf16 always rounded once), of integers by squaring, of integers
/// passed as double in double.
template <class T, class A>
inline auto pow(A a, A b) {
  if constexpr (is_small_float<T> && (std::is_same_v<A, double> || std::is_same_v<T, bfloat16_t>)) {
    return math::pow_wide(static_cast<float>(a), static_cast<float>(b));
  } else if constexpr (is_float_v<T>) {
    return math::pow(static_cast<float>(a), static_cast<float>(b));
  } else if constexpr (std::is_same_v<A, double>) {
    return math::pow(a, b);
  } else {
    if (std::is_signed_v<A> && b < 0)
      return a == 1 ? A{1} : a == static_cast<A>(-1) ? static_cast<A>(b & 1 ? -1 : 1) : A{0};
    A result = 1;
    for (auto n = static_cast<unsigned_t<A>>(b); n != 0; n >>= 1, a = mul(a, a)) {
      if (n & 1) result = mul(result, a);
    }
    return result;
  }
}

// --- results -----------------------------------------------------------------------------------------------

/// Convert a double to an integer, as a C cast on x86 does.
template <class D>
inline D cast_to_int(double value) {
  if constexpr (std::is_same_v<D, uint8_t>) value = __builtin_fabs(value) < 0x1p31 ? value : 0.0;
  const uint64_t low =
      baseline::whole_to_int<bits_of<D>, std::is_signed_v<D>>(__builtin_trunc(value), Mode{});
  return static_cast<D>(low);
}

/// Convert a number to an element of type T. For a float outside the range of an integer type, a C cast
/// depends on the machine. This result is the same on all machines and in the reference engine.
template <class T>
struct Cast {
  using Given = T;
  T value;
  template <class N>
  constexpr Cast(N number) : value(static_cast<T>(number)) {}
  template <class N>
    requires(std::is_floating_point_v<N> && std::is_integral_v<T>)
  constexpr Cast(N number)
      : value(static_cast<T>(
            baseline::whole_to_int<bits_of<T>, std::is_signed_v<T>>(__builtin_trunc(number), Mode{}))) {}
  constexpr operator T() const { return value; }
};

/// Convert the result of an expression to a value for a store to elements of type D.
template <class D, class A>
PTO_INLINE constexpr compute_t<D> result(A a) {
  if constexpr (std::is_same_v<A, Root>) {
    return math::sqrt(a.of);
  } else if constexpr (std::is_same_v<A, double> && is_small_float<D>) {
    return baseline::narrow_to_odd(a);
  } else if constexpr (std::is_same_v<A, double> && std::is_integral_v<D>) {
    return cast_to_int<D>(a);
  } else {
    return static_cast<compute_t<D>>(a);
  }
}

/// Clamp a result to the range of D; for an integer D, round it to nearest even first.
template <class D, class A>
PTO_INLINE constexpr compute_t<D> saturated(A a) {
  if constexpr (is_float_v<D>) {
    constexpr float limit = static_cast<float>(std::numeric_limits<D>::max());
    return a > limit ? limit : a < -limit ? -limit : static_cast<float>(a);
  } else {
    constexpr auto low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
    if constexpr (std::is_floating_point_v<A>) {
      static_assert(bits_of<D> <= 16);
      const float whole = __builtin_rintf(static_cast<float>(a));
      return whole < high ? (whole > low ? static_cast<D>(whole) : low) : high;
    } else {
      return static_cast<D>(a < low ? low : a > high ? high : a);
    }
  }
}

/// Compute M of values. T: element type of the computation; D: element type of the destination.
template <class M, class T, class D, class... Wide>
PTO_INLINE constexpr compute_t<D> evaluate(Wide... values) {
  if constexpr (M::converts && !std::is_same_v<T, D>) {
    const auto found = M::template of<T>(values...);
    if constexpr (is_float_v<T>) {
      return saturated<D>(round<T>(found));
    } else {
      return saturated<D>(found);
    }
  } else {
    return result<D>(M::template of<T>(values...));
  }
}

template <class First, class...>
struct FirstOf {
  using type = First;
};
template <class... Ts>
using first_t = typename FirstOf<Ts...>::type;

// These types depend only on element types, so that tiles of all shapes share the loops.
template <class M, class T, class D, class... S>
struct Meaning {
  PTO_INLINE auto operator()(compute_t<S>... values) const {
    return evaluate<M, T, D>(static_cast<wide_t<S>>(values)...);
  }
};
template <class M, class T, class D, class... S>
struct ScalarMeaning {
  wide_t<T> scalar;
  PTO_INLINE auto operator()(compute_t<S>... values) const {
    return evaluate<M, T, D>(scalar, static_cast<wide_t<S>>(values)...);
  }
};

template <class M, class T, class D, class... S>
inline constexpr bool is_short<Meaning<M, T, D, S...>> = is_short<M>;
template <class M, class T, class D, class... S>
inline constexpr bool is_short<ScalarMeaning<M, T, D, S...>> = is_short<M>;

template <class M, class Dst, class... Src>
inline void compute(Dst& dst, const Src&... src) {
  using T = typename first_t<Src...>::DType;
  map(dst, Meaning<M, T, typename Dst::DType, typename Src::DType...>{}, src...);
}

template <class M, bool SkipZero = false, class S, class Dst, class... Src>
inline void compute_scalar(Dst& dst, S scalar, const Src&... src) {
  using T = typename first_t<Src...>::DType;
  const auto s = static_cast<wide_t<T>>(value_of<compute_t<T>>(static_cast<T>(scalar)));
  if (SkipZero && s == 0) return;
  map(dst, ScalarMeaning<M, T, typename Dst::DType, typename Src::DType...>{s}, src...);
}

// --- operands ----------------------------------------------------------------------------------------------

/// Handle the arguments after the operands: ignore at most `Scratch` scratch tiles, and wait for events.
template <int Scratch, class... Rest>
PTO_INLINE void finish_call(Rest&... rest) {
  static_assert(((is_tile_data_v<Rest> || is_event<Rest>::value) && ...),
                "[PTO][E003] an argument is neither a tile nor an event");
  static_assert((is_tile_data_v<Rest> + ... + 0) <= Scratch, "[PTO][E003] too many tile arguments");
  [[maybe_unused]] const auto finish = [](auto& argument) {
    if constexpr (!is_tile_data_v<std::remove_reference_t<decltype(argument)>>) argument.Wait();
  };
  (finish(rest), ...);
}

/// True if element types are not checked: a program for the simulator may use types that no target supports.
#ifdef __CPU_SIM
inline constexpr bool kAnyType = kIsa == Isa::cpu;
#else
inline constexpr bool kAnyType = false;
#endif

/// Return true if the element type of a tile is in a set with one bit per DType.
template <class TileT>
constexpr bool is_one_of(uint32_t types) {
  return kAnyType || types >> static_cast<int>(dtype_of<typename TileT::DType>) & 1;
}
template <TileType Loc, class... Tiles>
constexpr bool all_in() {
  return ((Tiles::Loc == Loc) && ...);
}
template <class First, class... Tiles>
constexpr bool same_dtype() {
  return (std::is_same_v<typename First::DType, typename Tiles::DType> && ...);
}
template <class... Tiles>
constexpr bool all_row_major() {
  return (Tiles::isRowMajor && ...);
}

/// A legal combination: the element types of all tiles but the last, one byte each, and a set for the last.
struct Combination {
  uint32_t head, last;
};
template <class... Tiles, size_t N>
constexpr bool are_combined(const Combination (&legal)[N]) {
  constexpr DType types[] = {dtype_of<typename Tiles::DType>...};
  constexpr int count = sizeof...(Tiles);
  uint32_t head = 0;
  for (int i = 0; i + 1 < count; ++i) head |= static_cast<uint32_t>(types[i]) << 8 * i;
  for (const Combination& c : legal) {
    if (c.head == head) return c.last >> static_cast<int>(types[count - 1]) & 1;
  }
  return false;
}

}  // namespace pto::detail
