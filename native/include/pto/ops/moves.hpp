// Moves between tiles: copies, windows, padding, reshapes, and the placement of scale exponents.
//
// A move keeps the logical position of every element; the layouts of the two tiles say where the bytes go.
// Moves out of an accumulator may convert, rectify and quantise (fixpipe.hpp).
#pragma once

#include "pto/ops/fixpipe.hpp"
#include "pto/ops/img2col.hpp"
#include "pto/ops/legality.hpp"

namespace pto {

namespace detail {

// --- where a move goes ------------------------------------------------------------------------------------

enum class Split : uint8_t { first, second, rows, cols };
inline constexpr Split split_of(AccToVecMode mode) { return static_cast<Split>(mode); }

/// Call go(place of dst, down, right) for every tile that dst stands for; (down, right) is the start of its
/// window in the source. A cube core moves to the buffers of its vector cores: to one of them, or half the
/// rows or columns to each. A vector core moves to the L1 of its cube core.
template <Split S, class Dst, class Go>
inline void for_receivers(Dst& dst, ptrdiff_t row, ptrdiff_t col, Go go) {
  auto to = place(dst, row, col);
  if constexpr (Dst::Loc == TileType::Vec) {
    const Core& me = core();
    if (me.kind == CoreKind::Cube && me.cluster != nullptr && me.cluster->vectors[0] != nullptr) {
      const ptrdiff_t at = reinterpret_cast<char*>(to.data) - me.space[0];
      for (int n = 0; n < 2; ++n) {
        Core* vector = me.cluster->vectors[n];
        if (vector == nullptr || (S == Split::first && n == 1)) continue;
        if (S == Split::second && n == 0 && me.cluster->vectors[1] != nullptr) continue;
        to.data = reinterpret_cast<typename Dst::DType*>(in_memory_of(*vector, 0, at));
        go(to, S == Split::rows ? n * static_cast<ptrdiff_t>(dst.GetValidRow()) : 0,
           S == Split::cols ? n * static_cast<ptrdiff_t>(dst.GetValidCol()) : 0);
      }
      return;
    }
  }
  if constexpr (Dst::Loc == TileType::Mat) {
    const Core& me = core();
    if (me.kind == CoreKind::Vector && me.cluster != nullptr && me.cluster->cube != nullptr) {
      constexpr int space = static_cast<int>(TileType::Mat);
      const ptrdiff_t at = reinterpret_cast<char*>(to.data) - me.space[space];
      if (at >= 0 && at < static_cast<ptrdiff_t>(room(space)))
        to.data = reinterpret_cast<typename Dst::DType*>(in_memory_of(*me.cluster->cube, space, at));
    }
  }
  go(to, ptrdiff_t{0}, ptrdiff_t{0});
}

// --- whole tiles and windows ------------------------------------------------------------------------------

/// The attributes of a move: ReLU, and the vector cores that receive it.
struct MoveOptions {
  bool relu = false;
  Split split = Split::first;
  constexpr explicit MoveOptions(auto... attrs) { (set(attrs), ...); }
  constexpr void set(ReluPreMode mode) { relu = mode == ReluPreMode::NormalRelu; }
  constexpr void set(AccToVecMode mode) { split = split_of(mode); }
};
template <auto... Attrs>
inline constexpr MoveOptions kMove{Attrs...};

/// Move the window of src at (row, col) to all of dst, through the fix-pipe.
template <auto... Attrs, class Dst, class Src, class Words>
inline void extract(Dst& dst, Src& src, ptrdiff_t row, ptrdiff_t col, Words words) {
  for_receivers<kMove<Attrs...>.split>(dst, 0, 0, [&](const auto& to, ptrdiff_t down, ptrdiff_t right) {
    if constexpr (requires { words.first; }) words.first = col + right;
    deliver<kMove<Attrs...>.relu>(to, src, row + down, col + right, dst.GetValidRow(), dst.GetValidCol(),
                                  words);
  });
}

/// TEXTRACT: move a window, plain, with a word or with a word per column, or move two windows of a tile.
template <auto... Attrs, class Dst, class Src>
inline void window(Dst& dst, Src& src, ptrdiff_t row, ptrdiff_t col) {
  if constexpr (is_conv_tile_v<Src>) {
    copy_fractal_window(dst, src, row, col);
  } else {
    extract<Attrs...>(dst, src, row, col, NoWords{});
  }
}
template <auto... Attrs, class Dst, class Src>
inline void window(Dst& dst, Src& src, uint64_t word, ptrdiff_t row, ptrdiff_t col) {
  extract<Attrs...>(dst, src, row, col, OneWord{word});
}
template <auto... Attrs, class Dst, class Src, class Fp>
inline void quantised_window(Dst& dst, Src& src, Fp& fp, ptrdiff_t row, ptrdiff_t col) {
  extract<Attrs...>(dst, src, row, col, ColumnWords<Fp>{fp});
}
template <class Dst, class Dst1, class Src>
inline void window(Dst& dst, Dst1& dst1, Src& src, ptrdiff_t row, ptrdiff_t col, ptrdiff_t row1,
                   ptrdiff_t col1) {
  extract(dst, src, row, col, NoWords{});
  extract(dst1, src, row1, col1, NoWords{});
}

/// TINSERT: move all of src to the window of dst at (row, col), plain, with a word or a word per column.
template <auto... Attrs, class Dst, class Src, class Words>
inline void insert(Dst& dst, Src& src, ptrdiff_t row, ptrdiff_t col, const Words& words) {
  for_receivers<kMove<Attrs...>.split>(dst, row, col, [&](const auto& to, ptrdiff_t, ptrdiff_t) {
    deliver<kMove<Attrs...>.relu>(to, src, 0, 0, src.GetValidRow(), src.GetValidCol(), words);
  });
}
template <auto... Attrs, class Dst, class Src>
inline void insertion(Dst& dst, Src& src, ptrdiff_t row, ptrdiff_t col) {
  insert<Attrs...>(dst, src, row, col, NoWords{});
}
template <auto... Attrs, class Dst, class Src>
inline void insertion(Dst& dst, Src& src, uint64_t word, ptrdiff_t row, ptrdiff_t col) {
  insert<Attrs...>(dst, src, row, col, OneWord{word});
}
template <auto... Attrs, class Dst, class Src, class Fp>
  requires(is_tile_data_v<Fp>)
inline void insertion(Dst& dst, Src& src, Fp& fp, ptrdiff_t row, ptrdiff_t col) {
  insert<Attrs...>(dst, src, row, col, ColumnWords<Fp>{fp});
}

/// Alias a tile to the storage of another tile, from byte `bytes` on.
template <class Dst, class Src>
inline void alias(Dst& dst, Src& src, size_t bytes) {
  const char* data = reinterpret_cast<const char*>(detail::as_const(src).data()) + bytes;
  bind(dst, data);
  constexpr int space = static_cast<int>(Dst::Loc);
  Core& me = core();
  if (data >= me.space[space] && data < me.space[space] + room(space))
    use_space(me, space,
              static_cast<size_t>(data - me.space[space]) +
                  bytes_of<typename Dst::DType>(static_cast<size_t>(dst.Numel)));
}

/// Cast, then apply ReLU to the result; NaN passes.
template <class T, class C>
inline T cast_rectified(C x) {
  const T found = cast_to<T>(x);
  return value_of<compute_t<T>>(found) < 0 ? T(0) : found;
}

/// Move src to dst, converted; a split gives each receiver its window of src.
template <auto... Attrs, class Dst, class Src>
inline void move_converted(Dst& dst, Src& src) {
  using T = typename Dst::DType;
  using C = compute_t<typename Src::DType>;
  constexpr bool relu = kMove<Attrs...>.relu;
  for_receivers<kMove<Attrs...>.split>(dst, 0, 0, [&](const auto& to, ptrdiff_t down, ptrdiff_t right) {
    const ptrdiff_t rows = dst.GetValidRow(), cols = dst.GetValidCol();
    if constexpr (!relu) {
      deliver<false>(to, src, down, right, rows, cols, NoWords{});
    } else {
      const Lines<Src> from(src);
      Buffer<C> in;
      Buffer<T> out;
      for (ptrdiff_t r = 0; r < rows; ++r) {
        for (ptrdiff_t c = 0; c < cols; c += kChunk) {
          const ptrdiff_t n = lesser(cols - c, kChunk);
          const C* x = from.template read<C>(down + r, right + c, n, in.at);
          for (ptrdiff_t i = 0; i < n; ++i) out.at[i] = cast_rectified<T>(x[i]);
          put_row(to, r, c, n, out.at);
        }
      }
    }
  });
}

/// TMOV: move plain, with a word or with a word per column.
template <auto... Attrs, class Dst, class Src>
inline void move(Dst& dst, Src& src) {
  if constexpr (is_conv_tile_v<Src>) {
    copy_fractal_window(dst, src, 0, 0);
  } else {
    move_converted<Attrs...>(dst, src);
  }
}
template <auto... Attrs, class Dst, class Src>
inline void move(Dst& dst, Src& src, uint64_t word) {
  if constexpr (!is_conv_tile_v<Src> && kQuantises<typename Src::DType, typename Dst::DType>) {
    extract<Attrs...>(dst, src, 0, 0, OneWord{word});
  } else {
    move<Attrs...>(dst, src);
  }
}
template <auto... Attrs, class Dst, class Src, class Fp>
  requires(is_tile_data_v<Fp>)
inline void move(Dst& dst, Src& src, Fp& fp) {
  extract<Attrs...>(dst, src, 0, 0, ColumnWords<Fp>{fp});
}

/// Move one-byte scale exponents into boxes of 16 x 2; for group axis 0, of the transposed source.
template <int GroupAxis, class Dst, class Src>
inline void box_scales(Dst& dst, Src& src) {
  const auto from = place(src);
  const ptrdiff_t rows = src.GetValidRow(), cols = src.GetValidCol();
  char* to = reinterpret_cast<char*>(detail::as_const(dst).data());
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; ++c) {
      const ptrdiff_t at = GroupAxis == 1 ? ((r / 16 * (src.Cols / 2) + c / 2) * 16 + r % 16) * 2 + c % 2
                                          : ((c / 16 * (src.Rows / 2) + r / 2) * 16 + c % 16) * 2 + r % 2;
      std::memcpy(to + at, from.data + from.at(r, c), 1);
    }
  }
}

