// Tests the task runtime under bad conditions: kernels that wait for each other or for missing events,
// tiny and huge rings, odd numbers of threads and schedulers, and failures of every kind at random moments.
#include <time.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pto/core/machine.hpp"
#include "stress.hpp"
#include "tensormap/tensormap_graph.hpp"

namespace {

using namespace pto2;
using stress::Random;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kScale = 1;
#else
constexpr int kScale = 4;
#endif

void pass_time(int microseconds) {
  const int64_t until = now_ns() + int64_t{1000} * microseconds;
  while (now_ns() < until) {
  }
}
void nap(int microseconds) {
  const timespec time{0, microseconds * 1000L};
  nanosleep(&time, nullptr);
}

/// Return options. `mode`: 0 deterministic, otherwise the number of threads.
TensormapOptions options_for(int mode, uint64_t seed = 0) {
  TensormapOptions options;
  options.exec.deterministic = mode == 0;
  options.exec.host_threads = mode == 0 ? 1 : mode;
  options.exec.seed = seed;
  options.exec.block_dim = 2;
  options.heap = 1 << 16;
  options.task_window = options.exec.queue = 64;
  options.dep_pool = options.tensormap_pool = 256;
  options.tensormap_buckets = 16;
  return options;
}

/// A run with kernels given as (number, function), and its outcome.
struct World {
  Kernels kernels;
  Log log{Level::Error, [](Level, const std::string&) {}};
  std::unique_ptr<TensormapGraph> graph;

