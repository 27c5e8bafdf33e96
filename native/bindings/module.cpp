// pto._native: the compiled loops of pto.engine (element conversion, and computations of the reference
// engine that have a fixed order), and launches (launch.cpp).
//
// These functions check their arguments; a bad one raises ValueError. The loops run without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pto/core/math.hpp"
#include "pto/detail/engine.hpp"
#include "pto/detail/kernels.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace pto::detail;

using Input = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

[[noreturn]] void fail(const std::string& what) { throw nb::value_error(what.c_str()); }

DType parse_dtype(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  fail("unknown element type '" + std::string(name) + "'");
}

Mode parse_mode(std::string_view round, bool saturate, std::string_view nan) {
  Mode mode;
  mode.saturate = saturate;
  if (nan != "max" && nan != "zero")
    fail("unknown NaN rule '" + std::string(nan) + "': expected max or zero");
  mode.nan_is_max = nan == "max";
  for (std::size_t i = 0; i < std::size(kRounds); ++i) {
    if (kRounds[i] == round) {
      mode.round = static_cast<Round>(i);
      return mode;
    }
  }
  fail("unknown rounding mode '" + std::string(round) + "': expected RINT, ROUND, FLOOR, CEIL, TRUNC or ODD");
}

void check_codes(const Input& codes, DType t) {
  if (codes.dtype().code != static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt) ||
      codes.itemsize() != code_bytes(t)) {
    fail(std::string(info(t).name) + " codes must be unsigned integers of " + std::to_string(code_bytes(t)) +
         " bytes");
  }
}

// Return a new array that owns its memory.
template <class T>
nb::object new_array(std::unique_ptr<char[]> data, std::initializer_list<std::size_t> shape) {
  char* p = data.release();
  nb::capsule owner(p, [](void* q) noexcept { delete[] static_cast<char*>(q); });
  return nb::cast(nb::ndarray<nb::numpy, T>(reinterpret_cast<T*>(p), shape.size(), shape.begin(), owner));
}

nb::object new_codes(std::unique_ptr<char[]> data, std::size_t bytes,
                     std::initializer_list<std::size_t> shape) {
  switch (bytes) {
    case 1: return new_array<std::uint8_t>(std::move(data), shape);
    case 2: return new_array<std::uint16_t>(std::move(data), shape);
    case 4: return new_array<std::uint32_t>(std::move(data), shape);
    default: return new_array<std::uint64_t>(std::move(data), shape);
  }
}

std::unique_ptr<char[]> buffer(std::size_t bytes) { return std::unique_ptr<char[]>(new char[bytes + 1]); }

// ---------------------------------------------------------------------------------------------------------
// Elements

nb::object decode(std::string_view dtype, const Input& codes, bool wide) {
  const DType t = parse_dtype(dtype);
  check_codes(codes, t);
  const int exact = info(t).bits - (is_int(t) ? 0 : 8);  // integers up to 24 (53) bits fit a float (double)
  if (is_int(t) ? exact > (wide ? 53 : 24) : t == DType::f64 && !wide)
    fail(std::string(dtype) + " values are not exact in a " + (wide ? "double" : "float"));
  const std::size_t n = codes.size();
  auto out = buffer(n * (wide ? 8 : 4));
  {
    nb::gil_scoped_release unlocked;
    if (wide) {
      element_kernels().decode_f64(t, codes.data(), reinterpret_cast<double*>(out.get()), n);
    } else {
      element_kernels().decode_f32(t, codes.data(), reinterpret_cast<float*>(out.get()), n);
    }
  }
  return wide ? new_array<double>(std::move(out), {n}) : new_array<float>(std::move(out), {n});
}

nb::object encode(std::string_view dtype, const Input& values, std::string_view round, bool saturate,
                  std::string_view nan) {
  const DType t = parse_dtype(dtype);
  const Mode mode = parse_mode(round, saturate, nan);
  const bool wide = values.dtype() == nb::dtype<double>();
  if (!wide && values.dtype() != nb::dtype<float>()) fail("values must be float32 or float64");
  const std::size_t n = values.size();
  auto out = buffer(n * code_bytes(t));
  {
    nb::gil_scoped_release unlocked;
    if (wide) {
      element_kernels().encode_f64(t, static_cast<const double*>(values.data()), out.get(), n, mode);
    } else {
      element_kernels().encode_f32(t, static_cast<const float*>(values.data()), out.get(), n, mode);
    }
  }
  return new_codes(std::move(out), code_bytes(t), {n});
}