template <class Dst, class Src>
inline void fill_padding(Dst& dst, Src& src) {
  using T = typename Dst::DType;
  const ptrdiff_t rows = lesser(src.GetValidRow(), dst.Rows), cols = lesser(src.GetValidCol(), dst.Cols);
  if (dst.GetValidRow() == 0 || dst.GetValidCol() == 0) return;
  // Copy first: if both tiles share storage, the copy must read src before the padding is written.
  if (static_cast<const void*>(dst.data()) != static_cast<const void*>(src.data()) ||
      Dst::form != Src::form || dst.Cols != src.Cols || dst.Rows != src.Rows)
    copy(place(dst), place(src), rows, cols);
  fill_around(dst, rows, cols, Dst::Loc == TileType::Mat ? code_t<T>{0} : pad_code<T, Dst::PadVal>());
}

}  // namespace detail

// --- calls whose frames depend on more than their operands -----------------------------------------------

/// Move with a third operand: quantisation words out of an accumulator, else scratch for a move of scale
/// exponents into boxes.
template <class Dst, class Src, class Third, class... Events>
  requires(is_tile_data_v<Third>)
PTO_INST RecordEvent TMOV(Dst& dst, Src& src, Third& third, Events&... events) {
  TSYNC(events...);
  if constexpr (Src::Loc == TileType::Acc) {
    PTO_LEGAL(check_tmov_with_fp<Dst, Src, Third>(dst, src));
    PTO_TRACE("tmov dst src fp:", PTO_SAYS(), dst, src, third);
    detail::move(dst, src, third);
  } else {
    PTO_LEGAL(check_tmov_with_tmp<Dst, Src, Third>(dst, src));
    PTO_TRACE("tmov dst src tmp:", PTO_SAYS(), dst, src, third);
    detail::box_scales<1>(dst, src);
  }
  return {};
}
template <int GroupAxis, class Dst, class Src, class Tmp, class... Events>
  requires(is_tile_data_v<Tmp>)