  void on_core(int id, void (*function)(int64_t*, pto::detail::Core*)) {
    Kernel kernel;
    kernel.name = "on_core";
    kernel.on_core = function;
    kernels.add(id, std::move(kernel));
  }
  void call(int id, std::function<void(const DispatchPayload&)> function) {
    Kernel kernel;
    kernel.name = "call";
    kernel.call = std::move(function);
    kernels.add(id, std::move(kernel));
  }
  void run(const TensormapOptions& options, const std::function<void(TensormapGraph&)>& orchestrate) {
    graph = std::make_unique<TensormapGraph>(options, kernels, log);
    graph->run([&] { orchestrate(*graph); });
  }
  int code() const { return static_cast<int>(graph->failure().code()); }
  bool says(const char* text) const { return graph->failure().text().find(text) != std::string::npos; }
};

int64_t submit(TensormapGraph& graph, int kernel, int worker, std::initializer_list<uint64_t> scalars,
               int cluster = -1) {
  Arg args[kMaxParams];
  int count = 0;
  for (const uint64_t scalar : scalars) args[count++].scalar = scalar;
  return graph.submit({kernel, worker, args, count, cluster, 0, nullptr});
}
template <class T>
uint64_t address(T& value) {
  return reinterpret_cast<uint64_t>(&value);
}

// --- kernels that wait in the middle -----------------------------------------------------------------------

/// A value that two cores of a cluster pass to each other. Not atomic: the semaphores must order accesses.
struct Ball {
  int64_t value = 0;
  int64_t rounds = 0;
};

void raise(pto::detail::Core* core, int box) { core->cluster->semaphores[box][3].fetch_add(1); }
void await(pto::detail::Core* core, int box) {
  auto& semaphore = core->cluster->semaphores[box][3];
  pto::detail::wait_until([&] { return semaphore.load() > 0; }, "a semaphore of the test");
  semaphore.fetch_sub(1);
}

void cube_side(int64_t* args, pto::detail::Core* core) {
  pto::detail::current = core;
  auto& ball = *reinterpret_cast<Ball*>(args[0]);
  char local[256];
  for (int64_t i = 0; i < ball.rounds; ++i) {
    std::memset(local, static_cast<int>(i), sizeof local);
    CHECK(ball.value == 2 * i);
    ++ball.value;
    raise(core, pto::detail::kBoxAiv0);
    await(core, pto::detail::kBoxAic);
    CHECK(local[255] == static_cast<char>(i));
    CHECK(pto::detail::current == core);
  }
}
void vector_side(int64_t* args, pto::detail::Core* core) {
  pto::detail::current = core;
  auto& ball = *reinterpret_cast<Ball*>(args[0]);
  for (int64_t i = 0; i < ball.rounds; ++i) {
    await(core, pto::detail::kBoxAiv0);
    CHECK(ball.value == 2 * i + 1);
    ++ball.value;
    raise(core, pto::detail::kBoxAic);
  }
}
void waits_for_ever(int64_t*, pto::detail::Core* core) {
  pto::detail::current = core;
  pto::detail::wait_until([] { return false; }, "the end of time");
}
void raises_late(int64_t* args, pto::detail::Core* core) {
  pto::detail::current = core;
  pass_time(static_cast<int>(args[0]));
  raise(core, pto::detail::kBoxAic);
}
void waits_for_a_signal(int64_t*, pto::detail::Core* core) {
  pto::detail::current = core;
  await(core, pto::detail::kBoxAic);
}

void cores_hand_over_data() {
  for (const int mode : {0, 1, 2, 4}) {
    for (uint64_t seed = 0; seed < (mode == 0 ? 20u : 4u); ++seed) {
      World world;
      world.on_core(0, cube_side);
      world.on_core(1, vector_side);
      Ball balls[6];
      world.run(options_for(mode, seed), [&](TensormapGraph& graph) {
        for (Ball& ball : balls) {  // more groups than clusters: the groups take turns
          ball.rounds = 40;
          graph.scope_begin();
          const int32_t cluster = graph.allocate_cluster();
          submit(graph, 0, 0, {address(ball)}, cluster);
          submit(graph, 1, 1, {address(ball)}, cluster);
          graph.scope_end();
        }
      });
      CHECK(world.code() == 0);
      for (const Ball& ball : balls) CHECK(ball.value == 80);
    }
  }
}

/// A cube core may write to the memory of a vector core of its cluster that has not run yet.
void writes_to_its_vector_cores(int64_t*, pto::detail::Core* core) {
  for (pto::detail::Core* vector : core->cluster->vectors) {
    CHECK(vector != nullptr);
    if (vector != nullptr) std::memset(vector->space[0], 42, 64);
  }
}
void finds_it(int64_t* args, pto::detail::Core* core) {
  CHECK(core->space[0][63] == 42);
  reinterpret_cast<std::atomic<int>*>(args[0])->fetch_add(1);
}
void vector_memory_is_there_before_its_core_runs() {
  for (const int mode : {1, 2, 4}) {
    World world;
    world.on_core(0, writes_to_its_vector_cores);
    world.on_core(1, finds_it);
    std::atomic<int> found{0};
    uint64_t token[1] = {};  // the tensor that orders the two tasks
    const uint64_t one[1] = {1}, zero[1] = {0};
    world.run(options_for(mode), [&](TensormapGraph& graph) {
      TensorData tensor;
      tensor.init(token, 8, one, one, zero, 1, DataType::UINT64, 0);
      const int32_t cluster = graph.allocate_cluster();
      Arg args[2];
      args[0].scalar = address(found);
      args[1] = {PTOParamType::INOUT, &tensor, 0};
      graph.submit({0, 0, args, 2, cluster, 0, nullptr});
      graph.submit({1, 1, args, 2, cluster, 0, nullptr});
    });
    CHECK(world.code() == 0 && found.load() == 1);
  }
}

/// A deadlock is reported with the awaited conditions, for any number of threads that sleep or poll.
void waiting_for_nobody_is_found() {
  for (const int mode : {0, 1, 2, 4}) {
    World world;
    world.on_core(0, waits_for_ever);
    world.run(options_for(mode, 5), [&](TensormapGraph& graph) {
      nap(mode > 1 ? 3000 : 0);  // until the other threads sleep
      submit(graph, 0, 0, {});
    });
    CHECK(world.code() == static_cast<int>(ErrorCode::Stuck) && world.says("the end of time"));
  }
}

/// The same while the orchestrator waits for a slot, and while another task waits for the core.
void waiting_for_nobody_is_found_behind_others() {
  for (const int mode : {0, 1, 2, 4}) {
    for (const bool pinned : {false, true}) {
      World world;
      world.on_core(0, waits_for_ever);
      world.call(1, [](const DispatchPayload&) {});
      TensormapOptions options = options_for(mode, 5);
      if (!pinned) options.task_window = options.exec.queue = 4;
      world.run(options, [&](TensormapGraph& graph) {
        const int32_t cluster = pinned ? graph.allocate_cluster() : -1;
        submit(graph, 0, 0, {}, cluster);
        for (int i = 0; i < (pinned ? 1 : 10); ++i) {
          graph.scope_begin();
          submit(graph, 1, 0, {}, cluster);
          graph.scope_end();
        }
      });
      CHECK(world.code() == static_cast<int>(ErrorCode::Stuck) && world.says("the end of time"));
    }
  }
}

/// A core that waits for a slow core is not a deadlock, on whichever thread the slow core runs.
void waiting_for_a_slow_one_is_fine() {
  for (const int mode : {1, 2, 3, 4}) {
    for (int n = 0; n < 6 * kScale; ++n) {
      World world;
      world.on_core(0, waits_for_a_signal);
      world.on_core(1, raises_late);
      world.run(options_for(mode), [&](TensormapGraph& graph) {
        const int32_t cluster = graph.allocate_cluster();
        submit(graph, 0, 0, {}, cluster);
        nap(1000 + 300 * n);
        submit(graph, 1, 1, {3000}, cluster);
        nap(n % 2 == 0 ? 500 : 0);
      });
      CHECK(world.code() == 0);
      if (world.code() != 0) std::printf("%d threads: %s\n", mode, world.graph->failure().text().c_str());
    }
  }
}

/// The ring is full, and a core waits for a task that is not yet submitted. The one slot that becomes free
/// must suffice, whether the core begins to wait before or after the orchestrator is blocked.
void a_core_waits_for_a_task_behind_a_full_ring() {
  for (const int mode : {1, 2, 3, 4}) {
    for (int n = 0; n < 12 * kScale; ++n) {
      World world;
      world.on_core(0, waits_for_a_signal);
      world.on_core(1, raises_late);
      world.call(2, [&](const DispatchPayload& payload) {
        if (payload.args[0] == 0) nap(n % 3 == 0 ? 0 : 400 * n);  // the only task that can be retired
      });
      TensormapOptions options = options_for(mode);
      options.task_window = options.exec.queue = 64;
      world.run(options, [&](TensormapGraph& graph) {
        const int32_t cluster = graph.allocate_cluster();
        const auto alone = [&](int kernel, int type, uint64_t value, int32_t where = -1) {
          graph.scope_begin();
          submit(graph, kernel, type, {value}, where);
          graph.scope_end();
        };
        alone(2, 1, 0);
        if (n % 2 == 0) nap(1000);
        alone(0, 0, 0, cluster);
        for (uint64_t i = 1; i < 62; ++i) alone(2, 1, i);
        alone(1, 1, 100, cluster);
      });
      CHECK(world.code() == 0);
      if (world.code() != 0) std::printf("%d threads: %s\n", mode, world.graph->failure().text().c_str());
    }
  }
}

/// A kernel may be added while tasks run: a Python orchestration adds it before its first task.
void kernels_come_while_tasks_run() {
  for (int n = 0; n < 20 * kScale; ++n) {
    World world;
    std::atomic<int> ran{0};
    world.run(options_for(1 + n % 4), [&](TensormapGraph& graph) {
      for (int i = 0; i < 100; ++i) {
        world.call(i, [&](const DispatchPayload&) { ran.fetch_add(1); });
        graph.scope_begin();
        submit(graph, i, i % 2, {});
        submit(graph, i / 2, i / 2 % 2, {});
        graph.scope_end();
      }
    });
    CHECK(world.code() == 0 && ran.load() == 200);
  }
}

// --- rings, threads, schedulers ----------------------------------------------------------------------------

/// The orchestrator waits for slots about until it falls asleep, and must be woken.
void a_blocked_orchestrator_is_woken() {
  for (int n = 0; n < 60 * kScale; ++n) {
    World world;
    std::atomic<int> ran{0};
    world.call(0, [&](const DispatchPayload& payload) {
      pass_time(static_cast<int>(payload.args[0]));
      ran.fetch_add(1);
    });
    TensormapOptions options = options_for(2);
    options.task_window = options.exec.queue = 4;
    world.run(options, [&](TensormapGraph& graph) {
      for (int i = 0; i < 40; ++i) {
        graph.scope_begin();
        submit(graph, 0, i % 2, {static_cast<uint64_t>(n + i)});
        graph.scope_end();
      }
    });
    CHECK(world.code() == 0 && ran.load() == 40);
  }
}

/// Let the orchestrator wait for the slot of a task that runs for some time and then ends or fails, while
/// other tasks run that end only after the orchestrator continues. Return the error code.
int behind_one_task(const std::function<void()>& task) {
  World world;
  std::atomic<bool> waits{false}, went_on{false};
  std::atomic<int> started{0};
  world.call(0, [&](const DispatchPayload&) {
    for (started.fetch_add(1); !waits;) std::this_thread::yield();
    task();
  });
  world.call(1, [&](const DispatchPayload&) {
    for (started.fetch_add(1); !went_on && !world.graph->failure().failed();) nap(200);
  });
  TensormapOptions options = options_for(4);
  options.task_window = options.exec.queue = 4;
  world.run(options, [&](TensormapGraph& graph) {
    for (int i = 0; i < 4; ++i) {
      graph.scope_begin();
      while (i == 3 && started < 3) nap(50);  // each task on its own thread
      if (i == 3) waits = true;
      submit(graph, i == 0 ? 0 : 1, i % 2, {});  // the fourth task needs the slot of the first
      graph.scope_end();
    }
    went_on = true;
  });
  return world.code();
}

void a_sleeping_orchestrator_is_woken() {
  for (int n = 0; n < 5 * kScale; ++n) CHECK(behind_one_task([] { nap(5000); }) == 0);
}

/// The task ends at about the moment when the orchestrator falls asleep.
void an_orchestrator_that_falls_asleep_is_woken() {
  for (int n = 0; n < 200 * kScale; ++n) CHECK(behind_one_task([&] { pass_time(n % 100); }) == 0);
}

void a_failure_wakes_everybody() {
  for (int n = 0; n < 5 * kScale; ++n) {
    const int code = behind_one_task([] {
      nap(5000);
      throw std::runtime_error("it fails");
    });
    CHECK(code == static_cast<int>(ErrorCode::KernelFailed));
  }
}

/// All tasks of a scope have run before the scope ends, so only scope_end can retire them.
void a_late_end_of_scope_retires() {
  World world;
  std::atomic<int> ran{0};
  world.call(0, [&](const DispatchPayload&) { ran.fetch_add(1); });
  TensormapOptions options = options_for(2);
  options.task_window = options.exec.queue = 4;
  world.run(options, [&](TensormapGraph& graph) {
    for (int i = 0; i < 20; ++i) {
      graph.scope_begin();
      submit(graph, 0, i % 2, {});
      while (!graph.exec().nothing_can_happen()) nap(50);
      graph.scope_end();
    }
  });
  CHECK(world.code() == 0 && ran.load() == 20);
}

/// The orchestrator sleeps until a cluster is free. Only the end of the task on the cluster can wake it: the
/// watermark does not move, and other tasks end only after the orchestrator continues.
void a_cluster_wakes_who_waits_for_it() {
  for (int n = 0; n < 6 * kScale; ++n) {
    World world;
    std::atomic<bool> went_on{false};
    std::atomic<int> started{0};
    world.call(0, [&](const DispatchPayload&) {
      for (started.fetch_add(1); started < 3;) nap(100);
      nap(20000);  // until the orchestrator sleeps
    });
    world.call(1, [&](const DispatchPayload&) {
      for (started.fetch_add(1); !went_on && !world.graph->failure().failed();) nap(200);
    });
    TensormapOptions options = options_for(4);
    options.exec.block_dim = 1;
    world.run(options, [&](TensormapGraph& graph) {
      const int32_t cluster = graph.allocate_cluster();
      if (n % 2 == 0) {
        submit(graph, 0, 0, {}, cluster);
      } else {
        graph.submit({0, 0, nullptr, 0, -1, 1, &cluster});
      }
      graph.free_cluster(cluster);
      submit(graph, 1, 1, {});
      submit(graph, 1, 1, {});
      while (started < 3) nap(100);  // each task on its own thread
      graph.allocate_cluster();
      went_on = true;
    });
    CHECK(world.code() == 0);
  }
}

/// A scheduler pauses in the middle of its scan while the others continue. No new task may take a slot that
/// the scan has not yet read: the task would be started twice.
void a_scan_that_lags() {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(1000 * kScale); ++seed) {
    Random random{seed};
    World world;
    std::vector<int> ran(60);
    world.call(0, [&](const DispatchPayload& payload) { ++ran[static_cast<size_t>(payload.task_id)]; });
    TensormapOptions options = options_for(0, seed);
    options.exec.schedulers = 2;
    options.task_window = options.exec.queue = 4;
    uint64_t data[1] = {};
    const uint64_t one[1] = {1}, zero[1] = {0};
    TensorData tensor;
    tensor.init(data, 8, one, one, zero, 1, DataType::UINT64, 0);
    world.run(options, [&](TensormapGraph& graph) {
      for (size_t i = 0; i < ran.size(); ++i) {
        Arg arg{PTOParamType::INOUT, &tensor, 0};
        const bool root = random.chance(25);
        graph.scope_begin();
        graph.submit({0, random.below(2), root ? nullptr : &arg, root ? 0 : 1, -1, 0, nullptr});
        graph.scope_end();
      }
    });
    CHECK(world.code() == 0);
    for (const int times : ran) CHECK(times == 1);
  }
}

