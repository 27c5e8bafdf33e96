#include "machine.hpp"

// Each kernel is compiled for one target; the memories here are large enough for every target.
#define PTO_UBUF_SIZE_BYTES (512u * 1024)
#define PTO_CBUF_SIZE_BYTES (1024u * 1024)
#define PTO_L0A_SIZE_BYTES (64u * 1024)
#define PTO_L0B_SIZE_BYTES (64u * 1024)
#define PTO_L0C_SIZE_BYTES (256u * 1024)
#define PTO_BIAS_SIZE_BYTES (64u * 1024)
#define PTO_FBUF_SIZE_BYTES (64u * 1024)
#define PTO_SCALELEFT_SIZE_BYTES (4u * 1024)
#define PTO_SCALERIGHT_SIZE_BYTES (4u * 1024)
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "fault.hpp"
#include "pto/core/fiber.hpp"
#include "pto/core/machine.hpp"

namespace pto2 {

using pto::detail::Core;
using pto::detail::Host;
using pto::detail::Waiting;

struct MachineState;

namespace {

/// Clear the state that earlier tasks left.
void reset(pto::detail::Cluster& it) {
  for (auto& shared : it.shared) std::free(shared.exchange(nullptr));
  for (auto& box : it.semaphores) {
    for (auto& semaphore : box) semaphore.store(0);
  }
  for (auto& kind : it.arrived) {
    for (auto& count : kind) count.store(0);
  }
}

/// Return zeroed clusters.
pto::detail::Cluster* make_clusters(int count) {
  void* made = std::calloc(static_cast<size_t>(count), sizeof(pto::detail::Cluster));
  if (made == nullptr) throw std::bad_alloc();
  return static_cast<pto::detail::Cluster*>(made);
}

}  // namespace

struct Team {
  pto::detail::Grid grid;
  pto::detail::Cluster* clusters;  // by block
  const int blocks;

  explicit Team(int count) : clusters(make_clusters(count)), blocks(count) {}
  ~Team() {
    for (int b = 0; b < blocks; ++b) reset(clusters[b]);
    std::free(static_cast<void*>(clusters));
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Set up the grid for this number of cores of each kind per block.
  void size(uint32_t cubes, uint32_t vectors) {
    const auto count = static_cast<uint32_t>(blocks);
    grid.clusters = clusters;
    grid.blocks = count;
    grid.vectors = vectors;
    grid.participants[0] = count * vectors;
    grid.participants[1] = count * cubes;
    grid.participants[2] = count * (cubes + vectors);
    for (auto& here : grid.here) here.store(0);
    for (auto& round : grid.round) round.store(0);
    for (auto& kind : grid.flags) {
      for (auto& flag : kind) flag.store(0);
    }
  }
};

namespace {

void host_fail(Core& core, const char* message);
thread_local MachineState* running = nullptr;  // the kernel that this thread runs

}  // namespace

namespace {

constexpr size_t kFewUses = 4096;  // accesses of one task before `unite` removes duplicates

bool same_kind(const UseRecord& a, const UseRecord& b) {
  return a.use == b.use && a.arg == b.arg && a.undeclared == b.undeclared;
}
/// Return true if `b` begins inside `a` or at its end.
bool goes_on(const UseRecord& a, const UseRecord& b) {
  return same_kind(a, b) && a.first <= b.first && b.first <= a.last;
}

/// Merge the accesses of one task, from index `from` on, and remove duplicates.
void unite(std::vector<UseRecord>& uses, size_t from) {
  const auto key = [](const UseRecord& u) { return std::tuple(u.use, u.arg, u.undeclared, u.first); };
  const auto begin = uses.begin() + static_cast<std::ptrdiff_t>(from);
  std::sort(begin, uses.end(), [&](const UseRecord& a, const UseRecord& b) { return key(a) < key(b); });
  auto out = begin;
  for (auto next = begin; next != uses.end(); ++next) {
    if (next != begin && goes_on(*out, *next)) {
      out->last = std::max(out->last, next->last);
    } else if (next != begin) {
      *++out = *next;
    }
  }
  if (begin != uses.end()) uses.erase(out + 1, uses.end());
}

/// Zeroed memories of cores, kept for the next run, because mapping them takes longer than a short graph
/// runs. Memory of a failed core, or of a core that used more than kMostBytes, is returned to the system.
class SpareSpaces {
 public:
  bool take(Core& core) {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return false;
    std::copy(spare_.back().begin(), spare_.back().end(), core.space);
    spare_.pop_back();
    return true;
  }
  void give(Core& core, bool whole) {
    if (whole && std::accumulate(std::begin(core.used), std::end(core.used), size_t{0}) <= kMostBytes) {
      pto::detail::clear_spaces(core);
      const std::lock_guard lock(mutex_);
      if (spare_.size() < kMostCores) {
        std::copy(std::begin(core.space), std::end(core.space), spare_.emplace_back().begin());
        return;
      }
    }
    pto::detail::drop_spaces(core, pto::detail::kRooms);
  }

