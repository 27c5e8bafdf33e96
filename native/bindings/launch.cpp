// pto._native.Launcher: a launch of a compiled kernel whose arguments need no conversion.
//
// src/pto/engine/compiled/quick.py defines such arguments; for others, a call returns None without a launch.
#include <nanobind/nanobind.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "pto/core/launch_abi.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

constexpr std::size_t kMost = 32;  // arguments

/// Buffers of the caller, held until the launch is over.
struct Held {
  Py_buffer views[kMost];
  std::size_t count = 0;
  ~Held() {
    while (count > 0) PyBuffer_Release(&views[--count]);
  }
};

class Launcher {
 public:
  /// `takes` has an entry per argument: (dtype, name) of an array, (least, largest) of an integer, or
  /// (bytes, 0, 0) of a float.
  Launcher(std::uintptr_t function, nb::handle array, nb::list takes, int subblocks, std::uintptr_t program,
           std::uintptr_t print)
      : function_(reinterpret_cast<int (*)(pto_launch*)>(function)),
        array_(nb::borrow(array)),
        dtype_(nb::str("dtype")),
        subblocks_(subblocks),
        program_(reinterpret_cast<const void*>(program)),
        print_(reinterpret_cast<void (*)(const char*)>(print)) {
    for (nb::handle entry : takes) {
      const nb::tuple t = nb::cast<nb::tuple>(entry);
      Takes one;
      if (nb::isinstance<nb::bytes>(t[1])) {
        one.kind = Kind::array;
        one.dtype = nb::borrow(t[0]);
        one.name = nb::cast<nb::bytes>(t[1]).c_str();
      } else if (t.size() == 2) {
        one.low = nb::cast<std::int64_t>(t[0]), one.high = nb::cast<std::int64_t>(t[1]);
      } else {
        one.kind = nb::cast<int>(t[0]) == 4 ? Kind::single : Kind::wide;
      }
      takes_.push_back(std::move(one));
    }
  }

  /// Return None if an argument does not fit, 0 on success, else (status, text, mark, two touched addresses).
  nb::object call(nb::tuple args, int blocks, int threads) const {
    const std::size_t count = takes_.size();
    if (args.size() != count || count > kMost) return nb::none();
    std::uint64_t words[kMost + 1];
    pto_array arrays[kMost + 1];
    Held held;
    for (std::size_t i = 0; i < count; ++i)
      if (!put(takes_[i], args[i].ptr(), words[i], arrays, held)) return nb::none();
    char error[8192];
    error[0] = 0;
    pto_launch launch{};
    launch.size = sizeof launch;
    launch.argc = static_cast<std::int32_t>(count);
    launch.args = words;
    launch.blocks = blocks, launch.subblocks = subblocks_, launch.threads = threads;
    launch.print = print_;
    launch.error = error, launch.error_size = sizeof error;
    launch.arrays = arrays, launch.array_count = static_cast<std::int32_t>(held.count);
    launch.mark = -1;
    launch.program = program_;
    int status;
    {
      nb::gil_scoped_release unlocked;
      status = function_(&launch);
    }
    if (status == 0) return nb::int_(0);
    return nb::make_tuple(status, nb::bytes(error, std::strlen(error)), launch.mark, launch.touched[0],
                          launch.touched[1]);
  }

 private:
  enum class Kind : std::uint8_t { array, whole, single, wide };
  struct Takes {
    Kind kind = Kind::whole;
    nb::object dtype;
    std::string name;
    std::int64_t low = 0, high = 0;
  };

  bool put(const Takes& takes, PyObject* given, std::uint64_t& word, pto_array* arrays, Held& held) const {
    if (takes.kind == Kind::array) {
      if (reinterpret_cast<PyObject*>(Py_TYPE(given)) != array_.ptr()) return false;
      const nb::object dtype = nb::steal(PyObject_GetAttr(given, dtype_.ptr()));
      if (dtype.ptr() != takes.dtype.ptr()) return cleared();
      Py_buffer& view = held.views[held.count];
      if (PyObject_GetBuffer(given, &view, PyBUF_WRITABLE) != 0) return cleared();
      arrays[held.count] = {view.buf, static_cast<std::uint64_t>(view.len), takes.name.c_str()};
      ++held.count;
      word = reinterpret_cast<std::uintptr_t>(view.buf);
      return view.len > 0;
    }
    if (takes.kind == Kind::whole) {
      if (!PyLong_CheckExact(given)) return false;
      int beyond = 0;
      const long long value = PyLong_AsLongLongAndOverflow(given, &beyond);
      word = static_cast<std::uint64_t>(value);
      return beyond == 0 && takes.low <= value && value <= takes.high;
    }
    if (!PyFloat_CheckExact(given)) return false;
    const double value = PyFloat_AsDouble(given);
    word = 0;
    if (takes.kind == Kind::wide) {
      std::memcpy(&word, &value, sizeof value);
      return true;
    }
    const float single = static_cast<float>(value);
    std::memcpy(&word, &single, sizeof single);
    return std::isfinite(single);
  }
  static bool cleared() {
    PyErr_Clear();
    return false;
  }

  int (*function_)(pto_launch*);
  nb::object array_, dtype_;
  std::vector<Takes> takes_;
  int subblocks_;
  const void* program_;
  void (*print_)(const char*);
};

}  // namespace

void bind_launch(nb::module_& m) {
  nb::class_<Launcher>(m, "Launcher", "Launches of a compiled kernel with arguments as it takes them.")
      .def(nb::init<std::uintptr_t, nb::handle, nb::list, int, std::uintptr_t, std::uintptr_t>(),
           "function"_a, "array"_a, "takes"_a, "subblocks"_a, "program"_a, "print"_a)
      .def("__call__", &Launcher::call, "args"_a, "blocks"_a, "threads"_a);
}
