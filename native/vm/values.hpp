// Functions of the virtual machine for memrefs (which have the layout of views in the frame), arrays of a
// function, groups of tensors and convolution tiles. `s` points to the operands of an instruction, in words.
#pragma once

#include "pto/vm/open.hpp"

namespace pto::vm {

using AnyTile =
    OpenTile<TileType::Vec, uint8_t, BLayout::RowMajor, SLayout::NoneBox, 512, 0, CompactMode::Null>;
using AnyView = OpenView<uint8_t, Layout::ND>;
static_assert(sizeof(AnyTile) == 40 && sizeof(AnyView) == 88, "_TILE and _VIEW of image/lower.py");

/// The fields of a view object.
struct ViewFields {
  char* data;
  int64_t shape[5], stride[5];
};
static_assert(sizeof(ViewFields) == sizeof(AnyView));

/// Fill the dimensions before the first one of a view: size 1, and a stride that spans the next dimension.
inline void fill_up(ViewFields& view, int rank) {
  for (int d = 4 - rank; d >= 0; --d) {
    view.shape[d] = 1;
    view.stride[d] = d < 4 ? view.shape[d + 1] * view.stride[d + 1] : 1;
  }
}

/// A list of numbers as text, for messages.
struct Numbers {
  char text[160] = "";
  size_t at = 0;
  void add(int64_t number, const char* between = ", ") {
    const int written = std::snprintf(text + at, sizeof text - at, "%s%lld", at != 0 ? between : "",
                                      static_cast<long long>(number));
    if (written > 0 && at + static_cast<size_t>(written) < sizeof text) at += static_cast<size_t>(written);
  }
};

// --- memrefs -----------------------------------------------------------------------------------------------

/// Cut a part out of a memref: result, source, bits, rank, kept dimensions (mask), offsets, sizes, steps
inline void cut_memref(char* frame, const uint32_t* s) {
  const ViewFields source = at<ViewFields>(frame, s[1]);
  const int rank = static_cast<int>(s[3]);
  const uint32_t *offsets = s + 5, *sizes = offsets + rank, *steps = sizes + rank;
  const int left = __builtin_popcount(s[4]);
  ViewFields& result = at<ViewFields>(frame, s[0]);
  int64_t offset = 0;
  for (int d = 0, to = 5 - left; d < rank; ++d) {
    const int64_t stride = source.stride[5 - rank + d];
    offset += at<int64_t>(frame, offsets[d]) * stride;
    if ((s[4] >> d & 1) == 0) continue;
    result.shape[to] = at<int64_t>(frame, sizes[d]);
    result.stride[to++] = at<int64_t>(frame, steps[d]) * stride;
  }
  result.data = source.data + offset * static_cast<int64_t>(s[2]) / 8;
  fill_up(result, left);
}

/// Compute the offset of an element, in elements, and check the indices: result, memref, rank, indices.
inline void element_of_memref(char* frame, const uint32_t* s) {
  const ViewFields& view = at<ViewFields>(frame, s[1]);
  const int rank = static_cast<int>(s[2]);
  int64_t offset = 0;
  bool inside = true;
  for (int d = 0; d < rank; ++d) {
    const int64_t index = at<int64_t>(frame, s[3 + d]);
    inside &= static_cast<uint64_t>(index) < static_cast<uint64_t>(view.shape[5 - rank + d]);
    offset += index * view.stride[5 - rank + d];
  }
  if (!inside) [[unlikely]] {
    Numbers indices, sizes;
    for (int d = 0; d < rank; ++d) indices.add(at<int64_t>(frame, s[3 + d]));
    for (int d = 0; d < rank; ++d) sizes.add(view.shape[5 - rank + d]);
    detail::failf("[PTO-E2102] index [%s] is outside the sizes [%s]", indices.text, sizes.text);
  }
  at<int64_t>(frame, s[0]) = offset;
}

/// Make a tile of a memref in on-chip memory: result, memref, rank, 1 if column-major.
inline void tile_of_memref(char* frame, const uint32_t* s) {
  const ViewFields& view = at<ViewFields>(frame, s[1]);
  const bool columns = s[3] != 0;
  const int64_t rows = s[2] > 1 ? view.shape[3] : 1, cols = view.shape[4];
  const int64_t lines = columns ? cols : rows, across = columns ? view.stride[3] : view.stride[4];
  const int64_t length = columns ? rows : cols;
  const int64_t pitch = lines <= 1 ? length : columns ? view.stride[4] : view.stride[3];
  if ((across != 1 && length > 1) || pitch < length)
    detail::failf("[PTO-E2102] cannot use a memref with strides %lld and %lld as a tile of %lld x %lld",
                  static_cast<long long>(view.stride[3]), static_cast<long long>(view.stride[4]),
                  static_cast<long long>(rows), static_cast<long long>(cols));
  // The pointer may come from any number.
  constexpr int64_t most = int64_t{1} << 24;  // in elements; no memory has as many
  if (!detail::is_own(detail::core(), view.data) || lines < 0 || lines > most || length < 0 || pitch > most ||
      lines * pitch > most) [[unlikely]]
    detail::failf("[PTO-E2101] a memref of %lld x %lld elements is outside the memory of the core",
                  static_cast<long long>(rows), static_cast<long long>(cols));
  AnyTile tile;
  tile.Rows = static_cast<int>(columns ? pitch : rows);
  tile.Cols = static_cast<int>(columns ? cols : pitch);
  tile.Numel = tile.Rows * tile.Cols;
  tile.RowMaskInternal = static_cast<unsigned>(rows);
  tile.ColMaskInternal = static_cast<unsigned>(cols);
  detail::bind(tile, view.data);
  at<AnyTile>(frame, s[0]) = tile;
}

// --- arrays, groups, convolution tiles ---------------------------------------------------------------------

/// Return the address of an element of an array: value, array, element size, rank, sizes, indices.
inline char* element_of_array(char* frame, const uint32_t* s) {
  const uint32_t rank = s[3];
  uint64_t offset = 0;
  bool inside = true;
  for (uint32_t d = 0; d < rank; ++d) {
    const int64_t index = at<int64_t>(frame, s[4 + rank + d]);
    inside &= static_cast<uint64_t>(index) < s[4 + d];
    offset = offset * s[4 + d] + static_cast<uint64_t>(index);
  }
  if (!inside) [[unlikely]] {
    Numbers indices, sizes;
    for (uint32_t d = 0; d < rank; ++d) indices.add(at<int64_t>(frame, s[4 + rank + d]));
    for (uint32_t d = 0; d < rank; ++d) sizes.add(s[4 + d], "x");
    detail::failf("[PTO-E2102] element [%s] of an array of %s elements", indices.text, sizes.text);
  }
  return frame + s[1] + offset * s[2];
}
inline void get_element(char* frame, const uint32_t* s) {
  std::memcpy(frame + s[0], element_of_array(frame, s), s[2]);
}
inline void set_element(char* frame, const uint32_t* s) {
  std::memcpy(element_of_array(frame, s), frame + s[0], s[2]);
}

inline void make_group(char* frame, const uint32_t* s) {  // result, consecutive tensors, their number, root
  using Group = comm::ParallelGroup<AnyView>;
  static_assert(sizeof(Group) == 16, "_GROUP of image/lower.py");
  at<Group>(frame, s[0]) = Group(&at<AnyView>(frame, s[1]), static_cast<int>(s[2]), static_cast<int>(s[3]));
}

template <class T>
using AnyConv = ConvTile<TileType::Mat, T, 0, Layout::ND,
                         ConvTileShape<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC>>;

template <class T>
inline void make_conv(char* frame, const uint32_t* s) {
  using Conv = AnyConv<T>;
  static_assert(sizeof(Conv) <= 128, "_CONV of image/lower.py");
  if (s[1] > 6) detail::failf("[PTO-E2102] a convolution tile of %u dimensions", s[1]);
  int64_t sizes[6] = {};
  for (uint32_t d = 0; d < s[1]; ++d) sizes[d] = s[2 + d];
  at<Conv>(frame, s[0]) = Conv(sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]);
}
/// Make a convolution tile, without memory until TASSIGN: result, rank, sizes, bits
inline void make_conv_tile(char* frame, const uint32_t* s) {
  const uint32_t bits = s[2 + s[1]];
  bits <= 8    ? make_conv<uint8_t>(frame, s)
  : bits == 16 ? make_conv<uint16_t>(frame, s)
  : bits == 32 ? make_conv<uint32_t>(frame, s)
               : make_conv<uint64_t>(frame, s);
}