nb::object convert(std::string_view src, std::string_view dst, const Input& codes, std::string_view round,
                   bool saturate, std::string_view nan) {
  const DType s = parse_dtype(src), d = parse_dtype(dst);
  const Mode mode = parse_mode(round, saturate, nan);
  check_codes(codes, s);
  const std::size_t n = codes.size();
  auto out = buffer(n * code_bytes(d));
  {
    nb::gil_scoped_release unlocked;
    element_kernels().convert(s, d, codes.data(), out.get(), n, mode);
  }
  return new_codes(std::move(out), code_bytes(d), {n});
}

// ---------------------------------------------------------------------------------------------------------
// Engine

template <class T>
using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T, class F>
nb::object dot(const Matrix<T>& a, const Matrix<T>& b, F kernel) {
  const std::size_t m = a.shape(0), k = a.shape(1), n = b.shape(1);
  if (b.shape(0) != k)
    fail("a has " + std::to_string(k) + " columns, b has " + std::to_string(b.shape(0)) + " rows");
  auto out = buffer(m * n * sizeof(float));
  {
    nb::gil_scoped_release unlocked;
    kernel(a.data(), b.data(), reinterpret_cast<float*>(out.get()), m, k, n);
  }
  return new_array<float>(std::move(out), {m, n});
}

nb::object dot_f32(const Matrix<float>& a, const Matrix<float>& b) {
  return dot<float>(a, b, engine_kernels().dot_f32);
}

nb::object dot_f64(const Matrix<double>& a, const Matrix<double>& b) {
  return dot<double>(a, b, engine_kernels().dot_f64);
}

nb::object fold(std::string_view dtype, const Matrix<float>& x, bool product) {
  const DType t = parse_dtype(dtype);
  if (t != DType::f16 && t != DType::bf16) fail("steps round to f16 or bf16, not to " + std::string(dtype));
  const std::size_t rows = x.shape(0), cols = x.shape(1);
  if (!rows) fail("expected at least one row");
  auto out = buffer(cols * sizeof(float));
  {
    nb::gil_scoped_release unlocked;
    engine_kernels().fold(t, product, x.data(), reinterpret_cast<float*>(out.get()), rows, cols);
  }
  return new_array<float>(std::move(out), {cols});
}

nb::object philox(std::uint64_t low, std::uint64_t high, const Array<std::uint64_t>& ahead,
                  std::uint32_t key0, std::uint32_t key1, int rounds) {
  const PhiloxState state{low, high, {key0, key1}, rounds};
  const std::size_t n = ahead.size();
  auto out = buffer(4 * n * sizeof(std::uint32_t));
  {
    nb::gil_scoped_release unlocked;
    engine_kernels().philox(state, ahead.data(), reinterpret_cast<std::uint32_t*>(out.get()), n);
  }
  return new_array<std::uint32_t>(std::move(out), {4, n});
}

nb::object sort_blocks(const Matrix<std::uint32_t>& rank, const Matrix<std::uint32_t>& index) {
  const std::size_t rows = rank.shape(0), cols = rank.shape(1);
  if (index.shape(0) != rows || index.shape(1) != cols) fail("ranks and indices differ in shape");
  auto out = buffer(rows * cols * sizeof(std::int64_t));
  {
    nb::gil_scoped_release unlocked;
    engine_kernels().sort_blocks(rank.data(), index.data(), reinterpret_cast<std::int64_t*>(out.get()), rows,
                                 cols);
  }
  return new_array<std::int64_t>(std::move(out), {rows, cols});
}

// ---------------------------------------------------------------------------------------------------------
// Functions

