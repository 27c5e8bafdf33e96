// Compares random graphs with explicit edges, built before they run and while they run (build_mode 0 and 1),
// with an oracle that runs the tasks one after the other.
//
//   fuzz_graph [FIRST [COUNT]]            seeds FIRST..FIRST+COUNT-1, deterministic mode
//   fuzz_graph FIRST COUNT THREADS [virtual]    real threads; virtual: kernels in virtual time
//
// Every graph runs as it is and with one mistake: a cycle, a task that throws, a task that is never
// published, a builder that throws, a run that is cancelled. A task mixes the values of its predecessors, so
// a wrong order changes the result, and two tasks that wrongly run at the same time are a race.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/graph_run.hpp"
#include "stress.hpp"
#include "virtual.hpp"

namespace {

using namespace pto2;
using stress::Random;

enum Mistake { kNone, kCycle, kFailing, kUnpublished, kBuilderThrows, kCancelled, kMistakes };
constexpr int kMix = 0, kThrows = 1, kCancels = 2;

struct Plan {
  int count = 0;
  std::vector<std::pair<int, int>> edges;
  std::vector<int> place;                // a topological order; may differ from the order of ids
  std::vector<std::vector<int>> before;  // by task: its predecessors
  bool in_order = false;                 // tasks are published as they are added: edges go to higher ids
  int wrong = 0;                         // the task with the mistake
};

Plan generate(Random& random) {
  Plan plan;
  plan.count = 2 + random.below(60);
  for (int i = 0; i < plan.count; ++i) plan.place.push_back(i);
  plan.in_order = random.chance(50);
  if (!plan.in_order) {
    for (int i = plan.count - 1; i > 0; --i) {
      std::swap(plan.place[static_cast<size_t>(i)], plan.place[static_cast<size_t>(random.below(i + 1))]);
    }
  }
  const int edges = random.below(4) * plan.count;
  for (int e = 0; e < edges; ++e) {
    int a = random.below(plan.count), b = random.below(plan.count);
    if (a == b) continue;
    if (a > b) std::swap(a, b);
    const std::pair edge{plan.place[static_cast<size_t>(a)], plan.place[static_cast<size_t>(b)]};
    plan.edges.push_back(edge);
    if (random.chance(12)) plan.edges.push_back(edge);  // counts twice
  }
  plan.wrong = random.below(plan.count);
  return plan;
}

/// The state of a run that tasks access.
struct Data {
  std::vector<std::vector<int>> before;
  std::vector<uint64_t> values;
  std::vector<int> ran;
  GraphRun* run = nullptr;
};

uint64_t mixed(const Data& data, size_t id) {
  uint64_t sum = 0x9E3779B97F4A7C15u * (id + 1);
  for (const int from : data.before[id]) {
    sum = (sum ^ data.values[static_cast<size_t>(from)]) * 0x100000001B3u + 1;
  }
  return sum;
}

Kernels make_kernels() {
  Kernels kernels;
  Kernel mix, throws, cancels;
  mix.name = "mix";
  mix.plain = [](int64_t* args) {
    auto& data = *reinterpret_cast<Data*>(args[0]);
    const auto id = static_cast<size_t>(args[1]);
    data.values[id] = mixed(data, id);
    ++data.ran[id];
  };
  throws.name = "throws";
  throws.call = [](const DispatchPayload& payload) {
    throw std::runtime_error("task " + std::to_string(payload.task_id) + std::string(100, '!'));
  };
  cancels.name = "cancels";
  cancels.call = [](const DispatchPayload& payload) {
    reinterpret_cast<Data*>(payload.args[0])->run->exec().fail(ErrorCode::Cancelled, "enough");
  };
  kernels.add(kMix, std::move(mix));
  kernels.add(kThrows, std::move(throws));
  kernels.add(kCancels, std::move(cancels));
  return kernels;
}

/// Run a plan with a mistake. Return the problem found, or an empty text.
std::string try_plan(Plan plan, const GraphOptions& options, Mistake mistake, Random& random) {
  static const Kernels kernels = make_kernels();
  Log log(Level::Error, [](Level, const std::string&) {});
  const int wrong = plan.wrong;
  if (mistake == kCycle) {
    const auto length = static_cast<size_t>(1 + random.below(plan.count));
    for (size_t i = 0; i < length; ++i) plan.edges.push_back({plan.place[i], plan.place[(i + 1) % length]});
  }
  Data data;
  data.before.resize(static_cast<size_t>(plan.count));
  data.values.resize(static_cast<size_t>(plan.count));
  data.ran.resize(static_cast<size_t>(plan.count));
  bool waited_for = false;
  for (const auto& [from, to] : plan.edges) {
    data.before[static_cast<size_t>(to)].push_back(from);
    waited_for |= from == wrong && to != wrong;
  }
  GraphRun run(options, kernels, log);
  data.run = &run;
  run.run([&] {
    const std::vector<int> held(100, 1);  // freed when the builder is unwound
    std::vector<void*> blocks;
    for (int id = 0; id < plan.count; ++id) {
      const uint64_t args[] = {reinterpret_cast<uint64_t>(&data), static_cast<uint64_t>(id)};
      const int function = id != wrong             ? kMix
                           : mistake == kFailing   ? kThrows
                           : mistake == kCancelled ? kCancels
                                                   : kMix;
      run.add_task(args, 2, function, static_cast<CoreType>(random.below(2)), "plan", id);
      blocks.push_back(BuildScope::device_malloc(static_cast<size_t>(random.below(200))));
      if (random.chance(30)) {
        BuildScope::device_free(blocks.back());
        blocks.pop_back();
      }
      if (mistake == kBuilderThrows && id == wrong) throw std::runtime_error(std::string(100, 'b'));
      if (!plan.in_order) continue;
      for (const auto& [from, to] : plan.edges) {
        if (std::max(from, to) == id) run.add_edge(from, to);
      }
      if (mistake != kCycle && (mistake != kUnpublished || id != wrong)) run.publish(id);
    }
    if (!plan.in_order) {
      for (const auto& [from, to] : plan.edges) run.add_edge(from, to);
    }
    for (int id = plan.count; id-- > 0;) {
      if (mistake != kUnpublished || id != wrong) run.publish(id);
    }
  });
  if (run.memory().used() != 0) return "memory was not released";
  const Failure& failure = run.failure();
  const auto expect = [&](ErrorCode code) {
    return failure.code() == code ? std::string() : "it ended with: " + failure.text();
  };
  if (mistake == kCycle) return expect(ErrorCode::Cycle);
  if (mistake == kFailing) return expect(ErrorCode::KernelFailed);
  if (mistake == kBuilderThrows) return expect(ErrorCode::OrchestrationFailed);
  if (mistake == kCancelled) return expect(ErrorCode::Cancelled);
  if (mistake == kUnpublished && waited_for) return expect(ErrorCode::Stuck);
  if (failure.failed()) return failure.text();
  const int expected = plan.count - (mistake == kUnpublished ? 1 : 0);
  if (run.completed_tasks() != expected) return std::to_string(run.completed_tasks()) + " tasks completed";
  Data oracle = data;
  for (const int id : plan.place) {
    const auto at = static_cast<size_t>(id);
    const bool hidden = mistake == kUnpublished && id == wrong;
    oracle.values[at] = hidden ? 0 : mixed(oracle, at);
    if (data.ran[at] != (hidden ? 0 : 1)) return "task " + std::to_string(id) + " did not run once";
    if (data.values[at] != oracle.values[at]) return "task " + std::to_string(id) + " ran too early";
  }
  if (!options.exec.record) return {};
  size_t tasks = 0;
  for (const Recorder& recorder : run.exec().recorders()) tasks += recorder.tasks.size();
  if (tasks != static_cast<size_t>(expected)) return "records are missing";
  if (run.edges().size() != plan.edges.size()) return "edges are missing";
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 0;
  const bool in_virtual_time = argc > 4;
  uint64_t runs = 0, tasks = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random{seed};
    const Plan plan = generate(random);
    tasks += static_cast<uint64_t>(plan.count);
    GraphOptions options;
    options.exec.block_dim = 1 + random.below(4);
    options.exec.schedulers = 1 + random.below(3);
    options.exec.shards = 1 + random.below(3);
    options.exec.host_threads = threads > 0 ? threads : 1;
    options.exec.deterministic = threads == 0;
    options.exec.seed = random.next();
    options.exec.record = random.chance(25);
    if (in_virtual_time) options.exec.virtual_time = stress::random_virtual(random);
    const auto mistake = static_cast<Mistake>(1 + random.below(kMistakes - 1));
    for (int way = 0; way < 4; ++way) {
      options.concurrent = way % 2 == 1;
      alarm(60);
      const std::string problem = try_plan(plan, options, way < 2 ? kNone : mistake, random);
      ++runs;
      if (problem.empty()) continue;
      std::printf("seed %llu, build_mode %d, mistake %d: %s\n", static_cast<unsigned long long>(seed),
                  way % 2, way < 2 ? 0 : mistake, problem.c_str());
      return 1;
    }
  }
  std::printf("%llu graphs, %llu tasks, %llu runs\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(tasks), static_cast<unsigned long long>(runs));
  return 0;
}
