// The side of the schedulers: find ready tasks, complete tasks, advance the watermark.
#include <algorithm>
#include <cstring>

#include "tensormap_graph.hpp"

namespace pto2 {

namespace {

constexpr int64_t kScanAtOnce = 32;

/// The names of parameters: "parameter 0", "parameter 1", ...
struct Names {
  char at[kMaxParams][16] = {};
  constexpr Names() {
    for (int i = 0; i < kMaxParams; ++i) {
      int n = 0;
      for (const char c : {'p', 'a', 'r', 'a', 'm', 'e', 't', 'e', 'r', ' '}) at[i][n++] = c;
      if (i >= 10) at[i][n++] = static_cast<char>('0' + i / 10);
      at[i][n] = static_cast<char>('0' + i % 10);
    }
  }
};
constexpr Names kNames;

}  // namespace

uint64_t Condition::bits() const {
  // Acquire: if another rank writes the element, its earlier writes must be visible too.
  switch (bytes) {
    case 1: return __atomic_load_n(reinterpret_cast<const uint8_t*>(address), __ATOMIC_ACQUIRE);
    case 2: return __atomic_load_n(reinterpret_cast<const uint16_t*>(address), __ATOMIC_ACQUIRE);
    case 4: return __atomic_load_n(reinterpret_cast<const uint32_t*>(address), __ATOMIC_ACQUIRE);
    default: return __atomic_load_n(reinterpret_cast<const uint64_t*>(address), __ATOMIC_ACQUIRE);
  }
}

int64_t Condition::value() const {
  const int unused = is_signed ? 64 - 8 * bytes : 0;
  return static_cast<int64_t>(bits() << unused) >> unused;
}

bool Condition::holds() const {
  const int64_t found = value();
  if (!is_signed && (target < 0 || found < 0)) {  // unsigned, so above the target
    return op == kNe || op == kGt || op == kGe;
  }
  switch (op) {
    case kEq: return found == target;
    case kNe: return found != target;
    case kGt: return found > target;
    case kLt: return found < target;
    case kGe: return found >= target;
    case kLe: return found <= target;
    default: return true;
  }
}

bool TensormapGraph::has_unseen() const {
  return next_scan_.load(std::memory_order_acquire) !=
             memory_.header().current_task_index.load(std::memory_order_acquire) ||
         !no_core_.empty();
}

/// Phase 3: scan tasks published since the last scan and start those without producers. One thread scans at a
/// time, and no slot is reused before the scan has passed it. Phase 4: take tasks that the orchestrator found
/// to be ready. Then complete tasks without a core.
int TensormapGraph::look_for_ready(int scheduler) {
  int found = 0;
  if (has_unseen() && scan_lock_.try_lock()) {
    const int64_t first = next_scan_.load(std::memory_order_relaxed);
    const int64_t published = memory_.header().current_task_index.load(std::memory_order_acquire);
    const int64_t end = std::min(published, first + kScanAtOnce);
    for (int64_t id = first; id < end; ++id) {
      TaskDescriptor& task = memory_.task(id);
      if (task.fanin_count.load(std::memory_order_relaxed) != 0) continue;
      task.state.store(kReady, std::memory_order_relaxed);
      count(task);
      exec_.spend(&VirtualCosts::scan);
      make_ready(task, scheduler);
      ++found;
      exec_.pause().point();
    }
    next_scan_.store(end, std::memory_order_release);  // after the counting: see Graph::has_unseen
    scan_lock_.unlock();
  }
  int64_t id;
  for (int n = 0; n < kScanAtOnce && orch_ready_.pop(id); ++n, ++found) {
    make_ready(memory_.task(id), scheduler);
  }
  const auto complete = [&](TaskDescriptor& task) {
    const int counted = units(task);
    exec_.record_without_core(task.task_id, scheduler, task.awaits);
    finish(task, scheduler);
    exec_.discount(counted);
  };
  for (int n = 0; n < kScanAtOnce && no_core_.pop(id); ++n, ++found) {
    TaskDescriptor& task = memory_.task(id);
    if (task.awaits && !task.condition.holds()) {
      const std::lock_guard guard(await_lock_);
      awaiting_.push_back(id);
      exec_.awaits(1);
    } else {
      complete(task);
    }
  }
  while ((id = next_that_holds()) >= 0) {
    exec_.awaits(-1);
    complete(memory_.task(id));
    ++found;
  }
  return found;
}

bool TensormapGraph::awaited() const {
  const std::lock_guard guard(await_lock_);
  return std::any_of(awaiting_.begin(), awaiting_.end(),
                     [&](int64_t id) { return memory_.task(id).condition.holds(); });
}

int64_t TensormapGraph::next_that_holds() {
  const std::lock_guard guard(await_lock_);
  const auto found = std::find_if(awaiting_.begin(), awaiting_.end(),
                                  [&](int64_t id) { return memory_.task(id).condition.holds(); });
  if (found == awaiting_.end()) return -1;
  const int64_t id = *found;
  awaiting_.erase(found);
  return id;
}

std::string TensormapGraph::awaiting() const {
  constexpr const char* kWords[] = {"", "==", "!=", ">", "<", ">=", "<="};
  const std::lock_guard guard(await_lock_);
  std::string text;
  for (const int64_t id : awaiting_) {
    const Condition& condition = memory_.task(id).condition;
    text += "  no core, task " + std::to_string(id) + ": waits for a signal " + kWords[condition.op] + " " +
            std::to_string(condition.target) + " (holds " + std::to_string(condition.value()) + ")\n";
  }
  return text;
}

/// Hand on a task that has been counted. A task without a kernel is not completed here, but by the next call
/// of look_for_ready, because one such task may wait for another, and so on.
void TensormapGraph::make_ready(TaskDescriptor& task, int from) {
  if (records_) (*records_)[memory_.slot(task.task_id)].ready = exec_.now();
  if (VirtualTime* virtual_time = exec_.virtual_time()) {
    virtual_time->ready(task.task_id, from);
  } else {
    hand_on(task.task_id, from);
  }
}

void TensormapGraph::hand_on(int64_t id, int from) {
  TaskDescriptor& task = memory_.task(id);
  if (task.no_core || (task.condition.op != Condition::kNone && !task.condition.holds())) {
    no_core_.push(task.task_id);
  } else if (task.team != nullptr) {
    team_waits(task, from);
  } else {
    to_cores(task, from);
  }
}

/// Hand on the blocks of a team, or queue the team until all blocks of the team before it have a core.
void TensormapGraph::team_waits(TaskDescriptor& task, int from) {
  {
    const Locked guard(team_lock_, exec_.pause());
    if (team_left_ > 0) {
      teams_waiting_.push_back(task.task_id);
      return;
    }
    team_left_ = task.block_dim;
  }
  to_cores(task, from);
}

/// Note that a block of a team has got a core.
void TensormapGraph::team_goes_on(int scheduler) {
  int64_t next;
  {
    const Locked guard(team_lock_, exec_.pause());
    if (--team_left_ > 0 || teams_waiting_.empty()) return;
    next = teams_waiting_.front();
    teams_waiting_.pop_front();
    team_left_ = memory_.task(next).block_dim;
  }
  to_cores(memory_.task(next), scheduler);
}

void TensormapGraph::to_cores(TaskDescriptor& task, int from) {
  const auto type = static_cast<CoreType>(task.worker_type);
  if (task.cluster_ids == nullptr) {
    exec_.ready(task.task_id, type, task.cluster_id, from);
    return;
  }
  const int64_t id = task.task_id;  // the task may end before its last block has been handed on, so copy
  const int blocks = task.block_dim;
  const int32_t* clusters = task.cluster_ids;
  for (int64_t b = 0; b < blocks; ++b) exec_.ready(id | (b + 1) << kBlockShift, type, clusters[b], from);
}

void TensormapGraph::fill(int64_t ticket, DispatchPayload& payload, int scheduler) {
  const int64_t id = ticket & ((int64_t{1} << kBlockShift) - 1);
  TaskDescriptor& task = memory_.task(id);
  payload.task_id = id;
  payload.kernel_id = task.kernel_id;
  payload.num_args = task.arg_count;
  std::memcpy(payload.args, task.args, sizeof(int64_t) * static_cast<size_t>(task.arg_count));
  payload.block_idx = 0;
  payload.block_num = 1;
  payload.tensors = task.tensors;
  payload.inputs = task.inputs;
  payload.one_of_blocks = task.block_dim > 0;
  payload.on_own_cluster = task.cluster_id >= 0 || task.cluster_ids != nullptr;
  payload.mixed = task.worker_type == static_cast<int32_t>(CoreType::Mixed);
  payload.lane = 0;
  payload.lanes = 1;
  if (payload.mixed) {
    std::copy(std::begin(task.kernels), std::end(task.kernels), payload.kernels);
    payload.lanes = task.kernels[1] >= 0 && task.kernels[2] >= 0 ? 2 : 1;
  }
  payload.team = task.team;
  payload.grid = payload.shared = nullptr;
  if (task.block_dim == 0) return;
  payload.block_num = task.block_dim;
  if ((ticket >> kBlockShift) != 0) {
    payload.block_idx = static_cast<int32_t>(ticket >> kBlockShift) - 1;
  } else {
    payload.block_idx = task.next_block.fetch_add(1, std::memory_order_relaxed);
    if (payload.block_idx + 1 < task.block_dim) {  // the next call gets the next block
      exec_.ready(id, static_cast<CoreType>(task.worker_type), task.cluster_id, scheduler);
    }
  }
  payload.args[payload.num_args++] = task.block_dim;
  payload.args[payload.num_args++] = payload.block_idx;
  if (task.team != nullptr) team_goes_on(scheduler);
}

/// Return the buffers of the tensors of a task. A kernel in C++ may access more of a buffer than the task
/// declares. Addresses in scalar arguments are not known.
int TensormapGraph::memory(const DispatchPayload& payload, pto_array* out) const {
  int count = 0;
  for (uint64_t left = payload.tensors; left != 0; left &= left - 1) {
    const int i = __builtin_ctzll(left);
    const auto& tensor = *reinterpret_cast<const TensorData*>(payload.args[i]);
    out[count++] = {reinterpret_cast<void*>(tensor.buffer.addr), tensor.buffer.size, kNames.at[i], 0};
  }
  return count;
}

/// Classify a write. It is undeclared if some of its bytes are in an input and no single output contains
/// these bytes; a tensor here means all bytes between its first and its last element.
bool TensormapGraph::judge(const DispatchPayload& payload, UseRecord& use) const {
  if (use.use == Use::Read) return false;
  const auto bytes = [&](int i) {
    const auto& tensor = *reinterpret_cast<const TensorData*>(payload.args[i]);
    const Segment found = tensor_bytes(tensor);
    return Segment{tensor.buffer.addr + found.begin, tensor.buffer.addr + found.end};
  };
  for (uint64_t left = payload.tensors & payload.inputs; left != 0; left &= left - 1) {
    const int i = __builtin_ctzll(left);
    Segment part = bytes(i);
    part = {std::max(part.begin, use.first), std::min(part.end, use.last)};
    bool declared = part.begin >= part.end;
    for (uint64_t others = payload.tensors & ~payload.inputs; others != 0 && !declared; others &= others - 1)
      declared = bytes(__builtin_ctzll(others)).contains(part);
    if (declared) continue;
    use.arg = i;
    return use.undeclared = true;
  }
  return false;
}

bool TensormapGraph::completed(int64_t id, int scheduler) {
  TaskDescriptor& task = memory_.task(id);
  if (task.block_dim > 0) {
    const int32_t blocks = task.block_dim;  // read before this block counts: the slot may then be reused
    if (task.done_blocks.fetch_add(1, std::memory_order_acq_rel) + 1 < blocks) return false;
  }
  finish(task, scheduler);
  return true;
}

/// Complete a task whose blocks have all ended.
void TensormapGraph::finish(TaskDescriptor& task, int scheduler) {
  const int64_t id = task.task_id;
  if (task.cluster_ids != nullptr) {
    for (int b = 0; b < task.block_dim; ++b) {
      if (clusters_.completed(task.cluster_ids[b])) exec_.released();
    }
  }
  if (task.cluster_id >= 0 && clusters_.completed(task.cluster_id)) exec_.released();
  int32_t consumers;
  {
    const Locked guard(task.fanout_lock, exec_.pause());
    task.state.store(kCompleted, std::memory_order_seq_cst);
    consumers = task.fanout_head;  // final: no consumer joins from here on
  }
  if (watched_.load(std::memory_order_seq_cst) == id) exec_.released();
  exec_.pause().point();
  for (int32_t at = consumers; at != 0;) {
    const DepListEntry& entry = memory_.entry(at);
    at = entry.next_fanout;  // the consumer may run, and the entry be reused, as soon as it is ready
    TaskDescriptor& consumer = memory_.task(entry.task_id);
    const int32_t arrived = consumer.fanin_refcount.fetch_add(1, std::memory_order_seq_cst) + 1;
    exec_.pause().point();
    exec_.spend(&VirtualCosts::resolve);
    if (arrived == consumer.fanin_count.load(std::memory_order_seq_cst)) {
      int32_t expected = kInitial;
      if (consumer.state.compare_exchange_strong(expected, kReady, std::memory_order_seq_cst)) {
        count(consumer);
        make_ready(consumer, scheduler);
      }
    }
    exec_.pause().point();
  }
  bool consumed = false;
  for (int32_t at = task.fanin_head; at != 0; at = memory_.entry(at).next_fanin) {
    consumed |= release(memory_.task(memory_.entry(at).producer));
    exec_.pause().point();
  }
  {
    const Locked guard(task.fanout_lock, exec_.pause());
    task.handled = true;
    if (task.fanout_released == task.fanout_count) {
      task.state.store(kConsumed, std::memory_order_seq_cst);
      consumed = true;
    }
  }
  if (!consumed) return;
  if (VirtualTime* virtual_time = exec_.virtual_time()) {
    virtual_time->settle();
  } else {
    advance();
  }
}

/// Release a task on behalf of a consumer or of the scope; return true if the task is consumed now.
bool TensormapGraph::release(TaskDescriptor& task) {
  const Locked guard(task.fanout_lock, exec_.pause());
  ++task.fanout_released;
  if (!task.handled || task.fanout_released != task.fanout_count) return false;
  task.state.store(kConsumed, std::memory_order_seq_cst);
  return true;
}

/// Advance the watermark over consumed tasks. Any number of threads may call this; each step is taken by one
/// of them. Every thread calls this after it has consumed a task, so no step is lost: of two threads that
/// have consumed neighbouring tasks, at least one sees both states, because stores and loads of the state are
/// sequentially consistent here.
void TensormapGraph::advance() {
  SharedMemoryHeader& header = memory_.header();
  int64_t oldest = header.last_task_alive.load(std::memory_order_acquire);
  bool moved = false;
  while (oldest < header.current_task_index.load(std::memory_order_acquire)) {
    const TaskDescriptor& task = memory_.task(oldest);
    if (task.state.load(std::memory_order_seq_cst) != kConsumed) break;
    const uint64_t end = task.packed_buffer_end.load(std::memory_order_relaxed);
    exec_.pause().point();
    // If another thread was faster, the slot may already belong to another task; then the exchange fails.
    if (!header.last_task_alive.compare_exchange_strong(oldest, oldest + 1, std::memory_order_seq_cst))
      continue;
    moved = true;
    ++oldest;
    exec_.pause().point();
    uint64_t tail = header.heap_tail.load(std::memory_order_relaxed);
    while (end > tail && !header.heap_tail.compare_exchange_weak(tail, end, std::memory_order_seq_cst)) {
    }
  }
  if (moved) exec_.released(oldest);
}

void TensormapGraph::sample(Recorder& recorder, int64_t now) {
  const SharedMemoryHeader& header = memory_.header();
  const int64_t tasks = header.current_task_index.load(std::memory_order_relaxed) - alive();
  recorder.counters.push_back({now, tasks, Counter::TaskRing});
  recorder.counters.push_back({now, static_cast<int64_t>(heap_.used()), Counter::Heap});
}

}  // namespace pto2
