// Runs graphs with explicit edges and prints what became of them.
//
//   test_task_graph random COUNT SEED            random graphs in every mode; each order of events is checked
//   test_task_graph mistakes COUNT SEED          the same with a cycle, a failing task or a missing publish
//   in each test_task_graph host|device0|device1 LIBRARY NAME THREADS [SEED]      an orchestration; SEED:
//   deterministic test_task_graph speed TASKS THREADS          empty tasks, in tasks per second
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/cycle.hpp"
#include "graph/orchestration.hpp"

namespace pto2 {
namespace {

// --- kernels -----------------------------------------------------------------------------------------------

/// When tasks began and ended, in ticks of one clock for all.
struct Trace {
  explicit Trace(int count) : began(static_cast<size_t>(count)), ended(static_cast<size_t>(count)) {}
  std::atomic<int> clock{1};
  std::vector<int> began, ended;
};

void traced(int64_t* args) {
  auto& trace = *reinterpret_cast<Trace*>(args[0]);
  const auto task = static_cast<size_t>(args[1]);
  trace.began[task] += trace.clock.fetch_add(1);
  trace.ended[task] += trace.clock.fetch_add(1);
}

float* floats(int64_t slot) { return reinterpret_cast<float*>(slot); }
float scalar(int64_t slot) {
  float value;
  std::memcpy(&value, &slot, sizeof value);
  return value;
}

Kernels make_kernels() {
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
  plain(10, "traced", -1, traced);
  plain(11, "nothing", -1, [](int64_t*) {});
  Kernel fails;
  fails.name = "fails";
  fails.call = [](const DispatchPayload&) { throw std::runtime_error("division by cucumber"); };
  kernels.add(12, std::move(fails));
  return kernels;
}

// --- random graphs -----------------------------------------------------------------------------------------

struct Plan {
  int count = 0;
  std::vector<std::pair<int, int>> edges;
  std::vector<int> functions;
  bool late_edges = false;
};

enum Mistake { kNone, kCycle, kFailing, kUnpublished };

Plan random_plan(std::mt19937_64& random, Mistake mistake) {
  Plan plan;
  plan.count = static_cast<int>(random() % 60) + 2;
  std::vector<int> place(
      static_cast<size_t>(plan.count));  // the order that edges follow; not the order of ids
  for (int i = 0; i < plan.count; ++i) place[static_cast<size_t>(i)] = i;
  plan.late_edges = random() % 2 == 0;
  if (plan.late_edges) std::shuffle(place.begin(), place.end(), random);
  const auto degree = random() % 4;
  for (uint64_t e = 0; e < degree * static_cast<uint64_t>(plan.count); ++e) {
    size_t a = random() % place.size(), b = random() % place.size();
    if (a == b) continue;
    if (a > b) std::swap(a, b);
    plan.edges.emplace_back(place[a], place[b]);
    if (random() % 8 == 0) plan.edges.emplace_back(place[a], place[b]);
  }
  plan.functions.assign(static_cast<size_t>(plan.count), 10);
  if (mistake == kCycle) {
    const size_t length = random() % place.size() + 1;
    for (size_t i = 0; i < length; ++i) plan.edges.emplace_back(place[i], place[(i + 1) % length]);
  }
  if (mistake == kFailing) plan.functions[random() % place.size()] = 12;
  return plan;
}

/// Empty if all went as it must.
std::string try_plan(const Plan& plan, const GraphOptions& options, Mistake mistake,
                     std::mt19937_64& random) {
  static const Kernels kernels = make_kernels();
  Log log(Level::Error);
  GraphRun run(options, kernels, log);
  Trace trace(plan.count);
  const int hidden =
      mistake == kUnpublished ? static_cast<int>(random() % static_cast<uint64_t>(plan.count)) : -1;
  bool waited_for = false;
  for (const auto& [from, to] : plan.edges) waited_for |= from == hidden && to != hidden;
  // While tasks run, edges into a task come before it is published; every edge is added once both ends exist.
  const bool in_order = !plan.late_edges;
  run.run([&] {
    std::vector<void*> blocks;
    for (int id = 0; id < plan.count; ++id) {
      const uint64_t args[] = {reinterpret_cast<uint64_t>(&trace), static_cast<uint64_t>(id)};
      run.add_task(args, 2, plan.functions[static_cast<size_t>(id)], static_cast<CoreType>(random() % 2),
                   "plan", id);
      if (!in_order) continue;
      for (const auto& [from, to] : plan.edges) {
        if (std::max(from, to) == id) run.add_edge(from, to);
      }
      if (id != hidden && mistake != kCycle) run.publish(id);
    }
    if (!in_order) {
      for (const auto& [from, to] : plan.edges) run.add_edge(from, to);
    }
    for (int id = plan.count; id-- > 0;) {
      if (id != hidden) run.publish(id);
    }
    for (int i = 0; i < 3; ++i) blocks.push_back(BuildScope::device_malloc(100));
    BuildScope::device_free(blocks[1]);
  });
  if (run.memory().used() != 0) return "memory was not released";
  Failure& failure = run.failure();
  if (mistake == kCycle) {
    if (failure.code() != ErrorCode::Cycle) return "a cycle was not found: " + failure.text();
    return {};
  }
  if (mistake == kFailing) {
    if (failure.code() != ErrorCode::KernelFailed) return "a failure was not reported: " + failure.text();
    return {};
  }
  if (mistake == kUnpublished && waited_for) {
    if (failure.code() != ErrorCode::Stuck)
      return "a wait for an unpublished task was not found: " + failure.text();
    return {};
  }
  if (failure.failed()) return failure.text();
  const int expected = plan.count - (hidden >= 0 ? 1 : 0);
  if (run.completed_tasks() != expected) return std::to_string(run.completed_tasks()) + " tasks ran";
  for (int id = 0; id < plan.count; ++id) {
    const auto at = static_cast<size_t>(id);
    if ((trace.began[at] == 0) != (id == hidden) || trace.ended[at] < trace.began[at])
      return "a task did not run once";
  }
  for (const auto& [from, to] : plan.edges) {
    if (from == hidden || to == hidden) continue;
    if (trace.ended[static_cast<size_t>(from)] >= trace.began[static_cast<size_t>(to)]) {
      return "task " + std::to_string(to) + " did not wait for task " + std::to_string(from);
    }
  }
  if (options.exec.record) {
    size_t tasks = 0;
    for (const Recorder& recorder : run.exec().recorders()) tasks += recorder.tasks.size();
    if (tasks != static_cast<size_t>(expected)) return "records are missing";
    if (run.edges().size() != plan.edges.size()) return "edges are missing";
  }
  return {};
}

int random_graphs(int count, uint64_t seed, bool mistakes) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < count; ++i) {
    const auto mistake = mistakes ? static_cast<Mistake>(random() % 3 + 1) : kNone;
    const Plan plan = random_plan(random, mistake);
    GraphOptions options;
    options.concurrent = random() % 2 == 0;
    options.exec.block_dim = static_cast<int>(random() % 4) + 1;
    options.exec.schedulers = static_cast<int>(random() % 3) + 1;
    options.exec.shards = static_cast<int>(random() % 3) + 1;
    options.exec.host_threads = static_cast<int>(random() % 3) + 1;
    options.exec.deterministic = random() % 2 == 0;
    options.exec.seed = random();
    options.exec.record = random() % 4 == 0;
    const std::string problem = try_plan(plan, options, mistake, random);
    if (problem.empty()) continue;
    std::printf("graph %d of seed %llu: %s\n", i, static_cast<unsigned long long>(seed), problem.c_str());
    return 1;
  }
  std::printf("%d graphs\n", count);
  return 0;
}

