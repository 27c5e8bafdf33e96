// The numbers 0 .. N - 1 as template arguments. <utility> has them, but takes longer to compile.
#pragma once

#include <cstddef>

namespace pto::detail {

template <class T, T... I>
struct Integers {};

template <std::size_t... I>
using Indices = Integers<std::size_t, I...>;

/// 0, 1, .. N - 1.
#if __has_builtin(__make_integer_seq)
template <std::size_t N>
using IndicesTo = __make_integer_seq<Integers, std::size_t, N>;
#else
template <std::size_t N>
using IndicesTo = Integers<std::size_t, __integer_pack(N)...>;
#endif

}  // namespace pto::detail
