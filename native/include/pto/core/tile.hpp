// Tile: a matrix of elements in on-chip memory. Its type has the memory space, the layout and the static
// valid sizes. The object has the address and the valid sizes that are known only at run time.
//
// `detail::offset` is the storage formula (see src/pto/isa/tile.py). Two 4-bit elements share a byte; the
// element with the even offset is in the low half.
#pragma once

#include <cstring>

#include "pto/core/check.hpp"
#include "pto/core/dtypes.hpp"
#include "pto/core/enums.hpp"
#include "pto/core/trace.hpp"

namespace pto {

namespace detail {

/// std::as_const without <utility>, which takes longer to compile than this file.
template <class T>
constexpr const T& as_const(T& x) {
  return x;
}

enum class Form : uint8_t { ND, DN, NZ, ZN, ZZ, NN };

constexpr Form form_of(BLayout outer, SLayout inner) {
  const bool rows = outer == BLayout::RowMajor;
  if (inner == SLayout::NoneBox) return rows ? Form::ND : Form::DN;
  if (inner == SLayout::RowMajor) return rows ? Form::ZZ : Form::NZ;
  return rows ? Form::ZN : Form::NN;
}

/// Return the number of rows (`box_cols`: columns) of the inner box.
constexpr int box_rows(int bits, SLayout inner, int fractal) {
  if (inner == SLayout::NoneBox) return 1;
  if (fractal == 1024) return 16;
  if (fractal == 32) return inner == SLayout::RowMajor ? 16 : 2;
  return inner == SLayout::RowMajor ? 16 : 256 / bits;
}
constexpr int box_cols(int bits, SLayout inner, int fractal) {
  if (inner == SLayout::NoneBox) return 1;
  if (fractal == 1024) return 16;
  if (fractal == 32) return inner == SLayout::RowMajor ? 2 : 16;
  return inner == SLayout::RowMajor ? 256 / bits : 16;
}

/// Return the storage offset of element (r, c), in elements. `pitch`: rows from one column block to the next.
template <Form F, int BoxRows, int BoxCols>
constexpr ptrdiff_t offset(ptrdiff_t cols, ptrdiff_t pitch, ptrdiff_t r, ptrdiff_t c) {
  constexpr ptrdiff_t ir = BoxRows, ic = BoxCols, n = ir * ic;
  if constexpr (F == Form::ND) return r * cols + c;
  if constexpr (F == Form::DN) return c * pitch + r;
  const ptrdiff_t br = r / ir, pr = r % ir, bc = c / ic, pc = c % ic;
  if constexpr (F == Form::NZ) return bc * pitch * ic + br * n + pr * ic + pc;
  if constexpr (F == Form::ZN) return br * cols * ir + bc * n + pc * ir + pr;
  if constexpr (F == Form::ZZ) return br * cols * ir + bc * n + pr * ic + pc;
  return bc * pitch * ic + br * n + pc * ir + pr;
}

/// Return the rows from one column block of a tile to the next. `valid`: number of valid rows; `height`: rows
/// of a fractal, which is 2 for scales in NN, else 16.
constexpr int pitch_of(CompactMode compact, int rows, int valid, int height = 16) {
  const int whole = (valid + height - 1) / height * height;
  if (compact == CompactMode::Normal) return whole;
  if (compact == CompactMode::RowPlusOne) return whole + 1;
  return rows;
}

/// Return the size of `count` elements in bytes.
template <class T>
constexpr size_t bytes_of(size_t count) {
  return (count * bits_of<T> + 7) / 8;
}

#ifdef __PTO_AUTO__
/// Storage of a tile in auto mode: allocated at the first use of the tile, shared by copies of the tile.
class OwnStorage {
 public:
  OwnStorage() = default;
  OwnStorage(const OwnStorage& other) : block_(other.block_) {
    if (block_ != nullptr) ++block_->users;
  }
  OwnStorage& operator=(const OwnStorage& other) {
    if (other.block_ == nullptr) return *this;
    ++other.block_->users;
    drop();
    block_ = other.block_;
    return *this;
  }
  ~OwnStorage() { drop(); }

