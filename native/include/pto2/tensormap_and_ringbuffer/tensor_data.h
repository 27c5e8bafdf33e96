// The descriptor of a tensor as kernels read it, and the test whether two descriptors share memory.
//
// raw_shapes are the extents of the buffer, shapes are the extents of the region, and offsets are its start,
// all by dimension and in elements. Strides follow from raw_shapes in row-major order. Fields up to `dtype`
// have the offsets that kernels were compiled with; additions of pto come after them.
//
// Differences to the documented runtime:
// - `start_offset` is always right, not only after dispatch, and a scheduler never writes it.
// - A reshape of a region that does not start at element 0 keeps its start (`base_offset`): the documented
//   runtime moves it to the start of the buffer.
// - A transposed descriptor records the memory order of its dimensions (`permutation`), so its start is the
//   first element, and not that of the exchanged extents. Kernels still see only the exchanged extents.
#pragma once

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <type_traits>

#include "common.h"
#include "data_type.h"
#ifndef PTO2_LEAN
#include <string>
#endif

constexpr int RUNTIME_MAX_TENSOR_DIMS = 5;

namespace pto2_detail {
constexpr uint64_t kNoOffsets[RUNTIME_MAX_TENSOR_DIMS] = {};
}

/// A buffer: address and size in bytes. addr 0: the runtime has not placed the buffer yet.
struct PTOBufferHandle {
  uint64_t addr;
  uint64_t size;
};

/// The relation of a region that a task accesses to a region that an earlier task wrote.
enum class OverlapStatus {
  NO_OVERLAP,
  COVERED,  // the later region contains the whole earlier one
  OTHER,
};

/// An interval: from begin up to, but not including, end.
struct Segment {
  uint64_t begin;
  uint64_t end;

  bool line_segment_intersection(const Segment& other) const {
    return begin < end && other.begin < other.end && begin < other.end && other.begin < end;
  }
  bool contains(const Segment& other) const { return begin <= other.begin && other.end <= end; }
};

struct TensorData {
  int32_t ref_count;
  int32_t version;
  PTOBufferHandle buffer;
  uint64_t raw_shapes[RUNTIME_MAX_TENSOR_DIMS];
  uint64_t shapes[RUNTIME_MAX_TENSOR_DIMS];
  uint64_t offsets[RUNTIME_MAX_TENSOR_DIMS];
  uint64_t start_offset;  // of the first element, in elements from buffer.addr
  uint64_t ndims;
  DataType dtype;
  // Four bits per dimension d: d ^ (its position in memory order). 0: no dimensions are transposed.
  uint32_t permutation;
  uint64_t base_offset;  // the element from which offsets count
  int32_t owner_scope;   // 1 + the scope of the task that allocated the memory; 0: user memory
  int32_t manual_dep;    // not 0: the tensor causes no dependencies
  int64_t owner_task;    // 1 + the task that allocated the memory; 0: user memory

  TensorData() = default;
  TensorData(const TensorData&) = delete;
  TensorData& operator=(const TensorData&) = delete;

  void init(void* addr, uint64_t bytes, const uint64_t raw[], const uint64_t extent[], const uint64_t start[],
            uint64_t rank, DataType type, int32_t ver) {
    if (rank > RUNTIME_MAX_TENSOR_DIMS) {
      assert_fail(__FILE__, __LINE__, "a tensor has at most 5 dimensions, got %" PRIu64, rank);
    }
    buffer = {reinterpret_cast<uint64_t>(addr), bytes};
    version = ver;
    ndims = rank;
    dtype = type;
    permutation = 0;
    base_offset = 0;
    owner_scope = 0;
    manual_dep = 0;
    owner_task = 0;
    for (uint64_t d = 0; d < RUNTIME_MAX_TENSOR_DIMS; d++) {
      raw_shapes[d] = d < rank ? raw[d] : 1;
      shapes[d] = d < rank ? extent[d] : 1;
      offsets[d] = d < rank ? start[d] : 0;
    }
    update_start_offset();
  }