 private:
  static constexpr size_t kMostCores = 96, kMostBytes = 512 << 10;
  std::mutex mutex_;
  std::vector<std::array<char*, pto::detail::kSpaces>> spare_;
};
SpareSpaces& spare_spaces() {
  static auto* const found = new SpareSpaces;  // never destroyed: threads may still use it
  return *found;
}

}  // namespace

struct MachineState {
  Core core;
  Fiber fiber;
  const Waiting* waiting = nullptr;
  const Kernel* kernel = nullptr;
  int64_t* args = nullptr;
  pto_array arrays[kMaxArgs + 1];  // memory of the task, and the windows
  bool failed = false;
  std::string failure;
  const DispatchPayload* payload = nullptr;
  const Graph* graph = nullptr;
  bool judges = false;                     // true: the graph classifies accesses of tasks
  uint64_t windows = 0, window_bytes = 0;  // memory whose accesses are recorded; 0 for none
  std::vector<UseRecord> uses;
  OrderedWindows* ordered = nullptr;
  std::vector<WindowRecord> ordered_uses;
  size_t own = 0, room = kFewUses;  // index of the first use of this task; most of its uses before `unite`

  Guarded guard;

  MachineState() {
    if (!spare_spaces().take(core) && !pto::detail::make_spaces(core, pto::detail::kRooms))
      throw std::bad_alloc();
    guard.stack = fiber.stack();
    guard.give_up = give_up;
  }
  ~MachineState() { spare_spaces().give(core, !failed); }
  MachineState(const MachineState&) = delete;
  MachineState& operator=(const MachineState&) = delete;

  static void run(void* context) {
    auto& state = *static_cast<MachineState*>(context);
    try {
      if (state.kernel->on_machine != nullptr) {
        state.kernel->on_machine(state.kernel->task, state.args, &state.core);
      } else {
        state.kernel->on_core(state.args, &state.core);
      }
    } catch (const std::exception& error) {
      state.failed = true;
      state.failure = std::string("the kernel threw a C++ exception: ") + error.what();
    } catch (...) {
      state.failed = true;
      state.failure = "the kernel threw a C++ exception";
    }
  }

  /// End a kernel that has faulted or was stopped. Runs on the stack of the kernel, which never continues.
  static void give_up() {
    MachineState& state = *running;
    char text[256];
    host_fail(state.core, state.guard.what("kernel", text, sizeof text));
  }

