// Transfers between global memory and tiles: TLOAD, TSTORE in all its forms, TPREFETCH.
//
// Both sides are matrices: the layout of the tensor says where an element lies in global memory, the layout
// of the tile where it lies on chip. Rows that are contiguous on both sides are copied as blocks.
#pragma once

#include "pto/ops/fixpipe.hpp"
#include "pto/ops/legality.hpp"

namespace pto {

namespace detail {

template <class T>
inline void check_holds(const char* name, const Place<T>& global, int64_t rows, int64_t cols, Use use) {
  // The extents of a tensor as a matrix follow from its layout; rules of rows cannot express that.
  PTO_CHECK(rows <= global.rows.count && cols <= global.cols.count, "PTO-E2102",
            "%s: the tile has %lldx%lld valid elements, the tensor %lldx%lld", name,
            static_cast<long long>(rows), static_cast<long long>(cols),
            static_cast<long long>(global.rows.count), static_cast<long long>(global.cols.count));
  touch(name, global, rows, cols, use);
}

/// Combine an element with the one in memory atomically, since other cores may store there too.
template <AtomicType How, class T>
inline void store_atomic(T* at, T value) {
  using C = compute_t<T>;
  static_assert(bits_of<T> >= 8, "[PTO][SA-0200] TSTORE: no atomic store of 4-bit elements");
  const C mine = value_of<C>(value);
  update(at, [&](T before) {
    const C old = value_of<C>(before);
    if constexpr (How == AtomicType::AtomicAdd) return cast_to<T>(static_cast<C>(old + mine));
    // The old value stays unless the new one is beyond it, so a NaN changes nothing.
    const bool beyond = How == AtomicType::AtomicMax ? old < mine : mine < old;
    return cast_to<T>(beyond ? mine : old);
  });
}

/// A place, for `deliver`, whose elements are combined with new ones and not overwritten.
template <AtomicType How, class Element>
struct Combining {
  using T = Element;
  Place<T> to;
};
template <AtomicType How, class T>
inline void put_row(const Combining<How, T>& place, ptrdiff_t r, ptrdiff_t c, ptrdiff_t n, const T* from) {
  for (ptrdiff_t i = 0; i < n; ++i) store_atomic<How>(place.to.data + place.to.at(r, c + i), from[i]);
}
template <AtomicType How, class T, class S>
inline void copy(const Combining<How, T>& to, const Place<S>& from, ptrdiff_t rows, ptrdiff_t cols) {
  Buffer<S> line;
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = lesser(cols - c, kChunk);
      take_row(from, r, c, n, line.at);
      put_row(to, r, c, n, line.at);
    }
  }
}

/// Store the elements of a tile, converted or quantised, in global memory.
template <AtomicType Atomic, ReluPreMode Relu, bool ByRow = false, class Global, class TileT, class Words>
inline void store(Global& dst, TileT& src, const Words& words) {
  constexpr bool relu = Relu == ReluPreMode::NormalRelu;
  constexpr Use use = use_of(Atomic, dtype_of<typename Global::DType>);
  const auto to = place(dst);
  if constexpr (is_conv_tile_v<TileT>) {
    static_assert(
        bits_of<typename TileT::DType> == bits_of<typename Global::DType> && Atomic == AtomicType::AtomicNone,
        "[PTO][SA-0099] TSTORE: the convolution tile and the tensor differ in element type");
    const auto from = place(src);
    check_holds("TSTORE", to, from.rows.count, from.cols.count, use);
    copy(to, from, from.rows.count, from.cols.count);
  } else {
    using T = typename TileT::DType;
    using To = typename Global::DType;
    const ptrdiff_t rows = src.GetValidRow(), cols = src.GetValidCol();
    check_holds("TSTORE", to, rows, cols, use);
    if constexpr (Atomic != AtomicType::AtomicNone) {
      deliver<relu, ByRow>(Combining<Atomic, typename Global::DType>{to}, src, 0, 0, rows, cols, words);
    } else if constexpr (TileT::Loc == TileType::Acc || Words::any || relu || bits_of<T> != bits_of<To>) {
      deliver<relu, ByRow>(to, src, 0, 0, rows, cols, words);
    } else if constexpr (!std::is_same_v<T, To>) {  // hardware moves the bits
      PTO_IF_TARGET(kIsa == Isa::cpu) { deliver<relu, ByRow>(to, src, 0, 0, rows, cols, words); }
      else {
        copy(to, place(src), rows, cols);
      }
    } else {
      copy(to, place(src), rows, cols);
    }
  }
}

}  // namespace detail