// --- orchestrations ----------------------------------------------------------------------------------------

int orchestration(const std::string& kind, const std::string& path, const std::string& name, int threads,
                  const char* seed) {
  const Kernels kernels = make_kernels();
  Log log(Level::Info);
  GraphOptions options;
  options.concurrent = kind == "device1";
  options.exec.block_dim = 3;
  options.exec.host_threads = threads;
  options.exec.record = true;
  options.exec.deterministic = seed != nullptr;
  options.exec.seed = seed != nullptr ? std::strtoull(seed, nullptr, 10) : 0;
  std::vector<float> a(1000, 2.0f), b(1000, 3.0f), out(1000, -1.0f);
  std::vector<uint64_t> args = {reinterpret_cast<uint64_t>(a.data()), reinterpret_cast<uint64_t>(b.data()),
                                reinterpret_cast<uint64_t>(out.data()), a.size()};
  GraphRun run(options, kernels, log);
  try {
    (kind == "host" ? run_host_graph : run_device_graph)(run, path, name, args);
  } catch (const std::exception& error) {
    std::printf("refused: %s\n", error.what());
    return 0;
  }
  std::printf("code %d %s\n", static_cast<int>(run.failure().code()), run.failure().text().c_str());
  std::printf("tasks %d of %d, memory %zu, out %g %g\n", run.completed_tasks(), run.tasks(),
              run.memory().used(), static_cast<double>(out.front()), static_cast<double>(out.back()));
  for (const EdgeRecord& edge : run.edges()) {
    std::printf("edge %lld %lld %d\n", static_cast<long long>(edge.pred), static_cast<long long>(edge.succ),
                edge.kind);
  }
  for (const std::string& site : run.task_sites()) {
    const size_t slash = site.rfind('/');
    std::printf("site %s\n", site.substr(slash == std::string::npos ? 0 : slash + 1).c_str());
  }
  return 0;
}

int speed(int count, int threads) {
  const Kernels kernels = make_kernels();
  for (int chain = 0; chain < 2; ++chain) {
    for (int concurrent = 0; concurrent < 2; ++concurrent) {
      Log log;
      GraphOptions options;
      options.concurrent = concurrent != 0;
      options.exec.block_dim = 24;
      options.exec.host_threads = threads;
      GraphRun run(options, kernels, log);
      const int64_t start = now_ns();
      run.run([&] {
        for (int id = 0; id < count; ++id) {
          run.add_task(nullptr, 0, 11, CoreType::Aiv, "", 0);
          if (chain != 0 && id > 0) run.add_edge(id - 1, id);
          run.publish(id);
        }
      });
      const double seconds = static_cast<double>(now_ns() - start) / 1e9;
      std::printf("%s %s: %.0f tasks/s\n", chain != 0 ? "chain" : "independent",
                  concurrent != 0 ? "concurrent" : "sequential", run.completed_tasks() / seconds);
    }
  }
  return 0;
}

}  // namespace

}  // namespace pto2

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  using namespace pto2;
  if (argc == 4 && what == "speed") return speed(std::atoi(argv[2]), std::atoi(argv[3]));
  if (argc == 4)
    return random_graphs(std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 10), what == "mistakes");
  if (argc >= 5)
    return orchestration(what, argv[2], argv[3], std::atoi(argv[4]), argc > 5 ? argv[5] : nullptr);
  return 2;
}
