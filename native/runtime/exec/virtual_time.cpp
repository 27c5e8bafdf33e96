#include "virtual_time.hpp"

#include <algorithm>
#include <system_error>

#include "exec.hpp"

namespace pto2 {

namespace {

constexpr uint64_t kEventsBetweenQuestions = 4096;

bool may_wait(const DispatchPayload& payload) {
  return payload.mixed || payload.team != nullptr || payload.on_own_cluster;
}

/// Return the number of cores of one block of a task.
size_t cores_of_block(const DispatchPayload& payload) {
  if (!payload.mixed) return 1;
  return static_cast<size_t>(
      std::count_if(std::begin(payload.kernels), std::end(payload.kernels), [](int k) { return k >= 0; }));
}

/// Return the number of cores that start together.
size_t cores_of_team(const DispatchPayload& payload) {
  return static_cast<size_t>(payload.block_num) * cores_of_block(payload);
}

}  // namespace

VirtualTime::VirtualTime(Exec& exec, const VirtualOptions& options)
    : exec_(exec),
      options_(options),
      turns_(static_cast<size_t>(exec.options().schedulers)),
      slots_(static_cast<size_t>(exec.options().block_dim * kCoresPerBlock)) {
  for (int t = 0; t < kCoreTypes; ++t) {
    const auto type = static_cast<CoreType>(t);
    for (int i = 0; i < cores_of(type, exec.options().block_dim); ++i) {
      VirtualCore& core = exec.core(type, i);
      slot(core).core = &core;
    }
  }
}

VirtualTime::~VirtualTime() { stop(); }

void VirtualTime::spend(Phase phase) {
  switch (phase) {
    case Phase::OrchSync: return spend(&VirtualCosts::sync);
    case Phase::OrchAlloc: return spend(&VirtualCosts::alloc);
    case Phase::OrchParams: return spend(&VirtualCosts::params);
    case Phase::OrchLookup: return spend(&VirtualCosts::lookup);
    case Phase::OrchHeap: return spend(&VirtualCosts::heap);
    case Phase::OrchInsert: return spend(&VirtualCosts::insert);
    case Phase::OrchFanin: return spend(&VirtualCosts::fanin);
    case Phase::OrchFinalize: return spend(&VirtualCosts::finalize);
    case Phase::OrchScopeEnd: return spend(&VirtualCosts::scope_end);
    default: return;
  }
}

// --- the orchestrator --------------------------------------------------------------------------------------

void VirtualTime::catch_up() {
  if (events_.empty() || events_.top().time > now_) return;
  const int64_t mine = now_;
  while (!events_.empty() && events_.top().time <= mine && !exec_.failure().failed()) step();
  now_ = mine;
}

bool VirtualTime::wait(const std::function<bool()>& free) {
  catch_up();
  const int64_t mine = now_;
  while (!free()) {
    exec_.throw_if_failed();
    if (step()) continue;
    if (exec_.nothing_can_happen()) {
      now_ = std::max(mine, now_);
      return false;
    }
    if (!stuck()) continue;
    exec_.throw_if_failed();
  }
  now_ = std::max(mine, now_);
  return true;
}

void VirtualTime::finish() {
  outside_ = true;
  while (!exec_.over()) {
    if (!step() && stuck()) return;
  }
  const int64_t end = now_;
  while (!exec_.failure().failed() && step()) {  // release resources of consumed tasks
  }
  now_ = end;
}

/// Handle an empty event queue before the end of the run: cores wait in the middle of kernels, and no task
/// that they could wait for will come. Return false if a core can continue after all.
bool VirtualTime::stuck() {
  if (exec_.resume_waiting(0)) return false;
  if (exec_.waiting_cores().empty()) {
    exec_.fail(ErrorCode::Internal, "no event is left in virtual time and the run is not over");
  } else {
    exec_.fail_stuck();
  }
  return true;
}

/// The first scheduler to poll sees the published state; the others do not poll.
void VirtualTime::published() {
  Scheduler* first = nullptr;
  int64_t earliest = INT64_MAX;
  for (const auto& s : exec_.schedulers()) {
    if (turns_[static_cast<size_t>(s->number)].in_round) continue;
    const int64_t at = next_look(*s, now_);
    if (at < earliest) earliest = at, first = s.get();
  }
  if (first != nullptr) look(*first, now_);
}

// --- events ------------------------------------------------------------------------------------------------

void VirtualTime::push(Kind kind, int64_t time, int who, int64_t task) {
  events_.push({time, order_++, task, who, kind});
}

bool VirtualTime::step() {
  if (events_.empty()) return false;
  const Event event = events_.top();
  events_.pop();
  now_ = event.time;
  if (++happened_ % kEventsBetweenQuestions == 0) exec_.ask();
  const auto scheduler = [&]() -> Scheduler& { return *exec_.schedulers()[static_cast<size_t>(event.who)]; };
  const auto core = [&]() -> VirtualCore& { return *slots_[static_cast<size_t>(event.who)].core; };
  switch (event.kind) {
    case Kind::Ready:
      exec_.graph_.hand_on(event.task, event.who);
      if (exec_.graph_.has_unseen()) published();  // the task runs no kernel
      break;
    case Kind::Complete:
      if (turns_[static_cast<size_t>(event.who)].next == event.time) complete(scheduler());
      break;
    case Kind::Dispatch: dispatch(scheduler()); break;
    case Kind::End: execute_together(core()); break;
    case Kind::Seen: seen(core()); break;
    case Kind::Settle: exec_.graph_.settle(); break;
  }
  return true;
}

void VirtualTime::ready(int64_t id, int scheduler) {
  spend(&VirtualCosts::enqueue);
  push(Kind::Ready, now_, scheduler, id);
}

void VirtualTime::handed_on() {
  for (const auto& s : exec_.schedulers()) {
    if (!turns_[static_cast<size_t>(s->number)].in_round && exec_.wants(*s)) look(*s, now_);
  }
}

void VirtualTime::settle() { push(Kind::Settle, now_, 0); }

// --- schedulers --------------------------------------------------------------------------------------------

/// Return the time at which an idle scheduler has polled everything that is there at `since`.
int64_t VirtualTime::next_look(const Scheduler& s, int64_t since) const {
  int busy = 0;
  for (int t = 0; t < kCoreTypes; ++t) {
    busy += __builtin_popcountll(s.mine[t] & ~s.idle[t].load(std::memory_order_relaxed));
  }
  const int64_t clock = turns_[static_cast<size_t>(s.number)].clock;
  const int64_t turn = std::max<int64_t>(1, options_.costs.poll) * std::max(1, busy);
  const int64_t turns = (std::max(since, clock) - clock + turn - 1) / turn;
  return clock + std::max<int64_t>(1, turns) * turn;
}

void VirtualTime::look(Scheduler& s, int64_t since) {
  Turns& turns = turns_[static_cast<size_t>(s.number)];
  if (turns.in_round) return;  // the scheduler polls again after the round
  const int64_t at = next_look(s, since);
  if (at >= turns.next) return;
  turns.next = at;
  push(Kind::Complete, at, s.number);
}

/// Begin a round: complete ended tasks, then dispatch, by an event at the time when completion is done.
void VirtualTime::complete(Scheduler& s) {
  Turns& turns = turns_[static_cast<size_t>(s.number)];
  turns.next = INT64_MAX;
  turns.in_round = true;
  ++s.rounds;
  turns.done = exec_.phase(s, 0, Phase::Complete);
  if (turns.done > 0) {
    push(Kind::Dispatch, now_, s.number);
  } else {
    dispatch(s);
  }
}

void VirtualTime::dispatch(Scheduler& s) {
  Turns& turns = turns_[static_cast<size_t>(s.number)];
  turns.done += exec_.phase(s, 0, Phase::Dispatch);
  const int found = exec_.graph_.has_unseen() ? exec_.phase(s, 0, Phase::Scan) : 0;
  turns.done += found;
  if (found > 0) {
    push(Kind::Dispatch, now_, s.number);
  } else {
    end_round(s);
  }
}

void VirtualTime::end_round(Scheduler& s) {
  Turns& turns = turns_[static_cast<size_t>(s.number)];
  turns.in_round = false;
  if (turns.done == 0) return;
  turns.clock = now_;
  if (exec_.wants(s)) look(s, now_);
}

// --- cores -------------------------------------------------------------------------------------------------

void VirtualTime::dispatched(VirtualCore& core) {
  const Team* team = core.payload.team;
  if (team == nullptr) return begin(core, start_of(core));
  // Blocks that start together wait for the last of them; meanwhile their clusters are not kept free.
  std::vector<VirtualCore*>& members = teams_[team];
  members.push_back(&core);
  core.waits.store(true, std::memory_order_relaxed);
  if (members.size() < cores_of_team(core.payload)) return;
  int64_t start = 0;
  for (const VirtualCore* member : members) start = std::max(start, start_of(*member));
  for (VirtualCore* member : members) {
    member->waits.store(false, std::memory_order_relaxed);
    begin(*member, start);
  }
  teams_.erase(team);
}

/// Return the begin of the kernel of a core that gets its task now.
int64_t VirtualTime::start_of(const VirtualCore& core) {
  const VirtualCosts& costs = options_.costs;
  return now_ + costs.seen_by_core + (slot(core).warm ? costs.head : costs.cold_head);
}

void VirtualTime::begin(VirtualCore& core, int64_t start) {
  Slot& slot = this->slot(core);
  slot.warm = true;
  slot.together = options_.compute && may_wait(core.payload);
  slot.by_doing = options_.compute && by_doing(core.payload);
  if (slot.by_doing) return execute_first(core, start);
  const int64_t duration = duration_of(core.payload);
  if (duration < 0) return;
  const int64_t end = start + duration;
  core.record.thread = 0;
  core.record.start = start;
  core.record.end = end;
  if (slot.together) {
    push(Kind::End, end, core.worker);
    return;
  }
  slot.attempt = Attempt{};
  slot.state.store(options_.compute ? kQueued : kDone, std::memory_order_release);
  if (options_.compute) hand_over(slot);
  push(Kind::Seen, end + options_.costs.seen_by_scheduler, core.worker);
}

bool VirtualTime::by_doing(const DispatchPayload& payload) const {
  if (!payload.mixed) return options_.by_doing(payload.kernel_id);
  return std::any_of(std::begin(payload.kernels), std::end(payload.kernels),
                     [this](int32_t k) { return k >= 0 && options_.by_doing(k); });
}

/// Return the duration of a kernel. If it is negative (unknown), fail the run and return it.
int64_t VirtualTime::duration_of(const DispatchPayload& payload) {
  const int64_t duration = options_.duration(payload);
  if (duration < 0) {
    exec_.fail(ErrorCode::OrchestrationFailed,
               "missing duration of kernel " + std::to_string(payload.kernel_id));
  }
  return duration;
}

/// Execute a kernel at its begin, when all its producers have ended, because its duration may follow from the
/// execution. Kernels that may wait for others are executed by an event at their begin, and all kernels of a
/// block end together.
void VirtualTime::execute_first(VirtualCore& core, int64_t start) {
  Slot& slot = this->slot(core);
  core.record.thread = 0;
  core.record.start = core.record.end = start;
  if (slot.together) return push(Kind::End, start, core.worker);
  slot.attempt = exec_.attempt(core);
  slot.state.store(kDone, std::memory_order_release);
  const bool ended = !slot.attempt.missing && !slot.attempt.threw && slot.attempt.ran == Ran::ToItsEnd;
  const int64_t duration = ended ? duration_of(core.payload) : 0;  // Kind::Seen reports a failure
  if (duration < 0) return;
  core.record.end = start + duration;
  push(Kind::Seen, core.record.end + options_.costs.seen_by_scheduler, core.worker);
}

void VirtualTime::block_executed(VirtualCore& core) {
  const auto key = std::make_pair(core.payload.task_id, core.payload.block_idx);
  std::vector<VirtualCore*>& cores = done_of_[key];
  cores.push_back(&core);
  if (cores.size() < cores_of_block(core.payload)) return;
  int64_t start = 0, longest = 0;
  for (const VirtualCore* one : cores) {
    const int64_t duration = duration_of(one->payload);
    if (duration < 0) return;
    start = std::max(start, one->record.start);
    longest = std::max(longest, duration);
  }
  const int64_t end = std::max(now_, start + longest);
  for (VirtualCore* one : cores) {
    one->record.end = end;
    push(Kind::Seen, end + options_.costs.seen_by_scheduler, one->worker);
  }
  done_of_.erase(key);
}

/// Execute a kernel that may wait for others, at its given end, or at its begin if its duration is not given.
void VirtualTime::execute_together(VirtualCore& core) {
  exec_.conclude(core, exec_.attempt(core), 0);
  while (!exec_.failure().failed() && exec_.resume_waiting(0)) {
  }
}

void VirtualTime::executed(VirtualCore& core) {
  if (!slot(core).together) return;
  if (slot(core).by_doing) {
    if (!exec_.failure().failed()) block_executed(core);
    return;
  }
  core.record.end = now_;
  push(Kind::Seen, now_ + options_.costs.seen_by_scheduler, core.worker);
}

/// Report to the scheduler of a core that the task of the core has ended.
void VirtualTime::seen(VirtualCore& core) {
  Slot& slot = this->slot(core);
  if (!slot.together) {
    await(slot);
    if (exec_.failure().failed()) return;
    if (!exec_.conclude(core, slot.attempt, 0)) return;  // it waits, though not for a kernel of this run
  }
  Scheduler& s = *exec_.schedulers()[static_cast<size_t>(core.scheduler)];
  exec_.report(core, s);
  look(s, now_);
}

// --- threads of the host -----------------------------------------------------------------------------------

void VirtualTime::start(int host_threads) {
  if (!options_.compute) return;
  try {
    for (int k = 1; k < host_threads; ++k) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // the system has no more threads: continue with fewer
  }
}

void VirtualTime::stop() {
  {
    const std::lock_guard guard(lock_);
    stopped_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void VirtualTime::hand_over(Slot& slot) {
  if (threads_.empty()) return;
  {
    const std::lock_guard guard(lock_);
    queue_.push_back(&slot);
  }
  more_.notify_one();
}

/// Wait until the kernel has been executed; execute it here if no other thread has begun.
void VirtualTime::await(Slot& slot) {
  int queued = kQueued;
  if (slot.state.load(std::memory_order_acquire) == kDone) return;
  if (slot.state.compare_exchange_strong(queued, kRunning)) {
    slot.attempt = exec_.attempt(*slot.core);
    slot.state.store(kDone, std::memory_order_release);
    return;
  }
  // A kernel in Python needs the GIL, which a thread that orchestrates in Python holds.
  const auto& leave = exec_.options().leave;
  const auto& enter = exec_.options().enter;
  if (!outside_ && leave) leave();
  {
    std::unique_lock guard(lock_);
    done_.wait(guard, [&] { return slot.state.load(std::memory_order_acquire) == kDone; });
  }
  if (!outside_ && enter) enter();
}

void VirtualTime::work() {
  const Interruptible listens(exec_.options().interrupts);
  for (;;) {
    Slot* slot = nullptr;
    {
      std::unique_lock guard(lock_);
      more_.wait(guard, [&] { return stopped_ || !queue_.empty(); });
      if (stopped_) return;
      slot = queue_.front();
      queue_.pop_front();
    }
    int queued = kQueued;
    if (!slot->state.compare_exchange_strong(queued, kRunning)) continue;  // the thread of the events runs it
    slot->attempt = exec_.attempt(*slot->core);
    {
      const std::lock_guard guard(lock_);
      slot->state.store(kDone, std::memory_order_release);
    }
    done_.notify_one();
  }
}

}  // namespace pto2