/// Chains of tasks on one buffer of counters give the same results on every shape of machine.
void every_machine_gives_the_same() {
  Random random{7};
  for (int block_dim = 1; block_dim <= 24; ++block_dim) {
    for (const int mode : {0, 1, 2, 5}) {
      World world;
      world.call(0, [](const DispatchPayload& payload) {
        const auto& tensor = *reinterpret_cast<const TensorData*>(payload.args[0]);
        auto& sum = reinterpret_cast<uint64_t*>(tensor.buffer.addr)[tensor.start_offset];
        sum = sum * 3 + static_cast<uint64_t>(payload.args[1]);
      });
      TensormapOptions options = options_for(mode, static_cast<uint64_t>(block_dim));
      options.exec.block_dim = block_dim;
      options.exec.schedulers = 1 + random.below(30);
      options.exec.shards = 1 + random.below(6);
      const int bits = block_dim % 12 == 0 ? 20 : 2 + random.below(5);
      options.task_window = options.exec.queue = uint64_t{1} << bits;
      uint64_t sums[8] = {}, expected[8] = {};
      const uint64_t whole[1] = {8}, zero[1] = {0}, one[1] = {1};
      TensorData all;
      all.init(sums, sizeof sums, whole, whole, zero, 1, DataType::UINT64, 0);
      world.run(options, [&](TensormapGraph& graph) {
        for (uint64_t i = 0; i < 80; ++i) {
          const uint64_t at[1] = {i * i % 8};
          expected[at[0]] = expected[at[0]] * 3 + i;
          TensorData part;
          part.init_with_view(all, one, at);
          Arg args[2];
          args[0] = {PTOParamType::INOUT, &part, 0};
          args[1].scalar = i;
          graph.scope_begin();
          graph.submit({0, static_cast<int32_t>(i % 2), args, 2, -1, 0, nullptr});
          graph.scope_end();
        }
      });
      CHECK(world.code() == 0);
      for (int i = 0; i < 8; ++i) CHECK(sums[i] == expected[i]);
    }
  }
}

