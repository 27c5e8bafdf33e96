// Compares random graphs, run by tensormap_and_ringbuffer under random schedules, with an oracle that runs
// the tasks one after the other.
//
//   fuzz_runtime FIRST_SEED COUNT [threads [virtual]]    threads: real threads, not the deterministic mode;
//                                                        virtual: they execute kernels, in virtual time
//
// A graph has external buffers, intermediates, views, INOUT chains, nested scopes, block tasks and clusters,
// on rings that are often as small as the graph allows. Some tasks have several kernels, or none, or a
// condition. Explicit edges order some parameters and scopes, and some of these edges are missing. The
// orchestration changes elements. Kernels mix their inputs into their outputs, so any wrong order or any
// early reuse of a buffer changes the result.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "stress.hpp"
#include "tensormap/tensormap_graph.hpp"
#include "virtual.hpp"

namespace {

using namespace pto2;
using stress::Random;

constexpr int kRows = 8, kCols = 8;
constexpr int kMost = 8;  // parameters of a task

/// A part of a tensor: rows and columns of a buffer of kRows x kCols elements of type uint64.
struct Region {
  int buffer = 0;
  int row = 0, col = 0, rows = kRows, cols = kCols;
};

struct Param {
  PTOParamType type;
  Region region;
  bool fresh = false;  // an OUTPUT with memory from the heap
  bool no_dep = false;
};

struct Step {
  enum Kind { kTask, kBegin, kEnd, kChange } kind;  // kChange: the orchestration changes the first parameter
  std::vector<Param> params = {};
  uint64_t salt = 0;
  int worker = 0;
  int blocks = 0;
  bool clustered = false;
  bool manual = false;      // of a scope that begins
  bool sync_start = false;  // applies only if there are enough cores
  bool no_core = false;
  int members = 0;  // kernels of a mixed task: 2 (AIC and AIV0) or 3
  std::vector<int64_t> deps = {};
  bool conditional = false;  // on an element: the last parameter, which the kernel does not get
  int8_t op = 0;
  int64_t target = 0;
};

/// Explicit edges from earlier tasks, which tensors do not make.
class Edges {
 public:
  /// Return the tasks that a step needs explicit edges from, without those that its tensors wait for.
  std::vector<int64_t> of(const Step& step, bool manual) const {
    std::vector<int64_t> deps;
    for (const Access& access : accesses_) {
      for (const Param& param : step.params) {
        const bool conflict =
            (access.writes || param.type != PTOParamType::INPUT) && overlap(access.region, param.region);
        if (conflict && (!access.tracked || param.no_dep || manual)) deps.push_back(access.task);
      }
    }
    return deps;
  }
  void add(const Step& step, bool manual) {
    for (const Param& param : step.params) {
      accesses_.push_back(
          {tasks_, param.type != PTOParamType::INPUT, !param.no_dep && !manual, param.region});
    }
    ++tasks_;
  }
  int64_t tasks() const { return tasks_; }

