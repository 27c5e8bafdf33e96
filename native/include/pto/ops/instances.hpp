// Template instances that many kernels share, in the library that kernels are linked with: see PTO_INSTANCE
// in core/macros.hpp. An instance may depend on element types, but not on targets or checks.
#pragma once

#include "pto/ops/copy.hpp"
#include "pto/ops/elementwise.hpp"
#include "pto/ops/expand.hpp"
#include "pto/ops/matmul.hpp"
#include "pto/ops/reduce.hpp"

namespace pto::detail {

// --- copies, by the size of elements ----------------------------------------------------------------------

#define PTO_COPIES(Code)                                                                               \
  PTO_INSTANCE void copy_across<Code>(void*, const Axis&, const Axis&, const void*, const Axis&,       \
                                      const Axis&, ptrdiff_t, ptrdiff_t);                              \
  PTO_INSTANCE void copy_line<Code>(void*, ptrdiff_t, const void*, ptrdiff_t, ptrdiff_t);              \
  PTO_INSTANCE void fill_codes<Code>(Code*, const Axis&, const Axis&, ptrdiff_t, ptrdiff_t, ptrdiff_t, \
                                     ptrdiff_t, Code);
PTO_COPIES(uint8_t)
PTO_COPIES(uint16_t)
PTO_COPIES(uint32_t)
PTO_COPIES(uint64_t)
#undef PTO_COPIES

// --- conversions and operands of products -----------------------------------------------------------------

#define PTO_SMALL(T)                                              \
  PTO_INSTANCE void widen<T, float>(const T*, float*, ptrdiff_t); \
  PTO_INSTANCE void narrow<T, float>(const float*, T*, ptrdiff_t);
PTO_SMALL(half)
PTO_SMALL(bfloat16_t)
#undef PTO_SMALL

#define PTO_OPERAND(T) PTO_INSTANCE void pack<T>(float*, ptrdiff_t, const Place<T>&, int, int, int);
PTO_OPERAND(half)
PTO_OPERAND(bfloat16_t)
PTO_OPERAND(float)
PTO_OPERAND(int8_t)
#undef PTO_OPERAND

// There is no instance for f32: targets shorten f32 operands in different ways.
#define PTO_PRODUCT(T) \
  PTO_INSTANCE void multiply_places<T, T>(int, int, int, const Place<T>&, const Place<T>&, const gemm::Sink&);
PTO_PRODUCT(half)
PTO_PRODUCT(bfloat16_t)
PTO_PRODUCT(int8_t)
#undef PTO_PRODUCT

// --- arithmetic of f32 ------------------------------------------------------------------------------------

#define PTO_UNARY(F)                                                              \
  PTO_INSTANCE void map_run<F, float, float>(ptrdiff_t, F, float*, const float*); \
  PTO_INSTANCE void map_runs<F, float, float>(ptrdiff_t, ptrdiff_t, F, Lined<float>, Lined<const float>);
#define PTO_BINARY(F)                                                                                  \
  PTO_INSTANCE void map_run<F, float, float, float>(ptrdiff_t, F, float*, const float*, const float*); \
  PTO_INSTANCE void map_runs<F, float, float, float>(ptrdiff_t, ptrdiff_t, F, Lined<float>,            \
                                                     Lined<const float>, Lined<const float>);
template <class M>
using Unary = Meaning<M, float, float, float>;
template <class M>
using Binary = Meaning<M, float, float, float, float>;
template <class M>
using WithScalar = ScalarMeaning<M, float, float, float>;
template <class M>
using WithSame = ExpansionOf<M, float, false>;

PTO_BINARY(Binary<tadd>)
PTO_BINARY(Binary<tsub>)
PTO_BINARY(Binary<tmul>)
PTO_BINARY(Binary<tdiv>)
PTO_BINARY(Binary<tmax>)
PTO_BINARY(Binary<tmin>)
PTO_UNARY(Unary<texp>)
PTO_UNARY(Unary<tlog>)
PTO_UNARY(Unary<tsqrt>)
PTO_UNARY(Unary<tneg>)
PTO_UNARY(WithScalar<tadds>)
PTO_UNARY(WithScalar<tsubs>)
PTO_UNARY(WithScalar<tmuls>)
PTO_UNARY(WithScalar<tdivs>)
PTO_UNARY(WithScalar<tmaxs>)
PTO_UNARY(WithScalar<tmins>)
PTO_UNARY(WithSame<trowexpandadd>)
PTO_UNARY(WithSame<trowexpandsub>)
PTO_UNARY(WithSame<trowexpandmul>)
PTO_UNARY(WithSame<trowexpanddiv>)
PTO_UNARY(WithSame<trowexpandmax>)
PTO_UNARY(WithSame<trowexpandmin>)
PTO_UNARY(WithSame<trowexpandexpdif>)
#undef PTO_UNARY
#undef PTO_BINARY

#ifdef PTO_COMPUTES_HALVES
#define PTO_HALVES(M)                                                                           \
  PTO_INSTANCE void map_halves<Meaning<M, half, half, half, half>, half, half>(                 \
      ptrdiff_t, ptrdiff_t, Meaning<M, half, half, half, half>, Lined<half>, Lined<const half>, \
      Lined<const half>);
PTO_HALVES(tadd)
PTO_HALVES(tsub)
PTO_HALVES(tmul)
#undef PTO_HALVES
#endif

PTO_INSTANCE void turn_strip<float>(float*, const float*, ptrdiff_t, ptrdiff_t);
PTO_INSTANCE void fold_strip<Fold<float, float, false, true>>(float*, const float*, ptrdiff_t);
PTO_INSTANCE ptrdiff_t fold_lines<Fold<float, float, false, true>>(float*, const float*, ptrdiff_t,
                                                                   ptrdiff_t);
PTO_INSTANCE float best_of<true>(float, const float*, ptrdiff_t);
PTO_INSTANCE float best_of<false>(float, const float*, ptrdiff_t);

}  // namespace pto::detail
