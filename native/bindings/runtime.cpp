// pto._runtime: the task runtime. pto.runtime checks the arguments; errors of a run are returned as the code
// and the text of a failure.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "run.hpp"
#include "tensormap/orchestration.hpp"
#include "tensormap/tensormap_graph.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pto2 {
void bind_graph(nb::module_& m);  // graph.cpp
}

namespace {

using namespace pto2;

/// A tensor of a Python orchestration. `owner` keeps the memory of an external tensor alive.
struct PyTensor {
  TensorData data{};
  nb::object owner;
  PyTensor() = default;
  PyTensor(const PyTensor& other) : owner(other.owner) { data.init(other.data); }
  PyTensor& operator=(const PyTensor&) = delete;
};

std::vector<uint64_t> numbers(nb::handle sequence, uint64_t rank, const char* what) {
  std::vector<uint64_t> out;
  for (nb::handle item : sequence) {
    uint64_t number = 0;
    if (!nb::try_cast(item, number)) {
      throw nb::value_error((std::string(what) + ": expected numbers that are not negative").c_str());
    }
    out.push_back(number);
  }
  if (rank != 0 && out.size() != rank) {
    throw nb::value_error((std::string(what) + " has " + std::to_string(out.size()) + " numbers, expected " +
                           std::to_string(rank))
                              .c_str());
  }
  if (out.size() > RUNTIME_MAX_TENSOR_DIMS) throw nb::value_error("a tensor has at most 5 dimensions");
  return out;
}

/// Make a tensor. `offset`: elements from the start of the buffer to the first element of the tensor; `size`:
/// bytes of the buffer (0: as many as the shape needs).
PyTensor make(uint64_t address, nb::handle shape, int dtype, nb::object owner, uint64_t offset,
              uint64_t size) {
  const std::vector<uint64_t> shapes = numbers(shape, 0, "shape");
  const uint64_t zeros[RUNTIME_MAX_TENSOR_DIMS] = {};
  PyTensor tensor;
  uint64_t bytes = get_element_size(static_cast<DataType>(dtype));
  for (const uint64_t n : shapes) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) throw nb::value_error("a tensor of more than 2^64 bytes");
  }
  tensor.data.init(reinterpret_cast<void*>(address), bytes, shapes.data(), shapes.data(), zeros,
                   shapes.size(), static_cast<DataType>(dtype), 0);
  if (size != 0) tensor.data.buffer.size = size;
  tensor.data.base_offset = offset;
  tensor.data.update_start_offset();
  tensor.owner = std::move(owner);
  return tensor;
}

nb::tuple as_tuple(const uint64_t* values, uint64_t count) {
  nb::list list;
  for (uint64_t i = 0; i < count; ++i) list.append(values[i]);
  return nb::tuple(list);
}

std::string text_of(const Site& site) {
  return site.file == nullptr ? std::string() : std::string(site.file) + ":" + std::to_string(site.line);
}

/// One run of tensormap_and_ringbuffer.
class PyTensormap final : public PyRun {
 public:
  PyTensormap(PyKernels& kernels, nb::dict options, int log_level, nb::object sink)
      : PyRun(kernels, log_level, std::move(sink)) {
    TensormapOptions o;
    o.exec = exec_options(options);
    read(options, "task_window", o.task_window);
    read(options, "heap", o.heap);
    read(options, "dep_pool", o.dep_pool);
    read(options, "tensormap_pool", o.tensormap_pool);
    read(options, "check_hazards", o.check_hazards);
    read(options, "track_war", o.track_war);
    read(options, "poison", o.poison);
    o.exec.queue = o.task_window;
    graph_ = std::make_unique<TensormapGraph>(o, kernels.kernels, log_);
  }

  /// Run a Python function as the orchestration.
  void run_function(nb::callable orchestrate) {
    timed([&] { graph_->run([&] { call(orchestrate); }); });
  }

  void run_library(const std::string& path, const std::vector<uint64_t>& args) {
    run_outside([&] { library_ = run_orchestration(*graph_, log_, path, args); });
  }

