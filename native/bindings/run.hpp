// Common parts of the Python bindings of all run variants: kernels, log lines, the GIL, failures, records.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "durations.hpp"
#include "exec/exec.hpp"
#include "exec/log.hpp"
#include "exec/shared_object.hpp"
#include "pto/core/machine.hpp"
#include "pto2/kernel_entry.hpp"

namespace pto2 {

namespace nb = nanobind;

/// Return the last line of a traceback. The rest is in the exception, which is raised too.
inline std::string brief(const nb::python_error& error) {
  return std::string(nb::str(error.type().attr("__name__")).c_str()) + ": " + nb::str(error.value()).c_str();
}

/// The kernels of a run and the libraries that contain them.
class PyKernels {
 public:
  PyKernels() = default;
  PyKernels(const PyKernels&) = delete;
  PyKernels& operator=(const PyKernels&) = delete;

  void add_library(int func_id, const std::string& name, int core_type, const std::string& path) {
    auto library = std::make_unique<SharedObject>(path);
    auto* abi = library->get<uint64_t()>("pto2_kernel_abi");
    if (abi() != kernel_abi())
      throw nb::value_error((path + " was built for another version of the runtime").c_str());
    Kernel kernel;
    kernel.name = name;
    kernel.core_type = core_type;
    kernel.meets = library->find<char>("pto2_kernel_meets") != nullptr;
    kernel.on_core = library->get<void(int64_t*, pto::detail::Core*)>("pto2_kernel");
    kernel.text = library->text();
    kernels.add(func_id, std::move(kernel));
    libraries_.push_back(std::move(library));
  }

  /// Add a program of the virtual machine: `function` executes `task` (native/vm/vm.hpp), which `owner` owns.
  void add_program(int func_id, const std::string& name, int core_type, uint64_t function, uint64_t task,
                   uint64_t abi, const std::vector<std::pair<int, int>>& places, bool meets,
                   nb::object owner) {
    if (abi != kernel_abi())
      throw nb::value_error("the virtual machine was built for another version of the runtime");
    Kernel kernel;
    kernel.name = name;
    kernel.core_type = core_type;
    kernel.meets = meets;
    kernel.on_machine = reinterpret_cast<decltype(kernel.on_machine)>(function);
    kernel.task = reinterpret_cast<const void*>(task);
    kernel.text = text_around(function);
    kernel.places = places;
    kernels.add(func_id, std::move(kernel));
    owners_.push_back(std::move(owner));
  }

  /// Add a Python function. It gets the task id, the slots of the task as integers, and two bit masks:
  /// slots that are tensors, and slots that are only read.
  void add_function(int func_id, const std::string& name, int core_type, nb::callable function) {
    Kernel kernel;
    kernel.name = name;
    kernel.core_type = core_type;
    PyObject* call = function.release().ptr();
    functions_.push_back(call);
    kernel.call = [this, call](const DispatchPayload& payload) {
      const nb::gil_scoped_acquire gil;
      try {
        nb::list slots;
        for (int i = 0; i < payload.num_args; ++i) slots.append(payload.args[i]);
        nb::borrow<nb::callable>(call)(payload.task_id, slots, payload.tensors, payload.inputs);
      } catch (nb::python_error& error) {
        if (!thrown.is_valid()) thrown = nb::borrow(error.value());
        throw std::runtime_error(brief(error));
      }
    };
    kernels.add(func_id, std::move(kernel));
  }

  void add_empty(int func_id, const std::string& name) {
    Kernel kernel;
    kernel.name = name;
    kernel.plain = [](int64_t*) {};
    kernels.add(func_id, std::move(kernel));
  }

  /// Call after the last run: a function may refer back to this object, a cycle that the garbage collector
  /// cannot see.
  void forget_functions() {
    for (PyObject* function : functions_) Py_DECREF(function);
    functions_.clear();
  }
  ~PyKernels() { forget_functions(); }