// --- tensors without a shape ------------------------------------------------------------------------------

namespace detail {

/// Return a tensor without a shape as a dense, row-major tensor with the shape of a tile.
template <class TileT, class Global>
auto shaped(const Global& tensor, const TileT& tile) {
  using Matrix = detail::Matrix<typename Global::DType, TileT::Rows, TileT::Cols, Layout::ND>;
  static_assert(TileT::Rows != DYNAMIC && TileT::Cols != DYNAMIC,
                "[PTO] GlobalTensor<T>: the tile has sizes at run time; fix: give the tensor a Shape");
  return GlobalTensor<typename Global::DType, typename Matrix::Shape, typename Matrix::Stride>(tensor.data());
}

}  // namespace detail

template <class Dst, class Src, class... Rest>
  requires(is_unshaped_v<Src>)
PTO_INST RecordEvent TLOAD(Dst& dst, Src& src, Rest&... rest) {
  auto tensor = detail::shaped(src, dst);
  return TLOAD(dst, tensor, rest...);
}
template <class Src, class Dst, AtomicType atomicType = AtomicType::AtomicNone,
          ReluPreMode reluPreMode = ReluPreMode::NoRelu, class... Rest>
  requires(all_events_v<Rest...> && is_unshaped_v<Dst>)
PTO_INST RecordEvent TSTORE(Dst& dst, Src& src, Rest&... rest) {
  auto tensor = detail::shaped(dst, src);
  return TSTORE<Src, decltype(tensor), atomicType, reluPreMode>(tensor, src, rest...);
}

// --- loads ------------------------------------------------------------------------------------------------

namespace detail {

/// Extents of a load into L1 that come from the tensor, as on devices; the others come from the valid region
/// of the tile. The same table is in src/pto/isa/view.py.
struct FromTensor {
  bool rows, cols;
};
constexpr FromTensor from_tensor(Isa isa, Form tile, Layout tensor) {
  if (isa == Isa::a2a3) {
    const bool both =
        (tile == Form::NZ && tensor == Layout::ND) || (tile == Form::ZN && tensor == Layout::DN);
    return {both, both};
  }
  if (isa != Isa::a5) return {false, false};
  const bool scales =
      (tile == Form::ZZ && tensor == Layout::MX_A_ZZ) || (tile == Form::NN && tensor == Layout::MX_B_NN);
  const bool nz = tile == Form::NZ;
  return {scales || (tensor == Layout::ND && (nz || tile == Form::ND)) || (tensor == Layout::DN && nz),
          scales || (tensor == Layout::DN && (tile == Form::DN || tile == Form::ZN)) ||
              (tensor == Layout::NZ && nz)};
}
/// Return true for the layouts of scales whose loads on devices use one stride only.
constexpr bool by_stride(Layout layout) {
  return layout == Layout::MX_A_ND || layout == Layout::MX_A_DN || layout == Layout::MX_B_ND ||
         layout == Layout::MX_B_DN;
}

/// Check that L1 has room for a load of more than the valid region: the placement of the tile did not check
/// that.
template <class T>
[[gnu::noinline]] void reach_farther(const Place<T>& tile, ptrdiff_t rows, ptrdiff_t cols) {
  constexpr int space = static_cast<int>(TileType::Mat);
  const char *base = core().space[space], *data = reinterpret_cast<const char*>(tile.data);
  if (rows <= 0 || cols <= 0 || data < base || data >= base + room(space)) return;
  int64_t low, high, left, right;
  tile.rows.span(rows, low, high);
  tile.cols.span(cols, left, right);
  const auto end = static_cast<size_t>(data - base + bytes_of(bits_of<T>, 0, high + right).high);
  if (end > room(space))
    failf("[PTO-E2101] TLOAD: touches bytes %zu..%zu of %s, which has %zu bytes",
          static_cast<size_t>(data - base), end, kSpaceNames[space], room(space));
  use_space(core(), space, end);
}

template <class TileT, class Global>
inline void load(TileT& dst, Global& src) {
  const auto from = place(src);
  if constexpr (is_conv_tile_v<TileT>) {
    const auto to = place(dst);
    check_holds("TLOAD", from, to.rows.count, to.cols.count, Use::read);
    copy(to, from, to.rows.count, to.cols.count);
  } else {
    const ptrdiff_t valid_rows = dst.GetValidRow(), valid_cols = dst.GetValidCol();
    ptrdiff_t rows = valid_rows, cols = valid_cols;
    constexpr bool in_l1 = TileT::Loc == TileType::Mat;
    if constexpr (in_l1) {
      const FromTensor sizes = from_tensor(kIsa, TileT::form, Global::layout);
      if (sizes.rows) rows = from.rows.count;
      if (sizes.cols) cols = from.cols.count;
      if (rows > own_rows(dst) || cols > own_cols(dst)) [[unlikely]]
        failf("[PTO-E2102] TLOAD: expects the tile to have room for the tensor, %lldx%lld, got %lldx%lld",
              static_cast<long long>(rows), static_cast<long long>(cols),
              static_cast<long long>(own_rows(dst)), static_cast<long long>(own_cols(dst)));
      if (rows > valid_rows || cols > valid_cols) reach_farther(place(dst), rows, cols);
    }
    if (in_l1 && kIsa != Isa::cpu && by_stride(Global::layout)) {
      touch("TLOAD", from, rows, cols, Use::read);
    } else {
      check_holds("TLOAD", from, rows, cols, Use::read);
    }
    copy(place(dst), from, rows, cols);
    // Custom pads are for TFILLPAD. Without a pad the rest becomes zero here; hardware does so only in L1.
    if constexpr (in_l1 || !TileT::isWhole) {
      constexpr auto pad = isCustomPadValue(static_cast<PadValue>(TileT::PadVal))
                               ? PadValue::Null
                               : static_cast<PadValue>(TileT::PadVal);
      PTO_IF_TARGET(kIsa == Isa::cpu) {
        fill_around(dst, rows, cols, pad_code<typename TileT::DType, pad>());
      }
      else {
        fill_blocks(dst, rows, cols, pad_code<typename TileT::DType, pad>());
      }
    }
  }
}

/// Copy with the row pitch of dst on both sides; strides and layout of the tensor are ignored.
template <class TileT, class Global>
inline void prefetch(TileT& dst, Global& src) {
  using T = typename TileT::DType;
  const ptrdiff_t rows = dst.GetValidRow(), cols = dst.GetValidCol();
  const auto* from = src.data();
  T* to = detail::as_const(dst).data();
  if (rows > 0 && cols > 0)
    touch_elements("TPREFETCH", from, bits_of<T>, 0, (rows - 1) * dst.Cols + cols - 1, Use::read);
  for (ptrdiff_t r = 0; r < rows; ++r) {
    const ptrdiff_t at = r * dst.Cols;
    if constexpr (bits_of<T> == 4) {
      for (ptrdiff_t i = at; i < at + cols; ++i)
        put_element<T>(to, i, element_at<T>(reinterpret_cast<const T*>(from), i));
    } else {
      std::memcpy(to + at, from + at, static_cast<size_t>(cols) * sizeof(T));
    }
  }
}

}  // namespace detail