  int64_t submit(int kernel, int worker, nb::bytes roles, nb::sequence values, int cluster, int blocks,
                 std::optional<std::vector<int32_t>> clusters) {
    Args room(static_cast<int>(roles.size()));
    Arg* args = room.get();
    const int count = read_args(roles, values, args);
    return guarded([&] {
      return graph_->submit(
          {kernel, worker, args, count, cluster, blocks, clusters ? clusters->data() : nullptr});
    });
  }

  /// Submit a task with all options. `no_dep`: bit mask of parameters; `predicate`: a tensor, an index, the
  /// number of a comparison (Condition::Op) and the value to compare with; `kernels`: the kernels of a mixed
  /// task (`kernel` is for other tasks). A task without kernels only waits.
  int64_t submit_more(int kernel, int worker, nb::bytes roles, nb::sequence values, int cluster, int blocks,
                      std::optional<std::vector<int32_t>> clusters, const std::vector<int64_t>& deps,
                      uint64_t no_dep, std::optional<std::vector<int32_t>> kernels, bool sync_start,
                      nb::object predicate, bool awaits) {
    Args room(static_cast<int>(roles.size()));
    Arg* args = room.get();
    const int count = read_args(roles, values, args);
    for (int i = 0; i < count; ++i) args[i].no_dep = (no_dep >> i & 1) != 0;
    Submission made{kernel, worker, args, count, cluster, blocks, clusters ? clusters->data() : nullptr};
    made.deps = deps.data();
    made.dep_count = static_cast<int>(deps.size());
    if (kernels) {
      kernels->resize(kCoresPerBlock, -1);
      made.kernels = kernels->data();
    }
    made.no_core = kernel < 0 && !kernels;
    made.sync_start = sync_start;
    made.awaits = awaits;
    if (!predicate.is_none()) {
      const auto [tensor, index, op, target] =
          nb::cast<std::tuple<nb::object, nb::object, int, int64_t>>(predicate);
      made.predicate.tensor = &nb::cast<PyTensor&>(tensor).data;
      read_index(*made.predicate.tensor, index, made.predicate.index);
      made.predicate.op = static_cast<int8_t>(op);
      made.predicate.target = target;
    }
    return guarded([&] { return graph_->submit(made); });
  }

  uint64_t load(const PyTensor& tensor, nb::handle index) {
    uint64_t at[RUNTIME_MAX_TENSOR_DIMS] = {};
    read_index(tensor.data, index, at);
    return guarded([&] { return graph_->load(tensor.data, at); });
  }
  void store(const PyTensor& tensor, nb::handle index, uint64_t bits) {
    uint64_t at[RUNTIME_MAX_TENSOR_DIMS] = {};
    read_index(tensor.data, index, at);
    guarded([&] { return graph_->store(tensor.data, at, bits), 0; });
  }

  void scope_begin(bool manual) {
    guarded([&] { return graph_->scope_begin(manual), 0; });
  }
  void scope_end() {
    guarded([&] { return graph_->scope_end(), 0; });
  }
  int32_t allocate_cluster() {
    return guarded([&] { return graph_->allocate_cluster(); });
  }
  void free_cluster(int32_t cluster) {
    guarded([&] { return graph_->free_cluster(cluster), 0; });
  }
  void set_site(nb::str file, int line) {
    if (file.ptr() != last_file_.ptr()) {  // the code of a file keeps one object for its name
      last_name_ = kept(file.c_str());
      last_file_ = file;
    }
    graph_->set_site({last_name_, line});
  }

  nb::dict stats() {
    const TensormapStats s = graph_->stats();
    const TensormapOptions& o = graph_->options();
    nb::dict out = exec_stats();
    out["tasks"] = s.tasks;
    out["edges"] = s.edges;
    out["task_window"] = o.task_window;
    out["task_window_peak"] = s.window_peak;
    out["heap"] = o.heap;
    out["heap_peak"] = s.heap_peak;
    out["dep_pool"] = o.dep_pool;
    out["dep_pool_peak"] = s.dep_peak;
    out["tensormap_pool"] = o.tensormap_pool;
    out["tensormap_peak"] = s.map_peak;
    out["max_scope_tasks"] = s.max_scope_tasks;
    out["max_scope_depth"] = s.max_depth;
    const char* names[] = {"task_ring", "heap_ring", "dep_pool", "tensormap", "clusters"};
    nb::dict blocked;
    for (int i = 0; i < 5; ++i) blocked[names[i]] = s.blocked[i];
    out["blocked"] = blocked;
    return out;
  }

