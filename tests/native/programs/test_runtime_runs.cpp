// Tests the internal state of the task runtime in runs: registers during a task, the scheduler that takes
// each ready task, descriptors and states of tasks, the watermark.
//
// With one host thread, nothing else runs during the orchestration, except when it lets schedulers and cores
// work (`until`). So the orchestration can inspect every step without a race.
#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "check.hpp"
#include "tensormap/tensormap_graph.hpp"

namespace {

using namespace pto2;

// --- the execution layer with a list as its graph ----------------------------------------------------------

/// A graph whose tasks enter the queues at the same time: (id, scheduler).
struct ListGraph final : Graph {
  std::vector<std::pair<int64_t, int>> tasks;
  Exec* exec = nullptr;
  bool seen = false;
  std::vector<std::pair<int64_t, int>> dispatched;  // id, scheduler

  bool has_unseen() const override { return !seen; }
  int look_for_ready(int) override {
    if (seen) return 0;
    for (const auto& [id, from] : tasks) {
      exec->count(1);
      exec->ready(id, CoreType::Aic, -1, from);
    }
    seen = true;
    return static_cast<int>(tasks.size());
  }
  void fill(int64_t ticket, DispatchPayload& payload, int scheduler) override {
    dispatched.emplace_back(ticket, scheduler);
    payload.task_id = ticket;
    payload.kernel_id = 0;
    payload.num_args = 0;
    payload.block_idx = 0;
    payload.block_num = 1;
  }
  bool completed(int64_t, int) override { return true; }
  TaskRecord* record(int64_t) override { return nullptr; }

  int scheduler_of(int64_t id) const {
    for (const auto& [task, scheduler] : dispatched) {
      if (task == id) return scheduler;
    }
    return -1;
  }
};

Kernels kernels_of(std::function<void(const DispatchPayload&)> call) {
  Kernels kernels;
  Kernel kernel;
  kernel.name = "kernel";
  kernel.call = std::move(call);
  kernels.add(0, std::move(kernel));
  return kernels;
}

ExecOptions on_one_thread(int block_dim, int schedulers, int shards) {
  ExecOptions options;
  options.block_dim = block_dim;
  options.schedulers = schedulers;
  options.shards = shards;
  options.host_threads = 1;
  return options;
}

CHECKS(own_shard_first_then_the_others, "Ready queues") {
  const Kernels kernels = kernels_of([](const DispatchPayload&) {});
  {
    ListGraph graph;
    graph.tasks = {{10, 2}, {11, 1}, {12, 0}, {20, 2}, {21, 1}, {22, 0}};  // each shard keeps one
    Exec exec(on_one_thread(3, 3, 3), graph, kernels);
    graph.exec = &exec;
    exec.run([] {});
    for (int s = 0; s < 3; ++s) EQUAL(graph.scheduler_of(12 - s), s);  // although 10 was pushed first
  }
  {
    ListGraph graph;  // thread t pushes to shard t mod 3: thread 4 to shard 1
    graph.tasks = {{10, 5}, {11, 4}, {12, 3}, {20, 5}, {21, 4}, {22, 3}};
    Exec exec(on_one_thread(3, 3, 3), graph, kernels);
    graph.exec = &exec;
    exec.run([] {});
    for (int s = 0; s < 3; ++s) EQUAL(graph.scheduler_of(12 - s), s);
  }
  {
    ListGraph graph;  // all in the shard of scheduler 2: the others steal
    for (int64_t id = 0; id < 30; ++id) graph.tasks.emplace_back(id, 2);
    Exec exec(on_one_thread(3, 3, 3), graph, kernels);
    graph.exec = &exec;
    exec.run([] {});
    EQUAL(graph.dispatched.size(), 30);
    int by[3] = {};
    for (const auto& [id, scheduler] : graph.dispatched) ++by[scheduler];
    CHECK(by[0] > 0 && by[1] > 0 && by[2] > 0);
  }
  {
    ListGraph graph;  // one shard: first in, first out
    graph.tasks = {{10, 2}, {11, 1}, {12, 0}};
    Exec exec(on_one_thread(3, 3, 1), graph, kernels);
    graph.exec = &exec;
    exec.run([] {});
    for (int s = 0; s < 3; ++s) EQUAL(graph.dispatched[static_cast<size_t>(s)].first, 10 + s);
  }
}

CHECKS(registers_during_a_task, "Handshake registers") {
  ListGraph graph;
  for (int64_t id = 0; id < 50; ++id) graph.tasks.emplace_back(id + 7, 0);
  Exec* running = nullptr;
  int executed = 0;
  const Kernels kernels = kernels_of([&](const DispatchPayload& payload) {
    ++executed;
    int cores = 0;
    for (int c = 0; c < 4; ++c) {  // find the core with this payload
      VirtualCore& core = running->core(CoreType::Aic, c);
      if (&core.payload != &payload) continue;
      ++cores;
      EQUAL(core.data_main_base.load(), payload.task_id + 1);  // dispatched
      EQUAL(core.cond.load(), payload.task_id);                // acknowledged: bit 31 is 0
    }
    EQUAL(cores, 1);
  });
  Exec exec(on_one_thread(4, 2, 3), graph, kernels);
  running = graph.exec = &exec;
  exec.run([] {});
  EQUAL(executed, 50);
  for (int c = 0; c < 4; ++c) {
    EQUAL(exec.core(CoreType::Aic, c).data_main_base.load(), 0);  // idle again
    const uint32_t cond = exec.core(CoreType::Aic, c).cond.load();
    EQUAL(cond >> 31, 1);  // finished
    CHECK((cond & 0x7FFFFFFFu) >= 7 && (cond & 0x7FFFFFFFu) < 57);
    EQUAL(exec.core(CoreType::Aiv, c).cond.load(), 0xFFFFFFFFll);  // never had a task
  }
}

CHECKS(cores_are_divided_among_schedulers, "Threads") {
  const Kernels kernels;
  for (int block_dim = 1; block_dim <= 24; ++block_dim) {
    for (const int schedulers : {1, 2, 3, 5, 24, 30}) {
      ListGraph graph;
      const Exec exec(on_one_thread(block_dim, schedulers, 3), graph, kernels);
      uint64_t all[2] = {};
      int least = 99, most = 0;
      for (const auto& s : exec.schedulers()) {
        for (int t = 0; t < 2; ++t) {
          EQUAL(all[t] & s->mine[t], 0);  // each core belongs to one scheduler
          all[t] |= s->mine[t];
        }
        const int aic = __builtin_popcountll(s->mine[0]);
        least = std::min(least, aic);
        most = std::max(most, aic);
        EQUAL(__builtin_popcountll(s->mine[1]), 2 * aic);
        for (int c = 0; c < block_dim; ++c) {  // a cluster stays together
          const bool mine = (s->mine[0] >> c & 1) != 0;
          EQUAL(s->mine[1] >> 2 * c & 3, mine ? 3 : 0);
        }
      }
      EQUAL(all[0], (uint64_t{1} << block_dim) - 1);
      EQUAL(all[1], (uint64_t{1} << 2 * block_dim) - 1);
      CHECK(most - least <= 1);
      if (block_dim == 24 && schedulers == 3) EQUAL(least, 8);  // and 16 AIVs
    }
  }
}

// --- tensormap_and_ringbuffer ------------------------------------------------------------------------------

/// A run on one thread, with empty kernels, and tensors to give to its tasks.
struct Bench {
  Kernels kernels;
  Log log{Level::Error};
  TensormapOptions options;
  std::unique_ptr<TensormapGraph> graph;
  char memory[64] = {};