// --- stores: TSTORE<[phase,] [tile, tensor, atomic, relu]>(dst, src [, word]) -----------------------------

namespace detail {

template <AtomicType Atomic, ReluPreMode Relu, class Global, class TileT>
inline void store(Global& dst, TileT& src) {
  store<Atomic, Relu>(dst, src, NoWords{});
}
template <AtomicType Atomic, ReluPreMode Relu, class Global, class TileT>
inline void store(Global& dst, TileT& src, uint64_t word) {
  store<Atomic, Relu>(dst, src, OneWord{word});
}

}  // namespace detail

/// Store with one word per column; a plain column-major tile has one word per row.
template <class TileT, class Global, class Fp, AtomicType Atomic = AtomicType::AtomicNone,
          ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
PTO_INST RecordEvent TSTORE_FP(Global& dst, TileT& src, Fp& fp, Events&... events) {
  PTO_LEGAL(check_tstore_fp<Global, TileT, Fp>(src, fp));
  TSYNC(events...);
  PTO_TRACE("tstore_fp dst src fp: atomicType reluPreMode", PTO_SAYS(Atomic, Relu), dst, src, fp);
  detail::store<Atomic, Relu, TileT::form == detail::Form::DN>(dst, src, detail::ColumnWords<Fp>{fp});
  return {};
}
template <STPhase Phase, class TileT, class Global, class Fp, AtomicType Atomic = AtomicType::AtomicNone,
          ReluPreMode Relu = ReluPreMode::NoRelu, class... Events>
PTO_INST RecordEvent TSTORE_FP(Global& dst, TileT& src, Fp& fp, Events&... events) {
  PTO_TRACE_WAITS(events...);
  PTO_TRACE("tstore_fp dst src fp: stPhase atomicType reluPreMode", PTO_SAYS(Phase, Atomic, Relu), dst, src,
            fp);
  return TSTORE_FP<TileT, Global, Fp, Atomic, Relu>(dst, src, fp, events...);
}

}  // namespace pto
