// Tensors of orchestrations whose entry takes ChipTaskArgs: plain values with all their fields.
//
// Tasks take handles (../tensormap_and_ringbuffer/tensor.h): at a submission, `handle_of` converts each value
// to a handle. It derives the extents of the buffer from the strides: the dimension with the longest stride
// is the outermost one, and the ratio of two successive strides is the extent of the inner dimension.
#pragma once

#include <stdint.h>

#include "../tensormap_and_ringbuffer/pto_task_id.h"
#include "../tensormap_and_ringbuffer/tensor.h"

constexpr int MAX_TENSOR_DIMS = RUNTIME_MAX_TENSOR_DIMS;

enum class AddressSpace : uint8_t { HOST = 0, DEVICE = 1 };  // here both are memory of the process

/// A region of memory: `shapes` and `strides` count elements, and the region starts `start_offset` elements
/// after buffer.addr. Copies are independent. Take views of an output after the submission of the task that
/// produces it.
struct ChipTensor {
  PTOBufferHandle buffer;
  PTO2TaskId owner_task_id;  // the task that allocated the memory
  uint64_t start_offset;
  int32_t version;
  uint32_t ndims;
  DataType dtype;
  bool manual_dep;
  bool is_contiguous;
  AddressSpace address_space;
  uint32_t shapes[MAX_TENSOR_DIMS];
  uint32_t strides[MAX_TENSOR_DIMS];
  int32_t owner_scope;

  uint64_t numel() const {
    uint64_t count = ndims == 0 ? 0 : 1;
    for (uint32_t d = 0; d < ndims; d++) count *= shapes[d];
    return count;
  }
  uint64_t nbytes() const { return numel() * get_element_size(dtype); }
  /// Return the number of elements from the first to the last, with those between them.
  uint64_t extent_elem() const {
    if (numel() == 0) return 0;
    uint64_t last = 0;
    for (uint32_t d = 0; d < ndims; d++) last += uint64_t{shapes[d] - 1} * strides[d];
    return last + 1;
  }
  const ChipTensor& ref() const { return *this; }
  bool is_device_memory() const { return address_space == AddressSpace::DEVICE; }
  template <class T>
  T* data_as() const {
    return reinterpret_cast<T*>(buffer.addr);
  }
  template <class Index>
  uint64_t compute_flat_offset(const Index indices[], uint32_t count) const {
    uint64_t at = start_offset;
    for (uint32_t d = 0; d < count; d++) at += static_cast<uint64_t>(indices[d]) * strides[d];
    return at;
  }

  template <class Extent>
  void init_external(void* addr, uint64_t bytes, const Extent extents[], uint32_t rank, DataType type,
                     int32_t ver = 0, bool manual = false, AddressSpace space = AddressSpace::HOST) {
    buffer = {reinterpret_cast<uint64_t>(addr), bytes};
    owner_task_id = PTO2TaskId::invalid();
    owner_scope = 0;
    start_offset = 0;
    version = ver;
    dtype = type;
    manual_dep = manual;
    address_space = space;
    lay_out(extents, rank);
  }
  void copy(const ChipTensor& other) { *this = other; }
  void init_from(const ChipTensor& other) { *this = other; }

  /// Return a part of this tensor: one extent and one offset per dimension, relative to this tensor. The
  /// offsets of an empty part are ignored.
  template <class Extent, class Offset>
  ChipTensor view(const Extent extents[], const Offset offsets[], bool manual = false,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    ChipTensor made = *this;
    made.manual_dep = manual;
    for (uint32_t d = 0; d < ndims; d++) made.shapes[d] = static_cast<uint32_t>(extents[d]);
    if (made.numel() == 0) {
      made.is_contiguous = true;
      return made;
    }
    for (uint32_t d = 0; d < ndims; d++) {
      const auto from = static_cast<uint64_t>(offsets[d]), count = static_cast<uint64_t>(extents[d]);
      if (from > shapes[d] || count > shapes[d] - from) {
        assert_fail(file, line,
                    "view: dimension %u: offset %" PRIu64 " and shape %" PRIu64 " do not fit in %u", d, from,
                    count, shapes[d]);
      }
      made.start_offset += from * strides[d];
    }
    made.refresh();
    return made;
  }