 private:
  struct Access {
    int64_t task;
    bool writes, tracked;
    Region region;
  };
  static bool overlap(const Region& a, const Region& b) {
    return a.buffer == b.buffer && a.row < b.row + b.rows && b.row < a.row + a.rows &&
           a.col < b.col + b.cols && b.col < a.col + a.cols;
  }
  std::vector<Access> accesses_;
  int64_t tasks_ = 0;
};

struct Program {
  int externals = 0, buffers = 0;
  std::vector<Step> steps;
  int widest = 0;  // most tasks held by open scopes at one time
};

Program generate(Random& random) {
  Program p;
  p.externals = 1 + random.below(4);
  p.buffers = p.externals;
  const int length = 1 + random.below(60);
  const bool wide = random.chance(15);  // more parameters than the ring of descriptors has room for
  const bool tidy =
      random.chance(50);  // a buffer is only read or only updated: tensors alone order all tasks
  struct Open {
    int tasks = 0;
    std::vector<int> buffers = {};  // intermediates that live in it
    bool manual = false;
  };
  std::vector<Open> open(1);
  const bool loose = random.chance(40);  // with explicit edges and the other options of a task
  Edges edges;
  int held = 0;
  const auto region = [&](int buffer) {
    Region r;
    r.buffer = buffer;
    if (random.chance(50)) {
      r.row = random.below(kRows);
      r.rows = 1 + random.below(kRows - r.row);
    }
    if (random.chance(30)) {
      r.col = random.below(kCols);
      r.cols = 1 + random.below(kCols - r.col);
    }
    return r;
  };
  for (int i = 0; i < length; ++i) {
    if (open.size() < 5 && !open.back().manual && random.chance(15)) {
      open.emplace_back();
      open.back().manual = loose && random.chance(40);
      Step begin{Step::kBegin};
      begin.manual = open.back().manual;
      p.steps.push_back(begin);
      continue;
    }
    if (open.size() > 1 && random.chance(15)) {
      held -= open.back().tasks;
      open.pop_back();
      p.steps.push_back({Step::kEnd});
      continue;
    }
    Step step{Step::kTask, {}, random.next(), random.below(2)};
    std::vector<int> usable;
    for (int b = 0; b < p.externals; ++b) usable.push_back(b);
    for (const Open& scope : open) usable.insert(usable.end(), scope.buffers.begin(), scope.buffers.end());
    const int params = wide ? 5 + random.below(kMost - 4) : 1 + random.below(4);
    std::vector<int> made;
    for (int k = 0; k < params; ++k) {
      if (random.chance(35)) {
        step.params.push_back({PTOParamType::OUTPUT, {p.buffers, 0, 0, kRows, kCols}, true});
        made.push_back(p.buffers++);
      } else {
        const int buffer = usable[static_cast<size_t>(random.below(static_cast<int>(usable.size())))];
        const int kind = tidy ? (buffer % 2 == 0 ? 0 : 5) : random.below(10);
        const PTOParamType type = kind < 5   ? PTOParamType::INPUT
                                  : kind < 8 ? PTOParamType::INOUT
                                             : PTOParamType::OUTPUT;
        // Skip overlapping parameters of one task if one is written: the result would depend on the kernel.
        bool clash = false;
        for (const Param& other : step.params) {
          clash |= other.region.buffer == buffer &&
                   (type != PTOParamType::INPUT || other.type != PTOParamType::INPUT);
        }
        if (!clash) step.params.push_back({type, region(buffer), false, loose && random.chance(10)});
      }
    }
    const auto some_element = [&] {
      Region r{usable[static_cast<size_t>(random.below(static_cast<int>(usable.size())))]};
      r.row = random.below(kRows), r.col = random.below(kCols), r.rows = r.cols = 1;
      return r;
    };
    if (loose && made.empty() && random.chance(10)) {
      p.steps.push_back({Step::kChange, {{PTOParamType::INOUT, some_element()}}});
      continue;
    }
    const bool manual = open.back().manual;
    step.blocks = random.chance(15) ? 1 + random.below(4) : 0;
    step.clustered = random.chance(10);
    if (loose) {
      step.no_core = made.empty() && random.chance(10);
      if (step.no_core) {
        step.params.clear();
        for (int k = 0; k < 3 && edges.tasks() > 0; ++k)
          step.deps.push_back(random.below(static_cast<int>(edges.tasks()) + 1) - 1);  // -1: no task
        step.blocks = 0;
        step.clustered = false;
      } else {
        step.members = random.chance(20) ? 2 + random.below(2) : 0;
        step.sync_start = step.blocks > 0 && !step.clustered && random.chance(50);
        step.conditional = random.chance(15) && made.empty();
      }
      if (step.conditional) {
        const Region tested = some_element();
        for (const Param& param : step.params) step.conditional &= param.region.buffer != tested.buffer;
        if (step.conditional) step.params.push_back({PTOParamType::INPUT, tested});
        step.op = static_cast<int8_t>(1 + random.below(6));
        step.target = random.chance(20) ? -1 : random.below(4000);
      }
      for (const int64_t dep : edges.of(step, manual)) {
        if (!random.chance(2)) step.deps.push_back(dep);
      }
    }
    edges.add(step, manual);
    open.back().buffers.insert(open.back().buffers.end(), made.begin(), made.end());
    ++open.back().tasks;
    if (++held > p.widest) p.widest = held;
    p.steps.push_back(step);
  }
  while (open.size() > 1) {
    open.pop_back();
    p.steps.push_back({Step::kEnd});
  }
  return p;
}

/// A parameter of `compute`, which is the work of a kernel: it mixes all inputs with the salt, and writes the
/// mix, different for each element, into the rows of all outputs that belong to its block.
struct Place {
  uint64_t* data;
  int rows, cols, pitch;
  bool reads, writes;
};

void compute(std::vector<Place>& places, uint64_t salt, int block, int blocks) {
  uint64_t sum = salt;
  for (const Place& p : places) {
    if (!p.reads || (blocks > 1 && p.writes)) continue;  // a block does not read outputs of other blocks
    for (int r = 0; r < p.rows; ++r) {
      for (int c = 0; c < p.cols; ++c) sum = (sum ^ p.data[r * p.pitch + c]) * 0x100000001B3u + 1;
    }
  }
  for (const Place& p : places) {
    if (!p.writes) continue;
    for (int r = block; r < p.rows; r += blocks) {
      for (int c = 0; c < p.cols; ++c) {
        const uint64_t before = p.reads ? p.data[r * p.pitch + c] * 31 : 0;
        p.data[r * p.pitch + c] = before + sum + static_cast<uint64_t>(r * 8 + c);
      }
    }
  }
}

/// The arguments are one word of roles, the salt, then the tensors. See `execute` below.
void kernel(const DispatchPayload& payload) {
  const bool in_blocks = payload.block_num > 1 || (payload.args[0] >> 32) != 0;
  const int roles = static_cast<int>(payload.args[0] & 0xFFFF);
  const auto salt = static_cast<uint64_t>(payload.args[1]);
  const int count = payload.num_args - 2 - (in_blocks ? 2 : 0);
  int member = 0, members = 1;  // the kernels of a mixed task share the work as blocks do
  if (payload.mixed) {
    members = 1 + payload.lanes;
    member = payload.core_type == CoreType::Aic ? 0 : 1 + payload.lane;
  }
  std::vector<Place> places;
  for (int i = 0; i < count; ++i) {
    const auto& t = *reinterpret_cast<const TensorData*>(payload.args[2 + i]);
    const int role = (roles >> (2 * i)) & 3;
    places.push_back({reinterpret_cast<uint64_t*>(t.buffer.addr) + t.start_offset,
                      static_cast<int>(t.shapes[0]), static_cast<int>(t.shapes[1]),
                      static_cast<int>(t.raw_shapes[1]), role != 1, role != 0});
  }
  compute(places, salt, payload.block_idx * members + member, payload.block_num * members);
}

using Buffers = std::vector<std::vector<uint64_t>>;

Buffers initial(const Program& p) {
  Buffers buffers(static_cast<size_t>(p.buffers), std::vector<uint64_t>(kRows * kCols, 0));
  for (size_t b = 0; b < buffers.size(); ++b) {
    for (size_t i = 0; i < buffers[b].size(); ++i) buffers[b][i] = b * 1000 + i;
  }
  return buffers;
}

uint64_t changed(uint64_t before) { return before * 3 + 1; }

bool holds(const Step& step, uint64_t found) {
  const bool below = step.target >= 0 && found < static_cast<uint64_t>(step.target);
  const bool equal = step.target >= 0 && found == static_cast<uint64_t>(step.target);
  switch (step.op) {
    case Condition::kEq: return equal;
    case Condition::kNe: return !equal;
    case Condition::kGt: return !below && !equal;
    case Condition::kLt: return below;
    case Condition::kGe: return !below;
    default: return below || equal;
  }
}

/// Return the buffers after the tasks ran one after the other.
Buffers oracle(const Program& p) {
  Buffers buffers = initial(p);
  const auto element = [&](const Region& r) -> uint64_t& {
    return buffers[static_cast<size_t>(r.buffer)][static_cast<size_t>(r.row * kCols + r.col)];
  };
  for (const Step& step : p.steps) {
    if (step.kind == Step::kChange) element(step.params[0].region) = changed(element(step.params[0].region));
    if (step.kind != Step::kTask || step.no_core) continue;
    if (step.conditional && !holds(step, element(step.params.back().region))) continue;
    std::vector<Place> places;
    for (const Param& param : step.params) {
      if (step.conditional && &param == &step.params.back()) continue;
      const Region& r = param.region;
      places.push_back({&buffers[static_cast<size_t>(r.buffer)][static_cast<size_t>(r.row * kCols + r.col)],
                        r.rows, r.cols, kCols, param.type != PTOParamType::OUTPUT,
                        param.type != PTOParamType::INPUT});
    }
    const int blocks = (step.blocks > 0 ? step.blocks : 1) * (step.members > 0 ? step.members : 1);
    for (int b = 0; b < blocks; ++b) compute(places, step.salt, b, blocks);
  }
  return buffers;
}

struct Outcome {
  bool failed = false;
  ErrorCode code = ErrorCode::None;
  std::string text;
  size_t hazards = 0;
  Buffers externals;
};

Outcome execute(const Program& p, const TensormapOptions& options) {
  static Kernels kernels = [] {
    Kernels made;
    Kernel k;
    k.name = "mix";
    k.call = kernel;
    made.add(0, std::move(k));
    return made;
  }();
  Buffers memory = initial(p);
  Log log(Level::Error, [](Level, const std::string&) {});
  TensormapGraph graph(options, kernels, log);
  const uint64_t whole[2] = {kRows, kCols}, zero[2] = {0, 0};
  std::vector<std::unique_ptr<TensorData>> tensors;
  for (int b = 0; b < p.buffers; ++b) {
    tensors.push_back(std::make_unique<TensorData>());
    void* at = b < p.externals ? memory[static_cast<size_t>(b)].data() : nullptr;
    tensors.back()->init(at, kRows * kCols * 8, whole, whole, zero, 2, DataType::UINT64, 0);
  }
  graph.run([&] {
    for (const Step& step : p.steps) {
      if (step.kind == Step::kBegin) {
        graph.scope_begin(step.manual);
        continue;
      }
      if (step.kind == Step::kChange) {
        const Region& r = step.params[0].region;
        const uint64_t at[2] = {static_cast<uint64_t>(r.row), static_cast<uint64_t>(r.col)};
        const TensorData& tensor = *tensors[static_cast<size_t>(r.buffer)];
        graph.store(tensor, at, changed(graph.load(tensor, at)));
        continue;
      }
      if (step.kind == Step::kEnd) {
        graph.scope_end();
        continue;
      }
      Arg args[kMaxParams];
      TensorData views[kMost];
      uint64_t roles = 0;
      int n = 2;
      Predicate predicate;
      for (const Param& param : step.params) {
        if (step.conditional && &param == &step.params.back()) {
          predicate = {tensors[static_cast<size_t>(param.region.buffer)].get(),
                       {static_cast<uint64_t>(param.region.row), static_cast<uint64_t>(param.region.col)},
                       step.op,
                       step.target};
          continue;
        }
        TensorData& whole_tensor = *tensors[static_cast<size_t>(param.region.buffer)];
        const size_t i = static_cast<size_t>(n - 2);
        TensorData* tensor = &whole_tensor;
        if (!param.fresh) {
          const uint64_t shape[2] = {static_cast<uint64_t>(param.region.rows),
                                     static_cast<uint64_t>(param.region.cols)};
          const uint64_t offset[2] = {static_cast<uint64_t>(param.region.row),
                                      static_cast<uint64_t>(param.region.col)};
          views[i].init_with_view(whole_tensor, shape, offset);
          tensor = &views[i];
        }
        roles |= static_cast<uint64_t>(param.type) << (2 * i);
        args[n++] = {param.type, tensor, 0, param.no_dep};
      }
      if (step.blocks > 0) roles |= uint64_t{1} << 32;
      args[0].scalar = roles;
      args[1].scalar = step.salt;
      Submission s{0, step.worker, args, n, -1, step.blocks, nullptr};
      const int32_t cluster = step.clustered ? graph.allocate_cluster() : -1;
      const std::vector<int32_t> clusters(static_cast<size_t>(step.blocks), cluster);
      if (step.blocks == 0) s.cluster = cluster;
      if (step.blocks > 0 && cluster >= 0) s.cluster_ids = clusters.data();
      s.deps = step.deps.data();
      s.dep_count = static_cast<int>(step.deps.size());
      s.predicate = predicate;
      s.no_core = step.no_core;
      const int32_t members[] = {0, 0, step.members > 2 ? 0 : -1};
      if (step.members > 0) s.kernels = members;
      const bool per_cluster = step.members > 0 || step.worker == 0;
      s.sync_start = step.sync_start && step.blocks <= options.exec.block_dim * (per_cluster ? 1 : 2);
      graph.submit(s);
      if (cluster >= 0) graph.free_cluster(cluster);
    }
  });
  Outcome out;
  out.failed = graph.failure().failed();
  out.code = graph.failure().code();
  out.text = graph.failure().text();
  const SharedMemoryHeader& header = graph.memory().header();
  if (!out.failed && (header.last_task_alive.load() != header.current_task_index.load() ||
                      header.heap_tail.load() != header.heap_top.load())) {
    out.failed = true;
    out.text = "not everything was given back";
  }
  out.hazards = graph.hazards().size();
  memory.resize(static_cast<size_t>(p.externals));
  out.externals = memory;
  return out;
}

/// Return the error of the first ring or pool that is too small for a graph, or None if the graph must run.
/// After everything that can run has run, the tasks from the oldest one that an open scope holds are left.
/// The dependency pool is not checked: its content depends on the order of events.
ErrorCode too_small(const Program& p, const TensormapOptions& options) {
  struct Task {
    uint64_t end;  // end of its block in the heap, or of the last block before
    uint64_t entries;
  };
  std::vector<Task> tasks;
  std::vector<size_t> firsts{SIZE_MAX};  // the first task of each open scope
  std::vector<bool> manual{false};
  uint64_t top = 0;
  for (const Step& step : p.steps) {
    if (step.kind == Step::kBegin) firsts.push_back(SIZE_MAX), manual.push_back(step.manual);
    if (step.kind == Step::kEnd) firsts.pop_back(), manual.pop_back();
    if (step.kind != Step::kTask) continue;
    size_t oldest = tasks.size();
    for (const size_t first : firsts) oldest = first < oldest ? first : oldest;
    if (firsts.back() == SIZE_MAX) firsts.back() = tasks.size();
    uint64_t bytes = 0, entries = 0, held = 0;
    for (const Param& param : step.params) {
      bytes += param.fresh ? 1024 : 0;
      entries += param.type != PTOParamType::INPUT && !param.no_dep && !manual.back() ? 1 : 0;
    }
    for (size_t i = oldest; i < tasks.size(); ++i) held += tasks[i].entries;
    if (tasks.size() - oldest >= options.task_window - 1) return ErrorCode::FlowControlDeadlock;
    if (bytes > 0) {
      uint64_t tail = oldest > 0 ? tasks[oldest - 1].end : 0;
      const bool empty = tail == top;
      if (top % options.heap + bytes > options.heap) top += options.heap - top % options.heap;
      if (empty) tail = top;
      if (top + bytes - tail > options.heap) return ErrorCode::HeapRingDeadlock;
      top += bytes;
    }
    if (held + entries > options.tensormap_pool) return ErrorCode::TensorMapOverflow;
    tasks.push_back({top, entries});
  }
  return ErrorCode::None;
}

/// Return the options with enough room for each of the graphs.
TensormapOptions with_room(TensormapOptions options) {
  options.heap = 1 << 22;
  options.dep_pool = options.tensormap_pool = 1 << 14;
  options.task_window = options.exec.queue = 128;
  return options;
}

uint64_t power(uint64_t n) {
  uint64_t p = 4;
  while (p < n) p *= 2;
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 0;
  const bool in_virtual_time = argc > 4;
  uint64_t runs = 0, hazardous = 0, tasks = 0, deadlocks = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random{seed};
    const Program p = generate(random);
    alarm(100);  // a run that hangs is a failure
    Buffers expected = oracle(p);
    expected.resize(static_cast<size_t>(p.externals));
    for (const Step& step : p.steps) tasks += step.kind == Step::kTask ? 1 : 0;
    TensormapOptions options;
    options.exec.deterministic = threads == 0;
    options.exec.host_threads = threads > 0 ? threads : 1;
    options.exec.seed = random.next();
    options.exec.block_dim = 1 + random.below(4);
    options.exec.schedulers = 1 + random.below(4);
    options.exec.shards = 1 + random.below(4);
    options.exec.record = random.chance(20);
    options.poison = random.chance(50);
    options.task_window = power(static_cast<uint64_t>(p.widest) + 2) << random.below(2);
    options.exec.queue = options.task_window;
    options.heap = uint64_t{1} << (random.chance(40) ? 20 : 12 + random.below(5));
    options.dep_pool = 4 + static_cast<uint64_t>(random.below(random.chance(40) ? 20 : 400));
    options.tensormap_pool = 16 + static_cast<uint64_t>(random.below(400));
    options.tensormap_buckets = uint64_t{1} << random.below(8);
    if (in_virtual_time) options.exec.virtual_time = stress::random_virtual(random);
    for (int mode = 0; mode < 2; ++mode) {
      options.check_hazards = true;  // with track_war too: explicit edges may be missing
      options.track_war = mode == 1;
#if defined(__SANITIZE_THREAD__)
      if (threads > 0) {  // unordered accesses are a race of the graph, not of the runtime
        TensormapOptions look = with_room(options);
        look.exec.deterministic = true;
        look.exec.virtual_time = nullptr;
        if (execute(p, look).hazards > 0) continue;
      }
#endif
      Outcome got = execute(p, options);
      ++runs;
      const ErrorCode code = got.code == ErrorCode::ScopeDeadlock ? ErrorCode::FlowControlDeadlock : got.code;
      const bool deadlock = got.text.find("FATAL") != std::string::npos;
      if (code != too_small(p, options) && code != ErrorCode::DepPoolOverflow) {
        std::printf("seed %llu, %s: error %d was due, it ended with %d: %s\n",
                    static_cast<unsigned long long>(seed), mode == 0 ? "plain" : "track_war",
                    static_cast<int>(too_small(p, options)), static_cast<int>(code), got.text.c_str());
        return 1;
      }
      if (deadlock) {
        ++deadlocks;
        got = execute(p, with_room(options));
      }
      const bool ordered = got.hazards == 0;
      hazardous += ordered ? 0 : 1;
      if (got.failed || (ordered && got.externals != expected)) {
        std::printf("seed %llu, %s: %s\n", static_cast<unsigned long long>(seed),
                    mode == 0 ? "plain" : "track_war", got.failed ? got.text.c_str() : "the result differs");
        return 1;
      }
    }
  }
  std::printf("%llu graphs, %llu tasks, %llu runs: %llu with unordered accesses, %llu with pools too small\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(tasks),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(hazardous),
              static_cast<unsigned long long>(deadlocks));
  return 0;
}
