#include "exec.hpp"

#include <time.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>

#include "interleave.hpp"

namespace pto2 {

namespace {

constexpr int kTurnsBeforeSleep = 100;  // some tens of microseconds: the waker of a sleeper loses more
constexpr int kCoresPerTurn = 16;
constexpr int kSuspectsBeforeWork = 3;  // consecutive polls, each about one microsecond
constexpr int kPollMilliseconds = 50;
constexpr int kSpinsPerLine = 10'000;
/// Time that a thread sleeps or executes tasks counts as spins too: about one log line per second.
constexpr int64_t kNanosecondsPerSpin = 1'000'000'000 / kSpinsPerLine;
constexpr int kWatchMilliseconds = 1000;
constexpr size_t kPinnedTickets =
    65536;  // blocks that may wait for one cluster; no ring limits them, unlike tasks

CoreType type_of(int t) { return static_cast<CoreType>(t); }
/// Return the cores of a cluster among those of a type, as bits.
uint64_t cores_in(int cluster, int t) {
  if (cluster < 0) return 0;
  return t == static_cast<int>(CoreType::Aic) ? uint64_t{1} << cluster
                                              : uint64_t{(1 << kAivPerBlock) - 1} << kAivPerBlock * cluster;
}
uint64_t lowest(uint64_t mask) { return mask & (~mask + 1); }

/// Calls `leave` and `enter` around the time in which the orchestrator's thread does not orchestrate.
class Outside {
 public:
  explicit Outside(const ExecOptions& options) : options_(options) {
    if (options_.leave) options_.leave();
  }
  ~Outside() {
    if (options_.enter) options_.enter();
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  const ExecOptions& options_;
};

thread_local int kernels_under_way = 0;

/// Marks that this thread is inside a kernel.
class InKernel {
 public:
  InKernel() { ++kernels_under_way; }
  ~InKernel() { --kernels_under_way; }
  InKernel(const InKernel&) = delete;
  InKernel& operator=(const InKernel&) = delete;
};

Ran go_on(VirtualCore& core) {
  const InKernel inside;
  return Machine::go_on(core);
}

}  // namespace

void Exec::only_orchestrators() const {
  if (kernels_under_way > nested_) {
    throw std::runtime_error(
        "a kernel cannot submit tasks, open scopes or take clusters: only the orchestration can");
  }
}

Exec::Exec(const ExecOptions& options, Graph& graph, const Kernels& kernels)
    : options_(options),
      graph_(graph),
      kernels_(kernels),
      alone_(options.host_threads == 1 && !options.deterministic),
      machine_(options.block_dim, options.note_uses, options.record, options.windows),
      mixed_left_(static_cast<size_t>(options.block_dim)) {
  for (int t = 0; t < kShapes; ++t) {
    const int cores = t < kCoreTypes ? cores_of(type_of(t), options.block_dim) : 0;
    for (int i = 0; i < cores; ++i) {
      VirtualCore& core = cores_[t].emplace_back();
      core.type = type_of(t);
      core.index = i;
      core.worker = worker_of(core.type, i, options.block_dim);
      core.cluster = cluster_of(core.type, i);
      core.scheduler = core.cluster * options.schedulers / options.block_dim;
      machine_.add(core);
    }
    for (int k = 0; k < options.shards; ++k) queues_[t].push_back(std::make_unique<MpmcQueue>(options.queue));
    for (int c = 0; c < options.block_dim; ++c) {
      pinned_[t].push_back(std::make_unique<MpmcQueue>(std::max(options.queue, kPinnedTickets)));
    }
  }
  for (int k = 0; k < options.schedulers; ++k) {
    auto s = std::make_unique<Scheduler>();
    s->number = k;
    for (int t = 0; t < kCoreTypes; ++t) {
      for (const VirtualCore& core : cores_[t]) {
        if (core.scheduler == k) s->mine[t] |= uint64_t{1} << core.index;
      }
      s->idle[t] = s->mine[t];
      s->finished[t] = 0;
      s->runnable[t] = 0;
    }
    schedulers_.push_back(std::move(s));
  }
  const auto threads = static_cast<size_t>(options.deterministic ? 1 : options.host_threads);
  waiting_.resize(threads);
  recorders_.resize(threads);
  looks_ = std::make_unique<Look[]>(threads);
  if (options.virtual_time != nullptr)
    virtual_ = std::make_unique<VirtualTime>(*this, *options_.virtual_time);
}

Exec::~Exec() = default;

// --- ready tasks -------------------------------------------------------------------------------------------

void Exec::ready(int64_t ticket, CoreType type, int cluster, int from) {
  const int t = static_cast<int>(type);
  MpmcQueue* queue;
  if (type == CoreType::Mixed) mixed_count_.fetch_add(1, std::memory_order_relaxed);
  if (cluster >= 0) {
    pinned_count_.fetch_add(1, std::memory_order_relaxed);
    queue = pinned_[t][static_cast<size_t>(cluster)].get();
  } else {
    queue = queues_[t][static_cast<size_t>((from < 0 ? 0 : from) % options_.shards)].get();
  }
  if (!queue->push(ticket))
    fail(ErrorCode::Internal, "a ready queue overflowed");  // cannot happen: there is room for all live tasks
  if (virtual_ != nullptr) [[unlikely]]
    virtual_->handed_on();
}

bool Exec::next_ready(CoreType type, int cluster, int shard, int64_t& ticket) {
  const int t = static_cast<int>(type);
  if (pinned_count_.load(std::memory_order_relaxed) > 0 &&
      pinned_[t][static_cast<size_t>(cluster)]->pop(ticket)) {
    pinned_count_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  if (shard < 0) return false;
  for (int k = 0; k < options_.shards; ++k) {  // first its own shard, then the others
    MpmcQueue& queue = *queues_[t][static_cast<size_t>((shard + k) % options_.shards)];
    if (!queue.empty() && queue.pop(ticket)) return true;
  }
  return false;
}

size_t Exec::queued(CoreType type) const {
  size_t all = 0;
  for (const auto& queue : queues_[static_cast<int>(type)]) all += queue->size();
  return all;
}

void Exec::discount(int tasks_or_blocks) {
  if (outstanding_.fetch_sub(tasks_or_blocks, std::memory_order_acq_rel) == tasks_or_blocks) {
    parking_.wake_all();
  }
}

bool Exec::nothing_can_happen() const {
  return !graph_.has_unseen() && outstanding_.load(std::memory_order_acquire) == 0;
}

// --- a round of a scheduler
// ----------------------------------------------------------------------------------

bool Exec::wants(const Scheduler& s) const {
  const int kept = s.kept_free.load(std::memory_order_relaxed);
  if (mixed_count_.load(std::memory_order_relaxed) > 0) {
    for (uint64_t rest = s.mine[0]; rest != 0; rest &= rest - 1) {
      const int cluster = __builtin_ctzll(rest);
      if (all_idle(s, cluster) && mixed_waits(cluster)) return true;
    }
  }
  for (int t = 0; t < kCoreTypes; ++t) {
    if (s.finished[t].load(std::memory_order_relaxed) != 0) return true;
    const uint64_t idle = s.idle[t].load(std::memory_order_relaxed);
    if (idle == 0) continue;
    if (pinned_count_.load(std::memory_order_relaxed) > 0) {
      for (uint64_t rest = idle; rest != 0; rest &= rest - 1) {
        const VirtualCore& core = cores_[t][static_cast<size_t>(__builtin_ctzll(rest))];
        if (!pinned_[t][static_cast<size_t>(core.cluster)]->empty()) return true;
      }
    }
    if ((idle & ~cores_in(kept, t)) == 0) continue;
    for (const auto& queue : queues_[t]) {
      if (!queue->empty()) return true;
    }
  }
  if (s.mine[0] == 0) return false;
  return graph_.has_unseen() || (waiting_count_.load(std::memory_order_relaxed) > 0 && graph_.awaited());
}

bool Exec::round(Scheduler& s, int thread) {
  ++s.rounds;
  const int completed = phase(s, thread, Phase::Complete);
  const int dispatched = phase(s, thread, Phase::Dispatch);
  const int found = phase(s, thread, Phase::Scan);
  const int more = found > 0 ? phase(s, thread, Phase::Dispatch) : 0;
  return completed + dispatched + found + more > 0;
}

/// Run and record one phase of a round; return the number of its actions.
int Exec::phase(Scheduler& s, int thread, Phase phase) {
  const int64_t began = options_.record ? now() : 0;
  const int count = phase == Phase::Complete   ? complete(s, thread)
                    : phase == Phase::Dispatch ? dispatch(s)
                                               : graph_.look_for_ready(s.number);
  if (options_.record && count > 0) {
    recorders_[static_cast<size_t>(thread)].phases.push_back(
        {began, now(), count, static_cast<int16_t>(thread), static_cast<int16_t>(s.number), phase});
  }
  return count;
}

int Exec::complete(Scheduler& s, int thread) {
  int done = 0, tasks = 0, freed = 0;
  for (int t = 0; t < kCoreTypes; ++t) {
    if (s.finished[t].load(std::memory_order_relaxed) == 0) continue;
    uint64_t mask = s.finished[t].exchange(0, std::memory_order_acquire);
    for (; mask != 0; mask &= mask - 1) {
      VirtualCore& core = cores_[t][static_cast<size_t>(__builtin_ctzll(mask))];
      const int64_t id = core.payload.task_id;
      if (core.cond.load(std::memory_order_acquire) != fin_value(id)) {
        fail(ErrorCode::Internal, "a core reported another task than it was given");
      }
      pause_.point();
      spend(&VirtualCosts::completion);
      if (options_.record) {
        core.record.finish = now();
        recorders_[static_cast<size_t>(thread)].tasks.push_back(core.record);
      }
      ++freed;
      if (!core.payload.mixed || --mixed_left_[static_cast<size_t>(core.cluster)] == 0) {
        tasks += graph_.completed(id, s.number) ? 1 : 0;
        ++done;
      }
      core.data_main_base.store(0, std::memory_order_relaxed);
      s.idle[t].store(s.idle[t].load(std::memory_order_relaxed) | lowest(mask), std::memory_order_relaxed);
    }
  }
  if (options_.record && freed > 0) {
    Recorder& recorder = recorders_[static_cast<size_t>(thread)];
    const int64_t at = now();
    graph_.sample(recorder, at);
    recorder.counters.push_back({at, static_cast<int64_t>(queued(CoreType::Aic)), Counter::ReadyAic});
    recorder.counters.push_back({at, static_cast<int64_t>(queued(CoreType::Aiv)), Counter::ReadyAiv});
  }
  s.completed += static_cast<uint64_t>(tasks);
  if (done > 0) discount(done);
  return freed;
}

void Exec::record_without_core(int64_t id, int scheduler, bool waited) {
  if (!options_.record) return;
  TaskRecord record = *graph_.record(id);
  record.dispatch = record.start = record.end = record.finish = now();
  if (waited) record.start = record.ready;
  record.core = -1;
  record.core_type = std::min<int16_t>(record.core_type, kCoreTypes - 1);
  record.scheduler = static_cast<int16_t>(scheduler);
  schedulers_[static_cast<size_t>(scheduler)]->without_core.push_back(record);
}

int Exec::dispatch(Scheduler& s) {
  const bool mixed =
      mixed_count_.load(std::memory_order_relaxed) > 0 || s.kept_free.load(std::memory_order_relaxed) >= 0;
  int given = mixed ? dispatch_mixed(s) : 0;
  for (int t = 0; t < kCoreTypes; ++t) {
    for (uint64_t rest = s.idle[t].load(std::memory_order_relaxed); rest != 0; rest &= rest - 1) {
      VirtualCore& core = cores_[t][static_cast<size_t>(__builtin_ctzll(rest))];
      const bool kept = core.cluster == s.kept_free.load(std::memory_order_relaxed);
      int64_t ticket;
      if (!next_ready(core.type, core.cluster, kept ? -1 : s.number % options_.shards, ticket)) {
        if (kept) continue;
        ++s.misses;
        if (pinned_count_.load(std::memory_order_relaxed) == 0) break;  // no pinned tasks
        continue;
      }
      ++s.hits;
      spend(&VirtualCosts::dispatch);
      graph_.fill(ticket, core.payload, s.number);
      if (core.payload.team != nullptr) machine_.join(core);
      start(s, core);
      ++given;
    }
  }
  return given;
}

/// Make a core busy that has its payload.
void Exec::start(Scheduler& s, VirtualCore& core) {
  DispatchPayload& payload = core.payload;
  const int t = static_cast<int>(core.type);
  const uint64_t bit = uint64_t{1} << core.index;
  payload.core_type = core.type;
  spend(&VirtualCosts::store);
  if (options_.record) {
    core.record = *graph_.record(payload.task_id);
    core.record.dispatch = now();
    core.record.func_id = payload.kernel_id;
    core.record.core = static_cast<int16_t>(core.worker);
    core.record.core_type = static_cast<int16_t>(core.type);
    core.record.scheduler = static_cast<int16_t>(s.number);
    core.record.block = payload.one_of_blocks ? payload.block_idx : -1;
  }
  s.idle[t].store(s.idle[t].load(std::memory_order_relaxed) & ~bit, std::memory_order_relaxed);
  core.data_main_base.store(dispatch_value(payload.task_id), std::memory_order_release);
  if (virtual_ != nullptr) [[unlikely]]
    return virtual_->dispatched(core);
  s.runnable[t].fetch_or(bit, std::memory_order_release);
  pause_.point();
}

// --- mixed tasks
//
// A mixed task (or one block of it) needs a cluster whose cores are all idle. All of them belong to one
// scheduler, and the holder of its baton assigns them at once. Tasks for one core must not overtake a mixed
// task forever, so a scheduler that finds no such cluster keeps one free: its cores get only pinned tasks. A
// cluster where a core waits in the middle of a kernel is not kept free: it may wait for a task for one core.

/// Return core 0, 1 or 2 of a cluster: its AIC, then its AIVs.
VirtualCore& Exec::member(int cluster, int kernel) {
  return kernel == 0 ? core(CoreType::Aic, cluster)
                     : core(CoreType::Aiv, kAivPerBlock * cluster + kernel - 1);
}

bool Exec::all_idle(const Scheduler& s, int cluster) const {
  for (int t = 0; t < kCoreTypes; ++t) {
    const uint64_t wanted = cores_in(cluster, t);
    if ((s.idle[t].load(std::memory_order_relaxed) & wanted) != wanted) return false;
  }
  return true;
}

bool Exec::mixed_waits(int cluster) const {
  constexpr int t = static_cast<int>(CoreType::Mixed);
  if (!pinned_[t][static_cast<size_t>(cluster)]->empty()) return true;
  return std::any_of(queues_[t].begin(), queues_[t].end(), [](const auto& queue) { return !queue->empty(); });
}

int Exec::dispatch_mixed(Scheduler& s) {
  int given = 0;
  for (uint64_t rest = s.mine[0]; rest != 0; rest &= rest - 1) {
    const int cluster = __builtin_ctzll(rest);
    int64_t ticket;
    if (!all_idle(s, cluster) || !next_ready(CoreType::Mixed, cluster, s.number % options_.shards, ticket))
      continue;
    mixed_count_.fetch_sub(1, std::memory_order_relaxed);
    give_cluster(s, cluster, ticket);
    ++given;
    ++s.hits;
  }
  const int keep = cluster_to_keep(s);
  if (s.kept_free.load(std::memory_order_relaxed) != keep) s.kept_free.store(keep, std::memory_order_relaxed);
  return given;
}

int Exec::cluster_to_keep(const Scheduler& s) const {
  if (mixed_count_.load(std::memory_order_relaxed) <= 0) return -1;
  int best = -1, most = -1;
  for (uint64_t rest = s.mine[0]; rest != 0; rest &= rest - 1) {
    const int cluster = __builtin_ctzll(rest);
    if (!mixed_waits(cluster)) continue;
    int idle = 0;
    bool waits = cores_[0][static_cast<size_t>(cluster)].waits.load(std::memory_order_relaxed);
    for (int t = 0; t < kCoreTypes; ++t) {
      idle += __builtin_popcountll(s.idle[t].load(std::memory_order_relaxed) & cores_in(cluster, t));
    }
    for (int lane = 0; lane < kAivPerBlock; ++lane) {
      waits |=
          cores_[1][static_cast<size_t>(kAivPerBlock * cluster + lane)].waits.load(std::memory_order_relaxed);
    }
    if (waits || idle <= most) continue;
    most = idle;
    best = cluster;
  }
  return best;
}

/// Give all kernels of a mixed task to the cores of a cluster. None runs before all cores have their payload.
void Exec::give_cluster(Scheduler& s, int cluster, int64_t ticket) {
  DispatchPayload filled;
  spend(&VirtualCosts::dispatch);
  graph_.fill(ticket, filled, s.number);
  VirtualCore* members[kCoresPerBlock];
  int count = 0;
  for (int k = 0; k < kCoresPerBlock; ++k) {
    if (filled.kernels[k] < 0) continue;
    VirtualCore& core = *(members[count++] = &member(cluster, k));
    core.payload = filled;
    core.payload.kernel_id = filled.kernels[k];
    core.payload.lane = k == 2 && filled.lanes > 1 ? 1 : 0;
  }
  mixed_left_[static_cast<size_t>(cluster)] = count;
  machine_.join(*members[0]);
  for (int n = 1; n < count; ++n) {
    members[n]->payload.grid = members[0]->payload.grid;
    members[n]->payload.shared = members[0]->payload.shared;
  }
  for (int n = 0; n < count; ++n) start(s, *members[n]);
}

// --- executing tasks
// -----------------------------------------------------------------------------------------------

VirtualCore* Exec::claim(int thread) {
  const size_t count = schedulers_.size();
  for (size_t k = 0; k < count; ++k) {
    Scheduler& s = *schedulers_[(static_cast<size_t>(thread) + k) % count];
    for (int t = 0; t < kCoreTypes; ++t) {
      uint64_t mask = s.runnable[t].load(std::memory_order_relaxed);
      while (mask != 0) {
        const uint64_t bit = lowest(mask);
        mask = s.runnable[t].fetch_and(~bit, std::memory_order_acquire);
        if ((mask & bit) != 0) return &cores_[t][static_cast<size_t>(__builtin_ctzll(bit))];
      }
    }
  }
  return nullptr;
}

void Exec::execute(VirtualCore& core, int thread) {
  if (options_.record) {
    core.record.thread = static_cast<int16_t>(thread);
    core.record.start = now_ns();
  }
  conclude(core, attempt(core), thread);
}

/// Run the kernel of a core; `conclude` handles the outcome.
Attempt Exec::attempt(VirtualCore& core) {
  const DispatchPayload& payload = core.payload;
  core.cond.store(ack_value(payload.task_id), std::memory_order_release);
  const Kernel* kernel = kernels_.find(payload.kernel_id);
  const InKernel inside;
  Attempt made;
  made.missing = kernel == nullptr;
  if (made.missing) return made;
  try {
    made.ran = machine_.begin(core, *kernel, graph_);
  } catch (const std::exception& error) {
    made.threw = true;
    made.error = error.what();
  } catch (...) {
    made.threw = true;
    made.error = "threw something that is not a std::exception";
  }
  return made;
}

/// Handle the outcome of an attempt; return false if the kernel has not ended.
bool Exec::conclude(VirtualCore& core, const Attempt& attempt, int thread) {
  const DispatchPayload& payload = core.payload;
  const std::string task = attempt.missing || attempt.threw ? "task " + std::to_string(payload.task_id) : "";
  if (attempt.missing) {
    fail(ErrorCode::InvalidArgs,
         task + " names kernel " + std::to_string(payload.kernel_id) + ", which does not exist");
  } else if (attempt.threw) {
    fail(ErrorCode::KernelFailed,
         task + " (" + kernels_.find(payload.kernel_id)->name + ", " +
             (core.type == CoreType::Aic ? "AIC " : "AIV ") + std::to_string(core.index) +
             "): " + attempt.error,
         -1, -1, payload.task_id);
  }
  return after(core, attempt.ran, thread);
}

bool Exec::after(VirtualCore& core, Ran ran, int thread) {
  const int64_t id = core.payload.task_id;
  if (ran == Ran::IntoAWait) {
    waiting_[static_cast<size_t>(thread)].push_back(&core);
    core.waits.store(true, std::memory_order_relaxed);
    waiting_count_.fetch_add(1, std::memory_order_seq_cst);
    released();  // the orchestrator may produce the awaited data
    return false;
  }
  if (ran == Ran::IntoAFailure) {
    const Kernel* kernel = kernels_.find(core.payload.kernel_id);
    int mark = -1;
    const std::string why = Machine::failure(core, mark);
    const std::string text = "task " + std::to_string(id) + " (" + kernel->name + ", " +
                             (core.type == CoreType::Aic ? "AIC " : "AIV ") + std::to_string(core.index) +
                             "): " + why;
    if (Machine::was_stopped(core)) {  // the cause is Ctrl-C, and its handling may still be pending
      if (thread == 0 && options_.poll) options_.poll();
      if (options_.stalled) options_.stalled(text);
    }
    fail(ErrorCode::KernelFailed, text, core.payload.kernel_id, mark, id);
  }
  if (virtual_ != nullptr) {
    virtual_->executed(core);
    return true;
  }
  if (options_.record) core.record.end = now_ns();
  report(core, *schedulers_[static_cast<size_t>(core.scheduler)]);
  if (waiting_count_.load(std::memory_order_relaxed) > 0) activity_.fetch_add(1, std::memory_order_release);
  return true;
}

/// Report the end of the task of a core to its scheduler.
void Exec::report(VirtualCore& core, Scheduler& s) {
  core.cond.store(fin_value(core.payload.task_id), std::memory_order_release);
  s.finished[static_cast<int>(core.type)].fetch_or(uint64_t{1} << core.index, std::memory_order_release);
}

bool Exec::resume_waiting(int thread) {
  std::vector<VirtualCore*>& mine = waiting_[static_cast<size_t>(thread)];
  bool went = false;
  for (size_t i = 0; i < mine.size();) {
    VirtualCore& core = *mine[i];
    if (!Machine::can_go_on(core)) {
      ++i;
      continue;
    }
    went = true;
    activity_.fetch_add(1, std::memory_order_release);
    if (options_.group) options_.group->moves(options_.member);
    const Ran ran = go_on(core);
    if (ran == Ran::IntoAWait) {
      ++i;
      continue;
    }
    mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(i));
    core.waits.store(false, std::memory_order_relaxed);
    waiting_count_.fetch_sub(1, std::memory_order_relaxed);
    after(core, ran, thread);
  }
  return went;
}

/// Run one step of a thread. An exception in it ends the run, not the process.
bool Exec::turn(int thread) {
  try {
    return take_turn(thread);
  } catch (const std::exception& error) {
    fail(ErrorCode::Internal, error.what());
  } catch (...) {
    fail(ErrorCode::Internal, "an exception that is not a std::exception");
  }
  return false;
}

bool Exec::take_turn(int thread) {
  Look& look = looks_[static_cast<size_t>(thread)];
  if (look.found_nothing.load(std::memory_order_relaxed) != Look::kBusy) {
    look.found_nothing.store(Look::kBusy, std::memory_order_seq_cst);
  }
  const uint64_t began = activity_.load(std::memory_order_seq_cst);
  bool went = false, all = true;
  const size_t count = schedulers_.size();
  for (size_t k = 0; k < count; ++k) {
    Scheduler& s = *schedulers_[(static_cast<size_t>(thread) + k) % count];
    if (!wants(s)) continue;
    if (!s.baton.try_lock()) {
      all = false;
      continue;
    }
    went |= round(s, thread);
    s.baton.unlock();
  }
  for (int n = 0; n < kCoresPerTurn && !failure_.failed(); ++n) {
    VirtualCore* core = claim(thread);
    if (core == nullptr) break;
    if (n == 0) wake_for_more();  // this thread may be busy with its core for a long time
    if (options_.group) options_.group->moves(options_.member);
    execute(*core, thread);
    went = true;
  }
  if (waiting_count_.load(std::memory_order_relaxed) == 0) return went;
  went |= resume_waiting(thread);
  if (went) {
    activity_.fetch_add(1, std::memory_order_seq_cst);
  } else if (all) {
    look.count.fetch_add(1, std::memory_order_seq_cst);
    look.found_nothing.store(began + 1, std::memory_order_seq_cst);
  }
  return went;
}

// --- threads
// -------------------------------------------------------------------------------------------------

bool Exec::over() const {
  if (failure_.failed()) return true;
  return orchestrator_done_.load(std::memory_order_acquire) && nothing_can_happen();
}

bool Exec::anything_to_do() const {
  for (const auto& s : schedulers_) {
    if (wants(*s)) return true;
    for (int t = 0; t < kCoreTypes; ++t) {
      if (s->runnable[t].load(std::memory_order_relaxed) != 0) return true;
    }
  }
  return waiting_count_.load(std::memory_order_relaxed) > 0;
}

/// Wake a sleeper if there is work that this thread will not reach soon.
void Exec::wake_for_more() {
  if (parking_.somebody_sleeps() && anything_to_do()) parking_.wake_one();
}

/// Check from time to time for a request to end the run. Called on the orchestrator's thread.
void Exec::ask() {
  if (options_.poll == nullptr) return;
  const int64_t now = now_ns();
  if (now - asked_ < int64_t{kPollMilliseconds} * 1'000'000) return;
  asked_ = now;
  options_.poll();
}

/// Return an estimate of the number of further threads that have work: at least 1 if the busy threads may not
/// reach everything soon.
int64_t Exec::wanted_threads() const {
  const int busy = busy_.load(std::memory_order_relaxed);
  if (busy == 0 || waiting_count_.load(std::memory_order_relaxed) > 0) return INT64_MAX;
  const int64_t more = outstanding_.load(std::memory_order_relaxed) - busy;
  return more < 1 && graph_.has_unseen() ? 1 : more;
}

/// Return true if an idle thread should search for work again; counts its polls. Several polls must agree, as
/// every completion or submission briefly makes one task more than busy threads, or an unseen task.
bool Exec::needed(Attention& attention) const {
  const int64_t wanted = wanted_threads();
  attention.suspects = wanted == 1 ? attention.suspects + 1 : 0;
  return wanted > 1 || attention.suspects >= kSuspectsBeforeWork;
}

bool Exec::turn_if_needed(int thread, Attention& attention) {
  if (attention.idle > 0 && !needed(attention)) return false;
  attention.suspects = 0;
  if (!attention.busy) {
    busy_.fetch_add(1, std::memory_order_seq_cst);
    attention.busy = true;
  }
  if (turn(thread)) {
    attention.idle = 0;
    return true;
  }
  no_longer_busy(attention);
  return false;
}

void Exec::no_longer_busy(Attention& attention) {
  if (!attention.busy) return;
  busy_.fetch_sub(1, std::memory_order_seq_cst);
  attention.busy = false;
}

/// Wait after a search without work, longer after each. Return true if `free()`. A sleeper must test `free`
/// after it has registered itself, because the thread that makes `free` true looks for sleepers afterwards.
bool Exec::rest(int thread, Attention& attention, const std::function<bool()>* free) {
  int& idle = attention.idle;
  if (waiting_count_.load(std::memory_order_relaxed) > 0) {  // a core may become able to continue silently
    if (++idle > 64) {
      check_stuck(thread);
      const timespec nap{0, 20'000};
      nanosleep(&nap, nullptr);
    }
    return false;
  }
  if (idle < kTurnsBeforeSleep) {
    // Polling disturbs the working threads, so after several idle rounds a thread polls less often.
    const int naps = idle < 8 ? 1 : 16;
    for (int n = 0; n < naps; ++n) relax();
    pause_(idle);
    return false;
  }
  idle = 0;
  const bool asks = thread == 0 && options_.poll != nullptr;
  if (asks) ask();
  const uint64_t epoch = parking_.prepare();
  if ((wanted_threads() > 0 && anything_to_do()) || over() || (free != nullptr && nothing_can_happen())) {
    parking_.cancel();
    return false;
  }
  if (free != nullptr && (*free)()) {
    parking_.cancel();
    return true;
  }
  Look& look = looks_[static_cast<size_t>(thread)];
  look.found_nothing.store(Look::kAsleep, std::memory_order_seq_cst);
  const int watch_every = options_.stalled != nullptr ? kWatchMilliseconds : 0;
  parking_.sleep(epoch, asks || free != nullptr ? kPollMilliseconds : watch_every);
  watch(now_ns());
  look.found_nothing.store(Look::kBusy, std::memory_order_seq_cst);
  return false;
}

/// Detect a deadlock: no thread is busy, and since this thread began to suspect it, every thread that is
/// awake has searched everything twice in vain (the first search may have begun earlier), while no core ran.
/// Sleeping threads hold no work and would find none that the others do not find.
void Exec::check_stuck(int thread) {
  Look& mine = looks_[static_cast<size_t>(thread)];
  const uint64_t now = activity_.load(std::memory_order_seq_cst) + 1;
  const bool suspected = mine.since == now;
  mine.since = now;
  if (!suspected && options_.group) mine.round = options_.group->round();
  mine.counts.resize(waiting_.size());
  bool confirmed = suspected;
  for (size_t k = 0; k < waiting_.size(); ++k) {
    const uint64_t found_nothing = looks_[k].found_nothing.load(std::memory_order_seq_cst);
    const uint64_t count = looks_[k].count.load(std::memory_order_seq_cst);
    if (!suspected) mine.counts[k] = count;
    if (found_nothing == Look::kAsleep) continue;
    if (found_nothing != now) {
      mine.since = 0;
      return;
    }
    if (count < mine.counts[k] + 2) confirmed = false;
  }
  if (!confirmed) return;
  if (options_.group && !options_.group->halts(options_.member, mine.round)) {
    mine.since = 0;  // other runs may satisfy a condition: search again
    return;
  }
  fail_stuck();
}

void Exec::fail_stuck() {
  std::vector<StuckCore> stuck;
  for (const auto& cores : waiting_) {
    for (const VirtualCore* core : cores) {
      int mark = -1;
      Machine::failure(*core, mark);
      stuck.push_back({core->payload.kernel_id, mark, core->payload.task_id});
    }
  }
  StuckCore first;
  if (!stuck.empty()) {
    first = stuck.front();
    stuck.erase(stuck.begin());
  }
  failure_.set(ErrorCode::Stuck, "no core can go on:\n" + waiting_cores(), first.kernel, first.mark,
               first.task, first.task >= 0 ? graph_.site(first.task) : "", std::move(stuck));
  parking_.wake_all();
}

std::string Exec::waiting_cores() const {
  std::string text;
  for (const auto& cores : waiting_) {
    for (const VirtualCore* core : cores) {
      text += std::string("  ") + (core->type == CoreType::Aic ? "AIC " : "AIV ") +
              std::to_string(core->index) + ", task " + std::to_string(core->payload.task_id) +
              ": waits for " + Machine::waits_for(*core) + "\n";
    }
  }
  return text + graph_.awaiting();
}

void Exec::work(int thread) {
  const Interruptible listens(options_.interrupts && thread > 0);
  unsigned turns = 0;
  Attention attention;
  while (!over()) {
    if (thread == 0 && ++turns % 16 == 0) ask();
    if (!turn_if_needed(thread, attention)) rest(thread, attention);
  }
  no_longer_busy(attention);
}

bool Exec::help_until(const std::function<bool()>& free, const std::function<void(int)>& still_blocked,
                      int& spins, int64_t wake_at) {
  if (virtual_ != nullptr) {
    const Unguarded ours;
    return virtual_->wait(free);
  }
  wake_at_.store(wake_at, std::memory_order_seq_cst);
  orchestrator_blocked_.store(true, std::memory_order_seq_cst);
  const Outside outside(options_);
  const Unguarded ours;
  bool proven = false;
  Attention attention{.idle = 1};  // other threads may be at work: help only if needed
  int64_t counted = now_ns();
  while (!free()) {
    throw_if_failed();
    pause_.point();
    const bool nothing = nothing_can_happen();  // must be read before the last try
    if (free()) break;
    if (nothing) {
      proven = true;
      break;
    }
    if (++spins % kSpinsPerLine == 0) still_blocked(spins);
    if (pause_.interleaver != nullptr) {
      pause_(attention.idle);
      continue;
    }
    if (spins % 16 == 0) ask();
    if (!turn_if_needed(0, attention) && rest(0, attention, &free)) break;
    const int64_t now = now_ns();
    const int64_t spared = (now - counted) / kNanosecondsPerSpin;
    if (spared == 0) continue;
    counted = now;
    const int lines = spins / kSpinsPerLine;
    spins += static_cast<int>(spared);
    if (spins / kSpinsPerLine > lines) still_blocked(spins / kSpinsPerLine * kSpinsPerLine);
  }
  no_longer_busy(attention);
  orchestrator_blocked_.store(false, std::memory_order_relaxed);
  looks_[0].found_nothing.store(Look::kBusy, std::memory_order_seq_cst);
  if (parking_.sleepers() > 0)
    wake_for_more();  // for work that this thread has begun; with a fence, as this may be the last chance
  return !proven;
}

void Exec::fail(ErrorCode code, std::string text, int kernel, int mark, int64_t task) {
  failure_.set(code, std::move(text), kernel, mark, task, task >= 0 ? graph_.site(task) : "");
  parking_.wake_all();
}

void Exec::run(const std::function<void()>& orchestrate) {
  const Faults faults(options_.interrupts);  // during this call, not during the lifetime of this object
  nested_ = kernels_under_way;
  const auto orchestration = [&] {
    try {
      orchestrate();
    } catch (const Aborted&) {
      if (!failure_.failed()) fail(ErrorCode::OrchestrationFailed, "the orchestration was stopped");
    } catch (const std::exception& error) {
      fail(ErrorCode::OrchestrationFailed, error.what());
    } catch (...) {
      fail(ErrorCode::OrchestrationFailed, "the orchestration threw something that is not a std::exception");
    }
    orchestrator_done_.store(true, std::memory_order_release);
    parking_.wake_all();
  };
  const Interruptible listens(options_.interrupts);
  if (options_.deterministic) {
    Interleaver interleaver(*this, options_.seed);
    pause_.interleaver = &interleaver;
    interleaver.run(orchestration);
    pause_.interleaver = nullptr;
    return;
  }
  if (virtual_ != nullptr) {
    virtual_->start(options_.host_threads);
    orchestration();
    const Outside outside(options_);
    virtual_->finish();
    virtual_->stop();
    return;
  }
  threads_.reserve(waiting_.size());
  try {
    for (int k = 1; k < options_.host_threads; ++k) threads_.emplace_back([this, k] { work(k); });
  } catch (const std::system_error&) {  // the system has no more threads: continue with fewer
    for (size_t k = threads_.size() + 1; k < waiting_.size(); ++k) looks_[k].found_nothing = Look::kAsleep;
  }
  orchestration();
  const Outside outside(options_);
  work(0);
  parking_.wake_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace pto2