/// More blocks on one cluster than the ring has slots.
void many_blocks_on_one_cluster() {
  for (const int mode : {0, 1, 2}) {
    World world;
    std::atomic<int> ran{0};
    world.call(0,
               [&](const DispatchPayload& payload) { ran.fetch_add(payload.block_num == 100 ? 1 : 1000); });
    TensormapOptions options = options_for(mode);
    options.task_window = options.exec.queue = 4;
    world.run(options, [&](TensormapGraph& graph) {
      const std::vector<int32_t> clusters(100, graph.allocate_cluster());
      graph.submit({0, 1, nullptr, 0, -1, 100, clusters.data()});
    });
    CHECK(world.code() == 0 && ran.load() == 100);
  }
}

/// Outputs without an address have every size from 0 to more than the heap has.
void sizes_of_outputs() {
  const uint64_t zero[1] = {0};
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, uint64_t{1} << 16, (uint64_t{1} << 16) + 1, uint64_t{1} << 40,
        (uint64_t{1} << 62) + 1, (uint64_t{1} << 63) + 1, ~uint64_t{0} - 1023, ~uint64_t{0}}) {
    World world;
    world.call(0, [](const DispatchPayload&) {});
    const bool fits = size <= uint64_t{1} << 16;
    uint64_t given = 0;
    world.run(options_for(1), [&](TensormapGraph& graph) {
      const uint64_t small[1] = {64}, shape[1] = {size};
      TensorData first, second;
      first.init(nullptr, 64, small, small, zero, 1, DataType::INT8, 0);
      second.init(nullptr, size, shape, shape, zero, 1, DataType::INT8, 0);
      Arg arg{PTOParamType::OUTPUT, &first, 0};
      graph.scope_begin();
      graph.submit({0, 0, &arg, 1, -1, 0, nullptr});
      graph.scope_end();
      graph.scope_begin();
      arg.tensor = &second;
      graph.submit({0, 0, &arg, 1, -1, 0, nullptr});
      graph.scope_end();
      given = second.buffer.addr;
    });
    CHECK(world.code() == (fits ? 0 : static_cast<int>(ErrorCode::HeapRingDeadlock)));
    CHECK((given > 4096) == fits);  // otherwise no address of the heap
  }
}