  Ran resume() {
    prepare_thread_for_faults();
    MachineState* outer = std::exchange(running, this);
    Guarded* outside = std::exchange(guarded, &guard);
    const bool ended = fiber.resume();
    guarded = outside;
    running = outer;
    return failed ? Ran::IntoAFailure : ended ? Ran::ToItsEnd : Ran::IntoAWait;
  }
};

VirtualCore::VirtualCore() = default;
VirtualCore::~VirtualCore() = default;

namespace {

void host_wait(Core& core, const Waiting& waiting) {
  auto& state = *static_cast<MachineState*>(core.fiber);
  do {
    state.waiting = &waiting;
    state.fiber.suspend();
  } while (!waiting.ready(waiting.state));
  state.waiting = nullptr;
}

void host_fail(Core& core, const char* message) {
  auto& state = *static_cast<MachineState*>(core.fiber);
  state.failed = true;
  state.failure = message;
  state.fiber.abandon();
}

void host_print(Core&, const char* text) {
  std::fputs(text, stdout);
  std::fflush(stdout);
}

/// Return a record of the current core and operation.
WindowRecord record_here(const MachineState& state, uint64_t first, uint64_t last, int8_t use) {
  const DispatchPayload& payload = *state.payload;
  const auto core = static_cast<int16_t>(payload.core_type == CoreType::Aic ? 0 : 1 + payload.lane);
  return {0,
          payload.task_id,
          first,
          last,
          payload.kernel_id,
          state.kernel->place(state.core.mark),
          payload.block_idx,
          core,
          use};
}

/// Record an access to an ordered window. Accesses to adjacent memory, row after row, become one record.
void note_in_order(MachineState& state, const pto::detail::Used& used, Use use) {
  auto& all = state.ordered_uses;
  WindowRecord next = record_here(state, used.first, used.last, static_cast<int8_t>(use));
  if (!all.empty()) {
    WindowRecord& last = all.back();
    if (last.last == used.first && last.mark == next.mark && last.use == next.use &&
        last.task_id == next.task_id && last.block == next.block) {
      last.last = used.last;
      return;
    }
  }
  next.at = state.ordered->next();
  all.push_back(next);
}

void host_ordered(Core& core, const volatile void* through, bool gives) {
  auto& state = *static_cast<MachineState*>(core.fiber);
  if (state.ordered->empty()) return;
  const DispatchPayload& payload = *state.payload;
  const uint64_t block = payload.team != nullptr ? 0 : static_cast<uint64_t>(payload.block_idx) + 1;
  WindowRecord next = record_here(state, reinterpret_cast<uint64_t>(through), block,
                                  gives ? WindowRecord::kGives : WindowRecord::kTakes);
  next.at = state.ordered->next();
  state.ordered_uses.push_back(next);
}

void host_used(Core& core, const pto::detail::Used& used) {
  static_assert(static_cast<Use>(pto::detail::Use::min) == Use::Min);
  auto& state = *static_cast<MachineState*>(core.fiber);
  const int64_t task = state.payload->task_id;
  UseRecord next{task, used.first, used.last, -1, static_cast<Use>(pto::detail::kind_of(used.use)), false};
  if (state.ordered->holds(used.first)) note_in_order(state, used, next.use);
  if (used.first - state.windows < state.window_bytes) {
    next.arg = UseRecord::kWindow;
  } else if (!state.judges || !state.graph->judge(*state.payload, next)) {
    return;
  }
  if (state.uses.size() > state.own && goes_on(state.uses.back(), next)) {
    state.uses.back().last = std::max(state.uses.back().last, next.last);
    return;
  }
  if (state.uses.size() - state.own >= state.room) {
    unite(state.uses, state.own);
    state.room = std::max<size_t>(kFewUses, 2 * (state.uses.size() - state.own));
  }
  state.uses.push_back(next);
}

constexpr Host kHost = {host_wait, host_fail, host_print};
constexpr Host kNotingHost = {host_wait, host_fail, host_print, host_used, nullptr, nullptr, host_ordered};

}  // namespace

Machine::Machine(int block_dim, bool note_uses, bool note_windows, const pto_array& windows)
    : cores_(static_cast<size_t>(block_dim)),
      teams_(static_cast<size_t>(block_dim)),
      clusters_(make_clusters(block_dim)),
      windows_(windows),
      block_dim_(block_dim),
      note_uses_(note_uses),
      note_windows_(note_windows && windows.data != nullptr) {
  grids_ = std::make_unique<pto::detail::Grid[]>(static_cast<size_t>(block_dim));
  for (int c = 0; c < block_dim; ++c) {
    pto::detail::Grid& grid = grids_[static_cast<size_t>(c)];
    grid.clusters = &clusters_[c];
    grid.vectors = 1;
    for (uint32_t& count : grid.participants) count = 1;  // a barrier of a lone core does not wait
  }
}

Machine::~Machine() {
  for (int c = 0; c < block_dim_; ++c) reset_cluster(c);
  std::free(static_cast<void*>(clusters_));
}

void Machine::reset_cluster(int cluster) { reset(clusters_[cluster]); }

std::shared_ptr<Team> Machine::make_team(int blocks, int cubes, int vectors) {
  auto team = std::make_shared<Team>(blocks);
  team->size(static_cast<uint32_t>(cubes), static_cast<uint32_t>(vectors));
  return team;
}

void Machine::join(VirtualCore& core) {
  Cores& cores = cores_[static_cast<size_t>(core.cluster)];
  std::call_once(cores.made, [&] { make(cores); });
  DispatchPayload& payload = core.payload;
  Team* team = payload.team;
  if (team == nullptr) {  // blocks of a mixed task that do not start together share no state
    std::shared_ptr<Team>& own = teams_[static_cast<size_t>(core.cluster)];
    if (own == nullptr) own = std::make_shared<Team>(1);
    team = own.get();
    reset(team->clusters[0]);
    team->size(payload.kernels[0] >= 0 ? 1 : 0, static_cast<uint32_t>(payload.lanes));
  }
  pto::detail::Cluster& shared = team->clusters[payload.team != nullptr ? payload.block_idx : 0];
  if (payload.mixed) {
    for (VirtualCore* other : cores.all) {
      Core& there = other->machine->core;
      if (other->type == CoreType::Aic) shared.cube = &there;
      if (other->type == CoreType::Aiv) shared.vectors[other->index % kAivPerBlock] = &there;
    }
    if (payload.kernels[1] < 0) shared.vectors[0] = shared.vectors[1];  // the only vector core
  } else {
    shared.vectors[0] = &core.machine->core;
    shared.cube = &core.machine->core;
  }
  payload.grid = &team->grid;
  payload.shared = &shared;
}

void Machine::add(VirtualCore& core) { cores_[static_cast<size_t>(core.cluster)].all.push_back(&core); }

void Machine::make(Cores& cores) {
  for (VirtualCore* core : cores.all) {
    if (core->machine == nullptr) core->machine = std::make_unique<MachineState>();
    Core& me = core->machine->core;
    me.kind = core->type == CoreType::Aic ? pto::detail::CoreKind::Cube : pto::detail::CoreKind::Vector;
    pto::detail::Cluster& cluster = clusters_[core->cluster];
    if (core->type == CoreType::Aiv) cluster.vectors[core->index % kAivPerBlock] = &me;
    if (core->type == CoreType::Aic) cluster.cube = &me;
    me.host = note_uses_ || note_windows_ ? &kNotingHost : &kHost;
    core->machine->judges = note_uses_;
    core->machine->ordered = &ordered_;
    core->machine->windows = note_windows_ ? reinterpret_cast<uint64_t>(windows_.data) : 0;
    core->machine->window_bytes = note_windows_ ? windows_.bytes : 0;
    me.fiber = core->machine.get();
  }
}

Ran Machine::begin(VirtualCore& core, const Kernel& kernel, const Graph& graph) {
  if (kernel.plain != nullptr) {
    kernel.plain(core.payload.args);
    return Ran::ToItsEnd;
  }
  if (kernel.on_core != nullptr || kernel.on_machine != nullptr) return on_core(core, kernel, graph);
  kernel.call(core.payload);
  return Ran::ToItsEnd;
}

Ran Machine::on_core(VirtualCore& core, const Kernel& kernel, const Graph& graph) {
  Cores& cores = cores_[static_cast<size_t>(core.cluster)];
  std::call_once(cores.made, [&] { make(cores); });
  MachineState& state = *core.machine;
  Core& me = state.core;
  me.block_idx = static_cast<uint32_t>(core.payload.block_idx);
  me.block_num = static_cast<uint32_t>(core.payload.block_num);
  const bool joined = core.payload.shared != nullptr;
  me.cluster = joined ? static_cast<pto::detail::Cluster*>(core.payload.shared) : &clusters_[core.cluster];
  me.grid = joined ? static_cast<pto::detail::Grid*>(core.payload.grid)
                   : &grids_[static_cast<size_t>(core.cluster)];
  // Either vector core of a cluster may get a task, so a task of one core sees only one vector core.
  me.subblock_num = static_cast<uint32_t>(core.payload.lanes);
  me.subblock_idx = static_cast<uint32_t>(core.payload.lane);
  me.mark = -1;
  me.trace = nullptr;
  me.task = core.payload.task_id;
  me.array_count = graph.memory(core.payload, state.arrays);
  if (windows_.data != nullptr) state.arrays[me.array_count++] = windows_;
  me.arrays = me.array_count > 0 ? state.arrays : nullptr;
  me.only_arrays = false;
  state.failed = false;
  state.payload = &core.payload;
  state.graph = &graph;
  unite(state.uses, state.own);  // of the previous task
  state.own = state.uses.size();
  state.room = kFewUses;
  state.guard.text = kernel.text;
  state.guard.signal = 0;
  state.kernel = &kernel;
  state.args = core.payload.args;
  state.fiber.start(&MachineState::run, &state);
  return state.resume();
}

std::vector<UseRecord> Machine::uses() const {
  std::vector<UseRecord> all;
  for (const Cores& cores : cores_) {
    for (const VirtualCore* core : cores.all) {
      if (core->machine == nullptr) continue;
      all.insert(all.end(), core->machine->uses.begin(), core->machine->uses.end());
    }
  }
  return all;
}

std::vector<WindowRecord> Machine::ordered_uses() const {
  std::vector<WindowRecord> all;
  for (const Cores& cores : cores_) {
    for (const VirtualCore* core : cores.all) {
      if (core->machine == nullptr) continue;
      all.insert(all.end(), core->machine->ordered_uses.begin(), core->machine->ordered_uses.end());
    }
  }
  std::sort(all.begin(), all.end(), [](const WindowRecord& a, const WindowRecord& b) { return a.at < b.at; });
  return all;
}

bool Machine::can_go_on(const VirtualCore& core) {
  const Waiting* waiting = core.machine->waiting;
  return waiting == nullptr || waiting->ready(waiting->state);
}

Ran Machine::go_on(VirtualCore& core) { return core.machine->resume(); }

std::string Machine::waits_for(const VirtualCore& core) {
  const Waiting* waiting = core.machine->waiting;
  if (waiting == nullptr) return "nothing";
  char text[256] = "";
  waiting->describe(waiting->description, text, sizeof text);
  return text;
}

bool Machine::was_stopped(const VirtualCore& core) {
  return core.machine != nullptr && core.machine->guard.signal == SIGINT;
}

std::string Machine::failure(const VirtualCore& core, int& mark) {
  mark = core.machine->kernel->place(core.machine->core.mark);
  return core.machine->failure;
}

}  // namespace pto2