PTO_INST RecordEvent TMOV(Dst& dst, Src& src, [[maybe_unused]] Tmp& tmp, Events&... events) {
  PTO_LEGAL(check_tmov_with_tmp<Dst, Src, Tmp, GroupAxis>(dst, src));
  TSYNC(events...);
  PTO_TRACE("tmov dst src tmp: grp_axis", PTO_SAYS(GroupAxis), dst, src, tmp);
  detail::box_scales<GroupAxis>(dst, src);
  return {};
}

/// Insert with a mode that splits the transfer in the hardware; it has no effect on the data.
template <detail::InsertMode Mode, class Dst, class Src, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TINSERT(Dst& dst, Src& src, uint16_t row = 0, uint16_t col = 0, Events&... events) {
  return TINSERT<Dst, Src>(dst, src, row, col, events...);
}

// --- padding, shape ---------------------------------------------------------------------------------------

template <class TileT, PadValue Pad = PadValue::Zero, class... Events>
  requires(TileT::Loc == TileType::Mat)
PTO_INST RecordEvent TFILLPAD(TileT& dst, TileT& src, Events&... events) {
  PTO_LEGAL(check_tfillpad<TileT, TileT>());
  TSYNC(events...);
  PTO_TRACE("tfillpad dst src:", PTO_SAYS(), dst, src);
  detail::fill_padding(dst, src);
  return {};
}
template <TFillPadMode Mode = TFillPadMode::Normal, class Dst, class Src, class... Events>
  requires(is_tile_data_v<Dst> && is_tile_data_v<Src> && Dst::Loc == TileType::Vec)
