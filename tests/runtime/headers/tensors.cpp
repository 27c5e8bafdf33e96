// The tensors of orchestration code for ctypes: functions take and return indices of the pool; -1 means that
// an AssertionError was thrown, whose text is in `message`.
#include <cstring>

#include "pto_orchestration_api.h"

namespace {

char message_text[512];

/// A handle that borrows the reference of the caller.
struct Borrowed {
  explicit Borrowed(int index) { tensor.index = index; }
  ~Borrowed() { tensor.detach(); }
  Tensor tensor;
};

template <class Action>
int guarded(Action action) {
  try {
    return action();
  } catch (const AssertionError& error) {
    strncpy(message_text, error.what(), sizeof message_text - 1);
    return -1;
  }
}

int reclaimed;  // number of reclaimed descriptors

}  // namespace

extern "C" {

const char* message() { return message_text; }
TensorPool* make_pool(int capacity) {
  TensorPool* pool = new TensorPool(capacity);
  TensorPool::set_instance(pool);
  return pool;
}
void drop_pool(TensorPool* pool) {
  TensorPool::set_instance(nullptr);
  delete pool;
}
int live(TensorPool* pool) { return pool->live(); }
int peak(TensorPool* pool) { return pool->peak(); }
const TensorData* descriptor(TensorPool* pool, int index) { return &pool->data(index); }
void retain(TensorPool* pool, int index) { pool->retain(index); }
void release(TensorPool* pool, int index) { pool->release(index); }
void reset(TensorPool* pool) { pool->reset(); }
void reclaim_once(TensorPool* pool, int index) {
  reclaimed = index;
  pool->set_reclaim(
      [](void* context) {
        if (reclaimed == 0) return false;
        static_cast<TensorPool*>(context)->release(reclaimed);
        reclaimed = 0;
        return true;
      },
      pool);
}

int make(uint64_t addr, const uint64_t* shapes, uint64_t ndims, uint32_t dtype, int version) {
  return guarded([&] {
    const auto type = static_cast<DataType>(dtype);
    return addr == 0
               ? make_tensor(shapes, ndims, type, version).detach()
               : make_tensor_external(reinterpret_cast<void*>(addr), shapes, ndims, type, version).detach();
  });
}
int view(int index, const uint64_t* shapes, const uint64_t* offsets) {
  return guarded([&] { return Borrowed(index).tensor.view(shapes, offsets).detach(); });
}
int reshape(int index, const uint64_t* shapes, uint64_t ndims) {
  return guarded([&] { return Borrowed(index).tensor.reshape(shapes, ndims).detach(); });
}
int transpose(int index, uint64_t x, uint64_t y) {
  return guarded([&] { return Borrowed(index).tensor.transpose(x, y).detach(); });
}
int copy(int index) {
  return guarded([&] { return Borrowed(index).tensor.copy().detach(); });
}
int is_contiguous(int index) { return Borrowed(index).tensor.is_contiguous(); }
int valid_reshape(int index, const uint64_t* shapes, uint64_t ndims) {
  return Borrowed(index).tensor.valid_reshape(shapes, ndims);
}
uint64_t numel(int index) { return Borrowed(index).tensor.numel(); }
int dump(int index, char* text, int size) {
  return snprintf(text, static_cast<size_t>(size), "%s", Borrowed(index).tensor.dump().c_str());
}
int is_overlap(int access, int earlier) {
  return guarded(
      [&] { return static_cast<int>(Borrowed(access).tensor.is_overlap(Borrowed(earlier).tensor)); });
}
int overlap(int access, int earlier) {
  return guarded([&] {
    return static_cast<int>(tensor_overlap(Borrowed(access).tensor.data(), Borrowed(earlier).tensor.data()));
  });
}
int param(int kind, int index) {
  return guarded([&] {
    Borrowed borrowed(index);
    PTOParam made = kind == 0   ? make_input_param(borrowed.tensor)
                    : kind == 1 ? make_output_param(borrowed.tensor)
                                : make_inout_param(borrowed.tensor);
    return static_cast<int>(made.type);
  });
}
uint64_t element_size(uint32_t dtype) { return get_element_size(static_cast<DataType>(dtype)); }
const char* dtype_name(uint32_t dtype) { return get_dtype_name(static_cast<DataType>(dtype)); }

// Handles: copies share, moves empty, the count falls to nothing. 0, or the line of the first thing wrong.
#define EXPECT(condition) \
  if (!(condition)) return __LINE__
int handles(TensorPool* pool) {
  const uint64_t shapes[] = {4, 8};
  const int before = pool->live();
  {
    Tensor a = make_tensor(shapes, 2, DataType::INT16);
    Tensor b = a;
    EXPECT(b.index == a.index && a.data().ref_count == 2);
    b.data().buffer.addr = 64;
    EXPECT(a.data().buffer.addr == 64);
    Tensor c = std::move(b);
    EXPECT(b.index == 0 && a.data().ref_count == 2);
    c = a;
    EXPECT(a.data().ref_count == 2);
    Tensor& self = a;
    a = self;
    EXPECT(a.index != 0 && a.data().ref_count == 2);
    b = std::move(c);
    EXPECT(a.data().ref_count == 2);
    c = make_tensor(shapes, 1);
    b = c;
    EXPECT(a.data().ref_count == 1 && c.data().ref_count == 2);
    PTOParam params[] = {make_input_param(a), make_output_param(c), make_scalar_param(7)};
    EXPECT(params[0].tensor.index == a.index && a.data().ref_count == 2 && params[2].scalar_value == 7);
    PTOParam moved = std::move(params[0]);
    EXPECT(params[0].tensor.index == 0 && moved.tensor.index == a.index);
    const PTOParam nothing;
    EXPECT(nothing.tensor.index == 0);
    const int index = moved.tensor.detach();
    EXPECT(a.data().ref_count == 2);
    pool->release(index);
    EXPECT(a.data().ref_count == 1);
  }
  EXPECT(pool->live() == before);
  return 0;
}
int empty_tensor() {
  return guarded([] { return static_cast<int>(Tensor().numel()); });
}
int asserted(int value) {
  return guarded([&] {
    always_assert(value == 1);
    debug_assert(value == 1);
    return value;
  });
}
int assertion_parts() {
  try {
    always_assert(1 + 1 == 3);
  } catch (const std::runtime_error& error) {
    const auto& assertion = dynamic_cast<const AssertionError&>(error);
    EXPECT(strcmp(assertion.condition(), "1 + 1 == 3") == 0);
    EXPECT(strstr(assertion.file(), "tensors.cpp") != nullptr && assertion.line() == __LINE__ - 4);
    EXPECT(assertion.stacktrace()[0] != '\0');
    return 0;
  }
  return __LINE__;
}
}