  nb::dict records() {
    nb::dict out = exec_records(graph_->edges());
    nb::list sites;
    for (const Site& site : graph_->task_sites()) {
      sites.append(text_of(site));
    }
    out["sites"] = sites;
    out["callers"] = graph_->task_callers();
    nb::list reads;  // by the orchestration, of elements that seem unwritten: address, bytes, site
    for (const BlankRead& r : graph_->blank_reads())
      reads.append(nb::make_tuple(r.address, r.size, text_of(r.site)));
    out["blank_reads"] = reads;
    return out;
  }

  /// Return (kind, earlier task, later task, its parameter). Kind 4, a use after scope, has no earlier task.
  nb::list hazards() {
    nb::list out;
    for (const Hazard& h : graph_->hazards()) out.append(nb::make_tuple(h.kind, h.earlier, h.later, h.arg));
    return out;
  }

  nb::list order() {
    nb::list out;
    for (const auto& [earlier, later] : graph_->order()) out.append(nb::make_tuple(earlier, later));
    return out;
  }

 private:
  static int read_args(const nb::bytes& roles, nb::handle values, Arg* args) {
    const char* role = roles.c_str();
    const size_t count = nb::len(values);
    if (count > kMaxParams || roles.size() != count) {
      throw nb::value_error(("a task has at most " + std::to_string(kMaxParams) +
                             " parameters, one role each; got " + std::to_string(count) + " parameters and " +
                             std::to_string(roles.size()) + " roles")
                                .c_str());
    }
    PyObject* fast = PySequence_Fast(values.ptr(), "expected a sequence");
    if (fast == nullptr) throw nb::python_error();
    const nb::object keep = nb::steal(fast);
    for (size_t i = 0; i < count; ++i) {
      const auto at = static_cast<Py_ssize_t>(i);
      const nb::handle value(PyTuple_Check(fast) ? PyTuple_GetItem(fast, at) : PyList_GetItem(fast, at));
      args[i].type = static_cast<PTOParamType>(role[i]);
      if (args[i].type == PTOParamType::SCALAR) {
        args[i].scalar = nb::cast<uint64_t>(value);
      } else {
        args[i].tensor = &nb::cast<PyTensor&>(value).data;
      }
    }
    return static_cast<int>(count);
  }
  static void read_index(const TensorData& tensor, nb::handle index, uint64_t* at) {
    const std::vector<uint64_t> given = numbers(index, tensor.ndims, "index");
    for (uint64_t d = 0; d < tensor.ndims; ++d) {
      if (given[d] >= tensor.shapes[d]) {
        throw nb::value_error(("index " + std::to_string(given[d]) + " of " +
                               std::to_string(tensor.shapes[d]) + " in dimension " + std::to_string(d))
                                  .c_str());
      }
      at[d] = given[d];
    }
  }
  Exec& exec() override { return graph_->exec(); }
  bool has_failed() const override { return graph_->surveys(); }

  nb::str last_file_;
  const char* last_name_ = nullptr;
  std::unique_ptr<SharedObject> library_;
  std::unique_ptr<TensormapGraph> graph_;
};

}  // namespace