/// After a deadlock the runtime only counts submissions; invalid ones must do no harm.
void nonsense_after_a_deadlock() {
  World world;
  world.call(0, [](const DispatchPayload&) {});
  TensormapOptions options = options_for(1);
  options.task_window = 16;
  world.run(options, [&](TensormapGraph& graph) {
    Arg args[kMaxParams];
    for (int i = 0; i < 20; ++i) graph.submit({0, 0, args, 0, -1, 0, nullptr});
    for (Arg& arg : args) arg.type = PTOParamType::OUTPUT;  // without tensors
    for (const int count : {-1, kMaxParams, kMaxParams + 1, 1 << 20})
      graph.submit({99, 7, args, count, -1, 0, nullptr});
  });
  CHECK(world.code() == static_cast<int>(ErrorCode::ScopeDeadlock) &&
        world.says("hold 24 tasks at one time"));
}

/// A kernel that submits gets an error, because it would change data that the orchestrator uses.
void a_kernel_cannot_orchestrate() {
  for (const int mode : {0, 1, 2}) {
    for (int what = 0; what < 5; ++what) {
      World world;
      world.call(0, [&](const DispatchPayload&) {
        if (what == 0) submit(*world.graph, 1, 0, {});
        if (what == 1) world.graph->scope_begin();
        if (what == 2) world.graph->scope_end();
        if (what == 3) world.graph->allocate_cluster();
        if (what == 4) world.graph->free_cluster(0);
      });
      world.call(1, [](const DispatchPayload&) {});
      world.run(options_for(mode), [&](TensormapGraph& graph) {
        for (int i = 0; i < 20; ++i) submit(graph, i == 10 ? 0 : 1, i % 2, {});
      });
      CHECK(world.code() == static_cast<int>(ErrorCode::KernelFailed) && world.says("a kernel cannot"));
    }
  }
  World outer;  // a kernel may start its own run
  int inner = 0;
  outer.call(0, [&](const DispatchPayload&) {
    World world;
    world.call(0, [&](const DispatchPayload&) { ++inner; });
    world.run(options_for(1), [&](TensormapGraph& graph) { submit(graph, 0, 0, {}); });
    CHECK(world.code() == 0);
  });
  outer.run(options_for(1), [&](TensormapGraph& graph) { submit(graph, 0, 0, {}); });
  CHECK(outer.code() == 0 && inner == 1);
}