// A function of numbers. For floats it computes the same as tiles. exp, log and pow also have loops.
struct Function {
  std::string_view name;
  float (*single)(float, float);
  double (*wide)(double, double);
};
#define PTO_ONE(name) \
  {#name, [](float x, float) { return math::name(x); }, [](double x, double) { return math::name(x); }}
constexpr Function kFunctions[] = {
    PTO_ONE(exp),
    PTO_ONE(exp2),
    PTO_ONE(log),
    PTO_ONE(log2),
    PTO_ONE(tanh),
    PTO_ONE(sin),
    PTO_ONE(cos),
    PTO_ONE(erf),
    {"pow", [](float x, float y) { return math::pow(x, y); },
     [](double x, double y) { return math::pow(x, y); }},
};
#undef PTO_ONE

const Function& parse_function(std::string_view name) {
  for (const Function& f : kFunctions)
    if (f.name == name) return f;
  fail("unknown function '" + std::string(name) + "'");
}

double number(std::string_view name, double x, double y, bool single) {
  const Function& f = parse_function(name);
  return single ? static_cast<double>(f.single(static_cast<float>(x), static_cast<float>(y))) : f.wide(x, y);
}

template <class... In>
nb::object in_loop(const FloatLoops<In...>& loops, bool wide, std::size_t n, const In*... in) {
  auto out = buffer(n * (wide ? 8 : 4));
  {
    nb::gil_scoped_release unlocked;
    if (wide) {
      loops.wide(in..., reinterpret_cast<double*>(out.get()), n);
    } else {
      loops.single(in..., reinterpret_cast<float*>(out.get()), n);
    }
  }
  return wide ? new_array<double>(std::move(out), {n}) : new_array<float>(std::move(out), {n});
}

nb::object exp_f32(const Array<float>& x, bool wide) {
  return in_loop<float>(engine_kernels().exp, wide, x.size(), x.data());
}

nb::object log_f32(const Array<float>& x, bool wide) {
  return in_loop<float>(engine_kernels().log, wide, x.size(), x.data());
}

nb::object pow_f32(const Array<float>& x, const Array<float>& y, bool wide) {
  if (x.size() != y.size()) fail("bases and exponents differ in number");
  return in_loop<float, float>(engine_kernels().pow, wide, x.size(), x.data(), y.data());
}

nb::object pow_f64(const Array<double>& x, const Array<double>& y) {
  if (x.size() != y.size()) fail("bases and exponents differ in number");
  const std::size_t n = x.size();
  auto out = buffer(n * sizeof(double));
  {
    nb::gil_scoped_release unlocked;
    for (std::size_t i = 0; i < n; ++i)
      reinterpret_cast<double*>(out.get())[i] = math::pow(x.data()[i], y.data()[i]);
  }
  return new_array<double>(std::move(out), {n});
}

nb::list dtypes() {
  nb::list out;
  for (const DTypeInfo& d : kDTypes) out.append(nb::make_tuple(std::string(d.name), d.bits));
  return out;
}

}  // namespace

void bind_launch(nb::module_& m);  // launch.cpp

NB_MODULE(_native, m) {
  m.doc() = "Compiled loops of the engine.";
  bind_launch(m);
  m.def("dtypes", &dtypes, "Name and bits of every element type.");
  m.def("decode", &decode, "dtype"_a, "codes"_a, "wide"_a = false,
        "Values of codes as float32, or float64 if wide.");
  m.def("encode", &encode, "dtype"_a, "values"_a, "round"_a = "RINT", "saturate"_a = false, "nan"_a = "max",
        "Codes of float32 or float64 values.");
  m.def("convert", &convert, "src"_a, "dst"_a, "codes"_a, "round"_a = "RINT", "saturate"_a = false,
        "nan"_a = "max", "Codes in dst of the values that codes have in src.");
  m.def("dot_f32", &dot_f32, "a"_a, "b"_a, "Product of matrices, a chain of fused steps in float32.");
  m.def("dot_f64", &dot_f64, "a"_a, "b"_a, "The same of doubles whose products are exact in a double.");
  m.def("fold", &fold, "dtype"_a, "x"_a, "product"_a,
        "Sums or products of columns, every step rounded to f16 or bf16.");
  m.def("philox", &philox, "low"_a, "high"_a, "ahead"_a, "key0"_a, "key1"_a, "rounds"_a,
        "The four words of each counter.");
  m.def("sort_blocks", &sort_blocks, "rank"_a, "index"_a,
        "Positions of the records (rank, index) of every 32 columns in ascending order.");
  m.def("number", &number, "name"_a, "x"_a, "y"_a = 0.0, "single"_a = false,
        "A function of a double, or of a float as tiles compute it.");
  m.def("exp_f32", &exp_f32, "x"_a, "wide"_a = false,
        "Exponentials of floats, as doubles if wide: before they are rounded.");
  m.def("log_f32", &log_f32, "x"_a, "wide"_a = false, "Natural logarithms, likewise.");
  m.def("pow_f32", &pow_f32, "x"_a, "y"_a, "wide"_a = false, "Powers, likewise.");
  m.def("pow_f64", &pow_f64, "x"_a, "y"_a, "Powers of doubles.");
}
