// Runs orchestrations in shared objects, correct and wrong ones, of all three runtimes, many times in one
// process. Sanitizers find leaked memory; leaked files, threads and mappings are counted here.
//
//   stress_libraries FOLDER [NAME...]      FOLDER: shared objects built from tests/runtime/headers
#include <dirent.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "graph/orchestration.hpp"
#include "stress.hpp"
#include "tensormap/orchestration.hpp"
#include "tensormap/tensormap_graph.hpp"

namespace {

using namespace pto2;

std::string folder;
std::string library(const char* name) { return folder + "/" + name + ".so"; }

/// Return options. `mode`: 0 deterministic, otherwise the number of threads.
ExecOptions options_for(int mode, uint64_t seed) {
  ExecOptions options;
  options.block_dim = 3;
  options.deterministic = mode == 0;
  options.host_threads = mode == 0 ? 1 : mode;
  options.seed = seed;
  options.record = seed % 2 == 1;
  return options;
}

/// Count the entries of a folder of /proc: open files, threads.
int entries(const char* path) {
  int count = 0;
  if (DIR* opened = opendir(path)) {
    while (readdir(opened) != nullptr) ++count;
    closedir(opened);
  }
  return count;
}
/// Wait for at most `threads` threads; return true on success. A joined thread is still listed for a moment.
bool settle(int threads) {
  for (int tries = 0; tries < 4000; ++tries) {
    if (entries("/proc/self/task") <= threads) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}
int mappings() {
  int lines = 0;
  if (std::FILE* file = std::fopen("/proc/self/maps", "r")) {
    for (int c; (c = std::fgetc(file)) != EOF;) lines += c == '\n' ? 1 : 0;
    std::fclose(file);
  }
  return lines;
}

/// Call a function many times. Open files, threads and mappings must not grow after the first calls.
void repeat(const std::function<void(int)>& once) {
  const int first = 40, more = 200;
  for (int n = 0; n < first; ++n) once(n);
  const int files = entries("/proc/self/fd"), threads = entries("/proc/self/task"), maps = mappings();
  for (int n = 0; n < more; ++n) once(n);
  CHECK(entries("/proc/self/fd") == files);
  CHECK(settle(threads));
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // sanitizers keep freed memory
  CHECK(mappings() < maps + 10);
#else
  (void)maps;
#endif
}

// --- graphs with explicit edges ----------------------------------------------------------------------------

float* floats(int64_t slot) { return reinterpret_cast<float*>(slot); }
float scalar(int64_t slot) {
  float value;
  std::memcpy(&value, &slot, sizeof value);
  return value;
}

const Kernels& graph_kernels() {
  static const Kernels made = [] {
    Kernels kernels;
    const auto plain = [&](int id, const char* name, int type, void (*function)(int64_t*)) {
      Kernel kernel;
      kernel.name = name;
      kernel.core_type = type;
      kernel.plain = function;
      kernels.add(id, std::move(kernel));
    };
    plain(0, "add", 1, [](int64_t* a) {
      for (int64_t i = 0; i < a[3]; ++i) floats(a[2])[i] = floats(a[0])[i] + floats(a[1])[i];
    });
    plain(1, "add_scalar", 1, [](int64_t* a) {
      for (int64_t i = 0; i < a[3]; ++i) floats(a[2])[i] = floats(a[0])[i] + scalar(a[1]);
    });
    plain(2, "mul", 0, [](int64_t* a) {
      for (int64_t i = 0; i < a[3]; ++i) floats(a[2])[i] = floats(a[0])[i] * floats(a[1])[i];
    });
    plain(11, "nothing", -1, [](int64_t*) {});
    Kernel fails;
    fails.name = "fails";
    fails.call = [](const DispatchPayload&) { throw std::runtime_error("division by cucumber"); };
    kernels.add(12, std::move(fails));
    return kernels;
  }();
  return made;
}

struct Case {
  const char* name;
  ErrorCode code;
};

/// Run an orchestration; a correct one of four tasks sets all of `out` to 42.
void run_graph(bool host, const char* object, const Case& it, bool concurrent, int mode, uint64_t seed) {
  Log log(Level::Error, [](Level, const std::string&) {});
  GraphOptions options;
  options.concurrent = concurrent;
  options.poison = true;
  options.exec = options_for(mode, seed);
  std::vector<float> a(100, 2.0f), b(100, 3.0f), out(100, -1.0f);
  GraphRun run(options, graph_kernels(), log);
  (host ? run_host_graph : run_device_graph)(
      run, library(object), it.name,
      {reinterpret_cast<uint64_t>(a.data()), reinterpret_cast<uint64_t>(b.data()),
       reinterpret_cast<uint64_t>(out.data()), a.size()});
  CHECK(run.failure().code() == it.code);
  CHECK(run.memory().used() == 0);
  if (run.tasks() == 4 && it.code == ErrorCode::None) {
    for (const float value : out) CHECK(value == 42.0f);
  }
}

constexpr Case kHost[] = {{"build_vector", ErrorCode::None},
                          {"build_nothing", ErrorCode::None},
                          {"build_cycle", ErrorCode::Cycle},
                          {"build_lost_edge", ErrorCode::InvalidArgs},
                          {"build_failing", ErrorCode::KernelFailed},
                          {"build_unknown_kernel", ErrorCode::InvalidArgs},
                          {"build_wrong_core", ErrorCode::InvalidArgs},
                          {"build_code", ErrorCode::OrchestrationFailed},
                          {"build_throws", ErrorCode::OrchestrationFailed},
                          {"build_overrun", ErrorCode::InvalidArgs},
                          {"build_double_free", ErrorCode::InvalidArgs},
                          {"build_bad_pair", ErrorCode::InvalidArgs}};
constexpr Case kDevice[] = {{"orchestration", ErrorCode::None},       {"left_over", ErrorCode::None},
                            {"unpublished", ErrorCode::Stuck},        {"cycle", ErrorCode::Cycle},
                            {"code", ErrorCode::OrchestrationFailed}, {"bad_address", ErrorCode::InvalidArgs},
                            {"endless", ErrorCode::KernelFailed}};
constexpr int kModes[] = {0, 1, 2, 4};

void host_graphs() {
  repeat([](int n) {
    run_graph(true, "host_vector", kHost[static_cast<size_t>(n) % std::size(kHost)], false,
              kModes[n / 12 % 4], static_cast<uint64_t>(n));
  });
}

void device_graphs() {
  repeat([](int n) {
    const Case& it = kDevice[static_cast<size_t>(n) % std::size(kDevice)];
    const int mode = kModes[n / 14 % 4];
    const bool endless = std::strcmp(it.name, "endless") == 0;  // needs tasks that run during the build
    run_graph(false, "device_vector", it, endless || n / 7 % 2 == 1, endless && mode == 1 ? 2 : mode,
              static_cast<uint64_t>(n));
  });
}

void what_cannot_be_loaded() {
  repeat([](int n) {
    Log log(Level::Error, [](Level, const std::string&) {});
    GraphOptions options;
    options.exec = options_for(kModes[n % 4], 1);
    GraphRun run(options, graph_kernels(), log);
    TensormapOptions tensormap_options;
    tensormap_options.exec = options.exec;
    tensormap_options.heap = 1 << 16;
    TensormapGraph graph(tensormap_options, graph_kernels(), log);
    bool refused = false;
    try {
      if (n % 5 == 0) run_host_graph(run, "/no/such/library.so", "build_vector", {});
      if (n % 5 == 1) run_host_graph(run, library("host_vector"), "no_entry", {});
      if (n % 5 == 2) run_device_graph(run, library("device_vector"), "code", std::vector<uint64_t>(65));
      if (n % 5 == 3) run_orchestration(graph, log, library("host_vector"), {});
      if (n % 5 == 4) run_orchestration(graph, log, "/no/such/library.so", {});
    } catch (const std::runtime_error&) {
      refused = true;
    }
    CHECK(refused);
  });
}

// --- tensormap_and_ringbuffer ------------------------------------------------------------------------------

const TensorData& tensor(const DispatchPayload& payload, int i) {
  return *reinterpret_cast<const TensorData*>(payload.args[i]);
}
float* elements(const DispatchPayload& payload, int i) {
  return reinterpret_cast<float*>(tensor(payload, i).buffer.addr) + tensor(payload, i).start_offset;
}

/// Return the kernels: add, add a scalar, multiply. The kernel `failing` throws instead.
Kernels tensor_kernels(int failing) {
  Kernels kernels;
  for (int id = 0; id < 3; ++id) {
    Kernel kernel;
    kernel.name = std::string("kernel") + std::to_string(id);
    kernel.call = [id, failing](const DispatchPayload& payload) {
      if (id == failing) throw std::runtime_error(std::string(100, 'k'));
      for (uint64_t i = 0; i < tensor(payload, 2).shapes[0]; ++i) {
        const float left = elements(payload, 0)[i];
        const float right = id == 1 ? scalar(payload.args[1]) : elements(payload, 1)[i];
        elements(payload, 2)[i] = id == 2 ? left * right : left + right;
      }
    };
    kernels.add(id, std::move(kernel));
  }
  return kernels;
}

/// The five tasks of (a+b+1)(a+b+2)+(a+b): correct, with a kernel that throws, with too few arguments, with
/// missing kernels, and with a window, a heap or a pool that is too small.
void tensor_graphs() {
  repeat([](int n) {
    Log log(Level::Error, [](Level, const std::string&) {});
    const int what = n % 8;
    const Kernels kernels = tensor_kernels(what == 1 ? 2 : what == 2 ? 0 : -1);
    const Kernels none;
    TensormapOptions options;
    options.exec = options_for(kModes[n / 8 % 4], static_cast<uint64_t>(n));
    options.task_window = options.exec.queue = what == 5 ? 4 : 64;
    options.heap = what == 6 ? 1024 : 1 << 16;
    options.dep_pool = what == 7 ? 1 : 64;
    options.tensormap_pool = 64;
    options.poison = true;
    std::vector<float> a(100, 2.0f), b(100, 3.0f), out(100, -1.0f);
    std::vector<uint64_t> args = {reinterpret_cast<uint64_t>(a.data()), reinterpret_cast<uint64_t>(b.data()),
                                  reinterpret_cast<uint64_t>(out.data()), a.size()};
    if (what == 3) args.resize(2);
    TensormapGraph graph(options, what == 4 ? none : kernels, log);
    const auto loaded = run_orchestration(graph, log, library("vector_dag"), args);
    static constexpr ErrorCode expected[] = {ErrorCode::None,
                                             ErrorCode::KernelFailed,
                                             ErrorCode::KernelFailed,
                                             ErrorCode::OrchestrationFailed,
                                             ErrorCode::InvalidArgs,
                                             ErrorCode::ScopeDeadlock,
                                             ErrorCode::HeapRingDeadlock,
                                             ErrorCode::DepPoolOverflow};
    CHECK(graph.failure().code() == expected[what]);
    if (graph.failure().code() != expected[what])
      std::printf("%d: %s\n", what, graph.failure().text().c_str());
    if (what == 0) {
      for (const float value : out) CHECK(value == 47.0f);
    }
  });
}

/// Clusters are allocated, tasks are pinned to them and expanded to blocks, with enough clusters or too few.
void clusters_and_blocks() {
  repeat([](int n) {
    Log log(Level::Error, [](Level, const std::string&) {});
    std::atomic<int> ran[3] = {};
    const bool fails = n % 3 == 1, too_few = n % 3 == 2;
    Kernels kernels;
    for (int id = 0; id < 3; ++id) {
      Kernel kernel;
      kernel.name = "block";
      kernel.call = [&ran, id, fails](const DispatchPayload& payload) {
        ran[id].fetch_add(1);
        if (fails && id == 1 && payload.block_idx == 1) throw std::runtime_error(std::string(100, 'k'));
      };
      kernels.add(id, std::move(kernel));
    }
    TensormapOptions options;
    options.exec = options_for(kModes[n / 3 % 4], static_cast<uint64_t>(n));
    options.exec.block_dim = too_few ? 1 : 3;
    options.task_window = options.exec.queue = 16;
    options.heap = 1 << 12;
    TensormapGraph graph(options, kernels, log);
    std::vector<uint16_t> x(64 * 64);
    const auto loaded =
        run_orchestration(graph, log, library("clusters"), {reinterpret_cast<uint64_t>(x.data())});
    CHECK(graph.failure().code() == (fails     ? ErrorCode::KernelFailed
                                     : too_few ? ErrorCode::ClusterDeadlock
                                               : ErrorCode::None));
    if (n % 3 == 0) CHECK(ran[0] == 2 && ran[1] == 2 && ran[2] == 24);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::printf("usage: stress_libraries FOLDER [NAME...]\n"), 2;
  folder = argv[1];
  return stress::main_of(argc - 1, argv + 1,
                         {{"host_graphs", host_graphs},
                          {"device_graphs", device_graphs},
                          {"what_cannot_be_loaded", what_cannot_be_loaded},
                          {"tensor_graphs", tensor_graphs},
                          {"clusters_and_blocks", clusters_and_blocks}},
                         500);
}
