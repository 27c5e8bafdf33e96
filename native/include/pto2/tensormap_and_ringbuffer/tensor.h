// Tensors of orchestration code: handles that share a descriptor and are passed by value.
#pragma once

#include <inttypes.h>
#include <memory.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common.h"
#include "data_type.h"
#include "tensor_data.h"

#ifdef __CPU_SIM  // kernels get descriptors, under the name in pto2/chip or the earlier name
using ChipTensor = TensorData;
using Tensor = TensorData;
#endif

#ifndef PTO_CPU_LEAN

#ifdef PTO2_LEAN
#include <array>  // the smallest header with std::min and std::swap
#else
#include <stdexcept>
#include <string>
#include <utility>
#endif

#include "tensor_pool.h"

#ifndef __CPU_SIM

/// A handle of a tensor. Copies share the descriptor, so an address that the runtime gives to an output is
/// visible in all copies. view, reshape, transpose and copy create new descriptors: use them on an
/// intermediate tensor only after the submission of its producer, since it has no address before.
struct Tensor {
  int32_t index = 0;  // in the TensorPool; 0: empty

  Tensor() = default;
  Tensor(void* addr, uint64_t buffer_size_bytes, const uint64_t raw_shapes[], const uint64_t shapes[],
         const uint64_t offsets[], uint64_t ndims, DataType dtype, int32_t version,
         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (ndims > static_cast<uint64_t>(RUNTIME_MAX_TENSOR_DIMS)) {
      assert_fail(file, line, "a tensor has at most 5 dimensions, got %" PRIu64, ndims);
    }
    TensorPool& pool = TensorPool::required(file, line);
    index = pool.allocate(file, line);
    pool.data(index).init(addr, buffer_size_bytes, raw_shapes, shapes, offsets, ndims, dtype, version);
  }

  Tensor(const Tensor& other) : index(other.index) { retain(); }
  Tensor(Tensor&& other) noexcept : index(other.index) { other.index = 0; }
  Tensor& operator=(const Tensor& other) {
    if (index == other.index) return *this;
    release();
    index = other.index;
    retain();
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(index, other.index);
    return *this;
  }
  ~Tensor() { release(); }

  /// Return the index and give up the reference: the caller must release the index.
  int32_t detach() {
    const int32_t given = index;
    index = 0;
    return given;
  }

  TensorData& data(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return const_cast<TensorData&>(static_cast<const Tensor*>(this)->data(file, line));
  }
  const TensorData& data(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (index == 0) {
      assert_fail(file, line, "the Tensor is empty: it was never made, or its contents were moved to a task");
    }
    return TensorPool::required(file, line).data(index);
  }

  Tensor copy(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    const TensorData& from = data(file, line);
    Tensor made = allocated(file, line);
    made.data().init(from);
    return made;
  }

  /// Return a part: one shape and one offset per dimension, in elements, relative to this tensor.
  Tensor view(const uint64_t view_shapes[], const uint64_t view_offsets[],
              const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    const TensorData& from = data(file, line);
#ifndef NDEBUG
    for (uint64_t d = 0; d < from.ndims; d++) {
      if (view_offsets[d] > from.shapes[d] || view_shapes[d] > from.shapes[d] - view_offsets[d]) {
        assert_fail(file, line,
                    "view: dimension %" PRIu64 ": offset %" PRIu64 " and shape %" PRIu64
                    " do not fit in %" PRIu64,
                    d, view_offsets[d], view_shapes[d], from.shapes[d]);
      }
    }
#endif
    Tensor made = allocated(file, line);
    made.data().init_with_view(from, view_shapes, view_offsets);
    return made;
  }

  bool is_contiguous(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    return data(file, line).is_contiguous();
  }

  bool valid_reshape(const uint64_t new_shapes[], uint64_t new_ndims) const {
    if (new_ndims > static_cast<uint64_t>(RUNTIME_MAX_TENSOR_DIMS)) return false;
    uint64_t count = new_ndims == 0 ? 0 : 1;
    for (uint64_t d = 0; d < new_ndims; d++) count *= new_shapes[d];
    return count == numel();
  }

