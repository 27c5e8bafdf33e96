// The side of the orchestrator: submit tasks, scopes, clusters.
#include <algorithm>
#include <cstring>

#include "tensormap_graph.hpp"

namespace pto2 {

namespace {

constexpr int64_t kCleanupInterval = 64;  // PTO2_TENSORMAP_CLEANUP_INTERVAL
constexpr uint64_t kDescriptorsPerTask = 4;
constexpr int64_t kLongWait = 10'000'000;        // nanoseconds until any free room is enough
constexpr int64_t kRetiredAtOnce = 1024;         // most tasks to retire before a blocked call tests again
constexpr int64_t kSurveyTime = 500'000'000;     // nanoseconds of CPU time for a survey
constexpr int64_t kSurveyWait = 10'000'000'000;  // nanoseconds in total, because it may sleep
constexpr int64_t kSurveyCalls = 1 << 22;        // and its calls
constexpr int64_t kSurveyCallsSeeded = 1 << 18;  // the same for runs that must not depend on a clock
constexpr const char* kNoValues =
    ", and there are no values: kernels are not executed (compute=False, --no-compute)";
constexpr uint64_t kNowhere = 64;  // an invalid address: every access to it faults

struct Surveyed {};  // thrown when a submission meets a deadlock: it and all later ones are only counted

/// Return the heap space of an output; an empty output gets space too.
uint64_t output_size(const TensorData& tensor) {
  return align_up(tensor.buffer.size > 0 ? tensor.buffer.size : 1, kPackedOutputAlign);
}

/// Make a view of one element of a tensor.
void view_element(TensorData& one, const TensorData& tensor, const uint64_t index[]) {
  const uint64_t shape[RUNTIME_MAX_TENSOR_DIMS] = {1, 1, 1, 1, 1};
  one.init_with_view(tensor, shape, index);
}

char* address_of(const TensorData& tensor, const uint64_t index[]) {
  TensorData one;
  view_element(one, tensor, index);
  return reinterpret_cast<char*>(one.buffer.addr + one.start_offset * get_element_size(one.dtype));
}

void fill_elements(char* at, const TensorData& tensor, uint64_t bits) {
  const uint64_t size = get_element_size(tensor.dtype);
  for (uint64_t done = 0; done + size <= tensor.buffer.size; done += size)
    std::memcpy(at + done, &bits, size);
}

/// Records the steps of a submission, if the run records, and adds their costs in virtual time.
class Steps {
 public:
  Steps(Exec& exec, int64_t id) : exec_(exec), recorder_(exec.recorder()), id_(id) {
    if (recorder_ != nullptr) at_ = exec_.now();
  }
  void done(Phase phase) {
    exec_.spend(phase);
    if (recorder_ == nullptr) return;
    const int64_t now = exec_.now();
    recorder_->phases.push_back({at_, now, static_cast<int32_t>(id_), 0, -1, phase});
    at_ = now;
  }

