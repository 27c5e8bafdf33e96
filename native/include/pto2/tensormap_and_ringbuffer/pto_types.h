// Parameters of tasks.
#pragma once

#include <stdint.h>

#include "tensor.h"

typedef enum {
  PTO2_WORKER_CUBE = 0,
  PTO2_WORKER_VECTOR = 1,
  PTO2_WORKER_AI_CPU = 2,
  PTO2_WORKER_ACCELERATOR = 3,
  PTO2_NUM_WORKER_TYPES = 4,
} PTO2WorkerType;

enum class PTOParamType : int32_t {
  INPUT = 0,
  OUTPUT = 1,
  INOUT = 2,
  SCALAR = 3,
  PIPE_IN = INPUT,    // the task pops from a FIFO of the cluster; a tensor of one element stands for it
  PIPE_OUT = OUTPUT,  // the task pushes
};

/// A parameter of a task. Submission moves the tensor out of the parameter.
struct PTOParam {
  PTOParamType type;
  Tensor tensor;
  uint64_t scalar_value;

  PTOParam() : type(PTOParamType::SCALAR), scalar_value(0) {}
  PTOParam(PTOParamType type, const Tensor& tensor, uint64_t scalar_value)
      : type(type), tensor(tensor), scalar_value(scalar_value) {}
};

namespace pto2_detail {

inline void need_address(const Tensor& tensor, const char* text, const char* file, int line) {
  if (__builtin_expect(tensor.data(file, line).buffer.addr != 0, 1)) return;
  assert_fail(
      file, line,
      "%s: no task that writes this tensor has been submitted (a view, reshape, transpose or copy that was "
      "taken before that keeps no address)",
      text);
}

}  // namespace pto2_detail

/// Return a scalar parameter with these 64 bits; a float belongs in the lower 32.
inline PTOParam make_scalar_param(uint64_t value) {
  PTOParam param;
  param.scalar_value = value;
  return param;
}

inline PTOParam make_input_param(const Tensor& tensor, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  pto2_detail::need_address(tensor, "INPUT param must have a non-NULL buffer address", file, line);
  return PTOParam(PTOParamType::INPUT, tensor, 0);
}

inline PTOParam make_output_param(const Tensor& tensor, const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  (void)tensor.data(file, line);
  return PTOParam(PTOParamType::OUTPUT, tensor, 0);
}

/// Return a tensor that stands for the content of a FIFO between tasks of a cluster (TPUSH, TPOP), so that
/// the task that pops waits for the task that pushes. The data goes through the FIFO.
inline Tensor make_pipe() {
  const uint64_t shape[] = {1};
  return make_tensor(shape, 1, DataType::INT32);
}
inline PTOParam make_pipe_in_param(const Tensor& pipe, const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) {
  return make_input_param(pipe, file, line);
}
inline PTOParam make_pipe_out_param(const Tensor& pipe, const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
  return make_output_param(pipe, file, line);
}

inline PTOParam make_inout_param(const Tensor& tensor, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  pto2_detail::need_address(tensor, "INOUT param must have a non-NULL buffer address", file, line);
  return PTOParam(PTOParamType::INOUT, tensor, 0);
}