/// A scope that is larger than the window is reported at once, while tasks still run.
void deadlocks_are_told_while_others_work() {
  for (const int mode : {0, 1, 2, 4}) {
    World world;
    world.call(0, [](const DispatchPayload&) { pass_time(20); });
    TensormapOptions options = options_for(mode);
    options.task_window = options.exec.queue = 16;
    uint64_t sums[1] = {};
    const uint64_t one[1] = {1}, zero[1] = {0};
    world.run(options, [&](TensormapGraph& graph) {
      TensorData all;
      all.init(sums, 8, one, one, zero, 1, DataType::UINT64, 0);
      Arg arg{PTOParamType::INOUT, &all, 0};
      for (int i = 0; i < 30; ++i) graph.submit({0, i % 2, &arg, 1, -1, 0, nullptr});
    });
    CHECK(world.code() == static_cast<int>(ErrorCode::ScopeDeadlock) && world.says("FATAL"));
  }
}

// --- failures ----------------------------------------------------------------------------------------------

struct NoException {};

void fails_on_core(int64_t*, pto::detail::Core* core) {
  pto::detail::current = core;
  pto::detail::fail("the kernel gives up");
}
void throws_on_core(int64_t* args, pto::detail::Core* core) {
  pto::detail::current = core;
  if (args[0] % 2 == 0) throw std::runtime_error("from the core");
  throw NoException();
}