 private:
  Exec& exec_;
  Recorder* recorder_;
  int64_t id_, at_ = 0;
};

/// Return the CPU time of this thread in nanoseconds; other processes have no influence on it.
int64_t thread_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

TensormapGraph::TensormapGraph(const TensormapOptions& options, const Kernels& kernels, Log& log)
    : options_(options),
      kernels_(kernels),
      log_(log),
      memory_(options.task_window, options.heap, options.dep_pool),
      heap_(options.heap, memory_.header()),
      deps_(options.dep_pool),
      map_(options.tensormap_pool, options.tensormap_buckets, options.task_window),
      tensors_(options.task_window * kDescriptorsPerTask),
      orch_ready_(options.task_window),
      no_core_(options.task_window),
      exec_(options.exec, *this, kernels),
      clusters_(options.exec.block_dim, exec_.pause()),
      last_consumer_(options.task_window) {
  if (options.exec.record) records_ = std::make_unique<ZeroedArray<TaskRecord>>(options.task_window);
}

void TensormapGraph::run(const std::function<void()>& orchestrate) {
  exec_.run([&] {
    scope_begin();
    try {
      orchestrate();
    } catch (...) {
      if (surveys()) end_survey(false);  // the deadlock was first
      throw;
    }
    while (!scopes_.empty() && !exec_.failure().failed()) scope_end();
    if (surveys()) end_survey(true);
    memory_.header().orchestrator_done.store(1, std::memory_order_release);
  });
}

void TensormapGraph::fatal(ErrorCode code, const std::string& text) {
  if (surveys()) end_survey(false);
  exec_.fail(code, text);
  throw Aborted();
}

void TensormapGraph::give_up(const std::string& text, ErrorCode code) {
  exec_.throw_if_failed();
  fatal(code, text + ", at " + site_text(site_));
}

// --- deadlocks ---------------------------------------------------------------------------------------------

/// Report a deadlock, which ends the run. If rings are too small, count first how large they have to be.
void TensormapGraph::deadlock(ErrorCode code, Resource resource, uint64_t wanted, int spins) {
  // True if the task that is being submitted has a slot already.
  const bool slot_taken = resource != kTaskRing && resource != kClusters;
  const bool seeded = options_.exec.deterministic || exec_.virtual_time() != nullptr;
  deadlock_ = std::make_unique<Deadlock>(Deadlock{
      code,
      resource,
      cause(resource, wanted, spins),
      circle(resource),
      {static_cast<uint64_t>(next_id_ - alive()), heap_.used(), deps_.used(), map_.used()},
      next_id_ - (slot_taken ? 1 : 0),
      seeded ? INT64_MAX : thread_ns() + kSurveyTime,
      seeded ? INT64_MAX : now_ns() + kSurveyWait,
      seeded ? kSurveyCallsSeeded : kSurveyCalls,
  });
  if (slot_taken) deadlock_->used[resource] += wanted;
  if (resource == kDepPool || resource == kClusters) {  // their needs are not counted
    end_survey(false);
    throw Aborted();
  }
  log_(Level::Warn, "submit",
       "deadlock at %s: no task runs any more, the rest of the orchestration is counted",
       site_text(site_).c_str());
  throw Surveyed();
}

/// Count a task instead of submitting it.
int64_t TensormapGraph::survey(const Submission& submission) {
  exec_.throw_if_failed();
  uint64_t bytes = 0, entries = 0;
  const int count = submission.count <= kMaxParams ? submission.count : 0;  // not checked yet
  for (int i = 0; i < count; ++i) {
    const Arg& arg = submission.args[i];
    if (arg.type == PTOParamType::OUTPUT || arg.type == PTOParamType::INOUT) ++entries;
    if (arg.type != PTOParamType::OUTPUT || arg.tensor == nullptr || arg.tensor->buffer.addr != 0) continue;
    bytes = std::min(bytes + std::min(output_size(*arg.tensor), DemandMeter::kAbsurd), DemandMeter::kAbsurd);
    arg.tensor->buffer.addr = kNowhere;
  }
  demand_.add(tasks_in_scopes_.empty(), bytes, entries);
  tasks_in_scopes_.push_back(deadlock_->id);
  if (survey_is_over()) throw Aborted();
  return deadlock_->id++;
}

/// Count one call of an orchestration in a survey; return true if this call has ended the survey.
bool TensormapGraph::survey_is_over() {
  const bool timed = deadlock_->until != INT64_MAX;
  const bool over =
      --deadlock_->left <= 0 || (timed && (thread_ns() > deadlock_->until || now_ns() > deadlock_->latest));
  if (over) end_survey(false);
  return over;
}

void TensormapGraph::end_survey(bool all) {
  const std::unique_ptr<Deadlock> found = std::move(deadlock_);
  exec_.fail(found->code, found->cause + solution(*found, all) + found->circle);
}

// --- submit ------------------------------------------------------------------------------------------------

int64_t TensormapGraph::submit(const Submission& submission) {
  if (deadlock_ == nullptr) {
    try {
      return submit_task(submission);
    } catch (const Surveyed&) {
    }
  }
  return survey(submission);
}

int64_t TensormapGraph::submit_task(const Submission& submission) {
  exec_.throw_if_failed();
  check(submission);
  exec_.spend(&VirtualCosts::orchestration);
  exec_.catch_up();
  Steps steps(exec_, next_id_);
  const int64_t started = records_ ? exec_.now() : 0;
  sync(false);
  steps.done(Phase::OrchSync);

  const int64_t id = take_slot();
  TaskDescriptor& task = memory_.task(id);
  steps.done(Phase::OrchAlloc);

  describe(submission, task);
  const uint64_t bytes = take_buffers(submission, task);
  steps.done(Phase::OrchHeap);

  TensorData* descriptors = take_descriptors(submission.count, task);
  task.tensors = task.inputs = tracked_ = 0;
  for (int i = 0; i < submission.count; ++i) {
    const Arg& arg = submission.args[i];
    if (arg.type == PTOParamType::SCALAR) {
      task.args[i] = static_cast<int64_t>(arg.scalar);
    } else {
      const uint64_t bit = uint64_t{1} << i;
      task.tensors |= bit;
      task.inputs |= arg.type == PTOParamType::INPUT ? bit : 0;
      tracked_ |= !arg.no_dep && arg.tensor->manual_dep == 0 ? bit : 0;
      std::memcpy(static_cast<void*>(descriptors), static_cast<const void*>(arg.tensor), sizeof(TensorData));
      task.args[i] = reinterpret_cast<int64_t>(descriptors++);
    }
  }
  if (scopes_.back().manual) tracked_ = 0;
  steps.done(Phase::OrchParams);

  find_producers(submission, task);
  if (options_.check_hazards || options_.track_war) find_hazards(submission, task);
  steps.done(Phase::OrchLookup);

  if (records_) {  // before the task can become ready
    TaskRecord& record = (*records_)[memory_.slot(id)];
    record = TaskRecord{};
    record.task_id = id;
    record.submit = started;
    record.func_id = task.kernel_id;
    record.scope = task.scope;
    record.cluster = task.cluster_id;
    record.block = -1;
    record.site = static_cast<int32_t>(task_sites_.size());
    record.core_type = static_cast<int16_t>(task.worker_type);
    task_sites_.push_back(site_);
    if (callers_) task_callers_.push_back(callers_());
    Recorder& recorder = *exec_.recorder();
    recorder.counters.push_back({started, next_id_ - seen_alive_, Counter::TaskRing});
    recorder.counters.push_back({started, static_cast<int64_t>(heap_.used()), Counter::Heap});
    recorder.counters.push_back({started, static_cast<int64_t>(deps_.used()), Counter::DepPool});
    recorder.counters.push_back({started, static_cast<int64_t>(map_.used()), Counter::TensorMap});
  }
  // Wait for room before the task holds its producers: these could not be retired afterwards.
  const uint64_t entries = make_room(task);
  hook(task);
  steps.done(Phase::OrchFanin);
  insert(submission, task);
  steps.done(Phase::OrchInsert);

  demand_.add(tasks_in_scopes_.empty(), bytes, entries);
  tasks_in_scopes_.push_back(id);
  publish(task);
  steps.done(Phase::OrchFinalize);
  return id;
}

/// Fill in the descriptor of a task, except its parameters.
void TensormapGraph::describe(const Submission& submission, TaskDescriptor& task) {
  const int64_t id = next_id_ - 1;
  task.task_id = id;
  task.kernel_id = submission.kernel_id;
  task.worker_type = submission.worker_type;
  task.fanin_count.store(kNotYet, std::memory_order_relaxed);
  task.fanin_refcount.store(0, std::memory_order_relaxed);
  task.fanin_head = task.fanout_head = 0;
  task.fanout_count = 1;
  task.fanout_released = 0;
  task.handled = false;
  task.state.store(kInitial, std::memory_order_relaxed);
  task.cluster_id = submission.cluster;
  task.group_id = submission.cluster >= 0 ? clusters_.group(submission.cluster) : -1;
  task.block_dim = submission.block_dim;
  task.next_block.store(0, std::memory_order_relaxed);
  task.done_blocks.store(0, std::memory_order_relaxed);
  task.cluster_ids = nullptr;
  if (submission.cluster_ids != nullptr) {
    std::vector<int32_t>& kept = block_clusters_[id];
    kept.assign(submission.cluster_ids, submission.cluster_ids + submission.block_dim);
    task.cluster_ids = kept.data();
  }
  task.no_core = submission.no_core;
  task.awaits = submission.awaits;
  if (submission.kernels != nullptr) {
    std::copy(submission.kernels, submission.kernels + kCoresPerBlock, task.kernels);
    task.worker_type = static_cast<int32_t>(CoreType::Mixed);
    task.kernel_id = *std::find_if(task.kernels, task.kernels + kCoresPerBlock, [](int k) { return k >= 0; });
  }
  task.team = nullptr;
  if (start_together(submission)) {
    const bool mixed = submission.kernels != nullptr;
    const int cubes = mixed ? task.kernels[0] >= 0 : task.worker_type == static_cast<int>(CoreType::Aic);
    const int vectors = mixed ? (task.kernels[1] >= 0) + (task.kernels[2] >= 0) : 1 - cubes;
    task.team = (teams_[id] = Machine::make_team(submission.block_dim, cubes, vectors)).get();
  }
  task.condition.op = Condition::kNone;
  if (const TensorData* tensor = submission.predicate.tensor) {
    const uint64_t* index = submission.predicate.index;
    task.condition.address = reinterpret_cast<uint64_t>(address_of(*tensor, index));
    task.condition.bytes = static_cast<uint8_t>(get_element_size(tensor->dtype));
    task.condition.is_signed = is_signed(tensor->dtype);
    task.condition.op = submission.predicate.op;
    task.condition.target = submission.predicate.target;
  }
  task.scope = scopes_.back().number;
  task.site_file = site_.file;
  task.site_line = site_.line;
  task.arg_count = submission.count;
  task.args = task.few_args;
  if (submission.count > kFewParams) {
    auto& extra = extra_args_[id];
    extra = std::make_unique<int64_t[]>(static_cast<size_t>(submission.count));
    task.args = extra.get();
  }
}

void TensormapGraph::refuse(const Submission& submission, const std::string& what, ErrorCode code) {
  const Kernel* kernel = kernels_.find(submission.kernel_id);
  const std::string called = submission.no_core ? "dummy"
                                                : "kernel " + std::to_string(submission.kernel_id) +
                                                      (kernel != nullptr ? " " + kernel->name : "");
  fatal(code, "task " + std::to_string(next_id_) + " (" + called + ", submitted at " + site_text(site_) +
                  "): " + what);
}

/// Refuse a submission that later steps cannot handle.
void TensormapGraph::check(const Submission& submission) {
  if (scopes_.empty()) refuse(submission, "Cannot submit task outside a scope");
  if (!submission.no_core) check_kernels(submission);
  if (submission.count < 0 || submission.count > kMaxParams) {
    refuse(submission, std::to_string(submission.count) + " parameters: a task has at most " +
                           std::to_string(kMaxParams));
  }
  for (int i = 0; i < submission.count; ++i) {
    const Arg& arg = submission.args[i];
    if (arg.type == PTOParamType::SCALAR) continue;
    if (arg.tensor == nullptr) refuse(submission, "parameter " + std::to_string(i) + " is an empty tensor");
    if (arg.tensor->buffer.addr == 0 && arg.type != PTOParamType::OUTPUT) {
      refuse(submission,
             "parameter " + std::to_string(i) + ": " + (arg.type == PTOParamType::INPUT ? "INPUT" : "INOUT") +
                 " param must have a non-NULL buffer address: no task that writes this tensor has been "
                 "submitted");
    }
  }
  for (int i = 0; i < submission.dep_count; ++i) {
    if (submission.deps[i] >= next_id_) {
      refuse(submission, "dependency " + std::to_string(submission.deps[i]) + " is not an earlier task");
    }
  }
  const TensorData* tested = submission.predicate.tensor;
  if (tested != nullptr && tested->buffer.addr == 0) {
    refuse(submission,
           "the tensor of the predicate has no memory: no task that writes it has been submitted");
  }
  if (tested != nullptr && exec_.virtual_time() != nullptr && !exec_.virtual_time()->compute()) {
    refuse(submission, std::string("a predicate decides whether it runs") + kNoValues);
  }
  if (submission.awaits && exec_.virtual_time() != nullptr) {
    refuse(submission, "cannot wait for a signal in virtual time: its time is unknown");
  }
  check_blocks(submission);
}

void TensormapGraph::check_kernels(const Submission& submission) {
  const auto fits = [&](int32_t id, int core_type) {
    const Kernel* kernel = kernels_.find(id);
    if (kernel == nullptr) refuse(submission, "no kernel has this func_id");
    if (kernel->core_type >= 0 && kernel->core_type != core_type) {
      refuse(submission, std::string("the kernel is for ") + (kernel->core_type == 0 ? "AIC" : "AIV") +
                             " cores and was submitted as " +
                             (core_type == 0 ? "PTO2_WORKER_CUBE" : "PTO2_WORKER_VECTOR"));
    }
  };
  if (submission.kernels != nullptr) {
    int named = 0;
    for (int k = 0; k < kCoresPerBlock; ++k) {
      if (submission.kernels[k] < 0) continue;
      fits(submission.kernels[k], k == 0 ? 0 : 1);
      ++named;
    }
    if (named == 0) refuse(submission, "a mixed task without kernels");
    return;
  }
  if (kernels_.find(submission.kernel_id) == nullptr) refuse(submission, "no kernel has this func_id");
  if (submission.worker_type < 0 || submission.worker_type >= kCoreTypes) {
    refuse(submission, "worker type " + std::to_string(submission.worker_type) +
                           " has no cores here: use PTO2_WORKER_CUBE or PTO2_WORKER_VECTOR");
  }
  fits(submission.kernel_id, submission.worker_type);
}

/// Return the number of blocks of a task that can have a core at the same time.
int TensormapGraph::most_together(const Submission& submission) const {
  const bool clusters = submission.kernels != nullptr || submission.worker_type == 0;
  return cores_of(clusters ? CoreType::Aic : CoreType::Aiv, options_.exec.block_dim);
}

/// Return true if the blocks start together: on request, or if they meet and there are enough cores.
/// Otherwise some could occupy all cores and wait for the rest. If there are too few cores, the barrier
/// reports it.
bool TensormapGraph::start_together(const Submission& submission) const {
  if (submission.block_dim == 0 || submission.sync_start) return submission.block_dim > 0;
  if (submission.cluster >= 0 || submission.cluster_ids != nullptr || submission.no_core) return false;
  if (submission.block_dim > most_together(submission)) return false;
  const auto meets = [&](int32_t id) { return id >= 0 && kernels_.find(id)->meets; };
  if (submission.kernels == nullptr) return meets(submission.kernel_id);
  return std::any_of(submission.kernels, submission.kernels + kCoresPerBlock, meets);
}

void TensormapGraph::check_blocks(const Submission& submission) {
  if (submission.cluster >= 0 && !clusters_.allocated(submission.cluster)) {
    refuse(submission, "cluster " + std::to_string(submission.cluster) + " has not been allocated");
  }
  if (submission.block_dim < 0 || submission.block_dim >= 1 << 15) {
    refuse(submission, "the number of blocks must be in range [1, 32767]");
  }
  if (submission.sync_start) {
    const int cores = most_together(submission);
    if (submission.cluster >= 0 || submission.cluster_ids != nullptr) {
      refuse(submission, "blocks that start together are placed by the runtime, not on clusters of one's own",
             ErrorCode::SyncStartInvalid);
    }
    if (submission.block_dim > cores) {
      refuse(submission,
             std::to_string(submission.block_dim) + " blocks cannot start together: there are " +
                 std::to_string(cores) + (submission.kernels != nullptr ? " clusters" : " cores") +
                 " (block_dim " + std::to_string(options_.exec.block_dim) + ")",
             ErrorCode::SyncStartInvalid);
    }
  }
  if (submission.cluster_ids != nullptr) {
    for (int b = 0; b < submission.block_dim; ++b) {
      if (!clusters_.allocated(submission.cluster_ids[b])) {
        refuse(submission, "cluster " + std::to_string(submission.cluster_ids[b]) + " of block " +
                               std::to_string(b) + " has not been allocated");
      }
    }
  }
}

/// Step 0: read the watermark, and take back the resources of retired tasks.
void TensormapGraph::sync(bool force) {
  if (!force && (next_id_ & 31) != 0) return;  // other threads write to the cache line of the watermark
  const int64_t alive_now = alive();
  if (!force && alive_now - map_.cleaned() < kCleanupInterval) return;
  seen_alive_ = alive_now;
  if (alive_now == map_.cleaned()) return;
  map_.cleanup_retired(alive_now);
  const TaskDescriptor& last = memory_.task(alive_now - 1);  // only this thread reuses its slot
  deps_.release_to(last.dep_end);
  tensors_released_ = last.tensor_end;
  const auto forget = [&](auto& by_task) {
    while (!by_task.empty() && by_task.begin()->first < alive_now) by_task.erase(by_task.begin());
  };
  forget(extra_tensors_);
  forget(block_clusters_);
  forget(extra_args_);
  forget(teams_);
}

/// Return true if fewer than window - 1 tasks are alive and the scan has seen the last task of the slot.
bool TensormapGraph::slot_is_free() {
  const auto window = static_cast<int64_t>(options_.task_window);
  if (next_id_ - seen_alive_ >= window - 1) sync(true);
  if (next_id_ - window >= seen_scan_) seen_scan_ = next_scan_.load(std::memory_order_acquire);
  return next_id_ - seen_alive_ < window - 1 && next_id_ - window < seen_scan_;
}

int64_t TensormapGraph::take_slot() {
  if (!slot_is_free()) {
    if (tasks_in_scopes_.size() + 1 >= options_.task_window) {  // these cannot be consumed before scope_end
      ++stats_.blocked[kTaskRing];
      deadlock(ErrorCode::ScopeDeadlock, kTaskRing, 1, 0);
    }
    wait_for(kTaskRing, [&] { return slot_is_free(); }, 1);
  }
  const auto used = static_cast<uint64_t>(next_id_ - seen_alive_ + 1);
  if (used > stats_.window_peak) stats_.window_peak = used;
  // The map still lists the entries of the previous task of this slot, unless they have been cleaned up.
  if (next_id_ - static_cast<int64_t>(options_.task_window) >= map_.cleaned()) sync(true);
  return next_id_++;
}

/// Allocate one block of the heap for all OUTPUTs without an address, at multiples of 1024 from its start.
uint64_t TensormapGraph::take_buffers(const Submission& submission, TaskDescriptor& task) {
  uint64_t bytes = 0;
  for (int i = 0; i < submission.count; ++i) {
    const Arg& arg = submission.args[i];
    if (arg.type == PTOParamType::OUTPUT && arg.tensor->buffer.addr == 0) {
      const uint64_t size = arg.tensor->buffer.size;
      if (size > heap_.size()) deadlock(ErrorCode::HeapRingDeadlock, kHeapRing, size, 0);
      bytes += output_size(*arg.tensor);
    }
  }
  task.packed_buffer_base = 0;
  task.packed_buffer_end.store(0, std::memory_order_relaxed);
  if (bytes == 0) return 0;
  HeapBlock block;
  if (!heap_.try_allocate(bytes, block)) {
    if (align_up(bytes, kAlign) > heap_.size()) {
      deadlock(ErrorCode::HeapRingDeadlock, kHeapRing, bytes, 0);
    }
    wait_for(kHeapRing, [&] { return heap_.try_allocate(bytes, block); }, bytes);
  }
  task.packed_buffer_base = block.base;
  task.packed_buffer_end.store(block.end, std::memory_order_relaxed);
  char* at = heap_.address(block.base);
  if (options_.poison) std::memset(at, 0xFF, bytes);
  for (int i = 0; i < submission.count; ++i) {
    const Arg& arg = submission.args[i];
    if (arg.type == PTOParamType::OUTPUT && arg.tensor->buffer.addr == 0) {
      arg.tensor->buffer.addr = reinterpret_cast<uint64_t>(at);
      arg.tensor->owner_scope = scopes_.back().number + 1;
      arg.tensor->owner_task = task.task_id + 1;
      if (arg.filled) fill_elements(at, *arg.tensor, arg.scalar);
      at += output_size(*arg.tensor);
    }
  }
  return bytes;
}

TensorData* TensormapGraph::take_descriptors(int count, TaskDescriptor& task) {
  const uint64_t size = options_.task_window * kDescriptorsPerTask;
  uint64_t begin = tensors_taken_;
  const auto wanted = static_cast<uint64_t>(count);
  if (begin % size + wanted > size) begin += size - begin % size;  // the descriptors must be contiguous
  if (begin + wanted - tensors_released_ > size) {
    sync(true);
    if (begin + wanted - tensors_released_ > size) {
      auto& extra = extra_tensors_[task.task_id];
      extra = std::make_unique<TensorData[]>(wanted);
      task.tensor_end = tensors_taken_;
      return extra.get();
    }
  }
  tensors_taken_ = begin + wanted;
  task.tensor_end = tensors_taken_;
  return &tensors_[begin % size];
}

/// Add a producer that is not known to be retired, unless the task has it already.
void TensormapGraph::take_producer(int64_t producer, int arg, int kind, const TaskDescriptor& task) {
  int64_t& last = last_consumer_[memory_.slot(producer)];
  if (last == task.task_id + 1) return;
  last = task.task_id + 1;
  producers_.push_back(producer);
  producer_args_.push_back(arg);
  producer_kinds_.push_back(static_cast<int8_t>(kind));
}

void TensormapGraph::take_dep(int64_t producer, TaskDescriptor& task) {
  if (producer >= seen_alive_) return take_producer(producer, -1, kExplicit, task);
  if (std::find(settled_.begin(), settled_.end(), producer) == settled_.end()) settled_.push_back(producer);
}

/// Keep the owner of a tensor from being retired, so that its memory is not reused while this task uses it.
void TensormapGraph::retain_owner(const TensorData& tensor, const TaskDescriptor& task) {
  const int64_t owner = tensor.owner_task - 1;
  if (owner >= seen_alive_ && owner != task.task_id) take_producer(owner, -1, kRetain, task);
}

/// Find the producers of a task. Explicit edges come first: one that is also automatic counts as explicit.
void TensormapGraph::find_producers(const Submission& submission, TaskDescriptor& task) {
  producers_.clear();
  producer_args_.clear();
  producer_kinds_.clear();
  settled_.clear();
  for (int i = 0; i < submission.dep_count; ++i) {
    if (submission.deps[i] >= 0) take_dep(submission.deps[i], task);
  }
  const auto look_up = [&](const TensorData& access, bool writes, int arg) {
    map_.lookup(access, writes, seen_alive_,
                [&](int64_t producer, OverlapStatus) { take_producer(producer, arg, 0, task); });
  };
  for (uint64_t left = tracked_; left != 0; left &= left - 1) {
    const int i = __builtin_ctzll(left);
    const PTOParamType type = submission.args[i].type;
    if (type == PTOParamType::OUTPUT) continue;
    look_up(*reinterpret_cast<const TensorData*>(task.args[i]), type == PTOParamType::INOUT, i);
  }
  const TensorData* tested = submission.predicate.tensor;
  if (tested != nullptr && !scopes_.back().manual && tested->manual_dep == 0) {
    TensorData one;
    view_element(one, *tested, submission.predicate.index);
    look_up(one, false, -1);
  }
  for (uint64_t left = task.tensors & ~tracked_; left != 0; left &= left - 1) {  // after the edges
    retain_owner(*reinterpret_cast<const TensorData*>(task.args[__builtin_ctzll(left)]), task);
  }
  if (tested != nullptr) retain_owner(*tested, task);
}

void TensormapGraph::find_hazards(const Submission& submission, TaskDescriptor& task) {
  PTOParamType types[kMaxParams + 1];
  const TensorData* tensors[kMaxParams + 1];
  for (int i = 0; i < submission.count; ++i) {
    types[i] = submission.args[i].type;
    tensors[i] =
        types[i] == PTOParamType::SCALAR ? nullptr : reinterpret_cast<const TensorData*>(task.args[i]);
    if (types[i] == PTOParamType::SCALAR || tensors[i]->owner_scope == 0) continue;
    bool open = false;
    for (const Scope& scope : scopes_) open |= scope.number + 1 == tensors[i]->owner_scope;
    if (!open) found_hazards_.push_back({-1, task.task_id, 4, i});  // its memory may have been reused
    const uint64_t in_heap = tensors[i]->buffer.addr - reinterpret_cast<uint64_t>(heap_.address(0));
    const uint64_t begin = task.packed_buffer_base % heap_.size();
    const uint64_t size = task.packed_buffer_end.load(std::memory_order_relaxed) - task.packed_buffer_base;
    if (in_heap - begin < size) hazards_.fresh(tensors[i]->buffer.addr);
  }
  // A task without a kernel accesses no memory, whatever its arguments: it only orders other tasks.
  if (submission.no_core) std::fill_n(types, submission.count, PTOParamType::SCALAR);
  // The element of the predicate is also read, like one more parameter.
  int count = submission.count;
  Hazards::Tracked tracked(tracked_);
  TensorData tested;
  if (submission.predicate.tensor != nullptr) {
    view_element(tested, *submission.predicate.tensor, submission.predicate.index);
    tracked[static_cast<size_t>(count)] = !scopes_.back().manual && tested.manual_dep == 0;
    types[count] = PTOParamType::INPUT;
    tensors[count++] = &tested;
  }
  std::vector<int64_t> edges = settled_;
  for (size_t i = 0; i < producers_.size(); ++i) {
    if (producer_kinds_[i] != kRetain) edges.push_back(producers_[i]);
  }
  for (const Hazard& hazard :
       hazards_.submit(task.task_id, types, tensors, count, edges, options_.track_war, tracked)) {
    if (!options_.track_war || !hazard.tracked) {
      if (options_.check_hazards) found_hazards_.push_back(hazard);
      continue;
    }
    if (hazard.earlier < seen_alive_) continue;  // retired, so it is ordered before this task anyway
    last_consumer_[memory_.slot(hazard.earlier)] = task.task_id + 1;
    producers_.push_back(hazard.earlier);
    producer_args_.push_back(hazard.arg);
    producer_kinds_.push_back(hazard.kind);
  }
}

/// Steps 4 and 7: add an edge from every producer.
void TensormapGraph::hook(TaskDescriptor& task) {
  if (!deps_.has(producers_.size())) {
    uint64_t wanted = 0;  // producers that are consumed by now need no entry
    const auto enough = [&] {
      sync(true);
      wanted = 0;
      for (const int64_t producer : producers_) {
        wanted += memory_.task(producer).state.load(std::memory_order_acquire) != kConsumed ? 1 : 0;
      }
      return deps_.has(wanted);
    };
    if (!enough()) wait_for(kDepPool, enough, wanted);
  }
  int32_t edges = 0, early = 0, kept = 0;
  if (options_.exec.record) {
    for (const int64_t producer : settled_) edges_.push_back({producer, task.task_id, -1, kExplicit});
  }
  for (size_t i = 0; i < producers_.size(); ++i) {
    const int64_t producer = producers_[i];
    const bool waits = producer_kinds_[i] != kRetain;
    if (options_.exec.record && waits)
      edges_.push_back({producer, task.task_id, producer_args_[i], producer_kinds_[i]});
    exec_.pause().point();
    TaskDescriptor& from = memory_.task(producer);
    const Locked guard(from.fanout_lock, exec_.pause());
    const int32_t state = from.state.load(std::memory_order_relaxed);
    if (state == kConsumed) continue;  // no need to wait for it or to hold it
    const int32_t offset = deps_.take();
    DepListEntry& entry = memory_.entry(offset);
    entry.task_id = task.task_id;
    entry.producer = producer;
    entry.next_fanin = task.fanin_head;
    task.fanin_head = offset;
    ++from.fanout_count;
    ++edges;
    kept += waits ? 0 : 1;
    if (state == kCompleted || !waits) {
      ++early;
    } else {
      entry.next_fanout = from.fanout_head;
      from.fanout_head = offset;
    }
  }
  task.dep_end = deps_.position();
  stats_.edges += edges - kept;
  if (early > 0) task.fanin_refcount.fetch_add(early, std::memory_order_seq_cst);
  exec_.pause().point();
  task.fanin_count.store(edges, std::memory_order_seq_cst);
}

uint64_t TensormapGraph::make_room(const TaskDescriptor& task) {
  const auto wanted = static_cast<uint64_t>(__builtin_popcountll(tracked_ & ~task.inputs));
  if (!map_.has(wanted)) {
    if (wanted > map_.size()) deadlock(ErrorCode::TensorMapOverflow, kTensorMap, wanted, 0);
    wait_for(kTensorMap, [&] { return sync(true), map_.has(wanted); }, wanted);
  }
  return wanted;
}

void TensormapGraph::insert(const Submission& submission, TaskDescriptor& task) {
  for (uint64_t left = tracked_ & ~task.inputs; left != 0; left &= left - 1) {
    const int i = __builtin_ctzll(left);
    map_.insert(*reinterpret_cast<const TensorData*>(task.args[i]), task.task_id,
                submission.args[i].type == PTOParamType::OUTPUT);
  }
}

/// Step 8, and the rest of step 7. The scan of the schedulers finds tasks without producers; a task whose
/// producers have all completed during its submission is handed over here.
void TensormapGraph::publish(TaskDescriptor& task) {
  ++stats_.tasks;
  if (task.cluster_id >= 0) clusters_.submitted(task.cluster_id);
  if (task.cluster_ids != nullptr) {
    for (int b = 0; b < task.block_dim; ++b) clusters_.submitted(task.cluster_ids[b]);
  }
  const int64_t id = task.task_id;
  exec_.pause().point();
  exec_.catch_up();
  const int32_t edges = task.fanin_count.load(std::memory_order_relaxed);
  bool mine = false;
  if (edges > 0 && task.fanin_refcount.load(std::memory_order_seq_cst) == edges) {
    int32_t expected = kInitial;
    mine = task.state.compare_exchange_strong(expected, kReady, std::memory_order_seq_cst);
  }
  exec_.pause().point();
  if (mine) {
    count(task);
    orch_ready_.push(id);
  }
  memory_.header().current_task_index.store(id + 1, std::memory_order_release);
  if (mine || edges == 0) exec_.published();
  exec_.pause().point();
  exec_.help_now_and_then(id);
}

/// Wait until `free()`, and for some more room, because an orchestrator that returns for every retired task
/// disturbs the threads that retire tasks. So it tests when a part of the tasks that can be retired has been
/// (`wake_at`; Exec::released wakes it then), or earlier: when a core waits, perhaps for a task that is not
/// yet submitted, when some time has passed, and when no other event can happen.
void TensormapGraph::wait_for(Resource resource, const std::function<bool()>& free, const uint64_t& wanted) {
  ++stats_.blocked[resource];
  int spins = 0;
  bool said = false;
  const auto say = [&](int n) { said = true, say_blocked(resource, wanted, n); };
  int64_t wake_at = 0;
  const bool patient = exec_.virtual_time() == nullptr;  // in virtual time, as on a device, it tests at once
  if (resource != kClusters && patient) {                // retired tasks release all other resources
    const int64_t now = alive();
    const int64_t end = tasks_in_scopes_.empty() ? next_id_ : tasks_in_scopes_.front();  // tasks that stay
    wake_at = now + std::clamp<int64_t>((end - now) / 16, 1, kRetiredAtOnce);
  }
  // A kernel may wait, in a way that is not visible here (a flag in memory), for a task not yet submitted.
  const int64_t until = options_.exec.deterministic || !patient ? INT64_MAX : now_ns() + kLongWait;
  const auto enough = [&] {
    return (!patient || alive() >= wake_at || exec_.core_waits() || now_ns() >= until) && free();
  };
  if (exec_.help_until(enough, say, spins, wake_at) || free()) {
    if (said) say_unblocked(resource, spins);
    return;
  }
  static constexpr ErrorCode codes[] = {ErrorCode::FlowControlDeadlock, ErrorCode::HeapRingDeadlock,
                                        ErrorCode::DepPoolOverflow, ErrorCode::TensorMapOverflow,
                                        ErrorCode::ClusterDeadlock};
  say_blocked(resource, wanted, spins);
  deadlock(codes[resource], resource, wanted, spins);
}

// --- scopes ------------------------------------------------------------------------------------------------

void TensormapGraph::scope_begin(bool manual) {
  exec_.throw_if_failed();
  if (surveys() && survey_is_over()) throw Aborted();
  if (!scopes_.empty() && scopes_.back().manual && !manual) {
    fatal(ErrorCode::InvalidArgs, "an automatic scope is opened at " + site_text(site_) +
                                      " inside the manual scope of " + site_text(scopes_.back().site) +
                                      ": in a manual one there are manual ones only");
  }
  if (scopes_.size() >= kMaxScopeDepth) {
    fatal(ErrorCode::ScopeOverflow, "Scope stack overflow: more than " + std::to_string(kMaxScopeDepth) +
                                        " scopes are open, the last one opened at " + site_text(site_));
  }
  scopes_.push_back({tasks_in_scopes_.size(), site_, scope_count_++, manual});
  if (static_cast<int>(scopes_.size()) > stats_.max_depth)
    stats_.max_depth = static_cast<int>(scopes_.size());
}

void TensormapGraph::scope_end() {
  exec_.only_orchestrators();
  if (exec_.failure().failed()) return;  // called while the orchestration unwinds: do not wait
  if (scopes_.empty()) fatal(ErrorCode::ScopeOverflow, "Scope stack underflow: no scope is open");
  if (surveys()) {
    tasks_in_scopes_.resize(scopes_.back().first);
    scopes_.pop_back();
    survey_is_over();
    return;
  }
  exec_.catch_up();
  Steps steps(exec_, next_id_);
  const Scope scope = scopes_.back();
  const auto count = static_cast<int>(tasks_in_scopes_.size() - scope.first);
  if (count > stats_.max_scope_tasks) stats_.max_scope_tasks = count;
  bool consumed = false;
  for (size_t i = scope.first; i < tasks_in_scopes_.size(); ++i) {
    consumed |= release(memory_.task(tasks_in_scopes_[i]));
    exec_.pause().point();
  }
  tasks_in_scopes_.resize(scope.first);
  scopes_.pop_back();
  clusters_.end_scope(scope.number);
  if (consumed) advance();
  steps.done(Phase::OrchScopeEnd);
}

// --- elements --------------------------------------------------------------------------------------------

uint64_t TensormapGraph::load(const TensorData& tensor, const uint64_t index[]) {
  const char* place = element(tensor, index, false);
  const uint64_t size = get_element_size(tensor.dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, place, size);
  if (options_.poison && bits == ~uint64_t{0} >> (64 - 8 * size))
    blank_reads_.push_back({reinterpret_cast<uint64_t>(place), size, site_});
  return bits;
}

void TensormapGraph::store(const TensorData& tensor, const uint64_t index[], uint64_t bits) {
  std::memcpy(element(tensor, index, true), &bits, get_element_size(tensor.dtype));
}

/// Return the address of an element after every task that uses the element has completed. The parameters of
/// live tasks show which tasks these are, even if they make no edges. Tasks that have completed are tested
/// only once.
char* TensormapGraph::element(const TensorData& tensor, const uint64_t index[], bool writes) {
  exec_.throw_if_failed();
  if (surveys()) {  // no task will write to it any more
    end_survey(false);
    throw Aborted();
  }
  if (tensor.buffer.addr == 0) {
    fatal(ErrorCode::InvalidArgs,
          std::string(writes ? "an element is written" : "an element is read") + " at " + site_text(site_) +
              " of a tensor without memory: no task that writes it has been submitted");
  }
  exec_.catch_up();
  if (exec_.virtual_time() != nullptr && !exec_.virtual_time()->compute()) {
    fatal(ErrorCode::InvalidArgs, std::string(writes ? "an element is written" : "an element is read") +
                                      " at " + site_text(site_) + kNoValues);
  }
  TensorData one;
  view_element(one, tensor, index);
  const auto done = [&](int64_t id) {
    return memory_.task(id).state.load(std::memory_order_acquire) >= kCompleted;
  };
  completed_before_ = std::max(completed_before_, alive());
  while (completed_before_ < next_id_ && done(completed_before_)) ++completed_before_;
  for (int64_t id = completed_before_; id < next_id_; ++id) {
    const TaskDescriptor& task = memory_.task(id);
    bool concerned = false;
    for (uint64_t left = task.tensors & (writes ? ~uint64_t{0} : ~task.inputs); left != 0 && !concerned;
         left &= left - 1) {
      const auto& used = *reinterpret_cast<const TensorData*>(task.args[__builtin_ctzll(left)]);
      concerned = tensor_overlap(one, used) != OverlapStatus::NO_OVERLAP;
    }
    if (!concerned) continue;
    wait_for_task(id);
    hazards_.joined(id);
  }
  return address_of(tensor, index);
}

/// Wait for a task. `watched_` is set before the state is read, and finish() reads `watched_` after it has
/// changed the state. All are sequentially consistent, so the orchestrator does not miss the completion.
void TensormapGraph::wait_for_task(int64_t id) {
  const auto done = [&] { return memory_.task(id).state.load(std::memory_order_seq_cst) >= kCompleted; };
  if (done()) return;
  watched_.store(id, std::memory_order_seq_cst);
  int spins = 0;
  const auto say = [&](int n) {
    log_(Level::Warn, "submit", "[Tensor] BLOCKED: waiting for %s, spins=%d", task_line(id).c_str(), n);
  };
  const bool came = exec_.help_until(done, say, spins) || done();
  watched_.store(-1, std::memory_order_relaxed);
  if (!came) fatal(ErrorCode::Internal, task_line(id) + " does not complete");
}

// --- clusters ----------------------------------------------------------------------------------------------

int32_t TensormapGraph::allocate_cluster() {
  if (surveys()) end_survey(false);
  exec_.throw_if_failed();
  exec_.catch_up();
  if (scopes_.empty()) fatal(ErrorCode::InvalidArgs, "a cluster is allocated inside a scope");
  int32_t cluster = clusters_.try_allocate(scopes_.back().number);
  if (cluster < 0) {
    wait_for(kClusters, [&] { return (cluster = clusters_.try_allocate(scopes_.back().number)) >= 0; }, 1);
  }
  exec_.machine().reset_cluster(cluster);
  return cluster;
}

void TensormapGraph::free_cluster(int32_t cluster) {
  exec_.only_orchestrators();
  if (exec_.failure().failed() || surveys()) return;
  if (!clusters_.allocated(cluster)) {
    fatal(ErrorCode::InvalidArgs, "cluster " + std::to_string(cluster) + " is freed at " + site_text(site_) +
                                      " and has not been allocated, or was freed before");
  }
  clusters_.free(cluster);
}

TensormapStats TensormapGraph::stats() const {
  TensormapStats stats = stats_;
  stats.heap_peak = heap_.peak();
  stats.dep_peak = deps_.peak();
  stats.map_peak = map_.peak();
  return stats;
}

}  // namespace pto2