  bool valid_transpose(uint32_t x, uint32_t y) const { return x < ndims && y < ndims; }
  ChipTensor transpose(uint32_t x, uint32_t y, bool manual = false, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) const {
    if (!valid_transpose(x, y)) {
      assert_fail(file, line, "transpose: no dimensions %u and %u in a tensor of %u", x, y, ndims);
    }
    uint32_t order[MAX_TENSOR_DIMS];
    for (uint32_t d = 0; d < ndims; d++) order[d] = d == x ? y : d == y ? x : d;
    return permute(order, manual, file, line);
  }
  template <class Index>
  ChipTensor permute(const Index order[], bool manual = false, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) const {
    ChipTensor made = *this;
    made.manual_dep = manual;
    for (uint32_t d = 0; d < ndims; d++) {
      const auto from = static_cast<uint32_t>(order[d]);
      if (from >= ndims) {
        assert_fail(file, line, "permute: no dimension %u in a tensor of %u", from, ndims);
      }
      made.shapes[d] = shapes[from];
      made.strides[d] = strides[from];
    }
    made.refresh();
    return made;
  }
  /// Return every step-th element of a dimension, from start up to, but not including, end.
  ChipTensor slice(uint32_t dim, uint32_t start, uint32_t end, uint32_t step = 1, bool manual = false,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (dim >= ndims || start >= end || end > shapes[dim] || step == 0) {
      assert_fail(file, line, "slice: from %u to %u in steps of %u, in dimension %u of %u", start, end, step,
                  dim, ndims);
    }
    ChipTensor made = *this;
    made.manual_dep = manual;
    made.start_offset += uint64_t{start} * strides[dim];
    made.shapes[dim] = (end - start + step - 1) / step;
    made.strides[dim] = strides[dim] * step;
    made.refresh();
    return made;
  }

  template <class Extent>
  bool valid_reshape(const Extent extents[], uint32_t rank) const {
    if (rank > static_cast<uint32_t>(MAX_TENSOR_DIMS)) return false;
    uint64_t count = rank == 0 ? 0 : 1;
    for (uint32_t d = 0; d < rank; d++) count *= static_cast<uint64_t>(extents[d]);
    return count == numel();
  }
  template <class Extent>
  ChipTensor reshape(const Extent extents[], uint32_t rank, bool manual = false,
                     const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (!valid_reshape(extents, rank)) {
      assert_fail(file, line, "reshape: the new shape must have %" PRIu64 " elements", numel());
    }
    if (!is_contiguous) assert_fail(file, line, "reshape: the tensor is not contiguous");
    ChipTensor made = *this;
    made.manual_dep = manual;
    made.lay_out(extents, rank);
    return made;
  }

#ifndef PTO2_LEAN
  std::string dump() const;
#endif

 private:
  template <class Extent>
  void lay_out(const Extent extents[], uint32_t rank) {
    ndims = rank;
    uint64_t step = 1;
    for (uint32_t d = MAX_TENSOR_DIMS; d-- > 0;) {
      shapes[d] = d < rank ? static_cast<uint32_t>(extents[d]) : 1;
      strides[d] = d < rank ? static_cast<uint32_t>(step) : 0;
      if (d < rank) step *= shapes[d];
    }
    is_contiguous = true;
  }
  void refresh() {
    uint64_t step = 1;
    is_contiguous = true;
    for (uint32_t d = ndims; d-- > 0;) {
      is_contiguous = is_contiguous && strides[d] == step;
      step *= shapes[d];
    }
  }
};