/// A random graph with one failure at a random moment. In every case the run ends, reports it,
/// and (as the sanitizers see) releases all resources.
void failures_anywhere() {
  int seen[8] = {};
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(300 * kScale); ++seed) {
    Random random{seed};
    World world;
    enum Fault {
      kCallThrows,
      kCallThrowsOdd,
      kCoreFails,
      kCoreThrows,
      kOrchestratorThrows,
      kCancelled,
      kBadKernel,
      kTwice
    };
    const int fault = random.below(8), when = random.below(40),
              mode = random.chance(60) ? 0 : 1 + random.below(4);
    std::atomic<int> count{0};
    world.call(0, [&](const DispatchPayload&) {
      const int n = count.fetch_add(1);
      if (n != when && !(fault == kTwice && n > when)) return;
      const std::string text(100, 'x');  // a heap block, to show leaks
      if (fault == kCallThrows || fault == kTwice) throw std::runtime_error(text);
      if (fault == kCallThrowsOdd) throw NoException();
      if (fault == kCancelled) world.graph->exec().fail(ErrorCode::Cancelled, "stop");
    });
    world.on_core(1, fails_on_core);
    world.on_core(2, throws_on_core);
    world.on_core(3, waits_for_a_signal);
    TensormapOptions options = options_for(mode, seed);
    options.exec.schedulers = 1 + random.below(4);
    options.exec.record = random.chance(30);
    options.task_window = options.exec.queue = uint64_t{4} << random.below(5);
    options.track_war = random.chance(30);
    const uint64_t whole[1] = {16}, zero[1] = {0};
    std::vector<uint64_t> external(16, 0);
    const bool waiting = random.chance(30);
    world.run(options, [&](TensormapGraph& graph) {
      TensorData shared;
      shared.init(external.data(), 128, whole, whole, zero, 1, DataType::UINT64, 0);
      const std::vector<int> held(100, 1);  // freed when the orchestration is unwound
      if (waiting) submit(graph, 3, 0, {}, graph.allocate_cluster());
      for (int i = 0; i < 60; ++i) {
        graph.scope_begin();
        TensorData fresh;
        fresh.init(nullptr, 128, whole, whole, zero, 1, DataType::UINT64, 0);
        Arg args[2];
        args[0] = {random.chance(50) ? PTOParamType::INPUT : PTOParamType::INOUT, &shared, 0};
        args[1] = {PTOParamType::OUTPUT, &fresh, 0};
        if (i == when && fault == kOrchestratorThrows) throw std::runtime_error(std::string(100, 'y'));
        if (i == when && fault == kBadKernel) submit(graph, 77, 0, {});
        if (i == when && fault == kCoreFails) submit(graph, 1, 0, {});
        if (i == when && fault == kCoreThrows) submit(graph, 2, 1, {static_cast<uint64_t>(i)});
        graph.submit({0, random.below(2), args, 2, -1, random.chance(20) ? 3 : 0, nullptr});
        graph.scope_end();
      }
      submit(graph, 4, 0, {});
    });
    static constexpr ErrorCode expected[] = {ErrorCode::KernelFailed,        ErrorCode::KernelFailed,
                                             ErrorCode::KernelFailed,        ErrorCode::KernelFailed,
                                             ErrorCode::OrchestrationFailed, ErrorCode::Cancelled,
                                             ErrorCode::InvalidArgs,         ErrorCode::KernelFailed};
    // The last submission has an unknown kernel. Its error comes first if the fault has not happened by then.
    const auto code = static_cast<ErrorCode>(world.code());
    const bool late = code == ErrorCode::InvalidArgs && mode != 0;
    const bool stuck = waiting && code == ErrorCode::Stuck;
    CHECK(code == expected[fault] || late || stuck || (mode == 0 && code == ErrorCode::InvalidArgs));
    if (code == expected[fault]) ++seen[fault];
  }
  for (const int n : seen) CHECK(n > 5);
}