NB_MODULE(_runtime, m) {
  nb::set_leak_warnings(false);  // objects in a traceback at exit are not leaks of this module
  nb::class_<PyTensor>(m, "Tensor")
      .def_prop_ro("address", [](const PyTensor& t) { return t.data.buffer.addr; })
      .def_prop_ro("start_offset", [](const PyTensor& t) { return t.data.start_offset; })
      .def_prop_ro("nbytes", [](const PyTensor& t) { return t.data.buffer.size; })
      .def_prop_ro("dtype", [](const PyTensor& t) { return static_cast<int>(t.data.dtype); })
      .def_prop_ro("shape", [](const PyTensor& t) { return as_tuple(t.data.shapes, t.data.ndims); })
      .def_prop_ro("offsets", [](const PyTensor& t) { return as_tuple(t.data.offsets, t.data.ndims); })
      .def_prop_ro("strides",
                   [](const PyTensor& t) {
                     uint64_t strides[RUNTIME_MAX_TENSOR_DIMS];
                     t.data.strides(strides);
                     return as_tuple(strides, t.data.ndims);
                   })
      .def_prop_ro("owner", [](const PyTensor& t) { return t.owner; })
      .def_prop_rw(
          "manual_dep", [](const PyTensor& t) { return t.data.manual_dep != 0; },
          [](PyTensor& t, bool manual) { t.data.manual_dep = manual ? 1 : 0; })
      .def("view",
           [](const PyTensor& t, nb::sequence shape, nb::sequence offsets) {
             const auto n = numbers(shape, t.data.ndims, "shape"),
                        at = numbers(offsets, t.data.ndims, "offsets");
             for (uint64_t d = 0; d < t.data.ndims; ++d) {
               if (n[d] <= t.data.shapes[d] && at[d] <= t.data.shapes[d] - n[d]) continue;
               throw nb::value_error(("view: " + std::to_string(n[d]) + " elements from " +
                                      std::to_string(at[d]) + " on, of " + std::to_string(t.data.shapes[d]) +
                                      " in dimension " + std::to_string(d))
                                         .c_str());
             }
             PyTensor view;
             view.data.init_with_view(t.data, n.data(), at.data());
             view.owner = t.owner;
             return view;
           })
      .def("dump", [](const PyTensor& t) { return t.data.dump(); });
  m.def("make_tensor", &make, "address"_a, "shape"_a, "dtype"_a, "owner"_a.none(), "offset"_a = 0,
        "size"_a = 0);
  m.def("slot_tensor", [](int64_t slot) {
    PyTensor tensor;
    tensor.data.init(*reinterpret_cast<const TensorData*>(slot));
    return tensor;
  });
  nb::class_<PyKernels>(m, "Kernels")
      .def(nb::init<>())
      .def("add_library", &PyKernels::add_library)
      .def("add_program", &PyKernels::add_program)
      .def("add_function", &PyKernels::add_function)
      .def("add_empty", &PyKernels::add_empty)
      .def("forget_functions", &PyKernels::forget_functions);
  nb::class_<PyRunGroup>(m, "Company")
      .def(nb::init<>())
      .def("join", [](PyRunGroup& c) { return c.group->join(); })
      .def("leave", [](PyRunGroup& c, int member) { c.group->leave(member); });
  nb::class_<PyTensormap>(m, "Tensormap")
      .def(nb::init<PyKernels&, nb::dict, int, nb::object>(), "kernels"_a, "options"_a, "log_level"_a,
           "sink"_a.none(), nb::keep_alive<1, 2>())
      .def("run_function", &PyTensormap::run_function)
      .def("run_library", &PyTensormap::run_library)
      .def("submit", &PyTensormap::submit, "kernel"_a, "worker"_a, "roles"_a, "values"_a, "cluster"_a = -1,
           "blocks"_a = 0, "clusters"_a.none() = nb::none())
      .def("submit_more", &PyTensormap::submit_more, "kernel"_a, "worker"_a, "roles"_a, "values"_a,
           "cluster"_a, "blocks"_a, "clusters"_a.none(), "deps"_a, "no_dep"_a, "kernels"_a.none(),
           "sync_start"_a, "predicate"_a.none(), "awaits"_a = false)
      .def("load", &PyTensormap::load)
      .def("store", &PyTensormap::store)
      .def("scope_begin", &PyTensormap::scope_begin, "manual"_a = false)
      .def("scope_end", &PyTensormap::scope_end)
      .def("allocate_cluster", &PyTensormap::allocate_cluster)
      .def("free_cluster", &PyTensormap::free_cluster)
      .def("set_site", &PyTensormap::set_site)
      .def("set_duration", &PyTensormap::set_duration)
      .def("set_by_doing", &PyTensormap::set_by_doing)
      .def("ask_durations", &PyTensormap::ask_durations)
      .def("forget_durations", &PyTensormap::forget_durations)
      .def("failure", &PyTensormap::failure)
      .def("keep_order", &PyTensormap::keep_order)
      .def("stats", &PyTensormap::stats)
      .def("records", &PyTensormap::records)
      .def("hazards", &PyTensormap::hazards)
      .def("order", &PyTensormap::order);
  bind_graph(m);
}