namespace pto2_detail {

/// Compute the extents of the buffer and the offsets of the region, as handles have them. Return true if they
/// describe the memory, so that two regions of one tensor can be compared by dimension.
inline bool place_in_buffer(const ChipTensor& tensor, TensorData& data, const char* file, int line) {
  uint32_t order[MAX_TENSOR_DIMS];  // dimensions from the longest stride to the shortest
  for (uint32_t d = 0; d < tensor.ndims; d++) {
    uint32_t at = d;
    for (; at > 0 && tensor.strides[order[at - 1]] < tensor.strides[d]; at--) order[at] = order[at - 1];
    order[at] = d;
  }
  const uint64_t size = get_element_size(tensor.dtype);
  uint64_t left = tensor.start_offset, outer = size == 0 ? 0 : tensor.buffer.size / size;
  bool fits = true;
  data.permutation = 0;
  for (uint32_t place = 0; place < tensor.ndims; place++) {
    const uint32_t d = order[place];
    const uint64_t stride = tensor.strides[d];
    if (stride == 0 || (place + 1 == tensor.ndims && stride != 1 && tensor.shapes[d] > 1)) {
      assert_fail(file, line,
                  "a tensor whose neighbours are %" PRIu64
                  " elements apart (dimension %u): tasks take tensors "
                  "with neighbours somewhere",
                  stride, d);
    }
    data.raw_shapes[d] = outer / stride;
    data.offsets[d] = left / stride;
    fits = fits && data.offsets[d] + tensor.shapes[d] <= data.raw_shapes[d] && outer % stride == 0;
    left %= stride;
    outer = stride;
    data.permutation |= (place ^ d) << (4 * d);
  }
  return fits && left == 0;
}

/// Return a handle with the fields of the value.
inline Tensor handle_of(const ChipTensor& tensor, const char* file, int line) {
  if (tensor.ndims == 0 || tensor.ndims > static_cast<uint32_t>(MAX_TENSOR_DIMS)) {
    assert_fail(file, line, "the ChipTensor is empty: it was never made, or has %u dimensions", tensor.ndims);
  }
  uint64_t extents[MAX_TENSOR_DIMS];
  for (uint32_t d = 0; d < tensor.ndims; d++) extents[d] = tensor.shapes[d];
  Tensor made(reinterpret_cast<void*>(tensor.buffer.addr), tensor.buffer.size, extents, extents, kNoOffsets,
              tensor.ndims, tensor.dtype, tensor.version, file, line);
  TensorData& data = made.data(file, line);
  data.manual_dep = tensor.manual_dep ? 1 : 0;
  data.owner_scope = tensor.owner_scope;
  data.owner_task = static_cast<int64_t>(tensor.owner_task_id.raw + 1);  // 0: no owner
  if (tensor.numel() == 0) return made;
  if (!place_in_buffer(tensor, data, file, line)) {
    // The region is no box of the buffer: it is compared with others by bytes, from its first element.
    for (uint32_t d = 0; d < tensor.ndims; d++) data.offsets[d] = 0;
    data.base_offset = tensor.start_offset;
  }
  data.update_start_offset();
  if (data.start_offset != tensor.start_offset) {
    assert_fail(file, line, "a tensor at element %" PRIu64 " has no place in its buffer",
                tensor.start_offset);
  }
  return made;
}

/// Convert the handle of an output to a value, after a submission.
inline void show(const Tensor& tensor, ChipTensor& as, const char* file, int line) {
  const TensorData& data = tensor.data(file, line);
  as.init_external(reinterpret_cast<void*>(data.buffer.addr), data.buffer.size, data.shapes,
                   static_cast<uint32_t>(data.ndims), data.dtype, data.version, data.manual_dep != 0);
  as.owner_task_id.raw = static_cast<uint64_t>(data.owner_task) - 1;
  as.owner_scope = data.owner_scope;
}

inline uint64_t creator_of(const ChipTensor& tensor) { return tensor.owner_task_id.raw; }
inline bool is_untracked(const ChipTensor& tensor) { return tensor.manual_dep; }

}  // namespace pto2_detail

#ifndef PTO2_LEAN
inline std::string ChipTensor::dump() const {
  return pto2_detail::handle_of(*this, __FILE__, __LINE__).dump();
}
#endif

/// Return a tensor over existing memory.
inline ChipTensor make_tensor_external(void* addr, const uint32_t shapes[], uint32_t ndims,
                                       DataType dtype = DataType::FLOAT32, bool manual_dep = false,
                                       int32_t version = 0, AddressSpace space = AddressSpace::HOST) {
  if (ndims == 0 || ndims > static_cast<uint32_t>(MAX_TENSOR_DIMS)) {
    assert_fail(__FILE__, __LINE__, "make_tensor_external: a tensor has 1 to 5 dimensions, got %u", ndims);
  }
  uint64_t bytes = get_element_size(dtype);
  for (uint32_t d = 0; d < ndims; d++) bytes *= shapes[d];
  ChipTensor made;
  made.init_external(addr, bytes, shapes, ndims, dtype, version, manual_dep, space);
  return made;
}

/// Return a tensor over existing memory with the given strides; `addr` is the address of its first element.
inline ChipTensor make_tensor_strided(void* addr, const uint32_t shapes[], const uint32_t strides[],
                                      uint32_t ndims, DataType dtype = DataType::FLOAT32,
                                      bool manual_dep = false, int32_t version = 0,
                                      AddressSpace space = AddressSpace::HOST) {
  ChipTensor made = make_tensor_external(addr, shapes, ndims, dtype, manual_dep, version, space);
  uint64_t step = 1;
  for (uint32_t d = ndims; d-- > 0;) {
    made.strides[d] = strides[d];
    made.is_contiguous = made.is_contiguous && strides[d] == step;
    step *= shapes[d];
  }
  made.buffer.size = made.extent_elem() * get_element_size(dtype);
  return made;
}