  Kernels kernels;
  nb::object thrown;  // the first Python exception

 private:
  std::vector<std::unique_ptr<SharedObject>> libraries_;
  std::vector<PyObject*> functions_;
  std::vector<nb::object> owners_;
};

/// A group of runs that wait for one another; it lives as long as one of the runs.
struct PyRunGroup {
  std::shared_ptr<RunGroup> group = std::make_shared<RunGroup>();
};

/// One run. This thread holds the GIL only while it calls a Python orchestration.
class PyRun {
 public:
  PyRun(const PyRun&) = delete;
  PyRun& operator=(const PyRun&) = delete;

  /// Set the duration of a kernel in virtual time, in nanoseconds, or the function that returns the durations
  /// of the other kernels. The function gets the kernel, the kind of its core, its slots, bit masks (slots
  /// that are tensors, and slots that are only read), its block, the block count, true for a block task,
  /// and the task. After `set_by_doing`, the function is called after each execution of the kernel.
  void set_duration(int func_id, int64_t nanoseconds) { durations_.set(func_id, nanoseconds); }
  void set_by_doing(int func_id) { durations_.set_by_doing(func_id); }
  void ask_durations(nb::object call) { durations_.ask(std::move(call)); }
  void forget_durations() { durations_.forget(); }

  /// Record accesses to this memory in one order over all cores (Machine::keep_order).
  void keep_order(uint64_t first, uint64_t last) { exec().machine().keep_order(first, last); }

  /// Return (code, text, exception, kernel, mark, task, site, others); without a failure the code is 0. The
  /// exception is moved out, because its traceback refers to this run. Unknown parts are empty. `others` are
  /// kernel, mark and task of the other cores of a deadlock.
  nb::tuple failure() {
    Failure& failure = exec().failure();
    nb::object thrown = kernels_.thrown.is_valid() ? std::move(kernels_.thrown) : nb::none();
    nb::list others;
    if (!failure.failed()) return nb::make_tuple(0, "", nb::none(), -1, -1, -1, "", others);
    for (const StuckCore& core : failure.others())
      others.append(nb::make_tuple(core.kernel, core.mark, core.task));
    return nb::make_tuple(static_cast<int>(failure.code()), failure.text(), thrown, failure.kernel(),
                          failure.mark(), failure.task(), failure.site(), others);
  }

 protected:
  PyRun(PyKernels& kernels, int log_level, nb::object sink)
      : kernels_(kernels), log_(static_cast<Level>(log_level), log_sink(std::move(sink))) {}
  virtual ~PyRun() { Py_XDECREF(sink_); }
  virtual Exec& exec() = 0;
  /// Return true if the run has already failed while its orchestration continues.
  virtual bool has_failed() const { return false; }

  template <class T>
  static void read(nb::dict options, const char* name, T& field) {
    if (options.contains(name)) field = nb::cast<T>(options[name]);
  }
  ExecOptions exec_options(nb::dict options) {
    ExecOptions o;
    read(options, "block_dim", o.block_dim);
    read(options, "schedulers", o.schedulers);
    read(options, "shards", o.shards);
    read(options, "host_threads", o.host_threads);
    read(options, "deterministic", o.deterministic);
    read(options, "seed", o.seed);
    read(options, "record", o.record);
    read(options, "check_hazards", o.note_uses);
    read(options, "callers", o.callers);
    read(options, "interrupts", o.interrupts);
    o.leave = [this] {
      if (!outside_) thread_ = PyEval_SaveThread();
    };
    o.enter = [this] {
      if (!outside_) PyEval_RestoreThread(thread_);
    };
    o.poll = [this] { poll(); };
    read(options, "stall_seconds", o.stall_seconds);
    if (options.contains("company")) o.group = nb::cast<PyRunGroup&>(options["company"]).group;
    read(options, "member", o.member);
    if (options.contains("windows")) {
      const auto [address, bytes] = nb::cast<std::pair<uint64_t, uint64_t>>(options["windows"]);
      o.windows = {reinterpret_cast<void*>(address), bytes, "the windows of the ranks", -1};
    }
    if (options.contains("virtual_time")) {
      const auto given = nb::cast<nb::dict>(options["virtual_time"]);
      auto made = std::make_shared<VirtualOptions>();
      read(given, "compute", made->compute);
      const auto costs = nb::cast<nb::dict>(given["costs"]);
      for (const auto& [name, cost] : kCosts) read(costs, name, made->costs.*cost);
      made->duration = [this](const DispatchPayload& payload) {
        return durations_.of(payload, kernels_.thrown);
      };
      made->by_doing = [this](int32_t kernel) { return durations_.by_doing(kernel); };
      o.virtual_time = std::move(made);
    }
    o.stalled = [this](const std::string& text) { log_(Level::Warn, "schedule", "%s", text.c_str()); };
    return o;
  }