  /// Copy all fields but the reference count.
  void init(const TensorData& other) {
    version = other.version;
    buffer = other.buffer;
    for (int d = 0; d < RUNTIME_MAX_TENSOR_DIMS; d++) {
      raw_shapes[d] = other.raw_shapes[d];
      shapes[d] = other.shapes[d];
      offsets[d] = other.offsets[d];
    }
    start_offset = other.start_offset;
    ndims = other.ndims;
    dtype = other.dtype;
    permutation = other.permutation;
    base_offset = other.base_offset;
    owner_scope = other.owner_scope;
    manual_dep = other.manual_dep;
    owner_task = other.owner_task;
  }

  void init_with_view(const TensorData& other, const uint64_t view_shapes[], const uint64_t view_offsets[]) {
    init(other);
    view(view_shapes, view_offsets);
  }

  /// Narrow the region to a part: offsets are added, the buffer stays the same.
  void view(const uint64_t view_shapes[], const uint64_t view_offsets[]) {
    for (uint64_t d = 0; d < ndims; d++) {
      shapes[d] = view_shapes[d];
      offsets[d] += view_offsets[d];
    }
    update_start_offset();
  }

  /// Exchange two dimensions of the descriptor; no element moves.
  void transpose(uint64_t x, uint64_t y) {
    const uint64_t in_memory_x = memory_dim(x), in_memory_y = memory_dim(y);
    exchange(raw_shapes, x, y);
    exchange(shapes, x, y);
    exchange(offsets, x, y);
    set_memory_dim(x, in_memory_y);
    set_memory_dim(y, in_memory_x);
    update_start_offset();
  }

  void update_start_offset() {
    start_offset = base_offset;
    uint64_t stride[RUNTIME_MAX_TENSOR_DIMS];
    strides(stride);
    for (uint64_t d = 0; d < ndims; d++) start_offset += offsets[d] * stride[d];
  }

  /// Compute the stride of each dimension in elements.
  void strides(uint64_t out[RUNTIME_MAX_TENSOR_DIMS]) const {
    uint64_t step = 1;
    if (permutation == 0) {
      for (uint64_t d = ndims; d-- > 0;) {
        out[d] = step;
        step *= raw_shapes[d];
      }
      return;
    }
    uint64_t dim_at[RUNTIME_MAX_TENSOR_DIMS] = {};
    for (uint64_t d = 0; d < ndims; d++) dim_at[memory_dim(d)] = d;
    for (uint64_t place = ndims; place-- > 0;) {
      out[dim_at[place]] = step;
      step *= raw_shapes[dim_at[place]];
    }
  }

  /// Return the position of dimension d in memory order.
  uint64_t memory_dim(uint64_t d) const { return ((permutation >> (4 * d)) & 15u) ^ d; }

  /// Return true if the elements are contiguous: all dimensions but the first are whole. In a transposed
  /// descriptor, the first must be whole too, because it may be an inner dimension of the memory.
  bool is_contiguous() const {
    for (uint64_t d = permutation == 0 ? 1 : 0; d < ndims; d++) {
      if (shapes[d] != raw_shapes[d]) return false;
    }
    return true;
  }

  uint64_t numel() const {
    if (ndims == 0) return 0;
    uint64_t count = 1;
    for (uint64_t d = 0; d < ndims; d++) count *= shapes[d];
    return count;
  }

  bool is_same_memref(const TensorData& other) const { return buffer.addr == other.buffer.addr; }

  /// Compare this access with the write of an earlier task, dimension by dimension, with the rank of this
  /// tensor. This is right for two views of one tensor; use tensor_overlap if either may have been reshaped
  /// or transposed.
  OverlapStatus is_overlap(const TensorData& pre_task_output) const {
    if (!is_same_memref(pre_task_output)) return OverlapStatus::NO_OVERLAP;
    if (version < pre_task_output.version) version_went_back(pre_task_output);
    if (version > pre_task_output.version) return OverlapStatus::OTHER;
    bool covered = true;
    for (uint64_t d = 0; d < ndims; d++) {
      const Segment mine{offsets[d], offsets[d] + shapes[d]};
      const Segment theirs{pre_task_output.offsets[d],
                           pre_task_output.offsets[d] + pre_task_output.shapes[d]};
      if (!mine.line_segment_intersection(theirs)) return OverlapStatus::NO_OVERLAP;
      covered = covered && mine.contains(theirs);
    }
    return covered ? OverlapStatus::COVERED : OverlapStatus::OTHER;
  }

#ifndef PTO2_LEAN
  std::string dump() const {
    char text[256];
    snprintf(text, sizeof text,
             "{\n    buffer.addr: %" PRIu64 "\n    buffer.size: %" PRIu64
             " bytes\n    dtype: %s\n    ndims: %" PRIu64 "\n    version: %d\n",
             buffer.addr, buffer.size, get_dtype_name(dtype), ndims, version);
    std::string all = text;
    append(all, "raw_shapes", raw_shapes);
    append(all, "shapes", shapes);
    append(all, "offsets", offsets);
    return all + "}\n";
  }
#endif