  char* make([[maybe_unused]] TileType loc, size_t bytes) {
    drop();
    block_ = static_cast<Block*>(std::calloc(1, sizeof(Block) + bytes + 4096));
    if (block_ == nullptr) failf("no memory for a tile of %zu bytes", bytes);
    block_->users = 1;
    char* const made = reinterpret_cast<char*>(block_ + 1);
    PTO_TRACE_PLACED(made, loc, bytes);
    return made;
  }

 private:
  struct alignas(64) Block {
    int users;
  };
  void drop() {
    if (block_ != nullptr && --block_->users == 0) {
      PTO_TRACE_FREED(reinterpret_cast<char*>(block_ + 1));
      std::free(block_);
    }
    block_ = nullptr;
  }
  Block* block_ = nullptr;
};
#endif

/// A compiler barrier. Tiles of different types may share bytes, and by the aliasing rules of C++ a compiler
/// could reorder accesses to them.
PTO_INLINE void keep_order() { asm volatile("" ::: "memory"); }

/// Rows and columns of a tile: in its type or, for tiles whose size is known only at run time, in the object.
template <class T, int Rows_, int Cols_>
struct TileSize {
  static constexpr int Rows = Rows_, Cols = Cols_, Numel = Rows_ * Cols_;
  static constexpr size_t GetSizeInBytes() { return bytes_of<T>(Numel); }
};
template <class T>
struct TileSize<T, DYNAMIC, DYNAMIC> {
  int Rows = 0, Cols = 0, Numel = 0;
  size_t GetSizeInBytes() const { return bytes_of<T>(static_cast<size_t>(Numel)); }
};

/// The used length of each line of a window of a tile; 0: all. The lines of the window are those of the tile,
/// longer than the valid region of the window.
template <bool Whole>
struct TileLine {
  int Line = 0;
};
template <>
struct TileLine<true> {
  static constexpr int Line = 0;
};

/// The address of a tile. Assignment of a null address has no effect: kernels change the valid region with
/// `tile = TileT(rows)`, and the compilers of devices do not copy an address that was never written.
template <class T>
struct TileAddress {
  T* at = nullptr;
  TileAddress() = default;
  TileAddress(const TileAddress&) = default;
  TileAddress& operator=(const TileAddress& other) {
    if (other.at != nullptr) at = other.at;
    return *this;
  }
  TileAddress& operator=(T* place) {
    at = place;
    return *this;
  }
  operator T*() const { return at; }
};

template <class T>
struct Binder;  // gives tiles and tensors their address; see assign.hpp

/// Read (`put_element`: write) one element by its linear offset.
template <class T>
inline T element_at(const T* data, size_t at) {
  if constexpr (bits_of<T> == 4) {
    const uint8_t byte = reinterpret_cast<const uint8_t*>(data)[at / 2];
    const uint8_t code = at % 2 ? byte >> 4 : byte & 0xF;
    return __builtin_bit_cast(T, code);
  } else {
    return data[at];
  }
}
template <class T>
inline void put_element(T* data, size_t at, T value) {
  if constexpr (bits_of<T> == 4) {
    uint8_t& byte = reinterpret_cast<uint8_t*>(data)[at / 2];
    const uint8_t code = __builtin_bit_cast(uint8_t, value) & 0xF;
    byte = static_cast<uint8_t>(at % 2 ? (byte & 0x0F) | code << 4 : (byte & 0xF0) | code);
  } else {
    data[at] = value;
  }
}

[[noreturn, gnu::cold, gnu::noinline]] inline void unbound() {
  fail(
      "[PTO][R003] a tile is used before TASSIGN gave it an address; fix: assign one, or compile for auto "
      "mode, where tiles have storage of their own: pto run --auto, that is -D__PTO_AUTO__");
}

}  // namespace detail

template <TileType Loc_, class Element_, int Rows_, int Cols_, BLayout BFractal_ = BLayout::RowMajor,
          int RowValid_ = Rows_, int ColValid_ = Cols_, SLayout SFractal_ = SLayout::NoneBox,
          int SFractalSize_ = TileConfig::fractalABSize, auto PadVal_ = PadValue::Null,
          CompactMode Compact_ = CompactMode::Null>
struct Tile : detail::TileSize<Element_, Rows_, Cols_>,
              detail::TileLine<Rows_ != DYNAMIC && RowValid_ == Rows_ && ColValid_ == Cols_> {
  using Size = detail::TileSize<Element_, Rows_, Cols_>;
  using Size::Rows, Size::Cols, Size::Numel;
  using DType = Element_;
  using TileDType = DType*;

  static constexpr TileType Loc = Loc_;
  /// True if the size is known only at run time, in kernels of the virtual machine.
  static constexpr bool isOpen = Rows_ == DYNAMIC;
  /// True if the whole tile is valid, by its type.
  static constexpr bool isWhole = !isOpen && RowValid_ == Rows_ && ColValid_ == Cols_;
  static constexpr int ValidRow = RowValid_, ValidCol = ColValid_;
  static constexpr BLayout BFractal = BFractal_;
  static constexpr SLayout SFractal = SFractal_;
  static constexpr int SFractalSize = SFractalSize_;
  static constexpr auto PadVal = PadVal_;
  static constexpr CompactMode Compact = Compact_;

  static constexpr bool isRowMajor = BFractal_ == BLayout::RowMajor;
  static constexpr bool isBoxedLayout = SFractal_ != SLayout::NoneBox;
  static constexpr bool isInnerRowMajor = SFractal_ == SLayout::RowMajor;
  static constexpr bool isInnerColMajor = SFractal_ == SLayout::ColMajor;
  static constexpr int RowStride = isRowMajor ? Cols_ : 1, ColStride = isRowMajor ? 1 : Rows_;

  static constexpr int bits = detail::bits_of<DType>;
  static constexpr int InnerRows = detail::box_rows(bits, SFractal_, SFractalSize_);
  static constexpr int InnerCols = detail::box_cols(bits, SFractal_, SFractalSize_);
  static constexpr int InnerNumel = InnerRows * InnerCols;
  static constexpr detail::Form form = detail::form_of(BFractal_, SFractal_);

  static_assert(SFractalSize_ == 512 || SFractalSize_ == 1024 || SFractalSize_ == 32,
                "[PTO][SA-0095] Tile: the fractal size is none of 512, 1024 and 32");
  static_assert(isOpen == (Cols_ == DYNAMIC) && (detail::kOpenTiles || !isOpen),
                "[PTO][SA-0065] Tile: rows and columns must be known");
  static_assert(isOpen || (Rows_ > 0 && Cols_ > 0 && RowValid_ <= Rows_ && ColValid_ <= Cols_ &&
                           RowValid_ >= DYNAMIC && ColValid_ >= DYNAMIC),
                "[PTO][SA-0065] Tile: rows and columns must be positive and the valid region inside them; "
                "fix: make the tile larger or the valid region smaller");
  static_assert(isOpen || Cols_ % InnerCols == 0,
                "[PTO][SA-0066] Tile: the columns are not a multiple of the columns of the inner box; "
                "fix: round the columns up");
  static_assert(isOpen || Rows_ % InnerRows == 0 || Loc_ == TileType::Vec || SFractalSize_ == 32 ||
                    Rows_ == 1,
                "[PTO][SA-0067] Tile: the rows are not a multiple of the rows of the inner box; "
                "fix: round the rows up");
  static_assert(
      isOpen || isBoxedLayout || (isRowMajor ? Cols_ : Rows_) * sizeof(DType) % TileConfig::alignedSize == 0,
      "[PTO][SA-0006] Tile: a row (a column if BLayout is ColMajor) must take a multiple of 32 bytes; "
      "fix: round it up and give the true size as valid region");

  // Valid sizes that are known only at run time; unused if the type has them.
  unsigned RowMaskInternal = 0, ColMaskInternal = 0;

  Tile() = default;
  /// Construct from the valid sizes that the type leaves open, rows first.
  Tile(size_t rows, size_t cols)
    requires(RowValid_ == DYNAMIC && ColValid_ == DYNAMIC)
      : RowMaskInternal(static_cast<unsigned>(rows)), ColMaskInternal(static_cast<unsigned>(cols)) {
    check_valid();
  }
  Tile(size_t rows)
    requires(RowValid_ == DYNAMIC && ColValid_ != DYNAMIC)
      : RowMaskInternal(static_cast<unsigned>(rows)) {
    check_valid();
  }
  Tile(size_t cols)
    requires(RowValid_ != DYNAMIC && ColValid_ == DYNAMIC)
      : ColMaskInternal(static_cast<unsigned>(cols)) {
    check_valid();
  }

  static constexpr unsigned GetValidRow()
    requires(RowValid_ != DYNAMIC)
  {
    return RowValid_;
  }
  unsigned GetValidRow() const
    requires(RowValid_ == DYNAMIC)
  {
    return RowMaskInternal;
  }
  static constexpr unsigned GetValidCol()
    requires(ColValid_ != DYNAMIC)
  {
    return ColValid_;
  }
  unsigned GetValidCol() const
    requires(ColValid_ == DYNAMIC)
  {
    return ColMaskInternal;
  }

  PTO_INST void SetValidRow(unsigned rows) {
    static_assert(RowValid_ == DYNAMIC,
                  "[PTO][SA-0065] SetValidRow: the valid rows of this tile are static; "
                  "fix: give -1 as RowValid");
    RowMaskInternal = rows;
    PTO_TRACE("set_validshape source:", PTO_SAYS(), *this);
    check_valid();
  }
  PTO_INST void SetValidCol(unsigned cols) {
    static_assert(ColValid_ == DYNAMIC,
                  "[PTO][SA-0065] SetValidCol: the valid columns of this tile are static; "
                  "fix: give -1 as ColValid");
    ColMaskInternal = cols;
    PTO_TRACE("set_validshape source:", PTO_SAYS(), *this);
    check_valid();
  }
  PTO_INST void SetValidShape(unsigned rows, unsigned cols) {
    static_assert(RowValid_ == DYNAMIC && ColValid_ == DYNAMIC,
                  "[PTO][SA-0065] SetValidShape: the valid region of this tile is static; "
                  "fix: give -1 as RowValid and ColValid");
    RowMaskInternal = rows;
    ColMaskInternal = cols;
    PTO_TRACE("set_validshape source:", PTO_SAYS(), *this);
    check_valid();
  }

  /// Return the address of the tile.
#ifdef __PTO_AUTO__
  TileDType& data() {
    detail::keep_order();
    if (data_.at == nullptr) data_.at = reinterpret_cast<DType*>(own_.make(Loc, GetSizeInBytes()));
    return data_.at;
  }
  const TileDType& data() const { return const_cast<Tile*>(this)->data(); }
#else
  /// Without a check: the caller may assign an address to the result.
  TileDType& data() {
    detail::keep_order();
    return data_.at;
  }
  const TileDType& data() const {
    detail::keep_order();
    check_bound();
    return data_.at;
  }
#endif

  /// Access one element by its storage offset. The scalar unit does that, so the tile must be in UB.
  PTO_INST void SetValue(uint32_t at, DType value) {
    PTO_TRACE("tsetval dst offset val:", PTO_SAYS(), *this, at, value);
    static_assert(Loc_ == TileType::Vec,
                  "[PTO][SA-0230] SetValue: only Vec tiles are reached by the scalar unit");
    PTO_CHECK(at < Numel, "M001", "SetValue: element %u of a tile of %d", at, Numel);
    check_near(at);
    detail::put_element(detail::as_const(*this).data(), at, value);
  }
  PTO_INST DType GetValue(uint32_t at) const {
    PTO_TRACE("tgetval src offset:", PTO_SAYS(), *this, at);
    static_assert(Loc_ == TileType::Vec,
                  "[PTO][SA-0230] GetValue: only Vec tiles are reached by the scalar unit");
    PTO_CHECK(at < Numel, "M001", "GetValue: element %u of a tile of %d", at, Numel);
    check_near(at);
    return detail::element_at<DType>(data(), at);
  }

  /// Return the rows from one column block to the next, which depend on the compact mode.
  int pitch() const {
    return detail::pitch_of(Compact_, Rows, static_cast<int>(GetValidRow()),
                            form == detail::Form::NN ? InnerRows : 16);
  }
  /// Return the storage offset of element (r, c), in elements.
  ptrdiff_t offset(ptrdiff_t r, ptrdiff_t c) const {
    return detail::offset<form, InnerRows, InnerCols>(Cols, pitch(), r, c);
  }
  PTO_INST DType GetElement(int64_t r, int64_t c) const {
    PTO_TRACE("tgetval src offset:", PTO_SAYS(), *this, offset(r, c));
    return detail::element_at<DType>(data(), offset(r, c));
  }
  PTO_INST void SetElement(int64_t r, int64_t c, DType value) {
    PTO_TRACE("tsetval dst offset val:", PTO_SAYS(), *this, offset(r, c), value);
    detail::put_element(detail::as_const(*this).data(), offset(r, c), value);
  }
  PTO_INST void AddToElement(int64_t r, int64_t c, DType value) {
    SetElement(r, c, static_cast<DType>(GetElement(r, c) + value));
  }

  using Size::GetSizeInBytes;
  static constexpr size_t GetSizeInUnits() { return Size::GetSizeInBytes() / sizeof(DType); }

  bool GetKAligned() const { return k_aligned_; }
  void SetKAligned(bool aligned) { k_aligned_ = aligned; }
  /// Multiply f32 as TF32, rounding to nearest: ties away from zero (CAST_ROUND) or to even (CAST_RINT).
  void SetMadTF32Mode(RoundMode round = RoundMode::CAST_ROUND) {
    uint64_t& ctrl = detail::core().ctrl;
    const uint64_t bit = uint64_t{1} << MAD_ROUND_MODE_BIT;
    ctrl |= uint64_t{1} << MAD_MODE_BIT;
    ctrl = round == RoundMode::CAST_ROUND ? ctrl | bit : ctrl & ~bit;
  }
  void ResetMadMode() { detail::core().ctrl &= ~(uint64_t{1} << MAD_MODE_BIT); }

 private:
  template <class>
  friend struct detail::Binder;

  void check_valid() const {
    PTO_CHECK(static_cast<int>(GetValidRow()) <= Rows && static_cast<int>(GetValidCol()) <= Cols, "SA-0065",
              "Tile: valid region %ux%u exceeds the tile of %dx%d", GetValidRow(), GetValidCol(), Rows, Cols);
  }
  /// Runs in every build: elements farther away lie beyond the guards of the memory of a core.
  static void check_near(uint32_t at) {
    if (at > INT32_MAX) [[unlikely]]
      detail::failf("[PTO-E2101] element %u is outside the tile", at);
  }
  /// Runs in every build: an access to a null address would only be reported as unmapped.
  void check_bound() const {
    if (data_.at == nullptr) [[unlikely]]
      detail::unbound();
  }

  detail::TileAddress<DType> data_;
  bool k_aligned_ = false;
#ifdef __PTO_AUTO__
  detail::OwnStorage own_;
#endif
};

// --- tiles of the cube unit --------------------------------------------------------------------------------

namespace detail {
#ifdef PTO_CPU_OPEN
inline constexpr BLayout kLeftLayout = BLayout::RowMajor;  // unused: the virtual machine names the layout
#else
inline constexpr BLayout kLeftLayout = kLeftByColumns ? BLayout::ColMajor : BLayout::RowMajor;
#endif
}  // namespace detail

#define PTO_TILE_ALIAS(name, loc, blayout, slayout, fractal)                                            \
  template <class Element, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>                \
  using name =                                                                                          \
      Tile<TileType::loc, Element, Rows, Cols, blayout, RowValid, ColValid, SLayout::slayout, fractal>; \
  template <class Element, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>                \
  using name##Compact = Tile<TileType::loc, Element, Rows, Cols, blayout, RowValid, ColValid,           \
                             SLayout::slayout, fractal, PadValue::Null, CompactMode::Normal>

PTO_TILE_ALIAS(TileLeft, Left, detail::kLeftLayout, RowMajor, 512);
PTO_TILE_ALIAS(TileRight, Right, BLayout::RowMajor, ColMajor, 512);
PTO_TILE_ALIAS(TileAcc, Acc, BLayout::ColMajor, RowMajor, 1024);
PTO_TILE_ALIAS(TileLeftScale, ScaleLeft, BLayout::RowMajor, RowMajor, 32);
PTO_TILE_ALIAS(TileRightScale, ScaleRight, BLayout::ColMajor, ColMajor, 32);
#undef PTO_TILE_ALIAS

// --- type traits -------------------------------------------------------------------------------------------

template <class T>
struct is_tile : std::false_type {
  static constexpr SLayout layout_enum = SLayout::NoneBox;
};
template <TileType L, class E, int R, int C, BLayout B, int VR, int VC, SLayout S, int F, auto P,
          CompactMode M>
struct is_tile<Tile<L, E, R, C, B, VR, VC, S, F, P, M>> : std::true_type {
  static constexpr SLayout layout_enum = S;
};
template <class T>
inline constexpr bool is_tile_data_v = is_tile<std::remove_cv_t<T>>::value;
template <class T>
inline constexpr bool is_boxed_tile =
    is_tile_data_v<T> && is_tile<std::remove_cv_t<T>>::layout_enum != SLayout::NoneBox;
template <class T>
inline constexpr bool is_boxed_data_v = is_boxed_tile<T>;
template <class T>
struct is_Nz_layout : std::bool_constant<T::form == detail::Form::NZ> {};
template <class T>
struct is_Zn_layout : std::bool_constant<T::form == detail::Form::ZN> {};
template <class T>
struct is_Zz_layout : std::bool_constant<T::form == detail::Form::ZZ> {};

/// Return the storage offset of element (row, col) of a tile type that is not compact, in elements.
template <class TileT>
constexpr size_t GetTileOffset(int row, int col) {
  return static_cast<size_t>(
      detail::offset<TileT::form, TileT::InnerRows, TileT::InnerCols>(TileT::Cols, TileT::Rows, row, col));
}
template <class TileT>
constexpr size_t GetTileElementOffset(int row, int col) {
  return GetTileOffset<TileT>(row, col);
}

template <class TileT>
constexpr TileLayoutCustom GetTileLayoutCustom() {
  constexpr detail::Form form = TileT::form;
  if constexpr (form == detail::Form::ND) return TileLayoutCustom::ND;
  if constexpr (form == detail::Form::DN) return TileLayoutCustom::DN;
  if constexpr (TileT::SFractalSize != 512 || form == detail::Form::NN) return TileLayoutCustom::NONE;
  if constexpr (form == detail::Form::NZ) return TileLayoutCustom::NZ;
  return form == detail::Form::ZN ? TileLayoutCustom::ZN : TileLayoutCustom::ZZ;
}

template <class T>
constexpr bool IsTwinType() {
  return std::is_same_v<T, float4_e2m1x2_t> || std::is_same_v<T, float4_e1m2x2_t>;
}

// --- pad values --------------------------------------------------------------------------------------------

constexpr bool isCustomPadValue(PadValue pad) { return pad >= PadValue::CustomBase; }
constexpr uint32_t getCustomPadBits(PadValue pad) {
  return static_cast<uint32_t>(static_cast<uint64_t>(pad));
}

/// Return the pad value with the bits of `value`; a double is converted to float.
template <class T>
constexpr PadValue PadValueCustom(T value) {
  using Value = std::conditional_t<std::is_same_v<T, double>, float, T>;
  static_assert(sizeof(Value) <= 4, "[PTO][SA-0223] PadValueCustom: no pad value of more than 32 bits");
  const auto bits = __builtin_bit_cast(detail::code_t<Value>, static_cast<Value>(value));
  return static_cast<PadValue>(static_cast<uint64_t>(PadValue::CustomBase) | bits);
}
constexpr PadValue PadValueCustom16(uint16_t bits) {
  return static_cast<PadValue>(static_cast<uint64_t>(PadValue::CustomBase) | bits);
}
template <auto V>
inline constexpr PadValue PadCustom = PadValueCustom(V);

template <class T, PadValue Pad>
struct PadValueMap {
  static constexpr auto value = detail::pad_code<T, Pad>();
};

/// Return the element bits of the pad value of a tile type.
template <class TileT>
constexpr auto GetPadValue() {
  return detail::pad_code<typename TileT::DType, TileT::PadVal>();
}

}  // namespace pto

// Access to elements of arrays, including 4-bit types, for host code.
using pto::IsTwinType;
template <class T>
inline T GetProperDataPart(const T* data, size_t at) {
  return pto::detail::element_at<T>(data, at);
}
template <class T>
inline void SetProperDataPart(T* data, size_t at, T value) {
  pto::detail::put_element(data, at, value);
}