  /// Call a Python function as the orchestration.
  void call(const nb::callable& orchestrate) {
    try {
      orchestrate();
    } catch (nb::python_error& error) {
      if (error.matches(aborted_type())) throw Aborted();
      if (has_failed() && error.matches(PyExc_Exception)) throw Aborted();  // the earlier failure is reported
      if (!kernels_.thrown.is_valid()) kernels_.thrown = nb::borrow(error.value());
      throw std::runtime_error(brief(error));
    }
  }
  /// Run an orchestration that needs no GIL; raise ValueError if it cannot be started.
  void run_outside(const std::function<void()>& body) {
    PyThreadState* state = PyEval_SaveThread();
    outside_ = true;
    std::string problem;
    try {
      timed(body);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    PyEval_RestoreThread(state);
    if (!problem.empty()) throw nb::value_error(problem.c_str());
  }
  void timed(const std::function<void()>& body) {
    started_ = ended_ = now_ns();
    body();
    ended_ = now_ns();
    Failure& failure = exec().failure();
    if (!failure.failed()) return;
    // A Python exception is reported by itself, without a deadlock that it caused.
    if (kernels_.thrown.is_valid()) {
      if (failure.code() != ErrorCode::KernelFailed && failure.code() != ErrorCode::OrchestrationFailed &&
          failure.code() != ErrorCode::Cancelled)
        log_(Level::Warn, "orchestrate", "%s", failure.text().c_str());
      return;
    }
    poll();  // handle an interrupt that is still pending
    if (kernels_.thrown.is_valid()) {
      log_(Level::Warn, "orchestrate", "%s", exec().failure().text().c_str());
    }
  }

  /// Run a call of a Python orchestration; after a failure, raise an exception that unwinds it.
  template <class Body>
  auto guarded(Body&& body) -> decltype(body()) {
    try {
      return body();
    } catch (const Aborted&) {
      PyErr_SetString(aborted_type(), "the run was stopped");
      throw nb::python_error();
    }
  }
  /// Return a copy of a file name that lives as long as this run.
  const char* kept(const std::string& file) { return files_.emplace(file, 0).first->first.c_str(); }

  nb::dict exec_stats() {
    nb::dict out;
    if (const VirtualTime* virtual_time = exec().virtual_time()) {
      out["virtual_ns"] = virtual_time->now() - VirtualTime::kBegin;
      out["events"] = virtual_time->events();
      out["schedulers"] = exec().options().schedulers;
    }
    out["seconds"] = static_cast<double>(ended_ - started_) / 1e9;
    out["block_dim"] = exec().options().block_dim;
    uint64_t rounds = 0, hits = 0, misses = 0;
    for (const auto& scheduler : exec().schedulers()) {
      rounds += scheduler->rounds;
      hits += scheduler->hits;
      misses += scheduler->misses;
    }
    out["scheduler_rounds"] = rounds;
    out["pop_hits"] = hits;
    out["pop_misses"] = misses;
    return out;
  }

  /// Return the tables of pto.perf.tables as bytes of the C structures, and the start time of the run.
  nb::dict exec_records(const std::vector<EdgeRecord>& edges) {
    std::vector<TaskRecord> tasks;
    std::vector<PhaseRecord> phases;
    std::vector<CounterRecord> counters;
    for (const auto& scheduler : exec().schedulers()) {
      tasks.insert(tasks.end(), scheduler->without_core.begin(), scheduler->without_core.end());
    }
    for (const Recorder& r : exec().recorders()) {
      tasks.insert(tasks.end(), r.tasks.begin(), r.tasks.end());
      phases.insert(phases.end(), r.phases.begin(), r.phases.end());
      counters.insert(counters.end(), r.counters.begin(), r.counters.end());
    }
    nb::dict out;
    out["tasks"] = as_bytes(tasks);
    out["phases"] = as_bytes(phases);
    out["counters"] = as_bytes(counters);
    out["edges"] = as_bytes(edges);
    out["uses"] = as_bytes(exec().machine().uses());
    out["ordered_uses"] = as_bytes(exec().machine().ordered_uses());
    out["start"] = exec().virtual_time() != nullptr ? VirtualTime::kBegin : started_;
    return out;
  }

  PyKernels& kernels_;

 private:
  template <class T>
  static nb::bytes as_bytes(const std::vector<T>& values) {
    return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  static PyObject* aborted_type() {
    static PyObject* type = PyErr_NewException("pto._runtime.Aborted", PyExc_RuntimeError, nullptr);
    return type;
  }
  Log::Sink log_sink(nb::object sink) {
    if (sink.is_none()) return {};
    PyObject* call = sink.release().ptr();
    sink_ = call;
    return [call](Level level, const std::string& text) {
      const nb::gil_scoped_acquire gil;
      try {
        nb::borrow<nb::callable>(call)(static_cast<int>(level), text);
      } catch (nb::python_error& error) {
        error.discard_as_unraisable("pto.runtime log");
      }
    };
  }
  /// Let Ctrl-C end the run.
  void poll() {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) {
      nb::python_error error;
      if (!kernels_.thrown.is_valid()) kernels_.thrown = nb::borrow(error.value());
      exec().fail(ErrorCode::Cancelled, "interrupted");
    }
  }

  static constexpr std::pair<const char*, int64_t VirtualCosts::*> kCosts[] = {
      {"orchestration", &VirtualCosts::orchestration},
      {"sync", &VirtualCosts::sync},
      {"alloc", &VirtualCosts::alloc},
      {"heap", &VirtualCosts::heap},
      {"params", &VirtualCosts::params},
      {"lookup", &VirtualCosts::lookup},
      {"fanin", &VirtualCosts::fanin},
      {"insert", &VirtualCosts::insert},
      {"finalize", &VirtualCosts::finalize},
      {"scope_end", &VirtualCosts::scope_end},
      {"poll", &VirtualCosts::poll},
      {"completion", &VirtualCosts::completion},
      {"resolve", &VirtualCosts::resolve},
      {"enqueue", &VirtualCosts::enqueue},
      {"scan", &VirtualCosts::scan},
      {"dispatch", &VirtualCosts::dispatch},
      {"store", &VirtualCosts::store},
      {"seen_by_core", &VirtualCosts::seen_by_core},
      {"head", &VirtualCosts::head},
      {"cold_head", &VirtualCosts::cold_head},
      {"seen_by_scheduler", &VirtualCosts::seen_by_scheduler},
  };

  PyObject* sink_ = nullptr;
  Durations durations_;
  std::map<std::string, int> files_;
  PyThreadState* thread_ = nullptr;
  bool outside_ = false;

 protected:
  Log log_;
  int64_t started_ = 0, ended_ = 0;
};

}  // namespace pto2
