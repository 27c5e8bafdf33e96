// Graphs with explicit edges for Python: built by a shared object, or task by task.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "graph/orchestration.hpp"
#include "run.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pto2 {

namespace {

class PyGraph final : public PyRun {
 public:
  PyGraph(PyKernels& kernels, nb::dict options, int log_level, nb::object sink)
      : PyRun(kernels, log_level, std::move(sink)) {
    GraphOptions o;
    o.exec = exec_options(options);
    read(options, "concurrent", o.concurrent);
    read(options, "poison", o.poison);
    graph_ = std::make_unique<GraphRun>(o, kernels.kernels, log_);
  }

  void run_function(nb::callable build) {
    timed([&] { graph_->run([&] { call(build); }); });
  }
  void run_library(const std::string& runtime, const std::string& path, const std::string& entry,
                   const std::vector<uint64_t>& args) {
    const bool host = runtime == "host_build_graph";
    run_outside([&] { (host ? run_host_graph : run_device_graph)(*graph_, path, entry, args); });
  }

  int add_task(int func_id, int core_type, const std::vector<uint64_t>& slots) {
    return guarded([&] {
      return graph_->add_task(slots.data(), static_cast<int>(slots.size()), func_id,
                              static_cast<CoreType>(core_type), file_, line_);
    });
  }
  void add_array(uint64_t address, uint64_t begin, uint64_t bytes) {
    graph_->add_array(address, begin, bytes);
  }
  void add_edge(int from, int to) {
    guarded([&] { graph_->add_edge(from, to); });
  }
  void publish(int id) {
    guarded([&] { graph_->publish(id); });
  }
  void set_site(const std::string& file, int line) {
    file_ = kept(file);
    line_ = line;
  }

  nb::dict stats() {
    nb::dict out = exec_stats();
    out["tasks"] = graph_->tasks();
    out["completed"] = graph_->completed_tasks();
    out["edges"] = graph_->edge_count();
    out["device_memory_peak"] = graph_->memory().peak();
    return out;
  }
  nb::dict records() {
    nb::dict out = exec_records(graph_->edges());
    nb::list sites;
    for (const std::string& site : graph_->task_sites()) sites.append(site);
    out["sites"] = sites;
    out["callers"] = graph_->task_callers();
    return out;
  }

 private:
  Exec& exec() override { return graph_->exec(); }

  std::unique_ptr<GraphRun> graph_;
  const char* file_ = "";
  int line_ = 0;
};

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<PyGraph>(m, "TaskGraph")
      .def(nb::init<PyKernels&, nb::dict, int, nb::object>(), "kernels"_a, "options"_a, "log_level"_a,
           "sink"_a.none(), nb::keep_alive<1, 2>())
      .def("run_function", &PyGraph::run_function)
      .def("run_library", &PyGraph::run_library, "runtime"_a, "path"_a, "entry"_a, "args"_a)
      .def("add_task", &PyGraph::add_task, "func_id"_a, "core_type"_a, "slots"_a)
      .def("add_array", &PyGraph::add_array, "address"_a, "begin"_a, "bytes"_a)
      .def("add_edge", &PyGraph::add_edge, "earlier"_a, "later"_a)
      .def("publish", &PyGraph::publish, "task"_a)
      .def("set_site", &PyGraph::set_site)
      .def("set_duration", &PyGraph::set_duration)
      .def("set_by_doing", &PyGraph::set_by_doing)
      .def("ask_durations", &PyGraph::ask_durations)
      .def("forget_durations", &PyGraph::forget_durations)
      .def("failure", &PyGraph::failure)
      .def("stats", &PyGraph::stats)
      .def("records", &PyGraph::records);
}

}  // namespace pto2
