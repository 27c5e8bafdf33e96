// The description of a library, for callers that have only the library: a text of `pto build` with the target
// and the kernels, and the types of their arguments, which the compiler deduces.
//
//   PTO_ABOUT("{...}")                   const char* pto_library()
//   PTO_ARGUMENTS(vec_add, vec_add)      const char* pto_arguments_vec_add(): "*f32;*f32;i32;"
//
// A type is a number ("f32"), a pointer to a number ("*f32"), a pointer to anything else ("*": void, bytes,
// structures), a GlobalTensor with its static sizes ("view f32 1 1 1 -1 64"), or "?" if no launch can pass
// the type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "pto/core/dtypes.hpp"

namespace pto::detail {

template <class T>
inline constexpr bool is_small_number = std::is_same_v<T, int4b_t>;
template <DType D>
inline constexpr bool is_small_number<SmallFloat<D>> = true;

/// Return the name of a number type; empty for other types.
template <class T>
constexpr const char* number_name() {
  if constexpr (std::is_enum_v<T>) {
    return number_name<std::underlying_type_t<T>>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return "i1";
  } else if constexpr (std::is_integral_v<T>) {
    constexpr const char* names[2][4] = {{"ui8", "ui16", "ui32", "ui64"}, {"i8", "i16", "i32", "i64"}};
    return names[std::is_signed_v<T>][sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3];
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || is_small_number<T>) {
    return kDTypeNames[static_cast<int>(dtype_of<T>)];
  } else {
    return "";
  }
}

/// Return the name of the type that a pointer refers to; empty for bytes, which may be any data.
template <class T>
constexpr const char* pointee_name() {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, unsigned char> || std::is_same_v<T, char> ||
                (std::is_enum_v<T> && sizeof(T) == 1)) {
    return "";
  } else {
    return number_name<T>();
  }
}

template <class T>
inline int write_type(char* text, size_t size) {
  if constexpr (std::is_pointer_v<T>) {
    return std::snprintf(text, size, "*%s;", pointee_name<std::remove_cv_t<std::remove_pointer_t<T>>>());
  } else if constexpr (requires { T::staticShape; }) {
    const auto& n = T::staticShape;
    return std::snprintf(text, size, "view %s %d %d %d %d %d;", number_name<typename T::RawDType>(),
                         int(n[0]), int(n[1]), int(n[2]), int(n[3]), int(n[4]));
  } else {
    const char* name = number_name<T>();
    return std::snprintf(text, size, "%s;", name[0] != 0 ? name : "?");
  }
}

/// Return the types of the arguments of a function; a semicolon ends each type.
template <class Result, class... Args>
inline const char* types_of(Result (*)(Args...)) {
  struct Text {
    char text[sizeof...(Args) * 128 + 1] = {};
    Text() {
      [[maybe_unused]] char* at = text;
      ((at += write_type<std::remove_cv_t<std::remove_reference_t<Args>>>(at, 128)), ...);
    }
  };
  static const Text made;
  return made.text;
}

}  // namespace pto::detail

#define PTO_ABOUT(text) \
  extern "C" __attribute__((visibility("default"))) const char* pto_library() { return text; }

#define PTO_ARGUMENTS(name, function)                                                    \
  extern "C" __attribute__((visibility("default"))) const char* pto_arguments_##name() { \
    return pto::detail::types_of(&function);                                             \
  }