PTO_INST RecordEvent TFILLPAD(Dst& dst, Src& src, Events&... events) {
  if constexpr (Mode == TFillPadMode::Expand) {
    PTO_LEGAL(check_tfillpad_expand<Dst, Src>());
  } else if constexpr (Mode == TFillPadMode::InPlace) {
    PTO_LEGAL(check_tfillpad_inplace<Dst, Src>());
  } else {
    PTO_LEGAL(check_tfillpad<Dst, Src>());
  }
  TSYNC(events...);
  PTO_TRACE(Mode == TFillPadMode::Expand    ? "tfillpad_expand dst src:"
            : Mode == TFillPadMode::InPlace ? "tfillpad_inplace dst src:"
                                            : "tfillpad dst src:",
            PTO_SAYS(), dst, src);
  detail::fill_padding(dst, src);
  return {};
}

/// Alias the bytes of a tile.
template <class Dst, class Src, class... Events>
PTO_INST RecordEvent TRESHAPE(Dst& dst, Src& src, Events&... events) {
  static_assert(is_tile_data_v<Dst> && is_tile_data_v<Src>,
                "[PTO][SA-0063] TRESHAPE: an operand is not a tile");
  PTO_LEGAL(check_treshape<Dst, Src>());
  TSYNC(events...);
  detail::alias(dst, src, 0);
  PTO_TRACE("treshape result src:", PTO_SAYS(), dst, src);
  return {};
}

/// Alias a window of a tile that starts at element (row, col).
template <class Dst, class Src, class... Events>
PTO_INST RecordEvent TSUBVIEW(Dst& dst, Src& src, uint16_t row, uint16_t col, Events&... events) {
  PTO_LEGAL(check_subview<Dst, Src>());
  TSYNC(events...);
  detail::alias(dst, src, detail::bytes_of<typename Src::DType>(static_cast<size_t>(src.offset(row, col))));
  PTO_TRACE("subview result source:", PTO_SAYS(), dst, src, row, col);
  return {};
}

#ifndef PTO_CPU_BARE_REGISTERS
/// Return the address of the scale exponents for data in L0A or L0B; 0 for other data.
template <class T>
inline uint64_t GetScaleAddr(T* data) {
  constexpr TileType sides[] = {TileType::Left, TileType::Right};
  for (const TileType side : sides) {
    const char* base = detail::core().space[static_cast<int>(side)];
    const auto at = static_cast<uint64_t>(reinterpret_cast<const char*>(data) - base);
    if (at < detail::room(static_cast<int>(side))) return at / 16;
  }
  return 0;
}
#endif

/// Place scale exponents in their own buffer, at 1/16 of the address of the data that they scale.
template <class Dst, class Src, class... Events>
PTO_INST RecordEvent TGET_SCALE_ADDR(Dst& dst, Src& src, Events&... events) {
  static_assert(is_tile_data_v<Src>, "[PTO][SA-0063] TGET_SCALE_ADDR: the source is not a tile");
  static_assert(is_tile_data_v<Dst>, "[PTO][SA-0090] TGET_SCALE_ADDR: the destination is not a tile");
  PTO_LEGAL(check_tget_scale_addr<Dst, Src>(dst, src));
  TSYNC(events...);
#ifdef __PTO_AUTO__
  (void)dst, (void)src;
#else
  const char* base = detail::core().space[static_cast<int>(Src::Loc)];
  const size_t at = static_cast<size_t>(reinterpret_cast<const char*>(detail::as_const(src).data()) - base);
  detail::bind(dst, detail::on_chip(Dst::Loc, at / 16));
#endif
  return {};
}

}  // namespace pto