 private:
  static void exchange(uint64_t values[], uint64_t x, uint64_t y) {
    const uint64_t kept = values[x];
    values[x] = values[y];
    values[y] = kept;
  }
  void set_memory_dim(uint64_t d, uint64_t place) {
    permutation &= ~(15u << (4 * d));
    permutation |= static_cast<uint32_t>(place ^ d) << (4 * d);
  }
#ifndef PTO2_LEAN
  void append(std::string& all, const char* name, const uint64_t values[]) const {
    char text[32];
    all.append("    ").append(name).append(": [");
    for (uint64_t d = 0; d < ndims; d++) {
      snprintf(text, sizeof text, d == 0 ? "%" PRIu64 : ", %" PRIu64, values[d]);
      all += text;
    }
    all += "]\n";
  }
#endif
  [[noreturn, gnu::cold]] void version_went_back(const TensorData& earlier) const {
    assert_fail(__FILE__, __LINE__,
                "version %d of a tensor is used after version %d of the same buffer was written", version,
                earlier.version);
  }
};

static_assert(offsetof(TensorData, buffer) == 8 && offsetof(TensorData, raw_shapes) == 24 &&
                  offsetof(TensorData, shapes) == 64 && offsetof(TensorData, offsets) == 104 &&
                  offsetof(TensorData, start_offset) == 144 && offsetof(TensorData, ndims) == 152 &&
                  offsetof(TensorData, dtype) == 160,
              "kernels read TensorData in this layout");
static_assert(std::is_trivially_default_constructible<TensorData>::value,
              "the pool maps memory as TensorData");

/// Return the bytes of the buffer from the first element to the last, with those between them.
inline Segment tensor_bytes(const TensorData& tensor) {
  uint64_t stride[RUNTIME_MAX_TENSOR_DIMS], last = tensor.start_offset;
  tensor.strides(stride);
  if (tensor.numel() == 0) return {0, 0};
  for (uint64_t d = 0; d < tensor.ndims; d++) last += (tensor.shapes[d] - 1) * stride[d];
  const uint64_t size = get_element_size(tensor.dtype);
  return {tensor.start_offset * size, (last + 1) * size};
}

/// Return true if the elements of two regions can be compared by offsets and shapes.
inline bool same_geometry(const TensorData& a, const TensorData& b) {
  if (a.ndims != b.ndims || a.permutation != b.permutation || a.base_offset != b.base_offset) return false;
  if (a.dtype != b.dtype && get_element_size(a.dtype) != get_element_size(b.dtype)) return false;
  // Strides do not depend on the outermost extent (in a transposed descriptor, of any dimension).
  for (uint64_t d = a.permutation == 0 ? 1 : 0; d < a.ndims; d++) {
    if (a.raw_shapes[d] != b.raw_shapes[d]) return false;
  }
  return true;
}

/// Do the same as is_overlap, also for tensors of different rank, extents or element size. Those are compared
/// by their byte ranges, which may report an overlap where there is none, but never miss an overlap.
inline OverlapStatus tensor_overlap(const TensorData& access, const TensorData& pre_task_output) {
  if (!access.is_same_memref(pre_task_output)) return OverlapStatus::NO_OVERLAP;
  if (access.version != pre_task_output.version || same_geometry(access, pre_task_output)) {
    return access.is_overlap(pre_task_output);
  }
  const Segment mine = tensor_bytes(access), theirs = tensor_bytes(pre_task_output);
  if (!mine.line_segment_intersection(theirs)) return OverlapStatus::NO_OVERLAP;
  return access.is_contiguous() && mine.contains(theirs) ? OverlapStatus::COVERED : OverlapStatus::OTHER;
}