  Bench() {
    Kernel empty;
    empty.name = "empty";
    empty.plain = [](int64_t*) {};
    kernels.add(0, std::move(empty));
    options.exec = on_one_thread(3, 3, 3);
    options.task_window = 16;
    options.heap = 65536;
    options.dep_pool = 64;
  }
  void run(const std::function<void(TensormapGraph&)>& orchestrate) {
    options.exec.queue = options.task_window;
    graph = std::make_unique<TensormapGraph>(options, kernels, log);
    graph->run([&] { orchestrate(*graph); });
    if (graph->failure().failed()) std::printf("%s\n", graph->failure().text().c_str());
    CHECK(!graph->failure().failed());
  }
  /// Let schedulers and cores work until a condition holds.
  void until(const std::function<bool()>& so) {
    int spins = 0;
    CHECK(graph->exec().help_until(so, [](int) {}, spins));
  }
  const TaskDescriptor& task(int64_t id) { return graph->memory().task(id); }
  int state(int64_t id) { return task(id).state.load(); }
  const SharedMemoryHeader& header() { return graph->memory().header(); }
};

struct Data : TensorData {
  explicit Data(void* address, uint64_t bytes = 64) : TensorData{} {
    const uint64_t shape[1] = {bytes}, zero[1] = {};
    init(address, bytes, shape, shape, zero, 1, DataType::UINT8, 0);
  }
};

int64_t submit(TensormapGraph& graph, std::vector<Arg> args) {
  return graph.submit({0, 1, args.data(), static_cast<int>(args.size())});
}
Arg in(TensorData& t) { return {PTOParamType::INPUT, &t, 0}; }
Arg out(TensorData& t) { return {PTOParamType::OUTPUT, &t, 0}; }
Arg inout(TensorData& t) { return {PTOParamType::INOUT, &t, 0}; }

CHECKS(descriptor_counts_and_lists, "Task descriptor, dependency pool") {
  Bench bench;
  bench.run([&](TensormapGraph& graph) {
    Data x(bench.memory), a(nullptr), b(nullptr), y(bench.memory + 32, 32);
    EQUAL(submit(graph, {in(x), out(a)}), 0);
    EQUAL(submit(graph, {in(x), out(b)}), 1);
    EQUAL(submit(graph, {in(a), in(b), out(y)}), 2);
    EQUAL(submit(graph, {in(a), in(a), {PTOParamType::SCALAR, nullptr, 5}}), 3);
    EQUAL(bench.task(0).task_id, 0);
    EQUAL(bench.task(0).kernel_id, 0);
    EQUAL(bench.task(0).worker_type, 1);
    EQUAL(bench.task(0).fanout_count, 3);  // its scope, and tasks 2 and 3
    EQUAL(bench.task(1).fanout_count, 2);
    EQUAL(bench.task(2).fanout_count, 1);
    for (const int64_t id : {0, 1}) EQUAL(bench.task(id).fanin_count.load(), 0);
    EQUAL(bench.task(2).fanin_count.load(), 2);
    EQUAL(bench.task(3).fanin_count.load(), 1);  // one producer, although it wrote two parameters
    const DepListEntry& first = graph.memory().entry(bench.task(0).fanout_head);
    EQUAL(first.task_id, 3);  // prepended
    const DepListEntry& second = graph.memory().entry(first.next_fanout);
    EQUAL(second.task_id, 2);
    EQUAL(second.next_fanout, 0);
    const DepListEntry& fanin = graph.memory().entry(bench.task(2).fanin_head);
    EQUAL(fanin.producer + graph.memory().entry(fanin.next_fanin).producer, 0 + 1);
    EQUAL(graph.memory().entry(fanin.next_fanin).next_fanin, 0);
    EQUAL(bench.task(3).arg_count, 3);
    EQUAL(bench.task(3).args[2], 5);
    EQUAL(bench.task(0).cluster_id, -1);
    EQUAL(bench.task(0).group_id, -1);
    CHECK(bench.task(0).packed_buffer_end.load() > bench.task(0).packed_buffer_base);
    EQUAL(bench.task(2).packed_buffer_end.load(), 0);  // its output has an address already
    EQUAL(bench.header().current_task_index.load(), 4);
    for (const int64_t id : {0, 1, 2, 3}) EQUAL(bench.state(id), 0);
  });
  EQUAL(bench.graph->stats().tasks, 4);
  EQUAL(bench.graph->stats().edges, 3);
}

CHECKS(states_0_to_3, "State machine") {
  Bench bench;
  int seen = 0;
  Kernel looks;
  looks.name = "looks";
  looks.call = [&](const DispatchPayload& payload) {
    EQUAL(bench.state(payload.task_id), 1);  // ready until its end
    ++seen;
  };
  bench.kernels.add(0, std::move(looks));
  bench.run([&](TensormapGraph& graph) {
    Data x(bench.memory);
    graph.scope_begin();
    submit(graph, {inout(x)});
    submit(graph, {inout(x)});
    EQUAL(bench.state(0), 0);
    EQUAL(bench.state(1), 0);
    bench.until([&] { return bench.state(1) == 2; });
    EQUAL(bench.state(0), 2);  // released by its consumer, not by its scope
    EQUAL(bench.header().last_task_alive.load(), 0);
    graph.scope_end();
    EQUAL(bench.state(0), 3);
    EQUAL(bench.state(1), 3);
    EQUAL(bench.header().last_task_alive.load(), 2);
    for (int i = 0; i < 14; ++i) {
      graph.scope_begin();
      submit(graph, {inout(x)});
      graph.scope_end();
    }
    EQUAL(bench.state(16), 3);  // in the slot of task 0, with its state
    graph.scope_begin();
    EQUAL(submit(graph, {inout(x)}), 16);
    EQUAL(bench.state(16), 0);  // recycled
    EQUAL(bench.task(0).task_id, 16);
    graph.scope_end();
  });
  EQUAL(seen, 17);
}

CHECKS(a_finished_producer_is_counted_at_once, "Lock protocol") {
  Bench bench;
  bench.run([&](TensormapGraph& graph) {
    Data x(bench.memory), y(bench.memory + 32, 32);
    submit(graph, {out(x)});
    bench.until([&] { return bench.state(0) == 2; });
    submit(graph, {in(x), out(y)});  // the producer has finished; its scope holds it
    EQUAL(bench.task(1).fanin_count.load(), 1);
    EQUAL(bench.task(1).fanin_refcount.load(), 1);
    EQUAL(bench.state(1), 1);  // ready: the orchestrator handed it over
    EQUAL(bench.task(0).fanout_head, 0);
    EQUAL(bench.task(0).fanout_count, 2);  // its consumer holds it too
    bench.until([&] { return bench.state(1) == 2; });
    EQUAL(bench.task(0).fanout_released, 1);
  });
  EQUAL(bench.state(0), 3);
  EQUAL(bench.state(1), 3);
}

CHECKS(watermark_and_heap_tail_advance_in_order, "Watermark") {
  Bench bench;
  bench.run([&](TensormapGraph& graph) {
    Data a(nullptr, 1024), b(nullptr, 2048), c(nullptr, 10);
    graph.scope_begin();
    submit(graph, {out(a)});
    graph.scope_begin();
    submit(graph, {out(b)});
    submit(graph, {out(c)});
    EQUAL(bench.header().heap_top.load(), 1024 + 2048 + 1024);
    bench.until([&] { return bench.state(2) == 2 && bench.state(1) == 2 && bench.state(0) == 2; });
    graph.scope_end();
    EQUAL(bench.state(1), 3);
    EQUAL(bench.state(2), 3);
    EQUAL(bench.header().last_task_alive.load(), 0);  // task 0 is not consumed
    EQUAL(bench.header().heap_tail.load(), 0);
    graph.scope_end();
    EQUAL(bench.header().last_task_alive.load(), 3);
    EQUAL(bench.header().heap_tail.load(), 1024 + 2048 + 1024);
  });
}

CHECKS(a_window_of_16_recycles_its_slots, "Task ring") {
  Bench bench;
  std::map<size_t, int> used;
  bench.run([&](TensormapGraph& graph) {
    Data x(bench.memory);
    for (int chunk = 0; chunk < 16; ++chunk) {
      graph.scope_begin();
      for (int i = 0; i < 13; ++i) {
        const int64_t id = submit(graph, {inout(x)});
        ++used[graph.memory().slot(id)];
        CHECK(id + 1 - bench.header().last_task_alive.load() <= 15);
        EQUAL(bench.header().current_task_index.load(), id + 1);
        EQUAL(bench.header().orchestrator_done.load(), 0);
      }
      graph.scope_end();
    }
  });
  EQUAL(used.size(), 16);
  for (const auto& [slot, times] : used) EQUAL(times, 13);
  EQUAL(bench.graph->stats().tasks, 208);
  EQUAL(bench.graph->stats().window_peak, 15);
  EQUAL(bench.header().last_task_alive.load(), 208);
  EQUAL(bench.header().orchestrator_done.load(), 1);
  CHECK(bench.graph->stats().blocked[TensormapGraph::kTaskRing] > 0);
}

CHECKS(every_consumer_is_counted_once, "Lock protocol") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Bench bench;
    std::vector<int> ran(60);
    bool in_order = true;
    Kernel counts;
    counts.name = "counts";
    counts.call = [&](const DispatchPayload& payload) {
      const auto id = static_cast<size_t>(payload.task_id);
      ++ran[id];
      if (id % 4 != 0) in_order &= ran[id - id % 4] == 1;  // its producer
    };
    bench.kernels.add(0, std::move(counts));
    bench.options.exec.deterministic = true;
    bench.options.exec.seed = seed;
    bench.run([&](TensormapGraph& graph) {
      Data x(bench.memory);
      for (int i = 0; i < 15; ++i) {
        graph.scope_begin();
        submit(graph, {out(x)});
        for (int k = 0; k < 3; ++k) submit(graph, {in(x)});
        graph.scope_end();
      }
    });
    for (const int times : ran) EQUAL(times, 1);
    CHECK(in_order);
    EQUAL(bench.header().last_task_alive.load(), 60);
  }
}

CHECKS(groups_of_clusters_are_in_the_descriptor, "Clusters") {
  Bench bench;
  bench.run([&](TensormapGraph& graph) {
    Data x(bench.memory);
    Arg args[1] = {inout(x)};
    const int32_t first = graph.allocate_cluster(), second = graph.allocate_cluster();
    graph.submit({0, 1, args, 1, first});
    graph.submit({0, 0, args, 1, first});
    graph.submit({0, 1, args, 1, second});
    graph.submit({0, 1, args, 1, -1, 4});
    EQUAL(bench.task(0).cluster_id, first);
    EQUAL(bench.task(2).cluster_id, second);
    EQUAL(bench.task(0).group_id, bench.task(1).group_id);
    CHECK(bench.task(0).group_id != bench.task(2).group_id);
    EQUAL(bench.task(3).cluster_id, -1);
    EQUAL(bench.task(3).block_dim, 4);
    EQUAL(bench.task(0).block_dim, 0);
  });
}

}  // namespace