/// A graph that throws errors into the execution layer. No such error may end the process.
struct ThrowingGraph final : Graph {
  int where = 0;
  Exec* exec = nullptr;
  std::atomic<int> given{0};
  bool has_unseen() const override { return given.load() < 3; }
  int look_for_ready(int scheduler) override {
    if (where == 0) throw std::runtime_error("look");
    const int n = given.fetch_add(1);
    if (n >= 3) return 0;
    exec->count(1);
    exec->ready(n, CoreType::Aiv, -1, scheduler);
    return 1;
  }
  void fill(int64_t ticket, DispatchPayload& payload, int) override {
    if (where == 1) throw std::bad_alloc();
    payload.task_id = ticket;
    payload.kernel_id = 0;
  }
  bool completed(int64_t, int) override {
    if (where == 2) throw NoException();
    return true;
  }
  TaskRecord* record(int64_t) override { return nullptr; }
};

void a_graph_that_throws_ends_the_run() {
  for (int where = 0; where < 4; ++where) {
    for (const int mode : {0, 1, 2, 4}) {
      Kernels kernels;
      Kernel kernel;
      kernel.plain = [](int64_t*) {};
      kernels.add(0, std::move(kernel));
      ThrowingGraph graph;
      graph.where = where;
      Exec exec(options_for(mode).exec, graph, kernels);
      graph.exec = &exec;
      exec.run([&] { nap(where == 3 || mode == 0 ? 0 : 2000); });
      CHECK(exec.failure().failed() == (where < 3));
      if (where < 3) CHECK(exec.failure().code() == ErrorCode::Internal);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return stress::main_of(
      argc, argv,
      {{"cores_hand_over_data", cores_hand_over_data},
       {"vector_memory_is_there_before_its_core_runs", vector_memory_is_there_before_its_core_runs},
       {"waiting_for_nobody_is_found", waiting_for_nobody_is_found},
       {"waiting_for_nobody_is_found_behind_others", waiting_for_nobody_is_found_behind_others},
       {"waiting_for_a_slow_one_is_fine", waiting_for_a_slow_one_is_fine},
       {"a_core_waits_for_a_task_behind_a_full_ring", a_core_waits_for_a_task_behind_a_full_ring},
       {"kernels_come_while_tasks_run", kernels_come_while_tasks_run},
       {"a_blocked_orchestrator_is_woken", a_blocked_orchestrator_is_woken},
       {"a_sleeping_orchestrator_is_woken", a_sleeping_orchestrator_is_woken},
       {"an_orchestrator_that_falls_asleep_is_woken", an_orchestrator_that_falls_asleep_is_woken},
       {"a_failure_wakes_everybody", a_failure_wakes_everybody},
       {"a_late_end_of_scope_retires", a_late_end_of_scope_retires},
       {"a_cluster_wakes_who_waits_for_it", a_cluster_wakes_who_waits_for_it},
       {"a_scan_that_lags", a_scan_that_lags},
       {"every_machine_gives_the_same", every_machine_gives_the_same},
       {"many_blocks_on_one_cluster", many_blocks_on_one_cluster},
       {"sizes_of_outputs", sizes_of_outputs},
       {"nonsense_after_a_deadlock", nonsense_after_a_deadlock},
       {"a_kernel_cannot_orchestrate", a_kernel_cannot_orchestrate},
       {"deadlocks_are_told_while_others_work", deadlocks_are_told_while_others_work},
       {"failures_anywhere", failures_anywhere},
       {"a_graph_that_throws_ends_the_run", a_graph_that_throws_ends_the_run}},
      500);
}