  /// Return the same elements with other extents. A part can be reshaped only if its elements are contiguous;
  /// the result starts where the part starts.
  Tensor reshape(const uint64_t new_shapes[], uint64_t new_ndims, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) const {
    const TensorData& from = data(file, line);
#ifndef NDEBUG
    if (!valid_reshape(new_shapes, new_ndims)) {
      assert_fail(file, line, "reshape: the new shape must have %" PRIu64 " elements", from.numel());
    }
#endif
    if (!from.is_contiguous()) assert_fail(file, line, "reshape: the tensor is not contiguous");
    Tensor made = allocated(file, line);
    TensorData& to = made.data();
    to.init(reinterpret_cast<void*>(from.buffer.addr), from.buffer.size, new_shapes, new_shapes,
            pto2_detail::kNoOffsets, new_ndims, from.dtype, from.version);
    to.base_offset = to.start_offset = from.start_offset;
    to.owner_scope = from.owner_scope;
    to.manual_dep = from.manual_dep;
    to.owner_task = from.owner_task;
    return made;
  }

  bool valid_transpose(uint64_t x, uint64_t y) const { return x < data().ndims && y < data().ndims; }

  /// Exchange two dimensions of the descriptor: extents and offsets, not elements. A kernel that walks rows
  /// with the strides from raw_shapes must account for the exchange to read the right elements.
  Tensor transpose(uint64_t x, uint64_t y, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) const {
    const TensorData& from = data(file, line);
    if (!valid_transpose(x, y)) {
      assert_fail(file, line, "transpose: no dimensions %" PRIu64 " and %" PRIu64 " in a tensor of %" PRIu64,
                  x, y, from.ndims);
    }
    Tensor made = allocated(file, line);
    made.data().init(from);
    made.data().transpose(x, y);
    return made;
  }

#ifndef PTO2_LEAN
  std::string dump(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    return data(file, line).dump();
  }
#endif
  uint64_t numel(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    return data(file, line).numel();
  }
  OverlapStatus is_overlap(const Tensor& pre_task_output, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) const {
    return data(file, line).is_overlap(pre_task_output.data(file, line));
  }

 private:
  static Tensor allocated(const char* file, int line) {
    Tensor made;
    made.index = TensorPool::required(file, line).allocate(file, line);
    return made;
  }
  void retain() const {
    if (index != 0 && TensorPool::instance() != nullptr) TensorPool::instance()->retain(index);
  }
  // Without a pool, the run is over and every descriptor is gone: a static Tensor may outlive the run.
  void release() const {
    if (index != 0 && TensorPool::instance() != nullptr) TensorPool::instance()->release(index);
  }
};

namespace pto2_detail {

/// Return the bytes of a whole buffer; fail above 2^64.
inline uint64_t buffer_bytes(const uint64_t shapes[], uint64_t ndims, DataType dtype, const char* file,
                             int line) {
  uint64_t bytes = ndims == 0 ? 0 : get_element_size(dtype);
  if (get_element_size(dtype) == 0) assert_fail(file, line, "a tensor of an unknown data type");
  for (uint64_t d = 0; d < ndims && d < static_cast<uint64_t>(RUNTIME_MAX_TENSOR_DIMS); d++) {
    if (__builtin_mul_overflow(bytes, shapes[d], &bytes)) {
      assert_fail(file, line, "a tensor of more than 2^64 bytes");
    }
  }
  return bytes;
}

inline Tensor whole_tensor(void* addr, const uint64_t shapes[], uint64_t ndims, DataType dtype,
                           int32_t version, const char* file, int line) {
  const uint64_t bytes = buffer_bytes(shapes, ndims, dtype, file, line);
  return Tensor(addr, bytes, shapes, shapes, kNoOffsets, ndims, dtype, version, file, line);
}

}  // namespace pto2_detail

/// Return a tensor over existing memory, such as an argument of the orchestration.
inline Tensor make_tensor_external(void* addr, const uint64_t shapes[], uint64_t ndims,
                                   DataType dtype = DataType::FLOAT32, int32_t version = 0,
                                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return pto2_detail::whole_tensor(addr, shapes, ndims, dtype, version, file, line);
}

/// Return an intermediate tensor: the runtime places it at the submission of a task with this OUTPUT.
inline Tensor make_tensor(const uint64_t shapes[], uint64_t ndims, DataType dtype = DataType::FLOAT32,
                          int32_t version = 0, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  return pto2_detail::whole_tensor(nullptr, shapes, ndims, dtype, version, file, line);
}

#endif

#endif