inline void place_conv_tile(char* frame, const uint32_t* s) {  // tile, address, space, bits
  auto& tile = at<AnyConv<uint8_t>>(frame, s[0]);  // the element type does not change the layout of the sizes
  size_t used = 1;
  for (int d = 0; d < 6 && tile.GetShape(d) != 0; ++d) used *= static_cast<size_t>(tile.GetShape(d));
  used = (used * s[3] + 7) / 8;
  const int space = static_cast<int>(s[2]);
  const auto address = at<uint64_t>(frame, s[1]);
  char* found = detail::resolve(space, address, used);
  const char* base = detail::core().space[space];
  if (found < base || used > detail::room(space) || found + used > base + detail::room(space)) [[unlikely]]
    detail::failf("[PTO-E2101] a tile of %zu bytes at address 0x%zx is outside %s", used,
                  static_cast<size_t>(address), detail::kSpaceNames[space]);
  detail::bind(tile, found);
}

// clang-format off
#define PTO_VM_VALUES                                                                          \
  {"vm.cut", cut_memref}, {"vm.element", element_of_memref}, {"vm.tile_of", tile_of_memref},   \
  {"vm.get", get_element}, {"vm.set", set_element}, {"vm.group", make_group},                  \
  {"vm.conv", make_conv_tile}, {"vm.conv_at", place_conv_tile}
// clang-format on

}  // namespace pto::vm
